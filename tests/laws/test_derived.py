"""Laws of derived columns: what an expression means, that no value leaves its bounds, and that a row is alone."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from privcov.errors import InputError
from privcov.schema import Schema, elementary
from privcov.schema.columns import Numeric
from privcov.schema.derived import Recipe
from privcov.schema.dialect import RFC_4180, Dialect, moment
from privcov.schema.expressions import Node, parse, same
from privcov.table.cells import cells

BOUNDS = {"a": (-3.0, 7.5), "b": (0.25, 2.0), "c": (-1e6, 1.0)}
SOURCES = tuple(Numeric(name=name, lower=low, upper=high) for name, (low, high) in BOUNDS.items())
WILD = st.floats(allow_nan=True, allow_infinity=True)
CELLS = st.one_of(WILD, st.floats(-10, 10), st.sampled_from([-3.0, 7.5, 0.25, 2.0, 1.0, 0.0, -0.0, 0.1]))

NUMBERS = st.sampled_from(["0", "1", "2.5", "1e-3", "-4", ".1"])
LEAVES = st.one_of(st.sampled_from(list(BOUNDS)), NUMBERS)


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    two = st.tuples(inner, inner)
    return st.one_of(
        *(two.map(lambda p, m=mark: f"({p[0]} {m} {p[1]})") for mark in ("+", "-", "*", "<", ">=", "==")),
        two.map(lambda p: f"{p[0]} / (abs({p[1]}) + 0.5)"),
        two.map(lambda p: f"min({p[0]}, {p[1]})"),
        two.map(lambda p: f"max({p[0]}, -({p[1]}))"),
        two.map(lambda p: f"(not ({p[0]} < 1) or {p[1]} > 0 and {p[0]} != {p[1]})"),
        inner.map(lambda p: f"({p})^2"),
        inner.map(lambda p: f"({p}) ** 3"),
        inner.map(lambda p: f"sqrt({p})"),
    )


EXPRESSIONS = st.recursive(LEAVES, _larger, max_leaves=8)


def value(node: Node, row: dict[str, float | None]) -> float | None:
    """What an expression is in one row: slow, in Python's own numbers; None where it is missing."""
    if node.op == "number":
        return float(node.value)
    if node.op == "column":
        return row[str(node.value)]
    given = [value(part, row) for part in node.parts]
    if any(one is None for one in given):
        return None
    x, y = (*given, None)[:2]
    assert x is not None
    if node.op == "^":
        power = int(float(node.value))
        return x * x if power == 2 else x * x * x
    if node.op == "sqrt":
        return None if x < 0 else math.sqrt(x)
    if node.op == "negative":
        return -x
    if node.op == "not":
        return 1.0 - x
    if node.op == "abs":
        return abs(x)
    assert y is not None
    ways = {
        "+": lambda: x + y, "-": lambda: x - y, "*": lambda: x * y, "/": lambda: x / y, "min": lambda: min(x, y),
        "max": lambda: max(x, y), "and": lambda: min(x, y), "or": lambda: max(x, y), "<": lambda: float(x < y),
        ">": lambda: float(x > y), ">=": lambda: float(x >= y), "==": lambda: float(x == y),
        "!=": lambda: float(x != y),
    }  # fmt: skip
    return float(ways[node.op]())


def clipped(row: list[float]) -> dict[str, float | None]:
    pairs = zip(BOUNDS.items(), row, strict=True)
    return {n: min(max(cell, low), high) if math.isfinite(cell) else None for (n, (low, high)), cell in pairs}


def recipe_of(text: str) -> Recipe:
    try:
        return Recipe.of(SOURCES, (("d", text),))
    except InputError as reason:
        assume(
            reason.code not in ("E173", "E175")
        )  # a comparison of conditions, a constant, or a huge number
        raise


@settings(max_examples=50, deadline=None)
@given(text=EXPRESSIONS, rows=st.lists(st.tuples(CELLS, CELLS, CELLS).map(list), min_size=1, max_size=6))
def test_an_expression_is_what_the_slow_reference_says_bit_for_bit_and_within_its_bounds(text, rows):
    recipe = recipe_of(text)
    (made,) = recipe.derived(np.array(rows).T)
    found = recipe.ranges["d"]
    for row, cell in zip(rows, made.tolist(), strict=True):
        expected = value(parse(text), clipped(row))
        assert math.isnan(cell) if expected is None else cell == expected, (text, row)
        assert expected is None or found.lower <= cell <= found.upper, (text, row, found)


@settings(max_examples=50, deadline=None)
@given(text=EXPRESSIONS)
def test_an_expression_has_one_text_and_it_is_read_as_the_same(text):
    node = parse(text)
    assert parse(str(node)) == node
    assert str(parse(str(node))) == str(node)
    assert same(parse(str(node))) == same(node)


@settings(max_examples=40, deadline=None)
@given(
    low=st.floats(-1e6, 1e6), width=st.floats(1e-6, 1e6), other=st.floats(0.5, 1e3),
    part=st.floats(0, 1), power=st.integers(2, 16),
)  # fmt: skip
def test_no_true_value_leaves_the_interval_either(low, width, other, part, power):
    x = Fraction(low) + Fraction(part) * Fraction(low + width - low)
    sources = (
        Numeric(name="x", lower=low, upper=low + width),
        Numeric(name="y", lower=other, upper=2 * other),
    )
    y = Fraction(other) * (1 + Fraction(part))
    assume(x <= Fraction(low + width))
    texts = (
        "x + y",
        "x - y",
        "x * y",
        "x / y",
        "x * x * y",
        "abs(x)",
        "min(x, y)",
        "max(x, -y)",
        f"x^{power}",
    )
    true = (x + y, x - y, x * y, x / y, x * x * y, abs(x), min(x, y), max(x, -y), x**power)
    for text, exact in zip(texts, true, strict=True):
        try:
            found = Recipe.of(sources, (("d", text),)).ranges["d"]
        except InputError:  # beyond 10^100
            assume(abs(exact) < 10**90)
            raise
        assert Fraction(found.lower) <= exact <= Fraction(found.upper), text


RICH = {
    "l": "log(x + 1)",
    "ll": "log(z, 1)",
    "e": "exp(y / 3)",
    "r": "sqrt(z)",
    "q": "x^7 - y",
    "p": "poly(x, 5)",
    "s": "bs(x, 9)",
    "t": "bs(z, 3)",
    "c": "cut(z, -5, 0, 0.5, 12)",
    "f": "(s == 'F') * x",
    "w": "x / (abs(z) + 1e-3)",
    "yr": "year(d)",
    "mo": "month(d)",
    "wd": "weekday(d)",
    "h": "hour(d)",
    "st": "max(days(d - '2021-03-04T05:06:07.25'), 0)",
}
RICH_SCHEMA = Schema.from_dict(
    {
        "columns": {
            "x": {"lower": 0, "upper": 2e5},
            "y": {"lower": -20, "upper": 20, "fill": 3},
            "z": {"lower": -7, "upper": 300},
            "s": {"levels": ["F", "M"]},
            "d": {"lower": "1990-01-01", "upper": "2030-12-31", "feature": False},
        },
        "derived": RICH,
    }
)
RANDOM = np.random.default_rng(7)


def rich_cells(rows: int) -> list[Any]:
    """Cells within, at and beyond the bounds, and missing ones."""
    made = []
    for column in RICH_SCHEMA.sources:
        if not isinstance(column, Numeric):
            made.append(RANDOM.choice([0.0, 1.0, -1.0, np.nan], rows))
            continue
        width = column.upper - column.lower
        drawn = RANDOM.uniform(column.lower - 0.1 * width, column.upper + 0.1 * width, rows)
        ends = [
            column.lower,
            column.upper,
            np.nextafter(column.lower, np.inf),
            np.nextafter(column.upper, -np.inf),
        ]
        odd = RANDOM.choice([*ends, np.nan, np.inf, -np.inf, 1e308, 0.0, 1.0, column.lower + width / 2], rows)
        made.append(np.where(RANDOM.random(rows) < 0.3, odd, drawn))
    return made


def test_no_row_leaves_the_bounds_so_the_clip_that_follows_never_acts():
    recipe = RICH_SCHEMA.recipe
    made = dict(zip(recipe.ranges, recipe.derived(rich_cells(8_000)), strict=True))
    for column in RICH_SCHEMA.columns:
        if column.expression is None:
            continue
        there = made[column.name][np.isfinite(made[column.name])]
        assert len(there) > 2_000
        if isinstance(column, Numeric):
            assert column.lower <= there.min(), column.name
            assert there.max() <= column.upper, column.name
            if (
                column.name[0] not in "swtq" and column.name != "p_4"
            ):  # whose bounds are near, and not reached
                assert there.min() <= column.lower + 0.01 * (column.upper - column.lower), column.name
        else:
            assert set(there) == set(range(len(column.levels)))


def bits(made: Any) -> bytes:
    """All bits but those of a missing cell: NaN has many, and none of them reaches a sum."""
    return np.where(np.isnan(made), np.nan, made).tobytes()


@pytest.mark.parametrize("step", [1, 3, 8, 31])
def test_a_cell_has_the_same_bits_wherever_its_row_stands_and_whatever_stands_beside_it(step):
    recipe, rows = RICH_SCHEMA.recipe, 8_192 + 77
    given = rich_cells(rows)
    whole = recipe.derived(given)
    if step < 31:
        parts = [recipe.derived([column[at : at + step] for column in given]) for at in range(0, 240, step)]
        whole = whole[:, : parts[0].shape[1] * (len(parts) - 1) + parts[-1].shape[1]]
    else:  # in another order, and at another place in memory
        order = RANDOM.permutation(rows)
        parts = [
            recipe.derived([np.ascontiguousarray(column[order]) for column in given])[:, np.argsort(order)]
        ]
        strided = np.stack(given, axis=1)  # columns that are not contiguous
        assert bits(recipe.derived(strided.T)) == bits(whole)
    assert bits(np.concatenate(parts, axis=1)) == bits(whole)


def test_logarithm_and_exponential_are_within_their_error_of_the_true_ones():
    numbers = np.concatenate(
        [
            RANDOM.uniform(0.4, 3, 500),
            np.exp(RANDOM.uniform(-229, 229, 500)),
            1 + RANDOM.normal(size=500) * 1e-9,
            [elementary.SMALLEST, 1.0, 2.0, 2**0.5, 2**-0.5, 0.7071067811865475, 1e100],
        ]
    )
    powers = np.concatenate([RANDOM.uniform(-600, 229, 1_000), RANDOM.normal(size=500) * 1e-9, [0.0, 230.0]])
    with localcontext() as context:
        context.prec = 60
        for x, made in zip(numbers.tolist(), elementary.log(numbers).tolist(), strict=True):
            true = Decimal(x).ln()
            assert abs(Decimal(made) - true) <= Decimal(elementary.ERROR) * abs(true)
        for x, made in zip(powers.tolist(), elementary.exp(powers).tolist(), strict=True):
            true = Decimal(x).exp()
            assert abs(Decimal(made) - true) <= Decimal(elementary.ERROR) * true
    assert np.isnan(elementary.log(np.array([0.0, -0.0, -1.0, -1e300, np.nan, -np.inf]))).all()


def test_polynomials_are_orthogonal_over_the_range_and_splines_are_those_of_scipy():
    from scipy.interpolate import BSpline
    from scipy.special import eval_legendre

    source = (Numeric(name="x", lower=-2, upper=10),)
    x = np.linspace(-2, 10, 4_001)
    for count in (3, 4, 9, 16):
        names = [(f"p{place}", f"poly(x, {count}, {place})") for place in range(1, count + 1)]
        names += [(f"s{place}", f"bs(x, {count}, {place})") for place in range(1, count + 1)]
        made = dict(zip([n for n, _ in names], Recipe.of(source, tuple(names)).derived([x]), strict=True))
        inner = np.linspace(-2, 10, count - 1)
        knots = np.concatenate([[-2.0] * 3, inner, [10.0] * 3])
        for place in range(1, count + 1):
            np.testing.assert_allclose(made[f"p{place}"], eval_legendre(place, (x - 4) / 6), atol=1e-12)
            own = BSpline(knots, np.eye(count + 1)[place], 3)(x)
            np.testing.assert_allclose(made[f"s{place}"], own, atol=1e-11)


def test_the_calendar_is_that_of_python():
    source = (Numeric(name="d", lower=moment("0001-01-01"), upper=moment("9999-12-31"), date=True),)
    names = tuple((word, f"{word}(d)") for word in ("year", "month", "weekday", "hour"))
    seconds = np.floor(RANDOM.uniform(source[0].lower, source[0].upper, 3_000))
    seconds[:8] = [moment(f"{year}-{day}") for year in (1900, 2000, 2023, 2024) for day in ("02-28", "03-01")]
    made = Recipe.of(source, names).derived([seconds]).T.tolist()
    for at, row in zip(seconds.tolist(), made, strict=True):
        day = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=at)
        assert row == [day.year, day.month, day.isoweekday(), day.hour]


DATES = st.one_of(
    st.datetimes().map(lambda at: at.isoformat()),
    st.dates().map(str),
    st.datetimes().map(lambda at: at.isoformat(" ", "minutes") + "-05:30"),
    st.from_regex(r"\A[0-9]{4}-[0-1][0-9]-[0-3][0-9]([T ][0-2][0-9]:[0-6][0-9](:[0-6][0-9](\.[0-9]{1,10})?)?"
                  r"(Z|[+-][0-2][0-9]:[0-6][0-9])?)?\Z"),
    st.text("0123456789-:T .Z+", max_size=36),
)  # fmt: skip


@settings(max_examples=50, deadline=None)
@given(texts=st.lists(DATES, min_size=1, max_size=8), constant=st.booleans())
def test_many_dates_at_once_are_read_by_the_rule_for_one(texts, constant):
    column = Numeric(name="d", lower=0, upper=1, date=True)
    dialect = Dialect(timing="constant") if constant else RFC_4180
    found = cells(column, pa.array([*texts, None]), dialect=dialect)
    expected = [moment(text.strip()) for text in texts] + [None]
    assert [None if math.isnan(one) else one for one in found.tolist()] == expected


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_a_moment_is_the_same_number_in_every_type(unit):
    column = Numeric(name="d", lower=0, upper=1, date=True)
    digits = {"s": 0, "ms": 3, "us": 6, "ns": 9}[unit]
    counts = RANDOM.integers(-(2**31), 2**31, 500) * 10**digits + RANDOM.integers(0, 10**digits, 500)
    typed = cells(column, pa.array(counts, pa.timestamp(unit)))
    texts = [
        (datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=int(count // 10**digits))).isoformat()
        + (f".{count % 10**digits:0{digits}d}" if digits else "")
        for count in counts.tolist()
    ]
    assert typed.tolist() == cells(column, pa.array(texts)).tolist()
    assert all(a != b for a, b in pairwise(typed.tolist()))
