"""Readers: the same integers from every source, public refusals before a value, silence after."""

from __future__ import annotations

import datetime
import decimal
import gzip
import io
import math
import os
import pickle
import tracemalloc
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
import scipy.sparse

import privcov.table.records as records_module
import privcov.table.sources as sources_module
from privcov.errors import InputError, InternalError
from privcov.schema import Schema
from privcov.schema.dialect import RFC_4180
from privcov.schema.grid import Grid
from privcov.summing.engines import Local
from privcov.summing.sum import sum_rows
from privcov.table import headers, open_table
from privcov.table.cells import UNKNOWN
from privcov.table.fragments import Arrived
from privcov.table.headers import read_header
from privcov.table.parquet import read_kinds
from privcov.table.quick import quick_columns

AB = Schema.from_dict({"columns": {"a": {"lower": 0, "upper": 10}, "b": {"lower": 0, "upper": 10}}})
ONE = Schema.from_dict({"columns": {"a": {"lower": 0, "upper": 10}}})
SEX = Schema.from_dict({"columns": {"s": {"levels": ["F", "M"]}}})
CODE = Schema.from_dict({"columns": {"k": {"levels": [1, 2.5]}}})
NAN = math.nan
MIXED = Schema.from_dict(
    {
        "columns": {
            "a": {"lower": 0, "upper": 10},
            "s": {"levels": ["F", "M"]},
            "b": {"lower": -1, "upper": 1},
            "k": {"levels": [1, 2.5]},
        },
        "row_norm_bound": 1.9,
    }
)


def cells_of(data: Any, schema: Schema) -> list[list[float]]:
    """One list per declared column; what bounding takes for missing is NaN."""
    columns: list[list[float]] = [[] for _ in schema.columns]
    for block in open_table(data, schema).blocks():
        for column, cells in zip(columns, block, strict=True):
            column.extend(float(cell) if math.isfinite(cell) else NAN for cell in cells)
    return columns


def same(found: Iterable[float], expected: Iterable[float]) -> bool:
    """Equal, where a NaN equals a NaN."""
    pairs = list(zip(found, expected, strict=True))
    return all(f == e or (math.isnan(f) and math.isnan(e)) for f, e in pairs)


def gram_of(data: Any, schema: Schema, engine: Any = None) -> list[int]:
    return list(
        sum_rows(open_table(data, schema), schema, Grid.of(schema), engine=engine).reveal_to_mechanism()
    )


def written(folder: Path, content: bytes, name: str = "data.csv") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def ended_by_cr(schema: Schema) -> Schema:
    return replace(schema, file=replace(schema.file, line_end="cr"))


def csv_cells(folder: Path, content: bytes, schema: Schema = AB) -> list[tuple[float, ...]]:
    """Records in the order of the file."""
    return list(zip(*cells_of(written(folder, content), schema), strict=True))


# --- the same integers from every source ---------------------------------------------------------------


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    random = np.random.default_rng(0)
    n = 5_000
    a = random.normal(5, 4, n)
    a[random.random(n) < 0.05] = np.nan
    return pd.DataFrame(
        {
            "a": a,
            "s": random.choice(["F", "M", " F ", "x", "é"], n),
            "b": random.normal(0, 1, n),
            "k": random.choice([1, 2.5, 3.0], n),
        }
    )


@pytest.fixture(scope="module")
def sources(frame: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("sources")
    frame.to_csv(folder / "all.csv", index=False)
    (folder / "crlf.csv").write_bytes((folder / "all.csv").read_bytes().replace(b"\n", b"\r\n"))
    (folder / "cr.csv").write_bytes((folder / "all.csv").read_bytes().replace(b"\n", b"\r"))
    quoted = frame.astype(str).replace("nan", "")
    (folder / "quoted.csv").write_text(quoted.to_csv(index=False, quoting=1))
    frame.to_parquet(folder / "all.parquet", row_group_size=700)
    for part in range(3):
        frame.iloc[part::3].to_parquet(folder / f"part{part}.parquet")
    table = pa.Table.from_pandas(frame, preserve_index=False)
    views = table.set_column(1, "s", table["s"].cast(pa.string_view()))
    return {
        "pandas": frame,
        "pandas objects": frame.astype(object),
        "pandas categories": frame.astype({"s": "category", "k": "category"}),
        "pandas extension types": frame.convert_dtypes(),
        "pandas Arrow types": frame.convert_dtypes(dtype_backend="pyarrow"),
        "pandas shuffled": frame.sample(frac=1, random_state=1)[["k", "b", "s", "a"]],
        "polars": pl.from_pandas(frame),
        "polars categories": pl.from_pandas(frame).with_columns(pl.col("s").cast(pl.Categorical)),
        "arrow": table,
        "arrow batch": table.combine_chunks().to_batches()[0],
        "arrow dictionary": table.set_column(1, "s", table["s"].dictionary_encode()),
        "arrow views": views,
        "arrow large text": table.set_column(1, "s", table["s"].cast(pa.large_string())),
        "arrow text numbers": table.set_column(
            0, "a", pa.array([repr(x) if x == x else "" for x in frame["a"]])
        ),
        "csv": folder / "all.csv",
        "csv as text path": str(folder / "all.csv"),
        "csv CRLF": folder / "crlf.csv",
        "csv CR": folder / "cr.csv",
        "csv quoted": folder / "quoted.csv",
        "parquet": folder / "all.parquet",
        "parquet list": [folder / f"part{part}.parquet" for part in (2, 0, 1)],
        "parquet pattern": str(folder / "part*.parquet"),
    }


SOURCES = [
    "pandas objects", "pandas categories", "pandas extension types", "pandas Arrow types", "pandas shuffled",
    "polars", "polars categories", "arrow", "arrow batch", "arrow dictionary", "arrow views",
    "arrow large text", "arrow text numbers", "csv", "csv as text path", "csv CRLF", "csv CR", "csv quoted",
    "parquet", "parquet list", "parquet pattern",
]  # fmt: skip


@pytest.mark.parametrize("source", SOURCES)
def test_every_source_gives_the_same_integers(sources: dict[str, Any], source: str) -> None:
    schema = ended_by_cr(MIXED) if source == "csv CR" else MIXED
    assert gram_of(sources[source], schema) == gram_of(sources["pandas"], MIXED)


@pytest.mark.parametrize("source", ["parquet", "parquet list", "parquet pattern", "csv", "polars"])
def test_two_threads_give_the_same_integers(sources: dict[str, Any], source: str) -> None:
    assert gram_of(sources[source], MIXED, engine=Local(workers=2)) == gram_of(sources["pandas"], MIXED)


@pytest.mark.parametrize("chunk", [97, 1_000, 33_333])
def test_the_size_of_a_read_does_not_change_a_bit(
    sources: dict[str, Any], chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources_module, "CHUNK_BYTES", chunk)
    for number, source in enumerate(("csv", "csv CRLF", "csv CR", "csv quoted")):
        some = sources[source].read_bytes()[: min(20_000, 60 * chunk)]  # many reads, and no more than that
        start = some.rpartition(b"\r" if source == "csv CR" else b"\n")[0]
        path = written(tmp_path, start, f"{number}.csv")
        schema = ended_by_cr(MIXED) if source == "csv CR" else MIXED
        count = sum(len(block[0]) for block in open_table(path, schema).blocks())
        assert gram_of(path, schema) == gram_of(sources["pandas"][:count], MIXED)


def test_duckdb_tables_are_tables(frame: pd.DataFrame) -> None:
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.execute("create table people as select * from frame").fetchall()
    assert gram_of(connection.table("people"), MIXED) == gram_of(frame, MIXED)


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "Fortran order": np.asfortranarray,
    "negative stride": lambda x: np.ascontiguousarray(x[::-1])[::-1],
    "every other": lambda x: np.repeat(np.repeat(x, 2, axis=0), 2, axis=1)[::2, ::2],
    "byte-swapped": lambda x: x.astype(">f8"),
    "read-only": lambda x: np.frombuffer(x.tobytes()).reshape(x.shape),
    "long double": lambda x: x.astype(np.longdouble),
    "subclass": lambda x: x.view(type("Odd", (np.ndarray,), {})),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_layout_of_an_array_does_not_matter(layout: str) -> None:
    array = np.random.default_rng(0).normal(5, 4, (3_000, 2))
    assert gram_of(LAYOUTS[layout](array), AB) == gram_of(array, AB)


@pytest.mark.parametrize("kind", ["float16", "float32", "int8", "uint8", "int64", "uint64", "bool"])
@pytest.mark.parametrize("how", ["array", "pandas", "polars", "arrow"])
def test_narrow_and_integer_types_convert_exactly(kind: str, how: str) -> None:
    array = np.array([[0, 1], [3, 7], [1, 9]]).astype(kind)
    expected = [list(map(float, column)) for column in array.astype(float).T]
    frames = {
        "array": lambda: array,
        "pandas": lambda: pd.DataFrame(array, columns=["a", "b"]),
        "polars": lambda: pl.DataFrame(
            array.astype("float32") if kind == "float16" else array, schema=["a", "b"]
        ),
        "arrow": lambda: pa.table({"a": array[:, 0], "b": array[:, 1]}),
    }
    assert cells_of(frames[how](), AB) == expected


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.int8(), pa.uint64(), pa.bool_(), pa.null()])
def test_arrow_nulls_are_missing_in_every_type(kind: pa.DataType) -> None:
    values = [None, None] if pa.types.is_null(kind) else [np.float16(1), None]
    values = [True, None] if pa.types.is_boolean(kind) else values
    expected = [NAN, NAN] if pa.types.is_null(kind) else [1.0, NAN]
    assert same(cells_of(pa.table({"a": pa.array(values, kind)}), ONE)[0], expected)


def test_integers_beyond_double_precision_become_the_nearest_double(tmp_path: Path) -> None:
    numbers = [2**53 + 1, 2**63 - 1, 2**64 - 1]
    nearest = [float(n) for n in numbers]
    assert cells_of(pa.table({"a": pa.array(numbers, pa.uint64())}), ONE) == [nearest]
    text = "a\n" + "\n".join(map(str, numbers)) + "\n"
    assert cells_of(written(tmp_path, text.encode()), ONE) == [nearest]


@pytest.mark.parametrize(
    "kind", [pa.decimal32(9, 2), pa.decimal64(18, 4), pa.decimal128(38, 5), pa.decimal256(76, 9)]
)
def test_decimals_become_the_nearest_double(kind: pa.DataType) -> None:
    values = [decimal.Decimal("123.45"), None, decimal.Decimal("-0.07")]
    assert same(cells_of(pa.table({"a": pa.array(values, kind)}), ONE)[0], [123.45, NAN, -0.07])


def test_masked_cells_are_missing() -> None:
    masked = np.ma.array([[1.0, 2.0], [3.0, 4.0]], mask=[[0, 1], [0, 0]])
    found = cells_of(masked, AB)
    assert same(found[0] + found[1], [1, 3, NAN, 4])
    unmasked = np.ma.array([[1.0, 2.0]])
    assert cells_of(unmasked, AB) == [[1.0], [2.0]]


def test_known_rows_come_from_metadata(sources: dict[str, Any], frame: pd.DataFrame) -> None:
    for source in ("pandas", "polars", "arrow", "arrow batch", "parquet", "parquet list"):
        assert open_table(sources[source], MIXED).known_rows == len(frame)
    assert open_table(sources["csv"], MIXED).known_rows is None


def test_a_table_counts_its_records_and_is_read_once(sources: dict[str, Any], frame: pd.DataFrame) -> None:
    for source in ("csv", "parquet list", "pandas"):
        table = open_table(sources[source], MIXED)
        assert sum(len(block[0]) for block in table.blocks()) == table.rows == len(frame)
        with pytest.raises(InputError, match="E123"):
            next(table.blocks())


def test_progress_through_threads_ends_with_every_row(sources: dict[str, Any], frame: pd.DataFrame) -> None:
    seen: list[tuple[int, int | None, int | None]] = []
    table = open_table(sources["parquet"], MIXED)
    sum_rows(table, MIXED, Grid.of(MIXED), engine=Local(workers=2), progress=lambda *done: seen.append(done))
    size = sources["parquet"].stat().st_size
    assert seen[-1] == (len(frame), size, size)
    assert [done[:2] for done in seen] == sorted(done[:2] for done in seen)


# --- what one cell means -------------------------------------------------------------------------------

NUMBERS = {
    "1": 1, "+1": 1, " 1 ": 1, "1.": 1, ".5": 0.5, "-0.0": 0, "1e3": 1000, "1E+3": 1000, "\t2\t": 2, "2\v": 2,
    "5e-324": 5e-324, "1.7e308": 1.7e308, "1e-999": 0, "0e999": 0, "007": 7, "0.1" + "0" * 400: 0.1,
}  # fmt: skip
NOT_NUMBERS = [
    "", " ", "NA", "NaN", "nan", "null", "None", "N/A", "#N/A", "inf", "-Infinity", "1e999", "-1e999",
    "9" * 400, "0x10", "1_000", "１", "1,5", "1,000", "true", "True", "2020-01-01", "1 2", "+-1", "--1", "1e",
    "e5", ".", "+",
    "1.2.3", "1d5", "nan(1)", "\0", "1\0", "x", "(1)", "1%", "$1", "\ufeff1", "\u00a01", "1\u2009",
]  # fmt: skip
COMPANY = ["1", "x", " 1 "]
"""Other rows: plain, one that no parser takes, one that needs trimming."""


@pytest.mark.parametrize("company", COMPANY)
@pytest.mark.parametrize("text", [*NUMBERS, *NOT_NUMBERS])
def test_a_cell_of_text_means_the_same_in_every_reader_and_any_company(
    text: str, company: str, tmp_path: Path
) -> None:
    expected = float(NUMBERS.get(text, NAN))
    quoted = '"' + text + '"'
    assert same(
        cells_of(written(tmp_path, f"a,b\n{company},3\n{quoted},3\n".encode()), AB)[0][1:], [expected]
    )
    for values in (pa.array([company, text]), pa.array([company, text]).dictionary_encode()):
        assert same(cells_of(pa.table({"a": values}), ONE)[0][1:], [expected])
    for series in (pd.Series([company, text], dtype=object), pd.Series([company, text])):
        assert same(cells_of(pd.DataFrame({"a": series}), ONE)[0][1:], [expected])


@pytest.mark.parametrize(
    ("text", "code"),
    [("F", 0), (" M ", 1), ("f", UNKNOWN), ("NA", UNKNOWN), ("", NAN), ("  ", NAN), ("\0", UNKNOWN)],
)
def test_text_levels_are_trimmed_and_compared_and_empty_is_missing(
    text: str, code: float, tmp_path: Path
) -> None:
    assert same(cells_of(written(tmp_path, f"s\n{text}\n".encode()), SEX)[0], [code])
    for data in (
        pa.table({"s": [text]}),
        pd.DataFrame({"s": [text]}, dtype=object),
        pl.DataFrame({"s": [text]}),
    ):
        assert same(cells_of(data, SEX)[0], [code])


@pytest.mark.parametrize(
    ("text", "code"), [("1", 0), ("1.0", 0), (" 2.5e0", 1), ("3", UNKNOWN), ("x", NAN), ("", NAN)]
)
def test_numeric_levels_are_compared_as_numbers(text: str, code: float, tmp_path: Path) -> None:
    assert same(cells_of(written(tmp_path, f"k\n{text}\n".encode()), CODE)[0], [code])
    assert same(cells_of(pa.table({"k": [text]}), CODE)[0], [code])


def test_numeric_levels_are_found_in_arrays() -> None:
    assert same(
        cells_of(np.array([[1.0], [2.5], [4.0], [np.nan], [np.inf]]), CODE)[0], [0, 1, UNKNOWN, NAN, NAN]
    )


def test_objects_of_any_sort_are_numbers_texts_or_missing() -> None:
    class Odd:
        def __float__(self) -> float:
            raise RuntimeError("secret")

        __str__ = __repr__ = __float__  # type: ignore[assignment]

    values = [
        1,
        2.5,
        True,
        np.float32(3),
        np.bool_(True),
        decimal.Decimal("1.5"),
        "4",
        b"5",
        " 6 ",
        "x",
        None,
        pd.NA,
    ]
    values += [
        NAN,
        1j,
        np.complex64(1j),
        Odd(),
        [1],
        {},
        datetime.date(2020, 1, 1),
        pd.Timestamp(0),
        10**400,
        "\ud800",
    ]
    values += [decimal.Decimal("sNaN")]
    expected = [1, 2.5, 1, 3, 1, 1.5, 4, 5, 6] + [NAN] * 14
    assert same(cells_of(pd.DataFrame({"a": pd.Series(values, dtype=object)}), ONE)[0], expected)
    coded = cells_of(pd.DataFrame({"s": pd.Series(["F", 1, None, "\ud800", Odd()], dtype=object)}), SEX)[0]
    assert same(coded, [0, UNKNOWN, NAN, UNKNOWN, NAN])


def test_bytes_that_are_not_text_are_cells_like_any_other(tmp_path: Path) -> None:
    assert csv_cells(tmp_path, b"a,b\n\xff,1\n2,\xfe\xff\n")[1][0] == 2
    binary = pa.array([b"1", b"\xff", None], pa.binary())
    assert same(cells_of(pa.table({"a": binary}), ONE)[0], [1, NAN, NAN])
    assert same(cells_of(pa.table({"s": pa.array([b"F", b"\xff"], pa.binary())}), SEX)[0], [0, UNKNOWN])
    invalid = pa.Array.from_buffers(pa.string(), 2, pa.array([b"\xff", b"3"], pa.binary()).buffers())
    assert same(cells_of(pa.table({"a": invalid}), ONE)[0], [NAN, 3])


def few_places(words: int) -> pa.Table:
    """A column of two chunks, each with a dictionary whose places have eight bits, of so many texts together."""
    parts = [[f"w{one}" for one in range(100)], [f"w{one}" for one in range(words - 100, words)]]
    places = pa.array(range(100), pa.int8())
    chunks = [pa.DictionaryArray.from_arrays(places, pa.array(part)) for part in parts]
    return pa.table({"s": pa.chunked_array(chunks)})


@pytest.mark.parametrize("words", [128, 129, 200])
def test_one_text_more_than_a_written_dictionary_had_places_for_ends_no_reading(
    words: int, tmp_path: Path
) -> None:
    """Arrow puts the places of a row group into the type that they had, and fails: after the payment."""
    table, schema = few_places(words), Schema.from_dict({"columns": {"s": {"levels": ["w5", "w99"]}}})
    persons = Schema.from_dict(
        {"columns": {"x": {"lower": 0, "upper": 1}}, "person": "s", "max_rows_per_person": 1}
    )
    pq.write_table(table.append_column("x", pa.array([0.5] * 200)), tmp_path / "t.parquet")
    for data, one in ((tmp_path / "t.parquet", persons), (table, replace(schema, ignore_extra=True))):
        assert sum(len(block[0]) for block in open_table(data, one).blocks()) in (words, 200)
    schema = replace(schema, ignore_extra=True)
    found = [code for block in open_table(tmp_path / "t.parquet", schema).blocks() for code in block[0]]
    assert (found[5], found[99], found[6]) == (0.0, 1.0, UNKNOWN)
    with pytest.raises(InputError, match="E150 the dataset holds a dictionary in a Parquet file"):
        open_table(pyarrow.dataset.dataset(tmp_path / "t.parquet"), schema)


def test_a_large_dictionary_is_judged_by_the_values_in_use() -> None:
    dictionary = pa.array([f"x{n}" for n in range(1000)] + ["F"])
    column = pa.DictionaryArray.from_arrays(pa.array([1000, None, 5], pa.int32()), dictionary)
    assert same(cells_of(pa.table({"s": column}), SEX)[0], [0, NAN, UNKNOWN])
    for kind in (pa.string_view(), pa.binary_view()):  # as polars writes categories
        views = pa.DictionaryArray.from_arrays(column.indices, dictionary.cast(pa.binary()).cast(kind))
        assert same(cells_of(pa.table({"s": views}), SEX)[0], [0, NAN, UNKNOWN]), kind
    empty = pa.DictionaryArray.from_arrays(pa.array([None], pa.int32()), pa.array([], pa.string()))
    assert same(cells_of(pa.table({"s": empty}), SEX)[0], [NAN])


# --- CSV records ---------------------------------------------------------------------------------------

GONE = (NAN, NAN)
RECORDS: dict[str, tuple[bytes, list[tuple[float, float]]]] = {
    "header only": (b"a,b\n", []),
    "header without an end": (b"a,b", []),
    "byte order mark": (b"\xef\xbb\xbfa,b\n1,2\n", [(1, 2)]),
    "no newline at the end": (b"a,b\n1,2\n3,4", [(1, 2), (3, 4)]),
    "short line": (b"a,b\n1\n3,4\n", [GONE, (3, 4)]),
    "long line": (b"a,b\n1,2,3\n3,4\n", [GONE, (3, 4)]),
    "blank line inside": (b"a,b\n1,2\n\n3,4\n", [(1, 2), GONE, (3, 4)]),
    "blank lines at the end": (b"a,b\n1,2\n\n\n", [(1, 2), GONE, GONE]),
    "unclosed quote": (b'a,b\n1,"2\n3,4\n', [GONE, (3, 4)]),
    "unclosed quote at the end": (b'a,b\n3,4\n1,"2', [(3, 4), GONE]),
    "two stray quotes": (b'a,b\nx"y,"1\n3,4\n', [GONE, (3, 4)]),
    "quoted line break": (b'a,b\n"1\n2",5\n3,4\n', [GONE, GONE, (3, 4)]),
    "quote inside a cell": (b'a,b\n1"2",3\n3,4\n', [GONE, (3, 4)]),
    "quoted cells": (b'a,b\n"1","2"\n"3",4\n', [(1, 2), (3, 4)]),
    "doubled quotes": (b'a,b\n"1""",2\n"""",5\n', [(NAN, 2), (NAN, 5)]),
    "quoted comma": (b'a,b\n"1,5",2\n3,4\n', [(NAN, 2), (3, 4)]),
    "ragged and quoted": (b'a,b\n"1,5"\n"1,5",2,3\n"3","4"\n', [GONE, GONE, (3, 4)]),
    "stray CR": (b"a,b\n1\r,2\n3,\r4\n", [(1, 2), (3, 4)]),
    "CRLF": (b"a,b\r\n1,2\r\n\r\n3,4\r\n", [(1, 2), GONE, (3, 4)]),
    "CRLF quoted": (b'a,b\r\n"1","2"\r\n', [(1, 2)]),
    "CR only": (b"a,b\r1,2\r3,4\r", [(1, 2), (3, 4)]),
    "CR only, stray LF": (b"a,b\r1,\n2\r3,4", [(1, 2), (3, 4)]),
    "zero byte in a cell": (b"a,b\n1\0,2\n", [(NAN, 2)]),
    "zero bytes in many cells": (b"a,b\n\0,\0\n" + b"\0" * 400 + b",2\n", [GONE, (NAN, 2)]),
    "byte order mark in a cell": (b"a,b\n\xef\xbb\xbf1,2\n3,4\n", [(NAN, 2), (3, 4)]),
    "other column order": (b" b ,a\n1,2\n", [(2, 1)]),
    "quoted header": (b'"a","b"\n1,2\n', [(1, 2)]),
    "line of spaces": (b"a,b\n   \n1,2\n", [GONE, (1, 2)]),
}


@pytest.mark.parametrize("name", RECORDS)
@pytest.mark.parametrize("chunk", [1, 3, 4 * 2**20])
def test_one_line_is_one_record(
    name: str, chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources_module, "CHUNK_BYTES", chunk)
    content, expected = RECORDS[name]
    found = csv_cells(tmp_path, content, ended_by_cr(AB) if name.startswith("CR only") else AB)
    assert [repr(row) for row in found] == [repr(tuple(map(float, row))) for row in expected]


@pytest.mark.parametrize("length", range(headers._OFTEN_ENOUGH - 4, headers._OFTEN_ENOUGH + 3))
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_a_header_may_be_longer_than_what_is_read_of_it_first(
    length: int, end: bytes, tmp_path: Path
) -> None:
    path = written(tmp_path, b"a," + b"b" * (length - 2) + end + b"1,2" + end)
    dialect = replace(RFC_4180, line_end="cr" if end == b"\r" else "lf")
    found = headers.header_of(sources_module.source_of(path, dialect), dialect)
    assert (found.names[0], len(found.names[1])) == ("a", length - 2)
    assert found.end == length + len(end)


def test_a_file_is_read_in_chunks_of_which_one_is_held_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("polars")
    path = written(tmp_path, b"a,b\n" + b"1.000000000000001,2.000000000000002\n" * 2**18)
    chunk = 2**20
    monkeypatch.setattr(sources_module, "CHUNK_BYTES", chunk)
    quick_columns(b"1,2\n", 2, [0, 1], [True, True])  # imports what it needs
    tracemalloc.start()
    try:
        for block in open_table(path, AB).blocks():
            del block
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 1.75 * chunk  # the text, and its numbers, which take less than half as much


def test_in_one_column_an_empty_line_is_a_missing_cell(tmp_path: Path) -> None:
    assert same(cells_of(written(tmp_path, b"a\n1\n\n2\n\n"), ONE)[0], [1, NAN, 2, NAN])


@pytest.mark.parametrize("chunk", [7, 50, 1000])
@pytest.mark.parametrize("length", [19, 20, 21, 22, 500])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_a_line_past_the_cap_is_a_missing_record_wherever_it_falls(
    chunk: int, length: int, end: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources_module, "CHUNK_BYTES", chunk)
    monkeypatch.setattr(records_module, "LONGEST_LINE", 20)
    long = b"1," + b"0" * (length - 3) + b"2"
    lines = [b"a,b", b"5,6", long, b"7,8", long, b""]
    found = csv_cells(tmp_path, end.join(lines), ended_by_cr(AB) if end == b"\r" else AB)
    kept = (1.0, 2.0) if length <= 20 else GONE
    assert repr(found) == repr([(5.0, 6.0), kept, (7.0, 8.0), kept])


def test_a_file_of_one_endless_line_takes_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    with path.open("wb") as file:
        file.write(b"a,b\n1,2\n")
        for _ in range(24):
            file.write(b"9" * 2**20)
        file.write(b"\n3,4\n")
    found = list(zip(*cells_of(path, AB), strict=True))
    assert sorted(map(repr, found)) == sorted(map(repr, [(1.0, 2.0), (3.0, 4.0), GONE]))


def test_extra_columns_are_ignored_only_when_the_schema_says_so(tmp_path: Path) -> None:
    lenient = Schema.from_dict({"columns": {"a": {"lower": 0, "upper": 10}}, "ignore_extra": True})
    path = written(tmp_path, b"x,a,x\n9,1,\xff\n8,2,7\n")
    assert cells_of(path, lenient) == [[1.0, 2.0]]
    assert cells_of(pd.DataFrame({"z": [object()], "a": [1.0]}), lenient) == [[1.0]]
    with pytest.raises(InputError, match="ignore_extra = true"):
        open_table(written(tmp_path, b"x,a\n1,2\n"), ONE)


def test_names_and_kinds_can_be_read_without_a_schema(tmp_path: Path) -> None:
    assert read_header(written(tmp_path, b"a,b\r\n1,2\r\n"), then=3) == (["a", "b"], b"1,2")
    path = written(tmp_path, parquet_bytes(pa.table({"a": [1.0], "s": ["x"], "t": [True]})), "x.parquet")
    assert read_kinds(path) == [("a", "numeric"), ("s", "text"), ("t", "numeric")]
    for read, name in ((lambda p: read_header(p, then=1), "no.csv"), (read_kinds, "no.parquet")):
        with pytest.raises(InputError, match="E119"):
            read(tmp_path / name)


# --- refusals, all before a value is read --------------------------------------------------------------


def packed(content: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a.csv", content)
    return buffer.getvalue()


def parquet_bytes(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


def huge_claim(folder: Path) -> Path:
    """A small file with a billion rows: one run-length encoded value."""
    path = folder / "bomb.parquet"
    kinds = pa.schema([("a", pa.int8())])
    zeros = pa.record_batch([pa.array(np.zeros(2_000_000, np.int8))], schema=kinds)
    with pq.ParquetWriter(path, kinds, write_statistics=False) as file:
        for _ in range(60):
            file.write_batch(zeros, row_group_size=2_000_000)
    return path


def fifo(folder: Path) -> Path:
    os.mkfifo(folder / "pipe.csv")
    return folder / "pipe.csv"


def dangling(folder: Path) -> Path:
    (folder / "gone.csv").symlink_to(folder / "nowhere.csv")
    return folder / "gone.csv"


def typed(kind: pa.DataType) -> pa.Table:
    return pa.table({"a": pa.nulls(1, kind)})


def uuid_table() -> pa.Table:
    storage = pa.array([b"0123456789abcdef"], pa.binary(16))
    return pa.table({"a": pa.ExtensionArray.from_storage(pa.uuid(), storage)})


GOOD_PARQUET = parquet_bytes(pa.table({"a": [1.0, 2.0]}))
two_levels = pd.DataFrame([[1.0, 2.0]], columns=pd.MultiIndex.from_tuples([("a", "x"), ("b", "y")]))

BAD: dict[str, tuple[str, Schema, Callable[[Path], Any]]] = {
    "1 empty file": ("E101", AB, lambda f: written(f, b"")),
    "1 empty first line": ("E101", AB, lambda f: written(f, b"\na,b\n1,2\n")),
    "3 other header": ("E102", AB, lambda f: written(f, b"x,y\n1,2\n")),
    "3 semicolons": ("E102", AB, lambda f: written(f, b"a;b\n1;2\n")),
    "3 array of other width": ("E102", AB, lambda f: np.zeros((3, 5))),
    "3 frame": ("E102", AB, lambda f: pd.DataFrame({"a": [1]})),
    "3 unnamed frame": ("E102", AB, lambda f: pd.DataFrame(np.zeros((2, 2)))),
    "4 duplicate": ("E103", AB, lambda f: written(f, b"a,b,a\n1,2,3\n")),
    "4 duplicate in pandas": ("E103", AB, lambda f: pd.DataFrame([[1, 2, 3]], columns=["a", "b", "a"])),
    "4 duplicate in Arrow": ("E103", ONE, lambda f: pa.table([[1], [2]], names=["a", "a"])),
    "5 missing column": ("E102", AB, lambda f: written(f, b"a\n1\n")),
    "5 missing in Parquet": ("E102", AB, lambda f: written(f, GOOD_PARQUET, "x.parquet")),
    "5 missing in second file": (
        "E102",
        ONE,
        lambda f: [
            written(f, GOOD_PARQUET, "x.parquet"),
            written(f, parquet_bytes(pa.table({"z": [1]})), "y.parquet"),
        ],
    ),
    "6 extra": ("E104", ONE, lambda f: written(f, b"a,b\n1,2\n")),
    "6 extra in polars": ("E104", ONE, lambda f: pl.DataFrame({"a": [1], "b": [2]})),
    "8 UTF-16": ("E105", AB, lambda f: written(f, "a,b\n1,2\n".encode("utf-16"))),
    "8 UTF-16 without mark": ("E105", AB, lambda f: written(f, "a,b\n1,2\n".encode("utf-16-le"))),
    "8 Latin-1": ("E105", AB, lambda f: written(f, "a,b,é\n1,2,3\n".encode("latin-1"))),
    "9 zero byte in header": ("E106", AB, lambda f: written(f, b"a,b\0\n1,2\n")),
    "12 unclosed quote in header": ("E107", AB, lambda f: written(f, b'a,"b\n1,2\n')),
    "24 complex": ("E110", AB, lambda f: np.zeros((3, 2), complex)),
    "24 object": ("E110", AB, lambda f: np.zeros((3, 2), object)),
    "24 text array": ("E110", AB, lambda f: np.full((3, 2), "1")),
    "24 dates": ("E110", AB, lambda f: np.zeros((3, 2), "M8[s]")),
    "24 structured": ("E110", AB, lambda f: np.zeros(3, [("a", float), ("b", float)])),
    "24 complex in pandas": ("E110", ONE, lambda f: pd.DataFrame({"a": [1j]})),
    "24 dates in pandas": ("E110", ONE, lambda f: pd.DataFrame({"a": [pd.Timestamp(0)]})),
    "24 intervals in pandas": ("E110", ONE, lambda f: pd.DataFrame({"a": [pd.Timedelta(0)]})),
    "24 dates in polars": ("E110", ONE, lambda f: pl.DataFrame({"a": [datetime.date(2020, 1, 1)]})),
    "24 objects in polars": ("E110", ONE, lambda f: pl.DataFrame({"a": [object()]})),
    "24 times in Arrow": ("E110", ONE, lambda f: typed(pa.timestamp("us"))),
    "24 fixed bytes in Arrow": ("E110", ONE, lambda f: typed(pa.binary(4))),
    "24 text levels in an array": ("E110", SEX, lambda f: np.zeros((3, 1))),
    "24 text levels for integers": ("E110", SEX, lambda f: pa.table({"s": [1, 2]})),
    "24 text levels for integers in pandas": ("E110", SEX, lambda f: pd.DataFrame({"s": [1, 2]})),
    "24 not a table": ("E110", AB, lambda f: {"a": [1], "b": [2]}),
    "24 list of numbers": ("E110", AB, lambda f: [[1, 2]]),
    "24 lazy frame of dates": ("E110", ONE, lambda f: pl.LazyFrame({"a": [datetime.date(2020, 1, 1)]})),
    "26 one dimension": ("E111", AB, lambda f: np.zeros(3)),
    "26 three dimensions": ("E111", AB, lambda f: np.zeros((3, 2, 1))),
    "26 no dimension": ("E111", AB, lambda f: np.zeros(())),
    "26 no columns": ("E111", AB, lambda f: np.zeros((3, 0))),
    "30 sparse matrix": ("E112", AB, lambda f: scipy.sparse.csr_matrix((3, 2))),
    "30 sparse array": ("E112", AB, lambda f: scipy.sparse.coo_array((3, 2))),
    "30 sparse frame": ("E112", ONE, lambda f: pd.DataFrame({"a": pd.arrays.SparseArray([0.0, 1.0])})),
    "30 several levels of names": ("E112", AB, lambda f: two_levels),
    "31 header of many columns": ("E113", AB, lambda f: written(f, b"," * 100_000 + b"\n")),
    "31 long header": ("E113", AB, lambda f: written(f, b"a" * (2**20 + 1) + b"\n")),
    "32 absurd claim": ("E114", ONE, huge_claim),
    "33 truncated Parquet": ("E115", ONE, lambda f: written(f, GOOD_PARQUET[:-20], "x.parquet")),
    "33 not Parquet": ("E115", ONE, lambda f: written(f, b"a,b\n1,2\n", "x.parquet")),
    "33 encrypted footer": (
        "E115",
        ONE,
        lambda f: written(f, b"PARE" + GOOD_PARQUET[4:-4] + b"PARE", "x.parquet"),
    ),
    "33 broken footer": (
        "E115",
        ONE,
        lambda f: written(f, GOOD_PARQUET[:-60] + b"\xff" * 52 + GOOD_PARQUET[-8:], "x.pq"),
    ),
    "34 lists": ("E116", ONE, lambda f: typed(pa.list_(pa.int8()))),
    "34 structs": ("E116", ONE, lambda f: typed(pa.struct([("x", pa.int8())]))),
    "34 extension type": ("E116", ONE, lambda f: uuid_table()),
    "34 lists in Parquet": (
        "E116",
        ONE,
        lambda f: written(f, parquet_bytes(pa.table({"a": [[1]]})), "x.parquet"),
    ),
    "35 gzip": ("E117", AB, lambda f: written(f, gzip.compress(b"a,b\n1,2\n"))),
    "35 zip": ("E117", AB, lambda f: written(f, packed(b"a,b\n1,2\n"))),
    "36 pickle": ("E118", AB, lambda f: written(f, pickle.dumps([1]), "x.pkl")),
    "36 npy": ("E118", AB, lambda f: written(f, b"\x93NUMPY", "x.npy")),
    "36 npz": ("E118", AB, lambda f: written(f, packed(b""), "x.npz")),
    "36 no suffix": ("E118", AB, lambda f: written(f, b"a,b\n", "x")),
    "36 Parquet named csv": ("E118", ONE, lambda f: written(f, GOOD_PARQUET)),
    "37 no file": ("E119", AB, lambda f: f / "none.csv"),
    "37 directory": ("E119", AB, lambda f: f),
    "37 fifo": ("E119", AB, fifo),
    "37 device": ("E119", AB, lambda f: "/dev/zero"),
    "37 dangling link": ("E119", AB, dangling),
    "37 pattern without match": ("E119", AB, lambda f: str(f / "*.parquet")),
    "37 zero byte in path": ("E119", AB, lambda f: "a\0b.csv"),
    "37 very long path": ("E119", AB, lambda f: "x" * 5000 + ".csv"),
    "49 emoji": ("E104", AB, lambda f: written(f, "a,b,😀\n".encode())),
    "49 control characters": ("E104", AB, lambda f: written(f, b"a,b,\x1b[31mred\n")),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_used_is_refused_with_its_code(case: str, tmp_path: Path) -> None:
    code, schema, make = BAD[case]
    with pytest.raises(InputError) as refusal:
        open_table(make(tmp_path), schema)
    assert refusal.value.code == code
    assert refusal.value.exit_code == 2
    assert refusal.value.remedy
    assert str(refusal.value).isprintable()
    assert len(str(refusal.value)) < 2_000 + 2 * len(str(tmp_path)) + 5_000 * ("long path" in case)


@pytest.mark.parametrize("name", ["a\x1b", "a\u202eb", "x" * 300, "(Intercept)", "", "a\nb"])
def test_column_names_that_could_mislead_are_refused_by_the_schema(name: str) -> None:
    with pytest.raises(InputError, match="E121"):
        Schema.from_dict({"columns": {name: {"lower": 0, "upper": 1}}})


def test_a_file_that_changes_while_it_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources_module, "CHUNK_BYTES", 64)
    for change in (lambda p: p.write_bytes(p.read_bytes() + b"5,6\n"), lambda p: os.truncate(p, 200)):
        path = written(tmp_path, b"a,b\n" + b"1,2\n" * 100)
        table = open_table(path, AB)
        change(path)
        with pytest.raises(InputError, match="E120"):
            next(table.blocks())
        path = written(tmp_path, b"a,b\n" + b"1,2\n" * 100)
        blocks = open_table(path, AB).blocks()
        next(blocks)
        change(path)
        with pytest.raises(InputError, match="E120"):
            list(blocks)
    pq.write_table(pa.table({"a": np.zeros(200_000)}), tmp_path / "x.parquet", row_group_size=100_000)
    blocks = open_table(tmp_path / "x.parquet", ONE).blocks()
    next(blocks)
    with (tmp_path / "x.parquet").open("ab") as file:
        file.write(b"more")
    with pytest.raises(InputError, match="E120"):
        list(blocks)


def test_a_damaged_page_is_refused_without_its_contents(tmp_path: Path) -> None:
    content = bytearray(parquet_bytes(pa.table({"a": np.arange(100_000.0)})))
    content[200:4000] = b"\xff" * 3800
    with pytest.raises(InputError, match="E115"):
        list(open_table(written(tmp_path, bytes(content), "x.parquet"), ONE).blocks())


def test_a_failing_partition_says_nothing_about_its_values() -> None:
    def batches() -> Iterable[pa.RecordBatch]:
        yield pa.record_batch({"a": [1.0]})
        raise ValueError("secret 12345")

    reader = pa.RecordBatchReader.from_batches(pa.schema([("a", pa.float64())]), batches())
    with pytest.raises(InternalError) as failure:
        list(Arrived(place=0, data=reader).open(ONE).blocks())
    assert "12345" not in str(failure.value)
    assert failure.value.__suppress_context__


def test_no_reader_prints_warns_or_raises_whatever_the_values(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    wild = [*NUMBERS, *NOT_NUMBERS, "\x1b", '"', '""', "a\nb", "\r"]
    lines = b"\n".join(f"{text},{text}".encode() for text in wild) + b"\n\xff\xfe\n\xff,\xff,\xff\n,,\n"
    sources = [
        written(tmp_path, b"a,b\n" + lines),
        pa.table({"a": wild, "b": wild}),
        pl.DataFrame({"a": wild, "b": wild}),
        pd.DataFrame({"a": wild, "b": [*wild[1:], object()]}, dtype=object),
        np.array([[1e308, np.nan], [np.inf, -0.0], [5e-324, -1e308]]),
    ]
    for source in sources:
        gram_of(source, AB)
    shown = capfd.readouterr()
    assert shown.out == shown.err == ""
    assert [str(warning.message) for warning in recwarn] == []


@pytest.mark.parametrize(
    "text",
    [
        "73.91,hush\n1,a\n",  # no header at all
        "age,group,73.91,hush\n1,a,2,3\n",
        "age,group,hush,hush\n1,a,2,3\n",
        "age73.91,hush\n1,a\n",
    ],
)
def test_a_row_in_the_place_of_the_header_is_not_repeated_in_the_message(tmp_path, text):
    path = tmp_path / "people.csv"
    path.write_text(text)
    schema = Schema.from_dict(
        {"columns": {"age": {"lower": 0, "upper": 100}, "group": {"levels": ["a", "b"]}}}
    )
    with pytest.raises(InputError, match=r"E10[234]") as refused:
        open_table(path, schema)
    assert "73.91" not in str(refused.value)
    assert "hush" not in str(refused.value)


@pytest.mark.parametrize(
    ("lines", "places"),
    [
        (b"1,2,3\n4,5\n", [0, 1, 2]),
        (b"1,2,3\n4,5\n", [0, 1]),  # the last column is not asked for
        (b"1,2,3\n4\n7,8,9\n", [2, 0, 1]),
        (b"1,2,3\n\n7,8,9\n", [0, 1, 2]),
        (b"1,2,\n4,5\n", [0, 1, 2]),  # a last cell that is missing beside a line that is short
        (b"1,2,3,4\n5,6,7\n", [0, 1, 2]),
        (b'1,2,3\n"4",5,6\n', [0, 1, 2]),
        (b'1,2,3\n4,5,"6\n', [0, 1, 2]),
        (b'1,2,3\n4,5"6",7\n', [0, 2]),
    ],
)
def test_lines_that_are_no_plain_records_are_left_to_the_rules(lines, places):
    pytest.importorskip("polars")
    assert quick_columns(lines, 3, places, [True] * len(places)) is None


def test_a_missing_last_cell_is_read_the_quick_way():
    pytest.importorskip("polars")
    made = quick_columns(b"1,2,\n4,5,6\n", 3, [2, 0], [True, True])
    assert repr(made.tolist()) == "[[nan, 6.0], [1.0, 4.0]]"
