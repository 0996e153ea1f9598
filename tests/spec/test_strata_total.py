"""A total beside strata, for a share of the loss: one pass, one payment, one draw more, and they add up.

What is asked of the noise: tests/conformance/test_every_stratum.py.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import privcov as pc
from privcov.accounting import pure_to_zcdp
from privcov.errors import ParameterError, ReleaseError
from privcov.frame.spending import shared_with_total
from privcov.mechanisms import MECHANISMS
from privcov.models.strata import differences
from privcov.noise.randomness import rehearsal
from privcov.planning.strata import plan_strata
from privcov.releases.documents import to_text
from privcov.releases.strata import FORM
from privcov.schema.grid import Grid

LEVELS = [1, 2, 3, 4]
COLUMNS = {"age": {"lower": 0, "upper": 100}, "pay": {"lower": 0, "upper": 10}, "s": {"levels": LEVELS}}
SCHEMA = pc.Schema.from_dict({"columns": COLUMNS})
ROWS = np.column_stack([np.linspace(0, 100, 800), np.tile([2.0, 7.0], 400), np.tile([1.0, 2, 3, 4, 9], 160)])
ADD = pc.PureDP(epsilon=1, neighbours="add-remove")
RHO = pc.ZCDP(rho="0.5", neighbours="replace-one")
DELTA = pc.ApproxDP(epsilon=1, delta="1e-6", neighbours="add-remove")
CASES = [("symmetric-wishart", ADD), ("laplace", replace(ADD, neighbours="replace-one")), ("gaussian", RHO)]
CASES += [("frobenius", replace(ADD, neighbours="replace-one")), ("gaussian", DELTA)]
IDS = [f"{name}-{loss.kind}-{loss.neighbours}" for name, loss in CASES]


def made_by(name, loss, share="0.2", seed=1, rows=ROWS, **words):
    return pc.release(
        rows, schema=SCHEMA, loss=loss, mechanism=name, by="s", total_share=share, randomness=rehearsal(seed), **words
    )  # fmt: skip


# --- what is drawn ------------------------------------------------------------------------------------


def test_no_share_has_the_bits_and_the_file_of_strata_alone():
    plain = pc.release(ROWS, schema=SCHEMA, loss=RHO, by="s", randomness=rehearsal(4))
    none = pc.release(ROWS, schema=SCHEMA, loss=RHO, by="s", total_share=0, randomness=rehearsal(4))
    assert none.to_dict()["matrices"] == plain.to_dict()["matrices"]
    assert {*plain.to_dict()} == {*none.to_dict()}
    assert "total" not in plain.to_dict()
    assert none.pooled is None
    assert none.uncombined("2") is none["2"]


@pytest.mark.parametrize(("name", "loss"), CASES, ids=IDS)
def test_strata_and_total_are_drawn_one_after_the_other_at_their_parts_of_the_loss(name, loss):
    """The exact sums follow from a release with the same noise of an empty table; rows in no stratum are in no sum."""
    made, stream = made_by(name, loss), rehearsal(1)
    mechanism, grid = MECHANISMS[name](), Grid.of(made.schema, strata=True)
    total, rest = shared_with_total(loss, mechanism, Fraction(1, 5))
    noise = [mechanism.draw(loss=rest, grid=grid, randomness=stream).upper for _ in LEVELS]
    noise.append(mechanism.draw(loss=total, grid=Grid.of(made.schema, pooled=True), randomness=stream).upper)
    exact = [
        np.array(upper) - one for upper, one in zip((*made.uppers, made.pooled.upper), noise, strict=True)
    ]
    assert (sum(exact[:-1]) == exact[-1]).all()
    assert exact[-1][0] == 640 * 4 ** Grid.of(made.schema).exponent


@pytest.mark.parametrize(("name", "loss"), CASES, ids=IDS)
def test_the_two_parts_of_the_loss_add_up_to_the_whole(name, loss):
    mechanism = MECHANISMS[name]()
    for share in map(Fraction, ("1/1000", "1/3", "109/1000", "999/1000")):
        total, rest = shared_with_total(loss, mechanism, share)
        if loss.kind == "pure":
            assert total.epsilon + rest.epsilon == loss.epsilon
        elif loss.kind == "zcdp":
            assert total.rho + rest.rho == loss.rho
        else:
            assert total.rho + rest.rho <= mechanism.as_zcdp(loss)
    for share in (Fraction(0), Fraction(1), Fraction(-1, 3), Fraction(1, 10**9)):
        with pytest.raises(ParameterError, match="E225"):
            shared_with_total(loss, mechanism, share)
    with pytest.raises(ParameterError, match=r"got 1\.5\."):  # as people write it
        shared_with_total(loss, mechanism, Fraction(3, 2))


def test_one_payment_is_the_whole_loss_and_the_ledger_says_the_share(tmp_path):
    book = pc.Ledger.init(tmp_path / "l", 3 * ADD)
    pc.release(ROWS, schema=SCHEMA, loss=ADD, by="s", total_share="0.25", ledger=book)
    assert book.spent == {"epsilon": 1}
    assert any("total_share" in str(entry) and "0.25" in str(entry) for entry in book.log())


@pytest.mark.parametrize(
    ("name", "loss", "words"),
    [*((name, loss, {}) for name, loss in CASES), ("gaussian", DELTA, {"noise": "discrete"})],
)
@pytest.mark.parametrize("share", ["0.001", "0.25", "0.9"])
def test_a_ledger_of_rho_is_charged_what_total_and_strata_cost(name, loss, words, share, tmp_path):
    """Never less than both, to the last digit, and for pure parts less than the whole loss would be."""
    book = pc.Ledger.init(tmp_path / "l", pc.ZCDP(rho=9, neighbours=loss.neighbours))
    order = {"schema": SCHEMA, "loss": loss, "mechanism": name, "by": "s", "total_share": share, **words}
    pc.release(ROWS, ledger=book, **order)
    mechanism = MECHANISMS[name](**words)
    parts = shared_with_total(loss, mechanism, Fraction(share))
    (charged,) = [amount for word, amount in book.spent.items() if word == "rho"]
    assert sum(mechanism.as_zcdp(one) for one in parts) <= charged
    if loss.kind == "pure":
        assert charged < pure_to_zcdp(loss).rho


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ({"total_share": "0.2"}, "E226"),
        ({"by": "s", "total_share": 1}, "E225"),
        ({"by": "s", "total_share": -0.1}, "E225"),
        ({"by": "s", "total_share": "most"}, "E225"),
        ({"by": "s", "total_share": None}, "E225"),
        ({"by": "s", "total_share": math.nan}, "E225"),
        ({"by": "s", "total_share": "1e-9"}, "E225"),
        ({"by": "one", "total_share": "0.2"}, "E226"),
        ({"by": "s", "total_share": "0.2", "row_norm": "private"}, "E226"),
    ],
)
def test_a_share_that_is_none_is_refused_and_nothing_is_paid(words, code, tmp_path):
    schema = pc.Schema.from_dict({"columns": {**COLUMNS, "one": {"levels": [1]}}})
    rows = np.column_stack([ROWS, np.ones(len(ROWS))])
    book = pc.Ledger.init(tmp_path / "l", ADD)
    with pytest.raises(ParameterError, match=code):
        pc.release(rows, schema=schema, loss=ADD, ledger=book, **words)
    assert book.spent == {"epsilon": 0}


# --- combined -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "loss"), CASES, ids=IDS)
def test_combined_strata_add_up_to_the_combined_total_and_are_those_of_least_squares(name, loss):
    made = made_by(name, loss)
    strata, total = np.array([part.upper for part in made.values()]), np.array(made.total().upper)
    assert (strata.sum(axis=0) == total).all()
    # The slow way: observations Y of all matrices, weighted by their variances, on the unknown strata.
    v, t = made.certificate.law.scale**2, made.pooled.law.scale**2
    design = np.vstack([np.eye(4), np.ones(4)])
    weights = np.diag([1 / v] * 4 + [1 / t])
    seen = np.array([*made.uppers, made.pooled.upper], dtype=float)
    found = np.linalg.solve(design.T @ weights @ design, design.T @ weights @ seen)
    unit = 4.0 ** -Grid.of(made.schema).exponent
    assert np.allclose(found * unit, strata.astype(float) * unit, atol=2 * unit, rtol=1e-9)
    # and the variances that it has, in units of that of one entry
    spread = np.linalg.inv(design.T @ weights @ design)
    one = made["1"].law.offdiagonal_variance / made.uncombined("1").law.offdiagonal_variance
    assert one == pytest.approx(spread[0, 0] / v)
    both = made.total().law.offdiagonal_variance / made.pooled.law.offdiagonal_variance
    assert both == pytest.approx(spread.sum() / t)


@pytest.mark.parametrize(("name", "loss"), CASES, ids=IDS)
def test_nothing_is_worse_than_before_it_was_combined(name, loss):
    for share in ("0.001", "0.3", "0.999"):
        made = made_by(name, loss, share)
        assert made["1"].law.rms_frobenius < made.uncombined("1").law.rms_frobenius
        total = made.total().law.rms_frobenius
        assert total < made.pooled.law.rms_frobenius
        assert total < 2 * made.certificate.law.rms_frobenius  # of the sum of four


@pytest.mark.long
@pytest.mark.parametrize(("name", "loss"), [CASES[0], CASES[2]], ids=["pure", "gaussian"])
def test_combined_noise_has_the_variance_that_its_law_says(name, loss):
    """Over 250 releases of an empty stratum, at five entries each of four strata and of the total.

    A variance is off by more than 40 % in one of 10⁵ streams; a law that forgets the combination is off by 40 % or more
    here, and one that forgets the share by more. The stream is fixed.
    """
    rows = np.array([[50.0, 5.0, 9.0]])  # of no stratum
    runs = [made_by(name, loss, "0.5", seed, rows) for seed in range(250)]
    for pick in (lambda made: made["3"], lambda made: made.total()):
        law = pick(runs[0]).law
        seen = np.array([pick(made).second_moment(raw=True, scaled=True) for made in runs])
        off = seen[:, *np.triu_indices(3, 1)]
        assert np.mean(off**2) == pytest.approx(law.offdiagonal_variance, rel=0.3)
        drawn = np.array([law.simulate(stream) for stream in [rehearsal(9)] for _ in range(400)])
        assert np.mean(drawn[:, *np.triu_indices(3, 1)] ** 2) == pytest.approx(
            law.offdiagonal_variance, rel=0.3
        )


def test_a_difference_of_strata_is_that_of_strata_as_drawn_whose_noises_are_independent():
    """A combined stratum has part of the noise of all others, which the intervals of a difference must not count on."""
    made = made_by("gaussian", RHO, "0.5")
    alone = replace(
        made, pooled=None, certificate=replace(made.certificate, options={"strata": "4"})
    )  # the same matrices without a total
    assert differences(made, "1", "2").found == differences(alone, "1", "2").found
    assert "without repair and what the total adds;" in differences(made, "1", "2").note
    assert "without repair;" in differences(alone, "1", "2").note


def test_models_take_combined_strata_and_the_total():
    made = made_by("symmetric-wishart", 9 * ADD, "0.3")
    for release in (made["2"], made.total()):
        fit = pc.ols(release, "pay ~ age")
        assert math.isfinite(fit.conf_int()["age"][0])
    with pytest.raises(ReleaseError, match="E614"):
        made["2"].to_json()
    with pytest.raises(ReleaseError, match="E614"):
        made.total().to_json()


@pytest.mark.long
def test_repair_and_the_pool_take_combined_strata_and_the_total():
    made = made_by("symmetric-wishart", 9 * ADD, "0.3")
    assert made.total().mean().shape == made["2"].mean().shape == (2,)
    assert pc.shrunk(made)["1"].mean().shape == (2,)


# --- the file -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made():
    return pc.release(ROWS, schema=SCHEMA, loss=RHO, by="s", other="elsewhere", total_share="0.2")


def test_a_file_with_a_total_comes_back_as_it_was_and_verifies(made, tmp_path):
    path = tmp_path / "areas.release.json"
    made.save(path)
    back = pc.load_strata(path)
    assert back == made
    assert back.total() == made.total()
    assert pc.load(path, stratum="2") == made["2"]
    assert made.total().rows == made.rows == 800
    verdict = pc.verify(path)
    assert verdict.holds
    assert "0.2 of the loss" in next(check.words for check in verdict.checks if check.name == "total")
    made.uncombined("2").save(tmp_path / "two.json")
    assert pc.verify(tmp_path / "two.json").holds


def changed(made, tmp_path, change):
    body = {word: value for word, value in made.to_dict().items() if word not in ("format", "signature")}
    body = json.loads(json.dumps(body))
    change(body)
    path = tmp_path / "changed.json"
    path.write_text(to_text(FORM.sealed(body)))
    return path


def reshared(share):
    def change(body):
        body["total"]["share"] = body["certificate"]["options"]["total_share"] = share

    return change


def rescaled(what):
    def change(body):
        noise = body["total"]["noise"] if what == "total" else body["certificate"]["noise"]
        noise["scale"] = repr(float(noise["scale"]) * 0.9)

    return change


@pytest.mark.parametrize("change", [reshared("0.3"), reshared("0.1"), rescaled("total"), rescaled("strata")])
def test_noise_that_does_not_give_the_whole_loss_is_found(made, tmp_path, change):
    assert not pc.verify(changed(made, tmp_path, change)).holds


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body.pop("total"),
        lambda body: body["certificate"]["options"].pop("total_share"),
        lambda body: body["total"].update(share="0.3"),
        lambda body: body["total"]["noise"].update(law="laplace"),
        lambda body: body["total"]["noise"].update(scale="-1.0"),
        lambda body: body["total"]["upper"].pop(),
        lambda body: body["total"]["upper"].__setitem__(0, "9" * 60),
        lambda body: body["total"].update(more=1),
        reshared("0"),
        reshared("1"),
        reshared("two"),
        reshared("0.20"),
    ],
)
def test_a_total_that_is_none_is_refused(made, tmp_path, change):
    with pytest.raises(ReleaseError, match="E601"):
        pc.load_strata(changed(made, tmp_path, change))


# --- the plan -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("strata", [2, 7, 50])
def test_the_best_share_of_gaussian_noise_is_the_closed_form_and_no_other_is_better(strata):
    schema = pc.Schema.from_dict({"columns": {**COLUMNS, "s": {"levels": list(range(strata))}}})
    facts = {"schema": schema, "by": "s", "rows": 10**5, "loss": DELTA, "mechanism": "gaussian"}
    plan = plan_strata(**facts, total_share="best")
    assert plan.total_share == plan.best_share
    assert float(plan.best_share) == pytest.approx(1 / (2 + math.sqrt(strata + 1)), abs=0.001)
    best = plan.noise["stratum"] ** 2 + plan.noise["total"] ** 2
    for share in ("0.01", "0.1", "0.25", "0.5"):
        other = plan_strata(**facts, total_share=share).noise
        assert other["stratum"] ** 2 + other["total"] ** 2 > best - 1e-6


@pytest.mark.parametrize(("name", "loss"), CASES, ids=IDS)
def test_a_plan_forecasts_the_noise_that_the_release_has(name, loss):
    plan = plan_strata(schema=SCHEMA, by="s", rows=800, loss=loss, mechanism=name, total_share="best")
    asked = plan.best_share or "0.3"  # with few strata a pure share does not pay
    plan = plan_strata(schema=SCHEMA, by="s", rows=800, loss=loss, mechanism=name, total_share=asked)
    made, whole = made_by(name, loss, asked), made_by(name, loss, 0)
    assert made.pooled.share == plan.total_share
    for word, one, other in (("stratum", made["1"], whole["1"]), ("total", made.total(), whole.total())):
        assert plan.noise[word] == pytest.approx(one.law.rms_frobenius / other.law.rms_frobenius)
    seen = pc.check(ROWS, schema=SCHEMA, loss=loss, mechanism=name, by="s", total_share="best")
    assert seen.total_share == plan.best_share
    assert (plan.best_share > 0) == (loss.kind != "pure")


@pytest.mark.parametrize("share", [0, "0.5", "best"])
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("columns", [3, 9])
def test_auto_takes_the_mechanism_with_the_least_noise_on_what_a_stratum_gets(columns, relation, share):
    """Half of a pure ε is twice the noise, half of ρ only √2 times it: the best at the whole loss need not stay so."""
    bounds = {f"x{k}": {"lower": -1, "upper": 1} for k in range(columns)}
    schema = pc.Schema.from_dict({"columns": {**bounds, "s": {"levels": [1, 2, 3]}}})
    loss = pc.ApproxDP(epsilon=1, delta="1e-6", neighbours=relation)
    facts = {"schema": schema, "by": "s", "total_share": share}

    def made(name, loss=loss):
        rows = np.column_stack([np.zeros((9, columns)), np.tile([1.0, 2, 3], 3)])
        return pc.release(rows, loss=loss, mechanism=name, randomness=rehearsal(1), **facts)

    pure = pc.PureDP(epsilon=1, neighbours=relation)
    named = [made("symmetric-wishart", pure), made("frobenius", pure), made("gaussian")]
    least = min(named, key=lambda one: one["1"].law.rms_frobenius)
    assert made("auto").certificate.mechanism == least.certificate.mechanism
    assert plan_strata(rows=9, loss=loss, **facts).mechanism == least.certificate.mechanism
