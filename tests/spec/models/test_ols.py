"""Without noise the fit is the textbook's; bad designs are named; every output carries its labels."""

from __future__ import annotations

import builtins
import json
import warnings

import numpy as np
import pytest
from scipy import stats

import privcov as pc
from privcov.errors import ParameterError
from privcov.models.sweep import sweep
from privcov.noise.laws import GaussianEnsemble
from privcov.noise.randomness import rehearsal

FORMULAS = [
    "income ~ age + educ",
    "income ~ age + educ - 1",
    "income ~ area + age",
    "income ~ area + sex + educ - 1",
    "income ~ .",
    "educ ~ income",
    "income ~ 1",
]


def design(formula, columns):
    """The design in original units, written out by hand."""
    one = np.ones(len(columns["age"]))
    area = [(columns["area"] == level).astype(float) for level in "nsw"]
    sex = [(columns["sex"] == level).astype(float) for level in "FM"]
    age, educ, income = columns["age"], columns["educ"], columns["income"]
    parts = {
        "income ~ age + educ": [one, age, educ],
        "income ~ age + educ - 1": [age, educ],
        "income ~ area + age": [one, *area[1:], age],
        "income ~ area + sex + educ - 1": [*area, sex[1], educ],
        "income ~ .": [one, age, *area[1:], sex[1], educ],
        "educ ~ income": [one, income],
        "income ~ 1": [one],
    }
    return np.stack(parts[formula], axis=1), educ if formula.startswith("educ") else income


def textbook(x, y):
    n, k = x.shape
    beta, *_ = np.linalg.lstsq(x, y, rcond=None)
    residual = y - x @ beta
    variance = residual @ residual / (n - k)
    errors = np.sqrt(variance * np.diag(np.linalg.inv(x.T @ x)))
    t = beta / errors
    return beta, errors, t, 2 * stats.t.sf(np.abs(t), n - k), variance


@pytest.mark.parametrize("formula", FORMULAS)
def test_an_exact_release_gives_the_textbook_table(make, people_schema, people_columns, formula):
    fit = pc.ols(make(people_schema, people_columns), formula)
    x, y = design(formula, people_columns)
    beta, errors, t, p, variance = textbook(x, y)
    values = [list(v.values()) for v in (fit.params, fit.bse, fit.tvalues, fit.pvalues)]
    for mine, theirs in zip(values, (beta, errors, t, p), strict=True):
        assert mine == pytest.approx(theirs, rel=1e-8, abs=1e-290)
    half = stats.t.ppf(0.975, len(y) - x.shape[1]) * errors
    assert np.array(list(fit.conf_int(0.95).values())) == pytest.approx(
        np.stack([beta - half, beta + half], axis=1), rel=1e-8
    )
    assert fit.residual_std_error == pytest.approx(np.sqrt(variance), rel=1e-8)
    centre = 0.0 if formula.endswith("- 1") else y.mean()
    expected = 1 - variance * (len(y) - x.shape[1]) / ((y - centre) ** 2).sum()
    assert fit.rsquared == pytest.approx(expected, abs=1e-8)
    slopes = x.shape[1] - (not formula.endswith("- 1"))
    if slopes:
        f = expected / (1 - expected) * (len(y) - x.shape[1]) / slopes
        assert fit.f_test.statistic == pytest.approx(f, rel=1e-7)
        assert fit.f_test.p_value == pytest.approx(
            stats.f.sf(f, slopes, len(y) - x.shape[1]), rel=1e-5, abs=1e-290
        )
    else:
        assert fit.f_test is None
    assert fit.method == "wald"
    assert set(fit.privacy_share.values()) == {0.0}


@pytest.mark.parametrize("formula", FORMULAS)
def test_an_exact_release_gives_statsmodels_table(make, people_schema, people_columns, formula):
    api = pytest.importorskip("statsmodels.api")
    x, y = design(formula, people_columns)
    theirs, fit = api.OLS(y, x).fit(), pc.ols(make(people_schema, people_columns), formula)
    for mine, other in ((fit.params, theirs.params), (fit.bse, theirs.bse), (fit.pvalues, theirs.pvalues)):
        assert list(mine.values()) == pytest.approx(other, rel=1e-8, abs=1e-290)


@pytest.mark.parametrize("formula", FORMULAS)
def test_naive_without_noise_is_the_same_table(make, people_schema, people_columns, formula):
    release = make(people_schema, people_columns)
    naive, fit = pc.ols(release, formula, naive=True), pc.ols(release, formula)
    assert naive.bse == pytest.approx(fit.bse, rel=1e-9)
    assert naive.method == "naive"
    assert "NAIVE" in naive.summary()
    assert "NAIVE" not in fit.summary()


def test_a_numerically_singular_design_is_refused_with_the_columns_that_make_it(make):
    schema = pc.Schema.from_dict(
        {"columns": {n: {"lower": -4, "upper": 4} for n in ("a", "b", "c", "d", "y")}}
    )
    rng = np.random.default_rng(3)
    a, b, d = (rng.integers(-2, 3, 200).astype(float) for _ in range(3))
    release = make(schema, {"a": a, "b": b, "c": a + b, "d": d, "y": a + rng.uniform(-1, 1, 200)})
    with pytest.raises(ParameterError, match=r"E236.*column c is a linear combination of a, b\."):
        pc.ols(release, "y ~ a + d + b + c")
    assert pc.ols(release, "y ~ a + b + d").params["a"] == pytest.approx(1, abs=0.2)


def test_a_constant_column_is_named(make):
    schema = pc.Schema.from_dict({"columns": {n: {"lower": 0, "upper": 4} for n in ("a", "c", "y")}})
    a = np.arange(200) % 4.0
    release = make(schema, {"a": a, "c": np.full(200, 3.0), "y": a})
    with pytest.raises(ParameterError, match=r"E236.*column c is a linear combination of \(Intercept\)\."):
        pc.ols(release, "y ~ a + c")
    release = make(schema, {"a": a, "c": np.full(200, 2.0), "y": a})  # the middle: zero in scaled units
    with pytest.raises(ParameterError, match=r"E236.*column c has no values"):
        pc.ols(release, "y ~ a + c")


def test_the_sweep_inverts_and_keeps_the_residual():
    rng = np.random.default_rng(1)
    a = rng.normal(size=(50, 6))
    moment = a.T @ a
    swept = sweep(moment, "abcde")
    assert swept.inverse == pytest.approx(np.linalg.inv(moment[:5, :5]), rel=1e-9, abs=1e-12)
    assert swept.coefficients == pytest.approx(np.linalg.solve(moment[:5, :5], moment[:5, 5]), rel=1e-9)
    assert swept.residual == pytest.approx(moment[5, 5] - moment[5, :5] @ swept.coefficients, rel=1e-9)


def test_more_coefficients_than_rows_are_refused(make, people_schema, people_columns):
    few = {name: values[:4] for name, values in people_columns.items()}
    with pytest.raises(ParameterError, match=r"E236 4 rows are too few for 5 coefficients"):
        pc.ols(make(people_schema, few), "income ~ .")


def test_a_noisy_count_that_is_too_small_is_said_to_be_one():
    schema = pc.Schema.from_dict({"columns": {name: {"lower": 0, "upper": 1} for name in "abc"}})
    loss = pc.PureDP(epsilon=1e4, neighbours="add-remove")
    release = pc.release(np.zeros((2, 3)), schema=schema, loss=loss, randomness=rehearsal(1))
    with pytest.raises(ParameterError, match=r"E236 about 2 rows \(a noisy count\) are too few for 3 coeff"):
        pc.ols(release, "c ~ a + b")


def test_a_release_without_an_intercept_says_what_to_ask_for(make):
    schema = pc.Schema.from_dict(
        {"columns": {"x": {"lower": 0, "upper": 1}, "y": {"lower": 0, "upper": 1}}, "intercept": False}
    )
    columns = {"x": np.linspace(0, 1, 50), "y": np.linspace(0, 0.9, 50)}
    for formula in ("y ~ x", "y ~ x - 1"):
        with pytest.raises(ParameterError, match=r"E237.*intercept = true"):
            pc.ols(make(schema, columns), formula)
    centred = pc.Schema.from_dict(
        {"columns": {"x": {"lower": -1, "upper": 1}, "y": {"lower": -2, "upper": 2}}, "intercept": False}
    )
    assert pc.ols(make(centred, columns), "y ~ x - 1").params["x"] == pytest.approx(0.9)
    with pytest.raises(ParameterError, match="E237"):
        pc.ols(make(centred, columns, neighbours="add-remove"), "y ~ x - 1")


def test_without_a_law_there_are_estimates_and_no_intervals(make, people_schema, people_columns):
    fit = pc.ols(make(people_schema, people_columns, law=None), "income ~ age")
    assert fit.params["age"] == pytest.approx(
        textbook(*design("income ~ age + educ", people_columns))[0][1], rel=0.2
    )
    for ask in (
        fit.conf_int,
        lambda: fit.bse,
        lambda: fit.pvalues,
        lambda: fit.f_test,
        lambda: fit.privacy_share,
        lambda: fit.rsquared,
        fit.rsquared_interval,
        lambda: fit.residual_std_error,
        fit.residual_std_error_interval,
        fit.conf_set,
        lambda: fit.accepts("age", 0.0),
    ):
        with pytest.raises(ParameterError, match=r"E238.*symmetric-wishart or gaussian"):
            ask()
    for text in (fit.summary(), fit.to_latex(), json.dumps(fit.to_dict())):
        assert "age" in text
        assert "no known distribution" in text
    assert "standard errors include" not in fit.summary()
    assert fit.to_dict()["digits"] == 2
    row = next(line for line in fit.summary().splitlines() if line.startswith("age"))
    assert float(row.split()[1]) == float(f"{fit.params['age']:.2g}")
    assert list(fit.to_pandas().columns) == ["estimate"]


def test_a_rehearsal_is_labelled_on_every_output(rehearsed):
    fit = pc.ols(rehearsed, "income ~ age")
    for text in (fit.summary(), fit.to_latex(), json.dumps(fit.to_dict()), repr(fit), repr(fit.to_pandas())):
        assert "REHEARSAL" in text
    assert fit.to_pandas().attrs["labels"]


def test_a_release_is_not_labelled_a_rehearsal(made):
    fit = pc.ols(made, "income ~ age")
    for text in (fit.summary(), fit.to_latex(), json.dumps(fit.to_dict()), repr(fit)):
        assert "REHEARSAL" not in text


@pytest.mark.parametrize("words", [{"method": "magic"}, {"method": "wald", "naive": True}, {"method": None}])
def test_a_bad_method_is_refused(made, words):
    with pytest.raises(ParameterError, match="E239"):
        pc.ols(made, "income ~ age", **words)


@pytest.mark.parametrize("level", [0, 1, 0.3, 95, float("nan"), "0.9", True])
def test_a_bad_level_is_refused(made, level):
    with pytest.raises(ParameterError, match="E239"):
        pc.ols(made, "income ~ age").conf_int(level)


def test_the_summary_says_what_people_look_for(make, people_schema, people_columns):
    law = GaussianEnsemble(dimension=people_schema.dimension, scale=2.0)
    text = pc.ols(make(people_schema, people_columns, law=law), "income ~ age + educ").summary(0.9)
    for words in (
        "Estimate", "Std. Error", "t value", "Pr(>|t|)", "90 % interval", "***", "Signif. codes", "sampling",
        "privacy", "Residual standard error", "R-squared", "F-statistic", "Wald", "700 rows (public)",
        "Promise: zcdp differential privacy, rho = 1",
    ):  # fmt: skip
        assert words in text


def test_latex_escapes_names_and_frames_carry_numbers(make):
    schema = pc.Schema.from_dict({"columns": {n: {"lower": 0, "upper": 1} for n in ("a_b", "y")}})
    x = np.linspace(0, 1, 90)
    fit = pc.ols(make(schema, {"a_b": x, "y": x**2}), "y ~ a_b")
    assert r"a\_b &" in fit.to_latex()
    assert r"y $\sim$ a\_b" in fit.to_latex()
    frame = fit.to_pandas(0.9)
    assert frame.loc["a_b", "estimate"] == fit.params["a_b"]
    assert frame.loc["a_b", "lower"] == fit.conf_int(0.9)["a_b"][0]


def test_without_pandas_the_frame_is_refused_with_the_remedy(made, monkeypatch):
    true_import = builtins.__import__

    def without(name, *rest, **words):
        if name == "pandas":
            raise ImportError(name)
        return true_import(name, *rest, **words)

    fit = pc.ols(made, "income ~ age")
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ParameterError, match="pip install pandas"):
        fit.to_pandas()


def levelled(columns, *words):
    """The columns of a design from rows: a name, or the levels that one indicator stands for."""
    made = [np.ones(len(columns["age"]))]
    made += [
        columns[word] if isinstance(word, str) else np.isin(columns[word[0]], list(word[1])).astype(float)
        for word in words
    ]
    return np.column_stack(made)


@pytest.mark.parametrize(
    ("formula", "target", "words"),
    [
        ('income ~ age + C(area, Treatment("w"))', "income", ["age", ("area", "n"), ("area", "s")]),
        ("income ~ age + area - area[s]", "income", ["age", ("area", "w")]),
        ("income ~ area[s|w] + educ", "income", [("area", "sw"), "educ"]),
        ("income ~ area[n|w] + area[w] + educ", "income", [("area", "nw"), ("area", "w"), "educ"]),
        ("sex[M] ~ age + income", ("sex", "M"), ["age", "income"]),
    ],
)
@pytest.mark.parametrize("intercept", [True, False])
def test_levels_that_a_formula_chooses_are_in_the_matrix_already(
    make, people_schema, people_columns, formula, target, words, intercept
):
    if not intercept and ("C(" in formula or "area -" in formula):
        return  # a whole column then keeps its baseline
    x, y = levelled(people_columns, *words), levelled(people_columns, target)[:, 1]
    x = x if intercept else x[:, 1:]
    expected = np.linalg.lstsq(x, y, rcond=None)[0]
    fit = pc.ols(make(people_schema, people_columns), formula + ("" if intercept else " - 1"))
    assert list(fit.params.values()) == pytest.approx(expected.tolist(), rel=1e-6, abs=1e-9)
    errors = np.sqrt(
        ((y - x @ expected) ** 2).sum() / (len(x) - x.shape[1]) * np.diag(np.linalg.inv(x.T @ x))
    )
    assert list(fit.bse.values()) == pytest.approx(errors.tolist(), rel=1e-5)
    assert fit.predict(people_columns) == pytest.approx(x @ expected, rel=1e-6, abs=1e-9)


def test_merged_levels_carry_the_noise_of_all_of_them(make, people_schema, people_columns):
    """400 draws of the noise: the spread of the estimates is the standard error within 15 percent, four deviations."""
    law = GaussianEnsemble(dimension=people_schema.dimension, scale=3.0)
    source, found, privacy = rehearsal(8), [], []
    for _ in range(400):
        release = make(people_schema, people_columns, noise=law.simulate(source), law=law)
        fit = pc.ols(release, "income ~ area[s|w] + age", method="wald")
        found.append(fit.params["area[s|w]"])
        privacy.append(fit.bse["area[s|w]"] ** 2 * fit.privacy_share["area[s|w]"])
    assert np.std(found) == pytest.approx(np.sqrt(np.mean(privacy)), rel=0.15)


@pytest.fixture(scope="module")
def wide():
    """Twelve regressors, half of the variance explained: a table, its schema and a release of 178 rows at ε = 1."""
    rng = np.random.default_rng(2)
    columns = rng.uniform(-1, 1, (178, 12))
    target = np.clip(columns @ np.linspace(0.3, 0, 12) / 2 + rng.normal(0, 0.15, 178), -1, 1)
    rows = np.column_stack([columns, target])
    names = [*(f"x{i}" for i in range(12)), "y"]
    schema = pc.Schema.from_dict({"columns": {name: {"lower": -1, "upper": 1} for name in names}})
    loss = pc.PureDP(epsilon=1, neighbours="replace-one")
    return rows, schema, pc.release(rows, schema=schema, loss=loss)


def explained(rows, predicted):
    return 1 - np.mean((rows[:, -1] - predicted) ** 2) / np.var(rows[:, -1])


def test_a_drowned_fit_offers_slopes_that_predict_no_worse_than_the_mean(wide):
    """Of 300 fresh releases no estimate explained more than -2.8; 8 had shrunk slopes below -0.3, for a noisy mean."""
    rows, _, release = wide
    fit = pc.ols(release, "y ~ .")
    with pytest.warns(UserWarning, match=r"Use fit\.shrunk\.predict\(rows\)"):
        assert explained(rows, fit.predict(rows[:, :-1])) < -0.5
    assert explained(rows, fit.shrunk.predict(rows[:, :-1])) > -0.3
    values = fit.to_dict()
    assert (
        values["shrunk"]
        == fit.shrunk.params
        == {row["name"]: row["shrunk"] for row in values["coefficients"]}
    )
    words = fit.summary()
    assert "To predict, take the column shrunk (ridge, penalty" in words
    assert f"{fit.shrunk.params['x0']:.3e}" in words or f"{fit.shrunk.params['x0']:.4f}" in words
    latex, frame = fit.to_latex(), fit.summary_frame()
    assert r"privacy share & shrunk \\" in latex
    assert "To predict, take the column shrunk" in latex
    assert frame["shrunk"].to_dict() == fit.shrunk.params


def test_slopes_that_are_shrunk_to_nothing_are_zero(wide):
    """At so small a budget repair leaves one direction or none, and slopes of rounding alone, 1e-17 and less."""
    rows, schema, _ = wide
    found = [
        pc.ols(
            pc.release(rows, schema=schema, loss=pc.PureDP(epsilon="0.01", neighbours="replace-one")), "y ~ ."
        )
        for _ in range(3)
    ]
    slopes = np.abs([value for fit in found for value in list(fit.shrunk.params.values())[1:]])
    assert (slopes == 0).any()
    assert not ((slopes > 0) & (slopes < 1e-12)).any()
    assert "e-1" not in found[0].to_latex()


def test_where_noise_is_small_the_shrunk_slopes_are_those_of_the_fit_and_are_not_printed(wide):
    rows, schema, _ = wide
    loss = pc.PureDP(epsilon=100_000, neighbours="replace-one")
    fit = pc.ols(pc.release(rows, schema=schema, loss=loss), "y ~ .")
    assert fit.shrunk.params == pytest.approx(fit.params, abs=0.01)
    assert fit.to_dict()["shrunk"] is None
    assert "shrunk" not in fit.summary()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit.predict(rows[:, :-1])


@pytest.mark.parametrize("formula", ["y ~ x0 - 1", "y ~ 1"])
def test_a_fit_that_ridge_does_not_know_has_no_shrunk_slopes(wide, formula):
    fit = pc.ols(wide[2], formula)
    assert fit.shrunk is None
    assert "shrunk" not in fit.summary()


def test_a_fit_predicts_rows_of_levels_that_count_with_the_baseline(make):
    """No row has the level w, so noise hides it: a frame may have it, and an array has the slopes that are left."""
    rng = np.random.default_rng(4)
    columns = {"area": rng.choice(["n", "s"], 900), "age": rng.uniform(0, 1, 900)}
    columns["y"] = 0.5 * columns["age"] + 0.2 * (columns["area"] == "s")
    bounds = {"lower": 0, "upper": 1}
    schema = pc.Schema.from_dict(
        {"columns": {"area": {"levels": ["n", "s", "w"]}, "age": bounds, "y": bounds}}
    )
    release = make(schema, columns, law=GaussianEnsemble(dimension=schema.dimension, scale=0.5))
    fit = pc.ols(release, "y ~ area + age")
    assert fit.merged == ("area[w]",)
    frame = {"area": ["n", "s", "w"], "age": [0.0, 0.0, 1.0]}
    for made in (fit, fit.shrunk):
        np.testing.assert_allclose(made.predict(frame), [0, 0.2, 0.5], atol=0.02)
        np.testing.assert_allclose(made.predict([[0, 0], [1, 0], [0, 1]]), [0, 0.2, 0.5], atol=0.02)
