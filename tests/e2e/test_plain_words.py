"""What people read first is said in plain words: the sentences of show, verify, the ledger and the mechanisms."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import privcov as pc
from privcov.cli import main

ROOT = Path(__file__).parents[2]
RETIRED = (  # each was replaced by a sentence with a noun in it
    "follows from itself",
    "asks epsilon",
    "Expected error before repair",
    "costs nothing more",
    "public law",
    "uses the exact Gaussian profile and a free trace",
    "small rooms",
    "is not whole",
    "the least noise of a known law",
    "whose row a row is",
    "Nobody said what",
    "whoever else there is",
    "is told from zero from",
    "Whoever held a guess",
)


@pytest.fixture
def said(tmp_path, monkeypatch, capsys):
    """What a command says on stdout."""
    monkeypatch.chdir(tmp_path)

    def said(*words):
        capsys.readouterr()
        assert main(list(words)) == 0
        return capsys.readouterr().out

    return said


def saved(path, schema, loss, *, rows=4_000, mechanism="auto"):
    """A release of people who are all 40 and earn 60, at a path."""
    table = {"age": np.full(rows, 40.0), "sex": np.array(["F"] * rows), "income": np.full(rows, 60.0)}
    made = pc.release(pd.DataFrame(table), schema=schema, loss=loss, mechanism=mechanism)
    made.save(path)
    return made


def test_show_tells_what_stands_clear_of_the_noise_and_keeps_the_exact_figures(said, schema):
    made = saved("r.json", schema, pc.PureDP(epsilon=1, neighbours="replace-one"))
    lines = said("show", "r.json").splitlines()
    # Everybody is the same: the matrix is large, and nothing goes with anything.
    assert made.certificate.law.rms_frobenius < 0.03 * np.linalg.norm(made.second_moment(scaled=True))
    assert "The noise is LARGE: none of 5 correlations can be told from zero." in lines
    assert json.loads(said("show", "r.json", "--json"))["expected_error"] == pytest.approx(
        made.certificate.law.rms_frobenius
    )


def test_show_warns_where_most_of_what_is_seen_is_noise(said, schema):
    saved("r.json", schema, pc.PureDP(epsilon="0.01", neighbours="replace-one"), rows=20)
    assert "so that they are noise." in said("show", "r.json")


@pytest.mark.parametrize(
    ("loss", "stated"),
    [
        (pc.PureDP(epsilon=1, neighbours="replace-one"), "ε"),
        (pc.ApproxDP(epsilon=1, delta="1e-6", neighbours="replace-one"), "ε and δ"),
        (pc.ZCDP(rho="0.1", neighbours="replace-one"), "ρ"),
    ],
    ids=["pure", "approximate", "zcdp"],
)
def test_verify_says_that_the_stated_noise_gives_the_stated_loss(said, schema, loss, stated):
    saved("r.json", schema, loss, mechanism="auto" if stated == "ε" else "gaussian")
    told = " ".join(said("verify", "r.json").split())
    assert f"The certificate is consistent: the stated noise gives the stated {stated} (" in told


def test_a_refusal_tells_the_cost_and_the_rest(tmp_path, schema):
    ledger = pc.Ledger.init(tmp_path / "a.ledger", pc.PureDP(epsilon=3, neighbours="replace-one"))
    rows = np.zeros((3, 1))
    one = pc.Schema.from_dict({"columns": {"x": {"lower": 0, "upper": 1}}})
    pc.release(rows, schema=one, loss=pc.PureDP(epsilon=1, neighbours="replace-one"), ledger=ledger)
    with pytest.raises(pc.PrivcovError) as refusal:
        pc.release(rows, schema=one, loss=pc.PureDP(epsilon="2.5", neighbours="replace-one"), ledger=ledger)
    assert refusal.value.sentence == "This release costs ε = 2.5; only 2 of 3 is left."


def test_the_gaussian_mechanism_is_described_without_terms_of_art(said):
    readme = " ".join((ROOT / "README.md").read_text().split())
    assert "uses the tight Gaussian calibration, with less noise on the trace at no cost" in readme
    assert "tight calibration; under replace-one less noise on the trace at no cost" in said("mechanisms")


def test_retired_phrases_do_not_come_back():
    sources = [path for path in (ROOT / "src/privcov").rglob("*") if path.suffix in (".py", ".js", ".html")]
    pages = [ROOT / "README.md", *(ROOT / "docs/learn").glob("*.md"), *(ROOT / "docs/do").glob("*.md")]
    assert len(sources) > 100
    found = [
        (path.name, phrase)
        for path in [*sources, *pages]
        for phrase in RETIRED
        if phrase in " ".join(path.read_text(encoding="utf-8").split())
    ]
    assert found == []
