"""The 2014 report again: its release and regression are its own, the ε of its σ is exact, and verdicts are computed.

Nothing here is statistical: every test compares two ways to the same number, or reads a smoke run.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from privcov.accounting import gaussian_delta
from privcov.models.ols import ols
from privcov.models.sweep import sweep
from privcov.noise.randomness import rehearsal
from privcov_lab.reproduce import running, study
from privcov_lab.reproduce.datasets import Datasets
from privcov_lab.reproduce.papers.bain2014 import privacy as cell_of_privacy
from privcov_lab.reproduce.papers.bain2014.ours import Ours, centred, in_units_of
from privcov_lab.reproduce.papers.bain2014.privacy import delivered, distance, needed, real_epsilon
from privcov_lab.reproduce.papers.bain2014.published import (
    DELTA,
    EPSILON,
    Scaled,
    draws,
    law,
    multiplier,
    regression,
)
from privcov_lab.reproduce.papers.bain2014.pums import REPORT_ROWS, people
from privcov_lab.reproduce.study import Effort, Results

STUDY = study("bain2014")


@pytest.fixture(scope="module")
def columns():
    rng = np.random.default_rng(3)
    x = rng.normal([50.0, -4.0, 900.0], [9.0, 2.0, 40.0], size=(400, 3))
    return np.column_stack([x, x @ [2.0, -1.0, 0.3] + rng.normal(0, 5, 400)])


@pytest.fixture(scope="module")
def table(columns):
    return Scaled.of(columns)


def test_offsets_times_the_rows_carry_moments_to_original_units(columns, table):
    original = np.column_stack([np.ones(len(columns)), columns])
    assert table.upscaled(table.moments, offsets=table.rows) == pytest.approx(original.T @ original)
    assert table.units @ table.moments @ table.units.T == pytest.approx(original.T @ original)


def test_offsets_as_printed_do_not(columns, table):
    original = np.column_stack([np.ones(len(columns)), columns])
    assert np.abs(table.upscaled(table.moments, offsets=1.0) / (original.T @ original) - 1).max() > 0.5


def test_a_release_told_in_scaled_units_is_the_upscaled_one(table):
    """Two ways: the report's formula on noisy sums, and the noise carried to scaled units."""
    noise = law("printed", attributes=4).simulate(rehearsal(1))
    upscaled = table.upscaled(table.moments + noise, offsets=table.rows)
    told = table.released(noise, repair=False)
    assert table.units @ told @ table.units.T == pytest.approx(upscaled, rel=1e-9)


def test_a_repaired_release_has_no_negative_eigenvalue_and_a_valid_one_is_left(table):
    noise = law("classical", attributes=4).simulate(rehearsal(2))
    assert np.linalg.eigvalsh(table.released(noise, repair=False))[0] < 0
    assert np.linalg.eigvalsh(table.released(noise, repair=True))[0] > 0
    small = noise * 1e-6
    assert (table.released(small, repair=True) == table.released(small, repair=False)).all()


def test_algorithm_2_is_least_squares_with_its_standard_errors(columns, table):
    made = regression(table, table.moments)
    design = np.column_stack([np.ones(len(columns)), columns[:, :-1]])
    beta, residual = np.linalg.lstsq(design, columns[:, -1], rcond=None)[:2]
    s2 = residual[0] / (len(columns) - 4)
    assert made.coefficients == pytest.approx(beta, rel=1e-8)
    assert made.residual_variance == pytest.approx(s2)
    assert made.errors == pytest.approx(np.sqrt(s2 * np.diag(np.linalg.inv(design.T @ design))), rel=1e-6)


def test_algorithm_2_is_the_library_sweep_on_a_noisy_matrix_too(table):
    matrix = table.released(law("printed", attributes=4).simulate(rehearsal(5)), repair=False)
    swept, (slope, shift) = sweep(matrix, ["(int)", "a", "b", "c"]), table.back
    made = regression(table, matrix)
    assert made.coefficients == pytest.approx(slope @ swept.coefficients + shift)
    assert made.residual_variance == pytest.approx(swept.residual / made.freedom * table.ranges[-1] ** 2)


def test_a_stack_of_matrices_is_regressed_one_at_a_time(table):
    stack = table.released(draws(law("printed", attributes=4), rehearsal(6), 3), repair=True)
    together = regression(table, stack)
    for i, one in enumerate(stack):
        assert together.coefficients[i] == pytest.approx(regression(table, one).coefficients)
        assert together.errors[i] == pytest.approx(regression(table, one).errors, nan_ok=True)


def test_a_part_of_the_regressors_is_the_table_of_those(columns, table):
    other = Scaled.of(columns[:, [0, 1, 3]])
    assert table.only(2).moments == pytest.approx(other.moments)
    assert regression(table.only(2), table.only(2).moments).coefficients == pytest.approx(
        regression(other, other.moments).coefficients
    )


def test_the_printed_sigma_delivers_0_617_where_0_01_is_stated():
    assert real_epsilon(mu=1 / multiplier("printed")) == pytest.approx(0.6166, abs=1e-4)


@pytest.mark.parametrize("mu", [0.002, 0.18, 1.0, 6.0])
def test_a_real_epsilon_is_the_least_that_the_profile_allows(mu):
    epsilon = real_epsilon(mu=mu)
    assert gaussian_delta(mu=Fraction(mu), epsilon=Fraction(epsilon)) <= Fraction(DELTA)
    assert gaussian_delta(mu=Fraction(mu), epsilon=Fraction(epsilon * (1 - 1e-4))) > Fraction(DELTA)


@pytest.mark.parametrize("attributes", [1, 3, 5])
def test_no_person_moves_the_noisy_entries_further_than_the_one_at_every_maximum(attributes):
    rng, worst = np.random.default_rng(4), distance(attributes)
    upper = np.triu_indices(attributes + 1)
    for _ in range(300):
        person = np.append(1.0, rng.random(attributes).round(int(rng.integers(0, 3))))
        assert np.linalg.norm(np.outer(person, person)[upper]) <= worst
    assert worst > np.sqrt(attributes), "the report's √d is too small"


def test_the_needed_noise_is_the_least_that_keeps_the_promise():
    for attributes in (3, 10):
        ratio = distance(attributes) / needed(attributes=attributes).scale
        assert real_epsilon(mu=ratio) == pytest.approx(EPSILON, rel=1e-4)
    assert delivered("classical", 10) > EPSILON


def test_our_release_without_noise_to_speak_of_has_the_same_coefficients(table):
    ours = Ours.unit(4, epsilon=10_000)
    fit = ols(ours.release(table, rehearsal(1)), "y ~ x1 + x2 + x3")
    found = in_units_of(table, np.array(list(fit.params.values())))
    truth = regression(table, table.moments).coefficients
    assert found[1:] == pytest.approx(truth[1:], rel=0.02)
    assert found[0] == pytest.approx(truth[0], abs=2)  # an extrapolation over 50 standard deviations


def test_moments_in_our_units_are_those_of_columns_between_minus_one_and_one(columns, table):
    middle, half = (columns.max(0) + columns.min(0)) / 2, (columns.max(0) - columns.min(0)) / 2
    z = np.column_stack([np.ones(len(columns)), (columns - middle) / half])
    assert centred(table.moments) == pytest.approx(z.T @ z)


def test_the_bootstrap_has_the_size_of_the_report_and_is_the_same_each_time(papers_data):
    data = Datasets(papers_data, online=False)
    first, second = (people(data, rows=REPORT_ROWS) for _ in range(2))
    assert first.rows == REPORT_ROWS
    assert (first.moments == second.moments).all()
    extract = people(data, rows=None)
    assert first.moments / first.rows == pytest.approx(extract.moments / extract.rows, abs=0.002)


def test_least_squares_on_the_extract_is_what_the_data_notes_say(papers_data):
    table = people(Datasets(papers_data, online=False), rows=None)
    made = regression(table, table.moments)
    assert made.coefficients == pytest.approx([-21803.283, 257.332, 4268.620], abs=1e-3)
    assert made.errors == pytest.approx([1714.507, 24.670, 128.216], abs=1e-3)


@pytest.fixture
def measured(papers_data, tmp_path):
    data = Datasets(papers_data, online=False)
    return running.run(STUDY, data=data, directory=tmp_path, effort=Effort(quick=True), workers=1)


def test_a_smoke_run_gives_every_figure_table_and_claim_of_the_report(measured):
    found = STUDY.find(measured)
    words = " ".join([*(f.caption for f in found.figures), *(t.caption for t in found.tables)])
    for number in (1, 2, 3, 4, 6, 8, 11, 13, 14, 18):
        assert f"Figure {number}" in words or f"Figures {number}" in words
    assert all(f"Table {number}" in words for number in range(1, 5))
    assert len(found.claims) == 17
    for table in found.tables:
        assert {len(row) for row in table.rows} == {len(table.headings)}, table.name

    by_place = {claim.where: claim.verdict for claim in found.claims}
    assert by_place["Theorem 1"] == "refuted"
    assert by_place["Figures 2 and 3"] == "refuted"
    assert by_place["Table 4"] == "agrees in part"
    assert by_place["Table 3, standard errors"] == "not reproduced"

    better = Results(tuple(_with_a_good_theorem(line) for line in measured.lines))
    changed = {claim.where: claim.verdict for claim in STUDY.find(better).claims}
    assert changed["Theorem 1"] == "agrees", "a verdict is read off the measurements"
    assert changed["Table 3, standard errors"] == "agrees"


def _with_a_good_theorem(line):
    """The same cell if the report's σ had kept its promise and its intervals their level."""
    if line["function"] == "privacy":
        return {**line, "lines": [{**one, "epsilon": 0.009} for one in line["lines"]]}
    if line["function"] == "published_model":
        return {**line, "held": [0.95, 0.95, 0.95]}
    return line


def test_the_privacy_cell_needs_no_data():
    lines = cell_of_privacy(None, rehearsal(1))["lines"]
    assert {(one["formula"], one["attributes"]) for one in lines} >= {("printed", None), ("printed", 3)}


def test_full_cells_are_the_report_in_full():
    cells = list(STUDY.cells(Effort()))
    assert sum(c.arguments["runs"] for c in cells if c.function == "simulated") == 1000
    assert {c.arguments["runs"] for c in cells if c.function == "published_model"} == {1000}
    assert len({c.key(replace(STUDY)) for c in cells}) == len(cells)
