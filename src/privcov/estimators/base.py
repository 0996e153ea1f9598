"""What the estimators share: from constructor arguments and rows to a release, and nothing kept but that.

scikit-learn's validation refuses a NaN or a cell that is not a number, and some of its messages quote the cell.
In ``fit`` that would be an error that depends on a person, so only shapes and types are checked there, and such a
cell is missing: it counts as the middle of its column's bounds, as everywhere in privcov.

Constructor arguments into privcov's values: a loss, and columns with public bounds.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from privcov.errors import InputError, ParameterError, without_reasons
from privcov.linalg.arrays import Floats
from privcov.mechanisms.base import Mechanism
from privcov.privacy import ZCDP, Amount, ApproxDP, Loss, Neighbours, PureDP
from privcov.publish.release import release
from privcov.releases.release import Release
from privcov.schema import Column, Numeric, Schema
from privcov.table.frames import object_cells

TARGET = "y"


class PrivateEstimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """The privacy parameters as constructor arguments, and the one call that spends them.

    With a ``ledger`` every fit pays first, so that a search or a cross-validation that fits again and again is
    stopped by the budget. The estimators of ``privcov.estimators`` derive from it and document its arguments.
    """

    release_: Release
    n_features_in_: int
    _result: ClassVar[str] = "covariance_"
    """The attribute that the end of ``fit`` sets."""

    def __init__(
        self,
        *,
        bounds: Any = None,
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
        self.bounds = bounds
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.neighbours = neighbours
        self.mechanism = mechanism
        self.row_norm_bound = row_norm_bound
        self.max_rows_per_person = max_rows_per_person
        self.frame = frame
        self.ledger = ledger

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True  # the noise is fresh at every fit
        tags.input_tags.allow_nan = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, self._result)

    def _publish(self, rows: Any, target: Any = None, target_bounds: Any = None) -> Release:
        """Check everything public, then release the columns x0, x1, … and the target y where there is one.

        The release is kept before anything is made of it: it is paid for, also where its noise leaves a model
        nothing to fit.
        """
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)  # what an earlier fit left does not belong to this release
        loss = loss_of(epsilon=self.epsilon, delta=self.delta, rho=self.rho, neighbours=self.neighbours)
        # Where the number of rows is private, no number of them may be refused.
        fewest = 2 if loss.neighbours.count_is_public(self.max_rows_per_person) else 0
        table = self._table(rows, reset=True, fewest=fewest)
        self._check_shape(len(table) if fewest else None, table.shape[1])
        columns = columns_of("bounds", self.bounds, [f"x{place}" for place in range(table.shape[1])])
        if target_bounds is not None:
            columns += columns_of("target_bounds", target_bounds, [TARGET])
            table = np.column_stack([table, target])  # of objects where either holds objects
        schema = Schema(
            columns=tuple(columns),
            row_norm_bound=self.row_norm_bound,  # type: ignore[arg-type]  # Schema makes it exact
            max_rows_per_person=self.max_rows_per_person,
        )
        numbers = without_reasons(lambda: _numbers(table, schema.columns))
        self.release_ = release(
            numbers,
            schema=schema,
            loss=loss,
            mechanism=self.mechanism,
            frame=self.frame,
            ledger=self.ledger,
        )
        return self.release_

    def _check_shape(self, rows: int | None, columns: int) -> None:
        """Refuse a shape that no release could serve, before anything is spent; rows is None where private."""

    def _new_rows(self, rows: Any) -> Floats:
        """Rows to predict or transform, with the middle of the bounds, or the centre found, for a missing cell."""
        check_is_fitted(self)
        columns = self.release_.schema.columns[: self.n_features_in_]
        found = _numbers(self._table(rows, reset=False, fewest=1), columns)
        middles = [column.middle for column in columns if isinstance(column, Numeric)]
        return np.where(np.isfinite(found), found, middles)

    def _table(self, rows: Any, *, reset: bool, fewest: int) -> NDArray[Any]:
        """Rows as a two-dimensional array, no value looked at; sets or checks n_features_in_ and names."""
        if isinstance(rows, list | tuple):  # else NumPy would choose a type from the values
            rows = np.array(rows, dtype=object)
        table = validate_data(
            self, rows, reset=reset, dtype=None, ensure_all_finite=False, ensure_min_samples=fewest
        )
        return check_numeric(table, "X")


def check_numeric(array: NDArray[Any], name: str) -> NDArray[Any]:
    """The array, if its type is one of numbers or of objects, whose cells are judged one at a time."""
    if array.dtype.kind in "fiubO":
        return array
    raise InputError(
        "E110",
        f"{name} has the type {array.dtype.name}, which is not a real number type.",
        "Convert it to float64.",
    )


def require_target(target: Any, target_bounds: Any) -> None:
    """Refuse a regression without a target or without its bounds."""
    if target is None:
        raise ParameterError(
            "E261", "a regressor requires y to be passed, but the target y is None.", "Call fit(X, y)."
        )
    if target_bounds is None:
        raise ParameterError(
            "E260", "target_bounds was not given.", "Give target_bounds=(lower, upper) from public knowledge."
        )


def _numbers(table: NDArray[Any], columns: tuple[Any, ...]) -> Floats:
    """Every cell as a number; one that is none becomes NaN, which is missing."""
    with np.errstate(all="ignore"):  # a warning would tell that a value is huge
        if table.dtype.kind != "O":
            return np.asarray(table, dtype=np.float64)
        made = [object_cells(column, table[:, place]) for place, column in enumerate(columns)]
    return np.column_stack(made)


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
