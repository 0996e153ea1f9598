"""Parquet files, streamed a batch at a time; only the declared columns are decoded."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Never

import pyarrow as pa
import pyarrow.parquet as pq

from privcov.errors import InputError
from privcov.schema import Schema
from privcov.schema.names import canonical
from privcov.table.arrow import batch_blocks, check_columns
from privcov.table.base import Table, block_rows
from privcov.table.blocks import Block
from privcov.table.cells import is_number, is_text
from privcov.table.fragments import Piece
from privcov.table.moments import is_moment
from privcov.table.sources import changed, regular_file

_MANY_ROWS = 10**8
_ROWS_PER_BYTE = 100
_BUFFER = 2**16


class ParquetTable(Table):
    """One file, or some of its row groups. It is opened to be checked, and again to be read."""

    def __init__(self, path: Path, schema: Schema, piece: Piece | None = None) -> None:
        self._path = path
        self._size = regular_file(path).st_size
        with _open(path, schema) as file:
            metadata, _ = _checked(file, path, self._size, schema)
            every = range(metadata.num_row_groups)
            self._groups = every if piece is None else range(piece.start, piece.stop)
            if piece is not None and (self._size != piece.size or piece.stop > len(every)):
                changed(path)
            self._rows = [metadata.row_group(group).num_rows for group in self._groups]
        super().__init__(schema, sum(self._rows))
        if piece is not None and piece.rows != self.known_rows:
            changed(path)
        self._share = self._size / max(1, len(every))

    def _blocks(self) -> Iterator[Block]:
        self.bytes_done = self._handed = 0
        self._check_size()
        with _open(self._path, self.schema) as file:
            _, names = _checked(file, self._path, self._size, self.schema)
            for done, group in enumerate(self._groups, 1):
                batches = file.iter_batches(
                    block_rows(self.schema), row_groups=[group], columns=names, use_threads=False
                )
                while (batch := self._next(batches)) is not None:
                    self._handed += batch.num_rows
                    places = [batch.schema.get_field_index(name) for name in names]
                    yield from batch_blocks(batch, places, self.schema)
                self.bytes_done = int(done * self._share)
        self._check_size()
        if self._handed != self.known_rows:
            _damaged(self._path)

    def _check_size(self) -> None:
        if regular_file(self._path).st_size != self._size:
            changed(self._path)

    def _next(self, batches: Iterator[Any]) -> Any:
        try:
            return next(batches, None)
        except (pa.ArrowException, OSError):
            _damaged(self._path)

    def pieces(self) -> Sequence[Piece]:
        ends = [int(done * self._share) for done in range(len(self._groups) + 1)]
        return [
            Piece(
                path=os.path.abspath(self._path),
                size=self._size,
                start=group,
                stop=group + 1,
                bytes=ends[place + 1] - ends[place],
                rows=self._rows[place],
            )
            for place, group in enumerate(self._groups)
        ]


def _open(path: Path, schema: Schema) -> Any:
    """The file with its text columns left as dictionaries: a long text repeated often stays one text.

    A column that was written as dictionaries is always asked for as such. Else Arrow puts its places into the type that
    they had, which may be too narrow for all the texts of a row group: one more of them would end the reading.
    """
    try:
        with pq.ParquetFile(os.fspath(path)) as file:
            kinds = {field.name: field.type for field in file.schema_arrow}
        wanted = {column.name for column in schema.read_columns}  # an id is seldom repeated
        return pq.ParquetFile(
            os.fspath(path),
            read_dictionary=[
                name
                for name, kind in kinds.items()
                if pa.types.is_dictionary(kind) or (is_text(kind) and canonical(name) in wanted)
            ],
            buffer_size=_BUFFER,
            pre_buffer=False,
        )
    except (pa.ArrowException, OSError, ValueError):
        _damaged(path)


def _checked(file: Any, path: Path, size: int, schema: Schema) -> tuple[Any, list[str]]:
    """The metadata of a file that fits the schema, and what the file calls the declared columns."""
    try:
        metadata, found = file.metadata, file.schema_arrow
    except (pa.ArrowException, OSError, ValueError):
        _damaged(path)
    if metadata.num_rows > max(_MANY_ROWS, _ROWS_PER_BYTE * size):
        raise InputError(
            "E114",
            f"{path.name} claims far more rows than a file of its size can hold.",
            "Write it again without extreme compression if it is genuine.",
        )
    places = check_columns(found, schema, path.name)
    return metadata, [found.names[place] for place in places]


def read_kinds(path: Path) -> list[tuple[str, str]]:
    """Every column's name, and whether its type is ``numeric``, ``date`` or ``text``; from metadata alone."""
    regular_file(path)
    try:
        with pq.ParquetFile(os.fspath(path)) as file:
            return [(field.name, _kind(field.type)) for field in file.schema_arrow]
    except (pa.ArrowException, OSError, ValueError):
        _damaged(path)


def _kind(kind: pa.DataType) -> str:
    return "numeric" if is_number(kind) else "date" if is_moment(kind) else "text"


def _damaged(path: Path) -> Never:
    raise InputError(
        "E115",
        f"{path.name} is not a Parquet file that can be read: it is truncated, encrypted or something else.",
        "Write it again.",
    ) from None
