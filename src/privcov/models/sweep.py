"""The sweep operator: a moment matrix becomes coefficients, an inverse and a residual sum in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats

_TOLERANCE = 1e-10  # of a column's own sum of squares: what rounding can leave of a pivot that should be zero


@dataclass(frozen=True, kw_only=True, eq=False)
class Swept:
    """Coefficients b = M⁻¹m, the inverse M⁻¹, the residual sum of squares, and each column's pivot."""

    coefficients: Floats
    inverse: Floats
    residual: float
    pivots: Floats


def sweep(matrix: Floats, names: Sequence[str]) -> Swept:
    """Sweep every column but the last, which is the target.

    A pivot is what a column has left after the columns before it. Guarantee: a pivot that is zero up to
    rounding raises an error that names the column and those it is made of; a negative one, which only noise
    can make, is swept like any other.

    >>> swept = sweep(np.array([[4.0, 2.0, 6.0], [2.0, 2.0, 4.0], [6.0, 4.0, 11.0]]), ["(Intercept)", "age"])
    >>> swept.coefficients, swept.residual
    (array([1., 1.]), 1.0)
    """
    work, k = np.array(matrix, dtype=np.float64), len(matrix) - 1
    original, pivots = np.diag(matrix).copy(), np.empty(k)
    for j in range(k):
        pivot = work[j, j]
        if not abs(pivot) > _TOLERANCE * abs(original[j]):
            raise _singular(work[:j, j] * np.sqrt(np.abs(original[:j])), j, names, abs(original[j]))
        pivots[j] = pivot
        row = work[j] / pivot
        column = work[:, j].copy()
        work -= np.outer(column, row)
        work[j], work[:, j] = row, -column / pivot
        work[j, j] = 1 / pivot
    return Swept(
        coefficients=work[:k, k].copy(),
        inverse=(work[:k, :k] + work[:k, :k].T) / 2,
        residual=float(work[k, k]),
        pivots=pivots,
    )


def _singular(shares: Floats, j: int, names: Sequence[str], size: float) -> ParameterError:
    """Column j in terms of the columns before it: those with a share worth naming."""
    others = [name for name, share in zip(names, shares, strict=False) if abs(share) > 1e-6 * np.sqrt(size)]
    made = f"is a linear combination of {', '.join(others)}" if others else "has no values"
    return ParameterError(
        "E236", f"the design is singular: column {names[j]} {made}.", f"Leave {names[j]} out of the formula."
    )
