"""``privcov mechanisms`` and ``privcov proof``: what there is, what each is good for, and why it is private.

Every installation carries the proof pages.
"""

from __future__ import annotations

import re
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import click

from privcov.cli.output import json_option, note, print_json, say, say_prose
from privcov.version import __version__


@click.command(name="mechanisms")
@json_option
def mechanisms(as_json: bool) -> None:
    """List every mechanism: its guarantee, its proof page, what it is best at.

    Example: privcov mechanisms --json
    """
    from privcov.mechanisms import DEFAULTS, MECHANISMS, WITHDRAWN
    from privcov.releases.certificate import proof_address

    listed: list[dict[str, Any]] = [
        {
            "name": name,
            "guarantee": list(kind.kinds),
            "default_for": [loss for loss, default in DEFAULTS.items() if default == name],
            "summary": kind.summary,
            "best_at": kind.best_at,
            "proof": kind.proof,
            "options": kind.choices(),
        }
        for name, kind in MECHANISMS.items()
    ]
    if as_json:
        print_json({"mechanisms": listed, "refused": WITHDRAWN})
        return
    for m in listed:
        default = f" (default for {', '.join(m['default_for'])})" if m["default_for"] else ""
        say(f"{m['name']}: {', '.join(m['guarantee'])}{default}")
        say(f"    {m['summary']}")
        say(f"    best at: {m['best_at']}")
        say(f"    proof:   {proof_address(m['proof'], __version__)}")
    say("\nadaptive always chooses its row norm privately; the others do so with --row-norm private.")
    for name, reason in WITHDRAWN.items():
        say_prose(f"refused: {name}: {reason}")


@click.command(name="proof")
@click.argument("name", required=False)
@json_option
def proof(name: str | None, as_json: bool) -> None:
    """Print the proof page NAME, or list all of them.

    A certificate's page has an address such as proofs/gaussian@0.1.0: the page, and the version of privcov that
    made the release. The page printed is that of the version installed here, as Markdown.

    Example: privcov proof gaussian
    """
    pages = {
        page.name.removesuffix(".md"): page for page in sorted(_home().iterdir(), key=lambda page: page.name)
    }
    pages.pop("README", None)
    if name is None:
        titles = {each: _title(page.read_text(encoding="utf-8")) for each, page in pages.items()}
        if as_json:
            print_json({"proofs": [{"name": each, "title": title} for each, title in titles.items()]})
        else:
            width = max(map(len, titles))
            say("\n".join(f"{each:{width}}  {title}" for each, title in titles.items()))
        return
    asked = re.fullmatch(r"(?:docs/)?(?:proofs/)?([a-z0-9-]+)(?:\.md)?(?:@([\w.+-]+))?", name)
    if asked is None or asked[1] not in pages:
        raise click.BadParameter(
            f"there is no proof page {name!r}. There are {', '.join(pages)}.", param_hint="NAME"
        )
    found, version = asked.groups()
    text, address = pages[found].read_text(encoding="utf-8"), f"proofs/{found}@{__version__}"
    if as_json:
        print_json({"name": found, "address": address, "title": _title(text), "text": text})
        return
    other = version is not None and version != __version__
    note(f"{address}; this is privcov {__version__}, and not {version}" if other else address)
    say(text.removesuffix("\n"))


def _home() -> Traversable:
    """Where the pages lie: beside the modules in a wheel, under docs/ in a checkout of the source."""
    carried = files("privcov") / "proofs"
    return carried if carried.is_dir() else Path(str(files("privcov"))).parents[1] / "docs" / "proofs"


def _title(text: str) -> str:
    return text.split("\n", 1)[0].removeprefix("# ")
