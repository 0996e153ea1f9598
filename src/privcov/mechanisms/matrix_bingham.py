"""The exponential mechanism for a whole leading subspace (after Chaudhuri, Sarwate and Sinha 2013)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from privcov.errors import ParameterError
from privcov.mechanisms.base import DataDrivenMechanism, Draw, Upper
from privcov.mechanisms.budget import EXCESS, Budget
from privcov.mechanisms.predicted import subspace_error
from privcov.mechanisms.sensitivity import Sensitivity, sqrt_up
from privcov.mechanisms.subspaces import OPENED
from privcov.noise.exact import gaussian_ensemble, wishart_difference
from privcov.noise.idealized.subspaces import acceptance_floor
from privcov.noise.laws import GaussianEnsemble, NoiseLaw, WishartDifference
from privcov.noise.randomness import Randomness
from privcov.privacy import Loss
from privcov.schema.grid import Grid
from privcov.summing.gram import Gram

EXACT_COLUMNS = 64
PROPOSALS = 10**5
"""The most proposals a draw may be expected to need; more is refused, from public facts."""
HALF = Fraction(1, 2)


@dataclass(frozen=True, kw_only=True)
class MatrixBingham(DataDrivenMechanism):
    """One private subspace V of ``rank`` columns from exp(c·tr VᵀCV), then the private block VᵀCV: V(VᵀCV + N)Vᵀ.

    Guarantee: one neighbour moves tr VᵀCV within a range of R² (2R² under replace-one) whatever the rank, so the
    whole subspace costs one range η = c·range: η of pure ε, or η²/8 of ρ. Ranks 1, d − 1 and d (all, the default:
    nothing to draw) are always possible. A rank between needs ``rows``, a public bound on the number of rows, and
    a budget so small that rejection sampling is sure to end soon; otherwise it is refused, before data is read.
    Proof: docs/proofs/matrix-bingham.md.
    """

    name = "matrix-bingham"
    kinds = ("pure", "approximate", "zcdp")
    summary = "draws the whole leading subspace at once (exponential mechanism), then a noisy block within it"
    best_at = "one subspace of a small table; the 2013 paper without its approximate sampler"
    proof = "docs/proofs/matrix-bingham.md"

    rank: int | None = None
    rows: int | None = None

    def draw(self, *, loss: Loss, grid: Grid, randomness: Randomness) -> _Draw:
        self.check(loss)
        d = grid.dimension
        self.check_columns(d, most=EXACT_COLUMNS)
        budget, sensitivity = Budget.of(loss, draws=1), Sensitivity.of(grid, loss.neighbours)
        rank, shares, exponent, cap = self._plan(grid, budget, sensitivity)
        noise = _block_noise(budget.part(shares["block"]), sensitivity, rank, randomness)
        return _Draw(self, budget, shares, sensitivity, rank, exponent, cap, noise, randomness)

    def expected_error(self, *, loss: Loss, grid: Grid, spectrum: Sequence[float]) -> float | None:
        """Exact for the whole matrix; for a subspace, second order where it is drawn close to the leading one."""
        budget, sensitivity = Budget.of(loss, draws=1), Sensitivity.of(grid, loss.neighbours)
        rank, shares, exponent, cap = self._plan(grid, budget, sensitivity)
        noise = _block_law(budget.part(shares["block"]), sensitivity, rank, unit=grid.unit).rms_frobenius
        if rank == grid.dimension:
            return noise
        return subspace_error(
            spectrum,
            rank=rank,
            concentration=float(exponent / grid.unit),
            noise=noise,
            cap=None if cap is None else float(cap * grid.unit),
        )

    def _plan(
        self, grid: Grid, budget: Budget, sensitivity: Sensitivity
    ) -> tuple[int, dict[str, Fraction], Fraction, int | None]:
        """Rank, shares, exponent and cap, from public facts alone."""
        rank = self.rank_of(self.rank, grid.dimension)
        if self.rows is not None and not self.rows >= 1:
            raise ParameterError("E209", f"rows must be at least 1, got {self.rows}.")
        if rank == grid.dimension:
            return rank, {"block": Fraction(1)}, Fraction(0), None
        exponent = budget.part(HALF).ranges([1.0])[0] / sensitivity.frame_range
        cap = self._cap(grid, rank, exponent) if 1 < rank < grid.dimension - 1 else None
        return rank, {"subspace": HALF, "block": HALF}, exponent, cap

    def _cap(self, grid: Grid, rank: int, exponent: Fraction) -> int:
        """The largest trace that counts, once it is sure that few proposals suffice; from public facts alone."""
        d = grid.dimension
        if self.rows is None:
            raise ParameterError(
                "E209",
                f"a rank between 2 and {d - 2} needs rows, a public bound on the number of rows.",
                f"Give rows, or use eigenvectors with rank {rank}.",
            )
        cap = self.rows * grid.squared_norm_bound
        floor = acceptance_floor(dimension=d, rank=rank, strength=float(exponent * cap))
        if not floor * PROPOSALS >= 1:
            raise ParameterError(
                "E209",
                f"a subspace of rank {rank} in {d} columns is too costly to draw exactly at this budget and "
                f"{self.rows} rows: one proposal in {1 / max(floor, 1e-300):.0e} may be accepted.",
                f"Use eigenvectors with rank {rank}, a smaller budget, or rank 1 or {d - 1}.",
            )
        return cap


@dataclass(frozen=True, repr=False, eq=False)
class _Draw(Draw):
    """The noise of the block is drawn already; the subspace cannot be before the matrix is there."""

    mechanism: MatrixBingham
    budget: Budget
    shares: dict[str, Fraction]
    sensitivity: Sensitivity
    rank: int
    exponent: Fraction
    cap: int | None
    noise: Upper
    randomness: Randomness

    def _answer(self, gram: Gram) -> Upper:
        opened = OPENED[self.mechanism.arithmetic](gram.reveal_to_mechanism(), self.sensitivity.dimension)
        frame = np.eye(opened.dimension)
        if self.rank < opened.dimension:
            frame = opened.frame(self.randomness, self.exponent, self.rank, self.cap)
        return opened.block(frame, self.noise)


def _block_scale(budget: Budget, sensitivity: Sensitivity, rank: int) -> Fraction:
    """Of symmetric Wishart noise for pure ε, of isotropic Gaussian noise for ρ."""
    if budget.kind == "pure":
        return sensitivity.block_nuclear(rank, excess=EXCESS) / (2 * budget.amount)
    return sensitivity.block_frobenius(rank, excess=EXCESS) * sqrt_up(1 / (2 * budget.amount))


def _block_law(budget: Budget, sensitivity: Sensitivity, rank: int, *, unit: Fraction) -> NoiseLaw:
    """The law of the noise of the block, in scaled units."""
    law = WishartDifference if budget.kind == "pure" else GaussianEnsemble
    return law(dimension=rank, scale=float(_block_scale(budget, sensitivity, rank) * unit))


def _block_noise(budget: Budget, sensitivity: Sensitivity, rank: int, randomness: Randomness) -> Upper:
    """Noise for the rounded block."""
    scale = _block_scale(budget, sensitivity, rank)
    if budget.kind == "pure":
        return wishart_difference(randomness, dimension=rank, scale=scale)
    return gaussian_ensemble(
        randomness,
        dimension=rank,
        diagonal_std=scale,
        offdiagonal_std=scale * sqrt_up(HALF),
        trace_keep=Fraction(1),
    )
