"""How a budget is split over the eigenvectors: uniformly, or by what their private eigenvalues are worth.

All splits are public post-processing of private eigenvalues. The shares are rationals that add up to at most
the budget: each is rounded down.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

_UNIT = 2**40


def uniform(budget: Fraction, count: int) -> list[Fraction]:
    """The same share for every vector."""
    return [budget / count] * count


def proportional(budget: Fraction, weights: Sequence[float]) -> list[Fraction]:
    """Shares proportional to weights, rounded down, every one positive."""
    largest = max(weights)
    whole = [1 + int(weight / largest * _UNIT) for weight in weights]
    return [budget * part / sum(whole) for part in whole]


def corollary_one(
    budget: Fraction, eigenvalues: Sequence[float], *, eigenvalue_budget: float, failure: float, dimension: int
) -> list[Fraction]:
    """The split of Amin et al. 2019, Corollary 1: εᵢ ∝ √(λ̂ᵢ + τ), τ = (2/ε₀) ln(2d/β).

    Eigenvalues are in units of the squared row norm, processed (clipped and sorted) by the caller.
    """
    floor = 2 / eigenvalue_budget * math.log(2 * dimension / failure)
    return proportional(budget, [math.sqrt(value + floor) for value in eigenvalues])


def cube_root(
    budget: Fraction, eigenvalues: Sequence[float], *, noise_std: float, failure: float, dimension: int
) -> list[Fraction]:
    """Ranges ηᵢ for bounded-range accounting: Σ ηᵢ²/8 ≤ ρ with ηᵢ ∝ (λ̂ᵢ + τ)^⅓, which minimises Σ λᵢ/ηᵢ."""
    floor = noise_std * math.sqrt(2 * math.log(2 * dimension / failure))
    ranges = proportional(Fraction(1), [(value + floor) ** (1 / 3) for value in eigenvalues])
    return scaled_to(budget, ranges)


def scaled_to(budget: Fraction, ranges: Sequence[Fraction]) -> list[Fraction]:
    """Multiply ranges by the largest certified factor f with Σ (f ηᵢ)²/8 ≤ ρ."""
    square = 8 * budget / sum(r * r for r in ranges)
    factor = Fraction(math.isqrt(int(square * _UNIT**2)), _UNIT)
    return [factor * r for r in ranges]
