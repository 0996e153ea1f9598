"""The discrete samplers follow their laws, small scales and huge, and the checks see planted errors.

Every check is two-sided: it rejects a p-value below ALARM and one above 1 - ALARM (a fit too good). There are
fewer than 100 p-values here, so a correct sampler with fresh seeds would fail this file less than once in a
million runs; the seeds are fixed. With DRAWS draws the checks see a scale wrong by 5 percent and a cell of
probability 0.1 wrong by 5 percent, as the canaries show.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from privcov.noise.exact import discrete, discrete_cube, discrete_gaussian, discrete_laplace, uniform_below
from privcov.noise.randomness import rehearsal

ALARM = 5e-9
DRAWS = 200_000


def is_plausible(p_value):
    return bool(ALARM < p_value < 1 - ALARM)


def fits_weights(sample, weight):
    """Chi-square of integers against P(x) ∝ weight(|x|), cells expecting under 20 pooled into the tails."""
    sample = np.asarray(sample, dtype=np.int64)
    reach = 1
    while weight(reach) > 1e-18:
        reach += 1
    support = np.arange(-reach, reach + 1)
    probability = np.array([weight(abs(int(x))) for x in support])
    probability /= probability.sum()
    inner = int(np.sum(probability[reach:] * sample.size >= 20)) - 1
    cells = np.clip(support, -inner, inner) + inner
    expected = np.bincount(cells, probability) * sample.size
    observed = np.bincount(np.clip(sample, -inner, inner) + inner, minlength=expected.size)
    return is_plausible(stats.chisquare(observed, expected).pvalue)


def fits_continuous(sample, scale, law):
    """At a huge scale: Kolmogorov–Smirnov of x/scale, and the low bits uniform."""
    ratios = np.array([int(x) / scale for x in sample])
    low_bits = np.bincount([int(x) % 64 for x in sample], minlength=64)
    return is_plausible(stats.kstest(ratios, law.cdf, method="asymp").pvalue) and is_plausible(
        stats.chisquare(low_bits).pvalue
    )


def laplace_weight(scale):
    return lambda x: math.exp(-x / scale)


def gaussian_weight(variance):
    return lambda x: math.exp(-x * x / (2 * float(variance)))


@pytest.mark.parametrize("scale", [1, 2, 3, 7])
def test_discrete_laplace_follows_its_law_at_small_scales(scale):
    sample = discrete_laplace(rehearsal(scale), scale=scale, count=DRAWS)
    assert fits_weights(sample, laplace_weight(scale))


@pytest.mark.parametrize(
    "variance", [Fraction(1, 5), Fraction(1), Fraction(2), Fraction(22, 7), Fraction(49)]
)
def test_discrete_gaussian_follows_its_law_at_small_scales(variance):
    sample = discrete_gaussian(rehearsal(21), variance=variance, count=DRAWS)
    assert fits_weights(sample, gaussian_weight(variance))


@pytest.mark.parametrize(("scale", "draws"), [(2**40, DRAWS), (3**25, DRAWS), (2**70, DRAWS // 4)])
def test_both_follow_the_continuous_laws_at_huge_scales_down_to_uniform_low_bits(scale, draws):
    assert fits_continuous(discrete_laplace(rehearsal(31), scale=scale, count=draws), scale, stats.laplace)
    sample = discrete_gaussian(rehearsal(32), variance=Fraction(scale) ** 2, count=draws)
    assert fits_continuous(sample, scale, stats.norm)


def cubes(scale, dimension, draws, seed=1):
    stream = rehearsal(seed)
    return np.array(
        [discrete_cube(stream, scale=scale, dimension=dimension) for _ in range(draws)], dtype=float
    )


def fits_cube(sample, scale):
    """Chi-square of pairs of integers against P(x) ∝ exp(-max|x|/scale), cells expecting under 20 pooled."""
    reach = 40 * scale
    axis = np.abs(np.arange(-reach, reach + 1))
    weight = np.exp(-np.maximum(axis[:, None], axis) / scale)
    expected = weight / weight.sum() * len(sample)
    observed, _, _ = np.histogram2d(*sample.T, bins=[np.arange(-reach, reach + 2) - 0.5] * 2)
    rare = expected < 20
    cells = [np.append(table[~rare], table[rare].sum()) for table in (observed, expected)]
    return is_plausible(stats.chisquare(*cells).pvalue)


@pytest.mark.long
def test_the_cube_follows_its_law_at_a_small_scale():
    assert fits_cube(cubes(2, 2, 5_000), 2)
    assert not fits_cube(cubes(3, 2, 5_000), 2)


@pytest.mark.long
def test_a_half_width_that_is_not_thinned_is_seen(monkeypatch):
    monkeypatch.setattr(discrete, "_below", lambda *_: True)
    assert not fits_cube(cubes(2, 2, 5_000), 2)


def test_the_cube_at_a_huge_scale_has_a_gamma_radius_and_lies_evenly_in_its_shell():
    """max|x|/scale is Gamma(d); where one coordinate is the largest, the others are uniform below it."""
    sample = cubes(2**60, 3, 1_500) / 2.0**60
    largest = np.abs(sample).max(axis=1)
    assert is_plausible(stats.kstest(largest, stats.gamma(3).cdf).pvalue)
    others = np.sort(np.abs(sample), axis=1)[:, :2] / largest[:, None]
    assert is_plausible(stats.kstest(others[:, 1], lambda t: t**2).pvalue)  # the larger of two uniforms


@pytest.mark.parametrize("bound", [2, 3, 7, 3 * 2**48, 3 * 2**68])
def test_uniform_integers_are_uniform(bound):
    sample = uniform_below(rehearsal(41), bound, DRAWS // 4).tolist()
    cells = min(bound, 48)
    observed = np.bincount([x * cells // bound for x in sample], minlength=cells)
    assert is_plausible(stats.chisquare(observed).pvalue)


# A slow, obvious reference: the algorithms as published, one integer at a time, from rational coins only.


class Textbook:
    def __init__(self, seed, *, zero_twice=False):
        self._bits = rehearsal(seed)
        self._pool = []
        self._zero_twice = zero_twice

    def below(self, bound):
        while True:
            if not self._pool:
                self._pool = self._bits.words(4096).tolist()
            word = self._pool.pop()
            if word < 2**64 // bound * bound:
                return word % bound

    def coin(self, p):
        return self.below(p.denominator) < p.numerator

    def coin_exp(self, gamma):
        """Bernoulli(exp(-gamma)) by the alternating series, gamma any nonnegative rational."""
        while gamma > 1:
            if not self.coin_exp(Fraction(1)):
                return False
            gamma -= 1
        k = 1
        while self.coin(gamma / k):
            k += 1
        return k % 2 == 1

    def laplace(self, scale):
        while True:
            rest = self.below(scale)
            if not self.coin_exp(Fraction(rest, scale)):
                continue
            multiple = 0
            while self.coin_exp(Fraction(1)):
                multiple += 1
            magnitude, negative = rest + scale * multiple, self.coin(Fraction(1, 2))
            if self._zero_twice or magnitude or not negative:
                return -magnitude if negative else magnitude

    def gaussian(self, variance):
        scale = math.isqrt(math.floor(variance)) + 1
        while True:
            y = self.laplace(scale)
            if self.coin_exp((abs(y) - variance / scale) ** 2 / (2 * variance)):
                return y


def same_law(one, other):
    """Two-sample chi-square over the cells -4 … 4 and beyond."""
    counts = [
        np.bincount(np.clip(np.asarray(s, dtype=np.int64), -5, 5) + 5, minlength=11) for s in (one, other)
    ]
    kept = [column for column in zip(*counts, strict=True) if sum(column) >= 20]
    return is_plausible(stats.chi2_contingency(list(zip(*kept, strict=True))).pvalue)


@pytest.mark.parametrize("scale", [1, 2, 3])
def test_the_fast_laplace_and_the_textbook_one_have_the_same_law(scale):
    slow = Textbook(51)
    reference = [slow.laplace(scale) for _ in range(20_000)]
    assert fits_weights(reference, laplace_weight(scale))
    assert same_law(discrete_laplace(rehearsal(52), scale=scale, count=20_000), reference)


def test_the_fast_gaussian_and_the_textbook_one_have_the_same_law():
    slow, variance = Textbook(53), Fraction(22, 7)
    reference = [slow.gaussian(variance) for _ in range(20_000)]
    assert fits_weights(reference, gaussian_weight(variance))
    assert same_law(discrete_gaussian(rehearsal(54), variance=variance, count=20_000), reference)


# Canaries: the checks above reject samplers that are broken on purpose.


def test_zero_counted_with_both_signs_is_seen():
    broken = Textbook(61, zero_twice=True)
    sample = [broken.laplace(3) for _ in range(20_000)]
    assert not fits_weights(sample, laplace_weight(3))
    assert not same_law(discrete_laplace(rehearsal(62), scale=3, count=20_000), sample)


def test_a_remainder_that_may_equal_the_scale_is_seen(monkeypatch):
    correct = discrete.uniform_below
    monkeypatch.setattr(
        discrete, "uniform_below", lambda source, bound, count: correct(source, bound + 1, count)
    )
    for scale in (1, 3, 7):
        sample = discrete_laplace(rehearsal(63), scale=scale, count=DRAWS)
        assert not fits_weights(sample, laplace_weight(scale))


def test_an_acceptance_exponent_off_by_one_unit_is_seen(monkeypatch):
    correct = discrete._quotients
    monkeypatch.setattr(discrete, "_quotients", lambda values, scale: correct(values + 1, scale))
    for variance in (Fraction(2), Fraction(49)):
        sample = discrete_gaussian(rehearsal(68), variance=variance, count=DRAWS)
        assert not fits_weights(sample, gaussian_weight(variance))


@pytest.mark.parametrize("factor", [Fraction(1, 2), Fraction(19, 20)])
def test_a_scale_too_small_is_seen_at_every_size(factor):
    scale = 2**40
    wrong = int(factor * scale)
    sample = discrete_laplace(rehearsal(64), scale=wrong, count=DRAWS * 2)
    assert not fits_continuous(sample, scale, stats.laplace)
    variance = (factor * scale) ** 2
    sample = discrete_gaussian(rehearsal(65), variance=variance, count=DRAWS * 2)
    assert not fits_continuous(sample, scale, stats.norm)
    sample = discrete_gaussian(rehearsal(66), variance=factor * 7, count=DRAWS)
    assert not fits_weights(sample, gaussian_weight(7))


def test_a_fit_too_good_is_seen():
    expected = [math.exp(-abs(x) / 3) for x in range(-60, 61)]
    counts = np.rint(np.array(expected) / sum(expected) * DRAWS).astype(int)
    sample = np.repeat(np.arange(-60, 61), counts)
    assert not fits_weights(sample, laplace_weight(3))


def test_low_bits_that_are_always_zero_are_seen():
    sample = discrete_laplace(rehearsal(67), scale=2**40, count=20_000) & ~1
    assert not fits_continuous(sample, 2**40, stats.laplace)
