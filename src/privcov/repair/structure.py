"""Certain facts about the matrix that follow from the schema, and the nearest matrices that respect them.

Some entries of a second-moment matrix are known before any data is read: the intercept with itself is the
count, two levels of one categorical column never occur together, an indicator times the intercept is the
indicator squared. Each is a linear equality between entries, so the entries fall into classes that share one
value, which may be known. Nearest means least squares: weighted by inverse noise variances where a release is
fitted, and in the Frobenius norm (an off-diagonal entry counts twice) where positivity is asked for too.

The nearest matrix in a convex set that is also positive semi-definite.

Dykstra's alternating projections are proximal-gradient steps on the dual problem, so Nesterov's momentum with
restarts applies to them; on a table of 109 columns it gains in 100 rounds what plain alternation does not in
1000. One round costs one eigendecomposition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import scipy  # its parts load on use: they take a third of a second, and a plan does without
from numpy.typing import NDArray

from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats
from privcov.linalg.devices import composed, eigh, eigvalsh
from privcov.noise.laws import NoiseLaw
from privcov.repair.simplices import (
    OFTEN,
    SELDOM,
    Simplex,
    Tables,
    fit_counts,
    noise_left,
    smooth,
    smooth_numbers,
)

Indices = NDArray[np.intp]
_SLACK = 1e-6  # of the largest eigenvalue: what the projections may still disagree when they stop
_NOTHING = np.empty((0, 2), dtype=np.intp)


@dataclass(frozen=True, kw_only=True, eq=False)
class Structure:
    """Entries of a matrix with known values, entries tied to each other, entries that cannot be negative.

    The matrix is symmetric: either triangle will do for an entry.

    Parameters
    ----------
    dimension : int
        The number of rows and columns.
    fixed : array of shape (k, 2), default []
        Entries with a known value, one (row, column) per line.
    values : array of shape (k,), default []
        The known value of each fixed entry, in scaled units.
    tied : array of shape (m, 4), default []
        Pairs of entries with one value, one (row, column, row, column) per line.
    nonnegative : array of shape (p, 2), default []
        Entries that cannot be negative, one (row, column) per line.
    simplices : tuple of Simplex, default ()
        Columns whose rows are at the corners of a simplex; column 0 is then the intercept.
    blocks : tuple of arrays of int, default ()
        The columns but the intercept, column 0, in groups: the numbers first, then the levels of each column. What two
        groups have to do with each other is shrunk by ``smoothed``. Empty where there are no levels, or no intercept.
    inside : array of shape (dimension, dimension), default []
        A positive definite matrix with this structure. It shows that there is one, and a repair that must end
        positive can lean on it. By default the structured part of the identity is tried.

    Raises
    ------
    ParameterError
        An entry is outside the matrix (E276), a value is missing or not finite (E277), two values contradict
        (E278), or no positive definite matrix of this structure is known (E280).

    Examples
    --------
    >>> import numpy as np
    >>> from privcov.noise.laws import GaussianEnsemble
    >>> from privcov.repair import Structure
    >>> law = GaussianEnsemble(dimension=2, scale=1.0)
    >>> structure = Structure(dimension=2, fixed=[[0, 1]], values=[0.0])
    >>> structure.fit(np.array([[2.0, 1.0], [1.0, 3.0]]), law)
    array([[2., 0.],
           [0., 3.]])
    >>> structure.noise_left(law) < 1, structure.fit_positive(np.eye(2)).tolist()
    (True, [[1.0, 0.0], [0.0, 1.0]])
    >>> structure.smoothed(np.eye(2), law).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    dimension: int
    fixed: Indices = field(default_factory=lambda: _NOTHING)
    values: Floats = field(default_factory=lambda: np.empty(0))
    tied: Indices = field(default_factory=lambda: np.empty((0, 4), dtype=np.intp))
    nonnegative: Indices = field(default_factory=lambda: _NOTHING)
    simplices: tuple[Simplex, ...] = ()
    blocks: tuple[Indices, ...] = ()
    inside: Floats = field(default_factory=lambda: np.empty((0, 0)))

    def __post_init__(self) -> None:
        for name, width in (("fixed", 2), ("tied", 4), ("nonnegative", 2)):
            entries = np.array(getattr(self, name), dtype=np.intp).reshape(-1, width)
            if entries.size and not (entries.min() >= 0 and entries.max() < self.dimension):
                raise ParameterError("E276", f"{name} must name columns from 0 to {self.dimension - 1}.")
            object.__setattr__(self, name, entries)
        object.__setattr__(self, "values", np.array(self.values, dtype=np.float64).reshape(-1))
        if len(self.values) != len(self.fixed) or not np.isfinite(self.values).all():
            raise ParameterError("E277", "every fixed entry needs one finite value.")
        if not np.allclose(self._known[self._label[self._entry(self.fixed)]], self.values):
            raise ParameterError(
                "E278", "two values are given for the same entry, or for entries that must be equal."
            )
        inside = np.array(self.inside, dtype=np.float64)
        if not inside.size:
            inside = self._frobenius(np.eye(self.dimension) * (np.abs(self.values).max(initial=0.0) or 1.0))
        if (
            inside.shape != (self.dimension, self.dimension)
            or not np.allclose(self._frobenius(inside), inside)
            or not _is_positive_definite(inside)
        ):
            raise ParameterError(
                "E280", "no positive definite matrix with this structure was found.", "Give one: inside = …"
            )
        object.__setattr__(self, "inside", inside)

    @classmethod
    def one_hot(
        cls,
        *,
        dimension: int,
        groups: Sequence[Sequence[int]],
        apart: Sequence[tuple[int, int]] = (),
        simplices: Sequence[tuple[Sequence[int], Floats]] = (),
        intercept: int | None = None,
        rows: float | None = None,
    ) -> Structure:
        """Make the structure of a table with groups of indicator columns and an intercept column.

        Parameters
        ----------
        dimension : int
            The number of columns of the matrix.
        groups : sequence of sequences of int
            The columns of each group, of which at most one is 1 in a row: the levels of one categorical column.
        apart : sequence of pairs of int, default ()
            Further pairs of columns of which one is zero in every row, such as a number and the indicator that
            says it is missing; the number's mean must be free to be zero.
        simplices : sequence of pairs, default ()
            For each group of indicators that add up to the intercept: the columns that were summed in its place, and
            its corners in them, one in each column of an array. The intercept is then column 0.
        intercept : int, optional
            The column that is constant.
        rows : float, optional
            The count, only if it is public and every row keeps its full intercept: a row-norm bound that can
            bite, or a rule that empties a row, makes the intercept entry smaller than the count. The other
            equalities survive both, since they hold for each row and a row is scaled as a whole.

        Returns
        -------
        Structure
            The equalities between entries that hold for every such table.

        Raises
        ------
        ParameterError
            A column is outside the matrix (E276), or the parts contradict each other (E278, E280).

        Examples
        --------
        >>> import numpy as np
        >>> from privcov.noise.laws import GaussianEnsemble
        >>> from privcov.repair import Structure
        >>> one_hot = Structure.one_hot(dimension=3, intercept=0, rows=10, groups=[[1, 2]])
        >>> noisy = np.array([[9.0, 4, 5], [4, 7, 1], [5, 1, 5]])
        >>> one_hot.fit(noisy, GaussianEnsemble(dimension=3, scale=1.0))
        array([[10.,  5.,  5.],
               [ 5.,  5.,  0.],
               [ 5.,  0.,  5.]])
        """
        columns = [np.array(group, dtype=np.intp) for group in groups]
        within = [np.stack(np.triu_indices(len(group), 1), axis=1) for group in columns]
        never = [group[pairs] for group, pairs in zip(columns, within, strict=True)]
        never.append(np.array(apart, dtype=np.intp).reshape(-1, 2))
        indicators = np.concatenate([*columns, np.empty(0, dtype=np.intp)])
        fixed = np.concatenate([*never, _NOTHING])
        values = np.zeros(len(fixed))
        tied = np.empty((0, 4), dtype=np.intp)
        if intercept is not None:
            constant = np.full_like(indicators, intercept)
            tied = np.stack([indicators, indicators, constant, indicators], axis=1)
            if rows:  # an empty table has no positive definite matrix to lean on; its count is left out
                fixed = np.vstack([fixed, [[intercept, intercept]]])
                values = np.append(values, float(rows))
        coded = tuple(Simplex(places=np.array(at, dtype=np.intp), corners=them) for at, them in simplices)
        for one in coded if rows else ():
            if len(one.places) == 1:  # two levels: the square is the same in every row
                fixed = np.vstack([fixed, [[one.places[0], one.places[0]]]])
                values = np.append(values, float(rows or 0) * one.corners[0, 0] ** 2)
        first, second = np.triu_indices(len(indicators))
        together = np.stack([indicators[first], indicators[second]], axis=1)
        return cls(
            dimension=dimension,
            fixed=fixed,
            values=values,
            tied=tied,
            nonnegative=together,
            simplices=coded,
            blocks=_blocks(dimension, columns, coded) if intercept == 0 else (),
            inside=_independent(dimension, columns, intercept, coded) * (rows or 1.0),
        )

    def fit(self, matrix: Floats, law: NoiseLaw) -> Floats:
        """Return the nearest matrix of this structure to a noisy one, entries weighted by inverse variances.

        Parameters
        ----------
        matrix : ndarray of shape (dimension, dimension)
            The noisy matrix, in scaled units.
        law : NoiseLaw
            The law of its noise.

        Returns
        -------
        ndarray of shape (dimension, dimension)
            The nearest matrix. The structure holds exactly; it may have negative eigenvalues.
        """
        made = self._linear(matrix, law.diagonal_variance, law.offdiagonal_variance)
        return self._with_tables(made, OFTEN)

    def smoothed(self, matrix: Floats, law: NoiseLaw) -> Floats:
        """Return the same with what columns of levels have to do with others shrunk to what noise does not drown.

        Parameters
        ----------
        matrix : ndarray of shape (dimension, dimension)
            The noisy matrix, in scaled units.
        law : NoiseLaw
            The law of its noise.

        Returns
        -------
        ndarray of shape (dimension, dimension)
            The matrix. The structure holds exactly; it may have negative eigenvalues.
        """
        made = self._linear(matrix, law.diagonal_variance, law.offdiagonal_variance)
        if self.blocks:
            # What cannot be negative was raised to zero in ``made``; blocks are read with all their noise.
            noisy, (known, beside) = matrix.copy(), self.fixed.T
            noisy[known, beside] = noisy[beside, known] = self.values
            smooth(made, noisy, [group for group in self.blocks if len(group)], law.offdiagonal_variance**0.5)
            smooth_numbers(made, noisy, self.blocks[0], law)
            made[known, beside] = made[beside, known] = self.values
            one, other = self.nonnegative.T
            made[one, other] = made[other, one] = np.maximum(made[one, other], 0.0)
        return self._with_tables(made, OFTEN)

    def noise_left(self, law: NoiseLaw, *, smooth: bool = False) -> float:
        """Return the share of the noise's mean squared Frobenius norm that is left after ``fit``.

        Parameters
        ----------
        law : NoiseLaw
            The law of the noise.
        smooth : bool, default False
            Whether to leave out what ``smoothed`` has shrunk already, and need not be shrunk once more.

        Returns
        -------
        float
            A share from 0 to 1.
        """
        weights = self._weights(law.diagonal_variance, law.offdiagonal_variance)
        shared = 1 / np.bincount(self._label, weights)
        variances = np.where(np.isnan(self._known), shared, 0.0)[self._label]
        counted = self._weights(1.0, 0.5)
        before, left = float((counted / weights).sum()), counted * variances
        if smooth:
            left[self._between_blocks] = 0.0
        if not self.simplices:
            return float(left.sum()) / before
        own = noise_left(
            self.simplices,
            diagonal=1 / law.diagonal_variance,
            rest=1 / law.offdiagonal_variance,
            rows=self._count,
        )
        return (float(left[~self._set_by_counts].sum()) + own) / before

    @cached_property
    def _set_by_counts(self) -> NDArray[np.bool_]:
        """Which entries of the upper triangle follow from the counts of a simplex."""
        found = np.zeros((self.dimension, self.dimension), dtype=bool)
        found[0, 0] = True
        for one in self.simplices:
            found[0, one.places] = found[one.block] = True
        return np.asarray(found[self._triangle])

    @cached_property
    def _between_blocks(self) -> NDArray[np.bool_]:
        """Which entries of the upper triangle are of two groups of columns."""
        owner = np.full(self.dimension, -1)
        for number, group in enumerate(self.blocks):
            owner[group] = number
        one, other = (owner[places] for places in self._triangle)
        return np.asarray((one != other) & (one >= 0) & (other >= 0))

    def fit_positive(self, matrix: Floats) -> Floats:
        """Return the nearest matrix that has this structure and is positive semi-definite.

        The structure holds exactly. What the projections leave of a negative eigenvalue after their last round
        is removed by moving toward ``inside``, a positive definite matrix of the same structure.

        Parameters
        ----------
        matrix : ndarray of shape (dimension, dimension)
            A symmetric matrix, in scaled units.

        Returns
        -------
        ndarray of shape (dimension, dimension)
            The nearest such matrix.
        """
        size = max(float(np.abs(eigvalsh(matrix)).max()), float(np.abs(self.values).max(initial=0.0)))
        if not size > 0:
            return self._frobenius(matrix)
        rounds = max(30, min(300, 40_000 // self.dimension))
        nearest = nearest_positive(matrix, onto_set=self._frobenius, floor=_SLACK * size, rounds=rounds)
        miss = -float(eigvalsh(nearest)[0])
        if miss <= 0:
            return nearest
        inside = self.inside if self.values.any() else self.inside * (size / np.trace(self.inside))
        step = miss / (miss + float(eigvalsh(inside)[0]))
        made = np.asarray((1 - step) * nearest + step * inside)
        one, other = self.fixed.T
        made[one, other] = made[other, one] = self.values  # as they are, whatever the sum above rounded
        return made

    def _frobenius(self, matrix: Floats) -> Floats:
        return self._with_tables(self._linear(matrix, 1.0, 0.5), SELDOM)

    def _with_tables(self, matrix: Floats, turns: int) -> Floats:
        if self.simplices:
            self._tables.fit(matrix, turns)
        return matrix

    def _linear(self, matrix: Floats, diagonal_variance: float, offdiagonal_variance: float) -> Floats:
        weights = self._weights(diagonal_variance, offdiagonal_variance)
        upper = matrix[self._triangle]
        totals = np.bincount(self._label, weights)
        means = np.bincount(self._label, weights * upper) / totals
        means = np.where(self._never_negative, np.maximum(means, 0.0), means)
        means = np.where(np.isnan(self._known), means, self._known)
        result = np.empty_like(matrix)
        result[self._triangle] = means[self._label]
        result.T[self._triangle] = result[self._triangle]
        if self.simplices:
            fit_counts(
                result,
                self.simplices,
                diagonal=1 / diagonal_variance,
                rest=1 / offdiagonal_variance,
                rows=self._count,
            )
        return result

    @cached_property
    def _count(self) -> float | None:
        """The entry of the intercept, where it is known."""
        known = float(self._known[self._label[0]])
        return None if np.isnan(known) else known

    @cached_property
    def _tables(self) -> Tables:
        plain = np.unique(self.nonnegative)
        return Tables.of(self.dimension, self.simplices, [plain[plain > 0]])

    def _weights(self, diagonal_variance: float, offdiagonal_variance: float) -> Floats:
        rows, columns = self._triangle
        return np.where(rows == columns, 1 / diagonal_variance, 1 / offdiagonal_variance)

    @cached_property
    def _triangle(self) -> tuple[Indices, Indices]:
        return np.triu_indices(self.dimension)

    def _entry(self, entries: Indices) -> Indices:
        """Position of each (row, column) in the upper triangle, row by row."""
        low, high = entries.min(axis=1), entries.max(axis=1)
        return np.asarray(low * self.dimension - low * (low - 1) // 2 + high - low)

    @cached_property
    def _label(self) -> Indices:
        """The class of each entry of the upper triangle."""
        count = self.dimension * (self.dimension + 1) // 2
        if not len(self.tied):
            return np.arange(count)
        left, right = self._entry(self.tied[:, :2]), self._entry(self.tied[:, 2:])
        links = scipy.sparse.coo_array((np.ones(len(left)), (left, right)), shape=(count, count))
        return np.asarray(scipy.sparse.csgraph.connected_components(links, directed=False)[1], dtype=np.intp)

    @cached_property
    def _known(self) -> Floats:
        """The value of each class, NaN where it is not known."""
        known = np.full(self._label.max() + 1, np.nan)
        known[self._label[self._entry(self.fixed)]] = self.values
        return known

    @cached_property
    def _never_negative(self) -> NDArray[np.bool_]:
        flags = np.zeros(self._label.max() + 1, dtype=bool)
        flags[self._label[self._entry(self.nonnegative)]] = True
        return flags


def _blocks(dimension: int, groups: Sequence[Indices], simplices: Sequence[Simplex]) -> tuple[Indices, ...]:
    """The numbers, then each column of levels; indicators on their own, such as of missing cells, are one group."""
    levels = [group for group in groups if len(group) > 1] + [one.places for one in simplices]
    alone = np.concatenate([*(group for group in groups if len(group) == 1), np.empty(0, dtype=np.intp)])
    levels += [alone] if len(alone) else []
    if not levels:
        return ()
    return np.setdiff1d(np.arange(1, dimension), np.concatenate(levels)), *levels


def _is_positive_definite(matrix: Floats) -> bool:
    diagonal = np.diag(matrix)
    if np.count_nonzero(matrix) == np.count_nonzero(diagonal):  # numeric columns alone, however many
        return bool(diagonal.min() > 0)
    return bool(eigvalsh(matrix)[0] > 0)


def _independent(
    dimension: int, groups: Sequence[Indices], intercept: int | None, simplices: Sequence[Simplex] = ()
) -> Floats:
    """Second moments of independent columns: no level half the time, else all alike; numbers uniform.

    No level half the time keeps the smallest eigenvalue large: levels that add up to the intercept would make it zero.
    Those that do are summed in coordinates, where all corners are alike.
    """
    means, variances = np.zeros(dimension), np.full(dimension, 1 / 3)
    for group in groups:
        means[group] = variances[group] = 1 / (2 * max(len(group), 1))
    if intercept is None:
        return np.diag(variances)
    means[intercept], variances[intercept] = 1.0, 1.0
    for one in simplices:
        means[one.places] = one.corners.mean(axis=1)
    moments = np.outer(means, means)
    for group in groups:
        moments[np.ix_(group, group)] = 0.0
    np.fill_diagonal(moments, variances)
    for one in simplices:
        moments[one.block] = one.corners @ one.corners.T / one.corners.shape[1]
    return moments


def nearest_positive(
    matrix: Floats, *, onto_set: Callable[[Floats], Floats], floor: float, rounds: int
) -> Floats:
    """A point of the set, nearest to ``matrix`` among those with eigenvalues of at least ``floor``.

    ``onto_set`` must be the Frobenius projection onto a convex set. The result is exactly in the set; its
    eigenvalues fall short of ``floor`` by what the projections still disagree, at most ``floor`` unless the
    rounds run out.
    """
    dual = previous = np.zeros_like(matrix)
    momentum = 1.0
    inside = matrix
    for _ in range(rounds):
        lifted = lift(matrix - dual, floor)
        inside = onto_set(dual + lifted)
        stepped = dual + lifted - inside
        if np.linalg.norm(inside - lifted) <= floor:  # then λ_min(inside) ≥ 0
            break
        if np.vdot(dual - stepped, stepped - previous) > 0:  # overshot: drop the momentum
            momentum = 1.0
        larger = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        dual = stepped + (momentum - 1) / larger * (stepped - previous)
        previous, momentum = stepped, larger
    return inside


def lift(matrix: Floats, floor: float) -> Floats:
    """Frobenius projection onto the matrices with eigenvalues of at least ``floor``."""
    eigenvalues, vectors = eigh(matrix)
    return composed(vectors, np.maximum(eigenvalues, floor))
