"""``privcov audit``: try to refute what a mechanism promises."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from privcov.cli.losses import as_loss, loss_options
from privcov.cli.output import json_option, note, print_json, say
from privcov.errors import ParameterError

if TYPE_CHECKING:
    from privcov.audit import AuditReport
    from privcov.privacy import Loss

QUICK_RUNS, FULL_RUNS = 500, 20_000


@click.command(name="audit")
@click.argument("name", required=False)
@loss_options
@click.option(
    "-d", "--dimension", default=3, show_default=True, type=int, help="Columns of the made-up tables."
)
@click.option(
    "--runs",
    type=click.IntRange(200, 10**8),
    help=f"Runs in each setting.  [default: {FULL_RUNS}]",
)
@click.option("--all", "every", is_flag=True, help="Every mechanism, at every kind of loss it promises.")
@click.option(
    "--quick", is_flag=True, help=f"{QUICK_RUNS} runs a setting, and no fresh processes: finds gross faults."
)
@click.option(
    "--arithmetic",
    default="exact",
    show_default=True,
    help="How noise is drawn: exact, or idealized (plain float64).",
)
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="NAME=VALUE",
    help="An option of the mechanism; may be repeated.  [default: its own]",
)
@click.option("--as-published", is_flag=True, help="The constants of the mechanism's paper.")
@click.option(
    "--strata", is_flag=True, help="Audit a release of two strata, with a person who moves between them."
)
@click.option(
    "--weights", is_flag=True, help="Audit a release of weighted rows, with weights from none to the largest."
)
@click.option(
    "--frame",
    is_flag=True,
    help="Audit whole releases in a private frame, by all of its rounds and the matrix together. With the default "
    "number of runs it takes minutes.",
)
@click.option(
    "--processes",
    type=click.IntRange(1, 256),
    help="How many processes run at once.  [default: one per core]",
)
@click.option(
    "--reader", "reader_path", help="Audit how this file is read instead; needs --schema.  [default: none]"
)
@click.option(
    "--schema", "schema_path", help="With --reader: the schema of the file (TOML).  [default: none]"
)
@click.option(
    "--plot", "plot_path", help="Draw what was found here (.svg, .png or .pdf).  [default: no figure]"
)
@click.option("--force", is_flag=True, help="Replace a figure that is already there.")
@json_option
def command(
    name: str | None,
    dimension: int,
    runs: int | None,
    every: bool,
    quick: bool,
    arithmetic: str,
    options: tuple[str, ...],
    as_published: bool,
    strata: bool,
    weights: bool,
    frame: bool,
    processes: int | None,
    reader_path: str | None,
    schema_path: str | None,
    plot_path: str | None,
    force: bool,
    as_json: bool,
    **loss_words: Any,
) -> int:
    """Try to refute the promise of the mechanism NAME on made-up neighbouring tables.

    Prints lower confidence bounds on the privacy loss beside the promise. A bound above the promise refutes it, and
    the exit code is 4. A pass is not a proof. No data is read, and nothing is spent.

    With --reader FILE --schema S it audits the reading of FILE: can one record change the row of another? It tries
    copies of the first records among hostile ones, on every path through the reader. The output may quote records:
    it is for you only.

    Example: privcov audit symmetric-wishart --epsilon 1 -d 3 --runs 20000
    """
    if reader_path is not None:
        return _audit_reader(reader_path, schema_path, as_json=as_json)
    for library in ("OPENBLAS", "OMP", "MKL", "BLIS"):  # the children below share the processors
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")
    from privcov.audit import audit
    from privcov.cli.orders import named_options

    if every == (name is not None):
        raise click.UsageError("give the NAME of a mechanism, or --all, or --reader FILE.")
    if every and (options or as_published or strata or weights or frame or plot_path):
        raise click.UsageError(
            "--option, --as-published, --strata, --weights, --frame and --plot belong to one mechanism."
        )
    if plot_path is not None:
        from privcov.audit.report import check_can_draw

        check_can_draw(plot_path, force=force)
    if every and not any(loss_words.get(word) for word in ("epsilon", "delta", "rho")):
        loss_words["epsilon"] = "1"
        note("epsilon = 1 for every mechanism; also (1, 1e-6) and rho = 0.1 where a mechanism offers them.")
    loss = as_loss(**loss_words)
    reports = []
    for which, at in _every(loss) if every else [(str(name), loss)]:
        with _bar(which) as progress:
            reports.append(
                audit(
                    which,
                    loss=at,
                    dimension=dimension,
                    runs=runs or (QUICK_RUNS if quick else FULL_RUNS),
                    processes=processes,
                    progress=progress,
                    as_published=as_published,
                    strata=strata,
                    weights=weights,
                    frame=frame,
                    fresh=not quick,
                    arithmetic=arithmetic,
                    **named_options(options),
                )
            )
        if every and not as_json:
            say(_line(reports[-1]))
    if as_json:
        print_json([made.to_dict() for made in reports] if every else reports[0].to_dict())
    elif not every:
        say(reports[0].render())
        note(f"CPU time: {reports[0].cpu_seconds:.0f} s.")
    if plot_path is not None:
        from privcov.audit.report import draw

        draw(reports[0], plot_path, force=force)
        note(f"wrote {plot_path}")
    return 0 if all(made.passed for made in reports) else 4


def _audit_reader(path: str, schema_path: str | None, *, as_json: bool) -> int:
    from privcov.audit.readers import audit_reader
    from privcov.schema import Schema

    if schema_path is None:
        raise click.UsageError("--reader needs the schema of the file: --schema S.")
    with _bar(f"the reading of {path}") as progress:
        made = audit_reader(path, schema=Schema.read(schema_path), progress=progress)
    if as_json:
        print_json(made.to_dict())
    else:
        say(made.render())
    return 0 if made.passed else 4


def _every(loss: Loss) -> list[tuple[str, Loss]]:
    """Every registered mechanism at every kind of loss and, where it can, the relation asked for."""
    from privcov.mechanisms import MECHANISMS
    from privcov.privacy import ZCDP, ApproxDP, PureDP

    if not isinstance(loss, PureDP):
        raise ParameterError(
            "E204", "--all takes epsilon only.", "To audit at a delta or a rho, name one mechanism."
        )
    kinds: dict[str, Loss] = {
        "pure": loss,
        "approximate": ApproxDP(epsilon=loss.epsilon, delta="1e-6", neighbours=loss.neighbours),
        "zcdp": ZCDP(rho=loss.epsilon**2 / 10, neighbours=loss.neighbours),
    }
    return [
        (name, kinds[kind])
        for name, mechanism in MECHANISMS.items()
        if loss.neighbours in mechanism.relations
        for kind in mechanism.kinds
    ]


def _line(report: AuditReport) -> str:
    why = f"  {report.failures[0].what}: {report.failures[0].detail}" if report.failures else ""
    return f"{report.verdict}  {report.mechanism:22s} {report.loss}  ({report.cpu_seconds:.0f} CPU s){why}"


@contextmanager
def _bar(what: str) -> Iterator[Callable[[int, int], object] | None]:
    """Runs done, of those planned, on a terminal; nothing in a pipe."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(f"auditing {what}", total=None)
        yield lambda done, planned: bar.update(task, completed=done, total=planned)
