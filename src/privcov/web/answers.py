"""What the workbench is given, and what it gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

LARGEST_DOWNLOAD = 2**28


@dataclass(frozen=True, kw_only=True)
class Download:
    """A file that goes to the browser."""

    name: str
    kind: str
    content: bytes


Answer = dict[str, Any] | Download


@dataclass(frozen=True, kw_only=True)
class Given:
    """What the command line named: file names below the directory, and a ledger that may be elsewhere."""

    data: str = ""
    schema: str = ""
    ledger: str = ""
    ledger_place: str = ""
