"""Tables that live in a cluster: Spark and Dask data frames. Their rows are summed where they are, never brought here.

The driver sees column names and types, and then one partial result per partition.

Spark and Dask frames: plain columns of Parquet or ORC files and of tables in memory, with plain filters.
"""

from __future__ import annotations

import itertools
import json
import re
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import partial
from itertools import zip_longest
from threading import Event, Thread
from typing import Any, Never

import numpy as np
import pyarrow as pa

from privcov.errors import InputError, InternalError
from privcov.schema import Schema
from privcov.schema.columns import Identifier
from privcov.table.arrow import check_columns
from privcov.table.base import Answer, Table, check_names, read_columns
from privcov.table.blocks import Block
from privcov.table.fragments import Arrived, Fragment
from privcov.table.frames import PandasTable, compared_as_texts
from privcov.table.lazy import check_files
from privcov.table.plans import Unlisted, walked
from privcov.table.shuffling import Joined, Sent, parts_of, spread

PATIENCE = 300.0
"""Seconds for which a job waits on a Dask cluster that has no worker; one that grows on demand needs some."""
_WAVE, _LEAST_WAVE = 4, 16
"""Tasks at a time for each that runs at once: enough to keep workers busy, few enough for one process to hold."""
_Attempt = Callable[[Any], Answer]
"""Called with what a worker has: an ``Arrived`` or a ``Joined``."""


class _ClusterTable(Table):
    def _blocks(self) -> Iterator[Block]:
        _stays(self.home)


class SparkTable(_ClusterTable):
    """A Spark data frame, read by ``mapInArrow``; a table that is also in files is read faster from those."""

    home = "spark"

    def __init__(self, frame: Any, schema: Schema) -> None:
        super().__init__(schema)
        from pyspark.sql.pandas.types import to_arrow_schema
        from pyspark.sql.types import StructField, StructType, TimestampNTZType, TimestampType

        fields = [  # the time zone of times is the session's, and says nothing about whether they fit
            StructField(field.name, TimestampNTZType()) if field.dataType == TimestampType() else field
            for field in frame.schema.fields
        ]
        try:
            found = to_arrow_schema(StructType(fields))
        except Exception:
            raise InputError(
                "E110",
                "the Spark frame has a column of a type that Arrow does not have.",
                "Select columns of numbers and texts.",
            ) from None
        places = check_columns(found, schema, "the Spark frame")
        names = [found.field(place).name for place in places]
        self._frame = frame.select(*("`" + name.replace("`", "``") + "`" for name in names))
        check_spark_frame(self._frame)
        self._kinds = pa.schema([found.field(place) for place in places])

    def asked_at_home(self, question: str) -> list[object]:
        return asked_of_spark(self._frame.sparkSession, question)

    def answers_at_home(self, attempt: _Attempt) -> Generator[Answer, None, None]:
        if self.schema.person is not None:
            yield from self._by_person(attempt)
            return
        part = partial(_spark_part, attempt=attempt, kinds=self._kinds)
        answers = self._frame.mapInArrow(part, "place int, rows long, answer binary").collect()
        for row in answers:
            yield row["place"], row["rows"], bytes(row["answer"])

    def _by_person(self, attempt: _Attempt) -> Generator[Answer, None, None]:
        parts = parts_of(self._frame.sparkSession.sparkContext.defaultParallelism)
        part = partial(_spark_spread, kinds=self._kinds, schema=self.schema, parts=parts)
        sent = self._frame.mapInArrow(part, "label int, sent binary").rdd
        return joined_by_spark(sent, attempt, schema=self.schema, parts=parts)


class DaskTable(_ClusterTable):
    """A Dask data frame of pandas partitions, on the client that is open, or else in this process."""

    home = "dask"

    def __init__(self, frame: Any, schema: Schema) -> None:
        super().__init__(schema)
        PandasTable(frame._meta, schema)  # its names and types, without a row
        places = check_names(frame.columns, schema, "the frame")
        self._frame = frame[[frame.columns[place] for place in places]]
        as_texts = [isinstance(c, Identifier) or compared_as_texts(c) for c in read_columns(schema)]
        check_dask_frame(self._frame, as_texts)

    @property
    def parts(self) -> int:
        count = int(self._frame.npartitions)
        if self.schema.person is None:
            return count
        return 1 if _dask_client() is None else parts_of(count)

    def asked_at_home(self, question: str) -> list[object]:
        client = _dask_client()
        return [] if client is None else asked_of_dask(client, question)

    def answers_at_home(self, attempt: _Attempt) -> Generator[Answer, None, None]:
        import dask

        client, persons = _dask_client(), self.schema.person is not None
        arrive = dask.delayed(_arrived, pure=False)
        parts = [arrive(part, place) for place, part in enumerate(self._frame.to_delayed())]
        if persons and client is None:
            sent = (one for part in parts for _, one in spread(_here(part), schema=self.schema, parts=1))
            yield attempt(Joined(place=0, schema=self.schema, sent=sent))
        elif persons:
            yield from joined_by_dask(client, parts, attempt, schema=self.schema, parts=self.parts)
        elif client is None:
            for part in parts:
                yield attempt(_here(part))
        else:
            work = dask.delayed(attempt, pure=False)
            yield from dask_answers(client, client.compute([work(part) for part in parts], retries=3))


def _spark_part(
    batches: Iterator[pa.RecordBatch], *, attempt: _Attempt, kinds: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """What a Spark task does with its partition, which may have no batch at all."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    place, rows, answer = attempt(Arrived(place=context.partitionId(), data=_reader(batches, kinds)))
    kind = pa.schema([("place", pa.int32()), ("rows", pa.int64()), ("answer", pa.binary())])
    yield pa.record_batch([[place], [rows], [answer]], schema=kind)


def _spark_spread(
    batches: Iterator[pa.RecordBatch], *, kinds: pa.Schema, schema: Schema, parts: int
) -> Iterator[pa.RecordBatch]:
    """What it does where persons are told apart: their records, by label."""
    kind = pa.schema([("label", pa.int32()), ("sent", pa.binary())])
    arrived = Arrived(place=0, data=_reader(batches, kinds))
    for label, sent in spread(arrived, schema=schema, parts=parts):
        yield pa.record_batch([[label], [sent]], schema=kind)


def _reader(batches: Iterator[pa.RecordBatch], kinds: pa.Schema) -> pa.RecordBatchReader:
    first = next(batches, None)
    if first is not None:
        kinds, batches = first.schema, itertools.chain([first], batches)
    return pa.RecordBatchReader.from_batches(kinds, batches)


def _arrived(frame: Any, place: int) -> Arrived:
    return Arrived(place=place, data=frame)


def _here(part: Any) -> Arrived:
    """A delayed part, computed in this process."""
    arrived: Arrived = part.compute(scheduler="sync")
    return arrived


def spark_answers(tasks: Any) -> Generator[Answer, None, None]:
    """What the tasks of an RDD answer, a wave of them at a time."""
    context, count = tasks.context, tasks.getNumPartitions()
    wave = max(_LEAST_WAVE, _WAVE * context.defaultParallelism)
    for start in range(0, count, wave):
        yield from context.runJob(tasks, list, list(range(start, min(start + wave, count))))


def joined_by_spark(
    spread: Any, attempt: _Attempt, *, schema: Schema, parts: int
) -> Generator[Answer, None, None]:
    """``attempt`` on the records of each label; ``spread`` is an RDD of what was sent."""

    def join(place: int, arrived: Iterator[Sent]) -> list[Answer]:
        return [attempt(Joined(place=place, schema=schema, sent=(sent for _, sent in arrived)))]

    return spark_answers(spread.partitionBy(parts, int).mapPartitionsWithIndex(join))


def joined_by_dask(
    client: Any, fragments: Sequence[Any], attempt: _Attempt, *, schema: Schema, parts: int
) -> Generator[Answer, None, None]:
    """The same with Dask's own shuffle, in which rows wait on the disks of workers; fragments may be delayed."""
    import dask
    import dask.dataframe as frames

    with client.as_current():
        # Not pure: a result of an earlier job must not be taken for one of this job.
        # Dask hashes labels again: with several for a part, parts are more alike.
        read = dask.delayed(partial(_dask_spread, schema=schema, parts=4 * parts), pure=False)
        sent = [read(fragment) for fragment in fragments]
        frame = frames.from_delayed(sent, meta=_sent_frame(()), verify_meta=False)
        shuffled = frame.shuffle("label", npartitions=parts, shuffle_method="p2p", ignore_index=True)
        join = dask.delayed(partial(_dask_join, attempt=attempt, schema=schema), pure=False)
        tasks = [join(part, place) for place, part in enumerate(shuffled.to_delayed())]
        futures = client.compute(tasks, retries=3)
    return dask_answers(client, futures)


def _dask_spread(fragment: Fragment | Arrived, *, schema: Schema, parts: int) -> Any:
    return _sent_frame(spread(fragment, schema=schema, parts=parts))


def _sent_frame(sent: Iterable[Sent]) -> Any:
    import pandas as pd
    import pyarrow as pa

    every = list(sent)
    labels, rows = [label for label, _ in every], [rows for _, rows in every]
    binary = pd.ArrowDtype(pa.large_binary())
    return pd.DataFrame({"label": np.array(labels, np.int64), "sent": pd.array(rows, dtype=binary)})


def _dask_join(frame: Any, place: int, *, attempt: _Attempt, schema: Schema) -> Answer:
    return attempt(Joined(place=place, schema=schema, sent=frame["sent"]))


def asked_of_spark(session: Any, question: str) -> list[object]:
    """The value of an expression in one executor, or what went wrong there; nothing where Spark is on this machine."""
    context = session.sparkContext
    if is_here(context.master):
        return []
    try:
        return list(context.parallelize([question], 1).map(eval).collect())
    except Exception as error:
        return [error]


def is_here(master: str) -> bool:
    """Whether Spark's workers are threads of its process here, which have what we have.

    >>> is_here("local[2,4]"), is_here("local-cluster[1,1,1024]"), is_here("spark://host:7077")
    (True, False, False)
    """
    return re.fullmatch(r"local(\[.*\])?", master) is not None


def asked_of_dask(client: Any, question: str) -> list[object]:
    """The value of an expression in every worker, or what went wrong there."""
    return list(client.run(eval, question, on_error="return").values())


def dask_answers(client: Any, futures: Sequence[Any]) -> Generator[Answer, None, None]:
    """Answers as they come; a cluster that has been without any worker for minutes is given up."""
    from distributed import as_completed

    over, alone = Event(), Event()

    def watch() -> None:
        seen = time.monotonic()
        while not over.wait(PATIENCE / 10):
            if client.scheduler_info()["workers"]:
                seen = time.monotonic()
            elif time.monotonic() - seen > PATIENCE:
                alone.set()
                client.cancel(futures, force=True)
                return

    Thread(target=watch, name="privcov watches Dask", daemon=True).start()
    try:
        for future, answer in as_completed(futures, loop=client.loop, with_results=True, raise_errors=False):
            if not isinstance(answer, tuple):  # what Dask says of a task that it gave up
                raise InternalError()
            yield answer
            future.release()
    finally:
        over.set()
    if alone.is_set():
        raise InternalError()


def _dask_client() -> Any:
    try:
        from distributed import default_client

        return default_client()
    except (ImportError, ValueError):
        return None


def _stays(home: str | None) -> Never:
    raise InputError(
        "E125",
        f"this table is in {home}, but this command reads rows in its own process.",
        "Give it as files, or collect it first.",
    )


_REMEDY = "Write it to Parquet first, or give the paths of CSV or Parquet files with engine={!r}."

_SPARK_FORMATS = ("ParquetFileFormat", "OrcFileFormat")
_SPARK_STEPS = {
    "Project", "Filter", "SubqueryAlias", "View", "Union", "Repartition", "RepartitionByExpression",
    "LogicalRelation", "LocalRelation", "Range",
    "AttributeReference", "Alias", "Literal", "And", "Or", "Not", "IsNull", "IsNotNull", "IsNaN", "In",
    "EqualTo", "EqualNullSafe", "LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual",
}  # fmt: skip
_SPARK_COMPARISONS = {
    "In", "EqualTo", "EqualNullSafe", "LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual",
}  # fmt: skip
_SPARK_NUMBERS = ("boolean", "byte", "short", "integer", "long", "float", "double")


def check_spark_frame(frame: Any) -> None:
    """Walk the analysed plan, in which Spark has written every cast of its own.

    A comparison of floats is refused where rows are in files: Spark leaves out row groups by their least and largest
    number, in which NaN does not count in files of others' writing, though it is above all numbers to Spark. So whether
    rows of NaN are read would depend on other rows.

    A CSV scan is refused in every mode: a line of more cells than ``maxColumns`` ends the job also where bad lines are
    permitted. So is an RDD, which may run Python for each row. So are times, which Parquet files may hold in
    milliseconds: one that has too many microseconds ends the job.
    """

    def walk() -> None:
        plan = frame._jdf.queryExecution().analyzed()
        tree, kinds = json.loads(plan.toJSON()), set[str]()
        for node, following in _spark_nodes(tree):
            name = _short(node["class"])
            if name == "AttributeReference":
                kinds.add(str(node["dataType"]))
            if name == "Cast" and following is not None:
                _check_spark_cast(str(node["dataType"]), following)
            elif name not in _SPARK_STEPS:
                raise Unlisted(f"the step {name}")
        if any(kind.startswith("time") for kind in kinds):
            raise Unlisted("a column of times")
        leaves, floats = plan.collectLeaves(), _compares_floats(tree)
        for place in range(leaves.size()):
            leaf = leaves.apply(place)
            if leaf.getClass().getSimpleName() == "LogicalRelation":
                if floats:
                    raise Unlisted("a comparison of floats of files")
                kind = leaf.relation().fileFormat().getClass().getSimpleName()
                if kind not in _SPARK_FORMATS:
                    raise Unlisted(f"{kind.removesuffix('FileFormat')} files")
                if "date" in kinds and _ancient_dates(frame, leaf.relation()) == "EXCEPTION":
                    raise Unlisted("dates in the mode EXCEPTION")

    walked("the Spark frame", walk, remedy=_REMEDY.format("spark"))


def _ancient_dates(frame: Any, relation: Any) -> str:
    """What Spark does where a Parquet file has a date before 1582 and does not say in which calendar."""
    jvm, session = frame.sparkSession._jvm, relation.sparkSession()
    options = jvm.org.apache.spark.sql.execution.datasources.parquet.ParquetOptions
    return str(options(relation.options(), session.sessionState().conf()).datetimeRebaseModeInRead())


def _spark_nodes(tree: Any) -> Iterator[tuple[dict[str, Any], dict[str, Any] | None]]:
    """Every step and expression of a plan, with the one that is written after it: its first child, if it has one.

    The columns of a relation are not among them: what no step names is not read.
    """
    if isinstance(tree, dict):
        if _short(str(tree.get("class"))) != "LogicalRelation":
            for value in tree.values():
                yield from _spark_nodes(value)
    elif isinstance(tree, list):
        for item, following in zip_longest(tree, tree[1:]):
            if isinstance(item, dict) and "num-children" in item:
                yield item, following
            yield from _spark_nodes(item)


def _compares_floats(tree: Any) -> bool:
    """Whether a column of floats stands in some comparison. Expressions are lists, each one before its parts."""
    if isinstance(tree, dict):
        return any(map(_compares_floats, tree.values()))
    if not isinstance(tree, list):
        return False
    left = 0  # the parts of a comparison that are still to come
    for item in tree:
        if isinstance(item, dict) and "num-children" in item:
            parts, name = int(item["num-children"]), _short(item["class"])
            if left and name == "AttributeReference" and str(item["dataType"]) in ("float", "double"):
                return True
            left = left - 1 + parts if left else parts * (name in _SPARK_COMPARISONS)
    return any(map(_compares_floats, tree))


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


_DASK_CONDITIONS = _DASK_COMPARISONS | {"And", "Or", "Invert"}


def check_dask_frame(frame: Any, as_texts: Sequence[bool]) -> None:
    """Walk the expression tree. A column of objects from pandas is refused: Dask turns each of them into a text.

    Of a Parquet file each partition is read by itself, and whole numbers or truths of which one is missing become
    floats or objects there. That is refused where it would make a difference to the others: in a condition, and in
    columns whose cells are compared ``as_texts``.
    """

    def walk() -> None:
        kinds = zip(frame.dtypes, as_texts, strict=True)
        if _reads_parquet(frame.expr) and any(_may_change(kind) for kind, as_text in kinds if as_text):
            raise Unlisted(f"ids, or levels that are texts, as {_CHANGING}")
        for step in frame.expr.walk():
            name = type(step).__name__
            if name not in _DASK_STEPS or not type(step).__module__.startswith("dask."):
                raise Unlisted(f"the step {name}")
            # A single column that is no condition itself is part of one.
            kind = None if name in _DASK_CONDITIONS else getattr(step._meta, "dtype", None)
            if kind is not None and _may_change(kind) and _reads_parquet(step):
                raise Unlisted(f"a condition on {_CHANGING}")
            if name == "ReadParquetFSSpec":
                _check_dask_reading(step)
                check_files(step._dataset_info["ds"], step.columns)
            elif name == "FromPandas" and any(
                kind.name == "object" for kind in step.operand("frame")._data.dtypes
            ):
                raise Unlisted("a column of objects")
            elif name in _DASK_COMPARISONS:
                _check_dask_comparison(step)

    walked("the Dask frame", walk, remedy=_REMEDY.format("dask"))


_CHANGING = 'whole numbers or truths that read_parquet reads without dtype_backend="pyarrow"'


def _reads_parquet(step: Any) -> bool:
    return any(type(one).__name__ == "ReadParquetFSSpec" for one in step.walk())


def _may_change(kind: Any) -> bool:
    """Whether pandas has another type for such a column where a cell is missing."""
    return isinstance(kind, np.dtype) and kind.kind in "iub"


def _check_dask_reading(step: Any) -> None:
    """Refuse what may leave out row groups by what their statistics say of other rows, or stop at a cell."""
    if step.operand("filters"):
        raise Unlisted("filters within read_parquet")
    if step.operand("engine") not in ("auto", "pyarrow") or set(step.operand("kwargs")) - {"dtype_backend"}:
        raise Unlisted("settings within read_parquet")


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
