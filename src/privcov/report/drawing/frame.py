"""The parts that every chart has: a root element with its description, axes, labels that fit.

From numbers to places: linear and logarithmic axes with ticks at round numbers.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from privcov.report.drawing.markup import Markup, join, short, tag
from privcov.report.drawing.theme import INK, SMALL, TEXT, WIDTH

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Numbers from ``low`` to ``high`` onto coordinates from ``start`` to ``end``."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __post_init__(self) -> None:
        if not (self.low < self.high and math.isfinite(self.high - self.low)) or (self.log and self.low <= 0):
            raise ValueError("a scale needs finite numbers low < high, above zero where it is logarithmic")

    @classmethod
    def over(
        cls,
        values: Iterable[float],
        *,
        start: float,
        end: float,
        log: bool = False,
        margin: float = 0.04,
        zero: bool = False,
    ) -> Scale:
        """A scale on which these values fit; those that it cannot show do not count."""
        shown = [float(v) for v in values if math.isfinite(v) and (v > 0 or not log)]
        if zero and not log:
            shown.append(0.0)
        low, high = (min(shown), max(shown)) if shown else (1.0, 10.0) if log else (0.0, 1.0)
        if log:
            room = max(margin * math.log(high / low), 0.02 if high > low else 0.7)
            return cls(low=low * math.exp(-room), high=high * math.exp(room), start=start, end=end, log=True)
        room = margin * (high - low) or 0.5 * abs(high) or 1.0
        return cls(low=low - room, high=high + room, start=start, end=end)

    def __call__(self, value: float) -> float:
        """The coordinate of a value."""
        if self.log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def shows(self, value: float) -> bool:
        """Whether a value has a place on this scale."""
        return math.isfinite(value) and (value > 0 or not self.log)

    def ticks(self, most: int = 6) -> list[float]:
        """Round numbers along the scale, at most about ``most``."""
        return self._decades(most) if self.log else self._steps(most)

    def labels(self, ticks: list[float]) -> list[str]:
        """The ticks as people write them, all with the same number of decimals on a linear scale."""
        if self.log or not ticks:
            return [readable(tick) for tick in ticks]
        step = min((b - a for a, b in pairwise(ticks)), default=abs(ticks[0]) or 1.0)
        if not step >= 1e-5 or max(map(abs, ticks)) >= 1e6:
            return [readable(tick) for tick in ticks]
        decimals = max(0, -math.floor(math.log10(step) + 1e-9))
        return [
            f"{0.0 if abs(tick) < step / 1e6 else tick:,.{decimals}f}".replace("-", "−") for tick in ticks
        ]

    def _steps(self, most: int) -> list[float]:
        raw = (self.high - self.low) / most
        power = 10.0 ** math.floor(math.log10(raw))
        step = next(power * times for times in (1, 2, 5, 10) if power * times >= raw * (1 - 1e-9))
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [count * step for count in range(first, last + 1)]

    def _decades(self, most: int) -> list[float]:
        low, high = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        for steps in ((1, 2, 5), (1, 3), (1,)):
            found = [
                step * 10.0**power
                for power in range(low, high + 1)
                for step in steps
                if self.low <= step * 10.0**power <= self.high
            ]
            if len(found) <= most:
                return found if len(found) > 1 else [self.low, self.high]
        every = -(-len(found) // most)
        return found[::every]


def readable(value: float) -> str:
    """A tick of any size, short: plain where that is short, else a power of ten.

    >>> readable(0.002), readable(20000), readable(3e-7), readable(1e9)
    ('0.002', '20,000', '3·10⁻⁷', '10⁹')
    """
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    size = abs(value)
    if 1e-3 <= size < 1e6:
        return f"{float(f'{value:.3g}'):,.10g}".replace("-", "−")
    mantissa, power = f"{value:.2e}".split("e")
    raised = "10" + str(int(power)).translate(_RAISED)
    digits = f"{float(mantissa):g}".replace("-", "−")
    return raised if digits == "1" else f"{digits}·{raised}"


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
