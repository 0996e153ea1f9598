"""What every table is: checked against the schema, read once, in blocks of cells."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence

from privcov.bounding import Block
from privcov.errors import InputError
from privcov.schema import Schema

_CELLS_PER_BLOCK = 2**20
_NAMES_SHOWN = 20


class Table(ABC):
    """Rows that fit a schema. ``blocks`` may be walked once; ``rows`` is then the number of records."""

    def __init__(self, schema: Schema, known_rows: int | None = None) -> None:
        self.schema = schema
        self.known_rows = known_rows
        """The number of rows, where metadata tells it without reading a value; sensitive under add-remove."""
        self.rows = 0
        """Rows handed out so far."""
        self.bytes_done: int | None = None
        """Bytes of the file read so far, where that makes sense."""
        self._opened = False

    def blocks(self) -> Iterator[Block]:
        """Every row once, in blocks of at most ``block_rows(schema)`` rows."""
        if self._opened:
            raise InputError("E123", "this table was already read once.", "Open it again.")
        self._opened = True
        for block in self._blocks():
            self.rows += len(block[0])
            yield block

    @abstractmethod
    def _blocks(self) -> Iterator[Block]: ...

    def split(self, parts: int) -> Sequence[Table]:
        """Tables that together hold the rows of this one, for as many threads; one where that is no gain."""
        return [self]


class Chain(Table):
    """Several tables, one after the other."""

    def __init__(self, schema: Schema, tables: Sequence[Table]) -> None:
        known = [table.known_rows for table in tables if table.known_rows is not None]
        super().__init__(schema, sum(known) if len(known) == len(tables) else None)
        self._tables = tables

    def _blocks(self) -> Iterator[Block]:
        read = 0
        for table in self._tables:
            for block in table.blocks():
                self.bytes_done = None if table.bytes_done is None else read + table.bytes_done
                yield block
            read += table.bytes_done or 0

    def split(self, parts: int) -> Sequence[Table]:
        pieces = [piece for table in self._tables for piece in table.split(parts)]
        return [Chain(self.schema, pieces[start::parts]) for start in range(min(parts, len(pieces)))]


def block_rows(schema: Schema) -> int:
    """How many rows make a block of some megabytes."""
    return max(256, min(65_536, _CELLS_PER_BLOCK // len(schema.columns)))


def check_names(names: Iterable[object], schema: Schema, where: str) -> list[int]:
    """Where each declared column stands among ``names``; refuses what the schema does not allow."""
    found = [str(name) for name in names]
    declared = [column.name for column in schema.columns]
    known = set(declared)
    extra = [name for name in found if name not in known]
    repeated = [name for name in found if found.count(name) > 1] if len(set(found)) < len(found) else []
    for name in repeated:
        if name in known or not schema.ignore_extra:
            raise InputError("E103", f"{where} has two columns named {_shown([name])}.", "Rename one.")
    if absent := [name for name in declared if name not in set(found)]:
        raise InputError(
            "E102",
            f"{where} has no column {_shown(absent)}; the schema expects {_shown(declared)}, "
            f"and the table has {_shown(found)}.",
            "Correct the schema or the header; in a CSV file columns are separated by commas.",
        )
    if extra and not schema.ignore_extra:
        raise InputError(
            "E104",
            f"{where} has columns the schema does not declare: {_shown(extra)}.",
            "Declare them, or add ignore_extra = true to the schema.",
        )
    places = {name: place for place, name in enumerate(found)}
    return [places[name] for name in declared]


def _shown(names: Sequence[str]) -> str:
    """Column names for a message: printable, short, and not too many."""
    shown = [
        name if name.isascii() and name.isprintable() else ascii(name)[1:-1] for name in names[:_NAMES_SHOWN]
    ]
    short = [name if len(name) <= 64 else name[:61] + "..." for name in shown]
    more = len(names) - _NAMES_SHOWN
    return ", ".join(short) + (f" and {more} more" if more > 0 else "")
