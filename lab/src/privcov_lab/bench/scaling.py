"""The parts of ``bench gram`` beyond one Parquet file: CSV, workers, engines, wide, derived columns, strata, growth."""

from __future__ import annotations

import math
import os
import statistics
import time
import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from privcov.schema import Schema
from privcov.schema.grid import Grid
from privcov.schema.strata import Strata
from privcov.summing.engines import Dask, Engine, Local, Spark
from privcov.summing.sum import Split, sum_rows, sum_strata
from privcov.table import open_table
from privcov_lab.bench.gram import least, schema_of, summed, timed, write_parquet

_WIDE = 2_000
_WIDE_ROWS = 100_000
_STEP = 2_048


def csv(folder: str, rows: int, columns: int, row_norm_bound: float, rounds: int, **_: Any) -> Any:
    """CPU of a CSV file of half as many rows, beside the decoding of the fastest reader that is installed.

    Medians, and the median of the rounds' ratios: a CSV file is decoded in a second, in which a busy machine shows.
    """
    path, schema = Path(folder, "numbers.csv"), schema_of(columns, row_norm_bound)
    source = Path(folder, "numbers.parquet")
    write_parquet(source, rows // 2, columns)
    file = pq.ParquetFile(source)
    with pa.csv.CSVWriter(
        path, file.schema_arrow, write_options=pa.csv.WriteOptions(quoting_style="none")
    ) as out:
        for batch in file.iter_batches():
            out.write_batch(batch)
    source.unlink()
    ways: dict[str, Callable[[], object]] = {
        "pyarrow decode": lambda: pa.csv.open_csv(path).read_all().num_rows,
        "exact": lambda: summed(path, schema),
    }
    try:
        import polars

        ways["polars decode"] = lambda: polars.read_csv(path).height
    except ImportError:
        pass
    times = timed(ways, 3 * rounds)
    decoded = [min(round_) for round_ in zip(*(times[name] for name in ways if name != "exact"), strict=True)]
    return {
        "rows": rows // 2,
        "file_bytes": path.stat().st_size,
        "cpu_seconds": {name: statistics.median(seconds) for name, seconds in times.items()},
        "ratio": statistics.median(ours / floor for ours, floor in zip(times["exact"], decoded, strict=True)),
    }


def workers(folder: str, rows: int, columns: int, row_norm_bound: float, rounds: int, **_: Any) -> Any:
    """Wall time of one and of two local workers; other work on the machine shows in it, so it is tried more often."""
    path, schema = Path(folder, "numbers.parquet"), schema_of(columns, row_norm_bound)
    write_parquet(path, rows, columns)
    ways: dict[str, Callable[[], object]] = {
        "1": lambda: summed(path, schema, workers=1),
        "2": lambda: summed(path, schema, workers=2),
    }
    return {"wall_seconds": least(ways, 2 * rounds, time.perf_counter)}


def engines(folder: str, rows: int, columns: int, row_norm_bound: float, rounds: int, **_: Any) -> Any:
    """Wall time of Spark and Dask with two workers beside two local ones; start-up apart."""
    path, schema = Path(folder, "numbers.parquet"), schema_of(columns, row_norm_bound)
    write_parquet(path, rows, columns)
    ways: dict[str, Callable[[], object]] = {"local": lambda: summed(path, schema, workers=2)}
    starts: dict[str, float] = {}
    closing: list[Callable[[], object]] = []
    for name, start in (("dask", _dask), ("spark", _spark)):
        began = time.perf_counter()
        try:
            engine, close = start()
        except ImportError:
            continue
        closing.append(close)
        ways[name] = _by(engine, path, schema)
        ways[name]()  # workers import what they need
        starts[name] = time.perf_counter() - began
    try:
        return {"wall_seconds": least(ways, rounds, time.perf_counter), "start_up_seconds": starts}
    finally:
        for close in closing:
            close()


def wide(rounds: int, **_: Any) -> Any:
    """CPU of 100,000 rows of 2,000 columns in memory, beside bare products of the same blocks."""
    random = np.arange(_WIDE_ROWS * _WIDE, dtype=np.uint32)
    random = (random * np.uint32(2654435761)) >> np.uint32(8)
    array = random.reshape(_WIDE_ROWS, _WIDE) * (8.0 / 2**24) - 4.0
    schema = schema_of(_WIDE, 20.0)
    other = array[
        :_STEP
    ].copy()  # not the same memory: NumPy multiplies a matrix with itself in half the time

    def products() -> None:
        for start in range(0, _WIDE_ROWS, _STEP):
            block = array[start : start + _STEP]
            block.T @ other[: len(block)]

    found = least({"dgemm": products, "exact": lambda: summed(array, schema)}, min(rounds, 3))
    return {"rows": _WIDE_ROWS, "columns": _WIDE, "cpu_seconds": found}


def growth(folder: str, columns: int, row_norm_bound: float, rounds: int, largest: int, **_: Any) -> Any:
    """CPU at growing numbers of rows, and the exponent of the straight line through their logarithms.

    The median of several tries: the least of many at few rows would be compared with the least of two at many.
    """
    path, schema = Path(folder, "numbers.parquet"), schema_of(columns, row_norm_bound)
    counts = [count for count in (10**5, 10**6, 10**7, 5 * 10**7) if count <= largest]
    cpu: dict[str, float] = {}
    for count in counts:
        write_parquet(path, count, columns)
        with path.open("rb") as file:
            os.fsync(file.fileno())  # what is still to be written would be written while it is read
        tries = max(2, min(5 * rounds, rounds * 2 * 10**6 // count))
        cpu[str(count)] = statistics.median(_cpu(lambda: summed(path, schema)) for _ in range(tries))
    logs = [math.log(count) for count in counts]
    slope = (
        np.polyfit(logs, [math.log(cpu[str(count)]) for count in counts], 1)[0]
        if len(counts) > 1
        else math.nan
    )
    return {"cpu_seconds": cpu, "exponent": float(slope)}


_DERIVED = {
    "log": "log(x0 + 5)",
    "square": "x1^2",
    "product": "x0 * x1",
    "large": "x2 >= 1",
    "poly": "poly(x3, 2)",
    "spline": "bs(x4, 4)",
}
"""Ten columns."""


def derived(folder: str, rows: int, columns: int, row_norm_bound: float, rounds: int, **_: Any) -> Any:
    """As many columns of which ten are derived, beside as many that are all in the file."""
    path, found = Path(folder, "numbers.parquet"), {}
    every = schema_of(columns, row_norm_bound)
    few = Schema.from_dict(
        {**tomllib.loads(schema_of(columns - 10, row_norm_bound).to_toml()), "derived": _DERIVED}
    )
    write_parquet(path, rows, columns)
    part = pq.read_table(path).slice(0, rows)
    for kind, write in {"parquet": pq.write_table, "csv": pa.csv.write_csv}.items():
        plain, short = Path(folder, f"plain.{kind}"), Path(folder, f"short.{kind}")
        write(part, plain)
        write(part.select(part.column_names[: columns - 10]), short)
        ways: dict[str, Callable[[], object]] = {
            "plain": partial(summed, plain, every),
            "derived": partial(summed, short, few),
        }
        found[kind] = least(ways, rounds)
    return found


_STRATA, WIDTHS = 50, (3, 5, 10, 20, 40)
MOST_FOR_STRATA = 1.5
"""What fifty strata may cost, against one matrix of the same columns, from any source and at any of these widths."""


def strata(folder: str, rows: int, row_norm_bound: float, rounds: int, **_: Any) -> Any:
    """Fifty strata beside one matrix of the same columns, from a CSV and a Parquet file and from an array.

    Medians, and the median of the rounds' ratios: few columns are summed in hundredths of a second.
    """
    return {
        str(columns): _stratified(folder, rows, columns, row_norm_bound, 3 * rounds) for columns in WIDTHS
    }


def _stratified(folder: str, rows: int, columns: int, row_norm_bound: float, rounds: int) -> Any:
    path, found = Path(folder, "numbers.parquet"), {}
    one = schema_of(columns, row_norm_bound)
    declared = tomllib.loads(one.to_toml())
    levels = {**declared["columns"], "s": {"levels": list(range(_STRATA))}}
    whole = Schema.from_dict({**declared, "columns": levels})
    made, rest = Strata.of(whole, by="s")
    split, grid = Split(strata=made, whole=whole), Grid.of(rest, strata=True)
    write_parquet(path, rows, columns)
    part = pq.read_table(path).slice(0, rows)
    places = (np.arange(rows, dtype=np.uint32) * np.uint32(2654435761)) >> np.uint32(8)  # in no order
    both = part.append_column("s", pa.array((places % _STRATA).astype(np.float64)))
    arrays = [np.column_stack([one.to_numpy() for one in table.columns]) for table in (part, both)]
    for kind, write in {"parquet": pq.write_table, "csv": pa.csv.write_csv, "array": None}.items():
        sources: list[Any] = arrays
        if write is not None:
            sources = [Path(folder, f"{word}.{kind}") for word in ("plain", "strata")]
            write(part, sources[0])
            write(both, sources[1])
        plain, several = sources
        times = timed(
            {
                "plain": partial(summed, plain, one),
                "strata": lambda data=several: sum_strata(  # type: ignore[misc]
                    open_table(data, whole), rest, grid, split=split, engine=Local(workers=1)
                ),
            },
            rounds,
        )
        ratios = [several / plain for several, plain in zip(times["strata"], times["plain"], strict=True)]
        found[kind] = {
            **{name: statistics.median(seconds) for name, seconds in times.items()},
            "ratio": statistics.median(ratios),
        }
    return found


def _cpu(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _by(engine: Engine, path: Path, schema: Any) -> Callable[[], object]:
    return lambda: sum_rows(open_table(path, schema), schema, Grid.of(schema), engine=engine)


def _dask() -> tuple[Engine, Callable[[], object]]:
    from distributed import Client, LocalCluster

    cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)
    client = Client(cluster)

    def close() -> None:
        client.close()
        cluster.close()

    return Dask(client=client), close


def _spark() -> tuple[Engine, Callable[[], object]]:
    import sys

    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    return Spark(session=session), session.stop


PARTS: dict[str, Callable[..., Any]] = {
    "derived": derived,
    "strata": strata,
    "csv": csv,
    "workers": workers,
    "engines": engines,
    "wide": wide,
    "growth": growth,
}


def render(result: dict[str, Any]) -> str:
    """The result in words and figures; a ratio stands beside what it is to be compared with."""
    lines = [f"{result['rows']:,} rows × {result['columns']} columns"]
    if part := result.get("parquet"):
        cpu = part["cpu_seconds"]
        lines += [
            f"Parquet, {part['file_bytes'] / 1e6:,.0f} MB",
            f"  decode only                     {cpu['decode']:8.2f} CPU-s",
            f"  decode + float clip + product   {cpu['floor']:8.2f} CPU-s   (floor)",
            f"  exact integer Gram matrix       {cpu['exact']:8.2f} CPU-s   {cpu['exact'] / cpu['floor']:.2f} × floor",
            f"  rows per CPU second             {result['rows'] / cpu['exact'] / 1e6:8.2f} million",
        ]
    if part := result.get("memory"):
        lines += ["Peak memory of a process"]
        lines += [
            f"  {int(rows):>12,} rows               {peak / 1e6:8.0f} MB" for rows, peak in part.items()
        ]
        least_rows, most_rows = part
        lines += [f"  ratio                           {part[most_rows] / part[least_rows]:8.2f}"]
    if part := result.get("csv"):
        cpu = part["cpu_seconds"]
        lines += [f"CSV, {part['rows']:,} rows, {part['file_bytes'] / 1e6:,.0f} MB"]
        lines += [f"  {name:<31} {seconds:8.2f} CPU-s" for name, seconds in cpu.items() if name != "exact"]
        lines += [
            f"  exact integer Gram matrix       {cpu['exact']:8.2f} CPU-s   {part['ratio']:.2f} × decode"
        ]
    if part := result.get("workers"):
        one, two = (part["wall_seconds"][count] for count in "12")
        lines += [f"Two local workers                 {two:8.2f} s       {one / two:.2f} × one ({one:.2f} s)"]
    if part := result.get("engines"):
        wall = part["wall_seconds"]
        lines += [f"Two workers, local                {wall['local']:8.2f} s"]
        lines += [
            f"  {name:<31} {wall[name]:8.2f} s       {wall[name] / wall['local']:.2f} × local, "
            f"start-up {part['start_up_seconds'][name]:.1f} s"
            for name in part["start_up_seconds"]
        ]
    if part := result.get("wide"):
        cpu = part["cpu_seconds"]
        lines += [
            f"{part['rows']:,} rows × {part['columns']:,} columns in memory",
            f"  bare products                   {cpu['dgemm']:8.2f} CPU-s",
            f"  exact integer Gram matrix       {cpu['exact']:8.2f} CPU-s   "
            f"{cpu['dgemm'] / cpu['exact']:.2f} of the speed of bare products",
        ]
    if part := result.get("derived"):
        for kind, cpu in part.items():
            lines += [
                f"{kind + ', all columns in the file':<33} {cpu['plain']:8.2f} CPU-s",
                f"  ten of them derived             {cpu['derived']:8.2f} CPU-s   "
                f"{cpu['derived'] / cpu['plain']:.2f} × plain",
            ]
    if part := result.get("strata"):
        lines += [
            f"{_STRATA} strata beside one matrix, CPU seconds, medians of rounds; target at most {MOST_FOR_STRATA} ×"
        ]
        for columns, sources in part.items():
            for kind, cpu in sources.items():
                reached = "reached" if cpu["ratio"] <= MOST_FOR_STRATA else "missed"
                lines += [
                    f"  {columns:>3} columns, {kind:<8} {cpu['plain']:8.3f} {cpu['strata']:8.3f} CPU-s   "
                    f"{cpu['ratio']:.2f} × one matrix   target {MOST_FOR_STRATA} × {reached}"
                ]
    if part := result.get("growth"):
        lines += ["Growth"]
        lines += [
            f"  {int(n):>12,} rows               {s:8.3f} CPU-s" for n, s in part["cpu_seconds"].items()
        ]
        lines += [f"  cost grows as rows to the power {part['exponent']:8.3f}"]
    return "\n".join(lines)
