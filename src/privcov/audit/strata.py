"""Two strata of made-up tables, and a person who moves from one to the other: how a release of strata is audited.

Two matrices of d columns are one of 2d columns whose blocks off the diagonal are zero, in every release: nothing is
added to the two, and every statistic of one matrix can be asked of both at once. Their total, released beside them, is
a third block, to which a person adds a row of its own. docs/proofs/strata.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from privcov.audit.neighbours import Pair, schema_of, whole_row
from privcov.audit.sampling import Sampler, Source
from privcov.audit.settings import TELLING_EPSILON, Setting, promises
from privcov.frame.spending import shared_with_total
from privcov.linalg.arrays import Floats
from privcov.mechanisms.base import Mechanism, Noise
from privcov.privacy import Loss, Neighbours, PureDP
from privcov.schema.grid import Grid

_HALF = Fraction(1, 2)
"""Of the loss for a total: then all noises have one size, and no statistic must weigh them."""


@dataclass(frozen=True, kw_only=True)
class TwoStrata(Mechanism):
    """A mechanism run once for each of two strata, as a release of strata runs it, and perhaps for their total."""

    name: ClassVar[str] = "two strata"
    inner: Mechanism
    total: bool = False

    def __post_init__(self) -> None:
        """The options are those of the mechanism, which has looked at them."""

    def law(self, *, loss: Loss, grid: Grid) -> None:
        """Noise of each block has the mechanism's law, and that of the others is zero."""

    def draw(self, *, loss: Loss, grid: Grid, randomness: object) -> Noise:
        """Noise for the matrices, drawn one after the other, as the one they are blocks of."""
        own = replace(grid, dimension=grid.dimension // (2 + self.total), strata=True)
        orders = [(loss, own)] * 2
        if self.total:
            total, rest = shared_with_total(loss, self.inner, _HALF)
            orders = [(rest, own), (rest, own), (total, replace(own, strata=False, pooled=True))]
        whole = np.zeros((grid.dimension, grid.dimension), dtype=object)
        rows, columns = np.triu_indices(own.dimension)
        for place, (paid, one) in enumerate(orders):
            drawn = self.inner.draw(loss=paid, grid=one, randomness=randomness)  # type: ignore[arg-type]
            begin = place * own.dimension
            whole[begin + rows, begin + columns] = drawn.upper  # type: ignore[attr-defined]
        return Noise(whole[np.triu_indices(grid.dimension)])


def strata_settings(
    mechanism: Mechanism, loss: Loss, dimension: int, *, source: Source
) -> tuple[Setting, ...]:
    """What an audit of strata looks at: as promised; one column; of pure losses, where faults show best; a total."""
    asked: dict[tuple[Loss, int], str] = {(loss, dimension): "as promised"}
    asked.setdefault((loss, 1), "one column")
    telling = loss
    if isinstance(loss, PureDP):
        telling = math.ceil(TELLING_EPSILON / loss.epsilon) * loss
        asked.setdefault((telling, 1), "where a fault shows best")
    # With two columns somebody moves who changes both strata and the total as far as is possible.
    columns = 1 if loss.neighbours is Neighbours.ADD_REMOVE else 2
    return (
        *(_setting(mechanism, label, *one, source=source) for one, label in asked.items()),
        _setting(mechanism, "half of the loss for a total", telling, columns, source=source, total=True),
    )


def _setting(
    mechanism: Mechanism, label: str, loss: Loss, dimension: int, *, source: Source, total: bool = False
) -> Setting:
    # The schema of one stratum gives the norm bound; the grid of all has its columns for each.
    single = Grid.of(schema_of(dimension), strata=True)
    mechanism.check_strata(single)
    all_of_them = replace(single, dimension=(2 + total) * dimension)
    run = TwoStrata(inner=mechanism, total=total)
    sampler = Sampler(mechanism=run, loss=loss, grid=all_of_them, source=source)
    words = ", ".join(f"{name} {float(amount):g}" for name, amount in loss.amounts.items())
    return Setting(
        label=f"two strata, {label}: {words}, {dimension} columns each",
        sampler=sampler,
        pairs=strata_pairs(all_of_them, loss.neighbours, total=total),
        claims=promises(mechanism, loss, single),
    )


def strata_pairs(grid: Grid, neighbours: Neighbours, *, total: bool = False) -> tuple[Pair, ...]:
    """The worst pairs: a person moves, along an axis or slanted; changes within a stratum; leaves; goes unseen."""
    d = grid.dimension // (2 + total)
    axes, none = np.eye(2 * d), np.zeros((0, 2 * d))
    slanted = [np.concatenate(parts) for parts in _sides(np.full(d, d**-0.5))]
    moves = [("a row in one stratum, or in none", axes[:1], none)]
    if d > 1:
        moves.append(("a slanted row in one stratum, or in none", slanted[0][None], none))
    if neighbours is Neighbours.REPLACE_ONE:
        moves.append(("a person who moves", axes[:1], axes[d : d + 1]))
        if d > 1:
            moves.append(("a person who moves, slanted", slanted[0][None], slanted[1][None]))
            moves.append(("a person who moves and changes", axes[:1], axes[d + 1 : d + 2]))
            moves.append(("a person who changes and stays", axes[:1], axes[1:2]))
    return tuple(
        Pair(name=name, grid=grid, first=_whole(first, grid, total), second=_whole(second, grid, total))
        for name, first, second in moves
    )


def _sides(row: Floats) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    nothing = np.zeros_like(row)
    return (row, nothing), (nothing, row)


def _whole(rows: Floats, grid: Grid, total: bool) -> Floats:
    """Rows of two strata as whole numbers; with a total, each of them again in its columns."""
    if total:
        d = grid.dimension // 3
        nothing = np.zeros((len(rows), d))
        again = [np.zeros_like(rows), rows[:, :d] + rows[:, d:]]
        rows = np.vstack([np.hstack([rows, nothing]), np.hstack(again)])
    return np.array([whole_row(row, grid) for row in rows]).reshape(-1, grid.dimension)
