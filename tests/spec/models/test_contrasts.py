"""Combinations of coefficients: without noise the textbook's numbers, with noise as often right as they say."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import privcov as pc
from privcov.errors import ParameterError
from privcov.models.hypotheses import hypotheses, hypothesis, says_a_value
from privcov.noise.laws import GaussianEnsemble
from privcov.noise.randomness import rehearsal
from privcov_lab.bench.inference import LOSSES, TRUTH, simulated_release

AT_LEAST = ("together", "new row")
FORMULA = "income ~ age + educ + area + sex"


@pytest.fixture(scope="module")
def exact(make, people_schema, people_columns):
    return make(people_schema, people_columns)


@pytest.fixture(scope="module")
def textbook(people_columns):
    """The design, the target, coefficients, their covariance and the residual variance, from the rows."""
    c = people_columns
    x = np.column_stack(
        [np.ones(len(c["age"])), c["age"], c["educ"], c["area"] == "s", c["area"] == "w", c["sex"] == "M"]
    ).astype(float)
    inverse = np.linalg.inv(x.T @ x)
    b = inverse @ x.T @ c["income"]
    s2 = float(((c["income"] - x @ b) ** 2).sum()) / (len(x) - 6)
    return x, c["income"], b, s2 * inverse, s2


def test_without_noise_every_number_is_the_textbook_s(exact, textbook, people_columns):
    x, y, b, covariance, s2 = textbook
    fit, n = pc.ols(exact, FORMULA), len(y)
    assert fit.cov_params() == pytest.approx(covariance, rel=1e-6)
    r2 = 1 - s2 * (n - 6) / ((y - y.mean()) ** 2).sum()
    assert fit.rsquared_adj == pytest.approx(1 - (1 - r2) * (n - 1) / (n - 6), abs=1e-6)
    likelihood = stats.norm(scale=np.sqrt(s2 * (n - 6) / n)).logpdf(y - x @ b).sum()
    assert fit.aic == pytest.approx(2 * 6 - 2 * likelihood, rel=1e-6)
    assert fit.bic == pytest.approx(6 * np.log(n) - 2 * likelihood, rel=1e-6)
    standard = b[1:] * x[:, 1:].std(axis=0) / y.std()
    assert list(fit.standardized_params.values()) == pytest.approx(standard.tolist(), abs=1e-6)
    inflation = np.diag(np.linalg.inv(np.corrcoef(x[:, 1:].T)))
    assert list(fit.vif.values()) == pytest.approx(inflation.tolist(), rel=1e-5)
    frame = fit.summary_frame()
    assert frame["coef"].tolist() == pytest.approx(b.tolist(), rel=1e-5)
    assert frame["std err"].tolist() == pytest.approx(np.sqrt(np.diag(covariance)).tolist(), rel=1e-5)


@pytest.mark.parametrize("method", ["wald", "score"])
def test_a_combination_is_tested_as_in_the_textbook(exact, textbook, method):
    x, _, b, covariance, _ = textbook
    fit = pc.ols(exact, FORMULA, method=method)
    c = np.array([0.0, 1.0, -0.5, 0, 0, 0])
    error = np.sqrt(c @ covariance @ c)
    found = fit.t_test({"age": 1, "educ": -0.5}, value=0.3)
    t = (c @ b - 0.3) / error
    freedom = len(x) - 6
    assert found.estimate == pytest.approx(c @ b, rel=1e-6)
    assert found.std_error == pytest.approx(error, rel=1e-5)
    if method == "wald":  # the score test divides by the residuals of the hypothesis, not of the fit
        assert found.statistic == pytest.approx(t, rel=1e-5)
        assert found.p_value == pytest.approx(2 * stats.t.sf(abs(t), freedom), rel=1e-4)
        half = stats.t.ppf(0.975, freedom) * error
        assert (found.lower, found.upper) == pytest.approx((c @ b - half, c @ b + half), rel=1e-5)
    rows = np.eye(6)[[3, 4]]
    size = (rows @ b) @ np.linalg.inv(rows @ covariance @ rows.T) @ (rows @ b) / 2
    several = fit.wald_test(["area[s]", "area[w]"])
    if method == "wald":
        assert several.statistic == pytest.approx(size, rel=1e-4)
    assert several.p_value == pytest.approx(stats.f.sf(size, 2, freedom), rel=0.1)
    assert fit.compare_f_test(pc.ols(exact, "income ~ age + educ + sex", method=method)) == several


@pytest.mark.parametrize("method", ["wald", "score", "bootstrap"])
def test_one_coefficient_is_the_table_s(make, people_schema, people_columns, method):
    law = GaussianEnsemble(dimension=people_schema.dimension, scale=8.0)
    release = make(people_schema, people_columns, noise=law.simulate(rehearsal(5)), law=law)
    fit = pc.ols(release, "income ~ age + educ", method=method)
    for name, ends in fit.conf_int().items():
        one = fit.t_test(name)
        assert (one.lower, one.upper) == pytest.approx(ends, rel=1e-7)
        assert one.p_value == pytest.approx(fit.pvalues[name], rel=1e-7)
        assert one.estimate == pytest.approx(fit.params[name])
    assert fit.wald_test(["age", "educ"]).p_value == pytest.approx(fit.f_test.p_value, rel=1e-6)


@pytest.mark.parametrize("method", ["score", "wald"])
def test_the_f_test_counts_what_a_frame_cut_off_as_coefficients_do(method):
    """A release with ``cut="counted"`` and one slope: F said p = 0.64, the slope and its Wald test 0.74."""
    source = np.random.default_rng(3)
    x = source.normal(size=3_000)
    rows = np.clip(np.column_stack([x, 0.1 * x + source.normal(size=3_000)]), -8, 8)
    schema = pc.Schema.from_dict({"columns": {name: {"lower": -8, "upper": 8} for name in ("x", "y")}})
    made = pc.release(
        rows,
        schema=schema,
        loss=pc.PureDP(epsilon=1, neighbours="replace-one"),
        frame="scales",
        cut="counted",
        randomness=rehearsal(2),
    )
    fit = pc.ols(made, "y ~ x", method=method)
    assert fit.uncertainty.doubt.any()
    assert fit.f_test.p_value == pytest.approx(fit.pvalues["x"], rel=0.02)
    assert fit.f_test.p_value == pytest.approx(fit.wald_test(["x"]).p_value, rel=1e-3)


def test_predictions_come_with_the_textbook_s_intervals(exact, textbook, people_columns):
    x, _, b, covariance, s2 = textbook
    fit, few = pc.ols(exact, FORMULA), {name: values[:5] for name, values in people_columns.items()}
    assert fit.predict(few) == pytest.approx(x[:5] @ b, rel=1e-6)
    assert fit.predict(x[:5, 1:]) == pytest.approx(x[:5] @ b, rel=1e-6)
    made = fit.get_prediction(few, level=0.9)
    t, variance = stats.t.ppf(0.95, len(x) - 6), np.einsum("ij,jk,ik->i", x[:5], covariance, x[:5])
    assert made.upper - made.mean == pytest.approx(t * np.sqrt(variance), rel=1e-4)
    assert made.mean - made.observed_lower == pytest.approx(t * np.sqrt(variance + s2), rel=1e-4)


def test_corrections_are_those_of_r(exact):
    fit = pc.ols(exact, FORMULA)
    plain = [fit.pvalues[name] for name in fit.vif]
    expected = stats.false_discovery_control(plain, method="bh")
    assert list(fit.adjusted_pvalues("bh").values()) == pytest.approx(expected.tolist())
    holm, bonferroni = (list(fit.adjusted_pvalues(word).values()) for word in ("holm", "bonferroni"))
    assert bonferroni == pytest.approx([min(1.0, 5 * p) for p in plain])
    assert all(p <= h <= b for p, h, b in zip(plain, holm, bonferroni, strict=True))
    assert min(holm) == pytest.approx(5 * min(plain))


@pytest.mark.parametrize(
    ("ask", "code"),
    [
        (lambda fit: fit.t_test("nobody"), "E231"),
        (lambda fit: fit.t_test({"age": 1, "nobody": 1}), "E231"),
        (lambda fit: fit.t_test([1.0]), "E239"),
        (lambda fit: fit.t_test({}), "E239"),
        (lambda fit: fit.t_test({"age": "x"}), "E239"),
        (lambda fit: fit.t_test([np.nan] * 6), "E239"),
        (lambda fit: fit.t_test("age", level=2), "E239"),
        (lambda fit: fit.wald_test([]), "E239"),
        (lambda fit: fit.wald_test(["age", {"age": 2}]), "E239"),
        (lambda fit: fit.compare_f_test(fit), "E239"),
        (lambda fit: fit.adjusted_pvalues("tukey"), "E239"),
        (lambda fit: fit.predict([[1.0]]), "E257"),
    ],
)
def test_what_cannot_be_asked_is_refused(exact, ask, code):
    with pytest.raises(pc.PrivcovError, match=code):
        ask(pc.ols(exact, FORMULA))


def test_a_mechanism_without_a_law_predicts_and_tests_nothing(make, people_schema, people_columns):
    fit = pc.ols(make(people_schema, people_columns, law=None), FORMULA)
    assert np.isfinite(fit.predict(people_columns)).all()
    asks = (fit.cov_params, fit.summary_frame, fit.adjusted_pvalues, lambda: fit.aic)
    for ask in (*asks, lambda: fit.t_test("age"), lambda: fit.get_prediction(people_columns)):
        with pytest.raises(pc.PrivcovError, match="E238"):
            ask()


def test_where_the_noise_is_too_large_criteria_and_inflation_say_nothing(make, people_schema, people_columns):
    law = GaussianEnsemble(dimension=people_schema.dimension, scale=2000.0)
    release = make(people_schema, people_columns, noise=law.simulate(rehearsal(2)), law=law)
    fit = pc.ols(release, "income ~ age + educ")
    assert fit.uncertainty.drowned
    assert np.isnan(
        [fit.aic, fit.bic, *(fit.vif[name] for name in fit.vif if name in fit.uncertainty.drowned)]
    ).all()


@pytest.mark.parametrize("rows", [400, 3_000, 8_000, 100_000])
def test_inflation_and_standardized_slopes_are_told_where_they_mean_something(rows):
    """25 releases, columns correlated .9. Inflation off by a factor of 2 was told in a third of the smaller ones.

    Told ones may be off by so much once in twenty; half of those of the largest tables are told at least.
    """
    bounds = {"a": (0, 100), "b": (0, 12), "y": (-20, 80)}
    schema = pc.Schema.from_dict(
        {"columns": {n: {"lower": lo, "upper": hi} for n, (lo, hi) in bounds.items()}}
    )
    loss = pc.ApproxDP(epsilon=1, delta="1e-6", neighbours="replace-one")
    off, told, rng = [], 0, np.random.default_rng(rows)
    for seed in range(25):
        z, own = rng.normal(size=(2, rows))
        a, b = 50 + 10 * z, np.clip(np.exp(1 + 0.45 * z + 0.22 * own), 0, 12)
        table = np.column_stack([a, b, 5 + 0.6 * a - 1.5 * b + rng.normal(0, 4, rows)])
        release = pc.release(
            table, schema=schema, loss=loss, mechanism="gaussian", randomness=rehearsal(seed)
        )
        fit, true = pc.ols(release, "y ~ a + b"), 1 / (1 - np.corrcoef(a, b)[0, 1] ** 2)
        off += [abs(np.log(value / true)) > np.log(2) for value in fit.vif.values() if np.isfinite(value)]
        told += np.isfinite(list(fit.vif.values())).all()
        assert not fit.uncertainty.hides or np.isnan(list(fit.standardized_params.values())).all()
    assert sum(off) <= 0.05 * len(off) + 2
    assert told >= 12 or rows < 100_000
    assert told == 0 or rows > 400


def counted(name, rows, tables, seed):
    """How many tables hold the truth in each interval, and how many reject what is true."""
    source, held = rehearsal(seed), dict.fromkeys(("contrast", "mean", "new row", "together", "wald"), 0)
    truth = np.array(list(TRUTH.values()))
    at = np.array([1.0, 0.6, -0.5])
    rng = np.random.default_rng(seed)
    for _ in range(tables):
        fit = pc.ols(simulated_release(name, LOSSES[name], rows, source), "y ~ x1 + x2")
        one = fit.t_test({"x1": 1, "x2": 2}, value=truth[1] + 2 * truth[2])
        held["contrast"] += one.lower <= truth[1] + 2 * truth[2] <= one.upper
        assert (one.p_value >= 0.05) == (one.lower <= truth[1] + 2 * truth[2] <= one.upper)
        made = fit.get_prediction(at[None, 1:])
        held["mean"] += made.lower[0] <= at @ truth <= made.upper[0]
        new = at @ truth + rng.normal(0, 0.15)
        held["new row"] += made.observed_lower[0] <= new <= made.observed_upper[0]
        ends = fit.simultaneous_conf_int()
        held["together"] += all(ends[n][0] <= value <= ends[n][1] for n, value in TRUTH.items())
        held["wald"] += fit.wald_test(["x1", "x2"], [truth[1], truth[2]]).p_value >= 0.05
    return held


@pytest.mark.parametrize(
    ("name", "rows"), [("gaussian", 2_000), pytest.param("symmetric-wishart", 500, marks=pytest.mark.long)]
)
def test_intervals_and_tests_of_combinations_hold_as_often_as_said(name, rows):
    """120 tables: false alarm 1e-4 each at 0.95; a coverage of 0.80 passes less than one time in ten.

    All coefficients together, and new rows, are held at least as often as said: there is no upper limit for them.
    """
    low, high = stats.binom.ppf([5e-5, 1 - 5e-5], 120, 0.95)
    for what, times in counted(name, rows, 120, 31).items():
        assert times >= low, what
        assert times <= high or what in AT_LEAST, what


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "rows"),
    [("gaussian", 2_000), ("gaussian", 20_000), ("symmetric-wishart", 500), ("symmetric-wishart", 5_000)],
)
def test_over_many_tables_they_hold_within_two_points(name, rows):
    """1,000 tables: 0.93 to 0.975 is what we promise; at a true 0.95 the false-alarm rate is 0.4 percent each."""
    for what, times in counted(name, rows, 1000, 32).items():
        assert 930 <= times <= (1000 if what in AT_LEAST else 975), (what, times)


# --- hypotheses as text -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "weights", "value"),
    [
        ("age = 0", {"age": 1}, 0.0),
        ("age", {"age": 1}, 0.0),
        ("age - educ = 0.5", {"age": 1, "educ": -1}, 0.5),
        ("age=educ", {"age": 1, "educ": -1}, 0.0),
        ("2*age - .5 * educ = 1e1 - 3", {"age": 2, "educ": -0.5}, 7.0),
        ("-(Intercept) + 3 = age", {"(Intercept)": -1, "age": -1}, -3.0),
        ("0.25 = `a - b`", {"a - b": -1}, -0.25),
        ("sex[M] = sex[a = b, c]", {"sex[M]": 1, "sex[a = b, c]": -1}, 0.0),
        ("a - b", {"a - b": 1}, 0.0),
        ("age + age = 1", {"age": 2}, 1.0),
        ("a - b = 1", {"a - b": 1}, 1.0),
        ("`p=q` = 2*`r,s`", {"p=q": 1, "r,s": -2}, 0.0),
        ("p=q = 1", {"p=q": 1}, 1.0),
        ("```t``` = 1", {"`t`": 1}, 1.0),
        ("sex['a = b, c'] + sex[\"M\"]", {"sex[a = b, c]": 1, "sex[M]": 1}, 0.0),
        ("3*7 = 7 - 2", {"7": 2}, -2.0),
        ("age-educ", {"age": 1, "educ": -1}, 0.0),
    ],
)
def test_a_hypothesis_is_read_as_it_is_meant(text, weights, value):
    names = ["(Intercept)", "age", "educ", "a - b", "sex[M]", "sex[a = b, c]", "p=q", "r,s", "`t`", "7"]
    assert hypothesis(text, names) == (weights, value)


@pytest.mark.parametrize(
    "text",
    ["", "= 1", "age =", "age educ", "age + 1", "age == 1", "2age = 1", "age ** 2", "age = 1e999", "*age"],
)
def test_what_is_no_hypothesis_is_refused(text):
    with pytest.raises(ParameterError, match=r"E239|E231"):
        fit_of(text)


def fit_of(text):
    """The weights of a text, of which every name is known."""
    weights, value = hypothesis(text, ["age", "educ"])
    if unknown := set(weights) - {"age", "educ"}:
        raise ParameterError("E231", f"no {unknown}")
    return weights, value


def test_commas_and_equals_signs_of_names_are_no_signs_of_hypotheses():
    """Backticks were promised to hold them, and did not; "a - b" was a coefficient, and "a - b = 0" a difference."""
    names = ["p=q", "r,s", "a - b", "a", "b"]
    assert hypotheses("`r,s` = 0, p=q = 1, a - b = 0", names) == ["`r,s` = 0", "p=q = 1", "a - b = 0"]
    assert not says_a_value("`p=q` - p=q", names)
    assert says_a_value("`p=q` = a", names)
    assert hypothesis("a - b", names)[0] == hypothesis("a - b = 0", names)[0] == {"a - b": 1}


def test_hypotheses_are_tested_as_their_weights_are(exact):
    fit = pc.ols(exact, FORMULA)
    one, same = fit.t_test("age - 2*educ = 0.3"), fit.t_test({"age": 1, "educ": -2}, value=0.3)
    assert one == same
    assert fit.t_test("age", value=0.5) == fit.t_test("age = 0.5")
    both = fit.wald_test("age = 0.3, educ = age")
    assert both == fit.wald_test([{"age": 1}, {"educ": 1, "age": -1}], values=[0.3, 0.0])
    assert both == fit.wald_test(["age = 0.3", "educ = age"])
    for ask in (lambda: fit.t_test("age = 1", value=2), lambda: fit.t_test("age - age = 0")):
        with pytest.raises(ParameterError, match="E239"):
            ask()
    with pytest.raises(ParameterError, match="E231"):
        fit.t_test("age = nobody")
