"""Evidence for doubts: linear functions of the released matrix, and how far noise can have moved them.

A doubt asks whether some sum over the rows is positive: "three quarters of the rows, less the rows that have a level of
sex". Such a sum is a ``Form``, a combination of entries of the matrix with public weights. Its noise has a known
variance and, for every law (``NoiseLaw.reach``), a known bound on its tails. So "it is certain" has an error rate that
holds for each table and in finite samples; nothing is linearised, and nothing is assumed about how rows were drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from privcov.linalg.arrays import Floats
from privcov.models.moments import EntryNoise
from privcov.models.perturbation import known_law
from privcov.noise.laws import NoiseLaw
from privcov.releases.release import Release
from privcov.releases.rounds import Norms
from privcov.schema import Categorical, Feature, Numeric, Schema
from privcov.schema.grid import Grid


@dataclass(frozen=True)
class Form:
    """A constant plus a combination of entries (row, column), row ≤ column, of the scaled matrix.

    >>> (Form({(0, 1): 1.0}) - 2 * Form({(0, 0): 0.5}, 1.0)).entries
    {(0, 1): 1.0, (0, 0): -1.0}
    """

    entries: Mapping[tuple[int, int], float] = field(default_factory=dict)
    constant: float = 0.0

    def __add__(self, other: Form) -> Form:
        entries = dict(self.entries)
        for place, weight in other.entries.items():
            entries[place] = entries.get(place, 0.0) + weight
        return Form(entries, self.constant + other.constant)

    def __rmul__(self, factor: float) -> Form:
        return Form(
            {place: factor * weight for place, weight in self.entries.items()}, factor * self.constant
        )

    def __sub__(self, other: Form) -> Form:
        return self + -1.0 * other


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence:
    """The raw matrix of a release with the law of its noise, read through forms. ``rows`` is what shares are of."""

    schema: Schema
    matrix: Floats
    law: NoiseLaw
    noise: EntryNoise
    rows: Form
    """The number of rows: public, or the entry of the intercept with itself."""
    public_rows: int | None
    spread: float | None = None
    """In a private frame: what one standard deviation of a column, as the frame has it, is in scaled units."""

    @classmethod
    def of(cls, release: Release) -> Evidence:
        """What can be read off a release with a law of its noise and a number of rows."""
        release = release.as_added  # about the file, and so about rows as they were read
        schema, law = release.schema, known_law(release, "a doubt")
        matrix, places = release.second_moment(raw=True, scaled=True), list(range(schema.dimension))
        known = []
        if release.rows is not None and Grid.of(schema).intercept:
            matrix[0, 0], known = float(release.rows), [(0, 0)]
        noise = EntryNoise.of(law, places=places, known=known, mixing=np.eye(schema.dimension))
        rows = Form({(0, 0): 1.0}) if schema.intercept else Form({}, float(release.rows or 0))
        return cls(
            schema=schema,
            matrix=matrix,
            law=law,
            noise=noise,
            rows=rows,
            public_rows=release.rows,
            spread=Norms.of(release).spread if release.certificate.rounds else None,
        )

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        return self.schema.features

    @cached_property
    def numeric(self) -> list[int]:
        """Where the numeric columns are, but for what rows count as."""
        return [
            place
            for place, feature in enumerate(self.features)
            if feature.kind == "numeric" and feature.column != self.schema.weight
        ]

    @cached_property
    def levels(self) -> dict[str, list[int]]:
        """Where the levels of each categorical column are."""
        found: dict[str, list[int]] = {c.name: [] for c in self.schema.columns if isinstance(c, Categorical)}
        for place, feature in enumerate(self.features):
            if feature.kind == "level":
                found[feature.column].append(place)
        return found

    @cached_property
    def derived(self) -> frozenset[str]:
        """The derived columns: whether they vary or are alike says more of expressions than of how a file was read."""
        return frozenset(column.name for column in self.schema.columns if column.expression is not None)

    @cached_property
    def kept(self) -> tuple[float, float]:
        """The least share of a square that clipping to the row norm leaves: of a numeric cell, and of a level.

        A row is shrunk by the root of (room / its square), and its square is at most what its columns reach. Where
        indicators are shrunk too and the intercept with them, shares are unchanged, as they are of what is left.
        """
        schema, bound = self.schema, float(self.schema.squared_norm_bound)
        if schema.keeps_indicators:
            room = bound - schema.fixed_squared_norm
            longest = sum(c.reach**2 for c in schema.columns if isinstance(c, Numeric))
            if schema.shape is None:
                return min(1.0, room / max(1, longest)), 1.0
            # Shortened to the longest norm before the map, and to the room after it: in the same direction.
            before = min(1.0, schema.shape.longest**2 / max(1, longest))
            return before * min(1.0, room / float(schema.shape.largest_square)), 1.0
        share = 1.0 if schema.intercept else bound / float(schema.largest_squared_norm)
        return share, share

    @cached_property
    def units(self) -> tuple[Floats, Floats]:
        """What numeric columns are told from and in: the middle and half the width of the bounds of each.

        Without an intercept nothing can be told from elsewhere than the centre: then the centre, and what is furthest
        from it. 0 and 1 for what is not numeric.
        """
        made = [(feature.middle, feature.half_width) for feature in self.features]
        if self.schema.intercept:
            for place in self.numeric:
                feature = self.features[place]
                half = (feature.upper - feature.lower) / 2
                made[place] = feature.lower + half, half
        middles, halves = zip(*made, strict=True)
        return np.array(middles), np.array(halves)

    @cached_property
    def scaling(self) -> tuple[Floats, Floats]:
        """In these units, where a scaled zero of each column is, and how long a scaled one."""
        middles, halves = self.units
        centres = np.array([feature.middle for feature in self.features])
        return (centres - middles) / halves, np.array([feature.unit for feature in self.features]) / halves

    def total(self, place: int) -> Form:
        """The sum of a column, with 1 for its upper bound and -1 for its lower; needs an intercept."""
        shift, factor = (float(one[place]) for one in self.scaling)
        return shift * self.rows + Form({(0, place): factor})

    def square(self, place: int) -> Form:
        """The sum of a column's squares, about the middle of its bounds, in the same unit."""
        shift, factor = (float(one[place]) for one in self.scaling)
        own = Form({(place, place): factor**2})
        if not shift:
            return own
        return own + Form({(0, place): 2 * shift * factor}) + shift**2 * self.rows

    def about_centre(self, place: int) -> Form:
        """The sum of a column's squares about what the frame took for its centre, in the frame's own deviations."""
        return Form({(place, place): 1.0 if self.spread is None else self.spread**-2.0})

    def having(self, place: int) -> Form:
        """The number of rows that have a level: its sum is its sum of squares, so the two are averaged."""
        if not self.schema.intercept:
            return self.square(place)
        along, own = self.std(self.total(place)) ** 2, self.std(self.square(place)) ** 2
        weight = own / (along + own)
        return weight * self.total(place) + (1 - weight) * self.square(place)

    def value(self, form: Form) -> float:
        """What the release says, without bias."""
        return form.constant + sum(weight * float(self.matrix[at]) for at, weight in form.entries.items())

    def std(self, form: Form) -> float:
        """The standard deviation of the noise on it."""
        if self.mixes(places := sorted({place for at in form.entries for place in at})):
            # Through a shape: the same combination of the entries that were released, which are uncorrelated.
            weights = np.zeros((len(places), len(places)))
            for (i, j), weight in form.entries.items():
                weights[places.index(i), places.index(j)] += weight / 2
                weights[places.index(j), places.index(i)] += weight / 2
            mixing = self.noise.mixing[places]
            seen = replace(self.noise, mixing=mixing)
            return math.sqrt(max(0.0, seen.inner(weights, weights)))
        variances, shared = self.noise.variances, self.noise.shared
        own = sum(weight**2 * float(variances[at]) for at, weight in form.entries.items())
        trace = [w for (i, j), w in form.entries.items() if i == j and variances[i, j] > 0]
        return math.sqrt(max(0.0, own + shared * (sum(trace) ** 2 - sum(w * w for w in trace))))

    def mixes(self, places: Iterable[int]) -> bool:
        """Whether the noise at some places is a mixture, because a frame or exhaustive levels mixed their columns."""
        shaped = self.schema.shape is not None and not set(places).isdisjoint(self.schema.numbers)
        return shaped or bool(self.schema.exhaustive)

    def certain(self, form: Form, odds: float) -> bool:
        """Whether the form is positive in the table; where it is not, this says so with at most these odds."""
        return self.value(form) > self.law.reach(odds) * self.std(form)

    def upper(self, form: Form, odds: float) -> float:
        """What the form exceeds in the table with at most these odds."""
        return self.value(form) + self.law.reach(odds) * self.std(form)

    def share(self, form: Form) -> tuple[float, float]:
        """The form per row, and the standard deviation of the noise on that, to first order."""
        share = self.value(form) / self.counted
        return share, self.std(form - share * self.rows) / self.counted

    @property
    def counted(self) -> float:
        """The number of rows, as far as the release can tell."""
        return max(1.0, self.value(self.rows))
