"""``privcov ols``: a regression from a release."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from privcov.cli.output import json_option, one_thread, small_pages
from privcov.cli.strata import against_option, releases_in, stratum_option, tell, tell_differences

if TYPE_CHECKING:
    from privcov.models.ols import Fit
    from privcov.releases.release import Release

METHODS = ["auto", "wald", "score", "bootstrap"]
errors_option = click.option(
    "--errors",
    type=click.Choice(["equal", "conservative"]),
    default="equal",
    show_default=True,
    help="What intervals assume of errors. equal: one variance for all rows. conservative: any variance that the "
    "bounds allow, which makes intervals wider.",
)


@click.command(name="ols")
@click.argument("path")
@click.argument("formula")
@click.option("--naive", is_flag=True, help="Ignore the noise, for comparison; labelled NAIVE.")
@click.option(
    "--method",
    type=click.Choice(METHODS),
    default="auto",
    show_default=True,
    help="How intervals are made; auto takes wald where the noise is small, else score.",
)
@errors_option
@click.option(
    "--level", default=0.95, show_default=True, help="Confidence level of the intervals, from 0.5 to below 1."
)
@click.option("--latex", is_flag=True, help="Print a LaTeX table.")
@stratum_option
@against_option
@json_option
def command(
    path: str,
    formula: str,
    naive: bool,
    method: str,
    errors: str,
    level: float,
    latex: bool,
    stratum: str | None,
    against: str | None,
    as_json: bool,
) -> None:
    """Fit least squares from a release, with standard errors that include the noise.

    PATH is the release file, FORMULA the model; coefficients are in original units.
    Standard errors and intervals count two errors: sampling, and the noise of the release. The table shows both parts.
    It has a second interval: for the coefficient that this very table would have without noise. Below the table stand
    the assumptions.

    Terms are columns joined by +; "- 1" leaves the intercept out; "." is every other column; age*educ stands for both
    columns and their product, for which the release needs a derived column. For a categorical column you can name one
    level, sex[F], also as the target; join levels, area[s|w]; take a level away, area - area[w]; and choose the
    baseline, C(area, Treatment("s")). A name with spaces or marks goes between backticks, and the formula then
    between single quotes of the shell.

    Example: privcov ols people.release.json "income ~ age + educ"
    """
    small_pages()
    one_thread()  # matrices of a hundred columns gain nothing from more, and wait for each other on a busy machine
    from privcov.models.ols import ols

    if as_json and latex:
        raise click.UsageError("--json and --latex exclude each other.", click.get_current_context())
    if against is not None:
        tell_differences(path, stratum, against, formula, level, as_json=as_json)
        return

    def fit(release: Release) -> Fit:
        return ols(release, formula, method=method, naive=naive, errors=errors)  # type: ignore[arg-type]

    tell(
        releases_in(path, stratum),
        as_json=as_json,
        values=lambda release: fit(release).to_dict(level),
        words=lambda release: fit(release).to_latex(level) if latex else fit(release).summary(level),
    )
