"""Spark: one task per fragment; partial sums are collected in this process, a wave of tasks at a time.

No accumulators: Spark adds to them again when a task is retried. A task's result is collected once, and keyed.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import sys
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
from privcov.table.clusters import asked_of_spark, is_here, joined_by_spark, spark_answers
from privcov.table.fragments import Fragment
from privcov.table.shuffling import spread


@dataclass(frozen=True, kw_only=True)
class Spark(Engine):
    """A Spark cluster, or a Spark started here for one job.

    Parameters
    ----------
    master : str, optional
        The address of a cluster, such as "spark://host:7077". By default a Spark is started here.
    workers : int, optional
        The number of threads of a Spark started here, from 1 to 256. By default one per core. Not with a cluster.
    session : pyspark.sql.SparkSession, optional
        A session that runs already. By default the active session, where there is one.
    verify : float, default 0
        The share, from 0 to 1, of the fragments that this process reads again, to compare.

    Raises
    ------
    ParameterError
        The number of workers is out of range, or was given with a cluster (E213).

    Examples
    --------
    >>> from privcov.engines import Spark
    >>> Spark(master="spark://host:7077").name
    'spark'
    """

    master: str | None = None
    workers: int | None = None
    session: Any = None
    verify: float = 0

    name = "spark"

    def __post_init__(self) -> None:
        check_workers(self.workers)
        if self.workers is not None and (self.master is not None or self.session is not None):
            raise ParameterError(
                "E213", "workers can be set only for a Spark started here; a cluster has its own workers."
            )

    def check(self, table: Table) -> None:
        super().check(table)
        try:
            import pyspark  # noqa: F401
        except ImportError:
            raise missing("pyspark", "spark") from None
        running = self._running()
        if self.master is not None and running is not None and running.sparkContext.master != self.master:
            raise ParameterError(
                "E213", f"a Spark session with another master than {self.master} is active.", "Stop it first."
            )
        if running is None and _java() is None:
            raise ParameterError(
                "E214",
                "the engine spark needs Java, which is not installed.",
                "On Debian, install openjdk-17-jre-headless; elsewhere a Java 17, and set JAVA_HOME.",
            )
        if running is None and (address := re.fullmatch(r"spark://([^:/,]+):(\d+)", self.master or "")):
            try:  # a wrong address must not cost the budget
                socket.create_connection((address[1], int(address[2])), timeout=20).close()
            except OSError:
                raise InputError(
                    "E126", f"no Spark master answers at {self.master}.", "Check the address."
                ) from None
        if running is not None or (self.master is not None and not is_here(self.master)):
            with self._session() as session:  # workers that could not do the work must not cost the budget
                check_versions(asked_of_spark(session, VERSION_OF_A_WORKER), self.name)

    def answers(self, work: Work, fragments: Sequence[AnyFragment]) -> Generator[Answer, None, None]:
        if not fragments:
            return
        with self._session() as session:
            context = session.sparkContext
            yield from spark_answers(
                context.parallelize(fragments, len(fragments)).map(partial(attempt, work))
            )

    def joined(
        self, work: Work, fragments: Sequence[Fragment], *, schema: Schema, parts: int
    ) -> Generator[Answer, None, None]:
        with self._session() as session:
            read = session.sparkContext.parallelize(fragments, max(1, len(fragments)))
            sent = read.flatMap(partial(spread, schema=schema, parts=parts))
            yield from joined_by_spark(sent, partial(attempt, work), schema=schema, parts=parts)

    def _running(self) -> Any:
        from pyspark.sql import SparkSession

        return SparkSession.getActiveSession() if self.session is None else self.session

    @contextmanager
    def _session(self) -> Iterator[Any]:
        from pyspark.sql import SparkSession

        if (running := self._running()) is not None:
            yield running
            return
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        master = f"local[{self.workers or cores()},4]" if self.master is None else self.master
        try:
            session = (
                SparkSession.builder.master(master)
                .appName("privcov")
                .config("spark.ui.enabled", "false")
                .config("spark.ui.showConsoleProgress", "false")
                .config("spark.log.level", "ERROR")
                .getOrCreate()
            )
        except Exception:
            raise InputError(
                "E126", f"Spark could not be started at {master}.", "Check the address."
            ) from None
        try:
            yield session
        finally:
            session.stop()


def _java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=os.path.join(home, "bin")) if home else shutil.which("java")
