"""Shared by every test: small public tables, losses, and where the papers' data is, if anywhere."""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import signal
import tempfile
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path

# Simulated forecasts are kept for this run and no longer; the workers of one run share them.
if "PRIVCOV_CACHE" not in os.environ:
    os.environ["PRIVCOV_CACHE"] = tempfile.mkdtemp(prefix="privcov-cache-")
    atexit.register(shutil.rmtree, os.environ["PRIVCOV_CACHE"], ignore_errors=True)

# Compiled modules are kept, whatever the shell says: a hundred processes of tests would each compile the package.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Before NumPy is imported: two test processes with two BLAS threads each are slower than with one.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pytest

import privcov as pc
from privcov.noise import randomness
from privcov.noise.randomness import Words, rehearsal
from privcov.publish.ending import SIGNALS

PURE = pc.PureDP(epsilon=1, neighbours="replace-one")


class Steady:
    """Bits in place of the operating system's: the same for the same test, so that a red run can be repeated.

    Seven thousand tests that are each wrong once in a hundred thousand runs would be red every other week. A test
    or a fixture draws from a stream named after it. ``PRIVCOV_NOISE=fresh`` takes the operating system's bits, which
    finds what one stream does not show; so does the marker ``kernel``, for tests of the source itself. Processes that
    a test starts or forks draw from the operating system always.
    """

    def __init__(self) -> None:
        self.lock, self.read, self.process = threading.Lock(), randomness._read, os.getpid()
        self.bits: np.random.Philox | None = None

    def words(self, count: int) -> Words:
        if self.bits is None or self.process != os.getpid():
            return self.read(count)
        with self.lock:
            return np.asarray(self.bits.random_raw(count), dtype=np.uint64).reshape(count)

    def name(self, stream: str | None) -> np.random.Philox | None:
        """Draw from the stream of this name, or from the system where it has none; the stream before it."""
        before, self.bits = self.bits, stream and np.random.Philox(zlib.crc32(stream.encode()))
        return before


STEADY = Steady()
if os.environ.get("PRIVCOV_NOISE") != "fresh":
    randomness._read = STEADY.words


def pytest_configure() -> None:
    """Signals are heard as at a terminal, whatever ``nohup`` or a job in the background hands down.

    The product keeps ignored what it finds ignored; tests ask what it does with the others. And processes that tests
    start elsewhere find the same library, also where PYTHONPATH says where from here.
    """
    if path := os.environ.get("PYTHONPATH"):
        os.environ["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, path.split(os.pathsep)))
    for number in SIGNALS:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def pytest_collection_finish() -> None:
    """What is collected stays to the end: no search for garbage need look at it again."""
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    STEADY.name(None if item.get_closest_marker("kernel") else item.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef, request: pytest.FixtureRequest) -> Iterator[None]:
    """What several tests share is the same whichever of them comes first."""
    if fixturedef.scope == "function":
        return (yield)
    parameter = request.param_index if hasattr(request, "param") else ""
    before = STEADY.name(f"{fixturedef.baseid}::{fixturedef.argname}[{parameter}]")
    try:
        return (yield)
    finally:
        STEADY.bits = before


@pytest.fixture
def schema() -> pc.Schema:
    """Age, sex and income, with an intercept."""
    return pc.Schema.from_dict(
        {
            "columns": {
                "age": {"lower": 0, "upper": 100},
                "sex": {"levels": ["F", "M"]},
                "income": {"lower": 0, "upper": 200},
            }
        }
    )


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """A CSV of 300 invented people that fits ``schema``."""
    rng = np.random.default_rng(5)
    age, income = rng.integers(18, 90, 300), rng.normal(60, 25, 300).clip(0, 200).round(2)
    sex = rng.choice(["F", "M"], 300)
    lines = [f"{a},{s},{i}" for a, s, i in zip(age, sex, income, strict=True)]
    path = tmp_path / "people.csv"
    path.write_text("age,sex,income\n" + "\n".join(lines) + "\n")
    return path


@pytest.fixture
def made(people: Path, schema: pc.Schema) -> pc.Release:
    """A pure release of ``people``, from kernel randomness."""
    return pc.release(people, schema=schema, loss=PURE)


@pytest.fixture
def rehearsed(people: Path, schema: pc.Schema) -> pc.Release:
    """The same with repeatable noise."""
    return pc.release(people, schema=schema, loss=PURE, randomness=rehearsal(7))


@pytest.fixture(scope="session")
def papers_data() -> Path:
    """The directory of the papers' tables; tests that need it are skipped where there is none."""
    beside = Path(__file__).parents[2] / "shared" / "data"
    home = Path(os.environ.get("PRIVCOV_DATA", beside))
    if not (home / "wine.csv").exists():
        pytest.skip(f"the papers' tables are not at {home.name}/; set PRIVCOV_DATA to test on them")
    return home
