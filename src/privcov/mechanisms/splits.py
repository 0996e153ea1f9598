"""How a budget is split over eigenvectors: uniformly, or by what their private eigenvalues are worth.

Splits are public post-processing of private eigenvalues. A share is the *range* ηᵢ of one draw: under pure
privacy ranges add up to the budget ε; under zCDP Σ ηᵢ²/8 does, to ρ. Every rounding is downwards.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

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
