"""Holding a ledger's file: alone, on a local disk, and under the only name it has.

SQLite's own locks are on the file, whatever it is called; its journal is named after the path. A second name of
the same file, a hard link or a mount of the file alone, would not find a journal that a crash left under the first,
and rolled back later it would undo payments. So a file with two names is refused, before and at the end of every
transaction. A symbolic link is no second name: it is followed first. Why not more: docs/decisions/0006-ledger.md.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from privcov.errors import BudgetError

PATIENCE = 30.0
"""Seconds to wait for another process that is paying."""
NETWORK = {
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "lustre", "beegfs", "virtiofs", "vboxsf", "prl_fs",
    "fuse.sshfs", "fuse.ceph", "fuse.glusterfs", "fuse.grpcfuse", "fuse.bindfs",
}  # fmt: skip
"""Filesystems that are seen from elsewhere too, and whose locks are not to be trusted with money."""
_PAUSE = 0.002
"""Seconds between two tries to be alone."""


@dataclass(frozen=True, kw_only=True)
class Held:
    """A file that this call alone may use, and what must stay true of it until the end."""

    path: str
    name: str
    descriptor: int

    def check(self) -> None:
        """Refuse a file that has a second name (E310), or has lost the one it was opened by (E311)."""
        found = os.fstat(self.descriptor)
        try:
            same = os.path.samestat(found, os.lstat(self.path))
        except OSError:
            same = False
        if not same:
            raise BudgetError(
                "E311",
                f"{self.name} was renamed, removed or replaced while it was in use.",
                "Nothing was paid. Find out which file is the ledger.",
            )
        if found.st_nlink != 1:
            raise BudgetError(
                "E310",
                f"{self.name} is one of {found.st_nlink} hard links to the same file.",
                "Nothing was paid. Remove the other links: find / -xdev -samefile LEDGER lists them.",
            )
        table = _table()
        if any(point == self.path for point, _ in mounts_of(table)):
            raise BudgetError(
                "E310",
                f"{self.name} is a mount of a single file, which has another path elsewhere.",
                "Nothing was paid. Mount the ledger's directory instead of the file.",
            )
        refuse_network(os.path.dirname(self.path), table)


@contextmanager
def held(where: Path, *, name: str, patience: float) -> Iterator[Held]:
    """The file at a path, symbolic links followed, for this call alone: waits ``patience`` seconds for it.

    The lock belongs to the open file (``flock``): it holds whatever name others come by, and is not lost when
    something else in this process closes the file, as SQLite's POSIX locks are.
    """
    path = os.path.realpath(where)
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise FileNotFoundError
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
    except (FileNotFoundError, NotADirectoryError):
        raise BudgetError(
            "E302", f"there is no ledger at {name}.", "Make one: privcov ledger init --help."
        ) from None
    except OSError as reason:
        raise BudgetError(
            "E302", f"{name} cannot be used: {reason.strerror}.", "Nothing was released."
        ) from None
    try:
        _wait(descriptor, patience, name)
        try:
            file = Held(path=path, name=name, descriptor=descriptor)
            file.check()
            yield file
        finally:
            fcntl.flock(descriptor, fcntl.LOCK_UN)  # also for a child that was forked meanwhile
    finally:
        os.close(descriptor)


def busy(name: str, patience: float) -> BudgetError:
    """Somebody else had the ledger for longer than one waits."""
    return BudgetError(
        "E306",
        f"{name} was in use by another process for {patience:g} seconds.",
        "Nothing was paid. Try again.",
    )


def refuse_network(directory: str, table: str | None = None) -> None:
    """Refuse a directory on a filesystem whose locks do not hold for everyone who sees it (E306)."""
    kind = filesystem(directory, _table() if table is None else table)
    if kind in NETWORK:
        raise BudgetError(
            "E306",
            f"{directory} is on a network filesystem ({kind}), whose locks are not reliable enough for a budget.",
            "Keep the ledger on a local disk, or in PostgreSQL.",
        )


def filesystem(directory: str | Path, table: str) -> str:
    """The type of the filesystem that holds a directory, by a table of mounts.

    >>> filesystem("/srv/data/x", "/dev/a / ext4 rw 0 0\\nhost:/d /srv/data nfs4 rw 0 0\\n")
    'nfs4'
    """
    inside = f"{directory}/".replace("//", "/")
    longest, found = 0, ""
    for point, kind in mounts_of(table):
        if (
            inside.startswith(f"{point.rstrip('/')}/") and len(point) >= longest
        ):  # the later of two lies on top
            longest, found = len(point), kind
    return found


def mounts_of(table: str) -> Iterator[tuple[str, str]]:
    """The mount points of a table of mounts, each with the type of its filesystem.

    >>> [*mounts_of("/dev/a /my\\\\040disk ext4 rw 0 0")]
    [('/my disk', 'ext4')]
    """
    for line in table.split("\n"):
        fields = line.split(" ")
        if len(fields) > 2:
            yield re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), fields[1]), fields[2]


def _table() -> str:
    try:
        return Path("/proc/self/mounts").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:  # no such file outside Linux, where no single file can be mounted either
        return ""


def _wait(descriptor: int, patience: float, name: str) -> None:
    end = time.monotonic() + patience
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                raise busy(name, patience) from None
            time.sleep(_PAUSE)
        except OSError as reason:  # a filesystem without locks
            raise BudgetError(
                "E306",
                f"{name} cannot be locked: {reason.strerror}.",
                "Keep it on a local disk, or in PostgreSQL.",
            ) from None
