"""The difference of two Wishart matrices: the default for pure differential privacy."""

from __future__ import annotations

from fractions import Fraction

from privcov.mechanisms.base import AdditiveMechanism, Upper, float_up
from privcov.mechanisms.sensitivity import Sensitivity
from privcov.noise.exact import wishart_difference
from privcov.noise.laws import WishartDifference
from privcov.noise.randomness import Randomness
from privcov.privacy import Loss
from privcov.schema.grid import Grid


class SymmetricWishart(AdditiveMechanism):
    """C + AAᵀ − BBᵀ with d × (d+1) normal A and B: pure ε-differential privacy.

    Guarantee: the log density of the noise moves by at most ε′ times the nuclear norm of the change, and
    ε′ = ε / sensitivity in that norm. The number of columns must be d+1: then, and only then, a Wishart
    density is a plain exponential of the trace. Proof: docs/proofs/symmetric-wishart.md.
    """

    name = "symmetric-wishart"
    kinds = ("pure",)
    summary = (
        "adds the difference of two random Wishart matrices: AAᵀ − BBᵀ, with normal A and B of d × (d+1)"
    )
    best_at = "pure privacy, any number of columns; the default for epsilon alone"
    proof = "docs/proofs/symmetric-wishart.md"
    takes_strata = True

    def law(self, *, loss: Loss, grid: Grid) -> WishartDifference:
        return WishartDifference(
            dimension=grid.dimension, scale=float_up(self._variance(loss, grid) * grid.unit)
        )

    def exact_noise(self, *, loss: Loss, grid: Grid, randomness: Randomness) -> Upper:
        return wishart_difference(randomness, dimension=grid.dimension, scale=self._variance(loss, grid))

    @staticmethod
    def _variance(loss: Loss, grid: Grid) -> Fraction:
        """1 / (2ε′), exact, in grid units: the variance of the entries of A and B."""
        nuclear = Sensitivity.of(grid, loss.neighbours).nuclear
        return nuclear / (2 * loss.amounts["epsilon"])
