"""The columns of a table as the schema declares them, and the features they become in the matrix."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, Literal

from privcov.errors import InputError, ParameterError
from privcov.grammar import brief, printable

FeatureKind = Literal["intercept", "numeric", "level"]
Level = str | int | float

_LARGEST_LEVEL = 10**100
"""Beyond it no level is: files have whole numbers of at most a hundred digits."""
_NAME = re.compile(r"[A-Za-z0-9_.\-]{1,64}")


@dataclass(frozen=True, kw_only=True)
class Numeric:
    """A numeric column with public bounds; values are clipped to them and scaled to [-1, 1]."""

    name: str
    lower: float
    upper: float

    def __post_init__(self) -> None:
        _check_name(self.name)
        for word in ("lower", "upper"):
            object.__setattr__(self, word, _finite(getattr(self, word), f"{word} bound of {self.name}"))
        # The lower limit keeps half_width an ordinary number, also after division by a power of the grid.
        if not 2.0**-900 < self.upper - self.lower < math.inf:
            raise ParameterError(
                "E206",
                f"column {self.name}: lower must be below upper, got {self.lower:g} and {self.upper:g}.",
            )

    @property
    def middle(self) -> float:
        return self.lower + (self.upper - self.lower) / 2

    @property
    def half_width(self) -> float:
        return (self.upper - self.lower) / 2


@dataclass(frozen=True, kw_only=True)
class Categorical:
    """A column with declared levels, one indicator each; any other value becomes all zeros."""

    name: str
    levels: tuple[Level, ...]

    def __post_init__(self) -> None:
        _check_name(self.name)
        object.__setattr__(self, "levels", tuple(self.levels))
        if not self.levels or len(set(self.levels)) != len(self.levels):
            raise InputError("E122", f"column {self.name}: levels must be a list of different values.")
        if len({isinstance(level, str) for level in self.levels}) != 1:
            raise InputError("E122", f"column {self.name}: levels are either all texts or all numbers.")
        for level in self.levels:
            fine = (
                0 < len(level) <= 128 and printable(level) and level == level.strip()
                if isinstance(level, str)
                else not isinstance(level, bool)
                and isinstance(level, int | float)
                and abs(level) < _LARGEST_LEVEL
            )
            if not fine:
                raise InputError(
                    "E121", f"column {self.name}: a level is a short printable text or a number."
                )

    @property
    def numeric_levels(self) -> bool:
        return not isinstance(self.levels[0], str)


Column = Numeric | Categorical


@dataclass(frozen=True, kw_only=True)
class Feature:
    """One row and column of the released matrix: the constant, a numeric column, or one level's indicator."""

    name: str
    kind: FeatureKind
    column: str = ""
    level: Level | None = None
    middle: float = 0.0
    half_width: float = 1.0


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        shown = ascii(brief(name))
        raise InputError(
            "E121",
            f"a column name has 1 to 64 letters, digits, '_', '.' or '-'; got {shown}.",
            "Rename the column.",
        )


def _finite(value: Any, what: str) -> float:
    try:
        number = math.nan if isinstance(value, bool | str) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ParameterError("E206", f"the {what} must be a finite number, got {brief(value)}.")
    return number
