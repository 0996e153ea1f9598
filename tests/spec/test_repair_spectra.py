"""Each spectral repair against a slow, obvious reference."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats
from privcov.noise.laws import LAWS, GaussianEnsemble, NoiseLaw, WishartDifference
from privcov.noise.randomness import rehearsal
from privcov.repair import METHODS, Observed, PublicFacts, repair
from privcov.repair.facts import truncated_normal_mean
from privcov.repair.spectra import noise_bank, non_decreasing, onto_simplex, rotation_invariant

LAW = WishartDifference(dimension=5, scale=3.0)
FACTS = PublicFacts(law=LAW, rows=200, squared_norm_bound=0.7)


def noisy(law: NoiseLaw, seed: int, total: float = 100.0) -> Floats:
    d = law.dimension
    return np.diag(total * np.arange(1, d + 1) / (d * (d + 1) / 2)) + law.simulate(rehearsal(seed))


def eigenvalues_of(matrix: Floats) -> Floats:
    return np.asarray(np.linalg.eigvalsh(matrix), dtype=np.float64)


def simplex_by_enumeration(spectrum: Floats, total: float) -> Floats:
    """Every support: the best point with that support, kept if it is feasible; the nearest of them all."""
    best, nearest = math.inf, spectrum
    for size in range(1, spectrum.size + 1):
        for support in itertools.combinations(range(spectrum.size), size):
            point = np.zeros_like(spectrum)
            chosen = list(support)
            point[chosen] = spectrum[chosen] - (spectrum[chosen].sum() - total) / size
            distance = float(((point - spectrum) ** 2).sum())
            if point.min() >= -1e-12 and distance < best:
                best, nearest = distance, point
    return nearest


def isotonic_by_minmax(y: Floats) -> Floats:
    """The max-min formula: value i is the largest over starts ≤ i of the smallest mean over ends ≥ i."""
    d = y.size
    return np.array(
        [max(min(y[a : b + 1].mean() for b in range(i, d)) for a in range(i + 1)) for i in range(d)]
    )


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("total", [0.0, 0.3, 40.0])
def test_the_simplex_projection_is_the_nearest_feasible_point(seed: int, total: float) -> None:
    spectrum = np.sort(10 * rehearsal(seed).normals(5))
    expected = simplex_by_enumeration(spectrum, total)
    np.testing.assert_allclose(onto_simplex(spectrum[None], np.array([total]))[0], expected, atol=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_the_non_decreasing_fit_is_the_least_squares_one(seed: int) -> None:
    y = rehearsal(seed).normals(7)
    np.testing.assert_allclose(non_decreasing(y[None])[0], isotonic_by_minmax(y), atol=1e-12)


@pytest.mark.parametrize("centre", [-900.0, -3.0, 0.0, 2.0, 9.0, 10.0, 14.0, 5000.0])
@pytest.mark.parametrize("std", [0.4, 5.0, 3000.0])
def test_the_believed_trace_is_the_posterior_mean_by_quadrature(centre: float, std: float) -> None:
    upper = 10.0
    beyond = max(-centre, centre - upper)
    if beyond > 20 * std:  # too steep for quadrature; there the posterior is exponential from the nearer end
        edge = std**2 / beyond
        got = float(truncated_normal_mean(np.array([centre]), std, upper)[0])
        assert got == pytest.approx(edge if centre < 0 else upper - edge, rel=0.01)
        return
    shift = norm.logpdf(np.clip(centre, 0, upper), centre, std)

    def weight(t: float) -> float:
        return float(np.exp(norm.logpdf(t, centre, std) - shift))

    points = [float(np.clip(centre, 0, upper))]
    mass, _ = quad(weight, 0, upper, points=points, limit=200)
    first, _ = quad(lambda t: t * weight(t), 0, upper, points=points, limit=200)
    got = float(truncated_normal_mean(np.array([centre]), std, upper)[0])
    assert got == pytest.approx(first / mass, rel=1e-6, abs=1e-6)


def test_the_believed_trace_of_a_matrix_that_nobody_made_is_still_a_trace() -> None:
    """A hostile file may say anything; a million deviations out, squares of doubles would lose the difference."""
    centres = np.array([-1e80, -1e30, -1e18, -1e6, 1e6, 1e18, 1e30, 1e80])
    got = truncated_normal_mean(centres, 1.0, 5.0)
    np.testing.assert_allclose(got, np.repeat([0.0, 5.0], 4), atol=1e-5)


def test_without_a_count_the_believed_trace_is_positive_and_follows_a_strong_signal() -> None:
    facts = PublicFacts(law=LAW, rows=None, squared_norm_bound=1.0)
    std = math.sqrt(LAW.trace_variance)
    low, high = facts.believed_trace(np.array([[-std], [50 * std]]))
    assert low > 0
    assert high == pytest.approx(50 * std, rel=1e-12)


def test_the_trace_repair_keeps_the_noisy_trace_and_clip_keeps_each_eigenvalue_in_range() -> None:
    spectrum = eigenvalues_of(noisy(LAW, 1))[None]
    assert METHODS["trace"](spectrum, FACTS).sum() == pytest.approx(np.clip(spectrum.sum(), 0, 140.0))
    np.testing.assert_array_equal(METHODS["clip"](spectrum, FACTS), np.clip(spectrum, 0, 140.0))
    np.testing.assert_array_equal(METHODS["none"](spectrum, FACTS), spectrum)


@pytest.mark.parametrize("method", [name for name in METHODS if name != "none"])
@pytest.mark.parametrize("law", LAWS.values())
def test_every_repair_is_positive_monotone_and_within_the_trace_cap(method: str, law: type[NoiseLaw]) -> None:
    for dimension, scale, seed in itertools.product((1, 2, 5), (0.1, 100.0), (1, 2)):
        noise = law(dimension=dimension, scale=scale)
        facts = PublicFacts(law=noise, rows=200, squared_norm_bound=0.7)
        spectrum = eigenvalues_of(noisy(noise, seed))
        repaired = METHODS[method](spectrum[None], facts)[0]
        assert repaired.min() >= 0
        assert (np.diff(repaired) >= -1e-9).all()
        assert repaired.sum() <= (140.0 if method != "clip" else 140.0 * dimension) * (1 + 1e-9)


def test_gaussian_shrinkage_is_the_semicircle_formula() -> None:
    law = GaussianEnsemble(dimension=30, scale=2.0)
    w = eigenvalues_of(noisy(law, 3, total=900.0))
    gaps = w[:, None] - w
    distance = law.rms_frobenius / 30
    h = (gaps / (gaps**2 + distance**2)).mean(axis=1)
    np.testing.assert_allclose(rotation_invariant(w[None], law)[0], w - 2 * 2.0 * 30 * h, rtol=1e-10)


def test_wishart_shrinkage_far_from_the_noise_is_the_semicircle_formula() -> None:
    wishart = WishartDifference(dimension=200, scale=1.0)
    equal = GaussianEnsemble(dimension=200, scale=math.sqrt(wishart.diagonal_variance))
    wide = np.linspace(0, 1e6, 200)[None]
    near = np.linspace(-300, 300, 200)[None]
    shift, expected = (rotation_invariant(wide, law) - wide for law in (wishart, equal))
    np.testing.assert_allclose(shift, expected, rtol=0.01, atol=1e-6)
    assert np.abs(rotation_invariant(near, wishart) - rotation_invariant(near, equal)).max() > 10


def test_the_wishart_r_transform_has_the_moments_of_simulated_spectra() -> None:
    """Free cumulants κ₂, κ₄ read off R give m₂ = κ₂ and m₄ = κ₄ + 2κ₂².

    Forty spectra of 60 eigenvalues: m₂ has a standard error of 0.4 %, m₄ of 1.2 %; finite dimension adds
    about 1.7 % and 4 %. With bounds of 6 and 10 % a false alarm is below 1e-6, and the semicircle, whose κ₄ = 0
    would put m₄ a third too low, is caught.
    """
    law = WishartDifference(dimension=60, scale=1.0)
    step = 1e-4 / 60
    g = np.array([step, 2 * step], dtype=np.complex128)
    first, second = (law.r_transform(g) / g).real
    kappa4 = (second - first) / (3 * step**2)
    kappa2 = first - kappa4 * step**2
    randomness = rehearsal(5)
    spectra = np.stack([np.linalg.eigvalsh(law.simulate(randomness)) for _ in range(40)])
    assert (spectra**2).mean() == pytest.approx(kappa2, rel=0.06)
    assert (spectra**4).mean() == pytest.approx(kappa4 + 2 * kappa2**2, rel=0.10)
    assert (spectra**4).mean() > 1.2 * 2 * kappa2**2


def test_a_spike_in_simulated_noise_is_restored_to_height_times_overlap() -> None:
    """Spike at three times the noise edge, 40 draws at d = 60: mean within 2 % (standard error 0.4 %)."""
    law = WishartDifference(dimension=60, scale=1.0)
    bank = noise_bank(law)
    height = 3 * bank.largest_eigenvalue
    truth = np.zeros((60, 60))
    truth[0, 0] = height
    randomness = rehearsal(8)
    wanted, got, seen = [], [], []
    for _ in range(40):
        eigenvalues, vectors = np.linalg.eigh(truth + law.simulate(randomness))
        seen.append(eigenvalues[-1])
        got.append(bank.spike(eigenvalues[-1:])[0])
        wanted.append(height * vectors[0, -1] ** 2)
    assert np.mean(got) == pytest.approx(np.mean(wanted), rel=0.02)
    assert np.mean(seen) > 1.04 * np.mean(wanted)


@pytest.mark.parametrize("method", METHODS)
def test_repair_commutes_with_rotations(method: str) -> None:
    matrix = noisy(LAW, 4)
    turn, _ = np.linalg.qr(rehearsal(9).normals(5, 5))

    def repaired(m: Floats) -> Floats:
        return repair(Observed(matrix=m, law=LAW, rows=200, squared_norm_bound=1.0), method=method)

    np.testing.assert_allclose(repaired(turn @ matrix @ turn.T), turn @ repaired(matrix) @ turn.T, atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("law", LAWS.values())
def test_repair_does_not_depend_on_the_units(method: str, law: type[NoiseLaw]) -> None:
    matrix = noisy(law(dimension=4, scale=2.0), 4)
    results = [
        repair(
            Observed(
                matrix=unit * matrix,
                law=law(dimension=4, scale=2.0 * unit),
                rows=200,
                squared_norm_bound=0.7 * unit,
            ),
            method=method,
        )
        / unit
        for unit in (1.0, 37.0)
    ]
    np.testing.assert_allclose(results[0], results[1], rtol=1e-6, atol=1e-6)


def test_noise_free_observations_come_back_unchanged() -> None:
    law = WishartDifference(dimension=4, scale=0.0)
    truth = np.diag([1.0, 2.0, 3.0, 4.0])
    observed = Observed(matrix=truth, law=law, rows=10, squared_norm_bound=1.0)
    for method in ("none", "clip", "trace", "believed", "shrink"):
        np.testing.assert_allclose(repair(observed, method=method), truth, atol=1e-9)


@pytest.mark.parametrize(
    ("code", "changes"),
    [
        ("E270", {"rows": math.nan}),
        ("E270", {"rows": -1}),
        ("E271", {"squared_norm_bound": math.nan}),
        ("E271", {"squared_norm_bound": 0.0}),
        ("E273", {"matrix": np.eye(4)}),
        ("E274", {"matrix": np.full((5, 5), np.nan)}),
        ("E275", {"matrix": np.triu(np.ones((5, 5)))}),
    ],
)
def test_a_bad_observation_is_refused(code: str, changes: dict[str, object]) -> None:
    good: dict[str, object] = {"matrix": np.eye(5), "law": LAW, "rows": 10, "squared_norm_bound": 1.0}
    with pytest.raises(ParameterError) as caught:
        Observed(**{**good, **changes})  # type: ignore[arg-type]
    assert caught.value.code == code


def test_an_unknown_method_is_refused_and_the_known_ones_are_named() -> None:
    observed = Observed(matrix=np.eye(5), law=LAW, rows=10, squared_norm_bound=1.0)
    with pytest.raises(ParameterError, match=r"E272.*shrink"):
        repair(observed, method="magic")
