"""What the tiers share: a table in many fragments, and workers that fail once in a chosen way.

These tests need more than the ``test`` extra and say so when they are skipped; continuous integration installs it.
"""

from __future__ import annotations

import json
import math
import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from survey import Survey

import privcov as pc
import privcov.table.csv as csv_module
from privcov.noise.randomness import rehearsal
from privcov.report.words import promise
from privcov.schema import Schema
from privcov.schema.grid import Grid
from privcov.summing.engines import AnyFragment, Engine, Local, gather
from privcov.summing.gram import Gram
from privcov.summing.sum import decode_sensitive_sum, sum_fragment, sum_rows
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
DERIVED = Schema.from_dict(
    {
        "columns": {
            "a": {"lower": 0, "upper": 10},
            "s": {"levels": ["F", "M"]},
            "b": {"lower": -1, "upper": 1, "feature": False},
        },
        "derived": {
            "l": "log(a + 1)",
            "ab": "a * (b + 2)",
            "p": "poly(a, 3)",
            "k": "cut(b, 0)",
            "f": "b * (s == 'F')",
        },
    }
)
"""The same table with derived columns, and one that is read for them alone."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A cluster for every test process would be many: these tests run by themselves."""
    if hasattr(config, "workerinput"):
        for item in items:
            if "tiers" in item.path.parts:
                item.add_marker(pytest.mark.skip(reason="run alone: pytest tests/tiers -n 0"))


class Job:
    """A table in files, its exact sum, and ways to sum it."""

    def __init__(self, folder: Path) -> None:
        random = np.random.default_rng(0)
        n = 9_000
        self.folder = folder
        self.frame = pd.DataFrame(
            {"a": random.normal(5, 4, n), "s": random.choice(["F", "M", "x"], n), "b": random.normal(0, 1, n)}
        )
        for part in range(3):
            piece = self.frame.iloc[part::3]
            piece.to_parquet(folder / f"part{part}.parquet", row_group_size=600)
            piece.to_csv(folder / f"part{part}.csv", index=False)
        self.expected = self.exact(sum_rows(open_table(self.frame, SCHEMA), SCHEMA, GRID))
        self.parquet, self.csv = str(folder / "*.parquet"), str(folder / "*.csv")
        self.marker = str(folder / "failed-once")

    def exact(self, gram: Gram) -> tuple[int, list[int]]:
        return gram.rows, list(gram.reveal_to_mechanism())

    def sum(self, data: Any, engine: Engine) -> tuple[int, list[int]]:
        table = open_table(data, SCHEMA)
        engine.check(table)
        return self.exact(sum_rows(table, SCHEMA, GRID, engine=engine))

    def sum_failing(self, engine: Engine, how: str) -> tuple[int, list[int]]:
        """As ``sum``, with one worker that fails in the middle of its first attempt at the fourth fragment."""
        work = partial(failing_once, how=how, marker=self.marker, schema=SCHEMA, grid=GRID)
        table = open_table(self.parquet, SCHEMA)
        assert len(table.fragments()) > 8
        total = Gram(GRID)
        for _, sent in gather(table, work, engine, None):
            total.merge(decode_sensitive_sum(sent, GRID))
        assert Path(self.marker).exists()
        return self.exact(total)

    def check_frame(self, data: Any, engine: Engine | str) -> None:
        """Rounds and matrix of a framed release are the same bits as those of one process."""
        # A loss at which an unknown number of rows is looked at as 9,000 are.
        loss, schema = pc.ZCDP(rho="0.0004", neighbours="replace-one"), replace(SCHEMA, row_norm_bound=None)
        here, there = (
            pc.release(given, schema=schema, loss=loss, frame="scales", engine=on, randomness=rehearsal(3))
            for given, on in ((self.frame, "local"), (data, engine))
        )
        assert len(here.certificate.rounds) > 1
        assert there.certificate.rounds == here.certificate.rounds
        assert there.upper == here.upper

    def check_derived(self, data: Any, engine: Engine) -> None:
        """Derived columns are the same bits as in one process."""
        grid = Grid.of(DERIVED)
        here = self.exact(sum_rows(open_table(self.frame, DERIVED), DERIVED, grid))
        table = open_table(data, DERIVED)
        engine.check(table)
        assert self.exact(sum_rows(table, DERIVED, grid, engine=engine)) == here

    def check_law(self, made: Callable[[pd.DataFrame], Any], engine: Engine) -> None:
        """One row of a frame in a cluster touches one row: neighbours differ in the sum by that row's product alone."""
        some = self.frame.iloc[:40].reset_index(drop=True)
        nothing = [math.nan, None, math.inf]
        for place, row in ((0, nothing), (17, [1e308, "F ", -0.0]), (39, [5.0, "\0", math.nan])):
            changed = some.copy()
            changed.loc[place] = row
            before, after = self.sum(made(some), engine), self.sum(made(changed), engine)
            old, new = (self.sum(frame.iloc[[place]], Local()) for frame in (some, changed))
            assert after[0] == before[0] == 40
            moved = [b - a for a, b in zip(before[1], after[1], strict=True)]
            assert moved == [b - a for a, b in zip(old[1], new[1], strict=True)]
            assert any(moved)

    def damage(self) -> None:
        """Spoil the pages of one row group; the metadata stays whole."""
        path = self.folder / "part1.parquet"
        content = bytearray(path.read_bytes())
        at = pq.ParquetFile(path).metadata.row_group(3).column(0).data_page_offset
        content[at : at + 1500] = b"\xff" * 1500
        path.write_bytes(content)


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    monkeypatch.setattr(plan, "FRAGMENT_BYTES", 15_000)
    monkeypatch.setattr(csv_module, "FRAGMENT_BYTES", 40_000)
    return Job(tmp_path)


class Clinic:
    """Visits of persons, one of whom has a thousand all over the table, and what one process sums of them."""

    SECRET = "Rumpelstiltskin"
    RULES: ClassVar[dict[str, dict[str, Any]]] = {
        "rows": {"max_rows_per_person": 3},
        "mean": {"per_person": "mean"},
        "sum": {"per_person": "sum"},
    }

    def __init__(self, folder: Path) -> None:
        draw, n = np.random.default_rng(3), 3_000
        who = draw.integers(0, 400, n).astype(str).astype(object)
        who[draw.permutation(n)[:1000]] = self.SECRET
        who[::41], who[1::43], who[2::47] = " 7 ", None, ""
        self.folder = folder
        self.frame = pd.DataFrame(
            {
                "id": pd.array(who, dtype="string[pyarrow]"),
                "a": np.where(draw.random(n) < 0.1, np.nan, draw.normal(5, 4, n).round(3)),
                "s": draw.choice(["F", "M", "x", ""], n),
                "b": draw.choice([-9.0, 0.0, -0.0, 0.25, 1e300], n),
            }
        )
        for part in range(4):
            piece = self.frame.iloc[part * n // 4 : (part + 1) * n // 4]
            piece.to_parquet(folder / f"visits{part}.parquet", row_group_size=100, index=False)
            piece.to_csv(folder / f"visits{part}.csv", index=False)
        self.parquet, self.csv = str(folder / "visits*.parquet"), str(folder / "visits*.csv")

    def schema(self, rule: str) -> Schema:
        columns = {
            "a": {"lower": 0, "upper": 10},
            "s": {"levels": ["F", "M"]},
            "b": {"lower": -1, "upper": 1, "missing_values": [-9]},
        }
        made = {"columns": columns, "derived": {"a2": "a^2"}, "person": "id", **self.RULES[rule]}
        return Schema.from_dict(made)

    def sum(self, data: Any, engine: Engine, rule: str = "rows") -> tuple[int, list[int]]:
        schema = self.schema(rule)
        table = open_table(data, schema)
        engine.check(table)
        gram = sum_rows(table, schema, Grid.of(schema), engine=engine)
        return gram.rows, list(gram.reveal_to_mechanism())

    def check(self, data: Any, engine: Engine, *rules: str, frame: pd.DataFrame | None = None) -> None:
        """The integers of one process, for some rules or each."""
        for rule in rules or self.RULES:
            assert self.sum(data, engine, rule) == self.sum(
                self.frame if frame is None else frame, Local(), rule
            )

    def with_numbers(self) -> pd.DataFrame:
        """The same visits, where ids are whole numbers and some are not there."""
        ids = self.frame["id"].str.strip().replace({self.SECRET: "-1", "": None})
        return self.frame.assign(id=ids.astype("Int64"))

    def killing(self, engine: Engine, how: str = "kill worker") -> tuple[int, list[int]]:
        """The sum where one worker dies as it has some persons' rows together."""
        schema, marker = self.schema("rows"), self.folder / "failed-once"
        grid = Grid.of(schema)
        total = Gram(grid)
        work = partial(failing_once, how=how, marker=str(marker), schema=schema, grid=grid)
        for _, sent in gather(open_table(self.parquet, schema), work, engine, None):
            total.merge(decode_sensitive_sum(sent, grid))
        assert marker.exists()
        return total.rows, list(total.reveal_to_mechanism())

    def check_release(self, data: Any, engine: Engine | str, capfd: Any) -> None:
        """A whole release, with the rounds of a frame, says that the bound is enforced, and of no id."""
        loss, schema = pc.ZCDP(rho="0.004", neighbours="replace-one"), self.schema("rows")
        made, here = (
            pc.release(rows, schema=schema, loss=loss, frame="scales", engine=on, randomness=rehearsal(3))
            for rows, on in ((data, engine), (self.frame, "local"))
        )
        assert made.upper == here.upper
        assert made.certificate.rounds == here.certificate.rounds
        assert len(made.certificate.rounds) > 1
        made = pc.release(data, schema=schema, loss=loss, engine=engine)
        written, said = made.to_json(), capfd.readouterr()
        assert json.loads(written)["certificate"]["bounds"]["persons"] == "rows"
        assert "enforced" in promise(made)
        assert "not enforced" not in promise(made)
        assert self.SECRET not in written + said.out + said.err + repr(made)


@pytest.fixture
def clinic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clinic:
    monkeypatch.setattr(plan, "FRAGMENT_BYTES", 8_000)
    monkeypatch.setattr(csv_module, "FRAGMENT_BYTES", 8_000)
    return Clinic(tmp_path)


@pytest.fixture
def survey(tmp_path: Path) -> Survey:
    return Survey(tmp_path)


def failing_once(
    fragment: AnyFragment, *, how: str, marker: str, schema: Schema, grid: Grid, report: Any = None
) -> tuple[int, bytes]:
    made = sum_fragment(fragment, schema=schema, grid=grid)
    if fragment.place != 3:
        return made
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return made
    if how == "kill worker":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "kill executor":  # of Spark: the Java process above this Python process
        parent = os.getppid()
        while "java" not in Path(f"/proc/{parent}/comm").read_text():
            parent = int(Path(f"/proc/{parent}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(parent, signal.SIGKILL)
    time.sleep(240 if how == "straggle" else 0)
    return made
