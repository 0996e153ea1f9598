"""Fifty equal strata and their total: what a share of the loss for the total costs the strata, and what it brings.

Real releases of a made-up table, with noise from the operating system. An error is the root mean square Frobenius norm
of what a raw matrix is off, in scaled units, over that of a release of the same rows alone at the whole loss: for a
stratum of its own rows, for the total of the whole table.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

import privcov as pc
from privcov.linalg.arrays import Floats
from privcov.noise.randomness import rehearsal
from privcov.releases.release import Release
from privcov.report.tables import table

STRATA, _ROWS, _COLUMNS = 50, 200, 5
_SHARES = ("0", "0.02", "0.05", "0.08", "0.12", "0.17", "0.25", "0.4", "best")
_LOSSES: dict[str, tuple[str, Any]] = {
    "pure": ("symmetric-wishart", pc.PureDP(epsilon=1, neighbours="add-remove")),
    "with delta": ("gaussian", pc.ApproxDP(epsilon=1, delta="1e-6", neighbours="add-remove")),
}
STEPS = len(_SHARES) * len(_LOSSES)


def run(*, runs: int, step: Callable[[], None] = lambda: None) -> dict[str, Any]:
    """The errors at every share, for a pure loss and for one with δ."""
    numbers = rehearsal(0).normals(STRATA * _ROWS, _COLUMNS) / 4
    rows = np.column_stack([numbers, np.arange(len(numbers)) % STRATA])
    columns = {f"x{place}": {"lower": -1, "upper": 1} for place in range(_COLUMNS)}
    plain = pc.Schema.from_dict({"columns": columns})
    schema = pc.Schema.from_dict({"columns": {**columns, "s": {"levels": list(range(STRATA))}}})
    bounded = np.hstack([np.ones((len(rows), 1)), np.clip(numbers, -1, 1)])
    every = [bounded[rows[:, -1] == place] for place in range(STRATA)]
    exact = [some.T @ some for some in every]
    found: dict[str, Any] = {}
    for kind, (mechanism, loss) in _LOSSES.items():
        asked: dict[str, Any] = {"loss": loss, "mechanism": mechanism}
        alone = [pc.release(numbers[rows[:, -1] == 0], schema=plain, **asked) for _ in range(20 * runs)]
        base = _off([(one, exact[0]) for one in alone])
        lines = {}
        for share in _SHARES:
            made = [pc.release(rows, schema=schema, by="s", total_share=share, **asked) for _ in range(runs)]
            parts = [(part, true) for one in made for part, true in zip(one.values(), exact, strict=True)]
            pooled = made[0].pooled
            lines[share] = {
                "share": float(Fraction(0) if pooled is None else pooled.share),
                "stratum": _off(parts) / base,
                "total": _off([(one.total(), sum(exact)) for one in made]) / base,
            }
            step()
        found[kind] = lines
    return {"runs": runs, "strata": STRATA, "losses": found}


def _off(found: list[tuple[Release, Any]]) -> float:
    squares: list[Floats] = [
        ((one.second_moment(raw=True, scaled=True) - true) ** 2).sum() for one, true in found
    ]
    return math.sqrt(float(np.mean(squares)))


def criterion(line: dict[str, float]) -> float:
    """What the best share has least of: both variances, each over what it is where strata have all of the loss."""
    return line["stratum"] ** 2 + line["total"] ** 2 / STRATA


def best_of(lines: dict[str, Any]) -> tuple[str, float]:
    """The share measured to be the best of those tried, and the error of the sum at "best" over that at this one."""
    least = min(lines, key=lambda share: criterion(lines[share]))
    return least, lines["best"]["total"] / lines[least]["total"]


def render(result: dict[str, Any]) -> str:
    """A table for each loss, and the two ratios."""
    told = [
        f"{result['strata']} equal strata, epsilon = 1, add-remove, {result['runs']} releases at each share"
    ]
    for kind, lines in result["losses"].items():
        rows = [
            [
                share,
                f"{one['share']:g}",
                *(f"{x:.2f}" for x in (one["stratum"], one["total"], criterion(one))),
            ]
            for share, one in lines.items()
        ]
        heads = ["asked for", "share", "stratum / alone", "total / alone", "sum of relative variances"]
        least, ratio = best_of(lines)
        told += [
            f"{kind}\n{table(heads, rows)}",
            f"Least at {least}. The sum at best: {ratio:.2f} of that; a stratum without a share: "
            f"{lines['0']['stratum']:.2f} of a release of its rows alone.",
        ]
    return "\n\n".join(told)
