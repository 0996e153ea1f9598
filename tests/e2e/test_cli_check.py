"""``privcov check``: the refusals of ``release`` in the same words, without its payment."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import privcov as pc
from privcov.cli import main
from privcov.ledger import Ledger
from privcov.table.base import Table

SCHEMA = '[columns.age]\nlower = 0\nupper = 100\n[columns.sex]\nlevels = ["F", "M"]\n'


def run(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture
def people(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text("age,sex\n30,F\n41,M\n55,F\n")
    (tmp_path / "people.toml").write_text(SCHEMA)
    return tmp_path


def opened(where, budget=None):
    loss = budget or pc.PureDP(epsilon=3, neighbours="replace-one")
    return Ledger.init(where, loss)


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_it_tells_the_price_and_pays_nothing(people, capsys, monkeypatch):
    opened("a.ledger")
    before = digest(people / "a.ledger"), Ledger.open("a.ledger").balance()
    monkeypatch.setattr(Table, "blocks", lambda self: pytest.fail("a row was read"))
    order = (
        "people.csv",
        "--schema",
        "people.toml",
        "--epsilon",
        "1",
        "--ledger",
        "a.ledger",
        "-o",
        "x.json",
    )
    code, out, _ = run(capsys, "check", *order)
    assert code == 0
    assert "Mechanism: symmetric-wishart. It can promise pure differential privacy, epsilon = 1" in out
    assert "would cost ε = 1; the ledger would have ε = 2 left" in out
    assert out.endswith("Nothing was paid, no noise was drawn and no row was read.\n")
    assert (digest(people / "a.ledger"), Ledger.open("a.ledger").balance()) == before
    assert not (people / "x.json").exists()
    monkeypatch.undo()
    monkeypatch.chdir(people)
    assert run(capsys, "release", *order)[0] == 0
    assert Ledger.open("a.ledger").left == {"epsilon": 2}


REFUSED = {
    "no such file": ["nobody.csv", "--epsilon", "1"],
    "too much": ["people.csv", "--epsilon", "4"],
    "no promise": ["people.csv", "--rho", "0.1", "--mechanism", "frobenius"],
    "no mechanism": ["people.csv", "--epsilon", "1", "--mechanism", "magic"],
    "no option": ["people.csv", "--epsilon", "1", "--mechanism", "gaussian", "--option", "colour=red"],
    "not an option of a mechanism": ["people.csv", "--epsilon", "1", "--option", "randomness=0"],
    "other columns": ["other.csv", "--epsilon", "1"],
    "no engine": ["people.csv", "--epsilon", "1", "--engine", "abacus"],
    "no scheduler": ["people.csv", "--epsilon", "1", "--scheduler", "tcp://127.0.0.1:1"],
    "no output": ["people.csv", "--epsilon", "1", "-o", "missing/x.json"],
    "paid already": ["people.csv", "--epsilon", "1", "--request-id", "once"],
    "not a share": ["people.csv", "--epsilon", "1", "--row-norm", "private", "--row-norm-share", "2"],
}


@pytest.mark.parametrize("order", REFUSED.values(), ids=REFUSED)
def test_what_release_refuses_it_refuses_in_the_same_words(people, order, capsys):
    opened("a.ledger")
    (people / "other.csv").write_text("age,height\n1,2\n")
    words = [*order, "--schema", "people.toml", "--ledger", "a.ledger"]
    first = ["--request-id", "once", "-o", "first.json"]
    assert run(capsys, "release", "people.csv", "--epsilon", "0.5", *words[-4:], *first)[0] == 0
    before = Ledger.open("a.ledger").balance()
    checked, released = run(capsys, "check", *words), run(capsys, "release", *words)
    assert checked[0] in (2, 3)
    assert checked[0] == released[0]
    assert checked[2] == released[2].replace("privcov release --help", "privcov check --help")
    assert Ledger.open("a.ledger").balance() == before


def test_a_file_that_only_reading_would_find_damaged_passes(people, capsys):
    """Nothing of a row is looked at: that this would fail is for the payment to find out."""
    path = people / "numbers.parquet"
    pq.write_table(
        pa.table({"age": np.arange(5_000.0), "sex": ["F", "M"] * 2_500}), path, use_dictionary=False
    )
    content = bytearray(path.read_bytes())
    at = pq.ParquetFile(path).metadata.row_group(0).column(0).data_page_offset
    content[at : at + 3_000] = b"\xff" * 3_000
    path.write_bytes(content)
    order = (path, "--schema", "people.toml", "--epsilon", "1")
    assert run(capsys, "check", *order)[0] == 0
    code, _, error = run(capsys, "release", *order, "-o", "x.json")
    assert code == 2
    assert "E115" in error


def test_for_programs(people, capsys):
    opened("z.ledger", pc.ZCDP(rho="0.5", neighbours="add-remove"))
    order = ("people.csv", "--schema", "people.toml", "--rho", "0.125", "--neighbours", "add-remove")
    code, out, _ = run(capsys, "check", *order, "--ledger", "z.ledger", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["loss"] == {"kind": "zcdp", "rho": "1/8"}
    assert (found["price"]["rho"], found["left"]["rho"]) == ("1/8", "3/8")
    assert (found["columns"], found["dimension"]) == (2, 4)
    found = pc.check(
        "people.csv",
        schema=pc.Schema.read("people.toml"),
        loss=pc.PureDP(epsilon=1, neighbours="replace-one"),
    )
    assert found.price is None
