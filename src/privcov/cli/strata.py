"""Files of several strata on the command line: one of them, their sum, or all of them one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from privcov.cli.output import print_json, say
from privcov.errors import ReleaseError

if TYPE_CHECKING:
    from privcov.releases.release import Release
    from privcov.releases.strata import StratifiedRelease

stratum_option = click.option(
    "--stratum",
    metavar="NAME",
    help="For a file with strata: the stratum to read, or total for the sum of all, which is "
    "also (total), where a stratum is called total.  [default: each in turn]",
)
against_option = click.option(
    "--against",
    metavar="NAME",
    help="With --stratum: the differences from this stratum, with intervals.  [default: none]",
)


def releases_in(path: str, stratum: str | None) -> Mapping[str, Release]:
    """The releases that a file and ``--stratum`` mean, by name; a file without strata is one without a name."""
    from privcov.releases.loading import load

    try:
        single = load(path)
    except ReleaseError as reason:
        if reason.code != "E613":
            raise
    else:
        if stratum is None:
            return {"": single}
    strata = _strata(path)  # which refuses a file without strata
    return strata if stratum is None else {stratum: strata.part(stratum)}


def tell(
    found: Mapping[str, Release],
    *,
    as_json: bool,
    values: Callable[[Release], Any],
    words: Callable[[Release], str],
) -> None:
    """One answer as it is; several under the names of their strata."""
    if len(found) == 1:
        (release,) = found.values()
        print_json(values(release)) if as_json else say(words(release))
    elif as_json:
        print_json({"strata": {name: _told(values, release) for name, release in found.items()}})
    else:
        from privcov.errors import PrivcovError

        for name, release in found.items():
            say(f"── {name} " + "─" * max(3, 60 - len(name)))
            try:
                say(words(release))
            except PrivcovError as reason:  # of a small stratum: the others still have answers
                say(str(reason))
            say("")


def _told(values: Callable[[Release], Any], release: Release) -> Any:
    from privcov.errors import PrivcovError

    try:
        return values(release)
    except PrivcovError as reason:
        return {"error": str(reason)}


def tell_differences(
    path: str, stratum: str | None, against: str, formula: str | None, level: float, *, as_json: bool
) -> None:
    """Means and correlations, or the coefficients of a formula, of one stratum less those of another."""
    from privcov.models.strata import differences
    from privcov.schema.strata import THE_SUM

    if stratum is None:
        raise click.UsageError("--against needs --stratum.")
    strata = _strata(path)
    if {"total", THE_SUM} & ({stratum, against} - set(strata.names)):
        raise click.UsageError("differences are between two strata; a total has the noise of both in it.")
    made = differences(strata, stratum, against, formula=formula, level=level)
    print_json(made.to_dict()) if as_json else say(made.summary())


def _strata(path: str) -> StratifiedRelease:
    from privcov.releases.loading import load_strata

    return load_strata(path)
