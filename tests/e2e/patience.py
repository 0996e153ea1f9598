"""How long tests wait, and in what they measure speed.

A wait ends when what is waited for has come. Its limit is an alarm against waiting for ever, and generous: a busy
machine is no fault of the program. What a test says about speed it says in CPU time, which other programs do not add
to.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable

PATIENCE = 600
"""Seconds after which something that should come at once is given up."""


def until(holds: Callable[[], bool], *, pause: float = 0.05) -> None:
    """Ask again until it holds."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(pause)


def cpu_of_children() -> float:
    """The CPU seconds of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
