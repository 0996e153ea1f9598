"""Figures of reproductions: panels of lines, bands, histograms and marks, with one legend below all of them.

A label has one look in every panel, made of colour, dash and marker, so that print in grey will do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from privcov.report import figures

_HATCHES = ("", "//", "\\\\", "xx", "--", "||", "++")  # lines alone: dots make a file ten times as large


@dataclass(frozen=True)
class Line:
    """A line with markers; ``low`` and ``high`` are the edges of a band around it."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None


@dataclass(frozen=True)
class Histogram:
    """How often each value occurs, as a share of all."""

    label: str
    values: Sequence[float]


@dataclass(frozen=True)
class Mark:
    """A value to look for: a vertical line."""

    label: str
    x: float


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One set of axes."""

    title: str
    x_label: str
    y_label: str
    lines: Sequence[Line] = ()
    histograms: Sequence[Histogram] = ()
    marks: Sequence[Mark] = ()
    log_x: bool = False
    log_y: bool = False
    bins: int = 30


def draw(
    pyplot: Any, panels: Sequence[Panel], *, columns: int = 3, size: tuple[float, float] = (3.2, 2.6)
) -> Any:
    """All panels in rows of ``columns``, each ``size`` inches, and their legend below."""
    across = min(columns, len(panels))
    down = math.ceil(len(panels) / across)
    labels = list(dict.fromkeys(item.label for panel in panels for item in _items(panel)))
    names = max((len(label) for label in labels), default=0)
    abreast = max(1, min(len(labels), int(across * size[0] / (0.55 + 0.068 * names))))
    legend_height = 0.21 * math.ceil(len(labels) / abreast) + 0.15 if labels else 0.0
    figure, axes = pyplot.subplots(
        down, across, figsize=(across * size[0], down * size[1] + legend_height), squeeze=False
    )
    looks = {label: place for place, label in enumerate(labels)}
    for place, panel in enumerate(panels):
        _panel(axes[place // across][place % across], panel, looks)
    for spare in range(len(panels), down * across):
        axes[spare // across][spare % across].set_visible(False)
    handles: dict[str, Any] = {}
    for row in axes:
        for one in row:
            for handle, label in zip(*one.get_legend_handles_labels(), strict=True):
                handles.setdefault(label, handle)
    figure.tight_layout(rect=(0, legend_height / figure.get_figheight(), 1, 1))
    if handles:
        figure.legend(
            handles.values(), handles.keys(), loc="lower center", ncols=abreast, frameon=False, fontsize=8
        )
    return figure


def _power(value: float, _place: object = None) -> str:
    """A tick of a log axis in plain text, which is drawn in a tenth of the time of a formula.

    >>> _power(0.01), _power(100.0), _power(1e-5), _power(1e12)
    ('0.01', '100', '10⁻⁵', '10¹²')
    """
    exponent = math.log10(value)
    if -3 < exponent < 4:
        return f"{value:g}"
    return "10" + str(round(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _items(panel: Panel) -> list[Line | Histogram | Mark]:
    return [*panel.lines, *panel.histograms, *panel.marks]


def _panel(axes: Any, panel: Panel, looks: dict[str, int]) -> None:
    values = [v for made in panel.histograms for v in made.values]
    if values:
        low, high = min(values), max(values)
        edges = [low + (high - low or abs(low) or 1.0) * step / panel.bins for step in range(panel.bins + 1)]
        for made in panel.histograms:
            place = looks[made.label]
            axes.hist(
                made.values,
                bins=edges,
                weights=[1 / len(made.values)] * len(made.values),
                histtype="stepfilled",
                alpha=0.45,
                facecolor=figures.style(place)["color"],
                edgecolor="0.25",
                linewidth=0.7,
                hatch=_HATCHES[place % len(_HATCHES)],
                label=made.label,
            )
    for line in panel.lines:
        look = figures.style(looks[line.label])
        axes.plot(line.x, line.y, label=line.label, **look)
        if line.low is not None and line.high is not None:
            axes.fill_between(line.x, line.low, line.high, color=look["color"], alpha=0.13, linewidth=0)
    for mark in panel.marks:
        axes.axvline(mark.x, color="0.1", linewidth=1.2, linestyle=(0, (4, 2)), label=mark.label)
    for log, axis in ((panel.log_x, axes.xaxis), (panel.log_y, axes.yaxis)):
        if log:
            (axes.set_xscale if axis is axes.xaxis else axes.set_yscale)("log")
            axis.set_major_formatter(_power)
    axes.minorticks_off()  # in the light grid they say nothing, and cost most of the drawing
    axes.set_title(panel.title, fontsize=9)
    axes.set(xlabel=panel.x_label, ylabel=panel.y_label)
    figures.clear(axes)
