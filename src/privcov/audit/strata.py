"""Two strata of made-up tables, and a person who moves from one to the other: how a release of strata is audited.

Two matrices of d columns are one of 2d columns whose blocks off the diagonal are zero, in every release: nothing is
added to the two, and every statistic of one matrix can be asked of both at once. docs/proofs/strata.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from privcov.audit.neighbours import Pair, schema_of, whole_row
from privcov.audit.sampling import Sampler, Source
from privcov.audit.settings import TELLING_EPSILON, Setting, promises
from privcov.linalg.arrays import Floats
from privcov.mechanisms.base import Mechanism, Noise
from privcov.privacy import Loss, Neighbours, PureDP
from privcov.schema.grid import Grid


@dataclass(frozen=True, kw_only=True)
class TwoStrata(Mechanism):
    """A mechanism run once for each of two strata, as a release of strata runs it."""

    name: ClassVar[str] = "two strata"
    inner: Mechanism

    def __post_init__(self) -> None:
        """The options are those of the mechanism, which has looked at them."""

    def law(self, *, loss: Loss, grid: Grid) -> None:
        """Noise of each block has the mechanism's law, and that of the others is zero."""

    def draw(self, *, loss: Loss, grid: Grid, randomness: object) -> Noise:
        """Noise for two matrices, drawn one after the other, as the one they are blocks of."""
        own = replace(grid, dimension=grid.dimension // 2, strata=True)
        whole = np.zeros((grid.dimension, grid.dimension), dtype=object)
        rows, columns = np.triu_indices(own.dimension)
        for begin in (0, own.dimension):
            drawn = self.inner.draw(loss=loss, grid=own, randomness=randomness)  # type: ignore[arg-type]
            whole[begin + rows, begin + columns] = drawn.upper  # type: ignore[attr-defined]
        return Noise(whole[np.triu_indices(grid.dimension)])


def strata_settings(
    mechanism: Mechanism, loss: Loss, dimension: int, *, source: Source
) -> tuple[Setting, ...]:
    """What an audit of strata looks at: as promised; for one column; and, of pure losses, where faults show best."""
    asked: dict[tuple[Loss, int], str] = {(loss, dimension): "as promised"}
    asked.setdefault((loss, 1), "one column")
    if isinstance(loss, PureDP):
        more = math.ceil(TELLING_EPSILON / loss.epsilon)
        asked.setdefault((more * loss, 1), "where a fault shows best")
    return tuple(_setting(mechanism, label, *one, source=source) for one, label in asked.items())


def _setting(mechanism: Mechanism, label: str, loss: Loss, dimension: int, *, source: Source) -> Setting:
    # The schema of one stratum gives the norm bound; the grid of both has twice its columns.
    single = Grid.of(schema_of(dimension), strata=True)
    mechanism.check_strata(single)
    both = replace(single, dimension=2 * dimension)
    sampler = Sampler(mechanism=TwoStrata(inner=mechanism), loss=loss, grid=both, source=source)
    words = ", ".join(f"{name} {float(amount):g}" for name, amount in loss.amounts.items())
    return Setting(
        label=f"two strata, {label}: {words}, {dimension} columns each",
        sampler=sampler,
        pairs=strata_pairs(both, loss.neighbours),
        claims=promises(mechanism, loss, single),
    )


def strata_pairs(both: Grid, neighbours: Neighbours) -> tuple[Pair, ...]:
    """The worst pairs: a person moves, along an axis or slanted; changes within a stratum; leaves; goes unseen."""
    d = both.dimension // 2
    axes, none = np.eye(2 * d), np.zeros((0, 2 * d))
    slanted = [np.concatenate(parts) for parts in _sides(np.full(d, d**-0.5))]
    moves = [("a row in one stratum, or in none", axes[:1], none)]
    if d > 1:
        moves.append(("a slanted row in one stratum, or in none", slanted[0][None], none))
    if neighbours is Neighbours.REPLACE_ONE:
        moves.append(("a person who moves", axes[:1], axes[d : d + 1]))
        if d > 1:
            moves.append(("a person who moves, slanted", slanted[0][None], slanted[1][None]))
            moves.append(("a person who changes and stays", axes[:1], axes[1:2]))
    return tuple(
        Pair(name=name, grid=both, first=_whole(first, both), second=_whole(second, both))
        for name, first, second in moves
    )


def _sides(row: Floats) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    nothing = np.zeros_like(row)
    return (row, nothing), (nothing, row)


def _whole(rows: Floats, grid: Grid) -> Floats:
    return np.array([whole_row(row, grid) for row in rows]).reshape(-1, grid.dimension)
