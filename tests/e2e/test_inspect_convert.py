"""``privcov inspect`` and ``privcov convert``: files as people have them, read strictly, counted for their keeper."""

from __future__ import annotations

import csv
import io
import json
import os
import random
import stat
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import privcov as pc
import privcov.table.sources as sources_module
from privcov.audit.readers import bounded_rows
from privcov.cli import main
from privcov.errors import InputError
from privcov.schema import Schema
from privcov.steward import PRIVATE, convert, inspect

SCHEMA = """
ignore_extra = true
missing_values = ["-999", "?"]
[columns.age]
lower = 0
upper = 100
[columns.sex]
levels = ["F", "M"]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.toml").write_text(SCHEMA)
    return tmp_path


def people(count: int = 5_000) -> str:
    """A person each with a note of two lines; 53.6 years on average, give or take 20.8."""
    drawn = random.Random(1)
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(["age", "sex", "note"])
    for _ in range(count):
        writer.writerow(
            [round(min(100, max(0, drawn.gauss(53.6, 20.8)))), drawn.choice("FM"), 'said "no",\nthen left']
        )
    return text.getvalue()


def test_line_breaks_in_cells_are_told_by_inspect_and_read_by_convert(folder: Path) -> None:
    (folder / "people.csv").write_text(people(), newline="")
    schema = Schema.read("people.toml")
    seen = inspect("people.csv", schema=schema)
    assert (seen.records, seen.wrong_width, seen.strict_records) == (10_000, 10_000, 5_000)
    made = convert("people.csv", "people.parquet", schema=schema)
    assert (made.records, made.wrong_width, made.strict_records) == (5_000, 0, None)
    assert [(c.read, c.unreadable, c.missing, c.undeclared) for c in made.columns] == [(5_000, 0, 0, 0)] * 2
    ages = pq.read_table("people.parquet")["age"].to_numpy()
    expected = [int(row["age"]) for row in csv.DictReader(io.StringIO(people(), newline=""))]
    assert ages.tolist() == expected
    loss = pc.PureDP(epsilon=1, neighbours="replace-one")
    released = pc.release("people.parquet", schema=schema, loss=loss, expect_rows=5_000)
    # 5 standard errors of the noise of the mean: false alarms below 1e-5
    assert abs(released.mean()[0] - np.mean(expected)) < 2


SPARSE = """
missing = "zero-row"
missing_values = ["?"]
[columns.age]
lower = 0
upper = 100
[columns.sex]
levels = ["F", "M"]
[columns.pay]
lower = 0
upper = 9
missing = "midpoint"
[columns.seen]
lower = "2020-01-01"
upper = "2020-12-31"
feature = false
[derived]
double = "2 * age"
"""


def test_inspect_tells_how_many_records_a_release_would_leave_out(folder: Path) -> None:
    (folder / "people.toml").write_text(SPARSE)
    cells = [
        "age,sex,pay,seen",
        "1,F,1,2020-02-03",
        "2,x,?,?",
        "?,F,1,?",
        "3,?,1,2020-02-03",
        "old,M,1,?",
        "4,M",
        "",
    ]
    (folder / "people.csv").write_text("\n".join(cells))
    schema = Schema.read("people.toml")
    seen = inspect("people.csv", schema=schema)
    counted = int(np.count_nonzero(bounded_rows(folder / "people.csv", schema)[:, 0]))
    assert (seen.records, seen.complete) == (6, counted) == (6, 2)  # an undeclared level is no missing cell
    assert "Records without a missing cell: 2. A release leaves the others out." in seen.render().splitlines()
    assert "Most records lack a cell." in seen.render()
    (folder / "people.csv").write_text("\n".join([*cells[:3], ""]))
    assert "Most records lack a cell." not in inspect("people.csv", schema=schema).render()


def test_inspect_names_a_column_whose_every_cell_is_unlike_the_declaration(folder: Path) -> None:
    (folder / "people.csv").write_text('age,sex\n"1,5",f\n"2,5",m\n')
    schema = Schema.read("people.toml")
    assert "No cell is as declared: age, sex. Are numbers" in inspect("people.csv", schema=schema).render()
    assert "Dates" not in inspect("people.csv", schema=schema).render()
    dates = {"lower": "2020-01-01", "upper": "2025-01-01", "feature": False}
    dated = Schema.from_dict({"columns": {"day": dates}, "derived": {"y": "year(day)"}})
    (folder / "days.csv").write_text("day\n31.12.2024\n")
    assert "declared: day. Dates are read as 2024-12-31" in inspect("days.csv", schema=dated).render()
    (folder / "people.csv").write_text('age,sex\n"1,5",f\n2,M\n,\n')
    assert "No cell is as declared" not in inspect("people.csv", schema=schema).render()


def test_a_reading_report_counts_every_kind_of_cell(folder: Path) -> None:
    lines = [
        "age,sex,note",
        "12,F,a",
        "twelve,M,b",
        " ,f,c",
        "-999.0,?,d",
        "?,,e",
        "7",
        "8,F,g,h",
        '9,"M",i',
        "",
    ]
    (folder / "people.csv").write_text("\n".join(lines))
    seen = inspect("people.csv", schema=Schema.read("people.toml"))
    assert (seen.records, seen.wrong_width) == (8, 2)
    age, sex = seen.columns
    assert (age.read, age.unreadable, age.missing, age.undeclared) == (2, 1, 3, 0)
    assert (sex.read, sex.unreadable, sex.missing, sex.undeclared) == (3, 0, 2, 1)
    assert sum((age.read, age.unreadable, age.missing)) + seen.wrong_width == seen.records
    made = convert("people.csv", "people.parquet", schema=Schema.read("people.toml"))
    assert [(c.read, c.unreadable, c.missing, c.undeclared) for c in made.columns] == [
        (2, 1, 3, 0),
        (3, 0, 2, 1),
    ]
    again = inspect("people.parquet", schema=Schema.read("people.toml"))
    assert [(c.read, c.undeclared) for c in again.columns] == [
        (2, 0),
        (3, 1),
    ]  # what was unreadable is null now


DIALECTS = {
    "semicolons": ({"separator": ";", "decimal": ","}, "utf-8"),
    "tabs": ({"separator": "\t"}, "utf-8-sig"),
    "Latin-1": ({"separator": "|", "encoding": "latin-1", "quote": "'"}, "latin-1"),
    "UTF-16": ({"encoding": "utf-16"}, "utf-16"),
}


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("chunk", [7, 2**20])
def test_a_converted_file_gives_the_rows_of_the_file(
    name: str, chunk: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no cell holds a line break, a release of the file and of its conversion see the same integers."""
    monkeypatch.setattr(sources_module, "CHUNK_BYTES", chunk)
    words, encoding = DIALECTS[name]
    mark, quote = words.get("separator", ","), words.get("quote", '"')
    point = words.get("decimal", ".")
    columns = {"größe": {"lower": 0, "upper": 3}, "sex": {"levels": ["Mann", "Frau", "Übrige"]}}
    schema = Schema.from_dict({"columns": columns, "file": words, "missing": "zero-row"})
    cells = [f"1{point}5", "2", "x", "", f"{quote}1{point}75{quote}", "1e-1"]
    texts = ["Mann", f"{quote}Frau{quote}", " Übrige ", "?", "", f"{quote}a{mark}b{quote}"]
    lines = (
        [f"größe{mark}sex"] + [f"{left}{mark}{right}" for left in cells for right in texts] + ["7", "", ""]
    )
    (folder / "x.csv").write_bytes("\r\n".join(lines).encode(encoding))
    convert("x.csv", "x.parquet", schema=schema)
    rows = bounded_rows(folder / "x.parquet", schema)
    assert len(rows) == 37
    assert np.array_equal(
        rows, bounded_rows(folder / "x.csv", schema)[:-1]
    )  # but for a blank line at the end
    assert len(np.unique(rows, axis=0)) > 9  # the cells were read


BROKEN = {
    "a quote that is not closed": b'age,sex\n1,"F\n2,M\n',
    "a quote inside a cell": b'age,sex\n1,F\n2,M"M\n3,"F"\n',
    "text behind a closing quote": b'age,sex\n1,"F"x\n',
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_file_that_is_not_well_formed_is_refused_and_nothing_is_written(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "people.csv").write_bytes(BROKEN[name])
    assert main(["convert", "people.csv", "people.parquet", "--schema", "people.toml"]) == 2
    assert "E136" in capsys.readouterr().err
    assert sorted(path.name for path in folder.iterdir()) == ["people.csv", "people.toml"]


def test_the_report_is_marked_and_the_output_is_for_its_owner(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "people.csv").write_text(people(50), newline="")
    assert main(["convert", "people.csv", "people.parquet", "--schema", "people.toml"]) == 0
    said = capsys.readouterr().out
    assert said.startswith(PRIVATE)
    assert "50 records" in said
    assert stat.S_IMODE(os.stat("people.parquet").st_mode) == 0o600
    assert main(["inspect", "people.csv", "--schema", "people.toml", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["private"] == PRIVATE
    assert printed["strict_records"] == 50
    assert main(["convert", "people.csv", "people.parquet", "--schema", "people.toml"]) == 2  # already there
    assert main(["convert", "people.csv", "people.json", "--schema", "people.toml"]) == 2
    assert main(["convert", "people.parquet", "other.parquet", "--schema", "people.toml"]) == 2


def test_nothing_of_a_report_enters_a_release_or_a_ledger(folder: Path) -> None:
    """A release of a file with unreadable cells has the fields of one without, and the ledger the same columns."""
    (folder / "odd.csv").write_text("age,sex\n" + "x,f\n" * 30)
    (folder / "fine.csv").write_text("age,sex\n" + "5,F\n" * 30)
    schema, loss = Schema.read("people.toml"), pc.PureDP(epsilon=1, neighbours="replace-one")
    shapes = []
    for name in ("odd.csv", "fine.csv"):
        made = pc.release(name, schema=schema, loss=loss).to_dict()
        shapes.append((sorted(made), sorted(made["certificate"]), sorted(made["certificate"]["bounds"])))
    assert shapes[0] == shapes[1]


def test_archives_that_unpack_to_too_much_or_are_damaged_are_refused_before_payment(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import gzip

    monkeypatch.setattr(sources_module, "_ALWAYS_FINE", 2**16)
    monkeypatch.setattr(sources_module, "CHUNK_BYTES", 2**16)
    schema = Schema.read("people.toml")
    loss = pc.PureDP(epsilon=1, neighbours="replace-one")
    bomb = folder / "bomb.csv.gz"
    bomb.write_bytes(gzip.compress(b"age,sex\n" + b"0" * 2**23))
    with pytest.raises(InputError, match="E114"):
        pc.check(bomb, schema=schema, loss=loss)
    whole = gzip.compress(b"age,sex\n" + os.urandom(20_000).hex().encode())
    for damaged in (whole[:-9], whole[:40] + b"\0" * 40 + whole[80:], b"age,sex\n1,F\n"):
        bomb.write_bytes(damaged)
        with pytest.raises(InputError, match="E117"):
            pc.check(bomb, schema=schema, loss=loss)
    (folder / "bomb.csv.zst").write_bytes(b"age,sex\n1,F\n")
    with pytest.raises(InputError, match="E117"):
        pc.check(folder / "bomb.csv.zst", schema=schema, loss=loss)
