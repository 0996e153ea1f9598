"""Dates and times of a column, from texts and from Arrow's types, as seconds since the beginning of 1970.

Which texts are dates says ``schema/dialect.moment``; here the same rule is applied to many cells at once, each by
itself. A moment is the same number whichever type held it: whole seconds exactly, and a fraction that is rounded once.

>>> moments(pa.array(["1970-01-02", "1970-01-01T00:00:00.5Z", "2023-02-29", None])).tolist()
[86400.0, 0.5, nan, nan]
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privcov.linalg.arrays import Floats
from privcov.schema.elementary import DAY

_Whole = NDArray[np.int64]
_Flags = NDArray[np.bool_]
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_LONGEST = 35
"""Characters of a date with a time, nine digits behind the second, and an offset."""
_DAYS = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])


def is_moment(kind: pa.DataType) -> bool:
    """Whether Arrow values of this type are dates, or dates with times."""
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def moments(values: pa.Array, *, always: bool = False) -> Floats:
    """The seconds of each cell, NaN where it is no date; texts must be trimmed.

    Texts without a time take fewer steps, unless ``always``: the same numbers either way.
    """
    kind = values.type
    if pa.types.is_null(kind):
        return np.full(len(values), np.nan)
    gone = values.is_null().to_numpy(zero_copy_only=False)
    if not is_moment(kind):
        return np.where(gone, np.nan, _of_texts(values.cast(pa.large_binary()), always=always))
    if pa.types.is_date32(kind):
        return np.where(gone, np.nan, _whole(values.cast(pa.int32())) * DAY)
    units = _PER_SECOND["ms" if pa.types.is_date64(kind) else kind.unit]
    counts = _whole(values.cast(pa.int64()))
    return np.where(gone, np.nan, counts // units + counts % units / float(units))


def _whole(values: pa.Array) -> _Whole:
    made: _Whole = values.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    return made


def _of_texts(values: pa.Array, *, always: bool) -> Floats:
    _, offsets, data = values.buffers()
    ends = np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values) + 1]
    content = np.frombuffer(b"" if data is None else data, np.uint8)
    text = _Text(np.append(content, np.zeros(_LONGEST, np.uint8)), ends[:-1], np.diff(ends))
    days, fine = _days(text)
    seconds, part = days * int(DAY), np.zeros(len(days))
    late = text.lengths > 10
    if always or late.any():
        clock, part, right = _clock(text)
        seconds, part = seconds + np.where(late, clock, 0), np.where(late, part, 0.0)
        fine = fine & (right | ~late)
    return np.where(fine, seconds + part, np.nan)


class _Text:
    """Cells as bytes in one run; a digit of a cell is asked for by its place in it."""

    def __init__(self, content: NDArray[np.uint8], starts: _Whole, lengths: _Whole) -> None:
        self._content, self._starts, self.lengths = content, starts, lengths

    def marks(self, place: int | _Whole) -> NDArray[np.uint8]:
        return self._content[self._starts + place]

    def number(self, first: int | _Whole, count: int) -> tuple[_Whole, _Flags]:
        """A number of so many digits, and where it is one."""
        digits = [self.marks(first + place) - np.uint8(ord("0")) for place in range(count)]
        made, fine = np.zeros(len(self.lengths), np.int64), np.ones(len(self.lengths), bool)
        for digit in digits:
            made = made * 10 + digit
            fine &= digit <= 9
        return made, fine


def _days(text: _Text) -> tuple[_Whole, _Flags]:
    """The days since the beginning of 1970 of the first ten characters, and where they are a date."""
    (year, one), (month, two), (day, three) = text.number(0, 4), text.number(5, 2), text.number(8, 2)
    fine = one & two & three & (text.lengths >= 10) & (text.lengths <= _LONGEST)
    fine &= (text.marks(4) == ord("-")) & (text.marks(7) == ord("-"))
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    longest = _DAYS[np.clip(month, 0, 12)] + (leap & (month == 2))
    fine &= (year >= 1) & (month <= 12) & (day >= 1) & (day <= longest)
    # From the first of March, so that a leap day is the last of its year.
    since = year - (month <= 2)
    of_year = (153 * (month + np.where(month > 2, -3, 9)) + 2) // 5 + day - 1
    return 365 * since + since // 4 - since // 100 + since // 400 + of_year - 719_468, fine


def _clock(text: _Text) -> tuple[_Whole, Floats, _Flags]:
    """Seconds and the fraction of one behind the first ten characters, the offset taken off; and where it is a time."""
    at = np.clip(text.lengths, 6, _LONGEST)
    zulu, tail = text.marks(at - 1) == ord("Z"), text.marks(at - 6)
    shifted = ((tail == ord("+")) | (tail == ord("-"))) & (text.lengths >= 22) & ~zulu
    (hours, one), (minutes, two) = text.number(at - 5, 2), text.number(at - 2, 2)
    well = one & two & (text.marks(at - 3) == ord(":")) & (hours <= 23) & (minutes <= 59)
    fine = well | ~shifted
    end = text.lengths - zulu - 6 * shifted  # where the time ends, and what says its zone begins
    (hour, one), (minute, two), (second, three) = text.number(11, 2), text.number(14, 2), text.number(17, 2)
    fine &= one & two & ((text.marks(10) == ord("T")) | (text.marks(10) == ord(" ")))
    fine &= (text.marks(13) == ord(":")) & (hour <= 23) & (minute <= 59)
    exact = end > 16
    fine &= ~exact | (three & (second <= 59) & (text.marks(16) == ord(":")))
    fine &= (end == 16) | (end == 19) | ((end >= 21) & (end <= 29) & (text.marks(19) == ord(".")))
    nanos = np.zeros(len(end), np.int64)
    for place in range(9):
        digit = text.marks(20 + place) - np.uint8(ord("0"))
        inside = end > 20 + place
        fine &= ~inside | (digit <= 9)
        nanos = nanos * 10 + np.where(inside, digit, 0)
    back = np.where(tail == ord("-"), -1, 1) * (hours * 60 + minutes) * shifted
    seconds = (hour * 60 + minute - back) * 60 + np.where(exact, second, 0)
    return seconds, nanos / 1e9, fine
