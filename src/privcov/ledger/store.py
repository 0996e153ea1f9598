"""Where entries are kept: two tables, the same statements for SQLite and PostgreSQL.

``privcov_facts`` holds the format, the secret and the sealed end of the chain; ``privcov_entries`` only grows.
A store opens a session per call, so a ledger may be used by many threads and survives a fork.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from privcov.ledger.addresses import server_words
from privcov.ledger.entries import Row

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


def store_for(where: str) -> Store:
    """PostgreSQL for a ``postgresql://`` address, an SQLite file for a path; what may be neither is refused (E312)."""
    words = server_words(where)
    if words is not None:
        from privcov.ledger.postgres import Postgres

        return Postgres(words)
    from privcov.ledger.sqlite import SQLite

    return SQLite(where)
