"""Derived columns, labels, exhaustive levels, persons and weights on the page: kept, edited, refused beside a field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import privcov as pc
from privcov.web.asking import Refused
from privcov.web.drafting import drafted, opened, saved_text

TEXT = """
max_rows_per_person = 4
person = "id"
weight = "w"
largest_weight = 2.5
weight_power = 0.5

[columns.age]
lower = 0
upper = 100
label = "Age at interview"
unit = "years"

[columns.income]
lower = 0
upper = 200
centre = 60
scale = 40

[columns.sex]
levels = ["F", "M"]
exhaustive = true
otherwise = "M"

[columns.seen]
lower = 2020-01-01
upper = 2024-12-31
feature = false

[derived]
age_p = "poly(age, 2)"
old = { expression = "age >= 65", missing = "indicator" }
older = "old * (age - 65)"
year = "year(seen)"
band = "cut(age, 40, 65)"

[planning.columns.old]
mean = 0.25
std = 0.4
[planning.columns.age_p_2]
mean = 0.125
std = 0.5
"""


@pytest.fixture
def rich(tmp_path: Path) -> dict[str, Any]:
    """A schema file with all of it, as the page's fields."""
    (tmp_path / "rich.toml").write_text(TEXT)
    draft: dict[str, Any] = json.loads(json.dumps(opened(tmp_path / "rich.toml")))
    return draft


def refusals(draft: dict[str, Any]) -> dict[str | None, str]:
    """What is said beside each field."""
    with pytest.raises(Refused) as refused:
        drafted(draft)
    return {error["field"]: error["text"] for error in refused.value.to_dict()["errors"]}


def line(rich: dict[str, Any], name: str) -> dict[str, Any]:
    return next(row for row in [*rich["columns"], *rich["derived"]] if row["name"] == name)


def test_a_file_with_all_of_it_is_shown_and_comes_back_the_same(served, rich):
    assert [(row["name"], row["expression"]) for row in rich["derived"]][:3] == [
        ("age_p", "poly(age, 2)"),  # as the file writes them
        ("old", "age >= 65"),
        ("older", "old * (age - 65)"),
    ]
    assert (line(rich, "age")["label"], line(rich, "age")["unit"]) == ("Age at interview", "years")
    assert (line(rich, "sex")["exhaustive"], line(rich, "sex")["otherwise"]) == (True, "M")
    assert (line(rich, "seen")["kind"], line(rich, "seen")["use"]) == ("date", False)
    assert [rich[word] for word in ("person", "weight", "largest_weight", "weight_power")] == [
        "id",
        "w",
        "2.5",
        "0.5",
    ]
    assert served.ask("schema/save", draft=rich, name="again.toml").status == 200
    once, again = (pc.Schema.read(served.folder / name) for name in ("rich.toml", "again.toml"))
    assert again == once
    path = served.folder / "again.toml"
    reopened = drafted(opened(path))
    assert saved_text(reopened) == path.read_bytes()
    assert set(reopened.guesses["columns"]) == {"old", "age_p_2"}


def test_what_it_amounts_to_is_said_in_the_words_of_the_command_line(served, rich):
    found = served.ask("schema/check", draft=rich).json
    assert found["derived"]["year"] == {
        "bounds": "from 2020 to 2024",
        "kind": "numeric",
        "made": ["year"],
    }
    assert found["derived"]["age_p"]["bounds"].startswith("age_p_1: from -1 to 1; age_p_2: from -")
    assert found["derived"]["band"]["bounds"] == "levels ..40, 40..65, 65.."
    for words in (
        "5 columns in the table",
        "Derived columns: 6. Read for them alone: seen.",
        "at most 4, enforced",
        "Rows are weighted by w, at most 2.5, to the power 0.5",
    ):
        assert words in found["words"], words
    assert "between levels of these columns" in found["saving"]
    assert 'sex: a cell that is missing or has none of its levels counts as "M".' in found["saving"]


@pytest.mark.parametrize(
    ("name", "expression", "says"),
    [
        ("year", "yeer(seen)", "unknown function 'yeer'"),  # E170
        ("year", "year(seen", "derived column year"),  # E170
        ("year", "", "derived column year"),
        ("year", "wealth + 1", "which the schema does not declare"),  # E171
        ("year", "sex + 1", "derived column year"),  # E173
        ("year", "1 / age", "derived column year"),  # E174
        ("year", "exp(age * 9)", "derived column year"),  # E175
        ("year", "age - age * 1 + 0 * w", "which the schema does not declare"),  # the weight is no column
        ("year", "age" + " + age" * 400, "derived column year"),  # E177
        (
            "old",
            "age + wealth",
            "which the schema does not declare",
        ),  # and `older`, made of it, is not blamed
    ],
)
def test_an_expression_that_cannot_be_is_refused_beside_itself(rich, name, expression, says):
    line(rich, name)["expression"] = expression
    found = refusals(rich)
    place = [row["name"] for row in rich["derived"]].index(name)
    assert [*found] == [f"derived.{place}.expression"]
    assert says in found[f"derived.{place}.expression"]


def test_a_circle_is_told_beside_every_line_of_it_and_a_taken_name_beside_the_name(rich):
    line(rich, "old")["expression"] = "older + age"
    found = refusals(rich)
    assert sorted(found) == ["derived.1.expression", "derived.2.expression"]
    assert "in a circle" in found["derived.1.expression"]
    rich["derived"][1] |= {"expression": "age >= 65", "name": "age"}
    assert "name of another column" in refusals(rich)["derived.1.name"]
    rich["derived"][1]["name"] = "band"
    assert "name of another column" in refusals(rich)["derived.4.name"]
    rich["derived"][1]["name"] = ""
    assert "derived.1.name" in refusals(rich)


def test_every_bad_field_is_told_at_once_columns_and_expressions_together(rich):
    line(rich, "age")["upper"] = ""
    line(rich, "year")["expression"] = "year("
    rich |= {"largest_weight": "many", "max_rows_per_person": "few"}
    assert {*refusals(rich)} == {
        "columns.0.upper",
        "derived.3.expression",
        "largest_weight",
        "max_rows_per_person",
    }


def test_a_column_that_is_not_ticked_is_read_where_an_expression_needs_it(tmp_path, rich):
    for name in ("age", "income", "age_p", "old", "band"):
        line(rich, name)["use"] = False
    line(rich, "income")["lower"] = "nonsense"  # nobody reads it
    schema = drafted(rich).schema
    assert [column.name for column in schema.columns] == ["sex", "older", "year", "w"]
    assert [column.name for column in schema.read_columns] == ["age", "sex", "seen", "w"]
    assert schema.columns == pc.Schema.read(tmp_path / "rich.toml").subset(["sex", "older", "year"]).columns
    line(rich, "age")["upper"] = ""
    assert "columns.0.upper" in refusals(rich)  # it is read, so it needs bounds
    line(rich, "older")["use"] = False
    assert [column.name for column in drafted(rich).schema.read_columns] == ["sex", "seen", "w"]


@pytest.mark.parametrize(
    ("settings", "field", "says"),
    [
        ({"largest_weight": ""}, "largest_weight", "no largest weight"),
        ({"largest_weight": "-1"}, "largest_weight", "finite number above 0"),
        ({"weight_power": "2"}, "weight_power", "from 0 to 1"),
        ({"intercept": False}, "intercept", "exhaustive"),
        ({"weight": "", "per_person": "mean"}, "max_rows_per_person", "makes one row of each person"),
        (
            {"max_rows_per_person": "1", "per_person": "mean"},
            "weight",
            "the weight of that row is not defined",
        ),
        (
            {"max_rows_per_person": "1", "per_person": "sum"},
            "per_person",
            "would add up the dates of column seen",
        ),
        ({"weight": "", "max_rows_per_person": "1", "per_person": "median"}, "per_person", "'mean' or 'sum'"),
        ({"missing": "drop"}, "missing", "'midpoint', 'zero-row' or 'none'"),
    ],
)
def test_a_setting_of_the_table_is_refused_beside_its_field(rich, settings, field, says):
    assert says in refusals(rich | settings)[field]


@pytest.mark.parametrize(
    ("name", "fields", "field", "says"),
    [
        ("sex", {"otherwise": "X"}, "columns.2.otherwise", "not one of its levels"),
        ("sex", {"otherwise": ""}, "columns.2.otherwise", "does not say which level a cell"),
        ("sex", {"levels": "F"}, "columns.2.otherwise", "not one of its levels"),
        ("age", {"label": "\u202e"}, "columns.0.label", "label of column age"),
        ("age", {"unit": "x" * 500}, "columns.0.unit", "unit of column age"),
        ("seen", {"lower": "yesterday"}, "columns.3.lower", "is no date: got 'yesterday'"),
        ("seen", {"upper": "2019-01-01"}, "columns.3.upper", "lower must be below upper"),
    ],
)
def test_what_is_said_of_a_column_is_refused_beside_its_field(rich, name, fields, field, says):
    line(rich, name).update(fields)
    found = refusals(rich)
    assert [*found] == [field]
    assert says in found[field]


def test_the_columns_that_are_the_id_and_the_weight_need_no_bounds(served):
    (served.folder / "visits.csv").write_text(
        "id,w,age\n" + "".join(f"p{i % 9},1.5,{i}\n" for i in range(90))
    )
    draft = served.ask("columns", data="visits.csv").json["draft"]
    draft["columns"][2] |= {"lower": "0", "upper": "100", "label": "Age", "unit": "years"}
    draft |= {"person": "id", "max_rows_per_person": "5", "weight": "w", "largest_weight": "2"}
    schema = drafted(draft).schema
    assert (schema.person, schema.weight, schema.ignore_extra) == ("id", "w", False)
    assert schema.columns[0].title == "Age (years)"


def test_it_is_planned_quoted_and_released_as_the_library_would(served, people, rich):
    rows = people.read_text().splitlines()
    (served.folder / "visits.csv").write_text(
        "\n".join(
            [f"{rows[0]},id,w,seen"]
            + [
                f"{row},p{place % 70},{1 + place % 2},2021-0{1 + place % 9}-11"
                for place, row in enumerate(rows[1:])
            ]
        )
    )
    loss = {"kind": "pure", "epsilon": "1", "neighbours": "add-remove"}
    pc.Ledger.init(served.folder / "more.ledger", pc.PureDP(epsilon=1, neighbours="add-remove"))
    asked = {"draft": rich, "loss": loss, "rows": "300"}
    planned = served.ask("plan", **asked, word="mean", one="older", chart=False)
    assert (planned.status, "older" in planned.json["unit"]) == (200, True)
    line(rich, "income").update(mean="60", std="25")
    assert served.ask("regression", **asked, formula="income ~ old + age_p_2").status == 200
    order = {
        "draft": rich,
        "loss": loss,
        "ledger": "more.ledger",
        "data": "visits.csv",
        "output": "v.release.json",
    }
    assert served.ask("quote", **order, rows="300").json["price"] == "epsilon 1"
    served.ask("release", request="3" * 32, **order)
    assert served.finished("3" * 32)["state"] == "done"
    made = pc.load(served.folder / "v.release.json")
    assert made.schema == pc.Schema.read(served.folder / "rich.toml").published()
    shown = served.ask("result", release="v.release.json", section="columns").json["sections"][0]["body"]
    assert "Age at interview (years)" in shown
    assert "p7" not in (served.folder / "v.release.json").read_text()  # no id leaves


def test_even_guesses_are_made_of_derived_columns_too(served, rich):
    guesses = {guess["name"]: guess for guess in served.ask("schema/guess", draft=rich).json["guesses"]}
    assert guesses["year"]["mean"] == "2022"
    line(rich, "year").update(guesses["year"])
    line(rich, "band").update(guesses["band"])
    line(rich, "age_p")["guesses"]["age_p_1"] = guesses["age_p_1"]
    made = drafted(rich)
    assert made.guesses["columns"]["year"]["mean"] == "2022"
    assert made.guesses["columns"]["band"]["shares"] == ["0.3333"] * 3
    assert made.guesses["columns"]["age_p_1"]["mean"] == "0"
    assert made.moments is not None


def test_a_column_may_change_its_kind_and_its_bounds_with_what_the_page_has_no_fields_for(rich):
    line(rich, "income")["upper"] = "50"
    assert "centre 60 is outside the bounds" in refusals(rich)["columns.1.upper"]
    line(rich, "income").update(kind="levels", levels="low\nhigh")
    assert drafted(rich).schema.columns[1].levels == ("low", "high")


@pytest.mark.parametrize(
    "odd",
    [
        {"derived": "x"},
        {"derived": [3]},
        {"derived": [{"name": 3}]},
        {"derived": [{"name": "a", "expression": ["b"]}]},
        {"derived": [{"name": "a", "expression": "age^2", "use": "yes"}]},
        {"derived": [{"name": "a", "expression": "age^2", "rules": {"fill": {}}}]},
        {"person": 3},
        {"weight": []},
    ],
)
def test_what_is_no_draft_is_refused_and_no_fault(rich, odd):
    with pytest.raises(Refused):
        drafted({**rich, **odd})
