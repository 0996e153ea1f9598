"""Strata behind a private frame: one frame for all of them, fitted on all rows and paid for once."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import privcov as pc
from privcov.cli import main
from privcov.errors import ReleaseError
from privcov.noise.randomness import rehearsal
from privcov.planning.strata import plan_strata
from privcov.releases import codec
from privcov.releases.documents import to_text
from privcov.releases.strata import FORM
from privcov.report.page import html
from privcov.report.summary import as_text, strata_text
from privcov.verification.consistency import disagreements

LOSSES = {
    "pure": pc.PureDP(epsilon=1, neighbours="replace-one"),
    "approximate": pc.ApproxDP(epsilon=1, delta="1e-6", neighbours="add-remove"),
    "zcdp": pc.ZCDP(rho="0.1", neighbours="replace-one"),
}
COLUMNS = {
    "area": {"levels": ["a", "b", "c", "d"]},
    "x": {"lower": 0, "upper": 1000},
    "kind": {"levels": ["k", "m"]},
    "y": {"lower": -2000, "upper": 2000, "missing": "indicator"},
    "z": {"lower": 0, "upper": 1000},
}
SCHEMA = pc.Schema.from_dict({"columns": COLUMNS})
NUMBERS = ("x", "y", "z")


def people(count=12_000, seed=4):
    """Four areas of which one is richer, far within bounds; a fifth area that is in no stratum, some cells missing."""
    rng = np.random.default_rng(seed)
    area = rng.choice(np.array(["a", "b", "c", "d", "other"]), count, p=[0.3, 0.3, 0.25, 0.1, 0.05])
    x = rng.normal(50, 5, count) + 10 * (area == "a")
    y = 2 * x + rng.normal(0, 5, count)
    hidden = rng.random(count) < 0.02
    return pa.table(
        {
            "area": area,
            "x": x,
            "kind": rng.choice(np.array(["k", "m"]), count),
            "y": pa.array(np.where(hidden, 0, y), mask=hidden),
            "z": rng.lognormal(1, 0.5, count),
        }
    )


TABLE = people()


def released(data=TABLE, kind="zcdp", frame="scales", seed=3, **words):
    order = {"schema": SCHEMA, "loss": LOSSES[kind], "by": "area", "frame": frame}
    source = {} if seed is None else {"randomness": rehearsal(seed)}
    return pc.release(data, **{**order, **source, **words})


def truth(area, table=TABLE):
    """The correlations of one area without noise, of rows with nothing missing."""
    rows = table.to_pandas().query("area == @area")[list(NUMBERS)].dropna()
    return np.corrcoef(rows.to_numpy().T)


def error(made, table=TABLE):
    """The root mean square error of correlations of numbers over the three larger strata."""
    found = []
    for area in ("a", "b", "c"):
        places = [made[area].columns.index(name) - 1 for name in NUMBERS]
        apart = made[area].correlation()[np.ix_(places, places)] - truth(area, table)
        found.append(apart[np.triu_indices(3, 1)])
    return np.sqrt(np.mean(np.square(found)))


@pytest.mark.parametrize("kind", list(LOSSES))
@pytest.mark.parametrize("frame", ["scales", "shape", "auto"])
def test_strata_of_narrow_columns_are_far_more_accurate_than_in_the_declared_frame(kind, frame):
    """Bounds are fifty times as wide as the columns: without a frame nothing is seen of a correlation."""
    assert error(released(kind=kind, frame=frame)) < 0.25 < error(released(kind=kind, frame="declared"))


@pytest.mark.parametrize("frame", ["scales", "shape"])
@pytest.mark.parametrize("kind", list(LOSSES))
def test_the_file_carries_one_frame_and_verifies_whole_and_in_parts(kind, frame, tmp_path):
    made = released(kind=kind, frame=frame, seed=None)
    names = [one.name for one in made.certificate.rounds]
    assert "means" not in names  # of all rows they would not be those of a stratum
    assert ("shape" in names) == (frame == "shape")
    made.save(tmp_path / "s.json")
    assert pc.load_strata(tmp_path / "s.json") == made
    assert pc.verify(tmp_path / "s.json").holds
    for name in made:
        assert made[name].schema == made.schema
        assert disagreements(made[name]) == ()
        made[name].save(tmp_path / f"{name}.json")
        assert pc.verify(tmp_path / f"{name}.json").holds
    assert made.total().schema == made.schema


def test_it_costs_the_loss_once_and_is_paid_before_anything_is_read(tmp_path):
    book = pc.Ledger.init(tmp_path / "l", LOSSES["zcdp"])
    made = released(ledger=book, seed=None)
    assert set(book.balance().account.left.values()) == {0}
    spent = sum(one.loss.rho for one in made.certificate.rounds)
    assert 0 < spent < LOSSES["zcdp"].rho


def test_every_way_to_read_a_table_gives_the_same_frame_and_the_same_integers(tmp_path):
    csv.write_csv(TABLE, tmp_path / "t.csv")
    parquet.write_table(TABLE, tmp_path / "t.parquet", row_group_size=5_000)
    here = released(frame="shape")
    for data in (TABLE.to_pandas(), tmp_path / "t.csv", tmp_path / "t.parquet"):
        there = released(data, frame="shape")
        assert (there.schema, there.uppers) == (here.schema, here.uppers)


@pytest.mark.parametrize("frame", ["scales", "shape"])
def test_without_noise_to_speak_of_strata_hold_the_shortened_rows_of_their_own(frame):
    """Their sum is a release of all rows of these strata in the same frame."""
    loss = pc.ZCDP(rho=10**9, neighbours="add-remove")
    made = pc.release(TABLE, schema=SCHEMA, loss=loss, by="area", frame=frame)
    counts = {name: made[name].count() for name in made}
    expected = TABLE.to_pandas().area.value_counts()
    assert {name: round(count) for name, count in counts.items()} == {name: expected[name] for name in made}
    for name in made:
        mean = TABLE.to_pandas().query("area == @name").x.mean()
        assert made[name].mean()[0] == pytest.approx(mean, abs=0.3)
    assert made.total().count() == pytest.approx(sum(counts.values()), abs=0.1)


def test_means_of_shortened_rows_say_that_their_noise_is_not_all():
    """No round asks for the means of strata. Of a design with a long tail their ± held in 73 of 100, without a word."""
    made = released(frame="scales")
    cut = "as the private frame shortened them: ± does not count what was cut."
    for told in (as_text(made["a"], what="mean"), html(made["a"])):
        assert f"Means, standard deviations and covariances are those of the rows {cut}" in " ".join(
            told.split()
        )
    for told in (strata_text(made), made._repr_html_()):
        assert f"Means are those of the rows {cut}" in " ".join(told.split())
    assert "shortened them" not in strata_text(released(frame="declared"))


@pytest.mark.parametrize("rows", [0, 1, 7])
@pytest.mark.parametrize("frame", ["scales", "shape", "auto"])
def test_few_rows_and_rows_in_no_stratum_make_no_error(rows, frame):
    order = {"schema": SCHEMA, "loss": LOSSES["approximate"], "by": "area", "frame": frame}
    table = TABLE.slice(0, rows)
    made = pc.release(table, **order)
    assert len(made) == 4
    nobody = table.set_column(0, "area", pa.array(["nowhere"] * rows, pa.string()))
    assert disagreements(pc.release(nobody, **order)["a"]) == ()


def test_a_total_that_is_paid_for_leaves_the_declared_frame():
    made = released(frame="auto", total_share="0.3")
    assert made.certificate.rounds == ()


@pytest.mark.parametrize("frame", ["scales", "shape"])
def test_everything_downstream_reads_a_stratum_in_a_frame(frame):
    made = released(kind="pure", frame=frame)
    assert "scales" in strata_text(made)
    for release in (made["a"], made.total()):
        fit = pc.ols(release, "y ~ x + kind")
        assert fit.params["x"] == pytest.approx(2, abs=0.8)
        assert len(pc.ridge(release, "y", features=["x", "kind"]).params) == 4
        assert pc.pca(release, rank=2).components.shape[0] == 2
        assert "of the budget went into" in " ".join(as_text(release).split())
        assert "x" in html(release)
        assert "of all strata" in as_text(release)
        assert "--cut counted" not in " ".join((as_text(release) + fit.summary()).split())
    apart = pc.differences(made, "a", "b")
    assert "shortened" in apart.note
    assert apart["mean of x"].value == pytest.approx(10, abs=1.5)
    assert set(pc.shrunk(made)) == set(made)


@pytest.mark.parametrize("weighted", [False, True])
def test_means_without_a_round_of_their_own_are_said_to_be_of_shortened_rows(weighted):
    """Of columns with long tails all ± of such means were too small, and the words spoke of deviations alone."""
    told = "eans are those of the rows as the private frame shortened them: ± does not count what was cut."
    fuller = told.replace("eans", "Means, standard deviations and covariances")
    if weighted:
        columns = {name: rules for name, rules in COLUMNS.items() if name not in ("area", "y")}
        schema = pc.Schema.from_dict({"columns": columns, "weight": "w", "largest_weight": 9})
        table = TABLE.select(["x", "kind", "z"]).append_column("w", pa.array([3.0] * len(TABLE)))
        made = pc.release(table, schema=schema, loss=LOSSES["zcdp"], frame="scales", randomness=rehearsal(1))
        assert fuller in " ".join(as_text(made, what="mean").split())
        return
    made = released()
    assert told in " ".join(strata_text(made).split())
    assert fuller in " ".join(as_text(made["a"], what="mean").split())
    assert "shortened them" not in strata_text(released(frame="declared"))
    means = pc.release(TABLE, schema=SCHEMA, loss=LOSSES["zcdp"], frame="scales", randomness=rehearsal(1))
    assert "Means, standard" not in as_text(means, what="mean")


def test_one_row_moves_no_answer_of_a_round_by_more_than_it_pays_for():
    """The same noise, and a person who moves to another area with other cells: counts of rounds, over all strata."""
    left = TABLE.slice(0, 900).to_pandas()
    right = left.copy()
    right.loc[17, ["area", "x", "y", "z"]] = ["d", 1e9, -1e9, np.nan]
    one, two = (released(data).certificate.rounds[0].answers for data in (left, right))
    moved = np.abs(np.subtract(one, two))
    assert 0 < moved.sum() <= 6
    assert moved.max() == 1


# --- what a file cannot say ---------------------------------------------------------------------------


def with_options(release, **options):
    certificate = replace(release.certificate, options={**release.certificate.options, **options})
    return replace(release, certificate=certificate)


def test_a_stratum_whose_frame_does_not_follow_from_its_rounds_is_found():
    made = released(frame="shape", seed=None)
    stratum = made["a"]
    assert stratum.certificate.options["all_rows"] == str(TABLE.num_rows)
    *before, last, shape, radius = stratum.certificate.rounds
    answers = [last.answers[0] + 10_000, *last.answers[1:]]
    columns = list(stratum.schema.columns)
    columns[0] = replace(columns[0], centre=columns[0].centre + 1)
    cheap = replace(last, loss=pc.ZCDP(rho="0.0001", neighbours="replace-one"))
    for rounds, schema in (
        ((*before, replace(last, answers=tuple(answers)), shape, radius), stratum.schema),
        ((*before, cheap, shape, radius), stratum.schema),
        (stratum.certificate.rounds[:-1], stratum.schema),
        (stratum.certificate.rounds, replace(stratum.schema, columns=tuple(columns))),
    ):
        forged = replace(
            stratum, schema=schema, certificate=replace(stratum.certificate, rounds=tuple(rounds))
        )
        assert disagreements(forged)
    assert disagreements(with_options(stratum, all_rows="40"))
    private = released(kind="approximate", seed=None)["a"]
    assert "all_rows" not in private.certificate.options
    assert disagreements(with_options(private, all_rows="12000"))


@pytest.mark.parametrize("by", ["area", None])
@pytest.mark.parametrize(
    "change",
    [
        lambda last: last["answers"].pop(),
        lambda last: last.update(answers=[]),
        lambda last: last.update(name="radii"),
    ],
)
def test_a_file_without_a_round_of_norms_is_refused_by_show_and_is_no_error_of_ours(
    by, change, tmp_path, capsys
):
    """It says how many rows were shortened; ``show`` ended in E900 without it."""
    made = released(TABLE.slice(0, 3_000), seed=None, by=by)
    form = FORM if by else codec.FORM
    document = json.loads(json.dumps(made.to_dict()))
    body = {word: value for word, value in document.items() if word not in ("format", "signature")}
    change(next(one for one in body["certificate"]["rounds"] if one["name"] == "radius"))
    (path := tmp_path / "changed.json").write_text(to_text(form.sealed(body)))
    assert main(["verify", str(path)]) == 4
    assert "E900" not in capsys.readouterr().err
    assert main(["show", str(path)]) == 2
    assert "E601 the rounds of its frame do not say how long rows were" in capsys.readouterr().err


def test_a_private_number_of_all_rows_is_found_even_where_the_rounds_agree_with_it():
    """Noisy counts that add up to a whole number of rows, so that the same frame follows from that number."""
    made = (released(TABLE.slice(0, 900), kind="approximate", seed=seed) for seed in range(40))
    counts = ((one["a"], sum(one.certificate.rounds[0].answers)) for one in made)
    stratum, total = next((one, total) for one, total in counts if total % 3 == 0)
    found = disagreements(with_options(stratum, all_rows=str(total // 3)))
    assert found == ("the number of all rows is stated, but a person can change it",)


@pytest.mark.parametrize(
    ("word", "said"),
    [*itertools.product(["strata", "all_rows"], ["0", "-4", "04", "4.0", "many", "", "9" * 30])],
)
def test_a_file_with_a_number_of_strata_or_rows_that_is_none_is_refused(word, said):
    document = released(TABLE.slice(0, 500), seed=None)["a"].to_dict()
    body = {name: document[name] for name in ("columns", "scaling", "rows", "matrix", "certificate")}
    codec.decode(codec.FORM.sealed(body, None))
    body["certificate"]["options"][word] = said
    with pytest.raises(ReleaseError, match="E601"):
        codec.decode(codec.FORM.sealed(body, None))


# --- the plan -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["pure", "approximate"])
def test_the_forecast_of_a_stratum_in_a_frame_is_near_a_simulation(kind):
    """Four equal strata of normal columns, thirty tables: within a factor of 1.6 of the forecast."""
    rng, count = np.random.default_rng(9), 8_000
    columns = {"area": COLUMNS["area"], **{name: {"lower": -10, "upper": 10} for name in "xyz"}}
    schema, errors = pc.Schema.from_dict({"columns": columns}), []
    for seed in range(30):
        table = pa.table(
            {"area": np.resize(["a", "b", "c", "d"], count)} | {n: rng.normal(size=count) for n in "xyz"}
        )
        made = pc.release(
            table, schema=schema, loss=LOSSES[kind], by="area", frame="scales", randomness=rehearsal(seed)
        )
        for name in made:
            mine = table.to_pandas().query("area == @name")[["x", "y", "z"]].to_numpy()
            apart = made[name].correlation() - np.corrcoef(mine.T)
            errors.append(apart[np.triu_indices(3, 1)])
    seen = np.sqrt(np.mean(np.square(errors)))
    made = plan_strata(schema=schema, by="area", rows=count, loss=LOSSES[kind])
    assert made.framed.stratum == count / 4
    assert made.framed.private / 1.6 < seen < made.framed.private * 1.6
    assert f"in a stratum of {count // 4:,} rows" in str(made)
    assert made.to_dict()["correlations"]["private"] == made.framed.private


def test_a_plan_in_a_frame_judges_strata_by_their_rows():
    facts = {"schema": SCHEMA, "by": "area", "rows": 20_000, "loss": LOSSES["pure"], "sizes": {"d": 30}}
    declared, framed = (plan_strata(**facts, frame=frame) for frame in ("declared", "auto"))
    assert framed.rows_for["useful"] < declared.rows_for["useful"] / 5
    assert framed.outlooks["d"].verdict != "useful" == framed.outlooks["a"].verdict
    assert declared.outlooks["a"].verdict != "useful" == framed.total.verdict
    assert "--frame auto" not in str(framed)
    assert plan_strata(**facts, frame="auto", total_share="0.3").frame is False
