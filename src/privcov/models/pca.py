"""Principal components from a release: directions, explained variance with intervals, a rank the noise allows.

Components come from the repaired covariance. Intervals and the choice of the rank come from the raw matrix,
which is unbiased, and from the law of the noise. Columns are scaled to [-1, 1] unless ``scaled=False``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg

from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats
from privcov.linalg.devices import eigh, eigvalsh
from privcov.models import perturbation, selection
from privcov.models.summary import REHEARSAL
from privcov.releases.release import Release
from privcov.text.display import Shown

EDGE_LEVEL = 0.95  # pure noise passes for a component in at most one release in twenty


def pca(
    release: Release,
    *,
    rank: int | None = None,
    centred: bool = True,
    scaled: bool = True,
    repair: str = "auto",
) -> PCAFit:
    """Find the principal components of the columns of a release.

    Components come from the repaired covariance; intervals and the choice of the rank from the raw matrix.

    Parameters
    ----------
    release : Release
        The release to decompose. It costs no further privacy. It needs an intercept where ``centred`` or
        original units are asked for.
    rank : int, optional
        How many components to keep. By default as many as raw eigenvalues stand above the noise edge, which
        may be none; all where the noise has no law.
    centred : bool, default True
        Whether to decompose the covariance; with False, the mean second moment about zero.
    scaled : bool, default True
        Whether columns are scaled to [-1, 1]; with False they are in original units.
    repair : str, default "auto"
        The repair that the covariance is taken from: a name of ``privcov.repair.METHODS``.

    Returns
    -------
    PCAFit
        Components, explained variance and intervals.

    Raises
    ------
    ParameterError
        The rank is out of range (E253), no column has variance (E254), or the release has no intercept (E255).

    Examples
    --------
    >>> import numpy as np, privcov as pc
    >>> rows = np.linspace(0, 10, 4000)[:, None] @ [[1.0, 2.0]]
    >>> bounds = {"dose": {"lower": 0, "upper": 10}, "effect": {"lower": 0, "upper": 20}}
    >>> release = pc.release(rows, schema=pc.Schema.from_dict({"columns": bounds}),
    ...                      loss=pc.PureDP(epsilon=1, neighbours="replace-one"))
    >>> pc.pca(release, rank=1).rank
    1
    """
    if centred or (not scaled and any(feature.middle for feature in release.schema.features)):
        selection.needs_intercept(release, "this PCA")
    if not release.schema.intercept and release.rows is None:
        selection.needs_intercept(release, "the count behind a PCA")
    columns = len(release.columns) - release.schema.intercept
    whole = isinstance(rank, int | np.integer) and not isinstance(rank, bool)
    if rank is not None and not (whole and 1 <= rank <= columns):
        raise ParameterError(
            "E253",
            f"rank must be a whole number from 1 to {columns}, got {rank!r}.",
            "Leave it out to choose it.",
        )
    if rank is None and release.certificate.law is not None:
        perturbation.known_law(release, "the choice of a rank")
    fit = PCAFit(release=release, asked=rank, centred=centred, scaled=scaled, repair=repair)
    if not (np.diag(fit.covariance) > selection.NO_VARIANCE * fit._widths**2).any():
        raise ParameterError(
            "E254", "the release shows no variance in any column.", "Ask for a less noisy release."
        )
    return fit


@dataclass(frozen=True, kw_only=True, eq=False)
class PCAFit(Shown):
    """Principal components of a release; ``components`` has one direction per row.

    The units of the PCA are scaled units, or original units where ``scaled`` is False.

    Attributes
    ----------
    release : Release
        What was decomposed.
    asked : int or None
        The rank asked for; ``rank`` is the one taken.
    centred : bool
        Whether the covariance was decomposed, and not the second moment about zero.
    scaled : bool
        Whether columns were scaled to [-1, 1].
    repair : str
        The repair that the covariance was taken from.

    Examples
    --------
    >>> import numpy as np, privcov as pc
    >>> rows = np.linspace(0, 10, 4000)[:, None] @ [[1.0, 2.0]]
    >>> bounds = {"dose": {"lower": 0, "upper": 10}, "effect": {"lower": 0, "upper": 20}}
    >>> release = pc.release(rows, schema=pc.Schema.from_dict({"columns": bounds}),
    ...                      loss=pc.PureDP(epsilon=9, neighbours="replace-one"))
    >>> fit = pc.pca(release, rank=1)
    >>> fit.columns, fit.rank, fit.rehearsal, fit.components.round(1)
    (('dose', 'effect'), 1, False, array([[0.7, 0.7]]))
    >>> fit.explained_variance.round(1), fit.explained_share.round(1), round(fit.total_variance, 1)
    (array([0.7]), array([1.]), 0.7)
    >>> fit.covariance.shape, fit.mean.shape, fit.raw_variance.shape, fit.noise_edge < 0.1
    ((2, 2), (2,), (2,), True)
    >>> low, high = fit.intervals()[0]
    >>> bool(0.5 < low < high < 0.9), round(fit.captured_variance([[1.0, 1.0]]), 1)
    (True, 1.0)
    >>> scores = fit.transform([[10.0, 20.0]])
    >>> fit.inverse_transform(scores).round(), fit.to_dict()["units"]
    (array([[10., 20.]]), 'scaled')
    """

    release: Release
    asked: int | None
    centred: bool
    scaled: bool
    repair: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that were decomposed."""
        return tuple(self.release.columns[place] for place in self._places)

    @property
    def rehearsal(self) -> bool:
        """Whether the release had repeatable noise, so that nothing here may be published."""
        return self.release.certificate.randomness == "rehearsal"

    @cached_property
    def rank(self) -> int:
        """The number of components that are kept."""
        if self.asked is not None:
            return int(self.asked)
        return (
            len(self.columns) if self.noise_edge is None else int((self.raw_variance > self.noise_edge).sum())
        )

    @property
    def components(self) -> Floats:
        """Orthonormal directions, one per row, the largest variance first; their largest entry is positive."""
        return self._spectrum[1][: self.rank]

    @property
    def explained_variance(self) -> Floats:
        """The variance along each component, from the repaired covariance, in squared units of the PCA."""
        return self._spectrum[0][: self.rank]

    @property
    def explained_share(self) -> Floats:
        """The share, from 0 to 1, of the total variance along each component."""
        return self.explained_variance / self.total_variance

    @property
    def total_variance(self) -> float:
        """The sum of the variances of all columns, in squared units of the PCA."""
        return float(self._spectrum[0].sum())

    @cached_property
    def covariance(self) -> Floats:
        """The repaired covariance (or mean second moment) that is decomposed."""
        moment = self.release.second_moment(scaled=True, repair=self.repair)
        return self._reduced(moment) / self._divisor(self.release.count(repair=self.repair))

    @cached_property
    def mean(self) -> Floats:
        """What is taken from a row before projecting, in the units of the PCA."""
        if not self.centred:
            return np.zeros(len(self.columns))
        return self.release.mean(scaled=self.scaled, repair=self.repair)

    @cached_property
    def raw_variance(self) -> Floats:
        """Descending eigenvalues of the raw matrix, whose entries are unbiased; some may be negative."""
        raw = perturbation.public_raw(self.release, self._everywhere)
        return np.asarray(eigvalsh(self._reduced(raw))[::-1] / self._divisor(self._raw_count))

    @cached_property
    def noise_edge(self) -> float | None:
        """The 95 % quantile of the largest eigenvalue that noise alone would show; None where it is not simulated."""
        law = self.release.law
        if law is None or not perturbation.can_be_rehearsed(self.release):
            return None
        count = perturbation.enough(law, EDGE_LEVEL)
        draws = perturbation.rehearsed_noise(self.release, self._everywhere, law=law, count=count)
        carry = self._carry
        if self.centred:  # noise of a centred matrix is (−μ, I) N (−μ, I)ᵀ, but for a term of order N²/n
            raw = perturbation.public_raw(self.release, self._everywhere)
            carry[:, 0] = -self._widths * raw[0, 1:] / max(1.0, float(raw[0, 0]))
        largest = np.asarray(eigvalsh(carry @ draws @ carry.T)[:, -1])
        return perturbation.bound(largest, EDGE_LEVEL) / self._divisor(self._raw_count)

    def intervals(self, level: float = 0.95) -> Floats:
        """Return a simultaneous interval for the variance of each kept component of the true matrix.

        Conservative (Weyl): with probability at least ``level`` the noise is between −q and q times the
        identity, and then every ordered eigenvalue is between those of the raw matrix with q taken off and put
        on. Sampling of people is not in it: the truth is the covariance of the table that was released.

        Parameters
        ----------
        level : float, default 0.95
            The confidence level of all intervals together, from 0.5 to 0.999.

        Returns
        -------
        ndarray of shape (rank, 2)
            The low and the high end, in squared units of the PCA. Infinite where the noise may be all there is.

        Raises
        ------
        ParameterError
            The level is out of range (E258), the law of the noise is not published (E256), or the
            matrix is too wide to simulate (E269).
        """
        level = perturbation.check_level(level)
        law = perturbation.known_law(self.release, "an interval for explained variance")
        count = perturbation.enough(law, level)
        draws = perturbation.rehearsed_noise(self.release, self._everywhere, law=law, count=count)
        size = perturbation.bound(perturbation.spectral_norms(draws), level)
        raw = perturbation.public_raw(self.release, self._everywhere)
        ends, noisy_count = [], 0.0 if self._count_is_public else size
        for sign in (-1, 1):
            moved = raw + sign * size * np.eye(len(raw))
            people = self._raw_count - sign * noisy_count
            if (self.centred and moved[0, 0] <= 0) or people <= 2:  # the noise may be all there is
                ends.append(np.full(len(self.columns), 0.0 if sign < 0 else np.inf))
            else:
                ends.append(eigvalsh(self._reduced(moved))[::-1] / self._divisor(people))
        return np.asarray(np.maximum(np.stack(ends, axis=1)[: self.rank], 0.0))

    def transform(self, rows: Any) -> Floats:
        """Return the scores of new rows along the components.

        Parameters
        ----------
        rows : array or frame
            New rows in original units: an array in the order of ``columns``, or a frame with these columns.

        Returns
        -------
        ndarray of shape (n, rank)
            One score per row and component, in units of the PCA.

        Raises
        ------
        ParameterError
            The rows have another shape, or a column is missing (E25x).
        """
        table = selection.read_rows(self.release, self._places, rows)
        if self.scaled:
            table = (table - self._middles) / self._units
        return np.asarray((table - self.mean) @ self.components.T)

    def inverse_transform(self, scores: Any) -> Floats:
        """Return the rows that have these scores, and nothing outside the components.

        Parameters
        ----------
        scores : array of shape (n, rank)
            Scores, in units of the PCA.

        Returns
        -------
        ndarray of shape (n, d)
            Rows in original units.

        Raises
        ------
        ParameterError
            The scores have another number of columns (E257).
        """
        given = np.atleast_2d(np.asarray(scores, dtype=np.float64))
        if given.shape[1] != self.rank:
            raise ParameterError("E257", f"scores need {self.rank} columns, got shape {given.shape}.")
        table = given @ self.components + self.mean
        return np.asarray(table * self._units + self._middles if self.scaled else table)

    def captured_variance(self, basis: Any) -> float:
        """Return the share of the variance in the span of some directions.

        Parameters
        ----------
        basis : array of shape (k, d)
            The directions, one per row, in units of the PCA. They need not be orthogonal.

        Returns
        -------
        float
            A share from 0 to 1.

        Raises
        ------
        ParameterError
            A direction has another length or is not finite (E257).
        """
        directions = np.atleast_2d(np.asarray(basis, dtype=np.float64))
        if directions.shape[1] != len(self.columns) or not np.isfinite(directions).all():
            raise ParameterError(
                "E257", f"a basis has {len(self.columns)} finite numbers a row, got shape {directions.shape}."
            )
        span = scipy.linalg.orth(directions.T)
        return float(np.trace(span.T @ self.covariance @ span)) / self.total_variance

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Return everything a program may want.

        Parameters
        ----------
        level : float, default 0.95
            The confidence level of the intervals, from 0.5 to 0.999.

        Returns
        -------
        dict
            JSON values; ``intervals`` is None where the noise has no law or is not simulated.

        Raises
        ------
        ParameterError
            The level is out of range (E258).
        """
        ends = self.intervals(level) if perturbation.can_be_rehearsed(self.release) else None
        return {
            "columns": list(self.columns),
            "rank": self.rank,
            "rank_chosen": self.asked is None,
            "units": "scaled" if self.scaled else "original",
            "centred": self.centred,
            "labels": [REHEARSAL] if self.rehearsal else [],
            "rehearsal": self.rehearsal,
            "explained_variance": self.explained_variance.tolist(),
            "explained_share": self.explained_share.tolist(),
            "total_variance": self.total_variance,
            "level": level,
            "intervals": None
            if ends is None
            else [[low, high if np.isfinite(high) else None] for low, high in ends.tolist()],
            "noise_edge": self.noise_edge,
            "components": self.components.tolist(),
            "mean": self.mean.tolist(),
            "mechanism": self.release.certificate.mechanism,
            "guarantee": str(self.release.certificate.loss),
        }

    def __repr__(self) -> str:
        label = "REHEARSAL " if self.rehearsal else ""
        return f"<{label}PCAFit: {self.rank} of {len(self.columns)} components>"

    @property
    def _places(self) -> tuple[int, ...]:
        return tuple(range(int(self.release.schema.intercept), len(self.release.columns)))

    @property
    def _everywhere(self) -> tuple[int, ...]:
        """The places whose noise matters: the intercept's too, which carries count and means."""
        return tuple(range(len(self.release.columns)))

    @property
    def _carry(self) -> Floats:
        """What takes a scaled row, its constant included, to the units of the PCA, uncentred."""
        carry = np.diag(self._widths)
        if not self.release.schema.intercept:
            return carry
        moved = np.zeros(len(self.columns)) if self.scaled else np.where(self._widths, self._middles, 0.0)
        return np.hstack([moved[:, None], carry])

    @property
    def _units(self) -> Floats:
        return np.array([self.release.schema.features[place].unit for place in self._places])

    @property
    def _middles(self) -> Floats:
        return np.array([self.release.schema.features[place].middle for place in self._places])

    @property
    def _widths(self) -> Floats:
        widths = np.ones(len(self.columns)) if self.scaled else self._units
        weight = np.array([column == self.release.schema.weight for column in self.columns])
        return np.where(weight, 0.0, widths)  # what a row counts as is no direction of the cloud

    @cached_property
    def _spectrum(self) -> tuple[Floats, Floats]:
        values, vectors = eigh(self.covariance)
        values, rows = np.maximum(values[::-1], 0.0), vectors.T[::-1]
        largest = rows[np.arange(len(rows)), np.abs(rows).argmax(axis=1)]
        return values, np.asarray(rows * np.sign(largest)[:, None])

    def _reduced(self, moment: Floats) -> Floats:
        """The centred or plain sums of products behind a scaled moment matrix, in the units of the PCA."""
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


def principal_angles(
    first: Sequence[Sequence[float]] | Floats, second: Sequence[Sequence[float]] | Floats
) -> Floats:
    """Return the angles between the spans of two sets of directions.

    Parameters
    ----------
    first : array of shape (k, d)
        Directions, one per row.
    second : array of shape (m, d)
        Directions, one per row.

    Returns
    -------
    ndarray
        Angles in radians, the largest first.

    Raises
    ------
    ParameterError
        A number is not finite, or the lengths differ (E257).

    Examples
    --------
    >>> from privcov.models.pca import principal_angles
    >>> principal_angles([[1.0, 0.0]], [[0.0, 2.0]]).round(4)
    array([1.5708])
    """
    a, b = (np.atleast_2d(np.asarray(rows, dtype=np.float64)) for rows in (first, second))
    if a.shape[1] != b.shape[1] or not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise ParameterError(
            "E257", f"directions need finite numbers and equal lengths, got {a.shape} and {b.shape}."
        )
    return np.asarray(scipy.linalg.subspace_angles(a.T, b.T))
