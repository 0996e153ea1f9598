"""Whatever is typed into a field: it is answered, or refused in words, and soon; nothing about a table is kept."""

from __future__ import annotations

import time

import pytest

from privcov.web.simulating import Simulator

QUICKLY = ["\ud800", "1e-300", None]
SLOWLY = ["a\0b", "1e999999999", "9" * 900, "-1", "1/0", "1e-5000", "(" * 900, [], {}, 3]
NUMBERS = [("loss", word) for word in ("kind", "epsilon", "delta", "rho", "neighbours")]
FIELDS = [
    "data",
    "ledger",
    "output",
    "rows",
    "word",
    "one",
    "formula",
    "release",
    "request",
    "purpose",
    "width",
]


@pytest.fixture
def whole(served, order, monkeypatch):
    """Every field that any question has."""
    monkeypatch.setattr(Simulator, "want", lambda self, tasks: None)  # nothing here waits for it
    (served.folder / "people.release.json").write_text("{}")
    more = {"output": "new.release.json", "rows": "300", "word": "mean", "one": "age", "request": "1" * 32}
    return {**order, **more, "formula": "income ~ age", "release": "people.release.json", "chart": False}


def answered(served, name, question):
    began = time.process_time()
    reply = served.ask(name, **question)
    assert reply.status in (200, 409, 422), (name, question, reply.body)
    assert reply.status == 200 or all(error["text"] for error in reply.json["errors"])
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    "value",
    [*QUICKLY, *(pytest.param(value, marks=pytest.mark.slow) for value in SLOWLY)],
    ids=lambda value: repr(value)[:20],
)
def test_any_value_in_any_field_is_refused_in_words(served, whole, value):
    for name in ("columns", "quote", "plan", "regression", "ledger", "job", "result", "fit", "download"):
        for field in FIELDS:
            answered(served, name, {**whole, field: value})
    for part, word in NUMBERS:
        for kind in ("pure", "approximate", "zcdp"):
            loss = {"epsilon": "1", "delta": "0.000001", "rho": "0.1", "neighbours": "replace-one"}
            changed = {**whole, part: {**loss, "kind": kind, word: value}}
            answered(served, "quote", changed)
            answered(served, "plan", changed)
    for place, column in enumerate(whole["draft"]["columns"]):
        for field in column:
            columns = [dict(one) for one in whole["draft"]["columns"]]
            columns[place][field] = value
            answered(served, "schema/check", {**whole, "draft": {**whole["draft"], "columns": columns}})


def test_after_a_release_the_directory_holds_what_was_asked_for_and_nothing_else(served, order):
    before = {path.name for path in served.folder.iterdir()}
    served.ask("release", request="1" * 32, **order)
    assert served.finished("1" * 32)["state"] == "done"
    served.ask("result", release="people.release.json")
    after = {path.name for path in served.folder.iterdir()} - before
    assert after - {"people.ledger-wal", "people.ledger-shm"} == {"people.release.json"}
