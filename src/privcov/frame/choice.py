"""A private choice of the row-norm bound from a public grid, usable in front of any mechanism.

A large bound means much noise, a small one clips many rows. Each candidate is scored by the noise it would
bring (public) plus the squared norm it would cut off (a sum over rows, one person moves it by at most one
largest squared norm); permute-and-flip picks one. Proof: docs/proofs/row-norm.md. ``adaptive`` brings a choice
of its own, a sparse vector walk (``walk.py``), which takes this one's place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb, fmpq

from privcov.accounting import pure_to_zcdp
from privcov.errors import InputError, ParameterError, without_reasons
from privcov.frame.framing import Fitted
from privcov.frame.radii import candidates, cut_off
from privcov.frame.walk import radii, walk_radii
from privcov.mechanisms import DEFAULTS, MECHANISMS
from privcov.mechanisms.adaptive import Adaptive, Parts
from privcov.mechanisms.base import Mechanism
from privcov.noise.exact import uniform_below
from privcov.noise.exact.trials import exp_trials
from privcov.noise.randomness import Randomness
from privcov.privacy import ZCDP, Amount, ApproxDP, Loss, PureDP, decimal_text, exact
from privcov.schema import Schema
from privcov.schema.grid import Grid
from privcov.summing.engines import Engine
from privcov.text.grammar import brief

WALK_SHARE = Fraction(1, 4)
"""Of ``adaptive``: an eighth for its trace, an eighth for its walk."""
_UNIT = 2**20


def check_unweighted(schema: Schema) -> None:
    """Refuse weighted rows, before anything is paid: what is fitted to rows here counts each of them as one."""
    if schema.weight is not None:
        raise InputError(
            "E198",
            "a private frame and adaptive count every row as one, so they do not fit weighted rows.",
            "Release with frame declared and another mechanism.",
        )


@dataclass(frozen=True, kw_only=True)
class NormChoice:
    """What the choice costs and what it leaves for the mechanism; both hold together for the whole loss."""

    price: PureDP
    rest: Loss
    share: Fraction
    trace: ZCDP | None = None
    """What ``adaptive`` spends on a trace before it walks; None for a choice by permute-and-flip."""
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
    largest = schema.squared_norm_bound
    matrices = choice.strata or 1  # each has noise of its own; what is cut off adds up to the same
    noise = [
        matrices * _noise(grid, mechanism, choice.rest) / largest
        for grid in (Grid.of(option, strata=choice.strata is not None) for option in options)
    ]
    unit = Grid.of(schema).squared_norm_bound
    rate = choice.price.epsilon / (2 * schema.max_rows_per_person)

    def choose() -> Schema:
        lost = cut_off(data, schema, options, engine=engine).totals
        scores = [-(Fraction(cut, unit) + level) for cut, level in zip(lost, noise, strict=True)]
        return options[permute_and_flip(randomness, scores, rate=rate)]

    return without_reasons(choose)


def permute_and_flip(randomness: Randomness, scores: Sequence[Fraction], *, rate: Fraction) -> int:
    """An index chosen by McKenna and Sheldon's mechanism.

    It walks the options in random order, and takes one with probability exp(rate · (score − best score)). Exact:
    the trials are decided in balls where floats cannot.

    >>> from privcov.noise.randomness import rehearsal
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


def _noise(grid: Grid, mechanism: Mechanism, loss: Loss) -> Fraction:
    """The error that noise would bring to a matrix on a grid, in scaled units: public."""
    law = mechanism.law(loss=loss, grid=grid)
    if law is None:  # not additive: the default mechanism for this loss stands in for the scale
        law = MECHANISMS[DEFAULTS[loss.kind]]().law(loss=loss, grid=grid)
    assert law is not None
    return Fraction(law.rms_frobenius)
