"""``privcov reproduce``: the papers' experiments again, on their data, with a verdict on every claim."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from privcov.cli.output import counting_from, json_option, note, one_thread, print_json, say, say_line
from privcov_lab.reproduce import PAPERS, reproduce, study
from privcov_lab.reproduce.study import Effort


@click.command(name="reproduce")
@click.argument("papers", nargs=-1, metavar=f"[{'|'.join(PAPERS)}|all]...")
@click.option(
    "--data", "data_directory", help="The folder of the papers' tables.  [default: the user's cache]"
)
@click.option(
    "-o", "--out", "directory", default="reproduced", show_default=True, help="The folder of results."
)
@click.option("--quick", is_flag=True, help="A smoke run: few repetitions, to see that it works.")
@click.option(
    "--as-published", is_flag=True, help="Measure the papers' own constants alone, without our lines."
)
@click.option("--workers", type=click.IntRange(1), help="Processes at once.  [default: one per core]")
@click.option("--offline", is_flag=True, help="Never fetch a table that is missing.")
@click.option("--fetch", "only_fetch", is_flag=True, help="Fetch the tables and measure nothing.")
@json_option
def command(
    papers: tuple[str, ...],
    data_directory: str | None,
    directory: str,
    quick: bool,
    as_published: bool,
    workers: int | None,
    offline: bool,
    only_fetch: bool,
    as_json: bool,
) -> None:
    """Run a paper's experiments on its data and say of every claim whether it holds: tables, figures, one page each.

    A run that was stopped goes on where it was. PAPERS are the papers' names; without one all are
    run. Tables that are not in --data are fetched from their publishers.

    Example: privcov reproduce klsu2018 --quick -o reproduced
    """
    one_thread()  # each of the processes that measure
    from privcov.planning.cache import directory as cache
    from privcov.report.tables import table
    from privcov_lab.reproduce.datasets import Datasets
    from privcov_lab.reproduce.writing import overview

    names = list(PAPERS) if not papers or "all" in papers else list(dict.fromkeys(papers))
    home = Path(data_directory) if data_directory else (cache() or Path.home()) / "data"
    data = Datasets(home, online=not offline)
    data.check(dict.fromkeys(t for name in names for t in study(name).tables), note=note)
    if only_fetch:
        print_json({"data": str(home)}) if as_json else say_line(f"The tables are in {home}.")
        return
    effort = Effort(quick=quick, published_only=as_published)
    done: list[dict[str, Any]] = []
    for name in names:
        with counting_from(f"reproducing {name}") as (begin, step):
            done.append(
                reproduce(
                    name,
                    data=data,
                    directory=directory,
                    effort=effort,
                    workers=workers,
                    begin=begin,
                    step=step,
                )
            )
    if len(done) == len(PAPERS):
        overview(done, directory=Path(directory))
    if as_json:
        print_json({"papers": done})
        return
    lines = [[p["paper"], c["verdict"], c["where"], c["says"]] for p in done for c in p["claims"]]
    say(table(["paper", "verdict", "where", "claim"], lines, left=4))
    for paper in done:
        say(f"{paper['page']}  ({paper['cells']} measurements, {paper['cpu_seconds']:,.0f} CPU-seconds)")
