"""The parametric bootstrap: redraw sampling and privacy noise around the fit, from public facts alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privcov.linalg.arrays import Floats
from privcov.models.inference import Uncertainty
from privcov.noise.randomness import rehearsal

_SEED = 20220704
_MOST_DRAWS, _FEWEST_DRAWS, _WORK = 2000, 400, 2 * 10**8


@dataclass(frozen=True, kw_only=True, eq=False)
class Bootstrap:
    """Deviations b* − b̂ of redrawn working coefficients from the fit, one line per draw."""

    deviations: Floats

    @classmethod
    def of(cls, uncertainty: Uncertainty) -> Bootstrap:
        """b* = (Q + N*)⁻¹ (Q b̂ + n* + s Q^½ g): Q the design, N* and n* new noise of the same law, g normal.

        Assumes that the design stands clear of the noise; eigenvalues of M below one standard deviation of it
        are raised to that. The draws come from a fixed seed and never meet data: this is post-processing.
        """
        moments, source = uncertainty.moments, rehearsal(_SEED)
        assert moments.noise is not None, "asked for a law alone, so the moments know their noise"
        noise, k = moments.noise, moments.size
        law, places = noise.law, noise.places
        values, vectors = np.linalg.eigh(moments.design)
        along = [np.outer(axis, axis) for axis in np.pad(vectors.T, ((0, 0), (0, 1)))]
        values = np.maximum(values, np.sqrt([noise.entries.inner(square, square) for square in along]))
        design = (vectors * values) @ vectors.T
        spread = np.sqrt(uncertainty.weight * uncertainty.residual_variance)
        root = (vectors * np.sqrt(values)) @ vectors.T * spread
        if moments.spread is not None:
            values, vectors = np.linalg.eigh(uncertainty.positive_design)
            root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T * spread
        centre = design @ uncertainty.swept.coefficients
        draws = max(_FEWEST_DRAWS, min(_MOST_DRAWS, _WORK // law.dimension**2))
        shown = noise.variances > 0
        found = np.empty((draws, k))
        for i in range(draws):
            drawn = np.where(shown, law.simulate(source)[np.ix_(places, places)], 0.0)
            mixed = noise.mixing @ drawn @ noise.mixing.T
            right = centre + mixed[:k, k] + root @ source.normals(k)
            found[i] = np.linalg.solve(design + mixed[:k, :k], right)
        pulls = uncertainty.pulls
        if pulls.shape[1]:
            found += np.array([source.normals(pulls.shape[1]) for _ in range(draws)]) @ pulls.T
        return cls(deviations=found - uncertainty.swept.coefficients)

    def interval(self, functional: Floats, level: float) -> tuple[float, float]:
        """What to add to the estimate for the basic bootstrap interval of functional·b."""
        low, high = np.quantile(self.deviations @ functional, [0.5 - level / 2, 0.5 + level / 2])
        return -float(high), -float(low)

    def tail(self, functional: Floats, distance: float) -> float:
        """Twice the chance of a deviation at least as far out on its side, counted among the draws.

        It is the test that ``interval`` inverts: below 1 − level where the interval leaves out what was tested.
        """
        drawn = self.deviations @ functional
        further = min(int((drawn >= distance).sum()), int((drawn <= distance).sum()))
        return min(1.0, 2 * (1 + further) / (1 + len(drawn)))

    def tail_squared(self, precision: Floats, columns: slice, size: float) -> float:
        """The chance of a squared deviation, weighed by ``precision``, as large as ``size``."""
        part = self.deviations[:, columns]
        larger = int((np.einsum("ij,jk,ik->i", part, precision, part) >= size).sum())
        return (1 + larger) / (1 + len(self.deviations))
