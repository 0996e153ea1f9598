"""A noisy histogram, read through a public list of shapes that columns usually have: public arithmetic on its counts.

Noise is as large on an empty cell as on a full one, so one cell says little where noise is large. All of them together
say more. A list of public shapes (bells, boxes and tails, of many places and widths) is compared with the counts, and
each counts as far as it explains them. The counts are then drawn towards this mixture: far where their noise is large,
and hardly at all where it is small. What that gains: docs/explain/frame.md.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from privcov.linalg.arrays import Floats

_ANYWHERE = {0.0: 0.6, 0.003: 0.2, 0.03: 0.13, 0.15: 0.07}
"""The share of the rows that may lie anywhere in the range, beside a shape, and how likely that is beforehand."""
_MISFIT = 0.3
"""How far a column is off the shape that is most like it, over what that shape has in a cell."""


class Likely(NamedTuple):
    """What a histogram says once most of its noise is taken off. Mean and deviation are in shares of the range."""

    counts: Floats
    mean: float
    std: float


def denoised(counts: Floats, noise: Floats, edges: Floats, *, total: float, laplace: bool) -> Likely:
    """The likely counts of a histogram, and the mean and standard deviation of what it counts.

    Parameters
    ----------
    counts : ndarray of shape (k,)
        The counts, with noise.
    noise : ndarray of shape (k,)
        The standard deviation of the noise on each.
    edges : ndarray of shape (k + 1,)
        Where cells begin and end, in shares of the range: from 0 to 1.
    total : float
        What the counts add up to without noise.
    laplace : bool
        Whether the noise has the tails of Laplace's law, or those of the normal law.

    Examples
    --------
    Three full cells of sixteen, and noise as large as the least of them:

    >>> counts = np.array([-60.0, 40, 300, 900, 150, -20, 30, 0, -50, 90, 20, -40, 10, 60, -30, 0])
    >>> found = denoised(counts, np.full(16, 60.0), np.linspace(0, 1, 17), total=1400.0, laplace=False)
    >>> found.counts[2:5].round(-1).tolist(), round(float(found.counts[6:].max()))
    ([280.0, 920.0, 180.0], 1)
    >>> round(found.mean, 2), round(found.std, 2)
    (0.22, 0.05)
    """
    shapes, stds = _shapes(tuple(edges.tolist()))
    expected = total * shapes
    spread = np.hypot(noise, _MISFIT * expected * (1 - shapes))
    off = (counts - expected) / spread
    cost = ((math.sqrt(2) * np.abs(off) if laplace else off * off / 2) + np.log(spread)).sum(axis=1)
    chance = np.exp(cost.min() - cost) * np.repeat(list(_ANYWHERE.values()), len(cost) // len(_ANYWHERE))
    chance /= chance.sum()
    mixture = chance @ expected
    # How far the mixture may be off: shapes differ, and no column is exactly one of them.
    doubt = chance @ (expected - mixture) ** 2 + (_MISFIT * mixture * (1 - mixture / total)) ** 2
    found = np.maximum(mixture + doubt / (doubt + noise**2) * (counts - mixture), 0.0)
    sum_found = float(found.sum())
    found = found * (total / sum_found) if sum_found > 1e-9 * total else mixture
    mean, variance = _moments(found / total, edges)
    # The geometric mean over shapes: a far tail that cannot be excluded would else rule the arithmetic one.
    std = math.exp(float(chance @ np.log(stds)))
    own = float(variance / _moments(mixture / total, edges)[1])
    return Likely(found, float(mean), std * math.sqrt(own))


def _moments(shares: Floats, edges: Floats) -> tuple[Floats, Floats]:
    """Mean and variance of what lies evenly in cells, for one histogram or a list of them."""
    middles, widths = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
    mean = shares @ middles
    return mean, shares @ (middles**2 + widths**2 / 12) - mean**2


@lru_cache(maxsize=64)
def _shapes(edges: tuple[float, ...]) -> tuple[Floats, Floats]:
    """The share of each cell in every shape, and their standard deviations. What lies beyond is in the end cells."""
    cells = np.array(edges)
    sizes = np.diff(cells)
    place, width = np.array(_places(cells)).T[:, :, None]
    steps = (cells[1:-1] - place) / width
    below = np.vstack(
        [
            _bell(steps),
            np.clip(0.5 + steps / math.sqrt(12), 0.0, 1.0),
            -np.expm1(-np.maximum(steps + 1, 0.0)),
            np.exp(np.minimum(steps - 1, 0.0)),
        ]
    )
    ends = np.ones((len(below), 1))
    plain = np.diff(np.hstack([0 * ends, below, ends]), axis=1)
    made = np.vstack([(1 - share) * plain + share * sizes for share in _ANYWHERE])
    return made, np.sqrt(np.maximum(_moments(made, cells)[1], sizes.min() ** 2 / 12))


def _bell(steps: Floats) -> Floats:
    """The share of a logistic law below so many standard deviations from its middle."""
    return np.asarray(1 / (1 + np.exp(np.clip(-steps * (math.pi / math.sqrt(3)), -500.0, 500.0))))


def _places(cells: Floats) -> list[tuple[float, float]]:
    """Where shapes are and how wide: widths double, and those that cells could not tell apart are left out."""
    middles, sizes = (cells[1:] + cells[:-1]) / 2, np.diff(cells)
    found, width = [], float(sizes.min()) / 2
    while width <= 0.5:
        told = middles[sizes <= 4 * width].tolist()
        apart = {
            *_apart(told, width / 2),
            *(-one for one in _apart([-one for one in reversed(told)], width / 2)),
        }
        found += [(place, width) for place in sorted(apart)]
        width *= 2
    return found


def _apart(places: list[float], least: float) -> list[float]:
    """Some of these rising places, so far apart, with the first of them."""
    kept: list[float] = []
    for place in places:
        if not kept or place - kept[-1] >= least:
            kept.append(place)
    return kept
