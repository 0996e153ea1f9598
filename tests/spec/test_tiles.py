"""Mirrors and means of matrices of any size, beside the obvious way."""

from __future__ import annotations

import numpy as np
import pytest

from privcov.linalg import triangle
from privcov.linalg.triangle import mirror, symmetric, symmetrized
from privcov.summing.gram import upper_of

SIZES = [0, 1, 2, 7, triangle._TILE - 1, triangle._TILE, triangle._TILE + 1, 2 * triangle._TILE + 3]


def made(size: int) -> np.ndarray:
    return np.random.default_rng(size).normal(size=(size, size))


@pytest.mark.parametrize("size", SIZES)
def test_the_upper_triangle_is_mirrored(size):
    matrix = made(size)
    expected = np.triu(matrix) + np.triu(matrix, 1).T
    mirror(matrix)
    assert np.array_equal(matrix, expected)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", [np.int64, np.float64, object])
def test_a_triangle_becomes_its_matrix_and_back(size, kind):
    upper = np.arange(size * (size + 1) // 2).astype(kind)
    whole = symmetric(upper, size)
    assert whole.dtype == kind
    assert np.array_equal(whole, whole.T)
    assert np.array_equal(upper_of(whole), upper)


@pytest.mark.parametrize("size", SIZES)
def test_a_matrix_and_its_transpose_have_one_mean(size):
    matrix = made(size)
    before = matrix.copy()
    mean, difference = symmetrized(matrix)
    assert np.array_equal(mean, (matrix + matrix.T) / 2)
    assert difference == np.abs(matrix - matrix.T).max(initial=0.0)
    assert np.array_equal(matrix, before)


def test_a_missing_entry_makes_the_difference_undefined_wherever_it_is():
    for place in ((0, 0), (3, 300), (300, 3), (299, 299)):
        matrix = np.zeros((301, 301))
        matrix[place] = np.nan
        assert np.isnan(symmetrized(matrix)[1])
