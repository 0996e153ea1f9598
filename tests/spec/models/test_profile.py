"""The quick way to a profile is the slow way's: the same heights, the same ends, the same limit far away."""

from __future__ import annotations

import time

import numpy as np
import pytest
from scipy import optimize

import privcov as pc
from privcov.models import score_sets
from privcov.models.inference import Uncertainty
from privcov.models.moments import EntryNoise, Moments
from privcov.models.profile import Profile
from privcov.models.sweep import sweep
from privcov.noise.laws import GaussianEnsemble
from privcov.noise.randomness import rehearsal


@pytest.fixture(scope="module")
def wide(make):
    """Least squares of one column on k − 1 others, from a release whose noise has a given standard deviation."""

    def build(columns, rows, std, seed=3):
        rng = np.random.default_rng(seed)
        names = [f"x{i}" for i in range(columns - 1)]
        data = {name: np.clip(rng.normal(0, 0.3, rows), -1, 1) for name in names}
        data["y"] = np.clip(0.3 * sum(data[name] for name in names[:3]) + rng.normal(0, 0.2, rows), -1, 1)
        schema = pc.Schema.from_dict({"columns": {name: {"lower": -1, "upper": 1} for name in data}})
        law = GaussianEnsemble(dimension=schema.dimension, scale=std)
        return make(schema, data, noise=law.simulate(rehearsal(seed)), law=law)

    return build


def slow_profile(uncertainty, functional):
    """θ ↦ min Q by eigendecompositions from the generalised least-squares step, each θ on its own, to rounding."""
    k, estimate = uncertainty.moments.size, uncertainty.swept.coefficients
    free = np.linalg.svd(functional[None, :])[2][1:].T
    free = free * np.sqrt(np.diag(free.T @ uncertainty.total @ free))
    spread = uncertainty.total @ functional

    def at(theta):
        b = estimate + spread * (theta - functional @ estimate) / (functional @ spread)
        height, slope, curve = uncertainty.statistic(np.append(-b, 1.0))
        for _ in range(200):
            curves, axes = np.linalg.eigh(free.T @ curve[:k, :k] @ free)
            curves = np.maximum(np.abs(curves), 1e-6 * np.abs(curves).max())
            step = free @ (axes @ ((axes.T @ (free.T @ slope[:k])) / curves))
            while (reached := uncertainty.statistic(np.append(-(b + step), 1.0)))[0] > height:
                step = step / 3
                if np.abs(step).max() < 1e-15:
                    return height
            b, (height, slope, curve) = b + step, reached
            if np.abs(step).max() < 1e-14:
                break
        return height

    return at


@pytest.mark.parametrize("formula", ["y ~ .", "y ~ . - 1"])
def test_heights_and_ends_are_those_of_a_slow_search(wide, formula):
    fit = pc.ols(wide(8, 20_000, 40.0), formula, method="score")
    ends, critical = fit.conf_int(), fit._critical(0.95)
    for i in (0, 3, fit.moments.size - 1):
        functional, shift, name = fit.moments.slope[i], fit.moments.shift[i], fit.moments.names[i]
        slow, quick = slow_profile(fit.uncertainty, functional), fit.uncertainty.profile(functional)
        centre, error = fit.params[name] - shift, fit.bse[name]
        for place in (-3.0, 0.4, 2.0, -0.7, 5.0):
            theta = centre + place * error
            assert quick(theta) == pytest.approx(slow(theta), rel=1e-9, abs=1e-9)
        for side, end in zip((-1, 1), ends[name], strict=True):
            outside = centre + side * 4 * error
            found = optimize.brentq(lambda t, s=slow: s(t) - critical, centre, outside, xtol=1e-13 * error)
            assert end - shift == pytest.approx(found, abs=1e-8 * error)


def test_the_limit_far_away_is_one_number_for_every_combination(wide):
    """The profile a million standard errors away comes to it from every coefficient."""
    fit = pc.ols(wide(6, 3_000, 60.0), "y ~ .", method="score")
    for name, functional in zip(fit.moments.names, fit.moments.slope, strict=True):
        far = fit.uncertainty.profile(functional)
        assert far(np.inf) == fit.uncertainty.far_away
        assert far(1e6 * fit.bse[name]) == pytest.approx(far(np.inf), rel=1e-3)


def test_a_distant_place_is_told_from_far_away_as_from_the_tangent(wide, monkeypatch):
    """The quick way begins where floors lie far away. Without it the search begins high up, and takes longer."""
    fit = pc.ols(wide(12, 20_000, 250.0), "y ~ .", method="score")
    known = fit.uncertainty
    assert 4 < known.far_away < 40
    places = [side * step for side in (-1, 1) for step in (15.0, 50.0)]
    pairs = [
        (row, row @ known.swept.coefficients + x * known.error(row)) for row in np.eye(12) for x in places
    ]
    assert all(known.profile(row)._above_outward(theta, 3.84) for row, theta in pairs)
    asked = [(row, theta, limit) for row, theta in pairs for limit in (1.0, 3.84, 2 * known.far_away)]
    quick = [known.profile(row).above(theta, limit) for row, theta, limit in asked]
    monkeypatch.setattr(Profile, "_above_outward", lambda *_: False)
    assert quick == [known.profile(row).above(theta, limit) for row, theta, limit in asked]
    assert True in quick
    assert False in quick


@pytest.mark.parametrize("std", [30.0, 100.0, 160.0])
def test_ends_by_secants_are_those_of_brent(wide, monkeypatch, std):
    release, taken, whole = wide(9, 20_000, std), [], score_sets._secant_end

    def watched(*at, **how):
        taken.append(whole(*at, **how))
        return taken[-1]

    monkeypatch.setattr(score_sets, "_secant_end", watched)
    quick = pc.ols(release, "y ~ .", method="score")
    ends = quick.conf_int()
    assert sum(end is not None for end in taken) > len(ends)
    monkeypatch.setattr(score_sets, "_secant_end", lambda *_, **__: None)
    for name, pair in pc.ols(release, "y ~ .", method="score").conf_int().items():
        assert ends[name] == pytest.approx(pair, abs=1e-8 * quick.bse[name])


def test_a_statistic_that_is_low_enough_has_the_same_height_and_no_derivatives(wide):
    known = pc.ols(wide(6, 5_000, 60.0), "y ~ .", method="score").uncertainty
    at = known.direction * [1.0, 1.1, 1.0, 0.9, 1.0, 1.0, 1.0]
    height, slope, _ = known.statistic(at)
    assert known.statistic(at, enough=height)[0] == height
    assert known.statistic(at, enough=height)[1].size == 0
    assert known.statistic(at, enough=height * (1 - 1e-12))[1] == pytest.approx(slope)


def test_which_side_of_a_limit_is_told_as_the_height_would(wide):
    fit = pc.ols(wide(6, 5_000, 60.0), "y ~ .", method="score")
    for name, functional, shift in zip(fit.moments.names, fit.moments.slope, fit.moments.shift, strict=True):
        whole, quick = fit.uncertainty.profile(functional), fit.uncertainty.profile(functional)
        for place in (-25.0, -2.1, -1.9, 0.0, 1.0, 1.94, 1.98, 2.5, 10.0, np.inf):
            theta = fit.params[name] - shift + place * fit.bse[name]
            assert quick.above(theta, 3.84) == (whole(theta) > 3.84), (name, place)


@pytest.mark.parametrize("seed", [54, 55, 59])
def test_an_end_is_where_the_statistic_is_critical_though_valleys_run_off_to_infinity(seed):
    """A search that ran off was a start for the next ones: ends then lay at the estimate, where Q is zero."""
    rng = np.random.default_rng(seed)
    rows = np.clip(rng.normal(size=(3000, 1)) * [0.5, 0.6, 0.4] + rng.normal(size=(3000, 3)) * 0.6, -4, 4)
    schema = pc.Schema.from_dict({"columns": {f"c{i}": {"lower": -4, "upper": 4} for i in range(3)}})
    loss = pc.PureDP(epsilon="0.6", neighbours="replace-one")
    release = pc.release(
        rows, schema=schema, loss=loss, mechanism="symmetric-wishart", randomness=rehearsal(seed)
    )
    fit = pc.ols(release, "c0 ~ c1 + c2", method="score").table
    ends = fit.conf_set()["(Intercept)"]
    functional, shift = fit.moments.slope[0], fit.moments.shift[0]
    critical = fit.uncertainty.tails(functional).critical(0.95)
    assert np.isfinite(ends).any()
    for end in np.ravel(ends)[np.isfinite(np.ravel(ends))]:
        assert fit.uncertainty.profile(functional)(end - shift) == pytest.approx(critical, rel=1e-3)


def test_a_drowned_design_takes_few_evaluations(wide, monkeypatch):
    """Each costs a Cholesky factor of the design. The release is fixed, so the count is."""
    fit, asked = pc.ols(wide(30, 2_000, 500.0), "y ~ ."), []
    whole = Uncertainty.statistic
    monkeypatch.setattr(Uncertainty, "statistic", lambda *at, **how: asked.append(1) or whole(*at, **how))
    assert "unbounded" in fit.summary()
    assert len(asked) < 14 * fit.moments.size, len(asked)


@pytest.mark.long
@pytest.mark.parametrize(("rows", "std"), [(60_000, 100.0), (2_000, 2_000.0)])
def test_a_hundred_columns_take_as_long_as_some_thousand_eigendecompositions(wide, rows, std):
    """CPU time on one core over that of one eigendecomposition; it was 65,000 of them with numbers, 15,000 drowned."""
    from threadpoolctl import threadpool_limits

    release = wide(100, rows, std)
    with threadpool_limits(1):
        fit = pc.ols(release, "y ~ .", method="score")
        began = time.process_time()
        fit.summary()
        spent = time.process_time() - began
        began = time.process_time()
        for _ in range(100):
            np.linalg.eigh(fit.moments.matrix)
        one = (time.process_time() - began) / 100
    assert bool(fit.uncertainty.drowned) == (rows == 2_000)
    assert spent < 6_000 * one


def test_a_floor_far_away_does_not_draw_the_search_into_its_valley():
    """Moments with two valleys, rounded from a release. The middle is asked after the far ends, as for an interval.

    When a search began on the line to the far floor alone, heights were 11 next to the estimate, and intervals empty.
    """
    matrix = np.array(
        [
            [1503.0, 390.4, 66.0, 141.8],
            [390.4, 1868.9, 79.2, 119.3],
            [66.0, 79.2, 539.1, -154.2],
            [141.8, 119.3, -154.2, 2055.1],
        ]
    )
    mixing = np.eye(4) + np.outer([0.0, 0.284, 0.214, -0.013], np.eye(4)[0])
    variances = 1e4 * (np.ones((4, 4)) + np.eye(4))
    variances[0, 0] = 0.0
    law = GaussianEnsemble(dimension=4, scale=100.0)
    moments = Moments(
        names=("(Intercept)", "a", "b"),
        matrix=matrix,
        rows=1503.0,
        rows_public=True,
        noise=EntryNoise(variances=variances, shared=0.0, mixing=mixing, law=law, places=(0, 1, 2, 3)),
        intercept=True,
        slope=np.eye(3),
        shift=np.zeros(3),
        target_width=1.0,
        limits=np.ones(3),
        target_limit=1.0,
    )
    known = Uncertainty(moments=moments, swept=sweep(matrix, moments.names), weight=21.6)
    functional = np.array([0.0, 1.0, 0.0])
    centre, error = known.swept.coefficients[1], known.error(functional)
    profile, fresh = known.profile(functional), known.profile(functional)
    assert profile(centre - 49 * error) > 10
    assert profile(centre - 10 * error) > 10
    for step in (-1.0, -0.5, 0.5):
        assert profile(centre + step * error) == pytest.approx(fresh(centre + step * error))
        assert profile(centre + step * error) == pytest.approx(step**2, rel=0.05)


@pytest.fixture(scope="module")
def curved():
    """A curve in age that noise nearly hides, from a release with its own draw of the noise."""
    columns = {"age": (0, 100), "size": (0, 60), "y": (0, 100)}
    bounds = {name: {"lower": low, "upper": high} for name, (low, high) in columns.items()}
    schema = pc.Schema.from_dict({"columns": bounds, "derived": {"age2": "age^2"}})

    def fit(seed):
        rng = np.random.default_rng(seed)
        age = np.clip(45 + 15 * rng.normal(size=3000), 18, 90)
        size = np.minimum(np.exp(rng.normal(size=3000)), 60)
        y = np.clip(20 + 0.5 * age - 0.004 * age**2 + 0.3 * size + rng.normal(0, 5, 3000), 0, 100)
        loss = pc.ApproxDP(epsilon=1, delta="1e-6", neighbours="replace-one")
        words = {"loss": loss, "mechanism": "gaussian", "randomness": rehearsal(seed)}
        return pc.ols(
            pc.release(np.column_stack([age, size, y]), schema=schema, **words), "y ~ age + age2 + size"
        )

    return fit


@pytest.mark.parametrize("seed", [12, 68, 143])
def test_a_profile_is_no_higher_than_the_valley_that_leads_far_away(curved, seed):
    """Its search began in another valley: p was 0.013 in place of 0.035, and 0.031 * in place of 0.17."""
    fit, source = curved(seed), rehearsal(seed)
    known, k = fit.uncertainty, fit.moments.size
    values, axes = np.linalg.eigh(known.total)
    for name, functional, shift in zip(fit.moments.names, fit.moments.slope, fit.moments.shift, strict=True):
        found = known.profile(functional)(-shift)
        starts = [
            known.swept.coefficients + far * (axes * np.sqrt(np.maximum(values, 0))) @ source.normals(k)
            for far in (3, 30, 100)
            for _ in range(10)
        ]
        slow = min(known.profile(functional).search(-shift, [start])[0] for start in starts)
        assert found <= slow + 1e-6, name
        pieces = fit.conf_set()[name]
        assert any(low <= 0 <= high for low, high in pieces) == (fit.pvalues[name] >= 0.05), name


def test_two_slopes_at_once_are_tested_in_the_deepest_valley(curved):
    """From one start the search found a floor of another valley, and p was 0.018 in place of 0.021."""
    fit, source = curved(8), rehearsal(8)
    known, errors = fit.uncertainty, np.sqrt(np.diag(fit.uncertainty.total))[[0, 3]]

    def height(away):
        first, last = known.swept.coefficients[[0, 3]] + errors * away
        return known.statistic(np.array([-first, 0.0, 0.0, -last, 1.0]))[0]

    starts = [far * source.normals(2) for far in (1, 10, 50) for _ in range(8)]
    slow = min(optimize.minimize(height, start, method="Nelder-Mead").fun for start in starts)
    assert 2 * fit.wald_test("age = 0, age2 = 0").statistic == pytest.approx(slow, rel=1e-4)


@pytest.mark.parametrize("seed", [17, 190, 237])
def test_one_hypothesis_has_one_p_value_whoever_asks(curved, seed):
    """Two searches ended in two valleys: t_test said 0.36 and wald_test 0.46. So F of one slope could."""
    fit = curved(seed)
    for name, p_value in fit.pvalues.items():
        assert fit.t_test(name).p_value == fit.wald_test([name]).p_value == p_value
        assert fit.t_test(name, 0.3).p_value == fit.wald_test([name], 0.3).p_value
    single = pc.ols(fit.release, "y ~ size", method="score")
    assert single.f_test.p_value == single.pvalues["size"]
