"""Sums and second moments from one Gaussian (Kalinin, Upadhyay and Lampert 2025), under replace-one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Never

import numpy as np

from privcov.accounting import gaussian_mu
from privcov.errors import ParameterError
from privcov.linalg.triangle import entries
from privcov.mechanisms.base import AdditiveMechanism, Upper, float_up
from privcov.mechanisms.sensitivity import Sensitivity, sqrt_up
from privcov.noise.exact import gaussian_ensemble, rounded_normals
from privcov.noise.exact.products import placed
from privcov.noise.laws import JointGaussian as Law
from privcov.noise.laws import joint_gaussian
from privcov.noise.randomness import Randomness
from privcov.privacy import ApproxDP, Loss, Neighbours
from privcov.schema import MAX_DIMENSION
from privcov.schema.grid import Grid


@dataclass(frozen=True, kw_only=True)
class JointGaussian(AdditiveMechanism):
    """The count exact, the sums with noise of std λ·b, the block of second moments GOE of std b.

    Guarantee: (ε, δ) by the exact Gaussian profile, or ρ-zCDP, with μ = Δ/b and Δ the length of the change in
    units of this noise. The intercept must be 1 in every row, whatever the row says, and the number of rows
    public: then that entry needs no noise, and the others have norm r, r² = R² − 1. ``focus="mean"`` takes the
    largest λ at which the sums are as accurate as if released alone; ``focus="covariance"`` the λ that
    minimises the expected squared error of the covariance for the worst mean. Proof: docs/proofs/joint-gaussian.md.
    """

    name = "joint-gaussian"
    kinds = ("approximate", "zcdp")
    summary = "publishes the exact count, and sums and second moments from one Gaussian draw, weighted for covariances"
    best_at = "means and covariances under replace-one, with an intercept"
    proof = "docs/proofs/joint-gaussian.md"
    relations = (Neighbours.REPLACE_ONE,)
    needs_intercept = True

    most_columns = MAX_DIMENSION

    focus: Literal["covariance", "mean"] = "covariance"

    def check(self, loss: Loss) -> None:
        super().check(loss)
        if loss.neighbours is not Neighbours.REPLACE_ONE:
            _needs_public_count()

    def as_zcdp(self, loss: Loss) -> Fraction:
        """μ²/2, whatever the loss was said in: Gaussian noise is zCDP."""
        return 1 / (2 * _std_over_sensitivity(loss) ** 2)

    @property
    def is_one_gaussian(self) -> bool:
        return True

    def law(self, *, loss: Loss, grid: Grid) -> Law:
        ratio, std = self._calibrated(loss, grid)
        return joint_gaussian(ratio)(dimension=grid.dimension, scale=float_up(std * grid.unit))

    def exact_noise(self, *, loss: Loss, grid: Grid, randomness: Randomness) -> Upper:
        ratio, std = self._calibrated(loss, grid)
        others = grid.dimension - 1
        sums = rounded_normals(randomness, count=others, std=Fraction(ratio) * std)
        block = gaussian_ensemble(
            randomness,
            dimension=others,
            diagonal_std=std,
            offdiagonal_std=std * sqrt_up(Fraction(1, 2)),
            trace_keep=Fraction(1),
        )
        upper = np.zeros(entries(grid.dimension), dtype=block.dtype)
        upper[others + 1 :] = block
        return placed(upper, slice(1, others + 1), sums)

    def _calibrated(self, loss: Loss, grid: Grid) -> tuple[str, Fraction]:
        """λ as the decimal on the certificate, and b in grid units."""
        self.check(loss)
        if not grid.intercept or grid.dimension < 2 or not grid.squared_norm_bound > 4**grid.exponent:
            raise ParameterError(
                "E209",
                "joint-gaussian needs an intercept that is 1 in every row.",
                "Use intercept = true, missing = \"midpoint\", and a row_norm_bound that does not clip the intercept "
                "and indicators; or the gaussian mechanism.",
            )  # fmt: skip
        if not loss.neighbours.count_is_public(grid.max_rows_per_person):
            _needs_public_count()
        ratio = f"{self._ratio(grid):.6f}"
        moved = Sensitivity.of(grid, loss.neighbours).joint_moments(
            intercept=2**grid.exponent, sum_weight=1 / Fraction(ratio) ** 2
        )
        return ratio, moved * _std_over_sensitivity(loss)

    def _ratio(self, grid: Grid) -> float:
        """λ, from public facts: any is sound, so a float may choose it. u = λ²r²."""
        rest = float(grid.squared_norm_bound * grid.unit) - 1.0
        u = 0.5 if self.focus == "mean" else _best_for_covariance(grid.dimension - 1)
        return max(1e-5, math.sqrt(u / rest))


def _needs_public_count() -> Never:
    raise ParameterError(
        "E207",
        "joint-gaussian releases the exact number of rows, which is public only under replace-one with one "
        "row per person.",
        "Use replace-one and max_rows_per_person = 1, or the gaussian mechanism.",
    )


def _best_for_covariance(others: int) -> float:
    """The u = λ²r² that minimises (2 + 2u + 1/(2u))·(p/(2u) + 2), p other columns: the zero of its slope.

    The factors are Δ²/r² and the error of the covariance per squared unit of sum noise, at a mean of norm r.
    """
    low, high = 0.5, 4.0 + others
    for _ in range(80):
        u = (low + high) / 2
        slope = 4 - (others + 1) / u**2 - others / (2 * u**3)
        low, high = (low, u) if slope > 0 else (u, high)
    return low


def _std_over_sensitivity(loss: Loss) -> Fraction:
    if isinstance(loss, ApproxDP):
        return 1 / gaussian_mu(epsilon=loss.epsilon, delta=loss.delta)
    return sqrt_up(1 / (2 * loss.amounts["rho"]))
