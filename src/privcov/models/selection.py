"""Columns picked by name from a release, and new rows read against them.

A name is a declared column (``age``; a categorical one stands for all its indicators) or one column of the
matrix (``sex[F]``). New rows come in original units, with the indicators 0 or 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcov.errors import ParameterError
from privcov.linalg.arrays import Floats
from privcov.releases.release import Release
from privcov.schema import Categorical, Column, Schema
from privcov.schema.columns import Feature
from privcov.schema.derived import Recipe
from privcov.schema.dialect import meaning, moment, number
from privcov.schema.names import canonical

NO_VARIANCE = 1e-5  # of a scaled column; repair itself leaves about a tenth of it to a constant one


def target_place(schema: Schema, target: str) -> int:
    """The place of the one column of the matrix that a target names.

    >>> schema = Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 1}, "sex": {"levels": ["F", "M"]}}})
    >>> target_place(schema, "age"), target_place(schema, "sex[M]")
    (1, 3)
    """
    found = _places(schema, target)
    if len(found) > 1:
        names = ", ".join(schema.features[place].name for place in found[:4])
        raise ParameterError("E250", f"the target {target} is categorical.", f"Name one level: {names}.")
    return found[0]


def explaining(schema: Schema) -> tuple[int, ...]:
    """Places of the columns that say something of a person: all but the intercept, and what a row counts as."""
    return tuple(
        place
        for place, feature in enumerate(schema.features)
        if feature.kind != "intercept" and feature.column != schema.weight
    )


def feature_places(schema: Schema, features: Sequence[str] | None, *, target: int) -> list[int]:
    """Places of the features, in the order given; by default every column but the target's own and the weight."""
    chosen = schema.features[target]
    if features is None:
        places = [p for p in explaining(schema) if schema.features[p].column != chosen.column]
    else:
        words = [features] if isinstance(features, str) else list(features)
        places = [place for word in words for place in _places(schema, word)]
    if target in places:
        raise ParameterError(
            "E251", f"the target {chosen.name} is among the features.", "Leave it out of them."
        )
    if len(set(places)) != len(places):
        raise ParameterError("E251", "a feature is named twice.", "Name every feature once.")
    if not places:
        raise ParameterError(
            "E251", "there is no feature beside the target.", "Name at least one other column."
        )
    return places


def needs_intercept(release: Release, what: str) -> None:
    """Refuse a release that carries neither count nor means."""
    if not release.schema.intercept:
        raise ParameterError(
            "E255",
            f"{what} needs a release with an intercept, which carries the count and the means.",
            "Release again with intercept = true in the schema.",
        )


def read_rows(release: Release, places: Sequence[int], rows: Any) -> Floats:
    """New rows in original units as an array with one column per place.

    ``rows`` is an array with the columns in that order, or anything with named columns (a mapping, a pandas
    or polars frame), where a categorical column is given as its values and becomes indicators, and a cell
    without a value is missing where the model has an indicator for that, and else the column's fill or no level. A
    derived column that is not among them is computed from the columns that it is made of, where those are.
    Levels are compared as a release compares them: 1, 1.0 and "1" are one level. Any other value is refused, unless
    the schema says in ``otherwise`` which level it counts as.
    """
    features = [release.schema.features[place] for place in places]
    if hasattr(rows, "keys") or hasattr(rows, "columns"):
        names = list(rows.keys() if hasattr(rows, "keys") else rows.columns)
        rows, names = _with_derived(release.schema, features, rows, names)
        indicated = {feature.name for feature in features if feature.kind == "missing"}
        made = []
        for feature in features:
            if (
                feature.kind == "numeric"
                and f"{feature.name}[missing]" in indicated
                and feature.name in names
            ):
                cells = _objects(rows[feature.name])
                made.append(np.where(_is_missing(cells), feature.middle, cells))
            elif feature.name in names:
                made.append(np.asarray(rows[feature.name]))
            elif feature.column in names and feature.kind == "missing":
                made.append(_is_missing(_objects(rows[feature.column])))
            elif feature.column in names:
                made.append(_is_level(release.schema, feature, _objects(rows[feature.column])))
            else:
                raise _bad_rows(f"the new rows have no column {feature.name}", [f.name for f in features])
        rows = np.stack([np.atleast_1d(column) for column in made], axis=1)
    try:
        table = np.atleast_2d(np.asarray(rows, dtype=np.float64))
    except (TypeError, ValueError):
        raise _bad_rows("new rows must be numbers", [f.name for f in features]) from None
    if table.ndim != 2 or table.shape[1] != len(features):
        raise _bad_rows(
            f"new rows need {len(features)} columns, got shape {table.shape}", [f.name for f in features]
        )
    if not np.isfinite(table).all():
        raise _bad_rows("new rows must be finite numbers", [f.name for f in features])
    return table


def _with_derived(
    schema: Schema, features: Sequence[Feature], rows: Any, names: list[Any]
) -> tuple[Any, list[Any]]:
    """The new rows with the derived columns that a model needs and that they do not have."""
    wanted = {feature.column for feature in features if feature.name not in names} - {*names}
    made = {c.name: c.expression for c in schema.columns if c.expression is not None and c.name in wanted}
    if not made:
        return rows, names
    recipe = Recipe.of(schema.sources, tuple(made.items()))
    sources = [schema.sources[place] for place in sorted(recipe.reads)]
    if absent := [column.name for column in sources if column.name not in names]:
        needed = [column.name for column in sources]
        raise _bad_rows(f"the new rows have no column {absent[0]}, from which columns are derived", needed)
    count = len(_objects(rows[sources[0].name]))
    cells = [np.full(count, np.nan) for _ in schema.sources]
    for place in recipe.reads:
        cells[place] = _cells(schema.sources[place], _objects(rows[schema.sources[place].name]))
    found = dict(zip(made, recipe.derived(cells), strict=True))
    table = {name: rows[name] for name in names}
    for column in schema.columns:
        if column.name in made and isinstance(column, Categorical):
            codes = found[column.name]
            table[column.name] = [
                None if code != code else column.levels[int(code)] for code in codes.tolist()
            ]
        elif column.name in made:
            table[column.name] = found[column.name]
    return table, list(table)


def _cells(column: Column, cells: NDArray[np.object_]) -> Floats:
    """New cells as a table's are read: numbers, seconds of dates, codes of levels; NaN where there is no value."""
    if isinstance(column, Categorical):
        as_numbers = column.numbers is not None
        places = {key: place for place, key in enumerate(column.numbers or map(str, column.levels))}
        found: list[Any] = [places.get(_key(cell, as_numbers), -1) for cell in cells]
    elif column.date:
        texts = [cell.isoformat() if isinstance(cell, date) else str(cell) for cell in cells]
        found = [moment(text.strip()) for text in texts]
    else:
        found = [number(cell.strip()) if isinstance(cell, str) else cell for cell in cells]
    try:
        made = np.array([np.nan if cell is None else float(cell) for cell in found])
    except (TypeError, ValueError):
        raise _bad_rows("new rows must be numbers", [column.name]) from None
    return np.where(_is_missing(cells), np.nan, made)


def _is_level(schema: Schema, feature: Feature, cells: NDArray[np.object_]) -> NDArray[np.bool_]:
    """Which cells of new rows are the level of a feature; all must be some level of the column, or missing."""
    column = next(column for column in schema.columns if column.name == feature.column)
    assert isinstance(column, Categorical), "only a categorical column has indicators of levels"
    as_numbers = column.numbers is not None
    places = {key: place for place, key in enumerate(column.numbers or map(str, column.levels))}
    gone = {_key(value, as_numbers) for value in column.missing_values or ()}
    missing_as, other_as = schema.filled(column), column.otherwise
    filled = None if missing_as is None else column.levels.index(missing_as)
    found: list[int | None] = []
    for cell, missing in zip(cells, _is_missing(cells), strict=True):
        key = None if missing else _key(cell, as_numbers)
        unknown = not missing and key not in places and key not in gone
        if unknown and other_as is not None:
            found.append(column.levels.index(other_as))
            continue
        if unknown:
            raise unknown_level(column)
        found.append(filled if key is None or key in gone else places[key])
    return np.array([place == column.levels.index(feature.level) for place in found], dtype=bool)


def unknown_level(column: Categorical) -> ParameterError:
    """The refusal of new rows that have another value in a column than its levels; the value is not repeated."""
    shown = ", ".join(map(str, column.levels[:8])) + (", …" if len(column.levels) > 8 else "")
    return ParameterError(
        "E257",
        f"the new rows have a value in column {column.name} that is none of its levels.",
        f"Its levels are {shown}. Leave a cell empty where the value is missing.",
    )


def _key(cell: Any, as_number: bool) -> float | str | None:
    """A cell as levels are compared: a number, or a text without space around it."""
    if as_number:
        try:
            return meaning(cell.strip()) if isinstance(cell, str) else float(cell)
        except (TypeError, ValueError):
            return None
    return cell.strip() if isinstance(cell, str) else str(cell)


def _objects(cells: Any) -> NDArray[np.object_]:
    return np.atleast_1d(np.asarray(cells, dtype=object))


def _is_missing(cells: NDArray[np.object_]) -> NDArray[np.bool_]:
    """Which cells of new rows have no value: None, NaN, or an empty text."""
    return np.array([cell is None or cell == "" or cell != cell for cell in cells], dtype=bool)


def _places(schema: Schema, name: str) -> list[int]:
    name = canonical(str(name))
    exact = [
        i for i, feature in enumerate(schema.features) if feature.name == name and feature.kind != "intercept"
    ]
    found = exact or [i for i, feature in enumerate(schema.features) if feature.column == name and name]
    if not found:
        names = [column.name for column in schema.columns]
        shown = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
        raise ParameterError("E250", f"there is no column {name[:64]!r} in this release.", f"It has {shown}.")
    return found


def _bad_rows(rule: str, names: list[str]) -> ParameterError:
    shown = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
    return ParameterError("E257", f"{rule}.", f"Give the columns {shown}, in original units.")
