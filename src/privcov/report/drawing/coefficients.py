"""Estimates with their intervals about zero; an interval without an end is an arrow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from privcov.report.drawing.frame import Axes, chart, label, mark, rule, stroke, text_width
from privcov.report.drawing.markup import Markup, tag
from privcov.report.drawing.scales import Scale, readable
from privcov.report.drawing.theme import ACCENT, PAPER, WIDTH

_ROW = 27.0


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A number by name, and the ends of its interval: infinite where it has none, None where nothing is known."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None


def coefficients(
    estimates: Sequence[Estimate], *, title: str, description: str = "", x_label: str = ""
) -> Markup:
    """One line an estimate, from the top: filled where the interval leaves zero out, hollow where it does not.

    >>> picture = coefficients([Estimate(name="age", value=1.0, low=0.5, high=float("inf"))], title="Slopes")
    >>> "1 [0.5, ∞)" in picture
    True
    """
    head, foot = 12.0, 12.0 + _ROW * max(len(estimates), 1)
    left = min(max((text_width(one.name) for one in estimates), default=0.0) + 12, 150.0)
    seen = [v for one in estimates for v in (one.value, one.low, one.high) if v is not None]
    x = Scale.over(seen, start=left + 22, end=WIDTH - 16.0, zero=True, margin=0.06)
    y = Scale(low=0.0, high=1.0, start=foot, end=head)
    parts = [Axes(x=x, y=y, x_label=x_label, x_ticks=7).drawn(across=False)]
    parts.append(rule(x(0), foot, x(0), head, stroke_opacity=0.8, stroke_width=1.2))
    for place, one in enumerate(estimates):
        at = head + (place + 0.5) * _ROW
        said = tag("title", f"{one.name}: {_words(one)}")
        name = label(one.name, left, at + 4, room=left - 4, text_anchor="end")
        parts.append(tag("g", said, name, *_interval(one, x, at), _point(one, x, at)))
    return chart(parts, title=title, description=description, height=foot + (46 if x_label else 26))


def _interval(one: Estimate, x: Scale, at: float) -> list[Markup]:
    if one.low is None or one.high is None:
        return []
    low = x(one.low) if math.isfinite(one.low) else x.start - 8
    high = x(one.high) if math.isfinite(one.high) else x.end + 8
    parts = [rule(low, at, high, at, stroke=ACCENT, stroke_width=2.2)]
    for end, place, side in ((one.low, low, -1), (one.high, high, 1)):
        if math.isfinite(end):
            parts.append(rule(place, at - 5, place, at + 5, stroke=ACCENT, stroke_width=1.6))
        else:
            head = [(place + 3 * side, at), (place - 6 * side, at - 5), (place - 6 * side, at + 5)]
            parts.append(stroke(head, close=True, fill=ACCENT))
    return parts


def _point(one: Estimate, x: Scale, at: float) -> Markup | None:
    if not math.isfinite(one.value):
        return None
    told = one.low is not None and one.high is not None and not one.low <= 0 <= one.high
    return mark(
        "circle",
        x(one.value),
        at,
        size=4.6,
        fill=ACCENT if told else PAPER,
        stroke=ACCENT,
        stroke_width=2.0,
    )


def _words(one: Estimate) -> str:
    value = readable(float(f"{one.value:.4g}"))
    if one.low is None or one.high is None:
        return value
    low, high = (readable(float(f"{end:.4g}")) for end in (one.low, one.high))
    return f"{value} [{low}, {high}]".replace("[-inf", "(−∞").replace("inf]", "∞)")
