"""Draws in one go are the draws of one after the other, bit for bit: a forecast does not depend on how it is made."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ks_2samp

from privcov.linalg.mixing import Mixing
from privcov.noise import laws
from privcov.noise.composed import Congruent
from privcov.noise.laws import LAWS, centred_wishart, joint_gaussian
from privcov.noise.randomness import rehearsal

KINDS = [*LAWS.values(), centred_wishart(9), joint_gaussian("1.250000")]


def of(kind, dimension):
    return kind(dimension=dimension, scale=1.3)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("at_once", [1, 500, 2**19])
def test_draws_in_one_go_are_those_of_one_after_the_other(kind, at_once, monkeypatch):
    monkeypatch.setattr(laws, "_WORDS_AT_ONCE", at_once)
    for dimension in (2, 5):
        law, source, other = of(kind, dimension), rehearsal(4), rehearsal(4)
        for count in (1, 2, 40):  # a second time from the same source: as many words were taken
            together = law.simulations(source, count)
            assert together.tolist() == [law.simulate(other).tolist() for _ in range(count)]


def test_so_are_those_that_are_seen_through_a_shape():
    block = ((1, 3), (1, 3), ((1.0, 0.5), (-0.25, 2.0)))
    law = Congruent.of(of(LAWS["gaussian"], 4), Mixing(carried=(0, -1, 2, -1), width=4, blocks=(block,)))
    source = rehearsal(6)
    in_turn = np.stack([law.simulate(source) for _ in range(30)])
    assert law.simulations(rehearsal(6), 30) == pytest.approx(in_turn, rel=1e-12)
    assert in_turn == pytest.approx(in_turn.transpose(0, 2, 1), rel=1e-12)


def test_a_triangle_in_place_of_all_degrees_has_the_same_law():
    """4,000 draws each of A Aᵀ − kI: two samples of entries and largest eigenvalues are compared, false alarm 4e-3.

    A diagonal with one degree too few everywhere is seen in each but the entry off the diagonal.
    """
    law, source = centred_wishart(12)(dimension=4, scale=1.0), rehearsal(7)
    drawn = law.simulations(source, 4_000)
    a = source.normals(4_000, 4, 12)
    whole = a @ a.mT - 12 * np.eye(4)
    for what in (
        lambda some: some[:, 0, 0],
        lambda some: some[:, 3, 3],
        lambda some: some[:, 1, 2],
        lambda some: np.linalg.eigvalsh(some)[:, -1],
    ):
        assert ks_2samp(what(drawn), what(whole)).pvalue > 1e-3
