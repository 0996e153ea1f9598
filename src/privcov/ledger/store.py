"""Where entries are kept: two tables, the same statements for SQLite and PostgreSQL; and the store in one file.

``privcov_facts`` holds the format, the secret and the sealed end of the chain; ``privcov_entries`` only grows.
A store opens a session per call, so a ledger may be used by many threads and survives a fork.

A ledger in one file is SQLite with a rollback journal, every commit on the disk before it counts. What is committed is
in the file itself, so that a file that is moved or copied takes its payments along; the journal beside it lives as long
as a transaction. A write-ahead log would hold payments under the path's name.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Protocol

from privcov.errors import BudgetError, OutputError
from privcov.ledger.entries import Row
from privcov.ledger.holding import PATIENCE, busy, held, refuse_network

TABLES = (
    "CREATE TABLE privcov_facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE privcov_entries (number INTEGER PRIMARY KEY, body TEXT NOT NULL, link TEXT NOT NULL UNIQUE)",
)


class Session:
    """One transaction: what is read in it is true until its end, what is written is durable after it."""

    def __init__(self, execute: Callable[[str, Sequence[Any]], Iterable[Any]], mark: str) -> None:
        self._execute = execute
        self._mark = mark

    def facts(self) -> dict[str, str]:
        """The format, the secret, and the end of the chain with its seal."""
        return {
            str(row[0]): str(row[1]) for row in self._execute("SELECT name, value FROM privcov_facts", ())
        }

    def rows(self, since: int = 1) -> list[Row]:
        """Entries from a number on, in order."""
        statement = (
            f"SELECT number, body, link FROM privcov_entries WHERE number >= {self._mark} ORDER BY number"
        )
        return [(row[0], row[1], row[2]) for row in self._execute(statement, (since,))]

    def fill(self, rows: Iterable[Row], facts: Mapping[str, str]) -> None:
        """The first contents of new tables, the secret among them."""
        self._add("privcov_entries", rows)
        self._add("privcov_facts", facts.items())

    def write(self, rows: Iterable[Row], facts: Mapping[str, str]) -> None:
        """Add entries and replace the facts given."""
        self._add("privcov_entries", rows)
        for name, value in facts.items():
            self._execute(
                f"INSERT INTO privcov_facts VALUES ({self._mark}, {self._mark}) "
                "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                (name, value),
            )

    def _add(self, table: str, rows: Iterable[Sequence[Any]]) -> None:
        for row in rows:
            self._execute(f"INSERT INTO {table} VALUES ({', '.join(self._mark for _ in row)})", row)


class Store(Protocol):
    """A database that can hold one ledger."""

    name: str
    """What messages call it: a path, or a host."""

    def create(self, rows: Sequence[Row], facts: Mapping[str, str]) -> None:
        """Make the tables with their first contents, where there is no ledger yet."""

    def session(self, *, exclusive: bool = False) -> AbstractContextManager[Session]:
        """A transaction; of all exclusive ones only one runs at a time, and it is durable when it ends."""

    def damage(self) -> list[str]:
        """What the database itself finds wrong."""


_PRAGMAS = (
    "synchronous = EXTRA",  # a commit is on the disk when it returns, and so is the end of its journal
    "fullfsync = ON",
    "trusted_schema = OFF",  # the file is data
    "journal_mode = DELETE",  # the write-ahead log of a ledger made by an earlier version is taken into the file
)
_COURTESY = tuple(
    f"CREATE TRIGGER privcov_no_{verb.lower()} BEFORE {verb} ON privcov_entries "
    "BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END"
    for verb in ("UPDATE", "DELETE")
)


class SQLite:
    """An SQLite file, mode 0600, made once and never replaced."""

    def __init__(self, path: str | Path, *, patience: float = PATIENCE) -> None:
        self.path = Path(path).absolute()  # a later change of directory changes nothing
        self.name = str(path)
        self.patience = patience

    def create(self, rows: Sequence[Row], facts: Mapping[str, str]) -> None:
        refuse_network(os.path.realpath(self.path.parent))
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_NOFOLLOW, 0o600))
        except FileExistsError:
            raise OutputError(
                "E401", f"{self.name} already exists.", "A ledger is never replaced: choose another name."
            ) from None
        except OSError as reason:
            raise OutputError("E401", f"cannot write {self.name}: {reason.strerror}.") from None
        try:
            with self._transaction("BEGIN EXCLUSIVE") as connection:
                for statement in (*TABLES, *_COURTESY):
                    connection.execute(statement)
                Session(connection.execute, "?").fill(rows, facts)
            directory = os.open(self.path.parent, os.O_RDONLY)
            os.fsync(directory)
            os.close(directory)
        except BaseException:
            self.path.unlink(missing_ok=True)
            raise

    @contextmanager
    def session(self, *, exclusive: bool = False) -> Iterator[Session]:
        with self._transaction("BEGIN EXCLUSIVE" if exclusive else "BEGIN") as connection:
            yield Session(connection.execute, "?")

    def damage(self) -> list[str]:
        with self._transaction("BEGIN") as connection:
            found = [str(line[0]) for line in connection.execute("PRAGMA integrity_check(10)")]
        return [] if found == ["ok"] else [f"the file is damaged: {' '.join(line.split())}" for line in found]

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        """One transaction on a file that is looked at before it and, before it is committed, again."""
        with (
            held(self.path, name=self.name, patience=self.patience) as file,
            self._connected(file.path) as connection,
        ):
            connection.execute(begin)
            try:
                yield connection
                file.check()
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _connected(self, path: str) -> Iterator[sqlite3.Connection]:
        try:
            connection = sqlite3.connect(
                Path(path).as_uri() + "?mode=rw",
                uri=True,
                timeout=self.patience,
                isolation_level=None,
            )
            try:
                for pragma in _PRAGMAS:
                    connection.execute(f"PRAGMA {pragma}")
                yield connection
            finally:
                connection.close()
        except sqlite3.Error as error:
            raise self._refusal(error) from None
        except UnicodeDecodeError:  # a damaged name in a message of SQLite's
            raise self._refusal(sqlite3.DatabaseError()) from None

    def _refusal(self, error: sqlite3.Error) -> BudgetError:
        reason = getattr(error, "sqlite_errorname", "") or type(error).__name__
        if reason.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            return busy(self.name, self.patience)
        if reason.startswith(("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_READONLY", "SQLITE_CANTOPEN")):
            return BudgetError(
                "E302", f"{self.name} cannot be used: {reason}.", "Nothing was released. Check the disk."
            )
        return BudgetError(
            "E305",
            f"{self.name} is not a ledger, or is damaged: {reason}.",
            "Nothing was paid. Compare it with the last good copy.",
        )
