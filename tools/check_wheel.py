"""Builds the wheel, installs it alone into a fresh environment, and runs it there as a newcomer would.

    python tools/check_wheel.py                      # build, install, run; print the size
    python tools/check_wheel.py --most 1500000       # and refuse a wheel of more bytes
    python tools/check_wheel.py --keep dist          # and keep the wheel, for a release

No extra is installed. The demo must go through, both as the command ``privcov demo`` and under a watcher that sees
every module that anybody tries to import, installed or not: none of ``UNWANTED`` may be asked for. The files of the
wheel are looked through too. It needs an index of packages, as pip is set up for; what it makes is in a temporary
folder and gone afterwards.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
UNWANTED = ("matplotlib", "sklearn", "torch", "pytest", "privcov_lab")
"""What nobody may even try to import for the demo: extras, tests, and the laboratory. (pyarrow looks for pandas.)"""
NEEDED = (
    r"privcov/py\.typed",
    r"privcov/demo/people\.csv",
    r".*\.dist-info/licenses/LICENSE",
    r".*/entry_points\.txt",
)
STRAY = r"(^|/)(tests?|tools|benchmarks|__pycache__|\.[^/]+)/|\.pyc$|(^|/)conftest\.py$"

WATCHED = """
import sys

class Watch:
    def __init__(self, unwanted):
        self.unwanted, self.seen = unwanted, set()
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.unwanted:
            self.seen.add(name.partition(".")[0])

watch = Watch({unwanted!r})
sys.meta_path.insert(0, watch)
from {module} import {function}
code = {function}(*{arguments!r})
if watch.seen:
    sys.exit("asked for " + ", ".join(sorted(watch.seen)))
sys.exit(code)
"""


def watched(module: str, function: str, *arguments: object, unwanted: Sequence[str] = UNWANTED) -> str:
    """A program that calls a function and fails where anything unwanted was asked for on the way."""
    return WATCHED.format(unwanted={*unwanted}, module=module, function=function, arguments=arguments)


def faults(names: Sequence[str]) -> list[str]:
    """What is wrong with the list of files of a wheel."""
    missing = [pattern for pattern in NEEDED if not any(re.fullmatch(pattern, name) for name in names)]
    stray = [name for name in names if re.search(STRAY, name)]
    return [f"{pattern} is missing" for pattern in missing] + [
        f"{name} does not belong there" for name in stray
    ]


def _run(*words: object, cwd: Path) -> str:
    """The output of a command that must succeed, in an environment that knows nothing of this checkout."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))
    }
    done = subprocess.run([*map(str, words)], cwd=cwd, env=kept, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(
            f"wheel: {' '.join(map(str, words))[:200]} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
    return done.stdout


def _environment(place: Path) -> Path:
    """A fresh virtual environment; its interpreter."""
    venv.create(place, with_pip=True)
    return place / "bin" / "python"


def check(*, most: int | None, keep: Path | None) -> None:
    """Everything in turn; ends the program with a sentence where something is wrong."""
    with tempfile.TemporaryDirectory(prefix="privcov-wheel-") as name:
        home = Path(name)
        python = _environment(home / "clean")
        _run(python, "-m", "pip", "wheel", "-q", "--no-deps", "-w", home / "dist", ROOT, cwd=home)
        (wheel,) = (home / "dist").glob("privcov-*.whl")
        names = zipfile.ZipFile(wheel).namelist()
        size = wheel.stat().st_size
        modules = sum(one.endswith(".py") for one in names)
        print(f"{wheel.name}: {size:,} bytes, {len(names)} files, {modules} modules")
        wrong = faults(names)
        if most is not None and size > most:
            wrong.append(f"{size:,} bytes are more than {most:,}")
        if wrong:
            raise SystemExit("wheel: " + "; ".join(wrong))

        _run(python, "-m", "pip", "install", "-q", wheel, cwd=home)
        installed = _run(python, "-m", "pip", "list", "--format=freeze", cwd=home).split()
        print("installed: " + " ".join(installed))
        shown = _run(python.with_name("privcov"), "demo", cwd=home)
        print(f"privcov demo: {len(shown.splitlines())} lines")
        _run(python, "-c", watched("privcov.cli", "main", ["demo"]), cwd=home)
        print("asked for none of " + ", ".join(UNWANTED))
        if keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
            shutil.copy2(wheel, keep)


def main() -> None:
    """What was asked on the command line."""
    parser = argparse.ArgumentParser(description="Build the wheel, install it alone, run the demo.")
    parser.add_argument("--most", type=int, metavar="BYTES", help="refuse a larger wheel")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="copy the wheel there")
    given = parser.parse_args()
    check(most=given.most, keep=given.keep)


if __name__ == "__main__":
    sys.exit(main())
