"""What one line of a file could once do to other people's rows, as a steward would have met it.

Each table showed a violation: told apart in 100 of 100 runs or more. Here the whole path runs on both neighbours with
the same repeatable noise, so what differs between them is what the record at hand did; no false alarms.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import privcov as pc
from privcov.mechanisms.sensitivity import Sensitivity
from privcov.noise.randomness import rehearsal
from privcov.schema.grid import Grid

LOSS = pc.PureDP(epsilon=1, neighbours="replace-one")
XY = pc.Schema.from_dict(
    {
        "columns": {"x": {"lower": 0, "upper": 100}, "y": {"lower": 0, "upper": 100}},
        "ignore_extra": True,
    }
)


def moved(before: Path, after: Path, schema: pc.Schema) -> float:
    """How far the noisy matrix moves between two files, as a multiple of what one person may move it."""
    grid = Grid.of(schema)
    upper = [
        np.array(
            pc.release(path, schema=schema, loss=LOSS, mechanism="frobenius", randomness=rehearsal(1)).upper,
            dtype=float,
        )
        for path in (before, after)
    ]
    full = np.zeros((grid.dimension, grid.dimension))
    full[np.triu_indices(grid.dimension)] = upper[0] - upper[1]
    symmetric = full + full.T - np.diag(np.diag(full))
    return float(np.linalg.norm(symmetric) / float(Sensitivity.of(grid, LOSS.neighbours).frobenius))


def test_commas_of_one_line_do_not_change_other_lines(tmp_path: Path) -> None:
    lines = ["x,y,comment", "1,1,complete", *["100,100"] * 2_000]
    normal, commas = tmp_path / "normal.csv", tmp_path / "commas.csv"
    normal.write_text("\n".join([*lines, "50,50,", ""]))
    commas.write_text("\n".join([*lines, "50,50," + "," * 2_000, ""]))
    assert moved(normal, commas, XY) <= 1


def test_a_short_line_does_not_shift_the_pairs_of_an_estimate(tmp_path: Path) -> None:
    """4,000 rows 1, 1, −1, −1, …: neighbours are equal, so differences vanish unless one row is moved."""
    rows = ["1,0", "1,0", "-1,0", "-1,0"] * 1_000
    whole, short = tmp_path / "whole.csv", tmp_path / "short.csv"
    whole.write_text("\n".join(["x,y", *rows, ""]))
    short.write_text("\n".join(["x,y", "1", *rows[1:], ""]))
    loss = pc.ZCDP(rho="0.02", neighbours="replace-one")
    found = [
        pc.estimate_gaussian(
            path, columns=["x", "y"], loss=loss, largest_variance=100, randomness=rehearsal(3)
        ).covariance[0, 0]
        for path in (whole, short)
    ]
    assert all(abs(variance) < 0.5 for variance in found), found  # near 2 in the second once lines moved


def test_the_last_line_does_not_decide_about_blank_lines_before_it(tmp_path: Path) -> None:
    lines = ["x,y", "1,2", *[""] * 3_000]
    whole, blanked = tmp_path / "whole.csv", tmp_path / "blanked.csv"
    whole.write_text("\n".join([*lines, "3,4", ""]))
    blanked.write_text("\n".join([*lines, "", ""]))
    rows = {pc.release(path, schema=XY, loss=LOSS).rows for path in (whole, blanked)}
    assert rows == {3_002}


def test_the_first_record_does_not_decide_how_records_end(tmp_path: Path) -> None:
    schema = pc.Schema.from_dict({"columns": {"x": {"lower": 0, "upper": 100}}, "file": {"line_end": "cr"}})
    plain, odd = tmp_path / "plain.csv", tmp_path / "odd.csv"
    plain.write_bytes(b"\r".join([b"x", *[b"7"] * 500, b""]))
    odd.write_bytes(b"\r".join([b"x", b"\n", *[b"7"] * 499, b""]))
    assert {pc.release(path, schema=schema, loss=LOSS).rows for path in (plain, odd)} == {500}
    assert moved(plain, odd, schema) <= 1
