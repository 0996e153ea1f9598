"""Time the two public samplers of private eigenvectors, each in an environment of its own; JSON on stdout.

    python benchmarks/peers/time_peers.py > peers.json        # about five minutes, most of it the peers
    privcov bench eigenvectors --peers peers.json

Nothing here is imported by privcov, and nothing is installed beside it: the environments are made under
``.benchmarks/`` (ignored by git) or the folder given with ``--home``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import venv
from pathlib import Path

PEERS = {
    "diffprivlib": ["diffprivlib==0.6.6", "scikit-learn<=1.8"],
    "opendp": ["opendp==0.16.0", "scikit-learn", "numpy", "randomgen"],
}

COMMON = """
import json, time, warnings
import numpy as np
warnings.filterwarnings("ignore")
rng = np.random.default_rng(1)
rows = rng.normal(size=({rows}, {dimension})) * np.arange(1, {dimension} + 1) ** -{decay}
rows /= np.linalg.norm(rows, axis=1, keepdims=True)
matrix = rows.T @ rows
def eigh():
    start = time.process_time(); np.linalg.eigh(matrix); return time.process_time() - start
eigh_seconds = min(eigh() for _ in range(5))
"""

BODY = {
    "diffprivlib": """
from diffprivlib.models.utils import covariance_eig
start, clock = time.process_time(), time.perf_counter()
covariance_eig(rows, epsilon=1.0, norm=1.0, random_state=1)
""",
    "opendp": """
import opendp.prelude as dp
from opendp.extras.sklearn.decomposition import make_private_pca
dp.enable_features("contrib", "floating-point", "idealized-numerics")
domain = dp.numpy.array2_domain(num_columns={dimension}, size={rows}, T=float, norm=1.0, p=2, origin=0.0)
release = make_private_pca(domain, dp.symmetric_distance(), 0.5, norm=1.0)
start, clock = time.process_time(), time.perf_counter()
release(rows)
""",
}

END = """
print(json.dumps({{"cpu_seconds": time.process_time() - start, "wall_seconds": time.perf_counter() - clock,
                   "eigh_seconds": eigh_seconds}}))
"""


def environment(home: Path, peer: str) -> Path:
    """The interpreter of the peer's own environment, made on first use."""
    python = home / peer / "bin" / "python"
    if not python.exists():
        venv.create(home / peer, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *PEERS[peer]], check=True, stdout=sys.stderr)
    return python


def measure(
    python: Path, peer: str, *, dimension: int, rows: int, decay: float, limit: float
) -> dict[str, object]:
    """One run in one process, one thread; no answer within the limit is an answer too."""
    script = (COMMON + BODY[peer] + END).format(dimension=dimension, rows=rows, decay=decay)
    case: dict[str, object] = {
        "peer": peer,
        "dimension": dimension,
        "rows": rows,
        "decay": decay,
        "limit": limit,
    }
    one_thread = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            [python, "-c", script], capture_output=True, text=True, timeout=limit, env=one_thread, check=False
        )
    except subprocess.TimeoutExpired:
        return {**case, "answer": "none within the limit"}
    if done.returncode:
        return {**case, "answer": "failed", "last_line": done.stderr.strip().splitlines()[-1:]}
    return {**case, "answer": "done", **json.loads(done.stdout.strip().splitlines()[-1])}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--home", type=Path, default=Path(".benchmarks/peers"))
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for one run")
    parser.add_argument("--dimension", type=int, default=400)
    options = parser.parse_args()
    results = []
    for peer in PEERS:
        python = environment(options.home, peer)
        for dimension, decay in ((options.dimension, 0.0), (13, 1.0)):
            results.append(
                measure(python, peer, dimension=dimension, rows=5000, decay=decay, limit=options.limit)
            )
    print(json.dumps({"results": results}, indent=2))


if __name__ == "__main__":
    main()
