"""Missing values and levels: what a cell means is the same in a file and in every frame of that file."""

from __future__ import annotations

import decimal
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privcov.errors import InputError
from privcov.schema import Schema
from privcov.schema.columns import Categorical, Numeric
from privcov.schema.dialect import Dialect
from privcov.table import open_table
from privcov.table.cells import UNKNOWN, apply_missing_codes, cells

NAN = math.nan


def column_of(data: Any, about: dict[str, Any], **rules: Any) -> list[float]:
    """The cells of the column ``c`` as blocks hold them."""
    schema = Schema.from_dict({"columns": {"c": about}, **rules})
    return [float(cell) for block in open_table(data, schema).blocks() for cell in block[0]]


def same(found: list[float], expected: list[float]) -> bool:
    return repr(found) == repr([float(value) for value in expected])


def sources_of(texts: list[str], folder: Path) -> dict[str, Any]:
    """The same texts as a file and as frames of text."""
    (folder / "c.csv").write_text("c\n" + "".join(f'"{text}"\n' for text in texts), encoding="utf-8")
    table = pa.table({"c": texts})
    pq.write_table(table, folder / "c.parquet")
    return {
        "csv": folder / "c.csv",
        "parquet": folder / "c.parquet",
        "arrow": table,
        "arrow dictionary": pa.table({"c": table["c"].dictionary_encode()}),
        "arrow binary": pa.table({"c": table["c"].cast(pa.binary())}),
        "polars": pl.DataFrame({"c": texts}),
        "polars categorical": pl.DataFrame({"c": pl.Series(texts, dtype=pl.Categorical)}),
        "pandas object": pd.DataFrame({"c": pd.Series(texts, dtype=object)}),
        "pandas string": pd.DataFrame({"c": pd.Series(texts, dtype="string")}),
        "pandas category": pd.DataFrame({"c": pd.Series(texts, dtype="category")}),
    }


AGE = {"lower": 0, "upper": 100}


# --- missing values ------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [-999, -999.0, "-999", "-9.99e2"])
def test_a_missing_number_is_missing_however_it_is_written(code: Any, tmp_path: Path) -> None:
    texts = ["-999", "-999.0", " -9.99e2 ", "-0999", "-998", "7", "?", ""]
    expected = [NAN] * 4 + [-998, 7, NAN, NAN]
    for name, data in sources_of(texts, tmp_path).items():
        assert same(column_of(data, {**AGE, "missing_values": [code, "NA"]}), expected), name
        assert same(column_of(data, AGE, missing_values=[code]), expected), name
    for values in (np.array([-999, 7]), np.array([-999.0, 7.0]), np.array([-999, 7], dtype=">i4")):
        for data in (values[:, None], pd.DataFrame({"c": values})):
            assert same(column_of(data, AGE, missing_values=[code]), [NAN, 7])
    odd = [decimal.Decimal("-999.00"), Fraction(-999), np.int8(7), -999]
    data = pd.DataFrame({"c": pd.Series(odd, dtype=object)})
    assert same(column_of(data, AGE, missing_values=[code]), [NAN, NAN, 7, NAN])


def test_a_list_of_a_column_replaces_that_of_the_table(tmp_path: Path) -> None:
    data = sources_of(["-9", "-8"], tmp_path)["csv"]
    assert same(column_of(data, AGE, missing_values=["-9"]), [NAN, -8])
    assert same(column_of(data, {**AGE, "missing_values": [-8]}, missing_values=["-9"]), [-9, NAN])
    assert same(column_of(data, {**AGE, "missing_values": []}, missing_values=["-9"]), [-9, -8])


def test_the_memory_of_an_array_is_not_written_to() -> None:
    schema = Schema.from_dict({"columns": {"a": AGE, "b": AGE}, "missing_values": [-9]})
    for order in ("C", "F"):
        array = np.array([[1.0, -9], [-9, 2]], order=order)
        array.flags.writeable = False
        (block,) = open_table(array, schema).blocks()
        assert repr(np.stack([*block]).tolist()) == "[[1.0, nan], [nan, 2.0]]"
        assert array.tolist() == [[1, -9], [-9, 2]]
    column = Numeric(name="a", lower=0, upper=1, missing_values=(-9,))
    numbers = np.array([1.0, 2.0])
    assert apply_missing_codes(column, numbers, always=False) is numbers


def test_a_missing_value_of_a_categorical_column_is_missing_and_not_an_unknown_level(tmp_path: Path) -> None:
    texts = ["F", " ? ", "NA", "n/a", "-9", "-9.0", ""]
    about = {"levels": ["F", "M"]}
    for name, data in sources_of(texts, tmp_path).items():
        expected = [0, NAN, UNKNOWN, NAN, NAN, NAN, NAN]
        assert same(column_of(data, about, missing_values=["?", "n/a", -9]), expected), name
        assert same(column_of(data, about), [0, *[UNKNOWN] * 5, NAN]), name
    numbers = {"levels": [1, 2], "missing_values": ["-9"]}
    for name, data in sources_of(["1", "-9.0", "3"], tmp_path).items():
        assert same(column_of(data, numbers), [0, NAN, UNKNOWN]), name
    assert same(column_of(np.array([[1], [-9], [3]]), numbers), [0, NAN, UNKNOWN])


# --- levels --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("levels", [[1, 2], ["1", "2"], [1.0, 2.0], ["1.0", "+2"]])
def test_levels_that_are_numbers_match_however_a_number_is_written(levels: list[Any], tmp_path: Path) -> None:
    texts = ["1", "1.0", "01", " 2e0 ", "3", "x", ""]
    for name, data in sources_of(texts, tmp_path).items():
        assert same(column_of(data, {"levels": levels}), [0, 0, 0, 1, UNKNOWN, NAN, NAN]), name
    for dtype in ("int64", "float64", "Int64", "Float32", "uint8", "int64[pyarrow]", "category", object):
        data = pd.DataFrame({"c": pd.Series([1, 2, 3]).astype(dtype)})
        assert same(column_of(data, {"levels": levels}), [0, 1, UNKNOWN]), dtype
    for kind in (pa.int8(), pa.uint64(), pa.float32(), pa.decimal128(21, 2), pa.string()):
        values = pa.array([1, 2, 3]).cast(kind)
        for column in (values, values.dictionary_encode()):
            assert same(column_of(pa.table({"c": column}), {"levels": levels}), [0, 1, UNKNOWN]), kind
    assert same(column_of(pl.DataFrame({"c": [1, 2, 3]}), {"levels": levels}), [0, 1, UNKNOWN])
    assert same(column_of(np.array([[1], [2], [3]]), {"levels": levels}), [0, 1, UNKNOWN])


@pytest.mark.parametrize("levels", [["01234", "12345"], ["1234", "01234"], ["1", "1.0"], ["A", "1234"]])
def test_levels_with_leading_zeros_or_twice_the_same_number_keep_their_text(
    levels: list[str], tmp_path: Path
) -> None:
    texts = ["01234", "1234", "1.0", "1", "12345", "001"]
    expected = [levels.index(text) if text in levels else UNKNOWN for text in texts]
    for name, data in sources_of(texts, tmp_path).items():
        assert same(column_of(data, {"levels": levels}), expected), name


@pytest.mark.parametrize("levels", [[True, False], ["true", "false"], ["TRUE", "False"], [1, 0], ["1", "0"]])
def test_yes_and_no_match_as_words_as_numbers_and_as_booleans(levels: list[Any], tmp_path: Path) -> None:
    texts = ["true", "True", "TRUE", "1", "1.0", "false", "FALSE", "0", "yes", "2"]
    expected = [0, 0, 0, 0, 0, 1, 1, 1, NAN, UNKNOWN]
    for name, data in sources_of(texts, tmp_path).items():
        assert same(column_of(data, {"levels": levels}), expected), name
    for dtype in ("bool", "boolean", "bool[pyarrow]", "int8", "float64", "category", object):
        data = pd.DataFrame({"c": pd.Series([True, False]).astype(dtype)})
        assert same(column_of(data, {"levels": levels}), [0, 1]), dtype
    assert same(column_of(pl.DataFrame({"c": [True, False, None]}), {"levels": levels}), [0, 1, NAN])
    assert same(column_of(pa.table({"c": [True, False]}), {"levels": levels}), [0, 1])


def test_true_and_false_of_a_schema_are_named_as_words_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text("[columns.c]\nlevels = [true, false]\n")
    schema = Schema.read(path)
    assert [feature.name for feature in schema.features] == ["(Intercept)", "c[true]", "c[false]"]
    path.write_text(schema.to_toml())
    assert Schema.read(path) == schema


def test_integers_and_objects_have_their_digits_where_levels_are_texts() -> None:
    about = {"levels": ["A", "1", "12"]}
    for data in (
        pa.table({"c": [1, 12, 7, None]}),
        pl.DataFrame({"c": [1, 12, 7, None]}),
        pd.DataFrame({"c": pd.Series([1, 12, 7, None], dtype="Int64")}),
        pd.DataFrame({"c": pd.Series([1, np.int64(12), 7, None], dtype=object)}),
        pd.DataFrame({"c": pd.Series([1, 12, 7, None], dtype="Int64").astype("category")}),
    ):
        assert same(column_of(data, about), [1, 2, UNKNOWN, NAN])
    assert same(column_of(pd.DataFrame({"c": np.array([1, 12], dtype=">u2")}), about), [1, 2])
    mixed = pd.DataFrame({"c": pd.Series(["A", 1, "12", 1.0, True], dtype=object)})
    assert same(column_of(mixed, {"levels": ["A", "1", "12", "True"]}), [0, 1, 2, UNKNOWN, 3])


IMPOSSIBLE = {
    "text levels, floats": (["F", "M"], pa.float64()),
    "text levels, integers": (["F", "M"], pa.int64()),
    "text levels, Booleans": (["F", "M"], pa.bool_()),
    "words and others, Booleans": (["true", "false", "maybe"], pa.bool_()),
    "leading zeros, integers": (["01234", "12345"], pa.int32()),
    "texts and digits, floats": (["A", "1"], pa.float32()),
    "fractions, integers": ([0.5, 1.5], pa.int64()),
    "two and three, Booleans": (["2", "3"], pa.bool_()),
    "dates": (["1", "2"], pa.date32()),
    "times": ([1, 2], pa.timestamp("s")),
}


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_types_that_cannot_hold_a_level_are_refused_before_a_value_is_read(case: str) -> None:
    levels, kind = IMPOSSIBLE[case]
    empty = pa.table({"c": pa.nulls(1, kind)})
    sources = [
        empty,
        pa.table({"c": pa.DictionaryArray.from_arrays(pa.array([None], pa.int8()), pa.nulls(1, kind))}),
    ]
    sources.append(empty.to_pandas(types_mapper=pd.ArrowDtype))
    if not pa.types.is_boolean(kind):
        sources.append(pl.from_arrow(empty))
    for data in sources:
        with pytest.raises(InputError, match="E110"):
            column_of(data, {"levels": levels})


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pd.to_datetime(["2020-01-01", None]), [NAN, NAN]),
        ([1.5, None], [UNKNOWN, NAN]),
        ([None, None], [NAN, NAN]),
    ],
)
def test_categories_of_any_type_are_judged_one_at_a_time(values: Any, expected: list[float]) -> None:
    # Their type follows from the values of a frame or of one partition: refusing it could tell of a cell.
    data = pd.DataFrame({"c": pd.Series(values).astype("category")})
    assert same(column_of(data, {"levels": ["F", "M"]}), expected)


# --- other marks and encodings -------------------------------------------------------------------------

GERMAN = Dialect(separator=";", decimal=",", thousands=".")
FRENCH = Dialect(separator=";", decimal=",", thousands="\u202f")
SWISS = Dialect(separator=";", thousands="'")
ENGLISH = Dialect(separator=";", thousands=",")
COMMA = Dialect(separator=";", decimal=",")
SPACED = Dialect(separator=";", decimal=",", thousands="\u00a0", encoding="latin-1")
X = Numeric(name="x", lower=0, upper=1)


@pytest.mark.parametrize(
    ("dialect", "text", "number"),
    [
        (COMMA, "1,5", 1.5),
        (COMMA, "1.5", NAN),
        (COMMA, "-1,5e3", -1500),
        (COMMA, "1,5,0", NAN),
        (COMMA, "1e999", NAN),
        (GERMAN, "1.234,5", 1234.5),
        (GERMAN, "1234,5", 1234.5),
        (GERMAN, " +1.234.567 ", 1234567),
        (GERMAN, "12.34", NAN),
        (GERMAN, "1.23.456", NAN),
        (GERMAN, "1234.567", NAN),
        (GERMAN, ".234", NAN),
        (GERMAN, "1,234.5", NAN),
        (GERMAN, "1,5.000", NAN),
        (GERMAN, ",5", 0.5),
        (GERMAN, "7,", 7),
        (ENGLISH, "1,234.5", 1234.5),
        (ENGLISH, "1.5", 1.5),
        (ENGLISH, "1.5,000", NAN),
        (SWISS, "1'234'567.25", 1234567.25),
        (SWISS, "1\u2019234", NAN),
        (FRENCH, "1\u202f234,5", 1234.5),
        (FRENCH, "1\u00a0234,5", NAN),
        (SPACED, "1\u00a0234,5", 1234.5),
        (SPACED, "1 234,5", NAN),
    ],
)
def test_marks_in_numbers_stand_where_they_must(dialect: Dialect, text: str, number: float) -> None:
    cell = text.encode(dialect.cell_encoding)
    for company in (b"", b"3"):
        found = cells(X, pa.array([company, cell]), dialect=dialect)
        assert same([float(value) if math.isfinite(value) else NAN for value in found][1:], [number])
    level = Categorical(name="k", levels=(1234.5, 1.5))
    code = {1234.5: 0.0, 1.5: 1.0}.get(number, NAN if math.isnan(number) else UNKNOWN)
    assert same(cells(level, pa.array([cell]), dialect=dialect).tolist(), [code])


def test_levels_and_missing_texts_are_compared_in_the_encoding_of_the_file() -> None:
    latin = Dialect(encoding="latin-1")
    town = Categorical(name="t", levels=("Köln", "東京", "Ulm"), missing_values=("né", "無"))
    values = [text.encode("latin-1") for text in ("Köln", " Ulm ", "né", "K\xf6ln ")]
    assert same(
        cells(town, pa.array([*values, "Köln".encode(), None]), dialect=latin).tolist(),
        [0, 2, NAN, 0, -1, NAN],
    )
    assert same(cells(town, pa.array(["Köln", "東京", "無"])).tolist(), [0, 1, NAN])
    only = Categorical(name="t", levels=("東京",))
    assert same(cells(only, pa.array([b"?", b"x", b""]), dialect=latin).tolist(), [UNKNOWN, UNKNOWN, NAN])


def test_a_text_that_is_another_number_in_the_file_is_refused() -> None:
    for about in ({**AGE, "missing_values": ["9.999"]}, {"levels": ["1.500", "2"]}):
        with pytest.raises(InputError, match="E143"):
            Schema.from_dict(
                {"columns": {"c": about}, "file": {"decimal": ",", "thousands": ".", "separator": ";"}}
            )
    with pytest.raises(InputError, match="E143"):
        Schema.from_dict(
            {"columns": {"c": AGE}, "missing_values": ["-9,5"], "file": {"decimal": ",", "separator": ";"}}
        )
    fine = {"c": {**AGE, "missing_values": [-9.5, "-999", "NA"]}, "k": {"levels": [1.5, 2]}}
    Schema.from_dict({"columns": fine, "file": {"decimal": ",", "separator": ";"}})
