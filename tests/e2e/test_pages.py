"""The shape of the manual: what every proof, every refutation and every section must have."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from transcripts import blocks

from privcov.mechanisms import MECHANISMS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SECTIONS = sorted(page.parent for page in DOCS.glob("*/README.md") if page.parent.name != "_build")
PROOFS = sorted(page for page in DOCS.glob("proofs/*.md") if page.name != "README.md")
REFUTED = sorted(page for page in DOCS.glob("refuted/*.md") if page.name != "README.md")
name_of = {"ids": lambda path: path.name}


@pytest.mark.parametrize("page", PROOFS, **name_of)
def test_a_proof_has_all_its_parts(page):
    text = page.read_text().lower()
    parts = [
        part
        for part in ("claim", "precondition", "pseudocode", "proof", "numerics", "tests")
        if part not in text
    ]
    drawn = any(block.language == "" for block in blocks(page.read_text()))
    assert parts == [] or (parts == ["pseudocode"] and drawn)
    assert re.search(r"`tests/[\w./-]+`", page.read_text())


def test_every_page_that_a_certificate_or_the_source_points_to_is_there():
    source = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    named = {made.proof for made in MECHANISMS.values()} | set(re.findall(r"docs/[\w/-]+\.md", source))
    assert len(named) > 25
    assert [page for page in named if not (ROOT / page).exists() and "NAME" not in page] == []


@pytest.mark.parametrize("page", REFUTED, **name_of)
def test_a_refuted_claim_has_a_counter_example_that_is_run(page):
    text = page.read_text()
    asserted = any(block.language == "python" and "assert" in block.text for block in blocks(text))
    assert asserted or re.search(r"`tests/[\w./-]+\.py`", text)
    assert "claim" in text.lower()


@pytest.mark.parametrize("section", [each for each in SECTIONS if each.name != "decisions"], **name_of)
def test_a_section_lists_its_pages_once(section):
    """The site's contents follow from these links; the list of decisions is made when the site is built.

    Tables that ``privcov reproduce`` writes beside a page are in it already, and no pages of their own.
    """
    listed = re.findall(r"^[*-] \[[^\]]*\]\(([\w./-]+\.md)", (section / "README.md").read_text(), re.M)
    assert sorted(listed) == sorted({*listed})
    linked = set(re.findall(r"\]\(([\w./-]+\.md)", (section / "README.md").read_text()))
    found = [page.relative_to(section) for page in section.rglob("*.md") if page.parent.name != "tables"]
    assert set(map(str, found)) - {"README.md"} <= linked


def test_decisions_are_numbered_without_a_gap():
    numbers = [int(page.name[:4]) for page in sorted((DOCS / "decisions").glob("[0-9]*.md"))]
    assert numbers == [*range(1, len(numbers) + 1)]


def test_the_first_page_leads_to_every_section():
    text = (DOCS / "index.md").read_text()
    linked = set(re.findall(r"\]\((\w+)/README\.md|<!-- generated: (\w+) -->", text))
    linked = {one or other for one, other in linked}
    assert {section.name for section in SECTIONS} - linked == set()
