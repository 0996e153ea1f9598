"""Correlation and its kin, and the frames and tables they can leave in."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import privcov as pc
from privcov.models import interop
from privcov.models.association import correlation, mahalanobis, partial_correlation, precision
from privcov.noise.laws import GaussianEnsemble, WishartDifference
from privcov.noise.randomness import rehearsal


@pytest.fixture(scope="module")
def columns(people_columns):
    return {name: people_columns[name] for name in ("age", "educ", "income")}


@pytest.fixture(scope="module")
def release(make, people_schema, columns):
    bounds = {
        c.name: {"lower": c.lower, "upper": c.upper} for c in people_schema.columns if c.name in columns
    }
    schema = pc.Schema.from_dict({"columns": bounds})
    return make(schema, columns, law=GaussianEnsemble(dimension=4, scale=1e-9))


@pytest.fixture(scope="module")
def mixed(make, people_schema, people_columns):
    return make(
        people_schema, people_columns, law=GaussianEnsemble(dimension=people_schema.dimension, scale=1e-9)
    )


def residual(target, others):
    """What is left of a column after the others and a constant are regressed out."""
    design = np.stack([np.ones(len(target)), *others], axis=1)
    return target - design @ np.linalg.lstsq(design, target, rcond=None)[0]


def test_the_identities_of_an_exact_release(release, columns):
    rows = np.stack(list(columns.values()), axis=1)
    assert np.allclose(correlation(release).values, np.corrcoef(rows.T), atol=1e-9)
    assert np.allclose(np.array(precision(release)) @ np.cov(rows.T), np.eye(3), atol=1e-7)
    scaled = precision(release, scaled=True).values @ release.covariance(scaled=True)
    assert np.allclose(scaled, np.eye(3), atol=1e-7)
    centred = rows - rows.mean(axis=0)
    expected = np.sqrt(np.einsum("ni,ni->n", centred @ np.linalg.inv(np.cov(rows.T)), centred))
    assert np.allclose(mahalanobis(release, rows), expected, rtol=1e-7)
    assert np.allclose(mahalanobis(release, columns), expected, rtol=1e-7)


def test_partial_correlation_is_the_correlation_of_residuals(release, columns):
    left = residual(columns["age"], [columns["educ"]])
    right = residual(columns["income"], [columns["educ"]])
    assert partial_correlation(release)["age", "income"] == pytest.approx(
        np.corrcoef(left, right)[0, 1], abs=1e-8
    )


def test_levels_that_determine_each_other_do_not_spoil_the_rest(mixed, people_columns):
    levels = [people_columns["area"] == "n", people_columns["area"] == "s", people_columns["sex"] == "F"]
    others = [*(level.astype(float) for level in levels), people_columns["educ"]]
    left, right = (residual(people_columns[name], others) for name in ("age", "income"))
    for repair in ("auto", "none"):
        found = partial_correlation(mixed, repair=repair)
        assert found["age", "income"] == pytest.approx(np.corrcoef(left, right)[0, 1], abs=1e-6)
        assert found["sex[F]", "sex[F]"] == 1
        assert found.left_out == ("area[n]", "sex[F]")  # one level of each categorical column


def test_a_level_is_compared_with_all_others_of_its_column(mixed, people_columns):
    """Its siblings are not regressed out of a pair that it is in: together they determine it."""
    others = [people_columns[name] for name in ("age", "educ")] + [people_columns["sex"] == "F"]
    sides = (people_columns["area"] == "s").astype(float), people_columns["income"]
    left, right = (residual(side, others) for side in sides)
    for repair in ("auto", "none"):
        found = partial_correlation(mixed, repair=repair)
        assert found["area[s]", "income"] == pytest.approx(np.corrcoef(left, right)[0, 1], abs=1e-6)
        assert math.isnan(found["area[s]", "area[w]"])
        assert found.interval("area[s]", "area[w]") == (-1.0, 1.0)


LEVELS = pc.Schema.from_dict(
    {
        "columns": {
            "x1": {"lower": -1, "upper": 1},
            "x2": {"lower": -1, "upper": 1},
            "g": {"levels": ["a", "b", "c", "empty", "rare"]},
            "y": {"lower": -1, "upper": 1},
        }
    }
)
SHARES = [0.4, 0.3, 0.297, 0.0, 0.003]


def levelled(rng, rows):
    """Two related regressors, a column with a rare and an empty level, and a target with normal errors."""
    x1, g = rng.uniform(-1, 1, rows), rng.choice(5, rows, p=SHARES)
    x2 = 0.4 * x1 + rng.uniform(-0.6, 0.6, rows)
    y = 0.3 * x1 - 0.1 * x2 + 0.1 * (g == 1) + rng.normal(0, 0.2, rows)
    return {"x1": x1, "x2": x2, "g": np.array(["a", "b", "c", "empty", "rare"])[g], "y": y}


TRUE_PARTIAL = -0.1 * math.sqrt(0.12) / math.hypot(0.2, 0.1 * math.sqrt(0.12))


def covered(make, kind, rows, scale, tables, seed):
    """How many of ``tables`` intervals hold the truth, the errors of the estimates, and how many are not identified."""
    rng, source = np.random.default_rng(seed), rehearsal(seed)
    law, held, errors = kind(dimension=LEVELS.dimension, scale=scale), 0, []
    for _ in range(tables):
        columns = levelled(rng, rows)
        found = partial_correlation(make(LEVELS, columns, law=law, noise=law.simulate(source)))
        low, high = found.interval("x2", "y")
        held += low <= TRUE_PARTIAL <= high
        errors.append(found["x2", "y"] - TRUE_PARTIAL)
    return held, np.array(errors)


def test_a_categorical_column_does_not_turn_a_partial_correlation_into_noise(make):
    """20 tables of 20,000 rows: an error of 0.1 is beyond five standard deviations of the estimate."""
    held, errors = covered(make, WishartDifference, 20_000, 1.5, 20, 3)
    assert np.abs(errors).max() < 0.1
    assert held >= 15  # false alarm 3e-4 at 0.95; 0.5 is caught 98 times in 100


@pytest.mark.slow
@pytest.mark.parametrize("kind", [WishartDifference, GaussianEnsemble])
@pytest.mark.parametrize(("rows", "scale"), [(50_000, 1.5), (5_000, 1.5), (5_000, 0.3), (1_000, 0.5)])
def test_intervals_of_partial_correlations_hold_the_truth(make, kind, rows, scale):
    """400 tables a cell: false alarm 1e-3 each at coverage 0.95 (0.93 to 0.975 is asked); 0.90 is caught 9 in 10."""
    if kind is GaussianEnsemble:
        scale *= 8.0
    held, _ = covered(make, kind, rows, scale, 400, 17)
    low, high = stats.binom.ppf([5e-4, 1 - 5e-4], 400, [0.93, 0.975])
    assert low <= held <= high, held / 400


def test_correlations_have_intervals_that_hold_the_truth():
    """They had none: a correlation of noise looked like any other. 60 tables of one population, two pairs each: fewer
    than 102 of 120 hold less than once in 10,000 times at 0.95. A constant column has no correlation."""
    columns = {name: {"lower": -4, "upper": 4} for name in ("x", "y", "z", "flat")}
    schema = pc.Schema.from_dict({"columns": columns, "missing": "none"})
    loss, source = pc.PureDP(epsilon=1, neighbours="replace-one"), np.random.default_rng(8)
    held = unknown = 0
    for seed in range(60):
        x, y, z = source.normal(size=(3, 4_000))
        rows = np.clip(np.column_stack([x, 0.6 * x + 0.8 * y, z, np.full(4_000, 1.0)]), -4, 4)
        made = pc.release(rows, schema=schema, loss=loss, randomness=rehearsal(seed))
        found = correlation(made)
        for pair, true in ((("x", "y"), 0.6), (("y", "z"), 0.0)):
            low, high = found.interval(*pair)
            assert low <= found[pair] <= high
            held += low <= true <= high
        unknown += found.interval("x", "flat") == (-1.0, 1.0)
    assert held >= 102
    assert unknown >= 50
    assert found.level == 0.95
    assert found.interval("x", "x") == (1.0, 1.0)
    narrow = correlation(made, level=0.5).interval("x", "y")
    assert np.ptp(narrow) < np.ptp(found.interval("x", "y"))


def test_what_cannot_be_told_is_said_not_guessed(make):
    """A column of hardly any variance is left out of every adjustment, and nothing is said about it."""
    law = GaussianEnsemble(dimension=LEVELS.dimension, scale=12.0)
    columns = levelled(np.random.default_rng(4), 20_000)
    columns["x1"] = 0.01 * columns["x1"]
    found = partial_correlation(make(LEVELS, columns, law=law, noise=law.simulate(rehearsal(4))))
    assert {"x1", "g[empty]", "g[a]"} <= set(found.left_out)
    assert math.isnan(found["x1", "y"])
    assert found.interval("x1", "y") == (-1.0, 1.0)
    assert not math.isnan(found["x2", "y"])
    assert found.to_dict()["left_out"] == list(found.left_out)


def test_distances_do_not_depend_on_noise_in_redundant_levels(make):
    """Three draws of noise on one table; the rare level, which may be left out, is not among the rows."""
    law = WishartDifference(dimension=LEVELS.dimension, scale=1.5)
    columns = levelled(np.random.default_rng(5), 20_000)
    exact = make(LEVELS, columns, law=GaussianEnsemble(dimension=LEVELS.dimension, scale=1e-9))
    for seed in range(3):
        noisy = make(LEVELS, columns, law=law, noise=law.simulate(rehearsal(seed)))
        kept = np.array([name not in precision(noisy).left_out for name in noisy.columns[1:]])
        assert not kept[noisy.columns.index("g[empty]") - 1]
        few = {name: cells[:300] for name, cells in columns.items()}
        plain = few["g"] != "rare"
        ratio = mahalanobis(noisy, few)[plain] / mahalanobis(exact, few)[plain]
        assert np.abs(ratio - 1).max() < 0.2, ratio


def test_mahalanobis_ignores_directions_that_do_not_vary(mixed, people_columns):
    """With all levels in, the distance is the one with a level of each column left out."""
    distances = mahalanobis(mixed, people_columns, repair="none")
    kept = [people_columns["age"], people_columns["educ"], people_columns["income"]]
    kept += [people_columns["area"] == "n", people_columns["area"] == "s", people_columns["sex"] == "F"]
    rows = np.stack([np.asarray(column, dtype=float) for column in kept], axis=1)
    centred = rows - rows.mean(axis=0)
    expected = np.sqrt(np.einsum("ni,ni->n", centred @ np.linalg.inv(np.cov(rows.T)), centred))
    assert np.allclose(distances, expected, rtol=1e-6)


def test_bad_input_is_refused(make, release, mixed):
    for floor in (0, 1, -1, math.nan, True, "x"):
        with pytest.raises(pc.PrivcovError, match="E258"):
            precision(release, floor=floor)
    with pytest.raises(pc.PrivcovError, match="E250"):
        _ = correlation(release)["age", "height"]
    with pytest.raises(pc.PrivcovError, match="E257"):
        mahalanobis(release, [[1.0, 2.0]])
    flat = make(release.schema, {n: np.full(9, 5.0) for n in ("age", "educ", "income")}, law=None)
    with pytest.raises(pc.PrivcovError, match=r"E254 .*age"):
        precision(flat)
    schema = pc.Schema.from_dict({"intercept": False, "columns": {"a": {"lower": -1, "upper": 1}}})
    bare = make(schema, {"a": np.ones(9)}, law=None)
    for ask in (correlation, precision, partial_correlation, interop.to_pandas):
        with pytest.raises(pc.PrivcovError, match="E255"):
            ask(bare)


@pytest.mark.parametrize("what", interop.WHAT)
def test_every_matrix_leaves_as_a_frame_or_a_table(release, what):
    pytest.importorskip("pandas")
    pytest.importorskip("polars")
    frame, other = interop.to_pandas(release, what), interop.to_polars(release, what)
    assert other.columns == ["column", *frame.columns]
    assert other["column"].to_list() == list(frame.index)
    assert np.array_equal(other.drop("column").to_numpy(), frame.to_numpy())
    assert frame.attrs["labels"] == []
    latex = interop.to_latex(release, what)
    assert latex.startswith(r"\begin{tabular}{lr")
    assert latex.count("income") == (2 if what != "mean" else 1)
    assert "REHEARSAL" not in latex


def test_values_are_the_release_s_own(release):
    pytest.importorskip("pandas")
    assert np.array_equal(interop.to_pandas(release).to_numpy(), release.covariance())
    assert interop.to_pandas(release, "mean").loc["age", "mean"] == release.mean()[0]
    assert np.array_equal(interop.to_pandas(release, "raw").to_numpy(), release.second_moment(raw=True))


def test_a_missing_library_is_named(release, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "polars", None)
    with pytest.raises(pc.PrivcovError, match=r"E259 .*pip install polars"):
        interop.to_polars(release)
    for words in ({"what": "magic"}, {"what": "mean", "digits": 0}):
        with pytest.raises(pc.PrivcovError, match="E258"):
            interop.to_latex(release, **words)


def test_latex_escapes_what_a_level_may_hold(make):
    schema = pc.Schema.from_dict({"columns": {"a_b": {"levels": ["50%", "x&y"]}}})
    latex = interop.to_latex(make(schema, {"a_b": np.array(["50%", "x&y"] * 9)}, law=None), "raw")
    assert r"a\_b[50\%]" in latex
    assert r"x\&y" in latex


def test_a_rehearsal_is_labelled_everywhere(rehearsed):
    pytest.importorskip("pandas")
    pytest.importorskip("polars")
    assert "REHEARSAL" in repr(correlation(rehearsed))
    assert correlation(rehearsed).to_dict()["labels"][0].startswith("REHEARSAL")
    assert interop.to_pandas(rehearsed).index.name.startswith("REHEARSAL")
    assert interop.to_polars(rehearsed).columns[0].startswith("REHEARSAL")
    assert "REHEARSAL" in interop.to_latex(rehearsed)
