"""One private round: the noisy second moment, or the noisy mean, of rows clipped to a ball.

Both sum integers exactly and add integer noise that is exactly distributed, so a round is ρ-zCDP as it runs;
all that follows is post-processing. Proof: docs/proofs/unbounded.md#round
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from privcov.linalg.arrays import Floats
from privcov.mechanisms.gaussian import Gaussian
from privcov.mechanisms.sensitivity import Sensitivity
from privcov.noise.exact import discrete_gaussian
from privcov.noise.randomness import Randomness
from privcov.privacy import ZCDP
from privcov.summing.gram import Gram
from privcov.unbounded.ball import Ball, integer_blocks

TIGHT = Gaussian()
"""The noise of a round, unless a paper's is asked for."""


@dataclass(frozen=True)
class Spent:
    """What one round was for, and its exact share of ρ."""

    step: str
    rho: Fraction


def noisy_second_moment(
    rows: Floats,
    matrix: Floats,
    ball: Ball,
    loss: ZCDP,
    randomness: Randomness,
    noise: Gaussian = TIGHT,
) -> Floats:
    """(1/n) Σ wwᵀ of the clipped rows w = clip(matrix · x) plus symmetric Gaussian noise: ρ-zCDP under replace-one.

    The noise is that of the ``gaussian`` mechanism: the orthogonal ensemble, Δ_F = √2 radius²/n, free trace; or
    independent entries of standard deviation Δ_F/√(2ρ), as papers draw it.
    """
    draw = noise.draw(loss=loss, grid=ball.grid, randomness=randomness)
    gram = Gram(ball.grid)
    for block in integer_blocks(rows, matrix, ball):
        gram.add(block)
    worth = ball.unit**2 / len(rows)
    upper = np.zeros((ball.dimension, ball.dimension))
    upper[np.triu_indices(ball.dimension)] = [float(int(value) * worth) for value in draw.answer(gram)]
    return upper + np.triu(upper, 1).T


def noisy_mean(
    rows: Floats, matrix: Floats, centre: Floats, ball: Ball, loss: ZCDP, randomness: Randomness
) -> Floats:
    """(1/n) Σ w of the clipped rows w = clip(matrix · x − centre) plus discrete Gaussian noise: ρ-zCDP."""
    noise = discrete_gaussian(randomness, variance=mean_variance(ball, loss), count=ball.dimension)
    total = np.zeros(
        ball.dimension, dtype=np.int64
    )  # each entry at most rows · 2^20: no overflow below 2^43 rows
    for block in integer_blocks(rows, matrix, ball, centre):
        total += block.astype(np.int64).sum(axis=0)
    worth = ball.unit / len(rows)
    return np.array([float((int(s) + int(z)) * worth) for s, z in zip(total, noise, strict=True)])


def mean_variance(ball: Ball, loss: ZCDP) -> Fraction:
    """Δ²/(2ρ) in squared integer steps."""
    return Sensitivity.of(ball.grid, loss.neighbours).row_sum_squared / (2 * loss.rho)


def projected(matrix: Floats, ball: Ball) -> Floats:
    """The nearest moment that rows of the ball can have: eigenvalues from 0 to radius², none turned positive."""
    values, vectors = np.linalg.eigh(matrix)
    return symmetric((vectors * np.clip(values, 0.0, ball.radius**2)) @ vectors.T)


def symmetric(matrix: Floats) -> Floats:
    """Remove what rounding leaves of asymmetry."""
    return (matrix + matrix.T) / 2
