"""Column names and types of a file, for a schema template: what a person would see at a glance, no bound."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from privcov.errors import InputError
from privcov.schema.dialect import RFC_4180, Dialect
from privcov.table.headers import MOST_COLUMNS, read_header
from privcov.table.parquet import read_kinds
from privcov.table.proposing import cells, checked_names, decoded, first_line, propose
from privcov.table.records import LONGEST_LINE
from privcov.table.sources import PACKED, source_of

_GLANCE_LINES = 200
_GLANCE_BYTES = 2**20
_SUFFIXES = {".csv": ",", ".tsv": "\t"}
"""Files of lines, and what their name promises to stand between cells."""


@dataclass(frozen=True, kw_only=True)
class Glance:
    """Every column's name in order and whether it looks ``numeric`` or like ``text``, and how the file is written."""

    columns: Mapping[str, str]
    file: Dialect = RFC_4180


def glance(path: str | Path, said: Mapping[str, str] | None = None) -> Glance:
    """What a template says of a file; ``said`` holds words of ``[file]`` that need no proposal.

    A column of a file of lines looks numeric when most of the first lines parse as numbers. The person who fills in
    the template confirms or corrects it; no value, level or bound is written anywhere. A decimal comma is never
    taken for granted: the template suggests it.
    """
    given = Path(path)
    suffix = (given.with_suffix("") if given.suffix.lower() in PACKED else given).suffix.lower()
    if suffix in _SUFFIXES:
        return _of_lines(given, dict(said or {}), usual=_SUFFIXES[suffix])
    if suffix in (".parquet", ".pq"):
        kinds = read_kinds(given)
        names = checked_names([name for name, _ in kinds], given.name)
        numeric = [number for _, number in kinds]
        return Glance(columns=_types(names, numeric))
    raise InputError("E118", f"{given.name} is neither a .csv or .tsv nor a .parquet file.")


def _types(names: list[str], numeric: list[bool]) -> dict[str, str]:
    return {name: "numeric" if number else "text" for name, number in zip(names, numeric, strict=True)}


def _of_lines(path: Path, said: Mapping[str, str], *, usual: str) -> Glance:
    start = source_of(path, RFC_4180).beginning(
        LONGEST_LINE + _GLANCE_BYTES
    )  # unpacked, and as it is encoded
    line = first_line(start)
    if start[len(line) :].startswith(b"\r") and not start[len(line) :].startswith((b"\r\n", b"\r\0")):
        said = {"line_end": "cr", **said}
    try:
        if not line.strip(b"\xef\xbb\xbf\xff\xfe\0 \t"):
            raise InputError(
                "E101", f"{path.name} has no header: its first line is empty.", "Add column names."
            )
        if len(line) > LONGEST_LINE:
            raise InputError(
                "E113", f"the header of {path.name} is longer than 1 MiB.", "Check how it was written."
            )
        proposal = propose(line, said, usual=usual)
    except InputError:
        read_header(path, then=0)  # a reader knows better what a file is that has no such line: zip, Parquet
        raise
    lines = io.StringIO(decoded(start, proposal.encoding), newline=None)
    header = cells(next(lines).rstrip("\n"), proposal)
    if not 0 < len(header) <= MOST_COLUMNS:
        raise InputError("E113", f"{path.name} has no line of 1 to {MOST_COLUMNS:,} names.", "Split it.")
    names = checked_names(header, f"the header of {path.name}")
    marks = [proposal.decimal] if "decimal" in said else [".", proposal.decimal]
    rows = [
        row
        for row in (cells(text.rstrip("\n"), proposal) for text in islice(lines, _GLANCE_LINES))
        if len(row) == len(names)
    ]
    numeric = []
    for place in range(len(names)):
        filled = [cell for row in rows if (cell := row[place].strip())]
        numbers = max(sum(_is_number(cell, mark, proposal.thousands) for cell in filled) for mark in marks)
        numeric.append(2 * numbers > len(filled))
    declared = proposal if "decimal" in said else replace(proposal, decimal=RFC_4180.decimal)
    return Glance(columns=_types(names, numeric), file=declared)


def _is_number(cell: str, decimal: str, thousands: str) -> bool:
    plain = cell.replace(thousands, "") if thousands else cell
    if decimal != ".":
        plain = "" if "." in plain else plain.replace(decimal, ".")
    try:
        float(plain)
    except ValueError:
        return False
    return True
