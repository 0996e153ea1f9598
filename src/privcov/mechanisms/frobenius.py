"""Noise of density exp(−ε‖Z‖_F/Δ): the K-norm mechanism of the Frobenius norm."""

from __future__ import annotations

from fractions import Fraction

from privcov.mechanisms.base import AdditiveMechanism, Upper, float_up
from privcov.mechanisms.sensitivity import Sensitivity
from privcov.noise.exact import frobenius_ball
from privcov.noise.laws import FrobeniusBall
from privcov.noise.randomness import Randomness
from privcov.privacy import Loss
from privcov.schema import MAX_DIMENSION
from privcov.schema.grid import Grid


class Frobenius(AdditiveMechanism):
    """A Gamma-distributed length in a uniform direction: pure ε-differential privacy.

    Guarantee: by the triangle inequality the log density moves by at most ε‖D‖_F/Δ_F ≤ ε. This is what the
    2018 workshop paper's exponential baseline should have been: there the sign of the exponent is wrong, ε is
    missing, and a factor 2 is paid that additive noise does not need. Proof: docs/proofs/frobenius.md.
    """

    name = "frobenius"
    kinds = ("pure",)
    summary = "adds noise of Gamma length in a uniform direction (the K-norm mechanism of the Frobenius norm)"
    best_at = "a baseline; the distribution of its total error is known exactly"
    proof = "docs/proofs/frobenius.md"
    most_columns = MAX_DIMENSION
    takes_strata = True

    def law(self, *, loss: Loss, grid: Grid) -> FrobeniusBall:
        return FrobeniusBall(dimension=grid.dimension, scale=float_up(self._scale(loss, grid) * grid.unit))

    def exact_noise(self, *, loss: Loss, grid: Grid, randomness: Randomness) -> Upper:
        return frobenius_ball(randomness, dimension=grid.dimension, scale=self._scale(loss, grid))

    @staticmethod
    def _scale(loss: Loss, grid: Grid) -> Fraction:
        """Δ_F/ε in grid units."""
        return Sensitivity.of(grid, loss.neighbours).frobenius_sum / loss.amounts["epsilon"]
