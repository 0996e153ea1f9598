"""The penalty that predicts best, chosen from the release alone.

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

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privcov.linalg.arrays import Floats
from privcov.models.perturbation import centred, public_raw, rehearsed_noise, spectral_norms
from privcov.noise.laws import NoiseLaw
from privcov.releases.release import Release

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


def choose(problem: Rehearsable, penalties: Floats) -> Choice:
    """The candidate of the smallest estimated squared error for new rows; ties go to the larger penalty.

    Assumes errors of equal variance, for the part that is sampling; the part that is noise assumes nothing.
    """
    raw, count = public_raw(problem.release, problem.places), max(1.0, float(problem.moment[0, 0]))
    losses = np.zeros(len(penalties))
    draws = rehearsed_noise(problem.release, problem.places, law=problem.law, count=_DRAWS)
    for draw in draws:
        slopes, offsets = _fits(_positive(raw + _SHARE * draw), penalties, problem.weights)
        residual = np.hstack([-offsets[:, None], -slopes, np.ones((len(penalties), 1))])
        losses += np.einsum("pi,ij,pj->p", residual, raw - draw / _SHARE, residual) / len(draws)
    variance = max(float(losses.min()), 0.0) / count
    scores = (losses + 2 * variance * _freedom(problem, penalties)) / count
    candidates = _safe(problem, penalties, draws)
    best = int(candidates[-1 - np.argmin(scores[candidates][::-1])])
    error = float(np.sqrt(scores[best])) if scores[best] > 0 else float("nan")
    return Choice(penalty=float(penalties[best]), error=error, penalties=penalties, scores=scores)


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
