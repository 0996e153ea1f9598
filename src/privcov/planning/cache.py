"""Numbers simulated from public parameters, kept so that the same question is not simulated twice.

A cached number is a function of its key, which holds public parameters and this version alone: nothing about
any table can be in it. A file that cannot be read or written is as good as none.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from privcov.version import __version__

_MEMORY: dict[str, tuple[float, ...]] = {}


def remembered(key: str, make: Callable[[], tuple[float, ...]]) -> tuple[float, ...]:
    """What ``make`` gives for this key, from memory or disk where it was made before.

    >>> remembered("an example", lambda: (1.0, 2.0))
    (1.0, 2.0)
    """
    whole = f"privcov {__version__}: {key}"
    if whole not in _MEMORY:
        found = _read(whole)
        if found is None:
            found = make()
            _write(whole, found)
        _MEMORY[whole] = found
    return _MEMORY[whole]


def known(key: str) -> bool:
    """Whether a key needs no simulation."""
    whole = f"privcov {__version__}: {key}"
    return whole in _MEMORY or _read(whole) is not None


def directory() -> Path | None:
    """Where cached numbers live: ``$PRIVCOV_CACHE``, or the user's cache; ``off`` keeps none."""
    given = os.environ.get("PRIVCOV_CACHE")
    if given == "off":
        return None
    if given:
        return Path(given)
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(home) / "privcov"


def _file(key: str) -> Path | None:
    place = directory()
    return None if place is None else place / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.json"


def _read(key: str) -> tuple[float, ...] | None:
    path = _file(key)
    if path is None:
        return None
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        numbers = tuple(float(value) for value in kept["numbers"])
        return numbers if kept["key"] == key and all(map(math.isfinite, numbers)) else None
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _write(key: str, numbers: tuple[float, ...]) -> None:
    path = _file(key)
    if path is None:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({"key": key, "numbers": numbers}, file)
        os.replace(temporary, path)
    except OSError:
        pass
