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
from privcov.models.penalty import Choice, choose
from privcov.models.ridge_problem import Problem
from privcov.models.summary import REHEARSAL
from privcov.releases.release import Release
from privcov.text.display import Shown


def ridge(
    release: Release,
    target: str,
    *,
    features: Sequence[str] | None = None,
    penalty: float | Literal["auto"] = 0.1,
    scaled: bool = True,
    repair: str = "auto",
) -> RidgeFit:
    """Ridge regression of one column on others.

    Assumes the release has an intercept. ``penalty="auto"`` takes the one whose estimated error for new
    rows is smallest, with the noise and the sampling of rows counted (``privcov.models.penalty``). A
    column that the release leaves no variance gets coefficient 0, or is refused if it was named.

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
    """The fits for many penalties; by default 33 from 10⁻⁵ to 10³ times the mean sum of squares of a column.

    Assumes what ``ridge`` does, and equals it at every penalty.
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
            "Larger means smaller coefficients.",
        )
    return float(penalty)


@dataclass(frozen=True, kw_only=True, eq=False)
class RidgeFit(Shown):
    """A fitted ridge regression; coefficients and predictions in original units."""

    problem: Problem
    penalty: float
    choice: Choice | None = None
    """How the penalty was chosen, where it was ``auto``."""

    @property
    def target(self) -> str:
        return self.problem.target_name

    @property
    def columns(self) -> tuple[str, ...]:
        """The features in the order of ``predict``."""
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
        """One per feature, in original units."""
        ratios = self._target_width / self.problem.half_widths
        return dict(zip(self.columns, (self.scaled_slopes * ratios).tolist(), strict=True))

    @cached_property
    def intercept(self) -> float:
        """The prediction where every feature is 0, in original units."""
        middles = [self._features[place].middle for place in self.problem.features]
        centre = self._features[self.problem.target].middle + self._target_width * self._scaled_intercept
        return float(centre - np.array(list(self.coefficients.values())) @ middles)

    def predict(self, rows: Any) -> Floats:
        """The target for new rows in original units: an array in the order of ``columns``, or named columns."""
        table = selection.read_rows(self.problem.release, self.problem.features, rows)
        return np.asarray(self.intercept + table @ np.array(list(self.coefficients.values())))

    def error_bound(self, level: float = 0.95) -> float:
        """A bound on ‖b − b̂‖₂, scaled units, against the fit on the true matrix with this penalty.

        Lemma 1 of Amin et al. (2019) from the law of the noise: at most 1 − level of releases exceed it. It
        holds for repaired fits too, by counting how far they are from solving the raw equations. Infinite where
        the penalty is too small to say anything. Derivation: docs/explain/pca-and-ridge.md.
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
        # Scaled means are within [-1, 1], where no row can lose part of its intercept.
        mean_norm = math.sqrt(len(problem.features)) if release.schema.keeps_indicators else math.inf
        if lowest[0, 0] > 0:
            least = perturbation.centred(lowest) + self.penalty * np.diag(problem.weights)
            floor = max(floor, float(np.linalg.eigvalsh(least)[0]))
            mean_norm = min(mean_norm, (float(np.linalg.norm(raw[0, 1:-1])) + operator) / lowest[0, 0])
        return math.hypot(1.0, mean_norm) * moved / floor if floor > 0 else math.inf

    @property
    def expected_error(self) -> float | None:
        """Root mean squared error for new rows, original units, where the penalty was chosen and the noise lets it
        be told."""
        error = math.nan if self.choice is None else self.choice.error * self._target_width
        return error if math.isfinite(error) else None

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Everything a program may want; None where there is no bound."""
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
            "level": level,
            "error_bound": limit if math.isfinite(limit) else None,
            "scaled_norm": float(np.linalg.norm(self.scaled_slopes)),
            "expected_error": self.expected_error,
            "mechanism": release.certificate.mechanism,
            "guarantee": str(release.certificate.loss),
        }

    def __repr__(self) -> str:
        label = "REHEARSAL " if self.rehearsal else ""
        return f"<{label}RidgeFit of {self.target} on {len(self.columns)} columns, penalty {self.penalty:g}>"

    @property
    def _features(self) -> Sequence[Any]:
        return self.problem.release.schema.features

    @property
    def _target_width(self) -> float:
        return float(self._features[self.problem.target].half_width)

    @property
    def _scaled_intercept(self) -> float:
        means = self.problem.moment[0, 1:] / self.problem.moment[0, 0]
        return float(means[-1] - means[:-1] @ self.scaled_slopes)


@dataclass(frozen=True, kw_only=True, eq=False)
class RidgePath(Shown):
    """Fits of one problem for many penalties, in the order they were asked for."""

    fits: tuple[RidgeFit, ...]

    @property
    def penalties(self) -> Floats:
        return np.array([fit.penalty for fit in self.fits])

    @property
    def coefficients(self) -> Floats:
        """One row per penalty, in original units and the order of ``columns``."""
        return np.array([list(fit.coefficients.values()) for fit in self.fits])

    @property
    def columns(self) -> tuple[str, ...]:
        return self.fits[0].columns

    def __iter__(self) -> Iterator[RidgeFit]:
        return iter(self.fits)

    def __len__(self) -> int:
        return len(self.fits)

    def __repr__(self) -> str:
        label = "REHEARSAL " if self.fits[0].rehearsal else ""
        return f"<{label}RidgePath of {self.fits[0].target}: {len(self)} penalties>"
