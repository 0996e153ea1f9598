"""Forecasts against releases: what is predicted before spending is what is measured after.

Seeds are fixed, so a pass is repeatable; tolerances are those of the specification (5 % on an expectation, 10 %
on a 95 % value), which the number of runs resolves to about a third of that.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

import privcov as pc
from privcov.errors import ParameterError
from privcov.mechanisms import MECHANISMS
from privcov.mechanisms.predicted import simulated_differences
from privcov.noise.randomness import rehearsal
from privcov.planning.candidates import candidates
from privcov.planning.forecast import (
    NORMS,
    forecast,
    remembered,
    summarize,
    unit_norms,
    worst_spectra,
)
from privcov.planning.targets import Target
from privcov.schema.grid import Grid
from privcov_lab.bench.forecast import kept

SAMPLE = float(os.environ.get("PRIVCOV_SAMPLE", 1))
ROWS = 5000


def grid_of(d: int) -> Grid:
    return Grid(dimension=d, exponent=18, squared_norm_bound=2**36)


def losses(epsilon: str, neighbours: str = "replace-one"):
    return (
        pc.PureDP(epsilon=epsilon, neighbours=neighbours),
        pc.ApproxDP(epsilon=epsilon, delta="1e-6", neighbours=neighbours),
    )


def compare(one, grid, runs):
    predicted = forecast(one.mechanism, loss=one.loss, grid=grid, rows=ROWS)
    d = grid.dimension
    spectrum = np.geomspace(1, 0.01, d) / np.geomspace(1, 0.01, d).sum() * 0.7 * ROWS
    measured = summarize(
        simulated_differences(
            one.mechanism, loss=one.loss, grid=grid, spectrum=spectrum.tolist(), rows=ROWS, runs=runs, seed=3
        )
    )
    mean = {n: m / ROWS / predicted.errors[n].mean for n, m in zip(NORMS, measured[::2], strict=True)}
    high = {n: m / ROWS / predicted.errors[n].high for n, m in zip(NORMS, measured[1::2], strict=True)}
    return predicted, mean, high


@pytest.mark.parametrize(("d", "neighbours"), [(4, "add-remove"), (6, "replace-one")])
@pytest.mark.long
def test_a_law_predicts_every_norm_to_five_and_ten_percent(d, neighbours):
    grid, seen = grid_of(d), set()
    for loss in losses("1", neighbours):
        for one in candidates(loss=loss, grid=grid)[0]:
            if one.mechanism.law(loss=one.loss, grid=grid) is None or one.mechanism.name in seen:
                continue
            seen.add(one.mechanism.name)
            predicted, mean, high = compare(one, grid, 1500)
            assert predicted.basis == "law"
            assert kept("law", mean, high), (one.mechanism.name, mean, high)
    assert {"symmetric-wishart", "gaussian", "frobenius", "laplace"} <= seen


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["0.1", "1", "4"])
@pytest.mark.parametrize("d", [2, 6, 13, 50, 108])
def test_no_forecast_of_the_registry_breaks_its_word(d, epsilon):
    grid = grid_of(d)
    runs = max(int(SAMPLE * 30_000 / d), 20 if d > 20 else 300)
    for loss in losses(epsilon):
        for one in candidates(loss=loss, grid=grid)[0]:
            if loss.kind == "approximate" and one.loss.kind == "pure":
                continue
            lawful = one.mechanism.law(loss=one.loss, grid=grid) is not None
            count = runs if lawful else min(runs, 40)
            predicted, mean, high = compare(one, grid, count)
            # Four standard errors of a mean whose spread is at most its size; many points are looked at.
            slack = 0.0 if SAMPLE >= 1 and lawful else 4 / (count * (d if lawful else 1)) ** 0.5
            assert kept(predicted.basis, mean, high, slack=slack), (one.mechanism.name, mean, high)


@pytest.mark.parametrize("name", [n for n, kind in MECHANISMS.items() if n != "adaptive"])
@pytest.mark.long
def test_the_worst_case_is_not_below_what_three_quite_different_tables_show(name):
    grid = grid_of(5)
    for loss in losses("1"):
        if loss.kind not in MECHANISMS[name].kinds or MECHANISMS[name].needs_intercept:
            continue
        mechanism = MECHANISMS[name]()
        predicted = forecast(mechanism, loss=loss, grid=grid, rows=ROWS)
        for shape in ([1, 0, 0, 0, 0], [0.4, 0.3, 0.1, 0.05, 0.05], [0.01] * 5):
            spectrum = [ROWS * share for share in shape]
            errors = simulated_differences(
                mechanism, loss=loss, grid=grid, spectrum=spectrum, rows=ROWS, runs=60, seed=11
            )
            measured = np.sqrt((errors**2).sum(axis=(1, 2))) / ROWS
            # 60 runs know a mean to 4 % (two standard errors); a forecast that is 15 % low is caught.
            assert measured.mean() <= 1.08 * predicted.frobenius.mean, shape


def test_a_worst_case_that_is_taken_from_one_spectrum_only_would_be_caught():
    """The sketch errs most on one long direction; a forecast that forgot it must fail the test above."""
    grid, (_, loss) = grid_of(5), losses("1")
    sketch = MECHANISMS["johnson-lindenstrauss"]()
    honest = forecast(sketch, loss=loss, grid=grid, rows=ROWS).frobenius.mean
    flat = forecast(sketch, loss=loss, grid=grid, rows=ROWS, spectrum=[0.2] * 5)
    assert flat.basis == "surrogate"
    assert flat.frobenius.mean < 0.95 * honest
    assert flat.frobenius.high < 0.7 * forecast(sketch, loss=loss, grid=grid, rows=ROWS).frobenius.high


def test_the_spectra_have_the_largest_trace_the_grid_admits():
    grid = grid_of(7)
    for spectrum in worst_spectra(grid):
        assert spectrum.sum() == pytest.approx(float(grid.squared_norm_bound * grid.unit))
        assert (spectrum >= 0).all()


def test_unit_norms_do_not_depend_on_the_scale():
    (pure, _), grid = losses("1"), grid_of(4)
    law = MECHANISMS["symmetric-wishart"]().law(loss=pure, grid=grid)
    other = type(law)(dimension=4, scale=7 * law.scale)
    assert unit_norms(law) == unit_norms(other)


def test_summaries_are_the_norms_of_the_matrices():
    a = rehearsal(1).normals(500, 3, 3)
    stack = a + np.swapaxes(a, 1, 2)
    made = summarize(stack)
    assert made[0] == pytest.approx(np.mean([np.linalg.norm(m) for m in stack]))
    assert made[2] == pytest.approx(np.mean([np.linalg.norm(m, 2) for m in stack]))
    assert made[5] == pytest.approx(
        np.quantile([abs(m[i, j]) for m in stack for i, j in ((0, 1), (0, 2), (1, 2))], 0.95)
    )
    assert made[6] == pytest.approx(np.mean([abs(m[i, i]) for m in stack for i in range(3)]))


@pytest.mark.parametrize("rows", [0, 1, -5, True, 2.5, 10**16])
def test_a_number_of_rows_no_covariance_has_is_refused(rows, schema):
    with pytest.raises(ParameterError, match="E260"):
        pc.accuracy(schema=schema, rows=rows, loss=losses("1")[0])


def test_what_was_simulated_is_remembered_on_disk_and_a_damaged_file_is_made_again(tmp_path, monkeypatch):
    from privcov.planning import cache

    monkeypatch.setenv("PRIVCOV_CACHE", str(tmp_path / "kept"))
    monkeypatch.setattr(cache, "_MEMORY", {})
    made = []

    def make():
        made.append(1)
        return (1.5, 2.5)

    assert remembered("a key", make) == remembered("a key", make) == (1.5, 2.5)
    monkeypatch.setattr(cache, "_MEMORY", {})
    assert remembered("a key", make) == (1.5, 2.5)
    assert len(made) == 1
    for text in ("", "{", '{"key": "another", "numbers": [9]}', '{"numbers": [null]}'):
        for file in (tmp_path / "kept").iterdir():
            file.write_text(text)
        monkeypatch.setattr(cache, "_MEMORY", {})
        assert remembered("a key", make) == (1.5, 2.5)
    assert len(made) == 5


def test_a_cache_that_cannot_be_written_is_no_obstacle(monkeypatch):
    from privcov.planning import cache

    monkeypatch.setattr(cache, "_MEMORY", {})
    for place in ("off", "/dev/null/nowhere"):
        monkeypatch.setenv("PRIVCOV_CACHE", place)
        assert remembered(f"key for {place}", lambda: (1.0,)) == (1.0,)


OFF_CENTRE = {
    "age": {"mean": 20, "std": 15},
    "score": {"mean": 90, "std": 8},
    "height": {"mean": 60, "std": 20},
}
"""Columns on [0, 100]: near one bound, near the other, near the middle."""


def noisy_answers(law, *, rows, moments, public_count, draws=600):
    """Covariances and correlations of one table through fresh noise, in scaled units, less those without."""
    source, table = rehearsal(41), rows * moments.matrix

    def answers(matrix):
        mean = matrix[0, 1:] / matrix[0, 0]
        covariance = matrix[1:, 1:] / matrix[0, 0] - np.outer(mean, mean)
        spread = np.sqrt(np.diag(covariance))
        return np.stack([covariance, covariance / np.outer(spread, spread), np.tile(mean, (len(mean), 1))])

    made = []
    for _ in range(draws):
        noise = law.simulate(source)
        noise[0, 0] *= not public_count
        made.append(answers(table + noise))
    return np.array(made) - answers(table)


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("mechanism", ["symmetric-wishart", "laplace"])
def test_what_is_said_of_variances_covariances_and_correlations_holds_off_centre(mechanism, neighbours):
    """600 draws: a rate of 95 % is below 92.5 % in 1 of 400, and above 98 % in 1 of 3,000.

    Without the noise of the means variances hold in 80 to 87 % of draws here, and without that of a private count means
    in 80 to 83 %.
    """
    schema = pc.Schema.from_dict({"columns": {name: {"lower": 0, "upper": 100} for name in OFF_CENTRE}})
    moments = pc.planning.PublicMoments.guessed(
        schema, {"columns": OFF_CENTRE, "correlations": {"age, score": 0.5}}
    )
    loss = pc.PureDP(epsilon=1, neighbours=neighbours)
    made = pc.plan(schema=schema, rows=200_000, loss=loss, mechanisms=[mechanism], moments=moments).forecasts[
        0
    ]
    public = neighbours == "replace-one"
    missed = np.abs(noisy_answers(made.law, rows=200_000, moments=moments, public_count=public))
    names = list(OFF_CENTRE)
    held = {}
    for i, one in enumerate(names):
        said = Target.parse(f"mean({one})=1", schema).error(made, schema, moments) / 50
        held["mean", one] = (missed[:, 2, 0, i] <= said).mean()
        assert Target.parse(f"mean({one})=1", schema).error(made, schema, None) / 50 >= said
        for j, other in enumerate(names[: i + 1]):
            said = Target.parse(f"covariance({one}, {other})=1", schema).error(made, schema, moments) / 50**2
            held["covariance", one, other] = (missed[:, 0, i, j] <= said).mean()
            nobody = Target.parse(f"covariance({one}, {other})=1", schema).error(made, schema, None) / 50**2
            assert nobody >= said
            if i != j:
                said = Target.parse(f"correlation({one}, {other})=1", schema).error(made, schema, moments)
                held["correlation", one, other] = (missed[:, 1, i, j] <= said).mean()
    assert min(held.values()) >= 0.925, held
    assert max(held.values()) <= 0.98, held
    assert (missed[:, 0, 1, 1] <= made.entry_highs[2, 2]).mean() < 0.9  # the noise of the matrix alone


def test_a_correlation_of_columns_whose_variance_is_hardly_known_is_not_promised():
    schema = pc.Schema.from_dict({"columns": {name: {"lower": 0, "upper": 100} for name in "ab"}})
    known, drowned = (
        pc.planning.PublicMoments.guessed(
            schema, {"columns": {name: {"mean": 95, "std": std} for name in "ab"}}
        )
        for std in (20, 1)
    )
    made = pc.accuracy(schema=schema, rows=5_000, loss=pc.PureDP(epsilon=1, neighbours="replace-one"))
    target = Target.parse("correlation(a, b)=0.1", schema)
    assert target.error(made, schema, known) < 0.5
    assert target.error(made, schema, drowned) == np.inf


def test_a_correlation_is_of_two_columns():
    schema = pc.Schema.from_dict({"columns": {name: {"lower": 0, "upper": 100} for name in OFF_CENTRE}})
    with pytest.raises(ParameterError, match="E263"):
        Target.parse("correlation(age, age)=0.05", schema)
    with pytest.raises(ParameterError, match="E263"):
        Target.parse("correlation(age)=0.05", schema)
    assert Target.parse("correlation(age, score)=0.05", schema).name == "correlation(age, score)"
