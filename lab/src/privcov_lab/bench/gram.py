"""How much the exact integer Gram matrix costs, against an ordinary float one from the same files.

CPU time, interleaved in one process, least of several rounds; wall time where workers are compared. Every part
runs in a process of its own, with BLAS on one thread, on invented files that are removed afterwards.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from privcov.noise.randomness import rehearsal
from privcov.schema import Schema
from privcov.schema.grid import Grid
from privcov.summing.engines import Local
from privcov.summing.sum import sum_rows
from privcov.table import open_table

PARTS = ("parquet", "memory", "csv", "workers", "engines", "wide", "growth", "derived", "strata")
_BATCH, _BLOCK, _BUFFER = 65_536, 4_096, 2**16
_PIECE = 500_000
_LOWER, _UPPER = -4.0, 5.0
_ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "OMP", "MKL", "BLIS")}


def run(
    rows: int = 10_000_000,
    columns: int = 20,
    *,
    parts: tuple[str, ...] = ("parquet",),
    row_norm_bound: float = 2.0,
    rounds: int = 4,
    largest: int = 10_000_000,
) -> dict[str, Any]:
    """Write invented files, then time what was asked for. ``largest`` is where the growth is followed to."""
    result: dict[str, Any] = {"rows": rows, "columns": columns}
    with tempfile.TemporaryDirectory() as folder:
        settings = {
            "folder": folder,
            "rows": rows,
            "columns": columns,
            "row_norm_bound": row_norm_bound,
            "rounds": rounds,
            "largest": largest,
        }
        for part in parts:
            result[part] = in_child("privcov_lab.bench.gram", part, settings)
            for made in Path(folder).iterdir():
                made.unlink()
    return result


def write_parquet(path: Path, rows: int, columns: int) -> int:
    """Normal numbers in row groups of half a million; returns the size of the file.

    After two million rows the same ones come again: what is measured does not depend on it, and drawing does
    not take longer than reading.
    """
    randomness = rehearsal(0)
    kinds = pa.schema([(f"x{place}", pa.float64()) for place in range(columns)])
    drawn: list[pa.RecordBatch] = []
    with pq.ParquetWriter(path, kinds, use_dictionary=False) as file:
        for place, start in enumerate(range(0, rows, _PIECE)):
            if place < 4:
                arrays = [pa.array(randomness.normals(min(rows, _PIECE))) for _ in range(columns)]
                drawn.append(pa.record_batch(arrays, schema=kinds))
            file.write_batch(drawn[place % 4].slice(0, rows - start), row_group_size=_PIECE)
    return path.stat().st_size


def schema_of(columns: int, row_norm_bound: float) -> Schema:
    bounds = {f"x{place}": {"lower": _LOWER, "upper": _UPPER} for place in range(columns)}
    return Schema.from_dict({"columns": bounds, "row_norm_bound": row_norm_bound})


def summed(data: Any, schema: Schema, *, workers: int = 1) -> int:
    """Open and sum, as a release does; returns the rows."""
    return sum_rows(open_table(data, schema), schema, Grid.of(schema), engine=Local(workers=workers)).rows


def timed(
    ways: dict[str, Callable[[], object]], rounds: int, clock: Callable[[], float] = time.process_time
) -> dict[str, list[float]]:
    """The times of each way, in rounds that take them in turn."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    order = list(ways)
    for _ in range(rounds):
        for name in order:
            start = clock()
            ways[name]()
            times[name].append(clock() - start)
        order.append(order.pop(0))  # what ran before leaves the allocator in a better or worse state
    return times


def least(
    ways: dict[str, Callable[[], object]], rounds: int, clock: Callable[[], float] = time.process_time
) -> dict[str, float]:
    """The least time of each way, in rounds that take them in turn."""
    return {name: min(times) for name, times in timed(ways, rounds, clock).items()}


def in_child(module: str, part: str, settings: dict[str, Any], **environment: str) -> Any:
    """What a part of a bench prints when its module runs in a process of its own, with BLAS on one thread."""
    done = subprocess.run(
        [sys.executable, "-m", module, part, json.dumps(settings)],
        env=os.environ | _ONE_THREAD | environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def _parquet(folder: str, rows: int, columns: int, row_norm_bound: float, rounds: int, **_: Any) -> Any:
    path, schema = Path(folder, "numbers.parquet"), schema_of(columns, row_norm_bound)
    size = write_parquet(path, rows, columns)
    ways: dict[str, Callable[[], object]] = {
        "decode": lambda: [batch.num_rows for batch in _batches(path)],
        "floor": lambda: _float_gram(path, columns, row_norm_bound),
        "exact": lambda: summed(path, schema),
    }
    return {"file_bytes": size, "cpu_seconds": least(ways, rounds)}


def _memory(folder: str, rows: int, columns: int, row_norm_bound: float, **_: Any) -> Any:
    path, found = Path(folder, "numbers.parquet"), {}
    for factor in (1, 5):
        write_parquet(path, factor * rows, columns)
        settings = {"path": str(path), "columns": columns, "row_norm_bound": row_norm_bound}
        found[str(factor * rows)] = in_child("privcov_lab.bench.gram", "peak", settings)
    return found


def _peak(path: str, columns: int, row_norm_bound: float) -> int:
    summed(path, schema_of(columns, row_norm_bound))
    return peak_bytes()


def peak_bytes() -> int:
    """The most memory this process has held; what Linux reports through ``getrusage`` begins with the parent's."""
    try:
        status = Path("/proc/self/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024
    except (OSError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _batches(path: Path) -> Any:
    return pq.ParquetFile(path, buffer_size=_BUFFER).iter_batches(_BATCH, use_threads=False)


def _float_gram(path: Path, columns: int, row_norm_bound: float) -> Any:
    """The same work without exactness, as fast as NumPy does it: scale, clamp, clip, multiply, add."""
    total = np.zeros((columns + 1, columns + 1))
    for batch in _batches(path):
        arrays = [values.to_numpy() for values in batch.columns]
        for start in range(0, batch.num_rows, _BLOCK):
            rows = np.empty((columns + 1, min(_BLOCK, batch.num_rows - start)))
            rows[0] = 1.0
            for place, values in enumerate(arrays, 1):
                np.subtract(values[start : start + _BLOCK], (_LOWER + _UPPER) / 2, out=rows[place])
            rows[1:] /= (_UPPER - _LOWER) / 2
            np.clip(rows, -1.0, 1.0, out=rows)
            norms = np.sqrt(np.einsum("ij,ij->j", rows[1:], rows[1:]))
            rows[1:] *= np.minimum(1.0, np.sqrt(row_norm_bound**2 - 1) / norms)
            total += rows @ rows.T
    return total


if __name__ == "__main__":
    from privcov_lab.bench import scaling

    ways: dict[str, Callable[..., Any]] = {
        "parquet": _parquet,
        "memory": _memory,
        "peak": _peak,
        **scaling.PARTS,
    }
    print(json.dumps(ways[sys.argv[1]](**json.loads(sys.argv[2]))))
