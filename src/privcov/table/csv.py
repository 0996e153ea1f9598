"""CSV files in which one line is one record, always, so that no record can touch another.

RFC 4180 without quoted line breaks; why: docs/decisions/0003-csv-records.md. A line that is not a record of
the header's width is a record with every cell missing: it is neither dropped nor reported. pyarrow parses
the lines that are left; its own rule for bad lines would print them.
"""

from __future__ import annotations

import codecs
import csv
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from privcov.bounding import Block
from privcov.errors import InputError
from privcov.schema import Numeric, Schema
from privcov.table.arrow import batch_blocks
from privcov.table.base import Table, block_rows, check_names
from privcov.table.cells import WHITE_SPACE
from privcov.table.files import changed, regular_file

CHUNK_BYTES = 4 * 2**20
LONGEST_LINE = 2**20
MOST_COLUMNS = 100_000

_CR_TO_LF = bytes.maketrans(b"\r\n", b"\n ")
_MISSING_WORDS = ["", "NA", "N/A", "null", "NULL", "None", "nan", "NaN"]
_PACKED = {
    b"\x1f\x8b": "gzip",
    b"PK\x03\x04": "zip",
    b"\xfd7zXZ": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
}
_OPEN = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_COMMA, _NEWLINE, _QUOTE = b',\n"'


class CsvTable(Table):
    """One CSV file: comma, optional double quotes, UTF-8 header; LF, CRLF or CR between records."""

    def __init__(self, path: Path, schema: Schema) -> None:
        super().__init__(schema)
        self._path = path
        self._size = regular_file(path).st_size
        with self._open() as file:
            self._header = _header(_read(file, LONGEST_LINE + 2), path)
        self._width = len(self._header.names)
        self._places = check_names(self._header.names, schema, path.name)
        self._clean = True
        """Whether every chunk so far was free of bad lines and bad numbers; a matter of speed only."""

    def _open(self) -> io.FileIO:
        """The file, if it still has the size it had; it is opened to be checked, and again to be read."""
        regular_file(self._path)
        file = io.FileIO(os.open(self._path, _OPEN))
        if os.fstat(file.fileno()).st_size != self._size:
            file.close()
            changed(self._path)
        return file

    def _blocks(self) -> Iterator[Block]:
        unread = 0  # records of which nothing is left to parse: all cells missing
        blank = 0  # empty lines that are records only if another record follows
        for lines, bad in self._lines():
            body = lines if self._width == 1 else lines.rstrip(b"\n")
            if body and self._width > 1:
                body += b"\n"
            if body or bad:
                unread, blank = unread + blank + bad, 0
            blank += len(lines) - len(body)
            if body:
                batch, missing = self._parse(body)
                unread += missing
                yield from batch_blocks(batch, range(len(self._places)), self.schema)
            step = block_rows(self.schema)
            while unread >= step:
                yield self._missing(step)
                unread -= step
        if unread:
            yield self._missing(unread)

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
            lines, rest = (rest + data[:cut], data[cut:]) if cut else (b"", rest + data)
            if len(rest) > LONGEST_LINE + 1:  # one more, because the last byte may be the CR of a CRLF
                rest, skipping = b"", True
            if lines:
                yield lines.replace(b"\r\n", b"\n").replace(b"\r", b" "), bad
                bad = 0
            bad += skipping
        if rest:
            yield rest.replace(b"\r", b" ") + b"\n", bad
        elif bad:
            yield b"", bad

    def _chunks(self) -> Iterator[bytes]:
        """The file after its header, with LF for CR where CR separates records."""
        with self._open() as file:
            if _header(_read(file, LONGEST_LINE + 2), self._path) != self._header:
                changed(self._path)
            self.bytes_done = file.seek(self._header.end)
            while data := _read(file, CHUNK_BYTES):
                self.bytes_done += len(data)
                yield data.translate(_CR_TO_LF) if self._header.cr_only else data
            if self.bytes_done != self._size or os.fstat(file.fileno()).st_size != self._size:
                changed(self._path)

    def _parse(self, lines: bytes) -> tuple[pa.RecordBatch, int]:
        """The declared columns of the good lines, and how many lines were bad."""
        records = lines.count(b"\n")
        lines = _without_long_lines(lines)
        if b'"' in lines:
            lines = _without_bad_quotes(lines)
        batch = self._try(lines, typed=True) if self._clean else None
        if batch is None:
            self._clean = False
            lines = _without_bad_widths(lines, self._width)
            batch = self._try(lines, typed=False)
        assert batch is not None
        return batch, records - batch.num_rows

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


def _read(file: io.FileIO, count: int) -> bytes:
    """``count`` bytes, fewer only at the end of the file."""
    parts: list[bytes] = []
    while count and (part := file.read(count)):
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


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


def read_header(path: Path, *, then: int) -> tuple[list[str], bytes]:
    """Column names, and up to ``then`` bytes of what follows: for the eyes of the data's keeper only."""
    regular_file(path)
    with io.FileIO(os.open(path, _OPEN)) as file:
        header = _header(_read(file, LONGEST_LINE + 2), path)
        file.seek(header.end)
        return header.names, _read(file, then)


class _Header(NamedTuple):
    """Column names, whether CR alone separates records, and where the header ends."""

    names: list[str]
    cr_only: bool
    end: int


def _header(start: bytes, path: Path) -> _Header:
    for magic, name in _PACKED.items():
        if start.startswith(magic):
            raise InputError("E117", f"{path.name} is a {name} file.", "Unpack it first.")
    if start.startswith(b"PAR1\x15"):
        raise InputError("E118", f"{path.name} is a Parquet file.", "Name it .parquet.")
    begin = len(codecs.BOM_UTF8) if start.startswith(codecs.BOM_UTF8) else 0
    cr, lf = start.find(b"\r"), start.find(b"\n")
    cr_only = cr >= 0 and start[cr + 1 : cr + 2] != b"\n" and (lf < 0 or cr < lf)
    end = cr if cr_only else lf
    if end < 0:
        end = len(start)
    if end - begin > LONGEST_LINE:
        raise InputError(
            "E113", f"the header of {path.name} is longer than 1 MiB.", "Check how it was written."
        )
    line = start[begin:end].removesuffix(b"\r")  # from here on only the header is looked at
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or _looks_like_utf16(line):
        raise InputError("E105", f"{path.name} is UTF-16 text.", "Save it as UTF-8.")
    if not line.strip():
        raise InputError("E101", f"{path.name} has no header: its first line is empty.", "Add column names.")
    if b"\0" in line:
        raise InputError("E106", f"the header of {path.name} has a zero byte.", "Check how it was written.")
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(
            "E105", f"the header of {path.name} is not UTF-8 text.", "Save it as UTF-8."
        ) from None
    if text.count('"') % 2:
        raise InputError("E107", f"the header of {path.name} has a quote that is not closed.", "Close it.")
    if line.count(b",") >= MOST_COLUMNS:
        raise InputError("E113", f"{path.name} has more than {MOST_COLUMNS} columns.", "Split it.")
    csv_limit = csv.field_size_limit(LONGEST_LINE)
    try:
        names = [name.strip(WHITE_SPACE) for name in next(csv.reader([text]))]
    finally:
        csv.field_size_limit(csv_limit)
    return _Header(names, cr_only, min(end + 1, len(start)))


def _looks_like_utf16(line: bytes) -> bool:
    """Whether every other byte is zero."""
    return len(line) > 1 and (not any(line[1::2]) or not any(line[0::2]))
