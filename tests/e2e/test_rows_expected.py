"""``release --rows N``: a table that has another number of records is refused before anything is paid."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import privcov as pc
from privcov.cli import main
from privcov.errors import InputError, ParameterError
from privcov.ledger import Ledger

SCHEMA = """
ignore_extra = true
[columns.age]
lower = 0
upper = 100
"""


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """500 people, each with a note that has a line break in it: every person is two lines."""
    path = tmp_path / "people.csv"
    path.write_text("age,note\n" + "".join(f'{20 + n % 60},"first\nsecond"\n' for n in range(500)))
    (tmp_path / "people.toml").write_text(SCHEMA)
    return path


def run(capsys: pytest.CaptureFixture[str], folder: Path, *words: str) -> tuple[int, str]:
    ledger = folder / "people.ledger"
    if not ledger.exists():
        Ledger.init(ledger, pc.PureDP(epsilon=3, neighbours="replace-one"))
    common = [
        "release",
        str(folder / "people.csv"),
        "--schema",
        str(folder / "people.toml"),
        "--epsilon",
        "1",
    ]
    code = main([*common, "--ledger", str(ledger), "-o", str(folder / "out.json"), *words])
    return code, capsys.readouterr().err


def test_line_breaks_in_cells_are_refused_where_the_number_of_people_is_said(
    notes: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = run(capsys, notes.parent, "--rows", "500")
    assert code == 2
    assert said.splitlines()[-1].startswith(
        "privcov: E135 the table has 1,000 records, but you expected 500."
    )
    assert "second" not in said
    assert not Ledger.open(notes.parent / "people.ledger").balance().account.spent["epsilon"]
    assert not (notes.parent / "out.json").exists()


def test_the_right_number_goes_through(notes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _ = run(capsys, notes.parent, "--rows", "1000")
    assert code == 0
    assert pc.load(notes.parent / "out.json").rows == 1_000


def test_a_private_number_of_rows_cannot_be_expected(notes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = run(capsys, notes.parent, "--rows", "1000", "--neighbours", "add-remove")
    assert (code, said[:14]) == (2, "privcov: E216 ")


def test_every_input_that_can_be_counted_is(notes: Path, tmp_path: Path) -> None:
    frame = pd.DataFrame({"age": [1.0, 2.0, 3.0]})
    frame.to_parquet(tmp_path / "a.parquet")
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_csv(tmp_path / "a.csv.gz", index=False)
    (tmp_path / "b.csv").write_text("age\n1\n\n3")
    schema = pc.Schema.read(tmp_path / "people.toml")
    loss = pc.PureDP(epsilon=1, neighbours="replace-one")
    one = [
        frame,
        frame.to_numpy(),
        *(tmp_path / name for name in ("a.parquet", "a.csv", "a.csv.gz", "b.csv")),
    ]
    for data in one:
        pc.check(data, schema=schema, loss=loss, expect_rows=3)
        with pytest.raises(InputError, match="E135"):
            pc.check(data, schema=schema, loss=loss, expect_rows=4)
    many = [tmp_path / "a.parquet", tmp_path / "b.csv"]
    assert pc.check(many, schema=schema, loss=loss, expect_rows=6).columns == 1
    with pytest.raises(ParameterError, match="E216"):
        pc.check(frame, schema=schema, loss=loss, expect_rows=0)
