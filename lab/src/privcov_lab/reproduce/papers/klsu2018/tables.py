"""The numbers behind the figures."""

from __future__ import annotations

from statistics import fmean

from privcov_lab.reproduce.papers.klsu2018.measuring import DIMENSION, PRIVATE, RHO
from privcov_lab.reproduce.papers.klsu2018.reading import (
    LABELS,
    across,
    goal,
    grid,
    median,
    needed,
    succeeded,
)
from privcov_lab.reproduce.study import Results, Table

ACCURACIES = (0.05, 0.1, 0.2, 0.5)


def tables(results: Results) -> list[Table]:
    """All of them."""
    return [make(results) for make in (_errors_table, _needed_table, _sweeps_table, _rounds_table)]


def _errors_table(results: Results) -> Table:
    rows = [
        [
            line["condition"],
            line["rows"],
            len(line["errors"]["none"]),
            *(value for m in LABELS for value in (median(line, m), fmean(line["errors"][m]))),
        ]
        for line in grid(results)
    ]
    heads = [f"{label}, {word}" for label in LABELS.values() for word in ("median", "mean")]
    return Table(
        name="errors",
        caption=f"Mahalanobis errors, d = {DIMENSION}, ρ = {RHO}.",
        headings=["κ", "rows", "tables", *heads],
        rows=rows,
        digits=3,
    )


def _needed_table(results: Results) -> Table:
    rows = []
    for k in across(grid(results), "condition"):
        for accuracy in ACCURACIES:
            found = {method: needed(results, method, k, accuracy) for method in LABELS}
            plain, private = found["none"], [found[method] for method in PRIVATE]
            extra = [None if plain is None or n is None else n - plain for n in private]
            rows.append([k, accuracy, *(found[m] for m in LABELS), *extra])
    return Table(
        name="rows-needed",
        caption="Rows from which the median error stays below α, and how many more than without privacy; blank "
        f"where the largest table is too small, and the smallest table, {grid(results)[0]['rows']}, where fewer would "
        "do.",
        headings=["κ", "α", *LABELS.values(), *(f"{LABELS[m]}, extra" for m in PRIVATE)],
        rows=rows,
        digits=3,
    )


def _sweeps_table(results: Results) -> Table:
    others = [line for line in results.of("errors") if line not in grid(results)]
    rows = [
        [
            line["dimension"],
            line["rows"],
            line["condition"],
            line["rho"],
            *(median(line, m) if m in line["errors"] else None for m in LABELS),
            median(line, "truncated", "added"),
        ]
        for line in others
    ]
    return Table(
        name="sweeps",
        caption="Median errors as columns and ρ change; the last column is the distance of the naive estimate to "
        "the one without privacy.",
        headings=["d", "rows", "κ", "ρ", *LABELS.values(), "naive, added"],
        rows=rows,
        digits=3,
    )


def _rounds_table(results: Results) -> Table:
    rows = [
        [
            line["dimension"],
            line["condition"],
            line["rows"],
            min(line["smallest"]),
            max(line["largest"]),
            succeeded(line, goal(line["condition"])),
        ]
        for line in results.of("conditioning")
    ]
    return Table(
        name="preconditioner",
        caption="Eigenvalues of PΣPᵀ after the lecture's rounds, the least and the greatest of all tables, and the "
        "share of tables with all of them between 1 and 1000 (0.9 κ for the single round of κ = 1,111).",
        headings=["d", "κ", "rows", "least", "greatest", "succeeded"],
        rows=rows,
        digits=3,
    )
