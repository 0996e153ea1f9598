"""Error against the budget as a chart, for whatever is asked about and in its own units; and where sliders stop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from privcov.errors import ParameterError
from privcov.mechanisms import MECHANISMS
from privcov.planning.forecast import Forecast
from privcov.planning.known import has_law, taken_by_auto
from privcov.planning.signal import SignalRange
from privcov.planning.targets import Target
from privcov.privacy import decimal_text, display
from privcov.report.colours import place_of
from privcov.report.drawing import Line, curves
from privcov.schema import Schema
from privcov.schema.grid import Grid
from privcov.web.forecasting import Asked, forecast_or_task
from privcov.web.simulating import Simulator, Task

BUDGETS = ("0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1", "2", "5", "10")
"""Where the curves of laws have their points."""
SIMULATED_BUDGETS = ("0.01", "0.1", "1", "10")


def question(schema: Schema, word: str, one: str, other: str) -> Target:
    """What the errors are asked about: the whole matrix, or a column or two in their own units.

    >>> schema = Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}}})
    >>> unit_words(question(schema, "mean", "age", ""))
    'noise on mean(age), original units, 95 %'
    """
    names = [feature.name for feature in schema.features]

    def place(name: str) -> int:
        if name not in names:
            raise ParameterError("E263", f"there is no column {name!r}.", "Pick one from the list.")
        return names.index(name)

    if word == "frobenius":
        return Target(text="frobenius", bound=1.0, norm="frobenius")
    if word == "mean" and schema.intercept:
        return Target(text=f"mean({one})", bound=1.0, places=(place(one),))
    if word == "variance":
        return Target(text=f"variance({one})", bound=1.0, places=(place(one), place(one)))
    if word == "covariance":
        return Target(text=f"covariance({one}, {other})", bound=1.0, places=(place(one), place(other)))
    raise ParameterError("E263", "errors can be shown for frobenius, mean, variance or covariance.")


def unit_words(target: Target) -> str:
    """What the numbers of a question are, in words."""
    if target.norm:
        return "expected error per row, Frobenius, scaled units"
    return f"noise on {target.text}, original units, 95 %"


def drawn(
    asked: Asked, target: Target, simulator: Simulator, *, width: float = 440
) -> tuple[str, tuple[Task, ...]]:
    """Error against the budget for every mechanism as SVG, and what is still being simulated for it."""
    word = "rho" if asked.loss.kind == "zcdp" else "epsilon"
    taken = taken_by_auto(asked.loss, Grid.of(asked.schema), asked.purpose).mechanism.name
    lines, pending = [], []
    for name in MECHANISMS:
        points = []
        for amount in _budgets(name):
            loss = replace(asked.loss, **{word: Fraction(amount)})  # type: ignore[arg-type]
            found = forecast_or_task(asked, name, loss, simulator)
            if isinstance(found, Forecast):
                points.append((float(amount), target.error(found, asked.schema, None)))
            elif isinstance(found, Task):
                pending.append(found)
        if len(points) > 1:
            lines.append(Line(name=name, points=points, bold=name == taken, place=place_of(name)))
    lines.sort(key=lambda line: (not line.bold, line.points[len(line.points) // 2][1]))
    signal = SignalRange.of(asked.schema)
    mine = asked.loss.amounts[word]
    symbol = "ρ" if word == "rho" else "ε"
    delta = asked.loss.amounts.get("delta")
    chart = curves(
        lines,
        title=f"Error of every mechanism against {symbol}",
        description=f"{unit_words(target)}, {asked.rows:,} rows. auto chooses {taken}.",
        x_label=symbol + ("" if delta is None else f"   (δ = {display(delta)})"),
        y_label=unit_words(target),
        here=(float(mine), f"your {symbol} = {display(mine)}"),
        band=(signal.low, signal.high, "range of the matrix itself") if target.norm else None,
        useful=(signal.low / 2, "useful below") if target.norm else None,
        width=width,
    )
    return chart, tuple(pending)


def _budgets(name: str) -> tuple[str, ...]:
    return BUDGETS if has_law(name) else SIMULATED_BUDGETS


def stops(low: int, high: int) -> Iterator[str]:
    """Exact decimal texts from 10^low to 10^high for a slider, ten to a decade.

    >>> list(stops(-1, 0))
    ['0.1', '0.12', '0.15', '0.2', '0.25', '0.3', '0.4', '0.5', '0.6', '0.8', '1']
    """
    for power in range(low, high):
        for mantissa in ("1", "1.2", "1.5", "2", "2.5", "3", "4", "5", "6", "8"):
            yield decimal_text(Fraction(mantissa) * Fraction(10) ** power)
    yield decimal_text(Fraction(10) ** high)
