"""bain2014: a private variance-covariance matrix, the regressions read from it, and what its noise really promises.

``published`` is the report's release and Algorithm 2, ``ours`` the library's on the same moments, ``privacy`` the ε
that the report's σ delivers. ``noise``, ``simulated``, ``pums`` and ``repairs`` are measured; ``readings`` puts their
cells together, and ``figures``, ``tables`` and ``claims`` say what was found.
"""

from __future__ import annotations

from collections.abc import Iterator

from privcov_lab.reproduce.papers.bain2014.claims import claims
from privcov_lab.reproduce.papers.bain2014.figures import figures
from privcov_lab.reproduce.papers.bain2014.noise import norms, spectral
from privcov_lab.reproduce.papers.bain2014.notes import NOTES
from privcov_lab.reproduce.papers.bain2014.privacy import delivered, privacy
from privcov_lab.reproduce.papers.bain2014.published import EPSILON
from privcov_lab.reproduce.papers.bain2014.pums import (
    REPORT_ROWS,
    moments,
    our_model,
    published_model,
    true_model,
)
from privcov_lab.reproduce.papers.bain2014.readings import Readings
from privcov_lab.reproduce.papers.bain2014.repairs import repairs
from privcov_lab.reproduce.papers.bain2014.simulated import example, regressors, simulated
from privcov_lab.reproduce.papers.bain2014.tables import tables
from privcov_lab.reproduce.study import Cell, Effort, Findings, Results, Study

__all__ = [
    "STUDY",
    "example",
    "moments",
    "norms",
    "our_model",
    "privacy",
    "published_model",
    "regressors",
    "repairs",
    "simulated",
    "spectral",
    "true_model",
]

FORMULAS = ("printed", "classical")
COEFFICIENTS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
AXES: dict[str, tuple[float, ...]] = {
    "epsilon": (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 0.99),
    "rows": (1e3, 1e4, 1e5, 1e6),
    "attributes": (2, 3, 5, 10, 20, 50),
}
"""The report's text does not give the values along its axes; these span what it names."""
RUNS, BATCH = 1000, 50


def cells(effort: Effort) -> Iterator[Cell]:
    """Every experiment of the report a thousand times; a batch of simulated tables is one cell."""
    runs = effort.runs(RUNS, 6)
    yield Cell(function="privacy", arguments={}, cost=0.1)
    for method in (*FORMULAS, "needed"):
        yield Cell(function="norms", arguments={"method": method, "runs": runs}, cost=0.1)
        for axis, values in AXES.items():
            few = values[:: len(values) - 1] if effort.quick else values
            named = {"method": method, "axis": axis, "values": list(few), "runs": runs}
            yield Cell(function="spectral", arguments=named, cost=1)
    yield Cell(function="example", arguments={"rows": 50_000, "coefficient": 2.0}, cost=0.1)
    batch = effort.runs(BATCH, 2)
    swept = COEFFICIENTS[:: len(COEFFICIENTS) - 1] if effort.quick else COEFFICIENTS
    for number in range(max(1, runs // BATCH)):
        named = {"coefficients": list(swept), "runs": batch, "batch": number}
        yield Cell(function="simulated", arguments=named, cost=5)
        yield Cell(
            function="regressors", arguments={"coefficient": 10.0, "runs": batch, "batch": number}, cost=1
        )
    for rows in (None, REPORT_ROWS):
        yield Cell(function="true_model", arguments={"rows": rows}, cost=0.1)
        for formula in FORMULAS:
            for function in ("moments", "published_model"):
                named = {"formula": formula, "rows": rows, "runs": runs}
                yield Cell(function=function, arguments=named, cost=0.2)
        for epsilon in (EPSILON, delivered("printed", 3)):
            named = {"epsilon": epsilon, "rows": rows, "runs": runs}
            yield Cell(function="our_model", arguments=named, cost=10)
    for table in ("pums", "simulated"):
        for epsilon in (0.1,) if effort.quick else (0.01, 0.03, 0.1, 0.3, 1.0):
            named = {"table_name": table, "epsilon": epsilon, "runs": effort.runs(300, 3)}
            yield Cell(function="repairs", arguments=named, cost=15)


def find(results: Results) -> Findings:
    """Figures and tables in the order of the report, and its claims beside what was measured."""
    readings = Readings(results)
    return Findings(claims=claims(readings), figures=figures(readings), tables=tables(readings), notes=NOTES)


STUDY = Study(
    name="bain2014",
    title="Releasing a differentially private variance-covariance matrix",
    citation="C. Bain, V. D'Orazio, O. Sheffet and S. Vadhan: Releasing a differentially private variance-covariance "
    "matrix. Privacy Tools for Sharing Research Data, Harvard University, 2014.",
    about="The report adds Gaussian noise to the second moments of a table scaled to [0, 1], carries them back to the "
    "units of the table, repairs negative eigenvalues and reads regressions from the result by a sweep, on simulated "
    "tables and on the Census sample. Every figure and table of it is made again here with its σ as printed and with "
    "the division by ε that the printed formula has lost; beside them stand the ε that each σ really delivers, and "
    "the library's own release and regression.",
    tables=("pums",),
    cells=cells,
    find=find,
    revision=2,
)
