"""Rank-one subtraction (after Kapralov and Talwar 2013), as the 2019 paper runs it: a baseline."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Literal

import numpy as np

from privcov.mechanisms.base import DataDrivenMechanism, Draw, Upper
from privcov.mechanisms.budget import EXCESS
from privcov.mechanisms.eigenvectors import EXACT_COLUMNS
from privcov.mechanisms.sensitivity import Sensitivity
from privcov.mechanisms.spectral import SPECTRAL
from privcov.noise.exact import discrete_laplace
from privcov.noise.randomness import Randomness
from privcov.privacy import Loss
from privcov.schema.grid import Grid
from privcov.summing.gram import Gram


@dataclass(frozen=True, kw_only=True)
class KapralovTalwar(DataDrivenMechanism):
    """d times: a private vector of what is left, its private value, and the subtraction of both. Pure ε.

    Guarantee: what is subtracted was released before, so one person moves the quadratic form of what is left
    exactly as that of C; 2d steps of ε/(2d) each compose to ε. Proof: docs/proofs/kapralov-talwar.md.
    """

    name = "kapralov-talwar"
    kinds = ("pure",)
    summary = "draws one private vector and value, subtracts them, and repeats (rank-one subtraction)"
    best_at = "a baseline of the 2019 paper"
    proof = "docs/proofs/kapralov-talwar.md"
    as_published = {"exponent": "paper"}  # noqa: RUF012 - a constant of the class

    exponent: Literal["tight", "paper"] = "tight"

    def draw(self, *, loss: Loss, grid: Grid, randomness: Randomness) -> _Draw:
        self.check(loss)
        d = grid.dimension
        self.check_columns(d, most=EXACT_COLUMNS)
        step = loss.amounts["epsilon"] / (2 * d)
        sensitivity = Sensitivity.of(grid, loss.neighbours)
        scale = ceil(((1 + EXCESS) * sensitivity.operator + 1) / step)
        noise = discrete_laplace(randomness, scale=scale, count=d)
        coefficient = sensitivity.spread if self.exponent == "tight" else 4 * sensitivity.operator
        public_rows = loss.neighbours.count_is_public(grid.max_rows_per_person)
        return _Draw(self, d, step / coefficient, noise, public_rows, grid.squared_norm_bound, randomness)


@dataclass(frozen=True, repr=False, eq=False)
class _Draw(Draw):
    """Value noise already drawn; the vectors cannot be drawn before the matrix is there."""

    mechanism: KapralovTalwar
    dimension: int
    exponent: Fraction
    noise: Upper
    public_rows: bool
    squared_norm_bound: int
    randomness: Randomness

    def _answer(self, gram: Gram) -> Upper:
        opened = SPECTRAL[self.mechanism.arithmetic](gram.reveal_to_mechanism(), self.dimension)
        cap = gram.rows * self.squared_norm_bound if self.public_rows else None
        vectors, values = np.empty((0, self.dimension), dtype=object), list[int]()
        for noise in self.noise:
            vector = opened.vector(self.randomness, self.exponent, vectors, values)
            noisy = opened.quotients(vector[None, :])[0] + int(noise)
            left = noisy - opened.deflation(vector, vectors, values)
            values.append(max(0, left if cap is None else min(left, cap)))
            vectors = np.vstack([vectors.astype(vector.dtype), vector])
        return opened.assemble(vectors, values)
