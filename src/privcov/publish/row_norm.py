"""A private row-norm bound by itself: what ``privcov schema explain --data`` buys."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from privcov.frame.choice import NormChoice, choose_row_norm
from privcov.ledger import Ledger
from privcov.noise.randomness import kernel
from privcov.planning.candidates import choose
from privcov.privacy import Amount, Loss
from privcov.publish.paying import Bill, order_for_norm
from privcov.publish.sequence import guarded
from privcov.schema import Schema
from privcov.schema.grid import Grid


@dataclass(frozen=True, kw_only=True)
class ChosenNorm:
    """A schema with a row-norm bound that fits the data, and what it cost."""

    schema: Schema
    price: Loss
    rest: Loss
    """What is left of the loss, for a release under the bound."""


def private_row_norm(
    data: Any, *, schema: Schema, loss: Loss, share: Amount, ledger: str | Path | Ledger | None = None
) -> ChosenNorm:
    """Choose a row-norm bound from the table, for a share of a loss. The table is read once."""
    taken = choose(loss=loss, grid=Grid.of(schema))
    choice, source = NormChoice.of(taken.loss, share=share), kernel()

    def read(_: Bill) -> ChosenNorm:
        picked = choose_row_norm(
            data, schema=schema, choice=choice, mechanism=taken.mechanism, randomness=source
        )
        return ChosenNorm(schema=picked, price=choice.price, rest=choice.rest)

    return guarded(
        partial(order_for_norm, data, schema=schema, choice=choice),
        ledger=ledger,
        randomness=source,
        draw=lambda: (),
        read=read,
        document=lambda made: {"squared_row_norm_bound": str(made.schema.squared_norm_bound)},
    )
