"""The exact Gram matrix: right integers in every order, and silence about them."""

from __future__ import annotations

import copy
import json
import logging
import pickle
from collections.abc import Callable

import numpy as np
import pytest

from privcov.schema import Schema
from privcov.schema.grid import BLOCK_ROWS, Grid
from privcov.summing.bounding import Bounding
from privcov.summing.check import Check
from privcov.summing.gram import Gram, Stack
from privcov.summing.sum import sum_rows
from privcov.table import open_table

GRID = Grid(dimension=3, exponent=20, squared_norm_bound=2**40)


def whole_rows(count: int, grid: Grid = GRID, seed: int = 0) -> np.ndarray:
    """Rows at the bound: each coordinate as long as the squared norm allows."""
    most = int((grid.squared_norm_bound // grid.dimension) ** 0.5)
    return np.random.default_rng(seed).integers(-most, most + 1, (count, grid.dimension)).astype(float)


def exact_gram(rows: np.ndarray) -> list[int]:
    """Sums of products of Python integers."""
    columns = [[int(q) for q in column] for column in rows.T]
    d = len(columns)
    return [sum(map(int.__mul__, columns[i], columns[j])) for i in range(d) for j in range(i, d)]


def gram_of(blocks: list[np.ndarray], grid: Grid = GRID) -> list[int]:
    gram = Gram(grid)
    for block in blocks:
        gram.add(block)
    return list(gram.reveal_to_mechanism())


def test_the_sum_is_the_one_python_integers_give() -> None:
    rows = whole_rows(20_000)
    assert gram_of([rows]) == exact_gram(rows)


def test_a_full_block_of_rows_at_the_bound_is_exact_and_one_that_is_too_long_would_not_be() -> None:
    row = np.array([[2.0**20, 0, 0]])
    full = np.repeat(row, BLOCK_ROWS, axis=0)
    assert gram_of([full])[0] == BLOCK_ROWS * 2**40 == 2**53
    odd = np.vstack([full, [[1.0, 0, 0]]])
    assert int((odd.T @ odd)[0, 0]) != 2**53 + 1
    assert gram_of([odd])[0] == 2**53 + 1


@pytest.mark.parametrize("size", [1, 17, 1000, 8192, 50_000])
def test_batching_and_order_do_not_change_a_bit(size: int) -> None:
    rows = whole_rows(3_000 if size == 1 else 20_000)
    expected = gram_of([rows])
    shuffled = np.random.default_rng(size).permutation(rows)
    for variant in (rows, rows[::-1], shuffled, np.asfortranarray(rows), np.repeat(rows, 2, axis=1)[:, ::2]):
        assert gram_of([variant[at : at + size] for at in range(0, len(rows), size)]) == expected


@pytest.mark.parametrize("width", [1, 2, 11, 32, 33, 40])
@pytest.mark.parametrize("count", [1, 975, BLOCK_ROWS])
def test_every_width_has_the_integers_of_python(width: int, count: int) -> None:
    """Few columns are multiplied in steps, as if they were two matrices; many as one matrix with itself."""
    grid = Grid(dimension=width, exponent=15, squared_norm_bound=2**40)
    rows = whole_rows(count, grid, seed=width)
    expected = (rows.astype(np.int64).T @ rows.astype(np.int64))[np.triu_indices(width)]  # below 2^53
    for laid in (rows, np.asfortranarray(rows)):
        assert gram_of([laid], grid) == expected.tolist()


@pytest.mark.parametrize("word", [2**62, 2**54])
@pytest.mark.parametrize("width", [1, 4, 33])
def test_a_stack_has_the_sum_of_every_stratum_alone(
    monkeypatch: pytest.MonkeyPatch, width: int, word: int
) -> None:
    """Against one sum for each, with strata of nobody and of one row, over blocks that carry and that do not."""
    grid = Grid(dimension=width, exponent=15, squared_norm_bound=2**40)
    alone, stack = [Gram(grid) for _ in range(7)], Stack(grid, 7)
    blocks = [whole_rows(count, grid, seed=count) for count in (BLOCK_ROWS, 5, 8_000, 3_000)]
    lengths = [
        (0, 1, 4_000, 0, 4_191, 0, 0),
        (5, 0, 0, 0, 0, 0, 0),
        (0, 0, 0, 0, 0, 0, 8_000),
        (0, 1_000, 0, 1, 1_998, 1, 0),
    ]
    for block, counts in zip(blocks, lengths, strict=True):
        ends = np.cumsum(counts)
        for gram, end, count in zip(alone, ends, counts, strict=True):
            gram.add(block[end - count : end])
    monkeypatch.setattr(Gram, "_word", word)
    for block, counts in zip(blocks, lengths, strict=True):
        stack.add(np.asfortranarray(block), np.cumsum(counts).tolist())
    found = stack.grams()
    assert (
        [gram.rows for gram in found]
        == [gram.rows for gram in alone]
        == [5, 1_001, 4_000, 1, 6_189, 1, 8_000]
    )
    assert [list(a.reveal_to_mechanism()) for a in found] == [list(b.reveal_to_mechanism()) for b in alone]


@pytest.mark.parametrize(
    "lengths", [(3 * BLOCK_ROWS + 5,), (1, 2 * BLOCK_ROWS, 7), (BLOCK_ROWS + 1, BLOCK_ROWS)]
)
def test_a_stratum_of_more_rows_than_a_product_holds_is_exact(lengths: tuple[int, ...]) -> None:
    """At the bound, where one row more than a product holds would lose a bit: as the last lines show."""
    ends = np.cumsum(lengths).tolist()
    block = np.asfortranarray(np.repeat([[2.0**20 - 1, 1.0, 0.0]], ends[-1], axis=0))
    stack, most = Stack(GRID, len(lengths)), (2**20 - 1) ** 2
    stack.add(block, ends)
    for gram, count in zip(stack.grams(), lengths, strict=True):
        assert list(gram.reveal_to_mechanism()) == [count * most, count * (2**20 - 1), 0, count, 0, 0]
        assert gram.rows == count
    if max(lengths) > 2 * BLOCK_ROWS:
        assert int((block.T @ block)[0, 0]) != ends[-1] * most


@pytest.mark.parametrize("word", [2**62, 2**53])
def test_stacks_merge_to_the_sums_of_all_rows_and_their_check_sees_every_one(
    monkeypatch: pytest.MonkeyPatch, word: int
) -> None:
    """In one stack, in two that are merged, and with sums that came from elsewhere; carried or not."""
    monkeypatch.setattr(Gram, "_word", word)
    grid = Grid(dimension=3, exponent=15, squared_norm_bound=2**40)
    block = np.asfortranarray(whole_rows(9_000, grid, seed=2))
    ends, check = [3_000, 3_000, 9_000], Check(3)
    alone, one, first, second = (Stack(grid, 3) for _ in range(4))
    for start in range(0, 9_000, 1_000):
        rows = block[start : start + 1_000]
        alone.add(rows, ends, start)
        (one, first, second)[start // 3_000].add(rows, ends, start)
        check.saw(rows)
    assert not one.agrees_with(check.weights, check.expected)
    one.merge(first)
    one.merge(Stack.of(second.grams()))
    assert one.rows == alone.rows == 9_000
    assert one.agrees_with(check.weights, check.expected)
    assert alone.agrees_with(check.weights, check.expected)
    expected = [gram_of([part], grid) for part in (block[:3_000], block[:0], block[3_000:])]
    for stack in (one, alone):
        found = stack.grams()
        assert [list(gram.reveal_to_mechanism()) for gram in found] == expected
        assert [gram.rows for gram in found] == [3_000, 0, 6_000]
        assert stack.agrees_with(check.weights, check.expected)


def test_float_sums_would_depend_on_the_order() -> None:
    random = np.random.default_rng(0)
    rows = random.normal(size=(20_000, 3))
    orders = {float((order.T @ order)[0, 1]) for order in (random.permutation(rows) for _ in range(8))}
    assert len(orders) > 1


@pytest.mark.parametrize("word", [2**41, 2**45, 2**52])
def test_the_carry_past_a_word_is_exact(monkeypatch: pytest.MonkeyPatch, word: int) -> None:
    rows = whole_rows(9_000)
    expected = gram_of([rows])
    monkeypatch.setattr(Gram, "_word", word)
    gram = Gram(GRID)
    for at in range(0, len(rows), 300):
        gram.add(rows[at : at + 300])
    assert gram._high is not None
    assert list(gram.reveal_to_mechanism()) == expected


def test_sums_far_beyond_int64_are_exact() -> None:
    gram = Gram(GRID)
    gram.add(np.repeat([[2.0**20, 0, 0], [0, -(2.0**19), 2.0**19]], 4096, axis=0))
    once = exact_gram(np.array([[2.0**20, 0, 0], [0, -(2.0**19), 2.0**19]]))
    for _ in range(20):
        twin = Gram(GRID)
        twin.merge(gram)
        gram.merge(twin)
    assert gram.rows == 8192 * 2**20
    assert list(gram.reveal_to_mechanism()) == [entry * 4096 * 2**20 for entry in once]
    assert max(gram.reveal_to_mechanism()) > 2**63


def test_merging_partial_sums_is_adding_their_rows() -> None:
    rows = whole_rows(5_000)
    left, right = Gram(GRID), Gram(GRID)
    left.add(rows[:1234])
    right.add(rows[1234:])
    left.merge(right)
    assert list(left.reveal_to_mechanism()) == exact_gram(rows)
    assert left.rows == 5_000


def test_partial_sums_of_different_grids_do_not_merge() -> None:
    with pytest.raises(ValueError, match="two different grids"):
        Gram(GRID).merge(Gram(Grid(dimension=3, exponent=19, squared_norm_bound=2**38)))


def test_merged_carries_do_not_overflow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Gram, "_word", 2**41)
    rows = whole_rows(64)
    total, expected = Gram(GRID), [40 * entry for entry in exact_gram(rows)]
    for _ in range(40):
        part = Gram(GRID)
        for row in rows:
            part.add(row[None])
        total.merge(part)
    assert list(total.reveal_to_mechanism()) == expected


def test_no_rows_give_the_zero_matrix() -> None:
    assert gram_of([np.empty((0, 3))]) == [0] * 6


REFUSED: dict[str, Callable[[Gram], object]] = {
    "repr": repr,
    "str": str,
    "format": lambda gram: f"{gram}",
    "percent": lambda gram: "%s" % gram,  # noqa: UP031
    "equality": lambda gram: gram == gram,
    "inequality": lambda gram: gram != 0,
    "order": lambda gram: gram < gram,
    "hash": hash,
    "pickle": pickle.dumps,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "asarray": np.asarray,
    "array": lambda gram: np.array([gram]) + 1,
    "ufunc": lambda gram: np.add(gram, 1),
    "iteration": list,
    "index": lambda gram: gram[0],  # type: ignore[index]
    "length": len,  # type: ignore[dict-item]
    "truth": bool,
    "int": int,  # type: ignore[dict-item]
    "json": json.dumps,
    "vars": vars,
}


@pytest.mark.parametrize("way", REFUSED)
def test_a_gram_matrix_refuses_to_be_looked_at(way: str) -> None:
    gram = Gram(GRID)
    gram.add(np.full((1, 3), 12345.0))
    with pytest.raises(TypeError) as refusal:
        REFUSED[way](gram)
    assert "12345" not in str(refusal.value)
    assert str(12345**2) not in str(refusal.value)


def test_a_log_line_cannot_show_a_gram_matrix(capsys: pytest.CaptureFixture[str]) -> None:
    gram = Gram(GRID)
    gram.add(np.full((1, 3), 12345.0))
    logger = logging.Logger("probe")
    logger.addHandler(logging.StreamHandler())
    logger.warning("gram: %s", gram)
    shown = capsys.readouterr()
    assert str(12345**2) not in shown.out + shown.err


def test_sum_rows_reports_progress_and_counts_rows() -> None:
    schema = Schema.from_dict({"columns": {"x": {"lower": 0, "upper": 1}}})
    seen: list[tuple[int, int | None]] = []
    table = open_table(np.zeros((200_000, 1)), schema)
    gram = sum_rows(table, schema, Grid.of(schema), progress=lambda rows, read, _: seen.append((rows, read)))
    assert gram.rows == 200_000
    assert seen[-1] == (200_000, None)
    assert [rows for rows, _ in seen] == sorted(rows for rows, _ in seen)


def test_one_neighbour_moves_the_sum_by_at_most_the_squared_norm_bound() -> None:
    schema = Schema.from_dict({"columns": {c: {"lower": -1, "upper": 1} for c in "abc"}, "row_norm_bound": 1})
    bounding = Bounding.of(schema)
    random = np.random.default_rng(0)
    base = random.normal(size=(100, 3))
    special = [1.0, -1.0, 10.0, 1e200, 1e-200, np.nan, np.inf, 5e-324, 1.7e308, 0.0]
    for value in special:
        changed = base.copy()
        changed[17] = value
        sums = []
        for rows in (base, np.delete(base, 17, axis=0), changed):
            gram = Gram(bounding.grid)
            gram.add(bounding.rows(list(rows.T)))
            sums.append(gram.reveal_to_mechanism())
        weights = [1 if i == j else 2 for i in range(4) for j in range(i, 4)]
        removed = sum(w * int(x) ** 2 for w, x in zip(weights, sums[0] - sums[1], strict=True))
        replaced = sum(w * int(x) ** 2 for w, x in zip(weights, sums[0] - sums[2], strict=True))
        assert removed <= bounding.grid.squared_norm_bound**2
        assert replaced <= 2 * bounding.grid.squared_norm_bound**2
