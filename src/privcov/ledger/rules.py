"""What a budget allows: pure functions of public numbers, exact or rounded toward privacy.

Each payment may depend on every release before it, so only *filters* count here: rules that stay true when
losses are chosen as one goes. Losses add by one of three rules (pure ε; ε and δ; ρ and δ), and an (ε, δ)
account may turn once, for good, into a (ρ, δ) account. Proof: docs/proofs/ledger.md.

The entries read back, one after the other: each tied to the one before, each allowed by the account.

A history is what a ledger believes after it has checked everything. Reading on is cheap: entries that were
checked before are not checked again, unless someone asks for the whole (``Ledger.verify``).
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from typing import Any, Literal

from privcov.accounting import add_remove_to_replace_one, approx_to_zcdp, pure_to_zcdp, zcdp_to_approx
from privcov.errors import BudgetError, ParameterError, PrivcovError
from privcov.ledger.entries import START, Amounts, Entry, Request, Row, amount, link, loss_of
from privcov.privacy import SYMBOLS, ZCDP, ApproxDP, Loss, Neighbours, PureDP, decimal_text, display

_NOTHING = Fraction(0)


@dataclass(frozen=True, kw_only=True)
class Account:
    """What there is to spend, by one rule, and what is spent of it.

    >>> budget = PureDP(epsilon=1, neighbours="replace-one")
    >>> tenth = Request(loss=PureDP(epsilon="0.1", neighbours="replace-one"), mechanism="laplace")
    >>> account = Account.opened(budget)
    >>> for _ in range(10):
    ...     account = account.after(account.price(tenth))
    >>> account.left["epsilon"]
    Fraction(0, 1)
    """

    rule: Literal["pure", "approximate", "zcdp"]
    neighbours: Neighbours
    total: Amounts
    spent: Amounts

    @classmethod
    def opened(cls, budget: Loss, *, concentrated: bool = False) -> Account:
        """The account of a new budget; ``concentrated`` turns an (ε, δ) account at once."""
        total = {**budget.amounts, "delta": _NOTHING} if isinstance(budget, ZCDP) else budget.amounts
        account = cls(
            rule=budget.kind,  # type: ignore[arg-type]  # the three kinds of loss are the three rules
            neighbours=budget.neighbours,
            total=total,
            spent=dict.fromkeys(total, _NOTHING),
        )
        if not concentrated:
            return account
        if not isinstance(budget, ApproxDP):
            raise ParameterError(
                "E204",
                "only a budget of epsilon and delta can be turned into one of rho.",
                "Leave --concentrated out.",
            )
        return account.turned()

    @property
    def left(self) -> dict[str, Fraction]:
        """What is not spent yet."""
        return {word: total - self.spent[word] for word, total in self.total.items()}

    def turned(self) -> Account:
        """What is left of (ε, δ) as zCDP: the largest certified ρ that implies (ε, δ/2), and δ/2 beside it."""
        left = self.left
        if self.rule != "approximate" or not all(left.values()):
            raise _too_little(self)
        half = left["delta"] / 2
        loss = ApproxDP(epsilon=left["epsilon"], delta=half, neighbours=self.neighbours)
        return self._turned_to({"rho": approx_to_zcdp(loss).rho, "delta": half})

    def turned_as(self, amounts: Amounts) -> Account:
        """The turn that an entry recorded, if what was left then covered it."""
        left = self.left
        if self.rule != "approximate" or not all(left.values()) or amounts["delta"] > left["delta"] / 2:
            raise ValueError("a turn that was not open to this account")
        worth = zcdp_to_approx(
            ZCDP(rho=amounts["rho"], neighbours=self.neighbours), delta=left["delta"] - amounts["delta"]
        )
        if worth.epsilon > left["epsilon"]:
            raise ValueError("a turn to more than was left")
        return self._turned_to(amounts)

    def _turned_to(self, total: Amounts) -> Account:
        return replace(self, rule="zcdp", total=total, spent=dict.fromkeys(total, _NOTHING))

    def ready_for(self, request: Request) -> Account:
        """The account itself, turned if the request cannot be paid otherwise: a zCDP loss into an (ε, δ) account."""
        if self.rule == "approximate" and isinstance(request.loss, ZCDP):
            return self.turned()
        return self

    def price(self, request: Request) -> dict[str, Fraction]:
        """What the request costs by this account's rule; refuses what the rule cannot express."""
        crossing = request.loss.neighbours is not self.neighbours
        if crossing and self.neighbours is Neighbours.ADD_REMOVE:
            raise BudgetError(
                "E304",
                "this ledger counts add-remove losses; a replace-one loss cannot be converted to one.",
                "Release with --neighbours add-remove.",
            )
        if self.rule == "zcdp":
            return self._concentrated_price(request, crossing)
        loss = _under_replace_one(request.loss) if crossing else request.loss
        if isinstance(loss, PureDP):
            return {word: _NOTHING for word in self.total} | loss.amounts
        if isinstance(loss, ApproxDP) and self.rule == "approximate":
            return loss.amounts
        asked = "an (epsilon, delta) loss" if isinstance(loss, ApproxDP) else "a zCDP loss"
        raise BudgetError(
            "E304",
            f"this ledger counts pure epsilon only; {asked} cannot be converted to it.",
            "Release with --epsilon alone, or open a ledger with a delta or a rho.",
        )

    def _concentrated_price(self, request: Request, crossing: bool) -> dict[str, Fraction]:
        """A ρ as it was asked, else the least that is known; a δ only where nothing but (ε, δ) is known."""
        if isinstance(request.loss, ZCDP):
            return {"rho": request.loss.rho * (4 if crossing else 1), "delta": _NOTHING}
        known = [] if request.rho is None else [request.rho * (4 if crossing else 1)]
        if isinstance(request.loss, PureDP):
            loss = _under_replace_one(request.loss) if crossing else request.loss
            assert isinstance(loss, PureDP)
            known.append(pure_to_zcdp(loss).rho)
        if known:
            return {"rho": min(known), "delta": _NOTHING}
        if not self.total["delta"]:
            raise BudgetError(
                "E304",
                f"this ledger counts rho only; the cost of {request.mechanism} is known only as (epsilon, delta).",
                "Ask for a rho, or release with the gaussian mechanism, whose rho is known.",
            )
        loss = _under_replace_one(request.loss) if crossing else request.loss
        assert isinstance(loss, ApproxDP)
        # (ε, δ) is pure ε except with probability δ: δ-approximate zCDP with the ρ of pure ε.
        pure = PureDP(epsilon=loss.epsilon, neighbours=self.neighbours)
        return {"rho": pure_to_zcdp(pure).rho, "delta": loss.delta}

    def covers(self, price: Amounts) -> bool:
        """Whether all of a price is left."""
        return all(self.spent[word] + cost <= self.total[word] for word, cost in price.items())

    def after(self, price: Amounts) -> Account:
        """The account once a price is paid that it covers."""
        if price.keys() != self.total.keys():
            raise ValueError("a price by another rule")
        spent = dict(self.spent)
        for word, cost in price.items():
            if cost.numerator:
                spent[word] += cost
                if spent[word] > self.total[word]:
                    raise ValueError("a price this account does not cover")
        return Account(rule=self.rule, neighbours=self.neighbours, total=self.total, spent=spent)

    def refusal(self, request: Request, price: Amounts) -> BudgetError:
        """The cost and the rest of the budget, for the first amount that is too large."""
        word = next(w for w, cost in price.items() if self.spent[w] + cost > self.total[w])
        given = request.loss.amounts
        plain = given.get(word) == price[word]
        means = (
            ""
            if plain
            else f" (to promise {', '.join(amount_text(w, display(a)) for w, a in given.items())})"
        )
        return BudgetError(
            "E301",
            f"This release costs {amount_text(word, display(price[word]))}{means}; "
            f"only {short(self.left[word])} of {short(self.total[word])} is left.",
            "No noise was drawn and no data was read. Ask for a smaller amount, or use a release you already have: "
            "every further answer from it is free.",
        )


def amount_text(word: str, amount: str) -> str:
    """One amount of a loss as people write it.

    >>> amount_text("epsilon", "2.5")
    'ε = 2.5'
    """
    return f"{SYMBOLS[word]} = {amount}"


def short(value: Fraction) -> str:
    """A short decimal for people, never above the value: what is left may not look like more.

    >>> short(Fraction(1, 3)), short(Fraction(2, 5))
    ('0.333333', '0.4')
    """
    text = decimal_text(value)
    if len(text) <= 10 and "/" not in text:
        return text
    with localcontext(prec=6, rounding=ROUND_FLOOR):
        return f"{Decimal(value.numerator) / Decimal(value.denominator):g}"


def _under_replace_one(loss: Loss) -> Loss:
    try:
        return add_remove_to_replace_one(loss)
    except ParameterError:
        raise BudgetError(
            "E304",
            "this ledger counts replace-one losses; this add-remove loss cannot be converted to one.",
            "Release with --neighbours replace-one.",
        ) from None


def _too_little(account: Account) -> BudgetError:
    left = " and ".join(amount_text(word, short(amount)) for word, amount in account.left.items())
    return BudgetError(
        "E301",
        f"This zCDP release needs both ε and δ from the budget; only {left} is left.",
        "No noise was drawn and no data was read.",
    )


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
