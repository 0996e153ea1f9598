"""The methods compared in 2016, by the paper's names, and beside them the mechanisms that keep their promise.

A method takes a problem, ε and randomness, and gives an orthonormal basis of k columns. The paper's neighbours differ
in a replaced row, and ours are run under that relation. AG has the noise of its own paper, for a row in or out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import numpy as np
from scipy.linalg import eigh

from privcov.linalg.arrays import Floats
from privcov.mechanisms.base import AdditiveMechanism
from privcov.mechanisms.gaussian import Gaussian
from privcov.mechanisms.power_method import PowerMethod
from privcov.mechanisms.symmetric_wishart import SymmetricWishart
from privcov.noise.randomness import Randomness
from privcov.privacy import ApproxDP, Loss, PureDP
from privcov.schema import Schema
from privcov.schema.grid import Grid
from privcov.summing.gram import Gram
from privcov.summing.sum import sum_rows
from privcov.table import open_table
from privcov_lab.experiments.gibbs import gibbs_subspace
from privcov_lab.experiments.gibbs_columns import gibbs_columns
from privcov_lab.experiments.published_power import (
    power_iterates,
    published_iterations,
    published_multiplier,
    row_multiplier,
)
from privcov_lab.experiments.withdrawn_wishart import WITHDRAWN, withdrawn_noise

DELTA = "0.00001"
"""Not stated in the paper; here below one over the rows of every table."""
SWEEPS = 5
MOST_ITERATIONS = 200
"""Of the published power method on the way to a subspace, whose noise is that of all L: by then it has settled."""
PUBLISHED = ("AG", "PPM", "PPM, δ = 0", "PPCA", WITHDRAWN)
OURS = ("gaussian", "power-method", "symmetric-wishart")
RANDOM = "random subspace"
PROMISES = {
    "AG": "(ε, δ), a row in or out",
    "PPM": "(ε, δ), one entry, L aside",
    "PPM, δ = 0": "ε, one entry, L aside",
    "PPCA": "ε, up to the error of its sampler",
    WITHDRAWN: "none",
    "gaussian": "(ε, δ), a row replaced",
    "power-method": "(ε, δ), a row replaced",
    "symmetric-wishart": "ε, a row replaced",
    RANDOM: "looks at nothing",
}
"""What each method keeps, which is not always what was said."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """Rows of norm at most 1, and how many directions are wanted of their second moment."""

    rows: Floats
    rank: int

    @cached_property
    def moment(self) -> Floats:
        return np.asarray(self.rows.T @ self.rows)

    @cached_property
    def spectrum(self) -> Floats:
        """Descending eigenvalues of the moment."""
        return np.asarray(np.linalg.eigvalsh(self.moment)[::-1], dtype=np.float64)

    @property
    def dimension(self) -> int:
        return self.rows.shape[1]

    @cached_property
    def grid(self) -> Grid:
        return Grid.of(self._schema)

    @cached_property
    def gram(self) -> Gram:
        return sum_rows(open_table(self.rows, self._schema), self._schema, self.grid)

    @cached_property
    def _schema(self) -> Schema:
        columns = {f"c{i}": {"lower": -1, "upper": 1} for i in range(self.dimension)}
        return Schema.from_dict({"intercept": False, "row_norm_bound": 1, "columns": columns})

    @property
    def iterations(self) -> int:
        """The L of the published power method, from the table's own spectrum."""
        return published_iterations(self.spectrum, rank=self.rank)

    def captured(self, basis: Floats) -> float:
        """tr VᵀAV in percent of the most that k directions can hold."""
        return 100 * float(np.vdot(basis, self.moment @ basis)) / self.most

    @property
    def most(self) -> float:
        """What the best k directions hold."""
        return float(self.spectrum[: self.rank].sum())


Method = Callable[[Problem, float, Randomness], Floats]


def leading(matrix: Floats, rank: int) -> Floats:
    """The eigenvectors of the largest eigenvalues."""
    d = len(matrix)
    return np.asarray(eigh(matrix, subset_by_index=(d - rank, d - 1))[1])


def approximate(epsilon: float, neighbours: str) -> ApproxDP:
    return ApproxDP(epsilon=epsilon, delta=DELTA, neighbours=neighbours)


def _noisy(mechanism: AdditiveMechanism, loss: Loss, problem: Problem, randomness: Randomness) -> Floats:
    noise = mechanism.law(loss=loss, grid=problem.grid).simulate(randomness)
    return leading(problem.moment + noise, problem.rank)


def _analyze_gauss(problem: Problem, epsilon: float, randomness: Randomness) -> Floats:
    loss = approximate(epsilon, "add-remove")
    return _noisy(Gaussian(constants="published"), loss, problem, randomness)


def _gaussian(problem: Problem, epsilon: float, randomness: Randomness) -> Floats:
    return _noisy(Gaussian(), approximate(epsilon, "replace-one"), problem, randomness)


def _symmetric_wishart(problem: Problem, epsilon: float, randomness: Randomness) -> Floats:
    return _noisy(SymmetricWishart(), PureDP(epsilon=epsilon, neighbours="replace-one"), problem, randomness)


def _withdrawn(problem: Problem, epsilon: float, randomness: Randomness) -> Floats:
    noise = withdrawn_noise(randomness, dimension=problem.dimension, epsilon=epsilon)
    return leading(problem.moment + noise, problem.rank)


def _published_power(delta: float) -> Method:
    def power(problem: Problem, epsilon: float, randomness: Randomness) -> Floats:
        *_, last = power_iterates(
            randomness,
            problem.moment,
            rank=problem.rank,
            iterations=min(problem.iterations, MOST_ITERATIONS),
            multiplier=multiplier(problem, epsilon, delta),
            noise="normal" if delta else "laplace",
        )
        return last

    return power


def multiplier(problem: Problem, epsilon: float, delta: float) -> float:
    """The χ of the paper for this problem."""
    return published_multiplier(
        epsilon=epsilon,
        delta=delta,
        rank=problem.rank,
        iterations=problem.iterations,
        dimension=problem.dimension,
    )


def power_price(problem: Problem, epsilon: float, randomness: Randomness) -> float:
    """The μ that one run of the published power method costs the worst row, in or out."""
    chi = multiplier(problem, epsilon, float(DELTA))
    steps = problem.iterations
    made = power_iterates(randomness, problem.moment, rank=problem.rank, iterations=steps, multiplier=chi)
    return row_multiplier(islice(made, steps), multiplier=chi)  # all but the last are asked about


def _power_method(problem: Problem, epsilon: float, randomness: Randomness) -> Floats:
    mechanism = PowerMethod(rank=problem.rank, arithmetic="idealized")
    loss, d = approximate(epsilon, "replace-one"), problem.dimension
    upper = mechanism.draw(loss=loss, grid=problem.grid, randomness=randomness).answer(problem.gram)
    released = np.zeros((d, d))
    released[np.triu_indices(d)] = upper.astype(np.float64)
    # A value may be noised below zero, where its vector would come last: order by size, as the vectors were found.
    values, vectors = np.linalg.eigh(released + np.triu(released, 1).T)
    return np.asarray(vectors[:, np.argsort(np.abs(values))[-problem.rank :]])


def private_pca(problem: Problem, epsilon: float, randomness: Randomness, *, sweeps: int = SWEEPS) -> Floats:
    """PPCA: about exp((ε/2)·tr VᵀAV), whose exponent is right for a replaced row, by sweeps of a Gibbs sampler."""
    sampler = (
        gibbs_subspace if problem.dimension <= 128 else gibbs_columns
    )  # the same law; whichever is quicker
    return sampler(randomness, problem.moment, concentration=epsilon / 2, rank=problem.rank, sweeps=sweeps)


def _random(problem: Problem, epsilon: float, randomness: Randomness) -> Floats:
    return np.linalg.qr(randomness.normals(problem.dimension, problem.rank)).Q


METHODS: dict[str, Method] = {
    "AG": _analyze_gauss,
    "PPM": _published_power(float(DELTA)),
    "PPM, δ = 0": _published_power(0.0),
    "PPCA": private_pca,
    WITHDRAWN: _withdrawn,
    "gaussian": _gaussian,
    "power-method": _power_method,
    "symmetric-wishart": _symmetric_wishart,
    RANDOM: _random,
}
