"""What every table is: checked against the schema, read once, in blocks of cells."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from privcov.errors import InputError
from privcov.schema import Column, Numeric, Schema
from privcov.schema.columns import Identifier
from privcov.schema.names import canonical, listed
from privcov.table.blocks import Block, height
from privcov.table.cells import apply_missing_codes
from privcov.table.fragments import Fragment, Held, Piece, bundled

Answer = tuple[int, int, bytes]
"""The place of a part, its rows, and what came of them."""
_CELLS_PER_BLOCK = 2**20


class Table(ABC):
    """Rows that fit a schema. ``blocks`` may be walked once; ``rows`` is then the number of records."""

    coded: ClassVar[bool] = True
    """Whether cells may be numbers that mean "missing"."""
    home: ClassVar[str | None] = None
    """The cluster that holds the rows, if one does: they are summed there and never come here."""

    def __init__(self, schema: Schema, known_rows: int | None = None) -> None:
        self.schema = schema
        self.known_rows = known_rows
        """The number of rows, where metadata tells it without reading a value; sensitive unless it is public."""
        self.rows = 0
        """Rows handed out so far."""
        self.bytes_done: int | None = None
        """Bytes of the file read so far, where that makes sense."""
        self._opened = False

    def blocks(self) -> Iterator[Block]:
        """Every row once, in blocks of at most ``block_rows(schema)`` rows, with its derived cells."""
        recipe = self.schema.recipe
        if recipe is None:
            yield from self.read_blocks()
            return
        places = {column.name: place for place, column in enumerate(self.schema.read_columns)}
        for block in self.read_blocks():
            derived = iter(recipe.derived(block))
            yield [
                block[places[column.name]] if column.expression is None else next(derived)
                for column in self.schema.columns
            ]

    def read_blocks(self) -> Iterator[Block]:
        """The same with the columns of the table alone, as they are read."""
        if self._opened:
            raise InputError("E123", "this table was already read once.", "Open it again.")
        self._opened = True
        coded = [
            (place, column)
            for place, column in enumerate(self.schema.read_columns)
            if isinstance(column, Numeric) and column.missing_numbers and self.coded
        ]
        read = self._blocks()
        while True:
            with np.errstate(all="ignore"):  # a warning would tell that a value is huge, or no plain NaN
                block = next(read, None)
            if block is None:
                return
            self.rows += height(block)
            yield _without_codes(block, coded, always=self.schema.file.constant) if coded else block

    @property
    def parts(self) -> int | None:
        """How many parts a table in a cluster has, where that is known before it is read."""
        return None

    @abstractmethod
    def _blocks(self) -> Iterator[Block]: ...

    def pieces(self) -> Sequence[Piece] | None:
        """Runs of files that together are this table; None where its rows are not in files."""
        return None

    def records(self) -> Sequence[Piece] | None:
        """The same; of a table of persons the files that they are gathered from."""
        return self.pieces()

    def count(self) -> int | None:
        """The number of records, for the one who may know it: from metadata, or by counting lines, never values.

        None where it cannot be told without reading the rows. It is sensitive where the number of rows is private.
        """
        return self.known_rows

    def fragments(self) -> Sequence[Fragment] | Sequence[Held]:
        """Parts that together hold every row of this table once, each for one worker."""
        pieces = self.pieces()
        return [Held(place=0, table=self)] if pieces is None else bundled(pieces)

    def answers_at_home(self, attempt: Callable[[Any], Answer]) -> Generator[Answer, None, None]:
        """``attempt`` on every part of a table that lives in a cluster, ``Arrived`` or ``Joined``, done there."""
        raise NotImplementedError

    def asked_at_home(self, question: str) -> list[object]:
        """What workers of the cluster that holds the rows answer to a Python expression; nothing without a cluster."""
        return []

    @property
    def total_bytes(self) -> int | None:
        """The size of the files, where the table is files."""
        pieces = self.pieces()
        return None if pieces is None else sum(piece.bytes for piece in pieces)


class Chain(Table):
    """Several tables, one after the other."""

    def __init__(self, schema: Schema, tables: Sequence[Table]) -> None:
        known = [table.known_rows for table in tables if table.known_rows is not None]
        super().__init__(schema, sum(known) if len(known) == len(tables) else None)
        self._tables = tables

    def _blocks(self) -> Iterator[Block]:
        read = 0
        for table in self._tables:
            for block in table.read_blocks():
                self.bytes_done = None if table.bytes_done is None else read + table.bytes_done
                yield block
            read += table.bytes_done or 0

    def count(self) -> int | None:
        counts = [table.count() for table in self._tables]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None

    def pieces(self) -> Sequence[Piece] | None:
        found: list[Piece] = []
        for table in self._tables:
            pieces = table.pieces()
            if pieces is None:
                return None
            found.extend(pieces)
        return found


def _without_codes(block: Block, coded: Sequence[tuple[int, Numeric]], *, always: bool) -> Block:
    """The block with NaN for numbers that mean "missing". It may be the caller's memory, which is not written to.

    Without ``always`` it is copied only if there is such a number.
    """
    made = block
    for place, column in coded:
        given = block[place]
        if (cells := apply_missing_codes(column, given, always=always)) is not given:
            if made is block:
                made = np.array(block, order="K") if isinstance(block, np.ndarray) else list(block)
            made[place] = cells  # type: ignore[index]
    return made


def read_columns(schema: Schema) -> tuple[Column | Identifier, ...]:
    """What is read of a table: the declared columns, and behind them the one that tells persons apart, if any."""
    if schema.person is None:
        return schema.read_columns
    return (*schema.read_columns, Identifier(name=schema.person, missing_values=schema.missing_values))


def block_rows(schema: Schema) -> int:
    """How many rows make a block of some megabytes; enough of them that adding their product is worth it."""
    return max(2_048, min(65_536, _CELLS_PER_BLOCK // max(len(schema.columns), len(schema.sources))))


def check_names(names: Iterable[object], schema: Schema, where: str) -> list[int]:
    """Where each declared column stands among ``names``; refuses what the schema does not allow.

    Names are compared in their canonical form: white space around them, and how an accent is stored, mean nothing.
    Only declared names are repeated in a message, and of others their places: where a file has no header, its first
    "names" are a person's row.
    """
    found = [canonical(str(name)) for name in names]
    declared = [column.name for column in read_columns(schema)]
    known = set(declared)
    expected = known.union(schema.left_out)
    extra = [place for place, name in enumerate(found, start=1) if name not in expected]
    places = {name: place for place, name in enumerate(found)}
    for name in [name for name, times in Counter(found).items() if times > 1]:
        if name in known or not schema.ignore_extra:
            which = (
                f"named {listed([name])}"
                if name in known
                else "with the same name, which the schema does not declare"
            )
            raise InputError("E103", f"{where} has two columns {which}.", "Rename one.")
    if absent := [name for name in declared if name not in places]:
        raise InputError(
            "E102",
            f"{where} has no column {listed(absent)}. The schema declares {listed(declared)}; "
            f"{len(extra)} of the {len(found)} columns of the table are not in it.",
            "Correct the schema or the header (the first line of a CSV file, with the separator given under [file]).",
        )
    if extra and not schema.ignore_extra:
        raise InputError(
            "E104",
            f"{where} has {len(extra)} column{'s' * (len(extra) > 1)} that the schema does not declare: "
            f"column{'s' * (len(extra) > 1)} {listed([str(place) for place in extra])} of {len(found)}, from the left.",
            f"Declare {'it' if len(extra) == 1 else 'them'}, or add ignore_extra = true to the schema.",
        )
    return [places[name] for name in declared]
