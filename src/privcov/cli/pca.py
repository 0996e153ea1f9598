"""``privcov pca``: principal components from a release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from privcov.cli.output import json_option
from privcov.cli.strata import releases_in, stratum_option, tell

if TYPE_CHECKING:
    from privcov.models.pca import PCAFit
    from privcov.releases.release import Release

_MOST = 6  # components side by side on a terminal


@click.command(name="pca")
@click.argument("path")
@click.option("--rank", type=int, help="Components to keep.  [default: those above the noise edge]")
@click.option("--uncentred", is_flag=True, help="Second moments about zero instead of the covariance.")
@click.option("--original", is_flag=True, help="Original units instead of [-1, 1] columns.")
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
    level: float,
    stratum: str | None,
    as_json: bool,
) -> None:
    """Show the principal components of a release, with intervals for their variances.

    PATH is the release file.
    Without --rank, components are kept whose raw variance is above what noise alone would show in 95 of 100
    releases. Intervals are conservative (Weyl's bound) and hold together for all components.

    Example: privcov pca people.release.json --rank 2
    """
    from privcov.models.pca import pca

    def fit(release: Release) -> PCAFit:
        return pca(release, rank=rank, centred=not uncentred, scaled=not original)

    def words(release: Release) -> str:
        made = fit(release)
        return render(made, made.to_dict(level))

    found = releases_in(path, stratum)
    tell(found, as_json=as_json, values=lambda release: fit(release).to_dict(level), words=words)


def render(fit: PCAFit, values: dict[str, Any]) -> str:
    """Variances with intervals, then loadings, as tables for people."""
    from privcov.report.tables import number, table
    from privcov.text.aligning import cut

    count = len(fit.columns)
    lines = [
        *values["labels"],
        f"Private PCA of {count} columns ({values['units']} units): {fit.rank} components",
        "",
    ]
    if fit.rank == 0:
        lines += ["No component is larger than the noise. Ask for a less noisy release, or give --rank.", ""]
    else:
        heads = ["", "variance", "share %"] + (
            [f"{100 * values['level']:g} % interval"] if values["intervals"] else []
        )
        rows = []
        for i, variance in enumerate(values["explained_variance"]):
            row = [f"PC{i + 1}", number(variance, 4), number(100 * values["explained_share"][i], 1)]
            if values["intervals"]:
                low, high = values["intervals"][i]
                row.append(f"[{number(low, 4)}, " + ("∞)" if high is None else f"{number(high, 4)}]"))
            rows.append(row)
        lines += [table(heads, rows), ""]
        shown = min(fit.rank, _MOST)
        loadings = [
            [cut(name), *(number(fit.components[j, i], 3) for j in range(shown))]
            for i, name in enumerate(fit.columns)
        ]
        lines += [table(["loading", *(f"PC{j + 1}" for j in range(shown))], loadings), ""]
        if fit.rank > shown:
            lines += [f"… and {fit.rank - shown} more components (--json prints all)", ""]
    return "\n".join([*lines, *_closing(fit, values)])


def _closing(fit: PCAFit, values: dict[str, Any]) -> list[str]:
    promise = f"Promise: {values['guarantee']}, by {values['mechanism']}. This costs no further privacy."
    count = len(fit.columns)
    if values["noise_edge"] is None:
        if fit.release.certificate.law is not None:
            return [f"No intervals and no noise edge: {count:,} columns are too many to simulate.", promise]
        return [
            f"No intervals and no noise edge: the noise of {values['mechanism']} has no known distribution.",
            "Ask for a release by symmetric-wishart or gaussian.",
            promise,
        ]
    above = int((fit.raw_variance > values["noise_edge"]).sum())
    return [
        f"Noise edge {values['noise_edge']:.4g}: {above} raw eigenvalues are above it, so they are more than noise.",
        "The intervals are conservative (Weyl), valid all at once, and about this table, not a wider population.",
        promise,
    ]
