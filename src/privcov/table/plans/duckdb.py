"""DuckDB relations: plain columns of tables that DuckDB stores, and numbers of one Parquet file, with plain filters.

The query is judged by its text, which DuckDB itself takes apart. What DuckDB shows of a plan would not do: it leaves
out the expression behind a new name, and it depends on statistics of the rows.
"""

from __future__ import annotations

import glob
import json
from collections.abc import Mapping
from typing import Any

from privcov.table.plans import Unlisted, walked

_WHOLE = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT"}
_REAL = {"FLOAT", "DOUBLE"}
_PLAIN = _WHOLE | _REAL | {"BOOLEAN", "VARCHAR", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"}
_LARGEST = 2**63 - 1
_PLACE = {"query_location", "query_location_length", "alias", "qualified_name"}
Columns = Mapping[str, str]
"""The type of each column, by its name in lower case, which is how DuckDB compares names."""


def check_relation(relation: Any) -> None:
    """Walk the text of the query; tables are looked up in the catalogue, Parquet files in their metadata."""

    def walk() -> None:
        columns = _Query(relation).columns(_parsed(relation.sql_query()))
        for kind in columns.values():
            if kind not in _PLAIN and not kind.startswith(("DECIMAL(", "ENUM(")):
                raise Unlisted(f"a column of type {kind}")

    walked(
        "the DuckDB relation",
        walk,
        remedy="Give relation.to_arrow_table(), or the path of a CSV or Parquet file, which cannot fail so.",
    )


def _parsed(query: str) -> Any:
    import duckdb

    with duckdb.connect() as apart:
        found = apart.execute("select json_serialize_sql(?)", [query]).fetchone()
    (statement,) = json.loads(found[0] if found else "{}")["statements"]
    return statement["node"]


class _Query:
    def __init__(self, relation: Any) -> None:
        self._relation = relation

    def columns(self, node: Any) -> Columns:
        """What a query gives, once every part of it is listed."""
        _only(
            node,
            {"type": "SELECT_NODE", "aggregate_handling": "STANDARD_HANDLING"},
            "select_list",
            "from_table",
            "where_clause",
        )
        source = self._source(node["from_table"])
        if node["where_clause"] is not None:
            _check_filter(node["where_clause"], source)
        found: dict[str, str] = {}
        for item in node["select_list"]:
            if item["class"] == "STAR":
                _only(item, {"class": "STAR", "type": "STAR"})
                found.update(source)
            else:
                found[(item["alias"] or item["column_names"][-1]).lower()] = _column(item, source)
        return found

    def _source(self, table: Any) -> Columns:
        kind = table["type"]
        if kind == "SUBQUERY":
            _only(table, {"type": kind}, "subquery")
            return self.columns(table["subquery"]["node"])
        if kind == "BASE_TABLE":
            _only(table, {"type": kind}, "table_name", "schema_name", "catalog_name")
            return self._stored(table)
        if kind != "TABLE_FUNCTION":
            raise Unlisted(f"a source of the kind {kind}")
        _only(table, {"type": kind, "with_ordinality": "WITHOUT_ORDINALITY"}, "function")
        function = table["function"]
        if function["function_name"] not in ("read_parquet", "parquet_scan"):
            raise Unlisted(f"the function {function['function_name']}")
        first, *settings = function["arguments"]
        if any(item["expression"]["literal"] != {"kind": "BOOLEAN", "text": "false"} for item in settings):
            raise Unlisted("settings of a Parquet scan")
        first = first["expression"]
        if first["class"] == "FUNCTION" and first["function_name"] == "list_value":
            (only,) = first["arguments"]
            first = only["expression"]
        return _parquet(_constant(first)[1])

    def _stored(self, table: Any) -> Columns:
        """The columns of a table that DuckDB stores; not a view, a frame of Python, or a table of another database."""
        name = table["table_name"]
        quoted = "'" + name.lower().replace("'", "''") + "'"
        views = self._asked(f"select view_name from duckdb_views() where lower(view_name) = {quoted}")
        tables = self._asked(
            "select t.sql, d.type from duckdb_tables() t join duckdb_databases() d using (database_name) "
            f"where lower(t.table_name) = {quoted}"
        )
        if not views and not tables and name.lower().endswith((".parquet", ".pq")):
            return _parquet(name)
        if views or len(tables) != 1 or tables[0][1] != "duckdb" or "GENERATED" in tables[0][0].upper():
            raise Unlisted("a source that is not one plain table of DuckDB")
        whole = '"."'.join(
            part.replace('"', '""') for part in (table["catalog_name"], table["schema_name"], name) if part
        )
        return _named(self._relation.query("privcov_relation", f'select * from "{whole}"'))

    def _asked(self, question: str) -> list[tuple[str, ...]]:
        found: list[tuple[str, ...]] = self._relation.query("privcov_relation", question).fetchall()
        return found


def _parquet(path: str) -> Columns:
    """The columns of one Parquet file; DuckDB raises on a text that is not UTF-8, so texts are of no listed type."""
    import duckdb

    if glob.has_magic(path):
        raise Unlisted("several Parquet files")
    with duckdb.connect() as apart:
        found = apart.sql("select * from read_parquet(?)", params=[path])
        columns = _named(found)
    texts = {"VARCHAR": "VARCHAR of a Parquet file"}
    return {name: texts.get(kind, kind) for name, kind in columns.items()}


def _named(relation: Any) -> Columns:
    return {name.lower(): str(kind) for name, kind in zip(relation.columns, relation.types, strict=True)}


def _only(node: Mapping[str, Any], fixed: Mapping[str, object], *known: str) -> None:
    """Refuse a part of a query that says anything beyond the known keys."""
    for key, value in node.items():
        if key in fixed and value != fixed[key]:
            raise Unlisted(f"a part of the kind {value}")
        if key not in {*fixed, *known, *_PLACE} and value not in (None, [], "", False, {"map": []}):
            raise Unlisted(f"a clause {key}")


def _column(item: Any, source: Columns) -> str:
    if item["class"] != "COLUMN_REF":
        raise Unlisted(f"an expression of the kind {item['type']}")
    return source[item["column_names"][-1].lower()]


def _constant(item: Any) -> tuple[str, str]:
    if item["class"] != "CONSTANT":
        raise Unlisted(f"an expression of the kind {item['type']}")
    return item["literal"]["kind"], item["literal"]["text"]


def _check_filter(item: Any, source: Columns) -> None:
    """Comparisons of a column with constants of its own sort, joined by and, or, not."""
    kind, children = item["type"], item.get("children", [])
    if kind in ("CONJUNCTION_AND", "CONJUNCTION_OR", "OPERATOR_NOT"):
        for child in children:
            _check_filter(child, source)
    elif kind in ("OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL"):
        _check_sort(_column(children[0], source))
    elif kind == "COMPARE_IN":
        _check_sort(_column(children[0], source), *children[1:])
    elif kind == "COMPARE_BETWEEN":
        _check_sort(_column(item["input"], source), item["lower"], item["upper"])
    elif item["class"] == "COMPARISON":
        sides = sorted((item["left"], item["right"]), key=lambda side: side["class"] == "CONSTANT")
        _check_sort(_column(sides[0], source), sides[1])
    else:
        raise Unlisted(f"a filter of the kind {kind}")


def _check_sort(column: str, *constants: Any) -> None:
    """Refuse constants for which DuckDB might cast the column."""
    if column not in _PLAIN:
        raise Unlisted(f"a filter on {column}")
    for sort, text in map(_constant, constants):
        whole = sort == "INTEGER" and abs(int(text)) <= _LARGEST
        fits = {"VARCHAR": sort == "STRING", "BOOLEAN": sort == "BOOLEAN"}.get(
            column, column in _WHOLE and whole
        )
        if not fits and not (column in _REAL and sort in ("INTEGER", "NUMERIC")):
            raise Unlisted(f"a comparison of {column} with a constant of the kind {sort}")
