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
    "publish/check.py",  # opened before payment: names, types and sizes; and again under a privately chosen bound
    "publish/paying.py",
    "publish/surrogate.py",  # a table that its owner declares public
    "frame/radii.py",  # called within the sequence, by choices that are paid for
    "frame/counting.py",
    "frame/shaping.py",  # called within the sequence, by rounds that are paid for
    "unbounded/rows.py",  # called within the sequence by estimates
    "steward.py",  # for the eyes of the data's keeper
    "audit/readers.py",  # copies of its own making
    "estimators/rows.py",  # new rows, for predictions that their owner sees; what is fitted goes through the bridge
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
    assert packages <= {"table", "summing", "frame", "unbounded", "steward.py", "audit", "estimators"}


@pytest.mark.parametrize(
    "line",
    ["ledger.pay(order)", "from privcov.table import open_table", "x = pay(ledger, order, randomness=r)"],
)
def test_another_bridge_would_be_seen(tmp_path, line):
    """Canary: what the tests above look for, inside a function too."""
    path = tmp_path / "other.py"
    path.write_text(f"def hidden():\n    {line}\n")
    assert uses(path) & {".pay()", "open_table", "pay()"}


def callers(package: str, word: str) -> set[str]:
    """The functions of a package that call something of this name."""
    return {
        node.name
        for path in (SOURCE / package).glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
        and any(
            word == getattr(call.func, "id", getattr(call.func, "attr", None))
            for call in ast.walk(node)
            if isinstance(call, ast.Call)
        )
    }


def test_what_an_estimator_is_fitted_to_is_read_by_the_bridge_alone():
    assert callers("estimators", "features_of") == {"_new_rows"}
    asking = callers("estimators", "_new_rows")
    assert asking >= {"predict", "transform"}
    assert not any("fit" in name or "publish" in name for name in asking)
