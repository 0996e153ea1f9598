"""Rows as estimators are given them: X, y and weights into one table, and new rows into the columns of a release.

What is fitted goes to ``privcov.release`` as it is, and a target or a weight becomes one more of its columns. New rows
go through the readers, the missing values, the levels and the derived expressions of the same schema. Nothing of them
is clipped but what derived columns are made of.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.utils.validation import check_consistent_length, column_or_1d

from privcov.errors import InputError, ParameterError, without_reasons
from privcov.linalg.arrays import Floats
from privcov.models.selection import unknown_level
from privcov.schema import Categorical, Column, Numeric, Schema
from privcov.schema.names import canonical, quoted
from privcov.schema.weights import declared
from privcov.table import open_table
from privcov.table.blocks import Block
from privcov.table.cells import UNKNOWN
from privcov.table.frames import object_cells

_TRIED, _MOST_TRIED, _REPEATED = 4_096, 400, 1e-9
"""Made-up rows, columns of a matrix that is asked, and the share of a column's length that is no length of its own."""


def check_numeric(array: NDArray[Any], name: str) -> NDArray[Any]:
    """The array, if its type is one of numbers or of objects, whose cells are judged one at a time."""
    if array.dtype.kind in "fiubO":
        return array
    raise InputError(
        "E110",
        f"{name} has the type {array.dtype.name}, which is not a real number type.",
        "Convert it to float64.",
    )


def one_dimensional(cells: Any, rows: Any, name: str) -> NDArray[Any] | None:
    """A column beside X as an array, one cell for each row, no value looked at; None where there is none."""
    if cells is None:
        return None
    if isinstance(rows, str | os.PathLike) or not any(hasattr(rows, has) for has in ("__len__", "__array__")):
        raise _apart(rows, name)
    if isinstance(cells, list | tuple):  # else NumPy would choose a type from the values
        cells = np.array(cells, dtype=object)
    column = check_numeric(column_or_1d(cells, warn=name == "y"), name)
    check_consistent_length(rows, column)
    return column


def numbers(table: NDArray[Any], columns: tuple[Column, ...]) -> Floats:
    """Every cell as a number; one that is none becomes NaN, which is missing."""
    with np.errstate(all="ignore"):  # a warning would tell that a value is huge
        if table.dtype.kind != "O":
            return np.asarray(table, dtype=np.float64)
        made = [object_cells(column, table[:, place]) for place, column in enumerate(columns)]
    return np.column_stack(made)


def with_column(rows: Any, column: Column, cells: NDArray[Any], schema: Schema, word: str) -> Any:
    """The rows with one more column: a target or a weight, which scikit-learn hands over by itself.

    >>> table = pa.table({"age": [40.0, 50.0]})
    >>> income = Numeric(name="income", lower=0, upper=100)
    >>> made = with_column(table, income, np.array([30, "?"], dtype=object), Schema(columns=(income,)), "y")
    >>> made["income"].to_pylist()
    [30.0, nan]
    """
    made = without_reasons(lambda: numbers(cells[:, None], (column,))[:, 0])
    if isinstance(rows, np.ndarray):
        place = [other.name for other in schema.read_columns].index(column.name)
        masked = isinstance(rows, np.ma.MaskedArray)
        whole = np.ma.filled(rows.astype(np.float64), np.nan) if masked else rows
        return np.column_stack([whole[:, :place], made, whole[:, place:]])
    library = type(rows).__module__.partition(".")[0]
    if not isinstance(rows, pa.Table) and library not in ("pandas", "polars"):
        raise _apart(rows, word)
    names = rows.column_names if isinstance(rows, pa.Table) else rows.columns
    if column.name in map(canonical, map(str, names)):
        raise ParameterError(
            "E229",
            f"the column {quoted(column.name)} is in X, and is given as {word} too.",
            f"Take it out of X, or leave {word} out.",
        )
    if isinstance(rows, pa.Table):
        return rows.append_column(column.name, pa.array(made))
    if library == "pandas":
        return rows.assign(**{column.name: made})
    import polars

    return rows.with_columns(polars.Series(column.name, made))


def _apart(rows: Any, word: str) -> ParameterError:
    return ParameterError(
        "E229",
        f"{word} cannot be added to a {type(rows).__name__}.",
        f"Leave {word} out where the table has that column itself, or give an array, a frame or an Arrow table.",
    )


def as_table(rows: Any) -> Any:
    """Rows as readers take them: what scikit-learn's users write as lists is an array, and all else is itself.

    Each cell of a list is judged alone, since NumPy would choose one type for all from the values.

    >>> as_table([[40, True], ["x", 2**64]]).tolist()
    [[40.0, 1.0], [nan, 1.8446744073709552e+19]]
    """
    if not isinstance(rows, list | tuple) or any(isinstance(row, str | os.PathLike) for row in rows):
        return rows
    table = np.array(rows, dtype=object)
    plain = Numeric(name="cell", lower=0, upper=1)
    return without_reasons(lambda: numbers(table, (plain,) * table.shape[1])) if table.ndim == 2 else table


def design_of(schema: Schema, target: str | None) -> Schema:
    """The schema of new rows: without target, weight and persons. They may have any further columns."""
    kept = schema if target is None else schema.without([target])
    return replace(
        kept.by_rows(),
        columns=declared(kept),
        sources=tuple(column for column in kept.sources if column.name != kept.weight),
        weight=None,
        largest_weight=None,
        weight_power=Fraction(1),
        row_norm_bound=None,
        left_out=(),
        ignore_extra=True,
    )


def features_of(rows: Any, design: Schema, centres: Mapping[str, float]) -> Floats:
    """New rows as the columns of a release but for its intercept, in original units; levels are 0 or 1.

    >>> columns = {"age": {"lower": 0, "upper": 100}, "sex": {"levels": ["F", "M"]}}
    >>> design = Schema.from_dict({"columns": columns, "derived": {"old": "age >= 65"}})
    >>> features_of(pa.table({"age": [70.0, None], "sex": ["M", "F"]}), design, {"age": 50.0, "old": 0.5}).tolist()
    [[70.0, 0.0, 1.0, 1.0], [50.0, 1.0, 0.0, 0.5]]
    """
    blocks = [_features(block, design, centres) for block in open_table(as_table(rows), design).blocks()]
    width = len(design.features) - design.intercept
    return np.concatenate(blocks) if blocks else np.empty((0, width))


def _features(block: Block, design: Schema, centres: Mapping[str, float]) -> Floats:
    made: list[NDArray[Any]] = []
    for column, cells in zip(design.columns, block, strict=True):
        missing = ~np.isfinite(cells)
        if isinstance(column, Categorical):
            codes, missing = _codes(column, cells, design)
            made += [codes == place for place in range(len(column.levels))]
        else:
            made.append(np.where(missing, _instead(column, centres), cells))
        if design.rule(column) == "zero-row" and missing.any():
            raise ParameterError(
                "E288",
                f"new rows have a missing cell in column {quoted(column.name)}, and the schema leaves such rows out.",
                "Leave them out here too, or fill the cell.",
            )
        if column.indicator:
            made.append(missing)
    return np.stack(made, axis=1).astype(np.float64)


def _instead(column: Numeric, centres: Mapping[str, float]) -> float:
    return centres[column.name] if column.fill is None else column.fill


def _codes(column: Categorical, cells: Floats, design: Schema) -> tuple[Floats, NDArray[np.bool_]]:
    """The places of levels, -1 for none, and which cells are missing; as a release counts them."""
    unknown, missing = cells == UNKNOWN, ~np.isfinite(cells)
    if column.otherwise is not None:
        cells = np.where(unknown, float(column.levels.index(column.otherwise)), cells)
    elif column.exhaustive:
        missing = missing | unknown
    elif unknown.any():
        raise unknown_level(column)
    filled = design.filled(column)
    place = UNKNOWN if filled is None else float(column.levels.index(filled))
    return np.where(missing, place, cells), missing


def repeated(design: Schema) -> str | None:
    """A column that those before it determine in every row, as made-up rows over the declared ranges show; else None.

    Only derived columns can be such: a first polynomial beside the column itself, a threshold beside a cut there.

    >>> columns = {"age": {"lower": 0, "upper": 100}, "educ": {"lower": 0, "upper": 20}}
    >>> repeated(Schema.from_dict({"columns": columns, "derived": {"age_p": "poly(age, 2)"}}))
    'age_p_1'
    >>> repeated(Schema.from_dict({"columns": columns, "derived": {"both": "age * educ"}})) is None
    True
    """
    if design.recipe is None or not design.dimension <= _MOST_TRIED:
        return None
    steps = np.arange(1, _TRIED + 1) * 0.5
    # 4 k + 6 is no square, so its root is not rational, and multiples of it fill the range.
    spread = [np.modf(steps * np.sqrt(4 * place + 6))[0] for place in range(len(design.sources))]
    cells = [
        np.floor(share * len(column.levels))
        if isinstance(column, Categorical)
        else column.lower + share * (column.upper - column.lower)
        for column, share in zip(design.sources, spread, strict=True)
    ]
    derived, own = (
        iter(design.recipe.derived(cells)),
        {c.name: v for c, v in zip(design.sources, cells, strict=True)},
    )
    block = [own[c.name] if c.expression is None else next(derived) for c in design.columns]
    with_value = np.all(np.isfinite(block), axis=0)
    rows = _features([cells[with_value] for cells in block], design, {c.name: 0.0 for c in design.columns})
    kept = np.array([feature.name for feature in design.features if feature.kind != "intercept"])
    first = {f"{c.name}[{c.levels[0]}]" for c in design.columns if isinstance(c, Categorical)}
    asked = np.flatnonzero((rows.std(axis=0) > 0) & ~np.isin(kept, list(first)))
    if len(rows) <= len(asked) + 1:
        return None
    centred = rows[:, asked] - rows[:, asked].mean(axis=0)
    left = np.abs(np.diag(np.linalg.qr(centred / np.linalg.norm(centred, axis=0), mode="r")))
    return str(kept[asked[np.argmax(left < _REPEATED)]]) if (left < _REPEATED).any() else None
