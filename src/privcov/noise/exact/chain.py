"""Eigenvectors of an exact integer Gram matrix, one by one, each an exact draw of the exponential mechanism.

Vector i is drawn on the unit sphere of the orthogonal complement of those before it, from the density
exp(c·uᵀCu), C = PGPᵀ in exact integers. P is an integer basis of that complement in units of 2^-50, made from
released vectors alone, so it is public; it is orthonormal up to rounding only, and an exact bound η on
‖PPᵀ - I‖ is paid for by dividing the coefficient by 1 + η: one person x moves c·uᵀCu/(1+η) by
c·(x·Pᵀu)²/(1+η), at most c·|x|². The released vector is Pᵀu rounded to multiples of 2^-bits with its first
nonzero coordinate positive, which is post-processing.

Proof: docs/proofs/exact-eigenvectors.md#chain
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import index
from typing import Any

import numpy as np
from flint import fmpz_mat
from numpy.typing import NDArray

from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats
from privcov.noise.exact.bingham import bingham
from privcov.noise.exact.envelope import Integral
from privcov.noise.randomness import Randomness

COMPLEMENT_BITS = 50
Vector = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class ExactBasis:
    """Released vectors θ, public: integers in units of 2^-bits, orthonormal up to an exactly known excess.

    ``excess`` bounds ‖ΘΘᵀ - I‖, so the sum of the (θ·x)² is at most (1 + excess)·|x|² for every x.

    >>> basis = ExactBasis.of([(4, 0), (0, 4)], bits=2)
    >>> basis.excess, basis.rayleigh_quotients([5, 2, 3])
    (Fraction(0, 1), [80, 48])
    """

    vectors: tuple[Vector, ...]
    bits: int
    excess: Fraction

    @classmethod
    def of(cls, vectors: Sequence[Vector], *, bits: int) -> ExactBasis:
        """The set with its exact excess."""
        rows = fmpz_mat([list(vector) for vector in vectors])
        return cls(vectors=tuple(vectors), bits=bits, excess=excess(rows, bits=bits))

    def rayleigh_quotients(self, upper: Sequence[int] | NDArray[Any]) -> list[int]:
        """θᵀGθ for each θ, exactly, in units of 4^-bits of the unit of G: sensitive, to be noised.

        ``upper`` is the triangle of G. By the excess one person x moves them by (1 + excess)·|x|² in total.
        """
        gram = symmetric(upper, dimension=len(self.vectors[0]))
        quotients = []
        for vector in self.vectors:
            column = fmpz_mat(len(vector), 1, list(vector))
            quotients.append(int((column.transpose() * gram * column)[0, 0]))
        return quotients

    def floats(self) -> Floats:
        """The vectors as rows of floats."""
        return _floats(self.vectors, self.bits)


def exact_chain(
    randomness: Randomness,
    *,
    upper: Sequence[int] | NDArray[Any],
    dimension: int,
    exponents: Sequence[Fraction],
    rank: int,
    bits: int = 40,
    proposals: int | None = None,
) -> ExactBasis:
    """The first ``rank`` vectors, the i-th from exp(exponents[i]·θᵀGθ) on the complement of those before.

    ``upper`` holds the Gram matrix in the order of ``np.triu_indices``. The last vector of a full basis is
    determined by the others, up to a sign that says nothing: it costs no draw and needs no exponent.
    ``proposals`` fixes the work of every draw; see ``privcov.noise.exact.envelope`` for what that costs.

    >>> from privcov.noise.randomness import rehearsal
    >>> basis = exact_chain(
    ...     rehearsal(1), upper=[9, 0, 1], dimension=2, exponents=[Fraction(10**12)], rank=2, bits=20
    ... )
    >>> basis.vectors
    ((1048576, 0), (0, 1048576))
    """
    if not 1 <= rank <= dimension:
        raise ParameterError("E224", f"rank must be between 1 and {dimension}, the dimension, got {rank}.")
    if len(exponents) < min(rank, dimension - 1):
        raise ParameterError("E224", f"rank {rank} needs more exponents, got {len(exponents)}.")
    if not all(isinstance(exponent, Fraction | int) and exponent >= 0 for exponent in exponents):
        raise ParameterError("E222", "exponents must be fractions, at least 0.")
    gram = symmetric(upper, dimension=dimension)
    vectors: list[Vector] = []
    for i in range(rank):
        complement = complement_of(vectors, dimension=dimension, bits=bits)
        coordinates = [2**bits]
        if i < dimension - 1:
            # PGPᵀ is in units of 4^-50 and may stretch a person by 1 + η: the coefficient is divided by both,
            # exactly, so that the density rests on at most the exponent that was paid for.
            share = (1 + excess(complement, bits=COMPLEMENT_BITS)) * 4**COMPLEMENT_BITS
            coordinates, _ = bingham(
                randomness,
                matrix=complement * gram * complement.transpose(),
                concentration=exponents[i] / share,
                bits=bits,
                proposals=proposals,
            )
        # From here on only what was drawn and what is public: the lift, its rounding and its sign cost nothing.
        lifted = fmpz_mat(1, dimension - i, coordinates) * complement
        vectors.append(_canonical([_nearest(int(entry)) for entry in lifted.entries()]))
    return ExactBasis.of(vectors, bits=bits)


def complement_of(vectors: Sequence[Vector], *, dimension: int, bits: int) -> Integral:
    """Nearly a basis, as integer rows in units of 2^-50, of the orthogonal complement of released vectors."""
    if not vectors:
        rows = np.eye(dimension)
    else:
        # Floats are safe here. P is made from released vectors alone, and how far it is from orthonormal is measured
        # afterwards in exact integers (``excess``) and paid for. A poor P costs accuracy, never privacy.
        full, _ = np.linalg.qr(_floats(vectors, bits).T, mode="complete")
        rows = full[:, len(vectors) :].T
    entries = np.rint(rows * 2.0**COMPLEMENT_BITS).astype(np.int64)
    return fmpz_mat(len(entries), dimension, entries.ravel().tolist())


def excess(rows: Integral, *, bits: int) -> Fraction:
    """An exact bound on ‖PPᵀ - I‖ for rows P in units of 2^-bits: the largest row sum of magnitudes.

    >>> excess(fmpz_mat([[4, 0], [1, 4]]), bits=2)
    Fraction(5, 16)
    """
    # The largest row sum of magnitudes bounds the spectral norm of a symmetric matrix (Gershgorin). All in integers.
    products = (rows * rows.transpose()).table()
    for i, row in enumerate(products):
        row[i] -= 4**bits
    return Fraction(max(int(sum(map(abs, row))) for row in products), 4**bits)


def symmetric(upper: Sequence[int] | NDArray[Any], *, dimension: int) -> Integral:
    """The full matrix of a triangle in the order of ``np.triu_indices``."""
    rows, columns = np.triu_indices(dimension)
    if len(upper) != rows.size:
        raise ParameterError(
            "E220", f"a triangle of dimension {dimension} must have {rows.size} entries, got {len(upper)}."
        )
    full = np.empty((dimension, dimension), dtype=object)
    full[rows, columns] = full[columns, rows] = [index(entry) for entry in upper]
    return fmpz_mat(dimension, dimension, full.ravel().tolist())


def _floats(vectors: Sequence[Vector], bits: int) -> Floats:
    return np.array([[entry / 2**bits for entry in vector] for vector in vectors], dtype=np.float64)


def _nearest(entry: int) -> int:
    # Half a unit is added and the shift rounds down, below zero too: the nearest integer.
    return (entry + (1 << COMPLEMENT_BITS - 1)) >> COMPLEMENT_BITS


def _canonical(vector: list[int]) -> Vector:
    """Of a vector and its negative, the one whose first nonzero coordinate is positive."""
    first = next((entry for entry in vector if entry), 1)
    return tuple(vector if first > 0 else [-entry for entry in vector])
