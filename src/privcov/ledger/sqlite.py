"""A ledger in one file: SQLite with a write-ahead log, every commit on the disk before it counts."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from privcov.errors import BudgetError, OutputError
from privcov.ledger.entries import Row
from privcov.ledger.store import TABLES, Session

PATIENCE = 30.0
"""Seconds to wait for another process that is paying."""
NETWORK = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "fuse.sshfs"}
"""Filesystems whose locks are not to be trusted with money."""
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
        _refuse_network(self.path.parent)
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_NOFOLLOW, 0o600))
        except FileExistsError:
            raise OutputError(
                "E401", f"{self.name} is already there.", "A ledger is never replaced: choose another name."
            ) from None
        except OSError as reason:
            raise OutputError("E401", f"cannot write {self.name}: {reason.strerror}.") from None
        try:
            with self._connected() as connection:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("BEGIN IMMEDIATE")
                for statement in (*TABLES, *_COURTESY):
                    connection.execute(statement)
                Session(connection.execute, "?").write(rows, facts)
                connection.execute("COMMIT")
            directory = os.open(self.path.parent, os.O_RDONLY)
            os.fsync(directory)
            os.close(directory)
        except BaseException:
            self.path.unlink(missing_ok=True)
            raise

    @contextmanager
    def session(self, *, exclusive: bool = False) -> Iterator[Session]:
        if not self.path.is_file():
            raise BudgetError(
                "E302", f"there is no ledger at {self.name}.", "Make one: privcov ledger init --help."
            )
        _refuse_network(self.path.resolve().parent)
        with self._connected() as connection:
            connection.execute("BEGIN IMMEDIATE" if exclusive else "BEGIN")
            try:
                yield Session(connection.execute, "?")
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def damage(self) -> list[str]:
        with self._connected() as connection:
            found = [str(line[0]) for line in connection.execute("PRAGMA integrity_check(10)")]
        return [] if found == ["ok"] else [f"the file is damaged: {' '.join(line.split())}" for line in found]

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        try:
            connection = sqlite3.connect(
                self.path.as_uri() + "?mode=rw",
                uri=True,
                timeout=self.patience,
                isolation_level=None,
            )
            try:
                # FULL: a commit is on the disk when it returns. The file is data, so its schema is not trusted.
                for pragma in ("synchronous = FULL", "fullfsync = ON", "trusted_schema = OFF"):
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
            return BudgetError(
                "E306",
                f"{self.name} was in use by another process for {self.patience:g} seconds.",
                "Nothing was paid. Try again.",
            )
        if reason.startswith(("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_READONLY", "SQLITE_CANTOPEN")):
            return BudgetError(
                "E302", f"{self.name} cannot be used: {reason}.", "Nothing was released. See to the disk."
            )
        return BudgetError(
            "E305",
            f"{self.name} is no ledger, or is damaged: {reason}.",
            "Nothing was paid. Ask the last good copy what it says.",
        )


def _refuse_network(directory: Path) -> None:
    try:
        mounts = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace")
    except OSError:  # no such file outside Linux
        return
    kind = filesystem(directory, mounts)
    if kind in NETWORK:
        raise BudgetError(
            "E306",
            f"{directory} is on a network filesystem ({kind}), whose locks cannot be trusted with a budget.",
            "Keep the ledger on a local disk, or in PostgreSQL.",
        )


def filesystem(directory: Path, mounts: str) -> str:
    """The type of the filesystem that holds a directory, by a table of mounts.

    >>> filesystem(Path("/srv/data/x"), "/dev/a / ext4 rw 0 0\\nhost:/d /srv/data nfs4 rw 0 0\\n")
    'nfs4'
    """
    best, kind = -1, ""
    for line in mounts.splitlines():
        fields = line.split(" ")
        point = Path(fields[1].replace("\\040", " ")) if len(fields) > 2 else Path("/dev/null")
        if directory.is_relative_to(point) and len(point.parts) >= best:
            best, kind = len(point.parts), fields[2]
    return kind
