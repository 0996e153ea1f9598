"""Intervals for eigenvalues and eigenvectors: noise and sampling, rehearsed around a covariance like the released.

A world is a covariance that might be the true one. The law of the noise is public, so that releases of a world can be
drawn as often as anyone likes, whole: noise on the sums, on the means that centre them and on the count; for a
population also the sampling of rows: as of normal ones, but for levels, whose shares say all of their law, and as
of one row a person, which is the most that several of them, however alike, can scatter. Noise pushes
ordered eigenvalues apart. The world taken is therefore not the matrix released but one whose rehearsed spectrum is on
average the one released. An interval is the released eigenvalue less what rehearsed ones miss theirs by.

Where a gap is not wider than two equal eigenvalues would show, the two belong to a group: its span and its sum are
known, and no direction within it is. There more worlds are asked: with equal eigenvalues, with eigenvalues equal in two
parts of the group, with those released, and with eigenvalues so far apart that none moves another. An interval holds
all answers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
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
_SMALL, _WIDEST = 8, 3  # columns of a group that is parted everywhere; gaps at which a larger one is
_SETTLED = 30
_SHOWS = 0.3  # of the whole error: sampling below that is not told from noise
_AT_ONCE = (
    250_000  # numbers of rehearsed matrices that are worked on together: what the processor keeps at hand
)


class Drawn(NamedTuple):
    """The spectrum and the directions (in columns) of a world, and those of its rehearsed releases, largest first."""

    values: Floats
    vectors: Floats
    released: Floats
    turned: Floats


class Reach(NamedTuple):
    """How far a row can be from the mean, in the units of a matrix: along each column, and in length.

    ``persons`` is the least that independent ones count for. Proof: docs/proofs/ridge-and-pca.md.
    """

    columns: Floats
    length: float
    persons: float

    def along(self, basis: Floats) -> Floats:
        """The square of the most that a row can have along each direction (in columns)."""
        return np.minimum((self.columns @ np.abs(basis)) ** 2, self.length**2)


@dataclass(frozen=True, kw_only=True, eq=False)
class Rehearsals:
    """Releases around one matrix.

    ``noise`` holds draws about the mean, in the units of ``matrix`` times its divisor: the count first, then columns.
    ``sampled`` says whether rows are drawn anew each time: as many independent ones as there are ``persons``.
    ``levels`` has an entry for each categorical column: what a
    person of each level has in the columns of ``matrix``, and the share of such persons.
    ``reach`` is what bounds allow of a row; where ``conservative``, sampling counts for the most that it allows.
    ``scales`` are draws of what each column may have to be multiplied by, where that is in doubt.
    """

    matrix: Floats
    count: float
    persons: float
    noise: Floats
    centred: bool
    correlation: bool
    sampled: bool
    levels: tuple[tuple[Floats, Floats], ...] = ()
    reach: Reach | None = None
    conservative: bool = False
    scales: Floats | None = None

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
        """The world whose rehearsed spectrum is on average the one released, with the scales that it has."""
        wanted = values = self.raw[0]
        for _ in range(_STEPS):
            drawn = self._as_scaled._drawn(np.maximum(values, 0.0), _TRIED, turned=False)
            values = descending(values + wanted - drawn.released.mean(axis=0))
        return self._drawn(np.maximum(values, 0.0), len(self.noise), turned=self.sampled)

    @cached_property
    def _as_scaled(self) -> Rehearsals:
        """The same with no doubt about scales."""
        return self if self.scales is None else replace(self, scales=None)

    @cached_property
    def groups(self) -> tuple[range, ...]:
        """Components that cannot be told apart, as runs of neighbours."""
        values, apart = self.raw[0], np.zeros(0, bool)
        if len(values) > 1:
            gaps = self._gaps
            apart = -np.diff(values) > np.quantile(gaps, TOLD_APART, axis=0) * self._wider_gaps(gaps)
            if self.scales is not None:
                apart &= np.log(values[:-1] / np.maximum(values[1:], 1e-300)) > self._doubted_ratios
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
        found = np.where(grouped[:, None], widest, ends)
        for group in self.groups:  # in falling order, as the eigenvalues are that they hold
            here = slice(group.start, group.stop)
            found[here, 0] = np.minimum.accumulate(found[here, 0])
            found[here, 1] = np.maximum.accumulate(found[here, 1][::-1])[::-1]
        return found

    def sums(self, groups: tuple[range, ...], level: float) -> Floats:
        """The interval of each group's sum of eigenvalues; the groups are all there are, in order."""
        return self._ends(self.world, groups, level)

    def estimates(self, groups: tuple[range, ...]) -> Floats:
        """Each group's sum of eigenvalues without what noise adds to it on average: within the interval of ``sums``."""
        seen, true, released = self._sums(self.world, groups)
        return np.maximum(seen - np.median(released - true, axis=0), 0.0)

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
        if self.conservative:
            wider = np.array(
                [self._wider_loadings(j, there[..., j] * signs[:, j : j + 1]) for j in range(len(low))]
            )
            low, high = low * wider, high * wider
        return np.clip(np.stack([components - high, components - low], axis=-1), -1.0, 1.0)

    def lengths(self, group: range, lengths: Floats, level: float) -> Floats:
        """The ends (last axis) of how much of each column's axis is in the span of a group."""
        drawn, places = self.world, list(group)
        here = np.linalg.norm(drawn.vectors[:, places], axis=1)
        there = np.linalg.norm(drawn.turned[:, :, places], axis=2)
        low, high = np.quantile(there - here, _tails(level), axis=0)
        if self.conservative and self.reach is not None:
            # (P e)² moves by 2 Σ s w with E w² as with normal rows: at most reach² in place of the least variance.
            most = min(float(self.reach.along(drawn.vectors[:, places]).sum()), self.reach.length**2)
            least = float(drawn.values[places].min())
            wider = math.sqrt(max(1.0, most / least)) if least > 0 and not self.correlation else np.inf
            low, high = np.minimum(low, -1e-12) * wider, np.maximum(high, 1e-12) * wider
        return np.clip(np.stack([lengths - high, lengths - low], axis=-1), 0.0, 1.0)

    def widening(self, groups: tuple[range, ...] | list[range]) -> Floats | None:
        """By what rows of any law within the bounds may multiply the sampling error of each sum, at least 1.

        NaN where there is next to no such error as with normal rows, or where noise hides it.
        """
        if self.reach is None or self.drowned:
            return None
        first, values = [group.start for group in groups], self.world.values
        if self.correlation:
            plain, whole = self._sampling_alone(self.world, groups), self.world.released
            plain[plain < _SHOWS * np.add.reduceat(whole, first, axis=-1).std(axis=0)] = np.nan
        else:
            plain = np.sqrt(2 * np.add.reduceat(values**2, first) / max(1.0, self.persons))
            plain[~(plain > 0)] = np.nan
        return np.maximum(1.0, self._most(groups, np.add.reduceat(values, first)) / plain)

    def _ends(self, drawn: Drawn, groups: tuple[range, ...] | list[range], level: float) -> Floats:
        """Ends of sums over groups.

        Sampling and doubt about scales move an eigenvalue in proportion to itself and noise does not: errors are
        compared on the scale on which all together are constant.
        """
        if self.drowned:
            return np.tile([0.0, np.inf], (len(groups), 1))
        sizes = np.array([len(group) for group in groups], dtype=np.float64)
        seen, true, released = self._sums(drawn, groups)
        if not self.sampled:
            low, high = np.quantile(released - true, _tails(level), axis=0)
            return np.maximum(np.stack([seen - high, seen - low], axis=1), 0.0)
        moved = 0.0 if self.scales is None else 4 * float(np.log(self.scales).var(axis=0).mean())
        bend = np.maximum(self._noise_alone(groups), 1e-9 * np.abs(true).max())
        bend /= np.sqrt(2 / (self.persons * sizes) + moved)
        low, high = np.quantile(np.arcsinh(released / bend) - np.arcsinh(true / bend), _tails(level), axis=0)
        ends = [bend * np.sinh(np.arcsinh(seen / bend) - missed) for missed in (high, low)]
        if self.conservative:
            low, middle, high = np.quantile(
                released - true, [_tails(level)[0], 0.5, _tails(level)[1]], axis=0
            )
            whole, plain = released.std(axis=0), self._sampling_alone(drawn, groups)
            noise = np.sqrt(np.maximum(whole**2 - plain**2, 0.0))

            def wider(sums: Floats) -> Floats:
                most = np.maximum(self._most(groups, sums), plain)
                return np.asarray(np.hypot(noise, most) / np.maximum(whole, 1e-300))

            least, most = seen - middle - (high - middle) * wider(seen), ends[1]
            for _ in range(_SETTLED):  # sampling scatters a larger variance more: asked at the end itself
                most = np.maximum(most, seen - middle + (middle - low) * wider(most))
            ends = [np.minimum(ends[0], least), most]
        return np.maximum(np.stack(ends, axis=1), 0.0)

    def _sums(self, drawn: Drawn, groups: tuple[range, ...] | list[range]) -> tuple[Floats, Floats, Floats]:
        """Sums of eigenvalues over groups: as released, of a world, and of each of its rehearsed releases."""
        first = [group.start for group in groups]
        seen, true, released = (
            np.add.reduceat(values, first, axis=-1) for values in (self.raw[0], drawn.values, drawn.released)
        )
        return seen, true, released

    def _sampling_alone(self, drawn: Drawn, groups: tuple[range, ...] | list[range]) -> Floats:
        """Standard deviations of what sampling of normal rows adds to the sums of groups."""
        released = np.add.reduceat(drawn.released, [group.start for group in groups], axis=-1)
        return np.sqrt(np.maximum(released.var(axis=0) - self._noise_alone(groups) ** 2, 0.0))

    def _most(self, groups: tuple[range, ...] | list[range], sums: Floats) -> Floats:
        """The largest standard deviation that sampling can give sums of groups, where these are the true ones.

        Squared scores s² add up to at most reach², so that E(Σs²)² ≤ reach² E Σs². On the scale of correlations λx² of
        the columns is taken off each, which adds E(Σλx²)² at most.
        """
        assert self.reach is not None, "asked of a population alone"
        first, (values, basis) = [group.start for group in groups], self.world[:2]
        if (
            self.correlation and len(groups) == 1
        ):  # correlations of columns with themselves add up to their number
            return np.zeros(1)
        sums = np.maximum(sums, 0.0)
        most = np.minimum(np.add.reduceat(self.reach.along(basis), first), self.reach.length**2)
        if self.correlation:
            columns = values * (self.reach.columns**2 @ basis**2)
            share = np.add.reduceat(columns, first) / np.maximum(np.add.reduceat(values, first), 1e-300)
            squares = sums * most + sums**2 * share
        else:
            squares = sums * np.maximum(most - sums, 0.0)
        return np.asarray(np.sqrt(squares / max(1.0, self.reach.persons)))

    def _wider_gaps(self, gaps: Floats) -> Floats:
        """By what rehearsed gaps between equal neighbours are multiplied.

        Two scores s and t of one variance λ are told apart by (s² − t², 2st), whose squared length is (s² + t²)²: at
        most 2λ reach² in the mean, and 8λ² with normal rows. On the scale of correlations, at most twice that and twice
        (λ Σ w x²)², w the squared loadings of the columns on both.
        """
        if not self.conservative or self.reach is None:
            return np.ones(gaps.shape[1])
        values, basis = self.raw[0], self.raw[1]
        own, equal = self.reach.along(basis), np.maximum((values[:-1] + values[1:]) / 2, 0.0)
        squares = 2 * equal * np.minimum(own[:-1] + own[1:], self.reach.length**2)
        plain = 8 * equal**2
        if self.correlation:
            columns = self.reach.columns**2 @ basis**2
            squares, plain = 2 * squares + 4 * equal**2 * (columns[:-1] + columns[1:]), np.zeros_like(plain)
        whole = np.maximum((gaps**2).mean(axis=0), 1e-300)
        beside = np.maximum(whole - plain / max(1.0, self.persons), 0.0)
        return np.sqrt(np.maximum(1.0, (beside + squares / max(1.0, self.reach.persons)) / whole))

    def _wider_loadings(self, place: int, turned: Floats) -> Floats:
        """By what the errors of the loadings of one component are multiplied.

        To first order a loading moves by the mean of s·w, w a combination of the other scores: E s²w² ≤ reach² E w².
        On the scale of correlations, also by the mean of a combination of x² of the columns, each of at most its reach.
        """
        assert self.reach is not None, "asked of a population alone"
        values, basis = self.world[:2]
        away = values[place] - values
        inverse = np.divide(1.0, away, out=np.zeros_like(away), where=np.abs(away) > 1e-12 * values[0])
        squares = float(self.reach.along(basis[:, [place]])[0]) * ((basis * inverse) ** 2 @ values)
        most = np.sqrt(squares)
        if self.correlation:
            pulls = (basis * inverse * (values + values[place]) / 2) @ basis.T * basis[:, place]
            most = most + np.abs(pulls) @ self.reach.columns
        noise = (self._along[:_TRIED, 1 + place, 1:] * inverse @ basis.T).std(axis=0) / self._divisor(
            self.count
        )
        whole = turned.std(axis=0)
        plain = np.sqrt(np.maximum(whole**2 - noise**2, 0.0))
        most = np.maximum(most / math.sqrt(max(1.0, self.reach.persons)), plain)
        return np.asarray(np.hypot(np.minimum(noise, whole), most) / np.maximum(whole, 1e-300))

    def _noise_alone(self, groups: tuple[range, ...] | list[range]) -> Floats:
        """Standard deviations of what noise adds to the sums of groups, to first order."""
        own = np.diagonal(self._along[:_TRIED, 1:, 1:], axis1=1, axis2=2)
        return np.array([own[:, list(group)].sum(axis=1).std() for group in groups]) / self._divisor(
            self.count
        )

    @cached_property
    def _other_worlds(self) -> list[Drawn]:
        """Worlds that pass for the one released.

        In them the eigenvalues of a group are equal, or equal in two parts, or as far apart as those released, or so
        far that none moves another. The noise raises the first of equal eigenvalues most, wherever it stands, lowers
        the last, and moves none of those far apart.
        """
        raw, draws = self.raw[0], max(100, len(self.noise) // 2)
        equal = [
            np.maximum(descending(_pooled(self.world.values, parts)), 0.0)
            for parts in _partitions(raw, self.groups)
        ]
        worlds = [*equal, np.maximum(raw, 0.0)]
        return [*(self._drawn(values, draws, turned=False) for values in worlds), self._far_apart]

    @cached_property
    def _far_apart(self) -> Drawn:
        """What is released where each direction is taken by itself: the variances along those of the matrix."""
        truth, basis, spreads = self._in_directions
        own = np.concatenate([np.diagonal(some, axis1=1, axis2=2) for some in spreads])
        return Drawn(truth, basis, truth + own, np.zeros(0))

    @property
    def _gaps(self) -> Floats:
        """What noise and sampling put between neighbours that are equal in the world: two by two, a line a draw."""
        found = []
        for spread in self._in_directions[2]:
            own = np.diagonal(spread, axis1=1, axis2=2)
            beside = np.diagonal(spread, offset=1, axis1=1, axis2=2)
            found.append(np.hypot(own[:, :-1] - own[:, 1:], 2 * beside))
        return np.concatenate(found)

    @property
    def _doubted_ratios(self) -> Floats:
        """The logarithms of the ratios that doubt about scales puts between neighbours that are equal, but for few."""
        assert self.scales is not None, "asked where scales are in doubt"
        basis, logs = self.raw[1], 2 * np.log(self.scales)
        own, beside = logs @ basis**2, logs @ (basis[:, :-1] * basis[:, 1:])
        return np.asarray(np.quantile(np.hypot(np.diff(own), 2 * beside), TOLD_APART, axis=0))

    @property
    def _in_directions(self) -> tuple[Floats, Floats, Iterator[Floats]]:
        """Spectrum and directions of the matrix, and what noise and sampling add in them, some draws at a time."""
        truth, basis, released = self._as_scaled._released(np.maximum(self.raw[0], 0.0), len(self.noise))
        turned = (basis.T @ some @ basis for some in released) if self.correlation else released
        return truth, basis, (some - np.diag(truth) for some in turned)

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
            if self.scales is not None:
                across = basis.T @ (self.scales[some, :, None] * basis)
                sums = across @ sums @ across  # symmetric: Bᵀ D B
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


def _pooled(values: Floats, groups: Sequence[range]) -> Floats:
    """Each value in the mean of its group; the groups are all there are, in order."""
    return np.concatenate([np.full(len(group), values[group].mean()) for group in groups])


def _partitions(values: Floats, groups: Sequence[range]) -> Iterator[list[range]]:
    """The groups whole, and then each in two parts: everywhere if it is small, and at its widest gaps if not.

    >>> [[list(part) for part in parts] for parts in _partitions(np.array([9.0, 8.0, 3.0]), [range(3)])]
    [[[0, 1, 2]], [[0, 1], [2]], [[0], [1, 2]]]
    """
    yield list(groups)
    places = []
    for group in groups:
        gaps = np.argsort(np.diff(values[group]), kind="stable")  # the widest is the most negative
        places.append((group.start + 1 + gaps[: len(gaps) if len(group) <= _SMALL else _WIDEST]).tolist())
    for turn in range(max(len(where) for where in places)):
        cuts = sorted(
            {*(group.start for group in groups), *(where[turn] for where in places if turn < len(where))}
        )
        yield [range(low, high) for low, high in pairwise([*cuts, groups[-1].stop])]


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
