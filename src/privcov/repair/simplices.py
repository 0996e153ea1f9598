"""Certain facts about levels that add up to the intercept, in the coordinates that were summed for them.

A row is at one corner of the simplex of a column (``privcov.schema.recovery``). So the sums of the coordinates, and of
their products, follow from how many rows are at each corner, numbers that are not negative and add up to the count. Two
columns make a table of counts with these margins. Distances between matrices are the same in coordinates and in levels
as long as the margins stay: so the nearest such table can be found among levels.

Noise hides most of what two columns of levels have to do with each other, or levels and numbers: ``smooth`` shrinks it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privcov.linalg.arrays import Floats
from privcov.noise.laws import NoiseLaw

OFTEN, SELDOM = 100, 5
"""Turns between tables without negative counts and tables with the margins: once, and within other projections."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Simplex:
    """The corners of one column, in the coordinates at some places of the matrix.

    Parameters
    ----------
    places : ndarray of int
        Where the coordinates are.
    corners : ndarray of shape (coordinates, levels)
        The corners, in scaled units.
    """

    places: NDArray[np.intp]
    corners: Floats

    @property
    def block(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Where products of two coordinates are."""
        return self.places[:, None], self.places[None, :]

    def normal(self, diagonal: float, rest: float) -> Floats:
        """⟨s_j s_jᵀ, s_k s_kᵀ⟩ of the corners s = (1, v) without their first entry, for weights of upper entries."""
        angles, squares = self.corners.T @ self.corners, self.corners**2
        return np.asarray(
            rest * (angles + angles**2 / 2) + (diagonal - rest / 2) * (squares.T @ squares), dtype=np.float64
        )

    def found(self, matrix: Floats, diagonal: float, rest: float) -> tuple[Floats, Floats]:
        """The counts that fit the sums best, whatever they add up to, and what they change by for each row more.

        The second are the columns of the inverse normal matrix, added up.
        """
        inside = matrix[self.block]
        along = ((inside @ self.corners) * self.corners).sum(axis=0)
        right = rest * (self.corners.T @ matrix[0, self.places] + along / 2)
        right += (diagonal - rest / 2) * (self.corners**2).T @ np.diag(inside)
        both = np.linalg.solve(self.normal(diagonal, rest), np.stack([right, np.ones(len(right))], axis=1))
        return both[:, 0], both[:, 1]

    def put(self, matrix: Floats, counts: Floats) -> None:
        """Write what follows from the counts into a matrix."""
        matrix[0, self.places] = matrix[self.places, 0] = self.corners @ counts
        matrix[self.block] = (self.corners * counts) @ self.corners.T


def fit_counts(
    matrix: Floats, simplices: Sequence[Simplex], *, diagonal: float, rest: float, rows: float | None
) -> None:
    """Replace the sums of every simplex by those of the nearest counts, and the count where ``rows`` is None.

    ``diagonal`` and ``rest`` are the weights of entries on the diagonal and above it.
    """
    fits = [one.found(matrix, diagonal, rest) for one in simplices]
    count = rows
    if count is None:
        pulls = [(counts.sum(), 1 / slopes.sum()) for counts, slopes in fits]
        whole = diagonal + sum(pull for _, pull in pulls)
        count = (diagonal * matrix[0, 0] + sum(total * pull for total, pull in pulls)) / whole
        count = matrix[0, 0] = max(float(count), 0.0)
    for one, (counts, slopes) in zip(simplices, fits, strict=True):
        counts = counts + slopes * ((count - counts.sum()) / slopes.sum())
        one.put(matrix, onto_margin(counts, count))


def noise_left(simplices: Sequence[Simplex], *, diagonal: float, rest: float, rows: float | None) -> float:
    """The mean squared Frobenius norm of the noise that ``fit_counts`` leaves on the entries that it sets.

    The count is one of them where ``rows`` is None. Counts that would be negative are not thought of.
    """
    inverses = [np.linalg.inv(one.normal(diagonal, rest)) for one in simplices]
    spread = 0.0
    if rows is None:
        spread = 1 / (diagonal + sum(1 / float(inverse.sum()) for inverse in inverses))
    left = spread
    for one, inverse in zip(simplices, inverses, strict=True):
        slopes = inverse.sum(axis=1)
        pull = 1 / float(slopes.sum())
        covariance = inverse - (pull - pull**2 * spread) * np.outer(slopes, slopes)
        left += float((one.normal(1.0, 2.0) * covariance).sum())
    return left


def onto_margin(counts: Floats, total: float) -> Floats:
    """The nearest counts that are not negative and add up to ``total``.

    >>> onto_margin(np.array([6.0, 5.0, -2.0]), 10.0).tolist()
    [5.5, 4.5, 0.0]
    """
    descending = np.sort(counts)[::-1]
    excess = (np.cumsum(descending) - total) / np.arange(1, len(counts) + 1)
    last = np.flatnonzero(descending >= excess)[-1]
    return np.asarray(np.maximum(counts - excess[last], 0.0))


@dataclass(frozen=True, kw_only=True, eq=False)
class Tables:
    """The counts of two columns at once, of which at least one is exhaustive, as a part of the matrix.

    Parameters
    ----------
    levels : ndarray of shape (levels, dimension)
        What makes the levels of all columns of the columns that were summed.
    coordinates : ndarray of shape (dimension, levels)
        What a change of levels is in coordinates.
    centring : ndarray of shape (levels, levels)
        The projection onto changes that leave the margins of exhaustive columns.
    apart : ndarray of shape (levels, levels)
        Which pairs are of two columns, one of them exhaustive.
    """

    levels: Floats
    coordinates: Floats
    centring: Floats
    apart: NDArray[np.bool_]

    @classmethod
    def of(cls, dimension: int, simplices: Sequence[Simplex], groups: Sequence[NDArray[np.intp]]) -> Tables:
        """Those of simplices, and of ``groups`` of plain indicators."""
        count = sum(one.corners.shape[1] for one in simplices)
        places = np.concatenate([*groups, np.empty(0, dtype=np.intp)])
        whole = count + len(places)
        levels, coordinates = np.zeros((whole, dimension)), np.zeros((dimension, whole))
        centring, owner, at = np.eye(whole), np.full(whole, -1), 0
        for number, one in enumerate(simplices):
            size = one.corners.shape[1]
            some = slice(at, at + size)
            back = np.linalg.inv(np.vstack([np.ones(size), one.corners]))
            levels[some, [0, *one.places]] = back
            coordinates[one.places, some] = one.corners
            centring[some, some] -= 1 / size
            owner[some], at = number, at + size
        levels[np.arange(count, whole), places] = 1.0
        coordinates[places, np.arange(count, whole)] = 1.0
        return cls(
            levels=levels,
            coordinates=coordinates,
            centring=centring,
            apart=(owner[:, None] != owner) & ((owner[:, None] >= 0) | (owner >= 0)),
        )

    def fit(self, matrix: Floats, turns: int) -> None:
        """Replace the sums of products of these columns by those of the nearest tables without negative counts."""
        start = self.levels @ matrix @ self.levels.T
        if not (start[self.apart] < 0).any():
            return
        here, owed = start, np.zeros_like(start)
        for _ in range(turns):
            wanted = here + owed
            kept = np.where(self.apart, np.maximum(wanted, 0.0), start)
            owed = np.where(self.apart, wanted - kept, 0.0)
            here = start + np.where(self.apart, self.centring @ (kept - start) @ self.centring, 0.0)
        change = self.coordinates @ (here - start) @ self.coordinates.T
        matrix += (change + change.T) / 2


def smooth(made: Floats, noisy: Floats, groups: Sequence[NDArray[np.intp]], noise_std: float) -> None:
    """Shrink what two groups of columns have to do with each other beyond their means to what stands out of the noise.

    Means and the count are read from ``made``, blocks from ``noisy``, and the shrunk ones are written into ``made``.
    Blocks of one size are taken at once.
    """
    count, sums = max(float(made[0, 0]), 1.0), made[0].copy()
    sizes = sorted({len(group) for group in groups})
    stacks = {size: np.array([group for group in groups if len(group) == size]) for size in sizes}
    for m in sizes:
        for n in sizes[: sizes.index(m) + 1]:
            if m == n:
                first, second = np.triu_indices(len(stacks[m]), 1)
            else:
                first, second = np.indices((len(stacks[m]), len(stacks[n]))).reshape(2, -1)
            one, other = stacks[m][first][:, :, None], stacks[n][second][:, None, :]
            means = sums[one] * sums[other] / count
            made[one, other] = made[other, one] = means + shrunk(noisy[one, other] - means, noise_std)


def shrunk(blocks: Floats, noise_std: float) -> Floats:
    """Blocks of m × n entries with noise of one size, m ≥ n, each shrunk in the way that its estimated risk advises.

    By its singular values, since what two groups have to do with each other has few directions, and the noise has all
    of them: each value y becomes √((y² − (m + n)s²)² − 4mn s⁴) / y, the best that can be done about a value alone in
    large blocks, and zero within the noise, up to s(√m + √n). Or as a whole, by 1 − (mn − 2)s² / ‖B‖² (James and
    Stein), which is never worse than the block as it is: where that has less risk, by more than √(2mn − 4)s², about
    what the square of noise alone is off by chance. The risk is estimated without bias (Stein), from the values.

    >>> shrunk(np.array([[[9.0, 0.0], [0.0, 0.1]], [[0.3, 0.1], [-0.2, 0.4]]]), 1.0).round(1).tolist()
    [[[8.5, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]]
    """
    m, n = blocks.shape[1:]
    if not noise_std > 1e-12 * float(
        np.abs(blocks).max(initial=0.0)
    ):  # nothing to shrink, and fourth powers too large
        return blocks
    left, values, right = np.linalg.svd(blocks / noise_std, full_matrices=False)
    size = np.maximum((values**2).sum(axis=1, keepdims=True), 1e-100)
    whole = np.maximum(1 - max(m * n - 2, 0) / size, 0.0)
    bend = np.maximum((values**2 - (m + n)) ** 2 - 4 * m * n, 0.0)
    shown, safe = values > np.sqrt(m) + np.sqrt(n), np.maximum(values, 1e-150)
    single = np.where(shown, np.sqrt(bend) / safe, 0.0)
    slopes = np.where(
        shown, (2 * (values**2 - (m + n))) / np.sqrt(np.maximum(bend, 1e-300)) - single / safe, 0.0
    )
    flat = np.where(whole > 0, whole + 2 * max(m * n - 2, 0) * values**2 / size**2, 0.0)
    risks = [_risk(values, one, slope, m) for one, slope in ((whole * values, flat), (single, slopes))]
    chance = math.sqrt(2 * max(m * n - 2, 0))
    kept = np.where((risks[0] <= risks[1] - chance)[:, None], whole * values, single)
    return np.asarray((left * (noise_std * kept)[:, None, :]) @ right)


def _risk(values: Floats, kept: Floats, slopes: Floats, rows: int) -> Floats:
    """Stein's estimate of the squared error of blocks with these singular values kept, for noise of variance 1.

    ``slopes`` are the derivatives of each kept value by its own.
    """
    n = values.shape[1]
    one, other = np.triu_indices(n, 1)
    apart = np.maximum(values[:, one] ** 2 - values[:, other] ** 2, 1e-9)
    turning = 2 * (values * kept)[:, one] / apart - 2 * (values * kept)[:, other] / apart
    along = (
        slopes.sum(axis=1)
        + (rows - n) * (kept / np.maximum(values, 1e-150)).sum(axis=1)
        + turning.sum(axis=1)
    )
    return np.asarray(((kept - values) ** 2).sum(axis=1) - rows * n + 2 * along)


def smooth_numbers(made: Floats, noisy: Floats, numbers: NDArray[np.intp], law: NoiseLaw) -> None:
    """Shrink the covariances of numeric columns towards none, as far as the noise of each and all of them advise.

    A correlation seen at r, with noise of variance v, is taken for a draw about zero of variance t, which all pairs
    share and which their sizes tell: the mean of r² − v, weighted by 1/v². Then noise is expected to be v / (t + v) of
    it, and of that the part (p − 2) / p is taken off, as t is told by p pairs alone (James and Stein). A pair that
    stands out of the others is believed: none is moved by more than a standard deviation of its noise.
    """
    pairs = len(numbers) * (len(numbers) - 1) // 2
    if pairs < 3:
        return
    count = max(float(made[0, 0]), 1.0)
    first, second = (numbers[some] for some in np.triu_indices(len(numbers), 1))
    seen = noisy[first, second] - made[0, first] * made[0, second] / count
    variances = np.zeros(len(made))
    variances[numbers] = made[numbers, numbers] - made[0, numbers] ** 2 / count
    spreads = np.sqrt(np.maximum(variances, np.sqrt(law.diagonal_variance)))
    scale, noise_std = spreads[first] * spreads[second], np.sqrt(law.offdiagonal_variance)
    found, doubt = seen / scale, np.maximum(noise_std / scale, 1e-150)
    weights = (doubt.min() / doubt) ** 4
    shared = max(float((weights * (found**2 - doubt**2)).sum() / weights.sum()), 0.0)
    noise = doubt**2 / (shared + doubt**2) * (1 - 2 / pairs)
    moved = np.clip(seen * noise, -noise_std, noise_std)
    made[first, second] = made[second, first] = made[0, first] * made[0, second] / count + seen - moved
