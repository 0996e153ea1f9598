"""A schema while it is being written: text fields in, a ``Schema`` out, or every refusal beside its field.

Names come from the header of a table, by the code of ``privcov schema init``; bounds and levels come from a person.

What is publicly guessed about columns, for questions whose answer depends on the table; no release reads it.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from privcov.errors import InputError, ParameterError
from privcov.planning.moments import PublicMoments
from privcov.privacy import decimal_text, exact
from privcov.schema import Categorical, Column, Numeric, Schema
from privcov.schema.grid import Grid
from privcov.schema.names import canonical, check_name, toml_key, toml_text
from privcov.schema.template import template
from privcov.schema.weights import declared
from privcov.table import glance
from privcov.web.asking import Question, all_of, at, flag, part, parts, text, whole

_PUBLIC = "Fill it from public knowledge, never from the data."


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A schema that holds together, and what is publicly guessed about its columns."""

    schema: Schema
    guesses: dict[str, Any]

    @property
    def moments(self) -> PublicMoments | None:
        """The guesses as moments; None where nothing was guessed."""
        if not self.guesses.get("columns"):
            return None
        with at("guesses"):
            return PublicMoments.guessed(self.schema, self.guesses)

    def to_toml(self) -> str:
        """The schema file; guesses go into its part for planning, which no release reads."""
        return self.schema.to_toml() + planning_toml(self.guesses)


def blank(path: Path) -> dict[str, Any]:
    """A draft for a table: the names of its columns, and whether each looks like numbers; every bound is blank."""
    seen = glance(path)
    template(seen.columns)  # refuses a first line that looks like a row of data
    columns = [
        _fields(name, kind="numeric" if kind == "numeric" else "levels")
        for name, kind in seen.columns.items()
    ]
    return _settings() | {"columns": columns, "file": seen.file.words()}


def opened(path: Path) -> dict[str, Any]:
    """A schema file as a draft."""
    schema = Schema.read(path)
    if schema.sources:
        raise InputError(
            "E179",
            "this schema has derived columns, or columns that are read for them alone, which the page cannot edit.",
            "Release it on the command line: privcov release.",
        )
    guesses = tomllib.loads(path.read_bytes().decode("utf-8-sig")).get("planning", {})
    PublicMoments.guessed(schema, guesses)  # a file that the planner would refuse is refused here
    guessed = {canonical(name): guess for name, guess in guesses.get("columns", {}).items()}
    columns = []
    for column in declared(schema):
        guess = guessed.get(column.name, {})
        if isinstance(column, Numeric):
            fields = _fields(
                column.name, kind="numeric", lower=plain(column.lower), upper=plain(column.upper)
            )
        else:
            levels = "\n".join(str(level) for level in column.levels)
            fields = _fields(column.name, kind="levels", levels=levels, numbers=column.numeric_levels)
        fields |= {"rules": _rules(column, schema), "missing_share": plain(guess.get("missing"))}
        fields |= {"mean": plain(guess.get("mean")), "std": plain(guess.get("std"))}
        fields["shares"] = ", ".join(plain(share) for share in guess.get("shares", []))
        columns.append(fields)
    bound = "" if schema.row_norm_bound is None else decimal_text(schema.row_norm_bound)
    correlations = [
        {"pair": pair, "value": plain(value)} for pair, value in guesses.get("correlations", {}).items()
    ]
    return {
        "intercept": schema.intercept,
        "missing": schema.missing,
        "max_rows_per_person": str(schema.max_rows_per_person),
        "row_norm_bound": bound,
        "ignore_extra": schema.ignore_extra,
        "file": schema.file.words(),
        "kept": {
            "missing_values": list(schema.missing_values),
            "left_out": list(schema.left_out),
            **_weight(schema),
            **_person(schema),
        },
        "columns": columns,
        "correlations": correlations,
    }


def drafted(given: Question) -> Draft:
    """The schema the fields mean, or every refusal beside its field.

    >>> from privcov.web.asking import Refused
    >>> age = {"name": "age", "kind": "numeric", "lower": "0", "upper": "100"}
    >>> drafted({"columns": [age]}).schema.dimension
    2
    >>> try:
    ...     drafted({"columns": [age | {"lower": ""}, {"name": "sex", "kind": "levels"}]})
    ... except Refused as refused:
    ...     print([field for field, _ in refused.reasons])
    ['columns.0.lower', 'columns.1.levels']
    """
    with at(None):
        rows = [
            (place, row)
            for place, row in enumerate(parts(given, "columns"))
            if flag(row, "use", default=True)
        ]
        extra = flag(given, "ignore_extra") or len(rows) < len(parts(given, "columns"))
        file = dict(part(given, "file"))
    columns = all_of(
        *(partial(_column, row, f"columns.{place}") for place, row in rows), partial(_checked, given)
    )
    about = columns.pop()
    with at(None):
        words = "missing_values left_out weight largest_weight weight_power person per_person"
        kept = _words(part(given, "kept"), words)
        schema = Schema.from_dict(
            {**about, **kept, "ignore_extra": extra, "file": file, "columns": _by_name(columns)}
        )
        Grid.of(schema)
    guesses: dict[str, Any] = {"columns": {}, "correlations": {}}
    for place, row in rows:
        with at(f"columns.{place}.guess"):
            guess = guess_of(row)
        if guess:
            guesses["columns"][canonical(text(row, "name"))] = guess
    with at("correlations"):
        for row in parts(given, "correlations"):
            guesses["correlations"][text(row, "pair")] = text(row, "value")
    return Draft(schema=schema, guesses=guesses)


def summary(draft: Draft) -> dict[str, Any]:
    """What a schema amounts to, in the words of ``privcov schema check``."""
    schema = draft.schema
    _ = draft.moments  # a guess that is half typed, or that no table has, is refused
    norm = float(schema.squared_norm_bound) ** 0.5
    return {
        "words": (
            f"{len(schema.columns)} columns in the table, {schema.dimension} in the released matrix. "
            + (f"{schema.summed_dimension} are summed, with exhaustive levels. " if schema.exhaustive else "")
            + f"Row norm at most {norm:.4g} in scaled units. "
            + f"Missing cells: {schema.missing_words}. {schema.person_words}"
            + (f" {schema.weight_words}" if schema.weight is not None else "")
            + (f" File format: {schema.file.sentence()}." if schema.file.words() else "")
        ),
        "features": [feature.name for feature in schema.features],
        "columns": [column.name for column in schema.columns],
        "toml": draft.to_toml(),
    }


def _settings() -> dict[str, Any]:
    return {
        "intercept": True,
        "missing": "zero-row",
        "max_rows_per_person": "1",
        "row_norm_bound": "",
        "ignore_extra": False,
        "file": {},
        "correlations": [],
    }


def _fields(name: str, *, kind: str, **known: Any) -> dict[str, Any]:
    empty = {"lower": "", "upper": "", "levels": "", "numbers": False, "mean": "", "std": "", "shares": ""}
    return {"name": name, "use": True, "kind": kind, **empty, **known}


def _checked(given: Question) -> dict[str, Any]:
    """The settings that belong to no column."""

    def rows() -> int:
        with at("max_rows_per_person"):
            count = whole(text(given, "max_rows_per_person") or "1", "max_rows_per_person", "E205")
            return _one_column(max_rows_per_person=count).max_rows_per_person

    def norm() -> str | None:
        with at("row_norm_bound"):
            bound = text(given, "row_norm_bound") or None
            _one_column(row_norm_bound=bound)
            return bound

    def missing() -> str:
        with at("missing"):
            return _one_column(missing=text(given, "missing") or "midpoint").missing

    def intercept() -> bool:
        with at("intercept"):
            return flag(given, "intercept", default=True)

    count, bound, rule, constant = all_of(rows, norm, missing, intercept)
    found = {"max_rows_per_person": count, "missing": rule, "intercept": constant}
    return found if bound is None else {**found, "row_norm_bound": bound}


def _one_column(**settings: Any) -> Schema:
    """The smallest schema with these settings: what refuses them one at a time."""
    return Schema.from_dict({"columns": {"a": {"lower": 0, "upper": 1}}, **settings})


def _column(row: Question, field: str) -> tuple[str, dict[str, Any]]:
    with at(field + ".name"):
        name = text(row, "name", longest=200)
        name = check_name(name)
        rules = _words(part(row, "rules"), "missing fill missing_values exhaustive otherwise label unit")
    if text(row, "kind") == "numeric":
        bounds = all_of(partial(_bound, row, "lower", field), partial(_bound, row, "upper", field))
        with at(field + ".upper"):
            column = Numeric(name=name, lower=bounds[0], upper=bounds[1])
        return name, {"lower": column.lower, "upper": column.upper, **rules}
    with at(field + ".levels"):
        levels = _levels(row, name)
        return name, {"levels": list(Categorical(name=name, levels=tuple(levels)).levels), **rules}


def _rules(column: Column, schema: Schema) -> dict[str, Any]:
    """What a column says about missing cells, its label and its unit: no fields of the page, so sent back as it was."""
    codes = list(column.missing_values or ())
    given: dict[str, Any] = {"missing": column.missing, "fill": column.fill}
    given |= {"label": column.label or None, "unit": column.unit or None}
    if isinstance(column, Categorical) and column.exhaustive:
        given |= {"exhaustive": True, "otherwise": column.otherwise}
    own = {word: value for word, value in given.items() if value is not None}
    return own if codes == list(schema.missing_values) else {**own, "missing_values": codes}


def _weight(schema: Schema) -> dict[str, Any]:
    if schema.weight is None:
        return {}
    power = decimal_text(schema.weight_power)
    return {"weight": schema.weight, "largest_weight": schema.largest_weight, "weight_power": power}


def _person(schema: Schema) -> dict[str, Any]:
    """Whose row a row is, kept in the same way."""
    given = {"person": schema.person, "per_person": schema.per_person}
    return {word: value for word, value in given.items() if value is not None}


def _words(given: Question, words: str) -> Question:
    """These words of a group of fields, and no other."""
    return {word: given[word] for word in words.split() if word in given}


def _bound(row: Question, word: str, field: str) -> float:
    with at(f"{field}.{word}"):
        given = text(row, word)
        if not given:
            raise ParameterError("E206", f"{word} is still blank.", _PUBLIC)
        try:
            number = float(exact(given))
        except (ValueError, ZeroDivisionError, OverflowError):
            number = math.nan
        if not math.isfinite(number):
            raise ParameterError("E206", f"the {word} bound must be a finite number, got {given!r}.")
        return number


def _levels(row: Question, name: str) -> list[str | float]:
    lines = text(row, "levels", longest=100_000).splitlines()
    # A single level would be no column, so commas on a single line part levels; on several they belong to them.
    apart = lines[0].split(",") if len(lines) == 1 else lines
    given = [level.strip() for level in apart if level.strip()]
    if not given:
        raise ParameterError("E206", "levels is still blank.", _PUBLIC)
    if not flag(row, "numbers"):
        return list(given)
    try:
        numbers = [float(exact(level)) for level in given]
    except (ValueError, ZeroDivisionError, OverflowError):
        raise InputError("E122", f"column {name}: levels are either all texts or all numbers.") from None
    return [int(number) if number.is_integer() else number for number in numbers]


def _by_name(columns: list[Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, about in columns:
        if name in found:
            raise InputError("E103", f"column {name} is declared twice.")
        found[name] = about
    return found


def saved_text(draft: Draft) -> bytes:
    """The schema file as bytes, once it is sure that it reads back as the same schema."""
    _ = draft.moments  # guesses that no table has are refused, beside their fields
    made = draft.to_toml()
    if Schema.from_dict(tomllib.loads(made, parse_float=exact)) != draft.schema:
        raise InputError("E122", "this schema cannot be written as a file.", "Rename its levels.")
    return made.encode("utf-8")


def even_guess(schema: Schema) -> list[dict[str, str]]:
    """For every column a guess that needs no knowledge: spread evenly over its bounds or levels."""
    found = []
    for column in schema.columns:
        if isinstance(column, Categorical):
            share = plain(10_000 // len(column.levels) / 10_000)  # rounded down: shares add up to at most 1
            found.append({"name": column.name, "shares": ", ".join([share] * len(column.levels))})
            continue
        half = (column.upper - column.lower) / 2
        std = half / math.sqrt(3)
        found.append({"name": column.name, "mean": f"{column.lower + half:.4g}", "std": f"{std:.4g}"})
    return found


def guess_of(row: Question) -> dict[str, Any]:
    """What the fields of a column guess of it; empty where they guess nothing."""
    missing = text(row, "missing_share")  # of a file that was opened: the page has no field for it
    more = {"missing": missing} if missing else {}
    if text(row, "kind") == "numeric":
        mean, std = text(row, "mean"), text(row, "std")
        return {"mean": mean, "std": std, **more} if mean or std else {}
    shares = text(row, "shares", longest=20_000)
    return {"shares": [share.strip() for share in shares.split(",")], **more} if shares else {}


def planning_toml(guesses: Mapping[str, Any]) -> str:
    """Guesses as the part of a schema file that is for planning."""
    lines = []
    for name, guess in guesses.get("columns", {}).items():
        lines += ["", f"[planning.columns.{toml_key(name)}]"]
        for word, value in guess.items():
            shown = "[" + ", ".join(map(_toml, value)) + "]" if isinstance(value, list) else _toml(value)
            lines.append(f"{word} = {shown}")
    if guesses.get("correlations"):
        lines += ["", "[planning.correlations]"]
        lines += [f"{toml_text(pair)} = {_toml(value)}" for pair, value in guesses["correlations"].items()]
    return "\n".join(lines) + "\n" if lines else ""


def _toml(value: str) -> str:
    """A number that was guessed, exactly; a fraction without an end is a text that the planner reads too."""
    number = decimal_text(exact(value))
    return f'"{number}"' if "/" in number else number


def plain(value: Any) -> str:
    """A number as a person would type it; nothing where there is none."""
    if value is None or isinstance(value, str):
        return value or ""
    return repr(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))
