"""How the bytes of a text table are to be read: what ``[file]`` in a schema says. Public, and never guessed.

``privcov schema init`` proposes a dialect from the header line alone; the person who fills in the template confirms
it. A frame or a Parquet file has typed values and needs none of this, so the same schema serves both.

>>> Dialect(separator=";", decimal=",").words()
{'separator': ';', 'decimal': ','}

What text is a number, in cells of a file and in a schema: one rule, for every reader.

A number is a sign, decimal digits with at most one decimal mark, and an exponent; all but the digits optional. Where a
dialect has a thousands mark, it may stand between groups of digits before the decimal mark: exactly three in every
group but the first, which has one to three. A number without any such mark is one too. Everything else is none, and so
is a number beyond the range of a double.

>>> german = Dialect(separator=";", decimal=",", thousands=".")
>>> [number(text, german) for text in ("1.234,5", "1234,5", "12.34", "1.5")]
[1234.5, 1234.5, None, None]
>>> [meaning(text) for text in ("01", "1.0", "TRUE", "no")]
[1.0, 1.0, 1.0, None]

What text is a date: ``2024-12-31``, or with a time behind ``T`` or a blank: ``18:30``, ``18:30:05``, ``18:30:05.25``,
and then ``Z`` or an offset such as ``+02:00``. It is the number of seconds since the beginning of 1970; without an
offset, by the clock of the text. Anything else is no date, and so is a day that no calendar has.

>>> [moment(text) for text in ("1970-01-02", "1970-01-01T02:00+02:00", "2023-02-29", "1/2/2023")]
[86400.0, 0.0, None, None]
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, fields
from datetime import date
from functools import cache
from typing import Any

from privcov.errors import InputError

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
"""What may stand between cells, with its name in a message."""
ENCODINGS = ("utf-8", "latin-1", "utf-16")
_CHOICES: dict[str, tuple[str, ...]] = {
    "separator": tuple(SEPARATORS),
    "decimal": (".", ","),
    "thousands": ("", ",", ".", " ", "'", "\u00a0", "\u202f"),
    "quote": ('"', "'", ""),
    "encoding": ENCODINGS,
    "line_end": ("lf", "cr"),
    "timing": ("quick", "constant"),
}


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """The dialect of a file of lines. The default is what RFC 4180 has: commas, double quotes, UTF-8.

    ``separator`` stands between cells. ``decimal`` is the mark before the fraction of a number, and ``thousands``
    the mark between groups of three digits, none by default: a number that has marks in other places is missing.
    ``quote`` surrounds cells that hold a separator; with ``""`` quotes are ordinary characters. ``encoding`` is
    ``utf-8`` (with or without a byte order mark), ``latin-1``, or ``utf-16`` (which must have the mark).

    Records end with ``line_end``: ``lf``, a CR before which belongs to it, or ``cr``, as in old Macintosh files.
    It is declared because a file cannot tell: in a file of CRs, a first record that begins with LF would decide it
    for all others. ``timing`` is ``quick``, where runs of lines that leave no room for doubt are read in a quicker
    way, or ``constant``, where every line is read in the careful way and every row takes every step of bounding, so
    that time and memory tell less of odd ones: of rows of any table, typed ones too, where bounding is concerned.
    """

    separator: str = ","
    decimal: str = "."
    thousands: str = ""
    quote: str = '"'
    encoding: str = "utf-8"
    line_end: str = "lf"
    timing: str = "quick"

    def __post_init__(self) -> None:
        for word, allowed in _CHOICES.items():
            if getattr(self, word) not in allowed:
                known = ", ".join(repr(choice) for choice in allowed)
                raise InputError(
                    "E140", f"[file] {word} must be one of {known}; got {getattr(self, word)!r}."
                )
        if self.decimal == self.thousands:
            raise InputError(
                "E140", f"[file] decimal and thousands are both {self.decimal!r}.", "They must differ."
            )
        if not self.quote and self.separator in (self.decimal, self.thousands):
            raise InputError(
                "E140",
                f"[file] {self.separator!r} separates cells and is a mark within numbers, but no quote is declared.",
                "Declare the quote that surrounds such numbers.",
            )

    @classmethod
    def from_dict(cls, given: Any) -> Dialect:
        """The dialect that a ``[file]`` table says."""
        known = [field.name for field in fields(cls)]
        if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
            raise InputError("E140", "[file] must hold texts only.", f"Known: {', '.join(known)}.")
        for word in given:
            if word not in known:
                raise InputError(
                    "E140", f"[file] has an unknown word {word!r}.", f"Known: {', '.join(known)}."
                )
        return cls(**given)

    def words(self) -> dict[str, str]:
        """What departs from the default, as ``[file]`` says it."""
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if getattr(self, field.name) != field.default
        }

    def sentence(self) -> str:
        """What departs from the default, for a person; empty where nothing does.

        >>> Dialect(separator=";", decimal=",", encoding="latin-1").sentence()
        'cells separated by semicolons, decimal comma, latin-1'
        """
        marks = {",": "comma", ".": "point", " ": "blank", "'": "apostrophe"}
        marks |= {"\u00a0": "no-break blank", "\u202f": "narrow blank"}
        said = {
            "separator": f"cells separated by {SEPARATORS[self.separator]}s",
            "decimal": f"decimal {marks[self.decimal]}",
            "thousands": f"thousands set apart by a {marks.get(self.thousands)}",
            "quote": "single quotes" if self.quote else "no quotes",
            "encoding": self.encoding,
            "line_end": "records end with CR",
            "timing": "constant timing",
        }
        return ", ".join(said[word] for word in self.words())

    @property
    def constant(self) -> bool:
        """Whether every line takes the same path."""
        return self.timing == "constant"

    @property
    def plain_numbers(self) -> bool:
        """Whether numbers are written as programs write them: a point, and no marks between digits."""
        return self.decimal == "." and not self.thousands

    @property
    def cell_encoding(self) -> str:
        """The encoding of cells once records are apart: UTF-16 is turned into UTF-8 before that."""
        return "latin-1" if self.encoding == "latin-1" else "utf-8"


RFC_4180 = Dialect()
"""Commas, double quotes, UTF-8."""

WORDS = {"true": 1.0, "false": 0.0}
"""What the words for yes and no stand for, in any case, where a level is looked for."""


def encoded(text: str, dialect: Dialect) -> bytes | None:
    """The text as the bytes of a cell; None where the encoding has no such character, so that no cell can be it."""
    try:
        return text.encode(dialect.cell_encoding)
    except UnicodeEncodeError:
        return None


@cache
def pattern(dialect: Dialect) -> str:
    """A regular expression that the whole of a trimmed cell matches if it is a number: for bytes, in plain ASCII."""
    point, mark = _escaped(dialect.decimal, dialect), _escaped(dialect.thousands, dialect)
    whole = f"(?:[0-9]{{1,3}}(?:{mark}[0-9]{{3}})+|[0-9]+)" if mark else "[0-9]+"
    return f"[+-]?(?:{whole}(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]+)?"


def number(text: str, dialect: Dialect = RFC_4180) -> float | None:
    """The number that a trimmed text is; None where it is none."""
    cell = encoded(text, dialect)
    if cell is None or not re.fullmatch(pattern(dialect).encode("ascii"), cell):
        return None
    plain = text.replace(dialect.thousands, "") if dialect.thousands else text
    found = float(plain.replace(dialect.decimal, "."))
    return found if math.isfinite(found) else None


def meaning(text: str) -> float | None:
    """The number that a level stands for: itself, or 1 and 0 for the words true and false."""
    return WORDS.get(text.lower(), number(text))


_MOMENT = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"(?:[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?(?:Z|([+-])([0-9]{2}):([0-9]{2}))?)?"
)
_EPOCH = date(1970, 1, 1).toordinal()


def moment(text: str) -> float | None:
    """The seconds since the beginning of 1970 that a trimmed text is; None where it is no date."""
    match = _MOMENT.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    fraction, sign, hours, minutes = match.groups()[6:]
    off = 60 * int(hours or 0) + int(minutes or 0)
    if hour > 23 or max(minute, second, int(minutes or 0)) > 59 or int(hours or 0) > 23:
        return None
    try:
        days = date(year, month, day).toordinal() - _EPOCH
    except ValueError:
        return None
    seconds = ((days * 24 + hour) * 60 + minute - (-off if sign == "-" else off)) * 60 + second
    return float(seconds) + (int(fraction) / 10 ** len(fraction) if fraction else 0.0)


def moment_text(seconds: float) -> str:
    """A date as a schema writes it: without a time where it is the beginning of a day.

    >>> moment_text(86400.0), moment_text(86399.5)
    ('1970-01-02', '1970-01-01T23:59:59.5')
    """
    days, rest = divmod(seconds, 86_400.0)
    day = date.fromordinal(int(days) + _EPOCH).isoformat()
    if not rest:
        return day
    whole, fraction = divmod(rest, 1.0)
    clock = f"{int(whole) // 3600:02d}:{int(whole) // 60 % 60:02d}:{int(whole) % 60:02d}"
    return f"{day}T{clock}" + (f"{fraction:.9f}".rstrip("0")[1:] if fraction else "")


def _escaped(mark: str, dialect: Dialect) -> str:
    """A mark as the bytes it has in a cell; nothing where the encoding lacks it."""
    return "".join(f"\\x{byte:02x}" for byte in encoded(mark, dialect) or b"")
