"""Predicted error against measured error, for every mechanism, on dimensions and budgets of the papers' sizes.

Measured on releases of a made-up table (half of its rows' norm in one direction, the rest spread) with fresh noise. A
mechanism of known law must be predicted for every table: expectation within 5 %, the 95 % value within 10 %. Where
the error depends on the table the forecast is the worst case, which must not be below what is measured.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from privcov.mechanisms.predicted import simulated_differences
from privcov.planning.candidates import candidates
from privcov.planning.forecast import NORMS, forecast, summarize
from privcov.privacy import ApproxDP, Loss, PureDP
from privcov.report.tables import table
from privcov.schema.grid import Grid

DIMENSIONS = (2, 6, 13, 50, 108)
EPSILONS = ("0.1", "1", "4")
SECONDS = 8.0
ROWS = 10_000


def run(
    *,
    dimensions: Sequence[int] = DIMENSIONS,
    epsilons: Sequence[str] = EPSILONS,
    laws_only: bool = False,
    runs: int = 2000,
    step: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Ratios of measured to predicted, for every mechanism of the registry and both relations' promises."""
    results = []
    for d in dimensions:
        grid = Grid(dimension=d, exponent=17, squared_norm_bound=2**36, intercept=True)
        for epsilon in epsilons:
            for loss in (
                PureDP(epsilon=epsilon, neighbours="replace-one"),
                ApproxDP(epsilon=epsilon, delta="1e-6", neighbours="replace-one"),
            ):
                results += _point(grid, loss, runs, laws_only)
                step()
    return {"bench": "forecast", "results": results}


def render(result: dict[str, Any]) -> str:
    """One line a mechanism and dimension: the ratios furthest from 1 over the budgets."""
    lines = []
    keys = sorted({(r["basis"], r["mechanism"], r["dimension"]) for r in result["results"]})
    for basis, mechanism, d in keys:
        chosen = [
            r
            for r in result["results"]
            if (r["basis"], r["mechanism"], r["dimension"]) == (basis, mechanism, d)
        ]
        means = [ratio for r in chosen for ratio in (r["mean"]["frobenius"], r["mean"]["spectral"])]
        highs = [ratio for r in chosen for ratio in (r["high"]["frobenius"], r["high"]["spectral"])]
        lines.append(
            [
                mechanism,
                basis,
                str(d),
                str(min(r["runs"] for r in chosen)),
                f"{min(means):.3f}–{max(means):.3f}",
                f"{min(highs):.3f}–{max(highs):.3f}",
                "" if all(r["kept"] for r in chosen) else "BROKEN",
            ]
        )
    headings = ["mechanism", "basis", "d", "runs", "measured/predicted", "at 95 %", ""]
    return table(headings, lines, left=2)


def _point(grid: Grid, loss: Loss, runs: int, laws_only: bool) -> list[dict[str, Any]]:
    results = []
    for one in candidates(loss=loss, grid=grid)[0]:
        if loss.kind == "approximate" and one.loss.kind == "pure":  # measured under its own promise
            continue
        predicted = forecast(one.mechanism, loss=one.loss, grid=grid, rows=ROWS)
        if laws_only and predicted.law is None:
            continue
        measured, count = _measured(one.mechanism, one.loss, grid, runs)
        means, highs = measured[::2], measured[1::2]
        mean = {n: m / predicted.errors[n].mean for n, m in zip(NORMS, means, strict=True) if m}
        high = {n: m / predicted.errors[n].high for n, m in zip(NORMS, highs, strict=True) if m}
        results.append(
            {
                "mechanism": one.mechanism.name,
                "basis": predicted.basis,
                "dimension": grid.dimension,
                "loss": str(one.loss),
                "runs": count,
                "mean": mean,
                "high": high,
                "kept": kept(predicted.basis, mean, high),
            }
        )
    return results


def kept(basis: str, mean: dict[str, float], high: dict[str, float], *, slack: float = 0.0) -> bool:
    """Whether the forecast kept its word, give or take what so few runs cannot tell."""
    if basis == "law":
        near = all(abs(ratio - 1) <= 0.05 + slack for ratio in mean.values())
        return near and all(abs(ratio - 1) <= 0.1 + slack for ratio in high.values())
    return mean["frobenius"] <= 1 + slack and high["frobenius"] <= 1 + 2 * slack


def _measured(mechanism: Any, loss: Loss, grid: Grid, runs: int) -> tuple[list[float], int]:
    d = grid.dimension
    trace = float(grid.squared_norm_bound * grid.unit) * 0.6 * ROWS
    spectrum = [0.5 * trace + 0.5 * trace / d, *[0.5 * trace / d] * (d - 1)]
    parts: list[np.ndarray[Any, Any]] = []
    start, count = time.process_time(), 0
    while count < runs and (count == 0 or time.process_time() - start < SECONDS):
        parts.append(
            simulated_differences(
                mechanism,
                loss=loss,
                grid=grid,
                spectrum=spectrum,
                rows=ROWS,
                runs=max(1, min(runs, 4000 // d)),
                seed=7 + count,
            )
        )
        count += len(parts[-1])
    return [value / ROWS for value in summarize(np.concatenate(parts))], count
