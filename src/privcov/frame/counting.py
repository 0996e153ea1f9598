"""A round of the frame: how many rows fall into each of some public cells, with exact integer noise.

Two questions are asked in this way: a histogram of every numeric column (``scales``), and one of the norms of rows
(``radius``). What a row counts towards depends on that row and on public facts alone, and the counts are the same on
every engine. Noise is drawn before a row is read. Proof: docs/proofs/frame.md.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privcov.errors import InternalError, without_reasons
from privcov.linalg.arrays import Floats
from privcov.mechanisms.sensitivity import counts_l1, counts_l2, sqrt_up
from privcov.noise.exact import discrete_laplace, rounded_normals
from privcov.noise.randomness import Randomness
from privcov.privacy import ZCDP, PureDP
from privcov.releases.certificate import Round
from privcov.schema import Numeric, Schema
from privcov.summing.bounding import Bounding, part_of
from privcov.summing.engines import AnyFragment, Engine, Progress, Report, Result, gather
from privcov.summing.gram import Sealed
from privcov.table import open_table
from privcov.table.blocks import Block

_STEP = 8_192
Counts = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Look:
    """A question: which rows are counted where. Public.

    Parameters
    ----------
    name : {"scales", "radius"}
        A histogram of every numeric column over its bounds, or one of the squared norms of the numeric columns.
    bins : int, default 16
        For "scales": how many cells each histogram has. A power of two, so that values find their cell exactly.
    schema : Schema
        What cells are bounded and scaled by. It has no bound on the norm of a row.
    edges : tuple of int, default ()
        For "radius": the squared norms, in units of the grid, from which on a row counts in the next cell.
    """

    name: Literal["scales", "radius"]
    schema: Schema
    bins: int = 16
    edges: tuple[int, ...] = ()

    @property
    def per_row(self) -> int:
        """How many histograms there are; a row is counted in at most one cell of each."""
        return 1 if self.name == "radius" else len(numbers_of(self.schema))

    @property
    def cells(self) -> int:
        """How many counts come back."""
        return len(self.edges) + 1 if self.name == "radius" else self.bins * self.per_row

    def noise(self, loss: PureDP | ZCDP) -> Fraction:
        """The scale of the noise on a count: of a discrete Laplace law (whole), or a standard deviation."""
        people = {"per_row": self.per_row, "rows_per_person": self.schema.max_rows_per_person}
        if isinstance(loss, PureDP):
            return Fraction(math.ceil(counts_l1(loss.neighbours, **people) / loss.epsilon))
        return counts_l2(loss.neighbours, **people) * sqrt_up(1 / (2 * loss.rho))

    def std(self, loss: PureDP | ZCDP) -> float:
        """The standard deviation of the noise on a count."""
        return float(self.noise(loss)) * (math.sqrt(2) if isinstance(loss, PureDP) else 1.0)

    def ask(
        self,
        data: Any,
        *,
        loss: PureDP | ZCDP,
        randomness: Randomness,
        engine: Engine,
        progress: Progress | None = None,
    ) -> tuple[Round, int]:
        """Draw the noise, count the rows, and return the sum of both, and how many rows there are. Reads them once."""
        answers, rows = without_reasons(
            partial(_answer, data, self, engine, progress), _Noise.draw(self, loss, randomness)
        )
        return Round(name=self.name, loss=loss, std=self.std(loss), answers=answers), rows

    def counts(self, bounding: Bounding, block: Block, *, room: Floats | None = None) -> Counts:
        """How many rows of a block fall into each cell; ``room`` is memory to work in."""
        by_feature = bounding.rows(block, room=room).T
        numeric = [place for place, feature in enumerate(self.schema.features) if feature.kind == "numeric"]
        if self.name == "radius":
            part = by_feature[numeric]
            squared = np.einsum("ij,ij->j", part, part)  # whole numbers below 2^53: exact in any order
            return np.bincount(np.searchsorted(self.edges, squared, side="right"), minlength=self.cells)
        # A cell q of [-2^k, 2^k] is in bin ⌊(q + 2^k)·bins/2^(k+1)⌋, where dividing by a power of two is exact.
        bins = by_feature[numeric[0] : numeric[-1] + 1] if _adjacent(numeric) else by_feature[numeric]
        bins += bounding.one  # in place: these rows are needed for nothing else
        bins *= self.bins / (2 * bounding.one)
        np.minimum(bins, self.bins - 1, out=bins)
        places = bins.astype(np.int64)
        places += self.bins * np.arange(len(numeric))[:, None]
        present = _present(bounding, block)
        counted = places.reshape(-1) if present.all() else places[present]
        return np.bincount(counted, minlength=self.cells)


def _adjacent(places: list[int]) -> bool:
    return places == list(range(places[0], places[-1] + 1))


def numbers_of(schema: Schema) -> list[Numeric]:
    """The numeric columns, in order."""
    return [column for column in schema.columns if isinstance(column, Numeric)]


def _present(bounding: Bounding, block: Block) -> NDArray[np.bool_]:
    """Which numeric cells count: those that are there, or count as a fill, in rows that are not emptied."""
    columns = bounding.schema.columns
    missing = [~np.isfinite(block[place]) for place in range(len(columns))]
    emptied = np.zeros(len(block[0]), dtype=np.bool_)
    for place in bounding.emptying:
        emptied |= missing[place]
    return np.stack(
        [
            ~emptied if column.fill is not None else ~(emptied | missing[place])
            for place, column in enumerate(columns)
            if isinstance(column, Numeric)
        ]
    )


def count_fragment(fragment: AnyFragment, *, look: Look, report: Report | None = None) -> Result:
    """The counts of one fragment, where it is read: sensitive bytes, which are added and never stored."""
    bounding, table = Bounding.of(look.schema), fragment.open(look.schema)
    totals, rows = np.zeros(look.cells, dtype=np.int64), 0
    room = np.empty(_STEP * look.schema.dimension)
    for block in table.blocks():
        for start in range(0, len(block[0]), _STEP):
            part = part_of(block, start, start + _STEP)
            totals += look.counts(bounding, part, room=room)
            rows += len(part[0])
        if report is not None:
            report(fragment.place, table.rows, table.bytes_done)
    return rows, json.dumps(totals.tolist()).encode("ascii")


def _answer(
    data: Any, look: Look, engine: Engine, progress: Progress | None, noise: _Noise
) -> tuple[tuple[int, ...], int]:
    table, total, counted = open_table(data, look.schema), [0] * look.cells, 0
    for rows, sent in gather(table, partial(count_fragment, look=look), engine, progress):
        part = json.loads(sent)
        # What no rows can have is no count.
        if {type(value) for value in part} != {int} or min(part) < 0 or sum(part) > rows * look.per_row:
            raise InternalError
        total = [whole + one for whole, one in zip(total, part, strict=True)]
        counted += rows
    return noise.added_to(total), counted


@dataclass(frozen=True, repr=False, eq=False)
class _Noise(Sealed):
    """The noise of one round, drawn before a row is read, and gone once it was added."""

    _refusal = "the noise of a round is sensitive: with its answers it gives the counts away"

    integers: list[int]

    @classmethod
    def draw(cls, look: Look, loss: PureDP | ZCDP, randomness: Randomness) -> _Noise:
        scale, count = look.noise(loss), look.cells
        if isinstance(loss, PureDP):
            drawn = discrete_laplace(randomness, scale=int(scale), count=count)
        else:
            drawn = rounded_normals(randomness, count=count, std=scale)
        return cls([int(value) for value in drawn])

    def added_to(self, counts: list[int]) -> tuple[int, ...]:
        answers = tuple(count + noise for count, noise in zip(counts, self.integers, strict=True))
        self.integers.clear()
        return answers
