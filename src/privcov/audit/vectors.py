"""Private directions against two independent accounts of their law: a quadrature, and a sampler of its own."""

from __future__ import annotations

import math

import numpy as np

from privcov.audit.fit import Fit, one_sample, thinned_bingham, two_sample
from privcov.audit.marginals import spiked_bingham
from privcov.audit.parallel import Progress, gather
from privcov.audit.settings import VIEW_UNIT, Setting, vector_strength
from privcov.noise.randomness import kernel
from privcov.privacy import Loss
from privcov.schema.grid import Grid
from privcov.summing.gram import Gram

STRENGTH = 4.0
"""c·λ of the tables looked at: far from uniform, and not yet concentrated."""


def fit_vectors(
    setting: Setting, loss: Loss, runs: int, *, processes: int | None, progress: Progress | None
) -> list[Fit]:
    """The first vector on a table along one axis, and on one whose spectrum falls evenly."""
    sampler, grid = setting.sampler, setting.sampler.grid
    coefficient = float(vector_strength(sampler.mechanism, loss, grid))
    unit = coefficient * math.isqrt(grid.squared_norm_bound) ** 2  # what one row along an axis adds to c·λ
    spike = max(1, round(STRENGTH / unit))
    even = [round(spike * (grid.dimension - 1 - i) / (grid.dimension - 1)) for i in range(grid.dimension)]
    counts = [[spike] + [0] * (grid.dimension - 1), even]
    made = gather(
        [(sampler.answers(lambda c=c: _table(c, grid)), runs) for c in counts],  # type: ignore[misc]
        processes=processes,
        progress=progress,
    )
    squares = [_squares(setting, outputs) for outputs in made]
    spectrum = [unit * count for count in even]
    oracle = thinned_bingham(kernel(), spectrum, runs) ** 2
    return [
        one_sample(
            "first vector on one axis", "quadrature", squares[0][:, 0],
            spiked_bingham(grid.dimension, unit * spike),
        ),
        two_sample(
            "first vector on many axes", "thinned uniform", squares[1] @ np.array(even), oracle @ np.array(even)
        ),
    ]  # fmt: skip


def _squares(setting: Setting, outputs: np.ndarray) -> np.ndarray:
    """u_i² of every vector: the diagonal of uuᵀ."""
    diagonal = np.equal(*np.triu_indices(setting.sampler.grid.dimension))
    return setting.seen(outputs)[:, diagonal] / VIEW_UNIT


def _table(counts: list[int], grid: Grid) -> Gram:
    """So many rows along each axis, at the norm bound."""
    made = Gram(grid)
    made.add(np.repeat(np.eye(grid.dimension), counts, axis=0) * math.isqrt(grid.squared_norm_bound))
    return made
