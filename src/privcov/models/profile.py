"""The score statistic as a function of one combination of coefficients, the others where it is lowest.

What makes it quick: a search begins on the line through the two nearest floors that were found before; a step costs
a Cholesky factor and not an eigendecomposition, unless the valley bends the wrong way; and what the statistic tends
to far away is one number for all combinations (``Uncertainty.far_away``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from privcov.linalg.arrays import Floats

if TYPE_CHECKING:
    from privcov.models.inference import Uncertainty

Height = tuple[float, Floats, Floats]
"""A value, its gradient and its second derivatives."""
_LAST_GAIN = 1e-7  # of a Newton step: what is left after it is of the order of its power 3/2, so below 1e-10


def lowest(
    value: Callable[[Floats], Height], start: Floats, *, limit: float | None = None
) -> tuple[float, Floats]:
    """The floor of the valley ``start`` lies in, and its place: Newton steps that never climb, while they gain.

    With a limit the search ends as soon as it is clear on which side of it the floor is: below where a place is; above
    where twice what a Newton step promises would not reach it, or where steps gain less than a tenth each and the limit
    is ten times lower.

    >>> height, place = lowest(lambda x: (1 + float(x @ x), 2 * x, 2 * np.eye(2)), np.array([0.5, 1.0]))
    >>> height, bool(np.abs(place).max() < 1e-12)
    (1.0, True)
    """
    place = start
    height, slope, curve = value(place)
    for _ in range(40):
        step, upright = _newton(slope, curve)
        # Nuisance is in standard errors, so a step longer than 4 is not to be trusted, or than half the way from the
        # middle: far away the statistic changes with the direction alone.
        size, most = float(np.linalg.norm(step)), max(4.0, float(np.linalg.norm(place)) / 2)
        step *= min(1.0, most / max(size, 1e-12))
        gain = -float(slope @ step)
        if not gain > 1e-9 * (1 + height) or (limit is not None and height <= limit):
            break
        sound = upright and size <= most
        if sound and gain <= _LAST_GAIN * (1 + height):
            return height - gain / 2, place + step
        if limit is not None and height > 10 * limit and gain < height / 10:
            break
        if limit is not None and sound and height - gain > limit:
            return height - gain / 2, place + step
        # A step that does not gain is cut to a third, and given up after twelve cuts: the height never rises.
        for _ in range(12):
            reached = value(place + step)
            if reached[0] < height:
                break
            step = step / 3
        else:
            break
        place, (height, slope, curve) = place + step, reached
    return height, place


def _newton(slope: Floats, curve: Floats) -> tuple[Floats, bool]:
    """A Newton step, and whether the curvature is upright in every direction.

    Where it is not, the absolute curvature is taken, so that a step descends on a saddle too; flat directions get a
    small curvature instead of none.
    """
    try:
        return -cho_solve(cho_factor(curve, check_finite=False), slope, check_finite=False), True
    except LinAlgError:
        curves, axes = np.linalg.eigh(curve)
        curves = np.maximum(np.abs(curves), 1e-6 * max(float(np.abs(curves).max()), 1e-12))
        return -axes @ ((axes.T @ slope) / curves), False


@dataclass(frozen=True, kw_only=True, eq=False)
class Profile:
    """θ ↦ min of Q over all b with functional·b = θ; θ = ±inf is the limit, which decides boundedness.

    The coefficient that weighs most in the functional follows from θ and the others; these are searched, each in
    its standard error.
    """

    uncertainty: Uncertainty
    functional: Floats
    _floors: dict[float, Floats] = field(default_factory=dict)
    _heights: dict[float, float] = field(default_factory=dict)

    def __call__(self, theta: float) -> float:
        if np.isinf(theta):
            return self.uncertainty.far_away
        if theta not in self._heights:
            self._heights[theta] = self._remember(theta, self.search(theta, self._starts(theta)))
        return self._heights[theta]

    def above(self, theta: float, limit: float) -> bool:
        """Whether the profile is above a limit there, which takes less to say than how far."""
        if np.isinf(theta):
            return self.uncertainty.far_away > limit
        return self._remember(theta, self.search(theta, self._starts(theta), limit=limit)) > limit

    def search(
        self, theta: float, starts: Sequence[Floats], *, tail: float = 1.0, limit: float | None = None
    ) -> tuple[float, Floats]:
        """The lowest Q of ζ = (−b, tail) with functional·b = θ that is found from these b, and its b."""
        middle = tail * self.uncertainty.swept.coefficients

        def place(eta: Floats) -> Floats:
            made = middle.copy()
            made[self._rest] += self._errors * eta
            made[self._pivot] = theta / self.functional[self._pivot] - self._ratios @ made[self._rest]
            return made

        def value(eta: Floats) -> Height:
            q, slope, curve = self.uncertainty.statistic(np.append(-place(eta), tail))
            return q, -self._along(slope), self._bend(curve)

        if not len(self._rest):
            return value(np.zeros(0))[0], place(np.zeros(0))
        found = [lowest(value, (start - middle)[self._rest] / self._errors, limit=limit) for start in starts]
        height, eta = min(found, key=lambda floor: floor[0])
        return height, place(eta)

    def _remember(self, theta: float, found: tuple[float, Floats]) -> float:
        self._floors[theta] = found[1]
        return found[0]

    def _starts(self, theta: float) -> list[Floats]:
        """Where Q may be lowest: on the line through the two nearest floors, or along its tangent at b̂, if lower.

        A floor far away may lie in another valley, in which every search that begins on its line would end.
        """
        estimate = self.uncertainty.swept.coefficients
        centre, spread = float(self.functional @ estimate), self.uncertainty.total @ self.functional
        away = float(self.functional @ spread)
        tangent = spread / away if away > 0 else self.functional / float(self.functional @ self.functional)
        near = sorted({**self._floors, centre: estimate}.items(), key=lambda floor: abs(floor[0] - theta))[:2]
        starts = [estimate + tangent * (theta - centre)]
        if len(near) == 2:
            (one, place), (other, next_place) = near
            line = place + (place - next_place) * ((theta - one) / (one - other))
            starts = [min(line, starts[0], key=lambda b: self.uncertainty.statistic(np.append(-b, 1.0))[0])]
        if self.uncertainty.drowned:  # Q may then have several valleys
            starts.append(estimate)
        return starts

    @cached_property
    def _pivot(self) -> int:
        return int(np.argmax(np.abs(self.functional)))

    @cached_property
    def _rest(self) -> NDArray[np.intp]:
        return np.delete(np.arange(len(self.functional)), self._pivot)

    @cached_property
    def _ratios(self) -> Floats:
        return np.asarray(self.functional[self._rest] / self.functional[self._pivot])

    @cached_property
    def _errors(self) -> Floats:
        return np.sqrt(np.maximum(np.diag(self.uncertainty.total)[self._rest], 1e-300))

    def _along(self, slope: Floats) -> Floats:
        return np.asarray((slope[self._rest] - slope[self._pivot] * self._ratios) * self._errors)

    def _bend(self, curve: Floats) -> Floats:
        inner = curve[np.ix_(self._rest, self._rest)]
        if self._ratios.any():
            own = curve[self._pivot, self._pivot]
            bent = np.outer(curve[self._rest, self._pivot] - own / 2 * self._ratios, self._ratios)
            inner = inner - bent - bent.T
        return np.asarray(inner * np.outer(self._errors, self._errors))
