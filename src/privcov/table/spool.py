"""What can be read once, copied where the steward says so: a release reads a table several times, and pays before it.

A pipe, an open stream of bytes or an Arrow stream has no second reading, and what is computed while it is read could
fail after the payment. Its copy is an ordinary file in a directory that its owner alone can open. It has a largest size
that is given, and is gone with the ``with`` block, however that ends. Nothing is copied unless somebody asks.
"""

from __future__ import annotations

import io
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any, BinaryIO

from privcov.errors import InputError, without_frames
from privcov.table.opening import ENDINGS
from privcov.text.grammar import brief

_CHUNK = 2**20
_BEGINNINGS = {b"PAR1": ".parquet", b"\x1f\x8b": ".csv.gz", b"\x28\xb5\x2f\xfd": ".csv.zst"}
"""The first bytes of files that say what they are; everything else is lines of text."""
_SIZE = re.compile(r"\s*(\d{1,18}(?:\.\d{1,6})?)\s*(?:([KMGT])(I?))?B?\s*")
_UNITS = (None, "K", "M", "G", "T")


@contextmanager
def spooled(data: Any, *, most: int | str, directory: str | Path | None = None) -> Iterator[Any]:
    """While this lasts, a copy of what can be read once; what can be read again is handed on as it is.

    For pipes, open streams of bytes, and Arrow streams such as a ``RecordBatchReader``. The copy is made before
    anything is paid, and deleted at the end of the ``with`` block, also after a failure. A process that is killed with
    SIGKILL leaves it behind.

    Parameters
    ----------
    data : stream, path, list of paths, or any table
        An Arrow stream; something with a ``read`` that gives bytes, such as ``sys.stdin.buffer``; or the path of a
        pipe. Of bytes and of paths there may be a list. Bytes are CSV, packed CSV or Parquet, as the first of them
        say; a path may say it by its ending.
    most : int or str
        The bytes that may be copied at most: a number, or a text such as "500MB" or "2 GiB".
    directory : str or Path, optional
        Where the copy is made. By default the directory of temporary files, which ``TMPDIR`` names.

    Yields
    ------
    object
        What ``privcov.release`` and ``privcov.check`` take in place of ``data``.

    Raises
    ------
    InputError
        There is more to copy than ``most``, it cannot be read to its end, or the copy cannot be written (E152).
        Nothing was paid by then. Whether a stream fails may depend on its rows: the text does not say why.

    Examples
    --------
    >>> import privcov as pc, pyarrow as pa
    >>> reader = pa.table({"age": [35.0, 61.0, 48.0]}).to_reader()
    >>> schema = pc.Schema.from_dict({"columns": {"age": {"lower": 0, "upper": 100}}})
    >>> loss = pc.PureDP(epsilon=1, neighbours="replace-one")
    >>> with pc.spooled(reader, most="10MB") as table:
    ...     made = pc.release(table, schema=schema, loss=loss, frame="scales")
    >>> made.rows
    3
    """
    size = bytes_of(most)
    with folder(directory) as place:
        yield copied(data, place, most=size)


@contextmanager
def folder(directory: str | Path | None = None) -> Iterator[Path]:
    """A new directory for copies that its owner alone can open; it is deleted with all that is in it."""
    try:
        made = tempfile.TemporaryDirectory(prefix="privcov-spool-", dir=directory, ignore_cleanup_errors=True)
    except OSError as reason:
        raise InputError(
            "E152", f"no copy can be made: {reason.strerror}.", "Set TMPDIR to a directory with room."
        ) from None
    with made as place:
        yield Path(place)


def bytes_of(most: int | str) -> int:
    """How many bytes a text means.

    >>> bytes_of("500MB"), bytes_of("1.5 GiB"), bytes_of(4096)
    (500000000, 1610612736, 4096)
    """
    found = None if isinstance(most, bool) else _SIZE.fullmatch(str(most).upper())
    size = 0
    if found is not None:
        number, unit, binary = found.groups()
        size = int(Fraction(number) * (1024 if binary else 1000) ** _UNITS.index(unit))
    if size < 1:
        raise InputError("E152", f"{brief(str(most))} is not a size.", "Write it as 500MB or 2GB.")
    return size


def copied(data: Any, place: Path, *, most: int) -> Any:
    """What a release takes in place of ``data``: in a directory copies of what can be read once; the rest as it is."""
    room = _Room(most)
    if not (isinstance(data, list | tuple) and all(_is_path(one) or hasattr(one, "read") for one in data)):
        return _one(data, place, room)
    made = [place / str(number) for number in range(len(data))]
    for directory in made:
        directory.mkdir()
    return [_one(one, directory, room) for one, directory in zip(data, made, strict=True)]


def _one(data: Any, place: Path, room: _Room) -> Any:
    if _is_path(data):
        return _path(data, place, room)
    if _is_stream(data):
        return without_frames(_batches, data, place, room)
    if hasattr(data, "read"):
        return without_frames(_bytes, data.read, place, "stream", room)
    return data


def _is_path(data: Any) -> bool:
    return isinstance(data, str | os.PathLike)


class _Room:
    """The bytes that may still be written."""

    def __init__(self, most: int) -> None:
        self._most = self._left = most

    def take(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise InputError(
                "E152",
                f"the input is larger than {self._most:,} bytes.",
                "Allow more, or copy the data to a file yourself. Nothing was paid.",
            )


def _is_stream(data: Any) -> bool:
    """Whether something gives its rows as an Arrow stream, and is not known to hold them."""
    import pyarrow as pa

    held = isinstance(data, pa.Table | pa.RecordBatch | pa.ChunkedArray)
    frames = ("polars", "pandas", "duckdb", "_duckdb", "pyspark", "dask", "dask_expr")
    library = type(data).__module__.partition(".")[0]
    return hasattr(data, "__arrow_c_stream__") and not held and library not in frames


def _path(given: str | os.PathLike[str], place: Path, room: _Room) -> str | os.PathLike[str]:
    """A copy of what a path leads to, unless that is a file or a directory, or nothing at all."""
    try:
        mode = os.stat(given).st_mode
    except (OSError, ValueError):
        return given  # a pattern, or a name that is refused with its own reason
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return given
    try:
        with open(given, "rb", buffering=0) as file:
            return without_frames(_bytes, file.read, place, Path(given).name, room)
    except OSError as reason:
        raise InputError("E152", f"cannot read {os.fspath(given)}: {reason.strerror}.") from None


def _bytes(read: Callable[[int], Any], place: Path, name: str, room: _Room) -> str:
    """A copy of a stream of bytes, under a name that says what it is."""
    try:
        chunk = read(_CHUNK)
        ending = next(
            (end for start, end in _BEGINNINGS.items() if bytes(chunk[:4]).startswith(start)), ".csv"
        )
        path = place / (name if ENDINGS.fullmatch(name) else name + ending)
        with _created(path) as file:
            while chunk:
                room.take(len(chunk))
                file.write(chunk)
                chunk = read(_CHUNK)
    except InputError:
        raise
    except Exception:  # its text may quote what was read
        _failed()
    return str(path)


def _batches(data: Any, place: Path, room: _Room) -> str:
    """A copy of an Arrow stream, as Parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = place / "stream.parquet"
    try:
        reader = pa.RecordBatchReader.from_stream(data)
        with _created(path) as file, pq.ParquetWriter(_Sink(file, room), reader.schema) as writer:
            for batch in reader:
                writer.write_batch(batch)
    except InputError:
        raise
    except Exception:  # its text may quote what was read
        _failed()
    return str(path)


class _Sink(io.RawIOBase):
    """A file that takes so many bytes and no more."""

    def __init__(self, file: BinaryIO, room: _Room) -> None:
        self._file, self._room = file, room

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._room.take(len(data))
        return self._file.write(data)


def _created(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def _failed() -> None:
    raise InputError(
        "E152",
        "the input could not be copied to its end: it stopped, it is no stream of bytes, or there is no room.",
        "Write it to a file yourself, which shows why. Nothing was paid.",
    ) from None
