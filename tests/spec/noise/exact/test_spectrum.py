"""Rounded eigenvalues are those of the exact matrix, however degenerate."""

from __future__ import annotations

import numpy as np
import pytest

from privcov.noise.exact.spectrum import rounded_eigenvalues


@pytest.mark.parametrize("d", [1, 2, 5, 20])
def test_they_agree_with_a_float_eigensolver_on_small_integers(d):
    rng = np.random.default_rng(d)
    a = rng.integers(-50, 50, size=(d, d))
    gram = a @ a.T
    expected = np.rint(np.linalg.eigvalsh(gram.astype(float))[::-1]).astype(int).tolist()
    assert rounded_eigenvalues(gram.tolist()) == expected


def test_repeated_and_zero_eigenvalues_are_found_as_often_as_they_occur():
    assert rounded_eigenvalues([[7, 0, 0], [0, 7, 0], [0, 0, 0]]) == [7, 7, 0]
    assert rounded_eigenvalues([[1] * 4] * 4) == [4, 0, 0, 0]


def test_huge_entries_lose_no_digit():
    big = 3**200
    assert rounded_eigenvalues([[big, 0], [0, -big]]) == [big, -big]
    assert rounded_eigenvalues([[0, big], [big, 0]]) == [big, -big]
