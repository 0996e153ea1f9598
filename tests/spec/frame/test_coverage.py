"""Intervals of regressions on framed releases of skewed columns cover what the output names: the population.

The target of a run is the regression on two hundred thousand other rows of the same kind, of which none is shortened.
Intervals count sampling as if errors had one variance, so that the designs have.
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


def slopes(rows: np.ndarray) -> np.ndarray:
    design = np.column_stack([np.ones(len(rows)), rows[:, :-1]])
    return np.linalg.lstsq(design, rows[:, -1], rcond=None)[0][1:]


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1, 4])
@pytest.mark.parametrize("name", DESIGNS)
def test_intervals_cover_the_regression_of_the_population(name, epsilon):
    """A hundred runs; each slope's 95 % interval must cover at least 87 times, with errors below half the slope.

    At 95 % one slope falls below 87 once in 2,000: about 1 in 170 over all six tests, were the seeds not fixed. A
    coverage of 80 % is found 19 times in 20. Without factors the slopes of the lognormal design are covered 0 times.
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
            arithmetic="idealized",
            randomness=rehearsal(run),
        )
        fit = pc.ols(release, "y ~ a + b")
        ends = fit.conf_int()
        errors.append([fit.bse[term] for term in "ab"])
        covered += [ends[term][0] <= true <= ends[term][1] for term, true in zip("ab", target, strict=True)]
    assert covered.min() >= 87
    assert epsilon < 4 or (np.median(errors, axis=0) < np.abs(target) / 2).all()


def twins(rng: np.random.Generator, rows: int) -> np.ndarray:
    a = rng.normal(40, 10, rows)
    b = a + rng.normal(0, 2, rows)
    return np.stack([a, b, 5 + 0.6 * a - 0.4 * b + rng.normal(0, 3, rows)], axis=1)


@pytest.mark.slow
def test_intervals_cover_the_regression_of_the_population_through_a_shape():
    """A hundred runs on columns with a correlation of 0.98; each slope must be covered 87 times, with small errors.

    At 95 % one slope falls below 87 once in 2,000. A coverage of 80 % is found 19 times in 20. With the law of the
    certificate in the place of the one through the map, intervals are 45 times as wide: the last line finds that.
    """
    bounds = {name: {"lower": -200, "upper": 300} for name in "aby"}
    schema = pc.Schema.from_dict({"columns": bounds})
    loss = pc.ApproxDP(epsilon=1, delta=1e-6, neighbours="replace-one")
    target = slopes(twins(np.random.default_rng(7), 200_000))
    covered, kept, errors = np.zeros(2, dtype=int), 0, []
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
        fit = pc.ols(release, "y ~ a + b")
        ends = fit.conf_int()
        errors.append(list(fit.bse.values())[1:])
        covered += [ends[term][0] <= true <= ends[term][1] for term, true in zip("ab", target, strict=True)]
    assert kept == RUNS
    assert covered.min() >= 87
    assert np.median(errors) < 0.3
