"""A real Dask cluster of two processes: the bits of one process, also when a worker dies."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privcov.errors import InputError, InternalError, ParameterError
from privcov.frame.radii import candidates, cut_off
from privcov.linalg.devices import Device
from privcov.schema import Schema
from privcov.schema.grid import Grid
from privcov.summing.engines import Dask, Local
from privcov.summing.sum import sum_rows
from privcov.table import open_table

distributed = pytest.importorskip("distributed", reason="needs pip install 'privcov[dask]'")


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    import cloudpickle

    sys_conftest = next(module for name, module in sys.modules.items() if name.endswith("tiers.conftest"))
    cloudpickle.register_pickle_by_value(sys_conftest)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.parametrize("source", ["parquet", "csv"])
def test_two_processes_give_the_bits_of_one(job: Any, client: Any, source: str) -> None:
    assert job.sum(getattr(job, source), Dask(client=client)) == job.expected


def test_a_worker_killed_in_the_middle_changes_no_bit(job: Any, client: Any) -> None:
    assert job.sum_failing(Dask(client=client), "kill worker") == job.expected


def test_a_dask_frame_is_summed_where_it_is(job: Any, client: Any) -> None:
    frames = pytest.importorskip("dask.dataframe")
    frame = frames.from_pandas(job.frame, npartitions=5)
    assert job.sum(frame, Dask(client=client)) == job.expected
    with pytest.raises(InputError, match="E102"):
        open_table(frame[["a", "b"]], open_table(job.parquet, _schema(job)).schema)
    with pytest.raises(InputError, match="E125"):
        next(open_table(frame, _schema(job)).blocks())


def test_derived_columns_are_the_same_bits_on_dask(job: Any, client: Any) -> None:
    frames = pytest.importorskip("dask.dataframe")
    job.check_derived(frames.from_pandas(job.frame, npartitions=5), Dask(client=client))
    job.check_derived(job.csv, Dask(client=client))


def test_a_survey_is_the_same_bits_on_dask(survey: Any, client: Any) -> None:
    """Derived columns, dates, exhaustive levels, weights, rules for missing cells, and strata of them."""
    frames = pytest.importorskip("dask.dataframe")
    typed = survey.frame.astype({"admitted": "datetime64[us]"})
    for data in (survey.csv, survey.parquet, frames.from_pandas(typed, npartitions=3)):
        survey.check_sums(data, Dask(client=client), "person")
    frame = frames.read_parquet(survey.parquet)
    survey.check_sums(frame, Dask(client=client), "person", "weight", frame="shape")
    survey.check_strata(frame, Dask(client=client), "area,sex", "elsewhere")
    survey.check_strata(survey.csv, Dask(client=client), "area")


def test_persons_are_the_same_bits_on_dask(clinic: Any, survey: Any, client: Any) -> None:
    """One of them has a thousand rows all over the table; in files, in a frame, and in a frame without a cluster."""
    frames = pytest.importorskip("dask.dataframe")
    frame = frames.from_pandas(clinic.frame, npartitions=5, sort=False)
    for data in (clinic.csv, clinic.parquet, frame):
        clinic.check(data, Dask(client=client))
    numbers = clinic.with_numbers()
    for kind in ("Int64", "category"):
        typed = numbers.astype({"id": kind})
        clinic.check(frames.from_pandas(typed, npartitions=3), Dask(client=client), "rows", frame=numbers)
    survey.check_sums(survey.csv, Dask(client=client))
    survey.check_strata(frames.read_parquet(survey.parquet), Dask(client=client), "area,sex", persons=True)


def test_persons_of_a_dask_frame_without_a_cluster_are_gathered_here(clinic: Any) -> None:
    frames = pytest.importorskip("dask.dataframe")
    clinic.check(frames.from_pandas(clinic.frame, npartitions=5, sort=False), Local())


def test_a_bound_for_each_partition_of_dask_is_caught(
    clinic: Any, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Canary: nothing is shuffled, so every partition keeps its own rows of a person."""
    import dask.dataframe as frames

    frame = frames.from_pandas(clinic.frame, npartitions=16, sort=False)  # as many as there are labels
    monkeypatch.setattr("privcov.table.clusters.parts_of", lambda _: 16)
    monkeypatch.setattr(frames.DataFrame, "shuffle", lambda self, *_, **__: self)
    with pytest.raises(AssertionError):
        clinic.check(frame, Dask(client=client), "rows")
    assert clinic.sum(frame, Dask(client=client))[0] > clinic.sum(clinic.frame, Local())[0] + 30


def test_ids_are_in_no_release_and_no_log_of_dask(clinic: Any, client: Any, capfd: Any) -> None:
    frames = pytest.importorskip("dask.dataframe")
    clinic.check_release(frames.read_parquet(clinic.parquet), Dask(client=client), capfd)
    client.run(_blurt)
    try:
        with pytest.raises(InternalError):
            clinic.sum(clinic.parquet, Dask(client=client))
    finally:
        client.run(_blurt, on=False)
    logs = [client.get_scheduler_logs(), *client.get_worker_logs().values()]
    said = capfd.readouterr()
    assert clinic.SECRET not in "".join(map(str, logs)) + said.out + said.err


def _blurt(on: bool = True) -> None:
    """A worker whose reader raises with all ids in its words, or one that is well again."""
    from privcov.table.persons import Rows

    if on:
        Rows.well, Rows.of = Rows.of, classmethod(lambda _, block: int(str(block[-1])))  # type: ignore[attr-defined]
    else:
        Rows.of = Rows.well  # type: ignore[attr-defined]


@pytest.mark.slow
def test_a_worker_killed_while_persons_are_gathered_changes_no_bit(clinic: Any, client: Any) -> None:
    assert clinic.killing(Dask(client=client)) == clinic.sum(clinic.frame, Local())


def test_what_workers_made_of_persons_cannot_be_verified(clinic: Any, client: Any) -> None:
    with pytest.raises(ParameterError, match="E213 workers exchange rows to gather each person's rows"):
        clinic.sum(clinic.csv, Dask(client=client, verify=0.5))


def test_the_command_releases_persons_through_a_running_cluster(clinic: Any, client: Any) -> None:
    (clinic.folder / "visits.toml").write_text(clinic.schema("mean").to_toml())
    words = ["release", clinic.csv, "--schema", "visits.toml", "--epsilon", "1", "--engine", "dask"]
    done = subprocess.run(
        [sys.executable, "-m", "privcov", *words, "--scheduler", client.scheduler.address],
        cwd=clinic.folder,
        capture_output=True,
        text=True,
        check=True,
    )
    persons = len(set(clinic.frame["id"].dropna().str.strip()) - {""})
    assert json.loads(done.stdout)["rows"] == {"kind": "public", "count": persons}
    assert clinic.SECRET not in done.stdout + done.stderr


def test_a_device_of_this_machine_does_not_sum_a_frame_in_a_cluster(survey: Any, client: Any) -> None:
    frame = pytest.importorskip("dask.dataframe").read_parquet(survey.parquet)
    survey.check_refused(frame, Local(device=Device(name="torch")), "E213", "person", "weight")


def test_one_row_of_a_dask_frame_touches_one_row(job: Any, client: Any) -> None:
    frames = pytest.importorskip("dask.dataframe")
    job.check_law(lambda frame: frames.from_pandas(frame, npartitions=5, sort=False), Dask(client=client))


@pytest.mark.parametrize(
    "step", ["csv", "cast", "python", "objects", "graph", "text against number", "filters", "settings"]
)
def test_a_dask_frame_that_a_cell_could_stop_is_refused(job: Any, client: Any, step: str) -> None:
    frames = pytest.importorskip("dask.dataframe")
    files = frames.read_parquet(str(job.folder / "*.parquet"))
    bad = {
        "csv": lambda: frames.read_csv(str(job.folder / "*.csv")),
        "cast": lambda: files.assign(a=files.s.astype(float)),
        "python": lambda: files.map_partitions(abs, meta=files._meta),
        "objects": lambda: frames.from_pandas(job.frame.astype({"s": object}), npartitions=2),
        "graph": lambda: files.persist(),
        "text against number": lambda: files[files.s == 1],
        "filters": lambda: frames.read_parquet(str(job.folder / "*.parquet"), filters=[("a", "!=", 1)]),
        "settings": lambda: frames.read_parquet(
            str(job.folder / "*.parquet"), arrow_to_pandas={"safe": True}
        ),
    }
    with pytest.raises(InputError, match="E150 the Dask frame"):
        open_table(bad[step](), _schema(job))


X = {"x": {"lower": 0, "upper": 1}}
PARTED: dict[str, tuple[Any, dict[str, Any], Any]] = {
    "mask": ([True, False], {"columns": X}, lambda frame: frame[frame.c]),
    "not": ([True, False], {"columns": X}, lambda frame: frame[~frame.c]),
    "comparison": ([2**53 + 1, 2], {"columns": X}, lambda frame: frame[frame.c > 2**53]),
    "ids": ([1, 2], {"columns": X, "person": "c", "max_rows_per_person": 2}, lambda frame: frame),
    "levels": ([1, 2], {"columns": {**X, "c": {"levels": ["1", "A"]}}}, lambda frame: frame),
}


@pytest.mark.parametrize("case", list(PARTED))
def test_a_missing_cell_changes_how_no_other_cell_of_its_partition_is_read(case: str, tmp_path: Path) -> None:
    """pandas makes floats of whole numbers, and objects of truths, of which one is missing.

    Rows of others left the sum, or the release ended after the payment. Such a plan is refused, whatever its cells;
    with a type that has missing cells it is read.
    """
    frames = pytest.importorskip("dask.dataframe")
    cells, words, chosen = PARTED[case]
    schema = Schema.from_dict({**words, "ignore_extra": True})

    def rows_of(odd: Any, **how: Any) -> list[int]:
        table = pa.table({"c": pa.array([*cells, odd]), "x": [0.25, 0.5, 1.0]})
        pq.write_table(table, tmp_path / "a.parquet")
        frame = chosen(frames.read_parquet(str(tmp_path / "a.parquet"), **how))
        gram = sum_rows(open_table(frame, schema), schema, Grid.of(schema), engine=Local(workers=1))
        return [int(one) for one in gram.reveal_to_mechanism()]

    for odd in (cells[0], None):
        with pytest.raises(InputError, match="E150 the Dask frame"):
            rows_of(odd)
        assert rows_of(odd, dtype_backend="pyarrow") == rows_of(odd, dtype_backend="numpy_nullable")
    # A row whose cell is missing is in no condition that holds, and an id that is missing is no id.
    left = {"mask": 1, "comparison": 1, "not": 1, "ids": 2, "levels": 3}[case]
    assert rows_of(None, dtype_backend="pyarrow")[0] == left * 4 ** Grid.of(schema).exponent


def test_a_dask_frame_of_files_is_summed_where_it_is(job: Any, client: Any) -> None:
    frames = pytest.importorskip("dask.dataframe")
    frame = frames.read_parquet(str(job.folder / "*.parquet"))
    assert job.sum(frame[frame.b < 1e9], Dask(client=client)) == job.expected


def test_a_framed_release_is_the_same_on_dask(job: Any, client: Any) -> None:
    frames = pytest.importorskip("dask.dataframe")
    job.check_frame(frames.from_pandas(job.frame, npartitions=5), Dask(client=client))


def test_what_a_bound_would_cut_off_is_the_same_on_dask(job: Any, client: Any) -> None:
    options = candidates(_schema(job))
    expected = cut_off(job.frame, _schema(job), options)
    assert cut_off(job.parquet, _schema(job), options, engine=Dask(client=client)) == expected


def test_a_file_that_vanishes_or_is_damaged_is_told_from_a_worker(job: Any, client: Any) -> None:
    job.damage()
    with pytest.raises(InputError, match=r"E115 part1\.parquet"):
        job.sum(job.parquet, Dask(client=client))
    table = open_table(job.csv, _schema(job))
    (job.folder / "part1.csv").unlink()
    with pytest.raises(InputError, match="E119"):
        sum_rows(table, _schema(job), Grid.of(_schema(job)), engine=Dask(client=client))


def test_a_scheduler_that_does_not_answer_is_refused_before_anything_is_paid(job: Any) -> None:
    engine = Dask(scheduler="tcp://127.0.0.1:1")
    with pytest.raises(InputError, match="E126"):
        engine.check(open_table(job.parquet, _schema(job)))


def test_the_command_releases_through_a_running_cluster(job: Any, client: Any, tmp_path: Path) -> None:
    _schema(job)
    (tmp_path / "people.toml").write_text(_schema(job).to_toml())
    words = ["release", job.parquet, "--schema", "people.toml", "--epsilon", "1", "--engine", "dask"]
    done = subprocess.run(
        [sys.executable, "-m", "privcov", *words, "--scheduler", client.scheduler.address],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["rows"] == {"kind": "public", "count": len(job.frame)}


def _schema(job: Any) -> Any:
    return sys.modules[type(job).__module__].SCHEMA


def test_workers_without_this_library_are_refused_before_anything_is_paid(job: Any) -> None:
    """Real workers in which importing privcov fails, as where it is not installed."""
    gone = "import sys\nsys.modules['privcov'] = None\n"
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None, preload=[gone]
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as bare,
    ):
        for engine in (Dask(client=bare), Dask(scheduler=bare.scheduler.address)):
            with pytest.raises(InputError, match="E128 1 of 1 workers of dask do not have privcov"):
                engine.check(open_table(job.parquet, _schema(job)))
        frame = pytest.importorskip("dask.dataframe").from_pandas(job.frame, npartitions=2)
        with bare.as_current(), pytest.raises(InputError, match="E128 1 of 1 workers of dask"):
            Local().check(open_table(frame, _schema(job)))


LIE = """
import privcov.summing.sum
def altered(gram, honest=privcov.summing.sum.encode_sensitive_sum):
    gram._low[{place}] {change}
    return honest(gram)
privcov.summing.sum.encode_sensitive_sum = altered
"""


@pytest.mark.parametrize("lie", ["no rows have it", "other rows have it"])
def test_a_real_worker_that_alters_its_sum_is_found_out(job: Any, lie: str) -> None:
    """By the driver's look at every sum, or else by its reading of the fragment."""
    code = (
        LIE.format(place="1, 1", change="= -1")
        if lie == "no rows have it"
        else LIE.format(place="1, 4", change="+= 1")
    )
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None, preload=[code]
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        if lie == "no rows have it":
            with pytest.raises(InternalError):
                job.sum(job.parquet, Dask(client=client))
        else:
            assert job.sum(job.parquet, Dask(client=client)) != job.expected
        with pytest.raises(InternalError):
            job.sum(job.parquet, Dask(client=client, verify=1))


def test_a_share_of_what_honest_workers_sent_is_read_again_to_the_same_bits(job: Any, client: Any) -> None:
    for source in (job.parquet, job.csv):
        assert job.sum(source, Dask(client=client, verify=0.5)) == job.expected
    frame = pytest.importorskip("dask.dataframe").from_pandas(job.frame, npartitions=2)
    with pytest.raises(ParameterError, match="E213 the rows in dask are not read on this machine"):
        job.sum(frame, Dask(client=client, verify=0.5))


def test_a_cluster_that_stays_without_a_worker_is_given_up(job: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("privcov.table.clusters.PATIENCE", 2.0)
    with (
        distributed.LocalCluster(n_workers=0, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster, set_as_default=False) as empty,
        pytest.raises(InternalError),
    ):
        job.sum(job.parquet, Dask(client=empty))
