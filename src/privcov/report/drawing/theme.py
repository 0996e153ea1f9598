"""Colours, sizes and marks that every chart shares, and the style sheet that makes them fit the page."""

from __future__ import annotations

from privcov.report import colours
from privcov.report.drawing.markup import Markup

# Each has a fallback for a page that sets no theme: the colour of its text, and tones legible on light and dark.
INK = "var(--ink, currentColor)"
PAPER = "var(--paper, #fff)"
ACCENT = "var(--accent, #2b7bb9)"
PLUS = "var(--plus, #2b7bb9)"
MINUS = "var(--minus, #c4532b)"

WIDTH = 440
"""The natural width of a chart: on a telephone it shrinks to three quarters, and its text stays legible."""
TEXT = 12.0
SMALL = 11.0

_COLOURS = tuple(
    f"var(--line-{place}, {colours.between(pair)})" for place, pair in enumerate(colours.LINES, start=1)
)
_DASHES = (None, "6 3", "8 3 2 3", "2 2.5", "11 3", "8 2 2 2 2 2")
_MARKS = ("circle", "square", "diamond", "up", "down", "cross", "plus")


def line_style(place: int) -> tuple[str, str | None, str]:
    """Colour, dashes and mark of the line in this place; no two of the first 42 look alike, in grey neither."""
    return _COLOURS[place % len(_COLOURS)], _DASHES[place % 6], _MARKS[place % 7]


_LIGHT, _DARK = (
    "".join(f"--line-{place}:{pair[side]};" for place, pair in enumerate(colours.LINES, start=1))
    for side in (0, 1)
)
THEME = Markup(f"""
:root{{color-scheme:light dark;--ink:{colours.INK[0]};--soft:#5b6675;--paper:{colours.PAPER[0]};--shade:#f4f6f8;
--rule:#d9dee5;--accent:#1f6fae;--plus:#12578f;--minus:#a23a14;{_LIGHT}--warn:#8f3413;--warn-shade:#fdf1ec;
--font:system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","DejaVu Sans",sans-serif}}
@media (prefers-color-scheme:dark){{:root{{--ink:{colours.INK[1]};--soft:#a3adba;--paper:{colours.PAPER[1]};
--shade:#1c222b;--rule:#343d4a;--accent:#6cb4ee;--plus:#5aa5e0;--minus:#e8805a;{_DARK}--warn:#ffb499;
--warn-shade:#35211a}}}}
svg.chart{{display:block;max-width:100%;height:auto}}
svg.broad{{max-width:none}}
@media print{{:root{{--ink:#000;--soft:#444;--paper:#fff;--shade:#f6f6f6;--rule:#bbb;--accent:#1f6fae;--plus:#12578f;
--minus:#a23a14;--warn:#8f3413;--warn-shade:#fff}}svg.broad{{max-width:100%}}}}
""")
