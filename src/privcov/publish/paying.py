"""Payments to the ledger: refuse early, pay before the first random bit, record the delivery.

The order is the guarantee. Everything that public facts can refuse is refused before paying; the payment is
durable before anything is drawn or read; the release is recorded after it was delivered. A crash at any point
leaves a payment without a release at worst. Proof: docs/proofs/ledger.md.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from privcov.errors import BudgetError, ParameterError
from privcov.frame.choice import NormChoice
from privcov.frame.framing import Framing
from privcov.frame.spending import as_rho, shared_with_total
from privcov.ledger import Ledger, Receipt, Request
from privcov.mechanisms.base import Mechanism
from privcov.noise.randomness import Randomness
from privcov.privacy import Loss, decimal_text
from privcov.releases.documents import to_text
from privcov.schema import Schema
from privcov.schema.grid import Grid
from privcov.schema.strata import Strata
from privcov.table import open_table
from privcov.text.grammar import brief


@dataclass(kw_only=True)
class Bill:
    """A payment made, waiting for its release; without a ledger it does nothing but tell the time."""

    created: str
    """When it was asked for, which the certificate says: the time of a release would tell how long reading took."""
    ledger: Ledger | None = None
    receipt: Receipt | None = None
    _fingerprint: str = field(default="", repr=False)

    def saw(self, fingerprint: Callable[[bytes], str]) -> None:
        """Remember which table was read, under the ledger's key. Called where the data is.

        The key is forgotten: whoever had both could try out tables until one has this fingerprint.
        """
        if self.receipt is not None:
            made = fingerprint(self.receipt.key)
            self.receipt, self._fingerprint = replace(self.receipt, key=b""), made

    def delivered(self, document: Callable[[], Mapping[str, Any]]) -> None:
        """Record the release, now that it is where it was asked for, by the digest of its unsigned text."""
        if self.ledger is not None and self.receipt is not None:
            digest = hashlib.sha256(to_text(document()).encode("ascii")).hexdigest()
            try:
                self.ledger.done(self.receipt, digest=digest, fingerprint=self._fingerprint)
            except (
                BudgetError
            ) as reason:  # the release is paid for and delivered: it must not be lost over this
                warnings.warn(
                    f"the release is paid for, as entry {self.receipt.number}, but could not be recorded: {reason}",
                    stacklevel=3,
                )


def counts_rho(ledger: str | Path | Ledger | None) -> bool:
    """Whether a ledger adds up ρ, so that a promise stronger than asked would cost more."""
    if ledger is None:
        return False
    book = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
    return book.balance().account.rule == "zcdp"


def pay(ledger: str | Path | Ledger | None, order: Callable[[], Request], *, randomness: Randomness) -> Bill:
    """Pay for an order, or do nothing where no ledger keeps count. A rehearsal is not paid for: it is refused."""
    created = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    if ledger is None:
        return Bill(created=created)
    if randomness.kind != "kernel":
        raise ParameterError(
            "E212",
            "a rehearsal cannot be paid for: its noise can be repeated, so it is not a release.",
            "Leave the ledger out.",
        )  # fmt: skip
    request = order()
    book = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
    return Bill(created=created, ledger=book, receipt=book.pay(request))


def order_for(
    mechanism: Mechanism,
    *,
    loss: Loss,
    schema: Schema,
    choice: NormChoice | Framing | None,
    strata: Strata | None = None,
    total_share: Fraction = Fraction(0),
) -> Request:
    """A release as a request, once nothing public stands in its way: no bit is drawn and no row is read.

    Strata are one request: their losses do not add up, but that of all of them with that of a total beside them does,
    to the whole (docs/proofs/strata.md).
    """
    rest = loss if choice is None else choice.rest
    rho = mechanism.as_zcdp(loss) if choice is None else choice.rho_with(mechanism)
    if total_share:
        total, rest = shared_with_total(loss, mechanism, total_share)
        mechanism.refuse_early(loss=total, grid=Grid.of(schema, pooled=True))
        left = mechanism.as_zcdp(rest)
        rho = None if left is None else as_rho(total) + left
    grids = [Grid.of(schema, strata=strata is not None)] if choice is None else choice.grids(schema)
    told = {} if strata is None else {"by": brief(strata.title), "strata": str(len(strata.names))}
    told |= {"total_share": decimal_text(total_share)} if total_share else {}
    for grid in grids:  # any of them may be chosen
        mechanism.refuse_early(loss=rest, grid=grid)
    law = mechanism.law(loss=rest, grid=grids[0])
    return Request(
        loss=loss,
        mechanism=mechanism.name,
        options={**mechanism.options, **told, **({} if choice is None else choice.options)},
        grid=grid_facts(grids[0]),
        noise={} if law is None else {"law": law.name, "scale": repr(law.scale)},
        arithmetic=mechanism.arithmetic,
        rho=rho,
    )


def order_for_norm(data: Any, *, schema: Schema, choice: NormChoice) -> Request:
    """A private row-norm bound alone, as a request; refuses what public facts refuse."""
    open_table(data, schema)
    return Request(
        loss=choice.price, mechanism="row-norm", grid=grid_facts(choice.grids(schema)[0]), rho=choice.rho
    )


def grid_facts(grid: Grid) -> dict[str, int]:
    """The public facts of a grid that noise is scaled to."""
    return {
        "dimension": grid.dimension,
        "exponent": grid.exponent,
        "squared_norm_bound": grid.squared_norm_bound,
        "max_rows_per_person": grid.max_rows_per_person,
    }
