"""Rounded random matrices follow their laws in distribution, and the checks see planted errors.

Bit-for-bit agreement with a slow reference is in tests/spec/noise/exact/test_matrices.py; here the laws themselves
are checked from outside. Every check is two-sided and rejects a p-value outside (ALARM, 1 - ALARM); with
fewer than 20 p-values a correct sampler with fresh seeds would fail this file less than once in four million
runs, and the seeds are fixed. Scales wrong by a factor 2, 3/2 for Gaussian entries, are seen.
"""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from privcov.noise.exact import frobenius_ball, gaussian_ensemble, matrices, wishart_difference
from privcov.noise.randomness import rehearsal

ALARM = 5e-9
SCALE = Fraction(2**40)


def follows(sample, law):
    p_value = stats.kstest(np.asarray(sample, dtype=float), law.cdf, method="asymp").pvalue
    return bool(ALARM < p_value < 1 - ALARM)


def scaled(entries):
    return np.array([int(x) / float(SCALE) for x in entries])


def wishart_diagonals(dimension, draws, seed):
    source = rehearsal(seed)
    i, j = np.triu_indices(dimension)
    draw = (scaled(wishart_difference(source, dimension=dimension, scale=SCALE)) for _ in range(draws))
    return np.concatenate([entries[i == j] for entries in draw])


def test_a_wishart_difference_in_one_dimension_is_laplace():
    # The squared norm of two normals is twice an exponential.
    sample = wishart_diagonals(1, 2000, 1)
    assert follows(sample, stats.laplace(scale=2))
    assert not follows(2 * sample, stats.laplace(scale=2))


def test_a_wishart_difference_has_dimension_plus_one_degrees_of_freedom():
    # A diagonal entry is the difference of two independent chi-squares with d+1 degrees of freedom.
    dimension = 5
    sample = wishart_diagonals(dimension, 1500, 2)
    generator = np.random.default_rng(3)

    def reference(freedom):
        return generator.chisquare(freedom, 100_000) - generator.chisquare(freedom, 100_000)

    assert ALARM < stats.ks_2samp(sample, reference(dimension + 1)).pvalue < 1 - ALARM
    # A freedom wrong by one would void the privacy proof: seen through the variance, 2 percent precise here.
    assert np.var(sample) == pytest.approx(4 * (dimension + 1), rel=0.12)
    assert np.var(reference(dimension)) != pytest.approx(4 * (dimension + 1), rel=0.12)


def test_entries_of_a_wishart_difference_off_the_diagonal_have_half_the_variance_and_mean_zero():
    dimension = 200
    i, j = np.triu_indices(dimension)
    entries = scaled(wishart_difference(rehearsal(4), dimension=dimension, scale=SCALE))
    off = entries[i != j]
    # 19 900 pairwise uncorrelated entries: the mean square has a relative standard deviation near 1 percent.
    assert np.mean(off**2) == pytest.approx(2 * (dimension + 1), rel=0.08)
    assert abs(off.mean()) < 6 * np.sqrt(2 * (dimension + 1) / off.size)


def test_a_gaussian_ensemble_is_normal_on_and_off_the_diagonal():
    dimension = 300
    i, j = np.triu_indices(dimension)
    entries = scaled(
        gaussian_ensemble(
            rehearsal(5),
            dimension=dimension,
            diagonal_std=SCALE,
            offdiagonal_std=SCALE / 3,
            trace_keep=Fraction(1),
        )
    )
    assert follows(entries[i == j], stats.norm)
    assert follows(3 * entries[i != j], stats.norm)
    assert not follows(1.5 * 3 * entries[i != j], stats.norm)


def test_the_trace_keeps_its_share_and_the_rest_of_the_diagonal_all_of_it():
    dimension, keep = 8, Fraction(1, 3)
    i, j = np.triu_indices(dimension)
    source = rehearsal(6)
    draws = [
        scaled(
            gaussian_ensemble(
                source, dimension=dimension, diagonal_std=SCALE, offdiagonal_std=SCALE, trace_keep=keep
            )
        )[i == j]
        for _ in range(1500)
    ]
    diagonals = np.array(draws)
    trace = diagonals.sum(axis=1) / np.sqrt(dimension)
    assert follows(trace / float(keep), stats.norm)
    assert follows((diagonals[:, 0] - diagonals[:, 1]) / np.sqrt(2), stats.norm)
    assert not follows(trace, stats.norm)  # a share that is forgotten is seen


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_the_norm_of_a_frobenius_ball_is_gamma_and_its_direction_isotropic(dimension):
    i, j = np.triu_indices(dimension)
    source, weight = rehearsal(7), np.where(i == j, 1, 2)
    draws = np.array([scaled(frobenius_ball(source, dimension=dimension, scale=SCALE)) for _ in range(1200)])
    norms = np.sqrt((weight * draws**2).sum(axis=1))
    freedom = i.size
    assert follows(norms, stats.gamma(freedom))
    assert not follows(2 * norms, stats.gamma(freedom))
    if dimension > 1:
        # A coordinate of a uniform direction in m dimensions: its square is Beta(1/2, (m-1)/2).
        for place in (0, 1):
            squares = weight[place] * draws[:, place] ** 2 / norms**2
            assert follows(squares, stats.beta(0.5, (freedom - 1) / 2))
            assert not follows(squares / 2, stats.beta(0.5, (freedom - 1) / 2))


def test_a_radius_with_one_exponential_too_few_is_seen(monkeypatch):
    correct = matrices.exponentials

    def one_missing(randomness, count):
        summands = correct(randomness, count)
        summands.whole[0] = 0
        summands.fraction.first[0] = 0
        return summands

    monkeypatch.setattr(matrices, "exponentials", one_missing)
    source = rehearsal(8)
    draws = np.array([scaled(frobenius_ball(source, dimension=2, scale=SCALE)) for _ in range(1200)])
    assert not follows(np.sqrt((np.array([1, 2, 1]) * draws**2).sum(axis=1)), stats.gamma(3))
