"""A run of rows as it goes from a table to the sum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from privcov.linalg.arrays import Floats

Block: TypeAlias = Sequence[Floats] | Floats
"""One float64 array per declared column, all of one length, or a matrix with a row for each. NaN is a missing cell;
a categorical cell is its level's position, and any other number is a level the schema does not list. Where a schema
names a person's id, blocks of readers have one array more, the ids as bytes; what ``open_table`` hands out has none."""


Codes: TypeAlias = NDArray[np.signedinteger[Any]]
MISSING = -2
"""The code, as a whole number, of a categorical cell that is missing; -1 is that of an unknown level."""


class Coded(Sequence[Floats]):
    """A block whose numbers lie in a matrix as they came, row by row, beside the codes of its columns with levels.

    ``matrix`` has a row for each column. Those of columns with codes are not looked at. Codes are whole numbers, the
    same that a block has, and ``MISSING`` where a cell is missing: an eighth or a quarter of the memory.
    """

    def __init__(self, matrix: Floats, codes: Mapping[int, Codes]) -> None:
        self.matrix, self.codes = matrix, codes

    def __len__(self) -> int:
        return len(self.matrix)

    @overload
    def __getitem__(self, place: int) -> Floats: ...

    @overload
    def __getitem__(self, place: slice) -> list[Floats]: ...

    def __getitem__(self, place: int | slice) -> Floats | list[Floats]:
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(len(self)))]
        return floats_of(self.codes[place]) if place in self.codes else self.matrix[place]

    def part(self, start: int, stop: int | None) -> Coded:
        """The rows from ``start`` to ``stop``, in the same memory."""
        return Coded(
            self.matrix[:, start:stop], {place: cells[start:stop] for place, cells in self.codes.items()}
        )

    def whole(self) -> Floats:
        """The block as one matrix, in memory of its own."""
        made = np.array(self.matrix, order="K")
        for place, cells in self.codes.items():
            made[place] = floats_of(cells)
        return made


def height(block: Block) -> int:
    """The number of rows."""
    return int(block.matrix.shape[1]) if isinstance(block, Coded) else len(block[0])


def floats_of(codes: Codes) -> Floats:
    """Codes as a block has them.

    >>> floats_of(np.array([0, 3, -1, -2])).tolist()
    [0.0, 3.0, -1.0, nan]
    """
    return np.where(codes == MISSING, np.nan, codes)


def taken(block: Block, columns: Sequence[int], order: NDArray[np.intp], *, room: Floats) -> Block:
    """Some columns of a block, with its rows in another order: in ``room``, as long as that is left alone.

    Rows that lie one after the other are moved whole, since that takes hardly longer than one of their cells.
    """
    matrix, codes = (block.matrix, block.codes) if isinstance(block, Coded) else (block, {})
    if isinstance(matrix, np.ndarray) and abs(matrix.strides[0]) < abs(matrix.strides[1]):
        rows = room[: matrix.size].reshape(matrix.shape[::-1])
        np.take(matrix.T, order, axis=0, out=rows, mode="clip")
        for place in codes.keys() & set(columns):
            rows[:, place] = floats_of(codes[place]).take(order)
        run = slice(columns[0], columns[-1] + 1)
        return rows.T[run] if len(columns) == run.stop - run.start else [rows.T[place] for place in columns]
    made = room[: len(columns) * len(order)].reshape(len(columns), len(order))
    for place, cells in zip(columns, made, strict=True):
        np.take(block[place], order, out=cells, mode="clip")
    return made
