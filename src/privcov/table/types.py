"""Column names and types of a file, for a schema template: what a person would see at a glance, no bound."""

from __future__ import annotations

import csv
from pathlib import Path

from privcov.errors import InputError
from privcov.table.headers import read_header
from privcov.table.parquet import read_kinds

_GLANCE_LINES = 200
_GLANCE_BYTES = 2**20


def column_types(path: str | Path) -> dict[str, str]:
    """Every column's name and whether it looks ``numeric`` or like ``text``.

    A CSV column looks numeric when most of the first lines parse as numbers. The person who fills in the
    template confirms or corrects it; no value, level or bound is written anywhere.
    """
    given = Path(path)
    if given.suffix.lower() == ".csv":
        return _csv_types(given)
    if given.suffix.lower() in (".parquet", ".pq"):
        return {name: "numeric" if number else "text" for name, number in read_kinds(given).items()}
    raise InputError("E118", f"{given.name} is neither a .csv nor a .parquet file.")


def _csv_types(path: Path) -> dict[str, str]:
    names, rest = read_header(path, then=_GLANCE_BYTES)
    lines = rest.decode("utf-8", errors="replace").splitlines()[:_GLANCE_LINES]
    rows = [row for row in csv.reader(lines) if len(row) == len(names)]
    types = {}
    for place, name in enumerate(names):
        cells = [row[place].strip() for row in rows if row[place].strip()]
        types[name] = "numeric" if 2 * sum(map(_is_number, cells)) > len(cells) else "text"
    return types


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
