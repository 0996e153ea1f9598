"""Eigenvectors and eigenvalues from two separate Gaussians (Dong, Liang and Yi 2022)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Never

import numpy as np

from privcov.accounting import gaussian_mu
from privcov.errors import ParameterError
from privcov.linalg.devices import eigh
from privcov.mechanisms.base import DataDrivenMechanism, Draw, Upper
from privcov.mechanisms.predicted import paired_error
from privcov.mechanisms.sensitivity import Sensitivity, sqrt_up
from privcov.mechanisms.spectral import SPECTRAL, Spectral
from privcov.noise.exact import gaussian_ensemble, rounded_normals
from privcov.noise.laws import GaussianEnsemble, GaussianTriangle
from privcov.noise.randomness import Randomness
from privcov.privacy import ApproxDP, Loss, Neighbours
from privcov.schema.grid import Grid
from privcov.summing.gram import Gram

EXACT_COLUMNS = 64


@dataclass(frozen=True, kw_only=True)
class Separate(DataDrivenMechanism):
    """Eigenvectors of C + Gaussian noise, paired in order with eigenvalues of C + Gaussian noise.

    Guarantee: each half is a Gaussian mechanism of μ/√2, so together they are μ-Gaussian private: μ²/2-zCDP,
    and (ε, δ) by the exact profile. Everything after the two draws is post-processing: the eigenvectors of the
    noisy matrix (by ``eigh``, in float64), the sorting, the clipping of values to [0, n·R²] where n is public
    and to at least 0 elsewhere. ``constants="published"`` draws the noise for vectors with independent entries of
    one size, as the 2022 paper does, under replace-one alone. Proof: docs/proofs/separate.md.
    """

    name = "separate"
    kinds = ("zcdp", "approximate")
    summary = "takes eigenvectors from one Gaussian draw and eigenvalues from another, paired in order"
    best_at = "many columns and a small trace (the 2022 paper)"
    proof = "docs/proofs/separate.md"
    as_published = {"constants": "published"}  # noqa: RUF012 - a constant of the class

    constants: Literal["tight", "published"] = "tight"

    def check(self, loss: Loss) -> None:
        super().check(loss)
        if self.constants == "published" and loss.neighbours is not Neighbours.REPLACE_ONE:
            _needs_public_count()

    def expected_error(self, *, loss: Loss, grid: Grid, spectrum: Sequence[float]) -> float | None:
        """Pair by pair, where every eigenvalue is far from zero and from all but one other."""
        if self.constants == "published":  # its noise prefers the axes, so a spectrum says too little
            return None
        vectors_std, values_std = (float(std * grid.unit) for std in self.stds(loss=loss, grid=grid))
        return paired_error(spectrum, vectors_std=vectors_std, values_std=values_std)

    def stds(self, *, loss: Loss, grid: Grid) -> tuple[Fraction, Fraction]:
        """Of a diagonal entry of the noise for vectors, and of the noise of a value, in grid units."""
        sensitivity, multiple = Sensitivity.of(grid, loss.neighbours), _std_over_sensitivity(loss)
        values = sensitivity.values_l2(grid.dimension, excess=Fraction(0))
        return sensitivity.frobenius * multiple, values * multiple

    @property
    def _offdiagonal(self) -> Fraction:
        """Off-diagonal over diagonal standard deviation: 1/√2, or 1 as the paper draws it."""
        return Fraction(1) if self.constants == "published" else sqrt_up(Fraction(1, 2))

    def as_zcdp(self, loss: Loss) -> Fraction:
        """μ²/2, whatever the loss was said in: half from each of the two Gaussians."""
        return 1 / _std_over_sensitivity(loss) ** 2

    def draw(self, *, loss: Loss, grid: Grid, randomness: Randomness) -> _Draw:
        self.check(loss)
        d, public = grid.dimension, loss.neighbours.count_is_public(grid.max_rows_per_person)
        self.check_columns(d, most=EXACT_COLUMNS, instead="gaussian")
        if self.constants == "published" and not public:
            _needs_public_count()
        vectors_std, values_std = self.stds(loss=loss, grid=grid)
        if self.arithmetic == "exact":
            for_vectors = gaussian_ensemble(
                randomness,
                dimension=d,
                diagonal_std=vectors_std,
                offdiagonal_std=vectors_std * self._offdiagonal,
                trace_keep=Fraction(1),
            )
            for_values = rounded_normals(randomness, count=d, std=values_std)
        else:
            kind = GaussianTriangle if self.constants == "published" else GaussianEnsemble
            ensemble = kind(dimension=d, scale=float(vectors_std))
            for_vectors = _integers(ensemble.simulate(randomness)[np.triu_indices(d)])
            for_values = _integers(float(values_std) * randomness.normals(d))
        most = grid.squared_norm_bound if public else None
        return _Draw(SPECTRAL[self.arithmetic], d, for_vectors, for_values, most)


def _needs_public_count() -> Never:
    raise ParameterError(
        "E207",
        "separate as published uses the number of rows, which is public only under replace-one with one row "
        "per person.",
        "Use replace-one and max_rows_per_person = 1, or leave --as-published out.",
    )


@dataclass(frozen=True, repr=False, eq=False)
class _Draw(Draw):
    """Both noises, drawn before the data was read."""

    arithmetic: type[Spectral]
    dimension: int
    for_vectors: Upper
    for_values: Upper
    most_per_row: int | None

    def _answer(self, gram: Gram) -> Upper:
        opened = self.arithmetic(gram.reveal_to_mechanism(), self.dimension)
        noisy = opened.upper.astype(object) + self.for_vectors
        values = [
            value + int(noise) for value, noise in zip(opened.eigenvalues(), self.for_values, strict=True)
        ]
        most = None if self.most_per_row is None else gram.rows * self.most_per_row
        return put_together(noisy, values, self.dimension, most)


def put_together(noisy: Upper, values: list[int], dimension: int, most: int | None) -> Upper:
    """Σ λᵢvᵢvᵢᵀ on the grid from a private matrix and private values: public post-processing in float64."""
    matrix = np.zeros((dimension, dimension))
    rows, columns = np.triu_indices(dimension)
    matrix[rows, columns] = matrix[columns, rows] = noisy.astype(np.float64)
    ascending = eigh(matrix).eigenvectors  # of a symmetric, indefinite matrix: an SVD would lose the signs
    clipped = sorted(max(0, value) if most is None else min(max(0, value), most) for value in values)
    made = (ascending * np.array(clipped, dtype=np.float64)) @ ascending.T
    return _integers(made[rows, columns])


def _integers(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> Upper:
    return np.array([round(value) for value in values.tolist()], dtype=object)


def _std_over_sensitivity(loss: Loss) -> Fraction:
    """√2/μ: half of the budget each."""
    if isinstance(loss, ApproxDP):
        return sqrt_up(2) / gaussian_mu(epsilon=loss.epsilon, delta=loss.delta)
    return sqrt_up(1 / loss.amounts["rho"])
