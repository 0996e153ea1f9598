"""Intervals of regressions on framed releases of skewed columns cover what the output names: the shortened rows.

The target of a run is the regression on two hundred thousand other rows of the same kind, shortened as the frame of the
run shortens them; where the cut is counted, not shortened. Intervals count sampling as if errors had one variance, so
that the designs have.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import privcov as pc
from privcov.noise.randomness import rehearsal

ROWS, RUNS = 20_000, 100
Design = Callable[[np.random.Generator, int], np.ndarray]


def lognormal(rng: np.random.Generator, rows: int) -> np.ndarray:
    a = np.exp(rng.normal(0, 0.8, rows))
    b = np.exp(0.5 * np.log(a) + rng.normal(0, 0.6, rows))
    return np.stack([a, b, 2 + 1.5 * a - b + rng.normal(0, 2, rows)], axis=1)


def zero_inflated(rng: np.random.Generator, rows: int) -> np.ndarray:
    gain = np.where(rng.random(rows) < 0.9, 0, np.exp(rng.normal(1, 1, rows)))
    age = rng.normal(40, 12, rows)
    return np.stack([gain, age, 10 + 0.8 * gain + 0.1 * age + rng.gamma(2, 2, rows)], axis=1)


def counts(rng: np.random.Generator, rows: int) -> np.ndarray:
    visits = np.minimum(rng.poisson(rng.gamma(1.5, 1, rows)), 30)
    late = rng.binomial(20, 0.15, rows)
    return np.stack([visits, late, 1 + 0.7 * visits + 0.3 * late + rng.normal(0, 1.5, rows)], axis=1)


DESIGNS: dict[str, tuple[Design, list[tuple[float, float]]]] = {
    "lognormal": (lognormal, [(0, 100), (0, 100), (-50, 150)]),
    "zero-inflated": (zero_inflated, [(0, 500), (0, 120), (0, 1000)]),
    "counts": (counts, [(0, 100), (0, 20), (-50, 100)]),
}


def shortened(rows: np.ndarray, schema: pc.Schema) -> np.ndarray:
    """Rows as a frame shortens them, in original units: plain NumPy, apart from the code that releases."""
    columns = schema.columns
    lower, upper, centre, reach = (
        np.array([getattr(column, word) for column in columns])
        for word in ("lower", "upper", "middle", "reach")
    )
    unit = np.array([column.half_width / column.reach for column in columns])
    scaled = np.clip((np.clip(rows, lower, upper) - centre) / unit, -reach, reach)
    room = float(schema.squared_norm_bound) - 1  # the intercept has 1
    length = np.maximum((scaled**2).sum(axis=1), 1e-300)
    return centre + unit * scaled * np.minimum(1, np.sqrt(room / length))[:, None]


def slopes(rows: np.ndarray) -> np.ndarray:
    design = np.column_stack([np.ones(len(rows)), rows[:, :-1]])
    return np.linalg.lstsq(design, rows[:, -1], rcond=None)[0][1:]


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1, 4])
@pytest.mark.parametrize("name", DESIGNS)
def test_intervals_cover_the_regression_on_shortened_rows(name, epsilon):
    """A hundred runs; each slope's 95 % interval must cover at least 87 times, and not all 200 may.

    At 95 % one slope falls below 87 once in 2,000, and both cover 200 times once in 20,000: about 1 in 170 over all
    six tests, were the seeds not fixed. A coverage of 80 % is found 19 times in 20. On counts at ε = 4, 200 runs
    covered 0.96; with errors whose variance grows with a count 0.84, and least squares without noise covers 0.75 then.
    """
    draw, bounds = DESIGNS[name]
    ends = [{"lower": low, "upper": high} for low, high in bounds]
    schema = pc.Schema.from_dict({"columns": dict(zip("aby", ends, strict=True))})
    loss = pc.ApproxDP(epsilon=epsilon, delta=1e-6, neighbours="replace-one")
    others = draw(np.random.default_rng(7), 200_000)
    covered = np.zeros(2, dtype=int)
    for run in range(RUNS):
        release = pc.release(
            draw(np.random.default_rng(1_000 + run), ROWS),
            schema=schema,
            loss=loss,
            mechanism="gaussian",
            frame="scales",
            arithmetic="idealized",
            randomness=rehearsal(run),
        )
        target = slopes(shortened(others, release.schema))
        ends = pc.ols(release, "y ~ a + b").conf_int()
        covered += [ends[term][0] <= true <= ends[term][1] for term, true in zip("ab", target, strict=True)]
    assert covered.min() >= 87
    assert covered.sum() < 2 * RUNS


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1, 4])
@pytest.mark.parametrize("name", DESIGNS)
def test_intervals_that_count_the_cut_cover_the_regression_of_the_population(name, epsilon):
    """A hundred runs; each slope's 95 % interval must cover the slope of rows of which none is shortened 87 times.

    At 95 % one slope falls below 87 once in 2,000: about 1 in 170 over all six tests, were the seeds not fixed. A
    coverage of 80 % is found 19 times in 20. Intervals may cover always: they allow for more than was cut.
    """
    draw, bounds = DESIGNS[name]
    ends = [{"lower": low, "upper": high} for low, high in bounds]
    schema = pc.Schema.from_dict({"columns": dict(zip("aby", ends, strict=True))})
    loss = pc.ApproxDP(epsilon=epsilon, delta=1e-6, neighbours="replace-one")
    target = slopes(draw(np.random.default_rng(7), 200_000))
    covered, errors = np.zeros(2, dtype=int), []
    for run in range(RUNS):
        release = pc.release(
            draw(np.random.default_rng(1_000 + run), ROWS),
            schema=schema,
            loss=loss,
            mechanism="gaussian",
            frame="scales",
            cut="counted",
            arithmetic="idealized",
            randomness=rehearsal(run),
        )
        fit = pc.ols(release, "y ~ a + b")
        ends = fit.conf_int()
        errors.append([fit.bse[term] for term in "ab"])
        covered += [ends[term][0] <= true <= ends[term][1] for term, true in zip("ab", target, strict=True)]
    assert covered.min() >= 87


def twins(rng: np.random.Generator, rows: int) -> np.ndarray:
    a = rng.normal(40, 10, rows)
    b = a + rng.normal(0, 2, rows)
    return np.stack([a, b, 5 + 0.6 * a - 0.4 * b + rng.normal(0, 3, rows)], axis=1)


def mixed(rows: np.ndarray, schema: pc.Schema) -> np.ndarray:
    """Rows as a frame with a shape shortens them, in original units: plain NumPy, apart from the code that releases."""
    assert schema.shape is not None
    columns = schema.columns
    centre = np.array([column.middle for column in columns])
    unit = np.array([column.half_width / column.reach for column in columns])
    scaled = (rows - centre) / unit
    length = np.linalg.norm(scaled, axis=1)
    scaled *= np.minimum(1, schema.shape.longest / length)[:, None]
    room = float(schema.squared_norm_bound) - 1  # the intercept has 1
    squared = ((scaled @ schema.shape.matrix) ** 2).sum(axis=1)
    return centre + unit * scaled * np.minimum(1, np.sqrt(room / squared))[:, None]


@pytest.mark.slow
def test_intervals_cover_the_regression_on_rows_shortened_by_a_shape():
    """A hundred runs on columns with a correlation of 0.98; each slope must be covered 87 times, and not all 200 times.

    At 95 % one slope falls below 87 once in 2,000, and both cover 200 times once in 20,000. A coverage of 80 % is found
    19 times in 20. With the law of the certificate in the place of the one through the map, intervals are 45 times as
    wide and covered 120 of 120 times: the last line finds that.
    """
    bounds = {name: {"lower": -200, "upper": 300} for name in "aby"}
    schema = pc.Schema.from_dict({"columns": bounds})
    loss = pc.ApproxDP(epsilon=1, delta=1e-6, neighbours="replace-one")
    others = twins(np.random.default_rng(7), 200_000)
    covered, kept = np.zeros(2, dtype=int), 0
    for run in range(RUNS):
        release = pc.release(
            twins(np.random.default_rng(1_000 + run), ROWS),
            schema=schema,
            loss=loss,
            mechanism="gaussian",
            frame="shape",
            arithmetic="idealized",
            randomness=rehearsal(run),
        )
        kept += release.schema.shape is not None
        target = slopes(mixed(others, release.schema))
        ends = pc.ols(release, "y ~ a + b").conf_int()
        covered += [ends[term][0] <= true <= ends[term][1] for term, true in zip("ab", target, strict=True)]
    assert kept == RUNS
    assert covered.min() >= 87
    assert covered.sum() < 2 * RUNS
