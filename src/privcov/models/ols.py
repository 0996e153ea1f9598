"""Least squares from a release: the coefficients, and intervals that know about the noise.

Everything here is post-processing: it costs no privacy, and can be asked as often as anyone likes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats
from privcov.models import goodness
from privcov.models.bootstrap import Bootstrap
from privcov.models.contrasts import Contrasts
from privcov.models.formula import Formula
from privcov.models.goodness import FTest
from privcov.models.hidden import PLAIN, hidden_levels
from privcov.models.inference import Uncertainty
from privcov.models.moments import Moments
from privcov.models.perturbation import can_be_rehearsed
from privcov.models.ridge import RidgeFit, ridge
from privcov.models.score_sets import Pieces, is_all, is_lost, score_set
from privcov.models.summary import as_frame, as_latex, as_text, as_values
from privcov.models.sweep import Swept, sweep
from privcov.models.tails import Tails, critical_value
from privcov.releases.release import Release
from privcov.text.display import Shown

if TYPE_CHECKING:
    import pandas


Method = Literal["auto", "wald", "score", "bootstrap"]
Errors = Literal["equal", "conservative"]


def ols(
    release: Release, formula: str, *, method: Method = "auto", naive: bool = False, errors: Errors = "equal"
) -> Fit:
    """Fit least squares of a formula on the columns of a release.

    A level of a categorical column whose count is within three standard deviations of the noise counts with the
    baseline, and is named in ``merged``: no release could tell its coefficient.

    Intervals hold the non-random truth at their level, to first order, for the law of the noise on the
    certificate. The truth is that of the population of the columns within their declared bounds; ``Fit.table`` has
    intervals for what this very table would have said without noise. Errors have one variance, unless
    ``errors="conservative"``. Rows of one person may depend on each other, which counts by the most it can do. See
    docs/explain/regression.md.

    Parameters
    ----------
    release : Release
        The release to fit on. It costs no further privacy.
    formula : str
        The model, as in "income ~ age + sex"; "y ~ ." takes every other column, "- 1" leaves the intercept out.
    method : {"auto", "wald", "score", "bootstrap"}, default "auto"
        How intervals are made. "auto" takes Wald where the noise is small against the design, and score
        inversion where it is not.
    naive : bool, default False
        Whether to ignore the noise, as published tables have done. The intervals are then too short.
    errors : {"equal", "conservative"}, default "equal"
        What is assumed of errors: one variance, or nothing but what the bounds allow. "conservative" intervals hold
        for errors of any variance, and are wider: ``Fit.widening`` says by how much.

    Returns
    -------
    Fit
        Coefficients in original units, standard errors, intervals and tests.

    Raises
    ------
    ParameterError
        The formula or the method cannot be used, there is no intercept that the model needs, or there are too few rows
        (E23x); what is assumed of errors is not one of the two, or has no bootstrap (E287).

    Examples
    --------
    >>> import numpy as np, privcov as pc
    >>> rows = np.linspace(0, 10, 4000)[:, None] @ [[1.0, 2.0]]
    >>> bounds = {"dose": {"lower": 0, "upper": 10}, "effect": {"lower": 0, "upper": 20}}
    >>> release = pc.release(rows, schema=pc.Schema.from_dict({"columns": bounds}),
    ...                      loss=pc.PureDP(epsilon=1, neighbours="replace-one"))
    >>> fit = pc.ols(release, "effect ~ dose")
    >>> bool(1.5 < fit.params["dose"] < 2.5)
    True
    """
    if method not in get_args(Method):
        raise ParameterError("E239", f"method must be one of {', '.join(get_args(Method))}, got {method!r}.")
    if naive and method != "auto":
        raise ParameterError(
            "E239", "naive ignores the noise, so it takes no method.", "Leave one of the two out."
        )
    if errors not in get_args(Errors):
        raise ParameterError("E287", f"errors must be one of {', '.join(get_args(Errors))}, got {errors!r}.")
    if errors == "conservative" and method == "bootstrap":
        raise ParameterError(
            "E287",
            "the bootstrap redraws errors of one variance, so it has no conservative intervals.",
            "Take method auto, wald or score.",
        )
    parsed = Formula.parse(formula, release.schema)
    law = release.law
    words: dict[str, Any] = {"release": release, "formula": parsed, "asked": method, "errors": errors}
    if naive or law is None:
        return _fitted((), naive=naive, **words)
    hidden = hidden_levels(release, parsed, law)
    fit = _fitted(hidden, naive=False, **words)
    more = hidden_levels(release, parsed, law, clear=PLAIN)
    if more == hidden or not fit.uncertainty.nearly_hides:
        return fit
    without = _fitted(more, naive=False, **words)
    better = not without.uncertainty.nearly_hides or (fit.uncertainty.hides and not without.uncertainty.hides)
    return without if better else fit


def _fitted(hidden: tuple[int, ...], *, release: Release, formula: Formula, naive: bool, **words: Any) -> Fit:
    moments = Moments.of(release, formula, without=hidden)
    if naive:
        moments = replace(moments, noise=None)
    return Fit(
        release=release,
        formula=formula,
        moments=moments,
        swept=sweep(moments.matrix, moments.names),
        naive=naive,
        merged=tuple(release.columns[place] for place in hidden),
        **words,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Fit(Contrasts, Shown):
    """A fitted least-squares model. Names are those of the release; numbers are in original units.

    Made by ``privcov.ols``. Every dictionary has one entry per coefficient, by name.

    Attributes
    ----------
    release : Release
        What it was fitted on.
    formula : Formula
        The model, as it was read.
    moments : Moments
        The sums of products behind the fit, in working units.
    swept : Swept
        The solution of the normal equations, in working units.
    asked : {"auto", "wald", "score", "bootstrap"}
        The method asked for; ``method`` is the one taken.
    naive : bool
        Whether the noise of the release is ignored.
    merged : tuple of str
        Levels that count with the baseline, because the noise hides how many rows have them. They have no coefficient.
    errors : {"equal", "conservative"}
        What is assumed of errors: one variance, or only what the bounds allow.
    about : {"population", "table"}
        What intervals and tests are about: the people that the rows were drawn from, or these very rows. ``table`` is
        the same fit about the table.

    Examples
    --------
    >>> import numpy as np, privcov as pc
    >>> dose = np.linspace(0, 10, 4000)
    >>> rows = np.stack([dose, 2 * dose + np.sin(np.arange(4000) ** 2)], axis=1)
    >>> bounds = {"dose": {"lower": 0, "upper": 10}, "effect": {"lower": -1, "upper": 21}}
    >>> release = pc.release(rows, schema=pc.Schema.from_dict({"columns": bounds}),
    ...                      loss=pc.PureDP(epsilon=9, neighbours="replace-one"))
    >>> fit = pc.ols(release, "effect ~ dose")
    >>> round(fit.params["dose"], 1), fit.method, fit.rehearsal
    (2.0, 'wald', False)
    >>> fit.bse["dose"] < 0.1, 0 <= fit.privacy_share["dose"] <= 1
    (True, True)
    >>> fit.tvalues["dose"] > 10, fit.pvalues["dose"] < 0.001
    (True, True)
    >>> fit.accepts("dose", 200.0), 0.4 < fit.residual_std_error < 1.2, fit.rsquared > 0.9
    (False, True, True)
    >>> fit.f_test.p_value < 0.001, bool(fit.uncertainty.wald_is_sound)
    (True, True)
    >>> 0.9 < fit.rsquared_adj <= fit.rsquared, fit.aic < fit.bic, fit.vif, fit.cov_params().shape
    (True, True, {'dose': 1.0}, (2, 2))
    >>> fit.t_test({"dose": 10, "(Intercept)": 1}, 20.0).p_value > 0.001, fit.wald_test(["dose"]).p_value < 0.001
    (True, True)
    >>> fit.compare_f_test(pc.ols(release, "effect ~ 1")).numerator_freedom, round(fit.standardized_params["dose"])
    (1, 1)
    >>> fit.predict({"dose": [5.0]}).round(), fit.get_prediction([[5.0]]).observed_upper.round() > 10
    (array([10.]), array([ True]))
    >>> fit.adjusted_pvalues()["dose"] < 0.001, fit.simultaneous_conf_int()["dose"][1] > fit.conf_int()["dose"][1]
    (True, True)
    >>> list(fit.summary_frame())[:6]
    ['coef', 'std err', 't', 'P>|t|', 'Conf. Int. Low', 'Conf. Int. Upp.']
    >>> fit.table.bse["dose"] <= fit.bse["dose"], fit.widening["dose"] >= 1
    (True, True)
    >>> round(fit.shrunk.params["dose"], 1)
    2.0
    >>> print(fit.summary().splitlines()[0])
    Private least squares: effect ~ dose
    >>> [row["name"] for row in fit.to_dict()["coefficients"]], list(fit.to_pandas().index)
    (['(Intercept)', 'dose'], ['(Intercept)', 'dose'])
    >>> "toprule" in fit.to_latex()
    True
    """

    release: Release
    formula: Formula
    moments: Moments
    swept: Swept
    asked: Method
    naive: bool
    merged: tuple[str, ...] = ()
    errors: Errors = "equal"
    about: Literal["population", "table"] = "population"

    @cached_property
    def method(self) -> str:
        """How intervals are made, "wald", "score", "bootstrap" or "naive"; "none" where the noise has no law."""
        if self.naive:
            return "naive"
        if self.moments.noise is None:
            return "none"
        if self.asked != "auto":
            return self.asked
        return "wald" if self.uncertainty.wald_is_sound else "score"

    @cached_property
    def table(self) -> Fit:
        """The same fit about this very table, which is what its bounded rows would have said without noise.

        Its errors, intervals and tests count the noise alone, whatever the errors of the model are like.
        """
        return replace(self, about="table")

    @cached_property
    def shrunk(self) -> RidgeFit | None:
        """The same regression with slopes drawn towards zero as far as the noise demands, to predict with.

        It is ``privcov.ridge`` with the penalty whose estimated error for new rows is smallest, from the repaired
        matrix; its ``params`` and ``predict`` are those of a fit. Intervals and tests are not about it. None for a
        naive fit, without an intercept, without a slope, where levels are added up, and where the noise has no law.
        """
        release, kept = self.release, self.formula.regressors(self.release.schema)
        parts = [one.places for one in kept if one.name in self.moments.names]
        single = bool(parts) and all(len(places) == 1 for places in parts)
        if self.naive or not (self.moments.intercept and single and can_be_rehearsed(release)):
            return None
        return ridge(release, self.formula.target, features=[release.columns[place] for (place,) in parts])

    @cached_property
    def widening(self) -> dict[str, float]:
        """By what errors of any variance may multiply the sampling error of each coefficient, at least 1.

        With ``errors="conservative"`` standard errors are multiplied by it; otherwise they assume errors of one
        variance, and it says what that assumption is worth.
        """
        return self._named(np.sqrt([self._persons.leverage(row) for row in self.moments.slope]))

    @property
    def rehearsal(self) -> bool:
        """Whether the release had repeatable noise, so that nothing here may be published."""
        return self.release.certificate.randomness == "rehearsal"

    @property
    def params(self) -> dict[str, float]:
        """The coefficients, in units of the target per unit of the column."""
        return self._named(self._estimates)

    @property
    def bse(self) -> dict[str, float]:
        """The standard errors of the coefficients, sampling and privacy together, in the coefficients' units."""
        return self._named(self._errors)

    @property
    def privacy_share(self) -> dict[str, float]:
        """The share, from 0 to 1, of each coefficient's variance that the noise of the release adds."""
        noise, total = self._variances(self._known.privacy), self._errors**2
        return self._named(np.divide(noise, total, out=np.zeros_like(total), where=total > 0))

    @property
    def tvalues(self) -> dict[str, float]:
        """Estimate over standard error; under score inversion the signed root of the score statistic at 0.

        It is the statistic that ``pvalues`` come from and ``conf_set`` inverts.
        """
        return self._named(self._statistics)

    @cached_property
    def pvalues(self) -> dict[str, float]:
        """The two-sided p-value of "this coefficient is zero", for each coefficient."""
        if self._bootstrap is not None:
            pairs = zip(self.moments.slope, self._estimates, strict=True)
            return self._named(np.array([self._bootstrap.tail(row, value) for row, value in pairs]))
        pairs = zip(self._tails, self._statistics, strict=True)
        return self._named(np.array([tails.p_value(size**2) for tails, size in pairs]))

    def conf_int(self, level: float = 0.95) -> dict[str, tuple[float, float]]:
        """Return a confidence interval for each coefficient.

        Parameters
        ----------
        level : float, default 0.95
            The confidence level, from 0.5 to below 1.

        Returns
        -------
        dict of str to tuple of float
            The low and the high end, in the coefficients' units. Infinite where the release cannot say. Where the
            confidence set has a gap this is its hull, and ``conf_set`` has the pieces.

        Raises
        ------
        ParameterError
            The level is out of range (E239), or the law of the noise is not published (E238).

        Examples
        --------
        >>> import numpy as np, privcov as pc
        >>> rows = np.linspace(0, 10, 4000)[:, None] @ [[1.0, 2.0]]
        >>> bounds = {"dose": {"lower": 0, "upper": 10}, "effect": {"lower": 0, "upper": 20}}
        >>> release = pc.release(rows, schema=pc.Schema.from_dict({"columns": bounds}),
        ...                      loss=pc.PureDP(epsilon=9, neighbours="replace-one"))
        >>> low, high = pc.ols(release, "effect ~ dose").conf_int(0.99)["dose"]
        >>> 1.9 < low < high < 2.1
        True
        """
        return {name: (pieces[0][0], pieces[-1][1]) for name, pieces in self.conf_set(level).items()}

    def conf_set(self, level: float = 0.95) -> dict[str, Pieces]:
        """Return the confidence set of each coefficient: every value that the test behind ``pvalues`` does not reject.

        A p-value is below 1 - level exactly where zero is not in the set.

        Parameters
        ----------
        level : float, default 0.95
            The confidence level, from 0.5 to below 1.

        Returns
        -------
        dict of str to tuple of pairs of float
            Closed intervals in rising order, in the coefficients' units: nearly always one. Two rays, from minus
            infinity and to infinity, say that the coefficient is not zero but may be as large as anything.

        Raises
        ------
        ParameterError
            The level is out of range (E239), or the law of the noise is not published (E238).

        Examples
        --------
        >>> import numpy as np, privcov as pc
        >>> rows = np.linspace(0, 10, 4000)[:, None] @ [[1.0, 2.0]]
        >>> bounds = {"dose": {"lower": 0, "upper": 10}, "effect": {"lower": 0, "upper": 20}}
        >>> release = pc.release(rows, schema=pc.Schema.from_dict({"columns": bounds}),
        ...                      loss=pc.PureDP(epsilon=9, neighbours="replace-one"))
        >>> len(pc.ols(release, "effect ~ dose").conf_set()["dose"])
        1
        """
        self._check(level)
        return {name: self._set(i, float(level)) for i, name in enumerate(self.moments.names)}

    def accepts(self, name: str, value: float, level: float = 0.95) -> bool:
        """Say whether a value of one coefficient is in its confidence set, without finding the ends of the set.

        Parameters
        ----------
        name : str
            The coefficient, by its name in ``params``.
        value : float
            The value in question, in original units.
        level : float, default 0.95
            The confidence level, from 0.5 to below 1.

        Returns
        -------
        bool
            Whether the value is not rejected.

        Raises
        ------
        ParameterError
            There is no such coefficient (E231), the level is out of range (E239), or the law of the noise
            is not published (E238).
        """
        i = self._place(name)
        self._check(level)
        if self.method == "score" and not self._known.doubt.any():
            return self._profiles[i](value - self.moments.shift[i]) <= self._tails[i].critical(float(level))
        return any(low <= value <= high for low, high in self._set(i, float(level)))

    @cached_property
    def residual_std_error(self) -> float:
        """The estimated standard deviation of the errors, in units of the target; NaN where noise leaves none.

        It is no larger than the bounds of the target allow.
        """
        variance = min(self._known.residual_variance, goodness.largest_variance(self.moments))
        return float(np.sqrt(variance)) * self.moments.target_width if variance > 0 else float("nan")

    def residual_std_error_interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return a confidence interval for the standard deviation of the errors.

        Parameters
        ----------
        level : float, default 0.95
            The confidence level, from 0.5 to below 1.

        Returns
        -------
        tuple of float
            The low and the high end, in units of the target. It counts sampling, as with normal errors, and the
            noise, and ends where the bounds of the target do.

        Raises
        ------
        ParameterError
            The level is out of range (E239), or the law of the noise is not published (E238).

        Examples
        --------
        >>> import numpy as np, privcov as pc
        >>> rows = np.linspace(0, 10, 4000)[:, None] @ [[1.0, 2.0]]
        >>> bounds = {"dose": {"lower": 0, "upper": 10}, "effect": {"lower": 0, "upper": 20}}
        >>> release = pc.release(rows, schema=pc.Schema.from_dict({"columns": bounds}),
        ...                      loss=pc.PureDP(epsilon=9, neighbours="replace-one"))
        >>> low, high = pc.ols(release, "effect ~ dose").residual_std_error_interval()
        >>> 0 <= low < high < 2
        True
        """
        low, high = goodness.residual_variance_interval(self._persons, self._critical(level))
        return float(np.sqrt(low)) * self.moments.target_width, float(
            np.sqrt(high)
        ) * self.moments.target_width

    @cached_property
    def rsquared(self) -> float:
        """The share of the target's variance that the model explains; NaN where its 95 % interval is all of [0, 1]."""
        return goodness.r_squared(self._persons)

    def rsquared_interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return a confidence interval for R².

        Parameters
        ----------
        level : float, default 0.95
            The confidence level, from 0.5 to below 1.

        Returns
        -------
        tuple of float
            The low and the high end; 0 and 1 where the noise drowns the target or a column.

        Raises
        ------
        ParameterError
            The level is out of range (E239), or the law of the noise is not published (E238).

        Examples
        --------
        >>> import numpy as np, privcov as pc
        >>> rows = np.linspace(0, 10, 4000)[:, None] @ [[1.0, 2.0]]
        >>> bounds = {"dose": {"lower": 0, "upper": 10}, "effect": {"lower": 0, "upper": 20}}
        >>> release = pc.release(rows, schema=pc.Schema.from_dict({"columns": bounds}),
        ...                      loss=pc.PureDP(epsilon=9, neighbours="replace-one"))
        >>> low, high = pc.ols(release, "effect ~ dose").rsquared_interval()
        >>> 0.9 < low <= high <= 1
        True
        """
        _ = self._critical(level)
        low, high = goodness.r_squared_interval(self._persons, float(level))
        if self.about == "table" or self.moments.noise is None:
            return low, high
        # Sampling is a bound, which may say less: what this table would have said is within what a population may be.
        least, most = self.table.rsquared_interval(level)
        return min(low, least), max(high, most)

    @cached_property
    def f_test(self) -> FTest | None:
        """The test that every slope is zero, the noise taken into account; None for a model without slopes."""
        slopes = np.eye(self.moments.size)[int(self.moments.intercept) :]
        if not len(slopes):
            return None
        if len(slopes) == 1 and self.method == "score":
            return self.wald_test(self.moments.names[-1:])
        known = self._uncertainty_of(slopes)
        return goodness.f_test(known, method=self.method, bootstrap=self._bootstrap)

    def summary(self, level: float = 0.95) -> str:
        """Return the regression table as text, with the part of each standard error that is privacy.

        Parameters
        ----------
        level : float, default 0.95
            The confidence level of the intervals, from 0.5 to below 1.

        Returns
        -------
        str
            Several lines, to print.

        Raises
        ------
        ParameterError
            The level is out of range (E239).
        """
        return as_text(self, level)

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Return everything the summary says, for programs.

        Parameters
        ----------
        level : float, default 0.95
            The confidence level of the intervals, from 0.5 to below 1.

        Returns
        -------
        dict
            JSON values. None stands for an infinite end of an interval, and for what cannot be said.

        Raises
        ------
        ParameterError
            The level is out of range (E239).
        """
        return as_values(self, level)

    def to_latex(self, level: float = 0.95) -> str:
        """Return the table as LaTeX with booktabs rules.

        Parameters
        ----------
        level : float, default 0.95
            The confidence level of the intervals, from 0.5 to below 1.

        Returns
        -------
        str
            A ``tabular``; the method and the promise are its last lines.

        Raises
        ------
        ParameterError
            The level is out of range (E239).
        """
        return as_latex(self, level)

    def to_pandas(self, level: float = 0.95) -> pandas.DataFrame:
        """Return the table as a pandas frame, one row per coefficient.

        Parameters
        ----------
        level : float, default 0.95
            The confidence level of the intervals, from 0.5 to below 1.

        Returns
        -------
        pandas.DataFrame
            Its ``attrs`` carry the method, the promise and the labels.

        Raises
        ------
        ParameterError
            pandas is not installed, or the level is out of range (E239).
        """
        return as_frame(self, level)

    def __repr__(self) -> str:
        label = "REHEARSAL " if self.rehearsal else ""
        return f"<{label}Fit {self.formula}: {self.moments.size} coefficients, intervals: {self.method}>"

    @cached_property
    def uncertainty(self) -> Uncertainty:
        """The covariances behind the table, in working units; with conservative errors, of all coefficients at once."""
        return self._weighed(np.eye(self.moments.size))

    @cached_property
    def _one_variance(self) -> Uncertainty:
        """Rows of one person may depend on each other, which at most multiplies what sampling counts for by them."""
        weight = float(self.moments.per_person) if self.about == "population" else 0.0
        if (found := self.release.calibration) is not None:
            # Rows that were shortened are as other rows: docs/explain/frame.md.
            weight += self.moments.rows * found.bias**2
        return Uncertainty(moments=self.moments, swept=self.swept, weight=weight)

    def _weighed(self, functionals: Floats) -> Uncertainty:
        alone = self._one_variance
        if self.errors == "equal" or self.about == "table":
            return alone
        return replace(alone, weight=alone.weight * alone.leverage(functionals))

    def _uncertainty_of(self, functionals: Floats) -> Uncertainty:
        """The covariances to take for one or more combinations of working coefficients."""
        _ = self._known
        return self._weighed(functionals)

    @property
    def _known(self) -> Uncertainty:
        if self.method == "none":
            raise ParameterError(
                "E238",
                f"the noise of {self.release.certificate.mechanism} has no known distribution, so there are estimates "
                "but no standard errors or intervals.",
                "Ask for a release by symmetric-wishart or gaussian.",
            )
        return self.uncertainty

    @property
    def _persons(self) -> Uncertainty:
        """What R² and the residual error rest on: they have no bound for errors of any variance."""
        _ = self._known
        return self._one_variance

    @staticmethod
    def _check(level: float) -> None:
        if isinstance(level, bool) or not isinstance(level, float | int) or not 0.5 <= level < 1:
            raise ParameterError("E239", f"level must be a number from 0.5 to below 1, got {level!r}.")

    def _critical(self, level: float) -> float:
        """The squared quantile of a level of Student's law."""
        self._check(level)
        return critical_value(float(level), self._known.freedom)

    @cached_property
    def _tails(self) -> list[Tails]:
        """The law of the test of each coefficient: Student's, with the tails that noise gives it."""
        return [self._known.tails(row) for row in self.moments.slope]

    def _set(self, i: int, level: float) -> Pieces:
        estimate, error, shift, tails = (
            self._estimates[i],
            self._errors[i],
            self.moments.shift[i],
            self._tails[i],
        )
        if self._bootstrap is not None:
            low, high = self._bootstrap.interval(self.moments.slope[i], level)
            return ((float(estimate + low), float(estimate + high)),)
        if self.method == "score":
            profile, places = self._profiles[i], {"centre": float(estimate - shift), "null": float(-shift)}
            # Where noise drowns the design nearly every set is the whole line, which takes no exact quantile to say.
            if (
                np.isfinite(error)
                and error > 0
                and is_all(profile, critical=tails.least_critical(level), **places)
            ):
                return ((-np.inf, np.inf),)
            row, critical = self.moments.slope[i], tails.critical(level)
            known = self._uncertainty_of(row)
            found = score_set(profile, step=known.entries.error(row), critical=critical, **places)
            wide = known.widened(found, row, centre=places["centre"], critical=critical)
            return tuple((low + float(shift), high + float(shift)) for low, high in wide)
        half = float(np.sqrt(tails.critical(level)) * error)
        return ((float(estimate) - half, float(estimate) + half),)

    def _place(self, name: str) -> int:
        if name not in self.moments.names:
            raise ParameterError(
                "E231", f"the fit has no coefficient {name!r}.", f"It has {self.moments.names}."
            )
        return self.moments.names.index(name)

    def _named(self, values: Floats) -> dict[str, float]:
        return dict(zip(self.moments.names, values.tolist(), strict=True))

    def _variances(self, covariance: Floats) -> Floats:
        slope = self.moments.slope
        return np.asarray(np.einsum("ij,jk,ik->i", slope, covariance, slope))

    @cached_property
    def _estimates(self) -> Floats:
        return np.asarray(self.moments.slope @ self.swept.coefficients + self.moments.shift)

    @cached_property
    def _errors(self) -> Floats:
        return np.array([self._uncertainty_of(row).error(row) for row in self.moments.slope])

    @cached_property
    def _statistics(self) -> Floats:
        if self.method == "score":
            each = zip(self._profiles, self._estimates, self.moments.shift, strict=True)
            at_zero = [0.0 if is_lost(f, value - shift) else f(-shift) for f, value, shift in each]
            rows, away = self.moments.slope[:, None], self._estimates[:, None]
            pairs = zip(at_zero, rows, away, strict=True)
            doubted = [self._uncertainty_of(row).doubted(max(q, 0.0), row, far) for q, row, far in pairs]
            return np.sign(self._estimates) * np.sqrt(doubted)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self._estimates / self._errors)

    @cached_property
    def _profiles(self) -> list[Any]:
        return [self._uncertainty_of(row).profile(row) for row in self.moments.slope]

    @cached_property
    def _bootstrap(self) -> Bootstrap | None:
        if self.method != "bootstrap" or self.moments.noise is None:
            return None
        return Bootstrap.of(self.uncertainty)
