"""``privcov show``: a release in plain words."""

from __future__ import annotations

import click

from privcov.cli.output import json_option, print_json, say

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
@json_option
def command(path: str, what: str, repair: str, scaled: bool, as_json: bool) -> None:
    """Show what a release says and what it promises.

    PATH is the release file, or that of an estimate, which has one matrix. The matrix shown is repaired (a valid
    moment matrix) unless raw is asked for; the file always keeps the raw one, unbiased but for rows that a private
    frame shortened.

    Example: privcov show people.release.json --matrix covariance
    """
    from privcov.errors import ReleaseError
    from privcov.releases.release import load
    from privcov.report.summary import as_json_values, as_text
    from privcov.report.words import origin

    try:
        release = load(path)
    except ReleaseError as error:
        if error.code != "E620":
            raise
        _show_estimate(path, as_json=as_json)
        return
    if as_json:
        signer = None if release.signer is None else release.signer.fingerprint
        print_json({**as_json_values(release, repair=repair, scaled=scaled), "signed_by": signer})
    else:
        say(as_text(release, what=what, repair=repair, scaled=scaled))
        say(origin(release))


def _show_estimate(path: str, *, as_json: bool) -> None:
    """An estimate of unbounded data, which has one matrix and no repairs."""
    from privcov.unbounded.estimate import load
    from privcov.unbounded.page import as_text

    estimate = load(path)
    print_json(estimate.to_dict()) if as_json else say(as_text(estimate))
