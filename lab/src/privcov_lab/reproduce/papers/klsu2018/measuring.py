"""What is measured: errors of the estimators on invented Gaussian rows, and how well rows are preconditioned."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from privcov.linalg.arrays import Floats
from privcov.noise.randomness import Randomness
from privcov.privacy import ZCDP
from privcov.unbounded import estimate_gaussian, mahalanobis_error
from privcov.unbounded.covariance import Facts, precondition_rounds, well_conditioned
from privcov_lab.reproduce.study import Cell, Effort

DIMENSION = 5
RHO = "0.5"
TAIL = "0.1"
ROUNDS = 10
"""Of ``coinpress``: more than any condition number here needs, and rounds too many cost little."""
PRIVATE = ("truncated", "preconditioned", "coinpress")
ROWS = (300, 1000, 3000, 10_000, 30_000, 100_000, 300_000)
CONDITIONS = (1, 10, 100, 1000, 10**4, 10**6, 10**8)
DIMENSIONS = (2, 4, 8, 16, 32)
RHOS = ("0.02", "0.1", "0.5", "2.5", "12.5")
START_ROWS = (1000, 1778, 3162, 5623, 10_000, 17_783, 31_623)
START_CONDITIONS = (10**4, 10**6, 10**8, 10**12)
START_DIMENSIONS = (2, 10, 20)


def errors(
    data: object,
    randomness: Randomness,
    *,
    dimension: int,
    rows: int,
    condition: float,
    rho: str,
    methods: list[str],
    runs: int,
) -> dict[str, dict[str, list[float]]]:
    """Mahalanobis errors, one a table, of every method on the same rows, and of the estimate without privacy.

    ``added`` is the distance in the same norm between a private estimate and the one without privacy.
    """
    variances = _variances(dimension, condition)
    truth = np.diag(variances)
    found: dict[str, list[float]] = {name: [] for name in ("none", *methods)}
    added: dict[str, list[float]] = {name: [] for name in methods}
    for _ in range(runs):
        table = randomness.normals(rows, dimension) * np.sqrt(variances)
        plain = table.T @ table / rows
        found["none"].append(mahalanobis_error(plain, truth))
        for method in methods:
            made = estimate_gaussian(
                table,
                loss=ZCDP(rho=rho, neighbours="replace-one"),
                largest_variance=condition,
                smallest_variance=1,
                method=method,
                rounds=ROUNDS,
                tail=TAIL,
                known_mean=[0.0] * dimension,
                randomness=randomness,
            ).covariance
            found[method].append(mahalanobis_error(made, truth))
            added[method].append(mahalanobis_error(truth + made - plain, truth))
    return {"errors": found, "added": added}


def conditioning(
    data: object, randomness: Randomness, *, dimension: int, rows: int, condition: float, runs: int
) -> dict[str, list[float]]:
    """The smallest and the largest eigenvalue of PΣPᵀ after the lecture's rounds, half of ρ spent on them."""
    variances = _variances(dimension, condition)
    facts = Facts(
        largest_variance=Fraction(condition),
        smallest_variance=Fraction(1),
        tail=Fraction(TAIL),
        rounds=ROUNDS,
    )
    smallest, largest = [], []
    for _ in range(runs):
        table = randomness.normals(rows, dimension) * np.sqrt(variances)
        made, _spent = well_conditioned(table, facts, ZCDP(rho=RHO, neighbours="replace-one"), randomness)
        values = np.linalg.eigvalsh((made.matrix * variances) @ made.matrix.T)
        smallest.append(float(values[0]))
        largest.append(float(values[-1]))
    return {"smallest": smallest, "largest": largest}


def cells(effort: Effort) -> Iterable[Cell]:
    """Rows by condition numbers, then one fact at a time: columns, ρ, and the preconditioner alone."""
    for rows in _some(ROWS, effort, (300, 3000)):
        for condition in _some(CONDITIONS, effort, (1, 10, 10**4)):
            yield _errors(effort, DIMENSION, rows, condition, RHO, PRIVATE)
    for dimension in _some(DIMENSIONS, effort, (2, 4)):
        rows = 3000 if effort.quick else 100_000
        yield _errors(effort, dimension, rows, 2, RHO, ("truncated",))
        yield _errors(effort, dimension, rows, 10**4, RHO, PRIVATE)
    for rho in _some(RHOS, effort, ("0.5", "2.5")):
        yield _errors(effort, DIMENSION, 3000 if effort.quick else 30_000, 2, rho, ("truncated",))
    for condition in (ONE_ROUND, *_some(START_CONDITIONS, effort, (10**4,))):
        for rows in _some(START_ROWS, effort, (1000, 5623)):
            yield _conditioning(effort, DIMENSION, rows, condition)
    for dimension in _some(START_DIMENSIONS, effort, (2,)):
        for rows in _some(START_ROWS, effort, (1000, 5623)):
            yield _conditioning(effort, dimension, rows, 10**4)


ONE_ROUND = 1111
"""A condition number above 1000 that one round of nine tenths brings below it."""


def rounds(condition: float) -> int:
    """How many rounds the lecture takes."""
    return precondition_rounds(Fraction(condition))


def _errors(
    effort: Effort, dimension: int, rows: int, condition: int, rho: str, methods: tuple[str, ...]
) -> Cell:
    runs = effort.runs(20 if rows <= 30_000 else 8 if rows <= 100_000 else 5)
    passes = rounds(condition) * ("preconditioned" in methods) + ROUNDS * ("coinpress" in methods) + 3
    arguments = {
        "dimension": dimension,
        "rows": rows,
        "condition": condition,
        "rho": rho,
        "methods": list(methods),
        "runs": runs,
    }
    return Cell(function="errors", arguments=arguments, cost=runs * rows * dimension * passes * 5e-8)


def _conditioning(effort: Effort, dimension: int, rows: int, condition: int) -> Cell:
    runs = effort.runs(10)
    arguments = {"dimension": dimension, "rows": rows, "condition": condition, "runs": runs}
    cost = runs * rows * dimension * rounds(condition) * 5e-8
    return Cell(function="conditioning", arguments=arguments, cost=cost)


def _some(full: tuple[Any, ...], effort: Effort, quick: tuple[Any, ...]) -> tuple[Any, ...]:
    return quick if effort.quick else full


def _variances(dimension: int, condition: float) -> Floats:
    """From 1 to the condition number, evenly in the logarithm; the methods do not know one direction from another."""
    return np.asarray(np.geomspace(1.0, float(condition), dimension))
