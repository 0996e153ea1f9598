"""Do 95 % intervals hold the truth 95 % of the time? Simulated tables, released and fitted; naive beside.

The model is y = 0.1 + 0.4 x₁ − 0.2 x₂ + e with x uniform on ±spread and normal e of standard deviation 0.15, in
scaled units. Rows x are drawn; given them the moments with e are drawn directly, from their exact law. The noise is
idealized, drawn from the mechanism's own law by a seeded rehearsal, and rounded to the release's grid, so the fit
runs on a real ``Release``. Coverage is that of the confidence set ``Fit.accepts``; on a part of the tables the ends
of the intervals are found too, and must agree with it. With a small spread the noise drowns the design: intervals
become unbounded, and coverage rises above its level as it should.

``tails`` asks how often slopes that are zero are called significant, at levels down to 0.001 and all together by the
F-test, for every mechanism with a law: noise with heavier tails than normal ones shows there first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from scipy.special import gammaincinv

from privcov import mechanisms
from privcov.linalg.arrays import Floats
from privcov.mechanisms.base import AdditiveMechanism
from privcov.models.ols import Fit, ols
from privcov.noise.randomness import Randomness, rehearsal
from privcov.privacy import ZCDP, ApproxDP, Loss, Neighbours, PureDP
from privcov.releases.certificate import Certificate
from privcov.releases.release import Release
from privcov.report.tables import table
from privcov.schema import Schema
from privcov.schema.grid import Grid

ROWS = (500, 2_000, 10_000, 100_000)
LOSSES: dict[str, Loss] = {
    "symmetric-wishart": PureDP(epsilon=1, neighbours="replace-one"),
    "gaussian": ApproxDP(epsilon=1, delta="1e-6", neighbours="replace-one"),
}
TRUTH = {"(Intercept)": 0.1, "x1": 0.4, "x2": -0.2}
LEAST, MOST = 0.93, 0.975
_ERROR_STD = 0.15
_ENDS_EVERY = 20
_JUDGED = 1000
"""With fewer tables a coefficient's coverage is too uncertain to be held against the target."""
TAILS: dict[str, Loss] = {
    **LOSSES,
    "laplace": LOSSES["symmetric-wishart"],
    "frobenius": LOSSES["symmetric-wishart"],
    "wishart": ApproxDP(epsilon=1, delta="1e-6", neighbours="add-remove"),
    "joint-gaussian": ZCDP(rho="0.1", neighbours="replace-one"),
}
LEVELS = (0.05, 0.01, 0.001)
LARGEST = {0.05: 0.056, 0.01: 0.0125, 0.001: 0.0015}
"""The sizes that tests of these levels may have, but for two standard errors of the simulation."""
_NOTHING = {"(Intercept)": 0.1, "x1": 0.0, "x2": 0.0, "x3": 0.0}


def run(
    *,
    rows: Sequence[int] = ROWS,
    tables: int = 1000,
    spread: float = 1.0,
    seed: int = 1,
    step: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Coverage per mechanism and number of rows; ``step`` is called after each."""
    results = []
    for name, loss in LOSSES.items():
        for count in rows:
            results.append(_cell(name, loss, count, tables, spread, rehearsal(seed)))
            step()
    return {"level": 0.95, "tables": tables, "spread": spread, "coefficients": len(TRUTH), "results": results}


def render(result: dict[str, Any]) -> str:
    """The coverage table in words people can check against the target."""
    lines = [
        [
            line["mechanism"],
            f"{line['rows']:,}",
            f"{line['coverage']:.3f}",
            f"{line['lowest_coefficient']:.3f}",
            f"{line['naive']:.3f}",
            f"{line['r_squared']:.3f}",
            f"{100 * line['score_share']:.0f} %",
            "∞" if line["median_width"] is None else f"{line['median_width']:.3g}",
            f"{100 * line['unbounded_share']:.0f} %",
            {True: "yes", False: "NO", None: "–"}[line["reached"]],
        ]
        for line in result["results"]
    ]
    heads = ["mechanism", "rows", "coverage", "lowest", "naive", "R² cov.", "score", "width", "unbounded"]
    return "\n".join(
        [
            f"Coverage of 95 % intervals over {result['tables']:,} simulated tables, "
            f"{result['coefficients']} coefficients, x on ±{result['spread']:g}; target {LEAST} to {MOST}",
            "",
            table([*heads, "reached"], lines),
            "",
            "lowest: the coefficient covered least; score: tables where auto chose score inversion;",
            f"width, unbounded: of the slope intervals, ends found on every {_ENDS_EVERY}th table.",
        ]
    )


def tails(
    *,
    rows: Sequence[int] = (1_000, 5_000),
    tables: int = 4_000,
    spread: float = 1.0,
    seed: int = 1,
    step: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Sizes of tests of three slopes that are zero, and of the F-test, per mechanism and number of rows."""
    results = []
    for name, loss in TAILS.items():
        for count in rows:
            results.append(_sizes(name, loss, count, tables, spread, rehearsal(seed)))
            step()
    return {"tables": tables, "spread": spread, "levels": list(LEVELS), "results": results}


def render_tails(result: dict[str, Any]) -> str:
    """The sizes as a table, with what is allowed below it."""
    lines = [
        [
            line["mechanism"],
            f"{line['rows']:,}",
            *(f"{size:.4f} ± {error:.4f}" for size, error in zip(line["sizes"], line["errors"], strict=True)),
            *(
                f"{size:.4f} ± {error:.4f}"
                for size, error in zip(line["f_sizes"], line["f_errors"], strict=True)
            ),
            f"{100 * line['score_share']:.0f} %",
            "yes" if line["reached"] else "NO",
        ]
        for line in result["results"]
    ]
    heads = [
        "mechanism",
        "rows",
        *(f"at {100 * level:g} %" for level in LEVELS),
        *(f"F at {100 * level:g} %" for level in LEVELS),
        "score",
        "reached",
    ]
    allowed = ", ".join(f"{most:g} at {100 * level:g} %" for level, most in LARGEST.items())
    return "\n".join(
        [
            f"How often slopes that are zero are called significant, over {result['tables']:,} simulated tables of "
            f"three slopes, x on ±{result['spread']:g}",
            "",
            table(heads, lines),
            "",
            f"reached: at most {allowed}, and for F the same, within two standard errors.",
        ]
    )


def _sizes(
    name: str, loss: Loss, rows: int, tables: int, spread: float, randomness: Randomness
) -> dict[str, Any]:
    p_values, whole, score = [], [], 0
    for _ in range(tables):
        release = simulated_release(name, loss, rows, randomness, spread=spread, truth=_NOTHING)
        fit = ols(release, "y ~ x1 + x2 + x3")
        p_values.append([fit.pvalues[term] for term in list(_NOTHING)[1:]])
        assert fit.f_test is not None, "there are slopes"
        whole.append(fit.f_test.p_value)
        score += fit.method == "score"
    below = np.array([[np.mean(np.array(each) < level) for level in LEVELS] for each in p_values])
    sizes, errors = below.mean(axis=0), below.std(axis=0) / np.sqrt(tables)
    joint = np.array([np.mean(np.array(whole) < level) for level in LEVELS])
    doubts = np.sqrt(joint * (1 - joint) / tables)
    limits = list(LARGEST.values())
    pairs = [*zip(sizes, errors, limits, strict=True), *zip(joint, doubts, limits, strict=True)]
    return {
        "mechanism": name,
        "rows": rows,
        "sizes": sizes.tolist(),
        "errors": errors.tolist(),
        "f_sizes": joint.tolist(),
        "f_errors": doubts.tolist(),
        "score_share": score / tables,
        "reached": bool(all(found <= most + 2 * doubt for found, doubt, most in pairs)),
    }


def simulated_release(
    name: str,
    loss: Loss,
    rows: int,
    randomness: Randomness,
    *,
    spread: float = 1.0,
    truth: Mapping[str, float] = TRUTH,
) -> Release:
    """One table of ``rows`` rows, its moments drawn directly, with the noise of a mechanism: a rehearsal."""
    schema, moments = _schema(len(truth) - 1), _moments(rows, spread, randomness, list(truth.values()))
    public = rows if loss.neighbours is Neighbours.REPLACE_ONE else None
    return noisy_release(schema, moments, name, loss, public, randomness)


@cache
def _schema(slopes: int) -> Schema:
    names = [*(f"x{place + 1}" for place in range(slopes)), "y"]
    return Schema.from_dict({"columns": {name: {"lower": -1, "upper": 1} for name in names}})


def noisy_release(
    schema: Schema, moments: Floats, name: str, loss: Loss, rows: int | None, randomness: Randomness
) -> Release:
    """A rehearsal of a release: sums of products in scaled units, with idealized noise of a mechanism."""
    mechanism, grid = mechanisms.find(name, loss=loss), Grid.of(schema)
    assert isinstance(mechanism, AdditiveMechanism), "the bench knows mechanisms with a law"
    law = mechanism.law(loss=loss, grid=grid)
    noisy = moments + law.simulate(randomness)
    scaled = noisy[np.triu_indices(len(noisy))] * 4.0**grid.exponent
    return Release(
        schema=schema,
        rows=rows,
        upper=tuple(round(value) for value in scaled.tolist()),
        certificate=Certificate(
            mechanism=name,
            options={},
            loss=loss,
            law=law,
            arithmetic="idealized",
            randomness="rehearsal",
            proof=mechanism.proof,
            timing=mechanism.timing_note,
        ),
    )


def _moments(rows: int, spread: float, randomness: Randomness, truth: Sequence[float]) -> Floats:
    """Σ zzᵀ of rows z = (1, x₁, x₂, …, y). Given x, Xᵀe is N(0, s²XᵀX) and eᵀe a χ² beside it, independent."""
    k = len(truth)
    drawn_x = randomness.uniforms((k - 1) * rows).reshape(rows, k - 1)
    x = np.column_stack([np.ones(rows), spread * (2 * drawn_x - 1)])
    design, drawn = x.T @ x, randomness.normals(k)
    rest = 2 * float(gammaincinv((rows - k) / 2, randomness.uniforms(1)[0]))  # χ² by its inverse distribution
    basis = np.empty((k + 1, k + 1))
    basis[:k, :k] = design
    basis[k, :k] = basis[:k, k] = _ERROR_STD * (np.linalg.cholesky(design) @ drawn)
    basis[k, k] = _ERROR_STD**2 * (float(drawn @ drawn) + rest)
    to_columns = np.eye(k + 1)
    to_columns[k, :k] = truth
    return np.asarray(to_columns @ basis @ to_columns.T)


def _cell(
    name: str, loss: Loss, rows: int, tables: int, spread: float, randomness: Randomness
) -> dict[str, Any]:
    explained = spread**2 / 3 * (TRUTH["x1"] ** 2 + TRUTH["x2"] ** 2)
    share = explained / (explained + _ERROR_STD**2)
    held, naive, r_squared, score, widths = [], [], 0, 0, []
    for i in range(tables):
        release = simulated_release(name, loss, rows, randomness, spread=spread)
        fit = ols(release, "y ~ x1 + x2")
        held.append([fit.accepts(term, value) for term, value in TRUTH.items()])
        plain = ols(release, "y ~ x1 + x2", naive=True)
        naive.append([plain.accepts(term, value) for term, value in TRUTH.items()])
        low, high = fit.rsquared_interval()
        r_squared += low <= share <= high
        score += fit.method == "score"
        if i % _ENDS_EVERY == 0:
            widths += _slope_widths(fit, held[-1])
    coverage, middle = np.mean(held, axis=0), float(np.median(widths))
    return {
        "mechanism": name,
        "rows": rows,
        "coverage": float(coverage.mean()),
        "lowest_coefficient": float(coverage.min()),
        "naive": float(np.mean(naive)),
        "r_squared": r_squared / tables,
        "score_share": score / tables,
        "median_width": middle if np.isfinite(middle) else None,
        "unbounded_share": float(np.mean(np.isinf(widths))),
        "reached": bool(coverage.min() >= LEAST and coverage.max() <= MOST) if tables >= _JUDGED else None,
    }


def _slope_widths(fit: Fit, held: Sequence[bool]) -> list[float]:
    """Widths of the slope intervals, after checking that their ends say what the confidence set says."""
    ends = fit.conf_int()
    for (term, value), inside in zip(TRUTH.items(), held, strict=True):
        low, high = ends[term]
        if inside and not low <= value <= high:
            raise AssertionError(f"{term}: the interval leaves out a value that the confidence set holds")
    return [ends[term][1] - ends[term][0] for term in ("x1", "x2")]
