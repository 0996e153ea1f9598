"""Plain text tables that line up on a terminal and survive a pipe."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from privcov.text.aligning import cut, line, widths


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> str:
    """Columns that line up; the first ``left`` columns are words, the others numbers.

    >>> print(table(["name", "n"], [["a", "1"], ["bb", "22"]]))
    name   n
    ──── ───
    a      1
    bb    22
    """
    room = [width if i < left else max(width, 3) for i, width in enumerate(widths(headings, rows))]
    placed = [line(cells, room, range(left)) for cells in (headings, *rows)]
    return "\n".join([placed[0], " ".join("─" * width for width in room), *placed[1:]])


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
        [cut(name), *(number(values[i, j], digits) for j in range(len(shown)))]
        for i, name in enumerate(shown)
    ]
    text = table(["", *(cut(name, 11) for name in shown)], cells)
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
