"""What the estimators share: from constructor arguments and rows to a release, and nothing kept but that.

scikit-learn's validation refuses a NaN or a cell that is not a number, and some of its messages quote the cell.
In ``fit`` that would be an error that depends on a person, so only shapes and types are checked there, and such a
cell is missing: it counts as the middle of its column's bounds, as everywhere in privcov.

Constructor arguments into privcov's values: a loss, and columns with public bounds, or a whole schema.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from privcov.errors import ParameterError, without_reasons
from privcov.estimators.rows import (
    as_table,
    check_numeric,
    design_of,
    features_of,
    numbers,
    one_dimensional,
    with_column,
)
from privcov.linalg.arrays import Floats
from privcov.mechanisms.base import Mechanism
from privcov.privacy import ZCDP, Amount, ApproxDP, Loss, Neighbours, PureDP
from privcov.publish.release import release
from privcov.releases.release import Release
from privcov.schema import Column, Feature, Numeric, Schema

TARGET, WEIGHT = "y", "weight"
"""What columns are called that no schema names."""


class _Fitted(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """What ``fit`` sets: apart from the arguments, which are the fields of the classes below."""

    release_: Release
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]
    columns_: NDArray[np.object_]
    covariance_: Floats
    location_: Floats
    _design: Schema
    """The columns of the release but for the target and the weight, as new rows are read."""


@dataclass(kw_only=True, eq=False, repr=False)  # scikit-learn has its own way to show an estimator
class PrivateEstimator(_Fitted):
    """The privacy parameters as constructor arguments, and the one call that spends them.

    With a ``ledger`` every fit pays first, so that a search or a cross-validation that fits again and again is
    stopped by the budget. The estimators of ``privcov.estimators`` derive from it and document its arguments.
    """

    _result: ClassVar[str] = "covariance_"
    """The attribute that the end of ``fit`` sets."""

    schema: Schema | None = None
    bounds: Any = None
    epsilon: Amount | None = None
    delta: Amount | None = None
    rho: Amount | None = None
    neighbours: Neighbours | str | None = None
    mechanism: str | Mechanism = "auto"
    row_norm_bound: Amount | None = None
    max_rows_per_person: int = 1
    largest_weight: float | None = None
    frame: Literal["declared", "scales", "shape", "auto"] = "declared"
    cut: Literal["told", "counted"] = "told"
    ledger: Any = None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Spend the loss once on these rows.

        Parameters
        ----------
        X : array or frame of shape (n, d)
            The rows, in original units. A cell that is no number counts as the middle of its column's bounds. With a
            schema: a frame with the columns that it declares, or an array in their order; missing cells count as it
            says.
        y : Any, optional
            Ignored; here because scikit-learn passes it.
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
            A constructor argument is missing or out of range (E26x), or contradicts the schema or rows (E227 to E229).
        InputError
            The rows have no numeric type (E110), or do not fit the schema (E1xx).
        BudgetError
            The ledger refuses (E3xx). Nothing was drawn and nothing was read.
        """
        self._learn(self._publish(X, sample_weight))
        return self

    def _learn(self, made: Release) -> None:
        """Keep what follows from the release."""
        self._set_moments(made)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True  # the noise is fresh at every fit
        tags.input_tags.allow_nan = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, self._result)

    def _publish(self, rows: Any, weights: Any, target: Any = None, goal: Feature | None = None) -> Release:
        """Check everything public, then release the columns of X, the target where there is one, and the weight.

        The release is kept before anything is made of it: it is paid for, also where its noise leaves a model
        nothing to fit.
        """
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)  # what an earlier fit left does not belong to this release
        loss = loss_of(epsilon=self.epsilon, delta=self.delta, rho=self.rho, neighbours=self.neighbours)
        read = self._by_bounds if self.schema is None else self._by_schema
        data, schema = read(rows, one_dimensional(weights, rows, "sample_weight"), target, goal, loss)
        self.release_ = release(
            data,
            schema=schema,
            loss=loss,
            mechanism=self.mechanism,
            frame=self.frame,
            cut=self.cut,
            ledger=self.ledger,
        )
        return self.release_

    def _by_bounds(
        self, rows: Any, weights: Any, target: Any, goal: Feature | None, loss: Loss
    ) -> tuple[Floats, Schema]:
        """The columns x0, x1, …, the target y and the weight as an array, and a schema of numeric columns."""
        # Where the number of rows is private, no number of them may be refused.
        fewest = 2 if loss.neighbours.count_is_public(self.max_rows_per_person) else 0
        table = self._table(rows, reset=True, fewest=fewest)
        columns = columns_of("bounds", self.bounds, [f"x{place}" for place in range(table.shape[1])])
        self._design = Schema(columns=tuple(columns))
        self._check(len(table) if fewest else None, self._design)
        if goal is not None:
            columns.append(Numeric(name=TARGET, lower=goal.lower, upper=goal.upper))
        given = [table, *(part for part in (target, weights) if part is not None)]
        if weights is not None and self.largest_weight is None:
            raise _no_largest("largest_weight=NUMBER")
        schema = Schema(
            columns=tuple(columns),
            row_norm_bound=self.row_norm_bound,  # type: ignore[arg-type]  # Schema makes it exact
            max_rows_per_person=self.max_rows_per_person,
            weight=None if weights is None else WEIGHT,
            largest_weight=None if weights is None else self.largest_weight,
        )
        table = np.column_stack(given)  # of objects where one of them holds objects
        return without_reasons(lambda: numbers(table, schema.columns)), schema

    def _by_schema(
        self, rows: Any, weights: Any, target: Any, goal: Feature | None, loss: Loss
    ) -> tuple[Any, Schema]:
        """The rows with the target and the weights as columns among theirs, and the schema that was given."""
        schema, rows = self._checked_schema(), as_table(rows)
        columns = {column.name: column for column in schema.read_columns}
        if target is not None and goal is not None:
            rows = with_column(rows, columns[goal.column], target, schema, "y")
        if weights is not None and schema.weight is None:
            raise _no_largest('schema= with weight = "NAME" and largest_weight = NUMBER')
        if weights is not None:
            rows = with_column(rows, columns[str(schema.weight)], weights, schema, "sample_weight")
        self._design = design_of(schema, None if goal is None else goal.column)
        names = [column.name for column in self._design.read_columns]
        self.n_features_in_, self.feature_names_in_ = len(names), np.array(names, dtype=object)
        # Of a table with an id only the number of persons would be public, and it is not known here.
        public = loss.neighbours.count_is_public(schema.max_rows_per_person) and schema.person is None
        self._check(len(rows) if public and hasattr(rows, "__len__") else None, self._design)
        return rows, schema

    def _checked_schema(self) -> Schema:
        """The schema, if it is one and nothing that it says is said beside it."""
        if not isinstance(self.schema, Schema):
            raise ParameterError(
                "E227",
                f"schema must be a Schema, got {type(self.schema).__name__}.",
                'Write schema=privcov.Schema.read("people.toml").',
            )
        beside = ("bounds", "target_bounds", "row_norm_bound", "largest_weight")
        given = [word for word in beside if getattr(self, word, None) is not None]
        if given or self.max_rows_per_person != 1:
            raise ParameterError(
                "E227",
                f"{[*given, 'max_rows_per_person'][0]} was given, but with a schema it belongs there.",
                "Write it in the schema, or leave the schema out.",
            )
        return self.schema

    def _check(self, rows: int | None, design: Schema) -> None:
        """Refuse what no release could serve, before anything is spent; rows is None where their number is private."""

    def _of_design(self) -> list[int]:
        """The places, in the released matrix, of the columns that are neither the target nor the weight."""
        names = [feature.name for feature in self._design.features if feature.kind != "intercept"]
        self.columns_ = np.array(names, dtype=object)
        return [self.release_.columns.index(name) for name in names]

    def _set_moments(self, made: Release) -> list[int]:
        """Keep covariance and mean of the columns; their places in the matrix."""
        places = self._of_design()
        inside = [place - 1 for place in places]
        self.covariance_ = made.covariance()[np.ix_(inside, inside)]
        self.location_ = made.mean()[inside]
        return places

    def _new_rows(self, rows: Any) -> Floats:
        """Rows to predict or transform, as columns of the release in original units.

        A missing cell counts as its column says: by default as the middle of the bounds, or the centre found.
        """
        check_is_fitted(self)
        centres = {feature.name: feature.middle for feature in self.release_.schema.features}
        if self.schema is not None:
            return features_of(rows, self._design, centres)
        columns = self._design.columns
        found = numbers(self._table(rows, reset=False, fewest=1), columns)
        return np.where(np.isfinite(found), found, [centres[column.name] for column in columns])

    def _table(self, rows: Any, *, reset: bool, fewest: int) -> NDArray[Any]:
        """Rows as a two-dimensional array, no value looked at; sets or checks n_features_in_ and names."""
        if isinstance(rows, list | tuple):  # else NumPy would choose a type from the values
            rows = np.array(rows, dtype=object)
        if any(
            str(kind) == "category" for kind in getattr(rows, "dtypes", ())
        ):  # else a missing one is cast, with a warning
            rows = rows.astype(object)
        table = validate_data(
            self, rows, reset=reset, dtype=None, ensure_all_finite=False, ensure_min_samples=fewest
        )
        return check_numeric(table, "X")


def _no_largest(where: str) -> ParameterError:
    return ParameterError(
        "E228",
        "sample_weight needs the largest weight that a row can have, and none was given.",
        f"Give {where}, from public knowledge: how the sample was drawn, never the data.",
    )


def loss_of(
    *,
    epsilon: Amount | None,
    delta: Amount | None,
    rho: Amount | None,
    neighbours: Neighbours | str | None,
) -> Loss:
    """The one loss that the given numbers name: epsilon; epsilon and delta; or rho.

    >>> print(loss_of(epsilon=1, delta=None, rho=None, neighbours="replace-one"))
    pure differential privacy, epsilon = 1, replace-one
    """
    words = Neighbours.parse(neighbours)
    if rho is not None and epsilon is None and delta is None:
        return ZCDP(rho=rho, neighbours=words)
    if epsilon is not None and rho is None:
        if delta is None:
            return PureDP(epsilon=epsilon, neighbours=words)
        return ApproxDP(epsilon=epsilon, delta=delta, neighbours=words)
    raise ParameterError(
        "E262",
        f"epsilon={epsilon}, delta={delta}, rho={rho} do not define a privacy loss.",
        "Give epsilon, or epsilon and delta, or rho alone. There is no default.",
    )


def columns_of(word: str, bounds: Any, names: list[str]) -> list[Column]:
    """One numeric column per name from ``(lower, upper)``, each one number or one number per column.

    >>> [(c.name, c.lower, c.upper) for c in columns_of("bounds", (0, [1, 2]), ["x0", "x1"])]
    [('x0', 0.0, 1.0), ('x1', 0.0, 2.0)]
    """
    if bounds is None:
        raise ParameterError(
            "E260",
            f"{word} was not given.",
            f"Give {word}=(lower, upper) from public knowledge, never from the data.",
        )
    try:
        lower, upper = bounds
        ends = [np.broadcast_to(np.asarray(end, dtype=np.float64), len(names)) for end in (lower, upper)]
    except (TypeError, ValueError):
        raise ParameterError(
            "E260",
            f"{word} must be a pair (lower, upper) of numbers, or of lists of {len(names)} numbers.",
            "A list holds one number per column, in the order of the columns.",
        ) from None
    pairs = zip(names, ends[0].tolist(), ends[1].tolist(), strict=True)
    return [Numeric(name=name, lower=low, upper=high) for name, low, high in pairs]
