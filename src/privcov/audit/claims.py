"""What a guarantee forbids a single event to do: the sentences that an audit tries to refute.

An event happens with probability p on one table and q on its neighbour. Every guarantee bounds how far p may
rise above q, so a lower confidence bound on p and an upper one on q refute it or not. Each claim here gives the
least parameter that the pair (p, q) leaves possible. Proof that these are lower bounds: docs/proofs/audit.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import logsumexp, ndtr, ndtri

from privcov.accounting import gaussian_delta
from privcov.linalg.arrays import Floats

_ORDERS = 1 + np.geomspace(1e-3, 200, 40)


@dataclass(frozen=True, kw_only=True)
class Claim(ABC):
    """One number that a mechanism promises not to exceed."""

    symbol: ClassVar[str]
    allowed: float

    @abstractmethod
    def _least(self, often: Floats, rarely: Floats) -> Floats:
        """For often ≥ rarely: increasing in the first and decreasing in the second."""

    @property
    def label(self) -> str:
        return self.symbol

    def least(self, often: Floats | float, rarely: Floats | float) -> Floats:
        """The smallest parameter that lets an event of probability ``often`` have probability ``rarely`` next door."""
        p, q = np.broadcast_arrays(np.asarray(often, dtype=np.float64), np.asarray(rarely, dtype=np.float64))
        with np.errstate(all="ignore"):
            return np.where(p > q, np.maximum(self._least(np.maximum(p, q), q), 0.0), 0.0)

    def refuted_by(self, bound: float) -> bool:
        """Whether a lower bound is above the claim, beyond the rounding of floats."""
        return bound > self.allowed * (1 + 1e-9) + 1e-12

    def most_often(self, rarely: Floats) -> Floats:
        """The largest probability the claim allows beside each of these: the edge of the region it permits."""
        low, high = np.array(rarely), np.ones_like(rarely)
        for _ in range(60):
            middle = (low + high) / 2
            fine = (self.least(middle, rarely) <= self.allowed) & (
                self.least(1 - rarely, 1 - middle) <= self.allowed
            )
            low, high = np.where(fine, middle, low), np.where(fine, high, middle)
        return low

    @abstractmethod
    def delta(self, epsilon: float) -> float:
        """The δ(ε) that the claim implies, or something larger."""


@dataclass(frozen=True, kw_only=True)
class Epsilon(Claim):
    """(ε, δ) at a fixed δ, zero for pure privacy: p ≤ e^ε q + δ.

    >>> round(float(Epsilon(allowed=1.0).least(0.5, 0.1)), 3)
    1.609
    """

    symbol = "ε"
    at_delta: float = 0.0

    def _least(self, often: Floats, rarely: Floats) -> Floats:
        return np.log(np.maximum(often - self.at_delta, 0.0) / rarely)

    def delta(self, epsilon: float) -> float:
        """At the corner p = (e^ε + δ)/(1 + e^ε), q = 1 − p of the permitted region."""
        if epsilon >= self.allowed:
            return self.at_delta
        whole = math.exp(self.allowed)
        return (whole + self.at_delta - math.exp(epsilon) * (1 - self.at_delta)) / (1 + whole)


@dataclass(frozen=True, kw_only=True)
class Gaussian(Claim):
    """As hard to tell apart as N(0, 1) and N(μ, 1): Φ⁻¹(p) − Φ⁻¹(q) ≤ μ. The whole curve, where one δ sees little.

    >>> round(float(Gaussian(allowed=1.0).least(ndtr(1.0), ndtr(-1.0))), 3)
    2.0
    """

    symbol = "μ"

    def _least(self, often: Floats, rarely: Floats) -> Floats:
        return ndtri(often) - ndtri(rarely)

    def most_often(self, rarely: Floats) -> Floats:
        return ndtr(ndtri(rarely) + self.allowed)

    def delta(self, epsilon: float) -> float:
        return float(gaussian_delta(mu=self.allowed, epsilon=epsilon)) * (1 + 1e-9)


@dataclass(frozen=True, kw_only=True)
class Rho(Claim):
    """zCDP: the Rényi divergence of (p, 1 − p) from (q, 1 − q) is at most ρα, for every order α above 1.

    It holds for every zCDP mechanism, Gaussian or not: whether the event happened is post-processing.

    >>> bool(0.4 < float(Rho(allowed=0.5).least(ndtr(1.0), ndtr(0.0))) < 0.5)
    False
    """

    symbol = "ρ"

    def _least(self, often: Floats, rarely: Floats) -> Floats:
        p, q, a = often[..., None], rarely[..., None], _ORDERS
        inside = a * np.log(p) + (1 - a) * np.log(q)
        outside = np.where(p < 1, a * np.log1p(-p) + (1 - a) * np.log1p(-q), -np.inf)
        divergence = logsumexp(np.stack([inside, outside]), axis=0) / (a - 1)
        return np.asarray(np.max(divergence / a, axis=-1))

    def delta(self, epsilon: float) -> float:
        """The optimal-order bound of Canonne, Kamath and Steinke (2020), and Pinsker's inequality at ε = 0."""
        a = _ORDERS
        logs = (a - 1) * (a * self.allowed - epsilon) + a * np.log1p(-1 / a) - np.log(a - 1)
        return min(1.0, float(np.exp(logs.min())), math.sqrt(self.allowed / 2))


@dataclass(frozen=True, kw_only=True)
class Delta(Claim):
    """One point of the privacy profile: p − e^ε q ≤ δ(ε)."""

    symbol = "δ"
    at_epsilon: float

    @property
    def label(self) -> str:
        return f"δ({self.at_epsilon:.3g})"

    def _least(self, often: Floats, rarely: Floats) -> Floats:
        return often - math.exp(self.at_epsilon) * rarely

    def delta(self, epsilon: float) -> float:
        return self.allowed if epsilon >= self.at_epsilon else 1.0
