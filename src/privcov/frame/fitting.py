"""From the answers of paid rounds to a frame: the next question, and at the end centres, units and a radius.

Everything here is public: it sees noisy counts and no row. ``verify`` walks the same way with the counts of a file, and
must arrive at the same schema, but for the last digits. Nothing that the counts can say makes an error. Why these
formulas: docs/explain/frame.md.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privcov.frame.counting import Look, Means, Paid, Radius, Scales, Squares
from privcov.frame.shaping import Sums
from privcov.frame.terms import numbers_of
from privcov.linalg.arrays import Floats, Matrix
from privcov.noise.laws import NoiseLaw
from privcov.privacy import PureDP
from privcov.releases.certificate import RADII, Interval, Round
from privcov.releases.means import centred_squares
from privcov.releases.rounds import Norms, weight_in, width_of
from privcov.repair.histogram import denoised
from privcov.schema import Numeric, Schema
from privcov.schema.grid import Grid, framed_weight
from privcov.schema.shape import Shape
from privcov.schema.weights import unweighted, usual_share

LONGEST = 16
"""How many times as long as a typical row one may be before its columns are mixed: beyond, it is shortened."""
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
_LEAST_WIDTH, _LARGEST = 2.0**-800, 2.0**1020
"""What bounds and units are within, so that no answer makes an error."""
Cells = NDArray[np.int64]
Question = Look | Sums


@dataclass(frozen=True, kw_only=True)
class Fit:
    """What is known of the columns so far.

    Parameters
    ----------
    declared : Schema
        The schema as the steward wrote it.
    rows : int, optional
        The number of rows, where it is public.
    rounds : tuple of Round, default ()
        The rounds that were asked.
    most : int, default 3
        How many histograms of the columns may be asked for, each within the cells that the one before found full. With
        none, means within the declared bounds come first, and public formulas guess the deviations.
    emphasis : tuple of str, default ()
        The columns that matter; other numeric columns weigh half as much in the norm of a row. Empty: all matter.
    means : PureDP or ZCDP, optional
        What the sums of the columns cost, where they are asked for: the noise decides what they are clipped to.
    squares : PureDP or ZCDP, optional
        What the sums of squared distances cost, where they are asked for. Then they come with the means before the
        radius, and correct the scales; without them the means come with the radius.
    shaped : bool, default False
        Whether a shape is asked for, after the histograms.
    strata : int, optional
        How many matrices there will be, where there is one for each stratum: noise on one counts against its own rows.
    """

    declared: Schema
    rows: int | None = None
    rounds: tuple[Round, ...] = ()
    most: int = 3
    emphasis: tuple[str, ...] = ()
    means: Paid | None = None
    squares: Paid | None = None
    shaped: bool = False
    strata: int | None = None

    def after(self, *rounds: Round, rows: int | None) -> Fit:
        """The same with more rounds, and the number of rows where it is public."""
        return replace(self, rounds=(*self.rounds, *rounds), rows=rows)

    def next_looks(self) -> tuple[Question, ...]:
        """The next questions, asked together; none once a radius is known."""
        if self.radii:
            return ()
        found = self._scales[-1] if self._scales else None
        if len(self._scales) < self.most and (found is None or found.narrow):
            return (Scales(schema=self._within(found)),)
        if self.shaped and not self._shapes:
            return (self._products,)
        if self.means is not None and not self._asked("means"):
            if self.squares is not None:
                return self._sums(self.means), self._squared(self.squares)
            if not self.most:
                return (self._sums(self.means),)
        last = Radius(schema=(schema := self._shaped(1.0)), edges=self._edges(schema))
        return (last,) if self.means is None or self._asked("means") else (last, self._sums(self.means))

    def _asked(self, name: str) -> list[Round]:
        return [one for one in self.rounds if one.name == name]

    @property
    def radii(self) -> list[Round]:
        """The round of the radius, once it was asked."""
        return self._asked("radius")

    @property
    def _shapes(self) -> list[Round]:
        """The round of a shape, once it was asked."""
        return self._asked("shape")

    @property
    def _products(self) -> Sums:
        """The question for a shape."""
        return Sums(schema=self._scaled(1.0, self._about.scale))

    @cached_property
    def _found(self) -> tuple[Floats, Matrix] | None:
        """The means and the map that the round of a shape found; None where there was none, or none is worth it."""
        return self._products.found(self._shapes[-1], rows=self.count) if self._shapes else None

    @cached_property
    def _scales(self) -> list[_Scales]:
        """What each histogram says, each within the cells of the one before."""
        made: list[_Scales] = []
        profiles = [_Profile.of(column) for column in numbers_of(self.declared)]
        for one in self.rounds:
            if one.name == "scales":
                before = made[-1] if made else None
                look = Scales(schema=self._within(before))
                profiles = _closer(profiles, look, one)
                made.append(_Scales.of(look, one, profiles, rows=self.count))
        return made

    @cached_property
    def _about(self) -> _About:
        """What columns are measured from and in, as far as it is known."""
        if self.most:
            return self._scales[-1].about
        return _About.of_means(numbers_of(self.declared), self._asked("means"), rows=self.count)

    @property
    def count(self) -> float:
        """The number of rows: public, or the noisy number that the first histograms add up to."""
        if self.rows is not None:
            return max(1.0, float(self.rows))
        first = self.rounds[0].answers if self.rounds else ()
        return max(1.0, sum(first) / len(numbers_of(self.declared)))

    def _plain(self) -> Schema:
        """The declared columns, without a bound on the norm of a row; each row counts as one."""
        return replace(unweighted(self.declared), row_norm_bound=None)

    def _within(self, found: _Scales | None) -> Schema:
        """A schema whose bounds are the cells that were full: for looking closer, never for the release."""
        if found is None:
            return self._plain()
        return _bounded(self._plain(), list(zip(found.lower.tolist(), found.upper.tolist(), strict=True)))

    def _scaled(self, size: float, spreads: Floats, *, moved: Floats | None = None) -> Schema:
        """The declared bounds about the centres found, with ``size`` for one standard deviation of ``spreads``.

        ``moved``: how far the means are from these centres, in deviations of the histograms, where that is known.
        """
        found = self._about
        centres = found.centre if moved is None else found.centre + moved * found.scale
        about = iter(zip(centres.tolist(), spreads.tolist(), strict=True))

        def scaled(column: Numeric) -> Numeric:
            centre, scale = next(about)
            own = size * weight_in(self.emphasis, column)
            centre = min(max(centre, column.lower), column.upper)
            return replace(column, centre=centre, scale=min(scale / own, _LARGEST))

        plain = self._plain()
        return replace(
            plain, columns=tuple(scaled(c) if isinstance(c, Numeric) else c for c in plain.columns)
        )

    def _shaped(self, size: float) -> Schema:
        """The same about the means and with the shape that were found, if a shape was asked for."""
        if self._found is None:
            return self._scaled(size, self._spreads)
        means, found = self._found
        shape = Shape.of(found, longest=math.ceil(LONGEST * size * math.sqrt(len(found))))
        return replace(self._scaled(size, self._spreads, moved=means), shape=shape)

    @cached_property
    def _spreads(self) -> Floats:
        """The standard deviations found: those of the histograms, within an error of what squared distances say.

        Histograms lose tails that noise hides. A scale that is too small makes rows long in that column, and all of
        their columns are shortened with it. Noise that is larger than the variance of the histograms must be cleared
        by up to four errors.
        """
        scale = self._about.scale
        for one in self._asked("squares"):
            (means,) = self._asked("means")
            halves, shares, stds = centred_squares(one, means, count=self.count)
            margin = np.clip(stds * (halves / scale) ** 2, 1.0, 4.0)
            least, most = np.maximum(shares - margin * stds, 0.0), np.maximum(shares, 0.0) + stds
            with np.errstate(over="ignore"):  # beyond the largest number a scale is ``_LARGEST``
                scale = np.clip(scale, halves * np.sqrt(least), halves * np.sqrt(most))
        return scale

    def _edges(self, schema: Schema) -> tuple[int, ...]:
        unit, width = 4 ** Grid.of(schema).exponent, width_of(self.declared, self.emphasis)
        return tuple(math.floor(radius * radius * width * unit) for radius in RADII)

    def _sums(self, paid: Paid) -> Means:
        """The question for sums of the columns, each within the bounds with the least error of its mean."""
        plain = self._plain()
        # A missing cell counts as it does in the matrix: as the fill, or as the centre, which a shape may have moved.
        fills = tuple(
            column.middle if column.fill is None else column.fill for column in numbers_of(self._shaped(1.0))
        )
        asked = Means(schema=plain, fills=fills)
        if self.most:
            noise = asked.std(paid) / asked.one / self.count
            found = tuple(one.interval(noise, self.count) for one in self._profiles)
        else:
            found = tuple(Interval(one.lower, one.upper, 0.0, 0.0) for one in numbers_of(plain))
        bounded = _bounded(plain, [(one.lower, one.upper) for one in found])
        return replace(asked, schema=bounded, intervals=found)

    def _squared(self, paid: Paid) -> Squares:
        """The question for squared distances from the centres, each up to the one with the least error."""
        plain = self._plain()
        fills = tuple(c.middle if c.fill is None else c.fill for c in numbers_of(self._shaped(1.0)))
        asked = Squares(schema=plain, fills=fills)
        noise, centres = asked.std(paid) / asked.one / self.count, self._about.centre.tolist()
        pairs = zip(self._profiles, centres, strict=True)
        found = tuple(one.distance(centre, noise, self.count) for one, centre in pairs)
        bounds = zip(numbers_of(plain), found, strict=True)
        within = _bounded(plain, [(max(c.lower, one.lower), min(c.upper, one.upper)) for c, one in bounds])
        about = iter(zip(centres, found, strict=True))

        def centred(column: Numeric) -> Numeric:
            centre, one = next(about)
            return replace(column, centre=centre, scale=one.upper / 2 - one.lower / 2)

        columns = [centred(c) if isinstance(c, Numeric) else c for c in within.columns]
        return replace(asked, schema=replace(plain, columns=tuple(columns)), intervals=found)

    @property
    def _profiles(self) -> list[_Profile]:
        """What all histograms say of each column."""
        return self._scales[-1].profiles

    def framed(self, law: NoiseLaw) -> Schema:
        """The schema of the release; ``law`` is that of the noise on the matrix, on the ``framed_grid``."""
        weight, width = framed_weight(self.declared), width_of(self.declared, self.emphasis)
        radius = self.radius(math.sqrt(law.offdiagonal_variance) / float(weight))
        size = math.sqrt(float(weight) / width) / radius
        squared = self.declared.fixed_squared_norm + weight
        bound = Fraction(math.isqrt(int(squared * 4**20)) + 1, 2**20)
        made = self._shaped(size)
        return replace(self.declared, columns=made.columns, shape=made.shape, row_norm_bound=bound)

    def radius(self, noise: float) -> float:
        """The radius with the least error of correlations, in root mean square scaled columns.

        Parameters
        ----------
        noise : float
            The standard deviation of the noise on an entry, for rows of squared norm 1.
        """
        (last,) = self.radii
        return Norms(
            counts=np.array(last.answers, dtype=np.float64) / self.count,
            noise_std=last.std / self.count,
            width=width_of(self.declared, self.emphasis),
            weight=1.0,
            entry_std=noise * (self.strata or 1) / usual_share(self.declared),
            rows=self.count,
            laplace=isinstance(last.loss, PureDP),
        ).radius


def _bounded(schema: Schema, bounds: list[tuple[float, float]]) -> Schema:
    """A schema with narrower bounds for its numeric columns."""
    ends = iter(bounds)

    def closer(column: Numeric) -> Numeric:
        lower, upper = next(ends)
        if column.fill is None or lower <= column.fill <= upper:
            return replace(column, lower=lower, upper=upper)
        # A fill that lies elsewhere is not looked at, as a missing cell is not.
        return replace(column, lower=lower, upper=upper, fill=None, missing="midpoint")

    columns = [closer(c) if isinstance(c, Numeric) else c for c in schema.columns]
    return replace(schema, columns=tuple(columns))


class _About(NamedTuple):
    """What columns are measured from and in."""

    centre: Floats
    scale: Floats
    """About one standard deviation."""

    @classmethod
    def of_means(cls, columns: list[Numeric], told: list[Round], *, rows: float) -> _About:
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
class _Scales:
    """What the histograms of every column say: where it is full, its centre and its standard deviation."""

    lower: Floats
    upper: Floats
    about: _About
    narrow: bool
    """Whether a column fills so little of its histogram that a closer look would tell more."""
    profiles: list[_Profile]
    """The counts of all histograms so far, column by column."""

    @classmethod
    def of(cls, look: Scales, one: Round, profiles: list[_Profile], *, rows: float) -> _Scales:
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
            about=_About(np.array([own.centre for own in found]), np.array([own.scale for own in found])),
            narrow=bool(narrow.any()),
            profiles=profiles,
        )


class _Likely(NamedTuple):
    """What a column is likely to be."""

    centre: float
    scale: float
    total: float
    """How many rows have a number there."""


def _closer(profiles: list[_Profile], look: Scales, one: Round) -> list[_Profile]:
    """The counts of the columns with one more histogram of each."""
    counts = np.array(one.answers, dtype=np.float64).reshape(len(profiles), -1)
    return [
        profile.with_histogram(column, own, one.std)
        for profile, column, own in zip(profiles, numbers_of(look.schema), counts, strict=True)
    ]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Profile:
    """What the histograms of one column say together: counts between edges, finer where a closer look was taken."""

    edges: Floats
    counts: Floats
    noise: Floats
    """The standard deviation of the noise on each count."""
    inner: tuple[float, float]
    """The bounds of the last histogram."""

    @classmethod
    def of(cls, column: Numeric) -> _Profile:
        """Nothing yet, within the declared bounds."""
        bounds = column.lower, column.upper
        return cls(edges=np.array(bounds), counts=np.zeros(1), noise=np.full(1, 2.0**400), inner=bounds)

    def with_histogram(self, column: Numeric, counts: Floats, noise: float) -> _Profile:
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
        return _Profile(
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

    def likely(self, rows: float, *, laplace: bool) -> _Likely:
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
        return _Likely(centre, 2 * (half * found.std), total)

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
            beyond=min(size * (beyond / end), _LARGEST),
            beyond_std=min(size * (std / end), _LARGEST),
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
