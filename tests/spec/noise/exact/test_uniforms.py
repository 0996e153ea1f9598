"""Lazily revealed uniform reals: revealing appends bits and never changes one."""

import numpy as np
import pytest
from flint import arb, ctx

from privcov.noise.exact.uniforms import LazyUniforms, fair_signs
from privcov.noise.randomness import rehearsal


def test_revealing_more_words_of_one_real_keeps_those_it_had():
    reals = LazyUniforms(rehearsal(1), 5)
    long = reals.prefix(3, 7)
    for words in (1, 2, 4, 6):
        assert reals.prefix(3, words) == long >> (64 * (7 - words))


def test_words_a_judge_drew_for_one_real_come_first_when_all_are_deepened():
    reals = LazyUniforms(rehearsal(2), 4)
    judged = reals.prefix(2, 3)
    columns = reals.columns(5)
    assert [int(column[2]) for column in columns[:3]] == [
        judged >> 128,
        (judged >> 64) % 2**64,
        judged % 2**64,
    ]
    deep = reals.prefix(2, 5)
    assert deep >> 128 == judged
    assert deep % 2**64 == int(columns[4][2])


def test_a_real_deepened_with_all_others_can_still_be_deepened_alone():
    reals = LazyUniforms(rehearsal(3), 4)
    known = reals.columns(2)
    assert reals.prefix(1, 4) >> 128 == (int(known[0][1]) << 64) + int(known[1][1])


def test_a_renewed_real_forgets_its_tail_and_leaves_the_others_alone():
    reals = LazyUniforms(rehearsal(4), 3)
    old = [reals.prefix(index, 3) for index in range(3)]
    reals.renew(np.array([1]))
    new = [reals.prefix(index, 3) for index in range(3)]
    assert (new[0], new[2]) == (old[0], old[2])
    assert new[1] >> 128 != old[1] >> 128
    assert new[1] % 2**128 != old[1] % 2**128


@pytest.mark.parametrize("words", [1, 2, 5])
def test_a_ball_is_the_interval_of_the_known_bits_and_no_wider(words):
    reals = LazyUniforms(rehearsal(5), 1)
    m = reals.prefix(0, words)
    with ctx.workprec(64 * words + 64):
        unit = arb(2) ** (-64 * words)
        ball = reals.ball(0, words)
        assert ball.contains(m * unit)
        assert ball.contains((m + 1) * unit)
        assert not ball.contains((m - 1) * unit)
        assert not ball.contains((m + 2) * unit)


def test_floats_are_within_two_to_the_minus_53_of_the_interval():
    reals = LazyUniforms(rehearsal(6), 1000)
    for value, word in zip(reals.floats(), reals.first.tolist(), strict=True):
        numerator, denominator = float(value).as_integer_ratio()
        assert abs(numerator * 2**64 - word * denominator) <= 2**11 * denominator


def test_every_sign_is_its_own_bit():
    signs = fair_signs(rehearsal(7), 130)
    bits = [bool(word >> place & 1) for word in rehearsal(7).words(3).tolist() for place in range(64)]
    assert signs.size == 130
    assert sum(signs.tolist()) != 0
    # Each of the first 128 signs is a distinct bit of two words, so they agree as counts.
    assert int(signs[:128].sum()) == sum(bits[:128])
