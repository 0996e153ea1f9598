"""From the answers of paid rounds to a frame: the next question, and at the end centres, units and a radius.

Everything here is public: it sees noisy counts and no row. ``verify`` walks the same way with the counts of a file, and
must arrive at the same schema. Only additions, products, quotients and roots are used, which every machine rounds in
the same way. Why these formulas: docs/explain/frame.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privcov.frame.counting import Look, numbers_of
from privcov.linalg.arrays import Floats
from privcov.noise.laws import NoiseLaw
from privcov.privacy import PureDP
from privcov.releases.certificate import RADII, Round
from privcov.schema import Numeric, Schema
from privcov.schema.grid import Grid

CLEAR = 2.0
"""Standard deviations of noise from which on a cell counts as full."""
NARROW = 2
"""A column that fills at most so many cells of its histogram is looked at again, closer."""


class Sure(NamedTuple):
    """When a column counts as narrow, whatever noise hides."""

    full: float
    """Standard deviations of noise from which on hardly one of a hundred empty cells is taken for full."""
    outside: float
    """What all other cells may add up to, beside 3 % of the rows, in standard deviations of the noise on them."""


NORMAL, LAPLACE = Sure(full=3.0, outside=0.7), Sure(full=4.0, outside=0.3)
_LEAST_WIDTH = 2.0**-800
Cells = NDArray[np.int64]
BIAS = 0.08
"""The root mean square bias of correlations over the root of the squared length that a radius cuts off, by row."""


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
    bins : int, default 16
        The cells of the next histogram of a column.
    most : int, default 3
        How many histograms of the columns may be asked for, each within the cells that the one before found full.
    """

    declared: Schema
    rows: int | None = None
    rounds: tuple[Round, ...] = ()
    bins: int = 16
    most: int = 3

    def after(self, one: Round, *, rows: int | None) -> Fit:
        """The same with one more round, and the number of rows where it is public."""
        return replace(self, rounds=(*self.rounds, one), rows=rows)

    def next_look(self) -> Look | None:
        """The next question; None once a radius is known."""
        if self._scales and self.rounds[-1].name == "radius":
            return None
        found = self._scales[-1] if self._scales else None
        if found is None or (len(self._scales) < self.most and found.narrow):
            return Look(name="scales", schema=self._within(found), bins=self.bins)
        return Look(name="radius", schema=self._scaled(1.0), edges=self._edges)

    @cached_property
    def _scales(self) -> list[_Scales]:
        """What each histogram says, each within the cells of the one before."""
        made: list[_Scales] = []
        for one in self.rounds:
            if one.name == "scales":
                before = made[-1] if made else None
                bins = len(one.answers) // len(numbers_of(self.declared))
                look = Look(name="scales", schema=self._within(before), bins=bins)
                made.append(_Scales.of(look, one, before))
        return made

    @property
    def count(self) -> float:
        """The number of rows: public, or the noisy number that the first histograms add up to."""
        if self.rows is not None:
            return float(self.rows)
        return max(1.0, sum(self.rounds[0].answers) / len(numbers_of(self.declared)))

    def _plain(self) -> Schema:
        """The declared columns, without a bound on the norm of a row."""
        return replace(self.declared, row_norm_bound=None)

    def _within(self, found: _Scales | None) -> Schema:
        """A schema whose bounds are the cells that were full: for looking closer, never for the release."""
        if found is None:
            return self._plain()
        ends = iter(zip(found.lower.tolist(), found.upper.tolist(), strict=True))

        def closer(column: Numeric) -> Numeric:
            lower, upper = next(ends)
            fill = None if column.fill is None else min(max(column.fill, lower), upper)
            return replace(column, lower=lower, upper=upper, fill=fill)

        columns = [closer(c) if isinstance(c, Numeric) else c for c in self.declared.columns]
        return replace(self._plain(), columns=tuple(columns))

    def _scaled(self, size: float) -> Schema:
        """The declared bounds about the centres found, with ``size`` for one standard deviation found."""
        found = self._scales[-1]
        about = iter(zip(found.centre.tolist(), found.scale.tolist(), strict=True))

        def scaled(column: Numeric) -> Numeric:
            centre, scale = next(about)
            return replace(column, centre=centre, scale=scale / size)

        columns = [scaled(c) if isinstance(c, Numeric) else c for c in self.declared.columns]
        return replace(self._plain(), columns=tuple(columns))

    @property
    def _edges(self) -> tuple[int, ...]:
        unit, width = 4 ** Grid.of(self._scaled(1.0)).exponent, len(numbers_of(self.declared))
        return tuple(math.floor(radius * radius * width * unit) for radius in RADII)

    def framed(self, law: NoiseLaw) -> Schema:
        """The schema of the release; ``law`` is that of the noise on the matrix, on the ``standard_grid``."""
        weight = weight_of(self.declared)
        radius = self.radius(math.sqrt(law.offdiagonal_variance) / float(weight))
        size = math.sqrt(float(weight) / len(numbers_of(self.declared))) / radius
        squared = self.declared.fixed_squared_norm + weight
        bound = Fraction(math.isqrt(int(squared * 4**20)) + 1, 2**20)
        return replace(self._scaled(size), row_norm_bound=bound)

    def radius(self, noise: float) -> float:
        """The radius with the least error of correlations, in root mean square scaled columns.

        Parameters
        ----------
        noise : float
            The standard deviation of the noise on an entry, for rows of squared norm 1.

        Notes
        -----
        A radius c leaves noise·c²·d/(n·kept) on a correlation, with kept = mean min(u², c²) for u = |z|/√d, and a bias
        of about ``BIAS``·√g, g = mean (1 − c²/u²)₊. Both means are sums of noisy counts with weights of at most c² and
        1, so that noise on a count does little harm.
        """
        counts = np.array(self.rounds[-1].answers, dtype=np.float64) / self.count
        # A row counts at the middle of its cell, in squares; the last cell has no end.
        squares = np.array([0.0, *(radius * radius for radius in RADII)])
        inside = np.append((squares[:-1] + squares[1:]) / 2, 1.25 * squares[-1])
        width, best = len(numbers_of(self.declared)), (math.inf, RADII[-1])
        for radius in RADII:
            square = radius * radius
            kept = max(float(counts @ np.minimum(inside, square)), 0.4 * min(1.0, square))
            cut = max(float(counts @ np.maximum(1.0 - square / inside, 0.0)), 0.0)
            spread = noise * square * width / (self.count * kept)
            best = min(best, (spread * spread + BIAS * BIAS * cut, radius))
        return best[1]


@dataclass(frozen=True, kw_only=True)
class _Scales:
    """What a histogram of every column says: where it is full, its centre and its standard deviation."""

    lower: Floats
    upper: Floats
    centre: Floats
    scale: Floats
    narrow: bool
    """Whether a column fills so little of its histogram that a closer look would tell more."""

    @classmethod
    def of(cls, look: Look, one: Round, before: _Scales | None) -> _Scales:
        columns, bins, noise = numbers_of(look.schema), look.bins, look.std(one.loss)
        lower = np.array([column.lower for column in columns])
        upper = np.array([column.upper for column in columns])
        counts = np.array(one.answers, dtype=np.float64).reshape(len(columns), bins)
        # In shares of the bounds, so that no bound is too large or too small to be squared.
        full = np.where(counts > CLEAR * noise, counts, 0.0)
        known = full.any(axis=1)
        total = np.where(known, full.sum(axis=1), 1.0)
        middles = (np.arange(bins) + 0.5) / bins
        centre = (full * middles).sum(axis=1) / total
        spread = (full * (middles - centre[:, None]) ** 2).sum(axis=1) / total + 1 / (12 * bins * bins)
        first, last = _narrow(counts, noise, LAPLACE if isinstance(one.loss, PureDP) else NORMAL)
        width = upper - lower
        closer = lower + width * (first / bins), lower + width * (last / bins)
        # Bounds so close that floats cannot tell cells apart stay as they are.
        narrow = (closer[1] - closer[0] > width / (2 * bins)) & (closer[1] - closer[0] > _LEAST_WIDTH)
        narrow &= last - first < bins
        # Where noise hides a column, what was known of it before stands; at first: spread evenly over its bounds.
        earlier = (
            ((lower + width / 2), width / math.sqrt(12)) if before is None else (before.centre, before.scale)
        )
        return cls(
            lower=np.where(narrow, closer[0], lower),
            upper=np.where(narrow, closer[1], upper),
            centre=np.where(known, np.clip(lower + width * centre, lower, upper), earlier[0]),
            scale=np.where(known, width * np.sqrt(spread), earlier[1]),
            narrow=bool(narrow.any()),
        )


def _narrow(counts: Floats, noise: float, rule: Sure) -> tuple[Cells, Cells]:
    """The first cell of every column's histogram that a closer look would begin at, and the one it would end before.

    All of them for a column that is not narrow: nothing much may be overlooked, and no cell taken for full that noise
    alone has filled.
    """
    bins, place = counts.shape[1], np.arange(counts.shape[1])
    sure = counts > rule.full * noise
    first, last = sure.argmax(axis=1), bins - sure[:, ::-1].argmax(axis=1)
    outside = np.where((place < first[:, None]) | (place >= last[:, None]), counts, 0.0).sum(axis=1)
    allowed = 0.03 * counts.sum(axis=1) + rule.outside * noise * math.sqrt(bins)
    narrow = sure.any(axis=1) & (last - first <= NARROW) & (outside < allowed)
    return np.where(narrow, first, 0), np.where(narrow, last, bins)


def standard_grid(schema: Schema) -> Grid:
    """A grid with the squared norm that every framed release of this schema has: laws of noise follow from it."""
    exponent, squared = 16, schema.fixed_squared_norm + weight_of(schema)
    return Grid(
        dimension=schema.dimension,
        exponent=exponent,
        squared_norm_bound=int(squared * 4**exponent),
        max_rows_per_person=schema.max_rows_per_person,
        intercept=schema.intercept and not schema.empties_rows,
    )


def weight_of(schema: Schema) -> Fraction:
    """The squared norm that the numeric columns of a row may have, beside 1 for the intercept and each indicator.

    The noise on an entry grows with the whole squared norm F + W; seen from standardised numeric columns it is smaller
    by W for two of them, and by √W for one. W = 4 is near the best for means and correlations of numeric columns alone;
    with categorical columns W = F balances both kinds: docs/explain/frame.md.
    """
    return Fraction(max(4, schema.fixed_squared_norm))
