"""Derived columns while they are typed: which expressions are needed, what they read, and which one is at fault.

A schema is refused as a whole, in words that name a column; on the page the words stand beside the expression.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from privcov.errors import InputError, PrivcovError
from privcov.schema import Schema
from privcov.schema.derived import columns_of
from privcov.schema.expressions import parse
from privcov.schema.names import check_name
from privcov.web.asking import Question, Refused, at, flag, part, parts, text

OF_DERIVED = "missing fill centre scale label unit"
"""What a file says of a derived column and the page has no field for."""
_OWN = {*(f"E17{digit}" for digit in range(9)), "E144", "E145", "E146", "E206"}
"""What an expression is refused with, and what is said of its column."""
_FIELDS = {
    "E147": "person",
    "E148": "per_person",
    "E149": "max_rows_per_person",
    "E167": "intercept",
    "E183": "person",
    "E196": "largest_weight",
    "E198": "weight",
}
"""Where a refusal of the whole schema belongs that is about a setting of the table."""


@dataclass(frozen=True, kw_only=True)
class Expression:
    """A line of the page: a name, an expression, and the columns that it makes."""

    place: int
    row: Question
    name: str
    use: bool
    about: Mapping[str, Any]
    """What a schema file would say of it."""
    made: tuple[str, ...]
    reads: frozenset[str]
    """The names in it, of columns of the table and of other derived ones."""

    @property
    def basis(self) -> bool:
        """Whether it makes columns with names of their own, as ``poly(age, 2)`` does."""
        return self.made != (self.name,)

    @classmethod
    def of(cls, place: int, row: Question) -> Expression:
        """The line at a place; refused beside its name, or beside its expression."""
        with at(f"derived.{place}.name"):
            name, use = check_name(text(row, "name", longest=200)), flag(row, "use", default=True)
        with at(f"derived.{place}.expression"):
            said = text(row, "expression", longest=20_000)
            made = columns_of(name, parse(said, f"the derived column {name}"))
            rules = part(row, "rules")
        return cls(
            place=place,
            row=row,
            name=name,
            use=use,
            about={"expression": said, **{word: rules[word] for word in OF_DERIVED.split() if word in rules}},
            made=tuple(one for one, _ in made),
            reads=frozenset(read for _, node in made for read in node.columns()),
        )


@dataclass(frozen=True, kw_only=True)
class Expressions:
    """All lines that can be read, and what is wrong with those that cannot."""

    lines: tuple[Expression, ...]
    wrong: tuple[tuple[str | None, PrivcovError], ...]

    @classmethod
    def of(cls, given: Question) -> Expressions:
        """The derived columns of a draft; one that is not ticked may be half typed.

        >>> squares = {"name": "age2", "expression": "age^2"}
        >>> found = Expressions.of({"derived": [squares, {"name": "b", "expression": "(", "use": False}]})
        >>> found.read, found.wrong
        (frozenset({'age'}), ())
        """
        lines, wrong = [], []
        with at(None):
            rows = parts(given, "derived")
            ticked = [flag(row, "use", default=True) for row in rows]
        for place, row in enumerate(rows):
            try:
                lines.append(Expression.of(place, row))
            except Refused as refused:
                wrong += refused.reasons if ticked[place] else []
        return cls(lines=tuple(lines), wrong=tuple(wrong))

    @property
    def used(self) -> list[Expression]:
        """Those that are released."""
        return [one for one in self.lines if one.use]

    @cached_property
    def read(self) -> frozenset[str]:
        """Every name that a released one needs, whether the table or another line has it."""
        return frozenset(name for one in self._needed(self.used) for name in one.reads)

    def insist(self) -> None:
        """Refuse what could not be read, and names that are there twice."""
        wrong, taken = list(self.wrong), set[str]()
        for one in self._needed(self.used):
            if taken.intersection(one.made):
                sentence = f"the derived column {one.name} has the name of another column."
                wrong.append((f"derived.{one.place}.name", InputError("E176", sentence, "Rename it.")))
            taken.update(one.made)
        if wrong:
            raise Refused(wrong)

    def put(self, words: Mapping[str, Any]) -> Schema:
        """The schema that these words and the derived columns make; a line that is only used by others is left out."""
        needed = self._needed(self.used)
        try:
            schema = _made(words, needed)
            unused = [name for one in needed if not one.use for name in one.made]
            return schema.without(unused) if unused else schema
        except PrivcovError as reason:
            found = self._at_fault(words) if reason.code in _OWN else []
            raise Refused(found or [(_FIELDS.get(reason.code), reason)]) from None

    def _needed(self, wanted: Iterable[Expression]) -> list[Expression]:
        """These lines and all that they are made of, in the order of the page."""
        by_name = {name: one for one in self.lines for name in one.made}
        found, waiting = set(), [*wanted]
        while waiting:
            one = waiting.pop()
            if one.place not in found:
                found.add(one.place)
                waiting += [by_name[name] for name in one.reads if name in by_name]
        return [one for one in self.lines if one.place in found]

    def _at_fault(self, words: Mapping[str, Any]) -> list[tuple[str | None, PrivcovError]]:
        """The lines that are refused although all that they are made of is not; in a circle, every line of it."""
        reasons: dict[int, PrivcovError] = {}
        for one in self._needed(self.used):
            try:
                _made(words, self._needed([one]))
            except PrivcovError as reason:
                if reason.code in _OWN:
                    reasons[one.place] = reason
        own = {
            one.place
            for one in self.lines
            if not any(other.place in reasons for other in self._needed([one]) if other is not one)
        }
        return [
            (f"derived.{place}.{'name' if reason.code == 'E176' else 'expression'}", reason)
            for place, reason in reasons.items()
            if place in own or reason.code == "E172"
        ]


def _made(words: Mapping[str, Any], lines: Iterable[Expression]) -> Schema:
    return Schema.from_dict({**words, "derived": {one.name: one.about for one in lines}})
