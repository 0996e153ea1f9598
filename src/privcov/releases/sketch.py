"""Sketched rows: a few random rows published in place of many people, and the matrix that follows from them.

Public values only. With r rows y, drawn from N(0, C + w²I) and rounded to the grid, the released matrix is
Σ yyᵀ/r − w²I, rounded: a function of the rows and of w², so the release says nothing that the rows do not.
"""

from __future__ import annotations

from collections.abc import Sequence

from flint import fmpz_mat

Sketch = tuple[tuple[int, ...], ...]
"""Sketched rows in units of the row grid, 2^-k."""


def mean_square(rows: Sketch) -> list[int]:
    """Σ yyᵀ/r, each entry rounded (a half goes up), as an upper triangle in units of 4^-k.

    >>> mean_square(((1, 2), (3, 4)))
    [5, 7, 10]
    """
    table = fmpz_mat([list(row) for row in rows])
    total, count, d = table.transpose() * table, len(rows), len(rows[0])
    return [(2 * int(total[i, j]) + count) // (2 * count) for i in range(d) for j in range(i, d)]


def estimate(rows: Sketch, *, ridge: int) -> list[int]:
    """The upper triangle of Σ yyᵀ/r − w²I: unbiased for the Gram matrix, given w² = ridge in units of 4^-k."""
    square, d = mean_square(rows), len(rows[0])
    for i in range(d):
        square[_diagonal(i, d)] -= ridge
    return square


def ridge_of(rows: Sketch, upper: Sequence[int]) -> int:
    """The w² that turns these rows into this matrix; a ValueError where there is none.

    >>> ridge_of(((1, 2), (3, 4)), [2, 7, 7])
    3
    """
    ridge = mean_square(rows)[0] - upper[0]
    if ridge <= 0 or estimate(rows, ridge=ridge) != list(upper):
        raise ValueError("the matrix does not follow from the sketched rows")
    return ridge


def _diagonal(i: int, d: int) -> int:
    """The place of entry (i, i) in the upper triangle."""
    return i * d - i * (i - 1) // 2
