"""Tables that are read as they are computed: lazy polars frames, Arrow datasets and DuckDB relations.

pyarrow datasets: files of typed values, read with the types that they have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from privcov.errors import InputError, InternalError
from privcov.schema import Schema
from privcov.table.arrow import ArrowTable, batch_blocks, check_columns
from privcov.table.base import Table, block_rows, read_columns
from privcov.table.blocks import Block
from privcov.table.fragments import Held
from privcov.table.plans import Unlisted, check_lazy_frame, check_relation, walked


class LazyTable(Table):
    """A lazy polars frame: its query runs when it is read, a batch at a time."""

    def __init__(self, frame: Any, schema: Schema) -> None:
        super().__init__(schema)
        try:
            empty = frame.collect_schema().to_frame(eager=True)
            kinds = empty.to_arrow().schema
        except Exception:
            raise InputError(
                "E110",
                "polars refuses the query of the lazy frame, or it has a column of a type that Arrow does not have.",
                "Call its collect().to_arrow() to see the reason.",
            ) from None
        places = check_columns(kinds, schema, "the frame")
        import polars

        # By place: polars takes some names for patterns, "*" for every column and "^a.*$" for those that begin so.
        self._frame = frame.select([polars.nth(place) for place in places])
        check_lazy_frame(self._frame)

    def _blocks(self) -> Iterator[Block]:
        try:
            for frame in self._frames():
                for batch in frame.to_arrow().to_batches():
                    yield from batch_blocks(batch, range(len(read_columns(self.schema))), self.schema)
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
        yield from ArrowTable(self._relation, self.schema).read_blocks()


def _row_groups(fragment: Any) -> Sequence[Any]:
    split = getattr(fragment, "split_by_row_group", None)
    return [fragment] if split is None else split()


_TYPED = ("ParquetFileFormat", "IpcFileFormat", "FeatherFileFormat", "OrcFileFormat")


def check_dataset(dataset: Any, names: Sequence[str]) -> None:
    """Refuse a dataset whose files ``check_files`` does not list."""
    walked(
        "the dataset",
        lambda: check_files(dataset, names),
        remedy="Give dataset.to_table(), or the paths of CSV or Parquet files, which cannot fail so.",
    )


def check_files(dataset: Any, names: Sequence[str]) -> None:
    """Parquet, Feather and ORC files whose declared columns have the dataset's types, or narrower ones.

    Where the types differ the values are cast while they are read. A column that a file lacks is null or comes from the
    file's path. Rows in memory are not listed, because a dataset does not tell a table from a stream.
    """
    kind = type(dataset).__name__
    if kind == "UnionDataset":
        for child in dataset.children:
            check_files(child, names)
    elif kind != "FileSystemDataset":
        raise Unlisted("rows in memory")
    for fragment in dataset.get_fragments():
        if (form := type(fragment.format).__name__) not in _TYPED:
            raise Unlisted(f"{form.removesuffix('FileFormat')} files")
        own = fragment.physical_schema
        for name in names:
            if (place := own.get_field_index(name)) >= 0:
                found = own.field(place).type
                if form == "ParquetFileFormat" and pa.types.is_dictionary(found):
                    _check_places(found.index_type)
                if form == "OrcFileFormat" and pa.types.is_timestamp(found):
                    raise Unlisted(
                        "times in an ORC file"
                    )  # Arrow stops at those that nanoseconds cannot hold
                _check_cast(found, dataset.schema.field(name).type)


def _check_places(kind: pa.DataType) -> None:
    """Refuse a dictionary whose places were narrower than those that Arrow reads, and may not hold all of its words."""
    if _digits(kind) < _digits(pa.int32()):
        raise Unlisted("a dictionary in a Parquet file with few places for its words")


def _check_cast(source: pa.DataType, target: pa.DataType) -> None:
    """Refuse a cast of Arrow, which raises on a value that it cannot keep, unless it can keep every value."""
    kinds = pa.types
    texts = kinds.is_string(source) and kinds.is_large_string(target)
    if source == target or kinds.is_null(source) or texts or _digits(source) <= _room(source, target):
        return
    raise Unlisted(f"a cast from {source} to {target}")


def _digits(kind: pa.DataType) -> float:
    """The binary digits of the numbers of a type; infinite where it has none or they are no whole numbers."""
    if pa.types.is_integer(kind):
        return float(kind.bit_width - pa.types.is_signed_integer(kind))
    return float(kind.bit_width) if pa.types.is_floating(kind) else float("inf")


def _room(source: pa.DataType, target: pa.DataType) -> float:
    """The digits that a type keeps of another one's numbers."""
    kinds = pa.types
    if kinds.is_floating(target):
        return float(
            target.bit_width if kinds.is_floating(source) else {32: 24, 64: 53}.get(target.bit_width, 0)
        )
    if kinds.is_integer(source) and (kinds.is_signed_integer(target) or kinds.is_unsigned_integer(source)):
        return _digits(target) if kinds.is_integer(target) else 0.0
    return 0.0
