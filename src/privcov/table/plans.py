"""Which lazy tables may be read: those whose plan, a public fact, shows that no cell can stop the reading.

A lazy table computes while it is read, which is after the budget is paid. Where it parses or casts, one person's cell
can raise an error, and whether it did is then seen from outside. So a plan is walked before anything is paid, and
each step has to be on a list of those that give typed values whatever the cells hold, row by row. What is not on the
list is refused; nobody needs to know how it might fail. The walks of polars and DuckDB are below, those of
datasets and clusters stand beside their readers; the remedy is always to compute first. Which steps are listed:
docs/explain/sharp-edges.md.
"""

from __future__ import annotations

import glob
import json
from collections.abc import Callable, Mapping
from typing import Any, Never

from privcov.errors import InputError


class Unlisted(Exception):
    """A step that is not on the list; its text names a kind of step, never a value."""


def walked(what: str, walk: Callable[[], None], *, remedy: str) -> None:
    """Run a walk; one line where it meets a step that is not listed, or a plan that it cannot follow."""
    try:
        walk()
    except Unlisted as step:
        why = str(step)
    except Exception:  # another version of the library, or a query that the library itself refuses
        why = "a plan that cannot be followed"
    else:
        return
    raise InputError(
        "E150",
        f"{what} holds {why}: a single cell could stop the reading after the budget is paid.",
        remedy,
    )


def refuse_stream(data: Any) -> Never:
    """Refuse an Arrow stream: nobody can know what is computed while it is read."""
    raise InputError(
        "E129",
        f"a {type(data).__name__} gives its rows as a stream, so an error while reading would come after payment.",
        "Read it into memory first, by pyarrow.table(…) or its read_all(), or copy it: with privcov.spooled(…).",
    )


# -- polars ------------------------------------------------------------------------------------------------------
# Rows in memory and numbers of Parquet files, selected, filtered and computed row by row.

_COMPARED = {"Eq", "NotEq", "Lt", "LtEq", "Gt", "GtEq", "EqValidity", "NotEqValidity"}
_LOGICAL = {"And", "Or", "Xor", "LogicalAnd", "LogicalOr"}
_ARITHMETIC = {"Plus", "Minus", "Multiply", "TrueDivide"}
_ASKED = {"IsNull", "IsNotNull", "IsNan", "IsNotNan", "IsFinite", "IsInfinite", "IsBetween", "Not"}
_NUMBERS = {"number", "flag", "null", "Decimal"}
_WITHIN = {"BinaryExpr": ("left", "right"), "Cast": ("expr",), "Ternary": ("predicate", "truthy", "falsy")}
_NOT_STRICT = 1
"""What polars writes for a cast that gives null where it fails."""


def check_lazy_frame(frame: Any) -> None:
    """Walk the plan of a frame that has the declared columns alone, twice.

    As written, so that a refusal does not hang on what an optimiser knows of the rows; and as it will run, to see
    which columns of files are read. Texts of Parquet files are not listed, because polars raises where one of them is
    not UTF-8, and privcov's own reader does not.
    """

    def walk() -> None:
        import polars as pl

        plan = frame._ldf
        flags = pl.QueryOptFlags.none()._pyoptflags
        _PolarsPlan(plan.with_optimizations(flags).visit(), runs=False).check()
        _PolarsPlan(plan.visit(), runs=True).check()

    walked(
        "the lazy frame",
        walk,
        remedy="Give frame.collect(), or the path of a CSV or Parquet file, which cannot fail so.",
    )


class _PolarsPlan:
    """polars' own typed plan, in which the casts that polars adds by itself are seen too."""

    def __init__(self, plan: Any, *, runs: bool) -> None:
        self._plan = plan
        self._runs = runs

    def check(self) -> bool:
        """The current node and everything below it; whether rows of files are read."""
        node, inputs = self._plan.view_current_node(), list(self._plan.get_inputs())
        kind = type(node).__name__
        if kind == "Scan":
            self._check_scan(node)
        elif kind in ("Filter", "Select", "HStack"):
            self._plan.set_node(inputs[0])  # what comes in gives an expression its types
            found = {"Filter": "predicate", "Select": "expr", "HStack": "exprs"}[kind]
            numbers = [one.node for one in _listed(getattr(node, found))]
            for number in numbers:
                self._type(number)
            if kind == "Select" and not any(map(self._has_column, numbers)):
                raise Unlisted("a selection without a column")
        elif kind == "DataFrameScan":
            if node.selection is not None:
                raise Unlisted("a filter inside a frame")
        elif kind not in ("SimpleProjection", "Union", "Cache") or getattr(node, "slice", None) is not None:
            raise Unlisted(f"the step {kind}")
        files = kind == "Scan"
        for place in inputs:
            self._plan.set_node(place)
            files = self.check() or files
        if kind == "Filter" and files:
            self._plan.set_node(inputs[0])
            self._check_pushed(node.predicate.node)
        return files

    def _check_pushed(self, number: int) -> None:
        """Refuse what polars might compute of the least and the largest number of a row group, to leave it out.

        A sum that wraps around is not between the sums of the two, so that one large number took other rows along.
        """
        expression = self._plan.view_expression(number)
        name = type(expression).__name__
        if name == "BinaryExpr" and _word(expression.op) in _ARITHMETIC:
            raise Unlisted("arithmetic in a filter of a Parquet file")
        if name == "Function" and _word(expression.function_data[0]) not in {*_ASKED, "IsIn"}:
            raise Unlisted("a computed value in a filter of a Parquet file")
        if name == "Cast":
            source = self._type(expression.expr)
            if not (source == expression.dtype or expression.dtype.is_float() or _nature(source) == "null"):
                raise Unlisted("a cast in a filter of a Parquet file")
        if name == "Ternary":
            raise Unlisted("a choice in a filter of a Parquet file")
        for part in _within(expression):
            self._check_pushed(part)

    def _check_scan(self, node: Any) -> None:
        if node.scan_type[0] != "parquet":
            raise Unlisted(f"a scan of {node.scan_type[0]}")
        if node.predicate is not None:
            self._type(node.predicate.node)
            self._check_pushed(node.predicate.node)
        if self._runs and not {_nature(kind) for kind in self._plan.get_schema().values()} <= _NUMBERS:
            raise Unlisted("texts or other values of a Parquet file that are no numbers")

    def _has_column(self, number: int) -> bool:
        expression = self._plan.view_expression(number)
        return type(expression).__name__ == "Column" or any(map(self._has_column, _within(expression)))

    def _type(self, number: int) -> Any:
        """The type of an expression, once it and all within it are listed."""
        expression = self._plan.view_expression(number)
        name, types = type(expression).__name__, [self._type(part) for part in _within(expression)]
        alike = len({_nature(kind) for kind in types} - {"null"}) <= 1
        if name == "Literal":
            _check_constant(expression.value)
        elif name == "Cast":
            _check_cast(types[0], expression.dtype, strict=expression.options != _NOT_STRICT)
        elif name == "BinaryExpr":
            _check_operation(_word(expression.op), {_nature(kind) for kind in types} - {"null"})
        elif name == "Function":
            word = _word(expression.function_data[0])
            member = word == "IsIn" and types[1].inner == types[0]
            if not (member or (alike and (word in _ASKED or word == "fill_null"))):
                raise Unlisted(f"the function {word}")
        elif name != "Column" and not (name == "Ternary" and types[1] == types[2]):
            raise Unlisted(f"the expression {name}")
        return self._plan.get_dtype(number)


def _listed(found: Any) -> list[Any]:
    return list(found) if isinstance(found, list | tuple) else [found]


def _within(expression: Any) -> list[int]:
    kind = type(expression).__name__
    return (
        list(expression.input)
        if kind == "Function"
        else [getattr(expression, n) for n in _WITHIN.get(kind, ())]
    )


def _word(symbol: object) -> str:
    return str(symbol).rpartition(".")[2]


def _nature(kind: Any) -> str:
    """What a polars type is, as far as the list tells types apart; the arithmetic of decimals raises."""
    name: str = kind.base_type().__name__
    if kind.is_numeric() and not kind.is_decimal():
        return "number"
    return {"Boolean": "flag", "String": "text", "Null": "null"}.get(name, name)


def _check_constant(value: object) -> None:
    """A plain value or a list of them; a series has a length of its own, which the rows may not have."""
    if not all(one is None or isinstance(one, bool | int | float | str) for one in _listed(value)):
        raise Unlisted("a constant that is no plain value")


def _check_operation(word: str, natures: set[str]) -> None:
    wanted = {"number", "flag", "text"} if word in _COMPARED else {"flag"} if word in _LOGICAL else {"number"}
    if word not in _COMPARED | _LOGICAL | _ARITHMETIC or len(natures) > 1 or not natures <= wanted:
        raise Unlisted(f"the operation {word} on {' and '.join(sorted(natures))}")


def _check_cast(source: Any, target: Any, *, strict: bool) -> None:
    """Casts that give null where they fail; a strict one only where it cannot."""
    pair = _nature(source), _nature(target)
    if source == target or pair[0] == "null":
        return
    if not {*pair} <= {"number", "flag", "text"}:
        raise Unlisted(f"a cast to {target}")
    if strict and pair != ("flag", "number") and not (pair[0] == "number" and target.is_float()):
        raise Unlisted(f"a strict cast from {source} to {target}")


# -- DuckDB ------------------------------------------------------------------------------------------------------
# Plain columns of tables that DuckDB stores, and numbers of one Parquet file, with plain filters. The query is judged
# by its text, which DuckDB itself takes apart. What DuckDB shows of a plan would not do: it leaves out the expression
# behind a new name, and it depends on statistics of the rows.


_WHOLE = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT"}
_REAL = {"FLOAT", "DOUBLE"}
_PLAIN = _WHOLE | _REAL | {"BOOLEAN", "VARCHAR", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"}
_UNFILTERED = {f"{kind} of a Parquet file" for kind in _REAL}
_LARGEST = 2**63 - 1
_PLACE = {"query_location", "query_location_length", "alias", "qualified_name"}
Columns = Mapping[str, str]
"""The type of each column, by its name in lower case, which is how DuckDB compares names."""


def check_relation(relation: Any) -> None:
    """Walk the text of the query; tables are looked up in the catalogue, Parquet files in their metadata."""

    def walk() -> None:
        columns = _DuckQuery(relation).columns(_parsed(relation.sql_query()))
        for kind in columns.values():
            if kind not in _PLAIN | _UNFILTERED and not kind.startswith(("DECIMAL(", "ENUM(")):
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


class _DuckQuery:
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
    """The columns of one Parquet file; DuckDB raises on a text that is not UTF-8, so texts are of no listed type.

    Nor is a filter on floats: it leaves out whole row groups by their least and largest number, which do not count NaN,
    and a NaN is above all numbers to DuckDB. So whether such rows are read depended on other rows.
    """
    import duckdb

    if glob.has_magic(path):
        raise Unlisted("several Parquet files")
    with duckdb.connect() as apart:
        found = apart.sql("select * from read_parquet(?)", params=[path])
        columns = _named(found)
    own = {kind: f"{kind} of a Parquet file" for kind in {"VARCHAR", *_REAL}}
    return {name: own.get(kind, kind) for name, kind in columns.items()}


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
