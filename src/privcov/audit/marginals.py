"""Closed-form laws of numbers taken from noise, written down apart from the samplers they judge.

Each is a distribution function of one number computed from a noise matrix: an entry, the trace, the norm. The
laws of matrices themselves are in ``privcov.noise.laws``; how its numbers are distributed is derived in
docs/proofs/audit.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import betainc, gammainc, gammaincinv, ndtr

from privcov.linalg.arrays import Floats
from privcov.noise.laws import NoiseLaw

Cdf = Callable[[Floats], Floats]


@dataclass(frozen=True, kw_only=True)
class Marginal:
    """A number of a noise matrix (given as upper triangles in scaled units, one a row), and its law."""

    label: str
    take: Callable[[Floats], Floats]
    cdf: Cdf


def normal(std: float) -> Cdf:
    return lambda x: ndtr(x / std)


def laplace(scale: float) -> Cdf:
    return lambda x: np.where(x < 0, np.exp(-np.abs(x) / scale) / 2, 1 - np.exp(-np.abs(x) / scale) / 2)


def gamma(shape: float, scale: float, shift: float = 0.0) -> Cdf:
    return lambda x: gammainc(shape, np.maximum(x + shift, 0.0) / scale)


def gamma_difference(shape: float, scale: float) -> Cdf:
    """Of the difference of two independent Gamma variables."""
    places, values = _gamma_difference(shape)
    return lambda x: np.interp(x / scale, places, values, left=0.0, right=1.0)


@cache
def _gamma_difference(shape: float) -> tuple[Floats, Floats]:
    """F(x) = E P(G ≤ x + G′), the mean taken over 4 000 equally likely slices of G′: right to about 1e-6."""
    slices = gammaincinv(shape, (np.arange(4000) + 0.5) / 4000)
    reach = float(gammaincinv(shape, 1 - 1e-9))
    places = reach * np.linspace(-1, 1, 1201) ** 3  # dense in the middle
    return places, np.array([gammainc(shape, np.maximum(x + slices, 0.0)).mean() for x in places])


def marginals(law: NoiseLaw) -> list[Marginal]:
    """The numbers whose law is known in closed form for this noise."""
    d = law.dimension
    rows, columns = np.triu_indices(d)
    first = int(np.flatnonzero(rows == columns)[-1])  # the last diagonal entry: never the intercept's own
    off = np.flatnonzero(rows != columns)
    beside = int(off[-1]) if off.size else None
    weights = np.where(rows == columns, 1.0, 2.0)

    def entry(label: str, place: int | None, cdf: Cdf) -> list[Marginal]:
        return [] if place is None else [Marginal(label=label, take=lambda x: x[:, place], cdf=cdf)]

    def trace(cdf: Cdf) -> list[Marginal]:
        return [Marginal(label="trace", take=lambda x: x[:, rows == columns].sum(axis=1), cdf=cdf)]

    name, s = law.name, law.scale
    if name == "wishart-difference":
        return [
            *trace(gamma_difference(d * (d + 1) / 2, 2 * s)),
            *entry("diagonal entry", first, gamma_difference((d + 1) / 2, 2 * s)),
            *entry("entry beside", beside, gamma_difference(d + 1.0, s)),
        ]
    if name == "laplace":
        return [  # independent, so all of them are looked at together
            Marginal(label=label, take=lambda x, w=where: x[:, w].ravel(), cdf=laplace(s))  # type: ignore[misc]
            for label, where in (("diagonal", rows == columns), ("off-diagonal", rows != columns))
            if where.any()
        ]
    if name == "frobenius":
        freedom = rows.size
        radius = Marginal(label="norm", take=lambda x: np.sqrt(x**2 @ weights), cdf=gamma(float(freedom), s))
        if freedom == 1:
            return [radius]
        share = Marginal(
            label="share of a diagonal entry",
            take=lambda x: x[:, first] ** 2 / (x**2 @ weights),
            cdf=lambda x: betainc(0.5, (freedom - 1) / 2, x),
        )
        return [radius, share]
    if name.startswith("wishart-"):
        degrees = int(name.rpartition("-")[2])
        return [
            *trace(gamma(d * degrees / 2, 2 * s, shift=d * degrees * s)),
            *entry("diagonal entry", first, gamma(degrees / 2, 2 * s, shift=degrees * s)),
        ]
    if name.startswith("joint-gaussian-"):
        ratio = float(name.rpartition("-")[2])
        inner = int(off[-1]) if d > 2 else None
        return [
            *entry("a sum", 1, normal(ratio * s)),
            *entry("diagonal entry", first, normal(s)),
            *entry("entry beside", inner, normal(s / math.sqrt(2))),
        ]
    diagonal, offdiagonal = math.sqrt(law.diagonal_variance), math.sqrt(law.offdiagonal_variance)
    if name.startswith("gaussian"):
        return [
            *trace(normal(math.sqrt(law.trace_variance))),
            *entry("diagonal entry", first, normal(diagonal)),
            *entry("entry beside", beside, normal(offdiagonal)),
        ]
    return []


def spiked_bingham(dimension: int, strength: float) -> Cdf:
    """Of u₁² for a unit vector of density ∝ exp(κ·u₁²); if u₁ = sin φ, φ has density ∝ cos^(d−2) φ · exp(κ sin² φ)."""
    angles = np.linspace(0, math.pi / 2, 20_001)
    logs = strength * (np.sin(angles) ** 2 - 1)
    density = np.exp(logs) * np.cos(angles) ** (dimension - 2)
    values = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    squares, whole = np.sin(angles) ** 2, values / values[-1]
    return lambda x: np.interp(x, squares, whole)
