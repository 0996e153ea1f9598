"""A plan as a notebook shows it: the mechanisms side by side, the verdict, and what noise does to each column."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privcov.planning.words import MOST_COLUMNS
from privcov.report.drawing import Estimate, Markup, coefficients, tag
from privcov.report.notebook import card
from privcov.report.page.elements import figure, number, side_by_side, table
from privcov.report.page.promise import amounts

if TYPE_CHECKING:
    from privcov.planning.plan import Plan

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
    heads = ["column", *(["mean ±"] if plan.schema.intercept else []), "variance ±"]
    rows = [
        [
            column.column,
            *([] if column.mean is None else [number(column.mean, 3)]),
            number(column.variance, 3),
        ]
        for column in shown
    ]
    return table(heads, rows, caption=note)
