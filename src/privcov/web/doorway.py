"""Opening the page without saying its address aloud: what a browser is started with, other accounts can list."""

from __future__ import annotations

import os
import tempfile
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from privcov.report.drawing import Markup, join, tag


@contextmanager
def doorway(url: str) -> Iterator[Path]:
    """A file that leads to the address, readable for its owner alone, for as long as it is needed."""
    handle, name = tempfile.mkstemp(prefix="privcov-", suffix=".html")  # made with mode 600
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(_page(url))
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


def open_browser(door: Path) -> bool:
    """Ask the system to show the file; whether it knew how."""
    return webbrowser.open(door.as_uri())


def _page(url: str) -> str:
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("meta", http_equiv="refresh", content=f"0;url={url}"),
        tag("title", "privcov workbench"),
    )
    body = tag("body", tag("p", tag("a", "Open the workbench", href=url)))
    return join([Markup("<!DOCTYPE html>\n"), tag("html", head, body, lang="en"), Markup("\n")])
