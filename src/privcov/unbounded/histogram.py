"""Private histograms with exact integer noise: stable ones over unboundedly many bins, finite ones over a range.

A person is in at most one bin, so under replace-one two counts change, by one each. Counts are multiplied by
p and get discrete Laplace noise of scale 2q for ε = p/q: each changed count costs exactly ε/2. Only the fullest
bin is ever used. Proof: docs/proofs/unbounded.md#histograms
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb, ctx, fmpq

from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats
from privcov.mechanisms.sensitivity import changed_bins
from privcov.noise.exact import discrete_laplace
from privcov.noise.randomness import Randomness
from privcov.privacy import ApproxDP, PureDP

_MOST_BINS = 2**20
_PRECISION = 256


@dataclass(frozen=True, kw_only=True)
class Noise:
    """Noisy count = multiple · count + discrete Laplace of this scale: ε in all, for one replaced person."""

    multiple: int
    scale: int

    @classmethod
    def of(cls, loss: PureDP | ApproxDP) -> Noise:
        each = loss.epsilon / changed_bins(loss.neighbours)
        return cls(multiple=each.numerator, scale=each.denominator)

    def tail(self, least: int) -> arb:
        """P(noise ≥ least) for least ≥ 0, as a ball: q^least/(1 + q) with q = exp(-1/scale)."""
        ratio = (-1 / arb(self.scale)).exp()
        return (-arb(least) / self.scale).exp() / (1 + ratio)


def threshold(noise: Noise, delta: Fraction) -> int:
    """The least certified T such that a bin of one person reaches T with probability at most δ.

    >>> threshold(Noise(multiple=1, scale=2), Fraction(1, 1000))
    14
    """
    with ctx.workprec(_PRECISION):
        budget = arb(fmpq(delta.numerator, delta.denominator))
        low, high = 0, 1
        while not noise.tail(high) <= budget:
            low, high = high, 2 * high
        if noise.tail(0) <= budget:
            return noise.multiple
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if noise.tail(middle) <= budget else (middle, high)
    return noise.multiple + high


def stable_counts(bins: Floats, *, loss: ApproxDP, randomness: Randomness) -> dict[float, int]:
    """Noisy counts of the bins that someone is in and that pass the threshold: (ε, δ) under replace-one.

    A bin in which nobody is is never released. ``bins`` holds one bin per person, NaN for none.
    """
    noise = Noise.of(loss)
    least = threshold(noise, loss.delta)
    names, counts = np.unique(bins[~np.isnan(bins)], return_counts=True)
    drawn = discrete_laplace(randomness, scale=noise.scale, count=len(names))
    noisy = {
        float(name): noise.multiple * int(count) + int(z)
        for name, count, z in zip(names, counts, drawn, strict=True)
    }
    return {name: count for name, count in noisy.items() if count >= least}


def finite_counts(
    bins: Floats, *, first: int, last: int, loss: PureDP, randomness: Randomness
) -> dict[float, int]:
    """Noisy counts of every bin from first to last, empty or not: pure ε under replace-one.

    People beyond the range are counted at its ends.
    """
    if not 0 <= last - first < _MOST_BINS:
        raise ParameterError("E245", "the public range has too many bins.", "Narrow it, or give a delta.")
    noise = Noise.of(loss)
    inside = np.clip(bins[~np.isnan(bins)], first, last).astype(np.int64) - first
    counts = np.bincount(inside, minlength=last - first + 1)
    drawn = discrete_laplace(randomness, scale=noise.scale, count=len(counts))
    return {
        float(first + place): noise.multiple * int(count) + int(z)
        for place, (count, z) in enumerate(zip(counts, drawn, strict=True))
    }


def fullest(counts: Mapping[float, int]) -> float | None:
    """The bin of the largest noisy count, the lowest of equals; None where none was released."""
    return min(counts, key=lambda name: (-counts[name], name), default=None)
