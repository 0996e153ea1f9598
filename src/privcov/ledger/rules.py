"""What a budget allows: pure functions of public numbers, exact or rounded toward privacy.

Each payment may depend on every release before it, so only *filters* count here: rules that stay true when
losses are chosen as one goes. Losses add by one of three rules (pure ε; ε and δ; ρ and δ), and an (ε, δ)
account may turn once, for good, into a (ρ, δ) account. Proof: docs/proofs/ledger.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from typing import Literal

from privcov.accounting import add_remove_to_replace_one, approx_to_zcdp, pure_to_zcdp, zcdp_to_approx
from privcov.errors import BudgetError, ParameterError
from privcov.ledger.entries import Amounts, Request
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
                "only a budget of epsilon and delta can be concentrated.",
                "A budget of rho already is.",
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
                "this ledger counts add-remove losses, and a replace-one loss gives no bound on those.",
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
            f"this ledger counts pure epsilon only, and {asked} cannot be expressed as one.",
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
                f"this ledger counts rho only, and the cost of {request.mechanism} is known as (epsilon, delta) only.",
                "Ask for a rho, or release with the gaussian mechanism, whose rho is known.",
            )
        loss = _under_replace_one(request.loss) if crossing else request.loss
        assert isinstance(loss, ApproxDP)
        # (ε, δ) is pure ε except with probability δ: δ-approximate zCDP with the ρ of pure ε.
        pure = PureDP(epsilon=loss.epsilon, neighbours=self.neighbours)
        return {"rho": pure_to_zcdp(pure).rho, "delta": loss.delta}

    def covers(self, price: Amounts) -> bool:
        """Whether all of a price is left."""
        return all(self.spent[word] + amount <= self.total[word] for word, amount in price.items())

    def after(self, price: Amounts) -> Account:
        """The account once a price is paid that it covers."""
        if price.keys() != self.total.keys():
            raise ValueError("a price by another rule")
        spent = dict(self.spent)
        for word, amount in price.items():
            if amount.numerator:
                spent[word] += amount
                if spent[word] > self.total[word]:
                    raise ValueError("a price this account does not cover")
        return Account(rule=self.rule, neighbours=self.neighbours, total=self.total, spent=spent)

    def refusal(self, request: Request, price: Amounts) -> BudgetError:
        """The cost and the rest of the budget, for the first amount that is too large."""
        word = next(w for w, amount in price.items() if self.spent[w] + amount > self.total[w])
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
            "this ledger counts replace-one losses, and this add-remove loss gives no bound on those.",
            "Release with --neighbours replace-one.",
        ) from None


def _too_little(account: Account) -> BudgetError:
    left = " and ".join(amount_text(word, short(amount)) for word, amount in account.left.items())
    return BudgetError(
        "E301",
        f"This zCDP release needs both ε and δ from the budget; only {left} is left.",
        "No noise was drawn and no data was read.",
    )
