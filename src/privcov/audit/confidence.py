"""Exact binomial confidence bounds (Clopper and Pearson 1934), one-sided, on whole arrays.

Each holds with probability at least 1 − error whatever the true probability is, at every sample size; nothing
is asymptotic. Proof: docs/proofs/audit.md.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainccinv, betaincinv

from privcov.linalg.arrays import Floats

_SLACK = 1e-9
"""Far above the relative error of the inverse beta functions; spent away from the audited mechanism's guilt."""


def at_least(count: ArrayLike, trials: int, error: float) -> Floats:
    """A probability that the true one is not below, given ``count`` successes in ``trials``.

    >>> bool(0.0090 < at_least(10, 500, 0.05) < 0.0110)
    True
    """
    k = np.asarray(count, dtype=np.float64)
    bound = betaincinv(np.maximum(k, 1), trials - k + 1, error) * (1 - _SLACK)
    return np.where(k > 0, bound, 0.0)


def at_most(count: ArrayLike, trials: int, error: float) -> Floats:
    """A probability that the true one is not above; with no success at all about ln(1/error)/trials.

    >>> bool(0.0059 < at_most(0, 500, 0.05) < 0.0061)
    True
    """
    k = np.asarray(count, dtype=np.float64)
    bound = betainccinv(k + 1, np.maximum(trials - k, 1), error) * (1 + _SLACK)
    return np.where(k < trials, np.minimum(bound, 1.0), 1.0)
