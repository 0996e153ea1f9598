"""What text is a number, in cells of a file and in a schema: one rule, for every reader.

A number is a sign, decimal digits with at most one decimal mark, and an exponent; all but the digits optional. Where a
dialect has a thousands mark, it may stand between groups of digits before the decimal mark: exactly three in every
group but the first, which has one to three. A number without any such mark is one too. Everything else is none, and so
is a number beyond the range of a double.

>>> from privcov.schema.dialect import Dialect
>>> german = Dialect(separator=";", decimal=",", thousands=".")
>>> [number(text, german) for text in ("1.234,5", "1234,5", "12.34", "1.5")]
[1234.5, 1234.5, None, None]
>>> [meaning(text) for text in ("01", "1.0", "TRUE", "no")]
[1.0, 1.0, 1.0, None]
"""

from __future__ import annotations

import math
import re
from functools import cache

from privcov.schema.dialect import RFC_4180, Dialect

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


def _escaped(mark: str, dialect: Dialect) -> str:
    """A mark as the bytes it has in a cell; nothing where the encoding lacks it."""
    return "".join(f"\\x{byte:02x}" for byte in encoded(mark, dialect) or b"")
