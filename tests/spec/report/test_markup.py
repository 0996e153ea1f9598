"""One place escapes: whatever a name holds, it comes out as text and nothing else."""

from __future__ import annotations

from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading import read

from privcov.report.drawing import Markup, heat_map, join, tag, text

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</title></svg><script>alert(1)</script>",
    "</style><script>alert(1)</script>",
    "&lt;script&gt;",
    "<!-- -->",
    "]]><x>",
    "javascript:alert(1)",
    "a\u202egnp.exe",
    "\u2066isolated\u2069",
    "zero\u200bwidth",
    "nul\x00 bell\x07 escape\x1b",
    "\ud800 alone",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_stays_text_wherever_it_stands(name):
    made = tag("p", name, title=name, aria_label=name)
    document = read(made)
    assert [element.name for element in document.elements] == ["p"]
    assert set(document.elements[0].attributes) == {"title", "aria-label"}
    plain = [c for c in name if c.isascii() and c.isprintable()]
    assert [c for c in document.words if c.isascii() and c.isprintable()] == plain
    made.encode()  # a lone surrogate could not be written to a file


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_stays_text_in_a_chart(name):
    document = read(heat_map([name, "b"], [[1.0, -0.5], [-0.5, 1.0]], title=name, description=name))
    assert not document.all("script")
    assert len(document.all("rect")) == 4 + 9


@pytest.mark.parametrize(
    "mark", ["\u202e", "\u202a", "\u2066", "\u200f", "\u200e", "\u061c", "\ufeff", "\x1b"]
)
def test_what_would_reorder_or_hide_its_neighbours_is_replaced(mark):
    assert text(f"a{mark}b") == "a\ufffdb"


def test_words_written_from_right_to_left_are_kept():
    assert text("גיל") == "גיל"
    assert text("العمر") == "العمر"


@given(st.text())
def test_text_reads_back_as_it_was_or_with_marks_replaced(given_text):
    made = text(given_text)
    assert not set("<>\"'") & set(made)
    back = unescape(made)
    assert len(back) == len(given_text)
    assert all(a == b or b == "\ufffd" for a, b in zip(given_text, back, strict=True))


@given(st.text(), st.text())
def test_an_element_closes_whatever_is_in_it(inside, value):
    document = read(tag("div", tag("b", inside), value, class_=value))
    assert [element.name for element in document.elements] == ["div", "b"]


def test_markup_is_not_escaped_twice_and_text_is_not_trusted_once():
    assert join([tag("b", "<"), "<"]) == "<b>&lt;</b>&lt;"
    assert text(Markup("<b></b>")) == "<b></b>"
    assert type(text("<") + "<") is str  # a sum is no markup any more, so it is escaped when it is used
    assert tag("p", text("<") + "<") == "<p>&amp;lt;&lt;</p>"


@pytest.mark.parametrize("name", ["a b", "x>", "", "1a", "on click", 'a"'])
def test_a_name_that_is_none_is_refused(name):
    with pytest.raises(ValueError, match="no name"):
        tag(name or "", "x")
    with pytest.raises(ValueError, match="no name"):
        tag("p", **{name: "x"})


def test_nothing_and_no_leave_an_attribute_out():
    assert tag("p", None, class_=None, hidden=False) == "<p></p>"
    assert tag("p", "", hidden=True, tabindex=0) == '<p hidden="true" tabindex="0"></p>'
