"""The report's eigenvalue repair beside ours, on the same releases: matrix error, condition, regression."""

from __future__ import annotations

from typing import Any

import numpy as np

from privcov.linalg.arrays import Floats
from privcov.noise.randomness import Randomness
from privcov.releases.release import Release
from privcov_lab.experiments.least_positive import least_positive
from privcov_lab.reproduce.papers.bain2014.ours import Ours, centred
from privcov_lab.reproduce.papers.bain2014.published import Scaled
from privcov_lab.reproduce.papers.bain2014.pums import NAMES, people
from privcov_lab.reproduce.papers.bain2014.simulated import ROWS, table

REPAIRS = ("none", "least-positive", "clip", "trace", "auto")


def repairs(
    data: Any, randomness: Randomness, *, table_name: str, epsilon: float, runs: int
) -> dict[str, Any]:
    """Releases by ``gaussian`` in [-1, 1] units, repaired in each way: errors, condition numbers and β distances.

    β is that of the last column on the others, in the same units; a repaired matrix without an inverse is solved by
    the least-norm β, and its condition number is None.
    """
    scaled = _table(data, randomness, table_name)
    names = NAMES if table_name == "pums" else tuple(f"x{i}" for i in range(1, len(scaled.lows) + 1))
    ours, truth = Ours.of(scaled, names, epsilon=epsilon), centred(scaled.moments)
    beta, size = _solved(truth), float(np.linalg.norm(truth))
    measured: dict[str, dict[str, list[Any]]] = {
        name: {"error": [], "beta": [], "condition": []} for name in REPAIRS
    }
    negative = 0
    for _ in range(runs):
        release = ours.release(scaled, randomness)
        raw = release.second_moment(raw=True, scaled=True)
        negative += int(np.linalg.eigvalsh(raw)[0] < 0)
        for name in REPAIRS:
            made = _repaired(release, raw, name)
            values = np.abs(np.linalg.eigvalsh(made))
            known = values.min() > 1e-12 * values.max()
            kept = measured[name]
            kept["error"].append(_short(float(np.linalg.norm(made - truth)) / size))
            kept["beta"].append(_short(float(np.linalg.norm(_solved(made) - beta))))
            kept["condition"].append(_short(float(values.max() / values.min())) if known else None)
    return {"measured": measured, "negative": negative}


def _table(data: Any, randomness: Randomness, name: str) -> Scaled:
    if name == "pums":
        return people(data, rows=None)
    regressors, errors = table(randomness, ROWS)
    return Scaled.of(np.column_stack([regressors, 10 * regressors[:, 0] + errors]))


def _repaired(release: Release, raw: Floats, name: str) -> Floats:
    if name == "least-positive":
        return least_positive(raw)
    return raw if name == "none" else release.second_moment(scaled=True, repair=name)


def _solved(matrix: Floats) -> Floats:
    return np.asarray(np.linalg.lstsq(matrix[:-1, :-1], matrix[:-1, -1], rcond=1e-12)[0])


def _short(value: float) -> float:
    return float(f"{value:.6g}")
