"""polars for blocks of CSV lines that leave no room for doubt; every other block is read by the rules in ``csv.py``.

It halves the time of plain numeric files where polars is installed (``pip install 'privcov[fast]'``), and changes no
cell: a block is accepted only if every line has the header's number of cells, nothing is quoted, and polars took
every numeric cell for a number. What polars takes for a number is one by our rule and has the same value, or is a
word for NaN or infinity, which is missing by our rule as well. A polars that answers otherwise is not used.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from types import ModuleType

import numpy as np
import pyarrow as pa

from privcov.bounding import Floats

_STEP = 2**17
_BEGINNINGS = frozenset(b"0123456789+-. ,")
"""How a block may begin: not like a byte order mark or a packed file, which polars would treat in its own way."""


def quick_columns(
    lines: bytes, width: int, places: Sequence[int], numeric: Sequence[bool]
) -> Floats | Sequence[pa.RecordBatch] | None:
    """The columns at ``places`` of whole lines: a matrix where all are numbers, with NaN for what is missing.

    Batches where some are texts; None where the rules must decide.

    >>> print(quick_columns(b"1,2\\n3,4\\n", 2, [1], [True]))
    [[2. 4.]]
    >>> quick_columns(b"1,2\\n3\\n", 2, [1], [True]) is None
    True
    """
    every_cell_a_number = all(numeric) and len(places) == width  # then a quote is refused as none
    if width < 2 or lines[0] not in _BEGINNINGS or not (every_cell_a_number or b'"' not in lines):
        return None
    if not all(numeric) and not lines.isascii():
        return None
    polars = _polars()
    return None if polars is None else _read(polars, lines, width, places, numeric)


def _read(
    polars: ModuleType,
    lines: bytes,
    width: int,
    places: Sequence[int],
    numeric: Sequence[bool],
) -> Floats | Sequence[pa.RecordBatch] | None:
    kinds = dict.fromkeys(map(str, range(width)), polars.String)
    kinds |= {
        str(place): polars.Float64 if number else polars.String
        for place, number in zip(places, numeric, strict=True)
    }
    some = None if len(places) == width else sorted(places)
    try:
        frame = polars.read_csv(lines, has_header=False, quote_char=None, schema=kinds, columns=some)
    except (polars.exceptions.PolarsError, ValueError, TypeError):
        return None
    # One row per line, and no line with too many cells. None has too few if every one has a last cell, or else if
    # commas are as many as can be.
    last = str(width - 1)
    in_doubt = last not in frame.columns or frame.get_column(last).null_count() > 0
    if in_doubt and _commas(lines) != frame.height * (width - 1):
        return None
    wanted = [str(place) for place in places]
    if frame.columns != wanted:
        frame = frame.select(wanted)
    if all(numeric):
        columns: Floats = frame.to_numpy(order="fortran").T
        return columns
    table: pa.Table = frame.rechunk().to_arrow()
    return table.to_batches()


def _commas(lines: bytes) -> int:
    cells, room, found = np.frombuffer(lines, np.uint8), np.empty(_STEP, dtype=bool), 0
    for start in range(0, len(cells), _STEP):
        part = cells[start : start + _STEP]
        found += int(np.count_nonzero(np.equal(part, ord(","), out=room[: len(part)])))
    return found


@cache
def _polars() -> ModuleType | None:
    """polars, if it is installed and reads lines as this module expects."""
    try:
        import polars
    except ImportError:
        return None

    def cells(lines: bytes) -> list[float] | None:
        found = _read(polars, lines, 2, [0, 1], [True, True])
        return found.T.ravel().tolist() if isinstance(found, np.ndarray) else None

    refused = [
        b"1,2\n3\n4,5,6\n7,8\n",
        b"1,2\n\n3,4\n",
        b"1,2\n1 ,2\n",
        b"1,2\nNA,1\n",
        b"1,2\n1_0,1\n",
        b"1,2\n0x1,2\n",
        b'1,2\n"1",2\n',
        b'1,2\n1,"2"\n',
    ]
    hard = ["0.1", "5e-324", "1.7976931348623157e308", "9007199254740993", "2.2250738585072011e-308", "-.5"]
    expected = [float(text) for text in hard]
    read = cells("".join(f"{text},{text}\n" for text in hard).encode())
    agrees = (
        all(cells(lines) is None for lines in refused)
        and read == [value for value in expected for _ in "12"]
        and repr(cells(b"1,\n ,2\n1e999,1\n")) == "[1.0, nan, nan, 2.0, inf, 1.0]"
    )
    return polars if agrees else None
