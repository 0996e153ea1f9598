"""What a chain promises: orthonormal vectors, at every rank, spectrum and concentration."""

import numpy as np
import pytest

from privcov.errors import ParameterError
from privcov.noise.idealized import sample_chain
from privcov.noise.randomness import rehearsal


def symmetric(values, seed=3):
    basis = np.linalg.qr(np.random.default_rng(seed).normal(size=(len(values), len(values)))).Q
    return (basis * values) @ basis.T


def worst_product(vectors):
    return np.abs(vectors.T @ vectors - np.eye(vectors.shape[1])).max()


SPECTRA = {
    "decaying": 1e4 * np.logspace(0, -4, 60),
    "zero": np.zeros(60),
    "equal": np.full(60, 7.0),
    "repeated": np.repeat([9.0, 4.0, 0.0, -20.0], 15),
    "one": np.concatenate([[1e6], np.zeros(59)]),
}


@pytest.mark.parametrize("spectrum", SPECTRA)
@pytest.mark.parametrize("concentration", [0.0, 1e-12, 1e-4, 1.0, 1e3, 1e12])
def test_vectors_are_orthonormal_to_twelve_digits(spectrum, concentration):
    vectors, proposals = sample_chain(rehearsal(1), symmetric(SPECTRA[spectrum]), np.full(59, concentration))
    assert worst_product(vectors) < 1e-12
    assert len(proposals) == 59
    assert max(proposals) < 500


@pytest.mark.parametrize("block_length", [None, 1, 2, 7, 30, 60])
def test_vectors_are_orthonormal_at_uneven_concentrations_and_any_block_length(block_length):
    concentrations = 10.0 ** np.random.default_rng(1).uniform(-6, 6, 59)
    vectors, _ = sample_chain(
        rehearsal(2), symmetric(SPECTRA["decaying"]), concentrations, block_length=block_length
    )
    assert worst_product(vectors) < 1e-12


def test_a_huge_concentration_returns_the_eigenvectors_in_order():
    matrix = np.diag(np.arange(40.0, 0.0, -1.0))
    vectors, _ = sample_chain(rehearsal(1), matrix, np.full(39, 1e14))
    assert np.abs(np.abs(vectors) - np.eye(40)).max() < 1e-5


@pytest.mark.parametrize("rank", [1, 2, 5, 6])
def test_rank_gives_that_many_columns_and_the_last_of_a_full_basis_is_free(rank):
    vectors, proposals = sample_chain(rehearsal(1), np.eye(6), np.ones(rank), rank=rank)
    assert vectors.shape == (6, rank)
    assert len(proposals) == min(rank, 5)
    assert worst_product(vectors) < 1e-12


def test_dimension_one_is_a_fair_sign():
    source = rehearsal(1)
    signs = [sample_chain(source, [[3.0]], [])[0][0, 0] for _ in range(400)]
    assert set(signs) == {-1.0, 1.0}
    assert abs(np.mean(signs)) < 0.3


def test_both_signs_of_every_vector_occur():
    source = rehearsal(1)
    first = [np.sign(sample_chain(source, np.diag([3.0, 2.0, 1.0]), [9.0, 9.0])[0][0, 0]) for _ in range(400)]
    last = [np.sign(sample_chain(source, np.diag([3.0, 2.0, 1.0]), [9.0, 9.0])[0][2, 2]) for _ in range(400)]
    assert abs(np.mean(first)) < 0.3
    assert abs(np.mean(last)) < 0.3


def test_the_same_rehearsal_gives_the_same_vectors_and_the_matrix_is_not_touched():
    matrix = symmetric(SPECTRA["decaying"])
    before = matrix.copy()
    once, again = (sample_chain(rehearsal(7), matrix, np.full(59, 0.1))[0] for _ in range(2))
    assert (once == again).all()
    assert (matrix == before).all()


def test_proposals_stay_near_those_of_the_tuned_envelope():
    """About 1 per vector at low signal; at high signal no more than a fresh envelope per vector would need."""
    low = sample_chain(rehearsal(1), symmetric(100 + np.arange(120.0) / 10), np.full(119, 0.01))[1]
    high = sample_chain(rehearsal(1), symmetric(1e5 * np.logspace(0, -2, 120)), np.full(119, 1.0))[1]
    assert np.mean(low) < 1.3
    assert np.mean(high) < 1.3 * np.sqrt(120)


@pytest.mark.parametrize("rank", [0, 7, -1, 2.5, "all"])
def test_a_rank_out_of_range_is_refused(rank):
    with pytest.raises(ParameterError, match="rank must be") as refusal:
        sample_chain(rehearsal(1), np.eye(6), np.ones(5), rank=rank)
    assert refusal.value.code == "E224"


@pytest.mark.parametrize("concentrations", [[], [1.0] * 4, [1.0] * 7, [1.0, 1.0, -1.0, 1.0, 1.0], 1.0])
def test_concentrations_of_the_wrong_number_or_sign_are_refused(concentrations):
    with pytest.raises(ParameterError, match="concentrations") as refusal:
        sample_chain(rehearsal(1), np.eye(6), concentrations)
    assert refusal.value.code == "E222"


@pytest.mark.parametrize("matrix", [[[1.0, 2.0], [0.0, 1.0]], [[np.nan]], np.zeros((0, 0))])
def test_a_matrix_that_is_none_is_refused(matrix):
    with pytest.raises(ParameterError):
        sample_chain(rehearsal(1), matrix, [1.0])
