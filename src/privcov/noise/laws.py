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
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, ndtr, ndtri

from privcov.linalg.arrays import Matrix
from privcov.noise.randomness import Randomness


@dataclass(frozen=True, kw_only=True)
class NoiseLaw(ABC):
    """A centred symmetric random matrix of the given dimension, entries in scaled units.

    The scale is a factor: the law of scale c is c times the law of scale 1. Repair keeps unit draws on that
    understanding.
    """

    name: ClassVar[str]
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
        """One idealized draw, for simulation only."""

    @abstractmethod
    def reach(self, odds: float) -> float:
        """Standard deviations that any linear function of the noise exceeds, on either side, with at most these odds.

        Odds are below one half. Why each bound holds: docs/explain/misread.md.
        """

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
        return float(-ndtri(odds))


class VarianceGamma(NoiseLaw):
    """A law whose linear functions are normal with a random variance: an average of independent Gamma(shape)."""

    @property
    @abstractmethod
    def shape(self) -> float:
        """At least 1, which is Laplace; the larger, the nearer to normal."""

    def reach(self, odds: float) -> float:
        return _gamma_reach(self.shape, odds)


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

    def simulate(self, randomness: Randomness) -> Matrix:
        d = self.dimension
        a, b = randomness.normals(2, d, d + 1)
        return np.asarray(self.scale * (a @ a.T - b @ b.T))

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
        return self.scale * (a + a.T) / 2


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
        return np.asarray(noise - (1 - 1 / math.sqrt(d + 1)) * np.trace(noise) / d * np.eye(d))


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
        return upper + np.triu(upper, 1).T


class LaplaceTriangle(VarianceGamma):
    """Independent Laplace(scale) entries on and above the diagonal, mirrored."""

    name = "laplace"

    @property
    def shape(self) -> float:
        return 1.0

    @property
    def diagonal_variance(self) -> float:
        return 2.0 * self.scale**2

    @property
    def offdiagonal_variance(self) -> float:
        return 2.0 * self.scale**2

    def simulate(self, randomness: Randomness) -> Matrix:
        d = self.dimension
        u = randomness.uniforms(d * d).reshape(d, d) - 0.5
        upper = np.triu(-self.scale * np.sign(u) * np.log1p(-2 * np.abs(u)))
        return np.asarray(upper + np.triu(upper, 1).T)


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
        direction = (a + a.T) / 2
        radius = -self.scale * np.log(randomness.uniforms(freedom)).sum()
        return np.asarray(radius * direction / np.linalg.norm(direction))


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
        a = randomness.normals(self.dimension, self.degrees)
        return np.asarray(self.scale * (a @ a.T - self.degrees * np.eye(self.dimension)))

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
        noise = self.scale * (a + a.T) / 2
        noise[0, 0] = 0.0
        noise[0, 1:] *= math.sqrt(2) * self.ratio
        noise[1:, 0] = noise[0, 1:]
        return noise


@cache
def joint_gaussian(ratio: str) -> type[JointGaussian]:
    """The law of one ratio, given as the decimal that is written on the certificate."""
    return type("JointGaussian", (JointGaussian,), {"name": f"joint-gaussian-{ratio}", "ratio": float(ratio)})


@dataclass(frozen=True, kw_only=True)
class Congruent(NoiseLaw):
    """T N Tᵀ for noise N of another law and a public T: what noise looks like through the shape of a frame.

    T is the identity but for a block. The variances of the diagonal, of sums and of the rest are means; linear
    functions of the noise are linear functions of N, so that their tails are those of its law. No file has this law:
    the certificate states that of N, and the shape is in the schema.

    Parameters
    ----------
    inner : NoiseLaw
        The law of N, of scale 1.
    places : tuple of int
        The places that are mixed.
    block : tuple of tuples of float
        T at these places.

    Examples
    --------
    >>> import numpy as np
    >>> law = Congruent.of(GaussianEnsemble(dimension=3, scale=2.0), places=(1, 2), block=np.diag([10.0, 1.0]))
    >>> np.sqrt(law.entry_variances).round(2)
    array([[  2.  ,  14.14,   1.41],
           [ 14.14, 200.  ,  14.14],
           [  1.41,  14.14,   2.  ]])
    """

    name = "congruent"
    inner: NoiseLaw
    places: tuple[int, ...]
    block: tuple[tuple[float, ...], ...]

    @classmethod
    def of(cls, law: NoiseLaw, *, places: tuple[int, ...], block: Matrix) -> Congruent:
        """A law seen through the T that is ``block`` at these places, and else the identity."""
        return cls(
            dimension=law.dimension,
            scale=law.scale,
            inner=replace(law, scale=1.0),
            places=places,
            block=tuple(map(tuple, block.tolist())),
        )

    @property
    def _law(self) -> NoiseLaw:
        """That of N, of its own scale."""
        return replace(self.inner, scale=self.inner.scale * self.scale)

    def behind(self, places: Sequence[int]) -> tuple[NoiseLaw, list[int], Matrix]:
        asked, own = list(places), {place: row for row, place in enumerate(self.places)}
        there = sorted({*asked, *(self.places if own.keys() & set(asked) else ())})
        at = {place: column for column, place in enumerate(there)}
        mixing = np.zeros((len(asked), len(there)))
        for row, place in enumerate(asked):
            if place in own:
                mixing[row, [at[other] for other in self.places]] = self.block[own[place]]
            else:
                mixing[row, at[place]] = 1.0
        return self._law, there, mixing

    @property
    def entry_variances(self) -> Matrix:
        variances, mixed, block = self._law.entry_variances, list(self.places), np.array(self.block)
        inside = variances[np.ix_(mixed, mixed)]
        variances[mixed] = block**2 @ variances[mixed]
        variances[:, mixed] = variances[mixed].T
        half = inside - np.diag(np.diag(inside)) / 2
        products = block[:, None, :] * block[None, :, :]
        own = block**2 @ half @ (block**2).T + np.einsum(
            "abi,ij,abj->ab", products, half, products, optimize=True
        )
        own += self._law.shared * (products.sum(axis=2) ** 2 - (products**2).sum(axis=2))
        variances[np.ix_(mixed, mixed)] = own
        return variances

    @property
    def diagonal_variance(self) -> float:
        return float(np.diag(self.entry_variances).mean())

    @property
    def sums_variance(self) -> float:
        return float(self.sums_variances.mean())

    @property
    def sums_variances(self) -> NDArray[np.float64]:
        variances, mixed = self._law.sums_variances, [place - 1 for place in self.places]
        variances[mixed] = np.array(self.block) ** 2 @ variances[mixed]
        return variances

    @property
    def offdiagonal_variance(self) -> float:
        variances, d = self.entry_variances, self.dimension
        return float((variances.sum() - np.trace(variances)) / (d * (d - 1)))

    @property
    def trace_variance(self) -> float:
        law, weights = self._law, np.eye(self.dimension)
        weights[np.ix_(self.places, self.places)] = np.array(self.block).T @ np.array(self.block)
        variances, own = law.entry_variances, np.diag(weights)
        spread = 2 * (variances * weights**2).sum() - np.diag(variances) @ own**2
        return float(spread + law.shared * (own.sum() ** 2 - (own**2).sum()))

    @property
    def shared(self) -> float:
        raise NotImplementedError("entries are correlated: ask the law behind")

    def simulate(self, randomness: Randomness) -> Matrix:
        drawn, mixed, block = self._law.simulate(randomness), list(self.places), np.array(self.block)
        drawn[mixed] = block @ drawn[mixed]
        drawn[:, mixed] = drawn[:, mixed] @ block.T
        return drawn

    def reach(self, odds: float) -> float:
        return self.inner.reach(odds)


@dataclass(frozen=True, kw_only=True)
class Summed(NoiseLaw):
    """The sum of independent noises of one law: that of a total over strata. No file has this law.

    Of normal laws the sum is one of the same kind (``summed``). Variances add. Of a sum, as of one term, a linear
    function is normal with an average of independent Gammas as its variance, so the reach of one term is enough.

    Parameters
    ----------
    inner : NoiseLaw
        The law of one term, of scale 1.
    terms : int
        How many there are.

    Examples
    --------
    >>> law = summed(LaplaceTriangle(dimension=2, scale=3.0), 50)
    >>> law.diagonal_variance, summed(GaussianEnsemble(dimension=2, scale=3.0), 4).scale
    (900.0, 6.0)
    """

    name = "sum"
    inner: NoiseLaw
    terms: int

    @property
    def _law(self) -> NoiseLaw:
        return replace(self.inner, scale=self.inner.scale * self.scale)

    @property
    def diagonal_variance(self) -> float:
        return self.terms * self._law.diagonal_variance

    @property
    def offdiagonal_variance(self) -> float:
        return self.terms * self._law.offdiagonal_variance

    @property
    def trace_variance(self) -> float:
        return self.terms * self._law.trace_variance

    def simulate(self, randomness: Randomness) -> Matrix:
        drawn = min(self.terms, _MOST_TERMS)  # of more, the same variance and a slightly heavier tail
        made = sum(self._law.simulate(randomness) for _ in range(drawn))
        return np.asarray(math.sqrt(self.terms / drawn) * made)

    def reach(self, odds: float) -> float:
        return self.inner.reach(odds)

    def r_transform(self, g: NDArray[np.complex128]) -> NDArray[np.complex128]:
        return self.terms * self._law.r_transform(g)


_MOST_TERMS = 64


def summed(law: NoiseLaw, terms: int) -> NoiseLaw:
    """The law of the sum of so many independent noises of a law."""
    if isinstance(law, Normal):
        return replace(law, scale=math.sqrt(terms) * law.scale)
    return Summed(dimension=law.dimension, scale=law.scale, inner=replace(law, scale=1.0), terms=terms)


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
