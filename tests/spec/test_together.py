"""Persons, weights, derived columns, exhaustive levels, dates and labels in one schema: they fit together."""

from __future__ import annotations

import tomllib

import numpy as np
import pandas as pd
import pytest
from survey import LOSS, survey_schema, survey_table

import privcov as pc
from privcov.noise.randomness import rehearsal
from privcov.schema.codebook import codebook_of, schema_of
from privcov.schema.grid import Grid
from privcov.summing.bounding import Bounding
from privcov.summing.sum import sum_rows
from privcov.table import open_table


@pytest.fixture(scope="module")
def schema() -> pc.Schema:
    return survey_schema()


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return survey_table()


def gram(data, schema):
    grid = Grid.of(schema)
    return sum_rows(open_table(data, schema), schema, grid).reveal_to_mechanism()


def test_a_file_says_it_all_and_reads_back(schema):
    assert pc.Schema.from_dict(tomllib.loads(schema.to_toml())) == schema
    part = schema.subset(["age2", "sex"])
    assert [column.name for column in part.read_columns] == ["age", "sex", "w"]
    assert part.left_out == ("income", "admitted")
    assert pc.Schema.from_dict(tomllib.loads(part.to_toml())) == part
    rest = schema.subset(["age", "income", "log_income"])
    assert {c.name for c in part.merged(rest).read_columns} >= {"age", "sex", "income"}
    columns = schema_of(codebook_of(schema), "codebook").columns
    assert [column.name for column in columns] == ["age", "income", "sex"]


def test_every_reader_sums_the_same_integers(schema, table, tmp_path):
    table.to_csv(tmp_path / "t.csv", index=False)
    table.to_parquet(tmp_path / "t.parquet", index=False)
    frame = gram(table, schema)
    for name in ("t.csv", "t.parquet"):
        assert (gram(tmp_path / name, schema) == frame).all()
    shuffled = table.sample(frac=1, random_state=1)
    assert (gram(shuffled, schema) == frame).all()


def test_no_row_is_longer_than_the_bound_and_one_person_moves_two_rows(schema, table):
    grid = Grid.of(schema)
    bounding = Bounding.of(schema, grid)
    rows = np.concatenate([bounding.rows(block) for block in open_table(table, schema).blocks()])
    squared = (rows**2).sum(axis=1)
    assert squared.max() <= grid.squared_norm_bound
    assert squared.max() > 0.5 * grid.squared_norm_bound
    assert len(rows) < len(table)
    whose = table["id"].value_counts().index[0]  # somebody who has more rows than count
    others = table[table["id"] != whose]
    left = np.concatenate([bounding.rows(block) for block in open_table(others, schema).blocks()])
    assert len(rows) - len(left) == 2
    kept = {row.tobytes() for row in rows}
    assert all(row.tobytes() in kept for row in left)


def test_models_read_the_release_and_its_file(schema, table, tmp_path):
    made = pc.release(table, schema=schema, loss=LOSS)
    made.save(tmp_path / "r.json")
    read = pc.load(tmp_path / "r.json")
    assert read.schema == made.schema
    assert read.schema.person is None
    assert read.schema.enforced
    assert "id" not in (tmp_path / "r.json").read_text().split('"')
    correlation = read.correlation(repair="none")
    first, second = read.columns.index("sex[F]") - 1, read.columns.index("sex[M]") - 1
    others = [place for place in range(len(correlation)) if place not in (first, second)]
    assert np.allclose(correlation[first, others], -correlation[second, others])
    assert set(pc.ols(read, "log_income ~ age + sex").params) == {"(Intercept)", "age", "sex[M]"}
    assert pc.ols(read, "I(age^2) ~ age").params


def test_the_release_is_near_the_slow_way(schema, table):
    """Weights, derived cells and levels by pandas, of one row each, so that none is dropped; noise of a huge loss."""
    loss = pc.ZCDP(rho=10**9, neighbours="add-remove")
    once = table.drop_duplicates("id")
    made = pc.release(once, schema=schema, loss=loss, randomness=rehearsal(1))
    kept = once[once["age"] != -9]
    share = np.clip(kept["w"], 0, 10) / 10
    age = kept["age"].clip(18, 90)
    assert made.count() == pytest.approx(share.sum(), rel=1e-3)
    means = dict(zip(made.columns[1:], made.mean(), strict=True))
    assert means["age"] == pytest.approx(np.average(age, weights=share), rel=1e-3)
    assert means["age2"] == pytest.approx(np.average(age**2, weights=share), rel=1e-3)
    assert means["sex[F]"] == pytest.approx(np.average(kept["sex"] == "F", weights=share), abs=1e-3)
    year = kept["admitted"].str[:4].astype(int)
    assert means["year"] == pytest.approx(np.average(year, weights=share), rel=1e-6)


def test_strata_of_all_that_are_the_sums_of_their_rows(schema, table):
    """Each stratum of a column whose other cells count as one of its levels, against a release of its rows alone."""
    loss = pc.ZCDP(rho=10**9, neighbours="add-remove")
    strata = pc.release(table, schema=schema, loss=loss, by="sex", randomness=rehearsal(1))
    assert strata.names == ("F", "M")
    once = table.drop_duplicates("id")  # persons are gathered before rows fall into strata
    strata = pc.release(once, schema=schema, loss=loss, by="sex", randomness=rehearsal(1))
    for name, rows in (("F", once[once["sex"] == "F"]), ("M", once[once["sex"] != "F"])):
        alone = pc.release(
            rows, schema=schema.without(["sex"]), loss=loss, mechanism="gaussian", randomness=rehearsal(2)
        )
        found = strata[name]
        assert found.columns == alone.columns
        assert found.mean() == pytest.approx(alone.mean(), rel=1e-2, abs=1e-3)
        assert found.count() == pytest.approx(alone.count(), rel=1e-2)
