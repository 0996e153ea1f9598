"""``privcov release``: from a file to a certified release."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from privcov.cli.delivery import Delivery
from privcov.cli.engines import as_engine, engine_options
from privcov.cli.ledger import left_words
from privcov.cli.losses import as_loss, loss_options
from privcov.cli.output import json_option, note, print_json, reading
from privcov.cli.passphrases import passphrase_option

if TYPE_CHECKING:
    pass


@click.command(name="release")
@click.argument("data", nargs=-1, required=True)
@click.option("--schema", "schema_path", required=True, help="The public facts about the table (TOML).")
@loss_options
@click.option("--mechanism", default="auto", show_default=True, help="See privcov mechanisms.")
@click.option(
    "--for", "purpose", default="covariance", show_default=True, help="What auto is to choose for: see plan."
)
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
@click.option("--ledger", help="Pay from this budget first; refuse if too little is left (privcov ledger).")
@click.option("--request-id", help="With --ledger: a name that can be paid for only once.")
@click.option("--sign", "key_path", help="Sign the release with this private key (see privcov keygen).")
@passphrase_option
@click.option("-o", "--output", help="Write the release here; without it, to stdout.")
@click.option("--force", is_flag=True, help="Replace an output that is already there.")
@engine_options
@json_option
def command(
    data: tuple[str, ...],
    schema_path: str,
    mechanism: str,
    purpose: str,
    arithmetic: str,
    options: tuple[str, ...],
    as_published: bool,
    row_norm: str,
    row_norm_share: str,
    ledger: str | None,
    request_id: str | None,
    key_path: str | None,
    passphrase_file: str | None,
    output: str | None,
    force: bool,
    as_json: bool,
    **words: Any,
) -> None:
    """Release a differentially private second-moment matrix of DATA (CSV, Parquet, or a glob of either).

    Nothing is read before every parameter has been checked, and no message ever contains a value of the
    data.

    Example: privcov release people.csv --schema people.toml --epsilon 1 -o people.release.json
    """
    from privcov.publish import release
    from privcov.schema import Schema
    from privcov.triangle import is_wide

    engine = as_engine(words)
    loss = as_loss(**words)
    schema = Schema.read(schema_path)
    if output is None and is_wide(schema.dimension) and sys.stdout.isatty():
        raise click.UsageError(f"a release of {schema.dimension:,} columns is not text: name a file with -o.")
    delivery = Delivery.of(
        output=output,
        force=force,
        key_path=key_path,
        passphrase_file=passphrase_file,
        ledger=ledger,
        request_id=request_id,
    )
    key, book = delivery.key, delivery.book

    with reading(count=loss.neighbours == "replace-one") as progress:
        made = release(
            data[0] if len(data) == 1 else list(data),
            schema=schema,
            loss=loss,
            mechanism=mechanism,
            purpose=purpose,
            as_published=as_published,
            row_norm=row_norm,  # type: ignore[arg-type]  # checked there
            row_norm_share=row_norm_share,
            ledger=book,
            deliver=delivery.deliver,
            engine=engine,
            progress=progress,
            arithmetic=arithmetic,
            **_options(options),
        )
    if made.certificate.loss.kind != loss.kind:
        note(f"auto took {made.certificate.mechanism}: less noise here, and a stronger promise than asked.")
    if book is not None:
        note(left_words(book))
    if output is None:
        return
    if loss.kind == "approximate" and made.rows is not None and loss.amounts["delta"] * made.rows > 1:
        note("note: delta is above 1 / rows, so the promise may fail for someone in the table.")
    if as_json:
        print_json(made.to_dict(key=key))
        return
    note(f"wrote {output}" + ("" if key is None else f", signed with the key {key.public.fingerprint}"))
    from privcov.report.words import promise

    print(promise(made))
    note(f"Read it: privcov show {output}")


def _options(given: tuple[str, ...]) -> dict[str, Any]:
    pairs = [text.partition("=") for text in given]
    for name, equals, _ in pairs:
        if not (name and equals):
            raise click.UsageError("--option takes NAME=VALUE.")
    return {name: value for name, _, value in pairs}
