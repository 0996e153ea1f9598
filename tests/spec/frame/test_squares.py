"""Squared distances have a round of their own, and released columns the standard deviations that it finds."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import privcov as pc
from privcov.errors import ParameterError
from privcov.frame.counting import Squares
from privcov.mechanisms import find
from privcov.models.association import correlation, partial_correlation
from privcov.models.moments import EntryNoise
from privcov.noise.laws import GaussianEnsemble
from privcov.noise.randomness import rehearsal
from privcov.planning.framed import in_frame
from privcov.releases.certificate import Interval
from privcov.releases.means import centred_squares
from privcov.releases.rounds import Norms, share
from privcov.report.page.models import components as components_of
from privcov.report.rounds import told
from privcov.schema import Numeric
from privcov.schema.grid import Grid
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
    asked = {"schema": SCHEMA, "loss": LOSS, "frame": "scales", "cut": "counted", **words}
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


def test_clearly_cut_columns_have_the_deviations_of_all_rows():
    """Fixed streams, and a factor of 1 for incomes fails: rows as they were added up have 0.9 of their deviation."""
    releases = [
        made(seed, loss=pc.ApproxDP(epsilon=8, delta="1e-6", neighbours="replace-one")) for seed in range(2)
    ]
    true = ROWS[:, 0].std()
    found, before = (
        np.mean([np.sqrt(one.covariance(repair="none")[0, 0]) for one in each])
        for each in (releases, [one.as_added for one in releases])
    )
    assert abs(found / true - 1) < abs(before / true - 1) / 2
    assert all(disagreements(one) == () for one in releases)


def test_intervals_count_what_may_have_been_cut_and_say_so():
    """Fixed streams. What was cut is not clear here: columns stay as they were added up, and intervals are wider."""
    slope = np.polyfit(ROWS[:, 1], ROWS[:, 0], 1)[0]
    releases = [made(seed) for seed in range(4)]
    fits, before = (
        [pc.ols(one, "income ~ age").table for one in each]
        for each in (releases, [one.as_added for one in releases])
    )
    assert all((one.calibration.factors == 1).all() for one in releases)
    assert all(low <= slope <= high for low, high in (fit.conf_int()["age"] for fit in fits))
    errors = np.array([[fit.bse["age"] for fit in each] for each in (fits, before)])
    assert (errors[0] > 1.5 * errors[1]).all()
    assert np.median(errors[0]) < slope / 3
    assert "intervals allow for" in fits[0].summary()
    assert "--cut counted" in before[0].summary()


@pytest.mark.parametrize("upper", [1e-265, 1e-245, 1e-160, 1e160, 8e307])
@pytest.mark.parametrize("rho", ["1e-60", "1e-9", "1", "1e30"])
@pytest.mark.filterwarnings("error")
def test_no_bounds_and_no_noise_end_in_an_error(upper, rho):
    """Bounds as close and as far apart as a schema admits: no distance was wide enough, which showed after payment."""
    columns = {"a": {"lower": 0, "upper": upper}, "b": {"lower": 0, "upper": 1}}
    rows = np.random.default_rng(6).uniform(0.25, 0.5, (200, 2)) * [upper, 1]
    loss = pc.ZCDP(rho=rho, neighbours="replace-one")
    schema = pc.Schema.from_dict({"columns": columns})
    for frame in ("scales", "shape"):
        order = {"schema": schema, "loss": loss, "frame": frame, "cut": "counted"}
        made = pc.release(rows, randomness=rehearsal(2), **order)
        assert [one.name for one in made.certificate.rounds].count("squares") == 1


def test_columns_of_which_little_is_cut_keep_the_covariances_of_the_matrix():
    """Normal columns in fixed streams, bounds forty times too wide: a factor is another than 1 once in twenty times."""
    rng = np.random.default_rng(2)
    rows = rng.normal(50, 10, (5_000, 2)) @ [[1.0, 0.3], [0.0, 1.0]]
    ends = {name: {"lower": 50 - 1_200, "upper": 50 + 1_200} for name in "ab"}
    schema = pc.Schema.from_dict({"columns": ends})
    releases = [made(seed, rows=rows, schema=schema) for seed in range(4)]
    kept = [one for one in releases if (one.calibration.factors == 1).all()]
    assert len(kept) >= 3
    for one in kept:
        matrices = [each.covariance(repair="none") for each in (one, one.as_added)]
        assert matrices[0] == pytest.approx(matrices[1], rel=1e-9)
        fits = [pc.ols(each, "a ~ b").table for each in (one, one.as_added)]
        assert fits[0].params["b"] == pytest.approx(fits[1].params["b"])
        assert fits[0].bse["b"] > fits[1].bse["b"]


TOLD = {
    "scales": ({"frame": "scales"}, {"scales": 7991, "radius": 3823, "means": 824123}, 600883180502470),
    "pure": (
        {"frame": "auto", "loss": pc.PureDP(epsilon=2, neighbours="add-remove")},
        {"scales": 7921, "radius": 3992, "means": 400897},
        488949881119049,
    ),
    "shape": (
        {"frame": "shape"},
        {"scales": 7991, "shape": 777292, "radius": 4078, "means": 711290},
        541296373811773,
    ),
    "means": (
        {"frame": "scales", "purpose": "means", "mechanism": "gaussian"},
        {"scales": 7991, "radius": 3823, "means": 920322},
        764860350825403,
    ),
}
"""Releases without squares, as recorded: rounds with their sums, and that of the matrix."""


@pytest.mark.parametrize("name", TOLD)
def test_a_cut_that_is_told_changes_no_bit_of_a_release(name):
    words, sums, whole = TOLD[name]
    one = pc.release(
        table(4_000), schema=SCHEMA, randomness=rehearsal(5), **{"loss": LOSS, "cut": "told", **words}
    )
    rounds = one.certificate.rounds
    assert {each.name: sum(each.answers) % 10**6 for each in rounds} == sums
    assert [each.name for each in rounds] == list(sums)
    assert sum(map(int, one.upper)) == pytest.approx(
        whole, rel=1e-9
    )  # other machines may round a scale otherwise
    assert "cut" not in one.certificate.options
    assert one.calibration is None
    assert any(
        "No interval counts the part that was cut" in line and "--cut counted" in line for line in told(one)
    )


@pytest.mark.parametrize(
    ("words", "about"),
    [
        ({"frame": "declared"}, "no frame cuts rows here"),
        ({"frame": "auto", "row_norm": "private"}, "no frame cuts rows here"),
        ({"frame": "scales", "cut": "some"}, "cut must be told or counted, got some"),
    ],
)
def test_nothing_to_count_is_refused_before_payment(words, about, tmp_path):
    ledger = pc.Ledger.init(tmp_path / "l", LOSS)
    for ask in (pc.release, pc.check):
        with pytest.raises(ParameterError, match=f"E218.*{about}"):
            ask(ROWS, schema=SCHEMA, loss=LOSS, ledger=ledger, **{"cut": "counted", **words})
    assert ledger.balance().account.left == {"epsilon": 2, "delta": Fraction(1, 10**6)}


@pytest.mark.parametrize("kind", ["approximate", "pure"])
def test_a_forged_round_of_squares_is_found(kind):
    loss = LOSS if kind == "approximate" else pc.PureDP(epsilon=2, neighbours="replace-one")
    one = made(loss=loss)
    assert disagreements(one) == ()
    assert one.certificate.options["cut"] == "counted"
    *looks, means, squares, radius = one.certificate.rounds
    other = replace(squares, answers=(10**9, *squares.answers[1:]))
    wide = replace(squares, intervals=(Interval(-1e6, 1e6, 0.0, 0.0), *squares.intervals[1:]))
    cheap = replace(
        squares, loss=replace(squares.loss, **{w: a / 2 for w, a in squares.loss.amounts.items()})
    )
    for what in ([radius], [other, radius], [wide, radius], [cheap, radius], [radius, squares]):
        made_up = replace(one.certificate, rounds=(*looks, means, *what))
        assert disagreements(replace(one, certificate=made_up)) != ()
    unsaid = {word: text for word, text in one.certificate.options.items() if word != "cut"}
    assert disagreements(replace(one, certificate=replace(one.certificate, options=unsaid))) != ()


def test_what_means_take_of_the_loss_where_they_come_first_pays_the_squares_too():
    shares = pc.check(ROWS, schema=SCHEMA, loss=LOSS, frame="scales", cut="counted", purpose="means").frame
    assert shares["means"] + shares["squares"] == Fraction(3, 5)
    assert list(shares) == ["scales", "means", "squares", "radius"]


@pytest.fixture(scope="module")
def by_score():
    rng, count = np.random.default_rng(1000), 10_000
    school, years, hours = rng.normal(13, 2.5, count), rng.gamma(2.5, 6, count), rng.normal(38, 6, count)
    wage = 900 * school + 350 * years + 200 * hours + 9_000 * rng.lognormal(0, 0.9, count)
    ends = {"school": (0, 30), "years": (0, 80), "hours": (0, 100), "wage": (0, 500_000)}
    schema = pc.Schema.from_dict({"columns": {n: {"lower": a, "upper": b} for n, (a, b) in ends.items()}})
    rows = np.column_stack([school, years, hours, wage])
    loss = pc.PureDP(epsilon="0.2", neighbours="replace-one")
    return pc.ols(made(1000, rows=rows, schema=schema, loss=loss), "wage ~ school + years", method="score")


def test_an_interval_by_score_is_no_narrower_than_doubt_about_units_makes_it(by_score):
    """One stream. A set by score would count noise alone; with the doubt left out of the statistic this fails."""
    fit = by_score.table
    low, high = fit.conf_int()["school"]
    assert low < 895 < high
    assert high - low > 2 * fit.bse["school"]


def test_with_doubt_about_units_the_ends_of_a_set_are_what_the_test_just_rejects(by_score):
    """Ends were moved by one rule and p-values by another: 0.0464 stood beside an interval that had zero."""
    fit, shown = by_score.table, 0
    for name, ends in fit.conf_int().items():
        for end in ends:
            if np.isfinite(end):
                assert fit.t_test(name, end).p_value == pytest.approx(0.05, abs=1e-6), name
                shown += 1
    assert shown >= 4


def test_without_noise_to_speak_of_the_round_states_the_variances():
    one = made(loss=pc.ZCDP(rho=10**9, neighbours="replace-one"))
    asked = {each.name: each for each in one.certificate.rounds}
    halves, share, std = centred_squares(asked["squares"], asked["means"], count=len(ROWS))
    assert halves * np.sqrt(share) == pytest.approx(ROWS.std(axis=0), rel=1e-3)
    assert (std < 1e-3).all()


def test_a_file_gives_the_same_numbers_and_one_without_the_round_those_of_shortened_rows(tmp_path):
    one = pc.release(ROWS, schema=SCHEMA, loss=LOSS, frame="scales", cut="counted")
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


@pytest.mark.parametrize("cut", ["told", "counted", None])
def test_every_model_says_whether_its_intervals_count_the_cut(cut):
    release = made(cut=cut) if cut else made(cut="told", frame="declared")
    ridge, components, fit = pc.ridge(release, "income"), pc.pca(release), pc.ols(release, "income ~ age")
    bias = f"{Norms.of(release).bias:.1g}" if cut else ""
    words = {
        "not_counted": f"is not counted here: it may have moved correlations by about {bias}",
        "counted": f"for the error of standard deviations, and for one of {bias} on correlations",
    }
    for key, sentence in words.items():
        here = key == {"told": "not_counted", "counted": "counted", None: None}[cut]
        for values in (ridge.to_dict(), components.to_dict()):
            assert (sentence in (values[key] or "")) == here
        for text in (ridge.summary(), str(components), str(components_of(release).body)):
            assert (sentence in " ".join(text.split())) == here
    assert ("It does not count what the private frame cut off" in ridge.summary()) == (cut == "counted")
    assert ("R-squared of the shortened rows" in fit.summary()) == (cut == "told")
    assert cut is None or ("No interval counts" in told(release)[-1]) == (cut == "told")


def test_components_of_correlations_count_no_error_of_standard_deviations_and_say_so():
    release = made()
    scaled, shares = pc.pca(release, rank=2), pc.pca(release, rank=2, correlation=True)
    assert "error of standard deviations" in scaled.to_dict()["counted"]
    assert "standard deviations" not in shares.to_dict()["counted"]
    hint = "Components of correlations (--correlation) are free of the error"
    together = [any(len(one.components) > 1 for one in fit.directions()) for fit in (scaled, shares)]
    assert together == [True, False]
    assert [hint in " ".join(str(fit).split()) for fit in (scaled, shares)] == together


def test_a_share_of_variance_has_no_units_and_so_counts_no_doubt_about_them():
    """R² of counted releases was from 0 to 1. With the bias b it is off by 2√R²(1 − R²)b, and by noise."""
    release = made()
    assert np.linalg.norm(release.calibration.doubts, axis=1).max() > 0.2
    fit = pc.ols(release, "income ~ age")
    halves = [
        np.diff(pc.ols(one, "income ~ age").table.rsquared_interval())[0] / 2
        for one in (release, release.as_added)
    ]
    share, bias = fit.rsquared, release.calibration.bias
    wanted = np.hypot(halves[1], 1.96 * 2 * np.sqrt(share) * (1 - share) * bias)
    assert halves[0] == pytest.approx(wanted, rel=0.2)


def test_components_count_the_bias_of_correlations_and_doubt_about_deviations():
    """Of two columns the larger correlation component is 1 + ρ, off by (1 − ρ²) b; in dollars it is the incomes."""
    release = made()
    found, alone = release.calibration, release.as_added
    ends = [pc.pca(one, correlation=True, rank=2).intervals()[0] for one in (release, alone)]
    added = np.sqrt((np.diff(ends[0])[0] / 2) ** 2 - (np.diff(ends[1])[0] / 2) ** 2)
    rho = correlation(release)["income", "age"]
    assert added == pytest.approx(1.96 * found.bias * (1 - rho**2), rel=0.15)
    low, high = pc.pca(release, scaled=False, rank=1).intervals()[0]
    doubt = 2 * np.linalg.norm(found.doubts[0])
    noise = np.diff(np.log(pc.pca(alone, scaled=False, rank=1).intervals()[0]))[0] / 2 / 1.96
    wanted = np.sqrt(doubt**2 + 2 * found.bias**2 + noise**2)
    assert np.log(high / low) / 2 / 1.96 == pytest.approx(wanted, rel=0.1)


def test_the_error_of_a_ridge_regression_counts_the_cut():
    """A target of long tail in original units: its error is off by the doubt about its deviation, and by b/√2."""
    release = made()
    found = release.calibration
    choice = pc.ridge(release, "income").choice
    low, high = choice.interval(1.96)
    alone = replace(choice, rows=np.inf, doubt=0.0).interval(1.96)
    noise = np.log(alone[1] / alone[0]) / 2
    wanted = np.hypot(noise, 1.96 * found.bias / np.sqrt(2)) + 1.96 * choice.doubt
    assert np.log(high / low) / 2 == pytest.approx(wanted, rel=0.1)
    # Age explains little, so nearly all that is left is income's.
    assert choice.doubt == pytest.approx(np.linalg.norm(found.doubts[0]), rel=0.25)


@pytest.mark.parametrize("of", [correlation, partial_correlation])
def test_intervals_of_correlations_count_the_likely_bias_of_the_cut_as_a_smaller_sample(of):
    """Of a sample of n rows a correlation r is off by (1 − r²)/√n; with the bias, by (1 − r²)·√(1/n + b²)."""
    release = made()
    bias = release.calibration.bias
    assert bias > 1 / np.sqrt(len(ROWS))
    halves = [np.diff(of(one).interval("income", "age"))[0] / 2 for one in (release, release.as_added)]
    added = np.sqrt(halves[0] ** 2 - halves[1] ** 2)
    assert added == pytest.approx(1.96 * bias * (1 - of(release)["income", "age"] ** 2), rel=0.1)


def test_a_plan_tells_the_price_of_counting_the_cut():
    law = find("gaussian", loss=LOSS).law(loss=LOSS, grid=Grid.of(SCHEMA))
    facts = {"law": law, "loss": LOSS, "purpose": "covariance"}
    told_of = {cut: in_frame(SCHEMA, cut=cut, rows=20_000, **facts) for cut in ("told", "counted")}
    assert told_of["counted"].share - told_of["told"].share == pytest.approx(0.05)
    assert told_of["counted"].private > told_of["told"].private
    assert "--cut counted" in str(told_of["counted"])
    assert "--cut" not in str(told_of["told"])
    spent = sum(share(made().certificate, one) for one in made().certificate.rounds)
    counted = in_frame(SCHEMA, word="scales", cut="counted", rows=10_000, **facts)
    assert counted.share == pytest.approx(spent, abs=1e-4)
    with pytest.raises(ParameterError, match="cut must be told or counted"):
        pc.plan(schema=SCHEMA, rows=10_000, loss=LOSS, cut="some")
