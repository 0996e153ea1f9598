"""Real processes that race for a budget, through one name of a ledger or several; imports no more than a ledger needs.

Run as a script, so that its forks come from a process that has nothing else in it. Prints JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

from privcov.errors import BudgetError
from privcov.ledger import Ledger, Request
from privcov.privacy import PureDP

LOSS = PureDP(epsilon="0.01", neighbours="replace-one")


def fork() -> int:
    """A child that cannot outlive its test."""
    child = os.fork()
    if child == 0:
        signal.alarm(500)
    return child


def pay(where: str) -> int:
    return Ledger.open(where).pay(Request(loss=LOSS, mechanism="laplace")).number


def race(where: str, processes: int, groups: int = 1) -> list[list[int | str]]:
    """Everyone pays until refused: the numbers of the entries that each got, and what the refusal said.

    ``where`` may be several names, one to a line, taken in turn; ``groups`` of such scripts start together.
    """
    places = where.split("\n")
    start_read, start_write = os.pipe()
    reports = []
    for number in range(processes):
        read, write = os.pipe()
        if fork() == 0:
            os.close(start_write)
            os.read(start_read, 1)  # returns when the parent closes its end: all start together
            numbers = []
            try:
                while True:
                    numbers.append(pay(places[number % len(places)]))
            except BudgetError as refusal:
                os.write(write, json.dumps([*numbers, str(refusal)]).encode())
            os._exit(0)
        os.close(write)
        reports.append(read)
    Path(f"ready-{os.getpid()}").touch()
    while len([*Path().glob("ready-*")]) < groups:
        time.sleep(0.002)
    os.close(start_write)
    return [json.loads(os.read(read, 2**16) or b"null") for read in reports]


if __name__ == "__main__":
    signal.alarm(550)
    with suppress(BudgetError):
        Ledger.open(sys.argv[1].split("\n")[0])  # whatever is imported late is imported before the forks
    print(json.dumps(race(sys.argv[1], *map(int, sys.argv[2:]))))
