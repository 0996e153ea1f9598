"""Covariance and mean as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from privcov.estimators.base import PrivateEstimator
from privcov.linalg.arrays import Floats
from privcov.models import association


class PrivateCovariance(PrivateEstimator):
    """The covariance of the columns, differentially private, as a scikit-learn estimator.

    ``fit`` is one ``privcov.release`` under the given loss; the rest is post-processing of it.

    Parameters
    ----------
    schema : Schema, optional
        All that is public of the table: derived columns, levels, persons, weights, missing values. Then ``fit`` takes
        frames with its columns, and ``bounds`` and the other words that a schema has are left out.
    bounds : pair of float or of sequences, optional
        ``(lower, upper)`` in original units, each one number for all columns or one number per column. From
        public knowledge, never from the data. Required by ``fit`` without a schema.
    epsilon : Fraction, int, float or str, optional
        The ε of a pure loss, or with ``delta`` of an approximate one. Give this or ``rho``.
    delta : Fraction, float or str, optional
        The δ of an approximate loss, between 0 and 1.
    rho : Fraction, int, float or str, optional
        The ρ of a zCDP loss.
    neighbours : Neighbours or str, optional
        "replace-one" or "add-remove". Required by ``fit``: there is no default.
    mechanism : str or Mechanism, default "auto"
        The mechanism, by name or as an object. "auto" takes the one with the least noise.
    row_norm_bound : Fraction, float or str, optional
        The most that the norm of a scaled row may be, in scaled units. By default the largest norm that a row
        can have.
    max_rows_per_person : int, default 1
        The most rows that one person has. It multiplies the noise.
    largest_weight : float, optional
        The largest ``sample_weight`` that a row can have, from public knowledge; a larger one counts as this. Required
        by ``fit`` with weights, without a schema.
    frame : {"declared", "scales", "shape", "auto"}, default "declared"
        What rows are measured from and in: the middle and half the width of their bounds, or centres and scales that
        paid rounds fit to them. In such a private frame bounds may be far too wide, rows are shortened, and a
        missing cell counts as the centre found. See ``privcov.release``.
    cut : {"told", "counted"}, default "told"
        What becomes of the length that a private frame cuts off long rows: "counted" spends another twentieth of the
        loss, and standard deviations that were clearly cut are put right. See ``privcov.release``.
    ledger : str, Path or Ledger, optional
        The budget that every ``fit`` pays from first, so that a search that fits again and again is stopped.

    Attributes
    ----------
    release_ : Release
        What ``fit`` released and paid for; the rest is computed from it.
    n_features_in_ : int
        The number of columns seen by ``fit``.
    columns_ : ndarray of str
        The names of the columns, in the order of ``covariance_``; a level is ``sex[F]``.
    covariance_ : ndarray of shape (d, d)
        The covariance in original units, divided by rows − 1.
    location_ : ndarray of shape (d,)
        The mean in original units.

    Examples
    --------
    >>> import numpy as np
    >>> from privcov import PrivateCovariance
    >>> rows = 5 + 5 * np.sin(np.arange(8000.0).reshape(4000, 2) ** 2)
    >>> made = PrivateCovariance(bounds=(0, 10), epsilon=9, neighbours="replace-one").fit(rows)
    >>> bool(np.abs(made.covariance_ - np.cov(rows.T)).max() < 0.5)
    True
    >>> made.get_precision().shape, bool(made.mahalanobis([[5.0, 5.0]])[0] < 0.1)
    ((2, 2), True)
    """

    def get_precision(self) -> Floats:
        """Return the inverse of the covariance; see ``privcov.models.association.precision``.

        Returns
        -------
        ndarray of shape (d, d)
            The precision, in one over products of the columns' units.

        Raises
        ------
        NotFittedError
            ``fit`` was not called.
        """
        check_is_fitted(self)
        places = [place - 1 for place in self._of_design()]
        return association.precision(self.release_).values[np.ix_(places, places)]

    def mahalanobis(self, X: Any) -> Floats:
        """Return squared distances of rows from the mean, as scikit-learn's covariance estimators do.

        Parameters
        ----------
        X : array or frame of shape (n, d)
            Rows in original units.

        Returns
        -------
        ndarray of shape (n,)
            Squared distances, in squared standard deviations.

        Raises
        ------
        NotFittedError
            ``fit`` was not called.
        """
        return np.asarray(association.mahalanobis(self.release_, self._new_rows(X)) ** 2)
