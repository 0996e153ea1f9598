"""Threads of this process. Decoding and BLAS leave Python's lock, so two threads are nearly twice as fast."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from privcov.linalg.devices import CPU, Device, cores
from privcov.summing.engines.base import AnyFragment, Engine, Work, attempt, check_workers
from privcov.table.base import Answer


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
