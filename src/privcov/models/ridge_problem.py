"""One ridge problem: a target, its features and their repaired moments; what every penalty shares.

The penalty that predicts best, chosen from the release alone.

The raw matrix is Ĉ = C + N. With a fresh draw N′ of the printed law, Ĉ + aN′ and Ĉ − N′/a are both unbiased for C
and have uncorrelated noise (independent, where the law is Gaussian): fit every penalty on the first, measure the
fits zᵀ(Ĉ − N′/a)z on the second, average over draws. That estimates the squared error of the fits on the true
table, for a release of slightly more noise (the coupled bootstrap of Oliveira, Lei and Tibshirani 2021), and does
not mistake noise for signal as trying penalties on a repaired matrix would. New people are not the table's: the
usual 2·s²·df (Mallows) is added for that, so that without noise the choice is the classical one. A penalty that
leaves the design weaker than the noise in some direction (the denominator of Lemma 1 below the typical operator
norm) is no candidate: there the estimate itself is mostly noise. The draws are seeded: the same release, the same
penalty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats
from privcov.models import perturbation, selection
from privcov.models.hidden import drowned_levels
from privcov.models.perturbation import centred, public_raw, rehearsed_noise, spectral_norms
from privcov.noise.laws import NoiseLaw
from privcov.releases.release import Release


def solve(design: Floats, cross: Floats, penalty: float, weights: Floats | float = 1.0) -> Floats:
    """b of (design + penalty · diag(weights)) b = cross; refuses a system that is singular.

    >>> solve(np.array([[3.0]]), np.array([8.0]), 1.0)
    array([2.])
    """
    system = design + penalty * np.diag(np.broadcast_to(np.asarray(weights, dtype=np.float64), len(design)))
    # Equal scales on the diagonal, so that positive definite is told from singular whatever the units are.
    size = np.sqrt(np.maximum(np.diag(system), 1e-300))
    try:
        factor = scipy.linalg.cho_factor(system / np.outer(size, size))
        singular = float(np.min(np.diag(factor[0]))) < 1e-7
    except np.linalg.LinAlgError:
        singular = True
    if singular:
        raise ParameterError(
            "E252", f"with penalty {penalty:g} the features are linearly dependent.", "Raise the penalty."
        )
    return np.asarray(scipy.linalg.cho_solve(factor, cross / size) / size)


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """One target, its features and the repaired moments of both, in scaled units; what every penalty shares."""

    release: Release
    target: int
    features: tuple[int, ...]
    scaled: bool
    moment: Floats
    """Repaired second moments of the intercept, the features and the target, in this order."""

    @classmethod
    def of(
        cls, release: Release, target: str, *, features: Sequence[str] | None, scaled: bool, repair: str
    ) -> Problem:
        selection.needs_intercept(release, "ridge regression")
        goal = selection.target_place(release.schema, target)
        places = selection.feature_places(release.schema, features, target=goal)
        whole = [0, *places, goal]
        moment = release.second_moment(scaled=True, repair=repair)[np.ix_(whole, whole)]
        return cls(release=release, target=goal, features=tuple(places), scaled=scaled, moment=moment)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.release.columns[place] for place in self.features)

    @property
    def target_name(self) -> str:
        return self.release.columns[self.target]

    @cached_property
    def sums(self) -> Floats:
        """Centred sums of squares and products of features and target, in scaled units."""
        return perturbation.centred(self.moment)

    @property
    def constant_mask(self) -> NDArray[np.bool_]:
        return np.asarray(np.diag(self.sums) <= selection.NO_VARIANCE * max(1.0, float(self.moment[0, 0])))

    @property
    def constant(self) -> tuple[str, ...]:
        """Features that the release leaves no variance."""
        return tuple(name for name, flat in zip(self.names, self.constant_mask[:-1], strict=True) if flat)

    @cached_property
    def hidden(self) -> tuple[str, ...]:
        """Levels that so few rows have that the noise hides how many: their coefficients are noise."""
        law = self.release.law
        drowned = () if law is None else drowned_levels(self.release, law)
        names = zip(self.features, self.names, strict=True)
        return tuple(name for place, name in names if place in drowned and name not in self.constant)

    @property
    def flat(self) -> bool:
        """Whether the release leaves the target no variance, or no feature any: then the mean is all there is."""
        return bool(self.constant_mask[-1] or self.constant_mask[:-1].all())

    @property
    def units(self) -> Floats:
        return np.array([self.release.schema.features[place].unit for place in self.features])

    @property
    def weights(self) -> Floats:
        """What the penalty weighs each squared scaled coefficient with."""
        return np.ones(len(self.features)) if self.scaled else self.units**-2.0

    def grid(self) -> Floats:
        """The default penalties."""
        mean = float(np.mean(np.diag(self.sums)[:-1] / self.weights))
        return np.logspace(-5, 3, 33) * max(mean, 1e-12)

    def slopes(self, penalty: float) -> Floats:
        """Scaled coefficients without the intercept; 0 for a column without variance, and where rounding is all."""
        keep = np.flatnonzero(~self.constant_mask[:-1])
        result = np.zeros(len(self.features))
        if not self.flat:
            design = self.sums[np.ix_(keep, keep)]
            found = solve(design, self.sums[keep, -1], penalty, self.weights[keep])
            result[keep] = np.where(np.abs(found) < NOTHING, 0.0, found)
        return result

    def rehearsable(self) -> Rehearsable:
        """What a penalty is chosen from."""
        law = perturbation.known_law(
            self.release, "the choice of a penalty", instead="give a penalty, such as 1.0"
        )
        keep = np.array([0, *(np.flatnonzero(~self.constant_mask) + 1)])
        whole = np.array([0, *self.features, self.target])[keep]
        return Rehearsable(
            release=self.release,
            law=law,
            places=tuple(whole.tolist()),
            moment=self.moment[np.ix_(keep, keep)],
            weights=self.weights[keep[1:-1] - 1],
        )


NOTHING = (
    1e-12  # of the half width of the target, for the half width of a column: what rounding leaves of zero
)
_DRAWS = 100
_SHARE = 0.5  # a: the fits rehearsed see noise of variance 1 + a², the measure of them 1 + 1/a²


@dataclass(frozen=True, kw_only=True, eq=False)
class Rehearsable:
    """One ridge problem and the law of the noise it carries."""

    release: Release
    law: NoiseLaw
    places: tuple[int, ...]
    """Intercept, features and target in the matrix of the release."""
    moment: Floats
    """The repaired moments there, from which degrees of freedom are read."""
    weights: Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class Choice:
    """A penalty, and the root mean squared error it should have for new rows, in scaled units."""

    penalty: float
    error: float
    """NaN where the noise is so large that the estimate of the squared error is not positive."""
    penalties: Floats
    scores: Floats
    """The estimated mean squared error of every candidate; unbiased estimates can be negative."""
    score: float
    """That of the penalty chosen."""
    noise: float
    """The standard deviation of the noise on it."""
    rows: float
    """How many independent rows it was estimated from; fewer where rows were shortened and that is counted."""
    doubt: float = 0.0
    """The standard deviation of its logarithm, from doubt about the units of columns."""

    def interval(self, usual: float) -> tuple[float, float]:
        """Between which the error is, for a ``usual`` number of standard deviations of noise and of sampling.

        Sampling moves a mean of squares as with normal errors, at the end itself: E ± u √(noise² + 2E²/n). Doubt about
        units then moves the ends.
        """
        lead = 1 - 2 * usual**2 / self.rows
        if not lead > 0:
            return 0.0, float("inf")
        root = np.sqrt(max(self.score**2 - lead * (self.score**2 - (usual * self.noise) ** 2), 0.0))
        low, high = (np.sqrt(max((self.score + side * root) / lead, 0.0)) for side in (-1, 1))
        times = np.exp(usual * self.doubt)
        return float(low / times), float(high * times)


def choose(problem: Rehearsable, penalties: Floats) -> Choice:
    """The candidate of the smallest estimated squared error for new rows; ties go to the larger penalty.

    Assumes errors of equal variance, for the part that is sampling, and that persons are independent; the part that is
    noise assumes nothing.
    """
    raw, count = public_raw(problem.release, problem.places), max(1.0, float(problem.moment[0, 0]))
    losses = np.zeros(len(penalties))
    draws = rehearsed_noise(problem.release, problem.places, law=problem.law, count=_DRAWS)
    for draw in draws:
        slopes, offsets = _fits(_positive(raw + _SHARE * draw), penalties, problem.weights)
        residual = np.hstack([-offsets[:, None], -slopes, np.ones((len(penalties), 1))])
        losses += np.einsum("pi,ij,pj->p", residual, raw - draw / _SHARE, residual) / len(draws)
    # Rows of one person may be alike: then so many of them count as one.
    variance = problem.release.schema.max_rows_per_person * max(float(losses.min()), 0.0) / count
    scores = (losses + 2 * variance * _freedom(problem, penalties)) / count
    candidates = _safe(problem, penalties, draws)
    best = int(candidates[-1 - np.argmin(scores[candidates][::-1])])
    score = float(scores[best])
    slopes, offsets = _fits(_positive(raw), penalties[[best]], problem.weights)
    fitted = np.concatenate([-offsets, -slopes[0], [1.0]])
    # What is measured is the average over draws of raw − draw/a, which have this noise a little more than once.
    spread = float(np.einsum("i,nij,j->n", fitted, draws, fitted).std()) * np.sqrt(
        1 + 1 / _SHARE**2 / len(draws)
    )
    share = problem.release.schema.max_rows_per_person * problem.release.row_weight / count
    if (found := problem.release.calibration) is not None:
        # Rows that were shortened are as a smaller sample: docs/explain/frame.md.
        share += found.bias**2
    return Choice(
        penalty=float(penalties[best]),
        error=float(np.sqrt(score)) if score > 0 else float("nan"),
        penalties=penalties,
        scores=scores,
        score=score,
        noise=float(spread) / count,
        rows=1 / share,
        doubt=_doubt(problem, fitted),
    )


def _doubt(problem: Rehearsable, fitted: Floats) -> float:
    """How far doubt about units moves the logarithm of the error of a fit, as a standard deviation.

    A unit that is larger by a share g takes the variance zᵀΣz of what is left to zᵀ(Σ + GΣ + ΣG)z, G with g on its
    diagonal: by 2 Σ g z(Σz), half of which is the share of the error.
    """
    found, numbers = problem.release.calibration, list(problem.release.schema.numbers)
    if found is None:
        return 0.0
    covariance = centred(problem.moment)
    parts = fitted[1:] * (covariance @ fitted[1:])
    whole = float(parts.sum())
    if not whole > 0:
        return float("inf")
    here = [at for at, place in enumerate(problem.places[1:]) if place in numbers]
    rows = [numbers.index(problem.places[1:][at]) for at in here]
    return float(np.linalg.norm(parts[here] @ found.doubts[rows])) / whole


def _safe(problem: Rehearsable, penalties: Floats, draws: Floats) -> NDArray[np.intp]:
    """Places of the penalties that keep every direction above the typical noise; the largest where none does."""
    typical = float(np.median(spectral_norms(draws[:, :-1, :-1])))
    design, weights = centred(problem.moment)[:-1, :-1], np.diag(problem.weights)
    least = np.array([np.linalg.eigvalsh(design + value * weights)[0] for value in penalties])
    safe = np.flatnonzero(least >= typical)
    return safe if len(safe) else np.array([int(np.argmax(penalties))])


def _freedom(problem: Rehearsable, penalties: Floats) -> Floats:
    """tr S(S + penalty·W)⁻¹ for each penalty."""
    root = np.sqrt(problem.weights)
    design = centred(problem.moment)[:-1, :-1] / np.outer(root, root)
    values = np.maximum(np.linalg.eigvalsh(design), 0.0)
    return np.asarray((values / (values + penalties[:, None])).sum(axis=1))


def _positive(moment: Floats) -> Floats:
    """The nearest positive matrix of the same trace, the simplest repair."""
    values, vectors = np.linalg.eigh(moment)
    total = max(
        float(values.sum()), 1e-12 * max(1.0, float(np.abs(values).max()))
    )  # which no rounding swallows
    descending = values[::-1]
    thresholds = (np.cumsum(descending) - total) / np.arange(1, len(values) + 1)
    threshold = thresholds[np.flatnonzero(descending > thresholds)[-1]]
    return np.asarray((vectors * np.maximum(values - threshold, 0.0)) @ vectors.T)


def _fits(moment: Floats, penalties: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Slopes, one row per penalty, and intercepts, from one eigendecomposition."""
    count = max(float(moment[0, 0]), 1.0)
    sums = moment[1:, 1:] - np.outer(moment[0, 1:], moment[0, 1:]) / count
    root = np.sqrt(weights)
    values, vectors = np.linalg.eigh(sums[:-1, :-1] / np.outer(root, root))
    along = vectors.T @ (sums[:-1, -1] / root)
    slopes = (along / (np.maximum(values, 0.0) + penalties[:, None])) @ vectors.T / root
    means = moment[0, 1:] / count
    return np.asarray(slopes), np.asarray(means[-1] - slopes @ means[:-1])
