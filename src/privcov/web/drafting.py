"""A schema while it is being written: text fields in, a ``Schema`` out, or every refusal beside its field.

Names come from the header of a table, by the code of ``privcov schema init``; bounds and levels come from a person.

What is publicly guessed about columns, for questions whose answer depends on the table; no release reads it.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, get_args

from privcov.errors import InputError, ParameterError
from privcov.planning.moments import PublicMoments
from privcov.planning.signal import saving_words
from privcov.privacy import decimal_text, exact
from privcov.schema import Categorical, Column, Numeric, Schema
from privcov.schema.derived import columns_of
from privcov.schema.dialect import moment, moment_text
from privcov.schema.expressions import parse
from privcov.schema.grid import Grid
from privcov.schema.names import canonical, check_name, toml_key, toml_text
from privcov.schema.schema import MissingRule
from privcov.schema.template import template
from privcov.schema.toml import column_words
from privcov.schema.weights import checked_weight
from privcov.table import glance
from privcov.web.asking import Question, all_of, at, flag, part, parts, text, whole
from privcov.web.deriving import OF_DERIVED, Expression, Expressions

_PUBLIC = "Fill it from public knowledge, never from the data."
_OF_LEVELS = "missing fill missing_values feature label unit"
_RULES = "missing fill missing_values centre scale"
"""What a file says of a column and the page has no field for."""


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A schema that holds together, and what is publicly guessed about its columns."""

    schema: Schema
    guesses: dict[str, Any]
    derived: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The columns that each expression of the page makes, by the name it has there: a basis makes several."""

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
    """A draft for a table: the names of its columns, and what each looks like; every bound is blank."""
    seen = glance(path)
    template(seen.columns)  # refuses a first line that looks like a row of data
    columns = [
        _fields(name, kind="levels" if kind == "text" else kind) for name, kind in seen.columns.items()
    ]
    return _settings() | {"columns": columns, "file": seen.file.words()}


def opened(path: Path) -> dict[str, Any]:
    """A schema file as a draft."""
    schema = Schema.read(path)
    said = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    guesses = said.get("planning", {})
    PublicMoments.guessed(schema, guesses)  # a file that the planner would refuse is refused here
    guessed = {canonical(name): guess for name, guess in guesses.get("columns", {}).items()}
    released = {column.name: column for column in schema.columns}
    columns = [
        _opened(released.get(column.name, column), schema)
        | _guess_fields(guessed.get(column.name, {}))
        | {"use": column.name in released}
        for column in schema.read_columns
        if column.name != schema.weight
    ]
    derived = [_opened_expression(name, about, guessed) for name, about in said.get("derived", {}).items()]
    correlations = [
        {"pair": pair, "value": plain(value)} for pair, value in guesses.get("correlations", {}).items()
    ]
    return _settings() | {
        "intercept": schema.intercept,
        "missing": schema.missing,
        "max_rows_per_person": str(schema.max_rows_per_person),
        "row_norm_bound": "" if schema.row_norm_bound is None else decimal_text(schema.row_norm_bound),
        "person": schema.person or "",
        "per_person": schema.per_person or "",
        "weight": schema.weight or "",
        "largest_weight": plain(schema.largest_weight),
        "weight_power": "" if schema.weight_power == 1 else decimal_text(schema.weight_power),
        "ignore_extra": schema.ignore_extra,
        "file": schema.file.words(),
        "kept": {"missing_values": list(schema.missing_values), "left_out": list(schema.left_out)},
        "columns": columns,
        "derived": derived,
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
        file, rule = dict(part(given, "file")), text(given, "missing") or "midpoint"
        extra = flag(given, "ignore_extra")
    typed = Expressions.of(given)
    rows, others = _chosen(given, typed.read)
    *columns, about, _ = all_of(
        *(partial(_column, row, f"columns.{place}", released, rule) for place, row, released in rows),
        partial(_checked, given),
        typed.insist,
    )
    with at(None):
        kept = _words(part(given, "kept"), "missing_values left_out")
        words = {**about, **kept, "ignore_extra": extra or others, "file": file, "columns": _by_name(columns)}
    schema = typed.put(words)
    with at(None):
        Grid.of(schema)
    guesses: dict[str, Any] = {"columns": {}, "correlations": {}}
    for place, row, released in rows:
        with at(f"columns.{place}.guess"):
            guess = guess_of(row) if released else {}
        if guess:
            guesses["columns"][canonical(text(row, "name"))] = guess
    for one in typed.used:
        with at(f"derived.{one.place}.expression"):
            guesses["columns"] |= _guesses(one, schema)
    with at("correlations"):
        for row in parts(given, "correlations"):
            guesses["correlations"][text(row, "pair")] = text(row, "value")
    return Draft(schema=schema, guesses=guesses, derived={one.name: one.made for one in typed.used})


def _chosen(given: Question, read: Set[str]) -> tuple[list[tuple[int, Question, bool]], bool]:
    """The columns that are read, with their places and whether they are released; and whether the table has others.

    A column that is not ticked, or is a date, is read where an expression needs it. The column of
    the person's id and that of the weight have no bounds of their own.
    """
    with at(None):
        own = {canonical(text(given, word)) for word in ("person", "weight")} - {""}
        rows, others = [], False
        for place, row in enumerate(parts(given, "columns")):
            name = canonical(text(row, "name"))
            released = flag(row, "use", default=True) and text(row, "kind") != "date"
            if name not in own and (released or name in read):
                rows.append((place, row, released))
            others |= name not in own and not (released or name in read)
    return rows, others


def summary(draft: Draft) -> dict[str, Any]:
    """What a schema amounts to, in the words of ``privcov schema check``."""
    schema = draft.schema
    _ = draft.moments  # a guess that is half typed, or that no table has, is refused
    norm = float(schema.squared_norm_bound) ** 0.5
    made = {column.name: column for column in schema.columns}
    return {
        "words": " ".join(
            filter(
                None,
                [
                    f"{len(schema.read_columns)} columns in the table, {schema.dimension} in the released matrix.",
                    f"Row norm at most {norm:.4g} in scaled units.",
                    f"Missing cells: {schema.missing_words}. {schema.person_words}",
                    schema.weight_words,
                    schema.derived_words,
                    f"File format: {schema.file.sentence()}." if schema.file.words() else "",
                ],
            )
        ),
        "saving": " ".join(saving_words(schema)),
        "features": [feature.name for feature in schema.features],
        "columns": [column.name for column in schema.columns],
        "derived": {
            name: {
                "bounds": "; ".join(_bounds(made[one], "" if one == name else one) for one in names),
                "kind": _kind(made[names[0]]),
                "made": names,
            }
            for name, names in draft.derived.items()
        },
        "toml": draft.to_toml(),
    }


def _bounds(column: Column, name: str) -> str:
    """Where the values of a derived column lie, in words."""
    words = (
        f"from {column.lower:g} to {column.upper:g}"
        if isinstance(column, Numeric)
        else f"levels {', '.join(map(str, column.levels))}"
    )
    return f"{name}: {words}" if name else words


def _kind(column: Column) -> str:
    if isinstance(column, Categorical):
        return "levels"
    return "date" if column.date else "numeric"


def _settings() -> dict[str, Any]:
    return {
        "intercept": True,
        "missing": "zero-row",
        "max_rows_per_person": "1",
        "row_norm_bound": "",
        "person": "",
        "per_person": "",
        "weight": "",
        "largest_weight": "",
        "weight_power": "",
        "ignore_extra": False,
        "file": {},
        "derived": [],
        "correlations": [],
    }


def _fields(name: str, *, kind: str, **known: Any) -> dict[str, Any]:
    texts = dict.fromkeys(
        ("lower", "upper", "levels", "otherwise", "label", "unit", "mean", "std", "shares"), ""
    )
    return {"name": name, "use": True, "kind": kind, **texts, "numbers": False, "exhaustive": False, **known}


def _opened(column: Column, schema: Schema) -> dict[str, Any]:
    """A column of a schema file in the fields of the page; ``rules`` have none, and are sent back as they were."""
    said = column_words(column, schema.missing_values)
    fields = _fields(column.name, kind=_kind(column), rules=_words(said, _RULES))
    fields |= {word: plain(said.get(word)) for word in ("lower", "upper", "label", "unit", "otherwise")}
    if isinstance(column, Categorical):
        fields["levels"] = "\n".join(str(level) for level in column.levels)
        fields |= {"numbers": column.numeric_levels, "exhaustive": column.exhaustive}
    return fields


def _opened_expression(key: str, about: Any, guessed: Mapping[str, Any]) -> dict[str, Any]:
    """A derived column in the fields of the page, as the file writes it."""
    words = {"expression": about} if isinstance(about, str) else about
    name = canonical(key)
    made = [one for one, _ in columns_of(name, parse(words["expression"]))]
    return {
        "name": name,
        "use": True,
        "expression": words["expression"],
        "rules": _words(words, OF_DERIVED),
        "guesses": {one: _guess_fields(guessed[one]) for one in made if one != name and one in guessed},
        **_guess_fields(guessed.get(name, {})),
    }


def _guess_fields(guess: Mapping[str, Any]) -> dict[str, str]:
    return {
        "mean": plain(guess.get("mean")),
        "std": plain(guess.get("std")),
        "shares": ", ".join(plain(share) for share in guess.get("shares", [])),
        "missing_share": plain(guess.get("missing")),
    }


def _checked(given: Question) -> dict[str, Any]:
    """The settings that belong to no column."""

    def rows() -> int:
        with at("max_rows_per_person"):
            count = whole(text(given, "max_rows_per_person") or "1", "max_rows_per_person", "E205")
            return _one_column(max_rows_per_person=count).max_rows_per_person

    def norm() -> dict[str, Any]:
        with at("row_norm_bound"):
            bound = text(given, "row_norm_bound") or None
            _one_column(row_norm_bound=bound)
            return {} if bound is None else {"row_norm_bound": bound}

    def missing() -> str:
        with at("missing"):
            return _one_column(missing=text(given, "missing") or "midpoint").missing

    def intercept() -> bool:
        with at("intercept"):
            return flag(given, "intercept", default=True)

    def person() -> dict[str, Any]:
        with at("person"):
            name, how = text(given, "person"), text(given, "per_person")
            return {"person": name, **({"per_person": how} if how else {})} if name else {}

    count, bound, rule, constant, whose, weight = all_of(
        rows, norm, missing, intercept, person, partial(_weight, given)
    )
    found = {"max_rows_per_person": count, "missing": rule, "intercept": constant}
    return {**found, **bound, **whose, **weight}


def _weight(given: Question) -> dict[str, Any]:
    """What rows count as: the column, the largest weight and the power; empty where every row counts as one."""
    with at("weight"):
        name = text(given, "weight")
    if not name:
        return {}

    def largest() -> float | None:
        with at("largest_weight"):
            typed = text(given, "largest_weight")
            most = _number(typed, "largest_weight", "E196") if typed else None
            checked_weight(name, most, 1)
            return most

    def power() -> str:
        with at("weight_power"):
            typed = text(given, "weight_power") or "1"
            checked_weight(name, 1.0, typed)
            return typed

    return dict(
        zip(("weight", "largest_weight", "weight_power"), (name, *all_of(largest, power)), strict=True)
    )


def _one_column(**settings: Any) -> Schema:
    """The smallest schema with these settings: what refuses them one at a time."""
    return Schema.from_dict({"columns": {"a": {"lower": 0, "upper": 1}}, **settings})


def _column(row: Question, field: str, released: bool, rule: str) -> tuple[str, dict[str, Any]]:
    """The name of a column, and what a schema file would say of it; ``rule`` is the table's for missing cells."""
    with at(field + ".name"):
        name = check_name(text(row, "name", longest=200))
        rules = dict(_words(part(row, "rules"), _RULES if released else "fill missing_values"))
    rules |= {} if released else {"feature": False}
    kind = text(row, "kind")
    if kind == "date":
        ends = all_of(partial(_date, row, "lower", field), partial(_date, row, "upper", field))
        with at(field + ".upper"):
            Numeric(name=name, lower=ends[0], upper=ends[1], date=True)
        rules |= {"lower": moment_text(ends[0]), "upper": moment_text(ends[1])}
    for word in ("label",) if kind == "date" else ("label", "unit"):
        with at(f"{field}.{word}"):
            said = text(row, word, longest=20_000)
            Numeric(name=name, lower=0, upper=1, **{word: said})  # type: ignore[arg-type]
            rules |= {word: said} if said else {}
    if kind == "date":
        return name, rules
    if kind == "numeric":
        bounds = all_of(partial(_bound, row, "lower", field), partial(_bound, row, "upper", field))
        with at(field + ".upper"):
            scaling = _words(rules, "centre scale")
            column = Numeric(name=name, lower=bounds[0], upper=bounds[1], **scaling)
        return name, {"lower": column.lower, "upper": column.upper, **rules}
    with at(field + ".levels"):
        levels = Categorical(name=name, levels=tuple(_levels(row, name))).levels
    with at(field + ".otherwise"):
        about = {"levels": list(levels), **_words(rules, _OF_LEVELS)}
        if flag(row, "exhaustive"):
            otherwise = text(row, "otherwise")
            about |= {"exhaustive": True, **({"otherwise": otherwise} if otherwise else {})}
            if released and rule in get_args(MissingRule):
                Schema.from_dict({"columns": {name: about}, "missing": rule})
        return name, about


def _words(given: Mapping[str, Any], words: str) -> dict[str, Any]:
    """These words of a group of fields, and no other."""
    return {word: given[word] for word in words.split() if word in given}


def _bound(row: Question, word: str, field: str) -> float:
    with at(f"{field}.{word}"):
        given = text(row, word)
        if not given:
            raise ParameterError("E206", f"{word} is still blank.", _PUBLIC)
        return _number(given, f"the {word} bound", "E206")


def _date(row: Question, word: str, field: str) -> float:
    """A date in seconds, as the schema counts them."""
    with at(f"{field}.{word}"):
        given = text(row, word)
        seconds = moment(given)
        if seconds is None:
            raise InputError("E178", f"{word} is no date: got {given!r}.", "Write it as 2024-12-31.")
        return seconds


def _number(given: str, what: str, code: str) -> float:
    try:
        number = float(exact(given))
    except (ValueError, ZeroDivisionError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ParameterError(code, f"{what} must be a finite number, got {given!r}.")
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
        raise InputError("E122", f"column {name}: levels must be all texts or all numbers.") from None
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


def _guesses(one: Expression, schema: Schema) -> dict[str, Any]:
    """What is guessed of the column that an expression makes, or of each where it makes several."""
    kinds = {column.name: _kind(column) for column in schema.columns}
    fields = {name: part(part(one.row, "guesses"), name) if one.basis else one.row for name in one.made}
    found = {name: guess_of({**row, "kind": kinds[name]}) for name, row in fields.items()}
    return {name: guess for name, guess in found.items() if guess}


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
