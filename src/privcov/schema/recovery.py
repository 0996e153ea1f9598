"""Levels that add up to the intercept: the fewer columns that are summed for them, and the map that takes them back.

The levels of an exhaustive column are the corners of a regular simplex about the origin, √2 apart, as the corners
(1, 0, …), (0, 1, …) are: G levels need G − 1 columns, and a row has a squared norm of 1 − 1/G in them, the least that
corners so far apart can have. A level is 1 where the row is at its corner and 0 elsewhere, and so it is a linear
function of these columns and the intercept. Proof: docs/proofs/sensitivity.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np

from privcov.linalg.arrays import Floats
from privcov.linalg.mixing import Block, Mixing
from privcov.schema.columns import Categorical, Feature
from privcov.schema.grid import Grid
from privcov.schema.schema import Schema

_MORE = 64
"""Binary digits of a root beyond those of the grid."""


@cache
def corners(count: int, exponent: int) -> Floats:
    """The corners of the simplex on the grid of 2^-exponent: whole numbers, a corner in each of ``count`` columns.

    Corner j is e_j − b·1, and the last is −1/√G · 1, with b = 1/(G + √G). Every number is rounded toward zero, so
    that no corner has a squared norm above (1 − 1/G)·4^exponent.

    >>> corners(2, 20).tolist(), (corners(3, 20) / 2**20).round(3).tolist()
    ([[741455.0, -741455.0]], [[0.789, -0.211, -0.577], [-0.211, 0.789, -0.577]])
    """
    last = math.isqrt(4**exponent // count)
    if count == 2:
        return np.array([[float(last), -float(last)]])
    one, root = 2 ** (exponent + _MORE), math.isqrt(count * 4**_MORE)  # √G, rounded down, in units of 2^-64
    whole = count * 2**_MORE
    far = one // (whole + root + 1)  # b, rounded down
    near = 2**exponent + -one // (whole + root)  # 1 − b, with b rounded up
    made = np.full((count - 1, count), -float(far))
    np.fill_diagonal(made, float(near))
    made[:, -1] = -float(last)
    made.setflags(write=False)
    return made


def recovery(schema: Schema, *, factors: Floats | None = None, shifts: Floats | None = None) -> Mixing | None:
    """The map from the columns that are summed to the features of a release; None where they are the same.

    With ``factors`` and ``shifts`` a numeric column z is told as shift + factor · z.
    """
    summed, made = _places(schema, summed=True), _places(schema, summed=False)
    blocks: list[Block] = []
    for column, corner in scaled_corners(schema):
        back = np.linalg.inv(np.vstack([np.ones(column.width), corner]))
        blocks.append((made[column.name], (0, *summed[column.name]), _rows(back)))
    if factors is not None and shifts is not None:
        numbers = np.eye(len(factors)) if schema.shape is None else schema.shape.inverse
        told = np.column_stack([shifts, factors[:, None] * numbers])
        blocks.append((schema.numbers, (0, *schema.summed_numbers), _rows(told)))
    elif schema.shape is not None:
        blocks.append((schema.numbers, schema.summed_numbers, _rows(schema.shape.inverse)))
    if not blocks:
        return None
    return _mixing(blocks, schema.summed, schema.features)


def coding(schema: Schema) -> Mixing:
    """The map from the features of a schema without a shape to the columns that are summed."""
    summed, made = _places(schema, summed=True), _places(schema, summed=False)
    blocks = [
        (summed[column.name], made[column.name], _rows(corner)) for column, corner in scaled_corners(schema)
    ]
    return _mixing(blocks, schema.features, schema.summed)


def scaled_corners(schema: Schema) -> list[tuple[Categorical, Floats]]:
    """The exhaustive columns, and their corners in scaled units, exactly as rows have them."""
    exponent = Grid.of(schema).exponent if schema.exhaustive else 0
    return [(column, corners(column.width, exponent) * 2.0**-exponent) for column in schema.exhaustive]


def _mixing(blocks: list[Block], before: Sequence[Feature], after: Sequence[Feature]) -> Mixing:
    mixed = {place for places, *_ in blocks for place in places}
    names = {feature.name: place for place, feature in enumerate(before)}
    carried = tuple(-1 if place in mixed else names[feature.name] for place, feature in enumerate(after))
    return Mixing(carried=carried, width=len(before), blocks=tuple(blocks))


def _places(schema: Schema, *, summed: bool) -> dict[str, tuple[int, ...]]:
    """The places of each column among the features, or among the columns that are summed."""
    at, found = int(schema.intercept), {}
    for column in schema.columns:
        width = column.summed_width if summed else column.width
        found[column.name] = tuple(range(at, at + width))
        at += width
    return found


def _rows(matrix: Floats) -> tuple[tuple[float, ...], ...]:
    return tuple(map(tuple, matrix.tolist()))
