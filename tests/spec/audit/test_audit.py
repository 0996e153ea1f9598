"""The audit as a whole: every mechanism passes, its words are honest, its bounds are bounds.

Streams are seeded here, so results do not change; the slow tests use the kernel's bits and state their rates.
"""

from __future__ import annotations

import itertools
import json
import os
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

import privcov as pc
from privcov.audit import audit, pairs, schema_of
from privcov.audit.claims import Epsilon
from privcov.audit.distinguish import tell_apart
from privcov.audit.fit import overspent
from privcov.audit.sampling import Sampler, gather
from privcov.mechanisms import MECHANISMS
from privcov.mechanisms.eigenvectors import Eigenvectors
from privcov.noise.randomness import kernel, rehearsal
from privcov.privacy import Neighbours
from privcov.schema.grid import Grid

LOSSES = {
    "pure": pc.PureDP(epsilon=1, neighbours="replace-one"),
    "approximate": pc.ApproxDP(epsilon=1, delta="1e-6", neighbours="replace-one"),
    "zcdp": pc.ZCDP(rho="0.1", neighbours="replace-one"),
}
EVERY = [
    pytest.param(name, kind, id=f"{name}-{kind}")
    for name, mechanism in MECHANISMS.items()
    for kind in mechanism.kinds
]


def stream(start=0):
    seeds = itertools.count(start)
    return lambda: rehearsal(next(seeds))


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.long
def test_every_mechanism_passes_all_levels(name):
    """A few hundred runs: gross faults, and every line of the audit. The slow test below has power."""
    kind = MECHANISMS[name].kinds[0]
    report = audit(name, loss=LOSSES[kind], dimension=2, runs=240, processes=1, source=stream(), fresh=False)
    assert report.passed, report.render()
    assert {finding.level[:2] for finding in report.findings} >= {"L0", "L2", "L3"}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kind"), EVERY)
@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_every_mechanism_passes_with_many_runs_from_the_kernel(name, kind, neighbours):
    """False alarms: 1e-6 an audit here, under 1e-4 in all."""
    if neighbours not in MECHANISMS[name].relations:
        return
    loss = type(LOSSES[kind])(**LOSSES[kind].amounts, neighbours=neighbours)
    runs = max(1000, round(20_000 * float(os.environ.get("PRIVCOV_SAMPLE", "0.2"))))
    report = audit(name, loss=loss, dimension=3, runs=runs, error=1e-6)
    assert report.passed, report.render()


@pytest.mark.slow
def test_sound_mechanisms_are_not_accused_by_chance():
    """100 audits at error 0.05 each: at most 5 are expected to fail, more than 14 have probability 1e-4."""
    failed = 0
    for _ in range(50):
        failed += not audit(
            "laplace", loss=LOSSES["pure"], dimension=1, runs=2000, levels=(2,), error=0.05
        ).passed
        failed += not audit(
            "gaussian", loss=LOSSES["zcdp"], dimension=2, runs=2000, levels=(2,), error=0.05
        ).passed
    assert failed <= 14


def test_the_bound_of_a_mechanism_that_is_tight_comes_near_its_claim_and_stays_below():
    """One column of Laplace noise attains its ε: the attack must see most of it, or it sees nothing."""
    grid = Grid.of(schema_of(1))
    loss = LOSSES["pure"]
    sampler = Sampler(mechanism=MECHANISMS["laplace"](), loss=loss, grid=grid, source=stream())
    (pair,) = pairs(grid, loss.neighbours)
    (sides,) = sampler.both_sides([pair], 6000, processes=1, progress=None)
    told = tell_apart(pair, sides, [Epsilon(allowed=1.0)], error=1e-3)
    assert 0.75 < told.bounds[0].least <= 1
    assert told.curve.often[0] == told.curve.rarely[0] == 0
    assert told.curve.often[-1] == told.curve.rarely[-1] == 1
    assert (np.diff(told.curve.often) >= 0).all()


def test_the_half_that_chooses_has_no_part_in_the_judgement():
    """Garbage that happens to separate the first half says nothing about the second."""
    grid = Grid.of(schema_of(1))
    (pair,) = pairs(grid, Neighbours.REPLACE_ONE)
    noise = (rehearsal(1).normals(2000, 1) * 2**45).astype(np.int64)
    lured = noise.copy()
    lured[:1000] += 2**50
    told = tell_apart(pair, (lured, noise), [Epsilon(allowed=1.0)], error=1e-3)
    assert told.bounds[0].least < 0.5


def test_a_report_says_what_was_run_and_is_a_value():
    report = audit(
        "laplace", loss=LOSSES["pure"], dimension=2, runs=240, processes=1, source=stream(), fresh=False
    )
    text = report.render()
    for words in ("240 runs", "exact arithmetic", "rehearsal randomness", "L0 replay", "PASS", "not a proof"):
        assert words in text
    again = json.loads(json.dumps(report.to_dict()))
    assert again["verdict"] == "PASS"
    assert again["randomness"] == "rehearsal"
    assert len(again["findings"]) == len(report.findings)
    with pytest.raises(FrozenInstanceError):
        report.runs = 1


def test_progress_is_reported_to_the_end():
    seen = []
    loss = LOSSES["pure"]
    audit(
        "laplace",
        loss=loss,
        dimension=2,
        runs=600,
        levels=(2,),
        processes=2,
        progress=lambda *s: seen.append(s),
    )
    assert seen[-1] == (1200, 1200)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


@pytest.mark.parametrize(
    "given",
    [
        {"runs": 10},
        {"runs": 400.0},
        {"error": 0},
        {"error": float("nan")},
        {"levels": (0, 7)},
        {"dimension": 0},
    ],
)
def test_parameters_out_of_range_are_refused(given):
    with pytest.raises(pc.PrivcovError, match=r"E2\d\d"):
        audit("laplace", loss=LOSSES["pure"], **given)


def test_the_withdrawn_mechanism_is_refused_by_name():
    with pytest.raises(pc.PrivcovError, match="E208"):
        audit("sn", loss=LOSSES["pure"])


def test_children_draw_different_bits_and_their_errors_arrive():
    made = gather([(lambda count: kernel().words(count), 1000)], processes=4)
    assert len(set(made[0].tolist())) == 1000

    def fail(count):
        raise pc.PrivcovError("E999", "a child fails.")

    with pytest.raises(pc.PrivcovError, match="a child fails"):
        gather([(fail, 1000)], processes=2)


@pytest.mark.parametrize(
    ("name", "options", "d"),
    [
        ("eigenvectors", {"rank": 3}, 4),
        ("eigenvectors", {"exponent": "paper", "values": "eigenvalues", "split": "uniform"}, 2),
        ("power-method", {"rank": 1}, 3),
        ("laplace", {"constants": "published"}, 3),
        ("symmetric-wishart", {"arithmetic": "idealized"}, 1),
    ],
)
@pytest.mark.long
def test_options_are_audited_as_they_are(name, options, d):
    report = audit(
        name,
        loss=LOSSES["pure"],
        dimension=d,
        runs=200,
        levels=(1, 2),
        processes=1,
        source=stream(),
        **options,
    )
    assert report.passed, report.render()


def test_shares_that_add_up_to_more_than_the_budget_are_seen():
    grid = Grid.of(schema_of(2))
    draw = Eigenvectors().draw(loss=LOSSES["pure"], grid=grid, randomness=rehearsal(1))
    assert overspent(draw) == 1
    draw.shares["vectors"] *= 2
    assert overspent(draw) > 1
