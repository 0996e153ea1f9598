"""A ledger for a team: the same two tables in a PostgreSQL schema, paid under a table lock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from privcov.errors import BudgetError, OutputError
from privcov.ledger.entries import Row
from privcov.ledger.sqlite import PATIENCE
from privcov.ledger.store import TABLES, Session

_COURTESY = (
    "CREATE FUNCTION privcov_refuse() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN RAISE EXCEPTION 'a ledger only grows'; END $$",
    "CREATE TRIGGER privcov_only_grows BEFORE UPDATE OR DELETE OR TRUNCATE ON privcov_entries "
    "FOR EACH STATEMENT EXECUTE FUNCTION privcov_refuse()",
)


class Postgres:
    """One ledger per PostgreSQL schema: the first of the connection's search path."""

    def __init__(self, address: str, *, patience: float = PATIENCE) -> None:
        self.address = address
        self.patience = patience
        try:
            parts = urlsplit(address)  # shown without the user, the password and the options
            self.name = f"postgresql://{parts.hostname or ''}{parts.path}"
        except ValueError:
            raise _unreadable() from None

    def create(self, rows: Sequence[Row], facts: Mapping[str, str]) -> None:
        with self._connected(exclusive=True) as connection:
            _refuse_forgetful(connection)
            for statement in (*TABLES, *_COURTESY):
                connection.execute(statement)
            Session(connection.execute, "%s").write(rows, facts)

    @contextmanager
    def session(self, *, exclusive: bool = False) -> Iterator[Session]:
        with self._connected(exclusive=exclusive) as connection:
            if exclusive:
                _refuse_forgetful(connection)
                connection.execute("LOCK TABLE privcov_facts IN EXCLUSIVE MODE")
            yield Session(connection.execute, "%s")

    def damage(self) -> list[str]:
        return []

    @contextmanager
    def _connected(self, *, exclusive: bool) -> Iterator[Any]:
        driver = _driver()
        try:
            # Leaving commits, or rolls back after an error; both close.
            with driver.connect(self.address, connect_timeout=max(2, int(self.patience))) as connection:
                # After the lock, what its last holder wrote must be seen; without it, one state of the whole.
                level = driver.IsolationLevel
                connection.isolation_level = level.READ_COMMITTED if exclusive else level.REPEATABLE_READ
                connection.execute(f"SET LOCAL lock_timeout = {int(1000 * self.patience)}")
                connection.execute("SET LOCAL synchronous_commit = on")
                yield connection
        except driver.Error as error:
            raise self._refusal(driver, error) from None
        except UnicodeError:  # of a host that no name server could be asked for, or half a character
            raise _unreadable() from None

    def _refusal(self, driver: Any, error: Any) -> BudgetError | OutputError:
        if isinstance(error, driver.errors.LockNotAvailable):
            return BudgetError(
                "E306",
                f"{self.name} was in use by another process for {self.patience:g} seconds.",
                "Nothing was paid. Try again.",
            )
        if isinstance(error, driver.errors.DuplicateTable | driver.errors.UniqueViolation):
            return OutputError(
                "E401",
                f"{self.name} holds a ledger already.",
                "Give another schema: ?options=-csearch_path%3D…",
            )
        if isinstance(error, driver.errors.UndefinedTable):
            return BudgetError(
                "E302", f"there is no ledger at {self.name}.", "Make one: privcov ledger init --help."
            )
        reason = error.sqlstate or "no connection"
        return BudgetError(
            "E302", f"{self.name} cannot be used: {reason}.", "Nothing was released. See to the server."
        )


def _unreadable() -> BudgetError:
    return BudgetError(
        "E302", "the address of the ledger cannot be read.", "Write postgresql://user@host:port/database."
    )


def _refuse_forgetful(connection: Any) -> None:
    """A server that does not write to the disk could forget a payment."""
    for setting in ("fsync", "full_page_writes"):
        if connection.execute(f"SHOW {setting}").fetchone()[0] != "on":
            raise BudgetError(
                "E306",
                f"this PostgreSQL server runs with {setting} off: a payment might not survive a crash.",
                f"Set {setting} = on.",
            )


def _driver() -> Any:
    try:
        import psycopg
    except ImportError:
        raise BudgetError(
            "E302", "a ledger in PostgreSQL needs psycopg.", "Install it: pip install 'privcov[postgres]'."
        ) from None
    return psycopg
