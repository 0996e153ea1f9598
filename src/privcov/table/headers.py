"""The first line of a CSV file: the only part of it that may be refused, because it is public."""

from __future__ import annotations

import codecs
import csv
import io
import os
from pathlib import Path
from typing import NamedTuple

from privcov.errors import InputError
from privcov.table.cells import WHITE_SPACE
from privcov.table.files import regular_file

LONGEST_LINE = 2**20
MOST_COLUMNS = 100_000
_OFTEN_ENOUGH = 2**14
"""What is read of a file first: most headers end in it, and each part of a file looks at the header again."""

_PACKED = {
    b"\x1f\x8b": "gzip",
    b"PK\x03\x04": "zip",
    b"\xfd7zXZ": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
}
_OPEN = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def open_bytes(path: Path) -> io.FileIO:
    """The file, unbuffered; what opens it has made sure that it is a plain one."""
    return io.FileIO(os.open(path, _OPEN))


def read_bytes(file: io.FileIO, count: int) -> bytes:
    """``count`` bytes, fewer only at the end of the file."""
    parts: list[bytes] = []
    while count and (part := file.read(count)):
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def read_header(path: Path, *, then: int) -> tuple[list[str], bytes]:
    """Column names, and up to ``then`` bytes of what follows: for the eyes of the data's keeper only."""
    regular_file(path)
    with open_bytes(path) as file:
        header = header_of(file, path)
        file.seek(header.end)
        return header.names, read_bytes(file, then)


class Header(NamedTuple):
    """Column names, whether CR alone separates records, and where the header ends."""

    names: list[str]
    cr_only: bool
    end: int


def header_of(file: io.FileIO, path: Path) -> Header:
    """The header of a file that is at its start."""
    start = read_bytes(file, _OFTEN_ENOUGH)
    if not any(end in start[:-1] for end in (b"\r", b"\n")):
        start += read_bytes(file, LONGEST_LINE + 2 - len(start))
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
    return Header(names, cr_only, min(end + 1, len(start)))


def _looks_like_utf16(line: bytes) -> bool:
    """Whether every other byte is zero."""
    return len(line) > 1 and (not any(line[1::2]) or not any(line[0::2]))
