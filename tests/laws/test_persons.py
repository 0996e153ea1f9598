"""The law of persons: what is kept or made of a person's rows is a function of those rows alone, however they come.

Each table has a column ``who``, the person's own number, so that rows that come out say whose they are. A slow
reference reads the rule of docs/proofs/persons.md one row at a time, in whole numbers and fractions.
"""

from __future__ import annotations

import gzip
import hashlib
import math
import struct
from collections import Counter, defaultdict
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privcov as pc
from privcov.errors import InputError, InternalError
from privcov.table import open_table, persons, shuffling
from privcov.table.base import Table
from privcov.table.fragments import Arrived, bundled
from privcov.table.shuffling import Joined, spread

MOST = 3
COLUMNS = {
    "who": {"lower": 0, "upper": 50},
    "x": {"lower": -1, "upper": 3},
    "s": {"levels": ["a", "b"]},
}
RULES = {
    "rows": {"max_rows_per_person": MOST},
    "mean": {"per_person": "mean"},
    "sum": {"per_person": "sum"},
}
WORD = 2**64


def schema_of(rule: str = "rows") -> pc.Schema:
    return pc.Schema.from_dict({"columns": COLUMNS, "person": "id", **RULES[rule]})


def read(data: object, rule: str = "rows") -> Counter[tuple[float, ...]]:
    """The rows that a release would sum, as a multiset; NaN as a value that equals itself."""
    blocks = [np.array(list(block)).T for block in open_table(data, schema_of(rule)).blocks()]
    rows = np.concatenate([np.zeros((0, len(COLUMNS))), *blocks])
    return Counter(map(tuple, np.where(np.isnan(rows), -99, rows).tolist()))


def frame(rows: list[tuple[object, ...]]) -> pa.Table:
    kinds = [pa.string(), pa.float64(), pa.float64(), pa.string()]
    columns = [pa.array([row[i] for row in rows], kind) for i, kind in enumerate(kinds)]
    return pa.table(columns, names=["id", "who", "x", "s"])


# --- the rule, one row at a time ----------------------------------------------------------------------------------


def mixed(word: int) -> int:
    word = (word + 0x9E3779B97F4A7C15) % WORD
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB % WORD
    return word ^ (word >> 31)


def place_in_order(person: bytes, cells: list[float]) -> int:
    key = int.from_bytes(hashlib.blake2b(b"privcov/persons/1", digest_size=8).digest(), "little")
    found = mixed(key ^ len(person))
    for start in range(0, len(person), 8):
        found = mixed(found ^ int.from_bytes(person[start : start + 8].ljust(8, b"\0"), "little"))
    for cell in cells:
        found = mixed(found ^ struct.unpack("<Q", struct.pack("<d", cell))[0])
    return found


def reference(rows: list[tuple[object, ...]], rule: str) -> Counter[tuple[float, ...]]:
    by_person: dict[bytes, list[list[float]]] = defaultdict(list)
    for person, *cells in rows:
        text = "" if person is None else str(person).strip(" \t\r\n\v\f")
        if text:
            by_person[text.encode()].append([*map(number, cells[:2]), level(cells[2])])
    made = []
    for person, own in by_person.items():
        if rule == "rows":
            made += sorted(own, key=lambda cells: place_in_order(person, cells))[:MOST]
        else:
            made.append([*(joined(own, i, rule) for i in (0, 1)), most_frequent([cells[2] for cells in own])])
    return Counter(tuple(-99.0 if math.isnan(cell) else cell for cell in cells) for cells in made)


def number(cell: object) -> float:
    return float(cell) + 0.0 if cell is not None and math.isfinite(cell) else math.nan  # type: ignore[arg-type]


def level(cell: object) -> float:
    return math.nan if cell in (None, "") else {"a": 0.0, "b": 1.0}.get(str(cell), -1.0)


def joined(own: list[list[float]], place: int, rule: str) -> float:
    lower, upper = list(COLUMNS.values())[place].values()
    cells = [cells[place] for cells in own if not math.isnan(cells[place])]
    middle, reach = ((lower + upper) / 2, (upper - lower) / 2) if rule == "mean" else (0, max(-lower, upper))
    unit = Fraction(2) ** (math.frexp(reach)[1] - 36)
    whole = sum(round(Fraction(min(max(cell - middle, -reach), reach)) / unit) for cell in cells)
    if not cells:
        return math.nan
    return float(whole / (len(cells) if rule == "mean" else 1)) * float(unit) + middle


def most_frequent(levels: list[float]) -> float:
    times = Counter(level for level in levels if not math.isnan(level))
    return min(times, key=lambda level: (-times[level], level < 0, level), default=math.nan)


# --- properties -----------------------------------------------------------------------------------------------------

IDS = [
    "p",
    " p ",
    "q",
    "Q",
    "p\0",
    "ü",
    "a name longer than a word",
    "p" * 8,
    "p" * 16,
    "",
    None,
    " ",
]
NUMBERS = st.sampled_from([0.0, -0.0, 1.0, 2.5, -7.0, 1e300, 0.1, math.nan, math.inf, None])
ROW = st.tuples(st.sampled_from(range(len(IDS))), NUMBERS, st.sampled_from(["a", "b", "c", "", None]))


def table_of(drawn: list[tuple[int, object, object]]) -> list[tuple[object, ...]]:
    """``who`` is the same for two spellings of an id."""
    known = {"p": 0.0}
    return [(IDS[i], known.setdefault(str(IDS[i]).strip(" "), float(i)), x, s) for i, x, s in drawn]


@settings(max_examples=40, deadline=None)
@given(st.lists(ROW, max_size=40), st.sampled_from(list(RULES)), st.randoms(use_true_random=False))
def test_rows_are_what_the_rule_says_in_any_order(drawn, rule, random):
    rows = table_of(drawn)
    shuffled = random.sample(rows, len(rows))
    expected = reference(rows, rule)
    assert read(frame(rows), rule) == expected
    assert read(frame(shuffled), rule) == expected


def holds(reader, rows: list[tuple[object, ...]], rule: str, random) -> bool:
    """The law: a person adds the same rows to any company, in any order, cut anywhere, and no more than allowed."""
    for who in {row[1] for row in rows}:
        own = [row for row in rows if row[1] == who]
        alone = reader([frame(own)], rule)
        if sum(alone.values()) > (MOST if rule == "rows" else 1):
            return False
        others = [row for row in rows if row[1] != who]
        more = [("more" + str(i), 30.0 + i % 3, 0.5, "b") for i in range(len(own) + 5)]
        for company in (others[: len(others) // 2], others + more):
            mixed_up = random.sample(company + own, len(company) + len(own))
            cut = random.randrange(len(mixed_up) + 1)
            found = reader([frame(part) for part in (mixed_up[:cut], mixed_up[cut:])], rule)
            if found != reader([frame(company)], rule) + alone:
                return False
    return True


def several(tables: list[pa.Table], rule: str) -> Counter[tuple[float, ...]]:
    return read(pa.concat_tables(tables), rule)


def heavy(random) -> list[tuple[object, ...]]:
    """Persons of 1, 2, … 30 rows, most of them different, some the same."""
    return [
        (f"id{who}", float(who), random.randrange(20) / 10, random.choice("abc"))
        for who in range(1, 6)
        for _ in range(random.choice([1, 2, MOST, MOST + 1, 30]))
    ]


@pytest.mark.parametrize("rule", list(RULES))
def test_what_is_kept_of_a_person_depends_on_that_person_alone(rule):
    chance = Random(3)
    assert holds(several, heavy(chance), rule, chance)


@pytest.mark.parametrize("rule", list(RULES))
def test_the_same_through_a_file_that_is_written_and_gathered_in_many_pieces(rule, monkeypatch):
    monkeypatch.setattr(persons, "IN_MEMORY", 700)
    monkeypatch.setattr(persons, "_PARTS", 3)
    monkeypatch.setattr("privcov.table.arrow.block_rows", lambda schema: 7)
    chance = Random(4)
    rows = heavy(chance)
    assert read(frame(rows), rule) == reference(rows, rule)
    assert holds(several, rows, rule, chance)


@pytest.mark.long
@settings(max_examples=30, deadline=None)
@given(st.sampled_from(list(RULES)), st.booleans(), st.randoms(use_true_random=False))
def test_the_same_on_many_tables(rule, in_file, random):
    with pytest.MonkeyPatch.context() as patched:
        if in_file:
            patched.setattr(persons, "IN_MEMORY", 500)
            patched.setattr("privcov.table.arrow.block_rows", lambda schema: 7)
        assert holds(several, heavy(random), rule, random)


def unbounded(tables, rule):
    """Mutant: everybody's rows pass."""
    return Counter(tuple(row.values())[1:] for row in pa.concat_tables(tables).to_pylist())


def each_part(tables, rule):
    """Mutant: every part of a table keeps its own rows of a person."""
    return sum((read(table, rule) for table in tables), Counter())


def first_of_all(tables, rule):
    """Mutant: a person's rows are kept while there is room for rows of anybody."""
    return several([pa.concat_tables(tables).slice(0, 12)], rule)


def by_place(tables, rule):
    """Mutant: the first rows of a person in the table are kept, wherever they stand."""
    whole = pa.concat_tables(tables).to_pandas().groupby("id", sort=False).head(MOST)
    return several([pa.Table.from_pandas(whole, preserve_index=False)], rule)


@pytest.mark.parametrize("mutant", [unbounded, each_part, first_of_all, by_place])
def test_readers_that_break_the_law_are_caught(mutant):
    chance = Random(1)
    assert not all(holds(mutant, heavy(chance), "rows", chance) for _ in range(3))


def test_persons_whose_ids_have_one_hash_are_still_told_apart(monkeypatch):
    """Ids are compared, not their hashes: nobody pushes out rows of another."""
    real = persons.id_hashes
    monkeypatch.setattr(persons, "id_hashes", lambda ids: real(ids) * np.uint64(0))
    table = frame([(f"id{who}", float(who), x / 10, "a") for who in range(20) for x in range(9)])
    found = read(table)
    assert [sum(n for row, n in found.items() if row[0] == who) for who in range(20)] == [MOST] * 20
    assert sum(read(table, "mean").values()) == 20


# --- every way in ---------------------------------------------------------------------------------------------------


def ways(table: pa.Table, folder: Path) -> dict[str, object]:
    frame = table.to_pandas()
    csv = folder / "t.csv"
    frame.to_csv(csv, index=False)
    packed = folder / "packed.csv.gz"
    packed.write_bytes(gzip.compress(csv.read_bytes()))
    whole = folder / "t.parquet"
    pq.write_table(table, whole, row_group_size=50)
    halves = [folder / "a.csv", folder / "b.parquet"]
    frame.iloc[:70].to_csv(halves[0], index=False)
    pq.write_table(table.slice(70), halves[1])
    polars = pl.from_arrow(table)
    base = duckdb.connect()
    base.sql("CREATE TABLE t AS SELECT * FROM frame")
    return {
        "pandas": frame,
        "objects": frame.astype({"id": object, "s": object}),
        "categories": frame.astype({"id": "category"}),
        "polars": polars,
        "lazy": polars.lazy(),  # type: ignore[union-attr]
        "arrow": table,
        "dictionary": table.set_column(0, "id", table.column("id").dictionary_encode()),
        "polars categories": polars.with_columns(pl.col("id").cast(pl.Categorical)),  # type: ignore[union-attr]
        "csv": csv,
        "packed": packed,
        "parquet": whole,
        "two files": halves,
        "dataset": pyarrow.dataset.dataset(whole),
        "duckdb": base.table("t"),
    }


@pytest.mark.parametrize("rule", list(RULES))
def test_every_kind_of_table_gives_the_same_rows(rule, tmp_path):
    rows = heavy(Random(2))
    rows[10] = (None, *rows[10][1:])
    expected = reference(rows, rule)
    for name, data in ways(frame(rows), tmp_path).items():
        assert read(data, rule) == expected, name


def test_whole_numbers_are_ids_by_their_digits(tmp_path):
    table = frame([(str(i % 4), float(i % 4), float(i % 3), "a") for i in range(40)])
    numbers = table.set_column(0, "id", table.column("id").cast(pa.int64()))
    objects = numbers.to_pandas().astype({"id": object})
    padded = table.to_pandas().assign(id=lambda t: "0" + t["id"])
    assert read(numbers) == read(numbers.to_pandas()) == read(objects) == read(table)
    assert sum(read(pd.concat([table.to_pandas(), padded])).values()) == 2 * sum(read(table).values())


def test_ids_of_a_latin_1_file_are_those_of_a_frame(tmp_path):
    table = frame([(name, 1.0, float(i % 7), "a") for i, name in enumerate(["é", "e"] * 20)])
    path = tmp_path / "latin.csv"
    path.write_bytes(table.to_pandas().to_csv(index=False).encode("latin-1"))
    schema = pc.Schema.from_dict(
        {"columns": COLUMNS, "person": "id", **RULES["rows"], "file": {"encoding": "latin-1"}}
    )
    blocks = [np.array(list(block)).T for block in open_table(path, schema).blocks()]
    assert Counter(map(tuple, np.concatenate(blocks).tolist())) == read(table)


def test_lines_that_are_no_records_and_declared_missing_values_are_nobodys(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,who,x,s\np,1,1,a\n\nNA,1,2,a\np,1,2\n,1,3,b\n" + "z" * (2**20 + 9) + "\np,1,2.5,b\n")
    schema = pc.Schema.from_dict(
        {"columns": COLUMNS, "person": "id", **RULES["rows"], "missing_values": ["NA"]}
    )
    table = open_table(path, schema)
    assert sorted(cell for block in table.blocks() for cell in block[1]) == [1.0, 2.5]
    assert table.rows == 2


# --- nothing is left behind -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("fails", [False, True])
def test_a_table_that_does_not_fit_memory_leaves_no_file_behind(fails, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(persons, "IN_MEMORY", 1000)
    made, seen = [], []
    real = persons.tempfile.TemporaryFile
    monkeypatch.setattr(
        persons.tempfile, "TemporaryFile", lambda **words: made.append(real(**words)) or made[-1]
    )
    if fails:
        monkeypatch.setattr(persons.Kept, "cells", lambda self: 1 / 0)
    monkeypatch.setattr("privcov.table.arrow.block_rows", lambda schema: 10)
    blocks = open_table(frame([(f"{i}", 1.0, 1.0, "a") for i in range(500)]), schema_of()).blocks()
    try:
        for _ in blocks:
            seen.append(list(tmp_path.iterdir()))
    except ZeroDivisionError:
        assert fails
    assert [file.closed for file in made] == [True]
    assert not any(seen)  # it never had a name
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_an_internal_error_that_says_nothing(monkeypatch):
    class Full:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def write(self, _):
            raise OSError(28, "No space left on device", "secret")

    monkeypatch.setattr(persons, "IN_MEMORY", 10)
    monkeypatch.setattr(persons.tempfile, "TemporaryFile", lambda **_: Full())
    with pytest.raises(InternalError) as raised:
        list(open_table(frame([("p", 1.0, 1.0, "a")] * 3), schema_of()).blocks())
    assert "secret" not in str(raised.value)


def test_no_worker_sums_a_part_of_a_table_of_persons(tmp_path):
    """A part may not have all rows of a person: what would not be enforced there is not summed there."""
    path = tmp_path / "t.csv"
    frame([("p", 1.0, 1.0, "a")]).to_pandas().to_csv(path, index=False)
    table = open_table(path, schema_of())
    assert table.pieces() is None
    for part in (*bundled(table.records()), Arrived(place=0, data=frame([("p", 1.0, 1.0, "a")]).to_pandas())):
        with pytest.raises(InternalError):
            part.open(schema_of())


# --- across the workers of a cluster --------------------------------------------------------------------------------


def apart(tables: list[pa.Table], rule: str, parts: int = 5, shuffle=None) -> Counter[tuple[float, ...]]:
    """Rows that workers make of parts of a table, each of which one of them read; the shuffle is a dictionary."""
    schema, sent = schema_of(rule), []
    for place, table in enumerate(tables):
        fragment = Arrived(place=place, data=table.to_pandas())
        sent += [(place, *one) for one in spread(fragment, schema=schema, parts=parts)]
    by_label = defaultdict(list)
    for place, label, rows in sent:
        by_label[label if shuffle is None else shuffle(place, label)].append(rows)
    made = (Joined(place=0, schema=schema, sent=rows).open(schema).blocks() for rows in by_label.values())
    rows = [np.array(list(block)).T for blocks in made for block in blocks]
    found = np.concatenate([np.zeros((0, len(COLUMNS))), *rows])
    return Counter(map(tuple, np.where(np.isnan(found), -99, found).tolist()))


@pytest.mark.parametrize("rule", list(RULES))
def test_workers_that_read_a_table_apart_make_the_rows_of_one_process(rule, monkeypatch):
    chance = Random(5)
    rows = heavy(chance)
    assert holds(apart, rows, rule, chance)
    monkeypatch.setattr(shuffling, "IN_MEMORY", 300)  # and what they send comes in many pieces
    monkeypatch.setattr(persons, "IN_MEMORY", 400)
    monkeypatch.setattr("privcov.table.frames.block_rows", lambda schema: 5)
    cut = [frame(rows[start : start + 11]) for start in range(0, len(rows), 11)]
    assert apart(cut, rule) == reference(rows, rule)


def bound_of_each_part(tables, rule):
    """Mutant: nothing is shuffled, so every worker keeps its own rows of a person."""
    return apart(tables, rule, shuffle=lambda place, label: (place, label))


def bound_of_each_row_kind(tables, rule):
    """Mutant: rows are spread by what is in them, not by whose they are."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(shuffling, "id_hashes", lambda ids: np.arange(len(ids), dtype=np.uint64))
        return apart(tables, rule)


@pytest.mark.parametrize("mutant", [bound_of_each_part, bound_of_each_row_kind])
@pytest.mark.parametrize("rule", list(RULES))
def test_a_plan_that_bounds_a_person_in_each_worker_is_caught(mutant, rule):
    chance = Random(1)
    assert not all(holds(mutant, heavy(chance), rule, chance) for _ in range(3))


def test_a_person_of_a_thousand_rows_on_many_workers_adds_as_many_as_anybody():
    rows = [("p", 1.0, place / 100, "a") for place in range(1000)] + [("q", 2.0, 1.0, "b")]
    parts = [frame(rows[start::7]) for start in range(7)]
    for rule, most in (("rows", MOST), ("mean", 1), ("sum", 1)):
        found = apart(parts, rule)
        assert found == reference(rows, rule)
        assert sum(found.values()) == most + 1
    # What a worker can see alone to be too much does not travel.
    sent = list(spread(Arrived(place=0, data=parts[0].to_pandas()), schema=schema_of(), parts=1))
    assert sum(int.from_bytes(one[1:9], "little") for _, one in sent) == MOST


@pytest.mark.parametrize("fails", ["changed", "fewer rows", "broken", "cut short"])
def test_what_went_wrong_in_a_worker_is_told_once_and_without_an_id(fails, tmp_path, monkeypatch):
    schema, path = schema_of(), tmp_path / "t.parquet"
    pq.write_table(frame([("a secret id", 1.0, 1.0, "a")] * 9), path)
    (fragment,) = bundled(open_table(path, schema).records())
    if fails == "changed":
        path.write_bytes(path.read_bytes() + b"more")
    elif fails == "broken":
        monkeypatch.setattr(shuffling.Rows, "of", classmethod(lambda _, block: int(str(block[-1]))))
    elif fails == "fewer rows":
        (piece,) = fragment.pieces
        fragment = replace(fragment, pieces=(replace(piece, rows=8),))
    sent = [one for _, one in spread(fragment, schema=schema, parts=3)]
    if fails == "cut short":
        sent = [sent[0][:-1]]
    expected = InputError if fails in ("changed", "fewer rows") else InternalError
    with pytest.raises(expected) as raised:
        list(Joined(place=0, schema=schema, sent=sent).open(schema).blocks())
    assert "secret" not in str(raised.value)


def test_rows_of_one_hash_are_ordered_by_their_cells_wherever_they_stand(monkeypatch):
    """So what is kept of a person is a function of the set of that person's rows, also where a hash fails."""
    monkeypatch.setattr(persons, "row_order", lambda hashes, cells: hashes)
    chance = Random(6)
    rows = [("p", 1.0, chance.choice([math.nan, x / 10]), "a") for x in range(30)]
    found = {tuple(sorted(read(frame(chance.sample(rows, len(rows)))).elements())) for _ in range(5)} | {
        tuple(sorted(apart([frame(rows[3:]), frame(rows[:3])], "rows").elements()))
    }
    assert len(found) == 1


def test_a_table_of_persons_hands_out_no_ids_and_tells_no_number_of_rows():
    table: Table = open_table(frame([("p", 1.0, 1.0, "a")] * 9), schema_of())
    assert table.known_rows is None
    assert table.count() is None
    assert [len(block) for block in table.blocks()] == [len(COLUMNS)]
