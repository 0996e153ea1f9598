"""Random symmetric matrices rounded to integers: each entry is the nearest integer to an ideal real one.

A continuous noise matrix Z is never computed; what is computed is round(Z), correctly, for a Z whose bits are
revealed as far as the rounding needs. Since a Gram matrix G is an integer, G + round(Z) = round(G + Z): the
release is a function of the ideal one, so it keeps its guarantee, and no float ever meets the data.

Each function returns the upper triangle, diagonal included, in the order of ``np.triu_indices(dimension)``,
as an object array of Python integers, or in int64 where they are more than a million and it holds them.

Proof: docs/proofs/exact-sampling.md#rounding
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import numpy as np

from privcov.errors import ParameterError
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
        # Γ/‖G‖, and Γ/(√2‖G‖), as integers over 2^bits; the units of both sums cancel.
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
