"""The claim of symmetric-wishart, pure ε: by quadrature of its density at d = 2, and Laplace at d = 1."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import ks_1samp, laplace

import privcov as pc
from privcov.mechanisms import MECHANISMS
from privcov.noise.randomness import rehearsal
from privcov.schema import Schema
from privcov.schema.grid import Grid

AXIS = np.arange(-12, 12, 0.08)
PLANE = np.meshgrid(AXIS, AXIS)
FROM_ZERO = np.hypot(*PLANE)


def log_density(z, rate):
    """log f(Z) up to a constant for a 2 × 2 Z of the law with rate ε′.

    A 2 × 2 symmetric matrix is (w0, w1, w2) with w0 half its trace and (w1, w2) its traceless part; it is
    positive semidefinite when w0 ≥ |(w1, w2)|. Integrating e^(−ε′(2 tr W − tr Z)) over w0 leaves a plane.
    """
    z0, z1, z2 = (z[0, 0] + z[1, 1]) / 2, (z[0, 0] - z[1, 1]) / 2, z[0, 1]
    least = np.maximum(FROM_ZERO, z0 + np.hypot(PLANE[0] - z1, PLANE[1] - z2))
    return 2 * rate * z0 + np.log(np.exp(-4 * rate * least).sum())


def largest_ratio(rate, changes):
    """sup |log f(Z + D) − log f(Z)| over a net of Z and the given changes D."""
    net = [
        np.array([[a, c], [c, b]]) for a in (-5, -1, 0, 1, 5) for b in (-5, -1, 0, 2) for c in (0, 0.7, -3)
    ]
    before = [log_density(z, rate) for z in net]
    return max(abs(log_density(z + d, rate) - at) for z, at in zip(net, before, strict=True) for d in changes)


def unit(angle):
    return np.array([math.cos(angle), math.sin(angle)])


@pytest.mark.parametrize("rate", [0.5, pytest.param(1.0, marks=pytest.mark.slow)])
def test_an_added_row_moves_the_log_density_by_the_rate_and_no_more(rate):
    changes = [np.outer(unit(a), unit(a)) for a in (0, 0.4, 1.2, math.pi / 2)]
    ratio = largest_ratio(rate, changes)
    assert ratio <= rate * (1 + 2e-3)  # the error of the quadrature
    assert ratio >= 0.98 * rate


def test_a_replaced_row_moves_it_by_twice_the_rate_and_no_more():
    rate = 0.5
    changes = [
        np.outer(unit(a), unit(a)) - np.outer(unit(b), unit(b))
        for a in (0, 0.5)
        for b in (1.0, a + math.pi / 2)
    ]
    ratio = largest_ratio(rate, changes)
    assert ratio <= 2 * rate * (1 + 2e-3)
    assert ratio >= 0.85 * 2 * rate


def test_the_quadrature_finds_noise_of_half_the_variance():
    """Canary: noise calibrated to twice the rate breaks the claim visibly."""
    assert largest_ratio(1.0, [np.outer(unit(0), unit(0))]) > 0.5 * (1 + 0.5)


@pytest.mark.long
def test_in_one_dimension_the_noise_is_laplace():
    """Kolmogorov–Smirnov at 1e-6; 4 000 draws find a scale wrong by 20 %."""
    grid = Grid.of(Schema.from_dict({"columns": {"x": {"lower": -1, "upper": 1}}, "intercept": False}))
    loss = pc.PureDP(epsilon=2, neighbours="add-remove")
    randomness = rehearsal(3)
    mechanism = MECHANISMS["symmetric-wishart"]()
    draws = [mechanism.draw(loss=loss, grid=grid, randomness=randomness).upper[0] for _ in range(4000)]
    sample = np.array(draws, dtype=float) * float(grid.unit)
    assert ks_1samp(sample, laplace(scale=1 / 2).cdf).pvalue > 1e-6
    assert ks_1samp(1.2 * sample, laplace(scale=1 / 2).cdf).pvalue < 1e-6


def test_the_second_moments_are_those_of_the_theorem():
    """Variance (d+1)/ε′² on the diagonal, half off it; rms Frobenius √(d(d+1)²/2)/ε′."""
    grid = Grid.of(
        Schema.from_dict(
            {
                "columns": {f"c{i}": {"lower": 0, "upper": 1} for i in range(5)},
                "intercept": False,
                "row_norm_bound": 1,
            }
        )
    )
    law = MECHANISMS["symmetric-wishart"]().law(
        loss=pc.PureDP(epsilon=1, neighbours="replace-one"), grid=grid
    )
    rate, d = 0.5, 5
    assert law.diagonal_variance == pytest.approx((d + 1) / rate**2)
    assert law.rms_frobenius == pytest.approx(math.sqrt(d * (d + 1) ** 2 / 2) / rate)
