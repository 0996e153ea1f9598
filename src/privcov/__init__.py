"""privcov: publish a differentially private covariance matrix once, and answer from it for free.

>>> import privcov as pc
>>> schema = pc.Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}}})
>>> loss = pc.PureDP(epsilon=1, neighbours="replace-one")

Start reading at ``privcov/publish/release.py``: pay, draw, read, sum, certify.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from privcov.text import display as _display
from privcov.version import __version__

if sys.platform == "win32":
    raise ImportError(
        "privcov runs on Linux and macOS, not on Windows itself, whose files cannot be locked and replaced as a budget"
        " that must not be overspent needs it: install and run it inside WSL, the Windows Subsystem for Linux."
    )

if TYPE_CHECKING:
    from privcov.errors import PrivcovError as PrivcovError
    from privcov.estimators import PrivateCovariance as PrivateCovariance
    from privcov.estimators import PrivateLinearRegression as PrivateLinearRegression
    from privcov.estimators import PrivatePCA as PrivatePCA
    from privcov.estimators import PrivateRidge as PrivateRidge
    from privcov.ledger import Ledger as Ledger
    from privcov.models.directional import directional_variance as directional_variance
    from privcov.models.ols import ols as ols
    from privcov.models.pca import pca as pca
    from privcov.models.ridge import ridge as ridge
    from privcov.models.ridge import ridge_path as ridge_path
    from privcov.models.strata import differences as differences
    from privcov.models.strata import shrunk as shrunk
    from privcov.planning.invert import required_loss as required_loss
    from privcov.planning.invert import required_rows as required_rows
    from privcov.planning.plan import accuracy as accuracy
    from privcov.planning.plan import plan as plan
    from privcov.privacy import ZCDP as ZCDP
    from privcov.privacy import ApproxDP as ApproxDP
    from privcov.privacy import Neighbours as Neighbours
    from privcov.privacy import PureDP as PureDP
    from privcov.publish.check import check as check
    from privcov.publish.release import release as release
    from privcov.publish.surrogate import surrogate as surrogate
    from privcov.releases.loading import load as load
    from privcov.releases.loading import load_strata as load_strata
    from privcov.releases.release import Release as Release
    from privcov.releases.strata import StratifiedRelease as StratifiedRelease
    from privcov.report.doubts import Doubt as Doubt
    from privcov.report.doubts import doubts as doubts
    from privcov.schema import Schema as Schema
    from privcov.table.spool import spooled as spooled
    from privcov.unbounded.entry import estimate_gaussian as estimate_gaussian
    from privcov.verification.verify import verify as verify

# Imported on first use: `privcov --help` must answer before NumPy could have been loaded.
_HOMES = {
    "Schema": "privcov.schema",
    "PureDP": "privcov.privacy",
    "ApproxDP": "privcov.privacy",
    "ZCDP": "privcov.privacy",
    "Neighbours": "privcov.privacy",
    "Ledger": "privcov.ledger",
    "check": "privcov.publish.check",
    "release": "privcov.publish.release",
    "spooled": "privcov.table.spool",
    "Release": "privcov.releases.release",
    "load": "privcov.releases.loading",
    "StratifiedRelease": "privcov.releases.strata",
    "load_strata": "privcov.releases.loading",
    "ols": "privcov.models.ols",
    "doubts": "privcov.report.doubts",
    "Doubt": "privcov.report.doubts",
    "directional_variance": "privcov.models.directional",
    "ridge": "privcov.models.ridge",
    "ridge_path": "privcov.models.ridge",
    "pca": "privcov.models.pca",
    "differences": "privcov.models.strata",
    "shrunk": "privcov.models.strata",
    "estimate_gaussian": "privcov.unbounded.entry",
    "plan": "privcov.planning.plan",
    "accuracy": "privcov.planning.plan",
    "required_loss": "privcov.planning.invert",
    "required_rows": "privcov.planning.invert",
    "surrogate": "privcov.publish.surrogate",
    "verify": "privcov.verification.verify",
    "PrivateCovariance": "privcov.estimators",
    "PrivateLinearRegression": "privcov.estimators",
    "PrivatePCA": "privcov.estimators",
    "PrivateRidge": "privcov.estimators",
    "PrivcovError": "privcov.errors",
}

# `from privcov import *` must not need scikit-learn.
__all__ = [*(name for name, home in _HOMES.items() if home != "privcov.estimators"), "__version__"]


def _drawn(result: object) -> str:
    """A result as HTML: what draws it is above all results, and is imported when a notebook asks."""
    html: str = import_module("privcov.report.notebook").shown(result)
    return html


def _written(result: object) -> str:
    """A result as text for people."""
    text: str = import_module("privcov.report.notebook").printed(result)
    return text


_display.shown_by(write=_written, draw=_drawn)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'privcov' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*_HOMES, "__version__"])
