"""The Gibbs sampler is near its law, gives a plain array, and no module that can make a release knows of it.

One statistical check: the mean diagonal of the projector against uniform rejection by another generator, 4 features,
two-sided at |z| > 6.5 (false alarm below 1e-9), fixed streams. It finds a coefficient wrong by a factor of 2.
"""

from __future__ import annotations

import ast
import math
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import privcov
from privcov.errors import PrivcovError
from privcov.noise.randomness import rehearsal
from privcov_lab.experiments.gibbs import gibbs_subspace

SOURCE = Path(privcov.__file__).parent
VALUES = np.array([3.0, 1.0, 0.5, 0.0])


@cache
def reference():
    rng = np.random.default_rng(5)
    squares = (np.linalg.qr(rng.normal(size=(200_000, 4, 2))).Q ** 2).sum(2)
    kept = squares[np.log(rng.random(len(squares))) < squares @ VALUES - VALUES[:2].sum()]
    return kept.mean(0), kept.std(0) / math.sqrt(len(kept))


def fits(concentration):
    source = rehearsal(4)
    frames = [
        gibbs_subspace(source, np.diag(VALUES), concentration=concentration, rank=2, sweeps=4)
        for _ in range(600)
    ]
    seen = (np.array(frames) ** 2).sum(2)
    mean, error = reference()
    z = (seen.mean(0) - mean) / np.hypot(seen.std(0) / math.sqrt(len(seen)), error)
    return bool(np.abs(z).max() < 6.5)


@pytest.mark.long
def test_a_few_sweeps_come_near_the_law_of_an_easy_case():
    assert fits(1.0)


@pytest.mark.long
def test_a_wrong_coefficient_is_seen():
    """Canary."""
    assert not fits(2.0)


def imported(path):
    """Every module a file names in an import, wherever in it."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {str(node.module)} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def reaches_experiments(path):
    return any(name.startswith("privcov_lab") for name in imported(path))


def test_nothing_of_the_library_imports_an_experiment():
    files = sorted(SOURCE.rglob("*.py"))
    assert len(files) > 200
    assert not [path.name for path in files if reaches_experiments(path)]


def test_an_import_of_an_experiment_would_be_seen(tmp_path):
    """Canary: both ways to write it, inside a function too."""
    for number, line in enumerate(
        ["from privcov_lab.experiments.gibbs import gibbs_subspace", "from privcov_lab import experiments"]
    ):
        path = tmp_path / f"{number}.py"
        path.write_text(f"def hidden():\n    {line}\n")
        assert reaches_experiments(path)


def test_the_result_is_a_plain_array_of_orthonormal_columns():
    frame = gibbs_subspace(rehearsal(1), np.diag(VALUES), concentration=5.0, rank=2, sweeps=2)
    assert type(frame) is np.ndarray
    assert frame.T @ frame == pytest.approx(np.eye(2), abs=1e-12)


@pytest.mark.parametrize("words", [{"rank": 0}, {"rank": 4}, {"sweeps": 0}])
def test_bad_parameters_are_refused(words):
    with pytest.raises(PrivcovError, match="E224"):
        gibbs_subspace(rehearsal(1), np.eye(4), concentration=1.0, **{"rank": 2, "sweeps": 1, **words})
