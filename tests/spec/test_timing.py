"""Constant timing: the same integers, by the same instructions whatever one row holds; and the bench that measures it.

Deterministic: instructions are counted, nothing is timed, so there are no false alarms. What is counted is what runs in
Python, of privcov, NumPy and pyarrow; what their compiled code does for a cell is not seen here but by
``privcov bench timing``.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
import pytest

import privcov.table.csv as csv_module
from privcov.cli import main
from privcov.schema import Schema
from privcov.summing.sum import sum_rows
from privcov.table import open_table
from privcov_lab.bench import timing
from privcov_lab.bench.gram import summed
from privcov_lab.bench.timing import ODD, READERS, Odd, area, area_error, chance, lines_of

ROWS = 60
_WATCHED = tuple(f"{os.sep}{name}{os.sep}" for name in ("privcov", "numpy", "pyarrow"))
MORE = {
    "stray CR": Odd(line=b"0.250000,0.5\r,1.5,1"),
    "CRLF": Odd(line=b"0.250000,0.5,1.5,1\r"),
    "word for a level": Odd(line=b"0.250000,0.5,1.5,true", levels=True),
    "blank line": Odd(line=b""),
    "plus sign": Odd(line=b"0.250000,+5,1.5,1"),
    "beyond a double": Odd(line=b"0.250000,1e999,1.5,1"),
    "code as text": Odd(line=b"0.250000,-9.0,1.5,1", codes=True),
    "nothing but quotes": Odd(line=b'"","","",""'),
    "null byte": Odd(line=b"0.250000,\0,1.5,1"),
}
SHORT = {name: odd for name, odd in (ODD | MORE).items() if len(odd.line) < 10_000}


def constant(schema: Schema) -> Schema:
    return replace(schema, file=replace(schema.file, timing="constant"))


def schemas(odd: Odd) -> tuple[Schema, Schema]:
    """The schema of the bench, and one with every rule for missing cells."""
    given = odd.schema
    a, b, c, d = given["columns"].values()
    columns = {
        "a": {**a, "missing": "indicator"},
        "b": {**b, "missing": "zero-row"},
        "c": {**c, "fill": 1},
        "d": d,
    }
    return Schema.from_dict(given), Schema.from_dict({**given, "columns": columns})


def gram_of(path: Path, schema: Schema) -> list[int]:
    from privcov.schema.grid import Grid

    found = sum_rows(open_table(path, schema), schema, Grid.of(schema)).reveal_to_mechanism()
    return [int(entry) for entry in found]


def instructions(work: Any) -> Counter[tuple[CodeType, int]]:
    """How often each instruction of privcov's, NumPy's and pyarrow's Python code is executed."""
    found: Counter[tuple[CodeType, int]] = Counter()

    def within(frame: FrameType, event: str, _: Any) -> Any:
        if event == "opcode":
            found[frame.f_code, frame.f_lasti] += 1
        return within

    def entered(frame: FrameType, event: str, _: Any) -> Any:
        if not any(name in frame.f_code.co_filename for name in _WATCHED):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return within

    before = sys.gettrace()
    # Python 3.12 tells of instructions only if somebody had asked for them before settrace.
    sys._getframe().f_trace_opcodes = True
    sys.settrace(entered)
    try:
        work()
    finally:
        sys.settrace(before)
    return found


def differing(one: Counter[tuple[CodeType, int]], other: Counter[tuple[CodeType, int]]) -> set[str]:
    """The functions in which two runs differ."""
    return {
        f"{Path(code.co_filename).name}:{code.co_qualname}"
        for (code, at) in one.keys() | other.keys()
        if one[code, at] != other[code, at]
    }


@pytest.mark.parametrize(
    ("name", "packed"), [*((name, False) for name in SHORT), ("text in a number cell", True)]
)
def test_constant_timing_executes_the_same_instructions_whatever_one_row_holds(
    name: str, packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_module, "SMALL", 900)  # several runs
    odd, counted = SHORT[name], []
    for schema in map(constant, schemas(odd)):
        for kind, data in zip(("ordinary", "odd"), lines_of(odd, ROWS), strict=True):
            path = tmp_path / (f"{kind}.csv.gz" if packed else f"{kind}.csv")
            path.write_bytes(gzip.compress(data) if packed else data)
            summed(path, schema)  # what is done once in a process is done
            counted.append(instructions(lambda path=path, schema=schema: summed(path, schema)))
        assert sum(counted[0].values()) > 2_000
        assert not differing(*counted[-2:]), differing(*counted[-2:])


def test_the_count_of_instructions_tells_an_odd_row_where_timing_is_quick(tmp_path: Path) -> None:
    """The test above can fail: by default most odd rows take another way."""
    told = []
    for name, odd in SHORT.items():
        pair = READERS["CSV"](odd, ROWS, tmp_path)
        assert pair is not None
        counted = []
        for kind in (False, True):
            pair.read(kind)
            counted.append(instructions(lambda pair=pair, kind=kind: pair.read(kind)))
        told += [name] if differing(*counted) else []
    assert {"text in a number cell", "quoted cell", "short line", "missing code", "NaN"} <= set(told)


@pytest.mark.parametrize("reader", ["NumPy", "Parquet"])
def test_constant_timing_bounds_typed_tables_by_the_same_instructions(reader: str, tmp_path: Path) -> None:
    for odd in ODD.values():
        pair = READERS[reader](odd, ROWS, tmp_path)
        if pair is None:
            continue
        schema, counted = constant(pair.schema), []
        for data in (pair.ordinary, pair.odd):
            summed(data, schema)
            counted.append(instructions(lambda data=data, schema=schema: summed(data, schema)))
        assert not differing(*counted), differing(*counted)


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_constant_timing_gives_the_same_integers_on_a_hostile_file(end: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    for about in (ODD["unknown level"], ODD["missing code"], ODD["NaN"]):
        lines = [b"a,b,c,d", *[odd.line for odd in (ODD | MORE).values()]] + [
            b"1,2,3,1",
            b"0.5,-9,0.1,2",
        ] * 30
        path.write_bytes(end.join(lines) + end)
        for schema in schemas(about):
            assert gram_of(path, constant(schema)) == gram_of(path, schema)


def test_the_lines_of_a_pair_have_as_many_bytes_and_one_differs() -> None:
    for name, odd in (ODD | MORE).items():
        ordinary, changed = (data.splitlines() for data in lines_of(odd, 50))
        assert abs(sum(map(len, ordinary)) - sum(map(len, changed))) <= (
            20 if name == "more than 1 MiB" else 0
        ) + (name == "CRLF" or name == "stray CR"), name
        if b"\r" in odd.line:
            continue
        places = [place for place, (a, b) in enumerate(zip(ordinary, changed, strict=True)) if a != b]
        assert places[0] == 26
        assert set(places[1:]) <= {50}  # the last line makes up for a shorter one
        numbers = [[float(cell) for cell in lines[-1].split(b",")] for lines in (ordinary, changed)]
        assert numbers[0] == numbers[1] == [0.5, 0.5, 1.5, 1.0]


def test_the_area_under_the_curve_is_that_of_a_list_of_all_pairs() -> None:
    drawn = np.random.default_rng(1)
    ordinary, odd = drawn.integers(0, 9, 30).tolist(), (drawn.integers(0, 9, 20) + 1).tolist()
    slow = sum((y > x) + (y == x) / 2 for x in ordinary for y in odd) / 600
    assert area(ordinary, odd) == pytest.approx(slow)
    areas = [area(*drawn.normal(size=(2, 25))) for _ in range(2_000)]
    # The standard deviation of 2,000 areas errs by 1.6 %: 8 % is five of that.
    assert np.std(areas) == pytest.approx(chance(25), rel=0.08)
    errors = [area_error(*drawn.normal(size=(2, 25))) for _ in range(500)]
    assert np.mean(errors) == pytest.approx(chance(25), rel=0.08)
    assert area_error([1, 2], [3, 4]) == 0


def test_the_bench_prints_an_area_for_every_reader_and_odd_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["bench", "timing", "--quick", "--rows", "60", "--runs", "2"]
    assert main([*given, "--reader", "NumPy", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    held = [name for name, odd in ODD.items() if odd.cells is not None]
    assert list(found["readers"]["NumPy"]) == held
    monkeypatch.setattr(timing, "ODD", {"quoted cell": ODD["quoted cell"]})
    found["readers"]["CSV"] = timing._times("CSV", 60, 2, str(tmp_path))
    monkeypatch.undo()
    for measured in found["readers"].values():
        for odd in measured.values():
            assert 0 <= odd["cpu_seconds"]["area"] <= 1
            assert odd["cpu_seconds"]["ordinary"] > 0
    shown = timing.render(found).splitlines()
    assert shown[3].split() == ["CPU", "time", "NumPy", "CSV"]
    tables = [line.split()[2:] for line in shown if line.startswith("quoted cell")]
    assert tables[0][0] == "·"
    assert 0 <= float(tables[0][1]) <= 1
    assert len(tables) == 1 + (sys.platform == "linux")
