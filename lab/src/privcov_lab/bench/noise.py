"""What one draw of noise costs, against one eigendecomposition of the same size in the same run."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from privcov.mechanisms import MECHANISMS
from privcov.mechanisms.base import AdditiveMechanism
from privcov.noise.randomness import kernel
from privcov.privacy import ApproxDP, Loss, PureDP
from privcov.report.tables import table
from privcov.schema import Schema
from privcov.schema.grid import Grid


def run(*, dimensions: Sequence[int] = (20, 108), step: Callable[[], None] = lambda: None) -> dict[str, Any]:
    """CPU seconds of every mechanism's draw, exact and idealized, and of one ``numpy.linalg.eigh``."""
    results = []
    for d in dimensions:
        columns = {f"c{i}": {"lower": 0, "upper": 1} for i in range(d - 1)}
        grid = Grid.of(Schema.from_dict({"columns": columns}))  # with the intercept, d columns
        start = kernel().normals(d, d)
        eigh = _cpu(lambda matrix=start: np.linalg.eigh(matrix + matrix.T), repeat=3)  # type: ignore[misc]
        for name, kind in MECHANISMS.items():
            if not issubclass(kind, AdditiveMechanism):
                continue  # their draws need data: see privcov bench eigenvectors
            loss: Loss = PureDP(epsilon=1, neighbours="replace-one")
            if "pure" not in kind.kinds:
                loss = ApproxDP(epsilon=1, delta="1e-6", neighbours="replace-one")
            for arithmetic in ("exact", "idealized"):
                mechanism = kind(arithmetic=arithmetic)
                repeat = 1 if d > 200 and arithmetic == "exact" else 3
                seconds = _cpu(
                    lambda m=mechanism, w=loss, g=grid: m.draw(loss=w, grid=g, randomness=kernel()),  # type: ignore[misc]
                    repeat=repeat,
                )
                results.append(
                    {
                        "mechanism": name,
                        "dimension": d,
                        "arithmetic": arithmetic,
                        "cpu_seconds": seconds,
                        "eigh_seconds": eigh,
                        "ratio_to_eigh": seconds / eigh,
                    }
                )
        step()
    return {"bench": "noise", "results": results}


def render(result: dict[str, Any]) -> str:
    """The measurements as a table."""
    rows = [
        [
            r["mechanism"],
            r["arithmetic"],
            str(r["dimension"]),
            f"{r['cpu_seconds']:.4f}",
            f"{r['eigh_seconds']:.4f}",
            f"{r['ratio_to_eigh']:.2f}",
        ]
        for r in result["results"]
    ]
    return table(["mechanism", "arithmetic", "d", "CPU s", "eigh CPU s", "ratio"], rows, left=2)


def _cpu(work: Callable[[], Any], *, repeat: int) -> float:
    work()
    times = []
    for _ in range(repeat):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return max(min(times), 1e-9)
