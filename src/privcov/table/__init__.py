"""Any table, as blocks of cells in schema order: CSV, Parquet, Arrow, frames, arrays.

``open_table`` compares column names and types with the schema and refuses what does not fit *before* a value
is read. After that there is no error, message, count or shape that depends on a value: a cell that cannot be
used is missing, and what happens to a missing cell is a public rule of the schema.
"""

from __future__ import annotations

from privcov.table.base import Table
from privcov.table.opening import open_table
from privcov.table.types import Glance, glance

__all__ = ["Glance", "Table", "glance", "open_table"]
