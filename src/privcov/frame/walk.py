"""The sparse vector walk of ``adaptive``: from the largest radius down, until rows cut off outweigh noise.

Proof: docs/proofs/adaptive.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from privcov.errors import ParameterError, without_reasons
from privcov.frame.radii import Cut, candidates, cut_off
from privcov.mechanisms.adaptive import Adaptive, PrivateTrace
from privcov.mechanisms.sensitivity import Sensitivity
from privcov.noise.exact import discrete_laplace
from privcov.noise.randomness import Randomness
from privcov.privacy import ZCDP, PureDP
from privcov.schema import Schema
from privcov.schema.grid import Grid
from privcov.summing.engines import Engine

RADII = 9
"""Each half the one before: the last is 256 times shorter than the declared bound."""


def radii(schema: Schema) -> tuple[Schema, ...]:
    """The schema with its own bound and with smaller ones the grid can hold, in the order of the walk: public."""
    fitting: list[Schema] = []
    for option in candidates(schema, count=RADII, shrink=4):
        with suppress(ParameterError):
            Grid.of(option)
            fitting.append(option)
    return tuple(fitting)


def walk_radii(
    data: Any,
    *,
    schema: Schema,
    mechanism: Adaptive,
    price: PureDP,
    trace: ZCDP,
    rest: ZCDP,
    randomness: Randomness,
    engine: Engine | None = None,
) -> tuple[Schema, Adaptive]:
    """The schema with a privately chosen bound, and what to release under it: ``price`` for the walk, ``trace``.

    Reads the table once; the release then reads it again.
    """
    grid = Grid.of(schema)
    mechanism.check_grid(grid)
    options = radii(schema)
    grids = [Grid.of(option) for option in options]
    sensitivity = Sensitivity.of(grid, price.neighbours)

    def choose(noisy_trace: PrivateTrace, noises: tuple[int, list[int]]) -> tuple[Schema, Adaptive]:
        cut: Cut = cut_off(data, schema, options, engine=engine)
        private = float(noisy_trace.answer(cut.trace, rows=cut.rows) * grid.unit)
        errors = [mechanism.predicted(loss=rest, grid=each, trace=private) for each in grids]
        # The thresholds: public facts and the private trace alone. The declared bound cuts nothing off.
        levels = [math.floor(min(error.values()) / grid.unit) for error in errors]
        place = first_above(cut.totals[1:], levels[1:], *noises)
        taken = min(errors[place], key=errors[place].__getitem__)
        return options[place], replace(mechanism, release=taken)

    return without_reasons(
        choose,
        PrivateTrace.draw(trace, grid, randomness),
        walk_noise(randomness, sensitivity, price, count=len(options) - 1, mechanism=mechanism),
    )


def first_above(
    queries: Sequence[int], levels: Sequence[int], threshold_noise: int, query_noise: Sequence[int]
) -> int:
    """How many queries come before the first that is at or above its level, all noise counted.

    >>> first_above([0, 3, 9], [5, 5, 5], 0, [0, 0, 0])
    2
    """
    for place, (query, level, noise) in enumerate(zip(queries, levels, query_noise, strict=True)):
        if query + noise >= level + threshold_noise:
            return place
    return len(queries)


def walk_noise(
    randomness: Randomness, sensitivity: Sensitivity, price: PureDP, *, count: int, mechanism: Adaptive
) -> tuple[int, list[int]]:
    """One discrete Laplace for all thresholds and one for each query, of scales that cost half of ε each.

    A query needs twice the scale where neighbours may move some queries up and others down; the paper always
    takes it.
    """
    tight = sensitivity.cut_off_moves_one_way and mechanism.constants == "tight"
    scale = math.ceil(2 * sensitivity.cut_off / price.epsilon)
    one = discrete_laplace(randomness, scale=scale, count=1)
    each = discrete_laplace(randomness, scale=scale if tight else 2 * scale, count=count)
    return int(one[0]), [int(value) for value in each]
