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
from privcov.frame.counting import Look, numbers_of
from privcov.frame.fitting import Fit
from privcov.frame.framing import framed
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


def asked(schema, rows, *, loss=LOSS, bins=16, most=3):
    """The rounds of a table without any noise."""
    fit = Fit(declared=schema, bins=bins, most=most)
    while (look := fit.next_look()) is not None:
        counts = look.counts(Bounding.of(look.schema), list(rows.T))
        fit = fit.after(
            Round(name=look.name, loss=loss, std=1.0, answers=tuple(counts.tolist())), rows=len(rows)
        )
    return fit


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
    assert len(fit.rounds) == {1: 2, 10: 3, 100: 4, 1000: 4}[wider]
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
        (schema_of((0, 1)), 4),
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
        share = [count / n for count in fit.rounds[-1].answers]
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
    fit = Fit(declared=schema, bins=data.draw(st.sampled_from([4, 8, 16])))
    number = st.one_of(st.just(0), st.integers(-5, 5), st.integers(-(10**18), 10**18))
    for _ in range(9):
        look = fit.next_look()
        if look is None:
            break
        some = data.draw(st.dictionaries(st.integers(0, look.cells - 1), number, max_size=6))
        answers = tuple(some.get(i, 0) for i in range(look.cells))
        fit = fit.after(Round(name=look.name, loss=loss, std=1.0, answers=answers), rows=rows)
    assert fit.next_look() is None
    found = framed(
        MECHANISMS["gaussian"](), pc.ZCDP(rho=100, **TINY), replace(fit, rounds=_as_rho(fit.rounds))
    )
    cells = [np.array([lower, upper, math.nan, 0.0, 1e308]) for lower, upper in bounds]
    rows_made = Bounding.of(found.schema).rows(cells)
    assert np.isfinite(rows_made).all()
    assert ((rows_made**2).sum(axis=1) <= Grid.of(found.schema).squared_norm_bound).all()


def _as_rho(rounds):
    return tuple(
        Round(name=one.name, loss=pc.ZCDP(rho=1, **TINY), std=1.0, answers=one.answers) for one in rounds
    )


def test_where_noise_hides_a_column_it_counts_as_spread_over_its_bounds():
    schema = schema_of((0, 10))
    look = Look(name="scales", schema=schema)
    quiet = Round(name="scales", loss=pc.ZCDP(rho="1e-6", **TINY), std=1.0, answers=(3,) * look.cells)
    fit = Fit(declared=schema).after(quiet, rows=48)
    assert fit.next_look().name == "radius"
    (column,) = fit.next_look().schema.columns
    assert column.middle == 5
    assert column.scale == pytest.approx(10 / math.sqrt(12))


def test_the_number_of_rows_is_noisy_where_it_is_private():
    schema = schema_of((0, 10), (0, 1))
    answers = tuple([40, *[0] * 14, 60, *[0] * 8, 104, *[0] * 7])
    fit = Fit(declared=schema).after(Round(name="scales", loss=LOSS, std=1.0, answers=answers), rows=None)
    assert fit.count == 102
