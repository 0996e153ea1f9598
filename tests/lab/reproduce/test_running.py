"""Cells: the same numbers in any order and process, kept as they come, taken up where a run was stopped."""

from __future__ import annotations

import json
import sys
from types import ModuleType

import pytest

from privcov_lab.reproduce import running
from privcov_lab.reproduce.datasets import Datasets
from privcov_lab.reproduce.study import Cell, Effort, Findings, Study

CALLS = []


def normal(data, randomness, *, place, runs):
    CALLS.append(place)
    return {"values": [float(x) for x in randomness.normals(runs)]}


def failing(data, randomness, *, place):
    raise KeyboardInterrupt


def cells(effort):
    return [
        Cell(function="normal", arguments={"place": place, "runs": effort.runs(5)}, cost=place)
        for place in range(4)
    ]


@pytest.fixture
def toy(monkeypatch):
    module = ModuleType("privcov_lab.reproduce.papers.toy")
    module.normal, module.failing = normal, failing
    monkeypatch.setitem(sys.modules, module.__name__, module)
    CALLS.clear()
    return Study(
        name="toy",
        title="Toy",
        citation="Nobody",
        about="Nothing.",
        tables=(),
        cells=cells,
        find=lambda results: Findings(claims=(), figures=(), tables=()),
    )


def run(study, directory, *, quick=False, **options):
    return running.run(
        study,
        data=Datasets(directory, online=False),
        directory=directory,
        effort=Effort(quick=quick),
        workers=1,
        **options,
    )


def test_the_longest_cells_go_first_and_results_keep_the_order_of_the_list(toy, tmp_path):
    made = run(toy, tmp_path)
    assert CALLS == [3, 2, 1, 0]
    assert [line["place"] for line in made.lines] == [0, 1, 2, 3]
    assert len(made.one("normal", place=2)["values"]) == 5


def test_cells_have_noise_of_their_own_that_is_the_same_in_every_run(toy, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one, two = run(toy, tmp_path / "a"), run(toy, tmp_path / "b")
    assert [line["values"] for line in one.lines] == [line["values"] for line in two.lines]
    assert len({line["values"][0] for line in one.lines}) == 4


def test_a_second_run_measures_nothing_and_says_so(toy, tmp_path):
    first = run(toy, tmp_path)
    left = []
    CALLS.clear()
    assert run(toy, tmp_path, begin=left.append) == first
    assert left == [0]
    assert CALLS == []


def test_a_run_that_was_stopped_goes_on_where_it_was(toy, tmp_path, monkeypatch):
    def stop():
        if len(CALLS) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(toy, tmp_path, step=stop)
    assert CALLS == [3, 2]
    assert [line["place"] for line in run(toy, tmp_path).lines] == [0, 1, 2, 3]
    assert CALLS == [3, 2, 1, 0]


@pytest.mark.parametrize("damage", [b'{"key": "x', b"\xc3", b"[]\n", b'{"key": 1}\n'])
def test_a_line_that_was_cut_short_is_measured_again(damage, toy, tmp_path):
    whole = run(toy, tmp_path)
    path = tmp_path / running.KEPT
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]) + damage)
    CALLS.clear()
    again = run(toy, tmp_path)
    assert CALLS == [0]
    assert [line["values"] for line in again.lines] == [line["values"] for line in whole.lines]
    CALLS.clear()
    run(toy, tmp_path)
    assert CALLS == []


def test_a_new_revision_forgets_what_the_old_one_measured(toy, tmp_path):
    from dataclasses import replace

    run(toy, tmp_path)
    CALLS.clear()
    run(replace(toy, revision=2), tmp_path)
    assert CALLS == [3, 2, 1, 0]


def test_what_is_kept_says_what_was_measured(toy, tmp_path):
    run(toy, tmp_path, quick=True)
    line = json.loads((tmp_path / running.KEPT).read_text().splitlines()[0])
    assert line["function"] == "normal"
    assert line["arguments"] == {"place": 3, "runs": 2}
    assert len(line["values"]["values"]) == 2


def test_not_a_number_is_no_result(toy, tmp_path, monkeypatch):
    monkeypatch.setattr(
        sys.modules["privcov_lab.reproduce.papers.toy"], "normal", lambda *a, **k: {"value": float("nan")}
    )
    with pytest.raises(ValueError, match="not JSON compliant"):
        run(toy, tmp_path)
