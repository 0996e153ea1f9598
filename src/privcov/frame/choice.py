"""A private choice of the row-norm bound from a public grid, usable in front of any mechanism.

A large bound means much noise, a small one clips many rows. One noisy histogram of the norms of rows, between the
candidates, tells what each would cut off; what noise may hide of that counts as cut, so that a bound is small only
where few rows are surely longer. Proof: docs/proofs/row-norm.md. ``adaptive`` brings a choice of its own, a sparse
vector walk (``walk.py``), which takes this one's place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np

from privcov.accounting import pure_to_zcdp
from privcov.errors import InputError, ParameterError
from privcov.frame.counting import Radius, Sums, ask
from privcov.frame.framing import Fitted
from privcov.frame.radii import candidates, clippable
from privcov.frame.walk import radii, walk_radii
from privcov.linalg.arrays import Floats
from privcov.mechanisms import DEFAULTS, MECHANISMS
from privcov.mechanisms.adaptive import Adaptive, Parts
from privcov.mechanisms.base import Mechanism
from privcov.noise.randomness import Randomness
from privcov.privacy import ZCDP, Amount, ApproxDP, Loss, PureDP, decimal_text, exact
from privcov.releases.rounds import BIAS
from privcov.schema import Schema
from privcov.schema.grid import Grid
from privcov.summing.bounding import Bounding
from privcov.summing.engines import Engine, Local
from privcov.table.blocks import Block
from privcov.text.grammar import brief

WALK_SHARE = Fraction(1, 4)
"""Of ``adaptive``: an eighth for its trace, an eighth for its walk."""
_UNIT = 2**20
_WHOLE = 2**10
"""What a row of the largest weight counts as in a histogram of weighted rows."""


def check_unweighted(schema: Schema) -> None:
    """Refuse weighted rows, before anything is paid: a walk along sums needs all of them to move one way."""
    if schema.weight is not None:
        raise InputError(
            "E198",
            "adaptive does not take weighted rows: in its proof one row must move every sum in the same direction.",
            "Release with another mechanism.",
        )


@dataclass(frozen=True, kw_only=True)
class NormChoice:
    """What the choice costs and what it leaves for the mechanism; both hold together for the whole loss."""

    price: PureDP
    rest: Loss
    share: Fraction
    trace: ZCDP | None = None
    """What ``adaptive`` spends on a trace before it walks; None for a choice by a histogram."""
    strata: int | None = None
    """How many matrices will have the bound that is chosen, where there is one for each stratum."""

    @property
    def options(self) -> dict[str, str]:
        """As they are written on the certificate."""
        word = "private" if self.trace is None else "sparse-vector"
        return {"row_norm": word, "row_norm_share": decimal_text(self.share)}

    def rho_with(self, mechanism: Mechanism) -> Fraction | None:
        """What the choice and the matrix cost as zCDP; None where that is not known."""
        rest = mechanism.as_zcdp(self.rest)
        return None if rest is None else self.rho + rest

    @property
    def rho(self) -> Fraction:
        """What the choice costs as zCDP."""
        return pure_to_zcdp(self.price).rho + (0 if self.trace is None else self.trace.rho)

    def grids(self, schema: Schema) -> list[Grid]:
        """Every grid that the matrix may be calibrated to: public."""
        options = candidates(schema) if self.trace is None else radii(schema)
        return [Grid.of(one, strata=self.strata is not None) for one in options]

    @classmethod
    def before(cls, mechanism: Mechanism, loss: Loss, *, word: str, share: Amount) -> NormChoice | None:
        """The choice in front of a mechanism: its own where it has one, else as asked, or none."""
        if mechanism.row_norm is not None:
            if word not in ("declared", mechanism.row_norm):
                raise ParameterError(
                    "E211", f"{mechanism.name} always chooses its row norm privately.", "Leave row_norm out."
                )
            return cls.of(loss, share=WALK_SHARE, word=mechanism.row_norm)
        if word == "declared":
            return None
        if word != "private":
            raise ParameterError("E211", f"row_norm must be declared or private, got {word!r}.")
        return cls.of(loss, share=share)

    @classmethod
    def of(cls, loss: Loss, *, share: Amount, word: str = "private") -> NormChoice:
        """Spend a share of a loss on the choice. Under zCDP the choice is pure √(2ρ′), which costs ρ′."""
        if word not in ("private", "sparse-vector"):
            raise ParameterError("E211", f"row_norm must be declared or private, got {word!r}.")
        try:
            part = exact(share)
        except (ValueError, TypeError):
            part = Fraction(0)
        if not 0 < part < 1:
            raise ParameterError("E211", f"row_norm_share must be between 0 and 1, got {brief(share)}.")
        if word == "sparse-vector":  # half of the share for a trace, half for the walk
            parts = Parts.of(loss, walk=part / 2, trace=part / 2)
            assert parts.walk is not None
            return cls(price=parts.walk, rest=parts.rest, share=part, trace=parts.trace)
        if isinstance(loss, ZCDP):
            root = Fraction(math.isqrt(int(2 * part * loss.rho * _UNIT**2)), _UNIT)
            price = PureDP(epsilon=root, neighbours=loss.neighbours)
            rest: Loss = ZCDP(rho=(1 - part) * loss.rho, neighbours=loss.neighbours)
            return cls(price=price, rest=rest, share=part)
        price = PureDP(epsilon=part * loss.epsilon, neighbours=loss.neighbours)
        left = (1 - part) * loss.epsilon
        if isinstance(loss, ApproxDP):
            rest = ApproxDP(epsilon=left, delta=loss.delta, neighbours=loss.neighbours)
        else:
            rest = PureDP(epsilon=left, neighbours=loss.neighbours)
        return cls(price=price, rest=rest, share=part)

    def fit(
        self, data: Any, *, schema: Schema, mechanism: Mechanism, randomness: Randomness, engine: Engine
    ) -> Fitted:
        """The schema with a privately chosen bound, and the mechanism to run under it. Reads the table once."""
        asked: dict[str, Any] = {"schema": schema, "randomness": randomness, "engine": engine}
        if self.trace is None:
            schema = choose_row_norm(data, choice=self, mechanism=mechanism, **asked)
        else:
            assert isinstance(mechanism, Adaptive)
            assert isinstance(self.rest, ZCDP)
            schema, mechanism = walk_radii(
                data, mechanism=mechanism, price=self.price, trace=self.trace, rest=self.rest, **asked
            )
        return Fitted(schema=schema, mechanism=mechanism, rest=self.rest)


@dataclass(frozen=True, kw_only=True)
class Lengths(Radius):
    """A histogram of what a bound could clip of each row: its squared norm, or that of its numbers.

    The edges are the squared norms that candidates leave, so a row is in the cell of those that would clip it. A row
    with a weight counts as so many parts of ``whole`` as it weighs. For a pure loss.
    """

    @classmethod
    def between(cls, schema: Schema, options: Sequence[Schema]) -> Self:
        """The histogram that tells apart which of the candidates would clip a row; they are in falling order."""
        _, fixed = clippable(schema)
        unit = 4 ** Grid.of(schema).exponent
        rooms = [int((option.squared_norm_bound - fixed) * unit) for option in options[1:]]
        return cls(schema=schema, edges=tuple(room + 1 for room in reversed(rooms)))

    @property
    def whole(self) -> int:
        """What a row counts as, at most."""
        return 1 if self.schema.weight is None else _WHOLE

    @property
    def per_row(self) -> int:  # type: ignore[override]
        return self.whole

    def sums(self, bounding: Bounding, block: Block, *, room: Floats | None = None) -> Sums:
        by_feature = bounding.rows(block, room=room).T
        part = by_feature[clippable(self.schema)[0]]
        squared = np.einsum("ij,ij->j", part, part)  # whole numbers below 2^53: exact in any order
        if self.schema.weight is None:
            return self._found(squared)
        share = (
            by_feature[0] / bounding.one
        ) ** 2  # a row that counts as u is √u times as long, and so is its bound
        squared = np.where(share > 0, squared / np.where(share > 0, share, 1.0), 0.0)
        parts = np.floor(np.minimum(share, 1.0) * self.whole)
        cells = np.searchsorted(self.edges, squared, side="right")
        return np.bincount(cells, weights=parts, minlength=self.cells).astype(np.int64)


def choose_row_norm(
    data: Any,
    *,
    schema: Schema,
    choice: NormChoice,
    mechanism: Mechanism,
    randomness: Randomness,
    engine: Engine | None = None,
) -> Schema:
    """The schema with a privately chosen row-norm bound: pure ε of ``choice.price``.

    Reads the table once; the release then reads it again.
    """
    options = candidates(schema)
    if len(options) == 1:
        return schema
    look = Lengths.between(schema, options)
    facts: Any = {"schema": schema, "randomness": randomness, "engine": Local() if engine is None else engine}
    (answered,), count = ask([(look, choice.price)], data, **facts)
    counts = np.array(answered.answers, dtype=np.float64) / look.whole
    std = look.std(choice.price) / look.whole
    matrices = choice.strata or 1  # each has noise of its own, and its share of the rows
    grids = [Grid.of(option, strata=choice.strata is not None) for option in options]
    noises = [matrices * _noise(grid, mechanism, choice.rest) for grid in grids]
    public = schema.weight is None and choice.price.neighbours.count_is_public(schema.max_rows_per_person)
    rows = float(count) if public else float(counts.sum())
    return options[least_error(options, counts, rows=max(1.0, rows), std=std, noises=noises)]


def least_error(
    options: Sequence[Schema], counts: Floats, *, rows: float, std: float, noises: Sequence[float]
) -> int:
    """The place of the bound that leaves correlations the least error, by a noisy histogram of norms: public.

    As a frame chooses its radius (``releases/rounds.py``), but about the middles of bounds. A bound c leaves noise over
    what it keeps of a column's mean square, taken for no less than twice what noise may hide of that; and a bias of
    about ``BIAS``·√g, or g where that is less: g is the mean of (1 − c²/u²)₊ over the squared norms u², with one
    standard deviation of the noise on it.

    Parameters
    ----------
    options : sequence of Schema
        The candidates, in falling order.
    counts : ndarray
        How many rows lie below the least of them, between two, and above the second: with noise.
    rows : float
        How many rows there are: public, or the sum of the counts.
    std : float
        The standard deviation of the noise on a count.
    noises : sequence of float
        Under each candidate, the standard deviation of the noise on a product of two columns, in scaled units.
    """
    _, fixed = clippable(options[0])
    rooms = np.array([float(option.squared_norm_bound - fixed) for option in options])
    edges = rooms[::-1]
    middles = np.concatenate([edges[:1] / 2, np.sqrt(edges[1:] * edges[:-1])])
    columns = max(1, len(options[0].numbers))
    errors = []
    for room, noise in zip(rooms, noises, strict=True):
        cut = np.maximum(1 - room / middles, 0.0)
        lost = max(float(counts @ cut), 0.0) + std * float(np.linalg.norm(cut))
        squares = np.minimum(middles, room)
        kept = max(float(counts @ squares), 2 * std * float(np.linalg.norm(squares)), 1e-9) / columns
        share = lost / rows
        errors.append(math.hypot(noise / kept, min(BIAS * math.sqrt(share), share)))
    return int(np.argmin(errors))


def _noise(grid: Grid, mechanism: Mechanism, loss: Loss) -> float:
    """The noise that a product of two columns would have on a grid, in scaled units: public."""
    law = mechanism.law(loss=loss, grid=grid)
    if law is None:  # not additive: the default mechanism for this loss stands in for the scale
        law = MECHANISMS[DEFAULTS[loss.kind]]().law(loss=loss, grid=grid)
    assert law is not None
    return math.sqrt(law.offdiagonal_variance)
