"""Doubts about numeric columns: cells that were not read, units that differ, values that do not vary.

Values are in units of half the width of the bounds, from the middle: −1 is the lower bound, 1 the upper.

Doubts about categorical columns: levels that nobody has, or that everybody has.

A doubt about two columns: that they are one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from privcov.linalg.arrays import Floats
from privcov.report.doubts.evidence import Evidence, Form
from privcov.report.doubts.question import Doubt, OneByOne, Question, measured, percent, within
from privcov.report.drawing.numbers import number
from privcov.schema import Feature

OFF_MIDDLE = 0.02
"""How near to the middle a mean must be for a column to look unread; one that was not read is there exactly."""
LEAST_SPREAD = 1 / 7
"""The root mean square distance from the middle that a column of such a mean has, if it was read."""
LEAST_SQUARE_ALONE = 0.05
"""The same without an intercept, where the mean is not known and the square must speak for both."""
OFF_UPPER, OFF_LOWER = 0.03, 0.02
"""The distance of a mean from a bound. Amounts of which most are near 0 are common; few columns are near their top."""
OFF_FRAMED = 0.0004
"""The same in a private frame, for which bounds a hundred times too wide are wide enough."""
LEAST_FRAMED = 1 / 8
"""In a private frame, the root mean square distance from its centre that a column has, in deviations of the frame."""
LEAST_VARIATION = 0.02
"""The standard deviation of a column that varies: a third of what it has in bounds that are ten times too wide."""


_CUT_WRONGLY = (
    "Likely: the records are cut in the wrong places (line breaks in quoted cells, another separator), so that every "
    "cell counts as missing."
)
_NOT_NUMBERS = (
    "Likely: they cannot be read as numbers (decimal comma, thousands marks, units, line breaks in quoted cells) and "
    "count as missing."
)


class NothingRead(OneByOne[list[int]]):
    """All numeric columns together, at the middle of their bounds: their squares stand out where no single one does.

    Clean: the mean of one of them is off the middle by 2 % of its half width, or the root mean square distance of all
    values from the middle is a seventh of it. Each is tested at the full odds, since a doubt needs all to fail. In a
    private frame: see ``Unread``.
    """

    kind = "nothing read"

    def subjects(self, seen: Evidence) -> Sequence[list[int]]:
        return [seen.numeric] if len(seen.numeric) > 1 and seen.schema.intercept else []

    def answer(self, seen: Evidence, subject: list[int], odds: float) -> Doubt | None:
        count = len(subject)
        if seen.spread is not None:
            return self._framed(seen, subject, odds)
        squares = (1 / count) * sum((seen.square(place) for place in subject), start=Form())
        if not seen.certain(LEAST_SPREAD**2 * seen.kept[0] * seen.rows - squares, odds):
            return None
        if not all(_at_middle(seen, place, odds) for place in subject):
            return None
        share, error = seen.share(squares)
        most = math.sqrt(max(0.0, seen.upper(squares, odds) / seen.counted))
        return Doubt(
            kind=self.kind,
            columns=tuple(seen.features[place].name for place in subject),
            sentence=f"The {count} numeric columns lie at the middle of their bounds, within about "
            f"{100 * most:.0f} % of the way to a bound: were their cells read?",
            cause=_CUT_WRONGLY,
            figure=share,
            std_error=error,
        )

    def _framed(self, seen: Evidence, subject: list[int], odds: float) -> Doubt | None:
        squares = (1 / len(subject)) * sum((seen.about_centre(place) for place in subject), start=Form())
        if not seen.certain(LEAST_FRAMED**2 * seen.rows - squares, odds):
            return None
        share, error = seen.share(squares)
        return Doubt(
            kind=self.kind,
            columns=tuple(seen.features[place].name for place in subject),
            sentence=f"The {len(subject)} numeric columns do not vary at all: were their cells read?",
            cause=_CUT_WRONGLY,
            figure=share,
            std_error=error,
        )


class Unread(OneByOne[int]):
    """A column at the middle of its bounds without spread, where missing cells are put.

    Clean: its mean is off the middle by 2 % of the half width, or the root mean square distance of its values from
    the middle is a seventh of it (a twentieth, and the mean unknown, without an intercept). Each is tested at the full
    odds, since a doubt needs both to fail.

    In a private frame a missing cell counts as the centre found, wherever that is. Clean: the root mean square distance
    of its values, as shortened, from that centre is a fifth of the deviation found. Bounds may be far too wide.
    """

    kind = "unread"

    def subjects(self, seen: Evidence) -> Sequence[int]:
        return seen.numeric

    def answer(self, seen: Evidence, subject: int, odds: float) -> Doubt | None:
        if seen.spread is not None:
            return self._framed(seen, subject, odds)
        rows, square, kept = seen.rows, seen.square(subject), seen.kept[0]
        least = LEAST_SPREAD if seen.schema.intercept else LEAST_SQUARE_ALONE
        if not seen.certain(least**2 * kept * rows - square, odds):
            return None
        feature = seen.features[subject]
        _, half = _units(seen, subject)
        most = half * math.sqrt(max(0.0, seen.upper(square, odds) / seen.counted))
        said = f"{feature.name} is at the middle of its bounds"
        share = error = 0.0
        if seen.schema.intercept:
            if not _at_middle(seen, subject, odds):
                return None
            share, error = seen.share(seen.total(subject))
            said += f" (mean {_measured(seen, subject, share, error)} in {_bounds(feature)})"
        said += f" with almost no spread (at most {number(most, 2)}): were its cells read?"
        return self._doubt(seen, subject, (share, error), said, "the bounds are far too wide")

    def _framed(self, seen: Evidence, subject: int, odds: float) -> Doubt | None:
        if not _at_centre(seen, subject, odds):
            return None
        feature, (share, error) = seen.features[subject], seen.share(seen.total(subject))
        mean = f"mean {_measured(seen, subject, share, error)} in {_bounds(feature)}"
        said = f"{feature.name} does not vary ({mean}): were its cells read?"
        return self._doubt(seen, subject, (share, error), said, "they are the same for everyone")

    def _doubt(
        self, seen: Evidence, subject: int, mean: tuple[float, float], sentence: str, otherwise: str
    ) -> Doubt:
        """A doubt with the mean, given in scaled units with its standard error, in the column's own."""
        middle, half = _units(seen, subject)
        return Doubt(
            kind=self.kind,
            columns=(seen.features[subject].name,),
            sentence=sentence,
            cause=f"{_NOT_NUMBERS} If they were read, {otherwise}.",
            figure=middle + half * mean[0],
            std_error=half * mean[1],
        )


class AtBound(OneByOne[tuple[int, int]]):
    """A column whose values all lie at one of its bounds.

    Clean: its mean is off the lower by 1 % of the range, and off the upper by 1.5 %; in a private frame by 0.02 %.
    """

    kind = "at bound"

    def subjects(self, seen: Evidence) -> Sequence[tuple[int, int]]:
        return [(place, side) for place in _read(seen) for side in (-1, 1)] if seen.schema.intercept else []

    def answer(self, seen: Evidence, subject: tuple[int, int], odds: float) -> Doubt | None:
        place, side = subject
        total, off = seen.total(place), OFF_UPPER if side > 0 else OFF_LOWER
        off = off if seen.spread is None else OFF_FRAMED
        if not seen.certain(side * total - (1 - off) * seen.rows, odds):
            return None
        feature, (middle, half) = seen.features[place], _units(seen, place)
        share, error = seen.share(total)
        if side > 0:
            word, cause = "upper", "(1 against 1,000), or they are too narrow."
        else:
            word, cause = (
                "lower",
                "(1,000 against 1), a code such as −999 stands for missing, or they are far too wide.",
            )
        return Doubt(
            kind=self.kind,
            columns=(feature.name,),
            sentence=f"{feature.name} is at its {word} bound (mean {_measured(seen, place, share, error)} in "
            f"{_bounds(feature)}).",
            cause=f"Likely: the file uses another unit than the bounds {cause}",
            figure=middle + half * share,
            std_error=half * error,
        )


class Constant(OneByOne[int]):
    """A column that does not vary, somewhere between its middle and its bounds, where the others have a say.

    Clean: its standard deviation is at least 2 % of the half width. Not asked where rows are clipped to a norm, which
    can take a column's variation; but in a private frame, of the shortened rows, where a fifth of the deviation found
    is enough, and a column at the centre is another question (``Unread``).
    """

    kind = "constant"

    def subjects(self, seen: Evidence) -> Sequence[int]:
        asked = seen.schema.row_norm_bound is None or seen.spread is not None
        return _read(seen) if seen.schema.intercept and asked else []

    def answer(self, seen: Evidence, subject: int, odds: float) -> Doubt | None:
        mean, error = seen.share(seen.total(subject))
        variance, least = most_variance(seen, subject, odds), LEAST_VARIATION
        if seen.spread is None:
            asked = OFF_MIDDLE < abs(mean) < 1 - OFF_LOWER
        else:
            asked = abs(mean) < 1 - OFF_FRAMED and not _at_centre(seen, subject, odds)
            least = min(least, LEAST_FRAMED * seen.spread * float(seen.scaling[1][subject]))
        if not asked or not variance < least**2:
            return None
        feature, (middle, half) = seen.features[subject], _units(seen, subject)
        most = half * math.sqrt(max(0.0, variance))
        return Doubt(
            kind=self.kind,
            columns=(feature.name,),
            sentence=f"{feature.name} hardly varies (mean {_measured(seen, subject, mean, error)}, standard deviation "
            f"at most {number(most, 2)}, in {_bounds(feature)}).",
            cause="Likely: one value was filled in for everyone, or the bounds are far too wide.",
            figure=middle + half * mean,
            std_error=half * error,
        )


def _at_centre(seen: Evidence, place: int, odds: float) -> bool:
    return seen.certain(LEAST_FRAMED**2 * seen.rows - seen.about_centre(place), odds)


def _at_middle(seen: Evidence, place: int, odds: float) -> bool:
    total, off = seen.total(place), OFF_MIDDLE * math.sqrt(seen.kept[0]) * seen.rows
    return seen.certain(off - total, odds) and seen.certain(off + total, odds)


def about_mean(seen: Evidence, place: int, reach: float) -> tuple[float, float, float]:
    """Squares about the noisy mean, how far the noise reaches on those about the true one, and what lies between.

    With m the true mean, the squares about it, Q(m) = M_jj − 2m·M_0j + m²·M_00, are a form with fixed weights. The
    noisy Q is least at the noisy mean c, and Q(m) = Q(c) + M_00·(m − c)² there, where |m − c| is what noise on
    M_0j − m·M_00, which is 0 in the table, can make of it. Standard deviations are added, not their squares.
    """
    sums, products = Form({(0, place): 1.0}), Form({(place, place): 1.0})
    along, own = seen.std(sums), seen.std(products)
    rows, count = seen.counted, seen.std(seen.rows)
    longest = min(seen.features[place].reach, seen.schema.longest_row)
    centre = seen.value(sums) / rows
    off = reach * (along + longest * count) / rows
    furthest = min(longest, abs(centre) + off)
    squares = seen.value(products) - rows * centre**2
    noise = reach * (own + 2 * furthest * along + furthest**2 * count)
    unit = (
        float(seen.scaling[1][place]) ** 2
    )  # whatever they are measured from, squares about the mean are the same
    return unit * squares, unit * noise, unit * rows * off**2


def most_variance(seen: Evidence, place: int, odds: float) -> float:
    """The variance, in scaled units, that a column exceeds with at most these odds: a quarter for each limit."""
    squares, noise, between = about_mean(seen, place, reach := seen.law.reach(odds / 4))
    fewest = seen.value(seen.rows) - reach * seen.std(seen.rows)
    return (squares + noise + between) / fewest if fewest > 0 else math.inf


def _units(seen: Evidence, place: int) -> tuple[float, float]:
    middles, halves = seen.units
    return float(middles[place]), float(halves[place])


def _measured(seen: Evidence, place: int, share: float, error: float) -> str:
    share = min(1.0, max(-1.0, share))  # noise takes a mean beyond its bounds
    middle, half = _units(seen, place)
    return measured(middle + half * share, half * error)


def _bounds(feature: Feature) -> str:
    return f"{feature.lower:,.10g} to {feature.upper:,.10g}".replace("-", "−")


LEAST_COVERED = 0.75
"""The share of the rows that has one of the declared levels, in a table read as meant: what a column may lack."""
MOST_ALIKE = 0.995
"""The share of the rows that one level may have: rare events are often one row in a hundred."""
_FEW = 0.1


class Uncovered(OneByOne[str]):
    """Rows that have none of the levels. Clean: the levels cover at least three quarters of the rows."""

    kind = "levels uncovered"

    def subjects(self, seen: Evidence) -> Sequence[str]:
        told = {
            column.name for column in seen.schema.exhaustive
        }  # whose levels cover every row, whatever it says
        return [name for name in seen.levels if name not in told]

    def answer(self, seen: Evidence, subject: str, odds: float) -> Doubt | None:
        covered = sum((seen.having(place) for place in seen.levels[subject]), start=Form())
        if not seen.certain(LEAST_COVERED * seen.kept[1] * seen.rows - covered, odds):
            return None
        share, error = seen.share(covered)
        if share < _FEW:
            cause = (
                "Likely: the file spells them differently (capitals, blanks, accents, another encoding), has "
            )
            cause += "numbers where the schema has texts, or the cells were not read."
        else:
            cause = "Likely: a level is not declared, some rows spell one differently, or cells are missing."
        return Doubt(
            kind=self.kind,
            columns=(subject,),
            sentence=f"The levels of {subject} cover {percent(within(share), error)} of the rows.",
            cause=cause,
            figure=share,
            std_error=error,
        )


class OneLevel(OneByOne[int]):
    """A level that all rows have. Clean: at least one row in two hundred does not have it."""

    kind = "one level"

    def subjects(self, seen: Evidence) -> Sequence[int]:
        return _read_levels(seen)

    def answer(self, seen: Evidence, subject: int, odds: float) -> Doubt | None:
        having, feature = seen.having(subject), seen.features[subject]
        if not seen.certain(having - MOST_ALIKE * seen.rows, odds):
            return None
        share, error = seen.share(having)
        return Doubt(
            kind=self.kind,
            columns=(feature.column,),
            sentence=f"The level {feature.level} of {feature.column} has {percent(within(share), error)} of the rows.",
            cause="Likely: the column is the same for everyone in this file, or was filled in with one value.",
            figure=share,
            std_error=error,
        )


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


def _read(seen: Evidence) -> list[int]:
    """Where the numeric columns are that are read, not derived."""
    return [place for place in seen.numeric if seen.features[place].column not in seen.derived]


def _read_levels(seen: Evidence) -> list[int]:
    """Where the levels are of columns that are read."""
    return [place for name, places in seen.levels.items() if name not in seen.derived for place in places]


def _pairs(seen: Evidence) -> list[tuple[Places, Places]]:
    """Pairs of numeric columns, and pairs of levels of different columns; the levels of one exclude each other."""
    if not seen.schema.intercept:
        return []
    numbers = {name: at for at, name in enumerate(dict.fromkeys(f.column for f in seen.features))}
    column = np.array([numbers[feature.column] for feature in seen.features])
    made = []
    for places in (_read(seen), _read_levels(seen)):
        first, second = (np.array(places, dtype=np.intp)[side] for side in np.triu_indices(len(places), 1))
        apart = column[first] != column[second]
        made.append((first[apart], second[apart]))
    return [pair for pair in made if len(pair[0])]


def _differences(seen: Evidence, first: Places, second: Places, sign: int) -> tuple[Floats, Floats]:
    """Sums of (x − y)², or of (x + y)² for mirror images, (x + y − 1)² of levels; and the noise on each."""
    matrix, variances, (shifts, factors) = seen.matrix, seen.noise.variances, seen.scaling
    one, other = factors[first], -sign * factors[second]
    base = shifts[first] - sign * shifts[second]
    if sign < 0 and seen.features[int(first[0])].kind == "level":
        base = base - 1.0
    # The squares of base + one·z + other·z′, entry by entry, and what noise on each entry adds.
    squares = one**2 * matrix[first, first] + other**2 * matrix[second, second]
    squares = squares + 2 * one * other * matrix[first, second] + base**2 * matrix[0, 0]
    squares = squares + 2 * base * (one * matrix[0, first] + other * matrix[0, second])
    if seen.mixes(first):
        # Through a shape the entries of numeric columns are correlated: the same squares, as quadratic forms.
        vectors, rows = np.zeros((len(first), len(matrix))), np.arange(len(first))
        vectors[:, 0], vectors[rows, first], vectors[rows, second] = base, one, other
        return squares, np.sqrt(np.maximum(seen.noise.squares(vectors), 0.0))
    variance = one**4 * variances[first, first] + other**4 * variances[second, second]
    variance = variance + 4 * (one * other) ** 2 * variances[first, second] + base**4 * variances[0, 0]
    variance = variance + 4 * base**2 * (one**2 * variances[0, first] + other**2 * variances[0, second])
    along = base**2 * (one**2 + other**2) * (variances[0, 0] > 0)
    variance = variance + 2 * seen.noise.shared * ((one * other) ** 2 + along)
    return squares, np.sqrt(np.maximum(variance, 0.0))
