"""The reliability bench at a small scale, and that it would see what it looks for."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

import privcov as pc
from privcov.cli import main
from privcov.ledger import Request
from privcov_lab.bench import attacks, hostile, paid, reliability
from privcov_lab.bench.hostile import Shell

_SMALL = """
import json
from privcov_lab.bench.reliability import run
from privcov.cli import main
small = dict(processes=4, spends=12, kills=4, inputs=66, sizes=(0, 40_000), cases=0)
print(json.dumps(run(main, **(small | MORE), seed=SEED)))
"""


def ran(seed: int, **more: object) -> dict:
    """In a process of its own: it forks, and a test process has threads."""
    code = _SMALL.replace("SEED", str(seed)).replace("MORE", repr(more))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.long
def test_races_kills_full_disks_and_hostile_files_leave_no_fault():
    """A small sample; the whole of it: ``privcov bench reliability``. The attacks are sampled below."""
    result = ran(5)
    assert result["faults"] == 0, result
    race, killed, *_ = result["results"]
    assert race["accepted"] == race["affordable"] == 36
    assert killed["finished"] >= 3


_TEARING = """
import json, os, pathlib, tempfile
from privcov_lab.bench.hostile import Shell
from privcov_lab.bench.reliability import SCHEMA, killed
from privcov.cli import main
def tears(words):
    code = main(words)
    if words[-1] == "1.json":
        os.truncate("1.json", 40)
    return code
with tempfile.TemporaryDirectory() as place:
    os.chdir(place)
    pathlib.Path("people.toml").write_text(SCHEMA)
    print(json.dumps(killed(Shell(tears), kills=3, seed=1)))
"""


@pytest.mark.long
def test_a_torn_release_is_counted():
    done = subprocess.run([sys.executable, "-c", _TEARING], capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)
    assert (told["finished"], told["torn"], told["faults"]) == (2, 1, 1)
    assert told["found"] == ["1.json is torn"]
    assert told["what"].endswith("2 had finished, 0 were paid and lost, 1 torn")


@pytest.mark.long
def test_a_command_that_prints_a_value_hangs_floods_or_raises_is_counted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    good = hostile.written(Shell(main))
    monkeypatch.setattr(hostile, "SECONDS", 0.3)
    monkeypatch.setattr(hostile, "MEGABYTES", 100.0)
    monkeypatch.setattr(hostile, "written", lambda shell: good)

    def tells(words):
        print("row 3 has income 91357.3")
        return 2

    def hangs(words):
        while True:
            pass

    def raises(words):
        raise ValueError("oh")

    def silent(words):
        return 2

    def deceives(words):
        print("\x1b[2Jholds")
        return 0

    def floods(words):
        return 0 * len(b"x" * 200_000_000)

    def asks_for_all_memory(words):
        return 0 * len(bytes(2**50))

    def hangs_in_one_operation(words):  # in which no handler of Python runs
        return 0 * len(str(3 ** (10**8) % 7))

    for broken in (tells, hangs, raises, silent, deceives, asks_for_all_memory):
        assert hostile.fuzz(Shell(broken), 5, 1)["faults"] >= 5, broken.__name__
        assert hostile.lies(Shell(broken), 5)["faults"] >= 5, broken.__name__
    for broken in (floods, hangs_in_one_operation):  # the peak of a process grows once
        assert hostile.fuzz(Shell(broken), 1, 1)["faults"] >= 1, broken.__name__


def test_a_message_that_depends_on_one_row_is_counted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def gossip(words):
        code = main(words)
        if "nan" in (tmp_path / "t.csv").read_text():
            print("one cell was not a number")
        return code

    assert hostile.neighbours(Shell(main))["faults"] == 0
    assert hostile.neighbours(Shell(gossip))["faults"] == 1


@pytest.fixture(scope="module")
def attacked():
    """What the bench finds in a few cases of the attacks that take no process of the command line: those are in the
    quick suite as tests of their own (test_signals.py, test_connections.py)."""
    words = [sys.executable, Path(__file__).with_name("planted_attacks.py")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_attacks_that_once_succeeded_do_not(attacked):
    assert {(part["tried"], part["faults"]) for part in attacked["fine"].values()} == {(2, 0)}, attacked


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ("second names", ["payments succeeded, 0 were expected"]),
        ("tracebacks", ["the matrix follows"]),
        ("records", ["changed the number of rows"]),
        ("addresses", ["exit code 0", "a part of the password", "a file was made"]),
    ],
)
def test_an_attack_that_succeeds_is_counted(attacked, part, words):
    """A ledger that pays by two names, a draw that outlives its answer, records that meet, an address repeated."""
    found = attacked["broken"][part]
    assert found["faults"] >= 1
    for word in words:
        assert word in str(found["found"])


def test_every_attack_has_cases_and_a_sample_is_spread_over_them(attacked):
    assert len(attacked["cases"]) + 6 == reliability.PARTS
    assert all(attacked["cases"].values())
    seen = []
    cases = {str(number): lambda number=number: seen.append(number) or () for number in range(10)}
    assert reliability.attacked("", "cases", cases, most=2)["what"] == "2 of 10 cases"
    assert reliability.attacked("", "cases", cases, most=0)["tried"] == 0
    assert seen == [0, 5]
    assert reliability.attacked("", "cases", {"a": lambda: 1 / 0}, most=None)["faults"] == 1


def test_a_payment_without_a_release_and_what_lies_about_are_counted(tmp_path):
    paid.prepare(tmp_path)
    pc.Ledger.open(tmp_path / "wide.ledger").pay(Request(loss=attacks.ONE, mechanism="laplace"))
    (tmp_path / ".wide.release.json.reserved").touch()
    found = paid.incomplete(tmp_path / "wide.ledger", tmp_path / "wide.release.json")
    assert [fault.split()[0] for fault in found] == [
        "the",
        "wide.release.json",
        ".wide.release.json.reserved",
    ]


@pytest.mark.slow  # a process that draws noise for a second
def test_a_release_that_does_not_come_to_its_end_is_counted(tmp_path, monkeypatch):
    """Nothing can be done about SIGKILL: sent in the place of the other signals, it is a fault."""
    monkeypatch.chdir(tmp_path)
    code, entries, file, *_ = paid.signalled((signal.SIGKILL,), serving=False)
    assert (code, entries) == ("exit code -9", "the ledger has the entries opened, paid")
    assert file == "wide.release.json is not there, or torn"


def test_a_page_that_turns_a_proper_request_away_is_counted(monkeypatch):
    class Busy:
        status, end = 503, staticmethod(lambda: None)

        def __init__(self, home):
            self.reply = lambda name, wait: self

    monkeypatch.setattr(paid, "Page", Busy)
    monkeypatch.setattr(paid, "held", lambda page, content: nullcontext())
    assert list(paid.unfinished(b"")) == ["a proper request was answered with 503"]


def test_a_fault_is_exit_code_4(monkeypatch, capsys):
    """The command with parts that take no time, one of which finds something."""
    fine = {"part": "disks", "what": "", "faults": 0, "found": []}
    for name in ("race", "killed", "disks"):
        monkeypatch.setattr(reliability, name, lambda *_: fine)
    for name in ("fuzz", "lies", "neighbours"):
        monkeypatch.setattr(hostile, name, lambda *_: fine)
    for faults, code in (([], 0), (["it told"], 4)):
        part = {"signals": ("cases", {"a": lambda faults=faults: faults})}
        monkeypatch.setattr(attacks, "parts", lambda *_, part=part, **__: part)
        assert main(["bench", "reliability", "--quick"]) == code
        assert ("signals: a: it told" in capsys.readouterr().out) is bool(faults)


@pytest.mark.slow
def test_more_kills_more_damage_and_every_attack():
    sample = float(os.environ.get("PRIVCOV_SAMPLE", "1"))
    cases = None if sample >= 1 else 1
    result = ran(11, kills=int(4 + 100 * sample), inputs=int(100 + 5000 * sample), cases=cases)
    assert result["faults"] == 0, result
    assert [part["tried"] > 0 for part in result["results"] if "tried" in part] == [True] * 7
