"""``privcov show``: a release in plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from privcov.cli.output import json_option, print_json, say
from privcov.cli.strata import against_option, releases_in, stratum_option, tell, tell_differences

if TYPE_CHECKING:
    from privcov.releases.release import Release

WHAT = ["correlation", "covariance", "mean", "moment", "raw"]


@click.command(name="show")
@click.argument("path")
@click.option(
    "--matrix",
    "what",
    type=click.Choice(WHAT),
    default="correlation",
    show_default=True,
    help="The matrix to print.",
)
@click.option(
    "--repair",
    default="auto",
    show_default=True,
    help="How noise is turned into a valid matrix: auto, none, clip, trace or shrink.",
)
@click.option("--scaled", is_flag=True, help="In [-1, 1] units instead of the original ones.")
@stratum_option
@against_option
@click.option(
    "--shrink",
    is_flag=True,
    help="For strata: draw each stratum towards the pool of all strata, small strata most.",
)
@json_option
def command(
    path: str,
    what: str,
    repair: str,
    scaled: bool,
    stratum: str | None,
    against: str | None,
    shrink: bool,
    as_json: bool,
) -> None:
    """Show what a release says and what it promises.

    PATH is the file of a release, or of an estimate, which has one matrix. The matrix shown is repaired (a valid
    moment matrix) unless you ask for raw. The file always keeps the raw matrix, which is unbiased except where a
    private frame shortened rows. For a file with strata, show prints one line for each stratum; --stratum NAME shows
    one of them in full.

    Example: privcov show people.release.json --matrix covariance
    """
    from privcov.errors import ReleaseError
    from privcov.releases.strata import StratifiedRelease
    from privcov.report.summary import as_json_values, as_text, strata_text
    from privcov.report.words import origin

    if against is not None:
        tell_differences(path, stratum, against, None, 0.95, as_json=as_json)
        return
    if shrink:
        _tell_shrunk(path, stratum, what, as_json=as_json)
        return

    def values(release: Release) -> dict[str, Any]:
        signer = None if release.signer is None else release.signer.fingerprint
        return {**as_json_values(release, repair=repair, scaled=scaled), "signed_by": signer}

    def words(release: Release) -> str:
        return as_text(release, what=what, repair=repair, scaled=scaled) + "\n" + origin(release)

    try:
        found = releases_in(path, stratum)
    except ReleaseError as error:
        if error.code != "E620":
            raise
        _show_estimate(path, as_json=as_json)
        return
    if isinstance(found, StratifiedRelease) and not as_json:
        say(strata_text(found, repair=repair, scaled=scaled))
        say(origin(found[found.names[0]]))
    else:
        tell(found, as_json=as_json, values=values, words=words)


def _show_estimate(path: str, *, as_json: bool) -> None:
    """An estimate of unbounded data, which has one matrix and no repairs."""
    from privcov.unbounded.estimate import load
    from privcov.unbounded.page import as_text

    estimate = load(path)
    print_json(estimate.to_dict()) if as_json else say(as_text(estimate))


def _tell_shrunk(path: str, stratum: str | None, what: str, *, as_json: bool) -> None:
    """Strata drawn towards their pool, as means, covariances or correlations."""
    from privcov.models.strata import shrunk
    from privcov.releases.loading import load_strata
    from privcov.report.tables import matrix

    if what not in ("correlation", "covariance", "mean"):
        raise click.UsageError("--shrink shows correlation, covariance or mean.")
    strata = load_strata(path)
    names = strata.names if stratum is None else (stratum,)
    found = {name: one for name, one in shrunk(strata).items() if name in names}
    if not found:
        strata.strata.place(names[0])
    if as_json:
        print_json(
            {
                name: {"weight": one.weight, "mean_weight": one.mean_weight, what: getattr(one, what)()}
                for name, one in found.items()
            }
        )
        return
    columns = [feature.name for feature in strata.schema.features[1:]]
    for name, one in found.items():
        weight = one.mean_weight if what == "mean" else one.weight
        say(
            f"{name}: weight {100 * weight:.0f} % for the stratum itself, the rest for the pool of all strata"
        )
        shown = getattr(one, what)()
        if what == "mean":
            say(
                "\n".join(f"  {column}  {value:.4g}" for column, value in zip(columns, shown, strict=True))
                + "\n"
            )
        else:
            say(matrix(columns, shown) + "\n")
    say(_DRAWN)


_DRAWN = (
    "No number here has a ±: strata are drawn towards their pool, which errs less on average and has no interval.\n"
    "With intervals: one by itself, --stratum NAME; two compared, --stratum NAME --against NAME."
)
