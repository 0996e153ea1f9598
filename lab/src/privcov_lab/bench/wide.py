"""A release of many columns from array to answer: time, memory and bytes of every step, each beside its floor.

Floors are measured in the same run: the bare float64 product of the same rows where the sum is taken, writing as many
bytes to the same disk, one eigendecomposition of the same size where repair does its own.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from privcov.linalg.devices import CPU, Device, composed, eigh, using
from privcov.mechanisms import MECHANISMS, find
from privcov.noise.laws import GaussianEnsemble
from privcov.noise.randomness import rehearsal
from privcov.privacy import ApproxDP, Loss, PureDP
from privcov.publish.release import release
from privcov.releases.loading import load
from privcov.repair import METHODS, PublicFacts
from privcov.report.tables import table
from privcov.schema.grid import Grid
from privcov.summing.engines import Local
from privcov.summing.sum import sum_rows
from privcov.table import open_table
from privcov.verification.verify import verify
from privcov_lab.bench.gram import peak_bytes, schema_of

_PIECE = 2**24
_ROWS = 1_000_000
_REPAIRS = {name: METHODS[name] for name in ("clip", "shrink")}


def run(
    *,
    columns: int = 8192,
    rows: int = 2_000,
    mechanism: str = "gaussian",
    device: str = "cpu",
    repaired: bool = False,
    step: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Wall and CPU seconds of every step for invented rows; ``repaired`` adds the longest one."""
    place, loss = Device.named(device), _loss(mechanism)
    engine = Local(device=place)
    schema, array = schema_of(columns - 1, 20.0), _invented(rows, columns - 1)
    found: dict[str, dict[str, float]] = {}

    def timed(name: str, work: Callable[[], Any]) -> Any:
        wall, cpu = time.perf_counter(), time.process_time()
        made = work()
        found[name] = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
        step()
        return made

    _product(place, array[:1])  # libraries start when they are first used
    sum_rows(open_table(array[:1], schema), schema, Grid.of(schema), engine=engine)
    timed("product", lambda: _product(place, array))
    timed("sum", lambda: sum_rows(open_table(array, schema), schema, Grid.of(schema), engine=engine))
    made = timed(
        "release",
        lambda: release(array, schema=schema, loss=loss, mechanism=mechanism, engine=engine),
    )
    result: dict[str, Any] = {
        "bench": "wide",
        "columns": columns,
        "rows": rows,
        "mechanism": mechanism,
        "device": place.name,
        "seconds": found,
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "wide.release")
        timed("save", partial(made.save, path))
        result["file_bytes"] = path.stat().st_size
        timed("write", lambda: _write(Path(folder, "bytes"), result["file_bytes"]))
        del made
        again = timed("load", lambda: load(path))
        timed("verify", lambda: verify(path))
    with using(place):
        if repaired:
            matrix = again.second_moment(raw=True, scaled=True)
            timed("decomposition", lambda: eigh(matrix))
            del matrix
            timed("repair", again.second_moment)
    result["peak_bytes"] = peak_bytes()
    return result


def render(result: dict[str, Any]) -> str:
    """A line for each step, with its floor."""
    seconds = result["seconds"]
    steps = [
        ("exact sum of rows", "sum", "product", "bare product of the same rows"),
        ("array to release", "release", "sum", "its sum: what is left is noise"),
        ("save", "save", "write", "writing as many bytes"),
        ("load", "load", "write", "writing as many bytes"),
        ("verify", "verify", "write", "writing as many bytes"),
        ("repair", "repair", "decomposition", "one eigendecomposition"),
    ]
    lines = [
        [
            words,
            f"{seconds[name]['wall']:.2f}",
            f"{seconds[name]['cpu']:.2f}",
            f"{seconds[name]['wall'] / seconds[floor]['wall']:.2f}",
            f"× {what} ({seconds[floor]['wall']:.2f} s)",
        ]
        for words, name, floor, what in steps
        if name in seconds
    ]
    lines = [[*cells[:4], cells[4].ljust(max(len(line[4]) for line in lines))] for cells in lines]
    entries = result["columns"] * (result["columns"] + 1) // 2
    return "\n".join(
        [
            f"{result['mechanism']}, {result['rows']:,} rows × {result['columns']:,} columns "
            f"({entries / 1e6:,.1f} million entries), summed on {result['device']}:",
            table(["", "s", "CPU-s", "ratio", ""], lines),
            f"File {result['file_bytes'] / 1e6:,.0f} MB, peak memory {result['peak_bytes'] / 1e9:.2f} GB.",
        ]
    )


def _loss(mechanism: str) -> Loss:
    """A loss that the mechanism can promise: pure, if it can; refuses one that there is none of."""
    pure = PureDP(epsilon=1, neighbours="replace-one")
    kind = MECHANISMS.get(mechanism)
    if kind is None:
        find(mechanism, loss=pure)
    elif "pure" not in kind.kinds:
        return ApproxDP(epsilon=1, delta="1e-6", neighbours="replace-one")
    return pure


def _invented(rows: int, columns: int) -> Any:
    """Numbers in [-4, 4), quickly: what is measured does not depend on them."""
    words = np.arange(rows * columns, dtype=np.uint32) * np.uint32(2654435761) >> np.uint32(8)
    return words.reshape(rows, columns) * (8.0 / 2**24) - 4.0


def _product(device: Device, array: Any) -> None:
    if device == CPU:
        array.T @ array.copy()  # not the same memory: NumPy multiplies a matrix with itself in half the time
        return
    there = device.torch.from_numpy(array).to(device.place)
    (there.T @ there).sum().item()


def _write(path: Path, size: int) -> None:
    piece = memoryview(bytes(min(size, _PIECE)))
    with path.open("wb") as file:
        for start in range(0, size, _PIECE):
            file.write(piece[: size - start])
        file.flush()
        os.fsync(file.fileno())


def compare_repairs(
    *, columns: int = 1448, device: str = "cpu", step: Callable[[], None] = lambda: None
) -> dict[str, Any]:
    """Frobenius error of repairs of a noisy matrix, by spectrum and noise, beside the best with the same eigenvectors.

    ``shrink`` is what ``auto`` is for wide releases; ``rehearsed`` is what it is for narrow ones, at any width.
    """
    place, randomness = Device.named(device), rehearsal(1)
    ranks = np.arange(1, columns + 1)
    spectra = {
        "flat": np.ones(columns),
        "1/√k": ranks**-0.5,
        "1/k^1.5": ranks**-1.5,
        "ten factors": np.where(ranks <= 10, 1.0, 0.0),
    }
    turned = np.linalg.qr(randomness.normals(columns, columns))[0]
    lines: list[dict[str, Any]] = []
    for name, spectrum in spectra.items():
        truth = composed(turned, spectrum * (_ROWS / 2 / spectrum.sum()))
        size = float(np.linalg.norm(truth))
        for ratio in (0.1, 1.0, 10.0):
            unit = GaussianEnsemble(dimension=columns, scale=1.0)
            law = replace(unit, scale=ratio * size / unit.rms_frobenius)
            with using(place):
                values, vectors = eigh(truth + law.simulate(randomness))
            within = np.einsum("ij,ij->j", vectors, truth @ vectors)
            facts = PublicFacts(law=law, rows=_ROWS, squared_norm_bound=1.0)
            errors, seconds = {"oracle": _distance(np.maximum(within, 0.0), within, size)}, {}
            for method, made in {**_REPAIRS, "rehearsed": METHODS["auto"]}.items():
                start = time.process_time()
                errors[method] = _distance(made(values[None, :], facts)[0], within, size)
                seconds[method] = time.process_time() - start
            lines.append({"spectrum": name, "noise": ratio, "errors": errors, "cpu_seconds": seconds})
            step()
    return {"bench": "wide repairs", "columns": columns, "lines": lines}


def render_repairs(result: dict[str, Any]) -> str:
    """A line for each spectrum and noise."""
    names = list(result["lines"][0]["errors"])
    lines = [
        [line["spectrum"], f"{line['noise']:g}", *(f"{line['errors'][name]:.3f}" for name in names)]
        for line in result["lines"]
    ]
    longest = max(line["cpu_seconds"]["rehearsed"] for line in result["lines"])
    return "\n".join(
        [
            f"{result['columns']:,} columns: ‖repaired − true‖ / ‖true‖; noise is ‖noise‖ / ‖true‖, "
            "oracle the best with the same eigenvectors.",
            table(["spectrum", "noise", *names], lines),
            f"The rehearsals took up to {longest:.0f} CPU-s, at one decomposition for each.",
        ]
    )


def _distance(repaired: Any, within: Any, size: float) -> float:
    """‖V diag(r) Vᵀ − C‖ / ‖C‖ from the diagonal of VᵀCV."""
    squared = float(repaired @ repaired - 2 * (repaired @ within)) + size**2
    return float(np.sqrt(max(squared, 0.0)) / size)
