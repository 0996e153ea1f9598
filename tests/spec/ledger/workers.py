"""Real processes for the tests: they are killed at random, die at a named point, or meet a full disk.

Run as a script, so that its forks come from a process that has nothing else in it. Prints JSON.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from contextlib import suppress

from racers import LOSS, fork

import privcov as pc
import privcov.publish.release as publish
import privcov.publish.sequence as sequence
from privcov.cli import main
from privcov.errors import BudgetError
from privcov.ledger import Ledger, Request
from privcov.ledger.store import Session
from privcov.noise.randomness import FirstBit, NoBits
from privcov.text import files

WORDS = [
    "--schema",
    "people.toml",
    "--epsilon",
    "0.01",
    "--neighbours",
    "replace-one",
    "--mechanism",
    "laplace",
]


def killed(where: str, kills: int, processes: int = 4) -> int:
    """Workers that pay and then write a file named after the entry; again and again one gets SIGKILL."""
    told, tell = os.pipe()

    def worker() -> int:
        child = fork()
        if child == 0:
            try:
                while True:
                    ledger = Ledger.open(where)
                    receipt = ledger.pay(Request(loss=LOSS, mechanism="laplace"))
                    files.write(f"{receipt.number}.release", "made\n", force=False)
                    ledger.done(receipt, digest="a" * 64, fingerprint="b" * 64)
                    os.write(tell, b".")
            finally:
                os._exit(1)
        return child

    chance = random.Random(7)
    workers = [worker() for _ in range(processes)]
    for _ in range(kills):
        os.read(told, 2)  # they get something done, then one dies at a moment of no importance to it
        time.sleep(chance.uniform(0, 0.02))
        victim = workers.pop(chance.randrange(processes))
        os.kill(victim, signal.SIGKILL)
        os.waitpid(victim, 0)
        workers.append(worker())
    for child in workers:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return kills + processes


def die(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def after(real, call: int = 1):
    """The real thing, and death right after its n-th call."""
    calls = []

    def wrapped(*args, **words):
        result = real(*args, **words)
        calls.append(1)
        if len(calls) == call:
            die()
        return result

    return wrapped


POINTS = {
    "before-the-payment-is-committed": lambda: setattr(Session, "write", after(Session.write)),
    "after-the-payment": lambda: setattr(sequence, "pay", after(sequence.pay)),
    "before-reading": lambda: setattr(publish, "sum_rows", die),
    "before-the-noise-is-added": lambda: setattr(publish, "answer", die),
    "before-the-file": lambda: setattr(files, "write", die),
    "while-the-file-is-written": lambda: setattr(os, "fsync", die),
    "before-the-file-has-its-name": lambda: setattr(os, "link", die),
    "after-the-file": lambda: setattr(Ledger, "done", die),
    "before-the-record-is-committed": lambda: setattr(Session, "write", after(Session.write, call=2)),
    "after-the-record": lambda: setattr(Ledger, "done", after(Ledger.done)),
}


def crash(where: str) -> dict[str, int]:
    """One release for each point, in a process that dies there; the signal each died of."""
    schema = pc.Schema.read("people.toml")
    with suppress(
        FirstBit
    ):  # imports what a release needs; a table read here would leave threads, which do not fork
        publish.release("people.csv", schema=schema, loss=LOSS, mechanism="laplace", randomness=NoBits())
    died = {}
    for point, prepare in POINTS.items():
        child = fork()
        if child == 0:
            prepare()
            sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - the process dies with it
            os._exit(main(["release", "people.csv", *WORDS, "--ledger", where, "-o", f"{point}.json"]))
        died[point] = os.WTERMSIG(os.waitpid(child, 0)[1])
    return died


def full_disk(where: str) -> str:
    """What a payment says when the ledger's file may not grow."""
    import resource

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    ledger = Ledger.open(where)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, 1))
    try:
        return str(ledger.pay(Request(loss=LOSS, mechanism="laplace")))
    except BudgetError as refusal:
        return str(refusal)


if __name__ == "__main__":
    task, place, *numbers = sys.argv[1:]
    signal.alarm(550)
    Ledger.open(place)  # whatever is imported late is imported before the forks
    print(json.dumps(globals()[task](place, *map(int, numbers))))
