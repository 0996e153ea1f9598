"""Discrete samplers: one code for small and huge scales, and no dependence on float rounding."""

from fractions import Fraction

import numpy as np
import pytest

from privcov.errors import ParameterError
from privcov.noise.exact import discrete, discrete_gaussian, discrete_laplace, trials, uniform_below
from privcov.noise.randomness import rehearsal


@pytest.mark.parametrize("scale", [1, 3, 2**40, 2**50, 2**70])
def test_results_are_machine_integers_up_to_2_to_the_50_and_python_integers_above(scale):
    for values in (
        uniform_below(rehearsal(1), scale, 10),
        discrete_laplace(rehearsal(1), scale=scale, count=10),
        discrete_gaussian(rehearsal(1), variance=Fraction(scale - 1) ** 2 + Fraction(1, 2), count=10),
    ):
        assert values.shape == (10,)
        assert values.dtype == (np.int64 if scale <= 2**50 else object)
        assert all(isinstance(value, int) for value in values.tolist())


@pytest.mark.parametrize("scale", [1, 7, 2**40, 3**25])
def test_the_big_integer_code_gives_the_law_of_the_machine_code_bit_for_bit(scale, monkeypatch):
    def draw():
        # Past the integer draw both kinds of arrays meet the same words, so equal inputs give equal outputs.
        monkeypatch.setattr(discrete, "uniform_below", lambda source, bound, count: fixed(bound, count))
        return discrete_laplace(rehearsal(3), scale=scale, count=300)

    def fixed(bound, count):
        values = (np.arange(count, dtype=object) * 1_000_003) % bound
        return values.astype(discrete._empty(bound, 0).dtype)

    machine = draw()
    monkeypatch.setattr(discrete, "_MACHINE_SCALE", 0)
    big = draw()
    assert machine.dtype == np.int64
    assert big.dtype == object
    assert machine.tolist() == big.tolist()


@pytest.mark.parametrize("scale", [1, 3, 2**40 + 1, 2**70])
def test_the_judge_alone_gives_the_same_draws_as_the_filter(scale, monkeypatch):
    def draw():
        return (
            discrete_laplace(rehearsal(4), scale=scale, count=300).tolist(),
            discrete_gaussian(rehearsal(5), variance=Fraction(7 * scale**2, 9), count=300).tolist(),
        )

    filtered = draw()
    monkeypatch.setattr(trials, "MARGIN", 2.0)
    assert draw() == filtered


def test_a_variance_too_small_for_floats_is_judged_exactly():
    assert not discrete_gaussian(rehearsal(6), variance=Fraction(1, 10**400), count=50).any()


@pytest.mark.parametrize("bound", [1, 2, 3, 2**40 + 1, 2**50, 2**50 + 1, 2**64, 2**128 - 1])
def test_uniform_integers_stay_below_their_bound_and_reach_into_both_halves(bound):
    values = uniform_below(rehearsal(7), bound, 200).tolist()
    assert min(values) >= 0
    assert max(values) < bound
    if bound > 1:
        assert min(values) < bound / 2 <= max(values)


@pytest.mark.parametrize("wrong", [0, -1])
def test_a_scale_below_one_is_refused(wrong):
    with pytest.raises(ParameterError, match="E290"):
        uniform_below(rehearsal(1), wrong, 1)
    with pytest.raises(ParameterError, match="E290"):
        discrete_laplace(rehearsal(1), scale=wrong, count=1)
    with pytest.raises(ParameterError, match="E290"):
        discrete_gaussian(rehearsal(1), variance=Fraction(wrong), count=1)


def test_no_draws_are_no_draws():
    assert discrete_laplace(rehearsal(1), scale=5, count=0).size == 0
    assert discrete_gaussian(rehearsal(1), variance=Fraction(5), count=0).size == 0
