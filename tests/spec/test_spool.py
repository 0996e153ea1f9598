"""What can be read once is copied where the steward says so: the same sums, within a bound, and gone at the end."""

from __future__ import annotations

import gzip
import io
import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import privcov as pc
from privcov.cli import main
from privcov.errors import InputError
from privcov.noise.randomness import rehearsal
from privcov.table.spool import bytes_of

SCHEMA = pc.Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}, "sex": {"levels": ["F", "M"]}}})
LOSS = pc.PureDP(epsilon=1, neighbours="replace-one")
ROWS = 500
AGES = np.random.default_rng(0).uniform(20, 70, ROWS)
TABLE = pa.table({"age": AGES, "sex": ["F", "M"] * (ROWS // 2)})
TEXT = "age,sex\n" + "".join(f"{age!r},{'FM'[row % 2]}\n" for row, age in enumerate(AGES.tolist()))
SECRET = "Erika Mustermann, 47"


def as_parquet():
    made = io.BytesIO()
    pq.write_table(TABLE, made)
    return io.BytesIO(made.getvalue())


def released(table, **more):
    """A release in a private frame, which reads the table five times; the same noise every time."""
    asked = {"schema": SCHEMA, "loss": LOSS, "frame": "scales", "randomness": rehearsal(1)}
    return pc.release(table, **asked, **more).upper


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Where copies are made."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "spool"))
    (tmp_path / "spool").mkdir()
    return tmp_path / "spool"


ONCE = {
    "Arrow reader": lambda: TABLE.to_reader(max_chunksize=7),
    "bytes of CSV": lambda: io.BytesIO(TEXT.encode()),
    "bytes of packed CSV": lambda: io.BytesIO(gzip.compress(TEXT.encode())),
    "bytes of Parquet": as_parquet,
    "a list of streams": lambda: [
        io.BytesIO(TEXT[: TEXT.index("\n", 3000) + 1].encode()),
        io.BytesIO(("age,sex\n" + TEXT[TEXT.index("\n", 3000) + 1 :]).encode()),
    ],
}


@pytest.mark.parametrize("make", ONCE.values(), ids=ONCE.keys())
def test_a_copy_gives_the_same_bits_as_the_table(make, place):
    with pytest.raises(InputError, match=r"E110|E129"):
        released(make())
    with pc.spooled(make(), most="1MB") as table:
        (copy,) = place.iterdir()
        assert stat.S_IMODE(copy.stat().st_mode) == 0o700
        assert released(table) == released(TABLE)
    assert not list(place.iterdir())


@pytest.mark.parametrize("name", ["pipe", "pipe.csv"])
def test_a_pipe_is_copied_and_is_never_read_unasked(name, place, tmp_path):
    pipe = tmp_path / name
    os.mkfifo(pipe)
    with pytest.raises(InputError, match=r"E119 .*spooled"):
        released(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(TEXT,))
    writer.start()
    with pc.spooled(pipe, most="1MB") as table:
        assert released(table) == released(TABLE)
    writer.join()


@pytest.mark.parametrize("table", [TABLE, AGES, "people.csv", ["a.csv", "b.csv"], TABLE.to_pandas(), None])
def test_what_can_be_read_again_is_handed_on(table, place):
    with pc.spooled(table, most=1) as same:
        assert same is table or same == table


@pytest.mark.parametrize("make", ONCE.values(), ids=ONCE.keys())
def test_more_than_was_allowed_is_refused_before_anything_is_paid(make, place):
    refused = pytest.raises(InputError, match=r"E152 the input is larger than 100 bytes")
    with refused, pc.spooled(make(), most=100):
        pytest.fail("the block was entered")
    assert not list(place.iterdir())


def test_the_size_holds_for_all_streams_of_a_list_together(place):
    half = len(TEXT) - 1
    with pytest.raises(InputError, match="E152"), pc.spooled([io.BytesIO(TEXT.encode())] * 2, most=half):
        pytest.fail("the block was entered")


class Broken(io.RawIOBase):
    def read(self, count=-1):
        raise ValueError(SECRET)


def broken_reader():
    def batches():
        yield TABLE.to_batches()[0]
        raise ValueError(SECRET)

    return pa.RecordBatchReader.from_batches(TABLE.schema, batches())


@pytest.mark.parametrize("make", [broken_reader, Broken, lambda: io.StringIO(TEXT)])
def test_a_stream_that_fails_says_nothing_of_its_rows(make, place):
    with (
        pytest.raises(InputError, match="E152 the input could not be copied") as caught,
        pc.spooled(make(), most="1MB"),
    ):
        pytest.fail("the block was entered")
    error = caught.value
    assert SECRET not in str(error)
    assert error.__cause__ is error.__context__ is None
    assert not list(place.iterdir())


def test_a_failure_within_the_block_takes_the_copy_along(place):
    def work():
        with pc.spooled(TABLE.to_reader(), most="1MB"):
            assert list(place.iterdir())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()
    assert not list(place.iterdir())


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1", 1),
        (2048, 2048),
        ("500MB", 5 * 10**8),
        ("1.5 GiB", 3 * 2**29),
        ("2gb", 2 * 10**9),
        ("10 kB", 10**4),
    ],
)
def test_sizes_are_written_as_people_write_them(text, size):
    assert bytes_of(text) == size


@pytest.mark.parametrize("text", ["", "0", "much", "-1", "1e9", "5iB", "1 PB", True, "nan", "9" * 30])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(InputError, match="E152"):
        bytes_of(text)


@pytest.fixture
def home(tmp_path, monkeypatch, place):
    monkeypatch.chdir(tmp_path)
    Path("people.toml").write_text(SCHEMA.to_toml())
    Path("people.csv").write_text(TEXT)
    assert main(["ledger", "init", "b.ledger", "--epsilon", "3", "--neighbours", "replace-one"]) == 0
    return tmp_path


ASKED = ["--schema", "people.toml", "--epsilon", "1", "--neighbours", "replace-one", "--frame", "scales"]


class Standard:
    def __init__(self, text):
        self.buffer = io.BytesIO(text.encode())

    def isatty(self):
        return False


def test_the_command_line_copies_standard_input_where_it_is_told_to(home, place, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", Standard(TEXT))
    words = [*ASKED, "--ledger", "b.ledger"]
    assert main(["release", "-", *words, "-o", "a.json"]) == 2
    assert "E119 standard input can be read only once" in capsys.readouterr().err
    assert main(["release", "-", *words, "-o", "a.json", "--spool", "1kB"]) == 2
    assert "E152 the input is larger" in capsys.readouterr().err
    monkeypatch.setattr(sys, "stdin", Standard(TEXT))
    assert main(["check", "-", *words, "--spool", "1MB"]) == 0
    assert "What was copied is deleted." in capsys.readouterr().out
    monkeypatch.setattr(sys, "stdin", Standard(TEXT))
    assert main(["release", "-", *words, "-o", "a.json", "--spool", "1MB"]) == 0
    assert pc.load("a.json").rows == ROWS
    assert pc.Ledger.open("b.ledger").left == {"epsilon": 2}
    assert not list(place.iterdir())


def test_a_signal_takes_the_copy_along(home, place):
    """The pipe stays open, so the copy is half made when the signal comes."""
    words = [sys.executable, "-m", "privcov", "release", "-", *ASKED, "--spool", "1GB", "-o", "a.json"]
    process = subprocess.Popen(
        words, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "TMPDIR": str(place)}
    )
    process.stdin.write(TEXT.encode() * 200)
    process.stdin.flush()
    deadline = time.monotonic() + 60
    while not any(place.rglob("stream.csv")) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert any(place.rglob("stream.csv"))
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert not list(place.iterdir())
