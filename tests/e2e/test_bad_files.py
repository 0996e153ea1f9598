"""Bad input of files and their schemas: one line, exit code 2, nothing paid, nothing written."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

import privcov as pc
from privcov.cli import main
from privcov.ledger import Ledger

AGE = "[columns.age]\nlower = 0\nupper = 100\n"
SEX = '[columns.sex]\nlevels = ["F", "M"]\n'


def plain(folder: Path) -> str:
    (folder / "people.csv").write_text("age,sex\n30,F\n41,M\n")
    return "people.csv"


def bomb(folder: Path) -> str:
    (folder / "people.csv.gz").write_bytes(gzip.compress(b"age,sex\n" + b"0" * (70 * 2**20)))
    return "people.csv.gz"


def cut_off(folder: Path) -> str:
    (folder / "people.csv.gz").write_bytes(gzip.compress(b"age,sex\n30,F\n" * 500)[:-12])
    return "people.csv.gz"


def macintosh(folder: Path) -> str:
    (folder / "people.csv").write_bytes(b"age,sex\r30,F\r41,M\r")
    return "people.csv"


def utf16(folder: Path) -> str:
    (folder / "people.csv").write_bytes("age,sex\n30,F\n".encode("utf-16"))
    return "people.csv"


BAD: dict[str, tuple[str, str, Callable[[Path], str], tuple[str, ...]]] = {
    "an unknown dialect word": ("E140", AGE + SEX + '[file]\nmark = ";"\n', plain, ()),
    "an unknown separator": ("E140", AGE + SEX + '[file]\nseparator = "#"\n', plain, ()),
    "one mark, two meanings": ("E140", AGE + SEX + '[file]\ndecimal = ","\nthousands = ","\n', plain, ()),
    "a number for a word": ("E140", AGE + SEX + "[file]\nseparator = 5\n", plain, ()),
    "another separator": ("E102", AGE + SEX + '[file]\nseparator = ";"\n', plain, ()),
    "a fill outside its bounds": ("E144", AGE + "fill = 120\n" + SEX, plain, ()),
    "a fill that is no level": ("E144", AGE + SEX + 'fill = "X"\n', plain, ()),
    "a missing code that is a level": ("E142", AGE + SEX + 'missing_values = ["F"]\n', plain, ()),
    "a rule and a fill": ("E145", AGE + 'missing = "midpoint"\nfill = 3\n' + SEX, plain, ()),
    "the wrong number of rows": ("E135", AGE + SEX, plain, ("--rows", "3")),
    "a private number of rows": (
        "E216",
        "max_rows_per_person = 3\n" + AGE + SEX,
        plain,
        ("--rows", "2"),
    ),
    "an archive that unpacks to too much": ("E114", AGE + SEX, bomb, ()),
    "an archive that is cut off": ("E117", AGE + SEX, cut_off, ()),
    "line ends that are not declared": ("E134", AGE + SEX, macintosh, ()),
    "an encoding that is not declared": ("E105", AGE + SEX, utf16, ()),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line_and_costs_nothing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code, schema, make, more = BAD[name]
    data = make(tmp_path)
    Path("people.toml").write_text(schema)
    book = Ledger.init("people.ledger", pc.PureDP(epsilon=3, neighbours="replace-one"))
    order = ["release", data, "--schema", "people.toml", "--epsilon", "1", "--neighbours", "replace-one"]
    assert main([*order, "--ledger", "people.ledger", "-o", "out.json", *more]) == 2
    out, said = capsys.readouterr()
    assert out == ""
    assert said.startswith(f"privcov: {code} ")
    assert said.count("\n") == 1
    assert not any(book.balance().account.spent.values())
    assert not Path("out.json").exists()
