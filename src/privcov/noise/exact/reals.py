"""Standard normals and unit exponentials as lazily refined reals.

A variate is (sign, whole part k, fraction x): the sign and k are known, x is a uniform real of which the
first 64 bits are drawn and more can be revealed. Following C. F. F. Karney, "Sampling exactly from the normal
distribution" (ACM TOMS 2016): for a normal, P(k) is proportional to exp(-k²/2) and (k, x) is accepted with
probability exp(-x(2k+x)/2), so that the density at k+x is proportional to exp(-(k+x)²/2); for an exponential
P(k) is proportional to exp(-k) and x is accepted with probability exp(-x).

*Why the bits not yet drawn stay fair.* A trial accepts when V < p(x) for a second uniform real V. The filter
and the judge answer only when the answer is the same for every x and every V that continue the bits drawn so
far. So acceptance is a function of drawn bits alone, and the others are independent of it. If a judge had to
draw more bits of x, they are kept and come first when x is refined.

Proof: docs/proofs/exact-sampling.md#reals
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from privcov.noise.exact.trials import exp_trials, exponential_survival, until_accepted, whole_numbers
from privcov.noise.exact.uniforms import Ball, Indices, LazyUniforms, Mask, fair_signs, in_pieces
from privcov.noise.randomness import Randomness


@dataclass(frozen=True, kw_only=True)
class LazyReals:
    """Independent reals, each ±(whole + fraction); reading more words narrows a real and never moves it.

    >>> from privcov.noise.randomness import rehearsal
    >>> reals = normals(rehearsal(1), 5)
    >>> coarse, fine = reals.lower(np.arange(5), 1), reals.lower(np.arange(5), 2)
    >>> bool(((fine >> 64) == coarse).all())
    True
    """

    negative: Mask
    whole: NDArray[np.int64]
    fraction: LazyUniforms

    def magnitudes(self, where: Indices, words: int) -> NDArray[Any]:
        """Integers m with the magnitude in ``[m, m+1)·2^(-64·words)``."""
        magnitudes: NDArray[Any] = self.whole[where].astype(object)
        for column in self.fraction.columns(words):
            magnitudes = (magnitudes << 64) + column[where].astype(object)
        return magnitudes

    def floats(self, where: Indices) -> NDArray[np.float64]:
        """Approximations, the sign included, within (2 + |real|)·2^-53 of the real."""
        sizes = self.whole[where] + self.fraction.floats(where)
        return np.where(self.negative[where], -sizes, sizes)

    def lower(self, where: Indices, words: int) -> NDArray[Any]:
        """Integers n with the real in ``[n, n+1]·2^(-64·words)``, the sign included."""
        magnitudes = self.magnitudes(where, words)
        # -m-1 is the lower end of a negative real's interval, and the bitwise complement of m.
        return np.where(self.negative[where], ~magnitudes, magnitudes)


def normals(randomness: Randomness, count: int) -> LazyReals:
    """Independent standard normals, exactly distributed.

    >>> from privcov.noise.randomness import rehearsal
    >>> int(normals(rehearsal(1), 1000).whole.max()) in (2, 3, 4)
    True
    """
    whole = np.zeros(count, dtype=np.int64)
    fraction = LazyUniforms(randomness, count)

    def propose(where: Indices) -> Mask:
        k = whole_numbers(LazyUniforms(randomness, where.size), _half_normal_survival)
        x = fraction.floats(where)

        def exact(index: int, words: int) -> Ball:
            ball = fraction.ball(int(where[index]), words)
            return ball * (2 * int(k[index]) + ball) / 2

        accepted = exp_trials(randomness, x * (2 * k + x) / 2, exact)
        whole[where] = k
        fraction.renew(where[~accepted])
        return accepted

    until_accepted(count, propose)
    return LazyReals(negative=fair_signs(randomness, count), whole=whole, fraction=fraction)


def exponentials(randomness: Randomness, count: int) -> LazyReals:
    """Independent unit exponentials, exactly distributed.

    >>> from privcov.noise.randomness import rehearsal
    >>> bool(exponentials(rehearsal(1), 1000).negative.any())
    False
    """
    fraction = LazyUniforms(randomness, count)

    def propose(where: Indices) -> Mask:
        def exact(index: int, words: int) -> Ball:
            return fraction.ball(int(where[index]), words)

        accepted = exp_trials(randomness, fraction.floats(where), exact)
        fraction.renew(where[~accepted])
        return accepted

    until_accepted(count, propose)
    # The whole part is independent of the fraction, so one draw serves however often that was redrawn.
    whole = np.zeros(count, dtype=np.int64)
    for places in in_pieces(np.arange(count)):
        whole[places] = whole_numbers(LazyUniforms(randomness, places.size), exponential_survival)
    return LazyReals(negative=np.zeros(count, dtype=np.bool_), whole=whole, fraction=fraction)


def _half_normal_survival(j: int) -> Ball:
    """P(k >= j) for P(k) proportional to exp(-k²/2)."""
    return _weight_from(j) / _weight_from(0)


def _weight_from(j: int) -> Ball:
    """The sum of exp(-i²/2) over i >= j: terms down to the working precision, a ball for the rest."""
    end = j + math.isqrt(2 * ctx.prec) + 2
    total = sum((arb(-i * i) / 2).exp() for i in range(j, end))
    # From i = end on the terms fall faster than halving, so what is left lies in [0, 2]·exp(-end²/2).
    return total + (arb(-end * end) / 2).exp() * arb(1, 1)
