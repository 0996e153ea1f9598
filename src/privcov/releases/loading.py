"""Reading a release, or the strata of one, back from its file."""

from __future__ import annotations

from pathlib import Path

from privcov.releases import codec
from privcov.releases.release import Release, assembled
from privcov.releases.signing import PublicKey
from privcov.releases.strata import FORM, StratifiedRelease, unsealed


def load(path: str | Path, *, signed_by: PublicKey | None = None, stratum: str | None = None) -> Release:
    """Read a release from its file, after strict validation.

    Parameters
    ----------
    path : str or Path
        The release file.
    signed_by : PublicKey, optional
        The key that must have signed the file. Without one an unsigned file is read too, and a signature is
        checked where there is one.
    stratum : str, optional
        Of a file with several strata (``load_strata``), the one to return; "total" is their sum, and so is "(total)",
        where a stratum is called total.

    Returns
    -------
    Release
        The release. Its ``signer`` is the key whose signature holds, or None.

    Raises
    ------
    ReleaseError
        The file cannot be read or has another format (E6xx), or a signature cannot be checked because the extra
        ``sign`` is not installed (E607).
    VerificationError
        The digest or the signature does not hold, or another key signed it.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np, privcov as pc
    >>> schema = pc.Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}}})
    >>> loss = pc.PureDP(epsilon=1, neighbours="replace-one")
    >>> path = tempfile.mkdtemp() + "/people.release.json"
    >>> pc.release(np.full((9, 1), 80.0), schema=schema, loss=loss).save(path)
    >>> pc.load(path).rows
    9
    """
    if stratum is not None:
        return load_strata(path, signed_by=signed_by).part(stratum)
    parts, signer = codec.read(path, signed_by=signed_by)
    release = assembled(parts)
    object.__setattr__(release, "signer", signer)  # no argument: a copy with other contents has no signer
    return release


def load_strata(path: str | Path, *, signed_by: PublicKey | None = None) -> StratifiedRelease:
    """Read a release of several strata from its file, after strict validation.

    Parameters
    ----------
    path : str or Path
        The file.
    signed_by : PublicKey, optional
        The key that must have signed the file. Without one an unsigned file is read too, and a signature is
        checked where there is one.

    Returns
    -------
    StratifiedRelease
        The strata. Their ``signer`` is the key whose signature holds, or None.

    Raises
    ------
    ReleaseError
        The file cannot be read or has another format (E6xx), such as that of a single release (E615).
    VerificationError
        The digest or the signature does not hold, or another key signed it.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np, privcov as pc
    >>> columns = {"age": {"lower": 0, "upper": 100}, "area": {"levels": [1, 2]}}
    >>> loss = pc.PureDP(epsilon=1, neighbours="add-remove")
    >>> made = pc.release(np.ones((9, 2)), schema=pc.Schema.from_dict({"columns": columns}), loss=loss, by="area")
    >>> path = tempfile.mkdtemp() + "/areas.release.json"
    >>> made.save(path)
    >>> pc.load_strata(path) == made, pc.load(path, stratum="2") == made["2"]
    (True, True)
    """
    made, signer = FORM.read(path, unsealed, signed_by=signed_by)
    object.__setattr__(made, "signer", signer)
    return made
