"""A release that is paid for comes to its end, whatever the process is told meanwhile; and no name is paid for twice.

Real processes, real signals. A signal is sent when the ledger shows the payment and no release yet.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from patience import PATIENCE

import privcov as pc
from privcov import unbounded
from privcov.cli import main
from privcov.cli.delivery import Delivery
from privcov_lab.bench.paid import RELEASE, incomplete, order, prepare, tell, wait_until_paid
from privcov_lab.bench.serving import PRIVCOV, Page, started

ESTIMATE = [
    *PRIVCOV,
    *["estimate", "tall.csv", "--columns", "x0,x1,x2,x3,x4,x5", "--rho", "0.5", "--largest-variance", "9"],
    *["--rounds", "20", "--ledger", "tall.ledger"],
]
INT, TERM, HUP = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
SLOWLY = [(INT,), (TERM,), (HUP,), (INT, INT, INT), (HUP, TERM)]
EVERY = [(TERM, HUP), *(pytest.param(each, marks=pytest.mark.slow) for each in SLOWLY)]
"""What is sent, one after the other; one case in the quick suite, all others in the slow one."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A wide table, its schema, and a ledger."""
    prepare(tmp_path)
    return tmp_path


def complete(ledger: Path, output: Path, *, read: Any = pc.load) -> None:
    """The file is whole, and the ledger knows it: one payment, one release, a chain that holds."""
    assert incomplete(ledger, output, read=read) == []
    assert main(["ledger", "verify", str(ledger)]) == 0
    assert main(["verify", str(output)]) == 0


@pytest.mark.parametrize("asked", EVERY, ids=str)
def test_the_workbench_finishes_what_is_paid_for(home, asked):
    page = Page(home)
    page.ask("release", request="1" * 32, **order(page))
    wait_until_paid(home / "wide.ledger")
    tell(page.process, asked)
    out, err = page.process.communicate(timeout=PATIENCE)
    complete(home / "wide.ledger", home / "wide.release.json")
    assert (page.process.returncode, out.strip()) == (0, b"")
    assert b"Traceback" not in err


LATE = """
import os, signal, sys, threading, time
from privcov.publish import ending

ending.last()
with ending.orderly(lambda: None) as wait:
    wait()
    threading.Thread(target=time.sleep, args=(0.2,)).start()


class Late:  # cleared with the modules, when Python has put the handlers that kill back in place
    def __del__(self, kill=os.kill, process=os.getpid(), term=signal.SIGTERM, sleep=time.sleep):
        kill(process, term)
        sleep(0.05)


sys.late = Late()
ending.settle()
"""


def test_a_signal_at_the_very_end_changes_nothing_although_a_thread_was_waited_for():
    done = subprocess.run([sys.executable, "-c", LATE], check=False, timeout=PATIENCE)
    assert done.returncode == 0


@pytest.mark.slow
def test_a_workbench_that_is_ending_pays_for_nothing_more(home):
    """Of six requests two run at a time. Those that wait are not paid for.

    The ledger is held while the page is told to end: at most two can stand before it and pay when they may, and
    what was paid before they came is counted. No request follows them.
    """
    page = Page(home)
    asked = order(page)
    for number in range(6):
        page.ask("release", request=str(number) * 32, **{**asked, "output": f"{number}.release.json"})
    wait_until_paid(home / "wide.ledger")
    with open(home / "wide.ledger", "r+b") as ledger:
        fcntl.flock(ledger, fcntl.LOCK_EX)
        with closing(sqlite3.connect(home / "wide.ledger")) as database:
            entries = database.execute("SELECT body FROM privcov_entries").fetchall()
        paid = sum(json.loads(body)["kind"] == "paid" for (body,) in entries)
        tell(page.process, (TERM,))
    page.process.communicate(timeout=PATIENCE)
    balance = pc.Ledger.open(home / "wide.ledger").balance()
    assert balance.burned == 0
    assert balance.releases == len(list(home.glob("*.release.json")))
    assert 1 <= paid <= balance.releases <= min(paid + 2, 5)


@pytest.mark.slow
def test_eight_requests_for_one_name_pay_once(home):
    page = Page(home)
    try:
        asked = order(page)
        for number in range(8):
            page.ask("release", request=str(number) * 32, **asked)
        for number in range(8):
            while page.ask("job", request=str(number) * 32)["state"] in ("waiting", "paying", "reading"):
                time.sleep(0.05)
        ends = [page.ask("job", request=str(number) * 32) for number in range(8)]
    finally:
        tell(page.process, (INT,))
        page.process.communicate(timeout=PATIENCE)
    assert sorted(end["state"] for end in ends) == ["done"] + ["failed"] * 7
    assert {end["error"]["code"] for end in ends if end["error"]} <= {"E401", "E430"}
    complete(home / "wide.ledger", home / "wide.release.json")


@pytest.mark.parametrize("asked", EVERY, ids=str)
def test_a_release_that_is_paid_for_is_finished(home, asked):
    process = started(RELEASE, home)
    wait_until_paid(home / "wide.ledger")
    tell(process, asked)
    _, err = process.communicate(timeout=PATIENCE)
    complete(home / "wide.ledger", home / "wide.release.json")
    assert process.returncode == 0  # a caller who reads a failure would pay again
    assert b"paid" in err


@pytest.mark.slow
@pytest.mark.parametrize("asked", EVERY, ids=str)
def test_an_estimate_that_is_paid_for_is_finished(tmp_path, asked):
    rows = np.random.default_rng(4).normal(size=(400_000, 6))
    names = ",".join(f"x{number}" for number in range(6))
    np.savetxt(tmp_path / "tall.csv", rows, delimiter=",", header=names, comments="", fmt="%.3f")
    pc.Ledger.init(tmp_path / "tall.ledger", pc.ZCDP(rho=1, neighbours="replace-one"))
    process = started([*ESTIMATE, "-o", "tall.json"], tmp_path)
    wait_until_paid(tmp_path / "tall.ledger")
    tell(process, asked)
    process.communicate(timeout=PATIENCE)
    complete(tmp_path / "tall.ledger", tmp_path / "tall.json", read=unbounded.load)
    assert process.returncode == 0


@pytest.mark.slow
def test_a_terminal_that_is_closed_costs_no_release(home):
    """The kernel sends SIGHUP to everything in the foreground, and the progress bar has nowhere to be drawn."""
    here, there = pty.openpty()
    command = [sys.executable, "-c", _IN_TERMINAL, *RELEASE]
    process = started(command, home, stdin=there, stdout=there, stderr=there, start_new_session=True)
    os.close(there)
    wait_until_paid(home / "wide.ledger")
    os.close(here)
    process.wait(timeout=PATIENCE)
    complete(home / "wide.ledger", home / "wide.release.json")


_IN_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


@pytest.mark.slow
@pytest.mark.parametrize(("asked", "code"), [(INT, 130), (TERM, 143), (HUP, 129)], ids=str)
def test_before_anything_is_paid_a_command_ends_at_once_and_leaves_nothing(home, asked, code):
    """It is stopped when the name is reserved, which comes first, told to end, and let go on."""
    before = sorted(os.listdir(home))
    process = started(RELEASE, home)
    while not (home / ".wide.release.json.reserved").exists():
        assert process.poll() is None
    process.send_signal(signal.SIGSTOP)  # perhaps with the ledger in its hands: it cannot be asked now
    process.send_signal(asked)
    process.send_signal(signal.SIGCONT)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == code
    assert pc.Ledger.open(home / "wide.ledger").balance().burned == 0
    assert [name for name in sorted(os.listdir(home)) if "ledger-" not in name] == before


@pytest.mark.parametrize("asked", [INT, TERM, HUP], ids=str)
def test_a_signal_while_the_name_is_being_reserved_leaves_no_trace(tmp_path, monkeypatch, asked):
    """The file of the reservation exists already, and nobody has noted yet that it is to be removed."""
    lock = fcntl.flock
    monkeypatch.setattr(fcntl, "flock", lambda *words: (signal.raise_signal(asked), lock(*words)))
    delivery = Delivery(key=None, book=None, output=str(tmp_path / "a.release.json"), force=False)
    with pytest.raises((KeyboardInterrupt, SystemExit)), click.Context(click.Command("release")):
        delivery.ready()
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("force", [(), ("--force",)], ids=["new", "force"])
def test_four_releases_to_one_name_started_together_pay_once(home, force):
    command = [*RELEASE, *force]
    processes = [started(command, home) for _ in range(4)]
    ends = [process.communicate(timeout=PATIENCE) for process in processes]
    codes = sorted(process.returncode for process in processes)
    assert codes == [0, 2, 2, 2]
    assert sum(b"E430" in err or b"E401" in err for _, err in ends) == 3
    complete(home / "wide.ledger", home / "wide.release.json")


@pytest.mark.slow
def test_a_killed_release_leaves_a_name_that_can_be_used_again(home):
    """Nothing can be done about SIGKILL: the payment is burned. The reservation ends with the process."""
    process = started(RELEASE, home)
    wait_until_paid(home / "wide.ledger")
    process.kill()
    process.communicate(timeout=PATIENCE)
    assert not (home / "wide.release.json").exists()
    again = subprocess.run(RELEASE, cwd=home, capture_output=True)
    assert again.returncode == 0
    assert not [name for name in os.listdir(home) if name.startswith(".")]
    assert pc.Ledger.open(home / "wide.ledger").balance().burned == 1


_SHOT_AT = """
import os, signal, sys, threading, time
from pathlib import Path
import pyarrow
from privcov.audit.readers import bounded_rows
from privcov.schema import Schema
signal.signal(signal.SIGINT, lambda *_: None)  # as from the payment on: it is heard, and waits
pyarrow.enable_signal_handlers(False)
over = threading.Event()
def shoot():
    while not over.wait(0.002):
        os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=shoot, daemon=True).start()
schema = Schema.from_dict({"columns": {"x": {"lower": 0, "upper": 9}}, "ignore_extra": True})
print(sum(len(bounded_rows(Path(sys.argv[1]), schema)) for _ in range(3)))
over.set()
"""


def test_reading_goes_on_where_ctrl_c_has_to_wait(tmp_path):
    """polars hears SIGINT by itself and breaks off its query, whatever the handler of the process says."""
    (tmp_path / "tall.csv").write_bytes(b"x,y\n" + b"1.25,2.5\n" * 400_000)
    command = [sys.executable, "-c", _SHOT_AT, str(tmp_path / "tall.csv")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stdout) == (0, "1200000\n"), done.stderr[-500:]
