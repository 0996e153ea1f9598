"""Figures 6 to 10: how large the noise matrix is, and how that depends on ε, the rows and the attributes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from privcov.linalg.arrays import Floats
from privcov.noise.laws import GaussianTriangle
from privcov.noise.randomness import Randomness
from privcov_lab.reproduce.papers.bain2014.privacy import needed
from privcov_lab.reproduce.papers.bain2014.published import EPSILON, draws, law

ATTRIBUTES = 3


def norms(data: Any, randomness: Randomness, *, method: str, runs: int) -> dict[str, Any]:
    """Spectral and Frobenius norm of every noise matrix, on the moments of [0, 1] columns and the intercept."""
    stack = draws(_law(method, ATTRIBUTES, EPSILON), randomness, runs)
    frobenius = np.linalg.norm(stack, axis=(1, 2))
    return {"spectral": _short(_spectral(stack)), "frobenius": _short(frobenius)}


def spectral(
    data: Any, randomness: Randomness, *, method: str, axis: str, values: Sequence[float], runs: int
) -> dict[str, Any]:
    """Mean, least and largest spectral norm at every value of ε, of the rows or of the attributes.

    No noise here knows how many rows there are: along that axis only the draws differ.
    """
    points = []
    for value in values:
        attributes = int(value) if axis == "attributes" else ATTRIBUTES
        noise = _law(method, attributes, value if axis == "epsilon" else EPSILON)
        found = _spectral(draws(noise, randomness, runs))
        points.append([float(found.mean()), float(found.min()), float(found.max())])
    return {"points": points}


def _law(method: str, attributes: int, epsilon: float) -> GaussianTriangle:
    if method == "needed":
        return needed(attributes=attributes, epsilon=epsilon)
    return law("printed" if method == "printed" else "classical", attributes=attributes, epsilon=epsilon)


def _spectral(stack: Floats) -> Floats:
    return np.asarray(np.abs(np.linalg.eigvalsh(stack)).max(axis=1))


def _short(values: Floats) -> list[float]:
    """Six digits, which is all a figure shows and a file should keep."""
    return [float(f"{value:.6g}") for value in values]
