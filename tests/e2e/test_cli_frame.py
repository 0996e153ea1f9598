"""A private frame on the command line: from a messy table to everything that is made of its release."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout

import numpy as np
import pytest

from privcov.cli import main

SCHEMA = """
[columns.income]
lower = 0
upper = 10_000_000
missing = "indicator"
[columns.gain]
lower = 0
upper = 1_000_000
[columns.visits]
lower = 0
upper = 1_000
fill = 2
[columns.flat]
lower = 0
upper = 100
[columns.age]
lower = 0
upper = 120
[columns.sex]
levels = ["F", "M"]
"""


def run(*words: str) -> tuple[int, str]:
    """The exit code, and what is printed, on one line."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        code = main(list(words))
    return code, " ".join(printed.getvalue().split())


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Skewed columns in wide bounds, missing cells under each rule, a constant column, levels: 20,000 rows."""
    made, rng, rows = tmp_path_factory.mktemp("frame"), np.random.default_rng(3), 20_000
    columns = {
        "income": np.exp(rng.normal(10, 0.9, rows)),
        "gain": np.where(rng.random(rows) < 0.9, 0, rng.gamma(0.5, 20_000, rows)),
        "visits": rng.poisson(2, rows),
        "flat": np.full(rows, 7.0),
        "age": rng.normal(45, 15, rows).clip(0, 110),
        "sex": rng.choice(["F", "M"], rows),
    }
    missing = {name: rng.random(rows) < 0.05 for name in ("income", "visits", "age", "sex")}
    cells = [
        np.where(missing[name], "", column.astype(str)) if name in missing else column.astype(str)
        for name, column in columns.items()
    ]
    lines = [",".join(columns), *(",".join(row) for row in zip(*cells, strict=True))]
    (made / "people.csv").write_text("\n".join(lines) + "\n")
    (made / "people.toml").write_text(SCHEMA)
    words = [
        "--schema",
        str(made / "people.toml"),
        "--epsilon",
        "2",
        "--delta",
        "0.000001",
        "--frame",
        "scales",
    ]
    assert run("release", str(made / "people.csv"), *words, "-o", str(made / "people.release.json"))[0] == 0
    return made


@pytest.fixture(scope="module")
def path(place):
    return str(place / "people.release.json")


def test_show_tells_the_rounds_and_what_was_cut(path):
    shown = run("show", path)[1]
    rounds = json.loads(run("show", path, "--json")[1])["certificate"]["rounds"]
    assert all(f"Round {number}: a histogram of" in shown for number in range(1, len(rounds)))
    assert f"Round {len(rounds)}: the sum of each of" in shown
    assert "of the budget went into the matrix" in shown
    assert "Long rows were shortened, so sums are biased" in shown
    assert "of the squared length of a row was cut, on average" in shown
    assert "income in [0, 1e+07]" in shown


@pytest.mark.parametrize("what", ["covariance", "mean", "moment", "raw"])
def test_every_matrix_of_a_framed_release_is_shown(path, what):
    code, shown = run("show", path, "--matrix", what)
    assert code == 0
    assert "income" in shown


def test_verify_confirms_the_frame_and_says_where_the_budget_went(path):
    code, shown = run("verify", path)
    assert code == 0
    assert "The stated frame is the one that its" in shown
    assert "of the budget went into the matrix" in shown


def test_models_of_a_framed_release(path, tmp_path):
    code, fit = run("ols", path, "age ~ income + visits + sex")
    assert code == 0
    assert "Target: the regression on the rows as the private frame shortened them" in fit
    assert run("ridge", path, "--target", "age")[0] == 0
    assert run("pca", path)[0] == 0
    page = tmp_path / "page.html"
    assert run("report", path, "-o", str(page), "--model", "age ~ visits", "--pca", "2")[0] == 0
    text = page.read_text()
    assert "0 to 10,000,000" in text  # the bounds, not what the frame is measured in
    assert "0 to 1,000,000" in text
    assert "of the budget went into the matrix" in text


def test_a_shape_from_the_check_to_a_regression(place, tmp_path):
    asked = [str(place / "people.csv"), "--schema", str(place / "people.toml")]
    asked += ["--epsilon", "2", "--delta", "0.000001", "--frame", "shape"]
    path = str(tmp_path / "shaped.release.json")
    code, said = run("check", *asked)
    assert code == 0
    assert "% for a look at their products, " in said
    assert run("release", *asked, "-o", path)[0] == 0
    code, said = run("verify", path)
    assert code == 0
    assert "into shape" in said
    assert "the products of 5 numeric columns (21 sums)" in run("show", path)[1]
    assert run("ols", path, "age ~ income + visits + sex")[0] == 0
    assert run("release", *asked, "--focus", "age", "-o", str(tmp_path / "none.json"))[0] == 2


def test_plan_names_the_frame(place):
    order = [
        "--schema",
        str(place / "people.toml"),
        "--rows",
        "20000",
        "--rho",
        "0.1",
        "--mechanism",
        "gaussian",
    ]
    code, plan = run("plan", *order)
    assert code == 0
    assert "With --frame auto" in plan


def test_explain_names_the_frame(place):
    assert "release --frame auto" in run("schema", "explain", str(place / "people.toml"))[1]


def test_the_cut_is_told_or_counted(place, path, capsys):
    words = [
        str(place / "people.csv"),
        "--schema",
        str(place / "people.toml"),
        "--epsilon",
        "2",
        "--delta",
        "0.000001",
    ]
    counted = str(place / "counted.release.json")
    assert "--cut counted" in run("show", path)[1]
    assert run("release", *words, "--cut", "counted", "-o", counted)[0] == 2
    assert "E218 no frame cuts rows here, so there is no cut to be counted." in capsys.readouterr().err
    assert "sums of squared distances" in run("check", *words, "--frame", "scales", "--cut", "counted")[1]
    assert run("release", *words, "--frame", "scales", "--cut", "counted", "-o", counted)[0] == 0
    shown = run("show", counted)[1]
    assert "the sum of squared distances of each of" in shown
    assert "Intervals count the error of these" in " ".join(shown.split())
    assert run("verify", counted)[0] == 0
    assert "intervals allow for" in run("ols", counted, "age ~ income")[1]


def test_a_small_table_whose_columns_no_histogram_would_show(tmp_path):
    """900 rows at pure ε = 0.5: means come first, and every command knows a frame that has no look at the columns."""
    rng, names = np.random.default_rng(5), [*"abcde", "odd name"]
    rows = 5 + rng.uniform(-2, 2, 900)[:, None] + rng.uniform(-1.5, 1.5, (900, 6))
    np.savetxt(tmp_path / "t.csv", rows, delimiter=",", header=",".join(names), comments="")
    declared = "".join(f'[columns."{name}"]\nlower = 0\nupper = 10\n' for name in names)
    (tmp_path / "t.toml").write_text(declared)
    table, made, report = (str(tmp_path / name) for name in ("t.csv", "r.release.json", "r.html"))
    words = [
        "--schema",
        str(tmp_path / "t.toml"),
        "--epsilon",
        "0.5",
        "--neighbours",
        "replace-one",
        "--frame",
        "auto",
    ]
    code, said = run("check", table, *words)
    assert code == 0
    assert (
        "first: at most 5 % of the loss for a look at the norms of rows and 25 % for sums of columns." in said
    )
    assert run("release", table, *words, "-o", made)[0] == 0
    for command in (
        ["verify"],
        ["show"],
        ["show", "--json"],
        ["ols", "a ~ `odd name` + b"],
        ["ridge", "--target", "a"],
        ["pca"],
    ):
        assert run(command[0], made, *command[1:])[0] == 0, command
    assert "25 % into means and 5 % into the radius" in run("show", made)[1]
    assert run("report", made, "-o", report, "--model", "a ~ b")[0] == 0
    assert run("plan", *words[:4], "--rows", "900")[0] == 0
