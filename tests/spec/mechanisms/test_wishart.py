"""Additive Wishart noise: its accountant against quadrature and against densities, calibration, options.

Statistical checks are two-sided at 6 standard errors (false alarm 2e-9 each, 20 of them: below 1e-7 in this
file) with fixed streams; they find a shift t that is wrong by 10 %.
"""

from __future__ import annotations

import math
import pickle
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import chi2

import privcov as pc
from privcov.mechanisms import find
from privcov.mechanisms.wishart import Wishart, cheapest_delta, largest_shift, wishart_delta
from privcov.noise.exact import normals, rounded_normals, wishart
from privcov.noise.laws import centred_wishart
from privcov.noise.randomness import kernel, rehearsal
from privcov.privacy import Neighbours
from privcov.schema import Schema
from privcov.schema.grid import Grid

ADD, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE_ONE


def grid_of(d, radius=1):
    columns = {f"c{i}": {"lower": -1, "upper": 1} for i in range(d)}
    return Grid.of(Schema.from_dict({"columns": columns, "intercept": False, "row_norm_bound": radius}))


def approx(neighbours="add-remove", epsilon=1, delta="1e-6"):
    return pc.ApproxDP(epsilon=epsilon, delta=delta, neighbours=neighbours)


def cost(shift, epsilon, freedom, neighbours=ADD):
    return float(
        cheapest_delta(
            shift=Fraction(shift), epsilon=Fraction(epsilon), freedom=freedom, neighbours=neighbours
        )
    )


def by_quadrature(shift, epsilon, freedom):
    """δ(ε) as the integral over the law of Q, in both directions."""
    nu, law = freedom / 2 - 1, chi2(freedom)
    high = law.isf(1e-25)

    def removal(q):
        loss = -nu * math.log1p(-shift / q) - shift / 2
        return -math.expm1(epsilon - loss) * law.pdf(q) if loss > epsilon else 0.0

    def addition(q):
        loss = -nu * math.log1p(shift / q) + shift / 2
        return -math.expm1(epsilon - loss) * law.pdf(q) if loss > epsilon else 0.0

    kink = shift / -math.expm1(-(epsilon + shift / 2) / nu)
    end = min(kink, high)
    below = law.cdf(shift) + quad(removal, shift, end, limit=400, epsabs=1e-14)[0]
    if shift <= 2 * epsilon:
        return below
    start = min(shift / math.expm1((shift / 2 - epsilon) / nu), high)
    return max(below, quad(addition, start, high, limit=400, epsabs=1e-14)[0])


@pytest.mark.parametrize(
    ("shift", "epsilon", "freedom"),
    [(0.5, 0.1, 4), (1.5, 1.0, 5), (3.0, 0.3, 40), (10.0, 1.0, 300), (7.0, 0.2, 3)],
)
def test_the_closed_form_is_the_integral(shift, epsilon, freedom):
    assert cost(shift, epsilon, freedom) == pytest.approx(by_quadrature(shift, epsilon, freedom), rel=1e-6)


@cache
def draws(d, k, seed=3, count=20_000):
    a = rehearsal(seed).normals(count, d, k)
    return a @ a.transpose(0, 2, 1)


def delta_by_densities(remains, moved, epsilon, d, k):
    """Mean and standard error of (1 − e^ε·g/f)₊ over draws of N + ``remains``, f and g the densities of
    N + remains and N + moved at the draw: what the definition says, with nothing of the proof in it."""
    noise = draws(d, k)
    there = noise + remains - moved
    positive = np.linalg.eigvalsh(there)[:, 0] > 0
    exponent = (k - d - 1) / 2
    first = exponent * np.linalg.slogdet(noise)[1] - np.trace(noise, axis1=1, axis2=2) / 2
    with np.errstate(all="ignore"):
        second = exponent * np.linalg.slogdet(there)[1] - np.trace(there, axis1=1, axis2=2) / 2
        terms = np.where(positive, -np.expm1(epsilon + second - first), 1.0).clip(0)
    return terms.mean(), terms.std() / math.sqrt(terms.size)


def disagrees(claimed, measured, error):
    return abs(claimed - measured) > 6 * error


@pytest.mark.parametrize("radius", [0.3, 1.0, 2.0])
def test_one_row_costs_exactly_what_the_accountant_says(radius):
    d, k, epsilon = 3, 12, 0.1 * radius
    x = np.outer([radius, 0, 0], [radius, 0, 0])
    zero = np.zeros((d, d))
    measured = [delta_by_densities(a, b, epsilon, d, k) for a, b in ((zero, x), (x, zero))]
    worse = max(measured)
    assert not disagrees(cost(radius**2, epsilon, k - d + 1), *worse)


def test_the_check_finds_the_wrong_degrees_and_the_wrong_power_of_the_radius():
    """Canary: k in place of k − d + 1, and R in place of R²."""
    d, k, radius = 3, 12, 2.0
    worse = max(
        delta_by_densities(a, b, 0.2, d, k)
        for x in [np.diag([radius**2, 0, 0])]
        for a, b in ((0 * x, x), (x, 0 * x))
    )
    assert disagrees(cost(radius**2, 0.2, k), *worse)
    assert disagrees(cost(radius, 0.2, k - d + 1), *worse)


@pytest.mark.parametrize("cosine", [0.0, 0.6, -0.9])
def test_replacing_a_row_costs_no_more_than_the_bound(cosine):
    d, k, epsilon = 3, 12, 0.3
    x, y = np.array([1.0, 0, 0]), np.array([cosine, math.sqrt(1 - cosine**2), 0])
    mean, error = delta_by_densities(np.outer(x, x), np.outer(y, y), epsilon, d, k)
    assert mean - 6 * error <= cost(1, epsilon, k - d + 1, REPLACE)
    if cosine == 0:  # canary: the price of one addition is too low for a replacement
        assert mean - 6 * error > cost(1, epsilon, k - d + 1, ADD)


def test_two_rows_of_a_person_cost_no_more_than_twice_the_shift():
    d, k, epsilon = 3, 12, 0.3
    for second in ([1.0, 0, 0], [0, 1.0, 0], [0.6, 0.8, 0]):
        both = np.outer([1.0, 0, 0], [1.0, 0, 0]) + np.outer(second, second)
        for a, b in ((both, 0 * both), (0 * both, both)):
            mean, error = delta_by_densities(a, b, epsilon, d, k)
            assert mean - 6 * error <= cost(2, epsilon, k - d + 1)


@pytest.mark.parametrize("neighbours", [ADD, REPLACE])
@pytest.mark.parametrize("epsilon", ["1e-3", "0.1", "1", "8", "200"])
@pytest.mark.parametrize("delta", ["1e-30", "1e-6", "0.1"])
@pytest.mark.parametrize("freedom", [3, 50, 2048])
def test_calibration_never_exceeds_its_target_and_wastes_little(neighbours, epsilon, delta, freedom):
    epsilon, delta = Fraction(epsilon), Fraction(delta)
    shift = largest_shift(epsilon=epsilon, delta=delta, freedom=freedom, neighbours=neighbours)
    given = {"epsilon": epsilon, "freedom": freedom, "neighbours": neighbours}
    assert cheapest_delta(shift=shift, **given) <= delta
    assert cheapest_delta(shift=shift * Fraction(1001, 1000), **given) > delta


def test_a_longer_row_never_costs_less():
    costs = [cost(t, 0.5, 9) for t in np.linspace(0.1, 20, 40)]
    assert costs == sorted(costs)


@pytest.mark.parametrize(
    ("degrees", "expected"), [(20, 354), (60, 68.6), (110, 52.0), (510, 38.2), (2010, 34.4)]
)
def test_noise_falls_with_the_degrees_as_tabulated(degrees, expected):
    law = Wishart(degrees=degrees).law(loss=approx(), grid=grid_of(10))
    assert law.rms_frobenius == pytest.approx(expected, rel=2e-3)


def test_the_default_degrees_are_the_best_of_those_below():
    errors = [
        Wishart(degrees=degrees).law(loss=approx(neighbours, epsilon), grid=grid_of(5)).rms_frobenius
        for neighbours in ("add-remove", "replace-one")
        for epsilon in (0.1, 1, 10)
        for degrees in (8, 32, 128, 512, None)
    ]
    for start in range(0, len(errors), 5):
        assert errors[start : start + 5] == sorted(errors[start : start + 5], reverse=True)


@pytest.mark.parametrize("neighbours", ["add-remove", pytest.param("replace-one", marks=pytest.mark.long)])
def test_the_predicted_error_is_the_simulated_one(neighbours):
    grid, mechanism = grid_of(6, 0.7), Wishart(degrees=40)
    law, randomness = mechanism.law(loss=approx(neighbours), grid=grid), rehearsal(8)
    weight = np.where(np.equal(*np.triu_indices(6)), 1, 2)
    upper = np.array(
        [mechanism.draw(loss=approx(neighbours), grid=grid, randomness=randomness).upper for _ in range(600)]
    ).astype(float) * float(grid.unit)
    assert math.sqrt((weight * upper**2).sum(1).mean()) == pytest.approx(law.rms_frobenius, rel=0.1)


@pytest.mark.parametrize(("dimension", "degrees"), [(1, 3), (2, 9), (4, 6), (3, 200)])
def test_the_rounded_matrix_is_the_nearest_to_the_ideal_one(dimension, degrees):
    """Against a slow product of the same variates, 256 bits of each."""
    scale, count = Fraction(10**15, 7), dimension * degrees
    found = wishart(rehearsal(4), dimension=dimension, degrees=degrees, scale=scale)
    entries = normals(rehearsal(4), count).lower(np.arange(count), 4).reshape(dimension, degrees)
    product = entries.dot(entries.T)[np.triu_indices(dimension)]
    assert found.tolist() == [round(scale * Fraction(int(value), 4**256)) for value in product]


def test_rounded_normals_are_the_nearest_to_the_ideal_ones():
    std = Fraction(10**15, 7)
    found = rounded_normals(rehearsal(4), count=50, std=std)
    ideal = normals(rehearsal(4), 50).lower(np.arange(50), 4)
    assert found.tolist() == [round(std * Fraction(int(value), 2**256)) for value in ideal]


@pytest.mark.parametrize("radius", [0.3, 1, 7])
def test_the_published_constants_are_the_papers(radius):
    grid = grid_of(60, radius)
    mechanism = find("wishart", loss=approx(), as_published=True, centred="yes")
    law = mechanism.law(loss=approx(), grid=grid)
    assert law.degrees == 60 + math.floor(28 * math.log(4e6))
    assert law.scale == pytest.approx(radius**2, rel=1e-6)
    assert cost(1, 1, law.degrees - 59) < 1e-40


def test_published_constants_are_refused_where_they_are_wrong_or_out_of_reach():
    mechanism = Wishart(constants="published")
    with pytest.raises(pc.PrivcovError, match="E203 the published degrees of freedom are not proven"):
        mechanism.law(loss=approx(epsilon=10), grid=grid_of(3))
    with pytest.raises(pc.PrivcovError, match=r"E209 .* at least columns"):
        mechanism.law(loss=approx(epsilon=50), grid=grid_of(3))
    with pytest.raises(pc.PrivcovError, match=r"E209 .* random numbers"):
        mechanism.law(loss=approx(epsilon="1e-60"), grid=grid_of(3))
    with pytest.raises(pc.PrivcovError, match="E209 the published constants fix"):
        Wishart(constants="published", degrees=500).law(loss=approx(), grid=grid_of(3))


@pytest.mark.parametrize("degrees", [-1, 0, 3, 4, 10**9])
def test_degrees_out_of_range_are_refused_from_public_facts(degrees):
    with pytest.raises(pc.PrivcovError, match="E209"):
        Wishart(degrees=degrees).draw(loss=approx(), grid=grid_of(3), randomness=kernel())


def test_an_epsilon_alone_and_a_rho_are_refused():
    for loss in (pc.PureDP(epsilon=1, neighbours="add-remove"), pc.ZCDP(rho=1, neighbours="add-remove")):
        with pytest.raises(pc.PrivcovError, match=r"E20[34]"):
            find("wishart", loss=loss)


@pytest.mark.parametrize("arithmetic", ["exact", "idealized"])
def test_uncentred_noise_is_positive_definite_and_claims_no_law(arithmetic):
    grid, mechanism = grid_of(5), Wishart(degrees=30, centred="no", arithmetic=arithmetic)
    assert mechanism.law(loss=approx(), grid=grid) is None
    scale = Wishart(degrees=30).law(loss=approx(), grid=grid).scale
    randomness, traces = rehearsal(2), []
    for _ in range(200):
        upper = mechanism.draw(loss=approx(), grid=grid, randomness=randomness).upper.astype(float)
        matrix = np.zeros((5, 5))
        matrix[np.triu_indices(5)] = upper * float(grid.unit)
        matrix += np.triu(matrix, 1).T
        assert np.linalg.eigvalsh(matrix)[0] > 0
        traces.append(np.trace(matrix))
    error = scale * math.sqrt(2 * 30 * 5 / 200)
    assert not disagrees(5 * 30 * scale, np.mean(traces), error)


def test_a_release_keeps_its_law_in_a_file_and_in_a_pickle(people, schema, tmp_path):
    made = pc.release(people, schema=schema, loss=approx("replace-one"), mechanism="wishart", degrees=50)
    made.save(tmp_path / "a.json")
    law = pc.load(tmp_path / "a.json").certificate.law
    assert law == made.certificate.law == pickle.loads(pickle.dumps(law))
    assert law.name == "wishart-50"
    assert isinstance(law, centred_wishart(50))
    assert np.isfinite(pc.load(tmp_path / "a.json").covariance()).all()


def test_wishart_delta_is_a_probability():
    got = wishart_delta(
        shift=Fraction(10**6), epsilon=Fraction(1), freedom=5, neighbours=REPLACE, first_share=Fraction(1, 2)
    )
    assert got == 1
