"""What the estimators give: error in the units of the truth, and nothing an error could say about a person.

The comparisons of errors average fixed rehearsals; their margins are many times the spread between seeds.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest

import privcov as pc
from privcov.errors import InputError, ParameterError
from privcov.noise.randomness import rehearsal
from privcov.unbounded import covariance, estimate_mean, estimate_scale, mahalanobis_error

HALF = pc.ZCDP(rho="0.5", neighbours="replace-one")
D, N, SEEDS = 10, 3000, 10


@cache
def gaussian_table(seed, d=D, n=N, condition=1e4):
    """Rows of N(0, Σ) with a random basis and eigenvalues from 1 to the condition number; and Σ."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(d, d)))[0]
    values = np.logspace(0, math.log10(condition), d)
    return (rng.normal(size=(n, d)) * np.sqrt(values)) @ basis.T, (basis * values) @ basis.T


def estimate(seed, *, rows=None, **options):
    rows = gaussian_table(seed)[0] if rows is None else rows
    options = {"known_mean": np.zeros(rows.shape[1]), "largest_variance": 10_000, "loss": HALF} | options
    return pc.estimate_gaussian(rows, randomness=rehearsal(seed), **options)


@cache
def mean_error(**options):
    """The Mahalanobis error of ``estimate``, averaged over the rehearsals."""
    return np.mean(
        [
            mahalanobis_error(estimate(seed, **options).covariance, gaussian_table(seed)[1])
            for seed in range(SEEDS)
        ]
    )


def sampling_error():
    """The error of the non-private second moment, averaged over the same tables."""
    tables = [gaussian_table(seed) for seed in range(SEEDS)]
    return np.mean([mahalanobis_error(rows.T @ rows / N, truth) for rows, truth in tables])


def test_more_rounds_of_coinpress_do_no_harm():
    three, five = mean_error(rounds=3), mean_error(rounds=5)
    assert five <= three
    assert five <= 1.3 * sampling_error()
    assert three <= 10 * sampling_error()


def test_the_methods_rank_as_the_theory_says():
    """One round pays for the condition number; the lecture's constants need many more rows than these."""
    coinpress = mean_error(rounds=5)
    assert coinpress < mean_error(rounds=1) / 100
    assert coinpress < mean_error(method="truncated") / 100
    assert coinpress < mean_error(method="preconditioned") / 100


def test_the_public_code_s_order_of_products_is_found():
    """Canary: w = Aᵀx and A⁻¹ZA⁻¹, which is right only while all preconditioners commute."""
    with pytest.MonkeyPatch.context() as patch:
        right = covariance.noisy_second_moment
        patch.setattr(covariance, "noisy_second_moment", lambda rows, a, *rest: right(rows, a.T, *rest))
        patch.setattr(
            covariance.Preconditioner,
            "undone",
            lambda self, moment: covariance.symmetric(self.inverse @ moment @ self.inverse),
        )
        errors = [
            mahalanobis_error(estimate(seed, rounds=5).covariance, gaussian_table(seed)[1])
            for seed in range(SEEDS)
        ]
    assert np.mean(errors) > 4 * mean_error(rounds=5)
    assert np.mean(errors) > 0.8


def test_the_public_code_s_projection_is_found():
    """Canary: |Z| in place of the projection, in one dimension more than the noise can fill."""
    rows = np.zeros((100, 3))
    with pytest.MonkeyPatch.context() as patch:

        def absolute(matrix, _ball):
            values, vectors = np.linalg.eigh(matrix)
            return (vectors * np.abs(values)) @ vectors.T

        patch.setattr(covariance, "projected", absolute)
        flawed = [np.trace(estimate(seed, rows=rows, rounds=1).covariance) for seed in range(20)]
    sound = [np.trace(estimate(seed, rows=rows, rounds=1).covariance) for seed in range(20)]
    assert np.mean(flawed) > 1.5 * np.mean(sound)


@pytest.mark.parametrize("method", ["coinpress", "truncated", "preconditioned"])
@pytest.mark.parametrize("n", [2, 40, 3000])
def test_every_estimate_is_symmetric_and_positive_semidefinite(method, n):
    made = estimate(1, rows=gaussian_table(1)[0][:n], method=method, known_mean=None).covariance
    assert (made == made.T).all()
    values = np.linalg.eigvalsh(made)
    assert values[0] >= -1e-9 * values[-1]


def test_the_lecture_beats_one_round_where_its_theorem_applies():
    """d = 2, n = 30 000, κ = 10⁶: the noise of one round is far above the smallest variance."""
    rows, truth = gaussian_table(3, 2, 30_000, 1e6)
    made = {
        method: mahalanobis_error(
            estimate(3, rows=rows, method=method, largest_variance=10**6).covariance, truth
        )
        for method in covariance.METHODS
    }
    assert made["preconditioned"] < 0.1
    assert made["coinpress"] < 0.1
    assert made["truncated"] > 10


def test_differences_of_rows_do_not_see_the_mean():
    rows, truth = gaussian_table(2)
    there = estimate(2, rows=rows + 1e5, known_mean=None, rounds=6).covariance
    here = estimate(2, rows=rows, known_mean=None, rounds=6).covariance
    assert mahalanobis_error(there, here) < 1e-4
    assert mahalanobis_error(there, truth) < 0.6


def test_the_mean_is_found_from_far_away():
    """From a ball of 5 000 standard deviations to near the sampling error, on ten tables."""
    errors, sampling = [], []
    for seed in range(SEEDS):
        rows, truth = gaussian_table(seed)
        mean = np.linspace(-3000, 4000, D)
        made = estimate(seed, rows=rows + mean, known_mean=None, mean_radius=50_000).mean
        root = np.linalg.inv(np.linalg.cholesky(truth))
        errors.append(np.linalg.norm(root @ (made - mean)))
        sampling.append(np.linalg.norm(root @ rows.mean(axis=0)))
    assert np.mean(errors) < 2 * np.mean(sampling)


def test_a_variance_bound_that_is_too_small_gives_a_poor_estimate_and_no_error():
    for method in ("coinpress", "truncated", "preconditioned"):
        made = estimate(1, method=method, largest_variance=1, rounds=3)
        assert np.isfinite(made.covariance).all()
        assert mahalanobis_error(made.covariance, gaussian_table(1)[1]) > 0.5


def test_extreme_public_numbers_give_finite_estimates():
    tiny = pc.ZCDP(rho="1e-60", neighbours="replace-one")
    for rows in (np.full((2, 2), 1e308), np.full((3, 2), 1e-320), np.zeros((2, 2))):
        for bound in ("1e-120", "1e120"):
            for loss in (tiny, HALF):
                made = pc.estimate_gaussian(
                    rows,
                    loss=loss,
                    largest_variance=bound,
                    mean_radius="1e120",
                    rounds=30,
                    randomness=rehearsal(1),
                )
                assert np.isfinite(made.covariance).all()
                assert np.isfinite(made.mean).all()


def test_a_row_that_is_incomplete_counts_as_the_zero_row():
    rows = gaussian_table(4)[0].copy()
    rows[5] = 0.0
    wanted = estimate(4, rows=rows).covariance
    for bad in (np.nan, np.inf, -np.inf):
        rows[5] = (bad, *np.ones(D - 1))
        assert (estimate(4, rows=rows).covariance == wanted).all()
    assert estimate(4, rows=rows).certificate.rows == N


def test_every_kind_of_table_gives_the_same_estimate(tmp_path):
    rows = np.round(gaussian_table(6)[0][:200, :3], 3)
    names = ["a", "b", "c"]
    frame = pd.DataFrame(rows, columns=names)
    frame.assign(other="text").to_csv(tmp_path / "rows.csv", index=False)
    frame.to_parquet(tmp_path / "rows.parquet")
    tables = [frame, pl.DataFrame(rows, schema=names), tmp_path / "rows.csv", tmp_path / "rows.parquet"]
    wanted = estimate(6, rows=rows)
    for table in tables:
        made = pc.estimate_gaussian(
            table,
            columns=names,
            loss=HALF,
            largest_variance=10_000,
            known_mean=np.zeros(3),
            randomness=rehearsal(6),
        )
        assert (made.covariance == wanted.covariance).all()
        assert made.columns == ("a", "b", "c")
    assert wanted.columns == ("x1", "x2", "x3")


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"rounds": 0}, "E242"),
        ({"rounds": 2.0}, "E242"),
        ({"rounds": True}, "E242"),
        ({"largest_variance": 0}, "E240"),
        ({"largest_variance": -3}, "E240"),
        ({"largest_variance": math.nan}, "E240"),
        ({"largest_variance": math.inf}, "E240"),
        ({"largest_variance": None}, "E240"),
        ({"mean_radius": 0, "known_mean": None}, "E240"),
        ({"mean_radius": 1}, "E249"),
        ({"tail": 0}, "E241"),
        ({"tail": 1}, "E241"),
        ({"tail": math.nan}, "E241"),
        ({"loss": pc.PureDP(epsilon=1, neighbours="replace-one")}, "E244"),
        ({"loss": pc.ApproxDP(epsilon=1, delta=1e-6, neighbours="replace-one")}, "E244"),
        ({"loss": None}, "E244"),
        ({"loss": pc.ZCDP(rho=1, neighbours="add-remove")}, "E243"),
        ({"loss": pc.ZCDP(rho=Fraction(1, 10**200), neighbours="replace-one")}, "E201"),
        ({"method": "magic"}, "E248"),
        ({"method": "preconditioned", "smallest_variance": 20_000}, "E248"),
        ({"method": "preconditioned", "smallest_variance": "1e-20"}, "E248"),
        ({"known_mean": [0, 0]}, "E247"),
        ({"known_mean": [math.nan, 0, 0]}, "E247"),
    ],
)
def test_a_bad_parameter_is_refused_before_a_value_is_read(given, code):
    with pytest.raises(ParameterError, match=code):
        estimate(1, rows=np.full((5, 3), np.nan), **given)


@pytest.mark.parametrize(
    ("rows", "options", "code"),
    [
        (np.zeros((5, 0)), {"known_mean": []}, "E111"),
        (np.zeros((0, 2)), {"known_mean": [0, 0]}, "E108"),
        (np.zeros((1, 2)), {"known_mean": None}, "E108"),
        (np.zeros(5), {"known_mean": [0]}, "E111"),
        (np.array([["a"], ["b"]]), {"known_mean": [0]}, "E110"),
        (np.zeros((5, 2)), {"columns": ["a"], "known_mean": [0]}, "E102"),
        (np.zeros((5, 2)), {"columns": "ab", "known_mean": [0, 0]}, "E124"),
        (np.zeros((5, 2)), {"columns": []}, "E122"),
    ],
)
def test_a_table_of_the_wrong_shape_is_refused(rows, options, code):
    with pytest.raises(InputError, match=code):
        pc.estimate_gaussian(rows, loss=HALF, largest_variance=1, **options)


def test_a_frame_must_say_which_columns():
    with pytest.raises(InputError, match="E124"):
        pc.estimate_gaussian(pd.DataFrame({"a": [1.0, 2.0]}), loss=HALF, largest_variance=1)


PURE = pc.PureDP(epsilon=1, neighbours="replace-one")
APPROX = pc.ApproxDP(epsilon=1, delta="1e-6", neighbours="replace-one")


@pytest.mark.parametrize("loss", [PURE, APPROX])
@pytest.mark.parametrize("mean", [0.0, 12_345.6, -1e5])
def test_the_mean_of_one_column_is_found_wherever_it_is(loss, mean):
    """At n = 4 000 and ε = 1 the noise is some 0.006 standard deviations, sampling 0.016: 0.15 is ample."""
    reach = {"largest_mean": 1.1e5} if loss is PURE else {}
    rng = np.random.default_rng(1)
    for seed in range(2):
        made = estimate_mean(
            mean + 5 * rng.normal(size=4000), std=5, loss=loss, randomness=rehearsal(seed), **reach
        )
        assert abs(made.value - mean) < 0.15 * 5
        assert made.randomness == "rehearsal"


@pytest.mark.parametrize("loss", [PURE, APPROX])
@pytest.mark.parametrize("std", [1e-12, 1.0, 3e9])
@pytest.mark.parametrize("known", [True, False])
def test_the_scale_of_one_column_is_found_whatever_it_is(loss, std, known):
    """The noise on the mean square is some 3 % of it at n = 20 000 and ε = 1; 15 % on the root is ample."""
    reach = {"smallest_std": 1e-20, "largest_std": 1e20} if loss is PURE else {}
    rows = std * np.random.default_rng(2).normal(size=20_000)
    rows = rows if known else rows + 7 * std
    made = estimate_scale(rows, loss=loss, known_mean=0 if known else None, randomness=rehearsal(3), **reach)
    assert made.value == pytest.approx(std, rel=0.15)


def test_one_column_of_too_few_people_gives_nothing_and_no_error():
    for rows in (np.array([1e308, -1e308, np.nan]), np.zeros(4), np.array([np.inf, 1.0])):
        assert math.isnan(estimate_mean(rows, std=1e-9, loss=APPROX, randomness=rehearsal(1)).value)
        assert math.isnan(estimate_scale(rows, loss=APPROX, randomness=rehearsal(1)).value)


def test_extreme_values_of_one_column_raise_nothing():
    for rows in (np.full(500, 1.7e308), np.full(500, 5e-324)):
        assert not math.isnan(estimate_scale(rows, loss=APPROX, known_mean=0).value)
        estimate_mean(rows, std=1, loss=APPROX)


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda: estimate_mean(np.ones(9), std=1, loss=HALF), "E244"),
        (lambda: estimate_mean(np.ones(9), std=0, loss=APPROX), "E240"),
        (lambda: estimate_mean(np.ones(9), std=1, loss=PURE), "E246"),
        (lambda: estimate_mean(np.ones(9), std=1, loss=PURE, largest_mean=1e9), "E245"),
        (lambda: estimate_mean(np.ones(9), std=1, loss=APPROX, tail=1), "E241"),
        (lambda: estimate_scale(np.ones(9), loss=PURE, smallest_std=1), "E246"),
        (lambda: estimate_scale(np.ones(9), loss=PURE, smallest_std=2, largest_std=1), "E246"),
        (lambda: estimate_scale(np.ones(9), loss=APPROX, known_mean=math.nan), "E247"),
        (
            lambda: estimate_scale(
                np.ones(9), loss=pc.PureDP(epsilon=1, neighbours="add-remove"), smallest_std=1, largest_std=2
            ),
            "E243",
        ),
    ],
)
def test_one_column_refuses_bad_parameters(call, code):
    with pytest.raises(ParameterError, match=code):
        call()


def test_a_missing_value_of_one_column_counts_as_none_whatever_marks_it():
    rows = 5 + np.random.default_rng(4).normal(size=900)
    masked = np.ma.array(rows, mask=np.arange(900) % 9 == 0)
    for read in (
        lambda given: estimate_mean(given, std=1, loss=APPROX, randomness=rehearsal(1)),
        lambda given: estimate_scale(given, loss=APPROX, known_mean=5, randomness=rehearsal(1)),
    ):
        wanted = read(np.where(masked.mask, np.nan, rows)).value
        assert read(masked).value == wanted == read(np.where(masked.mask, np.inf, rows)).value


@pytest.mark.parametrize(
    ("rows", "code"), [(np.ones((2, 2)), "E111"), (np.ones(0), "E108"), ([1.0, None], "E111")]
)
def test_one_column_refuses_other_shapes(rows, code):
    with pytest.raises(InputError, match=code):
        estimate_mean(rows, std=1, loss=APPROX)
    with pytest.raises(InputError, match=code):
        estimate_scale(rows, loss=APPROX)


def test_with_next_to_no_noise_one_round_is_the_clipped_second_moment():
    """A slow reference, row by row, with a variance bound that clips a good part of the rows."""
    rows = gaussian_table(7, 3, 200, 100)[0]
    silent = pc.ZCDP(rho="1e20", neighbours="replace-one")
    made = estimate(7, rows=rows, loss=silent, method="truncated", largest_variance=2, tail="0.5")
    log = math.log(200 / 0.5)
    radius = math.sqrt(2 * (3 + 2 * math.sqrt(3 * log) + 2 * log))
    wanted, clipped = np.zeros((3, 3)), 0
    for row in rows:
        norm = math.hypot(*row)
        clipped += norm > radius
        short = row * min(1.0, radius / norm)
        wanted += np.outer(short, short) / 200
    assert 20 < clipped < 180
    assert np.abs(made.covariance - wanted).max() < 1e-4 * np.abs(wanted).max()


def test_with_next_to_no_noise_many_rounds_find_the_second_moment():
    rows = gaussian_table(8, 4, 2000, 1e6)[0]
    silent = pc.ZCDP(rho="1e20", neighbours="replace-one")
    for method in covariance.METHODS:
        made = estimate(8, rows=rows, loss=silent, method=method, largest_variance=10**6, tail="1e-6")
        assert mahalanobis_error(made.covariance, rows.T @ rows / 2000) < 0.02, method
