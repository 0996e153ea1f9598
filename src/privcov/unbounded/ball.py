"""The row-local map into a ball of integers: transform, clip, put on the grid, check the norm exactly.

The transform is public: it is computed from earlier releases, never from rows. Every step is one correctly
rounded operation on one element, so an integer row depends on its own row alone, wherever it stands and
whatever the library of matrix products does. Proof: docs/proofs/unbounded.md#rows
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privcov.linalg.arrays import Floats
from privcov.schema.grid import BLOCK_ROWS, ROW_BITS, Grid

EXPONENT = ROW_BITS // 2
_CELLS = 2**17


@dataclass(frozen=True, kw_only=True)
class Ball:
    """The ball of this radius, in whole numbers: the integer 2^20 stands for the radius.

    >>> Ball(dimension=2, radius=5.0).rows(np.array([[3.0, 0.0], [30.0, 40.0]])) // 2**18
    array([[2., 0.],
           [2., 3.]])
    """

    dimension: int
    radius: float

    @property
    def grid(self) -> Grid:
        """The public facts a mechanism calibrates to: squared integer norms are at most 2^40."""
        return Grid(dimension=self.dimension, exponent=EXPONENT, squared_norm_bound=4**EXPONENT)

    @property
    def unit(self) -> Fraction:
        """What one integer step is worth in the rows' own units."""
        return Fraction(self.radius) / 2**EXPONENT

    def rows(self, rows: Floats) -> Floats:
        """Whole-number rows of squared norm at most 2^40, exactly.

        Longer rows are shortened to the radius; a row with a number that is not finite becomes the zero row.
        """
        with np.errstate(all="ignore"):  # a warning would tell that a huge value is there
            # Rounding to the grid moves a row by at most √d/2; 2 more covers every float rounding.
            inner = 2**EXPONENT - (math.isqrt((self.dimension - 1) // 4) + 1) - 2
            placed = rows * (2**EXPONENT / self.radius)
            largest = np.abs(rows).max(axis=1)
            direction = rows / largest[:, None]
            length = np.sqrt(_squared_norms(direction))
            long = ~(length * (largest * (2**EXPONENT / self.radius)) <= inner)
            shortened = direction * (inner / length)[:, None]
            placed = np.where(long[:, None], shortened, placed)
            placed[~np.isfinite(placed).all(axis=1)] = 0.0
            np.rint(placed, out=placed)
            # Unreachable, and cheap to check on every row: the guarantee rests on these integers alone.
            placed[~_fits(placed)] = 0.0
        return placed


def transformed(rows: Floats, matrix: Floats) -> Floats:
    """``matrix`` times every row, one elementwise step after the other, so that no row can touch another."""
    result = np.zeros((len(rows), len(matrix)))
    with np.errstate(all="ignore"):
        for place in range(rows.shape[1]):
            result += np.multiply.outer(rows[:, place], matrix[:, place])
    return result


def integer_blocks(
    rows: Floats, matrix: Floats, ball: Ball, centre: Floats | None = None
) -> Iterator[Floats]:
    """The integer rows of ``matrix`` times every row, less ``centre``, in blocks that a Gram matrix adds exactly."""
    step = max(256, min(BLOCK_ROWS, _CELLS // len(matrix)))
    for start in range(0, len(rows), step):
        with np.errstate(all="ignore"):
            white = transformed(rows[start : start + step], matrix)
            moved = white if centre is None else white - centre
        yield ball.rows(moved)


def _fits(placed: Floats) -> NDArray[np.bool_]:
    """Whether Σ q² ≤ 4^k: with every |q| ≤ 2^k and d ≤ 2^12 the sum is a whole number float64 holds."""
    small = (np.abs(placed) <= 2**EXPONENT).all(axis=1)
    return small & (_squared_norms(np.where(small[:, None], placed, 0.0)) <= 4**EXPONENT)


def _squared_norms(rows: Floats) -> Floats:
    total = np.zeros(len(rows))
    for place in range(rows.shape[1]):
        total += rows[:, place] * rows[:, place]
    return total
