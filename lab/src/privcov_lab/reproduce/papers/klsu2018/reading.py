"""Numbers read off the cells: medians, slopes in logarithms, and how many rows an accuracy takes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from privcov_lab.reproduce.papers.klsu2018.measuring import DIMENSION, ONE_ROUND, RHO
from privcov_lab.reproduce.study import Results

GOAL = 1000.0
"""What the lecture's rounds bring a condition number down to."""
LABELS = {
    "none": "without privacy",
    "truncated": "naive",
    "preconditioned": "recursive preconditioning",
    "coinpress": "coinpress",
}
RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
Line = Mapping[str, Any]


def grid(results: Results, **arguments: Any) -> list[Line]:
    """The cells at the common dimension and ρ that measured every method, in order of rows and condition number."""
    found = [
        line
        for line in results.of("errors", dimension=DIMENSION, rho=RHO, **arguments)
        if "coinpress" in line["methods"]
    ]
    return sorted(found, key=lambda line: (line["condition"], line["rows"]))


def naive(results: Results, **arguments: Any) -> list[Line]:
    """The well-conditioned cells with the naive method alone."""
    return [line for line in results.of("errors", **arguments) if line["methods"] == ["truncated"]]


def across(lines: Sequence[Line], word: str) -> list[Any]:
    """The values of an argument that occur, in order."""
    return sorted({line[word] for line in lines}, key=float)


def median(line: Line, method: str, kind: str = "errors") -> float:
    return float(np.median(line[kind][method]))


def band(line: Line, method: str) -> tuple[float, float]:
    """Between which four fifths of the errors lie."""
    low, high = np.quantile(line["errors"][method], (0.1, 0.9))
    return float(low), float(high)


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """The exponent p of y ~ x^p, by least squares in logarithms.

    >>> round(slope([1, 10, 100], [5, 50, 500]), 6)
    1.0
    """
    return float(np.polyfit(np.log(np.asarray(x, float)), np.log(np.asarray(y, float)), 1)[0])


def rows_needed(rows: Sequence[int], errors: Sequence[float], accuracy: float) -> float | None:
    """From how many rows on the error stays below an accuracy, between grid points by logarithms.

    None where the largest table is too small; the smallest table where that is already enough.

    >>> rows_needed([100, 10_000], [1.0, 0.1], 0.5) is None, rows_needed([100], [1.0], 0.5)
    (False, None)
    """
    bad = [place for place, error in enumerate(errors) if error > accuracy]
    if not bad:
        return float(rows[0])
    last = bad[-1]
    if last == len(rows) - 1:
        return None
    part = math.log(errors[last] / accuracy) / math.log(errors[last] / errors[last + 1])
    return float(rows[last] * (rows[last + 1] / rows[last]) ** part)


def needed(results: Results, method: str, condition: float, accuracy: float) -> float | None:
    """Rows a method needs at the common dimension and ρ, by its median errors."""
    lines = grid(results, condition=condition)
    return rows_needed([line["rows"] for line in lines], [median(line, method) for line in lines], accuracy)


def goal(condition: float) -> float:
    """What the largest eigenvalue should be below: 1000, or 9κ/10 where Theorem 2.3 is asked about one round."""
    return 0.9 * ONE_ROUND if condition == ONE_ROUND else GOAL


def succeeded(line: Line, goal: float = GOAL) -> float:
    """The share of tables with I ⪯ PΣPᵀ ⪯ goal·I."""
    pairs = zip(line["smallest"], line["largest"], strict=True)
    return float(np.mean([low >= 1 and high <= goal for low, high in pairs]))


def always_from(results: Results, dimension: int, condition: float) -> int | None:
    """The rows from which on every table was preconditioned as it should be."""
    lines = sorted(
        results.of("conditioning", dimension=dimension, condition=condition), key=lambda line: line["rows"]
    )
    first = None
    for line in reversed(lines):
        if succeeded(line) < 1:
            break
        first = int(line["rows"])
    return first


def power(condition: float) -> str:
    """A condition number for people.

    >>> power(10), power(10**4), power(1111)
    ('10', '10⁴', '1,111')
    """
    exponent = len(str(int(condition))) - 1
    if condition != 10**exponent:
        return f"{condition:,}"
    return str(int(condition)) if exponent < 2 else f"10{str(exponent).translate(RAISED)}"
