"""Outputs of a mechanism on made-up tables, through the very code a release runs: draw, then answer.

Many independent draws on several processors: forked children, each with its own bits from the kernel.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcov.audit.neighbours import Pair
from privcov.mechanisms.base import Mechanism, Noise
from privcov.noise.randomness import Randomness, kernel
from privcov.privacy import Loss
from privcov.schema.grid import Grid
from privcov.summing.gram import Gram

Outputs = NDArray[Any]
"""Integers of upper triangles, one run a row: int64 where they fit, else Python integers. Floats are a fault."""
Source = Callable[[], Randomness]


@dataclass(frozen=True, kw_only=True)
class Sampler:
    """One mechanism at one loss on one grid. ``source`` is called anew for every batch, in the process that draws."""

    mechanism: Mechanism
    loss: Loss
    grid: Grid
    source: Source = kernel

    def is_additive(self) -> bool:
        """Whether the whole noise is drawn before the data: then one draw serves every table."""
        probe = self.mechanism.draw(loss=self.loss, grid=self.grid, randomness=self.source())
        return type(probe) is Noise

    def noise(self) -> Draw:
        """Draws of additive noise alone."""

        def some(count: int) -> Outputs:
            randomness = self.source()
            return stack(
                [
                    self.mechanism.draw(loss=self.loss, grid=self.grid, randomness=randomness).upper  # type: ignore[attr-defined]
                    for _ in range(count)
                ]
            )

        return some

    def answers(self, make_gram: Callable[[], Gram]) -> Draw:
        """Releases of one table."""

        def some(count: int) -> Outputs:
            randomness, gram = self.source(), make_gram()
            return stack(
                [
                    self.mechanism.draw(loss=self.loss, grid=self.grid, randomness=randomness).answer(gram)
                    for _ in range(count)
                ]
            )

        return some

    def both_sides(
        self, pairs: Sequence[Pair], runs: int, *, processes: int | None, progress: Progress | None
    ) -> list[tuple[Outputs, Outputs]]:
        """Outputs on both tables of every pair.

        ``runs`` draws in all. Additive noise is drawn once and added to every table: the confidence bounds of an
        audit hold together by a union bound, which does not mind that tables share draws. Other mechanisms are
        run on each table with its share of the runs.
        """
        if self.is_additive():
            (noise,) = gather([(self.noise(), runs)], processes=processes, progress=progress)
            return [(noise + pair.upper(0), noise + pair.upper(1)) for pair in pairs]
        each = max(2, runs // (2 * len(pairs)))
        tasks = [
            (self.answers(lambda p=pair, w=which: p.gram(w)), each)  # type: ignore[misc]
            for pair in pairs
            for which in (0, 1)
        ]
        found = gather(tasks, processes=processes, progress=progress)
        return [(found[2 * i], found[2 * i + 1]) for i in range(len(pairs))]


def stack(answers: Sequence[Any]) -> Outputs:
    """Triangles as one array: int64 where every integer is far from its end; floats where some are no integers."""
    made = np.array(answers, dtype=object)
    if any(value != int(value) for value in made.ravel().tolist()):
        return made.astype(np.float64)
    return made.astype(np.int64) if max(map(abs, made.ravel().tolist()), default=0) < 2**61 else made


Draw = Callable[[int], NDArray[Any]]
"""So many runs, as one array of that length."""
Progress = Callable[[int], object]
"""Called with how many runs are done since the last call."""

CHUNK = 250


def gather(
    tasks: Sequence[tuple[Draw, int]], *, processes: int | None = None, progress: Progress | None = None
) -> list[NDArray[Any]]:
    """The runs of every task, in order. A child that fails raises its error here.

    Children are forked, so a task may be any function; where there is no fork, everything runs in this process.
    """
    chunks = [(place, size) for place, (_, runs) in enumerate(tasks) for size in _sizes(runs)]
    workers = min(processes or _processors(), len(chunks)) if hasattr(os, "fork") else 1
    found: list[list[NDArray[Any]]] = [[] for _ in tasks]
    report = progress or (lambda _: None)
    if workers < 2:
        for place, size in chunks:
            found[place].append(tasks[place][0](size))
            report(size)
    else:
        for place, made in _forked(tasks, chunks, workers):
            found[place].append(made)
            report(len(made))
    return [np.concatenate(parts) if parts else np.empty((0, 0)) for parts in found]


def _processors() -> int:
    """Those this process may use, where the system says so."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _sizes(runs: int) -> list[int]:
    return [min(CHUNK, runs - start) for start in range(0, runs, CHUNK)]


def _forked(
    tasks: Sequence[tuple[Draw, int]], chunks: Sequence[tuple[int, int]], workers: int
) -> Iterator[tuple[int, NDArray[Any]]]:
    """Chunks as they come in, dealt out evenly beforehand."""
    context = multiprocessing.get_context("fork")
    pipes: list[Any] = []
    children = []
    for worker in range(workers):
        ours, theirs = context.Pipe(duplex=False)
        child = context.Process(target=_work, args=(tasks, chunks[worker::workers], theirs), daemon=True)
        child.start()
        theirs.close()
        pipes.append(ours)
        children.append(child)
    try:
        while pipes:
            ready: Any
            for ready in wait(pipes):
                message: Any = ready.recv()
                if message is None:
                    pipes.remove(ready)
                elif isinstance(message, Exception):
                    raise message
                else:
                    yield message
    finally:
        for child in children:
            if pipes:
                child.terminate()
            child.join()


def _work(tasks: Sequence[tuple[Draw, int]], chunks: Sequence[tuple[int, int]], pipe: Connection) -> None:
    try:
        for place, size in chunks:
            pipe.send((place, tasks[place][0](size)))
        pipe.send(None)
    except Exception as error:  # carried to the parent, which raises it
        pipe.send(error)
    finally:
        pipe.close()
