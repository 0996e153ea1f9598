"""Figures 2 to 5 and 18 to 20, Tables 3 and 4: the Census sample, and income ~ age + educ.

The report had 1,223,992 rows, of which the public extract holds 10,000 at random. At the report's size the table is a
bootstrap of those: drawn with replacement, known by its moments alone, and called a bootstrap wherever it is shown.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from privcov.linalg.arrays import Floats
from privcov.models.ols import ols
from privcov.models.sweep import sweep
from privcov.noise.randomness import Randomness, rehearsal
from privcov_lab.reproduce.papers.bain2014.ours import Ours
from privcov_lab.reproduce.papers.bain2014.published import Formula, Scaled, draws, law, regression

NAMES = ("age", "educ", "income")
REPORT_ROWS = 1_223_992
_AT_ONCE = 200


def people(data: Any, *, rows: int | None) -> Scaled:
    """The extract as it is, or a bootstrap of it with so many rows: the same one in every cell."""
    found = data.load("pums")
    columns = np.column_stack([found.rows[:, found.columns.index(name)] for name in NAMES]).astype(np.float64)
    if rows is None:
        return Scaled.of(columns)
    drawn = (rehearsal(rows).uniforms(rows) * len(columns)).astype(np.intp)
    return Scaled.of(columns, np.bincount(drawn, minlength=len(columns)).astype(np.float64))


def moments(
    data: Any, randomness: Randomness, *, formula: Formula, rows: int | None, runs: int
) -> dict[str, Any]:
    """Second moments as they are and as released, in original units; offsets counted n times, and once as printed."""
    table = people(data, rows=rows)
    truth = table.units @ table.moments @ table.units.T
    noisy = table.moments + draws(law(formula, attributes=len(NAMES)), randomness, runs)
    made = np.stack([table.upscaled(matrix, offsets=table.rows) for matrix in noisy])
    once = table.upscaled(table.moments, offsets=1.0)
    printed = sweep(once, ["(int)", *NAMES[:2]]).coefficients
    return {
        "rows_used": table.rows,
        "truth": truth.tolist(),
        "first": made[0].tolist(),
        "variance": (made[:, 1, 1] / table.rows).tolist(),
        "covariance": (made[:, 1, 2] / table.rows).tolist(),
        "offsets_once": printed.tolist(),
    }


def true_model(data: Any, randomness: Randomness, *, rows: int | None) -> dict[str, Any]:
    """Table 4: least squares on the rows."""
    table = people(data, rows=rows)
    return _told(regression_of(table, table.moments))


def published_model(
    data: Any, randomness: Randomness, *, formula: Formula, rows: int | None, runs: int
) -> dict[str, Any]:
    """Table 3 and Figures 18 to 20: the regression of every run, and how often its naive intervals hold the truth."""
    table = people(data, rows=rows)
    truth = regression_of(table, table.moments)["estimates"]
    noise = law(formula, attributes=len(NAMES))
    estimates, held, starred, negative = [], [], [], 0
    first: dict[str, Floats] | None = None
    for start in range(0, runs, _AT_ONCE):
        drawn = draws(noise, randomness, min(_AT_ONCE, runs - start))
        made = regression(table, table.released(drawn, repair=True))
        negative += int((np.linalg.eigvalsh(table.released(drawn, repair=False))[:, 0] < 0).sum())
        estimates.append(made.coefficients)
        held.append(np.abs(made.coefficients - truth) <= 1.96 * made.errors)
        starred.append((made.p_values < 0.05).all(axis=1))
        if first is None:
            first = regression_of(table, table.released(drawn[0], repair=True))
    assert first is not None
    return {
        **_told(first),
        "truth": truth.tolist(),
        "runs_of": np.concatenate(estimates).tolist(),
        "held": np.concatenate(held).mean(axis=0).tolist(),
        "significant": float(np.concatenate(starred).mean()),
        "negative": negative,
    }


def our_model(
    data: Any, randomness: Randomness, *, epsilon: float, rows: int | None, runs: int
) -> dict[str, Any]:
    """The same from the library's release and least squares, whose intervals know the noise."""
    table = people(data, rows=rows)
    truth = regression_of(table, table.moments)["estimates"]
    ours = Ours.of(table, NAMES, epsilon=epsilon)
    estimates, held, starred = [], [], []
    first: dict[str, Floats] | None = None
    for _ in range(runs):
        fit = ols(ours.release(table, randomness), "income ~ age + educ")
        estimates.append(list(fit.params.values()))
        held.append([fit.accepts(name, value) for name, value in zip(fit.params, truth, strict=True)])
        starred.append(all(p < 0.05 for p in fit.pvalues.values()))
        if first is None:
            told = (fit.params, fit.bse, fit.tvalues, fit.pvalues)
            names = ("estimates", "errors", "t_values", "p_values")
            first = {name: np.array(list(values.values())) for name, values in zip(names, told, strict=True)}
    assert first is not None
    return {
        **_told(first),
        "truth": truth.tolist(),
        "runs_of": estimates,
        "held": np.mean(held, axis=0).tolist(),
        "significant": float(np.mean(starred)),
    }


def regression_of(table: Scaled, matrix: Floats) -> dict[str, Floats]:
    """One table of coefficients, in the report's order and units."""
    made = regression(table, matrix)
    return {
        "estimates": made.coefficients,
        "errors": made.errors,
        "t_values": made.t_values,
        "p_values": made.p_values,
    }


def _told(columns: dict[str, Floats]) -> dict[str, Any]:
    """As JSON: None where noise has left a square root of a negative number."""
    return {
        name: [None if np.isnan(value) else float(value) for value in values]
        for name, values in columns.items()
    }
