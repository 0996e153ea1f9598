"""From the answers of paid rounds to a frame: the next question, and at the end centres, units and a radius.

Everything here is public: it sees noisy counts and no row. ``verify`` walks the same way with the counts of a file, and
must arrive at the same schema, but for the last digits. Nothing that the counts can say makes an error. Why these
formulas: docs/explain/frame.md.
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
from privcov.frame.shaping import Sums
from privcov.linalg.arrays import Floats, Matrix
from privcov.noise.laws import NoiseLaw
from privcov.privacy import ZCDP, PureDP
from privcov.releases.certificate import RADII, Round
from privcov.releases.rounds import Norms, weight_in, width_of
from privcov.schema import Numeric, Schema
from privcov.schema.grid import Grid, framed_weight
from privcov.schema.shape import Shape

LONGEST = 16
"""How many times as long as a typical row one may be before its columns are mixed: beyond, it is shortened."""
NARROW = 2
"""A column that fills at most so many cells of its histogram is looked at again, closer."""


class Rule(NamedTuple):
    """What noise hides, for one law of noise: in standard deviations of the noise on a count."""

    clear: float
    """From there on a cell counts as full, for the centre and the spread of its column."""
    sure: float
    """From there on, and from 1 % of the rows, hardly an empty cell of all columns is taken for full."""
    outside: float
    """What all cells that are not surely full may add up to, beside 3 % of the rows, in a narrow column."""

    @classmethod
    def of(cls, loss: PureDP | ZCDP) -> Rule:
        """The one for the noise that a round of this loss has."""
        if isinstance(loss, PureDP):  # Laplace noise, with longer tails
            return cls(clear=3.0, sure=4.0, outside=0.3)
        return cls(clear=2.0, sure=3.0, outside=0.7)


_LEAST_WIDTH, _LARGEST = 2.0**-800, 2.0**1020
"""What bounds and units are within, so that no answer makes an error."""
Cells = NDArray[np.int64]


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
    emphasis : tuple of str, default ()
        The columns that matter; other numeric columns weigh half as much in the norm of a row. Empty: all matter.
    shaped : bool, default False
        Whether a shape is asked for, after the scales and before the radius.
    """

    declared: Schema
    rows: int | None = None
    rounds: tuple[Round, ...] = ()
    bins: int = 16
    most: int = 3
    emphasis: tuple[str, ...] = ()
    shaped: bool = False

    def after(self, one: Round, *, rows: int | None) -> Fit:
        """The same with one more round, and the number of rows where it is public."""
        return replace(self, rounds=(*self.rounds, one), rows=rows)

    def next_look(self) -> Look | Sums | None:
        """The next question; None once a radius is known."""
        if self._scales and self.rounds[-1].name == "radius":
            return None
        found = self._scales[-1] if self._scales else None
        if found is None or (len(self._scales) < self.most and found.narrow):
            return Look(name="scales", schema=self._within(found), bins=self.bins)
        if self.shaped and self.rounds[-1].name != "shape":
            return self._sums
        return Look(name="radius", schema=(schema := self._shaped(1.0)), edges=self._edges(schema))

    @property
    def _sums(self) -> Sums:
        return Sums(schema=self._scaled(1.0))

    @cached_property
    def _found(self) -> tuple[Floats, Matrix] | None:
        """The means and the map that the round of a shape found; None where there was none, or none is worth it."""
        found = [one for one in self.rounds if one.name == "shape"]
        return self._sums.found(found[-1], rows=self.count) if found else None

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
            return max(1.0, float(self.rows))
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
            if column.fill is None or lower <= column.fill <= upper:
                return replace(column, lower=lower, upper=upper)
            # A fill that lies elsewhere is not looked at, as a missing cell is not.
            return replace(column, lower=lower, upper=upper, fill=None, missing="midpoint")

        columns = [closer(c) if isinstance(c, Numeric) else c for c in self.declared.columns]
        return replace(self._plain(), columns=tuple(columns))

    def _scaled(self, size: float, *, moved: Floats | None = None) -> Schema:
        """The declared bounds about the centres found, with ``size`` for one standard deviation found.

        ``moved``: how far the means are from these centres, in these deviations, where that is known.
        """
        found = self._scales[-1]
        centres = found.centre if moved is None else found.centre + moved * found.scale
        about = iter(zip(centres.tolist(), found.scale.tolist(), strict=True))

        def scaled(column: Numeric) -> Numeric:
            centre, scale = next(about)
            own = size * weight_in(self.emphasis, column)
            centre = min(max(centre, column.lower), column.upper)
            return replace(column, centre=centre, scale=min(scale / own, _LARGEST))

        columns = [scaled(c) if isinstance(c, Numeric) else c for c in self.declared.columns]
        return replace(self._plain(), columns=tuple(columns))

    def _shaped(self, size: float) -> Schema:
        """The same about the means and with the shape that were found, if a shape was asked for."""
        if self._found is None:
            return self._scaled(size)
        means, found = self._found
        shape = Shape.of(found, longest=math.ceil(LONGEST * size * math.sqrt(len(found))))
        return replace(self._scaled(size, moved=means), shape=shape)

    def _edges(self, schema: Schema) -> tuple[int, ...]:
        unit, width = 4 ** Grid.of(schema).exponent, width_of(self.declared, self.emphasis)
        return tuple(math.floor(radius * radius * width * unit) for radius in RADII)

    def framed(self, law: NoiseLaw) -> Schema:
        """The schema of the release; ``law`` is that of the noise on the matrix, on the ``framed_grid``."""
        weight, width = framed_weight(self.declared), width_of(self.declared, self.emphasis)
        radius = self.radius(math.sqrt(law.offdiagonal_variance) / float(weight))
        size = math.sqrt(float(weight) / width) / radius
        squared = self.declared.fixed_squared_norm + weight
        bound = Fraction(math.isqrt(int(squared * 4**20)) + 1, 2**20)
        return replace(self._shaped(size), row_norm_bound=bound)

    def radius(self, noise: float) -> float:
        """The radius with the least error of correlations, in root mean square scaled columns.

        Parameters
        ----------
        noise : float
            The standard deviation of the noise on an entry, for rows of squared norm 1.
        """
        return Norms(
            counts=np.array(self.rounds[-1].answers, dtype=np.float64) / self.count,
            noise_std=self.rounds[-1].std / self.count,
            width=width_of(self.declared, self.emphasis),
            weight=1.0,
            entry_std=noise,
            rows=self.count,
        ).radius


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
        rule = Rule.of(one.loss)
        full = np.where(counts > rule.clear * noise, counts, 0.0)
        known = full.any(axis=1)
        seen = np.where(known, full.sum(axis=1), 1.0)
        middles = (np.arange(bins) + 0.5) / bins
        centre = (full * middles).sum(axis=1) / seen
        squares = (middles - centre[:, None]) ** 2
        # Rows in cells that noise hides: as many as their sum surely has, nearer cells the fuller ones.
        hidden = full == 0
        unseen = np.where(hidden, counts, 0.0).sum(axis=1) - noise * np.sqrt(hidden.sum(axis=1))
        unseen = np.maximum(unseen, 0.0)
        nearer = np.where(hidden, 1 / (1 / bins + np.sqrt(squares)), 0.0)
        far = (nearer * squares).sum(axis=1) / np.maximum(nearer.sum(axis=1), 1e-9)
        spread = ((full * squares).sum(axis=1) + unseen * far) / (seen + unseen) + 1 / (12 * bins * bins)
        first, last = _narrow(counts, noise, rule)
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


def _narrow(counts: Floats, noise: float, rule: Rule) -> tuple[Cells, Cells]:
    """The first cell of every column's histogram that a closer look would begin at, and the one it would end before.

    All of them for a column that is not narrow: nothing much may be overlooked, and no cell taken for full that noise
    alone has filled.
    """
    bins, place = counts.shape[1], np.arange(counts.shape[1])
    total = counts.sum(axis=1)
    sure = counts > np.maximum(rule.sure * noise, 0.01 * total)[:, None]
    first, last = sure.argmax(axis=1), bins - sure[:, ::-1].argmax(axis=1)
    outside = np.where((place < first[:, None]) | (place >= last[:, None]), counts, 0.0).sum(axis=1)
    allowed = 0.03 * total + rule.outside * noise * math.sqrt(bins)
    narrow = sure.any(axis=1) & (last - first <= NARROW) & (outside < allowed)
    return np.where(narrow, first, 0), np.where(narrow, last, bins)
