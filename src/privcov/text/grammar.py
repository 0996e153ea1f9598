"""What a text from outside may be: printable, of a bounded length, and a number only as a closed grammar has it.

A file, a command line, a page and a worker hand in texts. None is turned into a number before its length and its
exponent are known, so that no text of a few bytes becomes an integer of a thousand million digits; and none reaches a
terminal with a character that moves the cursor, hides or turns round what stands beside it. The sizes of the fields of
a file are in docs/reference/release-file.md.
"""

from __future__ import annotations

import re
from fractions import Fraction

MOST_CHARACTERS = 2_000
"""Of the text of an exact number."""
MOST_MAGNITUDE = 300
"""A number that is not zero is between 10 to the power of minus this and 10 to the power of this."""
INTEGER = re.compile(r"0|-?[1-9][0-9]{0,99}")
"""A whole number as files have it: written in one way only, of at most a hundred digits."""

_FRACTION = re.compile(r"[+-]?[0-9]+/[0-9]+")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_DOUBLE = re.compile(r"-?[0-9]{1,17}(?:\.[0-9]{1,21})?(?:e[+-][0-9]{2,3})?")
# Characters that Python calls printable and nobody sees: fillers, a blank of braille, selectors of variants.
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_MOST_ECHOED = 80


def printable(text: str) -> bool:
    """Whether every character can be seen, or is the plain space.

    Letters and signs of every script are. Control characters are not, nor is what turns the direction of writing
    round (U+202A to U+202E, U+2066 to U+2069, U+200E, U+200F), has no width (U+200B to U+200D, U+2060, U+FEFF), is
    half a surrogate pair, for private use, or not assigned in the Unicode version of this Python.

    >>> [printable(text) for text in ("größe (cm)", "\\x1b[2J", "a\\u202eb", "a\\u200bb", "\\ud800")]
    [True, False, False, False, False]
    """
    return text.isprintable() and not _UNSEEN.search(text)


def escaped(text: str) -> str:
    """The text as it may go to a terminal: lines stay lines, and what is not printable becomes its escape.

    >>> print(escaped("age\\x1b[2J\\u202e\\ud800\\nholds"))
    age\\x1b[2J\\u202e\\ud800
    holds
    """
    return text if printable(text) else "".join(map(_escaped, text))


def _escaped(sign: str) -> str:
    return sign if sign == "\n" or printable(sign) else sign.encode("unicode_escape").decode("ascii")


def brief(value: object) -> str:
    """A public parameter as a message echoes it: as it is where it is short, else the beginning and its length.

    >>> brief("0.1"), brief("9" * 5000), brief(10**5000)
    ('0.1', '999999999999… (5000 characters)', 'a number of more than 300 digits')
    """
    if isinstance(value, int) and abs(value) >= 10**MOST_MAGNITUDE:
        return f"a number of more than {MOST_MAGNITUDE} digits"
    try:
        text = str(value)
    except (ValueError, RecursionError):  # Python writes out no integer of more than 4,300 digits
        return "something too long to show"
    return text if len(text) <= _MOST_ECHOED else f"{text[:12]}… ({len(text)} characters)"


def as_given(value: object) -> str:
    """The same where a number is wanted, so that a text with the digits of one is told from it.

    >>> as_given("100"), as_given(Fraction(5, 2)), as_given(-1), as_given(True)
    ("the text '100'", '2.5', '-1', 'True')
    """
    if isinstance(value, str):
        return f"the text {brief(value)!r}"
    return (
        f"{float(value):g}"
        if isinstance(value, Fraction) and abs(value) < 10**MOST_MAGNITUDE
        else brief(value)
    )


def is_fraction(text: str) -> bool:
    """Whether a text is a fraction of two whole numbers, ``1/3``, that are short enough to be read."""
    return len(text) <= MOST_CHARACTERS and _FRACTION.fullmatch(text) is not None


def is_decimal(text: str) -> bool:
    """Whether a text is a decimal, with or without an exponent, that is short enough to be read.

    >>> is_decimal("-1.5e-3"), is_decimal("1e999999999"), is_decimal("1_000"), is_decimal("٣"), is_decimal("nan")
    (True, False, False, False, False)
    """
    return len(text) <= MOST_CHARACTERS and _DECIMAL.fullmatch(text) is not None


def double(text: object) -> float:
    """The double of a text that ``repr`` writes, and of no other text.

    >>> double("0.1"), double("-1e-05"), double("1e+300")
    (0.1, -1e-05, 1e+300)
    """
    if type(text) is not str or len(text) > 26 or not _DOUBLE.fullmatch(text):
        raise ValueError("not a double")
    value = float(text)
    if repr(value) != text:  # 'inf' too: it is not written with digits
        raise ValueError("not a double")
    return value
