"""Correlation and its kin, and the frames and tables they can leave in."""

from __future__ import annotations

import math

import numpy as np
import pytest

import privcov as pc
from privcov.models import association, interop
from privcov.models.association import correlation, mahalanobis, partial_correlation, precision
from privcov.noise.laws import GaussianEnsemble


@pytest.fixture(scope="module")
def columns(people_columns):
    return {name: people_columns[name] for name in ("age", "educ", "income")}


@pytest.fixture(scope="module")
def release(make, people_schema, columns):
    bounds = {
        c.name: {"lower": c.lower, "upper": c.upper} for c in people_schema.columns if c.name in columns
    }
    schema = pc.Schema.from_dict({"columns": bounds})
    return make(schema, columns, law=GaussianEnsemble(dimension=4, scale=1e-9))


@pytest.fixture(scope="module")
def mixed(make, people_schema, people_columns):
    return make(
        people_schema, people_columns, law=GaussianEnsemble(dimension=people_schema.dimension, scale=1e-9)
    )


def residual(target, others):
    """What is left of a column after the others and a constant are regressed out."""
    design = np.stack([np.ones(len(target)), *others], axis=1)
    return target - design @ np.linalg.lstsq(design, target, rcond=None)[0]


def test_the_identities_of_an_exact_release(release, columns):
    rows = np.stack(list(columns.values()), axis=1)
    assert np.allclose(correlation(release).values, np.corrcoef(rows.T), atol=1e-9)
    assert np.allclose(np.array(precision(release)) @ np.cov(rows.T), np.eye(3), atol=1e-7)
    scaled = precision(release, scaled=True).values @ release.covariance(scaled=True)
    assert np.allclose(scaled, np.eye(3), atol=1e-7)
    centred = rows - rows.mean(axis=0)
    expected = np.sqrt(np.einsum("ni,ni->n", centred @ np.linalg.inv(np.cov(rows.T)), centred))
    assert np.allclose(mahalanobis(release, rows), expected, rtol=1e-7)
    assert np.allclose(mahalanobis(release, columns), expected, rtol=1e-7)


def test_partial_correlation_is_the_correlation_of_residuals(release, columns):
    left = residual(columns["age"], [columns["educ"]])
    right = residual(columns["income"], [columns["educ"]])
    assert partial_correlation(release)["age", "income"] == pytest.approx(
        np.corrcoef(left, right)[0, 1], abs=1e-8
    )


def test_levels_that_determine_each_other_do_not_spoil_the_rest(mixed, people_columns):
    levels = [people_columns["area"] == "n", people_columns["area"] == "s", people_columns["sex"] == "F"]
    others = [*(level.astype(float) for level in levels), people_columns["educ"]]
    left, right = (residual(people_columns[name], others) for name in ("age", "income"))
    found = partial_correlation(mixed, repair="none")
    assert found["age", "income"] == pytest.approx(np.corrcoef(left, right)[0, 1], abs=1e-7)
    assert math.isnan(found["age", "sex[F]"])
    assert found["sex[F]", "sex[F]"] == 1
    assert found.dropped == 2  # one direction for each categorical column
    assert found.floor == association.FLOOR


def test_mahalanobis_ignores_directions_that_do_not_vary(mixed, people_columns):
    """With all levels in, the distance is the one with a level of each column left out."""
    distances = mahalanobis(mixed, people_columns, repair="none")
    kept = [people_columns["age"], people_columns["educ"], people_columns["income"]]
    kept += [people_columns["area"] == "n", people_columns["area"] == "s", people_columns["sex"] == "F"]
    rows = np.stack([np.asarray(column, dtype=float) for column in kept], axis=1)
    centred = rows - rows.mean(axis=0)
    expected = np.sqrt(np.einsum("ni,ni->n", centred @ np.linalg.inv(np.cov(rows.T)), centred))
    assert np.allclose(distances, expected, rtol=1e-6)


def test_bad_input_is_refused(make, release, mixed):
    for floor in (0, 1, -1, math.nan, True, "x"):
        with pytest.raises(pc.PrivcovError, match="E258"):
            precision(release, floor=floor)
    with pytest.raises(pc.PrivcovError, match="E250"):
        _ = correlation(release)["age", "height"]
    with pytest.raises(pc.PrivcovError, match="E257"):
        mahalanobis(release, [[1.0, 2.0]])
    flat = make(release.schema, {n: np.full(9, 5.0) for n in ("age", "educ", "income")}, law=None)
    with pytest.raises(pc.PrivcovError, match=r"E254 .*age"):
        precision(flat)
    schema = pc.Schema.from_dict({"intercept": False, "columns": {"a": {"lower": -1, "upper": 1}}})
    bare = make(schema, {"a": np.ones(9)}, law=None)
    for ask in (correlation, precision, partial_correlation, interop.to_pandas):
        with pytest.raises(pc.PrivcovError, match="E255"):
            ask(bare)


@pytest.mark.parametrize("what", interop.WHAT)
def test_every_matrix_leaves_as_a_frame_or_a_table(release, what):
    pytest.importorskip("pandas")
    pytest.importorskip("polars")
    frame, other = interop.to_pandas(release, what), interop.to_polars(release, what)
    assert other.columns == ["column", *frame.columns]
    assert other["column"].to_list() == list(frame.index)
    assert np.array_equal(other.drop("column").to_numpy(), frame.to_numpy())
    assert frame.attrs["labels"] == []
    latex = interop.to_latex(release, what)
    assert latex.startswith(r"\begin{tabular}{lr")
    assert latex.count("income") == (2 if what != "mean" else 1)
    assert "REHEARSAL" not in latex


def test_values_are_the_release_s_own(release):
    pytest.importorskip("pandas")
    assert np.array_equal(interop.to_pandas(release).to_numpy(), release.covariance())
    assert interop.to_pandas(release, "mean").loc["age", "mean"] == release.mean()[0]
    assert np.array_equal(interop.to_pandas(release, "raw").to_numpy(), release.second_moment(raw=True))


def test_a_missing_library_is_named(release, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "polars", None)
    with pytest.raises(pc.PrivcovError, match=r"E259 .*pip install polars"):
        interop.to_polars(release)
    for words in ({"what": "magic"}, {"what": "mean", "digits": 0}):
        with pytest.raises(pc.PrivcovError, match="E258"):
            interop.to_latex(release, **words)


def test_latex_escapes_what_a_level_may_hold(make):
    schema = pc.Schema.from_dict({"columns": {"a_b": {"levels": ["50%", "x&y"]}}})
    latex = interop.to_latex(make(schema, {"a_b": np.array(["50%", "x&y"] * 9)}, law=None), "raw")
    assert r"a\_b[50\%]" in latex
    assert r"x\&y" in latex


def test_a_rehearsal_is_labelled_everywhere(rehearsed):
    pytest.importorskip("pandas")
    pytest.importorskip("polars")
    assert "REHEARSAL" in repr(correlation(rehearsed))
    assert correlation(rehearsed).to_dict()["labels"][0].startswith("REHEARSAL")
    assert interop.to_pandas(rehearsed).index.name.startswith("REHEARSAL")
    assert interop.to_polars(rehearsed).columns[0].startswith("REHEARSAL")
    assert "REHEARSAL" in interop.to_latex(rehearsed)
