"""What is public about a table before anyone looks at it: columns, bounds, levels, and row-local rules.

A schema is written by a person from public knowledge. Nothing in it is ever guessed from data: a bound read
off the data is a statistic of the data, and publishing it would void every guarantee.

>>> schema = Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}, "sex": {"levels": ["F", "M"]}}})
>>> [feature.name for feature in schema.features]
['(Intercept)', 'age', 'sex[F]', 'sex[M]']
>>> schema.squared_norm_bound
Fraction(3, 1)
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, cast

from privcov.columns import Categorical, Column, Feature, Level, Numeric
from privcov.errors import InputError, ParameterError
from privcov.privacy import decimal_text, exact

__all__ = ["Categorical", "Column", "Feature", "Level", "MissingRule", "Numeric", "Schema"]

MAX_DIMENSION = 20_000
"""What a release of 200 million entries has; some mechanisms stop earlier (``Mechanism.most_columns``)."""
MissingRule = Literal["midpoint", "zero-row"]

_BLANK = re.compile(r"^\s*(lower|upper|levels)\s*=\s*(#.*)?$")


@dataclass(frozen=True, kw_only=True)
class Schema:
    """Columns in order, and the public rules that turn any row into a bounded one."""

    columns: tuple[Column, ...]
    intercept: bool = True
    row_norm_bound: Fraction | None = None
    missing: MissingRule = "midpoint"
    max_rows_per_person: int = 1
    ignore_extra: bool = False

    @property
    def person_words(self) -> str:
        """How many rows a person may have, and what that means for their number, as a sentence or two."""
        most = self.max_rows_per_person
        private = (
            " Another person may have more or fewer, so the number of rows is private." if most > 1 else ""
        )
        return f"Rows per person: at most {most}.{private}"

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        names = [column.name for column in self.columns]
        if not names:
            raise InputError("E122", "the schema declares no column.", "Add a [columns.NAME] table.")
        if twice := [name for name, times in Counter(names).items() if times > 1]:
            raise InputError("E103", f"column {twice[0]} is declared twice.")
        if self.row_norm_bound is not None:
            bound = _norm_bound(self.row_norm_bound)
            no_row_exceeds_it = bound**2 >= self._largest_squared_norm
            object.__setattr__(self, "row_norm_bound", None if no_row_exceeds_it else bound)
        if self.missing not in ("midpoint", "zero-row"):
            raise InputError("E122", f"missing must be 'midpoint' or 'zero-row', got {self.missing!r}.")
        for word in ("intercept", "ignore_extra"):
            if not isinstance(getattr(self, word), bool):
                raise InputError("E122", f"{word} must be true or false, got {getattr(self, word)!r}.")
        rows = self.max_rows_per_person
        if isinstance(rows, bool) or not isinstance(rows, int) or not 1 <= rows <= 10**6:
            raise ParameterError("E205", f"max_rows_per_person must be a whole number from 1, got {rows!r}.")
        if self.dimension > MAX_DIMENSION:
            raise InputError(
                "E113",
                f"the schema has {self.dimension} columns after one-hot coding; at most {MAX_DIMENSION:,} fit.",
            )

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        """The columns of the released matrix: intercept first, then declared order, a level at a time."""
        made = [Feature(name="(Intercept)", kind="intercept")] if self.intercept else []
        for column in self.columns:
            if isinstance(column, Numeric):
                made.append(
                    Feature(
                        name=column.name,
                        kind="numeric",
                        column=column.name,
                        middle=column.middle,
                        half_width=column.half_width,
                    )
                )
            else:
                made += [
                    Feature(name=f"{column.name}[{level}]", kind="level", column=column.name, level=level)
                    for level in column.levels
                ]
        return tuple(made)

    @property
    def dimension(self) -> int:
        return self.intercept + sum(
            1 if isinstance(column, Numeric) else len(column.levels) for column in self.columns
        )

    @property
    def fixed_squared_norm(self) -> int:
        """What the intercept and the indicators of one row contribute at most: one, and one per column."""
        return self.intercept + sum(isinstance(column, Categorical) for column in self.columns)

    @property
    def squared_norm_bound(self) -> Fraction:
        """R², exact. Without a declared bound it is the largest norm a row can have."""
        bound = self.row_norm_bound
        return Fraction(self._largest_squared_norm) if bound is None else bound**2

    @property
    def _largest_squared_norm(self) -> int:
        """Every declared column contributes at most one, categorical ones too, and so does the intercept."""
        return self.intercept + len(self.columns)

    @property
    def keeps_indicators(self) -> bool:
        """Whether clipping spares the intercept and the indicators, so that their public structure holds."""
        return self.squared_norm_bound >= self.fixed_squared_norm

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Schema:
        """A schema from the structure of the TOML file."""
        if not isinstance(given, Mapping):
            raise InputError("E122", f"a schema is a mapping, got {type(given).__name__}.")
        own = {"intercept", "row_norm_bound", "missing", "max_rows_per_person", "ignore_extra"}
        _only(given, {"columns", "planning"} | own, "the schema")
        columns = given.get("columns", {})
        if not isinstance(columns, Mapping):
            raise InputError("E122", "columns must be tables named [columns.NAME].")
        # What [planning] says is for privcov.planning.moments, which reads it itself; no release depends on it.
        rest = {word: value for word, value in given.items() if word not in ("columns", "planning")}
        return cls(columns=tuple(_column(name, about) for name, about in columns.items()), **rest)

    @classmethod
    def read(cls, path: str | Path) -> Schema:
        """A schema from a TOML file."""
        try:
            text = Path(path).read_bytes().decode("utf-8-sig")
        except OSError as reason:
            raise InputError("E119", f"cannot read the schema {path}: {reason.strerror}.") from None
        except UnicodeDecodeError:
            raise InputError("E105", f"the schema {path} is not UTF-8 text.") from None
        for number, line in enumerate(text.splitlines(), 1):
            if blank := _BLANK.match(line):
                raise ParameterError(
                    "E206",
                    f"{path}, line {number}: {blank[1]} is still blank.",
                    "Fill it from public knowledge, never from the data.",
                )
        try:
            return cls.from_dict(tomllib.loads(text, parse_float=_decimal))
        except (tomllib.TOMLDecodeError, ValueError, RecursionError) as reason:
            if isinstance(reason, ParameterError):
                raise
            raise InputError("E122", f"the schema {path} is not valid TOML: {reason}.") from None

    def to_toml(self) -> str:
        """The TOML text that ``read`` turns back into this schema."""
        lines = [f"intercept = {str(self.intercept).lower()}"]
        if self.row_norm_bound is not None:
            lines.append(f"row_norm_bound = {_toml(self.row_norm_bound)}")
        lines += [f'missing = "{self.missing}"', f"max_rows_per_person = {self.max_rows_per_person}"]
        if self.ignore_extra:
            lines.append("ignore_extra = true")
        for column in self.columns:
            lines += ["", f'[columns."{column.name}"]' if "." in column.name else f"[columns.{column.name}]"]
            if isinstance(column, Numeric):
                lines += [f"lower = {_toml(column.lower)}", f"upper = {_toml(column.upper)}"]
            else:
                lines.append(f"levels = [{', '.join(_toml(level) for level in column.levels)}]")
        return "\n".join(lines) + "\n"


def _column(name: str, about: object) -> Column:
    if not isinstance(about, Mapping):
        raise InputError("E122", f"column {name}: expected lower and upper, or levels.")
    _only(about, {"lower", "upper", "levels"}, f"column {name}")
    if "levels" in about and not {"lower", "upper"} & about.keys():
        levels = about["levels"]
        if not isinstance(levels, list | tuple):
            raise InputError("E122", f"column {name}: levels must be a list.")
        return Categorical(
            name=name, levels=tuple(float(v) if isinstance(v, Fraction) else cast(Level, v) for v in levels)
        )
    if "levels" not in about and {"lower", "upper"} <= about.keys():
        return Numeric(name=name, lower=about["lower"], upper=about["upper"])
    raise InputError("E122", f"column {name}: give lower and upper, or levels, and not both.")


def _only(given: Mapping[str, Any], allowed: set[str], where: str) -> None:
    for word in given:
        if word not in allowed:
            known = ", ".join(sorted(allowed))
            raise InputError("E122", f"{where} has an unknown word {word!r}.", f"Known: {known}.")


def _decimal(text: str) -> Fraction | float:
    """A decimal of the file as the exact number it says; ``nan`` and ``inf`` stay floats, to be refused."""
    try:
        return exact(text)
    except ValueError:
        return float(text)


def _norm_bound(value: Any) -> Fraction:
    try:
        number = exact(value)
    except (ValueError, TypeError, ZeroDivisionError):
        number = Fraction(0)
    if not 0 < number < 2**500:
        raise ParameterError("E205", f"row_norm_bound must be a finite number above 0, got {value}.")
    return number


def _toml(value: Level | Fraction) -> str:
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, Fraction):
        text = decimal_text(value)
        return f'"{text}"' if "/" in text else text
    return repr(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(value)
