"""Is every number that a release prints as good as it says? Designs that nobody tuned for, each with its truth.

A cell is a design, a number of rows and a promise. Tables are drawn, summed without noise, and released with noise of
the law of a mechanism; a framed cell makes real releases. What is asked of each: whether the interval for the
population holds the true coefficients and the one for the table those of the table, how wide the first is over an
oracle's (from the 2.5 % to the 97.5 % quantile of the estimates, whatever their law), how often a coefficient that
is zero is called significant at 5 %, the intervals of R², of the residual error and of a correlation, whether means
and correlations are off by less than twice the noise that is shown beside them, whether a planner's ± for a mean, a
variance and a covariance holds where the design's moments are declared public, and how often a correlation that stands
clear of the noise has the wrong sign.

A cell whose assumptions hold is judged: coverage within 93 to 97.5 %, and a width of at most 1.15 from 5,000 rows on. A
bound (conservative) may cover more and be wider. Where assumptions fail, the summary has to say so in given words.
Where intervals have no end the summary has to say that, and the score has to be inverted by an oracle with the same
noise, which knows its covariance and looks for a combination of regressors that the noise hides: if it finds none, the
interval should have ended. Where one in twenty of the oracle's own has no end, estimates are ratios whose middle spread
tells nothing of widths: then this is all that is asked of them.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, Literal

import numpy as np

import privcov
from privcov import mechanisms
from privcov.linalg.arrays import Floats
from privcov.models.formula import Formula
from privcov.models.ols import Errors, Fit, ols
from privcov.models.partial import Apart
from privcov.noise.randomness import Randomness, rehearsal
from privcov.planning.forecast import forecast
from privcov.planning.moments import PublicMoments
from privcov.planning.targets import Target
from privcov.privacy import ZCDP, ApproxDP, Loss, PureDP
from privcov.releases.release import Release
from privcov.report.tables import table
from privcov.report.view import View
from privcov.schema import Categorical, Schema
from privcov.schema.grid import Grid
from privcov_lab.bench.inference import LEAST, MOST, noisy_release

WIDEST = 1.15
_FROM = 5_000
"""Rows from which on a width is judged."""
_AGAIN = 9
"""Further draws of the noise on each table, for the spread of the estimates: one of so few tables is known to 11 %."""
_DOUBT = 0.95
"""Over the root of their number: the relative error of what holds 95 % of normal estimates."""
_FEW = 0.05
"""The share of tables in which the oracle's own interval has no end, from which on widths are not compared."""
_WIDTHS_EVERY, _VIEWS_EVERY = 5, 3
"""Ends of intervals, and the repaired matrix that people are shown, are asked of some tables: they take longest."""
_OTHERS = ("r_squared", "residual", "correlation", "means", "correlations", "plan")
Holds = Literal["yes", "bound", "says"]
LOSSES: dict[str, tuple[str, Loss]] = {
    "pure": ("symmetric-wishart", PureDP(epsilon=1, neighbours="replace-one")),
    "approximate": ("gaussian", ApproxDP(epsilon=1, delta="1e-6", neighbours="replace-one")),
    "zcdp": ("joint-gaussian", ZCDP(rho="0.1", neighbours="replace-one")),
    "laplace": ("laplace", PureDP(epsilon=1, neighbours="replace-one")),
    "add-remove": ("gaussian", ApproxDP(epsilon=1, delta="1e-6", neighbours="add-remove")),
}
Drawn = dict[str, Floats]
"""A table by column, in original units; levels by their number, −1 for none, NaN where a number is missing."""


class Draws:
    """What tables are drawn from: a stream of its own for each seed, apart from that of the noise."""

    def __init__(self, seed: int) -> None:
        self._source = rehearsal(2**40 + seed)

    def uniform(self, low: float, high: float, shape: int | tuple[int, ...]) -> Floats:
        drawn = self._source.uniforms(int(np.prod(shape))).reshape(shape)
        return np.asarray(low + (high - low) * drawn)

    def normal(self, mean: float, std: float, shape: int | tuple[int, ...]) -> Floats:
        whole = (shape,) if isinstance(shape, int) else shape
        return np.asarray(mean + std * self._source.normals(*whole))

    def choice(self, count: int, rows: int, *, p: Floats) -> Floats:
        places = np.searchsorted(np.cumsum(p), self._source.uniforms(rows), side="right")
        return np.minimum(places, count - 1)


@dataclass(frozen=True, kw_only=True)
class Design:
    """A way to draw tables, what is true of it, and what may be expected of intervals."""

    columns: dict[str, Any]
    draw: Callable[[Draws, int], Drawn]
    truth: dict[str, float] | None
    """By coefficient; None: that of a very large table, as its columns are bounded."""
    formula: str
    words: dict[str, Any] = field(default_factory=dict)
    """More words of the schema."""
    holds: Holds = "yes"
    says: str = ""
    """Words that the summary must have, where assumptions fail or are bounded."""
    errors: Errors = "equal"
    normal: bool = True
    """Whether errors are normal and of one variance, so that R² and the residual error are judged."""
    light: bool = True
    """Whether tails of columns are no heavier than normal ones, as intervals of correlations take them to be."""
    frame: str = ""

    @property
    def schema(self) -> Schema:
        return Schema.from_dict({"columns": self.columns, **self.words})


def _numbers(*names: str, lower: float = -1.0, upper: float = 1.0) -> dict[str, Any]:
    return {name: {"lower": lower, "upper": upper} for name in names}


def _linear(x: Drawn, slopes: dict[str, float], errors: Floats, *, start: float = 0.1) -> Drawn:
    return x | {"y": start + sum((b * x[name] for name, b in slopes.items()), np.zeros(len(errors))) + errors}


def _uniform(source: Draws, rows: int, names: Sequence[str]) -> Drawn:
    return dict(zip(names, source.uniform(-1, 1, (len(names), rows)), strict=True))


_SLOPES = {"x1": 0.4, "x2": -0.2, "x3": 0.0}
_TRUTH = {"(Intercept)": 0.1, **_SLOPES}
_FORMULA = "y ~ x1 + x2 + x3"


def _plain(source: Draws, rows: int) -> Drawn:
    return _linear(_uniform(source, rows, list(_SLOPES)), _SLOPES, source.normal(0, 0.1, rows))


def _nothing(source: Draws, rows: int) -> Drawn:
    return _uniform(source, rows, list(_SLOPES)) | {"y": source.normal(0, 0.2, rows)}


def _skewed(source: Draws, rows: int) -> Drawn:
    """Long right tails within bounds that are ten standard deviations wide."""
    x = dict(zip(_SLOPES, np.minimum(np.exp(source.normal(0, 0.6, (3, rows))), 12.0), strict=True))
    return _linear(x, {"x1": 1.0, "x2": -0.5}, source.normal(0, 1, rows), start=4.0)


def _correlated(source: Draws, rows: int) -> Drawn:
    shared, own = source.uniform(-0.9, 0.9, rows), source.uniform(-1, 1, (2, rows))
    x = {
        "x1": shared + 0.1 * own[0],
        "x2": shared * 0.9 + 0.39 * 0.51 * own[1],
        "x3": source.uniform(-1, 1, rows),
    }
    return _linear(x, _SLOPES, source.normal(0, 0.1, rows))


def _many(count: int) -> Callable[[Draws, int], Drawn]:
    slopes = _many_slopes(count)

    def draw(source: Draws, rows: int) -> Drawn:
        return _linear(_uniform(source, rows, list(slopes)), slopes, source.normal(0, 0.1, rows))

    return draw


def _many_slopes(count: int) -> dict[str, float]:
    return {f"x{i}": (0.4, -0.2, 0.0)[i % 3] / math.sqrt(count / 3) for i in range(1, count + 1)}


def _levelled(count: int) -> Callable[[Draws, int], Drawn]:
    """The last level is empty, the one before it has two rows in a thousand; both are like the baseline."""

    def draw(source: Draws, rows: int) -> Drawn:
        shares = np.ones(count)
        if count > 2:
            shares[-2:] = 0.002 * (count - 2), 0.0
        level = source.choice(count, rows, p=shares / shares.sum()).astype(np.float64)
        effect = np.where(level == 1, 0.2, 0.0)
        x = source.uniform(-1, 1, rows)
        return {"x1": x, "group": level, "y": 0.1 + 0.3 * x + effect + source.normal(0, 0.1, rows)}

    return draw


def _binary(source: Draws, rows: int) -> Drawn:
    x = _uniform(source, rows, list(_SLOPES))
    chance = 0.3 + 0.25 * x["x1"]
    return x | {"y": (source.uniform(0, 1, rows) < chance).astype(np.float64)}


def _clustered(source: Draws, rows: int, each: int = 10) -> Drawn:
    """Ten rows a person, who has half of the variance of regressors and nine tenths of that of errors."""
    persons = rows // each
    x = {
        name: 0.5 * (np.repeat(source.uniform(-1, 1, persons), each) + source.uniform(-1, 1, persons * each))
        for name in _SLOPES
    }
    shared = np.repeat(source.normal(0, 0.1 * math.sqrt(0.9), persons), each)
    return _linear(x, _SLOPES, shared + source.normal(0, 0.1 * math.sqrt(0.1), persons * each))


def _weighted(source: Draws, rows: int) -> Drawn:
    """Survey weights from 0.5 to 5 that go with the first regressor, and not with errors."""
    made = _plain(source, rows)
    return made | {"w": np.clip(2.5 + 1.5 * made["x1"] + source.uniform(-1, 1, rows), 0.5, 5.0)}


def _complete(source: Draws, rows: int) -> Drawn:
    """The same with every cell: what a rule costs that is not needed."""
    x = _uniform(source, rows, list(_SLOPES))
    x["x1"] = 0.5 + 0.2 * x["x1"] + 0.1 * x["x2"]
    return _linear(x, _SLOPES, source.normal(0, 0.1, rows))


def _missing(source: Draws, rows: int) -> Drawn:
    """One cell in ten of x1 is missing at random; x1 lies off the middle of its bounds, and goes with x2."""
    made = _complete(source, rows)
    return made | {"x1": np.where(source.uniform(0, 1, rows) < 0.1, np.nan, made["x1"])}


def _clipped(source: Draws, rows: int) -> Drawn:
    x = {name: 1.3 * value for name, value in _uniform(source, rows, list(_SLOPES)).items()}
    return _linear(x, _SLOPES, source.normal(0, 0.1, rows))


def _heteroscedastic(source: Draws, rows: int) -> Drawn:
    x = _uniform(source, rows, list(_SLOPES))
    return _linear(x, _SLOPES, source.normal(0, 0.2, rows) * np.abs(x["x1"]) ** 2)


_BASE: dict[str, Any] = {"columns": _numbers(*_SLOPES, "y"), "truth": _TRUTH, "formula": _FORMULA}
_WIDE: dict[str, Any] = {
    "columns": _numbers(*_SLOPES, lower=0, upper=12) | _numbers("y", lower=-10, upper=30),
    "draw": _skewed,
    "truth": {"(Intercept)": 4.0, "x1": 1.0, "x2": -0.5, "x3": 0.0},
    "formula": _FORMULA,
    "light": False,
}
_LACKING: dict[str, Any] = {**_BASE, "draw": _missing}


def _levels(count: int) -> Design:
    names = [f"g{i}" for i in range(count)]
    zeros = {f"group[{name}]": 0.0 for name in names[2:]}
    return Design(
        columns={**_numbers("x1", "y"), "group": {"levels": names}},
        draw=_levelled(count),
        truth={"(Intercept)": 0.1, "x1": 0.3, "group[g1]": 0.2, **zeros},
        formula="y ~ x1 + group",
    )


def _regressors(count: int) -> Design:
    slopes = _many_slopes(count)
    return Design(
        columns=_numbers(*slopes, "y"),
        draw=_many(count),
        truth={"(Intercept)": 0.1, **slopes},
        formula="y ~ .",
    )


DESIGNS: dict[str, Design] = {
    "plain": Design(**_BASE, draw=_plain),
    "no slopes": Design(**{**_BASE, "truth": dict.fromkeys(_TRUTH, 0.0)}, draw=_nothing),
    "skewed, wide bounds": Design(**_WIDE),
    "skewed, private frame": Design(
        **_WIDE, frame="scales", holds="says", says="as the private frame shortened them"
    ),
    "correlated .9": Design(**_BASE, draw=_correlated),
    "10 regressors": _regressors(10),
    "25 regressors": _regressors(25),
    "2 levels": _levels(2),
    "5 levels, one rare, one empty": _levels(5),
    "12 levels, one rare, one empty": _levels(12),
    "binary outcome": Design(
        columns={**_numbers(*_SLOPES), "y": {"levels": ["no", "yes"]}},
        draw=_binary,
        truth={"(Intercept)": 0.3, "x1": 0.25, "x2": 0.0, "x3": 0.0},
        formula="y[yes] ~ x1 + x2 + x3",
        holds="says",
        says="errors have not one variance",
        normal=False,
    ),
    "binary, conservative": Design(
        columns={**_numbers(*_SLOPES), "y": {"levels": ["no", "yes"]}},
        draw=_binary,
        truth={"(Intercept)": 0.3, "x1": 0.25, "x2": 0.0, "x3": 0.0},
        formula="y[yes] ~ x1 + x2 + x3",
        holds="bound",
        says="Errors may have any variance",
        errors="conservative",
        normal=False,
    ),
    "ten rows a person": Design(
        **_BASE,
        draw=_clustered,
        words={"max_rows_per_person": 10},
        holds="bound",
        says="Rows of one person: up to 10",
    ),
    "survey weights": Design(
        **_BASE,
        draw=_weighted,
        words={"weight": "w", "largest_weight": 5, "missing": "none"},
        says="Intervals allow for unequal weights",
    ),
    "missing, midpoint": Design(
        **_LACKING, holds="says", says="counts as the middle of its bounds", normal=False
    ),
    "missing, zero-row": Design(**_LACKING, words={"missing": "zero-row"}),
    "missing, indicator": Design(
        **{
            **_LACKING,
            "columns": {**_BASE["columns"], "x1": {"lower": -1, "upper": 1, "missing": "indicator"}},
            "formula": f"{_FORMULA} + x1[missing]",
        },
        words={"missing": "none"},
        holds="says",
        says="columns that go with it take over part of its effect",
        normal=False,
    ),
    "nothing missing, none": Design(**_LACKING | {"draw": _complete}, words={"missing": "none"}),
    "nothing missing, zero-row": Design(**_LACKING | {"draw": _complete}, words={"missing": "zero-row"}),
    "clipped": Design(
        **{**_BASE, "truth": None},
        draw=_clipped,
        holds="says",
        says="every value moved into its declared bounds",
        normal=False,
    ),
    "heteroscedastic": Design(
        **_BASE,
        draw=_heteroscedastic,
        holds="says",
        says="Errors are taken to have one variance",
        normal=False,
    ),
    "heteroscedastic, conservative": Design(
        **_BASE,
        draw=_heteroscedastic,
        holds="bound",
        says="Errors may have any variance",
        errors="conservative",
        normal=False,
    ),
}
Cell = tuple[str, int, str]
CELLS: tuple[Cell, ...] = (
    *(("plain", rows, "pure") for rows in (300, 1_000, 5_000, 50_000, 500_000)),
    *(
        ("plain", rows, loss)
        for loss in ("approximate", "zcdp", "laplace", "add-remove")
        for rows in (1_000, 5_000, 50_000)
    ),
    *(("no slopes", rows, "pure") for rows in (300, 5_000, 50_000)),
    *(("skewed, wide bounds", rows, loss) for loss in ("pure", "zcdp") for rows in (5_000, 50_000, 500_000)),
    ("skewed, private frame", 20_000, "approximate"),
    *(("correlated .9", rows, "pure") for rows in (5_000, 50_000)),
    ("correlated .9", 50_000, "add-remove"),
    *(("10 regressors", rows, "pure") for rows in (5_000, 50_000)),
    *(("25 regressors", rows, "pure") for rows in (50_000, 500_000)),
    *(
        (f"{name}", rows, "pure")
        for name in ("2 levels", "5 levels, one rare, one empty")
        for rows in (5_000, 50_000)
    ),
    ("12 levels, one rare, one empty", 50_000, "pure"),
    *(
        (name, rows, "pure")
        for name in ("binary outcome", "binary, conservative")
        for rows in (5_000, 50_000)
    ),
    *(("ten rows a person", rows, "pure") for rows in (5_000, 50_000, 500_000)),
    *(("survey weights", rows, loss) for loss in ("pure", "approximate") for rows in (5_000, 50_000)),
    *(
        (f"missing, {rule}", rows, "pure")
        for rule in ("midpoint", "zero-row", "indicator")
        for rows in (5_000, 50_000)
    ),
    *((f"nothing missing, {rule}", 50_000, "pure") for rule in ("none", "zero-row")),
    ("clipped", 50_000, "pure"),
    *(
        (name, rows, "pure")
        for name in ("heteroscedastic", "heteroscedastic, conservative")
        for rows in (5_000, 50_000)
    ),
)
QUICK: tuple[Cell, ...] = (
    ("plain", 1_000, "pure"),
    ("plain", 5_000, "add-remove"),
    ("skewed, wide bounds", 50_000, "zcdp"),
    ("5 levels, one rare, one empty", 5_000, "pure"),
    ("ten rows a person", 50_000, "pure"),
    ("missing, midpoint", 50_000, "pure"),
    ("missing, zero-row", 50_000, "pure"),
    ("heteroscedastic", 500_000, "pure"),
    ("heteroscedastic, conservative", 50_000, "pure"),
    ("survey weights", 5_000, "pure"),
    ("clipped", 50_000, "pure"),
    ("skewed, private frame", 20_000, "approximate"),
)


def run(
    *,
    cells: Sequence[Cell] = CELLS,
    tables: int = 400,
    seed: int = 1,
    step: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Every cell measured on so many tables; ``step`` is called after each."""
    results = []
    for place, (name, rows, loss) in enumerate(cells):
        results.append(measured(name, rows, loss, tables=tables, seed=seed + place))
        step()
    return {"level": 0.95, "tables": tables, "results": results}


def measured(name: str, rows: int, loss: str, *, tables: int, seed: int) -> dict[str, Any]:
    """One cell: what was seen over its tables, and whether it is as said."""
    design = DESIGNS[name]
    source, noise, further = Draws(seed), rehearsal(seed), rehearsal(2**41 + seed)
    truth, share, spread = _truth(name)
    # Large tables are dear to draw and tell as much each.
    tables = max(20, tables // 4) if rows * len(truth) > 2_000_000 or design.frame else tables
    asked = _Asked(design=design, loss=loss, rows=rows, truth=truth, share=share, spread=spread)
    for place in range(tables):
        made = _released(design, rows, loss, source, noise)
        asked.ask(made, widths=place % _WIDTHS_EVERY == 0)
        if not design.frame:
            asked.spread_out(made, further)
        if not design.frame and place % _VIEWS_EVERY == 0:
            asked.view(made)
    return {"design": name, "rows": rows, "loss": loss, "tables": tables, **asked.answer()}


def says(fit: Fit, words: str) -> bool:
    """Whether the summary of a fit has these words, wherever its lines end."""
    return words in " ".join(fit.summary().split())


def render(result: dict[str, Any]) -> str:
    """A line for each cell."""
    heads = [
        "design",
        "rows",
        "loss",
        "population",
        "±",
        "table",
        "width",
        "size",
        "R²",
        "residual",
        "pop. corr.",
    ]
    heads += ["means", "corr.", "plan", "sign", "as said"]
    lines = [
        [
            line["design"],
            f"{line['rows']:,}",
            line["loss"],
            *(_figure(line[word]) for word in ("population", "population_error", "table")),
            "∞" if line["width"] is None else f"{line['width']:.2f}",
            *(_figure(line[w]) for w in ("size", *_OTHERS, "wrong_sign")),
            line["as_said"],
        ]
        for line in result["results"]
    ]
    wrong = [
        f"{line['design']}, {line['rows']:,} rows, {line['loss']}: {line['as_said']}"
        for line in result["results"]
        if line["as_said"].startswith("NO")
    ]
    return "\n".join(
        [
            f"95 % intervals over {result['tables']:,} tables a cell (a quarter where tables are large or framed)",
            "",
            table(heads, lines),
            "",
            f"population, table: coverage, with its standard error (±); target {LEAST} to {MOST}, or more for a bound.",
            "width: of population intervals, over what holds 95 % of the estimates. size: zero slopes called",
            "significant at 5 %. pop. corr.: coverage of one correlation. means, corr.: off by at most twice the noise",
            "shown. plan: a planner's ± holds.",
            "sign: releases in which a correlation that stands clear of the noise has the wrong sign.",
            "",
            f"{len(wrong)} of {len(lines)} cells are not as said" + (":" if wrong else "."),
            *wrong,
        ]
    )


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


@dataclass(kw_only=True, eq=False)
class _Released:
    release: Release
    exact: Floats
    """Sums of products of the bounded rows, in scaled units, without noise."""


def _scaled(design: Design, drawn: Drawn) -> Floats:
    """Rows in scaled units as the schema bounds them."""
    schema = design.schema
    made, emptied = [], np.zeros(len(next(iter(drawn.values()))), dtype=bool)
    for feature in schema.features:
        if feature.kind == "intercept":
            made.append(np.ones(len(emptied)))
            continue
        column = next(column for column in schema.columns if column.name == feature.column)
        cells, absent = drawn[column.name], np.isnan(drawn[column.name])
        emptied |= absent & (schema.rule(column) == "zero-row")
        if feature.kind == "missing":
            made.append(absent.astype(np.float64))
        elif isinstance(column, Categorical):
            made.append((cells == column.levels.index(feature.level)).astype(np.float64))
        else:
            bounded = np.clip(cells, feature.lower, feature.upper)
            made.append(np.where(absent, 0.0, (bounded - feature.middle) / feature.unit))
    rows = np.column_stack(made)
    rows[emptied] = 0.0
    if schema.weight is not None:  # a row of weight w counts as w over the largest, in every product
        assert schema.largest_weight is not None
        rows *= np.sqrt(drawn[schema.weight] / schema.largest_weight)[:, None]
    return rows


def _released(design: Design, rows: int, loss: str, source: Draws, noise: Randomness) -> _Released:
    schema, drawn, (name, promised) = design.schema, design.draw(source, rows), LOSSES[loss]
    scaled = _scaled(design, drawn)
    exact = scaled.T @ scaled
    if design.frame:
        cells = np.column_stack([drawn[column.name] for column in schema.columns])
        made = privcov.release(cells, schema=schema, loss=promised, frame=design.frame)
        return _Released(release=made, exact=exact)
    public = promised.neighbours.count_is_public(schema.max_rows_per_person) and schema.weight is None
    made = noisy_release(schema, exact, name, promised, len(scaled) if public else None, noise)
    return _Released(release=made, exact=exact)


def _again(made: _Released, noise: Randomness) -> Release:
    """The same table with other noise."""
    was = made.release
    promise = was.certificate
    return noisy_release(was.schema, made.exact, promise.mechanism, promise.loss, was.rows, noise)


_DRAWN = 10_000  # of noise: a quantile of 95 % is then known to 0.07


def _hides(release: Release, regressors: Sequence[int]) -> bool:
    """Whether some combination of regressors is within the noise, so that no set of the score's ends.

    With M the noisy products of the regressors and N their noise, coefficients may go to infinity along v as soon as
    wᵀMv with w = Cov(Nv)⁻¹Mv is no larger than wᵀNv is in 95 of 100 draws. Covariance and quantile are those of drawn
    noise: its tails count, which are heavier than normal ones for symmetric-wishart and laplace.
    """
    from scipy.optimize import minimize

    assert release.law is not None, "the bench knows mechanisms with a law"
    at = np.ix_(regressors, regressors)
    drawn = release.law.simulations(rehearsal(5), _DRAWN)[:, list(regressors)][:, :, list(regressors)]
    products = release.second_moment(raw=True, scaled=True)[at]
    if release.counted_rows is not None:  # public, so without noise
        drawn[:, 0, 0], products[0, 0] = 0.0, release.counted_rows

    def seen(along: Floats) -> tuple[float, Floats]:
        """The score's size along a combination, and what noise alone makes of it in each draw."""
        direction = along / np.linalg.norm(along)
        noise = drawn @ direction
        covariance = noise.T @ noise / len(noise)
        covariance += 1e-9 * np.trace(covariance) * np.eye(len(along))
        score = products @ direction
        weights = np.linalg.solve(covariance, score)
        size = float(score @ weights)
        return size, (noise @ weights) ** 2 / max(size, 1e-300)

    values, vectors = np.linalg.eigh(products)
    starts = vectors.T[np.argsort(np.abs(values))][:3]
    found = [minimize(lambda along: seen(along)[0], start, method="Nelder-Mead") for start in starts]
    size, alone = seen(min(found, key=lambda one: float(one.fun)).x)
    return size <= float(np.quantile(alone, 0.95))


_POPULATION = 1_000_000


def _whole(design: Design) -> Floats:
    """Sums of products of a very large table of bounded rows."""
    scaled = _scaled(design, design.draw(Draws(7), _population(design)))
    return np.asarray(scaled.T @ scaled)


def _population(design: Design) -> int:
    """Rows of such a table."""
    return _POPULATION // max(1, len(design.columns) // 4)


@cache
def _truth(name: str) -> tuple[dict[str, float], float, float]:
    """Coefficients of the population, its R² and its residual error, from a very large table of bounded rows."""
    design = DESIGNS[name]
    fit = _without_noise(design, _whole(design))
    found = dict(fit.params) if design.truth is None else design.truth
    return found, fit.rsquared, fit.residual_std_error


def _shortened(design: Design, release: Release) -> tuple[float, float]:
    """R² and residual error of a large table whose rows are shortened as those of a release were."""
    drawn = design.draw(Draws(7), _POPULATION // 10)
    cells = np.column_stack([drawn[column.name] for column in design.schema.columns])
    loss = PureDP(epsilon=10**6, neighbours="replace-one")
    fit = ols(privcov.release(cells, schema=release.schema, loss=loss), design.formula, naive=True)
    return fit.rsquared, fit.residual_std_error


def _without_noise(design: Design, exact: Floats) -> Fit:
    """The fit that the table itself gives; levels that nobody has count with the baseline, as in every other fit."""
    schema, empty = design.schema, defaultdict[str, list[Any]](list)
    for i, feature in enumerate(schema.features):
        if feature.kind == "level" and exact[i, i] == 0:
            empty[feature.column].append(feature.level)
    formula = design.formula + "".join(
        f" - {column}[{level}]" for column, levels in empty.items() for level in levels
    )
    loss = PureDP(epsilon=10**9, neighbours="replace-one")
    rows = None if schema.weight is not None else round(exact[0, 0])
    release = noisy_release(schema, exact, "laplace", loss, rows, rehearsal(1))
    return ols(release, formula, naive=True)


@dataclass(kw_only=True, eq=False)
class _Asked:
    """What one cell has answered so far."""

    design: Design
    loss: str
    rows: int
    truth: dict[str, float]
    share: float
    spread: float
    held: list[float] = field(default_factory=list)
    table_held: list[float] = field(default_factory=list)
    estimates: list[dict[str, float]] = field(default_factory=list)
    widths: list[dict[str, float]] = field(default_factory=list)
    significant: list[float] = field(default_factory=list)
    others: dict[str, list[float]] = field(default_factory=dict)
    silent: int = 0
    endless: list[bool] = field(default_factory=list)
    """For every table with an interval that has no end: whether an oracle's would have ended."""

    def ask(self, made: _Released, *, widths: bool) -> None:
        fit = ols(made.release, self.design.formula, errors=self.design.errors)
        judged = [name for name in fit.params if name in self.truth]
        self.held.append(float(np.mean([fit.accepts(name, self.truth[name]) for name in judged])))
        self.estimates.append({name: fit.params[name] for name in judged})
        zero = [name for name in judged if self.truth[name] == 0]
        if zero:
            self.significant.append(float(np.mean([fit.pvalues[name] < 0.05 for name in zero])))
        if not self.design.frame:
            self._ask_about_the_table(fit, made)
        if self.design.normal:
            share, spread = (
                _shortened(self.design, made.release) if self.design.frame else (self.share, self.spread)
            )
            low, high = fit.rsquared_interval()
            self._note("r_squared", low <= share <= high)
            low, high = fit.residual_std_error_interval()
            self._note("residual", low <= spread <= high)
        if widths:
            self.widths.append(
                {name: end[1] - end[0] for name, end in fit.conf_int().items() if name in judged}
            )
            without_end = not all(math.isfinite(width) for width in self.widths[-1].values())
            words = [self.design.says, "∞" if without_end else ""]
            self.silent += not all(says(fit, word) for word in words)
            if without_end and not self.design.frame:
                places = [
                    made.release.columns.index(name) for name in fit.params if name in made.release.columns
                ]
                self.endless.append(not _hides(made.release, [0, *(place for place in places if place)]))

    def spread_out(self, made: _Released, noise: Randomness) -> None:
        """Estimates from the same table with other noise."""
        for _ in range(_AGAIN):
            found = ols(_again(made, noise), self.design.formula, errors=self.design.errors).params
            self.estimates.append({name: found[name] for name in found if name in self.truth})

    def _ask_about_the_table(self, fit: Fit, made: _Released) -> None:
        if not fit.merged:
            whole = _without_noise(self.design, made.exact).params
            if set(whole) == set(fit.params):
                asked = [fit.table.accepts(name, value) for name, value in whole.items()]
                self.table_held.append(float(np.mean(asked)))
        self._note("plan", self._planned(made))

    def view(self, made: _Released) -> None:
        """What people are shown of the matrix, against the table without noise."""
        schema, view = made.release.schema, View.of(made.release)
        if view.off is None:
            return
        self._ask_about_a_correlation(made.release)
        mean, covariance = _centred(made.exact)
        sizes = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
        first, second = view.pairs
        true = (covariance / np.outer(sizes, sizes))[first, second]
        off = view.off.correlation[first, second]
        shown = np.abs(view.correlation[first, second] - true) <= off
        self._note("correlations", float(np.mean(np.where(np.isfinite(off), shown, True))))
        units = np.array([feature.unit for feature in schema.features[1:]])
        if view.mean is not None and view.off.mean is not None:
            away = np.abs(view.mean - _middles(schema) - units * mean)
            self._note("means", float(np.mean(away <= view.off.mean)))
        clear = view.clear[first, second]
        seen = view.correlation[first, second]
        self._note("wrong_sign", bool((clear & (np.sign(seen) != np.sign(true))).any()))

    def _ask_about_a_correlation(self, release: Release) -> None:
        """Whether the interval of the first column's correlation with the target holds that of the population."""
        if release.law is None or not (self.design.normal and self.design.light):
            return
        target = release.columns.index(Formula.parse(self.design.formula, release.schema).target)
        _, low, high = Apart.of(release, release.law).pair(1, target, 0.95, given=(0,))
        self._note("correlation", low <= self._correlations[0, target - 1] <= high)

    @cached_property
    def _correlations(self) -> Floats:
        """Of the population."""
        _, covariance = _centred(_whole(self.design))
        sizes = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
        return np.asarray(covariance / np.outer(sizes, sizes))

    def _planned(self, made: _Released) -> float:
        """How many of a mean, a variance and a covariance of the first column are off by no more than planned."""
        schema, release = self.design.schema, made.release
        mean, covariance = _centred(made.exact)
        raw = release.second_moment(raw=True, scaled=True)
        count = raw[0, 0] if release.counted_rows is None else release.counted_rows
        here = raw[0, 1:] / count
        moved = raw[1:, 1:] / count - np.outer(here, here) - covariance
        one, last = (schema.features[place].unit for place in (1, self._last))
        off = [
            abs(here[0] - mean[0]) * one,
            abs(moved[0, 0]) * one**2,
            abs(moved[0, self._last - 1]) * one * last,
        ]
        return float(np.mean([error <= limit for error, limit in zip(off, self._limits, strict=True)]))

    @property
    def _last(self) -> int:
        """The place of the last column, what rows count as left out."""
        return len(self.design.schema.features) - (1 if self.design.schema.weight is None else 2)

    @cached_property
    def _limits(self) -> list[float]:
        schema, (name, loss) = self.design.schema, LOSSES[self.loss]
        whole = _whole(self.design)
        # A plan is for the rows that count: those with every cell, where others are emptied.
        rows = round(self.rows * min(1.0, whole[0, 0] / _population(self.design)))
        made = forecast(mechanisms.find(name, loss=loss), loss=loss, grid=Grid.of(schema), rows=rows)
        one, last = schema.features[1], schema.features[self._last]
        pairs = [f"covariance(`{one.name}`, `{other.name}`)=1" for other in (one, last)]
        names = frozenset(column.name for column in schema.columns)
        moments = PublicMoments(schema=schema, matrix=whole / whole[0, 0], columns=names)
        return [
            Target.parse(text, schema).error(made, schema, moments)
            for text in (f"mean(`{one.name}`)=1", *pairs)
        ]

    def _note(self, word: str, value: float) -> None:
        self.others.setdefault(word, []).append(float(value))

    def answer(self) -> dict[str, Any]:
        """The figures of the cell, and whether they are as said."""
        held, error = float(np.mean(self.held)), _error(self.held)
        here, width = _mean(self.table_held), self._width()
        found = {word: _mean(self.others.get(word, [])) for word in (*_OTHERS, "wrong_sign")}
        return {
            "population": held,
            "population_error": error,
            "table": here,
            "table_error": _error(self.table_held),
            "width": width,
            "unbounded": sum(any(np.isinf(list(one.values()))) for one in self.widths)
            / max(len(self.widths), 1),
            "oracle_unbounded": sum(not ends for ends in self.endless) / max(len(self.widths), 1),
            "coefficients": self._coefficients(),
            "size": _mean(self.significant),
            **found,
            "as_said": self._verdict(held, error, here, width, found),
        }

    def _coefficients(self) -> dict[str, dict[str, float]]:
        """Of every coefficient: what is true, the middle of its estimates and of the widths of its intervals."""
        found = {}
        for name, value in self.truth.items():
            estimates = [one[name] for one in self.estimates if name in one]
            widths = [one[name] for one in self.widths if name in one]
            if estimates and widths and np.isfinite(np.median(widths)):
                middles = {"estimate": float(np.median(estimates)), "width": float(np.median(widths))}
                found[name] = {"truth": value, **middles}
        return found

    def _width(self) -> float | None:
        ratios = []
        for name in self.truth:
            estimates = np.array([one[name] for one in self.estimates if name in one])
            widths = [one[name] for one in self.widths if name in one]
            if len(estimates) > len(self.estimates) / 2 and widths:
                low, high = np.quantile(estimates, [0.025, 0.975])
                ratios.append(float(np.median(widths)) / float(high - low))
        ratio = float(np.median(ratios))
        return ratio if math.isfinite(ratio) else None

    def _verdict(
        self,
        held: float,
        error: float,
        here: float | None,
        width: float | None,
        found: dict[str, float | None],
    ) -> str:
        """As said; or NO, and what is not. Two standard errors are allowed for chance, and the same for widths."""
        holds, chance = self.design.holds, 2 * error
        doubt = 2 * _DOUBT / math.sqrt(len(self.held)) / math.sqrt(max(len(self.truth) - 1, 1))
        ends = holds == "yes" and self.rows >= _FROM
        wrong = []
        if self.silent:
            wrong.append("the summary does not say it")
        if holds == "says":
            return "NO: " + wrong[0] if wrong else "it says so"
        if held + chance < LEAST:
            wrong.append("population intervals too short")
        if holds == "yes" and held - chance > MOST and width is not None and width > 1 + doubt:
            wrong.append("population intervals too long")
        loose = width is None or self.endless.count(False) > _FEW * len(self.widths)
        if ends and loose and float(np.mean(self.endless)) - 2 * _error(self.endless) > 0:
            wrong.append("unbounded")
        if ends and not loose and width is not None and width > WIDEST * (1 + doubt):
            wrong.append("too wide")
        if here is not None and here + 2 * _error(self.table_held) < LEAST:
            wrong.append("table intervals too short")
        for word in _OTHERS:
            value = found[word]
            if value is not None and value + 2 * _error(self.others[word]) < LEAST:
                wrong.append(word.replace("_", " "))
        if (found["wrong_sign"] or 0.0) - 2 * _error(self.others.get("wrong_sign", [])) > 0.05:
            wrong.append("wrong signs")
        if wrong:
            return "NO: " + ", ".join(wrong)
        return "it says so" if ends and loose else "yes"


def _centred(exact: Floats) -> tuple[Floats, Floats]:
    """Means and covariances of all columns but the first, the constant one."""
    mean = exact[0, 1:] / exact[0, 0]
    return mean, exact[1:, 1:] / exact[0, 0] - np.outer(mean, mean)


def _middles(schema: Schema) -> Floats:
    return np.array([feature.middle for feature in schema.features[1:]])


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if len(values) else None


def _error(values: Sequence[float]) -> float:
    """The standard error of a share; with none or all of them, what a twentieth would have."""
    if not len(values):
        return 0.0
    return max(float(np.std(values)), 0.05) / math.sqrt(len(values))
