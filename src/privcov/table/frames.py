"""pandas data frames, column by column, because a column of arbitrary objects has no Arrow type.

Asking Arrow for the type of such a column looks at every value and raises on some; here its cells are judged
one at a time instead: a number is a number, a text is a text, and anything else is missing. Where levels are
compared as texts, a number is the text that Python writes for it.

NumPy arrays: rows are people, and column i is the i-th column of the schema.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privcov.errors import InputError
from privcov.linalg.arrays import Floats
from privcov.schema import Categorical, Column, Numeric, Schema
from privcov.schema.columns import Identifier
from privcov.table.base import Table, block_rows, check_names, read_columns
from privcov.table.blocks import Block, Coded, Codes
from privcov.table.cells import cells, check_type, codes_of_numbers, identities, short_codes
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
        for column, series in zip(read_columns(schema), self._series, strict=True):
            _check_series(column, series)

    def check_categories(self) -> None:
        """Refuse ids that are categories of fractions, truths or times: each would count as no id at all.

        For a whole frame, before anything is paid. Partitions of a cluster may differ in the type of categories.
        """
        for column, series in zip(read_columns(self.schema), self._series, strict=True):
            if (
                isinstance(column, Identifier)
                and _is_categorical(series.dtype)
                and len(series.cat.categories)
            ):
                _check_series(column, series.cat.categories.to_series())

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
                for column, series in zip(read_columns(self.schema), self._series, strict=True)
            ]


def _check_series(column: Column | Identifier, series: Any) -> None:
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


def _cells(column: Column | Identifier, series: Any) -> Floats:
    if isinstance(column, Identifier):
        return _ids(column, series)
    if _is_categorical(series.dtype):
        meaning = np.append(object_cells(column, series.cat.categories), np.nan)
        return np.asarray(meaning[series.cat.codes.to_numpy()])  # code -1, missing, is the last
    if _holds_objects(series.dtype):
        return object_cells(column, series)
    if isinstance(series.dtype, np.dtype) and not (isinstance(column, Numeric) and column.date):
        # Levels compared as texts have the digits of integers: a float would add a point.
        kind = series.dtype.newbyteorder("=") if compared_as_texts(column) else np.dtype(np.float64)
        return cells(column, pa.array(series.to_numpy().astype(kind, copy=False)))
    return np.concatenate([np.empty(0), *(cells(column, run) for run in _runs(series))])


def _runs(series: Any) -> list[pa.Array]:
    """A series as Arrow arrays, one for each of its chunks: put together, their dictionaries may not fit into one.

    Whether they do depends on values: on how many are different, and on whether one of them is null.
    """
    values = pa.array(series, from_pandas=True)
    return values.chunks if isinstance(values, pa.ChunkedArray) else [values]


def _ids(column: Identifier, series: Any) -> Any:
    """Ids of a series: texts, and whole numbers as their digits."""
    if _is_categorical(series.dtype):
        meaning = identities(column, pa.array(map(_id_text, series.cat.categories), pa.large_binary()))
        places = series.cat.codes.to_numpy()
        return meaning.take(pa.array(places, mask=places < 0))
    if _holds_objects(series.dtype):
        return identities(column, pa.array(map(_id_text, series), pa.large_binary()))
    none = pa.array([], pa.large_binary())
    return pa.concat_arrays([none, *(identities(column, run) for run in _runs(series))])


def _id_text(value: object) -> bytes | None:
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    return _digits(value) if whole else _as_bytes(value)


def object_cells(column: Column, values: Iterable[object]) -> Floats:
    """Cells of arbitrary Python objects, one at a time."""
    if isinstance(column, Numeric) and column.date:
        return cells(column, pa.array([_as_moment(value) for value in values], pa.large_binary()))
    texts: list[bytes | None] = []
    found: list[float] = []
    as_texts = compared_as_texts(column)
    for value in values:
        number = _as_float(value)
        texts.append(_as_bytes(value) if math.isnan(number) or not as_texts else _digits(value))
        found.append(number)
    judged = cells(column, pa.array(texts, pa.large_binary()))
    if as_texts:
        return judged
    plain = np.array(found, dtype=np.float64)
    return np.where(np.isnan(plain), judged, cells(column, pa.array(plain)))


def compared_as_texts(column: Column) -> bool:
    """Whether cells are compared with levels as texts."""
    return isinstance(column, Categorical) and column.numbers is None


def _digits(value: object) -> bytes | None:
    """A number as text."""
    try:
        return str(value).encode("utf-8", "surrogatepass")
    except Exception:  # a class of someone's own
        return None


def _as_bytes(value: object) -> bytes | None:
    if isinstance(value, str):
        return str.encode(value, "utf-8", "surrogatepass")  # also of a class of someone's own
    return bytes.join(b"", [value]) if isinstance(value, bytes) else None


def _as_moment(value: object) -> bytes | None:
    """A date or a text as bytes."""
    try:
        return value.isoformat().encode() if isinstance(value, date) else _as_bytes(value)
    except Exception:  # a class of someone's own
        return None


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


_LEAST_ROWS, _CELLS_NEAR = 2**12, 2**18
"""Rows and cells of an array that are looked at again for the sake of levels: so few that they stay near the core."""


class ArrayTable(Table):
    """A two-dimensional numeric array, plain or masked. Do not change it while it is read."""

    def __init__(self, array: NDArray[Any], schema: Schema) -> None:
        if schema.person is not None:
            raise InputError(
                "E180",
                "an array has no column of ids, so its rows cannot be told apart by person.",
                "Give a data frame or a file, or leave person out of the schema.",
            )
        _check(array, schema)
        super().__init__(schema, known_rows=len(array))
        self._array = array if isinstance(array, np.ma.MaskedArray) else np.asarray(array)

    def fragments(self) -> Sequence[Held]:
        """Slices of the array, which share its memory."""
        return [
            Held(place=place, table=ArrayTable(self._array[start:stop], self.schema))
            for place, (start, stop) in enumerate(slices(len(self._array), self.schema))
        ]

    def _blocks(self) -> Iterator[Block]:
        step = block_rows(self.schema)
        plain = self._array.dtype == np.float64 and not isinstance(self._array, np.ma.MaskedArray)
        coded = [p for p, column in enumerate(self.schema.read_columns) if isinstance(column, Categorical)]
        if coded:
            most = min(step, max(_LEAST_ROWS, _CELLS_NEAR // len(self.schema.read_columns)))
            step = max(1, -(-len(self._array) // max(1, -(-len(self._array) // most))))  # in equal parts
        for start in range(0, len(self._array), step):
            part = self._array[start : start + step]
            if not plain:
                yield [self._cells(part, place) for place in range(len(self.schema.read_columns))]
                continue
            yield Coded(part.T, {place: self._codes(part, place) for place in coded}) if coded else part.T

    def _codes(self, part: NDArray[Any], place: int) -> Codes:
        column = self.schema.read_columns[place]
        assert isinstance(column, Categorical)
        return short_codes(column, part[:, place], always=self.schema.file.constant)

    def _cells(self, part: NDArray[Any], place: int) -> Floats:
        column, values = self.schema.read_columns[place], part[:, place]
        if isinstance(values, np.ma.MaskedArray):
            numbers = values.data.astype(np.float64)
            numbers[np.ma.getmaskarray(values)] = np.nan
        else:
            numbers = values.astype(np.float64, copy=False)
        if not isinstance(column, Categorical):
            return numbers
        return codes_of_numbers(column, numbers, always=self.schema.file.constant)


def _check(array: NDArray[Any], schema: Schema) -> None:
    expected = len(schema.read_columns)
    if array.dtype.kind not in "fiub":
        raise InputError(
            "E110",
            f"the array has the type {array.dtype.name}, which is not a real number type.",
            "Convert it to float64, or give a data frame.",
        )
    if array.ndim != 2 or array.shape[1] == 0:
        raise InputError(
            "E111",
            f"the array has {array.ndim} dimensions and {array.shape[-1] if array.ndim else 0} columns.",
            f"Give one row per person and {expected} columns.",
        )
    if array.shape[1] != expected:
        names = ", ".join(column.name for column in schema.read_columns[:20])
        raise InputError(
            "E102",
            f"the array has {array.shape[1]} columns; the schema expects {expected}: {names}.",
            "Put the columns of the array in the order of the schema.",
        )
    for column in schema.read_columns:
        if isinstance(column, Categorical) and column.numbers is None:
            raise InputError(
                "E110",
                f"the array holds numbers, but the levels of {column.name} are texts.",
                "Write the levels as numbers in the schema, or give a data frame.",
            )
        if isinstance(column, Numeric) and column.date:
            raise InputError(
                "E110",
                f"the array holds numbers, but {column.name} is a column of dates.",
                "Give a data frame.",
            )
