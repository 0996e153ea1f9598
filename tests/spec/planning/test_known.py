"""A plan of what is known at once says of it what the whole plan says, and names the rest."""

from __future__ import annotations

import pytest

import privcov as pc
from privcov.mechanisms import MECHANISMS
from privcov.planning.candidates import Refusal
from privcov.planning.known import has_law, plan_so_far

SCHEMA = pc.Schema.from_dict({"columns": {name: {"lower": 0, "upper": 9} for name in ("a", "b")}})
LAWS = {
    pc.PureDP(epsilon=1, neighbours="replace-one"): ["symmetric-wishart", "frobenius", "laplace"],
    pc.ApproxDP(epsilon=1, delta="1e-6", neighbours="add-remove"): ["gaussian", "laplace"],
    pc.ZCDP(rho="0.1", neighbours="replace-one"): ["gaussian"],
}
"""Mechanisms with a law, which is known once it was simulated for two columns and an intercept."""


@pytest.mark.parametrize("loss", LAWS, ids=lambda loss: loss.kind)
def test_what_is_known_is_what_the_plan_says_and_the_rest_is_named(loss):
    whole = pc.plan(schema=SCHEMA, rows=4000, loss=loss, mechanisms=LAWS[loss])
    made, missing = plan_so_far(
        schema=SCHEMA, rows=4000, loss=loss, purpose="covariance", simulated=lambda name: None
    )
    assert made.choice.mechanism == whole.choice.mechanism
    assert made.signal == whole.signal
    found = {one.mechanism.name: one for one in made.forecasts}
    for one in whole.forecasts:
        assert found[one.mechanism.name].frobenius.mean == pytest.approx(one.frobenius.mean, rel=1e-9)
    assert list(made.forecasts) == sorted(made.forecasts, key=lambda one: one.frobenius.mean)
    refused = {no.name for no in made.refusals}
    assert {*found} | refused | {*missing} == {*MECHANISMS}
    assert len(found) + len(refused) + len(missing) == len(MECHANISMS)
    order = [has_law(name) for name in missing]
    assert order == sorted(order, reverse=True)  # a law serves every budget, so it is simulated first
    assert False in order  # what samples eigenvectors has none


def test_what_was_simulated_joins_the_plan():
    (loss, *_) = LAWS
    pc.plan(schema=SCHEMA, rows=4000, loss=loss, mechanisms=LAWS[loss])
    made, missing = plan_so_far(
        schema=SCHEMA,
        rows=4000,
        loss=loss,
        purpose="covariance",
        simulated=lambda name: Refusal(name=name, reason="it takes too long."),
    )
    assert missing == ()
    assert "it takes too long." in {no.reason for no in made.refusals}
