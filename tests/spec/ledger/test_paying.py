"""Pay, draw, read, deliver, record: in this order, and nothing at all where the budget refuses."""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction

import numpy as np
import pytest

import privcov as pc
from privcov.errors import BudgetError, InputError, InternalError, OutputError, PrivcovError, RandomnessError
from privcov.ledger import Ledger
from privcov.mechanisms import MECHANISMS
from privcov.mechanisms.base import AdditiveMechanism
from privcov.noise.randomness import FirstBit, NoBits, kernel, rehearsal
from privcov.schema.grid import Grid
from privcov.summing.bounding import Bounding
from privcov.summing.gram import Gram

ONE = "replace-one"
LOSSES = {
    "pure": pc.PureDP(epsilon=1, neighbours=ONE),
    "approximate": pc.ApproxDP(epsilon=1, delta="1e-6", neighbours=ONE),
    "zcdp": pc.ZCDP(rho="0.1", neighbours=ONE),
}


@pytest.fixture
def ledger(tmp_path):
    return Ledger.init(tmp_path / "l.ledger", pc.ApproxDP(epsilon=20, delta="1e-3", neighbours=ONE))


@pytest.fixture
def empty(tmp_path):
    """A ledger with nothing to give for a loss of 1."""
    return Ledger.init(tmp_path / "e.ledger", pc.ApproxDP(epsilon="0.01", delta="1e-12", neighbours=ONE))


@pytest.fixture
def events(monkeypatch):
    """What happened, in order: payments, bits of the noise, rows, records."""
    seen = []

    def told(word, real):
        def call(*args, **words):
            seen.append(word)
            return real(*args, **words)

        return call

    monkeypatch.setattr(Ledger, "pay", told("pay", Ledger.pay))
    monkeypatch.setattr(Ledger, "done", told("done", Ledger.done))
    monkeypatch.setattr(Bounding, "rows", told("read", Bounding.rows))
    return seen


class Watched(type(kernel())):
    """Kernel bits that are reported."""

    def __init__(self, seen):
        super().__init__()
        self.seen = seen

    def words(self, count):
        self.seen.append("draw")
        return super().words(count)


class Forbidden(type(kernel())):
    def words(self, count):
        raise AssertionError("a random bit was drawn")


def once_each(events):
    return [word for place, word in enumerate(events) if not place or events[place - 1] != word]


@pytest.mark.parametrize("name", [n for n, kind in MECHANISMS.items() if issubclass(kind, AdditiveMechanism)])
def test_pay_draw_read_deliver_record(people, schema, ledger, events, name):
    loss = LOSSES[MECHANISMS[name].kinds[0]]
    pc.release(
        people,
        schema=schema,
        loss=loss,
        mechanism=name,
        ledger=ledger,
        deliver=lambda _: events.append("deliver"),
        randomness=Watched(events),
    )
    assert once_each(events) == ["pay", "draw", "read", "deliver", "done"]


def test_a_private_row_norm_is_part_of_the_one_payment(people, schema, ledger, events):
    pc.release(
        people,
        schema=schema,
        loss=LOSSES["pure"],
        row_norm="private",
        ledger=ledger,
        randomness=Watched(events),
    )
    assert events[0] == "pay"
    assert events.count("pay") == events.count("done") == 1
    assert ledger.spent == {"epsilon": 1, "delta": 0}


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("row_norm", ["declared", "private"])
def test_a_refusal_draws_nothing_and_reads_nothing(people, schema, empty, monkeypatch, name, row_norm):
    """A source that raises at its first bit, and rows that raise when they are read."""

    def read(*_, **__):
        raise AssertionError("a row was read")

    monkeypatch.setattr("privcov.table.csv.CsvTable.blocks", read)
    words = {} if name == "adaptive" else {"row_norm": row_norm}
    for kind in MECHANISMS[name].kinds:
        with pytest.raises(BudgetError, match="E301"):
            pc.release(
                people, schema=schema, loss=LOSSES[kind], mechanism=name, ledger=empty, randomness=Forbidden(),
                **words, **({"rank": 1} if name == "matrix-bingham" else {}),
            )  # fmt: skip
    assert empty.balance().burned == 0


def test_the_two_traps_of_the_test_above_do_spring(people, schema, ledger, monkeypatch):
    with pytest.raises(AssertionError, match="bit was drawn"):
        pc.release(people, schema=schema, loss=LOSSES["pure"], ledger=ledger, randomness=Forbidden())

    def read(*_, **__):
        raise AssertionError("a row was read")

    monkeypatch.setattr("privcov.table.csv.CsvTable.blocks", read)
    with pytest.raises(InternalError):
        pc.release(people, schema=schema, loss=LOSSES["pure"], ledger=ledger)
    assert ledger.balance().burned == 2  # both stay paid


REFUSED = {
    "too many columns for exact eigenvectors": {"mechanism": "eigenvectors"},
    "a rank out of range": {"mechanism": "power-method", "rank": 99},
    "no iterations": {"mechanism": "power-method", "iterations": 0},
    "rows missing": {"mechanism": "matrix-bingham", "rank": 3},
    "a sketch of no rows": {"mechanism": "johnson-lindenstrauss", "sketch_rows": 0, "loss": "approximate"},
    "an unknown option": {"mechanism": "laplace", "colour": "red"},
    "a withdrawn mechanism": {"mechanism": "sn"},
    "a share of nothing": {"row_norm": "private", "row_norm_share": 0},
    "an unknown row norm": {"row_norm": "lucky"},
}


@pytest.mark.parametrize("case", REFUSED)
def test_whatever_public_facts_refuse_is_refused_before_paying(ledger, case):
    d = 200 if "columns" in case else 6
    wide = pc.Schema.from_dict({"columns": {f"c{i}": {"lower": 0, "upper": 1} for i in range(d)}})
    words = dict(REFUSED[case])
    loss = LOSSES[words.pop("loss", "pure")]
    with pytest.raises(PrivcovError):
        pc.release(np.zeros((5, d)), schema=wide, loss=loss, ledger=ledger, randomness=Forbidden(), **words)
    assert [entry.kind for entry in ledger.log()] == ["opened"]


def test_joint_gaussian_without_an_intercept_is_refused_before_paying(ledger):
    bare = pc.Schema.from_dict({"intercept": False, "columns": {"a": {"lower": 0, "upper": 1}}})
    with pytest.raises(PrivcovError, match="intercept"):
        pc.release(
            np.zeros((5, 1)), schema=bare, loss=LOSSES["zcdp"], mechanism="joint-gaussian", ledger=ledger
        )
    assert [entry.kind for entry in ledger.log()] == ["opened"]


@pytest.mark.parametrize(
    "data", ["missing.csv", np.zeros((3, 1)), np.zeros((3, 3), dtype=complex), {"not": "a table"}]
)
def test_a_table_that_does_not_fit_is_refused_before_paying(schema, ledger, data):
    with pytest.raises(InputError):
        pc.release(data, schema=schema, loss=LOSSES["pure"], ledger=ledger)
    assert [entry.kind for entry in ledger.log()] == ["opened"]


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_draw_can_be_tried_without_a_bit(name):
    """``refuse_early`` stops at the first bit, and would not stop anywhere else: the draw itself then works."""
    kind, grid = MECHANISMS[name], Grid(dimension=3, exponent=18, squared_norm_bound=2**38, intercept=True)
    words = {"rank": 1} if name == "matrix-bingham" else {}
    for word in kind.kinds:
        kind(**words).refuse_early(loss=LOSSES[word], grid=grid)
        kind(**words).draw(loss=LOSSES[word], grid=grid, randomness=rehearsal(1))
    with pytest.raises(FirstBit):
        NoBits().words(1)


def test_a_rehearsal_does_not_pay(people, schema, ledger):
    with pytest.raises(PrivcovError, match="E212"):
        pc.release(people, schema=schema, loss=LOSSES["pure"], ledger=ledger, randomness=rehearsal(1))
    assert ledger.spent == {"epsilon": 0, "delta": 0}


def test_a_failing_draw_is_still_paid_for(people, schema, ledger):
    class Failing(type(kernel())):
        def words(self, count):
            raise RandomnessError("E501", "the kernel gives no randomness.")

    with pytest.raises(RandomnessError):
        pc.release(people, schema=schema, loss=LOSSES["pure"], ledger=ledger, randomness=Failing())
    assert (ledger.spent["epsilon"], ledger.balance().burned) == (1, 1)


def test_a_release_that_cannot_be_delivered_stays_paid_and_is_not_recorded(people, schema, ledger, tmp_path):
    with pytest.raises(OutputError):
        pc.release(
            people,
            schema=schema,
            loss=LOSSES["pure"],
            ledger=ledger,
            deliver=lambda made: made.save(tmp_path / "nowhere" / "r.json"),
        )
    assert (ledger.spent["epsilon"], ledger.balance().burned) == (1, 1)


def test_a_delivered_release_is_not_lost_when_it_cannot_be_recorded(people, schema, ledger, monkeypatch):
    def fail(*_, **__):
        raise BudgetError("E306", "busy.")

    monkeypatch.setattr(Ledger, "done", fail)
    with pytest.warns(UserWarning, match="paid for, as entry 2, but could not be recorded: E306"):
        made = pc.release(people, schema=schema, loss=LOSSES["pure"], ledger=ledger)
    assert made.rows == 300
    assert ledger.balance().burned == 1


def test_the_entry_says_what_was_run_and_the_record_which_file_came_out(people, schema, ledger, tmp_path):
    loss = LOSSES["approximate"]
    made = pc.release(people, schema=schema, loss=loss, mechanism="gaussian", ledger=ledger)
    made.save(tmp_path / "r.json")
    paid, done = ledger.log()[1:]
    assert paid.facts["mechanism"] == "gaussian"
    assert paid.facts["grid"]["dimension"] == 5
    assert paid.facts["noise"] == {
        "law": made.certificate.law.name,
        "scale": repr(made.certificate.law.scale),
    }
    assert Fraction(paid.facts["rho"]) < Fraction(1, 20)
    assert done.facts["release"] == hashlib.sha256((tmp_path / "r.json").read_bytes()).hexdigest()
    text = json.dumps(made.to_dict())
    assert "fingerprint" not in text
    assert "ledger" not in text


def test_the_same_table_is_recognised_in_any_order_and_engine_and_another_is_not(schema, ledger):
    import pandas as pd
    import pyarrow as pa

    columns = {"age": [30.0, 40.0, 50.0], "sex": ["F", "M", "F"], "income": [1.0, 2.0, 3.0]}
    frame = pd.DataFrame(columns)
    other = frame.assign(income=[1.0, 2.0, 4.0])
    for data in (frame, frame[::-1], pa.table(columns), other, pd.concat([frame, frame[:0]])):
        pc.release(data, schema=schema, loss=LOSSES["pure"], ledger=ledger)
    assert [e.same_table_as for e in ledger.log() if e.kind == "done"] == [None, 2, 2, None, 2]


def test_the_fingerprint_needs_the_key_and_sees_every_fact():
    """Two keys tell nothing about each other; a cell, a row of zeros, the grid or the schema each change it."""
    grid = Grid(dimension=2, exponent=20, squared_norm_bound=2**40)

    def print_of(rows, key=b"k", about="s", on=grid):
        gram = Gram(on)
        gram.add(np.array(rows, dtype=float).reshape(-1, 2))
        return gram.fingerprint(key, about)

    base = print_of([[1, 2]])
    assert base == print_of([[1, 2]])
    finer = Grid(dimension=2, exponent=19, squared_norm_bound=2**40)
    changed = [
        print_of([[1, 3]]),
        print_of([[1, 2], [0, 0]]),
        print_of([[1, 2]], key=b"l"),
        print_of([[1, 2]], about="t"),
        print_of([[1, 2]], on=finer),
    ]
    assert len({base, *changed}) == 6


def test_estimates_of_unbounded_rows_pay_too(ledger, tmp_path, events):
    rows = np.random.default_rng(1).normal(size=(400, 2))
    loss = pc.ZCDP(rho="0.1", neighbours=ONE)
    for _ in range(2):
        pc.estimate_gaussian(rows, loss=loss, largest_variance=10, ledger=ledger, randomness=Watched(events))
    assert events[0] == "pay"
    assert ledger.spent["rho"] == Fraction(1, 5)
    assert [e.same_table_as for e in ledger.log() if e.kind == "done"] == [None, 3]
    poor = Ledger.init(tmp_path / "p.ledger", pc.ZCDP(rho="0.05", neighbours=ONE))
    with pytest.raises(BudgetError, match="E301"):
        pc.estimate_gaussian(rows, loss=loss, largest_variance=10, ledger=poor, randomness=Forbidden())


def test_an_estimator_pays_at_every_fit_and_its_clones_pay_into_the_same_ledger(tmp_path):
    from sklearn.base import clone

    ledger = Ledger.init(tmp_path / "l.ledger", pc.PureDP(epsilon=2, neighbours=ONE))
    rows = np.linspace(0, 10, 500)[:, None]
    one = pc.PrivateCovariance(bounds=(0, 10), epsilon=1, neighbours=ONE, ledger=ledger)
    one.fit(rows)
    clone(one).fit(rows)
    with pytest.raises(BudgetError, match="E301"):
        clone(one).fit(rows)
    assert not hasattr(clone(one), "release_")


def test_an_add_remove_release_into_a_replace_one_ledger_costs_twice(people, schema, ledger):
    loss = pc.PureDP(epsilon=1, neighbours="add-remove")
    pc.release(people, schema=schema, loss=loss, ledger=ledger)
    assert ledger.spent["epsilon"] == 2
