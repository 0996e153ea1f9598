"""A release reads back identical, speaks original units, and is a valid moment matrix."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

import privcov as pc
from privcov.codec import FORM, decode
from privcov.errors import PrivcovError
from privcov.noise import LAWS
from privcov.randomness import rehearsal


@pytest.fixture
def table(people):
    with people.open() as file:
        rows = list(csv.DictReader(file))
    return np.array(
        [[1, float(r["age"]), r["sex"] == "F", r["sex"] == "M", float(r["income"])] for r in rows],
        dtype=float,
    )


@pytest.fixture
def exact(people, schema):
    """A release whose noise is negligible: ε = 10⁹, a rehearsal."""
    loss = pc.PureDP(epsilon=10**9, neighbours="replace-one")
    return pc.release(people, schema=schema, loss=loss, randomness=rehearsal(1))


def test_a_saved_release_loads_identical(made, tmp_path):
    path = tmp_path / "r.json"
    made.save(path)
    assert pc.load(path) == made
    assert pc.load(path).to_json() == made.to_json() == path.read_text()


@pytest.mark.parametrize(
    "loss",
    [
        pc.PureDP(epsilon="1/3", neighbours="add-remove"),
        pc.ApproxDP(epsilon="0.5", delta="1e-9", neighbours="replace-one"),
        pc.ZCDP(rho="0.125", neighbours="add-remove"),
    ],
)
@pytest.mark.parametrize(
    "words", [{}, {"row_norm_bound": "1.7"}, {"intercept": False, "missing": "zero-row"}]
)
def test_every_kind_of_release_round_trips(people, tmp_path, loss, words):
    columns = {
        "age": {"lower": 0, "upper": 99.5},
        "sex": {"levels": ["F", "M", "X y"]},
        "income": {"lower": -5, "upper": 5},
    }
    schema = pc.Schema.from_dict({"columns": columns, **words})
    release = pc.release(people, schema=schema, loss=loss)
    release.save(tmp_path / "r.json")
    assert pc.load(tmp_path / "r.json") == release


def test_numeric_levels_round_trip(tmp_path):
    schema = pc.Schema.from_dict({"columns": {"code": {"levels": [1, 2.5, 3]}}})
    release = pc.release(
        np.array([[1.0], [2.5], [9.0]]), schema=schema, loss=pc.PureDP(epsilon=1, neighbours="replace-one")
    )
    release.save(tmp_path / "r.json")
    assert pc.load(tmp_path / "r.json") == release


def test_sums_in_original_units_are_the_plain_sums(exact, table):
    assert exact.second_moment(raw=True) == pytest.approx(table.T @ table, rel=1e-4, abs=1e-3)
    assert exact.second_moment() == pytest.approx(table.T @ table, rel=1e-3, abs=1e-3 * 300 * 200)


def test_means_covariance_and_correlation_are_those_of_the_table(exact, table):
    assert exact.mean() == pytest.approx(table[:, 1:].mean(0), rel=1e-3)
    assert exact.covariance() == pytest.approx(np.cov(table[:, 1:].T), rel=1e-2, abs=0.02)
    assert exact.correlation() == pytest.approx(np.corrcoef(table[:, 1:].T), abs=5e-3)


def test_a_noisy_release_is_still_a_valid_moment_matrix(people, schema):
    for seed in range(5):
        release = pc.release(
            people,
            schema=schema,
            loss=pc.PureDP(epsilon="0.02", neighbours="replace-one"),
            randomness=rehearsal(seed),
        )
        moment = release.second_moment(scaled=True)
        assert np.linalg.eigvalsh(moment)[0] >= -1e-6 * np.abs(moment).max()
        assert moment[0, 0] == pytest.approx(
            300
        )  # public structure: the count, and levels that exclude each other
        assert moment[2, 3] == pytest.approx(0, abs=1e-9)
        assert moment[2, 2] == pytest.approx(moment[0, 2], abs=1e-6 * 300)
        assert np.nanmax(np.abs(release.correlation())) <= 1
        assert np.linalg.eigvalsh(release.covariance(scaled=True))[0] >= -1e-6


def test_under_add_remove_the_count_is_private_and_noisy(people, schema):
    release = pc.release(
        people, schema=schema, loss=pc.PureDP(epsilon=1, neighbours="add-remove"), randomness=rehearsal(2)
    )
    assert release.rows is None
    assert release.to_dict()["rows"] == {"kind": "private", "count": None}
    assert 100 < release.count() < 500
    assert release.count() != 300


def test_without_an_intercept_means_are_refused_with_the_remedy(people):
    schema = pc.Schema.from_dict(
        {"columns": {"age": {"lower": 0, "upper": 100}}, "intercept": False, "ignore_extra": True}
    )
    release = pc.release(people, schema=schema, loss=pc.PureDP(epsilon=1, neighbours="replace-one"))
    for method in (release.mean, release.covariance, release.correlation, release.second_moment):
        with pytest.raises(PrivcovError, match=r"E210.*intercept = true"):
            method()
    assert release.second_moment(scaled=True).shape == (1, 1)


def test_a_rehearsal_is_marked_and_refuses_to_be_saved(rehearsed, tmp_path):
    assert rehearsed.certificate.randomness == "rehearsal"
    with pytest.raises(PrivcovError, match="E402"):
        rehearsed.save(tmp_path / "r.json")
    assert not (tmp_path / "r.json").exists()


def test_a_rehearsal_can_be_repeated_and_a_release_cannot(people, schema):
    loss = pc.PureDP(epsilon=1, neighbours="replace-one")
    again = [pc.release(people, schema=schema, loss=loss, randomness=rehearsal(3)).upper for _ in range(2)]
    fresh = [pc.release(people, schema=schema, loss=loss).upper for _ in range(2)]
    assert again[0] == again[1]
    assert fresh[0] != fresh[1]


def test_an_existing_file_is_kept_unless_forced(made, tmp_path):
    path = tmp_path / "r.json"
    path.write_text("precious")
    with pytest.raises(PrivcovError, match=r"E401.*--force"):
        made.save(path)
    assert path.read_text() == "precious"
    made.save(path, force=True)
    assert pc.load(path) == made
    assert list(tmp_path.glob(".*")) == []


def test_a_release_is_never_written_through_a_symbolic_link(made, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "target")
    for force in (False, True):
        with pytest.raises(PrivcovError, match="E401"):
            made.save(tmp_path / "link", force=force)
    assert not (tmp_path / "target").exists()


def broken(document, change):
    """The file text after ``change`` was made to its JSON values, digest recomputed by nobody."""
    values = json.loads(document)
    change(values)
    return json.dumps(values)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda v: v["matrix"]["upper"].__setitem__(0, str(int(v["matrix"]["upper"][0]) + 1)), "E603"),
        (lambda v: v["columns"].__setitem__(1, "weight"), "E603"),
        (lambda v: v["certificate"]["guarantee"].update(epsilon="0.1"), "E603"),
        (lambda v: v["certificate"].update(arithmetic="exact "), "E603"),
        (lambda v: v.update(note="hello"), "E603"),
        (lambda v: v.pop("scaling"), "E603"),
        (lambda v: v["signature"].update(value="0" * 64), "E603"),
        (lambda v: v.update(format="privcov/release/2"), "E602"),
        (lambda v: v.update(format="something/else"), "E601"),
        (lambda v: v.pop("format"), "E601"),
    ],
)
def test_a_tampered_release_is_refused(made, tmp_path, change, code):
    path = tmp_path / "r.json"
    path.write_text(broken(made.to_json(), change))
    with pytest.raises(PrivcovError, match=code):
        pc.load(path)


def redigested(document, change):
    """A forger's file: changed, and with a fresh digest."""
    values = json.loads(document)
    change(values)
    return FORM.sealed({k: v for k, v in values.items() if k not in ("format", "signature")})


@pytest.mark.parametrize(
    "change",
    [
        lambda v: v["matrix"]["upper"].append("1"),
        lambda v: v["matrix"]["upper"].__setitem__(0, 1.5),
        lambda v: v["matrix"]["upper"].__setitem__(0, 7),
        lambda v: v["matrix"]["upper"].__setitem__(0, "9" * 10_000),
        lambda v: v["matrix"]["upper"].__setitem__(0, "007"),
        lambda v: v["matrix"]["upper"].__setitem__(0, "1e5"),
        lambda v: v["matrix"].update(grid="2^-3"),
        lambda v: v["columns"].__setitem__(1, "weight"),
        lambda v: v["scaling"].__setitem__(1, {"kind": "numeric", "middle": "0.0", "half_width": "1.0"}),
        lambda v: v["rows"].update(count=-4),
        lambda v: v["rows"].update(count=None),
        lambda v: v["rows"].update(kind="private"),
        lambda v: v["rows"].update(count=True),
        lambda v: v["certificate"]["guarantee"].update(epsilon="-1"),
        lambda v: v["certificate"]["guarantee"].update(epsilon=None),
        lambda v: v["certificate"]["guarantee"].update(delta="0.1"),
        lambda v: v["certificate"]["guarantee"].update(kind="perfect"),
        lambda v: v["certificate"].update(neighbours="strangers"),
        lambda v: v["certificate"].update(row_norm_bound="0"),
        lambda v: v["certificate"].update(row_norm_bound="sqrt(99)"),
        lambda v: v["certificate"]["noise"].update(scale="nan"),
        lambda v: v["certificate"]["noise"].update(law="silence"),
        lambda v: v["certificate"].update(clipped_rows=17),
        lambda v: v["certificate"].update(mechanism=None),
        lambda v: v["certificate"].update(randomness="dice"),
        lambda v: v["certificate"]["bounds"]["columns"][0].update(lower="100"),
        lambda v: v["certificate"]["bounds"].update(max_rows_per_person="1"),
        lambda v: v.update(certificate=[]),
        lambda v: v.update(matrix={"grid": "2^-3"}),
    ],
)
def test_a_forged_release_that_makes_no_sense_is_refused_even_with_a_fresh_digest(made, change):
    with pytest.raises(PrivcovError, match=r"E60[13]"):
        decode(redigested(made.to_json(), change))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "1",
        '{"format": "privcov/release/1", "format": "privcov/release/1"}',
        "[" * 100_000,
        "{}",
        '{"a": NaN}',
        '{"a": 1.5}',
    ],
)
def test_what_is_not_a_release_file_is_refused(text):
    with pytest.raises(PrivcovError, match="E601"):
        decode(FORM.parse(text))


@pytest.fixture
def sketched(people, schema):
    """A release with sketched rows."""
    loss = pc.ApproxDP(epsilon=1, delta="1e-6", neighbours="add-remove")
    return pc.release(people, schema=schema, loss=loss, mechanism="johnson-lindenstrauss", sketch_rows=7)


def test_a_release_with_sketched_rows_loads_identical(sketched, tmp_path):
    sketched.save(tmp_path / "r.json")
    loaded = pc.load(tmp_path / "r.json")
    assert loaded == sketched
    assert loaded.to_json() == sketched.to_json()
    assert (len(loaded.sketch), {len(row) for row in loaded.sketch}) == (7, {5})


def test_a_release_without_sketched_rows_says_so(made):
    assert made.to_dict()["matrix"]["sketch"] is None
    assert set(made.to_dict()["matrix"]) == {"grid", "upper", "sketch"}


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s["rows"].pop(),
        lambda s: s["rows"].clear(),
        lambda s: s["rows"][0].pop(),
        lambda s: s["rows"][0].append("1"),
        lambda s: s["rows"][0].__setitem__(0, str(int(s["rows"][0][0]) + 2**20)),
        lambda s: s["rows"][0].__setitem__(0, 7),
        lambda s: s["rows"][0].__setitem__(0, 1.5),
        lambda s: s["rows"][0].__setitem__(0, "007"),
        lambda s: s["rows"][0].__setitem__(0, "-0"),
        lambda s: s["rows"].__setitem__(0, "12345"),
        lambda s: s.update(rows={}),
        lambda s: s.update(rows=None),
        lambda s: s.update(grid="2^-3"),
        lambda s: s.update(note="hello"),
        lambda s: s.pop("grid"),
    ],
)
def test_a_tampered_sketch_is_refused_even_with_a_fresh_digest(sketched, change):
    with pytest.raises(PrivcovError, match="E601"):
        decode(redigested(sketched.to_json(), lambda v: change(v["matrix"]["sketch"])))
    with pytest.raises(PrivcovError, match=r"E60[13]"):
        decode(json.loads(broken(sketched.to_json(), lambda v: change(v["matrix"]["sketch"]))))


def test_a_matrix_that_does_not_follow_from_its_rows_is_refused(sketched):
    for place in (0, 1, 5):
        with pytest.raises(PrivcovError, match="E601"):
            decode(
                redigested(
                    sketched.to_json(),
                    lambda v, place=place: v["matrix"]["upper"].__setitem__(
                        place, str(sketched.upper[place] + 1)
                    ),
                )
            )


def test_every_truncation_of_a_release_file_is_refused(made, tmp_path):
    text = made.to_json()
    path = tmp_path / "r.json"
    for length in range(0, len(text) - 2, 37):
        path.write_text(text[:length])
        with pytest.raises(PrivcovError, match="E601"):
            pc.load(path)


def test_a_release_file_holds_no_field_beyond_the_whitelist(made):
    document = made.to_dict()
    assert set(document) == {"format", "columns", "scaling", "rows", "matrix", "certificate", "signature"}
    assert set(document["certificate"]) == {
        "mechanism", "options", "guarantee", "neighbours", "row_norm_bound", "bounds", "noise", "arithmetic",
        "randomness", "proof", "timing", "version", "created",
    }  # fmt: skip


def test_every_noise_law_is_known_to_the_reader():
    gaussian = {"gaussian", "gaussian-free-trace", "gaussian-triangle"}
    assert set(LAWS) == {"wishart-difference", "laplace", "frobenius"} | gaussian


def test_a_release_prints_its_promise_and_no_matrix(made):
    promise = "symmetric-wishart, pure differential privacy, epsilon = 1, replace-one"
    assert repr(made) == f"<Release of 5 columns, 300 rows: {promise}>"
