"""Rows gathered by person: what one person adds to a table is bounded, whatever the table holds.

A schema that names a person's id (``person``) keeps at most ``max_rows_per_person`` rows of each, or makes one row of
them (``per_person``). What is kept or made of a person's rows is a function of those rows alone: not of anybody else's,
not of their places in a file, not of how many rows there are. Rows are put in order by a fixed public hash of the id
and of the cells as they were read, and the first ones are kept. Ids are compared byte by byte. A row without an id is
nobody's, and is dropped. Proof: docs/proofs/persons.md.

Tables of any size: what does not fit some megabytes goes by a hash of the id into 256 parts of one temporary file
that has no name, so that nothing is left of it however the process ends; the parts are then gathered one by one.

>>> order = row_order(id_hashes(pa.array([b"ada", b"ada"], pa.large_binary())), np.array([[1.0, 2.0]]))
>>> bool(order[0] != order[1])
True
"""

from __future__ import annotations

import hashlib
import math
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privcov.errors import InternalError
from privcov.linalg.arrays import Floats
from privcov.schema import Numeric, Schema
from privcov.table.base import Table, block_rows
from privcov.table.blocks import Block
from privcov.table.fragments import Piece

IN_MEMORY = 2**26
"""Bytes of rows that are held before they go to the temporary file, and that are gathered at once."""
_PARTS = 256
_BITS = 36
"""Of a cell within its bounds, when cells are added: sums of 2^27 of them are whole numbers that int64 holds."""
_MISSING = -2.0
"""A level that is missing, where NaN could not be compared."""
_KEY = np.uint64(int.from_bytes(hashlib.blake2b(b"privcov/persons/1", digest_size=8).digest(), "little"))

Words = NDArray[np.uint64]
Whole = NDArray[np.int64]


class Rows(NamedTuple):
    """Some rows that have an id: whose they are, their order, and their cells, a row of the matrix for each column."""

    ids: pa.Array
    order: Words
    cells: Floats

    @classmethod
    def of(cls, block: Block) -> Rows:
        """The rows of a reader's block that have an id; every way to say that a number is missing becomes one."""
        *columns, ids = block
        if isinstance(ids, np.ndarray):  # lines that are no records: all their cells are missing
            columns, ids = [column[:0] for column in columns], pa.array([], pa.large_binary())
        cells = np.array(columns, dtype=np.float64)
        if ids.null_count:
            there = np.asarray(ids.is_valid().to_numpy(zero_copy_only=False))
            ids, cells = ids.filter(pa.array(there)), cells[:, there]
        cells = np.where(np.isfinite(cells), cells + 0.0, np.nan)  # and -0 becomes 0
        return cls(ids, row_order(id_hashes(ids), cells), cells)

    @classmethod
    def joined(cls, several: Sequence[Rows]) -> Rows:
        ids, order, cells = zip(*several, strict=True)
        return cls(pa.concat_arrays(ids), np.concatenate(order), np.concatenate(cells, axis=1))

    @classmethod
    def of_bytes(cls, data: bytes | bytearray, *, rows: int, columns: int) -> Rows:
        """So many rows of so many columns again, from the bytes of their ``pieces``, one after the other."""
        cells, starts = rows * columns, np.zeros(rows + 1, np.int64)
        np.cumsum(np.frombuffer(data, np.int64, rows, 8 * (cells + rows)), out=starts[1:])
        if len(data) != 8 * (cells + 2 * rows) + starts[-1]:
            raise InternalError
        buffers = [None, pa.py_buffer(starts), pa.py_buffer(data[8 * (cells + 2 * rows) :])]
        return cls(
            pa.Array.from_buffers(pa.large_binary(), rows, buffers),
            np.frombuffer(data, np.uint64, rows, 8 * cells),
            np.frombuffer(data, np.float64, cells).reshape(columns, rows),
        )

    @property
    def pieces(self) -> tuple[NDArray[np.generic], ...]:
        """Cells, order, and the lengths and bytes of ids: what a part of them is written or sent as."""
        starts, text = _texts(self.ids)
        made = (self.cells, self.order, np.diff(starts), text[: starts[-1]])
        return tuple(np.ascontiguousarray(piece) for piece in made)

    @property
    def bytes(self) -> int:
        return int(self.cells.nbytes + self.order.nbytes + self.ids.nbytes)

    def at(self, places: NDArray[np.intp]) -> Rows:
        return Rows(self.ids.take(pa.array(places)), self.order[places], self.cells[:, places])

    def divided(self, part: Words, parts: int) -> Iterator[tuple[int, Rows]]:
        """Those of each part that has any, given in which part each row is."""
        places = np.argsort(part, kind="stable")
        rows, edges = self.at(places), np.searchsorted(part[places], np.arange(parts + 1))
        for place in np.flatnonzero(np.diff(edges)):
            here = slice(edges[place], edges[place + 1])
            yield int(place), Rows(rows.ids[here], rows.order[here], rows.cells[:, here])


def id_hashes(ids: pa.Array) -> Words:
    """A hash of every id. It decides in which part of a file rows wait, and in which order; persons are told by ids."""
    starts, data = _texts(ids)
    words = np.ndarray(len(data) - 7, "<u8", buffer=data, strides=(1,))
    lengths, starts = np.diff(starts), starts[:-1]
    hashes, active, at = mixed(_KEY ^ lengths.astype(np.uint64)), np.flatnonzero(lengths), 0
    while len(active):
        left = np.minimum(lengths[active] - at, 8).astype(np.uint64)
        word = words[starts[active] + at] & (~np.uint64(0) >> (np.uint64(64) - np.uint64(8) * left))
        hashes[active] = mixed(hashes[active] ^ word)
        at += 8
        active = active[lengths[active] > at]
    return hashes


def row_order(hashes: Words, cells: Floats) -> Words:
    """By what the rows of one person are put in order: a hash of the id and of every cell."""
    order = hashes
    for column in cells:
        order = mixed(order ^ np.ascontiguousarray(column).view(np.uint64))
    return order


def _texts(ids: pa.Array) -> tuple[Whole, NDArray[np.uint8]]:
    """Where each id begins and the last one ends, and the bytes of all, with a word of zeros behind."""
    if not len(ids):
        return np.zeros(1, np.int64), np.zeros(8, np.uint8)
    _, offsets, data = ids.buffers()
    starts = np.frombuffer(offsets, np.int64)[ids.offset : ids.offset + len(ids) + 1]
    text = np.frombuffer(data, np.uint8)[starts[0] : starts[-1]] if data else np.zeros(0, np.uint8)
    return starts - starts[0], np.concatenate([text, np.zeros(8, np.uint8)])


def mixed(words: Words) -> Words:
    """Each word mixed by a fixed permutation of all words, in which every bit depends on every other."""
    with np.errstate(over="ignore"):
        words = words + np.uint64(0x9E3779B97F4A7C15)
        words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


class PersonTable(Table):
    """The rows of another table, gathered by person. All of it is read before the first row is handed out.

    What is gathered are the cells of the table; derived columns are computed of what is kept or made.
    """

    coded = False  # the reader took them out, and the mean of a person may be such a number

    def __init__(self, table: Table, schema: Schema) -> None:
        super().__init__(schema)
        self._table = table

    @property
    def total_bytes(self) -> int | None:
        return self._table.total_bytes

    def records(self) -> Sequence[Piece] | None:
        """The runs of files that hold the records; none of them need have all of a person's."""
        return self._table.pieces()

    def _blocks(self) -> Iterator[Block]:
        step = block_rows(self.schema)
        with Waiting() as waiting:
            for rows in self._read():
                waiting.add(rows)
            for part in waiting.parts():
                gathered: Kept | Made = (
                    Kept(self.schema) if self.schema.per_person is None else Made(self.schema)
                )
                for rows in part:
                    gathered.add(rows)
                cells = gathered.cells()
                for start in range(0, cells.shape[1], step):
                    yield cells[:, start : start + step]

    def _read(self) -> Iterator[Rows]:
        for block in self._table.read_blocks():
            yield Rows.of(block)
            self.bytes_done = self._table.bytes_done


class Kept:
    """At most so many rows of each person: those that come first in their order."""

    def __init__(self, schema: Schema) -> None:
        self._most = schema.max_rows_per_person
        self._rows: Rows | None = None

    @classmethod
    def of(cls, rows: Rows, schema: Schema) -> Rows:
        """Those of some rows that may be kept, whatever others there are elsewhere."""
        kept = cls(schema)
        kept.add(rows)
        return rows if kept._rows is None else kept._rows

    def add(self, rows: Rows) -> None:
        """More rows of the same persons, or of others. How rows are split over calls changes nothing."""
        rows = rows if self._rows is None else Rows.joined([self._rows, rows])
        persons = _persons(rows.ids)
        places = _in_order(persons, rows)
        starts = _starts(persons[places])
        rank = np.arange(len(places)) - np.repeat(starts, np.diff(starts, append=len(places)))
        self._rows = rows.at(places[rank < self._most])

    def cells(self) -> Floats:
        return np.zeros((1, 0)) if self._rows is None else self._rows.cells


class Made:
    """One row of each person: of numeric cells the mean or the sum, of levels the most frequent.

    A numeric cell is moved into its bounds and put on a grid of 2^-36 of their reach, so that cells are added as whole
    numbers, in any order. For a sum the grid is about zero, and a cell's magnitude is at most that of the larger bound:
    the bounds are those of the sum. Missing cells do not count. Among levels that are equally frequent the one
    declared first is taken, and "no declared level" last.
    """

    def __init__(self, schema: Schema) -> None:
        self._mean = schema.per_person == "mean"
        columns = schema.read_columns
        self._numeric = [i for i, column in enumerate(columns) if isinstance(column, Numeric)]
        self._levels = [i for i in range(len(columns)) if i not in set(self._numeric)]
        bounds = [(c.lower, c.upper) for c in columns if isinstance(c, Numeric)]
        reach = [(u / 2 - a / 2) if self._mean else max(abs(a), abs(u)) for a, u in bounds]
        middle = [(u / 2 + a / 2) if self._mean else 0.0 for a, u in bounds]
        unit = [math.ldexp(1.0, max(math.frexp(most)[1] - _BITS, -1074)) for most in reach]
        self._middle, self._reach, self._unit = (_column(values) for values in (middle, reach, unit))
        self._ids: pa.Array | None = None
        self._codes: Floats
        """Levels, a row for each categorical column."""
        self._counts: Whole
        """How many rows; then for each numeric column the sum, and how many cells it is of."""

    def add(self, rows: Rows) -> None:
        """More rows of the same persons, or of others. How rows are split over calls changes nothing."""
        ids, codes, counts = rows.ids, rows.cells[self._levels], self._counted(rows.cells[self._numeric])
        codes = np.where(np.isnan(codes), _MISSING, codes)
        if self._ids is not None:
            ids = pa.concat_arrays([self._ids, ids])
            codes = np.concatenate([self._codes, codes], axis=1)
            counts = np.concatenate([self._counts, counts], axis=1)
        keys = [_persons(ids), *codes]
        places = np.lexsort(keys[::-1])
        starts = _starts(*(key[places] for key in keys))
        first = places[starts]
        self._ids, self._codes = ids.take(pa.array(first)), codes[:, first]
        self._counts = np.add.reduceat(counts[:, places], starts, axis=1) if len(starts) else counts

    def cells(self) -> Floats:
        if self._ids is None:
            return np.zeros((1, 0))
        persons = _persons(self._ids)
        places = np.argsort(persons, kind="stable")
        starts = _starts(persons[places])
        made = np.empty((len(self._numeric) + len(self._levels), len(starts)))
        totals = np.add.reduceat(self._counts[:, places], starts, axis=1) if len(starts) else self._counts
        sums, cells = np.split(totals[1:], 2)
        with np.errstate(all="ignore"):  # none of a person's cells may be there: missing
            middles = sums / (cells if self._mean else cells > 0) * self._unit + self._middle
        made[self._numeric] = np.where(cells > 0, middles, np.nan)
        for place, codes in zip(self._levels, self._codes, strict=True):
            made[place] = _most_frequent(persons, codes, self._counts[0], len(starts))
        return made

    def _counted(self, cells: Floats) -> Whole:
        with np.errstate(all="ignore"):
            moved = np.clip(cells - self._middle, -self._reach, self._reach) / self._unit
        there = ~np.isnan(moved)
        whole = np.rint(np.where(there, moved, 0.0)).astype(np.int64)
        return np.concatenate([np.ones((1, cells.shape[1]), np.int64), whole, there.astype(np.int64)])


def _in_order(persons: Whole, rows: Rows) -> NDArray[np.intp]:
    """Places of rows by person and by order; unlike rows of one person that have one hash, by their cells."""
    places = np.lexsort((rows.order, persons))
    first, second = places[:-1], places[1:]
    same = (persons[first] == persons[second]) & (rows.order[first] == rows.order[second])
    bits = rows.cells.view(np.uint64)
    if np.any(bits[:, first[same]] != bits[:, second[same]]):  # by chance in one pair of 2^64
        places = np.lexsort((*bits, rows.order, persons))
    return places


def _column(values: Sequence[float]) -> Floats:
    return np.array(values, dtype=np.float64)[:, None]


def _most_frequent(persons: Whole, codes: Floats, times: Whole, count: int) -> Floats:
    """The level that each of ``count`` persons has most often; NaN where none is stated."""
    found = np.full(count, np.nan)
    stated = codes != _MISSING
    persons, codes, times = persons[stated], codes[stated], times[stated]
    if len(persons):
        places = np.lexsort((codes, persons))
        starts = _starts(persons[places], codes[places])
        times = np.add.reduceat(times[places], starts)
        persons, codes = persons[places][starts], codes[places][starts]
        places = np.lexsort((np.where(codes < 0, np.inf, codes), -times, persons))
        best = places[_starts(persons[places])]
        found[persons[best]] = codes[best]
    return found


def _persons(ids: pa.Array) -> Whole:
    """A number for each different id, by comparing the ids themselves."""
    return np.asarray(ids.dictionary_encode().indices.to_numpy(zero_copy_only=False)).astype(np.int64)


def _starts(*keys: NDArray[np.generic]) -> NDArray[np.intp]:
    """Where a run of equal keys begins, in sorted keys."""
    new = np.ones(len(keys[0]), dtype=bool)
    new[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    return np.flatnonzero(new)


class _Extent(NamedTuple):
    """A run of rows in the file."""

    at: int
    rows: int
    bytes: int


class Waiting:
    """Rows that wait until all of a table was read: in memory, and beyond that in a file that has no name."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._file: BinaryIO | None = None
        self._held: list[Rows] = []
        self._bytes, self._end, self._columns = 0, 0, 0
        self._extents: list[list[_Extent]] = [[] for _ in range(_PARTS)]

    def __enter__(self) -> Waiting:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def add(self, rows: Rows) -> None:
        self._held.append(rows)
        self._bytes += rows.bytes
        if self._bytes > IN_MEMORY:
            self._write()

    def parts(self) -> Iterator[Iterator[Rows]]:
        """The rows again, all of a person in one part, and each part in runs of some megabytes."""
        if self._file is None:
            yield iter([Rows.joined(self._held)] if self._held else [])
            return
        self._write()
        for extents in filter(None, self._extents):
            yield self._read(extents)

    def _write(self) -> None:
        if not self._held:
            return
        rows = Rows.joined(self._held)
        self._held, self._bytes, self._columns = [], 0, len(rows.cells)
        try:
            if self._file is None:
                made = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  (closed with the rest, in any case)
                self._file = self._open.enter_context(made)
            for place, own in rows.divided(id_hashes(rows.ids) % np.uint64(_PARTS), _PARTS):
                begin = self._end
                for piece in own.pieces:
                    _write_all(self._file, piece)
                    self._end += piece.nbytes
                self._extents[place].append(_Extent(begin, len(own.order), self._end - begin))
        except OSError:
            raise InternalError from None

    def _read(self, extents: Sequence[_Extent]) -> Iterator[Rows]:
        run: list[Rows] = []
        for extent in extents:
            run.append(self._read_one(extent))
            if sum(rows.bytes for rows in run) > IN_MEMORY:
                yield Rows.joined(run)
                run = []
        if run:
            yield Rows.joined(run)

    def _read_one(self, extent: _Extent) -> Rows:
        assert self._file is not None
        try:
            self._file.seek(extent.at)
            data = self._file.read(extent.bytes)
        except OSError:
            raise InternalError from None
        if len(data) != extent.bytes:
            raise InternalError
        return Rows.of_bytes(data, rows=extent.rows, columns=self._columns)


def _write_all(file: BinaryIO, piece: NDArray[np.generic]) -> None:
    """All bytes of a piece: an unbuffered file may take fewer at a time."""
    left = piece.data.cast("B")
    while left:
        left = left[file.write(left) :]
