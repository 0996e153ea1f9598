"""``privcov report``: a release as a page."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import click

from privcov.cli.output import json_option, note, print_json
from privcov.errors import ParameterError

if TYPE_CHECKING:
    from privcov.report.page import Source


@click.command(name="report")
@click.argument("path")
@click.option("-o", "--output", help="Write the page here.  [default: beside the release, ending in .html]")
@click.option(
    "--model", "models", multiple=True, help='A regression to show, "income ~ age + sex"; repeatable.'
)
@click.option("--pca", "components", type=int, help="Show so many principal components.")
@click.option("--key", "key_path", help="The steward's public key: then the file must be signed with it.")
@click.option("--title", help="What to call it.  [default: the name of the file]")
@click.option("--force", is_flag=True, help="Replace a page that is already there.")
@json_option
def command(
    path: str,
    output: str | None,
    models: tuple[str, ...],
    components: int | None,
    key_path: str | None,
    title: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Write a release as one HTML page: promise, matrix, noise, models, and how to cite and verify it.

    The file is verified first, and refused if anything does not hold. The page needs no network, runs no script and
    costs no privacy: everything in it follows from the release.

    Example: privcov report people.release.json -o people.html --model "income ~ age + sex" --pca 2
    """
    from privcov import files
    from privcov.cli.verify import insist
    from privcov.keyfiles import read_public
    from privcov.released import load
    from privcov.report.page import Source, html
    from privcov.verifying import verify

    key = None if key_path is None else read_public(key_path)
    target = beside(path) if output is None else output
    files.check_writable(target, force=force)
    verdict = verify(path, key=key)
    insist(verdict, path)
    source = Source(
        name=Path(path).name,
        sha256=_digest(path),
        checks=tuple(check.words for check in verdict.checks),
        key=None if key_path is None else Path(key_path).name,
    )
    heading = Path(beside(path)).stem if title is None else title
    if verdict.what == "estimate":
        page = _estimate(path, source, heading, asked=bool(models) or components is not None)
    else:
        page = html(load(path), models=models, components=components, title=heading, source=source)
    whole = page.encode()
    files.write(target, whole, force=force)
    if as_json:
        print_json(
            {
                "path": path,
                "report": target,
                "bytes": len(whole),
                "sha256": hashlib.sha256(whole).hexdigest(),
                "release_sha256": source.sha256,
                "models": list(models),
                "signed_by": None if verdict.signer is None else verdict.signer.fingerprint,
            }
        )
    else:
        note(f"wrote {target}")


def beside(path: str) -> str:
    """The page's own name: people.html for people.release.json."""
    given = Path(path)
    stem = given.name.removesuffix(".json").removesuffix(".release")
    return str(given.with_name((stem or given.name) + ".html"))


def _digest(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _estimate(path: str, source: Source, title: str, *, asked: bool) -> str:
    from privcov.unbounded.estimate import load
    from privcov.unbounded.page import html

    if asked:
        raise ParameterError(
            "E286", "an estimate has no models or components to show.", "Leave --model and --pca out."
        )
    return html(load(path), title=title, source=source)
