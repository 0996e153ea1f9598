"""scikit-learn estimators over one private release: covariance, PCA, ridge and least squares.

``fit`` makes a release from public bounds and keeps the release and what follows from it, never the data.
Every ``fit`` spends its whole loss again. Needs the ``sklearn`` extra; ``import privcov`` does not.
"""

from __future__ import annotations

try:
    import sklearn  # noqa: F401
except ModuleNotFoundError:
    raise ModuleNotFoundError(
        "privcov.estimators needs scikit-learn. Install it with: pip install 'privcov[sklearn]'",
        name="sklearn",
    ) from None

from privcov.estimators.covariance import PrivateCovariance
from privcov.estimators.pca import PrivatePCA
from privcov.estimators.regression import PrivateLinearRegression, PrivateRidge

__all__ = ["PrivateCovariance", "PrivateLinearRegression", "PrivatePCA", "PrivateRidge"]
