"""Plain text tables that line up on a terminal and survive a pipe."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from privcov.text.aligning import cut, line, parts, room, squeezed, terminal, widths

MOST = 12
"""Columns of a matrix that are printed."""


def table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1, within: int | None = None
) -> str:
    """Columns that line up; the first ``left`` columns are words, the others numbers.

    Columns for which a line of ``within`` cells, or of the terminal, has no room stand in a further table below.

    >>> print(table(["name", "n"], [["a", "1"], ["bb", "22"]]))
    name   n
    ──── ───
    a      1
    bb    22
    """
    taken = [width if i < left else max(width, 3) for i, width in enumerate(widths(headings, rows))]
    tables = []
    for part in parts(taken, terminal() if within is None else within):
        words = [k for k, place in enumerate(part) if place < left]
        widest = [taken[place] for place in part]
        placed = [line([cells[place] for place in part], widest, words) for cells in (headings, *rows)]
        tables.append("\n".join([placed[0], " ".join("─" * width for width in widest), *placed[1:]]))
    return "\n\n".join(tables)


def matrix(
    names: Sequence[str],
    values: NDArray[np.float64],
    *,
    digits: int = 2,
    most: int = MOST,
    unsure: NDArray[np.bool_] | None = None,
    all_of_it: str = "--json prints all",
) -> str:
    """A symmetric matrix with its names, what is ``unsure`` in brackets; a wide one shows its first columns.

    >>> print(matrix(["a", "b"], np.eye(2)))
         a    b
    ─ ──── ────
    a 1.00 0.00
    b 0.00 1.00
    """
    shown = names[:most]
    doubted = np.zeros(values.shape, dtype=np.bool_) if unsure is None else unsure
    cells = [
        [cut(name), *(_cell(values[i, j], digits, doubted[i, j]) for j in range(len(shown)))]
        for i, name in enumerate(shown)
    ]
    text = table(["", *(squeezed(name, 11) for name in shown)], cells, within=room())
    hidden = len(names) - len(shown)
    return text + (f"\n… and {hidden} more columns ({all_of_it})" if hidden else "")


def _cell(value: float, digits: int, unsure: np.bool_) -> str:
    return f"({number(value, digits)})" if unsure else number(value, digits)


def number(value: float, digits: int = 2) -> str:
    """A number of about ``digits`` decimals, short at every size; undefined is a dash.

    >>> number(0.123), number(123456.7), number(float("nan")), number(-0.001)
    ('0.12', '1.235e+05', '–', '0.00')
    """
    if np.isnan(value):
        return "–"
    near = round(float(value), digits) + 0.0  # no zero has a sign
    return f"{near:.{digits}f}" if abs(value) < 10_000 else f"{value:.4g}"
