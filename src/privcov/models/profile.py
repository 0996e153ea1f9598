"""The score statistic as a function of one combination of coefficients, the others where it is lowest.

What makes it quick: a search begins on the line through the two nearest floors that were found before; a step costs
a Cholesky factor and not an eigendecomposition, unless the valley bends the wrong way; what the statistic tends to
far away is one number for all combinations (``Uncertainty.far_away``); and there floors lie along one line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs

from privcov.linalg.arrays import Floats

if TYPE_CHECKING:
    from privcov.models.inference import Uncertainty

Height = tuple[float, Floats, Floats]
"""A value, its gradient and its second derivatives."""
_MOST_STEPS = 40
_SHALLOW = 40.0  # ten times what is usually rejected: where Q tends to less it may have several valleys
_PLAIN = 0.05  # no test of any use rejects what is accepted like this, so that no second valley is looked for
_OUTWARD = (
    4.0  # times what Q tends to far away: where a parabola would be above that, floors lie along that line
)
_LAST_GAIN = 1e-7  # of a Newton step: what is left after it is of the order of its power 3/2, so below 1e-10


def lowest(
    value: Callable[[Floats], Height], start: Floats, *, limit: float | None = None, known: float = np.inf
) -> tuple[float, Floats]:
    """The floor of the valley ``start`` lies in, and its place: Newton steps that never climb, while they gain.

    With a limit the search ends as soon as it is clear on which side of it the floor is: below where a place is; above
    where twice what a Newton step promises would not reach it, or where steps gain less than a tenth each and the limit
    is ten times lower. It also ends where the steps that are left, each gaining as much as this one, would not reach a
    floor that is known: from a second start the valley often runs off to infinity, or hangs on a saddle, far above it.

    >>> height, place = lowest(lambda x: (1 + float(x @ x), 2 * x, 2 * np.eye(2)), np.array([0.5, 1.0]))
    >>> height, bool(np.abs(place).max() < 1e-12)
    (1.0, True)
    """
    place = start
    height, slope, curve = value(place)
    for left in range(_MOST_STEPS, 0, -1):
        if limit is not None and height <= limit:
            break
        step, upright = _newton(slope, curve)
        # Nuisance is in standard errors, so a step longer than 4 is not to be trusted, or than half the way from the
        # middle: far away the statistic changes with the direction alone.
        size, most = float(np.linalg.norm(step)), max(4.0, float(np.linalg.norm(place)) / 2)
        step *= min(1.0, most / max(size, 1e-12))
        gain = -float(slope @ step)
        if not gain > 1e-9 * (1 + height):
            break
        if left * gain < height - known:
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
    upper = factored(curve)
    if upper is not None:
        return -solved(upper, slope), True
    curves, axes = np.linalg.eigh(curve)
    curves = np.maximum(np.abs(curves), 1e-6 * max(float(np.abs(curves).max()), 1e-12))
    return -axes @ ((axes.T @ slope) / curves), False


def factored(matrix: Floats) -> Floats | None:
    """The upper Cholesky factor of a symmetric matrix, None where it is not positive; below the diagonal is anything.

    LAPACK itself: what is around it in SciPy takes as long as the factor of thirty columns.
    """
    upper, failed = dpotrf(matrix.T, clean=False)
    return None if failed else np.asarray(upper)


def solved(upper: Floats, right: Floats) -> Floats:
    """The solution of a system whose matrix has this upper Cholesky factor."""
    return np.asarray(dpotrs(upper, right)[0])


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
            self._heights[theta] = self._floor(theta)
        return self._heights[theta]

    def above(self, theta: float, limit: float) -> bool:
        """Whether the profile is above a limit there, which takes less to say than how far."""
        if np.isinf(theta):
            return self.uncertainty.far_away > limit
        if theta in self._heights:
            return self._heights[theta] > limit
        return self._above_outward(theta, limit) or self._floor(theta, limit=limit) > limit

    def search(
        self,
        theta: float,
        starts: Sequence[Floats],
        *,
        tail: float = 1.0,
        limit: float | None = None,
        known: float = np.inf,
    ) -> tuple[float, Floats]:
        """The lowest Q of ζ = (−b, tail) with functional·b = θ that is found from these b, and its b.

        A search is given up where it would not reach a floor that is ``known``.
        """
        middle, enough = tail * self.uncertainty.swept.coefficients, -np.inf if limit is None else limit

        def place(eta: Floats) -> Floats:
            made = middle.copy()
            made[self._rest] += self._errors * eta
            made[self._pivot] = theta / self.functional[self._pivot] - self._ratios @ made[self._rest]
            return made

        def value(eta: Floats) -> Height:
            q, slope, curve = self.uncertainty.statistic(np.append(-place(eta), tail), enough=enough)
            return (q, slope, curve) if q <= enough else (q, -self._along(slope), self._bend(curve))

        if not len(self._rest):
            return value(np.zeros(0))[0], place(np.zeros(0))
        height, eta = np.inf, np.zeros(len(self._rest))
        for start in starts:
            away, best = (start - middle)[self._rest] / self._errors, min(height, known)
            found = lowest(value, away, limit=limit, known=best)
            if found[0] < height:
                height, eta = found
            if height <= (_PLAIN if limit is None else limit):
                break
        return height, place(eta)

    def _floor(self, theta: float, *, limit: float | None = None) -> float:
        """The lowest Q found at θ; the place is kept as a start for others, unless the valley ran off to infinity.

        What is reached there is not below ``far_away``. Then the search begins again along the tangent, and in the
        valley that leads to ``far_away``.
        """
        far = self.uncertainty.far_away
        height, place = self.search(theta, self._starts(theta), limit=limit)
        if height >= far and height > (_PLAIN if limit is None else limit):
            starts = [self._tangent(theta)] if self._floors else []
            others = [*starts, *([] if (start := self._outward(theta)) is None else [start])]
            found = self.search(theta, others, limit=limit, known=height)
            height, place = min((height, place), found, key=lambda one: one[0])
        if height < far:
            self._floors[theta] = place
        return height

    def _above_outward(self, theta: float, limit: float) -> bool:
        """Whether a search along the line to where Q is lowest far away says that a distant place is above a limit.

        From the tangent such a search begins high up, where Q bends the wrong way. Its floor is no start for others:
        nearer places lie in another part of the valley.
        """
        known = self.uncertainty
        away = theta - float(self.functional @ known.swept.coefficients)
        start = self._outward(theta)
        if start is None or not away**2 > _OUTWARD * known.far_away * known.error(self.functional) ** 2:
            return False
        return known.far_away > limit and self.search(theta, [start], limit=limit)[0] > limit

    def _outward(self, theta: float) -> Floats | None:
        """On the line from the estimate to where Q is lowest far away; None where that line has one θ."""
        known = self.uncertainty
        along = float(self.functional @ known.far_direction)
        away = theta - float(self.functional @ known.swept.coefficients)
        return np.asarray(known.swept.coefficients + away / along * known.far_direction) if along else None

    def _tangent(self, theta: float) -> Floats:
        """Where Q would be lowest if it were a parabola."""
        estimate = self.uncertainty.swept.coefficients
        spread = self.uncertainty.total @ self.functional
        away = float(self.functional @ spread)
        along = spread / away if away > 0 else self.functional / float(self.functional @ self.functional)
        return np.asarray(estimate + along * (theta - float(self.functional @ estimate)))

    def _starts(self, theta: float) -> list[Floats]:
        """Where Q may be lowest: on the line through the two nearest floors, or along its tangent at b̂."""
        estimate = self.uncertainty.swept.coefficients
        centre = float(self.functional @ estimate)
        near = sorted({**self._floors, centre: estimate}.items(), key=lambda floor: abs(floor[0] - theta))[:2]
        if len(near) < 2:
            starts = [self._tangent(theta)]
        else:
            (one, place), (other, next_place) = near
            starts = [place + (place - next_place) * ((theta - one) / (one - other))]
            if self.uncertainty.far_away < _SHALLOW:
                starts.append(self._tangent(theta))
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
    def _inner(self) -> tuple[NDArray[np.intp], ...]:
        return np.ix_(self._rest, self._rest)

    @cached_property
    def _scales(self) -> Floats:
        return np.outer(self._errors, self._errors)

    @cached_property
    def _ratios(self) -> Floats:
        return np.asarray(self.functional[self._rest] / self.functional[self._pivot])

    @cached_property
    def _errors(self) -> Floats:
        return np.sqrt(np.maximum(np.diag(self.uncertainty.total)[self._rest], 1e-300))

    def _along(self, slope: Floats) -> Floats:
        return np.asarray((slope[self._rest] - slope[self._pivot] * self._ratios) * self._errors)

    def _bend(self, curve: Floats) -> Floats:
        inner = curve[self._inner]
        if self._ratios.any():
            own = curve[self._pivot, self._pivot]
            bent = np.outer(curve[self._rest, self._pivot] - own / 2 * self._ratios, self._ratios)
            inner = inner - bent - bent.T
        return np.asarray(inner * self._scales)
