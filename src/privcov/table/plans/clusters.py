"""Spark and Dask frames: plain columns of Parquet or ORC files and of tables in memory, with plain filters."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from privcov.table.plans.arrow import check_files
from privcov.table.plans.steps import Unlisted, walked

_REMEDY = "Write it to Parquet first, or give the paths of CSV or Parquet files with engine={!r}."

_SPARK_FORMATS = ("ParquetFileFormat", "OrcFileFormat")
_SPARK_STEPS = {
    "Project", "Filter", "SubqueryAlias", "View", "Union", "Repartition", "RepartitionByExpression",
    "LogicalRelation", "LocalRelation", "Range",
    "AttributeReference", "Alias", "Literal", "And", "Or", "Not", "IsNull", "IsNotNull", "IsNaN", "In",
    "EqualTo", "EqualNullSafe", "LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual",
}  # fmt: skip
_SPARK_NUMBERS = ("boolean", "byte", "short", "integer", "long", "float", "double")


def check_spark_frame(frame: Any) -> None:
    """Walk the analysed plan, in which Spark has written every cast of its own.

    A CSV scan is refused in every mode: a line of more cells than ``maxColumns`` ends the job also where bad lines are
    permitted. So is an RDD, which may run Python for each row.
    """

    def walk() -> None:
        plan = frame._jdf.queryExecution().analyzed()
        for node, following in _spark_nodes(json.loads(plan.toJSON())):
            name = _short(node["class"])
            if name == "Cast" and following is not None:
                _check_spark_cast(str(node["dataType"]), following)
            elif name not in _SPARK_STEPS:
                raise Unlisted(f"the step {name}")
        leaves = plan.collectLeaves()
        for place in range(leaves.size()):
            leaf = leaves.apply(place)
            if leaf.getClass().getSimpleName() == "LogicalRelation":
                kind = leaf.relation().fileFormat().getClass().getSimpleName()
                if kind not in _SPARK_FORMATS:
                    raise Unlisted(f"{kind.removesuffix('FileFormat')} files")

    walked("the Spark frame", walk, remedy=_REMEDY.format("spark"))


def _spark_nodes(tree: Any) -> Iterator[tuple[dict[str, Any], dict[str, Any] | None]]:
    """Every step and expression of a plan, with the one that is written after it: its first child, if it has one."""
    if isinstance(tree, dict):
        for value in tree.values():
            yield from _spark_nodes(value)
    elif isinstance(tree, list):
        for item, following in zip_longest(tree, tree[1:]):
            if isinstance(item, dict) and "num-children" in item:
                yield item, following
            yield from _spark_nodes(item)


def _check_spark_cast(target: str, child: dict[str, Any]) -> None:
    """Casts of constants, whose failure is public, and of numbers to floating point."""
    number = child.get("dataType") in _SPARK_NUMBERS and target in ("float", "double")
    if _short(child["class"]) != "Literal" and not (
        _short(child["class"]) == "AttributeReference" and number
    ):
        raise Unlisted(f"a cast to {target}")


def _short(name: str) -> str:
    return name.rpartition(".")[2]


_DASK_COMPARISONS = {"GT", "GE", "LT", "LE", "EQ", "NE"}
_DASK_STEPS = _DASK_COMPARISONS | {
    "FromPandas", "ReadParquetFSSpec", "Projection", "RenameFrame", "Filter", "And", "Or", "Invert", "Repartition",
}  # fmt: skip


def check_dask_frame(frame: Any) -> None:
    """Walk the expression tree. A column of objects from pandas is refused: Dask turns each of them into a text."""

    def walk() -> None:
        for step in frame.expr.walk():
            name = type(step).__name__
            if name not in _DASK_STEPS or not type(step).__module__.startswith("dask."):
                raise Unlisted(f"the step {name}")
            if name == "ReadParquetFSSpec":
                check_files(step._dataset_info["ds"], step.columns)
            elif name == "FromPandas" and any(
                kind.name == "object" for kind in step.operand("frame")._data.dtypes
            ):
                raise Unlisted("a column of objects")
            elif name in _DASK_COMPARISONS:
                _check_dask_comparison(step)

    walked("the Dask frame", walk, remedy=_REMEDY.format("dask"))


def _check_dask_comparison(step: Any) -> None:
    """Numbers with numbers, texts with texts; pandas raises on the rest."""
    kinds = {_dask_nature(side) for side in (step.left, step.right)}
    if len(kinds) > 1 or "other" in kinds:
        raise Unlisted("a comparison of different types")


def _dask_nature(side: Any) -> str:
    kind = getattr(getattr(side, "_meta", None), "dtype", None)
    if kind is None:
        return "text" if isinstance(side, str) else "number" if isinstance(side, int | float) else "other"
    return {"f": "number", "i": "number", "u": "number", "b": "number"}.get(
        kind.kind, "text" if type(kind).__name__ == "StringDtype" else "other"
    )
