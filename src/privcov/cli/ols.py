"""``privcov ols``: a regression from a release."""

from __future__ import annotations

import click

from privcov.cli.output import json_option, print_json, say

METHODS = ["auto", "wald", "score", "bootstrap"]


@click.command(name="ols")
@click.argument("path")
@click.argument("formula")
@click.option("--naive", is_flag=True, help="Ignore the noise, for comparison; labelled NAIVE.")
@click.option("--method", type=click.Choice(METHODS), default="auto", show_default=True)
@click.option("--level", default=0.95, show_default=True, help="Confidence level of the intervals.")
@click.option("--latex", is_flag=True, help="Print a LaTeX table.")
@json_option
def command(
    path: str, formula: str, naive: bool, method: str, level: float, latex: bool, as_json: bool
) -> None:
    """Fit least squares from a release, with standard errors that include the noise.

    Standard errors and intervals count sampling and privacy noise; the table shows the share of each.
    Terms are columns joined by +; "- 1" leaves the intercept out; "." means all other columns. Put a name with
    spaces or other marks between backticks, and the formula between single quotes.

    Example: privcov ols people.release.json "income ~ age + educ"
    """
    from privcov.models.ols import ols
    from privcov.released import load

    if as_json and latex:
        raise click.UsageError("--json and --latex exclude each other.", click.get_current_context())
    fit = ols(load(path), formula, method=method, naive=naive)  # type: ignore[arg-type]
    if as_json:
        print_json(fit.to_dict(level))
    else:
        say(fit.to_latex(level) if latex else fit.summary(level))
