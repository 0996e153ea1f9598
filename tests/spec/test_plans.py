"""Lazy tables are taken or refused by their plan, before anything is paid; those taken are read whatever they hold."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

import privcov as pc
from privcov.errors import InputError, InternalError
from privcov.ledger import Ledger
from privcov.schema import Schema
from privcov.schema.grid import Grid
from privcov.summing.sum import sum_rows
from privcov.table import open_table
from privcov.table.lazy import _check_cast
from privcov.table.plans import Unlisted

duckdb = pytest.importorskip("duckdb")
A = Schema.from_dict({"columns": {"a": {"lower": 0, "upper": 10}}, "ignore_extra": True})
AS = Schema.from_dict(
    {"columns": {"a": {"lower": 0, "upper": 10}, "s": {"levels": ["F", "M"]}}, "ignore_extra": True}
)
LOSS = pc.PureDP(epsilon=1, neighbours="replace-one")
COLUMN = pl.col
PLAIN = pa.table({"a": [1.0, 2.0, 11.5], "i": pa.array([1, 2, 3], pa.int32()), "s": ["F", "M", "7"]})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plans")
    write(PLAIN, folder)
    pa.csv.write_csv(PLAIN, folder / "x.csv")
    pl.from_arrow(PLAIN).write_ndjson(folder / "x.json")  # type: ignore[union-attr]
    return folder


def write(table: pa.Table, folder: Path) -> None:
    pq.write_table(table, folder / "x.parquet")
    pa.feather.write_feather(table, folder / "x.arrow", compression="uncompressed")


def database(table: pa.Table) -> Any:
    """A connection with one stored table t, which has nothing of Python left in it."""
    connection = duckdb.connect()
    connection.register("given", table)
    connection.execute("create table t as select * from given").fetchall()
    connection.unregister("given")
    return connection


def lazy(table: pa.Table) -> pl.LazyFrame:
    return pl.from_arrow(table).lazy()  # type: ignore[union-attr]


def summed(data: Any, schema: Schema) -> list[int]:
    return list(sum_rows(open_table(data, schema), schema, Grid.of(schema)).reveal_to_mechanism())


def columns(table: pa.Table, keep: Callable[[dict[str, Any]], bool]) -> pa.Table:
    return pa.Table.from_pylist([row for row in table.to_pylist() if keep(row)], schema=table.schema)


def above(value: float | None, bound: float) -> bool:
    """As polars and DuckDB order numbers: a NaN is above all."""
    return value is not None and (math.isnan(value) or value > bound)


# --- taken: each with the eager table that it must equal ------------------------------------------------

Make = Callable[[pa.Table, Path], Any]
TAKEN: dict[str, tuple[Schema, Make, Callable[[pa.Table], pa.Table]]] = {
    "frame": (AS, lambda t, f: lazy(t), lambda t: t),
    "selection": (AS, lambda t, f: lazy(t).select("s", "a"), lambda t: t),
    "rename": (AS, lambda t, f: lazy(t).rename({"a": "b"}).rename({"b": "a"}), lambda t: t),
    "filter": (
        AS,
        lambda t, f: lazy(t).filter((COLUMN("a") > 1) & (COLUMN("s") != "F")),
        lambda t: columns(t, lambda row: above(row["a"], 1) and row["s"] not in (None, "F")),
    ),
    "membership": (
        AS,
        lambda t, f: lazy(t).filter(COLUMN("s").is_in(["F"]) & COLUMN("a").is_not_null()),
        lambda t: columns(t, lambda row: row["s"] == "F" and row["a"] is not None),
    ),
    "arithmetic": (
        A,
        lambda t, f: lazy(t).with_columns(a=COLUMN("i") * 2 + 1),
        lambda t: pa.table({"a": pl.from_arrow(t)["i"].cast(pl.Int32) * 2 + 1}),  # type: ignore[index]
    ),
    "cast that gives null": (
        A,
        lambda t, f: lazy(t).with_columns(COLUMN("s").cast(pl.Float64, strict=False).alias("a")),
        lambda t: pa.table({"a": pl.from_arrow(t)["s"].cast(pl.Float64, strict=False)}),  # type: ignore[index]
    ),
    "strict cast of whole numbers": (
        A,
        lambda t, f: lazy(t).with_columns(COLUMN("i").cast(pl.Float64).alias("a")),
        lambda t: pa.table({"a": t["i"].cast(pa.float64())}),
    ),
    "choice": (
        A,
        lambda t, f: lazy(t).with_columns(pl.when(COLUMN("i") > 0).then(COLUMN("a")).otherwise(None)),
        lambda t: pa.table(
            {"a": [a if i is not None and i > 0 else None for a, i in zip(*both(t), strict=True)]}
        ),
    ),
    "concatenation": (AS, lambda t, f: pl.concat([lazy(t), lazy(t)]), lambda t: pa.concat_tables([t, t])),
    "numbers of a Parquet file": (A, lambda t, f: pl.scan_parquet(f / "x.parquet"), lambda t: t),
    "filtered numbers of a Parquet file": (
        A,
        lambda t, f: pl.scan_parquet(f / "x.parquet").filter(COLUMN("i") > 1),
        lambda t: columns(t, lambda row: above(row["i"], 1)),
    ),
    "Parquet dataset": (AS, lambda t, f: ds.dataset(f / "x.parquet"), lambda t: t),
    "Feather dataset": (AS, lambda t, f: ds.dataset(f / "x.arrow", format="feather"), lambda t: t),
    "dataset of a wider type": (
        A,
        lambda t, f: ds.dataset(f / "x.parquet", schema=pa.schema([("a", pa.float64()), ("i", pa.int64())])),
        lambda t: t,
    ),
    "DuckDB table": (AS, lambda t, f: database(t).table("t"), lambda t: t),
    "DuckDB query": (
        AS,
        lambda t, f: database(t).sql("select s, a from t where a > 1 and not s = 'F'"),
        lambda t: columns(t, lambda row: above(row["a"], 1) and row["s"] not in (None, "F")),
    ),
    "DuckDB steps": (
        A,
        lambda t, f: database(t).table("t").filter("i in (1, 2) or i is null").project("a"),
        lambda t: columns(t, lambda row: row["i"] in (1, 2, None)),
    ),
    "DuckDB subquery": (
        A,
        lambda t, f: database(t).sql("select a from (select * from t where i between 0 and 2) u"),
        lambda t: columns(t, lambda row: row["i"] is not None and 0 <= row["i"] <= 2),
    ),
    "DuckDB numbers of a Parquet file": (
        A,
        lambda t, f: duckdb.connect().sql(f"select a from '{f / 'x.parquet'}'"),
        lambda t: t,
    ),
    "DuckDB filter on whole numbers of a Parquet file": (
        A,
        lambda t, f: duckdb.connect().sql(f"select a from '{f / 'x.parquet'}' where i > 1"),
        lambda t: columns(t, lambda row: above(row["i"], 1)),
    ),
}


def both(table: pa.Table) -> tuple[list[Any], list[Any]]:
    return table["a"].to_pylist(), table["i"].to_pylist()


@pytest.mark.parametrize("case", TAKEN)
def test_a_listed_plan_gives_the_integers_of_the_rows_it_stands_for(case: str, folder: Path) -> None:
    schema, make, same = TAKEN[case]
    assert summed(make(PLAIN, folder), schema) == summed(same(PLAIN), schema)


FILTERS = {
    "a > 100": COLUMN("a") > 100,
    "a >= 100": COLUMN("a") >= 100,
    "a <> 1": COLUMN("a") != 1,
    "not a < 100": ~(COLUMN("a") < 100),
    "a between 100 and 200": COLUMN("a").is_between(100, 200),
    "a in (100, 200)": COLUMN("a").is_in([100.0, 200.0]),
    "a >= 0": COLUMN("a") >= 0,
    "a is null": COLUMN("a").is_null(),
}
WAYS: dict[str, Callable[[pa.Table, Path, str], Any]] = {
    "polars file": lambda t, f, text: pl.scan_parquet(f / "x.parquet").filter(FILTERS[text]),
    "polars frame": lambda t, f, text: lazy(t).filter(FILTERS[text]),
    "DuckDB table": lambda t, f, text: database(t).sql(f"select * from t where {text}"),
}


@pytest.mark.parametrize("way", WAYS)
def test_whether_a_filter_keeps_a_row_depends_on_no_other_row(way: str, tmp_path: Path) -> None:
    """Row groups are left out by their least and largest number, in which NaN does not count.

    By DuckDB and Spark a row of NaN of a file was kept or not as another row was large or not; they are refused.
    """
    for text in FILTERS:
        for cell in (math.nan, -0.0, None, 1.0):
            found = []
            for odd in (1.0, 200.0):
                for cells in ([odd], [cell] * 9 + [odd]):
                    table = pa.table({"a": pa.array(cells, pa.float64())})
                    write(table, tmp_path)
                    found.append(summed(WAYS[way](table, tmp_path, text), A)[0])
            assert found[1] - found[0] == found[3] - found[2], (text, cell)


NUMBERS = [None, 0.0, -0.0, 5e-324, 1e308, -1e308, math.inf, -math.inf, math.nan, 1.5]
WHOLE = [None, 0, 1, -1, 2**31 - 1, -(2**31)]
TEXTS = [
    None,
    "F",
    "",
    " 1 ",
    "1e999",
    "nan",
    "0x10",
    "\0",
    "'",
    '"',
    "١",
    "9" * 400,
    "2020-01-01",
    "\U0010ffff",
]
ROWS = some.tuples(
    some.sampled_from(NUMBERS) | some.floats(),
    some.sampled_from(WHOLE) | some.integers(-(2**31), 2**31 - 1),
    some.sampled_from(TEXTS) | some.text(max_size=8),
)
KINDS = pa.schema([("a", pa.float64()), ("i", pa.int32()), ("s", pa.string())])


def assert_read(case: str, rows: Iterable[tuple[Any, Any, Any]], folder: Path) -> None:
    """The plan is read without an error, and gives the integers of the rows it stands for."""
    table = pa.Table.from_pylist([dict(zip("ais", row, strict=True)) for row in rows], schema=KINDS)
    write(table, folder)
    schema, make, same = TAKEN[case]
    assert summed(make(table, folder), schema) == summed(same(table), schema)


@pytest.mark.parametrize("case", TAKEN)
def test_no_hostile_cell_stops_a_listed_plan(case: str, tmp_path: Path) -> None:
    """Every number, whole number and text above, in every pair. A strict cast on the list is found by any of them."""
    assert_read(case, itertools.product(NUMBERS, WHOLE, TEXTS), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("case", TAKEN)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=some.lists(ROWS, min_size=1, max_size=6))
def test_no_cell_stops_a_listed_plan(case: str, rows: list[tuple[Any, Any, Any]], tmp_path: Path) -> None:
    assert_read(case, rows, tmp_path)


def bad_texts() -> pa.Table:
    """Texts that are not UTF-8, which Arrow, Parquet and Feather hold without complaint."""
    raw = pa.array([b"F", b"\xff\xfe", b"M"], pa.binary())
    text = pa.Array.from_buffers(pa.string(), 3, raw.buffers())
    return pa.table({"a": [1.0, 2.0, 3.0], "i": pa.array([1, 2, 3], pa.int32()), "s": text})


@pytest.mark.parametrize("case", [case for case in TAKEN if "file" in case or "dataset" in case])
def test_bytes_that_are_no_text_stop_no_listed_plan_over_files(case: str, tmp_path: Path) -> None:
    write(bad_texts(), tmp_path)
    schema, make, _ = TAKEN[case]
    assert sum(len(block[0]) for block in open_table(make(bad_texts(), tmp_path), schema).blocks()) in (2, 3)


# --- refused -------------------------------------------------------------------------------------------


class Streaming:
    """What offers a stream and nothing else that is known."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        raise AssertionError("the stream was opened")


def made_of(text: str) -> Make:
    return lambda t, f: with_more(database(t)).sql(text.replace("FOLDER", str(f)))


def with_more(connection: Any) -> Any:
    connection.execute("create view v as select cast(s as double) as a from t").fetchall()
    made = "create table g(s varchar, a double generated always as (cast(s as double)))"
    connection.execute(made).fetchall()
    return connection


REFUSED: dict[str, tuple[str, Make]] = {
    "reader": ("E129", lambda t, f: t.to_reader()),
    "CSV reader": ("E129", lambda t, f: pa.csv.open_csv(f / "x.csv")),
    "anything with a stream": ("E129", lambda t, f: Streaming()),
    "CSV dataset": ("E150", lambda t, f: ds.dataset(f / "x.csv", format="csv")),
    "JSON dataset": ("E150", lambda t, f: ds.dataset(f / "x.json", format="json")),
    "CSV among Parquet": (
        "E150",
        lambda t, f: ds.dataset(
            [ds.dataset(f / "x.parquet", schema=NUMBER), ds.dataset(f / "x.csv", format="csv", schema=NUMBER)]
        ),
    ),
    "dataset that casts texts": (
        "E150",
        lambda t, f: ds.dataset(renamed(t, f), schema=NUMBER),
    ),
    "dataset in memory": ("E150", lambda t, f: ds.dataset(t)),
    "filtered dataset": ("E150", lambda t, f: ds.dataset(f / "x.parquet").filter(ds.field("a") > 1)),
    "scan_csv": ("E150", lambda t, f: pl.scan_csv(f / "x.csv")),
    "scan_ndjson": ("E150", lambda t, f: pl.scan_ndjson(f / "x.json")),
    "strict cast": ("E150", lambda t, f: lazy(t).with_columns(COLUMN("s").cast(pl.Float64).alias("a"))),
    "strict narrowing": ("E150", lambda t, f: lazy(t).with_columns(COLUMN("i").cast(pl.Int8).alias("a"))),
    "strict cast in a filter": ("E150", lambda t, f: lazy(t).filter(COLUMN("s").cast(pl.Float64) > 1)),
    "Python on elements": (
        "E150",
        lambda t, f: lazy(t).with_columns(COLUMN("a").map_elements(abs, return_dtype=pl.Float64)),
    ),
    "Python on batches": ("E150", lambda t, f: lazy(t).map_batches(lambda frame: frame)),
    "text to number": ("E150", lambda t, f: lazy(t).with_columns(COLUMN("s").str.to_integer().alias("a"))),
    "item of a list": (
        "E150",
        lambda t, f: lazy(t).with_columns(a=COLUMN("s").str.split("").list.get(3).str.len_bytes()),
    ),
    "series of another length": ("E150", lambda t, f: lazy(t).with_columns(a=pl.Series([1.0, 2.0]))),
    "join": ("E150", lambda t, f: lazy(t).join(lazy(t), on="i")),
    "join that validates": ("E150", lambda t, f: lazy(t).join(lazy(t), on="i", validate="1:1")),
    "first rows": ("E150", lambda t, f: lazy(t).head(2)),
    "all rows, said as first rows": ("E150", lambda t, f: lazy(t).head(10**6)),
    "sum over rows": ("E150", lambda t, f: lazy(t).with_columns(COLUMN("a").sum())),
    "texts of a Parquet file in a filter": (
        "E150",
        lambda t, f: pl.scan_parquet(f / "x.parquet").filter(COLUMN("s") == "F"),
    ),
    "arithmetic in a filter of a Parquet file": (
        "E150",
        lambda t, f: pl.scan_parquet(f / "x.parquet").filter(COLUMN("a").is_null() | (COLUMN("i") + 1 > 0)),
    ),
    "a filter behind arithmetic of a Parquet file": (
        "E150",
        lambda t, f: (
            pl.scan_parquet(f / "x.parquet").with_columns(b=COLUMN("i") * 2).filter(~(COLUMN("i") * 2 < 3))
        ),
    ),
    "a cast in a filter of a Parquet file": (
        "E150",
        lambda t, f: pl.scan_parquet(f / "x.parquet").filter(COLUMN("i").cast(pl.Int8, strict=False) > 0),
    ),
    "a choice in a filter of a Parquet file": (
        "E150",
        lambda t, f: pl.scan_parquet(f / "x.parquet").filter(
            pl.when(COLUMN("i") > 0).then(COLUMN("a")).otherwise(0.0) > 0
        ),
    ),
    "texts of a Feather file": ("E150", lambda t, f: pl.scan_ipc(f / "x.arrow")),
    "dataset in polars": (
        "E150",
        lambda t, f: pl.scan_pyarrow_dataset(ds.dataset(f / "x.csv", format="csv")),
    ),
    "DuckDB CSV": ("E150", made_of("select * from 'FOLDER/x.csv'")),
    "DuckDB read_csv": ("E150", lambda t, f: duckdb.connect().read_csv(str(f / "x.csv"))),
    "DuckDB read_json": ("E150", made_of("select * from read_json('FOLDER/x.json')")),
    "DuckDB cast": ("E150", made_of("select cast(s as double) as a from t")),
    "DuckDB cast in a filter": ("E150", made_of("select * from t where cast(s as double) > 1")),
    "DuckDB view with a cast": ("E150", made_of("select * from v")),
    "DuckDB generated column": ("E150", made_of("select * from g")),
    "DuckDB arithmetic": ("E150", made_of("select i * i as a from t")),
    "DuckDB function": ("E150", made_of("select * from t where error(s) is null")),
    "DuckDB star replaced": ("E150", made_of("select * replace (cast(s as double) as a) from t")),
    "DuckDB aggregate": ("E150", made_of("select sum(a) as a from t")),
    "DuckDB join": ("E150", made_of("select t.a from t join t u using (i)")),
    "DuckDB subquery in a filter": ("E150", made_of("select * from t where a > (select a from t)")),
    "DuckDB first rows": ("E150", made_of("select * from t limit 2")),
    "DuckDB common table": (
        "E150",
        made_of("with t as (select cast(s as double) as a from main.t) select * from t"),
    ),
    "DuckDB texts of a Parquet file": ("E150", made_of("select a, s from 'FOLDER/x.parquet'")),
    "DuckDB filter on floats of a Parquet file": (
        "E150",
        made_of("select a from 'FOLDER/x.parquet' where a > 1"),
    ),
    "DuckDB filter around a Parquet file": (
        "E150",
        made_of("select a from (select * from 'FOLDER/x.parquet') u where not a between 1 and 2"),
    ),
    "DuckDB several Parquet files": ("E150", made_of("select a from 'FOLDER/*.parquet'")),
    "DuckDB frame of Python": ("E150", lambda t, f: duckdb.connect().from_arrow(t)),
}
NUMBER = pa.schema([("a", pa.float64())])


def test_a_late_time_in_an_orc_file_does_not_decide_whether_there_is_a_release(tmp_path: Path) -> None:
    """The last day of the year 9999 stands for "never" in many tables; Arrow stopped at it, after the payment."""
    about = {"columns": {"a": {"lower": "2000-01-01", "upper": "2100-01-01", "feature": False}}}
    schema = Schema.from_dict({**about, "derived": {"y": "year(a)"}})
    for day in ("2024-05-06", "9999-12-31"):
        times = pa.array([np.datetime64(day, "us")], pa.timestamp("us"))
        orc.write_table(pa.table({"a": times}), tmp_path / "times.orc")
        with pytest.raises(InputError, match="E150 the dataset holds times in an ORC file"):
            open_table(ds.dataset(tmp_path / "times.orc", format="orc"), schema)


def renamed(table: pa.Table, folder: Path) -> str:
    path = folder / "texts.pq"
    pq.write_table(pa.table({"a": table["s"]}), path)
    return str(path)


@pytest.mark.parametrize("case", REFUSED)
def test_what_might_fail_on_a_cell_is_refused_and_nothing_is_paid(
    case: str, folder: Path, tmp_path: Path
) -> None:
    code, make = REFUSED[case]
    ledger = Ledger.init(tmp_path / "book", pc.PureDP(epsilon=3, neighbours="replace-one"))
    before = ledger.log()
    with pytest.raises(InputError) as refusal:
        pc.release(make(PLAIN, folder), schema=A, loss=LOSS, ledger=ledger)
    assert (refusal.value.code, refusal.value.exit_code) == (code, 2)
    assert refusal.value.remedy
    assert "\n" not in str(refusal.value)
    assert ledger.log() == before


@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_is_the_same_whatever_the_rows_hold(case: str, folder: Path) -> None:
    """How many rows there are may change how a plan is optimised, and must not change what is said."""
    _, make = REFUSED[case]
    said = set()
    for table in (PLAIN, PLAIN.slice(0, 0)):
        with pytest.raises(InputError) as refusal:
            open_table(make(table, folder), A)
        said.add(str(refusal.value))
    assert len(said) == 1


WIDENED = [
    (pa.int32(), pa.float64(), True), (pa.int64(), pa.float64(), False), (pa.int8(), pa.int16(), True),
    (pa.uint8(), pa.int8(), False), (pa.uint8(), pa.int16(), True), (pa.int8(), pa.uint64(), False),
    (pa.float32(), pa.float64(), True), (pa.float64(), pa.float32(), False), (pa.float64(), pa.int64(), False),
    (pa.string(), pa.float64(), False), (pa.string(), pa.large_string(), True), (pa.binary(), pa.string(), False),
    (pa.null(), pa.float64(), True), (pa.int16(), pa.float32(), True), (pa.int32(), pa.float32(), False),
    (pa.bool_(), pa.bool_(), True), (pa.string(), pa.int8(), False), (pa.uint64(), pa.uint32(), False),
]  # fmt: skip


@pytest.mark.parametrize(("source", "target", "kept"), WIDENED)
def test_casts_of_a_dataset_are_let_through_only_where_they_keep_every_value(
    source: pa.DataType, target: pa.DataType, kept: bool
) -> None:
    if kept:
        _check_cast(source, target)
    else:
        with pytest.raises(Unlisted):
            _check_cast(source, target)


def test_every_listed_cast_of_whole_numbers_keeps_the_extremes() -> None:
    whole = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
    for source in whole:
        signed = pa.types.is_signed_integer(source)
        largest = 2 ** (source.bit_width - signed) - 1
        values = pa.array([-largest - 1 if signed else 0, largest, largest - 1], source)
        for target in [*whole, pa.float32(), pa.float64()]:
            try:
                _check_cast(source, target)
            except Unlisted:
                continue
            assert values.cast(target).to_pylist() == values.to_pylist()


# --- the audit: a fault while a listed table is read says nothing ---------------------------------------


@pytest.mark.parametrize("case", ["frame", "Parquet dataset", "DuckDB table"])
def test_a_fault_after_payment_has_a_fixed_text(
    case: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Listed plans do not fail on cells; if one did, it would tell nothing but that."""

    def broken(*_: object, **__: object) -> Iterable[object]:
        raise ValueError("secret 12345")

    _, make, _ = TAKEN[case]
    ledger = Ledger.init(tmp_path / "book", pc.PureDP(epsilon=3, neighbours="replace-one"))
    data = make(PLAIN, folder)
    for place in ("privcov.table.lazy.batch_blocks", "privcov.table.arrow.batch_blocks"):
        monkeypatch.setattr(place, broken)
    with pytest.raises(InternalError) as failure:
        pc.release(data, schema=A, loss=LOSS, ledger=ledger)
    assert "12345" not in str(failure.value)
    assert str(failure.value) == str(InternalError())
    assert failure.value.__context__ is None
    assert ledger.spent["epsilon"] == 1
