"""Three ways to a private covariance of rows of mean zero, each with Σ ⪯ K·I public.

``truncated`` is one round. ``preconditioned`` is the lecture's recursion with the lecture's constants; they
make it a theorem and of little use. ``coinpress`` is the practical recursion (Biswas, Dong, Kamath and
Ullman 2020) with two departures from its public code: later preconditioners multiply from the left, so that
the estimate is A⁻¹ Z A⁻ᵀ also when they do not commute, and the projection is a projection.

Proof: docs/proofs/unbounded.md#covariance

The private mean of many columns: a ball around a guess, shrunk in rounds (CoinPress).

Rows are first whitened by a matrix that an earlier round released. Proof: docs/proofs/unbounded.md#mean
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats
from privcov.mechanisms.gaussian import Gaussian
from privcov.noise.randomness import Randomness
from privcov.privacy import ZCDP
from privcov.unbounded.moments import (
    TIGHT,
    Ball,
    Spent,
    mean_variance,
    noisy_mean,
    noisy_second_moment,
    projected,
    symmetric,
)
from privcov.unbounded.parameters import chi_squared_tail, log_inverse

_GOAL = Fraction(1000)
_MOST_CONDITION = 10**14
_INFLATE, _SHRINK = 1.05, Fraction(9, 10)


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What is public before a row is read."""

    largest_variance: Fraction
    smallest_variance: Fraction
    """A lower bound on the variance in every direction; only ``preconditioned`` reads it."""
    tail: Fraction
    rounds: int
    noise: Gaussian = TIGHT
    """Of a round of ``coinpress``."""

    def __post_init__(self) -> None:
        condition = self.largest_variance / self.smallest_variance
        if not 1 <= condition <= _MOST_CONDITION:
            raise ParameterError(
                "E248",
                "preconditioned needs largest_variance from 1 to 1e14 times smallest_variance, got "
                f"{float(condition):g} times.",
                "Raise smallest_variance, or use coinpress, which needs none.",
            )


@dataclass(frozen=True, kw_only=True)
class Preconditioner:
    """P and its inverse, multiplied up side by side: P = P_T ⋯ P_1, rows become P x, Σ becomes P Σ Pᵀ."""

    matrix: Floats
    inverse: Floats

    @classmethod
    def scaling(cls, dimension: int, factor: float) -> Preconditioner:
        return cls(matrix=np.eye(dimension) * factor, inverse=np.eye(dimension) / factor)

    def then(self, step: Floats, undo: Floats) -> Preconditioner:
        """The later step stands on the left of P, and its inverse on the right of P⁻¹."""
        return Preconditioner(matrix=step @ self.matrix, inverse=self.inverse @ undo)

    def undone(self, moment: Floats) -> Floats:
        """P⁻¹ M P⁻ᵀ."""
        return symmetric(self.inverse @ moment @ self.inverse.T)


@dataclass(frozen=True, kw_only=True)
class Found:
    """A covariance, a map under which rows look like N(0, I) or smaller, and what was spent."""

    covariance: Floats
    whitening: Preconditioner
    spent: tuple[Spent, ...]


Method = Callable[[Floats, Facts, ZCDP, Randomness], Found]


def truncated(rows: Floats, facts: Facts, loss: ZCDP, randomness: Randomness) -> Found:
    """One round at radius² = K (d + 2√(d ln(n/τ)) + 2 ln(n/τ)); longer rows are clipped to it, not zeroed."""
    start = Preconditioner.scaling(rows.shape[1], 1 / math.sqrt(facts.largest_variance))
    return _last_round(rows, start, 1.0, facts, loss, randomness, ())


def preconditioned(rows: Floats, facts: Facts, loss: ZCDP, randomness: Randomness) -> Found:
    """The lecture's recursion for I ⪯ Σ/s ⪯ κI, s the smallest variance: half of ρ brings κ down to 1000."""
    found, spent = well_conditioned(rows, facts, loss, randomness)
    kappa = facts.largest_variance / facts.smallest_variance
    left = ZCDP(rho=loss.rho / 2 if spent else loss.rho, neighbours=loss.neighbours)
    goal = float(_GOAL if spent else kappa)
    return _last_round(rows, found, goal, facts, left, randomness, spent)


def well_conditioned(
    rows: Floats, facts: Facts, loss: ZCDP, randomness: Randomness
) -> tuple[Preconditioner, tuple[Spent, ...]]:
    """The P that the lecture wants with I ⪯ PΣPᵀ ⪯ 1000·I, for half of ρ, or for nothing where κ ≤ 1000."""
    kappa = facts.largest_variance / facts.smallest_variance
    rounds = precondition_rounds(kappa)
    found = Preconditioner.scaling(rows.shape[1], 1 / math.sqrt(facts.smallest_variance))
    spent: list[Spent] = []
    for number in range(rounds):
        share = ZCDP(rho=loss.rho / (2 * rounds), neighbours=loss.neighbours)
        ball = _truncation(rows, float(kappa), facts)
        moment = noisy_second_moment(rows, found.matrix, ball, share, randomness)
        spent.append(Spent(f"preconditioner {number + 1}", share.rho))
        values, vectors = np.linalg.eigh(moment)
        factors = _INFLATE * np.where(values >= float(kappa) / 2, 0.5, 1.0)
        found = found.then((vectors * factors) @ vectors.T, (vectors / factors) @ vectors.T)
        kappa *= _SHRINK
    return found, tuple(spent)


def precondition_rounds(kappa: Fraction) -> int:
    """⌈log_{10/9}(κ/1000)⌉, and none where κ is at most 1000.

    >>> precondition_rounds(Fraction(10_000)), precondition_rounds(Fraction(1000))
    (22, 0)
    """
    rounds = 0
    while kappa > _GOAL:
        kappa, rounds = kappa * _SHRINK, rounds + 1
    return rounds


def coinpress(rows: Floats, facts: Facts, loss: ZCDP, randomness: Randomness) -> Found:
    """Whiten a little more in each round; a quarter of ρ for all but the last, which gives the answer."""
    count, dimension = rows.shape
    ball = Ball(dimension=dimension, radius=math.sqrt(chi_squared_tail(dimension, log_inverse(facts.tail))))
    found = Preconditioner.scaling(dimension, 1 / math.sqrt(facts.largest_variance))
    spent: list[Spent] = []
    for number, rho in enumerate(coinpress_budget(loss.rho, facts.rounds)):
        share = ZCDP(rho=rho, neighbours=loss.neighbours)
        noisy = noisy_second_moment(rows, found.matrix, ball, share, randomness, facts.noise)
        moment = projected(noisy, ball)
        spent.append(Spent(f"covariance {number + 1}", rho))
        before, found = found, _whitened(found, moment, count)
    return Found(covariance=before.undone(moment), whitening=found, spent=tuple(spent))


def coinpress_budget(rho: Fraction, rounds: int) -> list[Fraction]:
    """All in one round, or a quarter shared by all but the last."""
    return [rho] if rounds == 1 else [rho / (4 * (rounds - 1))] * (rounds - 1) + [rho * Fraction(3, 4)]


def _whitened(found: Preconditioner, moment: Floats, count: int) -> Preconditioner:
    """A ← U^-½ A with U = Z + ηI, η = √(d/n) + d/(2n) as in the public code; ``moment`` is projected."""
    dimension = len(moment)
    inflation = math.sqrt(dimension / count) + dimension / (2 * count)
    values, vectors = np.linalg.eigh(moment)
    roots = np.sqrt(np.maximum(values, 0.0) + inflation)
    return found.then((vectors / roots) @ vectors.T, (vectors * roots) @ vectors.T)


def _truncation(rows: Floats, kappa: float, facts: Facts) -> Ball:
    """Where a row of N(0, κI) lies but with probability τ/n."""
    count, dimension = rows.shape
    reach = chi_squared_tail(dimension, log_inverse(facts.tail / count))
    return Ball(dimension=dimension, radius=math.sqrt(kappa * reach))


def _last_round(
    rows: Floats,
    found: Preconditioner,
    kappa: float,
    facts: Facts,
    loss: ZCDP,
    randomness: Randomness,
    spent: tuple[Spent, ...],
) -> Found:
    """The naive estimate of P Σ Pᵀ ⪯ κI, taken back through P."""
    ball, root = _truncation(rows, kappa, facts), math.sqrt(kappa)
    moment = projected(noisy_second_moment(rows, found.matrix, ball, loss, randomness), ball)
    scaled = Preconditioner(matrix=found.matrix / root, inverse=found.inverse * root)
    return Found(
        covariance=found.undone(moment),
        whitening=_whitened(scaled, moment / kappa, len(rows)),
        spent=(*spent, Spent("covariance", loss.rho)),
    )


METHODS: dict[str, Method] = {
    "coinpress": coinpress,
    "truncated": truncated,
    "preconditioned": preconditioned,
}


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
