"""The comparison with peers: limits that stop, runs that are taken up again, a page that says what was measured.

The peers themselves are not installed here; privcov stands in for them, and small stand-ins that fail or never end.
"""

from __future__ import annotations

import csv
import json
import resource
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

PEERS = Path(__file__).parents[2] / "lab" / "peers"
PYTHON = Path(sys.executable)
ROWS = np.linspace(-0.5, 0.5, 400).reshape(200, 2)


@pytest.fixture(autouse=True)
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(PEERS))


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """A peer of these lines; the table of 50 rows is the invented one on which imports are done."""

    def make(*lines):
        body = ["if len(rows) == 50: return", *lines]
        text = ["def prepare(rows, epsilon, seed):", "    def work():", *(f"        {line}" for line in body)]
        (tmp_path / "with_stand_in.py").write_text("\n".join([*text, "    return work"]))
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    return make


def measured(peer, **options):
    from environments import measure

    return measure(PYTHON, peer, ROWS, **({"epsilon": 100.0, "seed": 1, "limit": 60} | options))


def test_privcov_answers_with_a_matrix_and_its_seconds():
    made, estimate = measured("privcov")
    assert made["answer"] == "done"
    assert 0 < made["cpu_seconds"] < 60
    assert np.linalg.norm(estimate - ROWS.T @ ROWS) / len(ROWS) < 0.01


def test_a_release_that_never_ends_is_stopped_at_the_limit(stand_in):
    stand_in("while True: pass")
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    made, estimate = measured("stand_in", limit=0.5)
    assert (made, estimate) == ({"answer": "none within the limit"}, None)
    assert (
        resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before < 10
    )  # not by the clock, after a minute


def test_a_peer_that_breaks_is_told_from_one_that_is_slow(stand_in):
    stand_in("raise ValueError('no such thing')")
    made, estimate = measured("stand_in")
    assert made["answer"] == "failed"
    assert "no such thing" in made["last_line"][0]
    assert estimate is None


@pytest.fixture
def compare(monkeypatch, tmp_path):
    """The comparison, with two tiny tables and nothing installed; it returns the releases that it asked for."""
    import compare as module

    calls = []

    def measure(python, peer, rows, **options):
        calls.append((peer, len(rows), options["epsilon"]))
        if len(rows) == 3:
            return {"answer": "none within the limit"}, None
        seconds = {"cpu_seconds": 0.25, "wall_seconds": 0.5, "eigh_seconds": 1e-5}
        return {"answer": "done", **seconds}, rows.T @ rows + 2 * len(rows) * np.eye(2)

    tables = [module.Table("small", lambda: np.eye(2)), module.Table("slow", lambda: np.ones((3, 2)))]
    monkeypatch.setattr(module, "environment", lambda home, peer: PYTHON)
    monkeypatch.setattr(module, "versions", lambda python, packages: dict.fromkeys(packages, "1.0"))
    monkeypatch.setattr(module, "tables", lambda data: tables)
    monkeypatch.setattr(module, "measure", measure)
    out = tmp_path / "out"

    def run(*options):
        calls.clear()
        monkeypatch.setattr(sys, "argv", ["compare.py", "--data", str(tmp_path), "-o", str(out), *options])
        module.main()
        return list(calls)

    run.out = out
    return run


def test_a_comparison_is_taken_up_where_it_was(compare):
    first = compare()
    assert [first.count((peer, 2, 1.0)) for peer in ("privcov", "diffprivlib", "opendp")] == [5, 5, 5]
    assert [first.count((peer, 3, 1.0)) for peer in ("privcov", "diffprivlib", "opendp")] == [1, 1, 1]
    assert compare() == []
    assert {call[2] for call in compare("--epsilons", "1,0.1", "--runs", "1")} == {0.1}


def test_another_limit_or_another_version_is_measured_again(compare):
    compare("--runs", "1")
    assert len(compare("--runs", "1", "--limit", "30")) == 6
    path = compare.out / "peers.json"
    known = json.loads(path.read_text())
    known["versions"]["opendp"]["numpy"] = "0.9"
    path.write_text(json.dumps(known))
    assert [call[0] for call in compare("--runs", "1", "--limit", "30")] == ["opendp", "opendp"]


def test_runs_stop_when_together_they_take_too_long(compare):
    assert len(compare("--case-seconds", "0.6", "--tables", "small")) == 3 * 3


def test_the_page_and_the_table_say_what_was_measured(compare):
    compare()
    lines = list(csv.DictReader((compare.out / "peers.csv").open()))
    small, slow = (next(line for line in lines if line["table"] == name) for name in ("small", "slow"))
    assert float(small["error"]) == pytest.approx(2 * 2**0.5)
    assert float(small["zero"]) == pytest.approx(2**0.5 / 2)
    assert (small["runs"], small["answered"], small["cpu_seconds"]) == ("5", "5", "0.25")
    assert (slow["runs"], slow["answered"], slow["error"]) == ("1", "0", "")
    page = (compare.out / "peers.md").read_text()
    assert "| small | 2 | 2 | 2.8 | 0.25 |" in page
    assert "| slow | 3 | 2 | — (0 of 1) | > 60 |" in page


def test_tables_stand_in_their_order_however_they_were_measured(compare):
    compare("--tables", "slow")
    compare("--runs", "1")
    cases = json.loads((compare.out / "peers.json").read_text())["cases"]
    assert [case["table"] for case in cases] == ["small"] * 3 + ["slow"] * 3


def test_the_synthetic_spectra_fall_as_their_names_say():
    from compare import synthetic

    flat, falling, steep = (np.diag(m.T @ m) for m in map(partial(synthetic, 13), (0, 1, 2)))
    assert flat.max() / flat.min() < 1.1
    assert 1.5 < falling[0] / falling[1] < 2  # a little less than 2 and 4: every row is divided by its norm
    assert 2.2 < steep[0] / steep[1] < 4
    assert np.allclose(np.linalg.norm(synthetic(13, 1), axis=1), 1)


def test_bench_eigenvectors_reads_what_time_peers_writes(tmp_path):
    from time_peers import timed

    from privcov_lab.bench import eigenvectors

    case = timed(PYTHON, "privcov", dimension=4, decay=0.0, limit=60)
    path = tmp_path / "peers.json"
    path.write_text(json.dumps({"results": [case, {**case, "answer": "none within the limit"}]}))
    result = eigenvectors.run(dimensions=(4,), growth=(4,), quick=True, peers=path)
    assert [peer["times_ours"] is None for peer in result["peers"]] == [False, True]
    assert "privcov, d = 4: none within the limit" in eigenvectors.render(result)
