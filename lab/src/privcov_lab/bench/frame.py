"""What a private frame gains on real tables whose bounds are guesses, and what it costs to read them more often.

Every release is repaired as a user would see it, with idealized and seeded noise: nothing here is a release to keep.
The tables and what is declared of them: ``bounds.py``. The best in hindsight pays for the same rounds, and then
chooses among all frames and a list of radii the one that erred least over all runs, for each kind of error. The floor
knows the true means and standard deviations, pays for no round, and takes the best radius: nobody can have it. Of means
it says nothing: it was given them.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from privcov.accounting import gaussian_mu
from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats
from privcov.models.association import correlation
from privcov.models.ols import ols
from privcov.models.pca import pca
from privcov.models.ridge import ridge
from privcov.noise.randomness import rehearsal
from privcov.privacy import ApproxDP, Loss, PureDP
from privcov.publish.release import release
from privcov.releases.certificate import RADII
from privcov.releases.release import Release
from privcov.releases.rounds import Norms
from privcov.schema import Numeric, Schema
from privcov.schema.grid import framed_weight
from privcov.schema.names import quoted
from privcov.summing.engines import Local
from privcov_lab.bench.bounds import DESIGNS, Case, Design, cases
from privcov_lab.bench.gram import in_child, least, schema_of, write_parquet

PARTS = ("points", "wide", "means", "coverage", "unasked", "cost")
EPSILONS = ("0.2", "1", "4")
DELTA = "0.000001"
WAYS: dict[str, dict[str, Any]] = {
    "declared": {},
    "private norm": {"row_norm": "private"},
    "scales": {"frame": "scales"},
    "shape": {"frame": "shape"},
    "auto": {"frame": "auto"},
}
FOR_MEANS = {"for means": {"frame": "auto", "purpose": "means"}}
"""A way beside these, of which the means alone are of interest."""
COUNTED: dict[str, Any] = {"frame": "auto", "cut": "counted"}
UNASKED: dict[str, dict[str, Any]] = {"declared": {}, "told": {"frame": "auto"}, "counted": COUNTED}
"""What a steward might get who chooses nothing; at ε = 1, with bounds as they are and ten times as wide."""
FACTORS = (1, 10, 100)
HINDSIGHT = (0.25, 0.35, *RADII[::2])
"""The radii that the best in hindsight and the floor choose from, in root mean square columns."""
FITTED = ("scales", "shape")
"""The frames that the best in hindsight tries with other radii than they choose."""
_NEAR = 2.5
"""By what factor these radii may be larger or smaller than those chosen."""
TRIALS = 4
"""Runs after which radii that are clearly not the best are left out."""
_SEED = 1000
Errors = list[dict[str, float]]


def run(
    directory: str | Path,
    *,
    parts: Sequence[str] = ("points",),
    tables: Sequence[str],
    epsilons: Sequence[str] = EPSILONS,
    runs: int = 30,
    rows: int = 5_000_000,
    step: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """What each part measures; ``step`` is called after every point. A missing file is skipped with a reason."""
    result: dict[str, Any] = {"bench": "frame", "runs": runs, "skipped": []}
    found: list[Case] = []
    if set(parts) - {"cost"}:
        found, result["skipped"] = cases(directory, tables)
    measured: dict[str, Callable[[_Place, Loss, int], dict[str, Any]]] = {
        "points": _Place.point,
        "wide": _Place.wide,
        "means": _Place.means,
    }
    places = [_Place(case) for case in found]
    for part in [part for part in measured if part in parts]:
        result[part] = []
        for place in places:
            for loss in _losses(epsilons):
                told = {"epsilon": float(loss.epsilon), "promise": loss.kind}
                result[part].append(place.told | told | measured[part](place, loss, runs))
                step()
    everywhere: list[Case | Design] = [*found, *DESIGNS]
    if "coverage" in parts:
        result["coverage"] = []
        for where in everywhere:
            for loss in _losses(epsilons):
                told = {"epsilon": float(loss.epsilon), "promise": loss.kind}
                result["coverage"].append(told | coverage(where, loss, runs, **COUNTED))
                step()
    if "unasked" in parts:
        result["unasked"] = []
        for where in everywhere:
            for loss in _losses(["1"]):
                for factor in FACTORS[:2]:
                    told = {"epsilon": float(loss.epsilon), "promise": loss.kind, "factor": factor}
                    ways = {
                        way: coverage(where, loss, runs, factor=factor, **options)
                        for way, options in UNASKED.items()
                    }
                    result["unasked"].append(told | {"table": where.name, "ways": ways})
                step()
    if "cost" in parts:
        result["cost"] = _cost(rows)
        step()
    return result


def _losses(epsilons: Sequence[str]) -> Iterator[PureDP | ApproxDP]:
    for epsilon in epsilons:
        yield PureDP(epsilon=epsilon, neighbours="replace-one")
        yield ApproxDP(epsilon=epsilon, delta=DELTA, neighbours="replace-one")


@dataclass(frozen=True, kw_only=True, eq=False)
class _Measured:
    """The first release of one way at one point, the errors of all, and their radius."""

    first: Release
    errors: dict[str, dict[str, float]]
    radius: float | None


class _Place:
    """One table and the truth about it, in true standard deviations."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.known: dict[tuple[Loss, int, int], dict[str, _Measured]] = {}
        expanded = case.expanded
        self.mean, self.std = expanded.mean(axis=0), expanded.std(axis=0, ddof=1)
        self.varies = self.std > 0
        self.correlation: Floats = np.atleast_2d(np.corrcoef(expanded[:, self.varies].T))
        self.regressors = np.array([not first for first in case.first_levels])[self.varies]

    @property
    def told(self) -> dict[str, Any]:
        return {
            "table": self.case.name,
            "rows": len(self.case.rows),
            "columns": len(self.case.schema.columns),
        }

    @cached_property
    def best_residuals(self) -> Floats:
        """What is left of the variance of each numeric column after its regression on all others."""
        return np.array([self._residual(self.correlation, j) for j in range(self.case.numeric)])

    def point(self, loss: Loss, runs: int) -> dict[str, Any]:
        """The errors of every way, of the best in hindsight and of the floor, and their radii."""
        made = {way: self._measured(way, loss, runs) for way in WAYS}
        errors = {way: one.errors for way, one in made.items()}
        floor, radius = self._least(HINDSIGHT, partial(self._told_the_truth, loss), runs)
        fitted = [self._fitted_best(way, loss, runs) for way in FITTED]
        best = {kind: min((one[kind] for one in (*errors.values(), *fitted)), key=_size) for kind in floor}
        return {
            "errors": errors | {"hindsight": best, "floor": floor},
            "radius": {"auto": made["auto"].radius, "floor": radius},
            "zero": _rms(self.correlation[np.triu_indices(self.case.numeric, 1)]),
        }

    def wide(self, loss: Loss, runs: int) -> dict[str, Any]:
        """The errors with bounds as declared, ten and a hundred times as wide."""
        made = {
            f"{way} ×{factor}": self._measured(way, loss, runs, factor).errors
            for way in ("declared", "auto")
            for factor in FACTORS
        }
        return {"errors": made}

    def means(self, loss: Loss, runs: int) -> dict[str, Any]:
        """The error of means from one release, and of noise on the sums of the numeric columns alone."""
        ways = ("declared", "auto", *FOR_MEANS)
        made = {way: self._measured(way, loss, runs).errors for way in ways}
        return {"errors": made, "dedicated": self._dedicated(loss)}

    def _measured(self, way: str, loss: Loss, runs: int, factor: int = 1) -> _Measured:
        """What the releases of one way are like; kept, so that no two parts make the same ones."""
        known = self.known.setdefault((loss, runs, factor), {})
        if way not in known:
            schema = self.case.widened(factor)

            def make(seed: int) -> Release:
                return self._release(loss, seed, schema=schema, **(WAYS | FOR_MEANS)[way])

            first = make(0)
            # Auto is one of the others: the same seed tells which.
            same = next((one for one in known.values() if _same(one.first, first)), None)
            made = [first] if same else [first, *map(make, range(1, runs))]
            known[way] = same or _Measured(
                first=first, errors=_told([self.errors(one) for one in made]), radius=self._radius(made)
            )
        return known[way]

    def _dedicated(self, loss: Loss) -> float:
        """The error of means where the whole loss buys Laplace or Gaussian noise on the sums, whichever is less."""
        width, numbers = self.case.numeric, self.case.schema.columns[: self.case.numeric]
        halves = np.array([column.half_width for column in numbers if isinstance(column, Numeric)])
        assert isinstance(loss, PureDP | ApproxDP)
        # One row moves a sum by at most 2 in scaled units.
        noise = math.sqrt(2) * 2 * width / float(loss.epsilon)
        if isinstance(loss, ApproxDP):
            gaussian = 2 * math.sqrt(width) / float(gaussian_mu(epsilon=loss.epsilon, delta=loss.delta))
            noise = min(noise, gaussian)
        return float(noise * _rms(halves / self.std[:width]) / len(self.case.rows))

    def _release(self, loss: Loss, seed: int, *, schema: Schema | None = None, **options: Any) -> Release:
        return release(
            self.case.rows,
            schema=schema or self.case.schema,
            loss=loss,
            arithmetic="idealized",
            randomness=rehearsal(_SEED + seed),
            **options,
        )

    def errors(self, made: Release) -> dict[str, float]:
        """How far a repaired release is from the truth; a correlation it does not know counts as 0."""
        width = self.case.numeric
        misses = np.nan_to_num(made.correlation())[np.ix_(self.varies, self.varies)] - self.correlation
        scaled = (made.covariance() / np.outer(self.std, self.std))[np.ix_(self.varies, self.varies)]
        found = {
            "correlations": _rms(misses[np.triu_indices(width, 1)]),
            "unrepaired correlations": _rms(self._unrepaired(made)[np.triu_indices(width, 1)]),
            "covariance": _rms((scaled - self.correlation)[:width, :width]),
            "means": _rms(((made.mean() - self.mean) / self.std)[:width]),
            "regressions": float(np.median(self._excess(scaled))),
        }
        if len(misses) > width:
            found["all correlations"] = _rms(misses[np.triu_indices(len(misses), 1)])
        return found

    def _unrepaired(self, made: Release) -> Floats:
        """How far the correlations of the matrix as it was released are from the truth."""
        told = np.nan_to_num(made.correlation(repair="none"))
        return np.asarray(told[np.ix_(self.varies, self.varies)] - self.correlation)

    def _excess(self, covariance: Floats) -> Floats:
        found = [self._residual(covariance, j) for j in range(self.case.numeric)]
        return np.array(found) - self.best_residuals

    def _residual(self, covariance: Floats, target: int) -> float:
        """The share of a column's variance left by the regression on all others that a covariance suggests.

        The first level of a categorical column is left out, as in every regression: without it the levels add up to 1.
        """
        others = self.regressors & (np.arange(len(covariance)) != target)
        inverse = np.linalg.pinv(covariance[np.ix_(others, others)], rcond=1e-9, hermitian=True)
        weights = inverse @ covariance[others, target]
        truth = self.correlation
        fitted = weights @ truth[np.ix_(others, others)] @ weights
        return float(1 - 2 * weights @ truth[others, target] + fitted)

    def _fitted_best(self, way: str, loss: Loss, runs: int) -> dict[str, Any]:
        """The least errors of a frame over radii near those that it chooses, all rounds paid for."""
        chosen = [Norms.of(self._release(loss, seed, **WAYS[way])).radius for seed in range(TRIALS)]
        near = [one for one in HINDSIGHT if min(chosen) / _NEAR <= one <= max(chosen) * _NEAR]
        return self._least(near, partial(self._fitted, way, loss), runs)[0]

    def _least(
        self, radii: Sequence[float], errors: Callable[[float, int], dict[str, float]], runs: int
    ) -> tuple[dict[str, Any], float]:
        """The least error of each kind over the radii, and the radius with the least error of correlations.

        ``errors`` tells those of a radius and a seed.
        """
        made: dict[float, Errors] = {radius: [] for radius in radii}

        def add(radius: float, first: int, last: int) -> None:
            made[radius] += [errors(radius, seed) for seed in range(first, last)]

        for radius in made:
            add(radius, 0, min(runs, TRIALS))
        told = {radius: _told(errors) for radius, errors in made.items()}
        kinds = [kind for kind in told[radii[0]] if kind != "means"]
        least = {kind: min(told, key=partial(_error, told, kind)) for kind in kinds}
        near = 1.15 * _error(told, "correlations", least["correlations"])
        last_round = {*least.values(), *(r for r in told if _error(told, "correlations", r) <= near)}
        for radius in last_round:
            add(radius, TRIALS, runs)
        told = {radius: _told(made[radius]) for radius in last_round}
        least = {kind: min(told, key=partial(_error, told, kind)) for kind in kinds}
        return {kind: told[radius][kind] for kind, radius in least.items()}, least["correlations"]

    def _told_the_truth(self, loss: Loss, radius: float, seed: int) -> dict[str, float]:
        """The errors with true means and deviations, and this radius."""
        return self.errors(self._release(loss, seed, schema=self._framed(radius)))

    def _fitted(self, way: str, loss: Loss, radius: float, seed: int) -> dict[str, float]:
        """The errors with rounds as ever, all paid for, and this radius whatever their counts say."""
        with patch.object(Norms, "radius", radius):
            return self.errors(self._release(loss, seed, **WAYS[way]))

    def _framed(self, radius: float) -> Schema:
        """The schema that a frame would find whose rounds tell the truth, with a radius of our own."""
        schema, width = self.case.schema, self.case.numeric
        weight = framed_weight(schema)
        size = math.sqrt(weight / width) / radius
        columns = [
            replace(column, centre=float(mean), scale=float(std) / size)
            for column, mean, std in zip(schema.columns[:width], self.mean, self.std, strict=False)
            if isinstance(column, Numeric)
        ]
        bound = Fraction(math.sqrt(schema.fixed_squared_norm + weight))
        return replace(schema, columns=(*columns, *schema.columns[width:]), row_norm_bound=bound)

    def _radius(self, made: Sequence[Release]) -> float | None:
        """The radius of framed releases, in true standard deviations: a geometric mean; None as declared."""
        if "frame" not in made[0].certificate.options:
            return None
        width, weight = self.case.numeric, float(framed_weight(self.case.schema))
        units = [[feature.unit for feature in one.schema.features[1 : 1 + width]] for one in made]
        logs = np.log(np.array(units) / self.std[:width] * math.sqrt(weight / width))
        return float(np.exp(logs.mean()))


def coverage(
    where: Case | Design, loss: Loss, runs: int, *, factor: float = 1, **options: Any
) -> dict[str, Any]:
    """How often 95 % intervals hold the slopes of whole tables, and of what these were drawn from.

    Each numeric column is regressed on the two that follow it. ``far`` is the largest distance of a slope of the table
    from the middle of its interval, in half widths, and ``endless`` the share of intervals for slopes of the table
    that have no end, which hold anything. A table in a file is one draw of nothing that is known, so it has
    no population. ``error`` is that of correlations, and ``width`` the half width of intervals in standard deviations
    of the two columns, in the median, where none counts as infinite. ``correlations`` is how often intervals of these
    hold those of the table, and ``furthest`` the largest distance of one from the middle of its interval. ``others``
    has the same share for R² of these regressions, for the components of correlations, and for the error of a ridge
    regression of each numeric column on the others; None where no release said anything.

    Parameters
    ----------
    where : Case or Design
        The table; a design is drawn anew in every run.
    loss : Loss
        What each release may cost.
    runs : int
        How many releases are made.
    factor : float, default 1
        How many times as wide as they are written the bounds are.
    **options : Any
        What else is asked of the release.
    """
    inside: dict[str, list[bool]] = {"table": [], "population": []}
    far, framed, truth = 0.0, False, None
    endless: list[bool] = []
    errors: list[float] = []
    between: list[bool] = []
    furthest = 0.0
    widths: list[float] = []
    others: dict[str, list[bool]] = {"r_squared": [], "components": [], "ridge": []}
    if isinstance(where, Design):
        truth = _slopes(where.case(7, 400_000))
    for seed in range(runs):
        case = where.case(_SEED + seed) if isinstance(where, Design) else where
        made = release(
            case.rows,
            schema=case.widened(factor),
            loss=loss,
            arithmetic="idealized",
            randomness=rehearsal(_SEED + seed),
            **options,
        )
        framed |= bool(made.certificate.rounds)
        own, place = _slopes(case), _Place(case)
        errors.append(place.errors(made)["correlations"])
        found, names = correlation(made), [column.name for column in case.schema.columns]
        for first, second in zip(*np.triu_indices(case.numeric, 1), strict=True):
            low, high = found.interval(names[first], names[second]) or (-1.0, 1.0)
            true = float(place.correlation[first, second])
            between.append(low <= true <= high)
            furthest = max(furthest, _away((low, high), true))
        sizes = dict(zip(names, place.std, strict=False))
        for formula in own:
            fit = ols(made, formula)
            for about, slopes, told in (("table", own, fit.table), ("population", truth, fit)):
                if slopes is None:
                    continue
                ends = told.conf_int()
                inside[about] += [
                    ends[name][0] <= true <= ends[name][1] for name, true in slopes[formula].items()
                ]
            ends = fit.table.conf_int()
            far = max(far, *(_away(ends[name], true) for name, true in own[formula].items()))
            halves = {name: (ends[name][1] - ends[name][0]) / 2 for name in own[formula]}
            endless += [not math.isfinite(half) for half in halves.values()]
            target = _target_of(formula, sizes)
            widths += [half * sizes[name] / sizes[target] for name, half in halves.items()]
            low, high = fit.table.rsquared_interval()
            others["r_squared"].append(low <= _explained(case, target, list(halves)) <= high)
        others["components"] += _components_held(made, case)
        others["ridge"] += _ridge_held(made, case)
    covered = {about: float(np.mean(hits)) if hits else None for about, hits in inside.items()}
    extremes: dict[str, Any] = {"far": far, "endless": float(np.mean(endless))}
    extremes |= {"error": _rms(np.array(errors)), "width": float(np.median(widths))}
    extremes |= {"correlations": float(np.mean(between)), "furthest": furthest}
    extremes |= {"others": {name: float(np.mean(held)) if held else None for name, held in others.items()}}
    return {"table": where.name, "framed": framed, "covered": covered, **extremes}


def _explained(case: Case, target: str, regressors: Sequence[str]) -> float:
    """R² of a regression on all rows of a table."""
    names = [column.name for column in case.schema.columns]
    y, x = case.rows[:, names.index(target)], case.rows[:, [names.index(name) for name in regressors]]
    about = x - x.mean(axis=0)
    left = (y - y.mean()) - about @ np.linalg.lstsq(about, y - y.mean(), rcond=None)[0]
    return float(1 - left.var() / y.var())


def _components_held(made: Release, case: Case) -> list[bool]:
    """Whether intervals hold the eigenvalues of the correlations of the table; none where a release shows no column."""
    try:
        fit = pca(made, correlation=True)
    except ParameterError:
        return []
    places = [made.columns.index(name) - 1 for name in fit.columns]
    with np.errstate(invalid="ignore"):  # a level that no row has
        true = np.nan_to_num(np.atleast_2d(np.corrcoef(case.expanded[:, places].T)))
    ends = replace(fit, asked=len(places)).intervals()
    return [
        bool(low <= one <= high)
        for one, (low, high) in zip(np.linalg.eigvalsh(true)[::-1], ends, strict=True)
    ]


def _ridge_held(made: Release, case: Case) -> list[bool]:
    """Whether the error that ridge regressions state holds the one that they have on the table."""
    names, held = [column.name for column in case.schema.columns[: case.numeric]], []
    for place, target in enumerate(names):
        others = [at for at in range(case.numeric) if at != place]
        fit = ridge(made, target, features=[names[at] for at in others])
        if (ends := fit.expected_error_interval()) is None:  # the release leaves nothing to explain
            continue
        slopes = np.array([fit.coefficients[names[at]] for at in others])
        left = case.rows[:, place] - case.rows[:, others] @ slopes - fit.intercept
        held.append(bool(ends[0] <= np.sqrt((left**2).mean()) <= ends[1]))
    return held


def _target_of(formula: str, names: Mapping[str, float]) -> str:
    """The name of the column that a formula explains."""
    return next(name for name in names if formula.startswith(f"{quoted(name)} ~"))


def _away(ends: tuple[float, float], true: float) -> float:
    """The distance from the middle of an interval, in half widths: above 1 outside; 0 where it has no end."""
    low, high = ends
    return abs(true - (low + high) / 2) / ((high - low) / 2) if 0 < high - low < math.inf else 0.0


def _slopes(case: Case) -> dict[str, dict[str, float]]:
    """The slopes of each numeric column on the two that follow it, by formula."""
    names, found = [column.name for column in case.schema.columns[: case.numeric]], {}
    for place, target in enumerate(names):
        others = [(place + step) % case.numeric for step in (1, 2)]
        design = np.column_stack([np.ones(len(case.rows)), case.rows[:, others]])
        slopes = np.linalg.lstsq(design, case.rows[:, place], rcond=None)[0][1:]
        chosen = [names[other] for other in others]
        found[f"{quoted(target)} ~ {' + '.join(map(quoted, chosen))}"] = dict(
            zip(chosen, slopes.tolist(), strict=True)
        )
    return found


def _same(one: Release, other: Release) -> bool:
    return (one.schema, one.upper) == (other.schema, other.upper)


def _rms(values: Floats) -> float:
    return float(np.sqrt(np.mean(values**2)))


def _error(told: Mapping[float, Mapping[str, Any]], kind: str, radius: float) -> float:
    return float(told[radius][kind]["error"])


def _size(told: Mapping[str, float]) -> float:
    return told["error"]


def _told(errors: Errors) -> dict[str, dict[str, float]]:
    """Over runs: the root mean square of each error, and the median excess of regressions, with standard errors."""
    found = {}
    for kind in errors[0]:
        values = np.array([one[kind] for one in errors])
        if (
            kind == "regressions"
        ):  # by the median distance from the median: a single run may be off by thousands
            error = float(np.median(values))
            spread = 1.25 * 1.48 * float(np.median(np.abs(values - error)))
        else:
            error = _rms(values)
            spread = float((values**2).std(ddof=min(1, len(values) - 1))) / (2 * error) if error else 0.0
        found[kind] = {"error": error, "std_error": spread / math.sqrt(len(values))}
    return found


def _cost(rows: int, columns: int = 20) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        settings = {"folder": folder, "rows": rows, "columns": columns, "rounds": 3}
        found: dict[str, Any] = in_child("privcov_lab.bench.frame", "cost", settings)
    return found


def _timed(folder: str, rows: int, columns: int, rounds: int) -> dict[str, Any]:
    """CPU seconds from a Parquet file to a release: as declared, framed, and framed with far too wide bounds.

    With one worker: two share caches and the way to memory, and more of the time is then waiting for it.
    """
    path = Path(folder, "numbers.parquet")
    write_parquet(path, rows, columns)
    plain = replace(schema_of(columns, 1.0), row_norm_bound=None)
    wide = Case(name="wide", rows=np.empty((0, columns)), schema=plain).widened(100)
    loss, reads = ApproxDP(epsilon=1, delta=DELTA, neighbours="replace-one"), {}

    def make(name: str, schema: Schema, frame: Any) -> None:
        alone = Local(workers=1)
        made = release(path, schema=schema, loss=loss, frame=frame, randomness=rehearsal(_SEED), engine=alone)
        # Means are asked with the radius, and the matrix comes last.
        reads[name] = max(1, len(made.certificate.rounds))

    ways = {"declared": (plain, "declared"), "framed": (plain, "scales"), "framed ×100": (wide, "scales")}
    seconds = least({name: partial(make, name, *way) for name, way in ways.items()}, rounds)
    return {"rows": rows, "columns": columns, "cpu_seconds": seconds, "reads": reads}


if __name__ == "__main__":
    print(json.dumps({"cost": _timed}[sys.argv[1]](**json.loads(sys.argv[2]))))
