"""Weighted rows: what a row becomes, that no row grows, what the release then says, and what is refused."""

from __future__ import annotations

import json
import math
import os
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privcov as pc
from privcov.cli import main
from privcov.errors import PrivcovError
from privcov.frame.radii import candidates, cut_off
from privcov.mechanisms.sensitivity import Sensitivity
from privcov.models.association import mahalanobis, partial_correlation
from privcov.noise.randomness import rehearsal
from privcov.planning.moments import PublicMoments
from privcov.planning.words import counting_words
from privcov.privacy import Neighbours
from privcov.report.doubts import doubts
from privcov.report.page import html
from privcov.report.summary import as_json_values, as_text, effective_rows
from privcov.schema.grid import Grid
from privcov.schema.weights import root
from privcov.summing.bounding import Bounding
from privcov.summing.engines import Local
from privcov.summing.sum import sum_rows
from privcov.table import open_table
from privcov.verification.verify import verify
from privcov.web import drafting

COLUMNS = {
    "age": {"lower": 0, "upper": 100},
    "sex": {"levels": ["F", "M"]},
    "income": {"lower": -5, "upper": 145, "missing": "indicator"},
}
ODD = [math.nan, math.inf, -math.inf, -1.0, 0.0, 1e-320, 1e-9, 0.3, 1.0, 99.9, 100.0, 100.1, 1e300]
LOSS = pc.PureDP(epsilon=1, neighbours="replace-one")
CLEAR = pc.ZCDP(rho=10_000, neighbours="replace-one")


def schema(**words: object) -> pc.Schema:
    return pc.Schema.from_dict({"columns": COLUMNS, "weight": "w", "largest_weight": 100, **words})


def block(count: int, seed: int = 0) -> list[np.ndarray]:
    """Cells as a reader hands them out: numbers, the place of a level, and the weight last."""
    rng = np.random.default_rng(seed)
    odd = rng.choice(ODD, count)
    weights = np.where(rng.random(count) < 0.3, odd, rng.uniform(0, 110, count))
    income = np.where(rng.random(count) < 0.2, np.nan, rng.normal(60, 60, count))
    age = np.where(rng.random(count) < 0.05, np.nan, rng.normal(50, 40, count))
    return [age, rng.integers(-1, 3, count).astype(float), income, weights]


def frame(count: int = 20_000, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age, weight = rng.uniform(20, 90, count), rng.lognormal(2.5, 0.7, count)
    sex = np.where(rng.random(count) < 0.2 + 0.2 * (weight > 15), "F", "M")
    income = 10 + 0.8 * age + rng.normal(0, 15, count)
    return pd.DataFrame({"income": income, "w": weight, "age": age, "sex": sex})


# What a row becomes


@pytest.mark.parametrize("power", ["1", "1/2", "0.3", "0"])
@pytest.mark.parametrize("words", [{}, {"row_norm_bound": 1.9}, {"missing": "zero-row"}])
def test_rows_are_those_of_a_slow_reference(power: str, words: dict[str, object]) -> None:
    """The unweighted integers times √u, one at a time, in Python's own numbers."""
    cells, made = block(400), schema(weight_power=power, **words)
    plain = pc.Schema.from_dict({"columns": COLUMNS, **words})
    grid = Grid.of(made)
    weighed = Bounding.of(made).rows(cells)
    # The clip leaves room for the weight too: the same columns under the rest of the norm.
    bare = Bounding.of(made)
    before = Bounding(schema=plain, grid=Grid(**{**vars(grid), "dimension": plain.dimension}), clip=bare.clip)
    assert len(made.features) == plain.dimension + 1
    rows = before.rows(cells[:3])
    for row, weight, found in zip(rows, cells[3], weighed, strict=True):
        share = min(max(weight, 0.0), 100.0) / 100.0 if math.isfinite(weight) else 0.0
        factor = root(share, Fraction(power), math.sqrt)
        factor = 0.0 if not share > 0 or row[0] == 0 else 1.0 if factor is None else factor
        expected = [round(value * factor) for value in row]
        expected.append(round(round((factor * factor - 0.5) * 2**grid.exponent) * factor))
        assert found.tolist() == expected


def test_powers_are_products_of_roots_near_the_true_power() -> None:
    shares = np.linspace(0, 1, 101)
    for power in ("0.3", "1/3", "0.999", "1e-3", "1/2", "1"):
        found = root(shares, Fraction(power), np.sqrt)
        assert found is not None
        assert np.abs(found - shares ** (float(Fraction(power)) / 2)).max() < 1e-4
        assert found.max() <= 1.0


@pytest.mark.parametrize("bound", [None, 1.82, 1.9, 7.0])
@pytest.mark.parametrize("power", ["1", "0.3"])
def test_no_row_is_longer_than_before_and_none_is_lost(bound: float | None, power: str) -> None:
    """A row that became longer would be emptied by the last guard; here all are as long as can be, at weights just
    below the largest and above it, which a product rounded upwards, or a weight that is not clipped, would lengthen."""
    words = {} if bound is None else {"row_norm_bound": bound}
    made = schema(weight_power=power, **words)
    cells = block(3_000, 1)
    cells[3] = 100 * (1 - np.random.default_rng(2).uniform(-1e-5, 1e-5, 3_000))
    cells[0][:1_500], cells[2][:1_500] = 1e9, -1e9
    rows = Bounding.of(made).rows(cells)
    squared = (rows.astype(object) ** 2).sum(axis=1)
    assert max(squared) <= Grid.of(made).squared_norm_bound
    assert (rows[:, 0] > 0).all()


@given(cell=st.one_of(st.floats(), st.sampled_from(ODD)), other=st.floats(-1e6, 1e6))
def test_any_weight_gives_a_row_within_the_bound(cell: float, other: float) -> None:
    made = schema()
    (row,) = Bounding.of(made).rows([np.array([other]), np.array([0.0]), np.array([other]), np.array([cell])])
    assert (row**2).sum() <= Grid.of(made).squared_norm_bound
    counts = math.isfinite(cell) and cell > 0
    assert row.any() if counts and cell > 1e-3 else counts or not row.any()


def test_public_structure_of_levels_survives_weights_exactly() -> None:
    """level² = level · intercept, two levels never meet, a number is 0 where it is missing: per row, as integers."""
    names = [feature.name for feature in schema().features]
    rows = dict(zip(names, Bounding.of(schema()).rows(block(500)).T.astype(object), strict=True))
    for name in ("sex[F]", "sex[M]", "income[missing]"):
        assert (rows[name] * rows[name] == rows[name] * rows["(Intercept)"]).all()
    assert not (rows["sex[F]"] * rows["sex[M]"]).any()
    assert not (rows["income"] * rows["income[missing]"]).any()


@pytest.mark.parametrize("relation", list(Neighbours))
@pytest.mark.parametrize("radius", [0.3, 1.0, 7.0])
def test_weights_move_no_sum_further_than_the_sensitivity(radius: float, relation: Neighbours) -> None:
    """√u·z with ‖z‖ ≤ R and 0 ≤ u ≤ 1, two such rows, every norm; u = 1 attains what plain rows attain."""
    rng, d = np.random.default_rng(3), 3
    bound = Sensitivity(neighbours=relation, dimension=d, squared_norm=Fraction(radius) ** 2)
    norms = {
        "frobenius": np.linalg.norm,
        "nuclear": lambda change: np.linalg.norm(change, "nuc"),
        "operator": lambda change: np.linalg.norm(change, 2),
        "trace": lambda change: abs(np.trace(change)),
        "triangle_l1": lambda change: np.abs(change[np.triu_indices(d)]).sum(),
    }
    found = dict.fromkeys(norms, 0.0)
    shares = [0.0, 1e-12, 0.25, 0.5, 1.0, 1.0, 1.0]
    axes = [*np.eye(d), np.ones(d) / math.sqrt(d), np.array([1.0, 1.0, 0.0]) / math.sqrt(2)]
    for _ in range(300):
        one, other = (
            math.sqrt(rng.choice(shares)) * radius * axes[rng.integers(len(axes))] for _ in range(2)
        )
        change = np.outer(one, one) - (np.outer(other, other) if relation is Neighbours.REPLACE_ONE else 0.0)
        found = {name: max(found[name], float(norm(change))) for name, norm in norms.items()}
    for name, largest in found.items():
        assert largest <= float(getattr(bound, name)) * (1 + 1e-12)
    assert found["frobenius"] >= float(bound.frobenius) * (1 - 1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_replacing_a_row_by_any_other_moves_the_sum_within_the_bound(seed: int) -> None:
    made, grid = schema(), Grid.of(schema())
    bounding, reach = Bounding.of(made), Sensitivity.of(grid, Neighbours.REPLACE_ONE)
    rows = bounding.rows(block(200, seed)).astype(object)
    squares = [np.outer(row, row) for row in rows]
    for one, other in zip(squares[:100], squares[100:], strict=True):
        assert (((one - other) ** 2).sum()) <= reach.frobenius**2
        assert abs(np.trace(one - other)) <= reach.trace


def test_the_sum_is_the_same_integers_however_it_is_made(tmp_path: Path) -> None:
    data, made = frame(4_000), schema(weight_power="0.7")
    data.loc[::17, "w"] = np.nan
    data.to_csv(tmp_path / "a.csv", index=False)
    data.to_parquet(tmp_path / "a.parquet")

    def total(given: object, engine: Local) -> list[int]:
        gram = sum_rows(open_table(given, made), made, Grid.of(made), engine=engine)
        return [int(value) for value in gram.reveal_to_mechanism()]

    expected = total(data, Local(workers=1))
    assert total(data.iloc[::-1], Local(workers=3)) == expected
    assert total(str(tmp_path / "a.csv"), Local(workers=2)) == expected
    assert total(str(tmp_path / "a.parquet"), Local(workers=2)) == expected


# What the release says


def test_sums_means_and_covariances_are_weighted() -> None:
    data = frame()
    made = pc.release(data, schema=schema(), loss=CLEAR, mechanism="gaussian")
    weights = np.minimum(data["w"], 100)
    assert made.rows == len(data)
    assert made.weight_sum == pytest.approx(weights.sum(), rel=1e-3)
    assert made.count() == pytest.approx(weights.sum() / 100, rel=1e-3)
    assert made.mean()[0] == pytest.approx(np.average(data["age"], weights=weights), rel=1e-3)
    assert made.mean()[1] == pytest.approx(np.average(data["sex"] == "F", weights=weights), rel=1e-2)
    wanted = np.cov(data["age"], data["income"].clip(-5, 145), aweights=weights)
    assert made.covariance()[np.ix_([0, 3], [0, 3])] == pytest.approx(wanted, rel=1e-2)
    assert made.count() / made.row_weight == pytest.approx(weights.sum() ** 2 / (weights**2).sum(), rel=1e-2)


def test_the_sum_of_weights_is_private_where_the_number_of_rows_is_not() -> None:
    """The intercept with itself carries noise, and nothing takes the number of rows for it."""
    data = frame(2_000)
    made = pc.release(data, schema=schema(), loss=LOSS)
    assert made.rows == 2_000
    assert [0, 0] not in made.structure.fixed.tolist()
    assert not Grid.of(made.schema).intercept
    with pytest.raises(PrivcovError, match="joint-gaussian needs an intercept"):
        pc.release(
            data, schema=schema(), loss=pc.ZCDP(rho=1, neighbours="replace-one"), mechanism="joint-gaussian"
        )
    found = {pc.release(data, schema=schema(), loss=LOSS).count() for _ in range(2)}
    assert len(found) == 2


def test_a_power_of_zero_counts_every_row_with_a_weight() -> None:
    data = frame(5_000)
    data.loc[:999, "w"] = [-1.0, 0.0, np.nan, np.inf] * 250
    made = pc.release(data, schema=schema(weight_power=0), loss=CLEAR, mechanism="gaussian")
    assert made.count() == pytest.approx(4_000, rel=1e-3)
    assert made.row_weight == pytest.approx(1.0, abs=1e-2)
    assert made.mean()[0] == pytest.approx(data["age"][1_000:].mean(), rel=1e-3)


def test_a_power_below_one_lowers_the_noise_on_means() -> None:
    """Measured by the sizes that the release states: noise over the sum of what rows count as."""
    data = frame()
    counts = [
        pc.release(data, schema=schema(weight_power=p), loss=CLEAR, mechanism="gaussian").count()
        for p in ("1", "0.5")
    ]
    assert counts[1] > 2 * counts[0]


def test_a_weighted_regression_is_the_weighted_regression() -> None:
    data = frame()
    made = pc.release(data, schema=schema(), loss=CLEAR, mechanism="gaussian")
    fit = pc.ols(made, "income ~ age + sex")
    weights = np.sqrt(np.minimum(data["w"], 100))
    design = (
        np.column_stack([np.ones(len(data)), data["age"], data["sex"] == "M"]) * weights.to_numpy()[:, None]
    )
    wanted = np.linalg.lstsq(design, (data["income"].clip(-5, 145) * weights).to_numpy(), rcond=None)[0]
    assert list(fit.params.values()) == pytest.approx(wanted, rel=0.05, abs=0.05)
    kish = (weights**2).sum() ** 2 / (weights**4).sum()
    assert fit.moments.rows == pytest.approx(kish, rel=1e-2)
    assert fit.bse["age"] == pytest.approx(15 / math.sqrt(kish) / 20.2, rel=0.1)
    assert "Weighted: effectively about" in fit.summary()


def test_reports_doubts_components_and_partial_correlations_work_on_weighted_rows(tmp_path: Path) -> None:
    made = pc.release(frame(), schema=schema(), loss=LOSS)
    made.save(tmp_path / "r.json")
    assert pc.load(tmp_path / "r.json") == made
    assert verify(tmp_path / "r.json").holds
    assert pc.load(tmp_path / "r.json").schema.weight_power == 1
    assert not doubts(made)
    text, page = as_text(made, what="mean"), html(made, models=["income ~ age"], components=1)
    assert "Rows are weighted by w, at most 100" in text
    assert "Rows, effectively" in page
    low, high = partial_correlation(made, level=0.9999).interval("age", "income")
    assert low < 0.75 < high
    assert pc.ridge(made, "income", penalty=1.0).columns


def test_an_effective_number_of_rows_that_noise_hides_is_not_told() -> None:
    """Of three rows the noise is a thousand times as large; its ratio of two sums was billions of rows, or one."""
    loss = pc.PureDP(epsilon=0.01, neighbours="add-remove")
    for seed in range(5):
        made = pc.release(frame()[:3], schema=schema(), loss=loss, randomness=rehearsal(seed))
        assert effective_rows(made) is None
        assert as_json_values(made)["effective_rows"] is None
        assert "effectively is hidden by the noise" in as_text(made, what="mean").replace("\n  ", " ")
        assert "hidden by the noise" in html(made)
    clear = pc.release(frame(), schema=schema(), loss=CLEAR, mechanism="gaussian")
    assert effective_rows(clear) == clear.count() / clear.row_weight


def test_what_a_row_counts_as_is_no_column_to_explain_with() -> None:
    """Unless a formula names it: `.`, ridge, components, partial correlations and distances do without."""
    made = pc.release(frame(), schema=schema(), loss=CLEAR)
    own = ("age", "sex[F]", "sex[M]", "income", "income[missing]")
    assert "w" not in pc.ols(made, "income ~ .").params
    assert "w" in pc.ols(made, "income ~ . + w").params
    assert "w" not in pc.ridge(made, "income", penalty=1.0).columns
    for words in ({}, {"centred": False}, {"scaled": False}, {"centred": False, "scaled": False}):
        fit = pc.pca(made, rank=5, **words)
        assert (fit.columns, fit.left_out, fit.components.shape) == (own, (), (5, 5))
    correlated = pc.pca(made, rank=1, correlation=True)
    assert "w" not in (*correlated.columns, *correlated.left_out)
    assert "w" in partial_correlation(made).left_out
    assert mahalanobis(made, [[40, 1, 0, 60, 0]]).shape == (1,)


def test_files_that_say_more_or_less_of_weights_are_refused() -> None:
    from privcov.releases import codec

    document = pc.release(frame(100), schema=schema(), loss=LOSS).to_dict()
    body = {word: value for word, value in document.items() if word not in ("format", "signature")}
    for word, value in [
        ("power", "2"),
        ("largest", "-1.0"),
        ("largest", "nan"),
        ("column", "age"),
        ("more", "x"),
    ]:
        changed = json.loads(json.dumps(body))
        changed["certificate"]["bounds"]["weight"][word] = value
        with pytest.raises(PrivcovError):
            codec.decode(codec.FORM.sealed(changed, None))


# Plans, drafts, files


def test_plans_count_in_rows_of_the_largest_weight() -> None:
    assert "Rows are counted here in units of the largest weight" in " ".join(
        counting_words(schema())[0].split()
    )
    guess = PublicMoments.guessed(schema(), {"columns": {"w": {"mean": 20, "std": 10}}})
    assert guess.matrix[0, -1] == pytest.approx((0.04 + 0.01) / 0.2 - 0.5)
    assert guess.pretend(rows=4_000, loss=LOSS, law=None).row_weight == pytest.approx(0.25, abs=1e-3)
    data = frame()
    seen = pc.surrogate(data, schema=schema()).matrix
    assert seen[0, 0] == 1
    shares = np.minimum(data["w"], 100) / 100
    assert seen[0, -1] + 0.5 == pytest.approx((shares**2).sum() / shares.sum(), rel=1e-3)


@pytest.mark.long
def test_a_plan_of_weighted_rows_says_how_it_counts() -> None:
    made = pc.plan(schema=schema(), rows=4_000, loss=LOSS, mechanisms=["laplace"])
    assert counting_words(schema())[0] in str(made)


def test_a_schema_with_weights_is_written_cut_merged_and_drafted(tmp_path: Path) -> None:
    made, path = schema(weight_power="1/3"), tmp_path / "s.toml"
    path.write_text(made.to_toml(), encoding="utf-8")
    assert pc.Schema.read(path) == made
    assert drafting.drafted(drafting.opened(path)).schema == made
    part = made.subset(["age"])
    assert [feature.name for feature in part.features] == ["(Intercept)", "age", "w"]
    assert part.merged(made.without(["age"])) == made
    with pytest.raises(PrivcovError, match="E193"):
        made.merged(schema())
    with pytest.raises(PrivcovError, match="E190"):
        made.without(["w"])


# Refusals


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ({"largest_weight": None}, "E196"),
        ({"largest_weight": 0}, "E196"),
        ({"largest_weight": -5}, "E196"),
        ({"largest_weight": "many"}, "E196"),
        ({"largest_weight": math.inf}, "E196"),
        ({"weight_power": 1.5}, "E196"),
        ({"weight_power": -0.1}, "E196"),
        ({"weight_power": "half"}, "E196"),
        ({"weight": None}, "E196"),
        ({"weight": ""}, "E121"),
        ({"weight": "age"}, "E197"),
        ({"intercept": False}, "E198"),
        ({"row_norm_bound": 1.2}, "E198"),
    ],
)
def test_weights_that_mean_nothing_are_refused(words: dict[str, object], code: str) -> None:
    with pytest.raises(PrivcovError, match=code):
        schema(**words)


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"frame": "shape"}, "E218"),
        ({"frame": "scales", "cut": "counted"}, "E218"),
        ({"mechanism": "adaptive"}, "E198"),
    ],
)
def test_what_needs_rows_that_count_alike_is_refused_before_paying(
    tmp_path: Path, asked: dict[str, str], code: str
) -> None:
    loss = pc.ZCDP(rho=1, neighbours="replace-one")
    book = pc.Ledger.init(tmp_path / "b.ledger", loss)
    with pytest.raises(PrivcovError, match=code):
        pc.release(frame(50), schema=schema(), loss=loss, ledger=book, **asked)  # type: ignore[arg-type]
    assert not any(book.spent.values())


@pytest.mark.parametrize(
    "power", ["1", *(pytest.param(power, marks=pytest.mark.long) for power in ("1/2", "0"))]
)
def test_what_a_row_norm_would_cut_off_counts_as_much_as_the_row(power: str) -> None:
    """u·max(0, |z|² − r²), one row at a time; one person of any weight moves it by the bound of a row at most."""
    made = schema(weight_power=power)
    options, grid = candidates(made), Grid.of(made)
    far = {"age": np.resize([0.0, 100.0, 97.0], 28), "income": np.resize([145.0, -5.0, np.nan, 140.0], 28)}
    table = frame(28).assign(w=np.resize([*ODD, 40.0], 28), **far)  # others fit even the smallest bound
    found = cut_off(table, made, options)
    assert found.totals[-1] > grid.squared_norm_bound
    scale, expected = 4**grid.exponent, np.zeros(len(options))
    fixed = made.fixed_squared_norm - len(made.number_indicators)
    for place in range(28):
        row = Bounding.of(made).rows(next(open_table(table.iloc[[place]], made).blocks()))[0]
        named = dict(zip([feature.name for feature in made.summed], row, strict=True))
        own = sum(named[name] ** 2 for name in ("age", "income", "income[missing]"))
        share = Fraction(int(row[0]) ** 2, scale)
        cut = [max(0.0, own - int(share * int((o.squared_norm_bound - fixed) * scale))) for o in options]
        expected += cut
        alone = cut_off(table.iloc[[place]], made, options).totals
        assert all(0 <= total <= grid.squared_norm_bound for total in alone)
        assert np.abs(np.array(alone) - cut).max() <= 1  # one rounding of the room
    assert np.abs(np.array(found.totals) - expected).max() <= 28
    heavy, light = (cut_off(table.assign(w=weight), made, options).totals[-1] for weight in (100.0, 25.0))
    assert light / heavy == pytest.approx(0.25 ** float(Fraction(power)), rel=1e-3)


def test_a_private_row_norm_of_weighted_rows_fits_those_that_count(tmp_path: Path) -> None:
    """Rows far out that count next to nothing do not keep the bound large; the file is consistent."""
    table = frame(3_000).assign(age=50.0, income=70.0)
    far = table.head(1_500).assign(age=1e9, income=1e9)
    bounds = {}
    for weight in (1e-9, 100.0):
        rows = pd.concat([table.assign(w=100.0), far.assign(w=weight)])
        made = pc.release(rows, schema=schema(), loss=CLEAR, row_norm="private")
        bounds[weight] = made.schema.squared_norm_bound
        assert made.weight_sum == pytest.approx(100 * 3_000 + weight * 1_500, rel=0.01)
        made.save(path := tmp_path / f"{weight}.json")
        assert verify(path).holds
    assert bounds[1e-9] < bounds[100.0] == schema().squared_norm_bound


def test_bad_weights_are_one_line_and_exit_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    frame(50).to_csv("t.csv", index=False)
    good = schema().to_toml()
    for text, code in [
        (good.replace('"w"', '"nobody"'), "E102"),
        (good.replace("largest_weight = 100\n", ""), "E196"),
        (good + "\n[columns.w]\nlower = 0\nupper = 1\n", "E197"),
        (good.replace("largest_weight = 100", "largest_weight = 100\nweight_power = 3"), "E196"),
    ]:
        Path("s.toml").write_text(text)
        assert main(["release", "t.csv", "--schema", "s.toml", "--epsilon", "1", "-o", "r.json"]) == 2
        lines = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("neighbours:")]
        assert len(lines) == 1
        assert code in lines[0]
    Path("s.toml").write_text(good)
    assert main(["schema", "check", "s.toml"]) == 0
    assert "Rows are weighted by w, at most 100" in capsys.readouterr().out
    assert main(["schema", "explain", "s.toml"]) == 0
    assert "1/4 for the weight" in capsys.readouterr().out


# Coverage


@pytest.mark.slow
@pytest.mark.parametrize("power", ["1", "1/2"])
@pytest.mark.parametrize("loss", [pc.PureDP(epsilon=9, neighbours="replace-one"), CLEAR])
def test_intervals_cover_under_a_design_with_known_inclusion_probabilities(
    loss: pc.PureDP | pc.ZCDP, power: str
) -> None:
    """Poisson sampling whose probabilities depend on both regressors; weights are their inverses.

    With 1,200 samples of three coefficients each, coverage is 95 % ± 0.63 % (one standard deviation); the margin from
    93 to 97.5 % is 3.2 and 4 of them, so false alarms are below 2 %. Evened out weights have 2,400 samples, and
    ± 0.44 %: the first 400, by chance, have 93.75 % for the intercept with the exact covariance of estimates too.
    Kish's number alone would cover the intercept 93.6 %.
    """
    sample = max(0.05, float(os.environ.get("PRIVCOV_SAMPLE", "1")))
    samples = round(1_200 * sample) if sample < 1 or power == "1" else 2_400
    deviation = math.sqrt(0.05 * 0.95 / samples)
    slack = 4 * deviation if sample < 1 else 0.0
    bounds = {"x": {"lower": -3, "upper": 3}, "y": {"lower": -8, "upper": 8}, "g": {"levels": [0, 1]}}
    words = {"weight": "w", "largest_weight": 20, "weight_power": power}
    made = pc.Schema.from_dict({**words, "columns": bounds})
    truth = {"(Intercept)": 1.0, "x": 0.5, "g[1]": -0.4}
    covered = dict.fromkeys(truth, 0)
    for seed in range(samples):
        release = pc.release(_design(seed), schema=made, loss=loss)
        for name, (low, high) in pc.ols(release, "y ~ x + g").conf_int().items():
            covered[name] += low <= truth[name] <= high
    print({name: count / samples for name, count in covered.items()}, "±", round(deviation, 4))
    for count in covered.values():
        assert 0.93 - slack <= count / samples <= 0.975 + slack


def _design(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = np.clip(rng.normal(0, 1, 20_000), -3, 3)
    g = (rng.random(len(x)) < 0.3 + 0.1 * (x > 0)).astype(float)
    y = 1 + 0.5 * x - 0.4 * g + rng.normal(0, 1, len(x))
    chance = np.clip(0.15 * np.exp(0.6 * rng.normal(size=len(x)) + 0.3 * x) + 0.1 * g, 0.05, 0.9)
    taken = rng.random(len(x)) < chance
    return np.column_stack([x, y, g, 1 / chance])[taken]
