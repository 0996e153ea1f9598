"""Where the rows of a table are read and summed: this process, Spark, or Dask. The sum is the same bits in each.

>>> engine_named("local", workers=2).name
'local'
"""

from __future__ import annotations

from privcov.errors import ParameterError
from privcov.linalg.devices import CPU, Device
from privcov.summing.engines.base import (
    AnyFragment,
    Engine,
    Local,
    Progress,
    Report,
    Result,
    Work,
    attempt,
    gather,
    keeping,
    once_each,
)
from privcov.summing.engines.dask import Dask
from privcov.summing.engines.spark import Spark
from privcov.table import Table

ENGINES: dict[str, type[Local] | type[Spark] | type[Dask]] = {"local": Local, "spark": Spark, "dask": Dask}

__all__ = [
    "ENGINES",
    "AnyFragment",
    "Dask",
    "Engine",
    "Local",
    "Progress",
    "Report",
    "Result",
    "Spark",
    "Work",
    "attempt",
    "engine_for",
    "engine_named",
    "gather",
    "keeping",
    "once_each",
]


def engine_named(
    name: str,
    *,
    workers: int | None = None,
    master: str | None = None,
    scheduler: str | None = None,
    device: Device = CPU,
    verify: float = 0,
) -> Engine:
    """Make an engine from words. Nothing is started yet.

    Parameters
    ----------
    name : {"local", "spark", "dask"}
        Where rows are read and summed.
    workers : int, optional
        Threads or processes on this machine. By default one per core.
    master : str, optional
        The address of Spark, such as "spark://host:7077". Only with "spark".
    scheduler : str, optional
        The address of Dask, such as "tcp://host:8786". Only with "dask".
    device : Device, default CPU
        What multiplies the rows. Only "local" has a choice.
    verify : float, default 0
        The share, from 0 to 1, of what workers send that this process computes again, to compare. Only with
        "spark" and "dask".

    Returns
    -------
    Engine
        The engine, for ``release(…, engine=…)``.

    Raises
    ------
    ParameterError
        There is no such engine, or an argument belongs to another (E213).

    Examples
    --------
    >>> from privcov.engines import engine_named
    >>> engine_named("local", workers=2).name
    'local'
    """
    if name not in ENGINES:
        raise ParameterError("E213", f"engine must be {', '.join(ENGINES)}, got {name!r}.")
    if master is not None and name != "spark":
        raise ParameterError("E213", f"master is an option of the engine spark, not of {name}.")
    if scheduler is not None and name != "dask":
        raise ParameterError("E213", f"scheduler is an option of the engine dask, not of {name}.")
    if device != CPU and name != "local":
        raise ParameterError("E213", f"the device {device.name} is for the engine local, not for {name}.")
    if verify and name == "local":
        raise ParameterError(
            "E213", "verify works only with the engines spark and dask: local reads every row itself."
        )
    if name == "spark":
        return Spark(master=master, workers=workers, verify=verify)
    if name == "dask":
        return Dask(scheduler=scheduler, workers=workers, verify=verify)
    return Local(workers=workers, device=device)


def engine_for(engine: str | Engine, table: Table) -> Engine:
    """The engine for a table, as given or by its name; refuses one that is not installed or cannot read the table."""
    chosen = engine_named(engine) if isinstance(engine, str) else engine
    if not isinstance(chosen, Engine):
        raise ParameterError(
            "E213", f"engine must be {', '.join(ENGINES)}, or one of privcov.summing.engines."
        )
    chosen.check(table)
    return chosen
