"""How commands speak: results on stdout, notes and progress on stderr, JSON when asked.

A file, its name, a ledger or a worker may hold characters that clear a screen or forge a line. They are escaped here,
once, and no command prints in any other way.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from privcov.text.grammar import escaped

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
force_option = click.option("--force", is_flag=True, help="Replace an output that is already there.")

Progress = Callable[[int, int | None, int | None], None]


def all_of(*options: Callable[..., Any]) -> Callable[..., Any]:
    """Several options as one, in the order in which the help of a command lists them."""

    def decorated(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorated


def one_thread() -> None:
    """Let BLAS use one thread, unless told otherwise: called before NumPy is first imported, which is when it asks."""
    for library in ("OPENBLAS", "OMP", "MKL", "BLIS"):
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")


def small_pages() -> None:
    """Let NumPy take pages of ordinary size, unless told otherwise: called before NumPy is first imported.

    Huge ones are cleared whole each time: for arrays of some megabytes that live briefly, longer than the work on them.
    """
    os.environ.setdefault("NUMPY_MADVISE_HUGEPAGE", "0")


def say(text: str) -> None:
    """A result on stdout: one line or several."""
    print(escaped(text), flush=True)


def say_prose(text: str) -> None:
    """Sentences on stdout, each line in as many as there is room for: also in a pipe, as ``show`` and ``plan`` do."""
    from privcov.text.aligning import paragraph  # on use: --help is quick without what it imports

    say("\n".join(paragraph(line) for line in text.split("\n")))


def say_line(text: str) -> None:
    """A result of one line, whatever is in it: a path may have a line break in its name."""
    say(_one_line(text))


def note(text: str) -> None:
    """A line for the person at the terminal; never a result."""
    print(_one_line(escaped(text)), file=sys.stderr)


def warn(text: str) -> None:
    """Several lines for the person at the terminal; the text is ours, and what it quotes is escaped."""
    print(escaped(text), file=sys.stderr)


def complain(message: str) -> None:
    """What went wrong, on one line."""
    note(f"privcov: {' '.join(message.split())}")


def print_json(value: Any) -> None:
    """One JSON document on stdout; what is no finite number becomes null."""
    text = json.dumps(_plain(value), ensure_ascii=True, allow_nan=False, indent=2)
    print(text.replace("\x7f", "\\u007f"))  # the one control character that JSON leaves as it is


@contextmanager
def reading(*, count: bool = True) -> Iterator[Progress | None]:
    """Rows and bytes done, their rate and the time left, on a terminal; nothing in a pipe.

    Where the count of rows is private, what is shown is the share that is done, and no amount.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("drawing noise", total=None)
        began: list[float] = []

        def report(rows: int, read: int | None, size: int | None) -> None:
            if not began:
                began.append(time.monotonic())
            words = done_words(rows, read, seconds=time.monotonic() - began[0]) if count else "reading"
            bar.update(task, description=words, completed=read or 0, total=size)

        yield report


def done_words(rows: int, read: int | None, *, seconds: float) -> str:
    """How much was read, and how fast.

    >>> done_words(2_500_000, 800_000_000, seconds=2.0)
    '2,500,000 rows, 800 MB, 1.2 million rows/s'
    """
    words = f"{rows:,} rows"
    if read is not None:
        words += f", {read / 1e6:,.0f} MB"
    return words + (f", {rows / seconds / 1e6:.1f} million rows/s" if seconds > 0 else "")


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


@contextmanager
def counting_from(what: str) -> Iterator[tuple[Callable[[int], None], Callable[[], None]]]:
    """A bar whose length is told when it is known, with the time left, on a terminal; nothing in a pipe."""
    if not sys.stderr.isatty():
        yield (lambda total: None), (lambda: None)
        return
    from rich.console import Console
    from rich.progress import MofNCompleteColumn
    from rich.progress import Progress as Bar

    with Bar(
        *Bar.get_default_columns(), MofNCompleteColumn(), console=Console(stderr=True), transient=True
    ) as bar:
        task = bar.add_task(what, total=None)
        yield (lambda total: bar.update(task, total=total)), (lambda: bar.advance(task))


def _one_line(text: str) -> str:
    return text.replace("\n", "\\n")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
