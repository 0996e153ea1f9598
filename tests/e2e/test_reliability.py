"""The reliability bench at a small scale, and that it would see what it looks for."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from privcov.bench import hostile
from privcov.bench.hostile import Shell
from privcov.cli import main

_SMALL = """
import json
from privcov.bench.reliability import run
from privcov.cli import main
print(json.dumps(run(main, processes=4, spends=12, kills=4, inputs=66, sizes=(0, 40_000), seed=SEED)))
"""


def test_races_kills_full_disks_and_hostile_files_leave_no_fault():
    """In a process of its own: it forks, and a test process has threads. The whole of it:
    ``privcov bench reliability``."""
    done = subprocess.run(
        [sys.executable, "-c", _SMALL.replace("SEED", "5")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["faults"] == 0, result
    race, killed, *_ = result["results"]
    assert race["accepted"] == race["affordable"] == 36
    assert killed["finished"] >= 3


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


@pytest.mark.slow
def test_more_kills_and_more_damage():
    sample = float(os.environ.get("PRIVCOV_SAMPLE", "1"))
    more = f"kills={int(4 + 100 * sample)}, inputs={int(100 + 5000 * sample)}"
    code = _SMALL.replace("kills=4, inputs=66", more).replace("SEED", "11")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["faults"] == 0, done.stdout
