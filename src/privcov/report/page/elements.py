"""The pieces a page is made of: sections, tables of aligned numbers, figures that scroll when they must.

What stands around the sections of a page: a head that forbids everything but its own style, a heading, contents.

The look of a page: calm, aligned, light and dark, from a telephone to a wall, and on paper.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from privcov.report.drawing import THEME, Markup, join, tag
from privcov.report.drawing.numbers import number, plus_minus
from privcov.version import __version__

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


PAGE = Markup(
    THEME
    + """
*{box-sizing:border-box}
html{font:16px/1.6 var(--font);background:var(--paper);color:var(--ink);-webkit-text-size-adjust:100%}
body{margin:0 auto;max-width:76rem;padding:2.5rem clamp(1rem,4vw,3.5rem) 5rem}
h1{font-size:clamp(1.7rem,4.5vw,2.5rem);line-height:1.2;font-weight:650;margin:0 0 .4rem;overflow-wrap:anywhere;
letter-spacing:-.01em}
h2{font-size:1.35rem;line-height:1.3;font-weight:620;margin:0 0 1rem;overflow-wrap:anywhere}
h3{font-size:1rem;font-weight:620;margin:1.6rem 0 .4rem}
p,li,figcaption,dd{overflow-wrap:anywhere}
p,ul{max-width:70ch;margin:.5rem 0}
ul{padding-left:1.2rem}li{margin:.25rem 0}li::marker{color:var(--soft)}
.lead{color:var(--soft);font-size:1.05rem;margin:0}
nav{margin:1.6rem 0 0;font-size:.92rem;display:flex;flex-wrap:wrap;gap:.3rem 1.2rem}
nav a{color:var(--accent);text-decoration:none;padding:.15rem 0}nav a:hover{text-decoration:underline}
section{margin-top:3rem;padding-top:2rem;border-top:1px solid var(--rule)}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,13rem),1fr));gap:1.1rem 2rem;
margin:0 0 1.4rem}
.facts dt{font-size:.82rem;color:var(--soft);letter-spacing:.01em}
.facts dd{margin:.1rem 0 0;font-size:1.08rem;font-weight:560;font-variant-numeric:tabular-nums}
.beside{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,27.5rem),1fr));gap:2rem 3rem;
align-items:start;margin:1rem 0}
.beside>*{min-width:0}.beside>:has(svg.broad){grid-column:1/-1}
figure{margin:0}
figcaption{color:var(--soft);font-size:.9rem;line-height:1.5;margin-top:.7rem;max-width:60ch}
.note{color:var(--soft);font-size:.9rem;line-height:1.5;margin:.6rem 0 0}
.scroll{overflow-x:auto;max-width:100%}
table{border-collapse:collapse;font-size:.92rem;line-height:1.35;font-variant-numeric:tabular-nums lining-nums;
margin:.4rem 0}
th,td{padding:.38rem .9rem .38rem 0;text-align:left;vertical-align:baseline;border-bottom:1px solid var(--rule);
white-space:nowrap}
thead th{color:var(--soft);font-weight:500;font-size:.84rem;border-bottom-color:var(--soft);vertical-align:bottom}
tbody th{font-weight:560;white-space:normal;overflow-wrap:anywhere;min-width:8rem;max-width:24rem}
th.n,td.n{text-align:right;padding:.38rem 0 .38rem 1.1rem}
details{margin:.8rem 0}summary{cursor:pointer;color:var(--accent);padding:.2rem 0}
pre{background:var(--shade);border:1px solid var(--rule);border-radius:6px;padding:.8rem 1rem;overflow-x:auto;
font:.86rem/1.55 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;margin:.8rem 0}
code{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
code.long{font-size:.82rem;font-weight:400;overflow-wrap:anywhere}
.warning{border-left:3px solid var(--warn);background:var(--warn-shade);color:var(--warn);padding:.6rem 1rem;
border-radius:0 6px 6px 0;font-weight:560}
footer{margin-top:3.5rem;color:var(--soft);font-size:.86rem}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
@media (max-width:480px){html{font-size:15px}
.facts{grid-template-columns:1fr 1fr;gap:1rem}
.facts>:has(code){grid-column:1/-1}section{margin-top:2.2rem;padding-top:1.5rem}}
@media print{html{font-size:10pt}body{max-width:none;padding:0}nav{display:none}section{break-inside:auto;
margin-top:1.5rem;padding-top:1rem}figure,table,pre,.facts{break-inside:avoid}h2,h3{break-after:avoid}
.scroll{overflow:visible}pre{white-space:pre-wrap;overflow-wrap:anywhere}table{font-size:8pt}
th,td{padding-right:.4rem}th.n,td.n{padding-left:.5rem}
.beside{grid-template-columns:1fr 1fr}}
"""
)
