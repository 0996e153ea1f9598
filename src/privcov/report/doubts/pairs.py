"""A doubt about two columns: that they are one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from privcov.linalg.arrays import Floats
from privcov.report.doubts.evidence import Evidence
from privcov.report.doubts.numbers import about_mean
from privcov.report.doubts.question import Doubt, Question, percent, within

LEAST_DIFFERENCE = 0.04
"""The mean squared difference of two columns as a share of the smaller variance: a correlation of 0.98 has so much."""
Places = NDArray[np.intp]


class Same(Question):
    """Two numeric columns that are equal in units of their bounds, or mirror images; or so two levels of two columns.

    Clean: the mean squared difference of any two is at least 4 % of the smaller variance. Half of the odds are for
    the differences, half for the variances that they are compared with. All pairs are looked at in one go.
    """

    kind = "same"

    def count(self, seen: Evidence) -> int:
        return sum(2 * len(first) for first, _ in _pairs(seen))

    def answers(self, seen: Evidence, odds: float) -> Iterator[Doubt]:
        pairs, reach = _pairs(seen), seen.law.reach(odds / (2 * self.count(seen)))
        places = np.unique(np.concatenate([place for pair in pairs for place in pair])).tolist()
        least = np.zeros(seen.schema.dimension)
        for place in places:
            squares, noise, _ = about_mean(seen, place, seen.law.reach(odds / (6 * len(places))))
            least[place] = squares - noise
        for first, second in pairs:
            smaller = np.minimum(least[first], least[second])
            for sign in (1, -1):
                apart, errors = _differences(seen, first, second, sign)
                for at in np.flatnonzero(apart + reach * errors < LEAST_DIFFERENCE * smaller).tolist():
                    one, other = (seen.features[int(side[at])].name for side in (first, second))
                    share, error = float(apart[at] / smaller[at]), float(errors[at] / smaller[at])
                    words = "are the same" if sign > 0 else "are mirror images of each other"
                    yield Doubt(
                        kind=self.kind,
                        columns=(one, other),
                        sentence=f"{one} and {other} {words} up to the noise (their difference has "
                        f"{percent(within(share), error)} of the variance).",
                        cause="Likely: one column was copied, or the file has it twice under two names.",
                        figure=share,
                        std_error=error,
                    )


def _pairs(seen: Evidence) -> list[tuple[Places, Places]]:
    """Pairs of numeric columns, and pairs of levels of different columns; the levels of one exclude each other."""
    if not seen.schema.intercept:
        return []
    numbers = {name: at for at, name in enumerate(dict.fromkeys(f.column for f in seen.features))}
    column = np.array([numbers[feature.column] for feature in seen.features])
    made = []
    for places in (seen.numeric, [place for group in seen.levels.values() for place in group]):
        first, second = (np.array(places, dtype=np.intp)[side] for side in np.triu_indices(len(places), 1))
        apart = column[first] != column[second]
        made.append((first[apart], second[apart]))
    return [pair for pair in made if len(pair[0])]


def _differences(seen: Evidence, first: Places, second: Places, sign: int) -> tuple[Floats, Floats]:
    """Sums of (x − y)², or of (x + y)² for mirror images, (x + y − 1)² of levels; and the noise on each."""
    matrix, variances = seen.matrix, seen.noise.variances
    squares = matrix[first, first] + matrix[second, second] - 2 * sign * matrix[first, second]
    variance = variances[first, first] + variances[second, second] + 4 * variances[first, second]
    variance = variance + 2 * seen.noise.shared
    if sign < 0 and seen.features[int(first[0])].kind == "level":
        squares = squares + matrix[0, 0] - 2 * (matrix[0, first] + matrix[0, second])
        variance = variance + variances[0, 0] + 4 * (variances[0, first] + variances[0, second])
        variance = variance + 4 * seen.noise.shared * (variances[0, 0] > 0)
    return squares, np.sqrt(np.maximum(variance, 0.0))
