"""Reading measured cells: curves from left to right, and when a difference counts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from privcov_lab.reproduce.study import Results, Verdict

NAMES = {"synthetic": "synthetic", "covtype": "Covtype", "mnist": "MNIST"}
"""The paper's tables as they are written, in its order."""


def curves(results: Results, figure: int, along: str) -> dict[str, list[dict[str, Any]]]:
    """The lines of a figure for each table, from left to right."""
    found: dict[str, list[dict[str, Any]]] = {}
    for line in sorted(results.of("captured", figure=figure), key=lambda x: float(x[along])):
        found.setdefault(line["dataset"], []).append(line)
    return {name: found[name] for name in NAMES if name in found}


def paper_curves(
    results: Results, *, figure: int = 1, along: str = "epsilon"
) -> dict[str, list[dict[str, Any]]]:
    """Those the paper drew: it shows no MNIST."""
    return {name: lines for name, lines in curves(results, figure, along).items() if name != "mnist"}


def mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


def mean_error(line: Mapping[str, Any], name: str) -> float:
    """Of a method's classifications."""
    return mean(line["errors"][name])


def above(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether a mean is above another by more than two standard errors of the difference.

    >>> above([3.0, 3.2], [1.0, 1.1]), above([3.0, 0.0], [1.0, 1.1])
    (True, False)
    """
    error = math.sqrt(sum(float(np.var(made, ddof=1)) / len(made) for made in (one, other) if len(made) > 1))
    return mean(one) - mean(other) > 2 * error


def share(true: int, all_of: int) -> Verdict:
    """All, some or none.

    >>> share(3, 3), share(1, 3), share(0, 3)
    ('agrees', 'agrees in part', 'not reproduced')
    """
    if true == all_of:
        return "agrees"
    return "agrees in part" if true else "not reproduced"
