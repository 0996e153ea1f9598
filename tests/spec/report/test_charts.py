"""Charts are whole, say what they show, keep their text inside, and mean the same in grey and in the dark."""

from __future__ import annotations

import math
import re

import pytest
from reading import read

from privcov.report.drawing import (
    THEME,
    Estimate,
    Line,
    Range,
    coefficients,
    curves,
    heat_map,
    ranges,
    spectrum,
)
from privcov.report.drawing.frame import Scale, fitted, readable, text_width
from privcov.report.drawing.theme import line_style

INF, NAN = math.inf, math.nan
NAMES = [
    "age",
    "sex[F]",
    "years of education completed",
    "married[yes]",
    "x",
    "收入水平",
    "income",
    "b",
    "c",
    "d",
]


def square(d):
    """Values in [-1, 1] of both signs, the same each time."""
    return [[1.0 if i == j else math.sin(1.3 * (i * j + i + j)) for j in range(d)] for i in range(d)]


def names(d):
    return [f"{NAMES[i % len(NAMES)]}{i // len(NAMES) or ''}" for i in range(d)]


LINES = [Line(name=f"mechanism-{i}", points=[(0.1, 9.0 + i), (1, 0.9 + i), (10, 0.1 + i)]) for i in range(9)]
SLOPES = [
    Estimate(name="age", value=0.4, low=0.2, high=0.6),
    Estimate(name="a column with a very long name indeed", value=-0.1, low=-0.4, high=0.2),
    Estimate(name="open", value=0.8, low=-INF, high=0.9),
    Estimate(name="nothing known", value=0.3, low=-INF, high=INF),
    Estimate(name="no interval", value=0.3),
]
TRACKS = [
    Range(name="age", low=0, high=100, value=48.4, spread=17, noise=0.3),
    Range(name="income", low=0, high=200_000, value=150, spread=70_000, noise=1200.0),
    Range(name="outside", low=-1, high=1, value=7, spread=3, noise=2),
    Range(name="unknown", low=-1, high=1, value=NAN),
]
CHARTS = {
    "heat map": lambda: heat_map(names(7), square(7), title="T", description="D"),
    "heat map of sizes": lambda: heat_map(
        names(4), square(4), title="T", description="D", signed=False, limit=0.1
    ),
    "loadings": lambda: heat_map(
        names(5), [row[:2] for row in square(5)], columns=["PC1", "PC2"], title="T", description="D"
    ),
    "heat map of 40": lambda: heat_map(names(40), square(40), title="T", description="D"),
    "heat map of 200": lambda: heat_map(names(200), square(200), title="T", description="D"),
    "spectrum": lambda: spectrum(
        [0.5, 0.2, 0.01, -0.1], edge=0.1, repaired=[0.4, 0.1, 0, 0], title="T", description="D"
    ),
    "spectrum without a law": lambda: spectrum([5.0], title="T", description="D"),
    "spectrum of 300": lambda: spectrum(
        [1 / (i + 1) for i in range(300)], edge=0.5, title="T", description="D"
    ),
    "coefficients": lambda: coefficients(SLOPES, title="T", description="D", x_label="change in income"),
    "curves": lambda: curves(
        LINES,
        title="T",
        description="D",
        x_label="ε",
        y_label="error per row",
        here=(1, "your ε = 1"),
        band=(3, 6, "range of the matrix itself"),
    ),
    "linear curves": lambda: curves(
        LINES[:1], title="T", description="D", x_label="x", y_label="y", log_x=False, log_y=False
    ),
    "no curves": lambda: curves([], title="T", description="D", x_label="x", y_label="y"),
    "ranges": lambda: ranges(TRACKS, title="T", description="D"),
}
every_chart = pytest.mark.parametrize("name", CHARTS)


@every_chart
def test_a_chart_is_whole_and_says_what_it_shows(name):
    document = read(CHARTS[name]())
    picture = document.elements[0]
    assert (picture.name, picture.attributes["role"]) == ("svg", "img")
    assert picture.attributes["aria-label"] == "T. D"
    assert [element.name for element in document.elements[1:3]] == ["title", "desc"]
    assert (document.elements[1].words, document.elements[2].words) == ("T", "D")


@every_chart
def test_a_chart_is_the_same_each_time_and_has_no_id(name):
    assert CHARTS[name]() == CHARTS[name]()
    assert " id=" not in CHARTS[name]()


@every_chart
def test_a_chart_needs_no_style_sheet_and_follows_one(name):
    made = CHARTS[name]()
    assert "var(--ink, currentColor)" in made
    assert not re.search(r"var\(--[\w-]+\)", made), "a colour without a fallback"
    fixed = set(re.findall(r'(?:fill|stroke)="(?!var|none)([^"]*)"', made))
    assert not fixed, "a colour that no theme can change"


def test_the_theme_sets_every_colour_that_charts_use_in_light_and_in_dark():
    used = {word for name in CHARTS for word in re.findall(r"var\((--[\w-]+),", CHARTS[name]())}
    light, dark = THEME.split("@media (prefers-color-scheme:dark)")
    assert len(used) >= 10
    for word in used:
        assert f"{word}:" in light, word
        assert f"{word}:" in dark or word == "--font", word


@every_chart
def test_no_number_is_left_undefined(name):
    assert not re.search(r"\b(nan|inf|None)\b", re.sub(r"<title>.*?</title>", "", CHARTS[name]()))


@every_chart
def test_text_stays_inside_the_picture(name):
    document = read(CHARTS[name]())
    *_, width, height = map(float, document.elements[0].attributes["viewbox"].split())
    for box in boxes(document):
        assert box[0] >= -1, box
        assert box[1] >= 0, box
        assert box[2] <= width + 1, box
        assert box[3] <= height + 1, box


@every_chart
def test_no_two_texts_cover_each_other(name):
    found = boxes(read(CHARTS[name]()))
    for i, (a, b, c, d, words) in enumerate(found):
        for e, f, g, h, others in found[:i]:
            assert c <= e + 0.5 or g <= a + 0.5 or d <= f + 0.5 or h <= b + 0.5, (words, others)


def boxes(document):
    """(left, top, right, bottom, words) of every text, as wide as a wide font would have it."""
    found = []
    for element in document.all("text"):
        words = element.words
        for inner in document.elements:  # the tooltip of a shortened text is no part of what is drawn
            if (
                inner.name == "title"
                and inner.words
                and words.startswith(inner.words)
                and words != inner.words
            ):
                words = words.removeprefix(inner.words)
                break
        size = float(element.attributes.get("font-size", 12))
        x, y = element.number("x"), element.number("y")
        wide, high = text_width(words, size) * 0.95, size * 0.75
        if "transform" in element.attributes:
            found.append((x - high, y - wide, x, y, words))
            continue
        start = {"middle": x - wide / 2, "end": x - wide}.get(element.attributes.get("text-anchor"), x)
        found.append((start, y - high, start + wide, y, words))
    return found


@pytest.mark.parametrize("d", [2, 3, 8, 14, 26, 27, 60])
def test_up_to_sixty_columns_have_their_names(d):
    labels = [f"c{i}" for i in range(d)]
    words = [element.words for element in read(heat_map(labels, square(d), title="T")).all("text")]
    assert all(words.count(label) == 2 for label in labels)


def test_cells_show_values_while_they_can_be_read_and_always_say_them():
    small, large = (read(heat_map(names(d), square(d), title="T")) for d in (6, 20))
    value = f"{square(2)[0][1]:.2f}"
    assert value in [element.words for element in small.all("text")]
    assert value not in [element.words for element in large.all("text")]
    assert f"age × sex[F]: {value}" in [element.words for element in large.all("title")]


def test_what_is_negative_can_be_told_in_grey():
    def strokes(values):
        parts = read(heat_map(["a", "b"], values, title="T")).all("path")
        return len(parts)

    assert strokes([[1.0, -0.5], [-0.5, 1.0]]) == strokes([[1.0, 0.5], [0.5, 1.0]]) + 2
    compact = [heat_map(names(30), [[sign * 0.5] * 30] * 30, title="T").count("l4") for sign in (1, -1)]
    assert compact[0] == 0 < compact[1]


def test_what_is_missing_is_a_dash_and_not_a_zero():
    document = read(heat_map(["a", "b"], [[1.0, NAN], [NAN, 1.0]], title="T"))
    assert [element.words for element in document.all("text")].count("–") == 2
    assert "a × b: not known" in [element.words for element in document.all("title")]
    missing = [[NAN if i != j else 1.0 for j in range(40)] for i in range(40)]
    assert 'fill-opacity="0.18"' in heat_map(names(40), missing, title="T")


def test_a_wide_matrix_shows_the_strongest_value_of_each_block():
    values = [[0.0] * 600 for _ in range(600)]
    values[301][17] = -1.0
    made = heat_map([f"c{i}" for i in range(600)], values, title="T")
    assert "among 4 × 4 columns" in made
    cells = [p.attributes for p in read(made).all("path") if "fill-opacity" in p.attributes]
    assert [(p["fill"][:11], p["fill-opacity"]) for p in cells] == [("var(--minus", "1")]
    assert len(heat_map([f"c{i}" for i in range(600)], square(600), title="T")) < 300_000


def test_a_matrix_that_does_not_fit_its_names_is_refused():
    with pytest.raises(ValueError, match="every pair"):
        heat_map(["a", "b"], [[1.0, 0.0]], title="T")


def test_an_unbounded_interval_is_an_arrow_and_a_point_clear_of_zero_is_filled():
    def shapes(**ends):
        document = read(coefficients([Estimate(name="age", value=0.4, **ends)], title="T"))
        arrows = sum(path.attributes["d"].endswith("Z") for path in document.all("path"))
        return arrows, document.all("circle")[0].attributes["fill"].split(",")[0]

    assert shapes(low=0.1, high=0.6) == (0, "var(--accent")
    assert shapes(low=-0.1, high=0.6) == (0, "var(--paper")
    assert shapes(low=0.1, high=INF) == (1, "var(--accent")
    assert shapes(low=-INF, high=INF) == (2, "var(--paper")
    assert shapes() == (0, "var(--paper")


def test_eigenvalues_above_the_edge_are_filled_and_the_edge_is_where_it_says():
    document = read(spectrum([0.5, 0.2, 0.01, -0.1], edge=0.1, title="T"))
    points = [circle for circle in document.all("circle") if circle.number("r") == 4.2][:4]
    assert [point.attributes["fill"] != "none" for point in points] == [True, True, False, False]
    edge = document.all("rect")[0].number("y")
    assert points[1].number("cy") < edge < points[2].number("cy")


def test_a_point_that_a_log_axis_cannot_show_breaks_the_line():
    line = Line(name="m", points=[(1, 1), (2, 2), (3, 0), (4, INF), (5, 5), (6, 6)])
    made = curves([line], title="T", x_label="x", y_label="y")
    pieces = [p for p in read(made).all("path") if p.attributes.get("stroke", "").startswith("var(--line-1")]
    assert len(pieces) == 2 + 1  # and the sample beside its name
    assert len(read(made).all("circle")) == 4 + 1


def test_names_of_lines_are_below_the_axes_and_the_marker_is_at_its_place():
    document = read(CHARTS["curves"]())
    texts = {element.words: element for element in document.all("text")}
    foot = max(texts[words].number("y") for words in ("0.1", "1", "10"))
    assert all(texts[line.name].number("y") > foot for line in LINES)
    assert texts["your ε = 1"].number("x") == pytest.approx(texts["1"].number("x"), abs=0.02)


def test_no_two_of_many_lines_look_alike_in_grey():
    assert len({line_style(place)[1:] for place in range(42)}) == 42
    assert len({line_style(place) for place in range(42)}) == 42


@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (-3.7, 12.1), (1e-9, 3e-9), (-2e6, 5e7), (99.99, 100.01), (0, 1e-300)]
)
def test_linear_ticks_are_round_inside_and_few(low, high):
    scale = Scale(low=low, high=high, start=0, end=100)
    ticks = scale.ticks(6)
    assert 2 <= len(ticks) <= 7
    assert all(-1e-6 <= scale(tick) <= 100 + 1e-6 for tick in ticks)
    step = ticks[1] - ticks[0]
    assert float(f"{step:.0e}") == pytest.approx(step)
    assert len(set(scale.labels(ticks))) == len(ticks)


@pytest.mark.parametrize(("low", "high"), [(0.03, 10), (1e-12, 1e12), (0.9, 1.2), (3, 4000)])
def test_log_ticks_are_in_order_and_labels_differ(low, high):
    scale = Scale(low=low, high=high, start=0, end=100, log=True)
    ticks = scale.ticks(6)
    assert 2 <= len(ticks) <= 7
    assert ticks == sorted(ticks)
    assert len(set(scale.labels(ticks))) == len(ticks)
    assert scale(math.sqrt(low * high)) == pytest.approx(50)


@pytest.mark.parametrize(
    ("low", "high", "log"), [(1, 1, False), (2, 1, False), (0, 1, True), (0, INF, False), (NAN, 1, False)]
)
def test_a_scale_without_room_is_refused(low, high, log):
    with pytest.raises(ValueError, match="low < high"):
        Scale(low=low, high=high, start=0, end=1, log=log)


def test_a_scale_over_nothing_or_one_value_still_has_room():
    for values in ([], [5.0], [0.0], [NAN, INF]):
        assert Scale.over(values, start=0, end=1).ticks()
        assert Scale.over(values, start=0, end=1, log=True).ticks()


def test_a_shortened_name_fits_and_keeps_its_whole_in_a_tooltip():
    assert text_width(fitted("a column with a very long name", 80.0)) <= 80
    made = CHARTS["coefficients"]()
    assert "<title>a column with a very long name indeed</title>" in made


@pytest.mark.parametrize(
    ("value", "words"),
    [(0.0, "0"), (-0.5, "−0.5"), (1e6, "10⁶"), (-2.5e-8, "−2.5·10⁻⁸"), (999999, "1,000,000")],
)
def test_numbers_of_any_size_are_short(value, words):
    assert readable(value) == words
