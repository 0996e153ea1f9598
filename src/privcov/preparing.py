"""Everything about a release that public facts decide, before anything is paid, drawn or read.

``release`` begins here; ``check`` ends here. A table is opened, which looks at names, types and sizes, and no row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Literal

from privcov.engines import Engine, engine_for
from privcov.errors import InputError, ParameterError
from privcov.ledger import Ledger, Request
from privcov.mechanisms.base import Mechanism
from privcov.paying import counts_rho, order_for
from privcov.planning.candidates import Candidate, decide
from privcov.privacy import Amount, Loss
from privcov.row_norm.choice import NormChoice
from privcov.schema import Schema
from privcov.table import Table, open_table


@dataclass(frozen=True, kw_only=True)
class Ready:
    """A release that nothing public stands in the way of, once ``order`` has been made."""

    decided: Candidate
    table: Table
    engine: Engine
    choice: NormChoice | None
    order: Callable[[], Request]


@dataclass(frozen=True, kw_only=True)
class Prospect:
    """What a release would be and cost. Nothing was paid, drawn or read for it."""

    mechanism: str
    loss: Loss
    columns: int
    """Of the table, as declared."""
    dimension: int
    """Of the matrix: with the intercept and one column for each level."""
    engine: str
    price: Mapping[str, Fraction] | None
    """What the ledger would charge, by its rule; none without a ledger."""
    left: Mapping[str, Fraction] | None
    """What would be left there."""


def prepare(
    data: Any,
    *,
    schema: Schema,
    loss: Loss,
    mechanism: str | Mechanism,
    purpose: str,
    row_norm: Literal["declared", "private"],
    row_norm_share: Amount,
    ledger: str | Path | Ledger | None,
    engine: str | Engine,
    expect_rows: int | None,
    options: Mapping[str, Any],
) -> Ready:
    """Refuse what public facts refuse, and return what is left to do. See ``privcov.release`` for the arguments."""
    options = {**options, "as_asked": counts_rho(ledger)}
    decided = decide(mechanism, loss=loss, schema=schema, purpose=purpose, **options)
    table = open_table(data, schema)
    if expect_rows is not None:
        _check_rows(table, expect_rows, loss=loss, schema=schema)
    runner = engine_for(engine, table)
    choice = NormChoice.before(decided.mechanism, decided.loss, word=row_norm, share=row_norm_share)
    order = partial(order_for, decided.mechanism, loss=decided.loss, schema=schema, choice=choice)
    return Ready(decided=decided, table=table, engine=runner, choice=choice, order=order)


def _check_rows(table: Table, expected: int, *, loss: Loss, schema: Schema) -> None:
    """Refuse a table that has not the number of records it should, where that number is public."""
    if isinstance(expected, bool) or not isinstance(expected, int) or expected < 1:
        raise ParameterError("E216", f"expect_rows must be a whole number from 1, got {expected!r}.")
    if not loss.neighbours.count_is_public(schema.max_rows_per_person):
        raise ParameterError(
            "E216",
            "the number of rows is private here, so it cannot be compared with the number you expect.",
            "Leave it out, or use replace-one with one row per person.",
        )
    found = table.count()
    if found is None:
        raise InputError(
            "E135",
            "the records of this table cannot be counted before payment.",
            "Give it as a file or as a frame in memory, or leave the expected number out.",
        )
    if found != expected:
        raise InputError(
            "E135",
            f"the table has {found:,} records, but you expected {expected:,}.",
            "Every line counts as a record, also blank lines and line breaks inside cells. See privcov inspect and "
            "convert.",
        )


def check(
    data: Any,
    *,
    schema: Schema,
    loss: Loss,
    mechanism: str | Mechanism = "auto",
    purpose: str = "covariance",
    as_published: bool = False,
    row_norm: Literal["declared", "private"] = "declared",
    row_norm_share: Amount = Fraction(1, 10),
    ledger: str | Path | Ledger | None = None,
    engine: str | Engine = "local",
    expect_rows: int | None = None,
    **options: Any,
) -> Prospect:
    """Whether ``release`` with the same arguments would go through, and what it would cost; its refusals are raised.

    >>> import numpy as np, privcov as pc
    >>> schema = pc.Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}}})
    >>> loss = pc.PureDP(epsilon=1, neighbours="replace-one")
    >>> pc.check(np.array([[35.0]]), schema=schema, loss=loss).dimension
    2
    """
    ready = prepare(
        data,
        schema=schema,
        loss=loss,
        mechanism=mechanism,
        purpose=purpose,
        row_norm=row_norm,
        row_norm_share=row_norm_share,
        ledger=ledger,
        engine=engine,
        expect_rows=expect_rows,
        options={**options, "as_published": as_published},
    )
    request, price, left = ready.order(), None, None
    if ledger is not None:
        book = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
        price, left = book.quote(request)
    return Prospect(
        mechanism=ready.decided.mechanism.name,
        loss=ready.decided.loss,
        columns=len(schema.columns),
        dimension=schema.dimension,
        engine=ready.engine.name,
        price=price,
        left=left,
    )
