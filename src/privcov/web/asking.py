"""Requests of the page, parsed: every value is checked, and every refusal knows its field.

The loss that three fields mean: the kind, its amounts as exact decimal text, and who counts as neighbours.

What the workbench is given, and what it gives back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from privcov.errors import BudgetError, ParameterError, PrivcovError
from privcov.privacy import ZCDP, ApproxDP, Loss, PureDP, check_policy

Question = Mapping[str, Any]


class Refused(Exception):
    """One or more reasons, each with the field of the page that it belongs to; None where it belongs to none."""

    def __init__(self, reasons: list[tuple[str | None, PrivcovError]]) -> None:
        super().__init__("; ".join(str(reason) for _, reason in reasons))
        self.reasons = reasons

    @property
    def status(self) -> int:
        """409 where the ledger refuses, 422 for everything else."""
        return 409 if any(isinstance(reason, BudgetError) for _, reason in self.reasons) else 422

    def to_dict(self) -> dict[str, Any]:
        """What the page shows."""
        return {
            "errors": [
                {"field": field, "code": reason.code, "text": f"{reason.sentence} {reason.remedy}".rstrip()}
                for field, reason in self.reasons
            ]
        }


@contextmanager
def at(field: str | None) -> Iterator[None]:
    """What is refused inside belongs to this field."""
    try:
        yield
    except PrivcovError as reason:
        raise Refused([(field, reason)]) from None


def all_of(*parts: Callable[[], Any]) -> list[Any]:
    """The results of all parts; if any refuse, every refusal together, so that no field waits for another."""
    made, reasons = [], []
    for part in parts:
        try:
            made.append(part())
        except Refused as refused:
            reasons += refused.reasons
    if reasons:
        raise Refused(reasons)
    return made


def text(question: Question, word: str, *, longest: int = 1000) -> str:
    """A text; what is missing is an empty one."""
    value = question.get(word, "")
    if not isinstance(value, str) or len(value) > longest or not _is_whole(value):
        raise ParameterError("E291", f"{word} must be a text of at most {longest} characters.")
    return value.strip()


def _is_whole(value: str) -> bool:
    """Whether it can be written down: JSON can spell half of a character, which no file and no answer can hold."""
    return not any("\ud800" <= letter <= "\udfff" for letter in value)


def flag(question: Question, word: str, *, default: bool = False) -> bool:
    """True or false."""
    value = question.get(word, default)
    if not isinstance(value, bool):
        raise ParameterError("E291", f"{word} must be true or false.")
    return value


def part(question: Question, word: str) -> Question:
    """A group of fields; what is missing is an empty one."""
    value = question.get(word, {})
    if not isinstance(value, dict):
        raise ParameterError("E291", f"{word} must be a group of fields.")
    return value


def parts(question: Question, word: str, *, most: int = 5000) -> list[Question]:
    """A list of groups of fields."""
    value = question.get(word, [])
    if not isinstance(value, list) or len(value) > most or not all(isinstance(one, dict) for one in value):
        raise ParameterError("E291", f"{word} must be a list of at most {most} groups of fields.")
    return value


def width(question: Question) -> float:
    """The room for a chart, in pixels, within reason."""
    return float(min(1000, max(260, whole(text(question, "width") or "440", "width", "E291"))))


def whole(given: str, what: str, code: str) -> int:
    """A whole number as people write it; thousands may be set apart.

    >>> whole("12,000", "rows", "E260")
    12000
    """
    plain = given.replace(",", "").replace(" ", "").replace("_", "")
    if not (plain.isascii() and plain.isdigit() and len(plain) <= 18):
        raise ParameterError(code, f"{what} must be a whole number, got {given!r}.")
    return int(plain)


def as_loss(given: Question) -> Loss:
    """The loss; a refusal belongs to the field of the amount that is wrong.

    >>> print(as_loss({"kind": "pure", "epsilon": "0.1", "neighbours": "replace-one"}))
    pure differential privacy, epsilon = 0.1, replace-one
    """
    with at("kind"):
        kind = text(given, "kind")
        neighbours = text(given, "neighbours") or None
        amounts = {word: text(given, word) for word in ("epsilon", "delta", "rho")}
    if kind == "zcdp":
        with at("rho"):
            return ZCDP(rho=amounts["rho"], neighbours=neighbours)  # type: ignore[arg-type]
    with at("epsilon"):
        pure = PureDP(epsilon=amounts["epsilon"], neighbours=neighbours)  # type: ignore[arg-type]
        check_policy(pure, "; only the command line allows more (--i-understand).")
    if kind == "pure":
        return pure
    if kind == "approximate":
        with at("delta"):
            return ApproxDP(epsilon=pure.epsilon, delta=amounts["delta"], neighbours=pure.neighbours)
    raise Refused([("kind", ParameterError("E291", "kind must be pure, approximate or zcdp."))])


LARGEST_DOWNLOAD = 2**28


@dataclass(frozen=True, kw_only=True)
class Download:
    """A file that goes to the browser."""

    name: str
    kind: str
    content: bytes


Answer = dict[str, Any] | Download


@dataclass(frozen=True, kw_only=True)
class Given:
    """What the command line named: file names below the directory, and a ledger that may be elsewhere."""

    data: str = ""
    schema: str = ""
    ledger: str = ""
    ledger_place: str = ""
