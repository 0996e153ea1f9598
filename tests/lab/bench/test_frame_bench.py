"""``privcov bench frame``: what it measures, against tables whose truth is written down here."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from privcov.accounting import gaussian_mu
from privcov.cli import main
from privcov.noise.randomness import rehearsal
from privcov.privacy import ApproxDP, PureDP
from privcov.releases.rounds import Norms
from privcov.schema import Categorical, Numeric, Schema
from privcov_lab.bench import frame
from privcov_lab.bench.bounds import DESIGNS, RECIPES, Case, cases
from privcov_lab.bench.frame import _Place
from privcov_lab.bench.frame_words import KINDS, render

EXACT = PureDP(epsilon=1_000_000, neighbours="replace-one")
LOSS = ApproxDP(epsilon=1, delta="1e-6", neighbours="replace-one")


def people(rows: int = 4000) -> Case:
    """Two related numbers, in a corner of their bounds, and a column of three levels that follows the first."""
    normal = rehearsal(3).normals(rows, 2)
    height = 170 + 10 * normal[:, 0]
    weight = 70 + 8 * normal[:, 0] + 6 * normal[:, 1]
    level = np.clip(np.round(normal[:, 0]) + 1, 0, 2)
    numbers = (
        Numeric(name="height", lower=0, upper=1000),
        Numeric(name="weight", lower=0, upper=1000),
    )
    schema = Schema(columns=(*numbers, Categorical(name="size", levels=(0, 1, 2))))
    return Case(name="people", rows=np.column_stack([height, weight, level]), schema=schema)


@pytest.fixture(scope="module")
def place() -> _Place:
    return _Place(people())


def test_a_release_without_noise_has_no_error_of_any_kind(place):
    errors = place.errors(place._release(EXACT, 0))
    assert set(errors) == {*KINDS}
    assert max(errors.values()) < 1e-3


def test_each_error_is_the_distance_from_the_truth(place, monkeypatch):
    made = place._release(EXACT, 0)
    wrong = place.correlation.copy()
    wrong[:2, :2] = np.array([[1.0, 0.0], [0.0, 1.0]])
    kind = type(made)
    monkeypatch.setattr(kind, "correlation", lambda _, repair="auto": wrong / (1 + (repair == "none")))
    monkeypatch.setattr(kind, "covariance", lambda _: 3 * place.correlation * np.outer(place.std, place.std))
    monkeypatch.setattr(kind, "mean", lambda _: place.mean + 0.5 * place.std)
    errors = place.errors(made)
    assert errors["correlations"] == pytest.approx(place.correlation[0, 1])
    assert errors["unrepaired correlations"] == errors["correlations"]  # a half of zero is zero
    assert errors["all correlations"] == pytest.approx(place.correlation[0, 1] / math.sqrt(10))
    assert errors["covariance"] == pytest.approx(2 * math.sqrt(np.mean(place.correlation[:2, :2] ** 2)))
    assert errors["means"] == pytest.approx(0.5)
    assert errors["regressions"] == pytest.approx(0, abs=1e-9)  # a factor does not change coefficients


def test_a_regression_that_ignores_the_others_loses_what_they_explain(place):
    assert place.regressors.tolist() == [True, True, False, True, True]  # the first level is left out
    explained = place._excess(np.eye(5))
    ols = np.linalg.lstsq(
        np.column_stack([np.ones(4000), place.case.expanded[:, [1, 3, 4]]]), place.case.rows[:, 0], rcond=None
    )
    share = 1 - ols[1][0] / 3999 / place.std[0] ** 2
    assert explained[0] == pytest.approx(share, abs=1e-6)


@pytest.mark.long
def test_the_point_has_every_way_and_auto_shares_the_runs_of_the_way_it_takes(place):
    """Over 200 seeds the error of correlations is 0.50 as declared and 0.023 framed. The last line fails by chance in 7
    of 10,000 triples of them (resampled), and the seed is fixed; it detects a frame that is not asked for."""
    found = place.point(LOSS, 3)
    errors = found["errors"]
    assert list(errors) == [*frame.WAYS, "hindsight", "floor"]
    assert errors["auto"] is errors["shape"]
    assert errors["scales"] != errors["shape"]
    assert errors["auto"] != errors["declared"]
    assert found["radius"]["auto"] > 0.25
    assert found["zero"] == pytest.approx(abs(place.correlation[0, 1]))
    assert found["radius"]["floor"] in frame.HINDSIGHT
    for kind in errors["hindsight"]:
        assert errors["hindsight"][kind]["error"] <= min(errors[way][kind]["error"] for way in frame.WAYS)
    assert errors["auto"]["correlations"]["error"] < errors["declared"]["correlations"]["error"]


def test_hindsight_pays_for_the_rounds_and_takes_the_radius_that_it_is_told(place):
    taken = [place._fitted("scales", LOSS, radius, 1)["covariance"] for radius in (0.5, 2.5)]
    assert taken[0] > 2 * taken[1]  # rows shortened to half of their length have a quarter of the variance
    chosen = Norms.of(place._release(LOSS, 1, frame="scales")).radius
    alike = place.errors(place._release(LOSS, 1, frame="scales"))
    assert place._fitted("scales", LOSS, chosen, 1) == alike


def test_the_floor_is_given_the_truth_and_the_norm_of_a_framed_release(place):
    framed, declared = place._framed(2.0), place.case.schema
    numbers = framed.columns[:2]
    assert [column.centre for column in numbers] == pytest.approx(place.mean[:2])
    # W = 4 over two columns: a root mean square column of radius 2 has the squared norm 2·2 where its scale is √2 σ.
    assert [column.scale for column in numbers] == pytest.approx(math.sqrt(2) * place.std[:2])
    assert float(framed.squared_norm_bound) == pytest.approx(declared.fixed_squared_norm + 4)
    assert [(c.lower, c.upper) for c in numbers] == [(0, 1000), (0, 1000)]


def test_the_dedicated_mean_is_noise_on_the_sums_of_the_numbers(place):
    halves = math.sqrt(np.mean((500 / place.std[:2]) ** 2)) / 4000
    pure = PureDP(epsilon="0.2", neighbours="replace-one")
    assert place._dedicated(pure) == pytest.approx(math.sqrt(2) * 4 / 0.2 * halves)
    many = ApproxDP(epsilon=1, delta="0.1", neighbours="replace-one")
    gaussian = 2 * math.sqrt(2) / float(gaussian_mu(epsilon=1, delta="0.1"))
    assert place._dedicated(many) == pytest.approx(gaussian * halves)


def test_wide_bounds_are_wide_and_the_table_is_the_same(place):
    assert place.case.widened(1) is place.case.schema
    wide = place.case.widened(10).columns
    assert [(c.lower, c.upper) for c in wide[:2]] == [(-4500, 5500)] * 2
    assert wide[2] == place.case.schema.columns[2]


def test_the_tables_are_those_of_the_files_within_the_bounds_written_here(papers_data):
    found, skipped = cases(papers_data, ["wine", "airfoil", "pums", "adult"])
    assert skipped == []
    assert [(case.name, case.rows.shape) for case in found] == [
        ("wine", (178, 13)),
        ("airfoil", (1503, 6)),
        ("pums", (10_000, 8)),
        ("adult", (48_842, 14)),
    ]
    for case in found:
        for column, cells in zip(case.schema.columns, case.rows.T, strict=True):
            if isinstance(column, Numeric):
                assert column.lower <= cells.min()
                assert cells.max() <= column.upper
            else:  # every level is there
                assert np.array_equal(np.unique(cells), np.arange(len(column.levels)))
    assert found[-1].expanded.shape == (48_842, 108)


def test_a_table_that_is_not_there_is_skipped_with_a_line(tmp_path, capsys):
    assert main(["bench", "frame", "--data", str(tmp_path), "--quick", "--part", "points"]) == 0
    out = capsys.readouterr().out
    assert "skipped wine: there is no wine.csv in" in out
    assert "skipped airfoil" in out


def test_a_table_nobody_knows_is_refused(tmp_path, capsys):
    assert main(["bench", "frame", "--data", str(tmp_path), "--table", "iris"]) == 2
    assert ", ".join(RECIPES) in " ".join(capsys.readouterr().err.split())


def test_the_command_measures_a_table_and_prints_json(papers_data, capsys, monkeypatch):
    true_run = frame.run
    monkeypatch.setattr(frame, "run", lambda *a, **words: true_run(*a, **{**words, "epsilons": ("4",)}))
    words = ["bench", "frame", "--data", str(papers_data), "--table", "airfoil", "--runs", "1", "--part"]
    assert main([*words, "means", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert [(line["table"], line["rows"], line["promise"]) for line in result["means"]] == [
        ("airfoil", 1503, "pure"),
        ("airfoil", 1503, "approximate"),
    ]
    assert "points" not in result
    assert "target means of auto" in render(result)


def test_the_cost_counts_the_reads_of_the_file():
    found = frame._cost(20_000, columns=3)
    reads = found["reads"]
    assert reads["declared"] == 1 < reads["framed"] < reads["framed ×100"]
    assert min(found["cpu_seconds"].values()) > 0


def _errors(error: float) -> dict[str, dict[str, float]]:
    told = {"error": error, "std_error": 0.0}
    return {"correlations": told, "unrepaired correlations": told}


@pytest.mark.parametrize(
    ("auto", "rows", "words"),
    [
        (0.1, 2000, "geometric mean ≥ 5: reached, 6.00 ± 0.00"),
        (0.15, 2000, "geometric mean ≥ 5: missed, 4.00 ± 0.00"),
        (0.1, 2000, "auto / hindsight, geometric mean ≤ 1.15: reached, 1.00"),
        (0.12, 2000, "auto / hindsight, geometric mean ≤ 1.15: missed, 1.20"),
        (0.12, 2000, "anywhere ≤ 1.6: reached, 1.20 ± 0.00 (made up, ε = 1, δ = 1e-6)"),
        (0.17, 2000, "anywhere ≤ 1.6: missed, 1.70"),
        (0.65, 1000, "auto / declared anywhere ≤ 1.1: reached, 1.08"),
        (0.7, 1000, "auto / declared anywhere ≤ 1.1: missed, 1.17"),
    ],
)
def test_every_target_says_reached_or_missed(auto, rows, words):
    errors = {
        "declared": 0.6,
        "private norm": 0.6,
        "scales": auto,
        "auto": auto,
        "hindsight": 0.1,
        "floor": 0.1,
    }
    point = {
        "table": "made up", "rows": rows, "columns": 3, "epsilon": 1.0, "promise": "approximate",
        "errors": {way: _errors(error) for way, error in errors.items()},
        "radius": {"auto": None, "floor": 1.0}, "zero": 0.3,
    }  # fmt: skip
    out = render({"bench": "frame", "runs": 1, "points": [point], "skipped": []})
    assert words in out
    assert ("n ≥ 1,500, no repair used, geometric mean ≥ 5" in out) == (rows >= 1500)


@pytest.mark.parametrize(
    ("ten", "words"), [(1.3, "≤ 1.4 × that of ×1: reached, 1.30"), (1.5, "≤ 1.4 × that of ×1: missed, 1.50")]
)
def test_wide_bounds_count_from_ten_thousand_rows_and_epsilon_1(ten, words):
    errors = {f"{way} ×{factor}": _errors(1.0) for way in ("declared", "auto") for factor in frame.FACTORS}
    errors["auto ×10"] = _errors(ten)
    point = {"table": "made up", "rows": 10_000, "epsilon": 1.0, "promise": "pure", "errors": errors}
    others = [point | {"rows": 9_999}, point | {"epsilon": 0.2}]
    out = render({"bench": "frame", "runs": 1, "wide": [point], "skipped": []})
    assert words in out
    assert "≤ 2.5 × that of ×1: reached, 1.00" in out
    assert "target" not in render({"bench": "frame", "runs": 1, "wide": others, "skipped": []})


def test_intervals_hold_what_the_table_has_where_nothing_is_cut_and_noise_is_small():
    wages = DESIGNS[0].case(0, 2000)
    found = frame.coverage(wages, EXACT, 2)
    assert (found["framed"], found["endless"]) == (False, 0)
    assert (found["correlations"], found["furthest"] < 1) == (1, True)
    assert found["others"]["r_squared"] == found["others"]["components"] == 1
    assert found["others"]["ridge"] >= 0.5  # the table's error is that of its own rows, and not of new ones
    assert found["error"] < 1e-3
    assert 0 < found["width"] < 1e-2  # half of an interval for the table, in standard deviations
    wide = frame.coverage(wages, EXACT, 2, factor=10)
    assert wide["width"] > 10 * found["width"]


def test_the_ways_that_a_steward_might_get_unasked_are_set_side_by_side():
    def told(error, held, far, width):
        covered = {"table": held, "population": None}
        other = {"correlations": held / 2, "furthest": far, "endless": 0.5, "framed": True}
        return {"error": error, "covered": covered, "far": far, "width": width, **other}

    point = {"table": "people", "epsilon": 1.0, "promise": "pure"}
    ways = {"declared": told(0.4, 1.0, 0.9, math.inf), "told": told(0.1, 0.5, 7.0, 0.01)}
    points = [point | {"factor": factor, "ways": ways} for factor in (1, 10)]
    text = render({"runs": 2, "skipped": [], "unasked": points})
    assert (
        "declared / told 4.0 in the geometric mean, at least 4.00; correlations held 25 % on average" in text
    )
    assert "slopes held 50 % on average, at least 50 %, furthest 7.0" in text
    assert "∞" in text
