"""``auto`` is deterministic, near the best single repair, and not worse than publishing nothing."""

from __future__ import annotations

import dataclasses
import itertools
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import privcov as pc
from privcov.linalg.arrays import Floats
from privcov.noise.laws import GaussianEnsemble, LaplaceTriangle, NoiseLaw, WishartDifference
from privcov.noise.randomness import rehearsal
from privcov.repair import METHODS, Observed, PublicFacts, Usual, repair
from privcov.repair.choose import CANDIDATES, _smallest_on_simplex, weights
from privcov_lab.bench import utility

NUMBERS, MANY = (Usual.within_bounds(tuple(range(1, count))) for count in (14, 31))
SHAPES = {"1/k": 1.0, "1/k²": 2.0, "near rank one": 5.0}
DATA = Path(os.environ.get("PRIVCOV_DATA", Path(__file__).parents[2].parent / "shared" / "data"))


def spectrum(dimension: int, decay: float, total: float) -> Floats:
    values = np.arange(dimension, 0, -1) ** -decay
    return np.asarray(total * values / values.sum())


def errors(truth: Floats, rows: int, law: NoiseLaw, runs: int, *, public: bool = True) -> dict[str, float]:
    """Mean error of every repair on a diagonal truth; the law is rotation-invariant or nearly so."""
    facts = PublicFacts(law=law, rows=rows if public else None, squared_norm_bound=1.0)
    randomness = rehearsal(77)
    noisy = np.stack([np.diag(truth) + law.simulate(randomness) for _ in range(runs)])
    eigenvalues, vectors = np.linalg.eigh(noisy)
    best = np.einsum("bie,i->be", vectors**2, truth)
    rest = np.maximum((truth**2).sum() - (best**2).sum(axis=1), 0.0)
    return {
        name: float(np.sqrt(((method(eigenvalues, facts) - best) ** 2).sum(axis=1) + rest).mean() / rows)
        for name, method in METHODS.items()
    }


def test_the_same_release_is_repaired_the_same_way_twice() -> None:
    law = WishartDifference(dimension=6, scale=5.0)
    matrix = np.diag(spectrum(6, 1.0, 300.0)) + law.simulate(rehearsal(1))
    observed = Observed(matrix=matrix, law=law, rows=800, squared_norm_bound=1.0)
    first = repair(observed)
    repair(
        Observed(matrix=np.eye(3), law=LaplaceTriangle(dimension=3, scale=1.0), rows=9, squared_norm_bound=1)
    )
    np.testing.assert_array_equal(first, repair(observed))


@pytest.mark.long
def test_auto_is_not_worse_than_the_zero_matrix_on_a_grid_of_tables() -> None:
    """The measured worst case is 0.98, where the noise is a hundred times the signal; the bar is 1.05."""
    ratios = {}
    for d, (shape, decay), epsilon in itertools.product((2, 5, 13, 54), SHAPES.items(), (0.01, 0.1, 1.0)):
        law = WishartDifference(dimension=d, scale=1 / epsilon)
        measured = errors(spectrum(d, decay, 0.4 * 500), 500, law, 3)
        ratios[d, shape, epsilon] = measured["auto"] / measured["zero"]
    assert max(ratios.values()) <= 1.05, ratios


@pytest.mark.parametrize("law", [WishartDifference, GaussianEnsemble, LaplaceTriangle])
@pytest.mark.long
def test_auto_is_near_the_best_single_repair(law: type[NoiseLaw]) -> None:
    """Within 10 % on average and 35 % at every point of a grid of 18, ten runs each.

    Over many runs the largest ratio is 1.21, where a single direction is just about to rise above the noise;
    ten runs estimate a ratio there to about 0.06.
    """
    ratios = {}
    for d, (shape, decay), strength in itertools.product((5, 13), SHAPES.items(), (1, 4, 20)):
        noise = law(dimension=d, scale=1.0)
        noise = law(dimension=d, scale=1000 / strength / noise.rms_frobenius)
        measured = errors(spectrum(d, decay, 500), 1000, noise, 10)
        best = min(value for name, value in measured.items() if name != "auto")
        ratios[d, shape, strength] = measured["auto"] / best
    assert np.mean(list(ratios.values())) <= 1.10, ratios
    assert max(ratios.values()) <= 1.35, ratios


def test_auto_beats_clipping_by_a_third_where_signal_and_noise_are_level() -> None:
    """A regression bar on the figures of docs/explain/repair.md, without the tables: wine-like, ε = 1."""
    measured = errors(spectrum(13, 3.0, 90.0), 178, WishartDifference(dimension=13, scale=1.0), 12)
    assert measured["auto"] <= 0.66 * measured["clip"]
    assert measured["auto"] <= 0.50 * measured["zero"]


def test_a_clear_spike_over_a_flat_rest_is_not_blurred() -> None:
    truth = np.full(13, 0.3 / 12 * 20_000)
    truth[-1] = 0.7 * 20_000
    measured = errors(truth, 50_000, WishartDifference(dimension=13, scale=3.0), 10)
    assert measured["auto"] <= 1.25 * min(value for name, value in measured.items() if name != "auto")


def test_auto_needs_no_public_count() -> None:
    strong = errors(spectrum(5, 2.0, 400), 1000, WishartDifference(dimension=5, scale=1.0), 8, public=False)
    assert strong["auto"] <= 1.05 * min(value for name, value in strong.items() if name != "auto")


def test_auto_turns_from_flat_to_shrinkage_as_the_noise_falls() -> None:
    truth = spectrum(20, 1.0, 10_000.0)
    chosen = []
    for scale in (3000.0, 1.0):
        law = WishartDifference(dimension=20, scale=scale)
        facts = PublicFacts(law=law, rows=20_000, squared_norm_bound=1.0)
        released = np.linalg.eigvalsh(np.diag(truth) + law.simulate(rehearsal(2)))
        chosen.append(weights(np.asarray(released, dtype=np.float64), facts))
    drowned, clear = chosen
    assert set(drowned) == set(CANDIDATES)
    assert drowned["isotropic"] > 0.9
    assert clear["isotropic"] < 0.01
    assert clear["shrink"] + clear["believed"] > 0.5


@pytest.mark.parametrize("noisy", [-50.0, 0.0, 30.0, 400.0])
def test_in_one_dimension_auto_is_the_believed_trace(noisy: float) -> None:
    law = WishartDifference(dimension=1, scale=5.0)
    observed = Observed(matrix=np.array([[noisy]]), law=law, rows=100, squared_norm_bound=1.0)
    assert repair(observed)[0, 0] == pytest.approx(observed.facts.believed_trace(np.array([noisy])), rel=1e-9)
    assert 0 <= repair(observed)[0, 0] <= 100


@pytest.mark.parametrize("seed", range(5))
def test_the_weights_minimise_the_quadratic_on_the_simplex(seed: int) -> None:
    """Against a grid of step 1/40 on the simplex of three."""
    root = rehearsal(seed).normals(3, 3)
    quadratic = root @ root.T + 0.01 * np.eye(3)
    got = _smallest_on_simplex(quadratic)
    assert got.min() >= 0
    assert got.sum() == pytest.approx(1.0)
    grid = [(i / 40, j / 40, 1 - (i + j) / 40) for i in range(41) for j in range(41 - i)]
    least = min(float(np.array(a) @ quadratic @ np.array(a)) for a in grid)
    assert got @ quadratic @ got <= least + 1e-9


def test_the_bench_skips_a_missing_table_and_says_why(tmp_path: Path) -> None:
    result = utility.run(tmp_path)
    assert result["results"] == []
    assert {item["dataset"] for item in result["skipped"]} == {"wine", "airfoil", "adult"}
    assert "skipped wine: there is no wine.csv in" in utility.render(result)


def test_the_bench_measures_a_table_it_finds(papers_data: Path) -> None:
    steps: list[int] = []
    result = utility.run(
        papers_data, epsilons=(1.0,), runs=2, datasets=("airfoil",), step=lambda: steps.append(1)
    )
    (line,) = result["results"]
    assert steps == [1]
    assert line["oracle"] <= line["single"][line["best_single"]] <= line["zero"]
    assert line["ratio_to_best"] == pytest.approx(line["auto"] / min(line["single"].values()))
    assert "airfoil" in utility.render(result)


@pytest.mark.long
@pytest.mark.skipif(not (DATA / "wine.csv").is_file(), reason=f"no tables in {DATA}; set PRIVCOV_DATA")
def test_the_papers_tables_are_repaired_as_well_as_promised() -> None:
    """Ten runs have a standard error of about 5 %: bars at 1.1 times the targets, which hold for 50 runs."""
    result = utility.run(DATA, epsilons=(0.1, 1.0, 4.0), runs=10, datasets=("wine", "airfoil"))
    for line in result["results"]:
        assert line["auto"] <= 1.1 * line["target"], line
        assert line["ratio_to_best"] <= 1.2, line
        assert line["ratio_to_zero"] <= 1.1, line


@pytest.mark.skipif(
    not (DATA / "adult_onehot108.npz").is_file(), reason=f"no tables in {DATA}; set PRIVCOV_DATA"
)
def test_a_table_of_108_columns_is_repaired_as_well_as_promised() -> None:
    result = utility.run(DATA, epsilons=(0.1, 1.0), runs=3, datasets=("adult",))
    for line in result["results"]:
        assert line["auto"] <= 1.03 * line["target"], line
        assert line["ratio_to_best"] <= 1.1, line


def small_table(rows: int) -> tuple[pc.Schema, Floats]:
    """Thirteen bell-shaped columns of two factors, within bounds at three deviations, in scaled units."""
    rng = np.random.default_rng(5)
    found = rng.normal(size=(rows, 2)) @ rng.normal(size=(2, 13)) + rng.normal(size=(rows, 13))
    scaled = np.clip(found / found.std(axis=0) / 3, -1, 1)
    return pc.Schema.from_dict({"columns": {f"c{i}": {"lower": -1, "upper": 1} for i in range(13)}}), scaled


def covariance_error(release: pc.Release, table: Floats, repair: str = "auto") -> float:
    miss = release.covariance(scaled=True, repair=repair) - np.cov(table.T)
    return float(np.sqrt(np.mean(miss**2)))


def errors_over_the_guess(epsilon: str, runs: int) -> Floats:
    schema, table = small_table(178)
    guess = float(np.sqrt(np.mean((np.eye(13) / 3 - np.cov(table.T)) ** 2)))
    loss = pc.PureDP(epsilon=epsilon, neighbours="replace-one")
    made = [covariance_error(pc.release(table, schema=schema, loss=loss), table) for _ in range(runs)]
    return np.array(made) / guess


def test_a_drowned_covariance_is_hardly_worse_than_the_guess_of_the_bounds() -> None:
    """A root mean square of four exceeds 1.1 in less than 1 of 1,000 batches; without the guess this one is 1.51."""
    assert np.sqrt(np.mean(errors_over_the_guess("0.1", 4) ** 2)) < 1.1


@pytest.mark.parametrize("chance", ["all products", "one pair"])
def test_in_drowning_noise_nothing_is_believed_that_stands_out_by_chance(chance: str) -> None:
    """Noise of 4 where a product is at most 1: 1.6 times as far as usual, or one pair 12 deviations away."""
    law = WishartDifference(dimension=14, scale=4 * 178 / np.sqrt(28))
    exact = 178 * np.diag([1.0, *[1 / 3] * 13])
    noise = law.simulate(rehearsal(4)) * (1.6 if chance == "all products" else 1.0)
    if chance == "one pair":
        noise[1, 2] = noise[2, 1] = 12 * np.sqrt(law.offdiagonal_variance)
    observed = Observed(
        matrix=exact + noise,
        law=law,
        rows=178,
        squared_norm_bound=14.0,
        usual=NUMBERS,
    )
    moved = {
        "plain": repair(dataclasses.replace(observed, usual=None)),
        "auto": repair(observed),
    }
    means = {name: made[0] / made[0, 0] for name, made in moved.items()}
    between = {
        name: made[1:, 1:] / made[0, 0] - np.outer(means[name][1:], means[name][1:])
        for name, made in moved.items()
    }
    away = {name: float(np.abs(part - np.diag(np.diag(part))).max()) for name, part in between.items()}
    assert away["plain"] > 0.1
    assert away["auto"] < 0.1 * away["plain"]


@pytest.mark.long
@pytest.mark.parametrize("epsilon", ["0.1", "0.2", "1"])
def test_covariances_of_a_small_table_are_not_worse_than_the_guess_of_the_bounds(epsilon: str) -> None:
    """Seen over 200 releases: 1.005, 0.999 and 0.80 at ε = 0.1, 0.2 and 1, root mean squares over the guess's error.

    That of 60 has a standard deviation of 0.003, 0.005 and 0.02, and exceeds 1.05 in less than 1 of 1,000 runs. It
    finds a repair that does not lean to the guess (1.57, 1.61, 0.80), and one that believes what stands out by
    chance (1.08 at ε = 0.2).
    """
    assert np.sqrt(np.mean(errors_over_the_guess(epsilon, 60) ** 2)) < 1.05


def test_where_noise_is_small_the_guess_of_the_bounds_changes_nothing() -> None:
    schema, table = small_table(20_000)
    loss = pc.ApproxDP(epsilon=8, delta="1e-6", neighbours="replace-one")
    release = pc.release(table, schema=schema, loss=loss)
    observed = release.second_moment(raw=True, scaled=True)
    law = release.certificate.law
    assert law is not None
    plain = Observed(
        matrix=observed, law=law, rows=20_000, squared_norm_bound=14.0, structure=release.structure
    )
    np.testing.assert_allclose(
        repair(plain), release.second_moment(scaled=True), rtol=0, atol=1e-3 * law.scale
    )


@pytest.mark.parametrize("seed", range(4))
def test_a_clear_correlation_of_few_columns_is_left_alone(seed: int) -> None:
    """What a repair takes from noise is a small mean, which must not drown in what a strong signal adds to it."""
    law = WishartDifference(dimension=5, scale=5.0)
    exact = 5000 * np.diag([1.0, *[1 / 3] * 4])
    exact[1, 2] = exact[2, 1] = 0.9 * 5000 / 3
    noisy = exact + law.simulate(rehearsal(seed))
    plain = Observed(matrix=noisy, law=law, rows=5000, squared_norm_bound=5.0)
    told = repair(dataclasses.replace(plain, usual=Usual.within_bounds((1, 2, 3, 4))))
    np.testing.assert_allclose(told[1, 2], repair(plain)[1, 2], rtol=0.02)


def test_one_pair_that_stands_clear_of_the_noise_refutes_the_guess() -> None:
    """Eight deviations on one of 435 products, which the sum of squares of all of them does not show."""
    law = GaussianEnsemble(dimension=31, scale=10.0)
    matrix = 900 * np.diag([1.0, *[1 / 3] * 30]) + law.simulate(rehearsal(3))
    leaning = repair(
        Observed(
            matrix=matrix,
            law=law,
            rows=900,
            squared_norm_bound=31.0,
            usual=MANY,
        )
    )
    assert abs(leaning[1, 2] - leaning[0, 1] * leaning[0, 2] / leaning[0, 0]) < 0.1
    matrix[1, 2] += 8 * np.sqrt(law.offdiagonal_variance)
    matrix[2, 1] = matrix[1, 2]
    plain = Observed(matrix=matrix, law=law, rows=900, squared_norm_bound=31.0)
    told = dataclasses.replace(plain, usual=MANY)
    np.testing.assert_allclose(repair(told), repair(plain), atol=0.05 * np.sqrt(law.offdiagonal_variance))


@pytest.mark.parametrize("weighted", [False, True])
def test_no_number_varies_more_than_its_bounds_allow(weighted):
    """Weights of a drowned stratum within [0, 5] had a deviation of 5.3; halves at both bounds have most."""
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.integers(0, 2, 300), rng.uniform(0, 10, 300), rng.uniform(0.5, 5, 300)])
    columns = {"half": {"lower": 0, "upper": 1}, "even": {"lower": 0, "upper": 10}}
    words = {"weight": "w", "largest_weight": 5} if weighted else {"ignore_extra": True}
    schema = pc.Schema.from_dict({"columns": columns, "missing": "none", **words})
    most = np.array([0.5, 5.0, 2.5][: 2 + weighted])
    for seed in range(10):
        for epsilon in ("0.1", "1", "5"):
            loss = pc.PureDP(epsilon=epsilon, neighbours="replace-one")
            frame = pd.DataFrame(rows, columns=["half", "even", "w"])
            release = pc.release(
                frame, schema=schema, loss=loss, randomness=rehearsal(seed), arithmetic="idealized"
            )
            count = release.count()
            spread = np.sqrt(np.diag(release.covariance()) * max(1.0, count - 1) / count)
            assert (spread <= most * (1 + 1e-9)).all(), spread
            repaired = release.second_moment(scaled=True)
            assert np.linalg.eigvalsh(repaired).min() > -1e-9 * np.trace(repaired)
