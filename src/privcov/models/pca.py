"""Principal components from a release: directions, explained variance with intervals, a rank the noise allows.

Components come from the repaired covariance. Intervals, groups that cannot be told apart and the choice of the rank
come from the raw matrix, which is unbiased, and from the law of the noise. Columns are scaled to [-1, 1] unless
``scaled=False``; with ``correlation=True`` every column has variance 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.linalg

from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats
from privcov.models import perturbation, selection
from privcov.models.pca_problem import Problem
from privcov.models.spectrum import MOST
from privcov.models.summary import REHEARSAL
from privcov.releases.release import Release
from privcov.releases.rounds import counted, uncounted
from privcov.text.display import Shown

TAILS = "Heavy tails scatter more, and no release shows tails: with them intervals for the population are too narrow."


def pca(
    release: Release,
    *,
    rank: int | None = None,
    centred: bool = True,
    scaled: bool = True,
    correlation: bool = False,
    errors: Literal["equal", "conservative"] = "equal",
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
    correlation : bool, default False
        Whether to decompose the correlations: every column counts with variance 1, whatever its bounds. A column whose
        variance does not stand clear of the noise has no such scale, and is in ``left_out``.
    errors : {"equal", "conservative"}, default "equal"
        How rows are taken to scatter: as with normal columns, or in any way that the bounds allow. "conservative"
        intervals for the population hold for tails of any weight, and are wider: ``Direction.widening`` says how much.
    repair : str, default "auto"
        The repair that the covariance is taken from: a name of ``privcov.repair.METHODS``.

    Returns
    -------
    PCAFit
        Components, explained variance and intervals.

    Raises
    ------
    ParameterError
        The rank is out of range (E253), no column has variance (E254), the release has no intercept (E255),
        correlations are asked for about zero or in original units (E298), or errors are of another kind (E287).

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
    if correlation and not (centred and scaled):
        raise ParameterError(
            "E298",
            "correlations are of centred columns with variance 1: they are neither about zero nor in original units.",
            "Ask for correlations alone, or leave them out.",
        )
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
    if errors not in ("equal", "conservative"):
        raise ParameterError("E287", f'errors must be "equal" or "conservative", got {errors!r}.')
    words = {"centred": centred, "scaled": scaled, "correlation": correlation}
    fit = PCAFit(release=release, asked=rank, repair=repair, errors=errors, **words)
    if not fit._problem.has_variance:
        raise ParameterError(
            "E254", "the release shows no variance in any column.", "Ask for a less noisy release."
        )
    return fit


class Direction(NamedTuple):
    """What can be told of one component, or of a group of components that cannot be told apart.

    Attributes
    ----------
    name : str
        ``PC1``, or ``PC2 to PC4`` for a group.
    components : range
        Which components, from 0.
    variance : float
        The variance along it, or the sum of the variances of the group, in squared units of the PCA: what the interval
        for the table is around. Where there is no such interval, that of the repaired covariance.
    share : float
        The same over that of all components.
    table, population : tuple of float, or None
        The interval of ``variance`` for the very table that was released, and for the population that its rows were
        sampled from. None where it is not known.
    loadings : ndarray of shape (d,)
        The direction; for a group the length, from 0 to 1, of each column's axis within the span of the group, which is
        all that is known of it.
    ends : ndarray of shape (d, 2) or None
        The intervals of ``loadings``.
    widening : float or None
        By what rows of any law within the bounds may multiply the sampling error of ``variance``, at least 1. With
        ``errors="conservative"`` the population's interval counts that much.

    Examples
    --------
    >>> Direction("PC1", range(1), 0.7, 0.5, (0.6, 0.8), (0.5, 0.9), np.array([0.6, 0.8]), None).name
    'PC1'
    """

    name: str
    components: range
    variance: float
    share: float
    table: tuple[float, float] | None
    population: tuple[float, float] | None
    loadings: Floats
    ends: Floats | None
    widening: float | None = None


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
    correlation : bool
        Whether correlations were decomposed.
    repair : str
        The repair that the covariance was taken from.
    errors : {"equal", "conservative"}
        How rows are taken to scatter: as with normal columns, or in any way that the bounds allow.

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
    >>> (low, high), (least, most) = fit.intervals()[0], fit.population_intervals()[0]
    >>> bool(0.5 < low < high < 0.9), bool(least < low < high < most), fit.left_out, fit.units
    (True, True, (), 'scaled')
    >>> fit.loading_intervals().shape, [one.name for one in fit.directions()], fit.rows_per_person
    ((1, 2, 2), ['PC1'], 1)
    >>> round(fit.captured_variance([[1.0, 1.0]]), 1)
    1.0
    >>> scores = fit.transform([[10.0, 20.0]])
    >>> fit.inverse_transform(scores).round(), fit.to_dict()["units"]
    (array([[10., 20.]]), 'scaled')
    """

    release: Release
    asked: int | None
    centred: bool
    scaled: bool
    correlation: bool
    repair: str
    errors: Literal["equal", "conservative"] = "equal"

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that were decomposed."""
        names = self.release.columns
        return tuple(names[place] for place in self._problem.places)

    @property
    def left_out(self) -> tuple[str, ...]:
        """The names of columns whose variance is not known well enough to scale by it."""
        here, names = set(self._problem.places), self.release.columns
        places = selection.explaining(self.release.schema)
        return tuple(names[place] for place in places if place not in here)

    @property
    def rehearsal(self) -> bool:
        """Whether the release had repeatable noise, so that nothing here may be published."""
        return self.release.certificate.randomness == "rehearsal"

    @cached_property
    def rank(self) -> int:
        """The number of components that are kept."""
        if self.asked is not None:
            return min(int(self.asked), len(self.columns))
        return (
            len(self.columns) if self.noise_edge is None else int((self.raw_variance > self.noise_edge).sum())
        )

    @property
    def components(self) -> Floats:
        """Orthonormal directions, one per row, the largest variance first; their largest entry is positive."""
        return self._problem.spectrum[1][: self.rank]

    @property
    def explained_variance(self) -> Floats:
        """The variance along each component, from the repaired covariance, in squared units of the PCA."""
        return self._problem.spectrum[0][: self.rank]

    @property
    def explained_share(self) -> Floats:
        """The share, from 0 to 1, of the total variance along each component."""
        return self.explained_variance / self.total_variance

    @property
    def total_variance(self) -> float:
        """The sum of the variances of all columns, in squared units of the PCA."""
        return float(self._problem.spectrum[0].sum())

    @property
    def covariance(self) -> Floats:
        """The repaired covariance (or mean second moment) that is decomposed."""
        return self._problem.covariance

    @property
    def mean(self) -> Floats:
        """What is taken from a row before projecting, in the units of the PCA."""
        return self._problem.mean

    @property
    def raw_variance(self) -> Floats:
        """Descending eigenvalues of the raw matrix, whose entries are unbiased; some may be negative."""
        return self._problem.raw_variance

    @property
    def noise_edge(self) -> float | None:
        """The 95 % quantile of the largest eigenvalue that noise alone would show; None where it is not simulated."""
        return self._problem.noise_edge

    def intervals(self, level: float = 0.95, *, together: bool = False) -> Floats:
        """Return an interval for the variance of each kept component of the very table that was released.

        What the covariance of these rows would show without noise; sampling of people is not in it. Of a private frame
        whose cut is counted these are all rows as they are, and else the shortened ones.

        Parameters
        ----------
        level : float, default 0.95
            The confidence level of each interval, from 0.5 to 0.999. Components of a group that cannot be told apart
            are covered more often than that.
        together : bool, default False
            Whether all intervals are to hold together. These are conservative (Weyl's): with probability at least
            ``level`` the noise is between −q and q times the identity, and then every ordered eigenvalue is between
            those of the raw matrix with q taken off and put on. Beyond 256 columns they are the only ones. They count
            the noise alone, also where the cut of a private frame is counted.

        Returns
        -------
        ndarray of shape (rank, 2)
            The low and the high end, in squared units of the PCA. Infinite where the noise may be all there is.

        Raises
        ------
        ParameterError
            The level is out of range (E258), the law of the noise is not published (E256), the matrix is too wide to
            simulate (E269), or correlations are to hold together (E298).
        """
        level = perturbation.check_level(level)
        law = perturbation.known_law(self.release, "an interval for explained variance")
        if not together and len(self.columns) <= MOST:
            return self._problem.rehearsals(level, sampled=False).intervals(level)[: self.rank]
        if self.correlation:
            raise ParameterError(
                "E298",
                f"correlations have no intervals that hold together, and none for more than {MOST} columns.",
                "Leave out correlation.",
            )
        return self._problem.joint_intervals(law, level)[: self.rank]

    def population_intervals(self, level: float = 0.95) -> Floats:
        """Return an interval for the variance of each kept component in the population the rows were sampled from.

        Noise and sampling are in it, sampling as of independent persons with normal columns: heavy tails widen the
        truth, by no more than ``errors="conservative"`` counts. Rows of one person may depend on each other, which
        counts by the most it can do.

        Parameters
        ----------
        level : float, default 0.95
            The confidence level of each interval, from 0.5 to 0.999. Components of a group that cannot be told apart
            are covered more often than that.

        Returns
        -------
        ndarray of shape (rank, 2)
            The low and the high end, in squared units of the PCA. Infinite where the noise may be all there is.

        Raises
        ------
        ParameterError
            The level is out of range (E258), the law of the noise is not published (E256), or what is asked is not
            known: about zero, or beyond 256 columns (E299).
        """
        found = self._problem.of_population(level, "an interval for the population").intervals(level)
        return _around(found, self._problem.rehearsals(level, sampled=False).intervals(level))[: self.rank]

    def loading_intervals(self, level: float = 0.95) -> Floats:
        """Return an interval for each loading of each kept component, in the population.

        Parameters
        ----------
        level : float, default 0.95
            The confidence level of each interval, from 0.5 to 0.999.

        Returns
        -------
        ndarray of shape (rank, d, 2)
            The low and the high end. NaN for components that cannot be told from others.

        Raises
        ------
        ParameterError
            As for ``population_intervals``.
        """
        found = self._problem.of_population(level, "an interval for a loading")
        ends = found.loadings(self.components, level)
        for group in found.groups:
            if len(group) > 1:
                ends[group.start : group.stop] = np.nan
        return ends

    def directions(self, level: float = 0.95) -> tuple[Direction, ...]:
        """Return the kept components, those that cannot be told apart together.

        Two components are told apart where their eigenvalues differ by more than noise and sampling would make two
        equal ones differ in 95 of 100 releases. A group is given whole, also where only a part of it is kept.

        Parameters
        ----------
        level : float, default 0.95
            The confidence level of each interval, from 0.5 to 0.999.

        Returns
        -------
        tuple of Direction
            The components and groups, the largest variance first. Every component is by itself, and has no intervals
            but those of ``intervals``, where nothing is rehearsed: without a law, about zero, beyond 256 columns.

        Raises
        ------
        ParameterError
            The level is out of range (E258).
        """
        level, (values, vectors) = perturbation.check_level(level), self._problem.spectrum
        if not self._problem.is_rehearsed:
            known = perturbation.can_be_rehearsed(self.release) and not self.correlation
            ends = self.intervals(level) if known else None
            shares = self.explained_share
            return tuple(
                Direction(
                    name=f"PC{k + 1}",
                    components=range(k, k + 1),
                    variance=float(values[k]),
                    share=float(shares[k]),
                    table=pair(ends, k),
                    population=None,
                    loadings=vectors[k],
                    ends=None,
                )
                for k in range(self.rank)
            )
        both = [self._problem.rehearsals(level, sampled=sampled) for sampled in (False, True)]
        groups = both[1].groups
        table, population = (one.sums(groups, level) for one in both)
        population = _around(population, table)
        found = both[0].estimates(groups)
        shares = found / max(float(found.sum()), 1e-300)
        single, made = both[1].loadings(vectors[: self.rank], level), []
        wider = both[1].widening(groups)
        for place, group in enumerate(groups):
            if group.start >= self.rank:
                break
            here = slice(group.start, group.stop)
            alone = len(group) == 1
            loadings = vectors[group.start] if alone else np.linalg.norm(vectors[here], axis=0)
            ends = single[group.start] if alone else both[1].lengths(group, loadings, level)
            name = f"PC{group.start + 1}" + ("" if alone else f" to PC{group.stop}")
            made.append(
                Direction(
                    name=name,
                    components=group,
                    variance=float(found[place]),
                    share=float(shares[place]),
                    table=pair(table, place),
                    population=pair(population, place),
                    loadings=loadings,
                    ends=ends,
                    widening=None if wider is None or np.isnan(wider[place]) else float(wider[place]),
                )
            )
        return tuple(made)

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
        table = selection.read_rows(self.release, self._problem.places, rows)
        return np.asarray(self._problem.from_rows(table) @ self.components.T)

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
        return self._problem.to_rows(given @ self.components)

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
            JSON values. ``raw_variance`` has all eigenvalues of the raw matrix, of which those above ``noise_edge`` are
            kept where no rank is asked for. ``intervals`` (for the table), ``population_intervals`` and
            ``loading_intervals`` are None where they are not known, and loadings of components in a group of
            ``directions`` have none.

        Raises
        ------
        ParameterError
            The level is out of range (E258).
        """
        directions, known = self.directions(level), perturbation.can_be_rehearsed(self.release)
        ends = (
            self.intervals(level) if known and (self._problem.is_rehearsed or not self.correlation) else None
        )
        return {
            "columns": list(self.columns),
            "rank": self.rank,
            "rank_chosen": self.asked is None,
            "units": self.units,
            "left_out": list(self.left_out),
            "centred": self.centred,
            "labels": [REHEARSAL] if self.rehearsal else [],
            "rehearsal": self.rehearsal,
            "explained_variance": self.explained_variance.tolist(),
            "explained_share": self.explained_share.tolist(),
            "total_variance": self.total_variance,
            "rows_per_person": self.rows_per_person,
            "errors": self.errors,
            "level": level,
            "intervals": finite(ends),
            "population_intervals": finite(
                self.population_intervals(level) if self._problem.is_rehearsed else None
            ),
            "raw_variance": self.raw_variance.tolist(),
            "noise_edge": self.noise_edge,
            "components": self.components.tolist(),
            "loading_intervals": finite(
                self.loading_intervals(level) if self._problem.is_rehearsed else None
            ),
            "directions": [
                {
                    "name": one.name,
                    "components": [k + 1 for k in one.components],
                    "variance": one.variance,
                    "share": one.share,
                    "interval": finite(one.table),
                    "population_interval": finite(one.population),
                    "loadings" if len(one.components) == 1 else "lengths": one.loadings.tolist(),
                    "ends": finite(one.ends),
                    "widening": one.widening,
                }
                for one in directions
            ],
            "mean": self.mean.tolist(),
            "mechanism": self.release.certificate.mechanism,
            "guarantee": str(self.release.certificate.loss),
            "not_counted": uncounted(self.release),
            "counted": counted(self.release, units=not self.correlation),
        }

    def __repr__(self) -> str:
        label = "REHEARSAL " if self.rehearsal else ""
        return f"<{label}PCAFit: {self.rank} of {len(self.columns)} components>"

    @property
    def rows_per_person(self) -> int:
        """The most rows that one person has; sampling counts as many rows as one."""
        return self.release.schema.max_rows_per_person

    @property
    def units(self) -> str:
        """The units of the PCA in a word, one of scaled, original and correlation."""
        return "correlation" if self.correlation else "scaled" if self.scaled else "original"

    @cached_property
    def _problem(self) -> Problem:
        words = {"centred": self.centred, "scaled": self.scaled, "correlation": self.correlation}
        return Problem(release=self.release, repair=self.repair, errors=self.errors, **words)


def about_tails(fit: PCAFit, directions: Sequence[Direction]) -> list[str]:
    """What is said of rows with heavy tails, in sentences: nothing where no interval is for the population."""
    told, wide = [one for one in directions if one.population is not None], fit.errors == "conservative"
    wider = [one.widening for one in told if one.widening is not None]
    words = "They hold for tails of any weight within the bounds"
    if not wider:
        return [f"{words}." if wide else TAILS] if told else []
    least, most = f"{min(wider):.3g}", f"{max(wider):.3g}"
    times = f"{most} times" if least == most else f"{least} to {most} times"
    if wide:
        return [f"{words}: sampling errors count {times} normal ones."]
    return [
        TAILS,
        f'Intervals that hold for any tails (errors "conservative") count {times} the sampling error of variances.',
    ]


def _around(population: Floats, table: Floats) -> Floats:
    """Intervals for the population, none of which ends before that for the table, which is part of it.

    Both are simulated, and where sampling is next to nothing beside noise their ends differ by what draws do.
    """
    low = np.minimum(population[:, 0], table[:, 0])
    return np.stack([low, np.maximum(population[:, 1], table[:, 1])], axis=1)


def pair(ends: Floats | None, place: int) -> tuple[float, float] | None:
    """One interval out of many, where there are any."""
    return None if ends is None else (float(ends[place, 0]), float(ends[place, 1]))


def finite(ends: Floats | tuple[float, float] | None) -> Any:
    """Intervals for JSON, None for what is not a number."""
    if ends is None:
        return None
    values = np.asarray(ends).astype(object)
    values[~np.isfinite(np.asarray(ends))] = None
    return values.tolist()


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
