"""Noisy power iteration (after Hardt and Price 2014), with noise for a whole row and not for one entry."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from flint import fmpz_mat

from privcov.accounting import approx_to_zcdp
from privcov.errors import InternalError, ParameterError
from privcov.linalg.arrays import Floats
from privcov.mechanisms.base import Arithmetic, DataDrivenMechanism, Draw, Upper
from privcov.mechanisms.budget import EXCESS, Budget
from privcov.mechanisms.predicted import iterated_error
from privcov.mechanisms.sensitivity import Sensitivity
from privcov.mechanisms.spectral import BITS, ExactSpectral, FloatSpectral, Vectors
from privcov.noise.exact import discrete_gaussian, discrete_laplace
from privcov.noise.exact.chain import excess, symmetric
from privcov.noise.randomness import Randomness
from privcov.privacy import ApproxDP, Loss
from privcov.schema.grid import Grid
from privcov.summing.gram import Gram

EXACT_COLUMNS = 1000


@dataclass(frozen=True, kw_only=True)
class PowerMethod(DataDrivenMechanism):
    """X ← orthonormal basis of C·X + noise, again and again; then a private value for each column of X.

    Guarantee: one neighbour moves C·X by at most R² in the Frobenius norm (√2·R² under replace-one with two
    columns or more), whatever orthonormal X; the budget is divided evenly over the iterations, and between
    them and the values. How many iterations is a public number. Noise is d × rank, never d × d.
    Proof: docs/proofs/power-method.md.
    """

    name = "power-method"
    kinds = ("pure", "approximate", "zcdp")
    summary = "finds the leading vectors by a noisy power iteration, then a noisy value for each"
    best_at = "a few leading vectors of a table too wide for d × d noise"
    proof = "docs/proofs/power-method.md"

    rank: int | None = None
    iterations: int | None = None

    @property
    def timing_note(self) -> str:
        return "noise is drawn before data is read and the number of iterations is public"

    def expected_error(self, *, loss: Loss, grid: Grid, spectrum: Sequence[float]) -> float | None:
        """First order in the noise, where it turns no vector far and the start is forgotten."""
        rank = self._rank(grid.dimension)
        sensitivity, steps = Sensitivity.of(grid, loss.neighbours), self._steps(grid.dimension, rank)
        budget, shares, unit = _budget(loss, sensitivity, rank), _shares(steps), float(grid.unit)
        values = budget.part(shares["values"][0]).value_variance(sensitivity, rank)
        step = Fraction(0)
        if steps:
            share = budget.part(shares["steps"][0])
            size = noise_size(share, sensitivity, rank)
            step = 2 * size**2 if share.kind == "pure" else size
        stds = {"step_std": math.sqrt(step) * unit, "value_std": math.sqrt(values) * unit}
        return iterated_error(spectrum, rank=rank, steps=steps, **stds)

    def _rank(self, d: int) -> int:
        if self.iterations is not None and not self.iterations >= 1:
            raise ParameterError("E209", f"iterations must be at least 1, got {self.iterations}.")
        return self.rank_of(self.rank, d)

    def draw(self, *, loss: Loss, grid: Grid, randomness: Randomness) -> _Draw:
        self.check(loss)
        d = grid.dimension
        rank = self._rank(d)
        self.check_columns(d, most=EXACT_COLUMNS)
        sensitivity, steps = Sensitivity.of(grid, loss.neighbours), self._steps(d, rank)
        budget = _budget(loss, sensitivity, rank)
        shares = _shares(steps)
        noises = []
        for share in shares["steps"]:
            step = budget.part(share)
            size = noise_size(step, sensitivity, rank)
            noises.append(_noise(step, size, randomness, d * rank).reshape(d, rank))
        values = budget.part(shares["values"][0]).value_noise(randomness, sensitivity, rank)
        # The start is independent of the data, so floats may choose it.
        start = np.linalg.qr(randomness.normals(d, rank)).Q
        return _Draw(self, budget, shares, sensitivity, start, tuple(noises), values)

    def _steps(self, d: int, rank: int) -> int:
        """How many iterations: as asked, or from the number of columns alone, never from the data's spectrum."""
        if d == 1:  # the only vector is known
            return 0
        if self.iterations is not None:
            return self.iterations
        return 1 if rank == d else 1 + math.ceil(math.log(d))


@dataclass(frozen=True, repr=False, eq=False)
class _Draw(Draw):
    """All noise is drawn already: its size depends on public facts alone."""

    mechanism: PowerMethod
    budget: Budget
    shares: dict[str, list[Fraction]]
    sensitivity: Sensitivity
    start: Floats
    noises: tuple[Upper, ...]
    values: Upper

    def _answer(self, gram: Gram) -> Upper:
        opened = OPENED[self.mechanism.arithmetic](gram.reveal_to_mechanism(), self.sensitivity.dimension)
        vectors = opened.on_grid(self.start)
        for noise in self.noises:
            released = opened.product(vectors) + noise
            # Left singular vectors: any orthonormal basis would do between steps, and at the end these are the
            # nearest thing to single eigenvectors that the released matrix knows of.
            vectors = opened.on_grid(np.linalg.svd(released.astype(np.float64), full_matrices=False).U)
        noisy = [q + int(n) for q, n in zip(opened.quotients(vectors), self.values, strict=True)]
        return opened.assemble(vectors, noisy)


class _ExactProduct(ExactSpectral):
    """Integers throughout; a basis is one of integers in units of 2^-40, nearly orthonormal by an exact bound."""

    def __init__(self, upper: Upper, dimension: int) -> None:
        super().__init__(upper, dimension)
        self._integral = symmetric(upper, dimension=dimension)

    def on_grid(self, basis: Floats) -> Vectors:
        rows = np.rint(basis.T * 2.0**BITS).astype(np.int64)
        if excess(fmpz_mat(rows.tolist()), bits=BITS) > EXCESS:  # a function of released matrices; never seen
            raise InternalError
        return rows.astype(object)

    def product(self, vectors: Vectors) -> Upper:
        entries: list[Any] = (self._integral * fmpz_mat(vectors.T.tolist())).entries()
        half = 1 << BITS - 1
        rounded = [(int(entry) + half) >> BITS for entry in entries]
        return np.array(rounded, dtype=object).reshape(self.dimension, len(vectors))


class _FloatProduct(FloatSpectral):
    """float64 throughout: idealized."""

    def on_grid(self, basis: Floats) -> Vectors:
        return basis.T

    def product(self, vectors: Vectors) -> Upper:
        return np.rint(self._matrix @ vectors.T)


OPENED: dict[Arithmetic, type[_ExactProduct] | type[_FloatProduct]] = {
    "exact": _ExactProduct,
    "idealized": _FloatProduct,
}


def noise_size(budget: Budget, sensitivity: Sensitivity, columns: int) -> Fraction:
    """What one iteration needs: the scale of Laplace noise (pure), or the variance of Gaussian noise (zCDP)."""
    if budget.kind == "pure":
        return Fraction(math.ceil(sensitivity.product_l1(columns, excess=EXCESS) / budget.amount))
    return sensitivity.product_l2(columns, excess=EXCESS) ** 2 / (2 * budget.amount)


def _noise(budget: Budget, size: Fraction, randomness: Randomness, count: int) -> Upper:
    if budget.kind == "pure":
        return discrete_laplace(randomness, scale=int(size), count=count)
    return discrete_gaussian(randomness, variance=size, count=count)


def _budget(loss: Loss, sensitivity: Sensitivity, columns: int) -> Budget:
    """An (ε, δ) loss is spent as the currency whose noise in one iteration has the smaller variance."""
    if not isinstance(loss, ApproxDP):
        return Budget.of(loss, draws=1)
    pure = Budget(kind="pure", amount=loss.epsilon)
    zcdp = Budget(kind="zcdp", amount=approx_to_zcdp(loss).rho)
    laplace = 2 * noise_size(pure, sensitivity, columns) ** 2
    return pure if laplace < noise_size(zcdp, sensitivity, columns) else zcdp


def _shares(steps: int) -> dict[str, list[Fraction]]:
    """Half for all iterations together, half for the values; everything for the value of a known vector."""
    if not steps:
        return {"steps": [], "values": [Fraction(1)]}
    return {"steps": [Fraction(1, 2 * steps)] * steps, "values": [Fraction(1, 2)]}
