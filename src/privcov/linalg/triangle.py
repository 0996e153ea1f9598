"""The upper triangle of a symmetric matrix, row by row: how many entries, where they are, and back to the whole.

A large matrix and its transpose, tile by tile.

Two tiles fit a core's cache; along a column of thousands of rows every entry is a miss.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

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


_TILE = 256


def mirror(matrix: NDArray[Any]) -> None:
    """Copy the upper triangle over the lower one, in place.

    >>> matrix = np.array([[1, 2], [0, 3]])
    >>> mirror(matrix)
    >>> matrix.tolist()
    [[1, 2], [2, 3]]
    """
    for tile, opposite in _tiles(matrix):
        if tile is opposite:
            for i in range(len(tile)):
                tile[i:, i] = tile[i, i:]
        else:
            opposite[...] = tile.T


def symmetrized(matrix: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """The mean of a matrix and its transpose, and the largest difference between the two.

    >>> mean, difference = symmetrized(np.array([[1.0, 2.0], [4.0, 3.0]]))
    >>> mean.tolist(), difference
    ([[1.0, 3.0], [3.0, 3.0]], 2.0)
    """
    mean, largest = np.array(matrix, dtype=np.float64), 0.0
    for tile, opposite in _tiles(mean):
        largest = np.maximum(largest, np.abs(tile - opposite.T).max(initial=0.0))  # NaN stays NaN
        tile[...] = (tile + opposite.T) / 2
        opposite[...] = tile.T
    return mean, float(largest)


def _tiles(matrix: NDArray[Any]) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """The tiles of the upper triangle, each with the one across the diagonal; on it they are the same."""
    steps = [slice(start, start + _TILE) for start in range(0, len(matrix), _TILE)]
    for i, rows in enumerate(steps):
        tile = matrix[rows, rows]
        yield tile, tile
        for columns in steps[i + 1 :]:
            yield matrix[rows, columns], matrix[columns, rows]
