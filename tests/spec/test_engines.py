"""Engines: the same bits however the work is divided, every fragment counted once, faults told and never summed."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import sys
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import privcov as pc
import privcov.table.csv as csv_module
from privcov.errors import InputError, InternalError, ParameterError
from privcov.frame.radii import candidates, cut_off
from privcov.schema import Schema
from privcov.schema.grid import Grid
from privcov.summing.check import Check, check_arithmetic
from privcov.summing.engines import (
    AnyFragment,
    Dask,
    Engine,
    Local,
    Spark,
    Work,
    attempt,
    base,
    engine_named,
    gather,
)
from privcov.summing.gram import Gram
from privcov.summing.sum import decode_sensitive_sum, encode_sensitive_sum, sum_fragment, sum_rows
from privcov.table import fragments as plan
from privcov.table import open_table

SCHEMA = Schema.from_dict(
    {
        "columns": {
            "a": {"lower": 0, "upper": 10},
            "s": {"levels": ["F", "M"]},
            "b": {"lower": -1, "upper": 1},
        },
        "row_norm_bound": 1.9,
    }
)
GRID = Grid.of(SCHEMA)
PLAIN = replace(GRID, intercept=False)  # for rows that are no more than numbers
LOSS = pc.PureDP(epsilon=1, neighbours="replace-one")


@pytest.fixture
def frame() -> pd.DataFrame:
    random = np.random.default_rng(0)
    n = 6_000
    a = random.normal(5, 4, n)
    a[::17] = np.nan
    return pd.DataFrame({"a": a, "s": random.choice(["F", "M", "x"], n), "b": random.normal(0, 1, n)})


@pytest.fixture
def folder(frame: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Parquet and CSV files that are cut into many fragments."""
    monkeypatch.setattr(plan, "FRAGMENT_BYTES", 12_000)
    monkeypatch.setattr(csv_module, "FRAGMENT_BYTES", 12_000)
    for part in range(3):
        piece = frame.iloc[part::3]
        piece.to_parquet(tmp_path / f"part{part}.parquet", row_group_size=400)
        piece.to_csv(tmp_path / f"part{part}.csv", index=False)
    return tmp_path


def exact(gram: Gram) -> tuple[int, list[int]]:
    return gram.rows, list(gram.reveal_to_mechanism())


def summed(data: Any, engine: Engine | None = None, schema: Schema = SCHEMA) -> tuple[int, list[int]]:
    return exact(sum_rows(open_table(data, schema), schema, Grid.of(schema), engine=engine))


# --- the same bits -------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2, 7])
@pytest.mark.parametrize("pattern", ["*.parquet", "*.csv", "*"])
def test_files_give_the_bits_of_one_process_for_every_number_of_workers(
    frame: pd.DataFrame, folder: Path, workers: int, pattern: str
) -> None:
    table = open_table(str(folder / pattern), SCHEMA)
    assert len(table.fragments()) > 5
    expected = pd.concat([frame, frame]) if pattern == "*" else frame
    assert exact(sum_rows(table, SCHEMA, GRID, engine=Local(workers=workers))) == summed(expected)


def test_tables_in_memory_are_cut_too(frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = summed(frame)
    numbers = Schema.from_dict({"columns": {c: {"lower": 0, "upper": 1} for c in "ab"}})
    array = frame[["a", "b"]].to_numpy()
    whole_array = summed(array, schema=numbers)
    monkeypatch.setattr(plan, "ROWS_IN_MEMORY", 500)
    assert len(open_table(frame, SCHEMA).fragments()) == 12
    assert summed(frame, Local(workers=2)) == whole
    assert summed(array, Local(workers=2), schema=numbers) == whole_array


@pytest.mark.parametrize("source", ["lazy frame", "dataset", "hive dataset"])
def test_lazy_frames_and_datasets_are_taken_as_they_are(
    frame: pd.DataFrame, folder: Path, source: str
) -> None:
    table = pa.Table.from_pandas(frame, preserve_index=False)
    by_sex = ds.partitioning(pa.schema([("s", pa.string())]), flavor="hive")
    ds.write_dataset(table, folder / "hive", format="parquet", partitioning=by_sex)
    sources = {
        "lazy frame": pl.from_pandas(frame).lazy().filter(pl.col("b") < 1e9),
        "dataset": ds.dataset(sorted(map(str, folder.glob("*.parquet")))),
        "hive dataset": ds.dataset(folder / "hive", partitioning="hive"),
    }
    assert summed(sources[source], Local(workers=2)) == summed(frame)


def test_lazy_numbers_of_files_are_taken_as_they_are(frame: pd.DataFrame, folder: Path) -> None:
    numbers = Schema.from_dict(
        {"columns": {name: {"lower": 0, "upper": 1} for name in "ab"}, "ignore_extra": True}
    )
    assert summed(pl.scan_parquet(folder / "*.parquet"), schema=numbers) == summed(frame, schema=numbers)


def test_a_lazy_frame_of_the_wrong_type_is_refused_before_its_query_runs(frame: pd.DataFrame) -> None:
    def untouchable(_: pl.DataFrame) -> pl.DataFrame:
        raise AssertionError("the query ran")

    lazy = (
        pl.from_pandas(frame)
        .lazy()
        .map_batches(untouchable, schema={"a": pl.Date, "s": pl.String, "b": pl.Float64})
    )
    with pytest.raises(InputError, match="E110"):
        open_table(lazy, SCHEMA)
    with pytest.raises(InputError, match="E102"):
        open_table(pl.from_pandas(frame).lazy().drop("a"), SCHEMA)


def test_what_a_smaller_bound_would_cut_off_is_the_same_on_every_engine(
    frame: pd.DataFrame, folder: Path
) -> None:
    options = candidates(SCHEMA)
    expected = cut_off(frame, SCHEMA, options, engine=Local(workers=1))
    assert cut_off(str(folder / "*.csv"), SCHEMA, options, engine=Shuffled()) == expected


# --- every fragment once -------------------------------------------------------------------------------


class Shuffled(Engine):
    """Runs some tasks twice, as retries and speculation do, and delivers in another order."""

    name = "shuffled"

    def answers(self, work: Work, fragments: Sequence[AnyFragment]) -> Generator[Any, None, None]:
        order = [*fragments[::-2], *fragments, *fragments[:3]]
        yield from (attempt(work, fragment) for fragment in order)


class Forgetful(Engine):
    """Loses the last task."""

    name = "forgetful"

    def answers(self, work: Work, fragments: Sequence[AnyFragment]) -> Generator[Any, None, None]:
        yield from (attempt(work, fragment) for fragment in fragments[:-1])


class Confused(Engine):
    """Delivers a result that belongs to no fragment of the plan, such as one of an earlier job."""

    name = "confused"

    def answers(self, work: Work, fragments: Sequence[AnyFragment]) -> Generator[Any, None, None]:
        for fragment in fragments:
            place, rows, answer = attempt(work, fragment)
            yield place + 1, rows, answer


def test_results_that_come_twice_are_counted_once(frame: pd.DataFrame, folder: Path) -> None:
    assert summed(str(folder / "*.parquet"), Shuffled()) == summed(frame)


@pytest.mark.parametrize("engine", [Forgetful(), Confused()])
def test_a_result_that_is_missing_or_foreign_is_an_error_and_not_a_sum(folder: Path, engine: Engine) -> None:
    with pytest.raises(InternalError):
        summed(str(folder / "*.parquet"), engine)


def test_no_file_has_a_row_in_two_fragments_or_in_none(folder: Path, frame: pd.DataFrame) -> None:
    table = open_table(str(folder / "*"), SCHEMA)
    pieces = [piece for fragment in table.fragments() for piece in fragment.pieces]  # type: ignore[union-attr]
    for path in {piece.path for piece in pieces}:
        spans = sorted((piece.start, piece.stop) for piece in pieces if piece.path == path)
        assert spans[0][0] == 0
        assert all(left[1] == right[0] for left, right in itertools.pairwise(spans))
    assert sum(fragment.bytes for fragment in table.fragments()) == table.total_bytes


def test_very_many_pieces_become_few_fragments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "MOST_FRAGMENTS", 10)
    monkeypatch.setattr(plan, "FRAGMENT_BYTES", 1)
    pieces = [plan.Piece(path="x", size=1000, start=i, stop=i + 1, bytes=1, rows=2) for i in range(1000)]
    made = plan.bundled(pieces)
    assert len(made) <= 11
    assert sum(fragment.rows or 0 for fragment in made) == 2000
    assert all(len(fragment.pieces) == 1 for fragment in made)


# --- arithmetic that is not what it says ---------------------------------------------------------------


def in_float32(self: Gram, rows: np.ndarray) -> None:
    low = rows.astype(np.float32)
    self._low += (low.T @ low).astype(np.int64)
    self._rows += len(rows)


def with_one_bit_wrong(self: Gram, rows: np.ndarray) -> None:
    self._low += (rows.T @ rows).astype(np.int64)
    self._low[0, 1] += 1
    self._rows += len(rows)


def without_a_row(self: Gram, rows: np.ndarray) -> None:
    self._low += (rows[1:].T @ rows[1:]).astype(np.int64)
    self._rows += len(rows)


@pytest.mark.parametrize("product", [in_float32, with_one_bit_wrong, without_a_row])
@pytest.mark.parametrize("at", ["start-up", "every fragment"])
def test_a_wrong_product_is_never_a_sum(
    frame: pd.DataFrame, product: Any, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Freivalds passes a wrong sum with probability 2^-32 for an odd error; the start-up test never does."""
    if at == "start-up":
        monkeypatch.setattr(Gram, "agrees_with", lambda *_: True)
    else:
        monkeypatch.setattr("privcov.summing.sum.check_arithmetic", lambda: True)
    check_arithmetic.cache_clear()
    monkeypatch.setattr(Gram, "add", product)
    with pytest.raises(InternalError):
        summed(frame)
    check_arithmetic.cache_clear()


def test_the_check_passes_sums_with_carries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Gram, "_word", 2**41)
    rows = np.random.default_rng(0).integers(-(2**18), 2**18, (3_000, PLAIN.dimension)).astype(float)
    gram, check = Gram(PLAIN), Check(PLAIN.dimension)
    for start in range(0, 3_000, 100):
        gram.add(rows[start : start + 100])
        check.saw(rows[start : start + 100])
    assert gram._high is not None
    assert gram.agrees_with(check.weights, check.expected)
    assert exact(decode_sensitive_sum(encode_sensitive_sum(gram), PLAIN)) == exact(gram)


def test_a_partial_sum_that_was_damaged_on_its_way_is_not_decoded() -> None:
    gram = Gram(PLAIN)
    gram.add(np.ones((5, PLAIN.dimension)))
    sent = encode_sensitive_sum(gram)
    assert exact(decode_sensitive_sum(sent, PLAIN)) == exact(gram)
    for place in range(len(sent)):
        damaged = bytearray(sent)
        damaged[place] ^= 1
        with pytest.raises(InternalError):
            decode_sensitive_sum(bytes(damaged), PLAIN)
    with pytest.raises(InternalError):
        decode_sensitive_sum(sent[:-8], PLAIN)


def test_a_partial_sum_of_another_grid_is_not_decoded() -> None:
    other = Grid(dimension=GRID.dimension, exponent=GRID.exponent - 1, squared_norm_bound=2**30)
    with pytest.raises(InternalError):
        decode_sensitive_sum(encode_sensitive_sum(Gram(other)), GRID)


# --- workers that lie ----------------------------------------------------------------------------------


class Lying(Engine):
    """One worker of several alters what it sends; the bytes are whole, the digest is right."""

    name = "lying"

    def __init__(self, alter: Callable[[bytes], bytes], *, counts: int = 0, verify: float = 0) -> None:
        self.alter, self.counts, self.verify = alter, counts, verify

    def answers(self, work: Work, fragments: Sequence[AnyFragment]) -> Generator[Any, None, None]:
        for fragment in fragments:
            place, rows, sent = attempt(work, fragment)
            if place == 2:
                rows, sent = rows + self.counts, b"+" + self.alter(sent[1:])
            yield place, rows, sent


def altered(change: Callable[[Gram], object]) -> Callable[[bytes], bytes]:
    def alter(sent: bytes) -> bytes:
        gram = decode_sensitive_sum(sent, GRID)
        change(gram)
        return encode_sensitive_sum(gram)

    return alter


def with_facts(**facts: object) -> Callable[[bytes], bytes]:
    def alter(sent: bytes) -> bytes:
        line, _, words = sent[16:].partition(b"\n")
        body = json.dumps({**json.loads(line), **facts}).encode("ascii") + b"\n" + words
        return hashlib.blake2b(body, digest_size=16).digest() + body

    return alter


def entry(i: int, j: int, value: int, *, add: bool = False) -> Callable[[bytes], bytes]:
    def change(gram: Gram) -> None:
        gram._low[i, j] = gram._low[j, i] = value + (int(gram._low[i, j]) if add else 0)
        gram._reach = 2**62

    return altered(change)


ONE_PERSON = 4**GRID.exponent
LIES: dict[str, Callable[[bytes], bytes]] = {
    "longer rows than the bound": entry(1, 1, 10**4 * GRID.squared_norm_bound),
    "a negative square": entry(1, 1, -1),
    "one person more in the intercept": entry(0, 0, ONE_PERSON, add=True),
    "a correlation above one": entry(1, 4, 400 * ONE_PERSON),
    "one below minus one": entry(1, 4, -400 * ONE_PERSON),
    "a product where there is no square": altered(lambda gram: gram._low[2].__setitem__(slice(None), 0)),
    "a reach that would overflow": with_facts(reach=0),
    "a reach that no word has": with_facts(reach=2**63),
    "rows below none": with_facts(rows=-1),
    "more rows than there are anywhere": with_facts(rows=10**400),
    "rows that are no count": with_facts(rows=400.0),
    "rows that are a truth": with_facts(rows=True),
    "no words": with_facts(words=0),
    "words beyond the bytes": with_facts(words=3),
    "no facts": lambda sent: sent[:0],
    "no sum": lambda sent: b"0" * 400,
}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("pattern", ["*.parquet", "*.csv"])
def test_a_sum_that_no_rows_have_is_not_believed(folder: Path, lie: str, pattern: str) -> None:
    assert GRID.intercept
    with pytest.raises(InternalError):
        summed(str(folder / pattern), Lying(LIES[lie]))


def test_a_count_that_metadata_or_the_sum_contradicts_is_not_believed(folder: Path) -> None:
    fewer = altered(lambda gram: gram._low.__imul__(0) is setattr(gram, "_rows", 0))
    for pattern in ("*.parquet", "*.csv"):
        with pytest.raises(InternalError):  # the sum has as many rows as it had
            summed(str(folder / pattern), Lying(lambda sent: sent, counts=1))
    with pytest.raises(InternalError):
        summed(str(folder / "*.parquet"), Lying(fewer, counts=-400))
    assert (
        summed(str(folder / "*.csv"), Lying(fewer, counts=-rows_at(folder, 2)))[0] < 6_000
    )  # CSV tells no count


def rows_at(folder: Path, place: int) -> int:
    table = open_table(str(folder / "*.csv"), SCHEMA)
    return sum_fragment(table.fragments()[place], schema=SCHEMA, grid=GRID)[0]


def test_a_small_lie_is_believed_unless_its_fragment_is_read_again(folder: Path, frame: pd.DataFrame) -> None:
    """What other rows could have summed to can only be found by reading: also by 2^32, which Freivalds does not see."""
    for size in (1, 2**32):
        small = entry(1, 4, size, add=True)
        assert summed(str(folder / "*.parquet"), Lying(small)) != summed(frame)
        with pytest.raises(InternalError):
            summed(str(folder / "*.parquet"), Lying(small, verify=1))
    assert summed(str(folder / "*.parquet"), Lying(lambda sent: sent, verify=1)) == summed(frame)


def test_as_many_fragments_are_read_again_as_were_asked_for() -> None:
    """Seven standard deviations: a false alarm once in 10^11 runs; finds a share that is off by half."""
    chosen = sum(base._is_chosen(0.25) for _ in range(800))
    assert abs(chosen - 200) < 7 * (800 * 0.25 * 0.75) ** 0.5
    assert not any(base._is_chosen(0) for _ in range(100))
    assert all(base._is_chosen(1) for _ in range(100))


def test_a_share_to_verify_is_a_share_of_files(folder: Path) -> None:
    with pytest.raises(ParameterError, match="E213"):
        engine_named("local", verify=0.1)
    for share in (-0.1, 1.1, float("nan")):
        with pytest.raises(ParameterError, match=r"E213 verify must be a share from 0 to 1"):
            Lying(bytes, verify=share).check(open_table(str(folder / "*.csv"), SCHEMA))


@pytest.mark.parametrize(
    "lie", ["less cut off by a smaller bound", "more than there is", "a longer row", "a count"]
)
def test_a_cut_that_no_rows_have_is_not_believed(folder: Path, lie: str) -> None:
    def alter(sent: bytes) -> bytes:
        *cut, trace, count = json.loads(sent)
        if lie == "less cut off by a smaller bound":
            cut[-1] = cut[-2] - 1
        elif lie == "more than there is":
            cut[-1] = trace + 1
        elif lie == "a longer row":
            trace = count * GRID.squared_norm_bound + 1
        else:
            count += 1
        return json.dumps([*cut, trace, count]).encode("ascii")

    with pytest.raises(InternalError):
        cut_off(str(folder / "*.csv"), SCHEMA, candidates(SCHEMA), engine=Lying(alter))


def test_a_lie_costs_the_budget_and_is_told_in_fixed_words(folder: Path) -> None:
    book = pc.Ledger.init(folder / "people.ledger", pc.PureDP(epsilon=3, neighbours="replace-one"))
    with pytest.raises(
        InternalError, match=r"^E900 internal error; the budget stays charged and nothing was released\.$"
    ):
        pc.release(
            str(folder / "*.csv"),
            schema=SCHEMA,
            loss=LOSS,
            ledger=book,
            engine=Lying(LIES["a negative square"]),
        )
    assert book.spent["epsilon"] == 1


# --- faults --------------------------------------------------------------------------------------------


def test_a_worker_tells_public_facts_and_nothing_else() -> None:
    fragment = plan.Fragment(place=4, pieces=())

    def failing(error: Exception) -> Any:
        def work(fragment: AnyFragment, *, report: object = None) -> tuple[int, bytes]:
            raise error

        return work

    assert attempt(failing(ValueError("secret 12345")), fragment) == (4, 0, b"!")
    told = attempt(failing(InputError("E119", "cannot read x.", "Check.")), fragment)
    assert b"cannot read x." in told[2]


def planned(folder: Path) -> Any:
    table = open_table(str(folder / "*.parquet"), SCHEMA)
    work = partial(sum_fragment, schema=SCHEMA, grid=GRID)
    return lambda: list(gather(table, work, Local(workers=2), None))


def test_a_file_that_vanishes_after_planning_is_an_error(folder: Path) -> None:
    read = planned(folder)
    (folder / "part1.parquet").unlink()
    with pytest.raises(InputError, match="E119"):
        read()


@pytest.mark.parametrize("change", ["fewer rows", "other values"])
def test_a_file_that_changes_after_planning_is_an_error(
    folder: Path, frame: pd.DataFrame, change: str
) -> None:
    read, path = planned(folder), folder / "part1.parquet"
    if change == "fewer rows":
        frame.iloc[:50].to_parquet(path)
    else:
        frame.iloc[1::3].assign(a=0.0).to_parquet(path, row_group_size=400)
    with pytest.raises(InputError, match="E120"):
        read()


def damage(path: Path) -> None:
    """Spoil the pages of the last row group; the metadata stays whole."""
    content = bytearray(path.read_bytes())
    at = pq.ParquetFile(path).metadata.row_group(4).column(0).data_page_offset
    content[at : at + 1500] = b"\xff" * 1500
    path.write_bytes(content)


def test_a_corrupt_row_group_is_an_error_and_its_budget_stays_spent(folder: Path) -> None:
    book = pc.Ledger.init(folder / "people.ledger", pc.PureDP(epsilon=3, neighbours="replace-one"))
    damage(folder / "part2.parquet")
    with pytest.raises(InputError, match=r"E115 part2\.parquet"):
        pc.release(str(folder / "*.parquet"), schema=SCHEMA, loss=LOSS, ledger=book)
    assert book.spent["epsilon"] == 1


DATES = pa.array([0], pa.date32())
BAD_FILES: dict[str, tuple[str, Any]] = {
    "another type": ("E110", lambda p: pq.write_table(pa.table({"a": [1.0], "s": ["F"], "b": DATES}), p)),
    "fewer columns": ("E102", lambda p: pq.write_table(pa.table({"a": [1.0], "s": ["F"]}), p)),
    "more columns": ("E104", lambda p: pq.write_table(pa.table({"a": [1.0], "s": ["F"], "b": [0.0], "c": [1]}), p)),
    "an empty file": ("E101", lambda p: p.write_bytes(b"")),
    "no Parquet": ("E115", lambda p: p.write_bytes(b"PAR1 something else")),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_FILES)
def test_one_bad_file_among_many_is_refused_before_any_row_is_read(
    folder: Path, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, write = BAD_FILES[case]
    write(folder / "part9.parquet")
    monkeypatch.setattr(Local, "answers", lambda *_: pytest.fail("work was started"))
    with pytest.raises(InputError, match=code):
        pc.release(str(folder / "*.parquet"), schema=SCHEMA, loss=LOSS)


def test_a_pattern_without_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="E119 no file matches"):
        pc.release(str(tmp_path / "*.parquet"), schema=SCHEMA, loss=LOSS)


def test_a_file_without_rows_among_many_adds_nothing(folder: Path, frame: pd.DataFrame) -> None:
    frame.iloc[:0].to_parquet(folder / "part9.parquet")
    (folder / "part9.csv").write_text("a,s,b\n")
    assert summed(str(folder / "*")) == summed(pd.concat([frame, frame]))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_refused(folder: Path) -> None:
    (folder / "part1.csv").chmod(0)
    with pytest.raises(InputError, match="E119"):
        open_table(str(folder / "*.csv"), SCHEMA)


# --- words ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("engine", "library", "extra"), [("spark", "pyspark", "spark"), ("dask", "distributed", "dask")]
)
def test_an_engine_that_is_not_installed_names_its_extra(
    folder: Path, engine: str, library: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ParameterError, match=rf"E214 .*{library}.* 'privcov\[{extra}\]'"):
        pc.release(str(folder / "*.csv"), schema=SCHEMA, loss=LOSS, engine=engine)


@pytest.mark.parametrize("engine", [Spark(), Dask()])
def test_a_cluster_does_not_take_rows_from_the_memory_of_one_process(
    frame: pd.DataFrame, engine: Engine
) -> None:
    with pytest.raises(ParameterError, match="E213"):
        pc.release(frame, schema=SCHEMA, loss=LOSS, engine=engine)


@pytest.mark.parametrize(
    "words",
    [
        {"name": "ray"},
        {"name": "local", "master": "local[2]"},
        {"name": "spark", "scheduler": "tcp://host:1"},
        {"name": "local", "workers": 0},
        {"name": "local", "workers": 1000},
        {"name": "dask", "workers": -1},
        {"name": "spark", "workers": 0},
        {"name": "spark", "workers": 2, "master": "spark://host:7077"},
        {"name": "dask", "workers": 2, "scheduler": "tcp://host:8786"},
    ],
)
def test_words_that_do_not_fit_an_engine_are_refused(words: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="E213"):
        engine_named(**words)
