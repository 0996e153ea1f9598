"""PCA from a release: right when exact, cautious when noisy."""

from __future__ import annotations

import dataclasses
import math
import re

import numpy as np
import pytest
from scipy.stats import binom

import privcov as pc
from privcov.models.pca import principal_angles
from privcov.models.spectrum import Rehearsals
from privcov.noise.laws import GaussianEnsemble, WishartDifference
from privcov.noise.randomness import rehearsal
from privcov.report.page import html

TINY = 1e-9
NAMES = "abcdef"


def schema_of(names=NAMES, **words):
    columns = {name: {"lower": 2.0, "upper": 6.0 + 2 * i} for i, name in enumerate(names)}
    return pc.Schema.from_dict({"columns": columns, **words})


def table(schema, scaled):
    """Original columns with these scaled values."""
    features = [feature for feature in schema.features if feature.kind == "numeric"]
    return {f.name: f.middle + f.half_width * scaled[:, i] for i, f in enumerate(features)}


def planted(rank, rows, size, seed=1):
    """Scaled rows in [-1, 1] that lie in ``rank`` directions about an offset."""
    rng = np.random.default_rng(seed)
    frame = np.linalg.qr(rng.normal(size=(size, size)))[0][:, :rank]
    scores = rng.uniform(-1, 1, (rows, rank)) * np.linspace(1, 0.7, rank) if rank else np.zeros((rows, 0))
    return 0.7 * scores @ frame.T + rng.uniform(-0.25, 0.25, size)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(4)
    return np.clip(rng.normal(0, 0.3, (800, 6)) @ np.diag([1, 0.8, 0.6, 0.5, 0.3, 0.2]) + 0.1, -1, 1)


@pytest.fixture(scope="module")
def release(make, rows):
    schema = schema_of()
    return make(schema, table(schema, rows), law=GaussianEnsemble(dimension=7, scale=TINY))


@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize("centred", [True, False])
def test_an_exact_release_gives_the_components_of_the_rows(release, rows, scaled, centred):
    original = np.stack(list(table(release.schema, rows).values()), axis=1)
    given = rows if scaled else original
    truth = np.cov(given.T) if centred else given.T @ given / len(given)
    values, vectors = np.linalg.eigh(truth)
    fit = pc.pca(release, rank=6, centred=centred, scaled=scaled)
    assert np.allclose(fit.explained_variance, values[::-1], rtol=1e-8, atol=1e-10)
    assert np.abs(np.abs(fit.components @ vectors[:, ::-1]) - np.eye(6)).max() < 1e-7
    assert fit.explained_share.sum() == pytest.approx(1)
    assert (fit.components[range(6), np.abs(fit.components).argmax(axis=1)] > 0).all()


@pytest.mark.parametrize("scaled", [True, False])
def test_transform_and_back_is_the_identity_at_full_rank(release, rows, scaled):
    original = np.stack(list(table(release.schema, rows).values()), axis=1)
    fit = pc.pca(release, rank=6, scaled=scaled)
    scores = fit.transform(original)
    assert np.allclose(fit.inverse_transform(scores), original, atol=1e-9)
    assert np.allclose(np.cov(scores.T), np.diag(fit.explained_variance), atol=1e-8 * fit.total_variance)
    assert np.allclose(scores.mean(axis=0), 0, atol=1e-8)
    assert np.array_equal(fit.transform(table(release.schema, rows)), scores)
    two = pc.pca(release, rank=2, scaled=scaled)
    assert np.allclose(two.transform(two.inverse_transform(scores[:5, :2])), scores[:5, :2], atol=1e-9)


def test_captured_variance_and_angles(release):
    fit = pc.pca(release, rank=3)
    assert fit.captured_variance(fit.components) == pytest.approx(fit.explained_share.sum())
    assert fit.captured_variance(7 * fit.components[:1]) == pytest.approx(fit.explained_share[0])
    assert fit.captured_variance(np.eye(6)) == pytest.approx(1)
    turned = np.array([[3.0, 1, 0], [0, 2, 0], [1, 1, 5]]) @ fit.components
    assert np.abs(principal_angles(fit.components, turned)).max() < 1e-7
    one = [math.cos(0.3), math.sin(0.3)]
    assert principal_angles([[1.0, 0.0]], [one]) == pytest.approx([0.3])


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_the_rank_planted_is_found(make, rank):
    schema = schema_of()
    law, randomness = WishartDifference(dimension=7, scale=3.0), rehearsal(9)
    columns = table(schema, planted(rank, 4000, 6))
    found = [pc.pca(make(schema, columns, noise=law.simulate(randomness), law=law)).rank for _ in range(8)]
    assert np.median(found) == rank
    assert found.count(rank) >= 6


@pytest.mark.parametrize("centred", [True, pytest.param(False, marks=pytest.mark.long)])
def test_pure_noise_passes_for_a_component_in_about_one_release_in_twenty(make, centred):
    """200 releases of rows that are all alike: a rate of 5 % gives 2 to 22 alarms but for 1 in 500, both sides."""
    schema = schema_of()
    law, randomness = GaussianEnsemble(dimension=7, scale=5.0), rehearsal(10)
    columns = table(schema, np.full((4000, 6), 0.5 if centred else 0.0))
    found = np.array(
        [
            pc.pca(
                make(schema, columns, noise=law.simulate(randomness), law=law), centred=centred, repair="clip"
            ).rank
            for _ in range(200)
        ]
    )
    assert binom.cdf(1, 200, 0.05) + binom.sf(22, 200, 0.05) < 0.002
    assert found.max() <= 1
    assert 2 <= (found > 0).sum() <= 22


@pytest.mark.parametrize(
    ("scaled", "neighbours"), [(True, "replace-one"), (False, "replace-one"), (True, "add-remove")]
)
def test_intervals_hold_every_component_together_at_least_as_often_as_they_say(
    make, rows, scaled, neighbours
):
    """80 releases, level 0.9: true intervals fail together more than 16 times with probability 0.003.

    They are Weyl's and conservative; what keeps them from being empty is checked beside it.
    """
    schema = schema_of()
    columns = table(schema, rows)
    given = rows if scaled else np.stack(list(columns.values()), axis=1)
    truth = np.linalg.eigvalsh(np.cov(given.T))[::-1]
    law, randomness = GaussianEnsemble(dimension=7, scale=6.0), rehearsal(11)
    failures, nearest = 0, math.inf
    for _ in range(80):
        noisy = make(schema, columns, noise=law.simulate(randomness), law=law, neighbours=neighbours)
        low, high = pc.pca(noisy, rank=6, scaled=scaled, repair="clip").intervals(0.9, together=True).T
        failures += not ((low <= truth) & (truth <= high)).all()
        nearest = min(nearest, *(np.minimum(truth - low, high - truth) / (high - low)))
    assert binom.sf(16, 80, 0.1) < 0.003
    assert failures <= 16
    assert nearest < 0.2  # the truth comes near an end now and then: not absurdly wide


def spiked(rng, rows):
    """Two directions that stand out, and four that are alike."""
    frame = np.linalg.qr(np.random.default_rng(8).normal(size=(6, 6)))[0]
    spread = np.array([0.30, 0.20, 0.08, 0.08, 0.08, 0.08])
    return np.clip(rng.normal(size=(rows, 6)) * spread @ frame.T + 0.1, -1, 1)


def fits(make, count, *, rows=6000, scale=1.0, **words):
    """PCA of fresh tables from one population, each with fresh noise."""
    schema, rng = schema_of(), np.random.default_rng(21)
    law, randomness = WishartDifference(dimension=7, scale=scale), rehearsal(12)
    for _ in range(count):
        scaled = spiked(rng, rows)
        noisy = make(schema, table(schema, scaled), noise=law.simulate(randomness), law=law)
        yield scaled, pc.pca(noisy, rank=6, repair="clip", **words)


def inside(ends, truth):
    return ends[0] - 1e-9 <= truth <= ends[1] + 1e-9


@pytest.mark.long
@pytest.mark.parametrize("correlation", [False, True])
def test_intervals_for_the_table_and_for_the_population_hold_as_often_as_they_say(make, correlation):
    """60 tables, level 0.9, each component that stands out and those alike as one: some 180 intervals of each kind.

    Intervals that hold in 90 % of cases fail so rarely or so often in 1 of 500, on each side. Weyl's never fail; those
    for the table, taken for the population's, fail twice as often as they should.
    """
    statistic = np.corrcoef if correlation else np.cov
    population = np.linalg.eigvalsh(statistic(spiked(np.random.default_rng(22), 400_000).T))[::-1]
    failures = {"table": 0, "population": 0, "confused": 0}
    parts = 0
    for scaled, fit in fits(make, 60, correlation=correlation):
        truth = np.linalg.eigvalsh(statistic(scaled.T))[::-1]
        for one in fit.directions(0.9):
            if len(one.components) == 6:
                continue
            here = slice(one.components.start, one.components.stop)
            failures["table"] += not inside(one.table, truth[here].sum())
            failures["population"] += not inside(one.population, population[here].sum())
            failures["confused"] += not inside(one.table, population[here].sum())
            parts += 1
    assert parts >= 150
    for what in ("table", "population"):
        assert binom.cdf(failures[what], parts, 0.1) > 0.002, failures
        assert binom.sf(failures[what] - 1, parts, 0.1) > 0.002, failures
    assert correlation or failures["confused"] > 1.5 * failures["table"], failures


@pytest.mark.parametrize(("values", "doubt"), [((9.0, 1.0, 0.1), 0.4), ((3.0, 2.0, 1.0), 0.1)])
def test_intervals_hold_as_often_as_they_say_where_scales_are_in_doubt(values, doubt):
    """100 worlds, 300 intervals of 95 %, noise, sampling and scales drawn anew: as many fail in 1 of 1,000 tests.

    With no word of the scales more than a fifth fails, which the same limit sees.
    """
    source = np.random.default_rng(5)
    basis = np.linalg.qr(source.normal(size=(3, 3)))[0]
    truth, persons, count = basis * np.array(values) @ basis.T, 400, 5_000.0
    failures = {"doubted": 0, "trusted": 0}
    for _ in range(100):
        square = source.normal(0, 60, (401, 3, 3))
        noise = np.zeros((401, 4, 4))
        noise[:, 1:, 1:] = (square + square.transpose(0, 2, 1)) / np.sqrt(2)
        rows = source.normal(size=(persons, 3)) @ np.linalg.cholesky(truth).T
        scales = np.exp(source.normal(0, doubt, (401, 3)))
        own = rows.T @ rows / persons + noise[0, 1:, 1:] / count
        made = Rehearsals(
            matrix=scales[0][:, None] * own * scales[0],
            count=count,
            persons=persons,
            noise=noise[1:],
            centred=False,
            correlation=False,
            sampled=True,
            scales=scales[1:],
        )
        for name, one in (("doubted", made), ("trusted", dataclasses.replace(made, scales=None))):
            failures[name] += sum(
                not inside(ends, true) for ends, true in zip(one.intervals(0.95), values, strict=True)
            )
    assert binom.sf(failures["doubted"] - 1, 300, 0.05) > 0.001, failures
    assert failures["trusted"] > 60, failures


@pytest.mark.long
@pytest.mark.parametrize("correlation", [False, True])
def test_no_interval_for_the_population_ends_before_that_for_the_table(correlation):
    """Noise beside which sampling is little: both are simulated, and half of them stood in the wrong order."""
    source = np.random.default_rng(4)
    rows = np.clip(source.normal(size=(20_000, 4)) @ np.diag([0.4, 0.3, 0.25, 0.2]), -1, 1)
    schema = pc.Schema.from_dict({"columns": {f"x{i}": {"lower": -1, "upper": 1} for i in range(4)}})
    loss = pc.PureDP(epsilon="0.3", neighbours="replace-one")
    for seed in range(4):
        made = pc.release(rows, schema=schema, loss=loss, randomness=rehearsal(seed))
        fit = pc.pca(made, rank=4, correlation=correlation)
        pairs = [(one.table, one.population) for one in fit.directions()]
        pairs += zip(fit.intervals(), fit.population_intervals(), strict=True)
        for (least, most), (low, high) in pairs:
            assert low <= least <= most <= high


def test_a_span_of_everything_has_no_loadings_to_print():
    """It was a table of 1.00 ± 0.00 for every column, below a variance of five digits that may be zero."""
    columns = {f"x{i}": {"lower": -1, "upper": 1} for i in range(4)}
    rows = np.random.default_rng(4).uniform(-1, 1, (200, 4))
    loss = pc.PureDP(epsilon="0.1", neighbours="replace-one")
    made = pc.release(
        rows, schema=pc.Schema.from_dict({"columns": columns}), loss=loss, randomness=rehearsal(1)
    )
    fit = pc.pca(made, rank=2)
    assert [len(one.components) for one in fit.directions()] == [4]
    text = str(fit)
    assert "± 0.00" not in text
    assert "No component can be told apart from another: nothing is known of directions" in text
    variance = next(line.split()[3] for line in text.splitlines() if line.startswith("PC1 to PC4"))
    assert len(variance.replace(".", "").strip("0")) <= 2
    assert "nothing is known of directions" in html(made, components=2)


def test_loadings_of_components_that_stand_out_have_intervals_and_those_alike_have_none(make):
    """40 tables, level 0.9, 12 loadings each, which share their errors: 80 independent ones are taken as the number.

    A rate of 10 % gives at most 18 % of failures but for 1 in 100, and at least 3 % but for 1 in 50.
    """
    true = np.linalg.eigh(np.cov(spiked(np.random.default_rng(22), 400_000).T))[1].T[::-1]
    missed, asked = 0, 0
    for _, fit in fits(make, 40):
        ends = fit.loading_intervals(0.9)
        assert np.isnan(ends[2:]).sum() >= 3 * 12
        for component, (low, high), direction in zip(
            fit.components, ends.transpose(0, 2, 1), true, strict=True
        ):
            if np.isnan(low).any():
                continue
            signed = direction * np.sign(direction @ component)
            missed += int(((signed < low) | (signed > high)).sum())
            asked += 6
            assert (low <= component).all()
            assert (component <= high).all()
    assert asked >= 420
    assert 0.03 <= missed / asked <= 0.18


@pytest.mark.parametrize("repair", ["auto", "isotropic"])
def test_what_is_printed_of_a_variance_is_within_its_own_interval(repair):
    """Repair draws variances towards a guess, `isotropic` to the guess itself; intervals are around the raw ones."""
    source = np.random.default_rng(5)
    rows = 0.15 * source.normal(size=(5_000, 3)) @ source.normal(size=(3, 20))
    rows += 0.25 * source.normal(size=rows.shape) + source.uniform(-0.4, 0.4, 20)
    schema = pc.Schema.from_dict({"columns": {f"c{i}": {"lower": -1, "upper": 1} for i in range(20)}})
    loss = pc.ApproxDP(epsilon=1, delta="1e-6", neighbours="add-remove")
    told = pc.pca(pc.release(np.clip(rows, -1, 1), schema=schema, loss=loss), repair=repair).directions()
    assert len(told) >= 2
    assert all(one.table[0] <= one.variance <= one.table[1] for one in told)
    assert 0.5 < sum(one.share for one in told) <= 1 + 1e-9


def test_intervals_of_components_that_cannot_be_told_apart_fall_as_they_do(make):
    """A smaller eigenvalue whose interval began above that of a larger one was covered too seldom."""
    for _, fit in fits(make, 10):
        for ends in (fit.intervals(), fit.population_intervals()):
            for one in fit.directions():
                here = ends[one.components.start : one.components.stop]
                assert (np.diff(here, axis=0) <= 0).all()


def eight(rng, rows):
    """Four variances that fall, and four that are alike behind them."""
    frame = np.linalg.qr(np.random.default_rng(3).normal(size=(8, 8)))[0]
    spread = np.array([0.4, 0.35, 0.3, 0.25, 0.2, 0.2, 0.2, 0.2])
    return np.clip(rng.normal(size=(rows, 8)) * spread @ frame.T, -1, 1)


@pytest.mark.long
def test_each_component_of_a_group_is_held_as_often_as_it_says(make):
    """80 tables. Groups take in whatever noise hides, also an eigenvalue that stands apart from others that are alike.

    At coverage 0.95 nine misses of 80 happen 1.8 % of the time for one component; the seeds are fixed. Without worlds
    of two parts, and of eigenvalues far apart, the fifth was missed 12 times.
    """
    schema = pc.Schema.from_dict({"columns": {f"c{i}": {"lower": -1, "upper": 1} for i in range(8)}})
    law, randomness, rng = GaussianEnsemble(dimension=9, scale=16.0), rehearsal(5), np.random.default_rng(5)
    true = np.linalg.eigvalsh(np.cov(eight(np.random.default_rng(6), 400_000).T))[::-1]
    missed, first = np.zeros((2, 8)), []
    for _ in range(80):
        scaled = eight(rng, 2_000)
        fit = pc.pca(
            make(schema, table(schema, scaled), noise=law.simulate(randomness), law=law),
            rank=8,
            repair="clip",
        )
        own = np.linalg.eigvalsh(np.cov(scaled.T))[::-1]
        both = (fit.intervals(), own), (fit.population_intervals(), true)
        held = np.array([[inside(pair, value) for pair, value in zip(*one, strict=True)] for one in both])
        missed += ~held
        first += [held[0, one.components.start] for one in fit.directions() if len(one.components) > 1]
    assert missed.max() <= 9, missed
    assert np.mean(first) > 0.9, np.mean(first)


def test_components_that_cannot_be_told_apart_are_one_line(make):
    """Four equal eigenvalues are told apart somewhere in at most one table in twenty for each of three gaps.

    Five of ten tables then have a probability below 0.01. Without groups every table has six lines.
    """
    names = [[one.name for one in fit.directions()] for _, fit in fits(make, 10)]
    assert names.count(["PC1", "PC2", "PC3 to PC6"]) >= 6
    _, fit = next(fits(make, 1))
    group = fit.directions()[-1]
    assert group.name == "PC3 to PC6"
    assert group.variance == pytest.approx(fit.explained_variance[2:].sum(), rel=0.02)
    assert (group.loadings**2).sum() == pytest.approx(4)
    kept = pc.pca(fit.release, rank=3, repair="clip").directions()[-1]
    assert kept.name == "PC3 to PC6"
    values = fit.to_dict()
    assert [one["components"] for one in values["directions"]] == [[1], [2], [3, 4, 5, 6]]
    assert values["loading_intervals"][2][0] == [None, None]


@pytest.mark.parametrize("rows", [3, 50, 5000])
def test_on_the_scale_of_correlations_bounds_do_not_matter(make, rows):
    rng = np.random.default_rng(3)
    scaled = rng.uniform(-1, 1, (rows, 6)) @ (np.eye(6) + 0.5) / 4
    schema = schema_of()
    exact = make(schema, table(schema, scaled), law=GaussianEnsemble(dimension=7, scale=TINY))
    fit = pc.pca(exact, correlation=True, rank=6, repair="clip")
    values, vectors = np.linalg.eigh(np.corrcoef(scaled.T))
    assert np.allclose(fit.explained_variance, np.maximum(values[::-1], 0), atol=1e-4)
    assert abs(fit.components[0] @ vectors[:, -1]) == pytest.approx(1, abs=1e-4)
    assert fit.units == "correlation"
    original = np.stack(list(table(schema, scaled).values()), axis=1)
    scores = fit.transform(original)
    assert np.allclose(np.cov(scores.T), np.diag(fit.explained_variance), atol=1e-3)
    assert np.allclose(fit.inverse_transform(scores), original, atol=1e-6)


def test_a_column_that_is_all_noise_has_no_correlations(make, rows):
    schema = schema_of()
    moved = rows.copy()
    moved[:, 2] = 0.1
    law = GaussianEnsemble(dimension=7, scale=2.0)
    fit = pc.pca(
        make(schema, table(schema, moved), noise=law.simulate(rehearsal(5)), law=law), correlation=True
    )
    assert "c" in fit.left_out
    assert "c" not in fit.columns
    assert fit.components.shape[1] == len(fit.columns)
    assert fit.to_dict()["left_out"] == list(fit.left_out)


@pytest.mark.parametrize("words", [{"centred": False}, {"scaled": False}])
def test_correlations_are_centred_and_have_no_units(release, words):
    with pytest.raises(pc.PrivcovError, match="E298"):
        pc.pca(release, correlation=True, **words)
    with pytest.raises(pc.PrivcovError, match="E298"):
        pc.pca(release, correlation=True).intervals(together=True)


def test_loadings_without_an_interval_have_two_digits_and_a_warning(release):
    fit = pc.pca(release, centred=False, rank=2)
    text = str(fit)
    assert "components whose intervals" in text
    table = text.split("loading")[1].split("Noise edge")[0]
    assert re.findall(r"-?0\.\d+", table)
    assert all(len(one.split(".")[1]) == 2 for one in re.findall(r"-?[01]\.\d+", table))


def test_a_component_that_noise_may_have_lifted_is_not_said_to_be_more_than_noise():
    """Constant columns: what is above the edge is noise, and was printed as "more than noise"."""
    schema = pc.Schema.from_dict(
        {"missing": "none", "columns": {name: {"lower": -1, "upper": 1} for name in "abc"}}
    )
    order = {"schema": schema, "mechanism": "gaussian", "frame": "declared"}
    order["loss"] = pc.ZCDP(rho="0.1", neighbours="replace-one")
    fits = (
        pc.pca(pc.release(np.zeros((300, 3)), **order, randomness=rehearsal(seed))) for seed in range(200)
    )
    fit = next(fit for fit in fits if fit.rank)
    text, doubt = " ".join(str(fit).split()), "is below twice the edge: noise may have lifted it there"
    assert "which noise alone exceeds in 1 of 20 releases" in text
    assert doubt in text
    assert "more than noise" not in text
    assert doubt not in " ".join(str(pc.pca(fit.release, rank=1)).split())
    rows = np.random.default_rng(1).uniform(-1, 1, (20_000, 3))
    clear = " ".join(str(pc.pca(pc.release(rows, **order, randomness=rehearsal(1)))).split())
    assert "3 raw eigenvalues are above it." in clear
    assert doubt not in clear


def test_programs_get_the_raw_eigenvalues_that_the_rank_was_chosen_by(release):
    fit = pc.pca(release)
    values = fit.to_dict()
    assert values["raw_variance"] == fit.raw_variance.tolist()
    assert sum(one > values["noise_edge"] for one in values["raw_variance"]) == values["rank"]
    assert len(values["raw_variance"]) == len(values["columns"])


def test_moments_about_zero_have_intervals_for_the_table_alone(release):
    fit = pc.pca(release, rank=2, centred=False)
    assert fit.intervals().shape == (2, 2)
    for ask in (fit.population_intervals, fit.loading_intervals):
        with pytest.raises(pc.PrivcovError, match="E299"):
            ask()
    assert fit.to_dict()["population_intervals"] is None


@pytest.mark.long
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_shares_of_levels_say_how_their_variances_scatter(make, neighbours):
    """A column of four levels, one rare: 250 tables, level 0.95. A rate of 5 % gives 4 to 24 failures of a component

    but for 1 in 400, both sides. Taken for normal, the third component fails in a sixth of the tables.
    """
    shares = np.array([0.4, 0.3, 0.2, 0.1])
    schema = pc.Schema.from_dict(
        {"columns": {"x": {"lower": -1, "upper": 1}, "area": {"levels": list("nswe")}}}
    )
    population = np.zeros((5, 5))
    population[0, 0] = 1 / 12
    population[1:, 1:] = np.diag(shares) - np.outer(shares, shares)
    truth = np.linalg.eigvalsh(population)[::-1]
    rng, law, randomness = np.random.default_rng(31), WishartDifference(dimension=6, scale=1.0), rehearsal(14)
    failures = np.zeros(4)
    for _ in range(250):
        columns = {"x": rng.uniform(-0.5, 0.5, 3000), "area": rng.choice(list("nswe"), 3000, p=shares)}
        noisy = make(schema, columns, noise=law.simulate(randomness), law=law, neighbours=neighbours)
        ends = pc.pca(noisy, rank=4, repair="clip").population_intervals()
        failures += (truth[:4] < ends[:, 0]) | (truth[:4] > ends[:, 1])
    assert binom.cdf(3, 250, 0.05) + binom.sf(24, 250, 0.05) < 1 / 400
    assert (failures <= 24).all()


def test_an_interval_is_honest_when_the_noise_drowns_the_count(make, rows):
    schema = schema_of()
    law = GaussianEnsemble(dimension=7, scale=2000.0)
    noisy = make(
        schema, table(schema, rows), noise=law.simulate(rehearsal(1)), law=law, neighbours="add-remove"
    )
    ends = pc.pca(noisy, rank=2, repair="isotropic").intervals()
    assert (ends[:, 0] == 0).all()
    assert np.isinf(ends[:, 1]).all()
    assert pc.pca(noisy, rank=2, repair="isotropic").to_dict()["intervals"][0][1] is None


def test_a_mechanism_without_a_law_gives_points_and_refuses_intervals(make, rows):
    schema = schema_of()
    fit = pc.pca(make(schema, table(schema, rows), law=None))
    assert fit.rank == 6
    assert fit.noise_edge is None
    assert fit.to_dict()["intervals"] is None
    loadings = str(fit).split("loading", 1)[1]
    assert re.search(r" -?\d\.\d\d ", loadings)
    assert not re.search(r"\d\.\d{3}", loadings)  # nobody knows how far they are off
    with pytest.raises(pc.PrivcovError, match=r"E256 .*symmetric-wishart or gaussian"):
        fit.intervals()


@pytest.mark.parametrize("rank", [0, -1, 7, 1.5, True, "2"])
def test_a_rank_that_cannot_be_is_refused(release, rank):
    with pytest.raises(pc.PrivcovError, match="E253") as refusal:
        pc.pca(release, rank=rank)
    assert refusal.value.remedy


def test_without_an_intercept_only_plain_moments_can_be_decomposed(make):
    schema = pc.Schema.from_dict(
        {"intercept": False, "columns": {n: {"lower": -1, "upper": 1} for n in "ab"}}
    )
    columns = {"a": np.linspace(-1, 1, 50), "b": np.linspace(-1, 1, 50) ** 3}
    release = make(schema, columns, law=GaussianEnsemble(dimension=2, scale=TINY))
    with pytest.raises(pc.PrivcovError, match="E255"):
        pc.pca(release)
    stacked = np.stack(list(columns.values()), axis=1)
    fit = pc.pca(release, rank=2, centred=False)
    assert np.allclose(fit.explained_variance, np.linalg.eigvalsh(stacked.T @ stacked / 50)[::-1])
    assert fit.intervals().shape == (2, 2)
    private = make(schema, columns, law=GaussianEnsemble(dimension=2, scale=TINY), neighbours="add-remove")
    with pytest.raises(pc.PrivcovError, match="E255"):
        pc.pca(private, centred=False)


def test_columns_without_variance_are_refused_together(make):
    schema = schema_of()
    columns = table(schema, np.full((50, 6), 0.5))
    with pytest.raises(pc.PrivcovError, match="E254"):
        pc.pca(make(schema, columns, law=GaussianEnsemble(dimension=7, scale=1e-12)))


def test_bad_rows_scores_and_bases_are_refused(release):
    fit = pc.pca(release, rank=2)
    for ask in (
        lambda: fit.transform([[1.0]]),
        lambda: fit.inverse_transform([[1.0]]),
        lambda: fit.captured_variance([[1.0]]),
        lambda: fit.captured_variance([[math.nan] * 6]),
        lambda: principal_angles([[1.0]], [[1.0, 2.0]]),
    ):
        with pytest.raises(pc.PrivcovError, match="E257"):
            ask()


def test_a_rehearsal_is_labelled(rehearsed):
    fit = pc.pca(rehearsed, rank=1)
    assert "REHEARSAL" in repr(fit)
    assert fit.to_dict()["labels"][0].startswith("REHEARSAL")


def heavy(rng, rows):
    """Rows that are seldom far out, and then with all columns together: no law within the bounds scatters more."""
    far = rng.random(rows) < 0.004
    return np.where(far, 0.9, 0.02)[:, None] * rng.choice([-1, 1], (rows, 1)) * [1, 0.6, 0.3] + rng.normal(
        0, [0.03, 0.02, 0.01], (rows, 3)
    )


def heavy_fits(make, count, *, rows, **words):
    schema, rng = schema_of(NAMES[:3]), np.random.default_rng(41)
    law, randomness = GaussianEnsemble(dimension=4, scale=0.01), rehearsal(42)
    for _ in range(count):
        scaled = heavy(rng, rows)
        noisy = make(schema, table(schema, scaled), noise=law.simulate(randomness), law=law)
        yield {
            errors: pc.pca(noisy, rank=3, repair="clip", errors=errors, **words)
            for errors in ("equal", "conservative")
        }


def test_conservative_intervals_hold_where_tails_are_heavy(make):
    """12 tables, the first component. With coverage 0.95 at least 9 hold but for 1 in 400; taken for normal, 3 did."""
    truth = np.linalg.eigvalsh(np.cov(heavy(np.random.default_rng(43), 500_000).T))[-1]
    held = {"equal": 0, "conservative": 0}
    for fits_ in heavy_fits(make, 12, rows=5_000):
        for errors, fit in fits_.items():
            held[errors] += inside(fit.population_intervals()[0], truth)
    assert held["conservative"] >= 9, held
    assert held["equal"] <= 8, held


@pytest.mark.slow
@pytest.mark.parametrize("correlation", [False, True])
def test_conservative_intervals_of_variances_and_loadings_hold_on_many_tables(make, correlation):
    """200 tables of 5,000 rows: with coverage 0.95, 181 hold but for 1 in 500. Taken for normal, some 60 did."""
    large = heavy(np.random.default_rng(43), 4_000_000).T
    values, vectors = np.linalg.eigh(np.corrcoef(large) if correlation else np.cov(large))
    held, loadings = {"equal": 0, "conservative": 0}, 0
    for fits_ in heavy_fits(make, 200, rows=5_000, correlation=correlation):
        for errors, fit in fits_.items():
            one = fit.directions()[0]
            held[errors] += inside(one.population, values[::-1][list(one.components)].sum())
        ends = fits_["conservative"].directions()[0].ends
        direction = vectors[:, -1] * np.sign(vectors[:, -1] @ fits_["conservative"].components[0])
        loadings += len(one.components) > 1 or bool(
            ((ends[:, 0] - 1e-9 <= direction) & (direction <= ends[:, 1] + 1e-9)).all()
        )
    assert held["conservative"] >= 181, held
    assert held["equal"] < 160, held
    assert loadings >= 181, loadings


@pytest.mark.parametrize("words", [{}, {"scaled": False}, {"correlation": True}])
def test_conservative_intervals_hold_those_of_normal_columns_and_say_how_much_wider_they_are(
    make, rows, words
):
    schema, law = schema_of(), GaussianEnsemble(dimension=7, scale=0.1)
    noisy = make(schema, table(schema, rows), noise=law.simulate(rehearsal(3)), law=law)
    plain, wide = (pc.pca(noisy, rank=2, errors=errors, **words) for errors in ("equal", "conservative"))
    np.testing.assert_array_equal(wide.intervals(), plain.intervals())
    (least, most), (low, high) = wide.population_intervals().T, plain.population_intervals().T
    assert (least <= low).all()
    assert (high <= most).all()
    narrow, broad = (str(fit) for fit in (plain, wide))
    assert "Heavy tails scatter more" in narrow
    assert "tails of any weight within the bounds" in broad
    assert "as with normal columns" not in broad
    assert wide.to_dict()["errors"] == "conservative"
    if not words.get("correlation"):  # these are one group, whose variances add up to the number of columns
        assert 'Intervals that hold for any tails (errors "conservative") count' in narrow
        assert min(one["widening"] for one in wide.to_dict()["directions"]) > 1


def test_no_law_within_the_bounds_scatters_more_than_the_conservative_error(make):
    """Two values, as far apart as bounds allow, are the worst: the bound on fourth moments is met, and not passed."""
    schema, rows = schema_of(NAMES[:1]), 40_000
    scaled = np.where(np.arange(rows) % 100 == 0, 1.0, -1.0)[:, None]
    exact = make(schema, table(schema, scaled), law=GaussianEnsemble(dimension=2, scale=1e-6))
    fit = pc.pca(exact, rank=1, repair="clip", errors="conservative")
    (direction,) = fit.directions()
    variance = float(scaled.var())
    error = np.sqrt(((scaled - scaled.mean()) ** 2).var() / rows)  # of a sampled variance, to first order
    stated = direction.widening * variance * np.sqrt(2 / rows)
    assert error <= stated * 1.05  # rehearsed errors are known to a twentieth
    assert stated <= error * 1.05
    low, high = direction.population
    assert high - low >= 3.9 * error


def test_errors_of_another_kind_are_refused(release):
    with pytest.raises(pc.PrivcovError, match="E287"):
        pc.pca(release, errors="none")
