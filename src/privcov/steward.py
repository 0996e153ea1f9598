"""How a file would be read, counted cell by cell: ``privcov inspect`` and ``privcov convert``.

**Everything here is sensitive.** A count of unreadable cells is a statistic of the data that nobody paid for. It goes
to the terminal of the data's keeper, marked, and nowhere else: no release, ledger, log or saved state may hold it,
and nothing that leads to one may import this module (``.importlinter``).

RFC 4180 to the letter, line breaks inside quoted cells included: for ``privcov convert`` and ``privcov inspect``.

This is the steward's side. Here one quote that is not closed takes the lines after it into its cell, so nothing of it
may stand in the way of a release, whose records are lines (``csv.py``). A file that is not well formed is refused, with
the number of the record, which is for the eyes of the data's keeper only. A record of another width than the
header's is a row of nulls in its place, and counted. A blank line is no record where there is more than one column, as
no writer of RFC 4180 writes a person so; it is left out, and counted too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from privcov.errors import InputError
from privcov.report.tables import table
from privcov.schema import Categorical, Column, Numeric, Schema
from privcov.schema.columns import Identifier
from privcov.schema.dialect import RFC_4180, Dialect
from privcov.schema.names import listed
from privcov.table import open_table
from privcov.table.base import check_names, read_columns
from privcov.table.cells import UNKNOWN, absent, apply_missing_codes, cells, identities
from privcov.table.csv import CsvTable, in_place, parsed
from privcov.table.headers import dialect_of, header_of, line_end_of
from privcov.table.sources import source_of
from privcov.text.aligning import cut, paragraph
from privcov.text.files import check_writable, whole

PRIVATE = "PRIVATE: true counts of the data, for you only. Do not publish, mail or log them."


@dataclass(kw_only=True)
class ColumnReading:
    """What became of the cells of one column; those of records of the wrong width are in none of the counts."""

    name: str
    kind: str
    read: int = 0
    unreadable: int = 0
    """Cells that are there and are no number where one is declared."""
    missing: int = 0
    """Empty cells and declared missing values."""
    undeclared: int = 0
    """Cells that are no level of a categorical column."""
    rule: str = ""
    """What a missing cell counts as; empty where no released column needs this one."""


@dataclass(kw_only=True)
class Reading:
    """A reading report. It has counts and no value."""

    file: str
    records: int = 0
    wrong_width: int = 0
    """Records that are not of the header's width, or whose quotes are out of place: all their cells are missing."""
    blank: int = 0
    """Blank lines in a file of several columns. ``inspect`` counts them among the records of the wrong width too, as a
    release would; ``convert`` leaves them out."""
    complete: int = 0
    """Records that no rule leaves out: none of their cells is missing or unreadable in a column of ``zero-row``."""
    summed: int | None = None
    """Rows that a release would sum, where they are gathered by person."""
    strict_records: int | None = None
    """Records by RFC 4180, where lines that are not blank are another number; None where that is the same or cannot
    be told."""
    columns: list[ColumnReading] = field(default_factory=list)
    advice: str = ""
    """What to write in the schema if numbers are missing, where they would count as the middle of their bounds."""

    @property
    def middling(self) -> int:
        """Numbers that are missing or unreadable and so count as the middle of their bounds."""
        mine = [column for column in self.columns if column.kind == "number" and column.rule == "midpoint"]
        return sum(column.missing + column.unreadable for column in mine)

    @property
    def unlike(self) -> list[str]:
        """Columns of which every cell that is there is unlike what the schema declares."""
        return [
            column.name
            for column in self.columns
            if not column.read and column.unreadable + column.undeclared > 0
        ]

    def to_dict(self) -> dict[str, Any]:
        return {"private": PRIVATE, **asdict(self)}

    def render(self) -> str:
        """The report as a page of text."""

        def shown(count: int) -> str:
            share = f" ({count / self.records:.1%})" if count and self.records else ""
            return f"{count:,}{share}" if count else "–"

        count = f"{self.records:,} records, {self.wrong_width:,} of them with the wrong number of cells."
        lines = [PRIVATE, "", f"{self.file}: {count}"]
        sparse = any(column.rule == "zero-row" for column in self.columns)
        if sparse:
            lines.append(
                f"Records without a missing cell: {self.complete:,}. A release leaves the others out."
            )
        if self.summed is not None:
            lines.append(f"Gathered by person, a release would sum {self.summed:,} rows.")
        if self.blank:
            lines.append(
                f"Blank lines: {self.blank:,}. A release counts them as records; privcov convert leaves them out."
            )
        if self.strict_records is not None:
            lines.append(
                f"A release treats each line as a record, but by RFC 4180 there are {self.strict_records:,} records:\n"
                "some cells hold line breaks. Convert the file first: privcov convert."
            )
        rows = [
            [cut(column.name), column.kind, f"{column.read:,}"]
            + [shown(count) for count in (column.unreadable, column.missing, column.undeclared)]
            for column in self.columns
        ]
        headings = ["column", "declared", "read", "unreadable", "missing", "undeclared level"]
        said = []
        if self.middling:
            said.append(f"Numbers that count as a middle: {self.middling:,}. {self.advice}")
        if self.unlike:
            dates = {column.name for column in self.columns if column.kind == "date"}
            iso = " Dates are read as 2024-12-31 and in no other way." * (not dates.isdisjoint(self.unlike))
            said.append(
                f"No cell is as declared: {listed(self.unlike)}.{iso} Are numbers written in another way (decimal, "
                "thousands, separator under [file] in the schema), or levels in other words?"
            )
        if sparse and 2 * self.complete < self.records - self.wrong_width:
            said.append(
                "Most records lack a cell. Leave out columns with many missing cells (--without), or give them "
                'a rule of their own (fill, or missing = "indicator").'
            )
        said = ["", *map(paragraph, said)] if said else []
        return "\n".join([*lines, "", table(headings, rows, left=2), *said])


def inspect(path: str | Path, *, schema: Schema) -> Reading:
    """How a release would read a file of lines or Parquet, as counts. Nothing is released or kept.

    ``path`` is a CSV, TSV or Parquet file that fits ``schema``. What comes back is for the data's keeper only.
    """
    report = _inspected(Path(path), schema.by_rows())
    if schema.person is not None:
        report.summed = sum(len(block[0]) for block in open_table(path, schema).blocks())
    return report


def _inspected(given: Path, schema: Schema) -> Reading:
    table = open_table(given, replace(schema, file=replace(schema.file, timing="constant")))
    if not isinstance(table, CsvTable):
        return _inspect_parquet(given, schema)
    report = _report(given, schema)
    for batch, good in table.texts():
        report.records += len(good)
        report.wrong_width += int(np.count_nonzero(~good))
        _tally(report, schema.read_columns, batch, good, dialect=schema.file)
    strict = _strictly(given, schema)
    if strict is not None:
        report.blank = strict.blank
        report.strict_records = strict.records if strict.records != report.records - strict.blank else None
    return report


def convert(path: str | Path, output: str | Path, *, schema: Schema, force: bool = False) -> Reading:
    """A file of lines as Parquet: strict RFC 4180, line breaks in cells included, in the schema's dialect.

    The declared columns are written, numbers as doubles, levels as texts and a person's id as bytes; what is missing or
    unreadable is null. A
    record of the wrong width is a row of nulls in its place. The output is as sensitive as the input and readable by
    its owner only. Raises ``InputError`` where the file is not well formed, and then writes nothing.
    """
    given, target = Path(path), Path(output)
    if target.suffix.lower() not in (".parquet", ".pq"):
        raise InputError(
            "E118",
            f"convert writes Parquet, but {target.name} does not end in .parquet.",
            "Give it a name that ends in .parquet.",
        )
    check_writable(target, force=force)
    if given.suffix.lower() in (".parquet", ".pq"):
        raise InputError("E118", f"{given.name} is already a Parquet file.", "Release it as it is.")
    reader = StrictReader(given, schema)
    report = _report(given, schema)
    kinds = pa.schema([(column.name, _stored(column)) for column in read_columns(schema)])
    with whole(target, force=force, mode=0o600) as made, pq.ParquetWriter(made, kinds) as file:
        for batch in reader.batches():
            good = ~np.asarray(batch.column(0).is_null().to_numpy(zero_copy_only=False))
            _tally(report, schema.read_columns, batch, good, dialect=reader.dialect)
            file.write_batch(_typed(batch, read_columns(schema), kinds, reader.dialect))
    report.records, report.wrong_width, report.blank = reader.records, reader.wrong_width, reader.blank
    return report


def _typed(
    batch: pa.RecordBatch, columns: Sequence[Column | Identifier], kinds: pa.Schema, dialect: Dialect
) -> pa.RecordBatch:
    made = []
    for place, column in enumerate(columns):
        values = batch.column(place)
        if isinstance(column, Identifier):
            made.append(identities(column, values, dialect=dialect).cast(pa.binary()))
            continue
        gone = absent(column, values, dialect=dialect)
        if isinstance(column, Numeric) and not column.date:
            numbers = cells(column, values, dialect=dialect)
            made.append(pa.array(numbers, mask=gone | ~np.isfinite(numbers)))
        else:
            made.append(pc.if_else(pa.array(gone), pa.scalar(None, pa.string()), _decoded(values, dialect)))
    return pa.RecordBatch.from_arrays(made, schema=kinds)


def _decoded(values: pa.Array, dialect: Dialect) -> pa.Array:
    if dialect.cell_encoding == "utf-8":
        try:
            return values.cast(pa.string())
        except pa.ArrowInvalid:  # a cell that is not UTF-8
            pass
    decoded = (
        None if cell is None else cell.decode(dialect.cell_encoding, "replace") for cell in values.to_pylist()
    )
    return pa.array(decoded, pa.string())


def _tally(
    report: Reading, columns: Sequence[Column], batch: pa.RecordBatch, good: Any, *, dialect: Dialect
) -> None:
    complete = np.array(good)
    for place, column in enumerate(columns):
        values = batch.column(place)
        found = cells(column, values, dialect=dialect)
        if isinstance(column, Numeric):
            found = apply_missing_codes(column, found)
        gone = absent(column, values, dialect=dialect) & good
        unread = ~np.isfinite(found) & ~gone & good
        unknown = (found == UNKNOWN) & good if isinstance(column, Categorical) else np.zeros(len(good), bool)
        made = report.columns[place]
        made.missing += int(np.count_nonzero(gone))
        made.unreadable += int(np.count_nonzero(unread))
        made.undeclared += int(np.count_nonzero(unknown))
        made.read += int(np.count_nonzero(good & ~gone & ~unread & ~unknown))
        if made.rule == "zero-row":
            complete &= ~gone & ~unread
    report.complete += int(np.count_nonzero(complete))


def _inspect_parquet(path: Path, schema: Schema) -> Reading:
    report = _report(path, schema)
    names = [column.name for column in schema.read_columns]
    with pq.ParquetFile(os.fspath(path)) as file:
        for batch in file.iter_batches(columns=names):
            report.records += batch.num_rows
            _tally(
                report,
                schema.read_columns,
                batch.select(names),
                np.ones(batch.num_rows, bool),
                dialect=RFC_4180,
            )
    return report


def _strictly(path: Path, schema: Schema) -> StrictReader | None:
    reader = StrictReader(path, schema)
    try:
        for _ in reader.batches():
            pass
    except InputError:
        return None
    return reader


def _report(path: Path, schema: Schema) -> Reading:
    released, recipe = {column.name for column in schema.columns}, schema.recipe
    columns = [
        ColumnReading(
            name=column.name,
            kind=_kind(column),
            rule=schema.rule(column)
            if column.name in released or (recipe is not None and place in recipe.reads)
            else "",
        )
        for place, column in enumerate(schema.read_columns)
    ]
    return Reading(file=path.name, columns=columns, advice=schema.missing_advice)


def _kind(column: Column) -> str:
    return "levels" if isinstance(column, Categorical) else "date" if column.date else "number"


LONGEST_RECORD = 2**26
_NEWLINE = ord("\n")
_CR_TO_LF = bytes.maketrans(b"\r\n", b"\n ")


class StrictReader:
    """One file of lines; ``batches`` may be walked once, ``records``, ``wrong_width`` and ``blank`` count."""

    def __init__(self, path: Path, schema: Schema) -> None:
        self.dialect = dialect_of(path, schema.file)
        self._source = source_of(path, self.dialect)
        self._header = header_of(self._source, self.dialect)
        self._width = len(self._header.names)
        self._places = check_names(self._header.names, schema, path.name)
        self._source.check()
        self.records = 0
        self.wrong_width = 0
        self.blank = 0

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The declared columns, in order, as bytes; one row for each record."""
        rest = b""
        for chunk in self._chunks():
            text = rest + chunk
            ends, good = self._split(text)
            whole = int(ends[-1]) + 1 if len(ends) else 0
            rest = text[whole:]
            if len(rest) > LONGEST_RECORD:
                self._refuse(self.records + len(ends), "has a quote that is not closed for 64 MiB")
            if whole:
                yield self._batch(text[:whole], ends, good)
        if rest:
            ends, good = self._split(rest + b"\n")
            if not len(ends):
                self._refuse(self.records, "has a quote that is not closed")
            yield self._batch(rest + b"\n", ends, good)

    def _chunks(self) -> Iterator[bytes]:
        """Text whose lines end with LF; what may be half a CRLF waits for the next chunk."""
        end, held = line_end_of(self.dialect), b""
        for data in self._source.chunks(self._header.end, self._source.size, end):
            if end == b"\r":
                yield data.translate(_CR_TO_LF)
                continue
            data = held + data
            held = b"\r" if data.endswith(b"\r") else b""
            yield data.removesuffix(b"\r").replace(b"\r\n", b"\n").replace(b"\r", b" ")
        if held:
            yield b" "

    def _split(self, text: bytes) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Where the records of ``text``, which begins with one, end; and which of them have the header's width."""
        buffer = np.frombuffer(b"\n" + text, np.uint8)
        newlines = np.flatnonzero(buffer == _NEWLINE)
        separator, quote = ord(self.dialect.separator), self.dialect.quote
        quotes = np.flatnonzero(buffer == ord(quote)) if quote else np.zeros(0, np.intp)
        ends = newlines[np.searchsorted(quotes, newlines) % 2 == 0][1:]
        last = ends[-1] if len(ends) else 0
        quotes = quotes[quotes < last]
        if len(quotes):
            opening = np.arange(len(quotes)) % 2 == 0
            beside = np.where(opening, buffer[quotes - 1], buffer[quotes + 1])
            stray = (beside != separator) & (beside != _NEWLINE) & (beside != ord(quote))
            if stray.any():
                place = int(np.searchsorted(ends, quotes[np.argmax(stray)]))
                self._refuse(self.records + place, "has a quote inside a cell, or text behind a closing one")
        separators = np.flatnonzero(buffer[: last + 1] == separator)
        separators = separators[np.searchsorted(quotes, separators) % 2 == 0]
        widths = np.diff(np.searchsorted(separators, ends), prepend=0) + 1
        return ends - 1, widths == self._width

    def _batch(self, text: bytes, ends: NDArray[np.intp], good: NDArray[np.bool_]) -> pa.RecordBatch:
        lengths = np.diff(ends, prepend=-1)
        blank = (lengths == 1) & (self._width > 1)
        kept = text
        if not good.all():
            kept = np.frombuffer(text, np.uint8)[np.repeat(good, lengths)].tobytes()
        self.blank += int(np.count_nonzero(blank))
        self.records += int(np.count_nonzero(~blank))
        self.wrong_width += int(np.count_nonzero(~good & ~blank))
        good = good[~blank]
        return in_place(parsed(kept, self._width, self._places, self.dialect, line_breaks=True), good)

    def _refuse(self, place: int, what: str) -> Never:
        raise InputError(
            "E136",
            f"record {place + 1:,} of {self._source.path.name} {what}: the file is not RFC 4180.",
            "Correct it, or declare another quote in [file]. The record number is about a person: do not publish it.",
        )


def _stored(column: Column | Identifier) -> pa.DataType:
    """The type of a column of a converted file; bytes keep two ids apart that are no UTF-8."""
    if isinstance(column, Identifier):
        return pa.binary()
    return pa.float64() if isinstance(column, Numeric) and not column.date else pa.string()
