"""Rounded Gaussian rows: the factor is enclosed, the rounding is the ideal one's, the law is N(0, M).

The test of the law is two-sided at level 1e-7 on a fixed stream; with 3 000 rows it finds a scale wrong by 8 %.
"""

from __future__ import annotations

import numpy as np
import pytest
from flint import arb, ctx
from scipy.stats import chi2, kstest

from privcov.errors import InternalError
from privcov.noise.exact import normals
from privcov.noise.exact.matrices import cholesky, rounded_rows
from privcov.noise.randomness import rehearsal

NEARLY_SINGULAR = [[2**60 + (i == j) for j in range(8)] for i in range(8)]
ENORMOUS = [[2**200, 2**199], [2**199, 2**200]]  # one word of each normal decides nothing here
ORDINARY = [[5 * 2**40, 2**40, -(2**39)], [2**40, 3 * 2**40, 7], [-(2**39), 7, 2**41]]


@pytest.mark.parametrize("matrix", [NEARLY_SINGULAR, ORDINARY, [[1]], [[2**200]]])
@pytest.mark.parametrize("bits", [64, 128])
def test_the_factor_is_within_one_unit_of_a_square_root(matrix, bits):
    """|TTᵀ − 4^bits·M| is at most what an error of 1 in every entry of T can make."""
    found = np.array(cholesky(matrix, bits=bits), dtype=object)
    size = np.abs(found).sum(axis=1)
    slack = size[:, None] + size[None, :] + len(matrix)
    assert (np.abs(found.dot(found.T) - 4**bits * np.array(matrix, dtype=object)) <= slack).all()
    assert (found == np.tril(found)).all()


def test_more_bits_only_refine_the_factor():
    coarse, fine = (np.array(cholesky(ORDINARY, bits=bits), dtype=object) for bits in (64, 192))
    assert (np.abs(coarse * 2**128 - fine) <= 2**128 + 1).all()


def test_a_matrix_that_is_not_positive_definite_is_never_factored():
    with pytest.raises(InternalError):
        cholesky([[1, 2], [2, 1]], bits=64)


@pytest.mark.parametrize("matrix", [NEARLY_SINGULAR, ORDINARY, ENORMOUS])
def test_every_entry_is_the_nearest_integer_to_the_ideal_one(matrix):
    """Against S·n evaluated with eight times the bits, on normals whose further bits are the same."""
    d, variates = len(matrix), normals(rehearsal(2), 40 * len(matrix))
    rows = rounded_rows(variates, covariance=matrix)
    with ctx.workprec(2000):
        factor = cholesky(matrix, bits=512)
        exact = variates.lower(np.arange(40 * d), 8).reshape(40, d)
        for row, ideal in zip(rows, exact, strict=True):
            for place in range(d):
                value = sum(arb(factor[place][k]) * arb(int(ideal[k])) for k in range(d)) * arb(2) ** -1024
                assert abs(value - int(row[place])) < 0.5 + 1e-6


def law_is_off(rows, matrix):
    """Two-sided Kolmogorov–Smirnov test of yᵀM⁻¹y against χ²_d, at level 1e-7."""
    rows = np.asarray(rows, dtype=float)
    sizes = np.einsum("ij,ij->i", rows, np.linalg.solve(np.array(matrix, dtype=float), rows.T).T)
    return bool(kstest(sizes, chi2(len(matrix)).cdf).pvalue < 1e-7)


def test_rows_follow_the_gaussian_law():
    rows = rounded_rows(normals(rehearsal(3), 9000), covariance=ORDINARY)
    assert not law_is_off(rows, ORDINARY)
    assert law_is_off(rows * 1.08, ORDINARY)  # canary: a scale wrong by 8 %
    assert law_is_off(rows[:, ::-1], ORDINARY)  # canary: columns in the wrong order
