"""Public candidates for the row-norm bound, and what each would cut off: one exact reading of the table."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcov.errors import InternalError
from privcov.schema import Schema
from privcov.schema.grid import Grid
from privcov.summing.bounding import Bounding
from privcov.summing.engines import AnyFragment, Engine, Local, Report, Result, gather
from privcov.table import open_table

CANDIDATES = 24
SHRINK = Fraction(7, 5)
"""What the clippable squared norm is divided by, from one candidate to the next."""
_UNIT = 2**20


def clippable(schema: Schema) -> tuple[NDArray[np.bool_], Fraction]:
    """The features whose squared norm a bound leaves room for, and the squared norm of the others, which is spared."""
    if not schema.keeps_indicators:
        return np.ones(schema.summed_dimension, dtype=np.bool_), Fraction(0)
    counted = np.array([f.kind == "numeric" and f.column != schema.weight for f in schema.summed])
    counted[list(schema.number_indicators)] = True  # they leave less room to the row that has them
    return counted, schema.fixed_squared_norm - len(schema.number_indicators)


def candidates(
    schema: Schema, *, count: int = CANDIDATES, shrink: int | Fraction = SHRINK
) -> tuple[Schema, ...]:
    """The schema with its own bound, and with bounds whose clippable part shrinks in squares, repeatedly."""
    whole = schema.squared_norm_bound
    fixed = schema.fixed_squared_norm if schema.keeps_indicators else Fraction(0)
    if whole == fixed:  # nothing could be clipped
        return (schema,)
    squares = [fixed + (whole - fixed) / shrink**j for j in range(1, count)]
    roots = [Fraction(math.isqrt(int(square * _UNIT**2)) + 1, _UNIT) for square in squares]
    return (schema, *(replace(schema, row_norm_bound=root) for root in roots))


@dataclass(frozen=True)
class Cut:
    """Sensitive sums over rows, in grid units of the schema's own bound: nothing prints them."""

    totals: tuple[int, ...]
    """Σ of the squared norm that each candidate would cut off."""
    trace: int
    """Σ of squared norms."""
    rows: int

    def __repr__(self) -> str:
        return "<sums over rows: sensitive>"


def cut_off(data: Any, schema: Schema, options: Sequence[Schema], *, engine: Engine | None = None) -> Cut:
    """What each candidate would cut off, exact, the same on every engine."""
    work = partial(cut_fragment, schema=schema, options=tuple(options))
    total = [0] * (len(options) + 2)
    most = Grid.of(schema).squared_norm_bound
    for rows, sent in gather(open_table(data, schema), work, Local() if engine is None else engine, None):
        *cut, trace, count = part = json.loads(sent)
        # What no rows can have is no sum: a smaller bound cuts more off, and nothing more than there is.
        if {type(value) for value in part} != {int} or count != rows or not trace <= rows * most:
            raise InternalError
        if [0, *cut, trace] != sorted([0, *cut, trace]):
            raise InternalError
        total = [whole + one for whole, one in zip(total, part, strict=True)]
    return Cut(tuple(total[:-2]), *total[-2:])


def cut_fragment(
    fragment: AnyFragment, *, schema: Schema, options: Sequence[Schema], report: Report | None = None
) -> Result:
    """The same sums over one fragment, where it is read: sensitive bytes, which are added and never stored."""
    bounding = Bounding.of(schema)
    counted, fixed = clippable(schema)
    scale = 4**bounding.grid.exponent
    limits = [int((option.squared_norm_bound - fixed) * scale) for option in options]
    totals, trace, count = [0] * len(options), 0, 0
    for block in fragment.open(schema).blocks():
        for start in range(0, len(block[0]), 4096):
            rows = bounding.rows(block, start, start + 4096)
            squares = rows * rows  # whole numbers, summed below 2^53: exact in any order
            squared = squares[:, counted].sum(axis=1)
            trace += int(squares.sum())
            count += len(rows)
            # A row that counts as u is √u times as long, and so is what it is cut to.
            share = 1.0 if schema.weight is None else squares[:, 0] / scale
            for j, limit in enumerate(limits):
                totals[j] += int(np.maximum(squared - np.floor(share * limit), 0.0).sum())
    return count, json.dumps([*totals, trace, count]).encode("ascii")
