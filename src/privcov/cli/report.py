"""``privcov report``: a release as a page."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from privcov.cli.ols import errors_option
from privcov.cli.output import json_option, note, one_thread, print_json, small_pages

if TYPE_CHECKING:
    from privcov.models.ols import Errors


@click.command(name="report")
@click.argument("path")
@click.option("-o", "--output", help="Write the page here.  [default: beside the release, ending in .html]")
@click.option(
    "--model",
    "models",
    multiple=True,
    help='A regression to show, "income ~ age + sex"; may be repeated.  [default: none]',
)
@errors_option
@click.option(
    "--pca", "components", type=int, help="Show this number of principal components.  [default: none]"
)
@click.option(
    "--key",
    "key_path",
    help="The steward's public key: then the file must be signed with it.  [default: any key, or none]",
)
@click.option(
    "--stratum",
    metavar="NAME",
    help="For a file with strata: the stratum to show, or total for the sum of all, which is "
    "also (total), where a stratum is called total.  [default: a page for each]",
)
@click.option("--title", help="What to call it.  [default: the name of the file]")
@click.option("--force", is_flag=True, help="Replace an existing page.")
@json_option
def command(
    path: str,
    output: str | None,
    models: tuple[str, ...],
    errors: Errors,
    components: int | None,
    key_path: str | None,
    title: str | None,
    stratum: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Write one HTML page about a release: promise, matrix, noise, models, and how to cite and verify it.

    PATH is the release file. It is verified first, and refused if a check fails. The page needs no
    network, runs no script and costs no privacy: everything in it follows from the release.

    Example: privcov report people.release.json -o people.html --model "income ~ age + sex" --pca 2
    """
    small_pages()
    one_thread()  # with more they wait for each other: on a busy machine for longer than they work
    from privcov.releases.keyfiles import read_public
    from privcov.text import files
    from privcov.verification.reporting import Verified, beside

    key = None if key_path is None else read_public(key_path)
    target = str(beside(path)) if output is None else output
    files.check_writable(target, force=force)
    found = Verified.file(path, key=key, key_name=None if key_path is None else Path(key_path).name)
    pages = pages_of(target, found.strata if stratum is None else (stratum,))
    for one in pages:
        files.check_writable(one, force=force)
    made = {
        one: found.page(
            models=models,
            errors=errors,
            components=components,
            title=title,
            stratum=name,
            among=len(pages) > 1,
        )
        for one, name in pages.items()
    }
    for one, whole in made.items():
        files.write(one, whole, force=force)
    if as_json:
        signer = found.verdict.signer
        told = [
            {
                "path": path,
                "report": one,
                **({} if pages[one] is None else {"stratum": pages[one]}),
                "bytes": len(whole),
                "sha256": hashlib.sha256(whole).hexdigest(),
                "release_sha256": found.source.sha256,
                "models": list(models),
                "errors": errors,
                "signed_by": None if signer is None else signer.fingerprint,
            }
            for one, whole in made.items()
        ]
        print_json(told[0] if len(told) == 1 else told)
    else:
        for one in made:
            note(f"wrote {one}")


def pages_of(target: str, strata: Sequence[str]) -> dict[str, str | None]:
    """Where pages are written, and the stratum that each is about: several have a number and a name in theirs.

    >>> pages_of("areas.html", ["south", "a/b"])
    {'areas-1-south.html': 'south', 'areas-2-a_b.html': 'a/b'}
    """
    if len(strata) < 2:
        return {target: next(iter(strata), None)}
    whole = Path(target)
    return {
        str(whole.with_name(f"{whole.stem}-{place}-{_plain(name)}{whole.suffix}")): name
        for place, name in enumerate(strata, start=1)
    }


def _plain(name: str) -> str:
    return re.sub(r"[^\w-]", "_", name)[:40]
