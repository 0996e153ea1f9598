"""Public structure: the equalities hold, the projection is the nearest, and knowing more never hurts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats
from privcov.noise.laws import GaussianEnsemble, LaplaceTriangle, NoiseLaw, WishartDifference
from privcov.noise.randomness import rehearsal
from privcov.repair import METHODS, Observed, Structure, repair
from privcov.repair.simplices import shrunk
from privcov.repair.structure import lift

GROUPS = [[1, 2, 3], [4, 5]]
ROWS = 400


def table(seed: int, rows: int = ROWS) -> Floats:
    """Intercept, a column of three levels (sometimes none of them), one of two levels, one number."""
    u = rehearsal(seed).uniforms(3 * rows).reshape(3, rows)
    first = np.stack([(u[0] >= a) & (u[0] < b) for a, b in ((0, 0.3), (0.3, 0.7), (0.7, 0.9))])
    second = np.stack([u[1] < 0.25, u[1] >= 0.25])
    return np.vstack([np.ones(rows), first, second, 2 * u[2] - 1]).T


def moments(seed: int = 1) -> Floats:
    rows = table(seed)
    return rows.T @ rows


def structure(rows: float | None = ROWS) -> Structure:
    return Structure.one_hot(dimension=7, groups=GROUPS, intercept=0, rows=rows)


def assert_structured(matrix: Floats, rows: float | None = ROWS) -> None:
    if rows is not None:
        assert matrix[0, 0] == rows
    for group in GROUPS:
        for a in group:
            assert matrix[a, a] == matrix[0, a] == matrix[a, 0]
            assert all(matrix[a, b] == 0 for b in group if b != a)
    assert matrix[1:6, 1:6].min() >= 0
    np.testing.assert_array_equal(matrix, matrix.T)


def test_a_true_moment_matrix_has_the_structure_of_its_schema() -> None:
    truth = moments()
    np.testing.assert_allclose(structure().fit(truth, GaussianEnsemble(dimension=7, scale=1.0)), truth)
    np.testing.assert_allclose(structure().fit_positive(truth), truth, atol=1e-3)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("scale", [0.5, 20.0, 2000.0])
@pytest.mark.parametrize("rows", [ROWS, None])
def test_every_repair_ends_structured_and_positive(method: str, scale: float, rows: int | None) -> None:
    law = WishartDifference(dimension=7, scale=scale)
    matrix = moments() + law.simulate(rehearsal(2))
    repaired = repair(
        Observed(matrix=matrix, law=law, rows=rows, squared_norm_bound=4.0, structure=structure(rows)),
        method=method,
    )
    assert_structured(repaired, rows)
    if method != "none":
        eigenvalues = np.linalg.eigvalsh(repaired)
        assert eigenvalues[0] >= -1e-9 * eigenvalues[-1]


@pytest.mark.parametrize("law", [GaussianEnsemble, LaplaceTriangle])
def test_the_fit_is_the_weighted_least_squares_one(law: type[NoiseLaw]) -> None:
    """Against a least-squares solve in the free parameters of a structure with ties and known values only."""
    noise = law(dimension=4, scale=1.5)
    tied = Structure(
        dimension=4,
        fixed=np.array([[2, 1], [0, 0]]),
        values=np.array([0.0, 50.0]),
        tied=np.array([[1, 1, 0, 1], [0, 1, 2, 3]]),
    )
    matrix = np.diag([50.0, 20, 20, 20]) + noise.simulate(rehearsal(3))
    rows, columns = np.triu_indices(4)
    variances = np.where(rows == columns, noise.diagonal_variance, noise.offdiagonal_variance)
    classes = {(0, 1): 0, (1, 1): 0, (2, 3): 0, (0, 2): 1, (0, 3): 2, (1, 3): 3, (2, 2): 4, (3, 3): 5}
    design = np.zeros((10, 6))
    target = matrix[rows, columns].copy()
    for entry, (i, j) in enumerate(zip(rows.tolist(), columns.tolist(), strict=True)):
        if (i, j) in classes:
            design[entry, classes[i, j]] = 1
        else:
            target[entry] = 0.0
    weight = 1 / np.sqrt(variances)
    solution, *_ = np.linalg.lstsq(design * weight[:, None], target * weight, rcond=None)
    expected = design @ solution
    expected[0], expected[5] = 50.0, 0.0
    np.testing.assert_allclose(tied.fit(matrix, noise)[rows, columns], expected, atol=1e-9)


def test_fitting_never_moves_a_release_away_from_a_structured_truth() -> None:
    law = GaussianEnsemble(dimension=7, scale=30.0)
    truth, known = moments(), structure()
    for seed in range(20):
        noisy = truth + law.simulate(rehearsal(seed))
        before, after = np.linalg.norm(noisy - truth), np.linalg.norm(known.fit(noisy, law) - truth)
        positive = np.linalg.norm(known.fit_positive(noisy) - truth)
        assert after < before
        assert positive <= after * (1 + 1e-4)


def test_the_noise_left_is_the_share_measured_by_simulation() -> None:
    """400 draws of 28 entries: standard error of the ratio below 1 %; the bound is 5 %."""
    law = WishartDifference(dimension=7, scale=0.01)
    truth, randomness = moments(), rehearsal(4)
    known = Structure(dimension=7, fixed=[[0, 0], [1, 2]], values=[ROWS, 0], tied=[[3, 3, 0, 3]])  # type: ignore[arg-type]
    draws = [law.simulate(randomness) for _ in range(400)]
    left = sum(np.linalg.norm(known.fit(truth + z, law) - truth) ** 2 for z in draws)
    assert known.noise_left(law) == pytest.approx(left / sum(np.linalg.norm(z) ** 2 for z in draws), rel=0.05)
    assert known.noise_left(law) < 0.97


def test_the_joint_projection_is_the_nearest_positive_structured_matrix() -> None:
    """Against a general solver on a 3 × 3 problem, written in a Cholesky factor with penalties."""
    known = Structure.one_hot(dimension=3, groups=[[1, 2]], intercept=0, rows=10)
    matrix = np.array([[10.0, 9, 8], [9, 9, 0], [8, 0, 8]])
    got = known.fit_positive(matrix)

    def distance(p: Floats) -> float:
        x = np.array([[10, p[0], p[1]], [p[0], p[0], 0], [p[1], 0, p[1]]])
        return float(((x - matrix) ** 2).sum())

    limits = [
        {"type": "ineq", "fun": lambda p: p[0]},
        {"type": "ineq", "fun": lambda p: p[1]},
        {"type": "ineq", "fun": lambda p: 10 - p[0] - p[1]},  # the Schur complement of the intercept
    ]
    solved = minimize(distance, x0=[3.0, 3.0], constraints=limits, method="SLSQP", tol=1e-12)
    np.testing.assert_allclose(got[0, 1:], solved.x, atol=1e-3)
    assert np.linalg.eigvalsh(got)[0] >= -1e-9


def test_a_level_count_of_three_thousand_pairs_is_fitted_without_a_loop_per_pair() -> None:
    wide = Structure.one_hot(dimension=101, groups=[range(1, 81), range(81, 101)], intercept=0, rows=1000)
    law = GaussianEnsemble(dimension=101, scale=1.0)
    fitted = wide.fit(law.simulate(rehearsal(1)), law)
    assert not fitted[1:81, 1:81][np.triu_indices(80, 1)].any()
    np.testing.assert_array_equal(np.diag(fitted)[1:], fitted[0, 1:])


def test_an_empty_table_can_be_repaired() -> None:
    law = WishartDifference(dimension=7, scale=1.0)
    observed = Observed(
        matrix=law.simulate(rehearsal(1)), law=law, rows=0, squared_norm_bound=4.0, structure=structure(0)
    )
    assert np.abs(repair(observed)).max() < 1e-6


def test_lift_is_the_spectral_projection() -> None:
    matrix = rehearsal(6).normals(5, 5)
    matrix = matrix + matrix.T
    lifted = lift(matrix, 0.25)
    assert np.linalg.eigvalsh(lifted)[0] >= 0.25 - 1e-12
    assert np.linalg.norm(lifted - matrix) == pytest.approx(
        np.linalg.norm(np.minimum(np.linalg.eigvalsh(matrix) - 0.25, 0))
    )


@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        ("E276", {"fixed": [[0, 3]], "values": [1.0]}),
        ("E276", {"tied": [[0, 0, 1, -1]]}),
        ("E277", {"fixed": [[0, 1]], "values": []}),
        ("E277", {"fixed": [[0, 1]], "values": [np.nan]}),
        ("E278", {"fixed": [[0, 1], [1, 0]], "values": [1.0, 2.0]}),
        ("E280", {"fixed": [[0, 0]], "values": [-1.0]}),
        ("E280", {"inside": -np.eye(3)}),
    ],
)
def test_an_impossible_structure_is_refused(code: str, arguments: dict[str, object]) -> None:
    with pytest.raises(ParameterError) as caught:
        Structure(dimension=3, **arguments)  # type: ignore[arg-type]
    assert caught.value.code == code


def test_a_structure_of_another_dimension_is_refused() -> None:
    law = GaussianEnsemble(dimension=3, scale=1.0)
    with pytest.raises(ParameterError, match="E281"):
        Observed(matrix=np.eye(3), law=law, rows=1, squared_norm_bound=1.0, structure=structure())


def dependent(seed: int, strength: float, rows: int = 4_000) -> tuple[Floats, Structure]:
    """Two columns of four levels each and three numbers, which depend on each other by ``strength``."""
    u = rehearsal(seed).uniforms(6 * rows).reshape(6, rows)
    first = (4 * u[0]).astype(int)
    second = np.where(u[1] < strength, first, (4 * u[2]).astype(int))
    numbers = strength * (first - 1.5) / 1.5 + (1 - strength) * (2 * u[3:] - 1)
    made = np.vstack([np.ones(rows), np.eye(4)[first].T, np.eye(4)[second].T, numbers])
    known = Structure.one_hot(dimension=12, groups=[range(1, 5), range(5, 9)], intercept=0, rows=rows)
    return made @ made.T, known


BETWEEN = np.zeros((12, 12), dtype=bool)
BETWEEN[1:5, 5:] = BETWEEN[5:9, 9:] = True


def errors_between(strength: float, scale: float, draws: int) -> tuple[float, float]:
    """Root mean square errors of products between columns, repaired and as they were released, in noise deviations."""
    law = GaussianEnsemble(dimension=12, scale=scale)
    truth, known = dependent(3, strength)
    found = []
    for seed in range(draws):
        noisy = truth + law.simulate(rehearsal(100 + seed))
        made = repair(Observed(matrix=noisy, law=law, rows=4_000, squared_norm_bound=6.0, structure=known))
        found.append([np.mean((matrix - truth)[BETWEEN] ** 2) for matrix in (made, noisy)])
    ours, raw = np.sqrt(np.mean(found, axis=0) / law.offdiagonal_variance)
    return float(ours), float(raw)


def test_what_noise_drowns_between_columns_is_taken_for_independent() -> None:
    """Seeded. The true products are those of means; levels with levels and with numbers are both looked at. Without
    shrinking the error is above 0.9 deviations.
    """
    ours, raw = errors_between(0.0, 200.0, 12)
    assert raw == pytest.approx(1, abs=0.1)
    assert ours < 0.4


@pytest.mark.parametrize("scale", [2.0, 20.0])
def test_what_stands_clear_of_the_noise_is_not_shrunk_away(scale: float) -> None:
    """Seeded. Products that are hundreds of deviations from independence stay about as near as they were released; what
    is lost are directions of a few deviations beside them. Blocks taken for independent would be off by more than 20.
    """
    ours, _ = errors_between(0.7, scale, 4)
    assert ours < 1.15


def test_blocks_of_one_size_at_once_are_each_block_alone() -> None:
    """The slow way: one pair of groups after the other, and only what cannot be negative is raised afterwards."""
    truth, known = dependent(5, 0.3)
    law = GaussianEnsemble(dimension=12, scale=60.0)
    noisy = truth + law.simulate(rehearsal(6))
    made, fitted = known.smoothed(noisy, law), known.fit(noisy, law)
    for one, other in ((range(1, 5), range(5, 9)), (range(1, 5), range(9, 12)), (range(5, 9), range(9, 12))):
        means = np.outer(fitted[0, one], fitted[0, other]) / 4_000
        slow = means + shrunk((noisy[np.ix_(one, other)] - means)[None], law.offdiagonal_variance**0.5)[0]
        slow = np.maximum(slow, 0) if other[0] < 9 else slow
        np.testing.assert_allclose(made[np.ix_(one, other)], slow, rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize(
    ("values", "rows", "most"),
    [
        ((0, 0, 0), 4, 0.25),
        ((9, 0, 0), 4, 0.75),
        ((3, 3, 3), 4, 1.02),
        ((40, 30, 20), 4, 1.02),
        ((4,), 5, 1.12),
    ],
)
def test_a_block_is_shrunk_in_the_way_that_suits_it(
    values: tuple[float, ...], rows: int, most: float
) -> None:
    """Squared errors of 2,000 blocks against those as they came; seeded, a standard error is below 0.02. Directions
    alone would have 1.6 where all directions are weak, and 1.15 in one column; whole blocks 0.9 for one direction.
    """
    truth = np.zeros((rows, len(values)))
    np.fill_diagonal(truth, values)
    noise = np.random.default_rng(1).normal(size=(2_000, *truth.shape))
    assert np.mean((shrunk(truth + noise, 1.0) - truth) ** 2) < most * np.mean(noise**2)
    np.testing.assert_allclose(shrunk(7 * (truth + noise), 7.0), 7 * shrunk(truth + noise, 1.0), atol=1e-9)


def test_no_covariance_of_numbers_moves_by_more_than_a_deviation_of_its_noise() -> None:
    truth, known = dependent(7, 0.9)
    law = GaussianEnsemble(dimension=12, scale=30.0)
    noisy = truth + law.simulate(rehearsal(8))
    moved = (known.smoothed(noisy, law) - known.fit(noisy, law))[9:, 9:][np.triu_indices(3, 1)]
    assert (np.abs(moved) <= law.offdiagonal_variance**0.5 * (1 + 1e-9)).all()
    assert (moved != 0).all()
