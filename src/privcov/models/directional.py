"""The sum of squares in one direction, xᵀCx, from sketched rows: what the 2012 sketch was made to answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv

from privcov.errors import ParameterError
from privcov.releases.release import Release
from privcov.schema.grid import Grid


@dataclass(frozen=True, kw_only=True)
class DirectionalVariance:
    """An unbiased estimate of xᵀCx and an interval that holds it with the stated confidence.

    Attributes
    ----------
    estimate : float
        The sum of squares in the direction; it may be negative.
    lower : float
        The low end of the interval, at least 0.
    upper : float
        The high end of the interval.
    confidence : float
        The confidence level, between 0 and 1.

    Examples
    --------
    >>> DirectionalVariance(estimate=4.0, lower=3.0, upper=6.0, confidence=0.95).upper
    6.0
    """

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
    """Estimate Σ (xᵀz)² over people for a direction x that was fixed before the release was seen.

    The sum of (xᵀy)² over the r sketched rows is (xᵀCx + w²‖x‖²)·χ²_r. So the interval holds the truth with
    exactly the stated probability. It is widened by the rounding of rows to their grid, and it never goes
    below zero. Proof: docs/proofs/johnson-lindenstrauss.md.

    Parameters
    ----------
    release : Release
        A release by sketch: mechanism "johnson-lindenstrauss".
    direction : sequence of float
        One number per column of the release, the intercept included: (−m, 1) gives the sum of squares of a
        column about m.
    confidence : float, default 0.95
        The confidence level, between 0 and 1.
    scaled : bool, default False
        Whether the direction is for columns in scaled units instead of original units.

    Returns
    -------
    DirectionalVariance
        The estimate and its interval, in squared units of the direction's combination.

    Raises
    ------
    ParameterError
        The direction has another length, the confidence is out of range, or the release has no sketched rows
        (E210).

    Examples
    --------
    >>> import numpy as np, privcov as pc
    >>> schema = pc.Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}}})
    >>> loss = pc.ApproxDP(epsilon=1, delta=1e-6, neighbours="replace-one")
    >>> release = pc.release(np.ones((9, 1)), schema=schema, loss=loss, mechanism="johnson-lindenstrauss")
    >>> found = pc.directional_variance(release, [-50.0, 1.0])
    >>> bool(0 <= found.lower <= found.upper)
    True
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
    small, large = 2 * gammaincinv(count / 2, [(1 - confidence) / 2, (1 + confidence) / 2])  # of chi-squared
    return DirectionalVariance(
        estimate=length**2 / count - ridge,
        lower=max(0.0, max(0.0, length - slack) ** 2 / large - ridge),
        upper=max(0.0, (length + slack) ** 2 / small - ridge),
        confidence=confidence,
    )
