"""A run of rows as it goes from a table to the sum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from privcov.linalg.arrays import Floats

Block: TypeAlias = Sequence[Floats] | Floats
"""One float64 array per declared column, all of one length, or a matrix with a row for each. NaN is a missing cell;
a categorical cell is its level's position, and any other number is a level the schema does not list."""


def part_of(block: Block, start: int, stop: int) -> Block:
    """The rows of a block from ``start`` to ``stop``, in the same memory."""
    if isinstance(block, np.ndarray):
        return block[:, start:stop]
    return [cells[start:stop] for cells in block]
