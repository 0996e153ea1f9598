"""One table of colours: every mechanism looks the same in every figure, on light paper and on dark."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

import privcov as pc
from privcov.mechanisms import MECHANISMS
from privcov.planning import display as planned
from privcov.planning.signal import SignalRange
from privcov.report import colours, figures
from privcov.report.drawing import THEME, Line, curves
from privcov.report.drawing.theme import line_style

ROOT = Path(__file__).parents[3]


def luminance(tone: str) -> float:
    """By the formula of WCAG 2."""
    parts = [level / 255 for level in bytes.fromhex(tone[1:])]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def far(one: str, other: str) -> float:
    return (
        sum((a - b) ** 2 for a, b in zip(bytes.fromhex(one[1:]), bytes.fromhex(other[1:]), strict=True))
        ** 0.5
    )


def test_every_mechanism_has_a_colour_of_its_own():
    pairs = [colours.LINES[colours.place_of(name)] for name in MECHANISMS]
    assert len(set(pairs)) == len(MECHANISMS)
    with pytest.raises(ValueError, match="not in"):
        colours.place_of("sn")


@pytest.mark.parametrize("side", [0, 1], ids=["light", "dark"])
def test_a_line_stands_out_from_its_paper_and_from_the_others(side):
    tones = [pair[side] for pair in colours.LINES]
    assert min(contrast(tone, colours.PAPER[side]) for tone in tones) >= 3
    assert min(far(one, other) for one, other in itertools.combinations(tones, 2)) > 30


def test_on_paper_of_which_nothing_is_known_a_line_can_be_seen():
    for pair in colours.LINES:
        assert min(contrast(colours.between(pair), paper) for paper in colours.PAPER) > 1.8


def test_the_figure_of_a_plan_and_the_style_sheet_of_pages_agree_on_a_mechanism(tmp_path, monkeypatch):
    schema = pc.Schema.from_dict({"columns": {"a": {"lower": 0, "upper": 1}}})
    loss = pc.PureDP(epsilon=1, neighbours="replace-one")
    plan = SimpleNamespace(schema=schema, rows=9, loss=loss, forecasts=(), signal=SignalRange.of(schema))
    monkeypatch.setattr(
        planned, "curves", lambda *_, **__: {name: [(1.0, 2.0), (2.0, 1.0)] for name in MECHANISMS}
    )
    drawn = []
    monkeypatch.setattr(figures, "save", lambda figure, *_, **__: drawn.append(figure))
    planned.draw(plan, tmp_path / "plan.svg")
    seen = {line.get_label().removeprefix("≤ "): line.get_color() for line in drawn[0].axes[0].lines}
    assert THEME.count("--line-1:") == 2
    for name in MECHANISMS:
        place = colours.place_of(name)
        light, dark = colours.LINES[place]
        assert seen[name] == figures.style(place)["color"] == light
        assert line_style(place)[0].startswith(f"var(--line-{place + 1}, ")
        assert [f"--line-{place + 1}:{tone};" in THEME for tone in (light, dark)] == [True, True]


def test_a_line_with_a_place_keeps_its_look_wherever_it_stands():
    points = [(1.0, 1.0), (2.0, 2.0)]
    lines = [Line(name="b", points=points), Line(name="a", points=points, place=3)]
    for given in (lines, lines[::-1]):
        made = curves(given, title="T", x_label="x", y_label="y")
        assert re.search(r"<title>a</title><path[^>]*var\(--line-4,", made)


def test_no_other_file_has_a_palette_of_its_own():
    tones = {tone for pair in colours.LINES for tone in pair}
    for path in (ROOT / "src").rglob("*.py"):
        if path.name not in ("colours.py", "theme.py"):
            text = path.read_text(encoding="utf-8").lower()
            assert not [tone for tone in tones if tone in text], path


def test_a_figure_has_tones_for_a_dark_page_and_is_otherwise_as_it_was():
    drawn = (
        '<svg a="b"><path style="stroke: #1f6fae"/><g style="fill: #ffffff"/><a style="fill: #123456"/></svg>'
    )
    made = colours.following_the_page(drawn)
    style = re.search(r"\n <style>(.*?)</style>", made)
    assert made.replace(style[0], "") == drawn
    assert style[1].startswith("@media (prefers-color-scheme:dark){svg{fill:#e4e8ee}")
    assert '[style*="stroke: #1f6fae"]{stroke:#6cb4ee!important}' in style[1]
    assert '[style*="fill: #ffffff"]{fill:#14181f!important}' in style[1]
    assert "#123456" not in style[1]


def test_every_committed_figure_follows_the_page():
    found = sorted((ROOT / "docs").glob("**/figures/*.svg"))
    assert found
    for path in found:
        text = path.read_text(encoding="utf-8")
        assert text.count("prefers-color-scheme:dark") == 1, path
        used = set(re.findall(r"(?:fill|stroke): (#[0-9a-f]{6})", text))
        assert {tone for tone in used if len(set(bytes.fromhex(tone[1:]))) > 1} <= set(dict(colours.LINES)), (
            path
        )
