"""There is one bridge from rows to a public result: nothing but ``publish`` pays a ledger or begins to read rows."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

import privcov

SOURCE = Path(privcov.__file__).parent
PAYS = {"publish/paying.py", "ledger/__init__.py"}
OPENS = {
    "publish/check.py",  # opened before payment: names, types and sizes
    "publish/paying.py",
    "publish/release.py",  # opened again under a privately chosen bound
    "publish/surrogate.py",  # a table that its owner declares public
    "frame/radii.py",  # called within the sequence, by choices that are paid for
    "frame/counting.py",
    "frame/shaping.py",  # called within the sequence, by rounds that are paid for
    "unbounded/rows.py",  # called within the sequence by estimates
    "steward.py",  # for the eyes of the data's keeper
    "audit/readers.py",  # copies of its own making
    "table/__init__.py",
}
GUARDED = {"publish/sequence.py", "publish/release.py", "publish/row_norm.py", "unbounded/entry.py"}


@cache
def uses(path: Path) -> set[str]:
    """The names that a file imports, calls or takes from an object."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute):
                found.add(f".{node.func.attr}()")
            elif isinstance(node.func, ast.Name):
                found.add(f"{node.func.id}()")
    return found


def files_with(word: str) -> set[str]:
    return {str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py") if word in uses(path)}


def test_a_ledger_is_paid_in_one_place():
    assert files_with(".pay()") <= PAYS
    assert files_with("pay()") == {"publish/sequence.py"}


def test_tables_are_opened_by_the_bridge_and_by_what_publishes_nothing():
    assert files_with("open_table") == OPENS


def test_everything_that_spends_goes_through_the_guarded_sequence():
    assert files_with("guarded()") == GUARDED - {"publish/sequence.py"}


def test_what_reads_blocks_is_below_the_bridge():
    packages = {path.split("/")[0] for path in files_with(".blocks()")}
    assert packages <= {"table", "summing", "frame", "unbounded", "steward.py", "audit"}


@pytest.mark.parametrize(
    "line",
    ["ledger.pay(order)", "from privcov.table import open_table", "x = pay(ledger, order, randomness=r)"],
)
def test_another_bridge_would_be_seen(tmp_path, line):
    """Canary: what the tests above look for, inside a function too."""
    path = tmp_path / "other.py"
    path.write_text(f"def hidden():\n    {line}\n")
    assert uses(path) & {".pay()", "open_table", "pay()"}
