"""Lazily refined normals and exponentials follow their laws, in the leading bits and in those drawn later.

Every check is two-sided and rejects a p-value outside (ALARM, 1 - ALARM). There are fewer than 30 p-values,
so a correct sampler with fresh seeds would fail this file less than once in two million runs; the seeds are
fixed. With DRAWS draws a scale wrong by 2 percent and an acceptance exponent wrong by 10 percent are seen.
"""

import numpy as np
import pytest
from scipy import stats

from privcov.noise.exact import exponentials, normals, reals, trials
from privcov.noise.randomness import rehearsal

ALARM = 5e-9
DRAWS = 1_000_000


def is_plausible(p_value):
    return bool(ALARM < p_value < 1 - ALARM)


def floats(variates):
    magnitudes = variates.whole + variates.fraction.floats()
    return np.where(variates.negative, -magnitudes, magnitudes)


def follows(sample, law):
    return is_plausible(stats.kstest(sample, law.cdf, method="asymp").pvalue)


def is_uniform(cells, count):
    return is_plausible(stats.chisquare(np.bincount(cells, minlength=count)).pvalue)


def test_normals_are_normal():
    assert follows(floats(normals(rehearsal(1), DRAWS)), stats.norm)


def test_exponentials_are_exponential():
    assert follows(floats(exponentials(rehearsal(2), DRAWS)), stats.expon)


def test_the_tail_of_the_normals_beyond_three_is_as_heavy_as_it_should_be():
    variates = normals(rehearsal(3), DRAWS)
    expected = DRAWS * 2 * np.array([stats.norm.sf(3) - stats.norm.sf(4), stats.norm.sf(4)])
    observed = [np.sum(variates.whole == 3), np.sum(variates.whole >= 4)]
    for count, mean in zip(observed, expected, strict=True):
        assert is_plausible(stats.poisson.cdf(count, mean))
        assert is_plausible(stats.poisson.sf(count - 1, mean))


@pytest.mark.parametrize("draw", [normals, exponentials])
def test_bits_below_the_leading_ones_are_fair_whatever_the_leading_ones_are(draw):
    variates = draw(rehearsal(4), DRAWS // 4)
    first, second = variates.fraction.columns(2)
    known = np.minimum(variates.whole, 1) * 2 + variates.negative  # what the leading bits could have biased
    for cell in np.unique(known):
        chosen = known == cell
        assert is_uniform((first[chosen] & np.uint64(63)).astype(np.int64), 64)
        assert is_uniform((second[chosen] >> np.uint64(58)).astype(np.int64), 64)


@pytest.mark.long
def test_bits_a_judge_has_drawn_are_fair_in_what_it_accepted(monkeypatch):
    monkeypatch.setattr(trials, "MARGIN", 2.0)
    monkeypatch.setattr(trials, "DEPTHS", (2, 64))
    variates = normals(rehearsal(5), 10_000)
    assert len(variates.fraction._tails) == 10_000
    _, second = variates.fraction.columns(2)
    assert is_uniform((second >> np.uint64(60)).astype(np.int64), 16)
    assert follows(floats(variates), stats.norm)


def test_signs_are_fair_and_independent_of_the_size():
    variates = normals(rehearsal(6), DRAWS)
    table = [np.bincount(np.minimum(variates.whole[variates.negative == sign], 4)) for sign in (False, True)]
    assert is_plausible(stats.chi2_contingency(table).pvalue)
    assert is_uniform(variates.negative.astype(np.int64), 2)


# Canaries: errors planted in the sampler are seen by the same checks.


def test_a_scale_wrong_by_two_percent_is_seen():
    assert not follows(1.02 * floats(normals(rehearsal(11), DRAWS)), stats.norm)
    assert not follows(1.02 * floats(exponentials(rehearsal(12), DRAWS)), stats.expon)


@pytest.mark.parametrize("error", [lambda g: g / 2, lambda g: g * 1.1, lambda g: 0 * g])
@pytest.mark.long
def test_an_acceptance_with_the_wrong_exponent_is_seen(error, monkeypatch):
    correct = reals.exp_trials
    monkeypatch.setattr(reals, "exp_trials", lambda source, g, exact: correct(source, error(g), exact))
    assert not follows(floats(normals(rehearsal(13), DRAWS)), stats.norm)
    assert not follows(floats(exponentials(rehearsal(14), DRAWS)), stats.expon)


def test_a_whole_part_off_by_one_in_the_exponent_is_seen(monkeypatch):
    correct = reals._half_normal_survival
    monkeypatch.setattr(reals, "_half_normal_survival", lambda j: correct(j + 1) / correct(1))
    assert not follows(floats(normals(rehearsal(15), DRAWS)), stats.norm)


def test_bits_that_lean_to_one_side_by_one_percent_are_seen():
    _, second = normals(rehearsal(16), DRAWS // 4).fraction.columns(2)
    leaning = second.copy()
    leaning[::50] |= np.uint64(2**63)
    assert is_uniform((second >> np.uint64(58)).astype(np.int64), 64)
    assert not is_uniform((leaning >> np.uint64(58)).astype(np.int64), 64)
