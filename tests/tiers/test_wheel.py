"""The wheel, built from this tree: what it carries beside modules. Needs pip to find the build backend."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("wheel")
    words = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", place, ROOT]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode and "hatchling" in done.stderr:
        pytest.skip("the build backend cannot be installed here")
    assert done.returncode == 0, done.stderr
    return next(place.glob("*.whl"))


def test_an_installed_wheel_prints_every_proof_page(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    sources = {page.stem: page for page in (ROOT / "docs" / "proofs").glob("*.md") if page.stem != "README"}
    assert len(sources) > 25
    script = "import sys\nfrom privcov.cli import main\nfor name in sys.argv[1:]: assert main(['proof', name]) == 0"
    printed = subprocess.run(
        [sys.executable, "-P", "-c", script, *sources],
        env={**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONIOENCODING": "utf-8"},
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert printed.stdout == "".join(page.read_text(encoding="utf-8") for page in sources.values())
