"""Column names and types of a file, for a schema template: what a person would see at a glance, no bound.

The dialect that a header line suggests, and the names it then holds. No other line is looked at.

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
import io
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa

from privcov.errors import InputError
from privcov.schema.dialect import RFC_4180, SEPARATORS, Dialect
from privcov.schema.names import canonical, fault
from privcov.table.headers import MOST_COLUMNS, read_header
from privcov.table.moments import moments
from privcov.table.parquet import read_kinds
from privcov.table.records import LONGEST_LINE
from privcov.table.sources import PACKED, source_of

_GLANCE_LINES = 200
_GLANCE_BYTES = 2**20
_SUFFIXES = {".csv": ",", ".tsv": "\t"}
"""Files of lines, and what their name promises to stand between cells."""


@dataclass(frozen=True, kw_only=True)
class Glance:
    """Every column's name in order, with ``numeric``, ``date`` or ``text`` as it looks, and how the file is written."""

    columns: Mapping[str, str]
    file: Dialect = RFC_4180


def glance(path: str | Path, said: Mapping[str, str] | None = None) -> Glance:
    """What a template says of a file; ``said`` holds words of ``[file]`` that need no proposal.

    A column of a file of lines looks numeric when most of the first lines parse as numbers, and so with dates. The
    person who fills in the template confirms or corrects it; no value, level or bound is written anywhere. A decimal
    comma is never taken for granted: the template suggests it.
    """
    given = Path(path)
    suffix = (given.with_suffix("") if given.suffix.lower() in PACKED else given).suffix.lower()
    if suffix in _SUFFIXES:
        return _of_lines(given, dict(said or {}), usual=_SUFFIXES[suffix])
    if suffix in (".parquet", ".pq"):
        kinds = read_kinds(given)
        names = checked_names([name for name, _ in kinds], given.name)
        return Glance(columns=dict(zip(names, (kind for _, kind in kinds), strict=True)))
    raise InputError("E118", f"{given.name} is neither a .csv or .tsv nor a .parquet file.")


def _of_lines(path: Path, said: Mapping[str, str], *, usual: str) -> Glance:
    start = source_of(path, RFC_4180).beginning(
        LONGEST_LINE + _GLANCE_BYTES
    )  # unpacked, and as it is encoded
    line = first_line(start)
    if start[len(line) :].startswith(b"\r") and not start[len(line) :].startswith((b"\r\n", b"\r\0")):
        said = {"line_end": "cr", **said}
    try:
        if not line.strip(b"\xef\xbb\xbf\xff\xfe\0 \t"):
            raise InputError(
                "E101", f"{path.name} has no header: its first line is empty.", "Add column names."
            )
        if len(line) > LONGEST_LINE:
            raise InputError(
                "E113", f"the header of {path.name} is longer than 1 MiB.", "Check how it was written."
            )
        proposal = propose(line, said, usual=usual)
    except InputError:
        read_header(path, then=0)  # a reader knows better what a file is that has no such line: zip, Parquet
        raise
    lines = io.StringIO(decoded(start, proposal.encoding), newline=None)
    header = cells(next(lines).rstrip("\n"), proposal)
    if not 0 < len(header) <= MOST_COLUMNS:
        raise InputError("E113", f"{path.name} has no line of 1 to {MOST_COLUMNS:,} names.", "Split it.")
    names = checked_names(header, f"the header of {path.name}")
    marks = [proposal.decimal] if "decimal" in said else [".", proposal.decimal]
    rows = [
        row
        for row in (cells(text.rstrip("\n"), proposal) for text in islice(lines, _GLANCE_LINES))
        if len(row) == len(names)
    ]
    kinds = {}
    for place, name in enumerate(names):
        filled = [cell for row in rows if (cell := row[place].strip())]
        numbers = max(sum(_is_number(cell, mark, proposal.thousands) for cell in filled) for mark in marks)
        dates = np.count_nonzero(np.isfinite(moments(pa.array(filled, pa.string()))))
        kinds[name] = next(
            (kind for kind, count in (("numeric", numbers), ("date", dates)) if 2 * count > len(filled)),
            "text",
        )
    declared = proposal if "decimal" in said else replace(proposal, decimal=RFC_4180.decimal)
    return Glance(columns=kinds, file=declared)


def _is_number(cell: str, decimal: str, thousands: str) -> bool:
    plain = cell.replace(thousands, "") if thousands else cell
    if decimal != ".":
        plain = "" if "." in plain else plain.replace(decimal, ".")
    try:
        float(plain)
    except ValueError:
        return False
    return True


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
                "Name it in the file, or declare only the other columns, with ignore_extra = true.",
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
            f"columns {', '.join(places[:-1])} and {places[-1]} of {where} have the same name.",
            "Rename one in the file, or declare only the other columns, with ignore_extra = true.",
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
