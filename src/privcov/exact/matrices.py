"""Random symmetric matrices rounded to integers: each entry is the nearest integer to an ideal real one.

A continuous noise matrix Z is never computed; what is computed is round(Z), correctly, for a Z whose bits are
revealed as far as the rounding needs. Since a Gram matrix G is an integer, G + round(Z) = round(G + Z): the
release is a function of the ideal one, so it keeps its guarantee, and no float ever meets the data.

Each function returns the upper triangle, diagonal included, in the order of ``np.triu_indices(dimension)``,
as an object array of Python integers.

Proof: docs/proofs/exact-sampling.md#rounding
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from privcov.errors import ParameterError
from privcov.exact.products import BigIntegers, Bounds, gram_difference, settle
from privcov.exact.reals import exponentials, normals
from privcov.exact.uniforms import Indices
from privcov.randomness import Randomness


def wishart_difference(randomness: Randomness, *, dimension: int, scale: Fraction) -> BigIntegers:
    """round(scale·(AAᵀ - BBᵀ)), A and B of dimension × (dimension+1) independent standard normals.

    >>> from privcov.randomness import rehearsal
    >>> wishart_difference(rehearsal(1), dimension=3, scale=Fraction(2**40)).shape
    (6,)
    """
    _require(dimension, scale=scale)
    entries = normals(randomness, dimension * 2 * (dimension + 1))
    return settle(_triangle(dimension), gram_difference(entries, dimension=dimension, scale=scale))


def wishart(randomness: Randomness, *, dimension: int, degrees: int, scale: Fraction) -> BigIntegers:
    """round(scale·AAᵀ), A of dimension × degrees independent standard normals.

    >>> from privcov.randomness import rehearsal
    >>> wishart(rehearsal(1), dimension=3, degrees=7, scale=Fraction(2**40)).shape
    (6,)
    """
    _require(dimension, scale=scale)
    if not degrees >= 1:
        raise ParameterError("E290", f"the degrees must be at least 1, got {degrees}.")
    entries = normals(randomness, dimension * degrees)
    return settle(
        _triangle(dimension), gram_difference(entries, dimension=dimension, scale=scale, added=degrees)
    )


def rounded_normals(randomness: Randomness, *, count: int, std: Fraction) -> BigIntegers:
    """round(std·n) for ``count`` independent standard normals n.

    >>> from privcov.randomness import rehearsal
    >>> rounded_normals(rehearsal(1), count=4, std=Fraction(2**40)).shape
    (4,)
    """
    _require(1, std=std)
    variates = normals(randomness, count)

    def enclose(where: Indices, words: int) -> Bounds:
        lower = std.numerator * variates.lower(where, words)
        return lower, lower + std.numerator, std.denominator << (64 * words)

    return settle(count, enclose)


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

    >>> from privcov.randomness import rehearsal
    >>> one, half = Fraction(2**40), Fraction(2**39)
    >>> gaussian_ensemble(
    ...     rehearsal(1), dimension=2, diagonal_std=one, offdiagonal_std=half, trace_keep=Fraction(1)
    ... ).shape
    (3,)
    """
    _require(dimension, diagonal_std=diagonal_std, offdiagonal_std=offdiagonal_std)
    if not 0 <= trace_keep <= 1:
        raise ParameterError("E290", f"trace_keep must be between 0 and 1, got {trace_keep}.")
    rows, columns = np.triu_indices(dimension)
    diagonal = np.flatnonzero(rows == columns)
    variates = normals(randomness, rows.size)
    lost = (1 - trace_keep) / dimension

    def enclose_offdiagonal(where: Indices, words: int) -> Bounds:
        lower = offdiagonal_std.numerator * variates.lower(offdiagonal[where], words)
        return lower, lower + offdiagonal_std.numerator, offdiagonal_std.denominator << (64 * words)

    def enclose_diagonal(where: Indices, words: int) -> Bounds:
        each = variates.lower(diagonal, words)
        # The sum of d intervals of one unit; it is subtracted, so its upper end belongs to the lower bound.
        low_sum, high_sum = each.sum(), each.sum() + dimension
        own = lost.denominator * each[where]
        lower = diagonal_std.numerator * (own - lost.numerator * high_sum)
        upper = diagonal_std.numerator * (own + lost.denominator - lost.numerator * low_sum)
        return lower, upper, (diagonal_std.denominator * lost.denominator) << (64 * words)

    offdiagonal = np.flatnonzero(rows != columns)
    result = np.zeros(rows.size, dtype=object)
    result[offdiagonal] = settle(offdiagonal.size, enclose_offdiagonal)
    result[diagonal] = settle(diagonal.size, enclose_diagonal)
    return result


def frobenius_ball(randomness: Randomness, *, dimension: int, scale: Fraction) -> BigIntegers:
    """round(Z) for a symmetric Z of density proportional to exp(-‖Z‖_F/scale).

    Z = scale·Γ·G/‖G‖_F with Γ a sum of d(d+1)/2 unit exponentials and G symmetric, N(0, 1) on the diagonal
    and N(0, 1/2) off it; so ‖G‖² is the sum of all squares of the independent standard normals n that make G,
    and an off-diagonal entry is n/√2.

    >>> from privcov.randomness import rehearsal
    >>> frobenius_ball(rehearsal(1), dimension=3, scale=Fraction(2**40)).shape
    (6,)
    """
    _require(dimension, scale=scale)
    rows, columns = np.triu_indices(dimension)
    freedom = rows.size
    everywhere = np.arange(freedom)
    variates, summands = normals(randomness, freedom), exponentials(randomness, freedom)

    def enclose(where: Indices, words: int) -> Bounds:
        sizes = variates.magnitudes(everywhere, words)
        least_sum = int(summands.magnitudes(everywhere, words).sum())
        most_sum = least_sum + freedom
        least_square, most_square = int((sizes**2).sum()), int(((sizes + 1) ** 2).sum())
        bits = 64 * words + 64
        # Γ/‖G‖, and Γ/(√2‖G‖), as integers over 2^bits; the units of both sums cancel.
        weight = np.where(rows[where] == columns[where], 1, 2)
        low, high = np.zeros(where.size, dtype=object), np.zeros(where.size, dtype=object)
        for share in (1, 2):
            chosen = weight == share
            own = sizes[where[chosen]]
            low[chosen] = own * math.isqrt((least_sum**2 << 2 * bits) // (share * most_square))
            if least_square:
                high[chosen] = (own + 1) * (
                    math.isqrt((most_sum**2 << 2 * bits) // (share * least_square)) + 1
                )
            else:  # no bit of any normal is set yet: an entry of G is at most its norm
                high[chosen] = most_sum << bits
        negative = variates.negative[where]
        lower, upper = np.where(negative, -high, low), np.where(negative, -low, high)
        denominator = scale.denominator << (bits + 64 * words)
        return scale.numerator * lower, scale.numerator * upper, denominator

    return settle(freedom, enclose)


def _triangle(dimension: int) -> int:
    return dimension * (dimension + 1) // 2


def _require(dimension: int, **positive: Fraction) -> None:
    if not dimension >= 1:
        raise ParameterError("E290", f"the dimension must be at least 1, got {dimension}.")
    for name, value in positive.items():
        # The upper limit keeps the depths of privcov.exact.uniforms ample.
        if not 0 < value < 2**1000:
            raise ParameterError("E290", f"{name} must be above 0 and below 2^1000, got {value}.")
