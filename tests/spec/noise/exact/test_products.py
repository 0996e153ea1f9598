"""Exact products by float64 limbs, and rounding that asks for more bits instead of guessing."""

from fractions import Fraction

import numpy as np
import pytest

from privcov.errors import InternalError
from privcov.noise.exact.products import _field, _limbs, _signed_products, gram_difference, settle
from privcov.noise.exact.reals import LazyReals, normals
from privcov.noise.exact.uniforms import DEPTHS, LazyUniforms
from privcov.noise.randomness import Randomness, rehearsal


class Constant(Randomness):
    """One word for ever: the corner cases of every carry."""

    kind = "rehearsal"

    def __init__(self, word):
        self._word = word

    def words(self, count):
        return np.full(count, self._word, dtype=np.uint64)


def constant_reals(word, *, whole, count):
    return LazyReals(
        negative=np.arange(count) % 2 == 1,
        whole=np.full(count, whole),
        fraction=LazyUniforms(Constant(word), count),
    )


def cut(reals, bits):
    """Signed integers: the magnitudes cut to so many fractional bits."""
    words = -(-bits // 64)
    magnitudes = reals.magnitudes(np.arange(reals.whole.size), words) >> (64 * words - bits)
    return np.where(reals.negative, -magnitudes, magnitudes)


@pytest.mark.parametrize("start", [0, 1, 40, 63, 64, 100, 127])
@pytest.mark.parametrize("length", [0, 1, 22, 63])
def test_a_field_of_bits_is_read_across_word_boundaries(start, length):
    reals = LazyUniforms(rehearsal(1), 20)
    columns = reals.columns(4)
    expected = [reals.prefix(index, 4) >> (256 - start - length) & ((1 << length) - 1) for index in range(20)]
    assert _field(columns, start, length).tolist() == expected


@pytest.mark.parametrize("word", [0, 1, 2**63, 2**64 - 1, 0x5555555555555555, 0xAAAAAAAAAAAAAAAA])
@pytest.mark.parametrize(("width", "limbs"), [(22, 3), (22, 5), (15, 9), (26, 2)])
@pytest.mark.parametrize("whole", [0, 1, 7])
def test_limbs_add_up_to_the_cut_real_and_are_never_larger_than_half_their_range(word, width, limbs, whole):
    reals = constant_reals(word, whole=whole, count=2)
    bits = limbs * width - 1 - whole.bit_length()
    found = _limbs(reals, width=width, bits=bits)
    assert len(found) == limbs
    assert max(abs(limb).max() for limb in found) <= 2 ** (width - 1)
    total = sum(limb.astype(np.int64).astype(object) << (width * place) for place, limb in enumerate(found))
    assert total.tolist() == cut(reals, bits).tolist()


@pytest.mark.parametrize("word", [0x5555555555555555, 2**63, 2**64 - 1])
@pytest.mark.parametrize("dimension", [1, 2, 40])
def test_products_are_exact_where_every_limb_is_as_large_as_it_can_be(word, dimension):
    check_products(constant_reals(word, whole=3, count=dimension * 2 * (dimension + 1)), dimension)


@pytest.mark.parametrize("dimension", [1, 3, 40])
def test_products_are_exact_for_random_entries(dimension):
    check_products(normals(rehearsal(2), dimension * 2 * (dimension + 1)), dimension)


def check_products(entries, dimension):
    i, j = np.triu_indices(dimension)
    for wanted in (50, 62, 150):
        products, bits = _signed_products(entries, i, j, dimension=dimension, bits=wanted)
        assert bits >= wanted
        table = cut(entries, bits).reshape(dimension, -1)
        a, b = table[:, : dimension + 1], table[:, dimension + 1 :]
        expected = (a.dot(a.T) - b.dot(b.T))[i, j]
        assert products.tolist() == expected.tolist()


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(2**40), Fraction(10**30, 7)])
def test_bounds_only_narrow_and_always_hold_the_value_from_many_more_bits(scale):
    entries = normals(rehearsal(3), 24)
    enclose = gram_difference(entries, dimension=3, scale=scale)
    where = np.arange(6)
    intervals = []
    for words in (1, 2, 8):
        lower, upper, denominator = enclose(where, words)
        pairs = zip(lower, upper, strict=True)
        intervals.append([(Fraction(a, denominator), Fraction(b, denominator)) for a, b in pairs])
    for first, second, last in zip(*intervals, strict=True):
        assert first[0] <= second[0] <= last[0] <= last[1] <= second[1] <= first[1]
        assert first[1] - first[0] < Fraction(1, 2**20)


def test_a_half_is_rounded_up_on_both_sides_of_zero():
    halves = np.array([-3, -1, 1, 3, 0], dtype=object)
    assert settle(5, lambda where, words: (halves[where], halves[where], 2)).tolist() == [-1, 0, 1, 2, 0]


def test_only_what_is_in_doubt_is_asked_for_again():
    asked = []

    def enclose(where, words):
        asked.append((where.tolist(), words))
        # Place 1 lies at 1/2 + 2^-100, which one word cannot tell from 1/2 - 2^-64.
        value = (where == 1).astype(object) * (2 ** (64 * words - 1) + (1 << (64 * words) >> 100))
        return value - 1, value + 1, 1 << (64 * words)

    assert settle(3, enclose).tolist() == [0, 1, 0]
    assert asked == [([0, 1, 2], 1), ([1], 2)]


def test_a_rounding_that_never_settles_gives_up_instead_of_guessing():
    tie = np.array([1], dtype=object)
    asked = []

    def enclose(where, words):
        asked.append(words)
        return 4 * tie - 1, 4 * tie + 1, 8

    with pytest.raises(InternalError):
        settle(1, enclose)
    assert tuple(asked) == DEPTHS
