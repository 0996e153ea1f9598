"""Integer noise, exactly distributed: uniform, discrete Laplace and discrete Gaussian.

The method is that of Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy" (2020),
run on whole arrays: every place holding a rejected proposal is proposed anew until none is left. Results are
int64 arrays for scales up to 2^50 and object arrays of Python integers above, by the same code; more than a million
integers are int64 at any scale, if it holds every one of them.

Proof: docs/proofs/exact-sampling.md#discrete
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb, fmpq
from numpy.typing import NDArray

from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats
from privcov.noise.exact.products import placed
from privcov.noise.exact.trials import exp_trials, exponential_survival, until_accepted, whole_numbers
from privcov.noise.exact.uniforms import PIECE, Ball, Indices, LazyUniforms, Mask, fair_signs
from privcov.noise.randomness import Randomness

Integers = NDArray[Any]  # int64, or object holding Python integers

# The whole part of an exponential is below 2^12 (see uniforms.DEPTHS), so magnitudes stay below 2^62.
_MACHINE_SCALE = 2**50


def uniform_below(randomness: Randomness, bound: int, count: int) -> Integers:
    """Independent integers, uniform on 0 … bound-1.

    >>> from privcov.noise.randomness import rehearsal
    >>> sorted(set(uniform_below(rehearsal(1), 3, 100).tolist()))
    [0, 1, 2]
    """
    if not bound >= 1:
        raise ParameterError("E290", f"a bound must be at least 1, got {bound}.")
    # At least 14 bits more than the bound has, so that at most one proposal in 2^14 is rejected.
    width = 1 if bound <= _MACHINE_SCALE else bound.bit_length() // 64 + 2
    # Only numbers up to the last whole multiple of the bound are kept, so every remainder is equally likely.
    last = 2 ** (64 * width) // bound * bound - 1
    result: Integers = np.zeros(count, dtype=np.int64 if bound <= _MACHINE_SCALE else object)

    def propose(where: Indices) -> Mask:
        raw: Integers = randomness.words(where.size)
        for _ in range(width - 1):
            raw = (raw.astype(object) << 64) + randomness.words(where.size)
        result[where] = raw % bound
        return np.asarray(raw <= last, dtype=np.bool_)

    until_accepted(count, propose)
    return result


def discrete_laplace(randomness: Randomness, *, scale: int, count: int) -> Integers:
    """Independent integers with P(x) proportional to exp(-|x|/scale).

    >>> from privcov.noise.randomness import rehearsal
    >>> discrete_laplace(rehearsal(1), scale=2**70, count=2).dtype
    dtype('O')
    """
    if not scale >= 1:
        raise ParameterError("E290", f"a scale must be a whole number of at least 1, got {scale}.")
    result = _empty(scale, count)

    def propose(where: Indices) -> Mask:
        nonlocal result
        rest = uniform_below(randomness, scale, where.size)
        accepted = exp_trials(
            randomness, _quotients(rest, scale), lambda index, _words: arb(fmpq(int(rest[index]), scale))
        )
        # A remainder r is kept with probability exp(-r/scale), and P(multiples >= j) = exp(-j): so r +
        # scale·multiples has P(m) proportional to exp(-m/scale) over all m >= 0.
        multiples = whole_numbers(LazyUniforms(randomness, int(accepted.sum())), exponential_survival)
        magnitude = rest[accepted] + scale * multiples.astype(rest.dtype)
        negative = fair_signs(randomness, magnitude.size)
        result = placed(result, where[accepted], np.where(negative, -magnitude, magnitude))
        # Zero has one sign only, or it would be twice as likely as it should.
        accepted[accepted] = ~(negative & (magnitude == 0))
        return accepted

    until_accepted(count, propose)
    return result


def discrete_gaussian(randomness: Randomness, *, variance: Fraction, count: int) -> Integers:
    """Independent integers with P(x) proportional to exp(-x²/(2·variance)); its true variance is smaller.

    >>> from privcov.noise.randomness import rehearsal
    >>> bool(abs(discrete_gaussian(rehearsal(1), variance=Fraction(1, 100), count=9)).max() == 0)
    True
    """
    if not variance > 0:
        raise ParameterError("E290", f"a variance must be above 0, got {variance}.")
    scale = math.isqrt(math.floor(variance)) + 1
    ratio = float(variance / scale**2)
    centre = variance / scale
    result = _empty(scale, count)

    def propose(where: Indices) -> Mask:
        nonlocal result
        # exp(-|y|/t)·exp(-(|y| - v/t)²/(2v)) is exp(-y²/(2v)) times a constant: Laplace proposals, thinned, are
        # the discrete Gaussian, whatever the scale t. A t near the standard deviation wastes the fewest of them.
        candidates = discrete_laplace(randomness, scale=scale, count=where.size)
        magnitude = abs(candidates)

        def exact(index: int, _words: int) -> Ball:
            exponent = (int(magnitude[index]) - centre) ** 2 / (2 * variance)
            return arb(fmpq(exponent.numerator, exponent.denominator))

        # (|y| - v/t)²/(2v) in units of the scale t, where nothing overflows; a ratio so small that it
        # underflows makes the exponent NaN, which goes to the judge, or infinite, which is right.
        with np.errstate(all="ignore"):
            exponents = (_quotients(magnitude, scale) - ratio) ** 2 / (2 * ratio)
        result = placed(result, where, candidates)
        return exp_trials(randomness, exponents, exact)

    until_accepted(count, propose)
    return result


def discrete_cube(randomness: Randomness, *, scale: int, dimension: int) -> list[int]:
    """A vector of integers with P(x) proportional to exp(-max|x|/scale).

    The law for sums of which each moves by at most so much, whatever the others do: the sup norm is the K-norm of a
    cube (Hardt and Talwar, 2010). A cube of half-width r, with weight (2r + 1)^d·exp(-r/scale), and a point in it: a
    point x is in the cubes of r ≥ max|x|, and their weights over their volumes add up to exp(-max|x|/scale), but for
    a constant. The half-width is proposed as a sum of d + 1 geometric variables, which has weight
    (r + 1)…(r + d)·exp(-r/scale), and kept with probability (2r + 1)^d / (2^d·(r + 1)…(r + d)) ≤ 1: a trial for each
    factor.

    >>> from privcov.noise.randomness import rehearsal
    >>> len(discrete_cube(rehearsal(1), scale=2**40, dimension=3))
    3
    """
    if not (dimension >= 1 and scale >= dimension):
        raise ParameterError(
            "E290", f"a cube of dimension {dimension} needs a scale of at least {dimension}, got {scale}."
        )
    while True:
        # Of a discrete Laplace variable that is not negative, the law is geometric.
        half = 0
        for _ in range(dimension + 1):
            part = -1
            while part < 0:
                part = int(discrete_laplace(randomness, scale=scale, count=1)[0])
            half += part
        if all(_below(randomness, 2 * half + 1, 2 * (half + i)) for i in range(1, dimension + 1)):
            return [int(value) - half for value in uniform_below(randomness, 2 * half + 1, dimension)]


def _below(randomness: Randomness, numerator: int, denominator: int) -> bool:
    """A trial with this probability, exactly."""
    return int(uniform_below(randomness, denominator, 1)[0]) < numerator


def _empty(scale: int, count: int) -> Integers:
    return np.zeros(count, dtype=np.int64 if scale <= _MACHINE_SCALE or count > PIECE else object)


def _quotients(numerators: Integers, denominator: int) -> Floats:
    """Correctly rounded ratios, but for one rounding more that the margin of the caller covers.

    Python divides big integers to the nearest float64, and so does the machine where both are below 2^53. A
    magnitude above that is rounded once before.
    """
    return np.asarray(numerators / denominator, dtype=np.float64)
