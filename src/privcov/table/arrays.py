"""NumPy arrays: rows are people, and column i is the i-th column of the schema."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcov.errors import InputError
from privcov.linalg.arrays import Floats
from privcov.schema import Categorical, Numeric, Schema
from privcov.table.base import Table, block_rows
from privcov.table.blocks import Block
from privcov.table.cells import codes_of_numbers
from privcov.table.fragments import Held, slices


class ArrayTable(Table):
    """A two-dimensional numeric array, plain or masked. Do not change it while it is read."""

    def __init__(self, array: NDArray[Any], schema: Schema) -> None:
        _check(array, schema)
        super().__init__(schema, known_rows=len(array))
        self._array = array if isinstance(array, np.ma.MaskedArray) else np.asarray(array)

    def fragments(self) -> Sequence[Held]:
        """Slices of the array, which share its memory."""
        return [
            Held(place=place, table=ArrayTable(self._array[start:stop], self.schema))
            for place, (start, stop) in enumerate(slices(len(self._array), self.schema))
        ]

    def _blocks(self) -> Iterator[Block]:
        step = block_rows(self.schema)
        plain = self._array.dtype == np.float64 and not isinstance(self._array, np.ma.MaskedArray)
        as_it_is = plain and all(isinstance(column, Numeric) for column in self.schema.columns)
        for start in range(0, len(self._array), step):
            part = self._array[start : start + step]
            yield (
                part.T
                if as_it_is
                else [self._cells(part, place) for place in range(len(self.schema.columns))]
            )

    def _cells(self, part: NDArray[Any], place: int) -> Floats:
        column, values = self.schema.columns[place], part[:, place]
        if isinstance(values, np.ma.MaskedArray):
            numbers = values.data.astype(np.float64)
            numbers[np.ma.getmaskarray(values)] = np.nan
        else:
            numbers = values.astype(np.float64, copy=False)
        return codes_of_numbers(column, numbers) if isinstance(column, Categorical) else numbers


def _check(array: NDArray[Any], schema: Schema) -> None:
    expected = len(schema.columns)
    if array.dtype.kind not in "fiub":
        raise InputError(
            "E110",
            f"the array has the type {array.dtype.name}, which is not a real number type.",
            "Convert it to float64, or give a data frame.",
        )
    if array.ndim != 2 or array.shape[1] == 0:
        raise InputError(
            "E111",
            f"the array has {array.ndim} dimensions and {array.shape[-1] if array.ndim else 0} columns.",
            f"Give one row per person and {expected} columns.",
        )
    if array.shape[1] != expected:
        names = ", ".join(column.name for column in schema.columns[:20])
        raise InputError(
            "E102",
            f"the array has {array.shape[1]} columns; the schema expects {expected}: {names}.",
            "Put the columns of the array in the order of the schema.",
        )
    for column in schema.columns:
        if isinstance(column, Categorical) and column.numbers is None:
            raise InputError(
                "E110",
                f"the array holds numbers, but the levels of {column.name} are texts.",
                "Write the levels as numbers in the schema, or give a data frame.",
            )
