"""The page of a release in a real browser: nothing is fetched, nothing sticks out, everything can be read."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import privcov as pc
from privcov.report.page import html

CHROMIUM = shutil.which("chromium")
READ = """() => {
  const size = text => {
    const svg = text.ownerSVGElement
    return parseFloat(getComputedStyle(text).fontSize) * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width
  }
  const luminance = colour => {
    const parts = colour.match(/[\\d.]+/g).slice(0, 3).map(v => v / 255)
    const linear = parts.map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
  }
  const paper = luminance(getComputedStyle(document.documentElement).backgroundColor)
  const contrast = element => {
    const ink = luminance(getComputedStyle(element).color)
    return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05)
  }
  const words = [...document.querySelectorAll('h1, h2, p:not(.warning), li, td, th, dt, dd, figcaption, a')]
  return {
    over: document.documentElement.scrollWidth - window.innerWidth,
    smallest: Math.min(...[...document.querySelectorAll('svg text')].map(size)),
    faintest: Math.min(...words.map(contrast)),
    dark: paper < 0.2,
  }
}"""


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="needs Playwright: pip install playwright")
    if CHROMIUM is None:
        pytest.skip("needs Chromium, Debian's package chromium")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A narrow release with a categorical column and models, and one of a hundred columns."""
    home, rng = tmp_path_factory.mktemp("pages"), np.random.default_rng(0)
    loss = pc.PureDP(epsilon=1, neighbours="replace-one")
    import pandas

    age = rng.integers(18, 90, 900)
    frame = pandas.DataFrame({"age": age, "sex": rng.choice(["F", "M"], 900), "income": rng.normal(age, 20)})
    bounds = {
        "age": {"lower": 0, "upper": 100},
        "sex": {"levels": ["F", "M"]},
        "income": {"lower": 0, "upper": 200},
    }
    narrow = pc.release(frame, schema=pc.Schema.from_dict({"columns": bounds}), loss=loss)
    (home / "narrow.html").write_text(
        html(narrow, models=["income ~ age + sex"], components=2), encoding="utf-8"
    )
    wide = pc.Schema.from_dict(
        {"columns": {f"measurement_{i}": {"lower": -4, "upper": 4} for i in range(100)}}
    )
    release = pc.release(rng.normal(size=(2000, 100)), schema=wide, loss=loss)
    (home / "wide.html").write_text(html(release), encoding="utf-8")
    return home


@pytest.mark.parametrize("name", ["narrow", "wide"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 800, 1600])
def test_a_page_can_be_read_at_any_width_in_light_and_dark(browser, pages, width, scheme, name):
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    asked, said = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    page.goto((pages / f"{name}.html").as_uri())
    found = page.evaluate(READ)
    page.screenshot(path=pages / f"{name}-{width}-{scheme}.png", full_page=True)
    context.close()
    assert len(asked) == 1
    assert said == []
    assert found["over"] <= 0
    assert found["smallest"] >= 7.5
    assert found["faintest"] >= 4.5
    assert found["dark"] == (scheme == "dark")
