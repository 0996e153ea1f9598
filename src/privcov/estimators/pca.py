"""Principal components as a scikit-learn transformer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from privcov.errors import ParameterError
from privcov.estimators.base import PrivateEstimator
from privcov.linalg.arrays import Floats
from privcov.models.pca import pca
from privcov.releases.release import Release
from privcov.schema import Schema


@dataclass(kw_only=True, eq=False, repr=False)
class PrivatePCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PrivateEstimator):  # type: ignore[misc]
    """Principal components of the columns, differentially private, as a scikit-learn transformer.

    ``fit`` is one ``privcov.release`` under the given loss; the rest is post-processing of it. It equals
    ``privcov.pca(release_, rank=n_components, scaled=scaled)``.

    Parameters
    ----------
    n_components : int or "auto", optional
        How many components to keep. "auto" keeps those above the noise, which may be none. By default all.
    scaled : bool, default False
        Whether to divide columns by half the width of their bounds first (by their scale in a private ``frame``):
        the way to equal scales that looks at no data but what was paid for.
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
        The names of the columns, in the order of ``components_``; a level is ``sex[F]``.
    components_ : ndarray of shape (k, d)
        Orthonormal directions, one per row, the largest variance first.
    explained_variance_ : ndarray of shape (k,)
        The variance along each component.
    explained_variance_ratio_ : ndarray of shape (k,)
        Its share of the total variance, from 0 to 1.
    covariance_ : ndarray of shape (d, d)
        The covariance in original units.
    location_ : ndarray of shape (d,)
        The mean in original units.
    scale_ : ndarray of shape (d,)
        What columns are divided by, in original units.
    n_components_ : int
        The number k of components that are kept.

    Examples
    --------
    >>> import numpy as np
    >>> from privcov import PrivatePCA
    >>> rows = np.linspace(0, 10, 4000)[:, None] @ [[1.0, 1.0]]
    >>> made = PrivatePCA(n_components=1, bounds=(0, 10), epsilon=9, neighbours="replace-one").fit(rows)
    >>> made.components_.round(1)
    array([[0.7, 0.7]])
    >>> made.inverse_transform(made.transform([[8.0, 8.0]])).round()
    array([[8., 8.]])
    """

    _result: ClassVar[str] = "components_"

    n_components: int | Literal["auto"] | None = None
    scaled: bool = False

    components_: Floats = field(init=False)
    explained_variance_: Floats = field(init=False)
    explained_variance_ratio_: Floats = field(init=False)
    scale_: Floats = field(init=False)
    n_components_: int = field(init=False)

    def _learn(self, made: Release) -> None:
        places = self._set_moments(made)
        wanted = len(places) if self.n_components is None else self.n_components
        fit = pca(made, rank=None if isinstance(wanted, str) else wanted, scaled=self.scaled)
        widths = [made.schema.features[place].unit for place in places]
        self.scale_ = np.array(widths) if self.scaled else np.ones(len(widths))
        self.components_, self.explained_variance_ = fit.components.copy(), fit.explained_variance.copy()
        self.explained_variance_ratio_, self.n_components_ = fit.explained_share, fit.rank

    def transform(self, X: Any) -> Floats:
        """Return the scores of rows along the components.

        Parameters
        ----------
        X : array or frame of shape (n, d)
            Rows in original units.

        Returns
        -------
        ndarray of shape (n, k)
            One score per row and component.

        Raises
        ------
        NotFittedError
            ``fit`` was not called.
        """
        return np.asarray((self._new_rows(X) - self.location_) / self.scale_ @ self.components_.T)

    def inverse_transform(self, X: Any) -> Floats:
        """Return the rows that have these scores, and nothing outside the components.

        Parameters
        ----------
        X : array of shape (n, k)
            Scores.

        Returns
        -------
        ndarray of shape (n, d)
            Rows in original units.

        Raises
        ------
        NotFittedError
            ``fit`` was not called.
        ParameterError
            The scores have another number of columns (E263).
        """
        check_is_fitted(self)
        scores = check_array(X, dtype=np.float64)
        if scores.shape[1] != self.n_components_:
            raise ParameterError(
                "E263", f"scores need {self.n_components_} columns, got shape {scores.shape}."
            )
        return np.asarray(scores @ self.components_ * self.scale_ + self.location_)

    def _check(self, rows: int | None, design: Schema) -> None:
        wanted, columns = self.n_components, design.dimension - design.intercept
        if wanted is None or (isinstance(wanted, str) and wanted == "auto"):
            return
        whole = isinstance(wanted, int | np.integer) and not isinstance(wanted, bool)
        if not (whole and 1 <= int(wanted) <= columns):
            raise ParameterError(
                "E263",
                f"n_components must be a whole number from 1 to {columns}, None or 'auto', got {wanted!r}.",
                "None takes all, 'auto' those above the noise.",
            )

    @property
    def _n_features_out(self) -> int:
        return self.n_components_
