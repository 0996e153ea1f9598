"""The private row-norm bound: candidates are public, the choice is private and worth its price."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import privcov as pc
from privcov.errors import PrivcovError
from privcov.frame.choice import Lengths, NormChoice, choose_row_norm, least_error
from privcov.frame.radii import candidates, cut_off
from privcov.mechanisms import DEFAULTS, find
from privcov.noise.randomness import rehearsal
from privcov.schema.grid import Grid
from privcov.summing.bounding import Bounding

PURE = pc.PureDP(epsilon=1, neighbours="replace-one")


def schema_of(d=10, **words):
    columns = {f"c{i}": {"lower": -1, "upper": 1} for i in range(d)}
    return pc.Schema.from_dict({"columns": columns, **words})


def choose(table, schema, loss=PURE, share="0.1", seed=1):
    choice = NormChoice.of(loss, share=share)
    return choose_row_norm(
        table,
        schema=schema,
        choice=choice,
        mechanism=find(DEFAULTS[loss.kind], loss=loss),
        randomness=rehearsal(seed),
    )


@pytest.mark.parametrize(
    "loss",
    [
        PURE,
        pc.ApproxDP(epsilon=1, delta="1e-6", neighbours="add-remove"),
        pc.ZCDP(rho="0.3", neighbours="add-remove"),
    ],
)
def test_the_price_and_the_rest_never_exceed_the_loss(loss):
    choice = NormChoice.of(loss, share="0.2")
    if loss.kind == "zcdp":
        assert choice.price.epsilon**2 / 2 + choice.rest.rho <= loss.rho
        assert choice.price.epsilon**2 / 2 + choice.rest.rho >= loss.rho * Fraction(999, 1000)
    else:
        assert choice.price.epsilon + choice.rest.epsilon == loss.epsilon
    if loss.kind == "approximate":
        assert choice.rest.delta == loss.delta


@pytest.mark.parametrize("share", [0, 1, -1, "2"])
def test_a_share_outside_zero_and_one_is_refused(share):
    with pytest.raises(PrivcovError, match="E211"):
        NormChoice.of(PURE, share=share)


def test_candidates_start_at_the_declared_bound_and_divide_what_can_be_clipped():
    schema = schema_of(4)
    squares = [float(option.squared_norm_bound) for option in candidates(schema)]
    assert squares[:3] == pytest.approx([5, 1 + 4 / 1.4, 1 + 4 / 1.4**2], rel=1e-5)
    assert all(option.keeps_indicators for option in candidates(schema))


def test_a_table_of_indicators_has_nothing_to_choose():
    schema = pc.Schema.from_dict({"columns": {"sex": {"levels": ["F", "M"]}}})
    assert candidates(schema) == (schema,)


def test_what_would_be_cut_off_is_summed_exactly_and_one_row_moves_it_by_at_most_one():
    schema = schema_of(3, intercept=False)
    options, unit = candidates(schema), Grid.of(schema).squared_norm_bound
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, size=(50, 3))
    squared = (np.rint(rows * 2 ** Grid.of(schema).exponent) ** 2).sum(1)
    base = cut_off(rows, schema, options).totals
    for j, option in enumerate(options):
        limit = int(option.squared_norm_bound * 4 ** Grid.of(schema).exponent)
        assert base[j] == sum(max(0, int(s) - limit) for s in squared)
    for row in ([1, 1, 1], [0, 0, 0], [np.nan] * 3, [1e300] * 3):
        other = cut_off(np.vstack([rows[:-1], row]), schema, options).totals
        assert all(abs(a - b) <= unit for a, b in zip(base, other, strict=True))


KINDS = {
    "numbers": schema_of(3),
    "no intercept": schema_of(3, intercept=False),
    "indicators": pc.Schema.from_dict(
        {"columns": {f"c{i}": {"lower": -1, "upper": 1, "missing": "indicator"} for i in range(3)}}
    ),
    "weights": schema_of(3, weight="w", largest_weight=4),
}


@pytest.mark.parametrize("name", KINDS)
def test_the_histogram_counts_the_rows_that_each_candidate_would_clip(name):
    schema, rng = KINDS[name], np.random.default_rng(0)
    options = candidates(schema)
    look, bounding = Lengths.between(schema, options), Bounding.of(schema)
    rows = rng.uniform(-1.2, 1.2, size=(400, len(schema.columns))) * rng.uniform(0, 1, (400, 1))
    rows[:5] = [[1.0] * rows.shape[1], [0.0] * rows.shape[1], [np.nan] * rows.shape[1], *rows[3:5]]
    if name == "weights":
        rows[:, -1] = 4.0  # all of the largest
    counts = look.sums(bounding, list(rows.T)) // look.whole
    assert counts.sum() == len(rows)
    longer = counts[::-1].cumsum()[: len(options) - 1]  # than the second candidate, the third, and so on
    plain = bounding.rows(list(rows.T))
    for option, more in zip(options[1:], longer, strict=True):
        clipped = Bounding.of(option, replace(Grid.of(schema), squared_norm_bound=_bound(option, schema)))
        changed = (clipped.rows(list(rows.T)) != plain).any(axis=1)
        assert changed.sum() == more
    for row in rows[:20]:  # a row is in one cell of the one histogram
        assert look.sums(bounding, [np.array([cell]) for cell in row]).sum() == look.whole


def test_a_weighted_row_counts_in_the_histogram_as_what_it_weighs():
    schema = KINDS["weights"]
    look, bounding = Lengths.between(schema, candidates(schema)), Bounding.of(schema)
    long = [np.ones(5)] * 3
    found = look.sums(bounding, [*long, np.array([4.0, 2.0, 0.0, 1e9, -1.0])])
    assert found[-1] == pytest.approx(2.5 * look.whole, abs=2)
    assert found[1:-1].sum() == 0
    loss = pc.PureDP(epsilon="0.5", neighbours="add-remove")
    assert look.noise(loss) == 2 * look.whole


def _bound(option, schema):
    return int(option.squared_norm_bound * 4 ** Grid.of(schema).exponent)


def test_a_histogram_that_noise_hides_keeps_the_declared_bound():
    """Of short rows: as many as noise hides may be long, and that many would be cut."""
    schema = schema_of(intercept=False)
    options = candidates(schema)
    short = np.zeros(len(options))
    short[0] = 300.0
    noises = [0.01 * float(option.squared_norm_bound) for option in options]
    assert least_error(options, short, rows=300.0, std=3e4, noises=noises) == 0
    assert least_error(options, short, rows=300.0, std=0.0, noises=noises) == len(options) - 1


def test_small_rows_get_a_small_bound_and_the_release_a_smaller_error():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(2000, 10))
    rows *= 0.1 / np.linalg.norm(rows, axis=1)[:, None]
    schema = schema_of(intercept=False)
    chosen = choose(rows, schema)
    assert float(chosen.squared_norm_bound) <= 0.05
    truth, error = rows.T @ rows, {}
    for name, used, loss in (
        ("declared", schema, PURE),
        ("chosen", chosen, NormChoice.of(PURE, share="0.1").rest),
    ):
        made = pc.release(rows, schema=used, loss=loss, randomness=rehearsal(2))
        error[name] = np.linalg.norm(made.second_moment(raw=True, scaled=True) - truth)
    assert error["chosen"] * 10 < error["declared"]


@pytest.mark.parametrize(("epsilon", "most"), [("0.2", 1.3), ("1", 0.7)])
def test_a_private_norm_takes_no_bound_that_makes_rows_alike(epsilon, most):
    """Rows off the middles of their bounds, which a small bound makes all alike. Fixed streams.

    A score of noise plus the squared norm that is cut takes such bounds at small ε: 2.6 and 0.75 times the error.
    """
    rng = np.random.default_rng(3)
    rows = rng.uniform(-0.5, 0.5, (1_500, 6))
    rows[:, [1, 3]] += rows[:, [0, 2]] * [0.6, -0.5]
    rows = (rows + np.array([0.3, -0.4, 0.2, 0.5, -0.3, 0.1])).clip(-1, 1)
    truth, above, errors = np.corrcoef(rows.T), np.triu_indices(6, 1), {}
    for word in ("declared", "private"):
        words = {"schema": schema_of(6), "loss": pc.PureDP(epsilon=epsilon, neighbours="replace-one")}
        found = [
            pc.release(
                rows, row_norm=word, arithmetic="idealized", randomness=rehearsal(seed), **words
            ).correlation()
            for seed in range(8)
        ]
        errors[word] = np.sqrt(np.mean([(np.nan_to_num(one) - truth)[above] ** 2 for one in found]))
    assert errors["private"] < most * errors["declared"]


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_one_person_moves_the_histogram_by_what_its_noise_is_for(neighbours):
    schema = schema_of(3, max_rows_per_person=2)
    look, bounding = Lengths.between(schema, candidates(schema)), Bounding.of(schema)
    long, short = (look.sums(bounding, [np.full(2, cell)] * 3) for cell in (1.0, 0.0))
    moved = np.abs(long - short).sum() if neighbours == "replace-one" else long.sum()
    assert moved == (4 if neighbours == "replace-one" else 2)
    loss = pc.PureDP(epsilon="0.3", neighbours=neighbours)
    assert look.noise(loss) == -(-moved * 10 // 3)  # the least whole scale that ε allows


def test_large_rows_keep_the_declared_bound():
    rows = np.random.default_rng(1).choice([-1.0, 1.0], size=(5000, 10))
    schema = schema_of(intercept=False)
    assert choose(rows, schema).squared_norm_bound == schema.squared_norm_bound


def test_a_release_with_a_private_norm_says_so_and_costs_the_whole_loss(people, schema):
    words = {"loss": PURE, "mechanism": "symmetric-wishart"}
    made = pc.release(people, schema=schema, row_norm="private", row_norm_share="1/4", **words)
    assert made.certificate.loss == PURE
    assert made.certificate.options == {"row_norm": "private", "row_norm_share": "0.25"}
    plain = pc.release(people, schema=made.schema, **words)
    assert made.certificate.law.scale == pytest.approx(plain.certificate.law.scale / 0.75)


@pytest.mark.parametrize("words", [{"row_norm": "guess"}, {"row_norm": "private", "row_norm_share": "none"}])
def test_nonsense_about_the_row_norm_is_refused(people, schema, words):
    with pytest.raises(PrivcovError, match="E211"):
        pc.release(people, schema=schema, loss=PURE, **words)


@pytest.mark.parametrize(
    ("neighbours", "columns", "kind"),
    [("add-remove", 3, "pure"), ("add-remove", 12, "approximate"), ("replace-one", 3, "approximate")],
)
def test_a_delta_is_not_spent_where_pure_noise_is_far_smaller(neighbours, columns, kind, tmp_path):
    """Behind a frame that is asked for with a δ; a ledger in ρ pays for the loss that was asked for."""
    loss = pc.ApproxDP(epsilon=1, delta="1e-6", neighbours=neighbours)
    names = {f"x{place}": {"lower": -9, "upper": 9} for place in range(columns)}
    order = {"schema": pc.Schema.from_dict({"columns": names}), "loss": loss, "frame": "scales"}
    rows = np.zeros((500, columns))
    assert pc.release(rows, **order).certificate.loss.kind == kind
    book = pc.Ledger.init(tmp_path / "l", pc.ZCDP(rho=1, neighbours=neighbours))
    assert pc.release(rows, **order, ledger=book).certificate.loss.kind != "pure"


def test_correlations_that_noise_drowns_lean_to_zero_under_a_chosen_bound_too():
    """Else a tenth of the loss, spent on the bound, would make them three times as bad: noise over noise."""
    rows = (np.random.default_rng(3).normal(size=(600, 4)) * 0.25 + 0.2).clip(-1, 1)
    loss = pc.PureDP(epsilon="0.2", neighbours="replace-one")
    asked = {"schema": schema_of(4), "loss": loss, "arithmetic": "idealized"}
    truth, pairs = np.corrcoef(rows.T), np.triu_indices(4, 1)

    def error(**words):
        made = (pc.release(rows, randomness=rehearsal(seed), **asked, **words) for seed in range(8))
        return np.sqrt(np.mean([(np.nan_to_num(one.correlation()) - truth)[pairs] ** 2 for one in made]))

    assert error(row_norm="private") < 1.1 * error()
