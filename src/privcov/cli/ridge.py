"""``privcov ridge``: a ridge regression from a release."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from privcov.cli.output import json_option, print_json, say

if TYPE_CHECKING:
    from privcov.models.ridge import RidgeFit


@click.command(name="ridge")
@click.argument("path")
@click.option(
    "--target", required=True, help="The column to explain; one level of a categorical one: sex[F]."
)
@click.option(
    "--features", help="Columns joined by commas; `a, b` is one name.  [default: every other column]"
)
@click.option(
    "--penalty",
    default="auto",
    show_default=True,
    help="The weight of the penalty for a sum over rows, a number from 0, or auto: chosen from the release.",
)
@click.option("--original", is_flag=True, help="Penalise coefficients of original, not [-1, 1], columns.")
@click.option(
    "--level", default=0.95, show_default=True, help="Confidence level of the error bound, from 0.5 to 0.999."
)
@json_option
def command(
    path: str, target: str, features: str | None, penalty: str, original: bool, level: float, as_json: bool
) -> None:
    """Fit ridge regression from a release, with a bound on the effect of the noise on the coefficients.

    PATH is the release file. The fit minimises the sum of squared errors plus penalty times the sum of squared
    coefficients, intercept left out: scikit-learn's Ridge(alpha=penalty), on columns scaled to [-1, 1] unless
    --original. Coefficients are printed in original units.

    Example: privcov ridge people.release.json --target income --features age,educ --penalty auto
    """
    from privcov.models.ridge import ridge
    from privcov.releases.release import load
    from privcov.schema.names import split_names

    names = None if features is None else split_names(features)
    fit = ridge(load(path), target, features=names, penalty=_number(penalty), scaled=not original)
    values = fit.to_dict(level)
    print_json(values) if as_json else say(render(fit, values))


def render(fit: RidgeFit, values: dict[str, Any]) -> str:
    """The fit as a table for people, labels first."""
    from privcov.report.tables import number, table
    from privcov.schema.names import INTERCEPT
    from privcov.text.aligning import cut

    lines = [*values["labels"], f"Private ridge regression of {fit.target}", ""]
    rows = [[INTERCEPT, _short(fit.intercept), "", ""]]
    for name, value in fit.coefficients.items():
        scaled = values["scaled_coefficients"][name]
        why = "no variance" if name in fit.problem.constant else ""
        rows.append([cut(name), _short(value), number(scaled, 4), why])
    shown = [row if fit.problem.constant else row[:3] for row in rows]
    lines += [table(["", "Coefficient", "Scaled", ""][: len(shown[0])], shown), ""]
    if fit.problem.flat:
        lines.append(f"The release leaves {fit.target} nothing to explain: predictions are its mean.")
    how = "chosen from the release" if fit.choice else "without effect" if fit.problem.flat else "given"
    lines.append(f"Penalty {fit.penalty:.4g}, {how}; it weighs coefficients of {values['penalty_units']}.")
    if values["expected_error"] is not None:
        lines.append(f"Expected error for a new row: {_short(values['expected_error'])} (root mean square).")
    lines += [_bound(fit, values), ""]
    lines.append(f"Promise: {values['guarantee']}, by {values['mechanism']}. This costs no further privacy.")
    return "\n".join(lines)


def _bound(fit: RidgeFit, values: dict[str, Any]) -> str:
    if fit.problem.release.certificate.law is None:
        return (
            f"No error bound: the noise of {values['mechanism']} has no known distribution. "
            "Ask for a release by symmetric-wishart or gaussian."
        )
    if values["error_bound"] is None:
        return "Error bound (Lemma 1): none at this penalty; the noise may hide a singular design. Raise the penalty."
    size = values["scaled_norm"]
    verdict = (
        "" if values["error_bound"] < size else " The bound is larger than the coefficients: it says little."
    )
    return (
        f"Error bound (Lemma 1): at {100 * values['level']:g} % confidence the noise moved the scaled coefficients\n"
        f"by at most {values['error_bound']:.4g} (2-norm); their own size is {size:.4g}.{verdict}"
    )


def _number(penalty: str) -> Any:
    try:
        return penalty if penalty == "auto" else float(penalty)
    except ValueError:
        return penalty  # refused, with its code, where every penalty is checked


def _short(value: float) -> str:
    return f"{value:.4g}" if value == 0 or not 1e-3 <= abs(value) < 1e7 else f"{value:.{_decimals(value)}f}"


def _decimals(value: float) -> int:
    return max(1, 3 - math.floor(math.log10(abs(value))))
