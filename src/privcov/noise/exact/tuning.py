"""Finding an envelope for exact Bingham sampling: guessed in floats, certified in integers.

The best shift σ has tr Ω⁻¹ = 1 for Ω = 2κ(σI - M), and the best B has BᵀΩB = I: both come from the eigenvalues
and eigenvectors of M, which float64 knows well enough unless the concentration is extreme, and then a Jacobi
iteration in long integers does. Whatever they say, it is used only if exact integer arithmetic confirms, by
diagonal dominance, that BᵀΩB is close to a multiple of I, and then that tr Ω⁻¹ is close to 1. The first makes
the envelope valid, both together bound how many proposals it wastes (``privcov.noise.exact.acceptance``).

Proof: docs/proofs/exact-eigenvectors.md#certificate
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from flint import fmpz_mat
from numpy.typing import NDArray

from privcov.errors import InternalError
from privcov.linalg.arrays import Floats
from privcov.noise.exact.envelope import Envelope, Integral, Transform
from privcov.noise.exact.jacobi import integer_eigen

_CUT_BITS = 50
"""Entries of BᵀWB are compared after a cut to this many bits, where float64 sums of integers are exact."""
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
    # A cut entry is less than one unit too small: the magnitude of one off the diagonal grows by one at most.
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
