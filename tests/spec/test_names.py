"""A column may be called anything that can be printed, and means the same column wherever its name is written."""

from __future__ import annotations

import csv
import json
import tomllib

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privcov as pc
from privcov.errors import InputError, PrivcovError
from privcov.models.interop import to_latex, to_polars
from privcov.planning.moments import PublicMoments
from privcov.planning.targets import Target
from privcov.releases.codec import FORM, decode
from privcov.schema.names import LONGEST_NAME, canonical, fault, quoted, split_names
from privcov.table import open_table
from privcov.unbounded import codec as unbounded_codec

ODD = [
    "größe",
    "Household Income (USD)",
    "income>50K",
    'say "a"',
    "back\\slash",
    "tick`tock",
    "a[b]",
    "a",
    "a.b",
    ".a",
    "^a.*$",
    "*",
    "[0]",
    "last, first",
    "x = 1 # no",
    "<img onerror=x>",
    "東京都の人口",
    "हिन्दी",
    "שם",
    "smile😀",
    "'single'",
    "100 %",
    "$money & {more}",
    "columns",
    "lower",
    "n" * LONGEST_NAME,
]


def schema_of(names, **words):
    return pc.Schema.from_dict({"columns": {name: {"lower": 0, "upper": 100} for name in names}, **words})


def released(schema, rows):
    return pc.release(rows, schema=schema, loss=pc.PureDP(epsilon=1, neighbours="replace-one"))


@pytest.mark.parametrize(
    "name",
    [
        *("", "  ", "a\nb", "a\tb", "a\0", "\x1b[2J", "a\u202eb", "a\u200fb", "\u2066x", "a\ud800"),
        *("x" * 129, "x" * 10**6, "(Intercept)", " (Intercept) ", "a\u00a0b", "\ufeffa", 5, None),
    ],
)
def test_a_name_that_cannot_be_shown_is_refused_and_not_repeated(name):
    with pytest.raises(InputError, match="E121") as caught:
        schema_of([name])
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300
    assert fault(name)


@pytest.mark.parametrize("name", ODD)
def test_a_name_that_can_be_shown_is_fine_and_survives_its_file(name, tmp_path):
    schema = schema_of([name], intercept=False)
    assert [column.name for column in schema.columns] == [name]
    path = tmp_path / "s.toml"
    path.write_text(schema.to_toml(), encoding="utf-8")
    assert pc.Schema.read(path) == schema


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=12))
def test_whatever_is_accepted_as_a_name_is_written_and_read_back(text):
    if fault(text) is None:
        schema = schema_of([text])
        assert pc.Schema.from_dict(tomllib.loads(schema.to_toml())) == schema
        assert split_names(quoted(canonical(text)) + ",b") == [canonical(text), "b"] or "," in quoted(text)
        assert split_names("`" + canonical(text).replace("`", "``") + "` , b") == [canonical(text), "b"]


def test_two_spellings_of_one_name_are_one_name():
    with pytest.raises(InputError, match="E103"):
        schema_of(["gr\u00f6\u00dfe", "gro\u0308\u00dfe"])
    with pytest.raises(InputError, match="E103"):
        schema_of(["age", " age "])
    frame = pd.DataFrame({" gro\u0308\u00dfe": [1.0, 2.0]})
    assert rows_of(frame, schema_of(["größe"])).tolist() == [[1.0], [2.0]]


@pytest.mark.parametrize(
    "columns",
    [
        {"sex": {"levels": ["F", "M"]}, "sex[F]": {"lower": 0, "upper": 1}},
        {"sex": {"levels": ["F", "M"]}, "sex[F]": {"levels": ["a", "b"]}},
        {"a": {"levels": ["b][c"]}, "a[b]": {"levels": ["c"]}},
    ],
)
def test_columns_that_a_typed_name_could_not_tell_apart_are_refused(columns):
    with pytest.raises(InputError, match="E160"):
        pc.Schema.from_dict({"columns": columns})
    first, second = columns
    pc.Schema.from_dict({"columns": {first: columns[first], second + "!": columns[second]}})


def rows_of(data, schema):
    return np.concatenate([np.stack([np.asarray(c) for c in b]).T for b in open_table(data, schema).blocks()])


def stored(table: pa.Table) -> duckdb.DuckDBPyRelation:
    """A table of DuckDB's own, which is the kind whose plan is let through."""
    connection = duckdb.connect()
    connection.register("given", table)
    connection.execute("create table kept as select * from given")
    return connection.table("kept")


READERS = {
    "pandas": lambda frame, path: frame,
    "polars": lambda frame, path: pl.from_pandas(frame),
    "lazy polars": lambda frame, path: pl.from_pandas(frame).lazy(),
    "arrow": lambda frame, path: pa.Table.from_pandas(frame),
    "duckdb": lambda frame, path: stored(pa.Table.from_pandas(frame)),
    "parquet": lambda frame, path: pq.write_table(pa.Table.from_pandas(frame), path) or path,
    "dataset": lambda frame, path: (
        pq.write_table(pa.Table.from_pandas(frame), path) or pyarrow.dataset.dataset(path)
    ),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("spelled", [str, " {} ".format], ids=["as declared", "with blanks around"])
def test_every_reader_takes_the_column_of_that_very_name(reader, spelled, tmp_path):
    """Every column holds its own number; some names are patterns or paths to the libraries below."""
    names = [*ODD, "A", "a\nb"]  # the last two are not declared
    if reader == "duckdb":
        names.remove("A")  # it does not tell capitals apart
    frame = pd.DataFrame({spelled(name): [float(place)] * 3 for place, name in enumerate(names)})
    wanted = ODD[::-1]
    found = rows_of(
        READERS[reader](frame, tmp_path / "t.parquet"), schema_of(wanted, intercept=False, ignore_extra=True)
    )
    assert found.tolist() == [[float(names.index(name)) for name in wanted]] * 3


def test_a_csv_header_names_any_column_that_it_can_hold(tmp_path):
    with open(tmp_path / "t.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerows([ODD, list(range(len(ODD)))])
    wanted = ODD[::-1]
    found = rows_of(tmp_path / "t.csv", schema_of(wanted))
    assert found.tolist() == [[float(ODD.index(name)) for name in wanted]]


def test_one_name_twice_is_refused_only_where_it_matters():
    frame = pa.table([[1.0], [2.0], [3.0]], names=["x", "y", "y "])
    assert rows_of(frame, schema_of(["x"], ignore_extra=True)).tolist() == [[1.0]]
    with pytest.raises(InputError, match="E103"):
        open_table(frame, schema_of(["y"], ignore_extra=True))
    with pytest.raises(InputError, match="E103"):
        open_table(frame, schema_of(["x"]))


def test_a_release_of_odd_names_survives_its_file_and_answers_by_them(tmp_path):
    names = [*ODD[:12], "y"]
    schema = pc.Schema.from_dict(
        {
            "columns": {
                **{name: {"lower": 0, "upper": 1} for name in names},
                "Region (`ISO`)": {"levels": ["DE, AT", "CH"]},
            }
        }
    )
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.uniform(size=(4000, len(names))), columns=names)
    frame["Region (`ISO`)"] = rng.choice(["DE, AT", "CH"], size=4000)
    release = pc.release(frame, schema=schema, loss=pc.PureDP(epsilon=9, neighbours="replace-one"))
    release.save(tmp_path / "r.json")
    again = pc.load(tmp_path / "r.json")
    assert again.schema == schema
    fit = pc.ols(again, "y ~ `Household Income (USD)` + größe + `Region (``ISO``)`")
    assert list(fit.params) == ["(Intercept)", "Household Income (USD)", "größe", "Region (`ISO`)[CH]"]
    assert "y ~ `Household Income (USD)` + größe + `Region (``ISO``)`" in fit.summary()
    ridge = pc.ridge(again, target="Household Income (USD)", features=["tick`tock", "Region (`ISO`)"])
    assert ridge is not None
    assert "Region (`ISO`)[DE, AT]" in pc.pca(again, rank=2).columns
    assert to_polars(again, "covariance").shape == (15, 16)
    assert r"Household Income (USD)" in to_latex(again)


def test_an_edited_release_whose_name_is_spelled_otherwise_is_refused():
    release = released(schema_of(["größe"]), np.ones((9, 1)))
    text = json.dumps(release.to_dict(), ensure_ascii=False)
    for name, fine in (("höhe", True), ("ho\u0308he", False), (" höhe", False), ("h\u202eöhe", False)):
        document = json.loads(text.replace("größe", name))
        body = {word: value for word, value in document.items() if word not in ("format", "signature")}
        resealed = FORM.sealed(body)
        if fine:
            assert decode(resealed)[0].columns[0].name == name
            continue
        with pytest.raises(PrivcovError, match="E6"):
            decode(resealed)


def test_an_estimate_file_holds_names_and_nothing_else():
    loss = pc.ZCDP(rho=1, neighbours="replace-one")
    made = pc.estimate_gaussian(np.zeros((50, 2)), loss=loss, largest_variance=9, known_mean=[0, 0])
    text = json.dumps(made.to_dict(), ensure_ascii=False)
    for name, fine in (("größe, m", True), (" x1", False), ("x\u202e1", False), ("(Intercept)", False)):
        document = json.loads(text.replace("x1", name))
        body = {word: value for word, value in document.items() if word not in ("format", "signature")}
        resealed = unbounded_codec.FORM.sealed(body)
        if fine:
            assert unbounded_codec.decode(resealed).columns == (name, "x2")
            continue
        with pytest.raises(PrivcovError, match="E6"):
            unbounded_codec.decode(resealed)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("mean(`Household Income (USD)`)=5", ["Household Income (USD)"]),
        ("mean(größe)=5", ["größe"]),
        ("mean( a[b] )=5", ["a[b]"]),
        ("covariance(`last, first`, `x = 1 # no`)=5", ["last, first", "x = 1 # no"]),
        ("covariance(a, `tick``tock`)=5", ["a", "tick`tock"]),
    ],
)
def test_a_target_of_a_plan_names_any_column(text, names):
    schema = schema_of(ODD)
    target = Target.parse(text, schema)
    assert [schema.features[place].name for place in target.places] == names
    assert target.bound == 5


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("se(a ~ größe + `last, first`: größe)=50", "größe"),
        ("se(a ~ größe + `Household Income (USD)`: Household Income (USD))=50", "Household Income (USD)"),
        ("se(a ~ `x: y` + `p=q)`: `p=q)`)=50", "p=q)"),
        ("se(a ~ `x: y` + `p=q)`:x: y)=50", "x: y"),
    ],
)
def test_a_target_about_a_model_names_any_term(text, term):
    target = Target.parse(text, schema_of([*ODD, "x: y", "p=q)"]))
    assert (target.term, target.bound) == (term, 50)


def test_public_guesses_name_any_column():
    schema = schema_of(ODD)
    guess = {
        "columns": {" gro\u0308\u00dfe": {"mean": 50, "std": 5}},
        "correlations": {"größe, `last, first`": 0.5},
    }
    moments = PublicMoments.guessed(schema, guess)
    assert moments.columns == {"größe"}
    place, other = (1 + ODD.index(name) for name in ("größe", "last, first"))
    assert moments.matrix[place, other] == pytest.approx(0.5 * 0.1 * 3**-0.5)


@pytest.mark.parametrize("text", ["", "a,", ",a", "a,,b", "`a", "a`b", "`a`b", "`a` `b`", "``"])
def test_a_list_that_is_none_is_refused(text):
    with pytest.raises(InputError, match="E161"):
        split_names(text)
