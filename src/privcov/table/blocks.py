"""A run of rows as it goes from a table to the sum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from privcov.linalg.arrays import Floats

Block: TypeAlias = Sequence[Floats] | Floats
"""One float64 array per declared column, all of one length, or a matrix with a row for each. NaN is a missing cell;
a categorical cell is its level's position, and any other number is a level the schema does not list. Where a schema
names a person's id, blocks of readers have one array more, the ids as bytes; what ``open_table`` hands out has none."""
