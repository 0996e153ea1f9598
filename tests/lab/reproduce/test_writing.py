"""Findings as files: every claim, figure and table on both pages, nothing loaded from elsewhere, nothing injected."""

from __future__ import annotations

import csv
import io
from html.parser import HTMLParser

import pytest

from privcov.errors import ParameterError
from privcov_lab.reproduce.charts import Histogram, Line, Mark, Panel, draw
from privcov_lab.reproduce.study import Claim, Effort, Figure, Findings, Results, Study, Table
from privcov_lab.reproduce.writing import as_csv, write

PANELS = [
    Panel(
        title="errors",
        x_label="ε",
        y_label="error",
        lines=[Line("ours", [1, 10], [2, 1], low=[1, 0.5], high=[3, 2]), Line("theirs", [1, 10], [4, 3])],
        log_x=True,
        log_y=True,
    ),
    Panel(
        title="values",
        x_label="value",
        y_label="share",
        histograms=[Histogram("ours", [1.0, 2.0, 2.0]), Histogram("constant", [2.0])],
        marks=[Mark("truth", 1.5)],
    ),
]
TABLE = Table(name="numbers", caption="Some", headings=["who", "x", "y"], rows=[["a|<b>", 0.123456789, None]])


def study(**changes):
    made = {
        "claims": [
            Claim(
                where="Figure 1", says="x < y & <script>", measured="1 < 2", verdict="agrees", note="Really."
            )
        ],
        "figures": [Figure(name="one", caption="A picture", draw=lambda pyplot: draw(pyplot, PANELS))],
        "tables": [TABLE],
        "notes": ["Nothing differs."],
    } | changes
    return Study(
        name="toy",
        title="Toy <study>",
        citation="Nobody",
        about="Nothing.",
        tables=(),
        cells=lambda effort: [],
        find=lambda results: Findings(**made),
    )


class Page(HTMLParser):
    VOID = ("meta", "img")

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.links = [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.links += [value for name, value in attributes if name in ("src", "href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_everything_found_is_on_the_page_and_in_files(tmp_path):
    write(
        study(), Results(({"function": "f", "seconds": 3.0},)), directory=tmp_path, effort=Effort(quick=True)
    )
    names = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert names == {
        "index.html",
        "index.md",
        "figures/one.svg",
        "figures/one.png",
        "tables/numbers.csv",
        "tables/numbers.md",
    }
    text = (tmp_path / "index.html").read_text(encoding="utf-8")
    page = Page(text)
    assert set(page.links) == {"figures/one.svg", "tables/numbers.csv"}
    assert "script" not in page.tags
    for words in ("x &lt; y", "1 &lt; 2 Really.", "agrees", "Nothing differs.", "smoke run", "3 CPU-seconds"):
        assert words in text
    markdown = (tmp_path / "index.md").read_text(encoding="utf-8")
    for words in ("# Toy <study>", "| Figure 1 |", "**agrees**", "figures/one.svg", "a\\|<b>", "smoke run"):
        assert words in markdown


def test_only_a_smoke_run_is_called_one(tmp_path):
    write(study(), Results(()), directory=tmp_path, effort=Effort())
    assert "smoke run" not in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_the_same_results_give_the_same_bytes(tmp_path):
    for place in ("a", "b"):
        (tmp_path / place).mkdir()
        write(study(), Results(()), directory=tmp_path / place, effort=Effort())
    for path in (tmp_path / "a").rglob("*.*"):
        if path.is_file():
            assert path.read_bytes() == (tmp_path / "b" / path.relative_to(tmp_path / "a")).read_bytes(), path


def test_a_csv_has_every_digit_and_blanks_for_nothing():
    assert list(csv.reader(io.StringIO(as_csv(TABLE)))) == [["who", "x", "y"], ["a|<b>", "0.123456789", ""]]


def test_the_legend_is_below_the_panels_and_names_each_label_once():
    import matplotlib.pyplot as pyplot

    figure = draw(pyplot, PANELS)
    figure.canvas.draw()
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["ours", "theirs", "constant", "truth"]
    top = legend.get_window_extent().y1
    for axes in figure.axes:
        assert axes.get_tightbbox().y0 >= top - 1
    pyplot.close(figure)


def test_a_verdict_is_one_of_few_words():
    with pytest.raises(ParameterError, match="E299"):
        Claim(where="", says="", measured="", verdict="maybe")
