"""From any table to rows of float64, held in memory because every round reads them again.

The readers of ``privcov.table`` do the work. They need a schema for names and types; its bounds are used only
by ``bounding.py``, which plays no part here. A row that lacks a cell, or holds one that is not finite, is NaN
throughout and becomes the zero row when it is put on the integer grid (``moments.py``): a rule on that row alone,
so that nothing is ever dropped or reported.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from typing import Any

import numpy as np

from privcov.errors import InputError
from privcov.linalg.arrays import Floats
from privcov.schema import Numeric, Schema
from privcov.schema.names import check_name
from privcov.table import Table, open_table

MOST_COLUMNS = 4_096
"""What docs/proofs/unbounded.md is for; a release may have more."""


def column_names(data: Any, columns: Sequence[str] | None) -> tuple[str, ...]:
    """The columns to use: as given, or x1, x2, … for an array, whose columns have no names."""
    if columns is not None:
        if isinstance(columns, str):
            raise InputError("E124", "columns must be a list of names, got one text.", "Write ['name'].")
        return tuple(check_name(name) for name in columns)
    if isinstance(data, np.ndarray):
        if data.ndim != 2 or data.shape[1] == 0:
            raise InputError(
                "E111",
                f"the array has the shape {data.shape}.",
                "Give one row per person and one column per variable.",
            )
        return tuple(f"x{place + 1}" for place in range(data.shape[1]))
    raise InputError("E124", "columns must name the numeric columns to use.", "Only an array needs no names.")


def open_rows(data: Any, columns: Sequence[str]) -> Table:
    """A table that has these columns, as numbers; its values still unread."""
    if len(columns) > MOST_COLUMNS:
        raise InputError(
            "E127",
            f"an estimate takes at most {MOST_COLUMNS:,} columns, got {len(columns):,}.",
            "Name fewer.",
        )
    schema = Schema(
        columns=tuple(Numeric(name=name, lower=-1, upper=1) for name in columns),
        intercept=False,
        ignore_extra=True,
    )
    return open_table(data, schema)


def read_rows(table: Table) -> Floats:
    """Every row once, in order; incomplete rows as NaN throughout."""
    blocks = [np.column_stack([*block]) for block in table.blocks()]
    rows = np.concatenate(blocks) if blocks else np.zeros((0, table.schema.dimension))
    rows[~np.isfinite(rows).all(axis=1)] = np.nan
    return rows


def fingerprint(rows: Floats, columns: Sequence[str], key: bytes) -> str:
    """Tells the holder of the key whether two tables are the same, rows in the same order: for a private ledger."""
    about = "\n".join((*columns, str(len(rows)), ""))
    return hmac.digest(key, about.encode("utf-8") + np.ascontiguousarray(rows).tobytes(), "sha256").hex()


def centred(rows: Floats, known_mean: Floats | None) -> Floats:
    """Rows of mean zero: less the known mean, or differences of neighbouring rows over √2.

    A person is in one difference, so neighbours under replace-one stay neighbours, of half as many rows. The
    last row of an odd number is left out, by its place. A difference of an incomplete row is incomplete.
    """
    with np.errstate(all="ignore"):
        if known_mean is not None:
            return rows - known_mean
        pairs = rows[: len(rows) // 2 * 2] * np.sqrt(0.5)
        return pairs[0::2] - pairs[1::2]
