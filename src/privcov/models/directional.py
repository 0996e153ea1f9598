"""The sum of squares in one direction, xᵀCx, from sketched rows: what the 2012 sketch was made to answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from privcov.errors import ParameterError
from privcov.releases.release import Release
from privcov.schema.grid import Grid


@dataclass(frozen=True, kw_only=True)
class DirectionalVariance:
    """An unbiased estimate of xᵀCx and an interval that holds it with the stated confidence."""

    estimate: float
    lower: float
    upper: float
    confidence: float


def directional_variance(
    release: Release,
    direction: Sequence[float] | NDArray[np.float64],
    *,
    confidence: float = 0.95,
    scaled: bool = False,
) -> DirectionalVariance:
    """Σ (xᵀz)² over people for a direction x fixed before the release was seen, with its confidence interval.

    Guarantee: Σ (xᵀy)² over the r sketched rows is (xᵀCx + w²|x|²)·χ²_r, so the interval holds the truth with
    exactly the stated probability, before the rounding of the rows to their grid (it is widened by that) and
    the fact that xᵀCx is not negative, which only help. The direction has one number a column of the release,
    the intercept included: (−m, 1) gives the variance of a column about m, times the number of people.
    ``scaled``: a direction for [-1, 1] units. Proof: docs/proofs/johnson-lindenstrauss.md.
    """
    given = np.asarray(direction, dtype=np.float64)
    if given.shape != (len(release.columns),) or not np.isfinite(given).all():
        raise ParameterError(
            "E210", f"a direction has one finite number for each of the {len(release.columns)} columns."
        )
    if not 0 < confidence < 1:
        raise ParameterError("E210", f"confidence must be between 0 and 1, got {confidence}.")
    x = given if scaled else release.units.T @ given
    projected = release.sketched_rows(scaled=True) @ x
    count, ridge = len(projected), release.sketch_ridge * float(x @ x)
    # Rounding moved each projection by at most half a grid step for every unit of |x|₁.
    slack = math.sqrt(count) * float(np.abs(x).sum()) * 2.0 ** -(Grid.of(release.schema).exponent + 1)
    length = math.sqrt(float(projected @ projected))
    small, large = chi2.ppf([(1 - confidence) / 2, (1 + confidence) / 2], count)
    return DirectionalVariance(
        estimate=length**2 / count - ridge,
        lower=max(0.0, max(0.0, length - slack) ** 2 / large - ridge),
        upper=max(0.0, (length + slack) ** 2 / small - ridge),
        confidence=confidence,
    )
