"""The schema template that ``privcov schema init`` writes: names and types, every bound blank."""

from __future__ import annotations

import re
from collections.abc import Mapping

from privcov.errors import InputError

_NUMBER = re.compile(r"[+-]?[\d.]+(e[+-]?\d+)?", re.IGNORECASE)

_HEAD = """\
# Public facts about the table. Fill in every blank FROM PUBLIC KNOWLEDGE: a codebook, a law, common sense.
# Bounds read off the data are not private: publishing them would give away the extreme persons.
# Values outside the bounds are clipped, so choose generous but sensible ones; wide bounds mean more noise.

intercept = true            # adds the constant column: count and means come with the release
missing = "midpoint"        # a missing cell counts as the middle of its bounds; or "zero-row"
# missing_values = ["NA", -999]   # optional: what else means "missing", in the whole table or in a column
max_rows_per_person = 1     # how many rows one person can have; multiplies the noise
# row_norm_bound = 1.5      # optional, in scaled units; default: no row is ever clipped
"""


def template(types: Mapping[str, str]) -> str:
    """TOML text with one table per column; it cannot be read back until the blanks are filled."""
    if any(_NUMBER.fullmatch(name) for name in types):  # a template is public: no value may get into it
        raise InputError(
            "E101",
            "the first line looks like a row of data: one of its names is a number.",
            "Put the column names on the first line of the file.",
        )
    parts = [_HEAD]
    for name, kind in types.items():
        heading = (
            f"[columns.{name}]" if name.replace("_", "").replace("-", "").isalnum() else f'[columns."{name}"]'
        )
        blanks = (
            "lower =                     # the least value possible\n"
            "upper =                     # the greatest value possible\n"
            if kind == "numeric"
            else 'levels =                    # every value to count, such as ["no", "yes"]; others: zeros\n'
        )
        parts.append(f"\n{heading}\n{blanks}")
    return "".join(parts)
