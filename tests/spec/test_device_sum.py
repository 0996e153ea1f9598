"""Sums on a device are the same integers as here. PyTorch on this processor runs the code that a GPU runs."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from survey import Survey

import privcov as pc
from privcov.errors import InternalError, ParameterError
from privcov.linalg import devices
from privcov.linalg.devices import Device
from privcov.noise.idealized.chain import sample_chain
from privcov.noise.randomness import rehearsal
from privcov.repair import METHODS
from privcov.schema.grid import Grid
from privcov.schema.strata import Strata
from privcov.summing import gpu as sending
from privcov.summing.engines import Local, engine_named
from privcov.summing.sum import HostSum, Split, sum_rows
from privcov.table import open_table
from privcov_lab.bench import device as bench

torch = pytest.importorskip("torch", reason="the extra torch is not installed")
pytestmark = pytest.mark.filterwarnings(
    "error"
)  # PyTorch warns where shapes or memory are not what they seem

from privcov.summing.gpu import DeviceSum, check_device  # noqa: E402 - needs PyTorch

TORCH = Device.named("torch")
DEVICES = [TORCH, *([Device.named("cuda")] if torch.cuda.is_available() else [])]
COLUMNS = {
    "a": {"lower": 0, "upper": 10},
    "d": {"lower": -1, "upper": 2},  # beside another number: they share their passes
    "s": {"levels": [0, 1, 2]},
    "b": {"lower": -3, "upper": 7.7},
    "t": {"levels": [5, 6]},
    "c": {"lower": -1e300, "upper": 1e300},
}
OWN_RULES = {
    "a": {"missing": "indicator"},
    "d": {"fill": 1.5},
    "s": {"missing": "indicator"},
    "b": {"missing": "indicator"},
    "t": {"fill": 6},
    "c": {"missing": "zero-row"},
}
SCHEMAS = [
    {},
    {"own": True},
    {"own": True, "row_norm_bound": 2.3},
    {"own": True, "row_norm_bound": 1.2},
    {"own": True, "missing": "zero-row", "row_norm_bound": 2.4},
    {"row_norm_bound": 1.3},
    {"missing": "zero-row", "row_norm_bound": 2},
    {"intercept": False, "row_norm_bound": 0.9},
    {"derived": {"l": "log(a + 1)", "p": "poly(b, 2)", "k": "cut(d, 0)", "ad": "a * d"}, "row_norm_bound": 2},
    {"framed": True, "row_norm_bound": 2.8},
    {"framed": True},
]
FRAMED = {
    "a": {"centre": 5.5, "scale": 1.5},
    "d": {"scale": 40},
    "b": {"centre": -2.9, "scale": 0.01},
    "c": {"centre": 1e299, "scale": 1e300},
}


def table(rows: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = np.column_stack(
        [
            rng.normal(5, 4, rows),
            rng.normal(0, 1, rows),
            rng.integers(0, 5, rows),
            rng.normal(0, 4, rows),
            rng.integers(4, 8, rows),
            rng.normal(0, 1e300, rows),
        ]
    )
    x[::7, 0], x[::11, 3], x[5::97, 2], x[3::31, 5] = np.nan, np.inf, np.nan, 1.7e308
    x[2::53, 0] = -np.inf
    x[4::13, 4], x[6::19, 1], x[8::101, 5] = np.nan, np.nan, np.nan
    return x


@pytest.mark.parametrize("device", DEVICES, ids=lambda device: device.name)
@pytest.mark.parametrize("extra", SCHEMAS)
@pytest.mark.parametrize("rows", [1, 100, 8192, 20_001])
def test_the_sum_is_the_same_integers(extra, rows, device):
    extra = dict(extra)
    own = OWN_RULES if extra.pop("own", False) else FRAMED if extra.pop("framed", False) else {}
    columns = {name: {**about, **own.get(name, {})} for name, about in COLUMNS.items()}
    schema = pc.Schema.from_dict({"columns": columns, **extra})
    grid = Grid.of(schema)
    here = sum_rows(open_table(table(rows), schema), schema, grid)
    there = sum_rows(open_table(table(rows), schema), schema, grid, engine=Local(device=device))
    assert here.rows == there.rows == rows
    assert here.reveal_to_mechanism().tolist() == there.reveal_to_mechanism().tolist()


def test_a_sum_that_outgrows_one_word_is_carried(monkeypatch):
    schema = pc.Schema.from_dict({"columns": COLUMNS})
    grid = Grid.of(schema)
    monkeypatch.setattr("privcov.summing.gpu.WORD", 300 * grid.squared_norm_bound)
    here, there = HostSum(schema, grid), DeviceSum(schema, grid, TORCH)
    for start in range(0, 2000, 250):
        block = [np.ascontiguousarray(c) for c in table(2000)[start : start + 250].T]
        here.add(block)
        there.add(block)
    assert here.gram().reveal_to_mechanism().tolist() == there.gram().reveal_to_mechanism().tolist()


@pytest.mark.parametrize("device", DEVICES, ids=lambda device: device.name)
@pytest.mark.parametrize("steps", [[1], [8192, 8192], [3, 8192, 100], [5000, 5000, 8192, 1], [8191, 1, 1]])
def test_rows_that_wait_for_a_product_are_counted_once(steps, device):
    schema = pc.Schema.from_dict({"columns": COLUMNS, "row_norm_bound": 1.3})
    grid, rows = Grid.of(schema), table(sum(steps))
    here, there = HostSum(schema, grid), DeviceSum(schema, grid, device)
    for start, count in zip(np.cumsum([0, *steps]), steps, strict=False):
        part = rows[start : start + count]
        here.add(part.T)
        there.add(part.T if start % 2 else [np.ascontiguousarray(c) for c in part.T])
    ours, theirs = here.gram(), there.gram()
    assert ours.rows == theirs.rows == len(rows)
    assert ours.reveal_to_mechanism().tolist() == theirs.reveal_to_mechanism().tolist()


@pytest.mark.parametrize("device", DEVICES, ids=lambda device: device.name)
@pytest.mark.parametrize("room", [1, 7, 1000, 2**23])
def test_what_is_sent_arrives_whatever_the_size_of_a_room(room, device, monkeypatch):
    monkeypatch.setattr(sending, "_BUFFER", room)
    monkeypatch.setattr(sending, "_WORTH_A_THREAD", 10)
    sender = sending.Sender(device)
    wide = np.random.default_rng(1).normal(size=(30, 41))
    sources = [wide, wide.T, list(wide), wide[::2, ::-1], wide[:1], wide[:, :1], wide * 2, [*(wide + 1)]]
    before = None
    for source in sources:
        sent = sender.send(source)
        assert np.array_equal(sent.cpu().numpy(), np.asarray(source))
        if before is not None:  # a matrix stays as it came until two more are sent
            assert np.array_equal(before[0].cpu().numpy(), np.asarray(before[1]))
        before = sent, source


def test_one_wrong_entry_is_found_by_freivalds_check():
    """An odd error passes with probability 2^-32."""
    schema = pc.Schema.from_dict({"columns": COLUMNS})
    grid = Grid.of(schema)
    for place in ((0, 0), (2, 5), (8, 8)):
        broken = DeviceSum(schema, grid, TORCH)
        broken.add([np.ascontiguousarray(c) for c in table(500).T])
        low = broken.piles[0].low
        low[place] += 1
        low[place[::-1]] = low[place]
        with pytest.raises(InternalError):
            broken.gram()


def test_a_device_that_multiplies_in_less_than_float64_is_refused(monkeypatch):
    check_device(TORCH)
    check_device.cache_clear()

    class Reduced:
        def __getattr__(self, name):
            return getattr(torch, name)

        def from_numpy(self, values):
            return torch.from_numpy(values).to(torch.float32)

    monkeypatch.setattr(Device, "torch", property(lambda self: Reduced()))
    with pytest.raises(InternalError):
        check_device(TORCH)
    check_device.cache_clear()


def test_a_release_by_way_of_a_device_is_the_same_release(people, schema):
    loss = pc.PureDP(epsilon=1, neighbours="replace-one")
    made = [
        pc.release(people, schema=schema, loss=loss, engine=Local(device=place), randomness=rehearsal(4))
        for place in (devices.CPU, TORCH)
    ]
    assert made[0].upper == made[1].upper


@pytest.mark.parametrize("device", DEVICES, ids=lambda device: device.name)
def test_a_survey_is_the_same_bits_on_a_device(tmp_path, device):
    """Derived columns, dates, exhaustive levels, rules for missing cells, persons, weights and strata."""
    survey, engine = Survey(tmp_path), Local(device=device)
    survey.check_sums(survey.csv, engine)
    survey.check_sums(survey.parquet, engine, "weight", frame="shape")
    survey.check_strata(survey.csv, engine, "area", persons=True)
    survey.check_strata(survey.parquet, engine, "area,sex", "elsewhere")


WEIGHTS = [8.0, 1e300, 5e-324, 1e-3, 3.0, 0.0, -1.0, np.nan, np.inf, -np.inf]


@pytest.mark.parametrize("device", DEVICES, ids=lambda device: device.name)
@pytest.mark.parametrize("power", [1, 0.5, 0.37, 0])
@pytest.mark.parametrize("rules", [{}, {"row_norm_bound": 2.4}, {"missing": "zero-row"}])
def test_weighted_rows_are_the_same_integers(device, power, rules):
    words = {"weight": "w", "largest_weight": 8, "weight_power": power, **rules}
    schema = pc.Schema.from_dict({"columns": COLUMNS, **words})
    rows = np.column_stack([table(9_000), np.resize([*WEIGHTS, *np.linspace(0, 8, 91)], 9_000)])
    grid = Grid.of(schema)
    ours, theirs = (
        sum_rows(open_table(rows, schema), schema, grid, engine=Local(device=place))
        for place in (devices.CPU, device)
    )
    assert ours.reveal_to_mechanism().tolist() == theirs.reveal_to_mechanism().tolist()


@pytest.mark.parametrize("device", DEVICES, ids=lambda device: device.name)
@pytest.mark.parametrize("kept_here", [False, True])
def test_strata_are_the_same_integers_and_a_row_in_the_wrong_one_is_seen(device, kept_here, monkeypatch):
    if kept_here:
        monkeypatch.setattr(sending, "_SUMS_THERE", 10)
    whole = pc.Schema.from_dict({"columns": COLUMNS, "row_norm_bound": 2.2})
    strata, rest = Strata.of(whole, by="s", other=None)
    grid, split = Grid.of(rest, strata=True), Split(strata=strata, whole=whole)
    monkeypatch.setattr("privcov.summing.gpu.WORD", 900 * grid.squared_norm_bound)
    here, there, wrong = HostSum(rest, grid, split), *(DeviceSum(rest, grid, device, split) for _ in range(2))
    for block in open_table(table(20_001), whole).blocks():
        for total in (here, there, wrong):
            total.add(block)
    ours, theirs = (
        [(g.rows, g.reveal_to_mechanism().tolist()) for g in t.sums().grams()] for t in (here, there)
    )
    assert ours == theirs
    assert sum(rows for rows, _ in ours) == 20_001
    assert len({rows for rows, _ in ours}) > 2
    wrong.piles[1].low[0, 0] += 1
    with pytest.raises(InternalError):
        wrong.sums()


def test_decompositions_on_a_device_agree_with_those_here():
    matrix = rehearsal(1).normals(devices.SMALL, devices.SMALL)
    matrix = matrix + matrix.T
    with devices.using(TORCH):
        assert devices.elsewhere(matrix)
        there = devices.eigh(matrix)
        values = devices.eigvalsh(matrix)
    assert not devices.elsewhere(matrix)
    assert there.eigenvalues == pytest.approx(np.linalg.eigvalsh(matrix), abs=1e-9)
    assert values == pytest.approx(there.eigenvalues, abs=1e-9)
    assert there.eigenvectors @ np.diag(there.eigenvalues) @ there.eigenvectors.T == pytest.approx(
        matrix, abs=1e-9
    )


def test_small_matrices_stay_here():
    with devices.using(TORCH):
        assert not devices.elsewhere(np.eye(devices.SMALL - 1))


def test_a_chain_on_a_device_is_an_orthonormal_basis_of_the_same_law():
    """At a huge concentration the vectors are the eigenvectors, whatever decomposed the matrix."""
    d = devices.SMALL
    matrix = np.diag(np.linspace(1, 0, d)) + 0.0
    with devices.using(TORCH):
        vectors, _ = sample_chain(rehearsal(2), matrix, [1e12] * 3, rank=3)
    assert np.abs(vectors[:3]) == pytest.approx(np.eye(3), abs=1e-3)
    assert vectors.T @ vectors == pytest.approx(np.eye(3), abs=1e-12)


def test_every_repair_runs_where_it_is_asked_to(monkeypatch):
    monkeypatch.setattr(devices, "SMALL", 2)
    schema = pc.Schema.from_dict({"columns": {n: {"lower": 0, "upper": 1} for n in "abc"}})
    made = pc.release(
        np.random.default_rng(1).uniform(size=(300, 3)),
        schema=schema,
        loss=pc.PureDP(epsilon=1, neighbours="replace-one"),
        randomness=rehearsal(1),
    )
    for method in METHODS:
        here = made.second_moment(repair=method, scaled=True)
        fresh = pc.Release(schema=made.schema, rows=made.rows, upper=made.upper, certificate=made.certificate)
        with devices.using("torch"):
            assert fresh.second_moment(repair=method, scaled=True) == pytest.approx(here, abs=1e-6), method


@pytest.mark.parametrize("word", ["gpu", "", "cuda:", "cuda:x", "CUDA", None, 3])
def test_a_device_nobody_knows_is_refused(word):
    with pytest.raises(ParameterError, match="E215"):
        Device.named(word)


def test_without_a_gpu_the_processor_is_used_and_says_so():
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    told = []
    assert Device.named("cuda", tell=told.append) == devices.CPU
    assert "using cpu instead of cuda" in told[0]
    with pytest.warns(UserWarning, match="using cpu instead of cuda"):
        Device.named("cuda")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Device.named("cpu")


def test_without_pytorch_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(devices, "find_spec", lambda name: None)
    with pytest.raises(ParameterError, match=r"E215 .*privcov\[torch\]"):
        Device.named("cuda")


def test_a_device_belongs_to_the_local_engine():
    with pytest.raises(ParameterError, match="E213"):
        engine_named("spark", device=TORCH)


def spread_out(dimension):
    """A symmetric matrix with eigenvalues well apart, in no special basis."""
    turned = np.linalg.qr(rehearsal(9).normals(dimension, dimension)).Q
    return turned @ np.diag(np.linspace(0, 40, dimension)) @ turned.T


@pytest.mark.parametrize(("rank", "concentration"), [(120, 20.0), (90, 0.5), (40, 0.0)])
def test_a_chain_on_a_device_is_that_of_the_same_words_here(rank, concentration, monkeypatch):
    """Every vector, to rounding: blocks, exchanges and complements are the same, and below 64 columns it comes back."""
    monkeypatch.setattr(devices, "SMALL", 64)
    matrix, strengths = spread_out(120), [concentration] * min(rank, 119)
    here, proposed = sample_chain(rehearsal(5), matrix, strengths, rank=rank)
    with devices.using(TORCH):
        there, as_often = sample_chain(rehearsal(5), matrix, strengths, rank=rank)
    assert as_often == proposed
    assert there == pytest.approx(here, abs=1e-7)
    assert there.T @ there == pytest.approx(np.eye(rank), abs=1e-12)


def test_no_matrix_of_a_chain_on_a_device_is_multiplied_here(monkeypatch):
    monkeypatch.setattr(devices, "SMALL", 16)
    for name in ("dsytrd", "dstevd", "dgeqrf", "dorgqr", "dormqr"):
        monkeypatch.setattr(f"scipy.linalg.lapack.{name}", None)
    with devices.using(TORCH):
        vectors, _ = sample_chain(rehearsal(5), spread_out(60), [5.0] * 20, rank=20)
    assert vectors.T @ vectors == pytest.approx(np.eye(20), abs=1e-12)


def test_a_release_by_eigenvectors_is_the_same_on_a_device(monkeypatch):
    monkeypatch.setattr(devices, "SMALL", 8)
    columns = {f"x{i}": {"lower": -1, "upper": 1} for i in range(24)}
    schema = pc.Schema.from_dict({"columns": columns, "intercept": False})
    table = np.random.default_rng(3).normal(size=(400, 24)) * np.linspace(0.1, 1, 24)
    made = [
        pc.release(
            table,
            schema=schema,
            loss=pc.PureDP(epsilon=5, neighbours="replace-one"),
            mechanism="eigenvectors",
            arithmetic="idealized",
            randomness=rehearsal(6),
            engine=Local(device=place),
        ).second_moment(raw=True, scaled=True)
        for place in (devices.CPU, TORCH)
    ]
    assert made[1] == pytest.approx(made[0], abs=1e-5 * np.abs(made[0]).max())


def test_eigenvectors_are_put_together_again_where_they_were_found():
    matrix = spread_out(devices.SMALL)
    with devices.using(TORCH):
        values, vectors = devices.eigh(matrix)
        assert devices.composed(vectors, values) == pytest.approx(matrix, abs=1e-10)
    assert devices.composed(vectors, values) == pytest.approx(matrix, abs=1e-10)


def test_the_bench_tells_both_times_and_that_it_was_the_same_sample(monkeypatch):
    monkeypatch.setattr(devices, "SMALL", 32)
    found = bench.run_eigenvectors(device="torch", dimension=80, rank=30)
    assert found["there"]["proposals"] == found["here"]["proposals"]
    assert found["largest_difference"] < 1e-7
    assert "Here / there" in bench.render_eigenvectors(found)
