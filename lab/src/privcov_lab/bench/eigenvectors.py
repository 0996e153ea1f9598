"""What a chain of private eigenvectors costs, as a ratio to one ``numpy.linalg.eigh`` in the same run.

CPU time; meant for one thread (set OPENBLAS_NUM_THREADS=1 before Python starts, as the result records).
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from privcov.linalg.arrays import Floats
from privcov.noise.idealized import sample_chain
from privcov.noise.randomness import kernel
from privcov.report.tables import table


def run(
    *,
    dimensions: Sequence[int] = (108, 400, 784),
    growth: Sequence[int] = (200, 400, 800, 1600),
    quick: bool = False,
    peers: str | Path | None = None,
    step: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Full spectra at low and high signal, the top 10, growth with the dimension, and a short decaying table.

    ``quick`` stops the growth at 800 and repeats less; ``peers`` is a file made by
    ``lab/peers/time_peers.py``.
    """
    if quick:
        growth = tuple(d for d in growth if d <= 800)
    repeat = 2 if quick else 3
    results = []
    for d in dimensions:
        for case in ("low", "high"):
            results.append(_measure(case, d, d, repeat=repeat))
        step()
    largest = max(dimensions)
    results.append(_measure("high", largest, min(10, largest), repeat=repeat))
    results.append(_measure("decaying", 13, 13, repeat=20))
    step()
    fitted = {}
    for case in ("low", "high"):
        seconds = [_measure(case, d, d, repeat=1 if d > 1000 else repeat)["cpu_seconds"] for d in growth]
        if len(growth) > 1:
            fitted[case] = float(np.polyfit(np.log(growth), np.log(seconds), 1)[0])
        step()
    result: dict[str, Any] = {
        "bench": "eigenvectors",
        "threads": os.environ.get("OPENBLAS_NUM_THREADS", "not set"),
        "results": results,
        "growth": {"dimensions": list(growth), "exponents": fitted},
    }
    if peers is not None:
        result["peers"] = _beside_peers(json.loads(Path(peers).read_text(encoding="utf-8"))["results"])
    return result


def render(result: dict[str, Any]) -> str:
    """The measurements as tables."""
    rows = [
        [
            r["case"],
            str(r["dimension"]),
            str(r["rank"]),
            f"{r['cpu_seconds']:.4f}",
            f"{r['eigh_seconds']:.5f}",
            f"{r['ratio_to_eigh']:.1f}",
            f"{r['proposals_per_vector']:.1f}",
        ]
        for r in result["results"]
    ]
    text = table(["signal", "d", "vectors", "CPU s", "eigh CPU s", "ratio", "proposals"], rows)
    reach = result["growth"]["dimensions"]
    for case, exponent in result["growth"]["exponents"].items():
        text += f"\n{case} signal grows like d^{exponent:.2f} from d = {reach[0]} to {reach[-1]}"
    for peer in result.get("peers", []):
        words = peer["answer"] if peer["times_ours"] is None else f"{peer['times_ours']:.0f} × our CPU time"
        text += f"\n{peer['peer']}, d = {peer['dimension']}: {words}"
    return text


def low_signal(dimension: int) -> tuple[Floats, Floats]:
    """10,000 unit rows without structure, ε = 1 over all vectors, replace-one."""
    rows = kernel().normals(10_000, dimension)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows.T @ rows, _uniform_split(1.0, dimension)


def high_signal(dimension: int) -> tuple[Floats, Floats]:
    """A trace of 10⁶ decaying over two decades, ε = 1000 over all vectors, replace-one."""
    values = np.logspace(0, -2, dimension)
    basis = np.linalg.qr(kernel().normals(dimension, dimension)).Q
    return (basis * (1e6 * values / values.sum())) @ basis.T, _uniform_split(1000.0, dimension)


def decaying(dimension: int) -> tuple[Floats, Floats]:
    """5,000 unit rows with standard deviations 1, 1/2, 1/3 …, ε = 1 over all vectors, replace-one."""
    rows = kernel().normals(5000, dimension) / np.arange(1, dimension + 1)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows.T @ rows, _uniform_split(1.0, dimension)


_CASES = {"low": low_signal, "high": high_signal, "decaying": decaying}


def _uniform_split(epsilon: float, dimension: int) -> Floats:
    return np.full(dimension - 1, epsilon / (dimension - 1) / 2)


def _measure(case: str, dimension: int, rank: int, *, repeat: int) -> dict[str, Any]:
    matrix, concentrations = _CASES[case](dimension)
    matrix = 0.5 * (matrix + matrix.T)
    counts: list[int] = []

    def chain() -> None:
        counts[:] = sample_chain(kernel(), matrix, concentrations[:rank], rank=rank)[1]

    chosen, eigh = [], []
    np.linalg.eigh(matrix)
    for _ in range(repeat):  # interleaved, so that both see the same machine
        eigh.append(_cpu(lambda: np.linalg.eigh(matrix)))
        chosen.append(_cpu(chain))
        eigh.append(_cpu(lambda: np.linalg.eigh(matrix)))
    seconds, floor = min(chosen), max(min(eigh), 1e-9)
    return {
        "case": case,
        "dimension": dimension,
        "rank": rank,
        "cpu_seconds": seconds,
        "eigh_seconds": floor,
        "ratio_to_eigh": seconds / floor,
        "proposals_per_vector": float(np.mean(counts)),
    }


def _beside_peers(peers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each peer's CPU time as a multiple of ours, both first divided by one eigh of their own run."""
    beside = []
    for peer in peers:
        case = "low" if peer["decay"] == 0 else "decaying"
        ours = _measure(case, int(peer["dimension"]), int(peer["dimension"]), repeat=3)
        times = None
        if peer["answer"] == "done":
            times = (peer["cpu_seconds"] / peer["eigh_seconds"]) / ours["ratio_to_eigh"]
        beside.append({**peer, "our_cpu_seconds": ours["cpu_seconds"], "times_ours": times})
    return beside


def _cpu(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start
