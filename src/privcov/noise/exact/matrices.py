"""Random symmetric matrices rounded to integers: each entry is the nearest integer to an ideal real one.

A continuous noise matrix Z is never computed; what is computed is round(Z), correctly, for a Z whose bits are
revealed as far as the rounding needs. Since a Gram matrix G is an integer, G + round(Z) = round(G + Z): the
release is a function of the ideal one, so it keeps its guarantee, and no float ever meets the data.

Each function returns the upper triangle, diagonal included, in the order of ``np.triu_indices(dimension)``,
as an object array of Python integers, or in int64 where they are more than a million and it holds them.

*Gaussian rows* of an exact covariance M are rounded in the same way (``rounded_rows``): M = SSᵀ with S the Cholesky
factor of an integer matrix, enclosed in balls, and y = Sn with n lazily refined standard normals. Which square root S
is taken does not change the law of y. Where the enclosures of S and n leave a rounding in doubt, both are refined; the
ideal y never moves, so what is returned is round(y).

Proofs: docs/proofs/exact-sampling.md#rounding, and of rows docs/proofs/johnson-lindenstrauss.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache

import numpy as np
from flint import arb, ctx, fmpz_mat

from privcov.errors import InternalError, ParameterError
from privcov.linalg.arrays import Floats
from privcov.linalg.triangle import diagonal_places
from privcov.linalg.triangle import entries as triangle
from privcov.noise.exact.products import BigIntegers, Bounds, gram_difference, placed, settle
from privcov.noise.exact.reals import LazyReals, exponentials, normals
from privcov.noise.exact.uniforms import Indices, in_pieces
from privcov.noise.randomness import Randomness


def wishart_difference(randomness: Randomness, *, dimension: int, scale: Fraction) -> BigIntegers:
    """round(scale·(AAᵀ - BBᵀ)), A and B of dimension × (dimension+1) independent standard normals.

    >>> from privcov.noise.randomness import rehearsal
    >>> wishart_difference(rehearsal(1), dimension=3, scale=Fraction(2**40)).shape
    (6,)
    """
    _require(dimension, scale=scale)
    entries = normals(randomness, dimension * 2 * (dimension + 1))
    enclose = gram_difference(entries, dimension=dimension, scale=scale)
    return settle(triangle(dimension), enclose, at_once=True)


def wishart(randomness: Randomness, *, dimension: int, degrees: int, scale: Fraction) -> BigIntegers:
    """round(scale·AAᵀ), A of dimension × degrees independent standard normals.

    >>> from privcov.noise.randomness import rehearsal
    >>> wishart(rehearsal(1), dimension=3, degrees=7, scale=Fraction(2**40)).shape
    (6,)
    """
    _require(dimension, scale=scale)
    if not degrees >= 1:
        raise ParameterError("E290", f"the degrees must be at least 1, got {degrees}.")
    entries = normals(randomness, dimension * degrees)
    enclose = gram_difference(entries, dimension=dimension, scale=scale, added=degrees)
    return settle(triangle(dimension), enclose, at_once=True)


def rounded_normals(randomness: Randomness, *, count: int, std: Fraction) -> BigIntegers:
    """round(std·n) for ``count`` independent standard normals n.

    >>> from privcov.noise.randomness import rehearsal
    >>> rounded_normals(rehearsal(1), count=4, std=Fraction(2**40)).shape
    (4,)
    """
    _require(1, std=std)
    return _scaled(normals(randomness, count), np.arange(count), std)


def _scaled(variates: LazyReals, places: Indices, std: Fraction) -> BigIntegers:
    """round(std·n) for the variates n of these places."""

    def enclose(where: Indices, words: int) -> Bounds:
        lower = std.numerator * variates.lower(places[where], words)
        return lower, lower + std.numerator, std.denominator << (64 * words)

    def near(where: Indices) -> tuple[Floats, Floats]:
        found = float(std) * variates.floats(places[where])
        # Of n (2 + |n|)·2^-53, and one rounding each of std and of the product: doubled, to be generous.
        return found, (float(std) + np.abs(found)) * 2.0**-50

    return settle(places.size, enclose, near=near)


def gaussian_ensemble(
    randomness: Randomness,
    *,
    dimension: int,
    diagonal_std: Fraction,
    offdiagonal_std: Fraction,
    trace_keep: Fraction,
) -> BigIntegers:
    """Independent normals, rounded, of which the diagonal keeps the share ``trace_keep`` of its mean.

    Off the diagonal round(offdiagonal_std·n), on it round(diagonal_std·(n - (1 - trace_keep)·mean of the n)).

    >>> from privcov.noise.randomness import rehearsal
    >>> one, half = Fraction(2**40), Fraction(2**39)
    >>> gaussian_ensemble(
    ...     rehearsal(1), dimension=2, diagonal_std=one, offdiagonal_std=half, trace_keep=Fraction(1)
    ... ).shape
    (3,)
    """
    _require(dimension, diagonal_std=diagonal_std, offdiagonal_std=offdiagonal_std)
    if not 0 <= trace_keep <= 1:
        raise ParameterError("E290", f"trace_keep must be between 0 and 1, got {trace_keep}.")
    count, diagonal = triangle(dimension), diagonal_places(dimension)
    variates = normals(randomness, count)
    lost = (1 - trace_keep) / dimension

    def enclose_diagonal(where: Indices, words: int) -> Bounds:
        each = variates.lower(diagonal, words)
        # The sum of d intervals of one unit; it is subtracted, so its upper end belongs to the lower bound.
        low_sum, high_sum = each.sum(), each.sum() + dimension
        own = lost.denominator * each[where]
        lower = diagonal_std.numerator * (own - lost.numerator * high_sum)
        upper = diagonal_std.numerator * (own + lost.denominator - lost.numerator * low_sum)
        return lower, upper, (diagonal_std.denominator * lost.denominator) << (64 * words)

    result = _scaled(variates, np.arange(count), offdiagonal_std)
    return placed(result, diagonal, settle(dimension, enclose_diagonal))


def frobenius_ball(randomness: Randomness, *, dimension: int, scale: Fraction) -> BigIntegers:
    """round(Z) for a symmetric Z of density proportional to exp(-‖Z‖_F/scale).

    Z = scale·Γ·G/‖G‖_F with Γ a sum of d(d+1)/2 unit exponentials and G symmetric, N(0, 1) on the diagonal
    and N(0, 1/2) off it; so ‖G‖² is the sum of all squares of the independent standard normals n that make G,
    and an off-diagonal entry is n/√2.

    >>> from privcov.noise.randomness import rehearsal
    >>> frobenius_ball(rehearsal(1), dimension=3, scale=Fraction(2**40)).shape
    (6,)
    """
    _require(dimension, scale=scale)
    freedom = triangle(dimension)
    variates, summands = normals(randomness, freedom), exponentials(randomness, freedom)
    on_diagonal = np.zeros(freedom, dtype=np.bool_)
    on_diagonal[diagonal_places(dimension)] = True

    @cache
    def sums(words: int) -> tuple[int, int, int]:
        """At least Σ of the exponentials, Σn², and Σ(|n| + 1)², each from so many words."""
        total = least = most = 0
        for places in in_pieces(np.arange(freedom)):
            sizes = variates.magnitudes(places, words)
            total += int(summands.magnitudes(places, words).sum())
            square = int((sizes**2).sum())
            least, most = least + square, most + square + 2 * int(sizes.sum()) + places.size
        return total, least, most

    def enclose(where: Indices, words: int) -> Bounds:
        least_sum, least_square, most_square = sums(words)
        most_sum = least_sum + freedom
        sizes = variates.magnitudes(where, words)
        bits = 64 * words + 64
        # Γ/‖G‖, and Γ/(√2‖G‖), as integers over 2^bits; the units of both sums cancel. Every step rounds outwards: the
        # lower bound has the least Γ over the largest norm and is rounded down, the upper one the reverse.
        weight = np.where(on_diagonal[where], 1, 2)
        low, high = np.zeros(where.size, dtype=object), np.zeros(where.size, dtype=object)
        for share in (1, 2):
            chosen = weight == share
            own = sizes[chosen]
            low[chosen] = own * math.isqrt((least_sum**2 << 2 * bits) // (share * most_square))
            if least_square:
                high[chosen] = (own + 1) * (
                    math.isqrt((most_sum**2 << 2 * bits) // (share * least_square)) + 1
                )
            else:  # no bit of any normal is set yet: an entry of G is at most its norm
                high[chosen] = most_sum << bits
        # The bounds so far are of magnitudes. Below zero they change places.
        negative = variates.negative[where]
        lower, upper = np.where(negative, -high, low), np.where(negative, -low, high)
        denominator = scale.denominator << (bits + 64 * words)
        return scale.numerator * lower, scale.numerator * upper, denominator

    return settle(freedom, enclose)


def _require(dimension: int, **positive: Fraction) -> None:
    if not dimension >= 1:
        raise ParameterError("E290", f"the dimension must be at least 1, got {dimension}.")
    for name, value in positive.items():
        # The upper limit keeps the depths of privcov.noise.exact.uniforms ample.
        if not 0 < value < 2**1000:
            raise ParameterError("E290", f"{name} must be above 0 and below 2^1000, got {value}.")


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
