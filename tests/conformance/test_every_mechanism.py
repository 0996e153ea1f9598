"""What every registered mechanism must pass, in both arithmetics and under both relations.

Statistical checks are two-sided z-tests at 6 standard errors (false alarm 2e-9 each, under 1e-6 in all) with
fixed streams; with 3 000 draws they find a noise variance wrong by 15 %, so half or double the noise surely.
The distinguishing attack gives a lower bound on ε that is wrong with probability 1e-6 per mechanism; it finds
noise of a third of the scale.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import beta

import privcov as pc
from privcov.mechanisms import MECHANISMS
from privcov.mechanisms.base import AdditiveMechanism, Noise
from privcov.noise.randomness import kernel, rehearsal
from privcov.privacy import Neighbours
from privcov.schema import Schema
from privcov.schema.grid import Grid
from privcov.summing.gram import Gram

DRAWS = 3000
LOSSES = {
    "pure": pc.PureDP(epsilon=1, neighbours="replace-one"),
    "approximate": pc.ApproxDP(epsilon=1, delta="1e-6", neighbours="replace-one"),
    "zcdp": pc.ZCDP(rho="0.1", neighbours="replace-one"),
}
ADDITIVE = {name: kind for name, kind in MECHANISMS.items() if issubclass(kind, AdditiveMechanism)}
CASES = [
    pytest.param(name, kind, neighbours, id=f"{name}-{kind}-{neighbours}")
    for name, mechanism in ADDITIVE.items()
    for kind in mechanism.kinds
    for neighbours in mechanism.relations
]
SAMPLING = {"johnson-lindenstrauss", "wishart"}  # an error that no budget removes
VARIANTS = [("gaussian", {"noise": "discrete"})] + [(name, {}) for name in ADDITIVE]
# The size of an intercept is fixed, so noise beside one does not scale with the row norm.
SCALED = [(name, options) for name, options in VARIANTS if not MECHANISMS[name].needs_intercept]


def grid_of(d, radius=0.7):
    columns = {f"c{i}": {"lower": -1, "upper": 1} for i in range(d)}
    return Grid.of(Schema.from_dict({"columns": columns, "intercept": False, "row_norm_bound": radius}))


def grid_for(mechanism, d):
    """A grid the mechanism works on: with an intercept where it needs one, and then two columns at least."""
    if not mechanism.needs_intercept:
        return grid_of(d)
    columns = {f"c{i}": {"lower": -1, "upper": 1} for i in range(max(d, 2) - 1)}
    return Grid.of(Schema.from_dict({"columns": columns, "row_norm_bound": 1.25}))


def loss_of(kind, neighbours):
    return replace(LOSSES[kind], neighbours=neighbours)


@cache
def noise_draws(mechanism, loss, grid, draws, seed=11):
    """Upper triangles of independent draws, in scaled units."""
    randomness = rehearsal(seed)
    upper = [mechanism.draw(loss=loss, grid=grid, randomness=randomness).upper for _ in range(draws)]
    return np.array(upper, dtype=float) * float(grid.unit)


def variance_is_off(samples, claimed):
    """Two-sided: whether the sample second moment is 6 standard errors away from the claimed variance."""
    squares = samples.ravel() ** 2
    return abs(squares.mean() - claimed) > 6 * squares.std() / math.sqrt(squares.size)


def law_is_violated(samples, law):
    """Whether mean, diagonal, off-diagonal or trace variance contradict the law."""
    d = law.dimension
    rows, columns = np.triu_indices(d)
    diagonal, rest = samples[:, rows == columns], samples[:, rows != columns]
    mean_off = np.abs(samples.mean(0)) > 6 * samples.std(0) / math.sqrt(len(samples))
    checks = [
        mean_off.any(),
        variance_is_off(diagonal, law.diagonal_variance),
        variance_is_off(diagonal.sum(1), law.trace_variance),
    ]
    return any(checks) or (d > 1 and variance_is_off(rest, law.offdiagonal_variance))


@pytest.mark.parametrize(("name", "kind", "neighbours"), CASES)
@pytest.mark.long
def test_exact_noise_follows_the_law_on_the_certificate(name, kind, neighbours):
    mechanism, loss = MECHANISMS[name](), loss_of(kind, neighbours)
    for d in (1, 3):
        grid = grid_for(mechanism, d)
        samples = noise_draws(mechanism, loss, grid, DRAWS // d)
        assert not law_is_violated(samples, mechanism.law(loss=loss, grid=grid))


@pytest.mark.parametrize(("name", "kind", "neighbours"), CASES)
@pytest.mark.long
def test_idealized_noise_follows_the_same_law(name, kind, neighbours):
    mechanism, loss = MECHANISMS[name](arithmetic="idealized"), loss_of(kind, neighbours)
    grid = grid_for(mechanism, 3)
    assert not law_is_violated(noise_draws(mechanism, loss, grid, DRAWS), mechanism.law(loss=loss, grid=grid))


@pytest.mark.parametrize("name", ADDITIVE)
@pytest.mark.parametrize("factor", [0.5, 2.0, 1.2])
@pytest.mark.long
def test_the_law_check_finds_noise_of_the_wrong_size(name, factor):
    """Canary: half, double, and 20 % too much noise."""
    mechanism = MECHANISMS[name]()
    loss, grid = loss_of(mechanism.kinds[0], Neighbours.REPLACE_ONE), grid_for(mechanism, 2)
    samples = noise_draws(mechanism, loss, grid, DRAWS) * factor
    assert law_is_violated(samples, mechanism.law(loss=loss, grid=grid))


def epsilon_lower_bound(first, second, confidence=1 - 1e-6):
    """Events chosen on one half of the draws, bounded on the other (Clopper–Pearson), in both directions."""
    half = len(first) // 2
    best = 0.0
    for a, b in ((first, second), (second, first)):
        thresholds = np.quantile(np.concatenate([a[:half], b[:half]]), np.linspace(0.02, 0.98, 49))
        estimates = [
            np.log((a[:half] > t).mean() + 1e-9) - np.log((b[:half] > t).mean() + 2 / half)
            for t in thresholds
        ]
        t = thresholds[int(np.argmax(estimates))]
        k, m, n = int((a[half:] > t).sum()), int((b[half:] > t).sum()), len(a) - half
        alpha = (1 - confidence) / 4
        low = beta.ppf(alpha, k, n - k + 1) if k else 0.0
        high = beta.ppf(1 - alpha, m + 1, n - m) if m < n else 1.0
        best = max(best, math.log(low / high) if low > 0 else 0.0)
    return best


def attack(mechanism, loss, draws, shrink=1.0):
    """A lower bound on the ε between the tables {e1} and {e2} (or {e1} and nothing), by the ends of D."""
    d, grid = 2, grid_of(2)
    radius = math.isqrt(grid.squared_norm_bound)
    one, two = np.zeros((1, d)), np.zeros((1, d))
    one[0, 0] = radius
    if loss.neighbours is Neighbours.REPLACE_ONE:
        two[0, 1] = radius
    scores = []
    for seed, row in ((21, one), (22, two)):
        gram = Gram(grid)
        gram.add(row)
        randomness = rehearsal(seed)
        noise = [mechanism.draw(loss=loss, grid=grid, randomness=randomness) for _ in range(draws)]
        answers = np.array(
            [Noise((shrink * n.upper).astype(object)).answer(gram) for n in noise], dtype=float
        )
        truth_one, truth_two = np.zeros(3), np.zeros(3)
        truth_one[0] = radius**2
        if loss.neighbours is Neighbours.REPLACE_ONE:
            truth_two[2] = radius**2
        scores.append(np.abs(answers - truth_two).sum(1) - np.abs(answers - truth_one).sum(1))
    return epsilon_lower_bound(*scores)


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name, m in ADDITIVE.items() if "pure" in m.kinds])
@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_worst_case_neighbours_cannot_be_told_apart_beyond_the_claim(name, neighbours):
    loss = pc.PureDP(epsilon=2, neighbours=neighbours)
    assert attack(MECHANISMS[name](), loss, 4000) <= 2


@pytest.mark.parametrize("name", ["symmetric-wishart", "laplace"])
@pytest.mark.long
def test_the_attack_finds_a_third_of_the_noise(name):
    """Canary: noise drawn at a third of its scale at ε = 2 leaks more than claimed, and is caught."""
    loss = pc.PureDP(epsilon=2, neighbours="replace-one")
    assert attack(MECHANISMS[name](), loss, 4000, shrink=1 / 3) > 2


@pytest.mark.parametrize(("name", "options"), VARIANTS)
def test_twice_the_budget_means_less_noise_and_twice_the_rows_per_person_means_more(name, options):
    mechanism = MECHANISMS[name](**options)
    loss, grid = loss_of(mechanism.kinds[0], mechanism.relations[-1]), grid_for(mechanism, 4)
    base = mechanism.law(loss=loss, grid=grid).rms_frobenius
    assert mechanism.law(loss=2 * loss, grid=grid).rms_frobenius < base
    two = replace(grid, max_rows_per_person=2)
    if mechanism.relations == (Neighbours.REPLACE_ONE,):  # it publishes the count, which is private there
        with pytest.raises(pc.PrivcovError, match="E207"):
            mechanism.law(loss=loss, grid=two)
        return
    assert mechanism.law(loss=loss, grid=two).rms_frobenius == pytest.approx(2 * base)


@pytest.mark.parametrize(("name", "options"), SCALED)
def test_noise_scales_with_the_squared_row_norm(name, options):
    mechanism = MECHANISMS[name](**options)
    loss = loss_of(mechanism.kinds[0], Neighbours.REPLACE_ONE)
    norms = [mechanism.law(loss=loss, grid=grid_of(60, radius)).rms_frobenius for radius in (0.3, 1, 7)]
    assert norms[1] / norms[0] == pytest.approx(1 / 0.09, rel=1e-6)
    assert norms[2] / norms[1] == pytest.approx(49, rel=1e-6)


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_loss_it_cannot_promise_is_refused(name):
    mechanism, grid = MECHANISMS[name](), grid_of(2)
    for kind in set(LOSSES) - set(mechanism.kinds):
        with pytest.raises(pc.PrivcovError, match=r"E20[34]"):
            mechanism.draw(loss=LOSSES[kind], grid=grid, randomness=kernel())


@pytest.mark.parametrize("name", MECHANISMS)
def test_an_unknown_option_value_is_refused_with_the_known_ones(name):
    with pytest.raises(pc.PrivcovError, match="exact or idealized"):
        MECHANISMS[name](arithmetic="approximate")


@pytest.mark.parametrize("name", MECHANISMS)
def test_its_proof_page_exists_and_has_every_part(name):
    page = Path(__file__).parents[2] / MECHANISMS[name].proof
    text = page.read_text()
    for part in (
        "**Claim.**",
        "**Preconditions.**",
        "**Pseudocode",
        "**Proof.**",
        "**Numerics.**",
        "**Tests.**",
    ):
        assert part in text


def answer(mechanism, loss, grid, randomness):
    """What a mechanism says about a table of three rows."""
    gram = Gram(grid)
    rows = np.eye(grid.dimension)[:3] * math.isqrt(grid.squared_norm_bound)
    if mechanism.needs_intercept:
        rows = np.eye(grid.dimension)[:3] * 2.0 ** (grid.exponent - 1)
        rows[:, 0] = 2.0**grid.exponent
    gram.add(rows)
    return mechanism.draw(loss=loss, grid=grid, randomness=randomness).answer(gram)


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("arithmetic", ["exact", "idealized"])
def test_two_answers_are_never_the_same_and_a_rehearsal_repeats(name, arithmetic):
    mechanism = MECHANISMS[name](arithmetic=arithmetic)
    loss, grid = 100 * loss_of(mechanism.kinds[0], Neighbours.REPLACE_ONE), grid_for(mechanism, 3)
    # A large budget, because values clipped at zero (separate, kapralov-talwar) would repeat the zero matrix.
    assert len({tuple(answer(mechanism, loss, grid, kernel())) for _ in range(20)}) == 20
    assert len({tuple(answer(mechanism, loss, grid, rehearsal(1))) for _ in range(2)}) == 1


@pytest.mark.parametrize("name", [name for name in MECHANISMS if name not in SAMPLING])
@pytest.mark.parametrize("arithmetic", ["exact", "idealized"])
def test_an_enormous_budget_gives_the_truth(name, arithmetic):
    """Unbiasedness at the limit: every mechanism, whatever its kind, tends to the Gram matrix."""
    mechanism = MECHANISMS[name](arithmetic=arithmetic)
    grid = grid_for(mechanism, 4)
    loss = (
        pc.PureDP(epsilon=10**9, neighbours="replace-one")
        if "pure" in mechanism.kinds
        else pc.ZCDP(rho=10**15, neighbours="replace-one")
    )
    truth = np.diag([1.0, 1.0, 1.0, 0.0])[np.triu_indices(4)] * math.isqrt(grid.squared_norm_bound) ** 2
    if mechanism.needs_intercept:
        rows = np.array([[1, 0, 0, 0], [1, 0.5, 0, 0], [1, 0, 0.5, 0]]) * 2.0**grid.exponent
        truth = (rows.T @ rows)[np.triu_indices(4)]
    found = answer(mechanism, loss, grid, rehearsal(5)).astype(float)
    assert found == pytest.approx(truth, abs=1e-3 * grid.squared_norm_bound)


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("d", [1, 2])
def test_one_and_two_columns_work(name, d):
    mechanism = MECHANISMS[name]()
    grid = grid_for(mechanism, d)
    size = grid.dimension * (grid.dimension + 1) // 2
    for kind in mechanism.kinds:
        for neighbours in mechanism.relations:
            assert len(answer(mechanism, loss_of(kind, neighbours), grid, kernel())) == size


@pytest.mark.parametrize("name", ADDITIVE)
@pytest.mark.parametrize("epsilon", ["1e-9", "1e6"])
def test_absurd_budgets_still_draw(name, epsilon):
    """ε of a billionth needs integers beyond 64 bits; ε of a million needs scales of a few grid steps."""
    mechanism = MECHANISMS[name]()
    grid, neighbours = grid_for(mechanism, 2), mechanism.relations[-1]
    loss = (
        pc.PureDP(epsilon=epsilon, neighbours=neighbours)
        if "pure" in mechanism.kinds
        else pc.ApproxDP(epsilon=epsilon, delta="1e-6", neighbours=neighbours)
    )
    upper = mechanism.draw(loss=loss, grid=grid, randomness=kernel()).upper
    assert len(upper) == 3
    assert all(isinstance(int(value), int) for value in upper)


def test_a_mechanism_is_a_frozen_value():
    for kind in MECHANISMS.values():
        assert kind() == kind()
        assert hash(kind()) == hash(kind())
        with pytest.raises(AttributeError):
            kind().arithmetic = "idealized"
