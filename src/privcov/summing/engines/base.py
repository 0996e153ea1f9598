"""What an engine is: something that calls one function on every fragment of a table, somewhere, and hands back bytes.

Scheduling, retries and lost workers are the engine's own business. Ours is that every fragment is counted once:
results are keyed by the fragment's place in the plan, a second result for a place is dropped, and a place without
a result is an error. Sums are exact integers, so which attempt delivered a result cannot matter.

Threads of this process. Decoding and BLAS leave Python's lock, so two threads are nearly twice as fast.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property, partial
from threading import Lock
from typing import ClassVar, Protocol

from privcov.errors import InputError, InternalError, ParameterError
from privcov.linalg.devices import CPU, Device, cores
from privcov.noise.randomness import kernel
from privcov.schema import Schema
from privcov.table import Table
from privcov.table.base import Answer
from privcov.table.fragments import Arrived, Fragment, Held, bundled
from privcov.table.kept import Shelf, Shelved
from privcov.table.shuffling import Joined, parts_of
from privcov.version import __version__

MOST_WORKERS = 256
AnyFragment = Fragment | Held | Arrived | Joined | Shelved
Result = tuple[int, bytes]
"""How many rows a fragment had, and what came of them."""
Report = Callable[[int, int, int | None], object]
"""Called inside a process with a fragment's place, and the rows and bytes of it that are done."""
Progress = Callable[[int, int | None, int | None], object]
"""Called with the rows done so far and, where the table is files, the bytes done and the bytes in all."""


class Work(Protocol):
    """What a worker does with a fragment. It travels to other processes: a plain function and its arguments."""

    def __call__(self, fragment: AnyFragment, /, *, report: Report | None = None) -> Result: ...


class Engine(ABC):
    """Where the fragments of a table are read and summed: ``Local``, ``Spark`` or ``Dask``.

    Attributes
    ----------
    name : str
        "local", "spark" or "dask".
    in_process : bool
        Whether work happens in this process, so that it can report on its way.
    device : Device
        What multiplies the rows, where they are read.
    verify : float
        The share, from 0 to 1, of fragments that this process reads again, to compare with what a worker sent.

    Examples
    --------
    >>> from privcov.engines import Engine, Local
    >>> isinstance(Local(), Engine)
    True
    """

    name: ClassVar[str]
    in_process: ClassVar[bool] = False
    device: Device = CPU
    verify: float = 0

    def check(self, table: Table) -> None:
        """Refuse a table that this engine cannot read. Nothing is started for it.

        Parameters
        ----------
        table : Table
            The opened table.

        Raises
        ------
        ParameterError
            The table or the device lives elsewhere, or ``verify`` is out of range (E213).
        InputError
            A cluster does not answer, or its workers have another version (E1xx).
        """
        if table.home is None and table.records() is None and not self.in_process:
            raise ParameterError(
                "E213",
                f"the engine {self.name} reads files, but this table is in the memory of this process.",
                "Give paths, or leave the engine at local.",
            )
        if table.home not in (None, self.name) and not self.in_process:
            raise ParameterError(
                "E213",
                f"this table is in {table.home}, not in {self.name}.",
                "Leave the engine out: the table is summed where it is.",
            )
        if table.home is not None and self.device != CPU:
            raise ParameterError(
                "E213",
                f"this table is in {table.home}, but the device {self.device.name} is one of this machine.",
                "Leave the device out: the table is summed where it is.",
            )
        if not 0 <= self.verify <= 1:
            raise ParameterError("E213", f"verify must be a share from 0 to 1, got {self.verify}.")
        if self.verify and table.home is not None:
            raise ParameterError(
                "E213",
                f"the rows in {table.home} are not read on this machine, so none of them can be verified.",
                "Give files, or leave verify out.",
            )
        if self.verify and table.schema.person is not None:
            raise ParameterError(
                "E213",
                "workers exchange rows to gather each person's rows, so this process cannot verify their sums.",
                "Leave verify out.",
            )
        check_versions(table.asked_at_home(VERSION_OF_A_WORKER), str(table.home))

    @abstractmethod
    def answers(self, work: Work, fragments: Sequence[AnyFragment]) -> Generator[Answer, None, None]:
        """Yield ``attempt(work, fragment)`` for every fragment, in any order, perhaps more than once.

        Parameters
        ----------
        work : Work
            What a worker does with a fragment.
        fragments : sequence of fragments
            The parts of the table.

        Yields
        ------
        Answer
            The place of a fragment and what came of it.
        """

    def joined(
        self, work: Work, fragments: Sequence[Fragment], *, schema: Schema, parts: int
    ) -> Generator[Answer, None, None]:
        """Yield an answer for every part, after a shuffle in which all records of a person come into one part.

        Parameters
        ----------
        work : Work
            What a worker does with the persons of a part.
        fragments : sequence of fragments
            The parts of files that hold the records.
        schema : Schema
            What the table was opened with; it names the id.
        parts : int
            How many parts the shuffle makes.

        Yields
        ------
        Answer
            The place of a part, from 0, and what came of it.
        """
        raise NotImplementedError


def gather(
    table: Table, work: Work, engine: Engine, progress: Progress | None
) -> Generator[Result, None, None]:
    """The result of every fragment of a table, once each.

    A count that metadata contradicts is an error, and so is a result that this process does not get when it reads
    the fragment itself: it does so for the share that the engine verifies, chosen once the result is there.
    """
    meter = Meter(progress, table.total_bytes)
    places: Sequence[int] | None
    planned: dict[int, AnyFragment] = {}
    if table.home is not None:
        places = None if table.parts is None else range(table.parts)
        answers = table.answers_at_home(partial(attempt, work))
    elif table.schema.person is not None and not engine.in_process:
        spread = bundled(table.records() or ())
        places = range(parts_of(len(spread)))
        answers = engine.joined(work, spread, schema=table.schema, parts=len(places))
    else:
        fragments = table.fragments()
        places = [fragment.place for fragment in fragments]
        planned = {fragment.place: fragment for fragment in fragments}
        here = partial(work, report=meter.saw) if engine.in_process and progress is not None else work
        answers = engine.answers(here, fragments)
    with closing(answers):
        for place, rows, sent in once_each(answers, places):
            fragment = planned.get(place)
            if fragment is not None and fragment.rows not in (None, rows):
                raise InternalError
            if fragment is not None and _is_chosen(engine.verify) and work(fragment) != (rows, sent):
                raise InternalError
            meter.saw(place, rows, 0 if fragment is None else fragment.bytes)
            yield rows, sent


def _is_chosen(share: float) -> bool:
    """With this probability."""
    return share > 0 and int(kernel().words(1)[0]) < share * 2**64


def attempt(work: Work, fragment: AnyFragment) -> Answer:
    """Do the work where the fragment is, and never raise: engines log what a worker raises, and it may be a value.

    An ``InputError`` is about public facts and is told; of anything else only the fact that it happened is.
    """
    try:
        rows, made = work(fragment)
        return fragment.place, rows, b"+" + made
    except InputError as error:
        return fragment.place, 0, b"-" + json.dumps([error.code, error.sentence, error.remedy]).encode()
    except Exception:
        return fragment.place, 0, b"!"


def once_each(answers: Iterable[Answer], places: Sequence[int] | None) -> Generator[Answer, None, None]:
    """Each place once, with its error raised if it failed; and no place of the plan left out.

    >>> list(once_each(iter([(0, 5, b"+a"), (1, 6, b"+b"), (0, 5, b"+a")]), [0, 1]))
    [(0, 5, b'a'), (1, 6, b'b')]
    >>> list(once_each(iter([(0, 5, b"+a")]), [0, 1]))
    Traceback (most recent call last):
    privcov.errors.InternalError: E900 internal error; the budget stays charged and nothing was released.
    """
    done: set[int] = set()
    planned = None if places is None else set(places)
    for place, rows, sent in answers:
        if place in done:  # a task that was retried, or run twice to be quicker
            continue
        if sent[:1] == b"-":
            raise InputError(*json.loads(sent[1:]))
        if sent[:1] != b"+" or (planned is not None and place not in planned):
            raise InternalError()
        done.add(place)
        yield place, rows, sent[1:]
    if planned is not None and done != planned:
        raise InternalError()


class Meter:
    """Rows and bytes done, from several threads, each of which knows only its own fragment."""

    def __init__(self, progress: Progress | None, total_bytes: int | None) -> None:
        self._progress = progress
        self._total = total_bytes
        self._lock = Lock()
        self._done: dict[int, tuple[int, int]] = {}
        self._rows = self._bytes = 0

    def saw(self, place: int, rows: int, read: int | None) -> None:
        """So many rows and bytes of a fragment are done; said again with more, or with the same."""
        if self._progress is None:
            return
        with self._lock:
            before = self._done.get(place, (0, 0))
            self._done[place] = rows, read or 0
            self._rows += rows - before[0]
            self._bytes += (read or 0) - before[1]
            self._progress(self._rows, None if self._total is None else self._bytes, self._total)


def missing(library: str, extra: str) -> ParameterError:
    """An engine that is not installed."""
    return ParameterError(
        "E214", f"the engine needs {library}, which is not installed.", f"Run pip install 'privcov[{extra}]'."
    )


VERSION_OF_A_WORKER = "__import__('privcov').__version__"
"""What a worker evaluates to tell its version: a text, since a function of ours cannot be sent where we are not."""


def check_versions(found: Sequence[object], name: str) -> None:
    """Refuse workers of a cluster that have another version than this process, or none: they could not do the work.

    >>> check_versions([__version__, ImportError()], "dask")
    Traceback (most recent call last):
    privcov.errors.InputError: E128 1 of 2 workers of dask do not have privcov 0.1.0. Install it on all workers.
    """
    wrong = sum(version != __version__ for version in found)
    if wrong:
        raise InputError(
            "E128",
            f"{wrong} of {len(found)} workers of {name} do not have privcov {__version__}.",
            "Install it on all workers.",
        )


def check_workers(workers: int | None) -> None:
    """Refuse a number of workers that cannot be meant."""
    if workers is not None and not 1 <= workers <= MOST_WORKERS:
        raise ParameterError("E213", f"workers must be from 1 to {MOST_WORKERS}, got {workers}.")


@dataclass(frozen=True, kw_only=True)
class Local(Engine):
    """Threads of this process: the default engine.

    Parameters
    ----------
    workers : int, optional
        The number of threads, from 1 to 256. By default one per core that this process may use.
    device : Device, default CPU
        What multiplies the rows: this processor, or a GPU, to the same bits.

    Raises
    ------
    ParameterError
        The number of threads is out of range (E213).

    Examples
    --------
    >>> from privcov.engines import Local
    >>> Local(workers=2).workers
    2
    """

    workers: int | None = None
    device: Device = CPU

    name = "local"
    in_process = True

    def __post_init__(self) -> None:
        check_workers(self.workers)

    def answers(self, work: Work, fragments: Sequence[AnyFragment]) -> Generator[Answer, None, None]:
        # One thread keeps a GPU busy, and a sum for each of many would not fit it.
        usual = cores() if self.device == CPU else 1
        workers = min(usual if self.workers is None else self.workers, len(fragments))
        if workers < 2:
            for fragment in fragments:
                yield attempt(work, fragment)
            return
        waiting = list(reversed(fragments))
        with ThreadPoolExecutor(workers) as pool:
            running: set[Future[Answer]] = set()
            try:
                while True:
                    # No more in flight than threads: a table of many columns must not pile up partial sums.
                    while waiting and len(running) < workers:
                        running.add(pool.submit(attempt, work, waiting.pop()))
                    if not running:
                        return
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    for future in done:
                        yield future.result()
            finally:
                for future in running:
                    future.cancel()


class _Keeping(Local):
    """Threads of this process that keep what they read for the next reading."""

    @cached_property
    def _shelf(self) -> Shelf:
        return Shelf()

    def answers(self, work: Work, fragments: Sequence[AnyFragment]) -> Generator[Answer, None, None]:
        kept = [Shelved(fragment=f, shelf=self._shelf) if isinstance(f, Fragment) else f for f in fragments]
        return super().answers(work, kept)


def keeping(engine: Engine) -> Engine:
    """An engine for several readings of the same columns of one table: threads of this process keep cells in between.

    It holds rows: it is for work within ``without_reasons`` alone. Any other engine reads each time.
    """
    return _Keeping(workers=engine.workers, device=engine.device) if type(engine) is Local else engine
