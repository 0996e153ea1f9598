"""The pieces a page is made of: sections, tables of aligned numbers, figures that scroll when they must."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from privcov.report.drawing import Markup, join, tag
from privcov.report.drawing.numbers import number, plus_minus

__all__ = [
    "Section",
    "code",
    "facts",
    "figure",
    "folded",
    "listed",
    "number",
    "paragraphs",
    "plus_minus",
    "scrolled",
    "share",
    "side_by_side",
    "table",
    "warning",
]


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of a page: a word for its address, a heading, and what stands under it."""

    name: str
    heading: str
    body: Markup

    def drawn(self) -> Markup:
        """The section as an element."""
        return tag("section", tag("h2", self.heading), self.body, id=self.name)


def paragraphs(*sentences: str) -> Markup:
    """One paragraph a sentence."""
    return join(tag("p", words) for words in sentences)


def listed(sentences: Iterable[str]) -> Markup:
    """A list of sentences."""
    return tag("ul", *(tag("li", words) for words in sentences))


def facts(pairs: Iterable[tuple[str, object]]) -> Markup:
    """Names and values side by side."""
    return tag(
        "dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs), class_="facts"
    )


def table(
    headings: Sequence[str], rows: Iterable[Sequence[object]], *, left: int = 1, caption: str = ""
) -> Markup:
    """A table whose first ``left`` columns are words and whose others are numbers, in figures of one width."""

    def cells(kind: str, words: Sequence[object]) -> Markup:
        return tag(
            "tr",
            *(
                tag(
                    "th" if kind == "th" or i == 0 else "td",
                    word,
                    class_=None if i < left else "n",
                    scope="col" if kind == "th" else "row" if i == 0 else None,
                )
                for i, word in enumerate(words)
            ),
        )

    body = tag("tbody", *(cells("td", row) for row in rows))
    head = tag("thead", cells("th", headings))
    note = tag("p", caption, class_="note") if caption else None
    return tag("div", scrolled(tag("table", head, body)), note)


def figure(picture: Markup, caption: str) -> Markup:
    """A chart and what it shows."""
    return tag("figure", scrolled(picture), tag("figcaption", caption))


def side_by_side(*parts: Markup) -> Markup:
    """As many beside each other as the page has room for."""
    return tag("div", *parts, class_="beside")


def folded(summary: str, body: Markup) -> Markup:
    """What only some want to read."""
    return tag("details", tag("summary", summary), body)


def code(lines: str) -> Markup:
    """Commands or a program, to be copied."""
    return tag("pre", tag("code", lines), tabindex=0)


def warning(words: str) -> Markup:
    """What must not be overlooked."""
    return tag("p", words, class_="warning", role="note")


def scrolled(body: Markup) -> Markup:
    """Something that may be wider than the page, which the keyboard can scroll too."""
    return tag("div", body, class_="scroll", tabindex=0)


def share(value: float) -> str:
    """A share of one, in per cent.

    >>> share(0.1234), share(0.0004)
    ('12 %', '0.04 %')
    """
    return f"{100 * value:.2g} %" if value < 0.995 else f"{100 * value:.0f} %"
