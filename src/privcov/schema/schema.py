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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from privcov.errors import InputError, ParameterError
from privcov.privacy import decimal_text
from privcov.schema.coherence import (
    check_exhaustive,
    check_features,
    check_marks,
    check_person,
    check_sources,
    check_weighted,
    names_left_out,
    no_column,
    norm_bound,
)
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
from privcov.schema.derived import Recipe
from privcov.schema.dialect import RFC_4180, Dialect
from privcov.schema.names import INTERCEPT, check_name, quoted
from privcov.schema.parts import both, part_of, rest_of
from privcov.schema.shape import Shape
from privcov.schema.toml import declarations, read_toml, toml_of, toml_value
from privcov.schema.weights import WEIGHT_SQUARE, checked_weight, declared, with_weight
from privcov.text.grammar import as_given, brief

__all__ = [
    "Categorical",
    "Column",
    "Feature",
    "Level",
    "MissingRule",
    "Numeric",
    "PerPerson",
    "Schema",
]

MAX_DIMENSION = 20_000
"""What a release of 200 million entries has; some mechanisms stop earlier (``Mechanism.most_columns``)."""
MissingRule = Literal["midpoint", "zero-row", "none"]
PerPerson = Literal["mean", "sum"]

_ONE = Fraction(1)
if TYPE_CHECKING:
    Coded = Categorical
else:
    Coded = Any  # what users meet is a column; that it is categorical is for the checker


@dataclass(frozen=True, kw_only=True)
class Schema:
    """The public facts about a table: columns in order, and the rules that turn any row into a bounded one.

    Write it from public knowledge, never from the data: a bound read off the data is a statistic of the data.
    Usually made by ``Schema.read`` from a TOML file or by ``Schema.from_dict``.

    Parameters
    ----------
    columns : tuple of Column
        The columns of the release, numeric with bounds or categorical with levels; those with an ``expression`` are
        derived, and stand behind the others.
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
        The most rows that one person has in the table. It multiplies the noise. With ``person`` it is enforced:
        a person's rows beyond it are dropped.
    ignore_extra : bool, default False
        Whether a table may have columns that are not declared.
    left_out : tuple of str, default ()
        Columns that a table may have although they are not declared: those that ``subset`` and ``without`` leave out.
    weight : str, optional
        The column that says how much a row counts, as survey weights do. It is in ``columns`` as the last one, where
        it stands for what a row counts.
    largest_weight : float, optional
        The largest weight, public: a larger one counts as this. Needed with ``weight``.
    weight_power : Fraction, float or str, default 1
        From 0 to 1: rows count as (weight / largest) to this power, so that a smaller one evens weights out.
    file : Dialect, default RFC_4180
        How a file of lines is read: separator, quotes, decimal mark, encoding. No frame and no release depends
        on it.
    shape : Shape, optional
        In a private frame: the linear map that numeric columns went through before rows were shortened and summed. No
        schema file has one.
    sources : tuple of Column, default ()
        The columns of the table as they were declared, where some columns are derived or some are read for derived
        ones alone; empty where all are ``columns`` themselves.
    person : str, optional
        The column with the person's id: texts or whole numbers. It is never a feature, and is not published.
    per_person : {"mean", "sum"}, optional
        Makes one row of all rows of a person: means of numeric cells within their bounds, or sums of numeric cells,
        and the level that most of the rows have. Only with ``person``.
    enforced : bool, default False
        Whether rows were gathered by person. It follows from ``person``; a release keeps it, and not the name.

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
    (Fraction(3, 1), Fraction(2, 1), True)
    >>> schema.largest_squared_norm == schema.squared_norm_bound == schema.largest_scaled_square
    True
    >>> schema.numbers, round(schema.longest_row, 3)
    ((1,), 1.732)
    >>> sex = {"levels": ["F", "M"], "exhaustive": True, "otherwise": "M"}
    >>> coded = pc.Schema.from_dict({"columns": {"sex": sex, "age": {"lower": 0, "upper": 100}}})
    >>> coded.dimension, coded.summed_dimension, coded.squared_norm_bound, coded.summed_numbers
    (4, 3, Fraction(5, 2), (2,))
    >>> [column.name for column in coded.exhaustive], coded.filled(coded.columns[0]), len(coded.summed)
    (['sex'], 'M', 3)
    >>> schema.rule(schema.columns[0]), schema.missing_words, schema.empties_rows, schema.number_indicators
    ('midpoint', 'midpoint', False, ())
    >>> schema.missing_advice[:55]
    'A missing number counts as the middle of its bounds, wh'
    >>> schema.person_words, schema.weight_words, schema.published() == schema
    ('Rows per person: at most 1, declared, not enforced.', '', True)
    >>> cost = {"cost": {"lower": 0, "upper": 9}}
    >>> visits = pc.Schema.from_dict({"columns": cost, "person": "id", "per_person": "sum"})
    >>> visits.person_words, visits.by_rows().person, visits.published().person, visits.published().enforced
    ("Rows per person: 1, enforced: the sum of the person's rows.", None, None, True)
    >>> more = pc.Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}}, "derived": {"age2": "age^2"}})
    >>> more.columns[1].upper, [column.name for column in more.read_columns], more.recipe is None
    (10000.0, ['age'], False)
    >>> more.derived_words, more.titles["age2"]
    ('Derived columns: 1.', 'age2')
    """

    columns: tuple[Column, ...]
    intercept: bool = True
    row_norm_bound: Fraction | None = None
    missing: MissingRule = "midpoint"
    missing_values: tuple[Code, ...] = ()
    max_rows_per_person: int = 1
    ignore_extra: bool = False
    left_out: tuple[str, ...] = ()
    weight: str | None = None
    largest_weight: float | None = None
    weight_power: Fraction = _ONE
    file: Dialect = RFC_4180
    shape: Shape | None = None
    sources: tuple[Column, ...] = ()
    person: str | None = None
    per_person: PerPerson | None = None
    enforced: bool = False

    @property
    def person_words(self) -> str:
        """How many rows a person may have, who sees to it, and what that means for the number of rows, in words."""
        if self.per_person is not None:
            return f"Rows per person: 1, enforced: the {self.per_person} of the person's rows."
        most = self.max_rows_per_person
        private = (
            " Another person may have more or fewer, so the number of rows is private." if most > 1 else ""
        )
        how = "enforced: a person's further rows are dropped" if self.enforced else "declared, not enforced"
        return f"Rows per person: at most {most}, {how}.{private}"

    def by_rows(self) -> Schema:
        """Return the schema of the same rows when nobody asks whose they are, for those who look at single rows.

        Returns
        -------
        Schema
            The schema without ``person``, for the same table.
        """
        if self.person is None:
            return self
        return replace(self, person=None, per_person=None, enforced=False, ignore_extra=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "missing_values", missing_codes(self.missing_values, "the schema"))
        in_order: tuple[Column, ...] = tuple(
            sorted(self.columns, key=lambda column: column.expression is not None)
        )
        if weighed := checked_weight(self.weight, self.largest_weight, self.weight_power):
            for word, value in zip(("weight", "largest_weight", "weight_power"), weighed, strict=True):
                object.__setattr__(self, word, value)
            in_order = with_weight(in_order, weighed[0], weighed[1])
            if self.sources:
                object.__setattr__(self, "sources", with_weight(self.sources, weighed[0], weighed[1]))
        object.__setattr__(self, "columns", tuple(self._settled(column) for column in in_order))
        names = [column.name for column in self.columns]
        if twice := [name for name, times in Counter(names).items() if times > 1]:
            raise InputError("E103", f"column {twice[0]} is declared twice.")
        given = tuple(self._settled(column) for column in self.sources)
        given = given or tuple(column for column in self.columns if column.expression is None)
        same = [column.name for column in given] == names
        object.__setattr__(self, "sources", () if same else given)
        check_sources(self, given)
        if self.shape is not None and self.shape.columns != len(self.numbers):
            raise ParameterError("E205", "a shape has one row for each numeric column.")
        if not declared(self):
            raise no_column(read=any(column.name != self.weight for column in given))
        if self.row_norm_bound is not None:
            bound = norm_bound(self.row_norm_bound)
            no_row_exceeds_it = bound**2 >= self.largest_squared_norm
            object.__setattr__(self, "row_norm_bound", None if no_row_exceeds_it else bound)
        if self.missing not in get_args(MissingRule):
            raise InputError(
                "E122", f"missing must be 'midpoint', 'zero-row' or 'none', got {brief(self.missing)}."
            )
        for word in ("intercept", "ignore_extra"):
            if not isinstance(getattr(self, word), bool):
                raise InputError("E122", f"{word} must be true or false, got {brief(getattr(self, word))}.")
        object.__setattr__(self, "left_out", names_left_out(self.left_out, names))
        rows = self.max_rows_per_person
        if isinstance(rows, bool) or not isinstance(rows, int) or not 1 <= rows <= 10**6:
            raise ParameterError(
                "E205",
                f"max_rows_per_person must be a whole number from 1 to 1,000,000, got {as_given(rows)}.",
                "Write a whole number without quotes.",
            )
        if self.person is not None:
            object.__setattr__(self, "person", check_name(self.person))
            object.__setattr__(self, "enforced", True)
        check_person(self)
        if self.dimension > MAX_DIMENSION:
            raise InputError(
                "E113",
                f"the released matrix would have {self.dimension} columns; at most {MAX_DIMENSION:,} are possible.",
            )
        if not self.file.plain_numbers:
            for column in self.read_columns:
                check_marks(self, column)
        check_exhaustive(self)
        check_features(self)
        check_weighted(self)

    @property
    def weight_words(self) -> str:
        """What a row counts as, in a sentence; empty where every row counts as one."""
        if self.weight is None:
            return ""
        power = "" if self.weight_power == 1 else f", to the power {decimal_text(self.weight_power)}"
        return (
            f"Rows are weighted by {quoted(self.weight)}, at most {self.largest_weight:g}{power}. A row without a "
            "weight above 0 does not count."
        )

    @property
    def read_columns(self) -> tuple[Column, ...]:
        """The columns that a table must have, with the bounds that were declared."""
        return self.sources or self.columns

    @cached_property
    def recipe(self) -> Recipe | None:
        """How derived columns are made of the cells of a row; None where the table has the columns of the release."""
        if not self.sources:
            return None
        derived = [
            (column.name, column.expression) for column in self.columns if column.expression is not None
        ]
        return Recipe.of(self.sources, tuple(derived))

    @property
    def derived_words(self) -> str:
        """How many columns are derived, and which are read for them alone, in words; empty where none is either."""
        if self.recipe is None:
            return ""
        released, used = {column.name for column in self.columns}, self.recipe.reads
        unseen = [
            (column.name, place in used)
            for place, column in enumerate(self.sources)
            if column.name not in released
        ]
        words = [f"Derived columns: {sum(column.expression is not None for column in self.columns)}."]
        if alone := [name for name, needed in unseen if needed]:
            words.append(f"Read for them alone: {', '.join(alone)}.")
        if idle := [name for name, needed in unseen if not needed]:
            words.append(
                f"Read and not released: {', '.join(idle)}. "
                "Declare a derived column of each under [derived], or leave it out."
            )
        return " ".join(words)

    def _settled(self, column: Column) -> Column:
        """The column with the missing values it has, its own or the table's, and a rule only where it is its own."""
        codes = self.missing_values if column.missing_values is None else column.missing_values
        codes = () if column.expression is not None else codes
        kept = codes or (() if self.missing_values else None)
        rule = None if column.missing == self.missing else column.missing
        if (kept, rule) == (column.missing_values, column.missing):
            return column
        return replace(column, missing_values=kept, missing=rule)

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        """The columns of the released matrix, intercept first, then in declared order, a level at a time."""
        made = [Feature(name=INTERCEPT, kind="intercept")] if self.intercept else []
        for column in self.columns:
            called = f"{column.title}: " if column.label or column.unit else ""
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
                        label=called and column.title,
                    )
                )
            else:
                made += [
                    Feature(
                        name=f"{column.name}[{level}]",
                        kind="level",
                        column=column.name,
                        level=level,
                        label=called and f"{called}{level}",
                    )
                    for level in column.levels
                ]
            if column.indicator:
                made.append(
                    Feature(
                        name=f"{column.name}[missing]",
                        kind="missing",
                        column=column.name,
                        label=called and f"{called}missing",
                    )
                )
        return tuple(made)

    @property
    def titles(self) -> dict[str, str]:
        """What people call the columns of the released matrix, by name; a label with its unit, or the name."""
        return {feature.name: feature.title for feature in self.features}

    @cached_property
    def summed(self) -> tuple[Feature, ...]:
        """The columns that are summed, which are the features, but for coordinates in place of exhaustive levels."""
        coded = {column.name: column.summed_width for column in self.exhaustive}
        made: list[Feature] = []
        for name, own in groupby(self.features, key=lambda feature: feature.column):
            count = coded.get(name, 0)
            made += [Feature(name=f"{name}:{i}", kind="coordinate", column=name) for i in range(count)] or own
        return tuple(made)

    @cached_property
    def exhaustive(self) -> tuple[Coded, ...]:
        """The columns whose levels add up to the intercept."""
        return tuple(c for c in self.columns if isinstance(c, Categorical) and c.exhaustive)

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """The features that are numeric columns."""
        return tuple(place for place, feature in enumerate(self.features) if feature.kind == "numeric")

    @cached_property
    def summed_numbers(self) -> tuple[int, ...]:
        """The same among the columns that are summed."""
        return tuple(place for place, feature in enumerate(self.summed) if feature.kind == "numeric")

    @cached_property
    def number_indicators(self) -> tuple[int, ...]:
        """Of the columns that are summed, those that say where a number is missing; it stands before, and is 0."""
        numeric = {column.name for column in self.columns if isinstance(column, Numeric)}
        return tuple(
            place
            for place, feature in enumerate(self.summed)
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
        return "fill" if self.filled(column) is not None else column.missing or self.missing

    def filled(self, column: Column) -> Level | None:
        """Return what a missing cell of a column counts as, where the schema names it.

        Parameters
        ----------
        column : Column
            One of ``columns``.

        Returns
        -------
        str, int, float or None
            The fill, in the column's own units. Of an exhaustive column without another rule: ``otherwise``.
        """
        if column.fill is None and isinstance(column, Categorical):
            plain = (column.missing or self.missing) in ("midpoint", "none")
            return column.otherwise if plain else None
        return column.fill

    @cached_property
    def empties_rows(self) -> bool:
        """Whether some cell, where it is missing, makes its whole row count as zeros."""
        return any(self.rule(column) == "zero-row" for column in self.columns)

    @property
    def missing_words(self) -> str:
        """What missing cells count as; first the rule of the table, then the columns that have their own."""
        own = [
            f"{column.name}: {column.missing if filled is None else f'counts as {toml_value(filled)}'}"
            for column in self.columns
            if (filled := self.filled(column)) is not None or column.missing is not None
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
    def summed_dimension(self) -> int:
        """The number of columns that are summed, without those that exhaustive levels save."""
        return self.intercept + sum(column.summed_width for column in self.columns)

    @property
    def fixed_squared_norm(self) -> Fraction:
        """The most that the intercept, the indicators and the weight of one row add to its squared norm, scaled."""
        fixed = self.intercept + sum(
            (
                column.squared_norm if isinstance(column, Categorical) else Fraction(column.indicator)
                for column in self.columns
            ),
            start=Fraction(0),
        )
        return fixed if self.weight is None else fixed + WEIGHT_SQUARE

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

        The intercept contributes one, and so does a categorical column, which has one indicator at most; an exhaustive
        one with G levels contributes 1 − 1/G. A numeric
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
            The same columns and rules, without missing values, without a dialect and without the name of an id
            column; that persons were told apart stays.
        """
        columns, sources = self.columns, self.sources
        if any(column.missing_values is not None for column in (*columns, *sources)):
            columns, sources = (
                tuple(replace(column, missing_values=None) for column in some) for some in (columns, sources)
            )
        return replace(
            self,
            columns=columns,
            sources=sources,
            missing_values=(),
            ignore_extra=False,
            left_out=(),
            file=RFC_4180,
            person=None,
        )

    def subset(self, names: Sequence[str]) -> Schema:
        """Return the schema of some of the columns; a table may have the others, and they are not read.

        Fewer columns have a shorter row, so those that stay have less noise: ``privcov schema explain``.

        Parameters
        ----------
        names : sequence of str
            The columns that stay, at least one, each once. They stay in the order in which they are declared.

        Returns
        -------
        Schema
            The same declarations for these columns alone, in the bounds that they were declared with: a shape, which
            belongs to all columns of one release, is left behind.

        Raises
        ------
        InputError
            A name is not declared (E190), is there twice (E192), or there is none (E191).

        Examples
        --------
        >>> import privcov as pc
        >>> columns = {"age": {"lower": 0, "upper": 100}, "sex": {"levels": ["F", "M"]}}
        >>> part = pc.Schema.from_dict({"columns": columns}).subset(["age"])
        >>> [feature.name for feature in part.features], part.left_out
        (['(Intercept)', 'age'], ('sex',))
        """
        return part_of(self, names)

    def without(self, names: Sequence[str]) -> Schema:
        """Return the schema without some of the columns: ``subset`` of all others.

        Parameters
        ----------
        names : sequence of str
            The columns to leave out, each once.

        Returns
        -------
        Schema
            The same declarations for the other columns; a table may have these, and they are not read.

        Raises
        ------
        InputError
            A name is not declared (E190), is there twice (E192), or no column would be left (E191).

        Examples
        --------
        >>> import privcov as pc
        >>> columns = {"age": {"lower": 0, "upper": 100}, "sex": {"levels": ["F", "M"]}}
        >>> pc.Schema.from_dict({"columns": columns}).without(["sex"]).dimension
        2
        """
        return rest_of(self, names)

    def merged(self, other: Schema) -> Schema:
        """Return the schema of a table that has the columns of both: first these, then what the other adds.

        Parameters
        ----------
        other : Schema
            What it says of the table, and of columns that both declare, must be the same.

        Returns
        -------
        Schema
            All columns of both. What one leaves out and the other declares is declared.

        Raises
        ------
        InputError
            The two contradict each other (E193).

        Examples
        --------
        >>> import privcov as pc
        >>> first = pc.Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}}})
        >>> second = pc.Schema.from_dict({"columns": {"sex": {"levels": ["F", "M"]}}})
        >>> [column.name for column in first.merged(second).columns]
        ['age', 'sex']
        """
        return both(self, other)

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
    if isinstance(column, Categorical):
        return column.squared_norm
    return _ONE if column.scale is None else max(Fraction(column.reach) ** 2, Fraction(column.indicator))
