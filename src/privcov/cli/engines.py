"""Where a command reads and sums the table: the options, and the engine they mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from privcov.engines import Engine


def engine_options(command: Callable[..., None]) -> Callable[..., None]:
    """``--engine``, ``--workers``, ``--master``, ``--scheduler``, ``--verify``, ``--device``."""
    options = (
        click.option(
            "--engine",
            default="local",
            show_default=True,
            help="local, spark or dask: see docs/explain/cluster.md.",
        ),
        click.option(
            "--workers",
            type=click.IntRange(1, 256),
            help="Threads or processes here; by default one per core.",
        ),
        click.option("--master", help="With --engine spark: its address, such as spark://host:7077."),
        click.option("--scheduler", help="With --engine dask: its address, such as tcp://host:8786."),
        click.option(
            "--verify",
            type=click.FloatRange(0, 1),
            default=0.0,
            help="With spark or dask: the share of their sums to recompute and compare on this machine.",
        ),
        click.option(
            "--device",
            default="cpu",
            show_default=True,
            help="cpu, or cuda: multiply wide tables on a GPU, with bit-identical results.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def as_engine(words: dict[str, Any]) -> Engine:
    """The engine that the options mean; takes them out of ``words``."""
    from privcov.cli.output import note
    from privcov.devices import Device
    from privcov.engines import engine_named

    return engine_named(
        words.pop("engine"),
        workers=words.pop("workers"),
        master=words.pop("master"),
        scheduler=words.pop("scheduler"),
        verify=words.pop("verify"),
        device=Device.named(words.pop("device"), tell=note),
    )
