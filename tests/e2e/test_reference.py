"""The generated parts of the manual, which are committed: they say what the source says."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import click
import pytest

import privcov
from privcov import cli

SITE = Path(__file__).parents[2] / "docs" / "site"
sys.path.insert(0, str(SITE))

import described  # noqa: E402
import generated  # noqa: E402
import prose  # noqa: E402

PAGES = {
    str(page.relative_to(generated.DOCS)): page.read_text(encoding="utf-8") for page in generated.pages()
}


@pytest.mark.parametrize("page", PAGES)
def test_a_generated_part_is_what_the_source_says_now(page):
    assert not generated.stale(PAGES[page]), "run .venv/bin/python docs/site/generated.py"


@pytest.mark.parametrize("page", ["reference/mechanisms.md", "decisions/README.md"])
def test_a_page_with_another_word_is_stale_and_can_be_refreshed(page):
    head, tail = PAGES[page].split(" -->\n", 1)
    spoilt = f"{head} -->\n\nplanted {tail}"
    assert generated.stale(spoilt)
    assert generated.refreshed(spoilt).split() == PAGES[page].split()


def test_the_reference_can_be_read_without_building_anything():
    """Every public name with its signature, every command with its options, in the committed text."""
    names, commands = PAGES["reference/python.md"], PAGES["reference/commands.md"]
    for name in privcov.__all__:
        assert name == "__version__" or f"\nprivcov.{name}" in names, name
    for name, parameter in inspect.signature(privcov.release).parameters.items():
        assert name in names, parameter
    context = click.Context(cli.privcov)
    for name in cli.privcov.list_commands(context):
        command = cli.privcov.get_command(context, name)
        assert f"\n## privcov {name}\n" in commands
        options = [each for one in command.params for each in one.opts if each.startswith("-")]
        assert all(option in commands for option in options), name


@pytest.mark.parametrize(
    ("page", "owner", "method"),
    [
        ("reference/modules.md", "## privcov.models.ols", "predict(rows: Any)"),
        ("reference/modules.md", "## privcov.models.ols", "t_test("),
        ("reference/python.md", "## PrivateRidge", "fit(X: Any"),
        ("reference/python.md", "## PrivateRidge", "predict(X: Any)"),
    ],
)
def test_a_method_that_a_class_has_from_another_stands_with_it(page, owner, method):
    below = PAGES[page].partition(f"\n{owner}\n")[2].partition("\n## ")[0]
    assert f"\n* `{method}" in below


@pytest.mark.parametrize("section", sorted(page.name for page in generated.DOCS.iterdir() if page.is_dir()))
def test_no_page_has_spoilt_mathematics_or_names_a_page_without_a_link(section):
    """As the site's build says; here also where Sphinx is not installed."""
    for page in (generated.DOCS / section).rglob("*.md"):
        if "_build" not in page.parts:
            assert list(prose.faults(page.read_text(encoding="utf-8"), page)) == [], page.name


@pytest.mark.parametrize(
    "text",
    [
        "Both ‖D‖_* ≤ ‖P‖_* and more.",
        "The norms ‖·‖_F, ‖·‖_2 and ‖·‖_* of a matrix.",
        "Here 2*3*4 is meant.",
        "See sensitivity.md for it.",
    ],
)
def test_a_fault_in_running_text_is_found(text):
    assert len(list(prose.faults(text, generated.DOCS / "proofs" / "planted.md"))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "*Free trace.* An *important* word (*indeed*), **bold**.",
        "Both $`‖D‖_* ≤ ‖P‖_*`$ and ‖D‖_F.",
        "See [sensitivity](sensitivity.md), `tests/a.py` and `docs/proofs/` for it.",
        "```math\n‖D‖_* ≤ ‖P‖_*\n```",
    ],
)
def test_running_text_as_it_should_be_has_no_fault(text):
    assert list(prose.faults(text, generated.DOCS / "proofs" / "planted.md")) == []


def test_what_a_function_returns_is_described_and_where_it_lives_is_found():
    listed = {f"{module}.{name}" for module, names in described.more().items() for name in names}
    for name in ("Fit", "RidgeFit", "PCAFit", "Plan", "Certificate", "Verdict", "GaussianEstimate"):
        assert any(each.endswith(f".{name}") for each in listed), name


def test_a_guide_that_names_what_is_not_there_is_found(tmp_path, monkeypatch):
    (tmp_path / "do").mkdir()
    (tmp_path / "do" / "a.md").write_text("Use `privcov.nothing.at_all` for it.", encoding="utf-8")
    monkeypatch.setattr(described, "DOCS", tmp_path)
    with pytest.raises(LookupError, match=r"do/a\.md names privcov\.nothing\.at_all"):
        described.more()


@pytest.mark.parametrize(
    ("docstring", "text"),
    [
        ("Half of ``x`` * 2, |y| < 3.", r"Half of `x` \* 2, |y| \< 3."),
        ("Proof: docs/proofs/laplace.md#one.", "Proof: [laplace](../proofs/laplace.md#one)."),
        ("Proof: ``docs/proofs/laplace.md``.", "Proof: [laplace](../proofs/laplace.md)."),
        ("A.\n\n>>> 1 + 1\n2\n", "A.\n\n```pycon\n>>> 1 + 1\n2\n```"),
        ("A.\n\n    drawn\n      so\n", "A.\n\n```text\ndrawn\n  so\n```"),
        (
            "A.\n\nParameters\n----------\nx : float\n    How far,\n    in metres.\ny\n    Other.\n\n"
            "Raises\n------\nE\n    Never.",
            "A.\n\n**Parameters**\n\n* `x` : float. How far, in metres.\n* `y`. Other.\n\n**Raises**\n\n* `E`. Never.",
        ),
    ],
)
def test_a_docstring_becomes_markdown(docstring, text):
    assert described.markdown(docstring) == text
