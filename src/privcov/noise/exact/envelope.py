"""The envelope of exact Bingham sampling: proposals Bz of standard normals z, and when to accept one.

The target is the density exp(κ·uᵀMu) on the unit sphere of R^q. With a shift σ put Ω = 2κ(σI - M) = unit·W, W
an integer matrix; then κ·uᵀMu = κσ - uᵀΩu/2. An integer matrix B makes proposals u = Bz/|Bz|, whose density
is proportional to (|z|²/|Bz|²)^(-q/2). If BᵀWB - floor·I is positive semidefinite, then for every proposal

    form = uᵀΩu = unit·zᵀ(BᵀWB)z/|Bz|²   is at least   bound = unit·floor·|z|²/|Bz|²,

and exp(-(form - q - q·ln(bound/q))/2) is at most 1 and is the ratio of the two densities up to a constant. So
every such (σ, B, floor) gives exactly the target; a poor one costs proposals only.

*How often it accepts.* Theorem: an envelope that ``privcov.noise.exact.bingham`` certified accepts a proposal with
probability at least 1/(5√q) in dimension q, whatever the matrix and the concentration. (The least acceptance met is
about 0.86/√q, at a single large eigenvalue.)

A fixed number T of proposals fails with probability at most (1 - p)^T, and a mechanism that fails so with
probability at most β in total, on every table, and otherwise satisfies ε, satisfies (ε, (1 + e^ε)·β).

Proof: docs/proofs/exact-eigenvectors.md#envelope and #acceptance
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from flint import arb, arb_mat, ctx, fmpq

from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats
from privcov.noise.exact.uniforms import Ball

Integral = Any  # flint.fmpz_mat: an exact integer matrix

_ROUNDING = 2.0**-52
"""Twice the relative error of one float64 operation."""


@dataclass(frozen=True, kw_only=True)
class Transform:
    """The integer matrix B, and B/2^bits in float64, each right to a relative 2^-52 (or to 2^-1000)."""

    exact: Integral
    floats: Floats
    bits: int

    @cached_property
    def row_sums(self) -> list[int]:
        """Bounds from above on the row sums of |B|."""
        sums = np.abs(self.floats).sum(axis=1) * (1 + 2.0**-30)
        return [math.ceil(Fraction(total) * 2**self.bits) for total in sums.tolist()]


@dataclass(frozen=True, kw_only=True)
class Envelope:
    """A certified envelope; ``privcov.noise.exact.bingham`` makes it, and nothing else may.

    ``form`` is BᵀWB and BᵀWB - floor·I is positive semidefinite. For the float filter: ``excess`` is
    BᵀWB/floor - I, each entry right to 2^-46, and ``floor_float`` is unit·floor/4^bits.
    """

    transform: Transform
    form: Integral
    unit: Fraction
    floor: int
    floor_float: float
    excess: Floats

    @cached_property
    def dimension(self) -> int:
        return int(self.form.nrows())

    def approximate(self, points: Floats) -> tuple[Floats, Floats]:
        """Exponents of acceptance for the rows of ``points``, and bounds on their errors.

        The points may be off by a relative 2^-52 and an absolute 2^-63 in every coordinate.
        """
        q = self.dimension
        transform = self.transform.floats
        proposals = points @ transform.T
        squares, sizes = (points**2).sum(axis=1), np.sqrt((proposals**2).sum(axis=1))
        with np.errstate(all="ignore"):
            # Any order of the q products in a sum errs by at most (q+4) roundings of the sum of magnitudes.
            off = (q + 4) * _ROUNDING * np.linalg.norm(transform) * (np.sqrt(squares) + 1) / sizes
            bounds = self.floor_float * squares / sizes**2
            forms = bounds * (1 + ((points @ self.excess) * points).sum(axis=1) / squares)
            exponents = acceptance_exponent(forms, bounds, q, np.log)
            errors = (forms + q) * (2 * off + q * 2.0**-45)
            errors[~(off < 2.0**-10)] = np.nan
        return exponents, errors

    def enclose(self, point: list[int]) -> Ball:
        """The exponent for the z within one unit of each of these integers; the unit of z does not matter."""
        q = self.dimension
        z = arb_mat(q, 1, [arb(centre, 1) for centre in point])
        proposal = (arb_mat(self.transform.exact) * z).entries()
        size = sum((y**2 for y in proposal), arb(0))
        square = sum((x**2 for x in z.entries()), arb(0))
        unit = arb(fmpq(self.unit.numerator, self.unit.denominator))
        form = unit * (z.transpose() * (arb_mat(self.form) * z))[0, 0] / size
        return acceptance_exponent(form, unit * self.floor * square / size, q, arb.log)


def acceptance_exponent(form: Any, bound: Any, dimension: int, log: Callable[[Any], Any]) -> Any:
    """-ln of the probability to accept; not negative, because form >= bound and x - 1 >= ln x.

    The sign trap: the logarithm is *subtracted* here, that is, acceptance is multiplied by a power of the
    envelope's form. Added, it samples another law, which looks right at high concentration.

    >>> float(acceptance_exponent(3.0, 3.0, 3, np.log))
    0.0
    """
    return (form - dimension - dimension * log(bound / dimension)) / 2


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
        # (1 - p)^T <= failure where T >= ln(failure)/ln(1 - p): at the upper end of the ball, rounded up.
        needed = _log(failure) / _log(1 - floor)
        exact = needed.upper().fmpq()
    return -(-int(exact.p) // int(exact.q))


def _log(value: Fraction) -> Ball:
    return arb(fmpq(value.numerator, value.denominator)).log()
