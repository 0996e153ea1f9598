"""A public linear map of the numeric columns, quantised so that every engine applies it to the same bits.

A frame may turn the scaled numeric cells u of a row into z = P u before rows are shortened and summed. P is symmetric
and positive, and its entries are multiples of 2^-20: then P u is a sum of whole numbers that float64 holds exactly, in
any order. Proof: docs/proofs/frame.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats, Matrix
from privcov.linalg.triangle import symmetric

BITS = 20
"""Entries of a map are multiples of 2^-BITS."""
MOST_SHAPED = 64
"""Numeric columns that a map may have: a pass over the table multiplies every row by it."""
STRETCH = 64.0
"""The most that a map stretches a direction, and that it shortens one."""
_MOST_LONGEST = 2**20


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The map z = P u of the scaled numeric cells of a row, and the norm that rows are shortened to before it.

    Parameters
    ----------
    upper : tuple of int
        The upper triangle of P, row by row, in units of 2^-20.
    longest : int
        Rows whose numeric cells have a larger norm, in scaled units, are shortened to it before they are mapped.

    Raises
    ------
    ParameterError
        The numbers are no triangle of a positive matrix that stretches moderately, or out of range (E205).

    Examples
    --------
    >>> import numpy as np
    >>> from privcov.schema.shape import Shape
    >>> shape = Shape.of(np.array([[2.0, 0.5], [0.5, 1.0]]), longest=16)
    >>> shape.upper, shape.columns, shape.largest_square
    ((2097152, 524288, 1048576), 2, Fraction(1408, 1))
    """

    upper: tuple[int, ...]
    longest: int

    def __post_init__(self) -> None:
        d = self.columns
        sizes = all(type(one) is int and abs(one) < 2**40 for one in (*self.upper, self.longest))
        if not (sizes and 2 <= d <= MOST_SHAPED and len(self.upper) == d * (d + 1) // 2):
            raise ParameterError("E205", "a shape is the upper triangle of a matrix of 2 to 64 columns.")
        if not 1 <= self.longest <= _MOST_LONGEST:
            raise ParameterError("E205", "the norm before a shape must be a whole number from 1.")
        values = np.linalg.eigvalsh(self.matrix)
        if not (values[0] >= 0.5 / STRETCH and values[-1] <= 2 * STRETCH):
            raise ParameterError("E205", "a shape must be a positive matrix that stretches moderately.")

    @classmethod
    def of(cls, matrix: Matrix, *, longest: int) -> Shape:
        """The nearest map on the grid of 2^-20 to a symmetric positive matrix."""
        places = np.triu_indices(len(matrix))
        return cls(upper=tuple(int(value) for value in np.rint(matrix[places] * 2.0**BITS)), longest=longest)

    @property
    def columns(self) -> int:
        """The number of numeric columns."""
        return (math.isqrt(8 * len(self.upper) + 1) - 1) // 2

    @cached_property
    def integers(self) -> Floats:
        """P in units of 2^-20: whole numbers."""
        return np.asarray(symmetric(np.array(self.upper, dtype=np.float64), self.columns))

    @cached_property
    def matrix(self) -> Matrix:
        """P, exactly."""
        return np.asarray(self.integers * 2.0**-BITS)

    @cached_property
    def inverse(self) -> Matrix:
        """What takes a mapped row back: u = P⁻¹ z."""
        made = np.linalg.inv(self.matrix)
        return np.asarray((made + made.T) / 2)

    @property
    def longest_back(self) -> float:
        """The most that taking a row back makes it longer; at least 1."""
        return max(1.0, 1.0 / float(np.linalg.eigvalsh(self.matrix)[0]))

    @cached_property
    def largest_square(self) -> Fraction:
        """The most that a map of a row of the longest norm has as its squared norm: ‖P‖² · longest², or more.

        The operator norm of a symmetric matrix is at most its largest sum of magnitudes in a row, and its Frobenius
        norm.
        """
        whole = np.abs(self.integers).astype(np.int64).astype(object)
        squared = min(int((whole * whole).sum()), max(int(row.sum()) for row in whole) ** 2)
        return Fraction(squared, 4**BITS) * self.longest**2
