"""Results show themselves in a notebook; nothing pays for that before it is asked for."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from reading import read

import privcov as pc
from privcov.models.association import correlation, partial_correlation, precision
from privcov.report.notebook import shown
from privcov.text.display import Shown
from privcov.unbounded.entry import estimate_gaussian

ROOT = Path(__file__).parents[3]
NOTEBOOK = ROOT / "docs" / "learn" / "regression-from-a-release.ipynb"
LOSS = pc.PureDP(epsilon=1, neighbours="replace-one")

RESULTS = {
    "release": lambda made: made,
    "certificate": lambda made: made.certificate,
    "fit": lambda made: pc.ols(made, "income ~ age + sex"),
    "components": lambda made: pc.pca(made, rank=2),
    "ridge": lambda made: pc.ridge(made, "income"),
    "path": lambda made: pc.ridge_path(made, "income", [0.0, 1.0, 10.0]),
    "correlation": correlation,
    "partial correlation": lambda made: partial_correlation(made, floor=1e-3),
    "precision": lambda made: precision(made, floor=1e-3),
    "plan": lambda made: pc.plan(schema=made.schema, rows=300, loss=LOSS, mechanisms=["laplace"]),
    "estimate": lambda made: estimate_gaussian(
        np.random.default_rng(0).normal(size=(500, 2)),
        columns=["a", "b"],
        loss=pc.ZCDP(rho=1, neighbours="replace-one"),
        largest_variance=9,
    ),
}


@pytest.mark.parametrize("what", RESULTS)
def test_a_result_shows_itself(what, made):
    document = read(RESULTS[what](made)._repr_html_())
    assert document.elements[0].attributes["class"] == "privcov"
    assert document.all("h4")[0].words
    assert document.all("svg") or what == "certificate"
    style = document.all("style")[0].words
    assert all(rule.strip().startswith(".privcov") for rule in style.split("}") if rule.strip()), (
        "a style that leaks"
    )
    assert "REHEARSAL" not in document.words


@pytest.mark.parametrize(
    "what", ["release", "certificate", "fit", "components", "ridge", "path", "correlation"]
)
def test_a_rehearsal_is_marked_wherever_it_shows(what, rehearsed):
    assert "REHEARSAL" in read(RESULTS[what](rehearsed)._repr_html_()).words


def test_a_wide_release_is_not_repaired_for_a_look(monkeypatch):
    schema = pc.Schema.from_dict({"columns": {f"m{i}": {"lower": -6, "upper": 6} for i in range(61)}})
    release = pc.release(np.zeros((9, 61)), schema=schema, loss=LOSS)
    monkeypatch.setattr(pc.Release, "_repair", lambda *_: pytest.fail("repaired"))
    assert "61 columns" in release._repr_html_()


def test_every_result_that_can_be_shown_is():
    """A class that inherits Shown without a way to show it would fail in somebody's notebook."""

    assert len(Shown.__subclasses__()) >= 7
    for kind in Shown.__subclasses__():
        assert shown.dispatch(kind) is not shown.dispatch(object), kind
    with pytest.raises(TypeError, match="nothing is known"):
        shown(3)


def test_making_results_loads_nothing_that_draws():
    program = (
        "import sys, privcov as pc\n"
        "import privcov.releases.release, privcov.models.ols, privcov.models.pca, privcov.planning.plan\n"
        "pc.release\n"
        "print([name for name in sys.modules if name.startswith('privcov.report.') and ('drawing' in name or "
        "'page' in name or 'notebook' in name)])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_notebook_is_kept_without_results():
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert len(code) >= 6
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)


def test_the_notebook_runs_and_shows_pictures(tmp_path):
    reason = "the example notebook needs nbformat, nbclient and ipykernel"
    nbformat = pytest.importorskip("nbformat", reason=reason)
    nbclient = pytest.importorskip("nbclient", reason=reason)
    pytest.importorskip("ipykernel", reason=reason)
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    where = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources=where).execute()
    pages = [
        output["data"]["text/html"]
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if "text/html" in output.get("data", {})
    ]
    headings = [read(page).all("h4")[0].words for page in pages]
    assert len(headings) >= 6
    for word in (
        "Plan",
        "Private release",
        "Certificate",
        "income ~ age + sex + educ",
        "components",
        "Ridge path",
    ):
        assert any(word in heading for heading in headings), (word, headings)
    assert sum("<svg" in page for page in pages) >= 5
    read((tmp_path / "people.html").read_text(encoding="utf-8"))


def test_a_result_that_is_found_without_the_package_s_names_shows_itself():
    """As from a pickle or a notebook that imports one module: the package is there before its modules."""
    program = (
        "import sys\n"
        "from privcov.models.association import NamedMatrix\n"
        "assert 'privcov.report.notebook' not in sys.modules\n"
        "import numpy as np\n"
        "made = NamedMatrix(what='correlation', columns=('a', 'b'), values=np.eye(2), rehearsal=False)\n"
        "print(made._repr_html_()[:21])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == '<div class="privcov">'
