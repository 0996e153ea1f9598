"""A ridge regression as text: the table that ``RidgeFit.summary`` and the command print."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from privcov.models.summary import FEW, short, within
from privcov.schema.names import INTERCEPT
from privcov.text.aligning import cut, line, paragraph, widths

if TYPE_CHECKING:
    from privcov.models.ridge import RidgeFit


def as_text(fit: RidgeFit, level: float = 0.95) -> str:
    """The fit as a table for people, labels first."""
    values = fit.to_dict(level)
    lines = [*values["labels"], f"Private ridge regression of {fit.target}", ""]
    hidden, constant = fit.problem.hidden, fit.problem.constant
    notes = dict.fromkeys(hidden, "hidden by the noise") | dict.fromkeys(constant, "no variance")
    rows = [[INTERCEPT, _short(fit.intercept), "", ""]]
    for name, value in fit.coefficients.items():
        scaled = values["scaled_coefficients"][name]
        rows.append(
            [cut(name), _short(value), f"{round(scaled, 4) + 0.0:.4f}", notes.get(name, "")]
        )  # no zero has a sign
    shown = [row if notes else row[:3] for row in rows]
    heads = ["", "Coefficient", "Scaled", ""][: len(shown[0])]
    room = widths(heads, shown)
    lines += [*(line(cells, room, {0}, between="  ") for cells in (heads, *shown)), ""]
    said = []
    if fit.problem.flat:
        said.append(f"The release leaves {fit.target} nothing to explain: predictions are its mean.")
    if hidden:
        said.append(
            "Hidden by the noise: levels of so few rows that the release cannot tell how many. Their coefficients are "
            "noise, which the penalty keeps small."
        )
    how = "chosen from the release" if fit.choice else "without effect" if fit.problem.flat else "given"
    said.append(f"Penalty {fit.penalty:.4g}, {how}; it weighs coefficients of {values['penalty_units']}.")
    if (ends := fit.expected_error_interval(level)) is not None:
        said += _error(fit, values["expected_error"], ends, level)
    said += [_bound(fit, values), *filter(None, [values["not_counted"], values["counted"]]), ""]
    said.append(f"Promise: {values['guarantee']}, by {values['mechanism']}. This costs no further privacy.")
    return "\n".join([*lines, *map(paragraph, said)])


def _error(fit: RidgeFit, error: float | None, ends: tuple[float, float], level: float) -> list[str]:
    """How far off a prediction is, with its interval; of two digits where it cannot be told from zero."""
    most, (low, high) = fit.problem.release.schema.max_rows_per_person, ends
    alike = "" if most == 1 else f" Sampling counts up to {most} rows of one person as one."
    span = f"{100 * level:g} % interval [{short(low)}, {short(high)}]".replace("inf]", "∞)")
    found = "within the noise" if error is None else within(error, low, high, FEW if low == 0 else None)
    lines = [f"Expected error for a new row: {found} (root mean square), {span}.{alike}"]
    if error is not None and error >= (half := _half_width(fit)):
        lines.append(
            f"The middle of the bounds of {fit.target} is never off by more than {_short(half)}: answer that."
        )
    return lines


def _half_width(fit: RidgeFit) -> float:
    """Half the width of the bounds of the target."""
    (target,) = (one for one in fit.problem.release.schema.features if one.name == fit.target)
    return target.upper / 2 - target.lower / 2


def _bound(fit: RidgeFit, values: dict[str, Any]) -> str:
    if fit.problem.release.certificate.law is None:
        return (
            f"No error bound: the noise of {values['mechanism']} has no known distribution. "
            "Ask for a release by symmetric-wishart or gaussian."
        )
    if values["error_bound"] is None:
        return "Error bound (Lemma 1): none at this penalty; the noise may hide a singular design. Raise the penalty."
    size = values["scaled_norm"]
    alone = " It does not count what the private frame cut off long rows." if values["counted"] else ""
    verdict = (
        "" if values["error_bound"] < size else " The bound is larger than the coefficients: it says little."
    )
    return (
        f"Error bound (Lemma 1): at {100 * values['level']:g} % confidence the noise moved the scaled coefficients "
        f"by at most {values['error_bound']:.4g} (2-norm); their own size is {size:.4g}.{verdict}{alone}"
    )


def _short(value: float) -> str:
    return f"{value:.4g}" if value == 0 or not 1e-3 <= abs(value) < 1e7 else f"{value:.{_decimals(value)}f}"


def _decimals(value: float) -> int:
    return max(1, 3 - math.floor(math.log10(abs(value))))
