"""Every mechanism that releases strata: what one person changes who stays, leaves, comes or moves, over all matrices.

For two neighbouring tables the divergence of a release of strata is known exactly, because noise is independent between
strata: ε of Laplace noise is Σ ‖D_k‖₁ / scale over the upper triangles, of a Frobenius ball Σ ‖D_k‖_F / scale, of a
difference of Wisharts at most Σ ‖D_k‖_* / 2·scale, and ρ of Gaussian noise Σ ‖D_k‖_F² / 2σ². The D_k are differences of
exact sums of the pass that a release makes, the scale is that on its certificate. A total beside the strata changes by
Σ D_k, and its cost is added. No statistics, so no false alarms; noise that is too small by a hundredth is found by the
worst pair.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

import privcov as pc
from privcov.linalg.triangle import symmetric
from privcov.mechanisms import MECHANISMS
from privcov.mechanisms.sensitivity import Sensitivity
from privcov.noise.randomness import rehearsal
from privcov.privacy import Neighbours
from privcov.publish import check as publish_check
from privcov.schema.grid import Grid
from privcov.schema.strata import Strata
from privcov.summing.sum import Split, sum_strata
from privcov.table import open_table

LOSSES = {
    "pure": pc.PureDP(epsilon=2, neighbours="replace-one"),
    "approximate": pc.ApproxDP(epsilon=2, delta="1e-6", neighbours="replace-one"),
    "zcdp": pc.ZCDP(rho="0.2", neighbours="replace-one"),
}
TAKERS = [name for name, kind in MECHANISMS.items() if kind.takes_strata]
CASES = [
    pytest.param(
        name,
        kind,
        neighbours,
        id=f"{name}-{kind}-{neighbours}",
        marks=[pytest.mark.long] if kind == "approximate" or neighbours is Neighbours.ADD_REMOVE else [],
    )
    for name in TAKERS
    for kind in MECHANISMS[name].kinds
    for neighbours in MECHANISMS[name].relations
]
COST = {
    "laplace": lambda d, s: np.abs(d[np.triu_indices(len(d))]).sum() / s,
    "frobenius": lambda d, s: np.linalg.norm(d) / s,
    "wishart-difference": lambda d, s: np.abs(np.linalg.eigvalsh(d)).sum() / (2 * s),
    "gaussian": lambda d, s: (d**2).sum() / (2 * s**2),
    # The trace is d + 1 times as precise: in its direction the noise has a variance of σ²/(d + 1).
    "gaussian-free-trace": lambda d, s: ((d**2).sum() + np.trace(d) ** 2) / (2 * s**2),
}
PEOPLE = [
    (a, b, place)
    for a, b in [(0.0, -1.0), (100.0, -1.0), (50.0, 0.0), (math.nan, 1e300)]
    for place in (1.0, 2.0, 9.0, math.nan)
]
"""At corners of the bounds and within; in two of three strata, in none, and where the cell is missing."""


def schema_of(columns, most=1, **words):
    bounds = {"a": {"lower": 0, "upper": 100}, "b": {"lower": -1, "upper": 1}}
    chosen = {name: bounds[name] for name in columns}
    return pc.Schema.from_dict(
        {"columns": {**chosen, "s": {"levels": [1, 2, 3]}}, "max_rows_per_person": most, **words}
    )


def sums(rows, schema, other):
    """The exact sums of the strata that are released, in scaled units."""
    strata, rest = Strata.of(schema, by="s", other=other)
    grid = Grid.of(rest, strata=True)
    table = open_table(np.array(rows), schema)
    grams = sum_strata(table, rest, grid, split=Split(strata=strata, whole=schema))
    uppers = [gram.reveal_to_mechanism().astype(float) for gram in grams[: len(strata.names)]]
    return [symmetric(upper, grid.dimension) * float(grid.unit) for upper in uppers]


def check(name, loss, *, columns="ab", most=1, other=None, total_share=0, **words):
    """The largest share of the loss that a pair of neighbours spends; more than all of it is an error."""
    schema = schema_of(columns, most, **words)
    base = [[50.0, 0.5, place] for place in (1, 1, 2, 9)]
    used = [0, 1, 2] if columns == "ab" else [0, 2] if columns == "a" else [1, 2]
    made = pc.release(
        np.array(base)[:, used], schema=schema, loss=loss, mechanism=name, by="s", other=other,
        total_share=total_share, randomness=rehearsal(1),
    )  # fmt: skip
    law, spent = made.certificate.law, 0.0
    allowed = float(MECHANISMS[name]().as_zcdp(loss)) if law.name.startswith("gauss") else float(loss.epsilon)
    known = {}

    def table(person):
        if person not in known:
            rows = np.array([*base, *(list(one) for one in person)], dtype=float)[:, used]
            known[person] = sums(rows, schema, other)
        return known[person]

    nobody = () if loss.neighbours is Neighbours.ADD_REMOVE else None
    # A person with several rows has them all alike, or in two strata.
    people = [(one,) * most for one in PEOPLE]
    if most > 1:
        people += [(*one[1:], other_one[0]) for one, other_one in itertools.pairwise(people)]
    pairs = [(one, nobody) for one in people] if nobody == () else itertools.permutations(people, 2)
    for one, two in pairs:
        changes = [x - y for x, y in zip(table(one), table(two), strict=True)]
        cost = sum(COST[law.name](change, law.scale) for change in changes)
        if made.pooled is not None:
            cost += COST[made.pooled.law.name](sum(changes), made.pooled.law.scale)
        assert cost <= allowed * (1 + 1e-9), (one, two)
        spent = max(spent, cost / allowed)
    return spent


@pytest.mark.parametrize(("name", "kind", "neighbours"), CASES)
def test_one_person_changes_all_strata_together_by_no_more_than_is_paid_for(name, kind, neighbours):
    loss = replace(LOSSES[kind], neighbours=neighbours)
    for columns, other in (("a", None), ("ab", "elsewhere")):
        # Tight: somebody spends all of it, but for the ℓ1 norm, whose worst row is not a corner of these bounds.
        assert check(name, loss, columns=columns, other=other) > (0.99 if name != "laplace" else 0.8)


@pytest.mark.parametrize(("name", "kind", "neighbours"), CASES)
def test_the_same_where_a_share_of_the_loss_is_spent_on_a_total(name, kind, neighbours):
    loss = replace(LOSSES[kind], neighbours=neighbours)
    # Under replace-one the worst rows for the total are orthogonal, which no two are that have an intercept.
    least = {"laplace": 0.7, "frobenius": 0.8}.get(
        name, 0.95 if neighbours is Neighbours.REPLACE_ONE else 0.99
    )
    assert check(name, loss, total_share="0.3", other="elsewhere") > least


@pytest.mark.parametrize(("name", "kind"), [("symmetric-wishart", "pure"), ("gaussian", "zcdp")])
def test_a_total_that_is_drawn_as_if_strata_were_parallel_to_it_is_found(name, kind, monkeypatch):
    """Canary: strata keep all of the loss, and the total has its share on top."""
    honest = publish_check.shared_with_total
    free = lambda loss, mechanism, share: (honest(loss, mechanism, share)[0], loss)  # noqa: E731
    monkeypatch.setattr(publish_check, "shared_with_total", free)
    with pytest.raises(AssertionError):
        check(name, LOSSES[kind], total_share="0.05")


@pytest.mark.long
@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("kind", ["pure", "zcdp"])
def test_the_same_for_people_with_three_rows_who_may_be_in_several_strata(kind, neighbours):
    loss = replace(LOSSES[kind], neighbours=neighbours)
    name = "symmetric-wishart" if kind == "pure" else "gaussian"
    assert check(name, loss, most=3) > 0.99
    assert check(name, loss, most=3, total_share="0.3") > 0.9


@pytest.mark.parametrize(
    ("name", "kind", "columns", "words"),
    [
        ("gaussian", "zcdp", "ab", {}),
        pytest.param("gaussian", "approximate", "ab", {}, marks=pytest.mark.long),
        ("frobenius", "pure", "ab", {}),
        pytest.param("laplace", "pure", "ab", {}, marks=pytest.mark.long),
        (
            "symmetric-wishart",
            "pure",
            "b",
            {"intercept": False},
        ),  # of one number a change is one square at most
    ],
)
def test_noise_for_a_person_who_changes_one_stratum_only_is_found(name, kind, columns, words, monkeypatch):
    """Canary: calibrated as if a person who moves changed one stratum."""
    assert check(name, LOSSES[kind], columns=columns, **words) <= 1 + 1e-9
    honest = Sensitivity.of.__func__
    one = classmethod(lambda cls, grid, relation: honest(cls, replace(grid, strata=False), relation))
    monkeypatch.setattr(Sensitivity, "of", one)
    if name == "gaussian":  # and with it the free trace
        monkeypatch.setattr(
            "privcov.mechanisms.gaussian.Gaussian._free_trace",
            lambda self, loss, grid: loss.neighbours is Neighbours.REPLACE_ONE,
        )
    with pytest.raises(AssertionError):
        check(name, LOSSES[kind], columns=columns, **words)


@pytest.mark.parametrize("name", [name for name in MECHANISMS if name not in TAKERS])
def test_a_mechanism_without_a_proof_for_strata_is_refused(name):
    loss = LOSSES[MECHANISMS[name].kinds[0]]
    with pytest.raises(pc.PrivcovError, match="E282"):
        pc.release(np.zeros((3, 3)), schema=schema_of("ab"), loss=loss, mechanism=name, by="s")
