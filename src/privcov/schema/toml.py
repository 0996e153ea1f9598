"""A schema as the text of its TOML file, and back. The words of the file: docs/reference/schema-file.md."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from privcov.errors import InputError, ParameterError
from privcov.privacy import decimal_text, exact
from privcov.schema.columns import Categorical, Column, Level, Numeric
from privcov.schema.derived import derived_columns
from privcov.schema.dialect import Dialect, moment, moment_text
from privcov.schema.names import canonical, check_name, quoted, toml_key, toml_text
from privcov.text import files
from privcov.text.grammar import brief

if TYPE_CHECKING:
    from privcov.schema.schema import Schema

_MOST_BYTES = 16 * 2**20
"""Of a schema file: 20,000 levels of 128 characters fit."""
_BLANK = re.compile(r"^\s*(lower|upper|levels)\s*=\s*(#.*)?$")

Made = TypeVar("Made")


def read_toml(path: str | Path, make: Callable[[dict[str, Any]], Made]) -> Made:
    """What ``make`` makes of the words of a file; refuses what cannot be read, and bounds that are still blank."""
    try:
        with files.opened(path) as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise InputError("E122", f"the schema {path} is too large: a schema has at most 16 MiB.")
        text = content.decode("utf-8-sig")
    except OSError as reason:
        raise InputError("E119", f"cannot read the schema {path}: {reason.strerror}.") from None
    except UnicodeDecodeError:
        raise InputError("E105", f"the schema {path} is not UTF-8 text.") from None
    for place, line in enumerate(text.splitlines(), 1):
        if blank := _BLANK.match(line):
            raise ParameterError(
                "E206",
                f"{path}, line {place}: {blank[1]} is still blank.",
                "Fill it from public knowledge, never from the data.",
            )
    try:
        return make(tomllib.loads(text, parse_float=_decimal))
    except (tomllib.TOMLDecodeError, ValueError, RecursionError) as reason:
        if isinstance(reason, ParameterError):
            raise
        raise InputError("E122", f"the schema {path} is not valid TOML: {reason}.") from None


def declarations(given: Mapping[str, Any]) -> dict[str, Any]:
    """The words of a file as the fields of a ``Schema``; refuses words that nobody knows."""
    if not isinstance(given, Mapping):
        raise InputError("E122", f"a schema must be a mapping, got {type(given).__name__}.")
    own = {
        "intercept",
        "row_norm_bound",
        "missing",
        "missing_values",
        "max_rows_per_person",
        "ignore_extra",
        "left_out",
        "weight",
        "largest_weight",
        "weight_power",
        "person",
        "per_person",
    }
    _only(given, {"columns", "derived", "planning", "file"} | own, "the schema")
    columns = given.get("columns", {})
    if not isinstance(columns, Mapping):
        raise InputError("E122", "columns must be tables named [columns.NAME].")
    # What [planning] says is for privcov.planning.moments, which reads it itself; no release depends on it.
    rest = {word: value for word, value in given.items() if word in own}
    if "person" in rest and not {"max_rows_per_person", "per_person"} & rest.keys():
        raise InputError(
            "E149",
            "person needs a bound on the number of rows of one person.",
            'Add max_rows_per_person = NUMBER, or per_person = "mean" or "sum" for one row per person.',
        )
    for word in ("missing_values", "largest_weight"):
        if word in rest:
            rest[word] = _floats(rest[word])
    sources = tuple(_column(name, about) for name, about in columns.items())
    dates = [column.name for column in sources if isinstance(column, Numeric) and column.date]
    if dates and rest.get("per_person") == "sum":
        raise InputError(
            "E148",
            f"per_person = 'sum' would add up the dates of column {quoted(dates[0])}.",
            'Write per_person = "mean", or leave dates out.',
        )
    hidden = {check_name(name) for name, about in columns.items() if about.get("feature") is False}
    derived = given.get("derived", {})
    rules = {
        name: {word: _floats(value) for word, value in about.items()} if isinstance(about, Mapping) else about
        for name, about in (derived.items() if isinstance(derived, Mapping) else ())
    }
    derived_ones = derived_columns(sources, rules if isinstance(derived, Mapping) else derived)
    if isinstance(rest.get("weight"), str) and canonical(rest["weight"]) in {one.name for one in sources}:
        raise InputError(
            "E197",
            f"column {quoted(canonical(rest['weight']))} is the weight and also a column of its own.",
            "Take its [columns.NAME] table away: the release has a column for the weight already.",
        )
    return {
        "columns": (*(column for column in sources if column.name not in hidden), *derived_ones),
        "sources": sources if hidden or derived_ones else (),
        "file": Dialect.from_dict(given.get("file", {})),
        **rest,
    }


def toml_of(schema: Schema) -> str:
    """The text that ``read_toml`` turns back into this schema."""
    lines = [f"intercept = {str(schema.intercept).lower()}"]
    if schema.row_norm_bound is not None:
        lines.append(f"row_norm_bound = {toml_value(schema.row_norm_bound)}")
    lines += [f'missing = "{schema.missing}"']
    if schema.missing_values:
        lines.append(f"missing_values = {_toml_list(schema.missing_values)}")
    lines.append(f"max_rows_per_person = {schema.max_rows_per_person}")
    if schema.person is not None:
        lines.append(f"person = {toml_value(schema.person)}")
        lines += [] if schema.per_person is None else [f'per_person = "{schema.per_person}"']
    elif schema.enforced:  # of a release, which does not know what the column is called
        lines.append(f"# {schema.person_words}")
    if schema.ignore_extra:
        lines.append("ignore_extra = true")
    if schema.left_out:
        lines.append(f"left_out = {_toml_list(schema.left_out)}")
    if schema.weight is not None and schema.largest_weight is not None:
        lines += [
            f"weight = {toml_value(schema.weight)}",
            f"largest_weight = {toml_value(schema.largest_weight)}",
        ]
        if schema.weight_power != 1:
            lines.append(f"weight_power = {toml_value(schema.weight_power)}")
    if words := schema.file.words():
        lines += ["", "[file]", *(f"{word} = {toml_value(mark)}" for word, mark in words.items())]
    released = {column.name: column for column in schema.columns}
    for source in schema.read_columns:
        if source.name == schema.weight:
            continue
        said = column_words(released.get(source.name, source), schema.missing_values)
        said |= {} if source.name in released else {"feature": False}
        lines += ["", f"[columns.{toml_key(source.name)}]"]
        for word, value in said.items():
            lines.append(f"{word} = {_toml_list(value) if isinstance(value, tuple) else toml_value(value)}")
    derived = [column for column in schema.columns if column.expression is not None]
    lines += ["", "[derived]"] if derived else []
    lines += [f"{toml_key(column.name)} = {_derived(column)}" for column in derived]
    return "\n".join(lines) + "\n"


def column_words(column: Column, usual: tuple[Level, ...]) -> dict[str, Level | tuple[Level, ...]]:
    """What a file says of a column, in the order in which it says it; not its missing values where they are usual."""
    said: dict[str, Level | tuple[Level, ...] | None]
    if isinstance(column, Numeric):
        said = {word: getattr(column, word) for word in ("lower", "upper", "centre", "scale")}
    else:
        said = {
            "levels": column.levels,
            "exhaustive": True if column.exhaustive else None,
            "otherwise": column.otherwise,
        }
    said |= {"missing": column.missing, "fill": column.fill}
    if isinstance(column, Numeric) and column.date:
        dated = {word: said[word] for word in ("lower", "upper", "fill")}
        said |= {word: moment_text(value) for word, value in dated.items() if isinstance(value, float)}
    if (column.missing_values or ()) != usual:
        said["missing_values"] = column.missing_values or ()
    said |= {"label": column.label or None, "unit": column.unit or None}
    return {word: value for word, value in said.items() if value is not None}


def _derived(column: Column) -> str:
    """What stands behind the name of a derived column: its expression, and what else is said of it."""
    words = ("missing", "fill", "centre", "scale", "label", "unit")
    more = {word: getattr(column, word, None) for word in words}
    said = [f"{word} = {toml_value(value)}" for word, value in more.items() if value not in (None, "")]
    text = toml_text(column.expression or "")
    return f"{{ {', '.join([f'expression = {text}', *said])} }}" if said else text


def _column(name: str, about: object) -> Column:
    where = f"column {brief(name)}"
    if not isinstance(about, Mapping):
        raise InputError("E122", f"{where}: expected lower and upper, or levels.")
    rules = {"missing", "fill", "missing_values", "label", "unit"}
    coded = {"exhaustive", "otherwise"}
    _only(about, {"lower", "upper", "levels", "centre", "scale", "feature"} | coded | rules, where)
    if not isinstance(about.get("feature", True), bool):
        raise InputError("E178", f"{where}: feature must be true or false.")
    if about.get("feature") is False and (extra := [w for w in ("missing", "centre", "scale") if w in about]):
        raise InputError(
            "E178",
            f"{where} has feature = false, so it cannot have {extra[0]}.",
            f"Write {extra[0]} in the derived columns instead.",
        )
    if any(_is_date(about.get(word)) for word in ("lower", "upper")):
        return _date_column(name, about, where)
    own = {word: _floats(value) for word, value in about.items() if word in rules}
    if "levels" in about and not {"lower", "upper", "centre", "scale"} & about.keys():
        levels = about["levels"]
        if not isinstance(levels, list | tuple):
            raise InputError("E122", f"{where}: levels must be a list.")
        own |= {word: _floats(about[word]) for word in coded if word in about}
        return Categorical(name=name, levels=tuple(_floats(levels)), **own)
    if named := sorted(coded & about.keys()):
        raise InputError(
            "E165", f"{where}: {named[0]} is for a column with levels.", "Give levels, or leave it out."
        )
    if "levels" not in about and {"lower", "upper"} <= about.keys():
        own |= {word: _floats(about[word]) for word in ("centre", "scale") if word in about}
        return Numeric(name=name, lower=about["lower"], upper=about["upper"], **own)
    raise InputError("E122", f"{where}: give lower and upper, or levels, and not both.")


def _date_column(name: str, about: Mapping[str, Any], where: str) -> Column:
    """A column of dates, which is read for derived columns alone."""
    known = {"lower", "upper", "fill", "missing_values", "feature", "label"}
    _only(about, known, f"{where}, whose bounds are texts and which is therefore a column of dates,")
    if about.get("feature") is not False:
        raise InputError(
            "E178",
            f"{where} has bounds that are dates, and a date is no feature of the release.",
            "Add feature = false, and derive numbers from it: year(a), days(a - b).",
        )
    ends: dict[str, Any] = {
        word: _moment(about[word], f"{where}: {word}") for word in ("lower", "upper", "fill") if word in about
    }
    if len(ends.keys() & {"lower", "upper"}) < 2:
        raise InputError("E122", f"{where}: give lower and upper, or levels, and not both.")
    more: Any = {word: _floats(about[word]) for word in ("missing_values", "label") if word in about}
    return Numeric(name=name, date=True, **ends, **more)


def _is_date(given: object) -> bool:
    return isinstance(given, date) or (isinstance(given, str) and moment(given) is not None)


def _moment(given: object, where: str) -> float:
    """A date of the file, as a text or as TOML writes dates, in seconds since the beginning of 1970."""
    seconds = moment(given.isoformat() if isinstance(given, date) else str(given))
    if seconds is None:
        raise InputError("E178", f"{where} is no date: got {brief(given)}.", 'Write "2024-12-31".')
    return seconds


def _floats(given: Any) -> Any:
    """Exact decimals of the file as floats, also within a list."""
    if isinstance(given, list | tuple):
        return [_floats(value) for value in given]
    try:
        return float(given) if isinstance(given, Fraction) else given
    except OverflowError:
        return math.inf  # to be refused


def _only(given: Mapping[str, Any], allowed: set[str], where: str) -> None:
    for word in given:
        if word not in allowed:
            known = ", ".join(sorted(allowed))
            raise InputError("E122", f"{where} has an unknown entry {brief(word)!r}.", f"Known: {known}.")


def _decimal(text: str) -> Fraction | float:
    """A decimal of the file as the exact number it says; ``nan`` and ``inf`` stay floats, to be refused."""
    plain = text.replace("_", "")  # which TOML allows between digits
    try:
        return exact(plain)
    except ValueError:
        return float(plain)


def _toml_list(values: Sequence[Level]) -> str:
    return f"[{', '.join(map(listed_value, values))}]"


def listed_value(value: Level) -> str:
    """A value of a list, such as a level. A float stays one, since its level is named after it.

    >>> listed_value(1.0), listed_value(1), listed_value("F")
    ('1.0', '1', '"F"')
    """
    return repr(value) if isinstance(value, float) else toml_value(value)


def toml_value(value: Level | Fraction) -> str:
    """A text, a number or a truth as TOML writes it.

    >>> toml_value("NA"), toml_value(3.0), toml_value(Fraction(1, 3)), toml_value(True)
    ('"NA"', '3', '"1/3"', 'true')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return toml_text(value)
    if isinstance(value, Fraction):
        text = decimal_text(value)
        return f'"{text}"' if "/" in text else text
    return repr(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(value)
