"""Attacks that once succeeded, as lists of cases: each case yields its faults, and none may have any.

A second name for a ledger, signals in the middle of a paid release, several releases to one name, a recorder of
tracebacks, misspelt addresses, connections that never end, records that touch another's row. Who could do it, and what
is done about it: docs/explain/threats.md.
"""

from __future__ import annotations

import ctypes
import gzip
import os
import resource
import signal
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from privcov.audit.readers import ROUTES, audit_reader
from privcov.errors import BudgetError
from privcov.ledger import Ledger, Request
from privcov.mechanisms import MECHANISMS
from privcov.privacy import ZCDP, ApproxDP, Loss, PureDP
from privcov.publish.release import release
from privcov.releases.release import Release
from privcov.schema import Schema
from privcov.summing.gram import Gram
from privcov_lab.bench import paid
from privcov_lab.bench.hostile import Shell
from privcov_lab.bench.limited import elsewhere, together
from privcov_lab.bench.recording import Seen

Case = Callable[[], Iterable[str]]
"""Yields what is wrong; runs in an empty directory of its own."""
ONE = PureDP(epsilon="0.01", neighbours="replace-one")
LOSSES: dict[str, Loss] = {
    "pure": PureDP(epsilon=1, neighbours="replace-one"),
    "approximate": ApproxDP(epsilon=1, delta="1e-6", neighbours="replace-one"),
    "zcdp": ZCDP(rho=1, neighbours="replace-one"),
}
SPELLINGS = (
    "postgresql://ann:{}@127.0.0.1:1/db",
    "postgres://ann:{}@127.0.0.1:1/db?connect_timeout=2",
    "POSTGRESQL://ann:{}@127.0.0.1:1/db",
    "Postgres://ann:{}@127.0.0.1:1/db",
    " postgresql://ann:{}@127.0.0.1:1/db",
    "postgresql:/ann:{}@127.0.0.1:1/db",
    "postgresql:ann:{}@127.0.0.1:1/db",
    "postgresql//ann:{}@127.0.0.1:1/db",
    "postgresql+psycopg://ann:{}@127.0.0.1:1/db",
    "jdbc:postgresql://127.0.0.1:1/db?user=ann&password={}",
    "mysql://ann:{}@127.0.0.1:1/db",
    "//ann:{}@127.0.0.1:1/db",
    "ann:{}@127.0.0.1:1/db",
    "host=127.0.0.1 port=1 password={}",
    "password={} host=127.0.0.1",
    "password = '{}' host = 127.0.0.1",
    "psql host=127.0.0.1\tpassword={}",
    "PGPASSWORD={} 127.0.0.1",
    "postgresql://127.0.0.1:1/db?user=ann&password={}",
    "postgresql://127.0.0.1:1/db?user=ann&password={}&unknown_word=1",
    "postgresql://127.0.0.1:1/db?sslmode={}",
    "postgresql://127.0.0.1:1/db?port={}",
    "postgresql://127.0.0.1:1/db?unknown_word={}",
    "postgresql://127.0.0.1:1/db?hostaddr={}",
    "postgresql://127.0.0.1:1/db?service={}",
    "postgresql://127.0.0.1:1/{}",
    "postgresql://{}@127.0.0.1:1/db",
    "postgresql://ann:{}@[::1]:1/db",
    "postgresql://ann:{}@127.0.0.1:1,127.0.0.1:2/db",
    "postgresql://ann:{}@0.0.0.0:1/db",
    "postgresql://ann:{}@/db?host=/nowhere",
    "postgresql://ann:{}@127.0.0.1:x/db",
    "postgresql://ann:{}@@127.0.0.1:1/db",
    "postgresql://ann:{}@[127.0.0.1:1/db",
)
"""Ways to write the address of a ledger with a password; nobody listens at any of them."""
PIECES = ("Zq7", "Xw9", "Kp3")
_CELLS = (37.28125, 61.40625)
"""Of one person; no other number here equals them."""
_PEOPLE = Schema.from_dict({"columns": {name: {"lower": 0, "upper": 100} for name in "ab"}})
_LAYOUTS = {
    "people.csv": (b"age,sex\n30,F\n41,M\n\n7,x\n", ""),
    "people.tsv": (b"age\tsex\r\n30\tF\r\n41\tM\r\n", ""),
    "german.csv": (b"age;sex\n30,5;F\n1.041;M\n", 'separator = ";"\ndecimal = ","\nthousands = "."\n'),
    "wide.csv": ("age,sex\n30,F\n41,M\n".encode("utf-16"), 'encoding = "utf-16"\n'),
    "packed.csv.gz": (gzip.compress(b"age,sex\n30,F\n41,M\n"), ""),
}
"""A file, and what its schema says under [file]."""
_LEDGER = "data/l.ledger"
_SECOND = {
    "hard link": "hard.ledger",
    "symbolic link": "soft/../soft/l.ledger",
    "file mounted": "alone.ledger",
    "directory mounted": "there/l.ledger",
}
_MOUNTS = {"file mounted": (_LEDGER, "alone.ledger"), "directory mounted": ("data", "there")}
_OWN_USERS, _OWN_MOUNTS, _BIND, _PRIVATE = 0x10000000, 0x20000, 4096, 0x44000


def parts(shell: Shell, *, processes: int, spends: int) -> dict[str, tuple[str, dict[str, Case]]]:
    """Every part by name: what its cases are, and the cases."""
    names = second_names(processes, spends)
    alone = "" if _MOUNTS.keys() <= names.keys() else ", without mounts"
    lacking = "" if _workbench() else ", without privcov[web]"
    return {
        "second names": ("ways to a ledger, raced" + alone, names),
        "signals": ("releases told to end once paid for" + lacking, signals()),
        "one name": ("ways to start several releases to one name" + lacking, one_name()),
        "tracebacks": ("mechanisms on a full disk, under a recorder", tracebacks()),
        "addresses": ("spellings of an address, six commands", addresses(shell)),
        "connections": (f"kinds of {paid.HELD} unfinished requests{lacking}", connections()),
        "records": ("layouts of files, read in one way", readers()),
    }


# --- a second name for a ledger -------------------------------------------------------------------------


def second_names(processes: int, spends: int) -> dict[str, Case]:
    """Half of the processes pay by the ledger's name and half by another; no more than the budget may be paid."""
    ways = ["hard link", "symbolic link"]
    if elsewhere(partial(_mounted, ".", ".")):  # else it may not be done here
        ways += ["file mounted", "directory mounted"]
    return {way: partial(_raced, way, processes, spends) for way in ways}


def _raced(way: str, processes: int, spends: int) -> Iterator[str]:
    affordable, half = processes * spends * 3 // 4, processes // 2
    expected = affordable
    for folder in ("data", "there"):
        os.mkdir(folder)
    Ledger.init(_LEDGER, PureDP(epsilon=ONE.epsilon * affordable, neighbours="replace-one"))
    if way == "hard link":
        os.link(_LEDGER, _SECOND[way])
        expected = 0  # nobody can tell which name is the right one
    elif way == "file mounted":
        Path(_SECOND[way]).touch()
        expected = min(affordable, (processes - half) * spends)  # of those who have the directory too
    elif way == "symbolic link":
        os.symlink("data", "soft")
    reports = together([partial(_spent, way if number < half else "", spends) for number in range(processes)])
    if way == "hard link":
        Path(_SECOND[way]).unlink()
    if None in reports:
        yield f"{reports.count(None)} processes failed"
    numbers = [number for report in reports for number in report or []]
    kept = [entry.number for entry in Ledger.open(_LEDGER).log() if entry.kind == "paid"]
    if sorted(numbers) != kept:
        yield "payments that a process made and the ledger does not have, or the reverse"
    if len(numbers) != expected:
        yield f"{len(numbers)} payments succeeded, {expected} were expected"
    yield from Ledger.open(_LEDGER).verify()


def _spent(way: str, spends: int) -> list[int]:
    """The entries that a process could pay for, by a name of the ledger."""
    if way in _MOUNTS and not _mounted(*_MOUNTS[way]):
        raise OSError("cannot be mounted")
    numbers: list[int] = []
    try:
        ledger = Ledger.open(_SECOND.get(way, _LEDGER))
        for _ in range(spends):
            numbers.append(ledger.pay(Request(loss=ONE, mechanism="laplace")).number)
    except BudgetError as refusal:  # for want of budget, or for its name: neither passes
        if refusal.code not in ("E301", "E310"):
            raise
    return numbers


def _mounted(source: str, target: str) -> bool:
    """Whether one could be mounted at the other, for this process alone, as a container has it."""
    try:
        return _bound(os.fsencode(os.path.abspath(source)), os.fsencode(os.path.abspath(target)))
    except OSError:
        return False


def _bound(source: bytes, target: bytes) -> bool:
    kernel, user, group = ctypes.CDLL(None, use_errno=True), os.getuid(), os.getgid()
    if not hasattr(kernel, "unshare"):
        return False
    if kernel.unshare(_OWN_MOUNTS):
        if kernel.unshare(_OWN_MOUNTS | _OWN_USERS):
            return False
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{user} {user} 1"),
            ("gid_map", f"{group} {group} 1"),
        ):
            Path("/proc/self", name).write_text(text)
    if kernel.mount(b"none", b"/", None, ctypes.c_ulong(_PRIVATE), None):
        return False
    return not kernel.mount(source, target, None, ctypes.c_ulong(_BIND), None)


# --- signals, one name, connections ---------------------------------------------------------------------


def signals() -> dict[str, Case]:
    """A signal in the middle of a release that is paid for: the file is written, and the entry done."""
    return {
        f"{where}, {name}": partial(paid.signalled, asked, serving=where == "workbench")
        for name, asked in paid.SIGNALS.items()
        for where in ("command line", *_workbench())
    }


def one_name() -> dict[str, Case]:
    """Several releases to one name: one pays."""
    cases: dict[str, Case] = {"workbench": paid.one_name_served} if _workbench() else {}
    return {
        **cases,
        "command line": paid.one_name,
        "command line, --force": partial(paid.one_name, "--force"),
    }


def connections() -> dict[str, Case]:
    """Requests that do not come to an end: a proper one is answered all the same."""
    return {
        name: partial(paid.unfinished, content)
        for name, content in (paid.UNFINISHED.items() if _workbench() else ())
    }


def _workbench() -> tuple[str, ...]:
    return ("workbench",) if find_spec("starlette") and find_spec("uvicorn") else ()


# --- tracebacks -----------------------------------------------------------------------------------------


def tracebacks() -> dict[str, Case]:
    """A release whose delivery fails on a full disk, by every mechanism: the matrix follows from no frame."""
    return {name: partial(elsewhere, partial(_recorded, name)) for name in MECHANISMS}


def _recorded(mechanism: str) -> list[str]:
    rows = [[(13 * i) % 97 + 0.5, (29 * i) % 89 + 0.25] for i in range(40)]
    rows[7] = list(_CELLS)
    Path("people.csv").write_text("a,b\n" + "".join(f"{a},{b}\n" for a, b in rows))
    exact: list[tuple[int, ...]] = []
    real = Gram.reveal_to_mechanism

    def noting(self: Gram) -> Any:
        made = real(self)
        exact.append(tuple(made))
        return made

    Gram.reveal_to_mechanism = noting  # type: ignore[method-assign]
    kind = MECHANISMS[mechanism].kinds[0]
    try:
        release("people.csv", schema=_PEOPLE, loss=LOSSES[kind], mechanism=mechanism, deliver=_to_a_full_disk)
    except Exception as failure:
        seen = Seen(failure, but=__file__)
    else:
        return ["the disk was not full"]
    finally:
        Gram.reveal_to_mechanism = real  # type: ignore[method-assign]
    found = ["no sum was noted"] if not exact else []
    if any(seen.matrix_follows(one) for one in exact):
        found.append("the matrix follows from the variables of the frames")
    if any(cell in seen.numbers or any(str(cell).encode() in text for text in seen.texts) for cell in _CELLS):
        found.append("a cell stands in a frame")
    return found


def _to_a_full_disk(made: Release) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, most))
    try:
        made.save("people.json")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))


# --- addresses ------------------------------------------------------------------------------------------


def addresses(shell: Shell) -> dict[str, Case]:
    """An address in another spelling: refused, without a file of that name, and no part of a password is printed."""
    return {spelling: partial(elsewhere, partial(_misspelt, shell, spelling)) for spelling in SPELLINGS}


def _misspelt(shell: Shell, spelling: str) -> list[str]:
    Path("people.csv").write_text("a,b\n1,2\n3,4\n")
    Path("people.toml").write_text(_PEOPLE.to_toml())
    found, loss = list[str](), ["--epsilon", "1", "--neighbours", "replace-one"]
    before = sorted(os.listdir())
    for password in ("".join(PIECES), "/".join(PIECES), "[".join(PIECES), " ".join(PIECES)):
        where = spelling.format(password)
        for words in (
            ["ledger", "init", where, *loss],
            ["ledger", "show", where],
            ["ledger", "verify", where],
            ["ledger", "show", *where.split()],
            ["check", "people.csv", "--schema", "people.toml", *loss, "--ledger", where],
            ["release", "people.csv", "--schema", "people.toml", *loss, "--ledger", where, "-o", "made.json"],
        ):
            code, out, err = shell.call(*words)
            told = " ".join(words[:2])
            if code not in (2, 3):
                found.append(f"{told}: exit code {code}")
            if "Traceback" in err or any(piece in out + err for piece in PIECES):
                found.append(f"{told}: a traceback, or a part of the password")
    return found + [f"a file was made: {name}" for name in sorted(os.listdir()) if name not in before]


# --- records --------------------------------------------------------------------------------------------


def readers() -> dict[str, Case]:
    """Hostile records in files of several layouts: one record touches one row, in its place."""
    return {
        f"{name}, {way}": partial(elsewhere, partial(_audited, name, way))
        for way in ROUTES
        for name in _LAYOUTS
    }


def _audited(name: str, way: str) -> list[str]:
    content, dialect = _LAYOUTS[name]
    Path(name).write_bytes(content)
    Path("people.toml").write_text(
        f'[file]\n{dialect}[columns.age]\nlower = 0\nupper = 100\n[columns.sex]\nlevels = ["F", "M"]\n'
    )
    found = audit_reader(name, schema=Schema.read("people.toml"), readers={way: ROUTES[way]}, more=30)
    return [] if found.passed else [str(found.violation)]
