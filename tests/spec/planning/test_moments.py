"""Public moments: guesses beside the schema, a surrogate table, and guesses no table could have."""

from __future__ import annotations

import numpy as np
import pytest

import privcov as pc
from privcov.errors import InputError, ParameterError
from privcov.planning.moments import PublicMoments


def test_guesses_become_the_moments_of_a_table_that_has_them(schema):
    """Against the plain sums over a large made-up table with those means, deviations and shares."""
    made = PublicMoments.guessed(
        schema,
        {
            "columns": {
                "age": {"mean": 40, "std": 10},
                "income": {"mean": 80, "std": 30},
                "sex": {"shares": [0.3, 0.6]},
            },
            "correlations": {"age, income": 0.5},
        },
    )
    rng = np.random.default_rng(1)
    n = 400_000
    age, noise = rng.normal(size=n), rng.normal(size=n)
    income = 0.5 * age + np.sqrt(0.75) * noise
    pick = rng.uniform(size=n)
    z = np.column_stack(
        [
            np.ones(n),
            (40 + 10 * age - 50) / 50,
            pick < 0.3,
            (pick >= 0.3) & (pick < 0.9),
            (80 + 30 * income - 100) / 100,
        ]
    ).astype(float)
    assert made.matrix == pytest.approx(z.T @ z / n, abs=0.005)


def test_guesses_about_missing_cells_become_the_moments_of_a_table_that_lacks_them():
    kinds = {
        "age": {"lower": 0, "upper": 100},
        "sex": {"levels": ["F", "M"]},
        "kids": {"lower": 0, "upper": 10},
    }
    schema = pc.Schema.from_dict(
        {"columns": {n: {**about, "missing": "indicator"} for n, about in kinds.items()}}
    )
    guesses = {"age": {"mean": 40, "std": 10, "missing": 0.2}, "sex": {"shares": [0.3, 0.6]}}
    made = PublicMoments.guessed(schema, {"columns": guesses})
    rng = np.random.default_rng(2)
    n = 400_000
    lost, sex, alone = rng.uniform(size=n) < 0.2, rng.uniform(size=n), rng.uniform(size=n) < 0.1
    age, kids = (rng.normal(40, 10, n) - 50) / 50, rng.uniform(-1, 1, n)
    z = np.column_stack(
        [np.ones(n), np.where(lost, 0, age), lost, sex < 0.3, (sex >= 0.3) & (sex < 0.9), sex >= 0.9,
         np.where(alone, 0, kids), alone]
    ).astype(float)  # fmt: skip
    assert made.matrix == pytest.approx(z.T @ z / n, abs=0.005)
    for bad in (
        {"age": {"mean": 40, "std": 10, "missing": 1}},
        {"sex": {"shares": [0.5, 0.5], "missing": 0.1}},
    ):
        with pytest.raises(ParameterError, match="E262"):
            PublicMoments.guessed(schema, {"columns": bad})


def test_a_surrogate_has_the_moments_of_its_rows(people, schema):
    found = pc.surrogate(people, schema=schema)
    rows = [line.split(",") for line in people.read_text().split()[1:]]
    z = np.array([[1, float(a) / 50 - 1, s == "F", s == "M", float(i) / 100 - 1] for a, s, i in rows])
    assert found.matrix == pytest.approx(z.T @ z / len(rows), abs=1e-5)
    assert found.spectrum == pytest.approx(np.linalg.eigvalsh(z.T @ z / len(rows))[::-1], abs=1e-5)


def test_an_empty_surrogate_is_refused():
    schema = pc.Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}}})
    with pytest.raises(InputError, match="E108"):
        pc.surrogate(np.zeros((0, 1)), schema=schema)


@pytest.mark.parametrize(
    "given",
    [
        {"columns": {"height": {"mean": 1, "std": 1}}},
        {"columns": {"age": {"mean": 101, "std": 1}}},
        {"columns": {"age": {"mean": 50, "std": 0}}},
        {"columns": {"age": {"mean": 50}}},
        {"columns": {"age": {"mean": "x", "std": 1}}},
        {"columns": {"age": {"mean": 50, "std": 1, "skew": 0}}},
        {"columns": {"sex": {"shares": [0.5]}}},
        {"columns": {"sex": {"shares": [0.9, 0.9]}}},
        {"columns": {"sex": {"shares": [-0.1, 0.9]}}},
        {"columns": {"sex": {"mean": 0.5}}},
        {"columns": 3},
        {"correlations": {"age": 0.5}},
        {"correlations": {"age, age": 0.5}},
        {"correlations": {"age, height": 0.5}},
        {"correlations": {"age, income": 2}},
        {"correlations": {"age, income": 1, "age, sex[F]": 1}},
        {"columns": {}, "means": {}},
    ],
)
def test_guesses_that_make_no_sense_are_refused(schema, given):
    with pytest.raises(ParameterError, match="E262"):
        PublicMoments.guessed(schema, given)


def test_a_schema_file_may_carry_guesses_that_no_release_sees(tmp_path):
    path = tmp_path / "s.toml"
    plain = "[columns.age]\nlower = 0\nupper = 100\n"
    path.write_text(plain + "[planning.columns.age]\nmean = 40\nstd = 12.5\n")
    schema = pc.Schema.read(path)
    found = PublicMoments.read(schema, path)
    assert found is not None
    assert found.matrix[1, 1] == pytest.approx(0.2**2 + 0.25**2)
    path.write_text(plain)
    assert pc.Schema.read(path) == schema
    assert PublicMoments.read(schema, path) is None


def test_a_column_of_one_level_is_guessed_to_vary():
    """Without it other cells count as nothing. A column that does not vary would need infinitely many rows."""
    columns = {"age": {"lower": 0, "upper": 100}, "smoker": {"levels": [1]}}
    schema, loss = pc.Schema.from_dict({"columns": columns}), pc.PureDP(epsilon=1, neighbours="replace-one")
    assert pc.plan(schema=schema, rows=1_000, loss=loss).outlook().high < 2
    table = np.array([[35.0, 0.0], [61.0, 1.0]])
    assert pc.check(table, schema=schema, loss=loss).rows_for["useful"] < 20_000
