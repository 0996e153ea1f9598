"""What it is worth to declare that levels cover everybody, on adult with its 8 columns of levels.

Three schemas of the same table: *plain*, all levels and no word; *exhaustive*; and *dropped*, where the most frequent
level of each column was left out by hand. Each is released several times; noise is idealized, drawn by seeded
rehearsals: right for measuring accuracy, and nothing here is a release. A figure of one schema is the mean over its
releases, and a ratio of two has the standard error that follows from both spreads. Errors are absolute ones, averaged
over pairs or columns: correlations between levels of two columns, all of them and those of levels that at least
one row in fifty has; correlations of levels with numbers; correlations between numbers; shares of levels; means of
numbers in standard deviations. *Unshrunk* are the same releases of the plain schema, repaired as if nothing were known
about which columns are levels of one, so that noise between columns is not shrunk: the plain schema as it was before,
which targets are measured against. The width is the geometric mean of the 95 % intervals of frequent levels'
coefficients in a regression, of those that both schemas bound in every release.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from privcov.linalg.arrays import Floats
from privcov.models.ols import ols
from privcov.noise.randomness import rehearsal
from privcov.privacy import ApproxDP, Loss, PureDP
from privcov.publish.release import release
from privcov.releases.release import Release
from privcov.report.tables import table
from privcov.schema import Schema
from privcov_lab.reproduce.datasets import Datasets

LOSSES: dict[str, Loss] = {
    "pure, replace-one": PureDP(epsilon=1, neighbours="replace-one"),
    "pure, add-remove": PureDP(epsilon=1, neighbours="add-remove"),
    "approximate, replace-one": ApproxDP(epsilon=1, delta="1e-6", neighbours="replace-one"),
    "approximate, add-remove": ApproxDP(epsilon=1, delta="1e-6", neighbours="add-remove"),
}
FIGURES = ("levels", "frequent levels", "levels and numbers", "numbers", "shares", "means", "widths")
KINDS = ("plain", "exhaustive", "dropped")
BOUNDS = {
    "age": (0, 100), "education_num": (1, 16), "capital_gain": (0, 100_000), "capital_loss": (0, 5_000),
    "hours_per_week": (0, 100),
}  # fmt: skip
TARGETS = {("levels", "unshrunk"): 0.8, ("widths", "dropped"): 1.1}
MODELLED = ("sex", "race", "marital_status", "workclass")
"""Columns of the regression; relationship would nearly repeat marital status, and leave most intervals unbounded."""
_FREQUENT = 0.02
Truth = tuple[Floats, Floats, Floats, list[str]]


def run(
    directory: str | Path,
    *,
    runs: int = 10,
    losses: Sequence[str] = tuple(LOSSES),
    seed: int = 1,
    step: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Figures per loss and schema with their ratios; ``step`` is called after each release."""
    made = compared(*adult(directory), runs=runs, losses=losses, seed=seed, step=step)
    return {"bench": "exhaustive", "results": made}


def compared(
    cells: Floats,
    levels: dict[str, int],
    truth: Truth,
    *,
    runs: int,
    losses: Sequence[str],
    seed: int = 1,
    step: Callable[[], None] = lambda: None,
) -> list[dict[str, Any]]:
    """The same for any table that has the numeric columns of ``BOUNDS`` and some columns of levels."""
    results, formula = [], _formula(truth)
    for word in losses:
        found: dict[str, list[dict[str, float]]] = {"unshrunk": []}
        widths: dict[str, list[dict[str, float]]] = {}
        for kind in KINDS:
            schema = _schema(levels, kind)
            found[kind], widths[kind] = [], []
            for place in range(runs):
                noise = rehearsal(seed + place + 1_000 * KINDS.index(kind))
                made = release(
                    cells, schema=schema, loss=LOSSES[word], arithmetic="idealized", randomness=noise
                )
                found[kind].append({} if kind == "dropped" else _errors(made, truth))
                if kind == "plain":
                    found["unshrunk"].append(_errors(_unshrunk(made), truth))
                widths[kind].append({} if kind == "plain" else _widths(made, formula))
                step()
        both = [*widths["exhaustive"], *widths["dropped"]]
        shared = sorted(set.intersection(*map(set, both)))
        for kind in ("exhaustive", "dropped"):
            for errors, some in zip(found[kind], widths[kind], strict=True):
                errors["widths"] = float(np.exp(np.mean([np.log(some[name]) for name in shared] or [np.nan])))
        results += _lines(word, found, runs)
    return results


def render(result: dict[str, Any]) -> str:
    """The ratios as a table for people."""
    headings = ["loss", "figure", "exhaustive", "against", "", "ratio", "±", "target"]
    lines = [
        [
            line["loss"],
            line["figure"],
            _number(line["exhaustive"], 5),
            line["against"],
            _number(line["other"], 5),
            _number(line["ratio"], 3),
            _number(line["standard_error"], 3),
            "" if line["target"] is None else f"{line['target']:g} {'✓' if line['reached'] else 'missed'}",
        ]
        for line in result["results"]
    ]
    runs = result["results"][0]["runs"]
    told = [table(headings, lines), f"{runs} releases of each schema; ± is one standard error of the ratio"]
    told.append("unshrunk: the plain schema repaired as before noise between columns was shrunk")
    if any(np.isnan(line["ratio"]) for line in result["results"]):
        told.append(
            "–: noise drowns the model there: no interval has two ends in every release of both schemas to be compared"
        )
    return "\n".join(told)


def _number(value: float, digits: int) -> str:
    return "–" if np.isnan(value) else f"{value:.{digits}f}"


def adult(directory: str | Path) -> tuple[Floats, dict[str, int], Truth]:
    """Numbers and codes of levels, how many levels each column has, and the truth; frequent levels come first."""
    found = Datasets(Path(directory), online=False).load("adult")
    places = {name: place for place, name in enumerate(found.columns)}
    numbers = found.rows[:, [places[name] for name in BOUNDS]]
    groups: dict[str, list[int]] = {}
    for name, place in places.items():
        if "=" in name:
            groups.setdefault(name.partition("=")[0], []).append(place)
    return prepared(numbers, {column: found.rows[:, own] for column, own in groups.items()})


def prepared(numbers: Floats, indicators: dict[str, Floats]) -> tuple[Floats, dict[str, int], Truth]:
    """The same from the numbers and the indicators of each column."""
    ordered = {
        name: some[:, np.argsort(-some.sum(axis=0), kind="stable")] for name, some in indicators.items()
    }
    levels = {name: some.shape[1] for name, some in ordered.items()}
    names = [*BOUNDS, *(f"{name}[{level}]" for name, count in levels.items() for level in range(count))]
    whole = np.hstack([numbers, *ordered.values()])
    truth = np.corrcoef(whole.T), whole.mean(axis=0), whole.std(axis=0), names
    return np.column_stack([numbers, *(some.argmax(axis=1) for some in ordered.values())]), levels, truth


def _schema(levels: dict[str, int], kind: str) -> Schema:
    columns: dict[str, Any] = {name: {"lower": low, "upper": high} for name, (low, high) in BOUNDS.items()}
    for name, count in levels.items():
        columns[name] = {"levels": list(range(count))[kind == "dropped" :]}
        if kind == "exhaustive":
            columns[name] |= {"exhaustive": True, "otherwise": 0}
    return Schema.from_dict({"columns": columns, "missing": "none"})


def _unshrunk(made: Release) -> Release:
    """The same release, whose repair does not know which columns belong together."""
    again = dataclasses.replace(made)
    again.__dict__["structure"] = dataclasses.replace(made.structure, blocks=())
    return again


def _errors(made: Release, truth: Truth) -> dict[str, float]:
    correlations, means, spreads, names = truth
    assert list(made.columns[1:]) == names
    owners = np.array([name.partition("[")[0] for name in names])
    level = np.array(["[" in name for name in names])
    apart = np.triu(owners[:, None] != owners[None, :], 1)
    frequent = level & (means >= _FREQUENT)
    error = np.abs(made.correlation() - correlations)
    off = np.abs(made.mean() - means)
    return {
        "levels": float(error[apart & np.outer(level, level)].mean()),
        "frequent levels": float(error[apart & np.outer(frequent, frequent)].mean()),
        "levels and numbers": float(error[apart & (level[:, None] != level)].mean()),
        "numbers": float(error[apart & np.outer(~level, ~level)].mean()),
        "shares": float(off[level].mean()),
        "means": float((off / spreads)[~level].mean()),
    }


def _formula(truth: Truth) -> str:
    """The same model under both schemas: the frequent levels but the first, each named; others count with that."""
    _, means, _, names = truth
    frequent = [
        name
        for name, share in zip(names, means, strict=True)
        if name.partition("[")[0] in MODELLED and not name.endswith("[0]") and share >= _FREQUENT
    ]
    return " + ".join(["hours_per_week ~ age", *frequent])


def _widths(made: Release, formula: str) -> dict[str, float]:
    """The width of each bounded interval of a level's coefficient."""
    ends = {name: high - low for name, (low, high) in ols(made, formula).conf_int().items() if "[" in name}
    return {name: float(width) for name, width in ends.items() if np.isfinite(width) and width > 0}


def _lines(loss: str, found: dict[str, list[dict[str, float]]], runs: int) -> list[dict[str, Any]]:
    lines = []
    pairs = [(figure, against) for figure in FIGURES[:-1] for against in ("unshrunk", "plain")]
    for figure, against in [*pairs, ("widths", "dropped")]:
        mine, other = (
            np.array([errors[figure] for errors in found[kind]]) for kind in ("exhaustive", against)
        )
        ratio = float(np.mean(mine) / np.mean(other))
        shares = [np.std(some, ddof=1) / np.mean(some) / np.sqrt(len(some)) for some in (mine, other)]
        target = None if np.isnan(ratio) else TARGETS.get((figure, against))
        lines.append(
            {
                "loss": loss,
                "figure": figure,
                "runs": runs,
                "exhaustive": float(np.mean(mine)),
                "against": against,
                "other": float(np.mean(other)),
                "ratio": ratio,
                "standard_error": ratio * float(np.hypot(*shares)),
                "target": target,
                "reached": None if target is None else ratio <= target,
            }
        )
    return lines
