"""Confidence sets by inversion: every value that a statistic does not reject, as intervals.

A profile gives the statistic at a value of one combination of coefficients. The set is looked for on a ladder about the
estimate, and each end by secants, else by bisection.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from privcov.models.profile import Profile

_LADDER = (0.7, 1.0, 1.3, 2.0, 5.0, 25.0)  # steps outwards, in half-widths of the Wald interval

Pieces = tuple[tuple[float, float], ...]
"""Closed intervals in rising order, a confidence set; an end may be infinite."""


def score_set(
    profile: Callable[[float], float], *, centre: float, step: float, critical: float, null: float
) -> Pieces:
    """{θ : profile(θ) ≤ critical} as intervals; ``null`` is the value that is tested, and in it only if accepted.

    Between the places that are asked the set is taken to be all in or all out.
    """
    if not np.isfinite(step) or not step > 0:
        return ((centre, centre),) if step == 0 else ((-np.inf, np.inf),)
    if is_lost(profile, centre):
        return ((-np.inf, np.inf),)
    # Asked first: where infinity is accepted the set has no outer ends to look for, only a gap around the null.
    unbounded = profile(np.inf) <= critical
    rungs = [] if unbounded else [side * rung * np.sqrt(critical) for side in (-1, 1) for rung in _LADDER]
    places = sorted({centre, null, *(centre + step * rung for rung in rungs)})
    accepted = _accepted(profile, places, centre, critical)

    def crossing(one: float, other: float) -> float:
        if np.isinf(one) or np.isinf(other):
            near = other if np.isinf(one) else one
            return _distant_end(
                profile, near, centre=centre, step=step, critical=critical, unbounded=unbounded
            )
        quick = _secant_end(profile, one, other, centre=centre, step=step, critical=critical)
        if quick is not None:
            return quick
        return brentq(
            lambda t: rooted(profile(t)) - rooted(critical), one, other, xtol=max(1e-9 * step, 1e-300)
        )

    start, before, last = -np.inf, unbounded, -np.inf
    pieces = []
    for place, yes in [*zip(places, accepted, strict=True), (np.inf, unbounded)]:
        if yes and not before:
            start = crossing(last, place)
        elif before and not yes:
            pieces.append((start, crossing(place, last)))
        before, last = yes, place
    return (*pieces, (start, np.inf)) if before else tuple(pieces)


def _distant_end(
    profile: Callable[[float], float],
    near: float,
    *,
    centre: float,
    step: float,
    critical: float,
    unbounded: bool,
) -> float:
    """Where a profile is critical between a place and infinity: along step / (θ − centre), which is zero there.

    A search far out may miss how low the profile is, so that only infinity itself is accepted and no end is found:
    then the set reaches to the place, and the gap is no larger than what was asked. Likewise where an end recedes
    without end: then there is none.
    """
    try:
        far = brentq(
            lambda u: profile(centre + step / u if u else np.inf) - critical,
            step / (near - centre),
            0.0,
            rtol=1e-7,
            xtol=1e-300,
        )
    except RuntimeError:  # it did not converge
        return near if unbounded else float(np.copysign(np.inf, near - centre))
    return float(centre + step / far) if far else float(np.copysign(np.inf, near - centre))


def _secant_end(
    profile: Callable[[float], float],
    one: float,
    other: float,
    *,
    centre: float,
    step: float,
    critical: float,
) -> float | None:
    """Where a profile is critical between two places, by secants; None where they leave them or turn back.

    Its root is nearly a line. What it tends to far away says how it bends, which gives a first place and a slope there.
    """
    far, (low, high) = profile(np.inf), sorted((one, other))
    if not far > critical or low < centre < high:
        return None
    wanted = rooted(critical)
    place = centre + np.sign(low + high - 2 * centre) * step * wanted / np.sqrt(1 - critical / far)
    place = place if low < place < high else (low + high) / 2
    root = rooted(profile(place))
    slope = root / (place - centre) * (1 - root**2 / far)
    if not slope * (place - centre) > 0:
        return None
    return secants(
        lambda t: rooted(profile(t)) - wanted,
        (place, root - wanted),
        place - (root - wanted) / slope,
        between=(low, high),
        tolerance=1e-9 * step,
    )


def is_all(profile: Callable[[float], float], *, centre: float, critical: float, null: float) -> bool:
    """Whether ``score_set`` would give the whole line for this critical value, and so for any larger one."""
    return is_lost(profile, centre) or (profile(np.inf) <= critical and not _above(profile, null, critical))


def _accepted(
    profile: Callable[[float], float], places: Sequence[float], centre: float, critical: float
) -> list[bool]:
    """Which places are in the set.

    A short search says so for each. Where the statistic has several valleys a longer one may accept what a short one
    did not: so it is asked of every place outside that has a neighbour inside, where an end is then looked for.
    """
    found = [place == centre or not _above(profile, place, critical) for place in places]
    asked: set[int] = set()
    while True:
        doubtful = [
            at
            for at, yes in enumerate(found)
            if not yes and at not in asked and (any(found[max(at - 1, 0) : at + 2]))
        ]
        if not doubtful:
            return found
        for at in doubtful:
            asked.add(at)
            found[at] = profile(places[at]) <= critical


def _above(profile: Callable[[float], float], theta: float, limit: float) -> bool:
    return profile.above(theta, limit) if isinstance(profile, Profile) else not profile(theta) <= limit


def rooted(value: float) -> float:
    return float(np.sqrt(max(value, 0.0)))


def is_lost(profile: Callable[[float], float], centre: float) -> bool:
    """Whether not even the estimate solves its own equation: noise of sixty digits leaves nothing known."""
    if isinstance(profile, Profile) and profile.uncertainty.at_estimate <= 0.5:
        return False
    return not profile(centre) <= 0.5


def secants(
    rise: Callable[[float], float],
    known: tuple[float, float],
    place: float,
    *,
    between: tuple[float, float],
    tolerance: float,
) -> float | None:
    """A root from a place with its value and a second place; None where secants leave what it lies between, or turn.

    >>> root = secants(lambda x: x**2 - 2, (1.0, -1.0), 1.5, between=(1.0, 2.0), tolerance=1e-9)
    >>> abs(root - 2**0.5) < 1e-12
    True
    >>> secants(lambda x: x**2 + 2, (1.0, 3.0), 0.5, between=(0.0, 2.0), tolerance=1e-9)
    """
    before, height = known
    for _ in range(8):
        move = place - before
        if not between[0] <= place <= between[1]:
            return None
        if abs(move) <= tolerance:
            return float(place)
        reached = rise(place)
        if not (height - reached) * height > 0:  # each step goes towards the root
            return None
        before, height, place = place, reached, place - reached * move / (reached - height)
    return None


def brentq(rise: Callable[[float], float], one: float, other: float, **words: float) -> float:
    from scipy.optimize import brentq  # on use: it takes a quarter of a second, and most commands do without

    return float(brentq(rise, one, other, **words))
