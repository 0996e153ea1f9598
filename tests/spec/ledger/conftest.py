"""Every ledger test runs twice: on an SQLite file, and on a real PostgreSQL server started here.

The server comes from Debian's packages (``apt-get install postgresql``) and listens on a socket in a directory
of its own, and on a port of the loopback interface. Where there is none, its half of the tests is skipped with
that reason.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pytest


def _tool(name: str) -> str:
    homes = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    found = shutil.which(name, path=os.pathsep.join([*map(str, homes), os.environ.get("PATH", "")]))
    if found is None:
        pytest.skip("PostgreSQL is not installed (apt-get install postgresql)")
    return found


def _free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The address of a PostgreSQL server that lives as long as the tests."""
    pytest.importorskip("psycopg", reason="psycopg is not installed (pip install 'privcov[postgres]')")
    initdb, control = _tool("initdb"), _tool("pg_ctl")
    home = Path(tempfile.mkdtemp(prefix="privcov-pg-"))
    words = {"check": True, "cwd": home, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        name = next(n for n in ("postgres", "nobody") if n in {user.pw_name for user in pwd.getpwall()})
        other = pwd.getpwnam(name)
        os.chown(home, other.pw_uid, other.pw_gid)
        words |= {"user": other.pw_uid, "group": other.pw_gid, "extra_groups": []}
    data = str(home / "data")
    try:
        subprocess.run(
            [initdb, "-D", data, "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8"], **words
        )
        port = _free_port()
        listen = f"-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories={home}"
        settings = f"{listen} -c max_connections=40"
        subprocess.run([control, "-D", data, "-w", "-l", str(home / "log"), "-o", settings, "start"], **words)
    except subprocess.CalledProcessError as failed:
        shutil.rmtree(home, ignore_errors=True)
        pytest.skip(f"PostgreSQL is installed, but {Path(failed.cmd[0]).name} fails here")
    try:
        yield f"postgresql:///postgres?host={home}&port={port}&user=postgres"
    finally:
        subprocess.run([control, "-D", data, "-w", "-m", "immediate", "stop"], **words)
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def on_postgres(server: str) -> str:
    """The address of an empty schema on the server."""
    import psycopg

    name = f"t{uuid4().hex}"
    with psycopg.connect(server) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    return f"{server}&options=-csearch_path%3D{name}"


@pytest.fixture(params=["sqlite", "postgres"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a new ledger may be made."""
    if request.param == "sqlite":
        return str(tmp_path / "census.ledger")
    return request.getfixturevalue("on_postgres")


@pytest.fixture
def sql():
    """Someone with the database in hand: runs a statement past privcov, triggers off."""

    def run(where: str, statement: str, *values: object) -> list[tuple[object, ...]]:
        if where.startswith("postgresql:"):
            import psycopg

            with psycopg.connect(where) as connection:
                connection.execute("ALTER TABLE privcov_entries DISABLE TRIGGER ALL")
                done = connection.execute(statement.replace("?", "%s"), values)
                return done.fetchall() if done.description else []
        with closing(sqlite3.connect(where, isolation_level=None)) as connection:
            for verb in ("update", "delete"):
                connection.execute(f"DROP TRIGGER IF EXISTS privcov_no_{verb}")
            return connection.execute(statement, values).fetchall()

    return run
