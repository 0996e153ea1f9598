"""What is measured, one function for each kind of cell, and the grid of cells."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from privcov.linalg.arrays import Floats
from privcov.mechanisms.budget import FAILURE, corollary_one
from privcov.noise.idealized import sample_bingham
from privcov.noise.randomness import Randomness
from privcov_lab.experiments.output_perturbation import answer_noise
from privcov_lab.reproduce.datasets import Datasets
from privcov_lab.reproduce.papers.amin2019.authors import (
    by_public_code,
    code_split,
    private_eigenvalues,
    weights_of_one,
)
from privcov_lab.reproduce.papers.amin2019.methods import METHODS, OURS, PAPER
from privcov_lab.reproduce.papers.amin2019.place import LAMBDA, Place, place, ridge_residuals
from privcov_lab.reproduce.study import Cell, Effort

TABLES = ("wine", "airfoil", "adult")
EPSILONS = (0.01, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
RUNS = 50
SWEPT = ("AD", "IT-U", "KT", "L", "G-10", "symmetric-wishart repaired")
SATURATED = 1e6
"""An ε at which every vector is all but determined: where the sampler rejects most."""
SPECTRA = ("decaying", "isotropic")
DIMENSIONS = (4, 8, 16, 32, 64, 108)
SIZES = (1000, 4000, 16000, 64000)
ROWS, COLUMNS = 5000, 13
"""What is held while the other is swept."""
_EPSILON = 1.0


def facts(data: Datasets, randomness: Randomness, *, dataset: str) -> dict[str, float]:
    """The size of a table, the error of answering zero, ridge without noise."""
    return place(data, dataset).facts()


def errors(
    data: Datasets,
    randomness: Randomness,
    *,
    dataset: str,
    constants: str,
    method: str,
    epsilon: float,
    runs: int,
) -> dict[str, list[float]]:
    """Both errors of every run; constants are those of the paper (published), of its code, or ours (tight)."""
    here = place(data, dataset)
    made = [answered(randomness, here, constants, method, epsilon) for _ in range(runs)]
    return here.errors(made)


def perturbed(
    data: Datasets, randomness: Randomness, *, dataset: str, epsilon: float, runs: int
) -> dict[str, list[float]]:
    """Ridge with noise on its answer (Chaudhuri and others 2011), each target with a whole ε to itself."""
    here = place(data, dataset)
    d = len(here.truth)
    exact, others = ridge_residuals(here.truth, penalty=here.penalty), ~np.eye(d, dtype=bool)
    made = []
    for _ in range(runs):
        residuals = exact.copy()
        residuals[others] -= np.concatenate(
            [
                answer_noise(randomness, count=d - 1, rows=here.rows, penalty=2 * LAMBDA, epsilon=epsilon)
                for _ in range(d)
            ]
        )
        made.append(here.residual_error(residuals))
    return {"ridge": made}


def simulated(
    data: Datasets,
    randomness: Randomness,
    *,
    spectrum: str,
    columns: int,
    rows: int,
    constants: str,
    method: str,
    runs: int,
) -> dict[str, list[float]]:
    """Frobenius errors on normal rows of norm 1 at ε = 1, each run with a table of its own, and of zero."""
    made: dict[str, list[float]] = {"frobenius": [], "zero": []}
    for _ in range(runs):
        here = _simulated(randomness, spectrum, columns, rows)
        matrix = answered(randomness, here, constants, method, _EPSILON)
        made["frobenius"].append(here.frobenius_error(matrix))
        made["zero"].append(here.frobenius_error(np.zeros_like(matrix)))
    return made


def proposals(
    data: Datasets,
    randomness: Randomness,
    *,
    dataset: str,
    constants: str,
    method: str,
    epsilon: float,
    runs: int,
) -> dict[str, list[int]]:
    """How many proposals each vector took, the envelope tuned anew for every vector."""
    here = place(data, dataset)
    counts: list[int] = []
    for _ in range(runs):
        rest = here.truth
        for exponent in _exponents(randomness, here, constants, method, epsilon)[:-1]:
            vector, tried = sample_bingham(randomness, rest, concentration=float(exponent))
            counts.append(tried)
            beside = np.linalg.qr(vector[:, None], mode="complete").Q[:, 1:]
            rest = beside.T @ rest @ beside
            rest = (rest + rest.T) / 2
    return {"counts": counts}


def answered(randomness: Randomness, here: Place, constants: str, method: str, epsilon: float) -> Floats:
    """One private matrix by a method of Figure 1, or of ours, with one set of constants."""
    if constants == "code":
        return by_public_code(randomness, here, label=method, epsilon=epsilon)
    published = constants == "published"
    return METHODS[method].release(randomness, here, epsilon=epsilon, as_published=published)


def cells(effort: Effort) -> Iterator[Cell]:
    """The grid of Figure 1 with every set of constants, then the sweeps that stand for appendix C."""
    runs = effort.runs(RUNS)
    lines = [("published", method) for method in PAPER]
    if not effort.published_only:
        lines += [("code", method) for method in PAPER]
        lines += [("tight", method) for method in (*PAPER, *OURS)]
    for dataset in TABLES:
        epsilons = EPSILONS if not effort.quick else (1.0,) if dataset == "adult" else (0.01, 1.0)
        yield Cell(function="facts", arguments={"dataset": dataset}, cost=0.5)
        for epsilon in epsilons:
            at = {"dataset": dataset, "epsilon": epsilon}
            for constants, method in lines:
                yield Cell(
                    function="errors",
                    arguments={**at, "constants": constants, "method": method, "runs": runs},
                    cost=runs * _cost(method, 108 if dataset == "adult" else 13),
                )
            yield Cell(function="perturbed", arguments={**at, "runs": runs}, cost=runs * 0.01)
        for epsilon in (*epsilons, SATURATED):
            for constants in dict.fromkeys(constants for constants, _ in lines if constants != "tight"):
                for method in ("AD", "IT-U"):
                    at = {"dataset": dataset, "constants": constants, "method": method, "epsilon": epsilon}
                    arguments = {**at, "runs": effort.runs(10, quick=1)}
                    yield Cell(function="proposals", arguments=arguments, cost=1.0)
    yield from _sweeps(effort, runs)


def _sweeps(effort: Effort, runs: int) -> Iterator[Cell]:
    dimensions = DIMENSIONS[:2] if effort.quick else DIMENSIONS
    sizes = SIZES[:2] if effort.quick else SIZES
    lines = [("published", method) for method in SWEPT if method in PAPER]
    if not effort.published_only:
        lines += [("tight", method) for method in SWEPT]
    shapes = [(spectrum, d, ROWS) for spectrum in SPECTRA for d in dimensions]
    shapes += [("decaying", COLUMNS, n) for n in sizes]
    for spectrum, d, n in shapes:
        for constants, method in lines:
            arguments = {"spectrum": spectrum, "columns": d, "rows": n, "constants": constants}
            yield Cell(
                function="simulated",
                arguments={**arguments, "method": method, "runs": runs},
                cost=runs * (_cost(method, d) + 3e-8 * n * d),
            )


def _cost(method: str, dimension: int) -> float:
    share = 0.14 if method == "KT" else 0.06 if method.endswith("repaired") else 0.025
    return share * dimension / 108


def _simulated(randomness: Randomness, spectrum: str, columns: int, rows: int) -> Place:
    drawn = randomness.normals(rows, columns)
    if spectrum == "decaying":
        drawn /= np.arange(1, columns + 1)
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    return Place.of(drawn)


def _exponents(randomness: Randomness, here: Place, constants: str, method: str, epsilon: float) -> Floats:
    """Of all d rounds: εᵢ/4 as printed, εᵢ by Corollary 1 or all alike, or those of the public code."""
    d = len(here.truth)
    if constants == "code":
        share, exponents = code_split(method, d, here.rows, epsilon)
        return exponents(private_eigenvalues(randomness, here, scale=1 / share, most=here.rows))
    weights = np.ones(d)
    if method == "AD":
        values = private_eigenvalues(randomness, here, scale=4 / epsilon, most=here.rows)
        weights = np.array(corollary_one(values.tolist(), noise_scale=4 / epsilon, failure=FAILURE))
    return epsilon / 8 * weights_of_one(weights)
