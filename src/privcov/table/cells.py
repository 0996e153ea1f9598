"""What one cell means. The rules look at one cell and the schema, never at another row. White space around is trimmed.

*Numeric columns.* A number is a sign, decimal digits with at most one point, an exponent; all but the digits optional
(``schema/dialect.py``; files may declare other marks). Everything else (empty, NA, NaN, inf, 0x10, 1_000, "1,5", true,
a date) is missing, and so is a number beyond the range of a double. True and false of a typed column are 1 and 0.

*Levels that are numbers.* If every level stands for a number, no two for the same, and none is written with a zero in
front of other digits, cells are compared as numbers: ``1``, ``1.0``, ``01``, the integer 1 and the float 1.0 are one
level. The words true and false, in any case, stand for 1 and 0, as levels and as cells, and so does a Boolean. A
cell that is no number is missing.

*Other levels* are compared as texts, byte by byte. An empty cell is missing; any other that is no level is an unknown
level, and all zeros. An integer has its decimal digits as text. Columns of floats and Booleans have no text that every
program would write, and are refused. So is a column of integers where a level begins with a zero: it has lost its own.

*Columns of dates.* A date is the text that ``schema/dialect.py`` says, or a value of one of Arrow's types for dates and
times; it is read as seconds since the beginning of 1970. Everything else is missing. Times of a column with a time zone
are those of UTC, as Arrow stores them.

*Missing values* that a schema declares are compared as texts, and as numbers where they are numbers: -999 is also
-999.0 and -9.99e2. In a numeric column every reader's numbers pass ``apply_missing_codes`` once (``Table.blocks``).

Where a dialect is ``constant``, no step is left out because no cell of a column needs it: the same calls are made for
every column of texts, and the numbers are the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privcov.errors import InputError
from privcov.linalg.arrays import Floats
from privcov.schema import Categorical, Column, Numeric
from privcov.schema.columns import Identifier
from privcov.schema.dialect import RFC_4180, WORDS, Dialect, encoded, pattern
from privcov.table.blocks import MISSING, Codes
from privcov.table.moments import is_moment, moments

UNKNOWN = -1.0
"""The code of a categorical cell whose level the schema does not list."""
WHITE_SPACE = " \t\r\n\v\f"
_DECOYS = [None, b"x", b"1234567890.1234567890"]
"""Cells that stand behind every column where timing is constant, so that what Arrow does for a cell that is missing, no
number, or longer than its quickest way to match a pattern allows is always done. They are not handed on."""
_INTEGER = re.compile(r"0|-?[1-9][0-9]*")


def check_type(column: Column | Identifier, kind: pa.DataType, where: str) -> None:
    """Refuse a column whose Arrow type cannot hold what the schema declares."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    types = pa.types
    if types.is_nested(kind) or isinstance(kind, pa.BaseExtensionType) or types.is_run_end_encoded(kind):
        raise InputError(
            "E116",
            f"{where}: column {column.name} has the type {kind}, which is not a single value per row.",
            "Store plain numbers or texts.",
        )
    number = is_number(kind)
    if isinstance(column, Identifier) and not (
        types.is_integer(kind) or types.is_null(kind) or is_text(kind)
    ):
        raise InputError(
            "E181",
            f"{where}: the person's id, {column.name}, has the type {kind}; ids are texts or whole numbers.",
            "Store it as text, or as integers that may be null (Int64 in pandas).",
        )
    if isinstance(column, Numeric) and column.date:
        if not (is_moment(kind) or types.is_null(kind) or is_text(kind)):
            raise InputError(
                "E110",
                f"{where}: column {column.name} has the type {kind}, but its bounds in the schema are dates.",
                "Store dates, or texts such as 2024-12-31.",
            )
        return
    if not (number or types.is_null(kind) or is_text(kind)):
        raise InputError(
            "E110",
            f"{where}: column {column.name} has the type {kind}, which is neither number nor text.",
            "Give it dates as bounds, with feature = false, and derive numbers from it: days(a - b), year(a).",
        )
    if number and isinstance(column, Categorical) and not _can_match(column, kind):
        raise InputError(
            "E110",
            f"{where}: column {column.name} has the type {kind}, which does not match its levels.",
            "Write the levels in the schema with this type, or store the cells as text.",
        )


def _can_match(column: Categorical, kind: pa.DataType) -> bool:
    """Whether a number of this type can be one of the levels, and none has lost a zero that its level begins with."""
    whole, boolean = pa.types.is_integer(kind), pa.types.is_boolean(kind)
    if column.numbers is not None:
        possible = [0.0, 1.0] if boolean else column.numbers
        return any(level in possible and (not whole or level.is_integer()) for level in column.numbers)
    return whole and not column.padded and any(_INTEGER.fullmatch(str(level)) for level in column.levels)


def cells(
    column: Column | Identifier, values: pa.Array, *, dialect: Dialect = RFC_4180, always: bool = True
) -> Floats:
    """The cells of one declared column as a block holds them: numbers or level codes, NaN where missing; or ids.

    ``values`` are an Arrow array of any type that ``check_type`` lets pass; ``dialect`` says how texts of a file
    write numbers, and in which encoding they are. ``always`` is that of ``codes_of_numbers``.

    >>> sex = Categorical(name="sex", levels=("1", "2"), missing_values=("-9",))
    >>> cells(sex, pa.array(["1.0", " 02", "3", "-9", None])).tolist()
    [0.0, 1.0, -1.0, nan, nan]
    """
    if isinstance(column, Identifier):
        return identities(column, values, dialect=dialect)
    if pa.types.is_dictionary(values.type):
        return _by_dictionary(column, values, dialect)
    if isinstance(column, Categorical) and column.numbers is None:
        return _text_codes(column, values, dialect)
    numbers = _meant(column, values, dialect)
    if isinstance(column, Numeric):
        return numbers
    if is_text(values.type) and (dialect.constant or np.isnan(numbers).any()):
        numbers = _with_words(_trimmed(values), numbers, dialect)
    return codes_of_numbers(column, numbers, always=always)


def identities(column: Identifier, values: pa.Array, *, dialect: Dialect = RFC_4180) -> pa.Array:
    """Whose rows these are, as bytes in UTF-8 to be compared one by one; null where there is no id.

    A text without the white space around it, a whole number as its decimal digits. An empty cell is no id, nor is a
    declared missing value.

    >>> identities(Identifier(name="id", missing_values=("NA",)), pa.array([" 07", "7", "", "NA", None])).to_pylist()
    [b'07', b'7', None, None, None]
    """
    if pa.types.is_dictionary(values.type):
        values = _decoded(values)
    if pa.types.is_null(values.type):
        return pa.nulls(len(values), pa.large_binary())
    texts = _trimmed(values if is_text(values.type) else values.cast(pa.string()))
    if dialect.cell_encoding == "latin-1":
        texts = _bytes(pa.array([None if t is None else t.decode("latin-1") for t in texts.to_pylist()]))
    absent = pc.is_in(texts, value_set=pa.array([b"", *column.codes], pa.large_binary()))
    return pc.if_else(absent, pa.scalar(None, pa.large_binary()), texts)


def codes_of_numbers(column: Categorical, numbers: Floats, *, always: bool = True) -> Floats:
    """The positions of levels that are numbers, by equality as doubles.

    Without ``always``, cells that are none of the levels are looked for only if there are any.

    >>> codes_of_numbers(Categorical(name="a", levels=(3, 1, 7)), np.array([7.0, 1.5, 3.0, np.nan, 1e300]))
    array([ 2., -1.,  0., nan, -1.])
    """
    assert column.numbers is not None
    levels, made = column.numbers, np.empty(len(numbers))
    table, least = _table(levels) if _are_near(levels) else (None, 0)
    in_order = _go_up(levels)
    for start in range(0, len(numbers), _CELLS):
        part = np.ascontiguousarray(numbers[start : start + _CELLS])  # it is looked at several times
        codes = made[start : start + _CELLS]
        if not always and in_order and (found := _next(part, levels)) is not None:
            codes[:] = found
            continue
        if table is None:
            codes.fill(UNKNOWN)
            for position, level in reversed(list(enumerate(levels))):
                codes[part == level] = position
            np.copyto(codes, np.nan, where=~np.isfinite(part))
            continue
        with np.errstate(
            invalid="ignore"
        ):  # NaN and what no integer holds become some place, and are no level
            places = (part - least).astype(np.intp)
        table.take(places, out=codes, mode="clip")
        whole = places + float(least) == part
        if always or not whole.all():
            np.copyto(codes, UNKNOWN, where=~whole)
            np.copyto(codes, np.nan, where=~np.isfinite(part))
    return apply_missing_codes(column, numbers, made)


def short_codes(column: Categorical, numbers: Floats, *, always: bool = True) -> Codes:
    """The same as whole numbers, ``MISSING`` for NaN.

    >>> short_codes(Categorical(name="a", levels=(3, 1, 7)), np.array([7.0, 1.5, 3.0, np.nan, 1e300])).tolist()
    [2, -1, 0, -2, -1]
    """
    assert column.numbers is not None
    levels = column.numbers
    made: Codes = np.empty(len(numbers), dtype=np.int16 if len(levels) < 2**15 else np.int32)
    quick = not always and _go_up(levels)  # none of them is a missing value: E142
    for start in range(0, len(numbers), _CELLS):
        part, codes = np.ascontiguousarray(numbers[start : start + _CELLS]), made[start : start + _CELLS]
        if quick and (found := _next(part, levels)) is not None:
            codes[:] = found
        else:
            careful = codes_of_numbers(column, part)
            np.copyto(codes, np.where(np.isnan(careful), MISSING, careful), casting="unsafe")
    return made


def _is_counted(level: float) -> bool:
    """Whether a level is a whole number, and doubles hold the ones before and after it too."""
    return level == int(level) and abs(level) < 2**53


def _are_near(levels: Sequence[float]) -> bool:
    """Whether levels are whole numbers near each other."""
    return max(levels) - min(levels) <= _MOST_SPAN and all(_is_counted(level) for level in levels)


@lru_cache
def _go_up(levels: tuple[float, ...]) -> bool:
    """Whether levels that are whole numbers near each other go up by one."""
    return _are_near(levels) and all(right == left + 1 for left, right in pairwise(levels))


def _next(part: Floats, levels: Sequence[float]) -> Codes | None:
    """The positions of cells that are all among levels that go up by one; None where one is not.

    Whatever becomes of a cell that no integer holds: the first level and a position below the number of levels are
    added exactly, so a cell that is their sum is the level in that position.
    """
    with np.errstate(invalid="ignore"):
        found: Codes = (part - levels[0] if levels[0] else part).astype(np.int16)
    meant = found.astype(np.float64)
    if levels[0]:
        meant += levels[0]
    between = found.view(np.uint16).max(initial=0) < len(levels)  # a negative number is a large one there
    return found if between and bool((meant == part).all()) else None


def _table(levels: Sequence[float]) -> tuple[Floats, int]:
    """Positions of levels that are whole numbers near each other, and the number whose place is the first.

    What is no level is unknown, and so are the first and the last place, where numbers beyond the levels are looked up.
    """
    least = int(min(levels)) - 1
    table = np.full(int(max(levels)) - least + 2, UNKNOWN)
    for position, level in reversed(list(enumerate(levels))):
        table[int(level) - least] = position
    return table, least


_CELLS = 2**14
"""Cells that are compared with levels at once: what comes in between stays in a core's cache."""
_MOST_SPAN = 4_096
"""From the least to the largest of levels that are whole numbers, where positions are looked up in a table."""


def apply_missing_codes(
    column: Column, numbers: Floats, found: Floats | None = None, *, always: bool = True
) -> Floats:
    """``found``, or else the numbers themselves, with NaN where a number is a declared missing value.

    A copy; without ``always``, only if there is such a number.

    >>> apply_missing_codes(Numeric(name="a", lower=0, upper=9, missing_values=("NA", -9)), np.array([1.0, -9.0]))
    array([ 1., nan])
    """
    made = numbers if found is None else found
    for code in column.missing_numbers:
        hit = numbers == code
        if always or hit.any():
            made = np.where(hit, np.nan, made)
    return made


def absent(column: Column, values: pa.Array, *, dialect: Dialect = RFC_4180) -> NDArray[np.bool_]:
    """Which cells say themselves that they are missing: null, NaN, empty, or a declared missing value.

    >>> age = Numeric(name="age", lower=0, upper=99, missing_values=("-9",))
    >>> absent(age, pa.array(["12", "twelve", " ", "-9.0", None])).tolist()
    [False, False, True, True, True]
    """
    if pa.types.is_dictionary(values.type):
        values = _decoded(values)
    if pa.types.is_null(values.type):
        return np.ones(len(values), dtype=bool)
    gone = _plain(values.is_null())
    numbers = _meant(column, values, dialect)
    if is_text(values.type):
        trimmed = _trimmed(values)
        gone = gone | _plain(pc.equal(pc.binary_length(trimmed), 0).fill_null(True))
        texts = [encoded(code, dialect) for code in column.missing_values or () if isinstance(code, str)]
        if known := [text for text in texts if text]:
            gone = gone | _plain(pc.is_in(trimmed, value_set=pa.array(known, trimmed.type)))
    else:
        gone = gone | np.isnan(numbers)
    return np.asarray(gone | np.isin(numbers, column.missing_numbers))


def _by_dictionary(column: Column, values: pa.DictionaryArray, dialect: Dialect) -> Floats:
    """Judge each distinct value once."""
    places = values.indices
    at = _plain(places.fill_null(0)).astype(np.int64)
    dictionary = _held(values.dictionary)
    if len(dictionary) > len(at):
        used, at = np.unique(at, return_inverse=True)
        dictionary = dictionary.take(pa.array(np.clip(used, 0, len(dictionary) - 1)))
    meaning = cells(column, dictionary, dialect=dialect)
    meaning = meaning if len(meaning) else np.array([np.nan])
    found = meaning.take(at, mode="clip")
    if places.null_count:
        found[_plain(places.is_null())] = np.nan
    return found


def _decoded(values: pa.DictionaryArray) -> pa.Array:
    """A value for each cell."""
    return pa.DictionaryArray.from_arrays(values.indices, _held(values.dictionary)).dictionary_decode()


def _held(dictionary: pa.Array) -> pa.Array:
    """The same values where Arrow can take some of them: texts that are views become bytes in one piece."""
    kind = dictionary.type
    views = pa.types.is_string_view(kind) or pa.types.is_binary_view(kind)
    return dictionary.cast(pa.large_binary()) if views else dictionary


def _meant(column: Column, values: pa.Array, dialect: Dialect) -> Floats:
    if isinstance(column, Numeric) and column.date:
        return moments(_trimmed(values) if is_text(values.type) else values, always=dialect.constant)
    return _numbers(values, dialect)


def _numbers(values: pa.Array, dialect: Dialect = RFC_4180) -> Floats:
    kind = values.type
    if pa.types.is_null(kind):
        return np.full(len(values), np.nan)
    if pa.types.is_decimal(kind):
        return _parsed(_text(values.cast(pa.string())))  # Arrow's own cast to double is not correctly rounded
    if is_text(kind):
        return _parsed(_text(values), dialect)
    if pa.types.is_boolean(kind):
        values = values.cast(pa.uint8())
    if not values.null_count and not dialect.constant:
        return _plain(values).astype(np.float64, copy=False)
    numbers = _plain(values.fill_null(pa.scalar(0, values.type))).astype(np.float64)
    numbers[_plain(values.is_null())] = np.nan
    return numbers


def _parsed(text: pa.Array, dialect: Dialect = RFC_4180) -> Floats:
    """The number rule on text."""
    if dialect.constant:
        decoys = pa.array(_DECOYS, pa.large_binary())
        return _by_pattern(pa.concat_arrays([text, _text(decoys)]), dialect)[: -len(_DECOYS)]
    if dialect.decimal == ".":
        try:
            # Accepts, beyond the rule, only words for NaN and infinity: missing either way.
            return _numbers(pc.cast(text, pa.float64()))
        except pa.ArrowInvalid:
            pass
    return _by_pattern(text, dialect)


def _by_pattern(text: pa.Array, dialect: Dialect) -> Floats:
    trimmed = _bytes(pc.ascii_trim(text, characters=WHITE_SPACE))
    wanted = pc.match_substring_regex(trimmed, rf"\A(?:{pattern(dialect)})\z")
    trimmed = pc.if_else(wanted, trimmed, pa.scalar(None, trimmed.type))
    if mark := encoded(dialect.thousands, dialect):
        trimmed = pc.replace_substring(trimmed, pattern=mark, replacement=b"")
    if dialect.decimal != ".":
        trimmed = pc.replace_substring(trimmed, pattern=dialect.decimal.encode("ascii"), replacement=b".")
    try:
        return _numbers(pc.cast(_text(trimmed), pa.float64()), dialect)
    except pa.ArrowInvalid:  # an Arrow that does not cast every number by the rule
        return np.array([np.nan if cell is None else float(cell) for cell in trimmed.to_pylist()], np.float64)


def _with_words(trimmed: pa.Array, numbers: Floats, dialect: Dialect) -> Floats:
    """The numbers, with 1 and 0 where the text is true or false."""
    words = pa.array([word.encode("ascii") for word in WORDS], trimmed.type)
    places = _numbers(pc.index_in(_bytes(pc.ascii_lower(_text(trimmed))), value_set=words), dialect)
    for place, number in enumerate(WORDS.values()):
        numbers = np.where(places == place, number, numbers)
    return numbers


def _text_codes(column: Categorical, values: pa.Array, dialect: Dialect) -> Floats:
    if pa.types.is_null(values.type):
        return np.full(len(values), np.nan)
    trimmed = _trimmed(values if is_text(values.type) else values.cast(pa.string()))
    never = b" "  # in the place of a level that the encoding has no bytes for: no trimmed cell is a space
    levels = [encoded(str(level), dialect) or never for level in column.levels]
    codes = _numbers(pc.index_in(trimmed, value_set=pa.array(levels, trimmed.type)), dialect)
    codes[np.isnan(codes)] = UNKNOWN
    absent = pc.equal(pc.binary_length(trimmed), 0).fill_null(True)
    codes[_plain(absent)] = np.nan
    texts = [encoded(code, dialect) for code in column.missing_values or () if isinstance(code, str)]
    if known_texts := [cell for cell in texts if cell]:
        codes[_plain(pc.is_in(trimmed, value_set=pa.array(known_texts, trimmed.type)))] = np.nan
    if column.missing_numbers:
        codes = apply_missing_codes(column, _parsed(_text(trimmed), dialect), codes)
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


def _trimmed(values: pa.Array) -> pa.Array:
    """Texts as bytes without the white space around them."""
    return _bytes(pc.ascii_trim(_text(values), characters=WHITE_SPACE))


def _bytes(text: pa.Array) -> pa.Array:
    return text.cast(pa.large_binary())


def _plain(values: pa.Array) -> NDArray[Any]:
    found: NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return found
