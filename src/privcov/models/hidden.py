"""Levels of a categorical column that the noise hides: too few people have them for the release to tell.

The coefficient of such a level is anything, and while it is in the model every other coefficient has to be right for
all that it might be. So it counts with the baseline, and is named. The count of a level is in the release twice, as its
sum and as its sum of squares; the two are averaged by their variances, and compared with the noise of the second.

A level that stands a little above it can still be a combination of other columns, as far as anyone can tell. Where that
is so, or nearly, and leaving out such levels makes an end of it, they are left out too.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from privcov.models.formula import Formula
from privcov.models.levels import levels_of
from privcov.noise.laws import NoiseLaw
from privcov.releases.release import Release

CLEAR = 3.0
"""Standard deviations of noise that the count of a level must stand above."""
PLAIN = 3 * CLEAR
"""The same where noise hides a combination of columns, or nearly: a level so rare may well be all of it."""


def counted_levels(
    release: Release, law: NoiseLaw, places: Iterable[int], *, clear: float = CLEAR
) -> dict[int, tuple[float, float]]:
    """How many rows each of these levels has, by both places where the release counts them, and what stands clear."""
    raw, variances = release.informed_moment(), np.maximum(law.entry_variances, 1e-300)
    found = {}
    for p in places:
        sums, squares = float(variances[0, p]), float(variances[p, p])
        count = float((squares * raw[0, p] + sums * raw[p, p]) / (sums + squares))
        found[p] = count, clear * float(np.sqrt(squares))
    return found


def drowned_levels(release: Release, law: NoiseLaw) -> tuple[int, ...]:
    """Places of all levels whose count is within the noise."""
    places = [at for places in levels_of(release.schema).values() for at in places.values()]
    if not places or not release.schema.intercept:
        return ()
    return tuple(p for p, (count, limit) in counted_levels(release, law, places).items() if count <= limit)


def hidden_levels(
    release: Release, formula: Formula, law: NoiseLaw, *, clear: float = CLEAR
) -> tuple[int, ...]:
    """Places of the regressors of a formula that are better left out: levels whose count is within the noise.

    Where the baseline itself is that rare, the most frequent of the other levels joins it. Levels that the formula
    names are kept.
    """
    if not formula.intercept:
        return ()
    raw, levelled = release.informed_moment(), levels_of(release.schema)
    together = {column.name for column in release.schema.exhaustive}
    hidden: list[int] = []
    for part in formula.parts:
        if part.chosen or part.column not in levelled:
            continue
        places = [one.places[0] for one in part.regressors(levelled[part.column], whole=False)]
        told = counted_levels(release, law, levelled[part.column].values(), clear=clear)
        counts, limits = ({p: one[place] for p, one in told.items()} for place in (0, 1))
        # A regression divides by the sum of squares, so that one has to stand by itself too.
        shown = [p for p in places if counts[p] > limits[p] and raw[p, p] > limits[p] / 2]
        hidden += [p for p in places if p not in shown]
        if not shown:
            continue
        baseline = [p for p in counts if p not in places]
        if part.column in together:
            seen = sum(counts[p] for p in baseline) > max(limits[p] for p in baseline)
        else:
            # The baseline's count is a difference, which carries the noise of every level that is taken away.
            rows = release.counted_rows
            rest = (raw[0, 0] if rows is None else rows) - sum(counts[p] for p in places)
            seen = rest > max(limits.values()) * np.sqrt(len(places))
        if not seen:
            hidden.append(max(shown, key=lambda place: counts[place]))
    return tuple(sorted(hidden))
