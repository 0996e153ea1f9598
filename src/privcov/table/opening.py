"""Which reader a table gets. Frames are recognised by what they offer, so no frame library is imported."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from privcov.errors import InputError, without_frames
from privcov.schema import Schema
from privcov.table.arrow import ArrowTable
from privcov.table.base import Chain, Table
from privcov.table.clusters import DaskTable, SparkTable
from privcov.table.csv import CsvTable
from privcov.table.fragments import Piece
from privcov.table.frames import ArrayTable, PandasTable
from privcov.table.lazy import DatasetTable, LazyTable, RelationTable
from privcov.table.parquet import ParquetTable
from privcov.table.persons import PersonTable
from privcov.table.plans import refuse_stream
from privcov.table.sources import regular_file

ENDINGS = re.compile(
    r".*(?:\.(?P<lines>csv|tsv)(\.gz|\.zst)?|\.(?P<parquet>parquet|pq))", re.IGNORECASE | re.DOTALL
)


def open_table(data: Any, schema: Schema) -> Table:
    """A table that fits the schema by name and type, its values still unread.

    ``data`` is a NumPy array (columns in schema order), a pandas or polars frame, an Arrow table or batch, the path
    of a CSV or Parquet file, a list of such paths, or a pattern such as ``"people/*.parquet"``. A lazy polars frame,
    a pyarrow dataset, a DuckDB relation, a Spark or Dask frame is taken where its plan shows that no cell can stop
    its reading (``table/plans``); an Arrow stream never is. Raises ``InputError`` where names, types, files or plans
    do not fit. Where the schema names a person's id, rows are gathered by person (``persons.py``).
    """
    if schema.enforced and schema.person is None:
        raise InputError(
            "E184",
            "this is the schema of a release whose rows were gathered by person; it does not name the column of ids.",
            "Give the schema that the release was made with, or name the column as person.",
        )
    table = _open(data, schema)
    if isinstance(table, PandasTable):
        table.check_categories()
    return table if schema.person is None or table.home is not None else PersonTable(table, schema)


def _open(data: Any, schema: Schema) -> Table:
    if isinstance(data, str | os.PathLike):
        return _open_paths(_matching(data), schema)
    if isinstance(data, list | tuple) and data and all(isinstance(item, str | os.PathLike) for item in data):
        return _open_paths([Path(item) for item in data], schema)
    if isinstance(data, np.ndarray):
        return ArrayTable(data, schema)
    library = type(data).__module__.partition(".")[0]
    if library == "scipy" and hasattr(data, "tocsr"):
        raise InputError("E112", "the matrix is sparse.", "Give it as a dense array: matrix.toarray().")
    if library == "pandas" and hasattr(data, "columns") and hasattr(data, "iloc"):
        return PandasTable(data, schema)
    if library == "polars" and hasattr(data, "collect"):
        return LazyTable(data, schema)
    if library == "pyspark" and hasattr(data, "mapInArrow"):
        return SparkTable(data, schema)
    if library in ("dask", "dask_expr") and hasattr(data, "to_delayed") and hasattr(data, "npartitions"):
        return DaskTable(data, schema)
    if library == "pyarrow" and hasattr(data, "get_fragments"):
        return DatasetTable(data, schema)
    if library in ("duckdb", "_duckdb") and hasattr(data, "sql_query"):
        return RelationTable(data, schema)
    if hasattr(data, "__arrow_c_stream__"):
        return _open_stream(data, library, schema)
    if hasattr(data, "__arrow_c_array__"):
        return _open_array(data, schema)
    raise InputError(
        "E110",
        f"a {type(data).__name__} is not a table.",
        "Give a path, a data frame, an Arrow table or a two-dimensional array.",
    )


def _open_stream(data: Any, library: str, schema: Schema) -> Table:
    """What offers itself as an Arrow stream: taken only from those that are known to hold their rows in memory."""
    import pyarrow as pa

    in_memory = isinstance(data, pa.Table | pa.RecordBatch | pa.ChunkedArray)
    if not in_memory and (library, type(data).__name__) != ("polars", "DataFrame"):
        refuse_stream(data)
    return ArrowTable(data, schema)


def open_partition(data: Any, schema: Schema) -> Table:
    """A partition of a cluster's table, in the worker that has it. Its plan was looked at before anything was paid."""
    import pyarrow as pa

    return ArrowTable(data, schema) if isinstance(data, pa.RecordBatchReader) else _open(data, schema)


def _open_array(data: Any, schema: Schema) -> Table:
    import pyarrow as pa

    try:
        batch = pa.record_batch(data)
    except (pa.ArrowException, TypeError, ValueError):
        raise InputError(
            "E111", "the Arrow array has no columns.", "Give a record batch or a table."
        ) from None
    return ArrowTable(batch, schema)


def _matching(given: str | os.PathLike[str]) -> list[Path]:
    text = os.fspath(given)
    if not isinstance(text, str) or "\0" in text:
        raise InputError("E119", "a path must be a text without a zero byte.", "Check the path.")
    if not os.path.lexists(text) and glob.has_magic(text):
        if found := sorted(glob.glob(text, recursive=True)):
            return [Path(item) for item in found]
        raise InputError("E119", f"no file matches {text}.", "Check the pattern.")
    return [Path(text)]


def _open_paths(paths: Sequence[Path], schema: Schema) -> Table:
    # Whoever looks for a header holds the first bytes of the file, and rows are among them.
    tables = without_frames(lambda: [_reader(path)(path, schema) for path in paths])
    return tables[0] if len(tables) == 1 else Chain(schema, tables)


def open_pieces(pieces: Sequence[Piece], schema: Schema) -> Table:
    """The rows of some runs of files, as a worker opens them; refuses files that are not what was planned."""
    tables = [_reader(path)(path, schema, piece) for piece in pieces for path in (Path(piece.path),)]
    return tables[0] if len(tables) == 1 else Chain(schema, tables)


def _reader(path: Path) -> type[CsvTable] | type[ParquetTable]:
    ending = ENDINGS.fullmatch(path.name)
    if ending is None and not path.is_file():
        regular_file(path)
    if ending is None:
        raise InputError(
            "E118",
            f"{path.name} is not a .csv, .tsv or .parquet file; a .csv or .tsv may be packed as .gz or .zst.",
            "Other formats are refused, above all those that can carry code, such as pickle and npz.",
        )
    return CsvTable if ending["lines"] else ParquetTable
