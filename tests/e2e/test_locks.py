"""The files of versions and hashes: they satisfy pyproject.toml, are closed, and name no place to download from."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def script() -> Any:
    spec = importlib.util.spec_from_file_location("lock", ROOT / "requirements/lock.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


LOCK = script()
NAMES = ("core", *LOCK.EXTRAS)


def locked(name: str) -> dict[str, tuple[str, list[str]]]:
    """Package, version, hashes."""
    text = (ROOT / "requirements" / f"{name}.txt").read_text().replace("\\\n", "")
    lines = [line.split() for line in text.splitlines() if not line.startswith("#")]
    return {pin.split("==")[0]: (pin.split("==")[1], hashes) for pin, *hashes in lines}


def declared(name: str) -> list[Requirement]:
    extra = [] if name == "core" else PROJECT["optional-dependencies"][name]
    return [Requirement(line) for line in PROJECT["dependencies"] + extra]


@pytest.mark.parametrize("name", NAMES)
def test_a_lock_satisfies_the_bounds_and_has_a_hash_for_everything(name: str) -> None:
    pins = locked(name)
    for requirement in declared(name):
        assert requirement.specifier.contains(pins[canonicalize_name(requirement.name)][0]), requirement
    for package, (_, hashes) in pins.items():
        assert hashes, package
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", one) for one in hashes), package
        assert len(hashes) <= len(LOCK.PYTHONS)
    assert "://" not in (ROOT / "requirements" / f"{name}.txt").read_text()


@pytest.mark.parametrize("name", NAMES)
def test_a_lock_holds_what_its_packages_need_and_nothing_else(name: str) -> None:
    """By the metadata of the packages installed here, whose versions may be others."""
    versions = {package: version for package, (version, _) in locked(name).items()}
    known = {package: importlib.metadata.requires(package) or [] for package in versions}
    assert {*LOCK.needed(declared(name), known)} == {*versions}
    if all(importlib.metadata.version(package) == version for package, version in versions.items()):
        installed = {canonicalize_name(found.name) for found in importlib.metadata.distributions()}
        everything = {package: importlib.metadata.requires(package) or [] for package in installed}
        assert {*LOCK.needed(declared(name), everything)} == {*versions}


def test_locks_agree_with_each_other_and_there_is_one_for_every_extra_that_users_install() -> None:
    found: dict[str, str] = {}
    for name in NAMES:
        for package, (version, _) in locked(name).items():
            assert found.setdefault(package, version) == version
    others = {
        "spark",
        "dask",
        "torch",
        "docs",
        "test",
        "dev",
    }  # clusters and GPUs bring their own; the rest is ours
    assert {*LOCK.EXTRAS} | others == {*PROJECT["optional-dependencies"]}
