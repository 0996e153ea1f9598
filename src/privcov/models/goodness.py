"""How much of the target a fit explains: R² with an interval, and the test that no slope matters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import fdtrc

from privcov.linalg.arrays import Floats
from privcov.models.inference import Bootstrap, Uncertainty
from privcov.models.moments import Moments
from privcov.models.profile import Height, lowest

_POINTS = 4001


@dataclass(frozen=True, kw_only=True)
class FTest:
    """The test of "every slope is zero".

    Attributes
    ----------
    statistic : float
        The F statistic, the noise of the release taken into account.
    numerator_freedom : int
        The number of slopes.
    denominator_freedom : float
        The degrees of freedom of the residuals.
    p_value : float
        The probability of a statistic this large if every slope were zero.

    Examples
    --------
    >>> FTest(statistic=4.2, numerator_freedom=2, denominator_freedom=97.0, p_value=0.018).p_value
    0.018
    """

    statistic: float
    numerator_freedom: int
    denominator_freedom: float
    p_value: float


def spread_direction(moments: Moments) -> Floats:
    """τ with τᵀCτ the target's sum of squares: about its mean with an intercept, about zero without."""
    direction = np.zeros(moments.size + 1)
    direction[-1] = 1.0
    if moments.intercept:
        direction[0] = -moments.matrix[0, -1] / moments.matrix[0, 0]
    return direction


def total_squares(moments: Moments) -> float:
    direction = spread_direction(moments)
    return float(direction @ moments.matrix @ direction)


def r_squared(uncertainty: Uncertainty) -> float:
    """1 − residual / total, within [0, 1]; NaN where the noise leaves the target no variance."""
    total = total_squares(uncertainty.moments)
    if not total > 0:
        return float("nan")
    residual = uncertainty.residual_variance * uncertainty.moments.freedom
    return float(np.clip(1 - residual / total, 0.0, 1.0))


def r_squared_interval(uncertainty: Uncertainty, critical: float) -> tuple[float, float]:
    """Every ρ in [0, 1] that residual − (1 − ρ)·total does not reject, its variance taken at that ρ.

    The privacy part is exact to first order for the law of the noise. The sampling part is the large-sample
    variance of R² with normal errors, 4ρ(1−ρ)²/n + 2q/n². No ratio is formed, so a target drowned in noise
    gives all of [0, 1].
    """
    moments = uncertainty.moments
    total = total_squares(moments)
    residual = uncertainty.residual_variance * moments.freedom
    rho = np.linspace(0.0, 1.0, _POINTS)
    slopes = max(moments.size - moments.intercept, 1)
    variance = max(total, 0.0) ** 2 * (4 * rho * (1 - rho) ** 2 + 2 * slopes / moments.rows) / moments.rows
    if moments.noise is not None:
        tau = spread_direction(moments)
        fit, all_of_it = np.outer(uncertainty.direction, uncertainty.direction), np.outer(tau, tau)
        inner = moments.noise.inner
        share = 1 - rho
        variance += inner(fit, fit) - 2 * share * inner(fit, all_of_it)
        variance += share**2 * inner(all_of_it, all_of_it)
    distance = (residual - (1 - rho) * total) ** 2
    inside = rho[distance <= critical * np.maximum(variance, 0.0) + 1e-300]
    if not inside.size:
        nearest = float(rho[np.argmin(distance / np.maximum(variance, 1e-300))])
        return nearest, nearest
    return float(inside[0]), float(inside[-1])


def f_test(uncertainty: Uncertainty, *, method: str, bootstrap: Bootstrap | None = None) -> FTest | None:
    """Are all slopes zero? None for a model without slopes.

    Wald: the quadratic form of the slopes in their covariance, which is the textbook F where there is no
    noise. Score: Q at slopes zero, minimised over the intercept. Bootstrap: the Wald form, its p-value counted.
    """
    moments = uncertainty.moments
    slopes = slice(int(moments.intercept), moments.size)
    count = moments.size - int(moments.intercept)
    if count == 0:
        return None
    if method == "score":
        statistic = _score_at_no_slopes(uncertainty) / count
        p_value = float(fdtrc(count, moments.freedom, statistic))
    else:
        estimate = uncertainty.swept.coefficients[slopes]
        covariance = (uncertainty.sampling + uncertainty.privacy)[slopes, slopes]
        precision = np.asarray(np.linalg.pinv(covariance, hermitian=True), dtype=np.float64)
        size = float(estimate @ precision @ estimate) if covariance.any() else float("inf")
        statistic = size / count
        p_value = (
            float(fdtrc(count, moments.freedom, statistic))
            if bootstrap is None
            else bootstrap.tail_squared(precision, slopes, size)
        )
    return FTest(
        statistic=statistic,
        numerator_freedom=count,
        denominator_freedom=moments.freedom,
        p_value=p_value,
    )


def _score_at_no_slopes(uncertainty: Uncertainty) -> float:
    moments = uncertainty.moments

    def value(intercept: Floats) -> Height:
        direction = np.zeros(moments.size + 1)
        direction[-1] = 1.0
        direction[: len(intercept)] = -intercept
        count = len(intercept)
        q, slope, curve = uncertainty.statistic(direction)
        return q, -slope[:count], curve[:count, :count]

    if not moments.intercept:
        return value(np.zeros(0))[0]
    return lowest(value, np.array([moments.matrix[0, -1] / moments.matrix[0, 0]]))[0]
