"""How a private frame is fitted: round after round of noisy questions to the rows, and at the end a schema.

The place to start reading about frames, with docs/explain/frame.md beside it.

Rounds are chosen by public facts (``terms.py``) and by answers that were paid for. Proof: docs/proofs/frame.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import zip_longest
from typing import Any

from privcov.errors import ParameterError
from privcov.frame.counting import Look, Paid, ask
from privcov.frame.fitting import Fit, Question
from privcov.frame.shaping import Sums
from privcov.frame.spending import Purse
from privcov.frame.terms import Terms, refusal
from privcov.mechanisms.base import Mechanism
from privcov.noise.randomness import Randomness
from privcov.privacy import Loss
from privcov.releases.certificate import Interval, Round
from privcov.schema import Numeric, Schema
from privcov.schema.grid import Grid, framed_grid
from privcov.schema.weights import unweighted
from privcov.summing.engines import Engine


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """What a release is made under, once everything before it was chosen and paid for."""

    schema: Schema
    mechanism: Mechanism
    rest: Loss
    """What is left of the loss for the matrix."""
    rounds: tuple[Round, ...] = ()

    @cached_property
    def grid(self) -> Grid:
        return Grid.of(self.schema)


@dataclass(frozen=True, kw_only=True)
class Framing(Terms):
    """The terms of a frame, carried out on rows.

    Guarantee: the rounds and the matrix together cost ``loss``, however many of the rounds are asked.
    """

    def fit(
        self, data: Any, *, schema: Schema, mechanism: Mechanism, randomness: Randomness, engine: Engine
    ) -> Fitted:
        """Ask the rounds, and return what the release is made under. Reads the table once for each of them."""
        prices = self.price_of
        public = self.loss.neighbours.count_is_public(schema.max_rows_per_person)
        fit = Fit(
            declared=schema,
            most=self.detail.most,
            emphasis=self.emphasis,
            means=prices.get("means"),
            squares=prices.get("squares"),
            shaped=self.shape is not None,
            strata=self.strata,
        )
        reads = unweighted(schema)
        while asked := fit.next_looks():
            priced = [(one, prices[one.name]) for one in asked]
            rounds, rows = _answers(priced, data, schema=reads, randomness=randomness, engine=engine)
            fit = fit.after(*rounds, rows=rows if public else None)
        return framed(mechanism, self.loss, fit)


def _answers(
    asked: Sequence[tuple[Question, Paid]],
    data: Any,
    *,
    schema: Schema,
    randomness: Randomness,
    engine: Engine,
) -> tuple[tuple[Round, ...], int]:
    """Ask some questions in one reading; one for a shape is asked alone. Also how many rows there are."""
    counts = [(one, price) for one, price in asked if isinstance(one, Look)]
    if counts:
        return ask(counts, data, schema=schema, randomness=randomness, engine=engine)
    ((shape, price),) = ((one, price) for one, price in asked if isinstance(one, Sums))
    answer, rows = shape.ask(data, loss=price, randomness=randomness, engine=engine)
    return (answer,), rows


def replayed(
    mechanism: Mechanism,
    loss: Loss,
    *,
    schema: Schema,
    rows: int | None,
    rounds: tuple[Round, ...],
    emphasis: tuple[str, ...] = (),
    strata: int | None = None,
) -> Fitted:
    """What the rounds of a release say it was made under; refuses rounds that are none of ours.

    ``rows`` is the number of all rows, where it is public, and ``strata`` that of the matrices, as in ``Terms``.
    """
    plain = unweighted(schema).columns
    columns = [replace(c, centre=None, scale=None) if isinstance(c, Numeric) else c for c in plain]
    looks = sum(one.name == "scales" for one in rounds)
    fit = Fit(
        declared=replace(schema, columns=tuple(columns), row_norm_bound=None, shape=None),
        most=looks,
        emphasis=emphasis,
        means=next((one.loss for one in rounds if one.name == "means"), None),
        squares=next((one.loss for one in rounds if one.name == "squares"), None),
        shaped=any(one.name == "shape" for one in rounds),
        strata=strata,
    )
    counted = fit.squares is not None
    if reason := refusal(fit.declared, mechanism, shaped=fit.shaped, counted=counted, emphasis=emphasis):
        raise ParameterError("E218", f"a private frame needs {reason}.")
    told = iter(rounds)
    while True:
        asked = fit.next_looks()
        if not asked:
            break
        stated = [next(told, None) for _ in asked]
        for look, one in zip(asked, stated, strict=True):
            _check(look, one)
        fit = fit.after(*(one for one in stated if one is not None), rows=rows)
    if next(told, None) is not None:
        raise ParameterError("E218", "the rounds of the certificate are not those of a frame.")
    return framed(mechanism, loss, fit)


def _check(look: Question, one: Round | None) -> None:
    """Refuse a round that is not the one that comes next."""
    if one is None or look.name != one.name or look.cells != len(one.answers):
        raise ParameterError("E218", "the rounds of the certificate are not those of a frame.")
    asked = look.answered(one.loss, one.answers)
    if abs(one.std - asked.std) > 2.0**-40 * one.std or one.unit != asked.unit:
        raise ParameterError("E218", "the noise of a round is not the one that its price calls for.")
    pairs = zip_longest(one.intervals, asked.intervals, fillvalue=_NO_INTERVAL)
    if not all(_same(stated, found) for stated, found in pairs):
        raise ParameterError(
            "E218", "the intervals of a round are not those that follow from the rounds before it."
        )


_NO_INTERVAL = Interval(0.0, 0.0, 0.0, 0.0)


def _same(stated: Interval, found: Interval) -> bool:
    """Whether two intervals are the same, but for the last digits, in which machines may differ."""
    width = found.upper / 2 - found.lower / 2
    return all(abs(a / 2 - b / 2) <= 2.0**-40 * width for a, b in zip(stated, found, strict=True))


def framed(mechanism: Mechanism, loss: Loss, fit: Fit) -> Fitted:
    """What follows from the answers of all rounds: public, so that ``verify`` can ask it again."""
    rest = Purse.of(loss, mechanism).rest([one.loss for one in fit.rounds])
    law = mechanism.law(loss=rest, grid=framed_grid(fit.declared, strata=fit.strata is not None))
    assert law is not None
    return Fitted(schema=fit.framed(law), mechanism=mechanism, rest=rest, rounds=fit.rounds)
