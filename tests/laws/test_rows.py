"""Laws of the path from rows to the Gram matrix: row-local, order-free, and never above the norm bound."""

from __future__ import annotations

import math
import re
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privcov.table.csv as csv_module
from privcov.schema import Schema
from privcov.schema.grid import ROW_BITS, Grid
from privcov.summing.bounding import Bounding
from privcov.summing.gram import Gram
from privcov.table import Table, open_table
from privcov.table.quick import quick_columns

WILD = st.floats(allow_nan=True, allow_infinity=True, width=64)
BOUNDS = st.tuples(st.floats(-1e100, 1e100), st.floats(1e-3, 1e100)).filter(lambda b: b[0] + b[1] > b[0])


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    columns: dict[str, Any] = {}
    for place in range(draw(st.integers(1, 6))):
        if draw(st.integers(0, 3)):
            lower, width = draw(BOUNDS)
            columns[f"x{place}"] = {"lower": lower, "upper": lower + width}
        else:
            columns[f"x{place}"] = {"levels": list(range(draw(st.integers(1, 4))))}
        if draw(st.booleans()):
            about = columns[f"x{place}"]
            own = st.sampled_from(["midpoint", "zero-row", "indicator"]).map(lambda rule: {"missing": rule})
            about |= draw(st.one_of(own, st.just({"fill": about.get("upper", 0)})))
    rules: dict[str, Any] = {
        "intercept": draw(st.booleans()),
        "missing": draw(st.sampled_from(["midpoint", "zero-row"])),
    }
    if draw(st.booleans()):
        rules["row_norm_bound"] = draw(st.fractions(Fraction(1, 10), 7, max_denominator=50))
    return Schema.from_dict({"columns": columns, **rules})


@st.composite
def tables(draw: st.DrawFn) -> tuple[Schema, np.ndarray]:
    schema = draw(schemas())
    cell = st.one_of(WILD, st.integers(-1, 4).map(float), st.floats(-10, 10))
    row = st.lists(cell, min_size=len(schema.columns), max_size=len(schema.columns))
    rows = draw(st.lists(row, min_size=1, max_size=12))
    return schema, np.array(rows, dtype=float)


def bounded(bounding: Bounding, rows: np.ndarray) -> np.ndarray:
    return bounding.rows(list(rows.T))


@given(tables())
@settings(max_examples=300, deadline=None)
def test_rows_are_whole_bounded_and_independent_of_each_other(table: tuple[Schema, np.ndarray]) -> None:
    schema, rows = table
    bounding = Bounding.of(schema)
    made = bounded(bounding, rows)
    for row, together in zip(rows, made, strict=True):
        assert bounded(bounding, row[None]).tolist() == [together.tolist()]
        assert sum(int(q) ** 2 for q in together) <= bounding.grid.squared_norm_bound <= 2**ROW_BITS
        assert all(q == int(q) for q in together)


@given(tables(), st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_any_partition_and_order_gives_the_same_sum(table: tuple[Schema, np.ndarray], random: Any) -> None:
    schema, rows = table
    bounding = Bounding.of(schema)
    whole = Gram(bounding.grid)
    whole.add(bounded(bounding, rows))
    order = list(range(len(rows)))
    random.shuffle(order)
    cut = random.randrange(len(rows) + 1)
    parts = Gram(bounding.grid)
    for part in (order[cut:], order[:cut]):
        piece = Gram(bounding.grid)
        piece.add(bounded(bounding, rows[part]))
        parts.merge(piece)
    assert list(parts.reveal_to_mechanism()) == list(whole.reveal_to_mechanism())
    assert parts.rows == whole.rows


@given(schemas())
@settings(max_examples=200, deadline=None)
def test_the_grid_keeps_every_norm_and_every_block_sum_exact(schema: Schema) -> None:
    grid = Grid.of(schema)
    assert schema.dimension * 4**grid.exponent <= 2**52
    assert grid.squared_norm_bound <= min(2**ROW_BITS, schema.squared_norm_bound * 4**grid.exponent)


# --- cells and records ---------------------------------------------------------------------------------

AB = Schema.from_dict({"columns": {"a": {"lower": 0, "upper": 10}, "s": {"levels": ["F", "M"]}}})
ONE = Schema.from_dict({"columns": {"a": {"lower": 0, "upper": 10}}})
NUMBER = re.compile(rb"[ \t\r\n\v\f]*[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?[ \t\r\n\v\f]*")
NUMERIC_TEXT = st.one_of(
    st.text("0123456789+-.eE \t_xXinfaNA", max_size=9),
    st.floats().map(repr),
    st.integers().map(str),
    st.text(max_size=4),
)


def meant(cell: bytes) -> float:
    """The number rule, from its own words."""
    value = float(cell) if NUMBER.fullmatch(cell) else math.nan
    return value if math.isfinite(value) else math.nan


def first_column(data: Any) -> list[float]:
    found = [float(cell) for block in open_table(data, ONE).blocks() for cell in block[0]]
    return [cell if math.isfinite(cell) else math.nan for cell in found]


@given(st.lists(NUMERIC_TEXT, min_size=1, max_size=8))
@settings(max_examples=150, deadline=None)
def test_text_is_a_number_by_the_rule_alone(cells: list[str]) -> None:
    expected = [meant(cell.encode("utf-8", "surrogatepass")) for cell in cells]
    sources: list[Any] = [pd.DataFrame({"a": pd.Series(cells, dtype=object)})]
    if not any("\ud800" <= letter <= "\udfff" for cell in cells for letter in cell):
        sources.append(pa.table({"a": pa.array(cells, pa.string())}))
    for source in sources:
        assert repr(first_column(source)) == repr(expected)


def rows_of(table: Table) -> list[str]:
    return [
        repr([float(c) if math.isfinite(c) else None for c in row])
        for block in table.blocks()
        for row in zip(*block, strict=True)
    ]


@given(st.binary(max_size=60))
@settings(max_examples=100, deadline=None)
def test_any_bytes_after_the_header_are_a_table_with_one_record_per_line(body: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.csv")
        path.write_bytes(b"a,s\n" + body)
        table = open_table(path, AB)
        assert sum(len(block[0]) for block in table.blocks()) == table.rows
    assert table.rows == body.count(b"\n") + (not body.endswith(b"\n") and body != b"")


CELL = st.one_of(NUMERIC_TEXT, st.floats(-100, 100).map(repr), st.floats(-100, 100).map(repr))
SHORT_LINE = st.lists(CELL, min_size=1, max_size=4).map(
    lambda cells: ",".join(cells).encode("utf-8", "ignore")
)
WIDE = Schema.from_dict(
    {"columns": {"a": {"lower": 0, "upper": 1}, "b": {"lower": 0, "upper": 1}, "k": {"levels": [1, 2]}}}
)


@given(st.lists(SHORT_LINE.filter(lambda line: b"\n" not in line and b"\r" not in line), max_size=6))
@settings(max_examples=200, deadline=None)
def test_the_quick_reader_of_csv_lines_changes_no_cell(lines: list[bytes]) -> None:
    quick = csv_module.quick_columns
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.csv")
        path.write_bytes(b"\n".join([b"k,a,b", *lines, b"1,2,3", b""]))
        fast = rows_of(open_table(path, WIDE))
        csv_module.quick_columns = lambda *_: None
        try:
            assert fast == rows_of(open_table(path, WIDE))
        finally:
            csv_module.quick_columns = quick


@given(st.lists(st.tuples(NUMERIC_TEXT, NUMERIC_TEXT, st.floats()), min_size=1, max_size=4))
@settings(max_examples=150, deadline=None)
def test_what_the_quick_reader_takes_for_a_number_is_one(rows: list[tuple[str, str, float]]) -> None:
    lines = "".join(f"{a},{b},{c!r}\n" for a, b, c in rows).encode("utf-8", "ignore")
    found = quick_columns(lines, 3, [0, 1, 2], [True] * 3) if lines.count(b"\n") == len(rows) else None
    for line, row in zip(lines.split(b"\n"), [] if found is None else found.T.tolist(), strict=False):
        taken = [cell if math.isfinite(cell) else math.nan for cell in row]
        assert repr(taken) == repr([meant(cell) for cell in line.split(b",")])


def test_plain_numbers_are_read_the_quick_way() -> None:
    pytest.importorskip("polars")
    made = quick_columns(b"1,2.5\n-3e2,\n", 2, [1, 0], [True, True])
    assert repr(made.T.tolist()) == "[[2.5, 1.0], [nan, -300.0]]"
