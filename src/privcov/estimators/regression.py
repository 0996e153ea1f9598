"""Ridge regression and least squares as scikit-learn regressors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import RegressorMixin

from privcov.errors import ParameterError
from privcov.estimators.base import TARGET, PrivateEstimator, columns_of
from privcov.estimators.rows import as_table, one_dimensional, repeated
from privcov.linalg.arrays import Floats
from privcov.mechanisms import MECHANISMS
from privcov.mechanisms.base import AdditiveMechanism
from privcov.models.levels import Term
from privcov.models.ols import ols
from privcov.models.ridge import check_penalty, ridge
from privcov.models.selection import target_place
from privcov.releases.release import Release
from privcov.schema import Categorical, Feature, Schema
from privcov.schema.names import INTERCEPT


@dataclass(kw_only=True, eq=False, repr=False)
class _PrivateRegressor(RegressorMixin, PrivateEstimator):  # type: ignore[misc]
    """A target with bounds of its own, released together with the features."""

    _result: ClassVar[str] = "coef_"

    target: str | None = None
    target_bounds: Any = None

    coef_: Floats = field(init=False)
    intercept_: float = field(init=False)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Spend the loss once on these rows.

        Parameters
        ----------
        X : array or frame of shape (n, d)
            The rows, in original units. A cell that is no number counts as the middle of its column's bounds. With a
            schema: a frame with the columns that it declares, or an array in their order; missing cells count as it
            says.
        y : array of shape (n,), optional
            The target, in original units. It is left out where X has the column that ``target`` names, or what that is
            derived from.
        sample_weight : array of shape (n,), optional
            What each row counts as, at most the largest weight that is declared. One without a weight above 0 does not
            count.

        Returns
        -------
        Self
            This estimator, fitted.

        Raises
        ------
        ParameterError
            A constructor argument is missing or out of range (E26x), or contradicts the schema or the rows
            (E227 to E229, E289).
        InputError
            The rows have no numeric type (E110), or do not fit the schema (E1xx).
        BudgetError
            The ledger refuses (E3xx). Nothing was drawn and nothing was read.
        """
        goal = self._goal(y)
        column = one_dimensional(y, as_table(X), "y")
        self._explain(self._publish(X, sample_weight, column, goal), goal)
        return self

    def _explain(self, made: Release, goal: Feature) -> None:
        """Keep the coefficients of the target on all other columns."""
        raise NotImplementedError

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
        return np.asarray(self._new_rows(X)[:, self._explaining] @ self.coef_ + self.intercept_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.regressor_tags.poor_score = True  # small tables drown in the noise, as they must
        return tags

    def _goal(self, target: Any) -> Feature:
        """What is explained: a feature of the schema, or a column with the bounds that were given."""
        if self.schema is not None:
            return self._named_goal(self._checked_schema(), target)
        if self.target is not None:
            raise ParameterError(
                "E227",
                "target names a column of a schema, but no schema was given.",
                "Give the schema too, or y in place of target.",
            )
        if target is None:
            raise ParameterError(
                "E261", "a regressor requires y to be passed, but the target y is None.", "Call fit(X, y)."
            )
        (own,) = columns_of("target_bounds", self.target_bounds, [TARGET])
        return Schema(columns=(own,)).features[1]

    def _named_goal(self, schema: Schema, target: Any) -> Feature:
        name = getattr(target, "name", None) if self.target is None else self.target
        if not isinstance(name, str):
            raise ParameterError(
                "E289",
                "there is no target: neither target nor a name of y says which column of the schema is explained.",
                'Write target="NAME".',
            )
        goal = schema.features[target_place(schema, name)]
        read = {column.name for column in schema.read_columns}
        if goal.kind == "missing" or goal.column == schema.weight:
            raise ParameterError(
                "E289", f"{goal.name} cannot be a target.", "Name a numeric column, or one level of a column."
            )
        if target is not None and (goal.kind != "numeric" or goal.column not in read):
            raise ParameterError(
                "E289",
                f"{goal.name} is computed from the rows, and cannot be given as y.",
                "Leave y out, and give X the columns that it is made of.",
            )
        return goal

    def _keep(self, intercept: float, coefficients: Mapping[str, float]) -> None:
        """Keep the coefficients, and which columns of new rows they belong to."""
        names = [feature.name for feature in self._design.features if feature.kind != "intercept"]
        self._explaining = [names.index(name) for name in coefficients]
        self.columns_ = np.array(list(coefficients), dtype=object)
        self.intercept_, self.coef_ = float(intercept), np.array(list(coefficients.values()))


class PrivateLinearRegression(_PrivateRegressor):
    """Least squares, differentially private, as a scikit-learn regressor.

    ``fit`` is one ``privcov.release`` under the given loss, of features and target together; the rest is
    post-processing of it. It equals ``privcov.ols(release_, "y ~ .")``, which also has standard errors and
    intervals.

    Parameters
    ----------
    schema : Schema, optional
        All that is public of the table: derived columns, levels, persons, weights, missing values. Then ``fit`` takes
        frames with its columns, and ``bounds`` and the other words that a schema has are left out.
    bounds : pair of float or of sequences, optional
        ``(lower, upper)`` in original units, each one number for all columns or one number per column. From
        public knowledge, never from the data. Required by ``fit`` without a schema.
    target : str, optional
        With a schema, the column to explain: a numeric or derived one, or a level such as ``smoker[yes]``. By default
        the name that ``y`` has as a series.
    target_bounds : pair of float, optional
        ``(lower, upper)`` of the target, in original units. From public knowledge. Required by ``fit`` without a
        schema.
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
        The names of the columns, in the order of ``coef_``; a level is ``sex[F]``.
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

    def _explain(self, made: Release, goal: Feature) -> None:
        found = ols(made, f"{_written(goal)} ~ .").params
        self._keep(found.pop(INTERCEPT), found)

    def _check(self, rows: int | None, design: Schema) -> None:
        columns = sum(column.width - isinstance(column, Categorical) for column in design.columns)
        if rows is not None and rows <= columns + 1:
            raise ParameterError(
                "E264",
                f"{rows} rows are too few for {columns + 1} coefficients.",
                "Give more rows or fewer columns, or use PrivateRidge.",
            )
        if (name := repeated(design)) is not None:
            raise ParameterError(
                "E200",
                f"{name} follows from the columns before it in every row, so that least squares has no answer.",
                "Leave one of them out with schema.without, or use PrivateRidge.",
            )


def _written(goal: Feature) -> str:
    """The target as a formula has it."""
    return str(Term(column=goal.column, chosen=() if goal.level is None else (str(goal.level),)))


@dataclass(kw_only=True, eq=False, repr=False)
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
    schema : Schema, optional
        All that is public of the table: derived columns, levels, persons, weights, missing values. Then ``fit`` takes
        frames with its columns, and ``bounds`` and the other words that a schema has are left out.
    bounds : pair of float or of sequences, optional
        ``(lower, upper)`` in original units, each one number for all columns or one number per column. From
        public knowledge, never from the data. Required by ``fit`` without a schema.
    target : str, optional
        With a schema, the column to explain: a numeric or derived one, or a level such as ``smoker[yes]``. By default
        the name that ``y`` has as a series.
    target_bounds : pair of float, optional
        ``(lower, upper)`` of the target, in original units. From public knowledge. Required by ``fit`` without a
        schema.
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
        The names of the columns, in the order of ``coef_``; a level is ``sex[F]``.
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

    penalty: float | Literal["auto"] = "auto"
    scaled: bool = True

    penalty_: float = field(init=False)

    def _explain(self, made: Release, goal: Feature) -> None:
        fit = ridge(made, goal.name, penalty=self.penalty, scaled=self.scaled)
        self.penalty_ = fit.penalty
        self._keep(fit.intercept, fit.coefficients)

    def _check(self, rows: int | None, design: Schema) -> None:
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
