"""The private row-norm bound: candidates are public, the choice is private and worth its price."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import privcov as pc
from privcov.errors import PrivcovError
from privcov.frame.choice import NormChoice, choose_row_norm, permute_and_flip
from privcov.frame.radii import candidates, cut_off
from privcov.mechanisms import DEFAULTS, find
from privcov.noise.randomness import rehearsal
from privcov.schema.grid import Grid

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


def test_candidates_start_at_the_declared_bound_and_halve_what_can_be_clipped():
    schema = schema_of(4)
    squares = [float(option.squared_norm_bound) for option in candidates(schema)]
    assert squares[:4] == pytest.approx([5, 3, 2, 1.5], rel=1e-5)
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


def frequencies(scores, rate, draws=20_000, seed=3):
    randomness = rehearsal(seed)
    counts = Counter(permute_and_flip(randomness, scores, rate=rate) for _ in range(draws))
    return np.array([counts[j] for j in range(len(scores))]) / draws


def exact_law(scores, rate):
    """The law of permute-and-flip by brute force over every order."""
    from itertools import permutations

    accept = [math.exp(float(rate * (s - max(scores)))) for s in scores]
    law, orders = np.zeros(len(scores)), list(permutations(range(len(scores))))
    for order in orders:
        alive = 1 / len(orders)
        for j in order:
            law[j] += alive * accept[j]
            alive *= 1 - accept[j]
    return law


def test_permute_and_flip_has_the_law_of_its_definition():
    """6 standard errors on each of 4 frequencies: false alarm below 1e-8; finds an error of 0.02."""
    scores, rate = [Fraction(0), Fraction(-1), Fraction(-3), Fraction(-1, 2)], Fraction(1)
    law = exact_law(scores, rate)
    assert law.sum() == pytest.approx(1)
    found = frequencies(scores, rate)
    assert (np.abs(found - law) <= 6 * np.sqrt(law * (1 - law) / 20_000)).all()
    wrong = exact_law(scores, 2 * rate)
    assert (np.abs(found - wrong) > 6 * np.sqrt(wrong * (1 - wrong) / 20_000)).any()


def test_the_choice_between_neighbours_moves_no_probability_by_more_than_the_claim():
    """By the exact law: scores moved by at most 1 each, in every direction, at ε = 1 (rate ½)."""
    base = np.array([0.0, -1.0, -2.5, -0.3])
    law = exact_law(base.tolist(), 0.5)
    worst = 0.0
    for signs in np.array(np.meshgrid(*[[-1, 0, 1]] * 4)).reshape(4, -1).T:
        other = exact_law((base + signs).tolist(), 0.5)
        worst = max(worst, np.abs(np.log(other / law)).max())
    assert worst <= 1 + 1e-12
    assert worst >= 0.6  # not idle


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
