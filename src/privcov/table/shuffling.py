"""A person's rows meet in one worker of a cluster: workers spread what they read, and the cluster's shuffle joins it.

In two steps. *Spread*: whoever reads a part of a table reads ids with it, puts records in order as one process does,
drops those that its own part alone rules out, and labels the others with a number that a hash of the id gives.
*Join*: the engine's own shuffle brings all records of a label together, wherever they were read, and whoever gets them
keeps or makes rows as one process does (``persons.py``), in as little memory. So a person's records are judged where
all of them are, and the rows are those of one process. Proof: docs/proofs/persons.md.

A worker never raises, since clusters log what is raised: what went wrong travels as a record of label 0.

>>> parts_of(1), parts_of(100), parts_of(10**6)
(16, 100, 4096)
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from privcov.errors import InputError, InternalError
from privcov.schema import Schema
from privcov.table.base import Table
from privcov.table.fragments import MOST_FRAGMENTS, Arrived, Fragment
from privcov.table.persons import IN_MEMORY, Kept, PersonTable, Rows, id_hashes, mixed

Sent = tuple[int, bytes]
"""A label, and rows of persons who have it, or what went wrong."""
_ROWS, _REFUSED, _FAILED = b"+", b"-", b"!"


@dataclass(frozen=True, kw_only=True)
class Joined:
    """All records of some persons, as a shuffle brought them, in the worker that has them."""

    place: int
    schema: Schema
    """With which the records were read."""
    sent: Iterable[bytes | bytearray]
    bytes: int = 0
    rows: int | None = None

    def open(self, schema: Schema) -> Table:
        return _JoinedTable(self.sent, self.schema)


class _JoinedTable(PersonTable):
    """The rows that are kept or made of these records."""

    def __init__(self, sent: Iterable[bytes | bytearray], schema: Schema) -> None:
        Table.__init__(self, schema)
        self._sent = sent

    def _read(self) -> Iterator[Rows]:
        for one in self._sent:
            kind, body = bytes(one[:1]), one[1:]
            if kind == _REFUSED:
                raise InputError(*json.loads(body))
            if kind != _ROWS:
                raise InternalError
            rows = int.from_bytes(body[:8], "little")
            yield Rows.of_bytes(body[8:], rows=rows, columns=len(self.schema.read_columns))


def parts_of(fragments: int) -> int:
    """Over how many parts a shuffle spreads the persons of so many fragments."""
    return min(max(16, fragments), MOST_FRAGMENTS)


def spread(fragment: Fragment | Arrived, *, schema: Schema, parts: int) -> Iterator[Sent]:
    """The records of a fragment that have an id, by label. It never raises."""
    try:
        yield from _spread(fragment, schema, parts)
    except InputError as error:
        yield 0, _REFUSED + json.dumps([error.code, error.sentence, error.remedy]).encode()
    except Exception:
        yield 0, _FAILED


def _spread(fragment: Fragment | Arrived, schema: Schema, parts: int) -> Iterator[Sent]:
    table = fragment.open_records(schema)
    held: list[Rows] = []
    for block in table.read_blocks():
        held.append(Rows.of(block))
        if sum(rows.bytes for rows in held) > IN_MEMORY:
            yield from _labelled(held, schema, parts)
            held = []
    if held:
        yield from _labelled(held, schema, parts)
    if fragment.rows not in (None, table.rows):
        raise InternalError


def _labelled(held: Sequence[Rows], schema: Schema, parts: int) -> Iterator[Sent]:
    rows = Rows.joined(held)
    if schema.per_person is None:  # others may be dropped where all are, but not more kept of these
        rows = Kept.of(rows, schema)
    labels = mixed(id_hashes(rows.ids)) % np.uint64(parts)  # not the parts of a file in which they will wait
    for label, own in rows.divided(labels, parts):
        count = len(own.order).to_bytes(8, "little")
        yield label, b"".join([_ROWS, count, *(piece.tobytes() for piece in own.pieces)])
