"""Several lines on one pair of axes, told apart in grey; their names are below, where no data is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from privcov.report.drawing.frame import Axes, chart, label, mark, rule, stroke, text_width
from privcov.report.drawing.markup import Markup, tag
from privcov.report.drawing.scales import Scale
from privcov.report.drawing.theme import SMALL, WIDTH, line_style

_ROW = 19.0


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
    useful: tuple[float, str] | None = None,
    log_x: bool = True,
    log_y: bool = True,
    width: float = WIDTH,
    height: float = 320,
) -> Markup:
    """Lines in the order given; ``here`` marks an x, ``band`` shades a range of y, ``useful`` marks a y.

    >>> line = Line(name="laplace", points=[(0.1, 8), (1, 0.8)])
    >>> "laplace" in curves([line], title="Error", x_label="ε", y_label="error")
    True
    """
    points = [point for line in lines for point in line.points]
    xs = [x for x, _ in points] + ([] if here is None else [here[0]])
    ys = (
        [y for _, y in points]
        + ([] if useful is None else [useful[0]])
        + ([] if band is None else list(band[:2]))
    )
    left, head, foot = 62.0, 34.0 + (14 if here else 0), height - 44
    x = Scale.over(xs, start=left, end=width - 10.0, log=log_x, margin=0.02)
    y = Scale.over(ys, start=foot, end=head, log=log_y)
    parts = [_band(band, x, y), Axes(x=x, y=y, x_label=x_label).drawn()]
    parts.append(label(y_label, 2.0, 14.0, room=width - 4))
    if useful is not None and y.shows(useful[0]):
        at = y(useful[0])
        parts.append(rule(left, at, x.end, at, stroke_dasharray="2 3"))
        parts.append(label(useful[1], x.end - 4, at - 5, font_size=SMALL, text_anchor="end"))
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
        x, y = 8 + (place // high) * side, top + 6 + (place % high) * _ROW
        weight = 2.6 if line.bold else 1.5
        parts.append(rule(x, y, x + 28, y, stroke=colour, stroke_dasharray=dashes, stroke_width=weight))
        parts.append(mark(shape, x + 14, y, size=3.0, fill=colour))
        style = "600" if line.bold else None
        parts.append(label(line.name, x + 35, y + 4, room=side - 38, font_weight=style))
    return parts, high * _ROW + 4
