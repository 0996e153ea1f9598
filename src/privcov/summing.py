"""Bound and add: the rows of a table become their exact Gram matrix, in cache-sized blocks."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

from privcov.bounding import Bounding
from privcov.gram import Gram
from privcov.grid import BLOCK_ROWS, Grid
from privcov.schema import Schema
from privcov.table import Table

Progress = Callable[[int, int | None], object]
"""Called with the rows summed so far, and the bytes read so far where a file tells."""

_MOST_ROWS, _MOST_CELLS = BLOCK_ROWS // 2, 2**22
"""Blocks that fit a core's cache for few columns, and stay small in memory for many."""


def sum_rows(
    table: Table, schema: Schema, grid: Grid, *, progress: Progress | None = None, threads: int = 1
) -> Gram:
    """The exact Gram matrix of every row of the table, bounded.

    The result is the same integers for every number of threads and every order of rows.
    """
    bounding = Bounding.of(schema, grid)
    if threads < 2:
        return _sum(table, bounding, progress)
    parts = table.split(threads)
    reports: list[Progress | None] = [None] * len(parts)
    if progress is not None:
        shared = _Shared(progress)
        reports = [shared.part() for _ in parts]
    with ThreadPoolExecutor(len(parts)) as pool:
        sums = list(pool.map(_sum, parts, [bounding] * len(parts), reports))
    total = Gram(grid)
    for partial in sums:
        total.merge(partial)
    table.rows = total.rows
    return total


def _sum(table: Table, bounding: Bounding, progress: Progress | None) -> Gram:
    gram = Gram(bounding.grid)
    step = max(1_024, min(_MOST_ROWS, _MOST_CELLS // bounding.grid.dimension))
    for block in table.blocks():
        for start in range(0, len(block[0]), step):
            gram.add(bounding.rows([cells[start : start + step] for cells in block]))
        if progress is not None:
            progress(table.rows, table.bytes_done)
    return gram


class _Shared:
    """One progress callback fed by several threads, each of which knows only its own part."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._lock = Lock()
        self._parts: list[tuple[int, int | None]] = []

    def part(self) -> Progress:
        place = len(self._parts)
        self._parts.append((0, 0))

        def report(rows: int, bytes_done: int | None) -> None:
            with self._lock:
                self._parts[place] = (rows, bytes_done)
                read = [part[1] for part in self._parts]
                known = [amount for amount in read if amount is not None]
                self._progress(
                    sum(part[0] for part in self._parts), sum(known) if len(known) == len(read) else None
                )

        return report
