"""Principal components as a scikit-learn transformer."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from privcov.errors import ParameterError
from privcov.estimators.base import PrivateEstimator
from privcov.linalg.arrays import Floats
from privcov.mechanisms.base import Mechanism
from privcov.models.pca import pca
from privcov.privacy import Amount, Neighbours


class PrivatePCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PrivateEstimator):  # type: ignore[misc]
    """Principal components of the columns, differentially private.

    Guarantee: ``fit`` is one ``privcov.release`` under the given loss; the rest is post-processing of it.
    ``n_components``: a number, None for all, or ``"auto"`` for those above the noise, which may be none.
    ``scaled=True`` decomposes columns divided by half the width of their bounds: the way to equal scales
    that looks at no data. Fitted: ``release_``, ``components_``, ``explained_variance_``,
    ``explained_variance_ratio_``, ``covariance_`` and ``location_`` in original units, ``scale_``,
    ``n_components_``. Equals ``privcov.pca(release_, rank=n_components, scaled=scaled)``.

    >>> import numpy as np
    >>> rows = np.linspace(0, 10, 4000)[:, None] @ [[1.0, 1.0]]
    >>> made = PrivatePCA(n_components=1, bounds=(0, 10), epsilon=9, neighbours="replace-one").fit(rows)
    >>> made.components_.round(1)
    array([[0.7, 0.7]])
    """

    _result = "components_"
    components_: Floats
    explained_variance_: Floats
    explained_variance_ratio_: Floats
    covariance_: Floats
    location_: Floats
    scale_: Floats
    n_components_: int

    def __init__(
        self,
        *,
        n_components: int | Literal["auto"] | None = None,
        scaled: bool = False,
        bounds: Any = None,
        epsilon: Amount | None = None,
        delta: Amount | None = None,
        rho: Amount | None = None,
        neighbours: Neighbours | str | None = None,
        mechanism: str | Mechanism = "auto",
        row_norm_bound: Amount | None = None,
        max_rows_per_person: int = 1,
        ledger: Any = None,
    ) -> None:
        super().__init__(
            bounds=bounds,
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            neighbours=neighbours,
            mechanism=mechanism,
            row_norm_bound=row_norm_bound,
            max_rows_per_person=max_rows_per_person,
            ledger=ledger,
        )
        self.n_components = n_components
        self.scaled = scaled

    def fit(self, X: Any, y: Any = None) -> Self:
        """Spend the loss once on these rows; ``y`` is ignored."""
        made = self._publish(X)
        wanted = self.n_features_in_ if self.n_components is None else self.n_components
        fit = pca(made, rank=None if isinstance(wanted, str) else wanted, scaled=self.scaled)
        self.covariance_, self.location_ = made.covariance(), made.mean()
        widths = [feature.half_width for feature in made.schema.features[1:]]
        self.scale_ = np.array(widths) if self.scaled else np.ones(len(widths))
        self.components_, self.explained_variance_ = fit.components.copy(), fit.explained_variance.copy()
        self.explained_variance_ratio_, self.n_components_ = fit.explained_share, fit.rank
        return self

    def transform(self, X: Any) -> Floats:
        """The scores of rows along the components."""
        return np.asarray((self._new_rows(X) - self.location_) / self.scale_ @ self.components_.T)

    def inverse_transform(self, X: Any) -> Floats:
        """Rows in original units with these scores and nothing outside the components."""
        check_is_fitted(self)
        scores = check_array(X, dtype=np.float64)
        if scores.shape[1] != self.n_components_:
            raise ParameterError(
                "E263", f"scores need {self.n_components_} columns, got shape {scores.shape}."
            )
        return np.asarray(scores @ self.components_ * self.scale_ + self.location_)

    def _check_shape(self, rows: int | None, columns: int) -> None:
        wanted = self.n_components
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
