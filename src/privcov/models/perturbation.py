"""How far the noise of a release can move its matrix: norms of the law, simulated without data.

The law is printed on the certificate, so its norms can be rehearsed as often as anyone likes. Entries that the
schema fixes (a public count, levels that exclude each other) carry no noise. The bound returned is an order
statistic of the rehearsed norms: a fresh draw of the same law exceeds it with probability at most 1 − level,
exactly and in finite samples, because it is exchangeable with the rehearsed ones.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats
from privcov.noise.laws import NoiseLaw
from privcov.noise.randomness import rehearsal
from privcov.releases.release import Release

_SEED = 20191205
_MOST_COLUMNS = 4_096
_ENTRIES = 4_000_000  # numbers held at once; fewer draws for wide matrices


def known_law(release: Release, what: str, *, instead: str = "") -> NoiseLaw:
    """The law of the noise, or a refusal that names the release to ask for, and what to do instead."""
    other = f", or {instead}" if instead else ""
    law = release.law
    if law is None:
        raise ParameterError(
            "E256",
            f"{what} needs the distribution of the noise, which is not known for {release.certificate.mechanism}.",
            f"Ask for a release by symmetric-wishart or gaussian{other}.",
        )
    if not can_be_rehearsed(release):
        raise ParameterError(
            "E269",
            f"{what} is simulated, for at most {_MOST_COLUMNS:,} columns; this release has {law.dimension:,}.",
            f"Release fewer columns{other}.",
        )
    return law


def can_be_rehearsed(release: Release) -> bool:
    """Whether the noise has a law, and a matrix of it is small enough to be drawn again and again."""
    return release.certificate.law is not None and release.schema.dimension <= _MOST_COLUMNS


def public_raw(release: Release, places: Sequence[int]) -> Floats:
    """The raw scaled matrix at some places, with the entries that the schema fixes put in."""
    return release.informed_moment()[np.ix_(list(places), list(places))]


def check_level(level: float) -> float:
    """A level that a simulation can answer."""
    if isinstance(level, bool) or not isinstance(level, int | float) or not 0.5 <= level <= 0.999:
        raise ParameterError(
            "E258", f"level must be a number from 0.5 to 0.999, got {level!r}.", "Take 0.95."
        )
    return float(level)


def enough(law: NoiseLaw, level: float) -> int:
    """How many draws a bound of this level is read off."""
    return max(math.ceil(2 / (1 - level)) - 1, min(599, _ENTRIES // law.dimension**2))


def rehearsed_noise(release: Release, places: Sequence[int], *, law: NoiseLaw, count: int) -> Floats:
    """Draws of the noise at some places, zero where the entry is public."""
    law, there, mixing = law.behind(places)
    noisy = np.full((law.dimension, law.dimension), law.scale)
    for i, j in release.structure.fixed:
        noisy[i, j] = noisy[j, i] = 0.0
    unit = _unit_draws(dataclasses.replace(law, scale=1.0), count)
    drawn = np.asarray(unit[:, np.array(there)[:, None], there])
    drawn *= noisy[np.ix_(there, there)]
    plain = mixing.shape[0] == mixing.shape[1] and np.array_equal(mixing, np.eye(len(mixing)))
    return drawn if plain else np.asarray(mixing @ drawn @ mixing.T)


@lru_cache(maxsize=3)
def _unit_draws(law: NoiseLaw, count: int) -> Floats:
    randomness = rehearsal(_SEED)
    draws = law.simulations(randomness, count)
    draws.setflags(write=False)
    return draws


def bound(values: Floats, level: float) -> float:
    """The order statistic that a fresh value exceeds with probability at most 1 − level.

    >>> bound(np.arange(1.0, 100.0), 0.95)
    95.0
    """
    rank = math.ceil((len(values) + 1) * level - 1e-9)
    return float(np.sort(values)[min(rank, len(values)) - 1])


def joint_bounds(draws: Floats, norms: Sequence[Callable[[Floats], Floats]], level: float) -> list[float]:
    """Bounds on several norms that hold together with probability at least ``level``.

    Each norm is measured in units of its own median; one quantile of the largest of them serves all.
    """
    values = [norm(draws) for norm in norms]
    medians = [max(float(np.median(value)), 1e-300) for value in values]
    largest = np.max([value / median for value, median in zip(values, medians, strict=True)], axis=0)
    factor = bound(largest, level)
    return [factor * median for median in medians]


def spectral_norms(draws: Floats) -> Floats:
    """The operator norm of each symmetric draw."""
    return np.asarray(np.abs(np.linalg.eigvalsh(draws)).max(axis=-1))


def centred(moment: Floats) -> Floats:
    """What is left of a moment matrix after its first column, the constant, is taken out (Schur complement).

    Monotone: if A ⪯ B and both have a positive first entry, then so are their results. That is how a bound on
    the noise becomes a bound on a centred matrix, without linearising.
    """
    return np.asarray(moment[1:, 1:] - np.outer(moment[0, 1:], moment[0, 1:]) / moment[0, 0])
