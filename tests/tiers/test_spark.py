"""A real Spark cluster, a master and two workers, speculation on: the bits of one process, also when a worker dies."""

from __future__ import annotations

import json
import math
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privcov.errors import InputError, ParameterError
from privcov.schema import Schema
from privcov.schema.grid import Grid
from privcov.summing.engines import Local, Spark
from privcov.summing.sum import sum_rows
from privcov.table import open_table

pyspark = pytest.importorskip("pyspark", reason="needs pip install 'privcov[spark]'")
STRAGGLE_SECONDS = 240
HOSTS = ["127.0.0.1", "127.0.0.2"]
java = pytest.mark.skipif(shutil.which("java") is None, reason="needs Java (openjdk-17-jre-headless)")


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a cluster. Its workers are at two addresses, because Spark starts no twin on the same host."""
    folder = tmp_path_factory.mktemp("spark")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"spark://127.0.0.1:{port}"
    base = [Path(pyspark.__file__).parent / "bin" / "spark-class"]
    deploy = "org.apache.spark.deploy"
    shared = ["--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", str(folder)]
    commands = [
        [*base, f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"],
        *([*base, f"{deploy}.worker.Worker", "--host", host, *shared, address] for host in HOSTS),
    ]
    environment = os.environ | {"SPARK_LOCAL_DIRS": str(folder)}
    started = [
        subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for command in commands
    ]
    yield address
    for process in reversed(started):
        process.terminate()
    for process in started:
        process.wait(30)


@pytest.fixture(scope="module")
def session(master: str) -> Iterator[Any]:
    from pyspark import cloudpickle
    from pyspark.sql import SparkSession

    shared = next(module for name, module in sys.modules.items() if name.endswith("tiers.conftest"))
    cloudpickle.register_pickle_by_value(shared)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "600m",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.speculation": "true",
        "spark.speculation.interval": "200ms",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.multiplier": "1.5",
        "spark.locality.wait": "0s",
    }
    builder = SparkSession.builder.master(master).appName("privcov tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@java
@pytest.mark.parametrize("source", ["parquet", "csv"])
def test_two_executors_give_the_bits_of_one_process(job: Any, session: Any, source: str) -> None:
    assert job.sum(getattr(job, source), Spark(session=session)) == job.expected


@java
@pytest.mark.parametrize("how", ["straggle", "kill worker", "kill executor"])
def test_a_task_that_dies_or_is_run_twice_changes_no_bit(job: Any, session: Any, how: str) -> None:
    """A straggler sleeps for minutes: its twin, which speculation starts on the other host, delivers first."""
    began = time.monotonic()
    assert job.sum_failing(Spark(session=session), how) == job.expected
    assert time.monotonic() - began < STRAGGLE_SECONDS


@java
def test_a_spark_frame_is_summed_where_it_is(job: Any, session: Any) -> None:
    schema = sys.modules[type(job).__module__].SCHEMA
    frame = session.read.parquet(*map(str, sorted(job.folder.glob("*.parquet")))).repartition(5)
    assert job.sum(frame, Spark(session=session)) == job.expected
    with pytest.raises(InputError, match="E110"):
        open_table(session.sql("select 1D as a, date'2020-01-01' as s, 2D as b"), schema)
    with pytest.raises(InputError, match="E102"):
        open_table(frame.drop("b"), schema)


@java
def test_a_framed_release_is_the_same_on_spark(job: Any, session: Any) -> None:
    job.check_frame(session.read.parquet(str(job.folder / "*.parquet")), Spark(session=session))


@java
def test_derived_columns_are_the_same_bits_on_spark(job: Any, session: Any) -> None:
    frame = session.read.parquet(*map(str, sorted(job.folder.glob("*.parquet")))).repartition(5)
    job.check_derived(frame, Spark(session=session))
    job.check_derived(job.csv, Spark(session=session))


@java
def test_a_survey_is_the_same_bits_on_spark(survey: Any, session: Any) -> None:
    """Derived columns, dates, exhaustive levels, weights, rules for missing cells, and strata of them."""
    frame = session.read.parquet(survey.parquet).repartition(3)
    for data in (survey.csv, frame):
        survey.check_sums(data, Spark(session=session), "person")
    survey.check_strata(frame, Spark(session=session), "area,sex", "elsewhere")
    survey.check_strata(survey.csv, Spark(session=session), "area")


@java
def test_persons_are_the_same_bits_on_spark(clinic: Any, survey: Any, session: Any) -> None:
    """One of them has a thousand rows all over the table; in files and in a frame, whose ids may be numbers."""
    frame = session.read.parquet(clinic.parquet).repartition(5)
    clinic.check(frame, Spark(session=session))
    clinic.check(clinic.csv, Spark(session=session), "rows", "mean")
    numbers = clinic.with_numbers()
    numbers.to_parquet(clinic.folder / "numbers.parquet", row_group_size=100)
    frame = session.read.parquet(str(clinic.folder / "numbers.parquet")).repartition(3)
    clinic.check(frame, Spark(session=session), "rows", frame=numbers)
    survey.check_sums(survey.csv, Spark(session=session))
    frame = session.read.parquet(survey.parquet)
    survey.check_strata(frame, Spark(session=session), "area,sex", persons=True)


@java
def test_a_bound_for_each_partition_of_spark_is_caught(
    clinic: Any, session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Canary: nothing is shuffled, so every partition keeps its own rows of a person."""
    frame = session.read.parquet(clinic.parquet).repartition(5)
    monkeypatch.setattr(pyspark.RDD, "partitionBy", lambda self, *_: self)
    with pytest.raises(AssertionError):
        clinic.check(frame, Spark(session=session), "rows")
    assert clinic.sum(frame, Spark(session=session))[0] >= clinic.sum(clinic.frame, Local())[0] + 12


@java
def test_ids_are_in_no_release_and_no_log_of_spark(
    clinic: Any, session: Any, capfd: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    clinic.check_release(session.read.parquet(clinic.parquet), Spark(session=session), capfd)
    folders = [path for path in tmp_path_factory.getbasetemp().iterdir() if path.name.startswith("spark")]
    logs = [path for folder in folders for path in folder.rglob("std*") if path.is_file()]
    assert logs
    assert all(clinic.SECRET.encode() not in path.read_bytes() for path in logs)


@pytest.mark.slow
@java
@pytest.mark.parametrize("how", ["kill worker", "kill executor"])
def test_a_worker_killed_while_persons_are_gathered_changes_no_bit(
    clinic: Any, session: Any, how: str
) -> None:
    assert clinic.killing(Spark(session=session), how) == clinic.sum(clinic.frame, Local())


@java
def test_one_row_of_a_spark_frame_touches_one_row(job: Any, session: Any) -> None:
    def made(frame: Any) -> Any:
        path = str(job.folder / f"neighbour{len(list(job.folder.iterdir()))}.parquet")
        frame.to_parquet(path, row_group_size=7)
        return session.read.parquet(path).repartition(3)

    job.check_law(made, Spark(session=session))


@java
def test_a_spark_frame_that_a_cell_could_stop_is_refused(job: Any, session: Any) -> None:
    from pyspark.sql import functions as F

    schema = sys.modules[type(job).__module__].SCHEMA
    frame = session.read.parquet(*map(str, sorted(job.folder.glob("*.parquet"))))
    files = list(map(str, sorted(job.folder.glob("*.csv"))))
    bad = {
        "csv": session.read.csv(files, header=True, schema=frame.schema),
        "strict csv": session.read.csv(files, header=True, schema=frame.schema, mode="FAILFAST"),
        "cast": frame.withColumn("a", F.col("s").cast("double")),
        "cast in a filter": frame.filter("s > 1"),
        "overflow": frame.withColumn("a", F.col("a") + 1),
        "python": frame.withColumn("a", F.udf(abs, "double")("a")),
        "batches of Python": frame.mapInPandas(lambda batches: batches, frame.schema),
        "RDD": session.createDataFrame([(1.0, "F", 0.5)], frame.schema),
        "sum": frame.groupBy("s").agg(F.sum("a").alias("a"), F.sum("b").alias("b")),
        "floats": frame.filter("s is not null and not b < 1"),
        "floats under another name": frame.withColumn("t", F.col("b")).filter("t > 1 or s = 'F'").drop("t"),
        "a comparison of floats as a column": frame.withColumn("t", F.col("b") > 1).filter("t").drop("t"),
    }
    for made in bad.values():
        with pytest.raises(InputError, match="E150 the Spark frame"):
            open_table(made, schema)
    good = frame.filter("(s < 'zzz' and s is not null) or b is not null").select("b", "a", "s")
    assert job.sum(good, Spark(session=session)) == job.expected


@java
def test_whether_a_row_of_a_file_is_read_depends_on_no_other_row(session: Any, tmp_path: Path) -> None:
    """By Spark rows of NaN were above 100 or left out, as another row of their group was above 100 or not."""
    schema = Schema.from_dict({"columns": {"x": {"lower": 0, "upper": 1}}, "ignore_extra": True})

    def count(odd: float, kind: pa.DataType, words: str) -> float:
        path = str(tmp_path / f"{len(list(tmp_path.iterdir()))}.parquet")
        cells = [math.nan if pa.types.is_floating(kind) else None] * 9
        pq.write_table(pa.table({"a": pa.array([*cells, 1, odd], kind), "x": [0.5] * 11}), path)
        table = open_table(session.read.parquet(path).filter(words), schema)
        return (
            int(sum_rows(table, schema, Grid.of(schema)).reveal_to_mechanism()[0])
            / 4 ** Grid.of(schema).exponent
        )

    for words in ("a > 100", "not a < 100", "a <> 1", "not a in (1)", "isnan(a) or a > 100"):
        with pytest.raises(InputError, match="E150 the Spark frame holds a comparison of floats of files"):
            count(200, pa.float64(), words)
    for words, usual in (("a > 100", 0), ("not a < 100", 0), ("a <> 1", 0), ("a is null", 9)):
        assert count(1, pa.int32(), words) == usual
        assert count(200, pa.int32(), words) == usual + (words != "a is null")


@java
def test_a_spark_frame_with_a_date_that_could_stop_it_is_refused(session: Any, tmp_path: Path) -> None:
    """Spark stops at milliseconds that are too many for its own unit and, where it is told to, at ancient dates."""
    schema = Schema.from_dict(
        {
            "columns": {"d": {"lower": "1500-01-01", "upper": "2024-12-31", "feature": False}},
            "derived": {"y": "year(d)"},
            "ignore_extra": True,
        }
    )
    path = str(tmp_path / "dates.parquet")
    dates = pa.array([0, 19_000, 4_000_000, -150_000, -(2**31), None], pa.date32())
    for kind in (pa.timestamp("ms"), pa.timestamp("ms", "UTC")):
        times = pa.array([0, 10**12, 2**62, -(2**62), 5, None], kind)
        pq.write_table(pa.table({"d": dates, "t": times}), path)
        frame = session.read.parquet(path)
        for bad in (
            frame.select(frame.t.alias("d")),
            frame.filter("t > '2020-01-01'"),
            frame.select("d", "t"),
        ):
            with pytest.raises(InputError, match="E150 the Spark frame holds a column of times"):
                open_table(bad, schema)
    ancient = session.read.option("datetimeRebaseMode", "EXCEPTION").parquet(path)
    with pytest.raises(InputError, match="E150 the Spark frame holds dates in the mode EXCEPTION"):
        open_table(ancient, schema)
    here, there = (sum_rows(open_table(data, schema), schema, Grid.of(schema)) for data in (path, frame))
    assert list(there.reveal_to_mechanism()) == list(here.reveal_to_mechanism())


@java
def test_a_session_of_another_master_is_not_taken_for_the_one_asked_for(job: Any, session: Any) -> None:
    schema = sys.modules[type(job).__module__].SCHEMA
    with pytest.raises(ParameterError, match="E213"):
        Spark(master="spark://127.0.0.1:1").check(open_table(job.parquet, schema))


@java
def test_a_damaged_file_is_told_from_an_executor(job: Any, session: Any) -> None:
    job.damage()
    with pytest.raises(InputError, match=r"E115 part1\.parquet"):
        job.sum(job.parquet, Spark(session=session))


@java
def test_the_command_starts_a_spark_of_its_own(job: Any, tmp_path: Path) -> None:
    (tmp_path / "people.toml").write_text(sys.modules[type(job).__module__].SCHEMA.to_toml())
    words = ["release", job.parquet, "--schema", "people.toml", "--epsilon", "1", "--engine", "spark"]
    done = subprocess.run(
        [sys.executable, "-m", "privcov", *words, "--workers", "2"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["rows"] == {"kind": "public", "count": len(job.frame)}


def test_without_java_the_package_to_install_is_named(job: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Spark, "_running", lambda self: None)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    schema = sys.modules[type(job).__module__].SCHEMA
    with pytest.raises(ParameterError, match=r"E214 .*openjdk-17-jre-headless"):
        Spark().check(open_table(job.parquet, schema))


def test_a_master_that_does_not_answer_is_refused_before_anything_is_paid(
    job: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Spark, "_running", lambda self: None)
    schema = sys.modules[type(job).__module__].SCHEMA
    with pytest.raises(InputError, match="E126"):
        Spark(master="spark://127.0.0.1:1").check(open_table(job.parquet, schema))


BARE = """
import sys
import tomllib
from pyspark.sql import SparkSession
from privcov.summing.engines import Spark
from privcov.errors import InputError
from privcov.schema import Schema
from privcov.table import open_table

names = {"spark.executorEnv.PYTHONPATH": sys.argv[1], "spark.ui.enabled": "false", "spark.log.level": "OFF",
         "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
builder = SparkSession.builder.master("local-cluster[1,1,1024]")
for name, value in names.items():
    builder = builder.config(name, value)
session = builder.getOrCreate()
table = open_table(sys.argv[2], Schema.from_dict(tomllib.load(open(sys.argv[3], "rb"))))
try:
    Spark(session=session).check(table)
except InputError as error:
    print(error)
"""


@java
def test_executors_without_this_library_are_refused_before_anything_is_paid(job: Any, tmp_path: Path) -> None:
    """A real executor in which importing privcov fails, as where it is not installed."""
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "sitecustomize.py").write_text("import sys\nsys.modules['privcov'] = None\n")
    (tmp_path / "people.toml").write_text(sys.modules[type(job).__module__].SCHEMA.to_toml())
    done = subprocess.run(
        [sys.executable, "-c", BARE, str(tmp_path / "bare"), job.parquet, str(tmp_path / "people.toml")],
        env=os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_DIRS": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "E128 1 of 1 workers of spark do not have privcov" in done.stdout
