"""Draws the README's picture: ``.venv/bin/python docs/site/first_picture.py`` (seconds).

The invented people of ``privcov demo`` are released at three budgets, and the private correlations are drawn beside the
true ones, which nobody could do with real people. The noise is a rehearsal's, so the same command gives the same bytes.
"""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path

import numpy as np

import privcov as pc
from privcov.noise.randomness import rehearsal
from privcov.report.drawing import THEME, Markup, tag
from privcov.report.view import View

FILE = Path(__file__).parents[1] / "explain" / "figures" / "private-and-true.svg"
BUDGETS = ("0.3", "1", "3")
PAIRS = (
    ("educ", "income"),
    ("age", "married[yes]"),
    ("age", "income"),
    ("sex[M]", "income"),
    ("age", "educ"),
)
COLOURS = ("var(--line-2)", "var(--line-1)", "var(--line-3)")

WIDTH, LEFT, RIGHT, TOP, STEP = 760.0, 175.0, 30.0, 96.0, 62.0
LOW, HIGH = -0.5, 1.0
BOTTOM = TOP + STEP * len(PAIRS)


def correlations() -> tuple[list[tuple[View, str]], dict[tuple[str, str], float]]:
    """A view of each release with its ε, and the true correlation of each pair."""
    home = files("privcov") / "demo"
    with as_file(home / "people.csv") as table, as_file(home / "people.toml") as facts:
        schema = pc.Schema.read(facts)
        made = [
            pc.release(
                table,
                schema=schema,
                loss=pc.PureDP(epsilon=epsilon, neighbours="replace-one"),
                randomness=rehearsal(seed),
            )
            for seed, epsilon in enumerate(BUDGETS, 1)
        ]
        rows = np.genfromtxt(table, delimiter=",", names=True, dtype=None, encoding="utf-8")
    columns = {name: rows[name].astype(float) for name in ("age", "educ", "income")}
    columns |= {"sex[M]": rows["sex"] == "M", "married[yes]": rows["married"] == "yes"}
    true = {(one, other): float(np.corrcoef(columns[one], columns[other])[0, 1]) for one, other in PAIRS}
    return list(zip(map(View.of, made), BUDGETS, strict=True)), true


def across(value: float) -> float:
    """Where a correlation is on the horizontal axis."""
    return LEFT + (WIDTH - LEFT - RIGHT) * (value - LOW) / (HIGH - LOW)


def dot(value: float, noise: float, y: float, colour: str) -> list[Markup]:
    """A private correlation, and a bar of two standard deviations of its noise on both sides, within the axis."""
    low, high = max(LOW, value - 2 * noise), min(HIGH, value + 2 * noise)
    bar = tag("line", x1=across(low), x2=across(high), y1=y, y2=y, stroke=colour, stroke_width=2.0)
    return [bar, tag("circle", cx=across(value), cy=y, r=5.0, fill=colour)]


def words(said: str, x: float, y: float, **given: str | float) -> Markup:
    return tag("text", said, x=x, y=y, **given)


def picture() -> str:
    """The whole file."""
    views, true = correlations()
    parts = [
        tag("rect", width=WIDTH, height=BOTTOM + 64, rx=8.0, fill="var(--paper)"),
        words(
            "Correlations of 4,000 people, private and true", 24.0, 34.0, font_size=18.0, font_weight="600"
        ),
        tag("line", x1=24.0, x2=24.0, y1=50.0, y2=70.0, stroke="var(--ink)", stroke_width=3.0),
        words("true", 34.0, 65.0),
    ]
    for place, (epsilon, colour) in enumerate(zip(BUDGETS, COLOURS, strict=True)):
        x = 110.0 + 150.0 * place
        parts += [
            tag("circle", cx=x, cy=60.0, r=5.0, fill=colour),
            words(f"private, ε = {epsilon}", x + 11, 65.0),
        ]
    bars = "Bars: two standard deviations of the noise, each way."
    parts.append(words(bars, WIDTH - RIGHT, BOTTOM + 48, text_anchor="end", fill="var(--soft)"))
    for tick in (-0.5, 0.0, 0.5, 1.0):
        x = across(tick)
        parts += [
            tag("line", x1=x, x2=x, y1=TOP - 8, y2=BOTTOM, stroke="var(--rule)"),
            words(f"{tick:g}".replace("-", "−"), x, BOTTOM + 24, text_anchor="middle", fill="var(--soft)"),
        ]
    for row, (one, other) in enumerate(PAIRS):
        middle = TOP + STEP * (row + 0.5)
        parts.append(words(f"{one} × {other}", LEFT - 16, middle + 5, text_anchor="end"))
        x = across(true[one, other])
        parts.append(
            tag("line", x1=x, x2=x, y1=middle - 25, y2=middle + 25, stroke="var(--ink)", stroke_width=3.0)
        )
        for place, ((view, _), colour) in enumerate(zip(views, COLOURS, strict=True)):
            i, j = view.names.index(one), view.names.index(other)
            assert view.noise is not None
            value, noise = float(view.correlation[i, j]), float(view.noise.correlation[i, j])
            parts += dot(value, noise, middle + 15.0 * (place - 1), colour)
    told = (
        "The smaller ε is, the longer are the bars and the further are the private values from the true ones."
    )
    return (
        tag(
            "svg",
            tag("title", "Private and true correlations"),
            tag("desc", told),
            tag("style", THEME),
            *parts,
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {WIDTH:g} {BOTTOM + 64:g}",
            role="img",
            font_family="var(--font)",
            font_size=14.0,
            fill="var(--ink)",
        )
        + "\n"
    )


if __name__ == "__main__":
    FILE.write_text(picture(), encoding="utf-8")
    print(f"wrote {FILE}")
