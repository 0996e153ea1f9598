"""Gaussian rows of an exact covariance, rounded: each is the nearest integer vector to an ideal N(0, M) one.

M = SSᵀ with S the Cholesky factor of an integer matrix, enclosed in balls; y = Sn with n lazily refined
standard normals. Which square root S is taken does not change the law of y. Where the enclosures of S and n
leave a rounding in doubt, both are refined; the ideal y never moves, so what is returned is round(y).

Proof: docs/proofs/johnson-lindenstrauss.md
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from flint import arb, ctx, fmpz_mat

from privcov.errors import InternalError
from privcov.noise.exact.products import BigIntegers, Bounds, settle
from privcov.noise.exact.reals import LazyReals
from privcov.noise.exact.uniforms import Indices

_MOST_BITS = 1 << 16


def rounded_rows(variates: LazyReals, *, covariance: Sequence[Sequence[int]]) -> BigIntegers:
    """round(Sn) for every run of d of the variates, one row each, SSᵀ the positive definite covariance.

    >>> from privcov.noise.exact import normals
    >>> from privcov.noise.randomness import rehearsal
    >>> rounded_rows(normals(rehearsal(1), 6), covariance=[[2**40, 0], [0, 2**40]]).shape
    (3, 2)
    """
    d = len(covariance)
    count = variates.whole.size // d

    def enclose(where: Indices, words: int) -> Bounds:
        bits = 64 * words
        factor = cholesky(covariance, bits=bits)
        rows, place = np.unique(where // d, return_inverse=True)
        known = variates.lower((rows[:, None] * d + np.arange(d)).ravel(), words).reshape(-1, d)
        products = fmpz_mat(known.tolist()) * fmpz_mat(factor).transpose()
        # (T + e)(n + f) with |e| ≤ 1 and 0 ≤ f ≤ 1 differs from Tn by at most Σ|T| + Σ(|n| + 1).
        weight = [sum(abs(entry) for entry in row) for row in factor]
        reach = (np.abs(known) + 1).sum(axis=1)
        columns = (where % d).tolist()
        middle = np.array(
            [int(products[int(i), k]) for i, k in zip(place, columns, strict=True)], dtype=object
        )
        error = np.array([weight[k] for k in columns], dtype=object) + reach[place]
        return middle - error, middle + error, 1 << (2 * bits)

    return settle(count * d, enclose).reshape(count, d)


def cholesky(matrix: Sequence[Sequence[int]], *, bits: int) -> list[list[int]]:
    """Integers within 1 of 2^bits·S, S the lower triangular factor of a positive definite integer matrix.

    >>> cholesky([[4, 2], [2, 5]], bits=10)
    [[2048, 0], [1024, 2048]]
    """
    # Twice the bits of the largest entry and 128 more are mostly enough for what elimination loses. Where a ball is
    # still too wide, the precision is doubled; every precision that decides gives integers within 1.
    precision = bits + 2 * max(abs(int(entry)) for row in matrix for entry in row).bit_length() + 128
    while precision < _MOST_BITS:
        with ctx.workprec(precision):
            found = _rounded(_balls(matrix), bits)
        if found is not None:
            return found
        precision *= 2
    raise InternalError  # only a matrix that is not positive definite comes here; ours exceed w²I


def _balls(matrix: Sequence[Sequence[int]]) -> list[list[arb]] | None:
    """The factor in balls, or None where the precision leaves the sign of a pivot in doubt."""
    factor: list[list[arb]] = []
    for i, given in enumerate(matrix):
        row: list[arb] = []
        for j in range(i + 1):
            other = factor[j] if j < i else row
            rest = arb(int(given[j]))
            for one, two in zip(row[:j], other[:j], strict=True):
                rest -= one * two
            if j < i:
                row.append(rest / other[j])
            elif rest > 0:
                row.append(rest.sqrt())
            else:
                return None
        factor.append(row)
    return factor


def _rounded(factor: list[list[arb]] | None, bits: int) -> list[list[int]] | None:
    """Each ball scaled and rounded, or None where one is too wide to be within 1 of what it encloses."""
    if factor is None:
        return None
    unit, result = arb(2) ** bits, []
    for row in factor:
        scaled = [entry * unit for entry in row]
        # A radius below 1/4 and a rounding of at most 1/2 leave the integer within 1 of the true entry.
        if not all(entry.rad() < 0.25 for entry in scaled):
            return None
        result.append([_nearest(entry) for entry in scaled] + [0] * (len(factor) - len(row)))
    return result


def _nearest(ball: arb) -> int:
    """The integer nearest to the middle of a ball."""
    mantissa, exponent = (int(part) for part in ball.mid().man_exp())
    return mantissa << exponent if exponent >= 0 else (mantissa + (1 << (-exponent - 1))) >> -exponent
