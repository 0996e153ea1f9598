"""The exponential mechanism for a whole leading subspace (after Chaudhuri, Sarwate and Sinha 2013).

The linear algebra of a private subspace in the two arithmetics: exact integers and balls, or float64.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import fmpz_mat

from privcov.errors import InternalError, ParameterError
from privcov.linalg.arrays import Floats
from privcov.mechanisms.base import Arithmetic, DataDrivenMechanism, Draw, Upper
from privcov.mechanisms.budget import EXCESS, Budget
from privcov.mechanisms.predicted import subspace_error
from privcov.mechanisms.sensitivity import Sensitivity, sqrt_up
from privcov.mechanisms.spectral import BITS
from privcov.noise.exact import gaussian_ensemble, wishart_difference
from privcov.noise.exact.bingham import bingham
from privcov.noise.exact.chain import excess, symmetric
from privcov.noise.exact.subspaces import subspace
from privcov.noise.idealized import sample_bingham
from privcov.noise.idealized.subspaces import acceptance_floor, sample_subspace
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


class Opened(ABC):
    """A Gram matrix opened by the mechanism, in one arithmetic."""

    def __init__(self, upper: Upper, dimension: int) -> None:
        self.upper, self.dimension = upper, dimension

    @abstractmethod
    def frame(self, randomness: Randomness, exponent: Fraction, rank: int, cap: int | None) -> Floats:
        """A private subspace as the float rows of a basis: a function of a private draw, so free to be floats."""

    @abstractmethod
    def block(self, frame: Floats, noise: Upper) -> Upper:
        """V(VᵀGV + noise)Vᵀ on the grid."""


class ExactOpened(Opened):
    """Integers, and balls that are narrowed until they decide."""

    def __init__(self, upper: Upper, dimension: int) -> None:
        super().__init__(upper, dimension)
        self._matrix = symmetric(upper, dimension=dimension)

    def frame(self, randomness: Randomness, exponent: Fraction, rank: int, cap: int | None) -> Floats:
        d = self.dimension
        if rank in (1, d - 1):
            sign = 1 if rank == 1 else -1  # tr VᵀCV + uᵀCu is tr C for the u that V leaves out
            vector, _ = bingham(randomness, matrix=sign * self._matrix, concentration=exponent, bits=BITS)
            return _with_or_without(np.array(vector, dtype=np.float64), rank)
        projector, _ = subspace(
            randomness, matrix=self._matrix, concentration=exponent, rank=rank, cap=cap, bits=BITS
        )
        floats = np.array(projector, dtype=np.float64)
        return np.linalg.eigh(floats + floats.T).eigenvectors[:, d - rank :].T

    def block(self, frame: Floats, noise: Upper) -> Upper:
        rank = len(frame)
        rows = fmpz_mat(np.rint(frame * 2.0**BITS).astype(np.int64).tolist())
        if excess(rows, bits=BITS) > EXCESS:  # a function of the released subspace; never seen
            raise InternalError
        inside = fmpz_mat(
            rank, rank, [_shifted(x) for x in (rows * self._matrix * rows.transpose()).entries()]
        )
        noisy = rows.transpose() * (inside + symmetric(noise, dimension=rank)) * rows
        full = np.array([_shifted(x) for x in noisy.entries()], dtype=object).reshape(self.dimension, -1)
        return full[np.triu_indices(self.dimension)]


class FloatOpened(Opened):
    """float64 throughout: idealized."""

    def __init__(self, upper: Upper, dimension: int) -> None:
        super().__init__(upper, dimension)
        self._matrix = _full(upper, dimension)

    def frame(self, randomness: Randomness, exponent: Fraction, rank: int, cap: int | None) -> Floats:
        if rank in (1, self.dimension - 1):
            matrix = self._matrix if rank == 1 else -self._matrix
            return _with_or_without(
                sample_bingham(randomness, matrix, concentration=float(exponent))[0], rank
            )
        limit = float("inf") if cap is None else float(cap)
        drawn, _ = sample_subspace(
            randomness, self._matrix, concentration=float(exponent), rank=rank, cap=limit
        )
        return drawn.T

    def block(self, frame: Floats, noise: Upper) -> Upper:
        noisy = frame @ self._matrix @ frame.T + _full(noise, len(frame))
        full = frame.T @ noisy @ frame
        return np.array([round(x) for x in full[np.triu_indices(self.dimension)].tolist()], dtype=object)


OPENED: dict[Arithmetic, type[Opened]] = {"exact": ExactOpened, "idealized": FloatOpened}


def _with_or_without(vector: Floats, rank: int) -> Floats:
    """A basis, in rows, of the line of a vector, or of what is orthogonal to it."""
    full = np.linalg.qr(vector[:, None], mode="complete").Q
    return full[:, :1].T if rank == 1 else full[:, 1:].T


def _full(upper: Upper, dimension: int) -> Floats:
    matrix = np.zeros((dimension, dimension))
    rows, columns = np.triu_indices(dimension)
    matrix[rows, columns] = matrix[columns, rows] = upper.astype(np.float64)
    return matrix


def _shifted(value: object) -> int:
    """To the nearest integer, from units of 4^-40."""
    return (int(value) + (1 << 2 * BITS - 1)) >> 2 * BITS  # type: ignore[call-overload]
