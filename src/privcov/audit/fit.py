"""Level 1, goodness of fit: whether samplers follow the laws that the proofs speak of.

Noise is compared with closed-form laws of its entries, trace and norm; private vectors with a quadrature and with
a second sampler that shares nothing with the first (uniform directions, thinned). The distance between empirical
and true distribution functions gives a p-value that is never too small: the Dvoretzky–Kiefer–Wolfowitz inequality
with Massart's constant. Proof: docs/proofs/audit.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privcov.audit.marginals import Cdf, marginals
from privcov.audit.sampling import Outputs
from privcov.linalg.arrays import Floats
from privcov.noise.laws import NoiseLaw
from privcov.noise.randomness import Randomness
from privcov.schema.grid import Grid

ERROR = 1e-6
"""The probability that a sound mechanism is accused by any of its goodness-of-fit tests."""


@dataclass(frozen=True, kw_only=True)
class Fit:
    """One test: how far the empirical distribution function is from the law, and a bound on the p-value."""

    what: str
    against: str
    runs: int
    distance: float
    p_value: float


def one_sample(what: str, against: str, values: Floats, cdf: Cdf) -> Fit:
    """Against a distribution function: p ≤ 2 exp(−2 n D²), at every n.

    >>> one_sample("thirds", "uniform", np.array([0.2, 0.5, 0.8]), lambda x: x).p_value
    1.0
    """
    ordered = np.sort(values)
    n, truth = ordered.size, cdf(ordered)
    steps = np.arange(n + 1) / n
    distance = float(max((steps[1:] - truth).max(), (truth - steps[:-1]).max()))
    p_value = min(1.0, 2 * math.exp(-2 * n * distance**2))
    return Fit(what=what, against=against, runs=n, distance=distance, p_value=p_value)


def two_sample(what: str, against: str, ours: Floats, theirs: Floats) -> Fit:
    """Against as many draws of another sampler: p ≤ e·exp(−n D²), at every n (Wei and Dudley 2012)."""
    n = min(ours.size, theirs.size)
    one, two = np.sort(ours[:n]), np.sort(theirs[:n])
    everywhere = np.concatenate([one, two])
    gap = np.searchsorted(one, everywhere, side="right") - np.searchsorted(two, everywhere, side="right")
    distance = float(np.abs(gap).max() / n)
    p_value = min(1.0, math.e * math.exp(-n * distance**2))
    return Fit(what=what, against=against, runs=n, distance=distance, p_value=p_value)


def fit_noise(noise: Outputs, law: NoiseLaw, grid: Grid) -> list[Fit]:
    """Integer noise against the law on the certificate."""
    scaled = noise.astype(np.float64) * float(grid.unit)
    return [
        one_sample(
            f"noise, d = {law.dimension}: {marginal.label}", law.name, marginal.take(scaled), marginal.cdf
        )
        for marginal in marginals(law)
    ]


def thinned_bingham(randomness: Randomness, spectrum: Sequence[float], count: int) -> Floats:
    """``count`` unit vectors of density ∝ exp(Σ spectrum·u²), by rejection from the uniform law: slow and obvious."""
    strengths = np.asarray(spectrum, dtype=np.float64)
    kept: list[Floats] = []
    found = 0
    while found < count:
        points = randomness.normals(4096, strengths.size)
        points /= np.linalg.norm(points, axis=1, keepdims=True)
        logs = points**2 @ strengths - strengths.max()
        accepted = points[np.log(randomness.uniforms(4096)) < logs]
        kept.append(accepted)
        found += len(accepted)
    return np.concatenate(kept)[:count]
