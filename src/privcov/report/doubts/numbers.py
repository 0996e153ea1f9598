"""Doubts about numeric columns: cells that were not read, units that differ, values that do not vary.

Values are in units of half the width of the bounds, from the middle: −1 is the lower bound, 1 the upper.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from privcov.report.doubts.evidence import Evidence, Form
from privcov.report.doubts.question import Doubt, OneByOne, measured
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
LEAST_VARIATION = 0.02
"""The standard deviation of a column that varies: a third of what it has in bounds that are ten times too wide."""


class NothingRead(OneByOne[list[int]]):
    """All numeric columns together, at the middle of their bounds: their squares stand out where no single one does.

    Clean: the mean of one of them is off the middle by 2 % of its half width, or the root mean square distance of all
    values from the middle is a seventh of it. Each is tested at the full odds, since a doubt needs all to fail.
    """

    kind = "nothing read"

    def subjects(self, seen: Evidence) -> Sequence[list[int]]:
        return [seen.numeric] if len(seen.numeric) > 1 and seen.schema.intercept else []

    def answer(self, seen: Evidence, subject: list[int], odds: float) -> Doubt | None:
        count = len(subject)
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
            cause="Likely: the records are cut in the wrong places (line breaks in quoted cells, another separator), "
            "so that every cell counts as missing.",
            figure=share,
            std_error=error,
        )


class Unread(OneByOne[int]):
    """A column at the middle of its bounds without spread, where missing cells are put.

    Clean: its mean is off the middle by 2 % of the half width, or the root mean square distance of its values from
    the middle is a seventh of it (a twentieth, and the mean unknown, without an intercept). Each is tested at the full
    odds, since a doubt needs both to fail.
    """

    kind = "unread"

    def subjects(self, seen: Evidence) -> Sequence[int]:
        return seen.numeric

    def answer(self, seen: Evidence, subject: int, odds: float) -> Doubt | None:
        rows, square, kept = seen.rows, seen.square(subject), seen.kept[0]
        least = LEAST_SPREAD if seen.schema.intercept else LEAST_SQUARE_ALONE
        if not seen.certain(least**2 * kept * rows - square, odds):
            return None
        feature = seen.features[subject]
        most = feature.half_width * math.sqrt(max(0.0, seen.upper(square, odds) / seen.counted))
        said = f"{feature.name} is at the middle of its bounds"
        share = error = 0.0
        if seen.schema.intercept:
            if not _at_middle(seen, subject, odds):
                return None
            share, error = seen.share(seen.total(subject))
            said += f" (mean {_measured(feature, share, error)} in {_bounds(feature)})"
        return Doubt(
            kind=self.kind,
            columns=(feature.name,),
            sentence=f"{said} with almost no spread (at most {number(most, 2)}): were its cells read?",
            cause="Likely: they cannot be read as numbers (decimal comma, thousands marks, units, line breaks "
            "in quoted cells) and count as missing. If they were read, the bounds are far too wide.",
            figure=feature.middle + feature.half_width * share,
            std_error=feature.half_width * error,
        )


class AtBound(OneByOne[tuple[int, int]]):
    """A column whose values all lie at one of its bounds.

    Clean: its mean is off the lower by 1 % of the range, and off the upper by 1.5 %.
    """

    kind = "at bound"

    def subjects(self, seen: Evidence) -> Sequence[tuple[int, int]]:
        return [(place, side) for place in seen.numeric for side in (-1, 1)] if seen.schema.intercept else []

    def answer(self, seen: Evidence, subject: tuple[int, int], odds: float) -> Doubt | None:
        place, side = subject
        total, off = seen.total(place), OFF_UPPER if side > 0 else OFF_LOWER
        if not seen.certain(side * total - (1 - off) * seen.rows, odds):
            return None
        feature = seen.features[place]
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
            sentence=f"{feature.name} is at its {word} bound (mean {_measured(feature, share, error)} in "
            f"{_bounds(feature)}).",
            cause=f"Likely: the file uses another unit than the bounds {cause}",
            figure=feature.middle + feature.half_width * share,
            std_error=feature.half_width * error,
        )


class Constant(OneByOne[int]):
    """A column that does not vary, somewhere between its middle and its bounds, where the others have a say.

    Clean: its standard deviation is at least 2 % of the half width. Not asked where rows are clipped to a norm, which
    can take a column's variation.
    """

    kind = "constant"

    def subjects(self, seen: Evidence) -> Sequence[int]:
        return seen.numeric if seen.schema.intercept and seen.schema.row_norm_bound is None else []

    def answer(self, seen: Evidence, subject: int, odds: float) -> Doubt | None:
        mean, error = seen.share(seen.total(subject))
        if not OFF_MIDDLE < abs(mean) < 1 - OFF_LOWER:
            return None
        variance = most_variance(seen, subject, odds)
        if not variance < LEAST_VARIATION**2:
            return None
        feature = seen.features[subject]
        most = feature.half_width * math.sqrt(max(0.0, variance))
        return Doubt(
            kind=self.kind,
            columns=(feature.name,),
            sentence=f"{feature.name} hardly varies (mean {_measured(feature, mean, error)}, standard deviation "
            f"at most {number(most, 2)}, in {_bounds(feature)}).",
            cause="Likely: one value was filled in for everyone, or the bounds are far too wide.",
            figure=feature.middle + feature.half_width * mean,
            std_error=feature.half_width * error,
        )


def _at_middle(seen: Evidence, place: int, odds: float) -> bool:
    total, off = seen.total(place), OFF_MIDDLE * math.sqrt(seen.kept[0]) * seen.rows
    return seen.certain(off - total, odds) and seen.certain(off + total, odds)


def about_mean(seen: Evidence, place: int, reach: float) -> tuple[float, float, float]:
    """Squares about the noisy mean, how far the noise reaches on those about the true one, and what lies between.

    With m the true mean, the squares about it, Q(m) = M_jj − 2m·M_0j + m²·M_00, are a form with fixed weights. The
    noisy Q is least at the noisy mean c, and Q(m) = Q(c) + M_00·(m − c)² there, where |m − c| is what noise on
    M_0j − m·M_00, which is 0 in the table, can make of it. Standard deviations are added, not their squares.
    """
    along, own = seen.std(seen.total(place)), seen.std(seen.square(place))
    rows, count = seen.counted, seen.std(seen.rows)
    centre = seen.value(seen.total(place)) / rows
    off = reach * (along + count) / rows
    furthest = min(1.0, abs(centre) + off)
    squares = seen.value(seen.square(place)) - rows * centre**2
    return squares, reach * (own + 2 * furthest * along + furthest**2 * count), rows * off**2


def most_variance(seen: Evidence, place: int, odds: float) -> float:
    """The variance, in scaled units, that a column exceeds with at most these odds: a quarter for each limit."""
    squares, noise, between = about_mean(seen, place, reach := seen.law.reach(odds / 4))
    fewest = seen.value(seen.rows) - reach * seen.std(seen.rows)
    return (squares + noise + between) / fewest if fewest > 0 else math.inf


def _measured(feature: Feature, share: float, error: float) -> str:
    share = min(1.0, max(-1.0, share))  # noise takes a mean beyond its bounds
    return measured(feature.middle + feature.half_width * share, feature.half_width * error)


def _bounds(feature: Feature) -> str:
    low, high = feature.middle - feature.half_width, feature.middle + feature.half_width
    return f"{low:,.10g} to {high:,.10g}".replace("-", "−")
