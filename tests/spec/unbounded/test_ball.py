"""Rows of the integer ball: attacked with hostile rows and neighbouring tables at radii 0.3, 1 and 7.

All comparisons are of Python integers; there are no false alarms. Noise laws are in test_rounds.py.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from privcov.mechanisms.sensitivity import Sensitivity, bounded_sum, changed_bins
from privcov.privacy import Neighbours
from privcov.summing.gram import Gram
from privcov.unbounded.moments import EXPONENT, Ball, integer_blocks, transformed

RADII = (0.3, 1.0, 7.0)
REPLACE = Neighbours.REPLACE_ONE
LIMIT = 4**EXPONENT


def hostile_rows(d, radius):
    """On the sphere and a rounding beside it, enormous, tiny, incomplete, and one axis against all."""
    rng = np.random.default_rng(d)
    units = [*np.eye(d), *-np.eye(d), np.ones(d) / d**0.5, *rng.normal(size=(30, d))]
    units = [row / np.linalg.norm(row) for row in units]
    scales = (0.0, 1e-320, 0.5, 1 - 2**-20, 1 - 2**-53, 1.0, 1 + 2**-52, 1 + 2**-19, 3.0, 1e200, 1e307)
    rows = [radius * scale * row for row in units for scale in scales]
    for bad in (np.nan, np.inf, -np.inf, np.finfo(float).max):
        row = np.ones(d)
        row[-1] = bad
        rows.append(row)
    return np.array(rows)


def integers(rows):
    return [[int(value) for value in row] for row in rows]


def too_long(rows):
    return any(sum(q * q for q in row) > LIMIT for row in integers(rows))


def gram(rows, ball):
    total = Gram(ball.grid)
    total.add(rows)
    return [int(value) for value in total.reveal_to_mechanism()]


def frobenius_squared(change, d):
    diagonal = np.equal(*np.triu_indices(d))
    return sum((1 if on else 2) * v * v for on, v in zip(diagonal, change, strict=True))


@pytest.mark.parametrize("radius", RADII)
@pytest.mark.parametrize("d", [1, 2, 5, 40])
def test_every_row_becomes_whole_numbers_inside_the_ball(d, radius):
    rows = Ball(dimension=d, radius=radius).rows(hostile_rows(d, radius))
    assert np.isfinite(rows).all()
    assert (rows == np.rint(rows)).all()
    assert not too_long(rows)


@pytest.mark.parametrize("radius", RADII)
def test_the_norm_check_finds_a_map_that_leaves_no_room_for_rounding(radius):
    """Canary: clip to the radius itself, then round."""
    rows = hostile_rows(40, radius)
    rows = rows[np.isfinite(rows).all(axis=1) & (np.abs(rows).max(axis=1) < 1e100)]
    shrink = np.minimum(1.0, radius / np.maximum(np.linalg.norm(rows, axis=1), 1e-300))
    assert too_long(np.rint(rows * shrink[:, None] / radius * 2**EXPONENT))


@pytest.mark.parametrize("radius", RADII)
@pytest.mark.parametrize("d", [1, 2, 5])
def test_a_replaced_row_moves_the_integer_sums_by_no_more_than_the_bounds(d, radius):
    ball = Ball(dimension=d, radius=radius)
    bound = Sensitivity.of(ball.grid, REPLACE)
    table = np.random.default_rng(3).normal(size=(4, d))
    matrix = np.random.default_rng(4).normal(size=(d, d)) + 2 * np.eye(d)
    candidates = np.linalg.solve(matrix, hostile_rows(d, radius)[:: 7 if d > 2 else 5].T).T
    tables = []
    for row in candidates:
        changed = np.vstack([table[:2], row[None], table[3:]])
        rows = np.vstack(list(integer_blocks(changed, matrix, ball)))
        tables.append((gram(rows, ball), [int(v) for v in rows.sum(axis=0)]))
    reached_square = reached_sum = 0
    for (one, sum_one), (two, sum_two) in product(tables, repeat=2):
        change = [a - b for a, b in zip(one, two, strict=True)]
        reached_square = max(reached_square, frobenius_squared(change, d))
        reached_sum = max(reached_sum, sum((a - b) ** 2 for a, b in zip(sum_one, sum_two, strict=True)))
    assert Fraction(reached_square) <= bound.frobenius**2
    assert reached_sum <= bound.row_sum_squared
    assert reached_square >= bound.frobenius**2 * Fraction(4, 5)
    assert reached_sum >= bound.row_sum_squared * Fraction(9, 10)
    if d > 1:  # canary: the lecture's constant is that of add-remove
        assert reached_square > Sensitivity.of(ball.grid, Neighbours.ADD_REMOVE).frobenius ** 2
    assert reached_sum > Sensitivity.of(ball.grid, Neighbours.ADD_REMOVE).row_sum_squared


@pytest.mark.parametrize("radius", RADII)
def test_the_sum_of_rows_has_the_right_power_of_the_radius(radius):
    opposite = [np.array([radius, 0.0]), np.array([-radius, 0.0])]
    bound = Sensitivity(neighbours=REPLACE, dimension=2, squared_norm=Fraction(radius) ** 2)
    moved = sum((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(*opposite, strict=True))
    assert moved == bound.row_sum_squared
    thrice = Sensitivity(
        neighbours=REPLACE, dimension=2, squared_norm=Fraction(radius) ** 2, rows_per_person=3
    )
    assert thrice.row_sum_squared == 9 * moved


def test_one_person_moves_two_bins_and_a_sum_by_its_range():
    people = [[1, 2, 2], [1, 2, 5]]
    bins = [np.bincount(table, minlength=6) for table in people]
    assert np.abs(bins[0] - bins[1]).sum() == changed_bins(REPLACE)
    assert changed_bins(Neighbours.ADD_REMOVE) == 1
    assert bounded_sum(lower=-3, upper=7, neighbours=REPLACE) == max(
        abs(a - b) for a in range(-3, 8) for b in range(-3, 8)
    )
    assert bounded_sum(lower=-9, upper=7, neighbours=Neighbours.ADD_REMOVE) == 9


def test_a_row_becomes_the_same_integers_wherever_it_stands():
    rng = np.random.default_rng(1)
    rows, matrix = rng.normal(size=(20_000, 7)), rng.normal(size=(7, 7))
    ball = Ball(dimension=7, radius=5.0)
    together = np.vstack(list(integer_blocks(rows, matrix, ball)))
    order = rng.permutation(len(rows))
    shuffled = np.vstack(list(integer_blocks(rows[order], matrix, ball)))
    assert (together[order] == shuffled).all()
    for place in (0, 1, 8191, 8192, 19_999):
        alone = next(integer_blocks(rows[place : place + 1], matrix, ball))
        assert (alone[0] == together[place]).all()


def test_a_neighbour_that_overflows_leaves_the_other_rows_alone():
    rng = np.random.default_rng(2)
    rows, matrix = rng.normal(size=(50, 3)), 1e10 * rng.normal(size=(3, 3))
    ball = Ball(dimension=3, radius=1e10)
    clean = next(integer_blocks(rows, matrix, ball))
    rows[17] = (1e308, -1e308, np.nan)
    hostile = next(integer_blocks(rows, matrix, ball))
    assert (hostile[17] == 0).all()
    assert (np.delete(hostile, 17, axis=0) == np.delete(clean, 17, axis=0)).all()


@pytest.mark.parametrize("radius", RADII)
def test_short_rows_are_kept_to_half_a_step_and_long_ones_point_the_same_way(radius):
    rng = np.random.default_rng(6)
    rows = rng.normal(size=(500, 4)) * radius / 2
    ball = Ball(dimension=4, radius=radius)
    made = ball.rows(rows) * float(ball.unit)
    norms = np.linalg.norm(rows, axis=1)
    short = norms < radius * (1 - 1e-5)
    assert np.abs(made - rows)[short].max() <= float(ball.unit) * 0.5000001
    wanted = rows[~short] * (radius / norms[~short])[:, None]
    assert np.abs(made[~short] - wanted).max() <= radius * 1e-5


def test_a_transformed_row_is_the_matrix_times_the_row():
    rng = np.random.default_rng(8)
    rows, matrix = rng.normal(size=(30, 4)), rng.normal(size=(4, 4))
    assert np.allclose(transformed(rows, matrix), [matrix @ row for row in rows], rtol=1e-13)
