"""``privcov ols`` and ``privcov bench inference`` as a person meets them."""

from __future__ import annotations

import json

import pytest

import privcov as pc
from privcov.cli import main
from privcov.noise.randomness import rehearsal
from privcov_lab.bench import honesty, inference


@pytest.fixture
def home(made, tmp_path, monkeypatch):
    """A working directory with people.release.json."""
    monkeypatch.chdir(tmp_path)
    made.save("people.release.json")
    return tmp_path


def run(capsys, *words):
    """Exit code, stdout and stderr of one command."""
    code = main(list(words))
    out, err = capsys.readouterr()
    return code, out, err


def ols(capsys, *words):
    return run(capsys, "ols", "people.release.json", *words)


def test_ols_prints_the_table_people_know(home, capsys):
    code, out, err = ols(capsys, "income ~ age + sex")
    assert (code, err) == (0, "")
    for words in (
        "Estimate",
        "Std. Error",
        "Pr(>|t|)",
        "95 % interval",
        "sex[M]",
        "privacy",
        "Promise: pure",
    ):
        assert words in out
    assert "NAIVE" not in out
    assert "REHEARSAL" not in out


def test_ols_naive_is_labelled(home, capsys):
    code, out, _ = ols(capsys, "income ~ age", "--naive")
    assert code == 0
    assert out.startswith("NAIVE TABLE")


@pytest.mark.parametrize("method", ["auto", "wald", "score", "bootstrap"])
def test_ols_takes_every_method_and_speaks_json(home, capsys, method):
    code, out, err = ols(capsys, "income ~ age", "--method", method, "--level", "0.9", "--json")
    assert (code, err) == (0, "")
    values = json.loads(out)
    assert values["level"] == 0.9
    assert values["method"] == method or method == "auto"
    assert [row["name"] for row in values["coefficients"]] == ["(Intercept)", "age"]
    fit = pc.ols(pc.load("people.release.json"), "income ~ age", method=method)
    assert values["coefficients"][1]["estimate"] == pytest.approx(fit.params["age"])


def test_ols_prints_latex(home, capsys):
    code, out, _ = ols(capsys, "income ~ age", "--latex")
    assert code == 0
    assert out.startswith(r"\begin{tabular}")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["income"], "E230"),
        (["income ~ height"], "E231"),
        (["income ~ age:sex"], "E232"),
        (["income ~ log(age)"], "E233"),
        (["income ~ income"], "E234"),
        (["income ~ age + age"], "E235"),
        (["income ~ age", "--level", "2"], "E239"),
        (["income ~ age", "--naive", "--method", "wald"], "E239"),
        (["income ~ age", "--method", "magic"], "E200"),
        (["income ~ age", "--json", "--latex"], "E200"),
        ([], "E200"),
    ],
)
def test_bad_words_give_one_clear_line(home, capsys, words, code):
    status, out, err = ols(capsys, *words)
    assert (status, out) == (2, "")
    assert err.startswith(f"privcov: {code} ")
    assert err.count("\n") == 1


def test_a_mechanism_without_a_law_gives_estimates_and_names_the_release_to_ask_for(
    people, schema, capsys, tmp_path
):
    path = tmp_path / "spectral.release.json"
    loss = pc.PureDP(epsilon=1, neighbours="replace-one")
    pc.release(people, schema=schema, loss=loss, mechanism="eigenvectors").save(path)
    code, out, _ = run(capsys, "ols", str(path), "income ~ age")
    assert code == 0
    assert "symmetric-wishart or gaussian" in out
    assert "Std. Error" not in out
    assert "refused" in json.loads(run(capsys, "ols", str(path), "income ~ age", "--json")[1])


def test_ols_takes_errors_of_any_variance(home, capsys):
    equal, wide = (
        json.loads(ols(capsys, "income ~ age", "--errors", errors, "--json")[1])
        for errors in ("equal", "conservative")
    )
    assert wide["errors"] == "conservative"
    assert wide["coefficients"][1]["sampling_std_error"] == pytest.approx(
        equal["coefficients"][1]["sampling_std_error"] * equal["coefficients"][1]["widening"]
    )
    code, _, err = ols(capsys, "income ~ age", "--errors", "conservative", "--method", "bootstrap")
    assert code == 2
    assert "E287" in err


def test_bench_honesty_judges_its_cells(capsys, monkeypatch):
    true_run = honesty.run
    monkeypatch.setattr(honesty, "run", lambda **words: true_run(**{**words, "tables": 20}))
    code, out, _ = run(capsys, "bench", "honesty", "--quick", "--design", "missing, midpoint")
    assert code == 0
    for words in ("population", "table", "width", "it says so", "0 of 1 cells are not as said"):
        assert words in out
    code, _, err = run(capsys, "bench", "honesty", "--design", "nothing")
    assert code == 2
    assert "there is no design 'nothing'" in err


def test_bench_inference_prints_coverage_beside_the_naive_table(capsys, monkeypatch):
    true_run = inference.run
    monkeypatch.setattr(
        inference, "run", lambda **words: true_run(**{**words, "tables": 4, "rows": (500, 2000)})
    )
    code, out, _ = run(capsys, "bench", "inference", "--quick")
    assert code == 0
    for words in ("coverage", "naive", "symmetric-wishart", "gaussian", "500", "2,000"):
        assert words in out
    drowned = run(capsys, "bench", "inference", "--quick", "--spread", "0.1", "--json")[1]
    assert json.loads(drowned)["results"][0]["median_width"] is None


def test_bench_inference_prints_the_sizes_of_tests(capsys, monkeypatch):
    true_run = inference.tails
    monkeypatch.setattr(
        inference, "tails", lambda **words: true_run(**{**words, "tables": 2, "rows": (2000,)})
    )
    code, out, _ = run(capsys, "bench", "inference", "--tails")
    assert code == 0
    for words in ("called significant", "at 0.1 %", "F at 5 %", *inference.TAILS):
        assert words in out
    name, loss = next(iter(inference.TAILS.items()))
    found = inference._sizes(name, loss, 2000, 40, 1.0, rehearsal(1))
    assert found["sizes"] == sorted(found["sizes"], reverse=True)
    assert 0 < found["sizes"][0] < 0.2  # of 120 tests at 5 %, none or 24 reject but for 2e-3 and 1e-8
