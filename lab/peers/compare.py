"""Error and time of privcov and of two public peers on the same tables, under the same promise.

    python lab/peers/compare.py --data DIR -o lab/docs/reproduced/peers      # about 25 minutes on one core

Writes peers.csv, peers.md and peers.json. Started again, it measures only what peers.json does not hold yet. Each
peer runs in an environment of its own, made on first use; run this with an interpreter that has privcov.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from environments import HOME, PEERS, environment, measure, versions
from measurements import Case, Kept, write
from numpy.typing import NDArray

from privcov.errors import PrivcovError
from privcov_lab.reproduce.datasets import Datasets, scaled

Floats = NDArray[np.float64]
METHODS = ("privcov", *PEERS)
SPECTRA = {"isotropic": 0, "1/k": 1, "1/k²": 2}
DIMENSIONS = (13, 54, 400)
ROWS = 5000
PACKAGES = {"privcov": ["privcov", "numpy", "scipy"]} | {
    peer: [peer, "numpy", "scipy", "scikit-learn"] for peer in PEERS
}


@dataclass(frozen=True)
class Table:
    """A table by name, made or read when it is measured."""

    name: str
    rows: Callable[[], Floats]


def synthetic(dimension: int, decay: int) -> Floats:
    """Unit rows of Gaussian directions whose variances fall like k^-decay."""
    made = np.random.default_rng(1).normal(size=(ROWS, dimension))
    made *= np.arange(1, dimension + 1) ** (-decay / 2)
    return np.asarray(made / np.linalg.norm(made, axis=1, keepdims=True))


def tables(data: Datasets) -> list[Table]:
    """The papers' tables and the synthetic ones, the wide ones last."""
    real = [
        Table(name, lambda name=name: scaled(data.load(name).rows)) for name in ("wine", "airfoil", "adult")
    ]  # type: ignore[misc]
    made = [
        Table(f"{word}, d = {d}", lambda d=d, decay=decay: synthetic(d, decay))  # type: ignore[misc]
        for d in DIMENSIONS
        for word, decay in SPECTRA.items()
    ]
    return real + made


def case(table: str, rows: Floats, method: str, epsilon: float, options: argparse.Namespace) -> Case:
    """The runs of one method on one table; fewer where a run gives no answer or all take too long."""
    truth, python = rows.T @ rows, environment(options.home, method)
    runs: list[dict[str, object]] = []
    spent = 0.0
    for seed in range(1, options.runs + 1):
        made, estimate = measure(python, method, rows, epsilon=epsilon, seed=seed, limit=options.limit)
        if estimate is not None:
            made["error"] = float(np.linalg.norm(estimate - truth)) / len(rows)
        runs.append(made)
        spent += float(made.get("cpu_seconds", options.limit))
        if estimate is None or spent > options.case_seconds:
            break
    return Case(
        table=table,
        digest=hashlib.sha256(np.ascontiguousarray(rows).data).hexdigest()[:16],
        rows=len(rows),
        columns=rows.shape[1],
        zero=float(np.linalg.norm(truth)) / len(rows),
        method=method,
        epsilon=epsilon,
        limit=options.limit,
        runs=runs,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the papers' tables")
    parser.add_argument("-o", "--out", type=Path, required=True, help="folder to write")
    parser.add_argument("--epsilons", default="1", help="separated by commas")
    parser.add_argument("--tables", help="only these, separated by semicolons")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--limit", type=float, default=60.0, help="CPU seconds for one release")
    parser.add_argument(
        "--case-seconds", type=float, default=120.0, help="CPU seconds after which no run begins"
    )
    parser.add_argument("--home", type=Path, default=HOME, help="folder of the environments")
    options = parser.parse_args()

    data = Datasets(options.data)
    wanted = tables(data)
    order = [(table.name, method) for table in wanted for method in METHODS]
    if options.tables:
        wanted = [table for table in wanted if table.name in options.tables.split(";")]
    try:
        data.check(table.name for table in wanted if table.name in ("wine", "airfoil", "adult"))
    except PrivcovError as error:
        sys.exit(str(error))
    kept = Kept.read(options.out, {m: versions(environment(options.home, m), PACKAGES[m]) for m in METHODS})
    for epsilon in (float(text) for text in options.epsilons.split(",")):
        for table in wanted:
            missing = [m for m in METHODS if not kept.has(table.name, m, epsilon, options.limit)]
            rows = table.rows() if missing else np.empty((0, 0))
            for method in missing:
                print(f"ε = {epsilon:g}, {table.name}, {method}", file=sys.stderr, flush=True)
                kept.add(case(table.name, rows, method, epsilon, options), order)
                write(kept, options.out)
    write(kept, options.out)


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    main()
