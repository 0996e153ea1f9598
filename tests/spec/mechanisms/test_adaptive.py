"""Adaptive: what its parts cost, what guides its choices, and that it is worth it where rows are short.

The ordering of errors averages fixed rehearsals; its margins are several times the spread between seeds.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

import privcov as pc
from privcov.accounting import gaussian_delta
from privcov.frame.choice import NormChoice
from privcov.mechanisms import adaptive, find
from privcov.mechanisms.adaptive import Adaptive, Parts, PrivateTrace
from privcov.mechanisms.gaussian import Gaussian
from privcov.mechanisms.separate import Separate
from privcov.noise.randomness import kernel, rehearsal
from privcov.schema.grid import Grid
from privcov.summing.gram import Gram
from privcov.verification.consistency import disagreements

ADD = pc.ApproxDP(epsilon=1, delta="1e-6", neighbours="add-remove")
EIGHTH = Fraction(1, 8)


def zcdp(rho, neighbours="replace-one"):
    return pc.ZCDP(rho=rho, neighbours=neighbours)


def schema_of(d, **words):
    columns = {f"c{i}": {"lower": -1, "upper": 1} for i in range(d)}
    return pc.Schema.from_dict({"columns": columns, "intercept": False, "row_norm_bound": 1, **words})


@cache
def heavy_table(n=5000, d=20):
    """Rows of norm 0.03 mostly, up to 1 for a few: Pareto of index 2.5, so tr/n is 0.004 of R²."""
    rng = np.random.default_rng(1)
    norms = np.minimum(1, 0.03 * (1 + rng.pareto(2.5, size=n)))
    rows = rng.normal(size=(n, d)) / np.sqrt(np.arange(1, d + 1))
    return rows / np.linalg.norm(rows, axis=1)[:, None] * norms[:, None]


@pytest.mark.parametrize("walk", [Fraction(0), EIGHTH])
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_the_parts_never_exceed_a_zcdp_loss_and_leave_next_to_nothing(walk, neighbours):
    parts = Parts.of(zcdp("0.3", neighbours), walk=walk, trace=EIGHTH)
    epsilon = parts.walk.epsilon if walk else 0
    total = epsilon**2 / 2 + parts.trace.rho + parts.rest.rho
    assert Fraction(3, 10) * Fraction(999_999, 10**6) <= total <= Fraction(3, 10)


@pytest.mark.parametrize("walk", [Fraction(0), EIGHTH])
def test_the_parts_of_an_approximate_loss_are_within_its_exact_profile(walk):
    """μ² of the two Gaussians together, at the ε that the walk leaves."""
    parts = Parts.of(ADD, walk=walk, trace=EIGHTH)
    epsilon = parts.walk.epsilon if walk else 0
    mu_squared = 2 * (parts.trace.rho + parts.rest.rho)
    mu = Fraction(math.sqrt(mu_squared))
    assert gaussian_delta(mu=mu * (1 - Fraction(1, 10**12)), epsilon=1 - epsilon) <= ADD.delta
    assert gaussian_delta(mu=mu * Fraction(1001, 1000), epsilon=1 - epsilon) > ADD.delta


def test_the_shares_are_those_of_the_paper():
    """ρ/8 for a trace of standard deviation 2/√ρ, ρ/8 for a walk of ε = √ρ/2, 3ρ/4 for the matrix."""
    choice = NormChoice.before(Adaptive(), zcdp("0.36"), word="declared", share="0.1")
    assert choice.trace.rho == Fraction(36, 800)
    assert choice.rest.rho == Fraction(27, 100)
    assert float(choice.price.epsilon) == pytest.approx(0.3, rel=1e-9)
    assert choice.price.epsilon <= Fraction(3, 10)
    grid = Grid.of(schema_of(4))
    trace = PrivateTrace.draw(choice.trace, grid, rehearsal(1))
    assert float(trace.std / grid.squared_norm_bound) == pytest.approx(2 / 0.6)
    margin = replace(trace, noise=0).answer(0, rows=10**6) / grid.squared_norm_bound
    assert margin == pytest.approx(math.sqrt(8 * math.log(8 / 0.1) / 0.36))


def test_gaussian_and_separate_at_rho_are_gaussian_mechanisms_of_its_root():
    """Why ρ can stand for μ²/2 of an (ε, δ) loss: standard deviation over sensitivity is 1/√(2ρ), no less."""
    for mechanism in (Gaussian(), Separate(), Gaussian(constants="published")):
        assert mechanism.as_zcdp(zcdp("0.3")) <= Fraction(3, 10)
        assert float(mechanism.as_zcdp(zcdp("0.3"))) == pytest.approx(0.3)


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_the_trace_has_the_noise_it_claims_and_a_margin(neighbours):
    """Variance within 6 standard errors of 2 000 draws (2e-9); a sensitivity of a half would be found."""
    grid, loss = Grid.of(schema_of(3, max_rows_per_person=3)), zcdp("0.02", neighbours)
    randomness = rehearsal(4)
    noise = np.array([PrivateTrace.draw(loss, grid, randomness).noise for _ in range(2000)], dtype=float)
    squares = (noise / float(grid.squared_norm_bound)) ** 2
    claimed, off = 9 / (2 * 0.02), 6 * squares.std() / math.sqrt(2000)
    assert abs(squares.mean() - claimed) <= off
    assert abs(squares.mean() - claimed / 4) > off
    drawn = [PrivateTrace.draw(loss, grid, randomness).answer(10**18, rows=10**9) for _ in range(200)]
    assert np.mean([int(value) < 10**18 for value in drawn]) < 0.1


def test_a_public_number_of_rows_caps_the_trace_and_a_private_one_does_not():
    grid = Grid.of(schema_of(2))
    for neighbours, capped in (("replace-one", True), ("add-remove", False)):
        trace = PrivateTrace.draw(zcdp("0.5", neighbours), grid, rehearsal(1))
        assert (trace.answer(10**30, rows=5) == 5 * grid.squared_norm_bound) is capped


def test_a_small_trace_takes_separate_and_a_large_one_gaussian():
    grid = Grid.of(schema_of(30))
    for constants in ("tight", "published"):
        small, large = (
            Adaptive(constants=constants).predicted(loss=zcdp("0.5"), grid=grid, trace=trace)
            for trace in (1.0, 1e6)
        )
        assert small["separate"] < small["gaussian"]
        assert large["separate"] > large["gaussian"]


def test_the_published_predictions_are_the_bounds_of_the_code_at_the_paper_s_scales():
    """ω/√ρ for gaussian; 2^1.25·√(tν)/ρ^¼/6 + √2·η/√ρ for separate, which bound simulated noise."""
    d, rho, t, rng = 30, 0.5, 40.0, np.random.default_rng(0)
    made = Adaptive(constants="published").predicted(loss=zcdp(rho), grid=Grid.of(schema_of(d)), trace=t)
    omega, nu, eta = adaptive._frobenius_bound(d), adaptive._operator_bound(d), adaptive._norm_bound(d)
    assert made["gaussian"] == pytest.approx(omega / math.sqrt(rho))
    first = 2**1.25 * math.sqrt(t * nu) / rho**0.25 / 6
    assert made["separate"] == pytest.approx(first + math.sqrt(2 / rho) * eta, rel=1e-6)
    noise = np.triu(rng.normal(size=(400, d, d)))
    noise += np.triu(noise, 1).transpose(0, 2, 1)
    for sizes, bound in (
        (np.linalg.norm(noise, axis=(1, 2)), omega),
        (np.linalg.norm(noise, ord=2, axis=(1, 2)), nu),
        (np.linalg.norm(rng.normal(size=(400, d)), axis=1), eta),
    ):
        assert (sizes > bound).mean() < 0.1


def test_the_prediction_for_separate_is_of_the_right_size():
    """A guide: between half and twice the rehearsed error over spectra flat and steep."""
    from privcov.mechanisms.predicted import simulated_differences

    d, loss = 20, zcdp("0.5")
    grid = Grid.of(schema_of(d))
    for power in (1, 2):
        for trace in (30, 300, 10_000):
            spectrum = np.arange(1, d + 1) ** -float(power)
            spectrum *= trace / spectrum.sum()
            differences = simulated_differences(
                Separate(), loss=loss, grid=grid, spectrum=spectrum, rows=10**6, runs=20, seed=2
            )
            real = math.sqrt(np.mean((differences**2).sum(axis=(1, 2))))
            predicted = Adaptive(release="separate").predicted(loss=loss, grid=grid, trace=trace)["separate"]
            assert 0.5 * real < predicted < 2 * real


@pytest.mark.parametrize(("trace", "taken"), [(2, "separate"), (10**6, "gaussian")])
def test_on_a_gram_matrix_alone_the_trace_decides(trace, taken):
    """The answer is, integer for integer, that of the one taken."""
    grid, loss = Grid.of(schema_of(12)), zcdp("0.5")
    size = round(trace / 12 / grid.unit)
    upper = np.where(np.equal(*np.triu_indices(12)), size, 0).astype(object)
    gram = Gram.of_public(grid, upper, rows=10**7)
    draw, same = (Adaptive().draw(loss=loss, grid=grid, randomness=rehearsal(3)) for _ in range(2))
    assert draw.answer(gram).tolist() == same.draws[taken].answer(gram).tolist()


def test_the_certificate_says_what_was_run_and_follows_from_itself(tmp_path):
    for loss in (zcdp("0.5"), ADD):
        made = pc.release(heavy_table(500, 6), schema=schema_of(6), loss=loss, mechanism="adaptive")
        said = made.certificate
        assert (said.mechanism, said.loss) == ("adaptive", loss)
        assert said.options["row_norm"] == "sparse-vector"
        assert said.options["row_norm_share"] == "0.25"
        assert said.options["release"] in ("gaussian", "separate")
        assert (said.law is None) == (said.options["release"] == "separate")
        assert disagreements(made) == ()
        made.save(tmp_path / f"{loss.kind}.json")
        assert pc.load(tmp_path / f"{loss.kind}.json").certificate.options == said.options


def test_a_certificate_with_less_noise_than_its_rest_needs_is_found_out():
    """Canary: three quarters of ρ are for the matrix, so the noise of all of ρ is too little."""
    made = pc.release(
        heavy_table(500, 6), schema=schema_of(6), loss=zcdp("0.5"), mechanism="adaptive", release="gaussian"
    )
    law = replace(made.certificate.law, scale=made.certificate.law.scale * math.sqrt(0.75))
    assert disagreements(replace(made, certificate=replace(made.certificate, law=law)))


@cache
def error(name, *, runs=12, **words):
    rows, schema = heavy_table(), schema_of(20)
    errors = [
        np.linalg.norm(
            pc.release(
                rows, schema=schema, loss=zcdp("0.5"), mechanism=name, randomness=rehearsal(seed),
                arithmetic="idealized", **words,
            ).second_moment(raw=True, scaled=True)
            - rows.T @ rows
        )
        for seed in range(runs)
    ]  # fmt: skip
    return math.sqrt(np.mean(np.square(errors)))


def test_on_short_rows_with_a_heavy_tail_a_private_radius_wins_and_ours_wins_by_more():
    """The figures of docs/proofs/adaptive.md: the order of the five ways, with room between them."""
    plain, separate = error("gaussian"), error("separate")
    walked = error("adaptive")
    ours = error("separate", row_norm="private")
    assert plain > 2 * separate
    assert separate > 1.1 * walked
    assert walked > 1.3 * ours
    assert error("gaussian", row_norm="private") < plain / 2


def test_as_published_takes_the_paper_s_noise_under_replace_one_alone():
    made = find("adaptive", loss=zcdp("0.5"), as_published=True)
    assert made.constants == "published"
    with pytest.raises(pc.PrivcovError, match="E207"):
        find("adaptive", loss=ADD, as_published=True)
    law = Adaptive(release="gaussian", constants="published").law(
        loss=zcdp("0.5"), grid=Grid.of(schema_of(3))
    )
    assert law.name == "gaussian-triangle"
    assert law.scale == pytest.approx(1 / math.sqrt(0.5))


def test_bad_input_is_refused_from_public_facts():
    with pytest.raises(pc.PrivcovError, match="E203"):
        find("adaptive", loss=pc.PureDP(epsilon=1, neighbours="replace-one"))
    with pytest.raises(pc.PrivcovError, match="E211 adaptive always chooses its row norm privately"):
        pc.release(
            heavy_table(500, 6), schema=schema_of(6), loss=ADD, mechanism="adaptive", row_norm="private"
        )
    with pytest.raises(pc.PrivcovError, match="E211"):
        pc.release(
            heavy_table(500, 6), schema=schema_of(6), loss=ADD, mechanism="gaussian", row_norm="sparse-vector"
        )
    unread = np.full((5, 65), np.nan)
    with pytest.raises(pc.PrivcovError, match="E209 exact adaptive takes at most 64 columns, got 65"):
        pc.release(unread, schema=schema_of(65), loss=ADD, mechanism="adaptive")
    Adaptive(release="gaussian").draw(loss=ADD, grid=Grid.of(schema_of(65)), randomness=kernel())
