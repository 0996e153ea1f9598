"""Sums and second moments from one Gaussian: its sensitivity attacked, its noise, its preconditions.

The attacks are deterministic searches and raise no false alarm. Statistical checks are two-sided at 6 standard
errors (2e-9 each, fewer than 10) with fixed streams; they find a standard deviation wrong by 7 %.
"""

from __future__ import annotations

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

import privcov as pc
from privcov.accounting import gaussian_delta
from privcov.mechanisms import find
from privcov.mechanisms.gaussian import Gaussian
from privcov.mechanisms.joint_gaussian import JointGaussian
from privcov.mechanisms.sensitivity import Sensitivity
from privcov.noise.randomness import kernel, rehearsal
from privcov.privacy import Neighbours
from privcov.schema import Schema
from privcov.schema.grid import Grid
from privcov.summing.bounding import Bounding
from privcov.summing.gram import Gram

RADII = (0.3, 1.0, 7.0)
WEIGHTS = (0.1, 0.5, 1.0, 2.0, 9.0, 300.0)


def schema_of(others, radius=None, **words):
    columns = {f"c{i}": {"lower": -1, "upper": 1} for i in range(others)}
    bound = {} if radius is None else {"row_norm_bound": Fraction(radius)}
    return Schema.from_dict({"columns": columns, **bound, **words})


def zcdp(rho="0.5", neighbours="replace-one"):
    return pc.ZCDP(rho=rho, neighbours=neighbours)


def approx(neighbours="replace-one"):
    return pc.ApproxDP(epsilon=1, delta="1e-6", neighbours=neighbours)


def bound(r, weight, intercept=1, rows=1):
    sensitivity = Sensitivity(
        neighbours=Neighbours.REPLACE_ONE,
        dimension=4,
        squared_norm=Fraction(r) ** 2 + intercept**2,
        rows_per_person=rows,
    )
    return float(sensitivity.joint_moments(intercept=intercept, sum_weight=Fraction(weight)))


def furthest(r, weight, intercept=1):
    """The longest change found over pairs of rows of norm up to r, at many angles and lengths."""
    lengths, cosines = np.meshgrid(np.linspace(0, r, 13), np.linspace(-1, 1, 2001))
    x = np.array([r, 0.0])
    y = lengths[..., None] * np.stack([cosines, np.sqrt(1 - cosines**2)], axis=-1)
    sums = intercept * (x - y)
    block = np.outer(x, x) - y[..., :, None] * y[..., None, :]
    return math.sqrt((weight * (sums**2).sum(-1) + (block**2).sum((-2, -1))).max())


@pytest.mark.parametrize("r", RADII)
def test_no_pair_of_rows_moves_further_than_the_bound_and_one_moves_as_far(r):
    for weight in (0.1, 2.0, 300.0):
        found = furthest(r, weight)
        assert found <= bound(r, weight) * (1 + 1e-9)
        assert found >= bound(r, weight) * (1 - 1e-4)
    found = furthest(r, 2.0, intercept=3)
    assert bound(r, 2.0, intercept=3) * (1 - 1e-4) <= found <= bound(r, 2.0, intercept=3) * (1 + 1e-9)


def test_the_attack_finds_the_formula_of_radius_one_used_elsewhere():
    """Canary: the bound at r = 1 times the wrong powers of r."""
    for power in (1, 2):
        assert any(furthest(r, 2.0) > bound(1, 2.0) * r**power * (1 + 1e-9) for r in RADII)


def test_the_bound_is_the_papers_at_radius_one():
    """Squared, in units of the sums: 4 up to λ² = 1/2, then 2 + 2λ² + 1/(2λ²)."""
    for weight in WEIGHTS:
        squared = 1 / weight
        expected = 4 if squared <= 0.5 else 2 + 2 * squared + 1 / (2 * squared)
        assert bound(1, weight) ** 2 * squared == pytest.approx(expected)
    assert bound(1, 1) ** 2 == pytest.approx(4.5)
    with pytest.raises(pc.PrivcovError, match="E207"):
        bound(1, 1, rows=3)  # the count is not public


def change(schema, x, y):
    """What replacing x by y changes, through the row map and the integer Gram matrix, in scaled units."""
    bounding, grams = Bounding.of(schema), []
    for row in (x, y):
        gram = Gram(bounding.grid)
        gram.add(bounding.rows([np.array([cell]) for cell in row]))
        grams.append(gram.reveal_to_mechanism().astype(float) * float(bounding.grid.unit))
    d = bounding.grid.dimension
    matrix = np.zeros((d, d))
    matrix[np.triu_indices(d)] = grams[0] - grams[1]
    return matrix + np.triu(matrix, 1).T


def length(matrix, law):
    """The length of a change in units of the noise of a law: μ."""
    sums = matrix[0, 1:] / (law.ratio * law.scale)
    return math.sqrt(sums @ sums + (matrix[1:, 1:] ** 2).sum() / law.scale**2)


@pytest.mark.parametrize("focus", ["covariance", "mean"])
@pytest.mark.parametrize("radius", [1.05, 1.5, 2])
def test_worst_case_neighbours_stay_within_the_claim(focus, radius):
    """The exact μ between neighbouring tables, so their exact profile, at most the one paid for."""
    schema = schema_of(3, radius)
    grid, rng = Grid.of(schema), np.random.default_rng(4)
    law = JointGaussian(focus=focus).law(loss=approx(), grid=grid)
    pairs = [(a * rng.normal(size=3), -b * rng.normal(size=3)) for a, b in rng.random((300, 2)) * 3]
    pairs += [(np.array([1, 1, 1.0]), -np.array([1, 1, 1.0]))]
    for cosine in np.linspace(-1, 1, 101):
        pairs.append((np.array([9.0, 0, 0]), 9 * np.array([cosine, math.sqrt(1 - cosine**2), 0])))
    lengths = [length(change(schema, x, y), law) for x, y in pairs]
    assert float(gaussian_delta(mu=Fraction(max(lengths)), epsilon=1)) <= 1e-6
    # canary: 10 % less noise is found for rows that reach the bound
    if radius < 2:
        assert float(gaussian_delta(mu=Fraction(max(lengths) / 0.9), epsilon=1)) > 1e-6


def test_the_count_is_exact_and_the_rest_is_not():
    grid = Grid.of(schema_of(3))
    upper = JointGaussian().draw(loss=zcdp(), grid=grid, randomness=kernel()).upper
    assert upper[0] == 0
    assert all(value != 0 for value in upper[1:])


def variance_is_off(samples, claimed):
    squares = samples.ravel() ** 2
    return abs(squares.mean() - claimed) > 6 * squares.std() / math.sqrt(squares.size)


@pytest.mark.parametrize("arithmetic", ["exact", "idealized"])
def test_each_block_has_its_own_noise(arithmetic):
    grid, mechanism = Grid.of(schema_of(3)), JointGaussian(arithmetic=arithmetic)
    law, randomness = mechanism.law(loss=zcdp(), grid=grid), rehearsal(3)
    drawn = [mechanism.draw(loss=zcdp(), grid=grid, randomness=randomness).upper for _ in range(2000)]
    samples = np.array(drawn).astype(float) * float(grid.unit)
    sums, diagonal, rest = samples[:, 1:4], samples[:, [4, 7, 9]], samples[:, [5, 6, 8]]
    assert not variance_is_off(sums, (law.ratio * law.scale) ** 2)
    assert not variance_is_off(diagonal, law.scale**2)
    assert not variance_is_off(rest, law.scale**2 / 2)
    assert variance_is_off(sums, law.scale**2 / 2)  # canary: one standard deviation for all
    weight = np.where(np.equal(*np.triu_indices(4)), 1, 2)
    assert math.sqrt((weight * samples**2).sum(1).mean()) == pytest.approx(law.rms_frobenius, rel=0.1)


def test_focus_mean_gives_sums_as_accurate_as_alone():
    grid = Grid.of(schema_of(10))
    law = JointGaussian(focus="mean").law(loss=zcdp(), grid=grid)
    assert law.ratio * law.scale == pytest.approx(2 * math.sqrt(10), rel=1e-5)


def covariance_error(law, mean_norm, count=400):
    """Simulated n²·E‖error of M/n − mmᵀ‖² to first order in the noise, for a mean of the given norm."""
    others, randomness = law.dimension - 1, rehearsal(6)
    m = np.zeros(others)
    m[0] = mean_norm
    total = 0.0
    for _ in range(count):
        noise = law.simulate(randomness)
        total += ((noise[1:, 1:] - np.outer(m, noise[0, 1:]) - np.outer(noise[0, 1:], m)) ** 2).sum()
    return total / count


def test_focus_covariance_is_better_there_than_the_other_focus_and_than_gaussian():
    grid, worst = Grid.of(schema_of(10)), math.sqrt(10)
    laws = [m.law(loss=zcdp(), grid=grid) for m in (JointGaussian(), JointGaussian(focus="mean"), Gaussian())]
    ours, other, plain = (covariance_error(law, worst) for law in laws)
    law, p = laws[0], 10
    predicted = (p + 1) * law.scale**2 * (p / 2 + 2 * law.ratio**2 * worst**2)
    assert ours == pytest.approx(predicted, rel=0.1)
    assert ours < other
    assert ours < plain


def test_without_a_certain_intercept_it_refuses_from_public_facts():
    for schema in (
        schema_of(3, intercept=False),
        schema_of(3, missing="zero-row"),
        schema_of(3, radius=0.9),
        schema_of(3, radius=1),
    ):
        with pytest.raises(pc.PrivcovError, match="E209 joint-gaussian needs an intercept"):
            JointGaussian().draw(loss=zcdp(), grid=Grid.of(schema), randomness=kernel())
    assert Grid.of(schema_of(3)).intercept


def test_the_intercept_is_one_in_every_row_where_the_grid_says_so():
    for radius in (None, 1.1, 1.5):
        bounding = Bounding.of(schema_of(2, radius))
        cells = np.array([0.0, 1e300, -np.inf, np.nan, 5.0])
        assert bounding.grid.intercept
        assert (bounding.rows([cells, cells[::-1]])[:, 0] == bounding.one).all()


def test_other_relations_and_kinds_are_refused():
    with pytest.raises(pc.PrivcovError, match="E207"):
        find("joint-gaussian", loss=approx("add-remove"))
    with pytest.raises(pc.PrivcovError, match="E203"):
        find("joint-gaussian", loss=pc.PureDP(epsilon=1, neighbours="replace-one"))
    with pytest.raises(pc.PrivcovError, match="E209"):
        find("joint-gaussian", loss=approx(), focus="median")
    with pytest.raises(pc.PrivcovError, match="E207"):
        Sensitivity(neighbours=Neighbours.ADD_REMOVE, dimension=2, squared_norm=Fraction(2)).joint_moments(
            intercept=1, sum_weight=Fraction(1)
        )


def test_a_release_keeps_its_law_in_a_file_and_in_a_pickle(people, schema, tmp_path):
    made = pc.release(people, schema=schema, loss=approx(), mechanism="joint-gaussian")
    made.save(tmp_path / "a.json")
    again = pc.load(tmp_path / "a.json")
    law = again.certificate.law
    assert law == made.certificate.law == pickle.loads(pickle.dumps(law))
    assert again.second_moment(raw=True, scaled=True)[0, 0] == 300
    assert np.isfinite(again.covariance()).all()
