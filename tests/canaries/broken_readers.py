"""Readers of CSV files that are broken on purpose. The law's test and ``privcov audit --reader`` must fail them.

The first three were once ours. Each passed thousands of hostile files compared with a line-by-line reading as
multisets, because none of those were neighbours.
"""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from privcov.audit.readers import Rows, bounded_rows, careful_rows
from privcov.schema import Numeric, Schema
from privcov.summing.bounding import Bounding
from privcov.table.csv import LineReader, good_lines


def _lines(path: Path) -> tuple[list[str], bytes]:
    header, _, rest = path.read_bytes().replace(b"\r\n", b"\n").replace(b"\r", b" ").partition(b"\n")
    return header.decode("latin-1").split(","), rest


def _read(schema: Schema, names: list[str], lines: bytes) -> Rows:
    places = [names.index(column.name) for column in schema.columns]
    careful = replace(schema.file, timing="constant")
    reader = LineReader(schema, width=len(names), places=places, dialect=careful)
    bounding = Bounding.of(schema)
    return np.concatenate([np.zeros((0, schema.dimension)), *map(bounding.rows, reader.blocks(lines))])


def projected(path: Path, schema: Schema) -> Rows:
    """polars with a projection, under which it accepts long lines; separators are compared in total alone."""
    names, lines = _lines(path)
    places = [names.index(column.name) for column in schema.columns]
    kinds = {str(place): pl.Float64 if place in places else pl.String for place in range(len(names))}
    try:
        frame = pl.read_csv(lines, has_header=False, quote_char=None, schema=kinds, columns=sorted(places))
    except (pl.exceptions.PolarsError, ValueError, OSError):
        return careful_rows(path, schema)
    if b'"' in lines or lines.count(b",") != frame.height * (len(names) - 1):
        return careful_rows(path, schema)
    if not all(isinstance(column, Numeric) for column in schema.columns):
        return careful_rows(path, schema)
    return Bounding.of(schema).rows([frame.get_column(str(place)).to_numpy() for place in places])


def bad_lines_last(path: Path, schema: Schema) -> Rows:
    """Lines that are no records come after those that are."""
    names, lines = _lines(path)
    good = good_lines(lines, len(names), schema.file)
    every = lines.split(b"\n")[:-1]
    order = [line for line, fine in zip(every, good, strict=True) if fine]
    order += [line for line, fine in zip(every, good, strict=True) if not fine]
    return _read(schema, names, b"".join(line + b"\n" for line in order))


def blank_end_dropped(path: Path, schema: Schema) -> Rows:
    """Blank lines at the end are no records, so the last line that is not blank decides about those before it."""
    names, lines = _lines(path)
    kept = lines.rstrip(b"\n") + b"\n" if lines.strip(b"\n") else b""
    return _read(schema, names, kept)


def quoted_line_breaks(path: Path, schema: Schema) -> Rows:
    """As every general reader has it: a quote that is not closed takes the next lines into its cell."""
    names, lines = _lines(path)
    records = list(csv.reader(io.StringIO(lines.decode("latin-1").replace("\0", " "), newline="")))
    places = [names.index(column.name) for column in schema.columns]
    cells = [[row[p] for p in places] if len(row) == len(names) else ["" for _ in places] for row in records]
    again = [",".join(cell.replace(",", " ").replace("\n", " ") for cell in row) + "\n" for row in cells]
    return _read(schema, [column.name for column in schema.columns], "".join(again).encode("latin-1"))


def short_lines_dropped(path: Path, schema: Schema) -> Rows:
    """A line that is no record is no row."""
    names, lines = _lines(path)
    good = good_lines(lines, len(names), schema.file)
    kept = [line for line, fine in zip(lines.split(b"\n")[:-1], good, strict=True) if fine]
    return _read(schema, names, b"".join(line + b"\n" for line in kept))


def unread_if_odd(path: Path, schema: Schema) -> Rows:
    """One cell that is not ASCII makes the whole file unread."""
    rows = bounded_rows(path, schema)
    return rows if path.read_bytes().isascii() else np.zeros_like(rows)


BROKEN = {
    reader.__name__: reader
    for reader in (
        projected,
        bad_lines_last,
        blank_end_dropped,
        quoted_line_breaks,
        short_lines_dropped,
        unread_if_odd,
    )
}
