"""A plan of what is known at once says of it what the whole plan says, and names the rest."""

from __future__ import annotations

import pytest

import privcov as pc
from privcov.mechanisms import MECHANISMS
from privcov.planning.candidates import Refusal
from privcov.planning.known import has_law, plan_so_far

SCHEMA = pc.Schema.from_dict({"columns": {name: {"lower": 0, "upper": 9} for name in ("a", "b")}})
LOSSES = [
    pc.PureDP(epsilon=1, neighbours="replace-one"),
    pc.ApproxDP(epsilon=1, delta="1e-6", neighbours="add-remove"),
    pc.ZCDP(rho="0.1", neighbours="replace-one"),
]


def refused(name):
    """A simulation that has nothing to say, so that the test takes no time."""
    return Refusal(name=name, reason="not simulated here.")


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.kind)
def test_what_is_known_at_once_is_what_the_plan_says(loss):
    made, missing = plan_so_far(schema=SCHEMA, rows=4000, loss=loss, purpose="covariance", simulated=refused)
    assert missing == ()
    names = [one.mechanism.name for one in made.forecasts]
    assert len(names) >= 2
    whole = pc.plan(schema=SCHEMA, rows=4000, loss=loss, mechanisms=names[::-1])
    assert made.choice.mechanism == whole.choice.mechanism
    assert made.signal == whole.signal
    assert names == [one.mechanism.name for one in whole.forecasts]
    for mine, theirs in zip(made.forecasts, whole.forecasts, strict=True):
        assert mine.frobenius.mean == pytest.approx(theirs.frobenius.mean, rel=1e-9)


def test_what_no_law_tells_is_named_and_laws_come_first():
    made, missing = plan_so_far(
        schema=SCHEMA, rows=4000, loss=LOSSES[0], purpose="covariance", simulated=lambda name: None
    )
    known = (
        {*(one.mechanism.name for one in made.forecasts), *(no.name for no in made.refusals)}
        if made
        else set()
    )
    assert known | {*missing} == {*MECHANISMS}
    assert known.isdisjoint(missing)
    order = [has_law(name) for name in missing]
    assert order == sorted(order, reverse=True)
    assert False in order  # the exponential mechanisms have none
