"""Comparisons of strata: differences with intervals, and small strata drawn towards the pool.

Noise is independent between strata as drawn (that of a total combined with them cancels in a difference), and so is
sampling where a person has rows in one stratum only. So an interval for a difference follows from the intervals of the
two parts: the distances from the estimates to the ends that make the difference larger add up in squares, and so do
those that make it smaller (Zou and Donner 2008). With symmetric intervals that is the sum of variances; intervals of a
score test keep their shape. All of it is post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats, Matrix
from privcov.models.levels import Term
from privcov.models.ols import ols
from privcov.models.partial import Apart, siblings
from privcov.models.summary import rounded, span
from privcov.releases.release import Release
from privcov.releases.strata import StratifiedRelease
from privcov.schema import Schema
from privcov.schema.names import INTERCEPT
from privcov.text.aligning import cut, line, paragraph, widths


class Difference(NamedTuple):
    """One quantity of a stratum less that of another.

    Attributes
    ----------
    name : str
        What was compared: a coefficient, "mean of age", or "correlation of age and educ".
    first, second : float
        The estimates of the two strata.
    lower, upper : float
        The ends of the interval for the difference.

    Examples
    --------
    >>> Difference("mean of age", 40.0, 38.5, 0.9, 2.1).value
    1.5
    """

    name: str
    first: float
    second: float
    lower: float
    upper: float

    @property
    def value(self) -> float:
        """The difference."""
        return self.first - self.second


@dataclass(frozen=True, kw_only=True)
class Differences:
    """The differences between two strata, with intervals that count sampling and noise of both.

    Attributes
    ----------
    first, second : str
        The two strata; a difference is the first less the second.
    level : float
        The confidence level of each interval.
    found : tuple of Difference
        What was compared.
    note : str, default ""
        Why estimates differ from what the release of a stratum shows elsewhere, where they do.

    Examples
    --------
    >>> made = Differences(first="Kern", second="Inyo", level=0.95, found=(Difference("age", 2.0, 1.5, 0.1, 0.9),))
    >>> made["age"].value, made.to_dict()["first"]
    (0.5, 'Kern')
    >>> print(made.summary().splitlines()[0])
    Kern less Inyo
    >>> made.lines[1]
    [('age', '2.000', '1.500', '0.5000', '[0.1000, 0.9000] *')]
    """

    first: str
    second: str
    level: float
    found: tuple[Difference, ...]
    note: str = ""

    def __getitem__(self, name: str) -> Difference:
        for one in self.found:
            if one.name == name:
                return one
        raise ParameterError(
            "E231", f"there is no difference of {name!r}.", f"There is {self.found[0].name}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the differences for programs.

        Returns
        -------
        dict
            JSON values.
        """
        rows = [{**one._asdict(), "difference": one.value} for one in self.found]
        facts = {"first": self.first, "second": self.second, "level": self.level, "note": self.note}
        return {**facts, "differences": rows}

    @property
    def lines(self) -> tuple[tuple[str, ...], list[tuple[str, ...]], str]:
        """Headings, the cells of a line for each difference, and what a reader has to know."""
        heads = ("", cut(self.first), cut(self.second), "difference", f"{100 * self.level:g} % interval")
        rows: list[tuple[str, ...]] = [
            (cut(one.name), *(_told(value, one) for value in (one.first, one.second, one.value)), _ends(one))
            for one in self.found
        ]
        told = "*: zero is outside. Intervals count sampling and the noise of both strata. They cost nothing."
        if any(map(_is_open, self.found)):
            told += (
                " Of what has an interval without ends one digit is printed: the noise is too large for it."
            )
        return heads, rows, f"{told} {self.note}".rstrip()

    def summary(self) -> str:
        """Return the differences as a table for people.

        Returns
        -------
        str
            One line for each.
        """
        heads, rows, told = self.lines
        room = widths(heads, rows)
        lines = [line(cells, room, range(1)) for cells in (heads, *rows)]
        return "\n".join([f"{self.first} less {self.second}", "", *lines, "", paragraph(told)])


def _is_open(one: Difference) -> bool:
    return math.isinf(one.lower) and math.isinf(one.upper)


def _told(value: float, one: Difference) -> str:
    """A number of a difference, of one digit where nothing is known of that."""
    return rounded(value, 1 if _is_open(one) else None)


def _ends(one: Difference) -> str:
    return span(one.lower, one.upper) + ("" if one.lower <= 0 <= one.upper else " *")


def differences(
    strata: StratifiedRelease, first: str, second: str, *, formula: str | None = None, level: float = 0.95
) -> Differences:
    """Return what one stratum has more than another, with intervals.

    Parameters
    ----------
    strata : StratifiedRelease
        The strata.
    first, second : str
        Two of them, by name.
    formula : str, optional
        A regression whose coefficients are compared, "income ~ age". By default means and correlations are.
    level : float, default 0.95
        The confidence level of each interval, from 0.5 to below 1.

    Returns
    -------
    Differences
        One for each coefficient, or for each mean and each correlation.

    Raises
    ------
    ParameterError
        There is no such stratum, or it is the same twice (E284), or a model is refused as by ``ols``.

    Examples
    --------
    >>> import numpy as np, privcov as pc
    >>> columns = {"dose": {"lower": 0, "upper": 10}, "effect": {"lower": 0, "upper": 30}, "arm": {"levels": [0, 1]}}
    >>> dose, arm = np.tile(np.linspace(0, 10, 4000), 2), np.repeat([0, 1], 4000)
    >>> rows = np.column_stack([dose, (1 + arm) * dose + np.sin(np.arange(8000) ** 2), arm])
    >>> loss = pc.PureDP(epsilon=9, neighbours="add-remove")
    >>> strata = pc.release(rows, schema=pc.Schema.from_dict({"columns": columns}), loss=loss, by="arm")
    >>> found = pc.differences(strata, "1", "0", formula="effect ~ dose")["dose"]
    >>> round(found.value, 1), 0.9 < found.lower < found.upper < 1.1
    (1.0, True)
    """
    one, other = strata.uncombined(first), strata.uncombined(second)  # their noises are independent
    if strata.strata.place(first) == strata.strata.place(second):
        raise ParameterError("E284", f"{first} is the same stratum twice.", "Name two.")
    if formula is not None:
        parts = [_coefficients(part, formula, level) for part in (one, other)]
    else:
        parts = [{**_means(part, level), **_correlations(part, level)} for part in (one, other)]
    found = tuple(_combined(name, parts[0][name], parts[1][name]) for name in parts[0] if name in parts[1])
    return Differences(first=first, second=second, level=level, found=found, note=_note(strata, formula))


def _note(strata: StratifiedRelease, formula: str | None) -> str:
    """Noise has a law as long as nothing was repaired or combined, so estimates are those that intervals are about."""
    without = ["repair"] if formula is None else []
    if strata.pooled is not None:
        without.append("what the total adds")
    said = []
    if without:
        drawn = f"Estimates are as drawn, without {' and '.join(without)}"
        said.append(f"{drawn}; show and ols of one stratum may print others.")
    if strata.certificate.rounds:
        said.append(
            "They are of rows that the private frame shortened, and no interval counts the part that was cut."
        )
    return " ".join(said)


Found = tuple[float, float, float]
"""An estimate and the ends of its interval."""


def _combined(name: str, one: Found, other: Found) -> Difference:
    (first, low, high), (second, below, above) = one, other
    value = first - second
    lower = value - math.hypot(first - low, above - second)
    upper = value + math.hypot(high - first, second - below)
    return Difference(name, first, second, lower, upper)


def _coefficients(release: Release, formula: str, level: float) -> dict[str, Found]:
    fit = ols(release, formula)
    ends = fit.conf_int(level)
    return {name: (value, *ends[name]) for name, value in fit.params.items()}


def _means(release: Release, level: float) -> dict[str, Found]:
    """A mean is the intercept of a regression on nothing else."""
    targets = {
        feature.name: Term(
            column=feature.column, chosen=() if feature.level is None else (str(feature.level),)
        )
        for feature in release.schema.features
        if feature.kind in ("numeric", "level")
    }
    return {
        f"mean of {name}": _coefficients(release, f"{target} ~ 1", level)[INTERCEPT]
        for name, target in targets.items()
    }


def _correlations(release: Release, level: float) -> dict[str, Found]:
    if release.law is None:
        return {}
    apart, groups = Apart.of(release, release.law), siblings(release.schema)
    pairs = [(a, b) for a, b in combinations(range(1, len(release.columns)), 2) if b not in groups[a]]
    made = {
        f"correlation of {release.columns[a]} and {release.columns[b]}": apart.pair(a, b, level, given=(0,))
        for a, b in pairs
    }
    return {name: found for name, found in made.items() if not math.isnan(found[0])}


@dataclass(frozen=True, kw_only=True, eq=False)
class Shrunk:
    """A stratum drawn towards the pool of all strata, by as much as its noise is larger than strata differ.

    Attributes
    ----------
    name : str
        The stratum.
    weight : float
        How much of its covariance is its own, from 0 (the pool alone) to 1.
    mean_weight : float
        The same of its means.
    schema : Schema
        The columns.
    moment : ndarray of shape (d, d)
        The mean over rows of zzᵀ, in scaled units.

    Examples
    --------
    >>> import numpy as np
    >>> schema = Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}}})
    >>> moment = np.array([[1.0, 0.5], [0.5, 0.5]])
    >>> made = Shrunk(name="Inyo", weight=0.3, mean_weight=0.5, schema=schema, moment=moment)
    >>> made.mean(), made.covariance(), made.correlation()
    (array([75.]), array([[625.]]), array([[1.]]))
    """

    name: str
    weight: float
    mean_weight: float
    schema: Schema
    moment: Matrix

    @property
    def _units(self) -> Floats:
        return np.array([feature.unit for feature in self.schema.features[1:]])

    def mean(self) -> Floats:
        """Return the mean of every column but the intercept, in original units.

        Returns
        -------
        ndarray of shape (d - 1,)
            One mean per column.
        """
        middles = np.array([feature.middle for feature in self.schema.features[1:]])
        return np.asarray(middles + self._units * self.moment[0, 1:])

    def covariance(self) -> Matrix:
        """Return the covariance of every column but the intercept, in products of their units.

        Returns
        -------
        ndarray of shape (d - 1, d - 1)
            Covariances; positive semi-definite.
        """
        centred = self.moment[1:, 1:] - np.outer(self.moment[0, 1:], self.moment[0, 1:])
        return np.asarray(centred * np.outer(self._units, self._units))

    def correlation(self) -> Matrix:
        """Return the correlations of every column but the intercept.

        Returns
        -------
        ndarray of shape (d - 1, d - 1)
            Correlations; NaN where a column has no variance.
        """
        covariance = self.covariance()
        spread = np.sqrt(np.where(np.diag(covariance) > 0, np.diag(covariance), np.nan))
        made = np.clip(covariance / np.outer(spread, spread), -1.0, 1.0)
        np.fill_diagonal(made, 1.0)
        return np.asarray(made)


def shrunk(strata: StratifiedRelease) -> dict[str, Shrunk]:
    """Return every stratum drawn towards the pool: better for small strata, and biased towards the pool.

    Strata are taken to differ from the pool by τ², which is estimated from all of them, and the noise of one is known:
    v. What is left of a stratum is τ²/(τ² + v) of itself, with one τ² for means and one for covariances within strata.
    Post-processing; there are no intervals.

    Parameters
    ----------
    strata : StratifiedRelease
        The strata, of a schema with an intercept and a mechanism with a law of noise.

    Returns
    -------
    dict of str to Shrunk
        By the names of the strata.

    Raises
    ------
    ParameterError
        There is no intercept (E210).

    Examples
    --------
    >>> import numpy as np, privcov as pc
    >>> columns = {"age": {"lower": 0, "upper": 100}, "area": {"levels": [1, 2, 3]}}
    >>> table = np.column_stack([np.full(4010, 80.0), np.repeat([1, 2, 3], [2000, 2000, 10])])
    >>> loss = pc.PureDP(epsilon=1, neighbours="add-remove")
    >>> strata = pc.release(table, schema=pc.Schema.from_dict({"columns": columns}), loss=loss, by="area")
    >>> found = pc.shrunk(strata)
    >>> found["3"].mean_weight < 0.9, bool(abs(found["3"].mean()[0] - 80) < 15)
    (True, True)
    """
    law = strata.certificate.law
    if not strata.schema.intercept or law is None:
        raise ParameterError("E210", "only strata with an intercept can be drawn towards the pool.")
    raw = [part.second_moment(raw=True, scaled=True) for part in strata.values()]
    counts = np.array([max(1.0, float(matrix[0, 0])) for matrix in raw])
    variances = law.entry_variances
    pool, middle = _per_row(strata.total())[1:, 1:], strata.total().mean(scaled=True)
    seen = np.array([matrix[0, 1:] / n for matrix, n in zip(raw, counts, strict=True)])
    # The count is noisy too, and moves a mean in proportion to the mean.
    noise = (variances[0, 1:].sum() + variances[0, 0] * (np.clip(seen, -1, 1) ** 2).sum(axis=1)) / counts**2
    of_means = _weights(((seen - middle) ** 2).sum(axis=1), noise)
    own = np.array([part.mean(scaled=True) for part in strata.values()])
    means = middle + of_means[:, None] * (own - middle)
    within = _valid(pool - (means.T * counts) @ means / counts.sum())
    apart = [
        ((matrix[1:, 1:] / n - np.outer(mean, mean) - within) ** 2).sum()
        for matrix, n, mean in zip(raw, counts, seen, strict=True)
    ]
    weights = _weights(np.array(apart), variances[1:, 1:].sum() / counts**2)
    return {
        name: Shrunk(
            name=name,
            weight=float(weight),
            mean_weight=float(mean_weight),
            schema=strata.schema,
            moment=_moment(mean, weight * part.covariance(scaled=True) + (1 - weight) * within),
        )
        for (name, part), weight, mean_weight, mean in zip(
            strata.items(), weights, of_means, means, strict=True
        )
    }


def _per_row(release: Release) -> Matrix:
    return release.second_moment(scaled=True) / release.count()


def _moment(mean: Floats, covariance: Matrix) -> Matrix:
    row = np.concatenate([[1.0], mean])
    made = np.outer(row, row)
    made[1:, 1:] += covariance
    return made


def _valid(covariance: Matrix) -> Matrix:
    """The nearest matrix without negative eigenvalues."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def _weights(apart: Floats, noise: Floats) -> Floats:
    """τ²/(τ² + v), with τ² by moments: what squared distances from the pool have more than noise makes.

    Strata with little noise count most.
    """
    between = 0.0
    for _ in range(10):
        trust = 1.0 / (noise + between + 1e-300) ** 2
        between = max(0.0, float(trust @ (apart - noise) / trust.sum()))
    return between / (between + noise) if between > 0 else np.zeros(len(noise))
