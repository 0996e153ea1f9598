"""What the figures show, as panels."""

from __future__ import annotations

import math
from collections.abc import Sequence

from privcov_lab.reproduce import charts
from privcov_lab.reproduce.papers.klsu2018.measuring import DIMENSION, RHO
from privcov_lab.reproduce.papers.klsu2018.reading import (
    LABELS,
    Line,
    across,
    band,
    goal,
    grid,
    median,
    naive,
    needed,
    power,
    succeeded,
)
from privcov_lab.reproduce.study import Results

ERROR = "Mahalanobis error"
HIGHEST = 1e8
"""Rounds with too few rows can be off by any number of orders; errors above this are drawn here."""


def against_rows(results: Results) -> list[charts.Panel]:
    """A panel a condition number."""
    known = across(grid(results), "condition")
    return [
        _panel(f"κ = {power(k)}", "rows n", ERROR, _lines(grid(results, condition=k), "rows"))
        for k in (1, 10**4, 10**8)
        if k in known
    ]


def against_condition(results: Results) -> list[charts.Panel]:
    """A panel a number of rows."""
    known = across(grid(results), "rows")
    return [
        _panel(f"n = {n:,}", "condition number κ", ERROR, _lines(grid(results, rows=n), "condition"))
        for n in (3000, 30_000, 300_000)
        if n in known
    ]


def price(results: Results) -> list[charts.Panel]:
    """Error over that without privacy, and how many rows an accuracy takes."""
    panels = []
    for k in (10, 10**4):
        lines = grid(results, condition=k)
        x = [line["rows"] for line in lines]
        ratios = [
            charts.Line(label, x, [_shown(median(line, method) / median(line, "none")) for line in lines])
            for method, label in LABELS.items()
        ]
        panels.append(_panel(f"κ = {power(k)}", "rows n", "error / non-private error", ratios))
    conditions = across(grid(results), "condition")
    rows = []
    for method, label in LABELS.items():
        found = [needed(results, method, k, 0.2) for k in conditions]
        rows.append(charts.Line(label, conditions, [math.nan if n is None else n for n in found]))
    return [*panels, _panel("for an error of 0.2", "condition number κ", "rows needed", rows)]


def rates(results: Results) -> list[charts.Panel]:
    most = max(line["rows"] for line in grid(results))
    few = [line for line in grid(results, rows=most) if line["condition"] <= 1000]
    wide = [line for line in naive(results, condition=2, rho=RHO) if line["dimension"] != DIMENSION]
    sweeps = [
        ("rows n", "rows", grid(results, condition=1), -1.0),
        ("condition number κ", "condition", few, 1.0),
        ("columns d", "dimension", wide, 2.0),
        ("privacy ρ", "rho", naive(results, condition=2, dimension=DIMENSION), -0.5),
    ]
    panels = []
    for label, word, lines, said in sweeps:
        lines = sorted(lines, key=lambda line, word=word: float(line[word]))  # type: ignore[misc]
        x = [float(line[word]) for line in lines]
        y = [median(line, "truncated", "added") for line in lines]
        guide = [y[-1] * (value / x[-1]) ** said for value in x]
        both = [charts.Line("naive", x, y), charts.Line("slope of Lemma 2.2", x, guide)]
        panels.append(_panel(f"against {label}", label, "added error", both))
    return panels


def preconditioner(results: Results) -> list[charts.Panel]:
    lines = results.of("conditioning")
    by_condition = [
        charts.Line(f"κ = {power(k)}, d = {DIMENSION}", *_shares(results, DIMENSION, k))
        for k in across([line for line in lines if line["dimension"] == DIMENSION], "condition")
    ]
    by_dimension = [
        charts.Line(f"κ = {power(10**4)}, d = {d}", *_shares(results, d, 10**4))
        for d in across([line for line in lines if line["condition"] == 10**4], "dimension")
    ]
    return [
        charts.Panel(title=title, x_label="rows n", y_label="share that succeeded", lines=drawn, log_x=True)
        for title, drawn in (("by condition number", by_condition), ("by columns", by_dimension))
    ]


def _lines(lines: Sequence[Line], word: str) -> list[charts.Line]:
    """One line a method."""
    x = [line[word] for line in lines]
    drawn = []
    for method, label in LABELS.items():
        low, high = zip(*(map(_shown, band(line, method)) for line in lines), strict=True)
        drawn.append(charts.Line(label, x, [_shown(median(line, method)) for line in lines], low, high))
    return drawn


def _shown(value: float) -> float:
    return min(value, HIGHEST)


def _panel(title: str, x_label: str, y_label: str, lines: Sequence[charts.Line]) -> charts.Panel:
    return charts.Panel(title=title, x_label=x_label, y_label=y_label, lines=lines, log_x=True, log_y=True)


def _shares(results: Results, dimension: int, condition: float) -> tuple[list[int], list[float]]:
    lines = sorted(
        results.of("conditioning", dimension=dimension, condition=condition), key=lambda line: line["rows"]
    )
    return [line["rows"] for line in lines], [succeeded(line, goal(condition)) for line in lines]
