"""Releases made without a mechanism: exact ones, and ones whose noise is stated."""

from __future__ import annotations

import numpy as np
import pytest

import privcov as pc
from privcov.noise.laws import GaussianEnsemble
from privcov.releases.certificate import Certificate
from privcov.schema.grid import Grid

_DEFAULT = object()


def scaled_rows(schema, columns):
    """One row per person in scaled units, intercept and indicators as the schema orders them."""
    made = []
    for feature in schema.features:
        if feature.kind == "intercept":
            made.append(np.ones(len(next(iter(columns.values())))))
        elif feature.kind == "level":
            made.append((columns[feature.column] == feature.level).astype(float))
        else:
            made.append((columns[feature.column] - feature.middle) / feature.half_width)
    return np.stack(made, axis=1)


@pytest.fixture(scope="session")
def make():
    """A release with the given noise matrix added to the exact moments; by default none, and a law of scale 0."""

    def build(schema, columns, *, noise=0.0, law=_DEFAULT, neighbours="replace-one", randomness="kernel"):
        rows, grid = scaled_rows(schema, columns), Grid.of(schema)
        moment = rows.T @ rows + noise
        unit = 4.0**grid.exponent
        upper = tuple(round(v * unit) for v in moment[np.triu_indices(len(moment))].tolist())
        if law is _DEFAULT:
            law = GaussianEnsemble(dimension=schema.dimension, scale=0.0)
        certificate = Certificate(
            mechanism="gaussian" if law is not None else "eigenvectors",
            options={},
            loss=pc.ZCDP(rho=1, neighbours=neighbours),
            law=law,
            arithmetic="exact",
            randomness=randomness,
            proof="docs/proofs/gaussian.md",
            timing="none",
        )
        count = len(rows) if neighbours == "replace-one" else None
        return pc.Release(schema=schema, rows=count, upper=upper, certificate=certificate)

    return build


@pytest.fixture(scope="session")
def people_schema():
    return pc.Schema.from_dict(
        {
            "columns": {
                "age": {"lower": 18, "upper": 98},
                "area": {"levels": ["n", "s", "w"]},
                "sex": {"levels": ["F", "M"]},
                "educ": {"lower": 1, "upper": 16},
                "income": {"lower": 0, "upper": 500},
            }
        }
    )


@pytest.fixture(scope="session")
def people_columns():
    rng = np.random.default_rng(11)
    n = 700
    age, educ = rng.uniform(18, 98, n), rng.integers(1, 17, n).astype(float)
    area, sex = rng.choice(["n", "s", "w"], n), rng.choice(["F", "M"], n)
    income = 40 + 1.5 * age + 4 * educ + 10 * (area == "w") - 5 * (sex == "M") + rng.normal(0, 30, n)
    return {"age": age, "area": area, "sex": sex, "educ": educ, "income": income}
