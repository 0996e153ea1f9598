"""Ways out of a release that would be worth nothing: what else the steward could do, each tried before it is named.

Public facts only, and quick: laws of noise, without a simulation. The command line and the page say the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

from privcov.errors import PrivcovError
from privcov.frame.emphasis import emphasised
from privcov.planning.candidates import decide
from privcov.planning.forecast import count_is_public
from privcov.planning.framed import in_frame
from privcov.planning.moments import PublicMoments
from privcov.planning.outlook import Outlook
from privcov.planning.purpose import Purpose
from privcov.privacy import EPSILON_POLICY_CAP, ZCDP, ApproxDP, Loss, PureDP, display
from privcov.schema import Schema
from privcov.schema.grid import Grid
from privcov.schema.weights import declared

_DELTA = Fraction(1, 10**6)
_MOST_TRIED = 200
"""Columns beyond which nobody is told how many to leave out."""
_AMOUNTS = [
    Fraction(digits, 10) * Fraction(10) ** power for power in range(-2, 2) for digits in range(10, 100, 5)
]
"""Those of ε that are tried, on a scale of two digits."""


def outlook_of(
    schema: Schema,
    *,
    loss: Loss,
    rows: int,
    purpose: str | Purpose = "covariance",
    mechanism: str = "auto",
    frame: str = "declared",
    cut: str = "told",
    emphasis: tuple[str, ...] = (),
    moments: PublicMoments | None = None,
) -> Outlook | None:
    """The outlook of a release; None where its noise has no law. With an ``emphasis`` moments are not used."""
    weighed = emphasised(schema, emphasis) if emphasis else schema
    taken = decide(mechanism, loss=loss, schema=weighed, purpose=purpose)
    law = taken.mechanism.law(loss=taken.loss, grid=Grid.of(weighed))
    if law is None:
        return None
    if frame != "declared":
        facts: Any = {"law": law, "rows": rows, "loss": loss, "purpose": purpose, "word": frame, "cut": cut}
        if (found := in_frame(schema, **facts, emphasis=emphasis)) is not None:
            return Outlook.framed(found.private)
    counted = count_is_public(schema, taken.loss)
    return Outlook.by_law(weighed, law, rows=rows, counted=counted, moments=None if emphasis else moments)


def exits(
    worth: Callable[..., Outlook | None],
    *,
    schema: Schema,
    loss: Loss,
    frame: bool = True,
    columns: bool = True,
) -> Iterator[str]:
    """Sentences, each with an order that is better than zeros.

    ``worth`` is the outlook of the order with another ``loss``, ``schema`` or ``frame``. ``frame`` and ``columns`` say
    whether a private frame, and fewer columns, may be offered.
    """

    def better(**other: Any) -> Outlook | None:
        try:
            found = worth(**other)
        except PrivcovError:
            return None
        return None if found is None or found.verdict == "worse than publishing zeros" else found

    if frame and (found := better(frame="auto")):
        yield f"Fit a private frame first (frame: auto): {found}"
    if isinstance(loss, PureDP):
        delta = ApproxDP(epsilon=loss.epsilon, delta=_DELTA, neighbours=loss.neighbours)
        if found := better(loss=delta):
            yield f"Allow a δ of {display(_DELTA)}: {found}"
    names = [column.name for column in declared(schema)]
    if columns and (fewer := _fewer(lambda some: better(schema=schema.subset(names[:some])), len(names))):
        count, found = fewer
        yield f"Release fewer columns: with the first {count} of {len(names)} it would be {found.verdict}."
    if enough := _enough(lambda more: better(loss=more), loss):
        amount, found = enough
        yield f"Spend more: from ε = {display(amount)} on it would be {found.verdict}."


def _fewer(better: Callable[[int], Outlook | None], count: int) -> tuple[int, Outlook] | None:
    """The most columns, from the first on, that are better than zeros; at least two, and not all."""
    low, high, best = 1, count if count <= _MOST_TRIED else 1, None
    while high - low > 1:
        middle = (low + high) // 2
        if found := better(middle):
            low, best = middle, found
        else:
            high = middle
    return None if best is None else (low, best)


def _enough(better: Callable[[Loss], Outlook | None], loss: Loss) -> tuple[Fraction, Outlook] | None:
    """The smallest ε of those tried that is better than zeros, and that the page allows; none in place of a ρ."""
    if isinstance(loss, ZCDP):
        return None
    for amount in _AMOUNTS:
        if loss.epsilon < amount <= EPSILON_POLICY_CAP and (found := better(replace(loss, epsilon=amount))):
            return amount, found
    return None
