"""Plain text tables that line up on a terminal and survive a pipe."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> str:
    """Columns that line up; the first ``left`` columns are words, the others numbers.

    >>> print(table(["name", "n"], [["a", "1"], ["bb", "22"]]))
    name   n
    ──── ───
    a      1
    bb    22
    """
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    widths = [width if i < left else max(width, 3) for i, width in enumerate(widths)]

    def line(cells: Sequence[str]) -> str:
        placed = [
            c.ljust(w) if i < left else c.rjust(w) for i, (c, w) in enumerate(zip(cells, widths, strict=True))
        ]
        return " ".join(placed).rstrip()

    return "\n".join([line(headings), " ".join("─" * width for width in widths), *map(line, rows)])


def matrix(
    names: Sequence[str],
    values: NDArray[np.float64],
    *,
    digits: int = 2,
    most: int = 12,
    all_of_it: str = "--json prints all",
) -> str:
    """A symmetric matrix with its names; a wide one shows its first columns and says so."""
    shown = names[:most]
    cells = [
        [name, *(number(values[i, j], digits) for j in range(len(shown)))] for i, name in enumerate(shown)
    ]
    text = table(["", *(_short(name) for name in shown)], cells)
    hidden = len(names) - len(shown)
    return text + (f"\n… and {hidden} more columns ({all_of_it})" if hidden else "")


def number(value: float, digits: int = 2) -> str:
    """A number of about ``digits`` decimals, short at every size; undefined is a dash.

    >>> number(0.123), number(123456.7), number(float("nan"))
    ('0.12', '1.235e+05', '–')
    """
    if np.isnan(value):
        return "–"
    return f"{value:.{digits}f}" if abs(value) < 10_000 else f"{value:.4g}"


def _short(name: str, width: int = 11) -> str:
    return name if len(name) <= width else name[: width - 1] + "…"
