"""What one cell means. The rules look at one cell and the schema, never at another row.

A number is: white space, a sign, decimal digits with at most one point, an exponent, white space; all but the
digits optional. Everything else (empty, NA, NaN, inf, 0x10, 1_000, "1,5", true, a date) is missing, and so is
a number beyond the range of a double. Text levels are compared byte by byte after trimming ASCII white space.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privcov.bounding import Floats
from privcov.dialect import RFC_4180, Dialect
from privcov.errors import InputError
from privcov.schema import Categorical, Column

UNKNOWN = -1.0
"""The code of a categorical cell whose level the schema does not list."""
WHITE_SPACE = " \t\r\n\v\f"
_NUMBER = r"\A[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?\z"


def check_type(column: Column, kind: pa.DataType, where: str) -> None:
    """Refuse a column whose Arrow type cannot hold what the schema declares."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    types = pa.types
    if types.is_nested(kind) or isinstance(kind, pa.BaseExtensionType) or types.is_run_end_encoded(kind):
        raise InputError(
            "E116",
            f"{where}: column {column.name} has the type {kind}, which is not one plain value per row.",
            "Store plain numbers or texts.",
        )
    number = is_number(kind)
    if not (number or types.is_null(kind) or is_text(kind)):
        raise InputError(
            "E110",
            f"{where}: column {column.name} has the type {kind}, which is neither number nor text.",
            "Turn it into a number, such as days since a date you choose.",
        )
    if number and isinstance(column, Categorical) and not column.numeric_levels:
        raise InputError(
            "E110",
            f"{where}: column {column.name} holds numbers ({kind}), but its levels are texts.",
            "Write the levels as numbers in the schema, or store texts.",
        )


def cells(column: Column, values: pa.Array, *, dialect: Dialect = RFC_4180) -> Floats:
    """The cells of one declared column as a block holds them: numbers or level codes, NaN where missing."""
    if pa.types.is_dictionary(values.type):
        return _by_dictionary(column, values)
    if isinstance(column, Categorical) and not column.numeric_levels:
        return _text_codes(column, values)
    numbers = _numbers(values)
    return codes_of_numbers(column, numbers) if isinstance(column, Categorical) else numbers


def codes_of_numbers(column: Categorical, numbers: Floats) -> Floats:
    """The positions of numeric levels, by equality as doubles."""
    codes = np.full(len(numbers), UNKNOWN)
    for position, level in reversed(list(enumerate(column.levels))):
        codes[numbers == float(level)] = position
    codes[~np.isfinite(numbers)] = np.nan
    return codes


def _by_dictionary(column: Column, values: pa.DictionaryArray) -> Floats:
    """Judge each distinct value once."""
    places = values.indices
    at = _plain(places.fill_null(0)).astype(np.int64)
    dictionary = values.dictionary
    if len(dictionary) > len(at):
        used, at = np.unique(at, return_inverse=True)
        dictionary = dictionary.take(pa.array(np.clip(used, 0, len(dictionary) - 1)))
    meaning = cells(column, dictionary)
    meaning = meaning if len(meaning) else np.array([np.nan])
    found = meaning.take(at, mode="clip")
    if places.null_count:
        found[_plain(places.is_null())] = np.nan
    return found


def _numbers(values: pa.Array) -> Floats:
    kind = values.type
    if pa.types.is_null(kind):
        return np.full(len(values), np.nan)
    if pa.types.is_decimal(kind):
        return _parsed(_text(values.cast(pa.string())))  # Arrow's own cast to double is not correctly rounded
    if is_text(kind):
        return _parsed(_text(values))
    if pa.types.is_boolean(kind):
        values = values.cast(pa.uint8())
    if not values.null_count:
        return _plain(values).astype(np.float64, copy=False)
    numbers = _plain(values.fill_null(pa.scalar(0, values.type))).astype(np.float64)
    numbers[_plain(values.is_null())] = np.nan
    return numbers


def _parsed(text: pa.Array) -> Floats:
    """The number rule on text."""
    try:
        # Accepts, beyond the rule, only words for NaN and infinity: missing either way.
        return _numbers(pc.cast(text, pa.float64()))
    except pa.ArrowInvalid:
        pass
    trimmed = pc.ascii_trim(text, characters=WHITE_SPACE)
    wanted = pc.match_substring_regex(_bytes(trimmed), _NUMBER)
    trimmed = pc.if_else(wanted, trimmed, pa.scalar(None, trimmed.type))
    try:
        return _numbers(pc.cast(trimmed, pa.float64()))
    except pa.ArrowInvalid:
        return np.array([np.nan if cell is None else float(cell) for cell in trimmed.to_pylist()], np.float64)


def _text_codes(column: Categorical, values: pa.Array) -> Floats:
    if pa.types.is_null(values.type):
        return np.full(len(values), np.nan)
    trimmed = _bytes(pc.ascii_trim(_text(values), characters=WHITE_SPACE))
    levels = pa.array([str(level).encode() for level in column.levels], trimmed.type)
    codes = _numbers(pc.index_in(trimmed, value_set=levels))
    codes[np.isnan(codes)] = UNKNOWN
    absent = pc.equal(pc.binary_length(trimmed), 0).fill_null(True)
    codes[_plain(absent)] = np.nan
    return codes


def is_number(kind: pa.DataType) -> bool:
    """Whether Arrow values of this type are numbers; true and false count as 1 and 0."""
    types = pa.types
    return bool(
        types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_boolean(kind)
    )


def is_text(kind: pa.DataType) -> bool:
    """Whether Arrow values of this type are texts or bytes of any length."""
    types = pa.types
    return bool(
        types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_string_view(kind)
        or types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_binary_view(kind)
    )


def _text(values: pa.Array) -> pa.Array:
    """As large_string without a look at the bytes: casting from binary would raise on bad UTF-8."""
    raw = values.cast(pa.large_binary())
    return pa.Array.from_buffers(pa.large_string(), len(raw), raw.buffers(), offset=raw.offset)


def _bytes(text: pa.Array) -> pa.Array:
    return text.cast(pa.large_binary())


def _plain(values: pa.Array) -> NDArray[Any]:
    found: NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return found
