"""Goodness of fit: the closed forms are right, the p-values are never too small, wrong laws are seen.

Fixed streams. The laws are compared with ``NoiseLaw.simulate`` and with SciPy, which share no code with them.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from privcov.audit.fit import one_sample, thinned_bingham, two_sample
from privcov.audit.marginals import gamma_difference, marginals, spiked_bingham
from privcov.noise.idealized import sample_bingham
from privcov.noise.laws import LAWS, centred_wishart, joint_gaussian
from privcov.noise.randomness import rehearsal

KINDS = [*LAWS.values(), centred_wishart(9), joint_gaussian("1.250000")]


def simulated(law, count, seed=3):
    randomness, upper = rehearsal(seed), np.triu_indices(law.dimension)
    return law.simulations(randomness, count)[:, *upper]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("d", [3])
def test_the_marginals_are_those_of_the_law(kind, d):
    """3 000 draws; a scale wrong by 25 % has p below 1e-6, and a right one is refused once in 1e6."""
    law = kind(dimension=d, scale=1.7)
    draws = simulated(law, 3000)
    found = [one_sample(m.label, law.name, m.take(draws), m.cdf) for m in marginals(law)]
    assert found
    assert all(fit.p_value > 1e-6 for fit in found)
    wider = kind(dimension=d, scale=1.7 * 1.25)
    wrong = [one_sample(m.label, law.name, m.take(draws), m.cdf) for m in marginals(wider)]
    assert min(fit.p_value for fit in wrong) < 1e-6


def test_a_difference_of_exponentials_is_laplace():
    x = np.linspace(-8, 8, 201)
    assert gamma_difference(1.0, 2.0)(x) == pytest.approx(stats.laplace(scale=2).cdf(x), abs=2e-5)


def test_the_p_value_is_not_below_that_of_an_exact_test():
    for seed in range(20):
        values = rehearsal(seed).uniforms(300)
        ours = one_sample("u", "uniform", values, lambda x: x).p_value
        assert ours >= stats.kstest(values, "uniform", method="exact").pvalue - 1e-12
        one, two = rehearsal(seed).uniforms(600).reshape(2, 300)
        assert two_sample("u", "u", one, two).p_value >= stats.ks_2samp(one, two).pvalue - 1e-12


def test_distances_are_those_of_scipy():
    one, two = rehearsal(1).uniforms(400).reshape(2, 200) ** np.array([[1.0], [1.5]])
    assert one_sample("u", "uniform", one, lambda x: x).distance == pytest.approx(
        stats.kstest(one, "uniform").statistic
    )
    assert two_sample("u", "u", one, two).distance == pytest.approx(stats.ks_2samp(one, two).statistic)


@pytest.mark.parametrize("d", [2, 3, 7])
def test_the_two_accounts_of_a_private_vector_agree_with_each_other_and_with_the_sampler(d):
    strength = 4.0
    spectrum = [strength] + [0.0] * (d - 1)
    thinned = thinned_bingham(rehearsal(2), spectrum, 4000)[:, 0] ** 2
    assert one_sample("thinned", "quadrature", thinned, spiked_bingham(d, strength)).p_value > 1e-6
    randomness = rehearsal(3)
    drawn = [sample_bingham(randomness, np.diag(spectrum), concentration=1.0)[0][0] ** 2 for _ in range(1000)]
    assert one_sample("sampler", "quadrature", np.array(drawn), spiked_bingham(d, strength)).p_value > 1e-6


def test_the_sign_trap_constant_of_the_proof_page():
    """docs/proofs/bingham.md: at d = 2 and c(λ₁ − λ₂) = 2.5 the mean of u₁² is 0.764."""
    places = np.linspace(0, 1, 100_001)
    mean = float(np.trapezoid(1 - spiked_bingham(2, 2.5)(places), places))
    assert mean == pytest.approx(0.764, abs=5e-4)
    assert math.isclose(float(spiked_bingham(2, 0.0)(np.array([0.5]))[0]), 0.5, abs_tol=1e-4)
