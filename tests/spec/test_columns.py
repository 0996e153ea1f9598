"""Part of a schema, schemas together, codebooks, labels and units."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privcov as pc
from privcov.cli import main
from privcov.errors import InputError, PrivcovError
from privcov.models import interop
from privcov.planning.moments import PublicMoments
from privcov.report.page import html
from privcov.report.summary import as_text
from privcov.schema.codebook import codebook_of, read_codebook, schema_of, table_words
from privcov.web import drafting

LOSS = pc.PureDP(epsilon=1, neighbours="replace-one")
MESSY = {
    "age": {"lower": 0, "upper": 100, "label": "Age at interview", "unit": "years"},
    "last, first": {"lower": -1, "upper": 1.5, "label": '<script>alert("1")</script>', "unit": "‰"},
    "a`b": {"levels": ["x, y", "`", "01"], "missing": "indicator"},
    "größe": {"levels": [1, 2.5, -3], "label": "Größe"},
    "zip": {"levels": ["1", "2"], "fill": "2"},
}
SCHEMA = pc.Schema.from_dict({"columns": MESSY})
TABLE = pd.DataFrame(
    {
        "age": [30.0, 40.0, 50.0],
        "last, first": [0.0, 1.0, -1.0],
        "a`b": ["01", "`", "x, y"],
        "größe": [1.0, 2.5, -3.0],
        "zip": ["1", "2", "1"],
    }
)


def test_a_subset_is_in_declared_order_and_leaves_the_rest_out() -> None:
    part = SCHEMA.subset(["a`b", " age "])
    assert [column.name for column in part.columns] == ["age", "a`b"]
    assert part.left_out == ("last, first", "größe", "zip")
    assert part == SCHEMA.without(["last, first", "größe", "zip"])
    assert part.squared_norm_bound == 3


def test_a_table_may_have_what_the_whole_schema_declares_and_nothing_else() -> None:
    part = SCHEMA.subset(["age"])
    made = pc.release(TABLE, schema=part, loss=LOSS)
    assert made.columns == ("(Intercept)", "age")
    assert made.schema.left_out == ()
    with pytest.raises(InputError, match="E104"):
        pc.release(TABLE.assign(salary=1.0), schema=part, loss=LOSS)


def test_what_is_left_out_is_a_word_of_the_schema_file(tmp_path: Path) -> None:
    path = tmp_path / "part.toml"
    path.write_text(SCHEMA.without(["age"]).to_toml(), encoding="utf-8")
    assert pc.Schema.read(path) == SCHEMA.without(["age"])
    with pytest.raises(InputError, match="E122 column `last, first` is declared and also left out"):
        replace(SCHEMA, left_out=("last, first",))


@pytest.mark.parametrize(
    ("names", "code"), [(["nobody"], "E190"), (["age", "age "], "E192"), ([], "E191"), (["age[F]"], "E190")]
)
def test_a_subset_refuses_unknown_names_repeats_and_nothing(names: list[str], code: str) -> None:
    with pytest.raises(InputError, match=code):
        SCHEMA.subset(names)


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("id", "the person's id"),
        ("w", "the weight of the rows"),
        ("born", "read for derived columns alone"),
    ],
)
def test_a_column_that_has_another_role_is_not_called_undeclared(name: str, role: str) -> None:
    columns = {"age": {"lower": 0, "upper": 9}, "born": {"lower": 0, "upper": 9, "feature": False}}
    facts = {
        "person": "id",
        "max_rows_per_person": 2,
        "weight": "w",
        "largest_weight": 9,
        "derived": {"later": "born + 1"},
    }
    schema = pc.Schema.from_dict({"columns": columns, **facts})
    for cut in (schema.subset, schema.without):
        with pytest.raises(InputError, match=f"E190 column {name} is {role}, and cannot be chosen here"):
            cut([name])


def test_leaving_every_column_out_is_refused() -> None:
    with pytest.raises(InputError, match="E191"):
        SCHEMA.without([column.name for column in SCHEMA.columns])


def test_parts_merge_to_the_whole() -> None:
    first, second = SCHEMA.subset(["age", "last, first"]), SCHEMA.without(["age"])
    assert first.merged(second) == SCHEMA


@pytest.mark.parametrize(
    ("other", "about"),
    [
        ({"columns": {"age": {"lower": 0, "upper": 90}}}, "column age in two ways"),
        ({"columns": {"x": {"lower": 0, "upper": 1}}, "max_rows_per_person": 2}, "max_rows_per_person"),
        ({"columns": {"x": {"lower": 0, "upper": 1}}, "file": {"separator": ";"}}, "file"),
    ],
)
def test_contradictions_are_not_merged(other: dict[str, object], about: str) -> None:
    with pytest.raises(InputError, match=f"E193.*{about}"):
        SCHEMA.merged(pc.Schema.from_dict(other))


@pytest.mark.parametrize("more", [{"upper": 90}, {"fill": 3}, {"missing_values": [-9]}, {"label": "Age"}])
def test_columns_that_are_only_read_must_be_declared_in_one_way_too(more: dict[str, object]) -> None:
    age = {"lower": 0, "upper": 100, "feature": False}
    first = pc.Schema.from_dict({"columns": {"age": age}, "derived": {"age2": "age^2"}})
    second = pc.Schema.from_dict({"columns": {"age": {**age, **more}}, "derived": {"old": "age >= 65"}})
    released = pc.Schema.from_dict({"columns": {"age": {**age, **more, "feature": True}}})
    for other in (second, released):
        for pair in ((first, other), (other, first)):
            with pytest.raises(InputError, match=r"E193.*column age in two ways"):
                pair[0].merged(pair[1])


def test_a_column_is_released_if_one_of_the_merged_schemas_releases_it() -> None:
    age = {"lower": 0, "upper": 100, "missing": "indicator"}
    released = pc.Schema.from_dict({"columns": {"age": age}})
    unseen = {"lower": 0, "upper": 100, "feature": False}
    read = pc.Schema.from_dict({"columns": {"age": unseen}, "derived": {"age2": "age^2"}})
    whole = pc.Schema.from_dict({"columns": {"age": age}, "derived": {"age2": "age^2"}})
    assert read.merged(released) == released.merged(read) == whole
    assert read.merged(read) == read


def test_moments_of_a_part_are_those_of_the_whole() -> None:
    guesses = {"columns": {"age": {"mean": 40, "std": 10}, "zip": {"shares": [0.2, 0.3]}}}
    guesses["correlations"] = {"age, zip[1]": 0.1}  # type: ignore[assignment]
    whole = PublicMoments.guessed(SCHEMA, guesses)
    part = whole.part(SCHEMA.subset(["zip", "age"]))
    assert part.columns == {"age", "zip"}
    assert part.matrix[1, 2] == whole.matrix[1, -2] != 0


# Codebooks


def test_a_codebook_and_a_schema_become_each_other(tmp_path: Path) -> None:
    book = tmp_path / "book.csv"
    book.write_text(codebook_of(SCHEMA), encoding="utf-8-sig")
    assert read_codebook(book) == SCHEMA
    assert book.read_text(encoding="utf-8-sig").splitlines()[0] == (
        "name,lower,upper,levels,label,unit,missing,fill"
    )


_WORDS = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=6)
_LEVELS = st.one_of(
    st.lists(st.one_of(_WORDS, st.sampled_from(["1", "01", "a,b", "`", "-3.5"])), min_size=1, unique=True),
    st.lists(st.one_of(st.integers(-9, 9), st.floats(-1e9, 1e9)), min_size=1, unique=True),
)


@given(levels=_LEVELS, label=st.one_of(st.just(""), _WORDS))
def test_levels_of_any_kind_survive_a_codebook(levels: list[str | float], label: str) -> None:
    try:
        schema = pc.Schema.from_dict({"columns": {"c": {"levels": levels, "label": label}}})
    except PrivcovError:
        return
    assert schema_of(codebook_of(schema), "book") == schema


@pytest.mark.parametrize(
    ("book", "said"),
    [
        ("lower,upper\n0,1\n", "line 1: the first line must name the cells"),
        ("name,name\na,b\n", "line 1: the first line must name the cells, each once"),
        ("name,colour\na,red\n", "line 1: the header has 'colour', which says nothing of a column"),
        (
            'name,levels\na,"1=Male; 2=Female"\n',
            "line 2: a list has single commas between its values, got 1=Male;",
        ),
        ("name,lower,upper\na,2020-01-01,2021-01-01\n", "line 2: column a has bounds that are dates"),
        ("name,lower,upper\na,0,1\n\na,0,2\n", "line 4: column a is there twice"),
        ("name,lower,upper\n,0,1\n", "line 2: the line has no name"),
        ("name,lower,upper\na,0,1,2\n", "line 2: it has 4 cells, and the header 3"),
        (
            "name,lower,upper\na,0,ten\n",
            "line 2: upper must be a number, or a date such as 2024-12-31; got ten",
        ),
        ("name,lower,upper\na,1,0\n", "line 2: column a: lower must be below upper"),
        ("name,lower,upper\na,0,\n", "line 2: column a: give lower and upper, or levels"),
        ('name,levels\na,"F,,M"\n', "line 2: a list has single commas between its values, got F,,M"),
        ('name,label\n"a\n', "line 2: its cells cannot be told apart"),
        ("name,lower,upper\n", "has no column"),
        ("", "has no column"),
    ],
)
def test_a_malformed_codebook_is_refused_with_its_line(book: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        schema_of(book, "book.csv")
    assert said in str(caught.value)


def test_a_messy_codebook_of_120_columns_becomes_a_schema_and_back() -> None:
    """Odd names, marks of every kind in labels and levels, dates, columns that are only read, missing cells."""
    names = [
        "Household Income (USD)",
        "größe",
        "a,b",
        "semi;colon",
        "`tick`",
        'quote"d',
        "-minus",
        "年齢",
        "[x]",
        "#",
        "name",
    ]
    columns: dict[str, dict[str, object]] = {
        name: {
            "lower": -place,
            "upper": place + 1.5,
            "label": f'“{place}”; with `ticks`, "quotes"',
            "unit": "m²/s",
        }
        for place, name in enumerate(names)
    }
    columns |= {
        "texts": {"levels": ["yes", "yes, but rarely", "`tick`", "a``b", "1", "01", "1.0", "-", "é"]},
        "numbers": {"levels": [1, 2, 3.5, -4], "missing": "indicator"},
        "words": {"levels": [True, False]},
        "one": {"levels": ["a;b"]},
        "all": {
            "levels": ["01", "02"],
            "exhaustive": True,
            "otherwise": "02",
            "missing_values": ["-9", "NA", -8, "a,b"],
        },
        "filled": {"lower": 0, "upper": 1, "fill": 0.25},
        "date": {
            "lower": "2020-01-01",
            "upper": "2024-12-31",
            "feature": False,
            "label": "Admitted",
            "fill": "2021-05-05",
        },
        "read": {"lower": 0, "upper": 9, "feature": False},
        "scaled": {"lower": 0, "upper": 500, "centre": 30, "scale": 20},
    }
    columns |= {f"q{i}": {"lower": 0, "upper": 10} for i in range(120 - len(columns))}
    schema = pc.Schema.from_dict({"columns": columns})
    assert schema_of(codebook_of(schema), "book") == schema
    derived = pc.Schema.from_dict({"columns": columns, "derived": {"year": "year(date)"}})
    assert schema_of(codebook_of(derived), "book") == schema
    assert table_words(schema) == []
    assert table_words(derived) == ["derived"]
    lines = 'Name;Levels\n\n;\narea;"north\nsouth,\nwest"\n'  # a spreadsheet's lines within one cell, and empty ones
    assert schema_of(lines, "book").columns[0].levels == ("north", "south", "west")  # type: ignore[union-attr]


def test_what_a_codebook_cannot_say_is_named() -> None:
    assert table_words(SCHEMA) == []
    assert table_words(replace(SCHEMA, max_rows_per_person=3, intercept=False)) == [
        "intercept",
        "max_rows_per_person",
    ]


def test_a_codebook_whose_lines_a_spreadsheet_filled_up_is_read() -> None:
    plain = 'name,lower,upper,levels\nage,0,100\nsex,,,"F, M"\n'
    filled = 'name,lower,upper,levels,,\nage,0,100,,,\nsex,,,"F, M",,\n,,,,,\n'
    assert schema_of(filled, "a spreadsheet") == schema_of(plain, "an editor")


def test_levels_keep_their_names_when_a_schema_is_written() -> None:
    """A schema with the level 1.0 equals one with the level 1, but their columns have other names."""
    columns = {"a": {"levels": [1.0, 2.5, 1e16], "exhaustive": True, "otherwise": 1}, "b": {"levels": [1, 2]}}
    schema = pc.Schema.from_dict({"columns": columns, "missing_values": [-9.0, -8]})
    names = ["(Intercept)", "a[1.0]", "a[2.5]", "a[1e+16]", "b[1]", "b[2]"]
    for made in (
        schema,
        pc.Schema.from_dict(tomllib.loads(schema.to_toml())),
        schema_of(codebook_of(schema), "book.csv"),
    ):
        assert [feature.name for feature in made.features] == names
        assert made.columns == schema.columns


# What is written wrong at first

AGE: dict[str, object] = {"lower": 0, "upper": 100}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            {"columns": {"a": {**AGE, "lower": "0"}}},
            "E206 .* got the text '0'. Write a number without quotes",
        ),
        ({"columns": {"a": {"lower": "1.2.20", "upper": "3.4.20"}}}, "E206 .* may also be a date such as"),
        (
            {"columns": {"a": AGE}, "max_rows_per_person": "3"},
            "E205 .* got the text '3'. Write a whole number",
        ),
        ({"columns": {"a": AGE}, "max_rows_per_person": Fraction(5, 2)}, "E205 .* got 2.5"),
        ({"columns": {"a": AGE}, "weight": "w", "largest_weight": "9"}, "E196 .* got the text '9'. Write"),
        (
            {"columns": {"a": {"levels": ["x", ""]}}},
            "E121 .* '' is neither. Leave it out: an empty cell is a",
        ),
        ({"columns": {"a": {"levels": ["x", "y "]}}}, "E121 .* 'y ' is neither. Leave out the white space"),
        ({"columns": {"a": {"levels": ["x", "\u202e"]}}}, r"E121 .* '\\u202e' is neither. Shorten or rename"),
        ({"columns": {"a": {**AGE, "feature": False}}}, "E122 .* has feature = false. Derive a column"),
        ({"columns": {}}, "E122 the schema declares no column. Add a"),
        (
            {"columns": {"a": AGE}, "derived": {"x": 'a == "F"'}},
            "E170 .* where '\"' stands. A text goes between",
        ),
        ({"columns": {"a": AGE}, "derived": {"x": "a = 3"}}, "E170 .* where '=' stands. Two signs compare"),
        ({"columns": {"a": AGE}, "derived": {"x": "(a"}}, "E170 .* parenthesis is expected where it ends"),
    ],
)
def test_a_message_says_what_was_given_and_what_to_write(given: dict[str, object], told: str) -> None:
    with pytest.raises(PrivcovError, match=told):
        pc.Schema.from_dict(given)


# Labels and units


def test_labels_and_units_are_in_the_release_file_and_in_all_that_people_read(tmp_path: Path) -> None:
    made = pc.release(pd.concat([TABLE] * 40), schema=SCHEMA, loss=LOSS)
    made.save(tmp_path / "r.json")
    loaded = pc.load(tmp_path / "r.json")
    assert loaded.schema == SCHEMA
    assert [feature.title for feature in loaded.schema.features[1:5]] == [
        "Age at interview (years)",
        '<script>alert("1")</script> (‰)',
        "a`b[x, y]",
        "a`b[`]",
    ]
    text, page = as_text(loaded), html(loaded, models=["age ~ `last, first`"])
    assert "age          Age at interview (years)" in text
    assert "Größe: 2.5" in page
    assert page.count("Age at interview (years)") >= 3  # the table of columns, the means, the heat map
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_labels_are_in_tables_for_papers_in_frames_and_in_notebooks(tmp_path: Path) -> None:
    """Of derived columns too, which name them beside their expression."""
    columns = {
        "age": {"lower": 0, "upper": 100, "label": "Age_at interview", "unit": "years"},
        "sex": {"levels": ["F", "M"], "label": "Sex"},
        "admitted": {
            "lower": "2020-01-01",
            "upper": "2024-12-31",
            "feature": False,
            "label": "Day of admission",
        },
        "wage": {"lower": 0, "upper": 50},
    }
    derived = {"years": {"expression": "year(admitted)", "label": "Year of admission"}}
    schema = pc.Schema.from_dict({"columns": columns, "derived": derived})
    path = tmp_path / "s.toml"
    path.write_text(schema.to_toml())
    assert pc.Schema.read(path) == schema
    assert drafting.drafted(drafting.opened(path)).schema == schema
    frame = pd.DataFrame({"age": np.arange(400) % 90, "sex": ["F", "M"] * 200, "admitted": "2021-03-04"})
    frame = frame.assign(
        wage=frame["age"] / 3, admitted=np.where(frame["age"] > 40, "2021-03-04", "2023-01-01")
    )
    made = pc.release(frame, schema=schema, loss=pc.ZCDP(rho=10**4, neighbours="replace-one"))
    fit = pc.ols(made, "wage ~ age + sex + years")
    for text in (fit.to_latex(), interop.to_latex(made)):
        for title in (r"Age\_at interview (years)", "Sex: M", "Year of admission"):
            assert f"{title} &" in text
    frame = interop.to_pandas(made, "mean")
    assert frame.index[0] == "age"
    assert frame.attrs["titles"]["sex[F]"] == "Sex: F"
    ridge = pc.ridge(made, "wage", penalty=1.0)
    for shown in (ridge, pc.ridge_path(made, "wage", [1.0, 2.0]), pc.pca(made, rank=1)):
        assert "Year of admission" in shown._repr_html_()


def test_a_release_without_labels_is_written_as_before() -> None:
    plain = pc.Schema.from_dict({"columns": {"x": {"lower": 0, "upper": 1}}})
    made = pc.release(np.full((5, 1), 0.5), schema=plain, loss=LOSS)
    assert set(made.to_dict()["certificate"]["bounds"]["columns"][0]) == {"name", "lower", "upper"}


@pytest.mark.parametrize("word", ["label", "unit"])
@pytest.mark.parametrize("text", ["\x1b[2J", "a\nb", " a", "a\u202eb", "x" * 200, 5])
def test_words_that_nobody_should_print_are_refused(word: str, text: object) -> None:
    with pytest.raises(InputError, match="E195"):
        pc.Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 1, word: text}}})


def test_the_workbench_keeps_labels_and_what_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "people.toml"
    path.write_text(SCHEMA.without(["zip"]).to_toml(), encoding="utf-8")
    assert drafting.drafted(drafting.opened(path)).schema == SCHEMA.without(["zip"])


# The command line


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("people.toml").write_text(SCHEMA.to_toml(), encoding="utf-8")
    pd.concat([TABLE] * 10).to_csv("people.csv", index=False)
    return tmp_path


def run(*words: str) -> int:
    return main(list(words))


ORDER = ["people.csv", "--schema", "people.toml", "--epsilon", "1"]


def test_release_and_check_take_part_of_a_schema(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("release", *ORDER, "--columns", "`a``b`,age,größe", "--without", "größe", "-o", "r.json") == 0
    assert [column.name for column in pc.load("r.json").schema.columns] == ["age", "a`b"]
    capsys.readouterr()
    assert run("check", *ORDER, "--without", "`last, first`,zip", "--json") == 0
    assert json.loads(capsys.readouterr().out)["columns"] == 3


@pytest.mark.long
def test_plan_takes_part_of_a_schema(files: Path) -> None:
    plan = ["plan", "--schema", "people.toml", "--epsilon", "1", "--rows", "1000", "--mechanism", "laplace"]
    assert run(*plan, "--columns", "age", "--json") == 0


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--columns", "nobody"], "E190"),
        (["--columns", "age,age"], "E192"),
        (["--columns", "age", "--without", "age"], "E191"),
        (["--columns", "age,,zip"], "E161"),
    ],
)
def test_bad_parts_are_one_line_and_exit_2(
    files: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: str
) -> None:
    assert run("release", *ORDER, *words, "-o", "r.json") == 2
    said = capsys.readouterr().err
    assert code in said
    assert said.count("\n") == 1
    assert not Path("r.json").exists()


def test_schema_commands_cut_and_join(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("schema", "subset", "people.toml", "--columns", "age,zip", "-o", "one.toml") == 0
    assert run("schema", "subset", "people.toml", "--without", "age", "-o", "two.toml") == 0
    assert run("schema", "merge", "one.toml", "two.toml", "-o", "both.toml") == 0
    assert {c.name for c in pc.Schema.read("both.toml").columns} == set(MESSY)
    assert run("schema", "codebook", "people.toml", "-o", "book.csv") == 0
    assert run("schema", "from-codebook", "book.csv", "-o", "again.toml") == 0
    assert pc.Schema.read("again.toml") == SCHEMA
    Path("one.toml").write_text("[columns.age]\nlower = 0\nupper = 5\n")
    capsys.readouterr()
    assert run("schema", "merge", "people.toml", "one.toml") == 2
    assert "one.toml: the schemas declare column age in two ways" in capsys.readouterr().err
    assert run("schema", "subset", "people.toml") == 2
    assert run("schema", "merge", "people.toml") == 2


def test_a_codebook_holds_exhaustive_levels():
    about = {"levels": [1, 2, 3], "exhaustive": True, "otherwise": 2}
    sex = {"levels": ["F", "M"], "exhaustive": True, "otherwise": "M", "label": "Sex, as registered"}
    schema = pc.Schema.from_dict({"columns": {"grade": about, "sex": sex, "age": {"lower": 0, "upper": 9}}})
    assert schema_of(codebook_of(schema), "codebook") == schema


def test_means_of_many_columns_are_shown_with_all_of_their_labels() -> None:
    columns = {f"x{n}": {"lower": 0, "upper": 1, "label": f"Answer {n}"} for n in range(40)}
    schema = pc.Schema.from_dict({"columns": columns, "weight": "w", "largest_weight": 9})
    loss = pc.PureDP(epsilon=1, neighbours="replace-one")
    release = pc.release(np.full((50, 41), 0.5), schema=schema, loss=loss)
    shown = as_text(release, what="mean")
    assert all(line in shown for line in ("x0   Answer 0", "x39  Answer 39", "w    what a row counts as"))
    shown = as_text(release, what="correlation")  # of which the first columns are printed
    assert "x0   Answer 0" in shown
    assert "x39" not in shown
