"""Dask: one task per fragment, on a running cluster or on processes started here for one job.

A worker that dies takes its task with it; Dask gives the task to another. Partial sums come to this process as
they are done and are released there at once.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from privcov.errors import InputError, ParameterError
from privcov.linalg.devices import cores
from privcov.schema import Schema
from privcov.summing.engines.base import (
    VERSION_OF_A_WORKER,
    AnyFragment,
    Engine,
    Work,
    attempt,
    check_versions,
    check_workers,
    missing,
)
from privcov.table import Table
from privcov.table.base import Answer
from privcov.table.clusters import asked_of_dask, dask_answers, joined_by_dask
from privcov.table.fragments import Fragment


@dataclass(frozen=True, kw_only=True)
class Dask(Engine):
    """A Dask cluster, or Dask processes started here for one job.

    Parameters
    ----------
    scheduler : str, optional
        The address of a cluster, such as "tcp://host:8786". By default processes are started here.
    workers : int, optional
        The number of processes started here, from 1 to 256. By default one per core. Not with a cluster.
    client : distributed.Client, optional
        A client that is open already, in place of an address.
    verify : float, default 0
        The share, from 0 to 1, of the fragments that this process reads again, to compare.

    Raises
    ------
    ParameterError
        The number of workers is out of range, or was given with a cluster (E213).

    Examples
    --------
    >>> from privcov.engines import Dask
    >>> Dask(scheduler="tcp://host:8786", verify=0.05).name
    'dask'
    """

    scheduler: str | None = None
    workers: int | None = None
    client: Any = None
    verify: float = 0

    name = "dask"

    def __post_init__(self) -> None:
        check_workers(self.workers)
        if self.workers is not None and (self.scheduler is not None or self.client is not None):
            raise ParameterError(
                "E213", "workers can be set only for a Dask started here; a cluster has its own workers."
            )

    def check(self, table: Table) -> None:
        super().check(table)
        try:
            import distributed  # noqa: F401
        except ImportError:
            raise missing("distributed", "dask") from None
        if self.client is not None or self.scheduler is not None:
            with (
                self._connected() as client
            ):  # neither a wrong address nor a bare worker must cost the budget
                check_versions(asked_of_dask(client, VERSION_OF_A_WORKER), self.name)

    def answers(self, work: Work, fragments: Sequence[AnyFragment]) -> Generator[Answer, None, None]:
        if not fragments:
            return
        with self._connected() as client:
            # Not pure: a result of an earlier job must not be taken for one of this job.
            waiting = client.map(partial(attempt, work), fragments, pure=False, retries=3)
            yield from dask_answers(client, waiting)

    def joined(
        self, work: Work, fragments: Sequence[Fragment], *, schema: Schema, parts: int
    ) -> Generator[Answer, None, None]:
        with self._connected() as client:
            yield from joined_by_dask(client, fragments, partial(attempt, work), schema=schema, parts=parts)

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        from distributed import Client, LocalCluster

        if self.client is not None:
            yield self.client
        elif self.scheduler is not None:
            try:
                client = Client(self.scheduler, set_as_default=False, timeout="20s")
            except (OSError, ValueError):
                raise InputError(
                    "E126", f"no Dask scheduler answers at {self.scheduler}.", "Check the address."
                ) from None
            with client:
                yield client
        else:
            count = self.workers or cores()
            with (
                LocalCluster(
                    n_workers=count, threads_per_worker=1, processes=True, dashboard_address=None
                ) as cluster,
                Client(cluster, set_as_default=False) as client,
            ):
                yield client
