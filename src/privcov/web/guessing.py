"""What is publicly guessed about columns, for questions whose answer depends on the table; no release reads it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from privcov.privacy import decimal_text, exact
from privcov.schema import Categorical, Schema
from privcov.schema.names import toml_key, toml_text
from privcov.web.asking import Question, text


def even_guess(schema: Schema) -> list[dict[str, str]]:
    """For every column a guess that needs no knowledge: spread evenly over its bounds or levels."""
    found = []
    for column in schema.columns:
        if isinstance(column, Categorical):
            share = plain(10_000 // len(column.levels) / 10_000)  # rounded down: shares add up to at most 1
            found.append({"name": column.name, "shares": ", ".join([share] * len(column.levels))})
            continue
        std = column.half_width / math.sqrt(3)
        found.append({"name": column.name, "mean": f"{column.middle:.4g}", "std": f"{std:.4g}"})
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
