"""A codebook, one line a column, as a schema; and a schema as a codebook, for people who keep theirs in a spreadsheet.

The cells of a line are the words of a ``[columns.NAME]`` table, under a header that names them; ``name`` must be there,
any other may be left away. Levels and missing values are lists with commas, in one cell; what has a comma or a backtick
stands between backticks. Levels that are all numbers are numbers, unless backticks say that they are texts.

>>> book = 'name,lower,upper,levels,label,unit\\nage,0,100,,Age,years\\nsex,,,"F, M",Sex,\\n'
>>> schema = schema_of(book, "people.csv")
>>> [column.title for column in schema.columns]
['Age (years)', 'Sex']
>>> codebook_of(schema) == book
True
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from privcov.errors import InputError, PrivcovError
from privcov.privacy import exact
from privcov.schema.columns import Level
from privcov.schema.dialect import moment
from privcov.schema.names import canonical, split_list
from privcov.schema.schema import Schema
from privcov.schema.toml import column_words, declarations, listed_value, toml_value
from privcov.text import files
from privcov.text.grammar import brief

_USUAL = ("name", "lower", "upper", "levels", "label", "unit")
_MORE = ("centre", "scale", "exhaustive", "otherwise", "missing", "fill", "missing_values", "feature")
_LEVELS = frozenset({"fill", "otherwise"})
_NUMBERS = frozenset({"lower", "upper", "centre", "scale"})
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
"""A number as nobody means a text: without a zero in front, as a postal code has."""
_OTHERS = ";|"
"""What others put between the values of a list: a list of one value with such a mark was meant to have more."""
_MOST_BYTES = 16 * 2**20


def read_codebook(path: str | Path) -> Schema:
    """The schema of a codebook in a file of lines: UTF-8, cells separated by commas, semicolons or tabs."""
    try:
        with files.opened(path) as file:
            content = file.read(_MOST_BYTES + 1)
        text = content.decode("utf-8-sig")
    except OSError as reason:
        raise InputError("E119", f"cannot read the codebook {path}: {reason.strerror}.") from None
    except UnicodeDecodeError:
        raise InputError("E105", f"the codebook {path} is not UTF-8 text.", "Save it as UTF-8.") from None
    if len(content) > _MOST_BYTES:
        raise InputError("E194", f"the codebook {path} is too large: at most 16 MiB are read.")
    return schema_of(text, str(path))


def schema_of(text: str, where: str) -> Schema:
    """The schema that the text of a codebook means; ``where`` it is from, for messages."""
    columns: dict[str, dict[str, Any]] = {}
    for line, words in _lines(text, where):
        name = canonical(words.pop("name", ""))
        if not name:
            raise _malformed(where, line, "the line has no name.", "Write the name of a column of the table.")
        if name in columns:
            raise _malformed(where, line, f"column {brief(name)} is there twice.", "Keep one of the lines.")
        try:
            columns[name] = {word: _value(word, cell) for word, cell in words.items()}
            if declarations({"columns": {name: columns[name]}})[
                "columns"
            ]:  # else it is read for derived ones alone
                Schema.from_dict({"columns": {name: columns[name]}})
        except PrivcovError as error:
            raise InputError(error.code, f"{where}, line {line}: {error.sentence}", error.remedy) from None
    if not columns:
        raise InputError("E194", f"the codebook {where} has no column.", "Write one line for each column.")
    return Schema.from_dict({"columns": columns})


def codebook_of(schema: Schema) -> str:
    """The codebook that ``schema_of`` turns back into the columns of this schema."""
    released = {column.name: column for column in schema.columns}
    rows = [
        {"name": column.name, **column_words(released.get(column.name, column), ())}
        | ({} if column.name in released else {"feature": False})
        for column in schema.read_columns
        if column.name != schema.weight
    ]
    heads = [*_USUAL, *(word for word in _MORE if any(word in row for row in rows))]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(heads)
    writer.writerows([_cell(word, row.get(word, "")) for word in heads] for row in rows)
    return text.getvalue()


def table_words(schema: Schema) -> list[str]:
    """What a schema says of the whole table, in words of its file: a codebook has no place for it.

    >>> table_words(Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}}, "max_rows_per_person": 5}))
    ['max_rows_per_person']
    """
    # A codebook has the missing values of every column, and that a bound is enforced follows from the person.
    elsewhere = ("columns", "sources", "missing_values", "enforced")
    said = [field for field in fields(schema) if field.name not in elsewhere]
    found = [field.name for field in said if getattr(schema, field.name) != field.default]
    return [*found, *(["derived"] if any(c.expression is not None for c in schema.columns) else [])]


def _lines(text: str, where: str) -> Iterator[tuple[int, dict[str, str]]]:
    """The cells of every line that has any, under the words of the header, with the number of the line."""
    first = next(iter(text.splitlines()), "")
    separator = max(",;\t", key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    before = 0
    heads: list[str] = []
    try:
        for cells in reader:
            line, before = before + 1, reader.line_num
            trimmed = [cell.strip() for cell in cells]
            while trimmed and not trimmed[-1]:  # spreadsheets fill lines up to the longest one
                trimmed.pop()
            if not heads:
                heads = _heads([cell.lower() for cell in trimmed], where)
            elif len(trimmed) > len(heads):
                raise _malformed(
                    where,
                    line,
                    f"it has {len(trimmed)} cells, and the header {len(heads)}.",
                    'Put a cell with a separator between double quotes: "F, M".',
                )
            elif any(trimmed):
                yield line, {word: cell for word, cell in zip(heads, trimmed, strict=False) if cell}
    except csv.Error:
        raise _malformed(
            where,
            before + 1,
            "its cells cannot be told apart.",
            "Close every quote, write two for one inside a cell, and keep cells below 130,000 characters.",
        ) from None


def _heads(found: list[str], where: str) -> list[str]:
    known = (*_USUAL, *_MORE)
    if strange := [head for head in found if head not in known]:
        raise _malformed(
            where,
            1,
            f"the header has {brief(strange[0])!r}, which says nothing of a column.",
            f"Take that cell out of every line. Known: {', '.join(known)}.",
        )
    if "name" not in found or len(set(found)) < len(found):
        raise _malformed(
            where,
            1,
            "the first line must name the cells, each once.",
            f"Known: {', '.join(known)}. Only name must be there.",
        )
    return found


def _value(word: str, cell: str) -> Any:
    if word in ("lower", "upper", "fill") and moment(cell) is not None:
        return cell
    if word in _NUMBERS:
        try:
            return exact(cell)
        except (ValueError, ZeroDivisionError):
            raise InputError(
                "E194",
                f"{word} must be a number, or a date such as 2024-12-31; got {brief(cell)}.",
                "Write a decimal point, and no unit.",
            ) from None
    if word == "levels":
        pieces = _pieces(cell)
        numbers = all(_NUMBER.fullmatch(piece) for piece in pieces)
        return [_meant(piece) if numbers else _bare(piece) for piece in pieces]
    if word == "missing_values":
        return [_meant(piece) for piece in _pieces(cell)]
    if word in ("exhaustive", "feature"):
        return {"true": True, "false": False}.get(cell.lower(), cell)
    return _meant(cell) if word in _LEVELS else cell


def _pieces(cell: str) -> list[str]:
    """The values of a list; in a cell of several lines a line each, as spreadsheets write them."""
    lines = [line.strip().rstrip(",") for line in cell.splitlines() if line.strip()]
    try:
        found = split_list(",".join(lines))
    except InputError:
        found = []
    if not found or (len(found) == 1 and set(found[0]) & set(_OTHERS) and not found[0].startswith("`")):
        raise InputError(
            "E194",
            f"a list has single commas between its values, got {brief(cell)}.",
            "Put a value that has a comma, a backtick or another separator itself between backticks.",
        )
    return found


def _meant(piece: str) -> Level:
    if not _NUMBER.fullmatch(piece):
        return _bare(piece)
    return int(piece) if piece.lstrip("-").isdigit() else float(piece)


def _bare(piece: str) -> str:
    return piece[1:-1].replace("``", "`") if piece.startswith("`") else piece


def _cell(word: str, value: Level | tuple[Level, ...]) -> str:
    if isinstance(value, tuple):
        return ", ".join(_listed(one) for one in value if one != "")  # an empty cell is missing anyway
    if isinstance(value, str):
        return _listed(value) if word in _LEVELS else value
    return toml_value(value)


def _listed(value: Level) -> str:
    """A value as a list has it: a text between backticks where it would be read as something else."""
    if not isinstance(value, str):
        return listed_value(value)
    plain = not _NUMBER.fullmatch(value) and not set(value) & {",", "`", *_OTHERS}
    return value if plain else "`" + value.replace("`", "``") + "`"


def _malformed(where: str, line: int, sentence: str, remedy: str) -> InputError:
    return InputError("E194", f"{where}, line {line}: {sentence}", remedy)
