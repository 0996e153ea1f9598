"""Levels of a categorical column that the noise hides: too few people have them for the release to tell.

The coefficient of such a level is anything, and while it is in the model every other coefficient has to be right for
all that it might be. So it counts with the baseline, and is named. The count of a level is in the release twice, as its
sum and as its sum of squares; the two are averaged by their variances, and compared with the noise of the second.
"""

from __future__ import annotations

import numpy as np

from privcov.models.formula import Formula
from privcov.models.levels import levels_of
from privcov.noise.laws import NoiseLaw
from privcov.releases.release import Release

CLEAR = 3.0
"""Standard deviations of noise that the count of a level must stand above."""


def hidden_levels(release: Release, formula: Formula, law: NoiseLaw) -> tuple[int, ...]:
    """Places of the regressors of a formula that are better left out: levels whose count is within the noise.

    Where the baseline itself is that rare, the most frequent of the other levels joins it. Levels that the formula
    names are kept.
    """
    if not formula.intercept:
        return ()
    raw, levelled = release.second_moment(raw=True, scaled=True), levels_of(release.schema)
    sums, squares = max(law.sums_variance, 1e-300), max(law.diagonal_variance, 1e-300)
    limit, hidden = CLEAR * float(np.sqrt(squares)), []
    for part in formula.parts:
        if part.chosen or part.column not in levelled:
            continue
        places = [one.places[0] for one in part.regressors(levelled[part.column], whole=False)]
        counts = {p: float((squares * raw[0, p] + sums * raw[p, p]) / (sums + squares)) for p in places}
        # A regression divides by the sum of squares, so that one has to stand by itself too.
        shown = [p for p in places if counts[p] > limit and raw[p, p] > limit / 2]
        hidden += [p for p in places if p not in shown]
        # The baseline's count is a difference, which carries the noise of every level that is taken away.
        rows = release.counted_rows
        rest = (raw[0, 0] if rows is None else rows) - sum(counts.values())
        if shown and not rest > limit * np.sqrt(len(places)):
            hidden.append(max(shown, key=lambda place: counts[place]))
    return tuple(sorted(hidden))
