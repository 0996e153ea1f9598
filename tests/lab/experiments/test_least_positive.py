"""The 2014 report's eigenvalue repair does what the report says, and what is wrong with it shows."""

from __future__ import annotations

import numpy as np
import pytest

from privcov_lab.experiments.least_positive import least_positive


def symmetric(values, seed=1):
    basis = np.linalg.qr(np.random.default_rng(seed).normal(size=(len(values), len(values)))).Q
    return (basis * np.array(values)) @ basis.T


def test_negative_eigenvalues_take_the_least_positive_value_and_the_rest_stay():
    repaired = least_positive(symmetric([-3.0, -0.1, 0.5, 2.0, 7.0]))
    assert np.linalg.eigvalsh(repaired) == pytest.approx([0.5, 0.5, 0.5, 2.0, 7.0])


def test_eigenvectors_stay():
    matrix = symmetric([-1.0, 2.0, 5.0])
    assert least_positive(matrix) @ matrix == pytest.approx(matrix @ least_positive(matrix))


def test_a_valid_matrix_is_returned_as_it_is():
    matrix = symmetric([1.0, 2.0, 3.0])
    assert (least_positive(matrix) == matrix).all()
    singular = np.diag([0.0, 1.0])
    assert (least_positive(singular) == singular).all()


def test_a_matrix_without_a_positive_eigenvalue_has_nothing_to_copy():
    assert (least_positive(-np.eye(3)) == 0).all()


def test_a_stack_is_repaired_one_matrix_at_a_time():
    stack = np.stack([symmetric([-1.0, 0.2, 3.0], seed) for seed in range(4)] + [np.eye(3)])
    assert least_positive(stack) == pytest.approx(np.stack([least_positive(one) for one in stack]))


def test_it_jumps_where_an_eigenvalue_crosses_zero():
    """Why it is not among our repairs: a change of 2e-9 in the matrix becomes one of about 1 in the repair."""
    before, after = np.diag([-1e-9, 1.0]), np.diag([1e-9, 1.0])
    assert np.linalg.norm(least_positive(before) - least_positive(after)) == pytest.approx(1, abs=1e-6)


def test_it_depends_on_the_units_of_the_columns():
    matrix, units = np.array([[1.0, 2.0], [2.0, 1.0]]), np.diag([1.0, 100.0])
    inverse = np.linalg.inv(units)
    elsewhere = inverse @ least_positive(units @ matrix @ units) @ inverse
    assert np.linalg.norm(elsewhere - least_positive(matrix)) > 1
