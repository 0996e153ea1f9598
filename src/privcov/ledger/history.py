"""The entries read back, one after the other: each tied to the one before, each allowed by the account.

A history is what a ledger believes after it has checked everything. Reading on is cheap: entries that were
checked before are not checked again, unless someone asks for the whole (``Ledger.verify``).
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping
from typing import Any

from privcov.errors import BudgetError, PrivcovError
from privcov.ledger.entries import START, Amounts, Entry, Request, Row, amount, link, loss_of
from privcov.ledger.rules import Account
from privcov.privacy import Loss

_decode = json.JSONDecoder().decode


class Broken(Exception):
    """An entry that does not follow from those before it; the text says how."""


class History:
    """What the entries so far amount to."""

    budget: Loss
    account: Account

    def __init__(self, key: bytes) -> None:
        self.key = key
        self.count = 0
        self.head = START
        self.turned_at: int | None = None
        self.before: Account | None = None
        """The account that was turned, as it stood then."""
        self.requests: dict[str, int] = {}
        """The number of the payment made under each request id."""
        self.burned: set[int] = set()
        """Payments without a recorded release: interrupted, failed, or still under way."""
        self.releases = 0

    def add(self, row: Row) -> Mapping[str, Any]:
        """Check one more entry and count it; what it says."""
        number, text, given = row
        if number != self.count + 1:
            raise Broken(f"entry {number} is in the place of entry {self.count + 1}")
        plain = type(text) is str and type(given) is str and text.isascii() and given.isascii()
        if not plain or not hmac.compare_digest(given, link(self.key, number, self.head, text)):
            raise Broken(f"entry {number} was altered, or does not follow entry {self.count}")
        facts = self.count_in(number, text)
        self.count, self.head = number, given
        return facts

    def count_in(self, number: int, text: str) -> Mapping[str, Any]:
        """What an entry says, if the account allows it."""
        try:
            facts: dict[str, Any] = _decode(text)
            getattr(self, f"_{facts['kind']}")(number, facts)
        except (PrivcovError, KeyError, TypeError, ValueError, AttributeError, ArithmeticError):
            raise Broken(f"entry {number} could not have been written by this ledger") from None
        return facts

    def _opened(self, number: int, facts: Mapping[str, Any]) -> None:
        if number != 1:
            raise ValueError("a ledger is opened once")
        self.budget = loss_of(facts["budget"])
        self.account = Account.opened(self.budget)

    def _turned(self, number: int, facts: Mapping[str, Any]) -> None:
        self.before, self.turned_at = self.account, number
        self.account = self.account.turned_as(_amounts(facts["account"]))

    def _paid(self, number: int, facts: Mapping[str, Any]) -> None:
        if facts["id"] in self.requests:
            raise ValueError("a request is paid once")
        self.account = self.account.after(_amounts(facts["price"]))
        self.requests[facts["id"]] = number
        self.burned.add(number)

    def _done(self, number: int, facts: Mapping[str, Any]) -> None:
        self.burned.remove(facts["entry"])
        self.releases += 1


def read_entries(texts: list[tuple[int, str]]) -> list[Entry]:
    """The log of a checked history; releases of one table are told by their fingerprints, which stay inside."""
    first: dict[str, int] = {}
    log = []
    for number, text in texts:
        facts = json.loads(text)
        kind, created, print_ = facts.pop("kind"), facts.pop("created"), facts.pop("fingerprint", None)
        same = first.setdefault(print_, facts["entry"]) if print_ else None
        known = None if same is None or same == facts["entry"] else same
        log.append(Entry(number=number, kind=kind, created=created, facts=facts, same_table_as=known))
    return log


def underpriced(rows: list[Row]) -> list[str]:
    """Payments that were below what today's accountant asks: the past, priced again."""
    account: Account | None = None
    found, known = [], dict[str, Amounts]()
    for number, text, _ in rows:
        facts = json.loads(text)
        if facts["kind"] == "opened":
            account = Account.opened(loss_of(facts["budget"]))
        elif facts["kind"] == "turned" and account is not None:
            account, known = account.turned_as(_amounts(facts["account"])), {}
        elif facts["kind"] == "paid" and account is not None:
            paid, asked = _amounts(facts["price"]), f"{facts['loss']} {facts['rho']}"
            if asked not in known:
                known[asked] = _price_now(account, facts)
            if any(price > paid[word] for word, price in known[asked].items()):
                found.append(f"entry {number} paid less than today's rules charge")
            account = account.after(paid)
    return found


def request_of(facts: Mapping[str, Any]) -> Request:
    """The request that a paid entry records."""
    words = ("mechanism", "options", "grid", "noise", "arithmetic")
    rho = None if facts["rho"] is None else amount(facts["rho"])
    return Request(loss=loss_of(facts["loss"]), rho=rho, **{word: facts[word] for word in words})


def _price_now(account: Account, facts: Mapping[str, Any]) -> Amounts:
    try:
        return account.price(request_of(facts))
    except BudgetError:
        return account.total


def _amounts(facts: Mapping[str, str]) -> Amounts:
    return {word: amount(facts[word]) for word in sorted(facts, reverse=True)}  # rho or epsilon, then delta
