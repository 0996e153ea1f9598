"""A plan to look at.

In a notebook: the mechanisms side by side, the verdict, and what noise does to each column. As a figure: error against
the budget for every mechanism, with the public range of the matrix shaded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from privcov.errors import ParameterError
from privcov.planning.candidates import candidate
from privcov.planning.forecast import Step, forecast, steps
from privcov.planning.plan import ColumnError, Plan
from privcov.planning.words import HIDDEN, MOST_COLUMNS
from privcov.privacy import Loss, display
from privcov.report import figures
from privcov.report.colours import place_of
from privcov.report.drawing import Estimate, Markup, coefficients, tag
from privcov.report.notebook import card
from privcov.report.page.elements import figure, number, side_by_side, table
from privcov.report.page.promise import amounts
from privcov.schema.grid import Grid

_BASIS = {"law": "", "surrogate": "~ ", "worst case": "≤ "}


def html(plan: Plan) -> str:
    """The whole plan."""
    rows = [
        [
            f"{made.mechanism.name}{' *' if made is plan.choice else ''}",
            _BASIS[made.basis] + number(made.frobenius.mean, 3),
            number(made.frobenius.high, 3),
            number(made.spectral.mean, 3),
            number(made.entry.mean, 3),
            str(plan.verdict(made)),
        ]
        for made in plan.forecasts
    ]
    said = (
        f"* {plan.reason} It is {plan.outlook()} Errors are for the matrix before repair, divided by the number of "
        "rows, in scaled units. "
        "Under 95 %: the value that the Frobenius error stays below 95 times in 100."
        + (f" What would be better, each tried: {' '.join(plan.exits)}" if plan.exits else "")
    )
    heads = ["mechanism", "Frobenius", "95 %", "spectral", "entry", "verdict"]
    picture = coefficients(
        [
            Estimate(name=made.mechanism.name, value=value, low=value, high=made.frobenius.high)
            for made in plan.forecasts
            for value in [made.frobenius.mean]
        ],
        title="Expected error of every mechanism",
        description=plan.reason,
        x_label="Frobenius error per row, scaled units",
    )
    return card(
        f"Plan: {plan.rows:,} rows, {len(plan.schema.features)} columns in the matrix, {amounts(plan.loss)}",
        side_by_side(
            tag("div", table(heads, rows, caption=said)),
            figure(
                picture,
                "The dot is the expected error; the bar ends where the error stays below 95 times in 100.",
            ),
            _columns(plan),
        ),
    )


def _columns(plan: Plan) -> Markup:
    """The noise on mean and variance of each column in original units."""
    shown = plan.columns()[:MOST_COLUMNS]
    hidden = len(plan.columns()) - len(shown)
    note = f"Noise of {plan.choice.mechanism.name} in original units, 95 times in 100."
    note += f" … and {hidden} more columns." if hidden else ""
    note += f" {HIDDEN}" if any(column.hidden for column in shown) else ""
    heads = ["column", *(["mean ±"] if plan.schema.intercept else []), "variance ±"]
    rows = [
        [
            column.column,
            *([] if column.mean is None else [_shown(column, "mean", column.mean)]),
            _shown(column, "variance", column.variance),
        ]
        for column in shown
    ]
    return table(heads, rows, caption=note)


def _shown(column: ColumnError, what: str, error: float) -> str:
    return "hidden" if what in column.hidden else number(error, 3)


POINTS = 13
REHEARSED_POINTS = 5
"""A mechanism that must be simulated at every budget is drawn through fewer points."""


def curves(
    plan: Plan, *, progress: Callable[[int], Step] | None = None
) -> dict[str, list[tuple[float, float]]]:
    """For each mechanism of a plan, (budget, expected Frobenius error per row) over three decades around its own."""
    grid = Grid.of(plan.schema)
    word = "rho" if plan.loss.kind == "zcdp" else "epsilon"
    here = float(plan.loss.amounts[word])
    wanted = [(made, REHEARSED_POINTS if made.law is None else POINTS) for made in plan.forecasts]
    total = sum(points * steps(made.mechanism, loss=made.loss, grid=grid) for made, points in wanted)
    step: Step = (lambda: None) if progress is None else progress(total)
    found: dict[str, list[tuple[float, float]]] = {}
    for made, points in wanted:
        line = []
        for amount in np.geomspace(here / 30, here * 10, points):
            loss = _with_amount(made.loss, word, amount)
            try:
                able = candidate(made.mechanism.name, loss=loss, grid=grid)
            except ParameterError:  # a promise this small may be beyond it
                continue
            error = forecast(able.mechanism, loss=loss, grid=grid, rows=plan.rows, step=step)
            line.append((float(amount), error.frobenius.mean))
        found[made.mechanism.name] = line
    return found


def draw(
    plan: Plan, path: str | Path, *, force: bool = False, progress: Callable[[int], Step] | None = None
) -> None:
    """Write the figure: SVG, PDF or PNG by the ending of the name. Needs the extra ``report``."""
    plt = figures.pyplot(path, force=force)
    lines = curves(plan, progress=progress)
    figure, axes = plt.subplots(figsize=(7.2, 5.0), layout="constrained")
    low, high = plan.signal.low, plan.signal.high
    worst = {made.mechanism.name for made in plan.forecasts if made.basis == "worst case"}
    axes.axhspan(low, high, color="0.9", zorder=0)
    for name, line in _ordered(lines):
        look = figures.style(place_of(name))
        axes.plot(*zip(*line, strict=True), **look, label=("≤ " if name in worst else "") + name)
    word = "rho" if plan.loss.kind == "zcdp" else "epsilon"
    axes.axvline(float(plan.loss.amounts[word]), color="0.4", linewidth=0.8, zorder=1)
    axes.set(
        xscale="log",
        yscale="log",
        xlabel={"rho": "ρ (zero-concentrated privacy)", "epsilon": "ε"}[word] + _delta(plan.loss),
        ylabel="expected error  ‖Ĉ − C‖ / n   (Frobenius, scaled units, unrepaired)",
    )
    axes.set_title(
        f"{plan.rows:,} rows, {len(plan.schema.features)} columns, {plan.loss.neighbours}", fontsize=9.5
    )
    edge = axes.get_xlim()[1] / 1.06  # curves fall to the right, so that corner is free
    told = {"va": "top", "ha": "right", "fontsize": 8, "color": "0.3"}
    axes.text(edge, high * 0.97, "range of the matrix itself", **told)
    figures.clear(axes)
    figure.legend(
        loc="outside right center",
        frameon=False,
        fontsize=8,
        title="largest first; ≤ worst table",
        title_fontsize=8,
    )
    figures.save(figure, path, force=force)


def _ordered(lines: dict[str, list[tuple[float, float]]]) -> list[tuple[str, list[tuple[float, float]]]]:
    """Largest error first, so that the legend reads like the figure."""
    return sorted(((n, v) for n, v in lines.items() if v), key=lambda item: -item[1][len(item[1]) // 2][1])


def _with_amount(loss: Loss, word: str, amount: float) -> Loss:
    return replace(loss, **{word: Fraction(f"{amount:.4g}")})  # type: ignore[arg-type]


def _delta(loss: Loss) -> str:
    return "" if "delta" not in loss.amounts else f"   (δ = {display(loss.amounts['delta'])})"
