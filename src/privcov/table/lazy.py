"""Tables that are read as they are computed: lazy polars frames, Arrow datasets and DuckDB relations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from privcov.errors import InputError, InternalError
from privcov.schema import Schema
from privcov.table.arrow import ArrowTable, batch_blocks, check_columns
from privcov.table.base import Table, block_rows
from privcov.table.blocks import Block
from privcov.table.fragments import Held
from privcov.table.plans.arrow import check_dataset
from privcov.table.plans.duckdb import check_relation
from privcov.table.plans.polars import check_lazy_frame


class LazyTable(Table):
    """A lazy polars frame: its query runs when it is read, a batch at a time."""

    def __init__(self, frame: Any, schema: Schema) -> None:
        super().__init__(schema)
        try:
            empty = frame.collect_schema().to_frame(eager=True)
        except Exception:
            raise InputError(
                "E110", "polars refuses the query of the lazy frame.", "Call its collect() to see the reason."
            ) from None
        places = check_columns(empty.to_arrow().schema, schema, "the frame")
        import polars

        # By place: polars takes some names for patterns, "*" for every column and "^a.*$" for those that begin so.
        self._frame = frame.select([polars.nth(place) for place in places])
        check_lazy_frame(self._frame)

    def _blocks(self) -> Iterator[Block]:
        try:
            for frame in self._frames():
                for batch in frame.to_arrow().to_batches():
                    yield from batch_blocks(batch, range(len(self.schema.columns)), self.schema)
        except Exception:
            raise InternalError() from None  # the text of a foreign error may quote a value

    def _frames(self) -> Iterable[Any]:
        if hasattr(self._frame, "collect_batches"):
            frames: Iterable[Any] = self._frame.collect_batches(
                chunk_size=block_rows(self.schema),
                maintain_order=True,  # rows are paired by place
            )
            return frames
        return [self._frame.collect()]  # polars before 1.34


class DatasetTable(Table):
    """A pyarrow dataset, fragment by fragment: its own scanner would hold gigabytes."""

    def __init__(self, dataset: Any, schema: Schema, parts: Sequence[Any] | None = None) -> None:
        super().__init__(schema)
        places = check_columns(dataset.schema, schema, "the dataset")
        self._names = [dataset.schema.names[place] for place in places]
        if parts is None:
            check_dataset(dataset, self._names)
        self._dataset = dataset
        self._parts = parts

    def fragments(self) -> Sequence[Held]:
        parts = [part for fragment in self._dataset.get_fragments() for part in _row_groups(fragment)]
        return [
            Held(place=place, table=DatasetTable(self._dataset, self.schema, [part]))
            for place, part in enumerate(parts)
        ]

    def _blocks(self) -> Iterator[Block]:
        parts = self._dataset.get_fragments() if self._parts is None else self._parts
        try:
            for part in parts:
                batches = part.to_batches(
                    schema=self._dataset.schema,
                    columns=self._names,
                    batch_size=block_rows(self.schema),
                    batch_readahead=1,
                    fragment_readahead=1,
                    use_threads=False,
                )
                for batch in batches:
                    yield from batch_blocks(batch, range(len(self._names)), self.schema)
        except (pa.ArrowException, OSError):
            raise InternalError() from None  # the text of a foreign error may quote a value


class RelationTable(Table):
    """A DuckDB relation: its query runs when it is read, and gives an Arrow stream."""

    def __init__(self, relation: Any, schema: Schema) -> None:
        super().__init__(schema)
        check_relation(relation)
        check_columns(relation.limit(0).to_arrow_table().schema, schema, "the relation")
        self._relation = relation

    def _blocks(self) -> Iterator[Block]:
        yield from ArrowTable(self._relation, self.schema).blocks()


def _row_groups(fragment: Any) -> Sequence[Any]:
    split = getattr(fragment, "split_by_row_group", None)
    return [fragment] if split is None else split()
