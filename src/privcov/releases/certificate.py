"""What a release promises: everything needed to defend it or to doubt it, and nothing about the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from privcov.noise.laws import NoiseLaw
from privcov.privacy import Loss
from privcov.text.display import Shown
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
