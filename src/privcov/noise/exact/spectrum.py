"""Eigenvalues of an integer matrix to the nearest integer, exactly.

No float eigensolver meets a released value. The characteristic polynomial of an integer matrix is monic with
integer coefficients, so a rational root is an integer and no eigenvalue is ever half-way between two
integers: balls that are narrowed long enough decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flint import arb, ctx, fmpz_mat

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
            # floor(x + 1/2) of a ball is unique once no half-integer lies in it; none is a root, so this comes
            # to pass.
            found = [((root.real + arb(1) / 2).floor().unique_fmpz(), times) for root, times in roots]
        if all(value is not None for value, _ in found):
            return sorted((int(value) for value, times in found for _ in range(times)), reverse=True)
    raise InternalError
