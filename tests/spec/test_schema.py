"""A schema holds public facts, refuses nonsense with a reason, and never guesses."""

from __future__ import annotations

from fractions import Fraction

import pytest

from privcov.cli import main
from privcov.errors import PrivcovError
from privcov.schema import Schema
from privcov.schema.grid import BLOCK_ROWS, ROW_BITS, Grid
from privcov.schema.template import template

AGE = {"age": {"lower": 0, "upper": 100}}


def schema_of(columns=None, **rest):
    return Schema.from_dict({"columns": AGE if columns is None else columns, **rest})


def column(**about):
    return {"columns": {"c": about}}


def test_features_are_the_intercept_then_columns_then_levels():
    schema = schema_of({**AGE, "sex": {"levels": ["F", "M"]}})
    assert [f.name for f in schema.features] == ["(Intercept)", "age", "sex[F]", "sex[M]"]
    assert [f.kind for f in schema.features] == ["intercept", "numeric", "level", "level"]
    assert schema.dimension == 4


def test_the_default_row_norm_counts_a_categorical_column_once():
    schema = schema_of({**AGE, "job": {"levels": list("abcdefgh")}})
    assert schema.squared_norm_bound == 3


def test_a_declared_bound_that_no_row_exceeds_is_no_bound():
    assert schema_of(row_norm_bound=50) == schema_of()


def test_a_toml_file_reads_back_as_the_same_schema(tmp_path):
    schema = schema_of(
        {**AGE, "job.title": {"levels": ["a b", 'say "x"', "ünï"]}, "code": {"levels": [1, 2.5]}},
        row_norm_bound="0.3",
        missing="zero-row",
        max_rows_per_person=3,
        ignore_extra=True,
        intercept=False,
    )
    path = tmp_path / "s.toml"
    path.write_text(schema.to_toml(), encoding="utf-8")
    assert Schema.read(path) == schema


def test_a_decimal_bound_means_the_number_that_was_written(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text("row_norm_bound = 0.1\n[columns.age]\nlower = 0.1\nupper = 1e2\n")
    assert Schema.read(path).row_norm_bound == Fraction(1, 10)


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"columns": {}}, "E122"),
        ({"columns": {"age": {"lower": 1, "upper": 1}}}, "E206"),
        ({"columns": {"age": {"lower": 2, "upper": 1}}}, "E206"),
        ({"columns": {"age": {"lower": float("nan"), "upper": 1}}}, "E206"),
        ({"columns": {"age": {"lower": 0, "upper": float("inf")}}}, "E206"),
        ({"columns": {"age": {"lower": -1.7e308, "upper": 1.7e308}}}, "E206"),
        ({"columns": {"age": {"lower": "0", "upper": 1}}}, "E206"),
        ({"columns": {"age": {"lower": 0}}}, "E122"),
        ({"columns": {"age": {}}}, "E122"),
        ({"columns": {"age": {"lower": 0, "upper": 1, "levels": ["a"]}}}, "E122"),
        ({"columns": {"age": {"lower": 0, "upper": 1, "colour": "red"}}}, "E122"),
        ({"columns": {"sex": {"levels": []}}}, "E122"),
        ({"columns": {"sex": {"levels": ["a", "a"]}}}, "E122"),
        ({"columns": {"sex": {"levels": ["a", 1]}}}, "E122"),
        ({"columns": {"sex": {"levels": "ab"}}}, "E122"),
        ({"columns": {"sex": {"levels": ["a\x07"]}}}, "E121"),
        ({"columns": {"sex": {"levels": [[]]}}}, "E121"),
        ({"columns": {"sex": {"levels": ["a", {}]}}}, "E121"),
        ({"columns": {"x" * 300: {"lower": 0, "upper": 1}}}, "E121"),
        ({"columns": {"": {"lower": 0, "upper": 1}}}, "E121"),
        ({"columns": AGE, "row_norm_bound": 0}, "E205"),
        ({"columns": AGE, "row_norm_bound": -1}, "E205"),
        ({"columns": AGE, "row_norm_bound": float("nan")}, "E205"),
        ({"columns": AGE, "row_norm_bound": float("inf")}, "E205"),
        ({"columns": AGE, "row_norm_bound": 2**501}, "E205"),
        ({"columns": AGE, "max_rows_per_person": 0}, "E205"),
        ({"columns": AGE, "max_rows_per_person": 1.5}, "E205"),
        ({"columns": AGE, "missing": "drop"}, "E122"),
        ({"columns": AGE, "intercept": "yes"}, "E122"),
        ({"columns": AGE, "bounds": 3}, "E122"),
        ({"columns": {"job": {"levels": list(map(str, range(20_000)))}}}, "E113"),
        ({"columns": {"job": {"levels": list(map(str, range(19_999))), "missing": "indicator"}}}, "E113"),
        ({"columns": AGE, "missing": "indicator"}, "E122"),
        ({"columns": AGE, "missing_values": "NA"}, "E141"),
        ({"columns": AGE, "missing_values": [True]}, "E141"),
        ({"columns": AGE, "missing_values": [[]]}, "E141"),
        ({"columns": AGE, "missing_values": [" NA"]}, "E141"),
        ({"columns": AGE, "missing_values": ["\x1b[31m"]}, "E141"),
        ({"columns": AGE, "missing_values": ["x" * 129]}, "E141"),
        ({"columns": AGE, "missing_values": [float("nan")]}, "E141"),
        ({"columns": AGE, "missing_values": [10**400]}, "E141"),
        (column(levels=["F", "NA"], missing_values=["NA"]), "E142"),
        ({**column(levels=["F", "NA"]), "missing_values": ["?", "NA"]}, "E142"),
        (column(levels=[1, -999], missing_values=["-999.0"]), "E142"),
        (column(levels=["1", "-999"], missing_values=[-999]), "E142"),
        (column(levels=["A", "0999"], missing_values=[999]), "E142"),
        (column(levels=[0, 1], missing_values=["TRUE"]), "E142"),
        (column(levels=[True, False], missing_values=[0]), "E142"),
        (column(lower=0, upper=9, fill=9.5), "E144"),
        (column(lower=0, upper=9, fill=-1), "E144"),
        (column(lower=0, upper=9, fill=9, missing_values=["9.0"]), "E144"),
        ({**column(lower=0, upper=9, fill=9), "missing_values": [9]}, "E144"),
        (column(levels=["F", "M"], fill="X"), "E144"),
        (column(levels=[1, 2], fill=3), "E144"),
        (column(lower=0, upper=9, fill="5"), "E206"),
        (column(lower=0, upper=9, fill=True), "E206"),
        (column(lower=0, upper=9, fill=float("inf")), "E206"),
        (column(lower=0, upper=9, fill=5, missing="indicator"), "E145"),
        (column(lower=0, upper=9, fill=5, missing="midpoint"), "E145"),
        (column(lower=0, upper=9, missing="drop"), "E145"),
        (column(levels=["F"], missing=3), "E145"),
        (column(levels=["F", "missing"], missing="indicator"), "E146"),
        (column(levels=[True, 1]), "E122"),
        (column(levels=[10**400, 1]), "E121"),
        ([], "E122"),
    ],
)
def test_nonsense_is_refused_with_its_code(given, code):
    with pytest.raises(PrivcovError, match=code):
        Schema.from_dict(given)


def test_an_indicator_of_missing_cells_is_one_more_feature_and_costs_no_norm():
    own = {
        "age": {**AGE["age"], "missing": "indicator"},
        "sex": {"levels": ["F", "M"], "missing": "indicator"},
    }
    schema = schema_of({**own, "income": {"lower": 0, "upper": 1}})
    names = ["(Intercept)", "age", "age[missing]", "sex[F]", "sex[M]", "sex[missing]", "income"]
    assert [feature.name for feature in schema.features] == names
    assert [feature.kind for feature in schema.features if "missing" in feature.name] == ["missing"] * 2
    assert schema.dimension == 7
    assert schema.squared_norm_bound == 4
    assert schema.fixed_squared_norm == 3  # the intercept, age[missing], and one of the three of sex


def test_rules_and_missing_values_read_back_from_toml(tmp_path):
    schema = schema_of(
        {
            "a": {**AGE["age"], "missing": "indicator"},
            "b": {**AGE["age"], "fill": 12.5, "missing_values": []},
            "c": {"levels": ["F", "M"], "fill": "F", "missing_values": ["?", -9]},
            "d": {"levels": [1, 2], "missing": "midpoint", "fill": None},
            "e": {"levels": [1, 2], "missing": "zero-row"},
        },
        missing="zero-row",
        missing_values=["", "NA", 'say "x"', -999, -0.5],
    )
    path = tmp_path / "s.toml"
    path.write_text(schema.to_toml(), encoding="utf-8")
    assert Schema.read(path) == schema
    assert schema.to_toml().count("missing_values") == 3
    assert [schema.rule(c) for c in schema.columns] == ["indicator", "fill", "fill", "midpoint", "zero-row"]
    assert schema.columns[4].missing_values == schema.missing_values
    assert schema.columns[4].missing is None  # what the table says anyway


def test_what_is_read_as_missing_is_no_part_of_a_release_and_what_it_counts_as_is():
    own = {
        "a": {**AGE["age"], "missing": "indicator", "missing_values": [-9]},
        "b": {**AGE["age"], "fill": 7},
    }
    published = schema_of(own, missing_values=["NA"]).published()
    assert published == schema_of(
        {"a": {**AGE["age"], "missing": "indicator"}, "b": {**AGE["age"], "fill": 7}}
    )


def test_a_fill_names_a_level_as_a_cell_would():
    assert schema_of({"c": {"levels": ["1", "2"], "fill": 2}}).columns[0].fill == "2"
    assert schema_of({"c": {"levels": [True, False], "fill": False}}).columns[0].fill == "false"
    assert schema_of({"c": {"levels": [1, 2.5], "fill": "2.50"}}).columns[0].fill == 2.5


def test_a_column_declared_twice_is_refused(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text("[columns.age]\nlower = 0\nupper = 1\n[columns.age]\nlower = 0\nupper = 2\n")
    with pytest.raises(PrivcovError, match="E122"):
        Schema.read(path)


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"\xff\xfe", "E105"),
        (b"columns = [", "E122"),
        (b"x" * 10, "E122"),
        (b"[columns.age]\nlower = nan\nupper = 1", "E206"),
    ],
)
def test_a_file_that_is_no_schema_is_refused(tmp_path, content, code):
    path = tmp_path / "s.toml"
    path.write_bytes(content)
    with pytest.raises(PrivcovError, match=code):
        Schema.read(path)


def test_a_missing_schema_file_is_named(tmp_path):
    with pytest.raises(PrivcovError, match="E119"):
        Schema.read(tmp_path / "none.toml")


def test_the_template_leaves_every_bound_blank_and_cannot_be_read_before_it_is_filled(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text(template({"age": "numeric", "job.title": "text"}))
    with pytest.raises(PrivcovError, match=r"E206.*line 1[0-9]: lower is still blank"):
        Schema.read(path)
    filled = path.read_text().replace("lower = ", "lower = 0 ").replace("upper = ", "upper = 9 ")
    path.write_text(filled.replace("levels = ", 'levels = ["a"] '))
    assert [c.name for c in Schema.read(path).columns] == ["age", "job.title"]


@pytest.mark.parametrize("bound", ["0.02", "0.3", "1", "7", None])
@pytest.mark.parametrize("columns", [1, 20, 4000])
def test_the_grid_keeps_block_sums_and_norms_exact_in_float64(bound, columns):
    schema = schema_of(
        {f"c{i}": {"lower": 0, "upper": 1} for i in range(columns)}, row_norm_bound=bound, intercept=False
    )
    grid = Grid.of(schema)
    assert grid.squared_norm_bound <= 2**ROW_BITS
    assert BLOCK_ROWS * 2**ROW_BITS <= 2**53
    assert columns * 4**grid.exponent <= 2**52
    assert Fraction(grid.squared_norm_bound) <= schema.squared_norm_bound * 4**grid.exponent


def test_a_row_norm_bound_finer_than_the_grid_is_refused():
    schema = schema_of({f"c{i}": {"lower": 0, "upper": 1} for i in range(4000)}, row_norm_bound="0.0001")
    with pytest.raises(PrivcovError, match="E205"):
        Grid.of(schema)


@pytest.mark.parametrize(("word", "value"), [("line_end", "cr"), ("timing", "constant"), ("separator", ";")])
def test_every_word_of_a_dialect_is_said_in_the_summary_of_a_schema(word, value, tmp_path, capsys):
    """The summary failed on files of CRs and on constant timing."""
    path = tmp_path / "people.toml"
    path.write_text(f'[columns.age]\nlower = 0\nupper = 100\n[file]\n{word} = "{value}"\n')
    assert main(["schema", "check", str(path)]) == 0
    assert "File format: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("lower", "upper", "wrong"),
    [
        (5, 5, "lower must be below upper"),
        (5, 1, "lower must be below upper"),
        (0, 1e-300, "too close together"),
        (-1e308, 1e308, "too far apart"),
    ],
)
def test_bounds_that_no_column_can_have_are_told_why(lower, upper, wrong):
    with pytest.raises(PrivcovError, match=f"E206 .*{wrong}, got"):
        schema_of({"age": {"lower": lower, "upper": upper}})
