"""Where the papers' tables come from, and how what is downloaded there becomes the file we read.

The files come over HTTPS from their publishers; what they must hold is checked afterwards by ``datasets``.
"""

from __future__ import annotations

import gzip
import io
import urllib.request
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from privcov.errors import InputError, OutputError
from privcov.text import files

SECONDS = 60.0
MOST_BYTES = 200 * 2**20


@dataclass(frozen=True)
class Home:
    """A table's publisher: the addresses to download, and what makes our file of those bytes."""

    publisher: str
    addresses: tuple[str, ...]
    make: Callable[[list[bytes]], bytes]

    def advice(self) -> str:
        """What to do by hand where there is no network."""
        return (
            f"It is published by {self.publisher}: on a machine with a network, `privcov reproduce --fetch` "
            f"downloads {' and '.join(self.addresses)} and writes it; copy it here, or name its directory with --data."
        )


def fetch(file: str, directory: Path) -> None:
    """Download a table and write it, in the form it is read in, into a directory."""
    home = HOMES[file]
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as reason:
        raise OutputError("E409", f"cannot make the directory {directory}: {reason.strerror}.") from None
    try:
        made = home.make([_download(address) for address in home.addresses])
    except InputError:
        raise
    except Exception as reason:  # a stranger's archive can be wrong in many ways
        raise InputError(
            "E132",
            f"what {home.publisher} sent for {file} cannot be read ({type(reason).__name__}).",
            home.advice(),
        ) from None
    files.write(directory / file, made, force=True)


def _download(address: str) -> bytes:
    try:
        with urllib.request.urlopen(address, timeout=SECONDS) as answer:
            got: bytes = answer.read(MOST_BYTES + 1)
    except (OSError, ValueError) as reason:
        raise InputError(
            "E133",
            f"cannot fetch {address}: {getattr(reason, 'reason', reason)}.",
            "Download it elsewhere, or give --data a directory that holds the tables.",
        ) from None
    if len(got) > MOST_BYTES:
        raise InputError("E133", f"{address} is larger than {MOST_BYTES >> 20} MiB.")
    return got


def _member(archive: bytes, ending: str) -> str:
    """The text of the one file of a zip whose name ends so."""
    with zipfile.ZipFile(io.BytesIO(archive)) as zipped:
        (name,) = (n for n in zipped.namelist() if n.lower().endswith(ending) and "__MACOSX" not in n)
        return zipped.read(name).decode("latin-1")


WINE = (
    "class,alcohol,malic_acid,ash,alcalinity_of_ash,magnesium,total_phenols,flavanoids,nonflavanoid_phenols,"
    "proanthocyanins,color_intensity,hue,od280_od315,proline"
)
AIRFOIL = (
    "frequency_hz,angle_of_attack_deg,chord_length_m,free_stream_velocity_mps,"
    "suction_side_displacement_thickness_m,scaled_sound_pressure_level_db"
)
ADULT = (
    *(
        "age",
        "workclass",
        "fnlwgt",
        "education",
        "education_num",
        "marital_status",
        "occupation",
        "relationship",
    ),
    *("race", "sex", "capital_gain", "capital_loss", "hours_per_week", "native_country", "income"),
)
ADULT_NUMBERS = ("age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week")
COVTYPE_NUMBERS = (
    *("Elevation", "Aspect", "Slope", "Horizontal_Distance_To_Hydrology", "Vertical_Distance_To_Hydrology"),
    *("Horizontal_Distance_To_Roadways", "Hillshade_9am", "Hillshade_Noon", "Hillshade_3pm"),
    "Horizontal_Distance_To_Fire_Points",
)
PUMS = "row_id,state,puma,sex,age,educ,income,latino,black,asian,married"


def _wine(got: list[bytes]) -> bytes:
    lines = [line.strip() for line in _member(got[0], "wine.data").splitlines() if line.strip()]
    return "\n".join([WINE, *lines, ""]).encode()


def _airfoil(got: list[bytes]) -> bytes:
    lines = [",".join(line.split()) for line in _member(got[0], ".dat").splitlines() if line.strip()]
    return "\n".join([AIRFOIL, *lines, ""]).encode()


def _adult(got: list[bytes]) -> bytes:
    parts = [_member(got[0], "adult.data"), _member(got[0], "adult.test")]
    records = [
        [[cell.strip() for cell in line.rstrip(".").split(",")] for line in part.splitlines()]
        for part in parts
    ]
    kept = [[record for record in part if len(record) == len(ADULT)] for part in records]
    cells = np.array(kept[0] + kept[1])
    numbers = [cells[:, ADULT.index(name)].astype(np.int32) for name in ADULT_NUMBERS]
    names, indicators = list(ADULT_NUMBERS), []
    for place, name in enumerate(ADULT[:-1]):
        if name not in ADULT_NUMBERS:
            for level in np.unique(cells[:, place]):
                names.append(f"{name}={level}")
                indicators.append((cells[:, place] == level).astype(np.uint8))
    return _npz(
        X_num=np.stack(numbers, axis=1),
        X_bin=np.stack(indicators, axis=1),
        y=(cells[:, -1] == ">50K").astype(np.uint8),
        is_train=np.repeat([1, 0], [len(kept[0]), len(kept[1])]).astype(np.uint8),
        columns=np.array(names),
    )


def _covtype(got: list[bytes]) -> bytes:
    with zipfile.ZipFile(io.BytesIO(got[0])) as zipped:
        (name,) = (n for n in zipped.namelist() if n.endswith("covtype.data.gz"))
        text = gzip.decompress(zipped.read(name))
    rows = np.loadtxt(io.BytesIO(text), delimiter=",", dtype=np.int16)
    areas = [f"Wilderness_Area{i}" for i in range(1, 5)] + [f"Soil_Type{i}" for i in range(1, 41)]
    return _npz(
        X_num=rows[:, :10],
        X_bin=rows[:, 10:54].astype(np.uint8),
        y=rows[:, 54].astype(np.uint8),
        columns=np.array([*COVTYPE_NUMBERS, *areas]),
    )


def _mnist(got: list[bytes]) -> bytes:
    def idx(packed: bytes, *, header: int) -> NDArray[np.uint8]:
        return np.frombuffer(gzip.decompress(packed), dtype=np.uint8, offset=header)

    return _npz(
        X_train=idx(got[0], header=16).reshape(-1, 784),
        y_train=idx(got[1], header=8),
        X_test=idx(got[2], header=16).reshape(-1, 784),
        y_test=idx(got[3], header=8),
    )


def _pums(got: list[bytes]) -> bytes:
    lines = [line.replace('"', "") for line in got[0].decode("ascii").splitlines()[1:] if line.strip()]
    return gzip.compress("\n".join([PUMS, *lines, ""]).encode(), mtime=0)


def _npz(**arrays: NDArray[np.generic]) -> bytes:
    made = io.BytesIO()
    np.savez_compressed(made, **arrays)  # type: ignore[arg-type]
    return made.getvalue()


_UCI = "https://archive.ics.uci.edu/static/public"
_MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist"
HOMES = {
    "wine.csv": Home("UCI (Wine)", (f"{_UCI}/109/wine.zip",), _wine),
    "airfoil.csv": Home("UCI (Airfoil Self-Noise)", (f"{_UCI}/291/airfoil+self+noise.zip",), _airfoil),
    "adult_onehot108.npz": Home("UCI (Adult)", (f"{_UCI}/2/adult.zip",), _adult),
    "covtype.npz": Home("UCI (Covertype)", (f"{_UCI}/31/covertype.zip",), _covtype),
    "mnist.npz": Home(
        "LeCun, Cortes and Burges (MNIST), mirrored by PyTorch",
        tuple(
            f"{_MNIST}/{part}.gz"
            for part in (
                "train-images-idx3-ubyte",
                "train-labels-idx1-ubyte",
                "t10k-images-idx3-ubyte",
                "t10k-labels-idx1-ubyte",
            )
        ),
        _mnist,
    ),
    "pums_california_10000.csv.gz": Home(
        "the OpenDP project (PSI; US Census 2000)",
        ("https://raw.githubusercontent.com/opendp/PSI/master/data/PUMS5extract10000.csv",),
        _pums,
    ),
}
"""For every file its publisher."""
