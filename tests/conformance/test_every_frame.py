"""Every additive mechanism behind a frame: what one person can change, summed over all rounds and the matrix.

For two neighbouring tables and the answers of a real run, each part's divergence is known exactly: ε of a Laplace
round is ‖change‖₁ / scale, of a cube's ‖change‖_∞ / scale, of a Wishart round ‖change‖_* / 2·scale, ρ of a Gaussian
round ‖change‖² / 2σ² in the norm of its noise, and the matrix is bounded by the sensitivity of its mechanism. No
statistics, so no false alarms; a sensitivity that is too small by a tenth is found by the worst pairs.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import privcov as pc
from privcov.audit import audit
from privcov.errors import InternalError
from privcov.frame import counting, terms
from privcov.frame.fitting import Fit
from privcov.frame.shaping import Sums
from privcov.frame.spending import Purse
from privcov.mechanisms import MECHANISMS
from privcov.mechanisms.gaussian import Gaussian
from privcov.mechanisms.sensitivity import Sensitivity
from privcov.noise.randomness import rehearsal
from privcov.privacy import Neighbours
from privcov.schema import Numeric
from privcov.schema.grid import Grid
from privcov.summing.bounding import Bounding
from privcov.verification.consistency import disagreements

LOSSES = {
    "pure": pc.PureDP(epsilon=2, neighbours="replace-one"),
    "approximate": pc.ApproxDP(epsilon=2, delta="1e-6", neighbours="replace-one"),
    "zcdp": pc.ZCDP(rho="0.2", neighbours="replace-one"),
}
CASES = [
    pytest.param(name, kind, neighbours, id=f"{name}-{kind}-{neighbours}")
    for name in ("gaussian", "joint-gaussian", "symmetric-wishart", "frobenius", "laplace", "wishart")
    for kind in MECHANISMS[name].kinds
    for neighbours in MECHANISMS[name].relations
]
SHAPED = [case for case in CASES if case.values[0] in ("gaussian", "symmetric-wishart", "wishart")]
TABLE = {
    "columns": {
        "a": {"lower": 0, "upper": 1000},
        "b": {"lower": -1, "upper": 1, "missing": "indicator"},
        "c": {"levels": [0, 1]},
        "d": {"lower": 0, "upper": 5, "fill": 4},
    }
}
PEOPLE = (
    (0.0, -1.0, 0.0, 0.0),
    (1000.0, 1.0, 1.0, 5.0),
    (1e300, math.nan, math.nan, -math.inf),
    (12.0, 0.01, 1.0, math.nan),
    (math.nan, math.nan, 7.0, math.nan),
)
"""Rows that are as far from each other as rows can be, and rows that have little."""


def rows_of(count, seed=0):
    rng = np.random.default_rng(seed)
    return np.column_stack(
        [
            rng.normal(10, 2, count),
            rng.uniform(-0.1, 0.1, count),
            rng.integers(0, 2, count),
            rng.gamma(2, 0.3, count),
        ]
    )


def neighbours_of(base, relation, most):
    """Tables that differ in the rows of one person, of whom there are at most ``most``."""
    for one in PEOPLE:
        for other in PEOPLE:
            if one is not other:
                left = np.vstack([base, *[one] * most])
                right = base if relation is Neighbours.ADD_REMOVE else np.vstack([base, *[other] * most])
                yield left, right


def moved_by(before, after):
    """The exact change of the sum of squares and products; rows that are the same in both tables cancel."""
    shared = min(len(before), len(after))
    differ = (before[:shared] != after[:shared]).any(axis=1)
    old, new = (
        np.concatenate([rows[:shared][differ], rows[shared:]]).astype(np.int64).astype(object)
        for rows in (before, after)
    )
    return new.T @ new - old.T @ old


def cost_of(look, one, left, right):
    """What a round spends on telling two tables apart, in its own unit."""
    if isinstance(look, Sums):
        change = moved_by(*(look.rows(look.bounding, list(side.T)) for side in (left, right)))
        moved = np.array([[float(value) for value in row] for row in change])
        if isinstance(one.loss, pc.PureDP):
            law = MECHANISMS["symmetric-wishart"]().law(loss=one.loss, grid=look.grid)
            return np.abs(np.linalg.eigvalsh(moved)).sum() * float(look.grid.unit) / (2 * law.scale)
        law = MECHANISMS["gaussian"]().law(loss=one.loss, grid=look.grid)
        freed = np.trace(moved) ** 2 if one.loss.neighbours is Neighbours.REPLACE_ONE else 0.0
        return ((moved**2).sum() + freed) * float(look.grid.unit) ** 2 / (2 * law.scale**2)
    bounding = Bounding.of(look.schema)
    before, after = (look.sums(bounding, list(rows.T)) for rows in (left, right))
    moved, scale = (after - before).astype(float), float(look.noise(one.loss))
    if isinstance(one.loss, pc.PureDP):
        # Noise on counts is Laplace's, noise on sums has the law of a cube.
        return (np.abs(moved).max() if look.name in ("means", "squares") else np.abs(moved).sum()) / scale
    return (moved**2).sum() / (2 * scale**2)


def rounds_of(release, left, right, *, strata=None):
    """The divergence of every round, and its price, in its own unit."""
    schema, prices = release.schema, {one.name: one.loss for one in release.certificate.rounds}
    columns = [
        replace(c, centre=None, scale=None) if isinstance(c, Numeric) and c.name != schema.weight else c
        for c in schema.columns
    ]
    fit = Fit(
        declared=replace(schema, columns=tuple(columns), row_norm_bound=None, shape=None),
        most=sum(one.name == "scales" for one in release.certificate.rounds),
        means=prices.get("means"),
        squares=prices.get("squares"),
        shaped="shape" in prices,
        strata=strata,
    )
    spent, told = [], list(release.certificate.rounds)
    while looks := fit.next_looks():
        asked = [told.pop(0) for _ in looks]
        for look, one in zip(looks, asked, strict=True):
            assert look.name == one.name
            spent.append((cost_of(look, one, left, right), float(next(iter(one.loss.amounts.values())))))
        fit = fit.after(*asked, rows=release.rows)
    assert not told
    return spent


def parts(release, left, right):
    """The divergence of every round, in its own unit, and the change of the matrix on its grid."""
    spent, grid = rounds_of(release, left, right), Grid.of(release.schema)
    bounding = Bounding.of(release.schema, grid)
    return spent, moved_by(*(bounding.rows(list(rows.T)) for rows in (left, right))), grid


def check(name, loss, *, most=1, rows=400, seed=1, schema=None, frame="scales", cut="told"):
    schema = schema or pc.Schema.from_dict({**TABLE, "max_rows_per_person": most})
    base = rows_of(rows if frame == "scales" else 10 * rows)
    if frame == "shape":  # columns that are worth mixing, and rows enough to see that
        base[:, 3] = (base[:, 0] - 4) / 4 + base[:, 1]
    attained, mixed = 0.0, False
    pairs = list(neighbours_of(base, loss.neighbours, most))
    for left, right in pairs if frame == "scales" else pairs[::3]:
        release = pc.release(
            left, schema=schema, loss=loss, mechanism=name, frame=frame, cut=cut, randomness=rehearsal(seed)
        )
        mixed |= release.schema.shape is not None
        spent, change, grid = parts(release, left, right)
        for cost, price in spent:
            assert cost <= price * (1 + 1e-12)
            attained = max(attained, cost / price)
        bounds = Sensitivity.of(grid, loss.neighbours)
        entries = np.array([[float(value) for value in row] for row in change])
        assert np.linalg.norm(entries) <= float(bounds.frobenius) * (1 + 1e-9)
        assert np.abs(np.linalg.eigvalsh(entries)).sum() <= float(bounds.nuclear) * (1 + 1e-9)
        assert np.abs(entries[np.triu_indices(len(entries))]).sum() <= float(bounds.triangle_l1) * (1 + 1e-9)
        used = MECHANISMS[name]()
        rest = Purse.of(loss, used).rest([one.loss for one in release.certificate.rounds])
        assert release.certificate.law.scale == used.law(loss=rest, grid=grid).scale
    assert mixed == (frame == "shape")
    return attained


@pytest.mark.parametrize(("name", "kind", "neighbours"), CASES)
def test_one_person_changes_no_round_and_no_matrix_by_more_than_is_paid_for(name, kind, neighbours):
    attained = check(name, replace(LOSSES[kind], neighbours=neighbours))
    assert attained > 0.6  # the worst pair spends most of a round: noise is not larger than it must be


@pytest.mark.parametrize(
    ("name", "kind", "neighbours"),
    [SHAPED[0], *(pytest.param(*one.values, marks=pytest.mark.long, id=one.id) for one in SHAPED[1:])],
)
def test_the_same_for_a_shape(name, kind, neighbours):
    assert check(name, replace(LOSSES[kind], neighbours=neighbours), frame="shape") > 0.6


@pytest.mark.parametrize(
    ("kind", "neighbours"),
    [
        ("pure", Neighbours.REPLACE_ONE),
        ("zcdp", Neighbours.ADD_REMOVE),
        pytest.param("pure", Neighbours.ADD_REMOVE, marks=pytest.mark.long),
        pytest.param("zcdp", Neighbours.REPLACE_ONE, marks=pytest.mark.long),
    ],
)
def test_the_same_where_the_cut_is_counted(kind, neighbours):
    """Three rows a person; the squares are a round more, and its price is attained too."""
    loss, name = replace(LOSSES[kind], neighbours=neighbours), "laplace" if kind == "pure" else "gaussian"
    assert check(name, loss, most=3, cut="counted") > 0.6


@pytest.mark.long
def test_the_same_where_the_cut_is_counted_behind_a_shape():
    assert check("gaussian", LOSSES["zcdp"], frame="shape", cut="counted") > 0.6


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("kind", ["pure", pytest.param("zcdp", marks=pytest.mark.long)])
def test_the_same_for_people_with_three_rows(kind, neighbours):
    loss = replace(LOSSES[kind], neighbours=neighbours)
    assert check("laplace" if kind == "pure" else "gaussian", loss, most=3) > 0.6
    assert check("laplace" if kind == "pure" else "gaussian", loss, most=3, frame="shape") > 0.6


def test_the_same_where_means_come_before_anything_else():
    """A loss at which noise hides every histogram; the number of rows is public, so one row a person."""
    loss = pc.PureDP(epsilon="0.7", neighbours="replace-one")
    first = pc.release(
        rows_of(400), schema=pc.Schema.from_dict(TABLE), loss=loss, frame="auto"
    ).certificate.rounds
    assert [one.name for one in first] == ["means", "radius"]
    assert check("laplace", loss, rows=400) > 0.6


@pytest.mark.parametrize(
    ("name", "kind", "neighbours"),
    [CASES[0], *(pytest.param(*one.values, marks=pytest.mark.long, id=one.id) for one in CASES[1:])],
)
def test_whole_releases_are_not_told_apart_beyond_the_promise(name, kind, neighbours):
    """By the likelihood of all rounds and of the matrix together, over runs: what is exact above, as it is drawn."""
    loss = replace(LOSSES[kind], neighbours=neighbours)
    seeds = itertools.count()
    facts = {"dimension": 3, "runs": 200, "processes": 1, "frame": True}
    report = audit(name, loss=loss, source=lambda: rehearsal(next(seeds)), **facts)
    assert report.passed
    assert {finding.level for finding in report.findings} == {"L2 tell apart"}


STRATA = [
    ("symmetric-wishart", "pure", Neighbours.REPLACE_ONE),
    ("gaussian", "zcdp", Neighbours.ADD_REMOVE),
    *(
        pytest.param(name, kind, neighbours, marks=pytest.mark.long)
        for name in MECHANISMS
        if MECHANISMS[name].takes_strata
        for kind in MECHANISMS[name].kinds
        for neighbours in MECHANISMS[name].relations
    ),
]


def check_strata(name, loss, *, most=1, frame="scales"):
    """People who stay, leave, come or move, behind one frame: the shares of a round and of the matrices that are spent.

    The strata are those of the column c, so rounds and matrices are of the other three.
    """
    schema = pc.Schema.from_dict({**TABLE, "max_rows_per_person": most})
    base, attained, moved = rows_of(400), 0.0, 0.0
    for left, right in neighbours_of(base, loss.neighbours, most):
        made = pc.release(
            left, schema=schema, loss=loss, mechanism=name, by="c", frame=frame, randomness=rehearsal(1)
        )
        rest = [np.delete(side, 2, axis=1) for side in (left, right)]
        for cost, price in rounds_of(made, *rest, strata=2):
            assert cost <= price * (1 + 1e-12)
            attained = max(attained, cost / price)
        grid = Grid.of(made.schema, strata=True)
        bounding = Bounding.of(made.schema, grid)
        changes = []
        for level in (0, 1):
            mine = [
                np.where((side[:, 2] == level)[:, None], bounding.rows(list(one.T)), 0)
                for side, one in zip((left, right), rest, strict=True)
            ]
            changes.append(np.array([[float(v) for v in row] for row in moved_by(*mine)]))
        bounds = Sensitivity.of(grid, loss.neighbours)
        sizes = [np.linalg.norm(change) for change in changes]
        nuclear = sum(np.abs(np.linalg.eigvalsh(change)).sum() for change in changes)
        triangles = sum(np.abs(change[np.triu_indices(len(change))]).sum() for change in changes)
        assert math.hypot(*sizes) <= float(bounds.frobenius) * (1 + 1e-9)
        assert sum(sizes) <= float(bounds.frobenius_sum) * (1 + 1e-9)
        assert nuclear <= float(bounds.nuclear) * (1 + 1e-9)
        assert triangles <= float(bounds.triangle_l1) * (1 + 1e-9)
        moved = max(moved, nuclear / float(bounds.nuclear))
        used = MECHANISMS[name]()
        left_over = Purse.of(loss, used).rest([one.loss for one in made.certificate.rounds])
        assert made.certificate.law.scale == used.law(loss=left_over, grid=grid).scale
    return attained, moved


@pytest.mark.parametrize(("name", "kind", "neighbours"), STRATA)
def test_the_same_for_strata_behind_one_frame(name, kind, neighbours):
    attained, moved = check_strata(name, replace(LOSSES[kind], neighbours=neighbours))
    assert attained > 0.6
    assert moved > 0.95  # somebody is as long as a row can be, in each of two strata


@pytest.mark.long
@pytest.mark.parametrize("frame", ["scales", "shape"])
def test_the_same_for_strata_of_people_with_three_rows(frame):
    attained, _ = check_strata("gaussian", LOSSES["zcdp"], most=3, frame=frame)
    assert attained > 0.6


@pytest.mark.parametrize(
    ("name", "kind", "neighbours"),
    [
        ("symmetric-wishart", "pure", Neighbours.REPLACE_ONE),
        ("gaussian", "zcdp", Neighbours.ADD_REMOVE),
        pytest.param("laplace", "pure", Neighbours.ADD_REMOVE, marks=pytest.mark.long),
        pytest.param("gaussian", "approximate", Neighbours.REPLACE_ONE, marks=pytest.mark.long),
    ],
)
def test_the_same_for_rows_with_weights(name, kind, neighbours):
    """Rounds count a row as one, whatever it weighs, and the matrix as much as its weight, up to the largest."""
    loss = replace(LOSSES[kind], neighbours=neighbours)
    schema = pc.Schema.from_dict({**TABLE, "weight": "w", "largest_weight": 8})
    rng, attained, moved = np.random.default_rng(2), 0.0, 0.0
    weights = [8.0, 1e300, math.nan, 0.0, -3.0]
    base = np.column_stack([rows_of(400), rng.uniform(0, 8, 400)])
    people = [(*one, weights[(place + turn) % 5]) for place, one in enumerate(PEOPLE) for turn in (0, 1)]
    for one in people:
        for other in people[:4]:
            if one == other:
                continue
            left = np.vstack([base, one])
            right = base if neighbours is Neighbours.ADD_REMOVE else np.vstack([base, other])
            made = pc.release(
                left, schema=schema, loss=loss, mechanism=name, frame="scales", randomness=rehearsal(1)
            )
            for cost, price in rounds_of(made, left[:, :-1], right[:, :-1]):
                assert cost <= price * (1 + 1e-12)
                attained = max(attained, cost / price)
            grid = Grid.of(made.schema)
            bounding = Bounding.of(made.schema, grid)
            change = moved_by(*(bounding.rows(list(rows.T)) for rows in (left, right)))
            entries = np.array([[float(value) for value in row] for row in change])
            bounds = Sensitivity.of(grid, neighbours)
            sizes = np.abs(np.linalg.eigvalsh(entries)).sum(), np.linalg.norm(entries)
            assert sizes[0] <= float(bounds.nuclear) * (1 + 1e-9)
            assert sizes[1] <= float(bounds.frobenius) * (1 + 1e-9)
            assert np.abs(entries[np.triu_indices(len(entries))]).sum() <= float(bounds.triangle_l1) * (
                1 + 1e-9
            )
            moved = max(moved, sizes[0] / float(bounds.nuclear))
            used = MECHANISMS[name]()
            rest = Purse.of(loss, used).rest([each.loss for each in made.certificate.rounds])
            assert made.certificate.law.scale == used.law(loss=rest, grid=grid).scale
    assert attained > 0.6
    assert moved > 0.9


def test_strata_whose_rounds_were_not_paid_for_are_found(monkeypatch):
    """Canary: every stratum has the whole loss, although one person is in the rounds too."""
    honest = Purse.rest
    monkeypatch.setattr("privcov.frame.framing.Purse.rest", lambda self, rounds: honest(self, []))
    monkeypatch.setattr("privcov.frame.terms.Purse.rest", lambda self, rounds: honest(self, []))
    made = pc.release(
        rows_of(400), schema=pc.Schema.from_dict(TABLE), loss=LOSSES["zcdp"], by="c", frame="scales"
    )
    used = MECHANISMS[made.certificate.mechanism]()
    monkeypatch.undo()
    rest = Purse.of(LOSSES["zcdp"], used).rest([one.loss for one in made.certificate.rounds])
    needed = used.law(loss=rest, grid=Grid.of(made.schema, strata=True))
    assert made.certificate.law.scale < needed.scale
    assert disagreements(made.part("0"))


def half_the_change(*_, rows_per_person, per_row=1, largest=1, columns=1):
    return Fraction(per_row * largest * rows_per_person, 2)


def no_clip(*_):
    return None


@pytest.mark.parametrize(
    ("what", "kind"),
    [("counts_l1", "pure"), ("counts_l2", "zcdp"), ("sums_sup", "pure"), ("sums_l2", "zcdp")],
)
def test_a_sensitivity_that_is_too_small_is_found(what, kind, monkeypatch):
    monkeypatch.setattr(terms if what.startswith("counts") else counting, what, half_the_change)
    with pytest.raises(AssertionError):
        check("laplace" if kind == "pure" else "gaussian", LOSSES[kind])


def unbounded_squares(look, cells):
    return np.floor(4 * cells * cells / (look.one / 2)) - look.one


@pytest.mark.parametrize("kind", ["pure", "zcdp"])
def test_squares_that_are_not_clipped_to_what_is_paid_for_are_found(kind, monkeypatch):
    monkeypatch.setattr(counting.Squares, "_counted", unbounded_squares)
    with pytest.raises(AssertionError):
        check("laplace" if kind == "pure" else "gaussian", LOSSES[kind], cut="counted")


def test_a_clip_that_is_forgotten_is_found(monkeypatch):
    monkeypatch.setattr("privcov.summing.bounding.Clip.of", classmethod(no_clip))
    monkeypatch.setattr("privcov.summing.bounding._none_above", lambda *_: True)
    with pytest.raises(AssertionError):
        check("gaussian", LOSSES["zcdp"])


def no_shortening(by_feature, clip, *, always):
    del by_feature, clip, always


@pytest.mark.parametrize("where", ["privcov.frame.shaping.shrink", "privcov.summing.bounding.shrink"])
def test_a_clip_that_is_forgotten_before_or_after_a_shape_is_found(where, monkeypatch):
    monkeypatch.setattr(where, no_shortening)
    monkeypatch.setattr("privcov.summing.bounding._none_above", lambda *_: True)
    monkeypatch.setattr("privcov.frame.shaping._within", lambda cells, _: np.ones(cells.shape[1], dtype=bool))
    with pytest.raises((AssertionError, InternalError)):
        check("gaussian", LOSSES["zcdp"], frame="shape")


def test_a_shape_fitted_without_noise_is_found(monkeypatch):
    """Of 400 equal rows the exact sums are 400 times one row's: answers hit them only if no noise was added."""

    def answers():
        rows = np.tile([12.0, 0.5, 1.0, 2.0], (400, 1))
        asked = {"schema": pc.Schema.from_dict(TABLE), "loss": LOSSES["zcdp"], "frame": "shape"}
        (one,) = (one for one in pc.release(rows, **asked).certificate.rounds if one.name == "shape")
        return sum(answer % 400 == 0 for answer in one.answers)

    assert answers() <= 3  # of ten, each with a chance of 1 in 400: more once in 10⁸ runs
    monkeypatch.setattr(
        Gaussian, "exact_noise", lambda self, loss, grid, randomness: np.zeros(10, dtype=object)
    )
    monkeypatch.setattr(
        "privcov.publish.release.answer", lambda noise, gram: (gram.reveal_to_mechanism(), None)
    )
    assert answers() == 10


def empty_cells(release):
    """The share of counts that are exactly zero: most cells of a narrow column are empty, and noise is seldom zero."""
    return np.mean([count == 0 for count in release.certificate.rounds[0].answers])


def test_a_frame_fitted_without_noise_is_found(monkeypatch):
    asked = {"schema": pc.Schema.from_dict(TABLE), "loss": LOSSES["pure"], "frame": "scales"}
    assert empty_cells(pc.release(rows_of(400), **asked)) < 0.25  # of 12 cells at least; chance of a zero 3 %
    monkeypatch.setattr(counting.Look, "draw", lambda self, loss, randomness: [0] * self.cells)
    assert empty_cells(pc.release(rows_of(400), **asked)) > 0.4
