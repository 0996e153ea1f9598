"""A table of the papers as their mechanisms meet it: its matrix, its number of rows, and what an answer is worth.

Shared with the 2018 paper, which measures the same two errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from privcov.linalg.arrays import Floats
from privcov.linalg.devices import eigh
from privcov.mechanisms.base import Upper
from privcov.schema.grid import Grid
from privcov.summing.gram import Gram
from privcov_lab.reproduce.datasets import Datasets, scaled

LAMBDA = 0.005
"""λ of the ridge objective, which neither paper prints; the penalty is 2λn."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Place:
    """C = Σ xxᵀ over ``rows`` public rows of norm at most 1."""

    truth: Floats
    rows: int

    @classmethod
    def of(cls, rows: Floats) -> Place:
        return cls(truth=rows.T @ rows, rows=len(rows))

    @property
    def grid(self) -> Grid:
        return Grid(dimension=len(self.truth), exponent=20, squared_norm_bound=2**40)

    @cached_property
    def gram(self) -> Gram:
        """The matrix as a mechanism that needs it takes it; the table is public."""
        upper = self.truth[np.triu_indices(len(self.truth))] * 4.0**self.grid.exponent
        whole = np.array([round(entry) for entry in upper.tolist()], dtype=object)
        return Gram.of_public(self.grid, whole, rows=self.rows)

    def matrix(self, upper: Upper) -> Floats:
        """The matrix whose upper triangle a mechanism has answered on the grid."""
        made = np.zeros_like(self.truth)
        made[np.triu_indices(len(made))] = upper.astype(np.float64) * float(self.grid.unit)
        return np.asarray(made + np.triu(made, 1).T)

    def rounded(self, matrix: Floats) -> Floats:
        """Eigenvalues rounded to [0, n], as the 2019 paper does to every answer."""
        values, vectors = eigh(matrix)
        return np.asarray((vectors * np.clip(values, 0.0, self.rows)) @ vectors.T)

    def frobenius_error(self, matrix: Floats) -> float:
        """‖Ĉ − C‖_F / n.

        >>> Place.of(np.array([[1.0, 0.0], [0.0, 1.0]])).frobenius_error(np.zeros((2, 2))).__round__(4)
        0.7071
        """
        return float(np.linalg.norm(matrix - self.truth)) / self.rows

    def ridge_error(self, matrix: Floats) -> float:
        """The mean square residual, on the rows, of ridge fits from ``matrix`` of every column on the others."""
        return self.residual_error(ridge_residuals(matrix, penalty=self.penalty))

    def residual_error(self, residuals: Floats) -> float:
        """The mean square of residuals; row t of ``residuals`` is 1 for target t and minus its coefficients."""
        squares = float(((residuals @ self.truth) * residuals).sum())
        return squares / len(self.truth) / self.rows

    def facts(self) -> dict[str, float]:
        """What needs no privacy: the size of the table, the error of answering zero, ridge without noise."""
        return {
            "columns": len(self.truth),
            "rows": self.rows,
            "zero": self.frobenius_error(np.zeros_like(self.truth)),
            "ridge_zero": self.residual_error(np.eye(len(self.truth))),
            "ridge_exact": self.ridge_error(self.truth),
        }

    def errors(self, matrices: Sequence[Floats]) -> dict[str, list[float]]:
        """Both errors of every matrix."""
        return {
            "frobenius": [self.frobenius_error(matrix) for matrix in matrices],
            "ridge": [self.ridge_error(matrix) for matrix in matrices],
        }

    @property
    def penalty(self) -> float:
        return 2 * LAMBDA * self.rows


def ridge_residuals(matrix: Floats, *, penalty: float) -> Floats:
    """Row t: 1 for column t, minus the ridge coefficients that predict it from the other columns.

    One inverse serves all targets: by the block formula, row t of (M + penalty·I)⁻¹ is its own diagonal entry times
    just this.
    """
    inverse = np.linalg.inv(matrix + penalty * np.eye(len(matrix)))
    return np.asarray(inverse / np.diag(inverse)[:, None])


@lru_cache(maxsize=8)
def place(data: Datasets, name: str, *, with_class: bool = False) -> Place:
    """A table scaled as in the papers; ``with_class`` counts its class as one more column."""
    found = data.load(name)
    rows = found.rows
    if with_class and found.labels is not None:
        rows = np.column_stack([found.labels, rows])
    return Place.of(scaled(rows))
