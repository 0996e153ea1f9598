"""A budget that cannot be overspent: paid before the first random bit, durable before anything is released.

``Ledger.pay`` checks every earlier entry, decides, and writes the payment in one exclusive transaction; when it
returns, the payment survives a crash. What happens after that can only leave a payment without a release,
never a release without a payment. Rules and proof: docs/proofs/ledger.md. Guide: docs/explain/ledger.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial, wraps
from pathlib import Path
from threading import Lock
from typing import Any, ParamSpec, TypeVar

from privcov.errors import BudgetError, ParameterError, without_frames
from privcov.ledger.entries import (
    FORMAT,
    START,
    Entry,
    Receipt,
    Request,
    Row,
    entry_text,
    key_for,
    link,
    loss_facts,
    seal,
    texts,
)
from privcov.ledger.history import Broken, History, read_entries, underpriced
from privcov.ledger.rules import Account
from privcov.ledger.store import Session, Store, store_for
from privcov.privacy import Loss
from privcov.randomness import kernel

__all__ = ["Balance", "Ledger", "Receipt", "Request"]
Given = ParamSpec("Given")
Made = TypeVar("Made")


def _unseen(act: Callable[Given, Made]) -> Callable[Given, Made]:
    """An act that knows the ledger's secret: what it raises comes without its frames, and so without the secret."""

    @wraps(act)
    def called(*given: Given.args, **named: Given.kwargs) -> Made:
        return without_frames(partial(act, *given, **named))

    return called


@dataclass(frozen=True, kw_only=True)
class Balance:
    """Where a ledger stands."""

    budget: Loss
    account: Account
    turned_at: int | None
    """The entry that turned an (ε, δ) account into a zCDP account."""
    before: Account | None
    """That (ε, δ) account, as it stood then."""
    releases: int
    burned: int
    """Payments without a recorded release."""
    head: str
    """The end of the chain; kept elsewhere, it later finds an old copy put back: ``Ledger.verify(head=…)``."""


class Ledger:
    """An append-only account of everything that was spent on a table.

    >>> import tempfile
    >>> from privcov.privacy import PureDP
    >>> path = Path(tempfile.mkdtemp()) / "census.ledger"
    >>> ledger = Ledger.init(path, PureDP(epsilon=3, neighbours="replace-one"))
    >>> receipt = ledger.pay(Request(loss=PureDP(epsilon=1, neighbours="replace-one"), mechanism="laplace"))
    >>> str(ledger.left["epsilon"]), ledger.balance().burned, ledger.verify()
    ('2', 1, ())
    """

    def __init__(
        self, store: Store, *, request_id: str | None = None, before: Callable[[], object] | None = None
    ) -> None:
        self._store = store
        self._request_id = request_id
        self._before = before
        self._history: History | None = None
        self._lock = Lock()

    @classmethod
    @_unseen
    def init(cls, where: str | Path, budget: Loss, *, concentrated: bool = False) -> Ledger:
        """A new ledger at a path or a ``postgresql://`` address; ``concentrated`` spends (ε, δ) as zCDP."""
        opened = {"budget": loss_facts(budget), "ledger": _random(16)}
        bodies = [entry_text("opened", opened)]
        if concentrated:
            account = Account.opened(budget, concentrated=True)
            bodies.append(entry_text("turned", {"account": texts(account.total)}))
        store, secret = store_for(str(where)), _random(32)
        rows, end = _chained(key_for(bytes.fromhex(secret), "chain"), 0, START, bodies)
        store.create(rows, {"format": FORMAT, "secret": secret, **end})
        return cls(store)

    @classmethod
    def open(cls, where: str | Path) -> Ledger:
        """The ledger at a path or an address, every entry checked."""
        ledger = cls(store_for(str(where)))
        ledger.balance()
        return ledger

    def once(self, request_id: str) -> Ledger:
        """This ledger for one request by name: a second payment under the same name is refused (E303)."""
        if not (isinstance(request_id, str) and request_id.isascii() and 0 < len(request_id) <= 200):
            raise ParameterError("E212", "a request id must be an ASCII text of 1 to 200 characters.")
        return Ledger(self._store, request_id=request_id, before=self._before)

    def announcing(self, before: Callable[[], object]) -> Ledger:
        """This ledger with a call before each payment: the last moment to refuse one, or to guard what it buys."""
        return Ledger(self._store, request_id=self._request_id, before=before)

    @_unseen
    def pay(self, request: Request) -> Receipt:
        """Pay for a request, or refuse it (E301, E304). When this returns, the payment is on the disk."""
        if self._before is not None:
            self._before()
        with self._lock, self._store.session(exclusive=True) as session:
            history, secret = self._read(session)
            name = _random(16) if self._request_id is None else self._request_id
            _refuse_again(history, name)
            account, price = _priced(history, request)
            bodies = [entry_text("paid", {**request.facts(), "id": name, "price": texts(price)})]
            if account is not history.account:
                bodies.insert(0, entry_text("turned", {"account": texts(account.total)}))
            number = self._append(session, history, secret, bodies)
        return Receipt(number=number, key=key_for(secret, "fingerprint"))

    @_unseen
    def quote(self, request: Request) -> tuple[Mapping[str, Fraction], Mapping[str, Fraction]]:
        """What a request would cost now and what it would leave, or its refusal; nothing is written.

        Somebody else may pay in between: only ``pay`` decides.
        """
        with self._lock, self._store.session() as session:
            history, _ = self._read(session)
            if self._request_id is not None:
                _refuse_again(history, self._request_id)
            account, price = _priced(history, request)
            return price, account.after(price).left

    @_unseen
    def done(self, receipt: Receipt, *, digest: str, fingerprint: str) -> None:
        """Record that a payment led to a release: the SHA-256 of its canonical text, the table's fingerprint."""
        with self._lock, self._store.session(exclusive=True) as session:
            history, secret = self._read(session)
            if receipt.number not in history.burned:
                raise BudgetError("E303", f"entry {receipt.number} is not a payment without a release yet.")
            facts = {"entry": receipt.number, "release": digest, "fingerprint": fingerprint}
            self._append(session, history, secret, [entry_text("done", facts)])

    @_unseen
    def balance(self) -> Balance:
        """The budget, what is spent of it, and how many releases it bought."""
        with self._lock, self._store.session() as session:
            history, _ = self._read(session)
            return Balance(
                budget=history.budget,
                account=history.account,
                turned_at=history.turned_at,
                before=history.before,
                releases=history.releases,
                burned=len(history.burned),
                head=f"{history.count}-{history.head}",
            )

    @property
    def spent(self) -> Mapping[str, Fraction]:
        """What is spent, by the rule in force."""
        return self.balance().account.spent

    @property
    def left(self) -> Mapping[str, Fraction]:
        """What is left, by the rule in force."""
        return self.balance().account.left

    @_unseen
    def log(self) -> list[Entry]:
        """Every entry; a private document, as it tells which releases read the same table."""
        with self._lock, self._store.session() as session:
            self._read(session)
            return read_entries([(number, text) for number, text, _ in session.rows()])

    @_unseen
    def verify(self, *, head: str | None = None) -> tuple[str, ...]:
        """Everything found wrong, from the first entry on; with ``head``, also whether that end was ever passed."""
        with self._store.session() as session:
            facts, rows = session.facts(), session.rows()
        found = self._store.damage()
        secret = _secret(facts, self._store.name)
        history = History(key_for(secret, "chain"))
        try:
            for row in rows:
                history.add(row)
            _check_end(history, facts)
            found += underpriced(rows)
        except Broken as reason:
            found.append(str(reason))
        if head is not None and head not in {
            f"{number}-{given}" for number, _, given in rows[: history.count]
        }:
            found.append(
                "the chain end that you kept is not in this ledger: it is an older copy, or another ledger"
            )
        return tuple(found)

    @property
    def name(self) -> str:
        """What messages call it: a path, or a host without user, password and database."""
        return self._store.name

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self._store, self._request_id)  # a copy is the same ledger, and reads it afresh

    def __repr__(self) -> str:
        return f"<Ledger {self.name}>"

    def _read(self, session: Session) -> tuple[History, bytes]:
        """The history to the end, checked; only what is new since the last time is read again."""
        facts = session.facts()
        secret = _secret(facts, self._store.name)
        history, self._history = self._history or History(key_for(secret, "chain")), None
        known = history.count
        rows = session.rows(max(1, known))
        try:
            if known and (not rows or rows[0][2] != history.head):
                raise Broken(f"entry {known} was altered")
            for row in rows[1:] if known else rows:
                history.add(row)
            _check_end(history, facts)
        except Broken as reason:
            raise BudgetError(
                "E305",
                f"{self._store.name} was altered: {reason}.",
                "Nothing was paid. Run privcov ledger verify.",
            ) from None
        self._history = history
        return history, secret

    def _append(self, session: Session, history: History, secret: bytes, bodies: list[str]) -> int:
        rows, end = _chained(key_for(secret, "chain"), history.count, history.head, bodies)
        session.write(rows, end)
        return rows[-1][0]


def _refuse_again(history: History, name: str) -> None:
    if name in history.requests:
        raise BudgetError(
            "E303",
            f"the request {name} was already paid for, as entry {history.requests[name]}.",
            "No noise was drawn and no data was read. Use its release, or give another request id.",
        )


def _priced(history: History, request: Request) -> tuple[Account, Mapping[str, Fraction]]:
    """The account that a request is paid from, and its price there; raises where that is too much."""
    account = history.account.ready_for(request)
    price = account.price(request)
    if not account.covers(price):
        raise account.refusal(request, price)
    return account, price


def _chained(key: bytes, count: int, head: str, bodies: list[str]) -> tuple[list[Row], dict[str, str]]:
    """Entries to add after a head, and the facts that seal the new end."""
    rows = []
    for text in bodies:
        count, head = count + 1, link(key, count + 1, head, text)
        rows.append((count, text, head))
    return rows, {"count": str(count), "head": head, "seal": seal(key, count, head)}


def _check_end(history: History, facts: Mapping[str, str]) -> None:
    count, head = facts.get("count"), facts.get("head")
    if (count, head) != (str(history.count), history.head):
        raise Broken(f"the chain ends at entry {history.count} but should end at entry {count}")
    if not history.count or facts.get("seal") != seal(history.key, history.count, history.head):
        raise Broken("the seal of the last entry is wrong")


def _secret(facts: Mapping[str, str], name: str) -> bytes:
    given = facts.get("format")
    if given != FORMAT:
        raise BudgetError(
            "E305",
            f"{name} has the format {given}; this version of privcov reads {FORMAT}.",
            "Nothing was paid.",
        )
    try:
        return bytes.fromhex(facts["secret"])
    except (KeyError, ValueError):
        raise BudgetError(
            "E305", f"{name} was altered: its secret is damaged.", "Nothing was paid."
        ) from None


def _again(store: Store, request_id: str | None) -> Ledger:
    return Ledger(store, request_id=request_id)


def _random(size: int) -> str:
    return kernel().words(size // 8).tobytes().hex()
