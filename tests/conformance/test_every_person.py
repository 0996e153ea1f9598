"""Every mechanism: what one person changes whose rows have weights, or who has any number of records.

For two neighbouring tables the divergence of additive noise is known exactly (``test_every_stratum.COST``): the change
is a difference of exact sums of the pass that a release makes, the scale is that on its certificate. Weights are the
largest, beyond it, tiny, none, negative and no numbers, at three powers. No statistics, so no false alarms.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from test_every_stratum import COST, LOSSES

import privcov as pc
from privcov.linalg.triangle import symmetric
from privcov.mechanisms import MECHANISMS
from privcov.mechanisms.sensitivity import Sensitivity
from privcov.noise.randomness import rehearsal
from privcov.privacy import Neighbours
from privcov.schema.grid import Grid
from privcov.summing.bounding import Weighing
from privcov.summing.sum import sum_rows
from privcov.table import open_table
from privcov.table.persons import Kept

LARGEST = 8.0
WEIGHTS = (LARGEST, 1e300, 1e-300, LARGEST / 1000, 0.0, -3.0, math.nan, math.inf)
CORNERS = ((100.0, -1.0), (0.0, 1.0), (50.0, math.nan))
WEIGHTED = ("laplace", "frobenius", "symmetric-wishart", "gaussian")
"""The additive mechanisms that need no constant in every row: a weighted row has none."""
CASES = [
    pytest.param(
        name,
        kind,
        neighbours,
        id=f"{name}-{kind}-{neighbours}",
        marks=[] if (kind, neighbours) == ("zcdp", Neighbours.ADD_REMOVE) else [pytest.mark.long],
    )
    for name in WEIGHTED
    for kind in MECHANISMS[name].kinds
    for neighbours in MECHANISMS[name].relations
]
RULES = {"rows": {"max_rows_per_person": 3}, "mean": {"per_person": "mean"}, "sum": {"per_person": "sum"}}


def schema_of(**words):
    columns = {"a": {"lower": 0, "upper": 100}, "b": {"lower": -1, "upper": 1}}
    return pc.Schema.from_dict({"columns": columns, **words})


def weighted(power):
    return schema_of(weight="w", largest_weight=LARGEST, weight_power=power)


def tabled(rows):
    return pd.DataFrame(rows, columns=["id", "a", "b", "w"]).astype({"id": str})


def spent_by(name, loss, schema, people, base):
    """The largest share of the loss that a pair of neighbours spends; more than all of it is an error."""
    schema = replace(schema, ignore_extra=True)
    grid, key = Grid.of(schema), rehearsal(1)
    made = pc.release(tabled(base), schema=schema, loss=loss, mechanism=name, randomness=key)
    law = made.certificate.law
    allowed = float(MECHANISMS[name]().as_zcdp(loss)) if law.name.startswith("gauss") else float(loss.epsilon)

    @cache
    def summed(person):
        gram = sum_rows(open_table(tabled([*base, *person]), schema), schema, grid)
        return symmetric(gram.reveal_to_mechanism().astype(float), grid.dimension) * float(grid.unit)

    nobody = loss.neighbours is Neighbours.ADD_REMOVE
    pairs = [(one, ()) for one in people] if nobody else list(itertools.combinations(people, 2))
    costs = [COST[law.name](summed(one) - summed(two), law.scale) for one, two in pairs]
    assert max(costs) <= allowed * (1 + 1e-9), pairs[int(np.argmax(costs))]
    return max(costs) / allowed


BASE = [("x", 50.0, 0.5, 1.0), ("y", 20.0, -0.5, LARGEST), ("z", 90.0, 0.1, 0.01)]


def of_weights(name, loss, power):
    people = [(("p", *corner, weight),) for corner in CORNERS for weight in WEIGHTS]
    return spent_by(name, loss, weighted(power), people, BASE)


@pytest.mark.parametrize(("name", "kind", "neighbours"), CASES)
@pytest.mark.parametrize("power", [0.5, *(pytest.param(power, marks=pytest.mark.long) for power in (1, 0))])
def test_one_person_of_any_weight_changes_no_more_than_is_paid_for(name, kind, neighbours, power):
    loss = replace(LOSSES[kind], neighbours=neighbours)
    found = of_weights(name, loss, power)
    # Tight under add-remove, where a corner of the largest weight spends all of it, but for the ℓ1 norm.
    tight = neighbours is Neighbours.ADD_REMOVE and name != "laplace"
    assert found > (0.99 if tight else 0.5)


def _by_the_table(self, by_feature, cells, honest=Weighing.apply):
    """Mutant: weights are measured in the largest of the table, which one person can change for all."""
    honest(replace(self, largest=float(np.max(cells[np.isfinite(cells)]))), by_feature, cells)


@pytest.mark.parametrize("name", ["gaussian", pytest.param("frobenius", marks=pytest.mark.long)])
@pytest.mark.parametrize("fault", ["noise for an average weight", "weights by the table"])
def test_weights_that_are_taken_from_the_table_or_for_smaller_than_they_are_are_found(
    name, fault, monkeypatch
):
    """Canaries: noise for rows that count half, and a largest weight that is read off the rows."""
    loss = replace(LOSSES["pure" if name == "frobenius" else "zcdp"], neighbours=Neighbours.ADD_REMOVE)
    assert of_weights(name, loss, 1) <= 1 + 1e-9
    if fault == "weights by the table":
        monkeypatch.setattr(Weighing, "apply", _by_the_table)
    else:
        honest = Sensitivity.of.__func__
        half = classmethod(
            lambda cls, grid, relation: honest(
                cls, replace(grid, squared_norm_bound=grid.squared_norm_bound // 2), relation
            )
        )
        monkeypatch.setattr(Sensitivity, "of", half)
    with pytest.raises(AssertionError):
        of_weights(name, loss, 1)


def of_persons(name, loss, rule, **words):
    """Persons of one record, of as many as are kept, and of many, at corners and mixed."""
    records = [("p", *corner, LARGEST) for corner in CORNERS]
    people = [(one,) * times for one in records for times in (1, 3, 40)] + [tuple(records * 9)]
    return spent_by(name, loss, schema_of(person="id", **RULES[rule], **words), people, BASE)


@pytest.mark.long
@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize(("name", "kind"), [("symmetric-wishart", "pure"), ("gaussian", "zcdp")])
@pytest.mark.parametrize("rule", list(RULES))
def test_one_person_of_any_number_of_records_changes_no_more_than_is_paid_for(name, kind, neighbours, rule):
    loss = replace(LOSSES[kind], neighbours=neighbours)
    assert of_persons(name, loss, rule) > 0.3
    if rule == "rows":
        weights = {"weight": "w", "largest_weight": LARGEST, "weight_power": 0.5}
        assert of_persons(name, loss, rule, **weights) > 0.3


def test_a_person_whose_records_are_not_bounded_is_found(monkeypatch):
    """Canary: all records of a person are summed."""
    loss = replace(LOSSES["zcdp"], neighbours=Neighbours.ADD_REMOVE)
    assert of_persons("gaussian", loss, "rows") > 0.99
    honest = Kept.__init__

    def unbounded(self, schema):
        honest(self, schema)
        self._most = 10**9

    monkeypatch.setattr(Kept, "__init__", unbounded)
    with pytest.raises(AssertionError):
        of_persons("gaussian", loss, "rows")
