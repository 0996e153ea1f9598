"""One verdict, per pair and centred: what stands clear of the noise, what does not, and the same words everywhere."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import privcov as pc
from privcov.cli import main
from privcov.noise.randomness import rehearsal
from privcov.report.notebook import shown
from privcov.report.page import html
from privcov.report.standing import Standing, grade, standing
from privcov.report.summary import sentences
from privcov.report.view import View

PURE = pc.PureDP(epsilon=1, neighbours="replace-one")


def schema(count):
    return pc.Schema.from_dict({"columns": {f"c{i}": {"lower": -1, "upper": 1} for i in range(count)}})


def normal(*, n, d, spread, correlation, middle, seed=0, cut=1):
    rng = np.random.default_rng(seed)
    common, own = rng.normal(size=(n, 1)), rng.normal(size=(n, d))
    return np.clip(
        middle + spread * (np.sqrt(correlation) * common + np.sqrt(1 - correlation) * own), -cut, cut
    )


def uncorrelated(times):
    """Seven columns of two values each, off the middle, with covariances that are exactly zero."""
    signs = np.array([[(-1) ** bin(i & j).count("1") for j in range(1, 8)] for i in range(64)])
    return np.tile(0.3 + 0.3 * signs, (times, 1))


@pytest.fixture(scope="module")
def drowned():
    """Narrow columns far off the middle: the noise is 5 % of the matrix, which is mostly means, and larger than any
    correlation. With fresh noise one release in 20 may have a pair that stands clear."""
    rows = normal(n=20_000, d=14, spread=0.15, correlation=0.1, middle=0.5)
    return pc.release(rows, schema=schema(14), loss=pc.PureDP(epsilon="0.3", neighbours="replace-one"))


def test_a_large_mean_does_not_make_correlations_of_noise_look_useful(drowned):
    moment = drowned.second_moment(scaled=True)
    assert drowned.certificate.law.rms_frobenius < 0.1 * np.linalg.norm(
        moment
    )  # by its norm the noise is small
    found = standing(drowned)
    assert found.pairs == 91
    assert found.clear <= 3
    assert found.verdict == ("marginal" if found.clear else "worse than publishing zeros")
    assert found.half > 0.3


def test_every_reader_is_told_the_same(drowned, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    drowned.save("r.release.json")
    found = standing(drowned)
    first = found.sentences[0]
    assert main(["show", "r.release.json"]) == 0
    said = capsys.readouterr().out
    assert first in said
    assert "In brackets: cannot be told from zero." in said
    assert main(["show", "r.release.json", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)["correlations"]
    assert values["verdict"] == found.verdict != "useful"
    assert values["clear"] == found.clear
    for page in (html(drowned), shown(drowned)):
        assert first in page
        assert ("No pair stands clear of the noise." in page) == (found.clear == 0)
        assert ("strongest pair is" in page) == (found.clear > 0)


def test_a_plan_does_not_call_useful_what_ends_in_noise(drowned):
    plan = pc.plan(
        schema=drowned.schema, rows=20_000, loss=drowned.certificate.loss, mechanisms=["symmetric-wishart"]
    )
    assert plan.verdict(plan.choice) != "useful"
    assert f"{plan.choice.mechanism.name} is {plan.outlook()}"[:40] in re.sub(r"\s+", " ", str(plan))


@pytest.mark.parametrize("rows", [300, 2_000, 3_000, 8_000, 20_000, 200_000])
def test_a_plan_says_what_a_release_will_be_called_where_columns_fill_their_bounds(rows):
    """Columns evenly over their bounds, correlated by 0.3, in noise from all there is to nothing: the rule of releases.

    Where a plan that expects narrower columns is more cautious, its words say so. 45 pairs are many enough for the
    middle one to vary little from draw to draw.
    """
    loss = pc.PureDP(epsilon=1, neighbours="replace-one")
    even = 2 * norm.cdf(normal(n=rows, d=10, spread=1, correlation=0.3, middle=0, cut=9)) - 1
    made = pc.release(even, schema=schema(10), loss=loss, randomness=rehearsal(5))
    plan = pc.plan(schema=schema(10), rows=rows, loss=loss, mechanisms=[made.certificate.mechanism])
    outlook, found = plan.outlook(), standing(made).verdict
    assert outlook.best == found
    order = ["useful", "marginal", "worse than publishing zeros"]
    assert order.index(outlook.best) <= order.index(outlook.verdict)
    told = f"If columns fill their bounds, the release would be {found}."
    assert (told in " ".join(str(plan).split())) == (outlook.verdict != found)


@pytest.mark.long
def test_no_pair_that_is_zero_stands_clear_but_for_the_odds():
    """60 releases of 21 pairs of exactly uncorrelated columns, noise fixed by seeds. If one in 20 releases had a false
    alarm, nine of 60 would have one with odds of 1 in 500; a threshold of two standard deviations has 38 or so."""
    rows = uncorrelated(30)
    alarms = [
        standing(pc.release(rows, schema=schema(7), loss=PURE, randomness=rehearsal(seed))).clear > 0
        for seed in range(60)
    ]
    assert sum(alarms) < 9


def test_strong_correlations_stand_clear_and_nothing_else_is_listed():
    rows = normal(n=4_000, d=3, spread=0.4, correlation=0.6, middle=0.1)
    rows[:, 2] = np.random.default_rng(1).permutation(rows[:, 2])
    made = pc.release(rows, schema=schema(3), loss=PURE, randomness=rehearsal(1))
    found = standing(made)
    assert (found.clear, found.pairs) == (1, 3)
    page = html(made)
    listed = page[page.index("Pairs that stand clear") - 3000 : page.index("Pairs that stand clear")]
    assert "c0 × c1" in listed
    assert "c0 × c2" not in listed


@pytest.mark.parametrize(
    ("spread", "middle", "epsilon"), [(0.5, 0.0, "1"), (0.15, 0.5, "3"), (0.3, -0.4, "1")]
)
def test_the_errors_that_are_stated_are_those_before_repair(spread, middle, epsilon):
    """12 releases of 91 pairs, noise fixed by seeds: the quantiles of 1,092 errors, which come 14 at a time from a
    column, are within a fifth of what is stated."""
    rows = normal(n=20_000, d=14, spread=spread, correlation=0.2, middle=middle)
    true = np.corrcoef(rows, rowvar=False)
    errors, stated = [], []
    loss = pc.PureDP(epsilon=epsilon, neighbours="replace-one")
    for seed in range(12):
        made = pc.release(rows, schema=schema(14), loss=loss, randomness=rehearsal(seed))
        moment = made.second_moment(scaled=True, raw=True)
        mean = moment[0, 1:] / len(rows)
        centred = moment[1:, 1:] - len(rows) * np.outer(mean, mean)
        size = np.sqrt(np.diag(centred))
        errors.append(np.abs(centred / np.outer(size, size) - true)[np.triu_indices(14, 1)])
        stated.append(standing(made))
    half, tenth = np.quantile(errors, 0.5), np.quantile(errors, 0.9)
    assert np.mean([one.half for one in stated]) == pytest.approx(half, rel=0.2)
    assert np.mean([one.tenth for one in stated]) == pytest.approx(tenth, rel=0.2)


def test_columns_without_correlation_and_with_little_noise_are_told_apart_from_noise():
    made = pc.release(uncorrelated(200), schema=schema(7), loss=PURE, randomness=rehearsal(0))
    found = standing(made)
    assert found.clear == 0
    assert found.verdict == "useful"
    assert found.open_half < 0.1
    assert "They cannot be told from zero; half of them may be" in " ".join(found.sentences)


@pytest.mark.parametrize("clear", [0, 2])
def test_no_correlation_is_said_to_be_larger_than_one(clear):
    made = Standing(pairs=79, clear=clear, half=0.31, tenth=1.0, open_half=1.0, strength=3.0)
    told = " ".join(made.sentences)
    assert "cannot be told from zero; of half of them nothing is known." in told
    assert "may be 1 or more" not in told


def test_that_none_can_be_told_from_zero_is_said_once():
    made = Standing(pairs=12, clear=0, half=0.16, tenth=1.0, open_half=0.39, strength=1.0)
    assert "none of 12 correlations can be told from zero" in made.sentences[0]
    assert made.sentences[1] == "Half of them may be 0.39 or more."


@pytest.mark.parametrize(
    ("clear", "strength", "open_half", "verdict"),
    [
        (50, 9.0, 0.9, "useful"),
        (0, 1.0, 0.15, "useful"),
        (3, 1.5, 0.9, "marginal"),
        (0, 3.0, 0.9, "marginal"),
        (0, 1.1, 0.9, "worse than publishing zeros"),
    ],
)
def test_the_verdict_on_a_release(clear, strength, open_half, verdict):
    made = Standing(pairs=91, clear=clear, half=0.1, tenth=0.2, open_half=open_half, strength=strength)
    assert made.verdict == verdict
    assert ("LARGE" in made.sentences[0]) == verdict.startswith("worse")


def test_a_plan_is_graded_from_the_best_case_to_a_cautious_one():
    assert grade(0.01, 0.2) == "useful"
    assert grade(0.01, 0.21) == "marginal"
    assert grade(0.19, 4.75) == "marginal"
    assert grade(0.21, 5.25) == "worse than publishing zeros"


def test_without_a_law_or_with_one_column_nothing_is_claimed():
    one = pc.release(np.zeros((50, 1)), schema=schema(1), loss=PURE)
    assert standing(one) is None
    assert "A single column has no correlations." in html(one)


def levels(rows, *, epsilon):
    """Four levels of one column, one of them empty, and a column of numbers."""
    columns = {"x": {"lower": -1, "upper": 1}, "g": {"levels": ["a", "b", "c", "none"]}}
    given = pd.DataFrame({"x": np.linspace(-1, 1, rows), "g": np.array(["a", "b", "c"])[np.arange(rows) % 3]})
    loss = pc.PureDP(epsilon=epsilon, neighbours="replace-one")
    made = pc.Schema.from_dict({"columns": columns})
    return pc.release(given, schema=made, loss=loss, randomness=rehearsal(4))


def test_levels_of_one_column_are_in_brackets_where_they_are_noise():
    drowned = View.of(levels(60, epsilon="0.1")).clear
    assert not drowned[1:, 1:][np.triu_indices(4, 1)].any()
    assert drowned.diagonal().all()
    seen = View.of(levels(20_000, epsilon="1"))
    assert seen.clear[1:4, 1:4].all()
    assert not seen.clear[4, 1:4].any()  # of an empty level nothing is known
    assert standing(levels(20_000, epsilon="1")).pairs == 4  # and they are no pairs, as before


def exhaustive(seed, **words):
    """A column of two exhaustive levels, and one far off the middle that has nothing to do with it."""
    columns = {
        "g": {"levels": ["a", "b"], "exhaustive": True, "otherwise": "a"},
        "x": {"lower": 0, "upper": 1},
    }
    rows = pd.DataFrame({"g": np.tile(["a", "b"], 2_000), "x": np.repeat(np.linspace(0.85, 0.95, 2_000), 2)})
    made = pc.Schema.from_dict({"columns": columns, "missing": "none"})
    return pc.release(rows, schema=made, loss=PURE, randomness=rehearsal(seed), **words)


def test_of_two_levels_that_complete_each_other_both_or_none_stands_clear():
    """The count is public: its noise was left in the sums of the level that is recovered, and in no size of noise."""
    for seed in range(4):
        for words in ({}, {"frame": "scales"}):
            view = View.of(exhaustive(seed, **words))
            assert view.names == ("g[a]", "g[b]", "x")
            assert view.scores[0, 2] == pytest.approx(-view.scores[1, 2])
            assert view.clear[0, 2] == view.clear[1, 2]


def in_bounds(rows, factor, *, seed=5, **words):
    """A release of rows between -1 and 1, in bounds so many times as wide."""
    columns = {f"c{i}": {"lower": -factor, "upper": factor} for i in range(rows.shape[1])}
    wide = pc.Schema.from_dict({"columns": columns})
    return pc.release(rows, schema=wide, loss=PURE, randomness=rehearsal(seed), **words)


def test_what_loose_bounds_hide_is_said_with_what_to_do():
    rows = normal(n=2_000, d=3, spread=0.4, correlation=0.5, middle=0)
    told = " ".join(sentences(in_bounds(rows, 30)))
    assert "the noise follows the bounds" in told
    assert "--frame auto" in told
    for fitting in (in_bounds(rows, 1), in_bounds(rows, 30, frame="auto")):
        assert "--frame auto" not in " ".join(sentences(fitting))


def test_without_an_intercept_no_frame_is_offered_and_bounds_are_not_called_loose():
    """A frame is refused there, and scaled deviations over original widths called evenly spread columns loose."""
    rows = np.random.default_rng(2).uniform(0, 100, (500, 3))
    columns = {f"c{i}": {"lower": 0, "upper": 100} for i in range(3)}
    schema = pc.Schema.from_dict({"intercept": False, "columns": columns})
    release = pc.release(rows, schema=schema, loss=PURE, randomness=rehearsal(1))
    assert View.of(release).filled is None
    assert "private frame" not in " ".join(sentences(release))


def test_what_a_column_fills_of_its_bounds_is_not_told_as_less_than_it_is():
    """The upper end of 95 % for each of 80 columns: fewer than 69 that hold have odds below 1 in 1,000."""
    rows = np.random.default_rng(8).uniform(-1, 1, (2_000, 2))
    true = np.sqrt(3) * rows.std(axis=0) / 5
    held = sum(int((View.of(in_bounds(rows, 5, seed=seed)).filled >= true).sum()) for seed in range(40))
    assert held >= 69
