"""Peers in environments of their own: made on first use, one process and one thread a run, a limit on CPU time.

Nothing here is imported by privcov, and nothing is installed beside it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).resolve().parent
HOME = HERE.parents[1] / ".benchmarks" / "peers"
"""Where environments are made; git ignores it."""

CLOCK = 30
"""Seconds on the clock for one of the limit before a process is given up."""

PEERS = {
    "diffprivlib": ["diffprivlib==0.6.6", "scikit-learn<=1.8"],
    "opendp": ["opendp==0.16.0", "scikit-learn", "numpy", "randomgen"],
}
"""What each environment holds. diffprivlib 0.6.6 does not import beside scikit-learn 1.9."""


def environment(home: Path, peer: str) -> Path:
    """The interpreter of a peer's own environment, made on first use; privcov's is the one that runs this."""
    if peer == "privcov":
        return Path(sys.executable)
    python, ready = home / peer / "bin" / "python", home / peer / "ready"
    if not ready.exists():  # written last, so that an interrupted installation is done again
        venv.create(home / peer, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *PEERS[peer]], check=True, stdout=sys.stderr)
        ready.touch()
    return python


def versions(python: Path, packages: list[str]) -> dict[str, str]:
    """The versions an environment has."""
    code = "import importlib.metadata as m, json, sys; print(json.dumps({p: m.version(p) for p in sys.argv[1:]}))"
    done = subprocess.run([python, "-c", code, *packages], capture_output=True, text=True, check=True)
    found: dict[str, str] = json.loads(done.stdout)
    return found


def measure(
    python: Path, peer: str, rows: NDArray[np.float64], *, epsilon: float, seed: int, limit: float
) -> tuple[dict[str, Any], NDArray[np.float64] | None]:
    """One release by one peer: how it ended, seconds, and the matrix. No answer within the limit is an answer too.

    The limit is on the CPU time of the release alone, so that a busy machine does not shorten it. A process that
    waits instead of working is stopped by the clock, far later, and that is not called an answer.
    """
    one_thread = {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL", "RAYON", "POLARS")}
    with tempfile.TemporaryDirectory() as folder:
        table, answer = Path(folder, "table.npy"), Path(folder, "answer.npy")
        np.save(table, rows)
        call = [python, HERE / "child.py", peer, table, answer, str(epsilon), str(seed), str(limit)]
        try:
            done = subprocess.run(
                call,
                capture_output=True,
                text=True,
                timeout=CLOCK * limit + 60,
                env={**os.environ, **one_thread},
            )
        except subprocess.TimeoutExpired:
            return {"answer": "stopped by the clock"}, None
        if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
            return {"answer": "none within the limit"}, None
        if done.returncode:
            return {"answer": "failed", "last_line": done.stderr.strip().splitlines()[-1:]}, None
        return {"answer": "done", **json.loads(done.stdout.splitlines()[-1])}, np.load(answer)
