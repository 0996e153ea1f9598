"""The text of a file as a stream of bytes in which a line end is one byte: plain, packed, or UTF-16.

A plain file may be read in parts, from byte to byte, by workers that know nothing of each other. A packed file
(``.gz``, ``.zst``) or one in UTF-16 is read from its start by one worker. It is unpacked once before anything is
paid, so that one that is damaged, or that unpacks to far more than it should, is refused then.

A chunk is let go of everywhere (``del``) before the next is read, which is then given the same memory: fresh memory
for each would cost 7 % more time.

Which files are opened at all.
"""

from __future__ import annotations

import codecs
import gzip
import io
import itertools
import os
import stat
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Never

import pyarrow as pa

from privcov.errors import InputError
from privcov.schema.dialect import Dialect

CHUNK_BYTES = (
    8 * 2**20
)  # a quarter of a fragment; an odd line costs more in larger ones, polars more in smaller
_PIECE_BYTES = 2**16
MOST_UNPACKED = 200
"""How many times its own size a packed file may unpack to; tables of text reach 20 to 50."""
_ALWAYS_FINE = 2**26
_OPEN = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
PACKED = {".gz": "gzip", ".zst": "zstd"}
_UTF_16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


def source_of(path: Path, dialect: Dialect) -> Source:
    """Where the bytes of a file come from, by its name and its declared encoding."""
    packing = PACKED.get(path.suffix.lower())
    if packing is None and dialect.encoding != "utf-16":
        return PlainSource(path)
    return StreamSource(path, packing=packing, utf16=dialect.encoding == "utf-16")


class Source(ABC):
    """One file. What is read of it is checked against the size it had when it was opened first."""

    divisible: ClassVar[bool]
    """Whether it can be read in parts."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = regular_file(path).st_size
        self.done = 0
        """Bytes of the file that were read so far."""

    @abstractmethod
    def beginning(self, count: int) -> bytes:
        """The first ``count`` bytes of the text, fewer only where it ends."""

    @abstractmethod
    def chunks(self, start: int, stop: int, line_end: bytes) -> Iterator[bytes]:
        """The lines that begin from ``start`` to ``stop``, in bytes that may end within a line.

        ``start`` is the end of the header or lies behind it. A stream is read to its end, whatever ``stop`` is.
        """

    def check(self) -> None:
        """Refuse what cannot be read to its end; done once, before anything is paid."""
        return None

    def _open(self) -> io.FileIO:
        """The file, unbuffered, if it still has the size it had."""
        regular_file(self.path)
        file = io.FileIO(os.open(self.path, _OPEN))
        if os.fstat(file.fileno()).st_size != self.size:
            file.close()
            changed(self.path)
        return file

    def _still(self, file: io.FileIO) -> None:
        if os.fstat(file.fileno()).st_size != self.size:
            changed(self.path)


class PlainSource(Source):
    """Bytes as they are on disk."""

    divisible = True

    def beginning(self, count: int) -> bytes:
        with self._open() as file:
            return _read(file, count)

    def chunks(self, start: int, stop: int, line_end: bytes) -> Iterator[bytes]:
        with self._open() as file:
            if stop <= start:  # a part within the header, or of nothing
                return
            for data in self._lines(file, start, stop, line_end):
                self.done = file.tell()
                yield data
                del data
            self._still(file)

    def _lines(self, file: io.FileIO, start: int, stop: int, line_end: bytes) -> Iterator[bytes]:
        """Bytes from the first line that begins at or after ``start`` to the end of the last before ``stop``."""
        file.seek(start - 1)  # the header has at least one byte
        inside = _read(file, 1) != line_end
        stop = self._end_of_line(file, stop, line_end)
        at = file.seek(start)
        last = b""
        while at < stop:
            if inside:  # of the line before this part, which has its beginning elsewhere
                data = _read(file, min(_PIECE_BYTES, stop - at))
                found = data.find(line_end)
                inside = found < 0
                at = file.seek(at + (len(data) if inside else found + 1))
            else:
                data = _read(file, self._up_to_a_line_end(file, at, stop, line_end))
                at += len(data)
                last = data[-1:]
                if data:
                    yield data
            if not data:
                changed(self.path)
            del data
        while last not in (b"", line_end) and (data := _read(file, _PIECE_BYTES)):
            whole = data[: data.find(line_end) + 1] or data
            last = whole[-1:]
            yield whole

    def _end_of_line(self, file: io.FileIO, stop: int, line_end: bytes) -> int:
        """Where the last line that begins before ``stop`` ends, if that is near; else ``stop``."""
        if stop == self.size:
            return stop
        file.seek(stop - 1)
        return stop + max(0, _read(file, min(_PIECE_BYTES, CHUNK_BYTES)).find(line_end))

    def _up_to_a_line_end(self, file: io.FileIO, at: int, stop: int, line_end: bytes) -> int:
        """How many bytes to read: chunks of one size; one that ends with a line need not be put together."""
        left = stop - at
        if left <= CHUNK_BYTES:
            return left
        count = -(-left // -(-left // CHUNK_BYTES))
        window = min(_PIECE_BYTES, count)
        file.seek(at + count - window)
        end = _read(file, window).rfind(line_end)
        file.seek(at)
        return count if end < 0 else count - window + end + 1


class StreamSource(Source):
    """Bytes that are unpacked, or turned from UTF-16 into UTF-8, while they are read."""

    divisible = False

    def __init__(self, path: Path, *, packing: str | None, utf16: bool) -> None:
        super().__init__(path)
        self._packing, self._utf16 = packing, utf16

    def beginning(self, count: int) -> bytes:
        found = b""
        for data in self._text(min(count, CHUNK_BYTES)):
            found += data
            if len(found) >= count:
                break
        return found[:count]

    def chunks(self, start: int, stop: int, line_end: bytes) -> Iterator[bytes]:
        skip = start
        for data in self._text(CHUNK_BYTES):
            if skip < len(data):
                yield data[skip:]
            skip = max(0, skip - len(data))
            del data

    def check(self) -> None:
        most = max(_ALWAYS_FINE, MOST_UNPACKED * self.size)
        found = 0
        for data in self._raw(CHUNK_BYTES):
            found += len(data)
            if found > most:
                raise InputError(
                    "E114",
                    f"{self.path.name} unpacks to more than {MOST_UNPACKED} times its size.",
                    "Unpack it and give the plain file if it is genuine.",
                )

    def _text(self, step: int) -> Iterator[bytes]:
        return self._from_utf16(self._raw(step)) if self._utf16 else self._raw(step)

    def _raw(self, step: int) -> Iterator[bytes]:
        with self._open() as file:
            packed: Any = _unpacked(file, self._packing)
            while data := self._next(packed, step):
                self.done = file.tell()
                yield data
                del data
            self._still(file)

    def _next(self, packed: Any, step: int) -> bytes:
        try:
            return _read(packed, step)
        except (OSError, EOFError, zlib.error, pa.ArrowException):
            self._damaged()

    def _from_utf16(self, raw: Iterator[bytes]) -> Iterator[bytes]:
        """As UTF-8. A unit of 16 bits is never divided; half a pair stands for itself and takes no other unit along."""
        first = next(raw, b"")
        name = _UTF_16.get(first[:2])
        if name is None:
            raise InputError(
                "E105",
                f"{self.path.name} does not begin with the byte order mark of UTF-16.",
                "Correct encoding in [file].",
            )
        rest, low = b"", name == "utf-16-le"
        for data in itertools.chain([first[2:]], raw):
            data = rest + data
            whole = len(data) // 2 * 2
            if whole and data[whole - 1 if low else whole - 2] & 0xFC == 0xD8:  # first half of a pair
                whole -= 2
            rest = data[whole:]
            yield data[:whole].decode(name, "surrogatepass").encode("utf-8", "surrogatepass")
        if rest:
            end = rest[: len(rest) // 2 * 2].decode(name, "surrogatepass") + "\ufffd" * (len(rest) % 2)
            yield end.encode("utf-8", "surrogatepass")

    def _damaged(self) -> Never:
        raise InputError(
            "E117",
            f"{self.path.name} is a damaged or incomplete {self._packing} file.",
            "Pack it again, or unpack it first.",
        ) from None


def _unpacked(file: io.FileIO, packing: str | None) -> Any:
    if packing == "gzip":
        return gzip.GzipFile(fileobj=file, mode="rb")
    if packing == "zstd":
        return pa.CompressedInputStream(pa.PythonFile(file, mode="r"), "zstd")
    return file


def _read(file: Any, count: int) -> bytes:
    """``count`` bytes, fewer only at the end."""
    parts: list[bytes] = []
    while count and (part := file.read(count)):
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def regular_file(path: Path) -> os.stat_result:
    """What the system knows about a plain file; everything that is not one is refused."""
    try:
        about = path.stat()
    except (OSError, ValueError):
        raise InputError("E119", f"cannot read {path}: there is no such file.", "Check the path.") from None
    if stat.S_ISDIR(about.st_mode):
        raise InputError("E119", f"{path} is a directory.", f"Name files, such as '{path}/*.parquet'.")
    if not stat.S_ISREG(about.st_mode):
        raise InputError(
            "E119",
            f"{path} is not a plain file: it can be read only once, and a release reads it several times.",
            "Copy the data to a file first, or let privcov copy it: --spool 2GB, or privcov.spooled in Python.",
        )
    if not os.access(path, os.R_OK):
        raise InputError("E119", f"cannot read {path}: permission denied.", "Check its permissions.")
    if about.st_size == 0:
        raise InputError("E101", f"{path.name} is empty: it has no header.", "Check how it was written.")
    return about


def changed(path: Path) -> Never:
    """The size of a file is not what it was when it was opened."""
    raise InputError(
        "E120", f"{path.name} was changed while it was being read.", "Copy it first, then release."
    )
