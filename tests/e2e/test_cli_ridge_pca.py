"""``privcov ridge``, ``privcov pca`` and ``privcov bench ridge`` as a person meets them."""

from __future__ import annotations

import json

import pytest

import privcov as pc
from privcov.cli import main
from privcov_lab.bench import ridge as bench


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


@pytest.mark.parametrize("penalty", ["auto", "25"])
def test_ridge_prints_coefficients_and_the_bound_of_lemma_1(home, capsys, penalty):
    code, out, err = run(capsys, "ridge", "people.release.json", "--target", "income", "--penalty", penalty)
    assert (code, err) == (0, "")
    for words in (
        "ridge regression of income",
        "(Intercept)",
        "age",
        "sex[F]",
        "Penalty",
        "Lemma 1",
        "Promise: pure",
    ):
        assert words in out
    assert ("chosen from the release" in out) == (penalty == "auto")
    assert "REHEARSAL" not in out
    assert max(map(len, out.splitlines())) <= 120


def test_the_target_of_a_ridge_may_stand_between_backticks(home, capsys):
    plain, quoted = (
        run(capsys, "ridge", "people.release.json", "--target", target) for target in ("income", "`income`")
    )
    assert quoted[0] == 0
    assert quoted == plain


def test_ridge_speaks_json(home, capsys):
    words = [
        "ridge",
        "people.release.json",
        "--target",
        "sex[F]",
        "--features",
        "age, income",
        "--penalty",
        "2",
        "--json",
    ]
    code, out, err = run(capsys, *words)
    assert (code, err) == (0, "")
    values = json.loads(out)
    fit = pc.ridge(pc.load("people.release.json"), "sex[F]", features=["age", "income"], penalty=2)
    assert values["coefficients"] == fit.coefficients
    assert values["penalty"] == 2
    assert values["error_bound"] is None or values["error_bound"] > 0


def test_ridge_in_original_units_says_so(home, capsys):
    _, out, _ = run(
        capsys, "ridge", "people.release.json", "--target", "income", "--penalty", "9", "--original"
    )
    assert "coefficients of original columns" in out


def test_pca_prints_variances_with_intervals_and_loadings(home, capsys):
    code, out, err = run(capsys, "pca", "people.release.json", "--rank", "2")
    assert (code, err) == (0, "")
    for words in (
        "2 components",
        "this table",
        "population",
        "PC1",
        "loading",
        "±",
        "sex[M]",
        "Noise edge",
        "95 % intervals",
    ):
        assert words in out
    assert max(map(len, out.splitlines())) <= 120
    values = json.loads(run(capsys, "pca", "people.release.json", "--rank", "2", "--json")[1])
    assert (
        values["explained_variance"]
        == pc.pca(pc.load("people.release.json"), rank=2).explained_variance.tolist()
    )
    assert len(values["components"]) == len(values["intervals"]) == 2


def test_pca_on_the_scale_of_correlations(home, capsys):
    code, out, _ = run(capsys, "pca", "people.release.json", "--correlation", "--rank", "2")
    assert code == 0
    assert "correlation units" in out
    code, _, err = run(capsys, "pca", "people.release.json", "--correlation", "--original")
    assert code == 2
    assert "E298" in err


def test_pca_chooses_its_rank_and_takes_other_units(home, capsys):
    code, out, _ = run(capsys, "pca", "people.release.json", "--uncentred", "--original", "--level", "0.9")
    assert code == 0
    assert "original units" in out
    drowned = json.loads(run(capsys, "pca", "people.release.json", "--json")[1])
    assert drowned["rank_chosen"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["ridge"], "E200"),
        (["ridge", "people.release.json"], "E200"),
        (["ridge", "people.release.json", "--target", "height"], "E250"),
        (["ridge", "people.release.json", "--target", "income", "--features", "age,income"], "E251"),
        (["ridge", "people.release.json", "--target", "income", "--penalty", "-1"], "E252"),
        (["ridge", "people.release.json", "--target", "income", "--penalty", "nan"], "E252"),
        (["ridge", "people.release.json", "--target", "income", "--penalty", "much"], "E252"),
        (["ridge", "people.release.json", "--target", "income", "--level", "2"], "E258"),
        (["pca", "people.release.json", "--rank", "0"], "E253"),
        (["pca", "people.release.json", "--rank", "9"], "E253"),
        (["pca", "people.release.json", "--rank", "two"], "E200"),
        (["pca", "people.release.json", "--level", "2"], "E258"),
    ],
)
def test_bad_words_give_one_clear_line(home, capsys, words, code):
    status, out, err = run(capsys, *words)
    assert (status, out) == (2, "")
    assert err.startswith(f"privcov: {code} ")
    assert err.count("\n") == 1


def test_a_mechanism_without_a_law_gives_points_and_names_the_release_to_ask_for(
    people, schema, capsys, tmp_path
):
    path = str(tmp_path / "spectral.release.json")
    loss = pc.PureDP(epsilon=1, neighbours="replace-one")
    pc.release(people, schema=schema, loss=loss, mechanism="eigenvectors").save(path)
    for words in (["ridge", path, "--target", "income", "--penalty", "3"], ["pca", path]):
        code, out, _ = run(capsys, *words)
        assert code == 0
        assert "Ask for a release by symmetric-wishart or gaussian." in " ".join(out.split())
    code, _, err = run(capsys, "ridge", path, "--target", "income")
    assert code == 2
    assert "E256" in err


def test_a_rehearsal_cannot_be_printed_without_its_label(rehearsed):
    fit, components = pc.ridge(rehearsed, "income", penalty=5.0), pc.pca(rehearsed, rank=1)
    assert fit.summary().startswith("REHEARSAL")
    assert str(components).startswith("REHEARSAL")


@pytest.mark.parametrize("name", ["ridge", "pca"])
def test_help_has_an_example(capsys, name):
    code, out, _ = run(capsys, name, "--help")
    assert code == 0
    assert f"Example: privcov {name} people.release.json" in out


def test_bench_ridge_prints_both_fits(papers_data, capsys, monkeypatch):
    true_run = bench.run
    monkeypatch.setattr(
        bench, "run", lambda where, **words: true_run(where, epsilons=(1.0,), datasets=("wine",), **words)
    )
    code, out, _ = run(capsys, "bench", "ridge", "--data", str(papers_data), "--quick")
    assert code == 0
    for words in ("wine", "private", "non-private", "excess"):
        assert words in out
    values = json.loads(run(capsys, "bench", "ridge", "--data", str(papers_data), "--quick", "--json")[1])
    assert values["results"][0]["targets"] == 13


def test_pca_takes_rows_of_any_law_within_the_bounds(home, capsys):
    asked = ["pca", "people.release.json", "--rank", "1", "--json"]
    plain, wide = ([*asked, "--errors", word] for word in ("equal", "conservative"))
    assert main(plain) == 0
    low, high = json.loads(capsys.readouterr().out)["population_intervals"][0]
    assert main(wide) == 0
    found = json.loads(capsys.readouterr().out)
    least, most = found["population_intervals"][0]
    assert found["errors"] == "conservative"
    assert least <= low < high <= most
    assert most - least > high - low
    assert main([*asked, "--errors", "none"]) == 2
