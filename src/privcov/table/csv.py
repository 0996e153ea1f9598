"""CSV files in which one line is one record, always, so that no record can touch another.

RFC 4180 without quoted line breaks; why: docs/decisions/0003-csv-records.md. A line that is not a record of
the header's width is a record with every cell missing: it is neither dropped nor reported. pyarrow parses
the lines that are left; its own rule for bad lines would print them.

A chunk of the file is let go of everywhere (``del``) before the next is read, which is then given the same memory:
fresh memory for each would cost 7 % more time.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from privcov.bounding import Block, Floats, part_of
from privcov.schema import Numeric, Schema
from privcov.table.arrow import batch_blocks
from privcov.table.base import Table, block_rows, check_names
from privcov.table.files import changed, regular_file
from privcov.table.fragments import FRAGMENT_BYTES, Piece
from privcov.table.headers import LONGEST_LINE, header_of, open_bytes, read_bytes
from privcov.table.quick import quick_columns

CHUNK_BYTES = 11 * 2**20  # a third of a fragment
_PIECE_BYTES = 2**16

_CR_TO_LF = bytes.maketrans(b"\r\n", b"\n ")
_MISSING_WORDS = ["", "NA", "N/A", "null", "NULL", "None", "nan", "NaN"]
_COMMA, _NEWLINE, _QUOTE = b',\n"'


class CsvTable(Table):
    """One CSV file: comma, optional double quotes, UTF-8 header; LF, CRLF or CR between records.

    A part of a file, from byte to byte, has the records that begin in it. Parts that cover a file have each of
    its records once, because what begins a record (a line end before it) does not depend on anything further off.
    """

    def __init__(self, path: Path, schema: Schema, piece: Piece | None = None) -> None:
        super().__init__(schema)
        self._path = path
        self._size = regular_file(path).st_size
        if piece is not None and piece.size != self._size:
            changed(path)
        self._span = (0, self._size) if piece is None else (piece.start, piece.stop)
        with self._open() as file:
            self._header = header_of(file, path)
        self._width = len(self._header.names)
        self._places = check_names(self._header.names, schema, path.name)
        self._clean = True
        """Whether every chunk so far was free of bad lines and bad numbers; a matter of speed only."""

    def _open(self) -> io.FileIO:
        """The file, if it still has the size it had; it is opened to be checked, and again to be read."""
        regular_file(self._path)
        file = open_bytes(self._path)
        if os.fstat(file.fileno()).st_size != self._size:
            file.close()
            changed(self._path)
        return file

    def _blocks(self) -> Iterator[Block]:
        unread = 0  # records of which nothing is left to parse: all cells missing
        blank = 0  # empty lines that are records only if another record follows
        for lines, bad in self._lines():
            body = lines
            if self._width > 1 and (lines.endswith(b"\n\n") or lines == b"\n"):
                body = lines.rstrip(b"\n")
                body += b"\n" if body else b""
            if body or bad:
                unread, blank = unread + blank + bad, 0
            blank += len(lines) - len(body)
            if body:
                columns, missing = self._parse(body)
                unread += missing
                yield from self._cut(columns)
                del columns
            del lines, body
            step = block_rows(self.schema)
            while unread >= step:
                yield self._missing(step)
                unread -= step
        if blank and self._goes_on():
            unread += blank
        while unread:
            yield self._missing(min(unread, block_rows(self.schema)))
            unread -= min(unread, block_rows(self.schema))

    def pieces(self) -> Sequence[Piece]:
        start, stop = self._span
        edges = [*range(start, stop, FRAGMENT_BYTES), stop]
        path = os.path.abspath(self._path)
        return [
            Piece(path=path, size=self._size, start=left, stop=right, bytes=right - left)
            for left, right in pairwise(edges)
        ]

    def _missing(self, rows: int) -> Block:
        return [np.full(rows, np.nan)] * len(self.schema.columns)

    def _lines(self) -> Iterator[tuple[bytes, int]]:
        """Whole lines, and how many lines before them were too long to keep."""
        rest, skipping, bad = b"", False, 0
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
            if len(rest) > LONGEST_LINE + 1:  # one more, because the last byte may be the CR of a CRLF
                rest, skipping = b"", True
            if lines:
                if b"\r" in lines:
                    lines = lines.replace(b"\r\n", b"\n").replace(b"\r", b" ")
                yield lines, bad
                bad = 0
            bad += skipping
            del data, lines
        if rest:
            yield rest.replace(b"\r", b" ") + b"\n", bad
        elif bad:
            yield b"", bad

    def _chunks(self) -> Iterator[bytes]:
        """The lines that begin in this part of the file, with LF for CR where CR separates records."""
        with self._open() as file:
            if header_of(file, self._path) != self._header:
                changed(self._path)
            start, stop = self._span
            self.bytes_done = max(start, self._header.end) - start
            for data in self._raw(file, max(start, self._header.end), stop):
                self.bytes_done = min(file.tell(), stop) - start
                yield data.translate(_CR_TO_LF) if self._header.cr_only else data
                del data
            if os.fstat(file.fileno()).st_size != self._size:
                changed(self._path)

    def _raw(self, file: io.FileIO, start: int, stop: int) -> Iterator[bytes]:
        """Bytes from the first line that begins at or after ``start`` to the end of the last before ``stop``."""
        inside = start > self._header.end
        stop = self._end_of_line(file, stop)
        at = file.seek(start - inside)
        last = b""
        while at < stop:
            if inside:  # of the line before this part, which has its beginning elsewhere
                data = read_bytes(file, min(_PIECE_BYTES, stop - at))
                found = data.find(self._line_end)
                inside = found < 0
                at = file.seek(at + (len(data) if inside else found + 1))
            else:
                data = read_bytes(file, self._up_to_a_line_end(file, at, stop))
                at += len(data)
                last = data[-1:]
                if data:
                    yield data
            if not data:
                changed(self._path)
            del data
        while last not in (b"", self._line_end) and (data := read_bytes(file, _PIECE_BYTES)):
            whole = data[: data.find(self._line_end) + 1] or data
            last = whole[-1:]
            yield whole

    def _end_of_line(self, file: io.FileIO, stop: int) -> int:
        """Where the last line that begins before ``stop`` ends, if that is near; else ``stop``."""
        if stop == self._size:
            return stop
        file.seek(stop - 1)
        return stop + max(0, read_bytes(file, min(_PIECE_BYTES, CHUNK_BYTES)).find(self._line_end))

    def _up_to_a_line_end(self, file: io.FileIO, at: int, stop: int) -> int:
        """How many bytes to read: chunks of one size; one that ends with a line need not be put together."""
        left = stop - at
        if left <= CHUNK_BYTES:
            return left
        count = -(-left // -(-left // CHUNK_BYTES))
        window = min(_PIECE_BYTES, count)
        file.seek(at + count - window)
        end = read_bytes(file, window).rfind(self._line_end)
        file.seek(at)
        return count if end < 0 else count - window + end + 1

    @property
    def _line_end(self) -> bytes:
        return b"\r" if self._header.cr_only else b"\n"

    def _goes_on(self) -> bool:
        """Whether anything but empty lines follows this part: it makes records of the empty lines at its end."""
        with self._open() as file:
            file.seek(self._span[1])
            kept = b""
            while data := read_bytes(file, CHUNK_BYTES):
                if self._header.cr_only:
                    if data.strip(b"\r"):
                        return True
                    continue
                data = kept + data
                kept = b"\r" if data.endswith(b"\r") else b""
                if data.removesuffix(b"\r").replace(b"\r\n", b"\n").strip(b"\n"):
                    return True
            return bool(kept)

    def _cut(self, columns: Floats | Sequence[pa.RecordBatch]) -> Iterator[Block]:
        if isinstance(columns, np.ndarray):
            step = block_rows(self.schema)
            for start in range(0, columns.shape[1], step):
                yield part_of(columns, start, start + step)
        else:
            for batch in columns:
                yield from batch_blocks(batch, range(len(self._places)), self.schema)

    def _parse(self, lines: bytes) -> tuple[Floats | Sequence[pa.RecordBatch], int]:
        """The declared columns of the good lines, and how many lines were bad."""
        kept = _without_long_lines(lines)
        numeric = [isinstance(column, Numeric) for column in self.schema.columns]
        if self._clean and kept is lines:
            columns = quick_columns(lines, self._width, self._places, numeric)
            if columns is not None:
                return columns, 0
        records, lines = lines.count(b"\n"), kept
        if b'"' in lines:
            lines = _without_bad_quotes(lines)
        batch = self._try(lines, typed=True) if self._clean else None
        if batch is None:
            self._clean = False
            lines = _without_bad_widths(lines, self._width)
            batch = self._try(lines, typed=False)
        assert batch is not None
        return [batch], records - batch.num_rows

    def _try(self, lines: bytes, *, typed: bool) -> pa.RecordBatch | None:
        numeric = [typed and isinstance(column, Numeric) for column in self.schema.columns]
        kinds = {
            str(place): pa.float64() if n else pa.binary()
            for place, n in zip(self._places, numeric, strict=True)
        }
        try:
            table = pa.csv.read_csv(
                # The empty first line keeps a byte order mark at the start of a chunk from being swallowed.
                pa.py_buffer(b"\n" + lines),
                read_options=pa.csv.ReadOptions(
                    column_names=[str(place) for place in range(self._width)],
                    block_size=len(lines) + 2,
                    use_threads=False,
                ),
                parse_options=pa.csv.ParseOptions(ignore_empty_lines=False),
                convert_options=pa.csv.ConvertOptions(
                    column_types=kinds,
                    include_columns=list(kinds),
                    null_values=_MISSING_WORDS,
                    strings_can_be_null=False,
                    check_utf8=False,
                ),
            )
        except pa.ArrowInvalid:
            return None
        return (
            table.slice(1).combine_chunks().to_batches()[0] if table.num_rows > 1 else _no_rows(table.schema)
        )


def _no_rows(kinds: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in kinds], schema=kinds)


def _without_long_lines(lines: bytes) -> bytes:
    at = 0
    while len(lines) - at > LONGEST_LINE:
        end = lines.rfind(b"\n", at, at + LONGEST_LINE + 1)
        if end < 0:  # the line at ``at`` is too long
            lines = lines[:at] + lines[lines.find(b"\n", at) + 1 :]
        else:
            at = end + 1
    return lines


def _without_bad_quotes(lines: bytes) -> bytes:
    """Keep lines whose quotes come in pairs around whole cells; inside, two quotes stand for one."""
    buffer = np.frombuffer(b"\n" + lines, np.uint8)
    ends, quotes = np.flatnonzero(buffer == _NEWLINE)[1:], np.flatnonzero(buffer == _QUOTE)
    line = np.searchsorted(ends, quotes)
    per_line = np.bincount(line, minlength=len(ends))
    opening = (np.arange(len(quotes)) - (np.cumsum(per_line) - per_line)[line]) % 2 == 0
    beside = np.where(opening, buffer[quotes - 1], buffer[quotes + 1])
    misplaced = (beside != _COMMA) & (beside != _NEWLINE) & (beside != _QUOTE)
    bad = per_line % 2 == 1
    bad[line[misplaced]] = True
    return _keep(buffer[1:], ends - 1, ~bad)


def _without_bad_widths(lines: bytes, width: int) -> bytes:
    """Keep lines with the header's number of cells; quotes are well placed already."""
    buffer = np.frombuffer(lines, np.uint8)
    ends, commas = np.flatnonzero(buffer == _NEWLINE), np.flatnonzero(buffer == _COMMA)
    if len(quotes := np.flatnonzero(buffer == _QUOTE)):
        commas = commas[np.searchsorted(quotes, commas) % 2 == 0]
    per_line = np.diff(np.searchsorted(commas, ends), prepend=0)
    return _keep(buffer, ends, per_line == width - 1)


def _keep(buffer: NDArray[np.uint8], ends: NDArray[np.intp], good: NDArray[np.bool_]) -> bytes:
    if good.all():
        return buffer.tobytes()
    return buffer[np.repeat(good, np.diff(ends, prepend=-1))].tobytes()
