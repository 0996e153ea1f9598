"""Reads markup as strictly as a test can: tags balance, nothing runs, nothing is fetched."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"br", "hr", "meta", "link", "input", "img"}
RUNS = {"script", "iframe", "object", "embed", "foreignobject", "link", "form", "base", "img", "use", "image"}
RUNS |= {"animate", "set"}


@dataclass
class Element:
    """One element: its name, its attributes, the text inside it and where it stands."""

    name: str
    attributes: dict[str, str]
    path: tuple[str, ...]
    words: str = ""

    def number(self, name: str) -> float:
        return float(self.attributes[name])


@dataclass
class Document:
    """Every element in order of its start, and all text that a person reads."""

    elements: list[Element] = field(default_factory=list)
    words: str = ""

    def all(self, name: str) -> list[Element]:
        return [element for element in self.elements if element.name == name]


def read(markup: str) -> Document:
    """The document, after checking that it is whole and harmless."""
    reader = _Reader()
    reader.feed(markup)
    reader.close()
    assert not reader.open, f"never closed: {[element.name for element in reader.open]}"
    for element in reader.document.elements:
        assert element.name not in RUNS, element
        for name, value in element.attributes.items():
            assert not name.startswith("on"), element
            assert name not in ("src", "srcset", "data", "action", "xlink:href", "style"), element
            assert name != "href" or re.fullmatch(r"#[\w-]+", value), element
            assert "url(" not in value, element
        if element.name == "style":
            assert not re.search(r"url\(|@import|expression|</", element.words), "a style that fetches"
    return reader.document


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.document = Document()
        self.open: list[Element] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names), f"an attribute twice in {tag}"
        element = Element(tag, {name: value or "" for name, value in attrs}, tuple(e.name for e in self.open))
        self.document.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        raise AssertionError(f"<{tag}/> means nothing in HTML")

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open[-1].name == tag, f"</{tag}> closes <{self.open[-1].name}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        for element in self.open:
            element.words += data
        if not {"style", "title", "desc"} & {element.name for element in self.open}:
            self.document.words += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError("no comment is ever written")

    def unknown_decl(self, data: str) -> None:
        raise AssertionError("no declaration is ever written")
