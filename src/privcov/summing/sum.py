"""Bound and add: the rows of a table become their exact Gram matrix, fragment by fragment, on any engine.

One kernel serves every engine: a fragment is read in blocks, a block becomes whole-number rows, rows are added to
a partial sum, Freivalds' check confirms it, and it travels to the process that merges. Proof:
docs/proofs/exact-gram.md.

A partial sum on its way from a worker to the process that merges: the one form in which a Gram matrix travels.

The bytes hold exact sums over people, as sensitive as the rows. They go between processes of one cluster, which is
inside the trust boundary with the files it reads (docs/explain/cluster.md), and nowhere else: nothing writes them
to a disk, prints them or logs them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from threading import local
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcov.errors import InternalError
from privcov.linalg.arrays import Floats
from privcov.linalg.devices import CPU, Device
from privcov.schema import Categorical, Schema
from privcov.schema.grid import BLOCK_ROWS, Grid
from privcov.schema.strata import Strata
from privcov.summing.bounding import Bounding
from privcov.summing.check import Check, check_arithmetic
from privcov.summing.engines import AnyFragment, Engine, Local, Progress, Report, Result, gather
from privcov.summing.gpu import DeviceSum
from privcov.summing.gram import Gram, Stack, Sums
from privcov.table import Table
from privcov.table.blocks import Block, Coded, Codes, floats_of, height, taken

_MOST_ROWS, _MOST_CELLS = BLOCK_ROWS, 2**22
"""Blocks that fit a core's cache for few columns, and stay small in memory for many."""
_STRATA_ROWS, _STRATA_CELLS = 2**15, 2**17
"""The same for rows that stand stratum by stratum: as each is multiplied with the others of its stratum alone, products
are short, and a longer block has fewer of them. It ends in a core's second cache."""
_PLACED = 2**14
"""Rows whose stratum is found at once: what comes in between stays near the core."""


def sum_rows(
    table: Table,
    schema: Schema,
    grid: Grid,
    *,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> Gram:
    """The exact Gram matrix of every row of the table, bounded.

    The result is the same integers for every engine, every number of workers and every order of rows.
    """
    (gram,) = _summed(table, schema, grid, None, engine=engine, progress=progress)
    return gram


@dataclass(frozen=True, kw_only=True)
class Split:
    """How the rows of a table fall into strata: by a few cells of the row itself, and by no other row."""

    strata: Strata
    whole: Schema
    """Of the table: the columns that are summed, and those that make the strata."""

    @property
    def count(self) -> int:
        """How many sums there are: one a stratum, and one of rows that are in none."""
        return len(self.strata.names) + (self.strata.other is None)

    def ordered(self, block: Block, room: Floats) -> tuple[Block, NDArray[np.intp]]:
        """The columns that are summed, rows by stratum and then as they came; and where each stratum ends."""
        found = self.places(block)
        order = np.argsort(found, kind="stable")  # of whole numbers of 8 or 16 bits: counted, not compared
        every = np.arange(self.count, dtype=found.dtype)
        by = {place for place, _ in self._columns}
        kept = [place for place in range(len(self.whole.columns)) if place not in by]
        return taken(block, kept, order, room=room), found.searchsorted(every, side="right", sorter=order)

    def places(self, block: Block) -> NDArray[Any]:
        """The stratum of each row."""
        found = np.empty(height(block), dtype=np.min_scalar_type(self.count))
        for start in range(0, len(found), _PLACED):
            some = slice(start, start + _PLACED)
            codes: Any = None
            for place, column in self._columns:
                cells = self._levels(column, _some_cells(block, place, some))
                codes = cells if codes is None else codes * len(column.levels) + cells
            found[some] = codes if _all_known(codes) else np.where(codes >= 0, codes, self.count - 1)
        return found

    def _levels(self, column: Categorical, cells: Floats | Codes) -> Floats | Codes:
        """The level of each cell, after what the schema says of cells without one; NaN where it says nothing."""
        if _all_known(cells):
            return cells
        if column.otherwise is not None:
            cells = np.where(cells < 0, column.levels.index(column.otherwise), cells)
        if (fill := self.whole.filled(column)) is not None:
            cells = np.where(np.isfinite(cells), cells, column.levels.index(fill))
        return np.where(cells >= 0, cells, np.nan)

    @cached_property
    def _columns(self) -> tuple[tuple[int, Categorical], ...]:
        """The columns that make the strata, each with its place in a block."""
        places = {column.name: place for place, column in enumerate(self.whole.columns)}
        return tuple((places[column.name], column) for column in self.strata.by)


def _some_cells(block: Block, place: int, some: slice) -> Floats | Codes:
    """The cells of a column in some rows; codes stay as they lie where each is a level's place."""
    if not isinstance(block, Coded) or place not in block.codes:
        return block[place][some]
    codes = block.codes[place][some]
    return codes if _all_known(codes) else floats_of(codes)


def _all_known(cells: Floats | Codes) -> bool:
    """Whether each is a level's place; one that is missing is NaN, and so is the least of them then."""
    return bool(cells.min(initial=0) >= 0)


def sum_strata(
    table: Table,
    schema: Schema,
    grid: Grid,
    *,
    split: Split,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> tuple[Gram, ...]:
    """The exact Gram matrix of each stratum, in one pass; without a stratum for all others, the last is of those.

    Each is the same integers as ``sum_rows`` of the rows of that stratum alone.
    """
    return _summed(table, schema, grid, split, engine=engine, progress=progress)


def _summed(
    table: Table,
    schema: Schema,
    grid: Grid,
    split: Split | None,
    *,
    engine: Engine | None,
    progress: Progress | None,
) -> tuple[Gram, ...]:
    runner = Local() if engine is None else engine
    facts: dict[str, Any] = {"schema": schema, "grid": grid, "device": runner.device, "split": split}
    here = _Here(partial(add_rows, **facts)) if runner.in_process and table.home is None else None
    count = 1 if split is None else split.count
    total: Sums | None = None
    for rows, sent in gather(table, here or partial(sum_fragment, **facts), runner, progress):
        part = here.take(sent) if here else side_by_side(decode_sensitive_sums(sent, grid, count))
        if part.rows != rows:
            raise InternalError
        if total is None:
            total = part
        else:
            total.merge(part)  # type: ignore[arg-type]  # both are of the same kind
    return tuple(Gram(grid) for _ in range(count)) if total is None else apart(total)


def add_rows(
    fragment: AnyFragment,
    *,
    schema: Schema,
    grid: Grid,
    device: Device = CPU,
    split: Split | None = None,
    report: Report | None = None,
    rooms: Rooms | None = None,
) -> Sums:
    """The partial sum of one fragment, where it is read; with a split, one for each stratum."""
    table = fragment.open(schema if split is None else split.whole)
    total: HostSum | DeviceSum = (
        HostSum(schema, grid, split, rooms) if device == CPU else DeviceSum(schema, grid, device, split)
    )
    for block in table.blocks():
        total.add(block)
        if report is not None:
            report(fragment.place, table.rows, table.bytes_done)
    sums = total.sums()
    if fragment.rows not in (None, sums.rows):
        raise InternalError()
    return sums


def sum_fragment(fragment: AnyFragment, *, report: Report | None = None, **facts: Any) -> Result:
    """The same as sensitive bytes, for another process, which merges them and never stores them."""
    sums = add_rows(fragment, report=report, **facts)
    return sums.rows, encode_sensitive_sums(apart(sums))


class Rooms(local):
    """Memory of one thread that one block after another is worked on in, also those of other fragments.

    Fresh memory costs as much as the work: the system hands out, and clears, each of its pages.
    """

    def __init__(self) -> None:
        self._rooms: dict[str, Floats] = {}

    def of(self, name: str, size: int) -> Floats:
        """So many numbers, of no value."""
        if name not in self._rooms or self._rooms[name].size < size:
            self._rooms[name] = np.empty(size)
        return self._rooms[name][:size]


class _Here:
    """Partial sums that need not travel: what is handed on is the place at which they lie ready."""

    def __init__(self, add: Callable[..., Sums]) -> None:
        self._add = add
        self._ready: dict[int, Sums] = {}
        self._rooms = Rooms()

    def __call__(self, fragment: AnyFragment, /, *, report: Report | None = None) -> Result:
        sums = self._add(fragment, report=report, rooms=self._rooms)
        self._ready[fragment.place] = sums
        return sums.rows, str(fragment.place).encode("ascii")

    def take(self, sent: bytes) -> Sums:
        return self._ready.pop(int(sent))


class HostSum:
    """Bounded rows and their Gram matrix in NumPy, or one a stratum; ``DeviceSum`` is the same on a GPU."""

    def __init__(
        self, schema: Schema, grid: Grid, split: Split | None = None, rooms: Rooms | None = None
    ) -> None:
        check_arithmetic()
        self._rooms = Rooms() if rooms is None else rooms
        self._bounding, self._split = Bounding.of(schema, grid), split
        self._sums: Sums = Gram(grid) if split is None else Stack(grid, split.count)
        self._check = Check(grid.dimension)
        self._most = max(1_024, min(_MOST_ROWS, _MOST_CELLS // grid.dimension))
        if split is not None:
            self._most = max(self._most, min(_STRATA_ROWS, _STRATA_CELLS // grid.dimension))
        self._room = self._rooms.of("rows", self._most * grid.dimension)

    def add(self, block: Block) -> None:
        """Bound the rows of a block and add them, in equal parts that fit the cache, in the same memory each time."""
        count, ends = height(block), []
        if self._split is not None:
            block, found = self._split.ordered(block, self._rooms.of("gathered", len(block) * count))
            ends = found.tolist()
        step = max(1, -(-count // max(1, -(-count // self._most))))
        for start in range(0, count, step):
            rows = self._bounding.rows(block, start, start + step, room=self._room)
            if isinstance(self._sums, Gram):
                self._sums.add(rows)
            else:
                self._sums.add(rows, ends, start)
            self._check.saw(rows)

    def gram(self) -> Gram:
        """The one sum, where there are no strata."""
        (gram,) = apart(self.sums())
        return gram

    def sums(self) -> Sums:
        """The sum, or one a stratum, if Freivalds' check confirms it, or the sum of them."""
        if not self._sums.agrees_with(self._check.weights, self._check.expected):
            raise InternalError()
        return self._sums


def apart(sums: Sums) -> tuple[Gram, ...]:
    """The one sum, or those of strata, each by itself."""
    return (sums,) if isinstance(sums, Gram) else sums.grams()


def side_by_side(grams: tuple[Gram, ...]) -> Sums:
    """One sum, or those of strata, as ``add_rows`` has them."""
    return grams[0] if len(grams) == 1 else Stack.of(grams)


def pooled_sum(grams: Sequence[Gram]) -> Gram:
    """The sum of the sums of several strata; they stay as they are."""
    if len(grams) == 1:
        return grams[0]
    total = Gram(grams[0].grid)
    for gram in grams:
        total.merge(gram)
    return total


_FORMAT = "privcov/summing/wire/1"
_DIGEST_BYTES = 16
_LENGTH = 8
_WORD = np.dtype("<i8")


def encode_sensitive_sum(gram: Gram) -> bytes:
    """The exact sum as bytes: public facts, upper triangle in one or two words per entry, digest."""
    low, high, reach = gram.words_for_transport()
    facts = {
        "format": _FORMAT,
        "dimension": gram.grid.dimension,
        "exponent": gram.grid.exponent,
        "bound": gram.grid.squared_norm_bound,
        "rows": gram.rows,
        "reach": reach,
        "words": 1 if high is None else 2,
    }
    body = json.dumps(facts).encode("ascii") + b"\n" + low.astype(_WORD).tobytes()
    if high is not None:
        body += high.astype(_WORD).tobytes()
    return _digest(body) + body


def encode_sensitive_sums(grams: Sequence[Gram]) -> bytes:
    """One sum, or several one after the other, each with its length in front."""
    if len(grams) == 1:
        return encode_sensitive_sum(grams[0])
    encoded = [encode_sensitive_sum(gram) for gram in grams]
    return b"".join(len(one).to_bytes(_LENGTH, "little") + one for one in encoded)


def decode_sensitive_sums(sent: bytes, grid: Grid, count: int) -> tuple[Gram, ...]:
    """So many sums again, and nothing else."""
    if count == 1:
        return (decode_sensitive_sum(sent, grid),)
    found, at = [], 0
    for _ in range(count):
        begin = at + _LENGTH
        at = begin + int.from_bytes(sent[at:begin], "little")
        found.append(decode_sensitive_sum(sent[begin:at], grid))
    if at != len(sent):
        raise InternalError
    return tuple(found)


def decode_sensitive_sum(sent: bytes, grid: Grid) -> Gram:
    """The sum again. Bytes that were damaged on the way, belong to another grid, or are no sum of rows never are."""
    try:
        gram = _decoded(sent, grid)
    except (ValueError, TypeError, LookupError, OverflowError):
        raise InternalError from None
    if not gram.is_possible():
        raise InternalError
    return gram


def _decoded(sent: bytes, grid: Grid) -> Gram:
    digest, body = sent[:_DIGEST_BYTES], sent[_DIGEST_BYTES:]
    if digest != _digest(body):
        raise InternalError()
    line, _, words = body.partition(b"\n")
    facts = json.loads(line)
    expected = (_FORMAT, grid.dimension, grid.exponent, grid.squared_norm_bound)
    if tuple(facts[name] for name in ("format", "dimension", "exponent", "bound")) != expected:
        raise InternalError()
    if not all(type(facts[name]) is int for name in ("rows", "reach", "words")):
        raise InternalError()
    entries: NDArray[np.int64] = np.frombuffer(words, _WORD).astype(np.int64).reshape(facts["words"], -1)
    high = entries[1] if facts["words"] == 2 else None
    return Gram.from_transport(grid, entries[0], high, rows=facts["rows"], reach=facts["reach"])


def _digest(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_DIGEST_BYTES).digest()
