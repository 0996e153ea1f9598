"""The dialect that a header line suggests, and the names it then holds. No other line is looked at.

A proposal is for a person to confirm: ``privcov schema init`` writes it into the template. Where a header could be read
in two ways it is refused, with what was seen in it; its words are not repeated, as they are a person's row where a file
has no header.

>>> propose("Größe;Einkommen, netto;Alter".encode("latin-1")).words()
{'separator': ';', 'decimal': ',', 'encoding': 'latin-1'}
>>> propose(b"age\\tsex\\tincome").words()
{'separator': '\\t'}
"""

from __future__ import annotations

import codecs
import csv
import re
from collections import Counter
from collections.abc import Mapping

from privcov.errors import InputError
from privcov.schema.dialect import SEPARATORS, Dialect
from privcov.schema.names import canonical, fault

_UTF_16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_SINGLE_QUOTES = re.compile(r" *'[^']*' *(?:[,;\t|] *'[^']*' *)*")
"""A line in which every cell stands between single quotes."""
_HOW = "Give the separator with --separator; in a schema, under [file]."


def first_line(start: bytes) -> bytes:
    """The bytes before the first line end (LF, CRLF or CR) in the first bytes of a file, its mark included."""
    order = _UTF_16.get(start[:2])
    if order is None:
        return re.split(rb"[\r\n]", start, maxsplit=1)[0]
    ends = ("\r".encode(order), "\n".encode(order))
    return next((start[:at] for at in range(2, len(start), 2) if start[at : at + 2] in ends), start)


def propose(line: bytes, said: Mapping[str, str] | None = None, *, usual: str = ",") -> Dialect:
    """The dialect of a file whose first line this is; ``said`` holds words of ``[file]`` that need no proposal.

    ``usual`` is the separator that the file's name promises. A decimal comma is proposed where semicolons separate,
    because that is why they do. Raises ``InputError`` where the line could be read in two ways.
    """
    known = dict(said or {})
    if "encoding" not in known:
        known["encoding"] = _encoding(line)
    Dialect(**{word: mark for word, mark in known.items() if word in ("encoding", "quote")})
    if known["encoding"] == "utf-16" and line[:2] not in _UTF_16:
        raise InputError("E164", "the file is not UTF-16 with a byte order mark.", "Save it as UTF-8.")
    text = decoded(line, known["encoding"])
    quote = known.setdefault("quote", _quote(text))
    if quote and text.count(quote) % 2:
        raise InputError(
            "E107", "the header has a quote that is not closed.", "Close it, or say --quote none."
        )
    if "separator" not in known:
        known["separator"] = _separator(text, quote, usual)
    known.setdefault("decimal", "," if known["separator"] == ";" and known.get("thousands") != "," else ".")
    return Dialect(**known)


def decoded(data: bytes, encoding: str) -> str:
    """Bytes from the start of a file as text, without the byte order mark; what is no text becomes U+FFFD."""
    if encoding == "utf-16":
        return data[2:].decode(_UTF_16.get(data[:2], "utf-16-le"), "replace")
    return data.decode("utf-8-sig" if encoding == "utf-8" else encoding, "replace")


def cells(line: str, dialect: Dialect) -> list[str]:
    """The cells of one line, as they stand; nothing where the line is not one record."""
    words = {
        "quotechar": dialect.quote or None,
        "quoting": csv.QUOTE_MINIMAL if dialect.quote else csv.QUOTE_NONE,
    }
    try:
        return next(csv.reader([line], delimiter=dialect.separator, **words), [])  # type: ignore[arg-type]
    except csv.Error:
        return []


def checked_names(names: list[str], where: str) -> list[str]:
    """Names in their canonical form, once each is a name and no two are the same; refused by place, not by name."""
    for place, name in enumerate(names, 1):
        reason = fault(name)
        if reason == "is empty":
            raise InputError(
                "E163",
                f"column {place} of {len(names):,} of {where} has no name.",
                "Name it in the file, or write a schema of the others, with ignore_extra = true.",
            )
        if reason is not None:
            raise InputError(
                "E121", f"the name of column {place} of {len(names):,} of {where} {reason}.", "Rename it."
            )
    found = [canonical(name) for name in names]
    if twice := [name for name, times in Counter(found).items() if times > 1]:
        places = [str(place) for place, name in enumerate(found, 1) if name == twice[0]]
        raise InputError(
            "E103",
            f"columns {', '.join(places[:-1])} and {places[-1]} of {where} have one name.",
            "Rename one in the file, or write a schema of the others, with ignore_extra = true.",
        )
    return found


def _encoding(line: bytes) -> str:
    if line[:2] in _UTF_16:
        return "utf-16"
    if b"\0" in line:
        raise InputError(
            "E164",
            "the header has zero bytes: it is UTF-16 without a byte order mark, or not text.",
            "Save it as UTF-8.",
        )
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        if any(
            0x80 <= byte < 0xA0 for byte in line
        ):  # controls in Latin-1, letters in the code pages of Windows
            raise InputError(
                "E164", "the header is neither UTF-8 nor Latin-1 text.", "Save it as UTF-8."
            ) from None
        return "latin-1"
    return "utf-8"


def _quote(text: str) -> str:
    return "'" if _SINGLE_QUOTES.fullmatch(text) else '"'


def _separator(text: str, quote: str, usual: str) -> str:
    if quote:
        text = re.sub(f"{quote}[^{quote}]*{quote}", "name", text)
    counts = {mark: text.count(mark) for mark in SEPARATORS}
    # A tab beside another mark is white space around a name.
    counts["\t"] = sum(cell.strip().count("\t") for cell in re.split("[,;|]", text))
    seen = {mark: count for mark, count in counts.items() if count}
    if not seen or (usual == "\t" and usual in seen):
        return usual
    first, *others = sorted(seen, key=lambda mark: -seen[mark])
    if usual == "," and all(2 * seen[mark] <= seen[first] for mark in others):
        return first
    shown = " and ".join(f"{count:,} {SEPARATORS[mark]}{'s' * (count > 1)}" for mark, count in seen.items())
    rather = "" if usual in seen else f" and no {SEPARATORS[usual]}"
    raise InputError(
        "E162",
        f"the header has {shown}{rather} outside quotes, so the separator of its cells is not clear.",
        _HOW,
    )
