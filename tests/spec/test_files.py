"""An output has one writer: a name is reserved before anything is paid, and free again whatever happens."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from patience import PATIENCE

import privcov as pc
from privcov.errors import OutputError, PrivcovError
from privcov.releases.keyfiles import read_public
from privcov.text import files

HOLD = """
import sys, time
from privcov.text import files
with files.reserved(sys.argv[1], force=True):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_name_is_reserved_once_at_a_time_and_nothing_is_left(tmp_path):
    path = tmp_path / "x.json"
    for force in (False, True):
        with (
            files.reserved(path, force=force),
            pytest.raises(OutputError, match="E430"),
            files.reserved(path, force=force),
        ):
            pass
    assert os.listdir(tmp_path) == []


def test_what_fails_within_frees_the_name_and_passes_on(tmp_path):
    for reason in (BlockingIOError("mine"), KeyboardInterrupt()):
        with pytest.raises(type(reason)), files.reserved(tmp_path / "x.json", force=False):
            raise reason
    assert os.listdir(tmp_path) == []


def test_another_spelling_of_the_place_is_the_same_name(tmp_path, monkeypatch):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.chdir(tmp_path / "real")
    with (
        files.reserved("x.json", force=False),
        pytest.raises(OutputError, match="E430"),
        files.reserved(tmp_path / "link" / "x.json", force=False),
    ):
        pass


def test_a_process_that_is_killed_frees_the_name(tmp_path):
    path = tmp_path / "x.json"
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE)
    assert holder.stdout.readline() == b"held\n"
    with pytest.raises(OutputError, match="E430"), files.reserved(path, force=True):
        pass
    holder.kill()
    holder.communicate()
    with files.reserved(path, force=True):
        files.write(path, "made", force=True)
    assert os.listdir(tmp_path) == ["x.json"]


def test_a_link_in_the_place_of_the_reservation_is_not_followed(tmp_path):
    (tmp_path / ".x.json.reserved").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OutputError, match="E401"), files.reserved(tmp_path / "x.json", force=False):
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_a_name_that_is_too_long_is_refused_before_paying_and_a_long_one_can_be_written(tmp_path):
    with pytest.raises(OutputError, match="E401"), files.reserved(tmp_path / ("x" * 250), force=False):
        pass
    long = tmp_path / ("x" * 240)
    with files.reserved(long, force=False):
        files.write(long, "made", force=False)
    assert Path(long).read_text() == "made"


def test_a_file_that_the_one_before_wrote_is_not_written_again(tmp_path):
    path = tmp_path / "x.json"
    with files.reserved(path, force=False):
        files.write(path, "first", force=False)
    with pytest.raises(OutputError, match="already exists"), files.reserved(path, force=False):
        pass
    assert path.read_text() == "first"


@pytest.mark.parametrize(
    "read",
    [pc.Schema.read, pc.load, pc.verify, read_public],
    ids=["schema", "release", "verify", "key"],
)
def test_a_pipe_or_a_device_in_the_place_of_a_file_is_refused_and_not_waited_for(tmp_path, read):
    os.mkfifo(tmp_path / "pipe")
    before = signal.signal(signal.SIGALRM, lambda *_: pytest.fail("it waits for somebody to write"))
    signal.alarm(PATIENCE)
    try:
        for path in (tmp_path / "pipe", Path("/dev/zero")):
            with pytest.raises(PrivcovError, match="not a plain file") as refusal:
                read(path)
            assert refusal.value.code in ("E119", "E604")
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def test_what_is_no_plain_file_is_never_replaced(tmp_path):
    """Root may rename a file to /dev/null, and every program of the machine would write into it."""
    os.mkfifo(tmp_path / "pipe")
    for path in ("/dev/null", tmp_path / "pipe"):
        for force in (False, True):
            with pytest.raises(OutputError, match=r"E401 .* not a plain file"):
                files.check_writable(path, force=force)
    with pytest.raises(OutputError, match="E401"):
        files.write(tmp_path / "pipe", "text", force=True)
    assert not (tmp_path / "pipe").is_file()
    assert os.listdir(tmp_path) == ["pipe"]
