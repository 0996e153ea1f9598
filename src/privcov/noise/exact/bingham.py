"""Unit vectors of density proportional to exp(κ·uᵀMu), M an exact integer matrix: the Bingham law, exactly.

An ideal unit vector is never computed; what is computed is its correct rounding, from normals whose bits are
revealed as far as the decisions need. Proposals are accepted or rejected by a float filter where its error
cannot matter and by balls otherwise; coordinates are rounded by integer intervals. Floats and eigenvectors
only shape the envelope, and every valid envelope gives the same law.

*The envelope* is guessed in floats and certified in integers. The best shift σ has tr Ω⁻¹ = 1 for Ω = 2κ(σI - M),
and the best B has BᵀΩB = I: both come from the eigenvalues and eigenvectors of M, which float64 knows well enough
unless the concentration is extreme, and then a Jacobi iteration in long integers does. Whatever they say, it is used
only if exact integer arithmetic confirms, by diagonal dominance, that BᵀΩB is close to a multiple of I, and then that
tr Ω⁻¹ is close to 1. The first makes the envelope valid, both together bound how many proposals it wastes
(``privcov.noise.exact.envelope``).

Proof: docs/proofs/exact-eigenvectors.md, the envelope at #certificate
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

from privcov.errors import InternalError, ParameterError
from privcov.linalg.arrays import Floats
from privcov.noise.exact.envelope import Envelope, Integral, Transform
from privcov.noise.exact.products import BigIntegers, Bounds, settle
from privcov.noise.exact.reals import LazyReals, normals
from privcov.noise.exact.spectrum import integer_eigen
from privcov.noise.exact.trials import MARGIN, is_below
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
    vector is then the last proposal, of another law: see ``privcov.noise.exact.envelope`` for how rarely.

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
        # Proposals are independent, and each is judged by its own bits alone: the first that is accepted has the law.
        points = normals(randomness, batch * q)
        accepted = np.flatnonzero(_accepted(randomness, envelope, points))
        if accepted.size or proposals is not None:
            chosen = int(accepted[0]) if accepted.size else batch - 1
            where = np.arange(chosen * q, (chosen + 1) * q)
            # The bits that the judge has not read are fair still. Rounding reads them, and moves no real.
            return _rounded(envelope, points, where, bits).tolist(), bool(accepted.size)


def _accepted(randomness: Randomness, envelope: Envelope, points: LazyReals) -> Mask:
    """Which of the proposals, one per run of q normals, are accepted."""
    q = envelope.dimension
    magnitudes = points.whole + points.fraction.floats()
    floats = np.where(points.negative, -magnitudes, magnitudes).reshape(-1, q)
    uniforms = LazyUniforms(randomness, len(floats))
    exponents, errors = envelope.approximate(floats)
    with np.errstate(all="ignore"):
        # An exponent off by e < 1/2 moves its exp by at most 2e of itself. Larger or unknown errors go to the judge.
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
            raise ParameterError("E220", "the matrix must be square and hold whole numbers.") from None
    if matrix.nrows() != matrix.ncols() or matrix.nrows() == 0:
        raise ParameterError("E220", "the matrix must be square and hold whole numbers.")
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


_CUT_BITS = 50
"""Entries of BᵀWB are compared after a cut to this many bits, as whole numbers that float64 holds exactly."""
_MACHINE_SPREAD = 2**60
"""Beyond this 2κ·max|M| float64 eigenvalues are too coarse for sure, and below 2^900 nothing overflows."""


def tuned(matrix: Integral, concentration: Fraction) -> Envelope:
    """A certified envelope for the density exp(concentration·uᵀ matrix u), concentration > 0."""
    q = matrix.nrows()
    entries = [int(entry) for entry in matrix.entries()]
    centre = sum(entries[:: q + 1]) // q
    for place in range(0, q * q, q + 1):  # a multiple of I changes no law and would drown the rest
        entries[place] -= centre
    largest = max(map(abs, entries))
    spread = math.ceil(2 * concentration * largest)
    if spread < _MACHINE_SPREAD:
        guess = _machine_guess(entries, q, 2 * concentration, largest)
        envelope = _certified(fmpz_mat(q, q, entries), 2 * concentration, *guess)
        if envelope is not None:
            return envelope
    guess = _integer_guess(entries, q, 2 * concentration, spread)
    envelope = _certified(fmpz_mat(q, q, entries), 2 * concentration, *guess)
    if envelope is None:  # a hundred sweeps and eighty spare bits have always been enough
        raise InternalError
    return envelope


def _machine_guess(entries: list[int], q: int, twice: Fraction, largest: int) -> tuple[Transform, Fraction]:
    """B and σ from float64 eigenvalues and eigenvectors."""
    cut = max(0, largest.bit_length() - 62)
    # A guess in floats, and no more: ``_certified`` decides in integers whether it may be used.
    values, vectors = np.linalg.eigh(np.array([x >> cut for x in entries], dtype=np.float64).reshape(q, q))
    precision = best_precision(float(twice * 2**cut) * (values[-1] - values))
    scaled = np.rint(vectors * np.sqrt(precision[-1] / precision) * 2.0**60).astype(np.int64)
    shift = Fraction(float(values[-1])) * 2**cut + Fraction(float(precision[-1])) / twice
    return Transform(exact=fmpz_mat(q, q, scaled.ravel().tolist()), floats=scaled * 2.0**-60, bits=60), shift


def _integer_guess(entries: list[int], q: int, twice: Fraction, spread: int) -> tuple[Transform, Fraction]:
    """The same with as many bits as the spread needs."""
    bits = (spread * q).bit_length() + 80
    scale = _scale(twice, 80)
    square: NDArray[Any] = np.array([x << scale for x in entries], dtype=object).reshape(q, q)
    values, vectors = integer_eigen(square, bits=bits, negligible=int(Fraction(2) ** (scale - 40) / twice))
    top = max(values)
    gaps = [twice * Fraction(top - value, 2**scale) for value in values]
    floats = np.array([float(gap) if gap < 2**900 else 2.0**900 for gap in gaps])
    least = Fraction(float(best_precision(floats).min()))
    columns = [math.isqrt(int(least * 4**bits / (least + gap))) for gap in gaps]
    scaled = (vectors * np.array(columns, dtype=object)) >> bits
    transform = Transform(
        exact=fmpz_mat(q, q, scaled.ravel().tolist()),
        floats=np.array(scaled / 2**bits, dtype=np.float64),
        bits=bits,
    )
    return transform, Fraction(top, 2**scale) + least / twice


def best_precision(gaps: Floats) -> Floats:
    """b + gaps for the b > 0 with Σ 1/(b + gaps) = 1, nearly: the eigenvalues of the best Ω.

    Newton's iteration on the reciprocal of the sum, concave in b, rises to the root from 1, never beyond it.

    >>> best_precision(np.zeros(4)).round(6).tolist()
    [4.0, 4.0, 4.0, 4.0]
    """
    b = 1.0
    for _ in range(60):
        weights = 1 / (b + gaps)
        total = weights.sum()
        if abs(total - 1) < 1e-6:
            break
        b += total * (total - 1) / (weights @ weights)
    return b + gaps


def _certified(matrix: Integral, twice: Fraction, transform: Transform, shift: Fraction) -> Envelope | None:
    """The envelope, if exact integers confirm that it is valid and nearly the best."""
    q = matrix.nrows()
    scale = _scale(twice, 40)
    shifted = matrix * (-(2**scale))
    for i in range(q):
        shifted[i, i] += round(shift * 2**scale)
    form = transform.exact.transpose() * (shifted * transform.exact)
    unit = twice / 2**scale

    diagonal = [int(form[i, i]) for i in range(q)]
    if min(diagonal) <= 0:
        return None
    cut = max(0, max(diagonal).bit_length() - _CUT_BITS)
    entries = np.array([int(x) >> cut for x in form.entries()], dtype=np.float64).reshape(q, q)
    own = entries.diagonal().copy()
    # A cut entry is less than one unit too small: the magnitude of one off the diagonal grows by one at most. A sum of
    # magnitudes is exact up to 2^53; a row with a larger one is far from dominant, and is refused below all the same.
    others = np.abs(entries).sum(axis=1) - own + (q - 1)
    least, most = int((own - others).min()), int((own + 1 + others).max())
    # By diagonal dominance every eigenvalue of BᵀWB lies in [least, most], in units of the cut. ``least`` is
    # the floor that makes the envelope valid; that the two are close keeps it from wasting proposals.
    if not 16 * q * (most - least) <= most:
        return None
    # tr Ω⁻¹ = tr((BᵀΩB)⁻¹BᵀB) lies between |B|²/(unit·most) and |B|²/(unit·least), and must be close to 1.
    size = float((transform.floats**2).sum())
    floor = float(unit * (least << cut) / 4**transform.bits)
    if not max(abs(size / floor - 1), abs(size * least / (floor * most) - 1)) <= 0.24 / math.sqrt(q):
        return None
    excess = (entries - np.diag(np.full(q, float(least)))) / least
    return Envelope(
        transform=transform, form=form, unit=unit, floor=least << cut, floor_float=floor, excess=excess
    )


def _scale(twice: Fraction, bits: int) -> int:
    """A k >= 0 such that a step of 2^-k in σ is one of at most 2^-bits in Ω."""
    return max(0, twice.numerator.bit_length() - twice.denominator.bit_length() + 1 + bits)
