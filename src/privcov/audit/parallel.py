"""Many independent draws on several processors: forked children, each with its own bits from the kernel."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
