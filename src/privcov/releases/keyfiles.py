"""Keys as files: the private half readable by its owner alone, neither half ever overwritten.

``steward.key`` is PEM PKCS#8, with a passphrase where one is given; ``steward.pub`` is PEM
SubjectPublicKeyInfo. Both are what OpenSSL reads and writes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO

from privcov.errors import OutputError, ReleaseError
from privcov.releases.signing import PrivateKey, PublicKey, ed25519
from privcov.text import files

_MAX_BYTES = 2**16


def write(name: str | Path, key: PrivateKey, *, passphrase: bytes | None = None) -> tuple[Path, Path]:
    """Write a key as two files, NAME.key and NAME.pub; both or neither.

    Parameters
    ----------
    name : str or Path
        The path of both files, without their endings.
    key : PrivateKey
        The key to write.
    passphrase : bytes, optional
        What protects the private file. Without one, only its file permissions do.

    Returns
    -------
    tuple of Path
        The private file, which its owner alone can read, and the public file.

    Raises
    ------
    OutputError
        One of the files is there already, or cannot be written (E401).

    Examples
    --------
    >>> import tempfile
    >>> from privcov.releases.signing import keygen
    >>> private, public = write(tempfile.mkdtemp() + "/steward", keygen())
    >>> private.name, public.name
    ('steward.key', 'steward.pub')
    """
    private, public = Path(f"{name}.key"), Path(f"{name}.pub")
    for path in (private, public):
        if os.path.lexists(path):
            raise OutputError(
                "E401", f"{path} already exists.", "Choose another name: a key is never overwritten."
            )
        files.check_writable(path, force=False)
    _write_private(private, _private_pem(key, passphrase))
    try:
        files.write(public, _public_pem(key.public).decode("ascii"), force=False)
    except BaseException:
        private.unlink()
        raise
    return private, public


def read_private(path: str | Path, *, passphrase: bytes | None = None) -> PrivateKey:
    """Read a private key from a file that nobody else may read.

    Parameters
    ----------
    path : str or Path
        The file, PEM PKCS#8.
    passphrase : bytes, optional
        The passphrase, where the file has one.

    Returns
    -------
    PrivateKey
        The key, to sign with.

    Raises
    ------
    ReleaseError
        The file cannot be read (E604), others can read it too, the passphrase is missing or wrong, or it holds
        no such key (E608).

    Examples
    --------
    >>> import tempfile
    >>> from privcov.releases.signing import keygen
    >>> key = keygen()
    >>> private, _ = write(tempfile.mkdtemp() + "/steward", key, passphrase=b"correct horse")
    >>> read_private(private, passphrase=b"correct horse").public == key.public
    True
    """
    content = read_secret(path)
    load: Any = _serialization().load_pem_private_key
    try:
        key = load(content, passphrase)
    except TypeError:  # the library's word for a passphrase too few or too many
        if passphrase is None:
            raise ReleaseError(
                "E608", f"{path} needs its passphrase.", "Give --passphrase-file or PRIVCOV_KEY_PASSPHRASE."
            ) from None
        raise ReleaseError(
            "E608", f"{path} is not protected by a passphrase, but one was given.", "Leave it out."
        ) from None
    except Exception:  # the library's reasons are many, and could quote the file
        raise _unusable(path, "private", ", or the passphrase is wrong") from None
    if not isinstance(key, ed25519().Ed25519PrivateKey):
        raise _unusable(path, "private")
    return PrivateKey(key.private_bytes_raw())


def read_public(path: str | Path) -> PublicKey:
    """Read a public key from a file.

    Parameters
    ----------
    path : str or Path
        The file, PEM SubjectPublicKeyInfo.

    Returns
    -------
    PublicKey
        The key, to verify releases with.

    Raises
    ------
    ReleaseError
        The file cannot be read (E604) or holds no such key (E608).

    Examples
    --------
    >>> import tempfile
    >>> from privcov.releases.signing import keygen
    >>> key = keygen()
    >>> _, public = write(tempfile.mkdtemp() + "/steward", key)
    >>> read_public(public) == key.public
    True
    """
    with _opened(path, files.opened) as file:
        content = file.read(_MAX_BYTES)
    load: Any = _serialization().load_pem_public_key
    try:
        key = load(content)
    except Exception:
        raise _unusable(path, "public") from None
    if not isinstance(key, ed25519().Ed25519PublicKey):
        raise _unusable(path, "public")
    return PublicKey(key.public_bytes_raw())


def read_secret(path: str | Path) -> bytes:
    """The bytes of a file that its group and everybody else cannot read; any other is refused, as ssh does.

    It may be a pipe, as a shell makes one for a command that knows a passphrase.
    """
    with _opened(path, lambda path: Path(path).open("rb")) as file:
        if os.name == "posix" and os.fstat(file.fileno()).st_mode & 0o077:
            raise ReleaseError(
                "E608", f"{path} can be read by others, so it is not secret.", f"Run: chmod 600 {path}"
            )
        return bytes(file.read(_MAX_BYTES))


def _opened(path: str | Path, way: Callable[[str | Path], BinaryIO]) -> BinaryIO:
    try:
        return way(path)
    except OSError as reason:
        raise ReleaseError("E604", f"cannot read {path}: {reason.strerror}.") from None


def _write_private(path: Path, content: bytes) -> None:
    """Created by us or not at all, and never readable by anyone else, not even for a moment."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as reason:
        raise OutputError("E401", f"cannot write {path}: {reason.strerror}.") from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError as reason:
        path.unlink()
        raise OutputError("E401", f"cannot write {path}: {reason.strerror}.") from None


def _private_pem(key: PrivateKey, passphrase: bytes | None) -> bytes:
    formats = _serialization()
    cipher = formats.NoEncryption() if passphrase is None else formats.BestAvailableEncryption(passphrase)
    opened = ed25519().Ed25519PrivateKey.from_private_bytes(key.reveal_to_key_file())
    return bytes(opened.private_bytes(formats.Encoding.PEM, formats.PrivateFormat.PKCS8, cipher))


def _public_pem(key: PublicKey) -> bytes:
    formats = _serialization()
    opened = ed25519().Ed25519PublicKey.from_public_bytes(key.raw)
    return bytes(opened.public_bytes(formats.Encoding.PEM, formats.PublicFormat.SubjectPublicKeyInfo))


def _serialization() -> ModuleType:
    ed25519()  # says what to install where the library is missing
    from cryptography.hazmat.primitives import serialization

    return serialization


def _unusable(path: str | Path, half: str, otherwise: str = "") -> ReleaseError:
    return ReleaseError(
        "E608", f"{path} is not a {half} Ed25519 key in PEM{otherwise}.", "See privcov keygen."
    )
