"""Writing a result: whole or not at all, never over something else unless asked."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from privcov.errors import OutputError


def check_writable(path: str | Path, *, force: bool) -> None:
    """Refuse an output that could not be written, before anything is paid or read."""
    target = Path(path)
    if target.is_symlink():
        raise OutputError("E401", f"{path} is a symbolic link.", "Give the name of a plain file.")
    if target.is_dir():
        raise OutputError("E401", f"{path} is a directory.", "Give the name of a file.")
    if target.exists() and not force:
        raise OutputError("E401", f"{path} is already there.", "Choose another name, or add --force.")
    if not target.parent.is_dir():
        raise OutputError("E401", f"the directory of {path} does not exist.")
    if not os.access(target.parent, os.W_OK):
        raise OutputError("E401", f"the directory of {path} is not writable.")


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
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
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
        raise OutputError(
            "E401", f"{path} is already there.", "Choose another name, or add --force."
        ) from None
    except OSError as reason:
        raise OutputError("E401", f"cannot write {path}: {reason.strerror}.") from None
