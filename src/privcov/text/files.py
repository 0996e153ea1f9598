"""Writing a result: whole or not at all, never over something else unless asked. And reading what is a plain file."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from privcov.errors import OutputError


def opened(path: str | Path) -> BinaryIO:
    """A plain file, to be read; ``OSError`` for anything else: a pipe would be waited for, a device never ends."""
    quiet = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    file = os.fdopen(os.open(path, quiet), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "it is not a plain file")
    return file


def check_writable(path: str | Path, *, force: bool) -> None:
    """Refuse an output that could not be written, before anything is paid or read."""
    target = Path(path)
    if target.is_symlink():
        raise OutputError("E401", f"{path} is a symbolic link.", "Give the name of a plain file.")
    if target.is_dir():
        raise OutputError("E401", f"{path} is a directory.", "Give the name of a file.")
    if target.exists() and not target.is_file():
        raise OutputError(
            "E401", f"{path} is not a plain file, so it is not replaced.", "Choose another name."
        )
    if target.exists() and not force:
        raise OutputError("E401", f"{path} already exists.", "Choose another name, or add --force.")
    if not target.parent.is_dir():
        raise OutputError("E401", f"the directory of {path} does not exist.")
    if not os.access(target.parent, os.W_OK):
        raise OutputError("E401", f"the directory of {path} is not writable.")


@contextmanager
def reserved(path: str | Path, *, force: bool) -> Iterator[None]:
    """While this lasts no other release writes to the same name: one of two is refused, and before it has paid.

    A lock on a hidden file beside the output, which goes with the process, however that ends. What a killed process
    leaves is an empty file that is in nobody's way; the next release to the name takes it over and removes it.
    """
    check_writable(path, force=force)
    target = Path(path)
    place = target.with_name(f".{target.name}.reserved")
    try:
        handle = _locked(place)
    except BlockingIOError:
        raise OutputError(
            "E430", f"another release is being written to {path}.", "Wait for it, or choose another name."
        ) from None
    except OSError as reason:
        raise OutputError("E401", f"cannot write {path}: {reason.strerror}.") from None
    try:
        check_writable(path, force=force)  # again: the one before may have written it
        yield
    finally:
        place.unlink(missing_ok=True)
        os.close(handle)


def _locked(place: Path) -> int:
    """A file that was made for it, opened and locked; ``BlockingIOError`` where somebody else holds it."""
    import fcntl  # of POSIX alone, as are ledgers that several processes share

    while True:
        handle = os.open(place, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.stat(place, follow_symlinks=False), os.fstat(handle)):
                return handle
        except FileNotFoundError:  # its owner removed it between our opening and our locking it
            pass
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def write(path: str | Path, content: str | bytes | Iterable[bytes | memoryview], *, force: bool) -> None:
    """Write a file whole or not at all; an existing file is replaced only when asked. Content may come in pieces."""
    text = content.encode("ascii") if isinstance(content, str) else content
    with whole(path, force=force, mode=0o644) as file:
        file.writelines((text,) if isinstance(text, bytes) else text)


@contextmanager
def whole(path: str | Path, *, force: bool, mode: int) -> Iterator[BinaryIO]:
    """A file to write to, which is at ``path`` once this has ended without an error, and else nowhere."""
    check_writable(path, force=force)
    target = Path(path)
    try:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=".privcov.", suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, mode)
            (os.replace if force else os.link)(temporary, target)
        finally:
            Path(temporary).unlink(missing_ok=True)
    except FileExistsError:
        raise OutputError("E401", f"{path} already exists.", "Choose another name, or add --force.") from None
    except OSError as reason:
        raise OutputError("E401", f"cannot write {path}: {reason.strerror}.") from None
