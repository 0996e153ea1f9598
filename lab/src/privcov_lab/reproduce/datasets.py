"""The papers' tables, by name: found in a directory, fetched from their public home where they are not, and checked.

These are public data, scaled by their own range as the papers do: right for repeating an experiment, wrong for a
release, which may not look at its data so. What a table holds is compared with a digest of its numbers, so that a
damaged file is named instead of measured.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcov.errors import InputError
from privcov.linalg.arrays import Floats
from privcov_lab.reproduce.homes import HOMES, fetch


@dataclass(frozen=True, kw_only=True, eq=False)
class Dataset:
    """A public table: one row per person, flower, forest patch or digit; ``labels`` where it has classes."""

    name: str
    rows: NDArray[Any]
    columns: tuple[str, ...]
    labels: NDArray[Any] | None = None

    def digest(self) -> str:
        """SHA-256 of the numbers, whatever file they came in."""
        kind = np.uint8 if self.rows.dtype == np.uint8 else np.dtype("<f8")
        hashed = hashlib.sha256(np.ascontiguousarray(self.rows, dtype=kind).data)
        if self.labels is not None:
            hashed.update(np.ascontiguousarray(self.labels, dtype=np.uint8).data)
        return hashed.hexdigest()


@dataclass(frozen=True)
class Datasets:
    """The tables in a directory; a missing one is fetched into it unless that is switched off."""

    directory: Path
    online: bool = True

    def load(self, name: str) -> Dataset:
        """A table by name, read once per process; do not write to its arrays."""
        return _load(self.directory, name)

    def check(self, names: Iterable[str], *, note: Callable[[str], None] = lambda text: None) -> None:
        """Fetch what is missing and read everything, so that a bad file is named before anything is measured."""
        for name in names:
            file = FILES[name][0]
            if not (self.directory / file).is_file():
                if not self.online:
                    raise InputError("E130", f"there is no {file} in {self.directory}.", HOMES[file].advice())
                note(f"fetching {file} from {HOMES[file].addresses[0]}")
                fetch(file, self.directory)
            self.load(name)


def scaled(rows: NDArray[Any]) -> Floats:
    """Columns to [0, 1] by their own range and rows divided by the largest norm, as in the papers."""
    low, high = rows.min(axis=0).astype(np.float64), rows.max(axis=0).astype(np.float64)
    unit = (rows - low) / np.where(high > low, high - low, 1.0)
    return np.asarray(unit / np.sqrt((unit**2).sum(axis=1).max()))


@lru_cache(maxsize=8)
def _load(directory: Path, name: str) -> Dataset:
    file, read, digest = FILES[name]
    path = directory / file
    if not path.is_file():
        raise InputError("E130", f"there is no {file} in {directory}.", HOMES[file].advice())
    try:
        rows, columns, labels = read(path)
        made = Dataset(name=name, rows=rows, columns=tuple(map(str, columns)), labels=labels)
        whole = made.digest() == digest
    except Exception:  # whatever a damaged archive or a stray text makes of the readers
        whole = False
    if not whole:
        raise InputError(
            "E131",
            f"{path} does not hold the numbers it should.",
            f"Delete it and run again, or download it anew. {HOMES[file].advice()}",
        )
    return made


Read = tuple[NDArray[Any], Iterable[str], NDArray[Any] | None]


def _csv(path: Path) -> tuple[Floats, list[str]]:
    whole = path.read_bytes()
    text = (gzip.decompress(whole) if path.suffix == ".gz" else whole).decode("ascii").splitlines()
    names = text[0].split(",")
    return np.loadtxt(text[1:], delimiter=",", ndmin=2), names


def _wine(path: Path) -> Read:
    rows, names = _csv(path)
    return rows[:, 1:], names[1:], rows[:, 0]


def _plain(path: Path) -> Read:
    return *_csv(path), None


def _numbers_and_indicators(path: Path) -> Read:
    with np.load(path, allow_pickle=False) as arrays:
        rows = np.hstack([arrays["X_num"], arrays["X_bin"]]).astype(np.float64)
        return rows, arrays["columns"], arrays["y"]


def _digits(part: str) -> Callable[[Path], Read]:
    def read(path: Path) -> Read:
        with np.load(path, allow_pickle=False) as arrays:
            rows = arrays[f"X_{part}"]
            return rows, (f"pixel{i}" for i in range(rows.shape[1])), arrays[f"y_{part}"]

    return read


FILES: dict[str, tuple[str, Callable[[Path], Read], str]] = {
    "wine": ("wine.csv", _wine, "0de136cd0fa93e85a0808bc7284bb957dcb83200f260ed3926ae470241a186ff"),
    "airfoil": ("airfoil.csv", _plain, "11fab2c660f61031935f9995d27929df39a175d3551271b397c8aa254b19b6b6"),
    "adult": (
        "adult_onehot108.npz",
        _numbers_and_indicators,
        "5ec346380c019cd20941167e2afbf3f034c11435793c63ab88bebc65688fa1ad",
    ),
    "covtype": (
        "covtype.npz",
        _numbers_and_indicators,
        "c337add3c92712e86b6cfcb20e5cdbee8d2e22c5fc9d597a9351bc9bf8e3915f",
    ),
    "mnist": (
        "mnist.npz",
        _digits("train"),
        "edc0d1098aa497be14ace79ddd5171e5a3dcf9c4d196c015389203eb3ba1f59b",
    ),
    "mnist-test": (
        "mnist.npz",
        _digits("test"),
        "c3f9adf9c66efb572b1f9326c3a511b45910c7173b97be66ceceeeeaef6b802b",
    ),
    "pums": (
        "pums_california_10000.csv.gz",
        _plain,
        "3e8356e2821a3f4bf7b84d57127b9235fd175f5232b8282b529d29c9c9984c7b",
    ),
}
"""For every table its file, its reader, and the digest of its numbers."""
