"""Columns within their declared bounds: where the mean is, how wide the values spread, how far noise reaches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from privcov.report.drawing.frame import chart, label, mark, rule, text_width
from privcov.report.drawing.markup import Markup, tag
from privcov.report.drawing.numbers import plus_minus
from privcov.report.drawing.scales import Scale, readable
from privcov.report.drawing.theme import ACCENT, INK, PAPER, SMALL, WIDTH

_ROW = 40.0


@dataclass(frozen=True, kw_only=True)
class Range:
    """A column from ``low`` to ``high``, its mean, its standard deviation, and the reach of noise on the mean."""

    name: str
    low: float
    high: float
    value: float
    spread: float | None = None
    noise: float | None = None


def ranges(rows: Sequence[Range], *, title: str, description: str = "") -> Markup:
    """A track for each column, from its lower to its upper bound.

    >>> ranges([Range(name="age", low=0, high=100, value=48.5, spread=17.0, noise=0.8)], title="Means").count("<rect")
    2
    """
    left = min(max((text_width(row.name) for row in rows), default=0.0) + 14, 150.0)
    parts: list[Markup] = []
    for place, row in enumerate(rows):
        parts.append(_row(row, 8 + place * _ROW, left))
    return chart(parts, title=title, description=description, height=12 + _ROW * len(rows))


def _row(row: Range, top: float, left: float) -> Markup:
    at = top + 13
    x = Scale(low=row.low, high=row.high, start=left, end=WIDTH - 12.0)
    parts = [
        label(row.name, left - 10, at + 4, room=left - 12, text_anchor="end"),
        tag("rect", x=left, y=at - 5, width=x.end - left, height=10, rx=5, fill=INK, fill_opacity=0.09),
        label(readable(row.low), left, at + 21, font_size=SMALL, fill_opacity=0.75),
        label(readable(row.high), x.end, at + 21, font_size=SMALL, text_anchor="end", fill_opacity=0.75),
    ]
    if not math.isfinite(row.value):
        return tag("g", *parts)
    words, noise = plus_minus(row.value, row.noise)
    if row.spread is not None and math.isfinite(row.spread):
        low, high = (x(min(max(row.value + side * row.spread, row.low), row.high)) for side in (-1, 1))
        box = tag("rect", x=low, y=at - 5, width=high - low, height=10, rx=5, fill=ACCENT, fill_opacity=0.32)
        parts.append(box)
    centre = x(min(max(row.value, row.low), row.high))
    if row.noise is not None and math.isfinite(row.noise):
        words += f" ± {noise}"
        low, high = (x(min(max(row.value + side * row.noise, row.low), row.high)) for side in (-1, 1))
        parts.append(rule(low, at, high, at, stroke_width=2.0))
        parts += [rule(end, at - 6, end, at + 6, stroke_width=1.6) for end in (low, high)]
    parts.append(mark("circle", centre, at, size=4.0, fill=INK, stroke=PAPER, stroke_width=1.2))
    reach = text_width(words, SMALL) / 2
    place = min(max(centre, left + reach + 40), x.end - reach - 40)
    parts.append(label(words, place, at + 21, font_size=SMALL, text_anchor="middle", font_weight="600"))
    return tag("g", tag("title", f"{row.name}: {words}"), *parts)
