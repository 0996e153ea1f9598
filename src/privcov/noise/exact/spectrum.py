"""The spectrum of an integer matrix: eigenvalues rounded exactly, and eigenvectors to any precision.

``rounded_eigenvalues`` is for values that are released. No float eigensolver meets them: the characteristic polynomial
of an integer matrix is monic with integer coefficients, so a rational root is an integer, and no eigenvalue is ever
half-way between two integers. Balls that are narrowed long enough decide.

``integer_eigen`` is for tuning. What it returns, by Jacobi's rotations on integers, is never released, and is
confirmed in exact integers before it is used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from flint import arb, ctx, fmpz_mat
from numpy.typing import NDArray

from privcov.errors import InternalError

_DEPTHS = (128, 512, 2048, 8192, 32768)


def rounded_eigenvalues(matrix: Sequence[Sequence[int]]) -> list[int]:
    """The eigenvalues of a symmetric integer matrix to the nearest integer, in descending order.

    >>> rounded_eigenvalues([[2, 1], [1, 2]])
    [3, 1]
    >>> rounded_eigenvalues([[0, 0], [0, 0]])
    [0, 0]
    """
    polynomial = fmpz_mat([list(row) for row in matrix]).charpoly()
    for bits in _DEPTHS:
        with ctx.workprec(bits):
            roots: list[Any] = polynomial.complex_roots()
            # floor(x + 1/2) of a ball is unique once no half-integer lies in it. None is a root, so that happens.
            found = [((root.real + arb(1) / 2).floor().unique_fmpz(), times) for root, times in roots]
        if all(value is not None for value, _ in found):
            return sorted((int(value) for value, times in found for _ in range(times)), reverse=True)
    raise InternalError


BigIntegers = NDArray[Any]

_SWEEPS = 100
"""More than Jacobi needs: it converges quadratically after a few sweeps."""


def integer_eigen(matrix: BigIntegers, *, bits: int, negligible: int) -> tuple[list[int], BigIntegers]:
    """Eigenvalues, and eigenvectors as columns in units of 2^-bits, of a symmetric matrix of Python integers.

    It stops when no entry off the diagonal exceeds ``negligible``.

    >>> matrix = np.array([[2, 1], [1, 2]], dtype=object) * 2**80
    >>> values, vectors = integer_eigen(matrix, bits=80, negligible=1)
    >>> sorted(round(value / 2**80) for value in values)
    [1, 3]
    """
    matrix = matrix.copy()
    q = len(matrix)
    one = 1 << bits
    vectors = np.array([[one * (i == j) for j in range(q)] for i in range(q)], dtype=object)
    for _ in range(_SWEEPS):
        settled = True
        for i in range(q - 1):
            for j in range(i + 1, q):
                if abs(matrix[i, j]) <= negligible:
                    continue
                settled = False
                cosine, sine = _rotation(matrix[i, i], matrix[j, j], matrix[i, j], bits)
                turn = np.array([[cosine, sine], [-sine, cosine]], dtype=object)
                # The shifts round, so entries off the diagonal do not reach zero but stop at ``negligible``. The law
                # does not rest on these digits: ``bingham`` confirms in exact integers what it takes from here.
                matrix[:, [i, j]] = (matrix[:, [i, j]] @ turn) >> bits
                matrix[[i, j], :] = (turn.T @ matrix[[i, j], :]) >> bits
                vectors[:, [i, j]] = (vectors[:, [i, j]] @ turn) >> bits
        if settled:
            return matrix.diagonal().tolist(), vectors
    raise InternalError


def _rotation(first: int, second: int, between: int, bits: int) -> tuple[int, int]:
    """Cosine and sine, in units of 2^-bits, of the smaller angle that makes ``between`` vanish."""
    gap, twice = second - first, 2 * between
    reach = math.isqrt(gap**2 + twice**2)
    # Of the two angles that make the entry vanish the smaller: the sign that adds magnitudes in the
    # denominator, so nothing cancels and the tangent is at most 1.
    tangent = (twice << bits) // (gap + reach if gap >= 0 else gap - reach)
    cosine = (1 << 2 * bits) // math.isqrt((1 << 2 * bits) + tangent**2)
    return cosine, (tangent * cosine) >> bits
