"""The law of readers: one record touches one row, in its place, whatever bytes the other records hold.

Pairs of inputs that differ in one record go through the whole path to bounded rows, by every way through the reader,
and the two sequences are compared; every sequence is also compared with the rule read one record at a time. All of it
is deterministic given its seed: no false alarms. What it detects is shown by the readers of tests/canaries.

Quick: dozens of pairs a reader and dialect; ``pytest -m slow tests/laws/test_readers.py``: 50,000 a reader.
"""

from __future__ import annotations

import gzip
import os
import random
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from broken_readers import BROKEN
from patience import PATIENCE

import privcov.table.csv as csv_module
import privcov.table.records as records_module
import privcov.table.sources as sources_module
from privcov.audit.readers import ROUTES, Layout, audit_reader, bounded_rows, differing, parted_rows
from privcov.noise.randomness import rehearsal
from privcov.schema import Schema
from privcov.schema.dialect import Dialect
from privcov.summing.bounding import Bounding
from privcov.table import open_table
from privcov.table.cells import cells
from privcov.table.fragments import Arrived, Piece
from privcov.table.opening import open_pieces
from privcov.table.records import cells_of

SLOW = max(200, round(50_000 * float(os.environ.get("PRIVCOV_SAMPLE", "1"))))
NUMBERS: dict[str, Any] = {"x": {"lower": 0, "upper": 100}, "y": {"lower": 0, "upper": 100}}
MIXED = {"x": {"lower": 0, "upper": 100}, "s": {"levels": ["F", "M"]}}


def schema_of(columns: dict[str, Any], **file: str) -> Schema:
    return Schema.from_dict({"columns": columns, "ignore_extra": True, "file": file})


# --- files of lines --------------------------------------------------------------------------------------


def without_polars(path: Path, schema: Schema) -> np.ndarray:
    kept = csv_module.quick_columns
    csv_module.quick_columns = lambda *_: None
    try:
        return bounded_rows(path, schema)
    finally:
        csv_module.quick_columns = kept


def in_tiny_chunks(path: Path, schema: Schema) -> np.ndarray:
    """Eleven bytes at a time, and runs of twenty tried again: lines begin and end everywhere."""
    kept = sources_module.CHUNK_BYTES, csv_module.SMALL
    sources_module.CHUNK_BYTES, csv_module.SMALL = 11, 20
    try:
        return bounded_rows(path, schema)
    finally:
        sources_module.CHUNK_BYTES, csv_module.SMALL = kept


def zstandard(path: Path, schema: Schema) -> np.ndarray:
    packed = path.with_name(path.name + ".zst")
    packed.write_bytes(pa.Codec("zstd").compress(path.read_bytes(), asbytes=True))
    return bounded_rows(packed, schema)


WAYS: dict[str, Callable[[Path, Schema], np.ndarray]] = {
    **ROUTES,
    "without polars": without_polars,
    "in tiny chunks": in_tiny_chunks,
    "zstandard": zstandard,
}
LAYOUTS: dict[str, tuple[bytes, bytes, Schema]] = {
    "numbers": (b"x,y", b"\n", schema_of(NUMBERS)),
    "projected": (b"x,y,comment", b"\n", schema_of(NUMBERS)),
    "texts": (b"s,x,n", b"\n", schema_of(MIXED)),
    "one column": (b"x", b"\n", schema_of({"x": {"lower": 0, "upper": 100}})),
    "CRLF": (b"x,y,n", b"\r\n", schema_of(NUMBERS)),
    "CR": (b"s,x", b"\r", schema_of(MIXED, line_end="cr")),
    "semicolons, decimal commas": (b"x;y;n", b"\n", schema_of(NUMBERS, separator=";", decimal=",")),
    "tabs, nothing quoted": (b"x\ty\ts", b"\n", schema_of(MIXED, separator="\t", quote="")),
    "a short cap": (b"x,y,n", b"\n", schema_of(NUMBERS)),
    "bars, single quotes, Latin-1": (
        b"s|x|g\xf6",
        b"\n",
        schema_of(MIXED, separator="|", quote="'", encoding="latin-1"),
    ),
}


def layout_of(name: str) -> Layout:
    header, end, schema = LAYOUTS[name]
    width = header.count(schema.file.separator.encode()) + 1
    mark = schema.file.separator.encode()
    record = mark.join([b"1", b"F", b"30"][:width])
    return Layout(
        header=header,
        end=end,
        width=width,
        dialect=schema.file,
        records=(record, mark.join([b"7"] * width), b""),
    )


class Rule:
    """Each record by itself: split by the rule, its cells judged and its row bounded one by one; kept by record."""

    def __init__(self, layout: Layout, schema: Schema) -> None:
        self._layout, self._schema, self._bounding = layout, schema, Bounding.of(schema)
        self._names = layout.header.decode(layout.dialect.cell_encoding).split(layout.dialect.separator)
        self._known: dict[bytes, np.ndarray] = {}

    def rows(self, records: Sequence[bytes]) -> np.ndarray:
        return np.concatenate([np.zeros((0, self._schema.dimension)), *map(self._row, records)])

    def _row(self, record: bytes) -> np.ndarray:
        if record not in self._known:
            self._known[record] = self._read(record)
        return self._known[record]

    def _read(self, record: bytes) -> np.ndarray:
        layout = self._layout
        stray = (b"\n", b" ") if layout.end == b"\r" else (b"\r", b" ")
        line = record.removesuffix(b"\r") if layout.end == b"\n" else record
        found = cells_of(line.replace(*stray), layout.width, layout.dialect)
        block = []
        for column in self._schema.columns:
            text = None if found is None else found[self._names.index(column.name)]
            block.append(cells(column, pa.array([text], pa.binary()), dialect=layout.dialect))
        return self._bounding.rows(block)


CHANGES = 8
"""Neighbours of each table."""
Change = tuple[int, bytes | None]


def random_pairs(layout: Layout, count: int, seed: int) -> Iterator[tuple[list[bytes], list[Change]]]:
    """Random tables of 1 to 12 lines, planted hostile records among random ones, and changes of one record each."""
    drawn = random.Random(seed)
    planted = [record for record in layout.hostile(layout.records) if len(record) < 10_000]
    scraps = layout.scraps()
    pool = [b"".join(drawn.choice(scraps) for _ in range(drawn.randrange(9))) for _ in range(600)]

    def record() -> bytes:
        return drawn.choice(planted if drawn.random() < 0.4 else pool)

    for _ in range(-(-count // CHANGES)):
        table = [record() for _ in range(drawn.randrange(1, 12))]
        yield (
            table,
            [
                (drawn.randrange(len(table)), None if drawn.random() < 0.1 else record())
                for _ in range(CHANGES)
            ],
        )


def check_law(way: str, name: str, count: int, folder: Path) -> None:
    cap = records_module.LONGEST_LINE
    records_module.LONGEST_LINE = 12 if name == "a short cap" else cap  # then many lines are too long
    try:
        check_pairs(way, name, count, folder)
    finally:
        records_module.LONGEST_LINE = cap


def check_pairs(way: str, name: str, count: int, folder: Path) -> None:
    layout, schema, path = layout_of(name), LAYOUTS[name][2], folder / "x.csv"
    rule = Rule(layout, schema)

    def read(records: Sequence[bytes]) -> np.ndarray:
        path.write_bytes(layout.file(records))
        rows = WAYS[way](path, schema)
        assert np.array_equal(rows, rule.rows(records)), (way, records)
        return rows

    for table, changes in random_pairs(layout, count, seed=len(way) + len(name)):
        before = read(table)
        for place, record in changes:
            after = read([*table[:place], *([] if record is None else [record]), *table[place + 1 :]])
            moved = differing(before, after, place, removed=record is None)
            assert moved is None, (way, table, place, record)


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("way", WAYS)
def test_one_line_touches_one_row_in_its_place(way: str, name: str, tmp_path: Path) -> None:
    check_law(way, name, CHANGES, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_one_line_touches_one_row_in_its_place_over_many_pairs(way: str, tmp_path: Path) -> None:
    for name in LAYOUTS:
        check_law(way, name, -(-SLOW // len(LAYOUTS)), tmp_path)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_a_file_cut_at_any_byte_has_its_records_once_and_in_order(end: bytes, tmp_path: Path) -> None:
    schema = schema_of(NUMBERS, line_end="cr" if end == b"\r" else "lf")
    lines = [b"x,y,n", b"1,2,a", b"", b"3", b'4,"5",b', b",,,", b"6,7,c", b"", b""]
    path = tmp_path / "x.csv"
    path.write_bytes(end.join(lines))
    whole, size = bounded_rows(path, schema), path.stat().st_size
    assert len(whole) == 7
    for cut in range(1, size):
        parts = [
            Piece(path=str(path), size=size, start=start, stop=stop, bytes=stop - start)
            for start, stop in ((0, cut), (cut, size))
        ]
        bounding = Bounding.of(schema)
        rows = [bounding.rows(block) for part in parts for block in open_pieces([part], schema).blocks()]
        assert np.array_equal(np.concatenate(rows), whole), cut


def test_utf_16_follows_the_law_for_records_of_16_bit_units(tmp_path: Path) -> None:
    schema = schema_of(MIXED, encoding="utf-16")
    drawn = random.Random(5)
    units = [
        0x31,
        0x32,
        0x46,
        0x2C,
        0x2C,
        0x2C,
        0x22,
        0x20,
        0xD800,
        0xDC00,
        0x0D,
        0xFEFF,
        0x0A00,
        0xE9,
        0x2028,
    ]
    path = tmp_path / "x.csv"
    for encoding, mark in (("utf-16-le", b"\xff\xfe"), ("utf-16-be", b"\xfe\xff")):
        order = "<u2" if encoding.endswith("le") else ">u2"

        def rows(records: list[list[int]], mark: bytes = mark, order: str = order) -> np.ndarray:
            text = [ord(letter) for letter in "x,s\n"] + [unit for line in records for unit in (*line, 0x0A)]
            path.write_bytes(mark + np.array(text, order).tobytes())
            return bounded_rows(path, schema)

        for _ in range(150):
            table = [[drawn.choice(units) for _ in range(drawn.randrange(8))] for _ in range(6)]
            table[2] = [0x37, 0x2C, 0x46]
            place = drawn.randrange(6)
            after = [*table[:place], [drawn.choice(units) for _ in range(8)], *table[place + 1 :]]
            assert differing(rows(table), rows(after), place, removed=False) is None, (table, place)
    path.write_bytes(("x,s\n" + "7,F\n" * 3).encode("utf-16"))
    assert np.array_equal(bounded_rows(path, schema)[0], bounded_rows(path, schema)[2])
    assert bounded_rows(path, schema)[0, 2] > 0  # F was read


# --- rows that have types ----------------------------------------------------------------------------------

HOSTILE_CELLS: list[Any] = [1.0, 50.0, None, float("nan"), float("inf"), 1e308, -0.0, 5e-324, 100]
HOSTILE_TEXTS: list[Any] = ["F", "M", " F", "", None, "f", "\0", "é", "1", "x" * 300, '"', "F,M\n"]
TYPED = Schema.from_dict(
    {"columns": {"x": {"lower": 0, "upper": 100}, "s": {"levels": ["F", "M"]}, "t": {"lower": 0, "upper": 9}}}
)
Row = tuple[Any, Any, Any]


def arrow(rows: list[Row]) -> pa.Table:
    kinds = [pa.float64(), pa.string(), pa.string()]
    columns = [
        pa.array([row[place] for row in rows], kind, from_pandas=False) for place, kind in enumerate(kinds)
    ]
    return pa.table(dict(zip("xst", columns, strict=True)))


def parquet(rows: list[Row], folder: Path) -> Path:
    path = folder / "x.parquet"
    pq.write_table(arrow(rows), path, row_group_size=3)
    return path


def pandas_objects(rows: list[Row]) -> pd.DataFrame:
    return pd.DataFrame(
        {name: pd.Series([row[place] for row in rows], dtype=object) for place, name in enumerate("xst")}
    )


def pandas_typed(rows: list[Row]) -> pd.DataFrame:
    texts = {
        name: pd.Series([row[place] for row in rows], dtype="str") for place, name in ((1, "s"), (2, "t"))
    }
    numbers = np.array([np.nan if row[0] is None else row[0] for row in rows], float)
    return pd.DataFrame({"x": numbers, "s": texts["s"].astype("category"), "t": texts["t"]})


def as_stored_by_duckdb(rows: list[Row]) -> Any:
    connection = database()
    connection.register("given", arrow(rows))
    connection.execute("create or replace table kept as select * from given")
    return connection.table("kept")


@cache
def database() -> Any:
    """One for all tables: opening it takes longer than reading them."""
    return duckdb.connect(config={"threads": 1})


def array(rows: list[Row]) -> np.ndarray:
    return np.array([[np.nan if row[0] is None else row[0], len(row[1] or ""), 1.0] for row in rows])


FRAMES: dict[str, Callable[[list[Row], Path], Any]] = {
    "Arrow": lambda rows, _: arrow(rows),
    "Parquet": parquet,
    "pandas, objects": lambda rows, _: pandas_objects(rows),
    "pandas, typed": lambda rows, _: pandas_typed(rows),
    "polars": lambda rows, _: pl.from_arrow(arrow(rows)),
    "polars, lazy": lambda rows, _: pl.from_arrow(arrow(rows)).lazy(),
    "DuckDB": lambda rows, _: as_stored_by_duckdb(rows),
    "Arrow dataset": lambda rows, folder: pa.dataset.dataset(parquet(rows, folder)),
    "a partition of Spark": lambda rows, _: Arrived(place=0, data=arrow(rows).to_reader(max_chunksize=2)),
    "a partition of Dask": lambda rows, _: Arrived(place=0, data=pandas_typed(rows)),
}


def rows_of(data: Any, schema: Schema) -> np.ndarray:
    bounding = Bounding.of(schema)
    table = data.open(schema) if isinstance(data, Arrived) else open_table(data, schema)
    blocks = [bounding.rows(block) for block in table.blocks()]
    return np.concatenate([np.zeros((0, schema.dimension)), *blocks])


def check_frame(name: str, count: int, folder: Path) -> None:
    import pyarrow.dataset  # noqa: F401

    drawn = random.Random(11)

    def row() -> Row:
        return drawn.choice(HOSTILE_CELLS), drawn.choice(HOSTILE_TEXTS), drawn.choice(["1", "x", None, "2.5"])

    alone = cache(lambda row: rows_of(arrow([row]), TYPED))
    for _ in range(-(-count // CHANGES)):
        table = [row() for _ in range(drawn.randrange(1, 9))]
        before = rows_of(FRAMES[name](table, folder), TYPED)
        assert np.array_equal(before, np.concatenate([alone(row) for row in table]))
        for _ in range(CHANGES):
            place = drawn.randrange(len(table))
            changed = None if drawn.random() < 0.15 else row()
            after = [*table[:place], *([] if changed is None else [changed]), *table[place + 1 :]]
            moved = differing(
                before, rows_of(FRAMES[name](after, folder), TYPED), place, removed=changed is None
            )
            assert moved is None, (table, place, changed)


@pytest.mark.parametrize("name", FRAMES)
def test_one_row_of_a_frame_touches_one_row_in_its_place(name: str, tmp_path: Path) -> None:
    check_frame(name, 2 * CHANGES, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", FRAMES)
def test_one_row_of_a_frame_touches_one_row_over_many_pairs(name: str, tmp_path: Path) -> None:
    check_frame(name, SLOW, tmp_path)


# --- what must fail ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BROKEN)
def test_the_auditor_fails_a_broken_reader_and_shows_the_pair(name: str, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("x,y,comment\n" + "".join(f"{n},{n + 1},ok\n" for n in range(20)))
    found = audit_reader(path, schema=schema_of(NUMBERS), readers={name: BROKEN[name]}, more=20)
    assert not found.passed
    assert found.violation is not None
    assert "the record at position" in found.violation
    assert found.render().startswith("FAIL")


def test_the_auditor_passes_the_reader_by_every_way(tmp_path: Path) -> None:
    path = tmp_path / "people.tsv"
    path.write_text("x\ty\tcomment\n1\t2\tok\n3\t4\t\n")
    found = audit_reader(path, schema=schema_of(NUMBERS), more=5, randomness=rehearsal(1))
    assert found.passed, found.violation
    assert found.pairs > 500
    pq.write_table(
        pa.table({"x": [1.0, None, 3.0], "y": pa.array([1, 2, 3], pa.int8())}), path.with_suffix(".pq")
    )
    assert audit_reader(path.with_suffix(".pq"), schema=schema_of(NUMBERS)).passed


def test_the_auditor_cuts_no_file_that_a_release_reads_as_one(tmp_path: Path) -> None:
    path, schema = tmp_path / "wide.csv", replace(schema_of(NUMBERS), file=Dialect(encoding="utf-16"))
    path.write_bytes("x,y\n1,2\n3,4\n".encode("utf-16"))
    assert len(parted_rows(path, schema)) == 2
    found = audit_reader(path, schema=schema, readers={"in parts": parted_rows}, more=0)
    assert found.passed, found.violation


@pytest.mark.parametrize("name", BROKEN)
def test_the_law_itself_fails_a_broken_reader(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(WAYS, name, BROKEN[name])

    def tried() -> None:
        for table, place, record in planted_pairs():
            compare(BROKEN[name], table, place, record, tmp_path)
        check_law(name, "projected", 500, tmp_path)

    with pytest.raises(AssertionError):
        tried()


def planted_pairs() -> Iterator[tuple[list[bytes], int, bytes]]:
    """The tables of the three faults that were ours."""
    short = [b"1,2,", *[b"100,100"] * 40]
    yield [*short, b"50,50,"], 41, b"50,50," + b"," * 40
    yield [b"1,2,", *[b""] * 40, b"3,4,"], 41, b""
    yield [b"1,2,", b"3,4,", b"5,6,"], 0, b"1,2"


def compare(
    read: Callable[[Path, Schema], np.ndarray], table: list[bytes], place: int, record: bytes, folder: Path
) -> None:
    layout, schema = layout_of("projected"), LAYOUTS["projected"][2]
    path = folder / "x.csv"
    rows = []
    for records in (table, [*table[:place], record, *table[place + 1 :]]):
        path.write_bytes(layout.file(records))
        rows.append(read(path, schema))
    assert differing(*rows, place, removed=False) is None


@pytest.mark.parametrize("way", WAYS)
def test_the_tables_that_once_broke_the_law_do_not(way: str, tmp_path: Path) -> None:
    for table, place, record in planted_pairs():
        compare(WAYS[way], table, place, record, tmp_path)


# --- borrowed parsers ----------------------------------------------------------------------------------------


def test_a_parser_that_reads_otherwise_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pyarrow that forgets a quote, and a polars that accepts long lines: the rule reads in their place."""
    schema = schema_of(MIXED)
    path = tmp_path / "x.csv"
    path.write_bytes(b'x,s,n\n"1","F","a ""b"""\n2,M\n3,M,c,d\n')
    expected = bounded_rows(path, schema)
    real = pa.csv.read_csv

    def careless(*given: Any, **options: Any) -> pa.Table:
        options["parse_options"].quote_char = False
        return real(*given, **options)

    csv_module._parser.cache_clear()
    monkeypatch.setattr(pa.csv, "read_csv", careless)
    try:
        assert csv_module._parser(Dialect()) is records_module.columns_by_rule
        assert np.array_equal(bounded_rows(path, schema), expected)
    finally:
        csv_module._parser.cache_clear()


def test_a_polars_that_accepts_long_lines_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    from privcov.table import quick

    real = pl.read_csv
    monkeypatch.setattr(
        pl, "read_csv", lambda *given, **words: real(*given, **words, truncate_ragged_lines=True)
    )
    quick._polars.cache_clear()
    try:
        assert quick.quick_columns(b"1,2\n3,4\n", 2, [0, 1], [True, True]) is None
    finally:
        quick._polars.cache_clear()


def test_a_forked_child_reads_without_the_threads_of_its_parent(tmp_path: Path) -> None:
    """polars waits for ever for the threads that it had before a fork; so a child does not use it."""
    schema, path = schema_of(NUMBERS), tmp_path / "x.csv"
    path.write_bytes(b"x,y\n" + b"1,2\n3,4\n" * 500)
    expected = bounded_rows(path, schema)  # polars has its threads now
    child = os.fork()
    if not child:
        signal.alarm(PATIENCE)
        os._exit(0 if np.array_equal(bounded_rows(path, schema), expected) else 1)
    assert os.waitpid(child, 0)[1] == 0


# --- packed files ---------------------------------------------------------------------------------------------


def test_packed_files_are_read_as_what_is_in_them(tmp_path: Path) -> None:
    schema = schema_of(MIXED)
    path = tmp_path / "x.csv"
    path.write_bytes(b"x,s\n" + b"1,F\n\n2,M\n" * 5_000)
    plain = bounded_rows(path, schema)
    for ending, pack in (
        (".gz", gzip.compress),
        (".zst", lambda data: pa.compress(data, "zstd", asbytes=True)),
    ):
        packed = tmp_path / f"x.csv{ending}"
        data = path.read_bytes()
        packed.write_bytes(pack(data[:30_001]) + pack(data[30_001:]))  # two members
        assert np.array_equal(bounded_rows(packed, schema), plain)
        assert np.array_equal(careful(packed, schema), plain)


def careful(path: Path, schema: Schema) -> np.ndarray:
    return bounded_rows(path, replace(schema, file=replace(schema.file, timing="constant")))
