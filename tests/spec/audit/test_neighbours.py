"""Worst-case pairs are neighbours, within the norm bound, and attain the sensitivities they are for."""

from __future__ import annotations

import math

import numpy as np
import pytest

import privcov as pc
from privcov.audit import Pair, pair_of, pairs, schema_of
from privcov.mechanisms.sensitivity import Sensitivity
from privcov.privacy import Neighbours
from privcov.schema.grid import Grid


def grid_of(d, intercept=False):
    return Grid.of(schema_of(d, intercept=intercept))


def change(pair):
    d = pair.grid.dimension
    full = np.zeros((d, d))
    rows, columns = np.triu_indices(d)
    full[rows, columns] = full[columns, rows] = (pair.upper(0) - pair.upper(1)).astype(float)
    return full


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("d", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("bases", [(0,), (0, 3)])
def test_pairs_differ_by_one_row_within_the_bound(d, neighbours, bases):
    grid = grid_of(d)
    for pair in pairs(grid, neighbours, bases=bases):
        for rows in (pair.first, pair.second):
            assert all(sum(int(q) ** 2 for q in row) <= grid.squared_norm_bound for row in rows)
        fewer = 1 if neighbours is Neighbours.ADD_REMOVE else 0
        assert len(pair.first) == len(pair.second) + fewer
        assert (
            pair.first[: len(pair.second) - 1 + fewer] == pair.second[: len(pair.second) - 1 + fewer]
        ).all()
        made = pair.gram(0).reveal_to_mechanism()
        assert (made == pair.upper(0)).all()


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("d", [2, 3, 4, 6])
def test_together_they_attain_every_sensitivity(d, neighbours):
    """Up to the rounding of rows; the ℓ1 bound itself is within 7 % of the largest value known."""
    grid = grid_of(d)
    sensitivity = Sensitivity.of(grid, neighbours)
    changes = [change(pair) for pair in pairs(grid, neighbours)]
    spectra = [np.linalg.eigvalsh(moved) for moved in changes]
    assert max(np.linalg.norm(moved) for moved in changes) > 0.99999 * sensitivity.frobenius
    assert max(np.abs(values).sum() for values in spectra) > 0.99999 * sensitivity.nuclear
    assert max(np.abs(values).max() for values in spectra) > 0.99999 * sensitivity.operator
    assert max(np.abs(np.triu(moved)).sum() for moved in changes) > 0.91 * sensitivity.triangle_l1


def test_rows_beside_an_intercept_keep_it_whole():
    grid = grid_of(4, intercept=True)
    for pair in pairs(grid, Neighbours.REPLACE_ONE):
        assert (pair.first[:, 0] == 2**grid.exponent).all()
        assert (pair.second[:, 0] == 2**grid.exponent).all()
        assert max((pair.second**2).sum(1)) <= grid.squared_norm_bound


def test_a_pair_of_ones_own_must_be_on_the_grid_and_within_the_bound():
    grid = grid_of(2)
    radius = math.isqrt(grid.squared_norm_bound)
    assert isinstance(pair_of([[radius, 0]], [[0, radius]], grid=grid), Pair)
    for rows in ([[radius + 1, 0]], [[0.5, 0]]):
        with pytest.raises(pc.PrivcovError, match="E209"):
            pair_of(rows, [[0, 0]], grid=grid)


@pytest.mark.parametrize("d", [0, 65, 2.0])
def test_a_number_of_columns_that_cannot_be_audited_is_refused(d):
    with pytest.raises(pc.PrivcovError, match="E209"):
        schema_of(d)
