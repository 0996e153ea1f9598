"""How much the exact integer Gram matrix costs, against an ordinary float one from the same Parquet file.

Everything is single-threaded CPU time, interleaved in one process, least of several rounds; the peak memory
is that of a process of its own which does nothing but open the file and sum it.
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

from privcov.grid import Grid
from privcov.randomness import rehearsal
from privcov.schema import Schema
from privcov.summing import sum_rows
from privcov.table import open_table

_BATCH, _BLOCK, _BUFFER = 65_536, 4_096, 2**16
_LOWER, _UPPER = -4.0, 5.0
_ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "OMP", "MKL", "BLIS")}


def run(
    rows: int = 5_000_000, columns: int = 20, *, row_norm_bound: float = 2.0, rounds: int = 6
) -> dict[str, Any]:
    """Write a Parquet file of normal numbers, then time decoding, the float floor, and the exact path."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "numbers.parquet")
        _write(path, rows, columns)
        settings = {"path": str(path), "columns": columns, "row_norm_bound": row_norm_bound, "rounds": rounds}
        timed = _in_child("timing", settings)
        peak = _in_child("memory", settings)["peak_bytes"]
        size = path.stat().st_size
    return {
        "rows": rows,
        "columns": columns,
        "file_bytes": size,
        "cpu_seconds": timed,
        "exact_over_floor": timed["exact"] / timed["floor"],
        "exact_over_decode": timed["exact"] / timed["decode"],
        "rows_per_cpu_second": rows / timed["exact"],
        "peak_bytes": peak,
    }


def render(result: dict[str, Any]) -> str:
    """The result in words and figures."""
    cpu, ratio, megabytes = result["cpu_seconds"], result["exact_over_floor"], result["file_bytes"] / 1e6
    return "\n".join(
        [
            f"{result['rows']:,} rows × {result['columns']} columns, {megabytes:.0f} MB of Parquet",
            f"  decode only                     {cpu['decode']:8.2f} CPU-s",
            f"  decode + float clip + product   {cpu['floor']:8.2f} CPU-s   (floor)",
            f"  exact integer Gram matrix       {cpu['exact']:8.2f} CPU-s   {ratio:.2f} × floor",
            f"  rows per CPU second             {result['rows_per_cpu_second'] / 1e6:8.2f} million",
            f"  peak memory of the process      {result['peak_bytes'] / 1e6:8.0f} MB",
        ]
    )


def _write(path: Path, rows: int, columns: int) -> None:
    randomness = rehearsal(0)
    kinds = pa.schema([(f"x{place}", pa.float64()) for place in range(columns)])
    with pq.ParquetWriter(path, kinds, use_dictionary=False) as file:
        for start in range(0, rows, 500_000):
            count = min(500_000, rows - start)
            arrays = [pa.array(randomness.normals(count)) for _ in range(columns)]
            file.write_batch(pa.record_batch(arrays, schema=kinds), row_group_size=500_000)


def _schema(columns: int, row_norm_bound: float) -> Schema:
    bounds = {f"x{place}": {"lower": _LOWER, "upper": _UPPER} for place in range(columns)}
    return Schema.from_dict({"columns": bounds, "row_norm_bound": row_norm_bound})


def _in_child(what: str, settings: dict[str, Any]) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "privcov.bench.gram", what, json.dumps(settings)],
        env=os.environ | _ONE_THREAD,
        capture_output=True,
        text=True,
        check=True,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def _timing(path: str, columns: int, row_norm_bound: float, rounds: int) -> dict[str, float]:
    schema = _schema(columns, row_norm_bound)
    ways: dict[str, Callable[[], object]] = {
        "decode": lambda: [batch.num_rows for batch in _batches(path)],
        "floor": lambda: _float_gram(path, columns, row_norm_bound),
        "exact": lambda: sum_rows(open_table(path, schema), schema, Grid.of(schema)),
    }
    best = dict.fromkeys(ways, float("inf"))
    order = list(ways)
    for _ in range(rounds):
        for name in order:
            start = time.process_time()
            ways[name]()
            best[name] = min(best[name], time.process_time() - start)
        order.append(order.pop(0))  # what ran before leaves the allocator in a better or worse state
    return best


def _memory(path: str, columns: int, row_norm_bound: float, rounds: int) -> dict[str, int]:
    schema = _schema(columns, row_norm_bound)
    sum_rows(open_table(path, schema), schema, Grid.of(schema))
    return {"peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}


def _batches(path: str) -> Any:
    return pq.ParquetFile(path, buffer_size=_BUFFER).iter_batches(_BATCH, use_threads=False)


def _float_gram(path: str, columns: int, row_norm_bound: float) -> Any:
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
    print(json.dumps({"timing": _timing, "memory": _memory}[sys.argv[1]](**json.loads(sys.argv[2]))))
