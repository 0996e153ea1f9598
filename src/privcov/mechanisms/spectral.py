"""The linear algebra of eigenvector mechanisms in the two arithmetics: exact integers, or float64.

Both open a Gram matrix G, give its eigenvalues, private unit vectors and quadratic forms, and put a matrix
together from released vectors and values. Values are integers in grid units either way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcov.errors import InternalError
from privcov.linalg.devices import eigvalsh
from privcov.mechanisms.base import Arithmetic, Upper
from privcov.mechanisms.budget import EXCESS
from privcov.noise.exact.bingham import bingham
from privcov.noise.exact.chain import exact_chain, symmetric
from privcov.noise.exact.spectrum import rounded_eigenvalues
from privcov.noise.idealized import sample_bingham, sample_chain
from privcov.noise.randomness import Randomness

BITS = 40
_ONE = 1 << 2 * BITS
Vectors = NDArray[Any]
"""One vector a row: integers in units of 2^-40 (exact), or floats."""


class Spectral(ABC):
    """A Gram matrix opened by a mechanism. Sensitive: what it returns is private only as far as it says."""

    def __init__(self, upper: Upper, dimension: int) -> None:
        self.upper, self.dimension = upper, dimension

    @abstractmethod
    def eigenvalues(self) -> list[int]:
        """Rounded eigenvalues in descending order: to be noised."""

    @abstractmethod
    def chain(
        self, randomness: Randomness, exponents: Sequence[Fraction], rank: int, proposals: int | None
    ) -> Vectors:
        """Private vectors, each from exp(exponent · θᵀGθ) on the complement of those before."""

    @abstractmethod
    def vector(
        self, randomness: Randomness, exponent: Fraction, vectors: Vectors, values: Sequence[int]
    ) -> Vectors:
        """One private vector from exp(exponent · θᵀ(G − Σ vᵢθᵢθᵢᵀ)θ) on the whole sphere."""

    @abstractmethod
    def quotients(self, vectors: Vectors) -> list[int]:
        """θᵀGθ for every vector, rounded: to be noised."""

    @abstractmethod
    def deflation(self, vector: Vectors, vectors: Vectors, values: Sequence[int]) -> int:
        """Σ vᵢ(θ·θᵢ)², rounded: public, a function of released vectors and values."""

    @abstractmethod
    def assemble(self, vectors: Vectors, values: Sequence[int]) -> Upper:
        """Σ vᵢθᵢθᵢᵀ on the grid: public too."""


class ExactSpectral(Spectral):
    """Integers throughout."""

    def eigenvalues(self) -> list[int]:
        matrix = symmetric(self.upper, dimension=self.dimension)
        return rounded_eigenvalues([[int(entry) for entry in row] for row in matrix.tolist()])

    def chain(
        self, randomness: Randomness, exponents: Sequence[Fraction], rank: int, proposals: int | None
    ) -> Vectors:
        basis = exact_chain(
            randomness,
            upper=self.upper,
            dimension=self.dimension,
            exponents=exponents,
            rank=rank,
            bits=BITS,
            proposals=proposals,
        )
        if basis.excess > EXCESS:  # a function of released vectors; never seen
            raise InternalError
        return np.array(basis.vectors, dtype=object)

    def vector(
        self, randomness: Randomness, exponent: Fraction, vectors: Vectors, values: Sequence[int]
    ) -> Vectors:
        residual = np.zeros((self.dimension, self.dimension), dtype=object)
        rows, columns = np.triu_indices(self.dimension)
        residual[rows, columns] = residual[columns, rows] = self.upper * _ONE
        if len(vectors):
            residual = residual - vectors.T.dot(vectors * _column(values))
        drawn, _ = bingham(randomness, matrix=residual, concentration=exponent / _ONE, bits=BITS)
        return np.array(drawn, dtype=object)

    def quotients(self, vectors: Vectors) -> list[int]:
        rows, columns = np.triu_indices(self.dimension)
        weights = np.where(rows == columns, 1, 2).astype(object) * self.upper
        return [_shifted((weights * v[rows] * v[columns]).sum()) for v in vectors]

    def deflation(self, vector: Vectors, vectors: Vectors, values: Sequence[int]) -> int:
        overlaps = vectors.dot(vector) if len(vectors) else np.zeros(0, dtype=object)
        return _shifted(_shifted(int((overlaps**2 * np.array(values, dtype=object)).sum())))

    def assemble(self, vectors: Vectors, values: Sequence[int]) -> Upper:
        matrix = vectors.T.dot(vectors * _column(values))[np.triu_indices(self.dimension)]
        return np.array([_shifted(entry) for entry in matrix], dtype=object)


class FloatSpectral(Spectral):
    """float64 throughout: idealized."""

    def __init__(self, upper: Upper, dimension: int) -> None:
        super().__init__(upper, dimension)
        rows, columns = np.triu_indices(dimension)
        self._matrix = np.zeros((dimension, dimension))
        self._matrix[rows, columns] = self._matrix[columns, rows] = upper.astype(np.float64)

    def eigenvalues(self) -> list[int]:
        return [round(value) for value in eigvalsh(self._matrix)[::-1].tolist()]

    def chain(
        self, randomness: Randomness, exponents: Sequence[Fraction], rank: int, proposals: int | None
    ) -> Vectors:
        vectors, _ = sample_chain(randomness, self._matrix, [float(c) for c in exponents], rank=rank)
        return vectors.T

    def vector(
        self, randomness: Randomness, exponent: Fraction, vectors: Vectors, values: Sequence[int]
    ) -> Vectors:
        residual = self._matrix
        if len(vectors):
            residual = residual - vectors.T @ (vectors * np.array(values, dtype=np.float64)[:, None])
        return sample_bingham(randomness, residual, concentration=float(exponent))[0]

    def quotients(self, vectors: Vectors) -> list[int]:
        return [round(value) for value in np.einsum("ij,ij->i", vectors @ self._matrix, vectors).tolist()]

    def deflation(self, vector: Vectors, vectors: Vectors, values: Sequence[int]) -> int:
        return (
            round(float((vectors @ vector) ** 2 @ np.array(values, dtype=np.float64))) if len(vectors) else 0
        )

    def assemble(self, vectors: Vectors, values: Sequence[int]) -> Upper:
        matrix = vectors.T @ (vectors * np.array(values, dtype=np.float64)[:, None])
        upper = matrix[np.triu_indices(self.dimension)]
        return np.array([round(entry) for entry in upper.tolist()], dtype=object)


SPECTRAL: dict[Arithmetic, type[Spectral]] = {"exact": ExactSpectral, "idealized": FloatSpectral}


def _column(values: Sequence[int]) -> NDArray[Any]:
    return np.array(values, dtype=object)[:, None]


def _shifted(value: int) -> int:
    """To the nearest integer, from units of 4^-40."""
    return (value + _ONE // 2) >> 2 * BITS
