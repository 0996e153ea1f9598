"""``privcov release`` and where it reads: engines by name, and what is shown on the way."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from patience import PATIENCE

from privcov.cli import main
from privcov.errors import InputError
from privcov.table.fragments import Fragment

TOML = "[columns.age]\nlower = 0\nupper = 100\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.toml").write_text(TOML)
    for part in range(2):
        pq.write_table(
            pa.table({"age": np.arange(123_456.0) % 90}), f"part{part}.parquet", row_group_size=9_999
        )
    return tmp_path


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_pattern_is_released_by_any_number_of_workers(
    home: Path, workers: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["release", "*.parquet", "--schema", "people.toml", "--epsilon", "1", "--workers", workers]
    assert main(words) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["rows"]["count"] == 2 * 123_456
    assert "rows/s" not in shown.err


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--engine", "ray"], "E213"),
        (["--scheduler", "tcp://127.0.0.1:1"], "E213"),
        (["--engine", "dask", "--master", "local[2]"], "E213"),
        (["--verify", "0.1"], "E213"),
    ],
)
def test_words_that_do_not_fit_are_refused(
    home: Path, words: list[str], code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["release", "*.parquet", "--schema", "people.toml", "--epsilon", "1", *words]
    assert main(given) == 2
    assert code in capsys.readouterr().err


def on_a_terminal(words: list[str]) -> str:
    """What a command shows on stderr, where that is a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "privcov", *words],
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "160"},
    )
    os.close(theirs)
    shown = b""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            part = os.read(ours, 65_536)
        except OSError:  # how a terminal says that nobody writes to it any more
            break
        if not part:
            break
        shown += part
    os.close(ours)
    assert process.wait(PATIENCE) == 0, shown
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())


def test_a_terminal_sees_rows_bytes_and_rate_where_the_count_is_public_and_no_amount_where_it_is_not(
    home: Path,
) -> None:
    words = ["release", "*.parquet", "--schema", "people.toml", "--epsilon", "1", "--neighbours"]
    public = on_a_terminal([*words, "replace-one"])
    assert re.search(r"246,912 rows, \d+ MB, [\d.]+ million rows/s", public)
    private = on_a_terminal([*words, "add-remove"])
    assert "reading" in private
    assert not re.search(r"rows,|MB|million", private)
    assert not re.search(r"246\D?912", private), (
        private
    )  # three digits alone turn up in times and percentages


def test_what_a_worker_says_is_escaped_on_the_terminal(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A worker's InputError is told in its own words: they clear no screen and forge no line."""

    def forging(*_: object) -> None:
        raise InputError("E120", "gone\x1b[2J\x1b[1;1H", "\nwrote a\x9b2J\u202e.json")

    monkeypatch.setattr(Fragment, "open", forging)
    words = [
        "release",
        "*.parquet",
        "--schema",
        "people.toml",
        "--epsilon",
        "1",
        "--neighbours",
        "replace-one",
    ]
    assert main(words) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.splitlines()[-1] == r"privcov: E120 gone\x1b[2J\x1b[1;1H wrote a\x9b2J\u202e.json"
    assert not set(shown.err) & set("\x1b\x9b\u202e")
