"""Measuring the cells of a study: over all cores, longest first, and on from where the last attempt stopped.

Every measured cell is one line of ``cells.jsonl``, written as soon as it is known. A line that was cut short counts
as not measured. Cells carry their own seeds, so that their numbers do not depend on order, process or interruption.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from importlib import import_module
from pathlib import Path
from typing import Any

from privcov.noise.randomness import rehearsal
from privcov_lab.reproduce.datasets import Datasets
from privcov_lab.reproduce.study import Cell, Effort, Results, Study

KEPT = "cells.jsonl"


def run(
    study: Study,
    *,
    data: Datasets,
    directory: Path,
    effort: Effort,
    workers: int | None = None,
    begin: Callable[[int], None] = lambda left: None,
    step: Callable[[], None] = lambda: None,
) -> Results:
    """Every cell of the study, measured now or before; ``begin`` is told how many are left, ``step`` follows each."""
    cells = list(study.cells(effort))
    path = directory / KEPT
    known = _known(path)
    missing = sorted((c for c in cells if c.key(study) not in known), key=lambda cell: -cell.cost)
    begin(len(missing))
    if missing:
        data.check(study.tables)
        with path.open("a", encoding="utf-8") as kept:
            _start_on_a_new_line(path, kept)

            def keep(cell: Cell, values: Mapping[str, Any], seconds: float) -> None:
                known[cell.key(study)] = line = {"values": values, "seconds": round(seconds, 3)}
                named = {"key": cell.key(study), "function": cell.function, "arguments": dict(cell.arguments)}
                kept.write(json.dumps(named | line) + "\n")
                kept.flush()
                step()

            _measure(study, missing, data=data, workers=workers or cores(), keep=keep)
    return Results(
        tuple(
            {"function": c.function, **c.arguments, **line["values"], "seconds": line["seconds"]}
            for c in cells
            for line in [known[c.key(study)]]
        )
    )


def cores() -> int:
    """How many processes this one may keep busy."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def measure(study: str, key: str, cell: Cell, data: Datasets) -> tuple[dict[str, Any], float]:
    """One cell, in whatever process this is: its values as JSON would give them back, and its CPU seconds."""
    module = import_module(f"privcov_lab.reproduce.papers.{study}")
    began = time.process_time()
    values = getattr(module, cell.function)(data, rehearsal(int(key[:15], 16)), **cell.arguments)
    return json.loads(json.dumps(values, allow_nan=False)), time.process_time() - began


def _measure(
    study: Study,
    cells: Sequence[Cell],
    *,
    data: Datasets,
    workers: int,
    keep: Callable[[Cell, Mapping[str, Any], float], None],
) -> None:
    if workers == 1:
        for cell in cells:
            keep(cell, *measure(study.name, cell.key(study), cell, data))
        return
    # Started afresh, not forked: a fork inherits locks that threads of NumPy or Arrow may hold.
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        running: dict[Future[tuple[dict[str, Any], float]], Cell] = {
            pool.submit(measure, study.name, cell.key(study), cell, data): cell for cell in cells
        }
        try:
            while running:
                for done in wait(running, return_when=FIRST_COMPLETED).done:
                    keep(running.pop(done), *done.result())
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _known(path: Path) -> dict[str, dict[str, Any]]:
    if not path.exists():
        return {}
    known = {}
    for text in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            line = json.loads(text)
            known[line["key"]] = {"values": line["values"], "seconds": line["seconds"]}
        except (ValueError, KeyError, TypeError):
            continue
    return known


def _start_on_a_new_line(path: Path, kept: Any) -> None:
    whole = path.read_bytes()
    if whole and not whole.endswith(b"\n"):
        kept.write("\n")
