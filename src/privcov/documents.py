"""JSON documents of a closed form: written in one way only, read back with suspicion.

Canonical text has sorted keys, ASCII, and no floats. A document carries the SHA-256 of its own canonical
bytes, which finds accidents and careless edits; it is no proof of origin.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from privcov.errors import PrivcovError, ReleaseError

MAX_BYTES = 256 * 2**20
T = TypeVar("T")


@dataclass(frozen=True)
class Form:
    """A kind of document: what a person calls it, and the versioned name in its ``format`` field."""

    what: str
    format: str

    def read(self, path: str | Path) -> object:
        """The JSON values of a file of this form."""
        try:
            with Path(path).open("rb") as file:
                content = file.read(MAX_BYTES + 1)
        except OSError as reason:
            raise ReleaseError("E604", f"cannot read {path}: {reason.strerror}.") from None
        if len(content) > MAX_BYTES:
            raise ReleaseError("E601", f"{path} is larger than any {self.what}.")
        try:
            return self.parse(content.decode("ascii"))
        except UnicodeDecodeError:
            raise ReleaseError("E601", f"this is no {self.what} file: it is not plain ASCII text.") from None

    def parse(self, text: str) -> object:
        """JSON values from text, without duplicate keys, floats or unreasonable nesting, of this version."""
        try:
            document = json.loads(
                text, object_pairs_hook=_no_duplicates, parse_float=_refuse, parse_constant=_refuse
            )
        except (ValueError, RecursionError):
            raise ReleaseError(
                "E601", f"this is no {self.what} file: it is truncated or not JSON.", "Ask for the original."
            ) from None
        given = document.get("format") if isinstance(document, dict) else None
        if given == self.format:
            return document
        family = re.escape(self.format.rpartition("/")[0])
        if isinstance(given, str) and re.fullmatch(family + r"/[0-9]{1,6}", given):
            raise ReleaseError(
                "E602",
                f"this {self.what} has format {given}; this version reads {self.format}.",
                "Upgrade privcov.",
            )
        raise ReleaseError("E601", f"this is no {self.what} file: it has no known format field.")

    def sealed(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The document with its format and its digest."""
        whole = {"format": self.format, **body}
        return {**whole, "signature": _digest(whole)}

    def unsealed(self, document: object, names: str) -> dict[str, Any]:
        """The fields of a document that has exactly these, after its digest was checked."""
        given = self.fields(document, f"format signature {names}")
        body = {word: value for word, value in given.items() if word != "signature"}
        if given["signature"] != _digest(body):
            raise ReleaseError(
                "E603",
                f"the {self.what} was changed after it was made: its digest does not match.",
                "Ask for the original.",
            )
        return given

    def fields(self, value: object, names: str) -> dict[str, Any]:
        """A JSON object that has exactly these fields."""
        if not isinstance(value, dict) or set(value) != set(names.split()):
            raise ReleaseError(
                "E601", f"this is not a valid {self.what}: it has a missing or an unknown field."
            )
        return value

    def decoded(self, document: object, decode: Callable[[object], T]) -> T:
        """What ``decode`` makes of a document; whatever it trips over makes the document invalid."""
        try:
            return decode(document)
        except ReleaseError:
            raise
        except (PrivcovError, KeyError, TypeError, ValueError, AttributeError, ArithmeticError):
            raise ReleaseError(
                "E601", f"this is not a valid {self.what}: a field is missing or malformed."
            ) from None


def to_text(document: Mapping[str, Any]) -> str:
    """Canonical text: equal documents give equal bytes."""
    return (
        json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False) + "\n"
    )


def _digest(body: Mapping[str, Any]) -> dict[str, str]:
    return {"algorithm": "sha256", "value": hashlib.sha256(to_text(body).encode("ascii")).hexdigest()}


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({word for word, _ in pairs}) != len(pairs):
        raise ValueError("duplicate key")
    return dict(pairs)


def _refuse(_: str) -> Any:
    raise ValueError("numbers that are not whole are written as texts")
