"""The shape of a frame: an exact map of the numeric columns, the noise seen through it, its round, and its file."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import privcov as pc
from privcov.errors import ParameterError, ReleaseError
from privcov.frame.framing import Framing
from privcov.frame.shaping import Sums
from privcov.frame.terms import SHAPES
from privcov.linalg.mixing import Mixing
from privcov.mechanisms import MECHANISMS
from privcov.models.association import partial_correlation
from privcov.models.moments import EntryNoise
from privcov.noise.composed import Congruent
from privcov.noise.laws import GaussianFreeTrace, LaplaceTriangle, joint_gaussian
from privcov.noise.randomness import rehearsal
from privcov.releases import codec
from privcov.releases.release import assembled
from privcov.report.doubts import doubts
from privcov.report.doubts.evidence import Evidence, Form
from privcov.report.page import html
from privcov.report.rounds import budget, told
from privcov.report.standing import standing
from privcov.report.view import View, mean_noise, noise_sizes
from privcov.schema import Schema
from privcov.schema.grid import Grid
from privcov.schema.shape import BITS, Shape
from privcov.summing.bounding import Bounding
from privcov.verification.consistency import disagreements

APPROXIMATE = pc.ApproxDP(epsilon=2, delta="1e-6", neighbours="replace-one")
LOSSES = {
    "pure": pc.PureDP(epsilon=4, neighbours="replace-one"),
    "approximate": APPROXIMATE,
    "zcdp": pc.ZCDP(rho="0.2", neighbours="add-remove"),
}
COLUMNS = {
    "a": {"lower": -100, "upper": 200},
    "g": {"levels": [0, 1]},
    "b": {"lower": -200, "upper": 200, "missing": "indicator"},
    "c": {"lower": -50, "upper": 50},
}
SCHEMA = pc.Schema.from_dict({"columns": COLUMNS})


def twins(rows=20_000, seed=0):
    """Two columns that are nearly the same, one that leans on them, and a group."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=rows)
    b, c = a + 0.1 * rng.normal(size=rows), a + rng.normal(size=rows)
    return np.column_stack([40 + 10 * a, rng.integers(0, 2, rows), 50 + 8 * b, 3 * c])


ROWS = twins()


def shaped(rows=ROWS, schema=SCHEMA, loss=APPROXIMATE, frame="shape", seed=1, **words):
    return pc.release(rows, schema=schema, loss=loss, frame=frame, randomness=rehearsal(seed), **words)


@pytest.fixture(scope="module")
def release():
    return shaped()


def random_shape(columns, seed, longest=40):
    a = np.random.default_rng(seed).normal(size=(columns, columns))
    values, axes = np.linalg.eigh(a @ a.T)
    return Shape.of((axes * np.clip(values, 0.05, 20)) @ axes.T, longest=longest)


def declared_shape(seed=3, bound="6"):
    """A schema with a shape of our own, and scales that let rows be far longer than the bound."""
    columns = tuple(
        replace(column, scale=(column.upper - column.lower) / 40) if hasattr(column, "lower") else column
        for column in SCHEMA.columns
    )
    return replace(SCHEMA, columns=columns, row_norm_bound=bound, shape=random_shape(3, seed))


HOSTILE = np.array(
    [
        [1e300, 0, -1e300, 50],
        [200, 1, 200, 50],
        [-100, 1, -200, -50],
        [math.nan, math.nan, math.nan, math.nan],
        [math.inf, 7, -math.inf, math.inf],
        [5e-324, 0, 0.1, -1e-300],
        [200, 0, math.nan, 50],
    ]
)


# --- the map ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_the_map_is_that_of_fractions_rounded_once(seed):
    schema = replace(declared_shape(seed), row_norm_bound=None)
    grid = Grid.of(schema)
    rows = np.vstack([twins(40, seed), HOSTILE[5:6]])
    scaled = Bounding.of(replace(schema, shape=None), grid).rows(list(rows.T))
    made = Bounding.of(schema, grid).rows(list(rows.T))
    places, one = list(schema.numbers), 2**grid.exponent
    integers = [[int(value) for value in line] for line in schema.shape.integers]
    compared = 0
    for before, after in zip(scaled, made, strict=True):
        cells = [int(value) for value in before[places]]
        if sum(cell**2 for cell in cells) > (schema.shape.longest * one) ** 2:
            continue
        exact = [Fraction(sum(p * q for p, q in zip(row, cells, strict=True)), 2**BITS) for row in integers]
        assert [int(value) for value in after[places]] == [round(value) for value in exact]  # half to even
        others = [place for place in range(grid.dimension) if place not in places]
        assert (before[others] == after[others]).all()
        compared += 1
    assert compared > 30


def test_products_and_partial_sums_stay_below_what_floats_hold():
    """Over the largest shapes that there are: 64 columns, stretched 64 times, at the longest rows."""
    names = [f"x{place}" for place in range(64)]
    bounds = {name: {"lower": 0, "upper": 1, "scale": 1e-4} for name in names}
    for stretch in (np.full(64, 64.0), np.geomspace(1 / 64, 64, 64)):
        axes = np.linalg.qr(np.random.default_rng(1).normal(size=(64, 64)))[0]
        shape = Shape.of((axes * stretch) @ axes.T, longest=128)
        schema = replace(Schema.from_dict({"columns": bounds}), shape=shape, row_norm_bound="3")
        grid = Grid.of(schema)
        most = math.isqrt(int((shape.integers**2).sum(axis=1).max())) + 1
        assert most * shape.longest * 2**grid.exponent < 2**53
        assert (shape.largest_square + 1) * 4**grid.exponent < 2**53


def test_no_row_is_longer_than_the_bound_whatever_it_holds():
    rng = np.random.default_rng(5)
    wild = np.where(rng.random((2000, 4)) < 0.2, rng.normal(size=(2000, 4)) * 1e6, twins(2000))
    for seed in range(3):
        schema = declared_shape(seed)
        rows = Bounding.of(schema).rows(list(np.vstack([HOSTILE, wild]).T))
        squared = [sum(int(value) ** 2 for value in row) for row in rows]
        assert max(squared) <= Grid.of(schema).squared_norm_bound
        assert max(squared) > 0.99 * Grid.of(schema).squared_norm_bound
        assert (rows[:, 0] == rows[0, 0]).all()  # the intercept is spared


def test_rows_become_the_same_integers_in_any_batch_and_memory():
    schema, rows = declared_shape(), np.vstack([HOSTILE, ROWS[:500]])
    bounding = Bounding.of(schema)
    whole = bounding.rows(list(rows.T))
    alone = np.vstack([bounding.rows([np.array([cell]) for cell in row]) for row in rows])
    assert (whole == alone).all()
    assert (bounding.rows(np.ascontiguousarray(rows.T)) == whole).all()
    assert (bounding.rows(np.asfortranarray(rows.T)) == whole).all()
    backwards = bounding.rows(list(rows[::-1].T))[::-1]
    assert (backwards == whole).all()
    steady = replace(schema, file=replace(schema.file, timing="constant"))
    assert (Bounding.of(steady).rows(list(rows.T)) == whole).all()


def test_a_map_that_is_not_quantised_would_depend_on_the_order_of_sums():
    """The canary of the test above: with the float map itself, sums of products are rounded, and orders differ."""
    schema = declared_shape()
    grid = Grid.of(schema)
    cells = Bounding.of(replace(schema, shape=None), grid).rows(list(ROWS[:500].T))[:, list(schema.numbers)]
    exact = schema.shape.matrix + np.pi * 2.0**-30
    orders = [(cells[:, order] * exact[0, order]).cumsum(axis=1)[:, -1] for order in ([0, 1, 2], [2, 1, 0])]
    assert (orders[0] != orders[1]).any()
    whole = [
        (cells[:, order] * schema.shape.integers[0, order]).cumsum(axis=1)[:, -1]
        for order in ([0, 1, 2], [2, 1, 0])
    ]
    assert (whole[0] == whole[1]).all()


def test_a_device_makes_the_same_integers():
    torch = pytest.importorskip("torch", reason="the extra torch is not installed")
    from privcov.linalg.devices import Device
    from privcov.summing.gpu import DeviceSum

    schema, rows = declared_shape(), np.vstack([HOSTILE, ROWS[:500]])
    made = DeviceSum(schema, Grid.of(schema), Device.named("torch")).bounded(torch.from_numpy(rows.T.copy()))
    assert (Bounding.of(schema).rows(list(rows.T)) == made.numpy().T).all()


@pytest.mark.parametrize(
    "words",
    [
        {"upper": (1, 2), "longest": 3},
        {"upper": (1 << 20,), "longest": 3},
        {"upper": (1 << 20, 1 << 20, 1 << 20), "longest": 3},
        {"upper": (1 << 20, 0, -(1 << 20)), "longest": 3},
        {"upper": (1 << 30, 0, 1 << 20), "longest": 3},
        {"upper": (1 << 20, 0, 1 << 20), "longest": 0},
        {"upper": (1 << 20, 0, 1.5), "longest": 3},
        {"upper": (1 << 20, 0, 1 << 20), "longest": True},
    ],
)
def test_what_is_no_shape_is_refused(words):
    with pytest.raises(ParameterError, match="E205"):
        Shape(**words)
    with pytest.raises(ParameterError, match="E205"):
        replace(SCHEMA, shape=random_shape(2, 1))


# --- the law through the frame ------------------------------------------------------------------------


LAWS = {
    "free trace": GaussianFreeTrace(dimension=5, scale=2.0),
    "laplace": LaplaceTriangle(dimension=5, scale=3.0),
    "joint": joint_gaussian("0.700000")(dimension=5, scale=2.0),
}


@pytest.mark.parametrize("name", LAWS)
def test_the_law_through_a_shape_is_that_of_simulated_noise(name):
    """5,000 draws: variances are known to 2 % (normal) or 3 % (Laplace), so 16 % is five of these or more."""
    block = random_shape(3, 7).inverse
    rows = tuple(map(tuple, block.tolist()))
    mixing = Mixing(carried=(0, -1, -1, 3, -1), width=5, blocks=(((1, 2, 4), (1, 2, 4), rows),))
    law = Congruent.of(LAWS[name], mixing)
    source = rehearsal(1)
    draws = law.simulations(source, 5_000)
    seen, stated = draws.var(axis=0), law.entry_variances
    assert (np.abs(seen - stated) <= 0.16 * stated).all()
    assert abs(np.trace(draws, axis1=1, axis2=2).var() / law.trace_variance - 1) < 0.16
    assert abs((draws**2).sum(axis=(1, 2)).mean() / law.rms_frobenius**2 - 1) < 0.16
    places = [0, 4, 3]
    noise = EntryNoise.of(law, places=places, known=[], mixing=np.eye(3))
    vector = np.array([0.3, -1.0, 0.8])
    part = draws[:, places][:, :, places]
    assert np.allclose(
        noise.times(vector), np.cov((part @ vector).T), rtol=0.16, atol=0.05 * noise.times(vector).max()
    )
    square = np.outer(vector, vector)
    assert abs(np.einsum("nij,ij->n", part, square).var() / noise.inner(square, square) - 1) < 0.16
    assert abs(noise.squares(vector[None])[0] / noise.inner(square, square) - 1) < 1e-9
    assert law.reach(0.001) == LAWS[name].reach(0.001)
    assert np.allclose(law.sums_variances, stated[0, 1:])
    assert law.sums_variance == pytest.approx(stated[0, 1:].mean())
    twice = replace(law, scale=2 * law.scale)
    assert np.allclose(twice.entry_variances, 4 * stated)
    assert hash(twice) != hash(law)


def test_noise_sizes_through_a_shape_are_those_of_simulated_noise(release):
    """2,000 draws of noise that is small against the sums: standard deviations within 8 %, five of theirs."""
    moment, count = release.second_moment(scaled=True), release.count()
    sizes = noise_sizes(
        moment, law=release.law, features=release.schema.features, count=count, known=release.structure.fixed
    )
    source, found = rehearsal(2), {"mean": [], "covariance": [], "correlation": []}
    for _ in range(2_000):
        drawn = release.law.simulate(source) * 0.05
        for i, j in release.structure.fixed:
            drawn[i, j] = drawn[j, i] = 0.0
        noisy = moment + drawn
        centred = noisy[1:, 1:] - np.outer(noisy[0, 1:], noisy[0, 1:]) / count
        std = np.sqrt(np.diag(centred))
        found["mean"].append(noisy[0, 1:] / count)
        found["covariance"].append(centred / count)
        found["correlation"].append(centred / np.outer(std, std))
    units = np.array([feature.unit for feature in release.schema.features[1:]])
    scale = {"mean": units, "covariance": np.outer(units, units), "correlation": 1.0}
    for what, values in found.items():
        seen = np.std(values, axis=0) / 0.05 * scale[what]
        stated = getattr(sizes, what)
        clear = stated > 1e-9 * np.max(stated)
        assert (np.abs(seen / np.where(clear, stated, 1.0) - 1)[clear] < 0.08).all()


def test_what_stands_clear_is_judged_by_the_mixed_noise(release):
    """Covariances of a release with other noise in it: 400 draws, so that standard deviations are known to 4 %.

    With the law of the certificate in the place of the one through the map, scores of the twins are off several times.
    """
    scores, raw = View.of(release).scores, release.second_moment(scaled=True, raw=True)
    source, centred = rehearsal(4), []
    for _ in range(400):
        drawn = release.law.simulate(source)
        for i, j in release.structure.fixed:
            drawn[i, j] = drawn[j, i] = 0.0
        noisy = raw + drawn
        centred.append(noisy[1:, 1:] - np.outer(noisy[0, 1:], noisy[0, 1:]) / len(ROWS))
    exact = raw[1:, 1:] - np.outer(raw[0, 1:], raw[0, 1:]) / len(ROWS)
    noisy = scores != 0
    assert noisy[0, 3]  # the twins
    assert scores[noisy] == pytest.approx((exact[noisy] / np.std(centred, axis=0)[noisy]), rel=0.2)
    assert standing(release).clear >= 3


def test_means_and_partial_correlations_know_the_mixed_noise(release):
    """Twelve releases: 48 means of which one or two may lie outside 95 % of their noise, and six once in 10,000."""
    law, count = release.law, release.count()
    units = np.array([feature.unit for feature in release.schema.features[1:]])
    assert mean_noise(release) == pytest.approx(law.reach(0.025) * release._means.stds)
    asked = tuple(one for one in release.certificate.rounds if one.name != "means")
    alone = replace(release, certificate=replace(release.certificate, rounds=asked))
    assert mean_noise(alone) == pytest.approx(
        law.reach(0.025) * np.sqrt(law.entry_variances[0, 1:]) * units / count
    )
    assert alone._means.stds == pytest.approx(np.sqrt(law.entry_variances[0, 1:]) * units / count)
    truth, outside, apart = ROWS.mean(axis=0), 0, []
    for seed in range(12):
        made = shaped(seed=seed)
        means = dict(
            zip(made.columns[1:], zip(made._means.values, made._means.stds, strict=True), strict=True)
        )
        for name, true in (("a", truth[0]), ("g[1]", truth[1]), ("b", truth[2]), ("c", truth[3])):
            outside += abs(means[name][0] - true) > 1.96 * means[name][1]
        apart.append(partial_correlation(made).interval("a", "b"))
    assert outside <= 5
    assert np.median([high - low for low, high in apart]) < 0.02  # by the law of the certificate 0.04
    assert sum(low <= 0.990 <= high for low, high in apart) >= 9


def test_forms_of_doubts_know_the_mixed_noise(release):
    seen = Evidence.of(release)
    source = rehearsal(3)
    draws = release.law.simulations(source, 2_000)
    draws[:, 0, 0] = 0.0
    form = Form({(1, 1): 1.0, (1, 4): -2.0, (4, 4): 1.0, (0, 2): 3.0})
    values = sum(weight * draws[:, i, j] for (i, j), weight in form.entries.items())
    assert abs(values.std() / seen.std(form) - 1) < 0.08
    assert doubts(release) is not None


# --- what a release says -------------------------------------------------------------------------------


def test_with_little_noise_moments_are_those_of_the_declared_columns():
    """A shape that is declared, rows that are not shortened: the way back undoes it, to the rounding of the grid."""
    loss = pc.ZCDP(rho=10**12, neighbours="replace-one")
    mild = Shape.of(np.array([[1.5, -0.6, 0.1], [-0.6, 1.2, 0.2], [0.1, 0.2, 0.8]]), longest=40)
    schema = replace(declared_shape(), row_norm_bound="60", shape=mild)
    made = pc.release(ROWS, schema=schema, loss=loss, mechanism="gaussian", randomness=rehearsal(1))
    plain = pc.release(
        ROWS, schema=replace(schema, shape=None), loss=loss, mechanism="gaussian", randomness=rehearsal(1)
    )
    assert np.allclose(made.second_moment(raw=True), plain.second_moment(raw=True), rtol=1e-4, atol=20)
    assert np.allclose(made.mean(), plain.mean(), rtol=1e-4, atol=1e-3)
    kept = [0, 1, 2, 3, 5]  # nothing is missing, so that its indicator has no correlations
    found = [one.correlation()[np.ix_(kept, kept)] for one in (made, plain)]
    assert np.allclose(*found, atol=1e-3)


@pytest.mark.parametrize("kind", LOSSES)
def test_a_shape_is_nearer_the_truth_where_columns_are_correlated(kind):
    """The slope of a column on its twin: standard errors 5 to 6 times smaller in the median of 20 seeds (1.7 to 11)."""
    errors = {}
    for frame in ("scales", "shape"):
        made = [shaped(loss=LOSSES[kind], frame=frame, seed=seed) for seed in range(4)]
        errors[frame] = np.median([pc.ols(one, "b ~ a + c").bse["a"] for one in made])
    assert errors["shape"] < 0.6 * errors["scales"]


def test_columns_without_correlations_are_not_mixed():
    rng = np.random.default_rng(1)
    made = shaped(np.column_stack([rng.normal(40, 10, 20_000), ROWS[:, 1], *rng.normal(0, 9, (2, 20_000))]))
    assert [one.name for one in made.certificate.rounds][-3:] == ["shape", "radius", "means"]
    assert made.schema.shape is None
    assert disagreements(made) == ()


def test_the_release_says_what_went_into_its_shape(release):
    words = " ".join(told(release))
    assert "the products of 3 numeric columns (10 sums)" in words
    assert "into shape" in budget(release.certificate)
    assert release.certificate.options["frame"] == "shape"
    page = html(release, models=["b ~ a + c"], components=2)
    assert "into shape" in page


def test_everything_downstream_works_through_a_shape(release):
    fit = pc.ols(release, "b ~ a + c + g", method="bootstrap")
    low, high = fit.conf_int()["a"]
    assert low < 0.8 < high
    assert pc.ols(release, "b ~ a", method="score").conf_int()["a"][0] > 0.5
    assert pc.ols(release, "b ~ 0 + a").params["a"] > 0.5
    low, high = pc.ols(release, "b ~ a + c").rsquared_interval()
    assert 0.9 < low < high <= 1
    assert fit.wald_test(["a", "c"]).p_value < 0.05
    assert pc.ols(release, "b ~ a + c + g").compare_f_test(pc.ols(release, "b ~ a + c")).p_value >= 0
    assert pc.pca(release).intervals().shape[1] == 2
    assert np.isfinite(pc.ridge(release, "b", penalty="auto").error_bound())
    for method in ("none", "clip", "shrink", "spiked", "believed"):
        moment = release.second_moment(repair=method, scaled=True)
        assert moment[0, 0] == pytest.approx(len(ROWS))
        assert moment[2, 3] == pytest.approx(0, abs=1e-6)  # the two levels of g
        assert moment[0, 2] == pytest.approx(moment[2, 2])


# --- the round ------------------------------------------------------------------------------------------


def test_sums_are_those_of_the_slow_way_and_the_same_in_pieces(tmp_path):
    asked = Sums(schema=replace(declared_shape(), row_norm_bound=None, shape=None))
    rows = np.vstack([HOSTILE, ROWS[:300]])
    made = asked.rows(asked.bounding, list(rows.T))
    squared = [sum(int(value) ** 2 for value in row) for row in made]
    assert max(squared) <= asked.grid.squared_norm_bound
    assert (
        made == np.vstack([asked.rows(asked.bounding, [np.array([cell]) for cell in row]) for row in rows])
    ).all()
    loss = pc.ZCDP(rho=10**15, neighbours="replace-one")
    whole = [[int(value) for value in row] for row in made]
    exact = [sum(row[i] * row[j] for row in whole) for i in range(4) for j in range(i, 4)]
    from privcov.summing.engines import Local

    for workers in (1, 2):
        one, count = asked.ask(rows, loss=loss, randomness=rehearsal(1), engine=Local(workers=workers))
        assert count == len(rows)
        assert max(abs(x - y) for x, y in zip(one.answers, exact, strict=True)) <= 8 * max(1.0, one.std)


@pytest.mark.parametrize("kind", LOSSES)
def test_rounds_and_matrix_cost_what_was_promised_with_a_shape(kind, tmp_path):
    made = shaped(loss=LOSSES[kind])
    assert disagreements(made) == ()
    assert [one.name for one in made.certificate.rounds][-3:] == ["shape", "radius", "means"]
    free = [one for one in made.certificate.rounds if one.name != "shape"]
    unpaid = replace(made, certificate=replace(made.certificate, rounds=tuple(free)))
    assert disagreements(unpaid) != ()


def test_a_forged_shape_is_found(release, tmp_path):
    shape, rounds = release.schema.shape, release.certificate.rounds
    at = next(place for place, one in enumerate(rounds) if one.name == "shape")

    def with_shape(**changes):
        return replace(release, schema=replace(release.schema, shape=replace(shape, **changes)))

    def with_round(one):
        changed = (*rounds[:at], one, *rounds[at + 1 :])
        return replace(release, certificate=replace(release.certificate, rounds=changed))

    one = rounds[at]
    cheap = pc.ZCDP(rho=one.loss.rho / 2, neighbours="replace-one")
    moved = (shape.upper[0] + 100, *shape.upper[1:])
    found = {
        "another map": with_shape(upper=moved),
        "another norm": with_shape(longest=shape.longest + 5),
        "no map": replace(release, schema=replace(release.schema, shape=None)),
        "a cheaper round": with_round(replace(one, loss=cheap)),
        "another answer": with_round(
            replace(one, answers=(one.answers[0], one.answers[1] * 3, *one.answers[2:]))
        ),
        "less noise": with_round(replace(one, std=one.std / 2)),
        "too few answers": with_round(replace(one, answers=one.answers[:-1])),
    }
    assert [what for what, changed in found.items() if not disagreements(changed)] == []
    assert disagreements(with_shape(upper=(shape.upper[0] + 1, *shape.upper[1:]))) == ()  # the last digit


def test_a_file_carries_its_shape(tmp_path):
    made = pc.release(ROWS, schema=SCHEMA, loss=APPROXIMATE, frame="shape")
    made.save(tmp_path / "r.json")
    again = pc.load(tmp_path / "r.json")
    assert again == made
    assert again.schema.shape == made.schema.shape
    assert disagreements(again) == ()
    assert (again.second_moment() == made.second_moment()).all()
    assert "shape" not in shaped(frame="scales").to_dict()["certificate"]["bounds"]


@pytest.mark.parametrize(
    "change",
    [
        lambda shape: shape.pop("longest"),
        lambda shape: shape.update(grid="2^-21"),
        lambda shape: shape.update(upper=shape["upper"][:-1]),
        lambda shape: shape.update(upper=["1e5", *shape["upper"][1:]]),
        lambda shape: shape.update(upper=["0", *shape["upper"][1:]]),
        lambda shape: shape.update(longest="7"),
        lambda shape: shape.update(upper="1"),
    ],
)
def test_a_file_with_a_broken_shape_is_refused(change, release):
    document = release.to_dict()
    body = {word: document[word] for word in ("columns", "scaling", "rows", "matrix", "certificate")}
    assert assembled(codec.decode(codec.FORM.sealed(body, None))) == release
    change(body["certificate"]["bounds"]["shape"])
    with pytest.raises(ReleaseError, match="E601"):
        codec.decode(codec.FORM.sealed(body, None))


# --- refusals and the choice ------------------------------------------------------------------------------


def numbers(count):
    return pc.Schema.from_dict({"columns": {f"x{n}": {"lower": 0, "upper": 1} for n in range(count)}})


@pytest.mark.parametrize(
    ("schema", "words", "said"),
    [
        (numbers(1), {}, "2 to 64 numeric columns for a shape, and there are 1"),
        (numbers(65), {}, "2 to 64 numeric columns for a shape, and there are 65"),
        (numbers(3), {"emphasis": "x1"}, "without an emphasis"),
        (replace(numbers(3), intercept=False), {}, "an intercept"),
        (
            numbers(3),
            {"mechanism": "eigenvectors", "loss": LOSSES["pure"]},
            "a mechanism whose noise has a law",
        ),
    ],
)
def test_what_cannot_have_a_shape_is_refused_before_payment(schema, words, said, tmp_path):
    ledger = pc.Ledger.init(tmp_path / "l", pc.ApproxDP(epsilon=9, delta="0.1", neighbours="replace-one"))
    rows = np.zeros((50, len(schema.columns)))
    with pytest.raises(ParameterError, match=f"E218.*{said}"):
        pc.release(rows, schema=schema, **{"loss": APPROXIMATE, "frame": "shape", "ledger": ledger, **words})
    assert ledger.balance().account.left["epsilon"] == 9


def framing(rows, word="shape", schema=SCHEMA, loss=APPROXIMATE, **words):
    mechanism = MECHANISMS["laplace" if isinstance(loss, pc.PureDP) else "gaussian"]()
    return Framing.before(mechanism, loss, word=word, schema=schema, rows=rows, **words)


def test_a_shape_takes_the_share_that_public_facts_call_for():
    assert [framing(rows).shape for rows in (300, 10**6, None)] == [SHAPES[1], SHAPES[0], SHAPES[1]]
    assert list(framing(300).shares) == ["scales", "shape", "radius", "means"]
    assert framing(10**6, "scales").shape is None


@pytest.mark.parametrize(
    ("rows", "words", "share"),
    [
        (10**6, {}, SHAPES[0]),
        (10**6, {"loss": LOSSES["pure"]}, SHAPES[0]),
        (400, {}, SHAPES[1]),  # a direction with less than 0.8 of a column's variance is hidden
        (200, {}, None),  # all of them are
        (2**27 // 3, {}, SHAPES[0]),
        (2**27 // 3 + 1, {}, None),  # cells that are not kept in memory
        (None, {}, None),  # nothing says how many rows there are
        (10**6, {"emphasis": ("a",)}, None),
        (10**6, {"means_first": True}, None),
        (10**6, {"schema": numbers(65)}, None),
    ],
)
def test_auto_takes_a_shape_where_public_facts_say_that_it_can_be_seen_and_is_cheap(rows, words, share):
    assert framing(rows, "auto", **words).shape == share


def test_auto_takes_no_shape_where_means_come_first_for_want_of_rows():
    loss, schema = pc.PureDP(epsilon=1, neighbours="replace-one"), numbers(10)
    rows = next(
        n for n in range(300, 4_000, 10) if (one := framing(n, "auto", schema, loss)) and not one.detail.most
    )
    assert framing(rows, "auto", schema, loss).shape is None


def test_directions_are_stretched_by_their_variance_to_three_eighths():
    """From exact answers: with P = C^(-3/8) the eigenvalues of P C P are those of C to the power of a quarter."""
    made = Sums(schema=replace(SCHEMA, columns=tuple(c for c in SCHEMA.columns if c.name in "ac")))
    correlations = np.array([[1.0, 0.9], [0.9, 1.0]])
    rows, unit = 10_000, float(made.grid.unit)
    answers = np.array([rows, 0, 0, rows, 0.9 * rows, rows]) / unit
    loss = pc.ZCDP(rho=10**9, neighbours="replace-one")
    one = made.answered(loss, tuple(round(float(value)) for value in answers))
    _, stretch = made.found(one, rows=rows)
    found = np.linalg.eigvalsh(stretch @ correlations @ stretch)
    assert found / found.sum() == pytest.approx(
        np.array([0.1, 1.9]) ** 0.25 / (0.1**0.25 + 1.9**0.25), rel=1e-4
    )
    assert found.sum() == pytest.approx(2)  # a row is as long as before, in the mean


@pytest.mark.parametrize("kind", ["pure", "approximate"])
def test_auto_errs_less_than_scales_where_columns_are_correlated(kind):
    """Over 64 seeds 0.38 (pure) and 0.26 of the error of scales. The test asks for 0.9 with 8 fixed seeds each, which
    would fail by chance in 1 of 1,000 sets of seeds (resampled); it detects a shape that is not asked for."""
    truth, off = np.corrcoef(ROWS[:, [0, 2, 3]].T), {}
    places = np.ix_([0, 3, 5], [0, 3, 5])
    for frame in ("scales", "auto"):
        made = [shaped(loss=LOSSES[kind], frame=frame, seed=seed) for seed in range(8)]
        off[frame] = np.sqrt(np.mean([(one.correlation()[places] - truth) ** 2 for one in made]))
    assert off["auto"] < 0.9 * off["scales"]


def test_means_first_leaves_as_much_for_the_matrix_with_a_shape_as_without():
    def rest(word, rows):
        made = Framing.before(
            MECHANISMS["laplace"](),
            LOSSES["pure"],
            word=word,
            schema=SCHEMA,
            rows=rows,
            means_first=True,
        )
        return made.rest.epsilon

    for rows in (None, 5, 300, 10**6):
        assert rest("shape", rows) == rest("scales", rows) > 0


@pytest.mark.parametrize(
    "rows",
    [np.full((1, 4), 5.0), np.full((400, 4), 5.0), np.full((400, 4), math.nan), np.tile(HOSTILE, (60, 1))],
    ids=["one row", "all equal", "all missing", "hostile"],
)
@pytest.mark.parametrize("kind", LOSSES)
def test_degenerate_rows_change_neither_errors_nor_what_is_said(rows, kind):
    made = shaped(rows, loss=LOSSES[kind])
    assert disagreements(made) == ()
    assert np.isfinite(made.second_moment()).all()
    assert np.isfinite(made.correlation()[np.triu_indices(5, 1)]).sum() >= 0


@pytest.mark.parametrize(
    "loss",
    [
        pc.PureDP(epsilon="1e-9", neighbours="replace-one"),
        pc.PureDP(epsilon=10**9, neighbours="add-remove"),
        pc.ZCDP(rho="1e-15", neighbours="replace-one"),
        pc.ZCDP(rho=10**12, neighbours="replace-one"),
    ],
)
def test_the_smallest_and_the_largest_loss_make_a_file(loss, tmp_path):
    made = pc.release(ROWS[:50], schema=SCHEMA, loss=loss, frame="shape")
    made.save(tmp_path / "r.json")
    assert disagreements(pc.load(tmp_path / "r.json")) == ()


@pytest.mark.parametrize("seed", range(20))
def test_no_answer_of_a_shape_makes_an_error(seed):
    """Answers of all sizes, and of matrices that no rows have: what follows is always a shape, or none."""
    rng = np.random.default_rng(seed)
    asked = Sums(schema=replace(declared_shape(), row_norm_bound=None, shape=None))
    size = 10.0 ** rng.integers(0, 40)
    answers = tuple(int(value) for value in rng.normal(size=asked.cells) * size)
    from privcov.releases.certificate import Round

    loss = pc.ZCDP(rho="0.01", neighbours="replace-one")
    one = Round(name="shape", loss=loss, std=asked.std(loss), answers=answers)
    found = asked.found(one, rows=float(rng.integers(1, 10**6)))
    if found is not None:
        assert (np.abs(found[0]) <= 2.25).all()
        Shape.of(found[1], longest=16)


def test_rows_that_one_person_changes_change_one_row_of_the_map():
    schema = declared_shape()
    left, right = ROWS[:200].copy(), ROWS[:200].copy()
    right[17] = HOSTILE[0]
    made = [Bounding.of(schema).rows(list(rows.T)) for rows in (left, right)]
    assert np.flatnonzero((made[0] != made[1]).any(axis=1)).tolist() == [17]
