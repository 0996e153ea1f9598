"""The public integer grid that rows are put on, and the exact bound their integer norms obey.

Rows live on multiples of 2^-k, the Gram matrix on multiples of 4^-k. With at most 2^40 for the squared
integer norm of a row, float64 products of 8 192 rows are exact integers (8 192 · 2^40 = 2^53), whatever the
order of summation: see docs/proofs/exact-gram.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from privcov.errors import ParameterError
from privcov.schema import Numeric, Schema
from privcov.schema.weights import WEIGHT_SQUARE

ROW_BITS = 40
"""The squared integer norm of a row is at most 2^ROW_BITS."""
BLOCK_ROWS = 2 ** (53 - ROW_BITS)
"""Rows whose Gram matrix float64 can sum without a rounding."""


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Public facts a mechanism may calibrate to: dimension, grid exponent k, bound on the integer norm²."""

    dimension: int
    exponent: int
    squared_norm_bound: int
    max_rows_per_person: int = 1
    intercept: bool = False
    """Whether column 0 is the integer 2^k in every row, whatever the row says."""
    longest: float = 1.0
    """The largest scaled value that a cell may have; at least 1."""
    strata: bool = False
    """Whether this is the grid of several matrices, one for each stratum, and a person may move between them."""
    pooled: bool = False
    """Whether this is the grid of their sum, released beside them, with noise of the same kind as theirs."""

    @classmethod
    def of(cls, schema: Schema, *, strata: bool = False, pooled: bool = False) -> Grid:
        """The finest grid on which the exactness bounds above hold: of one matrix, one a stratum, or their sum."""
        bound = schema.squared_norm_bound
        norms = schema.largest_squared_norm, schema.largest_scaled_square  # after a shape, and before
        largest = max(schema.dimension, *map(math.ceil, norms))
        exponent = (52 - (largest - 1).bit_length()) // 2  # unclipped norms stay exact too
        while bound * 4**exponent > 2**ROW_BITS:
            exponent -= 1
        squared = int(bound * 4**exponent)
        if squared < 2**20:
            least = float(2**10 / Fraction(2) ** exponent)
            raise ParameterError(
                "E205",
                f"row_norm_bound {float(bound) ** 0.5:g} is too small for {schema.dimension} columns; "
                f"it must be at least {least:.2g}.",
            )
        return cls(
            dimension=schema.summed_dimension,
            exponent=exponent,
            squared_norm_bound=squared,
            max_rows_per_person=schema.max_rows_per_person,
            # Clipping must spare the intercept, and a row with a missing cell must not become zero.
            intercept=schema.intercept
            and schema.keeps_indicators
            and not schema.empties_rows
            and schema.weight is None,
            longest=_longest(schema),
            strata=strata,
            pooled=pooled,
        )

    @property
    def largest_product(self) -> float:
        """The most that one row adds to an entry of the Gram matrix, in grid units."""
        cell = min(self.longest * 2.0**self.exponent, float(self.squared_norm_bound) ** 0.5)
        return max(4.0**self.exponent, cell * cell)

    @property
    def unit(self) -> Fraction:
        """One grid step of the Gram matrix, in scaled units: 4^-k."""
        return Fraction(1, 4**self.exponent)


def _longest(schema: Schema) -> float:
    if schema.shape is not None:
        return float(schema.shape.largest_square) ** 0.5
    return max([1.0, *(c.reach for c in schema.columns if isinstance(c, Numeric) and c.scale is not None)])


def framed_weight(schema: Schema) -> Fraction:
    """The squared norm that the numeric columns of a row may have in a private frame, in scaled units.

    Beside 1 for the intercept and each indicator, F in all. The noise on an entry grows with F + W; seen from
    standardised numeric columns it is smaller by W for two of them, and by √W for one. W = 9 is near the best for
    numeric columns alone, whose means have a round of their own; with others W = F, and at least 4, balances both
    kinds: docs/explain/frame.md.
    """
    fixed = schema.fixed_squared_norm
    plain = fixed - (0 if schema.weight is None else WEIGHT_SQUARE)
    return Fraction(9 if plain == 1 else max(Fraction(4), fixed))


def framed_grid(schema: Schema, *, strata: bool = False) -> Grid:
    """A grid with the squared norm that every framed release of a schema has: laws of noise follow from it.

    ``strata``: whether there is a matrix for each of several strata.
    """
    exponent, squared = 16, schema.fixed_squared_norm + framed_weight(schema)
    return Grid(
        dimension=schema.summed_dimension,
        exponent=exponent,
        squared_norm_bound=int(squared * 4**exponent),
        max_rows_per_person=schema.max_rows_per_person,
        intercept=schema.intercept and not schema.empties_rows and schema.weight is None,
        strata=strata,
    )
