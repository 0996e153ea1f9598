"""Section 3.3 and Figure 1: regressions on simulated tables in which the last column is C times the first, plus noise.

Of the two kinds of noise the report names (uniform in section 3.1, normal in 3.3) this is the normal one. A table is
drawn anew in every run and serves every C, so that a line over C is not blurred by different tables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from privcov.linalg.arrays import Floats
from privcov.models.ols import ols
from privcov.models.sweep import sweep
from privcov.noise.randomness import Randomness
from privcov_lab.reproduce.papers.bain2014.ours import Ours, in_units_of
from privcov_lab.reproduce.papers.bain2014.privacy import delivered
from privcov_lab.reproduce.papers.bain2014.published import EPSILON, Formula, Scaled, law, regression

ATTRIBUTES, ROWS = 5, 50_000
Fitted = tuple[Floats, float]
"""Coefficients and s², in original units."""
FORMULAS: tuple[Formula, ...] = ("printed", "classical")


def table(randomness: Randomness, rows: int) -> tuple[Floats, Floats]:
    """The regressors, with means in [100, 10,000] and standard deviations in [0, 100], and the noise of the target."""
    means, stds = np.split(randomness.uniforms(2 * (ATTRIBUTES - 1)), 2)
    regressors = 100 + 9900 * means + 100 * stds * randomness.normals(rows, ATTRIBUTES - 1)
    return regressors, randomness.normals(rows)


def simulated(
    data: Any, randomness: Randomness, *, coefficients: Sequence[float], runs: int, batch: int
) -> dict[str, Any]:
    """For every method and C, β distance, coefficient distance and s²; truth is least squares on the rows."""
    fits = methods()
    measured: dict[str, dict[str, dict[str, list[float]]]] = {
        name: {f"{c:g}": {"beta": [], "coefficient": [], "s2": []} for c in coefficients}
        for name in ["none", *fits]
    }
    negative = dict.fromkeys(FORMULAS, 0)
    for _ in range(runs):
        regressors, errors = table(randomness, ROWS)
        for c in coefficients:
            scaled = Scaled.of(np.column_stack([regressors, c * regressors[:, 0] + errors]))
            truth = regression(scaled, scaled.moments)
            measured["none"][f"{c:g}"]["s2"].append(_short(float(truth.residual_variance)))
            for name, fit in fits.items():
                found, s2 = fit(scaled, randomness)
                kept = measured[name][f"{c:g}"]
                kept["beta"].append(_short(float(np.linalg.norm(found - truth.coefficients))))
                kept["coefficient"].append(_short(abs(float(found[1] - truth.coefficients[1]))))
                kept["s2"].append(_short(s2))
            for formula in FORMULAS:
                noise = law(formula, attributes=ATTRIBUTES).simulate(randomness)
                least = np.linalg.eigvalsh(scaled.released(noise, repair=False))[0]
                negative[formula] += int(least < 0)
    return {"measured": measured, "negative": negative, "matrices": runs * len(coefficients)}


def methods() -> dict[str, Callable[[Scaled, Randomness], Fitted]]:
    """Each release and the regression read from it. ``ours-real`` has the ε that the printed σ really delivers."""

    def published(formula: Formula, repair: bool) -> Callable[[Scaled, Randomness], Fitted]:
        noise = law(formula, attributes=ATTRIBUTES)

        def fit(scaled: Scaled, randomness: Randomness) -> Fitted:
            made = regression(scaled, scaled.released(noise.simulate(randomness), repair=repair))
            return made.coefficients, float(made.residual_variance)

        return fit

    def ours(epsilon: float) -> Callable[[Scaled, Randomness], Fitted]:
        made = Ours.unit(ATTRIBUTES, epsilon=epsilon)
        formula = "y ~ " + " + ".join(f"x{i}" for i in range(1, ATTRIBUTES))

        def fit(scaled: Scaled, randomness: Randomness) -> Fitted:
            fitted = ols(made.release(scaled, randomness), formula)
            width = fitted.moments.target_width * float(scaled.ranges[-1] / 2)
            variance = fitted.uncertainty.residual_variance * width**2
            return in_units_of(scaled, np.array(list(fitted.params.values()))), variance

        return fit

    return {
        "printed": published("printed", True),
        "printed, no repair": published("printed", False),
        "classical": published("classical", True),
        "ours": ours(EPSILON),
        "ours-real": ours(delivered("printed", ATTRIBUTES)),
    }


def regressors(
    data: Any, randomness: Randomness, *, coefficient: float, runs: int, batch: int
) -> dict[str, Any]:
    """β distance of each run when the first one, two, three or all regressors are used, by the printed σ."""
    noise = law("printed", attributes=ATTRIBUTES)
    distances: dict[str, dict[str, list[float]]] = {
        words: {str(k): [] for k in range(1, ATTRIBUTES)} for words in ("repaired", "not repaired")
    }
    for _ in range(runs):
        drawn, errors = table(randomness, ROWS)
        scaled = Scaled.of(np.column_stack([drawn, coefficient * drawn[:, 0] + errors]))
        one = noise.simulate(randomness)
        for words, kept in distances.items():
            matrix = scaled.released(one, repair=words == "repaired")
            for k in range(1, ATTRIBUTES):
                part, places = scaled.only(k), [0, *range(1, k + 1), ATTRIBUTES]
                found = regression(part, matrix[np.ix_(places, places)]).coefficients
                truth = regression(part, part.moments).coefficients
                kept[str(k)].append(_short(float(np.linalg.norm(found - truth))))
    return {"distances": distances}


def example(data: Any, randomness: Randomness, *, rows: int, coefficient: float) -> dict[str, Any]:
    """Table 2: one table and its regression on two columns, with the printed noise; Figure 1: some of its points."""
    drawn, errors = table(randomness, rows)
    scaled = Scaled.of(np.column_stack([drawn[:, :2], coefficient * drawn[:, 0] + errors]))
    exact = sweep(scaled.moments, ["(int)", "x1", "x2"])
    slope, shift = scaled.back
    noise = law("printed", attributes=3).simulate(randomness)
    found = regression(scaled, scaled.released(noise, repair=True))
    points = randomness.normals(60, 2)
    x, y = points[:, 0], 0.8 * points[:, 0] + 0.5 * points[:, 1]
    return {
        "truth": (slope @ exact.coefficients + shift).tolist(),
        "estimates": found.coefficients.tolist(),
        "errors": [None if np.isnan(e) else float(e) for e in found.errors],
        "t_values": [None if np.isnan(t) else float(t) for t in found.t_values],
        "p_values": [None if np.isnan(p) else float(p) for p in found.p_values],
        "x": x.tolist(),
        "y": y.tolist(),
        "line": [float(c) for c in np.polynomial.polynomial.polyfit(x, y, 1)],
    }


def _short(value: float) -> float:
    return float(f"{value:.6g}")
