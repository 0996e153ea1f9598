"""Parts of a table that one worker reads by itself: runs of files, or rows held in this process.

A fragment of files names paths and places in them and holds no cell, so it may be sent to a worker anywhere
that sees the same files. Where fragments are cut changes no record: a CSV line belongs to the part in which it
begins, and a row group of Parquet is never divided.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from privcov.errors import InternalError
from privcov.schema import Schema

if TYPE_CHECKING:
    from privcov.table.base import Table

FRAGMENT_BYTES = 32 * 2**20
MOST_FRAGMENTS = 4096
"""Partial sums meet in one process, so a very large table is cut into larger fragments, not into more."""


ROWS_IN_MEMORY = 2**16


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A run of one file: from byte to byte of CSV, from row group to row group of Parquet."""

    path: str
    size: int
    """Of the whole file when it was planned; one that has another size when it is read has changed."""
    start: int
    stop: int
    bytes: int
    """About how much of the file this is."""
    rows: int | None = None
    """Where metadata tells."""


@dataclass(frozen=True, kw_only=True)
class Fragment:
    """Pieces of files, read one after the other by one worker; ``place`` is its name in the plan."""

    place: int
    pieces: tuple[Piece, ...]

    @property
    def bytes(self) -> int:
        return sum(piece.bytes for piece in self.pieces)

    @property
    def rows(self) -> int | None:
        known = [piece.rows for piece in self.pieces if piece.rows is not None]
        return sum(known) if len(known) == len(self.pieces) else None

    def open(self, schema: Schema) -> Table:
        """The rows of this fragment, read by whoever calls; refuses a file that is not what was planned."""
        return _whole(self.open_records(schema))

    def open_records(self, schema: Schema) -> Table:
        """The same, where a person's id is read with each."""
        from privcov.table.opening import open_pieces

        return open_pieces(self.pieces, schema)


@dataclass(frozen=True, kw_only=True)
class Held:
    """Rows that are in this process, or computed in it: no other process can open them."""

    place: int
    table: Table

    @property
    def bytes(self) -> int:
        return 0

    @property
    def rows(self) -> int | None:
        return self.table.known_rows

    def open(self, schema: Schema) -> Table:
        return self.table


@dataclass(frozen=True, kw_only=True)
class Arrived:
    """A partition of a table that lives in a cluster, in the worker that has it."""

    place: int
    data: Any
    bytes: int = 0
    rows: int | None = None

    def open(self, schema: Schema) -> Table:
        return _whole(self.open_records(schema))

    def open_records(self, schema: Schema) -> Table:
        from privcov.table.opening import open_partition

        return open_partition(self.data, schema)


def _whole(table: Table) -> Table:
    """A part of a table need not have all of a person's records, so none is summed where persons are told apart."""
    if table.schema.person is not None:
        raise InternalError
    return table


def slices(rows: int, schema: Schema) -> list[tuple[int, int]]:
    """Where to cut rows that are in memory: parts that are worth a partial sum of their own."""
    step = max(ROWS_IN_MEMORY, 16 * schema.summed_dimension)
    return [(start, min(rows, start + step)) for start in range(0, rows, step)]


def bundled(pieces: Iterable[Piece]) -> list[Fragment]:
    """Pieces in their order, small ones together; as many fragments as are worth having."""
    every = list(pieces)
    target = max(FRAGMENT_BYTES, sum(piece.bytes for piece in every) // MOST_FRAGMENTS)
    bundles: list[list[Piece]] = []
    room = 0
    for piece in every:
        if not bundles or piece.bytes > room:
            bundles.append([])
            room = target
        bundles[-1].append(piece)
        room -= piece.bytes
    return [Fragment(place=place, pieces=_joined(bundle)) for place, bundle in enumerate(bundles)]


def _joined(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """Neighbouring pieces of one file as one, so that the file is opened once."""
    joined: list[Piece] = []
    for piece in pieces:
        last = joined[-1] if joined else None
        if last is not None and (last.path, last.stop) == (piece.path, piece.start):
            rows = None if last.rows is None or piece.rows is None else last.rows + piece.rows
            joined[-1] = Piece(
                path=last.path,
                size=last.size,
                start=last.start,
                stop=piece.stop,
                bytes=last.bytes + piece.bytes,
                rows=rows,
            )
        else:
            joined.append(piece)
    return tuple(joined)
