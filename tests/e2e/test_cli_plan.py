"""``privcov plan`` as a steward meets it: bad questions get an answer; its page is run with all the others."""

from __future__ import annotations

import json

import pytest

from privcov.cli import main

SCHEMA = """
[columns.age]
lower = 0
upper = 100
[columns.sex]
levels = ["F", "M"]
[columns.educ]
lower = 0
upper = 20
[columns.income]
lower = 0
upper = 150
"""
GUESSES = """
[planning.columns.age]
mean = 45
std = 18
[planning.columns.income]
mean = 60
std = 25
[planning.columns.educ]
mean = 12
std = 3
[planning.columns.sex]
shares = [0.5, 0.5]
[planning.correlations]
"age, income" = 0.2
"educ, income" = 0.4
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    (tmp_path / "people.toml").write_text(SCHEMA + GUESSES)
    (tmp_path / "bare.toml").write_text(SCHEMA)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ask(capsys, *words):
    code = main(["plan", *words])
    told = capsys.readouterr()
    return code, told.out, told.err


def test_the_json_of_a_plan_and_of_an_answer_parse(home, capsys):
    common = ["--schema", "people.toml", "--rows", "4,000", "--mechanism", "laplace", "--json"]
    code, out, _ = ask(capsys, *common, "--epsilon", "1", "--releases", "3")
    assert code == 0
    made = json.loads(out)
    assert made["auto"]["mechanism"] == "symmetric-wishart"
    assert made["split"]["joint_saves"] == pytest.approx(3)
    code, out, _ = ask(capsys, *common, "--target", "frobenius=0.1")
    answer = json.loads(out)
    assert code == 0
    assert answer["reached"]
    assert answer["mechanism"] == "laplace"
    assert answer["error"] <= 0.1


def test_a_target_beside_a_loss_is_answered_with_yes_or_no(home, capsys):
    common = ["--schema", "people.toml", "--rows", "4000", "--epsilon", "1", "--neighbours", "add-remove"]
    assert "is reached" in ask(capsys, *common, "--target", "frobenius=1")[1]
    assert "NOT reached" in ask(capsys, *common, "--target", "frobenius=0.0001")[1]


def test_a_plot_is_drawn_and_not_over_another(home, capsys):
    pytest.importorskip("matplotlib", reason="the extra report is not installed")
    common = ["--schema", "people.toml", "--rows", "4000", "--rho", "0.1", "--mechanism", "gaussian"]
    assert ask(capsys, *common, "--plot", "plan.svg")[0] == 0
    assert b"<svg" in (home / "plan.svg").read_bytes()
    code, _, err = ask(capsys, *common, "--plot", "plan.svg")
    assert (code, "E401" in err) == (2, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--rows", "0", "--epsilon", "1"], "E260 rows must be a whole number from 2"),
        (["--rows", "1", "--epsilon", "1"], "E260"),
        (["--rows", "many", "--epsilon", "1"], "E200 --rows must be a whole number"),
        (["--rows", "?", "--epsilon", "1"], "E200 --rows ? and --kind need a --target"),
        (["--rows", "10"], "E201"),
        (["--rows", "10", "--epsilon", "1", "--rho", "1"], "E204"),
        (["--rows", "10", "--epsilon", "1", "--for", "pca:99"], "E261"),
        (["--rows", "10", "--epsilon", "1", "--for", "regression:income ~ nobody"], "E231"),
        (["--rows", "10", "--epsilon", "1", "--mechanism", "sn"], "E208"),
        (["--rows", "10", "--epsilon", "1", "--mechanism", "magic"], "E209"),
        (["--rows", "10", "--epsilon", "1", "--releases", "0"], "E265"),
        (["--rows", "10", "--target", "frobenius=0.1", "--kind", "zcdp", "--delta", "1e-6"], "E204"),
        (["--rows", "10", "--target", "frobenius=0.1", "--kind", "approximate"], "E204"),
        (["--rows", "10", "--target", "frobenius=0.1", "--kind", "pure", "--epsilon", "1"], "E200"),
        (
            ["--rows", "10", "--target", "frobenius=1e-9"],
            "E264 frobenius=1e-9 cannot be reached with 10 rows",
        ),
        (["--rows", "10", "--target", "mean(height)=1"], "E263 there is no column 'height'"),
        (["--rows", "10", "--target", "se(income ~ age: sex)=1"], "E263"),
        (["--rows", "10", "--epsilon", "1", "--target", "mean(age)=1", "--plot", "x.svg"], "E200"),
        (["--rows", "10", "--epsilon", "1", "--plot", "x.gif", "--mechanism", "laplace"], "E401"),
        (["--rows", "10", "--epsilon", "1", "--surrogate", "nowhere.csv"], "E119"),
    ],
)
def test_a_bad_question_gets_a_code_and_a_sentence(home, capsys, words, said):
    code, out, err = ask(capsys, "--schema", "people.toml", *words)
    assert code == 2, out
    assert said in err


def test_a_model_without_public_moments_is_refused_with_the_remedy(home, capsys):
    code, _, err = ask(capsys, "--schema", "bare.toml", "--rows", "99", "--target", "se(income ~ age: age)=1")
    assert code == 2
    assert "E263" in err
    assert "[planning.columns.age]" in err


@pytest.mark.parametrize("more", [[], ["--json"]], ids=["text", "json"])
def test_bounds_at_the_end_of_what_may_be_declared_are_planned(tmp_path, capsys, more):
    """The error of a variance is then beyond every double: it is hidden, and null in JSON."""
    (tmp_path / "far.toml").write_text("[columns.age]\nlower = 0\nupper = 1e308\n")
    loss = ["--epsilon", "1", "--neighbours", "replace-one", "--mechanism", "laplace"]
    assert main(["plan", "--schema", str(tmp_path / "far.toml"), "--rows", "50", *loss, *more]) == 0
    assert ("null" if more else "hidden") in capsys.readouterr().out
