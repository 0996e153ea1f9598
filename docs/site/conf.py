"""How the documentation is built: Sphinx, MyST and Furo, with nothing loaded from elsewhere.

``docs/build.py`` runs this. Pages are plain Markdown that reads as well in a file browser: there are no
directives in them. What a page cannot say by itself is put in when it is read: the pages of a section, in the
order in which its README links them. Formulas are set by ``mathematics.py``; ``prose.py`` and ``generated.py`` say what
is wrong with a page.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import generated
import mathematics
import prose
from pygments.lexer import RegexLexer
from pygments.token import Comment, Generic, String, Text
from sphinx.util import logging

from privcov.version import __version__

DOCS = Path(__file__).parents[1]
SECTIONS = ("learn", "do", "explain", "proofs", "refuted", "reference", "decisions")

project = "privcov"
author = "The privcov authors"
release = version = __version__
extensions = ["myst_parser"]
root_doc = "index"
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build", "site", "**/.ipynb_checkpoints"]
myst_heading_anchors = 3
myst_enable_extensions = ["dollarmath"]
myst_dmath_allow_digits = False  # a price is no formula
myst_dmath_allow_space = False
myst_fence_as_directive = ["math"]
html_math_renderer = "mathml"
pygments_style = "tango"
pygments_dark_style = "github-dark"

html_theme = "furo"
html_title = "privcov"
html_static_path = ["static"]
html_css_files = ["privcov.css"]
html_copy_source = False
html_use_index = False
html_show_sphinx = False
html_show_copyright = False
html_theme_options = {"navigation_with_keys": True}


class Transcript(RegexLexer):
    """A console block as our pages have it: ``$`` and a command, and below it what was printed."""

    name = "transcript"
    tokens = {  # noqa: RUF012  (a class attribute by the rules of Pygments)
        "root": [
            (r"^\$ ", Generic.Prompt, "command"),
            (r"^# not run here: .*\n", Comment),
            (r".*\n", Generic.Output),
        ],
        "command": [
            (r"\\\n", Text),
            (r"\n", Text, "#pop"),
            (r"#.*$", Comment),
            (r"\"[^\"\n]*\"|'[^'\n]*'", String),
            (r"[^#\"'\\\n]+|.", Text),
        ],
    }


def sections() -> list[str]:
    """The first page of every section that exists; one that has none yet shows its pages instead."""
    found = []
    for section in SECTIONS:
        pages = sorted((DOCS / section).rglob("*.md"))
        first = DOCS / section / "README.md"
        shown = [first] if first in pages else pages
        found += [str(page.relative_to(DOCS).with_suffix("")) for page in shown]
    return found


def contents(name: str, text: str) -> list[str]:
    """The pages that stand under this one: for the index all sections, for a section what its README links."""
    if name == root_doc:
        return sections()
    if not name.endswith("/README"):
        return []
    linked = re.findall(r"\]\((\w[\w./-]*)\.md(?:#[\w-]*)?\)", text)
    return [page for page in dict.fromkeys(linked) if page != "README"]


def complete(_: Any, name: str, source: list[str]) -> None:
    """Say what is wrong with a page; put in the pages that stand under this one."""
    for line, fault in prose.faults(source[0], DOCS / f"{name}.md"):
        logging.getLogger(__name__).warning(fault, location=(name, line))
    if generated.stale(source[0]):
        logging.getLogger(__name__).warning("stale; run docs/site/generated.py", location=name)
    if pages := contents(name, source[0]):
        source[0] += "\n\n```{toctree}\n:hidden:\n:maxdepth: 2\n\n" + "\n".join(pages) + "\n```\n"


def setup(app: Any) -> None:
    """Called by Sphinx."""
    mathematics.setup(app)
    app.add_lexer("console", Transcript)
    app.connect("source-read", complete)
