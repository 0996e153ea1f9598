"""Doubts about whole rows: emptied ones, and numbers that no table can have."""

from __future__ import annotations

from collections.abc import Sequence

from privcov.report.doubts.evidence import Evidence, Form
from privcov.report.doubts.question import Doubt, OneByOne, percent, within
from privcov.schema.weights import declared

LEAST_WEIGHT = 0.01
"""What weights of a table read as meant are on average, over the largest."""
LEAST_KEPT = 0.5
"""The share of the rows that a table read as meant keeps under ``missing = "zero-row"``."""


class LostRows(OneByOne[int]):
    """Rows that ``missing = "zero-row"`` emptied. Clean: at least half of the rows lack no cell.

    Only where the number of rows is public, and the intercept counts those that are left.
    """

    kind = "lost rows"

    def subjects(self, seen: Evidence) -> Sequence[int]:
        counted = seen.public_rows is not None and seen.schema.intercept and seen.schema.weight is None
        return [seen.public_rows or 0] if counted and seen.schema.missing == "zero-row" else []

    def answer(self, seen: Evidence, subject: int, odds: float) -> Doubt | None:
        schema = seen.schema
        clipped = (
            1.0 if schema.keeps_indicators else float(schema.squared_norm_bound / schema.largest_squared_norm)
        )
        if not seen.certain(Form({}, LEAST_KEPT * clipped * subject) - seen.rows, odds):
            return None
        share, error = seen.value(seen.rows) / max(1, subject), seen.std(seen.rows) / max(1, subject)
        return Doubt(
            kind=self.kind,
            columns=tuple(column.name for column in schema.columns),
            sentence=f"Only {percent(within(share), error)} of the {subject:,} rows count.",
            cause='Likely: the others lack a cell, and missing = "zero-row" makes such rows zero; or one column was '
            "not read at all.",
            figure=share,
            std_error=error,
        )


class Weightless(OneByOne[int]):
    """Rows that weigh next to nothing. Clean: a weight is a hundredth of the largest on average.

    Only where the number of rows is public.
    """

    kind = "no weights"

    def subjects(self, seen: Evidence) -> Sequence[int]:
        known = seen.public_rows is not None and seen.schema.weight is not None
        return [seen.public_rows or 0] if known else []

    def answer(self, seen: Evidence, subject: int, odds: float) -> Doubt | None:
        schema = seen.schema
        least = LEAST_WEIGHT ** float(schema.weight_power)
        if schema.weight is None or not seen.certain(Form({}, least * subject) - seen.rows, odds):
            return None
        share, error = seen.value(seen.rows) / max(1, subject), seen.std(seen.rows) / max(1, subject)
        return Doubt(
            kind=self.kind,
            columns=(schema.weight,),
            sentence=f"A row counts as {percent(within(share), error)} of one with the largest weight, on average.",
            cause="Likely: weights are no numbers in the file, such as 1.234,5, so that rows do not count; or "
            "largest_weight is far too large.",
            figure=share,
            std_error=error,
        )


class Impossible(OneByOne[str]):
    """More rows than there are. Clean: every table; the odds are those of the noise alone.

    Levels that cover all rows, as they should, lie on this threshold: so it takes a thousandth of its odds.
    """

    kind = "impossible"

    def subjects(self, seen: Evidence) -> Sequence[str]:
        return [column.name for column in declared(seen.schema)]

    def answer(self, seen: Evidence, subject: str, odds: float) -> Doubt | None:
        if subject in seen.levels:
            form, what = _any_of(seen, subject), f"The levels of {subject} cover"
        else:
            place = next(place for place in seen.numeric if seen.features[place].column == subject)
            form, what = seen.square(place), f"The squares of {subject}, scaled to at most 1 each, add up to"
        if not seen.certain(form - seen.rows, odds / 1000):
            return None
        share, error = seen.share(form)
        return Doubt(
            kind=self.kind,
            columns=(subject,),
            sentence=f"{what} {percent(share, error)} of the rows, which is impossible.",
            cause="Likely: the file was altered, or its noise is not what the certificate says; see privcov verify.",
            figure=share,
            std_error=error,
        )


def _any_of(seen: Evidence, column: str) -> Form:
    return sum((seen.having(place) for place in seen.levels[column]), start=Form())
