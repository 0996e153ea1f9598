"""One private round: its noise has the calibrated scale, its shares add up, its projection is one.

Nine variance tests, two-sided at 1e-7 each (χ²): false alarms below 1e-6. They find a scale that is wrong by √2,
planted in each.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

import privcov as pc
from privcov.noise.randomness import rehearsal
from privcov.unbounded import covariance, entry
from privcov.unbounded.moments import Ball, mean_variance, noisy_mean, noisy_second_moment, projected

RHO = pc.ZCDP(rho="0.3", neighbours="replace-one")


def wrong_variance(values, variance):
    """Whether independent centred normals of this variance would hardly look like ``values``."""
    total = float((np.asarray(values) ** 2).sum()) / variance
    return not chi2.ppf(5e-8, len(values)) <= total <= chi2.isf(5e-8, len(values))


@pytest.mark.parametrize("radius", [0.3, 1.0, 7.0])
def test_the_noise_of_a_second_moment_is_that_of_replace_one(radius):
    """σ = √2 R²/(n√(2ρ)) on the diagonal about its mean, σ/√2 off it; 900 and 600 numbers."""
    ball, n, randomness = Ball(dimension=3, radius=radius), 50, rehearsal(11)
    rows = np.zeros((n, 3))
    draws = np.array([noisy_second_moment(rows, np.eye(3), ball, RHO, randomness) for _ in range(300)])
    sigma = math.sqrt(2) * radius**2 / n / math.sqrt(2 * 0.3)
    off = draws[:, *np.triu_indices(3, 1)].ravel()
    assert not wrong_variance(off, sigma**2 / 2)
    assert wrong_variance(off, sigma**2 / 4)  # canary: the lecture's constant
    diagonal = np.diagonal(draws, axis1=1, axis2=2)
    contrasts = np.concatenate(
        [
            (diagonal[:, 0] - diagonal[:, 1]) / math.sqrt(2),
            (diagonal[:, 0] + diagonal[:, 1] - 2 * diagonal[:, 2]) / math.sqrt(6),
        ]
    )
    assert not wrong_variance(contrasts, sigma**2)
    assert wrong_variance(contrasts, sigma**2 / 2)
    assert (draws == draws.transpose(0, 2, 1)).all()


@pytest.mark.parametrize("radius", [0.3, 1.0, 7.0])
def test_the_noise_of_a_mean_is_that_of_replace_one(radius):
    """σ = 2R/(n√(2ρ)); 900 numbers."""
    ball, n, randomness = Ball(dimension=3, radius=radius), 50, rehearsal(12)
    rows, centre = np.zeros((n, 3)), np.zeros(3)
    draws = np.array([noisy_mean(rows, np.eye(3), centre, ball, RHO, randomness) for _ in range(300)])
    variance = (2 * radius / n) ** 2 / (2 * 0.3)
    assert not wrong_variance(draws.ravel(), variance)
    assert wrong_variance(draws.ravel(), variance / 2)  # canary
    steps = mean_variance(ball, RHO)
    assert 4 * ball.grid.squared_norm_bound / (2 * steps) == RHO.rho  # what it costs, exactly


@pytest.mark.parametrize("method", ["coinpress", "truncated", "preconditioned"])
@pytest.mark.parametrize("rounds", [1, 2, 5])
@pytest.mark.parametrize("radius", [None, 50])
def test_what_the_rounds_really_spend_adds_up_to_rho_exactly(method, rounds, radius, monkeypatch):
    """The losses that reach the noise are recorded, not those that the certificate reports."""
    spent = []

    def recording(work):
        def recorded(*given):
            spent.append(next(each.rho for each in given if isinstance(each, pc.ZCDP)))
            return work(*given)

        return recorded

    monkeypatch.setattr(covariance, "noisy_second_moment", recording(noisy_second_moment))
    monkeypatch.setattr(covariance, "noisy_mean", recording(noisy_mean))
    rows = np.random.default_rng(1).normal(size=(64, 2))
    made = pc.estimate_gaussian(
        rows,
        loss=pc.ZCDP(rho="1/3", neighbours="replace-one"),
        largest_variance=20_000,
        method=method,
        rounds=rounds,
        mean_radius=radius,
        randomness=rehearsal(1),
    )
    assert sum(spent) == Fraction(1, 3)
    assert spent == [rho for _, rho in made.certificate.budget]
    if radius is not None:
        assert sum(spent[-rounds:]) == entry.MEAN_SHARE / 3


def test_coinpress_keeps_three_quarters_for_the_last_round():
    assert covariance.coinpress_budget(Fraction(1), 1) == [1]
    assert covariance.coinpress_budget(Fraction(1), 3) == [Fraction(1, 8), Fraction(1, 8), Fraction(3, 4)]


def test_the_lecture_takes_its_number_of_rounds():
    for kappa in (1, 1000, 1001, 10_000, 123_456):
        wanted = max(0, math.ceil(math.log(kappa / 1000) / math.log(10 / 9)))
        assert covariance.precondition_rounds(Fraction(kappa)) == wanted


def test_the_projection_is_the_nearest_and_not_the_absolute_value():
    """Canary: the public code's |Z| is a positive semidefinite matrix too, and further away."""
    rng = np.random.default_rng(3)
    noisy = rng.normal(size=(6, 6))
    noisy = noisy + noisy.T
    made = projected(noisy, Ball(dimension=6, radius=100.0))
    values, vectors = np.linalg.eigh(noisy)
    absolute = (vectors * np.abs(values)) @ vectors.T
    assert np.linalg.eigvalsh(made)[0] >= -1e-12
    assert np.linalg.norm(made - noisy) == pytest.approx(np.linalg.norm(np.minimum(values, 0)))
    assert np.linalg.norm(absolute - noisy) > 1.5 * np.linalg.norm(made - noisy)
    assert np.allclose(projected(made, Ball(dimension=6, radius=100.0)), made)


def test_no_moment_leaves_the_ball_that_its_rows_lie_in():
    made = projected(1e9 * np.eye(2), Ball(dimension=2, radius=3.0))
    assert np.allclose(made, 9 * np.eye(2))


def test_later_preconditioners_stand_on_the_left():
    rng = np.random.default_rng(4)
    steps = [rng.normal(size=(3, 3)) for _ in range(3)]
    found = covariance.Preconditioner.scaling(3, 0.5)
    for step in steps:
        found = found.then(step, np.linalg.inv(step))
    product = steps[2] @ steps[1] @ steps[0] * 0.5
    assert np.allclose(found.matrix, product)
    assert np.allclose(found.matrix @ found.inverse, np.eye(3))
    truth = np.diag([1.0, 2.0, 3.0])
    assert np.allclose(found.undone(product @ truth @ product.T), truth)
