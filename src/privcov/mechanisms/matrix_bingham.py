"""The exponential mechanism for a whole leading subspace (after Chaudhuri, Sarwate and Sinha 2013)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from privcov.errors import ParameterError
from privcov.exact import gaussian_ensemble, wishart_difference
from privcov.gram import Gram
from privcov.grid import Grid
from privcov.mechanisms.base import DataDrivenMechanism, Upper
from privcov.mechanisms.budget import EXCESS, Budget
from privcov.mechanisms.frames import OPENED
from privcov.privacy import Loss
from privcov.randomness import Randomness
from privcov.sensitivity import Sensitivity, sqrt_up
from privcov.sphere.subspaces import acceptance_floor

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
    summary = "the whole leading subspace at once from the exponential mechanism, then a private block"
    best_at = "one subspace of a small table; the 2013 paper without its approximate sampler"
    proof = "docs/proofs/matrix-bingham.md"

    rank: int | None = None
    rows: int | None = None

    def draw(self, *, loss: Loss, grid: Grid, randomness: Randomness) -> _Draw:
        self.check(loss)
        d = grid.dimension
        rank = self.rank_of(self.rank, d)
        if self.rows is not None and not self.rows >= 1:
            raise ParameterError("E209", f"rows must be at least 1, got {self.rows}.")
        self.check_columns(d, most=EXACT_COLUMNS)
        budget, sensitivity = Budget.of(loss, draws=1), Sensitivity.of(grid, loss.neighbours)
        shares = {"block": Fraction(1)} if rank == d else {"subspace": HALF, "block": HALF}
        exponent, cap = Fraction(0), None
        if rank < d:
            exponent = budget.part(shares["subspace"]).ranges([1.0])[0] / sensitivity.frame_range
        if 1 < rank < d - 1:
            cap = self._cap(grid, rank, exponent)
        noise = _block_noise(budget.part(shares["block"]), sensitivity, rank, randomness)
        return _Draw(self, budget, shares, sensitivity, rank, exponent, cap, noise, randomness)

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


@dataclass(frozen=True)
class _Draw:
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

    def answer(self, gram: Gram) -> Upper:
        opened = OPENED[self.mechanism.arithmetic](gram.reveal_to_mechanism(), self.sensitivity.dimension)
        frame = np.eye(opened.dimension)
        if self.rank < opened.dimension:
            frame = opened.frame(self.randomness, self.exponent, self.rank, self.cap)
        return opened.block(frame, self.noise)


def _block_noise(budget: Budget, sensitivity: Sensitivity, rank: int, randomness: Randomness) -> Upper:
    """Noise for the rounded block: symmetric Wishart for pure ε, isotropic Gaussian for ρ."""
    if budget.kind == "pure":
        scale = sensitivity.block_nuclear(rank, excess=EXCESS) / (2 * budget.amount)
        return wishart_difference(randomness, dimension=rank, scale=scale)
    std = sensitivity.block_frobenius(rank, excess=EXCESS) * sqrt_up(1 / (2 * budget.amount))
    return gaussian_ensemble(
        randomness,
        dimension=rank,
        diagonal_std=std,
        offdiagonal_std=std * sqrt_up(HALF),
        trace_keep=Fraction(1),
    )
