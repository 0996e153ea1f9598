"""Level 1, goodness of fit: whether samplers follow the laws that the proofs speak of.

Noise is compared with closed-form laws of its entries, trace and norm; private vectors with a quadrature and with
a second sampler that shares nothing with the first (uniform directions, thinned). The distance between empirical
and true distribution functions gives a p-value that is never too small: the Dvoretzky–Kiefer–Wolfowitz inequality
with Massart's constant. Proof: docs/proofs/audit.md.

Noise that mechanisms draw before they see the data, part by part, with the law their proof pages give it.

A mechanism that divides its budget hides a fault of one part behind the slack of the others: an end-to-end test
passes eigenvalue noise that is halved. The parts are drawn before the data, so they can be looked at alone. The
scales below are written down from the proof pages and not taken from the code that draws; they leave out what
that code adds for rounding, at most one part in 2^20.

Private directions against two independent accounts of their law: a quadrature, and a sampler of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from privcov.accounting import gaussian_mu
from privcov.audit.marginals import Cdf, Marginal, laplace, marginals, normal, spiked_bingham
from privcov.audit.sampling import Outputs, Progress, gather
from privcov.audit.settings import VIEW_UNIT, Setting, vector_strength
from privcov.linalg.arrays import Floats
from privcov.mechanisms.base import Mechanism
from privcov.mechanisms.sensitivity import Sensitivity
from privcov.noise.laws import GaussianEnsemble, NoiseLaw, WishartDifference
from privcov.noise.randomness import Randomness, kernel
from privcov.privacy import ApproxDP, Loss
from privcov.schema.grid import Grid
from privcov.summing.gram import Gram

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


@dataclass(frozen=True, kw_only=True)
class Part:
    """Integers of a draw, in grid units, and the laws of numbers taken from them."""

    label: str
    take: Callable[[Any], Any]
    laws: list[Marginal]


def parts(mechanism: Mechanism, draw: Any, loss: Loss, grid: Grid) -> list[Part]:
    """The parts of a mechanism of the registry; none for one whose parts are not known here."""
    makers = {
        "eigenvectors": _eigenvectors,
        "kapralov-talwar": _kapralov_talwar,
        "power-method": _power_method,
        "matrix-bingham": _matrix_bingham,
        "separate": _separate,
    }
    maker = makers.get(mechanism.name)
    return [] if maker is None else maker(draw, loss, grid)


def overspent(draw: Any) -> Fraction:
    """What the shares of a divided budget add up to; 1 where a mechanism does not divide it."""
    shares: dict[str, Any] = getattr(draw, "shares", {})
    amounts = [sum(share) if isinstance(share, list) else share for share in shares.values()]
    return Fraction(sum(amounts)) if amounts else Fraction(1)


def _eigenvectors(draw: Any, loss: Loss, grid: Grid) -> list[Part]:
    return [
        Part(
            label=f"noise of the {what}",
            take=lambda d, w=what: d.noise[w],  # type: ignore[misc]
            laws=_values(draw.budget, draw.shares[what], Sensitivity.of(grid, loss.neighbours)),
        )
        for what in draw.noise
    ]


def _kapralov_talwar(draw: Any, loss: Loss, grid: Grid) -> list[Part]:
    moved = Sensitivity.of(grid, loss.neighbours).operator
    scale = moved * 2 * grid.dimension / loss.amounts["epsilon"]
    return [
        Part(
            label="noise of the values", take=lambda d: d.noise, laws=_each("Laplace", laplace(float(scale)))
        )
    ]


def _power_method(draw: Any, loss: Loss, grid: Grid) -> list[Part]:
    sensitivity = Sensitivity.of(grid, loss.neighbours)
    found = [
        Part(
            label="noise of the values",
            take=lambda d: d.values,
            laws=_values(draw.budget, draw.shares["values"][0], sensitivity),
        )
    ]
    if draw.noises:
        rank = draw.noises[0].shape[1]
        moved = sensitivity.operator if rank == 1 else sensitivity.frobenius
        amount = draw.budget.amount * draw.shares["steps"][0]
        if draw.budget.kind == "pure":
            law = _each("Laplace", laplace(math.sqrt(grid.dimension * rank) * float(moved / amount)))
        else:
            law = _each("normal", normal(float(moved) / math.sqrt(2 * amount)))
        found.append(Part(label="noise of the first step", take=lambda d: d.noises[0].ravel(), laws=law))
    return found


def _matrix_bingham(draw: Any, loss: Loss, grid: Grid) -> list[Part]:
    sensitivity = Sensitivity.of(grid, loss.neighbours)
    amount = float(draw.budget.amount * draw.shares["block"])
    law: NoiseLaw = WishartDifference(dimension=draw.rank, scale=float(sensitivity.nuclear) / (2 * amount))
    if draw.budget.kind != "pure":
        law = GaussianEnsemble(
            dimension=draw.rank, scale=float(sensitivity.frobenius) / math.sqrt(2 * amount)
        )
    return [Part(label="noise of the block", take=lambda d: d.noise, laws=marginals(law))]


def _separate(draw: Any, loss: Loss, grid: Grid) -> list[Part]:
    moved = float(Sensitivity.of(grid, loss.neighbours).frobenius)
    if isinstance(loss, ApproxDP):
        std = moved * math.sqrt(2) / float(gaussian_mu(epsilon=loss.epsilon, delta=loss.delta))
    else:
        std = moved / math.sqrt(loss.amounts["rho"])
    ensemble = GaussianEnsemble(dimension=grid.dimension, scale=std)
    return [
        Part(label="noise for the vectors", take=lambda d: d.for_vectors, laws=marginals(ensemble)),
        Part(label="noise for the values", take=lambda d: d.for_values, laws=_each("normal", normal(std))),
    ]


def _values(budget: Any, share: Fraction, sensitivity: Sensitivity) -> list[Marginal]:
    amount = budget.amount * share
    if budget.kind == "pure":
        return _each("Laplace", laplace(float(sensitivity.nuclear / amount)))
    return _each("normal", normal(float(sensitivity.frobenius) / math.sqrt(2 * amount)))


def _each(label: str, cdf: Callable[[Any], Any]) -> list[Marginal]:
    """Independent values of one law: all of them are looked at together."""
    return [Marginal(label=label, take=lambda x: x.ravel(), cdf=cdf)]


def taken(parts: list[Part], draw: Any) -> list[Outputs]:
    """The integers of every part of one draw."""
    return [np.asarray(part.take(draw), dtype=object) for part in parts]


STRENGTH = 4.0
"""c·λ of the tables looked at: far from uniform, and not yet concentrated."""


def fit_vectors(
    setting: Setting, loss: Loss, runs: int, *, processes: int | None, progress: Progress | None
) -> list[Fit]:
    """The first vector on a table along one axis, and on one whose spectrum falls evenly."""
    sampler, grid = setting.sampler, setting.sampler.grid
    coefficient = float(vector_strength(sampler.mechanism, loss, grid))
    unit = coefficient * math.isqrt(grid.squared_norm_bound) ** 2  # what one row along an axis adds to c·λ
    spike = max(1, round(STRENGTH / unit))
    even = [round(spike * (grid.dimension - 1 - i) / (grid.dimension - 1)) for i in range(grid.dimension)]
    counts = [[spike] + [0] * (grid.dimension - 1), even]
    made = gather(
        [(sampler.answers(lambda c=c: _table(c, grid)), runs) for c in counts],  # type: ignore[misc]
        processes=processes,
        progress=progress,
    )
    squares = [_squares(setting, outputs) for outputs in made]
    spectrum = [unit * count for count in even]
    oracle = thinned_bingham(kernel(), spectrum, runs) ** 2
    return [
        one_sample(
            "first vector on one axis", "quadrature", squares[0][:, 0],
            spiked_bingham(grid.dimension, unit * spike),
        ),
        two_sample(
            "first vector on many axes", "thinned uniform", squares[1] @ np.array(even), oracle @ np.array(even)
        ),
    ]  # fmt: skip


def _squares(setting: Setting, outputs: np.ndarray) -> np.ndarray:
    """u_i² of every vector: the diagonal of uuᵀ."""
    diagonal = np.equal(*np.triu_indices(setting.sampler.grid.dimension))
    return setting.seen(outputs)[:, diagonal] / VIEW_UNIT


def _table(counts: list[int], grid: Grid) -> Gram:
    """So many rows along each axis, at the norm bound."""
    made = Gram(grid)
    made.add(np.repeat(np.eye(grid.dimension), counts, axis=0) * math.isqrt(grid.squared_norm_bound))
    return made
