"""A wide table's Gram matrix on a device, against the device's own float64 matrix rate; and the same bits as here.

One block of rows is used again and again, so the table need not fit anywhere. Rates count 2·n·d² operations. *On the
device* starts from cells that are there already; *rows* and *columns in memory* include sending them, from an array
whose rows lie one after the other or from one array for each column. The sum is compared with NumPy's, integer by
integer, on as many fresh rows as asked.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from privcov.linalg.devices import Device, eigh, using
from privcov.noise.idealized.chain import sample_chain
from privcov.noise.laws import WishartDifference
from privcov.noise.randomness import rehearsal
from privcov.report.tables import table
from privcov.schema import Numeric, Schema
from privcov.schema.grid import BLOCK_ROWS, Grid
from privcov.summing.bounding import Bounding
from privcov.summing.gpu import DeviceSum
from privcov.summing.gram import Gram


def run(
    *,
    device: str = "cuda",
    rows: int = 200_000,
    dimension: int = 8192,
    compared_rows: int = 16_384,
    step: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Rates and comparisons for one shape."""
    place = Device.named(device)
    result: dict[str, Any] = {"bench": "device", "device": place.name, "rows": rows, "dimension": dimension}
    if place.name == "cpu":
        return {**result, "skipped": "there is no such device here"}
    torch = place.torch
    if place.place.type == "cuda":
        result["called"] = torch.cuda.get_device_name(place.place)
        result["wire_rate"] = _wire_rate(place)
    result["matrix_rate"] = _matrix_rate(place, min(dimension, 8192))
    step()
    schema, grid = _schema(dimension)
    cells = _cells(dimension, 0)
    sent, by_row = torch.from_numpy(cells).to(place.place), np.ascontiguousarray(cells.T)
    ways: dict[str, Callable[[DeviceSum, int], None]] = {
        "on_device": lambda total, count: total.add_cells(sent[:, :count]),
        "rows_in_memory": lambda total, count: total.add(by_row[:count].T),
        "columns_in_memory": lambda total, count: total.add(cells[:, :count]),
        "a_list_in_memory": lambda total, count: total.add(list(cells[:, :count])),
    }

    def work(add: Callable[[DeviceSum, int], None], count: int) -> None:
        total = DeviceSum(schema, grid, place)
        for start in range(0, count, BLOCK_ROWS):
            add(total, min(BLOCK_ROWS, count - start))
        _wait(place)

    for name, add in ways.items():
        work(add, BLOCK_ROWS)
        start = time.perf_counter()
        work(add, rows)
        seconds = time.perf_counter() - start
        result[name] = {"seconds": seconds, "rate": 2.0 * rows * dimension**2 / seconds}
        result[name]["of_matrix_rate"] = result[name]["rate"] / result["matrix_rate"]
        step()
    result["same_bits"] = _same_bits(schema, grid, place, compared_rows)
    result["compared_rows"] = compared_rows
    step()
    result["decompositions"] = [_decomposition(place, d) for d in (784, 2048, 4096) if d <= dimension]
    step()
    return result


def run_eigenvectors(
    *, device: str = "cuda", dimension: int = 2048, rank: int = 0, step: Callable[[], None] = lambda: None
) -> dict[str, Any]:
    """Seconds to sample eigenvectors here and on the device from the same random words, and how far they differ."""
    place, rank = Device.named(device), rank or dimension
    result: dict[str, Any] = {
        "bench": "device eigenvectors",
        "device": place.name,
        "dimension": dimension,
        "rank": rank,
    }
    if place.name == "cpu":
        return {**result, "skipped": "there is no such device here"}
    matrix = _noisy(dimension)
    found = {}
    for name, where in (("there", place), ("here", Device.named("cpu"))):
        with using(where):
            sample_chain(rehearsal(3), matrix, [1e-3], rank=1)  # libraries start when they are first used
            start = time.perf_counter()
            found[name], proposals = sample_chain(rehearsal(4), matrix, [1e-3] * rank, rank=rank)
            result[name] = {"seconds": time.perf_counter() - start, "proposals": sum(proposals)}
            step()
    result["ratio"] = result["here"]["seconds"] / result["there"]["seconds"]
    result["largest_difference"] = float(np.abs(found["there"] - found["here"]).max())
    gram = found["there"].T @ found["there"]
    result["off_orthonormal"] = float(np.abs(gram - np.eye(rank)).max())
    return result


def render_eigenvectors(result: dict[str, Any]) -> str:
    """Both times, their ratio, and whether it was the same sample."""
    if "skipped" in result:
        return f"skipped: {result['skipped']}"
    lines = [
        [where, f"{result[name]['seconds']:.2f}", f"{result[name]['proposals']:,}"]
        for where, name in ((f"on {result['device']}", "there"), ("here", "here"))
    ]
    return "\n".join(
        [
            f"{result['rank']:,} eigenvectors of {result['dimension']:,} columns, from the same random words:",
            table(["", "seconds", "proposals"], lines),
            f"Here / there: {result['ratio']:.2f}. Largest difference of an entry: {result['largest_difference']:.1e}; "
            f"off orthonormal by {result['off_orthonormal']:.1e}.",
        ]
    )


def render(result: dict[str, Any]) -> str:
    """The rates in words."""
    if "skipped" in result:
        return f"skipped: {result['skipped']}"
    lines = [
        [what, f"{made['seconds']:.2f} s", f"{made['rate'] / 1e12:.1f}", f"{made['of_matrix_rate']:.2f}"]
        for what, made in (
            ("on the device", result["on_device"]),
            ("rows in memory", result["rows_in_memory"]),
            ("columns in memory", result["columns_in_memory"]),
            ("a list of columns", result["a_list_in_memory"]),
        )
    ]
    head = (
        f"{result.get('called', result['device'])}: float64 matrix product {result['matrix_rate'] / 1e12:.1f} TFLOP/s\n"
        f"Gram matrix of {result['rows']:,} rows × {result['dimension']:,} columns:"
    )
    if "wire_rate" in result:
        seconds = 8.0 * result["rows"] * result["dimension"] / result["wire_rate"]
        head += f"\nsending the cells alone, {result['wire_rate'] / 1e9:.0f} GB/s: {seconds:.2f} s"
    same = "the same integers as NumPy" if result["same_bits"] else "DIFFERENT INTEGERS"
    turned = [
        [
            str(d["dimension"]),
            f"{d['eigh']:.2f}",
            f"{d['eigh_here']:.2f}",
            f"{d['chain']:.2f}",
            f"{d['chain_here']:.2f}",
        ]
        for d in result["decompositions"]
    ]
    return "\n".join(
        [
            head,
            table(["cells", "time", "TFLOP/s", "of matrix rate"], lines),
            f"On {result['compared_rows']:,} rows: {same}.",
            table(["columns", "eigh, s", "here", "10 eigenvectors sampled, s", "here"], turned),
        ]
    )


def _matrix_rate(device: Device, size: int) -> float:
    torch = device.torch
    made = torch.from_numpy(rehearsal(1).normals(size, size)).to(device.place)
    made @ made
    _wait(device)
    rounds, start = 5, time.perf_counter()
    for _ in range(rounds):
        made @ made
    _wait(device)
    return rounds * 2.0 * size**3 / (time.perf_counter() - start)


def _wire_rate(device: Device) -> float:
    """Bytes a second from memory that the device reads by itself."""
    torch, rounds = device.torch, 50
    here = torch.empty(2**23, dtype=torch.float64, pin_memory=True)
    there = here.to(device.place)
    _wait(device)
    start = time.perf_counter()
    for _ in range(rounds):
        there.copy_(here, non_blocking=True)
    _wait(device)
    return rounds * 8.0 * 2**23 / (time.perf_counter() - start)


def _same_bits(schema: Schema, grid: Grid, device: Device, rows: int) -> bool:
    bounding, here, there = Bounding.of(schema, grid), Gram(grid), DeviceSum(schema, grid, device)
    for number, start in enumerate(range(0, rows, BLOCK_ROWS)):
        cells = _cells(grid.dimension, number + 1)[:, : min(BLOCK_ROWS, rows - start)]
        here.add(bounding.rows(cells))
        there.add(
            (list(cells), cells, np.ascontiguousarray(cells.T).T)[number % 3]
        )  # every way cells are sent
    ours, theirs = (gram.words_for_transport()[0] for gram in (here, there.gram()))
    return bool(np.array_equal(ours, theirs))


def _decomposition(device: Device, dimension: int) -> dict[str, float]:
    """Seconds for one eigendecomposition, and for ten eigenvectors of a noisy matrix, there and here."""
    matrix = _noisy(dimension)
    told: dict[str, float] = {"dimension": dimension}
    for name, place in (("", device), ("_here", Device.named("cpu"))):
        with using(place):
            eigh(matrix)
            told["eigh" + name] = _seconds(lambda: eigh(matrix))
            told["chain" + name] = _seconds(lambda: sample_chain(rehearsal(3), matrix, [1e-3] * 10, rank=10))
    return told


def _noisy(dimension: int) -> Any:
    """A spectrum that falls in a line, and noise."""
    matrix = WishartDifference(dimension=dimension, scale=1.0).simulate(rehearsal(2))
    return matrix + np.diag(np.linspace(0, 40 * dimension, dimension))


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _schema(dimension: int) -> tuple[Schema, Grid]:
    """Columns in [-4, 5], rows clipped."""
    columns = tuple(Numeric(name=f"x{place}", lower=-4, upper=5) for place in range(dimension))
    schema = Schema(columns=columns, intercept=False, row_norm_bound=Fraction(2))
    return schema, Grid.of(schema)


def _cells(dimension: int, seed: int) -> Any:
    return rehearsal(seed).normals(dimension, BLOCK_ROWS)


def _wait(device: Device) -> None:
    if device.place.type == "cuda":
        device.torch.cuda.synchronize()
