"""The constants of the authors' public code, which are not those of their paper, nor those of its guarantee.

google-research/private_covariance_estimation, read in 2026: vectors from exp(2εᵢ·uᵀCu) where the paper has
εᵢ/4, eigenvalues with Laplace noise 1/ε₀ where it has 2/ε₀, vectors in the rank-one subtraction from
exp(4(ε/d)·uᵀCu), Gaussian noise for a sensitivity of 1; and a noisy matrix whose largest eigenvalue exceeds n is
scaled down as a whole where the paper rounds eigenvalues. Under the paper's replace-one neighbours the eigenvector
sampler then costs 2ε₀ + 4Σεᵢ, more than twice the ε it is asked for. Kept apart from ``methods``: no
mechanism of privcov, and no release.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize_scalar

from privcov.accounting import gaussian_mu
from privcov.linalg.arrays import Floats
from privcov.linalg.devices import eigh, eigvalsh
from privcov.noise.idealized import sample_bingham, sample_chain
from privcov.noise.laws import GaussianTriangle, LaplaceTriangle, NoiseLaw
from privcov.noise.randomness import Randomness
from privcov_lab.reproduce.papers.amin2019.methods import DELTAS
from privcov_lab.reproduce.papers.amin2019.place import Place


def by_public_code(randomness: Randomness, place: Place, *, label: str, epsilon: float) -> Floats:
    """One answer of the public code for a line of Figure 1."""
    d = len(place.truth)
    if label in ("AD", "IT-U"):
        share, exponents = code_split(label, d, place.rows, epsilon)
        return iterative(randomness, place, value_scale=1 / share, exponents=exponents, most=place.rows)
    if label == "KT":
        return _subtracting(randomness, place, exponent=4 * epsilon / d, value_scale=2 * d / epsilon)
    law: NoiseLaw = LaplaceTriangle(dimension=d, scale=2 * d / epsilon)
    if label != "L":
        mu = gaussian_mu(epsilon=epsilon, delta=DELTAS[label.removeprefix("G-")])
        law = GaussianTriangle(dimension=d, scale=float(1 / mu))
    return _scaled_down(place.truth + law.simulate(randomness), place.rows)


def code_split(
    label: str, dimension: int, rows: int, epsilon: float
) -> tuple[float, Callable[[Floats], Floats]]:
    """The public code's ε₀, and its exponents as a function of the private eigenvalues."""
    adaptive = label == "AD"
    share = value_share(dimension, rows, epsilon) if adaptive else epsilon / 2

    def exponents(values: Floats) -> Floats:
        weights = falling_weights(values) if adaptive else np.ones_like(values)
        return 2 * (epsilon - share) * weights_of_one(weights)

    return share, exponents


def real_epsilon(dimension: int, rows: int, epsilon: float) -> float:
    """What the public code's AD costs under replace-one when it is asked for ε.

    >>> round(real_epsilon(13, 178, 1.0), 2)
    3.77
    """
    share = value_share(dimension, rows, epsilon)
    return 2 * share + 4 * (epsilon - share)


def iterative(
    randomness: Randomness,
    place: Place,
    *,
    value_scale: float,
    exponents: Callable[[Floats], Floats],
    most: float = math.inf,
) -> Floats:
    """Algorithm 1 with any constants: Laplace noise of a scale on the eigenvalues, and an exponent for each vector.

    ``exponents`` is given the noisy eigenvalues in descending order, cut to [0, most].
    """
    values = private_eigenvalues(randomness, place, scale=value_scale, most=most)
    vectors, _ = sample_chain(randomness, place.truth, exponents(values))
    return np.asarray((vectors * values) @ vectors.T)


def private_eigenvalues(
    randomness: Randomness, place: Place, *, scale: float, most: float = math.inf
) -> Floats:
    """Eigenvalues with Laplace noise of a scale, in descending order and cut to [0, most]."""
    law = LaplaceTriangle(dimension=len(place.truth), scale=scale)
    noisy = eigvalsh(place.truth) + np.diag(law.simulate(randomness))
    return np.clip(np.sort(noisy)[::-1], 0.0, most)


def weights_of_one(weights: Floats) -> Floats:
    """Weights divided by their sum; equal ones where all are zero."""
    total = float(weights.sum())
    return np.asarray(weights / total) if total > 0 else np.full(weights.size, 1 / weights.size)


def falling_weights(values: Floats) -> Floats:
    """√(λ̂ᵢ·(d − i)): what the public code has in place of Corollary 1."""
    return np.sqrt(values * np.arange(values.size - 1, -1, -1))


def value_share(dimension: int, rows: int, epsilon: float) -> float:
    """The ε₀ that minimises a bound on the error, √d/ε₀ + Σ√(d−i)·√n/√(ε−ε₀), as the public code chooses it."""
    left = float(np.sqrt(np.arange(dimension, 0, -1)).sum()) * math.sqrt(rows)

    def bound(share: float) -> float:
        return math.sqrt(dimension) / share + left / math.sqrt(epsilon - share)

    edge = epsilon / dimension**2
    return float(minimize_scalar(bound, method="bounded", bounds=(edge, epsilon - edge)).x)


def _subtracting(randomness: Randomness, place: Place, *, exponent: float, value_scale: float) -> Floats:
    rest, made = place.truth.copy(), np.zeros_like(place.truth)
    noise = np.diag(LaplaceTriangle(dimension=len(made), scale=value_scale).simulate(randomness))
    for value_noise in noise:
        vector, _ = sample_bingham(randomness, rest, concentration=exponent)
        value = min(max(float(vector @ rest @ vector) + float(value_noise), 0.0), place.rows)
        part = value * np.outer(vector, vector)
        rest, made = rest - part, made + part
    return made


def _scaled_down(matrix: Floats, most: float) -> Floats:
    values, vectors = eigh(matrix)
    positive = np.maximum(values, 0.0)
    return np.asarray((vectors * positive) @ vectors.T * min(1.0, most / max(float(positive[-1]), 1e-300)))
