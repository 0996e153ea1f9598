"""Exact products of lazily refined reals, and the rounding of what is known about the result.

Guarantee: every integer returned is a bound or an exact product; float64 matrix products are used only where
all partial sums are integers of at most 2^53, so any order, blocking or fused operation gives the same.

Proof: docs/proofs/exact-sampling.md#rounding
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcov.errors import InternalError
from privcov.linalg.arrays import Floats
from privcov.noise.exact.reals import LazyReals
from privcov.noise.exact.uniforms import DEPTHS, PIECE, Indices, in_pieces
from privcov.noise.randomness import Words

BigIntegers = NDArray[Any]  # object arrays of Python integers
Bounds = tuple[BigIntegers, BigIntegers, int]  # each real lies in [lower, upper]/denominator


def settle(
    count: int,
    enclose: Callable[[Indices, int], Bounds],
    *,
    near: Callable[[Indices], tuple[Floats, Floats]] | None = None,
    at_once: bool = False,
) -> BigIntegers:
    """Round reals to the nearest integer (a half goes up), revealing more words of those still in doubt.

    ``enclose(where, words)`` bounds the reals at the places named, reading more bits of the variates they are
    made of the larger ``words`` is. Bounds that meet decide the integer for every real between them. Where there is
    ``near``, the reals are first looked for within so far of its floats. Many places are taken a piece at a time, or
    ``at_once`` where a product bounds all of them together; they give int64 where that holds every integer.

    >>> def between_seven_and_eight_tenths(where, words):
    ...     return 7 + 0 * where.astype(object), 8 + 0 * where.astype(object), 10
    >>> settle(2, between_seven_and_eight_tenths).tolist()
    [1, 1]
    """
    values: BigIntegers = np.zeros(count, dtype=object if count <= PIECE else np.int64)
    pending = np.arange(count)
    if near is not None:
        pending = np.concatenate([_settled_by_floats(values, part, near) for part in in_pieces(pending)])
    for words in DEPTHS:
        left = [pending[:0]]
        for part in (pending,) if at_once else in_pieces(pending):
            lower, upper, denominator = enclose(part, words)
            # floor(x + 1/2) in whole numbers, of both ends. Where they agree, so does every real between them.
            nearest = (2 * lower + denominator) // (2 * denominator)
            values = placed(values, part, nearest)
            left.append(part[nearest != (2 * upper + denominator) // (2 * denominator)])
        pending = np.concatenate(left)
        if not pending.size:
            return values
    raise InternalError  # probability below 2^-2900 at any scale below 2^1000


def placed(values: BigIntegers, where: Indices | slice, integers: BigIntegers) -> BigIntegers:
    """The array with these integers in these places; as Python integers, if int64 does not hold one of them.

    >>> placed(np.zeros(2, dtype=np.int64), slice(1), np.array([2**70], dtype=object)).tolist()
    [1180591620717411303424, 0]
    """
    try:
        values[where] = integers
    except OverflowError:
        values = values.astype(object)
        values[where] = integers
    return values


def _settled_by_floats(
    values: BigIntegers, where: Indices, near: Callable[[Indices], tuple[Floats, Floats]]
) -> Indices:
    """Round what is further from every half than its float may be wrong; the places that are not."""
    found, wrong = near(where)
    nearest = np.rint(found)
    # Below 2^51 the distance to the nearest integer is a float, so nothing is rounded in it; NaN is not certain.
    certain = (np.abs(found) < 2.0**51) & (0.5 - np.abs(found - nearest) > wrong)
    values[where[certain]] = nearest[certain].astype(np.int64)
    return where[~certain]


def gram_difference(
    entries: LazyReals, *, dimension: int, scale: Fraction, added: int | None = None
) -> Callable[[Indices, int], Bounds]:
    """Bounds for scale·(AAᵀ - BBᵀ) where row i of [A | B] is the i-th of ``dimension`` equal runs of entries.

    A has ``added`` columns, half of them by default; when it has all of them the bounds are for scale·AAᵀ.
    The places are those of ``np.triu_indices``. Each entry is cut to fixed point, the product of the cut
    matrices is exact, and what the cut left out is bounded.
    """
    rows, columns = np.triu_indices(dimension)
    # A row's sum of magnitudes is at most weight/8, the largest such row bounding every entry's error.
    eighths = 8 * entries.whole + (entries.fraction.first >> np.uint64(61)).astype(np.int64) + 1
    weight = int(eighths.reshape(dimension, -1).sum(axis=1).max())
    # With so many fractional bits one entry in about 2^23 is left in doubt at the first depth.
    enough = (math.ceil(scale) * weight).bit_length() + 22

    def enclose(where: Indices, words: int) -> Bounds:
        products, bits = _signed_products(
            entries,
            rows[where],
            columns[where],
            dimension=dimension,
            added=added,
            bits=enough + 64 * (words - 1),
        )
        # |xy - ab| <= |x| + |y| when a, b are x, y cut to integers; summed over a row, in units of 2^-2bits.
        error = weight << (bits - 2)
        numerator, denominator = scale.numerator, scale.denominator << (2 * bits)
        return numerator * (products - error), numerator * (products + error), denominator

    return enclose


def _signed_products(
    entries: LazyReals, i: Indices, j: Indices, *, dimension: int, bits: int, added: int | None = None
) -> tuple[BigIntegers, int]:
    """Entries (i, j) of AAᵀ - BBᵀ, exact, for A and B cut to at least ``bits`` fractional bits.

    Returned in units of 2^(-2·bits), with the bits used.
    """
    inner = entries.whole.size // dimension
    # Limbs are integers of magnitude at most 2^(width-1): inner of their products sum to at most 2^53.
    width = (53 - (inner - 1).bit_length()) // 2 + 1
    spare = 1 + int(entries.whole.max()).bit_length()  # bits of the top limb for its sign and the whole part
    count = -(-(bits + spare) // width)
    bits = count * width - spare
    limbs = [limb.reshape(dimension, inner) for limb in _limbs(entries, width=width, bits=bits)]
    split = inner // 2 if added is None else added

    # Schoolbook multiplication by limbs, the highest level first. Products of limbs ``one`` and ``level - one`` share
    # the weight 2^(width·level); of a pair of different limbs the second product is the first one transposed. A
    # level adds about ``count`` whole numbers of at most 2^53, which int64 holds with room to spare.
    total: BigIntegers = np.zeros(i.size, dtype=object)
    for level in reversed(range(2 * count - 1)):
        share = np.zeros(i.size, dtype=np.int64)
        for one in range(max(0, level - count + 1), level // 2 + 1):
            left, right = limbs[one], limbs[level - one]
            full = left[:, :split] @ right[:, :split].T - left[:, split:] @ right[:, split:].T
            share += full[i, j].astype(np.int64)
            if one != level - one:
                share += full[j, i].astype(np.int64)
        total = (total << width) + share
    return total, bits


def _limbs(entries: LazyReals, *, width: int, bits: int) -> list[Floats]:
    """Signed limbs, least first, of the entries cut towards zero to ``bits`` fractional bits."""
    words = entries.fraction.columns(-(-bits // 64))
    sign: Floats = np.where(entries.negative, -1.0, 1.0)
    limbs: list[Floats] = []
    carry: NDArray[np.int64] = np.zeros(entries.whole.size, dtype=np.int64)
    top = bits % width
    for end in range(bits, top, -width):
        # A limb of half its range or more goes negative and carries: its magnitude is at most 2^(width-1).
        limb = _field(words, end - width, width) + carry
        carry = (limb + (1 << (width - 1))) >> width
        limbs.append(sign * (limb - (carry << width)))
    limbs.append(sign * ((entries.whole << top) + _field(words, 0, top) + carry))
    return limbs


def _field(words: list[Words], start: int, length: int) -> NDArray[np.int64]:
    """The ``length`` bits that follow the first ``start`` bits of each real, as integers; length below 64."""
    index, shift = divmod(start, 64)
    excess = shift + length - 64
    if excess <= 0:
        value = words[index] >> np.uint64(-excess)
    else:
        value = words[index] << np.uint64(excess) | words[index + 1] >> np.uint64(64 - excess)
    return (value & np.uint64((1 << length) - 1)).astype(np.int64)
