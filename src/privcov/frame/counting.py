"""The rounds of a frame as sums: each row adds its counts to histograms or sums, with exact integer noise.

Four questions are asked in this way: a histogram of every numeric column (``Scales``), one of the norms of rows
(``Radius``), and the sums of the numeric columns (``Means``) and of their squared distances from a centre
(``Squares``), within bounds that are public by then. What a row counts depends on that row and on public facts alone,
and the sums are the same on every engine. Noise is drawn before a row is read. Proof: docs/proofs/frame.md.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privcov.errors import InternalError, without_reasons
from privcov.frame.terms import COUNT_STD, count_noise, cube_std, numbers_of
from privcov.linalg.arrays import Floats
from privcov.mechanisms.sensitivity import sqrt_up, sums_l2, sums_sup
from privcov.noise.exact import discrete_cube, discrete_laplace, rounded_normals
from privcov.noise.randomness import Randomness
from privcov.privacy import ZCDP, PureDP
from privcov.releases.certificate import Interval, Round
from privcov.schema import Numeric, Schema
from privcov.schema.grid import Grid
from privcov.summing.bounding import Bounding, part_of
from privcov.summing.engines import AnyFragment, Engine, Progress, Report, Result, gather
from privcov.summing.gram import Sealed
from privcov.table import open_table
from privcov.table.blocks import Block

_STEP = 8_192
_PAIRED = 16
"""The most bins of a column for which a byte holds those of two."""
Sums = NDArray[np.int64]
Paid = PureDP | ZCDP
Name = Literal["scales", "radius", "means", "squares"]


@dataclass(frozen=True, kw_only=True)
class Look(ABC):
    """A question: what each row counts, and the noise on the sums. Public.

    Parameters
    ----------
    schema : Schema
        What cells are bounded and scaled by. It has no bound on the norm of a row.
    """

    name: ClassVar[Name]
    schema: Schema

    @property
    @abstractmethod
    def cells(self) -> int:
        """How many sums come back."""

    @property
    @abstractmethod
    def most_of_a_row(self) -> int:
        """The most that one row adds to all sums together, signs aside."""

    @abstractmethod
    def noise(self, loss: Paid) -> Fraction:
        """The scale of the noise: whole for a pure loss, else the standard deviation of normal noise."""

    def std(self, loss: Paid) -> float:
        """The standard deviation of the noise on a sum."""
        return float(self.noise(loss)) * (self._pure_std if isinstance(loss, PureDP) else 1.0)

    @property
    @abstractmethod
    def _pure_std(self) -> float:
        """The standard deviation of pure noise of scale 1."""

    @abstractmethod
    def _pure(self, randomness: Randomness, scale: int) -> Sequence[int]:
        """Noise for a pure loss."""

    def draw(self, loss: Paid, randomness: Randomness) -> list[int]:
        """The noise on the sums, as exact integers."""
        scale = self.noise(loss)
        if isinstance(loss, PureDP):
            return [int(value) for value in self._pure(randomness, int(scale))]
        return [int(value) for value in rounded_normals(randomness, count=self.cells, std=scale)]

    def sums(self, bounding: Bounding, block: Block, *, room: Floats | None = None) -> Sums:
        """What the rows of a block add up to; ``room`` is memory to work in."""
        cells = bounding.plain_numbers(block, room=room)
        if cells is not None:  # nothing is missing, and no row is emptied
            return self._added(cells, None)
        return self._added(self._numbers(bounding, block, room), _absent(bounding, block))

    @abstractmethod
    def _added(self, cells: Floats, absent: Absent | None) -> Sums:
        """What numeric cells on the grid add up to, a column on each line; they may be written to."""

    def answered(self, loss: Paid, answers: tuple[int, ...]) -> Round:
        """What goes on the certificate."""
        return Round(name=self.name, loss=loss, std=self.std(loss), answers=answers)

    @cached_property
    def _numeric(self) -> list[int]:
        return list(self.schema.summed_numbers)

    def _numbers(self, bounding: Bounding, block: Block, room: Floats | None) -> Floats:
        """The numeric cells of the rows of a block, a column on each line; to be written to, and not kept."""
        by_feature, places = bounding.rows(block, room=room).T, self._numeric
        together = places == list(range(places[0], places[-1] + 1))
        return by_feature[places[0] : places[-1] + 1] if together else by_feature[places]


@dataclass(frozen=True, kw_only=True)
class _Counts(Look):
    """Counts of rows in cells."""

    _pure_std = COUNT_STD

    @property
    @abstractmethod
    def per_row(self) -> int:
        """How many histograms there are; a row is counted in at most one cell of each."""

    @property
    def most_of_a_row(self) -> int:
        return self.per_row

    def noise(self, loss: Paid) -> Fraction:
        return count_noise(loss, per_row=self.per_row, rows_per_person=self.schema.max_rows_per_person)

    def _pure(self, randomness: Randomness, scale: int) -> Sequence[int]:
        return discrete_laplace(randomness, scale=scale, count=self.cells).tolist()


@dataclass(frozen=True, kw_only=True)
class Scales(_Counts):
    """A histogram of every numeric column over its bounds.

    Parameters
    ----------
    bins : int, default 16
        How many cells each histogram has. A power of two of at most 256, so that values find their cell exactly.
    """

    name = "scales"
    bins: int = 16

    @property
    def per_row(self) -> int:
        return len(numbers_of(self.schema))

    @property
    def cells(self) -> int:
        return self.bins * self.per_row

    @cached_property
    def one(self) -> float:
        """The integer that stands for half the width of a column's bounds."""
        return float(2 ** int(Grid.of(self.schema).exponent))

    def _added(self, cells: Floats, absent: Absent | None) -> Sums:
        # A cell q of [-2^k, 2^k] is in bin ⌊(q + 2^k)·bins/2^(k+1)⌋. With k of at most 26 words of 32 bits hold it, and
        # take half the time; bins are a power of two, so a shift divides.
        shifted = cells.astype(np.int32)
        shifted += np.int32(self.one)
        shifted >>= np.int32(int(self.one).bit_length() - self.bins.bit_length() + 1)
        np.minimum(shifted, self.bins - 1, out=shifted)  # before bytes are made, which begin again at 256
        bins = shifted.astype(np.uint8)
        if absent is None and self.bins <= _PAIRED:
            return self._paired(bins)
        places = bins + self.bins * np.arange(len(bins))[:, None]
        return np.bincount(
            places.reshape(-1) if absent is None else places[absent.present], minlength=self.cells
        )

    def _paired(self, bins: NDArray[np.uint8]) -> Sums:
        """The counts of bins, a column on each line: two columns at a time, which takes half as long."""
        half, size = len(bins) // 2, self.bins
        pairs = bins[:half] * np.uint8(size)
        pairs += bins[half : 2 * half]
        places = pairs + size**2 * np.arange(half)[:, None]
        table = np.bincount(places.reshape(-1), minlength=half * size**2).reshape(half, size, size)
        odd = [np.bincount(one, minlength=size) for one in bins[2 * half :]]
        return np.concatenate([table.sum(axis=2).reshape(-1), table.sum(axis=1).reshape(-1), *odd])


@dataclass(frozen=True, kw_only=True)
class Radius(_Counts):
    """A histogram of the squared norms of the numeric columns.

    Parameters
    ----------
    edges : tuple of int
        The squared norms, in units of the grid, from which on a row counts in the next cell.
    """

    name = "radius"
    per_row = 1
    edges: tuple[int, ...]

    @property
    def cells(self) -> int:
        return len(self.edges) + 1

    def _added(self, cells: Floats, absent: Absent | None) -> Sums:
        return self._found(
            np.einsum("ij,ij->j", cells, cells)
        )  # whole numbers below 2^53: exact in any order

    def _found(self, squared: Floats) -> Sums:
        """How many rows of these squared norms are in each cell."""
        return np.bincount(np.searchsorted(self.edges, squared, side="right"), minlength=self.cells)


@dataclass(frozen=True, kw_only=True)
class Means(Look):
    """The sums of the numeric columns, each clipped to the bounds that its column has here.

    Parameters
    ----------
    fills : tuple of float
        What a missing cell of each column counts as, in its units.
    intervals : tuple of Interval
        The same bounds, and what the histograms say of what lies beyond them.
    """

    name: ClassVar[Name] = "means"
    fills: tuple[float, ...]
    intervals: tuple[Interval, ...] = ()

    @property
    def cells(self) -> int:
        return len(numbers_of(self.schema))

    @cached_property
    def one(self) -> int:
        """The integer that stands for half the width of a column's bounds: what a cell is at most."""
        return 2 ** int(Grid.of(self.schema).exponent)

    @property
    def most_of_a_row(self) -> int:
        return self.cells * self.one

    def noise(self, loss: Paid) -> Fraction:
        people = {"largest": self.one, "rows_per_person": self.schema.max_rows_per_person}
        if isinstance(loss, PureDP):
            # At least the dimension, for the sampler: never less noise, and next to none beside 2^10 for a cell.
            return Fraction(max(self.cells, math.ceil(sums_sup(loss.neighbours, **people) / loss.epsilon)))
        return sums_l2(loss.neighbours, columns=self.cells, **people) * sqrt_up(1 / (2 * loss.rho))

    @property
    def _pure_std(self) -> float:
        return cube_std(self.cells)

    def _pure(self, randomness: Randomness, scale: int) -> Sequence[int]:
        return discrete_cube(randomness, scale=scale, dimension=self.cells)

    def _added(self, cells: Floats, absent: Absent | None) -> Sums:
        if absent is not None:
            cells = np.where(absent.missing, self._filled[:, None], cells)
        cells = self._counted(cells)
        if absent is not None:
            cells[:, absent.emptied] = 0.0
        # 8,192 whole numbers of at most 2^26: exact in any order.
        return cells.sum(axis=1).astype(np.int64)

    def _counted(self, cells: Floats) -> Floats:
        """What cells add to the sums: whole numbers of at most ``one``, signs aside."""
        return cells

    @cached_property
    def _filled(self) -> Floats:
        """The fills on the grid."""
        columns = zip(self.fills, numbers_of(self.schema), strict=True)
        cells = np.array([(fill - c.middle) / (c.half_width / c.reach) for fill, c in columns])
        return np.rint(np.clip(cells, -1.0, 1.0) * self.one)

    def answered(self, loss: Paid, answers: tuple[int, ...]) -> Round:
        return replace(super().answered(loss, answers), intervals=self.intervals, unit=self.one)


@dataclass(frozen=True, kw_only=True)
class Squares(Means):
    """The sums of the squared distances of the numeric columns from a centre, each clipped to a furthest distance.

    A cell at the centre of its column counts as minus ``one``, and one at the furthest distance as ``one``: so one row
    moves a sum by as much as a row of ``Means`` does.
    """

    name = "squares"

    def _counted(self, cells: Floats) -> Floats:
        # The schema bounds cells to the distance; its last bits may not, where bounds are as far apart as doubles go.
        cells = np.clip(cells, -self.one, self.one)
        cells *= cells  # at most 2^52, and divided by a power of two: exact
        np.floor(cells / (self.one / 2), out=cells)
        cells -= self.one
        return cells


class Absent(NamedTuple):
    """What of a block is not there."""

    missing: NDArray[np.bool_]
    """Which numeric cells are missing and have no fill of their own, a column on each line."""
    emptied: NDArray[np.bool_]
    """Which rows are emptied."""

    @property
    def present(self) -> NDArray[np.bool_]:
        """The numeric cells that are there, a column on each line."""
        return ~(self.missing | self.emptied)


def _absent(bounding: Bounding, block: Block) -> Absent:
    columns = bounding.schema.columns
    missing = [~np.isfinite(block[place]) for place in range(len(columns))]
    emptied = np.zeros(len(block[0]), dtype=np.bool_)
    for place in bounding.emptying:
        emptied |= missing[place]
    none = np.zeros_like(emptied)
    own = [
        none if column.fill is not None else missing[place]
        for place, column in enumerate(columns)
        if isinstance(column, Numeric)
    ]
    return Absent(np.stack(own), emptied)


def ask(
    looks: Sequence[tuple[Look, Paid]],
    data: Any,
    *,
    schema: Schema,
    randomness: Randomness,
    engine: Engine,
    progress: Progress | None = None,
) -> tuple[tuple[Round, ...], int]:
    """Draw the noise of some questions, read the rows once, and return the noisy sums, and how many rows there are.

    The table is read by ``schema``, whatever part of the bounds a question looks into: the mean of a person's rows is
    one of cells within the declared bounds.
    """
    asked = tuple(look for look, _ in looks)
    # No name is given to the noise here: this frame may be left by an exception.
    answers, rows = without_reasons(
        partial(_answer, data, schema, asked, engine, progress),
        _Noise([look.draw(loss, randomness) for look, loss in looks]),
    )
    rounds = (look.answered(loss, one) for (look, loss), one in zip(looks, answers, strict=True))
    return tuple(rounds), rows


def sum_fragment(
    fragment: AnyFragment, *, schema: Schema, looks: tuple[Look, ...], report: Report | None = None
) -> Result:
    """The sums of one fragment, where it is read: sensitive bytes, which are added and never stored."""
    boundings, table = [Bounding.of(look.schema) for look in looks], fragment.open(schema)
    totals, rows = [np.zeros(look.cells, dtype=np.int64) for look in looks], 0
    room = np.empty(_STEP * looks[0].schema.summed_dimension)
    for block in table.blocks():
        for start in range(0, len(block[0]), _STEP):
            part = part_of(block, start, start + _STEP)
            for look, bounding, total in zip(looks, boundings, totals, strict=True):
                total += look.sums(bounding, part, room=room)
            rows += len(part[0])
        if report is not None:
            report(fragment.place, table.rows, table.bytes_done)
    return rows, json.dumps([total.tolist() for total in totals]).encode("ascii")


def _answer(
    data: Any,
    schema: Schema,
    looks: tuple[Look, ...],
    engine: Engine,
    progress: Progress | None,
    noise: _Noise,
) -> tuple[list[tuple[int, ...]], int]:
    table, totals, counted = open_table(data, schema), [[0] * look.cells for look in looks], 0
    work = partial(sum_fragment, schema=schema, looks=looks)
    for rows, sent in gather(table, work, engine, progress):
        parts = json.loads(sent)
        for look, total, part in zip(looks, totals, parts, strict=True):
            # What no rows can add up to is no sum.
            if {type(value) for value in part} != {int} or sum(map(abs, part)) > rows * look.most_of_a_row:
                raise InternalError
            if isinstance(look, _Counts) and min(part) < 0:
                raise InternalError
            total[:] = [whole + one for whole, one in zip(total, part, strict=True)]
        counted += rows
    return noise.added_to(totals), counted


@dataclass(frozen=True, repr=False, eq=False)
class _Noise(Sealed):
    """The noise of some rounds, drawn before a row is read, and gone once it was added."""

    _refusal = "the noise of a round is sensitive: with its answers it gives the sums away"

    integers: list[list[int]]

    def added_to(self, totals: list[list[int]]) -> list[tuple[int, ...]]:
        answers = [
            tuple(whole + noise for whole, noise in zip(total, drawn, strict=True))
            for total, drawn in zip(totals, self.integers, strict=True)
        ]
        self.integers.clear()
        return answers
