"""Mechanisms broken on purpose, one fault each. Nothing under ``src`` may ever reach them; an audit must fail them.

Where a fault is one of calibration the law on the certificate is as wrong as the noise, so that goodness of fit
has nothing to see and the attack must find it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from fractions import Fraction

import numpy as np

from privcov.mechanisms.base import AdditiveMechanism, Noise
from privcov.mechanisms.eigenvectors import Eigenvectors, _Draw
from privcov.mechanisms.frobenius import Frobenius
from privcov.mechanisms.gaussian import Gaussian
from privcov.mechanisms.laplace import Laplace
from privcov.mechanisms.sensitivity import Sensitivity
from privcov.mechanisms.spectral import FloatSpectral
from privcov.mechanisms.symmetric_wishart import SymmetricWishart
from privcov.noise.exact import discrete_laplace, wishart
from privcov.noise.randomness import rehearsal
from privcov.summing.gram import Gram

ROOT = Fraction(math.isqrt(2 * 10**24), 10**12)
"""√2, from below."""


class WithdrawnWishart(AdditiveMechanism):
    """The 2016 mechanism: one Wishart matrix, all noise on one side (docs/refuted/sn.md)."""

    name = "sn"
    kinds = ("pure",)
    summary = best_at = proof = "withdrawn"

    def law(self, *, loss, grid):
        return None

    def draw(self, *, loss, grid, randomness):
        return Noise(self.exact_noise(loss=loss, grid=grid, randomness=randomness))

    def exact_noise(self, *, loss, grid, randomness):
        scale = Sensitivity.of(grid, loss.neighbours).nuclear / (2 * loss.amounts["epsilon"])
        return wishart(randomness, dimension=grid.dimension, degrees=grid.dimension + 1, scale=scale)


def _less(kind, method, factor):
    """A subclass whose calibration is too small by a factor, on the certificate too."""

    def scaled(self, *arguments):
        right = getattr(super(made, self), method)(*arguments)
        less = Fraction(right) / factor
        return math.ceil(less) if isinstance(right, int) else less

    made = type(f"Less{kind.__name__}", (kind,), {method: scaled, "__doc__": f"{kind.__name__}, too little."})
    return made


def _settled(kind):
    """A subclass that is calibrated for strata as if a person who moves changed one of them only."""

    def law(self, *, loss, grid):
        return kind.law(self, loss=loss, grid=replace(grid, strata=False))

    def draw(self, *, loss, grid, randomness):
        return kind.draw(self, loss=loss, grid=replace(grid, strata=False), randomness=randomness)

    return type(f"Settled{kind.__name__}", (kind,), {"law": law, "draw": draw, "__doc__": _settled.__doc__})


def _light(kind):
    """A subclass that is calibrated as if rows of an average weight were the longest."""

    def lighter(grid):
        return replace(grid, squared_norm_bound=grid.squared_norm_bound // 2)

    def law(self, *, loss, grid):
        return kind.law(self, loss=loss, grid=lighter(grid))

    def draw(self, *, loss, grid, randomness):
        return kind.draw(self, loss=loss, grid=lighter(grid), randomness=randomness)

    return type(f"Light{kind.__name__}", (kind,), {"law": law, "draw": draw, "__doc__": _light.__doc__})


LightFrobenius, LightGaussian = _light(Frobenius), _light(Gaussian)
SettledLaplace, SettledGaussian = _settled(Laplace), _settled(Gaussian)
SettledFrobenius, SettledSymmetricWishart = _settled(Frobenius), _settled(SymmetricWishart)

HalfLaplace, HalfGaussian = _less(Laplace, "_scale", 2), _less(Gaussian, "_std", 2)
AddRemoveLaplace, AddRemoveGaussian = _less(Laplace, "_scale", ROOT), _less(Gaussian, "_std", ROOT)


class HalfSymmetricWishart(SymmetricWishart):
    """Half the variance of the factors, so half the noise."""

    factor = 2

    def law(self, *, loss, grid):
        return SymmetricWishart().law(loss=self.factor * loss, grid=grid)

    def exact_noise(self, *, loss, grid, randomness):
        return super().exact_noise(loss=self.factor * loss, grid=grid, randomness=randomness)


class AddRemoveSymmetricWishart(HalfSymmetricWishart):
    """Noise too small by √2."""

    def law(self, *, loss, grid):
        return SymmetricWishart().law(loss=_times(loss, ROOT), grid=grid)

    def exact_noise(self, *, loss, grid, randomness):
        return SymmetricWishart().exact_noise(loss=_times(loss, ROOT), grid=grid, randomness=randomness)


def _times(loss, factor):
    return type(loss)(epsilon=factor * loss.epsilon, neighbours=loss.neighbours)


class AveragedLaplace(Laplace):
    """A full matrix of Laplace noise made symmetric by averaging, which thins the tails off the diagonal."""

    def exact_noise(self, *, loss, grid, randomness):
        d = grid.dimension
        full = discrete_laplace(randomness, scale=self._scale(loss, grid), count=d * d).reshape(d, d)
        return ((full + full.T) // 2)[np.triu_indices(d)]


class CoarseLaplace(Laplace):
    """Noise on a coarser grid than the data: the low bits of the data shine through."""

    def exact_noise(self, *, loss, grid, randomness):
        fine = super().exact_noise(loss=loss, grid=grid, randomness=randomness)
        return fine // 2**12 * 2**12


class FloatLaplace(Laplace):
    """Noise in floats: what is released lies between the points of the grid."""

    def exact_noise(self, *, loss, grid, randomness):
        return super().exact_noise(loss=loss, grid=grid, randomness=randomness) / 3


class SeededLaplace(Laplace):
    """The same noise every time."""

    def exact_noise(self, *, loss, grid, randomness):
        return super().exact_noise(loss=loss, grid=grid, randomness=rehearsal(7))


def _like(draw, kind):
    return kind(*(getattr(draw, field.name) for field in fields(draw)))


def with_exponent(factor):
    """Eigenvectors whose coefficient is ``factor`` times the tight one; 4 is exp(2ε·uᵀCu), as some code has it."""

    class Sharper(_Draw):
        def _exponents(self, spectrum, *, draws):
            return [factor * exponent for exponent in super()._exponents(spectrum, draws=draws)]

    @dataclass(frozen=True, kw_only=True)
    class SharperEigenvectors(Eigenvectors):
        def draw(self, *, loss, grid, randomness):
            return _like(super().draw(loss=loss, grid=grid, randomness=randomness), Sharper)

    return SharperEigenvectors()


class HalfValues(Eigenvectors):
    """The noise of the values halved; the vectors are sound."""

    def draw(self, *, loss, grid, randomness):
        made = super().draw(loss=loss, grid=grid, randomness=randomness)
        for what in made.noise:
            made.noise[what] = made.noise[what] // 2
        return made


def inverted(forms, dimension):
    """The sign trap: the logarithm is subtracted."""
    return 0.5 * (dimension - forms) - 0.5 * dimension * np.log(forms / dimension)


def always(forms, dimension):
    """No trial at all."""
    return np.zeros(forms.shape)


def with_acceptance(log_acceptance):
    """Eigenvectors of rank one whose rejection sampler accepts by another rule; float64."""

    class OtherSpectral(FloatSpectral):
        def chain(self, randomness, exponents, rank, proposals):
            return sample(randomness, self._matrix, float(exponents[0]), log_acceptance)[None, :]

    class OtherDraw(_Draw):
        def _answer(self, gram: Gram):
            opened = OtherSpectral(gram.reveal_to_mechanism(), self.sensitivity.dimension)
            vectors = opened.chain(self.randomness, self._exponents([], draws=1), 1, None)
            return opened.assemble(vectors, [opened.quotients(vectors)[0] + int(self.noise["values"][0])])

    @dataclass(frozen=True, kw_only=True)
    class OtherEigenvectors(Eigenvectors):
        def draw(self, *, loss, grid, randomness):
            return _like(super().draw(loss=loss, grid=grid, randomness=randomness), OtherDraw)

    return OtherEigenvectors(arithmetic="idealized", rank=1, split="uniform")


def sample(randomness, matrix, coefficient, log_acceptance):
    """The Kent–Ganeiber–Mardia sampler, one vector, with a given rule of acceptance, scaled to be at most 1."""
    values, basis = np.linalg.eigh(matrix)
    d, spread = len(values), 2 * coefficient * (values[-1] - values)
    low, high = 1e-9, float(d)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if (1 / (middle + spread)).sum() > 1 else (low, middle)
    precision = low + spread
    # v lies between the extreme precisions, and every rule here is monotone or has its maximum at v = d.
    ends = np.array([precision.min(), precision.max(), min(max(d, precision.min()), precision.max())])
    largest = log_acceptance(ends, d).max()
    while True:
        points = randomness.normals(16, d) / np.sqrt(precision)
        size = (points**2).sum(1)
        logs = log_acceptance(points**2 @ precision / size, d) - largest
        accepted = np.flatnonzero(np.log(randomness.uniforms(16)) < logs)
        if accepted.size:
            return basis @ (points[accepted[0]] / math.sqrt(size[accepted[0]]))
