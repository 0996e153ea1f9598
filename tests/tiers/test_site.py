"""The documentation site: builds without a warning, loads nothing from elsewhere, and every page can be reached.

Takes some 15 seconds of CPU time and the extra ``docs``; without it these tests are skipped and say so.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

pytest.importorskip("sphinx", reason="the site needs pip install 'privcov[docs]'")
pytest.importorskip("furo", reason="the site needs pip install 'privcov[docs]'")
pytest.importorskip("myst_parser", reason="the site needs pip install 'privcov[docs]'")
pytest.importorskip("latex2mathml", reason="the site needs pip install 'privcov[docs]'")

ROOT = Path(__file__).parents[2]
# What a browser fetches without being asked: attribute by element.
LOADED = {
    "script": ("src",),
    "link": ("href",),
    "img": ("src", "srcset"),
    "iframe": ("src",),
    "source": ("src", "srcset"),
    "video": ("src", "poster"),
    "audio": ("src",),
    "object": ("data",),
    "embed": ("src",),
    "use": ("href", "xlink:href"),
    "image": ("href", "xlink:href"),
}


class Page(HTMLParser):
    """What a page loads, and where it links to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.loads += [value for name in LOADED.get(tag, ()) if (value := given.get(name))]
        self.loads += re.findall(r"url\(\s*['\"]?([^)'\"]+)", given.get("style") or "")
        if tag == "a" and given.get("href"):
            self.links.append(str(given["href"]))


def elsewhere(address: str) -> bool:
    """Whether a browser would leave this site for it."""
    parts = urlsplit(address)
    return bool(parts.netloc) or parts.scheme not in ("", "data")


def build(docs: Path, place: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, docs / "build.py", "-o", place], capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site")
    done = build(ROOT / "docs", place)
    assert done.returncode == 0, done.stdout + done.stderr
    return place


@pytest.fixture
def one_page(tmp_path: Path) -> Callable[[str], tuple[str, str]]:
    """Builds a site of one page; gives what was printed, and the page."""

    def made(text: str) -> tuple[str, str]:
        docs, place = tmp_path / "docs", tmp_path / "site"
        shutil.copytree(ROOT / "docs" / "site", docs / "site", dirs_exist_ok=True)
        shutil.copy(ROOT / "docs" / "build.py", docs)
        (docs / "other.md").write_text("---\norphan: true\n---\n# Other\n", encoding="utf-8")
        (docs / "index.md").write_text(f"# A page\n\n{text}\n", encoding="utf-8")
        done = build(docs, place)
        assert (done.returncode == 0) == (done.stderr == ""), done.stderr
        return done.stderr, (place / "index.html").read_text(encoding="utf-8")

    return made


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}


def test_no_page_loads_anything_from_elsewhere(pages):
    assert len(pages) > 60
    found = [(path.name, load) for path, page in pages.items() for load in page.loads if elsewhere(load)]
    assert found == []


def test_no_style_or_script_fetches_anything_from_elsewhere(site):
    for path in site.rglob("*.css"):
        text = path.read_text(encoding="utf-8")
        for address in re.findall(r"url\(\s*['\"]?([^)'\"]+)|@import\s+['\"]([^'\"]+)", text):
            assert not elsewhere("".join(address)), f"{path.name}: {address}"
    for path in site.rglob("*.js"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"(?:fetch|import|importScripts)\(\s*['\"`]https?:", text), path.name
    for path in site.rglob("*.svg"):
        assert not re.search(r"(?:href|src)=['\"](?!#|data:)", path.read_text(encoding="utf-8")), path.name


def test_every_page_can_be_reached_from_the_first(site, pages):
    seen, waiting = set(), [site / "index.html"]
    while waiting:
        path = waiting.pop()
        if path in seen or path not in pages:
            continue
        seen.add(path)
        for link in pages[path].links:
            if not elsewhere(link) and (target := unquote(urlsplit(link).path)):
                waiting.append((path.parent / target).resolve())
    assert set(pages) - seen <= {site / "search.html"}  # a form leads to it, not a link


def test_every_link_and_every_file_it_loads_is_there(site, pages):
    for path, page in pages.items():
        for link in [*page.links, *page.loads]:
            if elsewhere(link) or link.startswith(("#", "data:")):
                continue
            target = (path.parent / unquote(urlsplit(link).path)).resolve()
            assert target.exists(), f"{path.relative_to(site)}: {link}"


def test_every_markdown_page_is_on_the_site(site):
    sources = [page for page in (ROOT / "docs").rglob("*.md") if not {"_build", "tables"} & set(page.parts)]
    for page in sources:
        assert (site / page.relative_to(ROOT / "docs")).with_suffix(".html").exists(), page


def test_the_reference_holds_every_command_error_code_and_public_name(site):
    import privcov
    from privcov.cli import COMMANDS

    def words(name: str) -> str:
        text = (site / "reference" / name).read_text(encoding="utf-8")
        return re.sub(r"<[^>]+>", "", text)

    commands, errors, names = words("commands.html"), words("errors.html"), words("python.html")
    assert all(f"privcov {command}" in commands for command in COMMANDS)
    for path in (ROOT / "src").rglob("*.py"):
        for code in re.findall(r"Error\(\s*\"(E\d{3})\"", path.read_text()):
            assert code in errors, code
    assert all(f"privcov.{name}" in names for name in privcov.__all__ if name != "__version__")


@pytest.mark.parametrize(
    ("html", "found"),
    [
        ('<script src="https://cdn.example/x.js"></script>', True),
        ('<link rel="stylesheet" href="//fonts.example/a.css">', True),
        ('<img src="data:image/png;base64,AA">', False),
        ('<a href="https://example.org">a link is no load</a>', False),
        ('<p style="background: url(https://example.org/a.png)">', True),
    ],
)
def test_a_page_that_loads_from_elsewhere_would_be_seen(html, found):
    assert any(map(elsewhere, Page(html).loads)) is found


FAULTS = {
    "Both ‖D‖_* ≤ ‖P‖_* and more.": "became emphasis",
    "The norms ‖·‖_F, ‖·‖_2 and ‖·‖_* of a matrix.": "became emphasis",
    "A product a*b*c of three.": "became emphasis",
    "Where x<d>y holds.": "taken for HTML",
    "$`\\frac{1}{2`$ has a brace too few.": "no MathML",
    "$`\\nosuchthing x`$ is no command.": "no MathML",
    "E_{x}_{y} has two subscripts.": "no MathML",
    "What follows is on other.md.": "named and not linked",
    "See `docs/proofs/nowhere.md`.": "named and not linked",
    "See [there](nowhere.md).": "nowhere.md",
}


def test_the_build_fails_on_spoilt_mathematics_and_on_pages_that_are_not_linked(one_page):
    said = one_page("\n\n".join(FAULTS))[0]
    for line, fault in enumerate(FAULTS.values()):
        assert re.search(rf"index.md:{3 + 2 * line}: WARNING: .*{fault}", said), fault


def test_formulas_are_mathml_wherever_they_stand(one_page):
    said, page = one_page(
        "Let $`‖D‖_* ≤ Δ`$ and *‖D‖_F²* and `x_i`, not noise_std; it costs $5.\n\n```math\n\\frac{ε²}{√2}\n```\n"
    )
    assert said == ""
    assert page.count("<math") == 3
    assert "<msub><mi>&#x02016;</mi><mo>&#x0002A;</mo></msub><mo>&#x02264;</mo>" in page
    assert re.search(r"<em>‖D<math[^>]*><mrow><msubsup>", page)  # emphasis that is meant stays
    assert "<mfrac>" in page
    assert "<msqrt>" in page
    assert "<code" in page
    assert "noise_std; it costs $5" in page


def test_no_proof_page_shows_a_raw_script(site):
    """What is left of ``_`` and ``^`` outside code is a name of a program."""
    for path in (site / "proofs").glob("*.html"):
        article = re.search(r"<article.*</article>", path.read_text(encoding="utf-8"), re.DOTALL)
        text = re.sub(r"<(math|pre|code)\b.*?</\1>|<[^>]+>", "", article[0], flags=re.DOTALL)
        assert [word for word in re.findall(r"\S*[_^]\S*", text) if not re.match(r"\w+_\w+", word)] == [], (
            path.name
        )
