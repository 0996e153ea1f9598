"""Laws of cells: a table means the same as a file, as a frame of text and as a frame of typed values."""

from __future__ import annotations

import csv
import io
import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privcov.errors import InputError
from privcov.schema import Categorical, Schema
from privcov.summing.bounding import Bounding
from privcov.table import open_table
from privcov.table.blocks import floats_of
from privcov.table.cells import codes_of_numbers, short_codes

LEVELS: list[list[Any]] = [
    [1, 2],
    ["1", "2"],
    [True, False],
    ["true", "false"],
    [0, 1, 2.5],
    ["1", "A", "true"],
    ["01", "1"],
    ["F", "M"],
    ["1", "1.0"],
]
CODES: list[list[Any]] = [[], ["NA", "?"], [-9], ["-9.0", ""], ["x", 7, -9]]
RULES: list[dict[str, Any]] = [{}, {"missing": "indicator"}, {"missing": "zero-row"}, {"missing": "midpoint"}]
TEXT = st.sampled_from(
    ["1", "1.0", " 1 ", "01", "2", "2.50", "0", "true", "True", "FALSE", "A", "F", " M", "NA", "?", "-9", "-9.00",
     "-9e0", "7", "x", "", "é", "nan", "inf", "1e999", "0x1", '"', "a,b"]
)  # fmt: skip


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    """A numeric column, and one of levels, with missing values and rules of all sorts."""
    columns = {
        "a": {"lower": -10, "upper": 10, **draw(st.sampled_from([*RULES, {"fill": 3}]))},
        "s": {"levels": draw(st.sampled_from(LEVELS)), **draw(st.sampled_from(RULES))},
    }
    for about in columns.values():
        if draw(st.booleans()):
            about["missing_values"] = draw(st.sampled_from(CODES))
    table = {
        "missing_values": draw(st.sampled_from(CODES)),
        "missing": draw(st.sampled_from(["midpoint", "zero-row"])),
    }
    return Schema.from_dict({"columns": columns, **table})


def rows_of(data: Any, schema: Schema) -> list[list[float]]:
    bounding = Bounding.of(schema)
    return [row for block in open_table(data, schema).blocks() for row in bounding.rows(block).tolist()]


def csv_text(columns: dict[str, list[str]]) -> str:
    made = io.StringIO()
    writer = csv.writer(made, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return made.getvalue()


def check_same(file: str, frames: dict[str, Any], schema: Schema) -> None:
    """Every frame that is not refused by its types has the rows of the file, in their order."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "t.csv")
        path.write_text(file, encoding="utf-8")
        expected = rows_of(path, schema)
        for name, frame in frames.items():
            try:
                opened = open_table(frame, schema)
            except InputError:
                # From types alone: a frame of the same types with other values is refused as well.
                assert name.startswith("typed"), name
                continue
            del opened
            assert rows_of(frame, schema) == expected, name
        if "arrow" in frames:
            pq.write_table(frames["arrow"], Path(folder, "t.parquet"))
            assert rows_of(Path(folder, "t.parquet"), schema) == expected


def check_texts(schema: Schema, cells: list[tuple[str, str]]) -> None:
    columns = {"a": [a for a, _ in cells], "s": [s for _, s in cells]}
    table = pa.table(columns)
    frames = {
        "arrow": table,
        "arrow dictionary": pa.table({name: table[name].dictionary_encode() for name in columns}),
        "arrow views": pa.table({name: table[name].cast(pa.string_view()) for name in columns}),
        "arrow bytes": pa.table({name: table[name].cast(pa.binary()) for name in columns}),
        "polars": pl.DataFrame(columns),
        "polars categorical": pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.Categorical)),
        "polars lazy": pl.DataFrame(columns).lazy(),
        **{f"pandas {kind}": pd.DataFrame(columns).astype(kind) for kind in (object, "string", "category")},
    }
    check_same(csv_text(columns), frames, schema)


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int": st.sampled_from([0, 1, 2, 7, -9, 3, 100]),
    "float": st.sampled_from([0.0, 1.0, 2.5, 7.0, -9.0, 0.1, 1e300, math.nan]),
    "bool": st.booleans(),
    "nullable": st.sampled_from([0, 1, 2, 7, -9, None]),
}


NULLABLE = {"int": "Int64", "float": "Float64", "bool": "boolean", "nullable": "Int64"}


def written(value: Any) -> str:
    """A value as pandas writes it into a file."""
    return "" if value is None or value != value else str(value)


def check_values(schema: Schema, kind: str, data: st.DataObject) -> None:
    values = data.draw(st.lists(VALUES[kind], min_size=1, max_size=8))
    numbers = data.draw(st.lists(VALUES["float"], min_size=len(values), max_size=len(values)))
    columns: dict[str, list[Any]] = {"a": numbers, "s": values}
    table = pa.table(
        {"a": pa.array(numbers, pa.float64()), "s": pa.array(values, from_pandas=kind == "float")}
    )
    plain = pd.DataFrame({"a": numbers, "s": pd.Series(values, dtype={"nullable": "Int64"}.get(kind))})
    frames = {
        "typed arrow": table,
        "typed arrow dictionary": pa.table({"a": table["a"], "s": table["s"].dictionary_encode()}),
        "typed polars": pl.DataFrame(columns, strict=False),
        "typed polars lazy": pl.DataFrame(columns, strict=False).lazy(),
        "typed pandas": plain,
        "typed pandas nullable": plain.astype({"a": "Float64", "s": NULLABLE[kind]}),
        "typed pandas Arrow": table.to_pandas(types_mapper=pd.ArrowDtype),
        "typed pandas category": plain.astype({"s": "category"}),
        "objects": pd.DataFrame(
            {"a": pd.Series(numbers, dtype=object), "s": pd.Series(values, dtype=object)}
        ),
    }
    if kind != "nullable":
        array = np.column_stack([np.array(numbers), np.array(values, dtype=float)])
        frames["typed array"] = array
    check_same(csv_text({name: list(map(written, cells)) for name, cells in columns.items()}), frames, schema)


TEXTS = st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=8)
KINDS = st.sampled_from(list(VALUES))


@given(schemas(), TEXTS)
@settings(max_examples=20, deadline=None)
def test_texts_mean_the_same_in_a_file_and_in_every_frame(
    schema: Schema, cells: list[tuple[str, str]]
) -> None:
    check_texts(schema, cells)


@given(schemas(), KINDS, st.data())
@settings(max_examples=25, deadline=None)
def test_typed_values_mean_what_their_file_says(schema: Schema, kind: str, data: st.DataObject) -> None:
    check_values(schema, kind, data)


@pytest.mark.slow
@given(schemas(), TEXTS)
@settings(max_examples=500, deadline=None)
def test_many_texts_mean_the_same_everywhere(schema: Schema, cells: list[tuple[str, str]]) -> None:
    check_texts(schema, cells)


@pytest.mark.slow
@given(schemas(), KINDS, st.data())
@settings(max_examples=500, deadline=None)
def test_many_typed_values_mean_what_their_file_says(schema: Schema, kind: str, data: st.DataObject) -> None:
    check_values(schema, kind, data)


@settings(max_examples=40)
@given(
    st.lists(
        st.one_of(st.integers(-40, 40), st.integers(-9_000, 9_000), st.just(2.5)), min_size=1, max_size=40
    ),
    st.lists(st.one_of(st.floats(), st.integers(-50, 50).map(float)), max_size=40),
    st.booleans(),
)
def test_positions_of_levels_that_are_numbers_are_found_by_equality(levels, cells, always):
    """By a table where levels are near each other, and one by one where they are not."""
    column = Categorical(name="a", levels=tuple(dict.fromkeys(levels)))
    every = [*cells, *map(float, column.levels)]
    _assert_positions(column, every, always=always)


@given(
    st.sampled_from([-(2**53), 1 - 2**53, -4_096, -3, 0, 5, 2**52, 2**53 - 40]),
    st.integers(1, 60),
    st.lists(st.integers(-2, 61), max_size=40),
    st.lists(st.sampled_from([0.5, math.nextafter(1, 2), math.nextafter(2, 0), math.nan, math.inf, -1e300])),
    st.booleans(),
)
def test_positions_of_levels_that_go_up_by_one_are_found_by_equality(least, count, near, odd, always):
    """With cells that are levels alone, and with some that a subtraction would round to one."""
    levels = dict.fromkeys(
        float(least + step) for step in range(count)
    )  # not all differ where they are large
    column = Categorical(name="a", levels=tuple(map(int, levels)))
    _assert_positions(column, list(levels), always=always)
    _assert_positions(column, [float(least + step) for step in near], always=always)
    _assert_positions(column, [*levels, *odd], always=always)


@pytest.mark.parametrize("least", [-(2**60), -(2**53), 1 - 2**53, 2**53 - 2, 2**53, 2**60])
@pytest.mark.parametrize("beside", [math.nan, 0.0, -(2.0**60), 2.0**60])
def test_a_cell_has_one_position_whatever_cells_are_read_beside_it(least, beside):
    """Else one row would move others from a level to none: where a table of levels begins below -2^53, one did."""
    levels = tuple(dict.fromkeys(int(float(least + step)) for step in range(2)))
    column = Categorical(name="a", levels=levels)
    alone = np.array([float(levels[0])])
    for always in (True, False):
        assert codes_of_numbers(column, alone, always=always).tolist() == [0.0]
        assert codes_of_numbers(column, np.append(alone, beside), always=always)[0] == 0.0
        assert short_codes(column, np.append(alone, beside), always=always)[0] == 0


@pytest.mark.parametrize("first", [0, 1, -1, 300, 2**52])
@pytest.mark.parametrize(
    "cell",
    [
        math.nan,
        math.inf,
        -math.inf,
        1e300,
        1e-20,
        0.5,
        -0.0,
        2.0**16,
        -(2.0**16),
        2.0**32 + 1,
        2.0**63,
        -1.0,
        -2.0,
    ],
)
def test_short_codes_are_the_codes_whatever_one_cell_holds(first, cell):
    """Beside cells that are all levels: one that no integer of 16 bits holds is no level, and moves no other."""
    column = Categorical(name="a", levels=tuple(range(first, first + 50)))
    cells = np.append(np.arange(first, first + 50, dtype=float), [cell, cell + first])
    expected = codes_of_numbers(column, cells)
    for always in (True, False):
        found = short_codes(column, cells, always=always)
        assert np.array_equal(floats_of(found), expected, equal_nan=True)
        assert found.dtype == np.int16


def test_more_levels_than_sixteen_bits_have_short_codes_too():
    column = Categorical(name="a", levels=tuple(range(0, 10 * 2**15, 10)))
    assert short_codes(column, np.array([10.0 * (2**15 - 1), 5.0])).tolist() == [2**15 - 1, -1]


def _assert_positions(column, every, *, always):
    found = codes_of_numbers(column, np.array(every, dtype=float), always=always)
    short = floats_of(short_codes(column, np.array(every, dtype=float), always=always))
    assert np.array_equal(short, found, equal_nan=True)
    for cell, code in zip(every, found, strict=True):
        if math.isfinite(cell):
            assert code == (column.numbers.index(cell) if cell in column.numbers else -1)
        else:
            assert math.isnan(code)
