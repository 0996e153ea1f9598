"""How commands speak: results on stdout, notes and progress on stderr, JSON when asked."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")

Progress = Callable[[int, int | None], None]


def note(text: str) -> None:
    """A line for the person at the terminal; never a result."""
    print(text, file=sys.stderr)


def print_json(value: Any) -> None:
    """One JSON document on stdout; NaN becomes null."""
    print(json.dumps(_plain(value), ensure_ascii=True, allow_nan=False, indent=2))


@contextmanager
def reading(*, count: bool = True) -> Iterator[Progress | None]:
    """Rows read so far, on a terminal; nothing in a pipe, and no number where the count is private."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("drawing noise")
        yield lambda rows, _: bar.update(task, description=f"{rows:,} rows read" if count else "reading")


@contextmanager
def counting(total: int, what: str) -> Iterator[Callable[[], None]]:
    """A bar of ``total`` steps on a terminal; nothing in a pipe."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda: bar.advance(task)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and value != value:
        return None
    return value
