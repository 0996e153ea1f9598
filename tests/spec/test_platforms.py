"""Where privcov runs: what pyproject.toml declares, and a sentence where it does not."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CLASSIFIERS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]


def imported(module: str, platform: str) -> subprocess.CompletedProcess[str]:
    program = f"import sys; sys.platform = {platform!r}; import {module}; print(sorted(sys.modules))"
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("module", ["privcov", "privcov.cli", "privcov.publish"])
def test_windows_is_refused_at_import_in_one_sentence_that_says_what_to_do(module: str) -> None:
    done = imported(module, "win32")
    assert done.returncode == 1
    *_, said = done.stderr.strip().splitlines()
    assert re.fullmatch(
        r"ImportError: privcov runs on Linux and macOS, not on Windows[^.]*: [^.]*WSL[^.]*\.", said
    )


def test_linux_and_macos_are_not_refused() -> None:
    for platform in ("linux", "darwin"):
        assert "'privcov'" in imported("privcov", platform).stdout


def test_the_systems_and_versions_that_are_declared_are_those_that_are_tried() -> None:
    """The workflow tries every Python that is declared, and may try newer ones first."""
    assert {one for one in CLASSIFIERS if one.startswith("Operating System")} == {
        "Operating System :: MacOS",
        "Operating System :: POSIX :: Linux",
    }
    declared = re.findall(r"Python :: (3\.\d+)", "\n".join(CLASSIFIERS))
    tried = re.findall(r'- "(3\.\d+)"', (ROOT / ".github/workflows/ci.yml").read_text())
    assert declared
    assert tried[: len(declared)] == declared
