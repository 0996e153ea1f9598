"""A table whose columns have the names people give them goes the whole way, from its header to a report."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from privcov.cli import main
from privcov.text.aligning import width

NAMES = [
    "größe",
    "Household Income (USD)",
    "income>50K",
    "last, `first`",
    "都道府県の人口",
    '<b>&"x"\' ',
    "n" * 120,
]
HEADER = 'größe,Household Income (USD),income>50K,"last, `first`",都道府県の人口,"<b>&""x""\' ",' + "n" * 120


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = tmp_path_factory.mktemp("names")
    rng = np.random.default_rng(3)
    rows = [",".join(f"{value:.3f}" for value in row) for row in rng.uniform(0, 9, size=(3000, len(NAMES)))]
    (home / "t.csv").write_text("\n".join([HEADER, *rows, ""]), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        assert main(["schema", "init", "t.csv", "-o", "t.toml"]) == 0
        text = (home / "t.toml").read_text(encoding="utf-8")
        (home / "t.toml").write_text(re.sub(r"(?m)^(lower|upper) =(?= )", _bound, text), encoding="utf-8")
        words = ["--epsilon", "9", "--neighbours", "replace-one", "-o", "t.json"]
        assert main(["release", "t.csv", "--schema", "t.toml", *words]) == 0
    return home


def _bound(found):
    return f"{found[1]} = {0 if found[1] == 'lower' else 9}"


@pytest.fixture(autouse=True)
def here(home, monkeypatch):
    monkeypatch.chdir(home)


def said(capsys, *words):
    assert main(list(words)) == 0
    return capsys.readouterr().out


def test_commands_take_a_name_and_print_it(capsys):
    assert said(capsys, "schema", "check", "t.toml").startswith("t.toml: 7 columns")
    formula = "`Household Income (USD)` ~ größe + `last, ``first```+都道府県の人口"
    out = said(capsys, "ols", "t.json", formula)
    assert "`Household Income (USD)` ~ größe + `last, ``first``` + 都道府県の人口" in out
    fit = json.loads(said(capsys, "ols", "t.json", formula, "--json"))
    assert [row["name"] for row in fit["coefficients"]][1:] == ["größe", "last, `first`", "都道府県の人口"]
    features = "größe,`last, ``first```, Household Income (USD)"
    ridge = json.loads(
        said(capsys, "ridge", "t.json", "--target", "income>50K", "--features", features, "--json")
    )
    assert list(ridge["coefficients"]) == ["größe", "last, `first`", "Household Income (USD)"]
    pca = json.loads(said(capsys, "pca", "t.json", "--rank", "1", "--json"))
    assert pca["columns"] == [name.strip() for name in NAMES]
    plan = ["plan", "--schema", "t.toml", "--rows", "3000", "--target"]
    assert "größe" in said(capsys, *plan, "mean(größe)=0.5", "--kind", "pure")
    assert "USD" in said(capsys, *plan, "mean(`Household Income (USD)`)=0.5", "--kind", "pure")
    estimate = ["estimate", "t.csv", "--rho", "5", "--largest-variance", "99", "-o", "e.json", "--force"]
    out = said(capsys, *estimate, "--columns", "größe, `last, ``first```", "--known-mean", "4.5,4.5")
    assert "last, `first`" in out


@pytest.mark.parametrize(
    "words",
    [["show", "t.json"], ["schema", "explain", "t.toml"], ["pca", "t.json", "--uncentred", "--rank", "2"]],
)
def test_tables_line_up_whatever_the_letters_are(capsys, words):
    """Every line of a table under its rule ends where the rule ends: its last column is a right-aligned number."""
    lines = said(capsys, *words).splitlines()
    at = max(place for place, line in enumerate(lines) if line.startswith("──"))
    body = lines[at + 1 : at + 1 + len(NAMES)]
    assert any("都道府県の人口" in line for line in body)
    assert any("n…" in line for line in body)
    assert {width(line) for line in body} == {width(lines[at])}
    assert max(map(width, body)) < 160


def test_the_ols_table_lines_up_too(capsys):
    lines = said(capsys, "ols", "t.json", "größe ~ .").splitlines()
    at = next(place for place, line in enumerate(lines) if "Estimate" in line)
    ends = {width(line) for line in lines[at : at + 1 + len(NAMES)]}
    assert len(ends) == 1


def test_a_report_escapes_every_name(home, capsys):
    said(capsys, "report", "t.json", "-o", "r.html", "--force", "--pca", "1", "--model", "größe ~ .")
    page = (home / "r.html").read_text(encoding="utf-8")
    assert '<b>&"x"' not in page
    assert "&lt;b&gt;&amp;" in page
    assert "都道府県の人口" in page


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["ridge", "t.json", "--target", "größe", "--features", "`a"], "E161"),
        (["estimate", "t.csv", "--columns", "größe,,", "--rho", "1", "--largest-variance", "9"], "E161"),
        (["ols", "t.json", "größe ~ Household Income (USD)"], "E233"),
        (["ols", "t.json", "größe ~ `Household Income"], "E230"),
        (["plan", "--schema", "t.toml", "--rows", "9", "--target", "mean(`größe)=1"], "E263"),
    ],
)
def test_a_name_that_is_typed_wrongly_gets_one_line(capsys, words, code):
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert code in err


@pytest.mark.parametrize("formula", ["größe größe ~ income", "größe ~ Household Income"])
def test_a_formula_with_a_bare_name_of_two_words_is_told_of_backticks(capsys, formula):
    assert main(["ols", "t.json", formula]) == 2
    assert "names with spaces stand between backticks: `Age (years)`." in capsys.readouterr().err
