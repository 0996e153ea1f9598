"""Laws of noise that no certificate states: noise seen through a public map, and independent noises added up.

The certificate states the law that was drawn from (``privcov.noise.laws``); what a reader's columns, a total over
strata or a stratum combined with it have of that noise follows from public facts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from privcov.linalg.arrays import Matrix
from privcov.linalg.mixing import Mixing
from privcov.noise.laws import NoiseLaw, Normal
from privcov.noise.randomness import Randomness

_MOST_TERMS = 64


@dataclass(frozen=True, kw_only=True)
class Congruent(NoiseLaw):
    """T N Tᵀ for noise N of another law and a public T: what noise looks like in the columns of a release's reader.

    T takes levels from the columns that were summed in their place, and numeric columns from the shape of a frame. The
    variances of the diagonal, of sums and of the rest are means; linear functions of the noise are linear functions of
    N, so that their tails are those of its law. No file has this law: the certificate states that of N, and T follows
    from the schema.

    Parameters
    ----------
    inner : NoiseLaw
        The law of N, of scale 1.
    mixing : Mixing
        T.

    Examples
    --------
    >>> import numpy as np
    >>> mixing = Mixing(carried=(0, -1, -1), width=3, blocks=(((1, 2), (1, 2), ((10.0, 0.0), (0.0, 1.0))),))
    >>> from privcov.noise.laws import GaussianEnsemble
    >>> law = Congruent.of(GaussianEnsemble(dimension=3, scale=2.0), mixing)
    >>> np.sqrt(law.entry_variances).round(2)
    array([[  2.  ,  14.14,   1.41],
           [ 14.14, 200.  ,  14.14],
           [  1.41,  14.14,   2.  ]])
    """

    name = "congruent"
    inner: NoiseLaw
    mixing: Mixing

    @classmethod
    def of(cls, law: NoiseLaw, mixing: Mixing) -> Congruent:
        """A law seen through T."""
        return cls(
            dimension=len(mixing.carried), scale=law.scale, inner=replace(law, scale=1.0), mixing=mixing
        )

    @property
    def _law(self) -> NoiseLaw:
        """That of N, of its own scale."""
        return replace(self.inner, scale=self.inner.scale * self.scale)

    def behind(self, places: Sequence[int]) -> tuple[NoiseLaw, list[int], Matrix]:
        return self._law, *self.mixing.behind(places)

    @property
    def entry_variances(self) -> Matrix:
        law = self._law
        return self.mixing.entry_variances(law.entry_variances, law.shared)

    @property
    def diagonal_variance(self) -> float:
        return float(np.diag(self.entry_variances).mean())

    @property
    def sums_variance(self) -> float:
        return float(self.sums_variances.mean())

    @property
    def sums_variances(self) -> NDArray[np.float64]:
        return np.asarray(self.entry_variances[0, 1:])

    @property
    def offdiagonal_variance(self) -> float:
        variances, d = self.entry_variances, self.dimension
        return float((variances.sum() - np.trace(variances)) / (d * (d - 1)))

    @property
    def trace_variance(self) -> float:
        law, weights = self._law, self.mixing.matrix.T @ self.mixing.matrix
        variances, own = law.entry_variances, np.diag(weights)
        spread = 2 * (variances * weights**2).sum() - np.diag(variances) @ own**2
        return float(spread + law.shared * (own.sum() ** 2 - (own**2).sum()))

    @property
    def shared(self) -> float:
        raise NotImplementedError("entries are correlated: ask the law behind")

    def simulate(self, randomness: Randomness) -> Matrix:
        return self.mixing.seen(self._law.simulate(randomness))

    def reach(self, odds: float) -> float:
        return self.inner.reach(odds)


@dataclass(frozen=True, kw_only=True)
class Summed(NoiseLaw):
    """A sum of independent noises: that of a total over strata, or of a stratum combined with it. No file has this law.

    Of normal laws of one kind the sum is one of that kind (``summed``). Variances add. Of a sum, as of one term, a
    linear function is normal with an average of independent Gammas as its variance, so the largest reach of a term is
    enough.

    Parameters
    ----------
    terms : tuple of (NoiseLaw, int)
        The laws, each with its scale in units of ``scale``, and how many noises of each there are.

    Examples
    --------
    >>> from privcov.noise.laws import GaussianEnsemble, LaplaceTriangle
    >>> law, other = LaplaceTriangle(dimension=2, scale=3.0), LaplaceTriangle(dimension=2, scale=6.0)
    >>> summed((law, 50)).diagonal_variance, summed((law, 2), (other, 1)).diagonal_variance
    (900.0, 108.0)
    >>> summed((GaussianEnsemble(dimension=2, scale=3.0), 4)).scale
    6.0
    """

    name = "sum"
    terms: tuple[tuple[NoiseLaw, int], ...]

    @property
    def _own(self) -> list[tuple[NoiseLaw, int]]:
        """The terms in the unit of the matrix."""
        return [(replace(law, scale=law.scale * self.scale), count) for law, count in self.terms]

    @property
    def diagonal_variance(self) -> float:
        return sum(count * law.diagonal_variance for law, count in self._own)

    @property
    def offdiagonal_variance(self) -> float:
        return sum(count * law.offdiagonal_variance for law, count in self._own)

    @property
    def trace_variance(self) -> float:
        return sum(count * law.trace_variance for law, count in self._own)

    def simulate(self, randomness: Randomness) -> Matrix:
        whole, made = self.diagonal_variance, []
        for law, count in self._own:
            # Of many noises, or of some that hardly count: fewer with the same variance, and a slightly heavier tail.
            most = math.ceil(_MOST_TERMS * count * law.diagonal_variance / whole)
            drawn = min(count, max(1, most))
            made.append(math.sqrt(count / drawn) * sum(law.simulate(randomness) for _ in range(drawn)))
        return np.asarray(sum(made))

    def reach(self, odds: float) -> float:
        return max(law.reach(odds) for law, _ in self.terms)

    def excess(self, weights: Matrix) -> float:
        whole = self.diagonal_variance
        return sum(
            count * (law.diagonal_variance / whole) ** 2 * law.excess(weights) for law, count in self._own
        )

    def r_transform(self, g: NDArray[np.complex128]) -> NDArray[np.complex128]:
        return np.asarray(sum(count * law.r_transform(g) for law, count in self._own))


def summed(*terms: tuple[NoiseLaw, int]) -> NoiseLaw:
    """The law of the sum of independent noises: so many of each law."""
    (first, _), one = terms[0], terms[0][0].scale
    if isinstance(first, Normal) and len({type(law) for law, _ in terms}) == 1:
        return replace(
            first, scale=one * math.sqrt(sum(count * (law.scale / one) ** 2 for law, count in terms))
        )
    inside = tuple((replace(law, scale=law.scale / one), count) for law, count in terms)
    return Summed(dimension=first.dimension, scale=one, terms=inside)
