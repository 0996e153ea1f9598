"""Additive Wishart noise (Sheffet 2019), calibrated by its exact accountant."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from privcov.errors import ParameterError
from privcov.mechanisms.base import AdditiveMechanism, Noise, Upper, float_up
from privcov.mechanisms.sensitivity import Sensitivity
from privcov.mechanisms.wishart_accounting import cheapest_delta, largest_shift
from privcov.noise.exact import wishart
from privcov.noise.laws import CentredWishart, centred_wishart
from privcov.noise.randomness import Randomness
from privcov.privacy import ApproxDP, Loss
from privcov.schema.grid import Grid

FREEDOM = 1024
"""k − d + 1 by default. More degrees mean less noise; twice as many again would gain 4 % at (1, 1e-6)."""
MOST_ENTRIES = 2**26
"""The normals one draw may take."""


@dataclass(frozen=True, kw_only=True)
class Wishart(AdditiveMechanism):
    """C + s·AAᵀ − k·s·I with a d × k normal A, as if k random rows had joined the table: (ε, δ).

    Guarantee: under add-remove the profile is exactly that of a chi-square variable of k − d + 1 degrees of
    freedom against its shift by R²/s, so s is the least that is certified; under replace-one a removal and
    an addition compose. ``centred="no"`` leaves the mean k·s·I in place: the matrix is positive semi-definite
    by construction (up to half a grid step an entry), biased, and its certificate carries no law of noise.
    ``constants="published"`` takes k = d + ⌊28 ln(4/δ)/ε²⌋ and s = R², where the accountant confirms it.
    Proof: docs/proofs/wishart.md.
    """

    name = "wishart"
    kinds = ("approximate",)
    summary = "adds a random Wishart matrix, s·AAᵀ − k·s·I with normal A of d × k: like k further random rows"
    best_at = "a positive semi-definite matrix without repair (centred=no); gaussian is more accurate"
    proof = "docs/proofs/wishart.md"
    as_published = {"constants": "published", "centred": "no"}  # noqa: RUF012 - a constant of the class

    degrees: int | None = None
    centred: Literal["yes", "no"] = "yes"
    constants: Literal["tight", "published"] = "tight"

    def law(self, *, loss: Loss, grid: Grid) -> CentredWishart | None:  # type: ignore[override]
        """None where the mean is left in: that noise is no centred law, and repair must not take it for one."""
        return self._law(loss, grid) if self.centred == "yes" else None

    def expected_error(self, *, loss: Loss, grid: Grid, spectrum: Sequence[float]) -> float:
        """That of the noise, whatever the table; with the mean k·s·I where that is left in."""
        noise = self._law(loss, grid).rms_frobenius
        if self.centred == "yes":
            return noise
        mean = float(self._degrees(loss, grid) * self._scale(loss, grid) * grid.unit)
        return math.hypot(noise, math.sqrt(grid.dimension) * mean)

    def draw(self, *, loss: Loss, grid: Grid, randomness: Randomness) -> Noise:
        self.check(loss)
        degrees, scale = self._degrees(loss, grid), self._scale(loss, grid)
        diagonal = np.equal(*np.triu_indices(grid.dimension))
        if self.arithmetic == "exact":
            return Noise(self.exact_noise(loss=loss, grid=grid, randomness=randomness))
        simulated = self._law(loss, grid).simulate(randomness)[np.triu_indices(grid.dimension)]
        upper = np.array([round(value) for value in (simulated * 4.0**grid.exponent).tolist()], dtype=object)
        if self.centred == "no":
            upper[diagonal] += round(degrees * scale)
        return Noise(upper)

    def exact_noise(self, *, loss: Loss, grid: Grid, randomness: Randomness) -> Upper:
        d, degrees, scale = grid.dimension, self._degrees(loss, grid), self._scale(loss, grid)
        upper = wishart(randomness, dimension=d, degrees=degrees, scale=scale)
        if self.centred == "yes":
            upper[np.equal(*np.triu_indices(d))] -= round(degrees * scale)
        return upper

    def _law(self, loss: Loss, grid: Grid) -> CentredWishart:
        family = centred_wishart(self._degrees(loss, grid))
        return family(dimension=grid.dimension, scale=float_up(self._scale(loss, grid) * grid.unit))

    def _degrees(self, loss: Loss, grid: Grid) -> int:
        """k, from public facts."""
        d, (epsilon, delta) = grid.dimension, _parameters(loss)
        if self.constants == "published":
            if self.degrees is not None:
                raise ParameterError("E209", "the published constants choose the degrees themselves.")
            degrees = d + math.floor(min(1e15, 28 * math.log(4 / delta) / max(epsilon**2, 1e-300)))
        else:
            degrees = d - 1 + FREEDOM if self.degrees is None else self.degrees
        if degrees < d + 2:
            raise ParameterError(
                "E209", f"wishart: degrees must be at least columns + 2 = {d + 2}, got {degrees}."
            )
        if d * degrees > MOST_ENTRIES:
            raise ParameterError(
                "E209",
                f"wishart: {degrees} degrees of {d} columns are more than {MOST_ENTRIES} random numbers.",
                "Choose fewer degrees, or the gaussian mechanism.",
            )
        return degrees

    def _scale(self, loss: Loss, grid: Grid) -> Fraction:
        """s in grid units: the trace that one person can move, over the largest certified shift."""
        freedom = self._degrees(loss, grid) - grid.dimension + 1
        epsilon, delta = loss.amounts["epsilon"], loss.amounts["delta"]
        # What one person adds, or takes away, is positive semi-definite: its trace is at most R² a row.
        trace = Sensitivity.of(grid, loss.neighbours).operator
        if self.constants == "tight":
            return trace / largest_shift(
                epsilon=epsilon, delta=delta, freedom=freedom, neighbours=loss.neighbours
            )
        published = Fraction(grid.squared_norm_bound)
        cost = cheapest_delta(
            shift=trace / published, epsilon=epsilon, freedom=freedom, neighbours=loss.neighbours
        )
        if cost > delta:
            raise ParameterError(
                "E203",
                "the published degrees are not certified for this epsilon and delta.",
                "Leave --as-published out.",
            )
        return published


def _parameters(loss: Loss) -> tuple[float, float]:
    if not isinstance(loss, ApproxDP):
        raise ParameterError("E203", "wishart needs epsilon and delta.", "Give a delta.")
    return float(loss.epsilon), float(loss.delta)
