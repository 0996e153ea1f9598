"""Where a command reads and sums the table: the options, and the engine they mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from privcov.summing.engines import Engine


def engine_options(command: Callable[..., None]) -> Callable[..., None]:
    """``--engine``, ``--workers``, ``--master``, ``--scheduler``, ``--verify``, ``--device``."""
    options = (
        click.option(
            "--engine",
            default="local",
            show_default=True,
            help="Where rows are read and summed: local, spark or dask. See docs/explain/cluster.md.",
        ),
        click.option(
            "--workers",
            type=click.IntRange(1, 256),
            help="Threads or processes on this machine.  [default: one per core]",
        ),
        click.option(
            "--master",
            help="With --engine spark: its address, such as spark://host:7077.  [default: started here]",
        ),
        click.option(
            "--scheduler",
            help="With --engine dask: its address, such as tcp://host:8786.  [default: started here]",
        ),
        click.option(
            "--verify",
            type=click.FloatRange(0, 1),
            default=0.0,
            show_default=True,
            help="With spark or dask: the share of their sums, from 0 to 1, that is computed here again, to compare.",
        ),
        click.option(
            "--device",
            default="cpu",
            show_default=True,
            help="What multiplies rows: cpu, or cuda for wide tables on a GPU, to the same bits.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def as_engine(words: dict[str, Any]) -> Engine:
    """The engine that the options mean; takes them out of ``words``."""
    from privcov.cli.output import note
    from privcov.linalg.devices import Device
    from privcov.summing.engines import engine_named

    return engine_named(
        words.pop("engine"),
        workers=words.pop("workers"),
        master=words.pop("master"),
        scheduler=words.pop("scheduler"),
        verify=words.pop("verify"),
        device=Device.named(words.pop("device"), tell=note),
    )
