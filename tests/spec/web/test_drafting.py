"""A schema on the page is the schema of the library, and what is wrong with it stands beside its field."""

from __future__ import annotations

import copy

import pytest

import privcov as pc
from privcov.schema import Schema
from privcov.web.asking import Refused
from privcov.web.drafting import blank, drafted, opened, saved_text, summary


def test_a_draft_from_a_table_has_names_and_kinds_and_nothing_else(served):
    draft = served.ask("columns", data="people.csv").json["draft"]
    assert [(column["name"], column["kind"]) for column in draft["columns"]] == [
        ("age", "numeric"),
        ("sex", "levels"),
        ("income", "numeric"),
    ]
    for column in draft["columns"]:
        assert not any(column[word] for word in ("lower", "upper", "levels", "mean", "std", "shares"))


def test_every_blank_is_refused_beside_its_own_field_at_once(served):
    draft = served.ask("columns", data="people.csv").json["draft"]
    reply = served.ask("schema/check", draft=draft)
    assert reply.status == 422
    fields = ["columns.0.lower", "columns.0.upper", "columns.1.levels", "columns.2.lower", "columns.2.upper"]
    assert sorted(reply.errors) == fields
    assert "never from the data" in reply.errors["columns.0.lower"]


@pytest.mark.parametrize(
    ("place", "word", "value", "field", "says"),
    [
        (0, "lower", "abc", "columns.0.lower", "finite number, got 'abc'"),
        (0, "lower", "inf", "columns.0.lower", "finite number"),
        (0, "upper", "1e999", "columns.0.upper", "finite number"),
        (0, "upper", "-5", "columns.0.upper", "lower must be below upper, got 0 and -5"),
        (1, "levels", "F\nF", "columns.1.levels", "different values"),
        (1, "levels", " \n", "columns.1.levels", "still blank"),
        (1, "levels", "x" * 129, "columns.1.levels", "short printable text"),
        (0, "name", "a\u202eb", "columns.0.name", "printable characters"),
        (0, "name", "sex", None, "declared twice"),
    ],
)
def test_a_bad_column_is_refused_in_the_library_s_words(served, draft, place, word, value, field, says):
    draft["columns"][place][word] = value
    reply = served.ask("schema/check", draft=draft)
    assert reply.status == 422
    assert says in reply.errors[field]


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("max_rows_per_person", "0", "whole number from 1"),
        ("max_rows_per_person", "two", "whole number"),
        ("row_norm_bound", "-1", "above 0"),
        ("row_norm_bound", "wide", "above 0"),
        ("missing", "drop", "'midpoint', 'zero-row' or 'none'"),
    ],
)
def test_a_bad_rule_is_refused_beside_its_field(served, draft, field, value, says):
    draft[field] = value
    assert says in served.ask("schema/check", draft=draft).errors[field]


def test_a_schema_file_opened_and_checked_is_the_same_schema(served, schema):
    (served.folder / "full.toml").write_text(
        schema.to_toml().replace("max_rows_per_person = 1", "max_rows_per_person = 3\nrow_norm_bound = 1.75")
        + "[planning.columns.age]\nmean = 45\nstd = 12.5\n[planning.columns.sex]\nshares = [0.5, 0.5]\n"
        + '[planning.correlations]\n"age, income" = 0.2\n'
    )
    draft = served.ask("schema/open", schema="full.toml").json["draft"]
    assert served.ask("schema/save", draft=draft, name="again.toml").status == 200
    assert pc.Schema.read(served.folder / "again.toml") == pc.Schema.read(served.folder / "full.toml")
    from privcov.planning.moments import PublicMoments

    one, two = (
        PublicMoments.read(pc.Schema.read(path), path).matrix
        for path in (served.folder / "full.toml", served.folder / "again.toml")
    )
    assert (one == two).all()


def test_guesses_are_saved_exactly_and_impossible_ones_are_not_saved(served, draft):
    draft["columns"][0] |= {"mean": "100/3", "std": "1e1"}
    draft["columns"][1] |= {"shares": "0.1, 1/3"}
    assert served.ask("schema/save", draft=draft, name="guessed.toml").status == 200
    again = served.ask("schema/open", schema="guessed.toml").json["draft"]["columns"]
    assert (again[0]["mean"], again[0]["std"], again[1]["shares"]) == ("100/3", "10", "0.1, 1/3")
    draft["columns"][0]["mean"] = "500"
    assert "within the bounds" in served.ask("schema/save", draft=draft, name="other.toml").errors["guesses"]
    assert not (served.folder / "other.toml").exists()


@pytest.mark.parametrize("count", [1, 3, 6, 7, 11])
def test_even_shares_add_up_to_no_more_than_one(served, draft, count):
    draft["columns"][1]["levels"] = "\n".join(f"level{i}" for i in range(count))
    guesses = {guess["name"]: guess for guess in served.ask("schema/guess", draft=draft).json["guesses"]}
    draft["columns"][1]["shares"] = guesses["sex"]["shares"]
    assert served.ask("schema/save", draft=draft, name="even.toml").status == 200


def test_saving_never_replaces_a_file(served, draft):
    before = (served.folder / "people.toml").read_text()
    reply = served.ask("schema/save", draft=draft, name="people.toml")
    assert (reply.status, reply.codes) == (422, ["E401"])
    assert "already exists" in reply.errors["name"]
    assert (served.folder / "people.toml").read_text() == before


def test_a_column_that_is_not_used_is_ignored_in_the_table(served, order):
    order = copy.deepcopy(order)
    order["draft"]["columns"][2] |= {"use": False, "lower": "nonsense"}
    served.ask("release", request="1" * 32, **order)
    assert served.finished("1" * 32)["state"] == "done"
    assert pc.load(served.folder / "people.release.json").columns == (
        "(Intercept)",
        "age",
        "sex[F]",
        "sex[M]",
    )


def test_levels_that_are_numbers_are_numbers(served, draft):
    draft["columns"][1] |= {"levels": "0\n1\n2.5", "numbers": True}
    assert "levels = [0, 1, 2.5]" in served.ask("schema/check", draft=draft).json["toml"]
    draft["columns"][1]["levels"] = "0\nM"
    assert "all texts or all numbers" in served.ask("schema/check", draft=draft).errors["columns.1.levels"]


def test_a_first_line_that_is_a_row_of_data_is_not_shown(served):
    (served.folder / "headless.csv").write_text("35,F,61.25\n40,M,12\n")
    reply = served.ask("columns", data="headless.csv")
    assert reply.status == 422
    assert b"61.25" not in reply.body


@pytest.mark.parametrize("name", ["../people.csv", "/etc/passwd", "people.ledger", "nothing.csv", ""])
def test_a_table_elsewhere_or_of_another_kind_is_refused(served, name):
    reply = served.ask("columns", data=name)
    assert reply.status == 422
    assert "data" in reply.errors


def test_what_is_no_draft_is_refused_in_words_and_not_as_a_fault_of_ours(served, draft):
    for bad in (
        {"columns": "x"},
        {"columns": [3]},
        {"columns": [{"name": 3}]},
        {"columns": []},
        {**draft, "intercept": "yes"},
        {**draft, "correlations": [{"pair": 1}]},
        [],
        "text",
    ):
        assert served.ask("schema/check", draft=bad).status == 422, bad


def test_an_even_guess_is_what_the_planner_assumes_of_a_column_nothing_is_said_of(served, draft, schema):
    import numpy as np

    from privcov.planning.moments import PublicMoments

    guesses = {guess["name"]: guess for guess in served.ask("schema/guess", draft=draft).json["guesses"]}
    assert guesses["age"] == {"name": "age", "mean": "50", "std": "28.87"}
    said = {
        "columns": {
            "age": {"mean": guesses["age"]["mean"], "std": guesses["age"]["std"]},
            "sex": {"shares": guesses["sex"]["shares"].split(", ")},
            "income": {"mean": guesses["income"]["mean"], "std": guesses["income"]["std"]},
        }
    }
    even, typed = PublicMoments.guessed(schema, {}).matrix, PublicMoments.guessed(schema, said).matrix
    assert np.abs(even - typed).max() < 2e-3


def test_rules_the_page_has_no_fields_for_come_back_as_they_were(served):
    text = (
        'missing_values = ["NA", -999]\n[file]\nseparator = ";"\n'
        '[columns.age]\nlower = 0\nupper = 100\nmissing = "indicator"\n'
        '[columns.sex]\nlevels = ["F", "M"]\nfill = "F"\nmissing_values = ["?"]\n'
    )
    text += "[planning.columns.age]\nmean = 40\nstd = 10\nmissing = 0.25\n"
    (served.folder / "rules.toml").write_text(text)
    draft = served.ask("schema/open", schema="rules.toml").json["draft"]
    reply = served.ask("schema/check", draft=draft)
    assert reply.status == 200
    assert "age[missing]" in reply.json["features"]
    assert served.ask("schema/save", draft=draft, name="again.toml").status == 200
    assert pc.Schema.read(served.folder / "again.toml") == pc.Schema.read(served.folder / "rules.toml")
    assert "missing = 0.25" in (served.folder / "again.toml").read_text()
    draft["columns"][1]["levels"] = "M\nD"
    assert "'F' is not one of its levels" in served.ask("schema/check", draft=draft).errors[None]


def test_a_dialect_and_odd_names_go_through_a_draft_unharmed(tmp_path):
    names = ["größe", "Household Income (USD)", 'say "a", `b`\\']
    schema = Schema.from_dict(
        {
            "columns": {name: {"lower": 0, "upper": 9} for name in names},
            "file": {"separator": ";", "decimal": ",", "encoding": "latin-1"},
        }
    )
    guesses = '[planning.columns."Household Income (USD)"]\nmean = 4\nstd = 1\n'
    guesses += "[planning.correlations]\n'größe, `say \"a\", ``b``\\`' = 0.5\n"
    path = tmp_path / "s.toml"
    path.write_text(schema.to_toml() + guesses, encoding="utf-8")
    draft = drafted(opened(path))
    assert draft.schema == schema
    saved = tmp_path / "again.toml"
    saved.write_bytes(saved_text(draft))
    assert drafted(opened(saved)) == draft
    assert "cells separated by semicolons, decimal comma, latin-1" in summary(draft)["words"]


def test_a_blank_draft_proposes_the_dialect_of_the_header(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("größe;alter\n1,5;3\n".encode("latin-1"))
    found = blank(path)
    assert found["file"] == {"separator": ";", "encoding": "latin-1"}
    assert [(column["name"], column["kind"]) for column in found["columns"]] == [
        ("größe", "numeric"),
        ("alter", "numeric"),
    ]


@pytest.mark.parametrize("file", [{"separator": "x"}, {"separator": 5}, {"mark": ","}, "comma"])
def test_a_dialect_that_is_none_is_refused_on_the_page(file):
    age = {"name": "age", "kind": "numeric", "lower": "0", "upper": "100"}
    with pytest.raises(Refused):
        drafted({"columns": [age], "file": file})


def test_levels_on_one_line_are_parted_by_commas_and_on_several_lines_keep_them():
    def levels(text):
        column = {"name": "sex", "kind": "levels", "levels": text}
        return drafted({"columns": [column]}).schema.columns[0].levels

    assert levels("F, M") == ("F", "M")
    assert levels("F,M,") == ("F", "M")
    assert levels("never, ever\nonce") == ("never, ever", "once")
