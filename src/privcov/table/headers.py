"""The first line of a file of lines: the only part of it that may be refused, because it is public."""

from __future__ import annotations

import codecs
import csv
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from privcov.errors import InputError
from privcov.schema.dialect import RFC_4180, Dialect
from privcov.table import records
from privcov.table.cells import WHITE_SPACE
from privcov.table.sources import Source, source_of

MOST_COLUMNS = 100_000
_OFTEN_ENOUGH = 2**14
"""What is read of a file first: most headers end in it, and each part of a file looks at the header again."""

_PACKED = {
    b"\x1f\x8b": ("gzip", "Name it .csv.gz"),
    b"\x28\xb5\x2f\xfd": ("zstd", "Name it .csv.zst"),
    b"PK\x03\x04": ("zip", "Unpack it first"),
    b"\xfd7zXZ": ("xz", "Unpack it first"),
}


def dialect_of(path: Path, dialect: Dialect) -> Dialect:
    """The declared dialect; the name ``.tsv`` (packed or not) says that tabs separate cells where nothing else is said.

    >>> dialect_of(Path("people.tsv.gz"), RFC_4180).separator
    '\\t'
    """
    endings = [ending.lower() for ending in path.suffixes[-2:]]
    return replace(dialect, separator="\t") if ".tsv" in endings and dialect.separator == "," else dialect


def read_header(path: Path, *, then: int, dialect: Dialect = RFC_4180) -> tuple[list[str], bytes]:
    """Column names, and up to ``then`` bytes of what follows: for the eyes of the data's keeper only."""
    dialect = dialect_of(path, dialect)
    source = source_of(path, dialect)
    header = header_of(source, dialect)
    return header.names, source.beginning(header.end + then)[header.end :]


class Header(NamedTuple):
    """Column names, and where the header ends."""

    names: list[str]
    end: int


def line_end_of(dialect: Dialect) -> bytes:
    """The byte with which records end."""
    return b"\r" if dialect.line_end == "cr" else b"\n"


def header_of(source: Source, dialect: Dialect) -> Header:
    """The header of a file, read by its dialect."""
    name = source.path.name
    start = source.beginning(_OFTEN_ENOUGH)
    if line_end_of(dialect) not in start:
        start = source.beginning(records.LONGEST_LINE + 2)
    for magic, (packing, remedy) in _PACKED.items():
        if start.startswith(magic):
            raise InputError("E117", f"{name} is a {packing} file.", f"{remedy}.")
    if start.startswith(b"PAR1\x15"):
        raise InputError("E118", f"{name} is a Parquet file.", "Give it a name that ends in .parquet.")
    begin = len(codecs.BOM_UTF8) if start.startswith(codecs.BOM_UTF8) else 0
    line_end = line_end_of(dialect)
    end = start.find(line_end)
    if end < 0:
        end = len(start)
    if end - begin > records.LONGEST_LINE:
        raise InputError("E113", f"the header of {name} is longer than 1 MiB.", "Check how it was written.")
    line = start[begin:end]  # from here on only the header is looked at
    if line_end == b"\n":
        line = line.removesuffix(b"\r")
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or _looks_like_utf16(line):
        raise InputError(
            "E105", f"{name} is UTF-16 text.", 'Say so in the schema: [file] encoding = "utf-16".'
        )
    if not line.strip():
        raise InputError("E101", f"{name} has no header: its first line is empty.", "Add column names.")
    if b"\r" in line:
        raise InputError(
            "E134",
            f"the first line of {name} holds a carriage return.",
            'If records end with it, say so in the schema: [file] line_end = "cr".',
        )
    if b"\0" in line:
        raise InputError("E106", f"the header of {name} has a zero byte.", "Check how it was written.")
    try:
        text = line.decode(dialect.cell_encoding)
    except UnicodeDecodeError:
        raise InputError(
            "E105",
            f"the header of {name} is not UTF-8 text.",
            'Save it as UTF-8, or say in the schema: [file] encoding = "latin-1".',
        ) from None
    if dialect.quote and text.count(dialect.quote) % 2:
        raise InputError("E107", f"the header of {name} has a quote that is not closed.", "Close it.")
    if text.count(dialect.separator) >= MOST_COLUMNS:
        raise InputError("E113", f"{name} has more than {MOST_COLUMNS} columns.", "Split it.")
    return Header(_names(text, dialect), min(end + 1, len(start)))


def _names(text: str, dialect: Dialect) -> list[str]:
    limit = csv.field_size_limit(records.LONGEST_LINE)
    try:
        reader = csv.reader(
            [text],
            delimiter=dialect.separator,
            quotechar=dialect.quote or None,
            quoting=csv.QUOTE_MINIMAL if dialect.quote else csv.QUOTE_NONE,
        )
        return [name.strip(WHITE_SPACE) for name in next(reader)]
    finally:
        csv.field_size_limit(limit)


def _looks_like_utf16(line: bytes) -> bool:
    """Whether every other byte is zero."""
    return len(line) > 1 and (not any(line[1::2]) or not any(line[0::2]))
