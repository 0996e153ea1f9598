"""Fifty equal strata and their total: what a share of the loss for the total costs the strata, and what it brings.

Real releases of a made-up table, with noise from the operating system. An error is the root mean square Frobenius norm
of what a raw matrix is off, in scaled units, over that of a release of the same rows alone at the whole loss: for a
stratum of its own rows, for the total of the whole table.

And ten strata whose bounds are too wide: the root mean square error of their correlations, as declared and in the frame
that ``auto`` fits on the rows of all of them.
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
_WIDTHS = (1, 5, 25)
"""Half the width of bounds, over four standard deviations of the columns."""
_WIDE_STRATA, _WIDE_ROWS = 10, 2_000
STEPS = len(_SHARES) * len(_LOSSES) + len(_WIDTHS)


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
    wide = {str(width): _wide(width, runs=max(1, runs // 6), step=step) for width in _WIDTHS}
    return {"runs": runs, "strata": STRATA, "losses": found, "wide": wide}


def _wide(width: float, *, runs: int, step: Callable[[], None]) -> dict[str, dict[str, float]]:
    """The error of correlations of strata within bounds so many times too wide, by loss and frame."""
    source = rehearsal(1)
    shared = source.normals(_WIDE_STRATA * _WIDE_ROWS, 1)
    numbers = (source.normals(len(shared), _COLUMNS - 1) + shared) / math.sqrt(2)
    places = np.arange(len(numbers)) % _WIDE_STRATA
    bounds = {"lower": -4 * width, "upper": 4 * width}
    columns = {f"x{place}": bounds for place in range(_COLUMNS - 1)}
    schema = pc.Schema.from_dict({"columns": {**columns, "s": {"levels": list(range(_WIDE_STRATA))}}})
    rows = np.column_stack([numbers, places])
    true = [np.corrcoef(numbers[places == place].T) for place in range(_WIDE_STRATA)]
    above = np.triu_indices(_COLUMNS - 1, 1)
    found: dict[str, dict[str, float]] = {}
    for kind, (_, loss) in _LOSSES.items():
        found[kind] = {}
        for frame in ("declared", "auto"):
            asked: dict[str, Any] = {"schema": schema, "loss": loss, "by": "s", "frame": frame}
            made = [pc.release(rows, **asked) for _ in range(runs)]
            apart = [
                (part.correlation() - truth)[above]
                for one in made
                for part, truth in zip(one.values(), true, strict=True)
            ]
            found[kind][frame] = float(np.sqrt(np.mean(np.square(apart))))
    step()
    return found


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
    heads = [
        "bounds, times too wide",
        *(f"{kind}: {frame}" for kind in _LOSSES for frame in ("declared", "auto")),
    ]
    rows = [
        [width, *(f"{one[kind][frame]:.4f}" for kind in _LOSSES for frame in ("declared", "auto"))]
        for width, one in result["wide"].items()
    ]
    told.append(
        f"{_WIDE_STRATA} strata of {_WIDE_ROWS:,} rows, epsilon = 1, add-remove: error of correlations\n"
        f"{table(heads, rows)}"
    )
    return "\n\n".join(told)
