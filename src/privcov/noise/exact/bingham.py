"""Unit vectors of density proportional to exp(κ·uᵀMu), M an exact integer matrix: the Bingham law, exactly.

An ideal unit vector is never computed; what is computed is its correct rounding, from normals whose bits are
revealed as far as the decisions need. Proposals are accepted or rejected by a float filter where its error
cannot matter and by balls otherwise; coordinates are rounded by integer intervals. Floats and eigenvectors
only shape the envelope, and every valid envelope gives the same law.

Proof: docs/proofs/exact-eigenvectors.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from operator import index
from typing import Any

import numpy as np
from flint import fmpz_mat
from numpy.typing import NDArray

from privcov.errors import ParameterError
from privcov.noise.exact.envelope import Envelope, Integral
from privcov.noise.exact.products import BigIntegers, Bounds, settle
from privcov.noise.exact.reals import LazyReals, normals
from privcov.noise.exact.trials import MARGIN, is_below
from privcov.noise.exact.tuning import tuned
from privcov.noise.exact.uniforms import Ball, Indices, LazyUniforms, Mask, fair_signs
from privcov.noise.randomness import Randomness


def bingham(
    randomness: Randomness,
    *,
    matrix: NDArray[Any] | Sequence[Sequence[int]] | Integral,
    concentration: Fraction,
    bits: int = 40,
    proposals: int | None = None,
) -> tuple[list[int], bool]:
    """A unit vector of density ∝ exp(concentration·uᵀ matrix u), each coordinate rounded to 2^-bits.

    The integers returned are the nearest to 2^bits times an ideal draw. The sign is random; since u and -u
    are equally likely, giving it a canonical one is the caller's choice. With ``proposals`` that many are
    always drawn and evaluated and the first accepted one is kept; the flag is False if none was, and the
    vector is then the last proposal, of another law: see ``privcov.noise.exact.acceptance`` for how rarely.

    >>> from privcov.noise.randomness import rehearsal
    >>> vector, accepted = bingham(rehearsal(1), matrix=[[2, 0], [0, 1]], concentration=Fraction(10**12))
    >>> abs(vector[0]) == 2**40, accepted
    (True, True)

    Kapralov and Talwar subtract what they have released from the Gram matrix G, here λ·θθᵀ for an integer λ
    and a θ of integers t in units of 2^-k. 4^k·G - λ·ttᵀ is an integer matrix: the next vector is exact too.

    >>> gram, value, t, k = np.array([[5, 2], [2, 3]], dtype=object), 6, np.array(vector, dtype=object), 40
    >>> rest = 4**k * gram - value * np.outer(t, t)
    >>> second, _ = bingham(rehearsal(2), matrix=rest, concentration=Fraction(10**12, 4**k))
    >>> abs(second[1]) > abs(second[0])
    True
    """
    exact = _integral(matrix)
    _require(concentration, bits=bits, proposals=proposals)
    q = exact.nrows()
    if q == 1:
        return [-(2**bits) if fair_signs(randomness, 1)[0] else 2**bits], True
    if concentration == 0:  # the uniform law, whatever the matrix
        exact, concentration = fmpz_mat(q, q), Fraction(1)
    envelope = tuned(exact, concentration)
    # A tuned envelope accepts one proposal in about 1.2·√q at worst, so one batch mostly suffices.
    batch = proposals or 4 + math.isqrt(q)
    while True:
        points = normals(randomness, batch * q)
        accepted = np.flatnonzero(_accepted(randomness, envelope, points))
        if accepted.size or proposals is not None:
            chosen = int(accepted[0]) if accepted.size else batch - 1
            where = np.arange(chosen * q, (chosen + 1) * q)
            return _rounded(envelope, points, where, bits).tolist(), bool(accepted.size)


def _accepted(randomness: Randomness, envelope: Envelope, points: LazyReals) -> Mask:
    """Which of the proposals, one per run of q normals, are accepted."""
    q = envelope.dimension
    magnitudes = points.whole + points.fraction.floats()
    floats = np.where(points.negative, -magnitudes, magnitudes).reshape(-1, q)
    uniforms = LazyUniforms(randomness, len(floats))
    exponents, errors = envelope.approximate(floats)
    with np.errstate(all="ignore"):
        # An exponent off by e < 1/2 moves its exp by at most 2e of itself; larger or unknown errors go to the
        # judge.
        probabilities = np.exp(-exponents)
        margins = MARGIN + 2 * errors * probabilities
        margins[~(errors < 0.5)] = np.nan
    lead = probabilities - uniforms.floats()
    accepted: Mask = lead > 0

    def probability(place: int, words: int) -> Ball:
        lower = points.lower(np.arange(place * q, (place + 1) * q), words)
        return (-envelope.enclose([2 * int(n) + 1 for n in lower])).exp()

    # Written so that a NaN counts as undecided.
    for place in np.flatnonzero(~(np.abs(lead) > margins)).tolist():
        accepted[place] = is_below(uniforms, place, probability)
    return accepted


def _rounded(envelope: Envelope, points: LazyReals, where: Indices, bits: int) -> BigIntegers:
    """The nearest integers to 2^bits·Bz/|Bz| for the z of these places."""
    q = envelope.dimension
    slack = envelope.transform.row_sums

    def enclose(chosen: Indices, words: int) -> Bounds:
        # z lies within one unit of these odd integers, so Bz within a row's sum of magnitudes of their image.
        centres = [2 * int(n) + 1 for n in points.lower(where, words)]
        image = [int(y) for y in (envelope.transform.exact * fmpz_mat(q, 1, centres)).entries()]
        ranges = [(y - s, y + s) for y, s in zip(image, slack, strict=True)]
        # |Bz| lies between these integers: each coordinate at its smallest and at its largest magnitude.
        least = math.isqrt(sum(max(low, -high, 0) ** 2 for low, high in ranges))
        most = math.isqrt(sum(max(-low, high) ** 2 for low, high in ranges)) + 1
        one = 1 << 64 * words
        lower, upper = np.zeros(chosen.size, dtype=object), np.zeros(chosen.size, dtype=object)
        for place, (low, high) in enumerate(ranges[i] for i in chosen.tolist()):
            if least == 0:  # nothing known yet but that a coordinate is at most 1
                lower[place], upper[place] = -one << bits, one << bits
                continue
            # Dividing by the larger norm makes a positive end smaller and a negative one larger, so each end
            # takes the norm that moves it outwards; the quotients are rounded outwards too.
            lower[place] = (low * one << bits) // (most if low >= 0 else least)
            upper[place] = -((-high * one << bits) // (least if high >= 0 else most))
        return lower, upper, one

    return settle(q, enclose)


def _integral(matrix: Any) -> Integral:
    """The matrix as exact integers; what is wrong with it is said without its values, which are sensitive."""
    if not isinstance(matrix, fmpz_mat):
        try:
            matrix = fmpz_mat([[index(entry) for entry in row] for row in matrix])
        except (TypeError, ValueError):
            raise ParameterError("E220", "the matrix must be a square of whole numbers.") from None
    if matrix.nrows() != matrix.ncols() or matrix.nrows() == 0:
        raise ParameterError("E220", "the matrix must be a square of whole numbers.")
    if matrix != matrix.transpose():
        raise ParameterError("E221", "the matrix must be symmetric.")
    return matrix


def _require(concentration: Fraction, *, bits: int, proposals: int | None) -> None:
    if not (isinstance(concentration, Fraction | int) and concentration >= 0):
        raise ParameterError("E222", f"a concentration must be a fraction, at least 0, got {concentration}.")
    if not 1 <= bits <= 1000:
        raise ParameterError("E290", f"bits must be between 1 and 1000, got {bits}.")
    if proposals is not None and not proposals >= 1:
        raise ParameterError("E290", f"proposals must be at least 1, got {proposals}.")
