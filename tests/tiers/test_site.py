"""The documentation site: builds without a warning, loads nothing from elsewhere, and every page can be reached.

Takes some 15 seconds of CPU time and the extra ``docs``; without it these tests are skipped and say so.
"""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

pytest.importorskip("sphinx", reason="the site needs pip install 'privcov[docs]'")
pytest.importorskip("furo", reason="the site needs pip install 'privcov[docs]'")
pytest.importorskip("myst_parser", reason="the site needs pip install 'privcov[docs]'")

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


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "build.py", "-o", place], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return place


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
