"""The public result: a mean, a covariance, and the promise they were made under. Blind to the data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privcov import files
from privcov.documents import to_text
from privcov.errors import OutputError
from privcov.privacy import ZCDP
from privcov.signing import PrivateKey, PublicKey
from privcov.version import __version__

Matrix = NDArray[np.float64]
PROOF = "docs/proofs/unbounded.md"
TIMING = "running time is not claimed to be independent of the data"


@dataclass(frozen=True, kw_only=True)
class GaussianCertificate:
    """The promise of one estimate. Every field is public before the data is read."""

    mechanism: str
    options: Mapping[str, str]
    loss: ZCDP
    budget: tuple[tuple[str, Fraction], ...]
    """What each round cost, in order; the shares add up to rho exactly."""
    rows: int
    arithmetic: Literal["exact"]
    randomness: Literal["kernel", "rehearsal"]
    proof: str = PROOF
    timing: str = TIMING
    version: str = __version__
    created: str = field(default_factory=lambda: datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))


@dataclass(frozen=True, kw_only=True, eq=False)
class GaussianEstimate:
    """A private mean and covariance; ``mean`` is None where none was asked for."""

    columns: tuple[str, ...]
    mean: Matrix | None
    covariance: Matrix
    certificate: GaussianCertificate
    signer: PublicKey | None = field(default=None, init=False)
    """The key whose signature ``load`` found to hold; None for an estimate that was made here, or not signed."""

    def __post_init__(self) -> None:
        for name in ("mean", "covariance"):
            if getattr(self, name) is not None:
                value = np.array(getattr(self, name), dtype=np.float64)
                value.flags.writeable = False
                object.__setattr__(self, name, value)

    def to_dict(self, *, key: PrivateKey | None = None) -> dict[str, Any]:
        """The estimate as the JSON values of its file, signed where a key is given."""
        from privcov.unbounded import codec

        return codec.encode(self, key=key)

    def to_json(self, *, key: PrivateKey | None = None) -> str:
        """The canonical text of the file, signed where a key is given; a rehearsal has none."""
        if self.certificate.randomness != "kernel":
            raise OutputError(
                "E402",
                "a rehearsal is not a release: its noise can be repeated, so it protects nobody.",
                "Estimate without a seed.",
            )
        return to_text(self.to_dict(key=key))

    def file_bytes(self, *, key: PrivateKey | None = None) -> Iterator[bytes]:
        """The file in pieces, of which there is one."""
        yield self.to_json(key=key).encode("ascii")

    def save(self, path: str | Path, *, key: PrivateKey | None = None, force: bool = False) -> None:
        """Write the file, whole or not at all. Without a key it is unsigned, even if it was loaded signed."""
        files.write(path, self.file_bytes(key=key), force=force)

    def _repr_html_(self) -> str:
        from privcov.unbounded.page import shown  # on use, as everything that draws

        return shown(self)

    def __repr__(self) -> str:
        made = self.certificate
        return f"<GaussianEstimate of {len(self.columns)} columns, {made.rows} rows: {made.mechanism}, {made.loss}>"


def load(path: str | Path, *, signed_by: PublicKey | None = None) -> GaussianEstimate:
    """An estimate from its file, after strict validation; with ``signed_by``, only one that this key signed."""
    from privcov.unbounded import codec

    estimate, signer = codec.read(path, signed_by=signed_by)
    object.__setattr__(estimate, "signer", signer)  # no argument: a copy with other contents has no signer
    return estimate


def mahalanobis_error(estimated: Matrix, truth: Matrix) -> float:
    """‖Σ^-½ Σ̂ Σ^-½ − I‖_F: the error in units of the truth, the same for every choice of units.

    >>> round(mahalanobis_error(np.diag([1.1, 110.0]), np.diag([1.0, 100.0])), 3)
    0.141
    """
    root = np.linalg.inv(np.linalg.cholesky(truth))
    return float(np.linalg.norm(root @ estimated @ root.T - np.eye(len(truth))))
