"""What stands around the sections of a page: a head that forbids everything but its own style, a heading, contents."""

from __future__ import annotations

from collections.abc import Sequence

from privcov.report.drawing import Markup, join, tag
from privcov.report.page.elements import Section
from privcov.report.page.style import PAGE
from privcov.version import __version__

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def page(parts: Sequence[Section], *, title: str, lead: str, rehearsal: bool = False) -> str:
    """The sections as a whole document. It fetches nothing, runs nothing, and tells the browser not to."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("meta", name="generator", content=f"privcov {__version__}"),
        tag("title", ("REHEARSAL: " if rehearsal else "") + title),
        tag("style", PAGE),
    )
    body = tag(
        "body",
        tag(
            "header",
            tag("h1", title),
            tag("p", lead, class_="lead"),
            tag(
                "nav",
                *(tag("a", part.heading, href=f"#{part.name}") for part in parts),
                aria_label="Contents",
            ),
        ),
        tag("main", *(part.drawn() for part in parts)),
        tag("footer", f"Made by privcov {__version__} from the release file alone."),
    )
    return join([Markup("<!DOCTYPE html>\n"), tag("html", head, body, lang="en"), Markup("\n")])
