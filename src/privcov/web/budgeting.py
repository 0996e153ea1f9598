"""The ledger as the page sees it: what is left, what a release would cost, and why it would be refused."""

from __future__ import annotations

import math
from typing import Any

from privcov.errors import BudgetError, PrivcovError
from privcov.ledger import Ledger
from privcov.ledger.rules import short
from privcov.planning.candidates import decide
from privcov.privacy import Loss, display
from privcov.publish.paying import counts_rho, order_for
from privcov.schema import Schema


def balance(ledger: Ledger) -> dict[str, Any]:
    """Budget, spent and left, in words and as shares for a bar."""
    found = ledger.balance()
    account = found.account
    return {
        "budget": str(found.budget),
        "rule": account.rule,
        "neighbours": str(found.budget.neighbours),
        "amounts": [
            {
                "word": word,
                "total": short(total),
                "spent": display(account.spent[word]) if account.spent[word] else "0",
                "left": short(account.left[word]),
                "percent": math.ceil(100 * account.spent[word] / total),
            }
            for word, total in account.total.items()
            if total
        ],
        "releases": found.releases,
        "burned": found.burned,
        "empty": not any(account.left.values()),
    }


def quote(schema: Schema, loss: Loss, ledger: Ledger, *, mechanism: str, purpose: str) -> dict[str, Any]:
    """What a release would cost, and the refusal in words where the ledger would refuse. Nothing is paid."""
    taken = decide(mechanism, loss=loss, schema=schema, purpose=purpose, as_asked=counts_rho(ledger))
    found: dict[str, Any] = {
        "mechanism": taken.mechanism.name,
        "promise": str(taken.loss),
        "price": "",
        "refusal": "",
        "stronger": taken.loss.kind != loss.kind,
    }
    try:
        price, _ = ledger.quote(order_for(taken.mechanism, loss=taken.loss, schema=schema, choice=None))
        found["price"] = ", ".join(f"{word} {display(amount)}" for word, amount in price.items() if amount)
    except BudgetError as refusal:
        found["refusal"] = _words(refusal)
    return found


def _words(reason: PrivcovError) -> str:
    return f"{reason.sentence} {reason.remedy}".rstrip()
