"""Levels that add up to the intercept: fewer columns are summed, all are recovered, and every cell counts as one."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privcov as pc
from privcov.errors import InputError, ReleaseError
from privcov.models.association import partial_correlation
from privcov.models.moments import EntryNoise
from privcov.models.perturbation import rehearsed_noise
from privcov.noise.composed import Congruent
from privcov.noise.laws import GaussianEnsemble, GaussianFreeTrace, LaplaceTriangle
from privcov.noise.randomness import rehearsal
from privcov.planning.moments import PublicMoments
from privcov.planning.signal import saving
from privcov.releases import codec
from privcov.repair import Structure
from privcov.schema import Categorical, Schema
from privcov.schema.grid import Grid
from privcov.schema.recovery import coding, corners, recovery, scaled_corners
from privcov.summing.bounding import Bounding
from privcov.summing.sum import sum_rows
from privcov.table import open_table

pd = pytest.importorskip("pandas")

SEX = {"levels": ["F", "M"], "exhaustive": True, "otherwise": "M"}
AREA = {"levels": ["n", "s", "w"], "exhaustive": True, "otherwise": "w"}
AGE = {"lower": 0, "upper": 100}
PURE = pc.PureDP(epsilon=1, neighbours="replace-one")


def schema_of(**columns) -> Schema:
    given = {"columns": columns or {"sex": SEX, "age": AGE, "area": AREA}}
    return Schema.from_dict(given)


def plainly(schema: Schema) -> Schema:
    """The same levels, not exhaustive."""
    columns = [
        replace(c, exhaustive=False, otherwise=None) if isinstance(c, Categorical) else c
        for c in schema.columns
    ]
    return replace(schema, columns=tuple(columns))


def people(rows: int = 300, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M", "f", None], rows, p=[0.5, 0.4, 0.05, 0.05])
    area = rng.choice(["n", "s", "w", "?"], rows, p=[0.4, 0.3, 0.2, 0.1])
    return pd.DataFrame({"sex": sex, "age": rng.uniform(10, 90, rows), "area": area})


def settled(frame: pd.DataFrame) -> pd.DataFrame:
    """The slow reference: every other cell written as the level that it counts as."""
    sex = [cell if cell in ("F", "M") else "M" for cell in frame["sex"]]
    area = [cell if cell in ("n", "s", "w") else "w" for cell in frame["area"]]
    return frame.assign(sex=sex, area=area)


def recovered(data, schema: Schema) -> np.ndarray:
    """The exact sum in the columns of a release: without noise."""
    grid = Grid.of(schema)
    gram = sum_rows(open_table(data, schema), schema, grid)
    made = np.zeros((grid.dimension, grid.dimension))
    made[np.triu_indices(grid.dimension)] = [int(v) * float(grid.unit) for v in gram.reveal_to_mechanism()]
    made += np.triu(made, 1).T
    back = recovery(schema)
    return made if back is None else back.seen(made)


# --- the corners, and the bound on the norm of a row ------------------------------------------------------


@pytest.mark.parametrize("count", [2, 3, 4, 7, 42, 300])
@pytest.mark.parametrize("exponent", [4, 10, 19])
def test_corners_are_whole_numbers_within_their_squared_norm_and_root_two_apart(count, exponent):
    made = corners(count, exponent)
    whole = [[int(value) for value in column] for column in made.T]
    assert (made == np.rint(made)).all()
    assert all(sum(v * v for v in one) * count <= (count - 1) * 4**exponent for one in whole)
    if exponent == 19:
        products = made.T @ made / 4.0**exponent
        square = np.add.outer(np.diag(products), np.diag(products)) - 2 * products
        square = square[~np.eye(count, dtype=bool)]
        assert np.allclose(square, 2, atol=count * 2.0**-17)
        assert abs(made.sum(axis=1) / 2**exponent).max() < count * 2.0**-18


def test_no_other_corners_as_far_apart_have_a_smaller_norm():
    """The row norm is shown tight: a row at a corner has it, but for the rounding of the grid."""
    schema = schema_of()
    assert schema.squared_norm_bound == 1 + Fraction(1, 2) + 1 + Fraction(2, 3)
    rows = Bounding.of(schema).rows([np.array([0.0]), np.array([100.0]), np.array([1.0])])
    squared, bound = float((rows**2).sum()), Grid.of(schema).squared_norm_bound
    assert bound * (1 - 1e-4) < squared <= bound


@pytest.mark.parametrize("radius", [0.3, 1, 7])
def test_no_row_is_longer_than_the_bound_whatever_its_cells(radius):
    rng = np.random.default_rng(5)
    codes = [-1.0, np.nan, 0.0, 1.0, 2.0]
    for rule in ("midpoint", "zero-row", "indicator"):
        columns = {
            f"c{n}": {"levels": list("abc")[:n], "exhaustive": True, "missing": rule}
            | ({"otherwise": "a"} if rule == "midpoint" else {})
            for n in (2, 3)
        }
        columns["age"] = AGE | {"missing": "indicator"}
        given = {"columns": columns, "row_norm_bound": radius}
        bounding = Bounding.of(Schema.from_dict(given))
        block = [
            rng.choice(codes[:4], 2000),
            rng.choice(codes, 2000),
            rng.choice([np.nan, -1e300, 0.0, 55.5, 1e300, np.inf], 2000),
        ]
        squared = (bounding.rows(block) ** 2).sum(axis=1)
        assert squared.max() <= bounding.grid.squared_norm_bound <= radius**2 * 4**bounding.grid.exponent


# --- recovery ---------------------------------------------------------------------------------------------


def test_all_levels_are_recovered_from_fewer_columns():
    frame, schema = people(), schema_of()
    assert (schema.dimension, schema.summed_dimension) == (7, 5)
    slow = recovered(settled(frame), plainly(schema))
    assert np.allclose(recovered(frame, schema), slow, atol=1e-4 * len(frame))


@settings(max_examples=25, deadline=None)
@given(
    counts=st.lists(st.integers(2, 6), min_size=1, max_size=3),
    indicator=st.booleans(),
    number_first=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_recovery_agrees_with_one_indicator_for_each_level(counts, indicator, number_first, seed):
    rng = np.random.default_rng(seed)
    columns = {
        f"c{i}": {"levels": list(range(n)), "exhaustive": True}
        | ({"missing": "indicator"} if indicator else {"otherwise": n - 1})
        for i, n in enumerate(counts)
    }
    columns = {"x": AGE, **columns} if number_first else {**columns, "x": AGE}
    schema, rows = Schema.from_dict({"columns": columns}), 40
    cells = {f"c{i}": rng.integers(-1, n, rows).astype(float) for i, n in enumerate(counts)}
    cells["x"] = rng.uniform(0, 100, rows)
    made = recovered(pd.DataFrame(cells)[list(columns)], schema)
    slow = [np.ones(rows)]
    for name in columns:
        if name == "x":
            slow.append((cells["x"] - 50) / 50)
            continue
        n = counts[int(name[1:])]
        other = cells[name] < 0
        slow += [(cells[name] == j) | (other & (j == n - 1) & (not indicator)) for j in range(n)]
        slow += [other] if indicator else []
    table = np.stack(slow, axis=1).astype(float)
    assert np.allclose(made, table.T @ table, atol=1e-3 * rows)
    assert np.allclose(
        coding(schema).rows(recovery(schema).matrix), np.eye(schema.summed_dimension), atol=1e-9
    )


def test_rows_that_count_as_zeros_are_zeros_in_every_level():
    """Then the levels add up to the intercept too, which is zero."""
    schema = schema_of(sex={"levels": ["F", "M"], "exhaustive": True, "missing": "zero-row"}, age=AGE)
    made = recovered(pd.DataFrame({"sex": ["F", "?", None, "M"], "age": [1.0, 2.0, 3.0, 4.0]}), schema)
    assert np.allclose(made[0, :3], [2, 1, 1], atol=1e-4)


def test_the_cells_of_a_row_change_nothing_of_other_rows():
    """Neighbours through the whole path: the sums differ by those of the one row, exactly."""
    schema, frame = schema_of(), people(50)
    grid = Grid.of(schema)

    def summed(data) -> list[int]:
        gram = sum_rows(open_table(data, schema), schema, grid)
        return [int(value) for value in gram.reveal_to_mechanism()]

    for cell in ("F", "M", "nobody", "", None):
        other = frame.copy()
        other.loc[7, "sex"] = cell
        one = [a - b for a, b in zip(summed(frame), summed(frame.iloc[[7]]), strict=True)]
        two = [a - b for a, b in zip(summed(other), summed(other.iloc[[7]]), strict=True)]
        assert one == two


def test_every_route_gives_the_same_integers(tmp_path):
    schema, frame = schema_of(), people(200)
    frame.to_csv(tmp_path / "a.csv", index=False)
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), tmp_path / "a.parquet")
    grid = Grid.of(schema)
    routes = [frame, pl.from_pandas(frame), pa.Table.from_pandas(frame, preserve_index=False)]
    routes += [tmp_path / "a.csv", tmp_path / "a.parquet", settled(frame)]
    made = [sum_rows(open_table(one, schema), schema, grid).reveal_to_mechanism().tolist() for one in routes]
    assert all(one == made[0] for one in made)


def test_a_device_makes_the_same_rows():
    torch = pytest.importorskip("torch")
    from privcov.linalg.devices import Device
    from privcov.summing.gpu import DeviceSum

    for rule in ({}, {"missing": "zero-row"}, {"missing": "indicator"}):
        area = {"levels": ["n", "s", "w"], "exhaustive": True} | (rule or {"otherwise": "w"})
        schema = schema_of(age=AGE, area=area)
        bounding = Bounding.of(schema)
        block = np.array([[1.0, np.nan, 99.0, 5.0, 5.0], [0.0, 1.0, 2.0, -1.0, np.nan]])
        device = DeviceSum(schema, Grid.of(schema), Device.named("torch"))
        assert (device.bounded(torch.from_numpy(block)).T.numpy() == bounding.rows(block)).all()


# --- the release ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_levels_are_opposite_and_add_up_to_the_intercept(neighbours):
    release = pc.release(people(), schema=schema_of(), loss=pc.PureDP(epsilon=1, neighbours=neighbours))
    for raw in (True, False):
        moment = release.second_moment(raw=raw, scaled=True)
        assert np.allclose(moment[1] + moment[2], moment[0], atol=1e-6 * abs(moment[0, 0]))
        assert np.allclose(moment[4:].sum(axis=0), moment[0], atol=1e-6 * abs(moment[0, 0]))
    correlation = release.correlation()
    assert np.allclose(correlation[0, 2:], -correlation[1, 2:], atol=1e-9)
    moment = release.second_moment(scaled=True)
    assert np.allclose([moment[1, 2], *moment[[4, 4, 5], [5, 6, 6]]], 0, atol=1e-6 * moment[0, 0])
    assert np.linalg.eigvalsh(moment).min() > -1e-6 * moment[0, 0]
    assert np.allclose(np.diag(moment)[[1, 2, 4, 5, 6]], moment[0, [1, 2, 4, 5, 6]], atol=1e-6 * moment[0, 0])


@pytest.mark.parametrize(
    "law",
    [
        GaussianEnsemble(dimension=5, scale=2.0),
        GaussianFreeTrace(dimension=5, scale=2.0),
        LaplaceTriangle(dimension=5, scale=3.0),
    ],
    ids=lambda law: law.name,
)
def test_the_law_of_recovered_noise_is_that_of_simulated_noise(law):
    """4,000 draws: variances are known to 2.3 % (normal) or 3.5 % (Laplace), so 16 % is four and a half or more."""
    seen = Congruent.of(law, recovery(schema_of()))
    source = rehearsal(1)
    draws = np.stack([seen.simulate(source) for _ in range(4_000)])
    stated = seen.entry_variances
    assert (np.abs(draws.var(axis=0) - stated) <= 0.16 * stated).all()
    assert abs((draws**2).sum(axis=(1, 2)).mean() / seen.rms_frobenius**2 - 1) < 0.16
    assert abs(np.trace(draws, axis1=1, axis2=2).var() / seen.trace_variance - 1) < 0.16
    assert np.allclose(draws[:, 1] + draws[:, 2], draws[:, 0])
    places, vector = [0, 2, 5], np.array([0.3, -1.0, 0.8])
    noise = EntryNoise.of(seen, places=places, known=[], mixing=np.eye(3))
    part = draws[:, places][:, :, places]
    stated = noise.times(vector)
    assert np.allclose(stated, np.cov((part @ vector).T), rtol=0.16, atol=0.05 * stated.max())


def test_what_is_certain_carries_no_noise():
    """Two levels and a public count: the square of their coordinate is known, so a level's squares are its sum."""
    frame = people()[["sex", "age"]]
    release = pc.release(frame, schema=schema_of(sex=SEX, age=AGE), loss=PURE)
    moment = release.informed_moment()
    assert moment[0, 0] == 300
    assert np.allclose([moment[1, 1], moment[2, 2], moment[1, 2]], [moment[0, 1], moment[0, 2], 0], atol=1e-6)
    draws = rehearsed_noise(release, [0, 1, 2], law=release.law, count=20)
    assert np.allclose(draws[:, 1, 1], draws[:, 0, 1])
    assert np.allclose(draws[:, 0, 0], 0)
    assert abs(draws[:, 0, 1]).min() > 0


def test_a_release_file_says_so_and_loads_again(tmp_path):
    release = pc.release(people(), schema=schema_of(), loss=PURE)
    release.save(tmp_path / "a.json")
    again = pc.load(tmp_path / "a.json")
    assert again == release
    assert (again.correlation() == release.correlation()).all()
    document = json.loads((tmp_path / "a.json").read_text())
    first = document["certificate"]["bounds"]["columns"][0]
    assert first == {"name": "sex", "levels": ["F", "M"], "exhaustive": True, "otherwise": "M"}
    assert len(document["columns"]) == 7
    assert len(document["matrix"]["upper"]) == 15
    for change in ({"exhaustive": False}, {"exhaustive": "yes"}, {"otherwise": "X"}):
        changed = json.loads(json.dumps(document))
        changed["certificate"]["bounds"]["columns"][0] |= change
        with pytest.raises((ReleaseError, InputError)):
            codec.FORM.decoded(changed, codec.unsealed)


def test_a_frame_finds_its_columns_behind_exhaustive_levels():
    """The numeric columns stand elsewhere among those that are summed than in the release."""
    rng = np.random.default_rng(3)
    frame = people(3000).assign(pay=rng.normal(30, 5, 3000))
    frame["age"] = frame["pay"] + rng.normal(20, 3, 3000)
    schema = schema_of(sex=SEX, age=AGE, area=AREA, pay={"lower": 0, "upper": 100})
    loss = pc.ZCDP(rho=20, neighbours="replace-one")
    for kind in ("scales", "shape"):
        release = pc.release(frame, schema=schema, loss=loss, frame=kind)
        correlation = release.correlation()
        truth = settled(frame)
        assert abs(correlation[2, 6] - np.corrcoef(frame["age"], frame["pay"])[0, 1]) < 0.1
        assert abs(release.mean()[0] - (truth["sex"] == "F").mean()) < 0.02
        assert np.allclose(correlation[0, 2:], -correlation[1, 2:], atol=1e-9)
        assert release == pc.releases.release.assembled(codec.decode(release.to_dict()))


# --- repair -----------------------------------------------------------------------------------------------


def test_the_linear_fit_is_the_nearest_matrix_of_counts_and_its_noise_is_stated():
    """Against least squares over all counts at once. 200 draws: the share of noise left within 15 %, five errors."""
    schema = schema_of()
    places, at = {}, 1
    for column in schema.columns:
        places[column.name] = list(range(at, at + column.summed_width))
        at += column.summed_width
    for rows in (None, 900.0):
        structure = Structure.one_hot(
            dimension=5,
            groups=[],
            simplices=[(places[c.name], corner) for c, corner in scaled_corners(schema)],
            intercept=0,
            rows=rows,
        )
        law = GaussianEnsemble(dimension=5, scale=4.0)
        truth = recovered_coordinates(schema)
        free, source, left = [], rehearsal(2), 0.0
        for _ in range(200):
            noise = law.simulate(source)
            fitted = structure.fit(truth + noise, law)
            left += ((fitted - truth) ** 2).sum() / 200
            free.append(fitted)
        stated = structure.noise_left(law) * law.rms_frobenius**2
        assert abs(left / stated - 1) < 0.15
        slow = least_squares(truth + noise, schema, places, rows)
        assert np.allclose(fitted, slow, atol=1e-6)


def recovered_coordinates(schema: Schema) -> np.ndarray:
    """Sums of 900 rows, of which every pair of levels has many: no count is near zero."""
    rng = np.random.default_rng(4)
    block = [rng.integers(0, 2, 900), rng.uniform(0, 100, 900), rng.integers(0, 3, 900)]
    bounding = Bounding.of(schema)
    rows = bounding.rows([np.asarray(cells, dtype=float) for cells in block]) / bounding.one
    return rows.T @ rows


def least_squares(noisy, schema: Schema, places, rows: float | None) -> np.ndarray:
    """All symmetric matrices of the structure as a linear space; the nearest one by a projection onto its basis."""
    basis = []
    inside = {
        (i, j) for name in places if name != "age" for i in [0, *places[name]] for j in [0, *places[name]]
    }
    for i in range(5):
        for j in range(i, 5):
            if (i, j) not in inside:
                one = np.zeros((5, 5))
                one[i, j] = one[j, i] = 1.0
                basis.append(one)
    (_, sex), (_, area) = scaled_corners(schema)

    def corner(name, which, j):
        s = np.zeros(5)
        s[0], s[places[name]] = 1.0, which[:, j]
        return np.outer(s, s)

    a = [corner("sex", sex, j) for j in range(2)]
    b = [corner("area", area, j) for j in range(3)]
    # Counts of both add up to the same: moves that keep the sums, and one step of both.
    basis += [a[1] - a[0], b[1] - b[0], b[2] - b[0]]
    both = a[0] + b[0]
    both[0, 0] = 1.0
    start = np.zeros((5, 5)) if rows is None else rows * both
    if rows is None:
        basis.append(both)
    matrix = np.stack([one.ravel() for one in basis], axis=1)
    found, *_ = np.linalg.lstsq(matrix, (noisy - start).ravel(), rcond=None)
    return start + (matrix @ found).reshape(5, 5)


# --- models -----------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_intervals_of_levels_cover(neighbours):
    """60 releases, 3 levels each: 95 % intervals, so fewer than 150 of 180 happens once in 10⁵ at independent ends."""
    rng = np.random.default_rng(8)
    rows = 20_000
    sex, area = rng.integers(0, 2, rows), rng.integers(0, 3, rows)
    age = 40 + 8 * sex - 5 * (area == 1) + rng.normal(0, 8, rows)
    frame = pd.DataFrame({"sex": np.array(["F", "M"])[sex], "age": age, "area": np.array(list("nsw"))[area]})
    loss = pc.PureDP(epsilon=0.5, neighbours=neighbours)
    truth = {"sex[M]": 8, "area[s]": -5, "area[w]": 0}
    inside = 0
    for _ in range(60):
        fit = pc.ols(pc.release(frame, schema=schema_of(), loss=loss), "age ~ sex + area")
        ends = fit.conf_int()
        inside += sum(ends[name][0] <= value <= ends[name][1] for name, value in truth.items())
    assert inside >= 150


def test_a_regression_on_levels_has_smaller_errors_than_one_without_a_reference():
    """With the reference level dropped by hand the standard errors are larger, for the same rows and loss."""
    frame = settled(people(5000))
    dropped = schema_of(sex={"levels": ["M"]}, age=AGE, area={"levels": ["s", "w"]})
    ours = pc.ols(pc.release(frame, schema=schema_of(), loss=PURE), "age ~ sex + area", method="wald").bse
    formula = "age ~ sex[M] + area[s] + area[w]"
    theirs = pc.ols(pc.release(frame, schema=dropped, loss=PURE), formula, method="wald").bse
    assert all(ours[name] < 1.1 * theirs[name] for name in ("sex[M]", "area[s]", "area[w]"))


def test_components_and_partial_correlations_know_levels_that_are_redundant():
    frame = settled(people(5000))
    frame["age"] = frame["age"] + 20 * (frame["sex"] == "F")
    release = pc.release(frame, schema=schema_of(), loss=pc.PureDP(epsilon=5, neighbours="replace-one"))
    components = pc.pca(release, rank=6)
    assert components.explained_variance[-1] < 1e-6 * components.explained_variance[0]
    found = partial_correlation(release)
    low, high = found.interval("sex[F]", "age")
    other = found.interval("sex[M]", "age")
    assert found["sex[F]", "age"] == pytest.approx(-found["sex[M]", "age"], abs=1e-6)
    assert (low, high) == pytest.approx((-other[1], -other[0]), abs=1e-6)
    assert low < np.corrcoef(frame["sex"] == "F", frame["age"])[0, 1] < high


def test_new_rows_are_read_by_the_same_rule():
    fit = pc.ols(pc.release(settled(people(2000)), schema=schema_of(), loss=PURE), "age ~ sex + area")
    rows = pd.DataFrame({"sex": ["M", "f", None, "F"], "area": ["w", "?", None, "n"]})
    made = fit.predict(rows)
    assert made[0] == made[1] == made[2] != made[3]


# --- the schema -------------------------------------------------------------------------------------------


def test_a_schema_file_says_it_and_reads_back():
    schema = schema_of()
    assert 'exhaustive = true\notherwise = "M"' in schema.to_toml()
    assert Schema.from_dict(__import__("tomllib").loads(schema.to_toml())) == schema
    assert schema.missing_words == 'midpoint (sex: counts as "M", area: counts as "w")'


@pytest.mark.parametrize(
    ("code", "given"),
    [
        ("E165", {"sex": {"levels": ["F", "M"], "exhaustive": "yes"}}),
        ("E165", {"sex": {"levels": ["F", "M"], "otherwise": "M"}}),
        ("E165", {"sex": {"levels": ["F"], "exhaustive": True, "otherwise": "F"}}),
        ("E165", {"age": {"lower": 0, "upper": 1, "exhaustive": True}}),
        ("E166", {"sex": {"levels": ["F", "M"], "exhaustive": True, "otherwise": "X"}}),
        ("E169", {"sex": {"levels": ["F", "M"], "exhaustive": True}}),
        ("E168", {"sex": {"levels": list(range(1500)), "exhaustive": True, "otherwise": 1}}),
    ],
)
def test_a_declaration_that_cannot_be_kept_is_refused(code, given):
    with pytest.raises(InputError, match=code):
        schema_of(**given)


def test_levels_need_an_intercept_to_add_up_to():
    with pytest.raises(InputError, match="E167"):
        Schema.from_dict({"columns": {"sex": SEX}, "intercept": False})


def test_what_exhaustive_levels_save_is_stated():
    schema = schema_of()
    found = saving(schema)
    assert found is not None
    assert found.columns == 2
    assert found.noise == pytest.approx(float(schema.squared_norm_bound) / 4)


@pytest.mark.long
def test_a_plan_knows_what_is_saved():
    schema, loss = schema_of(), pc.ZCDP(rho="0.1", neighbours="replace-one")
    ours, plain = (
        pc.plan(schema=s, rows=5000, loss=loss, mechanisms=["gaussian"]) for s in (schema, plainly(schema))
    )
    assert [c.column for c in ours.columns()] == [c.column for c in plain.columns()]
    for one, other in zip(ours.columns(), plain.columns(), strict=True):
        assert one.mean < 0.85 * other.mean
    assert ours.outlook().low < plain.outlook().low


def test_guesses_are_completed_so_that_levels_add_up():
    schema = schema_of()
    guess = {
        "columns": {"sex": {"shares": [0.6, 0.3]}, "area": {"shares": [0.2, 0.3, 0.5]}},
        "correlations": {"sex[F], age": "0.3"},
    }
    moments = PublicMoments.guessed(schema, guess)
    matrix = moments.matrix
    assert np.allclose(matrix[1] + matrix[2], matrix[0])
    assert matrix[0, 2] == pytest.approx(0.4)
    again = moments.pretend(rows=10**6, loss=PURE, law=None).second_moment(raw=True, scaled=True) / 10**6
    assert np.allclose(again, matrix, atol=1e-4)
    made = pc.surrogate(people(), schema=schema)
    assert np.allclose(made.matrix, recovered(people(), schema) / 300)
    assert math.isclose(made.matrix[0, 1:3].sum(), 1, abs_tol=1e-4)
