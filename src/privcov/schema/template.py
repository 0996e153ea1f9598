"""The schema template that ``privcov schema init`` writes: names, types and dialect, every bound blank."""

from __future__ import annotations

import re
from collections.abc import Mapping

from privcov.errors import InputError
from privcov.schema.dialect import RFC_4180, Dialect
from privcov.schema.names import toml_key, toml_text

_NUMBER = re.compile(r"[+-]?[.,]*\d[\d.,]*(e[+-]?\d+)?", re.IGNORECASE)

_HEAD = """\
# Public facts about the table. Fill in every blank FROM PUBLIC KNOWLEDGE: a codebook, a law, common sense.
# Bounds read off the data are not private: publishing them would give away the extreme persons.
# Values outside the bounds are clipped, so choose generous but sensible ones; wide bounds mean more noise.

intercept = true            # adds the constant column: count and means come with the release
missing = "zero-row"        # a row with a missing cell is left out; "none" if no cell is missing
# missing_values = ["NA", -999]   # optional: what else means "missing", in the whole table or in a column
max_rows_per_person = 1     # how many rows one person can have; multiplies the noise
# person = "id"             # optional: the column that says whose row it is; further rows are then dropped
# exhaustive = true         # optional, beside levels: every row has one of them; less noise. Then also say
# otherwise = "LEVEL"       # which of the levels any other cell counts as
# row_norm_bound = 1.5      # optional, in scaled units; default: no row is ever clipped
# ignore_extra = true       # optional: the table has more columns; delete here what nobody will ask about
"""
_FILE = """
[file]                      # how the file is written: PROPOSED FROM ITS HEADER LINE ALONE, confirm it
"""
_DECIMAL_COMMA = """\
# decimal = ","             # remove the # in front if numbers are written 1,5; with a wrong mark they count as missing
"""
_BLANKS = {
    "numeric": "lower =                     # the least value possible\n"
    "upper =                     # the greatest value possible\n",
    "date": 'lower =                     # the first date possible, such as "2020-01-01"\n'
    "upper =                     # the last date possible\n"
    'feature = false             # numbers of it go under [derived]: year = "year(admitted)", stay = "days(b - a)"\n',
    "text": 'levels =                    # every value to count, such as ["no", "yes"]; others: zeros\n',
}


def template(types: Mapping[str, str], file: Dialect = RFC_4180) -> str:
    """TOML text with one table per column; it cannot be read back until the blanks are filled.

    ``types`` says of every name whether its column looks ``numeric``, like a ``date`` or like ``text``; ``file`` is
    written where it departs from the default. A decimal comma that nobody has declared is only suggested, where
    semicolons separate cells.
    """
    if any(_NUMBER.fullmatch(name) for name in types):  # a template is public: no value may get into it
        raise InputError(
            "E101",
            "the first line looks like a row of data: one of its names is a number.",
            "Put the column names on the first line of the file.",
        )
    parts = [_HEAD]
    if words := file.words():
        parts += [_FILE, *(f"{word} = {toml_text(mark)}\n" for word, mark in words.items())]
        if file.separator == ";" and file.decimal == RFC_4180.decimal:
            parts.append(_DECIMAL_COMMA)
    for name, kind in types.items():
        parts.append(f"\n[columns.{toml_key(name)}]\n{_BLANKS[kind]}")
    return "".join(parts)
