"""Exact Bingham vectors follow their law: against quadrature at q = 2, 3, against another sampler at q = 5.

Every check is a Kolmogorov-Smirnov test and rejects a p-value outside (ALARM, 1 - ALARM). There are fewer than
40 p-values, so a correct sampler with fresh seeds would fail this file less than once in two million runs;
the seeds are fixed. With DRAWS vectors an error of 0.07 in the distribution function is seen, and the planted
ones below are.
"""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from flint import fmpz_mat
from scipy import integrate, special, stats

from privcov.noise.exact import bingham as module
from privcov.noise.exact import envelope as envelopes
from privcov.noise.exact.bingham import bingham, tuned
from privcov.noise.exact.envelope import Envelope, Transform
from privcov.noise.randomness import rehearsal

ALARM = 5e-9
DRAWS = 3000
TWO = np.array([[7, 3], [3, 2]], dtype=object)
THREE = np.array([[9, 2, -1], [2, 5, 2], [-1, 2, 3]], dtype=object)
FIVE = np.array(
    [[6, 1, 0, 2, -1], [1, 3, 1, 0, 0], [0, 1, 4, -2, 1], [2, 0, -2, 5, 0], [-1, 0, 1, 0, 1]], dtype=object
)


def is_plausible(p_value):
    return bool(ALARM < p_value < 1 - ALARM)


def sample(seed, matrix, concentration, draws=DRAWS):
    """Vectors in the eigenbasis of the matrix, largest eigenvalue first; all from one envelope, tuned once."""
    envelope = tuned(fmpz_mat(matrix.tolist()), concentration)
    return sample_with(envelope, seed, matrix, concentration, draws)


def sample_with(envelope, seed, matrix, concentration, draws=DRAWS):
    source = rehearsal(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "tuned", lambda *_: envelope)
        vectors = [bingham(source, matrix=matrix, concentration=concentration)[0] for _ in range(draws)]
    _, basis = np.linalg.eigh(matrix.astype(float))
    return np.array(vectors, dtype=float) / 2**40 @ basis[:, ::-1]


def marginal(preferences):
    """The distribution function of the first coordinate on the sphere of R², or of R³, by quadrature.

    The density of the coordinate t in R³ is exp(a·t² + (b+c)/2·(1-t²))·I₀((b-c)/2·(1-t²)); in R² it is
    exp(a·t² + b·(1-t²))/√(1-t²), where t = sin φ removes the root.
    """
    angles = np.linspace(-np.pi / 2, np.pi / 2, 40_001)
    t = np.sin(angles)
    a, rest = preferences[0], preferences[1:]
    if len(rest) == 1:
        logs, factor = a * t**2 + rest[0] * (1 - t**2), 1.0
    else:
        b, c = rest
        half = abs(b - c) / 2 * (1 - t**2)
        logs, factor = a * t**2 + (b + c) / 2 * (1 - t**2) + half, special.i0e(half) * np.cos(angles)
    density = np.exp(logs - logs.max()) * factor
    total = integrate.cumulative_simpson(density, x=angles, initial=0)
    return lambda values: np.interp(np.arcsin(np.clip(values, -1, 1)), angles, total / total[-1])


def follows(coordinates, matrix, concentration):
    """Whether every coordinate of the sample has the distribution that quadrature gives."""
    values = float(concentration) * np.linalg.eigvalsh(matrix.astype(float))[::-1]
    plausible = True
    for axis in range(len(values)):
        cdf = marginal(np.roll(values, -axis))
        p_value = stats.kstest(coordinates[:, axis], cdf, method="asymp").pvalue
        plausible &= is_plausible(p_value)
    return plausible


@pytest.mark.parametrize("concentration", [Fraction(1, 100), Fraction(2), Fraction(10**6)])
@pytest.mark.long
def test_two_dimensional_vectors_follow_quadrature(concentration):
    assert follows(sample(1, TWO, concentration), TWO, concentration)


@pytest.mark.parametrize("concentration", [Fraction(1, 3), Fraction(5)])
@pytest.mark.long
def test_three_dimensional_vectors_follow_quadrature(concentration):
    assert follows(sample(2, THREE, concentration), THREE, concentration)


def test_the_sign_trap_of_the_literature_is_avoided():
    # E[u₁²] at κ(λ₁-λ₂) = 2.5 is .764; acceptance with the inverted power gives .92.
    squares = sample(3, np.array([[5, 0], [0, 0]], dtype=object), Fraction(1, 2))[:, 0] ** 2
    assert abs(squares.mean() - 0.764) < 6 * squares.std() / np.sqrt(DRAWS)


@pytest.mark.long
def test_five_dimensional_vectors_agree_with_uniform_proposals_kept_by_their_density():
    concentration = Fraction(4, 5)
    ours = sample(4, FIVE, concentration)
    values = 0.8 * np.linalg.eigvalsh(FIVE.astype(float))[::-1]
    generator = np.random.default_rng(5)
    uniform = generator.normal(size=(1_500_000, 5))
    uniform /= np.linalg.norm(uniform, axis=1, keepdims=True)
    theirs = uniform[generator.random(len(uniform)) < np.exp(uniform**2 @ values - values[0])]
    assert len(theirs) > 10_000
    statistics = [lambda u: u[:, 0], lambda u: u[:, 4], lambda u: u**2 @ values, lambda u: u[:, 1] + u[:, 2]]
    for statistic in statistics:
        assert is_plausible(stats.ks_2samp(statistic(ours), statistic(theirs), method="asymp").pvalue)


def test_a_fixed_number_of_proposals_gives_the_same_law():
    source, concentration = rehearsal(6), Fraction(5)
    drawn = [bingham(source, matrix=THREE, concentration=concentration, proposals=60) for _ in range(1500)]
    assert all(accepted for _, accepted in drawn)
    _, basis = np.linalg.eigh(THREE.astype(float))
    coordinates = np.array([vector for vector, _ in drawn], dtype=float) / 2**40 @ basis[:, ::-1]
    assert follows(coordinates, THREE, concentration)


@pytest.mark.long
def test_a_poor_envelope_gives_the_same_law():
    # Proposals uniform on the sphere: B = 2^20·I and σ = 15, well above the largest eigenvalue, 9.8.
    concentration, scale = Fraction(1, 3), 2**20
    form = fmpz_mat(((15 * np.eye(3, dtype=int) - THREE) * scale**2).tolist())
    exact = fmpz_mat((np.eye(3, dtype=int) * scale).tolist())
    floor = 5 * scale**2
    poor = Envelope(
        transform=Transform(exact=exact, floats=np.eye(3), bits=20),
        form=form,
        unit=2 * concentration,
        floor=floor,
        floor_float=float(10 * concentration),
        excess=np.array(form.tolist(), dtype=float) / floor - np.eye(3),
    )
    best = tuned(fmpz_mat(THREE.tolist()), concentration)
    loose = replace(
        best, floor=best.floor // 2, floor_float=best.floor_float / 2, excess=2 * best.excess + np.eye(3)
    )
    assert follows(sample_with(poor, 7, THREE, concentration), THREE, concentration)
    assert follows(sample_with(loose, 8, THREE, concentration), THREE, concentration)


# Canaries: errors planted in the sampler are seen by the same check.


@pytest.mark.parametrize(
    ("error", "draws"),
    [
        (lambda form, bound, q, log: (form - q + q * log(bound / q)) / 2, DRAWS // 3),
        (lambda form, bound, q, log: 0 * form, DRAWS // 3),
        (lambda form, bound, q, log: (form - q) / 2 + 0 * log(bound / q), DRAWS),
    ],
    ids=["inverted", "always", "without the envelope"],
)
def test_a_wrong_acceptance_is_seen(error, draws, monkeypatch):
    monkeypatch.setattr(envelopes, "acceptance_exponent", error)
    assert not follows(sample(9, THREE, Fraction(5), draws=draws), THREE, Fraction(5))


def test_a_coefficient_half_as_large_again_is_seen():
    assert not follows(sample(10, THREE, Fraction(1, 2)), THREE, Fraction(1, 3))
