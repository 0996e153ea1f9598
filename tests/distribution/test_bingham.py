"""Bingham draws follow their law, whatever the envelope, and the check sees the sign trap.

Second moments in the eigenbasis, and the mean square of the form uᵀMu, against the truth, two-sided: an alarm at
|z| > 6.2, that is 6e-10 for one of them. There are fewer than 150, so a correct sampler with fresh seeds would
fail this file less than once in ten million runs; the seeds are fixed. At DRAWS draws a moment whose standard
deviation is 0.3 and which is wrong by 0.04 is seen 999 times in a thousand.
"""

import numpy as np
import pytest

from privcov.noise.idealized import bingham, sample_bingham
from privcov.noise.randomness import rehearsal

ALARM = 6.2
DRAWS = 5000
SPECTRA = {2: [3.0, 0.5], 3: [2.0, 1.5, -1.0], 10: [5.0, 5.0, 4.0, 3.0, 2.0, 1.0, 0.5, 0.0, -1.0, -6.0]}


def rotation(dimension):
    return np.linalg.qr(np.random.default_rng(dimension).normal(size=(dimension, dimension))).Q


def features(squares, values):
    """What is compared: u₁² … u_d² and (uᵀMu)². At a tuned envelope only the last tells it from its target."""
    return np.column_stack([squares, (squares @ np.array(values)) ** 2])


def quadrature(values, concentration):
    """Mean features at dimension 2 or 3, by the trapezoid rule in the angle and Gauss–Legendre in the height."""
    angle = np.arange(2000) * (2 * np.pi / 2000)
    if len(values) == 2:
        squares = np.stack([np.cos(angle) ** 2, np.sin(angle) ** 2])
        weights = np.ones(2000)
    else:
        height, weight = np.polynomial.legendre.leggauss(400)
        ring = 1 - height[:, None] ** 2
        squares = np.stack(
            [ring * np.cos(angle) ** 2, ring * np.sin(angle) ** 2, height[:, None] ** 2 + 0 * angle]
        ).reshape(3, -1)
        weights = np.repeat(weight, 2000)
    exponent = concentration * (np.array(values) @ squares)
    weights = weights * np.exp(exponent - exponent.max())
    return weights @ features(squares.T, values) / weights.sum(), 0.0


def importance(values, concentration):
    """Mean features and their standard errors, from weighted directions of a wide Gaussian (another generator)."""
    rng = np.random.default_rng(99)
    values = np.array(values)
    precision = 1 + concentration * (values.max() - values)
    z = rng.normal(size=(400_000, len(values))) / np.sqrt(precision)
    squares = z**2 / (z**2).sum(axis=1, keepdims=True)
    logs = concentration * squares @ values + len(values) / 2 * np.log(squares @ precision)
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    seen = features(squares, values)
    mean = weights @ seen
    return mean, np.sqrt(weights**2 @ (seen - mean) ** 2)


def truth(dimension, concentration):
    return (importance if dimension > 3 else quadrature)(SPECTRA[dimension], concentration)


def fits(dimension, concentration, *, seed=1, draws=DRAWS, envelope=None):
    """Whether the library's draws have the second moments of the law."""
    basis, source = rotation(dimension), rehearsal(seed)
    matrix = (basis * SPECTRA[dimension]) @ basis.T
    vectors = np.array(
        [
            sample_bingham(source, matrix, concentration=concentration, envelope=envelope)[0]
            for _ in range(draws)
        ]
    )
    seen = features((vectors @ basis) ** 2, SPECTRA[dimension])
    expected, error = truth(dimension, concentration)
    z = (seen.mean(axis=0) - expected) / np.hypot(seen.std(axis=0) / np.sqrt(draws), error)
    return bool(np.abs(z).max() < ALARM)


@pytest.mark.parametrize("dimension", [2, 3, 10])
@pytest.mark.parametrize("concentration", [0.1, 1.0, 10.0])
@pytest.mark.long
def test_second_moments_are_those_of_the_law(dimension, concentration):
    assert fits(dimension, concentration)


@pytest.mark.parametrize("envelope", [0.3, 1.0, 2.9, 3.0])
@pytest.mark.long
def test_a_badly_chosen_envelope_costs_proposals_and_nothing_else(envelope):
    assert fits(3, 1.0, envelope=envelope)


@pytest.mark.parametrize("envelope", [0.3, 1.0, 2.9, 10.0])
@pytest.mark.long
def test_a_badly_chosen_envelope_at_dimension_ten_does_not_change_the_law(envelope):
    assert fits(10, 0.3, envelope=envelope, draws=3000)


def test_the_textbook_value_of_the_sign_trap():
    """E[u₁²] at dimension 2 and c(λ₁−λ₂) = 2.5 is 0.764; the inverted acceptance gives 0.92."""
    assert truth(2, 1.0)[0][0] == pytest.approx(0.764, abs=2e-3)


@pytest.mark.parametrize("dimension", [2, 3])
def test_the_inverted_acceptance_of_the_sign_trap_is_seen(monkeypatch, dimension):
    def inverted(forms, dimension):
        return -0.5 * (forms - 1) - 0.5 * dimension * np.log(forms)

    monkeypatch.setattr(bingham, "log_acceptance", inverted)
    assert not fits(dimension, 1.0)


@pytest.mark.parametrize(("dimension", "concentration"), [(2, 1.0), (3, 1.0), (10, 10.0)])
@pytest.mark.long
def test_accepting_every_proposal_is_seen(monkeypatch, dimension, concentration):
    monkeypatch.setattr(bingham, "log_acceptance", lambda forms, dimension: np.zeros_like(forms))
    assert not fits(dimension, concentration)
