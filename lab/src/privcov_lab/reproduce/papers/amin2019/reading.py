"""Measured runs as numbers to compare: means, spread, and when one method is worse than another beyond chance."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from privcov_lab.reproduce.charts import Line
from privcov_lab.reproduce.study import Results, Verdict

Runs = Sequence[float]
T = TypeVar("T")


@dataclass(frozen=True)
class Measured:
    """Runs of ``errors`` cells by table, constants, method and ε; ``what`` is frobenius or ridge."""

    results: Results
    what: str = "frobenius"

    @cached_property
    def _runs(self) -> dict[tuple[str, str, str, float], Runs]:
        return {
            (line["dataset"], line["constants"], line["method"], line["epsilon"]): line[self.what]
            for line in self.results.of("errors")
        }

    @property
    def datasets(self) -> list[str]:
        return distinct(dataset for dataset, _, _, _ in self._runs)

    def epsilons(self, dataset: str) -> list[float]:
        return distinct(epsilon for name, _, _, epsilon in self._runs if name == dataset)

    def methods(self, constants: str) -> list[str]:
        """Which methods were measured with these constants: none in a run of the published ones alone."""
        return distinct(method for _, used, method, _ in self._runs if used == constants)

    def runs(self, dataset: str, constants: str, method: str, epsilon: float) -> Runs:
        return self._runs[dataset, constants, method, epsilon]

    def line(self, dataset: str, constants: str, method: str, *, label: str = "") -> Line:
        """Mean over runs against ε; the band holds the middle four fifths of the runs."""
        epsilons = self.epsilons(dataset)
        runs = [self.runs(dataset, constants, method, epsilon) for epsilon in epsilons]
        return line(label or method, epsilons, runs)

    def points(self) -> list[tuple[str, float]]:
        return [(dataset, epsilon) for dataset in self.datasets for epsilon in self.epsilons(dataset)]


def line(label: str, x: Sequence[float], runs: Sequence[Runs]) -> Line:
    """The mean of each point's runs, in a band of their middle four fifths."""
    low, high = ([float(np.quantile(one, share)) for one in runs] for share in (0.1, 0.9))
    return Line(label, list(x), [mean(one) for one in runs], low, high)


def level(label: str, x: Sequence[float], value: float) -> Line:
    """A constant, from end to end."""
    return Line(label, [min(x), max(x)], [value, value])


def mean(runs: Runs) -> float:
    return float(np.mean(runs))


def not_worse(one: Runs, other: Runs) -> bool:
    """Whether a mean error is no larger than another, or larger by two standard errors at most.

    >>> not_worse([1.0, 1.1], [1.05, 1.0]), not_worse([2.0, 2.1], [1.0, 1.1])
    (True, False)
    """
    noise = math.sqrt(float(np.var(one)) / len(one) + float(np.var(other)) / len(other))
    return mean(one) - mean(other) <= 2 * noise


def verdict(held: int, asked: int) -> Verdict:
    """All points agree; at least half, in part; else it is not reproduced.

    >>> verdict(20, 20), verdict(10, 20), verdict(9, 20)
    ('agrees', 'agrees in part', 'not reproduced')
    """
    return "agrees" if held == asked else "agrees in part" if 2 * held >= asked else "not reproduced"


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """The exponent of a power law through the points.

    >>> round(slope([1, 10, 100], [1, 0.1, 0.01]), 6)
    -1.0
    """
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def distinct(values: Iterable[T]) -> list[T]:
    """In the order of their first appearance."""
    return list(dict.fromkeys(values))
