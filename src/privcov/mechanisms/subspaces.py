"""The linear algebra of a private subspace in the two arithmetics: exact integers and balls, or float64."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction

import numpy as np
from flint import fmpz_mat

from privcov.errors import InternalError
from privcov.linalg.arrays import Floats
from privcov.mechanisms.base import Arithmetic, Upper
from privcov.mechanisms.budget import EXCESS
from privcov.mechanisms.spectral import BITS
from privcov.noise.exact.bingham import bingham
from privcov.noise.exact.chain import excess, symmetric
from privcov.noise.exact.subspaces import subspace
from privcov.noise.idealized import sample_bingham
from privcov.noise.idealized.subspaces import sample_subspace
from privcov.noise.randomness import Randomness


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
