"""What one Bingham draw promises: a unit vector, from any symmetric matrix, at any concentration."""

import numpy as np
import pytest

from privcov.errors import ParameterError
from privcov.noise.idealized import sample_bingham
from privcov.noise.idealized.bingham import log_acceptance, tuned_envelope
from privcov.noise.randomness import kernel, rehearsal

INDEFINITE = np.diag([4.0, 1.0, 1.0, 0.0, -7.0])


@pytest.mark.parametrize("concentration", [0.0, 1e-12, 1e-6, 1.0, 1e6, 1e12])
@pytest.mark.parametrize("matrix", [INDEFINITE, np.zeros((5, 5)), np.eye(5), 1e6 * INDEFINITE], ids=range(4))
def test_every_concentration_gives_a_unit_vector(matrix, concentration):
    vector, proposals = sample_bingham(rehearsal(1), matrix, concentration=concentration)
    assert abs(np.linalg.norm(vector) - 1) < 1e-14
    assert 1 <= proposals < 200


def test_dimension_one_is_a_fair_sign():
    source = rehearsal(1)
    signs = [sample_bingham(source, [[3.0]], concentration=2.0)[0][0] for _ in range(400)]
    assert set(signs) == {-1.0, 1.0}
    assert abs(np.mean(signs)) < 0.3


def test_a_huge_concentration_returns_the_top_direction():
    vector, _ = sample_bingham(rehearsal(1), INDEFINITE, concentration=1e12)
    assert abs(vector[0]) > 1 - 1e-10


def test_the_kernel_source_works_too():
    assert sample_bingham(kernel(), INDEFINITE, concentration=1.0)[0].shape == (5,)


def test_the_acceptance_never_exceeds_one_and_reaches_it():
    forms = np.geomspace(1e-6, 1e6, 10_001)
    for dimension in (1, 2, 7, 800):
        logs = log_acceptance(forms, dimension)
        assert (logs <= 1e-12).all()
        assert log_acceptance(np.array([float(dimension)]), dimension)[0] == 0.0


@pytest.mark.parametrize("size", [1, 2, 30, 800])
@pytest.mark.parametrize("scale", [0.0, 1e-9, 1.0, 1e3, 1e12])
@pytest.mark.parametrize("guess", [None, 0.2, 30.0, 1e5])
def test_the_tuned_envelope_solves_its_equation_from_any_guess(size, scale, guess):
    preference = scale * np.arange(size)
    b = tuned_envelope(preference, guess)
    assert 0 < b <= size
    assert abs(np.sum(1 / (b + preference)) - 1) < 2e-3


def test_the_tuned_envelope_needs_about_root_dimension_proposals_at_worst():
    source, matrix = rehearsal(5), np.diag(np.arange(100.0))
    counts = [sample_bingham(source, matrix, concentration=1e3)[1] for _ in range(300)]
    assert 8 < np.mean(counts) < 18


@pytest.mark.parametrize(
    ("matrix", "code", "words"),
    [
        ([[1.0, 2.0], [0.0, 1.0]], "E221", "symmetric"),
        ([[1.0, np.nan], [np.nan, 1.0]], "E221", "finite"),
        ([[np.inf]], "E221", "finite"),
        ([[1e200]], "E221", "1e\\+100"),
        (np.zeros((0, 0)), "E220", "not empty"),
        (np.zeros((2, 3)), "E220", "square"),
        ([1.0, 2.0], "E220", "square"),
        ([["a"]], "E220", "real numbers"),
    ],
)
def test_a_matrix_that_is_none_is_refused(matrix, code, words):
    with pytest.raises(ParameterError, match=words) as refusal:
        sample_bingham(rehearsal(1), matrix, concentration=1.0)
    assert refusal.value.code == code


@pytest.mark.parametrize("concentration", [-1.0, np.nan, np.inf, 1e200, "much"])
def test_a_concentration_out_of_range_is_refused(concentration):
    with pytest.raises(ParameterError, match="concentration") as refusal:
        sample_bingham(rehearsal(1), INDEFINITE, concentration=concentration)
    assert refusal.value.code == "E222"


@pytest.mark.parametrize("envelope", [0.0, -1.0, 5.1, np.nan])
def test_an_envelope_outside_its_range_is_refused(envelope):
    with pytest.raises(ParameterError, match="envelope") as refusal:
        sample_bingham(rehearsal(1), INDEFINITE, concentration=1.0, envelope=envelope)
    assert refusal.value.code == "E223"
