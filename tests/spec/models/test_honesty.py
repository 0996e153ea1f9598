"""Intervals say what they are about and what they assume, and hold where they say so.

Designs are those of ``privcov bench honesty``, which measures all of them on many tables.
"""

from __future__ import annotations

import json
import math
import re
from html import escape

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import privcov as pc
from privcov.errors import ParameterError
from privcov.models.association import partial_correlation
from privcov.models.assumptions import assumptions
from privcov.noise.laws import GaussianEnsemble, GaussianTriangle, LaplaceTriangle
from privcov.noise.randomness import rehearsal
from privcov.report.page import html
from privcov.report.page.models import model
from privcov.report.summary import as_text
from privcov.schema.template import template
from privcov.steward import inspect
from privcov_lab.bench import honesty

PAIR = {"x": {"lower": -1, "upper": 1}, "y": {"lower": -1, "upper": 1}}


def released(design, rows, seed, loss="pure"):
    return honesty._released(
        honesty.DESIGNS[design], rows, loss, np.random.default_rng(seed), rehearsal(seed)
    )


def fitted(design, rows, seed, **words):
    made = honesty.DESIGNS[design]
    return pc.ols(released(design, rows, seed).release, made.formula, **{"errors": made.errors, **words})


def clustered(make, seed, most, each=10, persons=100):
    """Ten rows a person, alike in x and in their errors, with little noise."""
    source = np.random.default_rng(seed)
    x = np.repeat(source.uniform(-1, 1, persons), each)
    y = 0.4 * x + np.repeat(source.normal(0, 0.1, persons), each)
    schema = pc.Schema.from_dict({"columns": PAIR, "max_rows_per_person": most})
    law = GaussianEnsemble(dimension=3, scale=0.1)
    return make(schema, {"x": x, "y": y}, law=law, noise=law.simulate(rehearsal(seed)))


def test_rows_of_one_person_are_not_taken_for_so_many_people(make):
    """60 tables: with coverage 0.95 at least 50 hold but for 2e-4; taken for independent 22 of 60 did."""
    held = {most: 0 for most in (1, 10)}
    for seed in range(60):
        for most in held:
            held[most] += pc.ols(clustered(make, seed, most), "y ~ x").accepts("x", 0.4)
    assert held[10] >= 50, held
    assert held[1] < 45, held


def test_rows_of_one_person_multiply_sampling_errors_and_leave_the_noise(make):
    one, ten = (pc.ols(clustered(make, 3, most), "y ~ x") for most in (1, 10))
    np.testing.assert_allclose(ten._known.sampling, 10 * one._known.sampling, rtol=1e-9)
    np.testing.assert_allclose(ten._known.privacy, one._known.privacy, rtol=1e-9)
    assert ten.uncertainty.freedom == pytest.approx(ten.moments.rows / 10 - 2)
    low, high = ten.conf_int()["x"]
    assert (ten.pvalues["x"] < 0.05) == (not low <= 0 <= high)
    wide, narrow = (fit.rsquared_interval() for fit in (ten, one))
    assert wide[0] < narrow[0] < narrow[1] < wide[1]
    assert ten.residual_std_error_interval()[1] > one.residual_std_error_interval()[1]
    assert any("up to 10" in line and "√10 = 3.16" in line for line in assumptions(ten))
    assert not any("Rows of one person" in line for line in assumptions(one))


def test_rows_of_one_person_widen_every_interval_for_the_population(make):
    """Sampling is all there is here: errors grow by √10, those of the table by nothing, and a penalty does not fall."""
    one, ten = (clustered(make, 3, most) for most in (1, 10))
    (low, high), (least, most) = (partial_correlation(release).interval("x", "y") for release in (one, ten))
    assert np.arctanh(most) - np.arctanh(least) == pytest.approx(
        math.sqrt(10) * (np.arctanh(high) - np.arctanh(low)), rel=0.1
    )
    alone, several = (pc.pca(release, rank=2) for release in (one, ten))
    narrow, wide = (np.log(fit.population_intervals()) for fit in (alone, several))
    np.testing.assert_allclose(np.diff(wide), math.sqrt(10) * np.diff(narrow), rtol=0.15)
    np.testing.assert_allclose(several.intervals(), alone.intervals(), rtol=1e-6)
    turned = [np.diff(fit.loading_intervals()).max() for fit in (alone, several)]
    assert turned[1] > 2 * turned[0]
    assert "up to 10 rows of one person" in str(several)
    assert "up to 10 rows" not in str(alone)
    assert "Heavy tails scatter more" in str(alone)
    about_zero = pc.pca(alone.release, rank=1, centred=False)
    assert "Heavy tails" not in str(about_zero)
    assert several.to_dict()["rows_per_person"] == 10
    free, bound = (pc.ridge(release, "y") for release in (one, ten))
    assert bound.penalty >= free.penalty
    assert bound.expected_error > free.expected_error
    assert "up to 10 rows of one person" in bound.summary()


@pytest.mark.long
def test_correlations_and_components_of_clustered_rows_hold_the_population(make):
    """60 tables, correlation 0.918: with coverage 0.95 at least 50 hold but for 2e-4; before 34 and 38 did."""
    moments = np.array([[1 / 3, 0.4 / 3], [0.4 / 3, 0.16 / 3 + 0.01]])
    rho, largest = moments[0, 1] / np.sqrt(moments[0, 0] * moments[1, 1]), np.linalg.eigvalsh(moments)[-1]
    held = np.zeros(2)
    for seed in range(60):
        release = clustered(make, seed, 10)
        low, high = partial_correlation(release).interval("x", "y")
        least, most = pc.pca(release, rank=1).population_intervals()[0]
        held += low <= rho <= high, least <= largest <= most
    assert held.min() >= 50, held


@pytest.mark.parametrize("what", ["correlation", "mean"])
def test_what_counts_the_noise_alone_says_so_where_persons_have_several_rows(make, what):
    one, ten = (as_text(clustered(make, 3, most), what=what) for most in (1, 10))
    told = "Rows of one person: up to 10. Errors shown beside numbers count the noise alone. Sampling errors"
    assert told in " ".join(ten.split())
    assert "Rows of one person" not in one
    assert told in html(clustered(make, 3, 10))


def test_no_correlation_within_persons_exceeds_the_bound():
    """The claim behind it: m rows in all have at most m times the sum of their squares, and all of it if alike."""
    source = np.random.default_rng(1)
    for _ in range(200):
        scores = source.normal(size=(7, 3)) * source.lognormal(size=(7, 1))
        whole, each = np.outer(scores.sum(0), scores.sum(0)), scores.T @ scores
        assert np.linalg.eigvalsh(7 * each - whole)[0] >= -1e-9
    same = np.ones((7, 1)) @ source.normal(size=(1, 3))
    np.testing.assert_allclose(np.outer(same.sum(0), same.sum(0)), 7 * same.T @ same)


@pytest.mark.parametrize(("method", "tables"), [("wald", 30), ("score", 15)])
def test_the_table_has_an_interval_of_its_own(method, tables):
    """Four coefficients a table: at coverage 0.95 fewer than four in five hold 1e-4 of the time.

    It is the narrower one, so that the population's holds what the table says whenever it does.
    """
    held, population = [], []
    for seed in range(tables):
        made = released("plain", 5_000, seed, loss="approximate")
        fit = pc.ols(made.release, honesty._FORMULA, method=method)
        whole = honesty._without_noise(honesty.DESIGNS["plain"], made.exact)
        held.append([fit.table.accepts(name, value) for name, value in whole.params.items()])
        population.append([fit.accepts(name, value) for name, value in whole.params.items()])
        assert fit.table.bse["x1"] <= fit.bse["x1"]
    assert np.mean(held) >= 0.8
    assert np.mean(population) >= np.mean(held)


@pytest.mark.long
def test_the_bootstrap_of_a_table_redraws_the_noise_alone():
    fit = fitted("plain", 5_000, 1, method="bootstrap")
    wald = fitted("plain", 5_000, 1, method="wald")
    for name, (low, high) in fit.table.conf_int().items():
        width = np.diff(wald.table.conf_int()[name])[0]
        assert high - low == pytest.approx(width, rel=0.15)


def test_without_noise_the_table_is_known_and_the_population_is_not(make):
    source = np.random.default_rng(2)
    x = source.uniform(-1, 1, 500)
    release = make(
        pc.Schema.from_dict({"columns": PAIR}), {"x": x, "y": 0.3 * x + source.normal(0, 0.1, 500)}
    )
    fit = pc.ols(release, "y ~ x")
    low, high = fit.table.conf_int()["x"]
    assert low == pytest.approx(high, abs=1e-9)
    assert fit.conf_int()["x"][1] - fit.conf_int()["x"][0] > 0.01
    low, high = fit.table.residual_std_error_interval()
    assert low == pytest.approx(high, rel=1e-6)
    assert low == pytest.approx(fit.residual_std_error, rel=1e-6)


def test_both_intervals_are_in_every_table():
    fit = fitted("plain", 5_000, 4)
    text, values, frame = fit.summary(0.9), fit.to_dict(0.9), fit.summary_frame(0.9)
    assert "90 % population" in text
    assert "90 % this table" in text
    assert "this table [" in text
    row = values["coefficients"][1]
    assert row["lower"] < row["table_lower"] < row["table_upper"] < row["upper"]
    assert values["table_r_squared_interval"][0] <= values["table_r_squared_interval"][1]
    assert (row["table_lower"], row["table_upper"]) == fit.table.conf_int(0.9)["x1"]
    assert frame.loc["x1", "Table Low"] == row["table_lower"]
    assert r"90 \% this table" in fit.to_latex(0.9)
    assert "90 % this table" not in pc.ols(fit.release, "y ~ x1", naive=True).summary(0.9)
    alone = fit.table
    assert "90 % this table" in alone.summary(0.9)
    assert "90 % population" not in alone.summary(0.9) + alone.to_latex(0.9)
    json.dumps(alone.to_dict(), allow_nan=False)
    page = model(fit, level=0.9).body
    assert "90 % population" in page
    assert "90 % this table" in page
    assert all(escape(line) in page for line in values["assumptions"])


@pytest.mark.long
def test_errors_of_unequal_variance_are_covered_where_asked():
    """40 tables from fixed seeds: the slope that errors grow with was held 37 times, and 32 times for equal variances.

    At coverage 0.95 fewer than 33 happen 1e-3 of the time.
    """
    held = {"equal": 0, "conservative": 0}
    for seed in range(40):
        made = released("heteroscedastic", 50_000, seed, loss="zcdp").release
        for errors in held:
            held[errors] += pc.ols(made, honesty._FORMULA, errors=errors).accepts("x1", 0.4)
    assert held["conservative"] >= 33, held
    assert held["conservative"] > held["equal"], held


def test_conservative_intervals_are_as_much_wider_as_they_say():
    equal, wide = (fitted("plain", 5_000, 3, errors=errors) for errors in ("equal", "conservative"))
    for name, factor in equal.widening.items():
        sampling = equal.bse[name] ** 2 - equal.table.bse[name] ** 2
        assert wide.bse[name] ** 2 - wide.table.bse[name] ** 2 == pytest.approx(
            factor**2 * sampling, rel=1e-6
        )
        assert factor > 1
    for name, (low, high) in wide.conf_int().items():
        assert (wide.pvalues[name] < 0.05) == (not low <= 0 <= high)
        assert wide.t_test(name).p_value == pytest.approx(wide.pvalues[name])
    assert wide.table.conf_int() == equal.table.conf_int()
    least, most = min(equal.widening.values()), max(equal.widening.values())
    assert f"{least:.2f} to {most:.2f} times as large" in " ".join(equal.summary().split())
    text, page = wide.summary(), model(wide).body
    assert "sampling ×" in text
    assert "sampling error ×" in page
    assert all(f"{factor:.3f}" in text and f"{factor:.3g}" in page for factor in wide.widening.values())
    assert "sampling ×" not in equal.summary() + wide.table.summary()
    one = pc.ols(wide.release, "y ~ x1", errors="conservative")
    assert one.f_test.statistic == pytest.approx(one.tvalues["x1"] ** 2)


def test_of_shortened_rows_r_squared_and_the_residual_error_say_so():
    design, rows = honesty.DESIGNS["skewed, private frame"], 2_000
    drawn = design.draw(honesty.Draws(1), rows)
    cells = np.column_stack([drawn[column.name] for column in design.schema.columns])
    loss = pc.ApproxDP(epsilon=2, delta="1e-6", neighbours="replace-one")
    framed = pc.ols(pc.release(cells, schema=design.schema, loss=loss, frame="scales"), "y ~ x1")
    plain = pc.ols(pc.release(cells, schema=design.schema, loss=loss, frame="declared"), "y ~ x1")
    for fit, told in ((framed, True), (plain, False)):
        shown = fit.summary() + model(fit).body
        assert ("Residual standard error of the shortened rows" in fit.summary()) == told
        assert ("R-squared of the shortened rows" in fit.summary()) == told
        assert ("R² of the shortened rows" in shown) == told
        assert fit.to_dict()["rows_shortened"] == told


def test_no_errors_within_the_bounds_exceed_the_conservative_variance(make):
    """Adversaries: all of the errors' variance in the rows of most leverage, for each coefficient."""
    source = np.random.default_rng(3)
    x = source.uniform(-1, 1, 800) ** 3
    schema = pc.Schema.from_dict({"columns": PAIR})
    fit = pc.ols(make(schema, {"x": x, "y": 0.2 * x + source.normal(0, 0.2, 800)}), "y ~ x")
    rows = np.column_stack([np.ones(800), x])
    inverse, total = np.linalg.inv(rows.T @ rows), fit.residual_std_error**2 * fit.moments.freedom
    for i, name in enumerate(fit.params):
        pulls = (rows @ inverse[i]) ** 2
        order = np.argsort(-pulls)
        left, worst = total, 0.0
        for place in order:  # a target within [-1, 1] has errors of variance at most 1
            part = min(1.0, left)
            worst, left = worst + part * pulls[place], left - part
        bound = fit.widening[name] ** 2 * total / fit.moments.freedom * inverse[i, i]
        assert worst <= bound * (1 + 1e-9)
        assert worst > bound / 5  # no empty bound


def test_what_is_assumed_of_errors_is_one_of_two_things():
    release = released("plain", 5_000, 1).release
    with pytest.raises(ParameterError, match="E287"):
        pc.ols(release, "y ~ x1", errors="robust")
    with pytest.raises(ParameterError, match="E287"):
        pc.ols(release, "y ~ x1", errors="conservative", method="bootstrap")


@pytest.mark.parametrize(
    "design", [name for name, made in honesty.DESIGNS.items() if made.says and not made.frame]
)
def test_where_assumptions_fail_the_output_says_so(design):
    """By the judge of the bench itself, which once did not find words that a line was broken in."""
    fit = fitted(design, 5_000, 2)
    assert honesty.says(fit, honesty.DESIGNS[design].says)
    assert not honesty.says(fit, "no summary says this")


def test_the_share_of_missing_cells_is_named_where_the_release_knows_it():
    rows = 50_000
    zero, marked, middle = (
        fitted(f"missing, {rule}", rows, 6) for rule in ("zero-row", "indicator", "midpoint")
    )
    told = re.search(r"Missing cells: about ([\d.]+) ± ([\d.]+) % of the rows", zero.summary())
    assert abs(float(told[1]) - 10) < 0.6 + float(
        told[2]
    )  # sampling of the share, four deviations, and its noise
    assert "complete rows" in zero.summary()
    assert any(line.startswith("Missing cells of x1: about") for line in assumptions(marked))
    bare = pc.ols(marked.release, "y ~ x1 + x2")
    assert any("add x1[missing] to the formula" in line for line in assumptions(bare))
    told = next(line for line in assumptions(middle) if "x1" in line)
    assert "does not know how many" in told
    assert "If 5 % of the cells of x1 were missing" in told


def test_sums_of_weights_are_not_taken_for_rows_that_lack_a_cell():
    """A fiftieth lacks a cell, and weights are half of the largest: 44 % of the rows were said to lack one."""
    source = np.random.default_rng(2)
    x = np.where(source.uniform(size=4_000) < 0.02, np.nan, source.uniform(-1, 1, 4_000))
    rows = np.column_stack([x, source.uniform(-1, 1, 4_000), source.uniform(1, 3, 4_000)])
    told = []
    for words in ({"ignore_extra": True}, {"weight": "w", "largest_weight": 4}):
        schema = pc.Schema.from_dict({"columns": PAIR, "missing": "zero-row", **words})
        frame = pd.DataFrame(rows, columns=["x", "y", "w"])
        release = pc.release(frame, schema=schema, loss=pc.ZCDP(rho=1, neighbours="replace-one"))
        told.append(next(line for line in assumptions(pc.ols(release, "y ~ x")) if "Missing cells" in line))
    assert re.search(r"Missing cells: (about|at most) [123]\.", told[0])
    assert told[1].startswith("Missing cells: an unknown share of the rows")


def test_what_missing_cells_do_to_a_slope_is_what_the_output_says(make):
    """A twentieth of the cells at the middle: the factor from the table before agrees with the one that is seen."""
    source = np.random.default_rng(8)
    x = source.uniform(0.4, 0.8, 200_000)
    y = 0.5 * x + source.normal(0, 0.05, len(x))
    lacking = np.where(source.uniform(size=len(x)) < 0.05, 0.0, x)
    schema = pc.Schema.from_dict({"columns": PAIR})
    before, after = (pc.ols(make(schema, {"x": v, "y": y}), "y ~ x") for v in (x, lacking))
    told = next(line for line in assumptions(after) if "If 5 %" in line)
    factor = float(told.split("about ")[1].split(" times")[0])
    assert after.params["x"] / before.params["x"] == pytest.approx(factor, abs=0.02)


def test_columns_that_go_together_count_in_what_missing_cells_do(make):
    """Both lie in the middle of their bounds, where a column alone would lose nothing; correlated by 0.9 it does."""
    source = np.random.default_rng(9)
    x = source.normal(0, 0.2, 200_000)
    z = 0.9 * x + 0.09 * source.normal(0, 1, len(x))
    y = 0.5 * x + 0.1 * z + source.normal(0, 0.05, len(x))
    lacking = np.where(source.uniform(size=len(x)) < 0.05, 0.0, x)
    schema = pc.Schema.from_dict({"columns": {**PAIR, "z": {"lower": -1, "upper": 1, "missing": "none"}}})
    before, after = (pc.ols(make(schema, {"x": v, "y": y, "z": z}), "y ~ x + z") for v in (x, lacking))
    told = next(line for line in assumptions(after) if "If 5 %" in line)
    factor = float(told.split("of the cells of x")[1].split("about ")[1].split(" times")[0])
    assert factor < 0.9
    assert after.params["x"] / before.params["x"] == pytest.approx(factor, abs=0.02)


def test_missing_cells_of_the_target_are_told_too(make):
    """Columns that lie in the middle and go with nothing lose nothing; all slopes lose what the target lacks."""
    source = np.random.default_rng(3)
    x = source.uniform(-0.5, 0.5, 200_000)
    y = 0.5 * x + source.normal(0, 0.05, len(x))
    lacking = np.where(source.uniform(size=len(x)) < 0.05, 0.0, y)
    schema = pc.Schema.from_dict({"columns": PAIR})
    before, after = (pc.ols(make(schema, {"x": x, "y": v}), "y ~ x") for v in (y, lacking))
    told = next(line for line in assumptions(after) if "If 5 %" in line)
    assert "of the cells of y were missing at random, every slope would be about 0.95" in told
    assert after.params["x"] / before.params["x"] == pytest.approx(0.95, abs=0.01)


def hidden_fit(seed=0):
    """A constant column beside two that stand clear."""
    source = np.random.default_rng(seed)
    columns = {
        "a b": source.uniform(-1, 1, 5_000),
        "still": np.full(5_000, 0.4),
        "x": source.uniform(-1, 1, 5_000),
    }
    columns["y"] = 0.3 * columns["a b"] + 0.2 * columns["x"] + source.normal(0, 0.1, 5_000)
    schema = pc.Schema.from_dict(
        {"columns": {name: {"lower": -1, "upper": 1} for name in columns}, "missing": "none"}
    )
    loss = pc.PureDP(epsilon=1, neighbours="replace-one")
    return pc.release(np.column_stack(list(columns.values())), schema=schema, loss=loss)


def test_where_noise_hides_a_column_the_table_says_how_to_do_without_it():
    release = hidden_fit()
    fit = pc.ols(release, "y ~ .")
    assert "still" in fit.uncertainty.drowned
    assert math.isinf(fit.conf_int()["x"][1])
    told = fit.summary()
    more = re.search(r"may be bounded: write … (.*)\.", told).group(1)
    assert more in html(release, models=["y ~ ."])
    without = pc.ols(release, f"y ~ . {more}")
    assert all(math.isfinite(end) for pair in without.conf_int().values() for end in pair)
    assert "TOO LARGE" not in without.summary()


def test_a_drowned_regression_has_no_r_squared():
    fit = pc.ols(hidden_fit(), "y ~ .")
    assert fit.rsquared_interval() == (0.0, 1.0)
    assert math.isnan(fit.rsquared)
    assert "R-squared cannot be told" in fit.summary()
    assert fit.to_dict()["r_squared"] is None


def test_r_squared_is_not_called_noise_where_the_f_test_tells_it_from_zero():
    """It said "R-squared is within the noise" one line above "F-statistic 453, p-value <0.0001"."""
    fit = pc.ols(hidden_fit(), "y ~ .")
    told = fit.summary()
    assert fit.f_test.p_value < 1e-4
    assert "R-squared cannot be told, 95 % interval [0, 1]" in told
    assert "R-squared is within the noise" not in told


def test_what_cannot_be_told_from_zero_has_two_digits():
    """A residual error of 29663.5 with the interval [0.0000, 111597.7]; in the report too."""
    source = np.random.default_rng(0)
    rows = np.column_stack([source.uniform(0, 1, 3_000), source.uniform(0.4, 0.402, 3_000)])
    columns = {name: {"lower": 0, "upper": 1} for name in ("x", "y")}
    schema = pc.Schema.from_dict({"columns": columns, "missing": "none"})
    loss, found = pc.PureDP(epsilon=1, neighbours="replace-one"), 0
    for seed in range(8):
        made = pc.release(rows, schema=schema, loss=loss, randomness=rehearsal(seed))
        fit = pc.ols(made, "y ~ x")
        if fit.residual_std_error_interval()[0] > 0 or math.isnan(fit.residual_std_error):
            continue
        found += 1
        line = next(line for line in fit.summary().splitlines() if line.startswith("Residual"))
        printed = re.search(r"error (\S+), 95 %", line).group(1)
        assert len(printed.replace(".", "").strip("0")) <= 2, line
        page = re.sub(r"<[^>]+>", " ", html(made, models=["y ~ x"]))
        shown = re.search(r"Residual standard error.*?([\d.,]+) \[0, ", page, re.S).group(1)
        assert len(re.sub(r"\D", "", shown).strip("0")) <= 2, shown
    assert found > 0


def test_a_residual_error_is_no_larger_than_its_interval_though_the_noise_says_so():
    """1.04 for the share of a level, with the interval [0, 0.5023]."""
    source = np.random.default_rng(5)
    rows = pd.DataFrame({"x": source.uniform(-1, 1, 300), "g": source.choice(["u", "v"], 300)})
    columns = {"x": {"lower": -1, "upper": 1}, "g": {"levels": ["u", "v"]}}
    schema, loss = (
        pc.Schema.from_dict({"columns": columns}),
        pc.PureDP(epsilon="0.3", neighbours="replace-one"),
    )
    above = 0
    for seed in range(12):
        fit = pc.ols(pc.release(rows, schema=schema, loss=loss, randomness=rehearsal(seed)), "g[v] ~ x")
        largest, error = fit.residual_std_error_interval()[1], fit.residual_std_error
        assert math.isnan(error) or error <= largest
        above += fit.uncertainty.residual_variance > largest**2
    assert above > 0


@pytest.mark.parametrize("method", ["auto", "bootstrap"])
def test_what_this_table_would_have_said_is_part_of_what_the_population_may_be(method):
    """Ends that are simulated apart stood in the wrong order, and so did those of R² with several rows a person."""
    for seed in range(6):
        made = released("plain", 2_000, seed)
        fit = pc.ols(made.release, honesty._FORMULA, method=method)
        for row in fit.to_dict()["coefficients"]:
            if row["lower"] is None or row["upper"] is None:
                continue
            assert row["lower"] <= row["table_lower"] <= row["table_upper"] <= row["upper"]
        (low, high), (least, most) = fit.rsquared_interval(), fit.table.rsquared_interval()
        assert low <= least <= most <= high


def test_a_new_row_is_predicted_within_the_bounds_of_the_target():
    """A share between -0.59 and 1.17; the mean at such rows is a linear model's, and stays where it is."""
    source = np.random.default_rng(5)
    x = source.uniform(-1, 1, 5_000)
    rows = pd.DataFrame({"x": x, "g": np.where(source.uniform(-1, 1, 5_000) < x, "u", "v")})
    columns = {"x": {"lower": -1, "upper": 1}, "g": {"levels": ["u", "v"]}}
    schema, loss = pc.Schema.from_dict({"columns": columns}), pc.PureDP(epsilon=5, neighbours="replace-one")
    made = pc.ols(pc.release(rows, schema=schema, loss=loss), "g[u] ~ x").get_prediction(
        {"x": [-1.0, 0.0, 1.0]}
    )
    assert (made.observed_lower >= 0).all()
    assert (made.observed_upper <= 1).all()
    assert made.observed_lower[1] == 0.0
    assert made.observed_upper[1] == 1.0


def test_no_residual_error_is_larger_than_the_bounds_of_the_target_allow():
    """Fifteen columns of 300 rows: without the limit the interval ends at 6.4 for a target between -1 and 1."""
    source = np.random.default_rng(2)
    rows = source.uniform(-1, 1, (300, 15))
    schema = pc.Schema.from_dict(
        {"columns": {f"x{i}": {"lower": -1, "upper": 1} for i in range(15)}, "missing": "none"}
    )
    fit = pc.ols(
        pc.release(rows, schema=schema, loss=pc.PureDP(epsilon=1, neighbours="replace-one")), "x0 ~ ."
    )
    for about in (fit, fit.table):
        assert 0 < about.residual_std_error_interval()[1] <= math.sqrt(300 / 285)


def test_a_combination_that_noise_hides_is_told_though_no_single_column_is_drowned():
    """Columns near the noise: every interval is endless, and estimates are not printed to four digits."""
    made = [released("missing, zero-row", 5_000, seed).release for seed in range(12)]
    fits = [pc.ols(release, honesty.DESIGNS["missing, zero-row"].formula) for release in made]
    endless = [
        fit
        for fit in fits
        if not fit.uncertainty.drowned and all(np.isinf(ends).all() for ends in fit.conf_int().values())
    ]
    assert endless
    for fit in endless:
        assert fit.uncertainty.hides
        assert fit.to_dict()["digits"] == 1
        assert "THE NOISE IS TOO LARGE FOR THIS MODEL" in fit.summary()
        assert math.isnan(fit.rsquared)


def test_a_table_declared_without_missing_cells_has_no_such_line(make):
    source = np.random.default_rng(1)
    x = source.uniform(-1, 1, 300)
    columns = {"x": x, "y": 0.2 * x + source.normal(0, 0.1, 300)}
    declared = pc.Schema.from_dict({"columns": PAIR, "missing": "none"})
    assert not any("issing" in line for line in assumptions(pc.ols(make(declared, columns), "y ~ x")))


def test_a_schema_without_the_word_means_what_it_always_did_and_says_what_that_does():
    """Old schema files and release files: the rule is theirs. Only a new template leaves rows out."""
    old = pc.Schema.from_dict({"columns": PAIR})
    assert old.missing == "midpoint"
    assert 'missing = "midpoint"' in old.to_toml()
    assert 'write missing = "zero-row"' in old.missing_advice
    assert 'missing = "zero-row"' in template({"x": "numeric"})
    for rule in ("zero-row", "none"):
        made = pc.Schema.from_dict({"columns": PAIR, "missing": rule})
        assert made.missing_advice == ""
        assert f'missing = "{rule}"' in made.to_toml()


def test_none_is_a_declaration_and_changes_no_bit_of_a_release():
    rows = np.array([[0.5, np.nan], [0.25, -0.5], [np.nan, 1.0]] * 20)
    loss = pc.PureDP(epsilon=1, neighbours="replace-one")
    made = [
        pc.release(
            rows,
            schema=pc.Schema.from_dict({"columns": PAIR, "missing": rule}),
            loss=loss,
            arithmetic="idealized",
            randomness=rehearsal(1),
        )
        for rule in ("midpoint", "none")
    ]
    assert made[0].upper == made[1].upper
    assert made[1].schema.missing == "none"


def test_inspect_tells_the_keeper_that_missing_numbers_count_as_a_middle(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n0.5,\nNA,0.25\n0.1,0.2\n")
    for rule, said in (("midpoint", True), ("zero-row", False)):
        schema = pc.Schema.from_dict({"columns": PAIR, "missing": rule})
        seen = inspect(tmp_path / "a.csv", schema=schema)
        assert ("Numbers that count as a middle: 2. A missing number" in seen.render()) == said


def test_rows_that_lack_a_cell_do_not_turn_signs_around():
    """Where rows are left out, sums are of fewer rows than the table has: with all of them half of 20 were wrong."""
    wrong = 0
    for seed in range(10):
        made = released("missing, zero-row", 50_000, seed)
        view = honesty.View.of(made.release)
        mean = made.exact[0, 1:] / made.exact[0, 0]
        true = made.exact[1:, 1:] / made.exact[0, 0] - np.outer(mean, mean)
        first, second = view.pairs
        clear = view.clear[first, second]
        wrong += bool((clear & (np.sign(view.correlation) != np.sign(true))[first, second]).any())
    assert wrong <= 2  # a twentieth of releases may: three of ten happen 1 % of the time; the seeds are fixed


@pytest.mark.long
@pytest.mark.parametrize("cell", honesty.QUICK, ids=lambda cell: f"{cell[0]}-{cell[1]}-{cell[2]}")
def test_the_quick_bench_is_as_said(cell):
    """100 tables a cell. Where intervals are as said, a false alarm has probability 1e-3 at most: their coverage is
    below the limit only if it is four standard errors below. Coverage of 0.80 is caught nine times in ten.
    """
    design = honesty.DESIGNS[cell[0]]
    found = honesty.measured(*cell, tables=100, seed=11)
    assert "does not say" not in found["as_said"]
    if design.holds != "says":
        assert found["population"] + 4 * found["population_error"] > 0.95, found
    if found["table"] is not None:
        assert found["table"] + 4 * found["table_error"] > 0.95, found
    if design.holds == "yes" and cell[1] >= 5_000:
        assert found["width"] < 1.15 * 1.4, found
    assert stats.binom.sf(round(100 * (found["wrong_sign"] or 0)), 100, 0.05) > 1e-4, found


def test_the_oracle_of_the_bench_finds_what_noise_hides_and_nothing_else(make):
    """Two columns whose difference varies by a hundredth: noise hides it at a deviation of 30, and not at 0.01."""
    source = np.random.default_rng(2)
    x = source.uniform(-0.9, 0.9, 1000)
    table = {"x": x, "y": x + source.uniform(-0.02, 0.02, 1000)}
    hidden = []
    for scale in (30.0, 0.01):
        law = GaussianEnsemble(dimension=3, scale=scale)
        release = make(
            pc.Schema.from_dict({"columns": PAIR}), table, law=law, noise=law.simulate(rehearsal(2))
        )
        hidden.append(honesty._hides(release, [0, 1, 2]))
    assert hidden == [True, False]


@pytest.mark.parametrize(("law", "hidden"), [(GaussianTriangle, False), (LaplaceTriangle, True)])
def test_the_oracle_of_the_bench_knows_the_tails_of_the_noise(make, law, hidden):
    """A column 2.05 deviations above the noise: beyond 95 % of normal draws (1.96), within 95 % of Laplace's (2.12)."""
    table = {"x": np.tile([-0.5, 0.5], 500), "y": np.zeros(1000)}
    unit = math.sqrt(law(dimension=3, scale=1.0).diagonal_variance)
    release = make(
        pc.Schema.from_dict({"columns": PAIR}), table, law=law(dimension=3, scale=250 / 2.05 / unit)
    )
    assert honesty._hides(release, [0, 1]) is hidden


def test_the_oracle_of_widths_takes_estimates_of_any_law():
    """Estimates by Laplace's law, and an interval that holds 95 % of it: a normal oracle has 1.49."""
    asked = honesty._Asked(
        design=honesty.DESIGNS["plain"], loss="laplace", rows=5_000, truth={"x1": 0.4}, share=0.5, spread=0.1
    )
    asked.estimates = [{"x1": 0.4 + value} for value in stats.laplace.ppf(np.linspace(0.0005, 0.9995, 1000))]
    asked.widths = [{"x1": 2 * math.log(20)}]
    assert asked._width() == pytest.approx(1, abs=0.02)


@pytest.mark.long
def test_r_squared_holds_where_noise_is_large_for_the_design():
    """120 tables: with coverage 0.95 at least 107 hold but for 1 in 250. 106 did when what noise hides was not counted.

    One regressor hardly varies, so that noise takes away about as much of what it explains as it puts in.
    """
    _, share, _ = honesty._truth("nothing missing, none")
    source, noise, held = honesty.Draws(900), rehearsal(900), 0
    design = honesty.DESIGNS["nothing missing, none"]
    for _ in range(120):
        fit = pc.ols(honesty._released(design, 5_000, "pure", source, noise).release, design.formula)
        low, high = fit.rsquared_interval()
        held += low <= share <= high
    assert held >= 107, held
