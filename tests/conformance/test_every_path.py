"""Every way to release that fits together: rounds and matrices of one person, watched from outside, cost the promise.

For each combination of a loss, a relation and what ``release`` can be asked, pairs of tables that differ in one person
go through the whole path, from cells to the integers that noise is added to. What is spent follows from the laws that
samplers were asked for (``watching.py``). No statistics, so no false alarms.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest
from watching import rho_of, spent_on

import privcov as pc
from privcov.frame import framing, terms
from privcov.frame.choice import NormChoice
from privcov.frame.framing import Framing
from privcov.frame.spending import Purse
from privcov.mechanisms import MECHANISMS
from privcov.privacy import Neighbours
from privcov.publish.check import prepare
from privcov.schema.grid import Grid

LOSSES = {
    "pure": pc.PureDP(epsilon=2, neighbours="replace-one"),
    "approximate": pc.ApproxDP(epsilon=2, delta="1e-6", neighbours="replace-one"),
    "zcdp": pc.ZCDP(rho="0.3", neighbours="replace-one"),
}
NUMBERS = {
    "a": {"lower": 0, "upper": 1000},
    "b": {"lower": -1, "upper": 1, "missing": "indicator"},
    "d": {"lower": 0, "upper": 5, "fill": 4},
}
LEVELS = {"c": {"levels": ["k", "m"]}}
STRATA = {"s": {"levels": ["A", "B"]}}
WEIGHT = {"weight": "w", "largest_weight": 8}
BY, REST = {"by": "s"}, {"by": "s", "other": "rest"}
ORDERS = {
    "declared": ({}, {}),
    "norm": ({}, {"row_norm": "private"}),
    "scales": ({}, {"frame": "scales"}),
    "scales emptied": ({"missing": "zero-row"}, {"frame": "scales"}),
    "discrete": ({}, {"frame": "scales", "noise": "discrete", "mechanism": "gaussian"}),
    "joint": ({}, {"frame": "scales", "mechanism": "joint-gaussian"}),
    "laplace": ({}, {"frame": "auto", "mechanism": "laplace"}),
    "frobenius strata": (STRATA, {**BY, "frame": "scales", "mechanism": "frobenius"}),
    "shape": ({}, {"frame": "shape"}),
    "counted": ({}, {"frame": "scales", "cut": "counted"}),
    "shape counted": ({"max_rows_per_person": 3}, {"frame": "shape", "cut": "counted"}),
    "means": ({}, {"frame": "auto", "purpose": "means"}),
    "emphasis": ({}, {"frame": "scales", "emphasis": "a"}),
    "strata": (STRATA, BY),
    "strata total": (STRATA, {**REST, "total_share": "0.3"}),
    "strata scales": (STRATA, {**BY, "frame": "scales"}),
    "strata shape": (STRATA, {**REST, "frame": "shape"}),
    "strata norm": (STRATA, {**REST, "row_norm": "private"}),
    "weights norm": (WEIGHT, {"row_norm": "private"}),
    "weights scales": (WEIGHT, {"frame": "scales"}),
    "weights strata scales": ({**WEIGHT, **STRATA, "weight_power": "0.5"}, {**BY, "frame": "scales"}),
    "weights strata total": ({**WEIGHT, **STRATA}, {**BY, "total_share": "0.1"}),
    "three rows strata scales": ({"max_rows_per_person": 3, **STRATA}, {**BY, "frame": "scales"}),
    "persons strata scales": (
        {"person": "p", "max_rows_per_person": 2, **STRATA},
        {**REST, "frame": "scales"},
    ),
    "mean of persons shape": ({"person": "p", "per_person": "mean", **STRATA}, {**BY, "frame": "shape"}),
    "sum of persons counted": ({"person": "p", "per_person": "sum"}, {"frame": "scales", "cut": "counted"}),
    "derived strata scales": (
        {"derived": {"e": "a * d", "f": "(s == 'A') * b"}, **STRATA},
        {**BY, "frame": "scales"},
    ),
}
"""What a schema has beside its columns, and what a release is asked beside its loss."""


def schema_of(words):
    columns = {**NUMBERS, **LEVELS, **({"s": words["s"]} if "s" in words else {})}
    return pc.Schema.from_dict({"columns": columns, **{word: words[word] for word in words if word != "s"}})


def others(rows=240):
    """The rows of everybody else."""
    rng = np.random.default_rng(3)
    a = rng.normal(10, 2, rows)
    made = {"a": a, "b": (a - 10) / 40 + rng.normal(0, 0.01, rows), "d": rng.gamma(2, 0.3, rows)}
    made |= {
        "c": rng.choice(["k", "m"], rows),
        "s": rng.choice(["A", "B", "C"], rows),
        "w": rng.uniform(0, 8, rows),
    }
    return pd.DataFrame({**made, "p": [f"p{place // 2}" for place in range(rows)]})


OTHERS = others()
CELLS = {
    "a": [0.0, 1000.0, 1e300, math.nan, -math.inf, 12.0],
    "b": [-1.0, 1.0, math.nan, 1e-300, math.inf, 0.0],
    "d": [0.0, 5.0, math.nan, -1e300, 2.5, 5e-324],
    "c": ["k", "m", "", "unknown", None],
    "s": ["A", "B", "A", "B", "C", "", None],
    "w": [8.0, 8.0, 1e300, 0.0, -3.0, math.nan, math.inf, 1e-9],
}
FAR = (
    {"a": 0.0, "b": -1.0, "d": 0.0, "c": "k", "s": "A", "w": 8.0},
    {"a": 1000.0, "b": 1.0, "d": 5.0, "c": "m", "s": "B", "w": 8.0},
)


def persons(rng, count):
    """Pairs of what one person has in two tables: far apart, moved and alike, and drawn from strange cells."""
    yield [FAR[0]] * count, [FAR[1]] * count
    yield [FAR[1]] * count, [{**FAR[1], "s": "A"}] * count
    yield [{**FAR[1], "s": "B", "a": 1e300}] * count, [{**FAR[0], "s": "A", "w": math.nan}]
    while True:
        drawn = {name: rng.choice(np.array(cells, dtype=object), 2 * count) for name, cells in CELLS.items()}
        rows = pd.DataFrame(drawn).to_dict("records")
        yield rows[: rng.integers(1, count + 1)], rows[count : count + rng.integers(1, count + 1)]


def with_person(name, rows, schema):
    mine = pd.DataFrame(rows, columns=[*CELLS]).assign(p=name) if rows else OTHERS[:0]
    table = pd.concat([OTHERS, mine], ignore_index=True)
    names = [column.name for column in schema.read_columns] + ["p"] * (schema.person is not None)
    return table.astype({name: float for name in "abdw"})[names]


def worst(which, loss, pairs, *, seed=1, **more):
    """The largest share of the promise that a pair of neighbours spends."""
    words, order = ORDERS[which]
    schema, rng, spent = schema_of(words), np.random.default_rng(seed), 0.0
    # With an id there may be any number of rows; where they are bounded by word alone there are so many.
    count = 6 if schema.person is not None else schema.max_rows_per_person
    for (one, two), _ in zip(persons(rng, count), range(pairs), strict=False):
        if loss.neighbours is Neighbours.ADD_REMOVE:
            two = []
        if schema.person is None and loss.neighbours.count_is_public(schema.max_rows_per_person):
            one, two = one[:1], two[:1]
        left, right = with_person("one", one, schema), with_person("two", two, schema)
        share, _ = spent_on(left, right, schema=schema, loss=loss, **{**order, **more})
        assert share <= 1 + 1e-9, (one, two)
        spent = max(spent, share)
    return spent


def cases():
    """Every order with each loss that its mechanism can promise: one of them quick, the others long."""
    for place, (which, (_, order)) in enumerate(ORDERS.items()):
        kind = MECHANISMS.get(order.get("mechanism", "auto"))
        able = [
            (word, neighbours)
            for word, neighbours in product(LOSSES, Neighbours)
            if kind is None or (word in kind.kinds and neighbours in kind.relations)
        ]
        for turn, one in enumerate(able):
            yield pytest.param(which, *one, marks=[] if turn == place % len(able) else [pytest.mark.long])


@pytest.mark.parametrize(("which", "kind", "neighbours"), [*cases()])
def test_one_person_costs_no_more_than_the_promise_whatever_is_combined(which, kind, neighbours):
    loss = replace(LOSSES[kind], neighbours=neighbours)
    # Somebody spends most of it: what noise is for is seen. A bound that a round chose is loose for most rows.
    assert worst(which, loss, 8) > 0.5


def all_but_the_last(self, rounds):
    return HONEST["rest"](self, rounds[:-1])


def one_table(self, fitted):
    return Grid.of(fitted.schema)


def as_records(table, *words, **more):
    return HONEST["ask"](table, *words, **{**more, "schema": more["schema"].by_rows()})


def half(*_, **words):
    return HONEST["counts_l2"](*_, **words) / 2


HONEST = {"rest": Purse.rest, "ask": framing.ask, "counts_l2": terms.counts_l2}


@pytest.mark.parametrize(
    ("which", "kind", "target", "broken"),
    [
        ("scales", "zcdp", "privcov.frame.framing.Purse.rest", all_but_the_last),
        ("strata shape", "pure", "privcov.frame.framing.Purse.rest", all_but_the_last),
        ("frobenius strata", "pure", "privcov.publish.check.Ready.grid", one_table),
        ("persons strata scales", "zcdp", "privcov.frame.framing.ask", as_records),
        ("weights scales", "zcdp", "privcov.frame.terms.counts_l2", half),
    ],
)
def test_what_is_not_paid_for_is_found(which, kind, target, broken, monkeypatch):
    """Canaries: a round for nothing, noise for a person who cannot move, rows that were not gathered by person."""
    monkeypatch.setattr(target, broken)
    with pytest.raises(AssertionError):
        worst(which, LOSSES[kind], 8)


# --- what it costs, before anything is read -----------------------------------------------------------


def asked(loss, *, most, by=None, weighted=False, **words):
    """What a release would do, and what a ledger would be asked for."""
    own = {**(WEIGHT if weighted else {}), "max_rows_per_person": most}
    schema = pc.Schema.from_dict({"columns": {**NUMBERS, "s": {"levels": [1, 2]}}, **own})
    plain = {
        "mechanism": "auto",
        "purpose": "covariance",
        "row_norm": "declared",
        "row_norm_share": Fraction(1, 10),
    }
    plain |= {
        "frame": "declared",
        "cut": "told",
        "emphasis": None,
        "ledger": None,
        "engine": "local",
        "other": None,
    }
    plain |= {
        "expect_rows": None,
        "total_share": 0,
        "options": {"as_published": False, **words.pop("options", {})},
    }
    ready = prepare(
        np.zeros((6_000, len(schema.read_columns))), schema=schema, loss=loss, by=by, **{**plain, **words}
    )
    return ready, ready.order()


def paths_of(ready):
    """Every way that rounds and matrices may go, each as the losses of its parts."""
    choice = ready.choice
    if isinstance(choice, Framing):
        price, most = choice.price_of, choice.detail.most
        others = [one for name, one in price.items() if name != "scales"]
        for looks in range(min(1, most), most + 1):
            rounds = [price["scales"]] * looks + others if most else others
            yield [*rounds, choice.purse.rest(rounds)]
    elif isinstance(choice, NormChoice):
        yield [choice.price, choice.rest]
    else:
        yield [one for one in ready.losses if one is not None]


def concentrated(loss):
    """The ρ of one part, rounded to a float."""
    if isinstance(loss, pc.ZCDP):
        return float(loss.rho)
    return float(loss.epsilon) * math.tanh(float(loss.epsilon) / 2)


FRAMES = {
    "most": (1, 3),
    "by": (None, "s"),
    "weighted": (False, True),
    "frame": ("scales", "shape", "auto"),
    "cut": ("told", "counted"),
    "purpose": ("covariance", "means"),
}
WAYS = [
    *(dict(zip(FRAMES, values, strict=True)) for values in product(*FRAMES.values())),
    *({"most": most, "by": by, "row_norm": "private"} for most in (1, 3) for by in (None, "s")),
    *({"most": most, "by": "s", "total_share": one} for most in (1, 3) for one in ("0.3", "0.001", "best")),
    *({"most": 1, "frame": "scales", "mechanism": name} for name in MECHANISMS),
    {"most": 1, "frame": "scales", "mechanism": "gaussian", "options": {"noise": "discrete"}},
]


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("kind", list(LOSSES))
def test_prices_add_up_to_the_promise_exactly_on_every_path_and_a_ledger_is_asked_for_it(kind, neighbours):
    loss, seen = replace(LOSSES[kind], neighbours=neighbours), 0
    for way in WAYS:
        try:
            ready, order = asked(loss, **way)
        except pc.errors.ParameterError:  # a combination that is refused
            continue
        promise = ready.decided.loss
        assert promise == loss or promise == pc.PureDP(epsilon=loss.epsilon, neighbours=neighbours)
        assert order.loss == promise
        for path in paths_of(ready):
            seen += 1
            assert all(one.neighbours is neighbours for one in path)
            rho = sum(one.rho for one in path if isinstance(one, pc.ZCDP))
            epsilon = sum(one.epsilon for one in path if not isinstance(one, pc.ZCDP))
            if isinstance(promise, pc.ZCDP):
                # A pure part ε costs at most ε²/2; a private row norm is one, of a whole number of 2^-20.
                assert (
                    rho + sum(one.epsilon**2 / 2 for one in path if isinstance(one, pc.PureDP)) <= promise.rho
                )
            elif not rho:
                delta = sum(one.delta for one in path if isinstance(one, pc.ApproxDP))
                assert epsilon <= promise.epsilon
                assert delta <= promise.amounts.get("delta", 0)
            else:
                assert not epsilon
                assert rho <= rho_of(promise) * (1 + 1e-9)
            if order.rho is not None:
                known = [concentrated(one) for one in path if not isinstance(one, pc.ApproxDP)]
                known += [rho_of(one) for one in path if isinstance(one, pc.ApproxDP)]
                assert sum(known) <= float(order.rho) * (1 + 1e-9)
    assert seen > 40
