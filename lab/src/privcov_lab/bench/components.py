"""How often intervals of principal components hold what they should, and how wide they are for it.

Tables are drawn from a population whose covariance is known, summed without noise, and released with noise of the law
of a mechanism. Asked of every component, or group that cannot be told apart: whether the interval for this table holds
the sum of the table's own eigenvalues, whether the one for the population holds the population's, and how wide each is
over that of an interval that knows the spread of its own errors (3.92 standard deviations, from their median absolute
deviation). Loadings are asked of components that stand alone. A group of all columns is one line.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from privcov.linalg.arrays import Floats
from privcov.models.pca import PCAFit, pca
from privcov.models.spectrum import to_correlation
from privcov.noise.randomness import rehearsal
from privcov.privacy import ZCDP, ApproxDP, Loss, PureDP
from privcov.report.tables import number, table
from privcov.schema import Schema
from privcov_lab.bench.honesty import Draws
from privcov_lab.bench.inference import noisy_release

_LEVEL = 0.95
Errors = Literal["equal", "conservative"]
_REPLACED, _CLEAR = "replace-one", ZCDP(rho=10**8, neighbours="replace-one")
LOSSES: dict[str, tuple[str, Loss]] = {
    "gaussian": ("gaussian", ApproxDP(epsilon=4, delta="1e-6", neighbours=_REPLACED)),
    "gaussian, count private": ("gaussian", ApproxDP(epsilon=4, delta="1e-6", neighbours="add-remove")),
    "wishart": ("symmetric-wishart", PureDP(epsilon=4, neighbours=_REPLACED)),
    "laplace": ("laplace", PureDP(epsilon=4, neighbours=_REPLACED)),
    "hardly any": ("gaussian", _CLEAR),
}


@dataclass(frozen=True, kw_only=True)
class Design:
    """A way to draw rows in scaled units, and the moments of the population."""

    schema: Schema
    draw: Callable[[Draws, int], Floats]
    words: dict[str, Any] = field(default_factory=dict)


def _numbers(count: int) -> Schema:
    return Schema.from_dict({"columns": {f"c{i}": {"lower": -1, "upper": 1} for i in range(count)}})


def _mixed(deviations: Floats) -> Callable[[Draws, int], Floats]:
    basis = np.linalg.qr(Draws(7).normal(0, 1, (len(deviations), len(deviations))))[0]
    return lambda rng, rows: np.clip(rng.normal(0, 1, (rows, len(deviations))) * deviations @ basis.T, -1, 1)


def _factor(rng: Draws, rows: int) -> Floats:
    return np.clip(rng.normal(0, 0.2, (rows, 10)) + rng.normal(0, 0.15, (rows, 1)), -1, 1)


def _levelled(rng: Draws, rows: int) -> Floats:
    levels = np.eye(4)[rng.choice(4, rows, p=np.array([0.4, 0.3, 0.2, 0.1]))]
    return np.hstack([rng.uniform(-1, 1, (rows, 2)) * [0.9, 0.6], levels])


def _student(rng: Draws, shape: tuple[int, int]) -> Floats:
    """Of five degrees of freedom: a normal number over the root mean square of five others."""
    return np.asarray(rng.normal(0, 1, shape) / np.sqrt((rng.normal(0, 1, (5, *shape)) ** 2).mean(axis=0)))


def _independent(one: Callable[[Draws, tuple[int, int]], Floats], std: float) -> Design:
    """Four columns, the largest with bounds of twelve of its standard deviations."""
    sizes = np.array([1.0, 0.8, 0.6, 0.45]) / 12 / std
    return Design(schema=_numbers(4), draw=lambda rng, rows: np.clip(one(rng, (rows, 4)) * sizes, -1, 1))


_FALLING = Design(schema=_numbers(6), draw=_mixed(np.array([0.4, 0.33, 0.27, 0.2, 0.15, 0.1])))
_LEVELS = {"x": {"lower": -1, "upper": 1}, "y": {"lower": -1, "upper": 1}, "g": {"levels": list("nswe")}}
DESIGNS: dict[str, Design] = {
    "six columns, spectrum falling": _FALLING,
    "six columns alike": Design(schema=_numbers(6), draw=_mixed(np.full(6, 0.25))),
    "a factor and nine alike": Design(schema=_numbers(10), draw=_factor),
    "two columns and four levels": Design(schema=Schema.from_dict({"columns": _LEVELS}), draw=_levelled),
    "correlations of the factor's columns": Design(
        schema=_numbers(10), draw=_factor, words={"correlation": True}
    ),
    "t with 5 degrees of freedom": _independent(_student, 1.29),
    "lognormal, σ = 1": _independent(lambda rng, shape: np.exp(rng.normal(0, 1, shape)) - 1.65, 2.16),
}
CELLS: tuple[tuple[str, str, int, Errors], ...] = (
    ("six columns, spectrum falling", "gaussian", 800, "equal"),
    ("six columns, spectrum falling", "gaussian", 5_000, "equal"),
    ("six columns, spectrum falling", "gaussian, count private", 5_000, "equal"),
    ("six columns, spectrum falling", "hardly any", 300, "equal"),
    ("six columns, spectrum falling", "gaussian", 5_000, "conservative"),
    ("six columns alike", "wishart", 2_000, "equal"),
    ("a factor and nine alike", "wishart", 2_000, "equal"),
    ("a factor and nine alike", "laplace", 10_000, "equal"),
    ("two columns and four levels", "wishart", 3_000, "equal"),
    ("correlations of the factor's columns", "wishart", 5_000, "equal"),
    ("correlations of the factor's columns", "wishart", 5_000, "conservative"),
    *(
        (name, "hardly any", rows, errors)
        for name in ("t with 5 degrees of freedom", "lognormal, σ = 1")
        for rows in (5_000, 50_000)
        for errors in ("equal", "conservative")
    ),
)  # fmt: skip


def run(
    *,
    tables: int = 100,
    cells: tuple[tuple[str, str, int, Errors], ...] = CELLS,
    step: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """A line for each cell: coverage, widths over an oracle's and how much sampling was widened."""
    lines = []
    for name, noise, rows, errors in cells:
        lines.append(
            {
                "design": name,
                "noise": noise,
                "rows": rows,
                "errors": errors,
                **_cell(name, noise, rows, errors, tables),
            }
        )
        step()
    return {"bench": "components", "level": _LEVEL, "tables": tables, "lines": lines}


def _cell(name: str, noise: str, rows: int, errors: Errors, tables: int) -> dict[str, Any]:
    design, (mechanism, loss) = DESIGNS[name], LOSSES[noise]
    rng, source = Draws(23), rehearsal(24)
    large = np.cov(np.vstack([design.draw(rng, 200_000) for _ in range(10)]).T)
    public = rows if noise != "gaussian, count private" else None
    held: dict[str, list[bool]] = defaultdict(list)
    widths: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    wider = []
    for _ in range(tables):
        drawn = design.draw(rng, rows)
        whole = np.hstack([np.ones((rows, 1)), drawn])
        made = noisy_release(design.schema, whole.T @ whole, mechanism, loss, public, source)
        fit = pca(made, rank=drawn.shape[1], errors=errors, repair="clip", **design.words)
        if fit.columns != made.columns[1:]:
            continue
        true = {"table": np.cov(drawn.T), "population": large}
        for one in fit.directions(_LEVEL):
            wider.append(one.widening or 1.0)
            _asked(fit, one, true, held, widths)
    spread = {
        key: 1.4826 * float(np.median(np.abs([off for _, off in found]))) for key, found in widths.items()
    }
    ratio: dict[str, list[float]] = defaultdict(list)
    for (what, _), found in widths.items():
        ratio[what] += [width / (3.92 * spread[what, _]) for width, _off in found if spread[what, _] > 0]
    return {
        **{what: float(np.mean(found)) for what, found in held.items()},
        **{f"{what}_width": float(np.median(found)) for what, found in ratio.items()},
        "widening": float(np.median(wider)),
        "intervals": len(held["population"]),
    }


def _asked(
    fit: PCAFit, one: Any, true: dict[str, Floats], held: dict[str, list[bool]],
    widths: dict[tuple[str, str], list[tuple[float, float]]],
) -> None:  # fmt: skip
    """Whether the intervals of one direction hold, how wide they are, and how far the raw sum is from the truth."""
    here = slice(one.components.start, one.components.stop)
    for what, covariance in true.items():
        values, vectors = np.linalg.eigh(to_correlation(covariance) if fit.correlation else covariance)
        truth, ends = float(values[::-1][here].sum()), getattr(one, what)
        held[what].append(bool(ends[0] - 1e-9 <= truth <= ends[1] + 1e-9))
        widths[what, one.name].append((ends[1] - ends[0], float(fit.raw_variance[here].sum()) - truth))
        if what == "population" and len(one.components) == 1:
            direction = vectors.T[::-1][here.start]
            signed = direction * (1 if direction @ one.loadings >= 0 else -1)
            inside = (one.ends[:, 0] - 1e-9 <= signed) & (signed <= one.ends[:, 1] + 1e-9)
            held["loadings"] += inside.tolist()


def render(result: dict[str, Any]) -> str:
    """A line for each cell."""
    heads = ["design", "noise", "rows", "errors", "table", "×", "population", "×", "loadings", "sampling ×"]
    rows = [
        [line["design"], line["noise"], f"{line['rows']:,}", line["errors"], number(line["table"], 2),
         number(line["table_width"], 1), number(line["population"], 2), number(line["population_width"], 1),
         number(line["loadings"], 2) if "loadings" in line else "–", number(line["widening"], 1)]
        for line in result["lines"]
    ]  # fmt: skip
    head = f"Intervals of components at level {result['level']}, {result['tables']} tables a line:"
    return "\n".join([head, "", table(heads, rows)])
