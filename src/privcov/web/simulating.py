"""Forecasts that must be simulated, made by another process while the page goes on.

A forecast is a function of public parameters. What the page wants now replaces what it wanted before, so that a
slider that is being moved leaves no queue behind.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import tempfile
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.pool import Pool
from threading import Condition, Thread

from privcov.errors import ParameterError
from privcov.planning import cache
from privcov.planning.candidates import Refusal, candidate
from privcov.planning.forecast import Forecast, forecast
from privcov.privacy import Loss
from privcov.schema.grid import Grid

MOST_REMEMBERED = 20_000


@dataclass(frozen=True, kw_only=True)
class Task:
    """One forecast: a mechanism, what it promises, and the table it is for."""

    mechanism: str
    loss: Loss
    grid: Grid
    rows: int
    spectrum: tuple[float, ...] | None = None


def work(task: Task) -> Forecast | Refusal:
    """The forecast, or why the mechanism cannot be had."""
    try:
        able = candidate(task.mechanism, loss=task.loss, grid=task.grid)
        return forecast(
            able.mechanism, loss=able.loss, grid=task.grid, rows=task.rows, spectrum=task.spectrum
        )
    except ParameterError as error:
        return Refusal(name=task.mechanism, reason=error.sentence)


class Simulator:
    """A process that works through what is wanted, in order, and remembers what it found."""

    def __init__(self) -> None:
        self._known: dict[Task, Forecast | Refusal] = {}
        self._wanted: list[Task] = []
        self._news = Condition()
        self._doing: Task | None = None
        self._pool: Pool | None = None
        self._closed = False
        if cache.directory() is None:  # the processes share what they find, if only for as long as they run
            place = tempfile.mkdtemp(prefix="privcov-serve-")
            os.environ["PRIVCOV_CACHE"] = place
            atexit.register(shutil.rmtree, place, ignore_errors=True)

    def want(self, tasks: list[Task]) -> None:
        """These next, in this order, and nothing that was wanted before."""
        with self._news:
            self._wanted = [task for task in tasks if task not in self._known and task != self._doing]
            if self._wanted and self._pool is None and not self._closed:
                self._pool = get_context("spawn").Pool(1, initializer=_quiet)
                Thread(target=self._run, daemon=True, name="simulator").start()
            self._news.notify()

    def found(self, task: Task) -> Forecast | Refusal | None:
        """What a task gave; None where it is not done."""
        return self._known.get(task)

    def close(self) -> None:
        """End the process."""
        with self._news:
            self._closed, self._wanted = True, []
            self._news.notify()
        if self._pool is not None:
            self._pool.terminate()

    def _run(self) -> None:
        assert self._pool is not None
        while True:
            with self._news:
                self._news.wait_for(lambda: bool(self._wanted) or self._closed)
                if self._closed:
                    return
                task = self._doing = self._wanted.pop(0)
            try:
                made: Forecast | Refusal = self._pool.apply(work, (task,))
            except Exception:  # the pool was ended, or the forecast failed; it is not tried again
                made = Refusal(name=task.mechanism, reason="the simulation of its error failed.")
            with self._news:
                if len(self._known) >= MOST_REMEMBERED:
                    self._known.clear()
                self._known[task] = made


def _quiet() -> None:
    """Ctrl-C is for the server, which ends this process; and the page goes before it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "nice"):
        os.nice(10)
