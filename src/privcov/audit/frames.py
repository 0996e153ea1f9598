"""Whole releases behind a private frame, on neighbouring tables: every round of the frame, and the matrix.

What a round asks follows from the answers of those before it, so tables are told apart by whole runs. Of each run
the nominal log-likelihood ratios of its rounds are kept, and those of its matrix in several norms, alone and together:
functions of what was released, which can miss a leak and never invent one. docs/proofs/frame.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privcov.audit.claims import Claim, Epsilon, Gaussian, Rho
from privcov.audit.neighbours import Pair
from privcov.audit.sampling import Outputs, Progress, Sampler, Source, gather
from privcov.audit.settings import TELLING_EPSILON, Setting, promises
from privcov.errors import ParameterError
from privcov.frame.counting import Look, Means
from privcov.frame.fitting import Fit
from privcov.frame.spending import Purse
from privcov.linalg.arrays import Floats
from privcov.linalg.triangle import symmetric
from privcov.mechanisms import MECHANISMS
from privcov.mechanisms.base import Mechanism
from privcov.privacy import ZCDP, Loss, Neighbours, PureDP
from privcov.publish.release import release
from privcov.releases.certificate import Round
from privcov.releases.release import Release
from privcov.schema import Schema
from privcov.schema.grid import Grid, framed_grid
from privcov.summing.bounding import Bounding

_UNIT = 2**20
_OTHERS = 20
"""Rows beside the person's: few, so that noise decides what the frame is."""
_STATISTICS = ("rounds", "matrix, ℓ1", "matrix, Frobenius", "matrix, nuclear", "matrix, normal")
_NAMES = (*_STATISTICS, *(f"rounds and {name}" for name in _STATISTICS[1:]))


@dataclass(frozen=True, kw_only=True)
class Whole(Sampler):
    """Releases of whole tables in a frame of centres, scales and a radius."""

    schema: Schema

    def is_additive(self) -> bool:
        """The matrix of each run has units of its own."""
        return False

    def both_sides(
        self, pairs: Sequence[Pair], runs: int, *, processes: int | None, progress: Progress | None
    ) -> list[tuple[Outputs, Outputs]]:
        """The statistics of each run, in units of 2^-20."""
        each = max(2, runs // (2 * len(pairs)))
        tasks = [(self._some(pair, which), each) for pair in pairs for which in (0, 1)]
        found = gather(tasks, processes=processes, progress=progress)
        return [(found[2 * i], found[2 * i + 1]) for i in range(len(pairs))]

    def _some(self, pair: Pair, which: int) -> Callable[[int], Outputs]:
        asked: dict[str, Any] = {"schema": self.schema, "loss": self.loss, "mechanism": self.mechanism}

        def some(count: int) -> Outputs:
            source, table = self.source(), pair.rows(which)
            made = (release(table, frame="scales", randomness=source, **asked) for _ in range(count))
            return np.array([np.rint(_UNIT * self._ratios(one, pair)) for one in made]).astype(np.int64)

        return some

    def _ratios(self, made: Release, pair: Pair) -> Floats:
        """What a run says for the first table and against the second, by its rounds, its matrix and both."""
        rounds = made.certificate.rounds
        paid = {one.name: one.loss for one in rounds}
        looks = sum(one.name == "scales" for one in rounds)
        fit = Fit(declared=self.schema, most=looks, means=paid.get("means"))
        told, said = list(rounds), 0.0
        while asked := fit.next_looks():
            answers = [told.pop(0) for _ in asked]
            for look, one in zip(asked, answers, strict=True):
                assert isinstance(look, Look)
                said += _of_round(look, one, pair)
            fit = fit.after(*answers, rows=made.rows)
        found = _of_matrix(made, pair)
        return np.array([said, *found, *(said + one for one in found)])


def _of_round(look: Look, one: Round, pair: Pair) -> float:
    bounding, answers = Bounding.of(look.schema), np.array(one.answers, dtype=np.float64)
    ours, theirs = (np.abs(answers - look.sums(bounding, list(pair.rows(which).T))) for which in (0, 1))
    scale = float(look.noise(one.loss))
    if not isinstance(one.loss, PureDP):
        return float(theirs @ theirs - ours @ ours) / (2 * scale**2)
    if isinstance(look, Means):  # the law of a cube
        return float(theirs.max() - ours.max()) / scale
    return float(theirs.sum() - ours.sum()) / scale


def _of_matrix(made: Release, pair: Pair) -> list[float]:
    """In the norms of the laws of noise: what is left of the loss times the difference of two distances."""
    certificate, grid = made.certificate, Grid.of(made.schema)
    bounding = Bounding.of(made.schema, grid)
    sums = [(rows.T @ rows) for rows in (bounding.rows(list(pair.rows(which).T)) for which in (0, 1))]
    noisy = np.asarray(symmetric(np.array(made.upper, dtype=np.float64), grid.dimension))
    ours, theirs = noisy - sums[0], noisy - sums[1]
    change = sums[0] - sums[1]
    purse = Purse.of(certificate.loss, MECHANISMS[certificate.mechanism]())
    amount = float(next(iter(purse.rest([one.loss for one in certificate.rounds]).amounts.values())))
    sizes = [(_sizes(theirs)[i] - _sizes(ours)[i], max(size, 1.0)) for i, size in enumerate(_sizes(change))]
    found = [amount * apart / size for apart, size in sizes]
    assert certificate.law is not None
    variance = certificate.law.offdiagonal_variance / float(grid.unit) ** 2
    return [*found, float((theirs**2).sum() - (ours**2).sum()) / (4 * variance)]


def _sizes(matrix: Floats) -> tuple[float, float, float]:
    """The ℓ1 norm of the triangle, the Frobenius norm and the nuclear norm."""
    triangle = np.abs(matrix[np.triu_indices(len(matrix))]).sum()
    return float(triangle), float(np.linalg.norm(matrix)), float(np.abs(np.linalg.eigvalsh(matrix)).sum())


def ratios(outputs: Outputs, _: Pair) -> dict[str, Floats]:
    """The statistics of the runs, by name."""
    return {name: outputs[:, place] / _UNIT for place, name in enumerate(_NAMES)}


def framed_settings(
    mechanism: Mechanism, loss: Loss, dimension: int, *, source: Source
) -> tuple[Setting, ...]:
    """What an audit behind a frame looks at: as promised; of pure losses, also where faults show best."""
    if not (isinstance(dimension, int) and 2 <= dimension <= 64):
        raise ParameterError("E209", f"an audit behind a frame takes from 2 to 64 columns, got {dimension}.")
    asked: dict[tuple[Loss, int], str] = {(loss, dimension): "as promised"}
    if isinstance(loss, PureDP):
        asked.setdefault((math.ceil(TELLING_EPSILON / loss.epsilon) * loss, 2), "where a fault shows best")
    return tuple(_setting(mechanism, label, *one, source=source) for one, label in asked.items())


def _setting(mechanism: Mechanism, label: str, loss: Loss, dimension: int, *, source: Source) -> Setting:
    columns = {f"c{place}": {"lower": -1, "upper": 1} for place in range(dimension - 1)}
    schema = Schema.from_dict({"columns": columns})
    grid = framed_grid(schema)
    words = ", ".join(f"{name} {float(amount):g}" for name, amount in loss.amounts.items())
    return Setting(
        label=f"behind a frame, {label}: {words}, {dimension} columns",
        sampler=Whole(mechanism=mechanism, loss=loss, grid=grid, source=source, schema=schema),
        pairs=_pairs(grid, dimension - 1, loss.neighbours),
        claims=_promised(mechanism, loss, grid),
        scored=ratios,
    )


def _promised(mechanism: Mechanism, loss: Loss, grid: Grid) -> tuple[Claim, ...]:
    """The loss, and the curve of a Gaussian, to which rounds and matrix add up; no finer claim is about the whole."""
    kept = (Epsilon, Gaussian, Rho) if isinstance(loss, ZCDP) else (Epsilon, Gaussian)
    return tuple(claim for claim in promises(mechanism, loss, grid) if isinstance(claim, kept))


def _pairs(grid: Grid, columns: int, neighbours: Neighbours) -> tuple[Pair, ...]:
    """A person at one corner of the bounds, and at another, or among the others, or not there: in original units."""
    others = np.full((_OTHERS, columns), 0.3)
    corner, opposite, inside = np.ones(columns), -np.ones(columns), np.full(columns, 0.3)
    people: list[tuple[str, Floats, Floats | None]]
    people = [("two corners", corner, opposite), ("a corner, or among the others", corner, inside)]
    if neighbours is Neighbours.ADD_REMOVE:
        people = [("a corner, or not there", corner, None), ("among the others, or not there", inside, None)]
    return tuple(
        Pair(
            name=name,
            grid=grid,
            first=np.vstack([others, one]),
            second=others if other is None else np.vstack([others, other]),
        )
        for name, one, other in people
    )
