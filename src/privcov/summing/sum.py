"""Bound and add: the rows of a table become their exact Gram matrix, fragment by fragment, on any engine.

One kernel serves every engine: a fragment is read in blocks, a block becomes whole-number rows, rows are added to
a partial sum, Freivalds' check confirms it, and it travels to the process that merges. Proof:
docs/proofs/exact-gram.md.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from privcov.errors import InternalError
from privcov.linalg.devices import CPU, Device
from privcov.schema import Schema
from privcov.schema.grid import BLOCK_ROWS, Grid
from privcov.summing.bounding import Bounding
from privcov.summing.check import Check, check_arithmetic
from privcov.summing.engines import AnyFragment, Engine, Local, Progress, Report, Result, gather
from privcov.summing.gpu.sum import DeviceSum
from privcov.summing.gram import Gram
from privcov.summing.wire import decode_sensitive_sum, encode_sensitive_sum
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
