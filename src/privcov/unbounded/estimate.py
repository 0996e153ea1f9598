"""The public result: a mean, a covariance, and the promise they were made under. Blind to the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np

from privcov.linalg.arrays import Matrix
from privcov.privacy import ZCDP
from privcov.releases.documents import Written
from privcov.releases.signing import PrivateKey, PublicKey
from privcov.version import __version__

PROOF = "docs/proofs/unbounded.md"
TIMING = "running time is not claimed to be independent of the data"


@dataclass(frozen=True, kw_only=True)
class GaussianCertificate:
    """The promise of one estimate. Every field is public before the data is read.

    Attributes
    ----------
    mechanism : str
        The method.
    options : mapping of str to str
        The public facts that the estimate rests on.
    loss : ZCDP
        What the estimate cost.
    budget : tuple of (str, Fraction)
        What each round cost, in order; the shares add up to rho exactly.
    rows : int
        The number of rows, which is public under replace-one.
    arithmetic : {"exact"}
        The noise was sampled exactly in integers.
    randomness : {"kernel", "rehearsal"}
        Where the random bits came from. A rehearsal protects nobody.
    proof : str
        The page with the proof of the promise.
    timing : str
        What is claimed about the running time.
    version : str
        The version of privcov that made the estimate.
    created : str
        The time of its making, in UTC.

    Examples
    --------
    >>> import numpy as np, privcov as pc
    >>> loss = pc.ZCDP(rho="0.5", neighbours="replace-one")
    >>> made = pc.estimate_gaussian(np.eye(4), loss=loss, largest_variance=9, rounds=2).certificate
    >>> made.mechanism, made.rows, sum(share for _, share in made.budget) == loss.rho
    ('coinpress', 4, True)
    """

    mechanism: str
    options: Mapping[str, str]
    loss: ZCDP
    budget: tuple[tuple[str, Fraction], ...]
    rows: int
    arithmetic: Literal["exact"]
    randomness: Literal["kernel", "rehearsal"]
    proof: str = PROOF
    timing: str = TIMING
    version: str = __version__
    created: str = field(default_factory=lambda: datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))


@dataclass(frozen=True, kw_only=True, eq=False)
class GaussianEstimate(Written):
    """A private mean and covariance of unbounded rows, in original units.

    Attributes
    ----------
    columns : tuple of str
        The names of the columns.
    mean : ndarray of shape (d,), or None
        The mean; None where none was asked for.
    covariance : ndarray of shape (d, d)
        The covariance, positive semi-definite.
    certificate : GaussianCertificate
        What was promised, and what each round cost.
    signer : PublicKey or None
        The key whose signature ``load`` checked. None for an estimate that was made here, or is not signed.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np, privcov as pc
    >>> from privcov import unbounded
    >>> loss = pc.ZCDP(rho="0.5", neighbours="replace-one")
    >>> made = pc.estimate_gaussian(np.eye(4), loss=loss, largest_variance=9, rounds=2)
    >>> made.to_dict()["format"], b"".join(made.file_bytes()) == made.to_json().encode("ascii")
    ('privcov/gaussian-estimate/1', True)
    >>> path = tempfile.mkdtemp() + "/people.estimate.json"
    >>> made.save(path)
    >>> bool((unbounded.load(path).covariance == made.covariance).all())
    True
    """

    columns: tuple[str, ...]
    mean: Matrix | None
    covariance: Matrix
    certificate: GaussianCertificate
    signer: PublicKey | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        for name in ("mean", "covariance"):
            if getattr(self, name) is not None:
                value = np.array(getattr(self, name), dtype=np.float64)
                value.flags.writeable = False
                object.__setattr__(self, name, value)

    def to_dict(self, *, key: PrivateKey | None = None) -> dict[str, Any]:
        """Return the estimate as the JSON values of its file.

        Parameters
        ----------
        key : PrivateKey, optional
            The key to sign with. Without one the document carries a digest, and no signature.

        Returns
        -------
        dict
            The document.
        """
        from privcov.unbounded import codec

        return codec.encode(self, key=key)

    def _repr_html_(self) -> str:
        from privcov.unbounded.page import shown  # on use, as everything that draws

        return shown(self)

    def __repr__(self) -> str:
        made = self.certificate
        return f"<GaussianEstimate of {len(self.columns)} columns, {made.rows} rows: {made.mechanism}, {made.loss}>"


def load(path: str | Path, *, signed_by: PublicKey | None = None) -> GaussianEstimate:
    """Read an estimate from its file, after strict validation.

    Parameters
    ----------
    path : str or Path
        The file.
    signed_by : PublicKey, optional
        The key that must have signed the file. Without one an unsigned file is read too.

    Returns
    -------
    GaussianEstimate
        The estimate. Its ``signer`` is the key whose signature holds, or None.

    Raises
    ------
    ReleaseError
        The file cannot be read or has another format (E6xx).
    VerificationError
        The digest or the signature does not hold, or another key signed it.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np, privcov as pc
    >>> from privcov import unbounded
    >>> loss = pc.ZCDP(rho="0.5", neighbours="replace-one")
    >>> path = tempfile.mkdtemp() + "/people.estimate.json"
    >>> pc.estimate_gaussian(np.eye(4), loss=loss, largest_variance=9, rounds=2).save(path)
    >>> unbounded.load(path).certificate.rows
    4
    """
    from privcov.unbounded import codec

    estimate, signer = codec.read(path, signed_by=signed_by)
    object.__setattr__(estimate, "signer", signer)  # no argument: a copy with other contents has no signer
    return estimate


def mahalanobis_error(estimated: Matrix, truth: Matrix) -> float:
    """Return ‖Σ^-½ Σ̂ Σ^-½ − I‖_F: the error in units of the truth, the same for every choice of units.

    Parameters
    ----------
    estimated : ndarray of shape (d, d)
        The estimated covariance Σ̂.
    truth : ndarray of shape (d, d)
        The true covariance Σ, positive definite, in the same units.

    Returns
    -------
    float
        The error, without unit; 0 is perfect.

    Raises
    ------
    LinAlgError
        The truth is not positive definite.

    Examples
    --------
    >>> import numpy as np
    >>> from privcov.unbounded import mahalanobis_error
    >>> round(mahalanobis_error(np.diag([1.1, 110.0]), np.diag([1.0, 100.0])), 3)
    0.141
    """
    root = np.linalg.inv(np.linalg.cholesky(truth))
    return float(np.linalg.norm(root @ estimated @ root.T - np.eye(len(truth))))
