"""The one guarded sequence: pay, draw, read, certify, deliver, record. Everything that spends goes through it.

What can be refused from public facts is refused before, while the order is made. The payment is durable before
anything is drawn, noise is drawn before a row is read, and the result is recorded after it was delivered. Noise and
rows are known to ``read`` alone, and an exception that leaves it takes none of its variables along. No other module
pays a ledger or opens rows to publish something: ``tests/spec/test_bridge.py``. Proof: docs/proofs/ledger.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, TypeVarTuple

from privcov.errors import without_reasons
from privcov.ledger import Ledger, Request
from privcov.noise.randomness import Randomness
from privcov.publish.paying import Bill, pay

Secrets = TypeVarTuple("Secrets")
Made = TypeVar("Made")


def guarded(
    order: Callable[[], Request],
    *,
    ledger: str | Path | Ledger | None,
    randomness: Randomness,
    draw: Callable[[], tuple[*Secrets]],
    read: Callable[[Bill, *Secrets], Made],
    document: Callable[[Made], Mapping[str, Any]],
    deliver: Callable[[Made], object] | None = None,
) -> Made:
    """Pay for an order and carry it out.

    Parameters
    ----------
    order
        Makes the request that is paid for; refuses what public facts refuse.
    ledger
        The budget that pays; None where nobody keeps count.
    randomness
        The source of every random number. A rehearsal is refused where a ledger would pay for it.
    draw
        Draws what can be drawn before the rows are read. What it returns stands in no frame but ``read``'s.
    read
        Reads the rows, adds the noise and certifies: makes the public result, which is all that leaves it. It tells
        the bill which table it saw, and has the time of the order from it.
    document
        The result as the values of its file; the ledger records their digest.
    deliver
        Takes the result to where it was asked for. If it raises, the payment stays and nothing is recorded.

    Returns
    -------
    Made
        The public result.
    """
    bill = pay(ledger, order, randomness=randomness)
    made = without_reasons(read, bill, *draw())
    if deliver is not None:
        deliver(made)
    bill.delivered(lambda: document(made))
    return made
