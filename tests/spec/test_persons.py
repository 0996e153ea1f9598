"""Persons through whole releases: a bound that is enforced, wherever rows are read, and what is said about it."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tomllib
from collections.abc import Generator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import privcov as pc
from privcov.audit.readers import audit_reader
from privcov.cli import main
from privcov.engines import Dask, Local, Spark
from privcov.mechanisms.sensitivity import Sensitivity
from privcov.noise.randomness import rehearsal
from privcov.privacy import Neighbours
from privcov.publish import release as publish
from privcov.publish.row_norm import private_row_norm
from privcov.releases import codec
from privcov.report.page import html
from privcov.report.words import promise, uncovered
from privcov.schema.grid import Grid
from privcov.table import opening
from privcov.table.persons import PersonTable
from privcov.verification.consistency import disagreements

MOST = 5
COLUMNS = {"x": {"lower": -1, "upper": 1}, "y": {"lower": -1, "upper": 1}, "s": {"levels": ["a", "b"]}}
ZCDP = pc.ZCDP(rho=1, neighbours="replace-one")
PURE = pc.PureDP(epsilon=1, neighbours="replace-one")
RULES = {
    "rows": {"max_rows_per_person": MOST},
    "one row": {"max_rows_per_person": 1},
    "mean": {"per_person": "mean"},
    "sum": {"per_person": "sum"},
}
SECRET = "patient-4711"


def schema_of(rule: str = "rows") -> pc.Schema:
    return pc.Schema.from_dict({"columns": COLUMNS, "person": "patient", **RULES[rule]})


def visits(*, of_one: int = 1000, others: int = 60, seed: int = 1) -> pd.DataFrame:
    """One person with many rows at the edge of the bounds, and others with one row each."""
    rng = np.random.default_rng(seed)
    mild = rng.uniform(-0.2, 0.2, (others, 2))
    rows = np.vstack([np.ones((of_one, 2)) * rng.choice([-1, 1], (of_one, 1)), mild])
    ids = [SECRET] * of_one + [f"p{i}" for i in range(others)]
    made = pd.DataFrame({"patient": ids, "x": rows[:, 0], "y": rows[:, 1], "s": "a"})
    return made.sample(frac=1, random_state=seed, ignore_index=True)


# --- one person of a thousand rows ----------------------------------------------------------------------------------


class Counting(Local):
    """The local engine, which notes how many rows each reading of a table had."""

    seen: list[int]

    def answers(self, work, fragments) -> Generator:
        rows = 0
        for answer in super().answers(work, fragments):
            rows += answer[1]
            yield answer
        self.seen.append(rows)


def readings(**order: object) -> Sequence[int]:
    engine = Counting()
    object.__setattr__(engine, "seen", [])
    order = {"schema": schema_of(), "loss": ZCDP, **order}
    pc.release(visits(), engine=engine, randomness=rehearsal(1), **order)
    return engine.seen


ROUTES = {
    "declared": {},
    "row norm": {"row_norm": "private", "mechanism": "gaussian"},
    "scales": {"frame": "scales", "mechanism": "gaussian"},
    "shape": {"frame": "shape", "mechanism": "gaussian"},
    "means": {"frame": "scales", "mechanism": "gaussian", "purpose": "means"},
    "one row": {"schema": schema_of("one row"), "mechanism": "joint-gaussian"},
    "mean in a frame": {"schema": schema_of("mean"), "frame": "scales", "mechanism": "gaussian"},
}


def enforced(seen: Sequence[int], most: int) -> bool:
    return bool(seen) and all(rows <= 60 + most for rows in seen)


@pytest.mark.parametrize("route", list(ROUTES))
def test_a_person_of_a_thousand_rows_has_few_in_every_reading_of_every_route(route):
    schema = ROUTES[route].get("schema", schema_of())
    assert enforced(readings(**ROUTES[route]), schema.max_rows_per_person)


@pytest.mark.parametrize("route", ["declared", "scales"])
def test_a_release_that_does_not_enforce_is_caught(route, monkeypatch):
    """The canary: rows go on as they were read, without ids."""

    class Unenforced(PersonTable):
        def _blocks(self):
            for block in self._table.blocks():
                yield list(block)[:-1]

    monkeypatch.setattr(opening, "PersonTable", Unenforced)
    assert not enforced(readings(**ROUTES[route]), MOST)


def test_a_private_row_norm_alone_reads_bounded_rows_too(monkeypatch):
    seen = []
    real = PersonTable.blocks

    def counted(self):
        rows = 0
        for block in real(self):
            rows += len(block[0])
            yield block
        seen.append(rows)

    monkeypatch.setattr(PersonTable, "blocks", counted)
    private_row_norm(visits(), schema=schema_of(), loss=ZCDP, share="0.1")
    assert seen
    assert enforced(seen, MOST)


# --- neighbours -----------------------------------------------------------------------------------------------------


def sums(data: object, schema: pc.Schema, monkeypatch) -> tuple[np.ndarray, object]:
    """The exact matrix that a release hands to its mechanism, and what it publishes beside the noise."""
    seen = []
    real = publish.answer

    def spied(noise, gram):
        seen.append([int(value) for value in gram.reveal_to_mechanism()])
        return real(noise, gram)

    monkeypatch.setattr(publish, "answer", spied)
    made = pc.release(data, schema=schema, loss=ZCDP, mechanism="gaussian").to_dict()
    d = schema.dimension
    matrix = np.zeros((d, d))
    matrix[np.triu_indices(d)] = np.array(seen[0], dtype=float) * float(Grid.of(schema).unit)
    beside = {**made["certificate"], "created": None}, made["rows"], made["scaling"]
    return matrix + np.triu(matrix, 1).T, beside


@pytest.mark.parametrize("rule", list(RULES))
@pytest.mark.parametrize("kind", ["frame", "csv", "parquet"])
def test_one_person_moves_the_sum_by_no_more_than_the_noise_is_made_for(rule, kind, monkeypatch, tmp_path):
    """A person of a thousand rows, of which each is as long as rows can be, replaced by one of a single row."""

    def given(table: pd.DataFrame) -> object:
        if kind == "frame":
            return table
        path = tmp_path / f"{len(table)}.{kind}"
        table.to_csv(path, index=False) if kind == "csv" else table.to_parquet(path, index=False)
        return path

    schema, before = schema_of(rule), visits()
    one = before[before["patient"] == SECRET].iloc[:1].assign(patient="new", x=-1.0, y=1.0, s="b")
    after = pd.concat([before[before["patient"] != SECRET], one]).sample(frac=1, random_state=9)
    (first, said), (second, also) = (sums(given(table), schema, monkeypatch) for table in (before, after))
    sensitivity = Sensitivity.of(
        replace(Grid.of(schema), exponent=0, squared_norm_bound=4), Neighbours.REPLACE_ONE
    )
    assert said == also
    assert 0.1 < np.linalg.norm(first - second) <= float(sensitivity.frobenius)
    assert abs(np.trace(first - second)) <= 4 * schema.max_rows_per_person


@pytest.mark.parametrize("rule", ["one row", "mean", "sum"])
def test_the_number_of_persons_is_public_where_each_has_one_row_and_no_number_of_rows_is(rule):
    assert pc.release(visits(), schema=schema_of(rule), loss=PURE).rows == 61
    assert pc.release(visits(of_one=3), schema=schema_of(rule), loss=PURE).rows == 61
    assert pc.release(visits(), schema=schema_of(), loss=PURE).rows is None
    with pytest.raises(pc.PrivcovError, match="E216"):
        pc.release(visits(), schema=schema_of(rule), loss=PURE, expect_rows=1060)


# --- what is said, and what is not ----------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", list(RULES))
def test_a_release_keeps_that_persons_were_told_apart_and_neither_ids_nor_their_column(rule, tmp_path):
    made = pc.release(visits(), schema=schema_of(rule), loss=ZCDP)
    made.save(path := tmp_path / "r.json")
    text = path.read_text()
    assert "patient" not in text
    assert json.loads(text)["certificate"]["bounds"]["persons"] == RULES[rule].get("per_person", "rows")
    again = pc.load(path)
    assert again.schema == made.schema
    assert again.schema.enforced
    assert not list(disagreements(again))
    for page in (promise(again), html(again), pc.verify(path).checks[-1].words, *uncovered(again)):
        assert "patient" not in page
    assert "enforced" in promise(again)
    assert "not enforced" not in promise(again) + html(again)
    assert "all rows of one person" in promise(again)


def test_without_ids_a_release_says_that_the_bound_is_declared(tmp_path):
    plain = pc.Schema.from_dict({"columns": COLUMNS, "ignore_extra": True, "max_rows_per_person": 3})
    made = pc.release(visits(of_one=3), schema=plain, loss=ZCDP)
    made.save(path := tmp_path / "r.json")
    assert "Rows per person: at most 3, declared, not enforced." in promise(made).replace("\n  ", " ")
    assert "declared, not enforced" in html(made)
    assert any("declared, not enforced" in check.words for check in pc.verify(path).checks)
    assert "persons" not in made.to_dict()["certificate"]["bounds"]


@pytest.mark.parametrize("rule", list(RULES))
def test_the_schema_of_a_release_does_not_claim_persons_for_the_next_one(rule):
    """It says "enforced" and does not know by which column: rows would not be gathered."""
    schema = pc.release(visits(), schema=schema_of(rule), loss=ZCDP).schema
    for data in (visits(), visits()[["x", "y", "s"]]):
        with pytest.raises(pc.PrivcovError, match="E184"):
            pc.release(data, schema=schema, loss=ZCDP)
    assert pc.release(visits(), schema=replace(schema, person="patient"), loss=ZCDP).schema == schema


@pytest.mark.parametrize("said", [None, "all", ["mean"], "rows "])
def test_a_release_file_says_nothing_else_of_persons(said):
    document = pc.release(visits(), schema=schema_of(), loss=ZCDP).to_dict()
    document["certificate"]["bounds"]["persons"] = said
    with pytest.raises((pc.PrivcovError, ValueError)):
        codec.unsealed(document)


def test_a_schema_of_persons_is_written_and_read_again():
    for rule in RULES:
        schema = schema_of(rule)
        assert pc.Schema.from_dict({"columns": COLUMNS, "person": " patient ", **RULES[rule]}) == schema
        assert pc.Schema.from_dict(tomllib.loads(schema.to_toml())) == schema
        assert "patient" not in schema.published().to_toml()
        tomllib.loads(schema.published().to_toml())


# --- bad input: one line, exit 2, nothing paid ----------------------------------------------------------------------

HEAD = 'person = "patient"\n'
BODY = "[columns.x]\nlower = -1\nupper = 1\n"
BOUND = "max_rows_per_person = 5\n"
BAD = {
    "an id that is a feature": (HEAD + BOUND + "[columns.patient]\nlower = 0\nupper = 1\n" + BODY, "E147"),
    "no such column": ('person = "nobody"\n' + BOUND + BODY, "E102"),
    "no bound": (HEAD + BODY, "E149"),
    "two rules": (HEAD + BOUND + 'per_person = "mean"\n' + BODY, "E149"),
    "a rule without ids": ('per_person = "mean"\n' + BODY, "E148"),
    "an unknown rule": (HEAD + 'per_person = "median"\n' + BODY, "E148"),
    "a sum of dates": (
        HEAD + 'per_person = "sum"\n' + BODY + '[columns.t]\nlower = "2020-01-01"\nupper = "2021-01-01"\n'
        'feature = false\n[derived]\nyear = "year(t)"\n',
        "E148",
    ),
    "no name": ('person = ""\n' + BOUND + BODY, "E121"),
    "no text": ("person = 3\n" + BOUND + BODY, "E121"),
    "constant timing": (HEAD + BOUND + '[file]\ntiming = "constant"\n' + BODY, "E183"),
    "ids that are floats": ('person = "weight"\n' + BOUND + BODY, "E181"),
}


@pytest.mark.parametrize("case", list(BAD))
def test_bad_declarations_are_one_line_and_cost_nothing(case, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text, code = BAD[case]
    Path("s.toml").write_text("ignore_extra = true\n" + text)
    visits(of_one=3).assign(weight=1.5).to_parquet("t.parquet")
    promise = ["--epsilon", "1", "--neighbours", "replace-one"]
    assert main(["ledger", "init", "l.ledger", *promise]) == 0
    before = Path("l.ledger").read_bytes()
    capsys.readouterr()
    words = ["release", "t.parquet", "--schema", "s.toml", *promise, "--ledger", "l.ledger", "-o", "r.json"]
    assert main(words) == 2
    said = capsys.readouterr().err
    assert code in said
    assert SECRET not in said
    assert "Traceback" not in said
    assert Path("l.ledger").read_bytes() == before
    assert not Path("r.json").exists()


def test_arrays_cannot_tell_persons_apart_nor_clusters_those_of_a_frame_that_is_here():
    plain = pc.Schema.from_dict(
        {"columns": {"x": {"lower": 0, "upper": 1}}, "person": "id", "per_person": "mean"}
    )
    with pytest.raises(pc.PrivcovError, match="E180"):
        pc.release(np.ones((3, 1)), schema=plain, loss=PURE)
    for engine in (Spark(), Dask()):
        with pytest.raises(pc.PrivcovError, match="E213"):
            pc.release(visits(), schema=schema_of(), loss=PURE, engine=engine)


@pytest.mark.parametrize("ids", [[1.0, 2.0], [True, False], pd.to_datetime(["2020-01-01", "2021-01-01"])])
def test_categories_that_are_no_ids_are_refused_as_their_own_type_is(ids, tmp_path):
    """An id that is missing makes fractions of whole numbers in pandas; as categories all rows would be nobody's."""
    ledger = pc.Ledger.init(tmp_path / "l", pc.PureDP(epsilon=9, neighbours="replace-one"))
    data = visits(of_one=2, others=2).assign(patient=pd.Series([*ids, *ids]))
    for frame in (data, data.astype({"patient": "category"})):
        with pytest.raises(pc.PrivcovError, match=r"E181 .* ids are texts or whole numbers"):
            pc.release(frame, schema=schema_of(), loss=PURE, ledger=ledger)
    assert ledger.spent == {"epsilon": 0}
    for good in (["p1", "p2"], [1, 2], [None, None]):
        fine = data.assign(patient=pd.Series([*good, *good], dtype=object)).astype({"patient": "category"})
        assert pc.release(fine, schema=schema_of(), loss=PURE).rows is None


@pytest.mark.parametrize("words", [{}, {"purpose": "means"}, {"cut": "counted"}, {"frame": "shape"}])
@pytest.mark.parametrize("rule", ["mean", "sum"])
def test_every_round_of_a_frame_sees_the_row_that_is_made_of_a_person(rule, words):
    """A closer look at a column is not a look at other means: cells are clipped to the bounds that were declared."""
    rng, people = np.random.default_rng(4), 4_000
    rows = np.repeat(rng.integers(96, 104, (people, 2)) * 2, 2, axis=0)
    far = rng.random(people) < 0.1  # of the persons: two rows far from all others, and a mean that is not
    rows[::2, 0] += 800 * far
    rows[1::2, 0] -= 700 * far
    table = pd.DataFrame({"id": np.repeat(np.arange(people), 2), "x": rows[:, 0], "y": rows[:, 1]})
    made = getattr(table.groupby("id"), rule)().reset_index()
    columns = {name: {"lower": -(2**14), "upper": 2**14} for name in "xy"}
    loss = pc.ZCDP(rho=100, neighbours="replace-one")

    schema = pc.Schema.from_dict({"columns": columns, "person": "id", "per_person": rule})

    def rounds(data):
        order = {"frame": "scales", "loss": loss, **words}
        return pc.release(data, schema=schema, randomness=rehearsal(2), **order).certificate.rounds

    looked = rounds(made)
    assert sum(one.name == "scales" for one in looked) > 1
    assert rounds(table) == looked


@pytest.mark.parametrize("rule", ["mean", "sum"])
def test_no_row_with_an_id_is_said_to_be_that_and_to_have_been_paid_for(rule, tmp_path):
    """The number of persons is public, but nobody knows it before the rows are read."""
    ledger = pc.Ledger.init(tmp_path / "l", pc.PureDP(epsilon=9, neighbours="replace-one"))
    for nobody in (None, 7.5):  # a float in a column of objects is no id
        data = visits().assign(patient=nobody).astype({"patient": object})
        with pytest.raises(
            pc.PrivcovError, match=r"E108 the table has no row with a person's id.*the payment stands"
        ):
            pc.release(data, schema=schema_of(rule), loss=PURE, ledger=ledger)
    assert pc.Ledger.open(tmp_path / "l").spent == {"epsilon": 2}


def test_the_steward_can_look_at_and_convert_a_file_of_persons(tmp_path):
    from privcov import steward

    visits(of_one=9).to_csv(path := tmp_path / "t.csv", index=False)
    seen = steward.inspect(path, schema=schema_of())
    assert (seen.records, seen.summed) == (69, 60 + MOST)
    assert "would sum 65 rows" in seen.render()
    assert steward.inspect(path, schema=schema_of().by_rows()).summed is None
    steward.convert(path, made := tmp_path / "t.parquet", schema=schema_of())
    mean = schema_of("mean")
    assert (
        pc.release(made, schema=mean, loss=PURE).rows == pc.release(path, schema=mean, loss=PURE).rows == 61
    )


@pytest.mark.long
def test_the_reader_of_a_file_of_persons_can_be_audited(tmp_path):
    visits(of_one=9).to_csv(path := tmp_path / "t.csv", index=False)
    assert audit_reader(path, schema=schema_of(), more=1).passed


def test_the_workbench_keeps_the_id_column_of_a_schema(tmp_path):
    from privcov.web.drafting import drafted, opened

    for rule in RULES:
        (path := tmp_path / "s.toml").write_text(schema_of(rule).to_toml())
        assert drafted(opened(path)).schema == schema_of(rule)


@pytest.mark.slow
def test_millions_of_rows_are_gathered_in_little_memory(tmp_path):
    """5 million rows of a million persons, a quarter of a gigabyte of cells, in a process of their own."""
    rng = np.random.default_rng(1)
    names = ["id", "x", "y", "z", "w"]
    path = tmp_path / "big.parquet"
    kinds = pa.schema([("id", pa.string()), *((name, pa.float64()) for name in names[1:])])
    with pq.ParquetWriter(path, kinds) as file:
        for _ in range(5):
            ids = pa.array(rng.integers(0, 10**6, 10**6)).cast(pa.string())
            file.write_table(pa.table([ids, *(pa.array(rng.random(10**6)) for _ in names[1:])], schema=kinds))
    program = f"""
import resource, privcov as pc
columns = {{name: {{"lower": 0, "upper": 1}} for name in {names[1:]}}}
schema = pc.Schema.from_dict({{"columns": columns, "person": "id", "max_rows_per_person": 5}})
made = pc.release({str(path)!r}, schema=schema, loss=pc.ZCDP(rho=1, neighbours="replace-one"))
print(made.count(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    count, megabytes = map(float, done.stdout.split())
    kept = 10**6 * sum(min(k, 5) * math.exp(-5) * 5**k / math.factorial(k) for k in range(40))
    assert abs(count - kept) < 10_000
    assert megabytes < 800
