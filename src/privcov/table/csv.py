"""Files of lines (CSV, TSV), plain or packed: line i after the header is record i, always.

So no record can touch another: docs/decisions/0003-csv-records.md, and as a law that every reader obeys,
docs/proofs/readers.md. A line that is not a record of the header's width is a record with every cell missing: it
is neither dropped nor moved nor reported.

Lines become cells in three ways, from quick to careful, with one result. polars (``quick.py``), then pyarrow with
numbers as numbers, each taken only for runs of lines on which it provably reads what ``records.py`` reads; then lines
that are no records are told by the places of their separators and quotes, pyarrow parses the others as texts, and
each goes back to its place. Which way was taken changes the time and nothing else. A run that polars refuses is tried
again in smaller ones, so that one odd line makes its neighbourhood slow and not the rest of the file. With ``timing =
"constant"`` every line is read in the careful way, by the same calls whatever it holds (``privcov bench timing``).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from privcov.linalg.arrays import Floats
from privcov.schema import Numeric, Schema
from privcov.schema.dialect import Dialect
from privcov.table import records
from privcov.table.arrow import batch_blocks
from privcov.table.base import Table, block_rows, check_names, read_columns
from privcov.table.blocks import Block
from privcov.table.fragments import FRAGMENT_BYTES, Piece
from privcov.table.headers import dialect_of, header_of, line_end_of
from privcov.table.quick import quick_columns
from privcov.table.records import columns_by_rule
from privcov.table.sources import changed, source_of

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


SMALL = 2**19
"""Bytes of the runs in which lines are tried again."""
_MISSING_WORDS = ["", "NA", "N/A", "null", "NULL", "None", "nan", "NaN"]
_NEWLINE = ord("\n")

Columns: TypeAlias = "Floats | pa.RecordBatch | Sequence[pa.RecordBatch]"


class LineReader:
    """Reads lines of files that have ``width`` columns, the declared ones at ``places``."""

    def __init__(self, schema: Schema, *, width: int, places: Sequence[int], dialect: Dialect) -> None:
        self._schema, self._width, self._places, self._dialect = schema, width, places, dialect
        self._numeric = [isinstance(column, Numeric) and not column.date for column in read_columns(schema)]

    def blocks(self, lines: bytes) -> Iterator[Block]:
        """One row for each line of ``lines``, which end with a line end, in order."""
        for columns in self._columns(lines):
            yield from self._cut(columns)
            del columns

    def texts(self, lines: bytes) -> Iterator[tuple[pa.RecordBatch, NDArray[np.bool_]]]:
        """The declared columns as bytes, in the careful way, and which lines are records: for the data's keeper."""
        for part in _parts(lines):
            yield self._careful(part), good_lines(part, self._width, self._dialect)

    def missing(self, rows: int) -> Iterator[Block]:
        """Rows whose cells are all missing."""
        step = block_rows(self._schema)
        for start in range(0, rows, step):
            yield [np.full(min(step, rows - start), np.nan)] * len(read_columns(self._schema))

    def _columns(self, lines: bytes) -> Iterator[Columns]:
        if self._dialect.constant:
            yield from (self._careful(part) for part in _parts(lines))
            return
        columns: Columns | None = self._quick(lines)
        if columns is not None:
            yield columns
            return
        for part in _parts(lines):
            columns = self._quick(part) if len(part) < len(lines) else None
            if columns is None:
                columns = self._typed(part)
            yield self._careful(part) if columns is None else columns
            del columns

    def _cut(self, columns: Columns) -> Iterator[Block]:
        if isinstance(columns, np.ndarray):
            step = block_rows(self._schema)
            for start in range(0, columns.shape[1], step):
                yield columns[:, start : start + step]
            return
        for batch in [columns] if isinstance(columns, pa.RecordBatch) else columns:
            yield from batch_blocks(batch, range(len(self._places)), self._schema, dialect=self._dialect)

    def _quick(self, lines: bytes) -> Floats | Sequence[pa.RecordBatch] | None:
        if _has_long_line(lines):
            return None
        return quick_columns(lines, self._width, self._places, self._numeric, self._dialect)

    def _typed(self, lines: bytes) -> pa.RecordBatch | None:
        """By pyarrow at once, where it takes every line for a record and every number for one."""
        dialect = self._dialect
        if dialect.thousands or _parser(dialect) is columns_by_rule or _has_long_line(lines):
            return None
        quoted = bool(dialect.quote) and dialect.quote.encode() in lines
        if quoted and not good_lines(lines, self._width, dialect).all():
            return None
        kinds = [pa.float64() if number else pa.binary() for number in self._numeric]
        try:
            found = parsed(lines, self._width, self._places, dialect, kinds)
        except pa.ArrowInvalid:
            return None
        return found if found.num_rows == lines.count(b"\n") else None

    def _careful(self, lines: bytes) -> pa.RecordBatch:
        """Every line by itself: those that are no records are rows of nulls."""
        good = good_lines(lines, self._width, self._dialect)
        every = not self._dialect.constant and bool(good.all())
        batch = _parser(self._dialect)(
            lines if every else _kept(lines, good), self._width, self._places, self._dialect
        )
        return batch if every else in_place(batch, good)


@cache
def warm_up(dialect: Dialect) -> None:
    """Read invented lines in every way, once in a process, before a file is read.

    The first use of a library takes time and memory of its own, and would tell that a line needed it.
    """
    schema = Schema.from_dict({"columns": {"x": {"lower": 0, "upper": 1}, "s": {"levels": ["a"]}}})
    mark, quote = dialect.separator.encode(), dialect.quote.encode()
    reader = LineReader(schema, width=2, places=[0, 1], dialect=dialect)
    for lines in (b"1%ba\n" % mark, b"1%b%ba%b\n" % (mark, quote, quote), b"x%b\xff\n\n" % mark):
        for _ in reader.blocks(lines):
            pass


def good_lines(lines: bytes, width: int, dialect: Dialect) -> NDArray[np.bool_]:
    """For each line whether it is a record: ``cells_of(line, …) is not None``, for many lines at once.

    Quotes must come in pairs around whole cells; inside, two stand for one. So from the start of a line every other
    quote opens, behind a separator, a line end or a quote, and the ones between close, before one of those.
    Separators within quotes do not count. Positions are compared within a line only.
    """
    buffer = np.frombuffer(b"\n" + lines, np.uint8)  # so that each line has an end before it
    ends = np.flatnonzero(buffer == _NEWLINE)
    starts, ends = ends[:-1], ends[1:]
    good: NDArray[np.bool_] = ends - starts <= records.LONGEST_LINE + 1
    separator = ord(dialect.separator)
    separators = np.flatnonzero(buffer == separator)
    if dialect.quote and (dialect.constant or dialect.quote.encode() in lines):
        quote = ord(dialect.quote)
        quotes = np.flatnonzero(buffer == quote)
        before = np.searchsorted(quotes, starts)  # quotes before each line
        per_line = np.diff(np.searchsorted(quotes, ends), prepend=0)
        opening = (np.arange(len(quotes)) - np.repeat(before, per_line)) % 2 == 0
        beside = np.where(opening, buffer[quotes - 1], buffer[quotes + 1])
        misplaced = (beside != separator) & (beside != _NEWLINE) & (beside != quote)
        good &= per_line % 2 == 0
        good[np.repeat(np.arange(len(ends)), per_line)[misplaced]] = False
        in_line = np.diff(np.searchsorted(separators, ends), prepend=0)
        outside = (np.searchsorted(quotes, separators) - np.repeat(before, in_line)) % 2 == 0
        separators = separators[outside]
    good &= np.diff(np.searchsorted(separators, ends), prepend=0) == width - 1
    return good


def in_place(batch: pa.RecordBatch, good: NDArray[np.bool_]) -> pa.RecordBatch:
    """The rows of a batch at the places of the good ones, and rows of nulls at the others."""
    return batch.take(pa.array(np.cumsum(good) - 1, mask=~good))


def _kept(lines: bytes, good: NDArray[np.bool_]) -> bytes:
    buffer = np.frombuffer(lines, np.uint8)
    ends = np.flatnonzero(buffer == _NEWLINE)
    return buffer[np.repeat(good, np.diff(ends, prepend=-1))].tobytes()


def _parts(lines: bytes) -> Iterator[bytes]:
    """Runs of whole lines of about ``SMALL`` bytes."""
    at = 0
    while at < len(lines):
        end = lines.find(b"\n", min(at + SMALL, len(lines)) - 1) + 1
        yield lines[at:end]
        at = end


def _has_long_line(lines: bytes) -> bool:
    at = 0
    while len(lines) - at > records.LONGEST_LINE + 1:
        end = lines.rfind(b"\n", at, at + records.LONGEST_LINE + 1)
        if end < 0:
            return True
        at = end + 1
    return False


def parsed(
    lines: bytes,
    width: int,
    places: Sequence[int],
    dialect: Dialect,
    kinds: Sequence[pa.DataType] | None = None,
    *,
    line_breaks: bool = False,
) -> pa.RecordBatch:
    """The columns at ``places`` of lines that are records, by pyarrow; as bytes unless ``kinds`` says otherwise.

    With ``line_breaks`` they may stand inside quoted cells, and ``lines`` are records.
    """
    names = [str(place) for place in places]
    table = pa.csv.read_csv(
        # The empty first line keeps a byte order mark at the start of a chunk from being swallowed.
        pa.py_buffer(b"\n" + lines),
        read_options=pa.csv.ReadOptions(
            column_names=[str(place) for place in range(width)],
            block_size=len(lines) + 2,
            use_threads=False,
        ),
        parse_options=pa.csv.ParseOptions(
            delimiter=dialect.separator,
            quote_char=dialect.quote or False,
            ignore_empty_lines=False,
            newlines_in_values=line_breaks,
        ),
        convert_options=pa.csv.ConvertOptions(
            column_types=dict(zip(names, kinds or [pa.binary()] * len(names), strict=True)),
            include_columns=names,
            null_values=_MISSING_WORDS,
            strings_can_be_null=False,
            check_utf8=False,
            decimal_point=dialect.decimal,
        ),
    )
    return table.combine_chunks().to_batches()[0].slice(1)


@cache
def _parser(dialect: Dialect) -> Callable[[bytes, int, Sequence[int], Dialect], pa.RecordBatch]:
    """pyarrow, if it reads records of this dialect as the rule does; else the rule, line by line."""
    mark, quote = dialect.separator, dialect.quote
    cells = ["1", "", " a ", "é", "\0", "\ufeff", "#", "\\", "NA", "'" if quote == '"' else '"', "\v"]
    if quote:
        cells += [
            f"{quote}{inner}{quote}" for inner in ("", mark, quote * 2, f"{mark}{quote * 4}", "\\", " ")
        ]
    lines = "".join(f"{left}{mark}{right}\n" for left in cells for right in cells).encode(
        dialect.cell_encoding, "replace"
    )
    one = "".join(f"{cell}\n" for cell in cells).encode(dialect.cell_encoding, "replace")
    try:
        agrees = all(
            parsed(block, width, places, dialect) == columns_by_rule(block, width, places, dialect)
            for block, width, places in ((lines, 2, [1, 0]), (lines, 2, [1]), (one, 1, [0]))
        )
    except pa.ArrowException:
        agrees = False
    return parsed if agrees else columns_by_rule
