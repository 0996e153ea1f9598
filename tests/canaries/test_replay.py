"""Grey-box replay: neighbouring tables through the real pipeline; what reaches the mechanism is compared.

Deterministic, so no false alarms. Every ordered pair of {random, constant, zero} tables whose last row is one
of 15 special rows; what a mechanism is given must move by no more than the declared sensitivity, in exact
integers, and everything public must not move at all. The mutants below must each be caught.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

import privcov as pc
from privcov.mechanisms.sensitivity import Sensitivity
from privcov.privacy import Neighbours
from privcov.schema.grid import Grid
from privcov.summing import bounding
from privcov.summing.sum import sum_rows
from privcov.table import open_table

D = 3
HALF = math.sqrt(0.5)
SPECIAL = np.array(
    [
        [1, 0, 0], [0, 1, 0], [-1, 0, 0], [HALF, HALF, 0], [HALF, -HALF, 0], [10, 0, 0], [1e200, 0, 0],
        [1e-200, 0, 0], [np.nan] * 3, [np.inf] * 3, [0.5, np.nan, 0.5], [0, 0, 0], [5e-324] * 3,
        [1.7e308] * 3, [1, 1, 1],
    ]
)  # fmt: skip
BASES = [np.random.default_rng(0).normal(size=(6, D)), np.full((6, D), 0.3), np.zeros((6, D))]


@dataclass
class Seen:
    """What one run of the pipeline gave to the mechanism, and what it said in public."""

    upper: np.ndarray
    public: tuple[object, ...]


def schema_of(norm=1, bound=1, intercept=False, missing="midpoint"):
    columns = {f"c{i}": {"lower": -bound, "upper": bound} for i in range(D)}
    return pc.Schema.from_dict(
        {"columns": columns, "intercept": intercept, "row_norm_bound": norm, "missing": missing}
    )


def correct(table, schema):
    grid = Grid.of(schema)
    gram = sum_rows(open_table(table, schema), schema, grid)
    return Seen(gram.reveal_to_mechanism(), (grid, gram.rows))


def bounds_from_data(table, schema):
    """Mutant: the bounds are the largest finite values of the table."""
    finite = np.where(np.isfinite(table), table, 0)
    return correct(table, schema_of(bound=float(np.clip(np.abs(finite).max(), 1e-9, 1e300))))


def rows_with_gaps_dropped(table, schema):
    """Mutant: a row with a missing cell is dropped and the count follows."""
    return correct(table[np.isfinite(table).all(1)], schema)


def first_violation(pipeline, schema, neighbours=Neighbours.REPLACE_ONE):
    """The first pair on which the pipeline breaks the declared bound or says something different."""
    sensitivity = Sensitivity.of(Grid.of(schema), neighbours)
    weights = np.where(np.equal(*np.triu_indices(schema.dimension)), 1, 2)
    for base in BASES:
        runs = [pipeline(np.vstack([base, row]), schema) for row in SPECIAL]
        for first in runs:
            for second in runs:
                if first.public != second.public:
                    return "public"
                change = first.upper - second.upper
                if Fraction(int((weights * change**2).sum())) > sensitivity.frobenius**2:
                    return "frobenius"
                if int(np.abs(change).sum()) > sensitivity.triangle_l1:
                    return "l1"
    return None


@pytest.mark.parametrize("norm", ["0.3", "1", "1.5", None])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("missing", ["midpoint", "zero-row"])
def test_one_person_moves_what_the_mechanism_sees_by_no_more_than_declared(norm, intercept, missing):
    schema = schema_of(norm=norm or 9, intercept=intercept, missing=missing)
    assert first_violation(correct, schema) is None


def test_a_missing_clip_is_caught(monkeypatch):
    monkeypatch.setattr(bounding.Clip, "of", classmethod(lambda *_: None))
    monkeypatch.setattr(bounding, "_squared_norms", lambda rows, _: np.zeros(rows.shape[1]))
    assert first_violation(correct, schema_of()) is not None


def test_the_norm_check_alone_keeps_the_bound_when_the_clip_is_missing(monkeypatch):
    """Two independent guards: without the clip, rows that are too long become zero rows."""
    monkeypatch.setattr(bounding.Clip, "of", classmethod(lambda *_: None))
    assert first_violation(correct, schema_of()) is None


def test_bounds_taken_from_the_data_are_caught():
    assert first_violation(bounds_from_data, schema_of()) is not None


def test_dropping_incomplete_rows_is_caught():
    assert first_violation(rows_with_gaps_dropped, schema_of()) == "public"


def test_an_add_remove_sensitivity_used_for_replace_one_is_caught():
    assert first_violation(correct, schema_of(), neighbours=Neighbours.ADD_REMOVE) == "frobenius"


def test_noise_is_drawn_before_the_table_is_read(monkeypatch, people, schema):
    """A12: the time a draw takes can then say nothing about a person."""
    order = []
    from privcov.mechanisms.symmetric_wishart import SymmetricWishart
    from privcov.publish import release as publish

    draw, read = SymmetricWishart.draw, publish.sum_rows
    monkeypatch.setattr(SymmetricWishart, "draw", lambda *a, **k: (order.append("draw"), draw(*a, **k))[1])
    monkeypatch.setattr(publish, "sum_rows", lambda *a, **k: (order.append("read"), read(*a, **k))[1])
    pc.release(people, schema=schema, loss=pc.PureDP(epsilon=1, neighbours="replace-one"))
    assert order == ["draw", "read"]


def test_an_internal_error_remembers_nothing_of_its_cause(monkeypatch, people, schema):
    """Neither the message nor the chained exceptions may carry a value: loggers print both."""
    from privcov.publish import release as publish

    def fail(*_, **__):
        raise ValueError("salary 123456 of Ann")

    monkeypatch.setattr(publish, "sum_rows", fail)
    with pytest.raises(pc.PrivcovError) as caught:
        pc.release(people, schema=schema, loss=pc.PureDP(epsilon=1, neighbours="replace-one"))
    assert caught.value.code == "E900"
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None
