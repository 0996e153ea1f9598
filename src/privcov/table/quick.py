"""polars for runs of lines that leave no room for doubt; every other run is read by the rules in ``records.py``.

It halves the time of plain numeric files where polars is installed (``pip install 'privcov[fast]'``), and changes no
cell. A run is taken only if there is one row for each line, every line has the header's number of cells, nothing is
quoted, and polars took every numeric cell for a number. What polars takes for a number is one by our rule and has the
same value, or is a word for NaN or infinity, which is missing by our rule as well. So is NA, which many programs
write: where no column of texts is wanted, polars is told to take it for a missing cell.

The number of cells is a statement about each line, from two facts. No line has too many: polars refuses a run in
which one has, if it reads *every* column (with a projection it does not, so there is none here). No line has too
few: each has a last cell, or else separators in the whole run are as many as there can be, given that no line has
more than its share. A polars that answers otherwise on the cases below is not used.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import cache
from types import ModuleType

import numpy as np
import pyarrow as pa

from privcov.linalg.arrays import Floats
from privcov.schema.dialect import RFC_4180, Dialect

_STEP = 2**17
_BEGINNINGS = frozenset(b"0123456789+-. ,;|\t")
"""How a run may begin: not like a byte order mark or a packed file, which polars would treat in its own way."""


def quick_columns(
    lines: bytes, width: int, places: Sequence[int], numeric: Sequence[bool], dialect: Dialect = RFC_4180
) -> Floats | Sequence[pa.RecordBatch] | None:
    """The columns at ``places`` of whole lines: a matrix where all are numbers, with NaN for what is missing.

    Batches where some are texts; None where the rules must decide.

    >>> print(quick_columns(b"1,2\\n3,4\\n", 2, [1], [True]))
    [[2. 4.]]
    >>> quick_columns(b"1,2\\n3\\n", 2, [1], [True]) is None
    True
    """
    every_cell_a_number = all(numeric) and len(places) == width  # then a quote is refused as none
    if width < 2 or not dialect.plain_numbers or _inherited:
        return None
    if dialect.quote and not every_cell_a_number and dialect.quote.encode() in lines:
        return None
    ascii_only = every_cell_a_number or lines.isascii()
    if not ascii_only or not (lines[0] in _BEGINNINGS or (lines.isascii() and lines[0] != ord("x"))):
        return None
    polars = _polars(dialect.separator)
    return None if polars is None else _read(polars, lines, width, places, numeric, dialect.separator)


_inherited = False
"""Whether this process was forked from one that had polars: a query would wait for threads that are not here."""


def _forked() -> None:
    global _inherited
    _inherited = "polars" in sys.modules


os.register_at_fork(after_in_child=_forked)


def _read(
    polars: ModuleType,
    lines: bytes,
    width: int,
    places: Sequence[int],
    numeric: Sequence[bool],
    separator: str,
) -> Floats | Sequence[pa.RecordBatch] | None:
    kinds = dict.fromkeys(map(str, range(width)), polars.String)
    kinds |= {
        str(place): polars.Float64 if number else polars.String
        for place, number in zip(places, numeric, strict=True)
    }
    try:
        frame = polars.read_csv(
            lines,
            has_header=False,
            quote_char=None,
            schema=kinds,
            separator=separator,
            null_values="NA"
            if all(numeric) and b"A" in lines
            else None,  # a word costs some percent of the time
        )
    except (polars.exceptions.PolarsError, ValueError, TypeError, OSError):
        return None
    except (
        KeyboardInterrupt
    ):  # polars hears Ctrl-C by itself, in any thread; whether it counts is for Python's handler
        return None
    if frame.height != _count(lines, "\n"):
        return None
    in_doubt = frame.get_column(str(width - 1)).null_count() > 0
    if in_doubt and _count(lines, separator) != frame.height * (width - 1):
        return None
    wanted = [str(place) for place in places]
    if frame.columns != wanted:
        frame = frame.select(wanted)
    if all(numeric):
        columns: Floats = frame.to_numpy(order="fortran").T
        return columns
    table: pa.Table = frame.rechunk().to_arrow()
    return table.to_batches()


def _count(lines: bytes, mark: str) -> int:
    """``lines.count(mark)`` in a third of its time, because nothing is looked for step by step."""
    cells, room, found = np.frombuffer(lines, np.uint8), np.empty(_STEP, dtype=bool), 0
    for start in range(0, len(cells), _STEP):
        part = cells[start : start + _STEP]
        found += int(np.count_nonzero(np.equal(part, ord(mark), out=room[: len(part)])))
    return found


@cache
def _polars(separator: str) -> ModuleType | None:
    """polars, if it is installed and reads lines as this module expects."""
    try:
        import polars
    except ImportError:
        return None

    def cells(lines: str, places: Sequence[int] = (0, 1)) -> list[float] | None:
        given = lines.replace(",", separator).encode()
        found = _read(polars, given, 2, places, [True] * len(places), separator)
        return found.T.ravel().tolist() if isinstance(found, np.ndarray) else None

    long, short, many = "4,5,6\n", "3\n", "1,2\n" * 20_000
    ragged = [
        "1,2\n" + short + long + "7,8\n",  # as many separators as there should be, on the wrong lines
        long + short + "1,2\n",
        short + "1,2\n" + long,
        "1,2\n" + short * 2 + "4,5,,\n",
        many + short + many + long,  # also where it reads with several threads
        long + many + short,
    ]
    no_numbers = [
        "1,2\n1 ,2\n",
        "1,2\nNA ,1\n",
        "1,2\n1_0,1\n",
        "1,2\n0x1,2\n",
        '1,2\n"1",2\n',
        '1,2\n1,"2"\n',
    ]
    blank = ["1,2\n\n3,4\n", "\n1,2\n", "1,2\n\n"]
    hard = ["0.1", "5e-324", "1.7976931348623157e308", "9007199254740993", "2.2250738585072011e-308", "-.5"]
    expected = [float(text) for text in hard]
    read = cells("".join(f"{text},{text}\n" for text in hard))
    agrees = (
        all(cells(lines, places) is None for lines in ragged for places in ((0, 1), (1, 0), (0,), (1,)))
        and all(cells(lines) is None for lines in no_numbers + blank)
        and read == [value for value in expected for _ in "12"]
        and repr(cells("1,\n ,2\n1e999,1\nNA,NA\n")) == "[1.0, nan, nan, 2.0, inf, 1.0, nan, nan]"
    )
    return polars if agrees else None
