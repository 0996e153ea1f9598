"""Correlation, partial correlation, precision and Mahalanobis distance.

What inverts a matrix leaves out columns first: the first level of each categorical column, which the other levels
determine, and columns that cannot be told from the others through the noise (``privcov.models.partial``). Without that
the inverse is one of noise. Partial correlations and the intervals of correlations come from the raw moments;
correlation, precision and distance from the repaired matrix. All work on the correlation matrix and carry units
outside, so that none depends on the units of a column. Eigenvalues of what is left below ``floor`` count as zero, and
the inverse is a pseudo-inverse.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats
from privcov.models import selection
from privcov.models.partial import Apart, siblings
from privcov.models.summary import REHEARSAL
from privcov.releases.release import Release
from privcov.text.display import Shown

FLOOR = 1e-6


@dataclass(frozen=True, kw_only=True, eq=False)
class NamedMatrix(Shown):
    """A symmetric matrix over the columns of a release; ``matrix["age", "income"]`` is one entry.

    Attributes
    ----------
    what : str
        What the entries are: "correlation", "partial correlation" or "precision".
    columns : tuple of str
        The names of rows and columns.
    values : ndarray of shape (d, d)
        The entries. ``numpy.asarray(matrix)`` gives them too.
    rehearsal : bool
        Whether the release had repeatable noise, so that nothing here may be published.
    floor : float or None
        Eigenvalues of the correlation matrix below this counted as zero. None where nothing was inverted.
    dropped : int
        How many eigenvalues did.
    left_out : tuple of str
        Columns that were left out before a matrix was inverted: the first level of each categorical column, and what
        cannot be told from the other columns through the noise.
    lower, upper : ndarray of shape (d, d) or None
        The ends of the confidence intervals of the entries, where all have them; -1 and 1 where the release cannot
        say. Correlations have theirs one by one, from ``interval``.
    level : float or None
        The confidence level of the intervals.
    ends : callable or None
        What gives the ends of one entry by its places, where intervals are asked for one by one.

    Examples
    --------
    >>> import numpy as np
    >>> matrix = NamedMatrix(what="correlation", columns=("a", "b"), values=np.eye(2), rehearsal=False)
    >>> matrix["a", "b"], matrix.to_dict()["columns"]
    (0.0, ['a', 'b'])
    >>> matrix.interval("a", "b") is None
    True
    """

    what: str
    columns: tuple[str, ...]
    values: Floats
    rehearsal: bool
    floor: float | None = None
    dropped: int = 0
    left_out: tuple[str, ...] = ()
    lower: Floats | None = None
    upper: Floats | None = None
    level: float | None = None
    ends: Callable[[int, int], tuple[float, float]] | None = None

    def __getitem__(self, pair: tuple[str, str]) -> float:
        return float(self.values[self._entry(pair)])

    def interval(self, one: str, other: str) -> tuple[float, float] | None:
        """Return the confidence interval of one entry.

        Parameters
        ----------
        one, other : str
            Names of two columns.

        Returns
        -------
        tuple of float, or None
            The low and the high end; None where this matrix has no intervals.

        Raises
        ------
        ParameterError
            There is no such column (E250).
        """
        place = self._entry((one, other))
        if self.ends is not None:
            return self.ends(*place)
        if self.lower is None or self.upper is None:
            return None
        return float(self.lower[place]), float(self.upper[place])

    def _entry(self, pair: tuple[str, str]) -> tuple[int, int]:
        for name in pair:
            if name not in self.columns:
                raise ParameterError(
                    "E250", f"there is no column {name!r}.", f"It has {', '.join(self.columns[:8])}."
                )
        return self.columns.index(pair[0]), self.columns.index(pair[1])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.values, dtype=dtype)

    def to_dict(self) -> dict[str, Any]:
        """Return the matrix for programs.

        Returns
        -------
        dict
            JSON values.
        """
        return {
            "what": self.what,
            "labels": [REHEARSAL] if self.rehearsal else [],
            "columns": list(self.columns),
            "values": self.values.tolist(),
            "floor": self.floor,
            "dropped": self.dropped,
            "left_out": list(self.left_out),
            "level": self.level,
            "lower": None if self.lower is None else self.lower.tolist(),
            "upper": None if self.upper is None else self.upper.tolist(),
        }

    def __repr__(self) -> str:
        label = "REHEARSAL " if self.rehearsal else ""
        return f"<{label}{self.what} of {len(self.columns)} columns>"


def correlation(release: Release, *, repair: str = "auto", level: float = 0.95) -> NamedMatrix:
    """Return the correlations of the columns of a release.

    Parameters
    ----------
    release : Release
        A release with an intercept.
    repair : str, default "auto"
        The repair that they are taken from: a name of ``privcov.repair.METHODS``.
    level : float, default 0.95
        The confidence level of the intervals, from 0.5 to below 1.

    Returns
    -------
    NamedMatrix
        Correlations in [-1, 1]. NaN where the release leaves a column no variance. Where the law of the noise is
        known, ``interval`` gives one for the population, from the raw moments as for partial correlations and
        around the entry; from -1 to 1 where the release cannot say. Of what a private frame cut off rows they count the
        likely bias where the release was made with ``cut="counted"``, and else nothing.

    Raises
    ------
    ParameterError
        The release has no intercept (E255), there is no such repair (E272), or the level is out of range (E258).

    Examples
    --------
    >>> import numpy as np, privcov as pc
    >>> from privcov.models.association import correlation
    >>> line = np.linspace(-1, 1, 4000)
    >>> schema = pc.Schema.from_dict({"columns": {n: {"lower": -1, "upper": 1} for n in "ab"}})
    >>> loss = pc.PureDP(epsilon=9, neighbours="replace-one")
    >>> release = pc.release(np.stack([line, -line], axis=1), schema=schema, loss=loss)
    >>> round(correlation(release)["a", "b"], 1)
    -1.0
    """
    selection.needs_intercept(release, "a correlation")
    level, law, values = _check_level(level), release.law, release.correlation(repair=repair)
    if law is None:
        return _named(release, "correlation", values)
    apart = Apart.of(release, law)

    def ends(i: int, j: int) -> tuple[float, float]:
        if i == j:
            return 1.0, 1.0
        _, low, high = apart.pair(i + 1, j + 1, level, given=(0,))
        value = float(values[i, j])
        return (low, high) if np.isnan(value) else (min(low, value), max(high, value))

    return _named(release, "correlation", values, level=level, ends=ends)


def partial_correlation(
    release: Release, *, floor: float = FLOOR, repair: str = "auto", level: float = 0.95
) -> NamedMatrix:
    """Return the correlation of two columns after the other columns have been regressed out of both.

    Of a categorical column all levels but the first are regressed out. A level is compared with all other levels of
    its column, so these are not regressed out of a pair that it is in. A column that cannot be told from the others
    through the noise is not regressed out either: it is in ``left_out``, and a level that is counts with the first.

    Parameters
    ----------
    release : Release
        A release with an intercept.
    floor : float, default 1e-6
        Eigenvalues of the repaired correlation matrix below this count as zero; between 0 and 1.
    repair : str, default "auto"
        "auto" takes the raw moments, corrected for the noise that regressing out absorbs, where the law of the noise
        is known. Otherwise the repair that estimates are taken from: a name of ``privcov.repair.METHODS``. Intervals
        always come from the raw moments.
    level : float, default 0.95
        The confidence level of the intervals, from 0.5 to below 1.

    Returns
    -------
    NamedMatrix
        Correlations in [-1, 1] with intervals for the population, where the law of the noise is known; rows of one
        person may depend on each other, which counts by the most it can do. NaN, with the
        interval from -1 to 1, where the release cannot say: a column without variance beyond the noise and the other
        columns, or two levels of one column.

    Raises
    ------
    ParameterError
        There is no intercept (E255), the floor or the level is out of range (E258), or, without a law, a column has no
        variance (E254).

    Examples
    --------
    >>> import numpy as np, privcov as pc
    >>> from privcov.models.association import partial_correlation
    >>> rows = np.sin(np.arange(8000.0).reshape(4000, 2) ** 2)
    >>> schema = pc.Schema.from_dict({"columns": {n: {"lower": -1, "upper": 1} for n in "ab"}})
    >>> release = pc.release(rows, schema=schema, loss=pc.PureDP(epsilon=9, neighbours="replace-one"))
    >>> found = partial_correlation(release)
    >>> low, high = found.interval("a", "b")
    >>> abs(found["a", "b"]) < 0.2, -0.2 < low < found["a", "b"] < high < 0.2
    (True, True)
    """
    selection.needs_intercept(release, "a partial correlation")
    _check_floor(floor)
    level = _check_level(level)
    law, count = release.law, len(release.columns) - 1
    apart = None if law is None else Apart.of(release, law)
    kept, groups = _kept(release), siblings(release.schema)
    values, lower, upper = np.eye(count), np.eye(count), np.eye(count)
    inverses: dict[tuple[int, ...], Floats] = {}
    for i, j in zip(*np.triu_indices(count, 1), strict=True):
        a, b = int(i) + 1, int(j) + 1
        value = np.nan if b in groups[a] else 0.0
        if apart is not None:
            value, lower[i, j], upper[i, j] = apart.pair(a, b, level)
            lower[j, i], upper[j, i] = lower[i, j], upper[i, j]
        if (apart is None or repair != "auto") and not np.isnan(value):
            away = (groups[a] | groups[b]) - {a, b}
            places = tuple(sorted({place for place in kept if place not in away} | {a, b}))
            if places not in inverses:
                inverses[places] = _inverse(release, places, floor, repair)[0]
            two = [places.index(a), places.index(b)]
            (one, both), (_, other) = inverses[places][np.ix_(two, two)]
            value = float(np.clip(-both / np.sqrt(one * other), -1.0, 1.0))
        values[i, j] = values[j, i] = value
    words = {} if apart is None else {"lower": lower, "upper": upper, "level": level}
    return _named(release, "partial correlation", values, left_out=_left_out(release, kept), **words)


def precision(
    release: Release, *, floor: float = FLOOR, scaled: bool = False, repair: str = "auto"
) -> NamedMatrix:
    """Return the inverse of the covariance of the columns that can be told apart through the noise.

    The others are in ``left_out``, and their entries are 0: the first level of each categorical column, which the other
    levels determine, and columns whose variance beyond the others is within the noise.

    Parameters
    ----------
    release : Release
        A release with an intercept.
    floor : float, default 1e-6
        Eigenvalues of the correlation matrix below this count as zero; between 0 and 1.
    scaled : bool, default False
        Whether to answer in scaled units instead of original units.
    repair : str, default "auto"
        The repair that it is taken from: a name of ``privcov.repair.METHODS``.

    Returns
    -------
    NamedMatrix
        The inverse, in one over products of the columns' units; a pseudo-inverse below the floor.

    Raises
    ------
    ParameterError
        There is no intercept (E255), no column has a variance beyond the noise or, without a law, one has none
        (E254), or the floor is out of range (E258).

    Examples
    --------
    >>> import numpy as np, privcov as pc
    >>> from privcov.models.association import precision
    >>> rows = np.sin(np.arange(8000.0).reshape(4000, 2) ** 2)
    >>> schema = pc.Schema.from_dict({"columns": {n: {"lower": -1, "upper": 1} for n in "ab"}})
    >>> release = pc.release(rows, schema=schema, loss=pc.PureDP(epsilon=9, neighbours="replace-one"))
    >>> bool(np.allclose(np.array(precision(release)) @ release.covariance(), np.eye(2)))
    True
    """
    selection.needs_intercept(release, "a precision matrix")
    _check_floor(floor)
    kept = _kept(release)
    inverse, dropped, std = _inverse(release, kept, floor, repair)
    if not scaled:
        std = std * np.array([release.schema.features[place].unit for place in kept])
    values = np.zeros((len(release.columns) - 1, len(release.columns) - 1))
    inside = [place - 1 for place in kept]
    values[np.ix_(inside, inside)] = inverse / np.outer(std, std)
    left_out = _left_out(release, kept)
    return _named(release, "precision", values, floor=floor, dropped=dropped, left_out=left_out)


def mahalanobis(release: Release, rows: Any, *, floor: float = FLOOR, repair: str = "auto") -> Floats:
    """Return the distance of new rows from the mean, in standard deviations.

    Columns that cannot be told apart through the noise (``left_out`` of ``precision``) and directions below the floor
    do not count.

    Parameters
    ----------
    release : Release
        A release with an intercept.
    rows : array or frame
        New rows in original units: an array in the order of the columns, or a frame with these columns.
    floor : float, default 1e-6
        Eigenvalues of the correlation matrix below this count as zero; between 0 and 1.
    repair : str, default "auto"
        The repair that the precision is taken from: a name of ``privcov.repair.METHODS``.

    Returns
    -------
    ndarray of shape (n,)
        One distance per row, without unit.

    Raises
    ------
    ParameterError
        There is no intercept (E255), no column has a variance beyond the noise (E254), the floor is out of range
        (E258), or the rows do not fit.

    Examples
    --------
    >>> import numpy as np, privcov as pc
    >>> from privcov.models.association import mahalanobis
    >>> rows = np.sin(np.arange(8000.0).reshape(4000, 2) ** 2)
    >>> schema = pc.Schema.from_dict({"columns": {n: {"lower": -1, "upper": 1} for n in "ab"}})
    >>> release = pc.release(rows, schema=schema, loss=pc.PureDP(epsilon=9, neighbours="replace-one"))
    >>> near, far = mahalanobis(release, [[0.0, 0.0], [1.0, 1.0]])
    >>> bool(near < 0.2 < far)
    True
    """
    matrix = precision(release, floor=floor, repair=repair).values
    places = selection.explaining(release.schema)
    inside = [place - 1 for place in places]
    table = selection.read_rows(release, places, rows) - release.mean(repair=repair)[inside]
    matrix = matrix[np.ix_(inside, inside)]
    return np.asarray(np.sqrt(np.maximum(np.einsum("ni,ij,nj->n", table, matrix, table), 0.0)))


def _kept(release: Release) -> tuple[int, ...]:
    """Places of the columns to invert: all but those that structure or noise makes redundant."""
    law = release.law
    if law is None:
        groups = siblings(release.schema)
        return tuple(
            p for p in selection.explaining(release.schema) if len(groups[p]) == 1 or p != min(groups[p])
        )
    return Apart.of(release, law).kept[1:]


def _inverse(
    release: Release, places: tuple[int, ...], floor: float, repair: str
) -> tuple[Floats, int, Floats]:
    """The inverse correlations at some places, how many eigenvalues were left out, and scaled standard deviations."""
    inside = [place - 1 for place in places]
    covariance = release.covariance(scaled=True, repair=repair)[np.ix_(inside, inside)]
    variance = np.diag(covariance)
    known = variance > selection.NO_VARIANCE
    if not places or not known.all():
        flat = [release.columns[p] for p, fine in zip(places, known, strict=True) if not fine]
        raise ParameterError(
            "E254",
            f"the release shows no variance in {', '.join(flat[:8]) or 'any column'}.",
            "Release again without these." if places else "Release with less noise, or more rows.",
        )
    std = np.sqrt(variance)
    values, vectors = np.linalg.eigh(covariance / np.outer(std, std))
    kept = values > floor
    inverse = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T
    return np.asarray((inverse + inverse.T) / 2), int((~kept).sum()), std


def _check_floor(floor: float) -> None:
    if isinstance(floor, bool) or not isinstance(floor, int | float) or not 0 < floor < 1:
        raise ParameterError(
            "E258", f"floor must be between 0 and 1, got {floor!r}.", f"The default is {FLOOR}."
        )


def _check_level(level: float) -> float:
    if isinstance(level, bool) or not isinstance(level, int | float) or not 0.5 <= level < 1:
        raise ParameterError(
            "E258", f"level must be a number from 0.5 to below 1, got {level!r}.", "Take 0.95."
        )
    return float(level)


def _left_out(release: Release, kept: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(name for place, name in enumerate(release.columns) if place and place not in kept)


def _named(release: Release, what: str, values: Floats, **more: Any) -> NamedMatrix:
    return NamedMatrix(
        what=what,
        columns=release.columns[1:],
        values=values,
        rehearsal=release.certificate.randomness == "rehearsal",
        **more,
    )
