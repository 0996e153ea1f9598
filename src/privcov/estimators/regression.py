"""Ridge regression and least squares as scikit-learn regressors."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_consistent_length, column_or_1d

from privcov.errors import ParameterError
from privcov.estimators.base import TARGET, Floats, PrivateEstimator, check_numeric, require_target
from privcov.mechanisms.base import Mechanism
from privcov.models.ols import ols
from privcov.models.ridge import check_penalty, ridge
from privcov.privacy import Amount, Neighbours
from privcov.released import Release


class _PrivateRegressor(RegressorMixin, PrivateEstimator):  # type: ignore[misc]
    """A target with bounds of its own, released together with the features."""

    _result = "coef_"
    coef_: Floats
    intercept_: float
    target_bounds: Any

    def predict(self, X: Any) -> Floats:
        """The target for rows in original units; nothing is clipped."""
        return np.asarray(self._new_rows(X) @ self.coef_ + self.intercept_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.regressor_tags.poor_score = True  # small tables drown in the noise, as they must
        return tags

    def _publish_with(self, rows: Any, target: Any) -> Release:
        require_target(target, self.target_bounds)
        if isinstance(target, list | tuple):  # else NumPy would choose a type from the values
            target = np.array(target, dtype=object)
        column = check_numeric(column_or_1d(target, warn=True), "y")
        check_consistent_length(rows, column)
        return self._publish(rows, column, self.target_bounds)


class PrivateLinearRegression(_PrivateRegressor):
    """Least squares, differentially private.

    Guarantee: ``fit`` is one ``privcov.release`` under the given loss, of features and target together; the
    rest is post-processing of it. Fitted: ``release_``, ``coef_``, ``intercept_``, ``n_features_in_``. Equals
    ``privcov.ols(release_, "y ~ .")``, which also has standard errors and intervals.

    >>> import numpy as np
    >>> rows = np.linspace(0, 10, 4000)[:, None]
    >>> made = PrivateLinearRegression(bounds=(0, 10), target_bounds=(0, 20), epsilon=9, neighbours="replace-one")
    >>> made.fit(rows, 2 * rows[:, 0]).coef_.round(1)
    array([2.])
    """

    def __init__(
        self,
        *,
        bounds: Any = None,
        target_bounds: Any = None,
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
        self.target_bounds = target_bounds

    def fit(self, X: Any, y: Any) -> Self:
        """Spend the loss once on these rows."""
        made = self._publish_with(X, y)
        found = np.array(list(ols(made, f"{TARGET} ~ .").params.values()))
        self.intercept_, self.coef_ = float(found[0]), found[1:]
        return self

    def _check_shape(self, rows: int | None, columns: int) -> None:
        if rows is not None and rows <= columns + 1:
            raise ParameterError(
                "E264",
                f"{rows} rows are too few for {columns + 1} coefficients.",
                "Give more rows or fewer columns, or use PrivateRidge.",
            )


class PrivateRidge(_PrivateRegressor):
    """Ridge regression, differentially private.

    Guarantee: as ``PrivateLinearRegression``. ``penalty`` is a number or ``"auto"``. With ``scaled=False`` it
    is the ``alpha`` of scikit-learn's ``Ridge``; with ``scaled=True`` it weighs coefficients of columns scaled
    to [-1, 1]. Fitted: ``release_``, ``coef_``, ``intercept_``, ``penalty_``, ``n_features_in_``. Equals
    ``privcov.ridge(release_, "y", penalty=penalty, scaled=scaled)``.

    >>> import numpy as np
    >>> rows = np.linspace(0, 10, 4000)[:, None]
    >>> made = PrivateRidge(bounds=(0, 10), target_bounds=(0, 20), epsilon=9, neighbours="replace-one")
    >>> made.fit(rows, 2 * rows[:, 0]).coef_.round(1)
    array([2.])
    """

    penalty_: float

    def __init__(
        self,
        *,
        penalty: float | Literal["auto"] = 0.1,
        scaled: bool = True,
        bounds: Any = None,
        target_bounds: Any = None,
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
        self.penalty = penalty
        self.scaled = scaled
        self.target_bounds = target_bounds

    def fit(self, X: Any, y: Any) -> Self:
        """Spend the loss once on these rows."""
        if not (isinstance(self.penalty, str) and self.penalty == "auto"):
            check_penalty(self.penalty)  # before anything is spent
        made = self._publish_with(X, y)
        fit = ridge(made, TARGET, penalty=self.penalty, scaled=self.scaled)
        self.intercept_, self.penalty_ = fit.intercept, fit.penalty
        self.coef_ = np.array(list(fit.coefficients.values()))
        return self
