"""A survey that uses everything a schema has at once, and a messy table of it, for whatever sums rows."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import privcov as pc
from privcov.engines import Engine
from privcov.noise.randomness import rehearsal

TOML = """
ignore_extra = true
person = "id"
max_rows_per_person = 2
weight = "w"
largest_weight = 10
missing_values = [-9]

[columns.age]
lower = 18
upper = 90
label = "Age at interview"
unit = "years"
missing = "zero-row"

[columns.income]
lower = 0
upper = 1000
missing = "indicator"

[columns.sex]
levels = ["F", "M"]
exhaustive = true
otherwise = "M"

[columns.admitted]
lower = "2020-01-01"
upper = "2024-12-31"
feature = false

[derived]
age2 = "age^2"
log_income = "log(income + 1)"
year = "year(admitted)"
"""
LOSS = pc.ApproxDP(epsilon=3, delta="1e-6", neighbours="add-remove")


def survey_schema(*left_out: str, area: bool = False) -> pc.Schema:
    """The schema without "person" or "weight", where that is asked for; with the column of areas for strata."""
    made = tomllib.loads(TOML)
    together = {"person": "max_rows_per_person", "weight": "largest_weight"}
    for word in left_out:
        del made[word], made[together[word]]
    if area:
        made["columns"] |= {"area": {"levels": ["N", "S"]}}
    return pc.Schema.from_dict(made)


def survey_table(rows: int = 600) -> pd.DataFrame:
    """Rows with missing and unknown cells, values beyond the bounds, and persons with several rows."""
    draw = np.random.default_rng(0)
    days = draw.integers(0, 1800, rows).astype("timedelta64[D]")
    return pd.DataFrame(
        {
            "id": draw.integers(0, 250, rows).astype(str),
            "age": np.where(draw.random(rows) < 0.05, -9, draw.uniform(10, 99, rows).round(1)),
            "income": np.where(draw.random(rows) < 0.1, np.nan, draw.lognormal(5, 1, rows).round(2)),
            "sex": draw.choice(["F", "M", "x"], rows),
            "admitted": np.datetime_as_string(np.datetime64("2020-01-01") + days),
            "w": draw.uniform(-1, 12, rows).round(3),
            "area": draw.choice(["N", "S", "x", ""], rows),
        }
    )


class Survey:
    """The table in memory and in files, where its dates are texts in CSV and typed in Parquet."""

    def __init__(self, folder: Path) -> None:
        self.frame = survey_table()
        self.csv, self.parquet = str(folder / "survey*.csv"), str(folder / "survey*.parquet")
        self.ledger = pc.Ledger.init(folder / "survey.ledger", LOSS)
        for part in range(3):
            rows = self.frame.iloc[part::3]
            rows.to_csv(folder / f"survey{part}.csv", index=False)
            typed = pa.Table.from_pandas(rows, preserve_index=False)
            dates = typed["admitted"].cast(pa.date32())
            typed = typed.set_column(typed.column_names.index("admitted"), "admitted", dates)
            pq.write_table(typed, folder / f"survey{part}.parquet", row_group_size=50)

    def check_sums(self, data: Any, engine: Engine, *left_out: str, **words: Any) -> None:
        """A release is that of one process, to the last bit."""
        here, there = (
            pc.release(
                rows,
                schema=survey_schema(*left_out),
                loss=LOSS,
                mechanism="gaussian",
                engine=on,
                randomness=rehearsal(3),
                **words,
            )
            for rows, on in ((self.frame, "local"), (data, engine))
        )
        assert there.upper == here.upper
        assert bool(here.certificate.rounds) == bool(words)

    def check_strata(
        self, data: Any, engine: Engine, by: str, other: str | None = None, *, persons: bool = False
    ) -> None:
        """So is the release of each stratum, also where rows are in none."""
        left_out = () if persons else ("person",)
        here, there = (
            pc.release(
                rows,
                schema=survey_schema(*left_out, area=True),
                loss=LOSS,
                by=by,
                other=other,
                engine=on,
                randomness=rehearsal(3),
            )
            for rows, on in ((self.frame, "local"), (data, engine))
        )
        assert there.uppers == here.uppers
        assert len(set(here.uppers)) == len(here.names) > 1

    def check_refused(self, data: Any, engine: Engine, code: str, *left_out: str, **words: Any) -> None:
        """In one sentence and what to do, before anything is paid."""
        schema = survey_schema(*left_out, area=bool(words))
        with pytest.raises(pc.PrivcovError, match=rf"^{code} [^.]*\. [^.]*\.$"):
            pc.release(data, schema=schema, loss=LOSS, ledger=self.ledger, engine=engine, **words)
        assert not any(self.ledger.spent.values())
