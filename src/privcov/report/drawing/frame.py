"""What every chart stands in: the root element that says what it shows, axes, labels that fit."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from privcov.report.drawing.markup import Markup, join, short, tag
from privcov.report.drawing.scales import Scale
from privcov.report.drawing.theme import INK, SMALL, TEXT, WIDTH

Point = tuple[float, float]


def chart(
    parts: Iterable[Markup],
    *,
    title: str,
    description: str,
    width: float = WIDTH,
    height: float,
    shrinks: bool = False,
) -> Markup:
    """The picture, with its title and description for those who do not see it.

    One wider than ``WIDTH`` keeps its width where there is less room, unless it has no text that must be read.
    """
    said = f"{title}. {description}" if description else title
    return tag(
        "svg",
        tag("title", title),
        tag("desc", description) if description else None,
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        class_="chart" if shrinks or width <= WIDTH else "chart broad",
        role="img",
        aria_label=said,
        viewBox=f"0 0 {short(width)} {short(height)}",
        width=float(width),
        height=float(height),
        font_family="var(--font, system-ui, sans-serif)",
        font_size=TEXT,
        fill=INK,
    )


def label(
    words: str, x: float, y: float, *, room: float | None = None, **attributes: str | float | None
) -> Markup:
    """Text at a place; cut to the room there is, and then whole in a tooltip."""
    size = float(attributes.get("font_size") or TEXT)
    shown = words if room is None else fitted(words, room, size)
    whole = tag("title", words) if shown != words else None
    return tag("text", whole, shown, x=x, y=y, **attributes)


def fitted(words: str, room: float, size: float = TEXT) -> str:
    """The words, or as many of their first letters as there is room for.

    >>> fitted("income", 100.0), fitted("household income", 60.0)
    ('income', 'househo…')
    """
    if text_width(words, size) <= room:
        return words
    while words and text_width(words + "…", size) > room:
        words = words[:-1]
    return words.rstrip() + "…"


def text_width(words: str, size: float = TEXT) -> float:
    """About how wide text is: no font is known here, so a wide one is assumed."""
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in words)
    return size * (0.61 * len(words) + 0.41 * wide)


def stroke(points: Sequence[Point], *, close: bool = False, **attributes: str | float | None) -> Markup:
    """A line through points."""
    first, *rest = (f"{short(x)} {short(y)}" for x, y in points)
    return tag(
        "path", d=f"M{first}" + "".join(f"L{point}" for point in rest) + ("Z" if close else ""), **attributes
    )


def rule(x1: float, y1: float, x2: float, y2: float, **attributes: str | float | None) -> Markup:
    """A straight line, in ink unless told otherwise."""
    attributes.setdefault("stroke", INK)
    return stroke([(x1, y1), (x2, y2)], close=False, fill="none", **attributes)


@dataclass(frozen=True, kw_only=True)
class Axes:
    """Two scales and the words beside them; ``drawn`` is the grid, the ticks and the labels."""

    x: Scale
    y: Scale
    x_label: str = ""
    y_label: str = ""
    x_ticks: int = 6
    y_ticks: int = 6

    def drawn(self, *, across: bool = True, along: bool = True) -> Markup:
        """Axes with a light grid: lines across at the ticks of y, lines along at the ticks of x."""
        left, right, foot, head = self.x.start, self.x.end, self.y.start, self.y.end
        parts = [rule(left, foot, right, foot, stroke_opacity=0.55)]
        if across:
            ticks = self.y.ticks(self.y_ticks)
            for value, words in zip(ticks, self.y.labels(ticks), strict=True):
                y = self.y(value)
                parts.append(rule(left, y, right, y, stroke_opacity=0.13))
                parts.append(
                    label(words, left - 6, y + 4, text_anchor="end", font_size=SMALL, fill_opacity=0.85)
                )
        if along:
            ticks = self.x.ticks(self.x_ticks)
            for value, words in zip(ticks, self.x.labels(ticks), strict=True):
                x = self.x(value)
                parts.append(rule(x, foot, x, head, stroke_opacity=0.13))
                parts.append(
                    label(words, x, foot + 16, text_anchor="middle", font_size=SMALL, fill_opacity=0.85)
                )
        if self.x_label:
            middle = (left + right) / 2
            parts.append(label(self.x_label, middle, foot + 36, text_anchor="middle", room=WIDTH - 10.0))
        if self.y_label:  # above the axis, where it needs no turned letters
            parts.append(label(self.y_label, 2.0, head - 12, room=right - 2))
        return tag("g", join(parts))


def mark(shape: str, x: float, y: float, *, size: float = 3.4, **attributes: str | float | None) -> Markup:
    """A point in one of the shapes that tell lines apart."""
    corners: dict[str, Sequence[Point]] = {
        "square": ((-1, -1), (1, -1), (1, 1), (-1, 1)),
        "diamond": ((0, -1.35), (1.35, 0), (0, 1.35), (-1.35, 0)),
        "up": ((0, -1.25), (1.2, 0.95), (-1.2, 0.95)),
        "down": ((0, 1.25), (1.2, -0.95), (-1.2, -0.95)),
    }
    if shape in corners:
        return stroke([(x + size * dx, y + size * dy) for dx, dy in corners[shape]], close=True, **attributes)
    if shape in ("cross", "plus"):
        reach = size * (1.0 if shape == "cross" else 1.3)
        ends = ((-1, -1, 2, 2), (-1, 1, 2, -2)) if shape == "cross" else ((-1, 0, 2, 0), (0, -1, 0, 2))
        path = "".join(
            f"M{short(x + reach * a)} {short(y + reach * b)}l{short(reach * c)} {short(reach * d)}"
            for a, b, c, d in ends
        )
        return tag("path", d=path, fill="none", stroke=attributes.get("fill"), stroke_width=1.6)
    return tag("circle", cx=x, cy=y, r=size, **attributes)
