"""One release in a peer's own environment: child.py PEER TABLE.npy ANSWER.npy EPSILON SEED LIMIT; JSON on stdout.

Run by ``environments.measure``. Needs NumPy and the peer, nothing else.
"""

from __future__ import annotations

import importlib
import json
import math
import resource
import sys
import time
import warnings

import numpy as np


def main(peer: str, table: str, answer: str, epsilon: str, seed: str, limit: str) -> None:
    warnings.filterwarnings("ignore")
    rows = np.load(table)
    prepare = importlib.import_module(f"with_{peer}").prepare
    invented = np.random.default_rng(1).normal(size=(50, 3)) / 10
    prepare(invented, 1.0, 1)()  # so that no import is timed
    work = prepare(rows, float(epsilon), int(seed))
    matrix = rows.T @ rows
    eigh_seconds = min(_cpu(lambda: np.linalg.eigh(matrix)) for _ in range(5))
    stop = math.ceil(time.process_time() + float(limit))
    resource.setrlimit(resource.RLIMIT_CPU, (stop, stop + 5))
    start, clock = time.process_time(), time.perf_counter()
    estimate = work()
    seconds = {"cpu_seconds": time.process_time() - start, "wall_seconds": time.perf_counter() - clock}
    np.save(answer, estimate)
    print(json.dumps({**seconds, "eigh_seconds": eigh_seconds}))


def _cpu(work) -> float:  # type: ignore[no-untyped-def]
    start = time.process_time()
    work()
    return time.process_time() - start


if __name__ == "__main__":
    main(*sys.argv[1:])
