"""The sketch: its rows have the covariance they claim, its matrix follows from them, its error is predicted.

Checks of a covariance are two-sided z-tests at 6 standard errors (false alarm 2e-9 each, under 1e-7 in the
file), with fixed streams. With 8 000 rows they find a variance wrong by 10 %: a ridge halved, or left out.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import privcov as pc
from privcov.errors import PrivcovError
from privcov.mechanisms import find
from privcov.mechanisms.base import SketchDraw, answer
from privcov.mechanisms.johnson_lindenstrauss import LEAST_RIDGE, JohnsonLindenstrauss, sketch_delta
from privcov.noise.randomness import rehearsal
from privcov.releases.sketch import estimate, mean_square, ridge_of
from privcov.schema import Schema
from privcov.schema.grid import Grid
from privcov.summing.gram import Gram

LOSS = pc.ApproxDP(epsilon=1, delta="1e-6", neighbours="add-remove")
REPLACE = replace(LOSS, neighbours="replace-one")


def grid_of(d, radius=1):
    columns = {f"c{i}": {"lower": -1, "upper": 1} for i in range(d)}
    return Grid.of(Schema.from_dict({"columns": columns, "intercept": False, "row_norm_bound": radius}))


def gram_of(rows, grid):
    gram = Gram(grid)
    gram.add(np.floor(np.asarray(rows, dtype=float) * 2**grid.exponent))
    return gram


def covariance_is_off(rows, claimed):
    """Two-sided: whether an entry of Σyyᵀ/r is 6 standard errors from the claimed covariance of a row."""
    rows = np.asarray(rows, dtype=float)
    variances = np.diag(claimed)
    errors = np.sqrt((np.outer(variances, variances) + claimed**2) / len(rows))
    return bool((np.abs(rows.T @ rows / len(rows) - claimed) > 6 * errors).any())


@pytest.mark.parametrize("arithmetic", ["exact", "idealized"])
def test_sketched_rows_have_the_covariance_of_the_matrix_and_its_ridge(arithmetic):
    grid, people = grid_of(3), [[0.9, 0.3, -0.1], [0.6, -0.6, 0.2]] * 40
    gram = gram_of(people, grid)
    mechanism = JohnsonLindenstrauss(arithmetic=arithmetic, sketch_rows=8000)
    loss = replace(LOSS, epsilon=20)
    draw = mechanism.draw(loss=loss, grid=grid, randomness=rehearsal(1))
    rows, ridge = draw._sketch(gram), mechanism.ridge(loss=loss, grid=grid)
    truth = np.zeros((3, 3))
    truth[np.triu_indices(3)] = gram.reveal_to_mechanism().astype(float)
    truth += np.triu(truth, 1).T
    assert not covariance_is_off(rows, truth + ridge * np.eye(3))
    assert covariance_is_off(rows, truth + ridge / 2 * np.eye(3))  # canary: a ridge of half the size
    assert covariance_is_off(rows, truth)  # canary: no ridge
    assert np.abs(np.mean(rows, axis=0)).max() < 6 * math.sqrt(truth.max() + ridge) / math.sqrt(len(rows))


def test_the_matrix_follows_from_the_rows():
    grid = grid_of(2)
    gram = gram_of([[0.5, 0.5]] * 9, grid)
    draw = JohnsonLindenstrauss(sketch_rows=10).draw(loss=LOSS, grid=grid, randomness=rehearsal(3))
    assert isinstance(draw, SketchDraw)
    ridge = draw.ridge
    upper, rows = answer(draw, gram)
    assert upper.tolist() == estimate(rows, ridge=ridge)
    assert ridge_of(rows, upper.tolist()) == ridge
    table = np.array(rows, dtype=object)
    exact = (table.T.dot(table))[np.triu_indices(2)] * 2
    assert mean_square(rows) == [(entry + 10) // 20 for entry in exact]
    with pytest.raises(ValueError, match="does not follow"):
        ridge_of(rows, [upper[0], upper[1] + 1, upper[2]])


def test_a_release_has_its_rows_in_both_units_and_reads_back_identical(people, schema, tmp_path):
    release = pc.release(
        people, schema=schema, loss=REPLACE, mechanism="johnson-lindenstrauss", sketch_rows=40
    )
    release.save(tmp_path / "r.json")
    assert pc.load(tmp_path / "r.json") == release
    rows = release.sketched_rows(scaled=True)
    assert rows.shape == (40, 5)
    raw = release.second_moment(raw=True, scaled=True)
    assert rows.T @ rows / 40 - release.sketch_ridge * np.eye(5) == pytest.approx(raw, abs=1e-9)
    original = release.sketched_rows()
    added = release.sketch_ridge * release.units @ release.units.T
    assert original.T @ original / 40 - added == pytest.approx(release.second_moment(raw=True), rel=1e-6)
    assert np.linalg.eigvalsh(release.second_moment(scaled=True))[0] >= -1e-6
    assert release.certificate.options["sketch_rows"] == "40"


def test_a_release_without_rows_says_which_mechanism_has_them(made):
    assert made.sketch is None
    for ask in (made.sketched_rows, lambda: made.sketch_ridge):
        with pytest.raises(PrivcovError, match=r"E210.*johnson-lindenstrauss"):
            ask()


@pytest.mark.parametrize(("rows", "error"), [(100, 142), pytest.param(20_000, 39, marks=pytest.mark.long)])
def test_the_predicted_error_is_that_of_the_specification(rows, error):
    """d = 10, C = 100·I, (1, 1e-6), add-remove."""
    mechanism = JohnsonLindenstrauss(sketch_rows=rows)
    predicted = mechanism.rms_frobenius(
        loss=LOSS, grid=grid_of(10), trace=1000.0, frobenius=100 * math.sqrt(10)
    )
    assert predicted == pytest.approx(error, rel=0.01)


def test_for_the_matrix_alone_gaussian_is_better_at_one_row_and_at_four_thousand():
    grid = grid_of(10)
    for loss in (LOSS, REPLACE):
        gaussian = find("gaussian", loss=loss).law(loss=loss, grid=grid).rms_frobenius
        for rows in (1, 4, 20, 100, 1000, 4000):
            sketch = JohnsonLindenstrauss(sketch_rows=rows)
            assert sketch.rms_frobenius(loss=loss, grid=grid, trace=0.0, frobenius=0.0) > gaussian


@pytest.mark.long
def test_the_simulated_error_is_the_predicted_one_within_ten_percent():
    """3 000 draws: the standard error of the mean square is below 2 %, so 10 % is more than 5 of them."""
    grid = grid_of(4)
    gram = gram_of([[0.9, 0.3, -0.1, 0.2], [0.1, -0.6, 0.2, 0.5]] * 30, grid)
    mechanism = JohnsonLindenstrauss(sketch_rows=30, arithmetic="idealized")
    truth, unit, randomness = gram.reveal_to_mechanism(), float(grid.unit), rehearsal(4)
    weights = np.where(np.equal(*np.triu_indices(4)), 1.0, 2.0)
    squares = []
    for _ in range(3000):
        upper = mechanism.draw(loss=LOSS, grid=grid, randomness=randomness).answer(gram)
        squares.append(weights @ ((upper - truth).astype(float) * unit) ** 2)
    matrix = truth.astype(float) * unit
    predicted = mechanism.rms_frobenius(
        loss=LOSS,
        grid=grid,
        trace=float(matrix[weights == 1].sum()),
        frobenius=math.sqrt(weights @ matrix**2),
    )
    assert np.std(squares) / math.sqrt(3000) < 0.02 * np.mean(squares)
    assert np.mean(squares) == pytest.approx(predicted**2, rel=0.1)


def test_the_ridge_grows_with_the_squared_norm_and_with_rows_per_person():
    mechanism = JohnsonLindenstrauss(sketch_rows=50)
    ridges = [
        float(mechanism.ridge(loss=LOSS, grid=grid) * grid.unit)
        for grid in (grid_of(60, 0.3), grid_of(60, 1), grid_of(60, 7))
    ]
    assert ridges[1] / ridges[0] == pytest.approx(1 / 0.09, rel=1e-5)
    assert ridges[2] / ridges[1] == pytest.approx(49, rel=1e-5)
    grid = grid_of(3)
    one, two = (mechanism.ridge(loss=LOSS, grid=replace(grid, max_rows_per_person=m)) for m in (1, 2))
    assert two > 2 * one
    assert mechanism.ridge(loss=REPLACE, grid=grid) > one


@pytest.mark.parametrize(("loss", "replaced"), [(LOSS, False), (REPLACE, True)])
def test_a_person_with_several_rows_costs_no_more_than_the_claim(loss, replaced):
    """m orthogonal rows stretch m directions by s, m equal ones stretch one by ms: both exactly known."""
    for m in (2, 5):
        grid = replace(grid_of(8), max_rows_per_person=m)
        ridge = JohnsonLindenstrauss(sketch_rows=20).ridge(loss=loss, grid=grid)
        one = Fraction(grid.squared_norm_bound, ridge)
        for ratio, rows in ((one, 20 * m), (m * one, 20)):
            spent = sketch_delta(ratio=ratio, sketch_rows=rows, epsilon=loss.epsilon, replaced=replaced)
            assert spent <= loss.delta


def test_in_one_column_replacing_costs_what_adding_costs():
    mechanism, grid = JohnsonLindenstrauss(sketch_rows=50), grid_of(1)
    assert mechanism.ridge(loss=REPLACE, grid=grid) == mechanism.ridge(loss=LOSS, grid=grid)


def test_an_absurd_budget_keeps_a_ridge_that_hides_the_rounding():
    loss = pc.ApproxDP(epsilon=10**13, delta="1e-6", neighbours="add-remove")
    assert JohnsonLindenstrauss().ridge(loss=loss, grid=grid_of(3)) == LEAST_RIDGE


def test_published_constants_are_the_papers_and_far_larger():
    grid = grid_of(5)
    unit = float(grid.unit)

    def ridge(constants):
        mechanism = JohnsonLindenstrauss(sketch_rows=100, constants=constants)
        return mechanism.ridge(loss=LOSS, grid=grid) * unit

    assert ridge("2012") == pytest.approx(256 * 100 * math.log(2e6) * math.log(1.6e9) ** 2, rel=1e-6)
    assert ridge("2012") == pytest.approx(1.7e8, rel=0.03)
    log = math.log(4e6)
    assert ridge("2019") == pytest.approx(2 * (log + math.sqrt(200 * log)), rel=1e-6)
    assert ridge("2019") / ridge("tight") == pytest.approx(4, rel=0.02)
    assert find("johnson-lindenstrauss", loss=LOSS, as_published=True).options == {"constants": "2012"}


def test_a_published_ridge_that_breaks_its_promise_is_refused():
    """Sheffet's constant is for one row a person; 40 rows in 40 directions are beyond it."""
    grid = replace(grid_of(40), max_rows_per_person=40)
    mechanism = JohnsonLindenstrauss(constants="2019", sketch_rows=100)
    with pytest.raises(PrivcovError, match="E203"):
        mechanism.ridge(loss=REPLACE, grid=grid)


@pytest.mark.parametrize("value", [0, -3, 10**9, "many", 2.5])
def test_a_bad_number_of_rows_is_refused_before_the_data_is_read(value):
    with pytest.raises(PrivcovError, match="E209"):
        find("johnson-lindenstrauss", loss=LOSS, sketch_rows=value).draw(
            loss=LOSS, grid=grid_of(3), randomness=rehearsal(1)
        )


def test_wide_tables_need_idealized_arithmetic_to_be_asked_for():
    grid = grid_of(80)
    with pytest.raises(PrivcovError, match=r"E209.*idealized"):
        JohnsonLindenstrauss().draw(loss=LOSS, grid=grid, randomness=rehearsal(1))
    draw = JohnsonLindenstrauss(arithmetic="idealized", sketch_rows=5)
    assert len(draw.draw(loss=LOSS, grid=grid, randomness=rehearsal(1)).answer(Gram(grid))) == 80 * 81 // 2


def test_the_default_number_of_rows_is_a_public_fact():
    assert JohnsonLindenstrauss().rows(grid_of(3)) == 256
    assert JohnsonLindenstrauss().rows(grid_of(60)) == 960
    assert JohnsonLindenstrauss().rows(replace(grid_of(300), max_rows_per_person=100)) == 2**16 // 100
