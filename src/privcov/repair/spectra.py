"""Repairs that act on eigenvalues and keep the released eigenvectors.

Every function takes a batch of ascending spectra, one per row, and the public facts, and returns the repaired
spectra in the same shape. A batch is what lets ``auto`` rehearse a repair on many simulated releases at once.

Simulated noise of a known law, drawn once per law and dimension from a fixed seed; it never meets data.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from privcov.linalg.arrays import Floats
from privcov.linalg.devices import eigvalsh
from privcov.noise.laws import NoiseLaw
from privcov.noise.randomness import rehearsal
from privcov.repair.facts import PublicFacts

_BLOCK = 2_000_000  # complex numbers held at once by the pairwise sums below


def none(spectra: Floats, facts: PublicFacts) -> Floats:
    """The release as it is: unbiased, often indefinite."""
    return spectra


def clip(spectra: Floats, facts: PublicFacts) -> Floats:
    """Nearest spectrum within [0, trace cap], one eigenvalue at a time."""
    return np.clip(spectra, 0.0, facts.trace_cap)


def trace(spectra: Floats, facts: PublicFacts) -> Floats:
    """Nearest non-negative spectrum with the noisy trace (itself clipped to its range)."""
    return onto_simplex(spectra, facts.clipped_trace(spectra))


def believed(spectra: Floats, facts: PublicFacts) -> Floats:
    """Nearest non-negative spectrum with the believed trace: ``trace`` for releases whose trace is noise."""
    return onto_simplex(spectra, facts.believed_trace(spectra))


def shrink(spectra: Floats, facts: PublicFacts) -> Floats:
    """Rotation-invariant shrinkage, made non-decreasing and non-negative, with the believed trace."""
    shrunk = non_decreasing(rotation_invariant(spectra, facts.law))
    return onto_simplex(np.maximum(shrunk, 0.0), facts.believed_trace(spectra))


def spiked(spectra: Floats, facts: PublicFacts) -> Floats:
    """A few directions stand out, the rest is flat: right when all but those directions drown in noise.

    An eigenvalue w above the 90 % quantile of the largest noise eigenvalue (about the flat level c) becomes
    c + G/(−G′) at w − c, where G is the Stieltjes transform of the simulated noise spectrum: the height of a
    spike in free noise times the squared overlap of its eigenvector. The rest share what is left.
    """
    total = facts.believed_trace(spectra)
    bank = noise_bank(facts.law)
    level = np.maximum(np.median(spectra, axis=1), 0.0)
    for _ in range(3):  # level and spikes depend on each other; three rounds settle the set of spikes
        above = spectra - level[:, None]
        stands_out = above > bank.largest_eigenvalue
        heights = np.zeros_like(spectra)
        heights[stands_out] = bank.spike(above[stands_out])
        heights += np.where(stands_out, level[:, None], 0.0)
        flat = (~stands_out).sum(axis=1)
        level = np.maximum(total - heights.sum(axis=1), 0.0) / np.maximum(flat, 1)
    return onto_simplex(np.where(stands_out, np.maximum(heights, level[:, None]), level[:, None]), total)


def isotropic(spectra: Floats, facts: PublicFacts) -> Floats:
    """The believed trace spread evenly: nothing but the trace is read from the release."""
    total = facts.believed_trace(spectra)
    return np.repeat((total / spectra.shape[1])[:, None], spectra.shape[1], axis=1)


def zero(spectra: Floats, facts: PublicFacts) -> Floats:
    """The zero matrix: the bar every other repair has to clear."""
    return np.zeros_like(spectra)


def onto_simplex(spectra: Floats, totals: Floats) -> Floats:
    """Euclidean projection of each spectrum onto {non-negative, sum = total}; totals must not be negative."""
    descending = -np.sort(-spectra, axis=1)
    counts = np.arange(1, spectra.shape[1] + 1)
    thresholds = (np.cumsum(descending, axis=1) - totals[:, None]) / counts
    kept = np.maximum((descending > thresholds).sum(axis=1) - 1, 0)
    threshold = np.take_along_axis(thresholds, kept[:, None], axis=1)
    return np.asarray(np.where(totals[:, None] > 0, np.maximum(spectra - threshold, 0.0), 0.0))


def non_decreasing(spectra: Floats) -> Floats:
    """Least-squares non-decreasing fit to each spectrum."""
    from scipy.optimize import isotonic_regression  # on use, as it takes a fifth of a second

    return np.stack([isotonic_regression(spectrum).x for spectrum in spectra])


def rotation_invariant(spectra: Floats, law: NoiseLaw) -> Floats:
    """Best guess at vᵀCv for each released eigenvector v, when C and the noise are in free position.

    With g = h + iπρ the Stieltjes transform of the released spectrum just below the real axis and R the
    R-transform of the noise, eigenvalue w becomes w − Re R(g) − Im R(g)·h/(πρ). The distance to the axis is
    the spread of the noise spectrum over √d, about the spacing that d eigenvalues can resolve.
    """
    d = spectra.shape[1]
    distance = law.rms_frobenius / d
    if not distance > 0:
        return spectra
    block = max(1, _BLOCK // (d * d))
    out = np.empty_like(spectra)
    for start in range(0, len(spectra), block):
        part = spectra[start : start + block]
        g = np.empty(part.shape, dtype=np.complex128)
        step = max(1, _BLOCK // part.size)
        for some in (slice(low, low + step) for low in range(0, d, step)):
            apart = part[:, some, None] - part[:, None, :]
            inverse = 1.0 / (
                apart * apart + distance**2
            )  # 1/(x − iη) is (x + iη)/(x² + η²), without complex division
            g[:, some].real = (apart * inverse).mean(axis=2)
            g[:, some].imag = distance * inverse.mean(axis=2)
        r = law.r_transform(g)
        out[start : start + block] = part - r.real - r.imag * g.real / g.imag
    return out


_SEED = 20190101
_SPECTRUM_POINTS = 400
_QUANTILE = 0.9  # of the largest noise eigenvalue: a spike must stand above it
_FLOOR = 0.2  # of the spread of the noise spectrum: the nearest a spike can come to a noise eigenvalue


@dataclass(frozen=True, kw_only=True)
class NoiseBank:
    """Draws of the noise with the facts about its spectrum that repairs read off."""

    draws: Floats
    spectrum: Floats
    largest_eigenvalue: float

    def spike(self, above: Floats) -> Floats:
        """Height times squared overlap of a spike seen at ``above`` the flat level: G/(−G′)."""
        floor = _FLOOR * float(np.sqrt(np.mean(self.spectrum**2)))  # a draw may reach past the quantile
        gaps = np.maximum(above[:, None] - self.spectrum, floor)
        return np.asarray(np.mean(1 / gaps, axis=1) / np.mean(1 / gaps**2, axis=1))


def noise_bank(law: NoiseLaw) -> NoiseBank:
    """The bank of the law, scaled from draws of unit scale that are kept between calls."""
    unit = _unit_bank(dataclasses.replace(law, scale=1.0))
    return NoiseBank(
        draws=law.scale * unit.draws,
        spectrum=law.scale * unit.spectrum,
        largest_eigenvalue=law.scale * unit.largest_eigenvalue,
    )


def draw_count(dimension: int) -> int:
    """How many draws a dimension gets: many where spectra fluctuate, few where they average themselves."""
    return max(8, min(200, 3200 // dimension))


@lru_cache(maxsize=4)
def _unit_bank(law: NoiseLaw) -> NoiseBank:
    randomness = rehearsal(_SEED)
    draws = law.simulations(randomness, draw_count(law.dimension))
    eigenvalues = eigvalsh(draws)
    every = np.sort(eigenvalues.ravel())
    points = min(_SPECTRUM_POINTS, every.size)
    ranks = ((np.arange(points) + 0.5) * every.size / points).astype(np.intp)
    draws.setflags(write=False)
    return NoiseBank(
        draws=draws,
        spectrum=every[ranks],
        largest_eigenvalue=float(np.quantile(eigenvalues[:, -1], _QUANTILE)),
    )
