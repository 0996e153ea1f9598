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

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

from privcov.errors import InputError, ParameterError
from privcov.privacy import exact
from privcov.schema.columns import (
    Categorical,
    Code,
    Column,
    ColumnRule,
    Feature,
    Level,
    Numeric,
    missing_codes,
)
from privcov.schema.dialect import RFC_4180, Dialect, number
from privcov.schema.names import INTERCEPT
from privcov.schema.shape import Shape
from privcov.schema.toml import declarations, read_toml, toml_of, toml_value
from privcov.text.grammar import brief

__all__ = ["Categorical", "Column", "Feature", "Level", "MissingRule", "Numeric", "Schema"]

MAX_DIMENSION = 20_000
"""What a release of 200 million entries has; some mechanisms stop earlier (``Mechanism.most_columns``)."""
MissingRule = Literal["midpoint", "zero-row", "none"]

_ONE = Fraction(1)


@dataclass(frozen=True, kw_only=True)
class Schema:
    """The public facts about a table: columns in order, and the rules that turn any row into a bounded one.

    Write it from public knowledge, never from the data: a bound read off the data is a statistic of the data.
    Usually made by ``Schema.read`` from a TOML file or by ``Schema.from_dict``.

    Parameters
    ----------
    columns : tuple of Column
        The declared columns, numeric with bounds or categorical with levels.
    intercept : bool, default True
        Whether the matrix has a constant first column. It carries the count and the means.
    row_norm_bound : Fraction, float or str, optional
        The most that the norm of a scaled row may be, in scaled units; longer rows are shortened to it. By
        default the largest norm a row can have: the root of the number of declared columns, the intercept
        included.
    missing : {"midpoint", "zero-row", "none"}, default "midpoint"
        What a missing cell counts as, in columns without a rule of their own: the middle of the bounds (no
        level, in a categorical column), or a row of zeros, which leaves slopes of complete rows right. "none" declares
        that no cell is missing; one that is counts as the middle.
    missing_values : tuple of str, int or float, default ()
        Values that mean "missing", in columns without a list of their own. What is no number or level is
        missing too.
    max_rows_per_person : int, default 1
        The most rows that one person has in the table. It multiplies the noise.
    ignore_extra : bool, default False
        Whether a table may have columns that are not declared.
    file : Dialect, default RFC_4180
        How a file of lines is read: separator, quotes, decimal mark, encoding. No frame and no release depends
        on it.
    shape : Shape, optional
        In a private frame: the linear map that numeric columns went through before rows were shortened and summed. No
        schema file has one.

    Raises
    ------
    InputError
        The declarations contradict each other, or there are more than 20,000 columns (E1xx).
    ParameterError
        A bound or a number is out of range (E205).

    Examples
    --------
    >>> import privcov as pc
    >>> schema = pc.Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}, "sex": {"levels": ["F", "M"]}}})
    >>> [feature.name for feature in schema.features], schema.dimension
    (['(Intercept)', 'age', 'sex[F]', 'sex[M]'], 4)
    >>> schema.squared_norm_bound, schema.fixed_squared_norm, schema.keeps_indicators
    (Fraction(3, 1), 2, True)
    >>> schema.largest_squared_norm == schema.squared_norm_bound == schema.largest_scaled_square
    True
    >>> schema.numbers, round(schema.longest_row, 3)
    ((1,), 1.732)
    >>> schema.rule(schema.columns[0]), schema.missing_words, schema.empties_rows, schema.number_indicators
    ('midpoint', 'midpoint', False, ())
    >>> schema.missing_advice[:55]
    'A missing number counts as the middle of its bounds, wh'
    >>> schema.person_words, schema.published() == schema
    ('Rows per person: at most 1.', True)
    """

    columns: tuple[Column, ...]
    intercept: bool = True
    row_norm_bound: Fraction | None = None
    missing: MissingRule = "midpoint"
    missing_values: tuple[Code, ...] = ()
    max_rows_per_person: int = 1
    ignore_extra: bool = False
    file: Dialect = RFC_4180
    shape: Shape | None = None

    @property
    def person_words(self) -> str:
        """How many rows a person may have, and what that means for the number of rows, in a sentence or two."""
        most = self.max_rows_per_person
        private = (
            " Another person may have more or fewer, so the number of rows is private." if most > 1 else ""
        )
        return f"Rows per person: at most {most}.{private}"

    def __post_init__(self) -> None:
        object.__setattr__(self, "missing_values", missing_codes(self.missing_values, "the schema"))
        object.__setattr__(self, "columns", tuple(self._settled(column) for column in self.columns))
        names = [column.name for column in self.columns]
        if self.shape is not None and self.shape.columns != len(self.numbers):
            raise ParameterError("E205", "a shape has one row for each numeric column.")
        if not names:
            raise InputError("E122", "the schema declares no column.", "Add a [columns.NAME] table.")
        if twice := [name for name, times in Counter(names).items() if times > 1]:
            raise InputError("E103", f"column {twice[0]} is declared twice.")
        if self.row_norm_bound is not None:
            bound = _norm_bound(self.row_norm_bound)
            no_row_exceeds_it = bound**2 >= self.largest_squared_norm
            object.__setattr__(self, "row_norm_bound", None if no_row_exceeds_it else bound)
        if self.missing not in get_args(MissingRule):
            raise InputError(
                "E122", f"missing must be 'midpoint', 'zero-row' or 'none', got {brief(self.missing)}."
            )
        for word in ("intercept", "ignore_extra"):
            if not isinstance(getattr(self, word), bool):
                raise InputError("E122", f"{word} must be true or false, got {brief(getattr(self, word))}.")
        rows = self.max_rows_per_person
        if isinstance(rows, bool) or not isinstance(rows, int) or not 1 <= rows <= 10**6:
            raise ParameterError(
                "E205", f"max_rows_per_person must be a whole number from 1, got {brief(rows)}."
            )
        if self.dimension > MAX_DIMENSION:
            raise InputError(
                "E113",
                f"the released matrix would have {self.dimension} columns; at most {MAX_DIMENSION:,} are possible.",
            )
        if not self.file.plain_numbers:
            for column in self.columns:
                self._check_marks(column)
        self._check_features()

    def _settled(self, column: Column) -> Column:
        """The column with the missing values it has, its own or the table's, and a rule only where it is its own."""
        codes = self.missing_values if column.missing_values is None else column.missing_values
        kept = codes or (() if self.missing_values else None)
        rule = None if column.missing == self.missing else column.missing
        if (kept, rule) == (column.missing_values, column.missing):
            return column
        return replace(column, missing_values=kept, missing=rule)

    def _check_marks(self, column: Column) -> None:
        """Refuse a text that is one number in this schema and another, or none, in the file it describes."""
        levels = column.levels if isinstance(column, Categorical) and column.numbers is not None else ()
        for text in (*levels, *(column.missing_values or ())):
            if isinstance(text, str) and number(text) != number(text, self.file):
                raise InputError(
                    "E143",
                    f"column {column.name}: {text!r} is another number with the decimal and thousands marks of [file].",
                    "Write it as a number, without quotes and with a decimal point.",
                )

    def _check_features(self) -> None:
        """Refuse columns that a name typed by an analyst could not tell apart: ``sex[F]``, and level F of ``sex``."""
        grouped = [column.name for column in self.columns if isinstance(column, Categorical)]
        names = Counter([*(feature.name for feature in self.features), *grouped])
        if twice := [name for name, times in names.items() if times > 1]:
            raise InputError(
                "E160",
                f"two columns of the release would be named {twice[0]}: a column, and a level of another column.",
                "Rename the column.",
            )

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        """The columns of the released matrix, intercept first, then in declared order, a level at a time."""
        made = [Feature(name=INTERCEPT, kind="intercept")] if self.intercept else []
        for column in self.columns:
            if isinstance(column, Numeric):
                made.append(
                    Feature(
                        name=column.name,
                        kind="numeric",
                        column=column.name,
                        middle=column.middle,
                        half_width=column.half_width,
                        reach=column.reach,
                        lower=column.lower,
                        upper=column.upper,
                    )
                )
            else:
                made += [
                    Feature(name=f"{column.name}[{level}]", kind="level", column=column.name, level=level)
                    for level in column.levels
                ]
            if column.indicator:
                made.append(Feature(name=f"{column.name}[missing]", kind="missing", column=column.name))
        return tuple(made)

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """The features that are numeric columns."""
        return tuple(place for place, feature in enumerate(self.features) if feature.kind == "numeric")

    @cached_property
    def number_indicators(self) -> tuple[int, ...]:
        """The features that say where a numeric column is missing; the column stands before each, and is 0 there."""
        numeric = {column.name for column in self.columns if isinstance(column, Numeric)}
        return tuple(
            place
            for place, feature in enumerate(self.features)
            if feature.kind == "missing" and feature.column in numeric
        )

    def rule(self, column: Column) -> ColumnRule | Literal["fill"]:
        """Return what a missing cell of a column counts as.

        Parameters
        ----------
        column : Column
            One of ``columns``.

        Returns
        -------
        {"midpoint", "zero-row", "indicator", "none", "fill"}
            The column's own rule, or that of the table.
        """
        return "fill" if column.fill is not None else column.missing or self.missing

    @cached_property
    def empties_rows(self) -> bool:
        """Whether some cell, where it is missing, makes its whole row count as zeros."""
        return any(self.rule(column) == "zero-row" for column in self.columns)

    @property
    def missing_words(self) -> str:
        """What missing cells count as; first the rule of the table, then the columns that have their own."""
        own = [
            f"{column.name}: {column.missing or f'counts as {toml_value(column.fill or 0)}'}"
            for column in self.columns
            if column.missing is not None or column.fill is not None
        ]
        more = f", and {len(own) - 8} more" if len(own) > 8 else ""
        return self.missing + (f" ({', '.join(own[:8])}{more})" if own else "")

    @property
    def missing_advice(self) -> str:
        """What to write instead where missing numbers would count as the middle of their bounds; empty elsewhere."""
        if not any(
            isinstance(column, Numeric) and self.rule(column) == "midpoint" for column in self.columns
        ):
            return ""
        return (
            "A missing number counts as the middle of its bounds, which pulls slopes towards zero: write "
            'missing = "zero-row" to leave such rows out, or "none" if no cell is missing.'
        )

    @property
    def dimension(self) -> int:
        """The number of columns of the released matrix, with the intercept, the levels and the indicators."""
        return self.intercept + sum(column.width for column in self.columns)

    @property
    def fixed_squared_norm(self) -> int:
        """The most that the intercept and the indicators of one row add to its squared norm, in scaled units."""
        return self.intercept + sum(
            isinstance(column, Categorical) or column.indicator for column in self.columns
        )

    @property
    def squared_norm_bound(self) -> Fraction:
        """The bound R² on the squared norm of a scaled row, exact.

        Without a declared bound it is the largest squared norm that a row can have.
        """
        bound = self.row_norm_bound
        return self.largest_squared_norm if bound is None else bound**2

    @cached_property
    def largest_squared_norm(self) -> Fraction:
        """The largest squared norm that a row of scaled cells can have, before any clipping of rows.

        The intercept contributes one, and so does a categorical column, which has one indicator at most. A numeric
        column contributes the square of its reach, or the one of its indicator: it is zero where that is not.
        With a shape: after the map.
        """
        if self.shape is not None:
            return self.fixed_squared_norm + self.shape.largest_square
        return self.largest_scaled_square

    @cached_property
    def largest_scaled_square(self) -> Fraction:
        """The same before a shape maps the row."""
        return self.intercept + sum((_largest_square(column) for column in self.columns), start=Fraction(0))

    @property
    def longest_row(self) -> float:
        """The most that a released row has for its norm, in scaled units; with a shape, of the columns before it."""
        back = 1.0 if self.shape is None else self.shape.longest_back
        return math.sqrt(float(self.squared_norm_bound)) * back

    @property
    def keeps_indicators(self) -> bool:
        """Whether clipping spares the intercept and the indicators, so that their public structure holds."""
        return self.squared_norm_bound >= self.fixed_squared_norm

    def published(self) -> Schema:
        """Return the part of the schema that belongs to a release: all but how a file was read.

        Returns
        -------
        Schema
            The same columns and rules, without missing values and without a dialect.
        """
        columns = self.columns
        if any(column.missing_values for column in columns):
            columns = tuple(replace(column, missing_values=None) for column in columns)
        return replace(self, columns=columns, missing_values=(), ignore_extra=False, file=RFC_4180)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Schema:
        """Make a schema from the structure of the TOML file.

        Parameters
        ----------
        given : mapping
            The words of the schema file: ``columns`` with ``lower`` and ``upper`` (original units) or
            ``levels`` for each name, and the other words of docs/reference/schema-file.md.

        Returns
        -------
        Schema
            The checked schema.

        Raises
        ------
        InputError
            A word is unknown or a declaration cannot be used (E1xx).
        ParameterError
            A number is out of range (E205).

        Examples
        --------
        >>> import privcov as pc
        >>> pc.Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}}, "intercept": False}).dimension
        1
        """
        return cls(**declarations(given))

    @classmethod
    def read(cls, path: str | Path) -> Schema:
        r"""Read a schema from a TOML file.

        Parameters
        ----------
        path : str or Path
            The file. See docs/reference/schema-file.md.

        Returns
        -------
        Schema
            The checked schema.

        Raises
        ------
        InputError
            The file cannot be read or is no schema (E1xx).
        ParameterError
            A bound is still blank (E206), or a number is out of range (E205).

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import privcov as pc
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "people.toml"
        >>> _ = path.write_text("[columns.age]\nlower = 0\nupper = 100\n")
        >>> pc.Schema.read(path).columns[0].name
        'age'
        """
        return read_toml(path, cls.from_dict)

    def to_toml(self) -> str:
        """Return the TOML text that ``read`` turns back into this schema, but for a shape, which no file has.

        Returns
        -------
        str
            The text of a schema file.

        Examples
        --------
        >>> import privcov as pc
        >>> schema = pc.Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}}})
        >>> print(schema.to_toml().splitlines()[-1])
        upper = 100
        """
        return toml_of(self)


def _largest_square(column: Column) -> Fraction:
    """The most that a column adds to the squared norm of a row before rows are clipped."""
    if isinstance(column, Numeric) and column.scale is not None:
        return max(Fraction(column.reach) ** 2, Fraction(column.indicator))
    return _ONE


def _norm_bound(value: Any) -> Fraction:
    try:
        number = exact(value)
    except (ValueError, TypeError):
        number = Fraction(0)
    if not 0 < number < 2**500:
        raise ParameterError("E205", f"row_norm_bound must be a finite number above 0, got {brief(value)}.")
    return number
