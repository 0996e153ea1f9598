"""What the report says of its experiments, in our words and its order; every verdict is computed from measurements."""

from __future__ import annotations

from privcov_lab.reproduce.papers.bain2014 import claims_regression as regression
from privcov_lab.reproduce.papers.bain2014 import claims_release as release
from privcov_lab.reproduce.papers.bain2014.readings import Readings
from privcov_lab.reproduce.study import Claim

CLAIMS = (
    release.theorem,
    release.scaling,
    release.upscaling,
    release.printed_matrices,
    release.centred,
    release.against_epsilon,
    release.against_rows_and_attributes,
    release.invertible,
    regression.beta_grows,
    regression.residual_grows,
    regression.quantiles,
    regression.table_4,
    regression.significant,
    regression.table_3_errors,
    regression.wide_intercept,
    regression.rare_and_bad,
    regression.more_regressors,
)


def claims(found: Readings) -> list[Claim]:
    """Each beside what was measured."""
    return [claim(found) for claim in CLAIMS]
