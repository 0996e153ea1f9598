"""Eigenvector sampling: budgets add up, the splits are the papers', the tight exponent is never worse."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import privcov as pc
from privcov.errors import PrivcovError
from privcov.mechanisms import MECHANISMS, find
from privcov.mechanisms import budget as splits
from privcov.mechanisms.budget import Budget
from privcov.mechanisms.eigenvectors import Eigenvectors
from privcov.mechanisms.kapralov_talwar import KapralovTalwar
from privcov.mechanisms.sensitivity import Sensitivity
from privcov.mechanisms.spectral import ExactSpectral, FloatSpectral
from privcov.noise.randomness import rehearsal
from privcov.privacy import Neighbours
from privcov.schema import Schema
from privcov.schema.grid import Grid
from privcov.summing.gram import Gram

PURE = pc.PureDP(epsilon=1, neighbours="replace-one")
ZCDP = pc.ZCDP(rho="0.5", neighbours="add-remove")


def grid_of(d):
    columns = {f"c{i}": {"lower": -1, "upper": 1} for i in range(d)}
    return Grid.of(Schema.from_dict({"columns": columns, "intercept": False, "row_norm_bound": 1}))


def gram_of(values, rows=100):
    """A diagonal Gram matrix with these eigenvalues, in units of R²."""
    grid = grid_of(len(values))
    gram = Gram(grid)
    unit = math.isqrt(grid.squared_norm_bound)
    for axis, value in enumerate(values):
        row = np.zeros((round(value), len(values)))
        row[:, axis] = unit
        gram.add(row)
    return gram


def test_corollary_one_is_reproduced_to_the_digit():
    """εᵢ = (ε/2)·√(λ̂ᵢ + τ)/Σ√(λ̂ⱼ + τ) with ε₀ = ε/2 and τ = (2/ε₀) ln(2d/β), by hand for d = 3."""
    epsilon, beta, spectrum = 1.0, 0.05, [90.0, 30.0, 4.0]
    tau = 2 / (epsilon / 2) * math.log(2 * 3 / beta)
    roots = [math.sqrt(value + tau) for value in spectrum]
    expected = [epsilon / 2 * root / sum(roots) for root in roots]
    weights = splits.corollary_one(spectrum, noise_scale=2 / (epsilon / 2), failure=beta)
    ours = splits.sum_to(Fraction(1, 2), weights)
    assert [float(share) for share in ours] == pytest.approx(expected, rel=1e-11)
    assert sum(ours) == Fraction(1, 2)


def test_the_mechanism_uses_that_split():
    sensitivity = Sensitivity.of(grid_of(3), Neighbours.REPLACE_ONE)
    weights = Budget(kind="pure", amount=Fraction(1, 2)).weights([90.0, 30.0, 4.0], sensitivity)
    assert weights == pytest.approx(splits.corollary_one([90.0, 30.0, 4.0], noise_scale=4, failure=0.05))


@pytest.mark.parametrize("weights", [[1.0], [5.0, 1.0, 1e-9], [0.3] * 40])
def test_ranges_never_exceed_their_budget_and_hardly_fall_short(weights):
    budget = Fraction(3, 7)
    assert sum(splits.sum_to(budget, weights)) == budget
    spent = sum(eta**2 for eta in splits.squares_sum_to(budget, weights)) / 8
    assert spent <= budget
    assert spent >= budget * (1 - Fraction(1, 2**30))


def test_the_cube_root_split_is_optimal_for_its_objective():
    """Against random splits of the same Σ ηᵢ²: none has a smaller Σ (λᵢ + τ)/ηᵢ."""
    spectrum = np.array([200.0, 50.0, 3.0, 0.0])
    weights = np.array(splits.cube_root(spectrum.tolist(), noise_std=1e-9, failure=0.5))
    tau = 1e-9 * math.sqrt(2 * math.log(2 * 4 / 0.5))
    worth = spectrum + tau

    def cost(ranges):
        return (worth / ranges).sum()

    best = weights / np.linalg.norm(weights)
    rng = np.random.default_rng(1)
    for _ in range(500):
        other = np.abs(best * np.exp(0.3 * rng.normal(size=4)))
        assert cost(best) <= cost(other / np.linalg.norm(other)) * (1 + 1e-12)


@pytest.mark.parametrize("loss", [PURE, ZCDP])
@pytest.mark.parametrize("options", [{}, {"split": "uniform"}, {"values": "eigenvalues"}, {"rank": 2}])
def test_the_parts_of_a_draw_cost_what_was_paid(loss, options):
    """Every coefficient is recomputed from the draw: Σ of what each step can lose is at most the loss."""
    mechanism, grid = Eigenvectors(**options), grid_of(5)
    draw = mechanism.draw(loss=loss, grid=grid, randomness=rehearsal(1))
    assert sum(draw.shares.values()) == 1
    rank = draw.rank
    exponents = draw._exponents([10**14] * 5, draws=min(rank, 4))
    assert len(exponents) == min(rank, 4)
    ranges = [c * draw.sensitivity.spread for c in exponents]
    total = next(iter(loss.amounts.values()))
    part = total * draw.shares["vectors"]
    spent = sum(ranges) if loss.kind == "pure" else sum(eta**2 for eta in ranges) / 8
    assert part * (1 - Fraction(1, 2**20)) <= spent <= part


def test_the_paper_s_exponent_is_half_the_tight_one_under_replace_one():
    grid = grid_of(4)
    tight, paper = (
        Eigenvectors(exponent=exponent, split="uniform").draw(loss=PURE, grid=grid, randomness=rehearsal(1))
        for exponent in ("tight", "paper")
    )
    assert tight._exponents([], draws=3)[0] == 2 * paper._exponents([], draws=3)[0]


def test_only_d_minus_1_vectors_are_paid_for():
    draw = Eigenvectors(split="uniform").draw(loss=PURE, grid=grid_of(4), randomness=rehearsal(1))
    assert len(draw._exponents([], draws=3)) == 3
    assert draw._exponents([], draws=3)[0] * draw.sensitivity.spread == Fraction(1, 2) / 3


def test_one_column_spends_everything_on_its_value():
    draw = Eigenvectors().draw(loss=PURE, grid=grid_of(1), randomness=rehearsal(1))
    assert draw.shares == {"values": Fraction(1)}


def test_an_approximate_budget_is_spent_in_the_sharper_currency():
    few = Budget.of(pc.ApproxDP(epsilon=1, delta="1e-6", neighbours="replace-one"), draws=1)
    many = Budget.of(pc.ApproxDP(epsilon=1, delta="1e-6", neighbours="replace-one"), draws=100)
    assert (few.kind, many.kind) == ("pure", "zcdp")
    assert few.amount == 1
    assert many.amount < Fraction(25, 1000)


@pytest.mark.parametrize(
    ("options", "loss"),
    [
        ({"rank": 0}, PURE),
        ({"rank": 6}, PURE),
        ({"rank": -1}, PURE),
        ({"rank": "two"}, PURE),
        ({"split": "best"}, PURE),
        ({"timing": "padded"}, PURE),
        ({"timing": "padded"}, ZCDP),
    ],
)
def test_bad_options_are_refused_before_the_data_is_read(options, loss):
    with pytest.raises(PrivcovError, match="E209"):
        find("eigenvectors", loss=loss, **options).draw(loss=loss, grid=grid_of(5), randomness=rehearsal(1))


@pytest.mark.parametrize("name", ["eigenvectors", "kapralov-talwar"])
def test_wide_tables_need_idealized_arithmetic_to_be_asked_for(name):
    with pytest.raises(PrivcovError, match=r"E209.*idealized"):
        MECHANISMS[name]().draw(loss=PURE, grid=grid_of(80), randomness=rehearsal(1))


def test_padded_timing_fixes_the_number_of_proposals_and_writes_it_on_the_certificate():
    loss = pc.ApproxDP(epsilon=1, delta="1e-6", neighbours="replace-one")
    mechanism = Eigenvectors(timing="padded")
    draw = mechanism.draw(loss=loss, grid=grid_of(4), randomness=rehearsal(1))
    assert draw.proposals is not None
    assert draw.proposals > 50
    assert "fixed public number of proposals" in mechanism.timing_note
    assert "does not see how long" in Eigenvectors().timing_note


@pytest.mark.parametrize("arithmetic", ["exact", "idealized"])
@pytest.mark.parametrize("values", ["rayleigh", "eigenvalues"])
def test_a_rank_two_release_has_rank_two(arithmetic, values):
    mechanism = Eigenvectors(arithmetic=arithmetic, values=values, rank=2)
    loss = pc.PureDP(epsilon=1000, neighbours="replace-one")
    gram = gram_of([60, 30, 8, 2])
    upper = mechanism.draw(loss=loss, grid=gram.grid, randomness=rehearsal(2)).answer(gram).astype(float)
    matrix = np.zeros((4, 4))
    matrix[np.triu_indices(4)] = upper / gram.grid.squared_norm_bound
    spectrum = np.linalg.eigvalsh(matrix + np.triu(matrix, 1).T)
    assert spectrum[2:] == pytest.approx([30, 60], rel=0.1)
    assert np.abs(spectrum[:2]).max() < 1e-6


def test_exact_and_float_linear_algebra_agree():
    gram = gram_of([60, 30, 8, 2])
    upper = gram.reveal_to_mechanism()
    exact, plain = ExactSpectral(upper, 4), FloatSpectral(upper, 4)
    assert np.array(exact.eigenvalues(), dtype=float) == pytest.approx(
        np.array(plain.eigenvalues(), dtype=float)
    )
    rng = np.random.default_rng(1)
    floats, _ = np.linalg.qr(rng.normal(size=(4, 4)))
    integers = np.array([[round(v * 2**40) for v in row] for row in floats], dtype=object)
    one = gram.grid.squared_norm_bound
    assert np.array(exact.quotients(integers), dtype=float) == pytest.approx(
        np.array(plain.quotients(floats), dtype=float), rel=1e-9
    )
    values = [5 * one, 3 * one, one, 0]
    assert exact.assemble(integers, values).astype(float) == pytest.approx(
        plain.assemble(floats, values).astype(float), abs=1e-9 * one
    )
    direction = np.array([round(v * 2**40) for v in np.ones(4) / 2], dtype=object)
    assert exact.deflation(direction, integers, values) == pytest.approx(
        plain.deflation(np.ones(4) / 2, floats, values), rel=1e-9
    )


def test_for_any_basis_rayleigh_quotients_are_the_best_values():
    """‖C − Σ vᵢθᵢθᵢᵀ‖_F with θᵢᵀCθᵢ, against the eigenvalues and against random values."""
    gram, rng = gram_of([60, 30, 8, 2]), np.random.default_rng(2)
    opened = FloatSpectral(gram.reveal_to_mechanism(), 4)
    weights = np.where(np.equal(*np.triu_indices(4)), 1.0, 2.0)

    def error(basis, values):
        return float((weights * (opened.assemble(basis, values) - opened.upper).astype(float) ** 2).sum())

    for _ in range(50):
        basis, _ = np.linalg.qr(rng.normal(size=(4, 4)))
        best = opened.quotients(basis)
        others = [
            opened.eigenvalues(),
            [round(q * f) for q, f in zip(best, rng.uniform(0.5, 1.5, 4), strict=True)],
        ]
        assert all(error(basis, best) <= error(basis, other) * (1 + 1e-9) for other in others)


def test_kapralov_talwar_finds_the_truth_when_the_budget_is_large():
    gram = gram_of([60, 30, 8, 2])
    loss = pc.PureDP(epsilon=100_000, neighbours="replace-one")
    for arithmetic in ("exact", "idealized"):
        draw = KapralovTalwar(arithmetic=arithmetic).draw(loss=loss, grid=gram.grid, randomness=rehearsal(4))
        upper = draw.answer(gram).astype(float) / gram.grid.squared_norm_bound
        assert upper[[0, 4, 7, 9]] == pytest.approx([60, 30, 8, 2], abs=0.5)


PUBLISHED = {
    "laplace": PURE,
    "gaussian": pc.ApproxDP(epsilon="0.5", delta="1e-6", neighbours="replace-one"),
    "eigenvectors": PURE,
    "kapralov-talwar": PURE,
}


@pytest.mark.parametrize(("name", "loss"), PUBLISHED.items())
def test_every_published_variant_can_be_asked_for_and_is_on_the_certificate(name, loss):
    mechanism = find(name, loss=loss, as_published=True)
    assert mechanism.as_published.items() <= mechanism.options.items()


def test_published_constants_are_those_of_the_papers():
    grid, d = grid_of(5), 5
    laplace = find("laplace", loss=PURE, as_published=True).law(loss=PURE, grid=grid)
    assert laplace.scale == pytest.approx(2 * d / 1, rel=1e-9)
    loss = PUBLISHED["gaussian"]
    gaussian = find("gaussian", loss=loss, as_published=True).law(loss=loss, grid=grid)
    assert gaussian.scale == pytest.approx(math.sqrt(2) * math.sqrt(2 * math.log(1.25e6)) / 0.5, rel=1e-9)
    assert gaussian.offdiagonal_variance == gaussian.diagonal_variance


def test_a_published_sigma_that_breaks_its_promise_is_refused():
    loss = pc.ApproxDP(epsilon=8, delta="1e-3", neighbours="add-remove")
    with pytest.raises(PrivcovError, match="E203"):
        find("gaussian", loss=loss, as_published=True).law(loss=loss, grid=grid_of(3))


def test_a_mechanism_without_a_published_variant_says_so():
    with pytest.raises(PrivcovError, match="E209"):
        find("symmetric-wishart", loss=PURE, as_published=True)


def unit_rows_gram(rows):
    """The Gram matrix of rows divided by the largest norm, as the papers scale them."""
    scaled = (rows - rows.min(0)) / np.where(np.ptp(rows, axis=0) > 0, np.ptp(rows, axis=0), 1)
    scaled = scaled / np.linalg.norm(scaled, axis=1).max()
    return scaled.T @ scaled, len(rows)


def table(home, name):
    if name == "adult":
        stored = np.load(home / "adult_onehot108.npz")
        return np.hstack([stored["X_num"], stored["X_bin"]]).astype(float)
    rows = np.loadtxt(home / f"{name}.csv", delimiter=",", skiprows=1)
    return rows[:, 1:] if name == "wine" else rows


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("wine", marks=pytest.mark.long),
        "airfoil",
        pytest.param("adult", marks=pytest.mark.slow),
    ],
)
def test_the_tight_exponent_is_never_worse_than_the_paper_s(papers_data, name):
    """50 runs each, same split and values: the mean error is no larger, within 3 standard errors."""
    truth, rows = unit_rows_gram(table(papers_data, name))
    d, runs = len(truth), 50
    grid = grid_of(d)
    upper = np.array([round(v * grid.squared_norm_bound) for v in truth[np.triu_indices(d)]], dtype=object)

    class Opened:
        def reveal_to_mechanism(self):
            return upper

    def error(exponent, epsilon):
        mechanism = Eigenvectors(exponent=exponent, values="eigenvalues", arithmetic="idealized")
        loss, randomness, found = pc.PureDP(epsilon=epsilon, neighbours="replace-one"), rehearsal(8), []
        for _ in range(runs):
            answer = mechanism.draw(loss=loss, grid=grid, randomness=randomness).answer(Opened())
            matrix = np.zeros((d, d))
            matrix[np.triu_indices(d)] = answer.astype(float) / grid.squared_norm_bound
            matrix += np.triu(matrix, 1).T
            values, vectors = np.linalg.eigh(matrix)
            found.append(np.linalg.norm((vectors * values.clip(0, rows)) @ vectors.T - truth) / rows)
        return np.mean(found), np.std(found) / math.sqrt(runs)

    for epsilon in ("0.1", "1", "4"):
        (tight, spread), (paper, other) = error("tight", epsilon), error("paper", epsilon)
        assert tight <= paper + 3 * math.hypot(spread, other)
