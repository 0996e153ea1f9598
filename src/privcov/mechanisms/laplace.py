"""Independent discrete Laplace noise on the upper triangle: the baseline of the literature, tightened."""

from __future__ import annotations

from math import ceil

from privcov.exact import discrete_laplace
from privcov.grid import Grid
from privcov.mechanisms.base import AdditiveMechanism, Upper, float_up
from privcov.noise import LaplaceTriangle
from privcov.privacy import Loss
from privcov.randomness import Randomness
from privcov.sensitivity import Sensitivity


class Laplace(AdditiveMechanism):
    """Laplace noise of scale Δ₁/ε on every entry on and above the diagonal: pure ε-differential privacy.

    Guarantee: Δ₁ is the ℓ1 sensitivity of the upper triangle, so the log probability of any output moves by
    at most ε. The papers' 2d/ε is 2.8 to 4 times more noise than needed, and not enough for box data
    (docs/refuted/laplace-2d.md). Proof: docs/proofs/laplace.md.
    """

    name = "laplace"
    kinds = ("pure",)
    summary = "independent Laplace noise on the upper triangle"
    best_at = "a baseline; one column"
    proof = "docs/proofs/laplace.md"

    def law(self, *, loss: Loss, grid: Grid) -> LaplaceTriangle:
        return LaplaceTriangle(dimension=grid.dimension, scale=float_up(self._scale(loss, grid) * grid.unit))

    def exact_noise(self, *, loss: Loss, grid: Grid, randomness: Randomness) -> Upper:
        count = grid.dimension * (grid.dimension + 1) // 2
        return discrete_laplace(randomness, scale=self._scale(loss, grid), count=count)

    @staticmethod
    def _scale(loss: Loss, grid: Grid) -> int:
        """Δ₁/ε in grid units, rounded up to an integer."""
        return ceil(Sensitivity.of(grid, loss.neighbours).triangle_l1 / loss.amounts["epsilon"])
