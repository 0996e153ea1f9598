"""Matrix Bingham: the loss of the density stays within its range, the samplers follow the law, refusals are public.

Density ratios are computed by quadrature at d = 3, with no randomness. The laws of the samplers are compared with
uniform rejection by another generator: means of at most 9 features, two-sided at |z| > 6.5 (false alarm 8e-11 each,
below 1e-8 for the file; the streams are fixed). A feature of standard deviation 0.3 that is wrong by 0.06 is seen
999 times in a thousand at 2 000 draws, by 0.12 at the 600 of the exact sampler.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from flint import fmpz_mat

import privcov as pc
from privcov.errors import PrivcovError
from privcov.mechanisms import find, matrix_bingham
from privcov.mechanisms.budget import EXCESS
from privcov.mechanisms.matrix_bingham import OPENED, MatrixBingham
from privcov.mechanisms.sensitivity import Sensitivity
from privcov.noise.exact.chain import exact_chain
from privcov.noise.exact.subspaces import subspace
from privcov.noise.idealized import subspaces
from privcov.noise.idealized.subspaces import acceptance_floor, sample_subspace
from privcov.noise.randomness import rehearsal
from privcov.privacy import Neighbours
from privcov.schema import Schema
from privcov.schema.grid import Grid
from privcov.summing.gram import Gram

ADD, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE_ONE
PURE = pc.PureDP(epsilon=1, neighbours="replace-one")
ZCDP = pc.ZCDP(rho="0.5", neighbours="add-remove")
ALARM = 6.5


def grid_of(d):
    columns = {f"c{i}": {"lower": -1, "upper": 1} for i in range(d)}
    return Grid.of(Schema.from_dict({"columns": columns, "intercept": False, "row_norm_bound": 1}))


def gram_of(counts):
    """A diagonal Gram matrix: so many copies of each axis."""
    grid = grid_of(len(counts))
    gram, unit = Gram(grid), math.isqrt(grid.squared_norm_bound)
    for axis, count in enumerate(counts):
        row = np.zeros((count, len(counts)))
        row[:, axis] = unit
        gram.add(row)
    return gram


# The density, by quadrature ---------------------------------------------------------------------------------


@cache
def sphere():
    """Points and weights on the unit sphere of three dimensions."""
    height, weight = np.polynomial.legendre.leggauss(60)
    angle = np.arange(120) * (2 * np.pi / 120)
    ring = np.sqrt(1 - height[:, None] ** 2)
    points = np.stack([ring * np.cos(angle), ring * np.sin(angle), height[:, None] + 0 * angle], -1)
    return points.reshape(-1, 3), np.repeat(weight / weight.sum() / 120, 120)


def log_density(matrix, exponent, rank, cap=math.inf):
    """At every point u of the sphere, of the line of u (rank 1) or of the plane orthogonal to it (rank 2)."""
    points, weights = sphere()
    lines = np.einsum("ij,jk,ik->i", points, matrix, points)
    scores = exponent * np.minimum(lines if rank == 1 else np.trace(matrix) - lines, cap)
    top = scores.max()
    return scores - top - math.log(weights @ np.exp(scores - top))


def neighbours_of(relation, rng):
    """Pairs of Gram matrices of neighbouring tables, the worst among them: much of one direction, then D across."""
    axes = np.eye(3)
    bases = [np.zeros((3, 3)), *(n * np.diag(d) for n in (3, 60) for d in ([1.0, 0, 0], [1.0, 1.0, 0]))]
    for base in bases:
        rows = [*axes, *(v / np.linalg.norm(v) for v in rng.normal(size=(1, 3)))]
        for x in rows:
            for y in [np.zeros(3)] if relation is ADD else rows:
                yield base + np.outer(x, x), base + np.outer(y, y)


def exponent_of(loss, rank, d=3):
    """The coefficient the mechanism uses, in units of R²."""
    draw = MatrixBingham(rank=rank).draw(loss=loss, grid=grid_of(d), randomness=rehearsal(1))
    return float(draw.exponent * draw.sensitivity.squared_norm), draw


def widest(loss, rank, *, factor=1.0, cap=math.inf):
    """The largest range, and the largest size, of the privacy loss over all pairs."""
    exponent, _ = exponent_of(loss, rank)
    width = size = 0.0
    for one, two in neighbours_of(loss.neighbours, np.random.default_rng(1)):
        ratio = log_density(one, factor * exponent, rank, cap) - log_density(
            two, factor * exponent, rank, cap
        )
        width, size = max(width, np.ptp(ratio)), max(size, np.abs(ratio).max())
    return width, size


@pytest.mark.parametrize("loss", [PURE, ZCDP, pc.PureDP(epsilon=4, neighbours="add-remove")])
@pytest.mark.parametrize("rank", [1, 2])
def test_the_loss_of_the_density_stays_within_its_range_and_comes_near_it(loss, rank):
    _, draw = exponent_of(loss, rank)
    eta = float(draw.exponent * draw.sensitivity.frame_range)
    width, size = widest(loss, rank)
    assert width <= eta * (1 + 1e-9)
    assert size <= eta * (1 + 1e-9)
    assert width >= 0.99 * eta
    part = draw.budget.part(draw.shares["subspace"]).amount
    assert (eta if draw.budget.kind == "pure" else eta**2 / 8) <= part * (1 + Fraction(1, 10**12))


@pytest.mark.parametrize("loss", [PURE, ZCDP])
@pytest.mark.parametrize("cap", [1.5, 40.0])
def test_a_cap_below_what_the_table_holds_does_not_widen_the_range(loss, cap):
    _, draw = exponent_of(loss, 2)
    width, size = widest(loss, 2, cap=cap)
    assert max(width, size) <= float(draw.exponent * draw.sensitivity.frame_range) * (1 + 1e-9)


@pytest.mark.parametrize("rank", [1, 2])
def test_an_exponent_half_as_large_again_is_found(rank):
    """Canary: what the exponential mechanism without its range, or with that of add-remove, would use."""
    _, draw = exponent_of(PURE, rank)
    eta = float(draw.exponent * draw.sensitivity.frame_range)
    assert widest(PURE, rank, factor=1.5)[0] > eta


@pytest.mark.parametrize("radius", [0.3, 1.0, 7.0])
@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_no_neighbour_moves_the_trace_or_the_block_further_than_the_bounds(radius, relation):
    d, rng = 5, np.random.default_rng(2)
    s = Sensitivity(neighbours=relation, dimension=d, squared_norm=Fraction(radius) ** 2)
    rows = [radius * v / np.linalg.norm(v) for v in [*np.eye(d)[:3], *rng.normal(size=(5, d))]]
    for rank in range(1, d):
        nuclear = float(s.block_nuclear(rank, excess=Fraction(0))) - rank**1.5
        frobenius = float(s.block_frobenius(rank, excess=Fraction(0))) - rank
        reached = 0.0
        for x in rows:
            for y in rows if relation is REPLACE else [np.zeros(d)]:
                change = np.outer(x, x) - np.outer(y, y)
                values = np.linalg.eigvalsh(change)
                spread = values[-rank:].sum() - values[:rank].sum()
                assert spread <= float(s.frame_range) * (1 + 1e-9)
                reached = max(reached, spread)
                frame = np.linalg.qr(rng.normal(size=(d, rank))).Q
                block = np.linalg.eigvalsh(frame.T @ change @ frame)
                assert np.abs(block).sum() <= nuclear * (1 + 1e-9)
                assert np.linalg.norm(block) <= frobenius * (1 + 1e-9)
        assert reached >= float(s.frame_range) * (1 - 1e-9)


# The samplers -----------------------------------------------------------------------------------------------

SPECTRA = {3: [2.0, 1.5, -1.0], 4: [3.0, 1.0, 0.5, 0.0]}
CASES = [(3, 1.0, math.inf), pytest.param(4, 1.0, math.inf, marks=pytest.mark.long), (4, 2.0, 2.5)]


def rotation(d):
    return np.linalg.qr(np.random.default_rng(d).normal(size=(d, d))).Q


def features(frames, d):
    """In the eigenbasis: the diagonal of the projector, its squared trace with M, and the squares of one column."""
    turned = np.einsum("ij,nik->njk", rotation(d), frames)
    diagonal = (turned**2).sum(2)
    return np.column_stack([diagonal, (diagonal @ np.array(SPECTRA[d])) ** 2, turned[:, :, 0] ** 2])


@cache
def reference(d, concentration, cap):
    """Uniform planes, accepted in proportion to the density: slow, obvious, and by another generator."""
    rng, kept = np.random.default_rng(7), []
    values, best = np.array(SPECTRA[d]), min(sum(SPECTRA[d][:2]), cap)
    for _ in range(6):
        frames = np.linalg.qr(rng.normal(size=(20_000, d, 2))).Q
        scores = np.minimum(np.einsum("nik,i->n", frames**2, values), cap)
        kept.append(frames[np.log(rng.random(20_000)) < concentration * (scores - best)])
    frames = np.concatenate(kept)
    # QR leans its first column on nothing here (the normals are uniform), so every feature is a fair mean.
    seen = features(np.einsum("ij,njk->nik", rotation(d), frames), d)
    return seen.mean(0), seen.std(0) / math.sqrt(len(seen))


def fits(frames, d, concentration, cap=math.inf, *, columns=True):
    seen = features(np.array(frames), d)
    mean, error = reference(d, concentration, cap)
    z = (seen.mean(0) - mean) / np.hypot(seen.std(0) / math.sqrt(len(seen)), error)
    return bool(np.abs(z if columns else z[: d + 1]).max() < ALARM)


def matrix_of(d):
    return (rotation(d) * SPECTRA[d]) @ rotation(d).T


def drawn(d, concentration, cap=math.inf, *, draws=2000, seed=1, envelope=None):
    source = rehearsal(seed)
    return [
        sample_subspace(
            source, matrix_of(d), concentration=concentration, rank=2, cap=cap, envelope=envelope
        )[0]
        for _ in range(draws)
    ]


sound = cache(drawn)
"""Drawn once: not for a test that plants an error in the sampler."""


@pytest.mark.parametrize(("d", "concentration", "cap"), CASES)
def test_the_float_sampler_follows_the_law(d, concentration, cap):
    assert fits(sound(d, concentration, cap), d, concentration, cap)


@pytest.mark.parametrize("envelope", [0.5, 3.0, 60.0])
@pytest.mark.long
def test_a_badly_chosen_envelope_costs_proposals_and_nothing_else(envelope):
    assert fits(drawn(4, 1.0, envelope=envelope, draws=1200), 4, 1.0)


def integral(d):
    """The matrix in units of 2^-30, rounded."""
    return fmpz_mat([[round(float(x) * 2**30) for x in row] for row in matrix_of(d)])


@pytest.mark.parametrize(("d", "concentration", "cap"), CASES)
def test_the_exact_sampler_follows_the_law(d, concentration, cap):
    source, frames = rehearsal(2), []
    for _ in range(600):
        projector, _ = subspace(
            source,
            matrix=integral(d),
            concentration=Fraction(concentration) / 2**30,
            rank=2,
            cap=None if cap == math.inf else round(cap * 2**30),
        )
        frames.append(np.linalg.eigh(np.array(projector, dtype=float)).eigenvectors[:, d - 2 :])
    assert fits(frames, d, concentration, cap, columns=False)


@pytest.mark.parametrize("arithmetic", ["exact", "idealized"])
def test_the_frame_of_all_but_one_dimension_follows_the_law(arithmetic):
    upper = np.array([[int(x) for x in row] for row in integral(3).table()], dtype=object)[np.triu_indices(3)]
    opened, source = OPENED[arithmetic](upper, 3), rehearsal(3)
    frames = [opened.frame(source, Fraction(1, 2**30), 2, None).T for _ in range(700)]
    assert fits(frames, 3, 1.0, columns=False)


def test_a_wrong_sign_of_the_logarithm_is_seen(monkeypatch):
    """Canary: the sign trap, det(VᵀΩV) to the power −d/2."""

    def wrong(size, form, precision):
        d, least = precision.size, precision[:2]
        traces = np.trace(np.linalg.solve(size, form), axis1=1, axis2=2)
        logs = np.linalg.slogdet(form).logabsdet - np.linalg.slogdet(size).logabsdet
        return 0.5 * ((least + d * np.log(least)).sum() - traces - d * logs)

    monkeypatch.setattr(subspaces, "log_acceptance", wrong)
    assert not fits(drawn(4, 1.0, draws=800), 4, 1.0)


@pytest.mark.long
def test_accepting_every_proposal_is_seen(monkeypatch):
    """Canary."""
    monkeypatch.setattr(subspaces, "log_acceptance", lambda size, form, precision: np.zeros(len(size)))
    assert not fits(drawn(4, 1.0, envelope=0.5), 4, 1.0)
    assert not fits(drawn(3, 1.0, envelope=0.5), 3, 1.0)


def test_a_coefficient_half_as_large_again_is_seen():
    """Canary."""
    assert not fits(drawn(4, 1.5), 4, 1.0)


def test_a_frame_that_leans_towards_large_eigenvalues_is_seen():
    """Canary: a basis of the right subspace that the matrix itself has chosen says more than the subspace does."""
    frames = sound(4, 1.0, math.inf)
    leaning = [np.linalg.eigh(f @ f.T @ matrix_of(4) @ f @ f.T).eigenvectors[:, [3, 2]] for f in frames]
    assert not fits(leaning, 4, 1.0)
    assert fits(leaning, 4, 1.0, columns=False)


@pytest.mark.parametrize("d", [4, 6, 9])
@pytest.mark.parametrize("strength", [0.5, 3.0, 12.0])
def test_no_spectrum_is_accepted_less_often_than_the_floor(d, strength):
    """Rates of uniform proposals for spectra of one trace, whose mean of exp is known to better than 10 %."""
    rng = np.random.default_rng(1)
    for rank in {2, d // 2, d - 2}:
        squares = np.linalg.qr(rng.normal(size=(20_000, d, rank))).Q ** 2
        floor = acceptance_floor(dimension=d, rank=rank, strength=strength)
        assert 0 < floor <= 1
        for shape in ([1.0], [1.0] * rank, [1.0] * d, np.arange(rank, 0, -1.0), rng.random(d)):
            values = np.zeros(d)
            values[: len(shape)] = np.sort(shape)[::-1]
            values *= strength / values.sum()
            rates = np.exp(squares.sum(2) @ values - values[:rank].sum())
            assert floor <= rates.mean() + 6 * rates.std() / math.sqrt(rates.size)


def test_the_tuned_envelope_is_never_slower_than_uniform_proposals():
    """Its rate relative to theirs is known in closed form: Π ωᵢ^(k/2)·e^(…), here at many spectra."""
    rng = np.random.default_rng(3)
    for _ in range(300):
        d = int(rng.integers(3, 12))
        rank = int(rng.integers(1, d))
        gaps = np.sort(rng.exponential(size=d) ** 3 * 10 ** rng.uniform(-2, 3))
        gaps -= gaps[0]
        b = subspaces.tuned_envelope(gaps, rank)
        omega = b + gaps
        best = np.maximum(omega[:rank], d)
        tuned = rank * np.log(omega).sum() - rank * b - (d * np.log(best) - best).sum()
        assert tuned >= gaps[:rank].sum() - 1e-6 * (1 + abs(tuned))


# The mechanism ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [PURE, ZCDP, pc.ApproxDP(epsilon=1, delta="1e-6", neighbours="add-remove")])
@pytest.mark.parametrize("rank", [1, 2, 3, 4])
def test_the_parts_of_a_draw_cost_what_was_paid(monkeypatch, loss, rank):
    """η of the subspace and the noise of the block, recomputed from what the draw holds and asked for."""
    asked = {}
    real = matrix_bingham.wishart_difference, matrix_bingham.gaussian_ensemble
    for function, name in zip(real, ("wishart_difference", "gaussian_ensemble"), strict=True):

        def spy(randomness, *, function=function, name=name, **words):
            asked[name] = words
            return function(randomness, **words)

        monkeypatch.setattr(matrix_bingham, name, spy)
    draw = MatrixBingham(rank=rank, rows=20).draw(loss=loss, grid=grid_of(4), randomness=rehearsal(1))
    s, eta = draw.sensitivity, draw.exponent * draw.sensitivity.frame_range
    if draw.budget.kind == "pure":
        block = s.block_nuclear(rank, excess=EXCESS) / (2 * asked["wishart_difference"]["scale"])
        total = eta + block
    else:
        words = asked["gaussian_ensemble"]
        assert words["offdiagonal_std"] ** 2 >= words["diagonal_std"] ** 2 / 2
        total = eta**2 / 8 + s.block_frobenius(rank, excess=EXCESS) ** 2 / (2 * words["diagonal_std"] ** 2)
    assert sum(draw.shares.values()) == 1
    assert draw.budget.amount * (1 - Fraction(1, 2**30)) <= total <= draw.budget.amount
    if loss.kind == "approximate":
        assert draw.budget.kind == "pure"
        assert draw.budget.amount <= loss.epsilon


@pytest.mark.parametrize(
    "options", [{"rank": 0}, {"rank": 7}, {"rank": "two"}, {"rank": 2, "rows": 0}, {"rank": 3}]
)
def test_bad_options_are_refused_before_the_data_is_read(options):
    with pytest.raises(PrivcovError, match="E209"):
        find("matrix-bingham", loss=PURE, **options).draw(loss=PURE, grid=grid_of(6), randomness=rehearsal(1))


@pytest.mark.parametrize("arithmetic", ["exact", "idealized"])
def test_a_subspace_too_costly_to_draw_is_refused_from_public_facts_and_names_the_alternative(arithmetic):
    mechanism = MatrixBingham(rank=3, rows=10_000, arithmetic=arithmetic)
    with pytest.raises(PrivcovError, match=r"E209.*eigenvectors with rank 3"):
        mechanism.draw(loss=PURE, grid=grid_of(8), randomness=rehearsal(1))


def test_wide_tables_need_idealized_arithmetic_to_be_asked_for():
    with pytest.raises(PrivcovError, match=r"E209.*idealized"):
        MatrixBingham(rank=1).draw(loss=PURE, grid=grid_of(80), randomness=rehearsal(1))


@pytest.mark.parametrize("arithmetic", ["exact", "idealized"])
def test_more_rows_than_declared_are_no_error_and_take_no_longer_than_declared(arithmetic):
    """The score stops counting at the declared rows: the answer is valid, and the work stays bounded."""
    mechanism = MatrixBingham(rank=2, rows=30, arithmetic=arithmetic)
    gram = gram_of([3000, 2000, 5, 0])
    for seed in range(5):
        draw = mechanism.draw(loss=PURE, grid=gram.grid, randomness=rehearsal(seed))
        assert len(draw.answer(gram)) == 10


@pytest.mark.parametrize("arithmetic", ["exact", "idealized"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_a_large_budget_finds_the_subspace_and_its_block(arithmetic, rank):
    counts, epsilon = {1: [60, 0, 8, 0], 2: [60, 60, 8, 0], 3: [60, 60, 8, 0]}[rank], 2000
    gram = gram_of(counts)
    loss = pc.PureDP(epsilon=epsilon if rank != 2 else 40, neighbours="add-remove")
    mechanism = MatrixBingham(rank=rank, rows=3, arithmetic=arithmetic)
    upper = mechanism.draw(loss=loss, grid=gram.grid, randomness=rehearsal(2)).answer(gram).astype(float)
    matrix = np.zeros((4, 4))
    matrix[np.triu_indices(4)] = upper / gram.grid.squared_norm_bound
    spectrum = np.linalg.eigvalsh(matrix + np.triu(matrix, 1).T)
    assert np.sum(np.abs(spectrum) > 1e-6) == rank
    if rank != 2:  # with rows = 3 the plane is only weakly drawn to the truth
        assert spectrum[-rank:] == pytest.approx(np.sort(counts)[-rank:], abs=0.5)


def test_exact_and_float_blocks_agree():
    gram, rng = gram_of([60, 30, 8, 2]), np.random.default_rng(1)
    upper = gram.reveal_to_mechanism()
    frame = np.linalg.qr(rng.normal(size=(4, 2))).Q.T
    noise = np.array([5 * 2**38, 2**38, -(2**39)], dtype=object)
    exact, plain = (OPENED[a](upper, 4).block(frame, noise).astype(float) for a in ("exact", "idealized"))
    assert exact == pytest.approx(plain, abs=1e-9 * float(np.abs(plain).max()))


def test_rank_one_is_the_bingham_draw_of_eigenvectors():
    """The same randomness gives the same line as the first eigenvector at the same exponent."""
    gram = gram_of([20, 10, 3])
    draw = MatrixBingham(rank=1).draw(loss=PURE, grid=gram.grid, randomness=rehearsal(1))
    one = OPENED["exact"](gram.reveal_to_mechanism(), 3).frame(rehearsal(9), draw.exponent, 1, None)
    basis = exact_chain(
        rehearsal(9), upper=gram.reveal_to_mechanism(), dimension=3, exponents=[draw.exponent], rank=1
    )
    assert abs(one[0] @ basis.floats()[0]) == pytest.approx(1, abs=1e-9)
