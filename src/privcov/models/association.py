"""Correlation, partial correlation, precision and Mahalanobis distance, from the repaired matrix.

All work on the correlation matrix and carry units outside, so that none depends on the units of a column.
Eigenvalues of the correlation matrix below ``floor`` count as zero: along them columns determine each other
(the levels of one categorical column always do) and the inverse is a pseudo-inverse.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats
from privcov.models import selection
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

    Examples
    --------
    >>> import numpy as np
    >>> matrix = NamedMatrix(what="correlation", columns=("a", "b"), values=np.eye(2), rehearsal=False)
    >>> matrix["a", "b"], matrix.to_dict()["columns"]
    (0.0, ['a', 'b'])
    """

    what: str
    columns: tuple[str, ...]
    values: Floats
    rehearsal: bool
    floor: float | None = None
    dropped: int = 0

    def __getitem__(self, pair: tuple[str, str]) -> float:
        for name in pair:
            if name not in self.columns:
                raise ParameterError(
                    "E250", f"there is no column {name!r}.", f"It has {', '.join(self.columns[:8])}."
                )
        return float(self.values[self.columns.index(pair[0]), self.columns.index(pair[1])])

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
        }

    def __repr__(self) -> str:
        label = "REHEARSAL " if self.rehearsal else ""
        return f"<{label}{self.what} of {len(self.columns)} columns>"


def correlation(release: Release, *, repair: str = "auto") -> NamedMatrix:
    """Return the correlations of the columns of a release.

    Parameters
    ----------
    release : Release
        A release with an intercept.
    repair : str, default "auto"
        The repair that they are taken from: a name of ``privcov.repair.METHODS``.

    Returns
    -------
    NamedMatrix
        Correlations in [-1, 1]. NaN where the release leaves a column no variance.

    Raises
    ------
    ParameterError
        The release has no intercept (E255), or there is no such repair (E272).

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
    return _named(release, "correlation", release.correlation(repair=repair))


def partial_correlation(release: Release, *, floor: float = FLOOR, repair: str = "auto") -> NamedMatrix:
    """Return the correlation of two columns after every other column has been regressed out of both.

    Parameters
    ----------
    release : Release
        A release with an intercept.
    floor : float, default 1e-6
        Eigenvalues of the correlation matrix below this count as zero; between 0 and 1.
    repair : str, default "auto"
        The repair that they are taken from: a name of ``privcov.repair.METHODS``.

    Returns
    -------
    NamedMatrix
        Correlations in [-1, 1]. NaN for a column that the others determine: nothing of it is left to correlate.

    Raises
    ------
    ParameterError
        There is no intercept (E255), a column has no variance (E254), or the floor is out of range (E258).

    Examples
    --------
    >>> import numpy as np, privcov as pc
    >>> from privcov.models.association import partial_correlation
    >>> rows = np.sin(np.arange(8000.0).reshape(4000, 2) ** 2)
    >>> schema = pc.Schema.from_dict({"columns": {n: {"lower": -1, "upper": 1} for n in "ab"}})
    >>> release = pc.release(rows, schema=schema, loss=pc.PureDP(epsilon=9, neighbours="replace-one"))
    >>> abs(partial_correlation(release)["a", "b"]) < 0.2
    True
    """
    inverse, null, _ = _inverse(release, floor, repair)
    scale = np.sqrt(np.diag(inverse))
    determined = np.abs(null).max(axis=1, initial=0.0) > 1e-6
    with np.errstate(divide="ignore", invalid="ignore"):
        values = -inverse / np.outer(scale, scale)
    values = np.clip(values, -1.0, 1.0)
    values[determined, :] = values[:, determined] = np.nan
    np.fill_diagonal(values, 1.0)
    return _named(release, "partial correlation", values, floor=floor, dropped=null.shape[1])


def precision(
    release: Release, *, floor: float = FLOOR, scaled: bool = False, repair: str = "auto"
) -> NamedMatrix:
    """Return the inverse of the covariance, a pseudo-inverse below the floor.

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
        The inverse, in one over products of the columns' units.

    Raises
    ------
    ParameterError
        There is no intercept (E255), a column has no variance (E254), or the floor is out of range (E258).

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
    inverse, null, std = _inverse(release, floor, repair)
    if not scaled:
        std = std * np.array([feature.unit for feature in release.schema.features[1:]])
    return _named(release, "precision", inverse / np.outer(std, std), floor=floor, dropped=null.shape[1])


def mahalanobis(release: Release, rows: Any, *, floor: float = FLOOR, repair: str = "auto") -> Floats:
    """Return the distance of new rows from the mean, in standard deviations.

    Directions below the floor do not count.

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
        There is no intercept (E255), a column has no variance (E254), the floor is out of range (E258), or the rows
        do not fit.

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
    table = selection.read_rows(release, range(1, len(release.columns)), rows) - release.mean(repair=repair)
    return np.asarray(np.sqrt(np.maximum(np.einsum("ni,ij,nj->n", table, matrix, table), 0.0)))


def _inverse(release: Release, floor: float, repair: str) -> tuple[Floats, Floats, Floats]:
    """The inverse correlation matrix, the directions left out of it, and standard deviations in scaled units."""
    selection.needs_intercept(release, "a precision matrix")
    if isinstance(floor, bool) or not isinstance(floor, int | float) or not 0 < floor < 1:
        raise ParameterError(
            "E258", f"floor must be between 0 and 1, got {floor!r}.", f"The default is {FLOOR}."
        )
    correlations = release.correlation(repair=repair)
    variance = np.diag(release.covariance(scaled=True, repair=repair))
    known = variance > selection.NO_VARIANCE
    if not known.all():
        flat = [name for name, fine in zip(release.columns[1:], known, strict=True) if not fine]
        raise ParameterError(
            "E254",
            f"the release shows no variance in {', '.join(flat[:8])}.",
            "Release again without these.",
        )
    values, vectors = np.linalg.eigh(correlations)
    kept = values > floor
    inverse = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T
    return np.asarray((inverse + inverse.T) / 2), vectors[:, ~kept], np.sqrt(variance)


def _named(
    release: Release, what: str, values: Floats, *, floor: float | None = None, dropped: int = 0
) -> NamedMatrix:
    return NamedMatrix(
        what=what,
        columns=release.columns[1:],
        values=values,
        rehearsal=release.certificate.randomness == "rehearsal",
        floor=floor,
        dropped=dropped,
    )
