"""Outputs of a mechanism on made-up tables, through the very code a release runs: draw, then answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcov.audit.neighbours import Pair
from privcov.audit.parallel import Draw, Progress, gather
from privcov.mechanisms.base import Mechanism, Noise
from privcov.noise.randomness import Randomness, kernel
from privcov.privacy import Loss
from privcov.schema.grid import Grid
from privcov.summing.gram import Gram

Outputs = NDArray[Any]
"""Integers of upper triangles, one run a row: int64 where they fit, else Python integers. Floats are a fault."""
Source = Callable[[], Randomness]


@dataclass(frozen=True, kw_only=True)
class Sampler:
    """One mechanism at one loss on one grid. ``source`` is called anew for every batch, in the process that draws."""

    mechanism: Mechanism
    loss: Loss
    grid: Grid
    source: Source = kernel

    def is_additive(self) -> bool:
        """Whether the whole noise is drawn before the data: then one draw serves every table."""
        probe = self.mechanism.draw(loss=self.loss, grid=self.grid, randomness=self.source())
        return type(probe) is Noise

    def noise(self) -> Draw:
        """Draws of additive noise alone."""

        def some(count: int) -> Outputs:
            randomness = self.source()
            return stack(
                [
                    self.mechanism.draw(loss=self.loss, grid=self.grid, randomness=randomness).upper  # type: ignore[attr-defined]
                    for _ in range(count)
                ]
            )

        return some

    def answers(self, make_gram: Callable[[], Gram]) -> Draw:
        """Releases of one table."""

        def some(count: int) -> Outputs:
            randomness, gram = self.source(), make_gram()
            return stack(
                [
                    self.mechanism.draw(loss=self.loss, grid=self.grid, randomness=randomness).answer(gram)
                    for _ in range(count)
                ]
            )

        return some

    def both_sides(
        self, pairs: Sequence[Pair], runs: int, *, processes: int | None, progress: Progress | None
    ) -> list[tuple[Outputs, Outputs]]:
        """Outputs on both tables of every pair.

        ``runs`` draws in all. Additive noise is drawn once and added to every table: the confidence bounds of an
        audit hold together by a union bound, which does not mind that tables share draws. Other mechanisms are
        run on each table with its share of the runs.
        """
        if self.is_additive():
            (noise,) = gather([(self.noise(), runs)], processes=processes, progress=progress)
            return [(noise + pair.upper(0), noise + pair.upper(1)) for pair in pairs]
        each = max(2, runs // (2 * len(pairs)))
        tasks = [
            (self.answers(lambda p=pair, w=which: p.gram(w)), each)  # type: ignore[misc]
            for pair in pairs
            for which in (0, 1)
        ]
        found = gather(tasks, processes=processes, progress=progress)
        return [(found[2 * i], found[2 * i + 1]) for i in range(len(pairs))]


def stack(answers: Sequence[Any]) -> Outputs:
    """Triangles as one array: int64 where every integer is far from its end; floats where some are no integers."""
    made = np.array(answers, dtype=object)
    if any(value != int(value) for value in made.ravel().tolist()):
        return made.astype(np.float64)
    return made.astype(np.int64) if max(map(abs, made.ravel().tolist()), default=0) < 2**61 else made
