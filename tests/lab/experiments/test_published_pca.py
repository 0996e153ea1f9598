"""The baselines of 2016: their laws are those of the paper, their prices are right, and none of them can release.

Three statistical checks on fixed streams. The quick Gibbs sampler against uniform rejection: 4 features, two-sided at
|z| > 6.5 (false alarm below 1e-9); it finds a coefficient wrong by a factor of 2. Its columns against the plain
sampler's at 12 dimensions: |z| > 5 on 12 features (1e-5). The betrayals of SN, which is WITHDRAWN, against 1 − e^(−ε):
2000 draws, |z| > 5 (6e-7); it finds a rate wrong by 6 points.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

from privcov.errors import PrivcovError
from privcov.mechanisms import MECHANISMS
from privcov.noise.randomness import rehearsal
from privcov_lab.experiments.gibbs import gibbs_subspace
from privcov_lab.experiments.gibbs_columns import gibbs_columns
from privcov_lab.experiments.published_power import (
    power_iterates,
    published_iterations,
    published_multiplier,
    row_multiplier,
)
from privcov_lab.experiments.withdrawn_wishart import WITHDRAWN, betrays, withdrawn_noise

VALUES = np.array([3.0, 1.0, 0.5, 0.0])


@cache
def reference():
    rng = np.random.default_rng(5)
    squares = (np.linalg.qr(rng.normal(size=(200_000, 4, 2))).Q ** 2).sum(2)
    kept = squares[np.log(rng.random(len(squares))) < squares @ VALUES - VALUES[:2].sum()]
    return kept.mean(0), kept.std(0) / math.sqrt(len(kept))


def seen(sampler, values, *, concentration, rank, sweeps, runs):
    source = rehearsal(4)
    frames = [
        sampler(source, np.diag(values), concentration=concentration, rank=rank, sweeps=sweeps)
        for _ in range(runs)
    ]
    squares = (np.array(frames) ** 2).sum(2)
    return squares.mean(0), squares.std(0) / math.sqrt(runs)


def largest_z(one, other):
    return float(np.abs((one[0] - other[0]) / np.hypot(one[1], other[1])).max())


@pytest.mark.long
def test_quick_sweeps_come_near_the_law_of_an_easy_case():
    assert (
        largest_z(seen(gibbs_columns, VALUES, concentration=1.0, rank=2, sweeps=4, runs=300), reference())
        < 6.5
    )


@pytest.mark.long
def test_a_wrong_coefficient_of_quick_sweeps_is_seen():
    """Canary."""
    made = seen(gibbs_columns, VALUES, concentration=2.0, rank=2, sweeps=4, runs=300)
    assert largest_z(made, reference()) > 6.5


@pytest.mark.parametrize("concentration", [0.02, 0.5])
@pytest.mark.long
def test_quick_and_plain_sweeps_have_one_law(concentration):
    """A spectrum of 12, loose and concentrated, after the same number of sweeps from the same kind of start."""
    values = np.array([90.0, 60.0, 40.0, 20.0, *np.linspace(9, 1, 8)])
    words = {"concentration": concentration, "rank": 3, "sweeps": 2, "runs": 120}
    assert largest_z(seen(gibbs_columns, values, **words), seen(gibbs_subspace, values, **words)) < 5


def test_quick_sweeps_give_a_plain_orthonormal_array_in_the_matrix_own_coordinates():
    turn = np.linalg.qr(rehearsal(2).normals(30, 30)).Q
    matrix = (turn * np.append([500.0, 400.0], np.ones(28))) @ turn.T
    frame = gibbs_columns(rehearsal(1), (matrix + matrix.T) / 2, concentration=5.0, rank=2, sweeps=3)
    assert type(frame) is np.ndarray
    assert frame.T @ frame == pytest.approx(np.eye(2), abs=1e-12)
    assert np.linalg.norm(turn[:, :2].T @ frame) ** 2 > 1.9


@pytest.mark.parametrize("words", [{"rank": 0}, {"rank": 4}, {"sweeps": 0}])
def test_bad_parameters_of_quick_sweeps_are_refused(words):
    with pytest.raises(PrivcovError, match="E224"):
        gibbs_columns(rehearsal(1), np.eye(4), concentration=1.0, **{"rank": 2, "sweeps": 1, **words})


def test_the_withdrawn_noise_is_wishart_of_one_degree_more_than_columns():
    """Mean (d + 1)/(2ε)·I and variance (d + 1)/(2ε²) on the diagonal, within 5 standard errors."""
    d, epsilon, draws, source = 3, 0.5, 4000, rehearsal(1)
    diagonal = np.array(
        [np.diag(withdrawn_noise(source, dimension=d, epsilon=epsilon)) for _ in range(draws)]
    )
    std = math.sqrt((d + 1) / 2) / epsilon
    assert diagonal.mean() == pytest.approx((d + 1) / (2 * epsilon), abs=5 * std / math.sqrt(3 * draws))
    assert diagonal.std() == pytest.approx(std, rel=0.1)


def test_the_withdrawn_noise_betrays_an_absent_row_as_often_as_predicted():
    source, row, draws = rehearsal(3), np.array([0.6, 0.0, 0.8]), 2000
    found = sum(betrays(withdrawn_noise(source, dimension=3, epsilon=0.5), row) for _ in range(draws))
    rate = 1 - math.exp(-0.5)
    assert abs(found / draws - rate) < 5 * math.sqrt(rate * (1 - rate) / draws)


def test_a_betrayal_is_a_negative_eigenvalue():
    """The quick criterion against the slow one; both answers occur."""
    source, row = rehearsal(5), np.array([0.6, 0.0, 0.8])
    noises = [withdrawn_noise(source, dimension=3, epsilon=0.5) for _ in range(50)]
    slow = [bool(np.linalg.eigvalsh(noise - np.outer(row, row))[0] < 0) for noise in noises]
    assert [betrays(noise, row) for noise in noises] == slow
    assert set(slow) == {True, False}


def test_the_withdrawn_mechanism_is_labelled_plain_and_unregistered():
    assert "WITHDRAWN" in WITHDRAWN
    assert type(withdrawn_noise(rehearsal(1), dimension=2, epsilon=1.0)) is np.ndarray
    assert "sn" not in MECHANISMS


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf])
def test_an_epsilon_that_is_none_is_refused(epsilon):
    with pytest.raises(PrivcovError, match="E203"):
        withdrawn_noise(rehearsal(1), dimension=2, epsilon=epsilon)


def test_iterations_follow_the_gap_of_the_singular_values():
    """σ = 3, 2, 1: the relative gap after the first is 1/3, after the second 1/2."""
    spectrum = np.array([9.0, 4.0, 1.0])
    assert published_iterations(spectrum, rank=1) == math.ceil(3 * math.log(3))
    assert published_iterations(spectrum, rank=2) == math.ceil(2 * math.log(3))
    for rank in (0, 3):
        with pytest.raises(PrivcovError, match="E224"):
            published_iterations(spectrum, rank=rank)
    with pytest.raises(PrivcovError, match="E224"):
        published_iterations(np.array([4.0, 4.0, 1.0]), rank=1)


def test_multipliers_are_those_the_paper_prints():
    words = {"epsilon": 0.5, "rank": 10, "iterations": 6, "dimension": 100}
    assert published_multiplier(delta=0.01, **words) == pytest.approx(math.sqrt(240 * math.log(100)) / 0.5)
    assert published_multiplier(delta=0.0, **words) == pytest.approx(10 * 60 * 10 / 0.5)
    with pytest.raises(PrivcovError, match="E203"):
        published_multiplier(delta=1.0, **words)


@pytest.mark.parametrize("noise", ["normal", "laplace"])
def test_iterates_are_orthonormal_and_find_the_leading_directions_when_noise_is_small(noise):
    matrix = np.diag([50.0, 40.0, 1.0, 0.5, 0.1])
    made = list(power_iterates(rehearsal(1), matrix, rank=2, iterations=8, multiplier=0.01, noise=noise))
    assert len(made) == 9
    for basis in made:
        assert basis.T @ basis == pytest.approx(np.eye(2), abs=1e-12)
    assert np.linalg.norm(made[-1][:2]) ** 2 > 1.999


@pytest.mark.parametrize(("noise", "std"), [("normal", 1.0), ("laplace", math.sqrt(2))])
def test_noise_is_scaled_by_the_largest_entry(noise, std):
    """With C = 10⁹·I a step moves the basis by its noise alone, a billionth of it."""
    d, chi = 40, 5.0
    first, second = power_iterates(
        rehearsal(3), 1e9 * np.eye(d), rank=1, iterations=1, multiplier=chi, noise=noise
    )
    drawn = (second * np.sign(second[0] * first[0]) - first) * 1e9 / np.abs(first).max() / chi
    assert drawn.std() == pytest.approx(
        std, rel=0.5
    )  # 40 draws; finds a forgotten largest entry, a factor of 2 and more
    assert 1 / np.abs(first).max() > 2


def test_the_price_of_equal_rows_is_the_one_on_the_refuted_page():
    """From the second basis on it is the row itself: μ = √(d(L − 1))/χ, and the first adds little."""
    d, steps = 64, 10
    row = np.full((d, 1), 1 / math.sqrt(d))
    price = row_multiplier([row] * (steps - 1), multiplier=3.0)
    assert price == pytest.approx(math.sqrt(d * (steps - 1)) / 3.0)


def test_no_row_costs_more_than_the_price_and_one_costs_it():
    """Random unit rows climb to the worst one by power iteration on their own cost."""
    rng = np.random.default_rng(1)
    half = rng.normal(size=(8, 8))
    made = list(power_iterates(rehearsal(1), half @ half.T, rank=3, iterations=5, multiplier=2.0))
    price = row_multiplier(made, multiplier=2.0)
    rows = rng.normal(size=(100, 8))
    for _ in range(400):
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        costs = sum(np.linalg.norm(rows @ x, axis=1) ** 2 / (np.abs(x).max() * 2.0) ** 2 for x in made)
        assert math.sqrt(costs.max()) <= price * (1 + 1e-12)
        rows = sum(rows @ x @ x.T / np.abs(x).max() ** 2 for x in made)
    assert math.sqrt(costs.max()) == pytest.approx(price, rel=1e-6)
