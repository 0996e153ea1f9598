"""The row-local map from cells to integers: scale, clamp, put on the grid, clip, check the norm exactly.

What a row becomes depends on that row and on public facts only, and the map is total: there is no cell it
refuses, drops or reports. Every step is exact, or a single correctly rounded float64 operation on one
element, so any engine and any batching gives the same integers. Proof: docs/proofs/exact-gram.md.

Steps that no row of a block needs are left out, unless the schema asks for constant timing (``[file] timing``): then
every block takes every step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from privcov.linalg.arrays import Floats
from privcov.schema import Categorical, Schema
from privcov.schema.grid import Grid
from privcov.schema.recovery import corners
from privcov.schema.shape import BITS
from privcov.schema.weights import WEIGHT_SQUARE, root
from privcov.table.blocks import Block, Coded, Codes, height


@dataclass(frozen=True, kw_only=True)
class Clip:
    """Shrink rows whose squared norm over ``features`` exceeds ``available`` to the radius ``radius``."""

    features: tuple[slice, ...]
    available: int
    radius: int
    indicators: tuple[int, ...] = ()
    """Features that are spared, and take room only in the rows that have them: a numeric column is missing there."""
    crowded: tuple[tuple[int, int], ...] = ()
    """``available`` and ``radius`` of rows with one of these indicators, with two, and so on."""

    @classmethod
    def of(cls, schema: Schema, grid: Grid) -> Clip | None:
        """The clip a schema needs; none when no row of scaled cells can be too long, which is public."""
        runs = tuple(_numeric_runs(schema))
        indicators: tuple[int, ...] = ()
        available, largest = grid.squared_norm_bound, schema.largest_squared_norm
        if schema.keeps_indicators:
            indicators = schema.number_indicators
            always = schema.fixed_squared_norm - len(indicators)
            # What corners have on the grid: each rounded down by itself, as their bound is.
            levels = [c.squared_norm for c in schema.columns if isinstance(c, Categorical)]
            weight = Fraction(0) if schema.weight is None else WEIGHT_SQUARE
            available -= sum(
                math.floor(one * 4**grid.exponent) for one in (schema.intercept, weight, *levels)
            )
            largest -= always
        else:
            runs = (slice(0, schema.summed_dimension),)
        if (
            largest * 4**grid.exponent <= available and schema.shape is None
        ):  # whose rounding may add a little
            return None
        count = sum(run.stop - run.start for run in runs)
        rooms = [available - taken * 4**grid.exponent for taken in range(len(indicators) + 1)]
        radii = [_radius(room, count) for room in rooms]
        return cls(
            features=runs,
            available=available,
            radius=radii[0],
            indicators=indicators,
            crowded=tuple(zip(rooms[1:], radii[1:], strict=True)),
        )

    @classmethod
    def whole(cls, count: int, available: int) -> Clip:
        """Shrink rows of ``count`` numbers as a whole, to a squared norm of at most ``available``."""
        return cls(features=(slice(0, count),), available=available, radius=_radius(available, count))

    @cached_property
    def rooms(self) -> tuple[Floats, Floats]:
        """``available`` and ``radius`` by the number of a row's indicators: whole numbers below 2^53."""
        rooms, radii = zip((self.available, self.radius), *self.crowded, strict=True)
        return np.array(rooms, dtype=np.float64), np.array(radii, dtype=np.float64)


@dataclass(frozen=True, kw_only=True)
class Bounding:
    """The map for one schema and grid. Rows come out as whole numbers, people along the first axis.

    >>> schema = Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}}})
    >>> bounding = Bounding.of(schema)
    >>> (bounding.rows([np.array([75.0, 1e300, np.nan])]) / bounding.one).tolist()
    [[1.0, 0.5], [1.0, 1.0], [1.0, 0.0]]
    """

    schema: Schema
    grid: Grid
    clip: Clip | None

    @classmethod
    def of(cls, schema: Schema, grid: Grid | None = None) -> Bounding:
        grid = Grid.of(schema) if grid is None else grid
        return cls(schema=schema, grid=grid, clip=Clip.of(schema, grid))

    @property
    def one(self) -> float:
        """The integer that stands for 1: 2^k."""
        return float(2**self.grid.exponent)

    def rows(
        self, block: Block, start: int = 0, stop: int | None = None, *, room: Floats | None = None
    ) -> Floats:
        """Whole-number rows whose squared norm is at most ``grid.squared_norm_bound``, exactly.

        All of a block, or those from ``start`` to ``stop``. They are written into ``room``, if that is given: fresh
        memory costs a tenth of the time.
        """
        block = part_of(block, start, stop)
        shape = self.grid.dimension, height(block)
        by_feature = np.empty(shape) if room is None else room[: shape[0] * shape[1]].reshape(shape)
        with np.errstate(all="ignore"):  # an overflow warning would tell that a huge value is there
            absent = self._place_numbers(block, by_feature) + self._place_levels(block, by_feature)
            for place, feature in self.indicators:
                np.multiply(~np.isfinite(block[place]), self.one, out=by_feature[feature])
            if absent:
                by_feature[:, np.any(absent, axis=0)] = 0.0
            if self.turn is not None:
                self.turn.apply(by_feature, always=self.schema.file.constant)
            if self.clip is not None:
                shrink(by_feature, self.clip, always=self.schema.file.constant)
            if self.weighing is not None:
                self.weighing.apply(by_feature, block[self.weighing.place])
            # Unreachable, and cheap to check on every row: the guarantee rests on these integers alone.
            squared = _squared_norms(by_feature, (slice(None),))
            if not _none_above(squared, self.grid.squared_norm_bound):
                by_feature[:, ~(squared <= self.grid.squared_norm_bound)] = 0.0
        return by_feature.T

    def plain_numbers(self, block: Block, *, room: Floats | None = None) -> Floats | None:
        """The numeric cells of ``rows`` alone, a column on each line, where nothing but their own map bears on them.

        None for a block with a missing number, and where the schema has a shape, weights, constant timing, or levels
        that empty a row: then ``rows`` has them.
        """
        if not self._are_plain:
            return None
        shape = sum(len(numbers.places) for numbers in self.numbers), len(block[0])
        every = np.empty(shape) if room is None else room[: shape[0] * shape[1]].reshape(shape)
        done = 0
        with np.errstate(all="ignore"):
            for numbers in self.numbers:
                cells = every[done : done + len(numbers.places)]
                done += len(numbers.places)
                self._subtracted(numbers, block, cells)
                np.divide(cells, numbers.steps, out=cells)
                ends = cells.min(axis=1, initial=0.0), cells.max(axis=1, initial=0.0)
                if not np.isfinite(ends).all():  # one is missing, or beyond what floats hold
                    return None
                if (ends[0] < numbers.least[:, 0]).any() or (ends[1] > numbers.most[:, 0]).any():
                    np.clip(cells, numbers.least, numbers.most, out=cells)
            return np.rint(every, out=every)

    @cached_property
    def _are_plain(self) -> bool:
        """Whether a numeric cell depends on no other, but for missing ones: public."""
        numeric = {place for numbers in self.numbers for place in numbers.places}
        plain = self.turn is None and self.weighing is None and self.clip is None
        return plain and not self.schema.file.constant and self.emptying <= numeric

    @cached_property
    def turn(self) -> Turn | None:
        """The linear map of the numeric columns, where a frame has one."""
        return None if self.schema.shape is None else Turn.of(self.schema, self.grid)

    @cached_property
    def weighing(self) -> Weighing | None:
        """What scales every row, where rows have weights."""
        return None if self.schema.weight is None else Weighing.of(self.schema, self.one)

    @cached_property
    def numbers(self) -> tuple[Numbers, ...]:
        """The runs of numeric columns, with what their cells are measured from and in."""
        return tuple(Numbers.of(self.schema, run, self.one) for run in _numeric_runs(self.schema))

    @cached_property
    def levels(self) -> tuple[tuple[int, int, Categorical], ...]:
        """Where the levels of each categorical column begin, its place among the columns, and the column."""
        starts = accumulate(
            (column.summed_width for column in self.schema.columns), initial=int(self.schema.intercept)
        )
        return tuple(
            (at, place, column)
            for place, (at, column) in enumerate(zip(starts, self.schema.columns, strict=False))
            if isinstance(column, Categorical)
        )

    @cached_property
    def indicators(self) -> tuple[tuple[int, int], ...]:
        """The columns that have an indicator of missing cells, and its place among the features."""
        places = {column.name: place for place, column in enumerate(self.schema.columns)}
        return tuple(
            (places[feature.column], place)
            for place, feature in enumerate(self.schema.summed)
            if feature.kind == "missing"
        )

    @cached_property
    def emptying(self) -> frozenset[int]:
        """The columns whose missing cells make the row count as zeros."""
        schema = self.schema
        return frozenset(p for p, column in enumerate(schema.columns) if schema.rule(column) == "zero-row")

    def _place_numbers(self, block: Block, by_feature: Floats) -> list[NDArray[np.bool_]]:
        """Put scaled cells on the grid, runs of columns together; returns the rows to empty, by column."""
        absent, always = [], self.schema.file.constant
        for numbers in self.numbers:
            scaled = by_feature[numbers.features]
            self._subtracted(numbers, block, scaled)
            suspicious = always or not math.isfinite(np.einsum("ij,ij->", scaled, scaled))
            np.divide(scaled, numbers.steps, out=scaled)
            np.clip(scaled, numbers.least, numbers.most, out=scaled)
            np.rint(scaled, out=scaled)
            if suspicious:  # a missing cell, or one whose difference or square overflowed: look again
                for place, fill, out in zip(numbers.places, numbers.fills, scaled, strict=True):
                    missing = ~np.isfinite(block[place])
                    out[missing] = fill
                    if place in self.emptying:
                        absent.append(missing)
        return absent

    @staticmethod
    def _subtracted(numbers: Numbers, block: Block, out: Floats) -> None:
        """Distances from what scaled zero is."""
        # Few calls for many columns: threads wait for each other between calls, not within them.
        matrix = block.matrix if isinstance(block, Coded) else block
        if isinstance(matrix, np.ndarray):
            np.subtract(matrix[numbers.run], numbers.middles, out=out)
        else:
            np.concatenate([block[place] for place in numbers.places], out=out.reshape(-1))
            np.subtract(out, numbers.middles, out=out)

    def _place_levels(self, block: Block, by_feature: Floats) -> list[NDArray[np.bool_]]:
        """Put the intercept and the levels on the grid; returns the rows to empty, by column."""
        absent = []
        by_feature[: int(self.schema.intercept)] = self.one
        for at, place, column in self.levels:
            plain = not column.exhaustive and column.fill is None and place not in self.emptying
            if plain and isinstance(block, Coded) and place in block.codes:
                self._place_each(block.codes[place], by_feature[at:], column)
                continue
            cells = block[place]
            if column.exhaustive:
                cells = np.where(cells < 0, self.unmatched(column), cells)
            if place in self.emptying:
                absent.append(~np.isfinite(cells))
            if column.exhaustive:
                found = np.where(np.isfinite(cells), cells, self.last_resort(column)).astype(np.intp)
                corner = corners(column.width, self.grid.exponent)
                np.take(corner, found, axis=1, out=by_feature[at : at + column.summed_width])
                continue
            if column.fill is not None:
                cells = np.where(np.isfinite(cells), cells, column.levels.index(column.fill))
            self._place_each(cells, by_feature[at:], column)
        return absent

    def _place_each(self, cells: Floats | Codes, by_feature: Floats, column: Categorical) -> None:
        """Put each level on the grid where a cell has it: nowhere, where it is missing or of no level."""
        for position in range(len(column.levels)):
            np.multiply(cells == position, self.one, out=by_feature[position])

    def unmatched(self, column: Categorical) -> float:
        """The place of the level that a cell of an exhaustive column counts as which has none; NaN: as missing."""
        return math.nan if column.otherwise is None else float(column.levels.index(column.otherwise))

    def last_resort(self, column: Categorical) -> float:
        """The same for a missing cell: of the level that is named, or else of the indicator, which is the last.

        Where a missing cell empties the row, any will do.
        """
        named = self.schema.filled(column)
        return float(column.width - 1 if named is None else column.levels.index(named))


def part_of(block: Block, start: int, stop: int | None) -> Block:
    """The rows of a block from ``start`` to ``stop``, in the same memory."""
    if isinstance(block, np.ndarray):
        return block[:, start:stop]
    if isinstance(block, Coded):
        return block.part(start, stop)
    return [cells[start:stop] for cells in block]


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """Numeric columns that stand side by side in a row."""

    features: slice
    places: tuple[int, ...]
    middles: Floats
    steps: Floats
    """A scaled unit times 2^-k, exactly: dividing by it rounds once, as dividing by the unit would."""
    least: Floats
    most: Floats
    """The bounds of each column on the grid, which cells are clipped to; both within its reach."""
    fills: Floats
    """What stands for a missing cell of each, on the grid: 0, the middle, unless the schema declares a fill."""

    @cached_property
    def run(self) -> slice | list[int]:
        """The places as a slice where they stand side by side: a view instead of a copy."""
        run = slice(self.places[0], self.places[-1] + 1)
        return run if self.places == tuple(range(run.start, run.stop)) else list(self.places)

    @classmethod
    def of(cls, schema: Schema, features: slice, one: float) -> Numbers:
        made = schema.summed[features]
        names = {feature.column for feature in made}
        places = [place for place, column in enumerate(schema.columns) if column.name in names]
        middles = np.array([[feature.middle] for feature in made])
        steps = np.array([[feature.unit / one] for feature in made])
        reach = np.array([[math.floor(feature.reach * one)] for feature in made], dtype=np.float64)
        ends = ([[getattr(schema.columns[place], end)] for place in places] for end in ("lower", "upper"))
        least, most = (np.clip(np.rint((np.array(end) - middles) / steps), -reach, reach) for end in ends)
        declared = [schema.columns[place].fill for place in places]
        filled = [feature.middle if f is None else f for f, feature in zip(declared, made, strict=True)]
        return cls(
            features=features,
            places=tuple(places),
            middles=middles,
            steps=steps,
            least=least,
            most=most,
            fills=np.rint(np.clip((np.array(filled)[:, None] - middles) / steps, least, most)).ravel(),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Turn:
    """The map z = P u of the numeric cells of a row, on the grid; a row that is too long is shortened before.

    Entries of P are multiples of 2^-20 and u is on the grid, so each product and each partial sum of P u is a whole
    number below 2^53 in units of both: exact, in any order. Then one rounding puts z on the grid.
    """

    places: list[int]
    integers: Floats
    clip: Clip

    @classmethod
    def of(cls, schema: Schema, grid: Grid) -> Turn:
        assert schema.shape is not None
        longest = schema.shape.longest**2 * 4**grid.exponent
        return cls(
            places=list(schema.summed_numbers),
            integers=schema.shape.integers,
            clip=Clip.whole(schema.shape.columns, longest),
        )

    def apply(self, by_feature: Floats, *, always: bool) -> None:
        cells = by_feature[self.places]
        shrink(cells, self.clip, always=always)
        mapped = np.dot(self.integers, cells)
        mapped *= 2.0**-BITS
        by_feature[self.places] = np.rint(mapped, out=mapped)


@dataclass(frozen=True, kw_only=True)
class Weighing:
    """Rows times the root of what they count as, u = (w / W)^p; and u − ½ itself, as the feature of the weight.

    A whole number times at most 1, rounded, is no larger than it was, so no row becomes longer: docs/proofs/weights.md.
    """

    place: int
    feature: int
    largest: float
    power: Fraction
    one: float

    @classmethod
    def of(cls, schema: Schema, one: float) -> Weighing:
        assert schema.largest_weight is not None
        names = [column.name for column in schema.columns]
        features = [feature.column for feature in schema.summed]
        return cls(
            place=names.index(str(schema.weight)),
            feature=features.index(str(schema.weight)),
            largest=schema.largest_weight,
            power=schema.weight_power,
            one=one,
        )

    def apply(self, by_feature: Floats, cells: Floats) -> None:
        shares = np.clip(np.where(np.isfinite(cells), cells, 0.0), 0.0, self.largest) / self.largest
        found = root(shares, self.power, np.sqrt)
        # The intercept is 0 in rows that were emptied: they stay empty.
        counted = (shares > 0) & (by_feature[0] != 0)
        roots = np.where(counted, 1.0 if found is None else found, 0.0)
        np.rint((roots * roots - 0.5) * self.one, out=by_feature[self.feature])
        np.multiply(by_feature, roots, out=by_feature)
        np.rint(by_feature, out=by_feature)


def shrink(by_feature: Floats, clip: Clip, *, always: bool) -> None:
    """Clip the rows that are too long, alone if they are few and not ``always`` all: the same numbers either way."""
    squared = _squared_norms(by_feature, clip.features)
    available: float | Floats = clip.available
    radius: float | Floats = clip.radius
    if clip.indicators:
        rooms, radii = clip.rooms
        taken = np.count_nonzero(by_feature[list(clip.indicators)], axis=0)
        available, radius = rooms[taken], radii[taken]
    elif not always and _none_above(squared, clip.available):
        return
    (long,) = np.nonzero(squared > available)
    if not always and 4 * len(long) < by_feature.shape[1]:
        factor = (radius[long] if isinstance(radius, np.ndarray) else radius) / np.sqrt(squared[long])
        for run in clip.features:
            part = by_feature[run]
            part[:, long] = np.rint(part[:, long] * factor)
        return
    factor = np.where(squared > available, radius / np.sqrt(squared), 1.0)
    for run in clip.features:
        part = by_feature[run]
        np.multiply(part, factor, out=part)
        np.rint(part, out=part)


def _radius(available: int, count: int) -> int:
    """What to shorten rows of ``count`` numbers to, so that none has a squared norm above ``available`` afterwards."""
    # Rounding to the grid moves a row by at most sqrt(count)/2; 2 more covers every float rounding.
    half_diagonal = math.isqrt((count - 1) // 4) + 1 if count else 0
    return max(0, math.isqrt(available) - half_diagonal - 2)


def _squared_norms(by_feature: Floats, runs: Sequence[slice]) -> Floats:
    """Σ q² per row: whole numbers up to d·4^k ≤ 2^52, so exact in any order of summation."""
    parts = [np.einsum("ij,ij->j", by_feature[run], by_feature[run]) for run in runs]
    return reduce(np.add, parts) if parts else np.zeros(by_feature.shape[1])


def _none_above(squared: Floats, bound: int) -> bool:
    """Whether every number is at most ``bound``; NaN is not."""
    return bool(squared.max(initial=0.0) <= bound)


def _numeric_runs(schema: Schema) -> list[slice]:
    """The maximal runs of numeric features, as slices."""
    found: list[slice] = []
    for position, feature in enumerate(schema.summed):
        if feature.kind != "numeric" or feature.column == schema.weight:
            continue
        if found and found[-1].stop == position:
            found[-1] = slice(found[-1].start, position + 1)
        else:
            found.append(slice(position, position + 1))
    return found
