"""Columns that matter more than others: they keep their weight in the norm of a row, and the others have half of it.

Noise follows the norm that rows may have, so a column that weighs less leaves less noise on the others, and has more
itself, seen from its own spread. The weights are public: they depend on names and on nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from privcov.errors import ParameterError
from privcov.models.formula import Formula
from privcov.releases.rounds import weight_in
from privcov.schema import Numeric, Schema
from privcov.schema.names import is_formula, quoted, split_names
from privcov.schema.weights import declared
from privcov.text.grammar import brief

_MOST = 400
"""Characters of the list on a certificate."""


def emphasis_of(given: str | Sequence[str] | None, schema: Schema) -> tuple[str, ...]:
    """The columns that a list of names, a text of them or a formula puts first, in the order of the schema.

    >>> schema = Schema.from_dict({"columns": {name: {"lower": 0, "upper": 1} for name in ("age", "educ", "income")}})
    >>> emphasis_of("income ~ age", schema), emphasis_of("educ, age", schema), emphasis_of(None, schema)
    (('age', 'income'), ('age', 'educ'), ())
    """
    if given is None:
        return ()
    if isinstance(given, str) and is_formula(given):
        named = set(Formula.parse(given, schema).columns(schema))
    else:
        named = set(split_names(given)) if isinstance(given, str) else set(given)
    columns = {column.name: column for column in declared(schema)}
    if strange := sorted(map(str, named - set(columns))):
        raise ParameterError(
            "E219", f"the emphasis names {brief(strange[0])}, which the schema does not have."
        )
    if not any(isinstance(columns[name], Numeric) for name in named):
        raise ParameterError(
            "E219", "an emphasis must name a numeric column: a level always has the weight 1."
        )
    found = tuple(name for name in columns if name in named)
    if len(", ".join(map(quoted, found))) > _MOST:
        raise ParameterError("E219", f"the names of an emphasis have at most {_MOST} characters together.")
    return found


def emphasised(schema: Schema, emphasis: tuple[str, ...]) -> Schema:
    """The declared frame with an emphasis: cells of the other numeric columns reach half as far."""

    def weighed(column: Numeric) -> Numeric:
        unit = column.half_width / column.reach
        return replace(column, scale=unit / weight_in(emphasis, column))

    return replace(
        schema,
        columns=tuple(
            weighed(c)
            if isinstance(c, Numeric) and weight_in(emphasis, c) != 1 and c.name != schema.weight
            else c
            for c in schema.columns
        ),
    )
