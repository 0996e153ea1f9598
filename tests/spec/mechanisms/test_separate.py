"""Eigenvectors and eigenvalues from two Gaussians: the claim attacked, calibration, pairing, clipping.

The attack gives a lower bound on μ that is wrong with probability 1e-7; it finds noise of a third of the scale.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy.stats import beta, norm

import privcov as pc
from privcov.mechanisms import find
from privcov.mechanisms.sensitivity import Sensitivity
from privcov.mechanisms.separate import Separate, put_together
from privcov.noise.randomness import kernel, rehearsal
from privcov.privacy import Neighbours
from privcov.schema import Schema
from privcov.schema.grid import Grid
from privcov.summing.gram import Gram


def grid_of(d, radius=1):
    columns = {f"c{i}": {"lower": -1, "upper": 1} for i in range(d)}
    return Grid.of(Schema.from_dict({"columns": columns, "intercept": False, "row_norm_bound": radius}))


def zcdp(rho, neighbours="replace-one"):
    return pc.ZCDP(rho=rho, neighbours=neighbours)


def gram_of(grid, *rows):
    gram = Gram(grid)
    gram.add(np.array(rows, dtype=float) * math.isqrt(grid.squared_norm_bound))
    return gram


def square(upper, d):
    matrix = np.zeros((d, d))
    matrix[np.triu_indices(d)] = np.asarray(upper, dtype=float)
    return matrix + np.triu(matrix, 1).T


def least_mu(first, second, failure=1e-7):
    """Φ⁻¹(power) − Φ⁻¹(level) of the best threshold, chosen on one half of the scores, bounded on the other."""
    half = len(first) // 2
    thresholds = np.quantile(np.concatenate([first[:half], second[:half]]), np.linspace(0.05, 0.95, 37))
    gains = [
        norm.ppf(((first[:half] > t).mean() * half + 1) / (half + 2))
        - norm.ppf(((second[:half] > t).mean() * half + 1) / (half + 2))
        for t in thresholds
    ]
    t, n = thresholds[int(np.argmax(gains))], len(first) - half
    k, m = int((first[half:] > t).sum()), int((second[half:] > t).sum())
    power = beta.ppf(failure / 2, k, n - k + 1) if k else 0.0
    level = beta.ppf(1 - failure / 2, m + 1, n - m) if m < n else 1.0
    return norm.ppf(power) - norm.ppf(level)


@cache
def drawn(loss, count):
    randomness = rehearsal(1)
    return [Separate().draw(loss=loss, grid=grid_of(2), randomness=randomness) for _ in range(count)]


def shrunk(noise, factor):
    return np.array([round(factor * int(value)) for value in noise], dtype=object)


def attacked(loss, shrink=1.0):
    """A lower bound on μ between the tables {e1} and {e2}, or {e1} and {0}, from the whole answer."""
    grid = grid_of(2)
    other = [0.0, 1.0] if loss.neighbours == "replace-one" else [0.0, 0.0]
    direction = np.array([[1.0, 0.0], [0.0, -1.0]])
    scores = []
    for row in ([1.0, 0.0], other):
        gram, found = gram_of(grid, row), []
        for draw in drawn(loss, 1200):
            noise = [shrunk(part, shrink) for part in (draw.for_vectors, draw.for_values)]
            answer = replace(draw, for_vectors=noise[0], for_values=noise[1]).answer(gram)
            found.append((square(answer, 2) * direction).sum())
        scores.append(np.array(found))
    return least_mu(*scores)


@pytest.mark.long
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_worst_case_neighbours_cannot_be_told_apart_beyond_the_claim(neighbours):
    assert attacked(zcdp("0.5", neighbours)) <= 1


@pytest.mark.long
def test_the_attack_finds_a_third_of_the_noise():
    """Canary."""
    assert attacked(zcdp("0.5"), shrink=1 / 3) > 1


@pytest.mark.parametrize("radius", [0.3, 1, 7])
def test_the_noise_is_the_papers_under_replace_one(radius):
    """√(2/ρ) on a diagonal entry and on a value, within 6 standard errors (2e-9 each) of 1 500 draws and more."""
    grid, rho, randomness = grid_of(50, radius), 0.3, rehearsal(5)
    draws = [Separate().draw(loss=zcdp("0.3"), grid=grid, randomness=randomness) for _ in range(30)]
    diagonal = np.equal(*np.triu_indices(50))
    for samples, claimed in (
        (np.array([d.for_vectors[diagonal] for d in draws]), 2 / rho),
        (np.array([d.for_vectors[~diagonal] for d in draws]), 1 / rho),
        (np.array([d.for_values for d in draws]), 2 / rho),
    ):
        squares = (samples.astype(float).ravel() / float(grid.squared_norm_bound)) ** 2
        off = 6 * squares.std() / math.sqrt(squares.size)
        assert abs(squares.mean() - claimed) <= off
        assert abs(squares.mean() * 1.5 - claimed) > off  # canary: a variance half as large again


def test_both_losses_are_paid_in_full_and_no_more():
    """The parts' squared parameters add to at most μ², with next to nothing left."""
    from privcov.accounting import gaussian_mu
    from privcov.mechanisms.separate import _std_over_sensitivity

    loss = pc.ApproxDP(epsilon=1, delta="1e-6", neighbours="replace-one")
    for given, mu in ((loss, gaussian_mu(epsilon=1, delta="1e-6")), (zcdp("0.5"), Fraction(1))):
        spent = 2 / _std_over_sensitivity(given) ** 2
        assert spent <= mu**2
        assert float(spent / mu**2) == pytest.approx(1)


def test_rounded_eigenvalues_move_no_further_than_the_bound():
    from privcov.mechanisms.spectral import ExactSpectral

    rng = np.random.default_rng(3)
    for d in (1, 3, 5):
        grid = grid_of(d)
        for _ in range(40):
            shared = rng.normal(size=(2, d))
            rows = [v / np.linalg.norm(v) for v in rng.normal(size=(2, d))]
            moved = [
                np.array(
                    ExactSpectral(
                        gram_of(grid, *(0.9 * shared / 9), x).reveal_to_mechanism(), d
                    ).eigenvalues()
                )
                for x in rows
            ]
            length = math.sqrt(((moved[0] - moved[1]).astype(float) ** 2).sum())
            assert length <= float(
                Sensitivity.of(grid, Neighbours.REPLACE_ONE).values_l2(d, excess=Fraction(0))
            )


def test_values_are_clipped_sorted_and_paired_with_vectors_in_order():
    noisy = np.array([-50, 0, 0, 10, 0, 40], dtype=object)  # the axes in the order 3, 2, 1
    made = square(put_together(noisy, [-3, 9, 700], 3, most=100), 3)
    assert made.tolist() == [[0, 0, 0], [0, 9, 0], [0, 0, 100]]
    unclipped = square(put_together(noisy, [-3, 9, 700], 3, most=None), 3)
    assert unclipped[2, 2] == 700


@pytest.mark.parametrize("arithmetic", ["exact", "idealized"])
def test_the_answer_is_positive_semidefinite_up_to_the_grid(arithmetic):
    grid, randomness = grid_of(6), rehearsal(7)
    gram = gram_of(grid, *np.eye(6))
    for neighbours in ("replace-one", "add-remove"):
        for _ in range(20):
            draw = Separate(arithmetic=arithmetic).draw(
                loss=zcdp("0.1", neighbours), grid=grid, randomness=randomness
            )
            values = np.linalg.eigvalsh(square(draw.answer(gram), 6))
            assert values[0] >= -6 - 1e-9 * values[-1]
            if neighbours == "replace-one":
                assert values[-1] <= 6 * grid.squared_norm_bound * (1 + 1e-9) + 6


@pytest.mark.long
def test_the_error_is_the_predicted_one_where_eigenvalues_are_far_apart():
    """σ_Λ²·d + σ_V²·d(d−1)/2, to 10 %."""
    d, grid, randomness = 5, grid_of(5), rehearsal(9)
    rows = np.repeat(np.eye(d), [4000, 2000, 1000, 500, 100], axis=0)
    gram, loss = gram_of(grid, *rows), zcdp("0.5")
    truth = square(gram.reveal_to_mechanism(), d)
    errors = [
        (
            (square(Separate().draw(loss=loss, grid=grid, randomness=randomness).answer(gram), d) - truth)
            ** 2
        ).sum()
        for _ in range(400)
    ]
    predicted = 4 * d + 4 * d * (d - 1) / 2
    assert np.mean(errors) / grid.squared_norm_bound**2 == pytest.approx(predicted, rel=0.1)


def test_as_published_every_entry_has_the_paper_s_noise_under_replace_one_alone():
    """√2/√ρ on the diagonal, above it and on every value, within 6 standard errors; the tight noise is found."""
    grid, randomness = grid_of(40), rehearsal(6)
    made = find("separate", loss=zcdp("0.3"), as_published=True)
    for arithmetic in ("exact", "idealized"):
        mechanism = replace(made, arithmetic=arithmetic)
        draws = [mechanism.draw(loss=zcdp("0.3"), grid=grid, randomness=randomness) for _ in range(20)]
        diagonal = np.equal(*np.triu_indices(40))
        for samples in (
            np.array([d.for_vectors[diagonal] for d in draws]),
            np.array([d.for_vectors[~diagonal] for d in draws]),
            np.array([d.for_values for d in draws]),
        ):
            squares = (samples.astype(float).ravel() / float(grid.squared_norm_bound)) ** 2
            off = 6 * squares.std() / math.sqrt(squares.size)
            assert abs(squares.mean() - 2 / 0.3) <= off
            assert abs(squares.mean() - 1 / 0.3) > off
        assert draws[0].most_per_row == grid.squared_norm_bound  # values are clipped to [0, n·R²]
    with pytest.raises(pc.PrivcovError, match="E207 separate as published uses the number of rows"):
        find("separate", loss=zcdp("0.3", "add-remove"), as_published=True)


def test_the_public_code_s_singular_vectors_are_found():
    """Canary: an SVD of the noisy matrix orders vectors by |λ|, and gives its negative directions large values."""
    noisy = np.diag([-50.0, 10.0, 40.0])
    left, _, right = np.linalg.svd(noisy)
    flawed = left @ np.diag([100.0, 9.0, 0.0]) @ right
    sound = square(put_together(noisy[np.triu_indices(3)].astype(object), [0, 9, 100], 3, most=None), 3)
    assert flawed[0, 0] == pytest.approx(-100)
    assert np.diag(sound).tolist() == [0, 9, 100]


def test_bad_input_is_refused_from_public_facts():
    with pytest.raises(pc.PrivcovError, match="E203"):
        find("separate", loss=pc.PureDP(epsilon=1, neighbours="replace-one"))
    with pytest.raises(pc.PrivcovError, match="E209 exact separate takes at most 64 columns, got 65"):
        Separate().draw(loss=zcdp(1), grid=grid_of(65), randomness=kernel())
    Separate(arithmetic="idealized").draw(loss=zcdp(1), grid=grid_of(65), randomness=kernel())


def test_a_release_says_that_there_is_no_law(people, schema, tmp_path):
    made = pc.release(people, schema=schema, loss=zcdp("0.5"), mechanism="separate")
    made.save(tmp_path / "a.json")
    assert pc.load(tmp_path / "a.json").certificate.law is None
    assert "does not see how long" in made.certificate.timing
    assert np.isfinite(made.covariance()).all()
