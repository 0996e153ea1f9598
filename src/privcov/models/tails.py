"""The law of a test statistic: Student's, with the tails that privacy noise gives it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import chdtrc, fdtrc, ndtri, stdtrit

from privcov.linalg.arrays import Floats
from privcov.models.score_sets import brentq, secants


@dataclass(frozen=True, kw_only=True)
class Tails:
    """The law of a test statistic whose error is part sampling and part privacy noise with tails of its own.

    The noise is taken for normal with a random variance, which is Gamma with the shape that gives its excess kurtosis:
    exactly so for one Laplace entry, and for the product of two vectors with Wishart noise. Without excess the law is
    Student's, or F.

    ``share`` is the share of the variance that is privacy, ``excess`` the excess kurtosis of that part.
    """

    share: float
    excess: float
    freedom: float

    def p_value(self, size: float, count: int = 1) -> float:
        """The chance of a squared statistic as large as ``size`` with so many degrees of freedom.

        >>> round(Tails(share=1.0, excess=3.0, freedom=1e9).p_value(50.0), 6), round(float(np.exp(-10)), 6)  # Laplace
        (4.5e-05, 4.5e-05)
        """
        variances, weights = self._mixture
        if np.isinf(self.freedom):
            return float(np.minimum(1.0, weights @ chdtrc(count, size / variances)))
        return float(np.minimum(1.0, weights @ fdtrc(count, self.freedom, size / count / variances)))

    def critical(self, level: float) -> float:
        """The size that a squared statistic exceeds with the chance 1 − level."""
        normal = critical_value(level, self.freedom)
        if not self.is_heavy:
            return normal

        # Tails fall about as a power of e of the statistic's root, so that few steps meet the level.
        def beyond(root: float) -> float:
            return float(np.log(self.p_value(root**2) / (1 - level)))

        low, first = (float(np.sqrt(size)) for size in (self.least_critical(level), normal))
        height = beyond(first)
        # A normal tail falls by about first + 1 / first there.
        second = first + height / (first + 1 / first)
        root = secants(beyond, (first, height), second, between=(low, 2 * first), tolerance=1e-10 * first)
        if root is None:
            high = 2 * first
            while beyond(high) > 0:
                high *= 2
            root = brentq(beyond, low, high, rtol=1e-10)
        return root**2

    def least_critical(self, level: float) -> float:
        """What ``critical`` is not below, without a search."""
        return critical_value(level, self.freedom) / (4 if self.is_heavy else 1)

    @property
    def is_heavy(self) -> bool:
        """Whether the tails differ from Student's by anything that shows."""
        return self.excess * self.share**2 > 1e-3

    @cached_property
    def _mixture(self) -> tuple[Floats, Floats]:
        """Values of the random variance, 1 on average, and their weights."""
        if not self.is_heavy:
            return np.ones(1), np.ones(1)
        shape = 3 / self.excess
        steps = np.linspace(-24.0, 8.0, 1601) / np.sqrt(max(shape, 1.0))
        logs = shape * (steps - np.exp(steps))
        weights = np.exp(logs - logs.max())
        weights /= weights.sum()
        variances = np.exp(steps) / float(weights @ np.exp(steps))
        # The smallest of them make the smallest chances: what weighs nothing among them adds nothing to any sum.
        some = np.cumsum(weights) > 1e-20
        return 1 - self.share + self.share * variances[some], weights[some]


def critical_value(level: float, freedom: float) -> float:
    """The two-sided Student quantile, squared; the normal one for infinite freedom."""
    return float(ndtri(0.5 + level / 2) if np.isinf(freedom) else stdtrit(freedom, 0.5 + level / 2)) ** 2
