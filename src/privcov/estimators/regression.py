"""Ridge regression and least squares as scikit-learn regressors."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_consistent_length, column_or_1d

from privcov.errors import ParameterError
from privcov.estimators.base import TARGET, PrivateEstimator, check_numeric, require_target
from privcov.linalg.arrays import Floats
from privcov.mechanisms import MECHANISMS
from privcov.mechanisms.base import AdditiveMechanism, Mechanism
from privcov.models.ols import ols
from privcov.models.ridge import check_penalty, ridge
from privcov.privacy import Amount, Neighbours
from privcov.releases.release import Release


class _PrivateRegressor(RegressorMixin, PrivateEstimator):  # type: ignore[misc]
    """A target with bounds of its own, released together with the features."""

    _result = "coef_"
    coef_: Floats
    intercept_: float
    target_bounds: Any

    def predict(self, X: Any) -> Floats:
        """Predict the target. Nothing is clipped.

        Parameters
        ----------
        X : array or frame of shape (n, d)
            Rows in original units.

        Returns
        -------
        ndarray of shape (n,)
            Predictions, in original units of the target.

        Raises
        ------
        NotFittedError
            ``fit`` was not called.
        """
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
    """Least squares, differentially private, as a scikit-learn regressor.

    ``fit`` is one ``privcov.release`` under the given loss, of features and target together; the rest is
    post-processing of it. It equals ``privcov.ols(release_, "y ~ .")``, which also has standard errors and
    intervals.

    Parameters
    ----------
    bounds : pair of float or of sequences, optional
        ``(lower, upper)`` in original units, each one number for all columns or one number per column. From
        public knowledge, never from the data. Required by ``fit``.
    target_bounds : pair of float, optional
        ``(lower, upper)`` of the target, in original units. From public knowledge. Required by ``fit``.
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
    frame : {"declared", "scales", "shape", "auto"}, default "declared"
        What rows are measured from and in: the middle and half the width of their bounds, or centres and scales that
        paid rounds fit to them. In such a private frame bounds may be far too wide, rows are shortened, and a
        missing cell counts as the centre found. See ``privcov.release``.
    ledger : str, Path or Ledger, optional
        The budget that every ``fit`` pays from first, so that a search that fits again and again is stopped.

    Attributes
    ----------
    release_ : Release
        What ``fit`` released and paid for; the rest is computed from it.
    n_features_in_ : int
        The number of columns seen by ``fit``.
    coef_ : ndarray of shape (d,)
        The coefficients, in units of the target per unit of the column.
    intercept_ : float
        The prediction where every feature is 0, in units of the target.

    Examples
    --------
    >>> import numpy as np
    >>> from privcov import PrivateLinearRegression
    >>> rows = np.linspace(0, 10, 4000)[:, None]
    >>> made = PrivateLinearRegression(bounds=(0, 10), target_bounds=(0, 20), epsilon=9, neighbours="replace-one")
    >>> made.fit(rows, 2 * rows[:, 0]).coef_.round(1)
    array([2.])
    >>> made.predict([[5.0]]).round()
    array([10.])
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
        frame: Literal["declared", "scales", "shape", "auto"] = "declared",
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
            frame=frame,
            ledger=ledger,
        )
        self.target_bounds = target_bounds

    def fit(self, X: Any, y: Any) -> Self:
        """Spend the loss once on these rows.

        Parameters
        ----------
        X : array or frame of shape (n, d)
            The rows, in original units. A cell that is no number counts as the middle of its column's bounds.
        y : array of shape (n,)
            The target, in original units.

        Returns
        -------
        Self
            This estimator, fitted.

        Raises
        ------
        ParameterError
            A constructor argument is missing or out of range (E26x).
        InputError
            The rows have no numeric type (E110).
        BudgetError
            The ledger refuses (E3xx). Nothing was drawn and nothing was read.
        """
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
    """Ridge regression, differentially private, as a scikit-learn regressor.

    ``fit`` is one ``privcov.release`` under the given loss, of features and target together; the rest is
    post-processing of it. It equals ``privcov.ridge(release_, "y", penalty=penalty, scaled=scaled)``.

    Parameters
    ----------
    penalty : float or "auto", default "auto"
        The weight of the penalty, from 0, for a sum over rows. With ``scaled=False`` it is the ``alpha`` of
        scikit-learn's ``Ridge``. "auto" chooses it from the release.
    scaled : bool, default True
        Whether the penalty weighs coefficients of columns scaled to [-1, 1], or as a private ``frame`` scales
        them; with False, of columns in original units.
    bounds : pair of float or of sequences, optional
        ``(lower, upper)`` in original units, each one number for all columns or one number per column. From
        public knowledge, never from the data. Required by ``fit``.
    target_bounds : pair of float, optional
        ``(lower, upper)`` of the target, in original units. From public knowledge. Required by ``fit``.
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
    frame : {"declared", "scales", "shape", "auto"}, default "declared"
        What rows are measured from and in: the middle and half the width of their bounds, or centres and scales that
        paid rounds fit to them. In such a private frame bounds may be far too wide, rows are shortened, and a
        missing cell counts as the centre found. See ``privcov.release``.
    ledger : str, Path or Ledger, optional
        The budget that every ``fit`` pays from first, so that a search that fits again and again is stopped.

    Attributes
    ----------
    release_ : Release
        What ``fit`` released and paid for; the rest is computed from it.
    n_features_in_ : int
        The number of columns seen by ``fit``.
    coef_ : ndarray of shape (d,)
        The coefficients, in units of the target per unit of the column.
    intercept_ : float
        The prediction where every feature is 0, in units of the target.
    penalty_ : float
        The penalty that was used.

    Examples
    --------
    >>> import numpy as np
    >>> from privcov import PrivateRidge
    >>> rows = np.linspace(0, 10, 4000)[:, None]
    >>> made = PrivateRidge(bounds=(0, 10), target_bounds=(0, 20), epsilon=9, neighbours="replace-one")
    >>> made.fit(rows, 2 * rows[:, 0]).coef_.round(1)
    array([2.])
    >>> made.predict([[5.0]]).round()
    array([10.])
    """

    penalty_: float

    def __init__(
        self,
        *,
        penalty: float | Literal["auto"] = "auto",
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
        frame: Literal["declared", "scales", "shape", "auto"] = "declared",
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
            frame=frame,
            ledger=ledger,
        )
        self.penalty = penalty
        self.scaled = scaled
        self.target_bounds = target_bounds

    def fit(self, X: Any, y: Any) -> Self:
        """Spend the loss once on these rows.

        Parameters
        ----------
        X : array or frame of shape (n, d)
            The rows, in original units. A cell that is no number counts as the middle of its column's bounds.
        y : array of shape (n,)
            The target, in original units.

        Returns
        -------
        Self
            This estimator, fitted.

        Raises
        ------
        ParameterError
            A constructor argument is missing or out of range (E26x).
        InputError
            The rows have no numeric type (E110).
        BudgetError
            The ledger refuses (E3xx). Nothing was drawn and nothing was read.
        """
        self._check_penalty()
        made = self._publish_with(X, y)
        fit = ridge(made, TARGET, penalty=self.penalty, scaled=self.scaled)
        self.intercept_, self.penalty_ = fit.intercept, fit.penalty
        self.coef_ = np.array(list(fit.coefficients.values()))
        return self

    def _check_penalty(self) -> None:
        """Refuse a penalty that no fit could take, before anything is spent."""
        if not (isinstance(self.penalty, str) and self.penalty == "auto"):
            check_penalty(self.penalty)
            return
        kind = MECHANISMS.get(self.mechanism) if isinstance(self.mechanism, str) else type(self.mechanism)
        if kind is not None and not issubclass(kind, AdditiveMechanism):
            raise ParameterError(
                "E256",
                f"the choice of a penalty needs the distribution of the noise, which is not known for {kind.name}.",
                "Give a penalty, such as 1.0, or another mechanism.",
            )
