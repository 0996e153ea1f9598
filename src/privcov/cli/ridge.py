"""``privcov ridge``: a ridge regression from a release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from privcov.cli.output import json_option
from privcov.cli.strata import releases_in, stratum_option, tell

if TYPE_CHECKING:
    from privcov.models.ridge import RidgeFit
    from privcov.releases.release import Release


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
@stratum_option
@json_option
def command(
    path: str,
    target: str,
    features: str | None,
    penalty: str,
    original: bool,
    level: float,
    stratum: str | None,
    as_json: bool,
) -> None:
    """Fit ridge regression from a release, with a bound on the effect of the noise on the coefficients.

    PATH is the release file. The fit minimises the sum of squared errors plus penalty times the sum of squared
    coefficients, intercept left out: scikit-learn's Ridge(alpha=penalty), on columns scaled to [-1, 1] unless
    --original. Coefficients are printed in original units.

    Example: privcov ridge people.release.json --target income --features age,educ --penalty auto
    """
    from privcov.models.ridge import ridge
    from privcov.schema.names import split_names, unquoted

    names = None if features is None else split_names(features)
    name = unquoted(target) if target.endswith("`") else target

    def fit(release: Release) -> RidgeFit:
        return ridge(release, name, features=names, penalty=_number(penalty), scaled=not original)

    tell(
        releases_in(path, stratum),
        as_json=as_json,
        values=lambda release: fit(release).to_dict(level),
        words=lambda release: fit(release).summary(level),
    )


def _number(penalty: str) -> Any:
    try:
        return penalty if penalty == "auto" else float(penalty)
    except ValueError:
        return penalty  # refused, with its code, where every penalty is checked
