"""Work in child processes that may use so much processor time and memory, and no more.

A signal handler of Python does not run while one long operation of C does, and a process that asks for all memory
takes its neighbours with it. So the limits are the kernel's: a child that exceeds one dies, is reported, and another
goes on with the next case.
"""

from __future__ import annotations

import json
import math
import os
import resource
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

ROOM = 4 * 2**30
"""Bytes of address space beyond what a child starts with, where it ends; what counts is the memory it touches."""
PATIENCE = 120.0
"""Seconds on the clock for one case: one that waits uses no processor time."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What one case made, as JSON values, and what it cost."""

    case: int
    made: Any
    """None where the child died."""
    seconds: float
    """Of processor time."""
    megabytes: float
    """By which the child's peak of memory grew."""
    died: str = ""
    """Why there is nothing: the signal that ended the child."""


def each(work: Callable[[int], Any], count: int, *, seconds: float) -> Iterator[Outcome]:
    """What ``work`` makes of the cases 0, 1, …, in children forked from here, with so many seconds each.

    The process that calls this must have no threads: a child forked beside one may wait for a lock for ever.

    >>> [outcome.made for outcome in each(lambda case: case + 1, 3, seconds=5)]
    [1, 2, 3]
    """
    done = 0
    while done < count:
        for outcome in _batch(work, done, count, seconds):
            yield outcome
            done = outcome.case + 1


def fork(work: Callable[[], None]) -> int:
    """The number of a child that does the work and ends, whatever happens."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        return child
    try:
        work()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def elsewhere(work: Callable[[], Any]) -> Any:
    """What a forked process makes.

    One that forks must never read a table itself: readers start threads, and a child forked beside threads may wait
    for ever for a lock that one of them holds.
    """
    (made,) = together([lambda: [work()]])
    if made is None:
        raise RuntimeError("a process of this bench died")
    return made[0]


def together(works: Sequence[Callable[[], Any]]) -> list[Any]:
    """What each of some works made, in a forked process for each, all started at once; None for one that died."""
    ready, go = os.pipe()
    reports = []
    for work in works:
        read, write = os.pipe()

        def tell(work: Callable[[], Any] = work, write: int = write) -> None:
            os.close(go)
            os.read(ready, 1)  # returns when the parent closes its end
            with os.fdopen(write, "w") as out:
                json.dump(work(), out)
            os._exit(0)

        child = fork(tell)
        os.close(write)
        reports.append((child, read))
    os.close(go)
    os.close(ready)
    made = []
    for child, read in reports:
        with os.fdopen(read) as told:
            text = told.read()
        os.waitpid(child, 0)
        made.append(json.loads(text) if text else None)
    return made


def _batch(work: Callable[[int], Any], first: int, count: int, seconds: float) -> Iterator[Outcome]:
    """The cases from ``first`` on that one child comes to, the last of which may have ended it."""
    read, write = os.pipe()

    def tell() -> None:
        os.close(read)
        _limit_memory()
        with os.fdopen(write, "w") as out:
            for case in range(first, count):
                out.write(json.dumps(_measured(work, case, seconds)) + "\n")
                out.flush()
        os._exit(0)

    child, expected = fork(tell), first
    os.close(write)
    try:
        for line in _lines(read):
            yield Outcome(case=expected, **json.loads(line))
            expected += 1
    finally:
        os.close(read)
        if expected < count:
            os.kill(child, signal.SIGKILL)  # one that has ended already is still there to be asked how
        _, status = os.waitpid(child, 0)
    if expected < count:
        number = os.waitstatus_to_exitcode(status)
        why = signal.Signals(-number).name if number < 0 else f"exit code {number}"
        yield Outcome(case=expected, made=None, seconds=math.nan, megabytes=math.nan, died=why)


def _lines(read: int) -> Iterator[bytes]:
    """Whole lines from a pipe, until it ends or nothing comes for too long."""
    rest = b""
    while select.select([read], [], [], PATIENCE)[0] and (part := os.read(read, 2**16)):
        *lines, rest = (rest + part).split(b"\n")
        yield from lines


def _measured(work: Callable[[int], Any], case: int, seconds: float) -> dict[str, Any]:
    start, peak = time.process_time(), _peak()
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(start + seconds) + 1, hard))
    made = work(case)
    return {"made": made, "seconds": time.process_time() - start, "megabytes": _peak() - peak}


def _peak() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used / (1e6 if sys.platform == "darwin" else 1e3)


def _limit_memory() -> None:
    """Threads reserve address space that they never touch: room for those of every core is added."""
    if sys.platform != "linux":  # where the limit is not kept, or there is no saying what is used already
        return
    with open("/proc/self/statm") as sizes:
        used = int(sizes.read().split()[0]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = used + ROOM + 100 * 2**20 * (os.cpu_count() or 1)
    resource.setrlimit(resource.RLIMIT_AS, (most if hard < 0 else min(most, hard), hard))
