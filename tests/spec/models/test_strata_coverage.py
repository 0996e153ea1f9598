"""How often intervals of differences between strata hold the truth, over fresh tables and fresh noise.

Coverage between 93 and 97.5 % over 2,000 tables, for each quantity; streams are fixed. On fresh ones an interval that
covers 95 % fails that with odds of 2e-5 (below) and 2e-7 (above), one that covers 90 % passes with odds of 1e-5.
Measured: 94.0 to 94.7 % under add-remove, 93.6 to 94.9 % under replace-one, both by symmetric-wishart at ε = 1, where
noise is most of an interval and its tails are heavier than normal ones. Intervals that ignore one of the two strata
cover less than 90 %, which the last test looks at.
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

import privcov as pc
from privcov.models.strata import Difference, differences
from privcov.noise.randomness import rehearsal

SCHEMA = pc.Schema.from_dict(
    {
        "columns": {
            "age": {"lower": 0, "upper": 10},
            "pay": {"lower": 0, "upper": 20},
            "s": {"levels": [1, 2]},
        }
    }
)
SLOPES, ROWS, NOISE_STD = (1.0, 0.6), (3000, 1500), 2.0
AGE_VARIANCE = 1.5**2


def table(rng):
    parts = []
    for stratum, (slope, count) in enumerate(zip(SLOPES, ROWS, strict=True), start=1):
        age = np.clip(rng.normal(5, 1.5, count), 0, 10)
        pay = 3 + slope * age + rng.normal(0, NOISE_STD, count)
        parts.append(np.column_stack([age, pay, np.full(count, stratum)]))
    return np.vstack(parts)


def truths():
    """Of the population before clipping, which moves none of them by a hundredth of an interval."""
    correlations = [
        slope * math.sqrt(AGE_VARIANCE) / math.sqrt(slope**2 * AGE_VARIANCE + NOISE_STD**2)
        for slope in SLOPES
    ]
    return {
        "age": SLOPES[0] - SLOPES[1],
        "(Intercept)": 0.0,
        "mean of age": 0.0,
        "mean of pay": 5 * (SLOPES[0] - SLOPES[1]),
        "correlation of age and pay": correlations[0] - correlations[1],
    }


def covered(loss, tables, seed):
    """How often the interval of each difference holds its truth."""
    rng, held, true = np.random.default_rng(seed), Counter(), truths()
    for number in range(tables):
        made = pc.release(
            table(rng), schema=SCHEMA, loss=loss, by="s", arithmetic="idealized",
            randomness=rehearsal(10_000 * seed + number),
        )  # fmt: skip
        found = [*differences(made, "1", "2").found, *differences(made, "1", "2", formula="pay ~ age").found]
        held.update(one.name for one in found if one.lower <= true[one.name] <= one.upper)
    return {name: held[name] / tables for name in true}


@pytest.mark.slow
@pytest.mark.parametrize(
    "loss",
    [
        pc.PureDP(epsilon=1, neighbours="add-remove"),
        pc.PureDP(epsilon=1, neighbours="replace-one"),
        pc.ZCDP(rho="0.1", neighbours="replace-one"),
    ],
    ids=["pure-add-remove", "pure-replace-one", "zcdp-replace-one"],
)
def test_intervals_of_differences_hold_the_truth_as_often_as_they_say(loss):
    shares = covered(loss, 2000, seed=1)
    assert all(0.93 <= share <= 0.975 for share in shares.values()), shares


def held_with_total(loss, tables, seed):
    """How often intervals of a combined stratum and of the combined total hold the truth."""
    rng, held = np.random.default_rng(seed), Counter()
    true = {"slope in 1": SLOPES[0], "mean of pay in 2": 3 + 5 * SLOPES[1], "mean of age in all": 5.0}
    for number in range(tables):
        made = pc.release(
            table(rng), schema=SCHEMA, loss=loss, by="s", total_share="0.4", arithmetic="idealized",
            randomness=rehearsal(10_000 * seed + number),
        )  # fmt: skip
        found = {
            "slope in 1": pc.ols(made["1"], "pay ~ age").conf_int()["age"],
            "mean of pay in 2": pc.ols(made["2"], "pay ~ 1").conf_int()["(Intercept)"],
            "mean of age in all": pc.ols(made.total(), "age ~ 1").conf_int()["(Intercept)"],
        }
        held.update(name for name, (low, high) in found.items() if low <= true[name] <= high)
    return {name: held[name] / tables for name in true}


@pytest.mark.slow
@pytest.mark.parametrize(
    "loss",
    [pc.PureDP(epsilon=1, neighbours="add-remove"), pc.ZCDP(rho="0.02", neighbours="replace-one")],
    ids=["pure-add-remove", "zcdp-replace-one"],
)
def test_intervals_of_combined_strata_and_of_the_total_hold_the_truth_as_often_as_they_say(loss):
    shares = held_with_total(loss, 2000, seed=3)
    assert all(0.93 <= share <= 0.975 for share in shares.values()), shares


@pytest.mark.slow
def test_intervals_that_ignore_the_noise_of_one_stratum_are_found(monkeypatch):
    """Canary: the second stratum taken as exact. 300 tables; the odds to pass at a true coverage of 85 % are 1e-6."""
    monkeypatch.setattr(
        "privcov.models.strata._combined",
        lambda name, one, other: Difference(name, one[0], other[0], one[1] - other[0], one[2] - other[0]),
    )
    shares = covered(pc.PureDP(epsilon=1, neighbours="add-remove"), 300, seed=2)
    assert min(shares.values()) < 0.93
