"""A Gaussian sketch with ridge (Blocki, Blum, Datta and Sheffet 2012; Sheffet 2019): r random rows and their matrix."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats
from privcov.mechanisms.base import DataDrivenMechanism, SketchDraw, Upper
from privcov.mechanisms.sensitivity import Sensitivity
from privcov.mechanisms.sketch_loss import sketch_delta, sketch_ratio
from privcov.noise.exact.gaussian_rows import rounded_rows
from privcov.noise.exact.reals import LazyReals, normals
from privcov.noise.randomness import Randomness
from privcov.privacy import ApproxDP, Loss, Neighbours
from privcov.releases.sketch import Sketch, estimate
from privcov.schema.grid import Grid
from privcov.summing.gram import Gram

EXACT_COLUMNS = 64
MOST_ROWS = 2**16
"""The exact accountant takes seconds for so many, a person's several rows counted severally."""
MOST_NUMBERS = 2**22
"""A sketch is a small table; this many numbers are some 40 MB of text."""
LEAST_RIDGE = 2**10
"""In grid units: the rounding of a sketched row, of variance 1/12, stays below 1e-4 of the row's own."""


@dataclass(frozen=True, kw_only=True)
class JohnsonLindenstrauss(DataDrivenMechanism):
    """Publishes r rows drawn from N(0, C + w²I), and the unbiased matrix Σ yyᵀ/r − w²I: (ε, δ).

    Guarantee: w² is the smallest for which the exact privacy loss of r such rows is certified to be within
    (ε, δ), for every table; nothing is assumed about the least eigenvalue of C. The error is multiplicative,
    see ``rms_frobenius``: for the matrix alone ``gaussian`` was better at every r we tried. ``constants`` takes the w²
    of the 2012 paper or of Sheffet (2019), where the exact loss confirms it.
    Proof: docs/proofs/johnson-lindenstrauss.md.
    """

    name = "johnson-lindenstrauss"
    kinds = ("approximate",)
    summary = "publishes random mixtures of the rows plus a ridge: a small synthetic table for regressions"
    best_at = "when rows must be published, or variances in given directions; the 2012 paper"
    proof = "docs/proofs/johnson-lindenstrauss.md"
    as_published = {"constants": "2012"}  # noqa: RUF012 - a constant of the class

    constants: Literal["tight", "2012", "2019"] = "tight"
    sketch_rows: int | None = None

    def law(self, *, loss: Loss, grid: Grid) -> None:
        """Not additive: the error grows with the matrix itself."""

    def draw(self, *, loss: Loss, grid: Grid, randomness: Randomness) -> _Draw:
        self.check(loss)
        self.check_columns(grid.dimension, most=EXACT_COLUMNS, instead="gaussian")
        ridge, shape = self.ridge(loss=loss, grid=grid), (self.rows(grid), grid.dimension)
        if self.arithmetic == "exact":
            return _Draw(ridge, normals(randomness, math.prod(shape)), grid.dimension)
        return _Draw(ridge, randomness.normals(*shape), grid.dimension)

    def rows(self, grid: Grid) -> int:
        """How many rows are published: by default 16 a column, at least 256."""
        d = grid.dimension
        most = min(MOST_ROWS // min(grid.max_rows_per_person, d), MOST_NUMBERS // d)
        if self.sketch_rows is None:
            return min(max(256, 16 * d), most)
        if not 1 <= self.sketch_rows <= most:
            raise ParameterError(
                "E209", f"sketch_rows must be a whole number from 1 to {most}, got {self.sketch_rows}."
            )
        return self.sketch_rows

    def ridge(self, *, loss: Loss, grid: Grid) -> int:
        """w² in grid units of the Gram matrix, a public fact: certified, and rounded up."""
        self.check(loss)
        assert isinstance(loss, ApproxDP)
        sensitivity = Sensitivity.of(grid, loss.neighbours)
        # A row of norm R stretches a direction by at most R²/w². A person with m rows moves at most min(m, d)
        # directions, by mR²/w² in all: charged as if each moved by that much, which is min(m, d) times the rows.
        directions = min(sensitivity.rows_per_person, sensitivity.dimension)
        replaced = loss.neighbours is Neighbours.REPLACE_ONE and grid.dimension > 1
        charged = self.rows(grid) * directions
        if self.constants == "tight":
            ratio = sketch_ratio(
                sketch_rows=charged, epsilon=loss.epsilon, delta=loss.delta, replaced=replaced
            )
            return max(LEAST_RIDGE, math.ceil(sensitivity.operator / ratio))
        ridge = math.ceil(sensitivity.operator * _published(self.constants, loss, self.rows(grid)))
        ratio = sensitivity.operator / ridge
        if (
            sketch_delta(ratio=ratio, sketch_rows=charged, epsilon=loss.epsilon, replaced=replaced)
            > loss.delta
        ):
            raise ParameterError(
                "E203",
                f"the constants of {self.constants} do not give this epsilon and delta for this schema.",
                "Leave --as-published out.",
            )
        return max(LEAST_RIDGE, ridge)

    def expected_error(self, *, loss: Loss, grid: Grid, spectrum: Sequence[float]) -> float:
        """By ``rms_frobenius``: the error depends on the trace and the norm alone."""
        values = [float(value) for value in spectrum]
        return self.rms_frobenius(loss=loss, grid=grid, trace=sum(values), frobenius=math.hypot(*values))

    def rms_frobenius(self, *, loss: Loss, grid: Grid, trace: float, frobenius: float) -> float:
        """√E‖Ĉ − C‖²_F = √(((tr M)² + ‖M‖²_F)/r), M = C + w²I, for a C of this trace and norm, in scaled units.

        Both are the data's; give public bounds. n rows of norm at most R have trace and norm at most nR².
        """
        d, w2 = grid.dimension, float(self.ridge(loss=loss, grid=grid) * grid.unit)
        square = (trace + d * w2) ** 2 + frobenius**2 + 2 * w2 * trace + d * w2**2
        return math.sqrt(square / self.rows(grid))


@dataclass(frozen=True, repr=False, eq=False)
class _Draw(SketchDraw):
    """Standard normals, drawn before the data; which rows they become depends on the matrix."""

    ridge: int
    variates: LazyReals | Floats
    dimension: int

    def _sketch(self, gram: Gram) -> Sketch:
        """round(Sn) row by row, SSᵀ = C + w²I in exact integers."""
        d = self.dimension
        covariance: NDArray[Any] = np.zeros((d, d), dtype=object)
        i, j = np.triu_indices(d)
        covariance[i, j] = covariance[j, i] = gram.reveal_to_mechanism()
        covariance[np.diag_indices(d)] += self.ridge
        if isinstance(self.variates, LazyReals):
            rows = rounded_rows(self.variates, covariance=covariance.tolist())
            return tuple(tuple(int(entry) for entry in row) for row in rows)
        values, vectors = np.linalg.eigh(covariance.astype(np.float64))
        ideal = self.variates @ (vectors * np.sqrt(np.maximum(values, self.ridge))).T
        return tuple(tuple(round(entry) for entry in row) for row in ideal.tolist())

    def _estimate(self, sketch: Sketch) -> Upper:
        """The matrix that follows from the rows: post-processing."""
        return np.array(estimate(sketch, ridge=self.ridge), dtype=object)


def _published(constants: str, loss: ApproxDP, rows: int) -> Fraction:
    """w²/R² as the papers set it, rounded up."""
    epsilon, delta = float(loss.epsilon), float(loss.delta)
    if constants == "2012":  # w = 16√(r ln(2/δ))·ln(16r/δ)/ε
        square = 256 * rows * math.log(2 / delta) * math.log(16 * rows / delta) ** 2 / epsilon**2
    else:  # Sheffet 2019, theorem 2, where nothing is known of the least eigenvalue
        log = math.log(4 / delta)
        square = 2 * (log + math.sqrt(2 * rows * log)) / epsilon
    return Fraction(square * (1 + 2**-40))
