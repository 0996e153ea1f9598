"""What an observer of time or memory learns of one odd row: how well two tables that differ in it are told apart.

For every reader and every kind of odd row, a table with the odd row and one with an ordinary row in its place are read
and summed in turn, as a release does. From the two lists of CPU times, and of the most memory held, comes the area
under the curve: the chance that a table with the odd row took more than one without. 0.5 says that the observer
cannot tell, 1 that every run gives it away. The size of a file is public, so both files have as many bytes.

CPU times are of one process on one thread, which is more than an observer from outside would get. Memory is that of
processes which do nothing else; it needs Linux.
"""

from __future__ import annotations

import contextlib
import gc
import gzip
import json
import math
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from privcov.schema import Schema
from privcov.table.records import LONGEST_LINE
from privcov_lab.bench.gram import in_child, peak_bytes, summed

_NAMES = ("a", "b", "c", "d")
_CODE = -9.0
_RESET = Path("/proc/self/clear_refs")
_LONG = "0.25" + "0" * LONGEST_LINE


@dataclass(frozen=True, kw_only=True)
class Odd:
    """One odd row: as a line of a file, and as numbers where a typed table can hold it."""

    line: bytes
    cells: tuple[float | None, ...] | None = None
    levels: bool = False
    """Whether the last column is one of levels."""
    codes: bool = False
    """Whether the schema declares a code for missing cells."""

    @property
    def schema(self) -> dict[str, Any]:
        columns: dict[str, Any] = {name: {"lower": -4, "upper": 4} for name in _NAMES}
        if self.levels:
            columns[_NAMES[-1]] = {"levels": [1, 2]}
        return {
            "columns": columns,
            "row_norm_bound": 2.0 if self.levels else 1.5,
            "missing_values": [_CODE] if self.codes else [],
        }


ODD: dict[str, Odd] = {
    "text in a number cell": Odd(line=b"0.250000,none,1.5,1"),
    "empty cell": Odd(line=b"0.250000,,1.5,1", cells=(0.25, None, 1.5, 1.0)),
    "NaN": Odd(line=b"0.250000,NaN,1.5,1", cells=(0.25, math.nan, 1.5, 1.0)),
    "1e308": Odd(line=b"0.250000,1e308,1.5,1", cells=(0.25, 1e308, 1.5, 1.0)),
    "beyond the bounds, clipped": Odd(line=b"9.000000,99,-99,99", cells=(9.0, 99.0, -99.0, 99.0)),
    "missing code": Odd(line=b"0.250000,-9,1.5,1", cells=(0.25, _CODE, 1.5, 1.0), codes=True),
    "unknown level": Odd(line=b"0.250000,0.5,1.5,7", cells=(0.25, 0.5, 1.5, 7.0), levels=True),
    "quoted cell": Odd(line=b'0.250000,"0.5",1.5,1'),
    "unclosed quote": Odd(line=b'0.250000,"0.5,1.5,1'),
    "byte that is not ASCII": Odd(line=b"0.250000,0.5\xff,1.5,1"),
    "short line": Odd(line=b"0.250000,0.5"),
    "2,000 separators": Odd(line=b"0.250000" + b"," * 2_000),
    "more than 1 MiB": Odd(line=_LONG.encode() + b",0.5,1.5,1"),
}
"""Every kind of odd row."""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A table with an odd row in its middle and one with an ordinary row there, for one reader."""

    schema: Schema
    ordinary: Any
    """The table, or what makes it anew each time."""
    odd: Any

    def read(self, odd: bool) -> None:
        """Read and sum one of the two."""
        data = self.odd if odd else self.ordinary
        summed(data() if callable(data) else data, self.schema)


Maker = Callable[[Odd, int, Path], Pair | None]
"""From an odd row, the number of rows and a folder to a pair; None where the reader's tables cannot hold it."""


def lines_of(odd: Odd, rows: int) -> tuple[bytes, bytes]:
    """Two files of lines with the same number of bytes, the odd row in the second.

    >>> ordinary, odd = lines_of(ODD["short line"], 3)
    >>> len(ordinary) == len(odd), odd.splitlines()[2]
    (True, b'0.250000,0.5')
    """
    tail = b"0.5,1.5,1"
    ordinary = b"0.250000," + tail
    # Zeros behind a point change no number; a line that is too long is no ordinary one.
    size = min(max(len(ordinary), len(odd.line)), LONGEST_LINE)
    fill = b"0" * (len(odd.line) - len(ordinary))
    ordinary = (b"0.250000" + fill)[: size - len(tail) - 1] + b"," + tail
    spare = b"0" * (len(ordinary) - len(odd.line))  # of a file with a shorter odd line, at its last line
    before, after = _around(rows, odd.levels)
    return b"".join([before, ordinary, after, b",0.5,1.5,1\n"]), b"".join(
        [before, odd.line, after, spare, b",0.5,1.5,1\n"]
    )


@cache
def _around(rows: int, levels: bool) -> tuple[bytes, bytes]:
    """What stands before a line in the middle of a file, and behind it up to the first cell of the last line."""
    lines = [f"{a:.6f},{b:.6f},{c:.6f},{d:g}\n" for a, b, c, d in _values(rows - 2, levels).tolist()]
    middle = rows // 2
    before = ",".join(_NAMES) + "\n" + "".join(lines[:middle])
    return before.encode("ascii"), ("\n" + "".join(lines[middle:]) + "0.500000").encode("ascii")


def _values(rows: int, levels: bool) -> NDArray[np.float64]:
    """Ordinary rows, none of which is clipped."""
    grid = np.arange(rows * len(_NAMES), dtype=np.uint32) * np.uint32(2654435761)
    values: NDArray[np.float64] = (grid.reshape(rows, len(_NAMES)) >> np.uint32(12)).astype(np.float64)
    values = values * (2.0 / 2**20) - 1.0
    values[:, -1] = 1.0 if levels else np.round(values[:, -1], 6)
    return values


def _files(odd: Odd, rows: int, folder: Path, ending: str, timing: str) -> Pair:
    schema = Schema.from_dict({**odd.schema, "file": {"timing": timing}})
    paths = []
    for name, data in zip(("ordinary", "odd"), lines_of(odd, rows), strict=True):
        paths.append(folder / f"{name}{ending}")
        paths[-1].write_bytes(gzip.compress(data, 1, mtime=0) if ending.endswith(".gz") else data)
    return Pair(schema=schema, ordinary=paths[0], odd=paths[1])


def _typed(odd: Odd, rows: int, make: Callable[[NDArray[np.float64], str], Any]) -> Pair | None:
    if odd.cells is None:
        return None
    ordinary = _values(rows, odd.levels)
    ordinary[rows // 2] = (0.25, 0.5, 1.5, 1.0)
    changed = ordinary.copy()
    changed[rows // 2] = [math.nan if cell is None else cell for cell in odd.cells]
    return Pair(
        schema=Schema.from_dict(odd.schema), ordinary=make(ordinary, "ordinary"), odd=make(changed, "odd")
    )


def _parquet(odd: Odd, rows: int, folder: Path) -> Pair | None:
    def write(values: NDArray[np.float64], name: str) -> Path:
        path = folder / f"{name}.parquet"
        empty = odd.cells is not None and None in odd.cells  # then a null, else NaN is a value
        columns = [pa.array(values[:, place], from_pandas=empty) for place in range(len(_NAMES))]
        pq.write_table(pa.table(dict(zip(_NAMES, columns, strict=True))), path, use_dictionary=False)
        return path

    return _typed(odd, rows, write)


def _pandas(odd: Odd, rows: int, folder: Path) -> Pair | None:
    import pandas

    return _typed(odd, rows, lambda values, _: pandas.DataFrame(values, columns=list(_NAMES)))


def _polars(odd: Odd, rows: int, folder: Path) -> Pair | None:
    import polars

    empty = odd.cells is not None and None in odd.cells

    def make(values: NDArray[np.float64], _: str) -> Callable[[], Any]:
        return lambda: polars.DataFrame(values, schema=list(_NAMES), nan_to_null=empty)

    return _typed(odd, rows, make)


READERS: dict[str, Maker] = {
    "CSV": lambda odd, rows, folder: _files(odd, rows, folder, ".csv", "quick"),
    "CSV constant": lambda odd, rows, folder: _files(odd, rows, folder, ".csv", "constant"),
    "CSV.gz": lambda odd, rows, folder: _files(odd, rows, folder, ".csv.gz", "quick"),
    "Parquet": _parquet,
    "NumPy": lambda odd, rows, folder: _typed(odd, rows, lambda values, _: values),
    "pandas": _pandas,
    "polars": _polars,
}
"""How a pair of tables is made for every reader."""


def run(
    *,
    rows: int = 200_000,
    runs: int = 25,
    readers: Sequence[str] = tuple(READERS),
    step: Callable[[], object] = lambda: None,
) -> dict[str, Any]:
    """Read every pair ``runs`` times each, a process for every reader. Memory is measured in a third of the runs."""
    found: dict[str, Any] = {}
    for reader in readers:
        with tempfile.TemporaryDirectory() as folder:
            settings = {"reader": reader, "rows": rows, "runs": runs, "folder": folder}
            memory = _in_child("memory", {**settings, "runs": -(-runs // 3)})
            times = _in_child("times", settings)
        found[reader] = {odd: {**times[odd], **memory.get(odd, {})} for odd in times}
        step()
    return {"rows": rows, "runs": runs, "chance": chance(runs), "readers": found}


def _in_child(part: str, settings: dict[str, Any]) -> Any:
    return in_child("privcov_lab.bench.timing", part, settings, POLARS_MAX_THREADS="1")


def area(ordinary: Sequence[float], odd: Sequence[float]) -> float:
    """The chance that a number of ``odd`` is above one of ``ordinary``; ties count half.

    >>> area([1, 2], [3, 4]), area([1, 2], [2, 1]), area([2], [1])
    (1.0, 0.5, 0.0)
    """
    over = np.sign(np.subtract.outer(np.asarray(odd, float), np.asarray(ordinary, float)))
    return float((over.mean() + 1) / 2)


def area_error(ordinary: Sequence[float], odd: Sequence[float]) -> float:
    """The standard error of ``area``, from how each number is placed among those of the other list (DeLong)."""
    over = (np.sign(np.subtract.outer(np.asarray(odd, float), np.asarray(ordinary, float))) + 1) / 2
    if min(over.shape) < 2:
        return math.nan
    spread = over.mean(axis=1).var(ddof=1) / len(over) + over.mean(axis=0).var(ddof=1) / over.shape[1]
    return float(math.sqrt(spread))


def chance(runs: int) -> float:
    """The standard deviation of the area where nothing can be told."""
    return math.sqrt((2 * runs + 1) / 12) / runs


def compared(ordinary: Sequence[float], odd: Sequence[float]) -> dict[str, float]:
    """The area under the curve, its error, the median of ordinary runs and how far that of odd ones is from it."""
    median = statistics.median(ordinary)
    return {
        "area": area(ordinary, odd),
        "error": area_error(ordinary, odd),
        "ordinary": median,
        "difference": statistics.median(odd) - median,
    }


def _times(reader: str, rows: int, runs: int, folder: str) -> dict[str, Any]:
    """CPU and wall seconds of each pair, one after the other, the first of the two in turn."""
    found = {}
    for name, pair in _pairs(reader, rows, Path(folder)):
        seconds: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
        for kind in (False, True):
            pair.read(kind)  # what is done once in a process is done
        gc.collect()
        gc.disable()
        for turn in range(runs):
            for kind in (bool(turn % 2), not turn % 2):
                cpu, wall = time.process_time(), time.perf_counter()
                pair.read(kind)
                seconds[kind].append((time.process_time() - cpu, time.perf_counter() - wall))
        gc.enable()
        (cpu_ordinary, wall_ordinary), (cpu_odd, wall_odd) = (
            tuple(zip(*seconds[kind], strict=True)) for kind in (False, True)
        )
        found[name] = {
            "cpu_seconds": compared(cpu_ordinary, cpu_odd),
            "wall_seconds": compared(wall_ordinary, wall_odd),
        }
    return found


def _memory(reader: str, rows: int, runs: int, folder: str) -> dict[str, Any]:
    """The most bytes held by processes that read one table each; nothing where the system does not tell."""
    if not _RESET.exists():
        return {}
    with contextlib.suppress(ImportError):
        import polars  # noqa: F401  imported and not used: threads that it started would not be in a fork
    found = {}
    for name, pair in _pairs(reader, rows, Path(folder)):
        peaks: dict[bool, list[float]] = {False: [], True: []}
        for turn in range(runs):
            for kind in (bool(turn % 2), not turn % 2):
                peaks[kind].append(_forked_peak(pair, kind))
        found[name] = {"peak_bytes": compared(peaks[False], peaks[True])}
    return found


def _pairs(reader: str, rows: int, folder: Path) -> Iterator[tuple[str, Pair]]:
    for name, odd in ODD.items():
        pair = READERS[reader](odd, rows, folder)
        if pair is not None:
            yield name, pair


def _forked_peak(pair: Pair, odd: bool) -> float:
    """The most bytes that a process holds while it reads one table of a pair, having imported everything."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            _RESET.write_text("5")  # what was held until now does not count
            pair.read(odd)
            os.write(writing, str(peak_bytes()).encode("ascii"))
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        said = answer.read()
    os.waitpid(child, 0)
    return float(said)


def render(result: dict[str, Any]) -> str:
    """Two tables, of time and of memory: the area under the curve and the difference of medians."""
    readers = result["readers"]
    lines = [
        f"One odd row among {result['rows']:,}: area under the curve of an observer, and what the row adds.",
        f"0.5: cannot tell; 1: always tells. {result['runs']} runs each: by chance 0.50 ± {result['chance']:.2f}, "
        f"and ± {chance(-(-result['runs'] // 3)):.2f} for memory.",
    ]
    for kind, title, unit, scale in (
        ("cpu_seconds", "CPU time", "ms", 1e3),
        ("peak_bytes", "peak memory", "MB", 1e-6),
    ):
        shown = {
            name: {odd: f[kind] for odd, f in found.items() if kind in f} for name, found in readers.items()
        }
        if not any(shown.values()):
            continue
        ordinary = [_median(found, scale, unit) for found in shown.values()]
        lines += ["", f"{title:<26}" + "".join(f"{name:>14}" for name in shown)]
        lines += [f"{'without an odd row':<26}" + "".join(f"{words:>14}" for words in ordinary)]
        lines += [
            f"{odd:<26}" + "".join(f"{_cell(found.get(odd), scale):>14}" for found in shown.values()).rstrip()
            for odd in ODD
        ]
    return "\n".join(lines)


def _median(found: dict[str, dict[str, float]], scale: float, unit: str) -> str:
    if not found:
        return "·"
    return f"{statistics.median(f['ordinary'] for f in found.values()) * scale:,.0f} {unit}"


def _cell(found: dict[str, float] | None, scale: float) -> str:
    return "·" if found is None else f"{found['area']:.2f} {found['difference'] * scale:+.1f}"


if __name__ == "__main__":
    ways: dict[str, Callable[..., Any]] = {"times": _times, "memory": _memory}
    print(json.dumps(ways[sys.argv[1]](**json.loads(sys.argv[2]))))
