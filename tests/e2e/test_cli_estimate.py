"""``privcov estimate``, and ``privcov release --mechanism adaptive``, as a person meets them."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import privcov as pc
from privcov.cli import main
from privcov.unbounded import load, mahalanobis_error

TRUTH = np.array([[9.0, 3.0], [3.0, 5.0]])
PUBLIC = ("--columns", "height,weight", "--rho", "0.5", "--largest-variance", "10000")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A working directory with people.csv: 8 000 heights and weights, and a name for each."""
    rows = np.random.default_rng(1).multivariate_normal([170, 70], TRUTH, size=8000)
    frame = pd.DataFrame(rows, columns=["height", "weight"])
    frame["name"] = "x"
    frame.to_csv(tmp_path / "people.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capsys, *words):
    code = main(list(words))
    out, err = capsys.readouterr()
    return code, out, err


def estimate(capsys, *words):
    return run(capsys, "estimate", "people.csv", *PUBLIC, *words)


def test_estimate_writes_a_file_and_says_what_is_in_it(home, capsys):
    code, out, err = estimate(capsys, "--mean-radius", "1000", "-o", "people.gaussian.json")
    assert code == 0
    assert err == "wrote people.gaussian.json\n"
    for words in (
        "std. deviation",
        "height",
        "Correlation",
        "rho = 0.5",
        "replace-one",
        "mean 5",
        "8000 rows",
    ):
        assert words in out
    made = load("people.gaussian.json")
    assert mahalanobis_error(made.covariance, TRUTH) < 1
    assert made.mean == pytest.approx([170, 70], abs=5)
    assert run(capsys, "verify", "people.gaussian.json")[0] == 0


def test_estimate_speaks_json_and_without_an_output_writes_the_file_to_stdout(home, capsys):
    code, out, _ = estimate(capsys, "--known-mean", "170,70", "-o", "a.json", "--json")
    assert code == 0
    assert json.loads(out) == json.loads((home / "a.json").read_text())
    code, out, err = estimate(capsys, "--known-mean", "170,70", "--as-published")
    assert (code, err) == (0, "")
    assert json.loads(out)["certificate"]["options"]["constants"] == "published"


def test_every_method_can_be_asked_for(home, capsys):
    for method in ("coinpress", "truncated", "preconditioned"):
        code, out, _ = estimate(capsys, "--method", method, "--known-mean", "170,70")
        assert code == 0
        assert json.loads(out)["certificate"]["mechanism"] == method


def test_an_output_that_is_there_is_kept(home, capsys):
    (home / "a.json").write_text("mine")
    code, _, err = estimate(capsys, "-o", "a.json")
    assert code == 2
    assert "a.json" in err
    assert (home / "a.json").read_text() == "mine"
    assert estimate(capsys, "-o", "a.json", "--force")[0] == 0


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--rho", "0"), "E201"),
        (("--largest-variance", "-1"), "E240"),
        (("--rounds", "0"), "E242"),
        (("--tail", "2"), "E241"),
        (("--method", "magic"), "E248"),
        (("--known-mean", "170"), "E247"),
        (("--known-mean", "170,tall"), "E247"),
        (("--known-mean", "170,70", "--mean-radius", "5"), "E249"),
        (("--mean-radius", "none"), "E240"),
        (("--as-published", "--method", "truncated"), "E248"),
        (("--columns", "height,age"), "E1"),
    ],
)
def test_bad_input_is_one_line_with_a_code(home, capsys, words, code):
    done, out, err = estimate(capsys, *words)
    assert done == 2
    assert out == ""
    assert err.startswith(f"privcov: {code}")
    assert err.count("\n") == 1


def test_what_is_required_is_asked_for(home, capsys):
    done, _, err = run(capsys, "estimate", "people.csv", "--columns", "height")
    assert done == 2
    assert "--rho" in err


def test_an_estimate_pays_from_a_ledger_and_is_refused_when_it_is_empty(home, capsys):
    assert run(capsys, "ledger", "init", "b.ledger", "--rho", "0.7", "--neighbours", "replace-one")[0] == 0
    assert estimate(capsys, "--ledger", "b.ledger", "-o", "a.json")[0] == 0
    code, out, _ = estimate(capsys, "--ledger", "b.ledger", "-o", "b.json")
    assert code == 3
    assert out == ""
    assert not (home / "b.json").exists()
    assert estimate(capsys, "--request-id", "once")[0] == 2


def test_a_variance_bound_below_the_data_gives_a_poor_estimate_and_no_error(home, capsys):
    code, _, _ = estimate(capsys, "--largest-variance", "0.001", "--known-mean", "170,70", "-o", "a.json")
    assert code == 0
    assert mahalanobis_error(load("a.json").covariance, TRUTH) > 0.5


SCHEMA = """
intercept = false
[columns.height]
lower = 100
upper = 250
[columns.weight]
lower = 0
upper = 400
"""


@pytest.mark.parametrize("loss", [("--rho", "0.5"), ("--epsilon", "1", "--delta", "1e-6")])
def test_adaptive_can_be_released_verified_and_paid_for(home, capsys, loss):
    (home / "people.toml").write_text(SCHEMA + "\n")
    pd.read_csv("people.csv")[["height", "weight"]].to_csv("two.csv", index=False)
    assert run(capsys, "ledger", "init", "a.ledger", *loss, "--neighbours", "replace-one")[0] == 0
    words = ("release", "two.csv", "--schema", "people.toml", "--mechanism", "adaptive", *loss)
    code, out, err = run(capsys, *words, "--ledger", "a.ledger", "-o", "a.json")
    assert code == 0, err
    assert "adaptive" in out
    made = pc.load("a.json")
    assert made.certificate.options["row_norm"] == "sparse-vector"
    assert run(capsys, "verify", "a.json")[0] == 0
    assert run(capsys, *words, "--ledger", "a.ledger", "-o", "b.json")[0] == 3


def test_adaptive_is_listed_with_the_others(capsys):
    code, out, _ = run(capsys, "mechanisms", "--json")
    assert code == 0
    listed = {about["name"]: about for about in json.loads(out)["mechanisms"]}
    assert listed["adaptive"]["guarantee"] == ["zcdp", "approximate"]
    assert listed["adaptive"]["proof"] == "docs/proofs/adaptive.md"


@pytest.mark.parametrize(
    "words", [["ols", "made.json", "a ~ b"], ["pca", "made.json"], ["ridge", "made.json", "--target", "a"]]
)
def test_models_say_which_commands_read_an_estimate(home, capsys, words):
    assert estimate(capsys, "-o", "made.json")[0] == 0
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "")
    assert err.startswith("privcov: E620 ")
    assert "privcov show" in err
    assert "privcov release --frame auto" in err


def test_show_reads_an_estimate_and_says_what_its_margins_of_error_assume(home, capsys):
    assert estimate(capsys, "-o", "made.json")[0] == 0
    code, out, err = run(capsys, "show", "made.json")
    assert (code, err) == (0, "")
    assert out.index("± is rehearsed") < out.index("std. deviation") < out.index("in brackets what is within")
    assert "not Gaussian" in out
    assert "expected_error" in out
    assert main(["report", "made.json", "--output", "made.html"]) == 0
    assert "± is rehearsed" in (home / "made.html").read_text()
    code, out, _ = run(capsys, "show", "made.json", "--json")
    assert json.loads(out)["format"] == "privcov/gaussian-estimate/1"
