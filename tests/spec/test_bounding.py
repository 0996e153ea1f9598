"""The row-local map: exact norms, the obvious reference, and checks that reject broken variants."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from privcov.schema import Categorical, Numeric, Schema
from privcov.schema.grid import Grid
from privcov.summing.bounding import Bounding, Clip
from privcov.summing.sum import sum_rows
from privcov.table import open_table
from privcov.table.blocks import Block

NORMS = (0.3, 1, 7)


def numeric_schema(columns: int, row_norm_bound: float | None = None, **rules: Any) -> Schema:
    bounds = {f"x{place}": {"lower": -3 - place, "upper": 5 + place / 7} for place in range(columns)}
    more = {} if row_norm_bound is None else {"row_norm_bound": row_norm_bound}
    return Schema.from_dict({"columns": bounds, **more, **rules})


def mixed_schema(row_norm_bound: float | None = None, **rules: Any) -> Schema:
    columns = {
        "a": {"lower": 0, "upper": 10},
        "s": {"levels": ["F", "M", "D"]},
        "b": {"lower": -1e-3, "upper": 1e6},
        "c": {"lower": -1, "upper": 1},
        "k": {"levels": [1, 2.5]},
    }
    more = {} if row_norm_bound is None else {"row_norm_bound": row_norm_bound}
    return Schema.from_dict({"columns": columns, **more, **rules})


def own_rules(row_norm_bound: float | None = None, **rules: Any) -> Schema:
    """Every rule for missing cells, in columns of both kinds."""
    columns = {
        "a": {"lower": 0, "upper": 10, "missing": "indicator"},
        "s": {"levels": ["F", "M", "D"], "missing": "indicator"},
        "b": {"lower": -1e-3, "upper": 1e6, "fill": 12.5},
        "c": {"lower": -1, "upper": 1, "missing": "zero-row"},
        "k": {"levels": [1, 2.5], "fill": 2.5},
        "e": {"lower": -7, "upper": 1, "missing": "indicator"},
        "f": {"lower": -7, "upper": 1},
        "m": {"levels": ["x"], "missing": "midpoint"},
    }
    more = {} if row_norm_bound is None else {"row_norm_bound": row_norm_bound}
    return Schema.from_dict({"columns": columns, **more, **rules})


def numeric_indicators(row_norm_bound: float | None = None, **rules: Any) -> Schema:
    columns = {f"x{n}": {"lower": -n, "upper": 1, "missing": "indicator"} for n in range(3)}
    more = {} if row_norm_bound is None else {"row_norm_bound": row_norm_bound}
    return Schema.from_dict({"columns": {**columns, "y": {"lower": 0, "upper": 1}}, **more, **rules})


def framed(row_norm_bound: float | None = None, **rules: Any) -> Schema:
    """Columns with a centre off the middle and a unit of their own: some cells are tens of units long."""
    columns = {
        "x": {"lower": 0, "upper": 1000, "centre": 37.5, "scale": 11.25},
        "k": {"levels": ["a", "b"]},
        "y": {"lower": -5, "upper": 1, "scale": 40, "fill": 0.5},
        "z": {"lower": 0, "upper": 1e6, "centre": 1, "scale": 3, "missing": "indicator"},
        "w": {"lower": 0, "upper": 1},
    }
    more = {} if row_norm_bound is None else {"row_norm_bound": row_norm_bound}
    return Schema.from_dict({"columns": columns, **more, **rules})


SCHEMAS = {
    "framed": framed(2.65),
    "framed, norm 9": framed(9),
    "framed, no norm": framed(),
    "framed, norm 1": framed(1),
    "framed, zero-row": framed(3, missing="zero-row"),
    **{f"{d} numbers, norm {norm}": numeric_schema(d, norm) for d in (1, 2, 7, 60) for norm in NORMS},
    "numbers, default norm": numeric_schema(5),
    "no intercept": numeric_schema(6, 1.5, intercept=False),
    **{f"mixed, norm {norm}": mixed_schema(norm) for norm in (*NORMS, 1.5, 1.9)},
    "mixed, default norm": mixed_schema(),
    "mixed, zero-row": mixed_schema(1.9, missing="zero-row"),
    "numbers, zero-row": numeric_schema(4, 1.2, missing="zero-row"),
    "bound equals the indicators": mixed_schema("1.7320508", intercept=True),
    "own rules": own_rules(),
    "own rules, norm 2.1": own_rules(2.1),
    "own rules, norm 2.45": own_rules(2.45),
    "own rules, norm 1": own_rules(1),
    "own rules in a table of zero rows": own_rules(2.6, missing="zero-row"),
    "indicators side by side": numeric_indicators(1.8),
    "indicators without a bound": numeric_indicators(),
    "indicators, no intercept": numeric_indicators(1.75, intercept=False),
    "only levels": Schema.from_dict({"columns": {"k": {"levels": [1, 2]}, "s": {"levels": ["a"]}}}),
}


def adversarial_block(schema: Schema, rows: int, seed: int = 0) -> Block:
    """Random bit patterns, subnormals, huge and non-finite numbers, box corners, codes of all sorts."""
    random = np.random.default_rng(seed)
    special = np.array(
        [0.0, -0.0, 5e-324, -5e-324, 1e-308, 1.7e308, -1.7e308, 1e300, np.inf, -np.inf, np.nan]
    )
    block = []
    for column in schema.columns:
        if isinstance(column, Categorical):
            codes = random.integers(-2, len(column.levels) + 1, rows).astype(float)
            block.append(np.where(random.random(rows) < 0.1, np.nan, codes))
            continue
        bits = random.integers(0, 2**64, rows, dtype=np.uint64).view(np.float64)
        inside = random.uniform(column.lower, column.upper, rows)
        corner = random.choice([column.lower, column.upper, column.middle], rows)
        near = np.nextafter(corner, random.choice([-np.inf, np.inf], rows))
        normal = random.normal(column.middle, 3 * column.half_width, rows)
        choice = random.integers(0, 6, rows)
        made = np.select(
            [choice == n for n in range(5)],
            [bits, inside, corner, near, normal],
            random.choice(special, rows),
        )
        block.append(made)
    half = rows // 2  # half of the rows keep to the box, so that long rows are not all wild
    return [
        np.where(np.arange(rows) < half, np.nan_to_num(c, posinf=0, neginf=0).clip(-1e7, 1e7), c)
        for c in block
    ]


def reference_row(schema: Schema, grid: Grid, cells: Sequence[float]) -> list[int]:
    """One row with Python numbers only, step by step as the proof page says."""
    one = 2**grid.exponent
    made: list[int] = [one] if schema.intercept else []
    shrinkable = [not schema.keeps_indicators] if schema.intercept else []
    fixed = schema.intercept
    for column, cell in zip(schema.columns, cells, strict=True):
        absent = not math.isfinite(cell)
        if absent and column.missing is None and column.fill is None and schema.missing == "zero-row":
            return [0] * schema.dimension
        if absent and column.missing == "zero-row":
            return [0] * schema.dimension
        if isinstance(column, Numeric):
            value = (column.middle if column.fill is None else column.fill) if absent else cell
            step = column.half_width / column.reach / one
            most, ends = math.floor(column.reach * one), (column.lower, column.upper)
            low, high = (min(most, max(-most, round((end - column.middle) / step))) for end in ends)
            made.append(round(min(high, max(low, (float(value) - column.middle) / step))))
            shrinkable.append(True)
            fixed += absent and column.missing == "indicator"
        else:
            value = column.levels.index(column.fill) if absent and column.fill is not None else cell
            made += [one if value == position else 0 for position in range(len(column.levels))]
            shrinkable += [not schema.keeps_indicators] * len(column.levels)
            fixed += 1
        if column.missing == "indicator":
            made.append(one if absent else 0)
            shrinkable.append(not schema.keeps_indicators)
    fixed = fixed * one**2 if schema.keeps_indicators else 0
    available = grid.squared_norm_bound - fixed
    squared = sum(q * q for q, free in zip(made, shrinkable, strict=True) if free)
    if squared > available:
        half_diagonal = math.ceil(math.sqrt(sum(shrinkable)) / 2)
        radius = max(0, math.isqrt(available) - half_diagonal - 2)
        factor = radius / math.sqrt(squared)
        made = [round(q * factor) if free else q for q, free in zip(made, shrinkable, strict=True)]
    return made if sum(q * q for q in made) <= grid.squared_norm_bound else [0] * len(made)


def norms_hold(rows: np.ndarray, grid: Grid) -> bool:
    """Every row is whole and its squared norm, in Python integers, is within the bound."""
    if not np.isfinite(rows).all() or (rows != np.rint(rows)).any():
        return False
    whole = rows.astype(np.int64)
    return all(sum(int(q) ** 2 for q in row) <= grid.squared_norm_bound for row in whole[_longest(whole)])


def _longest(whole: np.ndarray) -> Any:
    """The rows worth an exact look: floats cannot be wrong by one part in a million."""
    approximate = (whole.astype(float) ** 2).sum(axis=1)
    return approximate >= approximate.max(initial=0) * (1 - 1e-6)


def agrees_with_reference(rows: np.ndarray, bounding: Bounding, block: Block) -> bool:
    expected = [reference_row(bounding.schema, bounding.grid, row) for row in zip(*block, strict=True)]
    return bool(rows.astype(np.int64).tolist() == expected)


def rows_alone(bounding: Bounding, block: Block) -> Iterator[list[float]]:
    for place in range(len(block[0])):
        yield bounding.rows([cells[place : place + 1] for cells in block])[0].tolist()


@pytest.mark.parametrize("cell", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("matrix", [False, True])
def test_one_missing_cell_among_thousands_is_seen_wherever_it_is(cell: float, matrix: bool) -> None:
    bounding, random = Bounding.of(numeric_schema(5)), np.random.default_rng(3)
    cells = random.normal(size=(5, 8192))
    expected = bounding.rows(list(cells)).copy()
    for column, row in [(0, 0), (4, 8191), *random.integers(0, [5, 8192], size=(40, 2)).tolist()]:
        with_one = cells.copy()
        with_one[column, row] = cell
        found = bounding.rows(with_one if matrix else list(with_one))
        assert found[row, column + 1] == 0.0
        found[row, column + 1] = expected[row, column + 1]
        assert np.array_equal(found, expected)


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_matrix_of_cells_is_the_same_block(name: str) -> None:
    schema = SCHEMAS[name]
    block, bounding = adversarial_block(schema, 300), Bounding.of(schema)
    matrix, expected = np.stack(block), bounding.rows(block)
    assert np.array_equal(bounding.rows(matrix), expected)
    assert np.array_equal(bounding.rows(np.asfortranarray(matrix)), expected)
    assert np.array_equal(bounding.rows(matrix, 40, 90), expected[40:90])
    assert np.array_equal(bounding.rows(block, 40, 90), expected[40:90])


@pytest.mark.parametrize("name", SCHEMAS)
def test_constant_timing_takes_every_step_and_gives_the_same_integers(name: str) -> None:
    schema = SCHEMAS[name]
    quick, constant = (
        Bounding.of(replace(schema, file=replace(schema.file, timing=timing)))
        for timing in ("quick", "constant")
    )
    hostile = adversarial_block(schema, 300)
    # Rows of one middle, which need no step, and few others among them.
    calm = [np.full(300, column.middle if isinstance(column, Numeric) else 0.0) for column in schema.columns]
    few = [np.concatenate([cells[:290], other[:10]]) for cells, other in zip(calm, hostile, strict=True)]
    for block in (hostile, calm, few):
        assert np.array_equal(constant.rows(block), quick.rows(block))


@pytest.mark.parametrize("name", SCHEMAS)
def test_no_adversarial_row_exceeds_the_exact_norm_bound(name: str) -> None:
    bounding = Bounding.of(SCHEMAS[name])
    for seed in range(3):
        rows = bounding.rows(adversarial_block(bounding.schema, 8_000, seed))
        assert norms_hold(rows, bounding.grid)


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_row_is_what_the_slow_reference_makes_of_it(name: str) -> None:
    bounding = Bounding.of(SCHEMAS[name])
    block = adversarial_block(bounding.schema, 400, seed=7)
    assert agrees_with_reference(bounding.rows(block), bounding, block)


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_row_is_the_same_alone_and_in_company(name: str) -> None:
    bounding = Bounding.of(SCHEMAS[name])
    block = adversarial_block(bounding.schema, 60, seed=3)
    assert bounding.rows(block).tolist() == list(rows_alone(bounding, block))


@pytest.mark.parametrize("norm", [None, 1, 7])
def test_rows_are_near_what_exact_rationals_give(norm: float | None) -> None:
    bounding = Bounding.of(numeric_schema(3, norm))
    schema, grid = bounding.schema, bounding.grid
    random = np.random.default_rng(1)
    block = [random.uniform(-9, 9, 200) for _ in schema.columns]
    limit = schema.squared_norm_bound - 1
    for row, cells in zip(bounding.rows(block).tolist(), zip(*block, strict=True), strict=True):
        ideal = []
        for column, cell in zip(schema.columns, cells, strict=True):
            lower, upper = Fraction(column.lower), Fraction(column.upper)  # type: ignore[union-attr]
            ideal.append(
                min(Fraction(1), max(Fraction(-1), (2 * Fraction(cell) - lower - upper) / (upper - lower)))
            )
        squared = sum(x * x for x in ideal)
        shrink = 1.0 if squared <= limit else math.sqrt(limit / squared)
        for made, wanted in zip(row[1:], ideal, strict=True):
            assert abs(made - float(wanted) * shrink * 2**grid.exponent) <= 5
        assert row[0] == 2**grid.exponent


def test_the_norm_check_rejects_rows_that_were_never_clipped() -> None:
    bounding = Bounding.of(numeric_schema(7, 1))
    blind = replace(bounding.grid, squared_norm_bound=2**60)
    block = adversarial_block(bounding.schema, 2_000)
    assert norms_hold(bounding.rows(block), bounding.grid)
    assert not norms_hold(Bounding(schema=bounding.schema, grid=blind, clip=None).rows(block), bounding.grid)


@pytest.mark.parametrize("norm", NORMS)
def test_the_norm_check_rejects_a_clip_without_room_for_rounding(norm: float) -> None:
    schema = numeric_schema(60, norm, intercept=False)
    bounding = Bounding.of(schema)
    assert bounding.clip is not None
    blind = replace(bounding.grid, squared_norm_bound=2**60)
    tight = replace(bounding.clip, radius=math.isqrt(bounding.clip.available) + 1)
    random = np.random.default_rng(0)
    block = [random.normal(column.middle, 9 * column.half_width, 5_000) for column in schema.columns]  # type: ignore[union-attr]
    assert norms_hold(bounding.rows(block), bounding.grid)
    assert not norms_hold(Bounding(schema=schema, grid=blind, clip=tight).rows(block), bounding.grid)


def test_the_norm_check_rejects_rows_that_are_not_whole() -> None:
    bounding = Bounding.of(numeric_schema(2))
    assert not norms_hold(bounding.rows([np.array([0.3]), np.array([0.4])]) / 3, bounding.grid)


def test_a_row_that_is_still_too_long_becomes_the_zero_row() -> None:
    bounding = Bounding.of(numeric_schema(3, 1, intercept=False))
    block = [np.array([100.0, 1.0])] * 3
    unclipped = replace(bounding, clip=None).rows(block)
    assert not unclipped[0].any()
    assert bounding.rows(block)[0].any()


def test_the_reference_comparison_notices_a_wrong_radius() -> None:
    bounding = Bounding.of(numeric_schema(7, 1))
    assert bounding.clip is not None
    block = adversarial_block(bounding.schema, 200)
    wrong = replace(bounding, clip=replace(bounding.clip, radius=bounding.clip.radius - 5))
    assert not agrees_with_reference(wrong.rows(block), bounding, block)


def test_indicators_and_intercept_survive_clipping_when_the_bound_has_room_for_them() -> None:
    bounding = Bounding.of(mixed_schema(1.9))
    rows = bounding.rows(
        [np.array([1e9]), np.array([2.0]), np.array([1e9]), np.array([1e9]), np.array([0.0])]
    )
    one = bounding.one
    assert rows[0, [0, 2, 3, 4, 7, 8]].tolist() == [one, 0, 0, one, one, 0]
    assert 0 < rows[0, 1] < one


def test_a_bound_below_the_indicators_shrinks_the_whole_row() -> None:
    bounding = Bounding.of(mixed_schema(1))
    rows = bounding.rows(
        [np.array([5.0]), np.array([0.0]), np.array([5e5]), np.array([0.0]), np.array([1.0])]
    )
    assert 0 < rows[0, 0] < bounding.one
    assert rows[0, 0] == rows[0, 2] == rows[0, 8]


def test_midpoint_keeps_the_rest_of_a_row_with_a_missing_cell() -> None:
    bounding = Bounding.of(mixed_schema())
    rows = bounding.rows(
        [np.array([np.nan]), np.array([np.nan]), np.array([1e6]), np.array([1.0]), np.array([1.0])]
    )
    one = bounding.one
    assert rows[0].tolist() == [one, 0, 0, 0, 0, one, one, 0, one]


def test_zero_row_blanks_a_row_with_a_missing_cell_but_not_one_with_an_unknown_level() -> None:
    bounding = Bounding.of(mixed_schema(missing="zero-row"))
    unknown = [np.array([10.0]), np.array([-1.0]), np.array([1e6]), np.array([1.0]), np.array([1.0])]
    assert bounding.rows(unknown)[0, 0] == bounding.one
    for place in range(5):
        for absent in (np.nan, np.inf, -np.inf):
            block = [np.array([absent]) if n == place else cells for n, cells in enumerate(unknown)]
            assert not bounding.rows(block).any()


@pytest.mark.parametrize("norm", [None, 2.05, 1.6])
def test_an_indicator_is_one_where_its_number_is_missing_and_the_number_is_then_zero(
    norm: float | None,
) -> None:
    bounding = Bounding.of(numeric_indicators(norm))
    names = [feature.name for feature in bounding.schema.features]
    assert names[:4] == ["(Intercept)", "x0", "x0[missing]", "x1"]
    nan = np.nan
    rows = bounding.rows(
        [np.array([-9.0, nan, nan]), np.array([9.0, 9, nan]), np.array([1.0, nan, 0]), np.ones(3)]
    )
    one, shown = bounding.one, rows[:, [2, 4, 6]]
    kept = norm is None or norm**2 >= 4 - 1e-9
    assert bounding.schema.keeps_indicators == kept
    assert (shown[shown != 0] == (one if kept else shown[shown != 0])).all()
    assert (shown != 0).tolist() == [[False, False, False], [True, False, True], [True, True, False]]
    assert not (rows[:, [1, 3, 5]] * shown).any()


def test_no_clip_is_made_for_indicators_of_a_table_without_a_bound() -> None:
    schema = numeric_indicators()
    assert schema.squared_norm_bound == 5
    assert Clip.of(schema, Grid.of(schema)) is None


def test_the_norm_check_rejects_a_clip_that_forgets_the_indicators() -> None:
    bounding = Bounding.of(numeric_indicators(2.05))
    assert bounding.clip is not None
    assert bounding.schema.keeps_indicators
    blind = replace(bounding.grid, squared_norm_bound=2**60)
    forgetful = replace(bounding.clip, indicators=(), crowded=())
    block = [np.array([np.nan]), np.array([9.0]), np.array([9.0]), np.array([9.0])]
    assert norms_hold(bounding.rows(block), bounding.grid)
    broken = Bounding(schema=bounding.schema, grid=blind, clip=forgetful)
    assert not norms_hold(broken.rows(block), bounding.grid)


def test_a_column_of_zero_rows_takes_the_intercept_from_the_grid_and_others_do_not() -> None:
    # joint-gaussian adds no noise to the count where this flag stands: it must be true of every row.
    for name, schema in SCHEMAS.items():
        block = adversarial_block(schema, 2_000, seed=11)
        rows = Bounding.of(schema).rows(block)
        if Grid.of(schema).intercept:
            assert (rows[:, 0] == Bounding.of(schema).one).all(), name
    own = {"lower": 0, "upper": 1, "missing": "zero-row"}
    assert not Grid.of(Schema.from_dict({"columns": {"a": own}})).intercept
    kept = {**own, "missing": "midpoint"}
    assert Grid.of(Schema.from_dict({"columns": {"a": kept}, "missing": "zero-row"})).intercept


def test_values_beyond_double_range_after_centring_are_clamped_not_missing() -> None:
    schema = Schema.from_dict({"columns": {"x": {"lower": -1e308, "upper": -9e307}}, "missing": "zero-row"})
    bounding = Bounding.of(schema)
    assert bounding.rows([np.array([1.7e308])]).tolist() == [[bounding.one, bounding.one]]


def test_no_clip_is_made_when_no_row_can_be_too_long() -> None:
    assert Clip.of(numeric_schema(5), Grid.of(numeric_schema(5))) is None
    assert Clip.of(numeric_schema(5, 7), Grid.of(numeric_schema(5, 7))) is None
    assert Clip.of(numeric_schema(5, 2), Grid.of(numeric_schema(5, 2))) is not None


def test_no_warning_tells_of_a_huge_value(recwarn: pytest.WarningsRecorder) -> None:
    block = adversarial_block(mixed_schema(1), 500)
    recwarn.clear()
    with np.errstate(all="raise"):
        Bounding.of(mixed_schema(1)).rows(block)
    assert not recwarn.list


def test_an_empty_block_has_no_rows() -> None:
    assert Bounding.of(numeric_schema(3, 1)).rows([np.empty(0)] * 3).shape == (0, 4)


@pytest.mark.parametrize("codes", [[], [-9]], ids=["no code", "missing codes"])
@pytest.mark.parametrize("rule", ["midpoint", "zero-row", "indicator"])
def test_an_array_with_levels_has_the_rows_of_a_frame(codes: list[int], rule: str) -> None:
    """Codes stand beside the array, which is not copied, and not written to; a number may mean a missing cell."""
    columns = {
        "s": {"levels": [3, 1, 2]},
        "a": {"lower": 0, "upper": 9, "missing_values": codes, "missing": rule},
        "t": {"levels": [0, 1], "exhaustive": True, "otherwise": 0},
        "b": {"lower": -1, "upper": 1},
    }
    schema = Schema.from_dict({"columns": columns, "row_norm_bound": 2})
    rng, count = np.random.default_rng(3), 70_000
    cells = {
        "s": rng.choice([1.0, 2.0, 3.0, 4.5, math.nan], count),
        "a": rng.choice([-9.0, 2.5, 8.0, math.nan], count),
        "t": rng.choice([0.0, 1.0, 7.0, math.nan], count),
        "b": rng.normal(size=count),
    }
    array = np.column_stack(list(cells.values()))
    given = array.copy()
    ours, frames = (
        sum_rows(open_table(data, schema), schema, Grid.of(schema)) for data in (given, pa.table(cells))
    )
    assert ours.reveal_to_mechanism().tolist() == frames.reveal_to_mechanism().tolist()
    assert np.array_equal(given, array, equal_nan=True)
