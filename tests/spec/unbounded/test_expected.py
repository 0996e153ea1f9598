"""Predicted Mahalanobis errors against real estimates on rotated data, and coinpress with its code's constants.

Both sides are means over fixed streams with standard errors of at most 3 %: a right prediction would miss 10 %
with probability below 0.01 on other streams, one that is 25 % off would pass with as much.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import privcov as pc
from privcov.errors import ParameterError
from privcov.mechanisms.gaussian import Gaussian
from privcov.noise.randomness import rehearsal
from privcov.unbounded import covariance, expected_error, mahalanobis_error
from privcov.unbounded.moments import Ball, noisy_second_moment

HALF = pc.ZCDP(rho="0.5", neighbours="replace-one")
SPECTRUM = [1.0, 4.0, 30.0, 200.0]
FACTS = {"loss": HALF, "largest_variance": 300}


def real_error(runs=30, **options):
    """The mean error of estimates from rows of N(0, Σ), Σ of this spectrum in a random basis."""
    errors = []
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        basis = np.linalg.qr(rng.normal(size=(4, 4))).Q
        rows = rng.normal(size=(2000, 4)) * np.sqrt(SPECTRUM) @ basis.T
        made = pc.estimate_gaussian(rows, randomness=rehearsal(seed), **FACTS, **options)
        errors.append(mahalanobis_error(made.covariance, (basis * SPECTRUM) @ basis.T))
    return np.mean(errors)


@pytest.mark.parametrize(
    ("options", "known"),
    [
        ({"method": "coinpress", "rounds": 4}, True),
        ({"method": "coinpress", "rounds": 2}, True),
        ({"method": "coinpress", "rounds": 5, "as_published": True}, True),
        pytest.param({"method": "coinpress", "rounds": 6, "mean_radius": 100}, False, marks=pytest.mark.slow),
        ({"method": "truncated"}, True),
    ],
    ids=lambda value: " ".join(str(v) for v in value.values()) if isinstance(value, dict) else str(value),
)
def test_a_prediction_is_within_ten_percent_of_estimates_from_rotated_rows(options, known):
    predicted = expected_error(
        rows=2000, dimension=4, variances=SPECTRUM, known_mean=known, runs=40, seed=7, **FACTS, **options
    )
    real = real_error(**options, known_mean=[0] * 4 if known else None)
    assert predicted == pytest.approx(real, rel=0.1)


@pytest.mark.long
def test_the_lecture_is_predicted_where_its_rounds_succeed():
    """κ = 2 000: seven rounds, then the last. With too few rows rare disasters make up its mean error."""
    facts = {"loss": HALF, "largest_variance": 2000, "method": "preconditioned"}
    values, errors = [*[1.0] * 7, 1500.0], []
    for seed in range(15):
        rng = np.random.default_rng(seed)
        basis = np.linalg.qr(rng.normal(size=(8, 8))).Q
        rows = rng.normal(size=(5000, 8)) * np.sqrt(values) @ basis.T
        made = pc.estimate_gaussian(rows, known_mean=[0] * 8, randomness=rehearsal(seed), **facts)
        assert len(made.certificate.budget) == 8
        errors.append(mahalanobis_error(made.covariance, (basis * values) @ basis.T))
    predicted = expected_error(
        rows=5000, dimension=8, variances=values, known_mean=True, runs=20, seed=1, **facts
    )
    assert predicted == pytest.approx(np.mean(errors), rel=0.1)


def test_a_prediction_for_half_the_rows_is_found_wrong():
    """Canary."""
    half = expected_error(rows=1000, dimension=4, variances=SPECTRUM, known_mean=True, runs=40, **FACTS)
    assert half != pytest.approx(real_error(known_mean=[0] * 4), rel=0.1)


def test_without_variances_the_public_facts_are_the_guess_and_a_prediction_repeats():
    words = {"rows": 500, "dimension": 3, "known_mean": True, "runs": 3, **FACTS}
    guess = expected_error(**words, smallest_variance=3)
    assert guess == expected_error(**words, smallest_variance=3, variances=[3, 30, 300])
    assert guess == expected_error(**words, smallest_variance=3)
    assert expected_error(**words | {"largest_variance": "0.5"}) > 0  # below the smallest: all at the largest


@pytest.mark.parametrize(
    "wrong",
    [
        {"rows": 0},
        {"dimension": 0},
        {"runs": 1.5},
        {"rows": 10**12},
        {"variances": [1]},
        {"variances": [-1, 1]},
    ],
)
def test_nonsense_is_refused(wrong):
    with pytest.raises(ParameterError, match="E24"):
        expected_error(**{"rows": 50, "dimension": 2, **FACTS} | wrong)


@pytest.mark.parametrize("radius", [0.3, 1, 7])
@pytest.mark.long
def test_published_noise_has_the_size_of_the_public_code(radius):
    """Every entry of standard deviation γ²/(n√ρ): within 6 standard errors (2e-9) of 500 draws, not √2 more or less."""
    ball, randomness = Ball(dimension=3, radius=radius), rehearsal(1)
    rows = np.zeros((50, 3))
    noise = Gaussian(constants="published")
    draws = np.array(
        [noisy_second_moment(rows, np.eye(3), ball, HALF, randomness, noise) for _ in range(500)]
    )
    claimed = (radius**2 / (50 * math.sqrt(0.5))) ** 2
    for entry in ((0, 0), (0, 1), (2, 2)):
        squares = draws[:, *entry] ** 2
        off = 6 * squares.std() / math.sqrt(500)
        assert abs(squares.mean() - claimed) <= off
        assert abs(squares.mean() - 2 * claimed) > off
        assert abs(squares.mean() - claimed / 2) > off
    assert (draws == draws.transpose(0, 2, 1)).all()


def test_the_constants_are_those_of_the_public_code():
    """b = 0.1, γ² = d + 2√(d ln 10) + 2 ln 10, η = ½(2√(d/n) + d/n), three quarters of ρ for the last round."""
    d, n, seen = 4, 400, []
    rows = np.random.default_rng(0).normal(size=(n, d))
    right, whiten = covariance.noisy_second_moment, covariance._whitened
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            covariance,
            "noisy_second_moment",
            lambda *given: seen.append((given[2], given[3].rho, given[5])) or right(*given),
        )
        inflations = []
        patch.setattr(
            covariance,
            "_whitened",
            lambda found, moment, count: (
                inflations.append((found, moment, whiten(found, moment, count))) or inflations[-1][2]
            ),
        )
        made = pc.estimate_gaussian(
            rows, known_mean=[0] * d, rounds=3, as_published=True, randomness=rehearsal(1), **FACTS
        )
    gamma = math.sqrt(d + 2 * math.sqrt(d * math.log(10)) + 2 * math.log(10))
    assert [ball.radius for ball, _, _ in seen] == pytest.approx([gamma] * 3)
    assert [float(rho) for _, rho, _ in seen] == [0.0625, 0.0625, 0.375]
    assert {noise.constants for _, _, noise in seen} == {"published"}
    eta = 0.5 * (2 * math.sqrt(d / n) + d / n)
    found, moment, after = inflations[0]
    step = after.matrix @ found.inverse
    assert np.linalg.inv(step @ step) == pytest.approx(moment + eta * np.eye(d))
    assert made.certificate.options["constants"] == "published"
    assert "constants" not in pc.estimate_gaussian(rows, **FACTS).certificate.options


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"method": "truncated"}, "E248 truncated as published is not private"),
        ({"method": "preconditioned"}, "E248 preconditioned as published is not private"),
        ({"tail": "0.05"}, "E241 coinpress as published needs tail = 1/10"),
    ],
)
def test_what_was_published_unsound_or_otherwise_is_refused(options, code):
    with pytest.raises(ParameterError, match=code):
        pc.estimate_gaussian(np.zeros((10, 2)), as_published=True, **FACTS, **options)
