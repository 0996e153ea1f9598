"""Estimators for unbounded, Gaussian-like data under ρ-zCDP: covariance and mean in Mahalanobis error.

The rest of privcov releases the Gram matrix of rows that a public schema bounds. Here rows have no bounds: a
public K with Σ ⪯ K·I, a guess that may be far too large, is refined in private rounds. Start reading at
``entry.py``. Guide: docs/explain/unbounded.md. Proofs: docs/proofs/unbounded.md.
"""

from privcov.unbounded.entry import estimate_gaussian
from privcov.unbounded.estimate import GaussianEstimate, load, mahalanobis_error
from privcov.unbounded.expected import expected_error
from privcov.unbounded.univariate import UnivariateEstimate, estimate_mean, estimate_scale

__all__ = [
    "estimate_gaussian",
    "GaussianEstimate",
    "load",
    "mahalanobis_error",
    "expected_error",
    "estimate_mean",
    "estimate_scale",
    "UnivariateEstimate",
]
