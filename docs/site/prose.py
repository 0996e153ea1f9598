"""What goes wrong in running text without anybody noticing, and is an error when the site is built.

Mathematics that Markdown takes for emphasis (the ``_`` and ``*`` of ‖D‖_* are gone, and what stands between two of them
is slanted), text that it takes for HTML, and a page that is named but not linked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

DOCS = Path(__file__).parents[1]
_MARKDOWN = MarkdownIt("commonmark").enable("table")
_NAMED = re.compile(r"(?<![\w/.-])((?:\.\./)*(?:[\w-]+/)*[\w-]+\.md)\b")


def faults(text: str, page: Path) -> Iterator[tuple[int, str]]:
    """(line, what is wrong) of every fault in the text of ``page``, which lies under docs/."""
    for token in _MARKDOWN.parse(text):
        if token.type == "inline":
            line = (token.map or [0])[0] + 1
            for fault in (*_spoilt(token.children or []), *_unlinked(token.children or [], page)):
                yield line, fault


def _spoilt(parts: list[Token]) -> Iterator[str]:
    """Emphasis that nobody meant: with ``_``, which we never write, or with a ``*`` next to a letter or a sign."""
    for i, part in enumerate(parts):
        if part.type == "html_inline" and not part.content.startswith("<!--"):
            yield f"{part.content} was taken for HTML"
        if part.type not in ("em_open", "strong_open"):
            continue
        end = next(j for j in range(i, len(parts)) if _closes(parts[j], part))
        within = "".join(each.content or " " for each in parts[i + 1 : end])
        before = parts[i - 1].content[-1:] if i else ""
        after = parts[end + 1].content[:1] if end + 1 < len(parts) else ""
        opens_well = not before or before.isspace() or before in "([{“‘\"'—–/"
        closes_well = not after or after.isspace() or after in ")]}”’\"'—–/.,;:!?…"
        if part.markup[0] == "_" or not opens_well or not closes_well or within[-1:] in ("_", "^"):
            yield f"{within[:60]!r} became emphasis; write formulas with a * or a pair of _ as $`…`$"


def _closes(part: Token, opening: Token) -> bool:
    return part.type == opening.type.replace("open", "close") and part.level == opening.level


def _unlinked(parts: list[Token], page: Path) -> Iterator[str]:
    """Pages of docs/ that are named in text or code outside a link."""
    linked = 0
    for part in parts:
        linked += {"link_open": 1, "link_close": -1}.get(part.type, 0)
        if linked or part.type not in ("text", "code_inline"):
            continue
        for name in _NAMED.findall(part.content):
            if (page.parent / name).exists() or name.startswith("docs/"):
                yield f"{name} is named and not linked"
