"""What noisy histograms say of columns: where each is full, its centre and its standard deviation.

A column may be looked at several times, each time within the cells that were full before. Its ``Profile`` holds the
counts of all looks; ``Found`` is what the profiles of all columns say after a look. Everything here is public: it sees
noisy counts and no row. ``fitting.py`` asks the questions. Why these formulas: docs/explain/frame.md.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privcov.frame.counting import Scales
from privcov.frame.terms import numbers_of
from privcov.linalg.arrays import Floats
from privcov.privacy import PureDP
from privcov.releases.certificate import Interval, Round
from privcov.repair.histogram import denoised
from privcov.schema import Numeric

NARROW = 2
"""A column that fills at most so many cells of its histogram is looked at again, closer."""
_FEW = 0.02
"""The share of the rows that a closer look may leave out."""
_MOST_HIDDEN = 0.1
"""The share of the rows that noise may hide where a closer look is taken."""
_CLOSER = 17
"""How many times as wide as a closer look the bounds are at most, for cells beyond it to count."""
_USUAL, _LEAST_ROOM = 0.3, 0.1
"""The standard deviation of a column over the largest that its mean allows; and the least square of that."""
_WITHIN = 0.2
"""How far the mean of the numbers in a cell may lie from its middle, over its width."""
_LEAST_WIDTH, LARGEST = 2.0**-800, 2.0**1020
"""What bounds and units are within, so that no answer makes an error."""
Cells = NDArray[np.int64]


class About(NamedTuple):
    """What columns are measured from and in."""

    centre: Floats
    scale: Floats
    """About one standard deviation."""

    @classmethod
    def of_means(cls, columns: list[Numeric], told: list[Round], *, rows: float) -> About:
        """The means that were told, within the declared bounds, and what columns with such means are usually like.

        A column whose mean is a share m of half the width of its bounds off their middle has a standard deviation of at
        most √(1 − m²) halves, which it has where every row is at one of the bounds; ``_USUAL`` is what is usual of it.
        """
        lower, upper = np.array([(column.lower, column.upper) for column in columns]).T
        halves, shares = upper / 2 - lower / 2, np.zeros(len(columns))
        for one in told:
            shares = np.clip(np.array(one.answers, dtype=np.float64) / (one.unit * rows), -1.0, 1.0)
        most = np.sqrt(np.maximum(1 - shares**2, _LEAST_ROOM))
        return cls(centre=lower / 2 + upper / 2 + shares * halves, scale=_USUAL * most * halves)


@dataclass(frozen=True, kw_only=True)
class Found:
    """What the histograms of every column say: where it is full, its centre and its standard deviation."""

    lower: Floats
    upper: Floats
    about: About
    narrow: bool
    """Whether a column fills so little of its histogram that a closer look would tell more."""
    profiles: list[Profile]
    """The counts of all histograms so far, column by column."""

    @classmethod
    def of(cls, look: Scales, one: Round, profiles: list[Profile], *, rows: float) -> Found:
        pure, (lower, upper) = isinstance(one.loss, PureDP), np.array([own.inner for own in profiles]).T
        found = [own.likely(rows, laplace=pure) for own in profiles]
        told = np.array(one.answers, dtype=np.float64).reshape(len(profiles), look.bins)
        latest = [own.last(cells, one.std) for own, cells in zip(profiles, told, strict=True)]
        totals = np.array([own.total for own in found])
        counts, noise = np.array([cells for cells, _ in latest]), np.array([noise[0] for _, noise in latest])
        first, last = _narrow(counts, noise, totals)
        width = upper - lower
        closer = lower + width * (first / look.bins), lower + width * (last / look.bins)
        # Bounds so close that floats cannot tell cells apart stay as they are.
        narrow = (closer[1] - closer[0] > width / (2 * look.bins)) & (closer[1] - closer[0] > _LEAST_WIDTH)
        narrow &= last - first < look.bins
        return cls(
            lower=np.where(narrow, closer[0], lower),
            upper=np.where(narrow, closer[1], upper),
            about=About(np.array([own.centre for own in found]), np.array([own.scale for own in found])),
            narrow=bool(narrow.any()),
            profiles=profiles,
        )


class Likely(NamedTuple):
    """What a column is likely to be."""

    centre: float
    scale: float
    total: float
    """How many rows have a number there."""


def closer_by(profiles: list[Profile], look: Scales, one: Round) -> list[Profile]:
    """The counts of the columns with one more histogram of each."""
    counts = np.array(one.answers, dtype=np.float64).reshape(len(profiles), -1)
    return [
        profile.with_histogram(column, own, one.std)
        for profile, column, own in zip(profiles, numbers_of(look.schema), counts, strict=True)
    ]


@dataclass(frozen=True, kw_only=True, eq=False)
class Profile:
    """What the histograms of one column say together: counts between edges, finer where a closer look was taken."""

    edges: Floats
    counts: Floats
    noise: Floats
    """The standard deviation of the noise on each count."""
    inner: tuple[float, float]
    """The bounds of the last histogram."""

    @classmethod
    def of(cls, column: Numeric) -> Profile:
        """Nothing yet, within the declared bounds."""
        bounds = column.lower, column.upper
        return cls(edges=np.array(bounds), counts=np.zeros(1), noise=np.full(1, 2.0**400), inner=bounds)

    def with_histogram(self, column: Numeric, counts: Floats, noise: float) -> Profile:
        """The same with a histogram within the bounds of ``column``, in place of the cells that it looks into."""
        bins = len(counts)
        own = column.lower + (column.upper - column.lower) * (np.arange(bins + 1) / bins)
        own[-1] = column.upper
        first, last = np.searchsorted(self.edges, (column.lower, column.upper)).tolist()
        ends = self.edges[[first, min(last, len(self.edges) - 1)]]
        if not (np.diff(own) > 0).all() or ends.tolist() != [column.lower, column.upper]:
            return self  # floats cannot tell these cells apart, or the file was made by someone else
        there = self.edges[first : last + 1]
        if np.array_equal(there, own):  # the same cells once more: the mean of both
            share = 1 / (1 + (noise / self.noise[first:last]) ** 2)
            counts = self.counts[first:last] + share * (counts - self.counts[first:last])
            noises = self.noise[first:last] * np.sqrt(1 - share)
        else:
            noises = np.full(bins, noise)
        return Profile(
            inner=(column.lower, column.upper),
            edges=np.concatenate([self.edges[:first], own, self.edges[last + 1 :]]),
            counts=np.concatenate([self.counts[:first], counts, self.counts[last:]]),
            noise=np.concatenate([self.noise[:first], noises, self.noise[last:]]),
        )

    def last(self, counts: Floats, noise: float) -> tuple[Floats, Floats]:
        """The cells of the last look and their noise: the mean of all looks where the same cells were asked before.

        ``counts`` are those of the last look alone, for cells that floats could not tell apart.
        """
        first, last = np.searchsorted(self.edges, self.inner).tolist()
        if last - first != len(counts):
            return counts, np.full(len(counts), noise)
        return self.counts[first:last], self.noise[first:last]

    def likely(self, rows: float, *, laplace: bool) -> Likely:
        """What the histograms are likely to say of the column without noise.

        All of them, after one closer look at most: it may have missed a tail. After two the last one alone: a tail
        hundreds of times as long as the column is wide cannot be told from noise.
        """
        near = (self.inner[1] / 2 - self.inner[0] / 2) * _CLOSER >= self.edges[-1] / 2 - self.edges[0] / 2
        first, last = (0, len(self.counts)) if near else np.searchsorted(self.edges, self.inner).tolist()
        edges, counts, noise = self.edges[first : last + 1], self.counts[first:last], self.noise[first:last]
        # Every row is counted, but for missing cells, of which the counts alone tell.
        counted, doubt = float(counts.sum()), float(np.linalg.norm(noise))
        total = rows if counted > rows - 3 * doubt else max(counted, 1.0)
        # In shares of the range, so that no bound is too large or too small to be squared.
        low, half = float(edges[0]), float(edges[-1] / 2 - edges[0] / 2)
        found = denoised(counts, noise, (edges / 2 - low / 2) / half, total=total, laplace=laplace)
        centre = min(max(low + 2 * (half * found.mean), low), float(edges[-1]))
        return Likely(centre, 2 * (half * found.std), total)

    def interval(self, noise: float, rows: float) -> Interval:
        """What a column is best clipped to before it is added up, and what the counts say of the rest.

        The mean of clipped cells, and what the counts say lies beyond, are a mean without a bias, but for the width of
        cells. A wider interval has more noise on the sum, a narrower one more on what lies beyond.

        Parameters
        ----------
        noise : float
            The standard deviation of the noise on a mean, over half the width of the interval.
        rows : float
            The number of rows.
        """
        # In shares of the bounds, so that no bound is too large or too small to be squared.
        half = self.edges[-1] / 2 - self.edges[0] / 2
        edges = (self.edges / 2 - self.edges[0] / 2) / half
        middles, widths = (edges[1:] + edges[:-1]) / 2, np.diff(edges)

        def side(beyond: Floats) -> tuple[Floats, Floats]:
            """What lies beyond each edge adds to the mean, and the variance of that."""
            amount = np.maximum(beyond @ self.counts, 0.0) / rows
            rough = np.maximum((_WITHIN * widths * (beyond > 0)) @ self.counts, 0.0) / rows
            return amount, (beyond**2 @ self.noise**2) / rows**2 + rough**2

        low, low_variance = side(np.maximum(edges[:, None] - middles, 0.0))
        high, high_variance = side(np.maximum(middles - edges[:, None], 0.0))
        error = low_variance[:, None] + high_variance + (noise * (edges - edges[:, None]) / 2) ** 2
        error[~((edges - edges[:, None]) * half > _LEAST_WIDTH)] = math.inf
        first, last = np.unravel_index(int(np.argmin(error)), error.shape)
        if not math.isfinite(error[first, last]):
            first, last = np.intp(0), np.intp(len(edges) - 1)
        # No mean is further off than the bounds are apart.
        beyond = min(max(float(high[last] - low[first]), -1.0), 1.0)
        std = min(math.sqrt(float(low_variance[first] + high_variance[last])), 1.0)
        return Interval(
            lower=float(self.edges[first]),
            upper=float(self.edges[last]),
            beyond=float(2 * half * beyond),
            beyond_std=float(2 * half * std),
        )

    def distance(self, centre: float, noise: float, rows: float) -> Interval:
        """What squared distances from a centre are best clipped to before they are added up, and what lies beyond.

        As ``interval``, with ``noise`` over half of the largest square. What lies beyond, and how far that may be off,
        are squares over the furthest distance, so that they are in units of the column.
        """
        half = self.edges[-1] / 2 - self.edges[0] / 2
        edges = (self.edges / 2 - centre / 2) / (half / 2)
        middles, widths = np.abs((edges[1:] + edges[:-1]) / 2), np.diff(edges)
        ends = np.unique(np.abs(edges))
        ends = ends[(ends * half > _LEAST_WIDTH) | (ends == ends[-1])]
        past = np.maximum(middles**2 - ends[:, None] ** 2, 0.0)
        amount = np.maximum(past @ self.counts, 0.0) / rows
        rough = np.maximum((2 * _WITHIN * middles * widths * (past > 0)) @ self.counts, 0.0) / rows
        variance = (past**2 @ self.noise**2) / rows**2 + rough**2
        best = int(np.argmin(variance + (noise * ends**2 / 2) ** 2))
        size, end = float(half), float(ends[best])
        # No squared distance is beyond the square of the bounds, and no number beyond what doubles hold.
        far = min(size * end, sys.float_info.max - abs(centre))
        beyond, std = min(float(amount[best]), 4.0), min(math.sqrt(float(variance[best])), 4.0)
        return Interval(
            lower=centre - far,
            upper=centre + far,
            beyond=min(size * (beyond / end), LARGEST),
            beyond_std=min(size * (std / end), LARGEST),
        )


def _narrow(counts: Floats, noise: Floats, totals: Floats) -> tuple[Cells, Cells]:
    """The first cell of every column's histogram that a closer look would begin at, and the one it would end before.

    One cell or two with all but few of the rows, as far as noise lets see; all cells for a column that is not narrow.
    What is missing in these cells tells it: it has the noise of two counts, and the sum of the others that of many.
    """
    bins = counts.shape[1]
    first, last = np.zeros(len(counts), dtype=np.int64), np.full(len(counts), bins)
    for size in range(NARROW, 0, -1):
        inside = np.lib.stride_tricks.sliding_window_view(counts, size, axis=1).sum(axis=2)
        place = inside.argmax(axis=1)
        hidden = noise * math.sqrt(size)
        narrow = (totals - inside.max(axis=1) <= _FEW * totals + hidden) & (hidden <= _MOST_HIDDEN * totals)
        first, last = np.where(narrow, place, first), np.where(narrow, place + size, last)
    return first, last
