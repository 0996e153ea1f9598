"""Exact decisions: the filter and the judge tell the same truth, and the judge tells it to the last bit."""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx, fmpq

from privcov.errors import InternalError
from privcov.noise.exact import (
    discrete,
    discrete_gaussian,
    discrete_laplace,
    exponentials,
    normals,
    reals,
    trials,
)
from privcov.noise.exact.reals import _half_normal_survival
from privcov.noise.exact.trials import exp_trials, exponential_survival, whole_numbers
from privcov.noise.exact.uniforms import LazyUniforms
from privcov.noise.randomness import Randomness, rehearsal

ONES = 2**64 - 1


class Scripted(Randomness):
    """Words from a list, then one word for ever."""

    kind = "rehearsal"

    def __init__(self, words, then=0):
        self._words, self._then = list(words), then

    def words(self, count):
        taken, self._words = self._words[:count], self._words[count:]
        return np.array(taken + [self._then] * (count - len(taken)), dtype=np.uint64)


def leading_word(value):
    with ctx.workprec(256):
        return int((value() * arb(2) ** 64).floor().unique_fmpz())


def trial(words, exponent, then=0, approximate=None):
    approximate = float(exponent) if approximate is None else approximate
    exact = fmpq(exponent.numerator, exponent.denominator) if hasattr(exponent, "numerator") else exponent
    source = Scripted(words, then)
    return bool(exp_trials(source, np.array([approximate]), lambda index, depth: arb(exact))[0])


@pytest.mark.parametrize("exponent", [1, 2, 7, 30])
def test_a_uniform_that_shares_64_bits_with_the_probability_is_judged_by_the_next_ones(exponent):
    shared = leading_word(lambda: arb(-exponent).exp())
    assert trial([shared, 0], exponent)
    assert not trial([shared, ONES], exponent)
    assert trial([shared - 1, ONES], exponent)
    assert not trial([shared + 1, 0], exponent)


def test_the_judge_reads_as_many_words_as_it_takes():
    with ctx.workprec(1000):
        digits = int((arb(-1).exp() * arb(2) ** 640).floor().unique_fmpz())
    words = [digits >> (64 * place) & ONES for place in reversed(range(10))]
    assert trial([*words[:9], words[9] - 1], 1, then=ONES)
    assert not trial([*words[:9], words[9] + 1], 1)


def test_exponent_zero_always_succeeds_even_on_the_largest_word():
    assert trial([ONES, 0], 0)
    assert trial([0], 0)


def test_an_exponent_that_is_not_known_in_floats_goes_to_the_judge():
    assert trial([2**63], 0, approximate=float("nan"))
    assert not trial([2**63], 5, approximate=float("nan"))


def test_a_decision_that_never_comes_gives_up_instead_of_guessing():
    with pytest.raises(InternalError):
        trial([], 0, then=ONES)


def test_the_filter_decides_exactly_as_the_judge(monkeypatch):
    exponents = np.concatenate([np.linspace(0, 3, 1500), np.geomspace(1e-12, 40, 500)])
    ratios = [value.as_integer_ratio() for value in exponents.tolist()]

    def decide():
        return exp_trials(rehearsal(11), exponents, lambda index, words: arb(fmpq(*ratios[index])))

    filtered = decide()
    monkeypatch.setattr(trials, "MARGIN", 2.0)
    assert np.array_equal(filtered, decide())
    assert 0 < filtered.sum() < filtered.size


@pytest.mark.parametrize("survival", [exponential_survival, _half_normal_survival])
def test_the_table_counts_exactly_as_the_judge(survival, monkeypatch):
    def count():
        return whole_numbers(LazyUniforms(rehearsal(12), 2000), survival)

    tabled = count()
    monkeypatch.setattr(trials, "MARGIN", 2.0)
    assert np.array_equal(tabled, count())
    assert tabled.max() >= 2


@pytest.mark.parametrize("survival", [exponential_survival, _half_normal_survival])
@pytest.mark.parametrize("j", [1, 2, 3, 6])
def test_a_uniform_next_to_a_threshold_of_the_table_falls_on_the_right_side(survival, j):
    shared = leading_word(lambda: survival(j))
    for word, then, expected in [
        (shared, 0, j),
        (shared, ONES, j - 1),
        (shared - 1, ONES, j),
        (shared + 1, 0, j - 1),
    ]:
        assert whole_numbers(LazyUniforms(Scripted([word], then), 1), survival).tolist() == [expected]


def test_a_first_word_of_zero_is_beyond_the_table_and_still_counted():
    found = whole_numbers(LazyUniforms(Scripted([0, 2**40]), 1), exponential_survival)
    # U is between 2^-88 and 2^-88 + 2^-128, and -ln 2^-88 = 60.9968.
    assert found.tolist() == [60]


@pytest.mark.parametrize("j", [0, 1, 2, 5, 40])
def test_a_unit_exponential_survives_a_whole_number_as_exp_says(j):
    assert float(exponential_survival(j)) == pytest.approx(math.exp(-j), rel=1e-14)


def test_the_weights_of_the_half_normal_wholes_are_exp_of_minus_half_the_square():
    with ctx.workprec(200):
        shares = [_half_normal_survival(k) - _half_normal_survival(k + 1) for k in range(6)]
        for k in range(5):
            ratio = shares[k + 1] / shares[k]
            assert ratio.overlaps((arb(-(2 * k + 1)) / 2).exp())
            assert ratio.rad() < arb(2) ** -100
        assert _half_normal_survival(0).contains(1)


# What the margin must cover, measured where the samplers call: the float value of every probability.


@pytest.mark.parametrize(
    "draw",
    [
        lambda source: normals(source, 300),
        lambda source: exponentials(source, 300),
        lambda source: discrete_laplace(source, scale=7, count=100),
        lambda source: discrete_laplace(source, scale=2**50, count=300),
        lambda source: discrete_laplace(source, scale=3**60, count=300),
        lambda source: discrete_gaussian(source, variance=Fraction(1, 30), count=50),
        lambda source: discrete_gaussian(source, variance=Fraction(1), count=300),
        lambda source: discrete_gaussian(source, variance=Fraction(2**99), count=300),
        lambda source: discrete_gaussian(source, variance=Fraction(10**50, 7), count=300),
    ],
)
def test_the_margin_is_eight_times_what_the_floats_of_every_sampler_are_allowed_to_err(draw, monkeypatch):
    worst = 0.0

    def checked(source, exponents, exact):
        nonlocal worst
        with ctx.workprec(200):
            for index, approximate in enumerate(np.exp(-exponents).tolist()):
                error = abs(arb(approximate) - (-exact(index, 1)).exp())
                worst = max(worst, float(error.abs_upper()))
        return exp_trials(source, exponents, exact)

    for module in (discrete, reals):
        monkeypatch.setattr(module, "exp_trials", checked)
    draw(rehearsal(21))
    assert 0 < worst < 2.0**-45
    assert trials.MARGIN >= 8 * 2.0**-43
