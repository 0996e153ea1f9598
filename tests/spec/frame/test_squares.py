"""Squared distances have a round of their own, and released columns the standard deviations that it finds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import privcov as pc
from privcov.frame.counting import Squares
from privcov.models.moments import EntryNoise
from privcov.noise.laws import GaussianEnsemble
from privcov.noise.randomness import rehearsal
from privcov.releases.means import centred_squares
from privcov.schema import Numeric
from privcov.summing.bounding import Bounding
from privcov.verification.consistency import disagreements

LOSS = pc.ApproxDP(epsilon=2, delta="1e-6", neighbours="replace-one")
SCHEMA = pc.Schema.from_dict(
    {"columns": {"income": {"lower": 0, "upper": 500_000}, "age": {"lower": 0, "upper": 100}}}
)


def table(rows=10_000):
    """Incomes with a long tail that go with age."""
    rng = np.random.default_rng(4)
    age = rng.normal(45, 12, rows).clip(0, 100)
    return np.column_stack([(400 * age + 9_000 * rng.lognormal(0, 1.2, rows)).clip(0, 500_000), age])


ROWS = table()


def made(seed=1, rows=ROWS, **words):
    asked = {"schema": SCHEMA, "loss": LOSS, "frame": "scales", **words}
    return pc.release(rows, arithmetic="idealized", randomness=rehearsal(seed), **asked)


def test_sums_are_those_of_the_slow_way_and_no_row_adds_more_than_one():
    column = Numeric(name="x", lower=-3.0, upper=10.0, centre=2.0, scale=5.0)
    look = Squares(schema=replace(SCHEMA, columns=(column,)), fills=(2.0,))
    cells = np.array([2.0, 7.0, -3.0, 4.5, 1e9, -1e9, np.nan])
    found = look.sums(Bounding.of(look.schema), [cells])
    near = np.nan_to_num(cells, nan=2.0).clip(-3, 10)
    counted = np.minimum(((near - 2) / 5) ** 2, 1)
    assert found / look.one == pytest.approx((2 * counted - 1).sum(), abs=1e-5)
    single = [abs(int(look.sums(Bounding.of(look.schema), [cells[[i]]])[0])) for i in range(len(cells))]
    assert max(single) == look.one


def test_columns_have_the_deviations_of_all_rows_and_slopes_those_of_the_table():
    """Fixed streams. Rows as they were added up have 0.6 of the deviation of incomes, and 0.7 of their slope."""
    true, slope = ROWS[:, 0].std(), np.polyfit(ROWS[:, 1], ROWS[:, 0], 1)[0]
    releases = [made(seed) for seed in range(4)]
    found = np.array([np.sqrt(one.covariance()[0, 0]) for one in releases])
    before = np.array([np.sqrt(one.as_added.covariance()[0, 0]) for one in releases])
    assert abs(found.mean() / true - 1) < abs(before.mean() / true - 1) / 2
    fits = [pc.ols(one, "income ~ age").table for one in releases]
    ends = [fit.conf_int()["age"] for fit in fits]
    assert sum(low <= slope <= high for low, high in ends) >= 3
    assert np.median([fit.bse["age"] for fit in fits]) < slope / 3
    assert all(disagreements(one) == () for one in releases)


def test_without_noise_to_speak_of_the_round_states_the_variances():
    one = made(loss=pc.ZCDP(rho=10**9, neighbours="replace-one"))
    asked = {each.name: each for each in one.certificate.rounds}
    halves, share, std = centred_squares(asked["squares"], asked["means"], count=len(ROWS))
    assert halves * np.sqrt(share) == pytest.approx(ROWS.std(axis=0), rel=1e-3)
    assert (std < 1e-3).all()


def test_a_file_gives_the_same_numbers_and_one_without_the_round_those_of_shortened_rows(tmp_path):
    one = pc.release(ROWS, schema=SCHEMA, loss=LOSS, frame="scales")
    one.save(tmp_path / "r.json")
    again = pc.load(tmp_path / "r.json")
    assert np.array_equal(again.covariance(), one.covariance())
    assert pc.ols(again, "income ~ age").bse == pc.ols(one, "income ~ age").bse
    old = one.as_added
    assert old.calibration is None
    assert old.law == old.certificate.law
    assert np.array_equal(old.correlation().round(9), one.correlation().round(9))


def test_columns_that_are_nearly_the_same_keep_the_ratio_that_the_matrix_knows():
    """A slope of 2 with a tenth of noise: were factors found one by one, its error would be 0.1."""
    rng = np.random.default_rng(1)
    x = rng.normal(50, 10, 20_000)
    rows = np.column_stack([2 * x + rng.normal(0, 1, 20_000), x])
    schema = pc.Schema.from_dict(
        {"columns": {"y": {"lower": -900, "upper": 1100}, "x": {"lower": -450, "upper": 550}}}
    )
    fit = pc.ols(made(rows=rows, schema=schema), "y ~ x")
    assert fit.bse["x"] < 0.04
    assert abs(fit.params["x"] - 2) < 4 * fit.bse["x"]


def test_doubt_about_units_is_counted_as_simulations_have_it():
    """Every form of noise with doubt about units, against 40,000 draws: within a twentieth, which is six errors."""
    rng = np.random.default_rng(3)
    parts = rng.normal(size=(2, 3, 3))
    units = parts + np.swapaxes(parts, 1, 2)
    law = GaussianEnsemble(dimension=3, scale=1.0)
    noise = EntryNoise.of(law, places=[0, 1, 2], known=[], mixing=np.eye(3), units=units)
    draws = law.simulations(rehearsal(1), 40_000) + np.einsum(
        "nm,mij->nij", rng.normal(size=(40_000, 2)), units
    )
    a, b, c, d = rng.normal(size=(4, 3))
    assert np.cov((draws @ a).T) == pytest.approx(noise.times(a), rel=0.05, abs=0.5)
    first, second = (np.einsum("i,nij,j->n", x, draws, y) for x, y in ((a, b), (c, d)))
    assert np.cov(first, second)[0, 1] == pytest.approx(noise.forms(a, b, c, d), rel=0.05, abs=0.5)
    square = np.einsum("i,nij,j->n", a, draws, a)
    assert square.var() == pytest.approx(noise.squares(a[None])[0], rel=0.05)
    assert square.var() == pytest.approx(noise.inner(np.outer(a, a), np.outer(a, a)), rel=0.05)
    step = 1e-6
    bent = [(noise.times(a + step * e) @ b - noise.times(a - step * e) @ b) / (2 * step) for e in np.eye(3)]
    assert pytest.approx(noise.bend(a, b), rel=1e-5) == np.array(bent).T
