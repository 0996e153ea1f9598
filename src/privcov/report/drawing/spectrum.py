"""Eigenvalues in order, with the edge below which noise alone could have made them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from privcov.report.drawing.frame import Axes, chart, label, mark, rule, stroke
from privcov.report.drawing.markup import Markup, tag
from privcov.report.drawing.scales import Scale, readable
from privcov.report.drawing.theme import ACCENT, INK, SMALL, WIDTH


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
