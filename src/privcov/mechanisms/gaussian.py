"""Gaussian noise with the weights of the orthogonal ensemble: the default for (ε, δ) and zCDP."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from privcov.accounting import approx_to_zcdp, gaussian_mu
from privcov.exact import discrete_gaussian, gaussian_ensemble
from privcov.grid import Grid
from privcov.mechanisms.base import AdditiveMechanism, Upper, float_up
from privcov.noise import GaussianEnsemble, GaussianFreeTrace
from privcov.privacy import ApproxDP, Loss, Neighbours
from privcov.randomness import Randomness
from privcov.sensitivity import Sensitivity, sqrt_up


@dataclass(frozen=True, kw_only=True)
class Gaussian(AdditiveMechanism):
    """Diagonal N(0, σ²), off-diagonal N(0, σ²/2): (ε, δ) or ρ-zCDP.

    Guarantee: with these weights the noise is isotropic in the Frobenius inner product, so one number,
    μ = Δ_F/σ, gives the whole trade-off: ρ = μ²/2, and δ(ε) by the exact Gaussian profile. Under replace-one
    the trace is d+1 times as precise at no cost. ``noise="rounded"`` rounds the ideal continuous sample to
    the grid, so that the continuous theorems hold as they stand; ``noise="discrete"`` is the discrete
    Gaussian, whose (ε, δ) is only known through zCDP (7 % more noise at ε = 1, δ = 1e-6), without the free
    trace. Proof: docs/proofs/gaussian.md.
    """

    name = "gaussian"
    kinds = ("approximate", "zcdp")
    summary = "Gaussian noise isotropic in the Frobenius norm; free trace under replace-one"
    best_at = "(epsilon, delta) and zCDP, every d; default for both"
    proof = "docs/proofs/gaussian.md"

    noise: Literal["rounded", "discrete"] = "rounded"

    def law(self, *, loss: Loss, grid: Grid) -> GaussianEnsemble:
        kind = GaussianFreeTrace if self._free_trace(loss) else GaussianEnsemble
        return kind(dimension=grid.dimension, scale=float_up(self._std(loss, grid) * grid.unit))

    def exact_noise(self, *, loss: Loss, grid: Grid, randomness: Randomness) -> Upper:
        d, std = grid.dimension, self._std(loss, grid)
        if self.noise == "rounded":
            keep = sqrt_up(Fraction(1, d + 1)) if self._free_trace(loss) else Fraction(1)
            return gaussian_ensemble(
                randomness,
                dimension=d,
                diagonal_std=std,
                offdiagonal_std=std * sqrt_up(Fraction(1, 2)),
                trace_keep=keep,
            )
        rows, columns = np.triu_indices(d)
        upper = np.empty(rows.size, dtype=object)
        for mask, variance in ((rows == columns, std**2), (rows != columns, std**2 / 2)):
            upper[mask] = discrete_gaussian(randomness, variance=variance, count=int(mask.sum()))
        return upper

    def _free_trace(self, loss: Loss) -> bool:
        return self.noise == "rounded" and loss.neighbours is Neighbours.REPLACE_ONE

    def _std(self, loss: Loss, grid: Grid) -> Fraction:
        """Δ/μ in grid units, rounded up; Δ is measured in the norm that the noise is isotropic in."""
        sensitivity = Sensitivity.of(grid, loss.neighbours)
        norm = sensitivity.free_trace_frobenius if self._free_trace(loss) else sensitivity.frobenius
        return norm * self._std_over_sensitivity(loss)

    def _std_over_sensitivity(self, loss: Loss) -> Fraction:
        """σ/Δ: the inverse of μ."""
        if isinstance(loss, ApproxDP) and self.noise == "rounded":
            return 1 / gaussian_mu(epsilon=loss.epsilon, delta=loss.delta)
        rho = approx_to_zcdp(loss).rho if isinstance(loss, ApproxDP) else loss.amounts["rho"]
        return sqrt_up(1 / (2 * rho))
