"""Files of lines (CSV, TSV), plain or packed: line i after the header is record i, always.

So no record can touch another: docs/decisions/0003-csv-records.md, and as a law that every reader obeys,
docs/proofs/readers.md. A line that is not a record of the header's width is a record with every cell missing: it
is neither dropped nor moved nor reported.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privcov.schema import Schema
from privcov.table import records
from privcov.table.base import Table, check_names
from privcov.table.blocks import Block
from privcov.table.files import changed
from privcov.table.fragments import FRAGMENT_BYTES, Piece
from privcov.table.headers import dialect_of, header_of, line_end_of
from privcov.table.lines import LineReader, warm_up
from privcov.table.sources import source_of

_CR_TO_LF = bytes.maketrans(b"\r\n", b"\n ")


class CsvTable(Table):
    """One file, read by the dialect of the schema; records end with LF or CRLF, or with CR where the schema says so.

    A part of a plain file, from byte to byte, has the records that begin in it. Parts that cover a file have each of
    its records once, because what begins a record (a line end before it) does not depend on anything further off.
    """

    def __init__(self, path: Path, schema: Schema, piece: Piece | None = None) -> None:
        super().__init__(schema)
        self._dialect = dialect_of(path, schema.file)
        self._source = source_of(path, self._dialect)
        size = self._source.size
        if piece is not None and piece.size != size:
            changed(path)
        self._span = (0, size) if piece is None else (piece.start, piece.stop)
        self._header = header_of(self._source, self._dialect)
        names = self._header.names
        places = check_names(names, schema, path.name)
        warm_up(self._dialect)
        self._reader = LineReader(schema, width=len(names), places=places, dialect=self._dialect)
        if piece is None:
            self._source.check()

    def _blocks(self) -> Iterator[Block]:
        for lines, too_long in self._lines():
            yield from self._reader.missing(too_long)
            if lines:
                yield from self._reader.blocks(lines)
            del lines

    def texts(self) -> Iterator[tuple[pa.RecordBatch, NDArray[np.bool_]]]:
        """The declared columns as bytes, and which lines are records: for the eyes of the data's keeper only."""
        for lines, too_long in self._lines():
            for batch, good in self._reader.texts(b"\n" * too_long + lines):
                good[:too_long], too_long = False, max(0, too_long - len(good))
                yield batch, good

    def count(self) -> int:
        found, last = 0, b"\n"
        for data in self._chunks():
            found, last = found + data.count(b"\n"), data[-1:]
            del data
        return found + (last != b"\n")

    def pieces(self) -> Sequence[Piece]:
        start, stop = self._span
        edges = [*range(start, stop, FRAGMENT_BYTES), stop] if self._source.divisible else [start, stop]
        path = os.path.abspath(self._source.path)
        return [
            Piece(path=path, size=self._source.size, start=left, stop=right, bytes=right - left)
            for left, right in pairwise(edges)
        ]

    def _lines(self) -> Iterator[tuple[bytes, int]]:
        """Whole lines that end with LF, and how many lines before them were too long to keep."""
        rest, skipping, too_long = b"", False, 0
        for data in self._chunks():
            if skipping:
                end = data.find(b"\n")
                if end < 0:
                    continue
                data, skipping = data[end + 1 :], False
            cut = data.rfind(b"\n") + 1
            if not cut:
                lines, rest = b"", rest + data
            elif rest or cut < len(data):
                lines, rest = b"".join((rest, memoryview(data)[:cut])), data[cut:]
            else:
                lines = data
            if (
                len(rest) > records.LONGEST_LINE + 1
            ):  # one more, because the last byte may be the CR of a CRLF
                rest, skipping = b"", True
            if lines:
                if self._dialect.constant:
                    lines = _without_returns(lines)
                elif b"\r" in lines:
                    lines = lines.replace(b"\r\n", b"\n").replace(b"\r", b" ")
                yield lines, too_long
                too_long = 0
            too_long += skipping
            del data, lines
        if rest:
            yield rest.replace(b"\r", b" ") + b"\n", too_long
        elif too_long:
            yield b"", too_long

    def _chunks(self) -> Iterator[bytes]:
        """The lines that begin in this part of the file, with LF for CR where CR separates records."""
        source, header, end = self._source, self._header, line_end_of(self._dialect)
        if header_of(source, self._dialect) != header:
            changed(source.path)
        start, stop = self._span
        self.bytes_done = 0
        for data in source.chunks(max(start, header.end), stop, end):
            self.bytes_done = min(source.done, stop) - start
            yield data.translate(_CR_TO_LF) if end == b"\r" else data
            del data


def _without_returns(lines: bytes) -> bytes:
    """LF for CRLF and a space for any other CR, by the same calls whether there is one or not."""
    cells = np.frombuffer(lines, np.uint8)
    returns = cells == ord("\r")
    kept = np.ones(len(cells), dtype=bool)
    kept[:-1] = ~(returns[:-1] & (cells[1:] == ord("\n")))
    return np.where(returns, np.uint8(ord(" ")), cells)[kept].tobytes()
