"""How long people wait: CPU seconds of whole commands on a table of a hundred columns, each beside its limit.

Every command is a process of its own on one thread, so that starting Python and loading libraries count too. Its first
run is not counted: there Python compiles modules, which it does once and keeps. Rows are invented: five factors behind
all columns. Of three releases by each of two mechanisms one stands clear of its noise, one is between, where intervals
take longest, and in one noise drowns the design.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from privcov.linalg.arrays import Floats
from privcov.noise.randomness import rehearsal
from privcov.privacy import ApproxDP, Loss, PureDP
from privcov.publish.release import release
from privcov.report.tables import number, table
from privcov.schema.schema import Schema

_ROWS = 20_000
_RELEASES = {
    "gaussian": {"clear": 1000, "between": 10, "drowned": 1},
    "symmetric-wishart": {"clear": 4000, "between": 32, "drowned": 1},
}
"""By mechanism and kind, the epsilon."""
_LIMITS = {"plan first": 2.0, "plan again": 0.5, "ols": 5.0, "pca": 2.0, "report": 5.0, "report, ols": 5.0}
_NARROW = 10
"""Columns with which every mechanism can be had, and those without a law are simulated."""
STEPS = 8 + 4 * sum(map(len, _RELEASES.values()))


def run(*, columns: int = 100, runs: int = 3, step: Callable[[], None] = lambda: None) -> dict[str, Any]:
    """The median over some runs of user and system seconds of each command."""
    lines: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        names = [f"c{i}" for i in range(columns)]
        schema = Path(folder, "schema.toml")
        narrow = Path(folder, "narrow.toml")
        for file, some in ((schema, names), (narrow, names[:_NARROW])):
            file.write_text("".join(f"[columns.{name}]\nlower = -1\nupper = 1\n" for name in some))

        def measure(what: str, kind: str, *command: str, fresh: bool = False) -> None:
            spent = []
            for attempt in range(runs + 1):
                kept = Path(folder, f"cache {kind} {attempt}" if fresh else f"cache {kind} 0")
                told = {"PRIVCOV_CACHE": str(kept), **_bytecode(folder)}
                spent.append(_cpu(list(command), folder, told))
            lines.append(
                {
                    "command": what,
                    "release": kind,
                    "cpu_seconds": statistics.median(spent[1:]),
                    "limit": _LIMITS[what],
                }
            )
            step()

        for about, of in (("", schema), (f", {min(columns, _NARROW)} columns", narrow)):
            plan = ["plan", "--schema", str(of), "--rows", str(_ROWS), "--epsilon", "1"]
            for kind, more in ((f"pure{about}", []), (f"with a delta{about}", ["--delta", "1e-6"])):
                measure("plan first", kind, *plan, *more, fresh=True)
                measure("plan again", kind, *plan, *more)
        rows, formula = _invented(columns), f"c0 ~ {' + '.join(names[1:])}"
        for place, (mechanism, how, epsilon) in enumerate(
            (mechanism, how, epsilon) for mechanism, by in _RELEASES.items() for how, epsilon in by.items()
        ):
            path, kind = str(Path(folder, f"{place}.json")), f"{mechanism}, {how}"
            loss: Loss = PureDP(epsilon=epsilon, neighbours="replace-one")
            if mechanism == "gaussian":
                loss = ApproxDP(epsilon=epsilon, delta="1e-6", neighbours="replace-one")
            release(rows, schema=Schema.read(str(schema)), loss=loss, mechanism=mechanism).save(path)
            measure("ols", kind, "ols", path, formula)
            measure("pca", kind, "pca", path)
            page = ("report", path, "--output", f"{path}.html", "--force")
            measure("report", kind, *page)
            measure("report, ols", kind, *page, "--model", formula)
    return {"bench": "speed", "columns": columns, "rows": _ROWS, "runs": runs, "lines": lines}


def render(result: dict[str, Any]) -> str:
    """A line for each command, and whether it kept its limit."""
    rows = [
        [line["command"], line["release"], number(line["cpu_seconds"], 2), number(line["limit"], 1),
         "" if line["cpu_seconds"] <= line["limit"] else "above it"]
        for line in result["lines"]
    ]  # fmt: skip
    return "\n".join(
        [
            f"CPU seconds (user and system) of whole commands on {result['columns']} columns, one thread, median of "
            f"{result['runs']}:",
            "",
            table(["command", "release", "seconds", "limit", ""], rows),
        ]
    )


def _cpu(command: list[str], folder: str, more: dict[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    threads = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "OMP", "MKL", "BLIS")}
    subprocess.run(
        [sys.executable, "-m", "privcov", *command],
        check=True,
        capture_output=True,
        cwd=folder,
        env={**os.environ, **threads, **more},
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _bytecode(folder: str) -> dict[str, str]:
    """Where compiled modules are kept: here, also where the environment keeps none, as no installation does."""
    return {"PYTHONPYCACHEPREFIX": str(Path(folder, "bytecode")), "PYTHONDONTWRITEBYTECODE": ""}


def _invented(columns: int) -> Floats:
    source = rehearsal(14)
    factors = source.normals(_ROWS, 5) @ source.normals(5, columns)
    return np.clip(0.1 * factors + 0.3 * source.normals(_ROWS, columns), -1, 1)
