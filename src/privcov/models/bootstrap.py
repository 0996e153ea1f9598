"""The parametric bootstrap: redraw sampling and privacy noise around the fit, from public facts alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privcov.linalg.arrays import Floats
from privcov.models.inference import Uncertainty
from privcov.noise.laws import NoiseLaw
from privcov.noise.randomness import rehearsal

_SEED = 20220704
_MOST_DRAWS, _FEWEST_DRAWS, _WORK = 2000, 400, 2 * 10**8


@dataclass(frozen=True, kw_only=True, eq=False)
class Bootstrap:
    """Deviations b* − b̂ of redrawn working coefficients from the fit, one line per draw."""

    deviations: Floats

    @classmethod
    def of(cls, uncertainty: Uncertainty, law: NoiseLaw, places: Sequence[int]) -> Bootstrap:
        """b* = (Q + N*)⁻¹ (Q b̂ + n* + s Q^½ g): Q the design, N* and n* new noise of the same law, g normal.

        Assumes that the design stands clear of the noise; eigenvalues of M below one standard deviation of it
        are raised to that. The draws come from a fixed seed and never meet data: this is post-processing.
        """
        moments, source = uncertainty.moments, rehearsal(_SEED)
        assert moments.noise is not None, "a law was given, so the moments know their noise"
        noise, k = moments.noise, moments.size
        values, vectors = np.linalg.eigh(moments.design)
        values = np.maximum(values, np.sqrt(noise.variances.max()))
        design = (vectors * values) @ vectors.T
        root = (vectors * np.sqrt(values)) @ vectors.T * np.sqrt(uncertainty.residual_variance)
        centre = design @ uncertainty.swept.coefficients
        draws = max(_FEWEST_DRAWS, min(_MOST_DRAWS, _WORK // law.dimension**2))
        shown = noise.variances > 0
        found = np.empty((draws, k))
        for i in range(draws):
            drawn = np.where(shown, law.simulate(source)[np.ix_(places, places)], 0.0)
            mixed = noise.mixing @ drawn @ noise.mixing.T
            right = centre + mixed[:k, k] + root @ source.normals(k)
            found[i] = np.linalg.solve(design + mixed[:k, :k], right)
        return cls(deviations=found - uncertainty.swept.coefficients)

    def interval(self, functional: Floats, level: float) -> tuple[float, float]:
        """What to add to the estimate for the basic bootstrap interval of functional·b."""
        low, high = np.quantile(self.deviations @ functional, [0.5 - level / 2, 0.5 + level / 2])
        return -float(high), -float(low)

    def tail(self, functional: Floats, distance: float) -> float:
        """The chance of a deviation as large as ``distance`` either way, counted among the draws."""
        larger = int((np.abs(self.deviations @ functional) >= abs(distance)).sum())
        return (1 + larger) / (1 + len(self.deviations))

    def tail_squared(self, precision: Floats, columns: slice, size: float) -> float:
        """The chance of a squared deviation, weighed by ``precision``, as large as ``size``."""
        part = self.deviations[:, columns]
        larger = int((np.einsum("ij,jk,ik->i", part, precision, part) >= size).sum())
        return (1 + larger) / (1 + len(self.deviations))
