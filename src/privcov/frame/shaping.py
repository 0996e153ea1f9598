"""The round "shape" of a frame: one coarse release of the second moments of the numeric columns, and the map it gives.

Rows are put in the units that earlier rounds found, their numeric cells shortened to a public norm, and summed as whole
numbers on a grid of their own; the noise is that of an ordinary mechanism. The map that follows from the answers is
public arithmetic. Proof: docs/proofs/frame.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privcov.errors import InternalError, without_reasons
from privcov.frame.terms import SHAPE_RADIUS, hidden_by, shape_grid, shape_mechanism
from privcov.linalg.arrays import Floats, Matrix
from privcov.linalg.triangle import entries, symmetric
from privcov.mechanisms.base import Draw
from privcov.noise.randomness import Randomness
from privcov.privacy import ZCDP, PureDP
from privcov.releases.certificate import Round
from privcov.schema import Schema
from privcov.schema.grid import ROW_BITS, Grid
from privcov.schema.shape import STRETCH
from privcov.summing.bounding import Bounding, Clip, part_of, shrink
from privcov.summing.check import Check, check_arithmetic
from privcov.summing.engines import AnyFragment, Engine, Progress, Report, Result, gather
from privcov.summing.gram import Gram
from privcov.summing.sum import decode_sensitive_sum, encode_sensitive_sum
from privcov.table import open_table
from privcov.table.blocks import Block

LEAST = 2.0**-10
"""The least share of its variance that a direction is taken to have, whatever the noise can see."""
POWER = 0.75
"""Directions are stretched by their variance to half of this power: 1 would make rows as long in each of them."""
WORTH = 0.25
"""Columns are mixed if the correlations have an eigenvalue below this: else there is nothing to gain."""
CLEAR = 3.0
"""From so many standard deviations of its noise on, a mean moves the centre of its column."""
_STEP, _FAR = 8_192, 2.25


@dataclass(frozen=True, kw_only=True)
class Sums:
    """A question: the sums and the sums of products of the numeric columns, of shortened rows. Public.

    Parameters
    ----------
    schema : Schema
        What cells are bounded and scaled by. It has no bound on the norm of a row, and no shape.

    Examples
    --------
    >>> from privcov.schema import Numeric
    >>> columns = tuple(Numeric(name=name, lower=0, upper=1) for name in "ab")
    >>> asked = Sums(schema=Schema(columns=columns))
    >>> asked.name, asked.cells, asked.grid.dimension, asked.grid.squared_norm_bound == 5.5 * 4**asked.grid.exponent
    ('shape', 6, 3, True)
    """

    schema: Schema
    name: Literal["shape"] = "shape"

    @property
    def cells(self) -> int:
        """How many numbers come back."""
        return entries(self.grid.dimension)

    @property
    def _room(self) -> Fraction:
        """The squared norm that the numeric cells of a row may have, in scaled units."""
        return SHAPE_RADIUS * len(self.schema.numbers)

    @cached_property
    def grid(self) -> Grid:
        """What the sums are on: the intercept and the numeric columns, of rows of a public norm."""
        exponent, squared = Grid.of(self.schema).exponent, 1 + self._room
        while squared * 4**exponent > 2**ROW_BITS:
            exponent -= 1
        return shape_grid(len(self.schema.numbers), exponent, self.schema.max_rows_per_person)

    @property
    def bounding(self) -> Bounding:
        """What cells are put on the grid by."""
        exponent = self.grid.exponent
        largest = int(self.schema.squared_norm_bound * 4**exponent)
        return Bounding.of(
            self.schema,
            Grid(dimension=self.schema.summed_dimension, exponent=exponent, squared_norm_bound=largest),
        )

    def rows(self, bounding: Bounding, block: Block, *, room: Floats | None = None) -> Floats:
        """The intercept and the numeric cells of the rows of a block, shortened: whole numbers, a row on each line."""
        cells = bounding.rows(block, room=room).T[[0, *self.schema.summed_numbers]]
        clip = Clip.whole(len(cells) - 1, int(self._room * 4**self.grid.exponent))
        with np.errstate(all="ignore"):  # a warning would tell that there is an empty row
            shrink(cells[1:], clip, always=self.schema.file.constant)
        # Unreachable, and cheap to check on every row, as in ``Bounding``.
        cells[:, ~_within(cells, self.grid.squared_norm_bound)] = 0.0
        return cells.T

    def std(self, loss: PureDP | ZCDP) -> float:
        """The standard deviation of the noise on a sum of products of two columns, in units of the grid."""
        law = shape_mechanism(loss).law(loss=loss, grid=self.grid)
        return math.sqrt(law.offdiagonal_variance) / float(self.grid.unit)

    def ask(
        self,
        data: Any,
        *,
        loss: PureDP | ZCDP,
        randomness: Randomness,
        engine: Engine,
        progress: Progress | None = None,
    ) -> tuple[Round, int]:
        """Draw the noise, sum the rows, and return both together, and how many rows there are. Reads them once."""
        # No name is given to the noise here: this frame may be left by an exception.
        answers, rows = without_reasons(
            partial(_answer, data, self, engine, progress),
            shape_mechanism(loss).draw(loss=loss, grid=self.grid, randomness=randomness),
        )
        return self.answered(loss, answers), rows

    def answered(self, loss: PureDP | ZCDP, answers: tuple[int, ...]) -> Round:
        """What goes on the certificate."""
        return Round(name=self.name, loss=loss, std=self.std(loss), answers=answers)

    def found(self, one: Round, *, rows: float) -> tuple[Floats, Matrix] | None:
        """Where the means are, in scaled units, and the map P = (correlations)^(-⅜), of what noise lets see of them.

        None where the correlations are too weak for a map to gain anything.

        A direction counts with at least the variance that noise alone would show, so that what the noise cannot see is
        not stretched. By correlations, not covariances: shortening makes columns with long tails look narrow, and
        would stretch them. The scale is such that a row is as long as before, in the mean.
        """
        width, unit = self.grid.dimension - 1, float(self.grid.unit) / rows
        sums = np.asarray(symmetric(np.array(one.answers, dtype=np.float64), width + 1)) * unit
        noise = one.std * unit
        edge = hidden_by(noise, width)
        means = np.clip(np.where(np.abs(sums[0, 1:]) > CLEAR * noise, sums[0, 1:], 0.0), -_FAR, _FAR)
        spread = sums[1:, 1:] - np.outer(means, means)
        own = np.sqrt(np.maximum(np.diag(spread), max(edge, LEAST)))
        shares, axes = np.linalg.eigh(spread / np.outer(own, own))
        if shares[0] > WORTH:
            return None
        floor = max(edge / float(np.mean(own**2)), LEAST)
        seen = np.maximum(shares, floor) ** POWER
        kept = max(float((np.maximum(shares, 0.0) / seen).sum()), LEAST)
        stretch = np.clip(np.sqrt(width / kept / seen), 1 / STRETCH, STRETCH)
        return means, np.asarray((axes * stretch) @ axes.T)


def _within(cells: Floats, most: int) -> NDArray[np.bool_]:
    return np.asarray(
        np.einsum("ij,ij->j", cells, cells) <= most
    )  # whole numbers below 2^53: exact in any order


def sum_shape(fragment: AnyFragment, *, asked: Sums, report: Report | None = None) -> Result:
    """The sums of one fragment, where it is read: sensitive bytes, which are added and never stored."""
    check_arithmetic()
    bounding, table = asked.bounding, fragment.open(asked.schema)
    gram, check = Gram(asked.grid), Check(asked.grid.dimension)
    room = np.empty(_STEP * asked.schema.summed_dimension)
    for block in table.blocks():
        for start in range(0, len(block[0]), _STEP):
            part = part_of(block, start, start + _STEP)
            rows = asked.rows(bounding, part, room=room)
            gram.add(rows)
            check.saw(rows)
        if report is not None:
            report(fragment.place, table.rows, table.bytes_done)
    if not gram.agrees_with(check.weights, check.expected):
        raise InternalError
    return gram.rows, encode_sensitive_sum(gram)


def _answer(
    data: Any, asked: Sums, engine: Engine, progress: Progress | None, noise: Draw
) -> tuple[tuple[int, ...], int]:
    total = Gram(asked.grid)
    for rows, sent in gather(
        open_table(data, asked.schema), partial(sum_shape, asked=asked), engine, progress
    ):
        part = decode_sensitive_sum(sent, asked.grid)
        if part.rows != rows:
            raise InternalError
        total.merge(part)
    return tuple(int(value) for value in noise.answer(total)), total.rows
