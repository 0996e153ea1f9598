"""A release reads back identical, speaks original units, and is a valid moment matrix."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

import privcov as pc
from privcov.errors import PrivcovError
from privcov.noise.laws import LAWS
from privcov.noise.randomness import rehearsal
from privcov.releases.codec import FORM, decode


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


RULES = {
    "age": {"lower": 0, "upper": 100, "missing": "indicator", "missing_values": [-9]},
    "sex": {"levels": ["F", "M"], "missing": "indicator"},
    "income": {"lower": 0, "upper": 200, "fill": 12},
    "smoker": {"levels": [True, False], "fill": False},
    "kids": {"lower": 0, "upper": 9, "missing": "zero-row"},
}
LINES = "age,sex,income,smoker,kids\n-9,F,,yes,1\n50,,150,TRUE,2\n75,M,100,0,\n25,NA,100,1,9\n"


def with_rules(tmp_path, epsilon=10**9, **words):
    (tmp_path / "c.csv").write_text(LINES)
    schema = pc.Schema.from_dict({"columns": RULES, "missing_values": ["NA"], **words})
    loss = pc.PureDP(epsilon=epsilon, neighbours="replace-one")
    return pc.release(tmp_path / "c.csv", schema=schema, loss=loss, randomness=rehearsal(1))


def test_missing_cells_count_as_their_columns_say(tmp_path):
    made = with_rules(tmp_path)
    names = ["(Intercept)", "age", "age[missing]", "sex[F]", "sex[M]", "sex[missing]", "income"]
    assert list(made.columns) == [*names, "smoker[true]", "smoker[false]", "kids"]
    # The third row is zero throughout: kids is missing in it.
    rows = np.array([[1, 0, 1, 1, 0, 0, -0.88, 0, 1, -7 / 9], [1, 0, 0, 0, 0, 1, 0.5, 1, 0, -5 / 9],
                     [1, -0.5, 0, 0, 0, 1, 0, 1, 0, 1]])  # fmt: skip
    assert made.second_moment(raw=True, scaled=True) == pytest.approx(rows.T @ rows, abs=1e-4)


def test_public_structure_knows_what_an_indicator_excludes(tmp_path):
    made = with_rules(tmp_path, epsilon=100)
    moment = made.second_moment(scaled=True)
    assert np.abs(made.second_moment(raw=True, scaled=True)[1, 2]) > 1e-3  # noise, which repair takes away
    at = {name: place for place, name in enumerate(made.columns)}
    for name in ("age[missing]", "sex[missing]", "smoker[true]"):
        assert moment[at[name], at[name]] == pytest.approx(moment[0, at[name]], abs=1e-6)
    assert moment[at["age"], at["age[missing]"]] == pytest.approx(0, abs=1e-9)
    assert moment[at["sex[F]"], at["sex[missing]"]] == pytest.approx(0, abs=1e-9)
    assert [0, 0] not in made.structure.fixed.tolist()  # a row without kids has no intercept
    kept = {name: about for name, about in RULES.items() if name != "kids"}
    schema = pc.Schema.from_dict({"columns": kept, "ignore_extra": True})
    loss = pc.PureDP(epsilon=1, neighbours="replace-one")
    assert [0, 0] in pc.release(tmp_path / "c.csv", schema=schema, loss=loss).structure.fixed.tolist()


def test_a_release_says_what_missing_cells_count_as_and_not_how_they_were_written(tmp_path):
    made = with_rules(tmp_path)
    body = made.to_dict()
    assert body["certificate"]["bounds"]["columns"] == [
        {"name": "age", "lower": "0.0", "upper": "100.0", "missing": "indicator"},
        {"name": "sex", "levels": ["F", "M"], "missing": "indicator"},
        {"name": "income", "lower": "0.0", "upper": "200.0", "fill": "12.0"},
        {"name": "smoker", "levels": ["true", "false"], "fill": "false"},
        {"name": "kids", "lower": "0.0", "upper": "9.0", "missing": "zero-row"},
    ]
    assert body["scaling"][2] == {"kind": "missing", "column": "age"}
    assert "NA" not in json.dumps(body["certificate"])
    schema, rows, upper, _, certificate = decode(body)
    assert (schema, rows, upper, certificate) == (made.schema, made.rows, made.upper, made.certificate)


def test_a_release_without_such_rules_is_written_as_ever(exact):
    bounds = exact.to_dict()["certificate"]["bounds"]
    assert list(bounds) == ["columns", "intercept", "missing", "max_rows_per_person"]
    assert [list(column) for column in bounds["columns"]] == [
        ["name", "lower", "upper"], ["name", "levels"], ["name", "lower", "upper"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    "spoil",
    [
        lambda columns: columns[0].update(missing="midpoint"),  # not how this release says it
        lambda columns: columns[0].update(missing="drop"),
        lambda columns: columns[2].update(fill="300.0"),
        lambda columns: columns[2].update(fill="12"),
        lambda columns: columns[2].update(missing="indicator"),
        lambda columns: columns[3].update(fill="maybe"),
        lambda columns: columns[1].update(missing_values=["NA"]),
        lambda columns: columns[1].pop("missing"),
    ],
)
def test_a_release_file_with_other_rules_is_refused(tmp_path, spoil):
    document = with_rules(tmp_path).to_dict()
    body = {word: value for word, value in document.items() if word not in ("format", "digest", "sealed")}
    spoil(body["certificate"]["bounds"]["columns"])
    body = {word: value for word, value in body.items() if word in "columns scaling rows matrix certificate"}
    with pytest.raises(PrivcovError, match="E60"):
        decode(FORM.sealed(body, None))


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


@pytest.mark.parametrize("by", [None, "area"])
def test_means_of_numbers_are_within_their_bounds_however_noisy_the_count(by):
    """Rows at one end of their bounds, and a count that noise makes smaller in about half of all releases."""
    columns = {
        "low": {"lower": 0, "upper": 50},
        "high": {"lower": -9, "upper": 5},
        "area": {"levels": [1, 2]},
    }
    schema = pc.Schema.from_dict({"columns": columns})
    rows = np.column_stack([np.zeros(300), np.full(300, 5.0), np.resize([1, 2], 300)])
    loss = pc.PureDP(epsilon=1, neighbours="add-remove")
    for seed in range(8):
        made = pc.release(rows, schema=schema, loss=loss, by=by, randomness=rehearsal(seed))
        release = made if by is None else made.total()
        assert ((release.mean()[:2] >= (0, -9)) & (release.mean()[:2] <= (50, 5))).all()
        assert (np.abs(release.mean(scaled=True)[:2]) <= 1).all()
