"""A ledger's file has one name: whatever else leads to it either shares its lock and journal, or is refused.

SQLite names its journal after the path. Through a second name of the same file a journal is not found, and with a
write-ahead log payments are not found either. Bind mounts are made in a mount namespace of their own, which needs
root or user namespaces; where neither may be had, those tests are skipped with that reason.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest
from patience import PATIENCE

import privcov as pc
from privcov.cli import main
from privcov.errors import BudgetError
from privcov.ledger import Ledger, Request
from privcov.ledger.holding import mounts_of
from privcov.ledger.store import Session

ONE = "replace-one"
RACERS = str(Path(__file__).with_name("racers.py"))


def pure(epsilon="0.01"):
    return Request(loss=pc.PureDP(epsilon=epsilon, neighbours=ONE), mechanism="laplace")


@pytest.fixture
def home(tmp_path):
    """A directory with a ledger of 0.3, thirty payments of the racers."""
    (tmp_path / "data").mkdir()
    Ledger.init(tmp_path / "data" / "l.ledger", pc.PureDP(epsilon="0.3", neighbours=ONE))
    return tmp_path


@pytest.fixture(scope="module")
def namespace():
    """The words that run a command where a mount is seen by that command alone."""
    for words in (["unshare", "-m"], ["unshare", "-rm"]):
        if (
            shutil.which("unshare")
            and not subprocess.run([*words, "true"], capture_output=True, check=False).returncode
        ):
            return words
    pytest.skip("mount namespaces cannot be made here (unshare -m)")


def started(home, places, processes, *, groups=1, before=(), python=()):
    """Processes that race through several names once ``groups`` such calls are ready."""
    words = [RACERS, "\n".join(map(str, places)), str(processes), str(groups)]
    return subprocess.Popen(
        [*before, sys.executable, *python, *words],
        cwd=home,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )


def ended(running):
    """The entries that all of them paid for, and the codes that they were refused with."""
    reports = []
    for process in running:
        out, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, err
        reports += json.loads(out)
    codes = [report.pop()[:4] for report in reports]
    return [number for report in reports for number in report], codes


def bound(namespace, source, target):
    """The words that run a command where ``target`` is a mount of ``source``."""
    script = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
    return [*namespace, "sh", "-c", script, "sh", str(source), str(target)]


def check_sum(path, paid):
    ledger = Ledger.open(path)
    assert len(paid) == len(set(paid)) == 30
    assert ledger.left == {"epsilon": 0}
    assert ledger.verify() == ()


def test_a_hard_link_is_no_second_budget(home):
    """Eight processes on two names; without the refusal, and with a write-ahead log, they spent the budget twice."""
    path, other = home / "data" / "l.ledger", home / "other.ledger"
    os.link(path, other)
    paid, codes = ended([started(home, [path, other], 8)])
    assert (paid, set(codes)) == ([], {"E310"})  # neither is served: nobody can tell which is the right one
    other.unlink()
    paid, codes = ended([started(home, [path], 4)])
    assert set(codes) == {"E301"}
    check_sum(path, paid)


@pytest.mark.parametrize("act", ["show", "log", "verify"])
def test_a_ledger_with_two_names_is_not_even_looked_at(home, act, capsys):
    os.link(home / "data" / "l.ledger", home / "other.ledger")
    assert main(["ledger", act, str(home / "other.ledger")]) == 3
    assert "E310" in capsys.readouterr().err


def test_a_hard_link_made_while_paying_stops_the_payment(home, monkeypatch):
    path = home / "data" / "l.ledger"
    ledger, real = Ledger.open(path), Session.write

    def write(*words):
        real(*words)
        os.link(path, home / "other.ledger")

    with monkeypatch.context() as patched:
        patched.setattr(Session, "write", write)
        with pytest.raises(BudgetError, match="E310"):
            ledger.pay(pure())
    (home / "other.ledger").unlink()
    assert Ledger.open(path).spent == {"epsilon": 0}


def test_symbolic_links_and_detours_are_the_same_ledger(home):
    path = home / "data" / "l.ledger"
    (home / "link").symlink_to(path)
    (home / "far").symlink_to(home / "link")
    (home / "folder").symlink_to(home / "data")
    names = [path, home / "far", home / "folder" / "l.ledger", Path("data/../data/l.ledger")]
    paid, codes = ended([started(home, names, 8)])
    assert set(codes) == {"E301"}
    check_sum(path, paid)


def test_a_loop_of_symbolic_links_is_no_ledger(tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(BudgetError, match="E302"):
        Ledger.open(tmp_path / "loop")


def test_a_file_mounted_alone_is_refused_and_the_others_pay_on(home, namespace):
    """What ``-v people.ledger:/people.ledger`` does: the container has the file without the directory."""
    path, mounted = home / "data" / "l.ledger", home / "mounted.ledger"
    mounted.touch()
    inside = started(home, [mounted], 4, groups=2, before=bound(namespace, path, mounted))
    outside = started(home, [path], 4, groups=2)
    assert ended([inside]) == ([], ["E310"] * 4)
    paid, codes = ended([outside])
    assert set(codes) == {"E301"}
    check_sum(path, paid)


def test_a_file_mounted_alone_is_refused_through_a_symbolic_link_and_with_odd_names(home, namespace):
    names = ["a b\tc.ledger", "back\\slash.ledger", "new\nline.ledger", "é.ledger"]
    words = [*namespace]
    for number, name in enumerate(names):
        (home / name).touch()
        (home / f"link{number}").symlink_to(home / name)
        words += bound([], home / "data" / "l.ledger", home / name)
    script = (
        "from privcov.errors import BudgetError; from privcov.ledger import Ledger\n"
        "for number in range(4):\n"
        "    try: Ledger.open(f'./link{number}')\n"
        "    except BudgetError as refusal: print(refusal.code)"
    )
    done = subprocess.run(
        [*words, sys.executable, "-c", script], cwd=home, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["E310"] * 4


def test_two_containers_that_mount_the_directory_share_one_budget(home, namespace):
    """Each sees the directory at a path of its own; a third process stays outside."""
    running = [started(home, [home / "data" / "l.ledger"], 3, groups=3)]
    for place in ("first", "second"):
        (home / place).mkdir()
        before = bound(namespace, home / "data", home / place)
        running.append(started(home, [home / place / "l.ledger"], 3, groups=3, before=before))
    paid, codes = ended(running)
    assert set(codes) == {"E301"}
    check_sum(home / "data" / "l.ledger", paid)


def test_locks_follow_the_file_even_where_a_second_name_is_not_noticed(home):
    """SQLite's own locks alone, without the refusal and without our lock: payments by two names take turns."""
    path, other = home / "data" / "l.ledger", home / "other.ledger"
    os.link(path, other)
    script = (
        "import runpy, sys, privcov.ledger.holding as holding;"
        "holding.Held.check = lambda self: None; holding._wait = lambda *words: None;"
        "sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    paid, codes = ended([started(home, [path, other], 8, python=["-c", script])])
    assert set(codes) == {"E301"}
    other.unlink()
    check_sum(path, paid)


def test_a_ledger_that_is_renamed_takes_its_payments_along(home):
    path, moved = home / "data" / "l.ledger", home / "moved.ledger"
    ledger = Ledger.open(path)
    ledger.pay(pure("0.1"))
    os.rename(path, moved)  # the file alone, as people do
    assert Ledger.open(moved).spent == {"epsilon": Fraction(1, 10)}
    with pytest.raises(BudgetError, match="E302"):
        ledger.pay(pure())
    shutil.copy(moved, home / "copy.ledger")
    assert Ledger.open(home / "copy.ledger").spent == {"epsilon": Fraction(1, 10)}


def test_a_payment_of_a_killed_process_is_not_left_behind_under_the_old_name(home):
    """Killed right after the commit, before the file is closed."""
    path, moved = home / "data" / "l.ledger", home / "moved.ledger"
    script = (
        "import os, sys; from contextlib import contextmanager; from racers import pay\n"
        "from privcov.ledger.store import SQLite\n"
        "@contextmanager\n"
        "def dying(self, path, real=SQLite._connected, calls=[]):\n"
        "    with real(self, path) as connection:\n"
        "        yield connection\n"
        "        calls.append(1)\n"
        "        if len(calls) == 2: os.kill(os.getpid(), 9)\n"  # opening is the first, paying the second
        "SQLite._connected = dying\n"
        "pay(sys.argv[1])"
    )
    words = [sys.executable, "-c", script, path]
    assert subprocess.run(words, cwd=Path(RACERS).parent, check=False).returncode == -9
    os.rename(path, moved)
    assert Ledger.open(moved).spent == {"epsilon": Fraction(1, 100)}


@pytest.mark.parametrize("how", ["renamed", "removed", "replaced"])
def test_a_ledger_that_loses_its_name_while_paying_is_not_paid(home, monkeypatch, how):
    path, moved = home / "data" / "l.ledger", home / "moved.ledger"
    shutil.copy(path, home / "copy")
    ledger, real = Ledger.open(path), Session.write

    def write(*words):
        real(*words)
        if how == "removed":
            path.unlink()
        else:
            os.rename(path, moved)
        if how == "replaced":
            os.rename(home / "copy", path)

    with monkeypatch.context() as patched:
        patched.setattr(Session, "write", write)
        with pytest.raises(BudgetError, match="E311"):
            ledger.pay(pure())
    if how != "removed":
        assert Ledger.open(moved).spent == {"epsilon": 0}


def test_another_ledger_under_the_name_is_not_paid_by_who_knew_the_first(home):
    path = home / "data" / "l.ledger"
    ledger = Ledger.open(path)
    ledger.pay(pure())
    Ledger.init(home / "new", pc.PureDP(epsilon=9, neighbours=ONE))
    os.replace(home / "new", path)
    with pytest.raises(BudgetError, match="E305"):
        ledger.pay(pure())


def test_a_journal_that_a_crash_left_is_rolled_back_and_not_missed_under_another_name(home):
    """Killed with half of its pages written: whole under its name, refused under another, whole again when back."""
    path, moved = home / "data" / "l.ledger", home / "data" / "moved.ledger"
    Ledger.open(path).pay(pure("0.1"))
    script = (
        "import os, sys; from privcov.ledger.store import SQLite\n"
        "with SQLite(sys.argv[1]).session(exclusive=True) as session:\n"
        "    session._execute('PRAGMA cache_size = 1', ())\n"
        "    session.write([(n, 'x' * 900, str(n)) for n in range(3, 300)], {'count': '299'})\n"
        "    os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", script, path], check=False).returncode == -9
    assert (home / "data" / "l.ledger-journal").stat().st_size > 0
    os.rename(path, moved)
    with pytest.raises(BudgetError, match="E305"):
        Ledger.open(moved)
    os.rename(moved, path)
    shutil.copy(home / "data" / "l.ledger-journal", home / "kept")
    assert Ledger.open(path).spent == {"epsilon": Fraction(1, 10)}
    assert Ledger.open(path).verify() == ()
    path.unlink()
    os.rename(home / "kept", home / "data" / "l.ledger-journal")  # a new ledger does not inherit it
    Ledger.init(path, pc.PureDP(epsilon=7, neighbours=ONE)).pay(pure("1"))
    assert Ledger.open(path).left == {"epsilon": 6}
    assert Ledger.open(path).verify() == ()


def test_a_payment_is_in_the_file_itself_and_nothing_lies_beside_it(home):
    path = home / "data" / "l.ledger"
    Ledger.open(path).pay(pure())
    assert [file.name for file in path.parent.iterdir()] == ["l.ledger"]


def test_a_ledger_of_an_earlier_version_keeps_its_payments_and_loses_its_second_file(home):
    """A ledger once had a write-ahead log; one that a killed process left behind is taken in."""
    path = home / "data" / "l.ledger"
    Ledger.open(path).pay(pure("0.1"))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        assert connection.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    script = (
        "import os, sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "c.execute('BEGIN IMMEDIATE');"
        "c.execute(\"UPDATE privcov_facts SET value = value WHERE name = 'seal'\");"
        "c.execute(\"INSERT INTO privcov_facts VALUES ('left behind', 'yes')\");"
        "c.execute('COMMIT'); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", script, path], check=False)
    assert (path.parent / "l.ledger-wal").stat().st_size > 0
    ledger = Ledger.open(path)
    assert ledger.spent == {"epsilon": Fraction(1, 10)}
    assert [file.name for file in path.parent.iterdir()] == ["l.ledger"]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        assert connection.execute("SELECT value FROM privcov_facts WHERE name = 'left behind'").fetchone()
    assert ledger.verify() == ()


def test_who_closes_the_file_in_the_same_process_lets_nobody_in(home, monkeypatch):
    """Closing any descriptor of a file drops the process's POSIX locks on it; a payment under way stays alone."""
    path = home / "data" / "l.ledger"
    ledger, real = Ledger.open(path), Session.write
    codes = []

    def write(*words):
        path.read_bytes()  # a backup in a thread, say
        script = (
            "import sys; from privcov.ledger import Ledger, Request; from privcov.ledger.store import SQLite\n"
            "from privcov.errors import BudgetError\n"
            "from privcov.privacy import PureDP\n"
            "asked = Request(loss=PureDP(epsilon='0.01', neighbours='replace-one'), mechanism='laplace')\n"
            "try: Ledger(SQLite(sys.argv[1], patience=0.2)).pay(asked)\n"
            "except BudgetError as refusal: print(refusal.code)"
        )
        done = subprocess.run(
            [sys.executable, "-c", script, path], capture_output=True, text=True, check=True
        )
        codes.append(done.stdout.strip())
        real(*words)

    with monkeypatch.context() as patched:
        patched.setattr(Session, "write", write)
        ledger.pay(pure())
    assert codes == ["E306"]


def test_threads_with_two_ledgers_of_one_file_take_turns(home):
    path, paid = home / "data" / "l.ledger", []

    def spend():
        ledger = Ledger.open(path)
        try:
            while True:
                paid.append(ledger.pay(pure()).number)
        except BudgetError:
            pass

    threads = [threading.Thread(target=spend) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check_sum(path, paid)


def test_the_table_of_mounts_is_read_with_its_escapes():
    table = "/dev/a / ext4 rw 0 0\n/dev/a /srv/a\\040b\\134c\\012d ext4 rw 0 0\nbroken\n"
    assert [*mounts_of(table)] == [("/", "ext4"), ("/srv/a b\\c\nd", "ext4")]
