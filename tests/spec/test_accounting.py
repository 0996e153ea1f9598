"""Conversions against published values and an independent accountant, always rounded toward privacy."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from privcov.accounting import (
    approx_to_zcdp,
    bounded_range_to_zcdp,
    compose,
    gaussian_delta,
    gaussian_mu,
    pure_to_zcdp,
    zcdp_to_approx,
)
from privcov.errors import ParameterError
from privcov.privacy import ZCDP, ApproxDP, PureDP

# σ of the analytic Gaussian mechanism at sensitivity 1 (mechanisms sheet, section 0.3).
PUBLISHED = {
    "0.1": (17.404, 36.305, 54.206, 74.299),
    "0.5": (4.6101, 8.0576, 11.436, 15.316),
    "1": (2.5747, 4.2247, 5.8678, 7.7744),
    "2": (1.4452, 2.2305, 3.0258, 3.9595),
    "4": (0.8231, 1.1935, 1.5753, 2.0296),
    "8": (0.4800, 0.6529, 0.8340, 1.0527),
}
DELTAS = ("1e-3", "1e-6", "1e-10", "1e-16")


@pytest.mark.parametrize("epsilon", PUBLISHED)
def test_the_analytic_gaussian_scale_agrees_with_the_published_table(epsilon):
    ours = [1 / float(gaussian_mu(epsilon=epsilon, delta=delta)) for delta in DELTAS]
    assert ours == pytest.approx(PUBLISHED[epsilon], rel=2e-4)


@pytest.mark.parametrize("epsilon", PUBLISHED)
@pytest.mark.parametrize("delta", DELTAS)
def test_the_certified_scale_stays_within_the_budget_and_wastes_nothing(epsilon, delta):
    mu = gaussian_mu(epsilon=epsilon, delta=delta)
    assert gaussian_delta(mu=mu, epsilon=epsilon) <= Fraction(delta)
    assert gaussian_delta(mu=mu * Fraction(1_000_000_1, 1_000_000_0), epsilon=epsilon) > Fraction(delta)


@pytest.mark.parametrize("epsilon", [0.1, 1, 4])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-10])
def test_the_analytic_gaussian_scale_agrees_with_an_independent_accountant(epsilon, delta):
    peer = pytest.importorskip("dp_accounting.gaussian_mechanism", reason="dp-accounting is not installed")
    theirs = peer.get_sigma_gaussian(epsilon=epsilon, delta=delta)
    assert 1 / float(gaussian_mu(epsilon=epsilon, delta=delta)) == pytest.approx(theirs, rel=1e-6)


def test_zcdp_converts_by_the_optimal_order():
    """ρ = 0.02436 is what (1, 1e-6) allows; the textbook formula would allow only 0.01747."""
    rho = approx_to_zcdp(ApproxDP(epsilon=1, delta="1e-6", neighbours="replace-one")).rho
    assert float(rho) == pytest.approx(0.02436, abs=5e-6)


@pytest.mark.parametrize("rho", ["0.001", "0.1", "0.5", "3"])
@pytest.mark.parametrize("delta", ["1e-3", "1e-9"])
def test_zcdp_to_approx_is_never_below_the_formula_and_barely_above(rho, delta):
    """Against an independent minimiser over the order, in plain floats."""
    r, log_delta = float(rho), math.log(float(delta))

    def formula(log_excess):
        excess = math.exp(log_excess)
        return (1 + excess) * r + math.log(excess / (1 + excess)) - (log_delta + math.log1p(excess)) / excess

    best = minimize_scalar(formula, bounds=(-5, 20), method="bounded", options={"xatol": 1e-12}).fun
    ours = float(zcdp_to_approx(ZCDP(rho=rho, neighbours="add-remove"), delta=delta).epsilon)
    assert best * (1 - 1e-12) <= ours <= best * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1, 3, 10])
def test_pure_privacy_is_at_least_as_concentrated_as_claimed(epsilon):
    """Randomized response is the worst pure mechanism: no order may exceed ρ, and order 1 attains it."""
    p, rho = (
        1 / (1 + math.exp(-epsilon)),
        float(pure_to_zcdp(PureDP(epsilon=epsilon, neighbours="add-remove")).rho),
    )
    orders = 1 + np.geomspace(1e-6, 1e4, 2000)
    log_terms = np.logaddexp(
        orders * math.log(p) + (1 - orders) * math.log(1 - p),
        orders * math.log(1 - p) + (1 - orders) * math.log(p),
    )
    concentration = log_terms / (orders - 1) / orders
    assert concentration.max() <= rho * (1 + 1e-6)
    assert concentration.max() == pytest.approx(rho, rel=1e-3)
    assert rho <= epsilon**2 / 2


def test_a_bounded_range_costs_a_quarter_of_what_pure_privacy_would():
    assert bounded_range_to_zcdp(eta=1) == Fraction(1, 8)


def test_pure_and_zcdp_losses_compose_into_zcdp():
    pure, zcdp = PureDP(epsilon=1, neighbours="add-remove"), ZCDP(rho="0.25", neighbours="add-remove")
    assert compose([pure, zcdp]) == pure_to_zcdp(pure) + zcdp
    assert compose([pure, pure]) == PureDP(epsilon=2, neighbours="add-remove")


def test_an_approximate_loss_beside_another_kind_is_refused():
    with pytest.raises(ParameterError, match="E204"):
        compose(
            [ApproxDP(epsilon=1, delta="1e-6", neighbours="add-remove"), ZCDP(rho=1, neighbours="add-remove")]
        )


def test_the_classical_sigma_is_refuted_at_epsilon_8():
    """σ = √(2 ln(1.25/δ))/ε is sold as (8, 1e-3)-private; its true δ is 1.31e-3."""
    classical = math.sqrt(2 * math.log(1.25 / 1e-3)) / 8
    assert float(gaussian_delta(mu=1 / classical, epsilon=8)) == pytest.approx(1.31e-3, rel=5e-3)
