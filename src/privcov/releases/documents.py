"""JSON documents of a closed form: written in one way only, read back with suspicion.

Canonical text has sorted keys, ASCII, and no floats. A document carries a seal over the canonical bytes of its
other fields: their SHA-256, which finds accidents and careless edits and is no proof of origin, or a
signature (``signing.py``), which is one to whoever knows the key. A document may be the head of a file, its first
line, and name the digest of a body of bytes that follows.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypeVar

from privcov.errors import OutputError, PrivcovError, ReleaseError, VerificationError
from privcov.releases.signing import PrivateKey, PublicKey, check_seal, seal
from privcov.text import files
from privcov.text.grammar import printable

MAX_BYTES = 256 * 2**20
_MOST_DIGITS = 18
"""Of a number that is no text: a count of rows, of persons' rows, of bytes."""
_NAMES_A_BODY = b'"matrix":{"body":{'
"""Only a head has these bytes: within a JSON text quotes are escaped."""
T = TypeVar("T")


ESTIMATE = "privcov/gaussian-estimate/"
"""How the format of an estimate begins: people take its file for a release."""


@dataclass(frozen=True)
class Form:
    """A kind of document: what a person calls it, and the versioned name in its ``format`` field."""

    what: str
    format: str

    def read(
        self, path: str | Path, decode: Callable[..., T], *, signed_by: PublicKey | None = None
    ) -> tuple[T, PublicKey | None]:
        """What ``decode`` makes of a file, and the key that signed it; with ``signed_by``, of that key alone.

        Who signed is known before any field is read.
        """
        with opened(path, what=self.what) as (text, body):
            document = self.parse(text, where=str(path))
            signer = self.signer(document)
            if signer is not None and to_text(document) != text:
                raise VerificationError(
                    "E606",
                    f"the {self.what} was rewritten after it was signed: privcov would write other bytes.",
                    "Ask for the original.",
                )
            if signed_by is not None and signer != signed_by:
                raise VerificationError(
                    "E605",
                    f"the {self.what} is not signed with the key {signed_by.fingerprint}.",
                    "Find out who made it.",
                )
            return self.decoded(document, decode, body), signer

    def parse(self, text: str, *, where: str = "this") -> dict[str, Any]:
        """JSON values from text, without duplicate keys, floats or unreasonable nesting, of this version."""
        return self.of_this_version(parse(text, what=self.what, where=where))

    def of_this_version(self, document: dict[str, Any]) -> dict[str, Any]:
        """The document, if it is of this form and version."""
        given = document["format"]
        if given == self.format:
            return document
        if re.fullmatch(re.escape(self.family) + r"/[0-9]{1,6}", given):
            raise ReleaseError(
                "E602",
                f"this {self.what} has format {given}; this version reads {self.format}.",
                "Upgrade privcov.",
            )
        if given.startswith(ESTIMATE) and self.what == "release":
            raise ReleaseError(
                "E620",
                "this is an estimate of unbounded data, not a release: the error of its numbers has no known "
                "distribution, so that no model is fitted to them.",
                "See it with privcov show or privcov report; for models make a release: privcov release --frame auto.",
            )
        if given.startswith("privcov/strata/"):
            raise ReleaseError(
                "E613",
                "this file holds a release of several strata.",
                "Name one (--stratum, or stratum= in Python), or read it with privcov.load_strata.",
            )
        if self.family == "privcov/strata" and given.startswith("privcov/release/"):
            raise ReleaseError(
                "E615", "this release has no strata.", "Leave the stratum out, and read it with load."
            )
        raise ReleaseError("E601", f"this is not a valid {self.what} file: it has no known format field.")

    @property
    def family(self) -> str:
        """The format without its version."""
        return self.format.rpartition("/")[0]

    def sealed(self, body: Mapping[str, Any], key: PrivateKey | None = None) -> dict[str, Any]:
        """The document with its format and its seal: a digest, or a signature where a key is given."""
        whole = {"format": self.format, **body}
        return {**whole, "signature": seal(_sealed_bytes(whole), key)}

    def signer(self, document: object) -> PublicKey | None:
        """The key that signed a document, None where its seal is a digest; a seal that fails is refused.

        No other field is looked at: what they say may be anything until the seal holds.
        """
        return self.decoded(document, self._signer)

    def _signer(self, document: Any) -> PublicKey | None:
        if document["format"] != self.format:
            raise ValueError("format")
        return check_seal(document["signature"], _sealed_bytes(document), what=self.what)

    def inside(self, document: object, names: str) -> dict[str, Any]:
        """These fields of a document that has them, a format and a seal, and no others. The seal is not checked."""
        given = self.fields(document, f"format signature {names}")
        return {name: given[name] for name in names.split()}

    def fields(self, value: object, names: str) -> dict[str, Any]:
        """A JSON object that has exactly these fields."""
        if not isinstance(value, dict) or set(value) != set(names.split()):
            raise ReleaseError(
                "E601", f"this is not a valid {self.what}: it has a missing or an unknown field."
            )
        return value

    def text(self, value: object, *, most: int) -> str:
        """A text of at most so many characters, each of which can be seen: it may be printed as it is."""
        if type(value) is not str or len(value) > most or not printable(value):
            raise ReleaseError(
                "E601",
                f"this is not a valid {self.what}: a text in it is too long, or has invisible characters.",
            )
        return value

    def texts(self, value: object, *, most: int) -> dict[str, str]:
        """Up to 64 texts by name, of at most so many characters; a name has at most 64."""
        if not isinstance(value, dict) or len(value) > 64:
            raise ReleaseError("E601", f"this is not a valid {self.what}: it has too many options.")
        return {self.text(word, most=64): self.text(text, most=most) for word, text in value.items()}

    def decoded(self, document: object, decode: Callable[..., T], body: BinaryIO | None = None) -> T:
        """What ``decode`` makes of a document, and of its body; whatever it trips over makes the document invalid."""
        try:
            return decode(document) if body is None else decode(document, body)
        except ReleaseError:
            raise
        except (
            PrivcovError,
            KeyError,
            TypeError,
            ValueError,
            AttributeError,
            ArithmeticError,
            RecursionError,
        ):
            raise ReleaseError(
                "E601", f"this is not a valid {self.what}: a field is missing or malformed."
            ) from None


class Drawn(Protocol):
    """A certificate, as far as it says where the noise came from."""

    @property
    def randomness(self) -> str: ...


class Written(ABC):
    """A public result that has a file of its own: a release, strata, an estimate."""

    certificate: Drawn

    @abstractmethod
    def to_dict(self, *, key: PrivateKey | None = None) -> dict[str, Any]:
        """The JSON values of the file, sealed; with a key, signed."""

    def to_json(self, *, key: PrivateKey | None = None) -> str:
        """Return the canonical text of the file.

        Of a wide release it is the head of the file, which names the digest of the matrix that follows.

        Parameters
        ----------
        key : PrivateKey, optional
            The key to sign with. Without one the text carries a digest, and no signature.

        Returns
        -------
        str
            JSON in ASCII; the same result gives the same text.

        Raises
        ------
        OutputError
            It is a rehearsal, which must not leave the house (E402).
        ReleaseError
            It is the sum over strata, which has no file of its own (E614).

        Examples
        --------
        >>> import numpy as np, privcov as pc
        >>> schema = pc.Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}}})
        >>> loss = pc.PureDP(epsilon=1, neighbours="replace-one")
        >>> '"privcov/release/1"' in pc.release(np.full((9, 1), 80.0), schema=schema, loss=loss).to_json()
        True
        """
        self._check_may_leave()
        return to_text(self.to_dict(key=key))

    def file_bytes(self, *, key: PrivateKey | None = None) -> Iterator[bytes | memoryview]:
        """Yield the file in pieces: its text, and the matrix of a release that is too wide for text.

        Parameters
        ----------
        key : PrivateKey, optional
            The key to sign with. Without one the file carries a digest, and no signature.

        Yields
        ------
        bytes or memoryview
            The next piece of the file.

        Raises
        ------
        OutputError
            It is a rehearsal (E402).

        Examples
        --------
        >>> import numpy as np, privcov as pc
        >>> schema = pc.Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}}})
        >>> loss = pc.PureDP(epsilon=1, neighbours="replace-one")
        >>> release = pc.release(np.full((9, 1), 80.0), schema=schema, loss=loss)
        >>> b"".join(release.file_bytes()) == release.to_json().encode("ascii")
        True
        """
        yield self.to_json(key=key).encode("ascii")
        yield from self._after_text()

    def _check_may_leave(self) -> None:
        """Refuse a file of what must not, or cannot, have one."""
        if self.certificate.randomness != "kernel":
            raise OutputError(
                "E402",
                "a rehearsal is not a release: its noise can be repeated, so it protects nobody.",
                "Make it again without a seed.",
            )

    def _after_text(self) -> Iterator[bytes | memoryview]:
        """What follows the text in the file, in pieces: nothing, but for a matrix that is too wide for text."""
        return iter(())

    def save(self, path: str | Path, *, key: PrivateKey | None = None, force: bool = False) -> None:
        """Write the file, whole or not at all.

        Parameters
        ----------
        path : str or Path
            Where to write it.
        key : PrivateKey, optional
            The key to sign with. Without one the file is unsigned, even if the result was loaded signed.
        force : bool, default False
            Whether to replace a file that is already there.

        Raises
        ------
        OutputError
            The file is there already or cannot be written (E401), or it is a rehearsal (E402).

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np, privcov as pc
        >>> schema = pc.Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}}})
        >>> loss = pc.PureDP(epsilon=1, neighbours="replace-one")
        >>> release = pc.release(np.full((9, 1), 80.0), schema=schema, loss=loss)
        >>> path = tempfile.mkdtemp() + "/people.release.json"
        >>> release.save(path)
        >>> pc.load(path) == release
        True
        """
        files.write(path, self.file_bytes(key=key), force=force)


_GIVE = "Give a file that privcov wrote, or ask for the original."


def to_text(document: Mapping[str, Any]) -> str:
    """Canonical text: equal documents give equal bytes."""
    return (
        json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False) + "\n"
    )


@contextmanager
def opened(path: str | Path, *, what: str) -> Iterator[tuple[str, BinaryIO | None]]:
    """The text of a file that could be a document; where it is a head, also the file, which goes on with the body."""
    try:
        with files.opened(path) as file:
            content = file.readline(MAX_BYTES + 1)
            is_head = _NAMES_A_BODY in content
            if not is_head:
                content += file.read(MAX_BYTES + 1 - len(content))
            if len(content) > MAX_BYTES:
                raise ReleaseError("E601", f"{path} is larger than any {what} can be.")
            try:
                text = content.decode("ascii")
            except UnicodeDecodeError:
                raise ReleaseError(
                    "E601", f"{path} is not a valid {what} file: it is not plain ASCII text.", _GIVE
                ) from None
            yield text, file if is_head else None
    except OSError as reason:
        raise ReleaseError("E604", f"cannot read {path}: {reason.strerror}.") from None


def parse(text: str, *, what: str, where: str = "this") -> dict[str, Any]:
    """A JSON object that names its format, without duplicate keys, floats or unreasonable nesting.

    ``where`` it was read is named in a refusal.
    """
    try:
        document = json.loads(
            text,
            object_pairs_hook=_no_duplicates,
            parse_int=_whole,
            parse_float=_refuse,
            parse_constant=_refuse,
        )
    except (ValueError, RecursionError):
        raise ReleaseError(
            "E601", f"{where} is not a valid {what} file: it is truncated or not JSON.", _GIVE
        ) from None
    if not isinstance(document, dict) or not isinstance(document.get("format"), str):
        raise ReleaseError(
            "E601", f"{where} is not a valid {what} file: it has no known format field.", _GIVE
        )
    return document


def _sealed_bytes(document: Mapping[str, Any]) -> bytes:
    """What a seal covers: the canonical text of everything but the seal, its newline included."""
    return to_text({word: value for word, value in document.items() if word != "signature"}).encode("ascii")


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({word for word, _ in pairs}) != len(pairs):
        raise ValueError("duplicate key")
    return dict(pairs)


def _whole(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise ValueError("numbers of many digits are written as texts")
    return int(text)


def _refuse(_: str) -> Any:
    raise ValueError("numbers that are not whole are written as texts")
