"""A private choice of the row-norm bound from a public grid, usable in front of any mechanism.

A large bound means much noise, a small one clips many rows. Each candidate is scored by the noise it would
bring (public) plus the squared norm it would cut off (a sum over rows, one person moves it by at most one
largest squared norm); permute-and-flip picks one. Proof: docs/proofs/row-norm.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb, fmpq

from privcov.bounding import Bounding
from privcov.errors import ParameterError, without_reasons
from privcov.exact import uniform_below
from privcov.exact.trials import exp_trials
from privcov.grid import Grid
from privcov.mechanisms import DEFAULTS, MECHANISMS
from privcov.mechanisms.base import Mechanism
from privcov.privacy import ZCDP, Amount, ApproxDP, Loss, PureDP, decimal_text, exact
from privcov.randomness import Randomness
from privcov.schema import Schema
from privcov.table import open_table

CANDIDATES = 12
_UNIT = 2**20


@dataclass(frozen=True, kw_only=True)
class NormChoice:
    """What the choice costs and what it leaves for the mechanism; both hold together for the whole loss."""

    price: PureDP
    rest: Loss
    share: Fraction

    @property
    def options(self) -> dict[str, str]:
        """As they are written on the certificate."""
        return {"row_norm": "private", "row_norm_share": decimal_text(self.share)}

    @classmethod
    def of(cls, loss: Loss, *, share: Amount, word: str = "private") -> NormChoice:
        """Spend a share of a loss on the choice. Under zCDP the choice is pure √(2ρ′), which costs ρ′."""
        if word != "private":
            raise ParameterError("E211", f"row_norm must be declared or private, got {word!r}.")
        try:
            part = exact(share)
        except (ValueError, TypeError, ZeroDivisionError):
            part = Fraction(0)
        if not 0 < part < 1:
            raise ParameterError("E211", f"row_norm_share must be between 0 and 1, got {share}.")
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


def choose_row_norm(
    data: Any, *, schema: Schema, choice: NormChoice, mechanism: Mechanism, randomness: Randomness
) -> Schema:
    """The schema with a privately chosen row-norm bound: pure ε of ``choice.price``.

    Reads the table once; the release then reads it again, so a stream that can be read only once is refused.
    """
    _readable_twice(data)
    options = candidates(schema)
    if len(options) == 1:
        return schema
    largest = schema.squared_norm_bound
    noise = [_noise(option, mechanism, choice.rest) / largest for option in options]
    lost = without_reasons(lambda: _cut_off(data, schema, options))
    unit = Grid.of(schema).squared_norm_bound
    scores = [-(Fraction(cut, unit) + level) for cut, level in zip(lost, noise, strict=True)]
    rate = choice.price.epsilon / (2 * schema.max_rows_per_person)
    return options[permute_and_flip(randomness, scores, rate=rate)]


def candidates(schema: Schema) -> tuple[Schema, ...]:
    """The schema with its own bound, and with bounds whose clippable part is halved in squares, repeatedly."""
    whole = schema.squared_norm_bound
    fixed = Fraction(schema.fixed_squared_norm if schema.keeps_indicators else 0)
    if whole == fixed:  # nothing could be clipped
        return (schema,)
    squares = [fixed + (whole - fixed) / 2**j for j in range(1, CANDIDATES)]
    roots = [Fraction(math.isqrt(int(square * _UNIT**2)) + 1, _UNIT) for square in squares]
    return (schema, *(replace(schema, row_norm_bound=root) for root in roots))


def permute_and_flip(randomness: Randomness, scores: Sequence[Fraction], *, rate: Fraction) -> int:
    """An index chosen by McKenna and Sheldon's mechanism: walk the options in random order, and take one with
    probability exp(rate · (score − best score)). Exact: the trials are decided in balls where floats cannot.

    >>> from privcov.randomness import rehearsal
    >>> permute_and_flip(rehearsal(1), [Fraction(0), Fraction(5)], rate=Fraction(1000))
    1
    """
    left, best = list(range(len(scores))), max(scores)
    while True:
        place = left.pop(int(uniform_below(randomness, len(left), 1)[0]))
        gap = rate * (best - scores[place])
        ball = arb(fmpq(gap.numerator, gap.denominator))
        if exp_trials(randomness, np.array([float(gap)]), lambda *_: ball)[0]:  # noqa: B023 - called at once
            return place


def _cut_off(data: Any, schema: Schema, options: Sequence[Schema]) -> list[int]:
    """Σ over rows of the squared norm each option would cut off, exact, in the grid units of ``schema``."""
    bounding = Bounding.of(schema)
    numeric = np.array([feature.kind == "numeric" for feature in schema.features])
    counted = numeric if schema.keeps_indicators else np.ones_like(numeric)
    fixed = schema.fixed_squared_norm if schema.keeps_indicators else 0
    scale = 4**bounding.grid.exponent
    limits = [int((option.squared_norm_bound - fixed) * scale) for option in options]
    totals = [0] * len(options)
    for block in open_table(data, schema).blocks():
        for start in range(0, len(block[0]), 4096):
            rows = bounding.rows([cells[start : start + 4096] for cells in block])[:, counted]
            squared = np.einsum("ij,ij->i", rows, rows)  # whole numbers below 2^53: exact in any order
            for j, limit in enumerate(limits):
                totals[j] += int(np.maximum(squared - limit, 0.0).sum())
    return totals


def _noise(option: Schema, mechanism: Mechanism, loss: Loss) -> Fraction:
    """The error that noise would bring under an option, in scaled units: public."""
    grid = Grid.of(option)
    law = mechanism.law(loss=loss, grid=grid)
    if law is None:  # not additive: the default mechanism for this loss stands in for the scale
        law = MECHANISMS[DEFAULTS[loss.kind]]().law(loss=loss, grid=grid)
    assert law is not None
    return Fraction(law.rms_frobenius)


def _readable_twice(data: Any) -> None:
    if type(data).__name__ == "RecordBatchReader":
        raise ParameterError(
            "E211", "a stream can be read only once, and a private row norm needs two readings.",
            "Give a table or a file.",
        )  # fmt: skip
