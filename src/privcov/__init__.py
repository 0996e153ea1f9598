"""privcov: publish a differentially private covariance matrix once, and answer from it for free.

>>> import privcov as pc
>>> schema = pc.Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}}})
>>> loss = pc.PureDP(epsilon=1, neighbours="replace-one")

Start reading at ``privcov/publish.py``: pay, draw, read, sum, certify.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from privcov.version import __version__

if TYPE_CHECKING:
    from privcov.errors import PrivcovError as PrivcovError
    from privcov.privacy import ZCDP as ZCDP
    from privcov.privacy import ApproxDP as ApproxDP
    from privcov.privacy import Neighbours as Neighbours
    from privcov.privacy import PureDP as PureDP
    from privcov.publish import release as release
    from privcov.released import Release as Release
    from privcov.released import load as load
    from privcov.schema import Schema as Schema

# Imported on first use: `privcov --help` must answer before NumPy could have been loaded.
_HOMES = {
    "Schema": "privcov.schema",
    "PureDP": "privcov.privacy",
    "ApproxDP": "privcov.privacy",
    "ZCDP": "privcov.privacy",
    "Neighbours": "privcov.privacy",
    "release": "privcov.publish",
    "Release": "privcov.released",
    "load": "privcov.released",
    "PrivcovError": "privcov.errors",
}

__all__ = [*_HOMES, "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'privcov' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
