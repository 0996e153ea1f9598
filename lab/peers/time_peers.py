"""Time the two public samplers of private eigenvectors, each in an environment of its own; JSON on stdout.

    python lab/peers/time_peers.py > peers.json        # about five minutes, most of it the peers
    privcov bench eigenvectors --peers peers.json

Nothing here is imported by privcov, and nothing is installed beside it: the environments are made under
``.benchmarks/`` (ignored by git) or the folder given with ``--home``.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from environments import HOME, PEERS, environment, measure

ROWS = 5000


def timed(python: Path, peer: str, *, dimension: int, decay: float, limit: float) -> dict[str, Any]:
    """One release at ε = 1 of unit rows whose standard deviations fall like k^-decay."""
    rows = np.random.default_rng(1).normal(size=(ROWS, dimension)) * np.arange(1, dimension + 1) ** -decay
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    case = {"peer": peer, "dimension": dimension, "rows": ROWS, "decay": decay, "limit": limit}
    return case | measure(python, peer, rows, epsilon=1.0, seed=1, limit=limit)[0]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--home", type=Path, default=HOME)
    parser.add_argument("--limit", type=float, default=120.0, help="CPU seconds for one release")
    parser.add_argument("--dimension", type=int, default=400)
    options = parser.parse_args()
    results = []
    for peer in PEERS:
        python = environment(options.home, peer)
        for dimension, decay in ((options.dimension, 0.0), (13, 1.0)):
            results.append(timed(python, peer, dimension=dimension, decay=decay, limit=options.limit))
    print(json.dumps({"results": results}, indent=2))


if __name__ == "__main__":
    main()
