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

import numpy as np

from privcov.frame.counting import Look, Means, Paid, Radius, Scales, Squares
from privcov.frame.profiles import LARGEST, About, Found, Profile, closer_by
from privcov.frame.shaping import Sums
from privcov.frame.terms import numbers_of
from privcov.linalg.arrays import Floats, Matrix
from privcov.noise.laws import NoiseLaw
from privcov.privacy import PureDP
from privcov.releases.certificate import RADII, Interval, Round
from privcov.releases.means import centred_squares
from privcov.releases.rounds import Norms, weight_in, width_of
from privcov.schema import Numeric, Schema
from privcov.schema.grid import Grid, framed_weight
from privcov.schema.shape import Shape
from privcov.schema.weights import unweighted, usual_share

LONGEST = 16
"""How many times as long as a typical row one may be before its columns are mixed: beyond, it is shortened."""
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
    def _scales(self) -> list[Found]:
        """What each histogram says, each within the cells of the one before."""
        made: list[Found] = []
        profiles = [Profile.of(column) for column in numbers_of(self.declared)]
        for one in self.rounds:
            if one.name == "scales":
                before = made[-1] if made else None
                look = Scales(schema=self._within(before))
                profiles = closer_by(profiles, look, one)
                made.append(Found.of(look, one, profiles, rows=self.count))
        return made

    @cached_property
    def _about(self) -> About:
        """What columns are measured from and in, as far as it is known."""
        if self.most:
            return self._scales[-1].about
        return About.of_means(numbers_of(self.declared), self._asked("means"), rows=self.count)

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

    def _within(self, found: Found | None) -> Schema:
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
            return replace(column, centre=centre, scale=min(scale / own, LARGEST))

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
            with np.errstate(over="ignore"):  # beyond the largest number a scale is ``LARGEST``
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
    def _profiles(self) -> list[Profile]:
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
