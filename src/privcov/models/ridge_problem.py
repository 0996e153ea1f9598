"""One ridge problem: a target, its features and their repaired moments; what every penalty shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats
from privcov.models import perturbation, selection
from privcov.models.penalty import Rehearsable
from privcov.releases.release import Release


def solve(design: Floats, cross: Floats, penalty: float, weights: Floats | float = 1.0) -> Floats:
    """b of (design + penalty · diag(weights)) b = cross; refuses a system that is singular.

    >>> solve(np.array([[3.0]]), np.array([8.0]), 1.0)
    array([2.])
    """
    system = design + penalty * np.diag(np.broadcast_to(np.asarray(weights, dtype=np.float64), len(design)))
    # Equal scales on the diagonal, so that positive definite is told from singular whatever the units are.
    size = np.sqrt(np.maximum(np.diag(system), 1e-300))
    try:
        factor = scipy.linalg.cho_factor(system / np.outer(size, size))
        singular = float(np.min(np.diag(factor[0]))) < 1e-7
    except np.linalg.LinAlgError:
        singular = True
    if singular:
        raise ParameterError(
            "E252", f"with penalty {penalty:g} the features are linearly dependent.", "Raise the penalty."
        )
    return np.asarray(scipy.linalg.cho_solve(factor, cross / size) / size)


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """One target, its features and the repaired moments of both, in scaled units; what every penalty shares."""

    release: Release
    target: int
    features: tuple[int, ...]
    scaled: bool
    moment: Floats
    """Repaired second moments of the intercept, the features and the target, in this order."""

    @classmethod
    def of(
        cls, release: Release, target: str, *, features: Sequence[str] | None, scaled: bool, repair: str
    ) -> Problem:
        selection.needs_intercept(release, "ridge regression")
        goal = selection.target_place(release.schema, target)
        places = selection.feature_places(release.schema, features, target=goal)
        whole = [0, *places, goal]
        moment = release.second_moment(scaled=True, repair=repair)[np.ix_(whole, whole)]
        made = cls(release=release, target=goal, features=tuple(places), scaled=scaled, moment=moment)
        flat = (
            [made.target_name]
            if made.constant_mask[-1]
            else list(made.constant)
            if features is not None
            else []
        )
        if flat:
            raise ParameterError(
                "E254",
                f"the release shows no variance in {', '.join(flat[:8])}.",
                "Choose columns with variance.",
            )
        return made

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.release.columns[place] for place in self.features)

    @property
    def target_name(self) -> str:
        return self.release.columns[self.target]

    @cached_property
    def sums(self) -> Floats:
        """Centred sums of squares and products of features and target, in scaled units."""
        return perturbation.centred(self.moment)

    @property
    def constant_mask(self) -> NDArray[np.bool_]:
        return np.asarray(np.diag(self.sums) <= selection.NO_VARIANCE * max(1.0, float(self.moment[0, 0])))

    @property
    def constant(self) -> tuple[str, ...]:
        """Features that the release leaves no variance."""
        return tuple(name for name, flat in zip(self.names, self.constant_mask[:-1], strict=True) if flat)

    @property
    def units(self) -> Floats:
        return np.array([self.release.schema.features[place].unit for place in self.features])

    @property
    def weights(self) -> Floats:
        """What the penalty weighs each squared scaled coefficient with."""
        return np.ones(len(self.features)) if self.scaled else self.units**-2.0

    def grid(self) -> Floats:
        """The default penalties."""
        mean = float(np.mean(np.diag(self.sums)[:-1] / self.weights))
        return np.logspace(-5, 3, 33) * max(mean, 1e-12)

    def slopes(self, penalty: float) -> Floats:
        """Scaled coefficients without the intercept; 0 for a column without variance."""
        keep = np.flatnonzero(~self.constant_mask[:-1])
        result = np.zeros(len(self.features))
        if len(keep):
            design = self.sums[np.ix_(keep, keep)]
            result[keep] = solve(design, self.sums[keep, -1], penalty, self.weights[keep])
        return result

    def rehearsable(self) -> Rehearsable:
        """What a penalty is chosen from."""
        law = perturbation.known_law(self.release, "the choice of a penalty")
        keep = np.array([0, *(np.flatnonzero(~self.constant_mask) + 1)])
        whole = np.array([0, *self.features, self.target])[keep]
        return Rehearsable(
            release=self.release,
            law=law,
            places=tuple(whole.tolist()),
            moment=self.moment[np.ix_(keep, keep)],
            weights=self.weights[keep[1:-1] - 1],
        )
