"""Part of a schema, and two of them together: what ``Schema.subset``, ``without`` and ``merged`` do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from privcov.errors import InputError
from privcov.schema.columns import Column, Numeric
from privcov.schema.derived import Recipe
from privcov.schema.names import canonical, listed, quoted
from privcov.schema.weights import declared
from privcov.text.grammar import brief

if TYPE_CHECKING:
    from privcov.schema.schema import Schema

_OF_TABLE = (
    "intercept",
    "row_norm_bound",
    "missing",
    "missing_values",
    "max_rows_per_person",
    "ignore_extra",
    "weight",
    "largest_weight",
    "weight_power",
    "file",
    "shape",
    "person",
    "per_person",
)
"""What a schema says of the whole table."""


def part_of(schema: Schema, names: Sequence[str]) -> Schema:
    """The schema of some of its columns."""
    kept = _known(schema, names)
    if not kept:
        raise InputError(
            "E191", "no column is left to be released.", "Keep at least one of the schema's columns."
        )
    columns = tuple(column for column in declared(schema) if column.name in kept)
    sources = read_for(schema, columns)
    read = {column.name for column in (*columns, *sources)}
    others = [column.name for column in schema.read_columns if column.name not in {*read, schema.weight}]
    return replace(schema, columns=columns, sources=sources, left_out=(*schema.left_out, *others), shape=None)


def rest_of(schema: Schema, names: Sequence[str]) -> Schema:
    """The schema of all but some of its columns."""
    dropped = _known(schema, names)
    return part_of(schema, [column.name for column in declared(schema) if column.name not in dropped])


def both(schema: Schema, other: Schema) -> Schema:
    """The schema of a table that has the columns of both."""
    for word in _OF_TABLE:
        if getattr(schema, word) != getattr(other, word):
            raise InputError(
                "E193",
                f"the schemas do not agree on {word}.",
                "Write the same in both: it is a setting of the whole table.",
            )
    mine = _joined(declared(schema), declared(other))
    sources = _joined(schema.read_columns, other.read_columns, released=mine)
    unread = dict.fromkeys(
        name for name in (*schema.left_out, *other.left_out) if name not in {**mine, **sources}
    )
    return replace(
        schema,
        columns=tuple(mine.values()),
        sources=tuple(sources.values()) if schema.sources or other.sources else (),
        left_out=tuple(unread),
    )


def _joined(
    first: Sequence[Column], second: Sequence[Column], released: Mapping[str, Column] | None = None
) -> dict[str, Column]:
    """The columns of both by name, where both say the same; of one that is ``released``, what one of them says."""
    found = {column.name: column for column in first}
    for column in second:
        known = found.setdefault(column.name, column)
        if released is not None and column.name in released:
            found[column.name] = released[column.name]
            known, column = _unreleased(known), _unreleased(column)
        if known != column:
            raise InputError(
                "E193",
                f"the schemas declare column {quoted(column.name)} in two ways.",
                "Write the same in both, or leave it out of one.",
            )
    return found


def read_for(schema: Schema, columns: tuple[Column, ...]) -> tuple[Column, ...]:
    """The columns of the table that some of the columns are made of; none where they are themselves."""
    expressions = tuple((c.name, c.expression) for c in columns if c.expression is not None)
    if not expressions:
        return ()
    needed = Recipe.of(schema.sources, expressions).reads
    kept = {column.name for column in columns}
    return tuple(
        column if column.name in kept else _unreleased(column)
        for place, column in enumerate(schema.sources)
        if column.name in kept or place in needed
    )


def _known(schema: Schema, names: Sequence[str]) -> set[str]:
    """The names in the form in which they are compared; refuses what is not declared, and what is there twice."""
    given = [canonical(str(name)) for name in ([names] if isinstance(names, str) else names)]
    known = {column.name for column in declared(schema)}
    hidden = {column.name for column in schema.read_columns} - known
    if unseen := [name for name in given if name in {*hidden, schema.weight, schema.person}]:
        name = quoted(unseen[0])
        role = {schema.weight: "the weight of the rows", schema.person: "the person's id"}
        raise InputError(
            "E190",
            f"column {brief(name)} is {role.get(unseen[0], 'read for derived columns alone')}, and cannot be "
            "chosen here.",
            f"Name some of {listed([column.name for column in declared(schema)])}; columns that these need are kept.",
        )
    if strange := [name for name in given if name not in known]:
        raise InputError(
            "E190",
            f"the schema has no column {brief(quoted(strange[0]))}.",
            f"It has {listed([column.name for column in declared(schema)])}.",
        )
    if twice := [name for name, times in Counter(given).items() if times > 1]:
        raise InputError("E192", f"column {quoted(twice[0])} is named twice.", "Name each column once.")
    return set(given)


def _unreleased(column: Column) -> Column:
    """A column that is read for derived ones alone: what is said of its feature goes."""
    column = replace(column, missing=None)
    return replace(column, centre=None, scale=None) if isinstance(column, Numeric) else column
