"""What the report's noise really promises: the exact Gaussian profile at the distance between two tables."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from privcov.accounting import gaussian_delta, gaussian_mu
from privcov.noise.laws import GaussianTriangle
from privcov.noise.randomness import Randomness
from privcov.privacy import exact
from privcov_lab.reproduce.papers.bain2014.published import DELTA, EPSILON, Formula, law, multiplier

ATTRIBUTES = (3, 5, 10, 50)
_MOST = 10_000.0


def real_epsilon(*, mu: float, delta: float = DELTA) -> float:
    """The ε of Gaussian noise that tells two tables apart by μ standard deviations, to six digits, rounded up.

    >>> round(real_epsilon(mu=1 / 5.64), 2)
    0.62
    """
    low, high = -40.0, math.log(_MOST)
    for _ in range(44):
        middle = (low + high) / 2
        spent = gaussian_delta(mu=Fraction(mu), epsilon=Fraction(math.exp(middle)))
        low, high = (low, middle) if spent <= exact(delta) else (middle, high)
    place = 10.0 ** (math.floor(high / math.log(10)) - 5)
    return round(math.ceil(math.exp(high) / place) * place, 12)


def distance(attributes: int) -> float:
    """How far apart two tables are, in the entries that carry noise, if one has a person more: all at the maximum.

    No other person moves them further apart: every entry of the change is a product of numbers in [0, 1].
    """
    person = np.ones(attributes + 1)
    return float(np.linalg.norm(np.outer(person, person)[np.triu_indices(attributes + 1)]))


@cache
def delivered(formula: Formula, attributes: int) -> float:
    """The ε of the report's noise on so many scaled attributes, at its own δ, if a person may come or go."""
    return real_epsilon(mu=distance(attributes) / law(formula, attributes=attributes).scale)


def needed(*, attributes: int, epsilon: float = EPSILON) -> GaussianTriangle:
    """The least noise of the report's kind that keeps (ε, δ) if a person may come or go."""
    scale = distance(attributes) / float(gaussian_mu(epsilon=epsilon, delta=DELTA))
    return GaussianTriangle(dimension=attributes + 1, scale=scale)


def privacy(data: Any, randomness: Randomness) -> dict[str, Any]:
    """Every σ of the report at its ε and δ: over a sensitivity of 1, and on d scaled attributes with an intercept."""
    tight = 1 / float(gaussian_mu(epsilon=EPSILON, delta=DELTA))
    factors = {
        "printed": multiplier("printed"),
        "classical": multiplier("classical"),
        "exact": tight,
    }
    lines: list[dict[str, Any]] = [
        {
            "formula": name,
            "attributes": None,
            "std": std,
            "distance": 1.0,
            "epsilon": real_epsilon(mu=1 / std),
        }
        for name, std in factors.items()
    ]
    formulas: tuple[Formula, ...] = ("printed", "classical")
    for attributes in ATTRIBUTES:
        for formula in formulas:
            lines.append(
                {
                    "formula": formula,
                    "attributes": attributes,
                    "std": law(formula, attributes=attributes).scale,
                    "distance": distance(attributes),
                    "epsilon": delivered(formula, attributes),
                }
            )
    return {"lines": lines}
