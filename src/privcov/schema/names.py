"""What a column may be called, and how its name is written: in TOML, in formulas, in lists on the command line.

A name is printable text of any alphabet, spaces and punctuation included. Two spellings of one text (an ``ö`` of one
character or of two, white space around it) are one name: names are kept and compared in one form, ``canonical``.

Where names stand among marks, a name that has marks itself goes between backticks, and two backticks inside stand
for one:

>>> quoted("age"), quoted("größe"), quoted("Household Income (USD)"), quoted("a`b")
('age', 'größe', '`Household Income (USD)`', '`a``b`')
>>> split_names("age, `last, first`, sex[F]")
['age', 'last, first', 'sex[F]']
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence

from privcov.errors import InputError
from privcov.text.grammar import printable

LONGEST_NAME = 128
"""Characters of a name, in its canonical form."""
INTERCEPT = "(Intercept)"
"""The name of the constant column, which no other can have."""

QUOTED = r"`(?:[^`]|``)*+`"
"""A pattern: a name between backticks. It never goes back over what it has read, so time is proportional to length."""
RUN = r"[^\s\x00-,/:-@\[-^`{-\x7f]+"
"""A pattern: what needs no backticks, a run of letters, digits, ``_``, ``.`` and ``-`` of any alphabet."""

_RUN, _QUOTED = re.compile(RUN), re.compile(QUOTED)
_LISTED = re.compile(rf"\s*+(?P<name>{QUOTED}|[^,`]*+)\s*+(?:(?P<more>,)|\Z)")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_NAMES_SHOWN = 20
_FAR_TOO_LONG = 8 * LONGEST_NAME


def is_formula(text: str) -> bool:
    """Whether a text is a formula, and not a list of names: it has a ``~`` that belongs to no name.

    >>> is_formula("income ~ age"), is_formula("`a~b`, age")
    (True, False)
    """
    return "~" in _QUOTED.sub("", text)


def canonical(text: str) -> str:
    """The form in which names are compared: without white space around it, in Unicode's composed form.

    >>> canonical(" gro\u0308ße ") == "größe"
    True
    """
    text = text.strip()
    far_from_a_name = (
        len(text) > _FAR_TOO_LONG
    )  # putting thousands of accents on one letter in order takes long
    return text if text.isascii() or far_from_a_name else unicodedata.normalize("NFC", text)


def check_name(name: object) -> str:
    """The name in its canonical form; ``InputError`` where it is none."""
    reason = fault(name)
    if reason is None:
        assert isinstance(name, str)
        return canonical(name)
    shown = f"got {name!a}, which " if len(str(name)) <= 64 else "this one "
    raise InputError(
        "E121",
        f"a column name must have 1 to {LONGEST_NAME} printable characters; {shown}{reason}.",
        "Rename the column.",
    )


def fault(name: object) -> str | None:
    """Why this is no column name, in words that do not repeat it; None where it is one.

    >>> fault("Household Income (USD)"), fault("a\u202eb")
    (None, 'has the character U+202E')
    """
    if not isinstance(name, str):
        return "is not a text"
    if len(name) > _FAR_TOO_LONG:
        return f"has {len(name):,} characters"
    text = canonical(name)
    if not text:
        return "is empty"
    if len(text) > LONGEST_NAME:
        return f"has {len(text)} characters"
    if text == INTERCEPT:
        return "is the name of the constant column"
    strange = next((mark for mark in text if not printable(mark)), None)
    return None if strange is None else f"has the character U+{ord(strange):04X}"


def quoted(name: str) -> str:
    """The name as a formula has it: between backticks where it could be read as something else."""
    plain = _RUN.fullmatch(name) and not name.startswith("-") and name not in ("0", "1", ".")
    return name if plain else "`" + name.replace("`", "``") + "`"


def unquoted(text: str) -> str:
    """The name that a piece of text means, with backticks around it or without."""
    text = canonical(text)
    return canonical(text[1:-1].replace("``", "`")) if text.startswith("`") else text


def listed(names: Sequence[str]) -> str:
    """Declared names for a message: short, and not too many.

    >>> listed(["age", "last, first"]), listed(["x"] * 21)[-15:]
    ('age, `last, first`', 'x, x and 1 more')
    """
    short = [name if len(name) <= 64 else name[:61] + "..." for name in map(quoted, names[:_NAMES_SHOWN])]
    more = len(names) - _NAMES_SHOWN
    return ", ".join(short) + (f" and {more} more" if more > 0 else "")


def split_names(text: str) -> list[str]:
    """Names separated by commas; one that has a comma or a backtick stands between backticks."""
    return [unquoted(piece) for piece in split_list(text)]


def split_list(text: str) -> list[str]:
    """The pieces of such a list as they are written, with their backticks."""
    found: list[str] = []
    at, more = 0, True
    while more:
        match = _LISTED.match(text, at)
        if match is None or not unquoted(match["name"]):
            raise InputError(
                "E161",
                f"column names are separated by single commas, got {text[:200]!r}.",
                "Put a name with a comma or a backtick between backticks: `last, first`.",
            )
        found.append(match["name"].strip())
        at, more = match.end(), match["more"] is not None
    return found


def toml_key(name: str) -> str:
    """The name as a key of a TOML file.

    >>> print(toml_key("age"), toml_key("größe"), toml_key('say "a"'))
    age "größe" "say \\"a\\""
    """
    return name if _BARE_KEY.fullmatch(name) else toml_text(name)


def toml_text(text: str) -> str:
    """A text as a TOML file has it: JSON's escapes are TOML's too, but for one more control."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
