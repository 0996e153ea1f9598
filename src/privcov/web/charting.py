"""Error against the budget as a chart, for whatever is asked about and in its own units; and where sliders stop.

What a regression would look like: the width of its intervals, before anything is spent.

The answer depends on the table, so it is that of a table with the moments someone declared public: the fit of
``privcov.ols`` to the release such a table would have if the noise happened to be zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

from privcov.errors import ParameterError
from privcov.mechanisms import MECHANISMS
from privcov.models.formula import Formula
from privcov.models.ols import Fit, ols
from privcov.planning.forecast import Forecast
from privcov.planning.known import has_law, taken_by_auto
from privcov.planning.moments import PublicMoments
from privcov.planning.signal import SignalRange
from privcov.planning.targets import Target, check_moments
from privcov.privacy import decimal_text, display
from privcov.report.colours import place_of
from privcov.report.drawing import Estimate, Line, coefficients, curves
from privcov.schema import Schema
from privcov.schema.grid import Grid
from privcov.schema.names import INTERCEPT
from privcov.web.asking import at
from privcov.web.forecasting import Asked, chosen, forecast_or_task
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
                points.append((float(amount), target.error(found, asked.schema, asked.moments)))
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


_FEW_BUDGETS = BUDGETS[1::2]


def expected(asked: Asked, formula: str, simulator: Simulator, *, width: float = 440) -> dict[str, Any]:
    """Half-widths of the intervals of a formula, how much of each is privacy, and how they fall with the budget."""
    with at("formula"):
        parsed = Formula.parse(formula, asked.schema)
        used = [parsed.explained.column, *dict.fromkeys(part.column for part in parsed.parts)]
        check_moments(formula, asked.schema, asked.draft.moments)
    moments = asked.draft.moments
    assert moments is not None
    choice = chosen(asked, simulator)
    if choice is None:
        return {"ready": False, "columns": used}
    fit = _fit(choice, moments, formula)
    widths = {name: (high - low) / 2 for name, (low, high) in fit.conf_int().items()}
    spans = {f.name: f.upper - f.lower for f in asked.schema.features if f.kind != "intercept"}
    shown = [
        Estimate(name=name, value=s * value, low=s * (value - widths[name]), high=s * (value + widths[name]))
        for name, value in fit.params.items()
        if (s := spans.get(name)) is not None
    ]
    return {
        "ready": True,
        "columns": used,
        "mechanism": choice.mechanism.name,
        "words": f"By {choice.mechanism.name}, {choice.loss}, {choice.rows:,} rows, for a table like your guesses.",
        "terms": [
            {
                "term": name,
                "value": f"{value:.4g}",
                "half_width": f"{widths[name]:.3g}",
                "error": f"{fit.bse[name]:.3g}",
                "privacy": f"{100 * fit.privacy_share[name]:.0f} %",
            }
            for name, value in fit.params.items()
        ],
        "chart": coefficients(
            shown,
            title=f"Expected intervals of {parsed}",
            description="95 % intervals for the table you guessed; they include sampling and privacy noise.",
            x_label=f"change in {parsed.target} over the whole range of a column",
        ),
        "curves": _against_budget(asked, formula, moments, simulator, width),
    }


def _against_budget(
    asked: Asked, formula: str, moments: PublicMoments, simulator: Simulator, width: float
) -> str:
    word = "rho" if asked.loss.kind == "zcdp" else "epsilon"
    points: dict[str, list[tuple[float, float]]] = {}
    for amount in _FEW_BUDGETS:
        loss = replace(asked.loss, **{word: Fraction(amount)})  # type: ignore[arg-type]
        choice = chosen(replace(asked, loss=loss), simulator)
        if choice is None:
            continue
        for name, error in _fit(choice, moments, formula).bse.items():
            if name != INTERCEPT:
                points.setdefault(name, []).append((float(amount), error))
    here = asked.loss.amounts[word]
    symbol = "ρ" if word == "rho" else "ε"
    return curves(
        [Line(name=name, points=line) for name, line in points.items()],
        title=f"Standard errors against {symbol}",
        description="The curves flatten at the sampling error, which no budget can reduce.",
        x_label=symbol,
        y_label="standard error, sampling and privacy together",
        here=(float(here), f"your {symbol} = {display(here)}"),
        height=260,
        width=width,
    )


def _fit(choice: Forecast, moments: PublicMoments, formula: str) -> Fit:
    if choice.law is None:
        raise ParameterError("E263", f"the noise of {choice.mechanism.name} has no known distribution.")
    return ols(moments.pretend(rows=choice.rows, loss=choice.loss, law=choice.law), formula, method="wald")
