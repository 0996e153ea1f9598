"""Output perturbation and AdaSSP: sensitivities attacked, noise of the stated size, constants of the papers.

Statistical checks are two-sided at 6 standard errors on fixed streams (false alarm 2e-9 each, under 1e-7 in the
file); with 4 000 draws they find noise wrong by 10 %, and the canary is noise of half the size.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from privcov.accounting import gaussian_delta
from privcov.errors import PrivcovError
from privcov.noise.randomness import rehearsal
from privcov.privacy import ApproxDP, PureDP
from privcov_lab.experiments.adassp import _largest_noise, adassp, noise_multiplier
from privcov_lab.experiments.output_perturbation import answer_sensitivity, output_perturbation, unit_rows

LOSS = ApproxDP(epsilon=1, delta="1e-6", neighbours="add-remove")
TRUE = np.array([0.5, -0.3, 0.1])


def table(n, seed=1):
    rng = np.random.default_rng(seed)
    rows = unit_rows(rng.normal(size=(n, 3)))
    return rows, np.clip(rows @ TRUE + 0.05 * rng.normal(size=n), -1, 1)


def ridge(rows, targets, penalty):
    n, d = rows.shape
    return np.linalg.solve(rows.T @ rows / n + penalty * np.eye(d), rows.T @ targets / n)


@pytest.mark.parametrize("penalty", [0.003, 0.1, 1.0])
def test_one_replaced_person_moves_the_minimiser_by_at_most_the_sensitivity(penalty):
    """Random and extreme tables: never above the bound, and at a large penalty within a factor of 3 of it."""
    rng, n, largest = np.random.default_rng(2), 10, 0.0
    for attempt in range(300):
        rows, targets = unit_rows(rng.normal(size=(n, 2)) * 3), rng.choice([-1.0, 1.0], n)
        if attempt % 2:  # everyone alike but one, who says the opposite
            rows, targets = np.tile([1.0, 0.0], (n, 1)), np.ones(n)
            rows[1:] *= rng.uniform(0, 0.2)
        other_rows, other_targets = rows.copy(), targets.copy()
        other_targets[0] = -other_targets[0]
        if attempt % 3 == 0:
            other_rows[0] = unit_rows(rng.normal(size=(1, 2)) * rng.uniform(0, 2))[0]
        moved = ridge(rows, targets, penalty) - ridge(other_rows, other_targets, penalty)
        largest = max(largest, np.linalg.norm(moved))
    bound = answer_sensitivity(rows=n, penalty=penalty)
    assert largest <= bound
    assert penalty < 1 or largest > bound / 3


def noise_is_off(lengths, d, scale):
    """Two-sided: whether the mean length is 6 standard errors from that of a Gamma(d) of this scale."""
    return abs(np.mean(lengths) - d * scale) > 6 * math.sqrt(d) * scale / math.sqrt(len(lengths))


def test_output_perturbation_adds_noise_of_the_stated_law():
    rows, targets = table(200)
    best, randomness, lengths, directions = ridge(rows, targets, 0.1), rehearsal(3), [], []
    for _ in range(4000):
        fit = output_perturbation(rows, targets, epsilon=2, penalty=0.1, randomness=randomness)
        noise = fit.coefficients - best
        lengths.append(np.linalg.norm(noise))
        directions.append(noise / lengths[-1])
    scale = 2 * (1 + 1 / math.sqrt(0.1)) / (200 * 0.1 * 2)
    assert fit.loss == PureDP(epsilon=2, neighbours="replace-one")
    assert fit.arithmetic == "idealized"
    assert not noise_is_off(lengths, 3, scale)
    assert noise_is_off(np.array(lengths) / 2, 3, scale)  # canary
    assert np.abs(np.mean(directions, axis=0)).max() < 6 / math.sqrt(3 * 4000)


def test_output_perturbation_tends_to_ridge_and_refuses_no_penalty():
    rows, targets = table(500)
    fit = output_perturbation(rows, targets, epsilon=10**9, penalty=0.1, randomness=rehearsal(4))
    assert fit.coefficients == pytest.approx(ridge(rows, targets, 0.1), abs=1e-6)
    for bad in (0.0, -1.0, math.nan):
        with pytest.raises(PrivcovError, match="E209"):
            output_perturbation(rows, targets, epsilon=1, penalty=bad, randomness=rehearsal(4))


def test_rows_beyond_the_bound_are_cut_to_it():
    assert np.linalg.norm(unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]])), axis=1).tolist() == [1.0, 0.0]
    assert unit_rows(np.array([[0.3, 0.4]])).tolist() == [[0.3, 0.4]]


def test_the_multipliers_are_those_of_the_specification():
    """σ = 11.85 as published, 7.32 with exact composition of three, √2/μ = 5.97 of two, at (1, 1e-6)."""
    assert noise_multiplier(LOSS, constants="published", answers=3) == pytest.approx(11.85, abs=0.01)
    assert noise_multiplier(LOSS, constants="exact", answers=3) == pytest.approx(7.32, abs=0.01)
    assert noise_multiplier(LOSS, constants="exact", answers=2) == pytest.approx(5.975, abs=0.01)


@pytest.mark.parametrize("answers", [2, 3])
def test_the_answers_together_cost_what_is_stated_and_one_percent_less_noise_costs_more(answers):
    std = Fraction(noise_multiplier(LOSS, constants="exact", answers=answers))
    for factor, kept in ((Fraction(1), True), (Fraction(99, 100), False)):
        joint = Fraction(math.sqrt(answers)) / (std * factor)
        assert (gaussian_delta(mu=joint, epsilon=1) <= LOSS.delta) is kept


def test_published_constants_that_break_their_promise_are_refused():
    with pytest.raises(PrivcovError, match="E203"):
        noise_multiplier(
            ApproxDP(epsilon=60, delta="0.1", neighbours="add-remove"), constants="published", answers=3
        )
    with pytest.raises(PrivcovError, match="E209"):
        adassp(
            *table(20), epsilon=1, delta="1e-6", randomness=rehearsal(5), constants="published",
            least_eigenvalue="weyl",
        )  # fmt: skip


def error(n, draws=300, **words):
    rows, targets = table(n)
    best, randomness = np.linalg.lstsq(rows, targets, rcond=None)[0], rehearsal(6)
    fits = [
        adassp(rows, targets, epsilon=1, delta="1e-6", randomness=randomness, **words) for _ in range(draws)
    ]
    assert all(fit.loss == LOSS for fit in fits)
    return np.mean([np.linalg.norm(fit.coefficients - best) for fit in fits])


def test_exact_composition_and_weyl_beat_the_published_split():
    published, exact, weyl = (
        error(2000, constants="published"),
        error(2000),
        error(2000, least_eigenvalue="weyl"),
    )
    assert exact < 0.8 * published
    assert weyl < 0.95 * exact


def test_with_many_people_adassp_is_least_squares():
    for words in ({}, {"least_eigenvalue": "weyl"}, {"constants": "published"}):
        assert error(200_000, draws=3, **words) < 0.002


def test_the_largest_noise_eigenvalue_is_below_its_bound_at_the_stated_rate():
    """1 000 draws: fewer than 5 % are above; the bound is not vacuous either."""
    for d in (1, 3, 20):
        noise = rehearsal(7).normals(1000, d, d)
        largest = np.linalg.eigvalsh((noise + noise.transpose(0, 2, 1)) / 2)[:, -1]
        assert (largest > _largest_noise(d, 0.05)).mean() <= 0.05
        assert np.quantile(largest, 0.95) > 0.4 * _largest_noise(d, 0.05)
