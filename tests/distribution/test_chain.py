"""The blocked chain and the plain one have the same law, and the comparison sees planted errors.

Kolmogorov–Smirnov between captured variances θᵢᵀCθᵢ (and one off-diagonal product) of the two chains, step by
step, alarm below ALARM; the test is two-sided, a captured variance too large or too small. There are fewer than
200 p-values (600 with the slow ones), so a correct chain with fresh seeds would fail this file at most once in a
million runs; the seeds are fixed. At 5,000 draws a shift of 0.25 standard deviations is seen.
"""

import os

import numpy as np
import pytest
from reference_chain import plain_chains
from scipy import stats

from privcov.noise.idealized import blocks, sample_chain
from privcov.noise.randomness import rehearsal

ALARM = 1e-9
DRAWS = 5000
DECAYING = [10.0, 5.0, 2.0, 1.0, 0.5, 0.1]
REPEATED = [9.0, 9.0, 9.0, 1.0, 0.0, -5.0]
UNEVEN = [50.0, 0.1, 3.0, 0.01, 1.0]


def symmetric(values):
    basis = np.linalg.qr(np.random.default_rng(4).normal(size=(len(values), len(values)))).Q
    return (basis * values) @ basis.T


def statistics(vectors, matrix):
    """Captured variance at each step, and the product that couples neighbouring steps."""
    products = np.swapaxes(vectors, -1, -2) @ matrix @ vectors
    captured = np.diagonal(products, axis1=-2, axis2=-1)
    coupled = np.diagonal(products, offset=1, axis1=-2, axis2=-1) ** 2
    return np.concatenate([captured, coupled], axis=-1)


def agree(values, concentrations, *, block_length, draws=DRAWS, seed=2):
    matrix, source = symmetric(values), rehearsal(seed)
    rank = len(concentrations)
    ours = np.array(
        [
            sample_chain(source, matrix, concentrations, rank=rank, block_length=block_length)[0]
            for _ in range(draws)
        ]
    )
    assert np.abs(np.swapaxes(ours, 1, 2) @ ours - np.eye(rank)).max() < 1e-12
    plain = plain_chains(rehearsal(seed + 1000), matrix, concentrations, count=draws)
    ours, plain = statistics(ours, matrix), statistics(plain, matrix)
    chances = [stats.ks_2samp(a, b).pvalue for a, b in zip(ours.T, plain.T, strict=True)]
    return bool(min(chances) > ALARM)


@pytest.mark.parametrize(
    ("values", "concentrations", "block_length", "draws"),
    [
        pytest.param(DECAYING, [0.5] * 5, None, DRAWS, marks=pytest.mark.slow),
        pytest.param(REPEATED, UNEVEN, 3, DRAWS, marks=pytest.mark.slow),
        (DECAYING, [2.0, 4.0, 8.0, 16.0, 32.0], 1, DRAWS // 4),
    ],
    ids=["even", "uneven-long-blocks", "rising-short-blocks"],
)
def test_blocked_and_plain_chain_agree_at_dimension_six(values, concentrations, block_length, draws):
    assert agree(values, concentrations, block_length=block_length, draws=draws)


@pytest.mark.slow
@pytest.mark.parametrize("block_length", [None, 1, 2, 3])
@pytest.mark.parametrize("concentrations", [[0.3] * 5, [5.0] * 5, UNEVEN, [1e4] * 5], ids=str)
@pytest.mark.parametrize("values", [DECAYING, REPEATED], ids=["decaying", "repeated"])
def test_blocked_and_plain_chain_agree_in_every_combination(values, concentrations, block_length):
    draws = max(200, round(DRAWS * float(os.environ.get("PRIVCOV_SAMPLE", "1"))))
    assert agree(values, concentrations, block_length=block_length, draws=draws)


@pytest.mark.parametrize("concentration", [0.02, 1.0, 50.0])
@pytest.mark.long
def test_blocked_and_plain_chain_agree_over_long_blocks_at_dimension_thirty(concentration):
    values = 40 * np.logspace(0, -2, 30)
    assert agree(values, [concentration] * 15, block_length=15, draws=400)


@pytest.mark.long
def test_a_chain_with_a_wrong_covariance_in_its_blocks_is_seen(monkeypatch):
    right = blocks.make_envelope

    def wrong(*given, **named):
        made = right(*given, **named)
        if made is not None:
            made.factor = 0.5 * made.factor
        return made

    monkeypatch.setattr(blocks, "make_envelope", wrong)
    assert not agree(40 * np.logspace(0, -2, 30), [1.0] * 15, block_length=15, draws=400)


@pytest.mark.long
def test_a_chain_with_the_wrong_dimension_in_its_acceptance_is_seen(monkeypatch):
    right = blocks.log_acceptance
    monkeypatch.setattr(blocks, "log_acceptance", lambda forms, dimension: right(forms, dimension + 4))
    assert not agree(DECAYING, [0.5] * 5, block_length=3, draws=1000)
