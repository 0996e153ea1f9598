"""Hops are counted as their definition says, on small files whose way is known by eye, and on a real release."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import hops
import pytest

ROOT = Path(__file__).parents[2]


def followed(work: str, **files: str) -> Any:
    """The way of a row through files of an invented privcov; ``work`` is the first call, in the file ``work``."""
    spaces: dict[str, dict[str, Any]] = {name: {"__name__": f"privcov.{name}"} for name in (*files, "work")}
    for name, text in {**files, "work": f"def go():\n    return {work}\n"}.items():
        exec(text, spaces[name])
        for space in spaces.values():  # every file knows every function
            space.update({n: v for n, v in spaces[name].items() if not n.startswith("__")})
    way = hops.Way(hops.Row([61.3728]))
    sys.setprofile(way)
    try:
        spaces["work"]["go"]()
    finally:
        sys.setprofile(None)
    return way


def edges(steps: list[Any]) -> list[str]:
    return [f"{step.source} {step.target}" for step in steps]


READ = "def read():\n    return {'age': [61.3728]}\n"
BOUND = "def bound(row):\n    return row\n"
BOX = "class Box:\n    def __init__(self, row):\n        self.row = row\n    def count(self):\n        return 1\n"


def test_giving_and_taking_are_hops_and_giving_back_is_none() -> None:
    way = followed("bound(read())", read=READ, bound=BOUND)
    assert edges(way.hops) == ["read work", "work bound"]
    assert edges(way.passages) == ["read work", "work bound", "bound work"]


def test_a_file_is_entered_as_often_as_it_is_handed_the_row() -> None:
    way = followed("bound(bound(read()))", read=READ, bound=BOUND)
    assert edges(way.hops) == ["read work", "work bound", "work bound"]


def test_functions_of_one_file_and_functions_without_the_row_are_no_hops() -> None:
    inner = BOUND + "def outer(row):\n    help_out(3)\n    return bound(row)\n"
    way = followed("outer(read())", read=READ, bound=inner, other="def help_out(n):\n    return n\n")
    assert edges(way.hops) == ["read work", "work bound"]


def test_a_question_about_the_row_is_no_hop_and_handing_it_on_is() -> None:
    asked = followed("Box(read()).count()", read=READ, box=BOX)
    assert edges(asked.hops) == ["read work", "work box"]
    more = BOX + "    def send(self):\n        bound(self.row)\n"
    sent = followed("Box(read()).send()", read=READ, box=more, bound=BOUND)
    assert edges(sent.hops) == ["read work", "work box", "work box", "box bound"]


def test_a_generator_that_goes_on_is_not_called_anew() -> None:
    blocks = "def blocks(rows):\n    for row in rows:\n        yield row\n    yield 0\n"
    way = followed("[block for block in blocks([read()])]", read=READ, blocks=blocks)
    assert edges(way.hops) == ["read work", "work blocks"]


@pytest.mark.parametrize("text", ["61.3728,27.1934", b"50,40\n61.3728,27.1934\n", (1, [{"x": 61.3728}])])
def test_the_row_is_recognized_inside_texts_and_containers(text: object) -> None:
    assert hops.Row([61.3728]).in_any([text])
    assert not hops.Row([61.3728]).in_any(["50,40", b"50,40", (1, [{"x": 50.0}])])


def test_the_row_of_a_real_release_goes_from_the_table_through_a_mechanism_to_the_release() -> None:
    command = [sys.executable, str(ROOT / "tools/hops.py"), "--json"]
    told = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    drawn = told["drawing"]
    assert drawn in (ROOT / "CONTRIBUTING.md").read_text(), "write what `tools/hops.py --drawing` prints"
    assert told["hops"] == len(told["way"])
    assert told["way"][0].startswith("table.")
    assert "release" in told["way"][-1].split(" → ")[1]
    between = [step.split(" → ")[1].split(".")[-1] for step in told["way"]]
    assert between.index("bounding") < between.index("gram") < between.index("base", between.index("gram"))
    assert told["hops"] <= 12, "the way of a row has become longer (docs/decisions/0017-the-tree.md)"
    rooms = [step.split(" → ")[1].split(".")[0] for step in told["way"]]
    assert [room for room, _ in itertools.groupby(rooms)] == [
        "table",
        "summing",
        "publish",
        "mechanisms",
        "summing",  # the mechanism opens the sum: nobody else may
        "releases",
    ]


def test_the_way_ends_with_the_finished_thing() -> None:
    end = "class End:\n    def __init__(self, row):\n        self.row = row\ndef pass_on(end):\n    return end\n"
    way = followed("pass_on(End(read()))", read=READ, end=end)
    assert edges(way.hops) == ["read work", "work end", "work end"]
    row = hops.Row([61.3728], end=dict)
    assert row.in_any([[61.3728]])
    assert not row.in_any([{"age": [61.3728]}])
