"""A budget of pure ε or of ρ that one mechanism spends in parts: values by noise, vectors by ranges.

How a budget is split over eigenvectors: uniformly, or by what their private eigenvalues are worth.

Splits are public post-processing of private eigenvalues. A share is the *range* ηᵢ of one draw: under pure
privacy ranges add up to the budget ε; under zCDP Σ ηᵢ²/8 does, to ρ. Every rounding is downwards.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from privcov.accounting import approx_to_zcdp
from privcov.mechanisms.base import Upper
from privcov.mechanisms.sensitivity import Sensitivity
from privcov.noise.exact import discrete_gaussian, discrete_laplace
from privcov.noise.randomness import Randomness
from privcov.privacy import ApproxDP, Loss

EXCESS = Fraction(1, 2**20)
"""Released vectors are orthonormal to better than this; the noise of values is scaled for it."""
FAILURE = 0.05
"""β of the adaptive splits: it tunes them and no guarantee."""


@dataclass(frozen=True, kw_only=True)
class Budget:
    """So much ε (``pure``) or so much ρ (``zcdp``)."""

    kind: Literal["pure", "zcdp"]
    amount: Fraction

    @classmethod
    def of(cls, loss: Loss, *, draws: int) -> Budget:
        """What a loss gives to spend. An (ε, δ) loss is spent as ε or as ρ, whichever lets draws be sharper."""
        if not isinstance(loss, ApproxDP):
            return cls(
                kind="pure" if loss.kind == "pure" else "zcdp", amount=next(iter(loss.amounts.values()))
            )
        options = [
            cls(kind="pure", amount=loss.epsilon),
            cls(kind="zcdp", amount=approx_to_zcdp(loss).rho),
        ]
        return max(options, key=lambda budget: budget.ranges([1.0] * max(1, draws))[0])

    def part(self, share: Fraction) -> Budget:
        return replace(self, amount=share * self.amount)

    def ranges(self, weights: Sequence[float]) -> list[Fraction]:
        """How much the log density of each draw may move, in proportion to the weights."""
        split = sum_to if self.kind == "pure" else squares_sum_to
        return split(self.amount, weights)

    def value_variance(self, sensitivity: Sensitivity, count: int) -> Fraction:
        """The variance of the noise below, all but exactly where scales are large."""
        if self.kind == "pure":
            return 2 * Fraction(self._value_scale(sensitivity, count)) ** 2
        return sensitivity.values_l2(count, excess=EXCESS) ** 2 / (2 * self.amount)

    def _value_scale(self, sensitivity: Sensitivity, count: int) -> int:
        return math.ceil(sensitivity.values_l1(count, excess=EXCESS) / self.amount)

    def value_noise(self, randomness: Randomness, sensitivity: Sensitivity, count: int) -> Upper:
        """Integer noise for ``count`` rounded eigenvalues or quadratic forms, in grid units."""
        if self.kind == "pure":
            scale = self._value_scale(sensitivity, count)
            return discrete_laplace(randomness, scale=scale, count=count)
        variance = self.value_variance(sensitivity, count)
        return discrete_gaussian(randomness, variance=variance, count=count)

    def weights(self, eigenvalues: Sequence[float], sensitivity: Sensitivity) -> list[float]:
        """The adaptive split for private eigenvalues that this budget paid for, in units of R²."""
        unit = sensitivity.squared_norm * sensitivity.rows_per_person
        if self.kind == "pure":
            scale = float(sensitivity.nuclear / unit / self.amount)
            return corollary_one(eigenvalues, noise_scale=scale, failure=FAILURE)
        std = float(sensitivity.frobenius / unit) / math.sqrt(2 * float(self.amount))
        return cube_root(eigenvalues, noise_std=std, failure=FAILURE)


_UNIT = 2**40


def corollary_one(eigenvalues: Sequence[float], *, noise_scale: float, failure: float) -> list[float]:
    """Weights √(λ̂ᵢ + τ) of Amin et al. 2019, Corollary 1, with τ = (2/ε₀) ln(2d/β).

    ``noise_scale`` is that of the eigenvalues' Laplace noise: 2/ε₀ under replace-one.
    """
    floor = noise_scale * math.log(2 * len(eigenvalues) / failure)
    return [math.sqrt(value + floor) for value in eigenvalues]


def cube_root(eigenvalues: Sequence[float], *, noise_std: float, failure: float) -> list[float]:
    """Weights (λ̂ᵢ + τ)^⅓: they minimise Σ (λᵢ + τ)/ηᵢ under Σ ηᵢ²/8 = ρ."""
    floor = noise_std * math.sqrt(2 * math.log(2 * len(eigenvalues) / failure))
    return [(value + floor) ** (1 / 3) for value in eigenvalues]


def sum_to(budget: Fraction, weights: Sequence[float]) -> list[Fraction]:
    """Ranges proportional to the weights that add up to the budget, every one positive."""
    parts = _whole(weights)
    return [budget * part / sum(parts) for part in parts]


def squares_sum_to(budget: Fraction, weights: Sequence[float]) -> list[Fraction]:
    """Ranges proportional to the weights with Σ ηᵢ²/8 at most the budget, and hardly less."""
    parts = _whole(weights)
    square = 8 * budget / sum(part * part for part in parts)
    factor = Fraction(math.isqrt(int(square * _UNIT**4)), _UNIT**2)
    return [factor * part for part in parts]


def _whole(weights: Sequence[float]) -> list[int]:
    largest = max(weights)
    return [1 + int(weight / largest * _UNIT) for weight in weights]
