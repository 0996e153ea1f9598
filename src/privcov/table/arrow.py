"""Arrow tables and batches, and what gives itself as an Arrow stream and is known not to fail while it is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from privcov.errors import InputError, InternalError
from privcov.schema import Numeric, Schema
from privcov.schema.dialect import RFC_4180, Dialect
from privcov.schema.grid import BLOCK_ROWS
from privcov.table.base import Table, block_rows, check_names, read_columns
from privcov.table.blocks import Block
from privcov.table.cells import cells, check_type


class ArrowTable(Table):
    """Rows that come by ``__arrow_c_stream__``: Arrow tables, polars frames, DuckDB relations, partitions of Spark."""

    def __init__(self, data: Any, schema: Schema) -> None:
        if isinstance(data, pa.RecordBatch):
            data = pa.Table.from_batches([data])
        rows = data.num_rows if isinstance(data, pa.Table) else getattr(data, "height", None)
        super().__init__(schema, known_rows=rows if isinstance(rows, int) else None)
        try:
            self._reader = pa.RecordBatchReader.from_stream(data)
        except Exception:
            raise InputError(
                "E110",
                f"this {type(data).__name__} cannot be converted to Arrow data.",
                "It may have a column of Python objects; store numbers and texts instead.",
            ) from None
        self._places = check_columns(self._reader.schema, schema, "the table")

    def _blocks(self) -> Iterator[Block]:
        try:
            for batch in self._reader:
                yield from batch_blocks(batch, self._places, self.schema)
        except (pa.ArrowException, OSError):
            raise InternalError() from None  # the text of a foreign error may quote a value


def check_columns(found: pa.Schema, schema: Schema, where: str) -> list[int]:
    """Where each declared column stands, once names and types agree with the schema."""
    places = check_names(found.names, schema, where)
    for column, place in zip(read_columns(schema), places, strict=True):
        check_type(column, found.field(place).type, where)
    return places


def batch_blocks(
    batch: pa.RecordBatch, places: Sequence[int], schema: Schema, *, dialect: Dialect = RFC_4180
) -> Iterator[Block]:
    """A batch of any length as blocks; ``places`` says where each declared column stands.

    ``dialect`` says how texts write numbers where they are cells of a file.
    """
    step = block_rows(schema)
    if _all_doubles(batch.schema, places, schema):
        batch, step = batch.select(list(places)), min(step, BLOCK_ROWS)
        for start in range(0, batch.num_rows, step):
            yield batch.slice(start, step).to_tensor(null_to_nan=True, row_major=False).to_numpy().T
        return
    for start in range(0, batch.num_rows, step):
        part = batch.slice(start, step)
        yield [
            cells(column, part.column(place), dialect=dialect, always=schema.file.constant)
            for column, place in zip(read_columns(schema), places, strict=True)
        ]


def _all_doubles(found: pa.Schema, places: Sequence[int], schema: Schema) -> bool:
    """Whether a batch is a matrix: one call then makes a block of it, and threads wait for each other between calls."""
    numeric = all(isinstance(column, Numeric) for column in read_columns(schema))
    return numeric and all(pa.types.is_float64(found.field(place).type) for place in places)
