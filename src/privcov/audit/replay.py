"""Level 0, grey-box replay: what reaches the mechanism, and everything said beside it, on neighbouring tables.

Deterministic, so no false alarms. The pipeline is run with a mechanism that records its input and releases zeros.
What it records may move by the declared sensitivities, in exact integers; nothing else may move at all: number
and order of calls, public parameters, fields of the release, exceptions, printed text, warnings, log records.
"""

from __future__ import annotations

import contextlib
import io
import logging
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from privcov.linalg.arrays import Floats
from privcov.mechanisms.base import Draw, Mechanism, Upper
from privcov.mechanisms.sensitivity import Sensitivity
from privcov.noise.exact.spectrum import rounded_eigenvalues
from privcov.noise.randomness import Randomness, rehearsal
from privcov.privacy import Loss, Neighbours
from privcov.releases.release import Release
from privcov.schema import Schema
from privcov.schema.grid import Grid
from privcov.summing.gram import Gram

Pipeline = Callable[..., Any]
"""Called as ``pipeline(table, schema=, loss=, mechanism=)``: ``privcov.release``, or one of your own."""

BASE_ROWS = 6


@dataclass(frozen=True, kw_only=True)
class Replay:
    """How many ordered pairs were compared, and the first that differed by more than it may."""

    pairs: int
    violation: str | None


@dataclass(frozen=True)
class _Call:
    """What one call of the mechanism was given."""

    loss: Loss
    grid: Grid
    upper: Upper


@dataclass(frozen=True)
class _Run:
    calls: tuple[_Call, ...]
    public: tuple[Any, ...]


def special_rows(dimension: int) -> Floats:
    """The 14 rows that break careless pipelines: axes, diagonals, far too long, tiny, missing, infinite, subnormal."""
    axes, half = np.eye(max(dimension, 2))[:, :dimension], math.sqrt(0.5)
    one, two, every = axes[0], axes[1], np.ones(dimension)
    gap = np.full(dimension, 0.5)
    gap[dimension // 2] = np.nan
    return np.array(
        [
            one, two, -one, half * (one + two), half * (one - two), 10 * one, 1e200 * one, 1e-200 * one,
            np.nan * every, np.inf * every, gap, 0 * every, 5e-324 * every, 1.7e308 * every,
        ]
    )  # fmt: skip


def bases(dimension: int) -> list[Floats]:
    """What stands beside the special row: random rows, constant rows, zero rows."""
    shape = (BASE_ROWS, dimension)
    return [rehearsal(0).normals(*shape), np.full(shape, 0.3), np.zeros(shape)]


def replay(pipeline: Pipeline, *, schema: Schema, loss: Loss) -> Replay:
    """Compare every ordered pair of neighbouring tables; stop at the first violation.

    Under replace-one a special row takes the place of another, 546 pairs; under add-remove it is there or not.
    """
    sensitivity = Sensitivity.of(Grid.of(schema), loss.neighbours)
    seen = 0
    columns = len(schema.read_columns)
    for base in bases(columns):
        tables = [np.vstack([base, row]) for row in special_rows(columns)]
        runs = [_run(pipeline, table, schema, loss) for table in tables]
        without = _run(pipeline, base, schema, loss) if loss.neighbours is Neighbours.ADD_REMOVE else None
        for i, one in enumerate(runs):
            others = [r for j, r in enumerate(runs) if j != i] if without is None else [without, without]
            for place, other in enumerate(others):
                seen += 1
                one_way = (one, other) if without is None or place == 0 else (other, one)
                if found := _violation(*one_way, sensitivity):
                    return Replay(pairs=seen, violation=found)
    return Replay(pairs=seen, violation=None)


def _violation(one: _Run, other: _Run, sensitivity: Sensitivity) -> str | None:
    if one.public != other.public:
        return "what is public beside the matrix differs"
    if len(one.calls) != len(other.calls):
        return "the mechanism is called a different number of times"
    for ours, theirs in zip(one.calls, other.calls, strict=True):
        if ours.loss != theirs.loss or ours.grid != theirs.grid:
            return "the mechanism is given other public parameters"
        if excess := _too_far(ours.upper - theirs.upper, sensitivity):
            return excess
    return None


def _too_far(change: Upper, sensitivity: Sensitivity) -> str | None:
    """The first norm in which an integer change exceeds its declared bound, and by what factor."""
    d = sensitivity.dimension
    rows, columns = np.triu_indices(d)
    weights = np.where(rows == columns, 1, 2).astype(object)
    square = Fraction(int((weights * change**2).sum()))
    if square > sensitivity.frobenius**2:
        return f"Frobenius norm {math.sqrt(square / sensitivity.frobenius**2):.3g} times the declared one"
    if (length := Fraction(int(np.abs(change).sum()))) > sensitivity.triangle_l1:
        return f"ℓ1 norm {float(length / sensitivity.triangle_l1):.3g} times the declared one"
    full = np.zeros((d, d), dtype=object)
    full[rows, columns] = full[columns, rows] = change
    values = rounded_eigenvalues(full.tolist())
    halves = Fraction(1, 2)  # each eigenvalue is the nearest integer to the true one
    for name, found, declared in (
        ("nuclear", sum(map(abs, values)) - d * halves, sensitivity.nuclear),
        ("operator", max(map(abs, values)) - halves, sensitivity.operator),
        ("spread", max(*values, 0) - min(*values, 0) - 2 * halves, sensitivity.spread),
    ):
        if found > declared:
            return f"{name} norm {float(found / declared):.3g} times the declared one"
    return None


def _run(pipeline: Pipeline, table: Floats, schema: Schema, loss: Loss) -> _Run:
    calls: list[_Call] = []
    outcome: Any
    with _listening() as heard:
        try:
            outcome = _public(pipeline(table, schema=schema, loss=loss, mechanism=_recorder(calls)))
        except Exception as error:  # which, and what it says, must not depend on the data
            outcome = (type(error), str(error))
    return _Run(tuple(calls), (outcome, *heard()))


def _public(result: Any) -> Any:
    """Everything of a result that an observer sees, but the time of day."""
    if not isinstance(result, Release):
        return result
    return replace(result, certificate=replace(result.certificate, created=""))


@contextlib.contextmanager
def _listening() -> Iterator[Callable[[], tuple[Any, ...]]]:
    """Printed text, warnings and log records of what runs inside."""
    out, err, records = io.StringIO(), io.StringIO(), list[str]()
    handler = logging.Handler(level=0)
    handler.emit = lambda record: records.append(record.getMessage())  # type: ignore[method-assign]
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            warnings.catch_warnings(record=True) as warned,
        ):
            warnings.simplefilter("always")
            yield lambda: (out.getvalue(), err.getvalue(), [str(w.message) for w in warned], records)
    finally:
        root.removeHandler(handler)


def _recorder(calls: list[_Call]) -> Mechanism:
    """A mechanism that notes what it is given and releases zeros."""

    class Recording(Draw):
        def __init__(self, loss: Loss, grid: Grid) -> None:
            self.loss, self.grid = loss, grid

        def _answer(self, gram: Gram) -> Upper:
            upper = gram.reveal_to_mechanism()
            calls.append(_Call(self.loss, self.grid, upper))
            return np.zeros(upper.size, dtype=object)

    class Recorder(Mechanism):
        name, kinds, proof = "recorder", ("pure", "approximate", "zcdp"), "docs/proofs/audit.md"
        summary = best_at = "records what a mechanism is given; releases zeros"

        def law(self, *, loss: Loss, grid: Grid) -> None:
            """Zeros are no noise."""

        def draw(self, *, loss: Loss, grid: Grid, randomness: Randomness) -> Recording:
            return Recording(loss, grid)

    return Recorder()
