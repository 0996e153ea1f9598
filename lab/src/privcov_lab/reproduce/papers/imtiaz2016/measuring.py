"""What is measured: one function a cell, as ``study`` wants them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats
from privcov.noise.randomness import Randomness
from privcov_lab.experiments.withdrawn_wishart import betrays, withdrawn_noise
from privcov_lab.reproduce.datasets import Datasets
from privcov_lab.reproduce.papers.imtiaz2016.methods import (
    METHODS,
    Problem,
    leading,
    power_price,
    private_pca,
)
from privcov_lab.reproduce.papers.imtiaz2016.tables import RANKS, Split, rows_of, split_of


def captured(
    data: Datasets,
    randomness: Randomness,
    *,
    figure: int,
    dataset: str,
    methods: Sequence[str],
    epsilon: float,
    rows: int,
    runs: int,
) -> dict[str, Any]:
    """Captured variance of the methods in percent of the best, one number a run; ``figure`` only says what for."""
    problem = Problem(rows=rows_of(data, dataset, rows), rank=RANKS[dataset])
    return {
        "captured": {
            name: [problem.captured(METHODS[name](problem, epsilon, randomness)) for _ in range(runs)]
            for name in methods
        },
        "held": 100 * problem.most / float(problem.spectrum.sum()),
        "iterations": problem.iterations,
    }


def classified(
    data: Datasets,
    randomness: Randomness,
    *,
    dataset: str,
    methods: Sequence[str],
    epsilon: float,
    rows: int,
    runs: int,
) -> dict[str, Any]:
    """Test errors in percent of a linear support vector machine on the projected rows, one a run, and the SVD's."""
    split = split_of(data, dataset, rows)
    problem = Problem(rows=split.train, rank=RANKS[dataset])
    return {
        "best": _error(split, leading(problem.moment, problem.rank)),
        "errors": {
            name: [_error(split, METHODS[name](problem, epsilon, randomness)) for _ in range(runs)]
            for name in methods
        },
    }


def betrayed(
    data: Datasets, randomness: Randomness, *, dimension: int, epsilon: float, draws: int
) -> dict[str, Any]:
    """How often SN, which is WITHDRAWN, proves that a row is absent, and the spectral norms of its noise."""
    noises = [withdrawn_noise(randomness, dimension=dimension, epsilon=epsilon) for _ in range(draws)]
    row = np.eye(dimension)[0]
    return {
        "betrayed": sum(betrays(noise, row) for noise in noises),
        "norm": float(np.mean([np.linalg.norm(noise, 2) for noise in noises[:20]])),
    }


def swept(
    data: Datasets, randomness: Randomness, *, dataset: str, epsilon: float, rows: int, sweeps: int, runs: int
) -> dict[str, Any]:
    """Captured variance of PPCA after so many sweeps: where it stops to rise, more would change nothing we see."""
    problem = Problem(rows=rows_of(data, dataset, rows), rank=RANKS[dataset])
    made = (private_pca(problem, epsilon, randomness, sweeps=sweeps) for _ in range(runs))
    return {"captured": [problem.captured(basis) for basis in made]}


def priced(
    data: Datasets, randomness: Randomness, *, dataset: str, epsilon: float, rows: int, runs: int
) -> dict[str, Any]:
    """What the published power method costs a person: μ of each run for the worst row of norm 1, in or out."""
    problem = Problem(rows=rows_of(data, dataset, rows), rank=RANKS[dataset])
    return {
        "mu": [power_price(problem, epsilon, randomness) for _ in range(runs)],
        "dimension": problem.dimension,
        "iterations": problem.iterations,
    }


def _error(split: Split, basis: Floats) -> float:
    """Percent of the test rows on the wrong side; features to unit variance, as ``svmtrain`` does by default."""
    train, test = split.train @ basis, split.test @ basis
    middle, spread = train.mean(axis=0), train.std(axis=0)
    machine = _machine().fit((train - middle) / spread, split.train_labels)
    return 100 * float(np.mean(machine.predict((test - middle) / spread) != split.test_labels))


def _machine() -> Any:
    try:
        from sklearn.svm import LinearSVC
    except ImportError:
        raise ParameterError(
            "E266", "the classification table needs scikit-learn.", "Run pip install 'privcov[sklearn]'."
        ) from None
    return LinearSVC(dual=False)
