"""What a record of a file of lines is: the rule, one line at a time. Everything faster is compared with it.

A record is a line. Its cells are what stands between separators; a cell may be quoted as a whole, and inside quotes
two of them stand for one. A line that does not follow this, that has another number of cells than the header, or
that is longer than a mebibyte is a record whose cells are all missing. Nothing here sees a second line.

Why: docs/decisions/0003-csv-records.md. What follows from it: docs/proofs/readers.md.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from privcov.schema.dialect import Dialect

LONGEST_LINE = 2**20
"""Bytes of a line, without its end."""


def cells_of(line: bytes, width: int, dialect: Dialect) -> list[bytes] | None:
    """The cells of one line; None where it is not a record of ``width`` cells.

    >>> cells_of(b'1,"a ""b"", c",', 3, Dialect())
    [b'1', b'a "b", c', b'']
    >>> cells_of(b'1,a"b', 2, Dialect()) is None, cells_of(b"1", 2, Dialect()) is None
    (True, True)
    """
    separator, quote = dialect.separator.encode(), dialect.quote.encode()
    if len(line) > LONGEST_LINE:
        return None
    cells: list[bytes] = []
    at = 0
    while True:
        if quote and line.startswith(quote, at):
            text, end = b"", at
            while True:  # from quote to quote; another quote right behind is part of the text
                close = line.find(quote, end + 1)
                if close < 0:
                    return None
                text += line[end + 1 : close]
                end = close + 1
                if not line.startswith(quote, end):
                    break
                text += quote
            cells.append(text)
        else:
            found = line.find(separator, at)
            end = len(line) if found < 0 else found
            cells.append(line[at:end])
            if quote and quote in cells[-1]:
                return None
        if end == len(line):
            return cells if len(cells) == width else None
        if not line.startswith(separator, end):
            return None
        at = end + 1


def columns_by_rule(lines: bytes, width: int, places: Sequence[int], dialect: Dialect) -> pa.RecordBatch:
    """The columns at ``places``, as bytes, by the rule alone: slow, and right by definition."""
    records = [cells_of(line, width, dialect) for line in lines.split(b"\n")[:-1]]
    columns = [
        pa.array([None if cells is None else cells[place] for cells in records], pa.binary())
        for place in places
    ]
    return pa.RecordBatch.from_arrays(columns, names=[str(place) for place in places])
