"""The files that a forge and its tools read: they parse, and agree with the project.

YAML is large, and no reader of it is among the packages of the tests. These files keep to a small part of it, which
every reader understands alike: maps, lists and plain or quoted texts, one to a line, with a comment behind a plain one.
``read`` refuses all else.
"""

from __future__ import annotations

import configparser
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import privcov

ROOT = Path(__file__).parents[2]
FILES = sorted(
    path
    for pattern in ("CITATION.cff", ".pre-commit-config.yaml", ".github/**/*.yml", ".github/**/*.yaml")
    for path in ROOT.glob(pattern)
)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
_PAIR = re.compile(r'("[^"]+"|[\w-]+):(?: (.+))?')


def read(text: str) -> Any:
    """The maps, lists and texts of a document in the small part of YAML."""
    assert "\t" not in text
    lines = []
    for line in text.splitlines():
        content = line.strip()
        if '"' not in content:
            content = re.sub(r"(?<=\S) +# .*", "", content)
        if content and not content.startswith("#"):
            lines.append((len(line) - len(line.lstrip(" ")), content))
    value, rest = _node(lines)
    assert rest == [], f"not understood: {rest[0][1]!r}"
    return value


def _node(lines: list[tuple[int, str]]) -> tuple[Any, list[tuple[int, str]]]:
    """The map or list that begins with the first line, and the lines after it."""
    depth = lines[0][0]
    made: Any = [] if lines[0][1].startswith("- ") else {}
    while lines and lines[0][0] == depth:
        content = lines[0][1]
        assert content.startswith("- ") == isinstance(made, list), f"a list in a map: {content!r}"
        if isinstance(made, list):
            inner = [(depth + 2, content[2:]), *lines[1:]]
            value, lines = _node(inner) if _PAIR.fullmatch(content[2:]) else (_text(content[2:]), lines[1:])
            made.append(value)
            continue
        pair = _PAIR.fullmatch(content)
        assert pair is not None, f"neither a map nor a list: {content!r}"
        key, given = pair[1].strip('"'), pair[2]
        assert key not in made, f"{key} is there twice"
        lines = lines[1:]
        if given is not None:
            made[key] = _text(given)
        elif lines and lines[0][0] > depth:
            made[key], lines = _node(lines)
        else:
            made[key] = None
    assert not lines or lines[0][0] < depth, f"indented in between: {lines[0][1]!r}"
    return made, lines


def _text(given: str) -> str:
    if given.startswith('"'):
        assert re.fullmatch(r'"[^"\\\\]*"', given), given
        return given[1:-1]
    assert not re.match(r"[\[{&*!|>%@`'?,]|- ", given), f"not in the small part of YAML: {given!r}"
    assert ": " not in given, f"to be quoted: {given!r}"
    assert " #" not in given, f"to be quoted: {given!r}"
    return given


def test_the_reader_understands_the_small_part_and_refuses_the_rest() -> None:
    assert read('a:\n  - b: "1"\n    c: d e # h\n  - f\ng:\n') == {
        "a": [{"b": "1", "c": "d e"}, "f"],
        "g": None,
    }
    for wrong in (
        "a: [1]",
        "a: 1\na: 2",
        "a:\n  b: 1\n c: 2",
        "a: b: c",
        "a\n",
        "- a\nb: c",
        'a: "b" # c',
        "\ta: b",
    ):
        with pytest.raises(AssertionError):
            read(wrong)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_yaml_file_parses(path: Path) -> None:
    assert isinstance(read(path.read_text()), dict)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_another_reader_of_yaml_reads_the_same(path: Path) -> None:
    """It reads some texts as numbers and truth values; what they are written as is the same."""
    yaml = pytest.importorskip("yaml", reason="PyYAML comes with the extra docs")
    assert yaml.load(path.read_text(), yaml.BaseLoader) == _with_empty_texts(read(path.read_text()))


def _with_empty_texts(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_empty_texts(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_with_empty_texts(inner) for inner in value]
    return "" if value is None else value


def test_the_workflow_runs_what_we_run_with_actions_of_a_known_commit() -> None:
    """A tag can be moved to other code, which would run where releases are built; a commit cannot."""
    text = (ROOT / ".github/workflows/ci.yml").read_text()
    workflow = read(text)
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    assert {"run": ".ci/run"} in workflow["jobs"]["whole"]["steps"]
    used = [step["uses"] for step in steps if "uses" in step]
    assert all(re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", each) for each in used)
    assert all(re.search(rf"{each} # v\d+\.\d+\.\d+$", text, re.MULTILINE) for each in used)
    assert workflow["permissions"] == {"contents": "read"}
    assert all("timeout-minutes" in job for job in workflow["jobs"].values())


def test_the_run_and_the_workflow_name_files_and_versions_that_there_are() -> None:
    script = (ROOT / ".ci/run").read_text()
    named = {path.rstrip(".") for path in re.findall(r"\b(?:tests|tools|docs|requirements)/[\w./-]+", script)}
    assert len(named) > 15
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []
    extras = {extra for given in re.findall(r"'\.\[([\w,]+)\]'", script) for extra in given.split(",")}
    assert extras <= {*PROJECT["optional-dependencies"]}
    workflow = read((ROOT / ".github/workflows/ci.yml").read_text())
    versions = workflow["jobs"]["versions"]["strategy"]["matrix"]["python"]
    declared = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if ":: Python :: 3." in line]
    assert versions == declared


def test_the_hooks_are_the_tools_of_the_extra_dev() -> None:
    hooks = read((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    run = (ROOT / ".ci/run").read_text()
    assert {hook["id"] for hook in hooks} == {"ruff-check", "ruff-format", "mypy", "lint-imports"}
    assert all(hook["entry"].split()[0] in run for hook in hooks)


def test_the_citation_names_this_project_and_version() -> None:
    citation = read((ROOT / "CITATION.cff").read_text())
    assert citation["cff-version"] == "1.2.0"
    assert (citation["title"], citation["version"]) == (PROJECT["name"], privcov.__version__)
    assert citation["license"] == PROJECT["license"]
    assert [author["name"] for author in citation["authors"]] == [
        author["name"] for author in PROJECT["authors"]
    ]


def test_the_editor_is_told_the_line_length_that_ruff_asks_for() -> None:
    parser = configparser.ConfigParser()
    parser.read_string("[top]\n" + (ROOT / ".editorconfig").read_text())
    length = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["line-length"]
    assert int(parser["*.py"]["max_line_length"]) == length


def test_a_report_of_a_broken_promise_goes_to_the_forge_and_nowhere_else() -> None:
    text = (ROOT / "SECURITY.md").read_text()
    assert "Report a vulnerability" in text
    for page in ("SECURITY.md", "CODE_OF_CONDUCT.md", "CITATION.cff"):
        assert "@" not in (ROOT / page).read_text()


def test_the_quick_cells_of_bench_honesty_are_run_by_continuous_integration() -> None:
    """They are long tests, which no other stage runs."""
    run = (ROOT / ".ci/run").read_text().splitlines()
    assert any(
        "-m 'long and not slow'" in line and "tests/spec/models/test_honesty.py" in line for line in run
    )


def test_processes_that_tests_start_elsewhere_find_the_same_library(tmp_path):
    """A PYTHONPATH that says where from here found another privcov from there, or none."""
    asked = [sys.executable, "-c", "import privcov; print(privcov.__file__)"]
    found = subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert Path(found.strip()) == Path(privcov.__file__)
