"""pyarrow datasets: files of typed values, read with the types that they have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from privcov.table.plans.steps import Unlisted, walked

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
                _check_cast(own.field(place).type, dataset.schema.field(name).type)


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
