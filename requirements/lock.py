"""Writes the files beside it: one version, with its hashes, of everything that privcov and an extra of it need.

    python requirements/lock.py

asks pip, with whatever index it is set up for, what it would install, and writes the hashes that the index has for it.
One file for privcov alone (``core.txt``) and one for each extra, which holds the core too.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

HERE = Path(__file__).parent
EXTRAS = ("fast", "sign", "postgres", "web", "report", "sklearn")
PYTHONS = ("3.11", "3.12", "3.13")
"""The oldest first: what it takes is what all take."""
OLDEST = {"python_version": PYTHONS[0], "python_full_version": f"{PYTHONS[0]}.0"}
PLATFORMS = tuple(f"manylinux{tag}_x86_64" for tag in ("_2_28", "_2_27", "_2_17", "2014"))
HEADER = f"""\
# Versions and hashes for {{what}}, made by requirements/lock.py: wheels for Linux on x86-64 (glibc 2.28 or later) and
# CPython {PYTHONS[0]} to {PYTHONS[-1]}. On anything else pip refuses these files. How to use them: docs/do/install.md
"""


def asked(wanted: Iterable[str], python: str, *options: str) -> list[dict[str, Any]]:
    """What pip would install, as its report says; nothing is."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        platforms = [word for platform in PLATFORMS for word in ("--platform", platform)]
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--dry-run",
            "--ignore-installed",
            "--quiet",
            *options,
        ]
        command += ["--only-binary=:all:", "--target", folder, "--python-version", python, *platforms]
        subprocess.run([*command, "--report", str(report), *wanted], check=True)
        return json.loads(report.read_text())["install"]


def needed(wanted: Iterable[Requirement], known: dict[str, list[str]]) -> Iterator[str]:
    """The names that requirements lead to, their own among them."""
    todo, done = [(r.name, extra) for r in wanted for extra in (*r.extras, "")], set()
    while todo:
        name, extra = todo.pop()
        name = canonicalize_name(name)
        if (name, extra) in done or name not in known:  # not known: for another platform or an older Python
            continue
        done.add((name, extra))
        for requirement in map(Requirement, known[name]):
            if requirement.marker is None or requirement.marker.evaluate({**OLDEST, "extra": extra}):
                todo += [(requirement.name, other) for other in (*requirement.extras, "")]
    yield from {name for name, _ in done}


def main() -> None:
    """Ask, and write."""
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"]
    sets = {"core": project["dependencies"]}
    for extra in EXTRAS:
        sets[extra] = sets["core"] + project["optional-dependencies"][extra]
    found = asked(sorted({line for lines in sets.values() for line in lines}), PYTHONS[0])
    pins = {canonicalize_name(one["metadata"]["name"]): one["metadata"]["version"] for one in found}
    known = {
        canonicalize_name(one["metadata"]["name"]): one["metadata"].get("requires_dist", []) for one in found
    }
    for python in PYTHONS[1:]:
        found += asked([f"{name}=={version}" for name, version in pins.items()], python, "--no-deps")
    hashes = defaultdict(set)
    for one in found:
        hashes[canonicalize_name(one["metadata"]["name"])].add(
            one["download_info"]["archive_info"]["hashes"]["sha256"]
        )
    for what, lines in sets.items():
        text = HEADER.format(what="privcov alone" if what == "core" else f"privcov[{what}]")
        for name in sorted(needed(map(Requirement, lines), known)):
            text += " \\\n    ".join(
                [f"{name}=={pins[name]}", *(f"--hash=sha256:{h}" for h in sorted(hashes[name]))]
            )
            text += "\n"
        (HERE / f"{what}.txt").write_text(text)


if __name__ == "__main__":
    main()
