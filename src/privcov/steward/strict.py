"""RFC 4180 to the letter, line breaks inside quoted cells included: for ``privcov convert`` and ``privcov inspect``.

This is the steward's side. Here one quote that is not closed takes the lines after it into its cell, so nothing of it
may stand in the way of a release, whose records are lines (``csv.py``). A file that is not well formed is refused, with
the number of the record, which is for the eyes of the data's keeper only. A record of another width than the
header's is a row of nulls in its place, and counted. A blank line is no record where there is more than one column, as
no writer of RFC 4180 writes a person so; it is left out, and counted too.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Never

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privcov.errors import InputError
from privcov.schema import Schema
from privcov.table.base import check_names
from privcov.table.csv import in_place, parsed
from privcov.table.headers import dialect_of, header_of, line_end_of
from privcov.table.sources import source_of

LONGEST_RECORD = 2**26
_NEWLINE = ord("\n")
_CR_TO_LF = bytes.maketrans(b"\r\n", b"\n ")


class StrictReader:
    """One file of lines; ``batches`` may be walked once, ``records``, ``wrong_width`` and ``blank`` count."""

    def __init__(self, path: Path, schema: Schema) -> None:
        self.dialect = dialect_of(path, schema.file)
        self._source = source_of(path, self.dialect)
        self._header = header_of(self._source, self.dialect)
        self._width = len(self._header.names)
        self._places = check_names(self._header.names, schema, path.name)
        self._source.check()
        self.records = 0
        self.wrong_width = 0
        self.blank = 0

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The declared columns, in order, as bytes; one row for each record."""
        rest = b""
        for chunk in self._chunks():
            text = rest + chunk
            ends, good = self._split(text)
            whole = int(ends[-1]) + 1 if len(ends) else 0
            rest = text[whole:]
            if len(rest) > LONGEST_RECORD:
                self._refuse(self.records + len(ends), "has a quote that is not closed for 64 MiB")
            if whole:
                yield self._batch(text[:whole], ends, good)
        if rest:
            ends, good = self._split(rest + b"\n")
            if not len(ends):
                self._refuse(self.records, "has a quote that is not closed")
            yield self._batch(rest + b"\n", ends, good)

    def _chunks(self) -> Iterator[bytes]:
        """Text whose lines end with LF; what may be half a CRLF waits for the next chunk."""
        end, held = line_end_of(self.dialect), b""
        for data in self._source.chunks(self._header.end, self._source.size, end):
            if end == b"\r":
                yield data.translate(_CR_TO_LF)
                continue
            data = held + data
            held = b"\r" if data.endswith(b"\r") else b""
            yield data.removesuffix(b"\r").replace(b"\r\n", b"\n").replace(b"\r", b" ")
        if held:
            yield b" "

    def _split(self, text: bytes) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Where the records of ``text``, which begins with one, end; and which of them have the header's width."""
        buffer = np.frombuffer(b"\n" + text, np.uint8)
        newlines = np.flatnonzero(buffer == _NEWLINE)
        separator, quote = ord(self.dialect.separator), self.dialect.quote
        quotes = np.flatnonzero(buffer == ord(quote)) if quote else np.zeros(0, np.intp)
        ends = newlines[np.searchsorted(quotes, newlines) % 2 == 0][1:]
        last = ends[-1] if len(ends) else 0
        quotes = quotes[quotes < last]
        if len(quotes):
            opening = np.arange(len(quotes)) % 2 == 0
            beside = np.where(opening, buffer[quotes - 1], buffer[quotes + 1])
            stray = (beside != separator) & (beside != _NEWLINE) & (beside != ord(quote))
            if stray.any():
                place = int(np.searchsorted(ends, quotes[np.argmax(stray)]))
                self._refuse(self.records + place, "has a quote inside a cell, or text behind a closing one")
        separators = np.flatnonzero(buffer[: last + 1] == separator)
        separators = separators[np.searchsorted(quotes, separators) % 2 == 0]
        widths = np.diff(np.searchsorted(separators, ends), prepend=0) + 1
        return ends - 1, widths == self._width

    def _batch(self, text: bytes, ends: NDArray[np.intp], good: NDArray[np.bool_]) -> pa.RecordBatch:
        lengths = np.diff(ends, prepend=-1)
        blank = (lengths == 1) & (self._width > 1)
        kept = text
        if not good.all():
            kept = np.frombuffer(text, np.uint8)[np.repeat(good, lengths)].tobytes()
        self.blank += int(np.count_nonzero(blank))
        self.records += int(np.count_nonzero(~blank))
        self.wrong_width += int(np.count_nonzero(~good & ~blank))
        good = good[~blank]
        return in_place(parsed(kept, self._width, self._places, self.dialect, line_breaks=True), good)

    def _refuse(self, place: int, what: str) -> Never:
        raise InputError(
            "E136",
            f"record {place + 1:,} of {self._source.path.name} {what}: the file is not RFC 4180.",
            "Correct it, or declare another quote in [file]. The record number is about a person: do not publish it.",
        )
