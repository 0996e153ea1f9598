"""Which columns of a release can be told apart through its noise, and partial correlations with intervals.

The levels of a categorical column add up to the constant, so one of each is redundant by structure: the first, as
in a formula. Of the others, a column is kept where what is left of it, after the columns kept before it, stands
clear of the noise. A column that does not is left out and named: nothing can be adjusted for it, and a rare level
then counts with the first one. The strongest columns are asked first.

With a and b the two columns, S the others and C the sums of squares and products that S leaves of a and b, a partial
correlation is ρ = C_ab / √(C_aa C_bb). To first order the noise N of the release moves C_ab by ζ_aᵀNζ_b, with ζ_a
column a less its regression on S; what the regression absorbs of the noise is put back. An interval is every ρ that
C_ab − ρ√(C_aa C_bb) does not reject, its variance taken at that ρ: that of the noise, from its law, and (1 − ρ²)² / n
for sampling, as with normal errors; n counts persons where rows of one may depend on each other, which can do no more.
Where a private frame counts what it cut off rows, the bias of a correlation counts as a smaller n.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np

from privcov.linalg.arrays import Floats
from privcov.models.moments import EntryNoise
from privcov.models.selection import explaining
from privcov.models.tails import critical_value
from privcov.noise.laws import NoiseLaw
from privcov.releases.release import Release
from privcov.schema import Categorical, Schema

CLEAR = 2.0
"""Standard deviations of noise that what is left of a column must stand above."""

Found = tuple[float, float, float]
"""An estimate and the ends of its interval."""
_UNKNOWN: Found = (float("nan"), -1.0, 1.0)


def siblings(schema: Schema) -> list[frozenset[int]]:
    """For each column of the matrix the places of all levels of its categorical column; itself where it has none.

    >>> schema = Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 1}, "sex": {"levels": ["F", "M"]}}})
    >>> [sorted(places) for places in siblings(schema)]
    [[0], [1], [2, 3], [2, 3]]
    """
    levelled = {column.name for column in schema.columns if isinstance(column, Categorical)}
    owners = [feature.column if feature.column in levelled else None for feature in schema.features]
    return [
        frozenset([place] if owner is None else [i for i, other in enumerate(owners) if other == owner])
        for place, owner in enumerate(owners)
    ]


@dataclass(frozen=True, kw_only=True, eq=False)
class Apart:
    """The raw moments of a release with an intercept, and what in them stands clear of the noise."""

    matrix: Floats
    noise: EntryNoise
    rows: float
    persons: float
    """The rows over how many of them one person may have: what sampling goes by. Fewer where a cut is counted."""
    groups: list[frozenset[int]]
    explaining: tuple[int, ...]
    """The columns that may be adjusted for: what a row counts as is none of them."""
    _inverses: dict[tuple[int, ...], Floats | None] = field(default_factory=dict)

    @classmethod
    def of(cls, release: Release, law: NoiseLaw) -> Apart:
        raw = release.informed_moment() / release.row_weight  # in effective rows, where rows are weighted
        d, known = len(raw), release.structure.fixed
        mixing = np.eye(d) / np.sqrt(release.row_weight)
        noise = EntryNoise.of(law, places=list(range(d)), known=known, mixing=mixing)
        rows = float(raw[0, 0])
        share = release.schema.max_rows_per_person / rows if rows > 0 else np.inf
        if (found := release.calibration) is not None:
            # Rows that were shortened are as a smaller sample, as in regressions: docs/explain/frame.md.
            share += found.bias**2
        return cls(
            matrix=raw,
            noise=noise,
            rows=rows,
            persons=1 / share,
            groups=siblings(release.schema),
            explaining=explaining(release.schema),
        )

    @cached_property
    def kept(self) -> tuple[int, ...]:
        """The constant, and the places of the columns that can be told apart, in the order of the release."""
        if not self._clear([], 0):
            return ()
        found = [0]
        # Standing above the noise by itself costs nothing to ask, and the strongest columns are the best company.
        alone = {j: self._strength([0], j) for j in self.explaining if not self._is_first(j)}
        for j in sorted(alone, key=lambda j: -alone[j]):
            if alone[j] > CLEAR and self._clear(found, j):
                found.append(j)
        return tuple(sorted(found))

    def pair(self, a: int, b: int, level: float, *, given: tuple[int, ...] | None = None) -> Found:
        """The partial correlation of two columns given those kept, or given some places, and its interval.

        A level is asked against all other levels of its column, which are therefore not adjusted for.
        """
        if b in self.groups[a]:
            return _UNKNOWN
        away = (self.groups[a] | self.groups[b]) - {a, b}
        kept = self.kept if given is None else given
        places = tuple(sorted({j for j in kept if j not in away} | {a, b}))
        inverse = self._inverse(places) if kept else None
        if inverse is None:
            return _UNKNOWN
        two = [places.index(a), places.index(b)]
        cross = inverse[:, two]
        left = np.linalg.inv(cross[two])
        whole = np.zeros((len(self.matrix), 2))  # ζ_a and ζ_b
        whole[list(places)] = cross @ left
        rest = np.zeros_like(self.matrix)
        rest[np.ix_(places, places)] = inverse - cross @ left @ cross.T  # the inverse moments of S
        one, other = whole.T
        left += np.array([[self.noise.absorbed(rest, x, y) for y in (one, other)] for x in (one, other)])
        for zeta, size in ((one, left[0, 0]), (other, left[1, 1])):
            if not size > CLEAR * np.sqrt(self.noise.forms(zeta, zeta, zeta, zeta)):
                return _UNKNOWN
        freedom = self.persons - len(places)
        if not freedom > 0:
            return _UNKNOWN
        one, other = one / np.sqrt(left[0, 0]), other / np.sqrt(left[1, 1])
        rho = float(left[0, 1] / np.sqrt(left[0, 0] * left[1, 1]))
        return self._interval(rho, one, other, critical_value(level, freedom), freedom)

    def _interval(self, rho: float, one: Floats, other: Floats, critical: float, freedom: float) -> Found:
        forms = self.noise.forms
        product = forms(one, other, one, other)
        mixed = forms(one, other, one, one) + forms(one, other, other, other)
        squares = forms(one, one, one, one) + 2 * forms(one, one, other, other)
        squares += forms(other, other, other, other)
        # (ρ̂ − ρ)² less ``critical`` times the variance at ρ: a polynomial in ρ, its highest power first.
        variance = np.array([1 / freedom, 0, squares / 4 - 2 / freedom, -mixed, product + 1 / freedom])
        excess = np.array([0, 0, 1, -2 * rho, rho**2]) - critical * variance
        inside = [float(t.real) for t in np.roots(excess) if abs(t.imag) < 1e-9 and -1 < t.real < 1]
        ends = [-1.0, *sorted(inside), 1.0]
        pieces = [(low, high) for low, high in pairwise(ends) if high > low]
        accepted = [(low, high) for low, high in pieces if np.polyval(excess, (low + high) / 2) <= 0]
        if not accepted:
            return _UNKNOWN
        return float(np.clip(rho, -1.0, 1.0)), accepted[0][0], accepted[-1][1]

    def _is_first(self, place: int) -> bool:
        return len(self.groups[place]) > 1 and place == min(self.groups[place])

    def _strength(self, given: list[int], j: int) -> float:
        """What is left of a column given others, in standard deviations of its noise; infinite where there is none."""
        zeta, rest = np.zeros(len(self.matrix)), np.zeros_like(self.matrix)
        zeta[j] = 1.0
        if given:
            block = np.ix_(given, given)
            rest[block] = np.linalg.inv(self.matrix[block])
            zeta[given] = -rest[block] @ self.matrix[given, j]
        left = float(zeta @ self.matrix @ zeta) + self.noise.absorbed(rest, zeta, zeta)
        spread = float(np.sqrt(self.noise.forms(zeta, zeta, zeta, zeta)))
        # What rounding leaves of a column that others determine is no variance, however small the noise is.
        if not left > 1e-10 * self.rows:
            return 0.0
        return left / spread if spread > 0 else float("inf")

    def _clear(self, given: list[int], j: int) -> bool:
        return self._strength(given, j) > CLEAR

    def _inverse(self, places: tuple[int, ...]) -> Floats | None:
        """The inverse moments at some places, of which all but two or fewer were kept together; None where it fails."""
        if places not in self._inverses:
            block = self.matrix[np.ix_(places, places)]
            values = np.linalg.eigvalsh(block)
            fine = values[0] > 1e-12 * values[-1]
            self._inverses[places] = np.asarray(np.linalg.inv(block)) if fine else None
        return self._inverses[places]
