"""How often a tuned envelope accepts, at least; and how many proposals make a failure as rare as wanted.

Theorem: an envelope that ``privcov.noise.exact.tuning`` certified accepts a proposal with probability at least
1/(5√q) in dimension q, whatever the matrix and the concentration. (The least acceptance met is about
0.86/√q, at a single large eigenvalue.)

A fixed number T of proposals fails with probability at most (1 - p)^T, and a mechanism that fails so with
probability at most β in total, on every table, and otherwise satisfies ε, satisfies (ε, (1 + e^ε)·β).

Proof: docs/proofs/exact-eigenvectors.md#acceptance
"""

from __future__ import annotations

import math
from fractions import Fraction

from flint import arb, ctx, fmpq

from privcov.errors import ParameterError
from privcov.noise.exact.uniforms import Ball


def acceptance_floor(dimension: int) -> Fraction:
    """A number that the probability to accept a proposal is never below.

    >>> float(acceptance_floor(25))
    0.04
    """
    if not dimension >= 1:
        raise ParameterError("E290", f"the dimension must be at least 1, got {dimension}.")
    if dimension == 1:
        return Fraction(1)
    root = math.isqrt(dimension * 4**20 - 1) + 1  # √q in units of 2^-20, rounded up
    return Fraction(2**20, 5 * root)


def proposals_needed(dimension: int, failure: Fraction) -> int:
    """So many proposals that all of them are rejected with probability at most ``failure``.

    >>> proposals_needed(25, Fraction(1, 10**9))
    508
    """
    if not 0 < failure < 1:
        raise ParameterError("E290", f"a failure probability must be between 0 and 1, got {failure}.")
    floor = acceptance_floor(dimension)
    if floor == 1:
        return 1
    with ctx.workprec(128):
        # (1 - p)^T <= failure where T >= ln(failure)/ln(1 - p). The upper end of the ball, rounded up, is such
        # a T.
        needed = _log(failure) / _log(1 - floor)
        exact = needed.upper().fmpq()
    return -(-int(exact.p) // int(exact.q))


def _log(value: Fraction) -> Ball:
    return arb(fmpq(value.numerator, value.denominator)).log()
