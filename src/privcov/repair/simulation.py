"""Simulated noise of a known law, drawn once per law and dimension from a fixed seed; it never meets data."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from privcov.linalg.arrays import Floats
from privcov.linalg.devices import eigvalsh
from privcov.noise.laws import NoiseLaw
from privcov.noise.randomness import rehearsal

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
    draws = np.stack([law.simulate(randomness) for _ in range(draw_count(law.dimension))])
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
