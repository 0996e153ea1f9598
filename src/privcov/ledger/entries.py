"""What a ledger writes down: a request before it is run, and the chain that holds the entries together.

Every entry is canonical JSON. Its link is an HMAC, under the ledger's own secret, of its number, the link
before it and its text; the seal does the same for the number of entries and the last link, so that an entry
taken off the end is missed too. Nothing here has seen data, except that a ``done`` entry holds a keyed
fingerprint of the table: docs/explain/ledger.md.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache
from typing import Any

from privcov.privacy import ZCDP, ApproxDP, Loss, PureDP, decimal_text, exact
from privcov.releases.documents import to_text
from privcov.version import __version__

FORMAT = "privcov/ledger/1"
START = "0" * 64
"""The link before the first entry."""
KINDS: dict[str, type[Loss]] = {"pure": PureDP, "approximate": ApproxDP, "zcdp": ZCDP}

Amounts = Mapping[str, Fraction]
Row = tuple[int, str, str]
"""A stored entry: its number, its text, its link."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is about to be run, in public facts alone; enough for a better accountant to price it again.

    Parameters
    ----------
    loss : PureDP, ApproxDP or ZCDP
        What the release promises.
    mechanism : str
        The name of the mechanism.
    options : mapping of str to str, default {}
        Its options.
    grid : mapping of str to int, default {}
        The dimension, the bound on the squared integer norm of a row, and the rows per person.
    noise : mapping of str to str, default {}
        The law of additive noise and its scale, where there is one.
    arithmetic : str, default "exact"
        "exact" or "idealized".
    rho : Fraction, optional
        The zCDP cost that the mechanism itself knows of, under the relation of the loss.

    Examples
    --------
    >>> import privcov as pc
    >>> request = Request(loss=pc.PureDP(epsilon=1, neighbours="replace-one"), mechanism="laplace")
    >>> request.facts()["loss"]
    {'kind': 'pure', 'neighbours': 'replace-one', 'epsilon': '1'}
    """

    loss: Loss
    mechanism: str
    options: Mapping[str, str] = field(default_factory=dict)
    grid: Mapping[str, int] = field(default_factory=dict)
    noise: Mapping[str, str] = field(default_factory=dict)
    arithmetic: str = "exact"
    rho: Fraction | None = None

    def facts(self) -> dict[str, Any]:
        """Return the facts as they stand in the ledger.

        Returns
        -------
        dict
            JSON values; exact amounts are texts.
        """
        return {
            "loss": loss_facts(self.loss),
            "mechanism": self.mechanism,
            "options": dict(self.options),
            "grid": dict(self.grid),
            "noise": dict(self.noise),
            "arithmetic": self.arithmetic,
            "rho": None if self.rho is None else decimal_text(self.rho),
            "version": __version__,
        }


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """Proof of a payment to the code that made it.

    Attributes
    ----------
    number : int
        The number of the entry.
    key : bytes
        The key that makes fingerprints of tables. It is never shown.

    Examples
    --------
    >>> Receipt(number=2, key=bytes(32))
    Receipt(number=2)
    """

    number: int
    key: bytes = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One line of ``Ledger.log``.

    Attributes
    ----------
    number : int
        Its place in the chain, from 1.
    kind : str
        "opened", "turned", "paid" or "done".
    created : str
        When it was written, in UTC.
    facts : mapping of str to Any
        What it says, as JSON values.
    same_table_as : int or None
        The number of the first entry whose release read the same table.

    Examples
    --------
    >>> Entry(number=1, kind="opened", created="2026-01-01T00:00:00Z", facts={}).same_table_as is None
    True
    """

    number: int
    kind: str
    created: str
    facts: Mapping[str, Any]
    same_table_as: int | None = None


def loss_facts(loss: Loss) -> dict[str, str]:
    """A loss as texts; ``loss_of`` reads them back."""
    return {"kind": loss.kind, "neighbours": str(loss.neighbours), **texts(loss.amounts)}


def loss_of(facts: Mapping[str, str]) -> Loss:
    """The loss that ``loss_facts`` wrote."""
    amounts = {word: text for word, text in facts.items() if word not in ("kind", "neighbours")}
    return KINDS[facts["kind"]](**amounts, neighbours=facts["neighbours"])


def texts(amounts: Amounts) -> dict[str, str]:
    """Exact amounts as exact texts."""
    return {word: decimal_text(amount) for word, amount in amounts.items()}


@lru_cache(maxsize=4096)
def amount(text: str) -> Fraction:
    """An exact amount, zero or more, from its text."""
    value = exact(text)
    if value < 0:
        raise ValueError("an amount below zero")
    return value


def entry_text(kind: str, facts: Mapping[str, Any]) -> str:
    """The canonical text of an entry made now."""
    created = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return to_text({"kind": kind, "created": created, **facts})


def link(key: bytes, number: int, previous: str, text: str) -> str:
    """What ties an entry to its number, its text and everything before it."""
    return hmac.digest(key, f"{number} {previous} {text}".encode("ascii"), "sha256").hex()


def seal(key: bytes, count: int, head: str) -> str:
    """What ties the end of the chain to its place."""
    return hmac.digest(key, f"head {count} {head}".encode("ascii"), "sha256").hex()


def key_for(secret: bytes, purpose: str) -> bytes:
    """A key of its own for each use of the ledger's secret."""
    return hmac.digest(secret, purpose.encode("ascii"), "sha256")
