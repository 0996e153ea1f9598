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
from privcov.ledger.addresses import server_words
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
from privcov.ledger.postgres import Postgres
from privcov.ledger.rules import Account, Broken, History, read_entries, underpriced
from privcov.ledger.store import Session, SQLite, Store
from privcov.noise.randomness import kernel
from privcov.privacy import Loss

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
    """Where a ledger stands.

    Attributes
    ----------
    budget : PureDP, ApproxDP or ZCDP
        What the ledger was opened with.
    account : Account
        The rule in force, the total, and what is spent of it.
    turned_at : int or None
        The number of the entry that turned an (ε, δ) account into a zCDP account.
    before : Account or None
        That (ε, δ) account, as it stood then.
    releases : int
        The payments that led to a recorded release.
    burned : int
        The payments without a recorded release.
    head : str
        The end of the chain. Kept elsewhere, it later reveals an old copy put back: ``Ledger.verify(head=…)``.

    Examples
    --------
    >>> import tempfile
    >>> import privcov as pc
    >>> budget = pc.PureDP(epsilon=3, neighbours="replace-one")
    >>> ledger = pc.Ledger.init(tempfile.mkdtemp() + "/census.ledger", budget)
    >>> balance = ledger.balance()
    >>> balance.releases, balance.burned, balance.turned_at
    (0, 0, None)
    """

    budget: Loss
    account: Account
    turned_at: int | None
    before: Account | None
    releases: int
    burned: int
    head: str


class Ledger:
    """An append-only account of everything that was spent on a table.

    Give a path or an address to ``release``; use this class to open, read and check ledgers. Made by
    ``Ledger.init`` and ``Ledger.open``.

    Parameters
    ----------
    store : Store
        Where the entries are kept.
    request_id : str, optional
        The name that every payment is made under. By default a random one for each.
    before : callable, optional
        Called without arguments before each payment.

    Examples
    --------
    >>> import tempfile
    >>> import privcov as pc
    >>> from privcov.ledger import Request
    >>> path = tempfile.mkdtemp() + "/census.ledger"
    >>> ledger = pc.Ledger.init(path, pc.PureDP(epsilon=3, neighbours="replace-one"))
    >>> request = Request(loss=pc.PureDP(epsilon=1, neighbours="replace-one"), mechanism="laplace")
    >>> price, left = ledger.quote(request)
    >>> receipt = ledger.pay(request)
    >>> ledger.spent["epsilon"] == price["epsilon"], str(ledger.left["epsilon"]), ledger.balance().burned
    (True, '2', 1)
    >>> ledger.done(receipt, digest="0" * 64, fingerprint="0" * 64)
    >>> [entry.kind for entry in ledger.log()], ledger.verify(), ledger.name == path
    (['opened', 'paid', 'done'], (), True)
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
        """Open a new ledger with a budget. It is never larger afterwards.

        Parameters
        ----------
        where : str or Path
            The path of a new file, or a ``postgresql://`` address.
        budget : PureDP, ApproxDP or ZCDP
            Everything that may ever be spent on the table.
        concentrated : bool, default False
            Whether an (ε, δ) budget is spent as zCDP from the start: more Gaussian releases fit.

        Returns
        -------
        Ledger
            The new ledger, empty.

        Raises
        ------
        OutputError
            There is a file already, or it cannot be written (E401).
        BudgetError
            The address cannot be used (E3xx).
        ParameterError
            Only an (ε, δ) budget can be concentrated (E204).

        Examples
        --------
        >>> import tempfile
        >>> import privcov as pc
        >>> budget = pc.ZCDP(rho="0.5", neighbours="replace-one")
        >>> ledger = pc.Ledger.init(tempfile.mkdtemp() + "/census.ledger", budget)
        >>> str(ledger.left["rho"])
        '1/2'
        """
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
        """Open a ledger that is there, and check every entry.

        Parameters
        ----------
        where : str or Path
            The path of the file, or a ``postgresql://`` address.

        Returns
        -------
        Ledger
            The ledger.

        Raises
        ------
        BudgetError
            There is none, it cannot be read, or it was changed (E3xx).

        Examples
        --------
        >>> import tempfile
        >>> import privcov as pc
        >>> path = tempfile.mkdtemp() + "/census.ledger"
        >>> _ = pc.Ledger.init(path, pc.PureDP(epsilon=3, neighbours="replace-one"))
        >>> str(pc.Ledger.open(path).left["epsilon"])
        '3'
        """
        ledger = cls(store_for(str(where)))
        ledger.balance()
        return ledger

    def once(self, request_id: str) -> Ledger:
        """Return this ledger for one request by name: a second payment under the same name is refused.

        Parameters
        ----------
        request_id : str
            The name, ASCII, 1 to 200 characters.

        Returns
        -------
        Ledger
            The same ledger; every payment through it bears this name.

        Raises
        ------
        ParameterError
            The name is no such text (E212).

        Examples
        --------
        >>> import tempfile
        >>> import privcov as pc
        >>> budget = pc.PureDP(epsilon=3, neighbours="replace-one")
        >>> ledger = pc.Ledger.init(tempfile.mkdtemp() + "/census.ledger", budget)
        >>> ledger.once("report of 2026").name == ledger.name
        True
        """
        if not (isinstance(request_id, str) and request_id.isascii() and 0 < len(request_id) <= 200):
            raise ParameterError("E212", "a request id must be an ASCII text of 1 to 200 characters.")
        return Ledger(self._store, request_id=request_id, before=self._before)

    def announcing(self, before: Callable[[], object]) -> Ledger:
        """Return this ledger with a call before each payment: the last moment to refuse one.

        Parameters
        ----------
        before : callable
            Called without arguments; if it raises, nothing is paid.

        Returns
        -------
        Ledger
            The same ledger, with the call.

        Examples
        --------
        >>> import tempfile
        >>> import privcov as pc
        >>> from privcov.ledger import Request
        >>> budget = pc.PureDP(epsilon=3, neighbours="replace-one")
        >>> ledger = pc.Ledger.init(tempfile.mkdtemp() + "/census.ledger", budget)
        >>> loss = pc.PureDP(epsilon=1, neighbours="replace-one")
        >>> _ = ledger.announcing(lambda: print("about to pay")).pay(Request(loss=loss, mechanism="laplace"))
        about to pay
        """
        return Ledger(self._store, request_id=self._request_id, before=before)

    @_unseen
    def pay(self, request: Request) -> Receipt:
        """Pay for a request, or refuse it. When this returns, the payment is on the disk.

        Parameters
        ----------
        request : Request
            What is about to be run, in public facts.

        Returns
        -------
        Receipt
            Proof of the payment, for ``done``.

        Raises
        ------
        BudgetError
            Too little is left (E301), the kind of loss does not fit the budget (E304), the name was paid
            already (E303), or the ledger was changed (E305).
        """
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
        """Say what a request would cost now and what it would leave. Nothing is written.

        Somebody else may pay in between: only ``pay`` decides.

        Parameters
        ----------
        request : Request
            What might be run, in public facts.

        Returns
        -------
        tuple of two mappings of str to Fraction
            The price and what would be left, by the rule in force: "epsilon", "delta", "rho".

        Raises
        ------
        BudgetError
            ``pay`` would refuse the request (E3xx).
        """
        with self._lock, self._store.session() as session:
            history, _ = self._read(session)
            if self._request_id is not None:
                _refuse_again(history, self._request_id)
            account, price = _priced(history, request)
            return price, account.after(price).left

    @_unseen
    def done(self, receipt: Receipt, *, digest: str, fingerprint: str) -> None:
        """Record that a payment led to a release.

        Parameters
        ----------
        receipt : Receipt
            What ``pay`` returned.
        digest : str
            The SHA-256 of the release's canonical text, in hexadecimal.
        fingerprint : str
            The keyed fingerprint of the table, in hexadecimal.

        Raises
        ------
        BudgetError
            The payment is not one that waits for its release (E303).
        """
        with self._lock, self._store.session(exclusive=True) as session:
            history, secret = self._read(session)
            if receipt.number not in history.burned:
                raise BudgetError(
                    "E303", f"entry {receipt.number} is not a payment without a recorded release."
                )
            facts = {"entry": receipt.number, "release": digest, "fingerprint": fingerprint}
            self._append(session, history, secret, [entry_text("done", facts)])

    @_unseen
    def balance(self) -> Balance:
        """Return the budget, what is spent of it, and how many releases it bought.

        Returns
        -------
        Balance
            Where the ledger stands, every new entry checked.

        Raises
        ------
        BudgetError
            The ledger cannot be read, or was changed (E305).
        """
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
        """What is spent, by the rule in force, as exact amounts of "epsilon", "delta" or "rho"."""
        return self.balance().account.spent

    @property
    def left(self) -> Mapping[str, Fraction]:
        """What is left, by the rule in force, as exact amounts of "epsilon", "delta" or "rho"."""
        return self.balance().account.left

    @_unseen
    def log(self) -> list[Entry]:
        """Return every entry. A private document: it tells which releases read the same table.

        Returns
        -------
        list of Entry
            The entries in order.

        Raises
        ------
        BudgetError
            The ledger cannot be read, or was changed (E305).
        """
        with self._lock, self._store.session() as session:
            self._read(session)
            return read_entries([(number, text) for number, text, _ in session.rows()])

    @_unseen
    def verify(self, *, head: str | None = None) -> tuple[str, ...]:
        """Check every entry from the first on, and return everything found wrong.

        Parameters
        ----------
        head : str, optional
            An end of the chain that was kept elsewhere (``Balance.head``): also check that the chain passed it.

        Returns
        -------
        tuple of str
            What is wrong, as sentences. Empty for a ledger that is whole.

        Raises
        ------
        BudgetError
            The ledger cannot be read, or has another format (E305).
        """
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
        """What messages call the ledger. A path, or a host without user, password and database."""
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


def store_for(where: str) -> Store:
    """PostgreSQL for a ``postgresql://`` address, an SQLite file for a path; what may be neither is refused (E312)."""
    words = server_words(where)
    return SQLite(where) if words is None else Postgres(words)


def _again(store: Store, request_id: str | None) -> Ledger:
    return Ledger(store, request_id=request_id)


def _random(size: int) -> str:
    return kernel().words(size // 8).tobytes().hex()
