"""The charts with axes: lines, estimates with their intervals, columns within their bounds, eigenvalues in order.

Lines are told apart in grey, and their names stand below, where no data is. An interval without an end is an arrow.
A range shows where the mean is, how wide the values spread and how far noise reaches. Eigenvalues have the edge below
which noise alone could have made them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from privcov.report.drawing.frame import Axes, Scale, chart, label, mark, readable, rule, stroke, text_width
from privcov.report.drawing.markup import Markup, tag
from privcov.report.drawing.numbers import plus_minus
from privcov.report.drawing.theme import ACCENT, INK, PAPER, SMALL, WIDTH, line_style

_NAME_ROW = 19.0


@dataclass(frozen=True, kw_only=True)
class Line:
    """A name and the points of a line, left to right."""

    name: str
    points: Sequence[tuple[float, float]]
    bold: bool = False
    place: int | None = None
    """The look: a place in the table of colours. None: the place in the order given."""


def curves(
    lines: Sequence[Line],
    *,
    title: str,
    description: str = "",
    x_label: str,
    y_label: str,
    here: tuple[float, str] | None = None,
    band: tuple[float, float, str] | None = None,
    log_x: bool = True,
    log_y: bool = True,
    width: float = WIDTH,
    height: float = 320,
) -> Markup:
    """Lines in the order given; ``here`` marks an x, ``band`` shades a range of y.

    >>> line = Line(name="laplace", points=[(0.1, 8), (1, 0.8)])
    >>> "laplace" in curves([line], title="Error", x_label="ε", y_label="error")
    True
    """
    points = [point for line in lines for point in line.points]
    xs = [x for x, _ in points] + ([] if here is None else [here[0]])
    ys = [y for _, y in points] + ([] if band is None else list(band[:2]))
    left, head, foot = 62.0, 34.0 + (14 if here else 0), height - 44
    x = Scale.over(xs, start=left, end=width - 10.0, log=log_x, margin=0.02)
    y = Scale.over(ys, start=foot, end=head, log=log_y)
    parts = [_band(band, x, y), Axes(x=x, y=y, x_label=x_label).drawn()]
    parts.append(label(y_label, 2.0, 14.0, room=width - 4))
    if here is not None and x.shows(here[0]):
        at = x(here[0])
        parts.append(rule(at, foot, at, head - 6, stroke_width=1.4))
        side = "end" if at > (left + x.end) / 2 else "start"
        parts.append(label(here[1], at, head - 10, font_size=SMALL, text_anchor=side, font_weight="600"))
    for order, line in enumerate(lines):
        parts.append(_line(line, _look(line, order), x, y))
    names, room = _names(lines, width, height)
    return chart([*parts, *names], title=title, description=description, width=width, height=height + room)


def _band(band: tuple[float, float, str] | None, x: Scale, y: Scale) -> Markup:
    if band is None or not (y.shows(band[0]) and y.shows(band[1])):
        return tag("g")
    low, high = y(band[0]), y(band[1])
    box = tag(
        "rect", x=x.start, y=high, width=x.end - x.start, height=max(low - high, 1.0), fill_opacity=0.08
    )
    return tag("g", box, label(band[2], x.end - 4, high + 14, font_size=SMALL, text_anchor="end"))


def _look(line: Line, order: int) -> tuple[str, str | None, str]:
    return line_style(order if line.place is None else line.place)


def _line(line: Line, look: tuple[str, str | None, str], x: Scale, y: Scale) -> Markup:
    """The line in pieces, broken where a point has no place on the axes."""
    colour, dashes, shape = look
    pieces: list[list[tuple[float, float]]] = [[]]
    for across, up in line.points:
        if x.shows(across) and y.shows(up):
            pieces[-1].append((x(across), y(up)))
        elif pieces[-1]:
            pieces.append([])
    drawn = [
        stroke(
            piece,
            fill="none",
            stroke=colour,
            stroke_width=2.6 if line.bold else 1.5,
            stroke_dasharray=dashes,
            stroke_linejoin="round",
        )
        for piece in pieces
        if len(piece) > 1
    ]
    marks = [
        mark(shape, *point, size=3.8 if line.bold else 3.0, fill=colour)
        for piece in pieces
        for point in _few(piece)
    ]
    return tag("g", tag("title", line.name), *drawn, *marks)


def _few(piece: list[tuple[float, float]], most: int = 12) -> list[tuple[float, float]]:
    every = max(1, -(-len(piece) // most))
    return piece[::every]


def _names(lines: Sequence[Line], width: float, top: float) -> tuple[list[Markup], float]:
    """A sample of each line with its name, in as many columns as fit; and the room they take."""
    longest = max((text_width(line.name) for line in lines), default=0.0) + 48
    columns = max(1, min(int((width - 8) // longest), len(lines) or 1))
    side = (width - 8) / columns
    high = -(-len(lines) // columns)
    parts = []
    for place, line in enumerate(lines):
        colour, dashes, shape = _look(line, place)
        x, y = 8 + (place // high) * side, top + 6 + (place % high) * _NAME_ROW
        weight = 2.6 if line.bold else 1.5
        parts.append(rule(x, y, x + 28, y, stroke=colour, stroke_dasharray=dashes, stroke_width=weight))
        parts.append(mark(shape, x + 14, y, size=3.0, fill=colour))
        style = "600" if line.bold else None
        parts.append(label(line.name, x + 35, y + 4, room=side - 38, font_weight=style))
    return parts, high * _NAME_ROW + 4


_ESTIMATE_ROW = 27.0


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
    head, foot = 12.0, 12.0 + _ESTIMATE_ROW * max(len(estimates), 1)
    left = min(max((text_width(one.name) for one in estimates), default=0.0) + 12, 150.0)
    seen = [v for one in estimates for v in (one.value, one.low, one.high) if v is not None]
    x = Scale.over(seen, start=left + 22, end=WIDTH - 16.0, zero=True, margin=0.06)
    y = Scale(low=0.0, high=1.0, start=foot, end=head)
    parts = [Axes(x=x, y=y, x_label=x_label, x_ticks=7).drawn(across=False)]
    parts.append(rule(x(0), foot, x(0), head, stroke_opacity=0.8, stroke_width=1.2))
    for place, one in enumerate(estimates):
        at = head + (place + 0.5) * _ESTIMATE_ROW
        said = tag("title", f"{one.name}: {_said(one)}")
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


def _said(one: Estimate) -> str:
    value = readable(float(f"{one.value:.4g}"))
    if one.low is None or one.high is None:
        return value
    low, high = (readable(float(f"{end:.4g}")) for end in (one.low, one.high))
    return f"{value} [{low}, {high}]".replace("[-inf", "(−∞").replace("inf]", "∞)")


_RANGE_ROW = 40.0


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
        parts.append(_row(row, 8 + place * _RANGE_ROW, left))
    return chart(parts, title=title, description=description, height=12 + _RANGE_ROW * len(rows))


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


def spectrum(
    values: Sequence[float],
    *,
    title: str,
    description: str = "",
    edge: float | None = None,
    repaired: Sequence[float] | None = None,
    y_label: str = "variance",
) -> Markup:
    """Eigenvalues as released, largest first: filled above the edge, hollow below; ``repaired`` ones as a line.

    >>> picture = spectrum([3.0, 0.4, -0.2], edge=0.5, title="Spectrum")
    >>> "noise edge 0.5" in picture
    True
    """
    height, left, foot, head = 306.0, 62.0, 236.0, 34.0
    count = len(values)
    seen = [*values, *(repaired or ()), *([] if edge is None else [edge])]
    x = Scale(low=0.4, high=max(count, 1) + 0.6, start=left, end=WIDTH - 8.0)
    y = Scale.over(seen, start=foot, end=head, zero=True)
    axes = Axes(x=x, y=y, x_label="component, largest first", y_label=y_label)
    parts = [axes.drawn(along=False), *_counts(x, count, foot)]
    if y.low < 0:
        parts.append(rule(left, y(0), x.end, y(0), stroke_opacity=0.55))
    if edge is not None and math.isfinite(edge):
        at = y(edge)
        parts.append(
            tag("rect", x=left, y=at, width=x.end - left, height=max(foot - at, 0.0), fill_opacity=0.07)
        )
        parts.append(rule(left, at, x.end, at, stroke_dasharray="5 3"))
    if repaired is not None and len(repaired):
        line = [(x(i + 1), y(value)) for i, value in enumerate(repaired) if math.isfinite(value)]
        parts.append(stroke(line, fill="none", stroke=INK, stroke_opacity=0.6, stroke_width=1.2))
    size = 4.2 if count <= 40 else 2.6
    for i, value in enumerate(values):
        if math.isfinite(value):
            above = edge is None or value > edge
            parts.append(
                tag(
                    "g",
                    tag("title", f"component {i + 1}: {readable(float(f'{value:.4g}'))}")
                    if count <= 60
                    else None,
                    mark(
                        "circle",
                        x(i + 1),
                        y(value),
                        size=size,
                        fill=ACCENT if above else "none",
                        stroke=ACCENT,
                        stroke_width=1.5,
                    ),
                )
            )
    parts.append(_key(edge, repaired is not None, height - 12))
    return chart(parts, title=title, description=description, height=height)


def _counts(x: Scale, count: int, foot: float) -> list[Markup]:
    """Whole numbers under the axis, not more than fit."""
    every = max(1, -(-count // 10))
    shown = [1, *range(every, count + 1, every)] if every > 1 else list(range(1, count + 1))
    return [label(str(n), x(n), foot + 16, text_anchor="middle", font_size=SMALL) for n in shown]


def _key(edge: float | None, repaired: bool, y: float) -> Markup:
    """What the marks mean, below the picture, where no value can be."""
    parts, at = [], 10.0
    for fill, words in ((ACCENT, "as released" if edge is None else "above"), ("none", "below")):
        if fill == "none" and edge is None:
            continue
        parts.append(mark("circle", at, y - 4, size=4.2, fill=fill, stroke=ACCENT, stroke_width=1.5))
        parts.append(label(words, at + 9, y, font_size=SMALL))
        at += 24 + 6.8 * len(words)
    if edge is not None:
        words = f"noise edge {readable(edge)}"
        parts += [rule(at, y - 4, at + 22, y - 4, stroke_dasharray="5 3")]
        parts += [label(words, at + 28, y, font_size=SMALL)]
        at += 44 + 6.8 * len(words)
    if repaired:
        parts += [
            rule(at, y - 4, at + 20, y - 4, stroke_opacity=0.6),
            label("repaired", at + 26, y, font_size=SMALL),
        ]
    return tag("g", *parts)
