"""Stable and finite histograms: δ and ε by exact calculation, and the sampler against it.

The exact calculations have no false alarms. The one statistical test is two-sided at 1e-7 and finds a
threshold that is off by one person.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

import privcov as pc
from privcov.errors import ParameterError
from privcov.noise.randomness import rehearsal
from privcov.unbounded.univariate import Noise, finite_counts, fullest, stable_counts, threshold

NOTHING = None


def loss(epsilon=1, delta="0.001"):
    return pc.ApproxDP(epsilon=epsilon, delta=delta, neighbours="replace-one")


def outcomes(count, noise, least):
    """The law of what is seen of one bin: nothing, or a noisy count; far tails lumped together."""
    if count == 0:
        return {NOTHING: 1.0}
    q = math.exp(-1 / noise.scale)
    far = noise.multiple * count + 60 * noise.scale
    law = {value: (1 - q) / (1 + q) * q ** abs(value - noise.multiple * count) for value in range(least, far)}
    law["far"] = q ** (far - noise.multiple * count) / (1 + q)
    law[NOTHING] = max(0.0, 1 - sum(law.values()))
    return law


def excess(before, after, noise, least, epsilon):
    """The δ that ε needs between two pairs of changed counts: Σ max(0, P − e^ε P′), both ways."""
    laws = [[outcomes(count, noise, least) for count in counts] for counts in (before, after)]
    total = [0.0, 0.0]
    for seen in product(*({*laws[0][i], *laws[1][i]} for i in (0, 1))):
        p, other = (math.prod(law.get(s, 0.0) for law, s in zip(pair, seen, strict=True)) for pair in laws)
        total[0] += max(0.0, p - math.exp(epsilon) * other)
        total[1] += max(0.0, other - math.exp(epsilon) * p)
    return max(total)


CHANGES = [
    ((1, 0), (0, 1)),
    ((1, 1), (0, 2)),
    ((2, 0), (1, 1)),
    ((3, 4), (2, 5)),
    ((1, 9), (0, 10)),
    ((30, 40), (29, 41)),
]


@pytest.mark.parametrize(("epsilon", "delta"), [(1, 0.001), (2, 0.01), (Fraction(1, 2), 0.05), (3, 0.2)])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.long
def test_delta_bounds_every_change_of_two_bins(change, epsilon, delta):
    noise = Noise.of(loss(epsilon, delta))
    least = threshold(noise, Fraction(str(delta)))
    assert excess(*change, noise, least, epsilon) <= delta * (1 + 1e-9)


@pytest.mark.parametrize("flaw", ["no person in the threshold", "noise for one bin"])
def test_the_calculation_finds_a_flawed_histogram(flaw):
    """Canaries: a threshold for an empty bin, and the noise of add-remove."""
    noise = Noise.of(loss(1, 0.001))
    least = threshold(noise, Fraction(1, 1000))
    if flaw == "no person in the threshold":
        least -= noise.multiple
    else:
        noise = Noise(multiple=1, scale=1)
        least = threshold(noise, Fraction(1, 1000))
    assert max(excess(*change, noise, least, 1) for change in CHANGES) > 0.001 * 1.2


@pytest.mark.parametrize("delta", ["1e-6", "1e-3", "0.3", "1e-60"])
@pytest.mark.parametrize("epsilon", ["1", "0.37", "5"])
def test_the_threshold_is_the_least_that_keeps_delta(epsilon, delta):
    noise = Noise.of(loss(epsilon, delta))
    least = threshold(noise, Fraction(delta)) - noise.multiple

    def log_tail(k):
        return -k / noise.scale - math.log1p(math.exp(-1 / noise.scale))

    assert log_tail(least) <= math.log(float(delta)) + 1e-9
    assert least == 0 or log_tail(least - 1) > math.log(float(delta)) - 1e-9


def test_the_noise_costs_exactly_epsilon_for_two_changed_bins():
    for epsilon in ("1", "0.37", "5", "1/3"):
        noise = Noise.of(pc.PureDP(epsilon=epsilon, neighbours="replace-one"))
        assert 2 * Fraction(noise.multiple, noise.scale) == Fraction(epsilon)


def test_a_bin_that_is_empty_in_both_neighbours_is_never_released():
    one = np.array([3.0] * 40 + [8.0])
    two = np.array([3.0] * 40 + [11.0])
    randomness, seen = rehearsal(2), set()
    for table in (one, two):
        for _ in range(400):
            seen |= set(stable_counts(table, loss=loss(3, 0.3), randomness=randomness))
    assert seen == {3.0, 8.0, 11.0}  # the bins of a single person do appear, at this large δ


def test_a_single_person_is_released_exactly_as_often_as_calculated():
    """Two-sided at 1e-7, 4 000 runs."""
    promised = loss(1, "0.2")
    noise = Noise.of(promised)
    least = threshold(noise, promised.delta)
    q, randomness, runs = math.exp(-1 / noise.scale), rehearsal(5), 4000
    found = sum(
        bool(stable_counts(np.array([4.0]), loss=promised, randomness=randomness)) for _ in range(runs)
    )

    def rejected(least):
        chance = q ** (least - noise.multiple) / (1 + q)
        return not binom.ppf(5e-8, runs, chance) <= found <= binom.isf(5e-8, runs, chance)

    assert not rejected(least)
    assert rejected(least - noise.multiple)  # canary


def test_people_without_a_bin_are_counted_nowhere():
    bins = np.array([np.nan] * 50 + [2.0] * 50)
    assert set(stable_counts(bins, loss=loss(), randomness=rehearsal(1))) == {2.0}


def test_a_finite_histogram_has_every_bin_of_the_range_and_no_other():
    promised = pc.PureDP(epsilon=1, neighbours="replace-one")
    bins = np.array([-1e300, 0.0, 1.0, 1e9, np.nan])
    counts = finite_counts(bins, first=-2, last=3, loss=promised, randomness=rehearsal(1))
    assert sorted(counts) == [-2, -1, 0, 1, 2, 3]
    with pytest.raises(ParameterError, match="E245"):
        finite_counts(bins, first=0, last=2**21, loss=promised, randomness=rehearsal(1))


def test_the_fullest_bin_is_the_lowest_of_equals():
    assert fullest({3.0: 5, 1.0: 7, 2.0: 7}) == 1.0
    assert fullest({}) is None
