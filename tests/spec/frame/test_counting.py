"""The rounds of a frame: what is counted, how far one person moves it, and the noise that is added."""

from __future__ import annotations

import copy
import json
import math
import pickle
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privcov as pc
from privcov.frame.counting import Means, Radius, Scales, _Noise, ask
from privcov.mechanisms.sensitivity import counts_l1, counts_l2, sums_l2, sums_sup
from privcov.noise.randomness import rehearsal
from privcov.privacy import Neighbours
from privcov.schema import Numeric
from privcov.schema.grid import Grid
from privcov.summing.bounding import Bounding
from privcov.summing.engines import Local

SCHEMA = pc.Schema.from_dict(
    {
        "columns": {
            "age": {"lower": 0, "upper": 100},
            "sex": {"levels": ["F", "M"]},
            "income": {"lower": -10, "upper": 10, "fill": 5},
            "height": {"lower": 1, "upper": 2, "missing": "indicator"},
        }
    }
)
EMPTYING = pc.Schema.from_dict(
    {"columns": {"a": {"lower": 0, "upper": 1}, "b": {"lower": 0, "upper": 1}}, "missing": "zero-row"}
)
EPSILON = pc.PureDP(epsilon="0.3", neighbours="replace-one")


def looks():
    unit = 4 ** Grid.of(SCHEMA).exponent
    edges = tuple(int(square * unit) for square in (0.25, 1.0, 2.0))
    return [
        Scales(schema=SCHEMA),
        Scales(schema=SCHEMA, bins=4),
        Radius(schema=SCHEMA, edges=edges),
        Scales(schema=EMPTYING, bins=8),
        Means(schema=SCHEMA, fills=(70.0, 5.0, 1.25)),
        Means(schema=EMPTYING, fills=(0.1, 0.9)),
    ]


def named(look):
    return f"{look.name} {look.cells} {look.schema.missing}"


def moves(look, moved, neighbours, most):
    """How far sums moved, in the norms that noise is scaled to, over what they may move by."""
    if isinstance(look, Means):
        people = {"largest": look.one, "rows_per_person": most}
        return (
            np.abs(moved).max() / sums_sup(neighbours, **people),
            math.sqrt((moved.astype(float) ** 2).sum())
            / float(sums_l2(neighbours, columns=look.cells, **people)),
        )
    people = {"per_row": look.per_row, "rows_per_person": most}
    return (
        np.abs(moved).sum() / counts_l1(neighbours, **people),
        math.sqrt((moved**2).sum()) / float(counts_l2(neighbours, **people)),
    )


def slow_sums(look, block):
    """The same with Python's integers, one cell after the other."""
    rows = Bounding.of(look.schema).rows(block)
    one = int(Bounding.of(look.schema).one)
    columns = list(look.schema.columns)
    numeric = [i for i, f in enumerate(look.schema.features) if f.kind == "numeric"]
    found = [0] * look.cells
    for line, row in enumerate(rows):
        if look.name == "radius":
            squared = sum(int(row[i]) ** 2 for i in numeric)
            found[sum(edge <= squared for edge in look.edges)] += 1
            continue
        here = [math.isfinite(cells[line]) for cells in block]
        emptied = any(
            not there and look.schema.rule(column) == "zero-row"
            for there, column in zip(here, columns, strict=True)
        )
        places = [place for place, column in enumerate(columns) if isinstance(column, Numeric)]
        for at, (place, feature) in enumerate(zip(places, numeric, strict=True)):
            if look.name == "means":
                column, cell = columns[place], int(row[feature])
                if not here[place] and column.fill is None:
                    cell = round((look.fills[at] - column.middle) / column.half_width * one)
                found[at] += 0 if emptied else cell
                continue
            if emptied or not (here[place] or columns[place].fill is not None):
                continue
            cell = (int(row[feature]) + one) * look.bins // (2 * one)
            found[at * look.bins + min(cell, look.bins - 1)] += 1
    return found


def block_of(look, rng, count=300):
    cells = []
    for column in look.schema.columns:
        if isinstance(column, Numeric):
            wide = rng.uniform(column.lower - 1, column.upper + 1, count)
            wide[:5] = [column.lower, column.upper, math.inf, math.nan, 1e300]
            wide[5] = (column.lower + column.upper) / 2
        else:
            wide = rng.integers(-1, 3, count).astype(float)
        wide[rng.random(count) < 0.1] = math.nan
        cells.append(wide)
    return cells


@pytest.mark.parametrize("look", looks(), ids=named)
def test_sums_are_those_of_the_slow_way(look):
    block = block_of(look, np.random.default_rng(1))
    assert look.sums(Bounding.of(look.schema), block).tolist() == slow_sums(look, block)


@pytest.mark.parametrize("inside", [True, False], ids=["within bounds", "beyond them"])
@pytest.mark.parametrize("look", looks(), ids=named)
def test_sums_of_blocks_without_a_missing_number_are_those_of_the_slow_way(look, inside):
    rng = np.random.default_rng(2)
    block = [
        np.where(np.isfinite(cells) & (np.abs(cells) < 1e9), cells, 1.0) for cells in block_of(look, rng)
    ]
    numeric = [place for place, c in enumerate(look.schema.columns) if isinstance(c, Numeric)]
    if inside:
        ends = ((look.schema.columns[place].lower, look.schema.columns[place].upper) for place in numeric)
        for place, (lower, upper) in zip(numeric, ends, strict=True):
            block[place] = block[place].clip(lower, upper)
    bounding = Bounding.of(look.schema)
    assert bounding.plain_numbers(block) is not None
    assert look.sums(bounding, block).tolist() == slow_sums(look, block)
    block[numeric[-1]][7] = math.nan
    assert bounding.plain_numbers(block) is None


def test_a_missing_cell_is_in_no_histogram_and_a_fill_is():
    look = Scales(schema=SCHEMA)
    block = [np.array([math.nan]), np.array([0.0]), np.array([math.nan]), np.array([math.nan])]
    counts = look.sums(Bounding.of(SCHEMA), block).reshape(3, 16)
    assert counts.sum(axis=1).tolist() == [0, 1, 0]
    assert counts[1].argmax() == 12  # 5 in [-10, 10]


def test_a_row_that_counts_as_zeros_is_in_no_histogram():
    look = Scales(schema=EMPTYING, bins=4)
    block = [np.array([0.9, 0.9]), np.array([math.nan, 0.1])]
    assert look.sums(Bounding.of(EMPTYING), block).tolist() == [0, 0, 0, 1, 1, 0, 0, 0]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 5), st.integers(0, 2**32), st.sampled_from(list(Neighbours)), st.integers(1, 3))
def test_one_person_moves_counts_by_no_more_than_the_sensitivity(which, seed, neighbours, most):
    """Rows of one person, in either table, through the whole map: never beyond the bounds that noise is scaled to."""
    look, rng = looks()[which], np.random.default_rng(seed)
    bounding = Bounding.of(look.schema)
    before = look.sums(bounding, [cells[:most] for cells in block_of(look, rng)])
    after = look.sums(bounding, [cells[:most] for cells in block_of(look, rng)])
    moved = after - before if neighbours is Neighbours.REPLACE_ONE else before
    assert max(moves(look, moved, neighbours, most)) <= 1 + 1e-12


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("most", [1, 3])
@pytest.mark.parametrize("look", [looks()[0], looks()[4]], ids=named)
def test_the_sensitivity_is_attained(look, neighbours, most):
    bounding = Bounding.of(SCHEMA)
    low = look.sums(bounding, [np.full(most, value) for value in (0.0, 0.0, -10.0, 1.0)])
    high = look.sums(bounding, [np.full(most, value) for value in (100.0, 0.0, 10.0, 2.0)])
    moved = high - low if neighbours is Neighbours.REPLACE_ONE else low
    assert moves(look, moved, neighbours, most) == pytest.approx((1, 1))


def test_the_noise_is_that_of_the_promise():
    look = Scales(schema=SCHEMA)
    assert look.noise(EPSILON) == 20  # 2·3 counts move, over 0.3
    rho = pc.ZCDP(rho="0.02", neighbours="add-remove")
    assert float(look.noise(rho)) == pytest.approx(math.sqrt(3) / math.sqrt(0.04))
    assert look.noise(rho) ** 2 >= Fraction(3) / Fraction("0.04")
    assert look.std(EPSILON) == pytest.approx(20 * math.sqrt(2))


@pytest.mark.parametrize(
    "loss", [EPSILON, pc.ZCDP(rho="0.02", neighbours="replace-one")], ids=["pure", "zcdp"]
)
def test_answers_are_counts_plus_noise_of_the_stated_spread(loss):
    """2,000 cells of noise: the variance within 25 % (7 standard errors for Laplace; false alarm below 1e-11)."""
    schema = pc.Schema.from_dict({"columns": {f"c{i}": {"lower": 0, "upper": 1} for i in range(125)}})
    look = Scales(schema=schema)
    data = np.full((7, 125), 0.99)
    (answer,), rows = ask([(look, loss)], data, schema=schema, randomness=rehearsal(1), engine=Local())
    assert rows == 7
    noise = np.array(answer.answers, dtype=float).reshape(125, 16)
    noise[:, 15] -= 7
    assert noise.var() == pytest.approx(look.std(loss) ** 2, rel=0.25)
    assert abs(noise.mean()) < 6 * look.std(loss) / math.sqrt(2000)


@pytest.mark.parametrize(
    "loss", [EPSILON, pc.ZCDP(rho="0.02", neighbours="replace-one")], ids=["pure", "zcdp"]
)
def test_sums_have_noise_of_the_stated_spread(loss):
    """300 draws of 3 sums, fixed streams: the variance within 25 %, about 4 standard errors of pure noise."""
    look = looks()[4]
    drawn = np.array([look.draw(loss, rehearsal(seed)) for seed in range(300)], dtype=float)
    assert (drawn**2).mean() == pytest.approx(look.std(loss) ** 2, rel=0.25)
    assert look.noise(loss) >= 2 * look.one * (1 / loss.epsilon if loss is EPSILON else 5 * Fraction(17, 10))


def test_several_questions_are_one_reading():
    """The answers to two questions at once are those to one after the other, for the same noise."""
    data = pa.table({"age": [1.0, 50.0], "sex": ["F", "M"], "income": [1.0, None], "height": [1.5, None]})
    stream, facts = rehearsal(3), {"schema": SCHEMA, "engine": Local()}
    apart = [ask([(look, EPSILON)], data, randomness=stream, **facts)[0][0] for look in looks()[2:5:2]]
    together, rows = ask([(look, EPSILON) for look in looks()[2:5:2]], data, randomness=rehearsal(3), **facts)
    assert list(together) == apart
    assert rows == 2


def test_counts_do_not_depend_on_who_counts(tmp_path):
    """An array, a CSV file in pieces, a Parquet file and another order of rows: the same answers for the same noise."""
    rng = np.random.default_rng(2)
    rows = rng.uniform(-0.2, 1.2, (5000, 2))
    schema = pc.Schema.from_dict({"columns": {name: {"lower": 0, "upper": 1} for name in "ab"}})
    (tmp_path / "t.csv").write_text("a,b\n" + "".join(f"{a!r},{b!r}\n" for a, b in rows.tolist()))
    parquet.write_table(
        pa.table({"a": rows[:, 0], "b": rows[:, 1]}), tmp_path / "t.parquet", row_group_size=700
    )
    look = Scales(schema=schema)
    also = Means(schema=schema, fills=(0.5, 0.5))
    priced = [(look, EPSILON), (also, EPSILON)]
    found = {
        ask(priced, data, schema=schema, randomness=rehearsal(5), engine=Local(workers=2))[0]
        for data in (rows, rows[::-1], str(tmp_path / "t.csv"), str(tmp_path / "t.parquet"))
    }
    assert len(found) == 1


def test_noise_is_sealed_and_gone_after_its_use():
    noise = _Noise([looks()[0].draw(EPSILON, rehearsal(1))])
    for look_at in (repr, str, copy.copy, pickle.dumps, np.asarray):
        with pytest.raises(TypeError):
            look_at(noise)
    noise.added_to([[0] * looks()[0].cells])
    assert noise.integers == []


@pytest.mark.parametrize(("which", "sent"), [(0, [9] * 48), (0, [1, -1] * 24), (4, [2**40] * 3)])
def test_a_worker_that_sends_what_no_rows_have_is_refused(which, sent, monkeypatch):
    monkeypatch.setattr(
        "privcov.frame.counting.sum_fragment",
        lambda fragment, schema, looks, report=None: (1, json.dumps([sent]).encode()),
    )
    with pytest.raises(pc.errors.InternalError):
        ask(
            [(looks()[which], EPSILON)],
            pa.table({"age": [1.0], "sex": ["F"], "income": [1.0], "height": [1.5]}),
            schema=SCHEMA,
            randomness=rehearsal(1),
            engine=Local(),
        )
