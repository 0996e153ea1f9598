"""The numbers that pages and notebooks show of a release: repaired, or the first columns as released where it is wide.

A wide release (``releases/triangle.py``) is too large to repair or to draw for the sake of a page, so its page shows a
corner of it, raw, and says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privcov.linalg.arrays import Floats
from privcov.linalg.triangle import diagonal_places
from privcov.releases.release import Release
from privcov.releases.triangle import Triangle
from privcov.report.sizes import NoiseSizes, noise_sizes
from privcov.schema import Feature
from privcov.schema.grid import Grid

CORNER = 150


@dataclass(frozen=True, kw_only=True, eq=False)
class View:
    """A second-moment matrix in scaled units, what its rows mean, and how many columns are not in it."""

    features: tuple[Feature, ...]
    moment: Floats
    """With the intercept first, where there is one."""
    count: float | None
    """None where there is neither an intercept nor a public count: then products are sums, not means."""
    noise: NoiseSizes | None
    raw: bool
    hidden: int

    @classmethod
    def of(cls, release: Release) -> View:
        """The whole release, repaired; of a wide one its first columns, raw."""
        features = release.schema.features
        known = release.schema.intercept or release.rows is not None
        if not isinstance(release.upper, Triangle):
            moment = release.second_moment(scaled=True)
            count, places = release.count() if known else None, release.structure.fixed
        else:
            moment = _corner(release, release.upper)
            noisy = float(moment[0, 0]) if release.schema.intercept else 0.0
            count = float(release.rows) if release.rows is not None else max(1.0, noisy) if known else None
            places = np.empty((0, 2), dtype=np.intp)
        shown = features[: len(moment)]
        law = release.certificate.law
        return cls(
            features=shown,
            moment=moment,
            count=count,
            noise=None
            if law is None or count is None
            else noise_sizes(moment, law=law, features=shown, count=count, known=places),
            raw=isinstance(release.upper, Triangle),
            hidden=len(features) - len(shown),
        )

    @property
    def intercept(self) -> bool:
        """Whether there are means."""
        return self.features[0].kind == "intercept"

    @property
    def columns(self) -> tuple[Feature, ...]:
        """Everything but the intercept."""
        return self.features[int(self.intercept) :]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(feature.name for feature in self.columns)

    @property
    def scaled(self) -> bool:
        """Whether products can be told in [-1, 1] units only: without an intercept, about a middle that is not 0."""
        return not self.intercept and any(feature.middle for feature in self.columns)

    @property
    def widths(self) -> Floats:
        """What a scaled unit is, for each column."""
        return np.array([1.0 if self.scaled else feature.unit for feature in self.columns])

    @cached_property
    def mean(self) -> Floats | None:
        """Means in original units."""
        if not self.intercept or self.count is None:
            return None
        middles = np.array([feature.middle for feature in self.columns])
        return np.asarray(middles + self.widths * self.moment[0, 1:] / self.count)

    @cached_property
    def covariance(self) -> Floats:
        """Covariances, or mean products without an intercept; sums of products where the count is private."""
        divisor = 1.0 if self.count is None else max(1.0, self.count - self.intercept)
        return np.asarray(self._centred / divisor * np.outer(self.widths, self.widths))

    @cached_property
    def correlation(self) -> Floats:
        """Correlations, about zero without an intercept; NaN where a column has no variance."""
        squares = np.diag(self._centred)
        known = squares > 1e-12 * max(1.0, float(squares.max(initial=0.0)))
        size = np.where(known, np.sqrt(np.abs(squares)), np.nan)
        values = np.clip(self._centred / np.outer(size, size), -1.0, 1.0)
        np.fill_diagonal(values, 1.0)
        return np.asarray(values)

    @property
    def _centred(self) -> Floats:
        if not self.intercept or self.count is None:
            return self.moment
        sums = self.moment[0, 1:]
        return np.asarray(self.moment[1:, 1:] - np.outer(sums, sums) / self.count)


def _corner(release: Release, upper: Triangle) -> Floats:
    """The first columns of a wide matrix, read from its words without the rest."""
    d = len(release.columns)
    size, unit = min(CORNER + 1, d), float(Grid.of(release.schema).unit)
    made = np.zeros((size, size))
    for i, start in enumerate(diagonal_places(d)[:size].tolist()):
        made[i, i:] = [unit * value for value in upper[start : start + size - i]]
    return made + np.triu(made, 1).T
