"""Covariance and mean as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from privcov.estimators.base import PrivateEstimator
from privcov.linalg.arrays import Floats
from privcov.models import association


class PrivateCovariance(PrivateEstimator):
    """The covariance of the columns, differentially private.

    Guarantee: ``fit`` is one ``privcov.release`` under the given loss; the rest is post-processing of it.
    ``bounds`` is ``(lower, upper)``, each one number or one per column. Fitted: ``release_``, ``covariance_``
    (divided by rows − 1), ``location_``, ``n_features_in_``, and ``feature_names_in_`` for a frame.

    >>> import numpy as np
    >>> from privcov.noise.randomness import rehearsal
    >>> rows = 10 * rehearsal(1).uniforms(8000).reshape(4000, 2)
    >>> made = PrivateCovariance(bounds=(0, 10), epsilon=9, neighbours="replace-one").fit(rows)
    >>> bool(np.abs(made.covariance_ - np.cov(rows.T)).max() < 0.5)
    True
    """

    covariance_: Floats
    location_: Floats

    def fit(self, X: Any, y: Any = None) -> Self:
        """Spend the loss once on these rows; ``y`` is ignored."""
        made = self._publish(X)
        self.covariance_, self.location_ = made.covariance(), made.mean()
        return self

    def get_precision(self) -> Floats:
        """The inverse of the covariance; see ``privcov.models.association.precision``."""
        check_is_fitted(self)
        return association.precision(self.release_).values

    def mahalanobis(self, X: Any) -> Floats:
        """Squared distances of rows from the mean, as scikit-learn's covariance estimators give them."""
        return np.asarray(association.mahalanobis(self.release_, self._new_rows(X)) ** 2)
