"""Doubts about categorical columns: levels that nobody has, or that everybody has."""

from __future__ import annotations

from collections.abc import Sequence

from privcov.report.doubts.evidence import Evidence, Form
from privcov.report.doubts.question import Doubt, OneByOne, percent, within

LEAST_COVERED = 0.75
"""The share of the rows that has one of the declared levels, in a table read as meant: what a column may lack."""
MOST_ALIKE = 0.995
"""The share of the rows that one level may have: rare events are often one row in a hundred."""
_FEW = 0.1


class Uncovered(OneByOne[str]):
    """Rows that have none of the levels. Clean: the levels cover at least three quarters of the rows."""

    kind = "levels uncovered"

    def subjects(self, seen: Evidence) -> Sequence[str]:
        return list(seen.levels)

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
        return [place for places in seen.levels.values() for place in places]

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
