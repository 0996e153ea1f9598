"""A table of many columns, on terminals of several widths: no line is wider, and what is not shown is summed up."""

from __future__ import annotations

import os
import re
import sys

import numpy as np
import pytest

import privcov as pc
from privcov.cli import main
from privcov.steward import inspect
from privcov.text.aligning import terminal, width

FORMULA = "`question number 01` ~ `question number 18`"


def be_a_terminal(monkeypatch, columns):
    monkeypatch.setattr("sys.__stdout__", sys.stdout)
    monkeypatch.setattr("os.get_terminal_size", lambda _: os.terminal_size((columns, 24)))


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Twenty columns with long names, of which the last two go together."""
    home = tmp_path_factory.mktemp("wide")
    rng = np.random.default_rng(4)
    rows = rng.uniform(-1, 1, size=(60_000, 20))
    rows[:, 19] = rows[:, 18]
    bounds = {f"question number {place:02d}": {"lower": -1, "upper": 1} for place in range(20)}
    made = pc.release(
        rows,
        schema=pc.Schema.from_dict({"columns": bounds}),
        loss=pc.PureDP(epsilon=2, neighbours="replace-one"),
    )
    made.save(home / "wide.json")
    (home / "wide.toml").write_text(made.schema.to_toml(), encoding="utf-8")
    return home


@pytest.fixture
def said(home, monkeypatch, capsys):
    """What ``privcov show`` prints in a terminal of so many columns."""
    monkeypatch.chdir(home)

    def said(columns, *words):
        be_a_terminal(monkeypatch, columns)
        capsys.readouterr()
        assert main(["show", "wide.json", *words]) == 0
        return capsys.readouterr().out

    return said


@pytest.mark.parametrize("matrix", ["correlation", "covariance", "mean", "raw"])
@pytest.mark.parametrize("columns", [70, 80, 100])
def test_no_line_is_wider_than_the_terminal(said, columns, matrix):
    assert max(width(line) for line in said(columns, "--matrix", matrix).splitlines()) <= columns


@pytest.mark.parametrize(
    "words",
    [
        ("ols", "wide.json", FORMULA),
        ("ridge", "wide.json", "--target", "question number 01"),
        ("pca", "wide.json", "--rank", "6"),
        ("plan", "--schema", "wide.toml", "--rows", "5000", "--epsilon", "1", "--mechanism", "laplace"),
    ],
    ids=lambda words: words[0],
)
def test_tables_and_sentences_of_other_commands_fit_the_terminal(home, monkeypatch, capsys, words):
    monkeypatch.chdir(home)
    assert main([*words]) == 0
    whole = capsys.readouterr().out
    be_a_terminal(monkeypatch, 80)
    assert main([*words]) == 0
    fitting = capsys.readouterr().out
    assert max(map(width, fitting.splitlines())) <= 80
    assert set(re.findall(r"\d+\.\d+", fitting)) == set(re.findall(r"\d+\.\d+", whole))  # nothing is left out
    assert any(width(line) > 80 for line in whole.splitlines())


def test_nothing_is_wider_than_a_line_that_is_read_with_ease(said):
    assert said(250) == said(100)


def test_a_matrix_in_parts_has_every_entry_of_the_whole_one(said):
    def entries(columns):
        found = {}
        for part in said(columns).partition("… and")[0].split("\n\n")[1:]:
            for line in part.splitlines()[2:]:
                found.setdefault(line[:18], []).extend(line[18:].split())
        return found

    apart, whole = entries(70), entries(100)
    assert apart == whole
    assert list(whole) == [f"question number {place:02d}" for place in range(12)]
    assert {len(cells) for cells in whole.values()} == {12}


def test_the_largest_correlations_are_told_where_the_table_does_not_show_them(said):
    shown = " ".join(said(100).split())
    assert "19" not in shown.partition("… and")[0]
    assert re.search(
        r"The largest that stand clear: question number 18 × question number 19 (1\.00|0\.99)", shown
    )
    assert "The largest that stand clear" not in said(100, "--matrix", "covariance")


def test_what_is_not_a_terminal_has_room_for_every_table(home, monkeypatch):
    monkeypatch.setattr("os.get_terminal_size", lambda _: os.terminal_size((60, 24)))
    assert terminal() == sys.maxsize  # what is printed is caught here, as a notebook catches it
    be_a_terminal(monkeypatch, 60)
    assert terminal() == 60


@pytest.mark.parametrize("columns", [80, 100])
def test_no_sentence_of_a_check_a_schema_or_a_model_is_wider_than_the_terminal(
    home, monkeypatch, capsys, columns
):
    """``check`` had lines of 170 cells, and a formula of twenty columns one of 480."""
    monkeypatch.chdir(home)
    names = [f"question number {place:02d}" for place in range(20)]
    (home / "wide.csv").write_text(",".join(names) + "\n" + ",".join("0" * 20) + "\n")
    be_a_terminal(monkeypatch, columns)
    for words in (
        ["check", "wide.csv", "--schema", "wide.toml", "--epsilon", "1", "--neighbours", "replace-one"],
        ["schema", "check", "wide.toml"],
        ["schema", "explain", "wide.toml"],
        ["ols", "wide.json", "`question number 01` ~ ."],
        ["pca", "wide.json", "--correlation"],
    ):
        assert main(words) == 0
        said = [one for one in capsys.readouterr().out.splitlines() if "─" not in one]
        wide = [one for one in said if width(one) > columns and not re.search(r"  +[-\d]", one)]  # of a table
        assert not wide, wide


def test_a_reading_report_has_room_for_its_counts_beside_a_long_name(tmp_path):
    """A name of 80 letters moved them out of sight."""
    name = "n" * 80
    (tmp_path / "a.csv").write_text(f"{name}\n1\n")
    schema = pc.Schema.from_dict({"columns": {name: {"lower": 0, "upper": 2}}})
    assert max(map(width, inspect(tmp_path / "a.csv", schema=schema).render().splitlines())) < 100
