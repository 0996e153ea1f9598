"""Terms of a formula that choose among the levels of a column, and the columns of the design that they make.

A level is ``sex[F]``; several that count as one are ``area[s|w]``; a baseline of one's own is
``C(area, Treatment("s"))``. All of them are sums of columns that a release holds already.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from privcov.errors import ParameterError
from privcov.schema import Categorical, Column, Schema
from privcov.schema.dialect import meaning
from privcov.schema.names import QUOTED, RUN, quoted, unquoted

_TEXT = rf"\"[^\"]*+\"|'[^']*+'|{QUOTED}"
CHOICE = re.compile(rf"\s*+\[(?P<levels>(?:{_TEXT}|[^\]\"'`])*+)\]")
"""What may follow a name: levels between brackets."""
FACTOR = re.compile(
    rf"C\s*+\(\s*+(?P<name>{QUOTED}|{RUN})\s*+"
    rf"(?:,\s*+Treatment\s*+\(\s*+(?:reference\s*+=\s*+)?(?P<level>{_TEXT}|[^\s()\"'`]++)\s*+\)\s*+)?\)"
)
"""A categorical column with a baseline of one's own."""
_PIECE = re.compile(rf"{_TEXT}|[^|\"'`\s](?:[^|\"'`]*[^|\"'`\s])?")
_PLAIN = re.compile(r"[\w.-]+")


class Regressor(NamedTuple):
    """A column of the design: its name, and the places in the matrix of the release that it is the sum of."""

    name: str
    places: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Term:
    """A column, or what is chosen of its levels; levels by their names, in the order of the schema."""

    column: str
    chosen: tuple[str, ...] = ()
    """The levels that one indicator stands for; none for the whole column."""
    baseline: str = ""
    """The level without a coefficient, where it is not the first."""
    dropped: tuple[str, ...] = ()
    """Levels without a coefficient beside the baseline: they count with it."""

    @property
    def name(self) -> str:
        return f"{self.column}[{'|'.join(self.chosen)}]" if self.chosen else self.column

    def __str__(self) -> str:
        if self.chosen:
            return f"{quoted(self.column)}[{'|'.join(map(_written, self.chosen))}]"
        whole = quoted(self.column)
        if self.baseline:
            whole = f"C({whole}, Treatment({_written(self.baseline, always=True)}))"
        return whole + "".join(f" - {quoted(self.column)}[{_written(level)}]" for level in self.dropped)

    def regressors(self, places: dict[str, int], *, whole: bool) -> list[Regressor]:
        """The columns of the design; ``places`` are those of the column's levels, ``whole`` keeps the baseline."""
        if self.chosen:
            return [Regressor(self.name, tuple(places[level] for level in self.chosen))]
        left = set(self.dropped) | (set() if whole else {self.baseline or next(iter(places))})
        return [
            Regressor(f"{self.column}[{level}]", (place,))
            for level, place in places.items()
            if level not in left
        ]


def levels_of(schema: Schema) -> dict[str, dict[str, int]]:
    """Of every categorical column, the places of its levels by name; that of missing cells is ``missing``."""
    found: dict[str, dict[str, int]] = {
        column.name: {} for column in schema.columns if isinstance(column, Categorical)
    }
    for place, feature in enumerate(schema.features):
        if feature.column in found:
            level = "missing" if feature.kind == "missing" else str(feature.level)
            found[feature.column][level] = place
    return found


def read_levels(text: str, column: Column, known: Collection[str]) -> tuple[str, ...]:
    """The levels that are named between brackets, joined by ``|``, in the order of the schema.

    >>> read_levels('"w" | s', Categorical(name="area", levels=("n", "s", "w")), ["n", "s", "w"])
    ('s', 'w')
    """
    found = {read_level(piece, column, known) for piece in _PIECE.findall(text) or [""]}
    return tuple(level for level in known if level in found)


def read_level(text: str, column: Column, known: Collection[str]) -> str:
    """The name of one level of a column: as it is declared, or a number equal to it."""
    given = text.strip()
    if given[:1] in ('"', "'"):
        given = given[1:-1]
    elif given[:1] == "`":
        given = unquoted(given)
    if given in known:
        return given
    if not isinstance(column, Categorical):
        raise ParameterError("E231", f"the column {column.name} has no levels.", "Name the column alone.")
    number = meaning(given)
    if column.numbers is not None and number in column.numbers:
        return str(column.levels[column.numbers.index(number)])
    shown = ", ".join(list(known)[:8]) + (", …" if len(known) > 8 else "")
    raise ParameterError("E231", f"the column {column.name} has no level {given[:64]!r}.", f"It has {shown}.")


def _written(level: str, *, always: bool = False) -> str:
    """A level as a formula has it: between marks where it needs them."""
    if _PLAIN.fullmatch(level) and not always:
        return level
    return f'"{level}"' if '"' not in level else "`" + level.replace("`", "``") + "`"
