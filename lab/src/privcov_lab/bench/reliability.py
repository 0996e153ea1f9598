"""What happens when things go wrong: races, kills, full disks, hostile files. Every figure must be zero faults.

Real processes, real SIGKILL, real files. Many processes on one ledger; releases killed at random moments; disks that
are full or read-only; damaged and hostile inputs to every command that reads a file; neighbouring tables, compared for
anything but the release itself that could tell them apart; and attacks that once succeeded (``attacks``).
"""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from privcov.errors import BudgetError
from privcov.ledger import Ledger, Request
from privcov.privacy import PureDP
from privcov.releases.loading import load
from privcov.report.tables import table
from privcov_lab.bench import attacks, hostile
from privcov_lab.bench.hostile import SCHEMA, Chance, Corpus, Shell
from privcov_lab.bench.limited import elsewhere, fork, together

SPEND = PureDP(epsilon="0.01", neighbours="replace-one")
SIZES = (0, 1, 100, 500, 1000, 4096, 20_000, 40_000, 70_000)
"""How large a file may grow before the disk is full."""
PARTS = 13
RELEASE = ["--schema", "people.toml", "--epsilon", "0.01", "--neighbours", "replace-one"]


def run(
    main: Callable[[list[str]], int],
    *,
    processes: int = 8,
    spends: int = 250,
    kills: int = 200,
    inputs: int = 10_000,
    sizes: Sequence[int] = SIZES,
    cases: int | None = None,
    seed: int = 1,
    step: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Every part in turn, each in a directory of its own, with the command line ``main``; ``PARTS`` steps.

    Of the attacks, so many ``cases`` of each part are tried, evenly spread over its list; all where it is not said.
    """
    results, shell = [], Shell(main)
    parts: list[Callable[[], dict[str, Any]]] = [
        lambda: race(processes, spends),
        lambda: killed(shell, kills, seed),
        lambda: disks(shell, sizes),
        lambda: hostile.fuzz(shell, inputs, seed),
        lambda: hostile.lies(shell, inputs),
        lambda: elsewhere(lambda: hostile.neighbours(shell)),
        *(
            partial(attacked, part, *told, most=cases)
            for part, told in attacks.parts(shell, processes=processes, spends=spends).items()
        ),
    ]
    for part in parts:
        start = time.monotonic()
        with _home():
            results.append({**part(), "seconds": round(time.monotonic() - start, 1)})
        step()
    return {"bench": "reliability", "results": results, "faults": sum(r["faults"] for r in results)}


def render(result: dict[str, Any]) -> str:
    """One line a part."""
    lines = [[r["part"], r["what"], f"{r['seconds']:.0f} s", str(r["faults"])] for r in result["results"]]
    told = [f"{r['part']}: {line}" for r in result["results"] for line in r.get("found", [])[:10]]
    return "\n".join([table(["part", "what was seen", "time", "faults"], lines, left=2), *told])


def attacked(part: str, what: str, cases: dict[str, attacks.Case], *, most: int | None) -> dict[str, Any]:
    """Some or all cases of a list of attacks, each in a directory of its own."""
    names, found = list(cases), list[str]()
    count = len(names) if most is None else min(most, len(names))
    for name in (names[len(names) * number // count] for number in range(count)):
        with _home():
            try:
                found += [f"{name}: {fault}" for fault in cases[name]()]
            except Exception as reason:  # of this bench, or of a process that it watches: it counts
                found.append(f"{name}: {type(reason).__name__} {reason}")
    return {
        "part": part,
        "what": f"{count} of {len(names)} {what}",
        "tried": count,
        "faults": len(found),
        "found": found,
    }


def race(processes: int, spends: int) -> dict[str, Any]:
    """Everyone tries to pay ``spends`` times for a budget of three quarters of that in all."""
    affordable = processes * spends * 3 // 4
    Ledger.init("race.ledger", PureDP(epsilon=SPEND.epsilon * affordable, neighbours="replace-one"))

    def spend() -> list[int]:
        ledger, numbers = Ledger.open("race.ledger"), []
        for _ in range(spends):
            try:
                numbers.append(ledger.pay(Request(loss=SPEND, mechanism="laplace")).number)
            except BudgetError as refusal:
                if refusal.code != "E301":
                    raise
        return numbers

    start = time.monotonic()
    reports = together([spend] * processes)
    rate = processes * spends / (time.monotonic() - start)
    paid = [number for numbers in reports for number in numbers or []]
    kept = [entry.number for entry in Ledger.open("race.ledger").log() if entry.kind == "paid"]
    found = []
    if None in reports:
        found.append(f"{reports.count(None)} processes failed")
    if len(paid) != affordable:
        found.append(f"{len(paid)} payments succeeded, {affordable} were affordable")
    if sorted(paid) != kept:
        found.append("payments that a process made and the ledger does not have, or the reverse")
    found += Ledger.open("race.ledger").verify()
    return {
        "part": "race",
        "what": f"{processes} × {spends} payments: {len(paid)} accepted of {affordable} affordable, {rate:.0f}/s",
        "accepted": len(paid),
        "affordable": affordable,
        "per_second": rate,
        "faults": len(found),
        "found": found,
    }


def killed(shell: Shell, kills: int, seed: int) -> dict[str, Any]:
    """Releases that pay a ledger, killed at a random moment; after each the books must balance."""
    elsewhere(lambda: Corpus.write(shell))
    Ledger.init("kill.ledger", PureDP(epsilon=10, neighbours="replace-one"))
    chance, found, whole = Chance(seed), list[str](), 0.05

    def make(number: int) -> None:
        os._exit(
            shell.call("release", "people.csv", *RELEASE, "--ledger", "kill.ledger", "-o", f"{number}.json")[
                0
            ]
        )

    for number in range(kills):
        start = time.monotonic()
        child = fork(lambda number=number: make(number))  # type: ignore[misc]
        if number < 3:  # learn how long a whole one takes
            os.waitpid(child, 0)
            whole = max(whole, time.monotonic() - start)
        else:
            time.sleep(chance.up_to(1.1 * whole))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        found += _books(number)
    files = list(Path().glob("[0-9]*.json"))
    torn = sum(map(_is_torn, files))
    finished = len(files) - torn
    burned = Ledger.open("kill.ledger").balance().burned
    return {
        "part": "kill -9",
        "what": f"{kills} releases killed at random: {finished} had finished, {burned} were paid and lost, {torn} torn",
        "finished": finished,
        "burned": burned,
        "torn": torn,
        "faults": len(found),
        "found": found,
    }


def _books(number: int) -> Iterator[str]:
    """What is wrong after a kill: a broken chain, a release nobody paid for, half a file."""
    ledger = Ledger.open("kill.ledger")
    yield from ledger.verify()
    payments = sum(entry.kind == "paid" for entry in ledger.log())
    files = list(Path().glob("[0-9]*.json"))
    if len(files) > payments:
        yield f"{len(files)} releases and {payments} payments"
    if _is_torn(newest := Path(f"{number}.json")):
        yield f"{newest} is torn"


def _is_torn(path: Path) -> bool:
    """Whether a file is there and is not a whole release."""
    if not path.exists():
        return False
    try:
        load(path)
    except Exception:
        return True
    return False


def disks(shell: Shell, sizes: Sequence[int]) -> dict[str, Any]:
    """A disk that fills up at every possible size of file, and a directory nobody may write to."""
    elsewhere(lambda: Corpus.write(shell))
    found, tried, paid_before = list[str](), 0, 0
    Ledger.init("disk.ledger", PureDP(epsilon=10, neighbours="replace-one"))
    for limit in sizes:
        for number in range(2):
            name = f"{limit}-{number}.json"
            code, told = _limited(
                shell, limit, "release", "people.csv", *RELEASE, "--ledger", "disk.ledger", "-o", name
            )
            tried += 1
            ledger = Ledger.open("disk.ledger")
            payments = sum(entry.kind == "paid" for entry in ledger.log())
            found += [f"at {limit} bytes: {problem}" for problem in ledger.verify()]
            found += _said(f"at {limit} bytes", code, told, allowed=(0, 2, 3))
            if Path(name).exists():
                load(name)
                if payments == paid_before:
                    found.append(f"at {limit} bytes: a release without a payment")
            paid_before = payments
    found += _read_only(shell)
    return {
        "part": "disks",
        "what": f"{tried} releases on a disk that fills up, 2 in a read-only directory",
        "faults": len(found),
        "found": found,
    }


def _read_only(shell: Shell) -> Iterator[str]:
    os.mkdir("locked")
    Ledger.init("locked/r.ledger", PureDP(epsilon=1, neighbours="replace-one"))
    os.chmod("locked", 0o555)
    os.chmod("locked/r.ledger", 0o444)
    for words in (
        ["release", "people.csv", *RELEASE, "-o", "locked/out.json"],
        ["release", "people.csv", *RELEASE, "--ledger", "locked/r.ledger", "-o", "free.json"],
    ):
        code, told = _as_nobody(shell, *words)
        yield from _said("read-only", code, told, allowed=(2, 3))
    if Path("locked/out.json").exists() or Path("free.json").exists():
        yield "a release was written where it could not be paid for or kept"


def _said(where: str, code: int, told: str, *, allowed: tuple[int, ...]) -> Iterator[str]:
    if code not in allowed or "Traceback" in told:
        yield f"{where}: exit code {code}: {told.strip()[-200:]}"


def _limited(shell: Shell, limit: int, *words: str) -> tuple[int, str]:
    """A command in a process whose files may not grow beyond a limit, as on a disk that is full."""

    def with_limit() -> tuple[int, str]:
        import resource

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        code, out, err = shell.call(*words)
        return code, out + err

    return _answer(with_limit)


def _as_nobody(shell: Shell, *words: str) -> tuple[int, str]:
    """A command in a process that has no special rights."""
    os.chmod(".", 0o777)

    def without_rights() -> tuple[int, str]:
        shell.call(*words[:-1], "warm.json")  # modules are imported while they may be read
        if os.getuid() == 0:
            os.setgid(65534)
            os.setuid(65534)
        code, out, err = shell.call(*words)
        return code, out + err

    return _answer(without_rights)


def _answer(work: Callable[[], tuple[int, str]]) -> tuple[int, str]:
    try:
        code, told = elsewhere(work)
    except RuntimeError:
        return -1, "the process died"
    return int(code), str(told)


@contextmanager
def _home() -> Iterator[None]:
    """A fresh working directory, gone afterwards."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory(prefix="privcov-reliability-") as place:
        os.chdir(place)
        Path("people.toml").write_text(SCHEMA)
        try:
            yield
        finally:
            os.chdir(before)
