"""The columns of a table as the schema declares them, and the features they become in the matrix."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

from privcov.errors import InputError, ParameterError
from privcov.schema.dialect import meaning, moment, number
from privcov.schema.expressions import parse
from privcov.schema.names import check_name
from privcov.text.grammar import as_given, brief, printable

FeatureKind = Literal["intercept", "numeric", "level", "missing", "coordinate"]
Level = str | int | float
Code = str | int | float
"""A value that means "missing" in a table, such as ``"NA"`` or -999."""
ColumnRule = Literal["midpoint", "zero-row", "indicator", "none"]
RULES: tuple[ColumnRule, ...] = ("midpoint", "zero-row", "indicator", "none")

_SHOWN = {"label": 128, "unit": 32}
"""Characters of the words that people read."""
_PADDED = re.compile(r"[+-]?0[0-9]")
_LARGEST_LEVEL = 10**100
"""Beyond it no level is: files have whole numbers of at most a hundred digits."""
_MOST_REACH = 1024
"""Scaled units beyond which a cell is clipped, whatever the bounds: such a scale is far too small for them."""


@dataclass(frozen=True, kw_only=True)
class _Declared:
    """What every column has: a name, and what is missing in it and then counts as what."""

    name: str
    missing: ColumnRule | None = None
    """What a missing cell counts as; None: what the table says, or a fill."""
    missing_values: tuple[Code, ...] | None = None
    """Values that are missing, beside what always is; None: those of the table, which a schema fills in."""
    label: str = ""
    """What people call it, for tables and figures; a formula has the name."""
    unit: str = ""
    """What its numbers count, such as years; public words, like the label."""
    expression: str | None = None
    """How a cell follows from other cells of its row (``schema/expressions.py``); None: it is read from the table."""

    @property
    def title(self) -> str:
        """The label, or the name where there is none, with the unit behind it.

        >>> Numeric(name="age", lower=0, upper=100, label="Age at interview", unit="years").title
        'Age at interview (years)'
        """
        return f"{self.label or self.name} ({self.unit})" if self.unit else self.label or self.name

    @property
    def indicator(self) -> bool:
        """Whether one more feature says which cells are missing."""
        return self.missing == "indicator"

    @cached_property
    def missing_numbers(self) -> tuple[float, ...]:
        """The missing values that are numbers, however they are written."""
        found = (self._number_of(code) for code in self.missing_values or ())
        return tuple(dict.fromkeys(value for value in found if value is not None))

    def _number_of(self, code: Code) -> float | None:
        return number(code) if isinstance(code, str) else float(code)

    def _check_rules(self, fill: object) -> None:
        object.__setattr__(self, "name", check_name(self.name))
        for word, most in _SHOWN.items():
            _check_shown(getattr(self, word), most, f"{word} of column {self.name}")
        if self.expression is not None:
            made = str(parse(str(self.expression), f"the derived column {self.name}"))
            object.__setattr__(self, "expression", made)
        if self.missing_values is not None:
            codes = missing_codes(self.missing_values, f"column {self.name}")
            object.__setattr__(self, "missing_values", codes)
        if self.missing is not None and self.missing not in RULES:
            raise InputError(
                "E145",
                f"column {self.name}: missing must be one of {', '.join(RULES)}; got {self.missing!r}.",
                "For a value of your own write fill = VALUE instead.",
            )
        if self.missing is not None and fill is not None:
            raise InputError(
                "E145",
                f"column {self.name} has both missing = {self.missing!r} and a fill.",
                "Keep one of the two.",
            )


@dataclass(frozen=True, kw_only=True)
class Numeric(_Declared):
    """A numeric column with public bounds; values are clipped to them and scaled, to [-1, 1] unless it has a scale."""

    lower: float
    upper: float
    fill: float | None = None
    """What a missing cell counts as, in the column's own units; within the bounds."""
    centre: float | None = None
    """What a scaled zero stands for, in the column's own units; None: the middle of the bounds."""
    scale: float | None = None
    """What a scaled one stands for, in the column's own units; None: half the width of the bounds."""
    date: bool = False
    """Whether cells are dates: then bounds and fill are in seconds since the beginning of 1970."""

    def __post_init__(self) -> None:
        self._check_rules(self.fill)
        for word in ("lower", "upper"):
            object.__setattr__(self, word, _finite(getattr(self, word), f"{word} bound of {self.name}"))
        # The lower limit keeps half_width an ordinary number, also after division by a power of the grid.
        width = self.upper - self.lower
        if not 2.0**-900 < width < math.inf:
            apart = "bounds are too close together" if width < 1 else "bounds are too far apart"
            wrong = apart if width > 0 else "lower must be below upper"
            raise ParameterError(
                "E206", f"column {self.name}: {wrong}, got {self.lower:g} and {self.upper:g}."
            )
        if self.centre is not None or self.scale is not None:
            self._check_scaling()
        if self.fill is not None:
            self._check_fill()

    def _check_scaling(self) -> None:
        middle = self.lower + (self.upper - self.lower) / 2
        centre = middle if self.centre is None else _finite(self.centre, f"centre of {self.name}")
        if not self.lower <= centre <= self.upper:
            raise ParameterError("E206", f"column {self.name}: the centre {centre:g} is outside the bounds.")
        object.__setattr__(self, "centre", None if centre == middle else centre)
        if self.scale is not None:
            scale = _finite(self.scale, f"scale of {self.name}")
            if not 2.0**-40 <= scale / (self.upper - self.lower) <= 2.0**10:
                raise ParameterError(
                    "E206",
                    f"column {self.name}: the scale {scale:g} is too small or too large for its bounds.",
                )
            object.__setattr__(self, "scale", None if centre == middle and scale == self.furthest else scale)

    def _check_fill(self) -> None:
        fill = _finite(self.fill, f"fill of {self.name}")
        object.__setattr__(self, "fill", fill)
        if not self.lower <= fill <= self.upper:
            raise InputError(
                "E144",
                f"column {self.name}: the fill {fill:g} is outside [{self.lower:g}, {self.upper:g}].",
                "Choose a fill within the bounds.",
            )
        if fill in self.missing_numbers:
            raise InputError(
                "E144",
                f"column {self.name}: the fill {fill:g} is also one of its missing values.",
                "Choose another fill, or remove that value from missing_values.",
            )

    def _number_of(self, code: Code) -> float | None:
        if not self.date:
            return super()._number_of(code)
        return moment(code) if isinstance(code, str) else None

    @property
    def width(self) -> int:
        """How many features it becomes."""
        return 1 + self.indicator

    @property
    def summed_width(self) -> int:
        """How many columns are summed for it."""
        return self.width

    @property
    def middle(self) -> float:
        """The centre: what a scaled zero stands for."""
        return self.lower + (self.upper - self.lower) / 2 if self.centre is None else self.centre

    @property
    def furthest(self) -> float:
        """The distance from the centre to the bound that is further away."""
        if self.centre is None:
            return (self.upper - self.lower) / 2
        return max(self.upper - self.centre, self.centre - self.lower)

    @property
    def reach(self) -> float:
        """The largest scaled value that a cell may have: a multiple of 1/1024, so that squares add up exactly."""
        if self.scale is None:
            return 1.0
        return min(math.ceil(_MOST_REACH * (self.furthest / self.scale)) / _MOST_REACH, float(_MOST_REACH))

    @property
    def half_width(self) -> float:
        """The most that a cell can be away from the centre."""
        return self.furthest if self.scale is None else self.reach * self.scale


@dataclass(frozen=True, kw_only=True)
class Categorical(_Declared):
    """A column with declared levels, one indicator each; any other value becomes all zeros.

    >>> Categorical(name="smoker", levels=(True, False)).numbers
    (1.0, 0.0)
    >>> Categorical(name="town", levels=("01234", "12345")).numbers is None
    True
    """

    levels: tuple[Level, ...]
    fill: Level | None = None
    """The level that a missing cell counts as."""
    exhaustive: bool = False
    """Whether every cell counts as one of the levels, or as missing: then they add up to the intercept."""
    otherwise: Level | None = None
    """Of an exhaustive column: the level that a cell counts as which has none of them. None: it is missing."""

    def __post_init__(self) -> None:
        self._check_rules(self.fill)
        object.__setattr__(self, "levels", tuple(_worded(level) for level in self.levels))
        for level in self.levels:
            fine = (
                0 < len(level) <= 128 and printable(level) and level == level.strip()
                if isinstance(level, str)
                else isinstance(level, int | float) and abs(level) < _LARGEST_LEVEL
            )
            if not fine:
                raise _no_level(self.name, level)
        if not self.levels or len(set(self.levels)) != len(self.levels):
            raise InputError("E122", f"column {self.name}: levels must be a list of different values.")
        if len({isinstance(level, str) for level in self.levels}) != 1:
            raise InputError("E122", f"column {self.name}: levels must be all texts or all numbers.")
        self._check_missing()
        for word in ("fill", "otherwise"):
            if (given := getattr(self, word)) is not None:
                object.__setattr__(self, word, self._level_of(_worded(given), word))
        self._check_exhaustive()

    def _check_exhaustive(self) -> None:
        if not isinstance(self.exhaustive, bool):
            raise InputError(
                "E165",
                f"column {self.name}: exhaustive must be true or false, got {brief(self.exhaustive)}.",
                "Leave it out, or write exhaustive = true.",
            )
        if self.otherwise is not None and not self.exhaustive:
            raise InputError(
                "E165",
                f"column {self.name} has otherwise = {self.otherwise!r}, but not exhaustive = true.",
                "Add exhaustive = true: then every other cell counts as that level.",
            )
        if self.exhaustive and self.width < 2:
            raise InputError(
                "E165",
                f"column {self.name} is exhaustive with a single level, which every row would have.",
                "Declare a second level, or leave the column out.",
            )

    def _check_missing(self) -> None:
        for level in self.levels:
            if level in (self.missing_values or ()) or self._number_of(level) in self.missing_numbers:
                raise InputError(
                    "E142",
                    f"column {self.name}: {level!r} is a level and also a missing value.",
                    "Remove it from one of the two lists; missing_values of a column replaces that of the table.",
                )
        if self.indicator and "missing" in self.levels:
            raise InputError(
                "E146",
                f"column {self.name}: {self.name}[missing] is a level and also the indicator of missing cells.",
                "Rename the level in the table, or choose another rule.",
            )

    def _level_of(self, given: Level, word: str) -> Level:
        for level in self.levels:
            if level == given or (
                self.numbers is not None and self._number_of(given) == self._number_of(level)
            ):
                return level
        if word == "otherwise":
            raise InputError(
                "E166",
                f"column {self.name}: otherwise {brief(given)!r} is not one of its levels.",
                "Name one of them, or add it to levels.",
            )
        raise InputError(
            "E144", f"column {self.name}: the fill {given!r} is not one of its levels.", "Fill with a level."
        )

    @property
    def numeric_levels(self) -> bool:
        """Whether the levels were declared as numbers."""
        return not isinstance(self.levels[0], str)

    @cached_property
    def numbers(self) -> tuple[float, ...] | None:
        """The numbers that cells are compared with; None where cells are compared with the levels as texts.

        Levels compare as numbers if all of them stand for numbers (true and false for 1 and 0), no two for the same,
        and none is written with a zero in front of other digits, as a postal code is.
        """
        found = [meaning(level) if isinstance(level, str) else float(level) for level in self.levels]
        numbers = tuple(value for value in found if value is not None)
        same = len(set(numbers)) < len(numbers) and not self.numeric_levels
        return None if self.padded or same or len(numbers) < len(found) else numbers

    @property
    def padded(self) -> bool:
        """Whether a level is written with a zero in front of other digits."""
        return any(isinstance(level, str) and _PADDED.match(level) for level in self.levels)

    @property
    def width(self) -> int:
        """How many features it becomes."""
        return len(self.levels) + self.indicator

    @property
    def summed_width(self) -> int:
        """How many columns are summed for it, one fewer where the features add up to the intercept."""
        return self.width - self.exhaustive

    @property
    def squared_norm(self) -> Fraction:
        """What a cell adds to the squared norm of a row, in scaled units."""
        return 1 - Fraction(self.exhaustive, self.width)

    def _number_of(self, code: Code) -> float | None:
        return (
            meaning(code) if isinstance(code, str) and self.numbers is not None else super()._number_of(code)
        )


Column = Numeric | Categorical


def _no_level(column: str, level: object) -> InputError:
    """What is wrong with a level, and what to write instead."""
    text = level if isinstance(level, str) else ""
    remedy = "Shorten or rename it."
    if level == "":
        remedy = 'Leave it out: an empty cell is a missing one, and missing = "indicator" counts those.'
    elif text != text.strip():
        remedy = "Leave out the white space around it, which means nothing in a cell."
    return InputError(
        "E121",
        f"column {column}: a level must be a short printable text or a number, and {brief(level)!a} is neither.",
        remedy,
    )


@dataclass(frozen=True, kw_only=True)
class Identifier:
    """The column with the person's id. It is read to gather a person's rows, and becomes no feature."""

    name: str
    missing_values: tuple[Code, ...] = ()
    """Texts that stand for no id, beside an empty cell."""

    @property
    def codes(self) -> list[bytes]:
        """The same as bytes of trimmed cells."""
        return [str(code).encode("utf-8") for code in self.missing_values if str(code)]


@dataclass(frozen=True, kw_only=True)
class Feature:
    """One row and column of the released matrix: the constant, a numeric column, or an indicator.

    An indicator is 1 where a cell has its level, or where the cell is missing, and 0 elsewhere.

    Attributes
    ----------
    name : str
        The name in the matrix: "(Intercept)", "age", "sex[F]", "age[missing]".
    kind : {"intercept", "numeric", "level", "missing", "coordinate"}
        What it stands for. A coordinate is summed in place of levels that add up to the intercept; no release has one.
    column : str
        The column of the table that it belongs to; empty for the intercept.
    level : str, int, float or None
        The level that an indicator stands for.
    middle : float
        What a scaled zero stands for, in original units; the middle of the column's bounds unless the schema or a
        frame says otherwise. 0 for what is not numeric.
    half_width : float
        The most that a cell can be away from the middle, in original units; 1 for what is not numeric.
    reach : float
        The largest scaled value; 1 unless the schema or a frame says otherwise.
    lower : float
        The lower bound, in original units; 0 for what is not numeric.
    upper : float
        The upper bound, in original units; 1 for what is not numeric.
    label : str
        What people call it, with its unit: "Age at interview (years)", "Sex: F"; empty where the schema declares no
        label and no unit for its column.

    Examples
    --------
    >>> import privcov as pc
    >>> age = pc.Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}}}).features[1]
    >>> age.name, age.title, age.kind, age.middle, age.half_width, age.unit, age.lower, age.upper
    ('age', 'age', 'numeric', 50.0, 50.0, 50.0, 0.0, 100.0)
    """

    name: str
    kind: FeatureKind
    column: str = ""
    level: Level | None = None
    middle: float = 0.0
    half_width: float = 1.0
    reach: float = 1.0
    lower: float = 0.0
    upper: float = 1.0
    label: str = ""

    @property
    def title(self) -> str:
        """What figures show, the label, or the name where there is none."""
        return self.label or self.name

    @property
    def unit(self) -> float:
        """One scaled unit, in original units. A cell is ``middle + unit * z``."""
        return self.half_width / self.reach


def _check_shown(given: object, most: int, what: str) -> None:
    if not isinstance(given, str) or given != given.strip() or len(given) > most or not printable(given):
        raise InputError(
            "E195",
            f"the {what} must be a text of at most {most} printable characters, got {ascii(given)[:80]}.",
            "White space around it and characters that nobody sees are refused.",
        )


def missing_codes(given: object, where: str) -> tuple[Code, ...]:
    """A list of values that mean "missing", checked."""
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise InputError(
            "E141", f"{where}: missing_values must be a list.", 'Write it as ["", "NA", "-999"].'
        )
    for code in given:
        if isinstance(code, str):
            fine = len(code) <= 128 and printable(code) and code == code.strip()
        else:
            fine = isinstance(code, int | float) and not isinstance(code, bool) and _is_finite(code)
        if not fine:
            raise InputError(
                "E141",
                f"{where}: a missing value must be a short printable text or a finite number, got {ascii(code)[:80]}.",
                "White space around a cell is ignored.",
            )
    return tuple(given)


def _worded(level: Level) -> Level:
    """true and false of a schema as texts, which is how a release writes them."""
    return str(level).lower() if isinstance(level, bool) else level


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _finite(value: Any, what: str) -> float:
    try:
        number = math.nan if isinstance(value, bool | str) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ParameterError(
            "E206",
            f"the {what} must be a finite number, got {as_given(value)}.",
            'Write a number without quotes; a bound may also be a date such as "2024-12-31".'
            if isinstance(value, str)
            else "",
        )
    return number
