"""The check of the wheel sees what it looks for; the check itself is a step of continuous integration."""

from __future__ import annotations

import subprocess
import sys

import pytest
from check_wheel import faults, watched

GOOD = [
    "privcov/__init__.py",
    "privcov/py.typed",
    "privcov/demo/people.csv",
    "privcov-0.1.0.dist-info/licenses/LICENSE",
    "privcov-0.1.0.dist-info/entry_points.txt",
]


def ended(program: str) -> tuple[int, str]:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    return done.returncode, done.stderr.strip()


def test_a_module_that_is_asked_for_is_seen_whether_it_is_installed_or_not() -> None:
    for name in ("wave", "no_such_module"):
        told = ended(watched("importlib.util", "find_spec", name, unwanted=[name]))
        assert told == (1, f"asked for {name}")


def test_a_call_that_asks_for_nothing_unwanted_ends_as_it_ends() -> None:
    assert ended(watched("operator", "add", 1, 1, unwanted=["wave"])) == (2, "")
    assert ended(watched("operator", "sub", 1, 1, unwanted=["wave"])) == (0, "")


@pytest.mark.parametrize("name", GOOD[1:])
def test_a_missing_file_is_a_fault(name: str) -> None:
    assert faults(GOOD) == []
    assert len(faults([one for one in GOOD if one != name])) == 1


@pytest.mark.parametrize(
    "name", ["tests/test_x.py", "privcov/__pycache__/a.pyc", "tools/house.py", "privcov/conftest.py"]
)
def test_a_stray_file_is_a_fault(name: str) -> None:
    assert faults([*GOOD, name]) == [f"{name} does not belong there"]
