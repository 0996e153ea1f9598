"""Contradictions in a schema and their refusals, one concept after the other.

Each looks at a schema whose words are in place and raises, or returns nothing. What a word turns into is settled where
the schema is made (``schema.py``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from privcov.errors import InputError, ParameterError
from privcov.linalg.triangle import is_wide
from privcov.privacy import exact
from privcov.schema.columns import Categorical, Column, Numeric
from privcov.schema.dialect import number
from privcov.schema.names import check_name, quoted
from privcov.schema.toml import toml_value
from privcov.text.grammar import brief

if TYPE_CHECKING:
    from privcov.schema.schema import Schema


def no_column(*, read: bool) -> InputError:
    """That there is nothing to release; where columns are ``read`` all the same, each says that it is no feature."""
    if read:
        return InputError(
            "E122",
            "the schema releases no column: every column that it declares has feature = false.",
            'Derive a column under [derived], such as year = "year(admitted)", or leave feature out of one.',
        )
    return InputError("E122", "the schema declares no column.", "Add a [columns.NAME] table.")


def check_exhaustive(schema: Schema) -> None:
    """Refuse levels that would not add up to an intercept."""
    if not schema.exhaustive:
        return
    first = schema.exhaustive[0]
    if not schema.intercept:
        raise InputError(
            "E167",
            f"column {first.name} is exhaustive, and the schema has no intercept that its levels could add up to.",
            "Set intercept = true, or leave exhaustive out.",
        )
    if is_wide(schema.dimension):
        raise InputError(
            "E168",
            f"exhaustive levels are for at most 1,447 columns in the release; there are {schema.dimension:,}.",
            "Leave exhaustive out, or release fewer columns.",
        )
    for column in schema.exhaustive:
        if schema.rule(column) in ("midpoint", "none"):
            raise InputError(
                "E169",
                f"column {column.name} is exhaustive, but does not say which level a cell with none of its levels "
                "counts as.",
                f'Add otherwise = {toml_value(column.levels[-1])}, or another level; or missing = "indicator" or '
                '"zero-row".',
            )


def check_person(schema: Schema) -> None:
    """Refuse what cannot be said of persons together."""
    if schema.person is not None:
        if any(column.name == schema.person for column in schema.columns):
            raise InputError(
                "E147",
                f"{schema.person} is named as the person's id, and is declared as a column too.",
                f"Take [columns.{schema.person}] out: an id is never released.",
            )
        if schema.file.constant:
            raise InputError(
                "E183",
                'person cannot be combined with timing = "constant": the time to gather rows by person '
                "depends on them.",
                "Leave one of the two out.",
            )
    if not isinstance(schema.enforced, bool) or (schema.per_person is not None and not schema.enforced):
        raise InputError(
            "E148",
            "per_person needs person, the column with the person's id.",
            'Add person = "NAME", or leave per_person out.',
        )
    if schema.per_person not in (None, "mean", "sum"):
        raise InputError("E148", f"per_person must be 'mean' or 'sum', got {brief(schema.per_person)}.")
    if schema.per_person is not None and schema.max_rows_per_person != 1:
        raise InputError(
            "E149",
            f"per_person = {schema.per_person!r} makes one row of each person, but max_rows_per_person is "
            f"{schema.max_rows_per_person}.",
            "Leave one of the two out.",
        )


def check_sources(schema: Schema, given: tuple[Column, ...]) -> None:
    """Refuse columns of the table that those of the release are not made of."""
    kinds = {column.name: type(column) for column in given}
    if len(kinds) < len(given) or any(column.expression is not None for column in given):
        raise InputError(
            "E176",
            "the columns of the table hold one that is declared twice, or one that is derived.",
            "Rename it.",
        )
    for column in schema.columns:
        if column.expression is not None:
            continue
        if kinds.get(column.name) is not type(column) or (isinstance(column, Numeric) and column.date):
            raise InputError(
                "E178",
                f"column {column.name} is a date, or is not among the columns of the table.",
                "Dates are read for derived columns alone: feature = false.",
            )
    if schema.recipe is None:
        return
    for column in schema.columns:
        if column.expression is None:
            continue
        found = schema.recipe.ranges[column.name]
        if column.name in kinds or (found.levels != getattr(column, "levels", ())):
            raise InputError(
                "E176",
                f"the derived column {column.name} has the name of another column, or levels that its "
                "expression does not give.",
                "Rename it.",
            )


def check_marks(schema: Schema, column: Column) -> None:
    """Refuse a text that is one number in this schema and another, or none, in the file it describes."""
    levels = column.levels if isinstance(column, Categorical) and column.numbers is not None else ()
    for text in (*levels, *(column.missing_values or ())):
        if isinstance(text, str) and number(text) != number(text, schema.file):
            raise InputError(
                "E143",
                f"column {column.name}: {text!r} is another number with the decimal and thousands marks of [file].",
                "Write it as a number, without quotes and with a decimal point.",
            )


def check_features(schema: Schema) -> None:
    """Refuse columns that a name typed by an analyst could not tell apart: ``sex[F]``, and level F of ``sex``."""
    grouped = [column.name for column in schema.columns if isinstance(column, Categorical)]
    names = Counter([*(feature.name for feature in schema.features), *grouped])
    if twice := [name for name, times in names.items() if times > 1]:
        raise InputError(
            "E160",
            f"two columns of the release would be named {twice[0]}: a column, and a level of another column.",
            "Rename the column.",
        )


def check_weighted(schema: Schema) -> None:
    """Refuse weights where nothing would carry them."""
    if schema.weight is not None and not (schema.intercept and schema.keeps_indicators):
        raise InputError(
            "E198",
            "a weight needs an intercept that no row_norm_bound shortens.",
            "Write intercept = true, and a larger row_norm_bound or none.",
        )
    if schema.weight is not None and schema.per_person is not None:
        raise InputError(
            "E198",
            f"per_person = {schema.per_person!r} makes one row of several rows, and the weight of that row is "
            "not defined.",
            "Leave per_person or the weight out.",
        )


def names_left_out(given: object, declared: Sequence[str]) -> tuple[str, ...]:
    """Names that are known and not declared, each once."""
    if not isinstance(given, list | tuple):
        raise InputError("E122", "left_out must be a list of column names.")
    names = tuple(dict.fromkeys(check_name(name) for name in given))
    if both := [name for name in names if name in set(declared)]:
        raise InputError(
            "E122", f"column {quoted(both[0])} is declared and also left out.", "Keep one of the two."
        )
    return names


def norm_bound(value: Any) -> Fraction:
    try:
        number = exact(value)
    except (ValueError, TypeError):
        number = Fraction(0)
    if not 0 < number < 2**500:
        raise ParameterError("E205", f"row_norm_bound must be a finite number above 0, got {brief(value)}.")
    return number
