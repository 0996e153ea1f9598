"""Rounded random matrices equal a slow reference made from many more bits of the same ideal reals."""

from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest
from flint import arb, ctx, fmpq

from privcov.errors import ParameterError
from privcov.noise.exact import (
    frobenius_ball,
    gaussian_ensemble,
    matrices,
    products,
    rounded_normals,
    trials,
    uniforms,
    wishart_difference,
)
from privcov.noise.exact.products import settle
from privcov.noise.randomness import rehearsal

SCALES = [Fraction(1, 7), Fraction(2**40), Fraction(2**70, 3), Fraction(2**200)]
WORDS = 16  # the references read 1024 fractional bits


@pytest.fixture
def drawn(monkeypatch):
    """The lazily refined reals a function under test drew, in order."""
    kept = []
    for name in ("normals", "exponentials"):
        original = getattr(matrices, name)

        def keep(randomness, count, original=original):
            kept.append(original(randomness, count))
            return kept[-1]

        monkeypatch.setattr(matrices, name, keep)
    return kept


def values(reals):
    """The reals to 2^-1024, as fractions."""
    return [Fraction(m, 2 ** (64 * WORDS)) for m in reals.lower(np.arange(reals.whole.size), WORDS)]


def nearest(value):
    return (2 * value.numerator + value.denominator) // (2 * value.denominator)


def ball(value):
    return arb(fmpq(value.numerator, value.denominator))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("dimension", [1, 2, 3, 6])
def test_a_wishart_difference_is_the_nearest_integer_to_the_ideal_one(dimension, scale, drawn):
    rounded = wishart_difference(rehearsal(1), dimension=dimension, scale=scale)
    assert rounded.tolist() == reference_wishart(values(drawn[0]), dimension, scale)
    assert rounded.dtype == object


def reference_wishart(entries, dimension, scale, columns=None):
    inner = 2 * (dimension + 1)
    rows = [entries[inner * i : inner * (i + 1)] for i in range(dimension)]
    sign = [1] * (dimension + 1) + [-1] * (dimension + 1)
    products = (
        [s * x * y for s, x, y in zip(sign, rows[i], rows[j], strict=True)][:columns]
        for i, j in combinations_with_replacement(range(dimension), 2)
    )
    return [nearest(scale * sum(terms)) for terms in products]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("dimension", [1, 2, 5])
@pytest.mark.parametrize("trace_keep", [Fraction(1), Fraction(1, 3), Fraction(0)])
def test_a_gaussian_ensemble_is_the_nearest_integer_to_the_ideal_one(dimension, scale, trace_keep, drawn):
    rounded = gaussian_ensemble(
        rehearsal(2),
        dimension=dimension,
        diagonal_std=scale,
        offdiagonal_std=scale * Fraction(5, 7),
        trace_keep=trace_keep,
    )
    entries = values(drawn[0])
    pairs = list(combinations_with_replacement(range(dimension), 2))
    mean = sum(x for x, (i, j) in zip(entries, pairs, strict=True) if i == j) / dimension
    expected = [
        nearest(scale * (x - (1 - trace_keep) * mean) if i == j else scale * Fraction(5, 7) * x)
        for x, (i, j) in zip(entries, pairs, strict=True)
    ]
    if dimension == 1 and trace_keep == 0:
        # The ideal entry is exactly 0, and the reference sees it so.
        assert expected == [0]
    assert rounded.tolist() == expected


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_a_frobenius_ball_is_the_nearest_integer_to_the_ideal_one(dimension, scale, drawn):
    rounded = frobenius_ball(rehearsal(3), dimension=dimension, scale=scale)
    with ctx.workprec(1200):
        entries, summands = ([ball(value) for value in values(reals)] for reals in drawn)
        norm = sum(x * x for x in entries).sqrt()
        radius = ball(scale) * sum(summands)
        for got, x, (i, j) in zip(
            rounded, entries, combinations_with_replacement(range(dimension), 2), strict=True
        ):
            ideal = radius * x / norm / (arb(1) if i == j else arb(2).sqrt())
            assert abs(ideal - got) <= arb(0.5)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "draw",
    [
        lambda source: wishart_difference(source, dimension=5, scale=Fraction(2**40)),
        lambda source: frobenius_ball(source, dimension=5, scale=Fraction(2**40)),
        lambda source: gaussian_ensemble(
            source,
            dimension=5,
            diagonal_std=Fraction(2**40),
            offdiagonal_std=Fraction(10**12, 7),
            trace_keep=Fraction(1, 3),
        ),
    ],
)
def test_bounds_from_few_bits_hold_what_many_bits_say(draw, seed, monkeypatch):
    enclosures = []

    def keep(count, enclose, **how):
        enclosures.append((np.arange(count), enclose))
        return settle(count, enclose, **how)

    monkeypatch.setattr(matrices, "settle", keep)
    draw(rehearsal(seed))
    for where, enclose in enclosures:
        intervals = []
        for words in (1, 2, 16):
            lower, upper, denominator = enclose(where, words)
            pairs = zip(lower, upper, strict=True)
            intervals.append([(Fraction(a, denominator), Fraction(b, denominator)) for a, b in pairs])
        for first, second, last in zip(*intervals, strict=True):
            assert first[0] <= second[0] <= last[0] <= last[1] <= second[1] <= first[1]
            assert first[1] - first[0] < Fraction(1, 2**10)


def test_the_comparison_sees_a_missing_column_and_a_scale_wrong_in_its_last_place(drawn):
    scale = Fraction(2**40)
    rounded = wishart_difference(rehearsal(4), dimension=3, scale=scale).tolist()
    entries = values(drawn[0])
    assert rounded == reference_wishart(entries, 3, scale)
    assert rounded != reference_wishart(entries, 3, scale, columns=7)
    assert rounded != reference_wishart(entries, 3, scale + 1)


def test_the_judge_alone_gives_the_same_matrices_as_the_filter(monkeypatch):
    def draw():
        one = Fraction(2**40)
        return [
            wishart_difference(rehearsal(5), dimension=4, scale=one).tolist(),
            gaussian_ensemble(
                rehearsal(6), dimension=4, diagonal_std=one, offdiagonal_std=one, trace_keep=Fraction(1, 2)
            ).tolist(),
            frobenius_ball(rehearsal(7), dimension=4, scale=one).tolist(),
        ]

    filtered = draw()
    monkeypatch.setattr(trials, "MARGIN", 2.0)
    assert draw() == filtered


def test_a_norm_of_which_no_bit_is_set_yet_waits_for_more_bits(monkeypatch, drawn):
    draw = matrices.normals

    def tiny(randomness, count):
        reals = draw(randomness, count)
        reals.whole[:] = 0
        reals.fraction.first[:] = 0
        return reals

    monkeypatch.setattr(matrices, "normals", tiny)
    # In one dimension the direction is a sign, so the entry is plus or minus the radius.
    (entry,) = frobenius_ball(rehearsal(8), dimension=1, scale=Fraction(2**40)).tolist()
    radius = 2**40 * values(drawn[1])[0]
    assert abs(abs(entry) - radius) <= Fraction(1, 2)


@pytest.mark.parametrize("wrong", [Fraction(0), Fraction(-1), Fraction(2**1000)])
def test_a_scale_outside_its_range_is_refused(wrong):
    with pytest.raises(ParameterError, match="scale"):
        wishart_difference(rehearsal(1), dimension=2, scale=wrong)
    with pytest.raises(ParameterError, match="scale"):
        frobenius_ball(rehearsal(1), dimension=2, scale=wrong)
    with pytest.raises(ParameterError, match="diagonal_std"):
        gaussian_ensemble(
            rehearsal(1), dimension=2, diagonal_std=wrong, offdiagonal_std=Fraction(1), trace_keep=Fraction(1)
        )


def test_a_dimension_below_one_and_a_share_outside_zero_to_one_are_refused():
    with pytest.raises(ParameterError, match="dimension"):
        wishart_difference(rehearsal(1), dimension=0, scale=Fraction(1))
    for share in (Fraction(-1, 9), Fraction(10, 9)):
        with pytest.raises(ParameterError, match="trace_keep"):
            gaussian_ensemble(
                rehearsal(1),
                dimension=2,
                diagonal_std=Fraction(1),
                offdiagonal_std=Fraction(1),
                trace_keep=share,
            )


@pytest.mark.parametrize("scale", SCALES)
def test_matrices_drawn_in_pieces_are_still_the_nearest_integers(scale, drawn, monkeypatch):
    """Four places at a time, as a million and more are; int64 unless it does not hold them."""
    for module in (uniforms, products):
        monkeypatch.setattr(module, "PIECE", 4)
    keep = Fraction(2, 5)
    rounded = gaussian_ensemble(
        rehearsal(2), dimension=6, diagonal_std=scale, offdiagonal_std=scale / 3, trace_keep=keep
    )
    entries = values(drawn[0])
    places = list(combinations_with_replacement(range(6), 2))
    mean = sum(x for x, (i, j) in zip(entries, places, strict=True) if i == j) / 6
    assert rounded.tolist() == [
        nearest(scale * (x - (1 - keep) * mean) if i == j else scale / 3 * x)
        for x, (i, j) in zip(entries, places, strict=True)
    ]
    assert rounded.dtype == (np.int64 if scale < 2**60 else object)
    ball_of = frobenius_ball(rehearsal(3), dimension=4, scale=scale)
    monkeypatch.setattr(uniforms, "PIECE", 2**20)
    assert ball_of.size == 10
    assert len(drawn) == 3


@pytest.mark.parametrize("std", [*SCALES, Fraction(3**31, 7), Fraction(1, 2**60)])
def test_floats_round_as_bounds_do_or_leave_it_to_them(std, monkeypatch):
    quick = rounded_normals(rehearsal(5), count=3000, std=std)
    asked = []

    def without_floats(count, enclose, near=None, **how):
        asked.append(near)
        return settle(count, enclose, **how)

    monkeypatch.setattr(matrices, "settle", without_floats)
    assert quick.tolist() == rounded_normals(rehearsal(5), count=3000, std=std).tolist()
    assert asked[0] is not None


def test_floats_that_claim_too_much_are_seen(monkeypatch):
    """The comparison above has power: without the allowance for rounding, integers differ."""
    std, original = Fraction(3**31, 7), matrices.settle

    def boastful(count, enclose, near=None, **how):
        def certain(where):
            found, _ = near(where)
            return found, np.zeros(found.size)

        return original(count, enclose, near=certain, **how)

    slow = rounded_normals(rehearsal(5), count=3000, std=std)
    monkeypatch.setattr(matrices, "settle", boastful)
    assert slow.tolist() != rounded_normals(rehearsal(5), count=3000, std=std).tolist()


def test_the_error_of_a_float_is_within_what_is_allowed_for(drawn):
    rounded_normals(rehearsal(6), count=2000, std=Fraction(1))
    reals, where = drawn[0], np.arange(2000)
    for found, true in zip(reals.floats(where).tolist(), values(reals), strict=True):
        assert abs(Fraction(found) - true) <= (2 + abs(true)) / 2**53
