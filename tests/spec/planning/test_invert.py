"""Budgets and rows for an accuracy: round trips, floors nobody can go below, and questions that make no sense."""

from __future__ import annotations

from dataclasses import replace

import pytest

import privcov as pc
from privcov.cli import main
from privcov.errors import ParameterError
from privcov.planning.invert import answer, answer_loss, answer_rows
from privcov.planning.moments import PublicMoments
from privcov.planning.splitting import split
from privcov.planning.targets import Target
from privcov.schema.grid import Grid

GUESSES = {
    "columns": {
        "age": {"mean": 45, "std": 18},
        "income": {"mean": 60, "std": 25},
        "sex": {"shares": [0.5, 0.5]},
    },
    "correlations": {"age, income": 0.3},
}
TARGETS = [
    "frobenius=0.02",
    "frobenius95=0.02",
    "spectral=0.01",
    "entry=0.004",
    "entry95=0.01",
    "mean(age)=0.5",
    "covariance(age, income)=20",
    "covariance(age, age)=20",
    "se(income ~ age + sex: age)=0.2",
]


@pytest.fixture
def moments(schema) -> PublicMoments:
    return PublicMoments.guessed(schema, GUESSES)


@pytest.mark.parametrize(
    ("kind", "delta", "neighbours"),
    [("pure", None, "replace-one"), ("approximate", "1e-6", "add-remove"), ("zcdp", None, "replace-one")],
)
@pytest.mark.parametrize("words", TARGETS)
def test_the_budget_found_reaches_the_target_and_one_percent_less_does_not(
    schema, moments, words, kind, delta, neighbours
):
    target = Target.parse(words, schema)
    found = answer_loss(
        schema=schema,
        rows=4000,
        kind=kind,
        delta=delta,
        neighbours=neighbours,
        target=target,
        moments=moments,
    )

    def error(loss):
        made = pc.accuracy(schema=schema, rows=4000, loss=loss, mechanism=found.mechanism)
        return target.error(made, schema, moments)

    assert found.error == error(found.loss) <= target.bound
    word = "rho" if kind == "zcdp" else "epsilon"
    less = replace(found.loss, **{word: found.loss.amounts[word] * 99 / 100})
    assert error(less) > target.bound


@pytest.mark.parametrize("words", TARGETS)
def test_the_rows_found_reach_the_target_and_one_percent_fewer_do_not(schema, moments, words):
    loss = pc.PureDP(epsilon="0.5", neighbours="replace-one")
    target = Target.parse(words, schema)
    found = answer_rows(schema=schema, loss=loss, target=target, moments=moments)

    def error(rows):
        return target.error(pc.accuracy(schema=schema, rows=rows, loss=loss), schema, moments)

    assert error(found.rows) <= target.bound < error(found.rows * 99 // 100)


def test_the_two_directions_agree(schema):
    loss = pc.required_loss(schema=schema, rows=4000, error=0.02, kind="pure", neighbours="replace-one")
    rows = pc.required_rows(schema=schema, loss=loss, error=0.02)
    assert abs(rows - 4000) <= 40


@pytest.mark.long
def test_a_mechanism_without_a_law_can_be_turned_around_too():
    schema = pc.Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}}})
    found = pc.required_loss(
        schema=schema, rows=4000, error=0.01, kind="zcdp", neighbours="replace-one", mechanism="separate"
    )
    made = pc.accuracy(schema=schema, rows=4000, loss=found, mechanism="separate")
    assert made.frobenius.mean == pytest.approx(0.01, rel=0.01)


def test_no_budget_buys_back_sampling_error(schema, moments):
    with pytest.raises(
        ParameterError, match=r"E264 .* cannot be reached with 4000 rows: even epsilon = 100 gives 0\.\d+"
    ):
        pc.required_loss(
            schema=schema,
            rows=4000,
            target="se(income ~ age: age)=0.001",
            kind="pure",
            neighbours="replace-one",
            moments=moments,
        )


def test_a_target_no_table_of_people_could_reach_is_refused(schema):
    with pytest.raises(ParameterError, match=r"E264 .* cannot be reached, even with 1e\+12 rows"):
        pc.required_rows(schema=schema, loss=pc.PureDP(epsilon=1, neighbours="replace-one"), error=1e-13)


def test_a_standard_error_is_that_of_the_model_on_the_real_thing(schema, moments):
    """Against ``ols`` on releases of rows drawn from the guesses, 200 of them: the mean standard error is known
    to about 2 %, so a privacy part that is forgotten (half of the variance here) or doubled is caught."""
    import numpy as np

    from privcov.noise.randomness import rehearsal

    rng = np.random.default_rng(4)
    loss, n = pc.PureDP(epsilon="0.5", neighbours="replace-one"), 4000
    bounds = {"age": {"lower": 0, "upper": 100}, "income": {"lower": 0, "upper": 200}}
    plain = pc.Schema.from_dict({"columns": bounds})
    guess = PublicMoments.guessed(
        plain,
        {
            "columns": {"age": {"mean": 50, "std": 15}, "income": {"mean": 100, "std": 25}},
            "correlations": {"age, income": 0.4},
        },
    )
    target = Target.parse("se(income ~ age: age)=1", plain)
    predicted = target.error(pc.accuracy(schema=plain, rows=n, loss=loss), plain, guess)
    age = rng.normal(50, 15, n)
    income = 100 + 25 * (0.4 * (age - 50) / 15 + np.sqrt(1 - 0.16) * rng.normal(size=n))
    rows = np.column_stack([age, income])
    slopes = [
        pc.ols(pc.release(rows, schema=plain, loss=loss, randomness=rehearsal(s)), "income ~ age").bse["age"]
        for s in range(40)
    ]
    assert np.median(slopes) == pytest.approx(predicted, rel=0.1)


@pytest.mark.parametrize(
    "words",
    [
        "",
        "frobenius",
        "frobenius=0",
        "frobenius=-1",
        "frobenius=nan",
        "frobenius=x",
        "nuclear=1",
        "mean(height)=1",
        "mean(age, income)=1",
        "covariance(age)=1",
        "covariance(age, height)=2",
        "se(income ~ age: height)=1",
        "se(income ~ age)=1",
    ],
)
def test_a_target_that_makes_no_sense_is_refused(schema, words):
    with pytest.raises(ParameterError, match="E263"):
        Target.parse(words, schema)


def test_a_formula_with_an_unknown_term_is_refused_as_a_model_would(schema):
    with pytest.raises(ParameterError, match="height"):
        Target.parse("se(income ~ height: height)=1", schema)


def test_a_model_nobody_said_anything_public_about_is_refused(schema, moments):
    target = Target.parse("se(income ~ age: age)=1", schema)
    loss = pc.PureDP(epsilon=1, neighbours="replace-one")
    half = PublicMoments.guessed(schema, {"columns": {"age": {"mean": 45, "std": 18}}})
    for known in (None, half):
        with pytest.raises(ParameterError, match=r"the schema gives no public moments of (age|income)"):
            answer_rows(schema=schema, loss=loss, target=target, moments=known)


@pytest.mark.parametrize(
    ("kind", "delta"), [("pure", "1e-6"), ("zcdp", "1e-6"), ("approximate", None), ("exact", None)]
)
def test_contradictory_guarantees_are_refused(schema, kind, delta):
    with pytest.raises(ParameterError, match="E204"):
        pc.required_loss(schema=schema, rows=100, error=1, kind=kind, delta=delta, neighbours="replace-one")


def test_an_error_and_a_target_at_once_are_refused(schema):
    for given in ({}, {"error": 0.1, "target": "frobenius=0.1"}):
        with pytest.raises(ParameterError, match="E263"):
            pc.required_rows(schema=schema, loss=pc.ZCDP(rho=1, neighbours="replace-one"), **given)


@pytest.mark.parametrize(
    ("loss", "ratio"),
    [
        (pc.PureDP(epsilon=1, neighbours="replace-one"), 4.0),
        (pc.ZCDP(rho=1, neighbours="replace-one"), 2.0),
    ],
)
def test_four_releases_cost_four_or_two_times_the_error_of_one(loss, ratio):
    found = split(
        loss=loss, grid=Grid(dimension=5, exponent=19, squared_norm_bound=2**38), rows=900, releases=4
    )
    assert found.saving == pytest.approx(ratio, rel=1e-3)


def test_the_shares_of_a_split_add_up_to_no_more_than_the_budget():
    loss = pc.ApproxDP(epsilon=1, delta="1e-6", neighbours="replace-one")
    grid = Grid(dimension=20, exponent=17, squared_norm_bound=2**34)
    found = split(loss=loss, grid=grid, rows=900, releases=7)
    even, concentrated = (share.each for share in found.shares)
    assert even * 7 <= loss
    from privcov.accounting import zcdp_to_approx

    assert zcdp_to_approx(concentrated * 7, delta=loss.delta) <= loss
    assert found.best.rule.startswith("through zCDP")
    assert found.saving < 7


@pytest.mark.parametrize("releases", [0, -1, True, 2.0, 10**6])
def test_a_number_of_releases_that_makes_no_sense_is_refused(releases):
    with pytest.raises(ParameterError, match="E265"):
        split(
            loss=pc.ZCDP(rho=1, neighbours="replace-one"),
            grid=Grid(dimension=2, exponent=19, squared_norm_bound=2**38),
            rows=90,
            releases=releases,
        )


def test_an_answer_says_what_it_supposes_of_columns_that_nobody_described(schema, moments, tmp_path, capsys):
    """A correlation of columns that fill a fifth of their bounds takes far more than one of those declared."""
    wanted = Target.parse("correlation(age, income)=0.05", schema)
    assert "The schema gives no mean and std of age and income, so this assumes" in wanted.supposed(
        schema, None
    )
    assert "[planning.columns.age]" in wanted.supposed(schema, None)
    assert wanted.supposed(schema, moments) == ""
    assert Target.parse("frobenius=0.02", schema).supposed(schema, None) == ""
    with pytest.raises(ParameterError, match=r"E264 .* The schema gives no mean and std"):
        answer_loss(target=wanted, schema=schema, rows=100, kind="pure", neighbours="replace-one")
    (tmp_path / "people.toml").write_text(schema.to_toml())
    asked = ["plan", "--schema", str(tmp_path / "people.toml"), "--rows", "100000", "--target", wanted.text]
    assert main(asked) == 0
    assert "The schema gives no mean and std of age and income" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("target", "rows", "hidden"),
    [
        ("mean(temp)=5", 15, True),
        ("mean(temp)=5", 10_000, False),
        ("covariance(temp, wind)=5", 15, True),
        ("covariance(temp, temp)=5", 15, True),
        ("correlation(temp, wind)=0.1", 15, True),
        ("correlation(temp, wind)=0.1", 10**6, False),
        ("frobenius=0.1", 15, False),
    ],
)
def test_an_answer_says_where_its_error_is_as_wide_as_what_is_possible(target, rows, hidden):
    columns = {name: {"lower": -30, "upper": 30} for name in ("temp", "wind")}
    schema = pc.Schema.from_dict({"columns": columns})
    loss = pc.PureDP(epsilon=0.05, neighbours="replace-one")
    found = answer(
        schema=schema, rows=rows, loss=loss, target=Target.parse(target, schema), mechanism="laplace"
    )
    assert found.hidden is found.to_dict()["hidden"] is hidden


def test_no_error_is_printed_as_infinite(tmp_path, capsys):
    """A correlation whose variance noise may hide has no error: the command says hidden, and a refusal says so too."""
    path = tmp_path / "s.toml"
    path.write_text("[columns.a]\nlower = 0\nupper = 1\n[columns.b]\nlower = 0\nupper = 1\n")
    asked = ["plan", "--schema", str(path), "--rows", "15", "--target", "correlation(a, b)=0.05"]
    assert main([*asked, "--epsilon", "0.1"]) == 0
    told = capsys.readouterr().out
    assert "correlation(a, b) is hidden: the noise is as wide as the bounds allow, or wider" in told
    assert main(asked) == 2
    refused = capsys.readouterr().err
    assert "even epsilon = 100 leaves it hidden" in refused
    assert " inf" not in told + refused
