"""The private mean of many columns: a ball around a guess, shrunk in rounds (CoinPress).

Rows are first whitened by a matrix that an earlier round released. Proof: docs/proofs/unbounded.md#mean
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from privcov.linalg.arrays import Floats
from privcov.noise.randomness import Randomness
from privcov.privacy import ZCDP
from privcov.unbounded.ball import Ball
from privcov.unbounded.covariance import Preconditioner, coinpress_budget
from privcov.unbounded.moments import Spent, mean_variance, noisy_mean
from privcov.unbounded.parameters import chi_squared_tail

_LOG_INVERSE_TAIL = math.log(100)


def recursive_mean(
    rows: Floats,
    whitening: Preconditioner,
    *,
    radius: Fraction,
    rounds: int,
    loss: ZCDP,
    randomness: Randomness,
) -> tuple[Floats, tuple[Spent, ...]]:
    """The mean of rows whose mean lies within ``radius`` of the origin: ρ-zCDP under replace-one."""
    count, dimension = rows.shape
    farthest = max(float(radius) * float(np.linalg.norm(whitening.matrix, 2)), 1e-300)
    typical = math.sqrt(chi_squared_tail(dimension, _LOG_INVERSE_TAIL))
    centre, within = np.zeros(dimension), farthest
    spent: list[Spent] = []
    for number, rho in enumerate(coinpress_budget(loss.rho, rounds)):
        share = ZCDP(rho=rho, neighbours=loss.neighbours)
        ball = Ball(
            dimension=dimension,
            radius=min(math.sqrt(within * within + 6 * within + typical * typical), within + typical),
        )
        centre = centre + noisy_mean(rows, whitening.matrix, centre, ball, share, randomness)
        noise_std = math.sqrt(mean_variance(ball, share)) * float(ball.unit) / count
        # The mean is publicly known to lie in the first ball, so no guess leaves it, whatever the noise.
        centre = centre * min(1.0, farthest / max(math.hypot(*centre), farthest))
        within = min(typical * math.hypot(1 / math.sqrt(count), noise_std), 2 * farthest)
        spent.append(Spent(f"mean {number + 1}", rho))
    return whitening.inverse @ centre, tuple(spent)
