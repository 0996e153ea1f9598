"""Which files are opened at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Never

from privcov.errors import InputError


def regular_file(path: Path) -> os.stat_result:
    """What the system knows about a plain file; everything that is not one is refused."""
    try:
        about = path.stat()
    except (OSError, ValueError):
        raise InputError("E119", f"cannot read {path}: there is no such file.", "Check the path.") from None
    if stat.S_ISDIR(about.st_mode):
        raise InputError("E119", f"{path} is a directory.", f"Name files, such as '{path}/*.parquet'.")
    if not stat.S_ISREG(about.st_mode):
        raise InputError("E119", f"{path} is not a plain file.", "Copy the data to a file first.")
    if not os.access(path, os.R_OK):
        raise InputError("E119", f"cannot read {path}: permission denied.", "Check its permissions.")
    if about.st_size == 0:
        raise InputError("E101", f"{path.name} is empty: it has no header.", "Check how it was written.")
    return about


def changed(path: Path) -> Never:
    """The size of a file is not what it was when it was opened."""
    raise InputError(
        "E120", f"{path.name} was changed while it was being read.", "Copy it first, then release."
    )
