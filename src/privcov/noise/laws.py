"""The laws noise can follow: public facts about a release, in scaled units.

A mechanism draws its noise exactly (``privcov.noise.exact``); the law drawn from is a value of this module, written
on the certificate and used by everything that comes after: repair, intervals, predicted error. ``simulate``
draws idealized copies of the noise for those data-free purposes and never reaches a release.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np
import scipy  # its parts load on use: they take a third of a second, and a plan does without
from numpy.typing import NDArray

from privcov.linalg.arrays import Matrix
from privcov.noise.randomness import Counted, Randomness, Stacked

_WORDS_AT_ONCE = 2**19
"""Of simulations in one go: four megabytes, so that they stay near the processor."""


@dataclass(frozen=True, kw_only=True)
class NoiseLaw(ABC):
    """A centred symmetric random matrix of the given dimension, entries in scaled units.

    The scale is a factor: the law of scale c is c times the law of scale 1. Repair keeps unit draws on that
    understanding.
    """

    name: ClassVar[str]
    independent: ClassVar[bool] = False
    """Whether entries are, so that several functions of the noise seldom lie far out together."""
    dimension: int
    scale: float

    @property
    @abstractmethod
    def diagonal_variance(self) -> float: ...

    @property
    @abstractmethod
    def offdiagonal_variance(self) -> float: ...

    @abstractmethod
    def simulate(self, randomness: Randomness) -> Matrix:
        """One idealized draw, for simulation only; of a ``Stacked`` source one for each of its streams."""

    def simulations(self, randomness: Randomness, count: int) -> Matrix:
        """As many draws as asked for, one after the other on the first axis: those that ``simulate`` gives in turn."""
        counted = Counted(randomness)
        drawn = np.empty((count, self.dimension, self.dimension))
        drawn[:1] = self.simulate(counted)
        at_once = max(1, _WORDS_AT_ONCE // counted.taken)
        for start in range(1, count, at_once):
            some = min(at_once, count - start)
            words = randomness.words(some * counted.taken).reshape(some, counted.taken)
            drawn[start : start + some] = self.simulate(Stacked(words))
        return drawn

    @abstractmethod
    def reach(self, odds: float) -> float:
        """Standard deviations that any linear function of the noise exceeds, on either side, with at most these odds.

        Odds are below one half. Why each bound holds: docs/explain/misread.md.
        """

    def excess(self, weights: Matrix) -> float:
        """The excess kurtosis of the sum of weights · noise over all entries, for a symmetric matrix of weights.

        0 is normal, 3 is Laplace.
        """
        return 0.0

    def r_transform(self, g: NDArray[np.complex128]) -> NDArray[np.complex128]:
        """R-transform of the limiting spectrum; second order (semicircle) unless a law knows better."""
        return self.offdiagonal_variance * self.dimension * g

    @property
    def entry_variances(self) -> Matrix:
        """The variance of every entry."""
        variances = np.full((self.dimension, self.dimension), self.offdiagonal_variance)
        np.fill_diagonal(variances, self.diagonal_variance)
        return variances

    @property
    def sums_variance(self) -> float:
        """The variance of an entry of the first row, but for the diagonal: with an intercept, of a sum."""
        return self.offdiagonal_variance

    @property
    def sums_variances(self) -> NDArray[np.float64]:
        """The same for each entry of the first row but the first."""
        return np.full(self.dimension - 1, self.sums_variance)

    @property
    def trace_variance(self) -> float:
        return self.dimension * self.diagonal_variance

    @property
    def shared(self) -> float:
        """The covariance of two entries on the diagonal; other entries are not correlated."""
        d = self.dimension  # the trace's variance is d variances plus d(d−1) covariances of diagonal entries
        return 0.0 if d < 2 else (self.trace_variance - d * self.diagonal_variance) / (d * (d - 1))

    def behind(self, places: Sequence[int]) -> tuple[NoiseLaw, list[int], Matrix]:
        """The law whose entries are uncorrelated, which of its places some places here depend on, and how.

        With (law, there, mixing): the noise at ``places`` is mixing · N[there, there] · mixingᵀ, for N of that law.
        """
        return self, list(places), np.eye(len(places))

    @property
    def rms_frobenius(self) -> float:
        """Root mean square Frobenius norm: the expected error of the raw release."""
        d = self.dimension
        return math.sqrt(d * self.diagonal_variance + d * (d - 1) * self.offdiagonal_variance)


class Normal(NoiseLaw):
    """A law whose linear functions are all normal."""

    def reach(self, odds: float) -> float:
        return float(-scipy.special.ndtri(odds))


class VarianceGamma(NoiseLaw):
    """A law whose linear functions are normal with a random variance: an average of independent Gamma(shape)."""

    @property
    @abstractmethod
    def shape(self) -> float:
        """At least 1, which is Laplace; the larger, the nearer to normal."""

    def reach(self, odds: float) -> float:
        return _gamma_reach(self.shape, odds)

    def excess(self, weights: Matrix) -> float:
        return 3 / self.shape


class WishartDifference(VarianceGamma):
    """AAᵀ − BBᵀ with A, B of d × (d+1) independent N(0, scale) entries; scale = 1/(2ε′) (variance)."""

    name = "wishart-difference"

    @property
    def shape(self) -> float:
        return (self.dimension + 1) / 2

    @property
    def diagonal_variance(self) -> float:
        return 4.0 * self.scale**2 * (self.dimension + 1)

    @property
    def offdiagonal_variance(self) -> float:
        return self.diagonal_variance / 2

    def excess(self, weights: Matrix) -> float:
        return super().excess(weights) * _spectral_concentration(weights)

    def simulate(self, randomness: Randomness) -> Matrix:
        d = self.dimension
        both = randomness.normals(2, d, d + 1)
        a, b = both[..., 0, :, :], both[..., 1, :, :]
        return np.asarray(self.scale * (a @ a.mT - b @ b.mT))

    def r_transform(self, g: NDArray[np.complex128]) -> NDArray[np.complex128]:
        s, d = self.scale, self.dimension
        return 2 * s * s * (d + 1) * d * g / (1 - (s * d * g) ** 2)


class GaussianEnsemble(Normal):
    """Gaussian orthogonal ensemble: diagonal N(0, scale²), off-diagonal N(0, scale²/2); scale is a std."""

    name = "gaussian"

    @property
    def diagonal_variance(self) -> float:
        return self.scale**2

    @property
    def offdiagonal_variance(self) -> float:
        return self.scale**2 / 2

    def simulate(self, randomness: Randomness) -> Matrix:
        a = randomness.normals(self.dimension, self.dimension)
        return self.scale * (a + a.mT) / 2


class GaussianFreeTrace(GaussianEnsemble):
    """The Gaussian ensemble with its trace component shrunk by 1/√(d+1), free under replace-one."""

    name = "gaussian-free-trace"

    @property
    def trace_variance(self) -> float:
        return self.scale**2 * self.dimension / (self.dimension + 1)

    @property
    def diagonal_variance(self) -> float:
        return self.scale**2 * (1 - 1 / (self.dimension + 1))

    def simulate(self, randomness: Randomness) -> Matrix:
        d = self.dimension
        noise = super().simulate(randomness)
        trace = np.trace(noise, axis1=-2, axis2=-1)[..., None, None]
        return np.asarray(noise - (1 - 1 / math.sqrt(d + 1)) * trace / d * np.eye(d))


class GaussianTriangle(Normal):
    """Independent N(0, scale²) entries on and above the diagonal, mirrored: as the papers draw it."""

    name = "gaussian-triangle"

    @property
    def diagonal_variance(self) -> float:
        return self.scale**2

    @property
    def offdiagonal_variance(self) -> float:
        return self.scale**2

    def simulate(self, randomness: Randomness) -> Matrix:
        upper = np.triu(self.scale * randomness.normals(self.dimension, self.dimension))
        return upper + np.triu(upper, 1).mT


class LaplaceTriangle(VarianceGamma):
    """Independent Laplace(scale) entries on and above the diagonal, mirrored."""

    name = "laplace"
    independent = True

    @property
    def shape(self) -> float:
        return 1.0

    @property
    def diagonal_variance(self) -> float:
        return 2.0 * self.scale**2

    @property
    def offdiagonal_variance(self) -> float:
        return 2.0 * self.scale**2

    def excess(self, weights: Matrix) -> float:
        halves = 2 * weights - np.diag(np.diag(weights))  # an entry off the diagonal counts twice
        return super().excess(weights) * _concentration(halves[np.triu_indices(len(weights))])

    def simulate(self, randomness: Randomness) -> Matrix:
        d = self.dimension
        drawn = randomness.uniforms(d * d)
        u = drawn.reshape(*drawn.shape[:-1], d, d) - 0.5
        upper = np.triu(-self.scale * np.sign(u) * np.log1p(-2 * np.abs(u)))
        return np.asarray(upper + np.triu(upper, 1).mT)


class FrobeniusBall(VarianceGamma):
    """Density proportional to exp(−‖Z‖_F / scale): a Gamma(d(d+1)/2) radius in a uniform direction."""

    name = "frobenius"

    @property
    def shape(self) -> float:
        return (self.dimension * (self.dimension + 1) // 2 + 1) / 2

    @property
    def diagonal_variance(self) -> float:
        freedom = self.dimension * (self.dimension + 1) // 2
        return self.scale**2 * (freedom + 1)

    @property
    def offdiagonal_variance(self) -> float:
        return self.diagonal_variance / 2

    def simulate(self, randomness: Randomness) -> Matrix:
        freedom = self.dimension * (self.dimension + 1) // 2
        a = randomness.normals(self.dimension, self.dimension)
        direction = (a + a.mT) / 2
        flat = direction.reshape(*direction.shape[:-2], -1)
        radius = -self.scale * np.log(randomness.uniforms(freedom)).sum(axis=-1)[..., None, None]
        return np.asarray(radius * direction / np.sqrt(np.vecdot(flat, flat))[..., None, None])


class CentredWishart(NoiseLaw):
    """scale·(AAᵀ − k·I) with A of d × k independent N(0, 1) entries, k the ``degrees`` of the class."""

    name = "wishart"
    degrees: ClassVar[int]

    def __reduce__(self) -> tuple[object, ...]:
        return _revive, (self.name, self.dimension, self.scale)

    @property
    def diagonal_variance(self) -> float:
        return 2.0 * self.degrees * self.scale**2

    @property
    def offdiagonal_variance(self) -> float:
        return self.degrees * self.scale**2

    def simulate(self, randomness: Randomness) -> Matrix:
        d, k = self.dimension, self.degrees
        if k < 2 * d:
            a = randomness.normals(d, k)
        else:  # Bartlett: a triangle of the same law, of d² numbers in place of dk
            a = np.tril(randomness.normals(d, d), -1)
            squares = 2 * scipy.special.gammaincinv((k - np.arange(d)) / 2, randomness.uniforms(d))
            np.einsum("...ii->...i", a)[...] = np.sqrt(squares)
        return np.asarray(self.scale * (a @ a.mT - k * np.eye(d)))

    def excess(self, weights: Matrix) -> float:
        return 12 / self.degrees * _spectral_concentration(weights)

    def reach(self, odds: float) -> float:
        # Chernoff, for every pull at once; the heaviest tail is the right one of a single centred chi-square.
        pulls = np.linspace(0.001, 0.999, 999)
        moments = -self.degrees / 2 * (np.log1p(-pulls) + pulls)
        return float(((moments - math.log(odds)) / (pulls * math.sqrt(self.degrees / 2))).min())

    def r_transform(self, g: NDArray[np.complex128]) -> NDArray[np.complex128]:
        reach = self.scale * self.dimension * g
        return self.degrees * self.scale * reach / (1 - reach)


@cache
def centred_wishart(degrees: int) -> type[CentredWishart]:
    """The law of one number of degrees: a class, so that a law stays a name, a dimension and a scale."""
    return type("CentredWishart", (CentredWishart,), {"name": f"wishart-{degrees}", "degrees": degrees})


class JointGaussian(Normal):
    """Gaussian noise that spares the intercept's own entry.

    The rest of the intercept's row has N(0, (ratio·scale)²), with ``ratio`` of the class; the block of the other
    columns has the Gaussian orthogonal ensemble of standard deviation ``scale``.

    The variances are means over the diagonal and over the rest.
    """

    name = "joint-gaussian"
    ratio: ClassVar[float]

    def __reduce__(self) -> tuple[object, ...]:
        return _revive, (self.name, self.dimension, self.scale)

    @property
    def diagonal_variance(self) -> float:
        return self.scale**2 * (1 - 1 / self.dimension)

    @property
    def offdiagonal_variance(self) -> float:
        rest = (self.dimension - 2) / 4  # each of the d−1 sums goes with so many entries of variance 1/2 each
        return self.scale**2 * (self.ratio**2 + rest) * 2 / self.dimension

    @property
    def sums_variance(self) -> float:
        return (self.ratio * self.scale) ** 2

    @property
    def entry_variances(self) -> Matrix:
        variances = np.full((self.dimension, self.dimension), self.scale**2 / 2)
        np.fill_diagonal(variances, self.scale**2)
        variances[0, :] = variances[:, 0] = self.sums_variance
        variances[0, 0] = 0.0
        return variances

    def simulate(self, randomness: Randomness) -> Matrix:
        a = randomness.normals(self.dimension, self.dimension)
        noise = self.scale * (a + a.mT) / 2
        noise[..., 0, 0] = 0.0
        noise[..., 0, 1:] *= math.sqrt(2) * self.ratio
        noise[..., 1:, 0] = noise[..., 0, 1:]
        return noise


@cache
def joint_gaussian(ratio: str) -> type[JointGaussian]:
    """The law of one ratio, given as the decimal that is written on the certificate."""
    return type("JointGaussian", (JointGaussian,), {"name": f"joint-gaussian-{ratio}", "ratio": float(ratio)})


class _Laws(dict[str, type[NoiseLaw]]):
    """Laws by name; a family's member is found by the number that ends its name."""

    def __missing__(self, name: str) -> type[NoiseLaw]:
        family, _, number = name.rpartition("-")
        if family == "wishart" and re.fullmatch(r"[1-9]\d{0,8}", number):
            return centred_wishart(int(number))
        if family == "joint-gaussian" and re.fullmatch(r"\d{1,9}\.\d{6}", number):
            return joint_gaussian(number)
        raise KeyError(name)


LAWS: dict[str, type[NoiseLaw]] = _Laws(
    (law.name, law)
    for law in (
        WishartDifference,
        GaussianEnsemble,
        GaussianFreeTrace,
        GaussianTriangle,
        LaplaceTriangle,
        FrobeniusBall,
    )
)


def _concentration(weights: NDArray[np.float64]) -> float:
    """Σw⁴ / (Σw²)², from 1 for one weight to 1/n for n equal ones: what is left of the excess of one term.

    >>> _concentration(np.array([1.0, -1.0]))
    0.5
    """
    squares = weights**2
    whole = float(squares.sum())
    return float((squares**2).sum()) / whole**2 if whole > 0 else 0.0


def _spectral_concentration(weights: Matrix) -> float:
    """That of the eigenvalues of a symmetric matrix, from traces: Σw⁴ = ‖K²‖² and Σw² = ‖K‖².

    >>> round(_spectral_concentration(np.array([[0.0, 1.0], [1.0, 0.0]])), 12)
    0.5
    """
    whole = float((weights**2).sum())
    return float(((weights @ weights) ** 2).sum()) / whole**2 if whole > 0 else 0.0


@cache
def _gamma_reach(shape: float, odds: float) -> float:
    """The t at which the odds of X > t are met, X normal with an average of independent Gamma(shape) as its variance.

    Given the variance v the odds are g(v) = Φ(−t/√v), convex up to v = t²/3 and concave beyond; h continues g by its
    tangent there, so that h ≥ g is convex, and a convex function of an average is largest in mean for one term.

    >>> round(_gamma_reach(1.0, 0.0001), 3), round(math.log(1 / 0.0002) / math.sqrt(2), 3)  # Laplace
    (6.023, 6.023)
    """
    steps = np.linspace(-18.0, 6.0, 4001)
    v = np.exp(steps)
    gammaln, ndtr = scipy.special.gammaln, scipy.special.ndtr
    weights = np.exp(shape * (steps - v) + shape * math.log(shape) - gammaln(shape)) * (steps[1] - steps[0])

    def bound(t: float) -> float:
        bend = t * t / 3
        slope = math.sqrt(27 / (8 * math.pi)) * math.exp(-1.5) / t**2
        odds_given = np.where(v < bend, ndtr(-t / np.sqrt(v)), ndtr(-math.sqrt(3)) + slope * (v - bend))
        return float(weights @ odds_given)

    low, high = 0.5, 1.0
    while bound(high) > odds:
        low, high = high, 2 * high
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if bound(middle) > odds else (low, middle)
    return high


def _revive(name: str, dimension: int, scale: float) -> NoiseLaw:
    """A law of a family from a pickle, which cannot name a class made on demand."""
    return LAWS[name](dimension=dimension, scale=scale)
