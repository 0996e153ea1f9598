"""pandas data frames, column by column, because a column of arbitrary objects has no Arrow type.

Asking Arrow for the type of such a column looks at every value and raises on some; here its cells are judged
one at a time instead: a number is a number, a text is a text, and anything else is missing. Where levels are
compared as texts, a number is the text that Python writes for it.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from privcov.errors import InputError
from privcov.linalg.arrays import Floats
from privcov.schema import Categorical, Column, Schema
from privcov.table.base import Table, block_rows, check_names
from privcov.table.blocks import Block
from privcov.table.cells import cells, check_type
from privcov.table.fragments import Held, slices

_KINDS = {"f": pa.float64(), "i": pa.int64(), "u": pa.uint64(), "b": pa.bool_()}


class PandasTable(Table):
    """A pandas frame. Its index is ignored."""

    def __init__(self, frame: Any, schema: Schema) -> None:
        if frame.columns.nlevels > 1:
            raise InputError("E112", "the frame has several levels of column names.", "Flatten them to one.")
        places = check_names(frame.columns, schema, "the frame")
        super().__init__(schema, known_rows=len(frame))
        self._frame = frame
        self._series = [frame.iloc[:, place] for place in places]
        for column, series in zip(schema.columns, self._series, strict=True):
            _check_series(column, series)

    def fragments(self) -> Sequence[Held]:
        """Slices of the frame, which share its memory."""
        return [
            Held(place=place, table=PandasTable(self._frame.iloc[start:stop], self.schema))
            for place, (start, stop) in enumerate(slices(len(self._frame), self.schema))
        ]

    def _blocks(self) -> Iterator[Block]:
        step = block_rows(self.schema)
        for start in range(0, self.known_rows or 0, step):
            yield [
                _cells(column, series.iloc[start : start + step])
                for column, series in zip(self.schema.columns, self._series, strict=True)
            ]


def _check_series(column: Column, series: Any) -> None:
    dtype = series.dtype
    if type(dtype).__name__ == "SparseDtype":
        raise InputError("E112", f"column {column.name} is sparse.", "Make it dense.")
    # The type of categories follows from values, and partitions of a cluster may differ in it: no reason to refuse.
    if _holds_objects(dtype) or _is_categorical(dtype):
        return
    try:
        plain = _KINDS.get(dtype.kind) if isinstance(dtype, np.dtype) else None
        kind = pa.array(series.iloc[:0], from_pandas=True).type if plain is None else plain
    except (pa.ArrowException, TypeError, ValueError):
        raise InputError(
            "E110",
            f"column {column.name} has the type {dtype}, which is neither number nor text.",
            "Turn it into numbers or texts.",
        ) from None
    check_type(column, kind, "the frame")


def _cells(column: Column, series: Any) -> Floats:
    if _is_categorical(series.dtype):
        meaning = np.append(object_cells(column, series.cat.categories), np.nan)
        return np.asarray(meaning[series.cat.codes.to_numpy()])  # code -1, missing, is the last
    if _holds_objects(series.dtype):
        return object_cells(column, series)
    if isinstance(series.dtype, np.dtype):
        # Levels compared as texts have the digits of integers: a float would add a point.
        kind = series.dtype.newbyteorder("=") if _as_texts(column) else np.dtype(np.float64)
        return cells(column, pa.array(series.to_numpy().astype(kind, copy=False)))
    values = pa.array(series, from_pandas=True)
    return cells(column, values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values)


def object_cells(column: Column, values: Iterable[object]) -> Floats:
    """Cells of arbitrary Python objects, one at a time."""
    texts: list[bytes | None] = []
    found: list[float] = []
    as_texts = _as_texts(column)
    for value in values:
        number = _as_float(value)
        texts.append(_as_bytes(value) if math.isnan(number) or not as_texts else _digits(value))
        found.append(number)
    judged = cells(column, pa.array(texts, pa.large_binary()))
    if as_texts:
        return judged
    plain = np.array(found, dtype=np.float64)
    return np.where(np.isnan(plain), judged, cells(column, pa.array(plain)))


def _as_texts(column: Column) -> bool:
    return isinstance(column, Categorical) and column.numbers is None


def _digits(value: object) -> bytes | None:
    """A number as text."""
    try:
        return str(value).encode("utf-8", "surrogatepass")
    except Exception:  # a class of someone's own
        return None


def _as_bytes(value: object) -> bytes | None:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    return bytes(value) if isinstance(value, bytes) else None


def _as_float(value: object) -> float:
    if not isinstance(value, numbers.Number | np.bool_) or isinstance(value, complex | np.complexfloating):
        return math.nan
    try:
        return float(value)  # type: ignore[arg-type]
    except Exception:  # an integer beyond the range of a double, or a class of someone's own
        return math.nan


def _holds_objects(dtype: Any) -> bool:
    """Object columns, and texts kept as Python objects, which may hold what UTF-8 cannot."""
    return (isinstance(dtype, np.dtype) and dtype.kind == "O") or getattr(dtype, "storage", None) == "python"


def _is_categorical(dtype: Any) -> bool:
    return type(dtype).__name__ == "CategoricalDtype"
