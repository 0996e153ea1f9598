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
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcov.errors import InternalError
from privcov.linalg.devices import CPU, Device
from privcov.schema import Schema
from privcov.schema.grid import BLOCK_ROWS, Grid
from privcov.summing.bounding import Bounding
from privcov.summing.check import Check, check_arithmetic
from privcov.summing.engines import AnyFragment, Engine, Local, Progress, Report, Result, gather
from privcov.summing.gpu import DeviceSum
from privcov.summing.gram import Gram
from privcov.table import Table
from privcov.table.blocks import Block

_MOST_ROWS, _MOST_CELLS = BLOCK_ROWS, 2**22
"""Blocks that fit a core's cache for few columns, and stay small in memory for many."""


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
    runner = Local() if engine is None else engine
    facts: dict[str, Any] = {"schema": schema, "grid": grid, "device": runner.device}
    here = _Here(partial(add_rows, **facts)) if runner.in_process and table.home is None else None
    total: Gram | None = None
    for rows, sent in gather(table, here or partial(sum_fragment, **facts), runner, progress):
        part = here.take(sent) if here else decode_sensitive_sum(sent, grid)
        if part.rows != rows:
            raise InternalError
        if total is None:
            total = part
        else:
            total.merge(part)
    return Gram(grid) if total is None else total


def add_rows(
    fragment: AnyFragment, *, schema: Schema, grid: Grid, device: Device = CPU, report: Report | None = None
) -> Gram:
    """The partial sum of one fragment, where it is read."""
    table = fragment.open(schema)
    total = HostSum(schema, grid) if device == CPU else DeviceSum(schema, grid, device)
    for block in table.blocks():
        total.add(block)
        if report is not None:
            report(fragment.place, table.rows, table.bytes_done)
    gram = total.gram()
    if fragment.rows not in (None, gram.rows):
        raise InternalError()
    return gram


def sum_fragment(fragment: AnyFragment, *, report: Report | None = None, **facts: Any) -> Result:
    """The same as sensitive bytes, for another process, which merges them and never stores them."""
    gram = add_rows(fragment, report=report, **facts)
    return gram.rows, encode_sensitive_sum(gram)


class _Here:
    """Partial sums that need not travel: what is handed on is the place at which one lies ready."""

    def __init__(self, add: Callable[..., Gram]) -> None:
        self._add = add
        self._ready: dict[int, Gram] = {}

    def __call__(self, fragment: AnyFragment, /, *, report: Report | None = None) -> Result:
        gram = self._add(fragment, report=report)
        self._ready[fragment.place] = gram
        return gram.rows, str(fragment.place).encode("ascii")

    def take(self, sent: bytes) -> Gram:
        return self._ready.pop(int(sent))


class HostSum:
    """Bounded rows and their Gram matrix in NumPy; ``DeviceSum`` is the same on a GPU."""

    def __init__(self, schema: Schema, grid: Grid) -> None:
        check_arithmetic()
        self._bounding = Bounding.of(schema, grid)
        self._gram, self._check = Gram(grid), Check(grid.dimension)
        self._most = max(1_024, min(_MOST_ROWS, _MOST_CELLS // grid.dimension))
        self._room = np.empty(self._most * grid.dimension)

    def add(self, block: Block) -> None:
        """Bound the rows of a block and add them, in equal parts that fit the cache, in the same memory each time."""
        count = len(block[0])
        step = -(-count // max(1, -(-count // self._most)))
        for start in range(0, count, max(1, step)):
            rows = self._bounding.rows(block, start, start + step, room=self._room)
            self._gram.add(rows)
            self._check.saw(rows)

    def gram(self) -> Gram:
        """The sum, if Freivalds' check confirms it."""
        if not self._gram.agrees_with(self._check.weights, self._check.expected):
            raise InternalError()
        return self._gram


_FORMAT = "privcov/summing/wire/1"
_DIGEST_BYTES = 16
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
