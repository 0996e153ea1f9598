"""Lazy polars frames: rows in memory and numbers of Parquet files, selected, filtered and computed row by row."""

from __future__ import annotations

from typing import Any

from privcov.table.plans import Unlisted, walked

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
        _Plan(plan.with_optimizations(flags).visit(), runs=False).check()
        _Plan(plan.visit(), runs=True).check()

    walked(
        "the lazy frame",
        walk,
        remedy="Give frame.collect(), or the path of a CSV or Parquet file, which cannot fail so.",
    )


class _Plan:
    """polars' own typed plan, in which the casts that polars adds by itself are seen too."""

    def __init__(self, plan: Any, *, runs: bool) -> None:
        self._plan = plan
        self._runs = runs

    def check(self) -> None:
        """The current node and everything below it."""
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
        for place in inputs:
            self._plan.set_node(place)
            self.check()

    def _check_scan(self, node: Any) -> None:
        if node.scan_type[0] != "parquet":
            raise Unlisted(f"a scan of {node.scan_type[0]}")
        if node.predicate is not None:
            self._type(node.predicate.node)
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
