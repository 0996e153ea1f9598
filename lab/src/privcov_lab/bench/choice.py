"""Whether ``auto`` takes the right mechanism: every mechanism's measured error on the papers' tables.

Each release is repaired as a user would see it; the error is ‖Ĉ − C‖_F / rows, a mean over runs. ``auto`` decides
from public facts before any table is read; the measure is its error over the smallest error of any mechanism that
keeps the same promise (under (ε, δ), pure ones too). Noise is idealized and seeded: nothing here is a release.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcov.mechanisms.base import Mechanism, answer
from privcov.noise.randomness import rehearsal
from privcov.planning.candidates import Candidate, candidates, choose
from privcov.privacy import ApproxDP, Loss, PureDP
from privcov.publish.release import release
from privcov.releases.certificate import Certificate
from privcov.releases.release import Release
from privcov.report.tables import table
from privcov.schema import Schema
from privcov.schema.grid import Grid
from privcov.summing.sum import sum_rows
from privcov.table import open_table
from privcov_lab.bench.utility import EPSILONS, scaled_tables

DELTA = "0.000001"
RUNS = {"wine": 50, "airfoil": 50, "adult": 4}
SECONDS = 20.0
"""CPU time after which a slow mechanism's runs at one point are cut short; the count is printed."""


def run(
    data_directory: str | Path,
    *,
    epsilons: Sequence[float] = EPSILONS,
    datasets: Sequence[str] = ("wine", "airfoil", "adult"),
    runs: dict[str, int] | None = None,
    step: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Errors per table, ε and kind of promise; a missing file is skipped with a reason."""
    results: list[dict[str, Any]] = []
    tables, skipped = scaled_tables(data_directory, datasets)
    for name, rows in tables:
        place = _Place(rows)
        for epsilon in epsilons:
            for loss in (
                PureDP(epsilon=epsilon, neighbours="replace-one"),
                ApproxDP(epsilon=epsilon, delta=DELTA, neighbours="replace-one"),
            ):
                results.append(
                    {"dataset": name, "epsilon": epsilon, **place.point(loss, (runs or RUNS)[name])}
                )
                step()
    return {"bench": "choice", "results": results, "skipped": skipped}


def render(result: dict[str, Any]) -> str:
    """One line a point: what auto takes, its error, the best mechanism, the ratio."""
    lines = [
        [
            line["dataset"],
            f"{line['epsilon']:g}",
            line["kind"],
            line["auto"],
            f"{line['errors'][line['auto']]['error']:.4f}",
            line["best"],
            f"{line['errors'][line['best']]['error']:.4f}",
            f"{line['ratio']:.3f}",
            f"{line['zero']:.3f}",
        ]
        for line in result["results"]
    ]
    parts = []
    if lines:
        headings = ["table", "ε", "promise", "auto", "error", "best", "error", "auto/best", "zero"]
        ratios = [line["ratio"] for line in result["results"]]
        near = sum(ratio <= 1.1 for ratio in ratios)
        parts = [
            table(headings, lines),
            f"auto / best: largest {max(ratios):.3f}; within 10 % at {near} of {len(ratios)} points",
        ]
    return "\n".join(
        [*parts, *(f"skipped {item['dataset']}: {item['reason']}" for item in result["skipped"])]
    )


class _Place:
    """One table, its sum and its schema: columns in [-1, 1] and rows of norm at most 1, as in the papers."""

    def __init__(self, rows: NDArray[np.float64]) -> None:
        columns = {f"c{i}": {"lower": -1, "upper": 1} for i in range(rows.shape[1])}
        self.rows = rows
        self.schema = Schema.from_dict({"intercept": False, "row_norm_bound": 1, "columns": columns})
        self.grid = Grid.of(self.schema)
        self.gram = sum_rows(open_table(rows, self.schema), self.schema, self.grid)
        self.truth = rows.T @ rows

    def point(self, loss: Loss, runs: int) -> dict[str, Any]:
        """Every mechanism's mean error under one promise, beside the choice made without the table."""
        chosen = choose(loss=loss, grid=self.grid).mechanism.name
        able, _ = candidates(loss=loss, grid=self.grid)
        errors = {one.mechanism.name: self._errors(one, runs) for one in able}
        told = {
            name: {
                "error": float(np.mean(made)),
                "std_error": float(np.std(made) / len(made) ** 0.5),
                "runs": len(made),
            }
            for name, made in errors.items()
        }
        best = min(told, key=lambda name: told[name]["error"])
        return {
            "kind": loss.kind,
            "auto": chosen,
            "best": best,
            "ratio": told[chosen]["error"] / told[best]["error"],
            "zero": float(np.linalg.norm(self.truth)) / len(self.rows),
            "errors": told,
        }

    def _errors(self, one: Candidate, runs: int) -> list[float]:
        mechanism, made, start = one.mechanism.idealized(), list[float](), time.process_time()
        for seed in range(runs):
            made.append(self._error(self._release(mechanism, one.loss, seed)))
            if time.process_time() - start > SECONDS:
                break
        return made

    def _release(self, mechanism: Mechanism, loss: Loss, seed: int) -> Release:
        source = rehearsal(1000 + seed)
        if mechanism.row_norm is not None:  # reads the rows to choose a norm for them
            return release(self.rows, schema=self.schema, loss=loss, mechanism=mechanism, randomness=source)
        upper, sketch = answer(mechanism.draw(loss=loss, grid=self.grid, randomness=source), self.gram)
        return Release(
            schema=self.schema,
            rows=len(self.rows),
            upper=tuple(int(value) for value in upper),
            sketch=sketch,
            certificate=Certificate(
                mechanism=mechanism.name,
                options=mechanism.options,
                loss=loss,
                law=mechanism.law(loss=loss, grid=self.grid),
                arithmetic="idealized",
                randomness="rehearsal",
                proof=mechanism.proof,
                timing=mechanism.timing_note,
            ),
        )

    def _error(self, made: Release) -> float:
        return float(np.linalg.norm(made.second_moment(scaled=True) - self.truth)) / len(self.rows)


def _told(errors: list[float]) -> dict[str, Any]:
    spread = float(np.std(errors)) / len(errors) ** 0.5
    return {"error": float(np.mean(errors)), "std_error": spread, "runs": len(errors)}
