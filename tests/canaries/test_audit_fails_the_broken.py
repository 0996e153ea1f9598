"""Every mechanism and pipeline broken on purpose is failed by the audit, each within seconds.

Streams are seeded, so these tests do not change from run to run; the sample sizes are those at which at least 20 of
20 other streams were caught too, with room (docs/explain/auditing.md has the figures). The slow ones use the
kernel's bits. CPU time of this file: about 30 s.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import broken_mechanisms as broken
import broken_pipelines as pipelines
import pytest

import privcov as pc
from privcov.audit import audit, replay, schema_of
from privcov.audit import strata as audited_strata
from privcov.audit.distinguish import tell_apart
from privcov.audit.settings import first_vector
from privcov.frame import counting
from privcov.mechanisms import MECHANISMS
from privcov.mechanisms.eigenvectors import Eigenvectors
from privcov.mechanisms.gaussian import Gaussian
from privcov.mechanisms.laplace import Laplace
from privcov.mechanisms.symmetric_wishart import SymmetricWishart
from privcov.noise.randomness import kernel, rehearsal
from privcov.privacy import Neighbours

ROOT = Path(__file__).parents[2]
TELLING = pc.PureDP(epsilon=3, neighbours="replace-one")
PURE = pc.PureDP(epsilon=1, neighbours="replace-one")
RHO = pc.ZCDP(rho="0.125", neighbours="replace-one")
FLOATS = {"arithmetic": "idealized"}  # a third of the time; a fault of calibration is the same in both
APPROX = pc.ApproxDP(epsilon=1, delta="1e-6", neighbours="replace-one")


def stream(start=0):
    """Randomness for each batch of draws, a new seed every time."""
    seeds = itertools.count(start)
    return lambda: rehearsal(next(seeds))


def judged(mechanism, loss, dimension, runs, levels):
    return audit(
        mechanism, loss=loss, dimension=dimension, runs=runs, levels=levels, processes=1, source=stream()
    )


def levels_that_failed(report):
    return {finding.level[:2] for finding in report.failures}


@pytest.mark.parametrize("d", [2, 4])
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.long
def test_the_withdrawn_wishart_mechanism_fails(d, neighbours):
    loss = pc.PureDP(epsilon=1, neighbours=neighbours)
    report = judged(broken.WithdrawnWishart(), loss, d, 600, (2,))
    assert not report.passed
    assert any("support" in finding.what for finding in report.failures)


@pytest.mark.parametrize(
    ("mechanism", "loss", "d", "runs"),
    [
        pytest.param(broken.HalfLaplace(**FLOATS), TELLING, 2, 6000, id="half-laplace"),
        pytest.param(broken.HalfSymmetricWishart(**FLOATS), TELLING, 2, 4000, id="half-symmetric-wishart"),
        pytest.param(broken.HalfGaussian(**FLOATS), RHO, 3, 2000, id="half-gaussian"),
        pytest.param(broken.HalfGaussian(**FLOATS), APPROX, 3, 6000, id="half-gaussian-approximate"),
        pytest.param(broken.AddRemoveGaussian(**FLOATS), RHO, 3, 8000, id="gaussian-by-root-two"),
    ],
)
@pytest.mark.long
def test_noise_calibrated_too_small_fails_although_its_own_law_agrees(mechanism, loss, d, runs):
    report = judged(mechanism, loss, d, runs, (1, 2))
    assert levels_that_failed(report) == {"L2"}


@pytest.mark.parametrize(
    ("mechanism", "loss", "d", "runs"),
    [
        pytest.param(broken.SettledLaplace(**FLOATS), TELLING, 1, 2000, id="laplace"),
        pytest.param(broken.SettledFrobenius(**FLOATS), TELLING, 1, 2000, id="frobenius"),
        pytest.param(broken.SettledSymmetricWishart(**FLOATS), TELLING, 1, 2000, id="symmetric-wishart"),
        pytest.param(broken.SettledGaussian(**FLOATS), RHO, 1, 6000, id="gaussian"),
    ],
)
@pytest.mark.long
def test_strata_whose_noise_forgets_that_a_person_may_move_fail(mechanism, loss, d, runs):
    """Where a single number is released a person who moves spends twice what one spends who stays."""
    facts = {"loss": loss, "dimension": d, "runs": runs, "processes": 1, "source": stream(), "strata": True}
    report = audit(mechanism, **facts)
    assert levels_that_failed(report) == {"L2"}
    assert any("who moves" in finding.what for finding in report.failures)
    honest = type(mechanism).__bases__[0](**FLOATS)
    assert audit(honest, **facts).passed


@pytest.mark.parametrize(
    ("mechanism", "loss", "runs"),
    [
        pytest.param(SymmetricWishart(**FLOATS), replace(PURE, neighbours="add-remove"), 3000, id="pure"),
        pytest.param(Gaussian(**FLOATS), RHO, 6000, id="gaussian", marks=pytest.mark.slow),
    ],
)
@pytest.mark.long
def test_a_total_beside_strata_that_is_not_paid_for_fails(mechanism, loss, runs, monkeypatch):
    """Strata have all of the loss, and the total as much again. Paid for, the same passes."""
    facts = {"loss": loss, "dimension": 1, "runs": runs, "processes": 1, "strata": True}
    assert audit(mechanism, source=stream(), **facts).passed
    monkeypatch.setattr(audited_strata, "shared_with_total", lambda loss, mechanism, share: (loss, loss))
    report = audit(mechanism, source=stream(), **facts)
    assert levels_that_failed(report) == {"L2"}


@pytest.mark.parametrize(
    ("mechanism", "loss", "runs"),
    [
        pytest.param(broken.LightFrobenius(**FLOATS), TELLING, 4000, id="frobenius"),
        pytest.param(broken.LightGaussian(**FLOATS), RHO, 2000, id="gaussian"),
    ],
)
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.long
def test_noise_for_rows_of_an_average_weight_fails(mechanism, loss, runs, neighbours):
    loss = replace(loss, neighbours=Neighbours(neighbours))
    facts = {"loss": loss, "runs": runs, "processes": 1, "source": stream(), "weights": True}
    report = audit(mechanism, **facts)
    assert levels_that_failed(report) == {"L2"}
    assert any("largest weight" in finding.what for finding in report.failures)
    honest = type(mechanism).__bases__[0](**FLOATS)
    assert audit(honest, **facts).passed


def test_weights_that_are_measured_by_the_table_fail():
    facts = {"loss": RHO, "runs": 200, "levels": (0,), "weights": True}
    assert levels_that_failed(audit("gaussian", pipeline=pipelines.weights_by_the_table, **facts)) == {"L0"}
    assert audit("gaussian", **facts).passed


def rounds_without_noise(monkeypatch):
    monkeypatch.setattr(counting.Look, "draw", lambda look, loss, randomness: [0] * look.cells)


def rounds_with_half_of_the_noise(monkeypatch):
    honest = counting.Look.draw
    halved = lambda look, loss, randomness: [value // 2 for value in honest(look, loss, randomness)]  # noqa: E731
    monkeypatch.setattr(counting.Look, "draw", halved)


def rows_that_are_not_shortened(monkeypatch):
    monkeypatch.setattr("privcov.summing.bounding.Clip.of", classmethod(lambda *_: None))
    monkeypatch.setattr("privcov.summing.bounding._none_above", lambda *_: True)


@pytest.mark.parametrize(
    ("plant", "loss", "runs"),
    [
        pytest.param(rounds_without_noise, RHO, 400, id="no noise"),
        pytest.param(rows_that_are_not_shortened, RHO, 400, id="no clip"),
        pytest.param(rounds_without_noise, PURE, 400, id="no noise, pure", marks=pytest.mark.long),
        pytest.param(rows_that_are_not_shortened, PURE, 400, id="no clip, pure", marks=pytest.mark.long),
        pytest.param(rounds_with_half_of_the_noise, 16 * RHO, 5000, id="half", marks=pytest.mark.slow),
    ],
)
def test_a_frame_whose_rounds_or_rows_are_not_what_was_paid_for_fails(plant, loss, runs, monkeypatch):
    """Whole releases are told apart, by the rounds and the matrix together."""
    name = "gaussian" if isinstance(loss, pc.ZCDP) else "laplace"
    facts = {"loss": loss, "dimension": 2, "runs": runs, "processes": 1, "frame": True, **FLOATS}
    assert audit(name, source=stream(), **facts).passed
    plant(monkeypatch)
    assert levels_that_failed(audit(name, source=stream(), **facts)) == {"L2"}


@pytest.mark.parametrize(
    "words", [{"strata": True}, {"weights": True}, {"dimension": 1}, {"mechanism": "eigenvectors"}]
)
def test_a_frame_is_audited_alone_and_where_there_can_be_one(words):
    facts = {"mechanism": "laplace", "loss": PURE, "runs": 200, "processes": 1, "frame": True}
    with pytest.raises(pc.PrivcovError, match=r"E285 strata|E209 an audit behind|E218 a private frame needs"):
        audit(**facts | words)


@pytest.mark.parametrize("words", [{"strata": True}, {"dimension": 2}])
def test_weights_are_audited_without_strata_and_beside_a_column(words):
    with pytest.raises(pc.PrivcovError, match=r"E285 strata|E209 an audit of weighted"):
        audit("gaussian", loss=RHO, weights=True, **words)


@pytest.mark.long
def test_sound_mechanisms_pass_where_those_fail():
    """The same sizes and streams: it is the fault that is seen, and not the size."""
    assert judged(Laplace(**FLOATS), TELLING, 2, 6000, (1, 2)).passed
    assert judged(Gaussian(**FLOATS), RHO, 3, 8000, (1, 2)).passed


def test_noise_made_symmetric_by_averaging_fails():
    assert levels_that_failed(judged(broken.AveragedLaplace(), PURE, 4, 1500, (1,))) == {"L1"}


def test_noise_on_a_coarser_grid_than_the_data_fails_by_its_low_bits():
    report = judged(broken.CoarseLaplace(), PURE, 2, 600, (2,))
    assert any("trailing zeros" in finding.detail for finding in report.failures)


def test_noise_that_is_not_on_the_grid_fails():
    report = judged(broken.FloatLaplace(), PURE, 2, 200, (2,))
    assert any("on the grid" in finding.what for finding in report.failures)


@pytest.mark.long
def test_halved_noise_of_one_part_fails_though_the_whole_hides_it():
    assert levels_that_failed(judged(broken.HalfValues(), PURE, 2, 4000, (1,))) == {"L1"}


@pytest.mark.parametrize("factor", [2, 4])
@pytest.mark.long
def test_an_eigenvector_exponent_too_large_is_not_the_law_of_the_proof(factor):
    """Factor 4 is exp(2ε·uᵀCu), factor 2 twice the tight exponent."""
    report = judged(broken.with_exponent(factor), PURE, 2, 5000, (1,))
    assert any("vector" in finding.what for finding in report.failures)


def vector_bound(mechanism, loss, d, runs, processes=1):
    """A lower bound on ε from the first vector alone, with one row beside; wrong with probability 1e-3."""
    setting = first_vector(mechanism, loss, d, source=stream() if processes == 1 else kernel)
    pair = setting.pairs[1]
    sides = setting.sampler.both_sides([pair], runs, processes=processes, progress=None)
    seen = (setting.seen(sides[0][0]), setting.seen(sides[0][1]))
    return tell_apart(pair, seen, setting.claims, error=1e-3).bounds[0].least


@pytest.mark.long
def test_an_eigenvector_exponent_of_twice_epsilon_tells_tables_apart_beyond_the_claim():
    assert vector_bound(broken.with_exponent(4), PURE, 2, 2500) > 1


@pytest.mark.parametrize("d", range(2, 11))
@pytest.mark.long
def test_the_inverted_bingham_acceptance_fails_at_every_dimension(d):
    report = judged(broken.with_acceptance(broken.inverted), PURE, d, 2000, (1,))
    assert any("vector" in finding.what for finding in report.failures)


def test_a_sampler_that_always_accepts_fails():
    """It does not exceed ε on any pair we know; only goodness of fit sees it."""
    report = judged(broken.with_acceptance(broken.always), PURE, 3, 6000, (1,))
    assert any("vector" in finding.what for finding in report.failures)


def test_the_right_acceptance_rule_in_the_same_harness_passes():
    """The canaries fail for their rule of acceptance and not for the code around it."""

    def right(forms, dimension):
        return (dimension - forms) - broken.inverted(forms, dimension)

    for d in (2, 10):
        assert judged(broken.with_acceptance(right), PURE, d, 2000, (1,)).passed


@pytest.mark.parametrize(
    "pipeline",
    [
        pipelines.without_clipping,
        pipelines.bounds_from_data,
        pipelines.standardised,
        pipelines.gaps_dropped,
        pipelines.telling_error,
        pipelines.telling_note,
    ],
    ids=lambda pipeline: pipeline.__name__,
)
def test_a_pipeline_that_looks_where_it_should_not_fails_the_replay(pipeline):
    report = audit("laplace", loss=PURE, pipeline=pipeline, levels=(0,))
    assert not report.passed
    assert report.failures[0].level == "L0 replay"


def test_a_seeded_generator_fails_in_one_process_and_an_inherited_one_after_a_fork():
    seeded = audit("laplace", loss=PURE, pipeline=pipelines.seeded, levels=(3,), fresh=False)
    assert "one process" in seeded.failures[0].what
    inherited = audit("laplace", loss=PURE, pipeline=pipelines.inherited, levels=(3,), fresh=False)
    assert ["forked" in finding.what for finding in inherited.failures] == [True]
    hidden = audit(broken.SeededLaplace(), loss=PURE, runs=400, levels=(2, 3), fresh=False)
    assert levels_that_failed(hidden) == {"L2", "L3"}


def test_the_real_pipeline_passes_the_replay_under_both_relations():
    for neighbours in ("replace-one", "add-remove"):
        for d in (1, 2, 5):
            loss = replace(PURE, neighbours=neighbours)
            seen = replay(pc.release, schema=schema_of(d), loss=loss)
            assert seen.violation is None
            assert seen.pairs == (546 if neighbours == "replace-one" else 84)


def test_nothing_in_the_package_reaches_what_is_broken():
    """No file of the package names a canary, and importing all of it from elsewhere does not load one."""
    for path in (ROOT / "src").rglob("*.py"):
        text = path.read_text()
        assert "broken_" not in text, path.name
        assert "canaries" not in text, path.name
    code = (
        "import importlib, pkgutil, sys, privcov\n"
        "[importlib.import_module(m.name) for m in pkgutil.walk_packages(privcov.__path__, 'privcov.')"
        " if '__main__' not in m.name]\n"
        "assert not [m for m in sys.modules if 'broken' in m], sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT.anchor)
    known = {type(mechanism) for mechanism in (broken.HalfLaplace(), broken.WithdrawnWishart())}
    assert not known & set(MECHANISMS.values())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "loss", "d", "runs"),
    [
        pytest.param(broken.AddRemoveLaplace(), TELLING, 2, 40_000, id="laplace"),
        pytest.param(broken.AddRemoveSymmetricWishart(), TELLING, 2, 200_000, id="symmetric-wishart"),
    ],
)
def test_a_sensitivity_wrong_by_root_two_fails(mechanism, loss, d, runs):
    """Laplace: 10 of 10 other streams at half these runs. Wishart: bounds of 3.3 to 3.5 seen; 190 s of CPU time."""
    assert not audit(mechanism, loss=loss, dimension=d, runs=runs, levels=(2,)).passed


@pytest.mark.slow
def test_twice_the_tight_exponent_tells_tables_apart_beyond_the_claim():
    loss = pc.PureDP(epsilon=4, neighbours="replace-one")
    assert vector_bound(broken.with_exponent(2), loss, 2, 60_000, processes=2) > 4
    assert vector_bound(Eigenvectors(), loss, 2, 60_000, processes=2) <= 4
