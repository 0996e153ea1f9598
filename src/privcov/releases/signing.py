"""Who made a file: Ed25519 keys, signatures, and the seal that a document carries about itself.

A seal is either the SHA-256 of the document's canonical bytes, which finds accidents, or an Ed25519 signature
of those bytes with the public key beside it, which finds everything that was done without the private key.
The arithmetic is that of the library ``cryptography``, which the extra ``sign`` brings; it is imported on use.
What a signature promises and what it does not: docs/explain/signing.md.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from types import ModuleType
from typing import Any, NoReturn

from privcov.errors import ReleaseError, VerificationError
from privcov.noise.randomness import kernel

_CONSONANTS, _VOWELS = "bdfghjklmnprstvz", "aiou"
_FINGERPRINT_BYTES = 16


@dataclass(frozen=True, repr=False)
class PublicKey:
    """The half of a key that everybody may have: it tells whether a signature was made with the private half.

    Parameters
    ----------
    raw : bytes
        The 32 bytes of an Ed25519 public key.

    Raises
    ------
    ValueError
        There are not exactly 32 bytes.

    Examples
    --------
    >>> PublicKey(bytes(32)).fingerprint
    'kinom-lopot-zodof-rujul-kufaz-sakar-mupiz-mumob'
    """

    raw: bytes

    def __post_init__(self) -> None:
        if type(self.raw) is not bytes or len(self.raw) != 32:
            raise ValueError("an Ed25519 public key has 32 bytes")

    @property
    def fingerprint(self) -> str:
        """Eight words to compare by eye or over the telephone, made of 128 bits of the SHA-256 of the key.

        A word is two bytes, spelt as consonant-vowel-consonant-vowel-consonant (Wilkerson's proquints).
        """
        digest = hashlib.sha256(self.raw).digest()[:_FINGERPRINT_BYTES]
        return "-".join(_word(digest[i : i + 2]) for i in range(0, len(digest), 2))

    def verifies(self, message: bytes, signature: bytes) -> bool:
        """Say whether this signature of these bytes was made with the private half of this key.

        Parameters
        ----------
        message : bytes
            What was signed.
        signature : bytes
            The 64 bytes of the signature.

        Returns
        -------
        bool
            Whether the signature holds.

        Raises
        ------
        ReleaseError
            The extra ``sign`` is not installed (E607).

        Examples
        --------
        >>> key = keygen()
        >>> key.public.verifies(b"text", key.sign(b"text")), key.public.verifies(b"other", key.sign(b"text"))
        (True, False)
        """
        key = ed25519().Ed25519PublicKey.from_public_bytes(self.raw)
        from cryptography.exceptions import InvalidSignature

        try:
            key.verify(signature, message)
        except InvalidSignature:
            return False
        return True

    def __repr__(self) -> str:
        return f"<PublicKey {self.fingerprint}>"


class PrivateKey:
    """The half of a key that the steward alone has. It signs; it is never shown, compared or pickled.

    Parameters
    ----------
    raw : bytes
        The 32 secret bytes of an Ed25519 key. ``keygen`` makes them; ``read_private`` reads them from a file.

    Raises
    ------
    ReleaseError
        The extra ``sign`` is not installed (E607).

    Examples
    --------
    >>> key = keygen()
    >>> len(key.sign(b"text")), len(key.public.raw)
    (64, 32)
    """

    def __init__(self, raw: bytes) -> None:
        self._key = ed25519().Ed25519PrivateKey.from_private_bytes(raw)

    @property
    def public(self) -> PublicKey:
        """The public half, to hand out."""
        return PublicKey(self._key.public_key().public_bytes_raw())

    def sign(self, message: bytes) -> bytes:
        """Return the signature of exactly these bytes; signing them again gives the same one.

        Parameters
        ----------
        message : bytes
            What is to be signed.

        Returns
        -------
        bytes
            The 64 bytes of the signature.
        """
        return bytes(self._key.sign(message))

    def reveal_to_key_file(self) -> bytes:
        """Return the secret itself, for ``privcov.releases.keyfiles`` alone.

        Returns
        -------
        bytes
            The 32 secret bytes.
        """
        return bytes(self._key.private_bytes_raw())

    def __repr__(self) -> str:
        return f"<PrivateKey of {self.public!r}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a private key cannot be pickled: write it with privcov.releases.keyfiles")


def keygen() -> PrivateKey:
    """Make a fresh signing key from the kernel's randomness.

    Returns
    -------
    PrivateKey
        The key; its ``public`` half is for the readers of releases.

    Raises
    ------
    ReleaseError
        The extra ``sign`` is not installed (E607).
    RandomnessError
        The kernel gives no randomness (E501).

    Examples
    --------
    >>> key = keygen()
    >>> key.public.verifies(b"text", key.sign(b"text")), key.public.verifies(b"text!", key.sign(b"text"))
    (True, False)
    """
    return PrivateKey(kernel().words(4).tobytes())


def seal(message: bytes, key: PrivateKey | None = None) -> dict[str, str]:
    """The ``signature`` field of a document whose other fields have these canonical bytes.

    >>> seal(b"")["value"][:16]
    'e3b0c44298fc1c14'
    """
    if key is None:
        return {"algorithm": "sha256", "value": hashlib.sha256(message).hexdigest()}
    return {"algorithm": "ed25519", "key": key.public.raw.hex(), "value": key.sign(message).hex()}


def is_signature(seal: object) -> bool:
    """Whether a seal claims to be a signature, true or false."""
    return isinstance(seal, dict) and seal.get("algorithm") == "ed25519"


def check_seal(given: Any, message: bytes, *, what: str) -> PublicKey | None:
    """The key that signed these bytes, or None where the seal is a digest; a seal that fails is refused."""
    if not is_signature(given):
        if given != seal(message):
            raise VerificationError(
                "E603",
                f"the {what} was changed after it was made: its digest does not match.",
                "Ask for the original.",
            )
        return None
    if set(given) != {"algorithm", "key", "value"}:
        raise ReleaseError(
            "E601", f"this is not a valid {what}: its signature has a missing or unknown field."
        )
    signer, signature = PublicKey(_bytes(given["key"], 32)), _bytes(given["value"], 64)
    if not signer.verifies(message, signature):
        raise VerificationError(
            "E605",
            f"the {what} was changed after it was signed, or was signed with a key other than the one it names.",
            "Ask for the original.",
        )
    return signer


def _bytes(text: object, count: int) -> bytes:
    """Lower-case hexadecimal, so that a signature is written in one way only."""
    if type(text) is not str or not re.fullmatch(f"[0-9a-f]{{{2 * count}}}", text):
        raise ValueError("not hexadecimal of the right length")
    return bytes.fromhex(text)


def _word(pair: bytes) -> str:
    bits = int.from_bytes(pair)
    letters = [(_CONSONANTS, 12), (_VOWELS, 10), (_CONSONANTS, 6), (_VOWELS, 4), (_CONSONANTS, 0)]
    return "".join(alphabet[(bits >> shift) % len(alphabet)] for alphabet, shift in letters)


def ed25519() -> ModuleType:
    """The module of the library ``cryptography`` that knows Ed25519, or what to install."""
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519 as module
    except ModuleNotFoundError:
        raise ReleaseError(
            "E607",
            "signatures cannot be made or checked here: the library cryptography is not installed.",
            "Install it with: pip install 'privcov[sign]'",
        ) from None
    return module
