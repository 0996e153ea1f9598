"""Cells that stay in memory from one reading of a table to the next, as far as there is room for them.

A private frame reads a table three times and more, and decoding is half of a reading, or nearly all. What is kept is
what a file says, before any bound: the same blocks, so every sum is the same. Blocks are as sensitive as rows. A shelf
is made, filled and dropped within ``without_reasons``, so that no frame that a failure takes along knows it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from threading import Lock

import numpy as np

from privcov.linalg.arrays import Floats
from privcov.linalg.devices import free_memory
from privcov.schema import Schema
from privcov.table.base import Table
from privcov.table.blocks import Block
from privcov.table.fragments import Fragment

MOST_KEPT = 2**30
"""Bytes of cells that are kept at most."""
_BOARD = 2**20
"""Cells that are put side by side: of a few large pieces of memory, each is cheaper than of many small ones."""
_SPARED = 4
"""And no more than one part in so many of the memory that is free."""


class Shelf:
    """The blocks of fragments that were read before. Fragments that do not fit are read again each time.

    Parameters
    ----------
    room : int, optional
        How many bytes it takes. By default 1 GiB, or a quarter of the memory that is free if that is less.
    """

    def __init__(self, room: int | None = None) -> None:
        self._room = min(MOST_KEPT, free_memory() // _SPARED) if room is None else room
        self._lock = Lock()
        self.blocks: dict[Fragment, list[Block]] = {}
        """The blocks of whole fragments."""

    def board(self, cells: int) -> Floats | None:
        """Memory for so many cells and some more; None where there is no room."""
        cells = max(cells, _BOARD)
        with self._lock:
            if 8 * cells > self._room:
                return None
            self._room -= 8 * cells
        return np.empty(cells)


@dataclass(frozen=True, kw_only=True, eq=False)
class Shelved:
    """A fragment of files, read once more or taken from a shelf."""

    fragment: Fragment
    shelf: Shelf

    @property
    def place(self) -> int:
        return self.fragment.place

    @property
    def bytes(self) -> int:
        return self.fragment.bytes

    @property
    def rows(self) -> int | None:
        return self.fragment.rows

    def open(self, schema: Schema) -> Table:
        """The rows of the fragment; its files are opened all the same, and refused if they have changed."""
        return _Kept(self.fragment.open(schema), self)


class _Kept(Table):
    """A table whose blocks come from a shelf, or go there while they are read."""

    def __init__(self, table: Table, source: Shelved) -> None:
        super().__init__(table.schema, table.known_rows)
        self._table, self._source = table, source

    def _blocks(self) -> Iterator[Block]:
        shelf, fragment = self._source.shelf, self._source.fragment
        if (known := shelf.blocks.get(fragment)) is not None:
            yield from known
            return
        found: list[Block] = []
        board: Floats | None = np.empty(0)
        for block in self._table.blocks():
            shape = len(block), len(block[0])
            size = shape[0] * shape[1]
            if board is not None and len(board) < size:
                board = shelf.board(size)
            if board is not None:
                found.append(copy := board[:size].reshape(shape))
                np.concatenate(block, out=copy.reshape(-1))
                board = board[size:]
            self.bytes_done = self._table.bytes_done
            yield block
        if board is not None:
            shelf.blocks[fragment] = found

    def blocks(self) -> Iterator[Block]:
        for block in self._blocks():
            self.rows += len(block[0])
            yield block
