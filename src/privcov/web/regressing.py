"""What a regression would look like: the width of its intervals, before anything is spent.

The answer depends on the table, so it is that of a table with the moments someone declared public: the fit of
``privcov.ols`` to the release such a table would have if the noise happened to be zero.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from privcov.errors import ParameterError
from privcov.models.formula import Formula
from privcov.models.ols import Fit, ols
from privcov.planning.forecast import Forecast
from privcov.planning.moments import PublicMoments
from privcov.planning.targets import check_moments
from privcov.privacy import display
from privcov.report.drawing import Estimate, Line, coefficients, curves
from privcov.schema.names import INTERCEPT
from privcov.web.asking import at
from privcov.web.charting import BUDGETS
from privcov.web.forecasting import Asked, chosen
from privcov.web.simulating import Simulator

_FEW_BUDGETS = BUDGETS[1::2]


def expected(asked: Asked, formula: str, simulator: Simulator, *, width: float = 440) -> dict[str, Any]:
    """Half-widths of the intervals of a formula, how much of each is privacy, and how they fall with the budget."""
    with at("formula"):
        parsed = Formula.parse(formula, asked.schema)
        used = [parsed.target, *parsed.terms]
        check_moments(formula, asked.schema, asked.draft.moments)
    moments = asked.draft.moments
    assert moments is not None
    choice = chosen(asked, simulator)
    if choice is None:
        return {"ready": False, "columns": used}
    fit = _fit(choice, moments, formula)
    widths = {name: (high - low) / 2 for name, (low, high) in fit.conf_int().items()}
    spans = {
        f.name: 2 * f.half_width if f.kind == "numeric" else 1.0
        for f in asked.schema.features
        if f.kind != "intercept"
    }
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
        raise ParameterError("E263", f"{choice.mechanism.name} has noise of no known distribution.")
    return ols(moments.pretend(rows=choice.rows, loss=choice.loss, law=choice.law), formula, method="wald")
