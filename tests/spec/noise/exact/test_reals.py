"""Lazily refined normals and exponentials."""

import numpy as np
import pytest

from privcov.noise.exact import exponentials, normals, trials
from privcov.noise.randomness import rehearsal


@pytest.mark.parametrize("draw", [normals, exponentials])
def test_a_refined_real_stays_inside_its_interval(draw):
    reals = draw(rehearsal(1), 500)
    where = np.arange(500)
    for words, more in [(1, 2), (2, 3), (3, 8)]:
        coarse, fine = reals.lower(where, words), reals.lower(where, more)
        unit = 2 ** (64 * (more - words))
        assert all(c * unit <= f < (c + 1) * unit for c, f in zip(coarse, fine, strict=True))


@pytest.mark.parametrize("draw", [normals, exponentials])
def test_the_judge_alone_gives_the_same_reals_as_the_filter(draw, monkeypatch):
    filtered = draw(rehearsal(2), 400)
    monkeypatch.setattr(trials, "MARGIN", 2.0)
    judged = draw(rehearsal(2), 400)
    where = np.arange(400)
    assert filtered.lower(where, 1).tolist() == judged.lower(where, 1).tolist()


def test_bits_a_judge_drew_to_accept_a_normal_are_part_of_it(monkeypatch):
    # Judges that never look at fewer than four words draw tails for every fraction they meet.
    monkeypatch.setattr(trials, "MARGIN", 2.0)
    monkeypatch.setattr(trials, "DEPTHS", (4, 64))
    reals = normals(rehearsal(3), 50)
    drawn = {index: list(tail) for index, tail in reals.fraction._tails.items()}
    assert sorted(drawn) == list(range(50))
    deep = reals.magnitudes(np.arange(50), 4)
    for index, (second, third, fourth) in drawn.items():
        assert deep[index] % 2**192 == (second << 128) + (third << 64) + fourth


def test_signs_are_carried_by_the_interval():
    reals = normals(rehearsal(4), 200)
    lower = reals.lower(np.arange(200), 1)
    assert 0 < reals.negative.sum() < 200
    assert [value < 0 for value in lower] == reals.negative.tolist()
    magnitudes = reals.magnitudes(np.arange(200), 1)
    assert all(v == (-m - 1 if v < 0 else m) for v, m in zip(lower, magnitudes, strict=True))


def test_no_reals_are_no_reals():
    assert normals(rehearsal(1), 0).whole.size == 0
    assert exponentials(rehearsal(1), 0).whole.size == 0
