"""How much of the target a fit explains: R² with an interval, and the test that no slope matters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import gammainc, gammaincinv

from privcov.linalg.arrays import Floats
from privcov.models.bootstrap import Bootstrap
from privcov.models.inference import Uncertainty
from privcov.models.moments import Moments
from privcov.models.profile import Height, lowest


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
    """1 − residual / total, within [0, 1]; NaN where noise could be all of it: the target's variance, or the share."""
    uncertainty = _without_units(uncertainty)
    moments, total = uncertainty.moments, total_squares(uncertainty.moments)
    tau = spread_direction(moments)
    spread = 0.0 if moments.noise is None else moments.noise.forms(tau, tau, tau, tau)
    # What rounding leaves of a constant target is no variance, however small the noise is.
    if not total > max(2 * np.sqrt(spread), 1e-12 * float(moments.matrix[-1, -1])):
        return float("nan")
    if moments.noise is not None and r_squared_interval(uncertainty, 0.95) == (0.0, 1.0):
        return float("nan")
    residual = uncertainty.residual_variance * moments.freedom
    return float(np.clip(1 - residual / total, 0.0, 1.0))


def _without_units(uncertainty: Uncertainty) -> Uncertainty:
    """The same without doubt about units, which does not move a share; about zero the doubt about means does."""
    return uncertainty.entries if uncertainty.moments.intercept else uncertainty


def r_squared_interval(uncertainty: Uncertainty, level: float) -> tuple[float, float]:
    """Every ρ in [0, 1] that explained − ρ·total does not reject, its law taken at that ρ; equal tails.

    No ratio is formed. With Σ the centred moments of the slopes and V their covariance, the explained sum of squares is
    (b + δ)ᵀΣ(b + δ): its mean exceeds bᵀΣb by tr ΣV, its quadratic part has variance 2 tr (ΣV)² and third cumulant
    8 tr (ΣV)³, and at ρ = 0 nothing else moves it. The linear part is that of the noise, for slopes that are shrunk to
    explain ρ, and 4ρ(1−ρ)²/n of the total squared for sampling, as with normal errors. A shifted gamma law has these
    cumulants. At a boundary an interval does not shrink to a point: what is seen counts as no less likely there than
    one standard deviation. Where noise hides a column, or a combination of columns, nothing is known.
    """
    uncertainty = _without_units(uncertainty)
    if uncertainty.hides:
        return 0.0, 1.0
    # Sampling that counts for more than 1 is a bound: an end has the mean excess that puts it further out. So it is
    # where noise is large for the design: it puts squares in, and hides what a regressor explains by as much or more.
    low, high = _Explained.of(uncertainty), _Explained.of(uncertainty, weight=min(uncertainty.weight, 1.0))
    high = replace(low, absorbed=high.absorbed if uncertainty.wald_is_sound else 0.0)
    low_tail, high_tail = 0.5 - level / 2, 0.5 + level / 2
    least = max(high.seen, high.quantile(0.0, _ONE_DEVIATION))
    most = min(low.seen, low.quantile(1.0, 1 - _ONE_DEVIATION))
    return (
        _first(lambda rho: low.below(rho, most) - high_tail, _GRID),
        _first(lambda rho: low_tail - high.below(rho, least), _GRID[::-1]),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Explained:
    """The law of explained − ρ·total for a model whose share of the variance is ρ."""

    seen: float
    total: float
    rows: float
    """Over what sampling counts for."""
    absorbed: float
    square: float
    cube: float
    linear: tuple[float, float, float]
    """The variance of the noise's part, in powers of √ρ: of ρ, of ρ√ρ and of ρ²."""

    @classmethod
    def of(cls, uncertainty: Uncertainty, *, weight: float | None = None) -> _Explained:
        known = uncertainty if weight is None else replace(uncertainty, weight=weight)
        moments = known.moments
        slopes = slice(int(moments.intercept), moments.size)
        design = moments.design[slopes, slopes]
        if moments.intercept:
            design = design - np.outer(moments.design[0, 1:], moments.design[0, 1:]) / moments.design[0, 0]
        product = design @ known.total[slopes, slopes]
        total, tau = max(total_squares(moments), 0.0), spread_direction(moments)
        change = uncertainty.direction - tau
        length = float(change @ moments.matrix @ change)
        linear = (0.0, 0.0, 0.0)
        if moments.noise is not None and length > 0 and total > 0:
            # Slopes that explain ρ are those found times s√ρ. The noise then moves explained − ρ·total by
            # −2s√ρ τᵀNd − ρ(s² dᵀNd + τᵀNτ), with d the change that the slopes make to τ.
            d, forms = change * np.sqrt(total / length), moments.noise.forms
            both = forms(d, d, d, d) + 2 * forms(d, d, tau, tau) + forms(tau, tau, tau, tau)
            cross = forms(tau, d, d, d) + forms(tau, d, tau, tau)
            linear = (4 * forms(tau, d, tau, d), 4 * cross, both)
        elif moments.noise is not None:
            linear = (0.0, 0.0, moments.noise.forms(tau, tau, tau, tau))
        return cls(
            seen=total_squares(moments) - uncertainty.swept.residual,
            total=total_squares(moments),
            rows=moments.rows / known.weight if known.weight else np.inf,
            absorbed=float(np.trace(product)),
            square=2 * float((product * product.T).sum()),
            cube=8 * float(np.trace(product @ product @ product)),
            linear=linear,
        )

    def below(self, rho: float, seen: float) -> float:
        """The chance of no more than ``seen``."""
        spread, skew = self._shape(rho)
        distance = seen - rho * self.total - self.absorbed
        if not spread > 0:
            return 0.5 * (1 + float(np.sign(distance)))
        shape = 4 / skew**2
        return float(gammainc(shape, max(shape + np.sqrt(shape) * distance / spread, 0.0)))

    def quantile(self, rho: float, chance: float) -> float:
        """What is exceeded with probability 1 − ``chance``."""
        spread, skew = self._shape(rho)
        shape = 4 / skew**2
        return (
            rho * self.total
            + self.absorbed
            + spread * float(gammaincinv(shape, chance) - shape) / np.sqrt(shape)
        )

    def _shape(self, rho: float) -> tuple[float, float]:
        """The standard deviation at ρ, and the skewness, which a gamma law needs to be positive."""
        one, cross, two = self.linear
        sampling = 4 * rho * (1 - rho) ** 2 * max(self.total, 0.0) ** 2 / self.rows
        noise = max(rho * (one + np.sqrt(rho) * cross + rho * two), 0.0)
        variance = self.square + sampling + noise
        if not variance > 0:
            return 0.0, _SMALLEST_SKEW
        # The cumulant of a non-central law has six times the size of one weight for each part of linear variance.
        weight = self.cube / self.square / 4 if self.square > 0 else 0.0
        third, spread = self.cube + 6 * weight * (sampling + noise), float(np.sqrt(variance))
        # Divided twice: the cube of the spread of sixty digits behind the point is no number above zero.
        return spread, max(float(third / variance) / spread, _SMALLEST_SKEW)


_ONE_DEVIATION = 0.16
_SMALLEST_SKEW = 1e-3  # a gamma law of this skewness is normal to four digits
_GRID = np.unique(np.concatenate([[0.0], np.logspace(-9, -0.5, 40), 1 - np.logspace(-9, -0.5, 40), [1.0]]))


def _first(excess: Callable[[float], float], places: Floats) -> float:
    """The first place, in their order, where the excess is no longer positive; the last where it always is."""
    from scipy.optimize import brentq  # on use: it takes a quarter of a second, and most commands do without

    last = float(places[0])
    for place in places.tolist():
        if excess(place) <= 0:
            return last if place == last else float(brentq(excess, last, place, xtol=1e-12))
        last = place
    return last


def largest_variance(moments: Moments) -> float:
    """The largest variance of errors that a bounded target can have, over the degrees of freedom, in working units."""
    return moments.target_limit**2 * moments.rows / moments.freedom


def residual_variance_interval(uncertainty: Uncertainty, critical: float) -> tuple[float, float]:
    """Every variance of errors that the residual sum of squares does not reject, for normal errors.

    From 0 to the largest variance that a bounded target can have, over the degrees of freedom.
    """
    moments, zeta = uncertainty.moments, uncertainty.direction
    noise = 0.0 if moments.noise is None else moments.noise.forms(zeta, zeta, zeta, zeta)
    freedom, residual = moments.freedom, uncertainty.residual_squares
    # (residual − f v)² ≤ critical (noise + 2 w f v²), a quadratic in v with w what sampling counts for; where
    # 2·critical·w ≥ f it has no upper end.
    lead = freedom**2 - 2 * critical * uncertainty.weight * freedom
    under = (residual * freedom) ** 2 - lead * (residual**2 - critical * noise)
    largest = largest_variance(moments)
    if not lead > 0:
        return 0.0, largest
    root = np.sqrt(max(under, 0.0))
    low, high = (float(np.clip((residual * freedom + side * root) / lead, 0.0, largest)) for side in (-1, 1))
    return low, high


def f_test(uncertainty: Uncertainty, *, method: str, bootstrap: Bootstrap | None = None) -> FTest:
    """The test that all slopes are zero, of a model that has some.

    Wald: the quadratic form of the slopes in their covariance, which is the textbook F where there is no
    noise. Score: Q at slopes zero, minimised over the intercept, with doubt about units as each coefficient has it.
    Bootstrap: the Wald form, its p-value counted.
    """
    moments = uncertainty.moments
    slopes = slice(int(moments.intercept), moments.size)
    count = moments.size - int(moments.intercept)
    rows = np.eye(moments.size)[slopes]
    if method == "score":
        alone = uncertainty.entries
        size, direction = _score_at_no_slopes(alone)
        size = uncertainty.doubted(size, rows, uncertainty.swept.coefficients[slopes])
        free = np.eye(moments.size)[:, : int(moments.intercept)]
        statistic = size / count
        p_value = alone.score_tails(rows, direction, free).p_value(size, count)
    else:
        estimate = uncertainty.swept.coefficients[slopes]
        covariance = uncertainty.total[slopes, slopes]
        precision = np.asarray(np.linalg.pinv(covariance, hermitian=True), dtype=np.float64)
        size = float(estimate @ precision @ estimate) if covariance.any() else float("inf")
        statistic = size / count
        p_value = (
            uncertainty.joint_tails(rows).p_value(size, count)
            if bootstrap is None
            else bootstrap.tail_squared(precision, slopes, size)
        )
    return FTest(
        statistic=statistic,
        numerator_freedom=count,
        denominator_freedom=uncertainty.freedom,
        p_value=p_value,
    )


def _score_at_no_slopes(uncertainty: Uncertainty) -> tuple[float, Floats]:
    """Q with all slopes zero, minimised over the intercept, and its ζ."""
    moments = uncertainty.moments

    def at(intercept: Floats) -> Floats:
        return np.concatenate([-intercept, np.zeros(moments.size - len(intercept)), [1.0]])

    def value(intercept: Floats) -> Height:
        q, slope, curve = uncertainty.statistic(at(intercept))
        count = len(intercept)
        return q, -slope[:count], curve[:count, :count]

    if not moments.intercept:
        return value(np.zeros(0))[0], at(np.zeros(0))
    height, place = lowest(value, np.array([moments.matrix[0, -1] / moments.matrix[0, 0]]))
    return height, at(place)
