"""The report's release as it is printed: columns scaled to [0, 1], noise on the sums, units put back, Algorithm 2.

Everything works on the moments of scaled rows w = (1, x′₁ … x′_d), the target last. The report carries a noisy matrix
to original units with the columns' minima and their *exact* means, so the noise there is R E R, R the ranges: unlike a
change of units it leaves the intercept's noise on the intercept alone. In scaled units that is U E Uᵀ, U the identity
with −minimum/range in its first column, and a column far from zero has its noise multiplied accordingly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import stdtr

from privcov.linalg.arrays import Floats
from privcov.noise.laws import GaussianTriangle
from privcov.noise.randomness import Randomness
from privcov_lab.experiments.least_positive import least_positive

EPSILON, DELTA = 0.01, 2.0**-16
Formula = Literal["printed", "classical"]
"""The report's σ over the sensitivity as printed, and with the division by ε that its source has."""


def multiplier(formula: Formula, *, epsilon: float = EPSILON, delta: float = DELTA) -> float:
    """σ over the sensitivity.

    >>> round(multiplier("printed"), 2), round(multiplier("classical"), 1)
    (5.64, 475.7)
    """
    if formula == "printed":
        return math.sqrt(2 * math.log(1.25 / delta / epsilon))
    return math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def law(formula: Formula, *, attributes: int, epsilon: float = EPSILON) -> GaussianTriangle:
    """The noise on the sums of d scaled attributes and the intercept; the report takes √d for their sensitivity."""
    scale = math.sqrt(attributes) * multiplier(formula, epsilon=epsilon)
    return GaussianTriangle(dimension=attributes + 1, scale=scale)


def draws(noise: GaussianTriangle, randomness: Randomness, count: int) -> Floats:
    """So many independent noise matrices, one on top of the other."""
    return noise.simulations(randomness, count)


@dataclass(frozen=True, kw_only=True, eq=False)
class Scaled:
    """The moments Σ wwᵀ of a table's scaled rows, and where its columns lie."""

    moments: Floats
    lows: Floats
    ranges: Floats

    @classmethod
    def of(cls, columns: Floats, weights: Floats | None = None) -> Scaled:
        """Columns by their own range, as the report takes them from the data; ``weights`` count each row."""
        lows = columns.min(axis=0)
        ranges = columns.max(axis=0) - lows
        scaled = np.column_stack([np.ones(len(columns)), (columns - lows) / ranges])
        counted = scaled if weights is None else scaled * weights[:, None]
        return cls(moments=scaled.T @ counted, lows=lows, ranges=ranges)

    @property
    def rows(self) -> float:
        return float(self.moments[0, 0])

    @property
    def units(self) -> Floats:
        """T with (1, x) = T w."""
        units = np.diag(np.append(1.0, self.ranges))
        units[1:, 0] = self.lows
        return units

    @property
    def back(self) -> tuple[Floats, Floats]:
        """Coefficients in original units are the first times those in scaled units, plus the second."""
        ratios = self.ranges[-1] / self.ranges[:-1]
        slope = np.diag(np.append(self.ranges[-1], ratios))
        slope[0, 1:] = -ratios * self.lows[:-1]
        return slope, np.append(self.lows[-1], np.zeros(len(ratios)))

    def only(self, regressors: int) -> Scaled:
        """The same table with its first regressors and the target alone."""
        kept = [*range(regressors), len(self.lows) - 1]
        places = [0, *(column + 1 for column in kept)]
        return Scaled(
            moments=self.moments[np.ix_(places, places)], lows=self.lows[kept], ranges=self.ranges[kept]
        )

    def upscaled(self, noisy: Floats, *, offsets: float) -> Floats:
        """The report's formula for original units; ``offsets`` is 1 as it is printed and must be the row count."""
        lows, ranges = np.append(0.0, self.lows), np.append(1.0, self.ranges)
        means = (self.units @ self.moments)[:, 0] / self.rows
        shift = np.outer(lows, means) + np.outer(means, lows) - np.outer(lows, lows)
        return np.asarray(noisy * np.outer(ranges, ranges) + offsets * shift)

    def released(self, noise: Floats, *, repair: bool) -> Floats:
        """Moments + noise as the report would release them, upscaled and repaired, told in scaled units again."""
        away = np.eye(len(self.moments))
        away[1:, 0] = -self.lows / self.ranges
        noisy = self.moments + away @ noise @ away.T
        if not repair:
            return np.asarray(noisy)
        inverse = np.linalg.inv(self.units)
        repaired = inverse @ least_positive(self.units @ noisy @ self.units.T) @ inverse.T
        negative = np.linalg.eigvalsh(noisy)[..., :1, None] < 0  # a change of units keeps the signs
        return np.asarray(np.where(negative, repaired, noisy))


@dataclass(frozen=True, kw_only=True, eq=False)
class Regression:
    """Algorithm 2 on one matrix or a stack of them: coefficients in original units and their naive errors."""

    coefficients: Floats
    residual_variance: Floats
    errors: Floats
    """Square roots of negative variances, which only noise can make, are NaN."""
    freedom: float

    @property
    def t_values(self) -> Floats:
        return np.asarray(self.coefficients / self.errors)

    @property
    def p_values(self) -> Floats:
        return np.asarray(2 * stdtr(self.freedom, -np.abs(self.t_values)))


def regression(table: Scaled, matrix: Floats) -> Regression:
    """The target (last) on the others, from moments of the table's scaled rows, noisy or not."""
    slope, shift = table.back
    size = len(shift)
    inverse = np.linalg.inv(matrix[..., :size, :size])
    cross = matrix[..., :size, size]
    solved = np.einsum("...ij,...j->...i", inverse, cross)
    freedom = table.rows - size
    residual = matrix[..., size, size] - np.einsum("...i,...i->...", cross, solved)
    variance = residual / freedom
    diagonal = np.einsum("ij,...jk,ik->...i", slope, inverse, slope)
    with np.errstate(invalid="ignore"):
        errors = np.sqrt(diagonal * variance[..., None])
    return Regression(
        coefficients=np.asarray(solved @ slope.T + shift),
        residual_variance=np.asarray(variance * table.ranges[-1] ** 2),
        errors=np.asarray(errors),
        freedom=freedom,
    )
