"""What a release promises: everything needed to defend it or to doubt it, and nothing about the data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from privcov.noise import NoiseLaw
from privcov.privacy import Loss
from privcov.shown import Shown
from privcov.version import __version__


@dataclass(frozen=True, kw_only=True)
class Certificate(Shown):
    """The promise of one release. Every field is public before the data is read."""

    mechanism: str
    options: Mapping[str, str]
    loss: Loss
    law: NoiseLaw | None
    """The law of additive noise; None for a mechanism that is not additive."""
    arithmetic: Literal["exact", "idealized"]
    randomness: Literal["kernel", "rehearsal"]
    proof: str
    timing: str
    version: str = __version__
    created: str = field(default_factory=lambda: datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))


def proof_address(proof: str, version: str) -> str:
    """How the page in the field ``proof`` of a certificate is told to people: it stays true when files move.

    ``proof``: as the certificate has it; what is no page of ours is given back unchanged. ``version``: that of the
    privcov that made the certificate.

    >>> proof_address("docs/proofs/gaussian.md", "0.1.0")
    'proofs/gaussian@0.1.0 (privcov proof gaussian)'
    """
    page = re.fullmatch(r"docs/(proofs/([a-z0-9-]+))\.md(?:#[a-z-]+)?", proof)
    return proof if page is None else f"{page[1]}@{version} (privcov proof {page[2]})"
