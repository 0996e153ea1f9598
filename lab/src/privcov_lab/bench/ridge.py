"""How well ridge regression from a release predicts, for every column of the papers' tables as the target.

The second metric of Amin et al. (2019). Rows are scaled as in ``privcov bench utility``, there is no intercept,
w = (AAᵀ + 2λnI)⁻¹Ay with the same λ for both fits. Each fit from a repaired symmetric-wishart matrix (pure,
replace-one) is measured on the true rows, beside the fit without noise and beside predicting zero. The error of a
target is its mean squared residual over its mean square, so that a rare indicator counts as much as a common one;
pooled, every squared residual counts alike. Noise is idealized, from a seeded
rehearsal: nothing here is a release.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from privcov.linalg.arrays import Floats
from privcov.models.ridge_problem import solve
from privcov.noise.laws import WishartDifference
from privcov.noise.randomness import rehearsal
from privcov.repair import Observed, repair
from privcov.report.tables import table
from privcov_lab.bench.utility import EPSILONS, scaled_tables

LAMBDA = 0.005  # of the papers' objective; the penalty is 2λn in the units of ``privcov.ridge``


def run(
    data_directory: str | Path,
    *,
    epsilons: Sequence[float] = EPSILONS,
    runs: int = 10,
    datasets: Sequence[str] = ("wine", "airfoil", "adult"),
    regularisation: float = LAMBDA,
    seed: int = 1,
    step: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Mean errors per table and ε; ``step`` is called after each. A missing file is skipped with a reason."""
    results: list[dict[str, Any]] = []
    tables, skipped = scaled_tables(data_directory, datasets)
    for name, rows in tables:
        truth, penalty = rows.T @ rows, 2 * regularisation * len(rows)
        exact = _every_target(truth, penalty)
        for epsilon in epsilons:
            results.append(_line(name, epsilon, truth, exact, len(rows), penalty, runs, seed))
            step()
    return {"bench": "ridge", "mechanism": "symmetric-wishart", "results": results, "skipped": skipped}


def render(result: dict[str, Any]) -> str:
    """The errors as a table for people."""
    headings = [
        "table",
        "ε",
        "targets",
        "private",
        "non-private",
        "excess",
        "pooled",
        "non-private",
        "‖ŵ − w‖ / ‖w‖",
    ]
    words = ("private", "non_private", "excess", "pooled_private", "pooled_non_private", "coefficient_error")
    lines = [
        [
            line["dataset"],
            f"{line['epsilon']:g}",
            str(line["targets"]),
            *(f"{line[word]:.4f}" for word in words),
        ]
        for line in result["results"]
    ]
    parts = [table(headings, lines)] if lines else []
    if lines:
        parts.append(
            "private, non-private: squared residuals / squares of the target, mean over targets; 1 predicts 0"
        )
        parts.append(
            "excess = private − non-private; pooled: squared residuals / squares, each summed over targets"
        )
    parts += [f"skipped {item['dataset']}: {item['reason']}" for item in result["skipped"]]
    return "\n".join(parts)


def _line(
    dataset: str,
    epsilon: float,
    truth: Floats,
    exact: Floats,
    rows: int,
    penalty: float,
    runs: int,
    seed: int,
) -> dict[str, Any]:
    law = WishartDifference(dimension=len(truth), scale=1 / epsilon)  # 1 / (2ε′) with ε′ = ε/2: replace-one
    randomness = rehearsal(seed)
    errors, pooled, distances = [], [], []
    for _ in range(runs):
        noisy = truth + law.simulate(randomness)
        observed = Observed(matrix=noisy, law=law, rows=rows, squared_norm_bound=1.0)
        fitted = _every_target(repair(observed), penalty)
        errors.append(_errors(truth, fitted).mean())
        pooled.append(_pooled(truth, fitted))
        distances.append(np.linalg.norm(fitted - exact) / np.linalg.norm(exact))
    floor = float(_errors(truth, exact).mean())
    return {
        "dataset": dataset,
        "epsilon": epsilon,
        "runs": runs,
        "penalty": penalty,
        "targets": len(truth),
        "private": float(np.mean(errors)),
        "non_private": floor,
        "pooled_private": float(np.mean(pooled)),
        "pooled_non_private": _pooled(truth, exact),
        "excess": float(np.mean(errors)) - floor,
        "coefficient_error": float(np.mean(distances)),
    }


def _every_target(moment: Floats, penalty: float) -> Floats:
    """Row t holds the coefficients that predict column t from the others, 0 for itself."""
    size = len(moment)
    made = np.zeros((size, size))
    for target in range(size):
        rest = np.delete(np.arange(size), target)
        made[target, rest] = solve(moment[np.ix_(rest, rest)], moment[rest, target], penalty)
    return made


def _residuals(truth: Floats, coefficients: Floats) -> Floats:
    """The sum of squared residuals of every target."""
    residual = np.eye(len(truth)) - coefficients
    return np.asarray(((residual @ truth) * residual).sum(axis=1))


def _errors(truth: Floats, coefficients: Floats) -> Floats:
    return np.asarray(_residuals(truth, coefficients) / np.maximum(np.diag(truth), 1e-300))


def _pooled(truth: Floats, coefficients: Floats) -> float:
    return float(_residuals(truth, coefficients).sum() / np.trace(truth))
