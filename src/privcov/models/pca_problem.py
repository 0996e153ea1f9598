"""One PCA problem: the matrices of a release in the units that are decomposed, and how they scatter.

The repaired covariance has the directions. The raw matrix is unbiased; rehearsed draws of its noise, and of the
sampling of people, tell how far its eigenvalues and loadings may be off (``spectrum.py``). ``pca.py`` puts the answers
into words and numbers for people.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats
from privcov.linalg.devices import eigh, eigvalsh
from privcov.models import perturbation, selection
from privcov.models.partial import Apart, siblings
from privcov.models.spectrum import MOST, Reach, Rehearsals, blocks, to_correlation
from privcov.noise.laws import NoiseLaw
from privcov.noise.randomness import rehearsal
from privcov.releases.release import Release

EDGE_LEVEL = 0.95  # pure noise passes for a component in at most one release in twenty
CLEAR = 5.0  # standard deviations of noise that a variance to scale by must stand above
_SEED = 20261119
_DRAWS, _ENTRIES = 1_999, 2_050_000  # rehearsals of a narrow matrix; numbers held at once


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """What is decomposed, as it was asked for."""

    release: Release
    centred: bool
    scaled: bool
    correlation: bool
    repair: str
    errors: Literal["equal", "conservative"]

    @cached_property
    def covariance(self) -> Floats:
        """The repaired covariance (or mean second moment) that is decomposed."""
        moment = self.release.second_moment(scaled=True, repair=self.repair)
        found = self._reduced(moment) / self._divisor(self.release.count(repair=self.repair))
        return to_correlation(found) if self.correlation else found

    @property
    def has_variance(self) -> bool:
        """Whether the repaired covariance shows any."""
        return bool((np.diag(self.covariance) > selection.NO_VARIANCE * self._widths**2).any())

    @cached_property
    def mean(self) -> Floats:
        """What is taken from a row before projecting, in the units of the PCA."""
        if not self.centred:
            return np.zeros(len(self.places))
        found = self.release.mean(scaled=self.scaled, repair=self.repair)
        return np.asarray(found[[place - 1 for place in self.places]] / self._deviations)

    @cached_property
    def raw_variance(self) -> Floats:
        """Descending eigenvalues of the raw matrix, whose entries are unbiased; some may be negative."""
        return np.asarray(eigvalsh(self._raw_matrix)[::-1])

    @cached_property
    def noise_edge(self) -> float | None:
        """The 95 % quantile of the largest eigenvalue that noise alone would show; None where it is not simulated."""
        law = self.release.law
        if law is None or not perturbation.can_be_rehearsed(self.release):
            return None
        least, plenty = perturbation.enough(law, EDGE_LEVEL), _draws(law, EDGE_LEVEL)
        noise = self._noise(law, plenty if len(self.places) <= MOST else least)[:, 1:, 1:]
        return perturbation.bound(np.asarray(eigvalsh(noise)[:, -1]), EDGE_LEVEL) / self._divisor(
            self._raw_count
        )

    @property
    def _intercept(self) -> bool:
        return self.release.schema.intercept

    @cached_property
    def places(self) -> tuple[int, ...]:
        """The places in the release of the columns that are decomposed."""
        places = selection.explaining(self.release.schema)
        if not self.correlation:
            return places
        variances = np.diag(perturbation.centred(perturbation.public_raw(self.release, self._everywhere)))
        law = self.release.law
        if law is None:
            least = np.full(len(variances), selection.NO_VARIANCE * self._raw_count)
        else:  # noise of a variance is that of (−μ, 1) N (−μ, 1)ᵀ
            apart = Apart.of(self.release, law)
            ones = np.hstack([-apart.matrix[1:, :1] / max(1.0, apart.rows), np.eye(len(variances))])
            least = CLEAR * np.sqrt(apart.noise.squares(ones))
        return tuple(place for place in places if variances[place - 1] > least[place - 1])

    @property
    def _here(self) -> list[int]:
        """The places that are decomposed, behind that of the intercept."""
        return [*([0] if self._intercept else []), *self.places]

    @property
    def _everywhere(self) -> tuple[int, ...]:
        """The places whose noise matters: the intercept's too, which carries count and means."""
        return tuple(range(len(self.release.columns)))

    @property
    def _carry(self) -> Floats:
        """What takes a scaled row, its constant included, to the units of the PCA, uncentred."""
        carry = np.diag(self._widths)
        if not self._intercept:
            return carry
        moved = np.zeros(len(self.places)) if self.scaled else self._middles
        return np.hstack([moved[:, None], carry])

    @cached_property
    def _deviations(self) -> Floats:
        """What scaled columns are divided by: their repaired standard deviations, or 1."""
        if not self.correlation:
            return np.ones(len(self.places))
        moment = self.release.second_moment(scaled=True, repair=self.repair)
        variances = np.diag(self._reduced(moment)) / self._divisor(self.release.count(repair=self.repair))
        return np.sqrt(np.maximum(variances, selection.NO_VARIANCE))

    @cached_property
    def _raw_covariance(self) -> Floats:
        raw = self._reduced(perturbation.public_raw(self.release, self._everywhere))
        return raw / self._divisor(self._raw_count)

    @property
    def _raw_matrix(self) -> Floats:
        """The raw covariance, correlation or mean second moment."""
        return to_correlation(self._raw_covariance) if self.correlation else self._raw_covariance

    def _noise(self, law: NoiseLaw, count: int) -> Floats:
        """Draws of the noise on the count and on the sums of products, in the units of the PCA times its divisor."""
        if count in self._kept_noise:
            return self._kept_noise[count]
        here = self._here
        draws = perturbation.rehearsed_noise(self.release, here, law=law, count=count)
        carry = self._carry
        if self.centred:  # noise of a centred matrix is (−μ, I) N (−μ, I)ᵀ, but for a term of order N²/n
            raw = perturbation.public_raw(self.release, here)
            carry[:, 0] = -self._widths * raw[0, 1:] / max(1.0, float(raw[0, 0]))
            if self.correlation:
                carry /= np.sqrt(np.diag(self._raw_covariance))[:, None]
        made = np.zeros((count, len(carry) + 1, len(carry) + 1))
        for some in blocks(made):
            made[some, 1:, 1:] = carry @ draws[some] @ carry.T
        if self._intercept:
            made[:, 0, 0] = draws[:, 0, 0]
            made[:, 0, 1:] = draws[:, 0] @ carry.T
        self._kept_noise[count] = made
        return made

    @property
    def is_rehearsed(self) -> bool:
        """Whether noise and sampling can both be told for every component."""
        known = perturbation.can_be_rehearsed(self.release)
        return known and self.centred and len(self.places) <= MOST

    def of_population(self, level: float, what: str) -> Rehearsals:
        """Rehearsals of noise and sampling, for ``what`` is asked; refused where they are not known."""
        level = perturbation.check_level(level)
        perturbation.known_law(self.release, what)
        if not self.is_rehearsed:
            raise ParameterError(
                "E299",
                f"{what} is for a covariance or correlations of at most {MOST} columns.",
                "Leave out centred=False, or ask intervals for the table.",
            )
        return self.rehearsals(level, sampled=True)

    def rehearsals(self, level: float, *, sampled: bool) -> Rehearsals:
        """Rehearsals of the noise, ``sampled``: and of the sampling of people; made once for every number of draws."""
        law = perturbation.known_law(self.release, "an interval for explained variance")
        count, kept = _draws(law, level), self._kept_rehearsals
        if (count, sampled) not in kept:
            persons = self._raw_count / self.release.row_weight / self.release.schema.max_rows_per_person
            persons = persons if sampled else math.inf
            if (found := self.release.calibration) is not None and persons > 0:
                # Rows that were shortened are as a smaller sample: docs/explain/frame.md.
                persons = 1 / (1 / persons + found.bias**2)
            kept[count, sampled] = Rehearsals(
                matrix=self._raw_matrix,
                count=self._raw_count,
                persons=persons,
                noise=self._noise(law, count),
                centred=self.centred,
                correlation=self.correlation,
                sampled=math.isfinite(persons),
                levels=self._levels if sampled else (),
                reach=self._reach if sampled and self.centred else None,
                conservative=sampled and self.errors == "conservative",
                scales=None if self.correlation else self._scales(count),
            )
        return kept[count, sampled]

    def _scales(self, count: int) -> Floats | None:
        """Draws of what deviations may have to be multiplied by, column by column; None where none is in doubt."""
        found, numbers = self.release.calibration, list(self.release.schema.numbers)
        if found is None:
            return None
        logs = np.zeros((count, len(self.places)))
        here = [at for at, place in enumerate(self.places) if place in numbers]
        rows = [numbers.index(self.places[at]) for at in here]
        logs[:, here] = rehearsal(_SEED).normals(count, found.doubts.shape[1]) @ found.doubts[rows].T
        return np.asarray(np.exp(logs))

    @property
    def _reach(self) -> Reach:
        """How far the bounds let a row be from the mean, in the units of the PCA."""
        schema, raw = self.release.schema, perturbation.public_raw(self.release, self._here)
        there = [schema.features[place] for place in self.places]
        # A weighted row counts at most as one of the largest weight, in whose units the count is.
        most = np.array([one.reach if one.kind == "numeric" else 0.5 for one in there])
        middle = np.array([0.0 if one.kind == "numeric" else 0.5 for one in there])
        means = np.clip(raw[0, 1:] / max(1.0, float(raw[0, 0])), middle - most, middle + most)
        columns = most + np.abs(means - middle)
        length = math.hypot(*columns)
        if self.release.calibration is None:
            length = min(length, schema.longest_row + math.hypot(*means))
        if self.scaled and not self.correlation:
            return Reach(columns, length, self._raw_count / self.release.schema.max_rows_per_person)
        deviations = np.sqrt(np.diag(self._raw_covariance)) if self.correlation else 1.0
        columns = columns * self._widths / deviations
        return Reach(columns, math.hypot(*columns), self._raw_count / self.release.schema.max_rows_per_person)

    @cached_property
    def _levels(self) -> tuple[tuple[Floats, Floats], ...]:
        """What a person of each level of a categorical column has in the columns, and the shares of the levels."""
        raw, at = (
            perturbation.public_raw(self.release, self._everywhere),
            {p: i for i, p in enumerate(self.places)},
        )
        units = self._widths / np.sqrt(np.diag(self._raw_covariance)) if self.correlation else self._widths
        made = []
        for group in sorted({group for group in siblings(self.release.schema) if len(group) > 1}, key=min):
            shares = np.clip(raw[0, sorted(group)] / max(1.0, float(raw[0, 0])), 0.0, 1.0)
            has = np.zeros((len(group), len(at)))
            for row, place in enumerate(sorted(group)):
                if place in at:
                    has[row, at[place]] = units[at[place]]
            if shares.sum() > 0:
                made.append((has, shares / shares.sum()))
        return tuple(made)

    @cached_property
    def _kept_noise(self) -> dict[int, Floats]:
        return {}

    @cached_property
    def _kept_rehearsals(self) -> dict[tuple[int, bool], Rehearsals]:
        return {}

    def joint_intervals(self, law: NoiseLaw, level: float) -> Floats:
        """Weyl's intervals, which hold for all components together; of the noise alone."""
        count = perturbation.enough(law, level)
        draws = perturbation.rehearsed_noise(self.release, self._everywhere, law=law, count=count)
        size = perturbation.bound(perturbation.spectral_norms(draws), level)
        raw = perturbation.public_raw(self.release, self._everywhere)
        ends, noisy_count = [], 0.0 if self._count_is_public else size
        for sign in (-1, 1):
            moved = raw + sign * size * np.eye(len(raw))
            people = self._raw_count - sign * noisy_count
            if (self.centred and moved[0, 0] <= 0) or people <= 2:  # the noise may be all there is
                ends.append(np.full(len(self.places), 0.0 if sign < 0 else np.inf))
            else:
                ends.append(eigvalsh(self._reduced(moved))[::-1] / self._divisor(people))
        return np.asarray(np.maximum(np.stack(ends, axis=1), 0.0))

    @property
    def _units(self) -> Floats:
        return np.array([self.release.schema.features[place].unit for place in self.places])

    @property
    def _middles(self) -> Floats:
        return np.array([self.release.schema.features[place].middle for place in self.places])

    @property
    def _widths(self) -> Floats:
        return np.ones(len(self.places)) if self.scaled else self._units

    def from_rows(self, rows: Floats) -> Floats:
        """Rows in original units, in the units of the PCA and about its mean."""
        if self.scaled:
            rows = (rows - self._middles) / self._units / self._deviations
        return np.asarray(rows - self.mean)

    def to_rows(self, moved: Floats) -> Floats:
        """The same backwards."""
        rows = moved + self.mean
        return np.asarray(rows * self._deviations * self._units + self._middles if self.scaled else rows)

    @cached_property
    def spectrum(self) -> tuple[Floats, Floats]:
        """Eigenvalues of the repaired covariance, descending, and their directions, one a row."""
        values, vectors = eigh(self.covariance)
        values, rows = np.maximum(values[::-1], 0.0), vectors.T[::-1]
        largest = rows[np.arange(len(rows)), np.abs(rows).argmax(axis=1)]
        return values, np.asarray(rows * np.sign(largest)[:, None])

    def _reduced(self, moment: Floats) -> Floats:
        """The centred or plain sums of products behind a scaled moment matrix, in the units of the PCA."""
        moment = moment[np.ix_(self._here, self._here)]
        if self.centred:
            return np.asarray(perturbation.centred(moment) * np.outer(self._widths, self._widths))
        return np.asarray(self._carry @ moment @ self._carry.T)

    def _divisor(self, count: float) -> float:
        return max(1.0, count - self.release.row_weight) if self.centred else max(1.0, count)

    @property
    def _count_is_public(self) -> bool:
        fixed = self.release.structure.fixed
        return not self.release.schema.intercept or (0, 0) in list(map(tuple, fixed))

    @property
    def _raw_count(self) -> float:
        if not self.release.schema.intercept:
            return float(self.release.rows or 0)
        return float(perturbation.public_raw(self.release, [0])[0, 0])


def _draws(law: NoiseLaw, level: float) -> int:
    """How many releases are rehearsed for intervals of a level."""
    return max(math.ceil(10 / (1 - level)), min(_DRAWS, _ENTRIES // law.dimension**2))
