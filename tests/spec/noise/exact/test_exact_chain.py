"""Exact eigenvectors: correct roundings of ideal draws, an integer chain, a sensitivity that holds exactly."""

import doctest
import importlib
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, arb_mat, ctx, fmpq, fmpz_mat
from scipy import stats

from privcov.errors import InternalError, ParameterError
from privcov.noise.exact import bingham as module
from privcov.noise.exact import chain, envelope, products, trials
from privcov.noise.exact.bingham import bingham, tuned
from privcov.noise.exact.chain import ExactBasis, complement_of, exact_chain, excess
from privcov.noise.exact.envelope import acceptance_floor, proposals_needed
from privcov.noise.exact.reals import normals
from privcov.noise.randomness import Rehearsal, rehearsal

CONCENTRATIONS = [Fraction(1, 10**12), Fraction(1, 1000), Fraction(1), Fraction(10**6), Fraction(10**12)]


def random_gram(seed, dimension, rows=30, size=2**12):
    points = np.random.default_rng(seed).integers(-size, size, (rows, dimension)).astype(object)
    return points.T @ points


def triangle(gram):
    return gram[np.triu_indices(len(gram))].tolist()


def special_matrices():
    repeated = np.diag([3, 3, 3, 1, 1]).astype(object)
    return {
        "zero": np.zeros((4, 4), dtype=object),
        "repeated": repeated,
        "a multiple of the identity": 10**40 * np.eye(3, dtype=int).astype(object),
        "huge with a small signal": 10**60 * np.eye(5, dtype=int).astype(object) + repeated,
        "indefinite": np.array([[0, 5], [5, 0]], dtype=object),
        "rank one": np.outer([1, 2, 3], [1, 2, 3]).astype(object) * 2**40,
        "dense": random_gram(1, 6),
    }


class Counted(Rehearsal):
    """A rehearsal that counts the words it has given."""

    count = 0

    def words(self, count):
        self.count += count
        return super().words(count)


@pytest.mark.parametrize("name", ["bingham", "envelope", "spectrum", "chain"])
def test_every_example_runs(name):
    result = doctest.testmod(importlib.import_module(f"privcov.noise.exact.{name}"))
    assert result.attempted > 0
    assert result.failed == 0


# The envelope is valid, by exact integers, wherever it came from.


def is_positive_semidefinite(matrix):
    """Elimination without division on exact integers; a zero pivot is passed over with its empty row."""
    rows = [[int(entry) for entry in row] for row in matrix.table()]
    while rows:
        pivot = rows[0][0]
        if pivot < 0 or (pivot == 0 and any(rows[0])):
            return False
        if pivot == 0:
            rows = [row[1:] for row in rows[1:]]
        else:
            rows = [
                [pivot * x - row[0] * y for x, y in zip(row[1:], rows[0][1:], strict=True)]
                for row in rows[1:]
            ]
    return True


@pytest.mark.parametrize("matrix", special_matrices().values(), ids=special_matrices().keys())
@pytest.mark.parametrize("concentration", CONCENTRATIONS)
def test_the_floor_of_an_envelope_is_below_every_eigenvalue_of_its_form(matrix, concentration):
    found = tuned(fmpz_mat(matrix.tolist()), concentration)
    q = found.dimension
    identity = fmpz_mat(np.eye(q, dtype=int).tolist())
    assert is_positive_semidefinite(found.form - identity * found.floor)
    assert not is_positive_semidefinite(found.form - identity * (found.floor + found.floor // (8 * q) + 1))
    # The form is BᵀΩB for an Ω that differs from -2κM by a multiple of I.
    transform = found.transform.exact
    shift = found.form + transform.transpose() * fmpz_mat(matrix.tolist()) * transform * int(
        2 * concentration / found.unit
    )
    squares = transform.transpose() * transform
    ratio = Fraction(int(shift[0, 0]), int(squares[0, 0]))
    assert shift * ratio.denominator == squares * ratio.numerator
    assert Fraction(2) * concentration / found.unit == int(2 * concentration / found.unit)
    for bound, row in zip(found.transform.row_sums, transform.table(), strict=True):
        assert sum(abs(int(x)) for x in row) <= bound


@pytest.mark.parametrize("matrix", special_matrices().values(), ids=special_matrices().keys())
@pytest.mark.parametrize("concentration", CONCENTRATIONS)
def test_a_vector_of_unit_length_comes_from_any_matrix_and_concentration(matrix, concentration):
    vector, accepted = bingham(rehearsal(3), matrix=matrix, concentration=concentration)
    assert accepted
    assert abs(np.linalg.norm(np.array(vector, dtype=float) / 2**40) - 1) < 1e-11


def test_a_transform_that_does_not_fit_is_refused():
    matrix = fmpz_mat(random_gram(2, 4).tolist())
    entries = [int(x) for x in matrix.entries()]
    guess, shift = module._machine_guess(entries, 4, Fraction(1, 1000), max(entries))
    assert module._certified(matrix, Fraction(1, 1000), guess, shift) is not None
    assert module._certified(matrix, Fraction(1, 1000), guess, shift * 2) is None
    assert module._certified(matrix, Fraction(1, 1000), guess, shift / 2) is None
    assert module._certified(matrix, Fraction(1, 10), guess, shift) is None


def test_integers_alone_tune_as_well_as_floats(monkeypatch):
    matrix = fmpz_mat(random_gram(3, 7).tolist())
    fast = tuned(matrix, Fraction(1, 10**5))
    monkeypatch.setattr(module, "_MACHINE_SPREAD", 0)
    slow = tuned(matrix, Fraction(1, 10**5))
    assert slow.transform.bits != fast.transform.bits
    assert abs(slow.floor_float / fast.floor_float - 1) < 1e-3


def test_a_tuning_that_cannot_be_certified_ends_in_an_internal_error(monkeypatch):
    monkeypatch.setattr(module, "best_precision", lambda gaps: gaps + 100.0)
    with pytest.raises(InternalError):
        bingham(rehearsal(1), matrix=[[2, 1], [1, 2]], concentration=Fraction(1))


# Acceptance and rounding are decided as the ideal reals decide.


@pytest.mark.parametrize(
    "concentration", [Fraction(1, 10**9), Fraction(1, 10**3), Fraction(10**3), Fraction(10**20)]
)
def test_the_filter_errs_by_less_than_it_says(concentration):
    found = tuned(fmpz_mat(random_gram(4, 9).tolist()), concentration)
    reals = normals(rehearsal(5), 9 * 40)
    signs = np.where(reals.negative, -1.0, 1.0)
    exponents, errors = found.approximate((signs * (reals.whole + reals.fraction.floats())).reshape(40, 9))
    assert np.all(errors / (exponents + 9) < 1e-8)
    with ctx.workprec(2000):
        for row in range(40):
            lower = reals.lower(np.arange(9 * row, 9 * row + 9), 16)
            exact = found.enclose([2 * int(n) + 1 for n in lower])
            assert exact > 0
            assert abs(exact - arb(float(exponents[row]))) < arb(float(errors[row])) / 2


@pytest.fixture
def kept(monkeypatch):
    """What the rounding was given: the envelope, the reals and their places."""
    calls = []
    original = module._rounded

    def keep(*arguments):
        calls.append(arguments)
        return original(*arguments)

    monkeypatch.setattr(module, "_rounded", keep)
    return calls


@pytest.mark.parametrize("concentration", [Fraction(1, 10**9), Fraction(1, 100), Fraction(10**12)])
@pytest.mark.parametrize("bits", [3, 40, 200])
def test_coordinates_are_the_nearest_multiples_to_those_of_many_more_bits(concentration, bits, kept):
    matrix = random_gram(5, 6)
    for seed in range(10):
        vector, _ = bingham(rehearsal(seed), matrix=matrix, concentration=concentration, bits=bits)
        found, reals, where, _ = kept[-1]
        with ctx.workprec(3000):
            centres = [2 * int(n) + 1 for n in reals.lower(where, 16)]
            image = (arb_mat(found.transform.exact) * arb_mat(6, 1, [arb(c, 1) for c in centres])).entries()
            length = sum(y**2 for y in image).sqrt()
            for coordinate, y in zip(vector, image, strict=True):
                assert abs(y / length * arb(2) ** bits - coordinate) < arb(fmpq(1, 2))


@pytest.mark.parametrize("concentration", [Fraction(1, 10**9), Fraction(1, 100), Fraction(10**12)])
def test_balls_and_deeper_bits_decide_as_the_filter_does(concentration, monkeypatch):
    def draw():
        # One batch each: words that a judge draws come after those of all proposals.
        given = {"matrix": random_gram(6, 4), "concentration": concentration, "proposals": 12}
        return [bingham(rehearsal(seed), **given) for seed in range(30)]

    filtered = draw()
    monkeypatch.setattr(module, "MARGIN", 2.0)
    assert draw() == filtered
    judged = []
    below = trials.is_below

    def count(*arguments):
        judged.append(arguments)
        return below(*arguments)

    monkeypatch.setattr(module, "is_below", count)
    monkeypatch.setattr(trials, "DEPTHS", (4, 64))
    monkeypatch.setattr(products, "DEPTHS", (8, 64))
    assert draw() == filtered
    assert len(judged) == 30 * 12


def test_a_proposal_of_which_no_bit_is_set_waits_for_more(monkeypatch):
    def tiny(randomness, count):
        reals = normals(randomness, count)
        reals.whole[:] = 0
        reals.fraction.first[:] = 0
        return reals

    monkeypatch.setattr(module, "normals", tiny)
    vector, _ = bingham(rehearsal(1), matrix=[[1, 0], [0, 1]], concentration=Fraction(1))
    assert abs(np.linalg.norm(np.array(vector, dtype=float)) / 2**40 - 1) < 1e-11


def test_one_dimension_is_a_fair_sign():
    source = rehearsal(7)
    signs = [bingham(source, matrix=[[5]], concentration=Fraction(1), bits=8)[0][0] for _ in range(2000)]
    assert set(signs) == {256, -256}
    assert 1e-7 < stats.binom.cdf(signs.count(256), 2000, 0.5) < 1 - 1e-7


def test_no_concentration_is_the_uniform_law_whatever_the_matrix():
    one = bingham(rehearsal(8), matrix=random_gram(1, 3), concentration=Fraction(0))
    assert one == bingham(rehearsal(8), matrix=random_gram(2, 3), concentration=Fraction(0))


@pytest.mark.parametrize(
    "wrong",
    [
        {"matrix": [[1, 2], [3, 4]]},
        {"matrix": [[1, 2, 3], [2, 4, 5]]},
        {"matrix": []},
        {"matrix": [[1.5, 0], [0, 1]]},
        {"matrix": 3},
        {"concentration": Fraction(-1)},
        {"concentration": 0.5},
        {"concentration": float("nan")},
        {"bits": 0},
        {"proposals": 0},
    ],
)
def test_bad_input_is_refused_without_showing_the_matrix(wrong):
    given = {"matrix": [[12345, 0], [0, 1]], "concentration": Fraction(1)} | wrong
    with pytest.raises(ParameterError) as refused:
        bingham(rehearsal(1), **given)
    assert "12345" not in str(refused.value)


# Fixed work.


def test_fixed_work_draws_the_same_words_on_neighbouring_matrices():
    gram, row = random_gram(9, 5), np.array([4000, -3000, 0, 1, 2], dtype=object)
    counts = set()
    for matrix in (gram, gram + np.outer(row, row), np.zeros((5, 5), dtype=object)):
        source = Counted(10)
        bingham(source, matrix=matrix, concentration=Fraction(1, 10**4), proposals=50)
        counts.add(source.count)
    assert len(counts) == 1
    free = Counted(10)
    bingham(free, matrix=gram, concentration=Fraction(1, 10**4))
    assert free.count < counts.pop()


def test_fixed_work_evaluates_every_proposal_and_keeps_the_first_accepted(monkeypatch, kept):
    evaluated = []
    original = envelope.Envelope.approximate

    def count(self, points):
        evaluated.append(len(points))
        return original(self, points)

    monkeypatch.setattr(envelope.Envelope, "approximate", count)
    verdicts = np.zeros(50, dtype=bool)
    verdicts[[17, 30]] = True
    bingham(rehearsal(1), matrix=random_gram(1, 3), concentration=Fraction(1, 100), proposals=50)
    monkeypatch.setattr(module, "_accepted", lambda *_: verdicts)
    bingham(rehearsal(1), matrix=random_gram(1, 3), concentration=Fraction(1, 100), proposals=50)
    assert evaluated == [50]
    assert kept[-1][2].tolist() == [51, 52, 53]


def test_fixed_work_that_accepts_nothing_says_so_and_gives_the_last_proposal(monkeypatch, kept):
    monkeypatch.setattr(module, "_accepted", lambda *_: np.zeros(7, dtype=bool))
    _, accepted = bingham(rehearsal(1), matrix=random_gram(1, 3), concentration=Fraction(1, 100), proposals=7)
    assert not accepted
    assert kept[-1][2].tolist() == [18, 19, 20]


def acceptance(weights, draws=40_000):
    """The mean of exp((q-v)/2)·(v/q)^(q/2) over v = Σz²/Σwz², and its standard error."""
    squares = np.random.default_rng(1).normal(size=(draws, len(weights))) ** 2
    q, v = len(weights), squares.sum(axis=1) / (squares @ weights)
    chances = np.exp((q - v + q * np.log(v / q)) / 2)
    return chances.mean(), chances.std() / np.sqrt(draws)


@pytest.mark.parametrize("q", [2, 3, 5, 20, 60])
def test_no_spectrum_is_accepted_less_often_than_the_floor(q):
    generator = np.random.default_rng(q)
    spectra = [
        np.eye(q)[0],
        np.full(q, 1 / q),
        np.arange(1, q + 1) ** -2.0,
        np.array([1.0, 1.0] + [0] * (q - 2)),
    ]
    spectra += [generator.dirichlet(np.full(q, 0.2)) for _ in range(3)]
    for weights in spectra:
        mean, error = acceptance(weights / weights.sum())
        assert mean + 5 * error > acceptance_floor(q)
    # The floor is off by a factor of about four at the worst spectrum met, one large eigenvalue.
    mean, error = acceptance(np.eye(q)[0])
    assert mean - 5 * error < 5 * acceptance_floor(q)


@pytest.mark.parametrize("q", [2, 10, 40])
def test_the_envelopes_used_accept_more_often_than_the_floor(q):
    for concentration in (Fraction(1, 10**10), Fraction(1, 10**5), Fraction(1)):
        found = tuned(fmpz_mat(random_gram(q, q).tolist()), concentration)
        exponents, _ = found.approximate(np.random.default_rng(1).normal(size=(20_000, q)))
        assert exponents.min() > -1e-6
        assert np.exp(-exponents).mean() > acceptance_floor(q)


@pytest.mark.parametrize("failure", [Fraction(1, 2), Fraction(1, 10**6), Fraction(1, 10**30)])
@pytest.mark.parametrize("q", [1, 2, 7, 50])
def test_so_many_proposals_are_needed_and_no_fewer(q, failure):
    needed, rejected = proposals_needed(q, failure), 1 - acceptance_floor(q)
    assert rejected**needed <= failure
    assert needed == 1 or rejected ** (needed - 1) > failure


def test_the_numbers_of_the_proof_give_one_fifth():
    with ctx.workprec(200):
        a = arb(fmpq(154, 1000))
        share = (a / (a + 2)) ** (a / 2)
        assert share > 1 - 1 / (2 * arb(1).exp())
        eta = 1 / (4 * arb(2).sqrt())
        lost = (1 - arb(fmpq(1, 32))) * (-arb(fmpq(1, 32)) / (1 - eta) ** 2).exp()
        assert a * share * arb.pi().sqrt() * lost > arb(fmpq(1, 5))


@pytest.mark.parametrize("weights", [[1.0], [0.5, 0.5], [0.8, 0.2], [0.6] + [0.04] * 10, [0.02] * 50])
def test_the_steps_of_the_proof_hold_for_simulated_forms(weights):
    squares = np.random.default_rng(2).normal(size=(200_000, len(weights))) ** 2
    sizes = squares @ np.array(weights)
    assert np.mean(sizes > 1) > 1 / (2 * np.e)
    radii = np.linspace(0.2, 2, 10)
    logs = np.log([np.mean(sizes <= r**2) + 1e-9 for r in radii])
    slopes = np.diff(logs) / np.diff(np.log(radii))
    assert np.all(np.diff(slopes[3:]) < 0.1)  # the distribution function is log-concave in ln r


def test_the_floor_is_at_most_one_over_five_roots():
    for q in range(2, 200):
        assert acceptance_floor(q) ** 2 * 25 * q <= 1
        assert acceptance_floor(q) ** 2 * 25 * q > 1 - Fraction(1, 1000)
    assert acceptance_floor(1) == 1


@pytest.mark.parametrize("wrong", [Fraction(0), Fraction(1), Fraction(-1, 2)])
def test_an_impossible_failure_probability_or_dimension_is_refused(wrong):
    with pytest.raises(ParameterError, match="failure"):
        proposals_needed(3, wrong)
    with pytest.raises(ParameterError, match="dimension"):
        acceptance_floor(0)


# The chain.


@pytest.fixture(scope="module")
def drawn():
    """A chain, and what each of its draws was given."""
    calls, original = [], chain.bingham
    gram = random_gram(11, 8)

    def keep(randomness, **given):
        calls.append(given)
        return original(randomness, **given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chain, "bingham", keep)
        exponents = [Fraction(i + 1, 10**7) for i in range(7)]
        basis = exact_chain(rehearsal(12), upper=triangle(gram), dimension=8, exponents=exponents, rank=8)
    return gram, exponents, basis, calls


def fractions(matrix, bits):
    return [[Fraction(int(x), 2**bits) for x in row] for row in matrix.table()]


def dot(one, two):
    return sum(a * b for a, b in zip(one, two, strict=True))


def test_the_excess_bounds_how_far_rows_are_from_orthonormal(drawn):
    _, _, basis, _ = drawn
    for i in range(8):
        rows = fractions(complement_of(basis.vectors[:i], dimension=8, bits=40), 50)
        bound = max(sum(abs(dot(one, two) - (one is two)) for two in rows) for one in rows)
        assert bound == excess(complement_of(basis.vectors[:i], dimension=8, bits=40), bits=50)
        assert bound < Fraction(1, 10**13)
    rows = [[Fraction(x, 2**40) for x in vector] for vector in basis.vectors]
    assert basis.excess == max(sum(abs(dot(one, two) - (one is two)) for two in rows) for one in rows)
    assert basis.excess < Fraction(1, 10**10)


def test_vectors_are_orthonormal_canonical_and_together_span_the_space(drawn):
    _, _, basis, _ = drawn
    floats = basis.floats()
    assert np.abs(floats @ floats.T - np.eye(8)).max() < 1e-11
    assert all(next(x for x in vector if x) > 0 for vector in basis.vectors)


def test_every_draw_sees_the_exact_projection_and_the_reduced_coefficient(drawn):
    gram, exponents, basis, calls = drawn
    assert len(calls) == 7
    for i, given in enumerate(calls):
        complement = complement_of(basis.vectors[:i], dimension=8, bits=40)
        rows = np.array([[int(x) for x in row] for row in complement.table()], dtype=object)
        assert given["matrix"] == fmpz_mat((rows @ gram @ rows.T).tolist())
        assert given["concentration"] * 4**50 * (1 + excess(complement, bits=50)) == exponents[i]


def test_one_person_moves_the_exponent_by_no_more_than_the_claim(drawn):
    _, exponents, basis, calls = drawn
    generator = np.random.default_rng(13)
    for i, given in enumerate(calls):
        complement = complement_of(basis.vectors[:i], dimension=8, bits=40)
        rows = np.array([[int(x) for x in row] for row in complement.table()], dtype=object)
        closest = Fraction(0)
        for _ in range(20):
            u = generator.integers(-1000, 1000, 8 - i).astype(object)
            worst = u @ rows  # the row that moves this u most, and a few others
            for x in (
                worst,
                worst + generator.integers(-9, 9, 8),
                generator.integers(-9, 9, 8).astype(object),
            ):
                moved = given["concentration"] * Fraction((u @ rows @ x) ** 2)
                claim = exponents[i] * (x @ x) * (u @ u)
                assert moved <= claim
                closest = max(closest, moved / claim)
        assert closest > 1 - Fraction(1, 10**10)


def test_a_coefficient_that_is_not_reduced_breaks_the_claim_for_a_longer_basis():
    rows = np.array([[2**50 + 2**30, 0, 0], [0, 2**50 - 2**30, 0]], dtype=object)
    u, x = np.array([1, 0], dtype=object), np.array([1, 0, 0], dtype=object)
    moved = Fraction((u @ rows @ x) ** 2, 4**50)
    assert moved > 1
    assert moved / (1 + excess(fmpz_mat(rows.tolist()), bits=50)) <= 1


def test_quotients_are_exact_and_one_person_moves_them_by_no_more_than_the_excess_says(drawn):
    gram, _, basis, _ = drawn
    upper = triangle(gram)
    quotients = basis.rayleigh_quotients(upper)
    for vector, quotient in zip(basis.vectors, quotients, strict=True):
        theta = [Fraction(x, 2**40) for x in vector]
        image = [dot([int(g) for g in row], theta) for row in gram]
        assert Fraction(quotient, 4**40) == dot(theta, image)
    generator = np.random.default_rng(14)
    for row in [*generator.integers(-(2**12), 2**12, (20, 8)), *basis.vectors]:
        row = np.array([int(x) for x in row], dtype=object)
        moved = basis.rayleigh_quotients(triangle(gram + np.outer(row, row)))
        total = sum(abs(a - b) for a, b in zip(moved, quotients, strict=True))
        assert Fraction(total, 4**40) <= (1 + basis.excess) * (row @ row)
        assert Fraction(total, 4**40) >= (1 - basis.excess) * (
            row @ row
        )  # a full basis keeps the whole of it


def test_strong_signal_finds_the_eigenvectors():
    gram = random_gram(15, 6)
    exponents = [Fraction(1)] * 6
    basis = exact_chain(rehearsal(16), upper=triangle(gram), dimension=6, exponents=exponents, rank=3)
    values, vectors = np.linalg.eigh(gram.astype(float))
    assert len(basis.vectors) == 3
    assert np.abs(np.abs(np.diag(basis.floats() @ vectors[:, ::-1][:, :3])) - 1).max() < 1e-6
    quotients = np.array(basis.rayleigh_quotients(triangle(gram)), dtype=float) / 4.0**40
    assert np.allclose(quotients, values[::-1][:3], rtol=1e-6)


def test_the_last_vector_costs_no_word():
    short, full = Counted(17), Counted(17)
    given = {"upper": triangle(random_gram(17, 3)), "dimension": 3, "exponents": [Fraction(1, 10**6)] * 2}
    two = exact_chain(short, rank=2, **given)
    three = exact_chain(full, rank=3, **given)
    assert short.count == full.count
    assert three.vectors[:2] == two.vectors
    lone = exact_chain(Counted(1), upper=[7], dimension=1, exponents=[], rank=1)
    assert lone.vectors == ((2**40,),)
    assert lone.excess == 0


def test_a_chain_of_fixed_work_draws_the_same_words_for_two_tables():
    counts = set()
    for seed in (18, 19):
        source = Counted(20)
        exact_chain(
            source,
            upper=triangle(random_gram(seed, 4)),
            dimension=4,
            exponents=[Fraction(1, 10**6)] * 3,
            rank=4,
            proposals=40,
        )
        counts.add(source.count)
    assert len(counts) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"rank": 0},
        {"rank": 4},
        {"exponents": [Fraction(1)]},
        {"exponents": [Fraction(1), Fraction(-1)]},
        {"exponents": [0.5, 0.5]},
        {"upper": [1, 2, 3]},
    ],
)
def test_a_chain_with_bad_parameters_is_refused_before_a_word_is_drawn(wrong):
    given = {"upper": [1] * 6, "dimension": 3, "exponents": [Fraction(1)] * 2, "rank": 3} | wrong
    source = Counted(1)
    with pytest.raises(ParameterError):
        exact_chain(source, **given)
    assert source.count == 0


def test_a_step_after_subtracting_what_was_released_moves_by_the_claim_exactly():
    gram, row, k = random_gram(21, 3), np.array([3, -1, 2], dtype=object), 40
    released = exact_chain(
        rehearsal(22), upper=triangle(gram), dimension=3, exponents=[Fraction(1, 10**6)], rank=1
    ).vectors[0]
    taken = 12345 * np.outer(np.array(released, dtype=object), np.array(released, dtype=object))
    one, two = 4**k * gram - taken, 4**k * (gram + np.outer(row, row)) - taken
    vector, accepted = bingham(rehearsal(23), matrix=one, concentration=Fraction(1, 10**6 * 4**k))
    assert accepted
    u = np.array(vector, dtype=object)
    moved = Fraction(u @ two @ u - u @ one @ u, 4**k)
    assert moved == (u @ row) ** 2 <= (u @ u) * (row @ row)


def test_a_basis_is_frozen_and_knows_its_excess():
    basis = ExactBasis.of([(3, 0), (1, 4)], bits=2)
    assert basis.excess == Fraction(10, 16)
    with pytest.raises(AttributeError):
        basis.bits = 3
