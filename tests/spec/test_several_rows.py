"""Several rows a person: another person may have more or fewer, so under replace-one the number of rows is private."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import privcov as pc
from privcov.audit.neighbours import pairs
from privcov.cli import main
from privcov.mechanisms import MECHANISMS
from privcov.mechanisms.adaptive import PrivateTrace
from privcov.mechanisms.sensitivity import Sensitivity
from privcov.noise.randomness import rehearsal
from privcov.privacy import Neighbours
from privcov.releases import codec
from privcov.schema.grid import Grid
from privcov.verification.consistency import disagreements

PURE = pc.PureDP(epsilon=1, neighbours="replace-one")
ZCDP = pc.ZCDP(rho=1, neighbours="replace-one")


def schema_of(most: int = 3) -> pc.Schema:
    columns = {name: {"lower": -1, "upper": 1} for name in ("x", "y")}
    return pc.Schema.from_dict({"columns": columns, "max_rows_per_person": most})


ROWS = np.full((12, 2), 0.5)
THREE_OR_ONE = ROWS, ROWS[:-2]
"""The last person has three rows, or is replaced by one who has one."""


@pytest.mark.parametrize("rows", THREE_OR_ONE)
def test_a_release_of_several_rows_a_person_has_no_public_count(rows: np.ndarray) -> None:
    made = pc.release(rows, schema=schema_of(), loss=PURE)
    assert made.rows is None
    assert made.to_dict()["rows"] == {"kind": "private", "count": None}
    assert pc.release(rows, schema=schema_of(1), loss=PURE).rows == len(rows)


def test_three_rows_and_one_row_are_not_told_apart_by_what_is_said_beside_the_matrix() -> None:
    said = []
    for rows in THREE_OR_ONE:
        document = pc.release(rows, schema=schema_of(), loss=PURE).to_dict()
        document["certificate"].pop("created")
        said.append({part: document[part] for part in ("rows", "columns", "scaling", "certificate")})
    assert said[0] == said[1]


def test_an_empty_table_is_released_where_the_count_is_private() -> None:
    assert pc.release(ROWS[:0], schema=schema_of(), loss=PURE).rows is None


def test_joint_gaussian_needs_a_public_count() -> None:
    with pytest.raises(pc.PrivcovError, match="E207"):
        pc.release(ROWS, schema=schema_of(), loss=ZCDP, mechanism="joint-gaussian")
    assert pc.release(ROWS, schema=schema_of(1), loss=ZCDP, mechanism="joint-gaussian").rows == 12
    assert pc.release(ROWS, schema=schema_of(), loss=ZCDP).certificate.mechanism != "joint-gaussian"
    with pytest.raises(pc.PrivcovError, match="E207"):
        pc.release(ROWS, schema=schema_of(), loss=ZCDP, mechanism="separate", as_published=True)
    with pytest.raises(pc.PrivcovError, match="E207"):
        Sensitivity.of(Grid.of(schema_of()), Neighbours.REPLACE_ONE).joint_moments(
            intercept=1, sum_weight=Fraction(1)
        )


@pytest.mark.parametrize("name", ["separate", "kapralov-talwar"])
def test_no_mechanism_cuts_its_answer_at_a_private_count(name: str) -> None:
    """With one row a person the largest eigenvalue is capped at rows · R²; a loud draw shows whether it is."""
    loss = {"separate": ZCDP, "kapralov-talwar": PURE}[name]
    largest: dict[int, float] = {}
    for most in (1, 3):
        grid = replace(Grid.of(schema_of()), max_rows_per_person=most)
        tiny = replace(loss, **{word: Fraction(1, 10**6) for word in loss.amounts})
        tops = []
        for seed in range(8):
            draw = MECHANISMS[name]().draw(loss=tiny, grid=grid, randomness=rehearsal(seed))
            pair = pairs(grid, Neighbours.REPLACE_ONE)[0]
            upper = draw.answer(pair.gram(0))
            whole = np.zeros((grid.dimension, grid.dimension))
            whole[np.triu_indices(grid.dimension)] = [float(value) for value in upper]
            tops.append(np.linalg.eigvalsh(whole, UPLO="U")[-1] / float(grid.squared_norm_bound))
        largest[most] = max(tops)
    assert largest[1] <= 1.5 * grid.dimension  # one row of norm R, repaired value by value
    assert largest[3] > 1_000


def test_the_trace_of_adaptive_is_not_cut_at_a_private_count() -> None:
    for most, cut in ((1, True), (3, False)):
        grid = Grid.of(schema_of(most))
        trace = PrivateTrace.draw(pc.ZCDP(rho="1e-9", neighbours="replace-one"), grid, rehearsal(0))
        assert trace.public_rows is cut


# --- the bounds, attacked by persons of unlike numbers of rows ------------------------------------------


@pytest.mark.parametrize("radius", [0.3, 1.0, 7.0])
@pytest.mark.parametrize("dimension", [1, 2, 4])
def test_no_person_with_another_number_of_rows_moves_the_matrix_further(
    radius: float, dimension: int
) -> None:
    """Random rows on and inside the sphere, a of them against b, for all a and b up to m, none included.

    A bound that is too small by a tenth is broken in every norm below but the ℓ1 one, whose own slack is 6 %.
    """
    rng, most = np.random.default_rng(7), 3
    bound = Sensitivity(
        neighbours=Neighbours.REPLACE_ONE,
        dimension=dimension,
        squared_norm=Fraction(radius) ** 2,
        rows_per_person=most,
    )
    reached = dict.fromkeys(("frobenius", "nuclear", "operator", "spread", "trace", "free", "triangle"), 0.0)
    axes = np.eye(dimension)
    for turn in range(400):
        sides = []
        for side in (0, 1):
            count = int(rng.integers(0, most + 1))
            rows = rng.normal(size=(count, dimension))
            rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
            rows *= rng.choice([1.0, 1.0, 0.5], size=(count, 1))
            if turn % 4 == 0:  # the worst: all rows of a person alike, the other's at right angles, or none
                count = most if side == 0 or turn % 8 == 0 else 0
                rows = np.tile(axes[min(side, dimension - 1)], (count, 1))
            sides.append(radius * rows)
        change = sides[0].T @ sides[0] - sides[1].T @ sides[1]
        values = np.linalg.eigvalsh(change)
        moved = {
            "frobenius": np.linalg.norm(change),
            "nuclear": np.abs(values).sum(),
            "operator": np.abs(values).max(),
            "spread": max(values[-1], 0) - min(values[0], 0),
            "trace": abs(np.trace(change)),
            "free": np.hypot(np.linalg.norm(change), np.trace(change)),
            "triangle": np.abs(change[np.triu_indices(dimension)]).sum(),
        }
        reached = {name: max(reached[name], float(moved[name])) for name in reached}
    claims = {"free": bound.free_trace_frobenius, "triangle": bound.triangle_l1}
    for name, value in reached.items():
        claim = float(claims[name] if name in claims else getattr(bound, name))
        assert value <= claim * (1 + 1e-12)
        if name != "triangle":
            assert value >= 0.9 * claim


def test_what_clipping_cuts_off_moves_no_further_between_unlike_numbers_of_rows() -> None:
    rng, most = np.random.default_rng(3), 3
    bound = Sensitivity(
        neighbours=Neighbours.REPLACE_ONE, dimension=2, squared_norm=Fraction(1), rows_per_person=most
    )
    furthest = 0.0
    for _ in range(2_000):
        one, two = (rng.uniform(0, 1, size=rng.integers(0, most + 1)) ** 0.1 for _ in range(2))
        for cut in (0.0, 0.25, 0.9):
            furthest = max(furthest, abs(np.maximum(one - cut, 0).sum() - np.maximum(two - cut, 0).sum()))
    assert 0.9 * most < furthest <= float(bound.cut_off)
    assert not bound.cut_off_moves_one_way


def test_the_auditor_attacks_with_unlike_numbers_of_rows() -> None:
    grid = replace(Grid.of(schema_of(1)), max_rows_per_person=3)
    for neighbours in Neighbours:
        sizes = {(len(pair.first), len(pair.second)) for pair in pairs(grid, neighbours)}
        assert {(3, 0), (3, 1), (3, 3)} <= sizes if neighbours is Neighbours.REPLACE_ONE else True
    one = {
        (len(pair.first), len(pair.second)) for pair in pairs(Grid.of(schema_of(1)), Neighbours.REPLACE_ONE)
    }
    assert one == {(1, 1)}


# --- what is said ---------------------------------------------------------------------------------------


@pytest.mark.long
def test_every_command_says_that_the_count_is_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def told(*words: str) -> str:
        assert main(list(words)) == 0
        return " ".join(" ".join(capsys.readouterr()).split())

    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text(schema_of().to_toml())
    Path("t.csv").write_text("x,y\n" + "0.5,0.5\n" * 12)
    said = told("release", "t.csv", "--schema", "s.toml", "--epsilon", "1", "-o", "r.json")
    assert "private, because a person may have up to 3" in said
    assert "The number of rows is private; the release holds a noisy count of them." in said
    assert (
        "replacing one person's rows, up to 3 of them, by any other rows, more or fewer, up to 3 of them,"
        in said
    )
    assert "The number of rows is private" in told("show", "r.json")
    private = "Another person may have more or fewer, so the number of rows is private."
    assert private in told("schema", "check", "s.toml")
    assert private in told("schema", "explain", "s.toml")
    assert private in told(
        "plan", "--schema", "s.toml", "--rows", "300", "--epsilon", "1", "--neighbours", "replace-one"
    )
    assert told("verify", "r.json")


def test_a_file_that_publishes_the_count_of_several_rows_a_person_does_not_hold(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    made = pc.release(ROWS, schema=schema_of(), loss=PURE)
    for claimed, holds in ((made, True), (replace(made, rows=12), False)):
        assert (disagreements(claimed) == ()) is holds
        claimed.save(path, force=True)
        assert pc.load(path).rows == claimed.rows  # it can be read, so that this can be said of it
        assert ("can change it" in str(pc.verify(path))) is not holds


def test_a_file_that_hides_a_public_count_is_not_read() -> None:
    made = pc.release(ROWS, schema=schema_of(1), loss=PURE)
    hidden = replace(made, rows=None).to_dict()
    with pytest.raises(pc.PrivcovError, match="E601"):
        codec.decode(hidden)
