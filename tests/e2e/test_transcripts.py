"""Every transcript and snippet of the manual is run, and prints what the page says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest
from transcripts import blocks, compare, inside, walk

from privcov import cli

ROOT = Path(__file__).parents[2]
DOCS = [page for page in sorted(ROOT.glob("docs/**/*.md")) if "_build" not in page.parts]
EXECUTED = {"python", "console", "toml", "csv"}
RUN = [page for page in DOCS if EXECUTED & {block.language for block in blocks(page.read_text())}] + [
    page  # its Python is run by test_documents.py
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md")
    if "console" in {block.language for block in blocks(page.read_text())}
]
NAMES = [str(page.relative_to(ROOT)) for page in RUN]

# Every block that nobody runs, with the reason its page gives. Nothing else may go unrun.
NOT_RUN = {
    "docs/do/audit.md": ["a thorough audit takes minutes"],
    "docs/do/cluster.md": [
        "it needs a Dask cluster",
        "it needs a Spark cluster",
        "it needs a GPU and a table of thousands of columns",
    ],
    "docs/do/files.md": ["it pipes into the installed command"],
    "docs/do/install.md": ["it downloads packages", "it asks the package index"],
    "docs/do/workbench.md": ["it serves until Ctrl-C"],
    "docs/learn/steward.md": ["it installs software"],
}


@pytest.fixture(scope="module")
def tutorial(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the steward's tutorial leaves behind: other pages begin with them."""
    place = tmp_path_factory.mktemp("steward")
    with inside(place):
        walk((ROOT / "docs/learn/steward.md").read_text())
    return place


LONG = {"docs/do/plan.md", "docs/do/audit.md"}
"""Pages whose commands take ten seconds and more: run by continuous integration, not by the quick suite."""


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=name, marks=[pytest.mark.long] if name in LONG else [])
        for page, name in zip(RUN, NAMES, strict=True)
    ],
)
def test_what_a_page_shows_is_what_happens(page, tmp_path, request):
    if page.name == "steward.md":
        request.getfixturevalue("tutorial")  # walking it is the test
        return
    text = page.read_text()
    start = request.getfixturevalue("tutorial") if re.search(r"^Files: ", text, re.MULTILINE) else None
    with inside(tmp_path):
        walk(text, start)


def test_every_transcript_is_run_but_those_listed_with_a_reason():
    found = {
        str(page.relative_to(ROOT)): reasons
        for page in [*DOCS, ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
        if (reasons := [block.reason for block in blocks(page.read_text()) if block.reason is not None])
    }
    assert found == NOT_RUN


@pytest.mark.parametrize("page", DOCS, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_command_hides_in_a_block_that_is_not_run(page):
    for block in blocks(page.read_text()):
        if block.language not in ("console", "python"):
            assert not re.search(r"^\$? ?privcov ", block.text, re.MULTILINE), block.text


def test_every_command_that_is_mentioned_exists():
    """In running text: its name and the names of its options; a word in capitals stands for something."""
    checked = 0
    for page in [*DOCS, ROOT / "README.md"]:
        for code in re.findall(r"(?<!`)`(privcov [a-z][^`\n]*)`(?!`)", page.read_text()):
            context = click.Context(cli.privcov, info_name="privcov")
            command: click.Command = cli.privcov
            words = shlex.split(code.replace("…", " "))[1:]
            while words and isinstance(command, click.Group):
                found = command.get_command(context, words.pop(0))
                assert found is not None, f"{page.name}: {code}"
                command, context = found, click.Context(found, parent=context)
            known = {name for parameter in command.params for name in parameter.opts} | {"--help"}
            for word in words:
                if re.match(r"--?[a-z]", word):
                    assert word.split("=")[0] in known, f"{page.name}: {code}"
            checked += 1
    assert checked > 25


@pytest.mark.parametrize(
    ("expected", "printed", "noisy"),
    [
        ("2 left of 3", "1 left of 3", False),
        ("mean 41.2 years", "mean 40.9 months", True),
        ("mean 41.2", "mean nan", True),
        ("one\n…\nthree", "one\ntwo", False),
        ("one", "one\ntwo", False),
        ("wrote …", "read it", False),
    ],
)
def test_a_difference_that_matters_is_found(expected, printed, noisy):
    with pytest.raises(AssertionError):
        compare(expected, printed, noisy=noisy, what="")


@pytest.mark.parametrize(
    ("expected", "printed", "noisy"),
    [
        ("one\n…\nfour", "one\ntwo\nthree\nfour", False),
        ("signed with …", "signed with vumik-bimir", False),
        ("educ  1.915  0.5177  3.70  ***", "educ  -12.1  0.5  0.01", True),
        ("──── ────\n 1.0", "─────── ────\n  -20.31", True),
    ],
)
def test_a_difference_that_does_not_matter_is_passed_over(expected, printed, noisy):
    compare(expected, printed, noisy=noisy, what="")


@pytest.mark.parametrize(
    "page",
    [
        "```console\n$ privcov nonsense\nprivcov: E200 No such command 'nonsense'. See privcov --help.\n```",
        "```console\n$ privcov --version\nprivcov, version 0\n```",
        '```python\nprint("a")\n```\n```output\nb\n```',
        "```python\nassert False\n```",
    ],
    ids=["an exit code not shown", "other words", "another output", "a snippet that fails"],
)
def test_a_page_that_is_not_true_fails(page, tmp_path):
    with inside(tmp_path), pytest.raises(AssertionError):
        walk(page)
