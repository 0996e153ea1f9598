"""A wide release is one file of a text and machine words: whole or refused, of a size that tells nothing."""

from __future__ import annotations

import hmac
import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import privcov as pc
from privcov.cli import main
from privcov.errors import PrivcovError
from privcov.linalg import triangle
from privcov.linalg.triangle import diagonal_places, is_wide, symmetric
from privcov.mechanisms import MECHANISMS
from privcov.models import perturbation
from privcov.noise.exact import products, uniforms
from privcov.noise.laws import LAWS
from privcov.noise.randomness import rehearsal
from privcov.planning.candidates import decide
from privcov.releases import triangle as words
from privcov.releases.codec import FORM
from privcov.releases.documents import to_text
from privcov.releases.signing import keygen
from privcov.releases.triangle import Triangle, word_bytes
from privcov.schema.grid import Grid
from privcov.summing.gram import Gram, upper_of
from privcov.verification.verify import verify

KEY = keygen()
LOSSES = {
    "pure": pc.PureDP(epsilon=1, neighbours="replace-one"),
    "approximate": pc.ApproxDP(epsilon=1, delta="1e-6", neighbours="replace-one"),
}


def numeric(dimension):
    return pc.Schema.from_dict(
        {"columns": {f"x{i}": {"lower": -1, "upper": 1} for i in range(dimension - 1)}}
    )


@pytest.fixture
def wide(monkeypatch):
    """Fifteen entries are wide, and four are a piece."""
    monkeypatch.setattr(triangle, "WIDE", 5)
    monkeypatch.setattr(words, "_PIECE", 4)
    monkeypatch.setattr(uniforms, "PIECE", 4)
    monkeypatch.setattr(products, "PIECE", 4)


@pytest.fixture
def path(wide, people, schema, tmp_path):
    """A signed wide release of fifteen entries."""
    release = pc.release(people, schema=schema, loss=LOSSES["pure"])
    release.save(tmp_path / "r.release", key=KEY)
    return tmp_path / "r.release"


def test_a_release_of_1448_columns_is_words_of_eight_bytes_after_its_text(tmp_path):
    rows = np.random.default_rng(1).uniform(-1, 1, size=(60, 1447))
    files = []
    for scale in (1, 0):
        release = pc.release(scale * rows, schema=numeric(1448), loss=LOSSES["approximate"])
        path = tmp_path / f"{scale}.release"
        release.save(path, key=KEY)
        files.append(path)
    head, body = files[0].read_bytes().split(b"\n", 1)
    assert len(body) == 8 * 1448 * 1449 // 2
    assert files[0].stat().st_size == files[1].stat().st_size  # rows of zeros take the same room
    assert json.loads(head)["matrix"]["body"]["encoding"] == "int64-le"
    loaded = pc.load(files[1], signed_by=KEY.public)
    assert loaded == release
    assert verify(files[1], key=KEY.public).holds
    raw = loaded.second_moment(raw=True, scaled=True)
    expected = np.zeros((1448, 1448))
    expected[0, 0] = 60
    assert float(np.abs(raw - expected).max()) < 7 * np.sqrt(release.certificate.law.diagonal_variance)


@pytest.mark.slow
def test_a_release_of_4500_columns_goes_from_rows_to_a_repaired_matrix(tmp_path):
    rows = np.random.default_rng(1).uniform(-1, 1, size=(500, 4499))
    release = pc.release(rows, schema=numeric(4500), loss=LOSSES["pure"])
    assert release.certificate.mechanism == "frobenius"  # symmetric-wishart stops at 4,096
    release.save(tmp_path / "r.release")
    loaded = pc.load(tmp_path / "r.release")
    assert loaded == release
    assert np.linalg.norm(loaded.second_moment(scaled=True)) <= np.linalg.norm(
        loaded.second_moment(scaled=True, raw=True)
    )
    with pytest.raises(PrivcovError, match="E269"):
        pc.pca(loaded)
    assert set(pc.ols(loaded, "x0 ~ x1").params) == {"(Intercept)", "x1"}


@pytest.mark.parametrize("name", ["laplace", "frobenius", "symmetric-wishart", "gaussian", "joint-gaussian"])
def test_a_wide_release_has_the_same_integers_as_a_narrow_one(name, wide, monkeypatch):
    """The same words of the same source, added by the machine and by Python."""
    loss = LOSSES["pure" if MECHANISMS[name].kinds == ("pure",) else "approximate"]
    rows = np.random.default_rng(2).uniform(-1, 1, size=(40, 4))

    def made():
        return pc.release(rows, schema=numeric(5), loss=loss, mechanism=name, randomness=rehearsal(3)).upper

    words = made()
    monkeypatch.setattr(triangle, "WIDE", 100)
    integers = made()
    assert isinstance(words, Triangle)
    assert isinstance(integers, tuple)
    assert tuple(words) == integers
    assert words[3] == integers[3]
    assert words[1:3] == integers[1:3]
    assert len(words) == 15


@pytest.mark.parametrize("name", ["gaussian", "eigenvectors", "johnson-lindenstrauss"])
def test_idealized_and_data_driven_releases_are_wide_too(name, wide, tmp_path):
    loss = LOSSES["pure" if MECHANISMS[name].kinds == ("pure",) else "approximate"]
    rows = np.random.default_rng(2).uniform(-1, 1, size=(40, 4))
    release = pc.release(rows, schema=numeric(5), loss=loss, mechanism=name, arithmetic="idealized")
    assert release.upper.word == (16 if release.certificate.law is None else 8)
    release.save(tmp_path / "r.release")
    assert pc.load(tmp_path / "r.release") == release


def test_the_text_of_a_narrow_release_is_as_it_always_was(made):
    document = json.loads(made.to_json())
    assert set(document["matrix"]) == {"grid", "upper", "sketch"}
    assert [int(text) for text in document["matrix"]["upper"]] == list(made.upper)


def test_a_long_text_of_an_earlier_version_is_still_read(made, tmp_path, monkeypatch):
    made.save(tmp_path / "r.json")
    monkeypatch.setattr(triangle, "WIDE", 5)
    assert pc.load(tmp_path / "r.json") == made


@pytest.mark.parametrize("at", [0, 1, 60, 119])
def test_a_bit_flipped_in_the_matrix_is_found(path, at):
    content = bytearray(path.read_bytes())
    content[len(content) - 120 + at] ^= 1
    path.write_bytes(content)
    with pytest.raises(PrivcovError, match="E611") as failure:
        pc.load(path)
    assert failure.value.exit_code == 4
    verdict = verify(path)
    assert not verdict.holds
    assert [check.name for check in verdict.checks] == ["seal"]


@pytest.mark.parametrize(
    "change", [lambda c: c[:-1], lambda c: c[:-120], lambda c: c[:-60], lambda c: c + b"\0"]
)
def test_a_matrix_cut_short_or_added_to_is_refused(path, change):
    path.write_bytes(change(path.read_bytes()))
    for reader in (pc.load, verify):
        with pytest.raises(PrivcovError, match="E612"):
            reader(path)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_whatever_byte_is_changed_the_file_is_refused_with_a_code(path, data):
    original = path.read_bytes()
    at = data.draw(st.integers(0, len(original) - 1))
    new = data.draw(st.integers(0, 255).filter(lambda byte: byte != original[at]))
    damaged = path.with_suffix(".damaged")
    damaged.write_bytes(original[:at] + bytes([new]) + original[at + 1 :])
    with pytest.raises(PrivcovError, match=r"E6\d\d"):
        pc.load(damaged)


@pytest.mark.parametrize(
    "change",
    [
        lambda b: b.update(bytes=128),
        lambda b: b.update(bytes=2**62),
        lambda b: b.update(bytes=-8),
        lambda b: b.update(bytes="120"),
        lambda b: b.update(encoding="int128-le"),
        lambda b: b.update(sha256=b["sha256"].upper()),
        lambda b: b.update(note=1),
        lambda b: b.pop("encoding"),
    ],
)
def test_a_head_that_lies_about_its_matrix_is_refused_even_with_a_fresh_digest(path, change):
    head, body = path.read_bytes().split(b"\n", 1)
    document = json.loads(head)
    change(document["matrix"]["body"])
    about = {word: value for word, value in document.items() if word not in ("format", "signature")}
    path.write_bytes(to_text(FORM.sealed(about)).encode() + body)
    with pytest.raises(PrivcovError, match=r"E601|E611"):
        pc.load(path)


def test_a_narrow_matrix_cannot_come_as_words(path, monkeypatch):
    monkeypatch.setattr(triangle, "WIDE", 2**20)
    with pytest.raises(PrivcovError, match="E601"):
        pc.load(path)


def test_a_head_of_many_columns_makes_no_room_for_a_matrix_that_is_not_there(tmp_path):
    """Two hundred million entries are promised, and the file ends."""
    release = pc.release(
        np.zeros((3, 1447)), schema=numeric(1448), loss=LOSSES["approximate"], arithmetic="idealized"
    )
    release.save(tmp_path / "r.release")
    head = (tmp_path / "r.release").read_bytes().split(b"\n", 1)[0]
    (tmp_path / "r.release").write_bytes(head + b"\n" + bytes(100))
    with pytest.raises(PrivcovError, match="E612"):
        pc.load(tmp_path / "r.release")


@given(st.lists(st.integers(-(2**127), 2**127 - 1), min_size=1, max_size=9))
def test_integers_of_up_to_127_bits_come_back(values):
    made = Triangle.of(np.array(values, dtype=object), word=16)
    assert list(made) == values
    assert made.floats(0.25) == pytest.approx([value * 0.25 for value in values], rel=1e-15)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=9))
def test_machine_integers_are_the_same_in_either_word(values):
    machine = np.array(values, dtype=np.int64)
    assert list(Triangle.of(machine, word=8)) == list(Triangle.of(machine, word=16)) == values
    assert Triangle.of(machine, word=8) == Triangle.of(machine.astype(object), word=8)


def test_an_integer_that_fits_no_word_becomes_the_nearest_that_does():
    huge = np.array([2**200, -(2**200)], dtype=object)
    assert list(Triangle.of(huge, word=8)) == [2**63 - 1, -(2**63)]
    assert list(Triangle.of(huge, word=16)) == [2**127 - 1, -(2**127)]


def test_the_word_follows_from_public_facts_alone():
    grid = Grid(dimension=2000, exponent=19, squared_norm_bound=2**38)
    law = LAWS["gaussian"](dimension=2000, scale=1.0)
    assert word_bytes(grid=grid, rows=10**6, law=law) == 8
    assert word_bytes(grid=grid, rows=10**9, law=law) == 16  # 10⁹ · 4^19 is beyond 2^62
    assert word_bytes(grid=grid, rows=None, law=law) == 16
    assert word_bytes(grid=grid, rows=10**6, law=None) == 16
    assert word_bytes(grid=grid, rows=1, law=LAWS["gaussian"](dimension=2000, scale=1e9)) == 16


def test_triangles_are_in_the_order_of_numpy():
    whole = np.arange(49).reshape(7, 7)
    assert upper_of(whole).tolist() == whole[np.triu_indices(7)].tolist()
    assert np.array_equal(symmetric(upper_of(whole), 7), np.triu(whole) + np.triu(whole, 1).T)
    assert upper_of(np.diag(np.arange(1, 8)))[diagonal_places(7)].tolist() == list(range(1, 8))


def test_a_wide_sum_that_one_word_does_not_hold_is_still_exact(wide, monkeypatch):
    monkeypatch.setattr(Gram, "_word", 2**41)
    grid = Grid(dimension=5, exponent=19, squared_norm_bound=2**40)
    gram, rows = Gram(grid), np.full((64, 5), 2.0**18)
    gram.add(rows[:32])
    gram.add(rows[32:])
    assert gram.reveal_to_mechanism().tolist() == [64 * 2**36] * 15
    monkeypatch.setattr(Gram, "_word", 2**62)
    gram = Gram(grid)
    gram.add(rows)
    assert gram.reveal_to_mechanism().dtype == np.int64


def test_a_fingerprint_is_the_keyed_digest_of_one_text(wide):
    gram = Gram(Grid(dimension=4, exponent=19, squared_norm_bound=2**40))
    gram.add(np.arange(12.0).reshape(3, 4))
    text = "\n".join(map(str, [4, 19, 3, *gram.reveal_to_mechanism().tolist(), "über"]))
    assert gram.fingerprint(b"key", "über") == hmac.digest(b"key", text.encode(), "sha256").hex()


@pytest.mark.parametrize(
    "name", sorted(set(MECHANISMS) - {"gaussian", "joint-gaussian", "laplace", "frobenius"})
)
def test_mechanisms_that_stop_at_4096_columns_say_so_before_anything_is_read(name):
    loss = LOSSES["pure" if MECHANISMS[name].kinds == ("pure",) else "approximate"]
    if "approximate" not in MECHANISMS[name].kinds and loss.kind == "approximate":
        loss = pc.ZCDP(rho=1, neighbours="replace-one")
    with pytest.raises(PrivcovError, match=r"E267 .* at most 4,096 columns, got 4,097"):
        pc.release("nowhere.csv", schema=numeric(4097), loss=loss, mechanism=name)


def test_auto_takes_what_can_be_drawn_for_many_columns():
    for loss, name in ((LOSSES["pure"], "frobenius"), (LOSSES["approximate"], "gaussian")):
        chosen = decide("auto", loss=loss, schema=numeric(4097), purpose="covariance").mechanism
        assert chosen.name == name


def test_show_prints_a_corner_of_a_wide_release_and_no_matrix_as_json(path, capsys):
    assert main(["show", str(path)]) == 0
    assert "correlations" in capsys.readouterr().out
    assert main(["show", str(path), "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert values["covariance"] is values["correlation"] is values["raw_second_moment"] is None
    assert len(values["mean"]) == 4
    assert values["certificate"]["mechanism"]


def test_show_prints_all_means_of_a_wide_release(path, capsys):
    assert main(["show", str(path), "--matrix", "mean"]) == 0
    shown, columns = capsys.readouterr().out, pc.load(path).columns[1:]
    assert all(f"\n{name} " in shown for name in columns)
    assert "Standard deviations of so wide a release are told to three digits" in shown.replace("\n", " ")


def test_a_wide_release_goes_through_a_pipe_as_it_goes_to_a_file(
    wide, people, schema, tmp_path, capsysbinary
):
    (tmp_path / "s.toml").write_text(schema.to_toml())
    assert main(["release", str(people), "--schema", str(tmp_path / "s.toml"), "--epsilon", "1"]) == 0
    (tmp_path / "r.release").write_bytes(capsysbinary.readouterr().out)
    assert verify(tmp_path / "r.release").holds


def test_a_wide_matrix_is_shrunk_and_nothing_is_rehearsed(people, schema, monkeypatch):
    release = pc.release(people, schema=schema, loss=LOSSES["pure"])
    shrunk = release.second_moment(repair="shrink", scaled=True)
    for module in ("privcov.repair", "privcov.releases.release"):
        monkeypatch.setattr(f"{module}.MOST_REHEARSED", 3)
    again = pc.release(people, schema=schema, loss=LOSSES["pure"])
    object.__setattr__(again, "upper", release.upper)
    wide = again.second_moment(scaled=True)
    assert np.array_equal(wide, again.second_moment(repair="shrink", scaled=True))
    assert np.linalg.eigvalsh(wide)[0] >= -1e-9 * np.abs(wide).max()
    assert wide.trace() == pytest.approx(shrunk.trace(), rel=0.2)
    assert again.count() == 300  # public, though no structure is used
    with pytest.raises(PrivcovError, match="E268"):
        again.second_moment(repair="spiked")


def test_what_needs_simulated_noise_is_refused_beyond_its_columns(made, monkeypatch):
    monkeypatch.setattr(perturbation, "_MOST_COLUMNS", 3)
    with pytest.raises(PrivcovError, match="E269"):
        pc.pca(made)
    values = pc.pca(made, rank=2).to_dict()
    assert values["intervals"] is None
    assert len(values["components"]) == 2


def test_original_units_are_those_of_the_public_map(made):
    moment = made.second_moment(raw=True, scaled=True)
    assert made.second_moment(raw=True) == pytest.approx(made.units @ moment @ made.units.T, rel=1e-12)


def test_a_schema_may_have_twenty_thousand_columns():
    schema = numeric(20_000)
    assert schema.dimension == 20_000
    assert Grid.of(schema).squared_norm_bound <= 2**40
    assert not is_wide(1447)
    assert is_wide(1448)
    assert Fraction(20_000) == schema.squared_norm_bound


@pytest.mark.long
def test_the_bench_prints_every_step_beside_its_floor(capsys):
    assert main(["bench", "wide", "--quick", "--repair"]) == 0
    told = capsys.readouterr().out
    assert "500 rows × 1,500 columns (1.1 million entries), summed on cpu" in told
    for step in ("exact sum of rows", "array to release", "save", "load", "verify", "repair"):
        assert f"\n{step} " in told


def test_the_bench_refuses_a_mechanism_that_there_is_none_of(capsys):
    assert main(["bench", "wide", "--mechanism", "magic"]) == 2
    assert "E209 there is no mechanism 'magic'" in capsys.readouterr().err


def test_the_bench_of_repairs_finds_none_better_than_the_oracle(capsys):
    assert main(["bench", "wide", "--part", "repairs", "--quick", "--json"]) == 0
    lines = json.loads(capsys.readouterr().out)["lines"]
    assert len(lines) == 12
    for line in lines:
        errors = line["errors"]
        assert min(errors, key=errors.get) == "oracle"
        assert errors["shrink"] < errors["clip"]
        assert errors["rehearsed"] <= 1.05 * errors["shrink"] + 0.01
