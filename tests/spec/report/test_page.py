"""A page says what its release says, for every kind of release, and can hurt nobody."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from reading import read

import privcov as pc
from privcov.errors import ParameterError
from privcov.models.summary import significant
from privcov.noise.randomness import rehearsal
from privcov.report.page import Source, html, sections
from privcov.report.page.elements import number, plus_minus
from privcov.report.view import View, mean_noise
from privcov.unbounded.entry import estimate_gaussian
from privcov.unbounded.page import html as estimate_html

PURE = pc.PureDP(epsilon=1, neighbours="replace-one")
ADD = pc.PureDP(epsilon=1, neighbours="add-remove")
APPROX = pc.ApproxDP(epsilon=1, delta="1e-6", neighbours="replace-one")
ABOUT_ZERO = {name: {"lower": -4, "upper": 4} for name in "abc"}
SHIFTED = {name: {"lower": 0, "upper": 8} for name in "abc"}
NEEDED = {"overview", "promise", "columns", "matrix", "spectrum", "cite", "verify", "load"}


def rows(n=400, d=3):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, d)) + rng.normal(size=(n, 1))


def bare(columns, loss):
    return pc.release(rows(), schema=pc.Schema.from_dict({"intercept": False, "columns": columns}), loss=loss)


KINDS = {
    "pure": lambda people, schema: pc.release(people, schema=schema, loss=PURE),
    "private count": lambda people, schema: pc.release(people, schema=schema, loss=ADD),
    "approximate": lambda people, schema: pc.release(
        people, schema=schema, loss=APPROX, mechanism="gaussian"
    ),
    "zero-concentrated": lambda people, schema: pc.release(
        people, schema=schema, loss=pc.ZCDP(rho="0.5", neighbours="replace-one")
    ),
    "sketch": lambda people, schema: pc.release(
        people, schema=schema, loss=APPROX, mechanism="johnson-lindenstrauss", sketch_rows=40
    ),
    "no law": lambda people, schema: pc.release(
        people, schema=schema, loss=PURE, mechanism="power-method", rank=1
    ),
    "joint": lambda people, schema: pc.release(
        people, schema=schema, loss=APPROX, mechanism="joint-gaussian"
    ),
    "rehearsal": lambda people, schema: pc.release(people, schema=schema, loss=PURE, randomness=rehearsal(7)),
    "about zero": lambda people, schema: bare(ABOUT_ZERO, PURE),
    "shifted, no intercept": lambda people, schema: bare(SHIFTED, PURE),
    "no count at all": lambda people, schema: bare(SHIFTED, ADD),
    "one column": lambda people, schema: pc.release(
        rows(d=1), schema=pc.Schema.from_dict({"columns": {"a": {"lower": -4, "upper": 4}}}), loss=PURE
    ),
    "nothing but noise": lambda people, schema: pc.release(
        people, schema=schema, loss=pc.PureDP(epsilon="0.0001", neighbours="replace-one")
    ),
    "no rows": lambda people, schema: pc.release(
        np.empty((0, 3)), schema=pc.Schema.from_dict({"columns": ABOUT_ZERO}), loss=ADD
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_release_has_a_whole_page(kind, people, schema):
    release = KINDS[kind](people, schema)
    page = html(release, title="People")
    document = read(page)
    assert page.startswith("<!DOCTYPE html>\n<html")
    found = {element.attributes["id"] for element in document.all("section")}
    assert found == (NEEDED - {"cite", "verify", "load"} | {"use"} if kind == "rehearsal" else NEEDED)
    assert all(name in document.words for name in release.columns if name != "(Intercept)")
    assert release.certificate.mechanism in document.words
    assert str(release.certificate.loss) in document.words
    assert not re.search(r"\b(nan|inf|None)\b", document.words)
    assert "What it does not cover" in document.words
    assert page == html(release, title="People")
    assert ("REHEARSAL" in document.words) == (kind == "rehearsal")


def test_a_page_tells_the_browser_to_fetch_and_run_nothing(made):
    document = read(html(made))
    policies = [
        m for m in document.all("meta") if m.attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policies[0].attributes["content"].startswith("default-src 'none';")
    assert "script" not in policies[0].attributes["content"]


def test_numbers_on_the_page_are_those_of_the_release(made):
    words = read(html(made)).words
    mean = dict(zip(made.columns[1:], made.mean(), strict=True))
    # Rounded first: a page says 0.00, never −0.00.
    assert f"{round(made.correlation()[0, 3], 2) + 0:.2f}".replace("-", "−") in words
    assert any(f"{mean['age']:.{digits}f}" in words for digits in (1, 2))
    assert f"{made.rows:,}" in words


def test_the_noise_is_beside_the_number_in_original_units(made):
    view = View.of(made)
    told = plus_minus(float(view.mean[0]), float(mean_noise(made)[0]))
    cells = [cell.words for cell in read(html(made)).all("td")]
    assert told[0] in cells
    assert told[1] in cells, "what the page says of a mean is what show says of it"
    spread = float(np.sqrt(view.covariance[0, 0]))
    off = made.law.reach(0.025) * float(view.noise.covariance[0, 0])
    ends = np.sqrt(max(spread**2 - off, 0.0)), np.sqrt(spread**2 + off)
    assert plus_minus(spread, max(spread - ends[0], ends[1] - spread))[1] in cells


def test_what_the_promise_says_depends_on_who_is_protected(people, schema):
    def page(loss, mechanism="auto", **changes):
        release = pc.release(people, schema=replace(schema, **changes), loss=loss, mechanism=mechanism)
        return read(html(release)).words

    assert "Replacing one person's row by any other changes the probability" in page(PURE)
    assert "Adding or removing one person's row" in page(ADD)
    assert "up to 3 of them" in page(PURE, max_rows_per_person=3)
    assert "more than 3 rows in the table" in page(PURE, max_rows_per_person=3)
    assert "Rare outcomes: with probability 0.000001" in page(APPROX, "gaussian")
    assert "Rare outcomes" not in page(PURE)
    assert "number of rows" in page(PURE).partition("What it does not cover")[2]


@pytest.fixture
def clear(people, schema):
    """A release with so little noise that every interval has ends."""
    return pc.release(people, schema=schema, loss=pc.PureDP(epsilon=1000, neighbours="replace-one"))


def test_models_show_slopes_intervals_and_what_part_is_privacy(clear):
    document = read(html(clear, models=["income ~ age + sex", "age ~ sex"]))
    assert {"model-1", "model-2"} <= {element.attributes["id"] for element in document.all("section")}
    fit = pc.ols(clear, "income ~ age + sex")
    cells = [cell.words for cell in document.all("td")]
    assert number(fit.params["age"]) in cells
    low, high = fit.conf_int()["age"]
    assert f"[{number(low, 3)}, {number(high, 3)}]" in cells
    assert "pc.ols(release, 'income ~ age + sex')" in document.words


def test_a_slope_is_drawn_over_the_whole_range_of_its_column(clear):
    """Age runs from 0 to 100, so the picture shows a hundred times the coefficient, and its interval too."""
    fit = pc.ols(clear, "income ~ age")
    picture = next(part for part in sections(clear, models=[fit]) if part.name == "model-1").body
    said = next(e.words for e in read(picture).all("title") if e.words.startswith("age: "))
    shown = [float(word) for word in re.findall(r"-?[\d.]+", said.replace("−", "-").replace(",", " "))]
    wanted = [100 * fit.params["age"], *(100 * end for end in fit.conf_int()["age"])]
    assert shown == pytest.approx(wanted, rel=1e-2)


def test_a_release_without_a_law_has_estimates_and_says_why_there_is_no_more(people, schema):
    release = KINDS["sketch"](people, schema)
    words = read(html(release, models=["income ~ age"])).words
    assert "No standard errors, intervals or tests" in words
    assert "± noise" not in words
    assert "40 sketched rows" in words
    assert "no noise edge is drawn" in words


def test_components_that_are_asked_for_are_shown(made):
    words = read(html(made, components=2)).words
    assert {"PC1", "PC2"} <= set(re.findall(r"PC\d", words))
    with pytest.raises(ParameterError, match="E253"):
        html(made, components=99)


def test_noise_that_drowns_everything_is_said_first(people, schema):
    page = html(KINDS["nothing but noise"](people, schema))
    assert "The noise is LARGE: none of" in next(
        e.words for e in read(page).all("p") if e.attributes.get("class") == "warning"
    )


def test_a_hostile_level_title_or_file_name_stays_text(people):
    bad = ['</script><script>alert("1")</script>', "'><img src=x onerror=alert(1)>", "{}\\&<b>"]
    table = np.array([[i % 3] for i in range(60)], dtype=object)
    table[:, 0] = [bad[i % 3] for i in range(60)]
    import pandas

    schema = pc.Schema.from_dict({"columns": {"x": {"levels": bad}, "y": {"lower": 0, "upper": 1}}})
    frame = pandas.DataFrame({"x": table[:, 0], "y": np.linspace(0, 1, 60)})
    release = pc.release(frame, schema=schema, loss=PURE)
    source = Source(name="-r 'f <b>.json", sha256="0" * 64, checks=("<script>",), key="$(touch x).pub")
    document = read(html(release, models=["y ~ x"], components=1, title=f"{bad[0]}}}", source=source))
    assert f"x[{bad[1]}]" in document.words
    assert "privcov verify ./'-r '\\''f <b>.json'" in document.words
    entry = next(e.words for e in document.all("pre") if e.words.startswith("@misc"))
    assert entry.count("{") == entry.count("}")


def test_levels_of_one_column_are_not_praised_as_a_strong_pair(schema):
    import pandas

    age = np.random.default_rng(6).integers(18, 90, 5_000)
    people = pandas.DataFrame({"age": age, "sex": np.where(age % 2, "F", "M"), "income": 1.5 * age})
    words = read(html(pc.release(people, schema=schema, loss=PURE))).words
    assert "sex[F] × sex[M]" not in words
    assert "age × income" in words
    assert "age × sex" not in words  # within the noise: no finding


def test_a_wide_release_stays_small_and_says_what_is_left_out():
    d = 130
    schema = pc.Schema.from_dict({"columns": {f"m{i}": {"lower": -6, "upper": 6} for i in range(d)}})
    release = pc.release(rows(3000, d), schema=schema, loss=pc.ZCDP(rho=2_000, neighbours="replace-one"))
    page = html(release)
    assert len(page.encode()) < 1_500_000
    document = read(page)
    assert len(document.elements) < 8_000
    assert "The first 16 of 130 columns" in document.words
    assert "are in the release file" in document.words


def test_beyond_all_measure_the_corner_is_shown_and_nothing_is_repaired(monkeypatch):
    monkeypatch.setattr("privcov.linalg.triangle.WIDE", 10)
    monkeypatch.setattr("privcov.report.view.CORNER", 4)
    monkeypatch.setattr("privcov.report.page.models._UNASKED", 4)
    schema = pc.Schema.from_dict({"columns": {f"m{i}": {"lower": -6, "upper": 6} for i in range(9)}})
    release = pc.release(rows(300, 9), schema=schema, loss=PURE)
    monkeypatch.setattr(
        pc.Release, "_repair", lambda *_: pytest.fail("a wide release was repaired for a page")
    )
    words = read(html(release)).words
    assert "as released, noise and all; the first 4 of 9 columns" in words
    assert "ask for components" in words


def test_an_estimate_has_a_page_in_the_same_hand():
    estimate = replace(
        estimate_gaussian(
            rows(2000),
            columns=["a", "b", "c"],
            loss=pc.ZCDP(rho=1, neighbours="replace-one"),
            largest_variance=10,
        ),
        columns=("a", "<b>", "c"),  # a file may say so
    )
    page = estimate_html(estimate)
    document = read(page)
    assert "<b>" in document.words
    assert {"overview", "promise", "cite", "verify", "load"} == {
        element.attributes["id"] for element in document.all("section")
    }
    assert all(step in document.words for step, _ in estimate.certificate.budget)
    assert page == estimate_html(estimate)


@pytest.mark.parametrize(
    ("value", "noise", "told"),
    [
        (48.41731, 0.2518, ("48.42", "0.25")),
        (-0.2, 12.0, ("0", "12")),
        (-7.0, 12.0, ("−7", "12")),
        (1234.5, 120.0, ("1,234", "120")),
        (float("nan"), 1.0, ("–", "1.0")),
        (5.0, float("nan"), ("5.000", "–")),
        (5.0, 0.0, ("5.000", "0")),
    ],
)
def test_a_number_has_the_digits_that_its_noise_leaves(value, noise, told):
    assert plus_minus(value, noise) == told


@pytest.mark.parametrize(
    ("loss", "learnt", "sure"),
    [
        (pc.PureDP(epsilon="0.1", neighbours="replace-one"), "next to nothing", "52.5 % likely"),
        (pc.PureDP(epsilon=1, neighbours="replace-one"), "little", "73.2 % likely"),
        (pc.PureDP(epsilon=5, neighbours="replace-one"), "MUCH", "99.4 % likely"),
        (pc.PureDP(epsilon=9, neighbours="replace-one"), "MUCH", "all but certain"),
        (pc.ApproxDP(epsilon=1, delta="1e-6", neighbours="replace-one"), "little", "probability of 1e-06"),
        (pc.ZCDP(rho="0.001", neighbours="replace-one"), "little", "probability of 1e-06"),
    ],
)
def test_what_the_promise_is_worth_is_told_by_its_budget(people, schema, loss, learnt, sure):
    mechanism = "gaussian" if loss.kind == "approximate" else "auto"
    words = read(html(pc.release(people, schema=schema, loss=loss, mechanism=mechanism))).words
    assert re.search(f"A reader (learns|may learn) {learnt} about a person", words)
    assert sure in words
    assert "hardly more" not in words


def test_a_regression_that_is_drowned_explains_no_share(people, schema):
    release = pc.release(people, schema=schema, loss=pc.PureDP(epsilon="0.01", neighbours="replace-one"))
    fit = pc.ols(release, "income ~ age")
    assert fit.uncertainty.drowned
    for words in (read(html(release, models=[fit])).words, read(fit._repr_html_()).words):
        assert "cannot be told from this release" in words
        assert "Residual standard error" not in words
        assert "one digit of each is printed" in words
        assert number(fit.params["age"]) not in words
        assert number(significant(fit.params["age"], 1), 1) in words
