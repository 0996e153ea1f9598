"""Independent discrete Laplace noise on the upper triangle: the baseline of the literature, tightened."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Literal

from privcov.mechanisms.base import AdditiveMechanism, Upper, float_up
from privcov.mechanisms.sensitivity import Sensitivity
from privcov.noise.exact import discrete_laplace
from privcov.noise.laws import LaplaceTriangle
from privcov.noise.randomness import Randomness
from privcov.privacy import Loss
from privcov.schema import MAX_DIMENSION
from privcov.schema.grid import Grid


@dataclass(frozen=True, kw_only=True)
class Laplace(AdditiveMechanism):
    """Laplace noise of scale Δ₁/ε on every entry on and above the diagonal: pure ε-differential privacy.

    Guarantee: Δ₁ is the ℓ1 sensitivity of the upper triangle, so the log probability of any output moves by
    at most ε. The papers' 2d/ε is 2.8 to 4 times more noise than needed, and not enough for box data
    (docs/refuted/laplace-2d.md). Proof: docs/proofs/laplace.md.
    """

    name = "laplace"
    kinds = ("pure",)
    summary = "adds independent Laplace noise to every entry of the upper triangle"
    best_at = "a baseline; one column"
    proof = "docs/proofs/laplace.md"
    as_published = {"constants": "published"}  # noqa: RUF012 - a constant of the class

    most_columns = MAX_DIMENSION
    takes_strata = True

    constants: Literal["tight", "published"] = "tight"

    def law(self, *, loss: Loss, grid: Grid) -> LaplaceTriangle:
        return LaplaceTriangle(dimension=grid.dimension, scale=float_up(self._scale(loss, grid) * grid.unit))

    def exact_noise(self, *, loss: Loss, grid: Grid, randomness: Randomness) -> Upper:
        count = grid.dimension * (grid.dimension + 1) // 2
        return discrete_laplace(randomness, scale=self._scale(loss, grid), count=count)

    def _scale(self, loss: Loss, grid: Grid) -> int:
        """Δ₁/ε in grid units, rounded up to an integer; the papers take 2dR² for Δ₁, which is never less."""
        sensitivity = Sensitivity.of(grid, loss.neighbours)
        least = sensitivity.triangle_l1
        if self.constants == "published":
            least = max(least, Fraction(2 * grid.dimension) * sensitivity.operator)
        return ceil(least / loss.amounts["epsilon"])
