"""Survey weights: how much each row counts, by a column of the table, with a public largest weight.

A row z counts as u = (w / W)^p, where w is its weight, W the largest and p the power; so it enters the sum as √u · z.
Row-local and total: a weight that is missing, no finite number, zero or below counts as 0, one above W as W. Beside
the declared columns the matrix has the weight itself, as z = u − ½: with the intercept it gives Σu², from which the
effective number of rows follows. Proof: docs/proofs/weights.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

from privcov.errors import InputError
from privcov.privacy import exact
from privcov.schema.columns import Column, Numeric
from privcov.schema.names import check_name, quoted
from privcov.text.grammar import as_given, brief

if TYPE_CHECKING:
    from privcov.schema.schema import Schema

WEIGHT_SQUARE = Fraction(1, 4)
"""What the weight itself adds to the squared norm of a row at most: u − ½ is between −½ and ½."""
_USUAL = 0.25
"""A weight over the largest one. Public: only the radius of a private frame follows from it."""
_BITS = 20
"""Half of a power is a multiple of 2^-BITS, so that a power is a product of square roots, which every machine rounds
in one way."""

Cells = TypeVar("Cells")


def checked_weight(name: object, largest: object, power: object) -> tuple[str, float, Fraction] | None:
    """The column, the largest weight and the power; None where rows are not weighted."""
    if name is None:
        if largest is not None or power != 1:
            raise InputError(
                "E196", "largest_weight and weight_power need a weight.", 'Write weight = "NAME" too.'
            )
        return None
    column = check_name(name)
    if largest is None:
        raise InputError(
            "E196",
            f"the weight {quoted(column)} has no largest weight.",
            "Write largest_weight = NUMBER, from public knowledge: how the sample was drawn, never the data.",
        )
    try:
        most = math.nan if isinstance(largest, bool | str) else float(largest)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        most = math.nan
    if not 1e-100 <= most <= 1e100:
        raise InputError(
            "E196",
            f"largest_weight must be a finite number above 0, got {as_given(largest)}.",
            "Write a number without quotes.",
        )
    return column, most, _checked_power(power)


def _checked_power(power: Any) -> Fraction:
    try:
        given = exact(power)
    except (ValueError, TypeError, ZeroDivisionError):
        given = Fraction(-1)
    if not 0 <= given <= 1:
        raise InputError("E196", f"weight_power must be a number from 0 to 1, got {brief(power)}.")
    return given


def with_weight(columns: Sequence[Column], name: str, largest: float) -> tuple[Column, ...]:
    """The columns with the weight as the last one; refuses another column of its name."""
    own = Numeric(name=name, lower=0.0, upper=largest, scale=largest, label="what a row counts as")
    for column in columns:
        if column.name == name and not _is_weight(column, own):
            raise InputError("E197", f"column {quoted(name)} is the weight and also a column of its own.")
    return (*(column for column in columns if column.name != name), own)


def _is_weight(column: Column, own: Numeric) -> bool:
    return isinstance(column, Numeric) and all(
        getattr(column, word) == getattr(own, word) for word in ("lower", "upper", "centre", "scale", "fill")
    )


def declared(schema: Schema) -> tuple[Column, ...]:
    """The columns of a schema but for the weight: those that its file has tables for."""
    return tuple(column for column in schema.columns if column.name != schema.weight)


def unweighted(schema: Schema) -> Schema:
    """The schema of the same rows where each counts as one: what reads them passes the weight over."""
    if schema.weight is None:
        return schema
    plain: dict[str, Any] = {"weight": None, "largest_weight": None, "weight_power": Fraction(1)}
    sources = tuple(column for column in schema.sources if column.name != schema.weight)
    left_out = (*schema.left_out, schema.weight)
    return replace(schema, columns=declared(schema), sources=sources, left_out=left_out, **plain)


def usual_share(schema: Schema) -> float:
    """What a row counts as on average, as a public guess: a quarter of the largest weight, evened out; 1 without.

    >>> from privcov.schema import Schema
    >>> usual_share(Schema.from_dict({"columns": {"x": {"lower": 0, "upper": 1}}, "weight": "w", "largest_weight": 9}))
    0.25
    """
    return 1.0 if schema.weight is None else _USUAL ** float(schema.weight_power)


def root(share: Cells, power: Fraction, sqrt: Callable[[Cells], Cells]) -> Cells | None:
    """√(share^power) of shares from 0 to 1, by square roots and products alone; None where it is 1 for all.

    Each is a number of at most 1, rounded once, so the same on every machine and at most 1.

    >>> root(0.25, Fraction(1), math.sqrt), root(0.0625, Fraction(1, 2), math.sqrt), root(0.5, Fraction(0), math.sqrt)
    (0.5, 0.5, None)
    """
    halves = round(power / 2 * 2**_BITS)
    made: Any = None
    part: Any = share
    for bit in range(1, _BITS + 1):
        part = sqrt(part)
        if halves >> (_BITS - bit) & 1:
            made = part if made is None else made * part
        if not halves & ((1 << (_BITS - bit)) - 1):
            break
    return made
