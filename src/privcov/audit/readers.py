"""The law of readers, attacked: one record touches one row, in its place, whatever the other records hold.

Every guarantee is about tables that differ in one record, and starts where bytes become rows. So a reader is tried
on pairs of files that differ in one record: a file's own first records, and tables made hostile (short lines,
blank lines, stray quotes), in which one record is replaced or removed. The rows that come out must agree everywhere
but at that place. Deterministic but for ``more`` random pairs, so no false alarms. Proof, and what a reader may use:
docs/proofs/readers.md.
"""

from __future__ import annotations

import gzip
import itertools
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from privcov.noise.randomness import Randomness, rehearsal
from privcov.schema import Schema
from privcov.schema.dialect import Dialect
from privcov.summing.bounding import Bounding
from privcov.table import Table, open_table
from privcov.table.fragments import Piece
from privcov.table.headers import dialect_of, header_of, line_end_of
from privcov.table.opening import open_pieces
from privcov.table.sources import source_of

Rows = NDArray[np.float64]
Reader = Callable[[Path, Schema], Rows]
"""A file and its schema to whole-number rows, one for each record, in order."""

Change = tuple[int, bytes | None]
"""A place, and the record to put there; None to take the one there away."""

FIRST_RECORDS, _GLANCE = 8, 2**17
_MANY = 40
"""Lines of the tables in which one line might make up for all others."""


def bounded_rows(path: Path, schema: Schema) -> Rows:
    """Rows as a release sees them."""
    return _rows(open_table(path, schema))


def careful_rows(path: Path, schema: Schema) -> Rows:
    """The same with every line read in the careful way."""
    return bounded_rows(path, replace(schema, file=replace(schema.file, timing="constant")))


def parted_rows(path: Path, schema: Schema) -> Rows:
    """The same in three parts, cut at bytes that look at nothing; whole where a release does not cut it either."""
    pieces = open_table(path, schema).pieces()
    if pieces is None or len(pieces) != 1 or path.suffix in (".parquet", ".pq"):
        return bounded_rows(path, schema)
    if not source_of(path, dialect_of(path, schema.file)).divisible:  # packed, or in UTF-16
        return bounded_rows(path, schema)
    (whole,) = pieces
    cuts = [0, whole.size // 3, whole.size * 2 // 3, whole.size]
    parts = [
        Piece(path=whole.path, size=whole.size, start=start, stop=stop, bytes=stop - start)
        for start, stop in itertools.pairwise(cuts)
    ]
    return np.concatenate([_rows(open_pieces([part], schema)) for part in parts])


def packed_rows(path: Path, schema: Schema) -> Rows:
    """The same from a packed copy beside the file."""
    packed = path.with_name(path.name + ".gz")
    packed.write_bytes(gzip.compress(path.read_bytes(), 1))
    return bounded_rows(packed, schema)


ROUTES: dict[str, Reader] = {
    "as it is": bounded_rows,
    "carefully": careful_rows,
    "in parts": parted_rows,
    "packed": packed_rows,
}
"""Ways through the reader of a file of lines."""


@dataclass(frozen=True, kw_only=True)
class ReaderAudit:
    """How many pairs were compared, by which ways, and the first pair that broke the law."""

    pairs: int
    routes: tuple[str, ...]
    violation: str | None

    @property
    def passed(self) -> bool:
        return self.violation is None

    def to_dict(self) -> dict[str, Any]:
        return {
            "pairs": self.pairs,
            "routes": list(self.routes),
            "violation": self.violation,
            "passed": self.passed,
        }

    def render(self) -> str:
        """The verdict in words. It may quote records of the file, so it is for the eyes of the data's keeper."""
        ways = f"{self.pairs:,} neighbouring pairs, read {', '.join(self.routes)}"
        if self.violation is None:
            return f"PASS  {ways}: each record changed only its own row."
        return f"FAIL  {ways}.\n{self.violation}"


def audit_reader(
    path: str | Path,
    *,
    schema: Schema,
    readers: dict[str, Reader] | None = None,
    more: int = 100,
    randomness: Randomness | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> ReaderAudit:
    """Try to make one record of a file touch another's row.

    ``path`` gives the layout: its header, and its first records. Nothing is released, and nothing but a private
    temporary directory is written. ``readers`` are the ways to try (privcov's own by default), and ``more`` is the
    number of random pairs beside the planted ones. ``progress`` is told how many tables are done, of how many.
    """
    given, schema = Path(path), schema.by_rows()  # the law is about records, whoever's they are
    open_table(given, schema)  # refuses what does not fit
    if given.suffix.lower() in (".parquet", ".pq"):
        return _audit_parquet(given, schema, readers or {"as it is": bounded_rows})
    layout = Layout.of(given, schema)
    ways = readers or ROUTES
    pairs = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "copy" + _plain_ending(given))

        def read(way: Reader, records: Sequence[bytes]) -> Rows:
            copy.write_bytes(layout.file(records))
            return way(copy, schema)

        planned = list(layout.pairs(more, randomness or rehearsal(0)))
        for done, (before, changes) in enumerate(planned):
            if progress is not None:
                progress(done, len(planned))
            rows = {name: read(way, before) for name, way in ways.items()}
            for (place, record), name in _in_turn(changes, list(ways)):
                pairs += 1
                after = read(ways[name], _changed(before, place, record))
                found = differing(rows[name], after, place, removed=record is None)
                if found is not None:
                    said = f"Read {name}, {found}.\n{_shown(before, place, record)}"
                    return ReaderAudit(pairs=pairs, routes=tuple(ways), violation=said)
    return ReaderAudit(pairs=pairs, routes=tuple(ways), violation=None)


def differing(before: Rows, after: Rows, place: int, *, removed: bool) -> str | None:
    """What the law forbids between the rows of two files that differ in the record at ``place``; None if nothing.

    >>> rows = np.array([[1.0], [2.0], [3.0]])
    >>> differing(rows, np.array([[1.0], [9.0], [3.0]]), 1, removed=False) is None
    True
    >>> differing(rows, np.array([[9.0], [9.0], [3.0]]), 1, removed=False)
    'the record at position 1 changed the row at position 0'
    """
    expected = len(before) - removed
    if len(after) != expected:
        return f"the record at position {place} changed the number of rows from {len(before)} to {len(after)}"
    kept = np.delete(before, place, axis=0)
    rest = after if removed else np.delete(after, place, axis=0)
    moved = np.flatnonzero((kept != rest).any(axis=1))
    if not len(moved):
        return None
    first = int(moved[0])
    others = f" and {len(moved) - 1:,} others" if len(moved) > 1 else ""
    return f"the record at position {place} changed the row at position {first + (first >= place)}{others}"


@dataclass(frozen=True, kw_only=True)
class Layout:
    """What a file of lines looks like: its header, how lines end, and a few records."""

    header: bytes
    end: bytes
    width: int
    dialect: Dialect
    records: tuple[bytes, ...]

    @classmethod
    def of(cls, path: Path, schema: Schema) -> Layout:
        dialect = dialect_of(path, schema.file)
        source = source_of(path, dialect)
        header = header_of(source, dialect)
        start = source.beginning(header.end + _GLANCE)
        end = line_end_of(dialect)
        lines = start[header.end :].split(end)[:-1] or start[header.end :].split(end)
        crlf = start[: header.end].endswith(b"\r\n")
        kept = tuple(line.removesuffix(b"\r") if crlf else line for line in lines[:FIRST_RECORDS])
        return cls(
            header=start[: header.end].rstrip(b"\r\n"),
            end=b"\r\n" if crlf else end,
            width=len(header.names),
            dialect=dialect,
            records=kept or (b"",),
        )

    def file(self, records: Sequence[bytes]) -> bytes:
        """A file of these records in this layout."""
        text = b"".join(line + self.end for line in (self.header, *records))
        if self.dialect.encoding == "utf-16":
            return text.decode("utf-8", "replace").encode("utf-16")
        return text

    def pairs(self, more: int, randomness: Randomness) -> Iterator[tuple[Sequence[bytes], list[Change]]]:
        """Tables, and for each the places in it and the records to put there."""
        for table in self.tables():
            places = [len(table) - 1] if len(table) > _MANY else sorted({0, len(table) // 2, len(table) - 1})
            yield table, [(place, record) for place in places for record in (None, *self.hostile(table))]
        scraps = self.scraps()
        for _ in range(more):
            table = [_drawn(scraps, randomness) for _ in range(1 + _below(randomness, 12))]
            yield table, [(_below(randomness, len(table)), _drawn(scraps, randomness))]

    def tables(self) -> Iterator[list[bytes]]:
        """The file's own records, and many lines that are no records, so that one line might make up for all."""
        own, good = list(self.records), self._good()
        yield own
        short = self._mark.join([b"1"] * (self.width - 1)) if self.width > 1 else b""
        yield [short, *own, b"", good]
        for odd in (short, b"", good + self._mark, good + self._quote):
            yield [good, *[odd] * _MANY, good]

    def hostile(self, table: Sequence[bytes]) -> Iterator[bytes]:
        """Records that break careless readers, among them ones that balance the separators of all other lines."""
        good, mark, quote = self._good(), self._mark, self._quote
        lacking = sum(self.width - 1 - line.count(mark) for line in table)
        for extra in {1, abs(lacking), abs(lacking) + 1, abs(lacking) - 1, 2_000} - {-1}:
            yield good + mark * extra
        yield from self.records
        yield from (
            good,
            b"",
            b" ",
            b"\0",
            b"#",
            b"#" + good,
            mark * (self.width - 1),
            mark * max(0, self.width - 2),
            mark * self.width,
            good[: len(good) // 2],
            quote + good,
            good + quote,
            quote + good + quote,
            quote + good.replace(mark, quote + mark + quote) + quote,
            good.replace(b"1", quote * 2 + b"1", 1),
            b"\\" + mark + good,
            b"\xef\xbb\xbf" + good,
            b"\xff\xfe" + good,
            b"\x1f\x8b" + good,
            b"x\x01" + good,
            b"\xf0\x9f\x98" + good,
            good.replace(b"1", b"\0", 1),
            good.replace(b"1", b" 1 ", 1),
            good.replace(b"1", b"one", 1),
            good.replace(b"1", b"1e999"),
            good.replace(b"1", b"nan"),
            good.replace(b"1", b"NA"),
            good.replace(b"1", b"-999", 1),
            good.replace(b"1", "１".encode()),
            (b"\n" if self.end == b"\r" else b"\r") + good,
            good + (b"\n" if self.end == b"\r" else b"\rx"),
        )
        if len(table) < _MANY:
            yield good + b"0" * (2**20 + 5)

    def scraps(self) -> list[bytes]:
        """What random records are put together from."""
        return [
            b"1", b"2.5", b"-3e1", b"F", b"M", b" ", b"NA", b"x", b"\xff", b"\0", b"\xef\xbb\xbf", b"\\", b"#", b"",
            *[self._mark] * 6, *[self._quote] * 3, b"\n" if self.end == b"\r" else b"\r",
        ]  # fmt: skip

    def _good(self) -> bytes:
        return self._mark.join([b"1"] * self.width)

    @property
    def _mark(self) -> bytes:
        return self.dialect.separator.encode()

    @property
    def _quote(self) -> bytes:
        return (self.dialect.quote or '"').encode()


def _in_turn(changes: Sequence[Change], names: Sequence[str]) -> Iterator[tuple[Change, str]]:
    """Every change by the first way, and by the others in turn."""
    others = itertools.cycle(names[1:])
    for change in changes:
        yield change, names[0]
        if len(names) > 1:
            yield change, next(others)


def _plain_ending(path: Path) -> str:
    return ".tsv" if ".tsv" in (ending.lower() for ending in path.suffixes[-2:]) else ".csv"


def _changed(table: Sequence[bytes], place: int, record: bytes | None) -> list[bytes]:
    return [*table[:place], *([] if record is None else [record]), *table[place + 1 :]]


def _rows(table: Table) -> Rows:
    bounding = Bounding.of(table.schema)
    blocks = [bounding.rows(block) for block in table.blocks()]
    return np.concatenate([np.zeros((0, table.schema.dimension)), *blocks])


def _below(randomness: Randomness, count: int) -> int:
    return int(randomness.words(1)[0]) % count


def _drawn(scraps: Sequence[bytes], randomness: Randomness) -> bytes:
    return b"".join(scraps[_below(randomness, len(scraps))] for _ in range(_below(randomness, 9)))


def _shown(table: Sequence[bytes], place: int, record: bytes | None) -> str:
    """A pair in a few lines. Records of the file may be among them."""

    def short(line: bytes) -> str:
        text = ascii(line)[1:]
        return text if len(text) <= 72 else f"{text[:66]}… ({len(line):,} bytes)"

    now = "is taken away" if record is None else f"becomes {short(record)}"
    around = [
        f"  position {at}: {short(table[at])}" for at in range(max(0, place - 2), min(len(table), place + 3))
    ]
    return "\n".join([f"A file of {len(table)} records, in which position {place} {now}:", *around])


def _audit_parquet(path: Path, schema: Schema, ways: dict[str, Reader]) -> ReaderAudit:
    """The same for typed rows: values of one row are replaced, and rows taken away."""
    first = next(pq.ParquetFile(path).iter_batches(FIRST_RECORDS), None)
    kinds = pq.ParquetFile(path).schema_arrow
    rows = [] if first is None else first.to_pylist()
    rows = rows or [dict.fromkeys(kinds.names)]
    pairs = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "copy.parquet")

        def read(way: Reader, some: Sequence[dict[str, Any]]) -> Rows:
            pq.write_table(pa.Table.from_pylist(list(some), schema=kinds), copy, row_group_size=3)
            return way(copy, schema)

        for place in range(len(rows)):
            for changed in (None, *_hostile_rows(rows[place], kinds)):
                after = [*rows[:place], *([] if changed is None else [changed]), *rows[place + 1 :]]
                for name, way in ways.items():
                    pairs += 1
                    found = differing(read(way, rows), read(way, after), place, removed=changed is None)
                    if found is not None:
                        said = f"Read {name}, {found}."
                        return ReaderAudit(pairs=pairs, routes=tuple(ways), violation=said)
    return ReaderAudit(pairs=pairs, routes=tuple(ways), violation=None)


def _hostile_rows(row: dict[str, Any], kinds: pa.Schema) -> Iterator[dict[str, Any]]:
    values = (
        None,
        float("nan"),
        float("inf"),
        1.7e308,
        5e-324,
        0,
        -1,
        2**31 - 1,
        True,
        "",
        "NA",
        "\0",
        "x" * 10_000,
    )
    for field in kinds:
        for value in values:
            try:
                made = pa.scalar(value, field.type).as_py()
            except (pa.ArrowException, TypeError, ValueError, OverflowError):
                continue
            yield {**row, field.name: made}
    yield dict.fromkeys(kinds.names)
