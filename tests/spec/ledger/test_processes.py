"""Many processes, kill -9, and death at every point of a release: never a release that was not paid for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest
from patience import PATIENCE

import privcov as pc
from privcov.ledger import Ledger

ONE = "replace-one"
SCHEMA = """
[columns.age]
lower = 0
upper = 100
[columns.sex]
levels = ["F", "M"]
[columns.income]
lower = 0
upper = 200
"""


def workers(home, *words, script="workers.py"):
    """What a script beside this one prints, run in ``home``."""
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name(script), *map(str, words)],
        cwd=home,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _race(home, where, budget, processes):
    Ledger.init(where, pc.PureDP(epsilon=budget, neighbours=ONE))
    reports = workers(home, where, processes, script="racers.py")
    assert [report.pop()[:4] for report in reports] == ["E301"] * processes
    paid = [number for report in reports for number in report]
    assert len(paid) == len(set(paid)) == 100 * Fraction(budget)
    ledger = Ledger.open(where)
    assert ledger.left == {"epsilon": 0}
    assert ledger.balance().burned == len(paid)
    assert ledger.verify() == ()


def test_eight_processes_spend_a_budget_exactly(where, tmp_path):
    _race(tmp_path, where, "0.6", 8)


@pytest.mark.slow
def test_many_processes_spend_a_large_budget_exactly(where, tmp_path):
    _race(tmp_path, where, "8", 24)


def _killed(home, where, kills):
    Ledger.init(where, pc.PureDP(epsilon=1000, neighbours=ONE))
    dead = workers(home, "killed", where, kills)
    ledger = Ledger.open(where)
    paid = {entry.number for entry in ledger.log() if entry.kind == "paid"}
    recorded = {entry.facts["entry"] for entry in ledger.log() if entry.kind == "done"}
    files = {int(path.stem) for path in home.glob("*.release")}
    assert files <= paid  # no release without a payment
    assert recorded <= files  # nothing recorded that was not delivered
    assert len(paid - files) <= dead  # a kill burns one payment at most
    assert all(path.read_text() == "made\n" for path in home.glob("*.release"))
    assert ledger.spent["epsilon"] == Fraction(len(paid), 100)
    assert ledger.verify() == ()
    assert len(files) >= kills  # they did work between kills


@pytest.mark.long
def test_kill_nine_burns_payments_and_frees_no_release(where, tmp_path):
    _killed(tmp_path, where, 12)


@pytest.mark.slow
def test_two_hundred_times_kill_nine(where, tmp_path):
    _killed(tmp_path, where, 200)


NO_FILE = {
    "after-the-payment",
    "before-reading",
    "before-the-noise-is-added",
    "before-the-file",
    "while-the-file-is-written",
    "before-the-file-has-its-name",
}
WITH_FILE = {"after-the-file", "before-the-record-is-committed"}


@pytest.mark.long
def test_death_at_any_point_leaves_a_payment_without_a_release_at_worst(where, people):
    home = people.parent
    (home / "people.toml").write_text(SCHEMA)
    ledger = Ledger.init(where, pc.PureDP(epsilon=1, neighbours=ONE))
    died = workers(home, "crash", where)
    assert set(died.values()) == {9}  # every process reached its point
    assert set(died) == NO_FILE | WITH_FILE | {"before-the-payment-is-committed", "after-the-record"}
    assert {path.stem for path in home.glob("*.json")} == WITH_FILE | {"after-the-record"}
    for path in home.glob("*.json"):
        assert pc.load(path).rows == 300  # whole
    balance = ledger.balance()
    assert balance.account.spent == {"epsilon": Fraction(9, 100)}  # all but the one that was not committed
    assert (balance.releases, balance.burned) == (1, 8)
    assert ledger.verify() == ()


def test_a_full_disk_is_a_refusal_and_costs_nothing(tmp_path):
    path = tmp_path / "l.ledger"
    Ledger.init(path, pc.PureDP(epsilon=1, neighbours=ONE))
    assert workers(tmp_path, "full_disk", str(path)).startswith(f"E302 {path} cannot be used: SQLITE_")
    ledger = Ledger.open(path)
    assert ledger.spent == {"epsilon": 0}
    assert ledger.verify() == ()
