"""Neighbouring tables at their worst: rows at the norm bound that move the Gram matrix as far as rows can.

Everything is made up from public facts, as whole numbers of a grid. Each pair attains, up to the rounding of its
rows, one of the sensitivities; comparing any pair with the full claim is valid, so no pair can accuse a sound
mechanism. Which pair attains what: docs/proofs/sensitivity.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats
from privcov.privacy import Neighbours
from privcov.schema import Schema
from privcov.schema.grid import Grid
from privcov.summing.bounding import Bounding
from privcov.summing.gram import Gram

RADIUS = "0.7"
"""The row norm of made-up tables: not 1, where a wrong power of it would not show."""
INTERCEPT_RADIUS = "1.25"
LARGEST_WEIGHT = 8.0


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two neighbouring tables of one grid, as integer rows."""

    name: str
    grid: Grid
    first: Floats
    second: Floats

    def gram(self, which: int) -> Gram:
        """A fresh Gram matrix of the first (0) or the second (1) table."""
        made = Gram(self.grid)
        made.add(self.rows(which))
        return made

    def rows(self, which: int) -> Floats:
        return self.second if which else self.first

    def upper(self, which: int) -> NDArray[np.int64]:
        """The same matrix in the open, as its upper triangle: these rows are nobody's."""
        whole = self.rows(which).astype(np.int64)
        return (whole.T @ whole)[np.triu_indices(self.grid.dimension)]


def schema_of(dimension: int, *, intercept: bool = False) -> Schema:
    """A public schema of so many columns; an intercept takes the first."""
    if not (isinstance(dimension, int) and 1 + intercept <= dimension <= 64):
        raise ParameterError(
            "E209", f"an audit takes from {1 + intercept} to 64 columns here, got {dimension}."
        )
    columns = {f"c{i}": {"lower": -1, "upper": 1} for i in range(dimension - intercept)}
    bound = INTERCEPT_RADIUS if intercept else RADIUS
    return Schema.from_dict({"columns": columns, "intercept": intercept, "row_norm_bound": bound})


def weighted_schema(dimension: int, power: Fraction = Fraction(1)) -> Schema:
    """A public schema of weighted rows: so many columns, of which the intercept and the weight are two."""
    if not (isinstance(dimension, int) and 3 <= dimension <= 64):
        raise ParameterError(
            "E209", f"an audit of weighted rows takes from 3 to 64 columns, got {dimension}."
        )
    columns = {f"c{i}": {"lower": -1, "upper": 1} for i in range(dimension - 2)}
    weights = {"weight": "w", "largest_weight": LARGEST_WEIGHT, "weight_power": str(power)}
    return Schema.from_dict({"columns": columns, **weights})


def weighted_pairs(schema: Schema, grid: Grid, neighbours: Neighbours) -> tuple[Pair, ...]:
    """Rows of the largest weight, of a small one and of none, as a release makes them: docs/proofs/weights.md."""
    bounding, others = Bounding.of(schema, grid), len(schema.columns) - 1

    def rows(*people: tuple[float, float]) -> Floats:
        """Each with all its cells the same, and a weight."""
        cells = [[cell] * others + [weight] for cell, weight in people]
        return bounding.rows(np.array(cells).reshape(-1, others + 1).T)

    heavy, light, none = ((1.0, LARGEST_WEIGHT * share) for share in (1.0, 1e-3, 0.0))
    made: list[tuple[str, list[tuple[float, float]], list[tuple[float, float]]]]
    if neighbours is Neighbours.ADD_REMOVE:
        made = [
            ("a row of the largest weight, or none", [heavy], []),
            ("a row of a small weight, or none", [light], []),
        ]
    else:
        made = [
            ("the largest weight, or weight 0", [heavy], [none]),
            ("the largest weight, or a small one", [heavy], [light]),
            ("two corners, both of the largest weight", [heavy], [(-1.0, LARGEST_WEIGHT)]),
        ]
    return tuple(
        Pair(name=name, grid=grid, first=rows(*first), second=rows(*second)) for name, first, second in made
    )


def pairs(grid: Grid, neighbours: Neighbours, *, bases: Sequence[int] = (0,)) -> tuple[Pair, ...]:
    """The worst pairs for one relation. Each number in ``bases`` adds so many rows along the first axis to both.

    Bases matter to mechanisms that look at the matrix before they choose their noise; the first pair is then
    repeated on each, the others stand on the first alone.
    """
    moves = _with_intercept(grid) if grid.intercept else _moves(grid.dimension, neighbours)
    if grid.max_rows_per_person > 1:
        moves = _with_more_rows(moves, grid.max_rows_per_person, neighbours)
    made: list[Pair] = []
    for place, (name, before, after) in enumerate(moves):
        for base in bases if place == 0 else bases[:1]:
            # Without any row at all replace-one has no neighbours, and add-remove has: nothing, and one row.
            spikes = np.tile(whole_row(np.eye(grid.dimension)[0], grid), (base, 1))
            made.append(
                Pair(
                    name=name if not base else f"{name}, {base} rows beside",
                    grid=grid,
                    first=np.vstack([spikes, *(whole_row(row, grid)[None] for row in before)]),
                    second=np.vstack([spikes, *(whole_row(row, grid)[None] for row in after)]),
                )
            )
    return tuple(made)


Move = tuple[str, list[Floats], list[Floats]]


def _moves(dimension: int, neighbours: Neighbours) -> list[Move]:
    """The rows on either side, in units of the norm bound."""
    axes, zero = np.eye(dimension), np.zeros(dimension)
    if neighbours is Neighbours.ADD_REMOVE:
        found: list[Move] = [("one row or none", [axes[0]], [])]
        if dimension > 1:
            found.append(("a slanted row or none", [np.full(dimension, dimension**-0.5)], []))
        return found
    if dimension == 1:
        return [("a row or a zero row", [axes[0]], [zero])]
    half = math.sqrt(0.5)
    return [
        ("two axes", [axes[0]], [axes[1]]),
        ("two diagonals", [half * (axes[0] + axes[1])], [half * (axes[0] - axes[1])]),
        ("largest ℓ1", *_largest_triangle(dimension)),
        ("a row or a zero row", [axes[0]], [zero]),
    ]


def _with_more_rows(moves: list[Move], most: int, neighbours: Neighbours) -> list[Move]:
    """The same moves by a person with as many rows as declared; and replaced by one row, or by none at all."""
    found: list[Move] = [
        (f"{name}, {most} times", before * most, after * most) for name, before, after in moves
    ]
    if neighbours is Neighbours.ADD_REMOVE:
        return found
    name, before, after = moves[0]
    return [
        *found,
        (f"{name}, {most} rows or one", before * most, after),
        (f"{most} rows or none", before * most, []),
    ]


def _largest_triangle(dimension: int) -> tuple[list[Floats], list[Floats]]:
    """Rows x, y with Σ_{i≤j} |xᵢxⱼ − yᵢyⱼ| as large as alternating search finds: signs, then extreme eigenvectors."""
    best, rows = -1.0, (np.eye(dimension)[0], np.eye(dimension)[-1])
    for turn in range(1, 9):
        signs = np.where(np.add.outer(np.arange(dimension), np.arange(dimension)) % turn, 1.0, -1.0)
        for _ in range(20):
            weighted = (signs + np.diag(np.diag(signs))) / 2
            values, vectors = np.linalg.eigh(weighted)
            change = np.outer(vectors[:, -1], vectors[:, -1]) - np.outer(vectors[:, 0], vectors[:, 0])
            signs = np.where(change < 0, -1.0, 1.0)
        if values[-1] - values[0] > best:
            best, rows = values[-1] - values[0], (vectors[:, -1], vectors[:, 0])
    return [rows[0]], [rows[1]]


def _with_intercept(grid: Grid) -> list[Move]:
    """Beside a constant first column the rest of a row turns: opposite, orthogonal, and in between."""
    others = grid.dimension - 1
    found: list[Move] = []
    for name, degrees in (("turned by 120°", 120), ("opposite rows", 180), ("orthogonal rows", 90)):
        if others == 1 and degrees != 180:
            continue
        one, two = np.zeros(grid.dimension), np.zeros(grid.dimension)
        one[1], two[1] = 1.0, math.cos(math.radians(degrees))
        if others > 1:
            two[2] = math.sin(math.radians(degrees))
        found.append((name, [one], [two]))
    return found


def whole_row(row: Floats, grid: Grid) -> Floats:
    """A row in units of the norm bound as integers of the grid, rounded toward zero so that the bound holds."""
    if not grid.intercept:
        return np.trunc(row * math.isqrt(grid.squared_norm_bound) * (1 - 1e-15))
    made = np.trunc(row * math.isqrt(grid.squared_norm_bound - 4**grid.exponent) * (1 - 1e-15))
    made[0] = 2.0**grid.exponent
    return made


def pair_of(rows: Any, other: Any, *, grid: Grid, name: str = "given") -> Pair:
    """A pair of one's own: two tables of whole-number rows that differ as the relation allows."""
    first, second = (
        np.asarray(table, dtype=np.float64).reshape(-1, grid.dimension) for table in (rows, other)
    )
    for table in (first, second):
        squares = (table.astype(np.int64).astype(object) ** 2).sum(axis=1)
        if (np.trunc(table) != table).any() or any(s > grid.squared_norm_bound for s in squares.tolist()):
            raise ParameterError(
                "E209", "the rows of a pair must be whole numbers within the norm bound of the grid."
            )
    return Pair(name=name, grid=grid, first=first, second=second)
