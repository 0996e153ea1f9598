"""What was measured of peers, kept as JSON and written as a table and a page: numbers, and no opinion of them."""

from __future__ import annotations

import csv
import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

NAMES = {"privcov": "privcov", "diffprivlib": "diffprivlib", "opendp": "OpenDP"}
COLUMNS = (
    *("table", "rows", "columns", "epsilon", "method", "runs", "answered", "limit"),
    *("error", "error_std", "cpu_seconds", "wall_seconds", "zero"),
)
PAGE = """# Peers, measured

A private covariance matrix by privcov and by two public libraries: error and time on the same tables.

Made by `python lab/peers/compare.py --data DIR -o lab/docs/reproduced/peers`; every run is in
[peers.json](peers.json), the means in [peers.csv](peers.csv).

{tables}

**Error** is ‖Ĉ − C‖_F / n, C the sum of xxᵀ over the n rows. **s** is CPU seconds of one release, without imports and
without reading the table, on one thread. Means over the runs that gave an answer: 5, or as many as are in brackets of
those begun. None is begun after one that gave no answer within {limit:g} CPU seconds ("—" where that was the first;
another attempt may take less), nor once those on a table have taken long together. **Zero** is the error of publishing
the zero matrix, which needs no data.

**Same promise.** Pure ε for replacing one row, the number of rows public, rows of norm at most 1.

* privcov {privcov}: `release` with the mechanism `auto` takes, exact arithmetic, kernel randomness, repaired.
* diffprivlib {diffprivlib}: `covariance_eig(rows, epsilon=ε, norm=1)`, every eigenpair, put together again. The
  sensitivity 2 that it gives eigenvalues is that of a replaced row.
* OpenDP {opendp}: `make_private_pca` about the origin, every component, put together again. Tables that differ in one
  replaced row are 2 apart in its symmetric distance; its own map at 2 is asked before it runs and must say ε.

Each runs with the ε it states; what it states was not audited here.

**Same tables.** wine, airfoil and adult as in the papers: columns scaled to [0, 1] by their own range, rows divided
by the largest norm. The others: 5,000 Gaussian rows whose variances are equal or fall with k as the name says, each
divided by its norm.

**Machine.** {machine}
"""


@dataclass(frozen=True, kw_only=True)
class Case:
    """The runs of one method on one table."""

    table: str
    digest: str
    rows: int
    columns: int
    zero: float
    method: str
    epsilon: float
    limit: float
    runs: Sequence[dict[str, Any]]

    @property
    def answered(self) -> list[dict[str, Any]]:
        return [run for run in self.runs if run["answer"] == "done"]

    def mean(self, name: str) -> float | None:
        values = [run[name] for run in self.answered]
        return float(np.mean(values)) if values else None

    def line(self) -> list[Any]:
        """A line of the CSV file."""
        errors = [run["error"] for run in self.answered]
        spread = float(np.std(errors, ddof=1)) if len(errors) > 1 else None
        means = [self.mean("error"), spread, self.mean("cpu_seconds"), self.mean("wall_seconds")]
        counts = [len(self.runs), len(errors), self.limit]
        known = [self.table, self.rows, self.columns, self.epsilon, self.method, *counts, *means, self.zero]
        return ["" if value is None else value for value in known]

    def cells(self, usual: int) -> list[str]:
        """Error and seconds for the page."""
        error, seconds = self.mean("error"), self.mean("cpu_seconds")
        if error is None or seconds is None:
            slow = self.runs[-1]["answer"] == "none within the limit"
            told = f"— (0 of {len(self.runs)})", f"> {self.limit:g}"
            return list(told) if slow else [self.runs[-1]["answer"], ""]
        few = "" if len(self.answered) == usual else f" ({len(self.answered)} of {len(self.runs)})"
        return [f"{error:.2g}{few}" if error >= 1e-3 else f"{error:.1e}{few}", f"{seconds:.2g}"]


@dataclass(kw_only=True)
class Kept:
    """Everything measured so far."""

    cases: list[Case] = field(default_factory=list)
    versions: dict[str, dict[str, str]] = field(default_factory=dict)
    machine: dict[str, Any] = field(default_factory=lambda: machine())

    @classmethod
    def read(cls, directory: Path, versions: dict[str, dict[str, str]]) -> Kept:
        """What an earlier start left of this machine and these versions; nothing where there was none."""
        path, now = directory / "peers.json", cls(versions=versions)
        if path.is_file():
            known = json.loads(path.read_text(encoding="utf-8"))
            if known.get("machine") == now.machine:
                cases = [Case(**case) for case in known["cases"]]
                now.cases = [c for c in cases if known["versions"][c.method] == versions[c.method]]
        return now

    def has(self, table: str, method: str, epsilon: float, limit: float) -> bool:
        """Whether a case was measured under this limit."""
        wanted = (table, method, epsilon, limit)
        return any((c.table, c.method, c.epsilon, c.limit) == wanted for c in self.cases)

    def add(self, case: Case, order: Sequence[tuple[str, str]]) -> None:
        """Keep a case in place of an older one, all in this order of tables and methods."""
        same = (case.table, case.method, case.epsilon)
        others = [c for c in self.cases if (c.table, c.method, c.epsilon) != same]
        self.cases = sorted([*others, case], key=lambda c: (-c.epsilon, order.index((c.table, c.method))))


def machine() -> dict[str, Any]:
    """What the numbers were measured on."""
    model = platform.processor()
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo", encoding="utf-8") as told:
            names = [line.split(":", 1)[1].strip() for line in told if line.startswith("model name")]
        model = names[0] if names else model
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
    }


def write(kept: Kept, directory: Path) -> None:
    """The three files; JSON first, and whole or not at all, for the next start reads it."""
    directory.mkdir(parents=True, exist_ok=True)
    known = {
        "machine": kept.machine,
        "versions": kept.versions,
        "cases": [asdict(case) for case in kept.cases],
    }
    part = directory / "peers.json.part"
    part.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    part.replace(directory / "peers.json")
    with (directory / "peers.csv").open("w", encoding="utf-8", newline="") as lines:
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(case.line() for case in kept.cases)
    (directory / "peers.md").write_text(page(kept), encoding="utf-8")


def page(kept: Kept) -> str:
    """The page."""
    epsilons = list(dict.fromkeys(case.epsilon for case in kept.cases))
    usual = max((len(case.runs) for case in kept.cases), default=0)
    parts = [f"## ε = {epsilon:g}\n\n{_table(kept, epsilon, usual)}" for epsilon in epsilons]
    told = kept.machine
    return PAGE.format(
        tables="\n\n".join(parts),
        limit=max((case.limit for case in kept.cases), default=0),
        machine=f"{told['processor']}, {told['cores']} cores, {told['system']}, Python {told['python']}.",
        **{method: kept.versions[method][method] for method in NAMES},
    )


def _table(kept: Kept, epsilon: float, usual: int) -> str:
    cases = [case for case in kept.cases if case.epsilon == epsilon]
    heads = [
        "table",
        "n",
        "d",
        *(f"{name} {word}" for name in NAMES.values() for word in ("error", "s")),
        "zero",
    ]
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)]]
    for name in dict.fromkeys(case.table for case in cases):
        here = {case.method: case for case in cases if case.table == name}
        first = next(iter(here.values()))
        pairs = [cell for m in NAMES for cell in (here[m].cells(usual) if m in here else ["", ""])]
        lines.append([name, f"{first.rows:,}", str(first.columns), *pairs, f"{first.zero:.2g}"])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
