"""``privcov release``: from a file to a certified release."""

from __future__ import annotations

import sys
from typing import Any

import click

from privcov.cli.losses import as_loss, loss_options
from privcov.cli.output import json_option, note, print_json, reading


@click.command(name="release")
@click.argument("data", nargs=-1, required=True)
@click.option("--schema", "schema_path", required=True, help="The public facts about the table (TOML).")
@loss_options
@click.option("--mechanism", default="auto", show_default=True, help="See privcov mechanisms.")
@click.option("--arithmetic", default="exact", show_default=True, help="exact, or idealized (plain float64).")
@click.option("--option", "options", multiple=True, metavar="NAME=VALUE", help="An option of the mechanism.")
@click.option(
    "--as-published", is_flag=True, help="The constants of the mechanism's paper, not the tight ones."
)
@click.option(
    "--row-norm", default="declared", show_default=True, help="declared, or private: chosen for a share."
)
@click.option(
    "--row-norm-share", default="0.1", show_default=True, help="The share of the loss for that choice."
)
@click.option("-o", "--output", help="Write the release here; without it, to stdout.")
@click.option("--force", is_flag=True, help="Replace an output that is already there.")
@click.option(
    "--threads", default=1, show_default=True, type=click.IntRange(1, 64), help="Readers of Parquet."
)
@json_option
def command(
    data: tuple[str, ...],
    schema_path: str,
    mechanism: str,
    arithmetic: str,
    options: tuple[str, ...],
    as_published: bool,
    row_norm: str,
    row_norm_share: str,
    output: str | None,
    force: bool,
    threads: int,
    as_json: bool,
    **loss_words: Any,
) -> None:
    """Release a differentially private second-moment matrix of DATA (CSV, Parquet, or a glob of Parquet).

    Nothing is read before every parameter has been checked, and no message ever contains a value of the
    data.

    Example: privcov release people.csv --schema people.toml --epsilon 1 -o people.release.json
    """
    from privcov import files
    from privcov.publish import release
    from privcov.schema import Schema

    loss = as_loss(**loss_words)
    schema = Schema.read(schema_path)
    if output is not None:
        files.check_writable(output, force=force)
    with reading(count=loss.neighbours == "replace-one") as progress:
        made = release(
            data[0] if len(data) == 1 else list(data),
            schema=schema,
            loss=loss,
            mechanism=mechanism,
            as_published=as_published,
            row_norm=row_norm,  # type: ignore[arg-type]  # checked there
            row_norm_share=row_norm_share,
            threads=threads,
            progress=progress,
            arithmetic=arithmetic,
            **_options(options),
        )
    if output is None:
        sys.stdout.write(made.to_json())
        return
    made.save(output, force=force)
    if loss.kind == "approximate" and made.rows is not None and loss.amounts["delta"] * made.rows > 1:
        note("note: delta is above 1 / rows, so the promise may fail for someone in the table.")
    if as_json:
        print_json(made.to_dict())
        return
    note(f"wrote {output}")
    from privcov.report.words import promise

    print(promise(made))
    note(f"Read it: privcov show {output}")


def _options(given: tuple[str, ...]) -> dict[str, Any]:
    pairs = [text.partition("=") for text in given]
    for name, equals, _ in pairs:
        if not (name and equals):
            raise click.UsageError("--option takes NAME=VALUE.")
    return {name: value for name, _, value in pairs}
