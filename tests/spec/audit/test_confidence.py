"""Confidence bounds and claims: exact where they can be checked exactly, and never too large."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from privcov.audit.claims import Delta, Epsilon, Gaussian, Rho
from privcov.audit.distinguish import at_least, at_most

CLAIMS = [
    Epsilon(allowed=1.0),
    Epsilon(allowed=1.0, at_delta=0.01),
    Gaussian(allowed=0.5),
    Rho(allowed=0.125),
    Delta(allowed=0.1, at_epsilon=0.5),
]


@pytest.mark.parametrize("trials", [1, 7, 40])
@pytest.mark.parametrize("error", [0.05, 1e-3])
@pytest.mark.parametrize("p", [0.0, 0.02, 0.3, 0.5, 0.99, 1.0])
def test_the_bounds_cover_the_truth_as_often_as_they_say(trials, error, p):
    """By summing the binomial law, so without chance: coverage at least 1 − error for every p and n."""
    counts = np.arange(trials + 1)
    law = binom.pmf(counts, trials, p)
    assert law[at_least(counts, trials, error) > p].sum() <= error
    assert law[at_most(counts, trials, error) < p].sum() <= error


def test_the_bounds_are_not_idle():
    assert at_least(50, 100, 1e-3) > 0.33
    assert at_most(50, 100, 1e-3) < 0.67


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.label)
def test_a_likelier_event_says_more_and_a_commoner_one_next_door_says_less(claim):
    grid = np.linspace(0.01, 0.99, 99)
    often, rarely = np.meshgrid(grid, grid, indexing="ij")
    least = claim.least(often, rarely)
    assert (np.diff(least, axis=0) >= -1e-9).all()
    assert (np.diff(least, axis=1) <= 1e-9).all()
    assert (least[often <= rarely] == 0).all()


@pytest.mark.parametrize("claim", CLAIMS[:4], ids=lambda claim: claim.label)
def test_the_edge_of_the_permitted_region_is_where_the_claim_is_just_kept(claim):
    rarely = np.linspace(0.01, 0.95, 40)
    edge = claim.most_often(rarely)
    assert (claim.least(edge, rarely) <= claim.allowed * (1 + 1e-6)).all()
    outside = np.minimum(edge * 1.02 + 1e-3, 1.0)
    refuted = (claim.least(outside, rarely) > claim.allowed) | (
        claim.least(1 - rarely, 1 - outside) > claim.allowed
    )
    assert refuted[outside < 1].all()


def test_the_zcdp_bound_of_gaussian_events_never_exceeds_the_true_rho_and_comes_near_it():
    """N(0, 1) against N(μ, 1) is exactly μ²/2-zCDP; every threshold event must stay below that."""
    for mu in (0.2, 1.0, 3.0):
        thresholds = np.linspace(-6, 6 + mu, 400)
        least = Rho(allowed=mu**2 / 2).least(norm.sf(thresholds - mu), norm.sf(thresholds))
        assert least.max() <= mu**2 / 2
        assert least.max() > 0.3 * mu**2 / 2


def test_the_gaussian_bound_is_exact_on_gaussian_events():
    thresholds = np.linspace(-2, 3, 50)
    least = Gaussian(allowed=1).least(norm.sf(thresholds - 1), norm.sf(thresholds))
    assert least == pytest.approx(1)


def test_randomized_response_is_exactly_at_its_epsilon_and_its_profile():
    p = math.e / (1 + math.e)
    assert float(Epsilon(allowed=1).least(p, 1 - p)) == pytest.approx(1)
    for epsilon in (0.0, 0.3, 0.9):
        point = Delta(allowed=Epsilon(allowed=1).delta(epsilon), at_epsilon=epsilon)
        assert float(point.least(p, 1 - p)) == pytest.approx(point.allowed)


def test_a_profile_never_promises_less_than_the_claim_allows():
    """δ(ε) of each claim is at least p − e^ε q on the whole edge of what it permits."""
    rarely = np.linspace(0, 1, 501)
    for claim in CLAIMS[:4]:
        edge = claim.most_often(rarely)
        for epsilon in (0.0, 0.25, 0.5, 1.0):
            worst = float((edge - math.exp(epsilon) * rarely).max())
            assert worst <= claim.delta(epsilon) + 1e-6


def test_a_bound_at_the_claim_does_not_refute_it_and_one_above_does():
    assert not Epsilon(allowed=1.0).refuted_by(1.0)
    assert Epsilon(allowed=1.0).refuted_by(1.0001)
    assert not Epsilon(allowed=1.0).refuted_by(float("nan"))
