"""A ledger for a team: the same two tables in a PostgreSQL schema, paid under a table lock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from privcov.errors import BudgetError, OutputError
from privcov.ledger.addresses import is_elsewhere, not_understood, shown
from privcov.ledger.entries import Row
from privcov.ledger.holding import PATIENCE, busy
from privcov.ledger.store import TABLES, Session

_ENCRYPTED = ("require", "verify-ca", "verify-full")
_COURTESY = (
    "CREATE FUNCTION privcov_refuse() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN RAISE EXCEPTION 'a ledger only grows'; END $$",
    "CREATE TRIGGER privcov_only_grows BEFORE UPDATE OR DELETE OR TRUNCATE ON privcov_entries "
    "FOR EACH STATEMENT EXECUTE FUNCTION privcov_refuse()",
)


class _Quiet(Session):
    """A session whose rows are sent beside the statement: a server that logs statements does not log the secret."""

    def __init__(self, connection: Any) -> None:
        super().__init__(connection.execute, "%s")
        self._connection = connection

    def _add(self, table: str, rows: Iterable[Sequence[Any]]) -> None:
        with self._connection.cursor().copy(f"COPY {table} FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)


class Postgres:
    """One ledger per PostgreSQL schema: the first of the connection's search path."""

    def __init__(self, words: Mapping[str, str], *, patience: float = PATIENCE) -> None:
        """``words``: host, port, user and so on, as ``server_words`` finds them in an address."""
        self.words = dict(words)
        self.patience = patience
        self.name = shown(words)

    def create(self, rows: Sequence[Row], facts: Mapping[str, str]) -> None:
        with self._connected(exclusive=True) as connection:
            _refuse_forgetful(connection)
            for statement in (*TABLES, *_COURTESY):
                connection.execute(statement)
            _Quiet(connection).fill(rows, facts)

    @contextmanager
    def session(self, *, exclusive: bool = False) -> Iterator[Session]:
        with self._connected(exclusive=exclusive) as connection:
            if exclusive:
                _refuse_forgetful(connection)
                connection.execute("LOCK TABLE privcov_facts IN EXCLUSIVE MODE")
            yield _Quiet(connection)

    def damage(self) -> list[str]:
        return []

    @contextmanager
    def _connected(self, *, exclusive: bool) -> Iterator[Any]:
        driver = _driver()
        try:
            asked = {**self._encrypted(driver), "connect_timeout": max(2, int(self.patience))}
            # Leaving commits, or rolls back after an error; both close.
            with driver.connect(driver.conninfo.make_conninfo(**asked)) as connection:
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

    def _encrypted(self, driver: Any) -> dict[str, str]:
        """The words to connect with: to another machine with TLS, unless the address itself says ``disable``."""
        preset = {
            word.keyword.decode(): word.val.decode() for word in driver.pq.Conninfo.get_defaults() if word.val
        }
        told = self.words.get("sslmode")
        if not is_elsewhere({**preset, **self.words}) or told in (*_ENCRYPTED, "disable"):
            return self.words
        if told is not None:  # libpq would go on in the clear where the server has no TLS
            raise BudgetError(
                "E313",
                f"{self.name} is another machine, and this sslmode allows unencrypted connections.",
                "Nothing was sent. Give sslmode=verify-full or require; sslmode=disable if you mean it.",
            )
        if preset.get("sslmode") in _ENCRYPTED:
            return self.words
        return {**self.words, "sslmode": "require"}

    def _refusal(self, driver: Any, error: Any) -> BudgetError | OutputError:
        if isinstance(error, driver.errors.LockNotAvailable):
            return busy(self.name, self.patience)
        if isinstance(error, driver.errors.DuplicateTable | driver.errors.UniqueViolation):
            return OutputError(
                "E401",
                f"{self.name} already holds a ledger.",
                "Give another schema: ?options=-csearch_path%3D…",
            )
        if isinstance(error, driver.errors.UndefinedTable):
            return BudgetError(
                "E302", f"there is no ledger at {self.name}.", "Make one: privcov ledger init --help."
            )
        if error.sqlstate is None and isinstance(error, driver.ProgrammingError):
            return not_understood()  # a word that libpq does not know
        if error.sqlstate is None and any(
            text in str(error) for text in ("does not support SSL", "SSL error")
        ):
            return BudgetError(
                "E313",
                f"no encrypted connection to {self.name} could be made.",
                "Set up TLS there. sslmode=disable in the address allows an unencrypted connection.",
            )
        reason = error.sqlstate or "no connection"
        return BudgetError(
            "E302", f"{self.name} cannot be used: {reason}.", "Nothing was released. Check the server."
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
