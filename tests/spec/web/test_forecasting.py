"""What the page says about accuracy is what ``privcov.plan`` says, and nothing is opened or spent for it."""

from __future__ import annotations

import re
import time

import pytest

import privcov as pc
from privcov.cli import losses
from privcov.errors import ParameterError
from privcov.planning.invert import answer
from privcov.planning.moments import PublicMoments
from privcov.planning.strata import plan_strata
from privcov.planning.targets import Target
from privcov.privacy import EPSILON_POLICY_CAP
from privcov.report.colours import place_of
from privcov.web import asking
from privcov.web.asking import Refused
from privcov.web.simulating import Simulator

PURE = {"kind": "pure", "epsilon": "1", "neighbours": "replace-one"}
MEAN = {"word": "mean", "one": "age", "other": ""}


LAWS = ["symmetric-wishart", "frobenius", "laplace"]
MARKS = {"law": "", "surrogate": "~", "worst case": "≤"}


@pytest.fixture
def plan(schema):
    """The library's own plan of what has a law; it also fills the cache, so that the workbench need not simulate."""
    loss = pc.PureDP(epsilon=1, neighbours="replace-one")
    return pc.plan(schema=schema, rows=4000, loss=loss, mechanisms=LAWS)


@pytest.fixture(autouse=True)
def idle(request, monkeypatch):
    """No process is started for what these tests do not wait for."""
    if "slow" not in request.keywords:
        monkeypatch.setattr(Simulator, "want", lambda self, tasks: None)


def lines(forecasts, plan):
    return [
        (made.mechanism.name, f"{MARKS[made.basis]}{made.frobenius.mean:.3g}", plan.verdict(made))
        for made in forecasts
    ]


def test_the_page_shows_the_laws_of_the_plan_line_by_line(served, draft, plan):
    told = served.ask("plan", draft=draft, rows="4000", loss=PURE, **MEAN).json
    shown = [(line["mechanism"], line["frobenius"], line["verdict"]) for line in told["mechanisms"]]
    assert shown == lines(plan.forecasts, plan)
    assert told["choice"] == plan.choice.mechanism.name
    assert told["words"].lower() == plan.reason.lower()
    assert [line["mean"] for line in told["columns"]] == [f"{c.mean:.3g}" for c in plan.columns()]
    assert set(told["pending"]) == {"eigenvectors", "kapralov-talwar", "power-method", "matrix-bingham"}
    assert all(name in told["chart"] for name in LAWS)
    for name in LAWS:  # in the colour that the mechanism has everywhere
        look = rf"<title>{name}</title><path[^>]*var\(--line-{place_of(name) + 1},"
        assert re.search(look, told["chart"]), name


def test_the_page_plans_strata_as_the_library_does(served, draft, schema):
    asked = {"draft": draft, "rows": "4000", "loss": PURE, "chart": False, **MEAN}
    assert served.ask("plan", **asked).json["strata"] is None
    told = served.ask("plan", **asked, by="sex", rest="unknown", sizes="F = 60; unknown=30", share="0.3").json
    loss = pc.PureDP(epsilon=1, neighbours="replace-one")
    sizes = {"F": 60, "unknown": 30}
    plan = plan_strata(
        schema=schema, by="sex", other="unknown", rows=4000, loss=loss, sizes=sizes, total_share="0.3"
    )
    assert told["strata"]["lines"] == [
        [name, f"{plan.rows[name]:,.0f}", plan.outlooks[name].verdict] for name in ("F", "M", "unknown")
    ]
    assert "2 of 3 strata would drown" in told["strata"]["words"]
    assert plan.about_the_total in told["strata"]["words"]


@pytest.mark.parametrize(
    ("words", "field", "code"),
    [
        ({"by": "town"}, "by", "E185"),
        ({"by": "sex", "rest": "M"}, "rest", "E188"),
        ({"by": "sex", "sizes": "F=x"}, "sizes", "E284"),
        ({"by": "sex", "sizes": "X=5"}, "sizes", "E284"),
        ({"by": "sex", "sizes": "F=5000"}, "sizes", "E284"),
        ({"by": "sex", "share": "most"}, "share", "E225"),
    ],
)
def test_a_plan_of_strata_that_cannot_be_is_refused_beside_its_field(served, draft, words, field, code):
    reply = served.ask("plan", draft=draft, rows="4000", loss=PURE, chart=False, **MEAN, **words)
    assert (reply.status, [*reply.errors], reply.codes) == (422, [field], [code])


@pytest.mark.slow
def test_once_all_is_simulated_the_page_shows_the_whole_plan(served, draft, schema):
    plan = pc.plan(schema=schema, rows=4000, loss=pc.PureDP(epsilon=1, neighbours="replace-one"))
    for _ in range(600):
        told = served.ask("plan", draft=draft, rows="4000", loss=PURE, chart=False, **MEAN).json
        if not told["pending"]:
            break
        time.sleep(0.1)
    shown = [(line["mechanism"], line["frobenius"], line["verdict"]) for line in told["mechanisms"]]
    assert shown == lines(plan.forecasts, plan)
    refused = {no["mechanism"]: no["reason"] for no in told["refused"]}
    assert refused == {no.name: no.reason for no in plan.refusals}


@pytest.mark.parametrize(
    ("asked", "target"),
    [
        ({"word": "mean", "one": "age", "other": ""}, "mean(age)=1"),
        ({"word": "covariance", "one": "age", "other": "income"}, "covariance(age, income)=1"),
        ({"word": "frobenius", "one": "", "other": ""}, "frobenius=1"),
    ],
)
def test_an_error_in_original_units_is_the_planner_s(served, draft, plan, schema, asked, target):
    loss = pc.PureDP(epsilon=1, neighbours="replace-one")
    found = answer(schema=schema, rows=2500, loss=loss, target=Target.parse(target, schema))
    told = served.ask("plan", draft=draft, rows="2,500", loss=PURE, **asked).json
    assert told["error"] == f"{found.error:.3g}"


def test_a_variance_is_the_planner_s_too(served, draft, plan):
    told = served.ask(
        "plan", draft=draft, rows="4000", loss=PURE, word="variance", one="income", other=""
    ).json
    assert told["error"] == f"{plan.columns()[-1].variance:.3g}"


@pytest.mark.parametrize(
    ("loss", "field", "code"),
    [
        ({"epsilon": "0"}, "epsilon", "E201"),
        ({"epsilon": "-1"}, "epsilon", "E201"),
        ({"epsilon": "abc"}, "epsilon", "E201"),
        ({"epsilon": ""}, "epsilon", "E201"),
        ({"epsilon": "nan"}, "epsilon", "E201"),
        ({"epsilon": "10.0001"}, "epsilon", "E202"),
        ({"kind": "approximate", "delta": "2"}, "delta", "E203"),
        ({"kind": "approximate", "delta": ""}, "delta", "E203"),
        ({"kind": "zcdp", "rho": "0"}, "rho", "E201"),
        ({"kind": "other"}, "kind", "E291"),
        ({"neighbours": "nobody"}, "epsilon", "E207"),
        ({"neighbours": ""}, "epsilon", "E207"),
        ({"epsilon": 1}, "kind", "E291"),
    ],
)
def test_a_bad_budget_is_refused_beside_its_field(served, draft, loss, field, code):
    reply = served.ask("plan", draft=draft, rows="4000", loss={**PURE, **loss}, **MEAN)
    assert (reply.status, reply.codes) == (422, [code])
    assert field in reply.errors


@pytest.mark.parametrize("rows", ["", "1", "many", "-5", "2.5", "1e6", "9" * 30])
def test_a_bad_number_of_rows_is_refused_beside_its_field(served, draft, rows):
    reply = served.ask("plan", draft=draft, rows=rows, loss=PURE, **MEAN)
    assert (reply.status, reply.codes) == (422, ["E260"])
    assert "rows" in reply.errors


def test_bad_fields_do_not_wait_for_each_other(served, draft):
    draft["columns"][0]["lower"] = ""
    reply = served.ask("plan", draft=draft, rows="", loss={**PURE, "epsilon": ""}, **MEAN)
    assert set(reply.errors) == {"columns.0.lower", "epsilon", "rows"}


def test_the_page_and_the_command_line_refuse_the_same_epsilon():
    words = {"delta": None, "rho": None, "neighbours": "replace-one", "understood": False}
    allowed = str(EPSILON_POLICY_CAP)
    assert asking.as_loss({**PURE, "epsilon": allowed}) == losses.as_loss(epsilon=allowed, **words)
    above = str(EPSILON_POLICY_CAP + 0.01)
    with pytest.raises(ParameterError, match="E202"):
        losses.as_loss(epsilon=above, **words)
    with pytest.raises(Refused) as refused:
        asking.as_loss({**PURE, "epsilon": above})
    assert [(field, reason.code) for field, reason in refused.value.reasons] == [("epsilon", "E202")]


def test_what_noise_hides_has_no_number_on_the_page(served, draft):
    told = served.ask("plan", draft=draft, rows="3", loss=PURE, **MEAN).json
    assert told["headline"] == told["error"] == "hidden"
    assert {line["mean"] for line in told["columns"]} == {"hidden"}


def test_planning_opens_no_data(served, draft, plan, monkeypatch):
    (served.folder / "people.csv").unlink()
    assert served.ask("plan", draft=draft, rows="4000", loss=PURE, **MEAN).json["ready"]
    assert served.spent == "0"


def test_a_regression_s_standard_errors_are_the_planner_s(served, draft, plan, schema):
    guesses = {"age": {"mean": "45", "std": "12"}, "income": {"mean": "60", "std": "25"}}
    for column in draft["columns"]:
        column |= guesses.get(column["name"], {})
    told = served.ask("regression", draft=draft, rows="4000", loss=PURE, formula="income ~ age").json
    found = answer(
        schema=schema,
        rows=4000,
        loss=pc.PureDP(epsilon=1, neighbours="replace-one"),
        target=Target.parse("se(income ~ age: age)=1", schema),
        moments=PublicMoments.guessed(schema, {"columns": guesses}),
    )
    terms = {line["term"]: line for line in told["terms"]}
    assert terms["age"]["error"] == f"{found.error:.3g}"
    # A little more than for normal noise: Wishart noise has longer tails.
    assert 1.96 <= float(terms["age"]["half_width"]) / found.error <= 2.02


def test_guessed_correlations_narrow_the_intervals_as_the_planner_says(served, draft, plan, schema):
    guesses = {"age": {"mean": "45", "std": "12"}, "income": {"mean": "60", "std": "25"}}
    for column in draft["columns"]:
        column |= guesses.get(column["name"], {})
    draft["correlations"] = [{"pair": "age, income", "value": "0.8"}]
    told = served.ask("regression", draft=draft, rows="100000", loss=PURE, formula="income ~ age").json
    found = answer(
        schema=schema,
        rows=100_000,
        loss=pc.PureDP(epsilon=1, neighbours="replace-one"),
        target=Target.parse("se(income ~ age: age)=1", schema),
        moments=PublicMoments.guessed(schema, {"columns": guesses, "correlations": {"age, income": "0.8"}}),
    )
    assert told["terms"][1]["error"] == f"{found.error:.3g}"
    assert float(told["terms"][1]["value"]) == pytest.approx(0.8 * 25 / 12, rel=1e-3)
    draft["correlations"] = [{"pair": "age, shoes", "value": "0.8"}]
    reply = served.ask("regression", draft=draft, rows="4000", loss=PURE, formula="income ~ age")
    assert "two columns of the release" in reply.errors["guesses"]


@pytest.mark.parametrize(
    ("formula", "field", "says"),
    [
        ("income ~ age", "formula", "the schema gives no public moments of age"),
        ("income", "formula", "one ~"),
        ("income ~ nobody", "formula", "nobody"),
        ("", "formula", "~"),
    ],
)
def test_a_regression_nobody_can_forecast_is_refused_beside_the_formula(served, draft, formula, field, says):
    reply = served.ask("regression", draft=draft, rows="4000", loss=PURE, formula=formula)
    assert reply.status == 422
    assert says in reply.errors[field]


def test_a_guess_that_is_half_typed_does_not_stop_the_plan(served, draft, plan):
    draft["columns"][0]["mean"] = "45"
    assert served.ask("plan", draft=draft, rows="4000", loss=PURE, **MEAN).json["ready"]
    reply = served.ask("regression", draft=draft, rows="4000", loss=PURE, formula="income ~ age")
    assert "is not a number" in reply.errors["guesses"]


def test_impossible_guesses_are_refused_beside_the_guesses(served, draft):
    draft["columns"][0] |= {"mean": "500", "std": "1"}
    reply = served.ask("regression", draft=draft, rows="4000", loss=PURE, formula="income ~ age")
    assert "within the bounds" in reply.errors["guesses"]


def test_sliders_stop_at_exact_decimals(served):
    stops = served.ask("start").json["stops"]
    assert stops["epsilon"][0] == "0.01"
    assert "0.3" in stops["epsilon"]
    assert stops["epsilon"][-1] == "10"
    assert stops["rows"][0] == "10"
    assert stops["delta"][0] == "0.000000000001"
    for values in stops.values():
        assert [float(value) for value in values] == sorted({float(value) for value in values})
