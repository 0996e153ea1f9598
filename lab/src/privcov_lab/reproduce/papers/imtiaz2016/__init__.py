"""Imtiaz and Sarwate (ICASSP 2016): private PCA with one-sided Wishart noise, which its author WITHDREW in 2017.

``tables`` makes their data, ``methods`` the subspaces, ``measuring`` the cells; ``guarantees`` and ``claims`` judge
the paper's sentences, ``findings`` draws and tabulates. SN is measured because it was published; nothing here can
make a release with it.
"""

from __future__ import annotations

from collections.abc import Iterator

from privcov_lab.reproduce.papers.imtiaz2016.findings import find
from privcov_lab.reproduce.papers.imtiaz2016.measuring import betrayed, captured, classified, priced, swept
from privcov_lab.reproduce.papers.imtiaz2016.methods import METHODS, OURS
from privcov_lab.reproduce.study import Cell, Effort, Study

__all__ = ["STUDY", "betrayed", "captured", "classified", "priced", "swept"]

EPSILONS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
ROWS = {
    "synthetic": (1000, 2000, 5000, 10_000, 20_000, 60_000),
    "covtype": (1000, 2000, 5000, 10_000, 20_000),
    "mnist": (1000, 2000, 5000, 10_000, 20_000),
}
"""How many rows figure 2 tries."""
PAPER_ROWS = {"synthetic": 60_000, "covtype": 20_000, "mnist": 10_000}
"""How many the paper took for figure 1."""
ROWS_EPSILON = {"synthetic": 0.3, "covtype": 0.3, "mnist": 3.0}
"""The ε of figure 2, which the paper does not state: where rows make a difference."""
TABLE_EPSILONS = (0.1, 1.0)
SECONDS = {"synthetic": 1.5, "covtype": 0.6, "mnist": 20.0}
"""What one cell of figure 1 takes."""


def cells(effort: Effort) -> Iterator[Cell]:
    """Figures 1 and 2, table 1, and what the guarantees are worth; a smoke run leaves out MNIST and most points."""
    for dataset in ("synthetic", "covtype") if effort.quick else PAPER_ROWS:
        yield from _figures(dataset, effort)
        yield from _classification(dataset, effort)
        yield from _checks(dataset, effort)
    for epsilon in (0.1, 1.0) if effort.quick else (0.1, 0.3, 1.0, 3.0):
        size = {"dimension": 20, "draws": 200} if effort.quick else {"dimension": 100, "draws": 2000}
        yield Cell(function="betrayed", arguments={"epsilon": epsilon, **size}, cost=1.0)


def _figures(dataset: str, effort: Effort) -> Iterator[Cell]:
    """The paper draws no MNIST, so that 5 runs will do there."""
    runs, full = effort.runs(5 if dataset == "mnist" else 10), _rows(dataset, effort)
    points = [(1, epsilon, full) for epsilon in ((0.03, 3.0) if effort.quick else EPSILONS)]
    points += [(2, ROWS_EPSILON[dataset], n) for n in ((1000, full) if effort.quick else ROWS[dataset])]
    for figure, epsilon, rows in points:
        yield Cell(
            function="captured",
            arguments={
                "figure": figure,
                "dataset": dataset,
                "methods": _methods(effort),
                "epsilon": epsilon,
                "rows": rows,
                "runs": runs,
            },
            cost=SECONDS[dataset],
        )


def _classification(dataset: str, effort: Effort) -> Iterator[Cell]:
    for epsilon in TABLE_EPSILONS[-1:] if effort.quick else TABLE_EPSILONS:
        for rows in (4000,) if effort.quick else (4000, 6000):
            yield Cell(
                function="classified",
                arguments={
                    "dataset": dataset,
                    "methods": _methods(effort),
                    "epsilon": epsilon,
                    "rows": rows,
                    "runs": effort.runs(10),
                },
                cost=2 * SECONDS[dataset],
            )


def _checks(dataset: str, effort: Effort) -> Iterator[Cell]:
    """Whether PPCA's sampler has settled, and what PPM costs a person."""
    known = {"dataset": dataset, "rows": _rows(dataset, effort)}
    for sweeps in (1, 5) if effort.quick else (1, 2, 5, 20):
        words = {"epsilon": ROWS_EPSILON[dataset], "sweeps": sweeps, "runs": effort.runs(4)}
        yield Cell(function="swept", arguments={**known, **words}, cost=SECONDS[dataset] * sweeps / 20)
    yield Cell(function="priced", arguments={**known, "epsilon": 1.0, "runs": 2}, cost=SECONDS[dataset])


def _rows(dataset: str, effort: Effort) -> int:
    return 4000 if effort.quick else PAPER_ROWS[dataset]


def _methods(effort: Effort) -> list[str]:
    return [name for name in METHODS if name not in OURS or not effort.published_only]


STUDY = Study(
    name="imtiaz2016",
    title="Symmetric matrix perturbation for differentially-private principal component analysis",
    citation="H. Imtiaz and A. D. Sarwate, ICASSP 2016, pp. 2339-2343; WITHDRAWN in a note of December 2017.",
    about=(
        "The paper adds one Wishart matrix to a second moment (SN) and compares the leading subspace with those of "
        "three older methods: Analyze Gauss (AG), the private power method (PPM) and the exponential mechanism "
        "(PPCA). SN was claimed to be ε-private and is not; its author withdrew the proof. Its figures are measured "
        "again here with SN labelled WITHDRAWN, beside symmetric-wishart, which repairs it, and other mechanisms "
        "that keep their promise."
    ),
    tables=("covtype", "mnist"),
    cells=cells,
    find=find,
)
