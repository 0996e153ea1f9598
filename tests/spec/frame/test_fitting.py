"""From answers to a frame: total for every answer, right where there is no noise, and closer where bounds are wide."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privcov as pc
from privcov.frame.counting import Scales
from privcov.frame.fitting import Fit
from privcov.frame.framing import framed
from privcov.frame.profiles import Profile
from privcov.frame.terms import numbers_of
from privcov.mechanisms import MECHANISMS
from privcov.noise.laws import GaussianEnsemble
from privcov.privacy import Loss
from privcov.releases.certificate import RADII, Round
from privcov.schema.grid import Grid, framed_grid, framed_weight
from privcov.summing.bounding import Bounding

LOSS = pc.ZCDP(rho=1000, neighbours="replace-one")
TINY = {"neighbours": "replace-one"}
RULES = ["midpoint", "zero-row"]


def schema_of(*bounds, fill=False, **words):
    columns = {f"c{i}": {"lower": lower, "upper": upper} for i, (lower, upper) in enumerate(bounds)}
    if fill:  # at one end, with the other ends of cells as codes for missing
        for column in columns.values():
            width = column["upper"] - column["lower"]
            codes = {column["lower"] + width * (i / 16) for i in range(1, 17)} - {column["lower"]}
            column |= {"fill": column["lower"], "missing_values": sorted(codes)}
    return pc.Schema.from_dict({"columns": columns, **words})


def asked(schema, rows, *, loss=LOSS, most=3):
    """The rounds of a table without any noise."""
    fit = Fit(declared=schema, most=most, means=loss)
    while looks := fit.next_looks():
        rounds = [_without_noise(look, rows, loss) for look in looks]
        fit = fit.after(*rounds, rows=len(rows))
    return fit


def _without_noise(look, rows, loss):
    sums = look.sums(Bounding.of(look.schema), list(rows.T))
    return replace(look.answered(loss, tuple(sums.tolist())), std=1.0)


def law_of(schema, scale=1e-3):
    return GaussianEnsemble(dimension=schema.dimension, scale=scale)


def test_without_noise_centres_and_scales_are_means_and_standard_deviations():
    rng = np.random.default_rng(1)
    rows = np.column_stack(
        [rng.normal(40, 10, 20_000), rng.uniform(2, 3, 20_000), rng.exponential(1, 20_000)]
    )
    fit = asked(schema_of((0, 100), (0, 10), (0, 20)), rows)
    framed_schema = fit.framed(law_of(fit.declared))
    for j, column in enumerate(framed_schema.columns):
        assert column.centre == pytest.approx(rows[:, j].mean(), abs=0.35 * rows[:, j].std())
    sizes = [column.scale / rows[:, j].std() for j, column in enumerate(framed_schema.columns)]
    assert (
        max(sizes) / min(sizes) < 1.35
    )  # the same number of standard deviations, but for the width of a cell


@pytest.mark.parametrize("wider", [1, 10, 100, 1000])
def test_bounds_that_are_far_too_wide_are_looked_at_again(wider):
    rows = np.random.default_rng(2).normal(5, 1, (20_000, 2))
    schema = schema_of(*[(5 - 5 * wider, 5 + 8 * wider)] * 2)
    fit = asked(schema, rows)
    column = fit.framed(law_of(schema)).columns[0]
    assert len(fit.rounds) == {1: 3, 10: 4, 100: 5, 1000: 5}[wider]
    alone = asked(schema_of((0, 13), (0, 13)), rows).framed(law_of(schema)).columns[0].scale
    assert column.scale == pytest.approx(alone, rel=0.4)
    assert column.centre == pytest.approx(5, abs=0.5)


def test_the_bounds_of_cells_stay_as_declared():
    schema = schema_of((0, 100), (-1, 1))
    found = asked(schema, np.random.default_rng(3).normal(30, 1, (500, 2))).framed(law_of(schema))
    assert [(c.lower, c.upper) for c in found.columns] == [(0, 100), (-1, 1)]
    assert found.squared_norm_bound >= found.fixed_squared_norm + framed_weight(schema)


@pytest.mark.parametrize(
    ("schema", "weight"),
    [
        (schema_of((0, 1)), 9),
        (pc.Schema.from_dict({"columns": {"a": {"lower": 0, "upper": 1}, "b": {"levels": [1, 2]}}}), 4),
        (
            pc.Schema.from_dict(
                {
                    "columns": {
                        "a": {"lower": 0, "upper": 1},
                        **{f"b{i}": {"levels": [1, 2]} for i in range(8)},
                    }
                }
            ),
            9,
        ),
    ],
)
def test_the_weight_of_numbers_is_a_public_formula(schema, weight):
    assert framed_weight(schema) == weight
    grid = framed_grid(schema)
    assert Fraction(grid.squared_norm_bound, 4**grid.exponent) == schema.fixed_squared_norm + weight


def test_a_framed_schema_has_the_noise_that_was_reckoned_with():
    """The law of the noise in scaled units is known before the first row is read."""
    schema = schema_of((0, 100), (0, 1), (-5, 5))
    fit = asked(schema, np.random.default_rng(4).uniform(0, 1, (300, 3)))
    found = fit.framed(law_of(schema))
    for name in ("gaussian", "symmetric-wishart", "laplace"):
        mechanism = MECHANISMS[name]()
        loss: Loss = LOSS if name == "gaussian" else pc.PureDP(epsilon=1, **TINY)
        before = mechanism.law(loss=loss, grid=framed_grid(schema))
        after = mechanism.law(loss=loss, grid=Grid.of(found))
        assert after.scale == pytest.approx(before.scale, rel=1e-4)


def test_less_noise_asks_for_a_larger_radius():
    rows = np.random.default_rng(5).standard_t(3, (20_000, 4))
    fit = asked(schema_of(*[(-50, 50)] * 4), rows)
    radii = [fit.radius(noise) for noise in (1e-2, 1.0, 1e2, 1e4)]
    assert radii == sorted(radii, reverse=True)
    assert radii[0] > 2 * radii[-1]


def slow_radius(fit, noise):
    """The same in plain Python."""
    n, d = fit.count, len(numbers_of(fit.declared))
    ends = [0.0, *(c * c for c in RADII)]
    at = [(a + b) / 2 for a, b in pairwise(ends)] + [1.25 * ends[-1]]
    errors = []
    for c in RADII:
        share = [count / n for count in fit.radii[0].answers]
        kept = sum(s * min(u2, c * c) for s, u2 in zip(share, at, strict=True))
        cut = sum(s * max(1 - c * c / u2, 0) for s, u2 in zip(share, at, strict=True))
        noisy = noise * c * c * d / (n * max(kept, 0.4 * min(1, c * c)))
        errors.append(noisy**2 + 0.08**2 * max(cut, 0))
    return RADII[errors.index(min(errors))]


@pytest.mark.parametrize("noise", [0.1, 3.0, 100.0])
def test_the_radius_is_that_of_the_slow_way(noise):
    rows = np.random.default_rng(6).lognormal(0, 1, (3000, 3))
    fit = asked(schema_of(*[(0, 100)] * 3), rows)
    assert fit.radius(noise) == slow_radius(fit, noise)


BOUNDS = st.sampled_from(
    [
        (0.0, 1.0),
        (-1e300, 1e300),
        (0.0, 1e-260),
        (1e15, 1e15 + 1),
        (-5.0, 1e-3),
        (1.0, 1.0 + 2**-40),
        (0.0, 1e308),
    ]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(BOUNDS, min_size=1, max_size=3), st.data())
def test_no_answer_makes_an_error(bounds, data):
    """After payment nothing may fail: any counts, also negative and huge ones, give a schema for rows."""
    schema = schema_of(*bounds, fill=data.draw(st.booleans()), missing=data.draw(st.sampled_from(RULES)))
    kind = data.draw(st.sampled_from(["pure", "zcdp"]))
    loss = pc.PureDP(epsilon=1, **TINY) if kind == "pure" else pc.ZCDP(rho=1, **TINY)
    rows = data.draw(st.sampled_from([None, 1, 1000]))
    fit = Fit(declared=schema, means=loss)
    number = st.one_of(st.just(0), st.integers(-5, 5), st.integers(-(10**18), 10**18))
    for _ in range(9):
        rounds = []
        for look in fit.next_looks():
            some = data.draw(st.dictionaries(st.integers(0, look.cells - 1), number, max_size=6))
            answers = tuple(some.get(i, 0) for i in range(look.cells))
            rounds.append(replace(look.answered(loss, answers), std=1.0))
            cells = [np.array([lower, upper, math.nan, 0.0, 1e308]) for lower, upper in bounds]
            assert np.abs(look.sums(Bounding.of(look.schema), cells)).sum() <= 5 * look.most_of_a_row
        fit = fit.after(*rounds, rows=rows)
    assert fit.next_looks() == ()
    found = framed(
        MECHANISMS["gaussian"](), pc.ZCDP(rho=100, **TINY), replace(fit, rounds=_as_rho(fit.rounds))
    )
    cells = [np.array([lower, upper, math.nan, 0.0, 1e308]) for lower, upper in bounds]
    rows_made = Bounding.of(found.schema).rows(cells)
    assert np.isfinite(rows_made).all()
    assert ((rows_made**2).sum(axis=1) <= Grid.of(found.schema).squared_norm_bound).all()


def _as_rho(rounds):
    return tuple(replace(one, loss=pc.ZCDP(rho=1, **TINY)) for one in rounds)


def test_where_noise_hides_a_column_it_counts_as_spread_over_its_bounds():
    schema = schema_of((0, 10))
    look = Scales(schema=schema)
    quiet = Round(name="scales", loss=pc.ZCDP(rho="1e-6", **TINY), std=1.0, answers=(3,) * look.cells)
    fit = Fit(declared=schema).after(quiet, rows=48)
    (look,) = fit.next_looks()
    assert look.name == "radius"
    (column,) = look.schema.columns
    assert column.middle == pytest.approx(5)
    assert column.scale == pytest.approx(10 / math.sqrt(12), rel=0.05)


def test_the_number_of_rows_is_noisy_where_it_is_private():
    schema = schema_of((0, 10), (0, 1))
    answers = tuple([40, *[0] * 14, 60, *[0] * 8, 104, *[0] * 7])
    fit = Fit(declared=schema).after(Round(name="scales", loss=LOSS, std=1.0, answers=answers), rows=None)
    assert fit.count == 102


def slow_intervals(edges, counts, noise_of_counts, noise, rows):
    """By bounds, the variance of a mean and what lies beyond them, in plain Python."""
    made = {}
    cells = [((a + b) / 2, b - a, count) for (a, b), count in zip(pairwise(edges), counts, strict=True)]
    for i, lower in enumerate(edges):
        for upper in edges[i + 1 :]:
            amounts, variance = [], (noise * (upper - lower) / 2) ** 2
            for distance in (lambda x, low=lower: low - x, lambda x, high=upper: x - high):
                there = [(distance(x), width, count) for x, width, count in cells if distance(x) > 0]
                amounts.append(max(sum(d * count for d, _, count in there), 0) / rows)
                variance += sum((d * noise_of_counts) ** 2 for d, _, _ in there) / rows**2
                variance += (max(sum(0.2 * width * count for _, width, count in there), 0) / rows) ** 2
            made[lower, upper] = variance, amounts[1] - amounts[0]
    return made


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.integers(-20, 500), min_size=4, max_size=16),
    st.floats(0.001, 1.0),
    st.floats(0.5, 20),
)
def test_the_bounds_of_a_sum_are_those_of_the_slow_way(counts, noise, spread):
    edges = [2.0 * place - 5 for place in range(len(counts) + 1)]
    found = Profile(
        edges=np.array(edges),
        counts=np.array(counts, dtype=float),
        noise=np.full(len(counts), spread),
        inner=(edges[0], edges[-1]),
    ).interval(noise, 1000.0)
    made = slow_intervals(edges, counts, spread, noise, 1000.0)
    variance, beyond = made[found.lower, found.upper]
    assert variance == pytest.approx(
        min(variance for variance, _ in made.values())
    )  # two bounds may be as good
    assert found.beyond == pytest.approx(beyond)


def test_a_column_with_a_long_tail_is_summed_over_its_tail():
    """Nine in ten cells are 0, one is 90: without noise nothing is cut, with much the counts tell of the tail."""
    rows = np.repeat([0.0, 90.0], [9000, 1000])[:, None]
    profile = asked(schema_of((0, 100)), rows)._profiles[0]
    assert profile.interval(1e-6, 10_000.0).upper >= 90
    cut = profile.interval(10.0, 10_000.0)
    assert cut.upper < 20
    assert cut.beyond == pytest.approx(9 - cut.upper / 10, abs=1)


def test_a_closer_look_replaces_the_cells_that_it_looks_into_and_the_same_look_is_averaged():
    column = numbers_of(schema_of((0, 16)))[0]
    profile = Profile.of(column).with_histogram(column, np.arange(4.0), 2.0)
    assert profile.edges.tolist() == [0, 4, 8, 12, 16]
    twice = profile.with_histogram(column, np.arange(4.0) + 2, 2.0)
    assert twice.counts.tolist() == [1, 2, 3, 4]
    assert twice.noise == pytest.approx(math.sqrt(2))
    closer = twice.with_histogram(replace(column, lower=4, upper=8), np.array([7.0, 9.0]), 1.0)
    assert closer.edges.tolist() == [0, 4, 6, 8, 12, 16]
    assert closer.counts.tolist() == [1, 7, 9, 3, 4]
    assert closer.with_histogram(replace(column, lower=5, upper=8), np.zeros(4), 1.0) is closer


def test_a_column_that_noise_kept_from_a_closer_look_gets_one_after_the_next():
    """Two columns in a corner of their bounds. Noise takes 7 % of the second from the cell that it fills, so the
    first alone is looked at closer; the second is asked again, and the mean of both answers shows it narrow too."""
    schema = schema_of((0, 1600), (0, 1600))
    rows = np.random.default_rng(2).uniform(0, 90, (10_000, 2))
    asked_once = Fit(declared=schema, most=4)
    (look,) = asked_once.next_looks()
    told = replace(_without_noise(look, rows, LOSS), std=200.0)
    unlucky = replace(told, answers=(*told.answers[:16], told.answers[16] - 700, *told.answers[17:]))
    fit = asked_once.after(unlucky, rows=len(rows))
    assert [column.upper for column in numbers_of(fit.next_looks()[0].schema)] == [100, 1600]
    (again,) = fit.next_looks()
    fit = fit.after(replace(_without_noise(again, rows, LOSS), std=200.0), rows=len(rows))
    assert [column.upper for column in numbers_of(fit.next_looks()[0].schema)] == [100, 200]


def test_counts_of_the_last_look_are_means_where_the_same_cells_were_asked_before():
    column = numbers_of(schema_of((0, 16)))[0]
    once = Profile.of(column).with_histogram(column, np.arange(4.0), 2.0)
    twice = once.with_histogram(column, np.arange(4.0) + 2, 2.0)
    counts, noise = twice.last(np.arange(4.0) + 2, 2.0)
    assert counts.tolist() == [1, 2, 3, 4]
    assert noise == pytest.approx(math.sqrt(2))
    counts, noise = twice.last(np.arange(5.0), 2.0)  # not the cells that it has
    assert counts.tolist() == [0, 1, 2, 3, 4]
    assert noise.tolist() == [2] * 5
