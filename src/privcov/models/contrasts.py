"""Tests and intervals beside the table of a fit: combinations of coefficients, predictions, comparisons of models.

A combination c·β of coefficients is treated as a single coefficient is: the same test, inverted for the same
interval, by the method that the fit has chosen. Nothing here looks at anything but the fit.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats
from privcov.models import selection
from privcov.models.bootstrap import Bootstrap
from privcov.models.goodness import FTest, total_squares
from privcov.models.hypotheses import hypotheses, hypothesis
from privcov.models.inference import Uncertainty
from privcov.models.moments import Moments
from privcov.models.profile import Height, lowest
from privcov.models.score_sets import score_set
from privcov.models.summary import as_frame, shrunk_beside
from privcov.releases.release import Release

if TYPE_CHECKING:
    import pandas

Contrast = str | Mapping[str, float] | Sequence[float] | Floats
"""A combination of coefficients: a hypothesis or a name, weights by name, or one weight for each in order."""
_ONE_SIDED = 1.645  # standard deviations that a normal variable exceeds one time in twenty
_FAR = 20.0  # standard errors
_TWICE = 4.0  # standard deviations of noise: what is so large is halved by two of them
Correction = Literal["holm", "bonferroni", "bh"]


@dataclass(frozen=True, kw_only=True)
class ContrastTest:
    """One combination of coefficients, with its test and interval.

    Attributes
    ----------
    estimate : float
        The combination of the estimates, in their units.
    std_error : float
        Its standard error, sampling and privacy together; a first-order approximation.
    statistic : float
        Its distance from the value tested, in standard errors; under score inversion the root of the statistic.
    p_value : float
        The two-sided p-value of the value tested.
    lower : float
        The low end of its confidence interval; infinite where the release cannot say.
    upper : float
        The high end.

    Examples
    --------
    >>> ContrastTest(estimate=1.0, std_error=0.5, statistic=2.0, p_value=0.046, lower=0.02, upper=1.98).p_value
    0.046
    """

    estimate: float
    std_error: float
    statistic: float
    p_value: float
    lower: float
    upper: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Prediction:
    """Predictions for some rows, with intervals; each array has one number per row, in units of the target.

    Attributes
    ----------
    mean : ndarray
        The predictions.
    std_error : ndarray
        Their standard errors, sampling and privacy together.
    lower : ndarray
        The low ends of intervals for the mean of the target at such rows.
    upper : ndarray
        The high ends.
    observed_lower : ndarray
        The low ends of intervals for the target of one new row, if errors are normal. They count the noise on the
        variance of errors by what it may be at most, and so hold at least as often as said. They end at the bounds of
        the target, where no row is beyond; predictions and intervals for the mean may lie beyond.
    observed_upper : ndarray
        The high ends.

    Examples
    --------
    >>> one = np.ones(1)
    >>> made = Prediction(mean=one, std_error=one, lower=one, upper=one, observed_lower=one, observed_upper=one)
    >>> made.mean
    array([1.])
    """

    mean: Floats
    std_error: Floats
    lower: Floats
    upper: Floats
    observed_lower: Floats
    observed_upper: Floats


class Contrasts:
    """The part of ``Fit`` that answers questions about combinations of its coefficients."""

    release: Release
    moments: Moments

    if TYPE_CHECKING:

        @property
        def method(self) -> str: ...
        @property
        def uncertainty(self) -> Uncertainty: ...
        @property
        def pvalues(self) -> dict[str, float]: ...
        @property
        def rsquared(self) -> float: ...
        @property
        def residual_std_error(self) -> float: ...
        @property
        def formula(self) -> Any: ...
        @property
        def _known(self) -> Uncertainty: ...
        @property
        def _estimates(self) -> Floats: ...
        @property
        def _bootstrap(self) -> Bootstrap | None: ...

    @abstractmethod
    def conf_int(self, level: float = 0.95) -> dict[str, tuple[float, float]]:
        """Return a confidence interval for each coefficient."""

    @abstractmethod
    def _critical(self, level: float) -> float: ...

    @abstractmethod
    def _place(self, name: str) -> int: ...

    @abstractmethod
    def _uncertainty_of(self, functionals: Floats) -> Uncertainty: ...

    def cov_params(self) -> Floats:
        """Return the covariance of the coefficients, sampling and privacy together.

        Returns
        -------
        ndarray of shape (k, k)
            In the order of ``params``, in their units. A first-order approximation.

        Raises
        ------
        ParameterError
            The law of the noise is not published (E238).
        """
        return np.asarray(self.moments.slope @ self._known.total @ self.moments.slope.T)

    def t_test(self, contrast: Contrast, value: float | None = None, level: float = 0.95) -> ContrastTest:
        """Test a combination of coefficients, and give its interval.

        Parameters
        ----------
        contrast : str, mapping or sequence
            A hypothesis such as "age = educ" or "2*age - educ = 0.5", the name of a coefficient, weights by name such
            as {"age": 1, "educ": -1}, or one weight per coefficient.
        value : float, optional
            What the combination is if the hypothesis holds, in its units: what a hypothesis says itself, or else 0.
        level : float, default 0.95
            The confidence level of the interval, from 0.5 to below 1.

        Returns
        -------
        ContrastTest
            Estimate, standard error, p-value and interval.

        Raises
        ------
        ParameterError
            There is no such coefficient (E231), the weights cannot be used or the level is out of range (E239), or the
            law of the noise is not published (E238).
        """
        (weights, value), _ = self._hypothesis(contrast, value), self._critical(level)
        functional, shift = weights @ self.moments.slope, float(weights @ self.moments.shift)
        estimate = float(weights @ self._estimates)
        known = self._uncertainty_of(functional)
        error = known.error(functional)
        away = estimate - value
        with np.errstate(divide="ignore", invalid="ignore"):
            statistic = float(np.float64(away) / error)
        tails = self._known.tails(functional)
        critical, p_value = tails.critical(float(level)), tails.p_value(statistic**2)
        half = float(np.sqrt(critical)) * error
        ends = estimate - half, estimate + half
        if self._bootstrap is not None:
            low, high = self._bootstrap.interval(functional, level)
            ends, p_value = (estimate + low, estimate + high), self._bootstrap.tail(functional, away)
        elif self.method == "score":
            profile = known.profile(functional)
            size = known.doubted(max(profile(value - shift), 0.0), functional[None], np.array([away]))
            statistic = float(np.sign(away) * np.sqrt(size))
            p_value = tails.p_value(statistic**2)
            centre = estimate - shift
            pieces = score_set(
                profile,
                centre=centre,
                step=known.entries.error(functional),
                critical=critical,
                null=value - shift,
            )
            pieces = known.widened(pieces, functional, centre=centre, critical=critical)
            ends = pieces[0][0] + shift, pieces[-1][1] + shift
        return ContrastTest(
            estimate=estimate,
            std_error=error,
            statistic=statistic,
            p_value=p_value,
            lower=ends[0],
            upper=ends[1],
        )

    def wald_test(
        self, contrasts: str | Sequence[Contrast], values: float | Sequence[float] | None = None
    ) -> FTest:
        """Test several combinations of coefficients at once.

        Under score inversion it is the lowest score statistic that the hypothesis allows, and so no Wald test.

        Parameters
        ----------
        contrasts : str or sequence
            The combinations, each as in ``t_test``: hypotheses, names, weights by name, or weights in order. A text may
            have several hypotheses with commas between them.
        values : float or sequence of float, optional
            What they are if the hypotheses hold, one number for all or one for each: what they say themselves, or 0.

        Returns
        -------
        FTest
            The statistic, its degrees of freedom and the p-value.

        Raises
        ------
        ParameterError
            There is no such coefficient (E231), the combinations cannot be used (E239), or the law of the noise is not
            published (E238).
        """
        _, moments = self._known, self.moments
        given: list[Contrast] = list(contrasts) if not isinstance(contrasts, str | Mapping) else [contrasts]
        if isinstance(contrasts, str):
            given = list(hypotheses(contrasts, moments.names))
        each = (
            [None] * len(given) if values is None else np.broadcast_to(np.asarray(values, float), len(given))
        )
        found = [self._hypothesis(one, value) for one, value in zip(given, each, strict=True)]
        weights = np.array([one for one, _ in found]).reshape(len(given), moments.size)
        count = int(np.linalg.matrix_rank(weights)) if len(given) else 0
        if not count or count < len(given):
            raise ParameterError(
                "E239",
                "there are no combinations to test, or they are linearly dependent.",
                "Leave some out.",
            )
        rows = weights @ moments.slope
        known = self._uncertainty_of(rows)
        wanted = np.array([value for _, value in found]) - weights @ moments.shift
        if self.method == "score" and count == 1:
            one = self.t_test(weights[0], found[0][1])
            size, p_value = one.statistic**2, one.p_value
        elif self.method == "score":
            alone = known.entries
            size, direction, free = _lowest_at(alone, rows, wanted)
            size = known.doubted(size, rows, rows @ known.swept.coefficients - wanted)
            p_value = alone.score_tails(rows, direction, free).p_value(size, count)
        else:
            away = rows @ known.swept.coefficients - wanted
            covariance = rows @ known.total @ rows.T
            precision = np.asarray(np.linalg.pinv(covariance, hermitian=True), dtype=np.float64)
            size = float(away @ precision @ away) if covariance.any() else float("inf")
            p_value = known.joint_tails(rows).p_value(size, count)
            if self._bootstrap is not None:
                p_value = self._bootstrap.tail_squared(rows.T @ precision @ rows, slice(None), size)
        return FTest(
            statistic=size / count,
            numerator_freedom=count,
            denominator_freedom=known.freedom,
            p_value=p_value,
        )

    def compare_f_test(self, restricted: Contrasts) -> FTest:
        """Test a smaller model against this one: that every coefficient it leaves out is zero.

        Parameters
        ----------
        restricted : Fit
            A fit on the same release, of the same target, with some of the coefficients of this one.

        Returns
        -------
        FTest
            As ``wald_test`` of the coefficients left out.

        Raises
        ------
        ParameterError
            The models are not nested (E239), or the law of the noise is not published (E238).
        """
        mine, others = self.moments.names, restricted.moments.names
        extra = [name for name in mine if name not in others]
        same = restricted.release is self.release or restricted.release == self.release
        if not same or restricted.formula.target != self.formula.target or not set(others) < set(mine):
            raise ParameterError(
                "E239",
                "the other model is not this one with some coefficients left out, on the same release and target.",
                "Fit both on one release, the smaller with some of the terms of the larger.",
            )
        return self.wald_test(extra)

    @property
    def rsquared_adj(self) -> float:
        """R² less what so many coefficients explain by chance; it may be negative."""
        rows = self.moments.rows - int(self.moments.intercept)
        return 1 - (1 - self.rsquared) * rows / self.moments.freedom

    @property
    def aic(self) -> float:
        """Akaike's criterion for normal errors, 2k − 2 log L; NaN where the noise is too large for it."""
        return self._criterion(2.0)

    @property
    def bic(self) -> float:
        """The Bayesian criterion for normal errors, k log n − 2 log L; NaN where the noise is too large for it."""
        return self._criterion(float(np.log(self.moments.rows)))

    @property
    def standardized_params(self) -> dict[str, float]:
        """The slopes for columns and target of variance one; NaN where noise hides the model or a variance."""
        spreads, known = self._spreads, self.uncertainty
        total = total_squares(self.moments)
        with np.errstate(invalid="ignore"):
            found = known.swept.coefficients * np.sqrt(spreads / (total if total > 0 else np.nan))
        return self._slopes(found if not known.hides else np.full(len(found), np.nan))

    @property
    def vif(self) -> dict[str, float]:
        """By how much the other columns raise the sampling variance of each slope; NaN where noise could double it."""
        inverse, noise = self.uncertainty.swept.inverse, self.moments.noise
        own = np.diag(inverse)
        found = np.maximum(self._spreads * own, 1.0)
        if noise is not None:
            # What a column leaves, 1 / own, is the quadratic form of the column less its regression on the others.
            left = np.pad(inverse / own[:, None], ((0, 0), (0, 1)))
            found[~(1 / own > _TWICE * np.sqrt(noise.entries.squares(left)))] = np.nan
        return self._slopes(found)

    def simultaneous_conf_int(self, level: float = 0.95) -> dict[str, tuple[float, float]]:
        """Return intervals for all coefficients that hold together (Bonferroni).

        Parameters
        ----------
        level : float, default 0.95
            The confidence that every one of them holds its coefficient, from 0.5 to below 1.

        Returns
        -------
        dict of str to tuple of float
            The low and the high end, in the coefficients' units.

        Raises
        ------
        ParameterError
            The level is out of range (E239), or the law of the noise is not published (E238).
        """
        self._critical(level)
        return self.conf_int(1 - (1 - level) / self.moments.size)

    def adjusted_pvalues(self, correction: Correction = "holm") -> dict[str, float]:
        """Return p-values of the slopes, corrected because there are many.

        Parameters
        ----------
        correction : {"holm", "bonferroni", "bh"}, default "holm"
            "holm" and "bonferroni" limit the chance of any false finding, "bh" (Benjamini and Hochberg) the expected
            share of false ones among the findings.

        Returns
        -------
        dict of str to float
            One p-value per slope; the intercept is not among the tests.

        Raises
        ------
        ParameterError
            There is no such correction (E239), or the law of the noise is not published (E238).
        """
        if correction not in get_args(Correction):
            words = ", ".join(get_args(Correction))
            raise ParameterError("E239", f"correction must be one of {words}, got {correction!r}.")
        _ = self._known
        first = int(self.moments.intercept)
        names, given = self.moments.names[first:], np.array(list(self.pvalues.values())[first:])
        return dict(zip(names, _corrected(given, correction).tolist(), strict=True))

    def predict(self, rows: Any) -> Floats:
        """Predict the target for new rows.

        Parameters
        ----------
        rows : array or frame
            New rows in original units: an array with the columns of the slopes in their order, or a frame with the
            columns of the table.

        Returns
        -------
        ndarray of shape (n,)
            Predictions, in units of the target. Nothing is clipped.

        Raises
        ------
        ParameterError
            The rows have another shape, or a column is missing (E25x).

        Warns
        -----
        UserWarning
            The noise is large for the regression, so that unbiased slopes may predict far worse than the mean does.
            ``shrunk.predict`` takes slopes that are drawn towards zero.
        """
        if shrunk_beside(self) is not None:  # type: ignore[arg-type]  # every fit is a ``Fit``
            warnings.warn(
                "the noise is large for this regression: slopes without shrinking may predict far worse than the mean. "
                "Use fit.shrunk.predict(rows).",
                stacklevel=2,
            )
        return np.asarray(self._design_of(rows) @ self._estimates)

    def get_prediction(self, rows: Any, level: float = 0.95) -> Prediction:
        """Predict the target for new rows, with intervals for its mean and for single rows.

        Parameters
        ----------
        rows : array or frame
            New rows, as in ``predict``.
        level : float, default 0.95
            The confidence level of each interval, from 0.5 to below 1.

        Returns
        -------
        Prediction
            Predictions, standard errors and intervals, one number per row.

        Raises
        ------
        ParameterError
            The rows have another shape, or a column is missing (E25x), the level is out of range (E239), or the law of
            the noise is not published (E238).
        """
        spread = np.sqrt(self._critical(level)) * self._largest_residual_std_error
        found = [self.t_test(row, level=level) for row in self._design_of(rows)]
        mean, error, lower, upper = (
            np.array([getattr(one, word) for one in found])
            for word in ("estimate", "std_error", "lower", "upper")
        )
        # A new row adds its own error to that of the mean, and the two are independent: their widths add as squares.
        low, high = mean - np.hypot(mean - lower, spread), mean + np.hypot(upper - mean, spread)
        bounds = self._target_bounds
        return Prediction(
            mean=mean,
            std_error=error,
            lower=lower,
            upper=upper,
            observed_lower=np.clip(low, *bounds),
            observed_upper=np.clip(high, *bounds),
        )

    def summary_frame(self, level: float = 0.95) -> pandas.DataFrame:
        """Return the table of coefficients under the headings that statsmodels gives them.

        Parameters
        ----------
        level : float, default 0.95
            The confidence level of the intervals, from 0.5 to below 1.

        Returns
        -------
        pandas.DataFrame
            One row per coefficient: coef, std err, t, P>|t|, Conf. Int. Low, Conf. Int. Upp., which are about the
            population (where they come from the score test, t is its signed root, and not coef over std err);
            then Table Low and Table Upp., about what this very table would have said without noise;
            and shrunk, to predict with, where the noise is large for the model.

        Raises
        ------
        ParameterError
            pandas is not installed, the level is out of range (E239), or the law of the noise is not published (E238).
        """
        _ = self._known
        frame = as_frame(self, level)  # type: ignore[arg-type]  # every fit is a ``Fit``
        words = {
            "estimate": "coef",
            "std_error": "std err",
            "t_value": "t",
            "p_value": "P>|t|",
            "lower": "Conf. Int. Low",
            "upper": "Conf. Int. Upp.",
            "table_lower": "Table Low",
            "table_upper": "Table Upp.",
            **({"shrunk": "shrunk"} if "shrunk" in frame else {}),
        }
        return frame[list(words)].rename(columns=words)

    def _hypothesis(self, contrast: Contrast, value: float | None) -> tuple[Floats, float]:
        """One weight per coefficient, and what their combination is if the hypothesis holds."""
        if not isinstance(contrast, str):
            return self._weights(contrast), 0.0 if value is None else float(value)
        weights, said = hypothesis(contrast, self.moments.names)
        if value is not None and "=" in contrast and contrast not in self.moments.names:
            raise ParameterError(
                "E239",
                "the hypothesis has a value of its own, and another one was given.",
                "Leave value out.",
            )
        return self._weights(weights), said if value is None else float(value)

    def _weights(self, contrast: Mapping[str, float] | Sequence[float] | Floats) -> Floats:
        """One weight per coefficient, not all of them zero."""
        made = np.zeros(self.moments.size)
        places = [self._place(name) for name in contrast] if isinstance(contrast, Mapping) else None
        try:
            if isinstance(contrast, Mapping):
                made[places] = list(contrast.values())
            else:
                made = np.array(contrast, dtype=np.float64)
        except (TypeError, ValueError):
            made = np.array(np.nan)
        if made.shape != (self.moments.size,) or not np.isfinite(made).all() or not made.any():
            raise ParameterError(
                "E239",
                f"a combination has one finite weight for each of {self.moments.size} coefficients, not all zero.",
                'Give weights by name, such as {"age": 1, "educ": -1}.',
            )
        return made

    def _design_of(self, rows: Any) -> Floats:
        regressors = self.formula.regressors(self.release.schema)
        columns = [
            one for one in regressors if one.name in self.moments.names
        ]  # merged levels have no coefficient
        places = list(dict.fromkeys(place for one in columns for place in one.places))
        read = selection.read_rows(self.release, places, rows)
        table = np.zeros((len(read), len(columns)))
        for i, column in enumerate(columns):
            table[:, i] = read[:, [places.index(place) for place in column.places]].sum(axis=1)
        return np.hstack([np.ones((len(table), 1)), table]) if self.moments.intercept else table

    def _criterion(self, per_coefficient: float) -> float:
        known, rows = self._known, self.moments.rows
        residual = known.residual_variance * self.moments.freedom / rows * self.moments.target_width**2
        if not known.wald_is_sound or not residual > 0:
            return float("nan")
        return float(rows * (np.log(2 * np.pi * residual) + 1) + per_coefficient * self.moments.size)

    @property
    def _largest_residual_std_error(self) -> float:
        """What the standard deviation of the errors is below 95 times in 100, as far as the noise goes."""
        known, noise = self._known, self.moments.noise
        variance = known.residual_variance
        if noise is not None:
            square = np.outer(known.direction, known.direction)
            variance += _ONE_SIDED * float(np.sqrt(noise.inner(square, square))) / self.moments.freedom
        return float(np.sqrt(variance)) * self.moments.target_width

    @property
    def _target_bounds(self) -> tuple[float, float]:
        """Between which every value of the target lies, by declaration."""
        name = self.formula.target
        target = next(feature for feature in self.release.schema.features if feature.name == name)
        return target.lower, target.upper

    @property
    def _spreads(self) -> Floats:
        """The sum of squares of each regressor: about its mean with an intercept, about zero without."""
        design = self.moments.design
        about = design[0] ** 2 / design[0, 0] if self.moments.intercept else 0.0
        found = np.diag(design) - about
        return np.asarray(np.where(found > 0, found, np.nan))

    def _slopes(self, values: Floats) -> dict[str, float]:
        first = int(self.moments.intercept)
        return dict(zip(self.moments.names[first:], values[first:].tolist(), strict=True))


def _lowest_at(known: Uncertainty, rows: Floats, wanted: Floats) -> tuple[float, Floats, Floats]:
    """The lowest Q of all working coefficients b with rows·b = wanted, its (−b, 1), and the directions within them."""
    total, estimate = known.total, known.swept.coefficients
    # The generalised least-squares step to the hypothesis, where the search begins, and the directions within it.
    gain = np.linalg.pinv(rows @ total @ rows.T, hermitian=True)
    start = estimate + total @ rows.T @ gain @ (wanted - rows @ estimate)
    free = np.linalg.svd(rows)[2][len(rows) :].T
    free = free * np.sqrt(np.maximum(np.diag(free.T @ total @ free), 1e-300))

    def value(eta: Floats) -> Height:
        q, slope, curve = known.statistic(np.append(-(start + free @ eta), 1.0))
        return q, -(free.T @ slope[:-1]), free.T @ curve[:-1, :-1] @ free

    nothing = np.zeros(free.shape[1])
    height, place = lowest(value, nothing) if len(nothing) else (value(nothing)[0], nothing)
    if len(nothing) and height >= known.far_away:  # as in a profile: a valley that leads there may be deeper
        along = np.linalg.lstsq(free, known.far_direction)[0]
        along *= _FAR / max(float(np.linalg.norm(along)), 1e-300)
        others = [lowest(value, side * along, known=height) for side in (-1, 1)]
        height, place = min([(height, place), *others], key=lambda one: one[0])
    return height, np.append(-(start + free @ place), 1.0), free


def _corrected(given: Floats, correction: Correction) -> Floats:
    """p-values that may be compared with a level as if there were one test.

    >>> _corrected(np.array([0.01, 0.04, 0.03]), "holm").round(3), _corrected(np.array([0.01, 0.04, 0.03]), "bh")
    (array([0.03, 0.06, 0.06]), array([0.03, 0.04, 0.04]))
    """
    count = len(given)
    if correction == "bonferroni":
        return np.minimum(given * count, 1.0)
    order = np.argsort(given)
    made = np.empty(count)
    if correction == "holm":
        made[order] = np.maximum.accumulate(given[order] * np.arange(count, 0, -1))
    else:
        made[order[::-1]] = np.minimum.accumulate(given[order[::-1]] * count / np.arange(count, 0, -1))
    return np.minimum(made, 1.0)
