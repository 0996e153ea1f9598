"""A run of rows as it goes from a table to the sum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from privcov.linalg.arrays import Floats

Block: TypeAlias = Sequence[Floats] | Floats
"""One float64 array per declared column, all of one length, or a matrix with a row for each. NaN is a missing cell;
a categorical cell is its level's position, and any other number is a level the schema does not list. Where a schema
names a person's id, blocks of readers have one array more, the ids as bytes; what ``open_table`` hands out has none."""


def taken(block: Block, columns: Sequence[int], order: NDArray[np.intp], *, room: Floats) -> Block:
    """Some columns of a block, with its rows in another order: in ``room``, as long as that is left alone.

    Rows that lie one after the other are moved whole, since that takes hardly longer than one of their cells.
    """
    if isinstance(block, np.ndarray) and abs(block.strides[0]) < abs(block.strides[1]):
        rows = room[: block.size].reshape(block.shape[::-1])
        np.take(block.T, order, axis=0, out=rows, mode="clip")
        run = slice(columns[0], columns[-1] + 1)
        return rows.T[run] if len(columns) == run.stop - run.start else [rows.T[place] for place in columns]
    made = room[: len(columns) * len(order)].reshape(len(columns), len(order))
    for place, cells in zip(columns, made, strict=True):
        np.take(block[place], order, out=cells, mode="clip")
    return made
