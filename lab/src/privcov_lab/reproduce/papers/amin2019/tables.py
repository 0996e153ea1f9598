"""The tables: means and spread of every method, the sweeps, the proposals."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from privcov_lab.reproduce.papers.amin2019.figures import LEVELS, WORDS
from privcov_lab.reproduce.papers.amin2019.reading import Measured, distinct, mean
from privcov_lab.reproduce.study import Results, Table

_ERROR = "‖Ĉ − C‖_F / n"


def tables(results: Results) -> Iterator[Table]:
    """Whatever was measured."""
    measured, ridge = Measured(results), Measured(results, "ridge")
    for constants, words in WORDS.items():
        methods = measured.methods(constants)
        if not methods:
            continue
        name = "ours" if constants == "tight" else constants
        yield wide_table(measured, f"frobenius-{name}", f"{_ERROR} with {words}", constants)
        yield wide_table(
            measured, f"frobenius-{name}-spread", f"{_ERROR} with {words}", constants, spread=True
        )
        caption = f"mean square residual of ridge regression over all targets, with {words}"
        yield wide_table(ridge, f"ridge-{name}", caption, constants)
    yield _sweeps(results)
    yield _proposal_counts(results)


def wide_table(measured: Measured, name: str, caption: str, constants: str, *, spread: bool = False) -> Table:
    """A row for every table and ε, a column for every method: the mean of its runs, or their standard deviation."""
    methods, of = measured.methods(constants), np.std if spread else np.mean
    levels = {} if spread else LEVELS[measured.what]
    perturbed = measured.what == "ridge" and bool(measured.results.of("perturbed"))
    rows: list[list[str | int | float | None]] = []
    for dataset, epsilon in measured.points():
        runs = [measured.runs(dataset, constants, method, epsilon) for method in methods]
        if perturbed:
            runs.append(measured.results.one("perturbed", dataset=dataset, epsilon=epsilon)["ridge"])
        facts = measured.results.one("facts", dataset=dataset)
        rows.append(
            [dataset, epsilon, *(float(of(one)) for one in runs), *(facts[f] for f in levels.values())]
        )
    return Table(
        name=name,
        caption=f"{'Standard deviation over runs' if spread else 'Mean over runs'}: {caption}.",
        headings=["table", "ε", *methods, *(["output perturbation"] if perturbed else []), *levels],
        rows=rows,
    )


def _sweeps(results: Results) -> Table:
    groups: dict[tuple[str, int, int, str], dict[str, float]] = {}
    for cell in results.of("simulated"):
        constants = "ours" if cell["constants"] == "tight" else cell["constants"]
        at = (cell["spectrum"], cell["columns"], cell["rows"], constants)
        groups.setdefault(at, {"zero": mean(cell["zero"])})[cell["method"]] = mean(cell["frobenius"])
    methods = distinct(cell["method"] for cell in results.of("simulated"))
    return Table(
        name="simulated",
        caption=f"Mean {_ERROR} on simulated rows of norm 1, ε = 1.",
        headings=["rows are", "d", "n", "constants", *methods, "zero"],
        rows=[[*at, *(made.get(method) for method in (*methods, "zero"))] for at, made in groups.items()],
    )


def _proposal_counts(results: Results) -> Table:
    columns = {facts["dataset"]: facts["columns"] for facts in results.of("facts")}
    return Table(
        name="proposals",
        caption="Proposals for one vector with an envelope tuned for each.",
        headings=["table", "d", "constants", "method", "ε", "median", "mean", "mean / d", "largest"],
        rows=[
            [
                cell["dataset"],
                columns[cell["dataset"]],
                cell["constants"],
                cell["method"],
                cell["epsilon"],
                float(np.median(cell["counts"])),
                mean(cell["counts"]),
                mean(cell["counts"]) / columns[cell["dataset"]],
                max(cell["counts"]),
            ]
            for cell in results.of("proposals")
        ],
    )
