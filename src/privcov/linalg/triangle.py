"""The upper triangle of a symmetric matrix, row by row: how many entries, where they are, and back to the whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcov.linalg.tiles import mirror

WIDE = 2**20
"""A triangle of more entries than this is kept in machine words."""


def entries(dimension: int) -> int:
    """How many entries an upper triangle has, its diagonal included."""
    return dimension * (dimension + 1) // 2


def is_wide(dimension: int) -> bool:
    """Whether a matrix of so many columns is kept in machine words.

    >>> is_wide(1447), is_wide(1448)
    (False, True)
    """
    return entries(dimension) > WIDE


def symmetric(upper: NDArray[Any], dimension: int) -> NDArray[Any]:
    """The whole matrix of an upper triangle.

    >>> symmetric(np.array([1, 2, 3]), 2).tolist()
    [[1, 2], [2, 3]]
    """
    whole = np.empty((dimension, dimension), dtype=upper.dtype)
    for i, part in enumerate(_rows(dimension)):
        whole[i, i:] = upper[part]
    mirror(whole)
    return whole


def diagonal_places(dimension: int) -> NDArray[np.intp]:
    """Where the diagonal is in the upper triangle.

    >>> diagonal_places(3).tolist()
    [0, 3, 5]
    """
    i = np.arange(dimension)
    return np.asarray(i * dimension - i * (i - 1) // 2)


def _rows(dimension: int) -> Iterator[slice]:
    """Where each row is in the upper triangle."""
    start = 0
    for length in range(dimension, 0, -1):
        yield slice(start, start + length)
        start += length
