"""Ridge regression from a release: any target, any features, any penalty, for free.

The objective is Σ (y − b₀ − xᵀb)² + penalty · ‖b‖², a sum over rows, the intercept not penalised: what
scikit-learn's ``Ridge(alpha=penalty)`` minimises. With ``scaled=True`` ‖b‖ is measured for columns scaled to
[-1, 1], with ``scaled=False`` for columns in original units. Either way coefficients are reported in original
units. (Seed paper: w = (AAᵀ + 2λnI)⁻¹Ay, so penalty = 2λn.)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats
from privcov.models import perturbation, selection
from privcov.models.ridge_problem import NOTHING, Choice, Problem, choose
from privcov.models.ridge_summary import as_text
from privcov.models.summary import REHEARSAL
from privcov.releases.release import Release
from privcov.releases.rounds import counted, uncounted
from privcov.schema.names import INTERCEPT
from privcov.text.display import Shown


def ridge(
    release: Release,
    target: str,
    *,
    features: Sequence[str] | None = None,
    penalty: float | Literal["auto"] = "auto",
    scaled: bool = True,
    repair: str = "auto",
) -> RidgeFit:
    """Fit ridge regression of one column on others, from a release.

    The sum over rows of squared errors plus ``penalty`` times the squared norm of the coefficients is
    minimised; the intercept is not penalised. The release must have an intercept. A column that the release
    leaves no variance gets coefficient 0; where it leaves the target none, predictions are its mean.

    Parameters
    ----------
    release : Release
        The release to fit on. It costs no further privacy.
    target : str
        The column to explain. One level of a categorical column is written "sex[F]".
    features : sequence of str, optional
        The columns to explain it with. By default every other column.
    penalty : float or "auto", default "auto"
        The weight of the penalty, from 0, for a sum over rows. "auto" takes the one whose estimated error for
        new rows is smallest, with the noise and the sampling of rows counted; it needs the law of the noise.
    scaled : bool, default True
        Whether the penalty weighs coefficients of columns scaled to [-1, 1]; with False, of columns in
        original units.
    repair : str, default "auto"
        The repair that the moments are taken from: a name of ``privcov.repair.METHODS``.

    Returns
    -------
    RidgeFit
        Coefficients and predictions in original units.

    Raises
    ------
    ParameterError
        A column is unknown, the penalty is out of range, the law of the noise is not published and no penalty was
        given, or there is no intercept (E25x).

    Examples
    --------
    >>> import numpy as np, privcov as pc
    >>> rows = np.linspace(0, 10, 4000)[:, None] @ [[1.0, 2.0]]
    >>> bounds = {"dose": {"lower": 0, "upper": 10}, "effect": {"lower": 0, "upper": 20}}
    >>> release = pc.release(rows, schema=pc.Schema.from_dict({"columns": bounds}),
    ...                      loss=pc.PureDP(epsilon=1, neighbours="replace-one"))
    >>> fit = pc.ridge(release, "effect", penalty=1.0)
    >>> bool(1.5 < fit.coefficients["dose"] < 2.5)
    True
    """
    problem = Problem.of(release, target, features=features, scaled=scaled, repair=repair)
    if isinstance(penalty, str) and penalty == "auto":
        if problem.flat:  # no penalty changes the mean
            return RidgeFit(problem=problem, penalty=float(problem.grid()[-1]))
        choice = choose(problem.rehearsable(), problem.grid())
        return RidgeFit(problem=problem, penalty=choice.penalty, choice=choice)
    return RidgeFit(problem=problem, penalty=check_penalty(penalty))


def ridge_path(
    release: Release,
    target: str,
    penalties: Sequence[float] | None = None,
    *,
    features: Sequence[str] | None = None,
    scaled: bool = True,
    repair: str = "auto",
) -> RidgePath:
    """Fit ridge regression for many penalties.

    Parameters
    ----------
    release : Release
        The release to fit on. It costs no further privacy.
    target : str
        The column to explain.
    penalties : sequence of float, optional
        The penalties, from 0, each for a sum over rows. By default 33 from 10⁻⁵ to 10³ times the mean sum of
        squares of a column.
    features : sequence of str, optional
        The columns to explain it with. By default every other column.
    scaled : bool, default True
        Whether penalties weigh coefficients of columns scaled to [-1, 1]; with False, of columns in original
        units.
    repair : str, default "auto"
        The repair that the moments are taken from: a name of ``privcov.repair.METHODS``.

    Returns
    -------
    RidgePath
        One fit per penalty, each equal to what ``ridge`` gives.

    Raises
    ------
    ParameterError
        There is no penalty, or one is out of range (E252); a column is unknown (E25x).

    Examples
    --------
    >>> import numpy as np, privcov as pc
    >>> rows = np.linspace(0, 10, 4000)[:, None] @ [[1.0, 2.0]]
    >>> bounds = {"dose": {"lower": 0, "upper": 10}, "effect": {"lower": 0, "upper": 20}}
    >>> release = pc.release(rows, schema=pc.Schema.from_dict({"columns": bounds}),
    ...                      loss=pc.PureDP(epsilon=9, neighbours="replace-one"))
    >>> path = pc.ridge_path(release, "effect", [0.1, 1000.0])
    >>> bool(path.coefficients[0, 0] > path.coefficients[1, 0])
    True
    """
    problem = Problem.of(release, target, features=features, scaled=scaled, repair=repair)
    given = problem.grid() if penalties is None else np.array([check_penalty(value) for value in penalties])
    if not len(given):
        raise ParameterError(
            "E252", "a path needs at least one penalty.", "Leave penalties out for the default ones."
        )
    return RidgePath(fits=tuple(RidgeFit(problem=problem, penalty=float(value)) for value in given))


def check_penalty(penalty: Any) -> float:
    """The penalty as a number, not negative and finite."""
    fine = isinstance(penalty, int | float | np.number) and not isinstance(penalty, bool)
    if not fine or not 0 <= float(penalty) < math.inf:
        raise ParameterError(
            "E252",
            f"penalty must be a number from 0, or auto, got {penalty!r}.",
            "A larger penalty gives smaller coefficients.",
        )
    return float(penalty)


@dataclass(frozen=True, kw_only=True, eq=False)
class RidgeFit(Shown):
    """A fitted ridge regression; coefficients and predictions in original units.

    Attributes
    ----------
    problem : Problem
        The normal equations, in scaled units.
    penalty : float
        The weight of the penalty, for a sum over rows.
    choice : Choice or None
        How the penalty was chosen, where it was "auto".

    Examples
    --------
    >>> import numpy as np, privcov as pc
    >>> rows = np.linspace(0, 10, 4000)[:, None] @ [[1.0, 2.0]]
    >>> bounds = {"dose": {"lower": 0, "upper": 10}, "effect": {"lower": 0, "upper": 20}}
    >>> release = pc.release(rows, schema=pc.Schema.from_dict({"columns": bounds}),
    ...                      loss=pc.PureDP(epsilon=9, neighbours="replace-one"))
    >>> fit = pc.ridge(release, "effect", penalty=1.0)
    >>> fit.target, fit.columns, fit.rehearsal
    ('effect', ('dose',), False)
    >>> round(fit.coefficients["dose"], 1), fit.scaled_slopes.round(1), abs(round(fit.intercept))
    (2.0, array([1.]), 0)
    >>> fit.predict([[5.0]]).round(), fit.error_bound() < 0.1, fit.expected_error
    (array([10.]), True, None)
    >>> fit.to_dict()["penalty_units"], list(fit.params), fit.summary().splitlines()[0]
    ('scaled columns', ['(Intercept)', 'dose'], 'Private ridge regression of effect')
    """

    problem: Problem
    penalty: float
    choice: Choice | None = None

    @property
    def target(self) -> str:
        """The name of the column that is explained."""
        return self.problem.target_name

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the features, in the order of ``predict``."""
        return self.problem.names

    @property
    def rehearsal(self) -> bool:
        """Whether the release had repeatable noise, so that nothing here may be published."""
        return self.problem.release.certificate.randomness == "rehearsal"

    @cached_property
    def scaled_slopes(self) -> Floats:
        """The coefficients for columns and target scaled to [-1, 1]."""
        return self.problem.slopes(self.penalty)

    @cached_property
    def coefficients(self) -> dict[str, float]:
        """One coefficient per feature, in units of the target per unit of the column."""
        ratios = self._target_width / self.problem.units
        return dict(zip(self.columns, (self.scaled_slopes * ratios).tolist(), strict=True))

    @property
    def params(self) -> dict[str, float]:
        """The intercept, under "(Intercept)", and the coefficients, in one dictionary as ``Fit`` has them."""
        return {INTERCEPT: self.intercept, **self.coefficients}

    @cached_property
    def intercept(self) -> float:
        """The prediction where every feature is 0, in units of the target."""
        middles = [self._features[place].middle for place in self.problem.features]
        centre = self._features[self.problem.target].middle + self._target_width * self._scaled_intercept
        return float(centre - np.array(list(self.coefficients.values())) @ middles)

    def predict(self, rows: Any) -> Floats:
        """Predict the target for new rows.

        Parameters
        ----------
        rows : array or frame
            New rows in original units: an array in the order of ``columns``, or a frame with these columns.

        Returns
        -------
        ndarray of shape (n,)
            Predictions, in units of the target.

        Raises
        ------
        ParameterError
            The rows have another shape, or a column is missing (E25x).
        """
        table = selection.read_rows(self.problem.release, self.problem.features, rows)
        return np.asarray(self.intercept + table @ np.array(list(self.coefficients.values())))

    def error_bound(self, level: float = 0.95) -> float:
        """Return a bound on the distance to the coefficients that the true matrix would give with this penalty.

        Lemma 1 of Amin et al. (2019) from the law of the noise: at most 1 − level of releases exceed it. It
        holds for repaired fits too, by counting how far they are from solving the raw equations. See
        docs/explain/pca-and-ridge.md.

        Parameters
        ----------
        level : float, default 0.95
            The confidence level, from 0.5 to 0.999.

        Returns
        -------
        float
            A bound on ‖b − b̂‖₂, in scaled units. Infinite where the penalty is too small to say anything.

        Raises
        ------
        ParameterError
            The level is out of range (E258), the law of the noise is not published (E256), or the
            matrix is too wide to simulate (E269).
        """
        level, release, problem = perturbation.check_level(level), self.problem.release, self.problem
        law = perturbation.known_law(release, "a bound on the coefficients")
        places = [0, *problem.features, problem.target]
        count = perturbation.enough(law, level)
        draws = perturbation.rehearsed_noise(release, places, law=law, count=count)
        column, operator = perturbation.joint_bounds(
            draws,
            [
                lambda noise: np.asarray(np.linalg.norm(noise[:, :-1, -1], axis=1)),
                lambda noise: perturbation.spectral_norms(noise[:, :-1, :-1]),
            ],
            level,
        )
        raw = perturbation.public_raw(release, places)
        solution = np.concatenate([[self._scaled_intercept], self.scaled_slopes])
        weights = np.concatenate([[0.0], problem.weights])
        residual = raw[:-1, -1] - raw[:-1, :-1] @ solution - self.penalty * weights * solution
        moved = float(np.linalg.norm(residual)) + column + operator * float(np.linalg.norm(solution))
        floor = self.penalty * float(problem.weights.min())
        lowest = raw[:-1, :-1] - operator * np.eye(len(solution))
        # Scaled means are within what columns reach and rows may have, where no row can lose part of its intercept.
        reaches = [release.schema.features[place].reach for place in problem.features]
        longest = min(math.hypot(*reaches), release.schema.longest_row)
        mean_norm = longest if release.schema.keeps_indicators else math.inf
        if lowest[0, 0] > 0:
            least = perturbation.centred(lowest) + self.penalty * np.diag(problem.weights)
            floor = max(floor, float(np.linalg.eigvalsh(least)[0]))
            mean_norm = min(mean_norm, (float(np.linalg.norm(raw[0, 1:-1])) + operator) / lowest[0, 0])
        return math.hypot(1.0, mean_norm) * moved / floor if floor > 0 else math.inf

    @property
    def expected_error(self) -> float | None:
        """The root mean squared error for new rows, in units of the target.

        None where the penalty was not chosen by "auto", or the noise does not let the error be told.
        """
        error = math.nan if self.choice is None else self.choice.error * self._target_width
        return error if math.isfinite(error) else None

    def expected_error_interval(self, level: float = 0.95) -> tuple[float, float] | None:
        """Return an interval for the root mean squared error for new rows.

        Parameters
        ----------
        level : float, default 0.95
            The confidence level, from 0.5 to 0.999.

        Returns
        -------
        tuple of float or None
            The low and the high end, in units of the target: what noise and sampling of normal errors leave possible.
            The high end is infinite where there are too few rows. None where the penalty was not chosen by "auto".

        Raises
        ------
        ParameterError
            The level is out of range (E258).

        Examples
        --------
        >>> import numpy as np, privcov as pc
        >>> rows = np.linspace(0, 10, 4000)[:, None] @ [[1.0, 2.0]]
        >>> bounds = {"dose": {"lower": 0, "upper": 10}, "effect": {"lower": 0, "upper": 20}}
        >>> release = pc.release(rows, schema=pc.Schema.from_dict({"columns": bounds}),
        ...                      loss=pc.PureDP(epsilon=9, neighbours="replace-one"))
        >>> low, high = pc.ridge(release, "effect").expected_error_interval()
        >>> 0 <= low < high < 2
        True
        """
        level = perturbation.check_level(level)
        if self.choice is None:
            return None
        law = perturbation.known_law(self.problem.release, "an interval for the error")
        low, high = self.choice.interval(law.reach((1 - level) / 2))
        return low * self._target_width, high * self._target_width

    def summary(self, level: float = 0.95) -> str:
        """Return the coefficients as a table, with the penalty and the error bound.

        Parameters
        ----------
        level : float, default 0.95
            The confidence level of the error bound, from 0.5 to 0.999.

        Returns
        -------
        str
            Several lines, to print.

        Raises
        ------
        ParameterError
            The level is out of range (E258).
        """
        return as_text(self, level)

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Return everything a program may want.

        Parameters
        ----------
        level : float, default 0.95
            The confidence level of the error bound, from 0.5 to 0.999.

        Returns
        -------
        dict
            JSON values; None where there is no bound.

        Raises
        ------
        ParameterError
            The level is out of range (E258).
        """
        release, limit = self.problem.release, math.inf
        if perturbation.can_be_rehearsed(release):
            limit = self.error_bound(level)
        return {
            "target": self.target,
            "penalty": self.penalty,
            "penalty_chosen": self.choice is not None,
            "penalty_units": "scaled columns" if self.problem.scaled else "original columns",
            "labels": [REHEARSAL] if self.rehearsal else [],
            "rehearsal": self.rehearsal,
            "intercept": self.intercept,
            "coefficients": self.coefficients,
            "scaled_coefficients": dict(zip(self.columns, self.scaled_slopes.tolist(), strict=True)),
            "constant": list(self.problem.constant),
            "hidden": list(self.problem.hidden),
            "level": level,
            "error_bound": limit if math.isfinite(limit) else None,
            "scaled_norm": float(np.linalg.norm(self.scaled_slopes)),
            "expected_error": self.expected_error,
            "expected_error_interval": None
            if (ends := self.expected_error_interval(level)) is None
            else [end if math.isfinite(end) else None for end in ends],
            "mechanism": release.certificate.mechanism,
            "guarantee": str(release.certificate.loss),
            "not_counted": uncounted(release),
            "counted": counted(release),
        }

    def __repr__(self) -> str:
        label = "REHEARSAL " if self.rehearsal else ""
        return f"<{label}RidgeFit of {self.target} on {len(self.columns)} columns, penalty {self.penalty:g}>"

    @property
    def _features(self) -> Sequence[Any]:
        return self.problem.release.schema.features

    @property
    def _target_width(self) -> float:
        return float(self._features[self.problem.target].unit)

    @property
    def _scaled_intercept(self) -> float:
        means = self.problem.moment[0, 1:] / self.problem.moment[0, 0]
        found = float(means[-1] - means[:-1] @ self.scaled_slopes)
        return found if abs(found) >= NOTHING else 0.0


@dataclass(frozen=True, kw_only=True, eq=False)
class RidgePath(Shown):
    """Fits of one problem for many penalties, in the order they were asked for.

    Attributes
    ----------
    fits : tuple of RidgeFit
        One fit per penalty.

    Examples
    --------
    >>> import numpy as np, privcov as pc
    >>> rows = np.linspace(0, 10, 4000)[:, None] @ [[1.0, 2.0]]
    >>> bounds = {"dose": {"lower": 0, "upper": 10}, "effect": {"lower": 0, "upper": 20}}
    >>> release = pc.release(rows, schema=pc.Schema.from_dict({"columns": bounds}),
    ...                      loss=pc.PureDP(epsilon=9, neighbours="replace-one"))
    >>> path = pc.ridge_path(release, "effect", [0.1, 1.0])
    >>> path.penalties, path.coefficients.shape, path.columns, len(path)
    (array([0.1, 1. ]), (2, 1), ('dose',), 2)
    """

    fits: tuple[RidgeFit, ...]

    @property
    def penalties(self) -> Floats:
        """The penalties, one per fit."""
        return np.array([fit.penalty for fit in self.fits])

    @property
    def coefficients(self) -> Floats:
        """The coefficients in original units, one row per penalty, in the order of ``columns``."""
        return np.array([list(fit.coefficients.values()) for fit in self.fits])

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the features."""
        return self.fits[0].columns

    def __iter__(self) -> Iterator[RidgeFit]:
        return iter(self.fits)

    def __len__(self) -> int:
        return len(self.fits)

    def __repr__(self) -> str:
        label = "REHEARSAL " if self.fits[0].rehearsal else ""
        return f"<{label}RidgePath of {self.fits[0].target}: {len(self)} penalties>"
