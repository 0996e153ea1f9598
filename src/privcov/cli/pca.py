"""``privcov pca``: principal components from a release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click

from privcov.cli.output import json_option, one_thread, small_pages
from privcov.cli.strata import releases_in, stratum_option, tell

if TYPE_CHECKING:
    from privcov.models.pca import PCAFit
    from privcov.releases.release import Release


@click.command(name="pca")
@click.argument("path")
@click.option("--rank", type=int, help="Components to keep.  [default: those above the noise edge]")
@click.option("--uncentred", is_flag=True, help="Second moments about zero instead of the covariance.")
@click.option("--original", is_flag=True, help="Original units instead of [-1, 1] columns.")
@click.option("--correlation", is_flag=True, help="Correlations: every column counts with variance 1.")
@click.option(
    "--errors",
    type=click.Choice(["equal", "conservative"]),
    default="equal",
    show_default=True,
    help="What intervals assume of rows. equal: they scatter like normal columns. conservative: they may have any "
    "tails that the bounds allow, which makes intervals wider.",
)
@click.option(
    "--level", default=0.95, show_default=True, help="Confidence level of the intervals, from 0.5 to 0.999."
)
@stratum_option
@json_option
def command(
    path: str,
    rank: int | None,
    uncentred: bool,
    original: bool,
    correlation: bool,
    errors: Literal["equal", "conservative"],
    level: float,
    stratum: str | None,
    as_json: bool,
) -> None:
    """Show the principal components of a release, with intervals for their variances and loadings.

    PATH is the release file.
    Without --rank, it keeps the components above the noise edge: noise alone would stay below that variance in 95 of
    100 releases. Each component has two intervals: for this very table, and for the population that its rows were
    sampled from. Components that cannot be told apart share one line.

    Example: privcov pca people.release.json --rank 2
    """
    small_pages()
    one_thread()  # with more they wait for each other: on a busy machine for longer than they work
    from privcov.models.pca import pca
    from privcov.report.components import as_text

    def fit(release: Release) -> PCAFit:
        return pca(
            release,
            rank=rank,
            centred=not uncentred,
            scaled=not original,
            correlation=correlation,
            errors=errors,
        )

    def words(release: Release) -> str:
        return as_text(fit(release), level)

    found = releases_in(path, stratum)
    tell(found, as_json=as_json, values=lambda release: fit(release).to_dict(level), words=words)
