"""Findings as files: tables in CSV and Markdown, figures in SVG and PNG, and a page that sets claims beside them.

OUT/amin2019/index.html            the page; index.md says the same
OUT/amin2019/tables/*.csv, *.md
OUT/amin2019/figures/*.svg, *.png
OUT/amin2019/cells.jsonl           every measurement, from which all of it was made
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, get_args

from privcov.report import figures
from privcov.text import files
from privcov.version import __version__
from privcov_lab.reproduce.study import Effort, Findings, Results, Study, Table, Verdict

_SMOKE = "A smoke run: too few repetitions to judge a claim by. The verdicts below only show that it works."
_OVERVIEW = """Every experiment of the papers privcov comes from, run again on their data with their constants and
with ours, and a verdict on every claim they make of their experiments, computed from the measurements. One command
makes these pages:

    privcov reproduce all --data DIR -o reproduced

A stopped run goes on where it was; each figure's numbers lie beside it as CSV. How many claims hold:"""
_PEERS = (
    "Other implementations, on the same tables with the same promise: [measured](peers/peers.md) by a script that runs "
    "each in an environment of its own."
)
_STYLE = """
:root { color-scheme: light dark;
  --ink: #1c2430; --quiet: #5b6675; --paper: #ffffff; --rule: #d9dee5; --soft: #f4f6f8; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ee; --quiet: #9aa5b4; --paper: #14181e; --rule: #2d3540; --soft: #1b2129; }
}
body { margin: 0 auto; max-width: 68rem; padding: 2rem 1.25rem 4rem; color: var(--ink); background: var(--paper);
  font: 16px/1.55 system-ui, sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.25; } h2 { margin-top: 2.5rem; font-size: 1.2rem; }
p, figcaption { max-width: 46rem; } .quiet, figcaption { color: var(--quiet); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 0.9rem; }
th, td { padding: 0.35rem 0.7rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--rule); }
td.number { text-align: right; white-space: nowrap; } .verdict { white-space: nowrap; font-weight: 600; }
figure { margin: 1.5rem 0 2.5rem; } figure img { max-width: 100%; height: auto; }
.smoke { padding: 0.7rem 1rem; background: var(--soft); border-left: 4px solid #d55e00; }
"""


def write(study: Study, results: Results, *, directory: Path, effort: Effort) -> Findings:
    """Everything a study found, into its directory; what was there of an earlier run is replaced."""
    found = study.find(results)
    for part in ("tables", "figures"):
        (directory / part).mkdir(parents=True, exist_ok=True)

    def put(name: str, content: str) -> None:
        files.write(directory / name, content.encode(), force=True)

    for table in found.tables:
        put(f"tables/{table.name}.csv", as_csv(table))
        put(f"tables/{table.name}.md", f"{table.caption}\n\n{as_markdown(table)}")
    for figure in found.figures:
        paths = [directory / "figures" / f"{figure.name}.{ending}" for ending in ("svg", "png")]
        figures.save(figure.draw(figures.pyplot(paths[0], force=True)), *paths, force=True)
    seconds = sum(line["seconds"] for line in results.lines)
    put("index.md", markdown_page(study, found, effort=effort, seconds=seconds))
    put("index.html", html_page(study, found, effort=effort, seconds=seconds))
    return found


def overview(done: Sequence[Mapping[str, Any]], *, directory: Path) -> None:
    """The first page of a run over several papers, in Markdown: how many claims hold, and where to read on."""
    counted = [
        [
            f"[{paper['paper']}]({Path(paper['page']).parent.name}/index.md)",
            paper["title"],
            *(sum(claim["verdict"] == verdict for claim in paper["claims"]) for verdict in get_args(Verdict)),
            round(paper["cpu_seconds"]),
        ]
        for paper in done
    ]
    table = Table(
        name="papers",
        caption="",
        headings=["paper", "title", *get_args(Verdict), "CPU-seconds"],
        rows=counted,
    )
    text = f"# The papers, reproduced\n\n{_OVERVIEW}\n\n{as_markdown(table)}"
    if (directory / "peers" / "peers.md").is_file():
        text += f"\n{_PEERS}\n"
    files.write(directory / "README.md", text.encode(), force=True)


def as_csv(table: Table) -> str:
    """All digits, for programs."""
    made = io.StringIO()
    writer = csv.writer(made, lineterminator="\n")
    writer.writerow(table.headings)
    writer.writerows(["" if cell is None else cell for cell in row] for row in table.rows)
    return made.getvalue()


def as_markdown(table: Table) -> str:
    """A pipe table, numbers to the right.

    >>> print(as_markdown(Table(name="t", caption="", headings=["x", "error"], rows=[["a|b", 0.123456]])), end="")
    | x | error |
    | --- | ---: |
    | a\\|b | 0.1235 |
    """
    numeric = _numeric(table)
    lines = [
        list(table.headings),
        ["---:" if number else "---" for number in numeric],
        *([_cell(cell, table.digits) for cell in row] for row in table.rows),
    ]
    return "".join("| " + " | ".join(_in_a_cell(cell) for cell in line) + " |\n" for line in lines)


def markdown_page(study: Study, found: Findings, *, effort: Effort, seconds: float) -> str:
    """The page as Markdown, for the documentation."""
    parts = [f"# {study.title}", study.citation, study.about]
    parts += [f"> {_SMOKE}"] if effort.quick else []
    claims = Table(
        name="claims",
        caption="",
        headings=["where", "claim", "what we measured", "verdict"],
        rows=[[c.where, c.says, f"{c.measured} {c.note}".strip(), f"**{c.verdict}**"] for c in found.claims],
    )
    parts += ["## Claims", as_markdown(claims).strip()]
    parts += ["## What differs, and why", *found.notes] if found.notes else []
    parts += ["## Figures"] if found.figures else []
    for figure in found.figures:
        parts += [f"![{figure.caption}](figures/{figure.name}.svg)", figure.caption]
    parts += ["## Tables"] if found.tables else []
    for table in found.tables:
        parts += [f"{table.caption} ([CSV](tables/{table.name}.csv))", as_markdown(table).strip()]
    parts.append(_made_by(study, seconds, code=lambda text: f"`{text}`"))
    return "\n\n".join(parts) + "\n"


def html_page(study: Study, found: Findings, *, effort: Effort, seconds: float) -> str:
    """The page as HTML; its figures lie beside it, and nothing is loaded from elsewhere."""
    parts = [
        f"<h1>{escape(study.title)}</h1>",
        f'<p class="quiet">{escape(study.citation)}</p>',
        f"<p>{escape(study.about)}</p>",
    ]
    parts += [f'<p class="smoke">{escape(_SMOKE)}</p>'] if effort.quick else []
    rows = "".join(
        f"<tr><td>{escape(c.where)}</td><td>{escape(c.says)}</td><td>{escape(f'{c.measured} {c.note}'.strip())}</td>"
        f'<td class="verdict">{escape(c.verdict)}</td></tr>'
        for c in found.claims
    )
    parts.append(
        '<h2>Claims</h2><div class="scroll"><table><thead><tr><th>where</th><th>claim</th><th>what we measured</th>'
        f"<th>verdict</th></tr></thead><tbody>{rows}</tbody></table></div>"
    )
    if found.notes:
        parts.append("<h2>What differs, and why</h2>" + "".join(f"<p>{escape(n)}</p>" for n in found.notes))
    if found.figures:
        parts.append("<h2>Figures</h2>")
    parts += [
        f'<figure><img src="figures/{escape(f.name)}.svg" alt="{escape(f.caption)}">'
        f"<figcaption>{escape(f.caption)}</figcaption></figure>"
        for f in found.figures
    ]
    if found.tables:
        parts.append("<h2>Tables</h2>")
    parts += [_html_table(table) for table in found.tables]
    parts.append(
        f'<p class="quiet">{_made_by(study, seconds, code=lambda t: f"<code>{escape(t)}</code>")}</p>'
    )
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(study.name)}, reproduced</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head>\n'
        f"<body>{chr(10).join(parts)}</body></html>\n"
    )


def _html_table(table: Table) -> str:
    numeric = _numeric(table)

    def line(cells: Sequence[str], tag: str) -> str:
        return "".join(
            f"<{tag}{' class=' + chr(34) + 'number' + chr(34) if number and tag == 'td' else ''}>{escape(cell)}</{tag}>"
            for cell, number in zip(cells, numeric, strict=True)
        )

    body = "".join(f"<tr>{line([_cell(c, table.digits) for c in row], 'td')}</tr>" for row in table.rows)
    return (
        f'<p>{escape(table.caption)} (<a href="tables/{escape(table.name)}.csv">CSV</a>)</p><div class="scroll">'
        f"<table><thead><tr>{line(table.headings, 'th')}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _made_by(study: Study, seconds: float, *, code: Callable[[str], str]) -> str:
    return (
        f"Measured by {code(f'privcov reproduce {study.name}')}, version {__version__}, in {seconds:,.0f} CPU-seconds; "
        "noise is idealized and seeded, and nothing here is a release."
    )


def _numeric(table: Table) -> list[bool]:
    return [
        any(isinstance(row[place], int | float) for row in table.rows)
        and all(isinstance(row[place], int | float | None) for row in table.rows)
        for place in range(len(table.headings))
    ]


def _cell(value: str | int | float | None, digits: int) -> str:
    if value is None:
        return ""
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def _in_a_cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
