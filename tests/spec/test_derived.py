"""Derived columns from a schema to a release: declared, read, summed, published, asked for in formulas."""

from __future__ import annotations

import datetime
import math
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import privcov as pc
from privcov.cli import main
from privcov.errors import InputError, ParameterError, PrivcovError
from privcov.ledger import Ledger
from privcov.models.formula import Formula
from privcov.noise.randomness import rehearsal
from privcov.schema import Categorical, Numeric, Schema
from privcov.schema.grid import Grid
from privcov.summing.bounding import Bounding
from privcov.summing.engines import Local
from privcov.summing.sum import sum_rows
from privcov.table import open_table

COLUMNS: dict[str, Any] = {
    "age": {"lower": 0, "upper": 100},
    "educ": {"lower": 0, "upper": 20},
    "income": {"lower": 0, "upper": 200_000, "feature": False},
    "sex": {"levels": ["F", "M"]},
    "admitted": {"lower": "2020-01-01", "upper": "2024-12-31", "feature": False},
    "discharged": {"lower": "2020-01-01", "upper": "2025-01-31", "feature": False},
}
DERIVED = {
    "log_income": "log(income + 1)",
    "age2": "age^2",
    "age_educ": "age * educ",
    "stay": "days(discharged - admitted)",
    "year": "year(admitted)",
    "senior": "age >= 65",
    "band": "cut(age, 18, 40, 65)",
    "age_p": "poly(age, 2)",
    "age_s": "bs(age, 4)",
    "women": "age * (sex == 'F')",
}
SCHEMA = Schema.from_dict({"columns": COLUMNS, "derived": DERIVED})
LOSS = pc.PureDP(epsilon=1, neighbours="replace-one")


def schema_with(derived: Any, **columns: Any) -> Schema:
    return Schema.from_dict({"columns": {**COLUMNS, **columns}, "derived": derived})


def frame(rows: int = 300) -> pd.DataFrame:
    """A messy table: cells beyond the bounds, missing ones, levels that nobody declared."""
    random = np.random.default_rng(5)
    start = datetime.date(2019, 11, 1)
    days = random.integers(0, 2000, rows)
    made = pd.DataFrame(
        {
            "age": random.uniform(-5, 110, rows).round(2),
            "educ": random.integers(-1, 22, rows).astype(float),
            "income": random.lognormal(10, 2, rows).round(2),
            "sex": random.choice(["F", "M", "x"], rows),
            "admitted": [start + datetime.timedelta(days=int(day)) for day in days],
            "discharged": [
                start + datetime.timedelta(days=int(d)) for d in days + random.integers(-3, 90, rows)
            ],
        }
    )
    for place, name in enumerate(made.columns):
        made.loc[place::37, name] = None
    return made


def integers(data: Any, schema: Schema = SCHEMA) -> Any:
    """The rows that are summed, in order."""
    bounding = Bounding.of(schema)
    return np.concatenate([bounding.rows(block) for block in open_table(data, schema).blocks()])


def test_bounds_and_levels_follow_from_the_columns_in_an_expression():
    found = {
        column.name: (column.lower, column.upper) if isinstance(column, Numeric) else column.levels
        for column in SCHEMA.columns
        if column.expression is not None
    }
    assert found["age2"] == (0, 10_000)
    assert found["age_educ"] == (0, 2_000)
    assert found["year"] == (2020, 2024)
    assert found["senior"] == (0, 1)
    assert found["stay"] == (-1826, 1857)
    assert found["band"] == ("..18", "18..40", "40..65", "65..")
    assert found["age_p_2"] == (-0.5, 1)
    assert found["women"] == (0, 100)
    low, high = found["log_income"]
    assert low == 0
    assert math.log(200_001) <= high <= math.log(200_001) * (1 + 1e-12)
    assert [column.name for column in SCHEMA.read_columns] == list(COLUMNS)
    assert "income" not in {feature.column for feature in SCHEMA.features}


def test_what_columns_share_has_the_bounds_it_has_alone():
    alone = {
        name: schema_with({name: text}).columns[-1] for name, text in DERIVED.items() if name[3:5] != "_"
    }
    for order in (list(DERIVED), list(DERIVED)[::-1]):
        together = {c.name: c for c in schema_with({name: DERIVED[name] for name in order}).columns}
        assert all(together[name] == alone[name] for name in together if name in alone)
    reversed_ = schema_with({"p": "poly(age, 3)", "s": "bs(educ, 5)", "l": "log(income + 1)"})
    assert reversed_.columns[-1] == replace(alone["log_income"], name="l")


@pytest.mark.parametrize(
    ("text", "row", "expected"),
    [
        ("log(income + 1)", {"income": math.e - 1}, 1.0),
        ("log(income, 1)", {"income": 0.5}, None),
        ("sqrt(educ - 10)", {"educ": 6}, None),
        ("sqrt(educ - 10)", {"educ": 14}, 2.0),
        ("-age^2 + 3 * 2", {"age": 3}, -3.0),
        ("(age - 1)^2 / (educ + 1)", {"age": 7, "educ": 3}, 9.0),
        ("age >= 65 and not sex == 'F' or educ > 16", {"age": 70, "sex": "M", "educ": 3}, 1.0),
        ("age >= 65 or educ > 16", {"age": 70, "educ": None}, None),
        ("age >= 65 and educ > 16", {"age": None, "educ": 3}, None),
        ("max(age, educ)", {"age": None, "educ": 3}, None),
        ("cut(age, 30) == '..30'", {"age": 30}, 0.0),
        ("sex != 'F'", {"sex": "neither"}, 1.0),
        ("sex == 'F'", {"sex": None}, None),
        ("age2 - age", {"age": 200}, 9_900.0),
        ("days(discharged - admitted)", {"admitted": "2024-02-28", "discharged": "2024-03-01T12:00"}, 2.5),
        ("hours('2024-01-01' - admitted)", {"admitted": "2023-12-31T22:30:00+00:00"}, 1.5),
        ("year(admitted) * 100 + month(admitted)", {"admitted": "2023-07-31"}, 202_307.0),
        ("weekday(admitted)", {"admitted": "2024-12-30"}, 1.0),
        ("admitted >= '2022-06-01'", {"admitted": "2022-05-31T23:59:59.999"}, 0.0),
        ("min(age, educ, 5)", {"age": 9, "educ": 7}, 5.0),
        ("exp(educ / 10)", {"educ": 10}, math.e),
        ("abs(age - 50)", {"age": math.inf}, None),
        ("`age`*1", {"age": -3}, 0.0),
    ],
)
def test_what_expressions_mean(text, row, expected):
    schema = schema_with({"age2": "age^2", "d": text})
    cells = {
        "age": 1.0,
        "educ": 1.0,
        "income": 1.0,
        "sex": "F",
        "admitted": "2021-01-01",
        "discharged": "2021-01-02",
    }
    (block,) = open_table(pd.DataFrame([cells | row]), schema).blocks()
    (found,) = block[[column.name for column in schema.columns].index("d")]
    assert math.isnan(found) if expected is None else found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("derived", "code", "words"),
    [
        ({"d": "age / educ"}, "E174", r"divides by educ, which can be 0: it lies in \[0, 20\]"),
        ({"d": "1 / (age - 50)"}, "E174", "can be 0"),
        ({"d": "sin(age)"}, "E170", "unknown function 'sin'"),
        ({"a": "b + 1", "b": "c * 2", "c": "a - 1"}, "E172", "a → b → c → a|b → c → a → b|c → a → b → c"),
        ({"a": "a + 1"}, "E172", "circle"),
        ({"d": "log(income)"}, "E175", "no lower bound"),
        ({"d": "exp(income)"}, "E175", "no useful upper bound"),
        ({"d": "(income + 1)^16 * (income + 1)^16"}, "E175", "can be larger"),
        ({"d": "sqrt(-age - 1)"}, "E175", "no value in any row"),
        ({"d": "1 + 1"}, "E175", "same value in every row"),
        ({"d": "age >= 200"}, "E175", "same value in every row"),
        ({"d": "cut(age, 200)"}, "E175", "same value in every row"),
        ({"d": "height^2"}, "E171", "'height', which the schema does not declare"),
        ({"d": "hours-per-week"}, "E171", "backticks"),
        ({"d": "sex * age"}, "E173", "column of levels"),
        ({"d": "admitted + 1"}, "E173", "a date"),
        ({"d": "admitted"}, "E173", "is a date"),
        ({"d": "discharged - admitted"}, "E173", "time between dates"),
        ({"d": "days(age)"}, "E173", "takes the time between two dates"),
        ({"d": "year(age)"}, "E173", "takes a date"),
        ({"d": "sex == 'X'"}, "E173", "none of the levels"),
        ({"d": "age == 'F'"}, "E173", "cannot have a number"),
        ({"d": "admitted > 'soon'"}, "E173", "no date"),
        ({"d": "'F'"}, "E173", "text"),
        ({"d": "log('age' + 1)"}, "E173", "is written age."),
        ({"d": "age and educ"}, "E173", "beside 'and'"),
        ({"d": "cut(age, 40, 18)"}, "E173", "rising"),
        ({"d": "cut(age, educ)"}, "E173", "plain numbers"),
        ({"d": "poly(age, 2) + 1"}, "E173", "Say which"),
        ({"d": "bs(age, 2)"}, "E173", "3 to 16"),
        ({"d": "min(age)"}, "E173", "arguments"),
        ({"age": "educ^2"}, "E176", "name of another column"),
        ({"p": "poly(age, 2)", "p_1": "age^2"}, "E176", "name of another column"),
        ({"d": "age +"}, "E170", "it ends"),
        ({"d": "age educ"}, "E170", "where 'educ' stands"),
        ({"d": "(age"}, "E170", "closing parenthesis"),
        ({"d": "age^0.5"}, "E170", "whole number from 2"),
        ({"d": "age^-1"}, "E170", "whole number from 2"),
        ({"d": "__import__('os')"}, "E170", "unknown function"),
        ({"d": "age.__class__"}, "E171", "does not declare"),
        ({"d": "1e999 * age"}, "E170", "range of a double"),
        ({"d": "age < educ < 3"}, "E170", "where '<' stands"),
        ({"d": ""}, "E170", "it ends"),
        ({"d": 3}, "E170", "no expression"),
        ({"d": {"expression": "age^2", "lower": 0}}, "E122", "unknown entry"),
        ("age^2", "E122", "may hold only expressions"),
        ({"d": "(" * 51 + "age" + ")" * 51}, "E177", "within each other"),
        ({"d": "-" * 400 + "(" * 60 + "age" + ")" * 60}, "E177", "within each other"),
        ({"d": "+".join(["age"] * 60)}, "E177", "joins more than"),
        ({"d": "age" + " " * 1000}, "E177", "1,003 characters"),
        ({f"d{n}": "age^2 + " + str(n) for n in range(501)}, "E177", "more than 500"),
        ({f"d{n}": f"d{n - 1} * d{n - 1}" if n else "age / 100" for n in range(60)}, "E177", "written out|joins"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_derived_column_is_refused_with_its_reason(derived, code, words):
    with pytest.raises(InputError, match=words) as caught:
        schema_with(derived)
    assert caught.value.code == code


def test_expressions_have_a_limit_together(monkeypatch):
    monkeypatch.setattr("privcov.schema.steps.MOST_STEPS", 5)
    schema_with({"one": "age * 1.25 + 1"})
    with pytest.raises(InputError, match=r"E177.*more than 5 operations"):
        schema_with({"one": "age * 1.25 + 1", "two": "age * 1.25 + 2"})


@pytest.mark.parametrize(
    ("about", "code"),
    [
        ({"lower": "2020-01-01", "upper": "2021-01-01"}, "E178"),
        ({"lower": "2020-01-01", "upper": "2021-01-01", "feature": True}, "E178"),
        ({"lower": "2020-01-01", "upper": 3, "feature": False}, "E178"),
        ({"lower": "2020-01-01", "feature": False}, "E122"),
        ({"lower": "2020-01-01", "upper": "2021-13-01", "feature": False}, "E178"),
        ({"lower": "2021-01-01", "upper": "2020-01-01", "feature": False}, "E206"),
        ({"lower": "2021-01-01", "upper": "2022-01-01", "fill": "2023-01-01", "feature": False}, "E144"),
        ({"lower": 0, "upper": 1, "feature": "no"}, "E178"),
        ({"lower": 0, "upper": 1, "feature": False, "missing": "indicator"}, "E178"),
    ],
)
def test_what_cannot_be_a_source_column_is_refused(about, code):
    with pytest.raises(PrivcovError) as caught:
        schema_with({}, more=about)
    assert caught.value.code == code


def test_bad_expressions_are_one_line_and_exit_2_and_nothing_is_paid(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    frame().to_csv("people.csv", index=False)
    Path("people.toml").write_text(SCHEMA.to_toml() + 'bad = "age / educ"\n')
    assert main(["ledger", "init", "people.ledger", "--epsilon", "2"]) == 0
    before = Path("people.ledger").read_bytes()
    capsys.readouterr()
    words = ["--schema", "people.toml", "--epsilon", "1", "--ledger", "people.ledger", "-o", "r.json"]
    for command in (["release", "people.csv", *words], ["schema", "check", "people.toml"]):
        assert main(command) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("privcov: E174 ")
        assert err.count("\n") == 1
    assert Path("people.ledger").read_bytes() == before
    assert not Path("r.json").exists()


def test_a_schema_with_derived_columns_is_written_and_read_back():
    rules = {
        "senior": {"expression": "age>=65", "missing": "indicator"},
        "wide": {"expression": "age2*2", "fill": 7},
    }
    made = schema_with(
        DERIVED | rules | {"größe (cm)": "`Hours-per`*2"}, **{"Hours-per": {"lower": 0, "upper": 9}}
    )
    made = replace(made, missing_values=("NA", -9))
    text = made.to_toml()
    assert Schema.from_dict(tomllib.loads(text)) == made
    assert 'wide = { expression = "age^2 * 2", fill = 7 }' in text
    assert 'lower = "2020-01-01"' in text
    written = tomllib.loads(text.replace('lower = "2020-01-01"', "lower = 2020-01-01"))
    assert Schema.from_dict(written) == made  # dates as TOML writes them
    assert made.published().published() == made.published() != made


def test_the_published_schema_has_the_expressions_and_old_releases_have_none(tmp_path):
    release = pc.release(frame(), schema=SCHEMA, loss=LOSS)
    path = tmp_path / "r.json"
    release.save(path)
    back = pc.load(path)
    assert back.schema == SCHEMA.published()
    assert {c.name: c.expression for c in back.schema.columns if c.expression}[
        "women"
    ] == "age * (sex == 'F')"
    document = release.to_dict()
    bounds = document["certificate"]["bounds"]
    assert [one["name"] for one in bounds["sources"]] == list(COLUMNS)
    assert bounds["sources"][4]["kind"] == "date"
    plain = pc.release(
        frame()[["age"]], schema=Schema.from_dict({"columns": {"age": COLUMNS["age"]}}), loss=LOSS
    )
    assert "sources" not in plain.to_dict()["certificate"]["bounds"]


@pytest.mark.parametrize(
    "change",
    [
        lambda bounds: bounds["columns"][3].update(expression="sin(age)"),
        lambda bounds: bounds["columns"][3].update(expression="age ^ 2"),
        lambda bounds: bounds["columns"][3].update(expression="x" * 2_000),
        lambda bounds: bounds["columns"][3].update(expression=5),
        lambda bounds: bounds["columns"][-1].update(expression="height * 2"),
        lambda bounds: bounds["sources"].pop(0),
        lambda bounds: bounds["sources"][4].update(kind="time"),
        lambda bounds: bounds.pop("sources"),
        lambda bounds: next(c for c in bounds["columns"] if c["name"] == "band").update(levels=list("abcd")),
    ],
)
def test_a_release_whose_expressions_make_no_sense_is_refused(change):
    from privcov.releases import codec

    document = pc.release(frame(), schema=SCHEMA, loss=LOSS, randomness=rehearsal(1)).to_dict()
    change(document["certificate"]["bounds"])
    with pytest.raises(PrivcovError):
        codec.FORM.decoded(document, codec.unsealed)


def sources(folder: Path) -> dict[str, Any]:
    """The same rows in many forms."""
    import duckdb
    import polars as pl

    table = frame()
    dated = table.assign(**{name: pd.to_datetime(table[name]) for name in ("admitted", "discharged")})
    table.to_csv(folder / "a.csv", index=False)
    arrow = pa.Table.from_pandas(table, preserve_index=False)
    assert pa.types.is_date32(arrow.schema.field("admitted").type)
    pq.write_table(arrow, folder / "a.parquet", row_group_size=70)
    texts = arrow
    for name in ("admitted", "discharged"):
        texts = texts.set_column(texts.column_names.index(name), name, texts[name].cast(pa.string()))
    pq.write_table(texts, folder / "texts.parquet")
    for place in range(3):
        part = table.iloc[100 * place : 100 * (place + 1)]
        part.to_csv(folder / f"part{place}.csv", index=False)
    shuffled = table[table.columns[::-1]]
    stored = duckdb.connect()
    stored.execute("create table people as select * from texts")
    return {
        "objects": table,
        "datetime64": dated,
        "csv": str(folder / "a.csv"),
        "several": [str(folder / f"part{place}.csv") for place in range(3)],
        "parquet": str(folder / "a.parquet"),
        "texts": str(folder / "texts.parquet"),
        "arrow": arrow,
        "zoned": pa.Table.from_pandas(dated, preserve_index=False).cast(
            pa.schema([
                (name, pa.timestamp("ms", "UTC") if name.endswith("ed") else arrow.schema.field(name).type)
                for name in arrow.column_names
            ])
        ),
        "polars": pl.from_pandas(dated),
        "lazy": pl.from_pandas(dated).lazy(),
        "duckdb": stored.table("people"),
        "category": table.assign(sex=table["sex"].astype("category"), admitted=table["admitted"].astype("category")),
        "shuffled": shuffled,
    }  # fmt: skip


def test_every_reader_gives_the_same_integers(tmp_path):
    given = sources(tmp_path)
    expected = integers(given["objects"])
    assert len(np.unique(expected[:, 5])) > 100  # not all missing
    for name, data in given.items():
        assert np.array_equal(integers(data), expected), name
    grid = Grid.of(SCHEMA)
    total = sum_rows(open_table(given["parquet"], SCHEMA), SCHEMA, grid, engine=Local(workers=2))
    upper = (expected.T @ expected)[np.triu_indices(grid.dimension)]
    assert list(total.reveal_to_mechanism()) == upper.astype(np.int64).tolist()
    constant = replace(SCHEMA, file=replace(SCHEMA.file, timing="constant"))
    assert np.array_equal(integers(given["csv"], constant), expected)


def test_one_row_changes_its_own_cells_alone_from_the_file_to_the_sum(tmp_path):
    lines = frame(60).to_csv(index=False).splitlines()
    before = integers(_file(tmp_path / "one.csv", lines))
    odd = [
        "1e308,1e308,-5,F,9999-12-31,0001-01-01",
        "nan,inf,0,,,",
        ",,,,,",
        '"',
        "65,1,2,M,2024-02-29,2024-02-30",
    ]
    for place in (1, 30, 60):
        for line in odd:
            changed = [*lines[:place], line, *lines[place + 1 :]]
            after = integers(_file(tmp_path / "two.csv", changed))
            moved = np.flatnonzero((before != after).any(axis=1))
            assert moved.tolist() == [place - 1], line


def _file(path: Path, lines: list[str]) -> str:
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def test_a_missing_cell_is_missing_in_what_is_derived_from_it_unless_its_column_has_a_fill():
    filled = schema_with({"age2": "age^2", "old": {"expression": "age >= 65", "missing": "indicator"}})
    some = frame(4).assign(age=[50.0, None, 70.0, -9.0])
    names = [feature.name for feature in filled.features]
    made = dict(zip(names, (integers(some, filled) / Bounding.of(filled).one).T.tolist(), strict=True))
    assert made["age2"][:2] == [-0.5, 0.0]
    assert made["old"] == [-1, 0, 1, -1]
    assert made["old[missing]"] == [0, 1, 0, 0]
    coded = replace(filled, missing_values=(-9, 4900))  # 4900 = 70², which no cell of the table is
    made = dict(zip(names, (integers(some, coded) / Bounding.of(coded).one).T.tolist(), strict=True))
    assert made["old[missing]"] == [0, 1, 0, 1]
    assert made["age2"][2] == pytest.approx(-0.02, abs=1e-5)
    with_fill = schema_with({"age2": "age^2"}, age={"lower": 0, "upper": 100, "fill": 10})
    made = dict(zip([f.name for f in with_fill.features], integers(some, with_fill).T.tolist(), strict=True))
    assert made["age2"][1] / Bounding.of(with_fill).one == pytest.approx(-0.98, abs=1e-5)


def test_formulas_find_the_derived_column_that_they_mean():
    def parsed(text: str) -> str:
        return str(Formula.parse(text, SCHEMA))

    assert parsed("stay ~ age + I(age^2) + age:educ") == "stay ~ age + age2 + age_educ"
    assert parsed("log(1+income) ~ educ:age + age:sex[F] - 1") == "log_income ~ age_educ + women - 1"
    assert parsed("stay ~ poly(age,2) + bs(age, 4) + cut(age, 18, 40, 65)").endswith("age_s_4 + band")
    assert parsed("stay ~ poly(age, 1)") == parsed("stay ~ poly(age, 9, 1)") == "stay ~ age_p_1"
    assert parsed("stay ~ poly(age, 5, 2)") == "stay ~ age_p_2"
    with pytest.raises(PrivcovError, match="E233"):
        parsed("stay ~ bs(age, 5, 1)")  # a spline of another basis has other knots
    assert parsed("stay ~ age2 - I(age^2) + educ") == "stay ~ educ"
    assert parsed("stay~educ+log(income+1)+age2-log(income + 1)") == "stay ~ educ + age2"
    more = schema_with(DERIVED | {"both": "log_income * senior"})
    assert str(Formula.parse("stay ~ log_income:senior", more)) == "stay ~ both"
    assert str(Formula.parse("stay ~ I(log(income + 1) * (age >= 65))", more)) == "stay ~ both"


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("stay ~ I(age^3)", "E233", 'age_3 = "age^3"'),
        ("stay ~ sqrt(educ + 1)", "E233", 'sqrt_educ_1 = "sqrt(educ + 1)"'),
        ("stay ~ log_income:educ", "E232", 'log_income_1_educ = "log(income + 1) * educ"'),
        ("stay ~ educ:sex[M]", "E232", "educ_sex_M = \"educ * (sex == 'M')\""),
        ("stay ~ age:sex", "E232", "age:sex[F]"),
        ("stay ~ poly(educ, 2)", "E233", 'poly_educ_2 = "poly(educ, 2)"'),
        ("sqrt(age) ~ educ", "E233", 'sqrt_age = "sqrt(age)"'),
        ("stay ~ I(height^2)", "E231", "height"),
        ("stay ~ I(age^)", "E170", "whole number"),
        ("stay ~ age:", "E230", "colon"),
        ("stay ~ age::educ", "E230", "colon"),
        ("age:educ ~ stay", "E230", "left side"),
        ("stay ~ " + ":".join(["age"] * 4_000), "E230", "at most 16"),
        ("stay ~ " + "log(" * 4_000, "E233", "operators"),
        ("poly(age, 2) ~ stay", "E230", "left side"),
        ("stay ~ age + I(age)", "E235", "twice"),
        ("stay ~ I(age", "E233", "operators"),
    ],
)
def test_a_formula_names_the_line_to_declare(text, code, line):
    with pytest.raises(PrivcovError) as caught:
        Formula.parse(text, SCHEMA)
    assert caught.value.code == code
    assert line in str(caught.value)


def test_the_line_that_a_formula_names_makes_the_formula_work():
    with pytest.raises(ParameterError) as caught:
        Formula.parse("stay ~ educ:sex[M]", SCHEMA)
    line = str(caught.value).rpartition("release again: ")[2]
    made = schema_with(DERIVED | tomllib.loads(line))
    assert str(Formula.parse("stay ~ educ:sex[M]", made)) == "stay ~ educ_sex_M"


@pytest.mark.parametrize(
    ("way", "change"),
    [
        ("declared", {"upper": 99.0}),
        ("declared", {"lower": -1.0}),
        ("declared", {"upper": 10_000.000001}),
        ("scales", {"upper": 20_000.0}),
    ],
)
def test_verify_finds_the_bounds_of_derived_columns_again(tmp_path, capsys, way, change):
    """Whoever moves one, and the digest with it, is found; nobody needs a key for that."""
    schema = schema_with({name: DERIVED[name] for name in ("log_income", "age2", "stay", "band")})
    loss = pc.ZCDP(rho="0.5", neighbours="replace-one")
    made = pc.release(frame(400), schema=schema, loss=loss, frame=way)
    path = tmp_path / "r.json"
    made.save(path)
    honest = pc.verify(path)
    assert honest.holds
    said = honest.checks[-1].words
    assert "The bounds of 4 derived columns follow from the expressions and the declared bounds." in said
    columns = [
        replace(column, **change) if column.name == "age2" else column for column in made.schema.columns
    ]
    forged = replace(made, schema=replace(made.schema, columns=tuple(columns)))
    forged.save(tmp_path / "forged.json")
    verdict = pc.verify(tmp_path / "forged.json")
    assert [check.name for check in verdict.checks if not check.holds] == ["certificate"]
    said = verdict.checks[-1].words
    assert "the bounds of age2 should be [0, 10000], which follow from age^2" in said
    assert ("the intervals of a round are not those that follow" in said) is (way == "scales")
    assert main(["verify", str(tmp_path / "forged.json")]) == 4
    assert "E609" in capsys.readouterr().err


def test_bounds_of_a_derived_column_that_do_not_follow_from_it_are_refused_before_paying(tmp_path):
    age, loss = Numeric(name="age", lower=0, upper=100), pc.PureDP(epsilon=1, neighbours="replace-one")
    ledger = Ledger.init(tmp_path / "ledger", loss)
    own = Schema(columns=(age, Numeric(name="half", lower=0, upper=40, expression="age / 2")))
    with pytest.raises(InputError, match=r"E151 .*half.*\[0, 40\].*\[0, 50\]"):
        pc.release(np.full((9, 1), 50.0), schema=own, loss=loss, ledger=ledger)
    assert not any(ledger.spent.values())


def test_predictions_compute_the_derived_columns_of_new_rows():
    loss = pc.ZCDP(rho=10**4, neighbours="replace-one")
    release = pc.release(frame(3_000), schema=SCHEMA, loss=loss, randomness=rehearsal(2))
    fit = pc.ridge(release, "log_income", features=["age", "age2", "women", "year", "band"])
    rows = {"age": [30.0, 64.5], "sex": ["F", "M"], "admitted": ["2022-03-04", datetime.date(2023, 1, 1)]}
    by_hand = {
        "age": [30.0, 64.5], "age2": [900.0, 4160.25], "women": [30.0, 0.0], "year": [2022.0, 2023.0],
        "band": ["18..40", "40..65"],
    }  # fmt: skip
    assert fit.predict(rows).tolist() == fit.predict(by_hand).tolist()
    with pytest.raises(ParameterError, match="no column sex, from which columns are derived"):
        fit.predict({"age": [30.0]})


@pytest.mark.parametrize("way", ["scales", "shape"])
def test_a_private_frame_takes_a_derived_column_for_any_other(way):
    schema = schema_with({name: DERIVED[name] for name in ("log_income", "age2", "stay")})
    loss = pc.ZCDP(rho="0.5", neighbours="replace-one")
    made = pc.release(frame(4_000), schema=schema, loss=loss, frame=way, randomness=rehearsal(4))
    assert made.schema.sources == schema.published().sources
    log_income = next(column for column in made.schema.columns if column.name == "log_income")
    assert log_income.scale is not None
    assert log_income.expression == "log(income + 1)"
    true = np.log(frame(4_000)["income"].clip(0, 200_000) + 1).mean()
    assert made.mean()[made.columns.index("log_income") - 1] == pytest.approx(true, abs=0.5)


def test_a_derived_column_that_is_like_another_is_no_sign_of_a_misread_table():
    from privcov.report.doubts import doubts

    schema = schema_with(
        {"age_p": "poly(age, 2)", "centred": "age - 50", "hundred": "age >= 99", "tiny": "(age / 100)^16"}
    )
    loss = pc.ZCDP(rho=10**6, neighbours="replace-one")
    made = pc.release(
        frame(2_000).assign(age=40.0 + np.arange(2_000) % 50),
        schema=schema,
        loss=loss,
        randomness=rehearsal(3),
    )
    assert [doubt.kind for doubt in doubts(made) if set(doubt.columns) != {"sex"}] == []


def test_schema_check_and_explain_say_what_is_derived(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("people.toml").write_text(SCHEMA.to_toml())
    assert main(["schema", "check", "people.toml"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("people.toml: 6 columns in the table, 22 in the released matrix.")
    assert "Derived columns: 14. Read for them alone: income, admitted, discharged." in out
    assert main(["schema", "explain", "people.toml"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "log_income [0, 12.2061] log(income + 1)" in out
    assert "stay [-1826, 1857] days(discharged - admitted)" in out


def test_the_page_opens_every_kind_of_derived_column_and_gives_it_back(tmp_path):
    from privcov.web.drafting import drafted, opened

    path = tmp_path / "people.toml"
    path.write_text(SCHEMA.to_toml())
    assert drafted(opened(path)).schema == SCHEMA


def test_an_array_and_a_typed_column_that_hold_no_dates_are_refused():
    with pytest.raises(InputError, match="E110"):
        open_table(np.zeros((3, 6)), Schema.from_dict({"columns": {**COLUMNS, "sex": {"levels": [0, 1]}}}))
    with pytest.raises(InputError, match="E110"):
        open_table(frame().assign(admitted=20_000.0), SCHEMA)
    with pytest.raises(InputError, match=r"E110.*derive numbers from it"):
        open_table(
            pa.table({"d": [datetime.date(2020, 1, 1)]}), Schema.from_dict({"columns": {"d": COLUMNS["age"]}})
        )


def test_python_declares_derived_columns_too():
    age = Numeric(name="age", lower=0, upper=100)
    made = Schema(columns=(Numeric(name="old", lower=0, upper=1, expression="age>=65"), age))
    assert [column.name for column in made.columns] == ["age", "old"]
    assert made == Schema.from_dict({"columns": {"age": COLUMNS["age"]}, "derived": {"old": "age >= 65"}})
    with pytest.raises(InputError, match="E176"):
        Schema(columns=(age, Categorical(name="b", levels=("x", "y"), expression="cut(age, 5)")))
    with pytest.raises(InputError, match="E178"):
        Schema(columns=(age,), sources=(Numeric(name="height", lower=0, upper=2),))


@pytest.mark.parametrize(
    ("written", "few"), [("poly(x, 0)", 1), ("poly(x, 17)", 1), ("bs(x, 2)", 3), ("bs(x, 2.5)", 3)]
)
def test_a_basis_of_too_few_or_too_many_columns_is_refused_as_it_was_written(written, few):
    words = {"columns": {"x": {"lower": 0, "upper": 1}}, "derived": {"z": written}}
    with pytest.raises(InputError) as refused:
        pc.Schema.from_dict(words)
    assert str(refused.value).startswith(
        f"E173 the derived column z has {written}; it makes {few} to 16 columns."
    )


def test_a_column_that_no_expression_uses_is_named():
    columns = {"x": {"lower": 0, "upper": 1}, "seen": {"lower": 0, "upper": 1, "feature": False}}
    idle = Schema.from_dict({"columns": columns})
    assert (
        idle.derived_words == "Derived columns: 0. Read and not released: seen. "
        "Declare a derived column of each under [derived], or leave it out."
    )
    used = Schema.from_dict({"columns": columns, "derived": {"z": "seen^2"}})
    assert used.derived_words == "Derived columns: 1. Read for them alone: seen."


def test_schema_explain_says_where_the_first_polynomial_is_a_column_once_more(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = '[columns.age]\nlower = 0\nupper = 100\n[columns.pay]\nlower = 0\nupper = 9\n[derived]\nq = "poly(age, 2)"\n'
    advice = "q_1 is age on another scale, so one of the two costs noise and says nothing new: write feature = false"
    for made, expected in (
        (text, True),
        (text.replace("upper = 100", "upper = 100\nfeature = false"), False),
    ):
        Path("s.toml").write_text(made)
        assert main(["schema", "explain", "s.toml"]) == 0
        assert (advice in " ".join(capsys.readouterr().out.split())) is expected
