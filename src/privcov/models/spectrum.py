"""What noise and sampling do to eigenvalues and eigenvectors: releases rehearsed around one like the release at hand.

A world is a covariance that might be the true one. The law of the noise is public, so that releases of a world can be
drawn as often as anyone likes, whole: noise on the sums, on the means that centre them and on the count; for a
population also the sampling of rows: as of normal ones, but for levels, whose shares say all of their law, and as
of one row a person, which is the most that several of them, however alike, can scatter. Noise pushes
ordered eigenvalues apart. The world taken is therefore not the matrix released but one whose rehearsed spectrum is on
average the one released. An interval is the released eigenvalue less what rehearsed ones miss theirs by.

Where a gap is not wider than two equal eigenvalues would show, the two belong to a group: its span and its sum are
known, and no direction within it is. There two more worlds are asked, one with equal eigenvalues and one with those
released, and an interval holds all three answers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from privcov.linalg.arrays import Floats
from privcov.linalg.devices import eigvalsh
from privcov.noise.randomness import rehearsal

MOST = 256
"""Columns beyond which nothing is rehearsed here."""
TOLD_APART = 0.95
"""Equal eigenvalues pass for different ones in at most one release in twenty."""
_SEED = 20240611
_TRIED = 96  # rehearsals that a step towards the world is taken from
_STEPS = 3
_AT_ONCE = (
    250_000  # numbers of rehearsed matrices that are worked on together: what the processor keeps at hand
)


class Drawn(NamedTuple):
    """The spectrum and the directions (in columns) of a world, and those of its rehearsed releases, largest first."""

    values: Floats
    vectors: Floats
    released: Floats
    turned: Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class Rehearsals:
    """Releases around one matrix.

    ``noise`` holds draws about the mean, in the units of ``matrix`` times its divisor: the count first, then columns.
    ``sampled`` says whether rows are drawn anew each time: as many independent ones as there are ``persons``.
    ``levels`` has an entry for each categorical column: what a
    person of each level has in the columns of ``matrix``, and the share of such persons.
    """

    matrix: Floats
    count: float
    persons: float
    noise: Floats
    centred: bool
    correlation: bool
    sampled: bool
    levels: tuple[tuple[Floats, Floats], ...] = ()

    @cached_property
    def raw(self) -> tuple[Floats, Floats]:
        """Eigenvalues and directions (in columns) of the matrix, largest first."""
        values, vectors = np.linalg.eigh(self.matrix)
        return values[::-1], vectors[:, ::-1]

    @property
    def drowned(self) -> bool:
        """Whether noise may be all there is of the count."""
        return bool(np.mean(self.count + self.noise[:, 0, 0] <= self.count / 2) > 0.001)

    @cached_property
    def world(self) -> Drawn:
        """The world whose rehearsed spectrum is on average the one released."""
        wanted = values = self.raw[0]
        for _ in range(_STEPS):
            drawn = self._drawn(np.maximum(values, 0.0), _TRIED, turned=False)
            values = descending(values + wanted - drawn.released.mean(axis=0))
        return self._drawn(np.maximum(values, 0.0), len(self.noise), turned=self.sampled)

    @cached_property
    def groups(self) -> tuple[range, ...]:
        """Components that cannot be told apart, as runs of neighbours."""
        values = self.raw[0]
        apart = (
            -np.diff(values) > np.quantile(self._gaps, TOLD_APART, axis=0)
            if len(values) > 1
            else np.zeros(0, bool)
        )
        ends = [0, *(np.flatnonzero(apart) + 1).tolist(), len(values)]
        return tuple(range(low, high) for low, high in pairwise(ends))

    def intervals(self, level: float) -> Floats:
        """The interval of each ordered eigenvalue, at least as wide as the level says within a group."""
        alone = tuple(range(k, k + 1) for k in range(len(self.matrix)))
        ends = self._ends(self.world, alone, level)
        if self.groups == alone:
            return ends
        wide = (1 + level) / 2  # a world is chosen too, which the draws do not know
        both = [self._ends(drawn, alone, wide) for drawn in (self.world, *self._other_worlds)]
        widest = np.stack([np.min(both, axis=0)[:, 0], np.max(both, axis=0)[:, 1]], axis=1)
        grouped = np.repeat([len(group) > 1 for group in self.groups], [len(group) for group in self.groups])
        return np.where(grouped[:, None], widest, ends)

    def sums(self, groups: tuple[range, ...], level: float) -> Floats:
        """The interval of each group's sum of eigenvalues; the groups are all there are, in order."""
        return self._ends(self.world, groups, level)

    def loadings(self, components: Floats, level: float) -> Floats:
        """The ends (last axis) of the entries of ``components``, one a row; meant for groups of one."""
        drawn = self.world
        here, there = (vectors[..., : len(components)] for vectors in (drawn.vectors, drawn.turned))
        here = here * np.where(np.einsum("ji,ij->j", components, here) < 0, -1.0, 1.0)
        signs = np.where(np.einsum("nij,ij->nj", there, here) < 0, -1.0, 1.0)
        missed = [
            np.quantile(there[..., j] * signs[:, j : j + 1] - here[:, j], _tails(level), axis=0)
            for j in range(len(components))
        ]
        low, high = np.stack(missed, axis=1) if missed else np.zeros((2, *components.shape))
        return np.clip(np.stack([components - high, components - low], axis=-1), -1.0, 1.0)

    def lengths(self, group: range, lengths: Floats, level: float) -> Floats:
        """The ends (last axis) of how much of each column's axis is in the span of a group."""
        drawn, places = self.world, list(group)
        here = np.linalg.norm(drawn.vectors[:, places], axis=1)
        there = np.linalg.norm(drawn.turned[:, :, places], axis=2)
        low, high = np.quantile(there - here, _tails(level), axis=0)
        return np.clip(np.stack([lengths - high, lengths - low], axis=-1), 0.0, 1.0)

    def _ends(self, drawn: Drawn, groups: tuple[range, ...] | list[range], level: float) -> Floats:
        """Ends of sums over groups.

        Sampling scatters an eigenvalue in proportion to itself and noise does not: errors are compared on the scale
        on which both together are constant.
        """
        if self.drowned:
            return np.tile([0.0, np.inf], (len(groups), 1))
        first = [group.start for group in groups]
        sizes = np.array([len(group) for group in groups], dtype=np.float64)
        seen, true, released = (
            np.add.reduceat(values, first, axis=-1) for values in (self.raw[0], drawn.values, drawn.released)
        )
        if not self.sampled:
            low, high = np.quantile(released - true, _tails(level), axis=0)
            return np.maximum(np.stack([seen - high, seen - low], axis=1), 0.0)
        bend = np.sqrt(self.persons * sizes / 2) * np.maximum(
            self._noise_alone(groups), 1e-9 * np.abs(true).max()
        )
        low, high = np.quantile(np.arcsinh(released / bend) - np.arcsinh(true / bend), _tails(level), axis=0)
        ends = [bend * np.sinh(np.arcsinh(seen / bend) - missed) for missed in (high, low)]
        return np.maximum(np.stack(ends, axis=1), 0.0)

    def _noise_alone(self, groups: tuple[range, ...] | list[range]) -> Floats:
        """Standard deviations of what noise adds to the sums of groups, to first order."""
        own = np.diagonal(self._along[:_TRIED, 1:, 1:], axis1=1, axis2=2)
        return np.array([own[:, list(group)].sum(axis=1).std() for group in groups]) / self._divisor(
            self.count
        )

    @cached_property
    def _other_worlds(self) -> list[Drawn]:
        """The worlds in which the eigenvalues of a group are equal, and as far apart as those released."""
        equal = np.concatenate(
            [np.full(len(group), self.world.values[group].mean()) for group in self.groups]
        )
        spread = np.maximum(self.raw[0], 0.0)
        draws = max(100, len(self.noise) // 2)
        return [self._drawn(values, draws, turned=False) for values in (equal, spread)]

    @property
    def _gaps(self) -> Floats:
        """What noise and sampling put between neighbours that are equal in the world: two by two, a line a draw."""
        truth, basis, released = self._released(np.maximum(self.raw[0], 0.0), len(self.noise))
        found = []
        for some in released:
            spread = (basis.T @ some @ basis if self.correlation else some) - np.diag(truth)
            own = np.diagonal(spread, axis1=1, axis2=2)
            beside = np.diagonal(spread, offset=1, axis1=1, axis2=2)
            found.append(np.hypot(own[:, :-1] - own[:, 1:], 2 * beside))
        return np.concatenate(found)

    def _drawn(self, values: Floats, draws: int, *, turned: bool) -> Drawn:
        truth, basis, released = self._released(values, draws)
        if not turned:
            found = np.concatenate([eigvalsh(some) for some in released])
            return Drawn(truth, basis, np.asarray(found[:, ::-1]), np.zeros(0))
        found, vectors = np.empty((draws, len(truth))), np.empty((draws, len(truth), len(truth)))
        for place, some in zip(blocks(vectors), released, strict=True):
            found[place], directions = np.linalg.eigh(some)
            vectors[place] = directions if self.correlation else basis @ directions
        return Drawn(truth, basis, found[:, ::-1], vectors[:, :, ::-1])

    def _released(self, values: Floats, draws: int) -> tuple[Floats, Floats, Iterator[Floats]]:
        """Spectrum and directions of the world with these values, and matrices rehearsed from it, some at a time.

        They are in these directions; correlations are in the columns, which alone can be scaled.
        """
        basis, noise = self.raw[1], self._along
        if self.correlation:
            found, vectors = np.linalg.eigh(to_correlation((basis * values) @ basis.T))
            values, basis = np.maximum(found[::-1], 0.0), vectors[:, ::-1]
            noise = _turned(self.noise[:draws], basis)
        own = self._divisor(self.count) * values
        root = np.sqrt(values * self._tails_of(values, basis)) if self.sampled else np.zeros(0)
        scatter = self._divisor(self.count) * np.outer(root, root)

        def rehearsed(some: slice) -> Floats:
            sums, counts = noise[some, 1:, 1:].copy(), self.count + noise[some, 0, 0]
            np.einsum("nii->ni", sums)[...] += own
            if self.sampled:
                sums += self._rows[some] * scatter
            if self.centred:
                means = noise[some, 0, 1:]
                sums -= means[:, :, None] * (means / counts[:, None])[:, None, :]
            sums /= np.maximum(counts - self.centred, 1.0)[:, None, None]
            return to_correlation(basis @ sums @ basis.T) if self.correlation else sums

        return values, basis, map(rehearsed, blocks(noise[:draws, 1:, 1:]))

    @cached_property
    def _along(self) -> Floats:
        """The noise along the directions released."""
        return _turned(self.noise, self.raw[1])

    def _tails_of(self, values: Floats, basis: Floats) -> Floats:
        """How much more than with normal rows a variance along each direction scatters, as a factor.

        The fourth cumulant of a sum of independent parts is the sum of theirs; that of a numeric column is taken for 0.
        """
        excess = np.zeros(len(values))
        for has, shares in self.levels:
            along = has @ basis
            about = along - shares @ along
            excess += shares @ about**4 - 3 * (shares @ about**2) ** 2
        return np.asarray(np.sqrt(np.clip(1 + excess / np.maximum(2 * values**2, 1e-300), 0.1, 10.0)))

    def _divisor(self, count: float) -> float:
        return max(1.0, count - self.centred)

    @cached_property
    def _rows(self) -> Floats:
        """Covariances of samples of standard normal rows (Bartlett's decomposition), less the identity."""
        draws, size = len(self.noise), len(self.matrix)
        freedom, source = self._divisor(self.persons), rehearsal(_SEED)
        if freedom < size:
            few = source.normals(draws, size, max(1, math.floor(freedom)))
            return np.asarray(few @ few.transpose(0, 2, 1) / few.shape[-1] - np.eye(size))
        root = source.normals(draws, size, size)
        left = freedom - np.arange(size)
        cubes = (
            1 - 2 / (9 * left) + source.normals(draws, size) * np.sqrt(2 / (9 * left))
        )  # Wilson and Hilferty
        lengths = np.sqrt(left * np.maximum(cubes, 0.0) ** 3)
        for some in blocks(root):
            lower = np.tril(root[some], -1)
            np.einsum("nii->ni", lower)[...] = lengths[some]
            np.matmul(lower, lower.transpose(0, 2, 1) / freedom, out=root[some])
            np.einsum("nii->ni", root[some])[...] -= 1
        return root


def descending(values: Floats) -> Floats:
    """The nearest values that do not rise: neighbours that do are pooled.

    >>> descending(np.array([3.0, 1.0, 2.0])).tolist()
    [3.0, 1.5, 1.5]
    """
    pools: list[tuple[float, int]] = []
    for value in values.tolist():
        pools.append((value, 1))
        while len(pools) > 1 and pools[-2][0] < pools[-1][0]:
            (mean, size), (other, more) = pools.pop(), pools.pop()
            pools.append(((mean * size + other * more) / (size + more), size + more))
    return np.concatenate([np.full(size, mean) for mean, size in pools])


def blocks(matrices: Floats) -> Iterator[slice]:
    """Runs of matrices on the first axis that are worked on together, so that what is made of them stays small.

    >>> list(blocks(np.zeros((5, 300, 300))))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    step = max(1, _AT_ONCE // math.prod(matrices.shape[1:]))
    return (slice(start, min(start + step, len(matrices))) for start in range(0, len(matrices), step))


def _turned(noise: Floats, basis: Floats) -> Floats:
    """Noise on the count and the columns, along other directions than those of the columns."""
    made = np.empty((len(noise), basis.shape[1] + 1, basis.shape[1] + 1))
    for some in blocks(made):
        made[some, 1:, 1:] = basis.T @ noise[some, 1:, 1:] @ basis
    made[:, 0, 1:] = made[:, 1:, 0] = noise[:, 0, 1:] @ basis
    made[:, 0, 0] = noise[:, 0, 0]
    return made


def _tails(level: float) -> list[float]:
    return [(1 - level) / 2, (1 + level) / 2]


def to_correlation(matrices: Floats) -> Floats:
    """Covariances over the standard deviations on their diagonals."""
    own = np.sqrt(np.maximum(np.diagonal(matrices, axis1=-2, axis2=-1), 1e-12))
    return np.asarray(matrices / own[..., :, None] / own[..., None, :])
