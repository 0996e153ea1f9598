"""The manual is a test: what README and docs say is run, linked and true."""

from __future__ import annotations

import ast
import doctest
import importlib
import pkgutil
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from transcripts import compare

import privcov
from privcov.cli import main
from privcov.mechanisms import MECHANISMS

ROOT = Path(__file__).parents[2]
PAGES = [
    page for page in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]) if "_build" not in page.parts
]
SNIPPETS = [  # those under docs/ are run by test_transcripts.py, page by page
    pytest.param(code, shown, id=f"{page.relative_to(ROOT)}-{number}")
    for page in sorted(ROOT.glob("*.md"))
    for number, (code, shown) in enumerate(
        re.findall(r"```python\n(.*?)```(?:\n\n```output\n(.*?)```)?", page.read_text(), re.DOTALL)
    )
]
MODULES = [
    module.name
    for module in pkgutil.walk_packages(privcov.__path__, "privcov.")
    if "__main__" not in module.name
]


@pytest.mark.parametrize(("code", "shown"), SNIPPETS)
def test_a_snippet_runs_and_prints_what_is_shown(code, shown, tmp_path):
    """Numbers may differ where noise is in them; means, rounded to nine of its standard deviations or more, may not.

    A false alarm needs a mean whose noise, of exponential tails, exceeds that: odds below 1e-8.
    """
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    compare(shown, done.stdout, noisy=True, what=code)
    exact = [line for line in shown.splitlines() if line.startswith("means")]
    assert exact
    assert exact == [line for line in done.stdout.splitlines() if line.startswith("means")]


COMMANDS = re.findall(r"^(privcov .*?)(?:\s{2,}#.*)?$", (ROOT / "README.md").read_text(), re.MULTILINE)
FILLED = """
[columns.age]
lower = 0
upper = 100
[columns.sex]
levels = ["F", "M"]
[columns.income]
lower = 0
upper = 200
"""


def test_the_commands_of_the_readme_run_in_their_order(people, monkeypatch, capsys):
    """What a newcomer types, on a table of age, sex and income; the editor's part is done here."""
    assert len(COMMANDS) >= 6
    monkeypatch.chdir(people.parent)
    for command in COMMANDS:
        assert main(shlex.split(command)[1:]) == 0, capsys.readouterr().err
        if "schema init" in command:
            Path("people.toml").write_text(FILLED)
    assert "(Intercept)" in capsys.readouterr().out


def test_the_picture_of_the_readme_is_what_its_script_draws():
    drawn = runpy.run_path(str(ROOT / "docs/site/first_picture.py"))
    assert drawn["FILE"].read_text(encoding="utf-8") == drawn["picture"]()
    assert f"]({drawn['FILE'].relative_to(ROOT)})" in (ROOT / "README.md").read_text()


def test_the_glossary_has_every_mechanism_and_is_linked_where_people_begin():
    glossary = (ROOT / "docs/explain/glossary.md").read_text()
    assert [name for name in MECHANISMS if f"| `{name}` |" not in glossary] == []
    for page in ("README.md", "docs/index.md", "docs/do/README.md", "docs/learn/README.md", "docs/learn/steward.md",
                 "docs/learn/analyst.md"):  # fmt: skip
        assert "explain/glossary.md" in (ROOT / page).read_text(), page


def test_the_ten_lines_are_about_ten():
    code = SNIPPETS[0].values[0]
    assert len([line for line in code.splitlines() if line.strip()]) <= 11


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_docstrings_are_true(name):
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_named_files_exist(page):
    text = page.read_text()
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        assert (page.parent / target).exists(), target
    for target in re.findall(r"`((?:src|docs|tests|lab|tools)/[\w./-]+)`", text):
        assert "NAME" in target or (ROOT / target).exists(), target


def named_tests(text: str) -> list[tuple[str, str]]:
    """File and function of every test that a page names as pytest takes it."""
    return re.findall(r"(tests/[\w/.-]+\.py)::(\w+)", text)


def missing_tests(text: str) -> list[tuple[str, str]]:
    """Those of them that no file defines, or that pytest would not collect."""
    found: dict[str, set[str]] = {}
    for file, _ in named_tests(text):
        tree = ast.parse((ROOT / file).read_text()) if (ROOT / file).exists() else ast.Module([], [])
        found[file] = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    return [
        (file, name)
        for file, name in named_tests(text)
        if name not in found[file] or not re.match(r"test_", Path(file).name) or not name.startswith("test_")
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_test_that_a_page_names_exists(page):
    assert missing_tests(page.read_text()) == []


def test_every_threat_has_a_test():
    """Each line of each table of the page, but for heads and rules."""
    text = (ROOT / "docs/explain/threats.md").read_text()
    lines = [line for line in text.splitlines() if re.match(r"\| (?!attack \|)", line)]
    assert len(lines) > 30
    assert [line for line in lines if not named_tests(line)] == []
    assert len(re.findall(r"^## An? ", text, re.MULTILINE)) == 5


@pytest.mark.parametrize(
    "named",
    [
        "tests/e2e/test_documents.py::test_no",
        "tests/e2e/test_no.py::test_a",
        "tests/e2e/transcripts.py::walk",
    ],
)
def test_a_test_that_does_not_exist_is_found(named):
    assert missing_tests(f"shown by `{named}`") == [tuple(named.split("::"))]


def test_continuous_integration_runs_the_readme_s_own_test_command():
    readme = (ROOT / "README.md").read_text()
    command = re.search(r"<!-- tests -->\n```\n(.*?)\n```", readme)[1]
    assert command.endswith("-m pytest")
    printed = subprocess.run(
        ["bash", ROOT / ".ci" / "run", "--print"], capture_output=True, text=True, check=True
    )
    assert printed.stdout.strip() == command


def test_every_error_code_in_the_source_is_one_code_for_one_kind():
    """A code belongs to one class of error, and its first digit says which."""
    digit = {
        "InputError": "1",
        "ParameterError": "2",
        "BudgetError": "3",
        "OutputError": "4",
        "RandomnessError": "5",
        "ReleaseError": "6",
        "VerificationError": "6",
    }
    found = 0
    for path in [*(ROOT / "src").rglob("*.py"), *(ROOT / "lab/src").rglob("*.py")]:
        for kind, code in re.findall(r"(\w+Error)\(\s*\"E(\d{3})\"", path.read_text()):
            assert code[0] == digit[kind], f"{path.name}: {kind} E{code}"
            found += 1
    assert found > 60
